//! Splits, merges and flushes: work on regions that serve. Follows: `SplitTableRegionProcedure`,
//! `MergeTableRegionsProcedure`, `FlushTableProcedure`.
//!
//! A split or merge has one point of no return, its write to hbase:meta. Before it, everything is taken back when
//! something fails; after a crash before it, the new directories are removed and the work begins anew.

use super::ddl::{Caller, check_region_name};
use super::{Submission, Work, region_locks};
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::{ErrorKind, HostError, MasterError, Result, meta};
use bytes::Bytes;
use cell::{CellType, KeyRef};
use fs::{FilePath, Volume};
use model::{RegionInfo, TableName};
use proto::{magic, pb};
use std::sync::Arc;
use std::time::Duration;

/// Two regions that follow each other without a gap.
fn adjacent(first: &RegionInfo, second: &RegionInfo) -> bool {
    !first.end_key.is_empty() && first.end_key == second.start_key
}

/// The bytes of a file that refers to all of a parent's file: everything from the parent's first row on.
fn reference_bytes(parent: &RegionInfo) -> Bytes {
    let mut key = Vec::new();
    KeyRef::write(&mut key, &parent.start_key, b"", b"", i64::MAX, CellType::Maximum.code());
    magic::encode(&pb::Reference { splitkey: Bytes::from(key), range: pb::reference::Range::Top as i32 })
}

/// Writes the child's directory: for each store file of each parent a reference `<file>.<parent>`.
fn write_merged_files(volume: &dyn Volume, parents: &[RegionInfo], child: &RegionInfo) -> Result<()> {
    let dir = rootdir::region_dir(child);
    for parent in parents {
        let parent_dir = rootdir::region_dir(parent);
        for family in rootdir::family_names(volume, &parent_dir)? {
            let target = dir.join(&family);
            volume.create_dir_all(&target)?;
            for file in rootdir::list_if_exists(volume, &parent_dir.join(family))? {
                if file.is_dir || file.name.starts_with('.') {
                    continue;
                }
                if rootdir::store_file::is_reference(&file.name) {
                    let message = format!("region {} has references and is NOT mergeable", parent.encoded_name());
                    return Err(MasterError::new(ErrorKind::MergeRegion, message));
                }
                let name = format!("{}.{}", file.name, parent.encoded_name());
                volume.publish(&target.join(name), &reference_bytes(parent))?;
            }
        }
    }
    Ok(())
}

impl Master {
    /// Splits a region, at `split_row` or where it is largest; answers the procedure's id.
    ///
    /// # Errors
    /// An unknown region, one that is not open or cannot be split there, the split switch being off.
    pub async fn split_region(
        self: &Arc<Self>,
        encoded_name: &str,
        split_row: Option<Bytes>,
        caller: &Caller,
    ) -> Result<u64> {
        let info = self.known_region(encoded_name)?;
        if info.table.is_meta() {
            return Err(MasterError::do_not_retry("hbase:meta is never split"));
        }
        if !self.switches.split() {
            return Err(MasterError::do_not_retry(format!(
                "Split switch is off! skip split of {}",
                info.name_string()
            )));
        }
        self.submit(caller.submission(region_locks(std::slice::from_ref(&info))), async {
            if !self.must_exist(&info.table)?.split_enabled() {
                return Err(MasterError::do_not_retry(format!(
                    "Split is disabled for the table! skip split of {}",
                    info.name_string()
                )));
            }
            self.must_be_open(&info)?;
            let looked_at = info.clone();
            if self.blocking(move |volume| Ok(rootdir::archive::refers_to(volume, &looked_at, None)?)).await? {
                return Err(MasterError::do_not_retry(format!(
                    "{} NOT splittable: it still refers to files of the region that it was split or merged from; compact it first",
                    info.name_string()
                )));
            }
            let split_row = match split_row {
                Some(row) if !row.is_empty() => row,
                _ => self.host_of(info.encoded_name())?.split_point(info.encoded_name()).await?.ok_or_else(|| {
                    MasterError::do_not_retry(
                        "Region not splittable because bestSplitPoint = null, maybe table is too small for auto split. For force split, try specifying split row",
                    )
                })?,
            };
            let shown = || cell::print::to_string_binary(&split_row);
            if split_row == info.start_key {
                return Err(MasterError::do_not_retry(format!("Split row is equal to startkey: {}", shown())));
            }
            if !info.contains(&split_row) {
                return Err(MasterError::do_not_retry(format!(
                    "Split row is not inside region key range splitKey:{} region: {}",
                    shown(),
                    info.name_string()
                )));
            }
            let id = self.next_region_id(std::slice::from_ref(&info));
            let daughters = [
                RegionInfo::new(info.table.clone(), info.start_key.clone(), split_row.clone(), id),
                RegionInfo::new(info.table.clone(), split_row, info.end_key.clone(), id),
            ];
            check_region_name(&daughters[1]).map_err(MasterError::do_not_retry)?;
            Ok(Work::SplitRegion { parent: info.clone(), daughters: Box::new(daughters) })
        })
        .await
    }

