//! Read replicas whose primary is open elsewhere: the store files of their primary are looked for from time to time, and who opens regions here tells
//! whoever sends entries of logs ([`ReplicaSender`]). Follows: `StorefileRefresherChore`, `MemStoreFlusher#refreshStoreFilesAndReclaimMemory`,
//! `HRegionServer#triggerFlushInPrimaryRegion`.

use crate::server::RegionServer;
use crate::settings;
use base::{Config, SeqId};
use bytes::Bytes;
use model::RegionInfo;
use proto::pb;
use region::{Outbox, Region};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes of cells that are sent in one call, about.
const MOST_SENT_BYTES: usize = 1 << 20;

/// Sends what regions here write to their read replicas elsewhere. Called by whoever opens a region: must not block.
pub trait ReplicaSender: Send + Sync {
    /// A region with read replicas is open here.
    fn region_opened(&self, source: ReplicaSource);
    /// A read replica is open here, and answers no reads until its primary was asked for a flush.
    fn replica_opened(&self, waiting: WaitingReplica);
}

/// What a region has for its read replicas.
pub struct ReplicaSource {
    server: Weak<RegionServer>,
    region: Weak<Region>,
    /// The region.
    pub info: RegionInfo,
    /// How many it is with its replicas.
    pub replication: u32,
}

/// Entries of a region's log, in their order.
#[derive(Debug)]
pub struct ReplicaEntries {
    /// Their keys, without the region that they are for.
    pub entries: Vec<pb::WalEntry>,
    /// Their cells, one after the other, as a cell block has them.
    pub cells: Bytes,
    /// They begin with one that names all files: with them a replica that has missed something is whole again.
    pub begin_whole: bool,
}

impl ReplicaSource {
    fn with<T>(&self, ask: impl FnOnce(&Region, &Outbox) -> T) -> Option<T> {
        let region = self.region.upgrade()?;
        region.outbox().map(|outbox| ask(&region, outbox))
    }

    /// Has `tell` called when there may be something to take, and when the region is gone.
    pub fn on_news(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.with(|_, outbox| outbox.on_news(tell));
    }

    /// Whether the region is gone from here, with all that it had.
    pub fn is_gone(&self) -> bool {
        self.region.strong_count() == 0
    }

    /// How many times a replica has opened and asked for a flush.
    pub fn openings(&self) -> u64 {
        self.with(|_, outbox| outbox.openings()).unwrap_or_default()
    }

    /// Whether there is nothing to take because the log fails: see [`Outbox::log_fails`].
    pub fn log_fails(&self) -> bool {
        self.with(|_, outbox| outbox.log_fails()).unwrap_or_default()
    }

    /// The next entries; `None`: there are none now.
    pub fn take(&self) -> Option<ReplicaEntries> {
        self.with(|region, outbox| {
            let taken = outbox.take(MOST_SENT_BYTES);
            let first = taken.first()?;
            let (begin_whole, table) = (first.is_whole, region.info().table.as_str().as_bytes());
            let mut cells = Vec::with_capacity(taken.iter().map(|entry| entry.run.len()).sum());
            let mut entries = Vec::with_capacity(taken.len());
            for entry in &taken {
                cells.extend_from_slice(&entry.run);
                entries.push(wal_entry(table, entry.seq_id, entry.write_time_ms, entry.cells));
            }
            Some(ReplicaEntries { entries, cells: cells.into(), begin_whole })
        })
        .flatten()
    }

    /// Some replica has missed something: the region is flushed, and then all are told which files there are. `now`: see [`Outbox::want_all_files`].
    pub fn want_all_files(&self, now: bool) {
        self.with(|region, outbox| {
            outbox.want_all_files(now);
            if let Some(server) = self.server.upgrade() {
                server.maintenance.consider_flush(region);
            }
        });
    }
}

