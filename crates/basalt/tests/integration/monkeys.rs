//! HBase's monkeys, whose orders its agents carry out: `ChaosMonkeyRunner` puts commands into ZooKeeper, and the agent of a host takes them there.

use super::hosts::{Does, Hosts};
use super::program::{Jars, Program, last_of};
use crate::joined::lab::{Lab, regions, servers, until, until_within};
use client::Put;
use model::{FamilyDescriptor, Get, ServerName, TableDescriptor, TableName};
use std::time::Duration;

/// The monkey waits for up to a minute before it begins, and a minute between what it does; the agent takes a command each half minute.
const AT_MOST: Duration = Duration::from_secs(600);
const ROWS: usize = 1000;
/// What the monkey is told.
const PROPERTIES: &str = "monkey.properties";

/// The monkey kills the master and a region server, both on the host that has an agent, and starts them again; no row is gone.
#[tokio::test(flavor = "multi_thread")]
async fn hbases_monkey_kills_and_starts_servers_by_its_agent() {
    let Some(lab) = Lab::open("integration-monkeys") else { return };
    // The agent goes by the name of its machine.
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let address = address_of(&machine);
    let hosts = Hosts::new(&lab, &[]);
    hosts.start(&machine, &address, Does::Master);
    // hbase:meta comes to the first, which the monkey leaves alone.
    hosts.start("127.0.4.2", "127.0.4.2", Does::RegionServer);
    let connection = lab.connect();
    until("a server is in the cluster", async || servers(&connection).await.len() == 1).await;
    hosts.start(&machine, &address, Does::RegionServer);
    until("two servers are in the cluster", async || servers(&connection).await.len() == 2).await;
    let on_the_machine = async || servers(&connection).await.into_iter().find(|server| *server.host == *machine);
    let victim = on_the_machine().await.expect("it was there");
    let master = connection.admin().active_master().await.expect("a master");
    let table = TableName::parse("t").expect("a name");
    connection
        .admin()
        .create_table(&TableDescriptor::new(table.clone(), [FamilyDescriptor::new("f")]), &[])
        .await
        .expect("made");
    let region = regions(&connection, &table).await.remove(0).region;
    connection.admin().move_region(region.encoded_name().as_bytes(), Some(&victim)).await.expect("moved");
    let rows = connection.table(&table);
    for n in 0..ROWS {
        rows.put(&Put::new(format!("row{n}")).add("f", "q", format!("value{n}")).build()).await.expect("acknowledged");
    }

    let agent =
        Program::new(Jars::OfTheTests, "org.apache.hadoop.hbase.chaos.ChaosService").words(&["-chaosagent", "start"]);
    let Some(words) = agent.command(&lab) else { return };
    let agent = hosts.launch(&machine, agent.name(), &words);
    until("the agent is there", async || agent.said().contains("/hbase/chaosAgents/")).await;
    let monkey = Program::new(Jars::OfTheTests, "org.apache.hadoop.hbase.chaos.util.ChaosMonkeyRunner")
        .with_all(hosts.managed())
        .with("hbase.it.clustermanager.class", "org.apache.hadoop.hbase.ZNodeClusterManager")
        .words(&["-m", "serverKilling", "-monkeyProps", PROPERTIES, "-tableName", "t", "-familyName", "f"]);
    // It looks for them where its configuration is.
    let conf = std::path::PathBuf::from(lab.file(monkey.name()));
    std::fs::create_dir_all(&conf).expect("a directory");
    std::fs::write(conf.join(PROPERTIES), "skip.meta.rs=true\n").expect("written");
    let monkey = monkey.start(&lab).expect("its jars are there");
    lab.note("the monkey and the agent are started");
    let another =
        |now: Option<ServerName>, before: &ServerName| now.is_some_and(|now| now != *before && now.host == before.host);
    let what = "the master was killed, and is there again";
    until_within(AT_MOST, what, async || another(connection.admin().active_master().await.ok(), &master)).await;
    lab.note(what);
    let what = "the region server was killed, and is there again";
    until_within(AT_MOST, what, async || another(on_the_machine().await, &victim)).await;
    lab.note(what);
    monkey.kill();
    let said = agent.said();
    agent.kill();
    for command in ["proc_master", "proc_regionserver"] {
        let killed = format!("grep {command} | grep -v grep | tr -s ' ' | cut -d ' ' -f2 | xargs kill -s SIGKILL");
        assert!(said.contains(&killed), "the agent did not do it:\n{}", last_of(&said));
    }
    for n in 0..ROWS {
        let row = rows.get(&Get::new(format!("row{n}"))).await.expect("served");
        assert_eq!(row.value(b"f", b"q"), Some(format!("value{n}").as_bytes()), "row{n}");
    }
}

fn address_of(machine: &str) -> String {
    use std::net::ToSocketAddrs as _;
    let mut found = (machine, 0)
        .to_socket_addrs()
        .unwrap_or_else(|error| panic!("the machine's name {machine} has no address: {error}"));
    found.find(std::net::SocketAddr::is_ipv4).expect("an IPv4 address").ip().to_string()
}
