//! What a region promises around its reads and writes: batches, closing, limits, lost log writes, files in use.

use crate::common::*;
use basalt_region::{
    CloseMode, CompactionKind, ErrorKind, FlushReason, FlushRequest, Limits, Region, RegionEnv, RegionError,
    RegionSettings, Remedy, Unthrottled, split,
};
use base::Config;
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellSpec, CellType, tag};
use fs::{FaultKind, FilePath, MemVolume, Volume};
use hfile::Residency;
use model::mutation::ConditionTest;
use model::{Condition, Durability, Get, Mutation, MutationKind, RegionInfo, Scan, TableDescriptor};
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn names(rows: &[Vec<String>]) -> Vec<String> {
    rows.concat()
}

#[test]
fn a_bad_mutation_fails_alone_in_a_batch_and_together_in_a_row() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let batch = [
        put("a", "f", "q", 1, "1"),
        put("b", "nope", "q", 1, "2"),
        mutation(MutationKind::Put, "c", &[("f", "q", 1, CellType::Put, "3")]),
    ];
    let applied = region.apply(&batch).expect("tried");
    let kinds: Vec<Option<ErrorKind>> =
        applied.results.iter().map(|r| r.as_ref().err().map(RegionError::kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::NoSuchColumnFamily), None]);
    applied.commit.wait().expect("durable");
    assert_eq!(names(&scan(&region, &Scan::default(), 0)), ["a/f:q/1/Put=1", "c/f:q/1/Put=3"]);

    let error = region.mutate_rows(&[put("d", "f", "q", 1, "4"), put("d", "nope", "q", 1, "5")], None);
    let error = error.expect_err("one of them is bad");
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::NoSuchColumnFamily, Remedy::Reject));
    assert!(error.to_string().starts_with("Column family nope does not exist in region t,,"), "{error}");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 2);

    let written = region.mutate_rows(&[put("e", "f", "q", 1, "6"), put("g", "f", "q", 1, "7")], None).expect("good");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 2, "not visible before the log has it");
    written.commit.wait().expect("durable");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 4);
}

#[test]
fn one_batch_may_count_the_same_row_twice() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let add = |n: i64| {
        let amount = n.to_be_bytes();
        let spec = CellSpec {
            row: b"r",
            family: b"f",
            qualifier: b"n",
            timestamp: LATEST,
            type_code: CellType::Put.code(),
            value: &amount,
            tags: b"",
        };
        Mutation::new(MutationKind::Increment, "r", CellBlock::from_specs([spec]))
    };
    let applied = region.apply(&[add(5), add(7), put("x", "f", "q", 1, "1"), add(1)]).expect("applied");
    let values: Vec<i64> = applied
        .results
        .iter()
        .filter_map(|r| r.as_ref().expect("accepted").as_ref())
        .map(|cells| i64::from_be_bytes(cells.get(0).value().try_into().expect("8 bytes")))
        .collect();
    assert_eq!(values, [5, 12, 13]);
    applied.commit.wait().expect("durable");
    assert_eq!(region.read_point().0, region.stats().max_seq_id);
}

#[test]
fn a_row_outside_the_region_is_refused_in_hbases_words() {
    let server = Server::new(NOW);
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f")]));
    let info = RegionInfo::new(table_name(), Bytes::from("b"), Bytes::from("d"), 7);
    let region = server.open(&info, &table).expect("opened");
    let applied = region.apply(&[put("a", "f", "q", 1, "1"), put("c", "f", "q", 1, "1")]).expect("tried");
    let error = applied.results[0].as_ref().expect_err("outside");
    assert_eq!(
        (error.kind(), error.remedy()),
        (ErrorKind::FailedSanityCheck, Remedy::Reject),
        "as MutationBatchOperation has it"
    );
    assert!(error.to_string().contains("startKey='b', getEndKey()='d', row='a'"), "{error}");
    assert!(applied.results[1].is_ok());
    applied.commit.wait().expect("durable");
    let error = region.get(&Get::new("d"), &mut CellBuffer::new(), Residency::MayRead).expect_err("outside");
    assert_eq!(error.kind(), ErrorKind::WrongRegion);
}

