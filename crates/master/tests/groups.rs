//! Groups of region servers: calls over a real connection, where regions are then, what of it outlives servers and masters. Follows:
//! `TestRSGroupsAdmin1`, `TestRSGroupsAdmin2`, `TestRSGroupsBasics`, `TestRSGroupsBalance`, `TestRSGroupsFallback`, `TestRSGroupsOfflineMode`.

use crate::common::{Catalog, Life, caller, server_name, start_after, start_with, table, table_name};
use crate::service::{Connected, connect};
use basalt_master::Inherited;
use basalt_master::cluster::{NamespaceConfiguration, RegionState};
use base::Config;
use convert::{from_proto, to_proto};
use fs::MemVolume;
use model::{RegionInfo, ServerName, TableName};
use proto::methods::Method;
use proto::{Message, magic, pb};
use rpc::client::ClientError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const ENDPOINT: &str = "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint";
const GROUP: &str = "hbase.rsgroup.name";
const SIX: [&str; 5] = ["d", "h", "m", "q", "u"];

fn on() -> Config {
    let mut config = Config::default();
    config.set("hbase.coprocessor.master.classes", ENDPOINT);
    config
}

async fn life_of(config: Config, servers: u16) -> Life {
    start_with(&MemVolume::new(), &Catalog::default(), config, servers).await.expect("starts")
}

async fn cluster(servers: u16) -> Connected {
    connect(life_of(on(), servers).await, "MasterService").await
}

fn address(number: u16) -> pb::ServerName {
    pb::ServerName { host_name: "localhost".into(), port: Some(u32::from(16020 + number)), start_code: None }
}

fn addresses(numbers: &[u16]) -> Vec<pb::ServerName> {
    numbers.iter().map(|number| address(*number)).collect()
}

fn names(tables: &[&str]) -> Vec<pb::TableName> {
    tables.iter().map(|name| to_proto::table_name(&table_name(name))).collect()
}

fn request_of(method: Method, request: &impl Message) -> pb::CoprocessorServiceRequest {
    let call = pb::CoprocessorServiceCall {
        row: Default::default(),
        service_name: "RSGroupAdminService".into(),
        method_name: method.info().name.to_owned(),
        request: request.encode_to_vec().into(),
    };
    let region = pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
        value: Default::default(),
    };
    pb::CoprocessorServiceRequest { region, call }
}

impl Connected {
    async fn ask<R: Message + Default>(&self, method: Method, request: &impl Message) -> R {
        let reply: pb::CoprocessorServiceResponse =
            self.call(Method::MasterExecMasterService, &request_of(method, request)).await.expect("done");
        let class =
            format!("org.apache.hadoop.hbase.protobuf.generated.RSGroupAdminProtos${}Response", method.info().name);
        assert_eq!(reply.value.name, class);
        R::decode(reply.value.value.unwrap_or_default()).expect("its answer")
    }

    /// Class without package, and message.
    async fn said(&self, method: Method, request: &impl Message) -> String {
        self.said_to(request_of(method, request)).await
    }

    async fn said_to(&self, asked: pb::CoprocessorServiceRequest) -> String {
        let answer = self.call::<pb::CoprocessorServiceResponse>(Method::MasterExecMasterService, &asked).await;
        let ClientError::Remote(exception) = answer.expect_err("refused") else { panic!("another error") };
        let class = exception.exception_class_name().rsplit('.').next().unwrap_or_default();
        let trace = exception.stack_trace();
        let said = trace.split_once(": ").map_or(trace, |(_, said)| said);
        format!("{class}: {}", said.lines().next().unwrap_or_default())
    }

    async fn add(&self, name: &str) {
        let request = pb::AddRsGroupRequest { r_s_group_name: name.into() };
        let _: pb::AddRsGroupResponse = self.ask(Method::RSGroupAdminAddRSGroup, &request).await;
    }

    async fn move_servers(&self, numbers: &[u16], target: &str) {
        let request = pb::MoveServersRequest { target_group: target.into(), servers: addresses(numbers) };
        let _: pb::MoveServersResponse = self.ask(Method::RSGroupAdminMoveServers, &request).await;
    }

    async fn move_tables(&self, tables: &[&str], target: &str) {
        let request = pb::MoveTablesRequest { target_group: target.into(), table_name: names(tables) };
        let _: pb::MoveTablesResponse = self.ask(Method::RSGroupAdminMoveTables, &request).await;
    }

