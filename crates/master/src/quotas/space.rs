//! Quotas of space as the master keeps them: what is reported of regions, what only snapshots keep, which tables violate their quotas, and
//! what is done about it.
//!
//! Always true: how tables stood is remembered only when all that follows from it was done; what could not be done is tried again at the next
//! round. Follows: `QuotaObserverChore`, `SnapshotQuotaObserverChore`, `FileArchiverNotifierImpl`, `TableSpaceQuotaSnapshotNotifier`.

use super::table::QuotaTable;
use crate::master::Master;
use crate::procedure::Caller;
use crate::{ErrorKind, MasterError, Result, snapshots};
use fs::Volume;
use model::{RegionInfo, TableName};
use parking_lot::Mutex;
use proto::pb;
use quota::observer::{Act, Observer, RegionSizes, View};
use quota::rows::{self, Subject, Usage};
use quota::{Policy, SpaceSnapshot, TableSnapshots};
use rootdir::FileName;
use rootdir::snapshot::restore::places;
use rootdir::snapshot::{self, SnapshotError};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the master knows of the use of space beside what is in hbase:quota.
#[derive(Debug, Default)]
pub(crate) struct Space {
    sizes: Mutex<RegionSizes>,
    observer: Mutex<Observer>,
    /// Held by a round of the observer.
    observing: tokio::sync::Mutex<()>,
    /// Held while snapshots are measured: of two at once, the one that looked first could write last.
    measuring: tokio::sync::Mutex<()>,
    /// Somebody is about to measure, who has not begun.
    is_measuring_due: AtomicBool,
}

/// Who bounds what.
#[derive(Default)]
struct Bounds {
    tables: BTreeMap<TableName, pb::SpaceQuota>,
    namespaces: BTreeMap<String, pb::SpaceQuota>,
}

impl Bounds {
    async fn read(master: &Arc<Master>) -> Result<Bounds> {
        let mut bounds = Bounds::default();
        for cells in (QuotaTable { master }).settings().await? {
            for cell in cells.iter_from(0) {
                // What cannot be read is told of when limits are read.
                let Some(Ok((subject, quotas))) = rows::parse(cell.row(), cell.qualifier(), cell.value()) else {
                    continue;
                };
                match (subject, quotas.space) {
                    (Subject::Table(table), Some(quota)) => _ = bounds.tables.insert(table, quota),
                    (Subject::Namespace(namespace), Some(quota)) => _ = bounds.namespaces.insert(namespace, quota),
                    _ => {}
                }
            }
        }
        Ok(bounds)
    }

    fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.namespaces.is_empty()
    }

    fn covers(&self, table: &TableName) -> bool {
        self.tables.contains_key(table) || self.namespaces.contains_key(table.namespace())
    }
}

/// What hbase:quota says of the use of space.
#[derive(Default)]
struct Known {
    tables: BTreeMap<TableName, SpaceSnapshot>,
    table_snapshots: BTreeMap<(TableName, String), u64>,
    namespace_snapshots: BTreeMap<String, u64>,
}

impl Known {
    async fn read(master: &Arc<Master>, row: &[u8]) -> Result<Known> {
        let mut known = Known::default();
        for usage in (QuotaTable { master }).usage(row).await? {
            match usage {
                Usage::Table(table, snapshot) => _ = known.tables.insert(table, snapshot),
                Usage::TableSnapshot(table, snapshot, bytes) => {
                    known.table_snapshots.insert((table, snapshot), bytes);
                }
                Usage::NamespaceSnapshots(namespace, bytes) => {
                    known.namespace_snapshots.insert(namespace, bytes);
                }
            }
        }
        Ok(known)
    }

    /// How `table` stands to its quota.
    async fn of_table(master: &Arc<Master>, table: &TableName) -> Result<Option<SpaceSnapshot>> {
        Ok(Known::read(master, &rows::table_row(table)).await?.tables.remove(table))
    }
}

impl Space {
    /// How tables and namespaces stand to their quotas.
    pub fn observer(&self) -> Observer {
        self.observer.lock().clone()
    }

    /// Bytes of tables, as they were reported.
    pub fn table_bytes(&self) -> BTreeMap<TableName, u64> {
        self.sizes.lock().by_table().into_iter().map(|(table, reported)| (table, reported.bytes)).collect()
    }