#[allow(deprecated, reason = "the message has fields that HBase calls deprecated")]
fn wal_entry(table: &[u8], seq_id: SeqId, write_time_ms: i64, cells: usize) -> pb::WalEntry {
    pb::WalEntry {
        key: pb::WalKey {
            encoded_region_name: Bytes::new(),
            table_name: Bytes::copy_from_slice(table),
            log_sequence_number: seq_id.0,
            write_time: u64::try_from(write_time_ms).unwrap_or_default(),
            orig_sequence_number: Some(seq_id.0),
            ..pb::WalKey::default()
        },
        key_value_bytes: Vec::new(),
        associated_cell_count: i32::try_from(cells).ok(),
    }
}

/// A read replica that is open and answers no reads yet.
pub struct WaitingReplica {
    region: Weak<Region>,
    /// The replica.
    pub info: RegionInfo,
}

impl WaitingReplica {
    /// Whether it still waits, and is not closed.
    pub fn waits(&self) -> bool {
        self.region.upgrade().is_some_and(|region| region.are_reads_disabled())
    }

    /// Its primary was flushed: it finds the files, and answers reads from now on. Blocks.
    pub fn enable_reads(&self) {
        let Some(region) = self.region.upgrade() else { return };
        if let Err(error) = region.refresh_files() {
            tracing::warn!(
                "read replica {} answers reads, but did not find its primary's files: {error}",
                region.info().name_string()
            );
        }
        region.set_reads_enabled(true);
    }
}

/// How long archived files stay at least, for who does not say. As the master has it, which deletes them.
const ARCHIVE_TTL_MS: u64 = 300_000;

/// When store files are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RefreshTimes {
    period: Duration,
    /// Of hbase:meta alone.
    only_meta: bool,
    /// What a replica shows may be compacted away, and the archive keeps it for so long.
    most_age_us: u64,
}

impl RefreshTimes {
    /// As the settings say; `None`: never.
    fn from_config(config: &Config) -> Option<RefreshTimes> {
        let of_all = config.get(&settings::STOREFILE_REFRESH_PERIOD_MS);
        let of_meta = config.get(&settings::META_STOREFILE_REFRESH_PERIOD_MS);
        let (period_ms, only_meta) = if of_all > 0 { (of_all, false) } else { (of_meta, true) };
        let ttl = config.text("hbase.master.hfilecleaner.ttl").and_then(|text| text.trim().parse().ok());
        let ttl_ms: u64 = ttl.unwrap_or(ARCHIVE_TTL_MS);
        if period_ms > ttl_ms / 2 {
            // HBase does not start.
            tracing::warn!(
                "store files of read replicas are looked for every {period_ms} ms, but files that were compacted away may be deleted after {ttl_ms} ms: \
                 set hbase.regionserver.storefile.refresh.period to less than half of hbase.master.hfilecleaner.ttl, or reads of replicas may fail"
            );
        }
        (period_ms > 0).then(|| RefreshTimes {
            period: Duration::from_millis(period_ms),
            only_meta,
            most_age_us: ttl_ms.saturating_sub(period_ms).max(period_ms) * 1000,
        })
    }
}

/// When each replica was last known to show what there is.
#[derive(Default)]
struct Refreshed(FxHashMap<Arc<str>, u64>);

/// Looks for the store files of the primaries of read replicas from time to time.
pub struct StoreFileRefresher {
    times: RefreshTimes,
    refreshed: Refreshed,
}

impl StoreFileRefresher {
    /// As the settings say; `None`: never.
    pub fn from_config(config: &Config) -> Option<StoreFileRefresher> {
        RefreshTimes::from_config(config).map(|times| StoreFileRefresher { times, refreshed: Refreshed::default() })
    }

    /// Between two rounds.
    pub fn period(&self) -> Duration {
        self.times.period
    }

    /// One round. Waits for the disk.
    pub fn round(&mut self, server: &RegionServer) {
        server.refresh_all_replicas(self.times, &mut self.refreshed);
    }

    /// One round after the other, until the server stops.
    pub(crate) fn run(mut self, server: &RegionServer) {
        while !server.stop.wait(self.times.period) {
            self.round(server);
        }
    }
}

impl RegionServer {
    /// From now on `sender` hears of regions that open here. The first one stays.
    pub fn set_replica_sender(self: &Arc<Self>, sender: Arc<dyn ReplicaSender>) {
        let _the_first_stays = self.replica_sender.set((sender, Arc::downgrade(self)));
    }

