//! MergeTableRegionsProcedure.

use super::{close_parents, given_up, must_be_open, open_children, remove_region_dirs, reopen_parents};
use crate::cluster::{RegionNode, RegionState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, malformed, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::operations::Operation;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::procedure::{infos_from_proto, infos_to_proto, region_locks};
use crate::{ErrorKind, MasterError, Result, meta};
use bytes::Bytes;
use cell::{CellType, KeyRef};
use convert::{from_proto, to_proto};
use fs::Volume;
use model::{RegionInfo, TableDescriptor};
use proto::pb::{MergeTableRegionsState as State, RegionTransitionType};
use proto::{Any, magic, pb};
use rootdir::Tracker;
use rootdir::tracker::Site;
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.assignment.MergeTableRegionsProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(MergeRegions::read(data)?)) };

/// Regions that follow each other are replaced by one.
#[derive(Debug)]
struct MergeRegions {
    parents: Vec<RegionInfo>,
    child: RegionInfo,
}

/// The first two regions, in the order of their first rows, between which there are rows of neither.
fn gap(parents: &[RegionInfo]) -> Option<[&RegionInfo; 2]> {
    // The one that reaches furthest of those so far.
    let mut furthest = parents.first()?;
    for info in &parents[1..] {
        if !furthest.end_key.is_empty() && furthest.end_key < info.start_key {
            return Some([furthest, info]);
        }
        furthest = further(furthest, info);
    }
    None
}

/// The one that reaches further.
pub(crate) fn further<'a>(first: &'a RegionInfo, second: &'a RegionInfo) -> &'a RegionInfo {
    let is_first = first.end_key.is_empty() || (!second.end_key.is_empty() && first.end_key >= second.end_key);
    if is_first { first } else { second }
}

/// The bytes of a file that refers to all of a parent's file: everything from the parent's first row on.
fn reference_bytes(parent: &RegionInfo) -> Bytes {
    let mut key = Vec::new();
    KeyRef::write(&mut key, &parent.start_key, b"", b"", i64::MAX, CellType::Maximum.code());
    magic::encode(&pb::Reference { splitkey: Bytes::from(key), range: pb::reference::Range::Top as i32 })
}

/// Writes the child's directory: for each store file of each parent a reference `<file>.<parent>`.
struct Merging<'a> {
    volume: &'a dyn Volume,
    table: &'a TableDescriptor,
    trackers: &'a Site,
    now_ms: i64,
}

impl Merging<'_> {
    fn write(&self, parents: &[RegionInfo], child: &RegionInfo) -> Result<()> {
        for (name, family) in &self.table.families {
            let tracker = Tracker::of(self.trackers, self.table, family)?;
            let target = rootdir::family_dir(child, name);
            let mut references = Vec::new();
            for parent in parents {
                let files = tracker.names_of_closed(self.volume, &rootdir::family_dir(parent, name));
                for file in files.map_err(|error| MasterError::new(ErrorKind::Io, error))? {
                    if rootdir::store_file::is_reference(&file) {
                        let message = format!("region {} has references and is NOT mergeable", parent.encoded_name());
                        return Err(MasterError::new(ErrorKind::MergeRegion, message));
                    }
                    let reference = format!("{file}.{}", parent.encoded_name());
                    self.volume.publish(&target.join(&reference), &reference_bytes(parent))?;
                    references.push(reference);
                }
            }
            tracker.set_of_closed(self.volume, &target, references, self.now_ms)?;
        }
        Ok(())
    }
}

/// How messages name them all.
fn shown(parents: &[RegionInfo]) -> String {
    format!("[{}]", parents.iter().map(|info| &**info.encoded_name()).collect::<Vec<_>>().join(", "))
}

fn refused(message: String) -> MasterError {
    MasterError::new(ErrorKind::MergeRegion, message)
}

