//! Files of regions that are open nowhere, which the master writes itself: region servers of HBase do not.

use base::{Clock, Config, Rng};
use fs::{MemVolume, Volume};
use hfile::{BlockCache, Dictionaries};
use master::HostError;
use model::{RegionInfo, ServerName, TableDescriptor};
use region::{MemoryMeter, RegionEnv, RegionSettings};
use regionserver::BulkLoadFiles;
use std::sync::Arc;
use wal::{Log, LogOptions};

/// Store files are looked into for their first and last rows alone.
const CACHE_BYTES: u64 = 4 << 20;

/// The files of regions.
#[derive(Clone)]
pub(crate) struct RegionFiles {
    env: Arc<RegionEnv>,
}

impl RegionFiles {
    /// Over the root directory.
    ///
    /// # Errors
    /// A sentence.
    pub fn new(
        volume: Arc<dyn Volume>,
        root: &str,
        clock: Arc<dyn Clock>,
        rng: Arc<Rng>,
        config: &Config,
        master: &ServerName,
    ) -> wal::Result<RegionFiles> {
        // Nothing is written to it: a master has no regions.
        let nowhere: Arc<dyn Volume> = Arc::new(MemVolume::new());
        let name = master.to_string();
        // Every server must reach a dictionary: only what is below the root directory is looked for.
        let files = BulkLoadFiles { outside: nowhere.clone(), root: root.to_owned(), cluster_id: String::new() };
        let (inside, max_bytes) = (volume.clone(), config.get(&hfile::settings::DICTIONARY_MAX_SIZE));
        let log = Log::create(nowhere, rootdir::server_wals_dir(&name), &name, LogOptions::default(), clock.clone())?;
        Ok(RegionFiles {
            env: Arc::new(RegionEnv {
                volume,
                log,
                clock,
                rng,
                dictionaries: Dictionaries::from_files(move |path| files.read(&*inside, path, max_bytes)),
                cache: BlockCache::new(CACHE_BYTES),
                settings: RegionSettings::from_config(config).shared(),
                memory: MemoryMeter::new(),
                ticks: Arc::default(),
                keys: Arc::new(region::KeySampler::off()),
                server_name: master.clone(),
            }),
        })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RegionEnv) -> Result<T, String> + Send + 'static,
    ) -> Result<T, HostError> {
        let env = self.env.clone();
        let done = master::off_worker(move || work(&env)).await;
        done.map_err(|panic| HostError::Failed(format!("it failed inside: {panic}")))?.map_err(HostError::Failed)
    }

    /// Makes the directory of a region, if it is missing.
    ///
    /// # Errors
    /// The volume's.
    pub async fn make_region(&self, info: &RegionInfo, table: &Arc<TableDescriptor>) -> Result<(), HostError> {
        let (info, table) = (info.clone(), table.clone());
        let make = move |env: &RegionEnv| {
            let volume = &*env.volume;
            if volume.exists(&rootdir::region_dir(&info)).map_err(|error| error.to_string())? {
                return Ok(());
            }
            rootdir::create_region_dir(volume, &info, &table).map_err(|error| error.to_string())
        };
        self.run(make).await
    }

    /// Writes the daughters of a closed region.
    ///
    /// # Errors
    /// The volume's; or the parent still refers to files of its own parent.
    pub async fn split_region(
        &self,
        parent: RegionInfo,
        table: Arc<TableDescriptor>,
        daughters: [RegionInfo; 2],
    ) -> Result<(), HostError> {
        let write = move |env: &RegionEnv| {
            region::split::write_daughters(env, &parent, &table, [&daughters[0], &daughters[1]])
                .map_err(|error| error.to_string())
        };
        self.run(write).await
    }

    /// Writes the names of a closed region's store files into the working directory of a snapshot.
    ///
    /// # Errors
    /// The volume's.
    pub async fn snapshot_closed_region(
        &self,
        info: RegionInfo,
        table: Arc<TableDescriptor>,
        snapshot: String,
    ) -> Result<(), HostError> {
        let write = move |env: &RegionEnv| {
            let manifest = region::snapshot::closed_region_manifest(env, &info, &table);
            let manifest = manifest.map_err(|error| error.to_string())?;
            rootdir::snapshot::add_region(&*env.volume, &snapshot, &manifest).map_err(|error| error.to_string())
        };
        self.run(write).await
    }
}
