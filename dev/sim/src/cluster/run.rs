//! A run: a cluster at work, everything that can happen to it in an order that the seed draws, and what must be so whatever happens.

use super::catalog::Catalog;
use super::client::Caller;
use super::ensemble::EnsembleDefect;
use super::gate::Fate;
use super::hdfs::{HdfsDefect, NameNode};
use super::replicas::Replicas;
use super::servers::ServerDefect;
use super::work::{self, Memory, Worker};
use super::world::{Cluster, Role, settings};
use crate::calls::RowCells;
use crate::work::{families, table};
use crate::{Violation, ensure};
use base::Rng;
use bytes::Bytes;
use convert::to_proto;
use master::cluster::{RegionState, TableState};
use master::meta::{MetaContent, RegionRow, ReplicaRow};
use model::{RegionInfo, ServerName, TableDescriptor, TableName};
use parking_lot::Mutex;
use proto::methods::Method;
use proto::pb;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Clients at work.
const WORKERS: u64 = 3;
/// By then everything serves again after the faults have ended: the session's timeout, leases' recovery, a master that starts and a crash behind it.
const SERVES_WITHIN_MS: u64 = 150_000;
/// By then replicas show what there is: one that failed in the midst of faults is left alone for some time, and longer each time.
const REPLICAS_SHOW_WITHIN_MS: u64 = 400_000;
/// Between two tries to read everything.
const ASK_AGAIN_MS: u64 = 200;
/// What may still be under way when nobody asks any more is over by then.
const REST_MS: u64 = 6_000;

/// A bug that is planted to see whether a run notices it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Of the model of HDFS.
    Hdfs(HdfsDefect),
    /// Of the model of the ensemble.
    Ensemble(EnsembleDefect),
    /// Of a region server.
    Server(ServerDefect),
}

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Region servers.
    pub servers: usize,
    /// Masters.
    pub masters: usize,
    /// How often there is trouble, and quiet after it.
    pub episodes: u32,
    /// Actions in each trouble.
    pub actions: u32,
    /// Whether every run has read replicas, not some.
    pub replicas: bool,
    /// Whether it says what happens.
    pub speak: bool,
    /// What is planted.
    pub defect: Option<Defect>,
}

impl Plan {
    /// The command that plays a seed again.
    pub fn again(&self, seed: u64) -> String {
        let Plan { servers, masters, episodes, actions, replicas, .. } = self;
        let of_run = format!("--servers {servers} --masters {masters} --episodes {episodes} --actions {actions}");
        let with_replicas = if *replicas { " --replicas" } else { "" };
        format!("cargo xtask sim {of_run}{with_replicas} --seed {seed}")
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { servers: 3, masters: 2, episodes: 2, actions: 40, replicas: false, speak: false, defect: None }
    }
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say what they count")]
pub struct Summary {
    pub hash: u64,
    pub events: u64,
    pub world_ms: u64,
    pub acked: u64,
    pub refused: u64,
    pub maybe: u64,
    pub reads: u64,
    pub replica_reads: u64,
    pub kills: u64,
    pub kills_inside_calls: u64,
    pub stops: u64,
    pub cuts: u64,
    pub outages: u64,
    pub orders: u64,
    pub ended_sessions: u64,
    pub ended_by_themselves: u64,
    pub checks: u64,
    pub commits: u64,
    pub doubled: u64,
}

impl Summary {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Summary) {
        self.hash ^= other.hash.rotate_left((other.events % 64) as u32);
        self.events += other.events;
        self.world_ms += other.world_ms;
        self.acked += other.acked;
        self.refused += other.refused;
        self.maybe += other.maybe;
        self.reads += other.reads;
        self.replica_reads += other.replica_reads;
        self.kills += other.kills;
        self.kills_inside_calls += other.kills_inside_calls;
        self.stops += other.stops;
        self.cuts += other.cuts;
        self.outages += other.outages;
        self.orders += other.orders;
        self.ended_sessions += other.ended_sessions;
        self.ended_by_themselves += other.ended_by_themselves;
        self.checks += other.checks;
        self.commits += other.commits;
        self.doubled += other.doubled;
    }
}

