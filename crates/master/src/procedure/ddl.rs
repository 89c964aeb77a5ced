//! Tables: made, deleted, truncated, enabled, disabled, changed. Each has a look before (`*_prepare`, in HBase's words)
//! and steps that may be repeated. Follows: `CreateTableProcedure` and its neighbours, `HMaster`.

use super::{Submission, Work, table_locks};
use crate::check::check_table;
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::master::Master;
use crate::{ErrorKind, MasterError, Result, meta};
use base::TimestampMs;
use bytes::Bytes;
use model::{Mutation, Nonce, RegionInfo, TableDescriptor, TableName};
use rootdir::root::with_file_tracker;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows written to hbase:meta in one go.
const ROWS_PER_WRITE: usize = 2000;
/// Regions that a CreateTable may ask for.
const MAX_REGIONS_PER_CREATE: usize = 1_000_000;

/// Who asks, and the nonce to recognise a repetition.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// User.
    pub user: String,
    /// Nonce; `None` when the client gave none.
    pub nonce: Option<Nonce>,
}

impl Caller {
    pub(super) fn submission(&self, locks: Vec<(crate::locks::Resource, crate::locks::Mode)>) -> Submission {
        Submission { owner: self.user.clone(), nonce: self.nonce, locks }
    }
}

/// The regions that these split keys make. Follows: `ModifyRegionUtils#createRegionInfos`, and the checks that
/// `HBaseAdmin` makes before it sends them.
fn regions_by_split_keys(table: &TableName, split_keys: &[Bytes], region_id: u64) -> Result<Vec<RegionInfo>> {
    let illegal = |message: String| MasterError::new(ErrorKind::IllegalArgument, message);
    if split_keys.len() >= MAX_REGIONS_PER_CREATE {
        return Err(illegal(format!("{} split keys are too many", split_keys.len())));
    }
    if split_keys.iter().any(Bytes::is_empty) {
        return Err(illegal("Empty split key must not be passed in the split keys.".into()));
    }
    let mut keys: Vec<&Bytes> = split_keys.iter().collect();
    keys.sort_unstable();
    if let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(illegal(format!(
            "All split keys must be unique, found duplicate: {}",
            cell::print::to_string_binary(twice[0])
        )));
    }
    if let Some(long) = keys.iter().find(|key| key.len() > cell::MAX_ROW_LENGTH) {
        return Err(illegal(format!("a split key of {} bytes is longer than a row may be", long.len())));
    }
    let starts = std::iter::once(Bytes::new()).chain(keys.iter().map(|key| (*key).clone()));
    let ends = keys.iter().map(|key| (*key).clone()).chain(std::iter::once(Bytes::new()));
    let regions: Vec<RegionInfo> =
        starts.zip(ends).map(|(start, end)| RegionInfo::new(table.clone(), start, end, region_id)).collect();
    regions.iter().try_for_each(check_region_name).map_err(illegal)?;
    Ok(regions)
}

/// A region's name is its row in hbase:meta; it is longer than the region's first row. Says what is wrong.
pub(super) fn check_region_name(info: &RegionInfo) -> std::result::Result<(), String> {
    let (len, row_len) = (info.name().len(), info.start_key.len());
    if len <= cell::MAX_ROW_LENGTH {
        return Ok(());
    }
    Err(format!(
        "a region whose first row has {row_len} bytes would have a name of {len}, which is no row of hbase:meta"
    ))
}

/// `tableName=t, state=ENABLED`, as the messages of enable and disable have it.
fn state_text(table: &TableName, state: TableState) -> String {
    format!("tableName={table}, state={}", state.as_str_name())
}

impl Master {
    fn existing(&self, table: &TableName) -> Result<(Arc<TableDescriptor>, TableState)> {
        let cluster = self.cluster.read();
        match (cluster.descriptor(table), cluster.state(table)) {
            (Some(descriptor), Some(state)) => Ok((descriptor, state)),
            _ => Err(MasterError::table_not_found(table)),
        }
    }

