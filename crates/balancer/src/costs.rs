//! What a state costs. Follows: `CostFunction` and its subclasses, `StochasticLoadBalancer#computeCost`.

use crate::skew::{Before, Skew, scale};
use crate::snapshot::{Move, RegionEntry};
use crate::state::{Groups, State};

/// A kind of cost, in the order in which HBase adds them up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// Numbers of regions.
    RegionCountSkew,
    /// Numbers of primaries, where there are read replicas.
    PrimaryRegionCountSkew,
    /// Regions that are not where they were.
    Move,
    /// Files that are on other machines than their region's server.
    ServerLocality,
    /// Files that are in other racks.
    RackLocality,
    /// Numbers of each table's regions.
    TableSkew,
    /// Read replicas that share a machine.
    RegionReplicaHost,
    /// Read replicas that share a rack.
    RegionReplicaRack,
    /// Reads.
    ReadRequest,
    /// Writes.
    WriteRequest,
    /// Growth of memstores.
    MemStoreSize,
    /// Sizes of store files.
    StoreFile,
}

/// How many there are.
const FUNCTIONS: usize = 12;
/// Regions that one plan may move in any case.
const MOVES: usize = 600;
/// The cost of more moves than one plan may have.
const TOO_MANY_MOVES: f64 = 1_000_000.0;
const PACKAGE: &str = "org.apache.hadoop.hbase.master.balancer";

impl Function {
    /// All of them.
    pub const ALL: [Function; FUNCTIONS] = [
        Function::RegionCountSkew,
        Function::PrimaryRegionCountSkew,
        Function::Move,
        Function::ServerLocality,
        Function::RackLocality,
        Function::TableSkew,
        Function::RegionReplicaHost,
        Function::RegionReplicaRack,
        Function::ReadRequest,
        Function::WriteRequest,
        Function::MemStoreSize,
        Function::StoreFile,
    ];

    /// The name of HBase's class, without its package.
    pub fn simple_name(self) -> &'static str {
        match self {
            Function::RegionCountSkew => "RegionCountSkewCostFunction",
            Function::PrimaryRegionCountSkew => "PrimaryRegionCountSkewCostFunction",
            Function::Move => "MoveCostFunction",
            Function::ServerLocality => "ServerLocalityCostFunction",
            Function::RackLocality => "RackLocalityCostFunction",
            Function::TableSkew => "TableSkewCostFunction",
            Function::RegionReplicaHost => "RegionReplicaHostCostFunction",
            Function::RegionReplicaRack => "RegionReplicaRackCostFunction",
            Function::ReadRequest => "ReadRequestCostFunction",
            Function::WriteRequest => "WriteRequestCostFunction",
            Function::MemStoreSize => "MemStoreSizeCostFunction",
            Function::StoreFile => "StoreFileCostFunction",
        }
    }

    /// The name of HBase's class.
    pub fn class_name(self) -> String {
        format!("{PACKAGE}.{}", self.simple_name())
    }
}

/// How much each kind of cost weighs. One that weighs nothing is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multipliers {
    /// By function, in their order.
    pub by_function: [f32; FUNCTIONS],
    /// The part of all regions that one plan may move, where that is more than 600.
    pub max_move_part: f32,
}

impl Multipliers {
    /// The weight of one.
    pub fn of(&self, function: Function) -> f32 {
        self.by_function[function as usize]
    }
}

/// A kind of cost, its weight, and what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionCost {
    /// Which.
    pub function: Function,
    /// Its weight.
    pub multiplier: f32,
    /// From 0 to 1.
    pub cost: f64,
}

impl FunctionCost {
    /// The cost with its weight.
    pub fn weighted(&self) -> f64 {
        f64::from(self.multiplier) * self.cost
    }
}

/// How much lies where it is read, of how much could.
#[derive(Clone, Copy, Debug)]
struct Local {
    part: f64,
    best: f64,
}

impl Local {
    fn new(now: f64, best: f64) -> Local {
        Local { part: if best == 0.0 { 1.0 } else { now / best }, best }
    }

    fn change(&mut self, delta: f64) {
        if self.best != 0.0 {
            self.part += delta / self.best;
        }
    }
}

/// Read replicas that share a place.
#[derive(Clone, Debug, Default)]
struct Sharing {
    most: u64,
    total: u64,
    by_group: Vec<u64>,
}

impl Sharing {
    fn new(state: &State<'_>, groups: &Groups) -> Sharing {
        if !state.has_replicas || groups.count() <= 1 {
            return Sharing::default();
        }
        let mut all = std::collections::HashMap::new();
        for region in 0..state.snapshot.regions.len() {
            *all.entry(state.primary(region)).or_insert(0) += 1;
        }
        let by_group: Vec<u64> = groups.replicas.iter().map(Groups::sharing).collect();
        Sharing { most: Groups::sharing(&all), total: by_group.iter().sum(), by_group }
    }

