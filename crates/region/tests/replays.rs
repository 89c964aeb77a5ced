//! Read replicas that are told of their primary's log: each entry, late, twice or not at all.

mod programs;

use crate::common::*;
use basalt_region::{
    BulkLoad, CloseMode, CompactionKind, FlushRequest, LoadFile, OpenRegion, Place, Region, RegionError, Unthrottled,
};
use base::{Rng, SeqId, TimestampMs};
use cell::{CellBlock, CellBuffer, CellType};
use fs::mem::Fault;
use fs::{FaultKind, FilePath, Volume};
use model::{Get, RegionInfo, Scan, TableDescriptor};
use proto::pb;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wal::InheritedEdit;
use wal::marker::Marker;

const NOW: i64 = 1_700_000_000_000;

/// Reads what the primary's log has had since it was read last.
struct Shipment {
    read: BTreeMap<String, usize>,
    waiting: VecDeque<InheritedEdit>,
}

impl Shipment {
    fn new() -> Shipment {
        Shipment { read: BTreeMap::new(), waiting: VecDeque::new() }
    }

    fn look(&mut self, server: &Server) {
        server.env.log.sync_once().expect("synced");
        let dir = server.env.log.dir();
        let volume: &dyn Volume = &server.volume;
        let mut names: Vec<String> = volume.list(dir).expect("listed").into_iter().map(|entry| entry.name).collect();
        names.sort();
        for name in names {
            let mut reader = wal::Reader::open(volume, &dir.join(&name)).expect("opened");
            let read = self.read.entry(name).or_default();
            let mut count = 0;
            while let Some(entry) = reader.next().expect("read") {
                count += 1;
                if count > *read {
                    let wal::Key { seq_id, write_time, .. } = entry.key;
                    self.waiting.push_back(InheritedEdit { seq_id, write_time, nonce: None, cells: entry.cells });
                }
            }
            *read = count;
        }
    }
}

fn rows(region: &Arc<Region>) -> Vec<String> {
    scan(region, &Scan::default(), 0).concat()
}

fn replica_elsewhere(server: &Server, primary: &Region) -> Arc<Region> {
    let (info, table) = (primary.info().replica(1), primary.table().clone());
    Region::open_replica(OpenRegion { info, table, env: another_server(server) }, None).expect("opened")
}

fn ship_all(server: &Server, shipment: &mut Shipment, replica: &Region) {
    shipment.look(server);
    for entry in shipment.waiting.drain(..) {
        replica.replay(&entry).expect("replayed");
    }
}

fn entry(seq_id: u64, cells: CellBuffer) -> InheritedEdit {
    InheritedEdit { seq_id: SeqId(seq_id), write_time: TimestampMs(NOW), nonce: None, cells: cells.into_block() }
}

fn marked(seq_id: u64, marker: &Marker) -> InheritedEdit {
    let mut cells = CellBuffer::new();
    marker.write(&[0], NOW, &mut cells);
    entry(seq_id, cells)
}

