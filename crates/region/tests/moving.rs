//! Scans of a table that never rests: writers, flushes, compactions, splits and merges go on while scanners read it in
//! small steps, forwards and in reverse, in batches and in pieces. What was there all the time must come exactly once,
//! in order, whole.

use crate::common::*;
use basalt_region::{
    CloseMode, CompactionKind, ErrorKind, FlushRequest, Limits, Region, RegionError, Unthrottled, split,
};
use base::{Config, Rng};
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use fs::MemVolume;
use model::{RegionInfo, Scan, TableDescriptor};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Rows that are always there: `r000` to `r149`.
const STABLE: u64 = 150;
const COLUMNS: [(&str, &str); 4] = [("f", "a"), ("f", "b"), ("g", "a"), ("g", "c")];

fn stable(row: u64) -> String {
    format!("r{row:03}")
}

/// The regions of the table, in order of their keys.
struct Table {
    server: Server,
    descriptor: Arc<TableDescriptor>,
    regions: RwLock<Vec<Arc<Region>>>,
    next_id: AtomicU64,
    moves: AtomicU64,
}

impl Table {
    fn new() -> Table {
        let mut config = Config::default();
        config.set("hbase.hstore.compaction.min", "2");
        let server = Server::try_on(MemVolume::new(), 1_700_000_000_000, &config, 5).expect("a volume in memory");
        let families = [family("f").with("BLOCKSIZE", "400"), family("g").with("BLOOMFILTER", "ROWCOL")];
        let descriptor = Arc::new(TableDescriptor::new(table_name(), families));
        let region = server.open(&whole_table(), &descriptor).expect("a new region opens");
        let next_id = AtomicU64::new(1_700_000_000_001);
        Table { server, descriptor, regions: RwLock::new(vec![region]), next_id, moves: AtomicU64::new(0) }
    }

    /// The region that a row is in, or, with `before`, the one that holds the rows just before it.
    fn region_of(&self, row: &[u8], before: bool) -> Arc<Region> {
        let regions = self.regions.read().expect("no panic");
        let has = |region: &&Arc<Region>| {
            let info = region.info();
            let (start, end) = (&info.start_key[..], &info.end_key[..]);
            match before {
                true => {
                    (start.is_empty() || row.is_empty() || start < row)
                        && (end.is_empty() || (!row.is_empty() && row <= end))
                }
                false => info.contains(row),
            }
        };
        regions.iter().find(has).expect("every row has a region").clone()
    }

    /// Writes as a client does: where the region has moved, again.
    fn put(&self, mutation: &model::Mutation) {
        loop {
            let region = self.region_of(&mutation.row, false);
            match region.apply(std::slice::from_ref(mutation)) {
                Ok(applied) => match applied.results.into_iter().next() {
                    Some(Ok(_)) if applied.commit.seq_id().is_some() => {
                        applied.commit.wait().expect("durable");
                        return;
                    }
                    Some(Err(error)) if is_gone(&error) => {}
                    None => {
                        self.server.clock.advance_ms(applied.wait_ms.expect("only that leaves it without a result"))
                    }
                    other => panic!("{other:?}"),
                },
                Err(error) if is_gone(&error) => {}
                Err(error) => panic!("{error}"),
            }
            std::thread::yield_now();
        }
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::SeqCst)
    }

    /// Rewrites what refers to other regions' files; false when somebody still reads those.
    fn is_whole(region: &Arc<Region>) -> bool {
        for name in ["f", "g"] {
            if let Ok(Some(job)) = region.select_compaction(Some(name.as_bytes()), CompactionKind::Major) {
                region.compact(job, &Unthrottled).expect("compacted");
            }
        }
        region.archive_compacted_files().expect("archived");
        !region.splitter().has_references()
    }

    fn split(&self, row: &str) {
        let parent = self.region_of(row.as_bytes(), false);
        let (start, end) = (parent.info().start_key.clone(), parent.info().end_key.clone());
        if start == row.as_bytes() || !Table::is_whole(&parent) {
            return;
        }
        parent.close(CloseMode::Flush).expect("closed");
        let (id, row) = (self.id(), Bytes::copy_from_slice(row.as_bytes()));
        let bottom = RegionInfo::new(table_name(), start, row.clone(), id);
        let top = RegionInfo::new(table_name(), row, end, id);
        split::write_daughters(&self.server.env, parent.info(), &self.descriptor, [&bottom, &top]).expect("split");
        self.replace(&[parent], &[bottom, top]);
    }

    fn merge(&self, at: usize) {
        let parents: Vec<Arc<Region>> = self.regions.read().expect("no panic")[at..at + 2].to_vec();
        if !parents.iter().all(Table::is_whole) {
            return;
        }
        parents.iter().for_each(|parent| parent.close(CloseMode::Flush).expect("closed"));
        let (left, right) = (parents[0].info(), parents[1].info());
        let merged = RegionInfo::new(table_name(), left.start_key.clone(), right.end_key.clone(), self.id());
        split::write_merged(&self.server.env, &[left, right], &self.descriptor, &merged).expect("merged");
        self.replace(&parents, &[merged]);
    }

    fn replace(&self, old: &[Arc<Region>], new: &[RegionInfo]) {
        let opened: Vec<_> = new.iter().map(|info| self.server.open(info, &self.descriptor).expect("opened")).collect();
        let mut regions = self.regions.write().expect("no panic");
        regions.retain(|region| !old.iter().any(|gone| Arc::ptr_eq(gone, region)));
        regions.extend(opened);
        regions.sort_by(|a, b| a.info().start_key.cmp(&b.info().start_key));
        self.moves.fetch_add(1, Ordering::SeqCst);
    }
}