/// A run that saw a promise broken.
#[derive(Debug)]
pub struct Failed {
    /// The run.
    pub seed: u64,
    /// What it was like.
    pub plan: Plan,
    /// What was seen.
    pub violation: Violation,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}\n  again: {}", self.seed, self.violation, self.plan.again(self.seed))
    }
}

/// Runs one seed.
///
/// # Errors
/// A promise broken.
pub fn run(seed: u64, plan: &Plan) -> Result<Summary, Failed> {
    let failed = |violation| Failed { seed, plan: *plan, violation };
    let mut run = Run::new(seed, *plan);
    run.play().map_err(failed)?;
    let Run { mut summary, cluster, memory, catalog, .. } = run;
    let counts = memory.lock().promises.counts;
    (summary.acked, summary.refused, summary.maybe) = (counts.acked, counts.refused, counts.maybe);
    summary.reads = counts.reads;
    summary.replica_reads = memory.lock().replica_reads;
    (summary.commits, summary.doubled) = (catalog.map_or(0, |catalog| catalog.commits), cluster.net.doubled());
    summary.world_ms = cluster.now_ms();
    summary.ended_sessions = cluster.ensemble.ended_sessions();
    summary.ended_by_themselves = cluster.ends.values().sum();
    (summary.hash, summary.events) = cluster.trace.hash();
    Ok(summary)
}

struct Run {
    cluster: Cluster,
    rng: Rng,
    plan: Plan,
    memory: Arc<Mutex<Memory>>,
    summary: Summary,
    admin: Option<(Handle, Arc<Caller>)>,
    workers: Vec<(JoinHandle<()>, Arc<Caller>)>,
    ends: Arc<AtomicBool>,
    snapshots: u64,
    replicas: Replicas,
    /// Once the tables are made.
    catalog: Option<Catalog>,
}

fn panicked(text: String) -> Violation {
    Violation(text)
}

impl Run {
    fn new(seed: u64, plan: Plan) -> Run {
        let rng = Rng::seeded(seed ^ 0x5255_4E00);
        let replicas = Replicas::of(seed, plan.replicas);
        let mut config = settings(&rng);
        replicas.set(seed, &mut config);
        let mut cluster = Cluster::new(seed, plan.servers, plan.masters, config);
        if plan.speak {
            cluster.trace.speak();
        }
        match plan.defect {
            Some(Defect::Hdfs(defect)) => cluster.hdfs.plant(defect),
            Some(Defect::Ensemble(defect)) => cluster.ensemble.plant(defect),
            Some(Defect::Server(defect)) => cluster.plant(defect),
            None => {}
        }
        Run {
            cluster,
            rng,
            plan,
            memory: Arc::default(),
            summary: Summary::default(),
            admin: None,
            workers: Vec::new(),
            ends: Arc::default(),
            snapshots: 0,
            replicas,
            catalog: None,
        }
    }

    fn play(&mut self) -> Result<(), Violation> {
        self.set_up()?;
        for _ in 0..self.plan.episodes {
            self.begin_work();
            for _ in 0..self.plan.actions {
                self.act();
                let ms = 30 + self.rng.below(700);
                self.pass(ms)?;
            }
            self.heal();
            self.come_to_rest()?;
            self.check()?;
        }
        Ok(())
    }

    /// Time passes, and nothing is seen that must not be.
    fn pass(&mut self, ms: u64) -> Result<(), Violation> {
        let end_ms = self.cluster.now_ms() + ms;
        while self.cluster.now_ms() < end_ms {
            self.cluster.step().map_err(panicked)?;
            self.watch()?;
        }
        Ok(())
    }

