//! The balancer at work: it draws what servers report together, has a plan made of it, and has the regions moved, not too many at once.
//!
//! Always true:
//!  1. One run at a time; none while a region of an enabled table is in transition or a server that died is being recovered.
//!  2. A region is moved only if it still is where the plan has it, which is looked at under its lock.
//!  3. Whatever a client asks for, a run ends when its time is over; what was begun goes on.
//!
//! Not here: which regions are to move (`balancer`). Follows: `HMaster#balance`, `#executeRegionPlansWithThrottling`, `BalancerChore`,
//! `ClusterStatusChore`, `BalancerDecisionQueueService`, `BalancerRejectionQueueService`, `MetricsStochasticBalancer`.

use crate::cluster::{Cluster, RegionNode, RegionState, TableState};
use crate::files::off_worker;
use crate::groups::{self, Misplaced, group_of};
use crate::locality::{self, Places};
use crate::master::Master;
use crate::procedure::Caller;
use crate::procedure::region::transit::{self, Transition};
use crate::procedure::server::crash;
use crate::{ErrorKind, MasterError, Result, settings};
use balancer::stochastic::{self, Decision, Walk};
use balancer::{
    Algorithm, BalancerSettings, FEWEST_SERVERS, FunctionCost, LoadHistory, LoadSample, Move, RegionEntry, ServerEntry,
    Snapshot, java_double, java_float, simple,
};
use base::metrics::{Histogram, Sink, Unit};
use base::{Clock, Config, Rng};
use model::status::in_units;
use model::{RegionInfo, ServerName, TableName};
use parking_lot::Mutex;
use proto::pb;
use rsgroup::{Address, Group};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// All tables together. Follows: `HConstants#ENSEMBLE_TABLE_NAME`.
const ENSEMBLE: &str = "hbase:ensemble";
/// Tables whose costs are shown at most. Follows: `MetricsStochasticBalancerSourceImpl`, which keeps as many costs.
const MOST_TABLES_SHOWN: usize = 77;
const MIB: u64 = 1 << 20;

/// The newest of what is remembered, so many.
#[derive(Debug)]
struct Recent<T> {
    /// `None` where nothing was to be kept when the master started.
    kept: Option<Mutex<VecDeque<T>>>,
    most: usize,
}

impl<T: Clone> Recent<T> {
    fn new(is_kept: bool, most: u32) -> Recent<T> {
        Recent { kept: is_kept.then(Mutex::default), most: most as usize }
    }

    fn push(&self, one: T) {
        let Some(kept) = &self.kept else { return };
        let mut kept = kept.lock();
        while kept.len() >= self.most {
            kept.pop_front();
        }
        kept.push_back(one);
    }

    /// The newest first; all where there is no limit.
    fn newest(&self, limit: Option<u32>) -> Vec<T> {
        let Some(kept) = &self.kept else { return Vec::new() };
        kept.lock().iter().rev().take(limit.map_or(usize::MAX, |limit| limit as usize)).cloned().collect()
    }
}

/// What the balancer remembers.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// What it did, and why it did nothing.
    decisions: Recent<pb::BalancerDecision>,
    rejections: Recent<pb::BalancerRejection>,
    /// Held by a run.
    running: tokio::sync::Mutex<()>,
    /// Loads of regions by encoded name: those that were reported last.
    loads: Mutex<HashMap<Arc<str>, LoadHistory>>,
    rng: Arc<Rng>,
    /// How long plans took to make.
    times: Histogram,
    /// What each table cost when it was looked at last.
    costs: Mutex<Vec<(String, Vec<FunctionCost>)>>,
    last: Mutex<Option<LastRun>>,
}

/// What the balancer did last, for pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Moves that were worth it.
    pub calculated: usize,
    /// Moves that were begun.
    pub executed: usize,
}

