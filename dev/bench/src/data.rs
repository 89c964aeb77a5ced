//! Rows, mutations, and an engine to put them in: a log with its syncer thread and regions, as a server has them.

use crate::scratch::Scratch;
use anyhow::Context;
use base::{Clock, Config, Rng, SystemClock};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use fs::{FilePath, Volume};
use model::{Durability, FamilyDescriptor, Mutation, MutationKind, RegionInfo, ServerName, TableDescriptor, TableName};
use region::{FlushRequest, MemoryMeter, OpenRegion, Region, RegionEnv, RegionSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use wal::SyncMode;

/// Bytes of a value, as in HBase's `PerformanceEvaluation`.
pub const VALUE_BYTES: usize = 1000;
/// The family of every cell.
pub const FAMILY: &[u8] = b"f";
/// The qualifier of every cell.
pub const QUALIFIER: &[u8] = b"field0";

/// The `n`th row: 20 bytes, spread over the key space as hashed keys are. No two are equal.
pub fn row(n: u64) -> Bytes {
    Bytes::from(format!("user{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// A value, half of it noise: compresses about as real values do.
pub fn value(len: usize, rng: &Rng) -> Vec<u8> {
    let mut value = Vec::with_capacity(len + 8);
    while value.len() < len {
        value.extend_from_slice(&rng.next_u64().to_be_bytes()[..4]);
        value.extend_from_slice(b"text");
    }
    value.truncate(len);
    value
}

/// A Put's one cell.
pub fn spec<'a>(row: &'a [u8], value: &'a [u8]) -> CellSpec<'a> {
    let type_code = CellType::Put.code();
    CellSpec { row, family: FAMILY, qualifier: QUALIFIER, timestamp: i64::MAX, type_code, value, tags: b"" }
}

/// A Put of `value` to the `n`th row.
pub fn put(n: u64, value: &[u8], durability: Durability) -> Mutation {
    let row = row(n);
    let cells = CellBlock::from_specs([spec(&row, value)]);
    Mutation { durability, ..Mutation::new(MutationKind::Put, row, cells) }
}

/// A Put of the `n`th row with a long key and four small cells.
pub fn narrow(n: u64) -> Mutation {
    let row = Bytes::from(format!("NASalesforce.com\0Dashboard\0{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let number = (n as u32).to_be_bytes();
    let columns: [(&[u8], &[u8]); 4] = [(b"_0", b""), (b"core", &number), (b"db", &number), (b"visitors", &number)];
    let cell = |(qualifier, value)| CellSpec { qualifier, ..spec(&row, value) };
    let cells = CellBlock::from_specs(columns.map(cell));
    Mutation { durability: Durability::SkipWal, ..Mutation::new(MutationKind::Put, row.clone(), cells) }
}

/// Puts of the rows in `rows`.
pub fn puts(rows: impl Iterator<Item = u64>, durability: Durability) -> Vec<Mutation> {
    let value = value(VALUE_BYTES, &Rng::seeded(1));
    rows.map(|n| put(n, &value, durability)).collect()
}

static ENGINES: AtomicU64 = AtomicU64::new(0);

/// What a server has around its regions.
pub struct Engine {
    /// For regions.
    pub env: Arc<RegionEnv>,
    log_dir: FilePath,
    syncer: Option<JoinHandle<()>>,
    /// Held, so that the files go with it.
    scratch: Option<Scratch>,
}

impl Engine {
    /// On `volume`, with a new log. Memstores may grow to 1 GiB before anyone wants a flush.
    pub fn new(volume: Arc<dyn Volume>, sync_mode: SyncMode) -> anyhow::Result<Engine> {
        Engine::with_cache(volume, sync_mode, hfile::BlockCache::new(2 << 30))
    }

    fn with_cache(
        volume: Arc<dyn Volume>,
        sync_mode: SyncMode,
        cache: Arc<hfile::BlockCache>,
    ) -> anyhow::Result<Engine> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let engine = ENGINES.fetch_add(1, Ordering::Relaxed);
        let server_name = ServerName::new("bench", 1, engine);
        let name = server_name.to_string();
        let log_dir = rootdir::server_wals_dir(&name);
        let options = wal::LogOptions { sync_mode, ..wal::LogOptions::default() };
        let log = wal::Log::create(volume.clone(), log_dir.clone(), &name, options, clock.clone())?;
        let syncer = {
            let log = log.clone();
            // Whoever waits for the log learns of its failure.
            std::thread::Builder::new().name("log-syncer".into()).spawn(move || drop(log.run_syncer()))?
        };
        let mut config = Config::default();
        config.set(region::settings::FLUSH_SIZE.key, (1u64 << 30).to_string());
        // What the codec costs has benchmarks of its own (`block.*`); RocksDB stands beside this engine without one.
        config.set(region::settings::DEFAULT_COMPRESSION.key, "NONE");
        let env = Arc::new(RegionEnv {
            volume,
            log,
            clock,
            // Another for each: files of engines that follow each other on a volume have names of their own.
            rng: Arc::new(Rng::seeded(7 + engine)),
            dictionaries: Arc::default(),
            cache,
            settings: RegionSettings::from_config(&config).shared(),
            memory: MemoryMeter::new(),
            ticks: Arc::default(),
            keys: Arc::default(),
            server_name,
        });
        Ok(Engine { env, log_dir, syncer: Some(syncer), scratch: None })
    }

    /// On the local disk, in a directory that goes with it.
    pub fn on_disk(scratch: Scratch, sync_mode: SyncMode) -> anyhow::Result<Engine> {
        Engine::on_disk_with_cache(scratch, sync_mode, hfile::BlockCache::new(2 << 30))
    }

    /// As [`Engine::on_disk`], with this block cache.
    pub fn on_disk_with_cache(
        scratch: Scratch,
        sync_mode: SyncMode,
        cache: Arc<hfile::BlockCache>,
    ) -> anyhow::Result<Engine> {
        let mut engine = Engine::with_cache(scratch.volume()?, sync_mode, cache)?;
        engine.scratch = Some(scratch);
        Ok(engine)
    }

    /// Directory of the log.
    pub fn log_dir(&self) -> &FilePath {
        &self.log_dir
    }

    /// Opens the one region of the table.
    pub fn region(&self) -> anyhow::Result<Arc<Region>> {
        let name = TableName::parse("bench").context("a legal name")?;
        let table = Arc::new(TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]));
        let info = RegionInfo::new(name, Bytes::new(), Bytes::new(), 1);
        Ok(Region::open(OpenRegion { info, table, env: self.env.clone() })?)
    }

    /// Ends the log in order.
    pub fn close(&mut self) -> anyhow::Result<()> {
        let closed = self.env.log.close();
        if let Some(syncer) = self.syncer.take() {
            syncer.join().map_err(|_| anyhow::anyhow!("the syncer panicked"))?;
        }
        Ok(closed?)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Applies mutations as one call and waits until they are visible.
pub fn apply(region: &Region, mutations: &[Mutation]) -> anyhow::Result<()> {
    let applied = region.apply(mutations)?;
    for result in applied.results {
        result?;
    }
    Ok(applied.commit.wait()?)
}

/// Fills a region with `rows`, unlogged.
pub fn load(region: &Region, rows: impl Iterator<Item = u64>) -> anyhow::Result<()> {
    let mutations = puts(rows, Durability::SkipWal);
    mutations.chunks(100).try_for_each(|chunk| apply(region, chunk))
}

/// Writes all memstores to files.
pub fn flush(region: &Region) -> anyhow::Result<u64> {
    let outcome = region.flush(&FlushRequest { all: true, ..FlushRequest::default() })?;
    anyhow::ensure!(outcome.flushed, "there was nothing to flush");
    Ok(outcome.bytes)
}
