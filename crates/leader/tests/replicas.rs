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

    let mut backup = place.master();
    until("the backup waits", async || {
        place.tree.children("/hbase/backup-masters").is_ok_and(|names| names.len() == 1)
    })
    .await;
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
    let second = || leader.master().cluster().with_replicas_of(&described(1).name).filter(|node| node.info.replica_id == 2);
    let names: Vec<Bytes> = second().map(|node| node.info.name().clone()).collect();
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
