//! Procedures that HBase's master left unfinished, made ours: under their ids, so that the clients who asked for them hear how they end.
//!
//! Always true:
//!  1. What HBase's master had only accepted, and not yet checked, is not done: who asked for it hears that, and asks again. Nothing was
//!     changed for it. (Snapshots and flushes may be begun whatever was checked.)
//!  2. What it had begun goes on. Our steps see by looking what is done, so they begin with the first that may not be; what HBase's
//!     master had its children do is part of that.
//!  3. What it had begun to roll back is rolled back.
//!
//! Regions on their way are not in here: the servers are asked which they have (`takeover`). Nor is what peers were before: nodes say that
//! ([`crate::peers`]). Follows: `ProcedureExecutor#loadProcedures`.

use super::engine::store::{ProcedureStore, ProcedureStoreError};
use super::engine::{Phase, Step, any, malformed, unpack};
use super::{KINDS, Record, infos_from_proto, infos_to_proto};
use crate::master_store::contents::Contents;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use fs::{FilePath, Volume};
use model::RegionInfo;
use proto::pb::{self, ProcedureState};
use proto::{Any, Message};
use rootdir::paths::own_master_dir;
use std::collections::{BTreeMap, BTreeSet};

/// The state of HBase's after the last.
const NO_MORE_STATE: Step = Step::MIN;

/// Lines, each the name of a file or directory of HBase's whose procedures are ours already.
fn taken_over_file() -> FilePath {
    own_master_dir().join("taken-over")
}

/// Makes what HBase's master left ours, if it has led since a master of ours: what that had left unfinished is not gone on with, for the tables
/// have changed since. Answers the records to go on with. May be repeated after a crash, until [`forget`].
///
/// # Errors
/// The volume's; a procedure that HBase's master had begun cannot be read.
pub(crate) fn take_over(
    volume: &dyn Volume,
    store: &ProcedureStore,
    ours: Vec<Record>,
    contents: &Contents,
    is_cluster: bool,
) -> std::result::Result<Vec<Record>, ProcedureStoreError> {
    let path = taken_over_file();
    let taken = if volume.exists(&path)? { volume.read(&path)? } else { Vec::new() };
    let taken: BTreeSet<String> = String::from_utf8_lossy(&taken).lines().map(str::to_owned).collect();
    if contents.of_hbase.is_subset(&taken) {
        return Ok(ours);
    }
    for record in ours {
        if record.outcome().is_none() {
            tracing::warn!(
                pid = record.id,
                class = record.procedure.class_name(),
                "HBase's master has led since this procedure was begun: it is not gone on with"
            );
        }
        store.withdraw(record.id)?;
    }
    let records = read(&contents.procedures, is_cluster)?;
    for record in &records {
        store.save(&record.to_message())?;
    }
    let lines: String = contents.of_hbase.iter().map(|name| format!("{name}\n")).collect();
    volume.publish(&path, lines.as_bytes())?;
    Ok(records)
}

/// What was taken over is in the archive: all that HBase's master leaves from now on is new.
///
/// # Errors
/// The volume's.
pub(crate) fn forget(volume: &dyn Volume) -> fs::Result<()> {
    match volume.remove_file(&taken_over_file()) {
        Err(error) if error.is_not_found() => Ok(()),
        result => result,
    }
}

/// Where one of HBase's goes on as one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It was not checked.
    Unchecked,
    /// With our first step.
    First,
    /// With this step.
    At(Step),
    /// All that a client waits for is done.
    Done,
    /// It is not to be gone on with: it is part of what a start does.
    Dropped,
    /// It is given up, as we do not do what it does.
    GivenUp,
}

/// Reads them from family `proc` of HBase's store. `is_cluster`: its region servers live on, and what those that died had is recovered by
/// procedures; else a start recovers and opens everything. One that cannot be read is an error: it cannot be known what is to be finished.
pub(super) fn read(
    rows: &BTreeMap<u64, Bytes>,
    is_cluster: bool,
) -> std::result::Result<Vec<Record>, ProcedureStoreError> {
    let mut records = Vec::new();
    for (id, bytes) in rows.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let damaged = |error: &dyn std::fmt::Display| ProcedureStoreError::OfHBase { id: *id, what: error.to_string() };
        let message = pb::Procedure::decode(bytes.clone()).map_err(|error| damaged(&error))?;
        if message.parent_id.is_some() {
            continue;
        }
        records.extend(adopt(message, is_cluster).map_err(|error| damaged(&error))?);
    }
    Ok(records)
}

