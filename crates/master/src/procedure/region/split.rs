//! SplitTableRegionProcedure.

use super::{check_name, close_parents, given_up, must_be_open, open_children, remove_region_dirs, reopen_parents};
use crate::check::SPLIT_POLICY_KEY;
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, malformed, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::operations::Operation;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::procedure::{infos_from_proto, infos_to_proto, region_locks};
use crate::{ErrorKind, MasterError, Result, meta, quotas};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, SplitPolicyKind, TableDescriptor};
use proto::pb::{RegionTransitionType, SplitTableRegionState as State};
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.assignment.SplitTableRegionProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(SplitRegion::read(data)?)) };

/// A region is replaced by two.
#[derive(Debug)]
struct SplitRegion {
    parent: RegionInfo,
    daughters: [RegionInfo; 2],
}

/// Splits a region, at `split_row` or where it is largest; answers the procedure's id.
///
/// # Errors
/// An unknown region, one that is not open or cannot be split there, the split switch being off.
pub(crate) async fn submit(
    master: &Arc<Master>,
    encoded_name: &str,
    split_row: Option<Bytes>,
    caller: &Caller,
) -> Result<u64> {
    let info = master.assignment.known_region(encoded_name)?;
    if info.is_replica() {
        let message = "Can't invoke split on non-default regions directly";
        return Err(MasterError::new(ErrorKind::IllegalArgument, message));
    }
    if info.table.is_meta() {
        return Err(MasterError::do_not_retry("hbase:meta is never split"));
    }
    if !master.switches.split() {
        let message = format!("Split region {} failed due to split switch off", info.name_string());
        return Err(MasterError::do_not_retry(message));
    }
    let submission = caller.submission(region_locks(std::slice::from_ref(&info)));
    let prepare = async {
        if !master.tables.must_exist(&info.table)?.split_enabled() {
            let message =
                format!("Split region {} failed as region split is disabled for the table", info.name_string());
            return Err(MasterError::do_not_retry(message));
        }
        if !matches!(master.cluster.read().state(&info.table), Some(TableState::Enabled | TableState::Enabling)) {
            return Err(MasterError::new(ErrorKind::TableNotEnabled, &info.table));
        }
        must_be_open(master, &info)?;
        if is_never_split(master, &*master.tables.must_exist(&info.table)?) {
            return Err(MasterError::do_not_retry(format!("{} NOT splittable", info.encoded_name())));
        }
        let parent = info.clone();
        if master.files.run(move |volume| Ok(rootdir::archive::refers_to(volume, &parent, None)?)).await? {
            return Err(MasterError::do_not_retry(format!(
                "{} NOT splittable: it still refers to files of the region that it was split or merged from; compact it first",
                info.name_string()
            )));
        }
        let split_row = match split_row {
            Some(row) if !row.is_empty() => row,
            _ => best_split_row(master, &info).await?,
        };
        let daughters = daughters(master, &info, split_row)?;
        quotas::namespace::check_split(master, &info)?;
        Ok(Box::new(SplitRegion { parent: info.clone(), daughters }) as BoxedProcedure)
    };
    master.procedures.submit(master, submission, prepare).await
}

/// Whether the table's policy is to split no region at all.
fn is_never_split(master: &Master, table: &TableDescriptor) -> bool {
    let said = table.value("SPLIT_POLICY").or_else(|| table.value(SPLIT_POLICY_KEY)).and_then(SplitPolicyKind::parse);
    said.or(master.settings().limits.split_policy()) == Some(SplitPolicyKind::Disabled)
}

async fn best_split_row(master: &Master, info: &RegionInfo) -> Result<Bytes> {
    let row = master.assignment.host_of(info.encoded_name())?.split_point(info.encoded_name()).await?;
    row.ok_or_else(|| {
        MasterError::do_not_retry(
            "Region not splittable because bestSplitPoint = null, maybe table is too small for auto split. For force split, \
             try specifying split row",
        )
    })
}

fn daughters(master: &Master, info: &RegionInfo, split_row: Bytes) -> Result<[RegionInfo; 2]> {
    let shown = || cell::print::to_string_binary(&split_row);
    if split_row == info.start_key {
        return Err(MasterError::do_not_retry(format!("Split row is equal to startkey: {}", shown())));
    }
    if !info.contains(&split_row) {
        return Err(MasterError::do_not_retry(format!(
            "Split row is not inside region key range splitKey:{} region: {}",
            shown(),
            info.description()
        )));
    }
    let id = master.catalog.next_region_id(std::slice::from_ref(info));
    let daughters = [
        RegionInfo::new(info.table.clone(), info.start_key.clone(), split_row.clone(), id),
        RegionInfo::new(info.table.clone(), split_row, info.end_key.clone(), id),
    ];
    check_name(&daughters[1]).map_err(MasterError::do_not_retry)?;
    Ok(daughters)
}

/// HBase's, after those that check.
fn after_checks(states: &[State]) -> Vec<Step> {
    steps(&[&[State::SplitTableRegionPrepare, State::SplitTableRegionPreOperation][..], states].concat())
}

