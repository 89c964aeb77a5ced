//! Groups of region servers in a cluster: rows that are written while servers and masters die are where they belong, and all there.

use crate::common::{Place, Rows, ServerProcess, two_servers, until};
use basalt_leader::Leader;
use client::Connection;
use model::ServerName;
use proto::pb;
use std::collections::BTreeSet;

fn on(place: &mut Place) {
    let endpoint = "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint";
    place.config.set("hbase.coprocessor.master.classes", endpoint);
}

async fn third(place: &Place, leader: &Leader) -> ServerProcess {
    let server = place.region_server().await;
    until("it is in the cluster", async || leader.servers().contains(&server.name)).await;
    until("it takes regions", async || leader.master().views().servers().0.contains(&server.name)).await;
    server
}

/// The table's regions are on this server alone.
async fn all_on(rows: &Rows, name: &ServerName) -> bool {
    rows.regions_on(name).await.len() == 8
}

async fn group(connection: &Connection, name: &str) -> pb::RsGroupInfo {
    connection.admin().group(name).await.expect("asked").expect("there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_lives_on_its_groups_servers_through_crashes_and_takeovers() {
    let mut place = Place::new().await;
    on(&mut place);
    let (master, leader, servers) = two_servers(&mut place).await;
    let own = third(&place, &leader).await;
    let mut rows = Rows::create(&place).await;
    rows.put(200).await;
    let connection = place.connect();
    let admin = connection.admin();
    admin.add_group("g").await.expect("made");
    admin.move_servers_to_group(&[own.name.address()], "g").await.expect("moved");
    assert_eq!(own.regions(), 0, "what it had is with the default group");
    let tables = [rows.table.clone()];
    let (moved, ()) = tokio::join!(admin.move_tables_to_group(&tables, "g"), rows.put(100));
    moved.expect("moved");
    assert!(all_on(&rows, &own.name).await);
    assert_eq!(own.regions(), 8, "and nothing else");
    rows.expect_all().await;

    // The master dies. The next has the groups, and moves nothing.
    let mut backup = place.master();
    master.kill(Some(leader)).await;
    let leader = backup.leads().await;
    assert!(all_on(&rows, &own.name).await);
    assert_eq!(group(&connection, "g").await.tables.len(), 1);
    rows.put(40).await;

    // The only server of the group dies: its regions wait, the others serve, and tables are made.
    let dead = own.name.clone();
    own.kill().await;
    until("it is known to be dead", async || !leader.servers().contains(&dead)).await;
    until("it is recovered", async || leader.master().unfinished_procedures() == 0).await;
    assert!(rows.regions_on(&servers[0].name).await.is_empty() && rows.regions_on(&servers[1].name).await.is_empty());
    rows.make_and_drop("other").await;

    // So does the master: the next one starts although regions wait.
    let mut next = place.master();
    backup.kill(Some(leader)).await;
    let leader = next.leads().await;
    assert!(rows.regions_on(&servers[0].name).await.is_empty() && rows.regions_on(&servers[1].name).await.is_empty());
    rows.make_and_drop("another").await;

    // A server that joins is of the default group; moved to theirs, it gets them, with every row.
    let own = third(&place, &leader).await;
    let default = group(&connection, "default").await;
    assert_eq!(default.servers.len(), 3);
    admin.move_servers_to_group(&[own.name.address()], "g").await.expect("moved");
    until("all are open there", async || all_on(&rows, &own.name).await && own.regions() == 8).await;
    rows.put(40).await;
    rows.expect_all().await;
    assert!(leader.master().run_hbck_chore().await);
    let report = leader.master().hbck_report().expect("it ran");
    assert!(report.orphan_regions_on_servers.is_empty(), "{report:?}");
}

/// A server and the master die at once: the next master places what the server had before it has read hbase:rsgroup, and does so by the nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_died_with_the_master_is_opened_in_its_group() {
    let mut place = Place::new().await;
    on(&mut place);
    let (master, leader, servers) = two_servers(&mut place).await;
    let own = third(&place, &leader).await;
    let connection = place.connect();
    let admin = connection.admin();
    admin.set_balancer(false, true).await.expect("nothing is mended later");
    admin.add_group("g").await.expect("made");
    admin.move_servers_to_group(&[own.name.address()], "g").await.expect("moved");
    let mut rows = Rows::create(&place).await;
    rows.put(100).await;
    let nodes: BTreeSet<String> =
        place.tree.children("/hbase/rsgroup").expect("there").into_iter().map(|name| name.to_string()).collect();
    assert_eq!(nodes, BTreeSet::from(["default".to_owned(), "g".to_owned()]));

    place.config.set("hbase.master.wait.on.regionservers.mintostart", "2");
    let mut next = place.master();
    // The one with hbase:meta: that is placed before anything is read at all.
    let [first, second] = servers;
    let (dying, second) = if rows.meta_is_on(&first.name).await { (first, second) } else { (second, first) };
    dying.kill().await;
    master.kill(Some(leader)).await;
    let leader = next.leads().await;
    until("all are open again", async || all_on(&rows, &second.name).await).await;
    until("nothing goes on", async || leader.master().unfinished_procedures() == 0).await;
    assert_eq!(own.regions(), 0, "the server of the other group has nothing, hbase:meta and its like neither");
    rows.expect_all().await;
}