#[test]
fn edits_are_shown_when_they_are_told_and_their_memory_goes_with_the_flush() {
    let server = Server::new(NOW);
    let primary = server.table([family("f"), family("g")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    write(&primary, &[put("a", "f", "q", 1, "v1"), put("b", "g", "q", 1, "v1")]);
    assert!(rows(&replica).is_empty());
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    let memory = replica.env().memory.clone();
    assert!(replica.memstore_bytes() > 0 && memory.memstore_bytes() == replica.memstore_bytes());
    assert_eq!(replica.needs_flush(), None);
    let before = replica.memstore_bytes();
    replica.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("asked");
    assert_eq!(replica.memstore_bytes(), before, "it writes no files");

    // One family is flushed: the other's edits stay.
    write(&primary, &[put("c", "f", "q", 1, "v1")]);
    primary.flush(&FlushRequest { families: vec!["f".into()], ..FlushRequest::default() }).expect("flushed");
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    assert!(replica.memstore_bytes() > 0);
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    flush(&primary);
    ship_all(&server, &mut shipment, &replica);
    assert_eq!((replica.memstore_bytes(), memory.memstore_bytes()), (0, 0));
    assert_eq!(rows(&replica), rows(&primary));

    // What is written while the flush runs comes after its start, and stays.
    write(&primary, &[put("d", "f", "q", 1, "v1")]);
    flush(&primary);
    write(&primary, &[put("e", "f", "q", 1, "v1")]);
    shipment.look(&server);
    let place = shipment.waiting.len() - 2;
    shipment.waiting.swap(place, place + 1);
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    assert!(replica.memstore_bytes() > 0, "its last edit is in no file");
    assert_eq!(get(&replica, &Get::new("e"), 0), ["e/f:q/1/Put=v1"]);
}

/// Those that it had were shown for ever, and could not be read once they were deleted (seed 40470 of the simulated cluster).
#[test]
fn files_that_went_into_one_that_is_gone_already_are_shown_no_more() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    for value in ["v1", "v2"] {
        write(&primary, &[put("a", "f", "q", 1, value), put(value, "f", "q", 1, "v")]);
        flush(&primary);
    }
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(replica.store_file_paths(b"f").map(|paths| paths.len()), Some(2));
    // It hears of two compactions, one over the other, when what the first wrote has been deleted.
    major_compact(&primary);
    write(&primary, &[put("b", "f", "q", 1, "v3")]);
    flush(&primary);
    major_compact(&primary);
    server.env.log.sync_once().expect("synced");
    primary.archive_compacted_files().expect("asked");
    server.volume.remove_dir_all(&FilePath::new("archive")).expect("deleted");
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    assert_eq!(rows(&replica), rows(&primary));
}

/// Its compactions were taken for old ones, and what had gone into them was shown for ever (seed 5147 of the simulated cluster): markers are in no
/// file, so a server that opens the region after a crash counts from a lower number than the last of them had.
#[test]
fn compactions_of_a_primary_whose_markers_count_from_a_lower_number_are_followed() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    for value in ["v1", "v2"] {
        write(&primary, &[put("a", "f", "q", 1, value), put(value, "f", "q", 1, "v")]);
        flush(&primary);
    }
    ship_all(&server, &mut shipment, &replica);
    let crashed = pb::CompactionDescriptor {
        encoded_region_name: primary.name().as_bytes().to_vec().into(),
        family_name: "f".into(),
        ..Default::default()
    };
    replica.replay(&marked(200, &Marker::Compaction(crashed))).expect("replayed");
    let files = primary.store_file_paths(b"f").expect("a family");
    let opened = pb::RegionEventDescriptor {
        event_type: pb::region_event_descriptor::EventType::RegionOpen as i32,
        encoded_region_name: primary.name().as_bytes().to_vec().into(),
        log_sequence_number: Some(150),
        stores: vec![pb::StoreDescriptor {
            family_name: "f".into(),
            store_file: files.iter().map(|path| FilePath::new(path).name().to_owned()).collect(),
            ..Default::default()
        }],
        ..Default::default()
    };
    replica.replay(&marked(150, &Marker::RegionEvent(opened))).expect("replayed");
    major_compact(&primary);
    shipment.look(&server);
    for (n, told) in (151..).zip(shipment.waiting.drain(..)) {
        replica.replay(&InheritedEdit { seq_id: SeqId(n), ..told }).expect("replayed");
    }
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    assert_eq!(rows(&replica), rows(&primary));
}

#[test]
fn compactions_and_loads_are_followed() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    for value in ["v1", "v2", "v3"] {
        write(&primary, &[put("a", "f", "q", 1, value), put(value, "f", "q", 1, "v")]);
        flush(&primary);
    }
    major_compact(&primary);
    server.env.log.sync_once().expect("synced");
    primary.archive_compacted_files().expect("asked");
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    assert_eq!(rows(&replica), rows(&primary));

    let from = FilePath::new("staging/0123456789abcdef0123456789abcdef");
    server.volume.create_dir_all(&from.parent()).expect("made");
    let shown = primary.store_file_paths(b"f").expect("there").remove(0);
    let bytes = server.volume.read(&FilePath::new(&shown)).expect("read");
    server.volume.put_file(&from, &bytes);
    let load = BulkLoad {
        files: vec![LoadFile { family: "f".into(), name: "x".into(), place: Place::Inside(from) }],
        assign_seq_id: true,
        staging: FilePath::new("staging/x"),
        copy: false,
        cluster_ids: Vec::new(),
        replicate: false,
    };
    primary.bulk_load(&load).expect("loaded");
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    assert_eq!(rows(&replica), rows(&primary));
}