/// What a flush takes off is what inserts had added, or a server that flushes for weeks thinks that it has memory which it has not.
#[test]
fn memory_counts_do_not_drift_with_flushes() {
    let server = Server::new(NOW);
    let region = server.table([family("f"), family("g")]);
    let held = || {
        write(&region, &[put("a", "f", "q", 1, "1"), put("a", "g", "q", 1, "1")]);
        let (held, of_server) = (region.memstore_bytes(), server.env.memory.memstore_bytes());
        flush(&region);
        assert_eq!((region.memstore_bytes(), server.env.memory.memstore_bytes()), (0, 0));
        (held, of_server)
    };
    let first = held();
    assert!(first.0 > 0 && first.0 == first.1, "{first:?}");
    for round in 0..30 {
        assert_eq!(held(), first, "after {round} more flushes");
    }
}

/// What is flushed while somebody reads it is still in memory: it counts, though not as what a flush could take away.
#[test]
fn flushed_memory_counts_until_its_last_reader_is_gone() {
    let server = Server::new(NOW);
    let region = server.table([family("f"), family("g")]);
    let memory = &server.env.memory;
    write(&region, &[put("a", "f", "q", 1, "1"), put("a", "g", "q", 1, "1"), put("b", "f", "q", 1, "2")]);
    let held = memory.memstore_bytes();
    assert_eq!(memory.pinned_bytes(), 0);
    let mut first = region.scanner(&Scan::default()).expect("opened");
    let second = region.scanner(&Scan::default()).expect("opened");
    flush(&region);
    assert_eq!((memory.memstore_bytes(), memory.pinned_bytes()), (0, held));
    let mut out = CellBuffer::new();
    first.next(&mut Limits::NONE.clone(), &mut out).expect("read");
    assert_eq!(show_all(&out, 0), ["a/f:q/1/Put=1", "a/g:q/1/Put=1"]);
    drop(second);
    assert_eq!(memory.pinned_bytes(), held, "one of them is left");
    drop(first);
    assert_eq!(memory.pinned_bytes(), 0);
    write(&region, &[put("a", "f", "q", 1, "1")]);
    flush(&region);
    assert_eq!((memory.memstore_bytes(), memory.pinned_bytes()), (0, 0), "nobody read it");
}

#[test]
fn closing_refuses_work_and_keeps_everything() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put("a", "f", "q", 1, "1")]);
    let mut open_scan = region.scanner(&Scan::default()).expect("opened");
    let last = region.stats().max_seq_id;
    region.close(CloseMode::Flush).expect("closed");
    region.close(CloseMode::Flush).expect("closed twice");
    assert_eq!(server.env.memory.memstore_bytes(), 0);
    let closed = |error: RegionError| {
        assert_eq!((error.kind(), error.remedy()), (ErrorKind::NotServingRegion, Remedy::RetryElsewhere));
        assert!(error.to_string().ends_with(" is closed"), "{error}");
    };
    closed(region.apply(&[put("b", "f", "q", 1, "1")]).map(|_| ()).expect_err("closed"));
    closed(region.get(&Get::new("a"), &mut CellBuffer::new(), Residency::MayRead).expect_err("closed"));
    closed(open_scan.next(&mut Limits::NONE.clone(), &mut CellBuffer::new()).map(|_| ()).expect_err("closed"));
    closed(region.flush(&FlushRequest::default()).map(|_| ()).expect_err("closed"));
    let again = server.table([family("f")]);
    assert_eq!(names(&scan(&again, &Scan::default(), 0)), ["a/f:q/1/Put=1"]);
    assert!(again.open_seq_id().0 > last, "ids never go back");
    assert_eq!(again.stats().memstore_bytes, 0);
}

#[test]
fn a_write_whose_caller_went_away_still_becomes_visible() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    drop(region.apply(&[put("a", "f", "q", 1, "1")]).expect("applied"));
    assert!(scan(&region, &Scan::default(), 0).is_empty(), "the log does not have it yet");
    server.env.log.sync_once().expect("synced");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 1);
    // What needs no waiting is visible at once, but never before an earlier write.
    let earlier = region.apply(&[put("b", "f", "q", 1, "1")]).expect("applied");
    let skipping = Mutation { durability: Durability::SkipWal, ..put("c", "f", "q", 1, "1") };
    let later = region.apply(&[skipping]).expect("applied");
    assert!(later.commit.ticket().is_some(), "it waits for the one before");
    later.commit.wait().expect("durable");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 3);
    earlier.commit.wait().expect("durable");
}