    /// Every group: numbers of its servers, and its tables.
    async fn groups(&self) -> BTreeMap<String, (Vec<u32>, Vec<String>)> {
        let listed: pb::ListRsGroupInfosResponse =
            self.ask(Method::RSGroupAdminListRSGroupInfos, &pb::ListRsGroupInfosRequest {}).await;
        let shown = |group: pb::RsGroupInfo| {
            let servers = group.servers.iter().map(|server| server.port() - 16020).collect();
            let tables = group.tables.iter().map(|name| from_proto::table_name(name).expect("legal").to_string());
            (group.name, (servers, tables.collect()))
        };
        listed.r_s_group_info.into_iter().map(shown).collect()
    }

    async fn balance(&self, group: &str, dry_run: bool) -> pb::BalanceRsGroupResponse {
        let (dry_run, ignore_rit) = (Some(dry_run), None);
        let request = pb::BalanceRsGroupRequest { r_s_group_name: group.into(), ignore_rit, dry_run };
        self.ask(Method::RSGroupAdminBalanceRSGroup, &request).await
    }

    /// The group `g` with these servers, and a table `t` of six regions in it.
    async fn with_group(&self, numbers: &[u16]) {
        self.add("g").await;
        self.move_servers(numbers, "g").await;
        self.life.create("t", &["f"], &SIX).await;
        self.move_tables(&["t"], "g").await;
    }
}

fn at(life: &Life, info: &RegionInfo) -> Option<ServerName> {
    life.master.cluster().region(info.encoded_name()).and_then(|node| node.location.clone())
}

/// Numbers of the servers that have regions of a table open, each of which has them by its own word.
fn where_is(life: &Life, name: &str) -> BTreeSet<u16> {
    let regions = life.regions(name);
    assert!(!regions.is_empty());
    let place = |info: &RegionInfo| {
        let state = life.master.cluster().region(info.encoded_name()).map(|node| node.state);
        assert_eq!(state, Some(RegionState::Open), "{}", info.name_string());
        let server = at(life, info).expect("open somewhere");
        let having = life.hosts.iter().filter(|host| host.open.lock().contains_key(&**info.encoded_name()));
        assert_eq!(having.map(|host| &host.server).collect::<Vec<_>>(), [&server]);
        server.port - 16020
    };
    regions.iter().map(place).collect()
}

fn states(life: &Life, name: &str) -> BTreeSet<RegionState> {
    let states = life.regions(name).into_iter();
    states.filter_map(|info| life.master.cluster().region(info.encoded_name()).map(|node| node.state)).collect()
}

/// The server answers nothing any more; what it had is recovered.
async fn crash(life: &mut Life, number: u16) {
    let at = life.hosts.iter().position(|host| host.server.port == 16020 + number).expect("a server");
    let dead = life.hosts.remove(at).server.clone();
    let id = life.master.server_crashed(&dead).await.expect("accepted");
    life.master.wait_for(id).await.expect("recovered");
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waited).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn without_the_endpoint_there_are_no_groups() {
    let c = connect(life_of(Config::default(), 2).await, "MasterService").await;
    let said = c.said(Method::RSGroupAdminListRSGroupInfos, &pb::ListRsGroupInfosRequest {}).await;
    let message = "No registered Master Coprocessor Endpoint found for RSGroupAdminService. Has it been enabled?";
    assert_eq!(said, format!("UnknownProtocolException: {message}"));
    assert!(!c.life.master.cluster().exists(&table_name("hbase:rsgroup")));
    let mut config = Config::default();
    config.set("hbase.master.loadbalancer.class", "org.apache.hadoop.hbase.rsgroup.RSGroupBasedLoadBalancer");
    let c = connect(life_of(config, 1).await, "MasterService").await;
    let tables = ["hbase:meta", "hbase:namespace", "hbase:rsgroup"].map(str::to_owned).to_vec();
    assert_eq!(c.groups().await, BTreeMap::from([("default".to_owned(), (vec![0], tables))]));
}