#[test]
fn reads_that_wait_for_the_primary_are_answered_after_a_whole_flush_an_opening_or_nothing_to_flush() {
    let server = Server::new(NOW);
    let primary = server.table([family("f")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    write(&primary, &[put("a", "f", "q", 1, "v1")]);
    flush(&primary);
    shipment.look(&server);
    let is_commit = |entry: &InheritedEdit| {
        let marker = Marker::decode(entry.cells.iter().next().expect("a cell")).ok().flatten();
        matches!(marker, Some(Marker::Flush(flush)) if flush.action() == pb::flush_descriptor::FlushAction::CommitFlush)
    };
    let commit = shipment.waiting.iter().find(|entry| is_commit(entry)).expect("there").clone();
    replica.set_reads_enabled(false);
    replica.replay(&commit).expect("replayed");
    assert!(replica.are_reads_disabled(), "what came before its start is not known to be here");
    ship_all(&server, &mut shipment, &replica);
    assert!(!replica.are_reads_disabled());
    assert_eq!(rows(&replica), rows(&primary));

    replica.set_reads_enabled(false);
    let nothing = |seq_id| {
        marked(
            seq_id,
            &Marker::Flush(pb::FlushDescriptor {
                action: pb::flush_descriptor::FlushAction::CannotFlush as i32,
                table_name: "t".into(),
                encoded_region_name: primary.name().as_bytes().to_vec().into(),
                ..pb::FlushDescriptor::default()
            }),
        )
    };
    replica.replay(&nothing(0)).expect("replayed");
    assert!(replica.are_reads_disabled(), "it is of before");
    replica.replay(&nothing(100)).expect("replayed");
    assert!(!replica.are_reads_disabled());

    replica.set_reads_enabled(false);
    primary.close(CloseMode::Flush).expect("closed");
    ship_all(&server, &mut shipment, &replica);
    assert!(replica.are_reads_disabled());
    let primary = server.open(primary.info(), primary.table()).expect("opened");
    ship_all(&server, &mut shipment, &replica);
    assert!(!replica.are_reads_disabled());
    assert_eq!(rows(&replica), rows(&primary));
}

#[test]
fn what_is_not_of_the_region_or_cannot_be_read_is_refused_and_changes_nothing() {
    let server = Server::new(NOW);
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f")]));
    let info = RegionInfo::new(table_name(), "b".into(), "m".into(), 7);
    let primary = server.open(&info, &table).expect("opened");
    let replica = replica_elsewhere(&server, &primary);
    let edit = |row: &str, type_code: u8| {
        let spec = cell::CellSpec {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"q",
            timestamp: 1,
            type_code,
            value: b"v",
            tags: b"",
        };
        InheritedEdit {
            seq_id: SeqId(50),
            write_time: TimestampMs(NOW),
            nonce: None,
            cells: CellBlock::from_specs([spec]),
        }
    };
    let put = CellType::Put.code();
    assert!(matches!(replica.replay(&edit("z", put)), Err(RegionError::WrongRegion { .. })));
    assert!(replica.replay(&edit("c", 99)).is_err());
    assert!(
        matches!(primary.replay(&edit("c", put)), Err(RegionError::DoNotRetry(_))),
        "a primary has a log of its own"
    );
    let of_another = Marker::Flush(pb::FlushDescriptor {
        action: pb::flush_descriptor::FlushAction::StartFlush as i32,
        table_name: "t".into(),
        encoded_region_name: "0123456789abcdef0123456789abcdef".into(),
        ..pb::FlushDescriptor::default()
    });
    let error = replica.replay(&marked(51, &of_another)).expect_err("refused").to_string();
    assert!(error.contains("is of region 0123456789abcdef0123456789abcdef"), "{error}");
    let files = |name: &str| {
        Marker::Flush(pb::FlushDescriptor {
            action: pb::flush_descriptor::FlushAction::CommitFlush as i32,
            table_name: "t".into(),
            encoded_region_name: primary.name().as_bytes().to_vec().into(),
            flush_sequence_number: Some(52),
            store_flushes: vec![pb::flush_descriptor::StoreFlushDescriptor {
                family_name: "f".into(),
                store_home_dir: "f".into(),
                flush_output: vec![name.to_owned()],
            }],
            ..pb::FlushDescriptor::default()
        })
    };
    assert!(replica.replay(&marked(53, &files("../../x"))).is_err());
    replica.replay(&marked(54, &files("0123456789abcdef0123456789abcdef"))).expect("it is gone, as after a compaction");
    let mut broken = CellBuffer::new();
    let spec = cell::CellSpec {
        row: b"c",
        family: b"METAFAMILY",
        qualifier: b"HBASE::FLUSH",
        timestamp: NOW,
        type_code: put,
        value: b"\xff\xff",
        tags: b"",
    };
    broken.push_spec(&spec, SeqId(0));
    assert!(matches!(replica.replay(&entry(55, broken)), Err(RegionError::DoNotRetry(_))));
    assert!(rows(&replica).is_empty());
    replica.replay(&edit("c", put)).expect("a good one");
    assert_eq!(rows(&replica), ["c/f:q/1/Put=v"]);
    replica.close(CloseMode::Flush).expect("closed");
    assert_eq!(replica.env().memory.memstore_bytes(), 0);
    assert!(matches!(replica.replay(&edit("c", put)), Err(RegionError::NotServing { .. })));
}

/// A server that tells read replicas, with room for so many bytes of what waits.
fn telling(room_bytes: u64) -> Server {
    telling_on(fs::MemVolume::new(), room_bytes, 1)
}

fn telling_on(volume: fs::MemVolume, room_bytes: u64, life: u64) -> Server {
    let mut config = base::Config::default();
    config.set("hbase.region.replica.replication.enabled", "true");
    config.set("hbase.region.replica.replication.buffersize", room_bytes.to_string());
    Server::try_on(volume, NOW + life as i64, &config, life).expect("a volume in memory")
}

fn replicated(server: &Server, attributes: &[(&'static str, &'static str)]) -> Arc<Region> {
    let mut table = TableDescriptor::new(table_name(), [family("f"), family("g")]);
    table.attributes.insert("REGION_REPLICATION".into(), "2".into());
    attributes.iter().for_each(|(key, value)| _ = table.attributes.insert((*key).into(), (*value).into()));
    server.open(&whole_table(), &Arc::new(table)).expect("opened")
}

/// Tells the replica what waits; how many entries, and whether one named all files.
fn tell(server: &Server, primary: &Region, replica: &Region) -> (usize, bool) {
    tell_from(&server.env.log, primary, replica)
}

fn tell_from(log: &wal::Log, primary: &Region, replica: &Region) -> (usize, bool) {
    log.sync_once().expect("synced");
    let (mut count, mut whole) = (0, false);
    loop {
        let taken = primary.outbox().expect("it has replicas").take(200);
        if taken.is_empty() {
            return (count, whole);
        }
        count += taken.len();
        for next in taken {
            whole |= next.is_whole;
            let cells = CellBlock::parse(next.run).expect("cells");
            assert_eq!(cells.len(), next.cells);
            let edit =
                InheritedEdit { seq_id: next.seq_id, write_time: TimestampMs(next.write_time_ms), nonce: None, cells };
            replica.replay(&edit).expect("replayed");
        }
    }
}

/// Whoever sends would ask again and again, with all that a processor gives, until the server ends.
#[test]
fn a_log_that_fails_is_named_so_that_it_is_not_asked_without_end() {
    for (kind, is_over) in [(FaultKind::Io, true), (FaultKind::Full, false)] {
        let server = telling(1 << 20);
        let primary = replicated(&server, &[]);
        let replica = replica_elsewhere(&server, &primary);
        tell(&server, &primary, &replica);
        let outbox = primary.outbox().expect("it has replicas");
        let applied = primary.apply(&[put("a", "f", "q", 1, "v")]).expect("applied");
        assert!(outbox.take(1 << 20).is_empty() && !outbox.log_fails(), "nobody has synced");
        let path_contains = Some("WALs/".to_owned());
        server.volume.inject(Fault { op: None, path_contains, nth: 1, kind, forever: true });
        applied.commit.wait().expect_err("the log fails");
        // Where the disk is full the entry goes on waiting, and who sends is told when it is there.
        assert!(outbox.take(1 << 20).is_empty() && outbox.log_fails() == is_over, "{kind:?}");
        server.volume.clear_faults();
        let _outcome = server.env.log.sync_once();
        assert_eq!((outbox.take(1 << 20).is_empty(), outbox.log_fails()), (is_over, is_over), "{kind:?}");
    }
}

/// Its server stopped: what it had heard of its primary's log was to be flushed, into the primary's directory.
#[test]
fn a_replica_that_has_heard_of_edits_closes_without_a_flush() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[]);
    let replica = replica_elsewhere(&server, &primary);
    write(&primary, &[put("a", "f", "q", 1, "v")]);
    tell(&server, &primary, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    let files = server.volume.all_files();
    replica.close(CloseMode::Flush).expect("closed");
    assert_eq!(server.volume.all_files(), files);
}

#[test]
fn what_waits_is_told_in_order_once_the_log_has_it() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[]);
    let replica = replica_elsewhere(&server, &primary);
    assert!(replica.outbox().is_none() && server.table([family("f")]).outbox().is_none());
    let memory = &server.env.memory;
    let rung = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let bell = rung.clone();
    primary.outbox().expect("there").on_news(move || _ = bell.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    assert_eq!(tell(&server, &primary, &replica), (1, true), "it has opened, and names its files");
    let before = rung.load(std::sync::atomic::Ordering::SeqCst);
    let applied = primary.apply(&[put("a", "f", "q", 1, "v")]).expect("applied");
    assert!(memory.outbox_bytes() > 0);
    assert!(primary.outbox().expect("there").take(1 << 20).is_empty(), "the log does not have it yet");
    applied.commit.wait().expect("durable");
    assert!(rung.load(std::sync::atomic::Ordering::SeqCst) > before);
    assert_eq!(tell(&server, &primary, &replica), (1, false));
    assert_eq!((rows(&replica), memory.outbox_bytes()), (rows(&primary), 0));
    for round in 0..20 {
        write(&primary, &[put(&format!("r{round}"), "f", "q", 1, "v"), put("a", "g", "q", round, "v")]);
        if round % 7 == 3 {
            flush(&primary);
            major_compact(&primary);
        }
    }
    tell(&server, &primary, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    write(&primary, &[put("z", "f", "q", 1, "v")]);
    primary.close(CloseMode::Flush).expect("closed");
    tell(&server, &primary, &replica);
    assert_eq!(replica.memstore_bytes(), 0, "the last flush was told");
    write_more_and_drop(&server, primary);
}

fn write_more_and_drop(server: &Server, primary: Arc<Region>) {
    let again = server.open(primary.info(), primary.table()).expect("opened");
    write(&again, &[put("y", "f", "q", 1, "v")]);
    assert!(server.env.memory.outbox_bytes() > 0);
    drop((primary, again));
    assert_eq!(server.env.memory.outbox_bytes(), 0);
}

#[test]
fn where_there_is_no_room_a_flush_stands_for_what_was_forgotten() {
    let server = telling(4096);
    let primary = replicated(&server, &[]);
    let replica = replica_elsewhere(&server, &primary);
    tell(&server, &primary, &replica);
    let outbox = || primary.outbox().expect("there");
    for round in 0..30 {
        write(
            &primary,
            &[put(&format!("r{round}"), "f", "q", 1, "a value of some bytes"), put("a", "g", "q", round, "v")],
        );
    }
    assert!(outbox().wants_flush() && outbox().forgotten() > 0 && server.env.memory.outbox_bytes() <= 4096);
    assert_eq!(primary.needs_flush(), Some(basalt_region::FlushReason::Replicas));
    assert_eq!(tell(&server, &primary, &replica), (0, false));
    // One family's flush does not stand for all.
    primary.flush(&FlushRequest { families: vec!["f".into()], ..FlushRequest::default() }).expect("flushed");
    assert!(outbox().wants_flush() && tell(&server, &primary, &replica).0 == 0);
    flush(&primary);
    write(&primary, &[put("later", "f", "q", 1, "v")]);
    assert!(!outbox().wants_flush());
    assert!(tell(&server, &primary, &replica).1, "all files are named");
    assert_eq!(rows(&replica), rows(&primary));
    assert_eq!(primary.needs_flush(), None);

    // At most every 30 s; and where nothing is in memory the files are named without a flush.
    outbox().want_all_files(false);
    assert!(outbox().wants_flush());
    assert_eq!(primary.needs_flush(), None);
    server.clock.advance_ms(30_000);
    assert_eq!(primary.needs_flush(), Some(basalt_region::FlushReason::Replicas));
    flush(&primary);
    tell(&server, &primary, &replica);
    outbox().want_all_files(false);
    assert!(!primary.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("asked").flushed);
    assert!(tell(&server, &primary, &replica).1 && !outbox().wants_flush());
    assert_eq!(rows(&replica), rows(&primary));

    // One that fails stands for nothing.
    for round in 0..30 {
        write(&primary, &[put(&format!("s{round}"), "f", "q", 1, "a value of some bytes")]);
    }
    fail_to_flush(&server, &primary, "/.tmp/");
    assert!(outbox().wants_flush() && tell(&server, &primary, &replica).0 == 0);
    flush(&primary);
    assert!(tell(&server, &primary, &replica).1);
    assert_eq!(rows(&replica), rows(&primary));

    outbox().switch_off();
    write(&primary, &[put("nobody", "f", "q", 1, "v")]);
    outbox().want_all_files(false);
    assert!(!outbox().wants_flush() && server.env.memory.outbox_bytes() == 0);
}

/// There is no room for files whose paths contain that.
fn fail_to_flush(server: &Server, primary: &Region, path_contains: &str) {
    let path_contains = Some(path_contains.to_owned());
    server.env.log.sync_once().expect("synced");
    server.volume.inject(fs::mem::Fault { op: None, path_contains, nth: 1, kind: fs::FaultKind::Full, forever: true });
    primary.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect_err("full");
    server.volume.clear_faults();
}

/// A second replica that comes a moment after the first does not wait until half a minute has passed since the flush for that one, and the first
/// is told of everything meanwhile.
#[test]
fn one_that_comes_is_told_of_all_files_at_once_and_nobody_waits_for_one_that_fails() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[]);
    let outbox = || primary.outbox().expect("there");
    let first = replica_elsewhere(&server, &primary);
    outbox().want_all_files(true);
    flush(&primary);
    assert!(tell(&server, &primary, &first).1);
    write(&primary, &[put("a", "f", "q", 1, "v")]);
    outbox().want_all_files(false);
    assert_eq!(primary.needs_flush(), None, "it has failed, and waits");
    assert_eq!(tell(&server, &primary, &first), (1, false), "the other hears of the edit");
    outbox().want_all_files(true);
    assert_eq!(primary.needs_flush(), Some(basalt_region::FlushReason::Replicas), "it has come: at once");
    // What was not told before the flush begins comes before its files, and what is written after it behind them; one that fails forgets nothing.
    write(&primary, &[put("b", "f", "q", 1, "v")]);
    fail_to_flush(&server, &primary, "/.tmp/");
    write(&primary, &[put("c", "g", "q", 1, "v")]);
    assert!(outbox().wants_flush() && !tell(&server, &primary, &first).1);
    assert_eq!((rows(&first), outbox().forgotten()), (rows(&primary), 0));
    flush(&primary);
    let second = replica_elsewhere(&server, &primary);
    write(&primary, &[put("d", "f", "q", 1, "v")]);
    assert!(tell(&server, &primary, &first).1);
    assert_eq!((rows(&first), primary.needs_flush()), (rows(&primary), None));
    // A replica's opening asks for a flush, which names all files for the sake of who was not found before.
    outbox().replica_opened();
    flush(&primary);
    write(&primary, &[put("e", "f", "q", 1, "v")]);
    assert!(tell(&server, &primary, &second).1);
    assert_eq!((rows(&second), outbox().openings()), (rows(&primary), 1));
}

