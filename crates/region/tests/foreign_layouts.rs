//! What servers of HBase may leave in a region's directory beyond store files and recovered edits, and what is refused at opening rather
//! than misread.

use crate::common::*;
use basalt_region::{CloseMode, RegionError, Remedy};
use fs::{FilePath, Volume};
use model::{RegionInfo, Scan, TableDescriptor};
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn table() -> TableDescriptor {
    TableDescriptor::new(table_name(), [family("f"), family("g")])
}

/// Puts the only store file of `f` where HBase's splitter puts a file of a dead server's edits, and an empty one beside it, as it leaves when it
/// dies. Returns both directories and the file's name.
fn put_into_recovered_hfiles(volume: &dyn Volume) -> (FilePath, FilePath, String) {
    let family_dir = rootdir::family_dir(&whole_table(), b"f");
    let waiting = family_dir.join("recovered.hfiles");
    let files = volume.list(&family_dir).expect("memory");
    let [file] = files.as_slice() else { panic!("one file: {files:?}") };
    volume.create_dir_all(&waiting).expect("memory");
    volume.rename(&family_dir.join(&file.name), &waiting.join(&file.name)).expect("memory");
    volume.publish(&waiting.join("0123456789abcdef0123456789abcdef"), b"").expect("memory");
    (family_dir, waiting, file.name.clone())
}

#[test]
fn files_that_hbases_splitter_made_of_edits_are_loaded() {
    let server = Server::new(NOW);
    let table = Arc::new(table());
    let region = server.open(&whole_table(), &table).expect("a new region");
    write(&region, &[put("a", "f", "q", 1, "1"), put("a", "g", "q", 1, "2"), put("b", "f", "q", 2, "3")]);
    let last = region.stats().max_seq_id;
    region.close(CloseMode::Flush).expect("closed");
    let (family_dir, waiting, name) = put_into_recovered_hfiles(&server.volume);

    let region = server.open(&whole_table(), &table).expect("opens");
    let rows = scan(&region, &Scan::default(), 0).concat();
    assert_eq!(rows, ["a/f:q/1/Put=1", "a/g:q/1/Put=2", "b/f:q/2/Put=3"]);
    assert!(region.open_seq_id().0 > last, "{} is not above {last}, which is in the file", region.open_seq_id().0);
    assert!(server.volume.exists(&family_dir.join(&name)).expect("memory"));
    assert!(!server.volume.exists(&waiting).expect("memory"), "nothing waits any more");
    region.close(CloseMode::Flush).expect("closed");
    let region = server.open(&whole_table(), &table).expect("opens again");
    assert_eq!(scan(&region, &Scan::default(), 0).concat().len(), 3);
}

/// A process may die after each call to the volume: what it moved is there, the rest is moved by the next.
#[test]
fn a_crash_while_they_are_loaded_loses_none() {
    let server = Server::new(NOW);
    let table = Arc::new(table());
    let region = server.open(&whole_table(), &table).expect("a new region");
    for row in ["a", "b", "c"] {
        write(&region, &[put(row, "f", "q", 1, row)]);
        flush(&region);
    }
    region.close(CloseMode::Flush).expect("closed");
    let family_dir = rootdir::family_dir(&whole_table(), b"f");
    let waiting = family_dir.join("recovered.hfiles");
    server.volume.create_dir_all(&waiting).expect("memory");
    // One is moved already, two wait.
    let files: Vec<_> = server.volume.list(&family_dir).expect("memory").into_iter().filter(|e| !e.is_dir).collect();
    for file in &files[1..] {
        server.volume.rename(&family_dir.join(&file.name), &waiting.join(&file.name)).expect("memory");
    }
    let region = server.open(&whole_table(), &table).expect("opens");
    assert_eq!(scan(&region, &Scan::default(), 0).concat(), ["a/f:q/1/Put=a", "b/f:q/1/Put=b", "c/f:q/1/Put=c"]);
}

fn refused(server: &Server, info: &RegionInfo, table: TableDescriptor) -> RegionError {
    let error = server.open(info, &Arc::new(table)).expect_err("it would be misread");
    assert_eq!(error.remedy(), Remedy::Reject, "{error}");
    assert!(!server.volume.exists(&rootdir::region_dir(info)).expect("memory"), "nothing was made");
    error
}

#[test]
fn a_region_is_not_opened_whose_tracker_nobody_knows() {
    let server = Server::new(NOW);
    let key = rootdir::tracker::IMPL_KEY;
    for (tracker, what) in [
        ("migration", "config hbase.store.file-tracker.migration.src.impl is not set"),
        ("org.example.Own", "Class org.example.Own not found"),
    ] {
        let mut of_table = table();
        of_table.attributes.insert(key.into(), tracker.into());
        let error = refused(&server, &whole_table(), of_table).to_string();
        assert!(error.contains(what), "{error}");
        let mut of_family = family("f");
        of_family.configuration.insert(key.into(), tracker.into());
        let error = refused(&server, &whole_table(), TableDescriptor::new(table_name(), [of_family])).to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_read_replica_is_not_opened_by_itself() {
    let server = Server::new(NOW);
    let info = RegionInfo::with_replica(table_name(), bytes::Bytes::new(), bytes::Bytes::new(), NOW as u64, 1);
    let error = refused(&server, &info, table()).to_string();
    assert!(error.contains("read replica 1 of its region"), "{error}");
}
