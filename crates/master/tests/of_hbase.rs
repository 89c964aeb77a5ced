//! A master of ours that leads after one of HBase's: what that had begun is finished, and what ours had begun before it is not.

use crate::common::{Life, caller, fresh, start_after, table, table_name};
use basalt_master::cluster::TableState;
use basalt_master::{ErrorKind, Inherited, PeerNodes};
use base::{Config, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use convert::to_proto;
use fs::{FilePath, MemVolume, Volume};
use model::{Nonce, RegionInfo};
use proto::pb::snapshot_description::Type;
use proto::pb::{
    CreateNamespaceState, CreateTableState, DeleteNamespaceState, DeleteTableState, FlushTableState,
    ModifyNamespaceState, PeerModificationState, ProcedureState, SnapshotState, TruncateTableState,
};
use proto::{Any, Message, magic, pb};
use std::sync::Arc;

const PACKAGE: &str = "org.apache.hadoop.hbase.master.procedure";

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/hbase.pb.{name}"), value: message.encode_to_vec().into() }
}

/// A procedure as HBase's master keeps it, which is to do `step` next.
fn procedure(id: u64, class: &str, step: i32, state: (&str, &impl Message)) -> pb::Procedure {
    let steps = pb::StateMachineProcedureData { state: (1..=step).map(i32::cast_unsigned).collect() };
    pb::Procedure {
        class_name: format!("{PACKAGE}.{class}"),
        proc_id: id,
        submitted_time: 7,
        last_update: 7,
        owner: Some("root".into()),
        state: ProcedureState::Runnable as i32,
        stack_id: (0..step.cast_unsigned() - 1).collect(),
        state_message: vec![any("StateMachineProcedureData", &steps), any(state.0, state.1)],
        ..Default::default()
    }
}

fn creation(id: u64, step: CreateTableState, name: &str, regions: &[RegionInfo]) -> pb::Procedure {
    let state = pb::CreateTableStateData {
        user_info: pb::UserInformation::default(),
        table_schema: to_proto::table(&table(name, &["f"])),
        region_info: regions.iter().map(to_proto::region_info).collect(),
    };
    procedure(id, "CreateTableProcedure", step as i32, ("CreateTableStateData", &state))
}

fn deletion(id: u64, step: DeleteTableState, name: &str, regions: &[RegionInfo]) -> pb::Procedure {
    let state = pb::DeleteTableStateData {
        user_info: pb::UserInformation::default(),
        table_name: to_proto::table_name(&table_name(name)),
        region_info: regions.iter().map(to_proto::region_info).collect(),
        snapshot_name: None,
    };
    procedure(id, "DeleteTableProcedure", step as i32, ("DeleteTableStateData", &state))
}

fn region(name: &str, start: &'static [u8], end: &'static [u8], id: u64) -> RegionInfo {
    RegionInfo::new(table_name(name), start.into(), end.into(), id)
}

/// A log of HBase's master: each is put under its id, one after the other; with no state it is forgotten.
fn hbase_leads(memory: &MemVolume, log: &str, procedures: &[pb::Procedure]) {
    let dir = FilePath::new("MasterData/WALs/m,1,1");
    memory.create_dir_all(&dir).expect("memory");
    let mut writer = wal::FileWriter::create(memory, &dir.join(log), false).expect("memory");
    let region: Arc<str> = "1595e783b53d99cd5eef43b6debb2682".into();
    for (seq_id, procedure) in (1..).zip(procedures) {
        let mut cells = CellBuffer::new();
        let (row, type_code) = (procedure.proc_id.to_be_bytes(), CellType::Put.code());
        let value = if procedure.state_message.is_empty() { Vec::new() } else { procedure.encode_to_vec() };
        let (family, qualifier) = (b"proc", b"d");
        let spec = CellSpec { row: &row, family, qualifier, timestamp: 7, type_code, value: &value, tags: &[] };
        cells.push_spec(&spec, SeqId(seq_id));
        let families: &[&[u8]] = &[b"proc"];
        let key = wal::EntryKey::new(&region, "master:store", SeqId(seq_id), TimestampMs(7), families);
        writer.append(&key, cells.bytes(), cells.len()).expect("memory");
    }
    writer.finish().expect("memory");
}

fn state_of(life: &Life, name: &str) -> Option<TableState> {
    life.master.cluster().state(&table_name(name))
}