    /// What holds at every moment.
    fn watch(&mut self) -> Result<(), Violation> {
        if let Some(violation) = self.memory.lock().violation.take() {
            return Err(violation);
        }
        if let Some(catalog) = &mut self.catalog {
            catalog.look(&self.cluster)?;
        }
        let mut answering: BTreeMap<Arc<str>, String> = BTreeMap::new();
        for (seat, _, server, holds) in self.cluster.serving() {
            if !holds {
                continue;
            }
            for region in server.regions() {
                let info = region.info();
                if let Some(other) = answering.insert(info.encoded_name().clone(), seat.clone()) {
                    return Err(Violation(format!("{} is open on {other} and on {seat}", info.name_string())));
                }
            }
        }
        Ok(())
    }

    fn until(&mut self, at_most_ms: u64, mut is_so: impl FnMut(&mut Run) -> bool) -> Result<bool, Violation> {
        let end_ms = self.cluster.now_ms() + at_most_ms;
        while self.cluster.now_ms() < end_ms {
            if is_so(self) {
                return Ok(true);
            }
            self.pass(50)?;
        }
        Ok(is_so(self))
    }

    fn admin(&mut self) -> (Handle, Arc<Caller>) {
        let cluster = &mut self.cluster;
        self.admin.get_or_insert_with(|| cluster.patient_clients(Duration::from_secs(5))).clone()
    }

    fn set_up(&mut self) -> Result<(), Violation> {
        for role in [Role::Master, Role::Server] {
            self.cluster.names(role).iter().for_each(|name| self.cluster.start(name));
        }
        let servers = self.plan.servers;
        let is_up = self.until(60_000, |run| {
            let leads = run.cluster.leader().is_some_and(|master| master.is_initialized());
            leads && run.cluster.serving().len() == servers
        })?;
        ensure(is_up, || format!("the cluster does not come up: {:?}", self.cluster.ends))?;
        let splits: Vec<Bytes> = [vec!["25", "50", "75"], vec!["50"], vec!["20", "40", "60", "80"]]
            [self.rng.below(3) as usize]
            .iter()
            .map(|key| Bytes::from(*key))
            .collect();
        let mut descriptor = TableDescriptor::new(table(), families(&self.rng));
        if self.replicas != Replicas::None {
            descriptor.attributes.insert("REGION_REPLICATION".into(), "2".into());
        }
        let master = self.cluster.leader().ok_or_else(|| Violation("nobody leads".into()))?;
        let made = self.cluster.wait_for(60_000, async move {
            let id = master.create_table(descriptor, &splits, &master::Caller::default()).await?;
            master.wait_for(id).await
        });
        made.map_err(panicked)?.map_err(|error| Violation(format!("no table can be made: {error}")))?;
        self.catalog = Some(Catalog::default());
        let (_, caller) = self.admin();
        let written = self.cluster.wait_for(60_000, async move {
            for row in work::first_rows() {
                caller.mutate(&table(), &row, None, true, 100).await?;
            }
            Ok::<_, crate::calls::Failure>(())
        });
        written.map_err(panicked)?.map_err(|error| Violation(format!("no row can be written: {error:?}")))?;
        work::first_rows_are_there(&mut self.memory.lock());
        Ok(())
    }

    fn begin_work(&mut self) {
        self.ends = Arc::default();
        self.cluster.net.double([0, 20][self.rng.below(2) as usize]);
        for number in 0..WORKERS {
            // Some wait longer for an answer than a session lasts.
            let patience = Duration::from_secs([4, 30][self.rng.below(2) as usize]);
            let (handle, caller) = self.cluster.patient_clients(patience);
            let worker = Worker {
                number,
                caller: caller.clone(),
                memory: self.memory.clone(),
                rng: Arc::new(Rng::seeded(self.rng.next_u64())),
                trace: self.cluster.trace.clone(),
                ends: self.ends.clone(),
                replicas: self.replicas != Replicas::None,
            };
            self.workers.push((handle.spawn(worker.run()), caller));
        }
    }

    fn any(&self, role: Role) -> String {
        let names = self.cluster.names(role);
        names[self.rng.below(names.len() as u64) as usize].clone()
    }

    fn any_of_all(&self) -> String {
        if self.plan.masters > 0 && self.rng.one_in(3) { self.any(Role::Master) } else { self.any(Role::Server) }
    }

