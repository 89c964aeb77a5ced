//! Favored nodes of regions, as HBase's own tool plans, writes, shows and checks them.

use super::hosts::{Does, Hosts};
use super::program::{Jars, Program, ends_well};
use crate::joined::lab::{Lab, regions, servers, until};
use bytes::Bytes;
use client::Connection;
use model::{FamilyDescriptor, Get, TableDescriptor, TableName};
use prost::Message as _;
use proto::pb;
use std::collections::BTreeMap;

const TABLE: &str = "placed";
const REGIONS: usize = 6;

/// Which servers each region would best be on, by the region's name: `host:port` one after another.
type Plan = BTreeMap<String, String>;

/// The tool with these words behind `-tables`.
async fn run(lab: &Lab, class: &'static str, words: &[&str]) -> String {
    let program = Program::new(Jars::Newest, class).named(&format!("placement{}", words[0]));
    let started = program.words(&["-tables", TABLE]).words(words).start(lab).expect("its jars are there");
    let said = ends_well(started, async || {}).await;
    for failed in ["Failed to update", "has not been updated"] {
        assert!(!said.contains(failed), "{words:?}: {said}");
    }
    said
}

/// The plan that it has printed.
fn printed(said: &str) -> Plan {
    let words = |line: &str, before: &str| line.split_once(before).map(|(_, behind)| behind.trim().to_owned());
    let mut region = None;
    let mut plan = Plan::new();
    for line in said.lines() {
        if let Some(name) = words(line, ": Region: ") {
            region = Some(name);
        } else if let Some(nodes) = words(line, ": Its favored nodes: ") {
            plan.insert(region.take().expect("a region before its nodes"), nodes);
        }
    }
    plan
}

/// The plan that hbase:meta has.
async fn in_meta(connection: &Connection) -> Plan {
    let meta = connection.table(&TableName::meta());
    let mut plan = Plan::new();
    for at in regions(connection, &TableName::parse(TABLE).expect("a name")).await {
        let name = at.region.name().clone();
        let row = meta.get(&Get::new(name.clone())).await.expect("hbase:meta is served");
        if let Some(nodes) = row.value(b"info", b"fn") {
            let nodes = pb::FavoredNodes::decode(nodes).expect("favored nodes").favored_node;
            let nodes: Vec<_> =
                nodes.iter().map(|n| format!("{}:{}", n.host_name, n.port.unwrap_or_default())).collect();
            plan.insert(String::from_utf8_lossy(&name).into_owned(), nodes.join(";"));
        }
    }
    plan
}

#[tokio::test(flavor = "multi_thread")]
async fn hbases_maintainer_plans_writes_and_checks_favored_nodes() {
    let Some(lab) = Lab::open("integration-placement") else { return };
    let hosts = Hosts::new(&lab, &[]);
    hosts.start("127.0.3.1", "127.0.3.1", Does::Master);
    let of_servers = ["127.0.3.2", "127.0.3.3", "127.0.3.4"];
    of_servers.iter().for_each(|host| hosts.start(host, host, Does::RegionServer));
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    let descriptor = TableDescriptor::new(TableName::parse(TABLE).expect("a name"), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = (1..REGIONS).map(|n| Bytes::from(n.to_string())).collect();
    connection.admin().create_table(&descriptor, &splits).await.expect("made");

    let class = "org.apache.hadoop.hbase.master.RegionPlacementMaintainer";
    let maintain = async |words: &[&str]| run(&lab, class, words).await;

    // Only planned.
    let planned = printed(&maintain(&["-n"]).await);
    assert_eq!(planned.len(), REGIONS);
    assert!(planned.values().all(|nodes| of_servers.iter().all(|host| nodes.contains(host))), "{planned:?}");
    assert_eq!(in_meta(&connection).await, Plan::new());

    // Written, and found again.
    let written = printed(&maintain(&["-w"]).await);
    assert_eq!(in_meta(&connection).await, written);
    assert_eq!(printed(&maintain(&["-p"]).await), written);
    lab.note(&format!("hbase:meta has the favored nodes of {} regions, as HBase's tool planned them", written.len()));

    // The servers are told, too; of each region the tool counts what they answer.
    let said = maintain(&["-u", "-l", "false", "-m", "false", "-munkres"]).await;
    let updated = printed(&said);
    assert_eq!(in_meta(&connection).await, updated);
    let told: Vec<&str> = said.lines().filter(|line| line.contains(" has updated ")).collect();
    let number = |word: &str| word.split(' ').next().and_then(|word| word.parse::<usize>().ok()).expect("a number");
    let counts = told.iter().filter_map(|line| line.split_once(" has updated ")?.1.split_once(" / "));
    let (took, of): (Vec<_>, Vec<_>) = counts.map(|(took, of)| (number(took), number(of))).unzip();
    assert_eq!(took, of, "{told:?}");
    assert_eq!(took.iter().sum::<usize>(), REGIONS, "{told:?}");

    // One region's nodes are others'.
    let (region, nodes) = updated.first_key_value().expect("a region");
    let turned = nodes.split(';').rev().collect::<Vec<_>>();
    maintain(&["-overwrite", "-r", region, "-f", &turned.join(",")]).await;
    let now = in_meta(&connection).await;
    assert_eq!(now.get(region), Some(&turned.join(";")));
    assert_eq!(now.iter().filter(|of| updated.get(of.0) != Some(of.1)).count(), 1, "{now:?}, before {updated:?}");

    let said = maintain(&["-v", "-d"]).await;
    for line in [
        format!("Region Assignment Verification for Table: {TABLE}"),
        format!("Total regions : {REGIONS}"),
        format!("Total regions on favored nodes {REGIONS}"),
        "Total unassigned regions: 0".into(),
        "Total regions NOT on favored nodes: 0".into(),
        "Total regions without favored nodes: 0".into(),
        "Total hosting region servers: 3".into(),
    ] {
        assert!(said.contains(&line), "no {line:?} in:\n{said}");
    }
    maintain(&["-ld"]).await;
    lab.note("HBase's tool finds each region on one of its favored nodes");
}
