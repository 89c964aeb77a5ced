//! The hbck chore: whether hbase:meta, the region servers and the directories tell the same of regions. It looks and
//! changes nothing. Follows: `HbckChore`, `HbckReport`.

use crate::Result;
use crate::cluster::{RegionState, TableState};
use crate::healing::Finding;
use crate::master::Master;
use base::TimestampMs;
use fs::FilePath;
use model::ServerName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a region is said to be, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// The server that the master has for it.
    pub in_meta: Option<ServerName>,
    /// The servers that have it open.
    pub deployed_on: Vec<ServerName>,
}

/// What a run of the chore found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HbckReport {
    /// When it began.
    pub started: TimestampMs,
    /// When it ended.
    pub ended: TimestampMs,
    /// Names of the regions of disabled tables.
    pub disabled_table_regions: BTreeSet<String>,
    /// Names of regions that were split.
    pub split_parent_regions: BTreeSet<String>,
    /// Names of regions that a server has open and the master does not know.
    pub orphan_regions_on_servers: BTreeMap<String, ServerName>,
    /// Encoded names of regions that have a directory and that the master does not know.
    pub orphan_regions_on_volume: BTreeMap<String, FilePath>,
    /// By name, regions that are open nowhere, elsewhere than the master has it, or on several servers.
    pub inconsistent_regions: BTreeMap<String, Whereabouts>,
    /// What the self-healing watches, has mended, or leaves for a person.
    pub findings: Vec<Finding>,
}

/// The runs of the chore.
#[derive(Debug, Default)]
pub(crate) struct HbckChore {
    running: tokio::sync::Mutex<()>,
    last: Mutex<Option<Arc<HbckReport>>>,
}

impl HbckChore {
    /// What the last run found; `None` before the first.
    pub fn last_report(&self) -> Option<Arc<HbckReport>> {
        self.last.lock().clone()
    }

    /// A newer report than the last.
    pub fn set_report(&self, report: HbckReport) {
        *self.last.lock() = Some(Arc::new(report));
    }
}

/// Runs it; false when it is switched off or runs already.
pub(crate) async fn run(master: &Master) -> bool {
    if master.settings().hbck_interval.is_none() {
        tracing::warn!("hbck chore is disabled! Set {} > 0 to enable it.", crate::settings::HBCK_INTERVAL_MS.key);
        return false;
    }
    let Ok(_running) = master.hbck.running.try_lock() else {
        tracing::warn!("hbck chore already running. Can't run till it finishes.");
        return false;
    };
    let (mut report, _) = look(master).await;
    report.findings = master.healing.findings();
    tracing::info!(
        inconsistent = report.inconsistent_regions.len(),
        orphans_on_servers = report.orphan_regions_on_servers.len(),
        orphans_on_volume = report.orphan_regions_on_volume.len(),
        "the hbck chore has run"
    );
    master.hbck.set_report(report);
    true
}

/// Looks; whether the directories could be listed is said, too. A listing of each table's directory, and no other file.
pub(crate) async fn look(master: &Master) -> (HbckReport, bool) {
    let mut report = HbckReport { started: master.clock.now_ms(), ..HbckReport::default() };
    compare_servers(master, &mut report);
    let listed = find_orphan_directories(master, &mut report).await;
    if let Err(error) = &listed {
        tracing::warn!(%error, "the hbck chore cannot list the regions' directories");
    }
    report.ended = master.clock.now_ms();
    (report, listed.is_ok())
}

/// By encoded name, what regions the servers have open, as they said last: the region's name, and the servers.
pub(crate) fn deployed(master: &Master) -> BTreeMap<Arc<str>, (String, Vec<ServerName>)> {
    let mut deployed: BTreeMap<Arc<str>, (String, Vec<ServerName>)> = BTreeMap::new();
    for host in master.servers.all() {
        for load in host.region_loads() {
            let name = cell::print::to_string_binary(&load.name);
            deployed.entry(load.encoded_name).or_insert_with(|| (name, Vec::new())).1.push(host.server_name());
        }
    }
    deployed
}

/// What the servers have open, against what the master has of it.
fn compare_servers(master: &Master, report: &mut HbckReport) {
    let mut deployed = deployed(master);
    let meta_location = master.servers.meta_host().ok().map(|host| host.server_name());
    let cluster = master.cluster.read();
    for node in cluster.with_replicas() {
        let name = node.info.name_string();
        let is_disabled = cluster.state(&node.info.table) == Some(TableState::Disabled);
        let is_split = node.state == RegionState::Split || node.info.split;
        if is_disabled {
            report.disabled_table_regions.insert(name.clone());
        }
        if is_split {
            report.split_parent_regions.insert(name.clone());
        }
        let deployed_on = deployed.remove(node.info.encoded_name()).map(|(_, servers)| servers).unwrap_or_default();
        let is_meta = node.info.table.is_meta() && !node.info.is_replica();
        let in_meta = if is_meta { meta_location.clone() } else { node.location.clone() };
        let consistent = match &deployed_on[..] {
            [] => is_disabled || is_split,
            [server] => Some(server) == in_meta.as_ref(),
            _ => false,
        };
        if !consistent {
            report.inconsistent_regions.insert(name, Whereabouts { in_meta, deployed_on });
        }
    }
    for (name, servers) in deployed.into_values() {
        report.orphan_regions_on_servers.extend(servers.into_iter().map(|server| (name.clone(), server)));
    }
}

async fn find_orphan_directories(master: &Master, report: &mut HbckReport) -> Result<()> {
    // Before the master's picture is looked at: a region that is made meanwhile is in it by then.
    let found = master.files.run(|volume| {
        let mut found = Vec::new();
        for table in rootdir::descriptor::list_tables(volume)? {
            let dir = rootdir::table_dir(&table);
            let regions = rootdir::paths::region_names(volume, &dir)?;
            found.extend(regions.into_iter().map(|region| (dir.join(&region), region)));
        }
        Ok(found)
    });
    let found = found.await?;
    let cluster = master.cluster.read();
    let merged: BTreeSet<&str> =
        cluster.regions().flat_map(|node| node.merge_parents.iter().map(|parent| &**parent.encoded_name())).collect();
    let is_orphan = |region: &str| cluster.region(region).is_none() && !merged.contains(region);
    let orphans = found.into_iter().filter(|(_, region)| is_orphan(region));
    report.orphan_regions_on_volume.extend(orphans.map(|(path, region)| (region, path)));
    Ok(())
}
