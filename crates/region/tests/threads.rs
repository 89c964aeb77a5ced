//! Many threads at once: writers, counters, readers, scanners, and one that flushes, compacts and archives. Rows are
//! whole to every reader, counters count, nobody waits for ever.

use crate::common::*;
use basalt_region::{CompactionKind, FlushRequest, Limits, Region, Unthrottled};
use base::{Config, Rng};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellSpec, CellType};
use fs::MemVolume;
use hfile::Residency;
use model::{Get, Mutation, MutationKind, Nonce, Scan};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ROWS: u64 = 16;
const WRITERS: u64 = 3;

fn region() -> (Server, Arc<Region>) {
    let mut config = Config::default();
    config.set("hbase.hstore.compaction.min", "2");
    let server = Server::try_on(MemVolume::new(), 1_700_000_000_000, &config, 3).expect("a volume in memory");
    let region = server.table([family("f").with("BLOCKSIZE", "500"), family("g")]);
    (server, region)
}

/// The same value in both families and three columns: a reader must see one value.
fn whole_row(row: u64, value: &str) -> Mutation {
    let row = format!("row{row:02}");
    let cells: Vec<Cell<'_>> = ["f", "g"]
        .into_iter()
        .flat_map(|family| ["a", "b", "c"].map(|qualifier| (family, qualifier, LATEST, CellType::Put, value)))
        .collect();
    mutation(MutationKind::Put, &row, &cells)
}

fn check_row(cells: &CellBuffer, from: usize) {
    let values: Vec<&[u8]> = (from..cells.len()).map(|i| cells.get(i).value()).collect();
    assert_eq!(values.len(), 6, "{:?}", show_all(cells, 0));
    assert!(values.iter().all(|value| *value == values[0]), "a row in pieces: {:?}", show_all(cells, 0));
}

fn add_one(row: &str) -> Mutation {
    let amount = 1i64.to_be_bytes();
    let spec = CellSpec {
        row: row.as_bytes(),
        family: b"f",
        qualifier: b"n",
        timestamp: LATEST,
        type_code: CellType::Put.code(),
        value: &amount,
        tags: b"",
    };
    Mutation::new(MutationKind::Increment, Bytes::copy_from_slice(row.as_bytes()), CellBlock::from_specs([spec]))
}

#[test]
fn rows_stay_whole_and_counters_count() {
    let (_, rounds) = programs(400);
    let (server, region) = region();
    for row in 0..ROWS {
        write(&region, &[whole_row(row, "first")]);
    }
    let (done, added) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for writer in 0..WRITERS {
            let (region, added, clock) = (&region, &added, &server.clock);
            workers.push(scope.spawn(move || {
                let rng = Rng::seeded(writer);
                for i in 0..rounds {
                    clock.advance_ms(1);
                    let value = format!("w{writer}-{i}");
                    let rows: Vec<Mutation> =
                        (0..1 + rng.below(3)).map(|_| whole_row(rng.below(ROWS), &value)).collect();
                    write(region, &rows);
                    let written = region.increment_or_append(&add_one("counter")).expect("accepted");
                    written.commit.wait().expect("durable");
                    added.fetch_add(1, Ordering::SeqCst);
                    // A write is visible to its writer when it has returned.
                    let mut out = CellBuffer::new();
                    let get = Get { columns: BTreeMap::from([(Bytes::from("f"), vec![])]), ..Get::new("counter") };
                    region.get(&get, &mut out, Residency::MayRead).expect("read");
                    let value = i64::from_be_bytes(out.get(0).value().try_into().expect("8 bytes")) as u64;
                    assert!(value > i, "{value} is less than this writer alone has added");
                }
            }));
        }
        for reader in 0..2u64 {
            let (region, done) = (&region, &done);
            scope.spawn(move || {
                let rng = Rng::seeded(100 + reader);
                while !done.load(Ordering::SeqCst) {
                    let mut out = CellBuffer::new();
                    let row = format!("row{:02}", rng.below(ROWS));
                    region.get(&Get::new(row), &mut out, Residency::MayRead).expect("read");
                    check_row(&out, 0);
                    let scan = Scan { start_row: Bytes::from("row"), reversed: reader == 1, ..Scan::default() };
                    let scan = if reader == 1 {
                        Scan { start_row: Bytes::from("s"), stop_row: Bytes::from("row"), ..scan }
                    } else {
                        scan
                    };
                    let mut scanner = region.scanner(&scan).expect("opened");
                    let mut rows = 0;
                    loop {
                        let mut out = CellBuffer::new();
                        let progress = scanner.next(&mut Limits::NONE.clone(), &mut out).expect("read");
                        if !out.is_empty() {
                            check_row(&out, 0);
                            rows += 1;
                        }
                        if !progress.more {
                            break;
                        }
                    }
                    assert_eq!(rows, ROWS);
                }
            });
        }
        let housekeeper = scope.spawn(|| {
            let rng = Rng::seeded(9);
            while !done.load(Ordering::SeqCst) {
                region.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("flushed");
                let kind = if rng.one_in(3) { CompactionKind::Major } else { CompactionKind::Minor };
                if let Some(job) = region.select_compaction(None, kind).expect("open") {
                    region.compact(job, &Unthrottled).expect("compacted");
                }
                region.archive_compacted_files().expect("archived");
                server.env.log.roll().expect("rolled");
                server.env.log.archive_flushed().expect("archived");
            }
        });
        for worker in workers {
            worker.join().expect("no panic");
        }
        done.store(true, Ordering::SeqCst);
        housekeeper.join().expect("no panic");
    });
    let counter = get(&region, &Get::new("counter"), 0);
    assert_eq!(counter.len(), 1);
    let mut out = CellBuffer::new();
    region.get(&Get::new("counter"), &mut out, Residency::MayRead).expect("read");
    let value = i64::from_be_bytes(out.get(0).value().try_into().expect("8 bytes"));
    assert_eq!(value as u64, added.load(Ordering::SeqCst));
}