    /// Has the admin ask for something, and does not wait.
    fn order(&mut self, what: String, asked: impl Future<Output = Result<(), String>> + Send + 'static) {
        self.summary.orders += 1;
        let trace = self.cluster.trace.clone();
        trace.note(&what);
        let (handle, _) = self.admin();
        handle.spawn(async move {
            let outcome = asked.await;
            trace.note(&format!("{what}: {outcome:?}"));
        });
    }

    fn regions(&self) -> Vec<(RegionInfo, ServerName)> {
        let Some(master) = self.cluster.leader() else { return Vec::new() };
        let cluster = master.cluster();
        let live = cluster.regions_of(&table()).filter(|node| node.is_live());
        live.filter_map(|node| Some((node.info.clone(), node.location.clone()?))).collect()
    }

    fn any_region(&self) -> Option<(RegionInfo, ServerName)> {
        let regions = self.regions();
        let at = self.rng.below(regions.len().max(1) as u64) as usize;
        regions.get(at).cloned()
    }

    fn act(&mut self) {
        let choice = self.rng.below(100);
        match choice {
            0..=19 => self.reshape(),
            20..=34 => self.flush_or_compact(),
            35..=42 => {
                let name = self.any_of_all();
                if self.cluster.lives(&name) {
                    self.summary.kills += 1;
                    let again_ms = 300 + self.rng.below(15_000);
                    self.cluster.kill(&name, Some(again_ms));
                }
            }
            43..=52 => {
                let (name, calls) = (self.any_of_all(), 1 + self.rng.below(120));
                if let Some(process) = self.cluster.process(&name) {
                    self.summary.kills_inside_calls += 1;
                    process.gate().at_call(calls, Fate::Dies);
                }
            }
            53..=60 => {
                let (name, calls) = (self.any_of_all(), 1 + self.rng.below(120));
                if let Some(process) = self.cluster.process(&name) {
                    self.summary.stops += 1;
                    process.gate().at_call(calls, Fate::Stops);
                }
            }
            61..=65 => {
                let (name, ms) = (self.any_of_all(), 200 + self.rng.below(25_000));
                self.summary.stops += 1;
                self.cluster.stop(&name, ms);
            }
            66..=75 => self.cut(),
            76..=79 => {
                self.summary.outages += 1;
                let name_node = [NameNode::Down, NameNode::SafeMode][self.rng.below(2) as usize];
                self.cluster.trace.note(&format!("name node {name_node:?}"));
                self.cluster.hdfs.set_name_node(name_node);
            }
            80..=82 => {
                self.summary.outages += 1;
                self.cluster.trace.note("the ensemble has lost its quorum");
                self.cluster.ensemble.set_quorum(false);
            }
            83..=85 => self.cluster.hdfs.lose_answers([0, 40, 8][self.rng.below(3) as usize]),
            86..=87 => self.cluster.hdfs.break_pipelines([0, 60, 10][self.rng.below(3) as usize]),
            88 => self.cluster.net.delay([3, 60, 900][self.rng.below(3) as usize]),
            89 => self.cluster.net.double([0, 12, 3][self.rng.below(3) as usize]),
            90 => self.cluster.net.reset([0, 100, 10][self.rng.below(3) as usize]),
            91..=95 => {
                self.cluster.hdfs.set_name_node(NameNode::Up);
                self.cluster.ensemble.set_quorum(true);
            }
            _ => self.heal(),
        }
    }

    fn cut(&mut self) {
        self.summary.cuts += 1;
        let (one, other) = (self.any_of_all(), if self.rng.one_in(3) { "clients".into() } else { self.any_of_all() });
        self.cluster.trace.note(&format!("cut {one} {other}"));
        match self.rng.below(6) {
            0 => self.cluster.ensemble.set_cut(&one, true),
            1 => self.cluster.ensemble.set_behind(&one, true),
            2 => self.cluster.net.cut(&one, &other),
            3 => self.cluster.net.cut(&other, &one),
            _ => {
                self.cluster.net.cut(&one, &other);
                self.cluster.net.cut(&other, &one);
            }
        }
    }