#[test]
fn a_check_that_fails_waits_for_the_write_that_failed_it() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let absent = Condition {
        row: Bytes::from("r"),
        test: ConditionTest::Value {
            family: Bytes::from("f"),
            qualifier: Bytes::from("lock"),
            op: filter::CompareOp::Equal,
            comparator: Arc::new(filter::Comparator::Binary { value: Bytes::new() }),
        },
        time_range: model::TimeRange::ALL,
    };
    let take = || region.check_and_mutate(&absent, &[put("r", "f", "lock", LATEST, "me")], None).expect("checked");
    let first = take();
    let second = take();
    assert!(first.processed && !second.processed);
    assert!(second.commit.ticket().is_some_and(|ticket| !ticket.is_done()), "the first may still be lost");
    second.commit.wait().expect("durable");
    assert!(first.commit.is_durable());
    first.commit.wait().expect("durable");
    let third = take();
    assert!(!third.processed && third.commit.ticket().is_none());
}

/// That the row `r` has this value.
fn r_is(value: &'static str) -> Condition {
    Condition {
        row: Bytes::from("r"),
        test: ConditionTest::Value {
            family: Bytes::from("f"),
            qualifier: Bytes::from("q"),
            op: filter::CompareOp::Equal,
            comparator: Arc::new(filter::Comparator::Binary { value: Bytes::from(value) }),
        },
        time_range: model::TimeRange::ALL,
    }
}

/// On a log that syncs only when it is asked to, a write that must be synced is followed by one that need not: nobody sees the first earlier for
/// that, to lose it in a power failure.
#[test]
fn what_must_be_synced_is_not_seen_before_because_of_what_follows() {
    let mut config = Config::default();
    config.set("hbase.wal.hsync", "false");
    for follows in ["a write", "an asynchronous write", "a failed check"] {
        let server = Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume");
        let region = server.table([family("f")]);
        write(&region, &[put("r", "f", "q", 1, "old")]);
        let fsync = Mutation { durability: Durability::FsyncWal, ..put("r", "f", "q", 2, "new") };
        let first = region.apply(&[fsync]).expect("applied").commit;
        let with = |durability| Mutation { durability, ..put("other", "f", "q", 3, "v") };
        let second = match follows {
            "a write" => region.apply(&[with(Durability::SyncWal)]).expect("applied").commit,
            "an asynchronous write" => region.apply(&[with(Durability::AsyncWal)]).expect("applied").commit,
            _ => region.check_and_mutate(&r_is("old"), &[put("r", "f", "q", 3, "mine")], None).expect("checked").commit,
        };
        second.on_done_deferred(|outcome| outcome.expect("synced"));
        server.env.log.write_once().expect("written");
        assert_eq!(names(&scan(&region, &Scan::default(), 0)), ["r/f:q/1/Put=old"], "{follows}");
        first.on_done_deferred(|outcome| outcome.expect("synced"));
        server.env.log.sync_once().expect("synced");
        assert!(names(&scan(&region, &Scan::default(), 0)).contains(&"r/f:q/2/Put=new".to_owned()), "{follows}");
    }
}

#[test]
fn a_failed_check_is_answered_after_what_it_saw_is_visible() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put("r", "f", "q", 1, "old")]);
    let under_way = region.apply(&[put("r", "f", "q", 2, "new")]).expect("applied");
    let checked = region.check_and_mutate(&r_is("old"), &[put("r", "f", "q", 3, "mine")], None).expect("checked");
    assert!(!checked.processed, "it saw the new value");
    // Its client hears that the row has changed, and reads: the old value would be a step back in time.
    checked.commit.wait().expect("durable");
    assert_eq!(names(&scan(&region, &Scan::default(), 0)), ["r/f:q/2/Put=new"]);
    under_way.commit.wait().expect("durable");
}

#[test]
fn a_flush_on_a_full_disk_does_not_stop_the_server() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put("a", "f", "q", 1, "1")]);
    server.volume.set_capacity(Some(0));
    // The log stalls: what waits in it is safe in memory.
    let under_way = region.apply(&[put("b", "f", "q", 1, "2")]).expect("applied");
    assert!(server.env.log.sync_once().is_err());
    let error = region.flush(&FlushRequest::default()).expect_err("no room for its marker");
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::RegionTooBusy, Remedy::RetryHere), "{error}");
    let refused = region.apply(&[put("c", "f", "q", 1, "3")]).expect("tried").results.remove(0);
    assert_eq!(refused.expect_err("no room").kind(), ErrorKind::RegionTooBusy);
    let error = under_way.commit.wait().expect_err("it is not durable");
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::Io, Remedy::RetryHere), "its fate is open: {error}");
    server.volume.set_capacity(None);
    server.env.log.sync_once().expect("there is room again");
    assert!(region.flush(&FlushRequest::default()).expect("flushed").flushed);
    assert_eq!(names(&scan(&region, &Scan::default(), 0)), ["a/f:q/1/Put=1", "b/f:q/1/Put=2"]);
}

