//! The region server of a process, whoever its master is: its logs, what its regions share, and how both end.

use base::{Clock, Config, Holder, Ledger, Rng};
use fs::Volume;
use hfile::{BlockCache, CacheOptions, CachePolicy, Dictionaries, SecondLevel};
use model::{Nonce, ServerName};
use region::{MemoryMeter, RegionEnv, RegionSettings};
use regionserver::settings::{BLOCK_CACHE_POLICY, CHECKSUM_VERIFY};
use regionserver::{BulkLoadFiles, ReadConfig, RegionServer, RegionServerParts, SplitRequests};
use std::sync::Arc;
use wal::{Log, LogOptions};

/// Told of something, in a sentence.
pub(crate) type Tell = Arc<dyn Fn(String) + Send + Sync>;

/// What it is made of.
pub(crate) struct ServerParts {
    pub volume: Arc<dyn Volume>,
    pub outside: Arc<dyn Volume>,
    pub root: String,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<Rng>,
    pub config: Config,
    pub read_config: ReadConfig,
    pub ledger: Arc<Ledger>,
    pub second_level: Option<Arc<SecondLevel>>,
    pub name: ServerName,
    pub cluster_id: String,
    pub logs: [Arc<Log>; 2],
    pub split_requests: SplitRequests,
    pub recovered_nonces: Vec<Nonce>,
    pub on_fatal: Tell,
    pub on_stop_request: Tell,
    pub stepped: bool,
}

/// The logs of the server of that name: that of all regions but hbase:meta, and that of hbase:meta.
pub(crate) fn create_logs(
    volume: &Arc<dyn Volume>,
    name: &str,
    config: &Config,
    clock: &Arc<dyn Clock>,
) -> wal::Result<[Arc<Log>; 2]> {
    let dir = rootdir::server_wals_dir(name);
    let create = |options| Log::create(volume.clone(), dir.clone(), name, options, clock.clone());
    Ok([create(LogOptions::on(&**volume, config))?, create(LogOptions::of_meta(config))?])
}

/// Zstandard dictionaries may be anywhere on the file system of the root directory, as the files of bulk loads.
fn dictionaries(files: BulkLoadFiles, volume: Arc<dyn Volume>, config: &Config) -> Arc<Dictionaries> {
    let max_bytes = config.get(&hfile::settings::DICTIONARY_MAX_SIZE);
    Dictionaries::from_files(move |path| files.read(&*volume, path, max_bytes))
}

/// The block cache, as the configuration has it.
fn cache_options(config: &Config, ledger: &Ledger, second: Option<Arc<SecondLevel>>) -> CacheOptions {
    CacheOptions {
        capacity_bytes: ledger.cap_bytes(Holder::BlockCache),
        second,
        policy: config.text(BLOCK_CACHE_POLICY.key).and_then(CachePolicy::parse).unwrap_or_default(),
        verify_checksums: config.get(&CHECKSUM_VERIFY),
        direct_reads: config.get(&hfile::settings::DIRECT_READS),
        slow_read_ms: u64::try_from(config.get(&hfile::settings::SLOW_READ_MS)).ok(),
    }
}

/// Starts it, without regions. Somebody syncs its logs already.
pub(crate) fn start(parts: ServerParts) -> Arc<RegionServer> {
    let [log, meta_log] = parts.logs;
    let cache = BlockCache::with(cache_options(&parts.config, &parts.ledger, parts.second_level));
    cache.time_reads_by(parts.clock.clone());
    let bulk_load_files = BulkLoadFiles { outside: parts.outside, root: parts.root, cluster_id: parts.cluster_id };
    let env = Arc::new(RegionEnv {
        dictionaries: dictionaries(bulk_load_files.clone(), parts.volume.clone(), &parts.config),
        volume: parts.volume,
        log,
        clock: parts.clock,
        rng: parts.rng,
        cache,
        settings: RegionSettings::from_config(&parts.config).within_budget(parts.ledger.budget_bytes()).shared(),
        memory: MemoryMeter::new(),
        ticks: Arc::default(),
        keys: regionserver::key_sampler(&parts.config),
        server_name: parts.name.clone(),
    });
    RegionServer::start(RegionServerParts {
        name: parts.name,
        meta_env: Arc::new(RegionEnv { log: meta_log, ..RegionEnv::clone(&env) }),
        env,
        config: parts.config,
        read_config: parts.read_config,
        ledger: parts.ledger,
        bulk_load_files,
        split_requests: parts.split_requests,
        recovered_nonces: parts.recovered_nonces,
        on_fatal: parts.on_fatal,
        on_stop_request: parts.on_stop_request,
        stepped: parts.stepped,
    })
}