fn adopt(mut message: pb::Procedure, is_cluster: bool) -> Result<Option<Record>> {
    let class = message.class_name.rsplit('.').next().unwrap_or_default().to_owned();
    let id = message.proc_id;
    let state = ProcedureState::try_from(message.state).map_err(malformed)?;
    let is_over = matches!(state, ProcedureState::Success | ProcedureState::Rolledback);
    if KINDS.iter().all(|kind| kind.class_name != message.class_name) {
        if !is_over {
            tracing::error!(
                pid = id,
                class,
                "HBase's master left a procedure of a kind that Basalt does not know: it is not gone on with. If something is missing now, ask for it again"
            );
        }
        return Ok(None);
    }
    if is_over {
        return Record::from_message(&message, KINDS).map(Some);
    }
    let step = current_step(&message)?;
    let place = match place(&class, step) {
        Place::At(_) if is_of_serial_peer(&class, &message.state_message)? => Place::GivenUp,
        place => place,
    };
    if place == Place::Dropped
        || (!is_cluster && matches!(&*class, "ServerCrashProcedure" | "TransitRegionStateProcedure"))
    {
        return Ok(None);
    }
    if class == "TruncateTableProcedure"
        && let Some(step) = step
    {
        make_truncation_ours(&mut message, step)?;
    }
    let mut record = Record::from_message(&message, KINDS)?;
    let first = record.procedure.first_step();
    record.steps = vec![if let Place::At(step) = place { step } else { first }];
    record.phase = match (state, place) {
        (_, Place::Done) => Phase::Ended(Ok(None)),
        (ProcedureState::Failed, Place::Unchecked | Place::GivenUp) => {
            Phase::Ended(Err(MasterError::from_foreign(message.exception.as_ref())))
        }
        (_, Place::Unchecked) => Phase::Ended(Err(given_up("had not begun with it, so nothing was changed"))),
        (_, Place::GivenUp) => Phase::Ended(Err(given_up(
            "was in the middle of making a replication peer serial, or changing one that is",
        ))),
        (ProcedureState::Failed, _) => Phase::Failed(MasterError::from_foreign(message.exception.as_ref())),
        _ => Phase::Runnable,
    };
    match &record.phase {
        Phase::Ended(Err(error)) => {
            tracing::warn!(pid = id, class, %error, "a procedure that HBase's master left has failed")
        }
        Phase::Ended(Ok(_)) => tracing::info!(pid = id, class, "HBase's master had finished this procedure"),
        _ => tracing::info!(pid = id, class, step = record.step(), "goes on with a procedure that HBase's master left"),
    }
    Ok(Some(record))
}

fn given_up(why: &str) -> MasterError {
    let message = format!("HBase's master, which was asked for it, ended and {why}. Ask again");
    MasterError::new(ErrorKind::ProcedureAborted, message)
}

/// The state that HBase's is to do next; `None` where it has none, or not yet.
fn current_step(message: &pb::Procedure) -> Result<Option<Step>> {
    let is_steps = |data: &&Any| data.type_url.ends_with("StateMachineProcedureData");
    let Some(first) = message.state_message.first().filter(is_steps) else { return Ok(None) };
    let states = pb::StateMachineProcedureData::decode(first.value.clone()).map_err(malformed)?.state;
    let mut steps = states.into_iter().map(u32::cast_signed).filter(|step| *step != NO_MORE_STATE);
    Ok(steps.next_back())
}