#[tokio::test]
async fn what_hbases_master_had_begun_is_finished() {
    let life = fresh().await;
    for name in ["deleted", "truncated", "kept"] {
        life.create(name, &["f"], &["m"]).await;
        life.fill(name);
    }
    for name in ["deleted", "truncated"] {
        life.disable(name).await;
    }
    let (old, kept) = (life.regions("truncated"), life.regions("kept"));
    life.master.stop();
    let new = [region("truncated", b"", b"", old[0].region_id + 5)];
    let truncation = pb::TruncateTableStateData {
        user_info: pb::UserInformation::default(),
        preserve_splits: false,
        table_name: Some(to_proto::table_name(&table_name("truncated"))),
        table_schema: Some(to_proto::table(&table("truncated", &["f"]))),
        region_info: new.iter().map(to_proto::region_info).collect(),
        snapshot_name: None,
    };
    let step = TruncateTableState::TruncateTableRemoveFromMeta;
    let of_made = [region("made", b"", b"k", 9), region("made", b"k", b"", 9)];
    let mut made = creation(7001, CreateTableState::CreateTableAssignRegions, "made", &of_made);
    (made.nonce_group, made.nonce) = (Some(3), Some(4));
    let earlier = creation(7001, CreateTableState::CreateTablePreOperation, "made", &of_made);
    hbase_leads(
        &life.memory,
        "log",
        &[
            earlier,
            made,
            deletion(7002, DeleteTableState::DeleteTableClearFsLayout, "deleted", &life.regions("deleted")),
            procedure(7003, "TruncateTableProcedure", step as i32, ("TruncateTableStateData", &truncation)),
            // A table of that name is there: it was not checked.
            creation(7004, CreateTableState::CreateTablePreOperation, "kept", &[region("kept", b"", b"", 9)]),
            pb::Procedure { proc_id: 7009, ..Default::default() },
        ],
    );
    let life = life.restart().await;
    for id in [7001, 7002, 7003] {
        life.master.wait_for(id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    assert_eq!(life.regions("made"), of_made);
    assert_eq!((state_of(&life, "made"), state_of(&life, "deleted")), (Some(TableState::Enabled), None));
    assert_eq!((life.regions("truncated"), state_of(&life, "truncated")), (new.to_vec(), Some(TableState::Enabled)));
    let refused = life.master.wait_for(7004).await.expect_err("it had not begun");
    assert_eq!(refused.kind, ErrorKind::ProcedureAborted, "{refused}");
    assert_eq!(life.regions("kept"), kept, "and the table of that name is as it was");
    life.check();
    // Who repeats what HBase's master was asked for hears of the same procedure.
    let mut again = caller();
    again.nonce = Some(Nonce { group: 3, number: 4 });
    assert_eq!(life.master.create_table(table("made", &["f"]), &[], &again).await.expect("known"), 7001);
    let id = life.master.create_table(table("later", &["f"]), &[], &caller()).await.expect("accepted");
    assert_eq!(id, 7010, "no id is given twice");
    life.master.wait_for(id).await.expect("made");
    // It is all ours now, and HBase's master would give no id twice either.
    assert_eq!(life.files_below("MasterData/WALs"), [""; 0]);
    assert!(!life.memory.exists(&FilePath::new("MasterData/basalt/taken-over")).expect("memory"));
    let life = life.restart().await;
    let id = life.master.create_table(table("last", &["f"]), &[], &caller()).await.expect("accepted");
    assert!(id > 7010, "{id}");
}

#[tokio::test]
async fn what_ours_had_begun_is_left_alone_once_hbases_master_has_led() {
    for has_led in [false, true] {
        let life = fresh().await;
        life.create("t", &["f"], &[]).await;
        life.disable("t").await;
        life.master.stop();
        let left = deletion(8, DeleteTableState::DeleteTableClearFsLayout, "t", &life.regions("t"));
        let path = FilePath::new(format!("MasterData/basalt/procedures/{:019}", 8));
        life.memory.put_file(&path, &magic::encode(&left));
        if has_led {
            hbase_leads(&life.memory, "log", &[]);
        }
        let life = life.restart().await;
        assert_eq!(state_of(&life, "t").is_some(), has_led);
    }
}

/// A start that was broken off goes on with what it had made its own, unless HBase's master has led in between.
#[tokio::test]
async fn what_was_taken_over_is_not_taken_over_again() {
    for led_again in [false, true] {
        let life = fresh().await;
        life.create("t", &["f"], &[]).await;
        life.disable("t").await;
        life.master.stop();
        let left = deletion(8, DeleteTableState::DeleteTableClearFsLayout, "t", &life.regions("t"));
        hbase_leads(&life.memory, "log", &[left]);
        // As the start left it before what it had taken over was in the archive; the procedure has ended since.
        life.memory.put_file(&FilePath::new("MasterData/basalt/taken-over"), b"m,1,1\nlog\n");
        if led_again {
            hbase_leads(&life.memory, "log.2", &[]);
        }
        let life = life.restart().await;
        assert_eq!(state_of(&life, "t").is_none(), led_again);
    }
}

fn snapshot(id: u64, step: SnapshotState, name: &str, table: &str) -> pb::Procedure {
    let snapshot = pb::SnapshotDescription {
        name: name.into(),
        table: Some(table.into()),
        creation_time: Some(7),
        r#type: Some(Type::Flush as i32),
        version: Some(2),
        ..Default::default()
    };
    let state = pb::SnapshotProcedureStateData { snapshot };
    procedure(id, "SnapshotProcedure", step as i32, ("SnapshotProcedureStateData", &state))
}

#[tokio::test]
async fn snapshots_that_hbases_master_was_taking_are_taken_whatever_it_had_done() {
    let life = fresh().await;
    for name in ["t", "disabled"] {
        life.create(name, &["f"], &["m"]).await;
        life.fill(name);
    }
    life.disable("disabled").await;
    let taken = pb::SnapshotDescription { name: "last".into(), table: Some("t".into()), ..Default::default() };
    let id = life.master.take_snapshot(taken, &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("taken");
    life.master.stop();
    // What it had of a region that is not there any more, and of one that nobody takes.
    let working = |name: &str| FilePath::new(format!(".hbase-snapshot/.tmp/{name}"));
    for name in ["half", "nobodys"] {
        life.memory.put_file(&working(name).join("region-manifest.abc"), b"half");
    }
    let (first, third) = (SnapshotState::SnapshotPrepare, SnapshotState::SnapshotSnapshotSplitRegions);
    hbase_leads(
        &life.memory,
        "log",
        &[
            snapshot(7001, first, "asked-for", "t"),
            snapshot(7002, third, "half", "t"),
            snapshot(7003, first, "closed", "disabled"),
            // Moved to its place, and nobody was told.
            snapshot(7004, SnapshotState::SnapshotCompleteSnapshot, "last", "t"),
            snapshot(7005, SnapshotState::SnapshotPostOperation, "last", "t"),
            snapshot(7006, first, "of-nothing", "gone"),
        ],
    );
    let life = life.restart().await;
    for id in 7001..=7005 {
        life.master.wait_for(id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    let refused = life.master.wait_for(7006).await.expect_err("no such table");
    assert_eq!(refused.kind, ErrorKind::SnapshotCreation, "{refused}");
    let listed = life.master.list_snapshots().await.expect("listed");
    let mut kinds: Vec<(&str, Type)> = listed.iter().map(|found| (&*found.name, found.r#type())).collect();
    kinds.sort_unstable_by_key(|(name, _)| *name);
    let flushed = ["asked-for", "half", "last"].map(|name| (name, Type::Flush));
    assert_eq!(kinds, [flushed[0], ("closed", Type::Disabled), flushed[1], flushed[2]]);
    for name in ["asked-for", "closed", "half"] {
        let dir = rootdir::snapshot::completed_dir(name);
        let manifest = rootdir::snapshot::read_manifest(&life.memory, &dir).expect("a manifest");
        assert_eq!(manifest.regions.len(), 2, "{name}");
    }
    assert_eq!(life.files_below(".hbase-snapshot/.tmp"), [""; 0]);
    life.check();
}

#[tokio::test]
async fn namespaces_and_flushes_that_hbases_master_had_begun_are_finished() {
    let life = fresh().await;
    life.create("t", &["f"], &[]).await;
    for name in ["changed", "deleted", "kept"] {
        let id = life.master.create_namespace(name.into(), Default::default(), &caller()).await.expect("accepted");
        life.master.wait_for(id).await.expect("made");
    }
    life.master.stop();
    let described = |name: &str| to_proto::namespace(name, &[("k".to_owned(), "v".to_owned())].into());
    let made = pb::CreateNamespaceStateData { namespace_descriptor: described("made") };
    let changed = pb::ModifyNamespaceStateData {
        namespace_descriptor: described("changed"),
        unmodified_namespace_descriptor: None,
    };
    let deleted = |name: &str| pb::DeleteNamespaceStateData { namespace_name: name.into(), ..Default::default() };
    let flush = pb::FlushTableProcedureStateData {
        table_name: to_proto::table_name(&table_name("t")),
        column_family: Vec::new(),
    };
    let (create, modify) =
        (CreateNamespaceState::CreateNamespaceUpdateZk, ModifyNamespaceState::ModifyNamespaceUpdateZk);
    let delete = DeleteNamespaceState::DeleteNamespaceDeleteDirectories;
    let unchecked = DeleteNamespaceState::DeleteNamespacePrepare;
    hbase_leads(
        &life.memory,
        "log",
        &[
            procedure(7001, "CreateNamespaceProcedure", create as i32, ("CreateNamespaceStateData", &made)),
            procedure(7002, "ModifyNamespaceProcedure", modify as i32, ("ModifyNamespaceStateData", &changed)),
            procedure(
                7003,
                "DeleteNamespaceProcedure",
                delete as i32,
                ("DeleteNamespaceStateData", &deleted("deleted")),
            ),
            procedure(
                7004,
                "DeleteNamespaceProcedure",
                unchecked as i32,
                ("DeleteNamespaceStateData", &deleted("kept")),
            ),
            procedure(
                7005,
                "FlushTableProcedure",
                FlushTableState::FlushTablePrepare as i32,
                ("FlushTableProcedureStateData", &flush),
            ),
        ],
    );
    let life = life.restart().await;
    for id in [7001, 7002, 7003, 7005] {
        life.master.wait_for(id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    let refused = life.master.wait_for(7004).await.expect_err("it had not begun");
    assert_eq!(refused.kind, ErrorKind::ProcedureAborted, "{refused}");
    let setting = |name: &str| life.master.cluster().namespace(name).map(|settings| settings.get("k").cloned());
    let v = Some("v".to_owned());
    assert_eq!([setting("made"), setting("changed"), setting("deleted")], [Some(v.clone()), Some(v), None]);
    assert_eq!(setting("kept"), Some(None));
    assert_eq!(life.host.flushed.lock().len(), 1, "the table's region");
    life.check();
}

/// HBase's master keeps peers in nodes alone.
#[tokio::test]
async fn peers_are_as_hbases_master_has_left_them_and_what_it_was_changing_is_changed() {
    let life = fresh().await;
    life.master.stop();
    let config = |serial: bool| pb::ReplicationPeer {
        clusterkey: Some("zk:2181:/b".into()),
        serial: Some(serial),
        ..Default::default()
    };
    let nodes = |enabled: bool| {
        let state =
            if enabled { pb::replication_state::State::Enabled } else { pb::replication_state::State::Disabled };
        let state = pb::ReplicationState { state: state as i32 };
        PeerNodes { config: magic::encode(&config(false)), state: magic::encode(&state) }
    };
    let change = |id: u64, kind: &str, step: PeerModificationState, peer: &str, own: Any| {
        let peer = pb::PeerProcedureStateData { peer_id: peer.into() };
        let mut message = procedure(id, "", step as i32, ("PeerProcedureStateData", &peer));
        message.class_name = format!("org.apache.hadoop.hbase.master.replication.{kind}PeerProcedure");
        message.state_message.push(own);
        message
    };
    let added =
        |serial: bool| any("AddPeerStateData", &pb::AddPeerStateData { peer_config: config(serial), enabled: true });
    let disabled = any("DisablePeerStateData", &pb::DisablePeerStateData {});
    let removed = any("RemovePeerStateData", &pb::RemovePeerStateData { peer_config: Some(config(false)) });
    let (refresh, storage) = (PeerModificationState::RefreshPeerOnRs, PeerModificationState::UpdatePeerStorage);
    hbase_leads(
        &life.memory,
        "log",
        &[
            change(7001, "Add", storage, "added", added(false)),
            change(7002, "Disable", refresh, "disabled", disabled.clone()),
            change(7003, "Remove", storage, "removed", removed),
            change(7004, "Disable", PeerModificationState::PrePeerModification, "asked", disabled),
            change(7005, "Add", refresh, "serial", added(true)),
        ],
    );
    let kept = ["asked", "disabled", "kept", "removed", "serial"];
    let peers = kept.map(|id| (id.to_owned(), nodes(id != "serial"))).into();
    let inherited = Inherited { peers: Some(peers), ..Inherited::default() };
    let life = start_after(&life.memory, &life.catalog, Config::default(), 1, inherited).await.expect("starts");
    for id in [7001, 7002, 7003] {
        life.master.wait_for(id).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    for id in [7004, 7005] {
        let refused = life.master.wait_for(id).await.expect_err("given up");
        assert_eq!(refused.kind, ErrorKind::ProcedureAborted, "{refused}");
    }
    let found = life.notes.peers.lock().clone();
    let enabled = |id: &str| found.get(id).map(|peer| *peer == nodes(true));
    let all = ["added", "asked", "disabled", "kept", "removed", "serial"].map(enabled);
    assert_eq!(all, [Some(true), Some(true), Some(false), Some(true), None, Some(false)]);
    // They are kept here from now on.
    let life = life.restart().await;
    assert_eq!(*life.notes.peers.lock(), found);
}