    fn cost(&self) -> f64 {
        if self.most == 0 { 0.0 } else { scale(0.0, self.most as f64, self.total as f64) }
    }

    /// The groups of two servers have changed.
    fn update(&mut self, groups: &Groups, step: Move) {
        if self.most == 0 {
            return;
        }
        for group in [groups.of_server[step.from], groups.of_server[step.to]] {
            let now = Groups::sharing(&groups.replicas[group]);
            self.total = self.total + now - self.by_group[group];
            self.by_group[group] = now;
        }
    }
}

/// The costs of a [`State`], kept up as regions move: the work of a move does not grow with the number of regions.
#[derive(Clone, Debug)]
pub struct Costs {
    multipliers: Multipliers,
    counts: Skew,
    primaries: Skew,
    tables: Vec<Skew>,
    tables_cost: f64,
    loads: [Skew; 4],
    server_local: Local,
    rack_local: Local,
    hosts: Sharing,
    racks: Sharing,
    has_replicas: bool,
}

/// What a move has changed.
#[derive(Debug)]
pub(crate) struct Undo {
    step: Move,
    counts: Before,
    primaries: Option<Before>,
    table: Before,
    tables_cost: f64,
    loads: [Before; 4],
    local: [f64; 2],
}

/// How often each way to make moves up is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weights {
    pub random: f64,
    pub load: f64,
    pub locality: f64,
    pub rack: f64,
}

fn loads_of(region: &RegionEntry) -> [f64; 4] {
    [region.costs.reads, region.costs.writes, region.costs.memstore, region.costs.store_files]
}

impl Costs {
    /// What a state costs.
    pub fn new(state: &State<'_>, multipliers: Multipliers) -> Costs {
        let (servers, regions) = (state.snapshot.servers.len(), &state.snapshot.regions);
        let sums = |amount: &dyn Fn(usize) -> f64| {
            let mut sums = vec![0.0; servers];
            (0..regions.len()).for_each(|region| sums[state.server_of[region]] += amount(region));
            sums
        };
        let mut tables = vec![vec![0.0; servers]; state.snapshot.tables];
        for (region, entry) in regions.iter().enumerate() {
            tables[entry.table][state.server_of[region]] += 1.0;
        }
        let tables: Vec<Skew> = tables.into_iter().map(Skew::new).collect();
        let local = |now: &dyn Fn(usize) -> f64, best: &dyn Fn(usize) -> f64| {
            let known = if state.localities.is_some() { regions.len() } else { 0 };
            Local::new((0..known).map(now).sum(), (0..known).map(best).sum())
        };
        let best_server = |region: usize| state.localities.as_ref().map_or(0, |known| known.best_server[region]);
        let best_rack = |region: usize| state.localities.as_ref().map_or(0, |known| known.best_rack[region]);
        Costs {
            multipliers,
            counts: Skew::new(sums(&|_| 1.0)),
            primaries: Skew::new(sums(&|region| f64::from(u8::from(state.is_primary(region))))),
            tables_cost: tables.iter().map(Skew::cost).sum(),
            tables,
            loads: std::array::from_fn(|kind| Skew::new(sums(&|region| loads_of(&regions[region])[kind]))),
            server_local: local(&|region| state.local_mb(region, state.server_of[region]), &|region| {
                state.local_mb(region, best_server(region))
            }),
            rack_local: local(
                &|region| state.rack_local_mb(region, state.racks.of_server[state.server_of[region]]),
                &|region| state.rack_local_mb(region, best_rack(region)),
            ),
            hosts: Sharing::new(state, &state.hosts),
            racks: Sharing::new(state, &state.racks),
            has_replicas: state.has_replicas,
        }
    }

    /// Those that count for this state, in HBase's order.
    pub fn functions(&self, state: &State<'_>) -> Vec<FunctionCost> {
        let needed = Function::ALL.into_iter().filter(|function| self.counts_here(*function));
        needed.map(|function| self.function(state, function)).collect()
    }

    fn function(&self, state: &State<'_>, function: Function) -> FunctionCost {
        FunctionCost { function, multiplier: self.multipliers.of(function), cost: self.cost(state, function) }
    }

    /// The sum, weighted.
    pub fn total(&self, state: &State<'_>) -> f64 {
        let needed = Function::ALL.into_iter().filter(|function| self.counts_here(*function));
        needed.map(|function| f64::from(self.multipliers.of(function)) * self.cost(state, function)).sum()
    }

