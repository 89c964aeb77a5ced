//! Read replicas on other servers than their primaries: where they are opened, what they show, and what becomes of them when servers, masters and
//! descriptors change.

use crate::common::{Place, ServerProcess, two_servers, until};
use basalt_leader::Leader;
use base::{Clock, SystemClock, TimestampMs};
use bytes::Bytes;
use client::{Connection, Put, ScanOptions, Table};
use master::cluster::RegionState;
use model::{FamilyDescriptor, Get, Scan, ServerName, TableDescriptor, TableName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

const REFRESH: &str = "hbase.regionserver.storefile.refresh.period";

fn described(replication: u32) -> TableDescriptor {
    let mut table = TableDescriptor::new(TableName::parse("t").expect("a name"), [FamilyDescriptor::new("f")]);
    table.attributes.insert("REGION_REPLICATION".into(), replication.to_string().into());
    table
}

async fn create(place: &Place, replication: u32) -> (Connection, Table) {
    let connection = place.connect();
    let splits: Vec<Bytes> = ["h", "p"].map(Bytes::from).to_vec();
    connection.admin().create_table(&described(replication), &splits).await.expect("made");
    let table = connection.table(&described(1).name);
    (connection, table)
}

/// Where each region of the table and its read replicas are open, by the region's start key.
fn places(leader: &Leader) -> BTreeMap<Bytes, Vec<(u32, ServerName)>> {
    let cluster = leader.master().cluster();
    let mut places = BTreeMap::<Bytes, Vec<_>>::new();
    for node in cluster.with_replicas_of(&described(1).name).filter(|node| node.state == RegionState::Open) {
        let at = node.location.clone().expect("it is open");
        places.entry(node.info.start_key.clone()).or_default().push((node.info.replica_id, at));
    }
    places.values_mut().for_each(|replicas| replicas.sort_by_key(|(id, _)| *id));
    places
}

/// Whether each of three regions has so many replicas, itself counted, all on different servers.
fn are_apart(leader: &Leader, replication: usize) -> bool {
    let places = places(leader);
    let is_apart = |replicas: &Vec<(u32, ServerName)>| {
        let servers: BTreeSet<&ServerName> = replicas.iter().map(|(_, server)| server).collect();
        replicas.len() == replication && servers.len() == replication
    };
    places.len() == 3 && places.values().all(is_apart)
}

async fn put(table: &Table, value: &str) {
    for row in ["a", "k", "x"] {
        table.put(&Put::new(row).add("f", "q", value).build()).await.expect("written");
    }
}

/// A replica's values, which must say that they are one's.
async fn on_replica(table: &Table, id: u32) -> Vec<Option<Bytes>> {
    let mut values = Vec::new();
    for row in ["a", "k", "x"] {
        let row = table.get_from_replica(&Get { timeline: true, ..Get::new(row) }, id).await.expect("read");
        assert!(row.is_stale());
        values.push(row.value(b"f", b"q").map(Bytes::copy_from_slice));
    }
    values
}

fn thrice(value: &str) -> Vec<Option<Bytes>> {
    vec![Some(Bytes::copy_from_slice(value.as_bytes())); 3]
}

/// Of a table's regions, how many a server has open.
fn open_on(server: &ServerProcess) -> usize {
    server.server().regions().iter().filter(|region| region.info().table == described(1).name).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn they_are_opened_apart_from_their_primaries_and_find_what_those_have_in_files() {
    let mut place = Place::new().await;
    place.config.set(REFRESH, "30");
    let (_master, leader, servers) = two_servers(&mut place).await;
    let (connection, table) = create(&place, 2).await;
    assert!(are_apart(&leader, 2), "{:?}", places(&leader));
    assert_eq!(servers.iter().map(open_on).collect::<Vec<_>>(), [3, 3]);
    let admin = connection.admin();
    for value in ["v1", "v2"] {
        put(&table, value).await;
        admin.flush(&described(1).name).await.expect("flushed");
        until("the replicas have found it", async || on_replica(&table, 1).await == thrice(value)).await;
    }
    // What is compacted away is found in the archive until they look again.
    admin.major_compact(&described(1).name).await.expect("asked");
    let has_one_file = |server: &ServerProcess| {
        let regions = server.server().regions();
        let mut replicas = regions.iter().filter(|region| region.info().is_replica());
        replicas.all(|region| region.store_file_paths(b"f").is_some_and(|paths| paths.len() == 1))
    };
    until("the replicas have found the output", async || servers.iter().all(has_one_file)).await;
    assert_eq!(on_replica(&table, 1).await, thrice("v2"));
    let mut scanner =
        table.scan(Scan { timeline: true, ..Scan::default() }, ScanOptions { replica_id: 1, ..ScanOptions::default() });
    let mut rows = 0;
    while scanner.next().await.expect("read").is_some() {
        rows += 1;
    }
    assert!(rows == 3 && scanner.is_stale());

    // A third replica comes with a third server, and they go by the descriptor.
    let third = place.region_server().await;
    until("the third is known", async || leader.servers().len() == 3).await;
    admin.modify_table(&described(3)).await.expect("raised");
    assert!(are_apart(&leader, 3), "{:?}", places(&leader));
    assert_eq!(on_replica(&table, 2).await, thrice("v2"));
    admin.modify_table(&described(2)).await.expect("lowered");
    assert!(are_apart(&leader, 2) && open_on(&third) + servers.iter().map(open_on).sum::<usize>() == 6);
    admin.disable_table(&described(1).name).await.expect("disabled");
    assert_eq!(open_on(&third) + servers.iter().map(open_on).sum::<usize>(), 0);
    admin.enable_table(&described(1).name).await.expect("enabled");
    assert!(are_apart(&leader, 2), "{:?}", places(&leader));
    assert_eq!(on_replica(&table, 1).await, thrice("v2"));
    admin.modify_table(&described(1)).await.expect("lowered");
    assert!(are_apart(&leader, 1) && open_on(&third) + servers.iter().map(open_on).sum::<usize>() == 3);
    assert!(leader.master().run_hbck_chore().await);
}

/// Two machines stand in one rack and one in another: no region has both of its replicas in the first, as long as the other is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[expect(clippy::disallowed_methods, reason = "an operator's file, which is on this machine")]
async fn they_are_opened_in_different_racks() {
    let file = std::env::temp_dir().join(format!("basalt-replica-racks-{}", std::process::id()));
    std::fs::write(&file, "127.0.0.1 /a\n127.0.0.2 /a\n127.0.0.3 /b\n").expect("written");
    let mut place = Place::new().await;
    place.config.set("hbase.util.ip.to.rack.determiner", "org.apache.hadoop.net.TableMapping");
    place.config.set("net.topology.table.file.name", file.to_str().expect("text"));
    place.config.set("hbase.master.wait.on.regionservers.mintostart", "3");
    let mut master = place.master();
    let on = |last: u8| place.region_server_on(Ipv4Addr::new(127, 0, 0, last));
    let (_first, _second, third) = tokio::join!(on(1), on(2), on(3));
    let leader = master.leads().await;
    let (connection, _table) = create(&place, 2).await;
    let are_in_both = || {
        let places = places(&leader);
        let in_b = |replicas: &Vec<(u32, ServerName)>| replicas.iter().filter(|(_, at)| *at == third.name).count();
        places.len() == 3 && places.values().all(|replicas| replicas.len() == 2 && in_b(replicas) == 1)
    };
    assert!(are_in_both(), "{:?}", places(&leader));
    // The third has as many as both others: the balancer leaves them, for to share a rack is worse.
    connection.admin().balance(false, false).await.expect("asked");
    until("nothing moves", async || leader.master().unfinished_procedures() == 0).await;
    assert!(are_in_both(), "{:?}", places(&leader));
    std::fs::remove_file(&file).expect("removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_killed_server_had_is_opened_apart_again() {
    let mut place = Place::new().await;
    place.config.set(REFRESH, "30");
    let (_master, leader, [first, second]) = two_servers(&mut place).await;
    let third = place.region_server().await;
    until("the third is known", async || leader.servers().len() == 3).await;
    let (connection, table) = create(&place, 2).await;
    put(&table, "v1").await;
    connection.admin().flush(&described(1).name).await.expect("flushed");
    put(&table, "v2").await;
    assert!(are_apart(&leader, 2), "{:?}", places(&leader));
    third.kill().await;
    until("it is recovered", async || leader.servers().len() == 2 && leader.master().unfinished_procedures() == 0)
        .await;
    until("all are apart", async || are_apart(&leader, 2)).await;
    for row in ["a", "k", "x"] {
        let row = table.get(&Get::new(row)).await.expect("read");
        assert_eq!(row.value(b"f", b"q"), Some(&b"v2"[..]), "of the primary");
    }
    connection.admin().flush(&described(1).name).await.expect("flushed");
    until("the replicas have found it", async || on_replica(&table, 1).await == thrice("v2")).await;
    // With one server all are on it: better there than nowhere.
    second.kill().await;
    until("all are on one", async || {
        let places = places(&leader);
        places.len() == 3
            && places.values().all(|replicas| replicas.iter().all(|(_, at)| *at == first.name))
            && places.values().all(|replicas| replicas.len() == 2)
    })
    .await;
    until("it answers for both", async || on_replica(&table, 1).await == thrice("v2")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn they_stay_where_they_are_when_a_backup_takes_over_and_the_balancer_parts_them() {
    let mut place = Place::new().await;
    place.config.set(REFRESH, "30");
    place.config.set("hbase.master.wait.on.regionservers.mintostart", "1");
    let mut master = place.master();
    let first = place.region_server().await;
    let leader = master.leads().await;
    let (connection, table) = create(&place, 2).await;
    assert_eq!(open_on(&first), 6, "there is no other server");
    put(&table, "v1").await;
    connection.admin().flush(&described(1).name).await.expect("flushed");
    // As in HBase the balancer parts them by machines.
    let second = place.region_server_on(std::net::Ipv4Addr::new(127, 0, 0, 2)).await;
    until("the second is known", async || leader.servers().len() == 2).await;
    until("they are apart", async || {
        connection.admin().balance(false, false).await.expect("asked");
        are_apart(&leader, 2)
    })
    .await;
    until("nothing moves", async || leader.master().unfinished_procedures() == 0).await;
    let before = places(&leader);

    let mut backup = place.backup_master().await;
    master.kill(Some(leader)).await;
    let leader = backup.leads().await;
    assert_eq!(places(&leader), before, "nothing was opened anew");
    assert_eq!([open_on(&first), open_on(&second)].iter().sum::<usize>(), 6);
    put(&table, "v2").await;
    connection.admin().flush(&described(1).name).await.expect("flushed");
    until("the replicas have found it", async || on_replica(&table, 1).await == thrice("v2")).await;
}

/// A wall clock that stands still: nothing that waits for a time to have passed since the last time comes to its turn.
struct Standing(SystemClock);

impl Clock for Standing {
    fn now_ms(&self) -> TimestampMs {
        TimestampMs(1_700_000_000_000)
    }

    fn monotonic_us(&self) -> u64 {
        self.0.monotonic_us()
    }
}

/// The flush that names all files for one replica is not the last for half a minute: others come after it, and are told as soon as they are found.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn they_are_told_as_soon_as_they_are_open_however_short_a_time_ago_another_was() {
    let mut place = Place::with_clock(Arc::new(Standing(SystemClock::new()))).await;
    place.config.set("hbase.region.replica.replication.enabled", "true");
    let (_master, leader, _two) = two_servers(&mut place).await;
    let (connection, table) = create(&place, 2).await;
    let told = async |value: &str, replicas: u32| {
        put(&table, value).await;
        until("the replicas were told", async || {
            for id in 1..replicas {
                match table.get_from_replica(&Get::new("x"), id).await {
                    Ok(row) if row.value(b"f", b"q") == Some(value.as_bytes()) => {}
                    _ => return false,
                }
            }
            true
        })
        .await;
        for id in 1..replicas {
            until("all of them", async || on_replica(&table, id).await == thrice(value)).await;
        }
    };
    told("v1", 2).await;
    let _third = place.region_server_on(Ipv4Addr::new(127, 0, 0, 2)).await;
    until("the third is known", async || leader.servers().len() == 3).await;
    connection.admin().modify_table(&described(3)).await.expect("raised");
    assert!(are_apart(&leader, 3), "{:?}", places(&leader));
    told("v2", 3).await;
    // One that closes and opens again is told at once, too.
    let admin = connection.admin();
    let names: Vec<Bytes> = {
        let cluster = leader.master().cluster();
        let second = cluster.with_replicas_of(&described(1).name).filter(|node| node.info.replica_id == 2);
        second.map(|node| node.info.name().clone()).collect()
    };
    for name in &names {
        admin.unassign(name).await.expect("closed");
    }
    put(&table, "v3").await;
    for name in &names {
        admin.assign(name).await.expect("opened");
    }
    told("v4", 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn they_are_told_of_what_is_written_before_it_is_in_files() {
    let mut place = Place::new().await;
    place.config.set("hbase.region.replica.replication.enabled", "true");
    let (_master, leader, [first, second]) = two_servers(&mut place).await;
    let (connection, table) = create(&place, 2).await;
    assert!(are_apart(&leader, 2), "{:?}", places(&leader));
    let shows = async |value: &str| {
        // One that has just opened answers no reads for a moment.
        let Ok(Some(_)) =
            table.get_from_replica(&Get::new("a"), 1).await.map(|row| row.value(b"f", b"q").map(<[u8]>::len))
        else {
            return false;
        };
        on_replica(&table, 1).await == thrice(value)
    };
    for n in 0..20 {
        put(&table, &format!("v{n}")).await;
    }
    until("the replicas were told", async || shows("v19").await).await;
    let held = |server: &ServerProcess| -> u64 {
        let regions = server.server().regions();
        regions.iter().filter(|region| region.info().is_replica()).map(|region| region.memstore_bytes()).sum()
    };
    // The flush that a replica asks for when it opens may come after what was written so far.
    until("they hold what is in no file yet", async || {
        put(&table, "v19").await;
        until("the replicas were told", async || shows("v19").await).await;
        held(&first) + held(&second) > 0
    })
    .await;
    connection.admin().flush(&described(1).name).await.expect("flushed");
    until("their memory is free", async || held(&first) + held(&second) == 0).await;
    assert_eq!(on_replica(&table, 1).await, thrice("v19"));
    put(&table, "v20").await;
    until("the replicas were told", async || shows("v20").await).await;

    // With the server of a primary goes what was not told; its opening elsewhere says what there is.
    let third = place.region_server().await;
    until("the third is known", async || leader.servers().len() == 3).await;
    put(&table, "v21").await;
    second.kill().await;
    until("it is recovered", async || leader.servers().len() == 2 && leader.master().unfinished_procedures() == 0)
        .await;
    until("all are apart", async || are_apart(&leader, 2)).await;
    until("the replicas were told", async || shows("v21").await).await;
    put(&table, "v22").await;
    until("the replicas were told", async || shows("v22").await).await;

    // One that opens anew finds what its primary has in memory.
    connection.admin().modify_table(&described(1)).await.expect("lowered");
    put(&table, "v23").await;
    connection.admin().modify_table(&described(2)).await.expect("raised");
    until("the replicas have all", async || shows("v23").await).await;
    put(&table, "v24").await;
    until("the replicas were told", async || shows("v24").await).await;
    drop(third);
}

/// Where clients of either kind find hbase:meta and its read replicas, by their numbers: as ZooKeeper's nodes say, and as a server answers.
async fn meta_places(connections: &[&Connection]) -> Vec<Vec<(u32, ServerName)>> {
    let mut places = Vec::new();
    for connection in connections {
        let found = connection.table(&TableName::meta()).replicas_of(b"", true).await.unwrap_or_default();
        places.push(found.into_iter().map(|at| (at.region.replica_id, at.server)).collect());
    }
    places
}

/// Whether there are so many of it, itself counted, on different servers, and both kinds of client know.
async fn is_meta_found(leader: &Leader, connections: &[&Connection], count: usize) -> bool {
    let meta = TableName::meta();
    let open: BTreeMap<u32, ServerName> = {
        let cluster = leader.master().cluster();
        let open = cluster.with_replicas_of(&meta).filter(|node| node.state == RegionState::Open);
        open.filter_map(|node| Some((node.info.replica_id, node.location.clone()?))).collect()
    };
    let servers: BTreeSet<&ServerName> = open.values().collect();
    let expected: Vec<(u32, ServerName)> = open.iter().map(|(id, at)| (*id, at.clone())).collect();
    open.len() == count
        && servers.len() == count
        && meta_places(connections).await.iter().all(|found| *found == expected)
}

fn meta_nodes(place: &Place) -> Vec<String> {
    let mut names = place.tree.children("/hbase").expect("there");
    names.retain(|name| name.starts_with("meta-region-server"));
    names.sort();
    names
}

/// Whether replica `id` of hbase:meta tells of the table's regions.
async fn tells_of(connection: &Connection, id: u32, table: &str) -> bool {
    let meta = connection.table(&TableName::meta());
    let scan = Scan {
        timeline: true,
        start_row: Bytes::from(format!("{table},")),
        stop_row: Bytes::from(format!("{table}-")),
        ..Scan::default()
    };
    let mut scanner = meta.scan(scan, ScanOptions { replica_id: id, ..ScanOptions::default() });
    let mut open = 0;
    while let Ok(Some(row)) = scanner.next().await {
        open += usize::from(row.value(b"info", b"state") == Some(b"OPEN"));
    }
    open == 3 && scanner.is_stale()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hbase_meta_has_them_too() {
    let mut place = Place::new().await;
    place.config.set("hbase.meta.replica.count", "3");
    place.config.set("hbase.region.replica.replication.catalog.enabled", "true");
    place.config.set("hbase.master.wait.on.regionservers.mintostart", "3");
    let mut master = place.master();
    let (first, second, third) = tokio::join!(place.region_server(), place.region_server(), place.region_server());
    let leader = master.leads().await;
    let (by_nodes, by_rpc) = (place.connect(), place.connect_by_rpc(master.address()));
    let both = [&by_nodes, &by_rpc];
    until("they are open, apart and found", async || is_meta_found(&leader, &both, 3).await).await;
    assert_eq!(meta_nodes(&place), ["meta-region-server", "meta-region-server-1", "meta-region-server-2"]);
    let (connection, table) = create(&place, 1).await;
    put(&table, "v1").await;
    for id in [1, 2] {
        until("the replicas were told of the table", async || tells_of(&by_nodes, id, "t").await).await;
        until("by either way", async || tells_of(&by_rpc, id, "t").await).await;
    }
    let refused = connection.table(&TableName::meta()).get_from_replica(&Get::new("t,,"), 3).await;
    assert!(refused.is_err(), "there is no such replica");
    until("nothing moves", async || leader.master().unfinished_procedures() == 0).await;
    until("all servers have reported what they have", async || {
        assert!(leader.master().run_hbck_chore().await);
        leader.master().hbck_report().is_some_and(|report| report.inconsistent_regions.is_empty())
    })
    .await;

    // A server dies that has hbase:meta itself, or a replica: what it had is opened elsewhere, and the others are told.
    let fourth = place.region_server().await;
    until("the fourth is known", async || leader.servers().len() == 4).await;
    let mut servers = vec![first, second, third, fourth];
    for id in [0, 1] {
        let at = meta_places(&[&by_nodes]).await[0].iter().find(|(found, _)| *found == id).expect("there").1.clone();
        let victim = servers.iter().position(|server| server.name == at).expect("one of ours");
        servers.remove(victim).kill().await;
        until("it is recovered", async || {
            leader.master().unfinished_procedures() == 0 && is_meta_found(&leader, &both, 3).await
        })
        .await;
        let name = TableName::parse(&format!("t{id}")).expect("a name");
        let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
        connection.admin().create_table(&descriptor, &["h", "p"].map(Bytes::from)).await.expect("made");
        for id in [1, 2] {
            until("the replicas were told of the new table", async || tells_of(&by_nodes, id, name.as_str()).await)
                .await;
        }
        servers.push(place.region_server().await);
        until("there are four again", async || leader.servers().len() == 4).await;
    }

    // The next master finds them where they are.
    let before = meta_places(&both).await;
    let mut backup = place.backup_master().await;
    master.kill(Some(leader)).await;
    let leader = backup.leads().await;
    let by_rpc = place.connect_by_rpc(backup.address());
    let both = [&by_nodes, &by_rpc];
    assert_eq!(meta_places(&both).await, before, "nothing was opened anew");
    assert!(is_meta_found(&leader, &both, 3).await);

    // As many as its descriptor says.
    let admin = connection.admin();
    let mut described = admin.describe(&TableName::meta()).await.expect("asked").expect("there");
    assert_eq!(described.region_replication(), 3);
    described.attributes.insert("REGION_REPLICATION".into(), "2".into());
    admin.modify_table(&described).await.expect("lowered");
    until("one is gone", async || is_meta_found(&leader, &both, 2).await).await;
    assert_eq!(meta_nodes(&place), ["meta-region-server", "meta-region-server-1"]);
    put(&table, "v2").await;
    until("the other is told", async || tells_of(&by_nodes, 1, "t").await).await;
    described.attributes.insert("REGION_REPLICATION".into(), "1".into());
    admin.modify_table(&described).await.expect("lowered");
    until("none is left", async || is_meta_found(&leader, &both, 1).await).await;
    assert_eq!(meta_nodes(&place), ["meta-region-server"]);
    assert_eq!(table.get(&Get::new("a")).await.expect("read").value(b"f", b"q"), Some(&b"v2"[..]));
}
