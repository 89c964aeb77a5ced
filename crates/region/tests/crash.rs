//! Power failures: the machine stops at every single call to the volume, in turn, during a life with writes, partial
//! flushes, log rolls, compactions and re-openings; then the log is split, the region opened, and what it shows must be
//! what was acknowledged, with or without the one write that was under way. The same for a split, which is repeated
//! after the failure, and for disks that fail once and then work again.
//!
//! `BASALT_TEST_PROGRAMS=n` runs n lives instead of a few; `BASALT_TEST_SEED` says which comes first.

use crate::common::*;
use basalt_region::{CloseMode, CompactionKind, FlushRequest, Region, RegionError, Unthrottled, split};
use base::{Config, Rng, SeqId};
use bytes::Bytes;
use cell::CellType;
use fs::{CrashPolicy, FaultKind, MemVolume};
use model::{MutationKind, RegionInfo, Scan, TableDescriptor};
use std::collections::BTreeMap;
use std::sync::Arc;

const START: i64 = 1_700_000_000_000;
const POLICIES: [CrashPolicy; 4] =
    [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];

/// `row/family:qualifier` to value.
type State = BTreeMap<String, String>;

/// What was promised, and what was perhaps done.
#[derive(Clone, Default)]
struct Promises {
    acked: State,
    /// The state if the write that was under way happened.
    under_way: Option<State>,
    last_seq_id: Option<SeqId>,
}

struct Life {
    server: Server,
    table: Arc<TableDescriptor>,
    info: RegionInfo,
    region: Arc<Region>,
    rng: Rng,
    promises: Promises,
}

fn config() -> Config {
    let mut config = Config::default();
    config.set("hbase.hstore.compaction.min", "2");
    config.set("hbase.hregion.majorcompaction", "0");
    config
}

/// One in three keeps its files by windows of a few milliseconds, one by ranges of a few rows, so that a compaction or flush makes several.
fn table(seed: u64) -> Arc<TableDescriptor> {
    // What the directory holds are the files of the one, what a list says those of the other.
    let listed = family("g").with(rootdir::tracker::IMPL_KEY, "FILE");
    let mut table = TableDescriptor::new(table_name(), [family("f").with("BLOCKSIZE", "300"), listed]);
    if seed % 3 == 2 {
        let stripe = |key: &str| format!("hbase.store.stripe.{key}");
        table.configuration.insert("hbase.hstore.engine.class".into(), "StripeStoreEngine".into());
        for (key, value) in [
            ("initialStripeCount", "3"),
            ("compaction.minFiles", "2"),
            ("compaction.minFilesL0", "1"),
            ("sizeToSplit", "7000"),
        ] {
            table.configuration.insert(stripe(key), value.into());
        }
    }
    if seed % 3 == 1 {
        let tiered = |key: &str| format!("hbase.hstore.compaction.date.tiered.{key}");
        table.configuration.insert("hbase.hstore.engine.class".into(), "DateTieredStoreEngine".into());
        for (key, value) in [
            ("base.window.millis", "2"),
            ("windows.per.tier", "2"),
            ("incoming.window.min", "2"),
            ("single.output.for.minor.compaction", "false"),
        ] {
            table.configuration.insert(tiered(key), value.into());
        }
    }
    Arc::new(table)
}

#[derive(Debug)]
struct Stopped;

impl From<RegionError> for Stopped {
    fn from(_: RegionError) -> Stopped {
        Stopped
    }
}

impl From<wal::Error> for Stopped {
    fn from(_: wal::Error) -> Stopped {
        Stopped
    }
}

impl From<String> for Stopped {
    fn from(_: String) -> Stopped {
        Stopped
    }
}

impl Life {
    fn begin(volume: MemVolume, seed: u64) -> Result<Life, Stopped> {
        let server = Server::try_on(volume, START, &config(), seed)?;
        let (table, info) = (table(seed), whole_table());
        let region = server.open(&info, &table)?;
        Ok(Life { server, table, info, region, rng: Rng::seeded(seed), promises: Promises::default() })
    }

    fn row(&self) -> String {
        format!("row{:02}", self.rng.below(12))
    }

    fn write(&mut self) -> Result<(), Stopped> {
        self.server.clock.advance_ms(1);
        let mut after = self.promises.acked.clone();
        let row = self.row();
        let mutation = match self.rng.below(6) {
            0 => {
                after.retain(|place, _| !place.starts_with(&row));
                mutation(MutationKind::Delete, &row, &[])
            }
            1 => {
                after.remove(&format!("{row}/f:q1"));
                delete(&row, "f", "q1", LATEST, CellType::DeleteColumn)
            }
            _ => {
                let value = format!("v{}", self.rng.below(1_000_000)).repeat(1 + self.rng.below(20) as usize);
                let qualifier = format!("q{}", self.rng.below(3));
                // Both families or neither.
                let cells: Vec<Cell<'_>> = ["f", "g"]
                    .map(|family| (family, qualifier.as_str(), LATEST, CellType::Put, value.as_str()))
                    .to_vec();
                for family in ["f", "g"] {
                    after.insert(format!("{row}/{family}:{qualifier}"), value.clone());
                }
                mutation(MutationKind::Put, &row, &cells)
            }
        };
        self.promises.under_way = Some(after.clone());
        let applied = self.region.apply(&[mutation])?;
        for result in applied.results {
            result?;
        }
        let seq_id = applied.commit.seq_id();
        applied.commit.wait()?;
        self.promises = Promises { acked: after, under_way: None, last_seq_id: seq_id };
        Ok(())
    }