impl SplitRegion {
    fn read(data: &[Any]) -> Result<SplitRegion> {
        let state: pb::SplitTableRegionStateData = unpack(data)?;
        let daughters = infos_from_proto(&state.child_region_info)?;
        let daughters = daughters.try_into().map_err(|_| malformed("not two daughters"))?;
        Ok(SplitRegion { parent: from_proto::region_info(&state.parent_region_info)?, daughters })
    }

    /// Whether hbase:meta has the daughters; the parent may be gone from it since.
    fn is_in_meta(&self, master: &Master) -> bool {
        let state = master.cluster.read().region(self.parent.encoded_name()).map(|node| node.state);
        matches!(state, Some(RegionState::Split) | None)
    }

    async fn write_daughters(&self, context: &Context) -> Result<()> {
        let master = &context.env;
        let table = master.tables.must_exist(&self.parent.table)?;
        // Before it is closed: a region is where it was until then.
        let host = master.assignment.host_of(self.parent.encoded_name())?;
        let closed = [State::SplitTableRegionCloseParentRegion, State::SplitTableRegionsCheckClosedRegions];
        let parents = vec![self.parent.clone()];
        context.found_with_regions(&after_checks(&closed), parents, RegionTransitionType::Unassign).await?;
        close_parents(master, std::slice::from_ref(&self.parent), RegionState::Splitting).await?;
        master.assignment.record_parents_closed(std::slice::from_ref(&self.parent)).await?;
        // What an earlier attempt left.
        remove_region_dirs(master, &self.daughters).await?;
        let create = State::SplitTableRegionCreateDaughterRegions;
        context.found_at(&after_checks(&[closed[0], closed[1], create])).await?;
        Ok(host.split_region_files(&self.parent, table, self.daughters.clone()).await?)
    }

    async fn update_meta(&self, master: &Master) -> Result<()> {
        let (parent, daughters, stamp) = (&self.parent, &self.daughters, master.catalog.stamp());
        let rows = vec![
            meta::put_split_parent(parent, daughters, stamp),
            meta::put_daughter(&daughters[0], stamp),
            meta::put_daughter(&daughters[1], stamp),
        ];
        master.catalog.write(rows).await?;
        let now = master.clock.now_ms();
        let mut cluster = master.cluster.write();
        cluster.change_region(parent.encoded_name(), |node| {
            (node.info.offline, node.info.split) = (true, true);
            (node.state, node.since, node.location) = (RegionState::Split, now, None);
            node.daughters = daughters.to_vec();
        });
        let replicas: Vec<RegionInfo> = cluster.replicas_of(parent).map(|node| node.info.clone()).collect();
        replicas.iter().for_each(|replica| cluster.remove_region(replica));
        for daughter in daughters {
            cluster.put_region(RegionNode::new(daughter.clone(), RegionState::Closed, now));
        }
        Ok(())
    }
}

impl Procedure<Master> for SplitRegion {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn operation(&self) -> Option<Operation> {
        Some(Operation::Split)
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::SplitTableRegionStateData {
            user_info: pb::UserInformation::default(),
            parent_region_info: to_proto::region_info(&self.parent),
            child_region_info: infos_to_proto(&self.daughters),
        };
        // A procedure of a region's, which HBase keeps first.
        vec![any("RegionInfo", &state.parent_region_info), any("SplitTableRegionStateData", &state)]
    }

    // The daughters' as well, as in HBase: another procedure that closed one while its read replicas are opened here would close those, and each of the two would
    // undo what the other did.
    fn locks(&self) -> Vec<(Resource, Mode)> {
        region_locks(&[std::slice::from_ref(&self.parent), &self.daughters[..]].concat())
    }

    fn first_step(&self) -> Step {
        State::SplitTableRegionCloseParentRegion as Step
    }

    fn for_hbase(&self) -> Form {
        Form::Steps(after_checks(&[State::SplitTableRegionCloseParentRegion]))
    }

    fn needs_open_regions(&self) -> bool {
        true
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            if step == State::SplitTableRegionCloseParentRegion as Step {
                if self.is_in_meta(master) {
                    return Ok(Next::Unsaved(State::SplitTableRegionOpenChildRegions as Step));
                }
                self.write_daughters(context).await.map_err(given_up)?;
                return Ok(Next::Unsaved(State::SplitTableRegionUpdateMeta as Step));
            }
            let mut states = vec![State::SplitTableRegionCloseParentRegion, State::SplitTableRegionsCheckClosedRegions];
            states.extend([State::SplitTableRegionCreateDaughterRegions, State::SplitTableRegionUpdateMeta]);
            if step == State::SplitTableRegionUpdateMeta as Step {
                context.found_at(&after_checks(&states)).await?;
                self.update_meta(master).await?;
                return Ok(Next::Unsaved(State::SplitTableRegionOpenChildRegions as Step));
            }
            states.extend([State::SplitTableRegionOpenChildRegions, State::SplitTableRegionPostOperation]);
            open_children(context, &self.parent, &self.daughters, &after_checks(&states)).await?;
            Ok(Next::Done(None))
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let master = &context.env;
            if step != State::SplitTableRegionCloseParentRegion as Step || self.is_in_meta(master) {
                return Ok(());
            }
            reopen_parents(context, std::slice::from_ref(&self.parent), &self.daughters).await
        })
    }

    fn may_abort(&self, step: Step) -> bool {
        step == State::SplitTableRegionCloseParentRegion as Step
    }
}
