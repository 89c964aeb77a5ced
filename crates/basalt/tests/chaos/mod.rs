//! A cluster that is harmed for as long as one likes: servers, masters, DataNodes, the NameNode and ZooKeeper are killed, stopped and continued,
//! regions are moved, split, merged, flushed, compacted and balanced, while clients write a linked list ([`list`]) and read what was acknowledged. At
//! the end every acknowledged node is there, no read missed one at any time, and the master's own check finds nothing. Follows:
//! `IntegrationTestBigLinkedList` under a `ChaosMonkey`, which may itself write beside it ([`hbases_list`]).
//!
//! `cargo xtask cluster --minutes 20` runs it, with `--masters java` below HBase's masters, with `--hbases-list` beside HBase's own list. The seed decides what is done and written; how it
//! interleaves is the machine's business.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

mod hbases_list;
mod list;

use crate::joined::lab::{LIMIT, Lab, Piece, SESSION_TIMEOUT_MS, regions, servers, until};
use base::Rng;
use bytes::Bytes;
use client::{Connection, Options, RegionLocation};
use hbases_list::HbasesList;
use list::List;
use model::{FamilyDescriptor, Get, ServerName, TableDescriptor, TableName};
use proto::pb::ProcedureState;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Region servers.
const SERVERS: usize = 4;
/// Regions at the beginning, and when no more are split.
const REGIONS: u8 = 12;
const MOST_REGIONS: usize = 30;
/// Tasks that write the list, and tasks that read it.
const CHAINS: usize = 4;
/// A call to a server that is stopped is given up after so long.
const RPC_TIMEOUT: Duration = Duration::from_secs(4);
/// Of a region server of HBase's: with less one that holds most regions after many harms, and splits a log beside them, runs out of memory.
const JAVA_HEAP: &str = "768m";
/// For so long a NameNode is not there. A region server of HBase's waits little longer for one.
const NAME_NODE_IS_DOWN: Duration = Duration::from_secs(5);
/// For so long a DataNode stands still, or ZooKeeper is not there: longer than sessions last.
const LONG: Duration = Duration::from_secs(12);

/// What is done to the cluster.
#[derive(Clone, Copy, Debug)]
enum Harm {
    KillServer,
    KillServerOfMeta,
    KillTwoServers,
    StopServer,
    KillMaster,
    StopMaster,
    KillMasterAndServer,
    KillJavaServer,
    KillDataNode,
    StopDataNode,
    KillNameNode,
    KillZooKeeper,
}

const HARMS: [Harm; 12] = [
    Harm::KillServer,
    Harm::KillDataNode,
    Harm::KillServerOfMeta,
    Harm::KillNameNode,
    Harm::KillTwoServers,
    Harm::StopServer,
    Harm::StopDataNode,
    Harm::KillMaster,
    Harm::StopMaster,
    Harm::KillZooKeeper,
    Harm::KillMasterAndServer,
    Harm::KillJavaServer,
];

/// Of those of HDFS and ZooKeeper that were started again, the process.
type Below = BTreeMap<String, Piece>;

