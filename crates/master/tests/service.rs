//! The services over real connections: what clients send, and what they get.

use crate::common::{Life, bytes, table, table_name};
use base::{Config, SystemClock};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use fs::FaultKind;
use pb::get_procedure_result_response::State as ResultState;
use proto::methods::Method;
use proto::{Message, pb};
use rpc::client::{Client, ClientError, ClientOptions};
use rpc::{Limits, Server};
use std::sync::Arc;
use std::time::Duration;

pub struct Connected {
    pub life: Life,
    server: Server,
    client: Client,
}

pub async fn connect(life: Life, service: &str) -> Connected {
    let address = "127.0.0.1:0".parse().expect("an address");
    let limits = Limits::from_config(&Config::default());
    let server =
        Server::bind(address, life.master.handler(), Arc::new(SystemClock::new()), limits).expect("a free port");
    let client = Client::connect(server.local_addr(), service, ClientOptions::default()).await.expect("connects");
    Connected { life, server, client }
}

impl Connected {
    /// Another connection, for the calls of another service.
    pub async fn reconnect(&self, service: &str) -> Client {
        Client::connect(self.server.local_addr(), service, ClientOptions::default()).await.expect("connects")
    }

    pub async fn call<R: Message + Default>(&self, method: Method, request: &impl Message) -> Result<R, ClientError> {
        let call = self.client.call(method.info(), request, None);
        tokio::time::timeout(Duration::from_secs(30), call).await.expect("an answer")?.decode()
    }

    pub async fn refused(&self, method: Method, request: &impl Message) -> (String, String) {
        let error = self.call::<pb::IsMasterRunningResponse>(method, request).await.expect_err("refused");
        let ClientError::Remote(exception) = &error else { panic!("{error}") };
        (exception.exception_class_name().to_owned(), exception.stack_trace().to_owned())
    }

    /// Class and message of the failure of a procedure that is accepted first.
    pub async fn failed(&self, method: Method, request: &impl Message) -> (String, String) {
        // The answers of all such methods have the procedure's id in their first field.
        let accepted: pb::AddReplicationPeerResponse = self.call(method, request).await.expect("accepted");
        let exception = self.wait(accepted.proc_id).await.exception.and_then(|found| found.generic_exception);
        let exception = exception.expect("it failed");
        (exception.class_name.unwrap_or_default(), exception.message.unwrap_or_default())
    }

