//! Which tables use more space than they may: what region servers report is held against the quotas, and what is to be done where a table or
//! namespace begins or ceases to violate its quota. Follows: `QuotaObserverChore`, `TableQuotaSnapshotStore`,
//! `NamespaceQuotaSnapshotStore`, `MasterQuotaManager#pruneEntriesOlderThan`.

use crate::space::{Policy, SpaceSnapshot};
use model::TableName;
use proto::pb;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of regions, as they were reported last.
#[derive(Debug, Default)]
pub struct RegionSizes {
    regions: BTreeMap<Arc<str>, RegionSize>,
}

#[derive(Debug)]
struct RegionSize {
    table: TableName,
    bytes: u64,
    reported_ms: i64,
}

/// What was reported of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Regions.
    pub regions: usize,
    /// Bytes of their store files.
    pub bytes: u64,
}

impl RegionSizes {
    /// A region, by its encoded name, has so many bytes.
    pub fn report(&mut self, region: &Arc<str>, table: &TableName, bytes: u64, now_ms: i64) {
        self.regions.insert(region.clone(), RegionSize { table: table.clone(), bytes, reported_ms: now_ms });
    }

    /// Forgets what was reported before `before_ms`, except of tables that are to be kept, and of regions that `is_there` does not know.
    pub fn prune(&mut self, before_ms: i64, keep: impl Fn(&TableName) -> bool, is_there: impl Fn(&str) -> bool) {
        self.regions.retain(|region, size| {
            let is_fresh = size.reported_ms >= before_ms || keep(&size.table);
            is_fresh && is_there(region)
        });
    }

    /// A table is gone.
    pub fn forget_table(&mut self, table: &TableName) {
        self.regions.retain(|_, size| size.table != *table);
    }

    /// Regions that are known.
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Table by table.
    pub fn by_table(&self) -> BTreeMap<TableName, Reported> {
        let mut tables: BTreeMap<TableName, Reported> = BTreeMap::new();
        for size in self.regions.values() {
            // Most regions are of tables that are there already.
            if !tables.contains_key(&size.table) {
                tables.insert(size.table.clone(), Reported::default());
            }
            if let Some(reported) = tables.get_mut(&size.table) {
                reported.regions += 1;
                reported.bytes = reported.bytes.saturating_add(size.bytes);
            }
        }
        tables
    }
}

/// What there is at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Quotas of tables.
    pub table_quotas: BTreeMap<TableName, pb::SpaceQuota>,
    /// Quotas of namespaces.
    pub namespace_quotas: BTreeMap<String, pb::SpaceQuota>,
    /// Tables, and how many regions each has.
    pub tables: BTreeMap<TableName, usize>,
    /// What region servers reported.
    pub reported: BTreeMap<TableName, Reported>,
    /// Bytes that only snapshots keep, by table,
    pub table_snapshot_bytes: BTreeMap<TableName, u64>,
    /// and by namespace.
    pub namespace_snapshot_bytes: BTreeMap<String, u64>,
    /// What is written of tables.
    pub written: BTreeMap<TableName, SpaceSnapshot>,
    /// Which part of a table's regions must be reported before it counts.
    pub report_fraction: f64,
}

/// What is to be done, in this order. Each may be done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Region servers are to hold the table to this.
    Write(TableName, SpaceSnapshot),
    /// The table may be used again.
    Enable(TableName),
    /// It is not to be used until it is smaller.
    Disable(TableName),
}

/// How tables and namespaces stood to their quotas the last time.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    tables: BTreeMap<TableName, SpaceSnapshot>,
    namespaces: BTreeMap<String, SpaceSnapshot>,
}

impl Observer {
    /// How tables stand to their own quotas.
    pub fn tables(&self) -> &BTreeMap<TableName, SpaceSnapshot> {
        &self.tables
    }

    /// How namespaces stand to theirs.
    pub fn namespaces(&self) -> &BTreeMap<String, SpaceSnapshot> {
        &self.namespaces
    }

    /// The table is gone, or has no quota any more.
    pub fn forget_table(&mut self, table: &TableName) {
        self.tables.remove(table);
    }

    /// The namespace has no quota any more.
    pub fn forget_namespace(&mut self, namespace: &str) {
        self.namespaces.remove(namespace);
    }