    fn heal(&mut self) {
        self.cluster.trace.note("all is well");
        self.cluster.hdfs.set_name_node(NameNode::Up);
        self.cluster.hdfs.lose_answers(0);
        self.cluster.hdfs.break_pipelines(0);
        self.cluster.ensemble.heal();
        self.cluster.net.heal();
    }

    fn flush_or_compact(&mut self) {
        let Some((region, server)) = self.any_region() else { return };
        let (_, admin) = self.admin();
        let (specifier, name) = (to_proto::region_specifier(&region), region.name_string());
        match self.rng.below(3) {
            0 => {
                let (region, major) = (specifier, Some(self.rng.one_in(2)));
                let request = pb::CompactRegionRequest { region, major, ..Default::default() };
                self.order(format!("compact {name}"), async move {
                    admin.ask_server(&server, Method::AdminCompactRegion, &request).await
                });
            }
            _ => {
                let request = pb::FlushRegionRequest { region: specifier, ..Default::default() };
                self.order(format!("flush {name}"), async move {
                    admin.ask_server(&server, Method::AdminFlushRegion, &request).await
                });
            }
        }
    }

    /// Moves, splits, merges, alters, takes a snapshot.
    fn reshape(&mut self) {
        let regions = self.regions();
        let at = self.rng.below(regions.len().max(1) as u64) as usize;
        let Some((region, _)) = regions.get(at).cloned() else { return };
        let (_, admin) = self.admin();
        let name = region.name_string();
        match self.rng.below(12) {
            0..=4 => {
                let to = self.cluster.serving();
                let to = to.get(self.rng.below(to.len().max(1) as u64) as usize).map(|(_, name, ..)| name.clone());
                let region = pb::RegionSpecifier {
                    r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName as i32,
                    value: Bytes::copy_from_slice(region.encoded_name().as_bytes()),
                };
                let request =
                    pb::MoveRegionRequest { region, dest_server_name: to.as_ref().map(to_proto::server_name) };
                self.order(format!("move {name} to {to:?}"), async move {
                    admin.ask_master(Method::MasterMoveRegion, &request).await
                });
            }
            5..=7 if regions.len() < 10 => {
                let row = Bytes::from(format!("{:02}", self.rng.below(100)));
                let split_row = self.rng.one_in(2).then_some(row);
                let region_info = to_proto::region_info(&region);
                let request = pb::SplitTableRegionRequest { region_info, split_row, ..Default::default() };
                self.order(format!("split {name}"), async move {
                    admin.ask_master(Method::MasterSplitRegion, &request).await
                });
            }
            8..=9 => {
                let Some((next, _)) = regions.get(at + 1) else { return };
                let region = [&region, next].map(to_proto::region_specifier).to_vec();
                let request = pb::MergeTableRegionsRequest { region, ..Default::default() };
                self.order(format!("merge {name}"), async move {
                    admin.ask_master(Method::MasterMergeTableRegions, &request).await
                });
            }
            10 => {
                let family = &families(&self.rng)[self.rng.below(2) as usize];
                let request = pb::ModifyColumnRequest {
                    table_name: to_proto::table_name(&table()),
                    column_families: to_proto::family(family),
                    ..Default::default()
                };
                self.order(
                    "alter".to_owned(),
                    async move { admin.ask_master(Method::MasterModifyColumn, &request).await },
                );
            }
            _ => {
                self.snapshots += 1;
                let snapshot = pb::SnapshotDescription {
                    name: format!("s{}", self.snapshots),
                    table: Some(table().to_string()),
                    ..Default::default()
                };
                let request = pb::SnapshotRequest { snapshot, ..Default::default() };
                self.order(
                    "snapshot".to_owned(),
                    async move { admin.ask_master(Method::MasterSnapshot, &request).await },
                );
            }
        }
    }

