//! Scenarios of `docs/reliability.md` that one region can suffer: times to live, damaged writes, sizes at their limits.

use crate::common::*;
use base::{Config, Rng};
use bytes::Bytes;
use cell::CellType;
use fs::{CrashPolicy, MemVolume, Volume};
use model::{Get, Mutation, MutationKind, Scan, TableDescriptor};
use std::sync::Arc;

/// HBASE-21504: times to live at the ends of their units, of the family and of the cell, with MIN_VERSIONS and
/// KEEP_DELETED_CELLS=TTL; in memory, in files and after compactions.
#[test]
fn f44_times_to_live_at_their_ends() {
    const NOW: i64 = 1_700_000_000_000;
    let forever = i32::MAX.to_string();
    let longest = (i32::MAX - 1).to_string();
    // (family, value -> whether it is there now, and 20 s later)
    let cases = [
        (
            family("f").with("TTL", forever.clone()),
            [
                ("ages", true, true),
                ("born", true, true),
                ("cell9s", true, false),
                ("cellmax", true, true),
                ("future", true, true),
            ],
        ),
        (
            family("f").with("TTL", longest),
            [
                ("ages", true, true),
                ("born", true, true),
                ("cell9s", true, false),
                ("cellmax", true, true),
                ("future", true, true),
            ],
        ),
        (
            family("f").with("TTL", "10"),
            [
                ("ages", false, false),
                ("born", true, false),
                ("cell9s", true, false),
                ("cellmax", true, false),
                ("future", true, true),
            ],
        ),
        (
            family("f").with("TTL", "1"),
            [
                ("ages", false, false),
                ("born", true, false),
                ("cell9s", true, false),
                ("cellmax", true, false),
                ("future", true, true),
            ],
        ),
        // The last version outlives the family's time, not its own.
        (
            family("f").with("TTL", "10").with("MIN_VERSIONS", "1"),
            [
                ("ages", true, true),
                ("born", true, true),
                ("cell9s", true, false),
                ("cellmax", true, true),
                ("future", true, true),
            ],
        ),
        (
            family("f").with("TTL", "10").with("MIN_VERSIONS", "1").with("KEEP_DELETED_CELLS", "TTL"),
            [
                ("ages", true, true),
                ("born", true, true),
                ("cell9s", true, false),
                ("cellmax", true, true),
                ("future", true, true),
            ],
        ),
    ];
    for (family, expected) in cases {
        let server = Server::new(NOW);
        let settings = format!("{family:?}");
        let region = server.table([family.with("VERSIONS", "3")]);
        let with_ttl = |row: &str, stamp: i64, ttl_ms: i64| {
            let mut tags = Vec::new();
            cell::tag::write(&mut tags, cell::tag::TTL, &ttl_ms.to_be_bytes());
            let spec = cell::CellSpec {
                row: row.as_bytes(),
                family: b"f",
                qualifier: b"q",
                timestamp: stamp,
                type_code: 4,
                value: b"v",
                tags: &tags,
            };
            Mutation::new(
                MutationKind::Put,
                Bytes::copy_from_slice(row.as_bytes()),
                cell::CellBlock::from_specs([spec]),
            )
        };
        write(
            &region,
            &[
                put("ages", "f", "q", 1, "v"),
                put("born", "f", "q", NOW, "v"),
                put("future", "f", "q", NOW + 3_600_000, "v"),
            ],
        );
        write(&region, &[with_ttl("cell9s", NOW, 9_000), with_ttl("cellmax", NOW, i64::MAX)]);
        // An empty file says nothing about time, and is never in the way.
        let check = |later: bool, place: &str| {
            for (row, now, then) in expected {
                let there = !get(&region, &Get::new(row), NOW).is_empty();
                assert_eq!(there, if later { then } else { now }, "{settings}: {row}, {place}, 20 s later: {later}");
            }
        };
        check(false, "in memory");
        flush(&region);
        check(false, "in a file");
        major_compact(&region);
        check(false, "compacted");
        server.clock.advance_ms(20_000);
        check(true, "compacted before");
        major_compact(&region);
        check(true, "compacted");
        // Nothing may be left of them, or all: a file without cells is no harm.
        write(&region, &[put("more", "f", "q", NOW + 20_000, "v")]);
        flush(&region);
        major_compact(&region);
        check(true, "with a new file");
    }
}