    /// The regions of a table that serve or should, in key order.
    pub(crate) fn live_regions(&self, table: &TableName) -> Vec<RegionInfo> {
        let cluster = self.cluster.read();
        cluster.regions_of(table).filter(|node| node.is_live()).map(|node| node.info.clone()).collect()
    }

    fn all_regions(&self, table: &TableName) -> Vec<RegionInfo> {
        self.cluster.read().regions_of(table).map(|node| node.info.clone()).collect()
    }

    /// An id for regions that take the place of `regions`: higher than theirs, and never lower than an id given earlier, whatever the clock
    /// does. A region with the name of one that was deleted would take its edits from the log.
    pub(super) fn next_region_id(&self, regions: &[RegionInfo]) -> u64 {
        let now = u64::try_from(self.stamp().0).unwrap_or(0);
        let id = regions.iter().map(|info| info.region_id + 1).max().unwrap_or(0).max(now);
        // What is written of these regions and later ones comes after it: so a start knows of it, too.
        self.stamp_after(i64::try_from(id).unwrap_or(i64::MAX));
        id
    }

    /// Writes a table's state to hbase:meta, then shows it.
    pub(crate) async fn set_table_state(&self, table: &TableName, state: TableState) -> Result<()> {
        self.meta.write(vec![meta::put_table_state(table, state, self.stamp())]).await?;
        self.cluster.write().set_state(table, state);
        self.observer.table_state(table, Some(state));
        Ok(())
    }