    /// Polls as a client does.
    async fn wait(&self, proc_id: Option<u64>) -> pb::GetProcedureResultResponse {
        let request = pb::GetProcedureResultRequest { proc_id: proc_id.expect("an id") };
        loop {
            let result: pb::GetProcedureResultResponse =
                self.call(Method::MasterGetProcedureResult, &request).await.expect("polled");
            if result.state() != ResultState::Running {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_client_truncates_a_region() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    c.life.create("t", &["f"], &["m"]).await;
    c.life.fill("t");
    let request = |info: &model::RegionInfo| pb::TruncateRegionRequest {
        region_info: to_proto::region_info(info),
        nonce_group: Some(1),
        nonce: Some(2),
    };
    let request = request(&c.life.regions("t")[1]);
    let accepted: pb::TruncateRegionResponse = c.call(Method::MasterTruncateRegion, &request).await.expect("accepted");
    let again: pb::TruncateRegionResponse = c.call(Method::MasterTruncateRegion, &request).await.expect("the same");
    assert_eq!(accepted.proc_id, again.proc_id);
    let result = c.wait(accepted.proc_id).await;
    assert_eq!((result.state(), &result.exception), (ResultState::Finished, &None));
    assert_eq!(c.life.files_below("archive/data/default/t").len(), 1);
    c.life.disable("t").await;
    let later = pb::TruncateRegionRequest { nonce: Some(3), ..request };
    let (class, _) = c.refused(Method::MasterTruncateRegion, &later).await;
    assert_eq!(class, "org.apache.hadoop.hbase.TableNotEnabledException");
}

#[tokio::test]
async fn a_client_makes_and_drops_a_table() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    let running: pb::IsMasterRunningResponse =
        c.call(Method::MasterIsMasterRunning, &pb::IsMasterRunningRequest {}).await.expect("answered");
    assert!(running.is_master_running);
    let create = pb::CreateTableRequest {
        table_schema: to_proto::table(&table("s1", &["f"])),
        split_keys: vec![bytes("m")],
        nonce_group: Some(1),
        nonce: Some(2),
    };
    let created: pb::CreateTableResponse = c.call(Method::MasterCreateTable, &create).await.expect("accepted");
    let again: pb::CreateTableResponse = c.call(Method::MasterCreateTable, &create).await.expect("the same");
    assert_eq!(created.proc_id, again.proc_id);
    let result = c.wait(created.proc_id).await;
    assert_eq!((result.state(), &result.exception), (ResultState::Finished, &None));
    assert!(result.submitted_time.is_some());

    let list = pb::GetTableDescriptorsRequest::default();
    let tables: pb::GetTableDescriptorsResponse =
        c.call(Method::MasterGetTableDescriptors, &list).await.expect("listed");
    assert_eq!(tables.table_schema.len(), 1);
    assert_eq!(from_proto::table(&tables.table_schema[0]).expect("legal").name, table_name("s1"));
    let tracker = tables.table_schema[0].attributes.iter().find(|pair| pair.first == "hbase.store.file-tracker.impl");
    assert_eq!(tracker.expect("as HBase 2.6").second, "DEFAULT");
    for (regex, namespace, system, expected) in [
        (None, None, true, vec!["hbase:meta", "hbase:namespace", "s1"]),
        (Some("s.*"), None, false, vec!["s1"]),
        (Some("default:s\\d"), None, false, vec!["s1"]),
        (Some("s"), None, false, vec![]),
        (None, Some("hbase"), true, vec!["hbase:meta", "hbase:namespace"]),
        (None, Some("default"), false, vec!["s1"]),
    ] {
        let request = pb::GetTableNamesRequest {
            regex: regex.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            include_sys_tables: Some(system),
        };
        let names: pb::GetTableNamesResponse = c.call(Method::MasterGetTableNames, &request).await.expect("listed");
        let names: Vec<String> =
            names.table_names.iter().map(|name| from_proto::table_name(name).expect("legal").to_string()).collect();
        assert_eq!(names, expected, "{regex:?} {namespace:?}");
    }
    let name = to_proto::table_name(&table_name("s1"));
    let state: pb::GetTableStateResponse = c
        .call(Method::MasterGetTableState, &pb::GetTableStateRequest { table_name: name.clone() })
        .await
        .expect("answered");
    assert_eq!(state.table_state.state(), pb::table_state::State::Enabled);

    let drop = pb::DeleteTableRequest { table_name: name.clone(), ..Default::default() };
    let (class, text) = c.refused(Method::MasterDeleteTable, &drop).await;
    assert_eq!(class, "org.apache.hadoop.hbase.TableNotDisabledException");
    assert!(
        text.starts_with(
            "org.apache.hadoop.hbase.TableNotDisabledException: Not DISABLED; tableName=s1, state=ENABLED"
        ),
        "{text}"
    );
    let disable = pb::DisableTableRequest { table_name: name, ..Default::default() };
    let disabled: pb::DisableTableResponse = c.call(Method::MasterDisableTable, &disable).await.expect("accepted");
    c.wait(disabled.proc_id).await;
    let deleted: pb::DeleteTableResponse = c.call(Method::MasterDeleteTable, &drop).await.expect("accepted");
    assert_eq!(c.wait(deleted.proc_id).await.state(), ResultState::Finished);
    assert_eq!(c.wait(Some(4711)).await.state(), ResultState::NotFound);
    c.life.check();
}

#[tokio::test]
async fn the_status_has_what_the_shell_reads() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let c = connect(life, "MasterService").await;
    let status: pb::GetClusterStatusResponse =
        c.call(Method::MasterGetClusterStatus, &pb::GetClusterStatusRequest::default()).await.expect("answered");
    let status = status.cluster_status;
    assert_eq!(status.hbase_version.expect("a version").version, "2.6.4");
    assert_eq!(status.cluster_id.expect("an id").cluster_id.len(), 36);
    assert_eq!(status.master.expect("a master").port, Some(16000));
    let server = &status.live_servers[0];
    assert_eq!((server.server.port, server.server_load.region_loads.len()), (Some(16020), 4));
    assert_eq!(server.server_load.total_number_of_requests, Some(48));
    let load = &server.server_load.region_loads[0];
    assert_eq!((load.storefile_size_mb, load.region_size_mb, load.mem_store_size_mb), (Some(3), Some(2), Some(1)));
    let cached = &server.server_load.region_cached_info;
    assert_eq!((load.current_region_cached_ratio, cached.len()), (Some(0.5), 4));
    assert!(cached.iter().all(|(name, mib)| (name.len() == 32 || name == "1588230740") && *mib == 1), "{cached:?}");
    assert_eq!((load.store_ref_count, load.max_compacted_store_file_ref_count), (Some(4), Some(2)));
    assert_eq!(server.server_load.coprocessors, [pb::Coprocessor { name: "MultiRowMutationEndpoint".into() }]);
    assert!(status.unknown_servers.is_empty());
    let counts = &status.table_region_states_count;
    let of_t = counts.iter().find(|count| count.table_name.qualifier == "t").expect("counted");
    assert_eq!((of_t.region_states_count.open_regions, of_t.region_states_count.total_regions), (2, 2));
    assert_eq!((status.balancer_on, status.master_info_port), (Some(true), Some(16010)));
    assert!(status.regions_in_transition.is_empty());
    // Only what is asked for.
    let options = vec![pb::Option::Master as i32];
    let status: pb::GetClusterStatusResponse =
        c.call(Method::MasterGetClusterStatus, &pb::GetClusterStatusRequest { options }).await.expect("answered");
    assert!(status.cluster_status.live_servers.is_empty() && status.cluster_status.master.is_some());
}

#[tokio::test]
async fn switches_outlive_a_restart_and_what_cannot_be_kept_is_not_set() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    let switch = |on: bool| pb::SetSplitOrMergeEnabledRequest { enabled: on, synchronous: None, switch_types: vec![0] };
    let asked = pb::IsSplitOrMergeEnabledRequest { switch_type: 0 };
    let set: Result<pb::SetSplitOrMergeEnabledResponse, _> =
        c.call(Method::MasterSetSplitOrMergeEnabled, &switch(false)).await;
    set.expect("set");
    let off = pb::SetCleanerChoreRunningRequest { on: false };
    let _was: pb::SetCleanerChoreRunningResponse =
        c.call(Method::MasterSetCleanerChoreRunning, &off).await.expect("set");