    /// Regions whose sizes are known.
    pub fn reported_regions(&self) -> usize {
        self.sizes.lock().len()
    }

    /// A table is gone.
    pub fn forget_table(&self, table: &TableName) {
        self.sizes.lock().forget_table(table);
        self.observer.lock().forget_table(table);
    }
}

/// A region server has reported these sizes.
pub(crate) fn report(master: &Master, sizes: impl IntoIterator<Item = (RegionInfo, u64)>) {
    if !master.quotas.is_enabled() {
        return;
    }
    let now_ms = master.clock.now_ms().0;
    let mut known = master.quotas.space.sizes.lock();
    for (info, bytes) in sizes {
        known.report(info.encoded_name(), &info.table, bytes, now_ms);
    }
}

/// Has the region servers of this process report.
pub(crate) fn collect_reports(master: &Master) {
    if master.quotas.is_enabled() {
        master.servers.all().iter().for_each(|host| report(master, host.region_sizes()));
    }
}

/// Holds what was reported against the quotas. Does what follows from it.
///
/// # Errors
/// hbase:quota cannot be read or written, or a table cannot be disabled or enabled.
pub(crate) async fn observe(master: &Arc<Master>) -> Result<()> {
    if !master.quotas.is_enabled() {
        return Ok(());
    }
    let space = &master.quotas.space;
    let _one_at_a_time = space.observing.lock().await;
    let (bounds, known) = (Bounds::read(master).await?, Known::read(master, &[]).await?);
    let observer = space.observer();
    let mut wrote = false;
    // Written while the quota was just removed.
    for (table, snapshot) in known.tables.iter().filter(|(table, _)| !bounds.covers(table)) {
        (QuotaTable { master }).delete_usage(&Usage::Table(table.clone(), *snapshot)).await?;
        wrote = true;
    }
    let view = view(master, bounds, known, &observer);
    let (next, acts) = observer.observe(view);
    for act in &acts {
        if let Act::Write(table, snapshot) = act {
            (QuotaTable { master }).put_usage(&Usage::Table(table.clone(), *snapshot)).await?;
            wrote = true;
        }
    }
    if wrote {
        refresh(master).await?;
    }
    for act in acts {
        match act {
            Act::Write(..) => {}
            Act::Enable(table) => enable(master, &table).await?,
            Act::Disable(table) => disable(master, &table).await?,
        }
    }
    *space.observer.lock() = next;
    Ok(())
}

fn view(master: &Master, bounds: Bounds, known: Known, observer: &Observer) -> View {
    let settings = master.settings();
    let mut tables = BTreeMap::new();
    let reported = {
        let cluster = master.cluster.read();
        for (table, _) in cluster.tables().filter(|(table, _)| bounds.covers(&table.name)) {
            let counts = |node: &&crate::cluster::RegionNode| node.is_live() && node.info.replica_id == 0;
            tables.insert(table.name.clone(), cluster.regions_of(&table.name).filter(counts).count());
        }
        let before_ms = master.clock.now_ms().0.saturating_sub(settings.space_quotas.retention_ms);
        let is_there = |region: &str| cluster.region(region).is_some_and(|node| node.is_live());
        let mut sizes = master.quotas.space.sizes.lock();
        sizes.prune(before_ms, |table| observer.holds_disabled(table), is_there);
        sizes.by_table()
    };
    let mut table_snapshot_bytes: BTreeMap<TableName, u64> = BTreeMap::new();
    for ((table, _), bytes) in known.table_snapshots {
        let sum = table_snapshot_bytes.entry(table).or_default();
        *sum = sum.saturating_add(bytes);
    }
    View {
        table_quotas: bounds.tables,
        namespace_quotas: bounds.namespaces,
        tables,
        reported,
        table_snapshot_bytes,
        namespace_snapshot_bytes: known.namespace_snapshots,
        written: known.tables,
        report_fraction: settings.space_quotas.report_fraction,
    }
}

/// Tells region servers how tables stand to their quotas, as hbase:quota says.
///
/// # Errors
/// It cannot be read.
pub(crate) async fn refresh(master: &Arc<Master>) -> Result<()> {
    if !master.quotas.is_enabled() {
        return Ok(());
    }
    let known: TableSnapshots = Known::read(master, &[]).await?.tables.into_iter().collect();
    master.servers.all().iter().for_each(|host| host.refresh_space_quotas(known.clone()));
    Ok(())
}