#[test]
fn a_lost_log_write_stops_the_region() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put("a", "f", "q", 1, "1")]);
    let applied = region.apply(&[put("b", "f", "q", 1, "1")]).expect("applied");
    server.volume.inject(fs::mem::Fault { op: None, path_contains: None, nth: 1, kind: FaultKind::Io, forever: true });
    let error = applied.commit.wait().expect_err("the disk is gone");
    assert_eq!(error.remedy(), Remedy::StopServer, "{error}");
    let error = region.get(&Get::new("a"), &mut CellBuffer::new(), Residency::MayRead).expect_err("poisoned");
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::ServerStopped, Remedy::StopServer));
    assert!(region.apply(&[put("c", "f", "q", 1, "1")]).is_err());
}

#[test]
fn an_open_scan_keeps_the_files_it_reads() {
    let server = Server::new(NOW);
    let region = server.table([family("f").with("BLOCKSIZE", "100")]);
    for round in 0..3 {
        for i in 0..20 {
            write(&region, &[put(&format!("row{i:02}"), "f", &format!("q{round}"), 1, "x")]);
        }
        flush(&region);
    }
    let mut scanner = region.scanner(&Scan::default()).expect("opened");
    let mut out = CellBuffer::new();
    scanner.next(&mut Limits::NONE.clone(), &mut out).expect("read");
    let before = region.store_file_paths(b"f").expect("known");
    major_compact(&region);
    assert_eq!(region.archive_compacted_files().expect("looked"), 0, "the scan reads all three");
    for path in &before {
        assert!(server.volume.exists(&fs::FilePath::new(path)).expect("memory"), "{path}");
    }
    while scanner.next(&mut Limits::NONE.clone(), &mut out).expect("read").more {}
    assert_eq!(out.len(), 60);
    drop(scanner);
    assert_eq!(region.archive_compacted_files().expect("archived"), 3);
    for path in &before {
        assert!(!server.volume.exists(&fs::FilePath::new(path)).expect("memory"), "{path}");
        assert!(server.volume.exists(&fs::FilePath::new(format!("archive/{path}"))).expect("memory"), "{path}");
    }
    assert_eq!(scan(&region, &Scan::default(), 0).concat().len(), 60);
}

#[test]
fn a_get_from_memory_never_reads_and_one_from_files_says_so() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put("a", "f", "q", 1, "1")]);
    let mut out = CellBuffer::new();
    region.get(&Get::new("a"), &mut out, Residency::CachedOnly).expect("in memory");
    flush(&region);
    region.evict_blocks();
    assert_eq!(out.len(), 1);
    let error = region.get(&Get::new("a"), &mut out, Residency::CachedOnly).expect_err("on disk");
    assert!(error.is_would_block());
    assert_eq!(out.len(), 1, "what was there stays");
    region.get(&Get::new("a"), &mut out, Residency::MayRead).expect("read");
    region.get(&Get::new("a"), &mut out, Residency::CachedOnly).expect("cached now");
    assert_eq!(out.len(), 3);
}

#[test]
fn a_scan_from_memory_neither_reads_nor_works_long_until_it_may() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let puts: Vec<Mutation> = (0..3000).map(|n| put(&format!("row{n:05}"), "f", "q", 1, "1")).collect();
    write(&region, &puts);
    let open = |residency| region.scanner_with(&Scan::default(), residency);
    let mut out = CellBuffer::new();
    let mut step = |scanner: &mut basalt_region::RegionScanner| {
        out.clear();
        scanner.next(&mut Limits::NONE.clone(), &mut out).map(|progress| progress.cells)
    };

    // All in the memstore: but a thousand times a thousand deleted cells may be that too.
    let mut scanner = open(Residency::CachedOnly).expect("in memory");
    let error = (0..3000).map(|_| step(&mut scanner)).find_map(|step| step.err()).expect("too much for one go");
    assert!(error.is_would_block(), "{error}");
    let mut scanner = open(Residency::CachedOnly).expect("in memory");
    assert_eq!(step(&mut scanner).expect("the first row"), 1);
    scanner.may_read();
    for _ in 1..3000 {
        assert_eq!(step(&mut scanner).expect("takes its time"), 1);
    }

    flush(&region);
    region.evict_blocks();
    let error = open(Residency::CachedOnly).map(|_| ()).expect_err("on disk");
    assert!(error.is_would_block(), "{error}");
    // The first block comes into the cache, the others do not.
    step(&mut open(Residency::MayRead).expect("may read")).expect("read");
    let mut scanner = open(Residency::CachedOnly).expect("cached");
    let error = (0..3000).map(|_| step(&mut scanner)).find_map(|step| step.err()).expect("the second block is on disk");
    assert!(error.is_would_block(), "{error}");
    let mut scanner = open(Residency::CachedOnly).expect("cached");
    scanner.may_read();
    for _ in 0..3000 {
        assert_eq!(step(&mut scanner).expect("reads now"), 1);
    }
}

