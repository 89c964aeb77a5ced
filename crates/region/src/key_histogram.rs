//! How a region's bytes and rows are spread over its keys: for planners of queries. Nothing is read for it, so it is as coarse as what is in
//! memory: the roots of the files' indexes, and a sample of the memstores.

use crate::core::RegionCore;
use crate::store::Store;
use crate::store_file::StoreFile;
use bytes::Bytes;
use hfile::BloomType;
use memstore::Segment;

/// Keys of a memstore's segment that are looked at, about.
const SAMPLED_ROWS: usize = 64;
/// Cells of a segment that are looked at to see how many a row has.
const SAMPLED_CELLS: usize = 1000;

/// How a region's bytes and rows are spread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHistogram {
    /// Parts in order; none where the region has no cells. The first begins with the first row.
    pub parts: Vec<KeyPart>,
    /// The last row; empty without cells.
    pub last_row: Bytes,
}

/// A part of a region's key range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Where it begins; it ends where the next one does, the last with the last row.
    pub start_row: Bytes,
    /// Bytes of its cells before compression, about.
    pub bytes: u64,
    /// Its rows, about.
    pub rows: u64,
}

/// Between this row and the next one.
struct Span {
    row: Bytes,
    bytes: f64,
    rows: f64,
}

/// What a file or a segment has, and how it is spread.
struct Source {
    bytes: f64,
    cells: f64,
    /// Where that is known.
    rows: Option<f64>,
    /// Rows with their share of all that.
    shares: Vec<(Bytes, f64)>,
    last_row: Bytes,
}

impl Source {
    fn of_file(core: &RegionCore, file: &StoreFile) -> Source {
        let reader = &file.reader;
        let total = reader.key_weights().map(|(_, weight)| weight).sum::<u64>().max(1) as f64;
        let (start, end) = (&core.info.start_key, &core.info.end_key);
        let mut shares: Vec<(Bytes, f64)> = Vec::new();
        for (key, weight) in reader.key_weights() {
            let (row, share) = (key.row(), weight as f64 / total);
            if !end.is_empty() && row >= &end[..] {
                break;
            }
            if row > &start[..] {
                shares.push((Bytes::copy_from_slice(row), share));
            } else {
                // Of what begins before the region, as of a half of its parent's file, the last part may reach into it.
                shares = vec![(start.clone(), share)];
            }
        }
        let rows = (reader.bloom_type() == BloomType::Row).then(|| reader.bloom_key_count() as f64);
        let last_row = reader.last_key().map(|key| Bytes::copy_from_slice(key.row())).unwrap_or_default();
        let (bytes, cells) = (reader.uncompressed_bytes() as f64, reader.entry_count() as f64);
        Source { bytes, cells, rows, shares, last_row }
    }

    fn of_segment(segment: &Segment) -> Source {
        let rows = segment.sample_rows(SAMPLED_ROWS);
        let share = 1.0 / rows.len().max(1) as f64;
        let cells = segment.len() as f64;
        let mut last = segment.iter();
        last.seek_to_last();
        let last_row = last.current().map(|cell| Bytes::copy_from_slice(cell.row())).unwrap_or_default();
        Source {
            last_row,
            bytes: segment.data_bytes() as f64,
            cells,
            rows: Some(cells / cells_of_a_row(segment)),
            shares: rows.into_iter().map(|row| (Bytes::from(row), share)).collect(),
        }
    }
}

/// How many cells the first rows have, in the middle.
fn cells_of_a_row(segment: &Segment) -> f64 {
    let mut cells = segment.iter();
    let (mut count, mut rows, mut row) = (0, 0, Vec::new());
    let mut is_at_one = cells.seek_to_first();
    while let Some(cell) = cells.current().filter(|_| is_at_one && count < SAMPLED_CELLS) {
        if rows == 0 || cell.row() != &row[..] {
            rows += 1;
            row.clear();
            row.extend_from_slice(cell.row());
        }
        count += 1;
        is_at_one = cells.next();
    }
    f64::from(count.max(1) as u32) / f64::from(rows.max(1))
}

