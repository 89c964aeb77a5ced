//! What a region owes to the server that opens it next, be that another process which begins while this one is not quite dead: the ids that
//! it reports as flushed, and the order in which it takes files away.

use crate::common::*;
use basalt_region::{CompactionKind, FlushRequest, Region, Unthrottled};
use base::Config;
use bytes::Bytes;
use fs::mem::{Fault, Op};
use fs::{FaultKind, MemVolume, Volume};
use model::Scan;
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn flush_family(region: &Region, family: &'static str) {
    let request = FlushRequest { families: vec![Bytes::from_static(family.as_bytes())], ..FlushRequest::default() };
    assert!(region.flush(&request).expect("flushed").flushed);
}

/// The ids that the region reports: of itself and of its families.
fn flushed(region: &Region) -> (u64, Vec<u64>) {
    let stats = region.stats();
    (stats.flushed_seq_id, stats.stores.iter().map(|store| store.flushed_seq_id).collect())
}

/// A master drops every edit up to the reported id when it splits the log, of all families: where one family was flushed and another was not,
/// the report must stay below what the other still has in memory.
#[test]
fn a_flush_of_one_family_reports_no_unflushed_edit_of_another_as_flushed() {
    let server = Server::new(NOW);
    let region = server.table([family("a"), family("b")]);
    write(&region, &[put("r", "a", "q", 1, "1")]);
    write(&region, &[put("r", "b", "q", 1, "1")]);
    let of_b = region.stats().max_seq_id;
    write(&region, &[put("r", "a", "q", 2, "2")]);
    let last = region.stats().max_seq_id;
    assert_eq!(flushed(&region), (of_b - 2, vec![of_b - 2, of_b - 1]), "nothing is flushed");
    flush_family(&region, "a");
    let (of_region, of_stores) = flushed(&region);
    assert_eq!(of_region, of_b - 1, "the edit of b is in the log alone");
    assert!(of_stores[0] >= last, "all of a is in files: {of_stores:?}");
    assert_eq!(of_stores[1], of_b - 1);
    flush_family(&region, "b");
    let (of_region, of_stores) = flushed(&region);
    assert!(of_region > last && of_stores.iter().all(|id| *id >= of_region), "{of_region} {of_stores:?}");
}

/// A failed flush takes nothing from the report that the log still has to give.
#[test]
fn a_failed_flush_reports_nothing_as_flushed() {
    let server = Server::new(NOW);
    let region = server.table([family("a"), family("b")]);
    let before = flushed(&region).0;
    for name in ["a", "b"] {
        write(&region, &[put("r", name, "q", 1, "1")]);
    }
    let path_contains = Some("/.tmp/".to_owned());
    server.volume.inject(Fault { op: None, path_contains, nth: 1, kind: FaultKind::Full, forever: true });
    region.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect_err("no room");
    assert!(flushed(&region).0 <= before + 1, "{:?}", flushed(&region));
    server.volume.clear_faults();
    flush(&region);
    assert!(flushed(&region).0 > before + 2);
}

/// Two files of family f, and what a scan of them shows.
fn two_files(server: &Server) -> (Arc<Region>, Vec<Vec<String>>) {
    let region = server.table([family("f")]);
    for row in ["a", "b"] {
        write(&region, &[put(row, "f", "q", 1, "v")]);
        flush(&region);
    }
    let shown = scan(&region, &Scan::default(), 0);
    (region, shown)
}

fn archived(volume: &MemVolume) -> usize {
    volume.all_files().iter().filter(|path| path.as_str().starts_with("archive/")).count()
}

/// On a log that is not synced for every write, too.
#[test]
fn a_compaction_archives_nothing_before_its_marker_is_on_the_disk() {
    for hsync in ["true", "false"] {
        let mut config = Config::default();
        config.set("hbase.wal.hsync", hsync);
        let server = Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume");
        let (region, shown) = two_files(&server);
        server.volume.record_ops();
        major_compact(&region);
        let ops = server.volume.op_log();
        let renames: Vec<usize> = (0..ops.len()).filter(|at| ops[*at].op == Op::Rename).collect();
        let [published, archives @ ..] = &renames[..] else { panic!("{ops:?}") };
        assert_eq!(archives.len(), 2, "{ops:?}");
        let is_fence = |at: &usize| ops[*at].op == Op::Sync && ops[*at].path.as_str().starts_with("WALs/");
        assert!((*published..archives[0]).any(|at| is_fence(&at)), "hsync {hsync}: {ops:?}");
        assert_eq!(scan(&region, &Scan::default(), 0), shown);
    }
}