#[test]
fn cells_with_a_time_to_live_of_their_own_expire() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let mut tags = Vec::new();
    tag::write(&mut tags, tag::TTL, &500i64.to_be_bytes());
    let spec = CellSpec {
        row: b"r",
        family: b"f",
        qualifier: b"q",
        timestamp: LATEST,
        type_code: CellType::Put.code(),
        value: b"short-lived",
        tags: &tags,
    };
    write(&region, &[Mutation::new(MutationKind::Put, "r", CellBlock::from_specs([spec]))]);
    write(&region, &[put("r", "f", "p", LATEST, "stays")]);
    assert_eq!(get(&region, &Get::new("r"), NOW).len(), 2);
    flush(&region);
    server.clock.advance_ms(500);
    assert_eq!(get(&region, &Get::new("r"), NOW).len(), 2);
    server.clock.advance_ms(1);
    assert_eq!(get(&region, &Get::new("r"), NOW), ["r/f:p/0/Put=stays"]);
    major_compact(&region);
    server.clock.set_wall_ms(NOW);
    assert_eq!(get(&region, &Get::new("r"), NOW), ["r/f:p/0/Put=stays"], "the compaction dropped it");
}

#[test]
fn the_clock_may_step_back_without_hiding_writes() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put("r", "f", "q", LATEST, "first")]);
    server.clock.set_wall_ms(NOW - 60_000);
    write(&region, &[put("r", "f", "q", LATEST, "second")]);
    assert_eq!(get(&region, &Get::new("r"), NOW), ["r/f:q/0/Put=second"]);
}

#[test]
fn memory_limits_ask_for_a_flush_and_then_refuse() {
    let mut config = Config::default();
    config.set("hbase.hregion.memstore.flush.size", "20000");
    config.set("hbase.hregion.memstore.block.multiplier", "4");
    let server = Server::try_on(MemVolume::new(), NOW, &config, 1).expect("memory");
    let region = server.table([family("f"), family("g")]);
    let value = "x".repeat(1000);
    assert_eq!(region.needs_flush(), None);
    let mut error = None;
    for i in 0..500 {
        match region.apply(&[put(&format!("row{i}"), "f", "q", 1, &value)]) {
            Ok(applied) => applied.commit.wait().expect("durable"),
            Err(refused) => {
                error = Some(refused);
                break;
            }
        }
    }
    let error = error.expect("80 kB are too much");
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::RegionTooBusy, Remedy::RetryHere));
    assert!(error.to_string().starts_with("Over memstore limit=78.1 K, regionName="), "{error}");
    assert_eq!(region.needs_flush(), Some(FlushReason::Size));
    let outcome = region.flush(&FlushRequest::default()).expect("flushed");
    assert!(outcome.flushed && outcome.files == 1);
    assert_eq!((region.needs_flush(), region.memstore_bytes()), (None, 0));
    assert_eq!(server.env.memory.memstore_bytes(), 0);
    write(&region, &[put("again", "f", "q", 1, &value)]);
    server.clock.advance_ms(3_600_001);
    assert_eq!(region.needs_flush(), Some(FlushReason::Age));
}

#[test]
fn a_full_disk_fails_a_flush_and_the_next_one_succeeds() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    for i in 0..50 {
        write(&region, &[put(&format!("row{i:02}"), "f", "q", 1, &"x".repeat(200))]);
    }
    let expected = scan(&region, &Scan::default(), 0);
    for nth in 1..60 {
        server.volume.inject(fs::mem::Fault {
            op: None,
            path_contains: Some(".tmp".into()),
            nth,
            kind: FaultKind::Full,
            forever: false,
        });
        let outcome = region.flush(&FlushRequest { all: true, ..FlushRequest::default() });
        server.volume.clear_faults();
        assert_eq!(scan(&region, &Scan::default(), 0), expected, "call {nth}");
        if outcome.is_ok_and(|outcome| outcome.flushed) {
            break;
        }
        write(&region, &[put("row00", "f", "q", 1, &"x".repeat(200))]);
        assert!(nth < 59, "a flush does not take that many calls");
    }
    flush(&region);
    assert_eq!(scan(&region, &Scan::default(), 0), expected);
    assert_eq!((region.memstore_bytes(), server.env.memory.memstore_bytes()), (0, 0));
    // Everything is in files now: the log can go.
    server.env.log.roll().expect("rolled");
    server.env.log.archive_flushed().expect("archived");
    assert_eq!(server.env.log.lowest_unflushed(region.name()), None);
}