#[rustfmt::skip]
fn place(class: &str, step: Option<Step>) -> Place {
    use pb::{CloneSnapshotState as Clone, DeleteTableState as Delete, ModifyTableState as Modify, RegionStateTransitionState as Transit};
    use pb::{PeerModificationState as Peer, RestoreSnapshotState as Restore, ServerCrashState as Crash, SnapshotState as Snapshot, TruncateTableState as Truncate};
    // The first state of most is the one that checks, and has the number 1.
    let Some(step) = step.filter(|step| *step > 1) else {
        return match class {
            // Whether a snapshot may be taken HBase's master looks before it accepts that, and ours does in its first step.
            "ServerCrashProcedure" | "FlushTableProcedure" | "SnapshotProcedure" => Place::First,
            "TransitRegionStateProcedure" if step.is_some() => Place::At(Transit::RegionStateTransitionGetAssignCandidate as Step),
            "TransitRegionStateProcedure" => Place::First,
            _ => Place::Unchecked,
        };
    };
    match class {
        "DeleteTableProcedure" if step == Delete::DeleteTableSnapshot as Step => Place::First,
        "DeleteTableProcedure" => Place::At(Delete::DeleteTableClearFsLayout as Step),
        "TruncateTableProcedure" if step == Truncate::TruncateTableSnapshot as Step => Place::First,
        "TruncateTableProcedure" if step == Truncate::TruncateTablePostOperation as Step => Place::Done,
"TruncateTableProcedure" => Place::At(Truncate::TruncateTableClearFsLayout as Step),
        // Checks and asks coprocessors.
        "ModifyTableProcedure" if step == Modify::ModifyTablePreOperation as Step => Place::Unchecked,
        "ModifyTableProcedure" if step == Modify::ModifyTableSnapshot as Step => Place::First,
        "ModifyTableProcedure" => Place::At(Modify::ModifyTableUpdateTableDescriptor as Step),
        "CloneSnapshotProcedure" if step == Clone::CloneSnapshotWriteFsLayout as Step => Place::First,
        "CloneSnapshotProcedure" if step == Clone::CloneSnapshotSetErasureCodingPolicy as Step || step == Clone::CloneSnapshotAddToMeta as Step =>
            Place::At(Clone::CloneSnapshotAddToMeta as Step),
        "CloneSnapshotProcedure" => Place::At(Clone::CloneSnapshotAssignRegions as Step),
        "RestoreSnapshotProcedure" if step == Restore::RestoreSnapshotUpdateMeta as Step => Place::At(step),
        "RestoreSnapshotProcedure" if step == Restore::RestoreSnapshotRestoreAcl as Step => Place::Done,
        "SnapshotProcedure" if step == Snapshot::SnapshotPostOperation as Step => Place::Done,
        "TransitRegionStateProcedure" if step == Transit::RegionStateTransitionClose as Step || step == Transit::RegionStateTransitionConfirmClosed as Step =>
            Place::At(Transit::RegionStateTransitionClose as Step),
        "TransitRegionStateProcedure" => Place::At(Transit::RegionStateTransitionGetAssignCandidate as Step),
        "ServerCrashProcedure" => match Crash::try_from(step) {
            Ok(Crash::ServerCrashSplitMetaLogs | Crash::ServerCrashAssignMeta | Crash::ServerCrashGetRegions | Crash::ServerCrashSplitLogs) => Place::At(step),
            Ok(Crash::ServerCrashDeleteSplitMetaWalsDir) => Place::At(Crash::ServerCrashAssignMeta as Step),
            Ok(Crash::ServerCrashDeleteSplitWalsDir) => Place::At(Crash::ServerCrashSplitLogs as Step),
            Ok(Crash::ServerCrashAssign | Crash::ServerCrashClaimReplicationQueues | Crash::ServerCrashFinish) => Place::At(Crash::ServerCrashAssign as Step),
            _ => Place::First,
        },
        // Some servers may have been told, and some not.
        "AddPeerProcedure" | "RemovePeerProcedure" | "UpdatePeerConfigProcedure" | "EnablePeerProcedure" | "DisablePeerProcedure" =>
            Place::At(Peer::RefreshPeerOnRs as Step),
        _ => Place::First,
    }
}

/// Whether edits are to go to the peer in order. What makes them do so is not done here.
fn is_of_serial_peer(class: &str, data: &[Any]) -> Result<bool> {
    let configs = match class {
        "AddPeerProcedure" => [Some(unpack::<pb::AddPeerStateData>(data)?.peer_config), None],
        "UpdatePeerConfigProcedure" => {
            let state: pb::UpdatePeerConfigStateData = unpack(data)?;
            [Some(state.peer_config), state.old_peer_config]
        }
        _ => return Ok(false),
    };
    Ok(configs.iter().flatten().any(pb::ReplicationPeer::serial))
}

/// HBase keeps the old regions or the new ones, by the step; ours keeps both.
fn make_truncation_ours(message: &mut pb::Procedure, step: Step) -> Result<()> {
    use pb::TruncateTableState as State;
    let mut state: pb::TruncateTableStateData = unpack(&message.state_message)?;
    let snapshot = state.snapshot_name.take().map(|name| format!(" {name}")).unwrap_or_default();
    let is_before =
        [State::TruncateTableSnapshot, State::TruncateTableClearFsLayout].map(|state| state as Step).contains(&step);
    let mut old_len = 0;
    if is_before {
        let old = infos_from_proto(&state.region_info)?;
        old_len = old.len();
        let new = new_regions(&old, state.preserve_splits)?;
        state.region_info.extend(infos_to_proto(&new));
    }
    state.snapshot_name = Some(format!("{old_len}{snapshot}"));
    let last = message.state_message.last_mut().ok_or_else(|| malformed("no state"))?;
    *last = any("TruncateTableStateData", &state);
    Ok(())
}