/// While a flush of everything runs nothing that comes after its beginning is given out, and its end rings.
#[test]
fn what_is_written_while_a_flush_runs_is_told_behind_its_files() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[]);
    let replica = replica_elsewhere(&server, &primary);
    tell(&server, &primary, &replica);
    write(&primary, &[put("a", "f", "q", 1, "v")]);
    primary.outbox().expect("there").want_all_files(true);
    let rung = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let bell = rung.clone();
    let rings = move || _ = bell.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    primary.outbox().expect("there").on_news(rings);
    server.env.log.sync_once().expect("synced");
    let meanwhile = Arc::new(parking_lot::Mutex::new(Some((server.env.clone(), primary.clone(), replica.clone()))));
    let seen = meanwhile.clone();
    server.volume.watch(Some(Arc::new(move |_, path| {
        let first = path.as_str().contains("/.tmp/").then(|| seen.lock().take()).flatten();
        let Some((env, primary, replica)) = first else { return };
        write(&primary, &[put("b", "f", "q", 1, "v")]);
        let (told, whole) = tell_from(&env.log, &primary, &replica);
        assert!(told >= 1 && !whole);
        assert_eq!(rows(&replica), ["a/f:q/1/Put=v"]);
    })));
    let before = rung.load(std::sync::atomic::Ordering::SeqCst);
    flush(&primary);
    server.volume.watch(None);
    assert!(meanwhile.lock().is_none(), "it was seen");
    assert!(rung.load(std::sync::atomic::Ordering::SeqCst) > before);
    assert!(tell(&server, &primary, &replica).1);
    assert_eq!(rows(&replica), rows(&primary));
}