/// How a store's bytes and rows are spread, and its last row.
fn of_store(core: &RegionCore, store: &Store) -> (Vec<Span>, Bytes) {
    let view = store.view();
    let files = view.files.iter().map(|file| Source::of_file(core, file));
    let segments = view.memory.segments().filter(|segment| !segment.is_empty());
    let sources: Vec<Source> = files.chain(segments.map(|segment| Source::of_segment(segment))).collect();
    // Where a file does not say how many rows it has, they have as many cells as the others'.
    let known = sources.iter().filter_map(|source| Some((source.cells, source.rows.filter(|rows| *rows > 0.0)?)));
    let (cells, rows) = known.fold((0.0, 0.0), |(c, r), (cells, rows)| (c + cells, r + rows));
    let cells_of_a_row = if rows > 0.0 { cells / rows } else { 1.0 };
    let (mut spans, mut last_row) = (Vec::new(), Bytes::new());
    for source in sources {
        last_row = last_row.max(source.last_row);
        let rows = source.rows.unwrap_or(source.cells / cells_of_a_row);
        let span = |(row, share)| Span { row, bytes: source.bytes * share, rows: rows * share };
        spans.extend(source.shares.into_iter().map(span));
    }
    (spans, last_row)
}

/// The region's key range in parts.
pub(crate) fn of_region(core: &RegionCore, most: usize) -> KeyHistogram {
    let (mut stores, last_rows): (Vec<Vec<Span>>, Vec<Bytes>) =
        core.stores.iter().map(|store| of_store(core, store)).unzip();
    // A row has cells in several families: it is counted where there are most.
    let rows = |spans: &Vec<Span>| spans.iter().map(|span| span.rows).sum::<f64>();
    let counted = (0..stores.len()).max_by(|a, b| rows(&stores[*a]).total_cmp(&rows(&stores[*b])));
    for (at, spans) in stores.iter_mut().enumerate() {
        spans.iter_mut().filter(|_| counted != Some(at)).for_each(|span| span.rows = 0.0);
    }
    let mut spans: Vec<Span> = stores.into_iter().flatten().collect();
    spans.sort_by(|a, b| a.row.cmp(&b.row));
    KeyHistogram { parts: parts_of(&spans, most), last_row: last_rows.into_iter().max().unwrap_or_default() }
}

/// Spans put together until each part has its share of the bytes.
fn parts_of(spans: &[Span], most: usize) -> Vec<KeyPart> {
    let Some(first) = spans.first() else { return Vec::new() };
    let total: f64 = spans.iter().map(|span| span.bytes).sum();
    let share = total / most.max(1) as f64;
    let mut parts: Vec<KeyPart> = Vec::new();
    let (mut open, mut bytes, mut rows) = (first.row.clone(), 0.0, 0.0);
    let mut before = 0.0;
    for span in spans {
        // As far as all parts that there are should reach.
        let is_full = before >= share * (parts.len() + 1) as f64;
        if is_full && bytes > 0.0 && span.row > open && parts.len() + 1 < most {
            let start_row = std::mem::replace(&mut open, span.row.clone());
            parts.push(KeyPart { start_row, bytes: bytes as u64, rows: rows as u64 });
            (bytes, rows) = (0.0, 0.0);
        }
        bytes += span.bytes;
        rows += span.rows;
        before += span.bytes;
    }
    parts.push(KeyPart { start_row: open, bytes: bytes as u64, rows: rows as u64 });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(row: u8, bytes: f64) -> Span {
        Span { row: Bytes::from(vec![row]), bytes, rows: bytes / 10.0 }
    }

    #[test]
    fn parts_have_about_as_many_bytes_each() {
        let spans: Vec<Span> = (0..100).map(|row| span(row, 100.0)).collect();
        let parts = parts_of(&spans, 10);
        let starts: Vec<&[u8]> = parts.iter().map(|part| &part.start_row[..]).collect();
        assert_eq!(starts, [&[0][..], &[10], &[20], &[30], &[40], &[50], &[60], &[70], &[80], &[90]]);
        assert!(parts.iter().all(|part| (part.bytes, part.rows) == (1000, 100)), "{parts:?}");
    }

    #[test]
    fn a_span_that_is_larger_than_a_part_is_one() {
        let spans = [span(1, 10.0), span(2, 5000.0), span(3, 10.0), span(3, 10.0), span(4, 10.0)];
        let parts = parts_of(&spans, 4);
        let shown: Vec<(&[u8], u64)> = parts.iter().map(|part| (&part.start_row[..], part.bytes)).collect();
        assert_eq!(shown, [(&[1][..], 5010), (&[3], 20), (&[4], 10)]);
        assert!(parts_of(&[], 4).is_empty());
        assert_eq!(parts_of(&spans, 0).len(), 1);
    }
}
