//! The master's settings as values: resolved once, and swapped as a whole when the configuration is updated.

use crate::check::Limits;
use crate::normalizer::NormalizerSettings;
use crate::peers::{self, Peer};
use crate::settings;
use balancer::BalancerSettings;
use base::{Config, Setting};
use quota::space::ChoreTimes;
use std::time::Duration;

/// What may change while the master runs. What is not here counts from the next start.
#[derive(Clone, Debug)]
pub(crate) struct MasterSettings {
    /// What descriptors are checked against.
    pub limits: Limits,
    /// How long finished procedures are kept.
    pub procedure_ttl_ms: u64,
    /// How long a client may be silent that holds a lock.
    pub client_lock_timeout: Duration,
    /// Pause of the hbck chore; `None` when it is off.
    pub hbck_interval: Option<Duration>,
    /// Pause of the self-healing; `None` when it is off.
    pub healing_interval: Option<Duration>,
    /// Regions that the mending of hbase:meta merges at once.
    pub fix_max_merge_count: usize,
    /// Pause of the catalog janitor.
    pub janitor_interval: Duration,
    /// Pause of the cleaners.
    pub cleaner_interval: Duration,
    /// How long the cleaners leave things.
    pub cleaner_ttls: CleanerTtls,
    /// Whether snapshots are served.
    pub snapshots_enabled: bool,
    /// How long clients are told to wait for a snapshot.
    pub snapshot_timeout_ms: i64,
    /// Life of snapshots that name none; 0 is no limit.
    pub snapshot_ttl_seconds: i64,
    /// Life of the snapshots that are taken before data is deleted; `None`: none are taken.
    pub recovery_snapshot_ttl_seconds: Option<i64>,
    /// Pause of the cleaner of snapshots.
    pub snapshot_cleaner_interval: Duration,
    /// Pause before regions that could not be opened are tried again.
    pub retry_failed_open: Duration,
    /// Pause before hbase:quota is read again.
    pub quota_refresh: Duration,
    /// Pause of the balancer.
    pub balancer_period: Duration,
    /// Whether it looks at each table alone.
    pub balance_by_table: bool,
    /// Whether it is kept why it did nothing,
    pub keep_rejections: bool,
    /// and what it did.
    pub keep_decisions: bool,
    /// What its plans are made by.
    pub balance: BalancerSettings,
    /// How long it moves regions before it makes another plan.
    pub max_balancing: Duration,
    /// The part of all regions that it lets be in transition.
    pub max_transition_part: f64,
    /// Pause between two looks at loads.
    pub balancer_status_period: Duration,
    /// The peer by which region servers of HBase's tell read replicas, where they do.
    pub read_replica_peer: Option<Peer>,
    /// REGION_REPLICATION that a master that starts gives hbase:meta, if it is set.
    pub meta_replica_count: Option<u32>,
    /// How regions are evened out.
    pub normalizer: NormalizerSettings,
    /// What is held of quotas of space, and when.
    pub space_quotas: SpaceQuotaSettings,
}

/// The chores of quotas of space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpaceQuotaSettings {
    /// When region servers report.
    pub reporting: ChoreTimes,
    /// When what they report is held against the quotas.
    pub observer: ChoreTimes,
    /// When snapshots are measured.
    pub snapshots: ChoreTimes,
    /// When region servers learn who violates its quota.
    pub refresher: ChoreTimes,
    /// How long a report counts.
    pub retention_ms: i64,
    /// Which part of a table must have been reported.
    pub report_fraction: f64,
}

impl SpaceQuotaSettings {
    fn from_config(config: &Config) -> SpaceQuotaSettings {
        use quota::settings as keys;
        SpaceQuotaSettings {
            reporting: keys::REPORTING.times(config),
            observer: keys::OBSERVER.times(config),
            snapshots: keys::SNAPSHOT_SIZES.times(config),
            refresher: keys::REFRESHER.times(config),
            retention_ms: i64::try_from(config.get(&keys::REPORT_RETENTION_MS)).unwrap_or(i64::MAX),
            report_fraction: config.get(&keys::REPORT_FRACTION),
        }
    }
}