    /// Why not everything serves, if it does not.
    fn not_served(&self) -> Option<String> {
        let serving = self.cluster.serving();
        let holding = serving.iter().filter(|(.., holds)| *holds).count();
        if holding < self.plan.servers {
            return Some(format!("{holding} region servers serve"));
        }
        let Some(master) = self.cluster.leader().filter(|master| master.is_initialized()) else {
            return Some("no master leads".to_owned());
        };
        let procedures = master.unfinished_procedures();
        if procedures > 0 {
            return Some(format!("{procedures} procedures are not finished"));
        }
        let cluster = master.cluster();
        let enabled: BTreeSet<TableName> = cluster
            .tables()
            .filter(|(_, state)| *state == TableState::Enabled)
            .map(|(table, _)| table.name.clone())
            .collect();
        for node in cluster.with_replicas().filter(|node| node.is_live() && enabled.contains(&node.info.table)) {
            let name = node.info.name_string();
            if node.state != RegionState::Open {
                return Some(format!("{name} is {:?}", node.state));
            }
            let server = serving.iter().find(|(_, server, ..)| Some(server) == node.location.as_ref());
            match server {
                Some((_, _, server, _)) if server.region(node.info.encoded_name()).is_some() => {}
                Some((seat, ..)) => return Some(format!("{name} is not online on {seat}")),
                None => return Some(format!("{name} is on {:?}", node.location)),
            }
        }
        None
    }

    /// No more faults: everything serves again, and then the clients end.
    fn come_to_rest(&mut self) -> Result<(), Violation> {
        // What stood still goes on; who was to die at some call does not.
        for name in [self.cluster.names(Role::Server), self.cluster.names(Role::Master)].concat() {
            self.cluster.wake(&name);
        }
        let serves = self.until(SERVES_WITHIN_MS, |run| run.not_served().is_none())?;
        if !serves {
            let why = self.not_served().unwrap_or_default();
            let ends = &self.cluster.ends;
            return Err(Violation(format!(
                "{SERVES_WITHIN_MS} ms after the faults have ended {why}; ended: {ends:#?}"
            )));
        }
        self.ends.store(true, Ordering::Relaxed);
        self.workers.iter().for_each(|(_, caller)| caller.give_up(true));
        let ended = self.until(60_000, |run| run.workers.iter().all(|(task, _)| task.is_finished()))?;
        ensure(ended, || "clients do not end without faults".to_owned())?;
        self.workers.clear();
        self.pass(REST_MS)?;
        let serves = self.until(SERVES_WITHIN_MS, |run| run.not_served().is_none())?;
        ensure(serves, || format!("it does not stay at rest: {}", self.not_served().unwrap_or_default()))
    }

    /// Asks a few times: connections that broke are noticed by who uses them, and hbase:meta may be on its way to another server just now.
    fn again<T: Send + 'static, F: Future<Output = Result<T, String>> + Send + 'static>(
        &mut self,
        what: &str,
        work: impl Fn(Arc<Caller>) -> F,
    ) -> Result<T, Violation> {
        let (_, admin) = self.admin();
        let mut last = String::new();
        for _ in 0..10 {
            match self.cluster.wait_for(60_000, work(admin.clone())).map_err(panicked)? {
                Ok(found) => return Ok(found),
                Err(why) => last = why,
            }
            self.pass(ASK_AGAIN_MS)?;
        }
        Err(Violation(format!("{what} cannot be read: {last}")))
    }

    fn check(&mut self) -> Result<(), Violation> {
        self.cluster.trace.note("check");
        self.summary.checks += 1;
        let (_, admin) = self.admin();
        admin.forget();
        // The balancer may move a region just now.
        let meta = self.again("hbase:meta", |caller| async move {
            let meta = caller.meta().await?;
            match meta.regions.iter().find(|row| is_on_its_way(row, &table())) {
                Some(row) => Err(format!("{} is {:?}", row.info.name_string(), row.state)),
                None => Ok(meta),
            }
        })?;
        check_tiling(&meta, &table())?;
        let rows = self.again("the table", |caller| async move { caller.whole(&table()).await })?;
        work::check_rows(&mut self.memory.lock(), &rows)?;
        self.check_replicas(&rows)
    }