#[test]
fn meta_rows_are_in_metas_order() {
    let server = Server::new(NOW);
    let table = Arc::new(TableDescriptor::meta());
    let region = server.open(&RegionInfo::meta(), &table).expect("opened");
    for row in ["t1,,1", "t1,a,1", "t1!,a,1", "t1,a,2", "t1,a,b,1", "t1"] {
        write(&region, &[put(row, "info", "q", 1, "x")]);
    }
    let in_order = ["t1", "t1,,1", "t1,a,1", "t1,a,2", "t1,a,b,1", "t1!,a,1"];
    for _ in 0..2 {
        let rows: Vec<String> = scan(&region, &Scan::default(), 0)
            .concat()
            .iter()
            .map(|cell| cell.split('/').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(rows, in_order);
        let reversed = Scan {
            reversed: true,
            start_row: Bytes::from("t1,a,99999999999999"),
            stop_row: Bytes::from("t1,,"),
            include_stop_row: true,
            ..Scan::default()
        };
        assert_eq!(scan(&region, &reversed, 0)[0], ["t1,a,2/info:q/1/Put=x"], "the way clients find regions");
        flush(&region);
    }
    assert!(region.splitter().split_point().expect("asked").is_none());
}

#[test]
fn two_regions_become_one() {
    let server = Server::new(NOW);
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f"), family("g")]));
    let info = |from: &'static str, to: &'static str, id| {
        RegionInfo::new(table_name(), Bytes::from(from), Bytes::from(to), id)
    };
    let parents = [info("", "m", 5), info("m", "", 5)];
    let mut expected = Vec::new();
    for parent in &parents {
        let region = server.open(parent, &table).expect("opened");
        for row in ["a", "l", "m", "z"].iter().filter(|row| parent.contains(row.as_bytes())) {
            write(&region, &[put(row, "f", "q", 1, "x"), put(row, "g", "q", 1, "y")]);
        }
        expected.extend(scan(&region, &Scan::default(), 0));
        region.close(CloseMode::Flush).expect("closed");
    }
    let merged = info("", "", 6);
    for _ in 0..2 {
        split::write_merged(&server.env, &[&parents[0], &parents[1]], &table, &merged).expect("merged");
    }
    let region = server.open(&merged, &table).expect("opened");
    assert_eq!(scan(&region, &Scan::default(), 0), expected);
    assert!(region.splitter().has_references());
    while let Some(job) = region.select_compaction(None, CompactionKind::Minor).expect("open") {
        region.compact(job, &Unthrottled).expect("compacted");
    }
    region.archive_compacted_files().expect("archived");
    assert!(!region.splitter().has_references());
    for parent in &parents {
        rootdir::archive_region_dir(&*server.env.volume, &rootdir::region_dir(parent)).expect("archived");
    }
    assert_eq!(scan(&region, &Scan::default(), 0), expected);
}

#[test]
fn the_split_point_is_in_the_middle() {
    let server = Server::new(NOW);
    let region: Arc<Region> = server.table([family("f").with("BLOCKSIZE", "500")]);
    assert_eq!(region.splitter().split_point().expect("asked"), None);
    for i in 0..100 {
        write(&region, &[put(&format!("row{i:02}"), "f", "q", 1, &"x".repeat(100))]);
    }
    flush(&region);
    let row = region.splitter().split_point().expect("asked").expect("large enough");
    assert!((&b"row40"[..]..&b"row60"[..]).contains(&&row[..]), "{row:?}");
    assert!(!region.splitter().should_split(1));
}

#[test]
fn a_row_larger_than_a_row_may_be_is_read_in_pieces() {
    let mut config = Config::default();
    config.set("hbase.table.max.rowsize", "2000");
    let server = Server::try_on(MemVolume::new(), NOW, &config, 1).expect("a volume in memory");
    let region = server.table([family("f"), family("g")]);
    for i in 0..50 {
        write(&region, &[put("r", "f", &format!("q{i:02}"), 1, &"x".repeat(100))]);
    }
    let batches = scan(&region, &Scan { batch: Some(5), ..Scan::default() }, 0);
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [5; 10]);
    let limits = Limits { size_bytes: 600, partial_rows: true, ..Limits::NONE };
    assert_eq!(scan_limited(&region, &Scan::default(), &limits, 0).concat().len(), 50);
    let mut out = CellBuffer::new();
    let whole = region.scanner(&Scan::default()).expect("opened").next(&mut Limits::NONE.clone(), &mut out);
    assert_eq!(whole.expect_err("too big").kind(), ErrorKind::RowTooBig);
    let get = Get::new("r");
    assert!(region.get(&get, &mut out, Residency::MayRead).is_err());
    assert!(region.exists(&get, base::ReadMode::UNPACED).expect("one cell is enough to know"));
}