/// How long the cleaners leave things that nobody needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CleanerTtls {
    /// Store files in the archive.
    pub files_us: u64,
    /// Logs in oldWALs.
    pub logs_us: u64,
    /// Logs of the master's own store.
    pub master_store_logs_us: u64,
    /// Archived files of the master's own store.
    pub master_store_files_us: u64,
}

/// Of all servers, and read by each of them.
fn read_replica_peer(config: &Config) -> Option<Peer> {
    let text = |key: &str, default: &str| config.text(key).unwrap_or(default).trim().to_owned();
    (text("hbase.region.replica.replication.enabled", "false") == "true").then(|| {
        peers::of_read_replicas(
            &text("hbase.zookeeper.quorum", "127.0.0.1"),
            &text("hbase.zookeeper.property.clientPort", "2181"),
            &text("zookeeper.znode.parent", "/hbase"),
        )
    })
}

impl MasterSettings {
    pub fn from_config(config: &Config) -> MasterSettings {
        let interval = |setting: &Setting<u64>| Duration::from_millis(config.get(setting));
        // 0 and less: never.
        let chore_interval = |setting: &Setting<i64>| {
            u64::try_from(config.get(setting)).ok().filter(|ms| *ms > 0).map(Duration::from_millis)
        };
        let ttl_us = |setting: &Setting<u64>| config.get(setting).saturating_mul(1000);
        MasterSettings {
            limits: Limits::from_config(config),
            procedure_ttl_ms: config.get(&settings::PROCEDURE_TTL_MS),
            client_lock_timeout: interval(&settings::CLIENT_LOCK_TIMEOUT_MS),
            hbck_interval: chore_interval(&settings::HBCK_INTERVAL_MS),
            healing_interval: chore_interval(&settings::HEALING_INTERVAL_MS),
            fix_max_merge_count: config.get(&settings::FIX_MAX_MERGE_COUNT) as usize,
            janitor_interval: interval(&settings::JANITOR_INTERVAL_MS),
            cleaner_interval: interval(&settings::CLEANER_INTERVAL_MS),
            cleaner_ttls: CleanerTtls {
                files_us: ttl_us(&settings::HFILE_TTL_MS),
                logs_us: ttl_us(&settings::LOG_TTL_MS),
                master_store_logs_us: ttl_us(&settings::MASTER_STORE_LOG_TTL_MS),
                master_store_files_us: ttl_us(&settings::MASTER_STORE_HFILE_TTL_MS),
            },
            snapshots_enabled: config.get(&settings::SNAPSHOTS_ENABLED),
            snapshot_timeout_ms: config.get(&settings::SNAPSHOT_TIMEOUT_MS),
            snapshot_ttl_seconds: config.get(&settings::SNAPSHOT_TTL_SECONDS),
            recovery_snapshot_ttl_seconds: (config.get(&settings::RECOVERY_SNAPSHOTS)
                && config.get(&settings::SNAPSHOTS_ENABLED))
            .then(|| config.get(&settings::RECOVERY_SNAPSHOT_TTL_SECONDS)),
            snapshot_cleaner_interval: interval(&settings::SNAPSHOT_CLEANER_INTERVAL_MS),
            retry_failed_open: interval(&settings::RETRY_FAILED_OPEN_MS),
            quota_refresh: interval(&quota::settings::REFRESH_PERIOD_MS),
            read_replica_peer: read_replica_peer(config),
            meta_replica_count: config
                .is_set(settings::META_REPLICA_COUNT.key)
                .then(|| config.get(&settings::META_REPLICA_COUNT)),
            balancer_period: interval(&settings::BALANCER_PERIOD_MS),
            balance_by_table: config.get(&settings::BALANCE_BY_TABLE),
            keep_rejections: config.get(&settings::BALANCER_REJECTION_BUFFER),
            keep_decisions: config.get(&settings::BALANCER_DECISION_BUFFER),
            balance: BalancerSettings::from_config(config),
            max_balancing: interval(if config.is_set(settings::MAX_BALANCING_MS.key) {
                &settings::MAX_BALANCING_MS
            } else {
                &settings::BALANCER_PERIOD_MS
            }),
            max_transition_part: config.get(&settings::MAX_TRANSITION_PART),
            balancer_status_period: interval(&settings::BALANCER_STATUS_PERIOD_MS),
            normalizer: NormalizerSettings::from_config(config),
            space_quotas: SpaceQuotaSettings::from_config(config),
        }
    }
}
