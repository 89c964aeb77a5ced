//! Read replicas: regions that show the files which another has open.

use crate::common::*;
use basalt_region::{BulkLoad, CloseMode, CompactionKind, FlushRequest, OpenRegion, Region, RegionError};
use bytes::Bytes;
use fs::{FilePath, Volume};
use model::{Get, Scan, TableDescriptor};
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn replica_of(server: &Server, primary: &Region, id: u32) -> Result<Arc<Region>, RegionError> {
    let (info, table) = (primary.info().replica(id), primary.table().clone());
    Region::open_replica(OpenRegion { info, table, env: server.env.clone() }, primary)
}

fn rows(region: &Arc<Region>) -> Vec<String> {
    scan(region, &Scan::default(), 0).concat()
}

#[test]
fn it_shows_what_its_primary_had_in_files_and_no_more_until_it_looks_again() {
    let server = Server::new(NOW);
    let primary = server.table([family("f"), family("g")]);
    write(&primary, &[put("a", "f", "q", 1, "v1"), put("b", "g", "q", 1, "v1")]);
    flush(&primary);
    write(&primary, &[put("a", "f", "q", 2, "v2")]);
    let replica = replica_of(&server, &primary, 1).expect("opened");
    assert_eq!(rows(&replica), ["a/f:q/1/Put=v1", "b/g:q/1/Put=v1"]);
    assert_eq!(get(&replica, &Get::new("a"), 0), ["a/f:q/1/Put=v1"], "and a Get the same");
    assert!(!replica.refresh(&primary), "there is no other file");
    flush(&primary);
    assert_eq!(get(&replica, &Get::new("a"), 0), ["a/f:q/1/Put=v1"], "nobody has told it");
    assert!(replica.refresh(&primary) && !primary.refresh(&replica));
    assert_eq!(get(&replica, &Get::new("a"), 0), ["a/f:q/2/Put=v2"]);
    assert_eq!(rows(&replica), rows(&primary));
}

#[test]
fn files_that_a_replica_shows_are_not_archived_and_its_open_scanners_keep_theirs() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    for value in ["v1", "v2"] {
        write(&primary, &[put("a", "f", "q", 1, value), put("b", "f", "q", 1, value)]);
        flush(&primary);
    }
    let replica = replica_of(&server, &primary, 1).expect("opened");
    let mut scanner = replica.scanner(&Scan::default()).expect("opened");
    let files = primary.store_file_paths(b"f").expect("the family");
    major_compact(&primary);
    server.env.log.sync_once().expect("synced");
    assert_eq!(primary.archive_compacted_files().expect("asked"), 0, "the replica shows them");
    assert_eq!(rows(&replica), rows(&primary));
    assert!(replica.refresh(&primary));
    assert_eq!(primary.archive_compacted_files().expect("asked"), 0, "the replica's scanner reads them");
    let mut out = cell::CellBuffer::new();
    while scanner.next(&mut basalt_region::Limits::NONE.clone(), &mut out).expect("read").more {}
    assert_eq!(show_all(&out, 0), ["a/f:q/1/Put=v2", "b/f:q/1/Put=v2"]);
    drop(scanner);
    assert_eq!(primary.archive_compacted_files().expect("asked"), 2);
    let is_there = |path: &String| server.volume.exists(&FilePath::new(path)).expect("memory");
    assert!(!files.iter().any(is_there), "{files:?}");
    assert_eq!(rows(&replica), rows(&primary));
}

#[test]
fn it_takes_no_writes_and_leaves_no_trace() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    for row in ["a", "b", "c", "d"] {
        write(&primary, &[put(row, "f", "q", 1, "v")]);
        flush(&primary);
    }
    let before = server.volume.all_files();
    let replica = replica_of(&server, &primary, 2).expect("opened");
    let refused = |error: RegionError| assert_eq!(error.to_string(), "region is read only");
    refused(replica.apply(&[put("a", "f", "q", 2, "w")]).map(drop).expect_err("a write"));
    refused(replica.mutate_rows(&[put("a", "f", "q", 2, "w")], None).map(drop).expect_err("a write"));
    let load = BulkLoad {
        files: Vec::new(),
        assign_seq_id: true,
        staging: FilePath::new("staging/x"),
        copy: false,
        cluster_ids: Vec::new(),
        replicate: false,
    };
    refused(replica.bulk_load(&load).map(drop).expect_err("a load"));
    assert!(!replica.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("asked").flushed);
    assert!(primary.needs_compaction() && !replica.needs_compaction());
    replica.request_major_compaction(None).expect("asked");
    assert!(replica.select_compaction(None, CompactionKind::Major).expect("asked").is_none());
    assert!(!replica.splitter().can_split() && primary.splitter().can_split());
    assert_eq!((replica.memstore_bytes(), replica.archive_compacted_files().expect("asked")), (0, 0));
    replica.close(CloseMode::Flush).expect("closed");
    assert!(matches!(replica.scanner(&Scan::default()), Err(RegionError::NotServing { .. })));
    assert_eq!(server.volume.all_files(), before, "nothing was written, moved or removed");
    assert_eq!(rows(&primary).len(), 4);
}

#[test]
fn it_is_opened_beside_its_own_primary_and_no_other() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f")]));
    let env = || server.env.clone();
    let other = model::RegionInfo::with_replica(table_name(), Bytes::new(), Bytes::new(), 7, 1);
    for info in [other, primary.info().clone()] {
        let open = OpenRegion { info, table: table.clone(), env: env() };
        let error = Region::open_replica(open, &primary).map(drop).expect_err("refused").to_string();
        assert!(error.contains("is no read replica of"), "{error}");
    }
    primary.close(CloseMode::Flush).expect("closed");
    assert!(matches!(replica_of(&server, &primary, 1), Err(RegionError::NotServing { .. })));
}

/// A reader of an older moment must not see files in which a compaction has dropped what that moment shows.
#[test]
fn a_scan_that_is_resumed_at_an_older_moment_goes_on_with_what_there_is() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    write(&primary, &[put("a", "f", "q", 1, "v1")]);
    flush(&primary);
    let replica = replica_of(&server, &primary, 1).expect("opened");
    let then = replica.read_point();
    write(&primary, &[put("a", "f", "q", 2, "v2")]);
    flush(&primary);
    major_compact(&primary);
    assert!(replica.refresh(&primary));
    let resumed = Scan { read_point: Some(then), ..Scan::default() };
    assert_eq!(scan(&replica, &resumed, 0).concat(), ["a/f:q/2/Put=v2"], "not: nothing");
}
