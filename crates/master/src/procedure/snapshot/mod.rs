//! Snapshots: taken, restored, cloned. Follows: `SnapshotProcedure`, `RestoreSnapshotProcedure`, `CloneSnapshotProcedure`.

pub(crate) mod clone;
pub(crate) mod recovery;
pub(crate) mod restore;
pub(crate) mod take;

use crate::cluster::{RegionNode, RegionState};
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::table_locks;
use crate::snapshots::name_lock;
use crate::{MasterError, Result, meta};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::pb;
use rootdir::snapshot::restore::{Filling, Placed, daughters, place_regions};
use rootdir::snapshot::{self, Manifest};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What making a table of a snapshot holds.
fn locks_to_fill(table: &TableName, snapshot: &str) -> Vec<(Resource, Mode)> {
    let mut locks = table_locks(table);
    locks.push(name_lock(snapshot, Mode::Shared));
    locks
}

/// Says what the regions of a snapshot become in a table; ids are taken for the new ones.
async fn place(master: &Arc<Master>, manifest: &Manifest, table: &TableName) -> Result<Vec<Placed>> {
    let name = table.clone();
    let list = move |volume: &dyn fs::Volume| Ok(rootdir::region_names(volume, &rootdir::table_dir(&name))?);
    let existing: BTreeSet<String> = master.files.run(list).await?.into_iter().collect();
    let infos: Vec<RegionInfo> = manifest.regions.iter().map(|region| region.info.clone()).collect();
    let first = master.catalog.next_region_id(&infos);
    let placed = place_regions(manifest, table, &existing, first);
    let last = placed.iter().map(|placed| placed.info.region_id).max().unwrap_or(first);
    // Nobody else gets one of these ids.
    master.catalog.stamp_after(i64::try_from(last.max(first)).unwrap_or(i64::MAX));
    for placed in &placed {
        super::region::check_name(&placed.info).map_err(MasterError::do_not_retry)?;
    }
    Ok(placed)
}

/// What [`place`] said, from what is kept of it: the regions that were there, and the new ones in the order of the manifest.
fn placed_again(manifest: &Manifest, there: &[RegionInfo], new: &[RegionInfo]) -> Result<Vec<Placed>> {
    let mut new = new.iter();
    let there: HashMap<&str, &RegionInfo> = there.iter().map(|info| (&**info.encoded_name(), info)).collect();
    let regions = manifest.regions.iter().enumerate().filter(|(_, region)| !region.is_mob());
    regions
        .map(|(source, region)| {
            let same = there.get(&**region.info.encoded_name()).copied();
            let info = same.or_else(|| new.next()).ok_or_else(|| {
                MasterError::do_not_retry(format!("snapshot of {} has other regions than it had", manifest.table.name))
            })?;
            Ok(Placed { source, info: info.clone(), is_there: same.is_some() })
        })
        .collect()
}

/// Fills the directories of a table from a snapshot; those of regions that the snapshot does not have go to the archive.
async fn fill(master: &Arc<Master>, filling: Filling) -> Result<()> {
    // What links are made to may be in the archive already: nobody deletes from it meanwhile.
    let _no_cleaner = master.cleaner.lock().await;
    let filling = Arc::new(filling);
    let (mob, table) = (Arc::clone(&filling), filling.table.clone());
    master
        .files
        .run(move |volume| {
            rootdir::descriptor::write(volume, &table)
                .map_err(|error| MasterError::new(crate::ErrorKind::Io, error))?;
            Ok(mob.fill_mob_region(volume)?)
        })
        .await?;
    let count = filling.placed.len();
    let chunk_len = count.div_ceil(master.open_slots_count).max(1);
    let mut running = JoinSet::new();
    for start in (0..count).step_by(chunk_len) {
        let filling = Arc::clone(&filling);
        running.spawn(master.files.run(move |volume| {
            let end = count.min(start + chunk_len);
            Ok(filling.fill_regions(volume, &filling.placed[start..end])?)
        }));
    }
    all(running).await?;
    let clear = move |volume: &dyn fs::Volume| {
        let kept: Vec<RegionInfo> = filling.placed.iter().map(|placed| placed.info.clone()).collect();
        Ok(rootdir::archive::archive_other_regions(volume, &filling.table.name, &kept)?)
    };
    master.files.run(clear).await
}

/// Waits for all; the first error is answered when they are through.
async fn all(mut running: JoinSet<Result<()>>) -> Result<()> {
    let mut outcome = Ok(());
    while let Some(done) = running.join_next().await {
        let done = done.unwrap_or_else(|panic| Err(MasterError::do_not_retry(format!("internal error: {panic}"))));
        outcome = outcome.and(done);
    }
    outcome
}

/// Rows of hbase:meta for the regions of a table that was filled, in place of all that it had; then the picture of them.
async fn update_meta(master: &Master, table: &TableDescriptor, filling: &Filling) -> Result<()> {
    let old = master.tables.all_regions(&table.name);
    let gone = master.catalog.delete_stamp();
    let stamp = master.catalog.stamp();
    let by_source: HashMap<usize, &RegionInfo> =
        filling.placed.iter().map(|placed| (placed.source, &placed.info)).collect();
    let children = |placed: &Placed| -> Option<[RegionInfo; 2]> {
        let at = |source: usize| by_source.get(&source).map(|info| (*info).clone());
        let [bottom, top] = daughters(&filling.manifest, placed.source)?;
        Some([at(bottom)?, at(top)?])
    };
    let mut nodes = Vec::with_capacity(filling.placed.len());
    let mut rows: Vec<_> = old.iter().map(|info| meta::delete_region(info, gone)).collect();
    for placed in &filling.placed {
        let is_parent = placed.info.split && placed.info.offline;
        let state = if is_parent { RegionState::Split } else { RegionState::Closed };
        let mut node = RegionNode::new(placed.info.clone(), state, stamp);
        // Whoever looks for daughters goes through the whole manifest.
        match is_parent.then(|| children(placed)).flatten() {
            Some(daughters) => {
                rows.push(meta::put_split_parent(&placed.info, &daughters, stamp));
                node.daughters = daughters.to_vec();
            }
            None => rows.push(meta::put_region(&placed.info, state, stamp)),
        }
        nodes.push(node);
    }
    master.catalog.write_many(rows).await?;
    let mut cluster = master.cluster.write();
    for info in &old {
        cluster.remove_region(info);
    }
    for node in nodes {
        cluster.put_region(node);
    }
    Ok(())
}

/// Reads the snapshot of a procedure that goes on.
async fn filling(
    master: &Master,
    snapshot: &pb::SnapshotDescription,
    table: &TableDescriptor,
    there: &[RegionInfo],
    new: &[RegionInfo],
) -> Result<Filling> {
    let dir = snapshot::completed_dir(&snapshot.name);
    let manifest = master.files.run(move |volume| Ok(snapshot::read_manifest(volume, &dir)?)).await?;
    let placed = placed_again(&manifest, there, new)?;
    let trackers = master.settings().limits.trackers().clone();
    Ok(Filling { manifest, table: table.clone(), placed, trackers, now_ms: master.clock.now_ms().0 })
}
