//! Regions: split, merged, flushed, emptied. Follows: `SplitTableRegionProcedure`, `MergeTableRegionsProcedure`,
//! `FlushTableProcedure`, `TruncateRegionProcedure`.
//!
//! A split or merge has one point of no return, its write to hbase:meta. Before it, everything is rolled back when
//! something fails; after a crash before it, the new directories are removed and the work begins anew.

pub(crate) mod flush;
pub(crate) mod merge;
pub(crate) mod split;
pub(crate) mod transit;
pub(crate) mod truncate;

use crate::cluster::{RegionState, TableState};
use crate::master::Master;
use crate::procedure::Context;
use crate::procedure::engine::Step;
use crate::{ErrorKind, MasterError, Result};
use fs::FilePath;
use model::RegionInfo;
use proto::pb::RegionTransitionType;
use std::sync::Arc;

/// A region's name is its row in hbase:meta; it is longer than the region's first row. Says what is wrong.
pub(crate) fn check_name(info: &RegionInfo) -> std::result::Result<(), String> {
    let (len, row_len) = (info.name().len(), info.start_key.len());
    if len <= cell::MAX_ROW_LENGTH {
        return Ok(());
    }
    Err(format!(
        "a region whose first row has {row_len} bytes would have a name of {len}, which is no row of hbase:meta"
    ))
}

/// An error of the work before the point of no return: it is given up, not tried again.
fn given_up(error: MasterError) -> MasterError {
    let kind = if error.is_transient() { ErrorKind::DoNotRetry } else { error.kind };
    MasterError { kind, ..error }
}

/// Follows: `RegionStateNode#checkOnline`.
fn must_be_open(master: &Master, info: &RegionInfo) -> Result<()> {
    let name = info.encoded_name();
    let state = master.cluster.read().region(name).map(|node| node.state);
    match state {
        Some(RegionState::Open) => Ok(()),
        Some(state) => {
            let message = format!("{name} is not OPEN; state={}", state.as_str_name());
            Err(MasterError::new(ErrorKind::DoNotRetryRegion, message))
        }
        None => Err(MasterError::new(ErrorKind::UnknownRegion, format!("No RegionState found for {name}"))),
    }
}

async fn remove_region_dirs(master: &Master, regions: &[RegionInfo]) -> Result<()> {
    let dirs: Vec<FilePath> = regions.iter().map(rootdir::region_dir).collect();
    let remove = move |volume: &dyn fs::Volume| {
        for dir in dirs {
            rootdir::paths::remove_dir_durably(volume, &dir)?;
        }
        Ok(())
    };
    master.files.run(remove).await
}

/// Closes regions that are to be replaced. They were open: after a crash one may not be, and what waits for it in the
/// logs is in no file that its successors would refer to. Follows: `SplitTableRegionProcedure#checkClosedRegion`.
async fn close_parents(master: &Arc<Master>, regions: &[RegionInfo], state: RegionState) -> Result<()> {
    for info in regions {
        must_be_open(master, info)?;
    }
    // They show the parents' files, and have none to be referred to.
    master.assignment.unassign_replicas(regions).await?;
    for info in regions {
        master.assignment.note_state(info, state);
    }
    for info in regions {
        let host = master.assignment.host_of(info.encoded_name())?;
        master.assignment.close_on(&*host, info).await?;
        master.assignment.note_let_go(info);
    }
    Ok(())
}

/// Before the point of no return: the new directories go, the old regions serve again.
async fn reopen_parents(context: &Context, parents: &[RegionInfo], children: &[RegionInfo]) -> Result<()> {
    let master = &context.env;
    remove_region_dirs(master, children).await?;
    let live =
        |info: &&RegionInfo| master.cluster.read().region(info.encoded_name()).is_some_and(|node| node.is_live());
    // One that was split or merged away meanwhile is never opened again: others have what it had.
    let live: Vec<RegionInfo> = parents.iter().filter(live).cloned().collect();
    context.found_rolled_back(live.clone()).await?;
    master.assignment.assign(live).await
}

/// Opens what was made of `parent`. `opened` are the steps with which HBase's master goes on when they are open.
async fn open_children(context: &Context, parent: &RegionInfo, children: &[RegionInfo], opened: &[Step]) -> Result<()> {
    let master = &context.env;
    let enabled = master.cluster.read().state(&parent.table) == Some(TableState::Enabled);
    if !enabled {
        return Ok(());
    }
    // After a crash they may have been opened, or split in their turn, already.
    let (open, waiting): (Vec<RegionInfo>, Vec<RegionInfo>) = {
        let cluster = master.cluster.read();
        let live =
            |info: &&RegionInfo| cluster.region(info.encoded_name()).is_some_and(crate::cluster::RegionNode::is_live);
        let is_open =
            |info: &RegionInfo| cluster.region(info.encoded_name()).is_some_and(|node| node.state == RegionState::Open);
        children.iter().filter(live).cloned().partition(is_open)
    };
    context.found_with_regions(opened, waiting.clone(), RegionTransitionType::Assign).await?;
    master.assignment.assign(waiting).await?;
    // An earlier try opened them, and was broken off before it came to their read replicas.
    master.assignment.settle_replicas(open).await
}