    /// A region that the master knows, by its encoded name.
    pub(crate) fn known_region(&self, encoded_name: &str) -> Result<RegionInfo> {
        let info = self.cluster.read().region(encoded_name).map(|node| node.info.clone());
        info.ok_or_else(|| MasterError::new(ErrorKind::UnknownRegion, encoded_name))
    }

    fn must_be_open(&self, info: &RegionInfo) -> Result<()> {
        let state = self.cluster.read().region(info.encoded_name()).map(|node| node.state);
        match state {
            Some(RegionState::Open) => Ok(()),
            Some(state) => Err(MasterError::do_not_retry(format!(
                "region {} is not OPEN; its state is {}",
                info.name_string(),
                state.as_str_name()
            ))),
            None => Err(MasterError::new(ErrorKind::UnknownRegion, info.name_string())),
        }
    }

    fn set_region_state(&self, info: &RegionInfo, state: RegionState) {
        let now = self.clock.now_ms();
        self.cluster.write().change_region(info.encoded_name(), |node| (node.state, node.since) = (state, now));
    }

    /// Repeats what must not be given up, until it is done or the master stops.
    async fn insist<F: Future<Output = Result<()>> + Send>(&self, mut attempt: impl FnMut() -> F + Send) -> Result<()> {
        let mut wait = Duration::from_millis(50);
        loop {
            match attempt().await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "past the point of no return, will try again");
                    self.pause(wait).await?;
                    wait = (wait * 2).min(Duration::from_secs(20));
                }
                result => return result,
            }
        }
    }

    async fn remove_region_dirs(&self, regions: &[RegionInfo]) -> Result<()> {
        let dirs: Vec<FilePath> = regions.iter().map(rootdir::region_dir).collect();
        self.blocking(move |volume| {
            for dir in dirs {
                rootdir::paths::remove_dir_durably(volume, &dir)?;
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn split_steps(self: &Arc<Self>, parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> Result<()> {
        let state = self.cluster.read().region(parent.encoded_name()).map(|node| node.state);
        if !matches!(state, Some(RegionState::Split) | None) {
            if let Err(error) = self.split_files(parent, daughters).await {
                return self.take_back(std::slice::from_ref(parent), daughters, error).await;
            }
            self.insist(|| async {
                let stamp = self.stamp();
                let rows = vec![
                    meta::put_split_parent(parent, daughters, stamp),
                    meta::put_daughter(&daughters[0], stamp),
                    meta::put_daughter(&daughters[1], stamp),
                ];
                self.meta.write(rows).await
            })
            .await?;
            let now = self.clock.now_ms();
            let mut cluster = self.cluster.write();
            cluster.change_region(parent.encoded_name(), |node| {
                (node.info.offline, node.info.split) = (true, true);
                (node.state, node.since, node.location) = (RegionState::Split, now, None);
                node.daughters = daughters.to_vec();
            });
            for daughter in daughters {
                cluster.put_region(RegionNode::new(daughter.clone(), RegionState::Closed, now));
            }
        }
        self.open_children(parent, daughters).await
    }

    async fn split_files(&self, parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> Result<()> {
        let table = self.must_exist(&parent.table)?;
        self.take_out(std::slice::from_ref(parent), RegionState::Splitting).await?;
        // What an earlier attempt left.
        self.remove_region_dirs(daughters).await?;
        let host = self.host_of(parent.encoded_name())?;
        Ok(host.split_region_files(parent, table, daughters.clone()).await?)
    }

    /// Closes regions that are to be replaced. They were open: after a crash one may not be, and what waits for it in the logs is in no file
    /// that its successors would refer to. Follows: `SplitTableRegionProcedure#checkClosedRegion`.
    async fn take_out(&self, regions: &[RegionInfo], state: RegionState) -> Result<()> {
        for info in regions {
            self.must_be_open(info)?;
        }
        for info in regions {
            self.set_region_state(info, state);
        }
        for info in regions {
            self.host_of(info.encoded_name())?.close_region(info.encoded_name()).await?;
        }
        Ok(())
    }

    /// Before the point of no return: the new directories go, the old regions serve again.
    async fn take_back(
        self: &Arc<Self>,
        parents: &[RegionInfo],
        children: &[RegionInfo],
        error: MasterError,
    ) -> Result<()> {
        if error.is_stopped() {
            return Err(error);
        }
        tracing::warn!(parent = %parents[0].name_string(), %error, "split or merge is rolled back");
        self.insist(|| self.remove_region_dirs(children)).await?;
        self.insist(|| self.assign(parents.to_vec())).await?;
        Err(MasterError { kind: if error.is_transient() { ErrorKind::DoNotRetry } else { error.kind }, ..error })
    }

    async fn open_children(self: &Arc<Self>, parent: &RegionInfo, children: &[RegionInfo]) -> Result<()> {
        let enabled = self.cluster.read().state(&parent.table) == Some(TableState::Enabled);
        // After a crash they may have been opened, or split in their turn, already.
        let waiting: Vec<RegionInfo> = {
            let cluster = self.cluster.read();
            let closed = |info: &&RegionInfo| {
                cluster
                    .region(info.encoded_name())
                    .is_some_and(|node| node.is_live() && node.state != RegionState::Open)
            };
            children.iter().filter(closed).cloned().collect()
        };
        if enabled { self.assign(waiting).await } else { Ok(()) }
    }

    /// Merges regions that follow each other; answers the procedure's id.
    ///
    /// # Errors
    /// Unknown regions, of several tables, not adjacent, not open, the merge switch being off.
    pub async fn merge_regions(
        self: &Arc<Self>,
        encoded_names: &[String],
        _forcible: bool,
        caller: &Caller,
    ) -> Result<u64> {
        let refused = |message: String| MasterError::new(ErrorKind::MergeRegion, message);
        let mut parents = Vec::with_capacity(encoded_names.len());
        for name in encoded_names {
            parents.push(self.known_region(name)?);
        }
        if parents.len() < 2 {
            return Err(refused("Need two Regions at least to run a Merge".into()));
        }
        parents.sort_by(|a, b| a.start_key.cmp(&b.start_key).then(a.region_id.cmp(&b.region_id)));
        if let Some(pair) = parents.windows(2).find(|pair| pair[0].encoded_name() == pair[1].encoded_name()) {
            return Err(refused(format!(
                "Duplicate regions specified; cannot merge a region to itself. Passed in {}",
                pair[0].encoded_name()
            )));
        }
        if let Some(other) = parents.iter().find(|info| info.table != parents[0].table) {
            return Err(refused(format!(
                "Can't merge regions from two different tables: {}, {}",
                parents[0].name_string(),
                other.name_string()
            )));
        }
        if let Some(pair) = parents.windows(2).find(|pair| !adjacent(&pair[0], &pair[1])) {
            return Err(refused(format!(
                "Unable to merge non-adjacent or non-overlapping regions {}, {} when force=false",
                pair[0].name_string(),
                pair[1].name_string()
            )));
        }
        if parents[0].table.is_meta() {
            return Err(refused("hbase:meta is never merged".into()));
        }
        if !self.switches.merge() {
            return Err(MasterError::do_not_retry("Merge switch is off! skip merge of regions"));
        }
        self.submit(caller.submission(region_locks(&parents)), async {
            for info in &parents {
                self.must_be_open(info)?;
                let merged =
                    self.cluster.read().region(info.encoded_name()).is_some_and(|n| !n.merge_parents.is_empty());
                if merged {
                    return Err(refused(format!(
                        "Skip merging {}, because it still refers to regions that it was merged from",
                        info.name_string()
                    )));
                }
            }
            let id = self.next_region_id(&parents);
            let (first, last) = (&parents[0], &parents[parents.len() - 1]);
            let child = RegionInfo::new(first.table.clone(), first.start_key.clone(), last.end_key.clone(), id);
            Ok(Work::MergeRegions { parents: parents.clone(), child })
        })
        .await
    }

    pub(super) async fn merge_steps(self: &Arc<Self>, parents: &[RegionInfo], child: &RegionInfo) -> Result<()> {
        // The child that took their place may be gone already, split and cleaned away in its turn.
        let are_there = {
            let cluster = self.cluster.read();
            parents.iter().all(|parent| cluster.region(parent.encoded_name()).is_some())
        };
        if are_there {
            if let Err(error) = self.merge_files(parents, child).await {
                return self.take_back(parents, std::slice::from_ref(child), error).await;
            }
            self.insist(|| async {
                let stamp = self.stamp();
                let gone = parents.iter().map(|parent| meta::delete_region(parent, stamp));
                self.meta.write(gone.chain([meta::put_merged(child, parents, stamp)]).collect()).await
            })
            .await?;
            let now = self.clock.now_ms();
            let mut cluster = self.cluster.write();
            for parent in parents {
                cluster.remove_region(parent);
            }
            let mut node = RegionNode::new(child.clone(), RegionState::Closed, now);
            node.merge_parents = parents.to_vec();
            cluster.put_region(node);
        }
        self.open_children(child, std::slice::from_ref(child)).await
    }

    async fn merge_files(&self, parents: &[RegionInfo], child: &RegionInfo) -> Result<()> {
        let table = self.must_exist(&child.table)?;
        self.take_out(parents, RegionState::Merging).await?;
        self.remove_region_dirs(std::slice::from_ref(child)).await?;
        let (parents, child) = (parents.to_vec(), child.clone());
        self.blocking(move |volume| {
            rootdir::create_region_dir(volume, &child, &table)?;
            write_merged_files(volume, &parents, &child)?;
            Ok(volume.sync_dir(&rootdir::table_dir(&child.table))?)
        })
        .await
    }

    /// Writes a table's memstores out, of all families or of these; answers the procedure's id.
    ///
    /// # Errors
    /// No such table, not enabled, no such family.
    pub async fn flush_table(
        self: &Arc<Self>,
        table: &TableName,
        families: Vec<Bytes>,
        caller: &Caller,
    ) -> Result<u64> {
        let locks = vec![(Resource::Table(table.clone()), Mode::Shared)];
        let submission = Submission { owner: caller.user.clone(), nonce: caller.nonce, locks };
        self.submit(submission, async {
            let descriptor = self.must_exist(table)?;
            if self.cluster.read().state(table) != Some(TableState::Enabled) {
                return Err(MasterError::new(ErrorKind::TableNotEnabled, table));
            }
            if let Some(family) = families.iter().find(|family| !descriptor.families.contains_key(*family)) {
                return Err(MasterError::do_not_retry(format!(
                    "Column family {} does not exist in table {table}",
                    String::from_utf8_lossy(family)
                )));
            }
            Ok(Work::FlushTable { table: table.clone(), families })
        })
        .await
    }

    pub(super) async fn flush_table_steps(&self, table: &TableName, families: &[Bytes]) -> Result<()> {
        let regions: Vec<Arc<str>> = {
            let cluster = self.cluster.read();
            let open = cluster.regions_of(table).filter(|node| node.state == RegionState::Open);
            open.map(|node| Arc::clone(node.info.encoded_name())).collect()
        };
        for region in regions {
            // One that closed since was flushed by that.
            let Ok(host) = self.host_of(&region) else { continue };
            match host.flush_region(&region, families.to_vec()).await {
                // A region that closed meanwhile was flushed by that.
                Err(HostError::Refused(_)) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