struct Monkey {
    lab: Lab,
    connection: Connection,
    table: TableName,
    rng: Rng,
    list: Arc<List>,
    hbases_list: Option<HbasesList>,
    /// HBase's masters lead, and not ours.
    java_leads: bool,
    masters: Vec<Piece>,
    /// Ours.
    servers: Vec<Piece>,
    /// HBase's.
    javas: Vec<Piece>,
    below: Below,
    /// Processes that were started: each has a log of its own.
    started: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_whatever_dies() {
    let Some(lab) = Lab::open("chaos") else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let minutes = number("BASALT_CHAOS_MINUTES").unwrap_or(1);
    let seed = number("BASALT_SEED").unwrap_or(1);
    let java_leads = std::env::var("BASALT_CHAOS_MASTERS").is_ok_and(|masters| masters == "java");
    let masters = if java_leads { "java" } else { "basalt" };
    println!("replay with: cargo xtask cluster --minutes {minutes} --masters {masters} --seed {seed}");
    let mut monkey = Monkey::begin(lab, seed, java_leads).await;
    let tasks = monkey.list.start();
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut turn = seed as usize;
    while Instant::now() < end {
        monkey.change_something().await;
        monkey.harm(HARMS[turn % HARMS.len()]).await;
        // Every kind has its turn; which is next to which differs from round to round.
        turn += if (turn + 1).is_multiple_of(HARMS.len()) { 1 + monkey.rng.below(2) as usize } else { 1 };
        monkey.change_something().await;
    }
    monkey.list.end();
    for task in tasks {
        task.await.expect("no panic");
    }
    monkey.lab.note(&format!("the end: {}", monkey.list.counts()));
    let nodes = monkey.list.verify().await.unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    monkey.lab.note(&format!("{nodes} nodes are there, each names the one before"));
    if let Some(list) = monkey.hbases_list.take() {
        list.verify(&monkey.lab).await;
    }
    monkey.nothing_is_found().await;
}

impl Monkey {
    async fn begin(lab: Lab, seed: u64, java_leads: bool) -> Monkey {
        let connection = connect(&lab);
        let table = TableName::parse("list").expect("a name");
        let list = List::new(&connection, &table, seed, CHAINS);
        let mut monkey = Monkey {
            lab,
            connection,
            table,
            rng: Rng::seeded(seed),
            list,
            hbases_list: HbasesList::wanted(),
            java_leads,
            masters: Vec::new(),
            servers: Vec::new(),
            javas: Vec::new(),
            below: Below::new(),
            started: 0,
        };
        for _ in 0..2 {
            let master = monkey.start_master();
            monkey.masters.push(master);
        }
        let of_java = if java_leads { 2 } else { 1 };
        for _ in 0..SERVERS - of_java {
            let server = monkey.start("regionserver");
            monkey.servers.push(server);
        }
        let ours = SERVERS - of_java;
        until("the servers are in the cluster", async || servers(&monkey.connection).await.len() == ours).await;
        for _ in 0..of_java {
            monkey.javas.push(java_server(&monkey.lab));
        }
        until("HBase's are", async || servers(&monkey.connection).await.len() == SERVERS).await;
        let descriptor = TableDescriptor::new(monkey.table.clone(), [FamilyDescriptor::new("f")]);
        let splits: Vec<Bytes> =
            (1..REGIONS).map(|n| Bytes::from(vec![(u32::from(n) * 256 / u32::from(REGIONS)) as u8])).collect();
        monkey.connection.admin().create_table(&descriptor, &splits).await.expect("made");
        monkey.all_served().await;
        let whose = if java_leads { "HBase's" } else { "ours" };
        monkey.lab.note(&format!("two masters, {whose}; {ours} servers, and {of_java} of HBase's; the list is begun"));
        monkey
    }

    fn start(&mut self, what: &str) -> Piece {
        self.started += 1;
        self.lab.basalt(&format!("{what}-{}", self.started), what)
    }

    fn start_master(&mut self) -> Piece {
        if !self.java_leads {
            return self.start("master");
        }
        self.started += 1;
        self.lab.java_master(&format!("master-{}", self.started))
    }

    /// Answers how long it takes until a row of each region can be read.
    async fn all_served(&self) -> Duration {
        let began = Instant::now();
        let table = self.connection.table(&self.table);
        for n in 0..REGIONS {
            let row = vec![(u32::from(n) * 256 / u32::from(REGIONS)) as u8, 1];
            until("a row of each region is read", async || table.get(&Get::new(row.clone())).await.is_ok()).await;
        }
        began.elapsed()
    }

    async fn places(&self) -> Vec<RegionLocation> {
        regions(&self.connection, &self.table).await
    }