    /// The sum of the weights of those that count.
    pub fn multiplier(&self) -> f32 {
        let needed = Function::ALL.into_iter().filter(|function| self.counts_here(*function));
        needed.map(|function| self.multipliers.of(function)).sum()
    }

    fn is_there(&self, function: Function) -> bool {
        self.multipliers.of(function) > 0.0
    }

    fn counts_here(&self, function: Function) -> bool {
        use Function::{PrimaryRegionCountSkew, RegionReplicaHost, RegionReplicaRack};
        let of_replicas = matches!(function, PrimaryRegionCountSkew | RegionReplicaHost | RegionReplicaRack);
        self.is_there(function) && (self.has_replicas || !of_replicas)
    }

    /// One of them.
    pub fn cost(&self, state: &State<'_>, function: Function) -> f64 {
        match function {
            Function::RegionCountSkew => self.counts.cost(),
            Function::PrimaryRegionCountSkew if self.has_replicas => self.primaries.cost(),
            Function::PrimaryRegionCountSkew => 0.0,
            Function::Move => self.move_cost(state),
            Function::ServerLocality => 1.0 - self.server_local.part,
            Function::RackLocality => 1.0 - self.rack_local.part,
            Function::TableSkew => self.tables_cost,
            Function::RegionReplicaHost => self.hosts.cost(),
            Function::RegionReplicaRack => self.racks.cost(),
            Function::ReadRequest => self.loads[0].cost(),
            Function::WriteRequest => self.loads[1].cost(),
            Function::MemStoreSize => self.loads[2].cost(),
            Function::StoreFile => self.loads[3].cost(),
        }
    }

    fn move_cost(&self, state: &State<'_>) -> f64 {
        let regions = state.snapshot.regions.len();
        let most = ((regions as f32 * self.multipliers.max_move_part) as usize).max(MOVES);
        if state.moved > most {
            return TOO_MANY_MOVES;
        }
        scale(0.0, regions.min(most) as f64, state.moved as f64)
    }

    /// A region has gone to another server: `state` has it there.
    pub(crate) fn apply(&mut self, state: &State<'_>, step: Move) -> Undo {
        let Move { region, from, to } = step;
        let entry = &state.snapshot.regions[region];
        let (amounts, tables_cost) = (loads_of(entry), self.tables_cost);
        let table = &mut self.tables[entry.table];
        let before = table.cost();
        let moved_table = table.shift(from, to, 1.0);
        self.tables_cost += table.cost() - before;
        let primaries = (self.has_replicas && state.is_primary(region)).then(|| self.primaries.shift(from, to, 1.0));
        let undo = Undo {
            step,
            counts: self.counts.shift(from, to, 1.0),
            primaries,
            table: moved_table,
            tables_cost,
            loads: std::array::from_fn(|kind| self.loads[kind].shift(from, to, amounts[kind])),
            local: [self.server_local.part, self.rack_local.part],
        };
        if state.localities.is_some() {
            self.server_local.change(state.local_mb(region, to) - state.local_mb(region, from));
            let racks = &state.racks.of_server;
            let delta = state.rack_local_mb(region, racks[to]) - state.rack_local_mb(region, racks[from]);
            self.rack_local.change(delta);
        }
        self.update_sharing(state, step);
        undo
    }

    /// The move is taken back; `state` has the region where it was. The newest first.
    pub(crate) fn undo(&mut self, state: &State<'_>, undo: Undo) {
        self.counts.restore(undo.counts);
        if let Some(before) = undo.primaries {
            self.primaries.restore(before);
        }
        self.tables[state.snapshot.regions[undo.step.region].table].restore(undo.table);
        self.tables_cost = undo.tables_cost;
        for (load, before) in self.loads.iter_mut().zip(undo.loads) {
            load.restore(before);
        }
        [self.server_local.part, self.rack_local.part] = undo.local;
        self.update_sharing(state, undo.step);
    }

    fn update_sharing(&mut self, state: &State<'_>, step: Move) {
        if self.has_replicas {
            self.hosts.update(&state.hosts, step);
            self.racks.update(&state.racks, step);
        }
    }

    /// How often each way to make moves up is chosen: as often as the costs are high that it lowers. Follows: `CostFunction#updateWeight`.
    pub(crate) fn weights(&self, state: &State<'_>) -> Weights {
        let mut weights = Weights::default();
        for function in Function::ALL.into_iter().filter(|function| self.is_there(*function)) {
            let weight = match function {
                Function::RegionCountSkew => &mut weights.load,
                Function::ServerLocality | Function::RackLocality => &mut weights.locality,
                Function::RegionReplicaHost | Function::RegionReplicaRack => &mut weights.rack,
                _ => &mut weights.random,
            };
            *weight += self.cost(state, function);
        }
        weights
    }
}
