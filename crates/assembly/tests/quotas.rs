//! Quotas from the request that sets them to the call that they hold up: master, hbase:quota and region server of a node.

use crate::common::{Threads, parts};
use basalt_assembly::{Node, Parts};
use base::Config;
use bytes::Bytes;
use fs::MemVolume;
use model::{FamilyDescriptor, RegionInfo, Scan, TableDescriptor, TableName};
use proto::methods::{Method, Service};
use proto::{Message, pb};
use regionserver::RegionService;
use rpc::{Call, CallResult, ConnInfo, Handler};
use std::sync::{Arc, OnceLock};

/// What Apache HBase 2.6.4 has in hbase:quota after the requests of `tests/interop`'s `QuotaGolden`.
const GOLDEN: &str = include_str!("../../../tests/golden/quota/quota-table.txt");

/// A node with quotas.
pub struct Place {
    pub node: Node<Threads>,
    region: Arc<OnceLock<RegionService>>,
}

impl Place {
    pub async fn start(volume: &Arc<MemVolume>, start_code: u64, settings: &[(&str, &str)]) -> Place {
        let mut config = Config::default();
        settings.iter().for_each(|(key, value)| config.set(*key, *value));
        let region = Arc::new(OnceLock::new());
        let kept = region.clone();
        let on_region_server = Box::new(move |_, service| drop(kept.set(service)));
        let parts = Parts { on_region_server, config, ..parts(volume, start_code) };
        Place { node: Node::start(parts).await.expect("starts"), region }
    }

    pub async fn stop(self) {
        let node = self.node;
        let stopped = tokio::task::spawn_blocking(move || node.stop(None).expect("stops"));
        stopped.await.expect("no panic");
    }

    pub async fn call(&self, user: &str, method: Method, message: &impl Message) -> CallResult {
        let info = method.info();
        let conn = ConnInfo {
            id: 1,
            peer: ([127, 0, 0, 1], 1).into(),
            user: Arc::from(user),
            service: info.service,
            codec: None,
            compressor: None,
            version: None,
            attributes: Vec::new(),
            load: std::sync::OnceLock::new(),
        };
        let (call, direct) = Call::direct(Arc::new(conn), info, Bytes::from(message.encode_to_vec()), 0);
        let outcome = match info.service {
            Service::Master | Service::RegionServerStatus => self.node.master().handler().call(call),
            _ => self.region.get().expect("there is a region server").call(call),
        };
        direct.answer(outcome).await
    }

    pub async fn admin<M: Message + Default>(&self, method: Method, message: &impl Message) -> Result<M, String> {
        let reply = self.call("admin", method, message).await.map_err(|error| error.to_string())?;
        Ok(M::decode(reply.message).expect("the message of the method"))
    }

    pub async fn set(&self, request: pb::SetQuotaRequest) -> Result<(), String> {
        self.admin(Method::MasterSetQuota, &request).await.map(|_: pb::SetQuotaResponse| ())
    }

    pub async fn create_table(&self, name: &str) -> RegionInfo {
        let table = TableName::parse(name).expect("legal");
        if table.namespace() != "default" {
            let namespace = convert::to_proto::namespace(table.namespace(), &Default::default());
            let request = pb::CreateNamespaceRequest { namespace_descriptor: namespace, ..Default::default() };
            let response: pb::CreateNamespaceResponse =
                self.admin(Method::MasterCreateNamespace, &request).await.expect("a namespace");
            self.finish(response.proc_id()).await;
        }
        let descriptor = TableDescriptor::new(table.clone(), [FamilyDescriptor::new("f")]);
        let table_schema = convert::to_proto::table(&descriptor);
        let request = pb::CreateTableRequest { table_schema, ..Default::default() };
        let response: pb::CreateTableResponse = self.admin(Method::MasterCreateTable, &request).await.expect("a table");
        self.finish(response.proc_id()).await;
        self.regions(&table).remove(0)
    }