    /// Before a region is online: one whose entries are sent, or which is to wait for its primary.
    pub(crate) fn prepare_replication(&self, region: &Arc<Region>) {
        let info = region.info().clone();
        let sender = self.replica_sender.get();
        match (region.outbox(), sender) {
            (Some(_), Some((sender, server))) => {
                let (server, replication) = (server.clone(), region.table().region_replication());
                return sender.region_opened(ReplicaSource {
                    server,
                    region: Arc::downgrade(region),
                    info,
                    replication,
                });
            }
            // Its replicas are in this process, and have its files.
            (Some(outbox), None) => outbox.switch_off(),
            (None, _) => {}
        }
        let is_sent = region.settings().replica_buffer_bytes_of(&info.table).is_some();
        let is_told = region.table().region_memstore_replication() && is_sent;
        if let Some((sender, _)) = sender.filter(|_| info.is_replica() && is_told)
            && self.settings().replicas_wait
        {
            region.set_reads_enabled(false);
            sender.replica_opened(WaitingReplica { region: Arc::downgrade(region), info });
        }
    }

    /// One round: every replica that is due.
    fn refresh_all_replicas(&self, times: RefreshTimes, refreshed: &mut Refreshed) {
        let mut regions = self.regions();
        regions.retain(|region| region.info().is_replica());
        refreshed.0.retain(|name, _| regions.iter().any(|region| region.name() == name));
        for region in regions {
            // Nobody writes to the primary of one that is read only.
            if region.table().read_only() || (times.only_meta && !region.info().table.is_meta()) {
                continue;
            }
            let now_us = self.env.clock.monotonic_us();
            let since_us = *refreshed.0.entry(region.name().clone()).or_insert(now_us);
            match self.refresh_replica(&region) {
                Ok(_) => {
                    refreshed.0.insert(region.name().clone(), now_us);
                    if region.set_reads_enabled(true) {
                        tracing::info!("{} answers reads again", region.info().name_string());
                    }
                }
                Err(error) if region.is_closing() => tracing::debug!("a read replica that closes: {error}"),
                Err(error) => {
                    tracing::warn!(
                        "the store files of read replica {} were not found, it shows those of before: {error}",
                        region.info().name_string()
                    );
                    if now_us.saturating_sub(since_us) > times.most_age_us && region.set_reads_enabled(false) {
                        tracing::error!(
                            "{} answers no reads until its store files are found again: those that it shows may be deleted by now",
                            region.info().name_string()
                        );
                    }
                }
            }
        }
    }

    /// Has a read replica show the files that its primary has now: the primary itself where it is here, or those of its directory. Whether they are
    /// others than before. Waits for the disk.
    pub(crate) fn refresh_replica(&self, replica: &Region) -> region::Result<bool> {
        let changed = match self.region(replica.info().replica(0).encoded_name()) {
            Some(primary) => replica.refresh(&primary),
            None => replica.refresh_files().map_err(|error| self.escalate_fatal(error))?,
        };
        if changed {
            crate::idle_scanners::update_readers(&self.sessions, Some(replica));
            self.maintenance.consider_prefetch(replica);
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_for_when_a_period_is_set_and_those_of_meta_by_another() {
        let times = |settings: &[(&str, &str)]| {
            let mut config = Config::default();
            settings.iter().for_each(|(key, value)| config.set(*key, *value));
            RefreshTimes::from_config(&config)
        };
        assert_eq!(times(&[]), None);
        let (of_all, of_meta) =
            (settings::STOREFILE_REFRESH_PERIOD_MS.key, settings::META_STOREFILE_REFRESH_PERIOD_MS.key);
        let found = times(&[(of_all, "10000"), (of_meta, "500")]).expect("on");
        assert_eq!((found.period, found.only_meta, found.most_age_us), (Duration::from_secs(10), false, 290_000_000));
        let found = times(&[(of_meta, "500"), ("hbase.master.hfilecleaner.ttl", "60000")]).expect("on");
        assert_eq!((found.period, found.only_meta, found.most_age_us), (Duration::from_millis(500), true, 59_500_000));
    }
}