/// PHOENIX-7945: where deleted cells are kept, a marker goes when no put of the rewritten files is as old as it is. That is one time for all rows,
/// as in HBase: a marker that some row's old put keeps is no harm, one that goes had nothing to hide.
#[test]
fn f44_markers_without_puts_go_by_the_oldest_put_of_all_rows() {
    const NOW: i64 = 1_700_000_000_000;
    let raw = Scan { raw: true, max_versions: 9, ..Scan::default() };
    for (oldest_put, markers_stay) in [(NOW - 100, true), (NOW - 101, true), (NOW - 99, false)] {
        let server = Server::new(NOW);
        let region = server.table([family("f").with("VERSIONS", "3").with("KEEP_DELETED_CELLS", "TRUE")]);
        write(
            &region,
            &[
                delete("alone", "f", "q", NOW - 100, CellType::DeleteColumn),
                put("hidden", "f", "q", NOW - 60, "kept"),
                delete("hidden", "f", "q", NOW - 50, CellType::DeleteColumn),
            ],
        );
        flush(&region);
        write(&region, &[put("other", "f", "q", oldest_put, "v")]);
        flush(&region);
        let before = scan(&region, &raw, NOW);
        assert_eq!(before.len(), 3, "{before:?}");
        for round in 0..2 {
            major_compact(&region);
            let mut wanted = before.clone();
            if !markers_stay {
                wanted.remove(0);
            }
            assert_eq!(scan(&region, &raw, NOW), wanted, "oldest put at {oldest_put}, compaction {round}");
            let seen = scan(&region, &Scan::default(), NOW);
            assert_eq!(seen.len(), 1, "{seen:?}");
        }
    }
}

/// HBASE-29131: with `hbase.hstore.validate.read_fully` a file with a wrong bit is never published: a flush keeps its memory and log, a
/// compaction its inputs; the next attempt succeeds.
#[test]
fn f46_a_file_with_a_wrong_bit_is_not_published() {
    for codec in ["NONE", "SNAPPY"] {
        wrong_bits(codec);
    }
}

fn wrong_bits(codec: &str) {
    let (mut refused, mut harmless) = (0, 0);
    'calls: for nth in 1.. {
        for compacts in [false, true] {
            let mut config = base::Config::default();
            config.set("basalt.hfile.compression.default", codec);
            config.set("hbase.hstore.validate.read_fully", "true");
            let server = Server::try_on(fs::MemVolume::new(), 1_700_000_000_000, &config, 7).expect("an empty volume");
            let of = family("f")
                .with("BLOCKSIZE", "300")
                .with("BLOOMFILTER", "ROWCOL")
                .with("DATA_BLOCK_ENCODING", "FAST_DIFF");
            let region = server.table([of]);
            for round in 0..3 {
                let rows: Vec<Mutation> = (0..24)
                    .map(|n| put(&format!("r{n:02}"), "f", &format!("q{round}"), 5, &format!("{:x<60}", n * 7919)))
                    .collect();
                write(&region, &rows);
                write(&region, &[delete("r03", "f", "q", 3, CellType::DeleteFamily)]);
                if compacts || round < 2 {
                    flush(&region);
                }
            }
            let before = scan(&region, &Scan::default(), 0);
            let files = region.store_file_paths(b"f").expect("a family");
            server.volume.inject(fs::mem::Fault {
                op: Some(fs::mem::Op::Append),
                path_contains: Some("/.tmp/".to_owned()),
                nth,
                kind: fs::FaultKind::FlippedWrite,
                forever: false,
            });
            let appends = server.volume.op_count();
            let outcome = if compacts {
                let job = region.select_compaction(Some(b"f"), basalt_region::CompactionKind::Major).expect("open");
                region.compact(job.expect("three files"), &basalt_region::Unthrottled).map(drop)
            } else {
                region.flush(&basalt_region::FlushRequest { all: true, ..Default::default() }).map(drop)
            };
            assert!(server.volume.op_count() > appends);
            if nth > 60 {
                break 'calls;
            }
            if let Err(error) = &outcome {
                assert!(error.to_string().contains(".tmp/"), "it names the file: {error}");
                assert_eq!(
                    region.store_file_paths(b"f").expect("a family"),
                    files,
                    "append {nth}: nothing has changed"
                );
                refused += 1;
            } else {
                harmless += 1;
            }
            region.evict_blocks();
            assert_eq!(scan(&region, &Scan::default(), 0), before, "append {nth}, compaction {compacts}: {outcome:?}");
            server.volume.clear_faults();
            flush(&region);
            major_compact(&region);
            assert_eq!(scan(&region, &Scan::default(), 0), before, "append {nth}: the next attempt");
        }
    }
    assert!(refused > 8, "{codec}: {refused} refused, {harmless} harmless");
}