    /// In the end replicas show all that there is. Nothing is under way.
    fn check_replicas(&mut self, rows: &[(String, RowCells)]) -> Result<(), Violation> {
        if self.replicas == Replicas::None {
            return Ok(());
        }
        if self.replicas == Replicas::Look {
            // What is in no file they do not find. A region may be split or moved meanwhile, as its size and the balancer will.
            self.again("the table's flush", |caller| async move { caller.flush_all(&table()).await })?;
        }
        let (mut last, end_ms) = (String::new(), self.cluster.now_ms() + REPLICAS_SHOW_WITHIN_MS);
        while self.cluster.now_ms() < end_ms {
            let shown = self.again("the replicas", |caller| async move {
                let mut replicas = caller.replicas(&table()).await?;
                replicas.sort_by(|(one, _), (other, _)| one.start_key.cmp(&other.start_key));
                caller.whole_of(replicas).await
            });
            match shown {
                Ok(shown) if newest(&shown) == newest(rows) => return Ok(()),
                Ok(shown) => last = difference(&newest(&shown), &newest(rows)),
                Err(why) => last = why.to_string(),
            }
            self.pass(1_000)?;
        }
        let meta = self.again("hbase:meta", |caller| async move { caller.meta().await })?;
        let regions = meta.regions.iter().filter(|row| row.info.table == table() && !row.info.split);
        let replica = |at: &ReplicaRow| format!("{} {:?} {:?}", at.info.replica_id, at.state, at.location);
        let place = |row: &RegionRow| {
            let replicas: Vec<String> = row.replicas.iter().map(replica).collect();
            format!("{} {:?}: {}", row.info.name_string(), row.state, replicas.join(", "))
        };
        let places: Vec<String> = regions.map(place).collect();
        Err(Violation(format!(
            "{REPLICAS_SHOW_WITHIN_MS} ms later replicas do not show what there is: {last}\n  {}",
            places.join("\n  ")
        )))
    }
}

/// The newest of each column of each row: how many versions are kept of it is each compaction's affair.
fn newest(rows: &[(String, RowCells)]) -> BTreeMap<String, BTreeMap<String, (i64, Vec<u8>)>> {
    let mut all = BTreeMap::<String, BTreeMap<String, (i64, Vec<u8>)>>::new();
    for (row, cells) in rows {
        let columns = all.entry(row.clone()).or_default();
        for (column, number, value) in cells {
            let known = columns.entry(column.clone()).or_insert((i64::MIN, Vec::new()));
            if *number > known.0 {
                *known = (*number, value.clone());
            }
        }
    }
    all
}

fn difference<T: PartialEq + std::fmt::Debug>(shown: &BTreeMap<String, T>, there: &BTreeMap<String, T>) -> String {
    let first = there.iter().find(|(row, columns)| shown.get(*row) != Some(columns));
    match first {
        Some((row, columns)) => format!("{row} is {columns:?}, and they show {:?}", shown.get(row)),
        None => "they show rows that are not there".to_owned(),
    }
}

/// Whether it is to serve, and does not yet.
fn is_on_its_way(row: &RegionRow, table: &TableName) -> bool {
    let is_live = row.info.table == *table && !row.info.split && !row.info.offline;
    is_live && row.state != Some(RegionState::Open)
}

/// The live regions of a table tile the key space.
fn check_tiling(meta: &MetaContent, table: &TableName) -> Result<(), Violation> {
    let live = meta.regions.iter().filter(|row| row.info.table == *table && !row.info.split && !row.info.offline);
    let mut edge = Some(Bytes::new());
    for row in live {
        let name = row.info.name_string();
        ensure(edge.as_ref() == Some(&row.info.start_key), || format!("a hole or overlap before {name}"))?;
        ensure(row.state == Some(RegionState::Open), || format!("hbase:meta has {name} as {:?}", row.state))?;
        edge = (!row.info.end_key.is_empty()).then(|| row.info.end_key.clone());
    }
    ensure(edge.is_none(), || format!("the regions of {table} end at {edge:?}"))
}
