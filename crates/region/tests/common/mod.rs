//! What the tests of the region share: a server's worth of environment in memory, mutations and reads in short form.

#![allow(dead_code, reason = "each test takes what it needs")]

pub mod tar;

use basalt_region::{
    CompactionKind, FlushRequest, Limits, MemoryMeter, OpenRegion, Region, RegionDirectories, RegionEnv, RegionError,
    RegionSettings, Unthrottled,
};
use base::{Config, ManualClock, Rng, SeqId};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellRef, CellSpec, CellType};
use fs::{FilePath, MemVolume, Volume};
use hfile::Residency;
use model::{FamilyDescriptor, Get, Mutation, MutationKind, RegionInfo, Scan, TableDescriptor, TableName};
use std::sync::Arc;

pub const SERVER: &str = "localhost,16020,1700000000000";

/// A server: its volume, clock and log.
pub struct Server {
    pub volume: MemVolume,
    pub clock: Arc<ManualClock>,
    pub rng: Arc<Rng>,
    pub env: Arc<RegionEnv>,
}

impl Server {
    /// On an empty volume.
    pub fn new(now_ms: i64) -> Server {
        Server::try_on(MemVolume::new(), now_ms, &Config::default(), 1).expect("an empty volume")
    }

    /// On what a server before left. Logs that are there are split first.
    pub fn try_on(volume: MemVolume, now_ms: i64, config: &Config, seed: u64) -> Result<Server, String> {
        Server::after(volume, now_ms, config, seed, false)
    }

    /// As [`Server::try_on`]; with `inherits` the new log takes the old ones over.
    pub fn after(volume: MemVolume, now_ms: i64, config: &Config, seed: u64, inherits: bool) -> Result<Server, String> {
        let clock = Arc::new(ManualClock::new(now_ms));
        let shared: Arc<dyn Volume> = Arc::new(volume.clone());
        let wals = rootdir::wals_dir();
        let old = rootdir::old_wals_dir();
        shared.create_dir_all_durable(&old).map_err(|e| e.to_string())?;
        let mut recovered = wal::RecoveredLogs::default();
        if inherits && shared.exists(&wals).map_err(|e| e.to_string())? {
            for entry in shared.list(&wals).map_err(|e| e.to_string())? {
                let gathered = read_logs(&*shared, &wals.join(&entry.name)).map_err(|e| e.to_string())?;
                recovered.append(gathered.others);
            }
        } else if shared.exists(&wals).map_err(|e| e.to_string())? {
            for entry in shared.list(&wals).map_err(|e| e.to_string())? {
                let mut target = RegionDirectories { volume: &*shared };
                wal::split_directory(
                    &*shared,
                    &wals.join(&entry.name),
                    &old,
                    &mut target,
                    &wal::SplitOptions::default(),
                )
                .map_err(|e| e.to_string())?;
            }
        }
        let dir = wals.join(format!("server-{now_ms}-{seed}"));
        let sync_mode = wal::LogOptions::from_config(config).sync_mode;
        let options = wal::LogOptions { archive_dir: old, sync_mode, ..wal::LogOptions::default() };
        let log = wal::Log::create(shared.clone(), dir, SERVER, options, clock.clone()).map_err(|e| e.to_string())?;
        log.adopt_recovered(recovered);
        let rng = Arc::new(Rng::seeded(seed));
        let env = Arc::new(RegionEnv {
            volume: shared.clone(),
            log,
            clock: clock.clone(),
            rng: rng.clone(),
            dictionaries: hfile::Dictionaries::from_files({
                let volume = shared.clone();
                move |path| match volume.read(&FilePath::new(path)) {
                    Ok(bytes) => Ok(bytes.to_vec()),
                    Err(error) => Err(error.to_string()),
                }
            }),
            cache: hfile::BlockCache::new(16 << 20),
            settings: RegionSettings::from_config(config).shared(),
            memory: MemoryMeter::new(),
            ticks: Arc::default(),
            keys: Arc::default(),
            server_name: SERVER.parse().expect("a server's name"),
        });
        Ok(Server { volume, clock, rng, env })
    }

    pub fn open(&self, info: &RegionInfo, table: &Arc<TableDescriptor>) -> Result<Arc<Region>, RegionError> {
        Region::open(OpenRegion { info: info.clone(), table: table.clone(), env: self.env.clone() })
    }

    /// The only region of a new table.
    pub fn table(&self, families: impl IntoIterator<Item = FamilyDescriptor>) -> Arc<Region> {
        let table = Arc::new(TableDescriptor::new(table_name(), families));
        self.open(&whole_table(), &table).expect("a new region opens")
    }
}

/// What another server would hand to a region: the same volume, and memory of its own.
pub fn another_server(server: &Server) -> Arc<RegionEnv> {
    Arc::new(RegionEnv {
        memory: MemoryMeter::new(),
        cache: hfile::BlockCache::new(16 << 20),
        server_name: "localhost,16021,1700000000001".parse().expect("a server's name"),
        ..RegionEnv::clone(&server.env)
    })
}