/// The flush after a failed one writes what that one left; the log must hear of it, or it keeps its files for as long as the region is
/// idle.
#[test]
fn the_log_hears_of_a_flush_that_failed_once() {
    let server = Server::new(1_700_000_000_000);
    let region = server.table([family("f"), family("g")]);
    write(&region, &[put("r", "f", "q", 5, "v"), put("r", "g", "q", 5, "v")]);
    server.volume.inject(fs::mem::Fault {
        op: Some(fs::mem::Op::Append),
        path_contains: Some("/.tmp/".to_owned()),
        nth: 1,
        kind: fs::FaultKind::Full,
        forever: false,
    });
    let request = basalt_region::FlushRequest { all: true, ..Default::default() };
    region.flush(&request).expect_err("the disk is full");
    server.volume.clear_faults();
    assert!(server.env.log.lowest_unflushed(region.name()).is_some(), "all of it is in memory still");
    let outcome = region.flush(&request).expect("there is room again");
    assert!(outcome.flushed && outcome.files == 2, "{outcome:?}");
    assert_eq!(server.env.log.lowest_unflushed(region.name()), None);
    server.env.log.roll().expect("a new file");
    assert_eq!(server.env.log.archive_flushed().expect("it can be moved").len(), 1, "nobody needs the old file");
    server.clock.advance_ms(24 * 3_600_000);
    assert_eq!(region.needs_flush(), None, "no edit is old, for there is none");
    // And where writes came between the two attempts, to one family.
    write(&region, &[put("r", "f", "q", 6, "v"), put("r", "g", "q", 6, "v")]);
    server.volume.inject(fs::mem::Fault {
        op: Some(fs::mem::Op::Append),
        path_contains: Some("/.tmp/".to_owned()),
        nth: 1,
        kind: fs::FaultKind::Full,
        forever: false,
    });
    region.flush(&request).expect_err("the disk is full again");
    server.volume.clear_faults();
    write(&region, &[put("r", "g", "q", 7, "v")]);
    region.flush(&request).expect("there is room again");
    assert_eq!(server.env.log.lowest_unflushed(region.name()), None, "the family without new writes, too");
}