fn nobody() -> Caller {
    Caller { user: "basalt".into(), nonce: None }
}

/// Enables a table that a quota of space had disabled. The caller holds nothing that a procedure may wait for.
///
/// # Errors
/// The master stops, hbase:meta cannot be written.
pub(crate) async fn enable(master: &Arc<Master>, table: &TableName) -> Result<()> {
    let done = async { master.procedures.wait_for(master.enable_table(table, &nobody()).await?).await };
    match done.await {
        Err(error) if !matches!(error.kind, ErrorKind::TableNotDisabled | ErrorKind::TableNotFound) => Err(error),
        _ => Ok(()),
    }
}

async fn disable(master: &Arc<Master>, table: &TableName) -> Result<()> {
    let done = async { master.procedures.wait_for(master.disable_table(table, &nobody()).await?).await };
    match done.await {
        Err(error) if !matches!(error.kind, ErrorKind::TableNotEnabled | ErrorKind::TableNotFound) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a table may be enabled.
///
/// # Errors
/// It is disabled because it uses more space than it may; hbase:quota cannot be read.
pub(crate) async fn check_enable(master: &Arc<Master>, table: &TableName) -> Result<()> {
    if !master.quotas.is_enabled() || !master.is_initialized() || table.is_system() {
        return Ok(());
    }
    match Known::of_table(master, table).await? {
        Some(SpaceSnapshot { violated: Some(Policy::Disable), .. }) => Err(MasterError::new(
            ErrorKind::AccessDenied,
            format!("Enabling the table '{table}' is disallowed due to a violated space quota."),
        )),
        _ => Ok(()),
    }
}

/// A table's quota of space, or a namespace's, is to go. What follows from it is to be done with [`Removal::after`] when it is gone.
pub(crate) struct Removal {
    subject: Subject,
    was_disabled: bool,
}

impl Removal {
    /// Before it goes. `None` where there is none.
    pub async fn of(master: &Arc<Master>, subject: &Subject, current: Option<&pb::Quotas>) -> Result<Option<Removal>> {
        if current.is_none_or(|quotas| quotas.space.is_none()) {
            return Ok(None);
        }
        let was_disabled = match subject {
            Subject::Table(table) => {
                Known::of_table(master, table).await?.is_some_and(|snapshot| snapshot.violated == Some(Policy::Disable))
            }
            _ => false,
        };
        Ok(Some(Removal { subject: subject.clone(), was_disabled }))
    }

    /// Nothing holds that table, or the namespace's tables without quotas of their own, to anything any more. Answers the table that is to be
    /// enabled because of that, by [`enable`].
    pub async fn after(self, master: &Arc<Master>) -> Result<Option<TableName>> {
        let quota_table = QuotaTable { master };
        match self.subject {
            Subject::Table(table) => {
                master.quotas.space.observer.lock().forget_table(&table);
                if let Some(snapshot) = Known::of_table(master, &table).await? {
                    quota_table.delete_usage(&Usage::Table(table.clone(), snapshot)).await?;
                }
                refresh(master).await?;
                Ok(self.was_disabled.then_some(table))
            }
            Subject::Namespace(namespace) => {
                master.quotas.space.observer.lock().forget_namespace(&namespace);
                let bounds = Bounds::read(master).await?;
                for (table, snapshot) in Known::read(master, &[]).await?.tables {
                    if table.namespace() == namespace && !bounds.tables.contains_key(&table) {
                        quota_table.delete_usage(&Usage::Table(table, snapshot)).await?;
                    }
                }
                refresh(master).await?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

/// Files of these tables went to the archive: what snapshots keep of them counts for their quotas from now on. HBase adds the sizes that it is
/// told of to what it knows; here the snapshots are measured, once for all reports that come before it is begun, so that a report that comes
/// twice, or beside a round of the chore, changes nothing.
///
/// # Errors
/// As of [`measure_snapshots`].
pub(crate) async fn files_archived(master: &Arc<Master>, tables: BTreeSet<TableName>) -> Result<()> {
    let space = &master.quotas.space;
    let bounds = if master.quotas.is_enabled() { Bounds::read(master).await? } else { Bounds::default() };
    if !tables.iter().any(|table| bounds.covers(table)) || space.is_measuring_due.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    measure_snapshots(master).await
}

/// Measures what only snapshots keep of tables with quotas, and writes it into hbase:quota.
///
/// # Errors
/// hbase:quota cannot be read or written; what the volume says.
pub(crate) async fn measure_snapshots(master: &Arc<Master>) -> Result<()> {
    if !master.quotas.is_enabled() {
        return Ok(());
    }
    let _one_at_a_time = master.quotas.space.measuring.lock().await;
    // What is archived from here on may not be seen.
    master.quotas.space.is_measuring_due.store(false, Ordering::SeqCst);
    let (bounds, known) = (Bounds::read(master).await?, Known::read(master, &[]).await?);
    if bounds.is_empty() && known.table_snapshots.is_empty() && known.namespace_snapshots.is_empty() {
        return Ok(());
    }
    let mut by_table: BTreeMap<TableName, Vec<String>> = BTreeMap::new();
    for snapshot in snapshots::list(master).await? {
        let Ok(table) = TableName::parse(snapshot.table()) else { continue };
        if bounds.covers(&table) {
            by_table.entry(table).or_default().push(snapshot.name);
        }
    }
    let (mut of_tables, mut of_namespaces) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
    for (table, mut names) in by_table {
        names.sort();
        for (name, bytes) in master.files.run(move |volume| kept_by_snapshots(volume, names)).await? {
            let sum = of_namespaces.entry(table.namespace().to_owned()).or_default();
            *sum = sum.saturating_add(bytes);
            of_tables.insert((table.clone(), name), bytes);
        }
    }
    let quota_table = QuotaTable { master };
    let of_table = |((table, name), bytes): (&(TableName, String), &u64)| {
        Usage::TableSnapshot(table.clone(), name.clone(), *bytes)
    };
    let of_namespace = |(name, bytes): (&String, &u64)| Usage::NamespaceSnapshots(name.clone(), *bytes);
    let gone_tables = known.table_snapshots.iter().filter(|(key, _)| !of_tables.contains_key(key)).map(of_table);
    let gone_names = known.namespace_snapshots.iter().filter(|(key, _)| !of_namespaces.contains_key(*key));
    for usage in gone_tables.chain(gone_names.map(of_namespace)) {
        quota_table.delete_usage(&usage).await?;
    }
    let new_tables = of_tables.iter().filter(|(key, bytes)| known.table_snapshots.get(key) != Some(*bytes));
    let new_names = of_namespaces.iter().filter(|(key, bytes)| known.namespace_snapshots.get(*key) != Some(*bytes));
    for usage in new_tables.map(of_table).chain(new_names.map(of_namespace)) {
        quota_table.put_usage(&usage).await?;
    }
    Ok(())
}

/// Bytes that each of these snapshots of one table keeps, and neither the table nor a snapshot before it. A snapshot that is gone by now, or
/// cannot be read, has none.
fn kept_by_snapshots(volume: &dyn Volume, names: Vec<String>) -> Result<Vec<(String, u64)>> {
    let mut counted: HashSet<String> = HashSet::new();
    let mut sizes = Vec::with_capacity(names.len());
    for name in names {
        let manifest = match snapshot::read_manifest(volume, &snapshot::completed_dir(&name)) {
            Ok(manifest) => manifest,
            Err(SnapshotError::Io(error)) if !error.is_not_found() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(snapshot = name, %error, "the snapshot is not measured");
                continue;
            }
        };
        let mut bytes = 0u64;
        for (region, family, file) in manifest.files() {
            // Links and references stand for files that are counted elsewhere.
            let is_own = FileName::parse(&file.name).is_none_or(|name| name.link.is_none() && name.parent.is_none());
            let [home, archived] = &places(region, family, file)[..] else { continue };
            if !is_own || volume.stat(home)?.is_some() {
                continue;
            }
            if let Some(entry) = volume.stat(archived)?.filter(|entry| !entry.is_dir)
                && counted.insert(file.name.clone())
            {
                bytes = bytes.saturating_add(entry.len);
            }
        }
        sizes.push((name, bytes));
    }
    Ok(sizes)
}