#[tokio::test]
async fn groups_are_changed_by_calls_and_refused_in_hbases_words() {
    use Method::{
        RSGroupAdminAddRSGroup, RSGroupAdminBalanceRSGroup, RSGroupAdminGetRSGroupInfo, RSGroupAdminMoveServers,
        RSGroupAdminMoveServersAndTables, RSGroupAdminMoveTables, RSGroupAdminRemoveRSGroup, RSGroupAdminRemoveServers,
        RSGroupAdminRenameRSGroup, RSGroupAdminUpdateRSGroupConfig,
    };
    let c = cluster(4).await;
    c.with_group(&[2, 3]).await;
    assert_eq!(c.groups().await["g"], (vec![2, 3], vec!["t".to_owned()]));
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([2, 3]), "regions are there when the client has its answer");

    let add = |name: &str| pb::AddRsGroupRequest { r_s_group_name: name.into() };
    assert_eq!(c.said(RSGroupAdminAddRSGroup, &add("g")).await, "DoNotRetryIOException: Group already exists: g");
    let name = "ConstraintException: RSGroup name should only contain alphanumeric characters";
    assert_eq!(c.said(RSGroupAdminAddRSGroup, &add("a b")).await, name);
    let remove = |name: &str| pb::RemoveRsGroupRequest { r_s_group_name: name.into() };
    assert_eq!(
        c.said(RSGroupAdminRemoveRSGroup, &remove("g")).await,
        "ConstraintException: RSGroup g has 1 tables; you must remove these tables from the rsgroup before the rsgroup can be removed."
    );
    let servers = |numbers: &[u16], target: &str| pb::MoveServersRequest {
        target_group: target.into(),
        servers: addresses(numbers),
    };
    assert_eq!(
        c.said(RSGroupAdminMoveServers, &servers(&[0, 1], "g")).await,
        "ConstraintException: should keep at least one server in 'default' RSGroup."
    );
    assert_eq!(
        c.said(RSGroupAdminMoveServers, &servers(&[9], "g")).await,
        "ConstraintException: Server localhost:16029 is either offline or it does not exist."
    );
    let tables = |tables: &[&str], target: &str| pb::MoveTablesRequest {
        target_group: target.into(),
        table_name: names(tables),
    };
    assert_eq!(
        c.said(RSGroupAdminMoveTables, &tables(&["t"], "no")).await,
        "ConstraintException: Target no RSGroup does not exist."
    );
    assert_eq!(c.said(RSGroupAdminMoveTables, &tables(&["no"], "g")).await, "TableNotFoundException: no");
    let both = pb::MoveServersAndTablesRequest {
        target_group: "default".into(),
        servers: addresses(&[2]),
        table_name: Vec::new(),
    };
    assert_eq!(
        c.said(RSGroupAdminMoveServersAndTables, &both).await,
        "ConstraintException: The list of tables to move cannot be null or empty."
    );
    let gone = pb::RemoveServersRequest { servers: addresses(&[0]) };
    assert_eq!(
        c.said(RSGroupAdminRemoveServers, &gone).await,
        "ConstraintException: Server localhost:16020 is an online server, not allowed to remove."
    );
    let rename =
        |old: &str, new: &str| pb::RenameRsGroupRequest { old_rsgroup_name: old.into(), new_rsgroup_name: new.into() };
    assert_eq!(
        c.said(RSGroupAdminRenameRSGroup, &rename("default", "x")).await,
        "ConstraintException: Can't rename default rsgroup"
    );
    let pair = |name: &str, value: &str| pb::NameStringPair { name: name.into(), value: value.into() };
    let configure =
        |name: &str| pb::UpdateRsGroupConfigRequest { group_name: name.into(), configuration: vec![pair("k", "v")] };
    assert_eq!(
        c.said(RSGroupAdminUpdateRSGroupConfig, &configure("default")).await,
        "ConstraintException: configuration of default can't be stored persistently"
    );
    let balance = pb::BalanceRsGroupRequest { r_s_group_name: "no".into(), ignore_rit: None, dry_run: None };
    assert_eq!(c.said(RSGroupAdminBalanceRSGroup, &balance).await, "ConstraintException: RSGroup does not exist: no");

    // What is not refused.
    let _: pb::UpdateRsGroupConfigResponse = c.ask(RSGroupAdminUpdateRSGroupConfig, &configure("g")).await;
    let get = |name: &str| pb::GetRsGroupInfoRequest { r_s_group_name: name.into() };
    let found: pb::GetRsGroupInfoResponse = c.ask(RSGroupAdminGetRSGroupInfo, &get("g")).await;
    assert_eq!(found.r_s_group_info.expect("there").configuration, [pair("k", "v")]);
    let found: pb::GetRsGroupInfoResponse = c.ask(RSGroupAdminGetRSGroupInfo, &get("no")).await;
    assert_eq!(found.r_s_group_info, None);
    let of_server = pb::GetRsGroupInfoOfServerRequest { server: address(3) };
    let found: pb::GetRsGroupInfoOfServerResponse = c.ask(Method::RSGroupAdminGetRSGroupInfoOfServer, &of_server).await;
    assert_eq!(found.r_s_group_info.expect("there").name, "g");
    for (name, group) in [("t", Some("g")), ("hbase:meta", Some("default")), ("no", None)] {
        let of_table = pb::GetRsGroupInfoOfTableRequest { table_name: to_proto::table_name(&table_name(name)) };
        let found: pb::GetRsGroupInfoOfTableResponse =
            c.ask(Method::RSGroupAdminGetRSGroupInfoOfTable, &of_table).await;
        assert_eq!(found.r_s_group_info.map(|group| group.name).as_deref(), group);
    }
    // A server and a table together.
    let both = pb::MoveServersAndTablesRequest { servers: addresses(&[2]), table_name: names(&["t"]), ..both };
    let _: pb::MoveServersAndTablesResponse = c.ask(RSGroupAdminMoveServersAndTables, &both).await;
    assert_eq!(c.groups().await["g"], (vec![3], Vec::new()));
    assert!(!where_is(&c.life, "t").contains(&3));
    c.move_servers(&[3], "default").await;
    let _: pb::RemoveRsGroupResponse = c.ask(RSGroupAdminRemoveRSGroup, &remove("g")).await;
    assert_eq!(c.groups().await.keys().collect::<Vec<_>>(), ["default"]);
    assert_eq!(c.life.notes.groups.lock().keys().collect::<Vec<_>>(), ["default"], "its node is gone");
}

