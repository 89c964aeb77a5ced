//! The normalizer: has regions of tables that ask for it split and merged until they are about as large as each other.
//!
//! Always true: what it does are the split and merge procedures that clients can ask for, one submitted after the other, no faster than
//! `hbase.normalizer.throughput.max_bytes_per_sec` lets it. A table waits once in the queue, however often it is asked for. Follows:
//! `RegionNormalizerManager`, `RegionNormalizerWorker`, `RegionNormalizerWorkQueue`.

mod plan;

pub(crate) use self::plan::Defaults;

use self::plan::{Candidate, Plan, Rules};
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::master::Master;
use crate::procedure::Caller;
use crate::{Result, settings};
use base::Config;
use model::TableName;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What it does, as the configuration says.
#[derive(Clone, Debug)]
pub(crate) struct NormalizerSettings {
    /// Between two rounds.
    pub period: Duration,
    /// For tables that say nothing else.
    defaults: Defaults,
    /// Mebibytes of regions that it touches a second.
    mb_per_second: u64,
    /// Mebibytes of regions that it touches in one table at once.
    most_mb: i64,
}

impl NormalizerSettings {
    pub fn from_config(config: &Config) -> NormalizerSettings {
        let number = |setting| i64::try_from(config.get(setting)).unwrap_or(i64::MAX);
        NormalizerSettings {
            period: Duration::from_millis(config.get(&settings::NORMALIZER_PERIOD_MS)),
            defaults: Defaults {
                enabled: config.get(&settings::NORMALIZATION_ENABLED),
                split: config.get(&settings::NORMALIZER_SPLIT),
                merge: config.get(&settings::NORMALIZER_MERGE),
                merge_min_regions: number(&settings::NORMALIZER_MERGE_MIN_REGIONS),
                merge_min_age_days: number(&settings::NORMALIZER_MERGE_MIN_AGE_DAYS),
                merge_min_size_mb: number(&settings::NORMALIZER_MERGE_MIN_SIZE_MB),
                merge_most_regions: config.get(&settings::NORMALIZER_MERGE_MOST_REGIONS),
            },
            mb_per_second: config.get(&settings::NORMALIZER_BYTES_PER_SECOND) / 1_000_000,
            most_mb: number(&settings::NORMALIZER_PLANS_SIZE_MB),
        }
    }
}

/// The tables that wait to be looked at, and what was done.
#[derive(Debug, Default)]
pub(crate) struct Normalizer {
    queue: Mutex<VecDeque<TableName>>,
    queued: Notify,
    splits: AtomicU64,
    merges: AtomicU64,
}

impl Normalizer {
    /// Splits that were submitted.
    pub fn splits(&self) -> u64 {
        self.splits.load(Ordering::Relaxed)
    }

    /// Merges that were submitted.
    pub fn merges(&self) -> u64 {
        self.merges.load(Ordering::Relaxed)
    }

    /// Tables are to be looked at, before all others or after them.
    fn enqueue(&self, tables: Vec<TableName>, first: bool) {
        {
            let mut queue = self.queue.lock();
            if first {
                queue.retain(|waiting| !tables.contains(waiting));
                tables.into_iter().rev().for_each(|table| queue.push_front(table));
            } else {
                for table in tables {
                    if !queue.contains(&table) {
                        queue.push_back(table);
                    }
                }
            }
        }
        self.queued.notify_one();
    }

    async fn next(&self) -> TableName {
        loop {
            if let Some(table) = self.queue.lock().pop_front() {
                return table;
            }
            self.queued.notified().await;
        }
    }
}

/// Has enabled ones of `tables` looked at soon, before others if a client asks. Whether it will be done: not while the switch is off, the
/// master starts, or regions are in transition. Follows: `HMaster#normalizeRegions`.
pub(crate) fn request(master: &Master, mut tables: Vec<TableName>, by_client: bool) -> bool {
    if !master.switches.normalizer() || !master.is_initialized() {
        return false;
    }
    {
        let cluster = master.cluster.read();
        let is_enabled = |table: &TableName| cluster.state(table) == Some(TableState::Enabled);
        let settled =
            |state| matches!(state, RegionState::Open | RegionState::Closed | RegionState::Split | RegionState::Merged);
        if cluster.regions().any(|node| node.is_live() && is_enabled(&node.info.table) && !settled(node.state)) {
            return false;
        }
        tables.retain(is_enabled);
    }
    master.normalizer.enqueue(tables, by_client);
    true
}

