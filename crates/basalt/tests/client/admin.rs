//! Every call of the native client's `Admin` against a server: what it answers, and that what it asks for is done. What would take the
//! server away, or needs settings, is asked of a server of the test's own.

use super::{Place, connect, rows_of, table};
use crate::common::{Scratch, Server};
use bytes::Bytes;
use client::{Admin, CompactionState, Connection, Error, Put, QuotaOwner, RestoreOptions, ScanOptions};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn name(text: &str) -> TableName {
    TableName::parse(text).expect("legal")
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, class: &str) {
    let error = result.expect_err("it is refused");
    assert_eq!(error.short_class(), Some(class), "{error}");
}

/// Waits until it is so: what the server does by itself has no event that a client could wait for.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn drop_table(admin: &Admin, table: &TableName) {
    if admin.is_enabled(table).await.expect("asked") {
        admin.disable_table(table).await.expect("disabled");
    }
    admin.delete_table(table).await.expect("deleted");
}

async fn fill(connection: &Connection, table: &TableName, rows: &[&'static str]) {
    let puts: Vec<_> = rows.iter().map(|row| Put::new(*row).add("f", "q", "v").build()).collect();
    connection.table(table).mutate_all(&puts).await.expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_families_and_namespaces_are_changed_and_listed() {
    let place = Place::new("client-admin-tables");
    let connection = place.connect();
    let admin = connection.admin();
    let configuration: BTreeMap<String, String> = [("a".to_owned(), "1".to_owned())].into();
    admin.create_namespace("admin_ns", &configuration).await.expect("made");
    assert_eq!(admin.describe_namespace("admin_ns").await.expect("described")["a"], "1");
    let changed: BTreeMap<String, String> = [("a".to_owned(), "2".to_owned())].into();
    admin.modify_namespace("admin_ns", &changed).await.expect("changed");
    assert_eq!(admin.namespaces().await.expect("listed")["admin_ns"]["a"], "2");
    refused(admin.describe_namespace("no_such_ns").await, "NamespaceNotFoundException");

    let t = table(&connection, "admin_ns:t", &["m"]).await;
    let t = t.name().clone();
    assert_eq!(admin.table_state(&t).await.expect("asked"), pb::table_state::State::Enabled);
    assert!(!admin.is_disabled(&t).await.expect("asked") && admin.is_available(&t).await.expect("asked"));
    assert!(admin.describe(&name("nowhere")).await.expect("asked").is_none());
    assert_eq!(admin.describe_all(std::slice::from_ref(&t)).await.expect("described").len(), 1);
    let matching = |tables: Vec<TableDescriptor>| tables.into_iter().map(|table| table.name).collect::<Vec<_>>();
    assert_eq!(
        matching(admin.list_tables_matching(Some("admin_ns:.*"), false).await.expect("listed")),
        std::slice::from_ref(&t)
    );
    assert_eq!(admin.list_table_names(Some("admin_ns:t"), false).await.expect("listed"), std::slice::from_ref(&t));
    assert!(admin.list_table_names(None, true).await.expect("listed").contains(&TableName::meta()));
    assert_eq!(matching(admin.list_tables_of_namespace("admin_ns").await.expect("listed")), std::slice::from_ref(&t));
    assert_eq!(admin.list_table_names_of_namespace("admin_ns").await.expect("listed"), std::slice::from_ref(&t));
    assert!(matching(admin.list_tables_by_state(true).await.expect("listed")).contains(&t));
    assert!(admin.list_table_names_by_state(true).await.expect("listed").contains(&t));
    assert!(!admin.list_table_names_by_state(false).await.expect("listed").contains(&t));

    let mut descriptor = admin.describe(&t).await.expect("described").expect("it is there");
    descriptor.attributes.insert("DURABILITY".into(), "ASYNC_WAL".into());
    admin.modify_table(&descriptor).await.expect("changed");
    descriptor.attributes.insert("NORMALIZATION_ENABLED".into(), "false".into());
    admin.modify_table_with(&descriptor, false).await.expect("changed");
    let read = admin.describe(&t).await.expect("described").expect("it is there");
    assert_eq!((read.value("DURABILITY"), read.value("NORMALIZATION_ENABLED")), (Some("ASYNC_WAL"), Some("false")));
    assert_eq!(admin.alter_status(&t).await.expect("asked").0, 0, "every region has it");
    admin.add_family(&t, &FamilyDescriptor::new("h")).await.expect("added");
    admin.modify_family(&t, &FamilyDescriptor::new("h").with("VERSIONS", "3")).await.expect("changed");
    let read = admin.describe(&t).await.expect("described").expect("it is there");
    assert_eq!(read.families[&b"h"[..]].max_versions(), 3);
    refused(admin.add_family(&t, &FamilyDescriptor::new("h")).await, "InvalidFamilyOperationException");
    admin.delete_family(&t, "h").await.expect("deleted");
    refused(admin.delete_family(&t, "h").await, "InvalidFamilyOperationException");
    admin.flush_families(&t, &[Bytes::from("f")]).await.expect("flushed");
    admin.modify_table_store_file_tracker(&t, "FILE").await.expect("changed by way of MIGRATION");
    admin.modify_family_store_file_tracker(&t, "f", "FILE").await.expect("it is so already");

    let copy = name("admin_ns:copy");
    admin.clone_table_schema(&t, &copy, true).await.expect("made");
    assert_eq!(connection.table(&copy).regions().await.expect("regions").len(), 2);
    refused(admin.clone_table_schema(&t, &copy, false).await, "TableExistsException");
    refused(admin.delete_namespace("admin_ns").await, "ConstraintException");
    drop_table(&admin, &copy).await;
    drop_table(&admin, &t).await;
    admin.delete_namespace("admin_ns").await.expect("removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_are_flushed_compacted_split_merged_moved_and_emptied() {
    let place = Place::new("client-admin-regions");
    let connection = place.connect();
    let admin = connection.admin();
    let t = table(&connection, "admin_regions", &["m"]).await.name().clone();
    fill(&connection, &t, &["a", "b", "c", "n", "o", "p"]).await;
    let locations = admin.regions(&t).await.expect("located");
    let (first, server) = (locations[0].region.clone(), locations[0].server.clone());
    let encoded = first.encoded_name().as_bytes().to_vec();
    assert_eq!(admin.region(first.name()).await.expect("found").region, first);
    assert_eq!(admin.region(&encoded).await.expect("found").server, server);
    assert!(admin.region(b"0123456789abcdef0123456789abcdef").await.is_err(), "there is none of that name");

    admin.flush_region(first.name(), Some(b"f")).await.expect("flushed");
    fill(&connection, &t, &["a"]).await;
    admin.flush_region(&encoded, None).await.expect("flushed");
    let files = admin.store_files(&encoded, &[Bytes::from("f")]).await.expect("listed");
    assert_eq!(files.len(), 2, "{files:?}");
    admin.compact_region(&encoded, Some(b"f"), true).await.expect("asked");
    until(async || admin.store_files(&encoded, &[Bytes::from("f")]).await.expect("listed").len() == 1).await;
    admin.compact(&t).await.expect("asked");
    admin.compact_family(&t, Some(b"f"), false).await.expect("asked");
    refused(admin.compact_family(&t, Some(b"no"), true).await, "NoSuchColumnFamilyException");
    until(async || !admin.is_compacting(&t).await.expect("asked")).await;
    assert_eq!(admin.compaction_state(&t).await.expect("asked"), CompactionState::None);
    assert_eq!(admin.region_compaction_state(&encoded).await.expect("asked"), CompactionState::None);
    // A heartbeat tells the master of it, where the master is another process.
    until(async || admin.last_major_compaction_of_region(first.name()).await.expect("asked") > 0).await;
    admin.last_major_compaction(&t).await.expect("asked");
    let info = admin.region_info(&encoded).await.expect("asked");
    assert_eq!((info.splittable(), info.mergeable()), (true, true));
    let evicted = admin.clear_block_cache(&t).await.expect("evicted");
    assert!(evicted.exception.is_empty(), "{evicted:?}");

    assert!(admin.online_regions(&server).await.expect("listed").contains(&first));
    let loads = admin.region_metrics(&server, Some(&t)).await.expect("asked");
    assert!(loads.iter().any(|load| load.region_specifier.value == *first.name()), "{loads:?}");
    assert_eq!(admin.server_info(&server).await.expect("asked").server_name.host_name, *server.host);
    admin.cached_files(&server).await.expect("asked");
    admin.flush_server(&server).await.expect("flushed");
    admin.compact_server(&server, false).await.expect("asked");
    assert!(admin.set_compaction(&server, true).await.expect("switched"), "it was on");
    admin.clear_compaction_queues(&server, &["short", "long"]).await.expect("cleared");
    admin.roll_wal(&server).await.expect("rolled");

    admin.split_region(&encoded, Some(b"b")).await.expect("split");
    until(async || admin.regions(&t).await.expect("located").len() == 3).await;
    let last = admin.regions(&t).await.expect("located").pop().expect("three").region;
    admin.move_region(last.encoded_name().as_bytes(), None).await.expect("moved");
    admin.unassign(last.name()).await.expect("closed");
    admin.assign(last.name()).await.expect("opened");
    connection.table(&t).get(&Get::new("n")).await.expect("it is open");
    admin.offline(last.name()).await.expect("taken off");
    admin.assign(last.name()).await.expect("opened");
    admin.truncate_region(last.name()).await.expect("emptied");
    let rows = rows_of(connection.table(&t).scan(Scan::default(), ScanOptions::default())).await;
    assert_eq!(rows, ["a", "b", "c"]);

    let merged = table(&connection, "admin_merge", &["h", "p"]).await.name().clone();
    let names: Vec<Bytes> =
        admin.regions(&merged).await.expect("located").into_iter().map(|at| at.region.name().clone()).collect();
    refused(admin.merge_regions(&[names[0].clone(), names[2].clone()], false).await, "MergeRegionException");
    admin.merge_regions(&names[..2], false).await.expect("merged");
    until(async || admin.regions(&merged).await.expect("located").len() == 2).await;
    drop_table(&admin, &merged).await;
    drop_table(&admin, &t).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_taken_listed_cloned_restored_and_deleted() {
    let place = Place::new("client-admin-snapshots");
    let connection = place.connect();
    let admin = connection.admin();
    let t = table(&connection, "admin_snap", &[]).await.name().clone();
    fill(&connection, &t, &["a"]).await;
    admin.snapshot("admin_s1", &t).await.expect("taken");
    refused(admin.snapshot("admin_s1", &t).await, "SnapshotExistsException");
    fill(&connection, &t, &["b"]).await;
    let second = pb::SnapshotDescription {
        name: "admin_s2".into(),
        table: Some(t.to_string()),
        r#type: Some(pb::snapshot_description::Type::Skipflush.into()),
        ..pb::SnapshotDescription::default()
    };
    admin.take_snapshot(second.clone()).await.expect("taken");
    assert!(admin.is_snapshot_finished(&second).await.expect("asked"));
    let ours = |text: &str| text.starts_with("admin_s");
    let of_ours = |text: &str| text == "admin_snap";
    let mut names: Vec<String> =
        admin.list_snapshots_of(&of_ours, &ours).await.expect("listed").into_iter().map(|s| s.name).collect();
    names.sort();
    assert_eq!(names, ["admin_s1", "admin_s2"]);
    assert!(admin.list_snapshots().await.expect("listed").len() >= 2);

    let (clone, tracked) = (name("admin_clone"), name("admin_tracked"));
    admin.clone_snapshot("admin_s1", &clone).await.expect("made");
    refused(admin.clone_snapshot("admin_s1", &clone).await, "TableExistsException");
    admin.clone_snapshot_with("admin_s1", &tracked, false, Some("FILE")).await.expect("made");
    let rows =
        async |table: &TableName| rows_of(connection.table(table).scan(Scan::default(), ScanOptions::default())).await;
    assert_eq!((rows(&clone).await, rows(&tracked).await), (vec!["a".to_owned()], vec!["a".to_owned()]));
    admin.disable_table(&t).await.expect("disabled");
    let options = RestoreOptions { fail_safe: true, ..RestoreOptions::default() };
    admin.restore_snapshot("admin_s1", options.clone()).await.expect("restored");
    let clashing =
        client::Options { fail_safe_snapshot_name: "{snapshot.name}".to_owned(), ..connection.options().clone() };
    let restored = Connection::open(clashing).admin().restore_snapshot("admin_s1", options).await;
    refused(restored, "SnapshotExistsException");
    admin.enable_table(&t).await.expect("enabled");
    assert_eq!(rows(&t).await, ["a"]);
    refused(admin.restore_snapshot("admin_no", RestoreOptions::default()).await, "RestoreSnapshotException");
    admin.delete_snapshot("admin_s1").await.expect("deleted");
    refused(admin.delete_snapshot("admin_s1").await, "SnapshotDoesNotExistException");
    assert_eq!(admin.delete_snapshots(&of_ours, &ours).await.expect("deleted"), 1);
    for table in [clone, tracked, t] {
        drop_table(&admin, &table).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_tells_of_itself_and_its_chores_run() {
    let place = Place::new("client-admin-cluster");
    let connection = place.connect();
    let admin = connection.admin();
    assert!(admin.cluster_status().await.expect("asked").hbase_version.is_some());
    let some = admin.cluster_status_of(&[pb::Option::BalancerOn]).await.expect("asked");
    assert!(some.balancer_on.is_some() && some.hbase_version.is_none());
    let (master, servers) = (admin.active_master().await.expect("asked"), admin.servers().await.expect("asked"));
    assert!(master.port > 0 && !servers.is_empty());
    assert!(admin.backup_masters().await.expect("asked").is_empty());
    assert!(admin.dead_servers().await.expect("asked").iter().all(|dead| !servers.contains(dead)));
    assert!(admin.unknown_servers().await.expect("asked").is_empty());
    assert!(admin.hbck().unknown_servers().await.expect("asked").is_empty());
    admin.clear_dead_servers(&[]).await.expect("cleared");
    assert!(admin.decommissioned_servers().await.expect("asked").is_empty());
    admin.master_info_port().await.expect("asked");
    admin.master_coprocessors().await.expect("asked");
    assert!(admin.is_master_running().await.expect("asked"));
    assert!(!admin.is_in_maintenance_mode().await.expect("asked"));

    admin.balance(true, true).await.expect("asked");
    admin.normalize(&[name("no_such_table")], None, None).await.expect("asked");
    assert!(admin.run_cleaner_chore().await.expect("run"));
    assert!(admin.run_catalog_janitor().await.expect("run").is_some());
    assert!(admin.hbck().run_hbck_chore().await.expect("run"));
    admin.hbck().fix_meta().await.expect("nothing is to be mended");
    admin.flush_master_store().await.expect("flushed");
    assert!(admin.hbck().schedule_scps_for_unknown_servers().await.expect("asked").is_empty());

    // Each switch is left as it was found.
    macro_rules! switches {
        ($($set:ident($($more:expr),*), $is:ident;)*) => {$(
            let was = admin.$is().await.expect("asked");
            assert_eq!(admin.$set(!was $(, $more)*).await.expect("switched"), was, stringify!($set));
            assert_eq!(admin.$is().await.expect("asked"), !was, stringify!($is));
            admin.$set(was $(, $more)*).await.expect("switched back");
        )*};
    }
    switches! {
        set_balancer(false), is_balancer_enabled;
        set_normalizer(), is_normalizer_enabled;
        set_catalog_janitor(), is_catalog_janitor_enabled;
        set_cleaner_chore(), is_cleaner_chore_enabled;
        set_snapshot_cleanup(false), is_snapshot_cleanup_enabled;
        set_replication_peer_modification(true), is_replication_peer_modification_enabled;
    }
    // Others of these tests split and merge meanwhile.
    assert!(admin.set_split(true, false).await.expect("switched") && admin.is_split_enabled().await.expect("asked"));
    assert!(admin.set_merge(true, false).await.expect("switched") && admin.is_merge_enabled().await.expect("asked"));

    assert!(!admin.security_capabilities().await.expect("asked").is_empty());
    let permission = pb::UserPermission {
        user: Bytes::from("bob"),
        permission: pb::Permission { r#type: pb::permission::Type::Global.into(), ..Default::default() },
    };
    // Nobody checks them here.
    refused(admin.grant(permission.clone(), false).await, "DoNotRetryIOException");
    refused(admin.revoke(permission.clone()).await, "DoNotRetryIOException");
    let which = pb::GetUserPermissionsRequest::default();
    refused(admin.user_permissions(&which).await, "DoNotRetryIOException");
    refused(admin.has_user_permissions(Some("bob"), vec![permission.permission]).await, "DoNotRetryIOException");
    let call = Method::AggregateGetRowNum.info();
    let nothing = pb::AggregateRequest::default();
    let at_master = admin.master_coprocessor::<pb::AggregateResponse>(call, &nothing).await;
    refused(at_master, "UnknownProtocolException");
    let at_server = admin.server_coprocessor::<pb::AggregateResponse>(&servers[0], call, &nothing).await;
    refused(at_server, "UnknownProtocolException");

    let slow = pb::SlowLogResponseRequest { limit: Some(1), ..pb::SlowLogResponseRequest::default() };
    assert!(admin.slow_log(&servers[0], &slow).await.expect("asked").len() <= 1);
    admin.clear_slow_log(&servers[0]).await.expect("asked");
    admin.balancer_decisions(10).await.expect("asked");
    admin.balancer_rejections(10).await.expect("asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn procedures_locks_and_repairs_are_asked_for() {
    let place = Place::new("client-admin-procedures");
    let connection = place.connect();
    let admin = connection.admin();
    let t = table(&connection, "admin_procedures", &[]).await.name().clone();
    assert!(!admin.procedures().await.expect("listed").is_empty(), "the table's creation is among them");
    let flush = pb::ProcedureDescription {
        signature: "flush-table-proc".into(),
        instance: Some(t.to_string()),
        ..pb::ProcedureDescription::default()
    };
    admin.exec_procedure(&flush).await.expect("done");
    assert!(admin.is_procedure_finished(&flush).await.is_ok());
    let unknown = pb::ProcedureDescription { signature: "no-such-proc".into(), ..flush };
    assert!(admin.exec_procedure_with_return(unknown).await.is_err());
    assert!(!admin.abort_procedure(u64::MAX >> 1, true).await.expect("asked"), "there is none of that number");

    let wanted = pb::LockRequest {
        lock_type: pb::LockType::Exclusive.into(),
        table_name: Some(convert::to_proto::table_name(&t)),
        description: Some("a test".into()),
        ..pb::LockRequest::default()
    };
    let lock = admin.request_lock(wanted).await.expect("asked");
    until(async || admin.keep_lock(lock, true).await.expect("asked").0).await;
    let held = |locks: Vec<pb::LockedResource>| locks.iter().any(|lock| lock.resource_name() == t.as_str());
    assert!(held(admin.locks().await.expect("listed")));
    admin.keep_lock(lock, false).await.expect("given back");
    until(async || !held(admin.locks().await.expect("listed"))).await;

    let hbck = admin.hbck();
    let region = admin.regions(&t).await.expect("located").remove(0).region;
    let encoded = Bytes::copy_from_slice(region.encoded_name().as_bytes());
    let closing = hbck.unassigns(std::slice::from_ref(&encoded), false).await.expect("begun");
    admin.wait_for_procedure(closing[0]).await.expect("closed");
    let set = async |state| hbck.set_region_states_in_meta(&[(encoded.clone(), state)]).await.expect("set");
    assert_eq!(set(pb::region_state::State::Closed).await, [], "it is so already");
    assert_eq!(set(pb::region_state::State::Offline).await, [(encoded.clone(), pb::region_state::State::Closed)]);
    let opening = hbck.assigns(std::slice::from_ref(&encoded), false).await.expect("begun");
    admin.wait_for_procedure(opening[0]).await.expect("opened");
    let was = hbck.set_table_state_in_meta(&t, pb::table_state::State::Enabled).await.expect("set");
    assert_eq!(was, pb::table_state::State::Enabled);
    assert_eq!(hbck.bypass_procedures(&[opening[0]], 10, false, false).await.expect("asked"), [false], "it has ended");
    drop_table(&admin, &t).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replication_peers_are_kept() {
    let place = Place::new("client-admin-peers");
    let connection = place.connect();
    let admin = connection.admin();
    let t = table(&connection, "admin_replicated", &[]).await.name().clone();
    let config = pb::ReplicationPeer {
        clusterkey: Some("localhost:12181:/elsewhere".into()),
        replicate_all: Some(false),
        ..pb::ReplicationPeer::default()
    };
    admin.add_replication_peer("admin_peer", config, false).await.expect("added");
    assert!(!admin.is_replication_peer_enabled("admin_peer").await.expect("asked"));
    let mut config = admin.replication_peer("admin_peer").await.expect("read");
    config.bandwidth = Some(1 << 20);
    admin.update_replication_peer("admin_peer", config).await.expect("changed");
    assert_eq!(admin.replication_peer("admin_peer").await.expect("read").bandwidth(), 1 << 20);
    admin.append_replication_peer_tables("admin_peer", &[(t.clone(), vec![Bytes::from("f")])]).await.expect("added");
    assert_eq!(admin.replication_peer("admin_peer").await.expect("read").table_cfs.len(), 1);
    admin.remove_replication_peer_tables("admin_peer", &[(t.clone(), vec![Bytes::from("f")])]).await.expect("removed");
    let listed = admin.replication_peers(Some("admin_.*")).await.expect("listed");
    assert_eq!(listed.iter().map(|peer| peer.id.as_str()).collect::<Vec<_>>(), ["admin_peer"]);
    admin.enable_replication_peer("admin_peer").await.expect("enabled");
    admin.disable_replication_peer("admin_peer").await.expect("disabled");
    admin.remove_replication_peer("admin_peer").await.expect("removed");
    refused(admin.replication_peer("admin_peer").await, "ReplicationPeerNotFoundException");

    admin.enable_table_replication(&t).await.expect("set");
    let replicated = admin.list_replicated_tables().await.expect("listed");
    assert!(replicated.iter().any(|(table, families)| *table == t && families.len() == 2), "{replicated:?}");
    admin.disable_table_replication(&t).await.expect("set");
    drop_table(&admin, &t).await;
}

fn own_server(root: &Path, settings: &[&str]) -> (Server, Connection) {
    let server = Server::start(root, settings);
    let connection = connect(&format!("127.0.0.1:{}", server.zk_port));
    (server, connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_of_requests_and_of_space_are_set_read_and_enforced() {
    let scratch = Scratch::new("client-admin-quotas");
    let chores = [
        "hbase.master.quotas.observer.chore",
        "hbase.regionserver.quotas.region.size.reporting.chore",
        "hbase.regionserver.quotas.policy.refresher.chore",
    ];
    let mut settings = vec!["hbase.quota.enabled=true".to_owned()];
    for chore in chores {
        settings.extend([format!("{chore}.period=20"), format!("{chore}.delay=20")]);
    }
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let (_server, connection) = own_server(&scratch.0, &settings);
    let admin = connection.admin();
    let t = table(&connection, "admin_quota", &[]).await.name().clone();
    fill(&connection, &t, &["a"]).await;
    admin.flush(&t).await.expect("flushed");
    until(async || admin.space_quota_table_sizes().await.expect("asked").get(&t).is_some_and(|bytes| *bytes > 0)).await;

    let quota = pb::SpaceQuota {
        soft_limit: Some(1),
        violation_policy: Some(pb::SpaceViolationPolicy::NoInserts.into()),
        remove: None,
    };
    let space = pb::SetQuotaRequest {
        table_name: Some(convert::to_proto::table_name(&t)),
        space_limit: Some(pb::SpaceLimitRequest { quota: Some(quota) }),
        ..pb::SetQuotaRequest::default()
    };
    admin.set_quota(&space).await.expect("set");
    let of_namespace = pb::SetQuotaRequest { table_name: None, namespace: Some("default".into()), ..space.clone() };
    admin.set_quota(&of_namespace).await.expect("set");
    let owners: Vec<QuotaOwner> = admin.quotas().await.expect("read").into_iter().map(|quota| quota.owner).collect();
    assert_eq!(owners, [QuotaOwner::Namespace("default".into()), QuotaOwner::Table("admin_quota".into())]);
    let is_violated = |snapshot: Option<pb::SpaceQuotaSnapshot>| {
        snapshot.and_then(|snapshot| snapshot.quota_status).is_some_and(|status| status.in_violation())
    };
    until(async || is_violated(admin.space_quota_of_table(&t).await.expect("asked"))).await;
    until(async || is_violated(admin.space_quota_of_namespace("default").await.expect("asked"))).await;
    assert_eq!(admin.quota_states().await.expect("asked").table_snapshots.len(), 1);
    let server = admin.servers().await.expect("asked").remove(0);
    until(async || admin.space_quotas_at(&server).await.expect("asked").snapshots.len() == 1).await;
    let put = Put::new("b").add("f", "q", "v").build();
    refused(connection.table(&t).put(&put).await, "SpaceLimitingException");

    assert!(admin.set_rpc_throttle(false).await.expect("switched"), "it was on");
    assert!(!admin.is_rpc_throttle_enabled().await.expect("asked"));
    refused(admin.set_exceed_throttle_quota(true).await, "DoNotRetryIOException");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_set_aside_reconfigured_and_stopped() {
    let scratch = Scratch::new("client-admin-servers");
    let (server, connection) = own_server(&scratch.0, &[]);
    let admin = connection.admin();
    let own = admin.servers().await.expect("asked").remove(0);
    admin.update_configuration(&own).await.expect("read anew");
    admin.update_all_configurations().await.expect("read anew");
    assert!(admin.volumes(&own).await.expect("told").volumes.is_empty(), "basalt.volumes is not set");
    refused(admin.drain_volume(&own, "/nowhere").await, "DoNotRetryIOException");
    admin.decommission_servers(std::slice::from_ref(&own), false).await.expect("set aside");
    assert_eq!(admin.decommissioned_servers().await.expect("asked"), std::slice::from_ref(&own));
    admin.recommission_server(&own, &[]).await.expect("taken back");
    assert!(admin.decommissioned_servers().await.expect("asked").is_empty());
    // The only server has nobody to take its regions over.
    let crashed = admin.hbck().schedule_server_crash_procedures(std::slice::from_ref(&own)).await;
    refused(crashed, "DoNotRetryIOException");
    admin.stop_server(&own, "a test").await.expect("asked");
    assert!(server.ended().await.success());

    for stop in [true, false] {
        let (server, connection) = own_server(&scratch.0, &[]);
        let admin = connection.admin();
        if stop { admin.stop_master().await } else { admin.shutdown().await }.expect("asked");
        assert!(server.ended().await.success());
    }
}

#[test]
fn no_call_of_admin_is_left_out() {
    let here = include_str!("admin.rs").to_owned() + include_str!("../client.rs");
    let sources = [
        include_str!("../../../client/src/admin/cluster.rs"),
        include_str!("../../../client/src/admin/families.rs"),
        include_str!("../../../client/src/admin/hbck.rs"),
        include_str!("../../../client/src/admin/logs.rs"),
        include_str!("../../../client/src/admin/namespaces.rs"),
        include_str!("../../../client/src/admin/procedures.rs"),
        include_str!("../../../client/src/admin/quotas.rs"),
        include_str!("../../../client/src/admin/regions.rs"),
        include_str!("../../../client/src/admin/replication.rs"),
        include_str!("../../../client/src/admin/security.rs"),
        include_str!("../../../client/src/admin/servers.rs"),
        include_str!("../../../client/src/admin/snapshots.rs"),
        include_str!("../../../client/src/admin/switches.rs"),
        include_str!("../../../client/src/admin/tables.rs"),
    ];
    let calls = sources.iter().flat_map(|source| source.lines()).filter_map(|line| {
        let rest = line.strip_prefix("    pub async fn ")?;
        rest.split(['(', '<']).next()
    });
    let calls: Vec<&str> = calls.collect();
    let is_here = |call: &str| {
        [format!(".{call}("), format!(".{call}::"), format!("{call}("), format!(", {call};")]
            .iter()
            .any(|form| here.contains(form.as_str()))
    };
    let missing: Vec<&&str> = calls.iter().filter(|call| !is_here(call)).collect();
    assert!(missing.is_empty() && calls.len() > 150, "{missing:?} of {} are not called", calls.len());
}