    /// Something that users and chores do: its answer does not matter, for the cluster may be busy with what was done to it.
    async fn change_something(&mut self) {
        let admin = self.connection.admin();
        let places = self.places().await;
        let Some(place) = places.get(self.rng.below(places.len() as u64) as usize) else { return };
        let name = place.region.name();
        let live = servers(&self.connection).await;
        let done = match self.rng.below(8) {
            0 | 1 if !live.is_empty() => {
                let to = &live[self.rng.below(live.len() as u64) as usize];
                let encoded = place.region.encoded_name();
                ("a move", admin.move_region(encoded.as_bytes(), Some(to)).await)
            }
            7 if !live.is_empty() => {
                let to = &live[self.rng.below(live.len() as u64) as usize];
                let meta = regions(&self.connection, &TableName::meta()).await;
                let Some(meta) = meta.first().map(|at| at.region.encoded_name().to_string()) else { return };
                ("a move of hbase:meta", admin.move_region(meta.as_bytes(), Some(to)).await)
            }
            2 if places.len() < MOST_REGIONS => ("a split", admin.split_region(name, None).await),
            3 if places.len() > REGIONS as usize => {
                let at = self.rng.below(places.len() as u64 - 1) as usize;
                let pair = [&places[at], &places[at + 1]]
                    .map(|place| Bytes::copy_from_slice(place.region.encoded_name().as_bytes()));
                ("a merge", admin.merge_regions(&pair, false).await)
            }
            4 => ("a flush", admin.flush(&self.table).await),
            5 => ("a major compaction", admin.major_compact(&self.table).await),
            6 => ("the balancer", admin.balance(false, false).await.map(drop)),
            _ => return,
        };
        let (what, result) = done;
        let how = result.map_or_else(|error| format!("refused: {error}"), |()| "done".to_owned());
        self.lab.note(&format!("{what} {how}"));
    }

    async fn harm(&mut self, harm: Harm) {
        if let Some(list) = &mut self.hbases_list {
            list.go_on(&self.lab);
        }
        self.list.take_slowest();
        let began = Instant::now();
        match harm {
            Harm::KillServer => {
                let at = self.rng.below(self.servers.len() as u64) as usize;
                self.kill_server(at);
            }
            Harm::KillServerOfMeta => {
                let at = self.server_of_meta().await.unwrap_or_default();
                self.kill_server(at);
            }
            Harm::KillTwoServers => {
                self.kill_server(0);
                self.kill_server(1);
            }
            Harm::StopServer => self.stop_server().await,
            Harm::KillMaster => self.kill_master().await,
            Harm::StopMaster => self.stop_master().await,
            Harm::KillMasterAndServer => {
                self.kill_server(self.servers.len() - 1);
                self.kill_master().await;
            }
            Harm::KillJavaServer => {
                let at = self.rng.below(self.javas.len() as u64) as usize;
                self.kill_java_server(at);
            }
            Harm::KillDataNode => self.kill_data_node().await,
            Harm::StopDataNode => {
                let name = format!("dn{}", self.rng.below(3));
                self.lab.signal_below(&name, Signal::STOP);
                tokio::time::sleep(LONG).await;
                self.lab.signal_below(&name, Signal::CONT);
            }
            Harm::KillNameNode => self.kill_name_node().await,
            Harm::KillZooKeeper => {
                self.lab.kill_below("zk");
                tokio::time::sleep(LONG).await;
                self.start_below("zk");
            }
        }
        let served = self.all_served().await;
        assert!(!self.servers.iter_mut().any(Piece::has_ended), "a server of ours has ended that nobody killed");
        self.replace_javas();
        until("all servers are in the cluster", async || servers(&self.connection).await.len() == SERVERS).await;
        let (whole, slowest) = (began.elapsed(), self.list.take_slowest());
        self.lab.note(&format!(
            "{harm:?}: all regions served after {served:.1?}, all servers back after {whole:.1?}, slowest call {slowest:.1?}; {}",
            self.list.counts()
        ));
    }

    /// Kills a DataNode; it is back when clients are served without it.
    async fn kill_data_node(&mut self) {
        let name = format!("dn{}", self.rng.below(3));
        let before = self.lab.times_said_below(&name, "successfully registered with NN");
        self.lab.kill_below(&name);
        self.all_served().await;
        self.start_below(&name);
        until("the DataNode is back", async || {
            self.lab.times_said_below(&name, "successfully registered with NN") > before
        })
        .await;
    }

    async fn kill_name_node(&mut self) {
        let before = self.lab.times_said_below("nn", "Safe mode is OFF");
        self.lab.kill_below("nn");
        tokio::time::sleep(NAME_NODE_IS_DOWN).await;
        self.start_below("nn");
        until("the NameNode takes writes", async || self.lab.times_said_below("nn", "Safe mode is OFF") > before).await;
    }

    fn start_below(&mut self, name: &str) {
        self.below.insert(name.to_owned(), self.lab.start_below(name));
    }

