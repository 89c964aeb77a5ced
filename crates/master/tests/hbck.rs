//! What hbck2, lock holders and operators of servers ask for, over real connections.

use crate::common::{Catalog, bytes, start_with, table_name};
use crate::service::{Connected, connect};
use basalt_master::cluster::{RegionState, TableState};
use base::Config;
use convert::to_proto;
use fs::MemVolume;
use model::{RegionInfo, ServerName};
use pb::lock_heartbeat_response::LockStatus;
use pb::region_specifier::RegionSpecifierType;
use proto::methods::Method;
use proto::pb;
use std::time::Duration;

async fn connected(service: &str, servers: u16) -> Connected {
    let life = start_with(&MemVolume::new(), &Catalog::default(), Config::default(), servers).await.expect("starts");
    life.create("t", &["f"], &["m"]).await;
    connect(life, service).await
}

fn specifier(info: &RegionInfo) -> pb::RegionSpecifier {
    let value = bytes(info.encoded_name());
    pb::RegionSpecifier { r#type: RegionSpecifierType::EncodedRegionName as i32, value }
}

fn state(c: &Connected, info: &RegionInfo) -> RegionState {
    c.life.master.cluster().region(info.encoded_name()).expect("known").state
}

fn location(c: &Connected, info: &RegionInfo) -> Option<ServerName> {
    c.life.master.cluster().region(info.encoded_name()).expect("known").location.clone()
}

#[tokio::test]
async fn hbck_closes_and_opens_regions_and_says_which_it_did_not() {
    let c = connected("HbckService", 1).await;
    let info = c.life.regions("t").remove(0);
    let unknown = pb::RegionSpecifier { value: bytes("00000000000000000000000000000000"), ..specifier(&info) };
    let unassign = pb::UnassignsRequest { region: vec![unknown, specifier(&info)], r#override: None };
    let answer: pb::UnassignsResponse = c.call(Method::HbckUnassigns, &unassign).await.expect("answered");
    assert_eq!(answer.pid.len(), 1, "one that is not known is passed over");
    c.life.master.wait_for(answer.pid[0]).await.expect("closed");
    assert_eq!(state(&c, &info), RegionState::Closed);
    let again: pb::UnassignsResponse = c.call(Method::HbckUnassigns, &unassign).await.expect("answered");
    assert_eq!(again.pid, [u64::MAX], "it is not open");
    let assign = pb::AssignsRequest { region: vec![specifier(&info)], r#override: None };
    let answer: pb::AssignsResponse = c.call(Method::HbckAssigns, &assign).await.expect("answered");
    c.life.master.wait_for(answer.pid[0]).await.expect("opened");
    assert_eq!(state(&c, &info), RegionState::Open);
    let again: pb::AssignsResponse = c.call(Method::HbckAssigns, &assign).await.expect("answered");
    assert_eq!(again.pid, [u64::MAX], "it is open");
    c.life.check();
}

#[tokio::test]
async fn hbck_sets_states() {
    let c = connected("HbckService", 1).await;
    let set = |name: &str, state: TableState| pb::SetTableStateInMetaRequest {
        table_name: to_proto::table_name(&table_name(name)),
        table_state: pb::TableState { state: state as i32 },
    };
    let before: pb::GetTableStateResponse =
        c.call(Method::HbckSetTableStateInMeta, &set("t", TableState::Disabled)).await.expect("set");
    assert_eq!(before.table_state.state, TableState::Enabled as i32);
    assert_eq!(c.life.master.cluster().state(&table_name("t")), Some(TableState::Disabled));
    let (class, _) = c.refused(Method::HbckSetTableStateInMeta, &set("nobody", TableState::Enabled)).await;
    assert_eq!(class, "org.apache.hadoop.hbase.TableNotFoundException");

    let info = c.life.regions("t").remove(0);
    let wanted = |value, state: RegionState| pb::SetRegionStateInMetaRequest {
        states: vec![pb::RegionSpecifierAndState {
            region_specifier: pb::RegionSpecifier { value, ..specifier(&info) },
            state: state as i32,
        }],
    };
    let request = wanted(bytes(info.encoded_name()), RegionState::Closed);
    let before: pb::SetRegionStateInMetaResponse =
        c.call(Method::HbckSetRegionStateInMeta, &request).await.expect("set");
    assert_eq!(before.states[0].state, RegionState::Open as i32);
    assert_eq!(state(&c, &info), RegionState::Closed);
    let same: pb::SetRegionStateInMetaResponse =
        c.call(Method::HbckSetRegionStateInMeta, &request).await.expect("nothing to do");
    assert_eq!(same.states, []);
    let request = wanted(bytes("00000000000000000000000000000000"), RegionState::Closed);
    let (class, text) = c.refused(Method::HbckSetRegionStateInMeta, &request).await;
    assert_eq!(class, "java.io.IOException");
    assert!(text.contains("No existing state known for region"), "{text}");
}

#[tokio::test]
async fn hbck_ends_a_procedure_that_makes_no_progress() {
    let c = connected("HbckService", 1).await;
    let region = c.life.regions("t").remove(0);
    c.life.disable("t").await;
    // The table's descriptor cannot be written.
    c.life.memory.inject(fs::mem::Fault {
        op: None,
        path_contains: Some("data/default/t/.tabledesc".to_owned()),
        nth: 1,
        kind: fs::FaultKind::Io,
        forever: true,
    });
    let new = crate::common::table("t", &["f"]);
    let id = c.life.master.modify_table(&table_name("t"), new, true, &crate::common::caller()).await.expect("accepted");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(c.life.master.unfinished_procedures(), 1, "it tries again and again");
    let bypass = pb::BypassProcedureRequest { proc_id: vec![id, id + 100], wait_time: Some(1), ..Default::default() };
    let answer: pb::BypassProcedureResponse = c.call(Method::HbckBypassProcedure, &bypass).await.expect("answered");
    assert_eq!(answer.bypassed, [true, false]);
    c.life.master.wait_for(id).await.expect("ended as if it had succeeded");
    let again: pb::BypassProcedureResponse = c.call(Method::HbckBypassProcedure, &bypass).await.expect("answered");
    assert_eq!(again.bypassed, [false, false], "it has ended");
    assert_eq!(state(&c, &region), RegionState::Closed);
}

#[tokio::test]
async fn hbck_has_servers_handled_as_crashed() {
    let c = connected("HbckService", 2).await;
    let info = c.life.regions("t").remove(0);
    let dead = location(&c, &info).expect("open");
    let request = pb::ScheduleServerCrashProcedureRequest { server_name: vec![to_proto::server_name(&dead)] };
    let answer: pb::ScheduleServerCrashProcedureResponse =
        c.call(Method::HbckScheduleServerCrashProcedure, &request).await.expect("answered");
    c.life.master.wait_for(answer.pid[0]).await.expect("recovered");
    assert_ne!(location(&c, &info), Some(dead));
    let unknown: pb::ScheduleScPsForUnknownServersResponse = c
        .call(Method::HbckScheduleSCPsForUnknownServers, &pb::ScheduleScPsForUnknownServersRequest {})
        .await
        .expect("answered");
    assert_eq!(unknown.pid, Vec::<u64>::new(), "the dead one is known");
}

/// hbase:meta loses a region and gets one that covers two others; the next start finds it so.
#[tokio::test]
async fn hbck_fills_holes_and_merges_overlaps_that_the_janitor_found() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["c", "g", "m", "s"]).await;
    life.create("whole", &["f"], &["m"]).await;
    let regions = life.regions("t");
    let lost = [&regions[0], &regions[2], &regions[4]];
    let covering = RegionInfo::new(table_name("t"), bytes("c"), bytes("s"), regions[0].region_id + 1);
    life.master.stop();
    {
        let mut catalog = life.catalog.lock();
        let meta = catalog.get_mut("1588230740").expect("hbase:meta");
        lost.iter().for_each(|info| meta.lose_row(info.name()));
        meta.apply(&[basalt_master::meta::put_region(&covering, RegionState::Closed, base::TimestampMs(1))]);
    }
    rootdir::create_region_dir(&life.memory, &covering, &crate::common::table("t", &["f"])).expect("memory");
    let life = crate::common::start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
    let c = connect(life, "HbckService").await;
    let fix = async || {
        let _: pb::FixMetaResponse = c.call(Method::HbckFixMeta, &pb::FixMetaRequest {}).await.expect("answered");
    };
    let starts = || c.life.regions("t").iter().map(|info| info.start_key.clone()).collect::<Vec<_>>();
    fix().await;
    assert_eq!(starts(), ["c", "c", "m"], "nothing was found yet");

    c.life.master.run_catalog_janitor().await.expect("it runs");
    let report = c.life.master.catalog_report().expect("it has run");
    let holes: Vec<_> = report.holes.iter().map(|hole| (&hole.start[..], &hole.end[..])).collect();
    assert_eq!(holes, [(&b""[..], &b"c"[..]), (b"s", b"")]);
    assert_eq!(report.overlaps.len(), 2, "{:?}", report.overlaps);
    assert!(report.overlaps.iter().all(|(a, b)| *a == covering || *b == covering));
    fix().await;
    let settled = async {
        while c.life.master.unfinished_procedures() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled).await.expect("the merge ends");
    assert_eq!(starts(), ["", "c", "s"]);
    let merged = |info: &RegionInfo| c.life.master.cluster().region(info.encoded_name()).is_none();
    assert!([&covering, &regions[1], &regions[3]].into_iter().all(merged));
    c.life.master.run_catalog_janitor().await.expect("it runs");
    assert_eq!(*c.life.master.catalog_report().expect("it has run"), Default::default());
    // A row that tells of no region is found, and left alone.
    let replica = covering.replica(1);
    // Later than what the merge took out of that row.
    let late = base::TimestampMs(9_000_000_000_000);
    let row = basalt_master::meta::put_region(&replica, RegionState::Closed, late);
    c.life.catalog.lock().get_mut("1588230740").expect("hbase:meta").apply(&[row]);
    c.life.master.run_catalog_janitor().await.expect("it runs");
    let report = c.life.master.catalog_report().expect("it has run");
    assert_eq!(report.empty_region_infos, [cell::print::to_string_binary(covering.name())]);
    c.life.catalog.lock().get_mut("1588230740").expect("hbase:meta").lose_row(covering.name());
    // A directory that hbase:meta lost stays, as an orphan.
    for info in lost {
        rootdir::archive_region_dir(&c.life.memory, &rootdir::region_dir(info)).expect("memory");
    }
    c.life.check();
}

#[tokio::test]
async fn the_hbck_chore_reports_what_is_not_where_it_is_said_to_be() {
    let c = connected("HbckService", 2).await;
    c.life.create("off", &["f"], &[]).await;
    c.life.disable("off").await;
    assert!(c.life.master.hbck_report().is_none(), "it has not run");
    let report = async || {
        let answer: pb::RunHbckChoreResponse =
            c.call(Method::HbckRunHbckChore, &pb::RunHbckChoreRequest {}).await.expect("answered");
        assert!(answer.ran);
        (*c.life.master.hbck_report().expect("it has run")).clone()
    };
    let clean = report().await;
    assert_eq!(clean.inconsistent_regions.keys().collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(clean.orphan_regions_on_servers.len() + clean.orphan_regions_on_volume.len(), 0);
    assert_eq!(clean.disabled_table_regions.len(), 1);

    // One region is open nowhere, one elsewhere too, and one server has a region that nobody knows.
    let regions = c.life.regions("t");
    let host_of = |info: &RegionInfo| {
        let at = location(&c, info).expect("open");
        c.life.hosts.iter().find(|host| host.server == at).expect("online")
    };
    let other_than = |server: &ServerName| c.life.hosts.iter().find(|host| host.server != *server).expect("two");
    let (first, second) = (host_of(&regions[0]), host_of(&regions[1]));
    first.open.lock().remove(&**regions[0].encoded_name());
    let open = second.open.lock()[&**regions[1].encoded_name()].clone();
    let other = other_than(&second.server);
    other.open.lock().insert(regions[1].encoded_name().to_string(), open.clone());
    let stray = RegionInfo::new(table_name("t"), bytes("x"), bytes(""), 7);
    other.open.lock().insert(stray.encoded_name().to_string(), (stray.clone(), open.1));
    let left_over = rootdir::table_dir(&table_name("t")).join("00000000000000000000000000000000");
    fs::Volume::create_dir_all(&c.life.memory, &left_over).expect("memory");

    let found = report().await;
    let nowhere = &found.inconsistent_regions[&regions[0].name_string()];
    assert_eq!((nowhere.in_meta.as_ref(), nowhere.deployed_on.len()), (Some(&first.server), 0));
    let twice = &found.inconsistent_regions[&regions[1].name_string()];
    assert_eq!((twice.in_meta.as_ref(), twice.deployed_on.len()), (Some(&second.server), 2));
    assert_eq!(found.inconsistent_regions.len(), 2);
    assert_eq!(found.orphan_regions_on_servers[&stray.name_string()], other.server);
    assert_eq!(found.orphan_regions_on_volume.values().collect::<Vec<_>>(), [&left_over]);
}

#[tokio::test]
async fn the_hbck_chore_does_not_run_when_it_is_switched_off() {
    let mut config = Config::default();
    config.set("hbase.master.hbck.chore.interval", "-1");
    let life = start_with(&MemVolume::new(), &Catalog::default(), config, 1).await.expect("starts");
    let c = connect(life, "HbckService").await;
    let answer: pb::RunHbckChoreResponse =
        c.call(Method::HbckRunHbckChore, &pb::RunHbckChoreRequest {}).await.expect("answered");
    assert!(!answer.ran);
    assert!(c.life.master.hbck_report().is_none());
}

#[tokio::test]
async fn a_client_holds_a_lock_as_long_as_it_gives_signs_of_life() {
    let c = connected("LockService", 1).await;
    let request = |kind: pb::LockType, nonce| pb::LockRequest {
        lock_type: kind as i32,
        table_name: Some(to_proto::table_name(&table_name("t"))),
        description: Some("a backup".into()),
        nonce_group: Some(1),
        nonce: Some(nonce),
        ..Default::default()
    };
    let first: pb::LockResponse =
        c.call(Method::LockRequestLock, &request(pb::LockType::Exclusive, 1)).await.expect("asked for");
    let same: pb::LockResponse =
        c.call(Method::LockRequestLock, &request(pb::LockType::Exclusive, 1)).await.expect("the same");
    assert_eq!(first.proc_id, same.proc_id);
    let second: pb::LockResponse =
        c.call(Method::LockRequestLock, &request(pb::LockType::Exclusive, 2)).await.expect("asked for");
    let beat = |proc_id, keep| pb::LockHeartbeatRequest { proc_id, keep_alive: Some(keep) };
    let status = async |proc_id, keep| {
        let response: pb::LockHeartbeatResponse =
            c.call(Method::LockLockHeartbeat, &beat(proc_id, keep)).await.expect("answered");
        (response.lock_status(), response.timeout_ms)
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(status(first.proc_id, true).await, (LockStatus::Locked, Some(30_000)));
    assert_eq!(status(second.proc_id, true).await, (LockStatus::Unlocked, None), "somebody else has it");
    assert_eq!(status(first.proc_id, false).await, (LockStatus::Unlocked, None));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(status(second.proc_id, true).await, (LockStatus::Locked, Some(30_000)), "its turn");
    let empty = pb::LockRequest { description: Some(String::new()), ..request(pb::LockType::Shared, 3) };
    let (class, text) = c.refused(Method::LockRequestLock, &empty).await;
    assert_eq!(class, "org.apache.hadoop.hbase.DoNotRetryIOException");
    assert!(text.contains("Empty description"), "{text}");
    let nothing = pb::LockRequest { table_name: None, ..request(pb::LockType::Shared, 4) };
    let (_, text) = c.refused(Method::LockRequestLock, &nothing).await;
    assert!(text.contains("one of table/namespace/region should be specified"), "{text}");
}

#[tokio::test]
async fn a_region_is_moved_and_a_server_is_taken_out_of_use() {
    let c = connected("MasterService", 2).await;
    let info = c.life.regions("t").remove(0);
    let from = location(&c, &info).expect("open");
    let to = c.life.hosts.iter().map(|host| host.server.clone()).find(|name| *name != from).expect("two");
    let request =
        pb::MoveRegionRequest { region: specifier(&info), dest_server_name: Some(to_proto::server_name(&to)) };
    let _moved: pb::MoveRegionResponse = c.call(Method::MasterMoveRegion, &request).await.expect("moved");
    assert_eq!((location(&c, &info), state(&c, &info)), (Some(to.clone()), RegionState::Open));

    let decommission =
        pb::DecommissionRegionServersRequest { server_name: vec![to_proto::server_name(&to)], offload: true };
    let _out: pb::DecommissionRegionServersResponse =
        c.call(Method::MasterDecommissionRegionServers, &decommission).await.expect("out of use");
    let settled = async {
        while c.life.master.unfinished_procedures() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled).await.expect("moves end");
    assert_eq!(c.life.master.cluster().regions_on(&to), 0);
    c.life.create("later", &["f"], &["m"]).await;
    assert_eq!(c.life.master.cluster().regions_on(&to), 0, "and it gets none");
    let list = pb::ListDecommissionedRegionServersRequest {};
    let listed: pb::ListDecommissionedRegionServersResponse =
        c.call(Method::MasterListDecommissionedRegionServers, &list).await.expect("listed");
    assert_eq!(listed.server_name, [to_proto::server_name(&to)]);
    let recommission =
        pb::RecommissionRegionServerRequest { server_name: to_proto::server_name(&to), region: vec![specifier(&info)] };
    let _back: pb::RecommissionRegionServerResponse =
        c.call(Method::MasterRecommissionRegionServer, &recommission).await.expect("back");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(location(&c, &info), Some(to));
}
