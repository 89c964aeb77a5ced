//! Quotas that are set at a master, and held to by region servers of other processes, which read hbase:quota by themselves.

use crate::common::{Place, Rows, ServerProcess, two_servers, until};
use client::{Connection, Put};
use model::TableName;
use proto::pb;

const ON: (&str, &str) = ("hbase.quota.enabled", "true");

async fn place(settings: &[(&str, &str)]) -> Place {
    let mut place = Place::new().await;
    settings.iter().for_each(|(key, value)| place.config.set(*key, *value));
    place
}

/// So many an hour, on each server.
fn hourly(of_type: pb::ThrottleType, limit: u64) -> pb::SetQuotaRequest {
    throttle(of_type, limit, pb::TimeUnit::Hours)
}

fn throttle(of_type: pb::ThrottleType, limit: u64, unit: pb::TimeUnit) -> pb::SetQuotaRequest {
    let quota = pb::TimedQuota {
        time_unit: unit as i32,
        soft_limit: Some(limit),
        share: None,
        scope: Some(pb::QuotaScope::Machine as i32),
    };
    let throttle = pb::ThrottleRequest { r#type: Some(of_type as i32), timed_quota: Some(quota) };
    pb::SetQuotaRequest { throttle: Some(throttle), ..Default::default() }
}

fn of_table(table: &TableName, quota: pb::SpaceQuota) -> pb::SetQuotaRequest {
    pb::SetQuotaRequest {
        table_name: Some(convert::to_proto::table_name(table)),
        space_limit: Some(pb::SpaceLimitRequest { quota: Some(quota) }),
        ..Default::default()
    }
}

/// A client that tries once, and a row on each server.
struct Writer {
    connection: Connection,
    table: TableName,
    rows: Vec<String>,
}

impl Writer {
    async fn new(place: &Place, user: &str, rows: &Rows, servers: &[ServerProcess]) -> Writer {
        let mut on_each = Vec::new();
        for server in servers {
            let region = rows.regions_on(&server.name).await.remove(0).region;
            // The first region's begins with nothing.
            on_each.push(format!("{}!", String::from_utf8_lossy(&region.start_key)));
        }
        Writer { connection: place.connect_as(user, 0), table: rows.table.clone(), rows: on_each }
    }

    /// The class of what each server says to a write; empty where it takes it.
    async fn put(&self) -> Vec<String> {
        let table = self.connection.table(&self.table);
        let mut said = Vec::new();
        for row in &self.rows {
            let put = table.put(&Put::new(row).add("f", "q", "v").build()).await;
            said.push(put.err().map_or(String::new(), |error| error.short_class().unwrap_or("?").to_owned()));
        }
        said
    }
}

const TAKEN: [&str; 2] = ["", ""];
const THROTTLED: [&str; 2] = ["RpcThrottlingException"; 2];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn limits_hold_on_every_server_as_they_are_set_switched_and_removed() {
    use pb::ThrottleType::{ReadNumber, WriteNumber};
    let mut place = place(&[ON]).await;
    let (_master, _leader, servers) = two_servers(&mut place).await;
    let rows = Rows::create(&place).await;
    let admin = rows.connection.admin();
    let bob = Writer::new(&place, "bob", &rows, &servers).await;
    let alice = Writer::new(&place, "alice", &rows, &servers).await;
    for _ in 0..10 {
        assert_eq!(bob.put().await, TAKEN, "there is no quota");
    }
    let of_bob = |request| pb::SetQuotaRequest { user_name: Some("bob".into()), ..request };
    admin.set_quota(&of_bob(hourly(WriteNumber, 2))).await.expect("set");
    until("both servers have read it", async || bob.put().await == THROTTLED).await;
    assert_eq!(alice.put().await, TAKEN);

    assert!(admin.set_rpc_throttle(false).await.expect("switched"), "it was on");
    assert_eq!(bob.put().await, TAKEN, "every server has heard of it when the client has its answer");
    let third = place.region_server().await;
    until("one that starts learns it", async || !third.server().quotas().is_on()).await;
    assert!(!admin.set_rpc_throttle(true).await.expect("switched"));
    assert_eq!(bob.put().await, THROTTLED);
    assert!(third.server().quotas().is_on());

    // An order that never came: the node alone says so, and the server that is told to read its configuration again.
    place.set_rpc_throttle_node(false);
    assert!(third.server().quotas().is_on());
    admin.update_configuration(&third.name).await.expect("read again");
    until("it has read the switch", async || !third.server().quotas().is_on()).await;
    place.set_rpc_throttle_node(true);
    admin.update_configuration(&third.name).await.expect("read again");
    until("it has read it again", async || third.server().quotas().is_on()).await;

    let of_servers = |request| pb::SetQuotaRequest { region_server: Some("all".into()), ..request };
    for of_type in [ReadNumber, WriteNumber] {
        admin.set_quota(&of_servers(throttle(of_type, 100_000, pb::TimeUnit::Seconds))).await.expect("set");
    }
    assert!(!admin.set_exceed_throttle_quota(true).await.expect("switched"));
    until("the servers have room for bob", async || bob.put().await == TAKEN).await;
    assert!(admin.set_exceed_throttle_quota(false).await.expect("switched"));
    until("they keep it to themselves", async || bob.put().await == THROTTLED).await;

    let removal = pb::SetQuotaRequest { throttle: Some(pb::ThrottleRequest::default()), ..Default::default() };
    admin.set_quota(&of_bob(removal)).await.expect("removed");
    until("bob has no quota any more", async || bob.put().await == TAKEN).await;
    assert!(servers.iter().all(|server| server.server().quotas().throttled_calls() > 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_starts_reads_what_was_set_before_it() {
    let mut place = place(&[ON]).await;
    let (_master, leader, [first, second]) = two_servers(&mut place).await;
    let rows = Rows::create(&place).await;
    let request = pb::SetQuotaRequest { user_name: Some("bob".into()), ..hourly(pb::ThrottleType::WriteNumber, 1) };
    rows.connection.admin().set_quota(&request).await.expect("set");
    let third = place.region_server().await;
    let (a, b) = (first.name.clone(), second.name.clone());
    first.kill().await;
    second.kill().await;
    until("the third has every region", async || third.regions() >= 8 && leader.master().unfinished_procedures() == 0)
        .await;
    assert!(rows.regions_on(&a).await.is_empty() && rows.regions_on(&b).await.is_empty());
    let bob = Writer::new(&place, "bob", &rows, std::slice::from_ref(&third)).await;
    until("it knows the limit", async || bob.put().await == ["RpcThrottlingException"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sizes_are_reported_and_tables_that_use_too_much_space_are_closed_to_writes() {
    let chores = [
        "hbase.regionserver.quotas.region.size.reporting.chore",
        "hbase.regionserver.quotas.policy.refresher.chore",
        "hbase.master.quotas.observer.chore",
    ];
    let times: Vec<_> = chores.iter().flat_map(|chore| [format!("{chore}.delay"), format!("{chore}.period")]).collect();
    let mut settings = vec![ON];
    settings.extend(times.iter().map(|key| (key.as_str(), "50")));
    let mut place = place(&settings).await;
    let (_master, _leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(80).await;
    let admin = rows.connection.admin();
    admin.flush(&rows.table).await.expect("flushed");
    let bytes: u64 = servers.iter().flat_map(|server| server.server().region_sizes()).map(|(_, bytes)| bytes).sum();
    until("the master knows the sizes", async || {
        let known = admin.space_quota_table_sizes().await.expect("asked");
        // hbase:meta and hbase:quota are not counted here.
        known.get(&rows.table).is_some_and(|size| *size > 0 && *size <= bytes)
    })
    .await;

    let quota = pb::SpaceQuota {
        soft_limit: Some(100),
        violation_policy: Some(pb::SpaceViolationPolicy::NoInserts as i32),
        remove: None,
    };
    let bob = Writer::new(&place, "bob", &rows, &servers).await;
    admin.set_quota(&of_table(&rows.table, quota)).await.expect("set");
    until("both servers refuse writes", async || bob.put().await == ["SpaceLimitingException"; 2]).await;
    for server in &servers {
        let known = admin.space_quotas_at(&server.name).await.expect("asked").snapshots;
        let status = known[0].snapshot.and_then(|snapshot| snapshot.quota_status).expect("a status");
        assert!(status.in_violation(), "{}", server.name);
    }
    let removal = pb::SpaceQuota { remove: Some(true), ..pb::SpaceQuota::default() };
    admin.set_quota(&of_table(&rows.table, removal)).await.expect("removed");
    until("writes are taken again", async || bob.put().await == TAKEN).await;
}