/// Merges regions that follow each other or have rows in common; answers the procedure's id.
///
/// # Errors
/// Unknown regions, of several tables, not adjacent, not open, the merge switch being off.
pub(crate) async fn submit(master: &Arc<Master>, encoded_names: &[String], caller: &Caller) -> Result<u64> {
    let mut parents = Vec::with_capacity(encoded_names.len());
    for name in encoded_names {
        parents.push(master.assignment.known_region(name)?);
    }
    if parents.is_empty() {
        return Err(too_few());
    }
    // Follows: `HMaster#mergeRegions`, which looks at the regions themselves last.
    if !master.switches.merge() {
        return Err(MasterError::do_not_retry(format!(
            "Merge of {} failed because merge switch is off",
            shown(&parents)
        )));
    }
    if !master.tables.must_exist(&parents[0].table)?.merge_enabled() {
        let message = format!("Merge of {} failed as region merge is disabled for the table", shown(&parents));
        return Err(MasterError::do_not_retry(message));
    }
    sort_parents(&mut parents)?;
    check_parents(master, &parents)?;
    let prepare = async {
        // Once more, now that they are this procedure's: while it waited for them one may have been split or moved.
        check_parents(master, &parents)?;
        for info in &parents {
            let merged = master.cluster.read().region(info.encoded_name()).is_some_and(|n| !n.merge_parents.is_empty());
            if merged {
                return Err(refused(format!(
                    "Skip merging {}, because it still refers to regions that it was merged from",
                    info.name_string()
                )));
            }
        }
        let id = master.catalog.next_region_id(&parents);
        let first = &parents[0];
        let last = parents.iter().fold(first, further);
        let child = RegionInfo::new(first.table.clone(), first.start_key.clone(), last.end_key.clone(), id);
        Ok(Box::new(MergeRegions { parents: parents.clone(), child }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(region_locks(&parents)), prepare).await
}

fn too_few() -> MasterError {
    refused("Need two Regions at least to run a Merge".into())
}

/// Puts regions into the order of their keys.
fn sort_parents(parents: &mut [RegionInfo]) -> Result<()> {
    if parents.len() < 2 {
        return Err(too_few());
    }
    parents.sort_by(|a, b| a.start_key.cmp(&b.start_key).then(a.region_id.cmp(&b.region_id)));
    let passed = parents.len();
    let unique = 1 + parents.windows(2).filter(|pair| pair[0].encoded_name() != pair[1].encoded_name()).count();
    if unique < passed {
        return Err(refused(format!(
            "Duplicate regions specified; cannot merge a region to itself. Passed in {passed} but only {unique} unique."
        )));
    }
    Ok(())
}

/// They must be of one table, adjacent, and open. Follows: `MergeTableRegionsProcedure#checkRegionsToMerge`, one after the other.
fn check_parents(master: &Master, parents: &[RegionInfo]) -> Result<()> {
    for (at, info) in parents.iter().enumerate() {
        if info.table != parents[0].table {
            return Err(refused(format!(
                "Can't merge regions from different tables: {}, {}",
                parents[at - 1].description(),
                info.description()
            )));
        }
        if let Some(pair) = gap(&parents[..=at]) {
            return Err(refused(format!(
                "Unable to merge non-adjacent or non-overlapping regions '{}', '{}' when force=false",
                pair[0].encoded_name(),
                pair[1].encoded_name()
            )));
        }
        if info.is_replica() {
            return Err(refused(format!("Can't merge non-default replicas; {}", info.description())));
        }
        must_be_open(master, info).map_err(|error| match error.kind {
            ErrorKind::DoNotRetryRegion => {
                refused(format!("org.apache.hadoop.hbase.client.DoNotRetryRegionException: {error}"))
            }
            _ => error,
        })?;
    }
    if parents[0].table.is_meta() {
        return Err(refused("hbase:meta is never merged".into()));
    }
    Ok(())
}

/// HBase's, after those that check.
fn after_checks(states: &[State]) -> Vec<Step> {
    steps(&[&[State::MergeTableRegionsPrepare, State::MergeTableRegionsPreMergeOperation][..], states].concat())
}

impl MergeRegions {
    fn read(data: &[Any]) -> Result<MergeRegions> {
        let state: pb::MergeTableRegionsStateData = unpack(data)?;
        let child = state.merged_region_info.as_ref().ok_or_else(|| malformed("no merged region"))?;
        let parents = infos_from_proto(&state.region_info)?;
        if parents.is_empty() {
            return Err(malformed("no regions to merge"));
        }
        Ok(MergeRegions { parents, child: from_proto::region_info(child)? })
    }

    /// Whether hbase:meta has the child in its parents' place. It may be gone already, split and cleaned away in its
    /// turn.
    fn is_in_meta(&self, master: &Master) -> bool {
        let cluster = master.cluster.read();
        self.parents.iter().any(|parent| cluster.region(parent.encoded_name()).is_none())
    }

    async fn write_child(&self, context: &Context) -> Result<()> {
        let master = &context.env;
        let table = master.tables.must_exist(&self.child.table)?;
        let closed = [State::MergeTableRegionsCloseRegions, State::MergeTableRegionsCheckClosedRegions];
        let parents = self.parents.clone();
        context.found_with_regions(&after_checks(&closed), parents, RegionTransitionType::Unassign).await?;
        close_parents(master, &self.parents, RegionState::Merging).await?;
        master.assignment.record_parents_closed(&self.parents).await?;
        remove_region_dirs(master, std::slice::from_ref(&self.child)).await?;
        let create = State::MergeTableRegionsCreateMergedRegion;
        context.found_at(&after_checks(&[closed[0], closed[1], create])).await?;
        let (parents, child) = (self.parents.clone(), self.child.clone());
        let (trackers, now_ms) = (master.settings().limits.trackers().clone(), master.clock.now_ms().0);
        let write = move |volume: &dyn Volume| {
            rootdir::create_region_dir(volume, &child, &table)?;
            Merging { volume, table: &table, trackers: &trackers, now_ms }.write(&parents, &child)?;
            Ok(volume.sync_dir(&rootdir::table_dir(&child.table))?)
        };
        master.files.run(write).await
    }

    async fn update_meta(&self, master: &Master) -> Result<()> {
        let stamp = master.catalog.stamp();
        let gone = self.parents.iter().map(|parent| meta::delete_region(parent, stamp));
        let rows = gone.chain([meta::put_merged(&self.child, &self.parents, stamp)]);
        master.catalog.write(rows.collect()).await?;
        let now = master.clock.now_ms();
        let mut cluster = master.cluster.write();
        for parent in &self.parents {
            cluster.remove_region(parent);
        }
        let mut node = RegionNode::new(self.child.clone(), RegionState::Closed, now);
        node.merge_parents = self.parents.clone();
        cluster.put_region(node);
        Ok(())
    }
}

impl Procedure<Master> for MergeRegions {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn operation(&self) -> Option<Operation> {
        Some(Operation::Merge)
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::MergeTableRegionsStateData {
            user_info: pb::UserInformation::default(),
            region_info: infos_to_proto(&self.parents),
            merged_region_info: Some(to_proto::region_info(&self.child)),
            forcible: Some(false),
        };
        vec![any("MergeTableRegionsStateData", &state)]
    }

    // The child's as well, as in HBase, for the reason of a split's daughters.
    fn locks(&self) -> Vec<(Resource, Mode)> {
        region_locks(&[&self.parents[..], std::slice::from_ref(&self.child)].concat())
    }

    fn first_step(&self) -> Step {
        State::MergeTableRegionsCloseRegions as Step
    }

    fn for_hbase(&self) -> Form {
        Form::Steps(after_checks(&[State::MergeTableRegionsCloseRegions]))
    }

    fn needs_open_regions(&self) -> bool {
        true
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            if step == State::MergeTableRegionsCloseRegions as Step {
                if self.is_in_meta(master) {
                    return Ok(Next::Unsaved(State::MergeTableRegionsOpenMergedRegion as Step));
                }
                self.write_child(context).await.map_err(given_up)?;
                return Ok(Next::Unsaved(State::MergeTableRegionsUpdateMeta as Step));
            }
            let mut states = vec![State::MergeTableRegionsCloseRegions, State::MergeTableRegionsCheckClosedRegions];
            states.extend([State::MergeTableRegionsCreateMergedRegion, State::MergeTableRegionsUpdateMeta]);
            if step == State::MergeTableRegionsUpdateMeta as Step {
                context.found_at(&after_checks(&states)).await?;
                self.update_meta(master).await?;
                return Ok(Next::Unsaved(State::MergeTableRegionsOpenMergedRegion as Step));
            }
            states.extend([State::MergeTableRegionsOpenMergedRegion, State::MergeTableRegionsPostOperation]);
            open_children(context, &self.child, std::slice::from_ref(&self.child), &after_checks(&states)).await?;
            Ok(Next::Done(None))
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let master = &context.env;
            if step != State::MergeTableRegionsCloseRegions as Step || self.is_in_meta(master) {
                return Ok(());
            }
            reopen_parents(context, &self.parents, std::slice::from_ref(&self.child)).await
        })
    }

    fn may_abort(&self, step: Step) -> bool {
        step == State::MergeTableRegionsCloseRegions as Step
    }
}