    pub fn regions(&self, table: &TableName) -> Vec<RegionInfo> {
        self.node.master().cluster().regions_of(table).map(|node| node.info.clone()).collect()
    }

    pub async fn finish(&self, proc_id: u64) {
        let request = pb::GetProcedureResultRequest { proc_id };
        loop {
            let result: pb::GetProcedureResultResponse =
                self.admin(Method::MasterGetProcedureResult, &request).await.expect("it is known");
            if result.state() != pb::get_procedure_result_response::State::Running {
                assert_eq!(result.state(), pb::get_procedure_result_response::State::Finished, "procedure {proc_id}");
                assert_eq!(result.exception, None);
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    pub async fn drop_table(&self, name: &str) {
        let table_name = convert::to_proto::table_name(&TableName::parse(name).expect("legal"));
        let request = pb::DisableTableRequest { table_name: table_name.clone(), ..Default::default() };
        let response: pb::DisableTableResponse =
            self.admin(Method::MasterDisableTable, &request).await.expect("disabled");
        self.finish(response.proc_id()).await;
        let request = pb::DeleteTableRequest { table_name, ..Default::default() };
        let response: pb::DeleteTableResponse = self.admin(Method::MasterDeleteTable, &request).await.expect("gone");
        self.finish(response.proc_id()).await;
    }

    pub async fn get(&self, user: &str, region: &RegionInfo) -> CallResult {
        let get = pb::Get { row: Bytes::from("row"), ..pb::Get::default() };
        self.call(user, Method::ClientGet, &pb::GetRequest { region: specifier(region), get }).await
    }

    pub async fn put(&self, user: &str, region: &RegionInfo) -> CallResult {
        self.call(user, Method::ClientMutate, &put(region)).await
    }

    async fn scan(&self, user: &str, region: &RegionInfo) -> CallResult {
        let request = pb::ScanRequest {
            region: Some(specifier(region)),
            scan: Some(pb::Scan::default()),
            number_of_rows: Some(10),
            close_scanner: Some(true),
            ..pb::ScanRequest::default()
        };
        self.call(user, Method::ClientScan, &request).await
    }

    /// The cells of hbase:quota as `QuotaGolden` prints them.
    pub fn quota_table(&self) -> String {
        let mut lines = String::new();
        for region in self.regions(&TableName::quota_table()) {
            let cells = self.node.server().scan(region.encoded_name(), &Scan::default()).expect("it is open");
            for cell in cells.iter_from(0) {
                let text = cell::print::to_string_binary;
                let value: String = cell.value().iter().map(|byte| format!("{byte:02x}")).collect();
                lines += &format!("{} {}:{} {value}\n", text(cell.row()), text(cell.family()), text(cell.qualifier()));
            }
        }
        lines
    }
}

pub const ON: (&str, &str) = ("hbase.quota.enabled", "true");

pub fn specifier(region: &RegionInfo) -> pb::RegionSpecifier {
    pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
        value: region.name().clone(),
    }
}

pub fn put(region: &RegionInfo) -> pb::MutateRequest {
    use pb::mutation_proto::{ColumnValue, MutationType, column_value::QualifierValue};
    let value = QualifierValue {
        qualifier: Some(Bytes::from("q")),
        value: Some(Bytes::from("v")),
        ..QualifierValue::default()
    };
    let mutation = pb::MutationProto {
        row: Some(Bytes::from("row")),
        mutate_type: Some(MutationType::Put as i32),
        column_value: vec![ColumnValue { family: Bytes::from("f"), qualifier_value: vec![value] }],
        ..pb::MutationProto::default()
    };
    pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() }
}

fn timed(limit: u64, unit: pb::TimeUnit, scope: pb::QuotaScope) -> pb::TimedQuota {
    pb::TimedQuota { time_unit: unit as i32, soft_limit: Some(limit), share: None, scope: Some(scope as i32) }
}

fn throttle(of_type: pb::ThrottleType, quota: pb::TimedQuota) -> pb::SetQuotaRequest {
    let throttle = pb::ThrottleRequest { r#type: Some(of_type as i32), timed_quota: Some(quota) };
    pb::SetQuotaRequest { throttle: Some(throttle), ..pb::SetQuotaRequest::default() }
}

fn hourly(of_type: pb::ThrottleType, limit: u64) -> pb::SetQuotaRequest {
    throttle(of_type, timed(limit, pb::TimeUnit::Hours, pb::QuotaScope::Machine))
}

pub fn of_table(name: &str, request: pb::SetQuotaRequest) -> pb::SetQuotaRequest {
    let table = TableName::parse(name).expect("legal");
    pb::SetQuotaRequest { table_name: Some(convert::to_proto::table_name(&table)), ..request }
}

fn of_user(name: &str, request: pb::SetQuotaRequest) -> pb::SetQuotaRequest {
    pb::SetQuotaRequest { user_name: Some(name.to_owned()), ..request }
}

pub fn of_namespace(name: &str, request: pb::SetQuotaRequest) -> pb::SetQuotaRequest {
    pb::SetQuotaRequest { namespace: Some(name.to_owned()), ..request }
}

fn of_servers(request: pb::SetQuotaRequest) -> pb::SetQuotaRequest {
    pb::SetQuotaRequest { region_server: Some("all".to_owned()), ..request }
}

fn bypass(on: bool) -> pb::SetQuotaRequest {
    pb::SetQuotaRequest { bypass_globals: Some(on), ..pb::SetQuotaRequest::default() }
}

pub fn space(limit: u64, policy: pb::SpaceViolationPolicy) -> pb::SetQuotaRequest {
    let quota = pb::SpaceQuota { soft_limit: Some(limit), violation_policy: Some(policy as i32), remove: None };
    pb::SetQuotaRequest {
        space_limit: Some(pb::SpaceLimitRequest { quota: Some(quota) }),
        ..pb::SetQuotaRequest::default()
    }
}

fn throttled(result: CallResult) -> String {
    let exception = result.expect_err("the limit is met");
    assert_eq!(exception.class(), "org.apache.hadoop.hbase.quotas.RpcThrottlingException");
    exception.message().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hbase_quota_has_the_cells_that_hbase_writes() {
    use pb::{QuotaScope::Cluster, QuotaScope::Machine, ThrottleType as Type, TimeUnit as Unit};
    let volume = Arc::new(MemVolume::new());
    let place = Place::start(&volume, 1, &[ON]).await;
    place.create_table("qns:t").await;
    // In the order of the Java enum, which is not that of the numbers.
    let types = [
        Type::RequestNumber,
        Type::RequestSize,
        Type::WriteNumber,
        Type::WriteSize,
        Type::ReadNumber,
        Type::ReadSize,
        Type::RequestCapacityUnit,
        Type::WriteCapacityUnit,
        Type::ReadCapacityUnit,
        Type::AtomicReadSize,
        Type::AtomicRequestNumber,
        Type::AtomicWriteSize,
        Type::RequestHandlerUsageMs,
    ];
    let mut requests: Vec<_> = types
        .into_iter()
        .zip(2..)
        .map(|(of_type, limit)| of_user("bob", throttle(of_type, timed(limit, Unit::Seconds, Machine))))
        .collect();
    requests.extend([
        of_user("bob", of_table("qns:t", throttle(Type::ReadSize, timed(1024, Unit::Minutes, Machine)))),
        of_user("bob", of_namespace("qns", throttle(Type::WriteSize, timed(1 << 20, Unit::Hours, Machine)))),
        of_table("qns:t", throttle(Type::RequestNumber, timed(100, Unit::Days, Cluster))),
        of_namespace("qns", throttle(Type::RequestNumber, timed(7, Unit::Milliseconds, Machine))),
        of_servers(throttle(Type::RequestNumber, timed(100_000, Unit::Seconds, Machine))),
        of_user("root", bypass(true)),
        of_user("eve", bypass(false)),
        of_table("qns:t", space(1 << 30, pb::SpaceViolationPolicy::NoInserts)),
        of_namespace("qns", space(5 << 30, pb::SpaceViolationPolicy::Disable)),
    ]);
    for request in requests {
        place.set(request).await.expect("set");
    }
    let on = pb::SwitchExceedThrottleQuotaRequest { exceed_throttle_quota_enabled: true };
    let was: pb::SwitchExceedThrottleQuotaResponse =
        place.admin(Method::MasterSwitchExceedThrottleQuota, &on).await.expect("switched");
    assert!(!was.previous_exceed_throttle_quota_enabled);
    assert_eq!(place.quota_table(), GOLDEN);
    place.stop().await;
    // They are there, and count, after a restart.
    let place = Place::start(&volume, 2, &[ON]).await;
    assert_eq!(place.quota_table(), GOLDEN);
    let was: pb::SwitchExceedThrottleQuotaResponse =
        place.admin(Method::MasterSwitchExceedThrottleQuota, &on).await.expect("switched");
    assert!(was.previous_exceed_throttle_quota_enabled);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_a_quota_are_told_how_long_to_wait() {
    let volume = Arc::new(MemVolume::new());
    let place = Place::start(&volume, 1, &[ON]).await;
    let region = place.create_table("t").await;
    place.put("bob", &region).await.expect("nothing limits it");
    place.set(of_user("bob", hourly(pb::ThrottleType::ReadNumber, 2))).await.expect("set");
    place.get("bob", &region).await.expect("the first");
    place.scan("bob", &region).await.expect("the second");
    let message = throttled(place.get("bob", &region).await);
    assert!(message.starts_with("number of read requests exceeded - wait "), "{message}");
    assert!(throttled(place.scan("bob", &region).await).starts_with("number of read requests exceeded - wait "));
    place.put("bob", &region).await.expect("writes are not limited");
    place.get("eve", &region).await.expect("others neither");
    assert_eq!(place.node.server().quotas().throttled_calls(), 2);

    place.set(of_table("t", hourly(pb::ThrottleType::WriteNumber, 1))).await.expect("set");
    place.put("eve", &region).await.expect("the first");
    let actions = vec![pb::Action { index: Some(0), mutation: Some(put(&region).mutation), ..Default::default() }];
    let action = pb::RegionAction { region: specifier(&region), action: actions, ..Default::default() };
    let multi = pb::MultiRequest { region_action: vec![action], ..Default::default() };
    let reply = place.call("eve", Method::ClientMulti, &multi).await.expect("the failure is of the region's actions");
    let response = pb::MultiResponse::decode(reply.message).expect("a response");
    let exception = response.region_action_result[0].exception.as_ref().expect("it failed");
    assert_eq!(exception.name, "org.apache.hadoop.hbase.quotas.RpcThrottlingException");

    let off = pb::SwitchRpcThrottleRequest { rpc_throttle_enabled: false };
    let was: pb::SwitchRpcThrottleResponse = place.admin(Method::MasterSwitchRpcThrottle, &off).await.expect("off");
    assert!(was.previous_rpc_throttle_enabled);
    place.get("bob", &region).await.expect("limits do not count now");
    let now: pb::IsRpcThrottleEnabledResponse =
        place.admin(Method::MasterIsRpcThrottleEnabled, &pb::IsRpcThrottleEnabledRequest {}).await.expect("asked");
    assert!(!now.rpc_throttle_enabled);
    place.stop().await;

    let place = Place::start(&volume, 2, &[ON]).await;
    let region = place.regions(&TableName::parse("t").expect("legal")).remove(0);
    for _ in 0..4 {
        place.get("bob", &region).await.expect("the switch outlives a restart");
    }
    let on = pb::SwitchRpcThrottleRequest { rpc_throttle_enabled: true };
    let _: pb::SwitchRpcThrottleResponse = place.admin(Method::MasterSwitchRpcThrottle, &on).await.expect("on");
    place.get("bob", &region).await.expect("the first");
    place.get("bob", &region).await.expect("the second");
    throttled(place.get("bob", &region).await);
    place.set(of_user("bob", pb::SetQuotaRequest { remove_all: Some(true), ..Default::default() })).await.expect("set");
    place.get("bob", &region).await.expect("the quota is gone");
    place.drop_table("t").await;
    assert_eq!(place.quota_table(), "", "a table's quotas go with it");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_quotas_none_can_be_set_and_there_is_no_table_of_them() {
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &[]).await;
    let refused = place.set(of_user("bob", bypass(true))).await.expect_err("there are none");
    assert!(refused.contains("java.lang.UnsupportedOperationException: quota support disabled"), "{refused}");
    let on = pb::SwitchRpcThrottleRequest { rpc_throttle_enabled: true };
    let was: pb::SwitchRpcThrottleResponse = place.admin(Method::MasterSwitchRpcThrottle, &on).await.expect("ignored");
    assert!(!was.previous_rpc_throttle_enabled);
    assert_eq!(place.regions(&TableName::quota_table()), []);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_is_refused_and_changes_nothing() {
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &[ON]).await;
    let none = place.set(of_user("bob", hourly(pb::ThrottleType::ReadNumber, 0))).await.expect_err("refused");
    assert!(none.contains("The throttle limit must be greater then 0, got 0"), "{none}");
    let nobody = place.set(hourly(pb::ThrottleType::ReadNumber, 1)).await.expect_err("refused");
    assert!(nobody.contains("a user, a table, a namespace or region server must be specified"), "{nobody}");
    let on = pb::SwitchExceedThrottleQuotaRequest { exceed_throttle_quota_enabled: true };
    let exceed = place.admin::<pb::SwitchExceedThrottleQuotaResponse>(Method::MasterSwitchExceedThrottleQuota, &on);
    let refused = exceed.await.expect_err("refused");
    assert!(refused.contains("Please set region server quota before enable exceed throttle quota"), "{refused}");
    assert_eq!(place.quota_table(), "");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_hold_no_more_tables_and_regions_than_they_may() {
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &[ON]).await;
    let limits = [("hbase.namespace.quota.maxtables", "2"), ("hbase.namespace.quota.maxregions", "3")];
    let configuration = limits.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let namespace_descriptor = convert::to_proto::namespace("small", &configuration);
    let request = pb::CreateNamespaceRequest { namespace_descriptor, ..Default::default() };
    let response: pb::CreateNamespaceResponse =
        place.admin(Method::MasterCreateNamespace, &request).await.expect("a namespace");
    place.finish(response.proc_id()).await;
    let create = |name: &str, splits: &[&'static str]| {
        let descriptor = TableDescriptor::new(TableName::parse(name).expect("legal"), [FamilyDescriptor::new("f")]);
        let split_keys = splits.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        pb::CreateTableRequest { table_schema: convert::to_proto::table(&descriptor), split_keys, ..Default::default() }
    };
    let refused = async |request: pb::CreateTableRequest| {
        let error = place.call("admin", Method::MasterCreateTable, &request).await.expect_err("too many");
        assert_eq!(error.class(), "org.apache.hadoop.hbase.quotas.QuotaExceededException");
        error.message().to_owned()
    };
    let made = async |request: pb::CreateTableRequest| {
        let response: pb::CreateTableResponse = place.admin(Method::MasterCreateTable, &request).await.expect("made");
        place.finish(response.proc_id()).await;
    };
    assert_eq!(
        refused(create("small:a", &["b", "c", "d"])).await,
        "The table small:a is not allowed to have 4 regions. The total number of regions permitted is only 3, while current \
         region count is 0. This may be transient, please retry later if there are any ongoing split operations in the namespace."
    );
    made(create("small:a", &["b"])).await;
    made(create("small:b", &[])).await;
    assert_eq!(
        refused(create("small:c", &[])).await,
        "The table small:c cannot be created as it would exceed maximum number of tables allowed  in the namespace.  The total \
         number of tables permitted is 2"
    );
    let region = place.regions(&TableName::parse("small:b").expect("legal")).remove(0);
    place.put("bob", &region).await.expect("written");
    let region_info = convert::to_proto::region_info(&region);
    let split = pb::SplitTableRegionRequest { region_info, split_row: Some(Bytes::from("m")), ..Default::default() };
    let error = place.call("admin", Method::MasterSplitRegion, &split).await.expect_err("too many");
    assert_eq!(error.class(), "org.apache.hadoop.hbase.quotas.QuotaExceededException");
    let sentence = format!("Region split not possible for :{} as quota limits are exceeded ", region.encoded_name());
    assert_eq!(error.message(), sentence);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_calls_are_found_by_whoever_asks_the_region_server() {
    let settings = [("hbase.regionserver.slowlog.buffer.enabled", "true"), ("hbase.ipc.warn.response.size", "0")];
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &settings).await;
    let region = place.create_table("t").await;
    place.put("bob", &region).await.expect("written, by a deferred reply");
    place.scan("eve", &region).await.expect("read");
    let request = pb::SlowLogResponseRequest { table_name: Some("t,".into()), ..Default::default() };
    let large = async || -> Vec<(String, String)> {
        let found: pb::SlowLogResponses =
            place.admin(Method::AdminGetLargeLogResponses, &request).await.expect("an answer");
        found.slow_log_payloads.into_iter().map(|entry| (entry.method_name, entry.user_name)).collect()
    };
    assert_eq!(large().await, [("Scan".into(), "eve".into()), ("Mutate".into(), "bob".into())]);
    let inner = pb::SlowLogResponseRequest {
        log_type: Some(pb::slow_log_response_request::LogType::LargeLog as i32),
        ..request.clone()
    };
    let by_class = pb::LogRequest {
        log_class_name: "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponseRequest".into(),
        log_message: inner.encode_to_vec().into(),
    };
    let entry: pb::LogEntry = place.admin(Method::AdminGetLogEntries, &by_class).await.expect("an answer");
    assert!(entry.log_class_name.ends_with("AdminProtos$SlowLogResponses"), "{}", entry.log_class_name);
    assert_eq!(pb::SlowLogResponses::decode(entry.log_message).expect("responses").slow_log_payloads.len(), 2);
    let clear = pb::ClearSlowLogResponseRequest {};
    let cleared: pb::ClearSlowLogResponses =
        place.admin(Method::AdminClearSlowLogsResponses, &clear).await.expect("cleared");
    assert!(cleared.is_cleaned);
    assert_eq!(large().await, []);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_call_tells_how_many_bytes_of_blocks_it_went_through() {
    let settings = [("hbase.regionserver.slowlog.buffer.enabled", "true"), ("hbase.ipc.warn.response.size", "0")];
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &settings).await;
    let region = place.create_table("t").await;
    place.put("bob", &region).await.expect("written");
    place.scan("eve", &region).await.expect("read from memory");
    let flush = pb::FlushRegionRequest { region: specifier(&region), ..Default::default() };
    let _: pb::FlushRegionResponse = place.admin(Method::AdminFlushRegion, &flush).await.expect("flushed");
    place.scan("eve", &region).await.expect("read from the file");
    let get = pb::GetRequest {
        region: specifier(&region),
        get: pb::Get { row: Bytes::from_static(b"row"), ..pb::Get::default() },
    };
    place.call("eve", Method::ClientGet, &get).await.expect("read from the file");
    let request = pb::SlowLogResponseRequest { user_name: Some("eve".into()), ..Default::default() };
    let found: pb::SlowLogResponses =
        place.admin(Method::AdminGetLargeLogResponses, &request).await.expect("an answer");
    let reads: Vec<_> = found
        .slow_log_payloads
        .iter()
        .map(|entry| (entry.method_name.as_str(), entry.block_bytes_scanned() > 0))
        .collect();
    assert_eq!(reads, [("Get", true), ("Scan", true), ("Scan", false)]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_calls_go_to_their_table_which_the_master_makes() {
    let settings = [
        ("hbase.regionserver.slowlog.buffer.enabled", "true"),
        ("hbase.regionserver.slowlog.systable.enabled", "true"),
        ("hbase.slowlog.systable.chore.duration", "10"),
        ("hbase.ipc.warn.response.size", "0"),
    ];
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &settings).await;
    let table = TableName::slowlog_table();
    let descriptor = place.node.master().cluster().descriptor(&table).expect("the master made it");
    let family = &descriptor.families[&b"info"[..]];
    let of_family = |key: &str| family.attributes.get(key.as_bytes()).map(|value| String::from_utf8_lossy(value));
    assert_eq!(of_family("VERSIONS").as_deref(), Some("1"));
    assert_eq!(of_family("BLOCKCACHE").as_deref(), Some("false"));
    let region = place.create_table("t").await;
    place.put("bob", &region).await.expect("written");
    let own = place.regions(&table).remove(0);
    let found = loop {
        let cells = place.node.server().scan(own.encoded_name(), &Scan::default()).expect("it is open");
        if cells.iter_from(0).next().is_some() {
            break cells;
        }
        tokio::task::yield_now().await;
    };
    let columns: std::collections::BTreeMap<String, String> = found
        .iter_from(0)
        .map(|cell| [cell.qualifier(), cell.value()].map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        .map(|[qualifier, value]| (qualifier, value))
        .collect();
    assert_eq!(columns.len(), 14, "{columns:?}");
    for (column, value) in [("method_name", "Mutate"), ("username", "bob"), ("type", "LARGE_LOG")] {
        assert_eq!(columns[column], value);
    }
    assert!(columns["region_name"].starts_with("t,,"), "{columns:?}");
    assert_eq!(found.iter_from(0).next().expect("one").row().len(), 8);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_balancer_says_why_it_has_nothing_to_do() {
    let settings = [("hbase.master.balancer.rejection.buffer.enabled", "true")];
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &settings).await;
    const MESSAGES: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$";
    let rejections = async |limit| -> Vec<String> {
        let request = pb::LogRequest {
            log_class_name: format!("{MESSAGES}BalancerRejectionsRequest"),
            log_message: pb::BalancerRejectionsRequest { limit: Some(limit) }.encode_to_vec().into(),
        };
        let entry: pb::LogEntry = place.admin(Method::MasterGetLogEntries, &request).await.expect("an answer");
        assert_eq!(entry.log_class_name, format!("{MESSAGES}BalancerRejectionsResponse"));
        let found = pb::BalancerRejectionsResponse::decode(entry.log_message).expect("rejections");
        found.balancer_rejection.into_iter().map(|rejection| rejection.reason).collect()
    };
    let balance = async |dry_run| -> bool {
        let request = pb::BalanceRequest { dry_run: Some(dry_run), ignore_rit: None };
        let response: pb::BalanceResponse = place.admin(Method::MasterBalance, &request).await.expect("an answer");
        assert_eq!((response.moves_calculated, response.moves_executed), (Some(0), Some(0)));
        response.balancer_ran
    };
    assert_eq!(rejections(250).await, [""; 0]);
    assert!(balance(false).await);
    let reason = "The number of RegionServers 1 < MIN_SERVER_BALANCE(2)";
    assert_eq!(rejections(250).await, [reason]);
    let off = pb::SetBalancerRunningRequest { on: false, synchronous: None };
    let was: pb::SetBalancerRunningResponse =
        place.admin(Method::MasterSetBalancerRunning, &off).await.expect("switched off");
    assert_eq!(was.prev_balance_value, Some(true));
    assert!(!balance(false).await);
    assert_eq!(rejections(250).await.len(), 1, "it did not run");
    assert!(balance(true).await, "a dry run only looks");
    assert_eq!(rejections(250).await.len(), 2);
    assert_eq!(rejections(1).await.len(), 1);
    place.stop().await;
}