impl Balancer {
    pub(crate) fn new(config: &Config, clock: &dyn Clock) -> Balancer {
        let (decisions, rejections) =
            (config.get(&settings::BALANCER_DECISIONS), config.get(&settings::BALANCER_REJECTIONS));
        Balancer {
            decisions: Recent::new(config.get(&settings::BALANCER_DECISION_BUFFER), decisions),
            rejections: Recent::new(config.get(&settings::BALANCER_REJECTION_BUFFER), rejections),
            running: tokio::sync::Mutex::new(()),
            loads: Mutex::default(),
            rng: Arc::new(Rng::seeded(clock.now_ms().0.cast_unsigned())),
            times: Histogram::new(Unit::Micros),
            costs: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// The newest decisions, newest first; all where there is no limit.
    pub(crate) fn decisions(&self, limit: Option<u32>) -> Vec<pb::BalancerDecision> {
        self.decisions.newest(limit)
    }

    /// The newest rejections, newest first; all where there is no limit.
    pub(crate) fn rejections(&self, limit: Option<u32>) -> Vec<pb::BalancerRejection> {
        self.rejections.newest(limit)
    }

    /// What it did last; `None` before its first run.
    pub(crate) fn last_run(&self) -> Option<LastRun> {
        *self.last.lock()
    }

    /// Its metrics, into `sink`, whose bean is set.
    pub(crate) fn collect(&self, sink: &mut Sink, now_ms: i64) {
        sink.histogram("balancerCluster", &self.times, now_ms);
        for (table, costs) in &*self.costs.lock() {
            let overall: f64 = costs.iter().map(FunctionCost::weighted).sum();
            sink.real(format!("{table}_Overall"), overall);
            for cost in costs {
                let part = if overall == 0.0 { 0.0 } else { cost.weighted() / overall };
                sink.real(format!("{table}_{}", cost.function.simple_name()), part);
            }
        }
    }

    fn reject(&self, reason: String, costs: &[FunctionCost]) {
        let shown = |cost: &FunctionCost| {
            let (name, multiplier) = (cost.function.class_name(), java_float(cost.multiplier));
            format!("{name} cost:{} multiplier:{multiplier}", java_double(cost.cost))
        };
        self.rejections.push(pb::BalancerRejection { reason, cost_func_info: costs.iter().map(shown).collect() });
    }

    fn decide(&self, plans: &[Plan], walk: &Walk) {
        let shown = |plan: &Plan| {
            let (table, region) = (&plan.info.table, plan.info.encoded_name());
            format!("table: {table} , region: {region} , source: {} , destination: {}", plan.from, plan.to)
        };
        self.decisions.push(pb::BalancerDecision {
            initial_function_costs: stochastic::in_words(&walk.initial),
            final_function_costs: stochastic::in_words(&walk.planned),
            init_total_cost: walk.initial_cost,
            computed_total_cost: walk.final_cost,
            computed_steps: walk.steps,
            region_plans: plans.iter().map(shown).collect(),
        });
    }

    /// Remembers what servers reported last; nothing where there is only one, which nothing is balanced with. Follows: `StochasticLoadBalancer#updateRegionLoad`.
    pub(crate) fn remember_loads(&self, master: &Master) {
        let (hosts, keep) = (master.servers.all(), master.settings().balance.loads_to_remember);
        let mut before = std::mem::take(&mut *self.loads.lock());
        if hosts.len() < FEWEST_SERVERS {
            return;
        }
        let mut now = HashMap::with_capacity(before.len());
        for load in hosts.iter().flat_map(|host| host.region_loads()) {
            let mut history = before.remove(&load.encoded_name).unwrap_or_default();
            let sample = LoadSample {
                reads: load.read_requests,
                writes: load.write_requests,
                memstore_mb: in_units(load.memstore_size_bytes, MIB),
                store_file_mb: in_units(load.store_file_size_bytes, MIB),
            };
            history.push(sample, keep);
            now.insert(load.encoded_name, history);
        }
        *self.loads.lock() = now;
    }
}

/// A region that is to move.
#[derive(Clone, Debug)]
struct Plan {
    info: RegionInfo,
    from: ServerName,
    to: ServerName,
}

/// A table (or all of them) as it is given to the balancer.
struct Part {
    name: String,
    snapshot: Snapshot,
    infos: Vec<RegionInfo>,
}

/// What the balancer is given.
struct Input {
    servers: Vec<ServerName>,
    parts: Vec<Part>,
}

/// What came of a part.
struct Found {
    name: String,
    plans: Vec<Plan>,
    /// Nothing where only numbers of regions count.
    decision: Option<Decision>,
}

impl Input {
    /// What is balanced for itself: everything, or where there are groups each of them, or `only` one.
    fn all(master: &Master, only: Option<&str>) -> Vec<Input> {
        let by_table = master.settings().balance_by_table;
        let Some(groups) = master.groups.current(&master.servers) else {
            return vec![Input::of(master, by_table, master.servers.assignable(), |_, _| true)];
        };
        let wanted = groups.list().filter(|group| only.is_none_or(|only| group.name == only));
        let of_group = |group: &Group| {
            let mut servers = master.servers.assignable();
            servers.retain(|server| group.servers.contains(&Address::from(server)));
            Input::of(master, by_table, servers, |table, cluster| group_of(&groups, table, cluster).name == group.name)
        };
        wanted.map(of_group).collect()
    }

    /// Regions of those tables that serve, on these servers. Follows: `RegionStates#getAssignmentsForBalancer`.
    fn of(
        master: &Master,
        by_table: bool,
        servers: Vec<ServerName>,
        is_part: impl Fn(&TableName, &Cluster) -> bool,
    ) -> Input {
        let numbers: HashMap<&ServerName, usize> = servers.iter().enumerate().map(|(n, name)| (name, n)).collect();
        let (localities, places) = (&master.localities, Places::new(&servers, &master.server_name));
        let entry = |name: &ServerName| ServerEntry { host: (*name.host).into(), rack: localities.rack(&name.host) };
        let entries: Vec<ServerEntry> = servers.iter().map(entry).collect();
        let new_part = |name: String| {
            let snapshot = Snapshot { servers: entries.clone(), ..Snapshot::default() };
            Part { name, snapshot, infos: Vec::new() }
        };
        let (cluster, loads) = (master.cluster.read(), master.balancer.loads.lock());
        let mut parts = if by_table { Vec::new() } else { vec![new_part(ENSEMBLE.to_owned())] };
        for (table, state) in cluster.tables() {
            if matches!(state, TableState::Disabled | TableState::Disabling) || !is_part(&table.name, &cluster) {
                continue;
            }
            if by_table {
                parts.push(new_part(table.name.to_string()));
            }
            let Some(part) = parts.last_mut() else { continue };
            let number = part.snapshot.tables;
            // Read replicas by their primaries, which may come after them.
            let mut primaries: HashMap<Arc<str>, usize> = HashMap::new();
            let mut of_replicas: Vec<(usize, Arc<str>)> = Vec::new();
            for node in cluster.with_replicas_of(&table.name).filter(|node| is_balanced(node)) {
                let Some(server) = node.location.as_ref().and_then(|name| numbers.get(name)) else { continue };
                part.snapshot.tables = number + 1;
                let primary = node.info.replica(0);
                // The files are the primary's.
                let found = localities.parts(primary.encoded_name(), &places);
                let at = part.snapshot.regions.len();
                match node.info.is_replica() {
                    true => of_replicas.push((at, Arc::clone(primary.encoded_name()))),
                    false => _ = primaries.insert(Arc::clone(primary.encoded_name()), at),
                }
                part.snapshot.regions.push(RegionEntry {
                    server: *server,
                    table: number,
                    replica_id: node.info.replica_id,
                    created_ms: node.info.region_id,
                    costs: loads.get(node.info.encoded_name()).map(LoadHistory::costs).unwrap_or_default(),
                    localities: found,
                    ..RegionEntry::default()
                });
                part.infos.push(node.info.clone());
            }
            for (at, primary) in of_replicas {
                part.snapshot.regions[at].primary = primaries.get(&primary).copied();
            }
        }
        drop((cluster, loads));
        Input { servers, parts }
    }

    fn run(self, settings: &BalancerSettings, rng: &Rng, clock: &dyn Clock) -> Vec<Found> {
        let mut all = vec![0; self.servers.len()];
        self.parts.iter().flat_map(|part| &part.snapshot.regions).for_each(|region| all[region.server] += 1);
        let mut found = Vec::new();
        for part in self.parts {
            let (moves, decision) = match settings.algorithm {
                Algorithm::Simple => {
                    (simple::balance(&part.snapshot, &mut all, settings.slop, settings.overall_slop), None)
                }
                Algorithm::Stochastic => match stochastic::balance(&part.snapshot, settings, rng, clock) {
                    Decision::Moves(moves, walk) => (moves.clone(), Some(Decision::Moves(moves, walk))),
                    other => (Vec::new(), Some(other)),
                },
            };
            let plan = |step: &Move| Plan {
                info: part.infos[step.region].clone(),
                from: self.servers[step.from].clone(),
                to: self.servers[step.to].clone(),
            };
            let plans = moves.iter().map(plan).collect();
            found.push(Found { name: part.name, plans, decision });
        }
        found
    }
}

fn is_balanced(node: &RegionNode) -> bool {
    node.is_live() && matches!(node.state, RegionState::Open | RegionState::Opening)
}

/// The number of regions that are in transition, and how many of these are of hbase:meta.
fn in_transition(cluster: &Cluster) -> (u32, u32) {
    use RegionState::{Closing, FailedClose, FailedOpen, Merging, Opening, Splitting};
    let moves = |state| matches!(state, Opening | Closing | Splitting | Merging | FailedOpen | FailedClose);
    let (mut all, mut of_meta) = (0, 0);
    for (table, _) in cluster.tables().filter(|(_, state)| *state == TableState::Enabled) {
        let count = cluster.regions_of(&table.name).filter(|node| node.is_live() && moves(node.state)).count() as u32;
        all += count;
        of_meta += if table.name == TableName::meta() { count } else { 0 };
    }
    (all, of_meta)
}

fn may_run(master: &Master) -> bool {
    master.is_initialized() && !master.is_stopping()
}

/// Balances: all tables at once, or each. Off, it does so only to see what it would do. Time: that of the plan, and then as long as moving
/// regions takes, up to `hbase.balancer.max.balancing`.
pub(crate) async fn run(master: &Arc<Master>, request: pb::BalanceRequest) -> pb::BalanceResponse {
    run_some(master, request, None).await
}

/// The same of one group of region servers.
pub(crate) async fn run_group(master: &Arc<Master>, request: pb::BalanceRequest, group: &str) -> pb::BalanceResponse {
    run_some(master, request, Some(group)).await
}

async fn run_some(master: &Arc<Master>, request: pb::BalanceRequest, group: Option<&str>) -> pb::BalanceResponse {
    let mut response = pb::BalanceResponse { balancer_ran: false, moves_calculated: Some(0), moves_executed: Some(0) };
    if !(master.switches.balancer() || request.dry_run()) || !may_run(master) {
        return response;
    }
    let _one_at_a_time = master.balancer.running.lock().await;
    let (moving, of_meta) = in_transition(&master.cluster.read());
    if moving > 0 && (!request.ignore_rit() || of_meta > 0) {
        tracing::info!(
            "not running the balancer because {moving} regions are in transition; the next period tries again"
        );
        return response;
    }
    if let Some(dead) = master.servers.dead().iter().find(|server| crash::is_running(master, server)) {
        tracing::info!("not running the balancer because {dead} has died and is being recovered");
        return response;
    }
    master.balancer.remember_loads(master);
    locality::refresh_soon(master).await;
    let settings = master.settings().balance;
    let inputs = Input::all(master, group);
    let misplaced = misplaced(master, group);
    let (rng, clock) = (Arc::clone(&master.balancer.rng), Arc::clone(&master.clock));
    let all = move || inputs.into_iter().flat_map(|input| input.run(&settings, &rng, &*clock)).collect::<Vec<Found>>();
    let Ok(found) = off_worker(all).await else {
        tracing::error!("the balancer panicked: no region is moved, the next period tries again");
        return response;
    };
    response.balancer_ran = true;
    let plans: Vec<Plan> = misplaced.into_iter().chain(record(master, found)).collect();
    response.moves_calculated = u32::try_from(plans.len()).ok();
    let calculated = plans.len();
    let executed = if request.dry_run() || !may_run(master) { 0 } else { execute(master, plans).await };
    response.moves_executed = u32::try_from(executed).ok();
    if !request.dry_run() {
        let at_ms = master.clock.now_ms().0;
        *master.balancer.last.lock() = Some(LastRun { at_ms, calculated, executed });
    }
    response
}

/// The balancer's period: where it may not run, its costs are told all the same. Follows: `HMaster#balanceOrUpdateMetrics`.
pub(crate) async fn run_or_look(master: &Arc<Master>) {
    if run(master, pb::BalanceRequest::default()).await.balancer_ran || !may_run(master) {
        return;
    }
    let settings = master.settings().balance;
    let inputs = Input::all(master, None);
    let look = move || -> Vec<(String, Vec<FunctionCost>)> {
        let parts = inputs.into_iter().flat_map(|input| input.parts);
        parts.map(|part| (part.name, stochastic::costs(&part.snapshot, &settings))).collect()
    };
    if let Ok(costs) = off_worker(look).await {
        show_costs(master, costs);
    }
}

/// Regions that are open outside of their group. Follows: `RSGroupBasedLoadBalancer#correctAssignments`.
fn misplaced(master: &Master, only: Option<&str>) -> Vec<Plan> {
    let Some(groups) = master.groups.current(&master.servers) else { return Vec::new() };
    let found = groups::misplaced(master, |_, _| true);
    let cluster = master.cluster.read();
    let is_wanted = |info: &RegionInfo| only.is_none_or(|only| group_of(&groups, &info.table, &cluster).name == only);
    let found = found.into_iter().filter(|one| is_wanted(&one.info));
    found
        .filter_map(|Misplaced { info, to }| {
            let from = cluster.region(info.encoded_name())?.location.clone()?;
            Some(Plan { info, from, to })
        })
        .collect()
}

fn show_costs(master: &Master, found: Vec<(String, Vec<FunctionCost>)>) {
    // Each group of region servers has all of its tables under the same name: as in HBase the last is shown.
    let mut costs: Vec<(String, Vec<FunctionCost>)> = Vec::with_capacity(found.len());
    for (name, one) in found {
        match costs.iter_mut().find(|(shown, _)| *shown == name) {
            Some((_, shown)) => *shown = one,
            None => costs.push((name, one)),
        }
    }
    costs.truncate(MOST_TABLES_SHOWN);
    *master.balancer.costs.lock() = costs;
}

/// Tells of what was found; answers the moves.
fn record(master: &Master, found: Vec<Found>) -> Vec<Plan> {
    let (balancer, mut costs, mut all) = (&master.balancer, Vec::new(), Vec::new());
    let keeps_rejections = master.settings().keep_rejections;
    let keeps_decisions = master.settings().keep_decisions;
    for Found { name, plans, decision } in found {
        let walk = match decision {
            None => None,
            Some(Decision::TooFewServers(count)) => {
                if keeps_rejections {
                    let reason = format!("The number of RegionServers {count} < MIN_SERVER_BALANCE({FEWEST_SERVERS})");
                    balancer.reject(reason, &[]);
                }
                None
            }
            Some(Decision::NoCosts) => {
                tracing::error!(
                    "at least one cost of the balancer needs a weight; set hbase.master.balancer.stochastic.regionCountCost"
                );
                None
            }
            Some(Decision::Even { reason, costs: even }) => {
                if keeps_rejections {
                    balancer.reject(reason, &even);
                }
                costs.push((name.clone(), even));
                None
            }
            Some(Decision::NothingBetter(walk)) => {
                tracing::info!(
                    steps = walk.steps,
                    cost = walk.initial_cost,
                    "the balancer found no better places in {name}"
                );
                Some(walk)
            }
            Some(Decision::Moves(_, walk)) => {
                if keeps_decisions {
                    balancer.decide(&plans, &walk);
                }
                Some(walk)
            }
        };
        if let Some(walk) = walk {
            balancer.times.record(walk.took_us);
            costs.push((name.clone(), walk.planned));
        }
        if !plans.is_empty() {
            tracing::info!("the balancer moves {} regions of {name}", plans.len());
        }
        all.extend(plans);
    }
    show_costs(master, costs);
    all
}

/// Has the regions moved, and waits while so many are on their way as may be; answers how many were begun before the time was over. Those that
/// are on their way then go on.
async fn execute(master: &Arc<Master>, plans: Vec<Plan>) -> usize {
    if plans.is_empty() {
        return 0;
    }
    let (time, most) = {
        let settings = master.settings();
        let regions = master.cluster.read().regions().filter(|node| node.location.is_some()).count();
        (settings.max_balancing, ((regions as f64 * settings.max_transition_part).floor() as usize).max(1))
    };
    let begun_us = master.clock.monotonic_us();
    let left = |until: Duration| {
        until.saturating_sub(Duration::from_micros(master.clock.monotonic_us().saturating_sub(begun_us)))
    };
    let count = plans.len();
    let interval = time / u32::try_from(count).unwrap_or(u32::MAX);
    let (mut moving, mut begun) = (JoinSet::new(), 0_usize);
    for plan in plans {
        if master.is_stopping() {
            break;
        }
        moving.spawn(move_region(Arc::clone(master), plan));
        begun += 1;
        let next = interval * u32::try_from(begun).unwrap_or(u32::MAX);
        // No pause where nothing is on its way.
        while !moving.is_empty() && !left(next).is_zero() && wait_for_one(&mut moving, left(next)).await {}
        while moving.len() >= most && !left(time).is_zero() && wait_for_one(&mut moving, left(time)).await {}
        if begun < count && !time.is_zero() && left(time).is_zero() {
            tracing::info!(
                "hbase.balancer.max.balancing is over: {} moves are left for the next run of the balancer",
                count - begun
            );
            break;
        }
    }
    moving.detach_all();
    begun
}

/// Waits until a region has arrived, or for so long; whether one has.
async fn wait_for_one(moving: &mut JoinSet<()>, at_most: Duration) -> bool {
    matches!(tokio::time::timeout(at_most, moving.join_next()).await, Ok(Some(_)))
}

async fn move_region(master: Arc<Master>, plan: Plan) {
    let Plan { info, from, to } = plan;
    let check = || {
        let cluster = master.cluster.read();
        let is_there = |node: &RegionNode| node.state == RegionState::Open && node.location.as_ref() == Some(&from);
        if !cluster.region(info.encoded_name()).is_some_and(is_there) || !master.servers.assignable().contains(&to) {
            let message = format!("{} is on {from} no more, or {to} takes no regions", info.name_string());
            return Err(MasterError::new(ErrorKind::HBaseIo, message));
        }
        Ok(())
    };
    let caller = Caller { user: master.server_name.to_string(), nonce: None };
    let moved: Result<()> = async {
        let id = transit::submit(&master, info.clone(), Transition::Move, Some(to.clone()), &caller, check).await?;
        master.procedures.wait_for(id).await.map(drop)
    }
    .await;
    if let Err(error) = moved
        && !error.is_stopped()
    {
        tracing::warn!(region = %info.name_string(), %error, "the balancer could not move a region");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    #[test]
    fn the_newest_rejections_are_kept_and_told_first() {
        let (mut config, clock) = (Config::default(), ManualClock::new(0));
        config.set("hbase.master.balancer.rejection.queue.size", "2");
        let off = Balancer::new(&config, &clock);
        off.reject("lost".to_owned(), &[]);
        assert_eq!(off.rejections(None), []);
        config.set("hbase.master.balancer.rejection.buffer.enabled", "true");
        let balancer = Balancer::new(&config, &clock);
        ["a", "b", "c"].iter().for_each(|reason| balancer.reject((*reason).to_owned(), &[]));
        let reasons = |limit| -> Vec<String> {
            balancer.rejections(limit).into_iter().map(|rejection| rejection.reason).collect()
        };
        assert_eq!(reasons(None), ["c", "b"]);
        assert_eq!(reasons(Some(1)), ["c"]);
        assert_eq!(reasons(Some(9)), ["c", "b"]);
    }
}
