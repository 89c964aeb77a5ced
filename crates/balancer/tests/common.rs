//! Snapshots of clusters.

use basalt_balancer::{BalancerSettings, RegionEntry, ServerEntry, Snapshot};
use base::Config;
use std::sync::Arc;

/// Servers on machines of their own, in one rack.
pub fn servers(count: usize) -> Vec<ServerEntry> {
    let rack: Arc<str> = "/default-rack".into();
    (0..count).map(|n| ServerEntry { host: format!("host{n}").into(), rack: rack.clone() }).collect()
}

/// Regions of `tables` tables in turn, on the server that `at` says.
pub fn regions(count: usize, tables: usize, at: impl Fn(usize) -> usize) -> Vec<RegionEntry> {
    (0..count).map(|n| RegionEntry { server: at(n), table: n % tables, ..RegionEntry::default() }).collect()
}

/// Number of regions of each server.
pub fn counts(snapshot: &Snapshot) -> Vec<usize> {
    let mut counts = vec![0; snapshot.servers.len()];
    snapshot.regions.iter().for_each(|region| counts[region.server] += 1);
    counts
}

/// Settings as the configuration says.
pub fn settings(pairs: &[(&str, &str)]) -> BalancerSettings {
    let mut config = Config::default();
    pairs.iter().for_each(|(key, value)| config.set(*key, *value));
    BalancerSettings::from_config(&config)
}
