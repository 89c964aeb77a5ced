//! Quotas of space: what tables that use more than they may do not let in, and how large regions are.
//!
//! Always true: while no table violates a quota, a write costs one atomic load here.
//!
//! Which tables do comes from the master, which reads hbase:quota. Follows: `RegionServerSpaceQuotaManager`, `ActivePolicyEnforcement`,
//! `SpaceQuotaRefresherChore`, `RegionSizeReportingChore`.

use crate::server::RegionServer;
use crate::settings;
use arc_swap::ArcSwap;
use base::Config;
use fs::Volume;
use model::{MutationKind, RegionInfo, TableName};
use proto::pb;
use quota::{SpaceSnapshot, TableSnapshots, space};
use region::Place;
use rpc::exception::{Exception, Kind};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How tables stand to their quotas of space.
pub struct SpaceQuotas {
    enabled: bool,
    /// A table violates its quota.
    is_violated: AtomicBool,
    snapshots: ArcSwap<TableSnapshots>,
    /// Whom no quota keeps from asking for a compaction.
    superusers: Vec<String>,
}

impl SpaceQuotas {
    /// No table has a quota until the first [`SpaceQuotas::refresh`].
    pub(crate) fn new(config: &Config) -> SpaceQuotas {
        SpaceQuotas {
            enabled: config.get(&quota::settings::ENABLED),
            is_violated: AtomicBool::new(false),
            snapshots: ArcSwap::default(),
            superusers: superusers(config),
        }
    }

    /// From now on tables stand so to their quotas.
    pub fn refresh(&self, snapshots: TableSnapshots) {
        let before = self.snapshots.swap(Arc::new(snapshots));
        let now = self.snapshots.load();
        let policy =
            |all: &TableSnapshots, table| all.get(table).and_then(|snapshot: &SpaceSnapshot| snapshot.violated);
        for (table, snapshot) in now.iter().filter(|(table, snapshot)| policy(&before, table) != snapshot.violated) {
            match snapshot.violated {
                Some(held) => tracing::warn!(
                    %table,
                    usage_bytes = snapshot.usage_bytes,
                    limit_bytes = snapshot.limit_bytes,
                    "the table uses more space than it may: {} holds until it is smaller or may use more",
                    held.as_str_name()
                ),
                None => tracing::info!(%table, "the table observes its quota of space again"),
            }
        }
        for table in before.keys().filter(|table| policy(&before, table).is_some() && !now.contains_key(*table)) {
            tracing::info!(%table, "the table has no quota of space any more");
        }
        self.is_violated.store(now.values().any(|snapshot| snapshot.violated.is_some()), Ordering::Release);
    }

    /// How tables stand to their quotas.
    pub(crate) fn snapshots(&self) -> Arc<TableSnapshots> {
        self.snapshots.load_full()
    }

    /// Whether a mutation of `table` is let in.
    ///
    /// # Errors
    /// SpaceLimitingException: the table violates its quota, whose policy forbids it.
    #[inline]
    pub(crate) fn check(&self, table: &TableName, kind: MutationKind) -> Result<(), Exception> {
        if !self.is_violated.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.check_violated(table, kind)
    }

    #[cold]
    fn check_violated(&self, table: &TableName, kind: MutationKind) -> Result<(), Exception> {
        match self.snapshots.load().get(table).and_then(|snapshot| snapshot.violated) {
            Some(policy) => space::check_mutation(policy, kind).map_err(limited),
            None => Ok(()),
        }
    }

    /// Whether `user` may have a region of `table` compacted. What the server compacts by itself goes on.
    ///
    /// # Errors
    /// The policy of the quota that the table violates forbids it.
    pub(crate) fn check_compaction(&self, table: &TableName, user: &str) -> Result<(), Exception> {
        let snapshots = self.snapshots.load();
        let violated = snapshots.get(table).and_then(|snapshot| snapshot.violated);
        let short = user.split(['/', '@']).next().unwrap_or_default();
        if violated.is_some_and(space::forbids_compactions) && !self.superusers.iter().any(|name| name == short) {
            return Err(Exception::do_not_retry(
                "Compactions on this region are disabled due to a space quota violation.",
            ));
        }
        Ok(())
    }