#[test]
fn a_table_without_memstore_replication_tells_of_files_alone() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[("REGION_MEMSTORE_REPLICATION", "false")]);
    let replica = replica_elsewhere(&server, &primary);
    write(&primary, &[put("a", "f", "q", 1, "v")]);
    tell(&server, &primary, &replica);
    assert!(rows(&replica).is_empty());
    flush(&primary);
    tell(&server, &primary, &replica);
    assert_eq!((rows(&replica), replica.memstore_bytes()), (rows(&primary), 0));
}

#[test]
fn a_region_with_nothing_to_flush_says_so() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[]);
    let replica = replica_elsewhere(&server, &primary);
    tell(&server, &primary, &replica);
    replica.set_reads_enabled(false);
    assert!(primary.tell_nothing_to_flush() && !replica.tell_nothing_to_flush());
    tell(&server, &primary, &replica);
    assert!(!replica.are_reads_disabled());
    write(&primary, &[put("a", "f", "q", 1, "v")]);
    assert!(!primary.tell_nothing_to_flush(), "there is something");
}

/// A flush that failed goes on under its own id; what it wrote is told of, too.
#[test]
fn files_of_a_flush_that_failed_before_are_told_of() {
    let server = Server::new(NOW);
    let primary = server.table([family("f"), family("g")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    write(&primary, &[put("a", "f", "q", 1, "v"), put("a", "g", "q", 1, "v")]);
    fail_to_flush(&server, &primary, "/.tmp/");
    write(&primary, &[put("b", "f", "q", 1, "v")]);
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    flush(&primary);
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    assert_eq!(replica.memstore_bytes(), 0);
    assert_eq!(replica.store_file_paths(b"g"), primary.store_file_paths(b"g"));
}

/// The flush of one family failed after another's file was in place: a read replica never heard of that, and lost what it had of it in memory with the
/// next flush (seed 130175 of the simulated cluster).
#[test]
fn a_file_of_a_flush_that_failed_for_another_family_is_told_of() {
    let server = Server::new(NOW);
    let primary = server.table([family("f"), family("g")]);
    let replica = replica_elsewhere(&server, &primary);
    let mut shipment = Shipment::new();
    write(&primary, &[put("a", "f", "q", 1, "v"), put("a", "g", "q", 1, "v")]);
    fail_to_flush(&server, &primary, "/g/");
    assert_eq!(primary.store_file_paths(b"f").map(|paths| paths.len()), Some(1));
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    write(&primary, &[put("b", "f", "q", 1, "v")]);
    flush(&primary);
    ship_all(&server, &mut shipment, &replica);
    assert_eq!(rows(&replica), rows(&primary));
    assert_eq!(replica.memstore_bytes(), 0);
    for family in [b"f", b"g"] {
        assert_eq!(replica.store_file_paths(family), primary.store_file_paths(family));
    }
}

/// It was told of all files under a number that no file had, took whoever opened the region after a crash for an earlier primary, and heard nothing
/// more: it went on showing files that were removed (seed 90046 of the simulated cluster), or lacked what was written (90151).
#[test]
fn a_primary_that_opens_after_a_crash_is_heard() {
    let server = telling(1 << 20);
    let primary = replicated(&server, &[]);
    for value in ["v1", "v2"] {
        write(&primary, &[put("a", "f", "q", 1, value), put(value, "g", "q", 1, "v")]);
        flush(&primary);
    }
    let (info, table) = (primary.info().clone(), primary.table().clone());
    primary.close(CloseMode::Flush).expect("closed");

    // It opens, a replica is told of all files though there is nothing to flush, and the server crashes before it tells of a compaction.
    let server = telling_on(server.volume.clone(), 1 << 20, 2);
    let primary = server.open(&info, &table).expect("opened");
    let replica = replica_elsewhere(&server, &primary);
    for _ in 0..3 {
        primary.outbox().expect("there").want_all_files(true);
        assert!(!primary.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("asked").flushed);
        assert!(tell(&server, &primary, &replica).1, "all files are named");
    }
    major_compact(&primary);
    server.env.log.sync_once().expect("synced");
    primary.archive_compacted_files().expect("asked");
    server.volume.remove_dir_all(&FilePath::new("archive")).expect("deleted");
    let opened = primary.open_seq_id();
    drop(primary);

    // Its log has markers alone, with numbers that it had reported as flushed: whoever splits it drops them.
    server.volume.remove_dir_all(server.env.log.dir()).expect("deleted");
    let server = telling_on(server.volume.clone(), 1 << 20, 3);
    let primary = server.open(&info, &table).expect("opened");
    assert!(primary.open_seq_id() > opened, "nothing was written, and the opening was told of");
    tell(&server, &primary, &replica);
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    assert_eq!(rows(&replica), rows(&primary));
    write(&primary, &[put("b", "f", "q", 1, "v3")]);
    tell(&server, &primary, &replica);
    assert_eq!(rows(&replica), rows(&primary));

    // The numbers under which its files are named again are none that replicas do not hear.
    major_compact(&primary);
    flush(&primary);
    drop(primary);
    server.volume.remove_dir_all(server.env.log.dir()).expect("deleted");
    let server = telling_on(server.volume.clone(), 1 << 20, 4);
    let primary = server.open(&info, &table).expect("opened");
    tell(&server, &primary, &replica);
    write(&primary, &[put("c", "f", "q", 1, "v4"), put("c", "g", "q", 1, "v4")]);
    drop(primary);

    // One that opens with edits of a log tells of its opening under a number that is higher than the one it opens with.
    let server = telling_on(server.volume.clone(), 1 << 20, 5);
    let primary = server.open(&info, &table).expect("opened");
    tell(&server, &primary, &replica);
    major_compact(&primary);
    server.env.log.sync_once().expect("synced");
    primary.archive_compacted_files().expect("asked");
    server.volume.remove_dir_all(&FilePath::new("archive")).expect("deleted");
    let forgotten = primary.outbox().expect("there").take(usize::MAX);
    assert!(!forgotten.is_empty(), "the compactions were not told of");
    primary.outbox().expect("there").want_all_files(true);
    assert!(!primary.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("asked").flushed);
    assert!(tell(&server, &primary, &replica).1, "all files are named");
    assert_eq!(replica.store_file_paths(b"f"), primary.store_file_paths(b"f"));
    assert_eq!(rows(&replica), rows(&primary));
}