    async fn write_rows(&self, rows: impl Iterator<Item = Mutation> + Send) -> Result<()> {
        let mut rows: Vec<Mutation> = rows.collect();
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(ROWS_PER_WRITE));
            self.meta.write(std::mem::replace(&mut rows, rest)).await?;
        }
        Ok(())
    }

    // ---- create

    /// Makes a table with regions at these split keys; answers the procedure's id.
    ///
    /// # Errors
    /// Illegal names and attributes, a table of that name, no such namespace.
    pub async fn create_table(
        self: &Arc<Self>,
        table: TableDescriptor,
        split_keys: &[Bytes],
        caller: &Caller,
    ) -> Result<u64> {
        if table.name.is_system() && !self.is_bootstrapping() {
            // HBase's own tables are made by their owners, which are not here.
            tracing::warn!(table = %table.name, "a client makes a table in the namespace hbase");
        }
        self.namespace_exists(table.name.namespace())?;
        // What the server makes for itself bears any setting; follows `HMaster#createSystemTable`.
        if !(table.name.is_system() && self.is_bootstrapping()) {
            check_table(&self.settings().limits, &table)?;
        }
        let table = Arc::new(with_file_tracker(table));
        let region_id = self.next_region_id(&[]);
        let regions = regions_by_split_keys(&table.name, split_keys, region_id)?;
        let submission = caller.submission(table_locks(&table.name));
        self.submit(submission, async {
            self.namespace_exists(table.name.namespace())?;
            // One whose descriptor is damaged or gone has its regions still.
            let is_there = {
                let cluster = self.cluster.read();
                cluster.exists(&table.name) || cluster.regions_of(&table.name).next().is_some()
            };
            if is_there {
                return Err(MasterError::new(ErrorKind::TableExists, &table.name));
            }
            self.check_namespace_quota(&table.name, regions.len())?;
            Ok(Work::CreateTable { table: Arc::clone(&table), regions })
        })
        .await
    }

    /// Namespaces may limit their tables and regions.
    fn check_namespace_quota(&self, table: &TableName, regions: usize) -> Result<()> {
        let cluster = self.cluster.read();
        let namespace = table.namespace();
        let Some(configuration) = cluster.namespace(namespace) else { return Ok(()) };
        let limit = |key: &str| configuration.get(key).and_then(|value| value.trim().parse::<usize>().ok());
        let mut tables = 0;
        let mut total_regions = regions;
        for (other, _) in cluster.tables().filter(|(other, _)| other.name.namespace() == namespace) {
            tables += 1;
            total_regions += cluster.regions_of(&other.name).count();
        }
        if limit("hbase.namespace.quota.maxtables").is_some_and(|max| tables >= max) {
            return Err(MasterError::new(
                ErrorKind::Constraint,
                format!(
                    "The table {table} cannot be created as it would exceed maximum number of tables allowed  in the namespace.  The total number of tables permitted is {}",
                    limit("hbase.namespace.quota.maxtables").unwrap_or(0)
                ),
            ));
        }
        if limit("hbase.namespace.quota.maxregions").is_some_and(|max| total_regions > max) {
            return Err(MasterError::new(
                ErrorKind::Constraint,
                format!(
                    "The table {table} is not allowed to have {regions} regions. The total number of regions permitted is only {}, while current region count is {}. This may be transient, please retry later if there are any ongoing split operations in the namespace.",
                    limit("hbase.namespace.quota.maxregions").unwrap_or(0),
                    total_regions - regions
                ),
            ));
        }
        Ok(())
    }

    pub(super) async fn create_table_steps(
        self: &Arc<Self>,
        table: &Arc<TableDescriptor>,
        regions: &[RegionInfo],
    ) -> Result<()> {
        self.make_region_dirs(table, regions).await?;
        self.fill_table(table, regions, None).await
    }

    /// The table's descriptor and its regions' directories, durable.
    async fn make_region_dirs(&self, table: &Arc<TableDescriptor>, regions: &[RegionInfo]) -> Result<()> {
        let described = Arc::clone(table);
        self.blocking(move |volume| {
            rootdir::descriptor::write(volume, &described).map_err(|error| MasterError::new(ErrorKind::Io, error))
        })
        .await?;
        let chunk_len = regions.len().div_ceil(self.open_slots_count()).max(1);
        let chunks = regions.chunks(chunk_len).map(|chunk| {
            let (chunk, table) = (chunk.to_vec(), Arc::clone(table));
            self.blocking(move |volume| {
                chunk.iter().try_for_each(|info| Ok(rootdir::create_region_dir(volume, info, &table)?))
            })
        });
        // Each chunk begins at once on a thread of its own; then they are waited for.
        let started: Vec<_> = chunks.collect();
        for chunk in started {
            chunk.await?;
        }
        let dir = rootdir::table_dir(&table.name);
        self.blocking(move |volume| Ok(volume.sync_dir(&dir)?)).await
    }

    /// Rows of hbase:meta (those of `old` regions go), then the regions open, then the table is enabled.
    async fn fill_table(
        self: &Arc<Self>,
        table: &Arc<TableDescriptor>,
        regions: &[RegionInfo],
        old: Option<&[RegionInfo]>,
    ) -> Result<()> {
        let name = &table.name;
        let stamp = self.stamp();
        let removed = old.unwrap_or_default().iter().map(|info| meta::delete_region(info, stamp));
        // A repetition must not take back the location of a region that is open already.
        let open: BTreeSet<Arc<str>> = {
            let cluster = self.cluster.read();
            let nodes = cluster.regions_of(name).filter(|node| node.state == RegionState::Open);
            nodes.map(|node| Arc::clone(node.info.encoded_name())).collect()
        };
        let added = regions
            .iter()
            .filter(|info| !open.contains(info.encoded_name()))
            .map(|info| meta::put_region(info, RegionState::Closed, stamp));
        let state = std::iter::once(meta::put_table_state(name, TableState::Enabling, stamp));
        self.write_rows(removed.chain(added).chain(state).collect::<Vec<_>>().into_iter()).await?;
        {
            let mut cluster = self.cluster.write();
            for info in old.unwrap_or_default() {
                cluster.remove_region(info);
            }
            cluster.put_table(Arc::clone(table), TableState::Enabling);
            for info in regions.iter().filter(|info| !open.contains(info.encoded_name())) {
                cluster.put_region(RegionNode::new(info.clone(), RegionState::Closed, stamp));
            }
        }
        self.observer.table_state(name, Some(TableState::Enabling));
        self.assign(regions.to_vec()).await?;
        self.set_table_state(name, TableState::Enabled).await
    }

    // ---- delete

    /// Deletes a disabled table; its files go to the archive.
    ///
    /// # Errors
    /// No such table, not disabled.
    pub async fn delete_table(self: &Arc<Self>, table: &TableName, caller: &Caller) -> Result<u64> {
        self.submit(caller.submission(table_locks(table)), async {
            self.must_be_disabled(table)?;
            Ok(Work::DeleteTable { table: table.clone(), regions: self.all_regions(table) })
        })
        .await
    }

    fn must_be_disabled(&self, table: &TableName) -> Result<Arc<TableDescriptor>> {
        let (descriptor, state) = self.existing(table)?;
        if state != TableState::Disabled {
            return Err(MasterError::new(ErrorKind::TableNotDisabled, table));
        }
        Ok(descriptor)
    }

    pub(super) async fn delete_table_steps(&self, table: &TableName, regions: &[RegionInfo]) -> Result<()> {
        let name = table.clone();
        self.blocking(move |volume| Ok(rootdir::archive_table(volume, &name)?)).await?;
        let stamp = self.delete_stamp();
        let rows: Vec<_> = regions
            .iter()
            .map(|info| meta::delete_region(info, stamp))
            .chain(std::iter::once(meta::delete_table_state(table, stamp)))
            .collect();
        self.write_rows(rows.into_iter()).await?;
        self.cluster.write().remove_table(table);
        self.observer.table_state(table, None);
        Ok(())
    }

    // ---- truncate

    /// Deletes and makes again a disabled table, with its splits if they are to be preserved; it ends enabled.
    ///
    /// # Errors
    /// No such table, not disabled.
    pub async fn truncate_table(
        self: &Arc<Self>,
        table: &TableName,
        preserve_splits: bool,
        caller: &Caller,
    ) -> Result<u64> {
        self.submit(caller.submission(table_locks(table)), async {
            if table.is_system() {
                return Err(MasterError::new(ErrorKind::Constraint, format!("Cannot truncate {table}")));
            }
            let descriptor = self.must_be_disabled(table)?;
            let old = self.all_regions(table);
            let region_id = self.next_region_id(&old);
            let split_keys: Vec<Bytes> = if preserve_splits {
                self.live_regions(table).into_iter().map(|info| info.start_key).filter(|key| !key.is_empty()).collect()
            } else {
                Vec::new()
            };
            let new = regions_by_split_keys(table, &split_keys, region_id)?;
            Ok(Work::TruncateTable { table: descriptor, preserve_splits, old, new })
        })
        .await
    }

    pub(super) async fn truncate_table_steps(
        self: &Arc<Self>,
        table: &Arc<TableDescriptor>,
        old: &[RegionInfo],
        new: &[RegionInfo],
    ) -> Result<()> {
        let (name, kept) = (table.name.clone(), new.to_vec());
        self.blocking(move |volume| Ok(rootdir::archive::archive_other_regions(volume, &name, &kept)?)).await?;
        self.make_region_dirs(table, new).await?;
        self.fill_table(table, new, Some(old)).await
    }

    // ---- enable, disable

    /// Opens a disabled table.
    ///
    /// # Errors
    /// No such table, not disabled.
    pub async fn enable_table(self: &Arc<Self>, table: &TableName, caller: &Caller) -> Result<u64> {
        self.submit(caller.submission(table_locks(table)), async {
            let (_, state) = self.existing(table)?;
            if state != TableState::Disabled {
                return Err(MasterError::new(ErrorKind::TableNotDisabled, state_text(table, state)));
            }
            Ok(Work::EnableTable { table: table.clone() })
        })
        .await
    }

    pub(crate) async fn enable_table_steps(self: &Arc<Self>, table: &TableName) -> Result<()> {
        if self.cluster.read().state(table) != Some(TableState::Enabled) {
            self.set_table_state(table, TableState::Enabling).await?;
        }
        self.assign(self.live_regions(table)).await?;
        self.set_table_state(table, TableState::Enabled).await
    }

    /// Closes a table.
    ///
    /// # Errors
    /// No such table, not enabled, hbase:meta.
    pub async fn disable_table(self: &Arc<Self>, table: &TableName, caller: &Caller) -> Result<u64> {
        self.submit(caller.submission(table_locks(table)), async {
            if table.is_meta() || *table == TableName::namespace_table() {
                return Err(MasterError::new(ErrorKind::Constraint, format!("Cannot disable {table}")));
            }
            let (_, state) = self.existing(table)?;
            if state != TableState::Enabled {
                return Err(MasterError::new(ErrorKind::TableNotEnabled, state_text(table, state)));
            }
            Ok(Work::DisableTable { table: table.clone() })
        })
        .await
    }

    pub(crate) async fn disable_table_steps(self: &Arc<Self>, table: &TableName) -> Result<()> {
        self.set_table_state(table, TableState::Disabling).await?;
        self.unassign(self.live_regions(table)).await?;
        self.set_table_state(table, TableState::Disabled).await
    }

    // ---- modify

    /// Changes a table to `new`; its regions are reopened one by one unless the client says not to.
    ///
    /// # Errors
    /// No such table, illegal attributes, a change that needs what is not done.
    pub async fn modify_table(
        self: &Arc<Self>,
        table: &TableName,
        new: TableDescriptor,
        reopen: bool,
        caller: &Caller,
    ) -> Result<u64> {
        self.change_table(table, reopen, caller, |_| Ok(new)).await
    }

    async fn change_table(
        self: &Arc<Self>,
        table: &TableName,
        reopen: bool,
        caller: &Caller,
        change: impl FnOnce(&TableDescriptor) -> Result<TableDescriptor>,
    ) -> Result<u64> {
        self.existing(table)?;
        self.submit(caller.submission(table_locks(table)), async {
            let (old, _) = self.existing(table)?;
            let new = with_file_tracker(change(&old)?);
            if new.name != old.name {
                return Err(MasterError::do_not_retry(format!(
                    "the descriptor is of table {}, not of {table}",
                    new.name
                )));
            }
            check_table(&self.settings().limits, &new)?;
            if table.is_meta()
                && ["info", "table", "rep_barrier"].iter().any(|f| !new.families.contains_key(f.as_bytes()))
            {
                return Err(MasterError::do_not_retry("Delete of hbase:meta column family"));
            }
            if !reopen {
                check_without_reopening(&old, &new)?;
            }
            Ok(Work::ModifyTable { old, new: Arc::new(new), reopen })
        })
        .await
    }

    /// Adds a family.
    ///
    /// # Errors
    /// No such table, the family is there, illegal attributes.
    pub async fn add_family(
        self: &Arc<Self>,
        table: &TableName,
        family: model::FamilyDescriptor,
        caller: &Caller,
    ) -> Result<u64> {
        self.change_table(table, true, caller, |old| {
            let mut new = old.clone();
            let shown = String::from_utf8_lossy(&family.name).into_owned();
            if new.families.insert(family.name.clone(), family).is_some() {
                return Err(MasterError::new(
                    ErrorKind::InvalidFamilyOperation,
                    format!("Column family '{shown}' in table '{table}' already exists so cannot be added"),
                ));
            }
            Ok(new)
        })
        .await
    }

    /// Replaces a family's attributes.
    ///
    /// # Errors
    /// No such table or family, illegal attributes.
    pub async fn modify_family(
        self: &Arc<Self>,
        table: &TableName,
        family: model::FamilyDescriptor,
        caller: &Caller,
    ) -> Result<u64> {
        self.change_table(table, true, caller, |old| {
            let mut new = old.clone();
            let shown = String::from_utf8_lossy(&family.name).into_owned();
            if new.families.insert(family.name.clone(), family).is_none() {
                return Err(MasterError::new(
                    ErrorKind::InvalidFamilyOperation,
                    format!("Family '{shown}' does not exist, so it cannot be modified"),
                ));
            }
            Ok(new)
        })
        .await
    }

    /// Deletes a family; its files go to the archive.
    ///
    /// # Errors
    /// No such table or family, the table's only one.
    pub async fn delete_family(self: &Arc<Self>, table: &TableName, family: &Bytes, caller: &Caller) -> Result<u64> {
        self.change_table(table, true, caller, |old| {
            let mut new = old.clone();
            let shown = String::from_utf8_lossy(family);
            let refused = |what: &str| {
                let message = format!("Family '{shown}' {what}, so it cannot be deleted");
                MasterError::new(ErrorKind::InvalidFamilyOperation, message)
            };
            if new.families.remove(family).is_none() {
                return Err(refused("does not exist"));
            }
            if new.families.is_empty() {
                return Err(refused("is the only column family in the table"));
            }
            Ok(new)
        })
        .await
    }

    pub(super) async fn modify_table_steps(
        self: &Arc<Self>,
        old: &Arc<TableDescriptor>,
        new: &Arc<TableDescriptor>,
        reopen: bool,
    ) -> Result<()> {
        let written = Arc::clone(new);
        self.blocking(move |volume| {
            rootdir::descriptor::write(volume, &written).map_err(|error| MasterError::new(ErrorKind::Io, error))
        })
        .await?;
        self.cluster.write().set_descriptor(Arc::clone(new));
        if reopen {
            self.reopen(self.open_regions_of(&new.name)).await?;
        }
        let lost: Vec<String> = old
            .families
            .keys()
            .filter(|family| !new.families.contains_key(*family))
            .map(|family| String::from_utf8_lossy(family).into_owned())
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        let name = new.name.clone();
        self.blocking(move |volume| Ok(rootdir::archive_families(volume, &name, &lost)?)).await
    }

    /// Regions that are open, or were when an earlier attempt stopped half way.
    fn open_regions_of(&self, table: &TableName) -> Vec<RegionInfo> {
        let cluster = self.cluster.read();
        let begun = |state| matches!(state, RegionState::Open | RegionState::Opening | RegionState::Closing);
        let open = cluster.regions_of(table).filter(|node| node.is_live() && begun(node.state));
        open.map(|node| node.info.clone()).collect()
    }

    /// Tells whether there is a table, before anything that costs more.
    pub(crate) fn must_exist(&self, table: &TableName) -> Result<Arc<TableDescriptor>> {
        self.existing(table).map(|(descriptor, _)| descriptor)
    }

    /// A timestamp for a group of cells: never before one given earlier, whatever the clock does.
    pub(crate) fn stamp(&self) -> TimestampMs {
        let now = self.clock.now_ms().0;
        let mut given = self.last_stamp.lock();
        *given = now.max(*given);
        TimestampMs(*given)
    }

    /// No timestamp from now on is before this one.
    pub(crate) fn stamp_after(&self, stamp: i64) {
        let mut given = self.last_stamp.lock();
        *given = stamp.max(*given);
    }

    /// A timestamp for deleting a row that may come back: whatever is written later has a later one, and is not hidden.
    pub(crate) fn delete_stamp(&self) -> TimestampMs {
        let stamp = self.stamp();
        let mut given = self.last_stamp.lock();
        *given = (*given).max(stamp.0 + 1);
        stamp
    }
}

