//! NEW_VERSION_BEHAVIOR: what random programs found to differ from the oracle, each as small as it became.

use crate::common::*;
use bytes::Bytes;
use cell::CellType;
use model::{Get, Scan, TimeRange};

/// Versions by arrival, one of them.
fn one_version() -> model::FamilyDescriptor {
    family("f").with("NEW_VERSION_BEHAVIOR", "true").with("VERSIONS", "1")
}

#[test]
fn a_family_marker_does_not_make_the_empty_column_forget_its_own_markers() {
    let server = Server::new(1_000_000);
    let region = server.table([one_version()]);
    write(&region, &[put("r", "f", "", 3, "gone")]);
    write(&region, &[delete("r", "f", "", 9, CellType::DeleteColumn)]);
    // It masks nothing, but stands between the column's marker and the put.
    write(&region, &[delete("r", "f", "", 5, CellType::DeleteFamilyVersion)]);
    assert_eq!(get(&region, &Get::new("r"), 0), [""; 0]);
}

#[test]
fn a_family_marker_does_not_begin_the_empty_columns_count_anew() {
    let server = Server::new(1_000_000);
    let region = server.table([one_version()]);
    write(&region, &[delete("r", "f", "", 5, CellType::DeleteFamilyVersion)]);
    write(&region, &[put("r", "f", "", 3, "pushed out")]);
    write(&region, &[put("r", "f", "", 9, "newest")]);
    let all = Scan { max_versions: u32::MAX, ..Scan::default() };
    assert_eq!(scan(&region, &all, 0), [["r/f:/9/Put=newest"]]);
}

#[test]
fn a_flush_does_not_change_what_a_time_range_shows() {
    let server = Server::new(1_000_000);
    let region = server.table([one_version()]);
    write(&region, &[put("r", "f", "q", 3, "pushed out")]);
    flush(&region);
    write(&region, &[put("r", "f", "q", 9, "newest")]);
    let early = || Get { time_range: TimeRange { min: 0, max: 5 }, ..Get::new(Bytes::from("r")) };
    assert_eq!(get(&region, &early(), 0), [""; 0], "the newest version is in memory");
    flush(&region);
    assert_eq!(get(&region, &early(), 0), [""; 0], "each version is in a file of its own");
    major_compact(&region);
    assert_eq!(get(&region, &early(), 0), [""; 0], "both are in one file");
}