fn is_gone(error: &RegionError) -> bool {
    matches!(error.kind(), ErrorKind::NotServingRegion | ErrorKind::WrongRegion)
}

/// The stable rows of one pass over the table, each with its cells, as they came.
fn pass(table: &Table, rng: &Rng, reversed: bool) -> Vec<(String, Vec<String>)> {
    let batch_cells = [0, 1, 3][rng.below(3) as usize];
    let size_bytes = [1, 300, u64::MAX][rng.below(3) as usize];
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    // Where the scan goes on, and whether that row itself was read.
    let (mut at, mut inclusive) = (Bytes::new(), true);
    loop {
        let region = table.region_of(&at, reversed && (!inclusive || at.is_empty()));
        let scan = Scan { start_row: at.clone(), include_start_row: inclusive, reversed, ..Scan::default() };
        let mut scanner = match region.scanner(&scan) {
            Ok(scanner) => scanner,
            Err(error) if is_gone(&error) => continue,
            Err(error) => panic!("{error}"),
        };
        let mut in_pieces: Option<String> = None;
        let ended = loop {
            let mut out = CellBuffer::new();
            let mut limits = Limits { batch_cells, size_bytes, partial_rows: true, ..Limits::NONE };
            let progress = match scanner.next(&mut limits, &mut out) {
                Ok(progress) => progress,
                Err(error) if is_gone(&error) => break false,
                Err(error) => panic!("{error}"),
            };
            if !out.is_empty() {
                let row = String::from_utf8_lossy(out.get(0).row()).into_owned();
                match rows.last_mut() {
                    Some((same, cells)) if *same == row && in_pieces.is_some() => cells.extend(show_all(&out, 0)),
                    _ => {
                        // That another row comes says that the one before is whole.
                        if let Some(whole) = in_pieces.take() {
                            (at, inclusive) = (Bytes::from(whole), false);
                        }
                        rows.push((row.clone(), show_all(&out, 0)));
                    }
                }
                in_pieces = progress.partial.then(|| row.clone());
                if in_pieces.is_none() {
                    (at, inclusive) = (Bytes::from(row), false);
                }
            }
            if !progress.more {
                break true;
            }
            if rng.one_in(8) {
                std::thread::yield_now();
            }
        };
        if !ended {
            // A row in pieces is read again from its beginning, elsewhere.
            if in_pieces.is_some() {
                rows.pop();
            }
            continue;
        }
        let info = region.info();
        let edge = if reversed { info.start_key.clone() } else { info.end_key.clone() };
        if edge.is_empty() {
            rows.retain(|(row, _)| row.len() == 4);
            return rows;
        }
        (at, inclusive) = (edge, !reversed);
    }
}

fn whole_row(row: &str) -> model::Mutation {
    let cells: Vec<Cell<'_>> = COLUMNS.iter().map(|(f, q)| (*f, *q, 7, CellType::Put, row)).collect();
    mutation(model::MutationKind::Put, row, &cells)
}