    /// Whether files that are to be loaded into `table` fit in what its quota leaves: before any of them is moved. Reads the volume.
    ///
    /// # Errors
    /// SpaceLimitingException; what is no file.
    pub(crate) fn check_bulk_load(
        &self,
        server: &RegionServer,
        table: &TableName,
        files: &[pb::bulk_load_h_file_request::FamilyPath],
    ) -> Result<(), Exception> {
        if !self.enabled {
            return Ok(());
        }
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let mut lengths = FxHashMap::default();
        for path in &paths {
            match server.bulk_load_files.place(path).map(|place| entry(server, &place)) {
                Some(Ok(Some((_, true)))) => return Err(Exception::io(format!("{path} is not a file."))),
                Some(Ok(Some((bytes, false)))) => _ = lengths.insert(*path, bytes),
                Some(Err(error)) => tracing::warn!(%error, "the length of a file to load cannot be read"),
                None | Some(Ok(None)) => {}
            }
        }
        let length = |path: &str| lengths.get(path).copied();
        space::check_bulk_load(self.snapshots.load().get(table), &paths, length).map_err(limited)
    }
}

/// Bytes of a file, and whether it is a directory; `None` where there is nothing.
fn entry(server: &RegionServer, place: &Place) -> fs::Result<Option<(u64, bool)>> {
    let (volume, path): (&dyn Volume, _) = match place {
        Place::Inside(path) => (&*server.env.volume, path),
        Place::Outside { volume, path, .. } => (&**volume, path),
    };
    Ok(volume.stat(path)?.map(|entry| (entry.len, entry.is_dir)))
}

fn limited(limited: space::SpaceLimited) -> Exception {
    Exception::new(Kind::SpaceLimiting, limited.to_string())
}

/// The user of this process, and those that the configuration names. Groups, which begin with `@`, have no members here.
fn superusers(config: &Config) -> Vec<String> {
    let named = config.text(settings::SUPERUSERS.key).unwrap_or_default();
    let named = named.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    std::env::var("USER").into_iter().chain(named).collect()
}

impl RegionServer {
    /// How tables stand to their quotas of space.
    pub fn space_quotas(&self) -> &SpaceQuotas {
        &self.space_quotas
    }

    /// Bytes that the store files of each region here take, as quotas count them.
    pub fn region_sizes(&self) -> Vec<(RegionInfo, u64)> {
        let mut regions = self.regions();
        regions.retain(|region| region.info().replica_id == 0 && !region.info().split);
        regions.iter().map(|region| (region.info().clone(), region.own_files_bytes())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quota::Policy;

    fn quotas(violated: Option<Policy>) -> SpaceQuotas {
        let mut config = Config::default();
        config.set(quota::settings::ENABLED.key, "true");
        config.set(settings::SUPERUSERS.key, "admin, @ops");
        let quotas = SpaceQuotas::new(&config);
        let snapshot = SpaceSnapshot { violated, usage_bytes: 2, limit_bytes: 1 };
        quotas.refresh([(table("t"), snapshot)].into_iter().collect());
        quotas
    }

    fn table(name: &str) -> TableName {
        TableName::parse(name).expect("legal")
    }

    #[test]
    fn what_a_policy_forbids_is_an_exception_with_its_name() {
        let held = quotas(Some(Policy::NoInserts));
        let refused = held.check(&table("t"), MutationKind::Put).expect_err("no inserts");
        assert_eq!(refused.class(), "org.apache.hadoop.hbase.quotas.SpaceLimitingException");
        assert_eq!(refused.message(), "NO_INSERTS Puts are disallowed due to a space quota.");
        assert!(held.check(&table("t"), MutationKind::Delete).is_ok());
        assert!(held.check(&table("other"), MutationKind::Put).is_ok());
        held.refresh(TableSnapshots::default());
        assert!(held.check(&table("t"), MutationKind::Put).is_ok(), "the quota is gone");
        assert!(quotas(None).check(&table("t"), MutationKind::Put).is_ok());
    }

    #[test]
    fn compactions_are_forbidden_to_others_than_superusers() {
        let held = quotas(Some(Policy::NoWritesCompactions));
        let refused = held.check_compaction(&table("t"), "bob").expect_err("no compactions");
        assert_eq!(refused.message(), "Compactions on this region are disabled due to a space quota violation.");
        assert!(held.check_compaction(&table("t"), "admin/host@REALM").is_ok());
        assert!(held.check_compaction(&table("other"), "bob").is_ok());
        assert!(quotas(Some(Policy::NoWrites)).check_compaction(&table("t"), "bob").is_ok());
    }
}