#[test]
fn replayed_nonces_come_back_once() {
    let (server, region) = region();
    let mut increment = add_one("r");
    increment.nonce = Some(Nonce { group: 7, number: 8 });
    region.increment_or_append(&increment).expect("accepted").commit.wait().expect("durable");
    let (info, table) = (region.info().clone(), region.table().clone());
    // The server dies: its log is split by the next one.
    let server = Server::try_on(server.volume, 1_700_000_001_000, &Config::default(), 4).expect("recovered");
    let region = server.open(&info, &table).expect("opened");
    let nonces = region.recovered_nonces();
    assert_eq!(nonces.len(), 1);
    assert_eq!((nonces[0].nonce, nonces[0].write_time_ms), (Nonce { group: 7, number: 8 }, 1_700_000_000_000));
    assert!(region.recovered_nonces().is_empty());
}

#[test]
fn a_nonce_outlives_flushes_and_a_second_crash() {
    let (server, region) = region();
    let mut increment = add_one("r");
    let nonce = Nonce { group: 7, number: 8 };
    increment.nonce = Some(nonce);
    region.increment_or_append(&increment).expect("accepted").commit.wait().expect("durable");
    // Its edit is in a file, so that nothing but the nonce is left to recover.
    region.flush(&FlushRequest { families: Vec::new(), all: true }).expect("flushed");
    let (info, table) = (region.info().clone(), region.table().clone());
    let mut volume = server.volume;
    for life in 1..4 {
        // Each life dies right after it opened the region.
        let server =
            Server::try_on(volume, 1_700_000_000_000 + life, &Config::default(), life as u64).expect("recovered");
        let region = server.open(&info, &table).expect("opened");
        let nonces = region.recovered_nonces();
        assert!(nonces.iter().any(|recovered| recovered.nonce == nonce), "life {life}: {nonces:?}");
        volume = server.volume;
    }
}

/// How long is `hbase.server.hashNonce.evictTimeout`, for those that a log brings back too.
#[test]
fn a_recovered_nonce_lives_as_long_as_the_setting_says() {
    const HOUR_MS: i64 = 3_600_000;
    for (timeout_ms, inherits) in [("60000", false), ("7200000", false), ("60000", true), ("7200000", true)] {
        let lives = timeout_ms == "7200000";
        let mut config = Config::default();
        config.set("hbase.server.hashNonce.evictTimeout", timeout_ms);
        let (server, region) = region();
        let nonce = Nonce { group: 7, number: 8 };
        let increment = model::Mutation { nonce: Some(nonce), ..add_one("r") };
        region.increment_or_append(&increment).expect("accepted").commit.wait().expect("durable");
        let (info, table, mut volume) = (region.info().clone(), region.table().clone(), server.volume);
        for life in 1..3 {
            let now_ms = 1_700_000_000_000 + HOUR_MS + life;
            let server = Server::after(volume, now_ms, &config, life as u64, inherits).expect("recovered");
            let region = server.open(&info, &table).expect("opened");
            let found = region.recovered_nonces().iter().any(|recovered| recovered.nonce == nonce);
            assert_eq!(found, lives, "{timeout_ms} ms, life {life}, inherits: {inherits}");
            volume = server.volume;
        }
    }
}