    /// Whether a table is disabled, or its namespace's tables may not be used: nothing is reported of it, and what was reported counts on.
    pub fn holds_disabled(&self, table: &TableName) -> bool {
        let is_disabled = |snapshot: &SpaceSnapshot| snapshot.violated == Some(Policy::Disable);
        self.tables.get(table).is_some_and(is_disabled)
            || self.namespaces.get(table.namespace()).is_some_and(is_disabled)
    }

    /// What is to be done now. When all of it was done, the observer that is answered takes this one's place.
    pub fn observe(&self, mut view: View) -> (Observer, Vec<Act>) {
        let mut next = self.clone();
        next.tables.retain(|table, _| view.table_quotas.contains_key(table));
        next.namespaces.retain(|namespace, _| view.namespace_quotas.contains_key(namespace));
        let mut acts = Acts { done: Vec::new(), written: std::mem::take(&mut view.written) };
        for table in view.bounded_tables() {
            if view.is_reported(&table) {
                continue;
            }
            next.release(&table, &mut acts);
        }
        for (table, quota) in view.table_quotas.iter().filter(|(table, _)| view.is_reported(table)) {
            next.observe_table(table, SpaceSnapshot::of(quota, view.usage_of(table)), &mut acts);
        }
        for (namespace, quota) in &view.namespace_quotas {
            let tables: Vec<&TableName> = view.tables_in(namespace).filter(|table| view.is_reported(table)).collect();
            if !tables.is_empty() {
                let target = SpaceSnapshot::of(quota, view.usage_of_namespace(namespace));
                next.observe_namespace(namespace, target, &tables, &mut acts);
            }
        }
        (next, acts.done)
    }

    /// Too little is known of the table to hold anything against it.
    fn release(&mut self, table: &TableName, acts: &mut Acts) {
        let Some(current) = self.tables.get_mut(table) else { return };
        let Some(policy) = current.violated.take() else { return };
        acts.write(table, *current);
        if policy == Policy::Disable {
            acts.done.push(Act::Enable(table.clone()));
        }
    }

    fn observe_table(&mut self, table: &TableName, target: SpaceSnapshot, acts: &mut Acts) {
        let current = self.tables.insert(table.clone(), target);
        if current == Some(target) {
            return;
        }
        acts.write(table, target);
        let was = current.and_then(|current| current.violated);
        match target.violated {
            policy if policy == was => {}
            Some(Policy::Disable) => acts.done.push(Act::Disable(table.clone())),
            _ if was == Some(Policy::Disable) => acts.done.push(Act::Enable(table.clone())),
            _ => {}
        }
    }

    /// A table's own quota goes before that of its namespace, as long as the table violates it.
    fn observe_namespace(&mut self, namespace: &str, target: SpaceSnapshot, tables: &[&TableName], acts: &mut Acts) {
        let current = self.namespaces.insert(namespace.to_owned(), target);
        if current == Some(target) && target.violated.is_none() {
            return;
        }
        for table in tables {
            let violates_its_own = self.tables.get(table).is_some_and(|snapshot| snapshot.violated.is_some());
            if !violates_its_own {
                acts.write(table, target);
            }
        }
    }
}

struct Acts {
    done: Vec<Act>,
    written: BTreeMap<TableName, SpaceSnapshot>,
}

impl Acts {
    /// Writes what is not there yet.
    fn write(&mut self, table: &TableName, snapshot: SpaceSnapshot) {
        if self.written.insert(table.clone(), snapshot) != Some(snapshot) {
            self.done.push(Act::Write(table.clone(), snapshot));
        }
    }
}

impl View {
    fn tables_in<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a TableName> {
        self.tables.keys().filter(move |table| table.namespace() == namespace)
    }

    /// Tables with a quota of their own or of their namespace.
    fn bounded_tables(&self) -> Vec<TableName> {
        let in_namespaces = self.namespace_quotas.keys().flat_map(|namespace| self.tables_in(namespace));
        let mut tables: Vec<TableName> = self.table_quotas.keys().chain(in_namespaces).cloned().collect();
        tables.sort();
        tables.dedup();
        tables
    }