/// Several deletes of a column's latest version in one mutation each take the next older one, whatever stands between
/// them.
#[test]
fn repeated_deletes_of_the_latest_version_take_one_version_each() {
    let server = Server::new(NOW);
    let region = server.table([family("f").with("VERSIONS", "5")]);
    for timestamp in 1..=4 {
        for qualifier in ["p", "q"] {
            write(&region, &[put("r", "f", qualifier, timestamp, "v")]);
        }
    }
    let latest = |qualifier| ("f", qualifier, LATEST, CellType::Delete, "");
    let cells = [latest("q"), latest("p"), latest("q"), ("f", "q", 1, CellType::Delete, "")];
    write(&region, &[mutation(MutationKind::Delete, "r", &cells)]);
    let mut all = Get::new("r");
    all.max_versions = 5;
    let left = ["r/f:p/3/Put=v", "r/f:p/2/Put=v", "r/f:p/1/Put=v", "r/f:q/2/Put=v"];
    assert_eq!(get(&region, &all, 0), left);
}

/// However a row is read whole, it may take a part of the memory budget only; in pieces it may have any size.
#[test]
fn a_row_read_whole_keeps_to_the_memory_budget() {
    let mut server = Server::new(NOW);
    let settings = RegionSettings::from_config(&Config::default()).within_budget(16 << 20);
    let env = RegionEnv { settings: settings.shared(), ..(*server.env).clone() };
    server.env = Arc::new(env);
    let region = server.table([family("f"), family("g")]);
    let value = "x".repeat(100_000);
    for i in 0..6 {
        write(&region, &[put("r", "f", &format!("q{i}"), 1, &value), put("r", "g", &format!("q{i}"), 1, &value)]);
    }
    for _ in 0..2 {
        let refused = |error: RegionError| {
            assert_eq!(error.kind(), ErrorKind::RowTooBig);
            let text = error.to_string();
            for part in ["1048576", "hbase.table.max.rowsize", "basalt.memory.size"] {
                assert!(text.contains(part), "{text}");
            }
        };
        let mut out = CellBuffer::new();
        refused(region.get(&Get::new("r"), &mut out, Residency::MayRead).expect_err("a Get"));
        assert!(out.is_empty());
        let mut scanner = region.scanner(&Scan::default()).expect("opened");
        refused(scanner.next(&mut Limits::NONE.clone(), &mut out).expect_err("a whole row of a scan"));
        let cells: Vec<Cell<'_>> = ["q0", "q1", "q2", "q3", "q4", "q5"]
            .into_iter()
            .flat_map(|q| ["f", "g"].map(|family| (family, q, LATEST, CellType::Put, "y")))
            .collect();
        let append = mutation(MutationKind::Append, "r", &cells);
        let applied = region.apply(&[append]).expect("applied");
        refused(applied.results.into_iter().next().expect("one").expect_err("an Append"));
        let batches = scan(&region, &Scan { batch: Some(4), ..Scan::default() }, 0);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [4; 3]);
        flush(&region);
    }
}

/// A reference file has no checksum: each bit of one turned over, the region shows what it showed, or stays closed and names it.
#[test]
fn f47_flipped_split_key_is_named() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    for row in ["a", "k", "m", "mm", "z"] {
        write(&region, &[put(row, "f", "q", NOW, row)]);
    }
    region.close(CloseMode::Flush).expect("closed");
    let (parent, table) = (region.info().clone(), region.table().clone());
    let daughter = |start: &'static str, end: &'static str, id: u64| {
        RegionInfo::new(table_name(), Bytes::from(start), Bytes::from(end), parent.region_id + id)
    };
    let (low, high) = (daughter("", "m", 1), daughter("m", "", 1));
    split::write_daughters(&server.env, &parent, &table, [&low, &high]).expect("split");
    every_flip_is_named(&server, &table, &low, &["a", "k"]);
    every_flip_is_named(&server, &table, &high, &["m", "mm", "z"]);
    for info in [&low, &high] {
        let region = server.open(info, &table).expect("whole");
        major_compact(&region);
        region.archive_compacted_files().expect("archived");
        region.close(CloseMode::Flush).expect("closed");
    }
    let merged = daughter("", "", 2);
    split::write_merged(&server.env, &[&low, &high], &table, &merged).expect("merged");
    every_flip_is_named(&server, &table, &merged, &["a", "k", "m", "mm", "z"]);
}