/// The log of a server that lost its regions refuses the marker. Nothing is taken away then, by whatever way.
#[test]
fn a_compaction_whose_marker_cannot_be_synced_archives_nothing() {
    let server = Server::new(NOW);
    let (region, _) = two_files(&server);
    let job = region.select_compaction(Some(b"f"), CompactionKind::Major).expect("open").expect("two files");
    let path_contains = Some("WALs/".to_owned());
    server.volume.inject(Fault { op: None, path_contains, nth: 1, kind: FaultKind::Io, forever: true });
    region.compact(job, &Unthrottled).expect_err("the log is gone");
    assert!(region.archive_compacted_files().unwrap_or(0) == 0);
    assert!(region.close(basalt_region::CloseMode::Flush).is_err());
    assert_eq!(archived(&server.volume), 0);
}

/// A log without room is no reason to lose the work of a compaction: its files are archived when there is room again.
#[test]
fn a_compaction_whose_marker_finds_no_room_is_archived_later() {
    let server = Server::new(NOW);
    let (region, shown) = two_files(&server);
    let job = region.select_compaction(Some(b"f"), CompactionKind::Major).expect("open").expect("two files");
    let path_contains = Some("WALs/".to_owned());
    server.volume.inject(Fault { op: None, path_contains, nth: 1, kind: FaultKind::Full, forever: true });
    assert!(region.compact(job, &Unthrottled).expect("rewritten").completed);
    assert_eq!((region.archive_compacted_files().expect("nothing to do"), archived(&server.volume)), (0, 0));
    assert_eq!(scan(&region, &Scan::default(), 0), shown);
    server.volume.clear_faults();
    server.env.log.sync_once().expect("there is room");
    // The log may have refused the marker: then it is in its buffer after the first of these.
    let _ = region.archive_compacted_files().expect("appended");
    server.env.log.sync_once().expect("synced");
    let _ = region.archive_compacted_files().expect("archived");
    assert_eq!(archived(&server.volume), 2);
    assert_eq!(scan(&region, &Scan::default(), 0), shown);
}

/// The temporary directories of a region, below its `.tmp`.
fn openings(server: &Server, region: &Region) -> Vec<String> {
    let dir = rootdir::region_dir(region.info()).join(rootdir::paths::TEMP);
    let entries = server.volume.list(&dir).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name).collect()
}

/// Where a region may be open twice, for a moment: the owner before cannot publish a file any more once the next one has opened it.
#[test]
fn an_owner_that_was_replaced_can_neither_flush_nor_compact() {
    let server = Server::new(NOW);
    server.volume.set_shared(true);
    let (old, shown) = two_files(&server);
    let job = old.select_compaction(Some(b"f"), CompactionKind::Major).expect("open").expect("two files");
    write(&old, &[put("c", "f", "q", 1, "v")]);
    let before = openings(&server, &old);
    // Its log does not know of another owner: that is the log's fence, and another test.
    let new = server.open(old.info(), old.table()).expect("opened");
    let after = openings(&server, &new);
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");
    let files = server.volume.all_files();
    old.compact(job, &Unthrottled).expect_err("its directory is gone");
    old.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect_err("its directory is gone");
    let of_region = |path: &fs::FilePath| path.as_str().starts_with("data/") || path.as_str().starts_with("archive/");
    let of_region = |paths: Vec<fs::FilePath>| paths.into_iter().filter(of_region).collect::<Vec<_>>();
    assert_eq!(of_region(server.volume.all_files()), of_region(files));
    assert_eq!(scan(&new, &Scan::default(), 0), shown);
    // The new one works.
    write(&new, &[put("d", "f", "q", 1, "v")]);
    flush(&new);
    major_compact(&new);
    assert_eq!(scan(&new, &Scan::default(), 0).len(), 3);
}

/// Where nobody else can have it open, no directory is made before there is something to write.
#[test]
fn a_region_on_a_disk_of_its_own_makes_no_directory_when_it_opens() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    assert_eq!(openings(&server, &region), Vec::<String>::new());
    write(&region, &[put("d", "f", "q", 1, "v")]);
    flush(&region);
    assert_eq!(openings(&server, &region).len(), 1);
}