/// Cells at the limit of their size, and one byte beyond; row keys and qualifiers at theirs.
#[test]
fn f49_sizes_at_their_limits() {
    let mut config = base::Config::default();
    config.set("hbase.server.keyvalue.maxsize", "2000");
    let server = Server::try_on(fs::MemVolume::new(), 1_700_000_000_000, &config, 7).expect("an empty volume");
    let region = server.table([family("f")]);
    // Lengths, family, timestamp and type of a KeyValue besides row, qualifier and value; and the length before it, which HBase counts too.
    let overhead = 4 + 4 + 2 + 1 + 1 + 8 + 1 + 4;
    let tried = |mutation: Mutation| match region.apply(&[mutation]) {
        Ok(applied) => {
            let accepted = applied.results[0].is_ok();
            applied.commit.wait().expect("durable");
            accepted
        }
        Err(_) => false,
    };
    for (row, qualifier) in [("r", "q"), ("a longer row", "")] {
        let room = 2000 - overhead - row.len() - qualifier.len();
        assert!(tried(put(row, "f", qualifier, LATEST, &"x".repeat(room))), "{row}: exactly the limit");
        assert!(!tried(put(row, "f", qualifier, LATEST, &"y".repeat(room + 1))), "{row}: one byte more");
        flush(&region);
        assert!(get(&region, &Get::new(row), 0)[0].ends_with(&"x".repeat(room)), "{row}");
        // What an append makes is measured as well.
        let more = mutation(MutationKind::Append, row, &[("f", qualifier, LATEST, CellType::Put, "z")]);
        assert!(!tried(more), "{row}: an append beyond the limit");
        assert!(get(&region, &Get::new(row), 0)[0].ends_with(&"x".repeat(room)), "{row}: unchanged");
    }
    let region = Server::new(1_700_000_000_000).table([family("f")]);
    let tried = |row: usize, qualifier: usize| {
        let (row, qualifier) = ("r".repeat(row), "q".repeat(qualifier));
        let applied = region.apply(&[put(&row, "f", &qualifier, LATEST, "v")]).expect("tried");
        let accepted = applied.results[0].is_ok();
        applied.commit.wait().expect("durable");
        accepted
    };
    assert!(tried(i16::MAX as usize, 1) && tried(1, 1 << 20));
    assert_eq!(get(&region, &Get::new("r".repeat(i16::MAX as usize)), 0).len(), 1);
    flush(&region);
    major_compact(&region);
    assert_eq!(get(&region, &Get::new("r".repeat(i16::MAX as usize)), 0).len(), 1);
}

/// Recovered edits that held nothing but a compaction's marker were removed, and their removal was not durable; the ids in them were used
/// again. A power failure brought the file back, and the next split took it for an earlier attempt at the same entries.
#[test]
fn f13_replayed_files_do_not_come_back_and_stand_for_later_edits() {
    const NOW: i64 = 1_700_000_000_000;
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f")]));
    let life = |volume: &MemVolume, number: i64| {
        let server = Server::try_on(volume.clone(), NOW + number, &Config::default(), number as u64).expect("a start");
        let region = server.open(&whole_table(), &table).expect("it opens");
        (server, region)
    };
    let volume = MemVolume::new();
    let (server, region) = life(&volume, 1);
    let used = leave_a_marker(&server, &region);
    drop((server, region));
    // The marker is all that is left to replay.
    let (_, region) = life(&volume, 2);
    assert!(region.stats().max_seq_id >= used);
    drop(region);
    let dir = rootdir::region_dir(&whole_table()).join("recovered.edits");
    let files = wal::recovered_edits(&volume, &dir).expect("listed");
    assert!(volume.exists(&dir).expect("seen") && files.is_empty(), "there was something to replay");
    for writes in 1..6 {
        let volume = volume.snapshot();
        let (server, region) = life(&volume, 3);
        assert!(region.stats().max_seq_id >= used, "an id is used once");
        for number in 0..writes {
            write(&region, &[put(&format!("later{number}"), "f", "q", 1, "v")]);
        }
        let volume = volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced);
        drop((server, region));
        let (_, region) = life(&volume, 4);
        assert_eq!(scan(&region, &Scan::default(), 0).len(), 2 + writes, "after {writes} acknowledged writes");
    }
}