    let c = connect(c.life.restart().await, "MasterService").await;
    let enabled: pb::IsSplitOrMergeEnabledResponse =
        c.call(Method::MasterIsSplitOrMergeEnabled, &asked).await.expect("asked");
    assert!(!enabled.enabled, "splits stay off");
    let cleaner: pb::IsCleanerChoreEnabledResponse =
        c.call(Method::MasterIsCleanerChoreEnabled, &pb::IsCleanerChoreEnabledRequest::default()).await.expect("asked");
    assert!(cleaner.value, "as in HBase, for one life only");

    c.life.memory.fail_op(1, FaultKind::Full);
    let (class, text) = c.refused(Method::MasterSetSplitOrMergeEnabled, &switch(true)).await;
    assert_eq!(class, "java.io.IOException");
    assert!(text.contains("nothing is switched"), "{text}");
    let enabled: pb::IsSplitOrMergeEnabledResponse =
        c.call(Method::MasterIsSplitOrMergeEnabled, &asked).await.expect("asked");
    assert!(!enabled.enabled, "it is as it was");
}

#[tokio::test]
async fn switches_are_kept_and_answered() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    let off = pb::SetBalancerRunningRequest { on: false, synchronous: None };
    for expected in [true, false] {
        let was: pb::SetBalancerRunningResponse = c.call(Method::MasterSetBalancerRunning, &off).await.expect("set");
        assert_eq!(was.prev_balance_value, Some(expected));
    }
    let balance: pb::BalanceResponse =
        c.call(Method::MasterBalance, &pb::BalanceRequest::default()).await.expect("asked");
    assert!(!balance.balancer_ran);
    let request = pb::SetSplitOrMergeEnabledRequest { enabled: false, synchronous: None, switch_types: vec![0, 1] };
    let was: pb::SetSplitOrMergeEnabledResponse =
        c.call(Method::MasterSetSplitOrMergeEnabled, &request).await.expect("set");
    assert_eq!(was.prev_value, [true, true]);
    let asked = pb::IsSplitOrMergeEnabledRequest { switch_type: 0 };
    let enabled: pb::IsSplitOrMergeEnabledResponse =
        c.call(Method::MasterIsSplitOrMergeEnabled, &asked).await.expect("asked");
    assert!(!enabled.enabled);
    c.life.create("t", &["f"], &[]).await;
    let region = c.life.regions("t").remove(0);
    let request = pb::SplitTableRegionRequest {
        region_info: to_proto::region_info(&region),
        split_row: Some(bytes("m")),
        ..Default::default()
    };
    let (class, text) = c.refused(Method::MasterSplitRegion, &request).await;
    assert_eq!(class, "org.apache.hadoop.hbase.DoNotRetryIOException");
    assert!(text.contains("failed due to split switch off"), "{text}");
    let off = pb::SetCleanerChoreRunningRequest { on: false };
    let was: pb::SetCleanerChoreRunningResponse =
        c.call(Method::MasterSetCleanerChoreRunning, &off).await.expect("set");
    assert_eq!(was.prev_value, Some(true));
    let asked = pb::IsCleanerChoreEnabledRequest::default();
    let enabled: pb::IsCleanerChoreEnabledResponse =
        c.call(Method::MasterIsCleanerChoreEnabled, &asked).await.expect("asked");
    assert!(!enabled.value);
    // By hand it runs all the same.
    let run = pb::RunCleanerChoreRequest::default();
    let ran: pb::RunCleanerChoreResponse = c.call(Method::MasterRunCleanerChore, &run).await.expect("ran");
    assert!(ran.cleaner_chore_ran);
    let scan: pb::RunCatalogScanResponse =
        c.call(Method::MasterRunCatalogScan, &pb::RunCatalogScanRequest::default()).await.expect("ran");
    assert_eq!(scan.scan_result, Some(0));
    let _stopped: pb::ShutdownResponse =
        c.call(Method::MasterShutdown, &pb::ShutdownRequest::default()).await.expect("asked");
    assert_eq!(*c.life.notes.stops.lock(), [true]);
}