/// What a change may not do when the regions are not reopened. Follows: `ModifyTableProcedure#preflightChecks`.
fn check_without_reopening(old: &TableDescriptor, new: &TableDescriptor) -> Result<()> {
    if old.families.len() != new.families.len() || old.families.keys().ne(new.families.keys()) {
        return Err(MasterError::do_not_retry(
            "Cannot add or remove column families when this modification won't reopen regions.",
        ));
    }
    let coprocessors = |table: &TableDescriptor| -> Vec<(Bytes, Bytes)> {
        let is_coprocessor = |key: &Bytes| key.to_ascii_lowercase().starts_with(b"coprocessor");
        table.attributes.iter().filter(|(k, _)| is_coprocessor(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    if coprocessors(old) != coprocessors(new) {
        return Err(MasterError::do_not_retry(
            "Can not modify Coprocessor when table modification won't reopen regions",
        ));
    }
    for key in ["REGION_REPLICATION", "REGION_MEMSTORE_REPLICATION", "hbase.rsgroup.name"] {
        if old.attributes.get(key.as_bytes()) != new.attributes.get(key.as_bytes()) {
            return Err(MasterError::do_not_retry(format!(
                "Can not modify {key} of a table when modification won't reopen regions"
            )));
        }
    }
    Ok(())
}
