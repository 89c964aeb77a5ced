//! Against the plain way, and that work does not grow with the product of markers and puts.

use super::VersionBehavior;
use super::plain::Plain;
use base::{Rng, SeqId};
use cell::{CellBuffer, CellSpec, CellType, Order};

/// Cells of one row, in order.
struct Row(Vec<(String, i64, CellType, u64)>);

impl Row {
    fn cells(mut self) -> CellBuffer {
        fn spec(qualifier: &str, timestamp: i64, cell_type: CellType) -> CellSpec<'_> {
            let (qualifier, type_code) = (qualifier.as_bytes(), cell_type.code());
            CellSpec { row: b"r", family: b"f", qualifier, timestamp, type_code, value: b"", tags: b"" }
        }
        let mut unsorted = CellBuffer::new();
        for (qualifier, timestamp, cell_type, seq_id) in self.0.drain(..) {
            unsorted.push_spec(&spec(&qualifier, timestamp, cell_type), SeqId(seq_id));
        }
        let mut order: Vec<usize> = (0..unsorted.len()).collect();
        order.sort_by(|a, b| Order::User.cells(unsorted.get(*a), unsorted.get(*b)));
        let mut cells = CellBuffer::new();
        order.into_iter().for_each(|at| cells.push(unsorted.get(at)));
        cells
    }
}

/// Which puts are masked.
fn masked(cells: &CellBuffer, tracker: &mut VersionBehavior) -> Vec<bool> {
    let mut masked = Vec::new();
    for cell in cells.iter_from(0) {
        if cell.is_delete() {
            tracker.add(cell);
        } else {
            masked.push(tracker.is_deleted(cell));
        }
    }
    masked
}

#[test]
fn random_rows_are_read_as_the_plain_way_reads_them() {
    for seed in 0..3000 {
        let rng = Rng::seeded(seed);
        let (ids, times) = (2 + rng.below(30), 1 + rng.below(12));
        let with_strays = rng.below(2) == 0;
        let row = (0..1 + rng.below(60))
            .map(|_| {
                let (id, time) = (1 + rng.below(ids), rng.below(times) as i64);
                let qualifier = ["", "a", "b"][rng.below(3) as usize].to_owned();
                match rng.below(10) {
                    0 => (String::new(), time, CellType::DeleteFamily, id),
                    1 if with_strays => (String::new(), time, CellType::DeleteFamilyVersion, id),
                    2 => (qualifier, time, CellType::DeleteColumn, id),
                    3 | 4 => (qualifier, time, CellType::Delete, id),
                    _ => (qualifier, time, CellType::Put, id),
                }
            })
            .collect();
        let cells = Row(row).cells();
        let max_versions = 1 + rng.below(4) as u32;
        let mut plain = Plain::new(max_versions);
        let mut expected = Vec::new();
        for cell in cells.iter_from(0) {
            if cell.is_delete() {
                plain.add(cell);
            } else {
                expected.push(plain.is_deleted(cell));
            }
        }
        let got = masked(&cells, &mut VersionBehavior::new(max_versions, max_versions));
        let shown = || {
            let show = |cell: cell::CellRef<'_>| {
                format!("{:?}/{}/{}@{}", cell.qualifier(), cell.timestamp(), cell.type_code(), cell.seq_id())
            };
            cells.iter_from(0).map(show).collect::<Vec<_>>()
        };
        assert_eq!(got, expected, "seed {seed}, {max_versions} versions: {:?}", shown());
    }
}

/// Rows of 20,000 markers: what a put costs does not grow with them.
#[test]
fn rows_with_many_markers_cost_little_for_each_put() {
    const MARKERS: u64 = 20_000;
    let put = |qualifier: &str, time: u64, id: u64| (qualifier.to_owned(), time as i64, CellType::Put, id);
    let of_family = |time: u64, id: u64| (String::new(), time as i64, CellType::DeleteFamilyVersion, id);
    let version = |time: u64, id: u64| ("q".to_owned(), time as i64, CellType::Delete, id);
    let far = 10 * MARKERS;
    let shapes: [(&str, Vec<_>); 4] = [
        ("versions of the family, beside many columns", {
            let markers = (0..MARKERS).map(|i| of_family(i, 2 * i + 2));
            markers.chain((0..MARKERS).map(|i| put(&format!("q{i:05}"), far, 2 * i + 1))).collect()
        }),
        ("versions of the family, beside many versions", {
            let markers = (0..MARKERS).map(|i| of_family(i, 2 * i + 2));
            markers.chain((0..MARKERS).map(|i| put("q", far + i, (7919 * i) % (2 * MARKERS) + 1))).collect()
        }),
        ("versions of a column, among its puts", {
            let markers = (0..MARKERS).map(|i| version(2 * i, (7919 * i) % (2 * MARKERS) + 1));
            markers.chain((0..MARKERS).map(|i| put("q", 2 * i + 1, (104_729 * i) % (2 * MARKERS) + 1))).collect()
        }),
        ("whole families", {
            let markers = (0..MARKERS).map(|i| (String::new(), i as i64, CellType::DeleteFamily, 2 * i + 2));
            markers.chain((0..MARKERS).map(|i| put("q", far + i, 2 * i + 1))).collect()
        }),
    ];
    for (what, row) in shapes {
        for max_versions in [1, 3, u32::MAX] {
            let cells = Row(row.clone()).cells();
            let mut tracker = VersionBehavior::new(max_versions, max_versions);
            masked(&cells, &mut tracker);
            let steps = tracker.column.counts.steps.get();
            let most = 1000 * cells.len() as u64;
            assert!(steps <= most, "{what}, {max_versions} versions: {steps} steps for {} cells", cells.len());
        }
    }
}