#[test]
fn a_scan_of_a_moving_table_misses_and_repeats_nothing() {
    let (seed, passes) = programs(15);
    let table = Table::new();
    for row in 0..STABLE {
        table.put(&whole_row(&stable(row)));
    }
    let expected: Vec<(String, Vec<String>)> = (0..STABLE)
        .map(|row| {
            let name = stable(row);
            let cells = COLUMNS.iter().map(|(f, q)| format!("{name}/{f}:{q}/7/Put={name}")).collect();
            (name, cells)
        })
        .collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Rows between the stable ones come and go; stable ones are written again as they are.
        for writer in 0..2u64 {
            let (table, done) = (&table, &done);
            scope.spawn(move || {
                let rng = Rng::seeded(seed * 10 + writer);
                while !done.load(Ordering::SeqCst) {
                    let name = stable(rng.below(STABLE));
                    match rng.below(3) {
                        0 => table.put(&whole_row(&name)),
                        1 => table.put(&put(&format!("{name}-{}", rng.below(5)), "f", "a", LATEST, "passing")),
                        _ => {
                            let passing = format!("{name}-{}", rng.below(5));
                            table.put(&mutation(model::MutationKind::Delete, &passing, &[]));
                        }
                    }
                }
            });
        }
        for keeper in 0..2u64 {
            let (table, done) = (&table, &done);
            scope.spawn(move || {
                let rng = Rng::seeded(seed * 100 + keeper);
                while !done.load(Ordering::SeqCst) {
                    let region = table.region_of(stable(rng.below(STABLE)).as_bytes(), false);
                    // Where the region closes meanwhile there is nothing left to do.
                    if keeper == 0 {
                        let _ = region.flush(&FlushRequest { all: true, ..FlushRequest::default() });
                    } else if let Ok(Some(job)) = region.select_compaction(None, CompactionKind::Minor) {
                        let _ = region.compact(job, &Unthrottled);
                    }
                    let _ = region.archive_compacted_files();
                    std::thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            let rng = Rng::seeded(seed * 1000);
            while !done.load(Ordering::SeqCst) {
                let count = table.regions.read().expect("no panic").len();
                if count > 1 && (count > 4 || rng.one_in(2)) {
                    table.merge(rng.below(count as u64 - 1) as usize);
                } else {
                    table.split(&stable(rng.below(STABLE)));
                }
                std::thread::yield_now();
            }
        });
        let scanners: Vec<_> = (0..4u64)
            .map(|i| {
                let (table, expected) = (&table, &expected);
                scope.spawn(move || {
                    let rng = Rng::seeded(seed * 10_000 + i);
                    let reversed = i % 2 == 1;
                    // As many passes as asked for, and on until the table has moved often enough under them.
                    let mut done = 0;
                    while done < passes || table.moves.load(Ordering::SeqCst) < 6 {
                        let mut rows = pass(table, &rng, reversed);
                        if reversed {
                            rows.reverse();
                        }
                        assert_eq!(rows.len() as u64, STABLE, "reversed: {reversed}");
                        for (seen, expected) in rows.iter().zip(expected) {
                            assert_eq!(seen, expected, "reversed: {reversed}");
                        }
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        let outcomes: Vec<_> = scanners.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        for outcome in outcomes {
            println!("{} passes, {} moves", outcome.expect("no panic"), table.moves.load(Ordering::SeqCst));
        }
    });
}

/// The client lost its scanner and opens another one with the read point of the first.
#[test]
fn a_scan_resumed_at_its_old_read_point_misses_no_row_written_again_since() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &[put("r", "f", "q", 5, "v")]);
    let resumed = |region: &Arc<Region>, point| scan(region, &Scan { read_point: Some(point), ..Scan::default() }, 0);
    let point = region.read_point();
    write(&region, &[put("r", "f", "q", 5, "v"), put("s", "f", "q", 5, "later")]);
    assert_eq!(resumed(&region, point), [["r/f:q/5/Put=v"]], "still there to be seen");
    flush(&region);
    let all = [["r/f:q/5/Put=v"], ["s/f:q/5/Put=later"]];
    assert_eq!(resumed(&region, point), all, "after a flush");
    let point = region.read_point();
    write(&region, &[put("r", "f", "q", 5, "v")]);
    region.close(CloseMode::Flush).expect("closed");
    let region = server.open(region.info(), region.table()).expect("opened");
    assert_eq!(resumed(&region, point), all, "after another opening");
    let point = region.read_point();
    write(&region, &[put("r", "f", "q", 5, "v")]);
    flush(&region);
    major_compact(&region);
    assert_eq!(resumed(&region, point), all, "after a compaction");
}