fn read_logs(volume: &dyn Volume, dir: &FilePath) -> wal::Result<wal::Gathered> {
    let budget = wal::HoldBudget::new(u64::MAX);
    let read = |name: &str| wal::ReadLog::read(volume, &dir.join(name), &budget, base::TimestampMs(0), &|_| true);
    let logs: wal::Result<Option<Vec<_>>> = volume.list(dir)?.iter().map(|entry| read(&entry.name)).collect();
    let mut target = RegionDirectories { volume };
    Ok(wal::gather(logs?.expect("there is room, and syncs do not fail"), &mut target)?.expect("there is no hbase:meta"))
}

pub fn table_name() -> TableName {
    TableName::parse("t").expect("legal")
}

pub fn whole_table() -> RegionInfo {
    RegionInfo::new(table_name(), Bytes::new(), Bytes::new(), 1_700_000_000_000)
}

pub fn family(name: &'static str) -> FamilyDescriptor {
    FamilyDescriptor::new(name)
}

/// Writes, flushes and compacts two rows of family f, so that the log has a compaction's marker that nothing in files stands for; the highest id then.
pub fn leave_a_marker(server: &Server, region: &Arc<Region>) -> u64 {
    for row in ["a", "b"] {
        write(region, &[put(row, "f", "q", 1, "v")]);
        flush(region);
    }
    major_compact(region);
    server.env.log.sync_once().expect("synced");
    region.stats().max_seq_id
}

/// (family, qualifier, timestamp or LATEST, type, value).
pub type Cell<'a> = (&'a str, &'a str, i64, CellType, &'a str);

pub const LATEST: i64 = i64::MAX;

pub fn mutation(kind: MutationKind, row: &str, cells: &[Cell<'_>]) -> Mutation {
    let specs = cells.iter().map(|(family, qualifier, timestamp, cell_type, value)| CellSpec {
        row: row.as_bytes(),
        family: family.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: *timestamp,
        type_code: cell_type.code(),
        value: value.as_bytes(),
        tags: b"",
    });
    Mutation::new(kind, Bytes::copy_from_slice(row.as_bytes()), CellBlock::from_specs(specs))
}

pub fn put(row: &str, family: &str, qualifier: &str, timestamp: i64, value: &str) -> Mutation {
    mutation(MutationKind::Put, row, &[(family, qualifier, timestamp, CellType::Put, value)])
}

pub fn delete(row: &str, family: &str, qualifier: &str, timestamp: i64, cell_type: CellType) -> Mutation {
    mutation(MutationKind::Delete, row, &[(family, qualifier, timestamp, cell_type, "")])
}

/// Applies and makes visible; every mutation must succeed.
pub fn write(region: &Region, mutations: &[Mutation]) {
    let applied = region.apply(mutations).expect("applied");
    assert_eq!((applied.results.len(), applied.wait_ms), (mutations.len(), None), "the clock must be moved");
    for result in applied.results {
        result.expect("accepted");
    }
    applied.commit.wait().expect("durable");
}

pub fn flush(region: &Region) {
    region.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("flushed");
}

pub fn major_compact(region: &Arc<Region>) {
    let families: Vec<Bytes> = region.table().families.keys().cloned().collect();
    for family in families {
        if let Some(job) = region.select_compaction(Some(&family), CompactionKind::Major).expect("open") {
            assert!(region.compact(job, &Unthrottled).expect("compacted").completed);
        }
    }
}

/// `row/family:qualifier/timestamp/Type=value`, the timestamp relative to `base`.
pub fn show(cell: CellRef<'_>, base: i64) -> String {
    let type_name = CellType::from_code(cell.type_code()).map_or("?".into(), |t| format!("{t:?}"));
    format!(
        "{}/{}:{}/{}/{type_name}={}",
        cell::print::to_string_binary(cell.row()),
        cell::print::to_string_binary(cell.family()),
        cell::print::to_string_binary(cell.qualifier()),
        cell.timestamp() - base,
        cell::print::to_string_binary(cell.value())
    )
}

pub fn show_all(cells: &CellBuffer, base: i64) -> Vec<String> {
    cells.iter_from(0).map(|cell| show(cell, base)).collect()
}

pub fn get(region: &Region, get: &Get, base: i64) -> Vec<String> {
    let mut out = CellBuffer::new();
    region.get(get, &mut out, Residency::MayRead).expect("read");
    show_all(&out, base)
}

/// All steps of a scan.
pub fn scan(region: &Arc<Region>, scan: &Scan, base: i64) -> Vec<Vec<String>> {
    scan_limited(region, scan, &Limits { batch_cells: scan.batch.unwrap_or(0), ..Limits::NONE }, base)
}

pub fn scan_limited(region: &Arc<Region>, scan: &Scan, limits: &Limits, base: i64) -> Vec<Vec<String>> {
    let mut scanner = region.scanner(scan).expect("opened");
    let mut pieces = Vec::new();
    loop {
        let mut out = CellBuffer::new();
        let progress = scanner.next(&mut limits.clone(), &mut out).expect("read");
        assert_eq!(progress.cells, out.len());
        if !out.is_empty() {
            pieces.push(show_all(&out, base));
        }
        if !progress.more {
            return pieces;
        }
    }
}

/// The seed and size of a random test, and how to run it again.
pub fn programs(default: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    (number("BASALT_TEST_SEED").unwrap_or(1), number("BASALT_TEST_PROGRAMS").unwrap_or(default))
}

pub fn seq(n: u64) -> SeqId {
    SeqId(n)
}
