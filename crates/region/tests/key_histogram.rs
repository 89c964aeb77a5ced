//! How a region says that its rows are spread over its keys.

use crate::common::*;
use basalt_region::{CloseMode, KeyPart, Region, split};
use bytes::Bytes;
use model::RegionInfo;

const NOW: i64 = 1_700_000_000_000;
const ROWS: usize = 4000;

/// Rows of three cells, in parts of the log that are not too large.
fn fill(region: &Region, rows: std::ops::Range<usize>) {
    let value = "v".repeat(100);
    for some in rows.collect::<Vec<_>>().chunks(500) {
        let row = |number: &usize| {
            let row = format!("row{number:06}");
            ["a", "b", "c"].map(|qualifier| put(&row, "f", qualifier, 5, &value))
        };
        write(region, &some.iter().flat_map(row).collect::<Vec<_>>());
    }
}

fn sums(parts: &[KeyPart]) -> (u64, u64) {
    (parts.iter().map(|part| part.bytes).sum(), parts.iter().map(|part| part.rows).sum())
}

/// Rows of the parts that begin before `row`, the last of them in part.
fn rows_below(parts: &[KeyPart], row: &str) -> u64 {
    parts.iter().take_while(|part| part.start_row < row.as_bytes()).map(|part| part.rows).sum()
}

fn is_about(found: u64, expected: usize, percent: usize) -> bool {
    (expected * (100 - percent) / 100..=expected * (100 + percent) / 100).contains(&(found as usize))
}

#[test]
fn rows_are_counted_in_memory_and_in_files() {
    let server = Server::new(NOW);
    let region = server.table([family("f").with("BLOCKSIZE", "4096")]);
    let empty = region.key_histogram(16);
    assert_eq!((empty.parts.len(), empty.last_row), (0, Bytes::new()));
    fill(&region, 0..ROWS);
    let in_memory = region.key_histogram(16);
    flush(&region);
    let in_files = region.key_histogram(16);
    for histogram in [&in_memory, &in_files] {
        assert_eq!(histogram.last_row[..], *format!("row{:06}", ROWS - 1).as_bytes());
        let parts = &histogram.parts;
        assert!(parts[0].start_row.starts_with(b"row0000"), "{parts:?}");
        assert!((12..=16).contains(&parts.len()), "{}", parts.len());
        assert!(parts.is_sorted_by(|a, b| a.start_row < b.start_row));
        let (bytes, rows) = sums(parts);
        assert!(is_about(rows, ROWS, 2), "{rows} rows");
        assert!(is_about(bytes, ROWS * 3 * 140, 20), "{bytes} bytes");
    }
    assert!(is_about(rows_below(&in_files.parts, "row002000"), ROWS / 2, 15), "{in_files:?}");
    assert!(is_about(rows_below(&in_memory.parts, "row002000"), ROWS / 2, 35), "{in_memory:?}");
    // Later rows in memory, beside the file.
    fill(&region, ROWS..2 * ROWS);
    let both = region.key_histogram(16);
    assert!(is_about(sums(&both.parts).1, 2 * ROWS, 2), "{both:?}");
    assert!(is_about(rows_below(&both.parts, "row004000"), ROWS, 25), "{both:?}");
    assert_eq!(region.key_histogram(1).parts.len(), 1);
}

#[test]
fn files_without_a_bloom_filter_of_rows_have_rows_like_others() {
    let server = Server::new(NOW);
    let region = server.table([family("f").with("BLOOMFILTER", "ROWCOL").with("BLOCKSIZE", "4096")]);
    fill(&region, 0..ROWS);
    flush(&region);
    fill(&region, ROWS..ROWS + 100);
    let (_, rows) = sums(&region.key_histogram(8).parts);
    assert!(is_about(rows, ROWS + 100, 5), "{rows} rows");
}

#[test]
fn families_of_a_row_do_not_make_it_two_and_halves_are_halves() {
    let server = Server::new(NOW);
    let region = server.table(["f", "g"].map(|name| family(name).with("BLOCKSIZE", "4096")));
    fill(&region, 0..ROWS);
    let of_other: Vec<_> = (0..ROWS / 2).map(|n| put(&format!("row{n:06}"), "g", "x", 5, "more")).collect();
    of_other.chunks(500).for_each(|some| write(&region, some));
    flush(&region);
    let (bytes, rows) = sums(&region.key_histogram(8).parts);
    assert!(is_about(rows, ROWS, 2), "{rows} rows");

    region.close(CloseMode::Flush).expect("closed");
    let (parent, table) = (region.info().clone(), region.table().clone());
    let half = |start: &'static str, end: &'static str, after_ms| {
        RegionInfo::new(table_name(), Bytes::from(start), Bytes::from(end), parent.region_id + after_ms)
    };
    let (low, high) = (half("", "row001000", 1), half("row001000", "", 2));
    split::write_daughters(&server.env, &parent, &table, [&low, &high]).expect("split");
    let of = |info: &RegionInfo| {
        let region = server.open(info, &table).expect("opened");
        let parts = region.key_histogram(8).parts;
        region.close(CloseMode::Flush).expect("closed");
        assert!(parts.iter().all(|part| info.contains(&part.start_row)), "{parts:?}");
        sums(&parts)
    };
    let ((low_bytes, low_rows), (high_bytes, high_rows)) = (of(&low), of(&high));
    assert!(is_about(low_rows, ROWS / 4, 15) && is_about(high_rows, ROWS * 3 / 4, 15), "{low_rows} and {high_rows}");
    assert!(is_about(low_bytes + high_bytes, bytes as usize, 15), "{low_bytes} and {high_bytes} of {bytes}");
}
