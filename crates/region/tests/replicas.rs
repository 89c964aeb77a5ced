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
    Region::open_replica(OpenRegion { info, table, env: server.env.clone() }, Some(primary))
}

/// A replica on another server, which has nothing of the primary but the volume.
fn elsewhere(server: &Server, primary: &Region) -> Result<Arc<Region>, RegionError> {
    let (info, table) = (primary.info().replica(1), primary.table().clone());
    Region::open_replica(OpenRegion { info, table, env: another_server(server) }, None)
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
        let error = Region::open_replica(open, Some(&primary)).map(drop).expect_err("refused").to_string();
        assert!(error.contains("is no read replica of"), "{error}");
    }
    let open = OpenRegion { info: primary.info().clone(), table: table.clone(), env: env() };
    let error = Region::open_replica(open, None).map(drop).expect_err("refused").to_string();
    assert!(error.contains("is no read replica of any region"), "{error}");
    let replica = OpenRegion { info: primary.info().replica(1), table: table.clone(), env: env() };
    assert!(Region::open(replica).is_err(), "it would write");
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

#[test]
fn on_another_server_it_finds_what_its_primary_has_in_files() {
    for tracker in ["DEFAULT", "FILE"] {
        let server = Server::new(NOW);
        let mut table = TableDescriptor::new(table_name(), [family("f"), family("g")]);
        table.attributes.insert("hbase.store.file-tracker.impl".into(), tracker.into());
        let primary = server.open(&whole_table(), &Arc::new(table)).expect("opened");
        write(&primary, &[put("a", "f", "q", 1, "v1"), put("b", "g", "q", 1, "v1")]);
        flush(&primary);
        write(&primary, &[put("a", "f", "q", 2, "v2")]);
        let before = server.volume.all_files();
        let replica = elsewhere(&server, &primary).expect("opened");
        assert_eq!(rows(&replica), ["a/f:q/1/Put=v1", "b/g:q/1/Put=v1"], "{tracker}");
        assert!(!replica.refresh_files().expect("looked") && !primary.refresh_files().expect("none of its business"));
        flush(&primary);
        assert!(replica.refresh_files().expect("looked"));
        assert_eq!(rows(&replica), rows(&primary));
        let compacted = primary.store_file_paths(b"f").expect("there");
        major_compact(&primary);
        server.env.log.sync_once().expect("synced");
        primary.archive_compacted_files().expect("asked");
        let is_there = |path: &String| server.volume.exists(&FilePath::new(path)).expect("memory");
        assert!(!compacted.iter().any(is_there), "{tracker}: {compacted:?}, which nobody here shows");
        assert_eq!(rows(&replica), rows(&primary), "{tracker}: they are in the archive");
        assert!(replica.refresh_files().expect("looked"));
        assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
        assert_eq!(rows(&replica), rows(&primary));
        primary.close(CloseMode::Flush).expect("closed");
        let left = server.volume.all_files();
        assert!(!replica.refresh_files().expect("looked"), "a closed primary has the same files");
        replica.close(CloseMode::Flush).expect("closed");
        assert_eq!(server.volume.all_files(), left, "{tracker}: nothing was written, moved or removed");
        assert_ne!(before, left);
    }
}

#[test]
fn it_shows_files_that_are_compacted_away_between_its_look_and_its_opening_them() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    for value in ["v1", "v2"] {
        write(&primary, &[put("a", "f", "q", 1, value)]);
        flush(&primary);
    }
    // In the directory is the output as well as the input: as where the primary died before it archived that.
    major_compact(&primary);
    let replica = elsewhere(&server, &primary).expect("opened");
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"), "what was replaced does not count");
    assert_eq!(rows(&replica), ["a/f:q/1/Put=v2"]);
}

#[test]
fn on_another_server_it_reads_its_parents_files_through_references() {
    let server = Server::new(NOW);
    let parent = server.table([family("f")]);
    for row in ["a", "b", "m", "x"] {
        write(&parent, &[put(row, "f", "q", 1, row)]);
    }
    flush(&parent);
    let id = parent.info().region_id + 1;
    let daughters = [("", "m"), ("m", "")]
        .map(|(start, end)| model::RegionInfo::new(table_name(), Bytes::from(start), Bytes::from(end), id));
    parent.close(CloseMode::Flush).expect("closed");
    let table = parent.table().clone();
    basalt_region::split::write_daughters(&server.env, parent.info(), &table, [&daughters[0], &daughters[1]])
        .expect("written");
    for (daughter, expected) in daughters.iter().zip([&["a", "b"], &["m", "x"]]) {
        let open = |info: &model::RegionInfo| OpenRegion {
            info: info.clone(),
            table: table.clone(),
            env: another_server(&server),
        };
        let replica = Region::open_replica(open(&daughter.replica(1)), None).expect("opened");
        let shown: Vec<String> = expected.iter().map(|row| format!("{row}/f:q/1/Put={row}")).collect();
        assert_eq!(rows(&replica), shown, "before its primary is open");
        let primary = server.open(daughter, &table).expect("opened");
        major_compact(&primary);
        server.env.log.sync_once().expect("synced");
        primary.archive_compacted_files().expect("asked");
        assert_eq!(rows(&replica), shown, "its reference is gone");
        assert!(replica.refresh_files().expect("looked"));
        assert_eq!(rows(&replica), shown);
    }
}

#[test]
fn one_that_answers_no_reads_says_so_and_closes_as_any() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    let replica = elsewhere(&server, &primary).expect("opened");
    assert!(!primary.set_reads_enabled(false), "a region with writes answers reads");
    assert!(replica.set_reads_enabled(false) && !replica.set_reads_enabled(false));
    let error = replica.scanner(&Scan::default()).map(drop).expect_err("refused");
    let expected = format!("{}: The region's reads are disabled. Cannot serve the request", replica.name());
    assert_eq!((error.to_string(), error.kind()), (expected, basalt_region::ErrorKind::Io));
    assert!(!replica.is_closing() && replica.are_reads_disabled());
    replica.refresh_files().expect("it goes on");
    assert!(replica.set_reads_enabled(true));
    assert!(rows(&replica).is_empty());
    replica.set_reads_enabled(false);
    replica.close(CloseMode::Flush).expect("closed");
    assert!(!replica.set_reads_enabled(true) && matches!(replica.refresh_files(), Err(RegionError::NotServing { .. })));
}