/// A round over all tables.
pub(crate) fn request_all(master: &Master) {
    let tables = {
        let cluster = master.cluster.read();
        let names = cluster.tables().map(|(table, _)| table.name.clone());
        names.filter(|table| !table.is_system()).collect()
    };
    if !request(master, tables, false) {
        tracing::debug!("the normalizer is off, or regions are in transition: it looks again later");
    }
}

/// Looks at the tables that wait, one after the other, until the master stops.
pub(crate) fn start(master: &Arc<Master>) {
    let (lifetime, normalizer) = (Arc::clone(&master.lifetime), Arc::clone(&master.normalizer));
    let master = Arc::downgrade(master);
    tokio::spawn(async move {
        let mut pace = Pace { free_at: Instant::now() };
        while let Ok(table) = lifetime.unless_stopped(normalizer.next()).await {
            let Some(master) = master.upgrade() else { return };
            for plan in plans_for(&master, &table) {
                if submit(&master, &table, plan, &mut pace).await.is_err() {
                    return;
                }
            }
        }
    });
}

fn plans_for(master: &Master, table: &TableName) -> Vec<Plan> {
    let settings = master.settings();
    let switches = (master.switches.split(), master.switches.merge());
    let descriptor = master.cluster.read().descriptor(table);
    let rules = descriptor.and_then(|table| Rules::of(&table, &settings.normalizer.defaults, switches));
    let Some(rules) = rules else { return Vec::new() };
    let sizes: HashMap<Arc<str>, i64> = {
        let loads = master.servers.all().into_iter().flat_map(|host| host.region_loads());
        let of_load = |load: model::status::RegionLoad| {
            (load.encoded_name, i64::from(model::status::in_units(load.store_file_size_bytes, 1 << 20)))
        };
        loads.map(of_load).collect()
    };
    let regions: Vec<Candidate> = {
        let cluster = master.cluster.read();
        let live = cluster.regions_of(table).filter(|node| node.is_live() && node.info.replica_id == 0);
        let candidate = |node: &RegionNode| Candidate {
            region: node.info.encoded_name().clone(),
            size_mb: sizes.get(node.info.encoded_name()).copied().unwrap_or(-1),
            is_open: node.state == RegionState::Open,
            created_ms: i64::try_from(node.info.region_id).unwrap_or(i64::MAX),
        };
        live.map(candidate).collect()
    };
    let plans = rules.plans(&regions, master.clock.now_ms().0);
    if settings.normalizer.most_mb == i64::MAX { plans } else { plan::truncate(plans, settings.normalizer.most_mb) }
}

/// When it may go on after what it did last.
struct Pace {
    free_at: Instant,
}

impl Pace {
    /// Waits until what was done before is paid for; `mb` are to be paid for next.
    async fn wait(&mut self, master: &Master, mb: i64) -> Result<()> {
        master.lifetime.unless_stopped(tokio::time::sleep_until(self.free_at)).await?;
        let rate = master.settings().normalizer.mb_per_second.max(1);
        let cost = Duration::from_secs_f64(mb.max(1) as f64 / rate as f64);
        self.free_at = Instant::now() + cost;
        Ok(())
    }
}

/// Submits the procedure. One that is refused is left for another round.
///
/// # Errors
/// The master stops.
async fn submit(master: &Arc<Master>, table: &TableName, plan: Plan, pace: &mut Pace) -> Result<()> {
    pace.wait(master, plan.size_mb()).await?;
    let caller = Caller { user: "basalt".into(), nonce: None };
    let (submitted, count) = match &plan {
        Plan::Split { region, .. } => (master.split_region(region, None, &caller).await, &master.normalizer.splits),
        Plan::Merge { regions, .. } => {
            let names: Vec<String> = regions.iter().map(ToString::to_string).collect();
            (master.merge_regions(&names, false, &caller).await, &master.normalizer.merges)
        }
    };
    match submitted {
        Ok(id) => {
            count.fetch_add(1, Ordering::Relaxed);
            tracing::info!(%table, ?plan, id, "the normalizer has begun to even out the table's regions");
        }
        Err(error) if error.is_stopped() => return Err(error),
        Err(error) => tracing::info!(%table, ?plan, %error, "the normalizer's plan was refused"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_table_waits_once_and_first_where_a_client_asks() {
        let table = |name: &str| TableName::parse(name).expect("legal");
        let normalizer = Normalizer::default();
        normalizer.enqueue(vec![table("a"), table("b")], false);
        normalizer.enqueue(vec![table("b"), table("c")], false);
        normalizer.enqueue(vec![table("c"), table("d")], true);
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(normalizer.next().await.to_string());
        }
        assert_eq!(order, ["c", "d", "a", "b"]);
        assert!(normalizer.queue.lock().is_empty());
    }
}