    /// Whether enough of the table's regions were reported.
    fn is_reported(&self, table: &TableName) -> bool {
        let regions = self.tables.get(table).copied().unwrap_or(0);
        let reported = self.reported.get(table).map_or(0, |reported| reported.regions);
        regions > 0 && reported as f64 / regions as f64 >= self.report_fraction
    }

    fn usage_of(&self, table: &TableName) -> u64 {
        let files = self.reported.get(table).map_or(0, |reported| reported.bytes);
        files.saturating_add(self.table_snapshot_bytes.get(table).copied().unwrap_or(0))
    }

    fn usage_of_namespace(&self, namespace: &str) -> u64 {
        let of_namespace = self.reported.iter().filter(|(table, _)| table.namespace() == namespace);
        let files = of_namespace.fold(0u64, |sum, (_, reported)| sum.saturating_add(reported.bytes));
        files.saturating_add(self.namespace_snapshot_bytes.get(namespace).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> TableName {
        TableName::parse(name).expect("legal")
    }

    fn quota(limit: u64, policy: Policy) -> pb::SpaceQuota {
        pb::SpaceQuota { soft_limit: Some(limit), violation_policy: Some(policy as i32), remove: None }
    }

    fn snapshot(violated: Option<Policy>, usage_bytes: u64, limit_bytes: u64) -> SpaceSnapshot {
        SpaceSnapshot { violated, usage_bytes, limit_bytes }
    }

    /// Tables of one region each with so many bytes, and quotas.
    struct Cluster {
        view: View,
        observer: Observer,
    }

    impl Cluster {
        fn new(tables: &[(&str, u64)]) -> Cluster {
            let view = View { report_fraction: 0.95, ..View::default() };
            let mut cluster = Cluster { view, observer: Observer::default() };
            tables.iter().for_each(|(name, bytes)| cluster.set(name, *bytes));
            cluster
        }

        fn set(&mut self, name: &str, bytes: u64) {
            self.view.tables.insert(table(name), 1);
            self.view.reported.insert(table(name), Reported { regions: 1, bytes });
        }

        fn bound(&mut self, name: &str, limit: u64, policy: Policy) {
            self.view.table_quotas.insert(table(name), quota(limit, policy));
        }

        fn observe(&mut self) -> Vec<Act> {
            let (next, acts) = self.observer.observe(self.view.clone());
            self.observer = next;
            for act in &acts {
                if let Act::Write(table, snapshot) = act {
                    self.view.written.insert(table.clone(), *snapshot);
                }
            }
            acts
        }
    }

    #[test]
    fn a_table_violates_its_quota_and_observes_it_again() {
        let mut cluster = Cluster::new(&[("t", 10), ("other", 1000)]);
        cluster.bound("t", 10, Policy::NoInserts);
        assert_eq!(cluster.observe(), [Act::Write(table("t"), snapshot(None, 10, 10))]);
        assert_eq!(cluster.observe(), [], "nothing new");
        cluster.set("t", 11);
        let violated = snapshot(Some(Policy::NoInserts), 11, 10);
        assert_eq!(cluster.observe(), [Act::Write(table("t"), violated)]);
        assert_eq!(cluster.observer.tables()[&table("t")], violated);
        cluster.bound("t", 10, Policy::NoWrites);
        assert_eq!(cluster.observe(), [Act::Write(table("t"), snapshot(Some(Policy::NoWrites), 11, 10))]);
        cluster.set("t", 9);
        assert_eq!(cluster.observe(), [Act::Write(table("t"), snapshot(None, 9, 10))]);
        cluster.view.table_quotas.clear();
        assert_eq!(cluster.observe(), []);
        assert!(cluster.observer.tables().is_empty());
    }

    #[test]
    fn what_only_snapshots_keep_counts_too() {
        let mut cluster = Cluster::new(&[("t", 10)]);
        cluster.bound("t", 12, Policy::NoInserts);
        cluster.view.table_snapshot_bytes.insert(table("t"), 3);
        assert_eq!(cluster.observe(), [Act::Write(table("t"), snapshot(Some(Policy::NoInserts), 13, 12))]);
    }

    #[test]
    fn a_table_is_disabled_once_and_enabled_when_it_may_be() {
        let mut cluster = Cluster::new(&[("t", 11)]);
        cluster.bound("t", 10, Policy::Disable);
        let disabled = Act::Write(table("t"), snapshot(Some(Policy::Disable), 11, 10));
        assert_eq!(cluster.observe(), [disabled, Act::Disable(table("t"))]);
        assert!(cluster.observer.holds_disabled(&table("t")));
        cluster.bound("t", 9, Policy::Disable);
        let still = Act::Write(table("t"), snapshot(Some(Policy::Disable), 11, 9));
        assert_eq!(cluster.observe(), [still], "it is disabled already");
        cluster.bound("t", 20, Policy::Disable);
        assert_eq!(cluster.observe(), [Act::Write(table("t"), snapshot(None, 11, 20)), Act::Enable(table("t"))]);
        cluster.bound("t", 5, Policy::Disable);
        assert_eq!(cluster.observe().len(), 2);
        cluster.bound("t", 5, Policy::NoWrites);
        let switched = Act::Write(table("t"), snapshot(Some(Policy::NoWrites), 11, 5));
        assert_eq!(cluster.observe(), [switched, Act::Enable(table("t"))], "another policy lets it be read");
    }

    #[test]
    fn a_table_of_which_too_little_is_known_violates_nothing() {
        let mut cluster = Cluster::new(&[("t", 11)]);
        cluster.bound("t", 10, Policy::Disable);
        cluster.view.tables.insert(table("t"), 2);
        assert_eq!(cluster.observe(), [], "one of two regions");
        cluster.view.tables.insert(table("t"), 1);
        assert_eq!(cluster.observe().len(), 2);
        cluster.view.reported.clear();
        assert_eq!(cluster.observe(), [Act::Write(table("t"), snapshot(None, 11, 10)), Act::Enable(table("t"))]);
    }

    #[test]
    fn a_namespaces_quota_holds_for_its_tables_unless_they_violate_their_own() {
        let mut cluster = Cluster::new(&[("ns:a", 6), ("ns:b", 6), ("b", 100)]);
        cluster.view.namespace_quotas.insert("ns".into(), quota(10, Policy::NoWrites));
        cluster.bound("ns:b", 5, Policy::NoInserts);
        let of_namespace = snapshot(Some(Policy::NoWrites), 12, 10);
        let of_table = snapshot(Some(Policy::NoInserts), 6, 5);
        assert_eq!(cluster.observe(), [Act::Write(table("ns:b"), of_table), Act::Write(table("ns:a"), of_namespace)]);
        assert_eq!(cluster.observe(), []);
        cluster.set("ns:b", 5);
        let of_namespace = snapshot(Some(Policy::NoWrites), 11, 10);
        assert_eq!(
            cluster.observe(),
            [
                Act::Write(table("ns:b"), snapshot(None, 5, 5)),
                Act::Write(table("ns:a"), of_namespace),
                Act::Write(table("ns:b"), of_namespace)
            ],
            "it observes its own quota, so the namespace's holds"
        );
        cluster.set("ns:a", 1);
        let observes = snapshot(None, 6, 10);
        assert_eq!(cluster.observe(), [Act::Write(table("ns:a"), observes), Act::Write(table("ns:b"), observes)]);
        assert_eq!(cluster.observer.namespaces()["ns"], observes);
    }

    #[test]
    fn sizes_are_kept_as_long_as_they_are_fresh_and_their_regions_are_there() {
        let mut sizes = RegionSizes::default();
        let name = |name: &str| Arc::<str>::from(name);
        sizes.report(&name("a"), &table("t"), 5, 100);
        sizes.report(&name("b"), &table("t"), 6, 200);
        sizes.report(&name("c"), &table("u"), 7, 100);
        assert_eq!(sizes.by_table()[&table("t")], Reported { regions: 2, bytes: 11 });
        sizes.prune(150, |kept| *kept == table("u"), |_| true);
        assert_eq!(sizes.by_table()[&table("t")], Reported { regions: 1, bytes: 6 });
        assert_eq!(sizes.by_table()[&table("u")].bytes, 7, "old, and kept");
        sizes.prune(0, |_| false, |region| region != "c");
        assert_eq!(sizes.len(), 1, "a region that is not there any more");
        sizes.forget_table(&table("t"));
        assert!(sizes.is_empty());
    }
}