fn every_flip_is_named(server: &Server, table: &Arc<TableDescriptor>, info: &RegionInfo, rows: &[&str]) {
    let dir = rootdir::family_dir(info, b"f");
    let references = server.volume.list(&dir).expect("listed");
    assert!(!references.is_empty());
    let mut named = 0;
    for reference in references {
        let path = dir.join(&reference.name);
        for bit in 0..reference.len * 8 {
            let what = format!("{path}, bit {bit}");
            server.volume.flip_bit(&path, bit / 8, (bit % 8) as u8);
            match server.open(info, table) {
                Ok(region) => {
                    let shown = names(&scan(&region, &Scan::default(), NOW));
                    let all: Vec<String> = rows.iter().map(|row| format!("{row}/f:q/0/Put={row}")).collect();
                    assert_eq!(shown, all, "{what}");
                    region.close(CloseMode::Abort).expect("closed");
                }
                Err(error) => {
                    assert!(error.to_string().contains(path.as_str()), "{what}: {error}");
                    named += 1;
                }
            }
            server.volume.flip_bit(&path, bit / 8, (bit % 8) as u8);
        }
    }
    assert!(named > 50, "only {named} flips were noticed");
}

#[test]
fn what_readers_have_in_the_cache_stays_there_through_a_compaction() {
    let server = Server::new(NOW);
    let region = server.table([family("f").with("BLOCKSIZE", "1024")]);
    let row = |n: usize| format!("row{n:04}");
    for file in 0..4 {
        let puts: Vec<Mutation> =
            (0..400).filter(|n| n % 4 == file).map(|n| put(&row(n), "f", "q", 1, &"v".repeat(100))).collect();
        write(&region, &puts);
        flush(&region);
    }
    let one = |n: usize, residency| {
        let mut out = CellBuffer::new();
        let outcome = region.get(&Get::new(row(n).into_bytes()), &mut out, residency);
        outcome.map(|_| assert_eq!(out.len(), 1, "row {n}"))
    };
    let is_cached = |n: usize| match one(n, Residency::CachedOnly) {
        Ok(()) => true,
        Err(error) if error.is_would_block() => false,
        Err(error) => panic!("{error}"),
    };
    for _ in 0..3 {
        (0..200).for_each(|n| one(n, Residency::MayRead).expect("read"));
    }
    major_compact(&region);
    region.archive_compacted_files().expect("archived");
    assert!((10..180).all(is_cached), "asked for again and again");
    let others: Vec<usize> = (250..400).filter(|n| is_cached(*n)).collect();
    assert_eq!(others, Vec::<usize>::new(), "never asked for");
}

/// HBase made daughters and merged regions in such directories before 2.6, and 2.6 knows their names still: they are no families.
#[test]
fn work_directories_of_splits_and_merges_are_no_families() {
    let server = Server::new(1000);
    let region = server.table([family("f")]);
    write(&region, &[put("row", "f", "q", 1, "value")]);
    flush(&region);
    let dir = rootdir::region_dir(region.info());
    let files = region.store_file_paths(b"f").expect("a family");
    region.close(basalt_region::CloseMode::Flush).expect("closed");
    let bytes = server.volume.read(&FilePath::new(&files[0])).expect("read");
    let name = files[0].rsplit('/').next().expect("a name").to_owned();
    for work in [".splits", ".merges"] {
        let dir = dir.join(work).join("fedcba9876543210fedcba9876543210").join("f");
        server.volume.create_dir_all(&dir).expect("memory");
        server.volume.put_file(&dir.join(format!("{name}.{}", region.info().encoded_name())), &bytes);
    }
    assert_eq!(rootdir::family_names(&server.volume, &dir).expect("listed"), ["f"]);
    let table = Arc::new(model::TableDescriptor::new(table_name(), [family("f")]));
    let region = server.open(region.info(), &table).expect("it opens");
    assert_eq!(region.store_file_paths(b"f").expect("a family"), files);
    assert_eq!(scan(&region, &model::Scan::default(), 0).concat().len(), 1);
    let manifest = basalt_region::snapshot::open_region_manifest(&region, false).expect("listed");
    assert_eq!(manifest.families.len(), 1);
}