#[tokio::test]
async fn regions_by_hand_and_the_old_flush() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let region = life.regions("t").remove(0);
    let c = connect(life, "MasterService").await;
    let specifier = pb::RegionSpecifier { r#type: 1, value: region.name().clone() };
    let close = pb::UnassignRegionRequest { region: specifier.clone(), force: None };
    let _closed: pb::UnassignRegionResponse = c.call(Method::MasterUnassignRegion, &close).await.expect("closed");
    assert!(!c.life.host.open.lock().contains_key(&**region.encoded_name()));
    let open = pb::AssignRegionRequest { region: specifier, r#override: None };
    let _opened: pb::AssignRegionResponse = c.call(Method::MasterAssignRegion, &open).await.expect("opened");
    c.life.check();
    let by_encoded_name = pb::RegionSpecifier { r#type: 2, value: bytes(region.encoded_name()) };
    let move_it = pb::MoveRegionRequest { region: by_encoded_name, dest_server_name: None };
    let _moved: pb::MoveRegionResponse = c.call(Method::MasterMoveRegion, &move_it).await.expect("moved");
    let unknown = pb::MoveRegionRequest {
        region: pb::RegionSpecifier { r#type: 2, value: bytes("0123") },
        dest_server_name: None,
    };
    assert_eq!(c.refused(Method::MasterMoveRegion, &unknown).await.0, "org.apache.hadoop.hbase.UnknownRegionException");

    let procedure = pb::ProcedureDescription {
        signature: "flush-table-proc".into(),
        instance: Some("t".into()),
        ..Default::default()
    };
    let request = pb::ExecProcedureRequest { procedure: procedure.clone() };
    let started: pb::ExecProcedureResponse = c.call(Method::MasterExecProcedure, &request).await.expect("started");
    assert_eq!(started.expected_timeout, Some(300_000));
    let poll = pb::IsProcedureDoneRequest { procedure: Some(procedure) };
    while c.call::<pb::IsProcedureDoneResponse>(Method::MasterIsProcedureDone, &poll).await.expect("polled").done
        != Some(true)
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(c.life.host.flushed.lock().len(), 2);
    let strange = pb::ProcedureDescription { signature: "make-tea".into(), ..Default::default() };
    let (class, text) = c.refused(Method::MasterExecProcedure, &pb::ExecProcedureRequest { procedure: strange }).await;
    assert_eq!(class, "org.apache.hadoop.hbase.DoNotRetryIOException");
    assert!(text.contains("The procedure is not registered: make-tea"), "{text}");
    // HBase's backup tool begins with this one.
    let backup = pb::ProcedureDescription { signature: "rolllog-proc".into(), ..Default::default() };
    let (_, text) = c.refused(Method::MasterExecProcedure, &pb::ExecProcedureRequest { procedure: backup }).await;
    assert!(text.contains("not registered: rolllog-proc") && text.contains("use basalt backup"), "{text}");
}

/// As clients of HBase 2.6 do, and as those before them that asked by the snapshot's name.
#[tokio::test]
async fn clients_old_and_new_take_snapshots() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    c.life.create("t", &["f"], &[]).await;
    c.life.fill("t");
    let named =
        |name: &str| pb::SnapshotDescription { name: name.into(), table: Some("t".into()), ..Default::default() };
    let request = pb::SnapshotRequest { snapshot: named("new"), nonce_group: Some(1), nonce: Some(2) };
    let taken: pb::SnapshotResponse = c.call(Method::MasterSnapshot, &request).await.expect("accepted");
    assert_eq!(taken.expected_timeout, 300_000);
    let id = u64::try_from(taken.proc_id.expect("an id")).expect("small");
    assert_eq!(c.wait(Some(id)).await.exception, None);

    let request = pb::SnapshotRequest { snapshot: named("old"), ..Default::default() };
    let taken: pb::SnapshotResponse = c.call(Method::MasterSnapshot, &request).await.expect("accepted");
    assert_eq!(taken.proc_id, None);
    let poll = pb::IsSnapshotDoneRequest { snapshot: Some(named("old")) };
    while c.call::<pb::IsSnapshotDoneResponse>(Method::MasterIsSnapshotDone, &poll).await.expect("polled").done
        != Some(true)
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    let procedure = pb::ProcedureDescription {
        signature: "online-snapshot".into(),
        instance: Some("older".into()),
        configuration: vec![pb::NameStringPair { name: "table".into(), value: "t".into() }],
        ..Default::default()
    };
    let request = pb::ExecProcedureRequest { procedure: procedure.clone() };
    let _: pb::ExecProcedureResponse = c.call(Method::MasterExecProcedure, &request).await.expect("started");
    let poll = pb::IsProcedureDoneRequest { procedure: Some(procedure) };
    while c.call::<pb::IsProcedureDoneResponse>(Method::MasterIsProcedureDone, &poll).await.expect("polled").done
        != Some(true)
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let listed: pb::GetCompletedSnapshotsResponse =
        c.call(Method::MasterGetCompletedSnapshots, &pb::GetCompletedSnapshotsRequest {}).await.expect("listed");
    let names: Vec<&str> = listed.snapshots.iter().map(|snapshot| &*snapshot.name).collect();
    assert_eq!(names, ["new", "old", "older"]);
    assert!(listed.snapshots.iter().all(|snapshot| snapshot.version() == 2 && snapshot.creation_time() > 0));

    let poll = pb::IsSnapshotDoneRequest { snapshot: Some(named("never")) };
    let (class, text) = c.refused(Method::MasterIsSnapshotDone, &poll).await;
    assert_eq!(class, "org.apache.hadoop.hbase.snapshot.UnknownSnapshotException");
    assert!(text.contains("Snapshot { ss=never table=t type=FLUSH ttl=0 } is not currently running"), "{text}");
    let request = pb::DeleteSnapshotRequest { snapshot: named("never") };
    let (class, text) = c.refused(Method::MasterDeleteSnapshot, &request).await;
    assert_eq!(class, "org.apache.hadoop.hbase.snapshot.SnapshotDoesNotExistException");
    assert!(text.contains("Snapshot 'never' doesn't exist on the filesystem"), "{text}");
    for name in names {
        let request = pb::DeleteSnapshotRequest { snapshot: named(name) };
        let _: pb::DeleteSnapshotResponse = c.call(Method::MasterDeleteSnapshot, &request).await.expect("deleted");
    }
}

#[tokio::test]
async fn what_is_not_there_says_so_and_garbage_harms_nobody() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    for method in [Method::MasterGrant, Method::MasterRevoke] {
        let (class, text) = c.refused(method, &pb::IsMasterRunningRequest {}).await;
        assert_eq!(class, "org.apache.hadoop.hbase.DoNotRetryIOException");
        assert!(text.contains("AccessController is not loaded"), "{text}");
    }
    // Every method of the service under empty and garbage requests: an answer or an exception, never silence.
    for method in proto::methods::Service::Master.methods() {
        if matches!(method.method, Method::MasterShutdown | Method::MasterStopMaster) {
            continue;
        }
        for garbage in [&b""[..], b"\xff\xff\xff\xff", b"\x0a\x05ab", b"\x08\x96\x01"] {
            let call = c.client.call_raw(method.name, garbage, None);
            let answer = tokio::time::timeout(Duration::from_secs(30), call).await.expect("an answer");
            assert!(matches!(answer, Ok(_) | Err(ClientError::Remote(_))), "{}", method.name);
        }
    }
    c.life.check();
    let illegal = pb::CreateTableRequest {
        table_schema: pb::TableSchema {
            table_name: Some(pb::TableName { namespace: bytes("default"), qualifier: bytes("a b") }),
            ..to_proto::table(&table("x", &["f"]))
        },
        ..Default::default()
    };
    let (class, text) = c.refused(Method::MasterCreateTable, &illegal).await;
    assert_eq!(class, "org.apache.hadoop.hbase.DoNotRetryIOException");
    assert!(text.contains("User-space table qualifiers may only contain"), "{text}");
    let family = pb::AddColumnRequest {
        table_name: to_proto::table_name(&table_name("x")),
        column_families: pb::ColumnFamilySchema { name: bytes("a:b"), ..Default::default() },
        ..Default::default()
    };
    assert!(c.refused(Method::MasterAddColumn, &family).await.1.contains("Illegal character"));
    let bomb = pb::GetTableNamesRequest { regex: Some("(".into()), ..Default::default() };
    assert!(c.refused(Method::MasterGetTableNames, &bomb).await.1.contains("cannot be used"));
}

/// HBase's `TableDescriptorBuilder` refuses it; here the last of them won.
#[tokio::test]
async fn a_family_given_twice_is_refused() {
    let c = connect(crate::common::fresh().await, "MasterService").await;
    let mut twice = to_proto::table(&table("twice", &["f"]));
    twice.column_families.push(twice.column_families[0].clone());
    let sentence = "Family 'f' already exists so cannot be added";
    let create = pb::CreateTableRequest { table_schema: twice.clone(), ..Default::default() };
    assert!(c.refused(Method::MasterCreateTable, &create).await.1.contains(sentence));
    c.life.create("twice", &["f"], &[]).await;
    let name = to_proto::table_name(&table_name("twice"));
    let modify = pb::ModifyTableRequest { table_name: name, table_schema: twice, ..Default::default() };
    assert!(c.refused(Method::MasterModifyTable, &modify).await.1.contains(sentence));
}

#[tokio::test]
async fn the_registry_answers() {
    let c = connect(crate::common::fresh().await, "ClientMetaService").await;
    let id: pb::GetClusterIdResponse =
        c.call(Method::ClientMetaGetClusterId, &pb::GetClusterIdRequest {}).await.expect("answered");
    assert_eq!(id.cluster_id.as_deref(), Some(c.life.master.cluster_id()));
    let masters: pb::GetMastersResponse =
        c.call(Method::ClientMetaGetMasters, &pb::GetMastersRequest {}).await.expect("answered");
    assert!(masters.master_servers.len() == 1 && masters.master_servers[0].is_active);
    let active: pb::GetActiveMasterResponse =
        c.call(Method::ClientMetaGetActiveMaster, &pb::GetActiveMasterRequest {}).await.expect("answered");
    assert_eq!(active.server_name.expect("one").port, Some(16000));
    let meta: pb::GetMetaRegionLocationsResponse = c
        .call(Method::ClientMetaGetMetaRegionLocations, &pb::GetMetaRegionLocationsRequest {})
        .await
        .expect("answered");
    assert_eq!(meta.meta_locations[0].server_name.as_ref().expect("one").port, Some(16020));
    assert_eq!(meta.meta_locations[0].region_info.table_name.qualifier, Bytes::from("meta"));
    let nodes: pb::GetBootstrapNodesResponse =
        c.call(Method::ClientMetaGetBootstrapNodes, &pb::GetBootstrapNodesRequest {}).await.expect("answered");
    assert_eq!(nodes.server_name.len(), 1);
}