fn new_regions(old: &[RegionInfo], preserve_splits: bool) -> Result<Vec<RegionInfo>> {
    let old: Vec<&RegionInfo> = old.iter().filter(|info| !info.is_replica() && !info.split).collect();
    let newest = old.iter().map(|info| info.region_id).max().ok_or_else(|| malformed("a table without regions"))?;
    let table = &old.first().ok_or_else(|| malformed("a table without regions"))?.table;
    let keys = old.iter().map(|info| info.start_key.clone()).filter(|key| preserve_splits && !key.is_empty());
    let region_id = newest.checked_add(1).ok_or_else(|| malformed("a region's id is too large"))?;
    super::ddl::regions_by_split_keys(table, &keys.collect::<Vec<_>>(), region_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use convert::to_proto;
    use model::TableName;
    use proto::pb::{ServerCrashState as Crash, TruncateTableState as Truncate};

    const PACKAGE: &str = "org.apache.hadoop.hbase.master";

    fn kept(class: &str, states: &[Step], data: Vec<Any>) -> pb::Procedure {
        let steps = pb::StateMachineProcedureData { state: states.iter().map(|state| state.cast_unsigned()).collect() };
        pb::Procedure {
            class_name: format!("{PACKAGE}.{class}"),
            proc_id: 7,
            state: ProcedureState::Runnable as i32,
            state_message: std::iter::once(any("StateMachineProcedureData", &steps)).chain(data).collect(),
            ..Default::default()
        }
    }

    fn crash(states: &[Step]) -> pb::Procedure {
        let server_name = to_proto::server_name(&model::ServerName::new("h", 1, 5));
        let state = pb::ServerCrashStateData { server_name, ..Default::default() };
        kept("procedure.ServerCrashProcedure", states, vec![any("ServerCrashStateData", &state)])
    }

    fn region(start: &'static [u8], end: &'static [u8], id: u64) -> RegionInfo {
        RegionInfo::new(TableName::parse("t").expect("a name"), start.into(), end.into(), id)
    }

    fn truncation(step: Truncate, preserve_splits: bool, regions: &[RegionInfo]) -> pb::Procedure {
        let table = model::TableDescriptor::new(region(b"", b"", 1).table, [model::FamilyDescriptor::new("f")]);
        let state = pb::TruncateTableStateData {
            user_info: pb::UserInformation::default(),
            preserve_splits,
            table_name: Some(to_proto::table_name(&table.name)),
            table_schema: Some(to_proto::table(&table)),
            region_info: infos_to_proto(regions),
            snapshot_name: None,
        };
        kept("procedure.TruncateTableProcedure", &[1, step as Step], vec![any("TruncateTableStateData", &state)])
    }

    #[test]
    fn each_goes_on_with_the_first_step_that_may_not_be_done() {
        let of_crash = |state: Crash| place("ServerCrashProcedure", Some(state as Step));
        assert_eq!(of_crash(Crash::ServerCrashStart), Place::First);
        assert_eq!(of_crash(Crash::ServerCrashSplitLogs), Place::At(Crash::ServerCrashSplitLogs as Step));
        assert_eq!(of_crash(Crash::ServerCrashDeleteSplitWalsDir), Place::At(Crash::ServerCrashSplitLogs as Step));
        for after in [Crash::ServerCrashAssign, Crash::ServerCrashClaimReplicationQueues, Crash::ServerCrashFinish] {
            assert_eq!(of_crash(after), Place::At(Crash::ServerCrashAssign as Step), "its logs are split");
        }
        // Open, confirm: it may be open, or on its way. Close, confirm: it is to be closed first.
        for (step, at) in [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4)] {
            assert_eq!(place("TransitRegionStateProcedure", Some(step)), Place::At(at), "{step}");
        }
        assert_eq!(place("ModifyTableProcedure", Some(2)), Place::Unchecked);
        assert_eq!(place("ModifyTableProcedure", Some(6)), Place::At(3));
        assert_eq!(place("CloneSnapshotProcedure", Some(2)), Place::First);
        assert_eq!(place("CloneSnapshotProcedure", Some(8)), Place::At(3));
        assert_eq!(place("CloneSnapshotProcedure", Some(7)), Place::At(4));
        assert_eq!(place("RestoreSnapshotProcedure", Some(3)), Place::First);
        for (step, at) in
            [(None, Place::First), (Some(1), Place::First), (Some(8), Place::First), (Some(11), Place::Done)]
        {
            assert_eq!(place("SnapshotProcedure", step), at, "{step:?}");
        }
        assert_eq!(place("EnableTableProcedure", Some(5)), Place::First);
        for class in ["CreateTableProcedure", "SplitTableRegionProcedure", "DeleteNamespaceProcedure"] {
            assert_eq!((place(class, Some(1)), place(class, None)), (Place::Unchecked, Place::Unchecked));
        }
    }

    #[test]
    fn a_child_and_a_kind_that_is_not_known_are_no_records_and_a_start_recovers_where_there_is_one_server() {
        let child = pb::Procedure { parent_id: Some(3), ..crash(&[1]) };
        let unknown = kept("procedure.ReopenTableRegionsProcedure", &[1], Vec::new());
        let row = |message: &pb::Procedure| Bytes::from(message.encode_to_vec());
        let rows = BTreeMap::from([(7, row(&child)), (8, row(&unknown)), (9, row(&crash(&[1, 3, NO_MORE_STATE])))]);
        assert_eq!(read(&rows, false).expect("read").len(), 0);
        let records = read(&rows, true).expect("read");
        let steps: Vec<_> = records.iter().map(Record::step).collect();
        assert_eq!(steps, [Crash::ServerCrashGetRegions as Step], "what it was to do before it ended");
        let damaged = BTreeMap::from([(9, Bytes::from_static(b"\xff"))]);
        assert!(read(&damaged, true).expect_err("no message").to_string().contains("procedure 9 of HBase's master"));
    }

    #[test]
    fn a_failure_is_told_or_rolled_back() {
        let failed = |step: Truncate| pb::Procedure {
            state: ProcedureState::Failed as i32,
            exception: Some(MasterError::new(ErrorKind::TableNotDisabled, "t").to_foreign()),
            ..truncation(step, false, &[region(b"", b"", 9)])
        };
        let phase = |message| adopt(message, true).expect("read").expect("a record").phase;
        assert!(
            matches!(phase(failed(Truncate::TruncateTablePreOperation)), Phase::Ended(Err(error)) if error.kind == ErrorKind::TableNotDisabled)
        );
        assert!(
            matches!(phase(failed(Truncate::TruncateTableClearFsLayout)), Phase::Failed(error) if error.kind == ErrorKind::TableNotDisabled)
        );
    }

    #[test]
    fn a_truncation_keeps_the_old_regions_and_the_new_ones() {
        let old = [region(b"", b"m", 9), region(b"m", b"", 9)];
        for (preserve, count) in [(true, 2), (false, 1)] {
            let message = truncation(Truncate::TruncateTableClearFsLayout, preserve, &old);
            let record = adopt(message, true).expect("read").expect("a record");
            let state: pb::TruncateTableStateData = unpack(&record.procedure.state_data()).expect("its own");
            let regions = infos_from_proto(&state.region_info).expect("regions");
            assert_eq!((&regions[..2], regions.len(), state.snapshot_name()), (&old[..], 2 + count, "2"));
            assert!(regions[2..].iter().all(|info| info.region_id == 10), "{regions:?}");
        }
        let done = adopt(truncation(Truncate::TruncateTablePostOperation, true, &[]), true).expect("read");
        assert!(
            matches!(done.expect("a record").phase, Phase::Ended(Ok(None))),
            "its regions are not in the record any more"
        );
        let last = [region(b"", b"", u64::MAX)];
        assert!(adopt(truncation(Truncate::TruncateTableClearFsLayout, true, &last), true).is_err());
    }

    #[test]
    fn a_truncation_that_has_ended_has_no_table_and_still_tells_of_its_end() {
        let state = pb::TruncateTableStateData {
            table_name: Some(to_proto::table_name(&region(b"", b"", 1).table)),
            ..Default::default()
        };
        let message = pb::Procedure {
            state: ProcedureState::Success as i32,
            ..kept("procedure.TruncateTableProcedure", &[1, 7], vec![any("TruncateTableStateData", &state)])
        };
        let record = adopt(message, true).expect("read").expect("a record");
        assert!(matches!(record.phase, Phase::Ended(Ok(None))));
    }
}