#[tokio::test]
async fn calls_that_make_no_sense_are_refused() {
    let c = cluster(1).await;
    let mut asked = request_of(Method::RSGroupAdminAddRSGroup, &pb::AddRsGroupRequest { r_s_group_name: "g".into() });
    asked.call.method_name = "ListTablesOfRSGroup".into();
    assert_eq!(
        c.said_to(asked.clone()).await,
        "UnknownProtocolException: Unknown method ListTablesOfRSGroup called on service hbase.pb.RSGroupAdminService"
    );
    asked.call.method_name = "AddRSGroup".into();
    asked.call.service_name = "hbase.pb.RSGroupAdminService".into();
    assert!(c.said_to(asked.clone()).await.starts_with("UnknownProtocolException: No registered Master"));
    asked.call.service_name = "RSGroupAdminService".into();
    asked.call.request = bytes::Bytes::from_static(b"\xff\xff");
    let said = c.said_to(asked).await;
    assert!(said.starts_with("DoNotRetryIOException: the request of RSGroupAdminService cannot be read"), "{said}");
    let far = pb::ServerName { port: Some(65_536), ..address(0) };
    let request = pb::MoveServersRequest { target_group: "default".into(), servers: vec![far] };
    let said = c.said(Method::RSGroupAdminMoveServers, &request).await;
    assert!(said.ends_with("localhost:65536 is no address of a server"), "{said}");
}