    fn kill_java_server(&mut self, at: usize) {
        let another = java_server(&self.lab);
        std::mem::replace(&mut self.javas[at], another).kill();
    }

    /// HBase's servers end where HDFS or ZooKeeper fail them: others take their place.
    fn replace_javas(&mut self) {
        for at in 0..self.javas.len() {
            if self.javas[at].has_ended() {
                self.lab.note("a region server of HBase's has ended by itself");
                self.javas[at] = java_server(&self.lab);
            }
        }
        if self.java_leads {
            for at in 0..self.masters.len() {
                if self.masters[at].has_ended() {
                    self.lab.note("a master of HBase's has ended by itself");
                    self.masters[at] = self.start_master();
                }
            }
        }
    }

    /// Kills it, and starts another in its place.
    fn kill_server(&mut self, at: usize) {
        let another = self.start("regionserver");
        std::mem::replace(&mut self.servers[at], another).kill();
    }

    async fn server_of_meta(&self) -> Option<usize> {
        let at = regions(&self.connection, &TableName::meta()).await.first()?.server.clone();
        self.servers.iter().position(|piece| piece.is(&at))
    }

    /// Stops a server for twice its session, during which others take its regions, and lets it go on: it must answer nobody with what it has,
    /// and end.
    async fn stop_server(&mut self) {
        let at = self.rng.below(self.servers.len() as u64) as usize;
        let probe = connect(&self.lab);
        let table = probe.table(&self.table);
        // It learns where the regions are.
        self.list.expect_newest(&table).await;
        self.servers[at].signal(Signal::STOP);
        let another = self.start("regionserver");
        let stopped = std::mem::replace(&mut self.servers[at], another);
        tokio::time::sleep(Duration::from_millis(2 * u64::from(SESSION_TIMEOUT_MS))).await;
        stopped.signal(Signal::CONT);
        self.list.expect_newest(&table).await;
        assert!(stopped.ends(), "a server without its session ends");
    }

    async fn active_master(&self) -> Option<(usize, ServerName)> {
        let name = self.connection.admin().active_master().await.ok()?;
        let at = self.masters.iter().position(|piece| piece.is(&name))?;
        Some((at, name))
    }

    async fn another_master(&mut self, at: usize) -> Piece {
        let another = self.start_master();
        std::mem::replace(&mut self.masters[at], another)
    }

    async fn another_is_active(&self, than: &ServerName) {
        until("another master is active", async || {
            self.connection.admin().active_master().await.is_ok_and(|active| active != *than)
        })
        .await;
    }

    async fn kill_master(&mut self) {
        let Some((at, name)) = self.active_master().await else { panic!("no master is active") };
        self.another_master(at).await.kill();
        self.another_is_active(&name).await;
    }

    /// Stops the active master for twice its session and lets it go on: it must give no order any more, and end.
    async fn stop_master(&mut self) {
        let Some((at, name)) = self.active_master().await else { panic!("no master is active") };
        self.masters[at].signal(Signal::STOP);
        let stopped = self.another_master(at).await;
        tokio::time::sleep(Duration::from_millis(2 * u64::from(SESSION_TIMEOUT_MS))).await;
        stopped.signal(Signal::CONT);
        self.another_is_active(&name).await;
        assert!(stopped.ends(), "a master without its session ends");
    }

    /// No region in transition for long, no server unknown, nothing that HBase's own check would tell of.
    async fn nothing_is_found(&self) {
        let admin = self.connection.admin();
        until("no procedure is left", async || {
            let left = admin.procedures().await.unwrap_or_default();
            left.iter()
                .all(|procedure| matches!(procedure.state(), ProcedureState::Success | ProcedureState::Rolledback))
        })
        .await;
        let checked = self.lab.command("hbck").args(["hbck", "--json"]).output().expect("ran");
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "hbck finds something:\n{said}{}", String::from_utf8_lossy(&checked.stderr));
        self.lab.note("hbck finds nothing");
    }
}

/// A client that does not wait long for servers that are stopped.
fn java_server(lab: &Lab) -> Piece {
    lab.java_server_with("java", JAVA_HEAP)
}

fn connect(lab: &Lab) -> Connection {
    lab.connect_with(|options| Options { rpc_timeout: RPC_TIMEOUT, scan_timeout: LIMIT, ..options })
}