    fn writes(&mut self, count: usize) -> Result<(), Stopped> {
        (0..count).try_for_each(|_| self.write())
    }

    fn flush(&mut self, families: &[&'static str]) -> Result<(), Stopped> {
        let families = families.iter().map(|name| Bytes::from(*name)).collect();
        self.region.flush(&FlushRequest { families, all: true })?;
        Ok(())
    }

    fn compact(&mut self, kind: CompactionKind) -> Result<(), Stopped> {
        for family in ["f", "g"] {
            if let Some(job) = self.region.select_compaction(Some(family.as_bytes()), kind)? {
                self.region.compact(job, &Unthrottled)?;
            }
        }
        Ok(())
    }

    fn roll(&mut self) -> Result<(), Stopped> {
        self.server.env.log.roll()?;
        self.server.env.log.archive_flushed()?;
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Stopped> {
        self.region.close(CloseMode::Flush)?;
        self.region = self.server.open(&self.info, &self.table)?;
        Ok(())
    }

    /// One life of a region, the same for the same seed.
    fn live(&mut self) -> Result<(), Stopped> {
        self.writes(4)?;
        self.flush(&["f"])?;
        self.roll()?;
        self.writes(3)?;
        self.flush(&[])?;
        self.writes(2)?;
        self.flush(&["g"])?;
        self.compact(CompactionKind::Minor)?;
        self.roll()?;
        self.writes(2)?;
        for _ in 0..6 {
            match self.rng.below(7) {
                0 => self.flush(&[])?,
                1 => self.flush(&["f"])?,
                2 => self.compact(CompactionKind::Major)?,
                3 => self.compact(CompactionKind::Minor)?,
                4 => self.roll()?,
                5 => self.reopen()?,
                _ => {
                    self.region.archive_compacted_files()?;
                }
            }
            self.writes(1)?;
        }
        Ok(())
    }
}

fn state_of(region: &Arc<Region>) -> State {
    let mut state = State::new();
    for cell in scan(region, &Scan::default(), 0).concat() {
        let (place, value) = cell.split_once("/Put=").expect("only puts are shown");
        let (place, _timestamp) = place.rsplit_once('/').expect("a timestamp");
        state.insert(place.to_owned(), value.to_owned());
    }
    state
}

fn recover(volume: MemVolume, seed: u64, promises: &Promises, what: &str) {
    recover_by(volume.snapshot(), seed, promises, &format!("{what}, logs taken over"), true);
    recover_by(volume, seed, promises, what, false);
}

fn recover_by(volume: MemVolume, seed: u64, promises: &Promises, what: &str, inherits: bool) {
    let server = Server::after(volume, START + 1_000_000, &config(), 77, inherits)
        .unwrap_or_else(|error| panic!("{what}: the log cannot be read: {error}"));
    let (table, info) = (table(seed), whole_table());
    let region = server.open(&info, &table).unwrap_or_else(|error| panic!("{what}: the region does not open: {error}"));
    let seen = state_of(&region);
    if seen != promises.acked {
        assert_eq!(Some(&seen), promises.under_way.as_ref(), "{what}: acknowledged: {:#?}", promises.acked);
    }
    if let Some(seq_id) = promises.last_seq_id {
        assert!(region.open_seq_id() > seq_id, "{what}: ids go back from {seq_id} to {}", region.open_seq_id());
    }
    // It goes on working, through a compaction and one more opening.
    write(&region, &[put("zz", "f", "q", LATEST, "after")]);
    flush(&region);
    major_compact(&region);
    region.close(CloseMode::Flush).unwrap_or_else(|error| panic!("{what}: close: {error}"));
    let region = server.open(&info, &table).unwrap_or_else(|error| panic!("{what}: second opening: {error}"));
    let mut expected = seen;
    expected.insert("zz/f:q".into(), "after".into());
    assert_eq!(state_of(&region), expected, "{what}: after the second opening");
}

fn calls_of_life(seed: u64) -> u64 {
    let volume = MemVolume::new();
    let mut life = Life::begin(volume.clone(), seed).expect("no faults");
    life.live().expect("no faults");
    assert_eq!(state_of(&life.region), life.promises.acked, "seed {seed}, without any failure");
    volume.op_count()
}

#[test]
fn a_power_failure_at_any_call_loses_nothing_acknowledged() {
    let (first, count) = programs(3);
    for seed in first..first + count {
        let calls = calls_of_life(seed);
        assert!(calls > 100, "a life of {calls} calls is not worth stopping");
        for stop in 0..calls {
            let volume = MemVolume::new();
            volume.stop_after(stop);
            let mut promises = Promises::default();
            if let Ok(mut life) = Life::begin(volume.clone(), seed) {
                let ended = life.live();
                assert!(ended.is_err() || stop + 24 >= calls, "stopped after {stop} of {calls} and nobody noticed");
                promises = life.promises.clone();
            }
            let policy = POLICIES[(stop % 4) as usize];
            let what = format!("BASALT_TEST_SEED={seed}, stopped after call {stop} of {calls}, {policy:?}");
            recover(volume.crash(&Rng::seeded(seed * 1000 + stop), policy), seed, &promises, &what);
        }
    }
}

#[test]
fn a_disk_that_fails_once_loses_nothing() {
    let (first, count) = programs(2);
    for seed in first..first + count {
        let calls = calls_of_life(seed);
        for nth in (1..calls).step_by(3) {
            let volume = MemVolume::new();
            let kind = if nth % 2 == 0 { FaultKind::Io } else { FaultKind::Full };
            volume.fail_op(nth, kind);
            let what = format!("BASALT_TEST_SEED={seed}, call {nth} of {calls} fails with {kind:?}");
            let Ok(mut life) = Life::begin(volume.clone(), seed) else { continue };
            // What fails is given up; life goes on as far as it can.
            let mut lost = false;
            for _ in 0..3 {
                if life.live().is_err() {
                    lost |= life.promises.under_way.is_some();
                    // The write may have happened or not, and may still become visible: from here on one cannot say.
                    if lost {
                        break;
                    }
                }
            }
            let promises = life.promises.clone();
            drop(life);
            recover(volume.crash(&Rng::seeded(nth), CrashPolicy::LoseUnsynced), seed, &promises, &what);
        }
    }
}

fn daughters(parent: &RegionInfo, at: &[u8]) -> [RegionInfo; 2] {
    let id = parent.region_id + 1;
    let split_row = Bytes::copy_from_slice(at);
    [
        RegionInfo::new(table_name(), Bytes::new(), split_row.clone(), id),
        RegionInfo::new(table_name(), split_row, Bytes::new(), id),
    ]
}

#[test]
fn a_split_stopped_anywhere_can_be_repeated() {
    let seed = 5;
    let base = MemVolume::new();
    let mut life = Life::begin(base.clone(), seed).expect("no faults");
    life.live().expect("no faults");
    life.writes(30).expect("no faults");
    life.flush(&[]).expect("no faults");
    life.region.close(CloseMode::Flush).expect("no faults");
    life.server.env.log.close().expect("no faults");
    let before = life.promises.acked.clone();
    let parent_last = life.promises.last_seq_id.expect("writes were made");
    let parent = whole_table();
    let [bottom, top] = daughters(&parent, b"row06");
    let table = table(seed);
    for stop in 0..800 {
        let volume = base.snapshot();
        let server = Server::try_on(volume.clone(), START + 50, &config(), seed).expect("no faults yet");
        volume.stop_after(stop);
        let done = split::write_daughters(&server.env, &parent, &table, [&bottom, &top]).is_ok();
        let what = format!("split stopped after call {stop}");
        let policy = POLICIES[(stop % 4) as usize];
        let after = volume.crash(&Rng::seeded(stop), policy);
        let server = Server::try_on(after, START + 100, &config(), seed + 1).expect("recovered");
        if !done {
            split::write_daughters(&server.env, &parent, &table, [&bottom, &top])
                .unwrap_or_else(|error| panic!("{what}: cannot be repeated: {error}"));
        }
        let mut seen = State::new();
        let mut opened = Vec::new();
        for daughter in [&bottom, &top] {
            let region = server.open(daughter, &table).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(region.open_seq_id() > parent_last, "{what}: ids go back");
            for (place, value) in state_of(&region) {
                assert!(daughter.contains(place.as_bytes()), "{what}: {place} is not of {}", daughter.name_string());
                assert!(seen.insert(place, value).is_none(), "{what}: in both daughters");
            }
            opened.push(region);
        }
        assert_eq!(seen, before, "{what}");
        for (daughter, region) in [&bottom, &top].into_iter().zip(&opened) {
            assert!(region.splitter().has_references(), "{what}");
            assert!(region.needs_compaction(), "{what}: a daughter wants files of its own");
            let split_once = split::write_daughters(&server.env, daughter, &table, [&bottom, &top]);
            assert!(split_once.is_err(), "{what}: a region with references is not split");
            for family in ["f", "g"] {
                if let Some(job) =
                    region.select_compaction(Some(family.as_bytes()), CompactionKind::Minor).expect("open")
                {
                    assert!(region.compact(job, &Unthrottled).expect("compacted").completed);
                }
            }
            region.archive_compacted_files().expect("archived");
            assert!(!region.splitter().has_references(), "{what}");
            assert!(!split::has_references(&*server.env.volume, daughter, &table).expect("listed"), "{what}");
        }
        rootdir::archive_region_dir(&*server.env.volume, &rootdir::region_dir(&parent)).expect("archived");
        let still: State = opened.iter().flat_map(state_of).collect();
        assert_eq!(still, before, "{what}: after the parent went");
        if done {
            return;
        }
    }
    panic!("a split takes more than 800 calls");
}