/// Tables called `of_<group>` are mapped to that group ([`crate::common::ByPrefix`]).
#[tokio::test]
async fn a_new_table_is_made_in_the_group_that_the_mapping_says() {
    let c = cluster(4).await;
    c.add("g").await;
    c.add("other").await;
    c.add("empty").await;
    c.move_servers(&[2], "g").await;
    c.move_servers(&[1], "other").await;
    let master = &c.life.master;
    let of_other = NamespaceConfiguration::from([(GROUP.to_owned(), "other".to_owned())]);
    let id = master.create_namespace("ns".into(), of_other, &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("made");
    c.life.create("of_g", &["f"], &SIX).await;
    assert_eq!(where_is(&c.life, "of_g"), BTreeSet::from([2]), "from the first open on");
    c.life.create("ns:of_g", &["f"], &SIX).await;
    assert_eq!(where_is(&c.life, "ns:of_g"), BTreeSet::from([2]), "before its namespace's");
    c.life.create("ns:of_nobody", &["f"], &SIX).await;
    assert_eq!(where_is(&c.life, "ns:of_nobody"), BTreeSet::from([1]), "its namespace's, where there is no such group");
    let mut named = table("ns:of_other", &["f"]);
    named.attributes.insert(GROUP.into(), bytes::Bytes::from("g"));
    let id = master.create_table(named, &[], &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("made");
    assert_eq!(where_is(&c.life, "ns:of_other"), BTreeSet::from([2]), "its own word goes before");
    let refused = master.create_table(table("of_empty", &["f"]), &[], &caller()).await.expect_err("no servers");
    assert_eq!(refused.message, "No online servers in the rsgroup empty which table of_empty belongs to");
    let tables = c.groups().await["g"].1.clone();
    assert_eq!(tables, ["ns:of_g", "ns:of_other", "of_g"]);
    let shown = master.views().groups().expect("groups are on");
    let g = shown.iter().find(|group| group.name == "g").expect("shown");
    assert_eq!((&g.servers[..], g.tables.len()), (&["localhost:16022".to_owned()][..], 3));
    let descriptor = master.cluster().descriptor(&table_name("of_g")).expect("there");
    assert!(!descriptor.attributes.contains_key(GROUP.as_bytes()), "its descriptor says nothing of it");
    // Cloned tables, too.
    let wanted = pb::SnapshotDescription { name: "s".into(), table: Some("ns:of_nobody".into()), ..Default::default() };
    let id = master.take_snapshot(wanted.clone(), &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("taken");
    let restore = pb::RestoreSnapshotRequest {
        snapshot: pb::SnapshotDescription { table: Some("ns:of_g2".into()), ..wanted },
        ..Default::default()
    };
    c.add("g2").await;
    c.move_servers(&[3], "g2").await;
    let answer: pb::RestoreSnapshotResponse = c.call(Method::MasterRestoreSnapshot, &restore).await.expect("accepted");
    master.wait_for(answer.proc_id).await.expect("cloned");
    assert_eq!(where_is(&c.life, "ns:of_g2"), BTreeSet::from([3]));
}

#[tokio::test]
async fn a_table_is_made_in_the_group_that_it_or_its_namespace_names() {
    let c = cluster(3).await;
    c.add("g").await;
    c.add("empty").await;
    c.move_servers(&[2], "g").await;
    let master = &c.life.master;
    let of_group = |name: &str| NamespaceConfiguration::from([(GROUP.to_owned(), name.to_owned())]);
    let refused = master.create_namespace("ns".into(), of_group("no"), &caller()).await.expect_err("no group");
    assert_eq!(refused.message, "Region server group no does not exist.");
    let id = master.create_namespace("ns".into(), of_group("g"), &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("made");
    let id = master.create_namespace("bare".into(), of_group("empty"), &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("made");
    c.life.create("ns:a", &["f"], &SIX).await;
    assert_eq!(where_is(&c.life, "ns:a"), BTreeSet::from([2]));

    let named = |name: &str, group: &str| {
        let mut descriptor = table(name, &["f"]);
        descriptor.attributes.insert(GROUP.into(), bytes::Bytes::copy_from_slice(group.as_bytes()));
        descriptor
    };
    let id = master.create_table(named("b", "g"), &[], &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("made");
    assert_eq!(where_is(&c.life, "b"), BTreeSet::from([2]));
    c.life.create("c", &["f"], &SIX).await;
    assert_eq!(where_is(&c.life, "c"), BTreeSet::from([0, 1]));
    let refused = master.create_table(named("d", "no"), &[], &caller()).await.expect_err("no group");
    assert_eq!(refused.message, "Region server group no does not exist.");
    let refused = master.create_table(table("bare:d", &["f"]), &[], &caller()).await.expect_err("no servers");
    assert_eq!(refused.message, "No online servers in the rsgroup empty which table bare:d belongs to");
    let tables = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(c.groups().await["g"].1, tables(&["b", "ns:a"]));

    // Another descriptor, another group; a group that goes elsewhere takes the descriptor along, and so does another name.
    let attribute = |name: &str| {
        let descriptor = c.life.master.cluster().descriptor(&table_name(name)).expect("there");
        descriptor.attributes.get(GROUP.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
    };
    let refused = master.modify_table(&table_name("c"), named("c", "no"), true, &caller()).await.expect_err("no group");
    assert_eq!(refused.message, "Region server group no does not exist.");
    let id = master.modify_table(&table_name("c"), named("c", "g"), true, &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("changed");
    assert_eq!(c.groups().await["g"].1, tables(&["b", "c", "ns:a"]));
    assert_eq!(where_is(&c.life, "c"), BTreeSet::from([2]));
    c.move_tables(&["b"], "default").await;
    assert_eq!(attribute("b").as_deref(), Some("default"));
    assert!(!where_is(&c.life, "b").contains(&2));
    let rename = pb::RenameRsGroupRequest { old_rsgroup_name: "g".into(), new_rsgroup_name: "h".into() };
    let _: pb::RenameRsGroupResponse = c.ask(Method::RSGroupAdminRenameRSGroup, &rename).await;
    assert_eq!((attribute("c").as_deref(), attribute("ns:a")), (Some("h"), None));
    assert_eq!(c.groups().await["h"], (vec![2], tables(&["c", "ns:a"])));

    // A table that is gone is in no group.
    c.life.disable("c").await;
    let id = master.delete_table(&table_name("c"), &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("deleted");
    assert_eq!(c.groups().await["h"].1, tables(&["ns:a"]));
}

#[tokio::test]
async fn a_clone_of_a_snapshot_is_in_its_namespaces_group() {
    let c = cluster(2).await;
    c.with_group(&[1]).await;
    let master = &c.life.master;
    let wanted = |name: &str| pb::SnapshotDescription {
        name: "s".into(),
        table: Some(name.to_owned()),
        ..pb::SnapshotDescription::default()
    };
    let id = master.take_snapshot(wanted("t"), &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("taken");
    let id = master.restore_snapshot(&wanted("copy"), None, &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("cloned");
    assert!(c.groups().await["default"].1.contains(&"copy".to_owned()));
    assert_eq!(where_is(&c.life, "copy"), BTreeSet::from([0]));
}

#[tokio::test]
async fn what_a_crashed_server_had_stays_in_its_group_and_waits_where_nobody_is_left() {
    let mut c = cluster(4).await;
    c.with_group(&[2, 3]).await;
    c.life.create("u", &["f"], &SIX).await;
    crash(&mut c.life, 2).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([3]));
    crash(&mut c.life, 3).await;
    assert_eq!(states(&c.life, "t"), BTreeSet::from([RegionState::FailedOpen]), "nobody of their group is there");
    assert_eq!(where_is(&c.life, "u"), BTreeSet::from([0, 1]));
    let gone = pb::RemoveServersRequest { servers: addresses(&[3]) };
    assert_eq!(
        c.said(Method::RSGroupAdminRemoveServers, &gone).await,
        "ConstraintException: Server localhost:16023 is on the dead servers list, Maybe it will come back again, not allowed to remove."
    );
    // One that comes back takes them at once, without anybody's asking.
    c.life.join(2, 2);
    until("the regions are open again", || states(&c.life, "t") == BTreeSet::from([RegionState::Open])).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([2]));
    // The other is given up.
    let dead = server_name(3, 1);
    let request = pb::ClearDeadServersRequest { server_name: vec![to_proto::server_name(&dead)] };
    let left: pb::ClearDeadServersResponse = c.call(Method::MasterClearDeadServers, &request).await.expect("cleared");
    assert_eq!(left.server_name, []);
    assert_eq!(c.groups().await["g"].0, [2], "it has left its group");
    // A new one is of the default group, and gets no regions of others.
    c.life.join(7, 1);
    assert_eq!(c.groups().await["default"].0, [0, 1, 7]);
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([2]));
}

#[tokio::test]
async fn regions_that_wait_are_opened_where_their_table_goes() {
    let mut c = cluster(3).await;
    c.with_group(&[2]).await;
    crash(&mut c.life, 2).await;
    assert_eq!(states(&c.life, "t"), BTreeSet::from([RegionState::FailedOpen]));
    c.move_tables(&["t"], "default").await;
    until("the regions are open again", || states(&c.life, "t") == BTreeSet::from([RegionState::Open])).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([0, 1]));
}

#[tokio::test]
async fn with_fallback_regions_go_to_the_default_group_and_come_back() {
    let mut config = on();
    config.set("hbase.rsgroup.fallback.enable", "true");
    let mut c = connect(life_of(config, 4).await, "MasterService").await;
    c.with_group(&[2]).await;
    c.add("other").await;
    c.move_servers(&[3], "other").await;
    crash(&mut c.life, 2).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([0, 1]), "not those of another group");
    // Nothing is moved while there is nobody to move it to.
    assert_eq!(c.balance("g", false).await.moves_calculated, Some(0));
    c.life.join(2, 2);
    let balanced = c.balance("g", false).await;
    assert_eq!((balanced.balance_ran, balanced.moves_calculated), (true, Some(6)));
    until("they are back", || states(&c.life, "t") == BTreeSet::from([RegionState::Open])).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([2]));
}

#[tokio::test]
async fn fallback_counts_as_soon_as_the_configuration_says_so() {
    let mut c = cluster(2).await;
    c.with_group(&[1]).await;
    crash(&mut c.life, 1).await;
    assert_eq!(states(&c.life, "t"), BTreeSet::from([RegionState::FailedOpen]));
    let mut config = on();
    config.set("hbase.rsgroup.fallback.enable", "true");
    c.life.master.update_configuration(&config);
    until("the regions are open", || states(&c.life, "t") == BTreeSet::from([RegionState::Open])).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([0]));
}

#[tokio::test]
async fn system_tables_are_opened_on_servers_of_other_groups_before_nowhere() {
    let mut c = cluster(2).await;
    c.add("g").await;
    c.move_servers(&[1], "g").await;
    for name in ["hbase:namespace", "hbase:rsgroup"] {
        assert_eq!(where_is(&c.life, name), BTreeSet::from([0]), "{name}");
    }
    crash(&mut c.life, 0).await;
    for name in ["hbase:namespace", "hbase:rsgroup"] {
        assert_eq!(where_is(&c.life, name), BTreeSet::from([1]), "{name}");
    }
    // And groups can be changed: that is the way out.
    c.add("h").await;
}

#[tokio::test]
async fn the_balancer_works_within_each_group() {
    let c = cluster(4).await;
    c.with_group(&[2, 3]).await;
    c.life.create("u", &["f"], &SIX).await;
    // All regions of the group on one of its servers, by hand; those that go elsewhere stay.
    let to = |number: u16| Some(to_proto::server_name(&server_name(number, 1)));
    for info in c.life.regions("t") {
        for number in [3, 0] {
            let request = pb::MoveRegionRequest {
                region: pb::RegionSpecifier {
                    r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName as i32,
                    value: bytes::Bytes::copy_from_slice(info.encoded_name().as_bytes()),
                },
                dest_server_name: to(number),
            };
            let _: pb::MoveRegionResponse = c.call(Method::MasterMoveRegion, &request).await.expect("answered");
        }
    }
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([3]), "none has left its group");
    let elsewhere: Vec<_> = c.life.regions("u").iter().map(|info| at(&c.life, info)).collect();
    let dry = c.balance("g", true).await;
    assert_eq!((dry.balance_ran, dry.moves_executed), (true, Some(0)));
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([3]));
    let balanced = c.balance("g", false).await;
    assert!(balanced.balance_ran && balanced.moves_executed >= Some(2), "{balanced:?}");
    until("moved", || states(&c.life, "t") == BTreeSet::from([RegionState::Open])).await;
    until("spread", || c.life.master.unfinished_procedures() == 0).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([2, 3]));
    let now: Vec<_> = c.life.regions("u").iter().map(|info| at(&c.life, info)).collect();
    assert_eq!(now, elsewhere, "of other groups nothing moves");
    assert!(!c.balance("g", false).await.balance_ran, "there is nothing to do any more");
}

#[tokio::test]
async fn a_server_taken_out_of_use_leaves_its_regions_to_its_group() {
    let c = cluster(4).await;
    c.with_group(&[2, 3]).await;
    let request = pb::DecommissionRegionServersRequest {
        server_name: vec![to_proto::server_name(&server_name(2, 1))],
        offload: true,
    };
    let _: pb::DecommissionRegionServersResponse =
        c.call(Method::MasterDecommissionRegionServers, &request).await.expect("accepted");
    until("moved", || c.life.master.unfinished_procedures() == 0).await;
    assert_eq!(where_is(&c.life, "t"), BTreeSet::from([3]));
    // It may be forgotten while it is still online.
    let gone = pb::RemoveServersRequest { servers: addresses(&[2]) };
    let _: pb::RemoveServersResponse = c.ask(Method::RSGroupAdminRemoveServers, &gone).await;
    assert_eq!(c.groups().await["g"].0, [3]);
}

/// What the coordination nodes hold.
fn nodes_of(life: &Life) -> Inherited {
    Inherited { groups: life.notes.groups.lock().values().cloned().collect(), ..Inherited::default() }
}

#[tokio::test]
async fn the_next_master_knows_the_groups() {
    let c = cluster(3).await;
    c.with_group(&[1, 2]).await;
    let id = {
        let of_group = NamespaceConfiguration::from([(GROUP.to_owned(), "g".to_owned())]);
        c.life.master.create_namespace("ns".into(), of_group, &caller()).await.expect("accepted")
    };
    c.life.master.wait_for(id).await.expect("made");
    c.life.create("ns:a", &["f"], &[]).await;
    c.move_tables(&["ns:a"], "default").await;
    let before = c.groups().await;
    assert_eq!(before["g"], (vec![1, 2], vec!["t".to_owned()]));
    let node = c.life.notes.groups.lock()["g"].clone();
    let node: pb::RsGroupInfo = magic::decode(&node).expect("PBUF").expect("a message");
    assert_eq!((node.name.as_str(), node.servers.len(), node.tables.len()), ("g", 2, 1));
    c.life.master.stop();
    for inherited in [Inherited::default(), nodes_of(&c.life)] {
        let next = start_after(&c.life.memory, &c.life.catalog, on(), 3, inherited).await.expect("starts");
        let next = connect(next, "MasterService").await;
        assert_eq!(next.groups().await, before, "and what was moved out of its namespace's group stays out");
        assert!(!where_is(&next.life, "t").contains(&0));
        next.life.master.stop();
    }
    // Where none of the group is there the master starts all the same, and is told by the one that comes.
    let mut alone = start_after(&c.life.memory, &c.life.catalog, on(), 1, nodes_of(&c.life)).await.expect("starts");
    assert_eq!(states(&alone, "t"), BTreeSet::from([RegionState::FailedOpen]));
    assert_eq!(where_is(&alone, "ns:a"), BTreeSet::from([0]));
    alone.join(2, 2);
    until("the regions are open", || states(&alone, "t") == BTreeSet::from([RegionState::Open])).await;
    assert_eq!(where_is(&alone, "t"), BTreeSet::from([2]));
    alone.master.stop();
    // Switched off, the table stays and regions go anywhere.
    let off = start_with(&c.life.memory, &c.life.catalog, Config::default(), 1).await.expect("starts");
    assert_eq!(where_is(&off, "t"), BTreeSet::from([0]));
}

/// A row that cannot be read is left alone, and the others count.
#[tokio::test]
async fn a_row_that_is_no_group_is_passed_over() {
    let c = cluster(2).await;
    c.with_group(&[1]).await;
    let region = c.life.regions("hbase:rsgroup").remove(0).encoded_name().to_string();
    c.life.master.stop();
    crate::common::put_cell(&c.life.catalog, &region, b"bad", "m:i", 1, b"\xff\xff\xff");
    let next = start_with(&c.life.memory, &c.life.catalog, on(), 2).await.expect("starts");
    let next = connect(next, "MasterService").await;
    assert_eq!(next.groups().await.keys().collect::<Vec<_>>(), ["default", "g"]);
    next.add("h").await;
    assert!(next.life.catalog.lock()[&region].scan().iter_from(0).any(|cell| cell.row() == b"bad"));
}

/// The power fails after each call while a table and a server go to another group, and while a table is made and deleted there: the next start
/// has each table in one group, and every region on a server of it once the balancer has run.
#[tokio::test]
async fn a_change_that_a_crash_broke_off_is_made_or_not_and_regions_follow() {
    for stop_after in 0i64.. {
        let c = cluster(3).await;
        c.add("g").await;
        c.move_servers(&[2], "g").await;
        c.life.create("t", &["f"], &["m"]).await;
        c.life.machine.switch_off_after(stop_after);
        let machine = Arc::clone(&c.life.machine);
        let work = async {
            let both = pb::MoveServersAndTablesRequest {
                target_group: "g".into(),
                servers: addresses(&[1]),
                table_name: names(&["t"]),
            };
            let asked = request_of(Method::RSGroupAdminMoveServersAndTables, &both);
            let done = c.call::<pb::CoprocessorServiceResponse>(Method::MasterExecMasterService, &asked).await;
            let mut descriptor = table("made", &["f"]);
            descriptor.attributes.insert(GROUP.into(), "g".into());
            let made = match c.life.master.create_table(descriptor, &[], &caller()).await {
                Ok(id) => c.life.master.wait_for(id).await.is_ok(),
                Err(_) => false,
            };
            if done.is_err() || !made {
                machine.is_off().await;
            }
        };
        tokio::select! {
            () = machine.is_off() => {}
            () = work => {}
        }
        let whole = !machine.went_off();
        let nodes = nodes_of(&c.life);
        c.life.machine.switch_off_after(0);
        c.life.master.stop();
        let crashed = c.life.memory.crash(&base::Rng::seeded(stop_after as u64), fs::CrashPolicy::LoseUnsynced);
        let catalog: Catalog = Arc::new(parking_lot::Mutex::new(c.life.catalog.lock().clone()));
        let next = start_after(&crashed, &catalog, on(), 3, nodes).await.expect("starts");
        until("what was begun ends", || next.master.unfinished_procedures() == 0).await;
        let next = connect(next, "MasterService").await;
        let request = pb::BalanceRequest::default();
        let _: pb::BalanceResponse = next.call(Method::MasterBalance, &request).await.expect("balanced");
        until("moves end", || next.life.master.unfinished_procedures() == 0).await;
        check_groups(&next).await;
        if whole {
            let groups = next.groups().await;
            assert_eq!(groups["g"], (vec![1, 2], vec!["made".to_owned(), "t".to_owned()]));
            assert!(stop_after > 10, "{stop_after}");
            break;
        }
        next.life.master.stop();
    }
}

/// Each table and server is in one group, each group of a table is where its regions are.
async fn check_groups(c: &Connected) {
    let groups = c.groups().await;
    let servers: Vec<u32> = groups.values().flat_map(|(servers, _)| servers.clone()).collect();
    assert_eq!(servers.iter().collect::<BTreeSet<_>>().len(), servers.len(), "{groups:?}");
    let mut tables: Vec<String> = groups.values().flat_map(|(_, tables)| tables.clone()).collect();
    tables.sort();
    let known: Vec<TableName> = c.life.master.cluster().tables().map(|(table, _)| table.name.clone()).collect();
    assert_eq!(tables, known.iter().map(TableName::to_string).collect::<Vec<_>>(), "{groups:?}");
    for (servers, tables) in groups.values() {
        for name in tables.iter().filter(|name| !name.starts_with("hbase:meta")) {
            let found = where_is(&c.life, name);
            assert!(
                found.iter().all(|number| servers.contains(&u32::from(*number))),
                "{name} is on {found:?}: {groups:?}"
            );
        }
    }
}
