use super::found::Found;
use super::rows::Row;
use super::{ForHBase, Form, Order};
use crate::files::Files;
use crate::master_store::contents;
use crate::master_store::log::StoreLog;
use crate::procedure::engine::{Step, any};
use crate::procedure::{KINDS, Record, of_hbase};
use base::{Config, ManualClock};
use bytes::Bytes;
use fs::{MemVolume, Volume};
use model::{RegionInfo, ServerName, TableName};
use proto::pb::region_state_transition::TransitionCode;
use proto::pb::{self, RegionTransitionType as Transition};
use proto::{Any, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

const FIRST_ID: u64 = 1000;

fn region(key: &str) -> RegionInfo {
    RegionInfo::new(TableName::parse("t").expect("a name"), Bytes::from(key.to_owned()), Bytes::new(), 7)
}

fn server(port: u16) -> ServerName {
    ServerName::new("h", port, 5)
}

fn record(id: u64) -> pb::Procedure {
    pb::Procedure {
        class_name: "org.apache.hadoop.hbase.master.procedure.CreateTableProcedure".into(),
        proc_id: id,
        owner: Some("me".into()),
        nonce: Some(9),
        nonce_group: Some(8),
        state_message: vec![
            Any::default(),
            Any { type_url: "x/hbase.pb.CreateTableStateData".into(), value: Bytes::new() },
        ],
        ..Default::default()
    }
}

/// What is found by who reads all rows that were written.
#[derive(Default)]
struct Reader(BTreeMap<u64, Bytes>);

impl Reader {
    fn take(&mut self, rows: Vec<Row>) {
        for (id, bytes) in rows {
            if bytes.is_empty() {
                self.0.remove(&id)
            } else {
                self.0.insert(id, bytes)
            };
        }
    }

    /// `id<parent class state steps`, and of orders `server state code`.
    fn said(&self) -> Vec<String> {
        self.0.values().map(|bytes| said(&pb::Procedure::decode(bytes.clone()).expect("a row"))).collect()
    }
}

fn said(row: &pb::Procedure) -> String {
    let class = row.class_name.rsplit('.').next().unwrap_or_default().trim_end_matches("Procedure");
    let parent = row.parent_id.map_or(String::new(), |parent| format!("<{parent}"));
    let state = row.state().as_str_name();
    let first = row.state_message.first().map(|data| data.value.clone()).unwrap_or_default();
    let what = if matches!(class, "OpenRegion" | "CloseRegion") {
        let data = pb::RegionRemoteProcedureBaseStateData::decode(first).expect("an order");
        let code = data.transition_code.map(|_| data.transition_code());
        let state = data.state().as_str_name().trim_start_matches("REGION_REMOTE_PROCEDURE_").to_owned();
        format!("{} {state} {code:?} {:?}", data.target_server.port(), data.seq_id)
    } else {
        let steps = pb::StateMachineProcedureData::decode(first).map(|data| data.state).unwrap_or_default();
        format!("{steps:?}")
    };
    format!("{}{parent} {class} {state} {what}", row.proc_id)
}

#[test]
fn hbase_finds_orders_with_their_ids_and_what_was_reported() {
    let (mut found, mut reader) = (Found::of(&BTreeMap::new(), FIRST_ID).0, Reader::default());
    let info = region("a");
    let name = Arc::clone(info.encoded_name());
    reader.take(found.set_out(&info, Order::Open));
    assert_eq!(reader.said(), ["1001 TransitRegionState RUNNABLE [1]"]);
    assert!(found.set_out(&info, Order::Open).is_empty(), "it is there already");
    reader.take(found.order(&name, 5, Order::Open, server(1)));
    let ordered = ["5<1001 OpenRegion RUNNABLE 1 DISPATCH None None", "1001 TransitRegionState WAITING [1, 2, 3]"];
    assert_eq!(reader.said(), ordered);
    assert!(found.order(&name, 5, Order::Open, server(1)).is_empty(), "the same order, sent again");
    // Its report says that it could not; it goes to another server.
    reader.take(found.report(&name, 5, TransitionCode::FailedOpen, -1));
    assert!(reader.said()[0].contains("REPORT_SUCCEED Some(FailedOpen)"), "{:?}", reader.said());
    reader.take(found.order(&name, 6, Order::Open, server(2)));
    assert!(found.report(&name, 5, TransitionCode::Opened, 3).is_empty(), "of an order that is over");
    assert!(found.is_of_order(&name, 6) && !found.is_of_order(&name, 5));
    reader.take(found.report(&name, 6, TransitionCode::Opened, 3));
    assert!(reader.said()[0].starts_with("6<1001 OpenRegion RUNNABLE 2 REPORT_SUCCEED Some(Opened) Some(3)"));
    // What is read of it again is the same.
    let (mut again, gone) = Found::of(&reader.0, 2000);
    assert!(gone.is_empty());
    let mut other = Reader(reader.0.clone());
    other.take(again.report(&name, 6, TransitionCode::Opened, 3));
    assert_eq!(other.0, reader.0);
    other.take(again.all_arrive());
    assert_eq!(other.said(), [""; 0]);
    reader.take(found.arrive(&name));
    assert_eq!(reader.said(), [""; 0]);
    // Closed, and there to be opened again.
    reader.take(found.add_regions(1, std::slice::from_ref(&info), Transition::Reopen));
    reader.take(found.set_out(&info, Order::Close));
    reader.take(found.order(&name, 7, Order::Close, server(2)));
    reader.take(found.report(&name, 7, TransitionCode::Closed, -1));
    assert_eq!(
        reader.said(),
        [
            "7<1002 CloseRegion RUNNABLE 2 REPORT_SUCCEED Some(Closed) Some(-1)",
            "1002<1 TransitRegionState WAITING [4, 5]"
        ]
    );
    reader.take(found.set_out(&info, Order::Open));
    assert_eq!(reader.said(), ["1002<1 TransitRegionState RUNNABLE [4, 5, 1]"]);
}

#[test]
fn a_change_that_hbase_finds_never_goes_back_and_keeps_its_regions() {
    let (mut found, mut reader) = (Found::of(&BTreeMap::new(), FIRST_ID).0, Reader::default());
    reader.take(found.change(&record(3), &[1, 2, 3], None, true));
    reader.take(found.add_regions(3, &[region("a"), region("b")], Transition::Assign));
    assert_eq!(
        reader.said(),
        [
            "3 CreateTable WAITING [1, 2, 3]",
            "1001<3 TransitRegionState RUNNABLE [1]",
            "1002<3 TransitRegionState RUNNABLE [1]"
        ]
    );
    assert!(found.change(&record(3), &[1, 2], None, false).is_empty());
    let row = pb::Procedure::decode(reader.0[&3].clone()).expect("a row");
    let data = pb::CreateTableStateData::decode(row.state_message[1].value.clone()).expect("data");
    assert_eq!(data.user_info.effective_user, "me");
    // Another master of ours goes on, and ends it.
    let (mut next, gone) = Found::of(&reader.0, 2000);
    assert!(gone.is_empty());
    assert!(next.change(&record(3), &[1, 2], None, false).is_empty());
    reader.take(next.end_change(&record(3), None));
    assert_eq!(
        reader.said(),
        ["3 Failed SUCCESS []", "1001 TransitRegionState RUNNABLE [1]", "1002 TransitRegionState RUNNABLE [1]"]
    );
    reader.take(next.forget(&[3]));
    reader.take(next.all_arrive());
    assert_eq!(reader.said(), [""; 0]);
}

#[test]
fn rows_of_crashed_servers_and_below_what_is_gone_are_left_out() {
    let mut rows = BTreeMap::new();
    let mut put = |id: u64, parent: Option<u64>, class: &str| {
        let row = pb::Procedure { class_name: class.into(), proc_id: id, parent_id: parent, ..Default::default() };
        rows.insert(id, Bytes::from(row.encode_to_vec()));
    };
    put(1, None, super::rows::CRASH);
    put(2, Some(1), "SplitWALProcedure");
    put(3, Some(2), "SplitWALRemoteProcedure");
    put(4, Some(99), "OpenRegionProcedure");
    put(5, None, "DisableTableProcedure");
    put(6, Some(5), "CloseTableRegionsProcedure");
    let (mut found, gone) = Found::of(&rows, FIRST_ID);
    let mut gone: Vec<u64> = gone.into_iter().map(|(id, _)| id).collect();
    gone.sort_unstable();
    assert_eq!(gone, [1, 2, 3, 4]);
    let mut below: Vec<u64> = found.change(&record(5), &[1], None, false).into_iter().map(|(id, _)| id).collect();
    below.sort_unstable();
    assert_eq!(below, [5, 6], "ours has no such child");
}

#[test]
fn a_log_begins_with_all_that_counts_and_is_read_after_a_crash() {
    let memory = MemVolume::new();
    let volume: Arc<dyn Volume> = Arc::new(memory.clone());
    let log_of = |name: ServerName, volume: &Arc<dyn Volume>| {
        let before = contents::read(&**volume).expect("read").before();
        StoreLog::new(Arc::clone(volume), name, &Config::default(), Arc::new(ManualClock::new(50)), before)
    };
    let row = |id: u64, text: &'static str| (id, Bytes::from(text));
    let log = log_of(server(1), &volume);
    for rows in [vec![row(1, "one"), row(2, "two")], vec![row(3, "three")], vec![row(2, "")], vec![row(9, "")]] {
        log.settle(log.append(&rows, None).expect("appended")).expect("on the disk");
    }
    // The next master has a clock that is behind, and begins with what it found.
    let after: Arc<dyn Volume> = Arc::new(memory.crash(&base::Rng::seeded(1), fs::CrashPolicy::LoseUnsynced));
    let found = contents::read(&*after).expect("read");
    assert!(found.of_hbase.is_empty(), "{:?}", found.of_hbase);
    let counts = |contents: &contents::Contents| contents.before().rows.into_keys().collect::<Vec<_>>();
    assert_eq!((counts(&found), found.before().largest_id), (vec![1, 3], 9));
    let next = log_of(server(2), &after);
    next.begin().expect("begun");
    next.settle(next.append(&[row(3, "")], None).expect("appended")).expect("on the disk");
    let both = contents::read(&*after).expect("read");
    assert_eq!((counts(&both), both.before().largest_id), (vec![1], 9));
    after.remove_dir_all(&log.dir()).expect("moved away");
    let alone = contents::read(&*after).expect("read");
    assert_eq!((counts(&alone), alone.before().largest_id), (vec![1], 9), "its file has all of it");
    // A file that cannot be written is followed by another.
    next.begin().expect("begun");
    let files = rootdir::list_if_exists(&*after, &next.dir()).expect("listed");
    assert_eq!(files.len(), 1, "{files:?}: the former is in the archive");
}

/// A change that has just begun, as it is kept here.
fn begun(class: &str, data: Vec<Any>) -> pb::Procedure {
    let steps = any("StateMachineProcedureData", &pb::StateMachineProcedureData { state: vec![1] });
    pb::Procedure {
        class_name: format!("org.apache.hadoop.hbase.master.{class}"),
        state_message: std::iter::once(steps).chain(data).collect(),
        ..record(3)
    }
}

fn form_of(message: &pb::Procedure) -> Form {
    Record::from_message(message, KINDS).expect("a record").procedure.for_hbase()
}

fn snapshot(name: &str) -> Any {
    let snapshot = pb::SnapshotDescription { name: name.into(), table: Some("t".into()), ..Default::default() };
    any("SnapshotProcedureStateData", &pb::SnapshotProcedureStateData { snapshot })
}

fn peer(id: &str, own: &str, data: &impl Message) -> Vec<Any> {
    vec![any("PeerProcedureStateData", &pb::PeerProcedureStateData { peer_id: id.into() }), any(own, data)]
}

fn namespace() -> pb::NamespaceDescriptor {
    convert::to_proto::namespace("n", &[("k".to_owned(), "v".to_owned())].into())
}

/// The row of a change that has begun, and HBase's steps in it.
fn row_of(class: &str, data: Vec<Any>) -> (pb::Procedure, Vec<u32>) {
    let message = begun(class, data);
    let mut found = Found::of(&BTreeMap::new(), FIRST_ID).0;
    let rows = match form_of(&message) {
        Form::Steps(states) => found.change(&message, &states, None, false),
        Form::With(states, data) => found.change(&message, &states, Some(data), false),
        form => panic!("{class}: {form:?}"),
    };
    let row = pb::Procedure::decode(rows[0].1.clone()).expect("a row");
    let steps = pb::StateMachineProcedureData::decode(row.state_message[0].value.clone()).expect("steps").state;
    (row, steps)
}

#[test]
fn changes_are_found_in_hbases_form_at_a_step_that_may_be_done_again() {
    let table_name = convert::to_proto::table_name(&TableName::parse("t").expect("a name"));
    let flush = pb::FlushTableProcedureStateData { table_name, column_family: vec![Bytes::from_static(b"f")] };
    let create = pb::CreateNamespaceStateData { namespace_descriptor: namespace() };
    let modify =
        pb::ModifyNamespaceStateData { namespace_descriptor: namespace(), unmodified_namespace_descriptor: None };
    let delete = pb::DeleteNamespaceStateData { namespace_name: "n".into(), namespace_descriptor: None };
    let remove = pb::RemovePeerStateData { peer_config: Some(pb::ReplicationPeer::default()) };
    let cases: Vec<(&str, Vec<Any>, &[u32])> = vec![
        ("procedure.SnapshotProcedure", vec![snapshot("s")], &[1]),
        ("procedure.FlushTableProcedure", vec![any("FlushTableProcedureStateData", &flush)], &[1, 2]),
        ("procedure.CreateNamespaceProcedure", vec![any("CreateNamespaceStateData", &create)], &[1, 2]),
        ("procedure.ModifyNamespaceProcedure", vec![any("ModifyNamespaceStateData", &modify)], &[1, 2]),
        ("procedure.DeleteNamespaceProcedure", vec![any("DeleteNamespaceStateData", &delete)], &[1, 2]),
        ("replication.RemovePeerProcedure", peer("p", "RemovePeerStateData", &remove), &[1, 2]),
    ];
    for (class, data, steps) in cases {
        let (row, found_steps) = row_of(class, data.clone());
        assert_eq!((row.state(), row.owner(), row.nonce()), (pb::ProcedureState::Runnable, "me", 9), "{class}");
        assert_eq!((&found_steps[..], row.executed()), (steps, steps.len() > 1), "{class}");
        assert!(row.state_message[0].type_url.ends_with("hbase.pb.StateMachineProcedureData"), "{class}");
        assert_eq!(row.state_message[1..], data, "{class}: who reads it as HBase does finds all of it");
        assert!(row.stack_id.is_empty() && row.parent_id.is_none(), "{class}");
    }
}

/// HBase's would repeat without end to a server of ours what that refuses, and to one of its own what it has not heard of.
#[test]
fn changes_of_peers_that_servers_would_refuse_are_found_as_failed() {
    let add = pb::AddPeerStateData { peer_config: pb::ReplicationPeer::default(), enabled: true };
    let update = pb::UpdatePeerConfigStateData { enabled: true, ..Default::default() };
    let form = |class: &str, data: Vec<Any>| form_of(&begun(&format!("replication.{class}"), data));
    assert_eq!(form("AddPeerProcedure", peer("p", "AddPeerStateData", &add)), Form::Failed);
    assert_eq!(form("UpdatePeerConfigProcedure", peer("p", "UpdatePeerConfigStateData", &update)), Form::Failed);
    for kind in ["Enable", "Disable"] {
        let data = peer("p", &format!("{kind}PeerStateData"), &pb::EnablePeerStateData {});
        assert_eq!(form(&format!("{kind}PeerProcedure"), data), Form::Failed);
    }
    let of_replicas = peer("region_replica_replication", "AddPeerStateData", &add);
    assert_eq!(form("AddPeerProcedure", of_replicas), Form::Steps(vec![1, 2]), "all servers hear of that one");
}

#[test]
fn a_truncation_is_found_with_the_regions_whose_place_others_take() {
    let table = model::TableDescriptor::new(region("a").table, [model::FamilyDescriptor::new("f")]);
    let mut parent = region("b");
    (parent.split, parent.offline) = (true, true);
    let all = [region(""), region("b").replica(1), parent, region("new")];
    for (kept, steps, snapshot_name) in [("3", [1, 3], None), ("3 auto_t_5", [1, 8], Some("auto_t_5"))] {
        let state = pb::TruncateTableStateData {
            table_schema: Some(convert::to_proto::table(&table)),
            region_info: all.iter().map(convert::to_proto::region_info).collect(),
            snapshot_name: Some(kept.into()),
            ..Default::default()
        };
        let data = vec![any("TruncateTableStateData", &state)];
        let (row, found_steps) = row_of("procedure.TruncateTableProcedure", data);
        let state = pb::TruncateTableStateData::decode(row.state_message[1].value.clone()).expect("its state");
        assert_eq!(found_steps, steps, "{kept}");
        assert_eq!(state.region_info, [convert::to_proto::region_info(&all[0])], "{kept}");
        assert_eq!((state.snapshot_name.as_deref(), &*state.user_info.effective_user), (snapshot_name, "me"));
    }
}

#[test]
fn a_snapshot_that_hbases_master_had_begun_is_found_where_ours_begins_it_anew() {
    let mut reader = Reader::default();
    let message = begun("procedure.SnapshotProcedure", vec![snapshot("s")]);
    let mut found = Found::of(&BTreeMap::new(), FIRST_ID).0;
    reader.take(found.change(&message, &[1, 2, 3, 4, 5], None, true));
    let child = pb::Procedure {
        class_name: "org.apache.hadoop.hbase.master.procedure.SnapshotRegionProcedure".into(),
        proc_id: 4,
        parent_id: Some(3),
        ..Default::default()
    };
    reader.take(vec![(4, child.encode_to_vec().into())]);
    let (mut next, gone) = Found::of(&reader.0, 2000);
    assert!(gone.is_empty());
    reader.take(next.begin_anew(&message, &[1]));
    assert_eq!(reader.said(), ["3 Snapshot RUNNABLE [1]"], "without what regions had been asked for");
    assert!(next.begin_anew(&message, &[1]).is_empty(), "it is there already");
    let taken: Vec<Step> = vec![1, 2, 3, 4, 5, 7, 8, 9, 10, 11];
    reader.take(next.change(&message, &taken, None, false));
    assert_eq!(reader.said(), ["3 Snapshot RUNNABLE [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]"]);
    assert!(next.change(&message, &[1], None, false).is_empty());
}

/// Who asked for it was told that it is not done.
#[tokio::test]
async fn what_is_given_up_is_not_what_hbases_next_master_goes_on_with() {
    let volume: Arc<dyn Volume> = Arc::new(MemVolume::new());
    let state =
        pb::DeleteTableStateData { table_name: convert::to_proto::table_name(&region("").table), ..Default::default() };
    let mut message = begun("procedure.DeleteTableProcedure", vec![any("DeleteTableStateData", &state)]);
    message.state = pb::ProcedureState::Runnable as i32;
    let mut before = contents::read(&*volume).expect("read").before();
    before.rows.insert(3, message.encode_to_vec().into());
    let records = of_hbase::read(&before.rows, true).expect("a record");
    let log = StoreLog::new(Arc::clone(&volume), server(1), &Config::default(), Arc::new(ManualClock::new(50)), before);
    let for_hbase = ForHBase::new(Some(log), 1, Files::new(Arc::clone(&volume)), Arc::default());
    for_hbase.are_decided(&records);
    for_hbase.begin_log().await.expect("begun");
    let rows = contents::read(&*volume).expect("read").procedures;
    let row = pb::Procedure::decode(rows[&3].clone()).expect("a row");
    assert_eq!(
        (row.class_name.rsplit('.').next(), row.state()),
        (Some("FailedProcedure"), pb::ProcedureState::Rolledback)
    );
    assert!(row.exception.is_some(), "{row:?}");
}
