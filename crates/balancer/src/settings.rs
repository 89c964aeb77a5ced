//! Settings of the balancer, under HBase's keys, and what they come to.

use crate::costs::{Function, Multipliers};
use base::{Config, Setting, SettingRow, TextSetting};

macro_rules! weights {
    ($($name:ident $key:literal $default:literal $function:ident $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub const $name: Setting<f64> = Setting {
                key: concat!("hbase.master.balancer.stochastic.", $key),
                default: $default,
                min: 0.0,
                max: 1_000_000_000.0,
                unit: "",
                doc: concat!($doc, " 0 leaves it out."),
            };
        )*

        fn multipliers(config: &Config) -> [f32; 12] {
            let mut weights = [0.0; 12];
            $(weights[Function::$function as usize] = config.get(&$name) as f32;)*
            weights
        }
    };
}

weights! {
    REGION_COUNT_COST "regionCountCost" 500.0 RegionCountSkew
        "What it weighs with the balancer that servers have different numbers of regions.";
    PRIMARY_COUNT_COST "primaryRegionCountCost" 500.0 PrimaryRegionCountSkew
        "What it weighs with the balancer that servers have different numbers of regions that are no read replicas, where there are any.";
    MOVE_COST "moveCost" 7.0 Move
        "What it weighs with the balancer that regions move: more leaves more of them where they are.";
    LOCALITY_COST "localityCost" 25.0 ServerLocality
        "What it weighs with the balancer that files lie on other machines than their region's server, where that is known.";
    RACK_LOCALITY_COST "rackLocalityCost" 15.0 RackLocality
        "What it weighs with the balancer that files lie in other racks than their region's server, where that is known.";
    TABLE_SKEW_COST "tableSkewCost" 35.0 TableSkew
        "What it weighs with the balancer that servers have different numbers of a table's regions.";
    REPLICA_HOST_COST "regionReplicaHostCostKey" 100_000.0 RegionReplicaHost
        "What it weighs with the balancer that a region and its read replicas share a machine.";
    REPLICA_RACK_COST "regionReplicaRackCostKey" 10_000.0 RegionReplicaRack
        "What it weighs with the balancer that a region and its read replicas share a rack.";
    READ_REQUEST_COST "readRequestCost" 5.0 ReadRequest
        "What it weighs with the balancer that servers have different numbers of reads.";
    WRITE_REQUEST_COST "writeRequestCost" 5.0 WriteRequest
        "What it weighs with the balancer that servers have different numbers of writes.";
    MEMSTORE_SIZE_COST "memstoreSizeCost" 5.0 MemStoreSize
        "What it weighs with the balancer that the memstores of servers grow differently.";
    STORE_FILE_SIZE_COST "storefileSizeCost" 5.0 StoreFile
        "What it weighs with the balancer that servers have different amounts of store files.";
}

/// Whether it matters where files are.
pub const USE_LOCALITY: Setting<bool> = Setting {
    key: "hbase.master.balancer.uselocality",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the balancer asks the file system on which machines the files of regions are, and goes by it \
          (hbase.master.balancer.stochastic.localityCost, .rackLocalityCost).",
};

/// The part of all regions that one plan may move.
pub const MAX_MOVE_PART: Setting<f64> = Setting {
    key: "hbase.master.balancer.stochastic.maxMovePercent",
    default: 1.0,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "The part of all regions that the balancer may move at once, where that is more than 600 of them.",
};

/// The cost from which on something is done.
pub const MIN_COST_NEED_BALANCE: Setting<f64> = Setting {
    key: "hbase.master.balancer.stochastic.minCostNeedBalance",
    default: 0.025,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "The balancer does nothing while the mean of its costs, by their weights, is lower. Less moves more regions for smaller gains.",
};

/// Tries at most.
pub const MAX_STEPS: Setting<u64> = Setting {
    key: "hbase.master.balancer.stochastic.maxSteps",
    default: 1_000_000,
    min: 1,
    max: i32::MAX as u64,
    unit: "count",
    doc: "Moves that the balancer tries at most when it makes a plan; each takes less than a microsecond.",
};

/// Tries by region and server.
pub const STEPS_PER_REGION: Setting<u64> = Setting {
    key: "hbase.master.balancer.stochastic.stepsPerRegion",
    default: 800,
    min: 1,
    max: i32::MAX as u64,
    unit: "count",
    doc: "Moves that the balancer tries for each region and server, up to hbase.master.balancer.stochastic.maxSteps.",
};

/// Whether more are tried.
pub const RUN_MAX_STEPS: Setting<bool> = Setting {
    key: "hbase.master.balancer.stochastic.runMaxSteps",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the balancer tries as many moves as both stepsPerRegion and maxSteps say, and not as few as one of them does.",
};

/// How long it may take.
pub const MAX_RUNNING_TIME_MS: Setting<u64> = Setting {
    key: "hbase.master.balancer.stochastic.maxRunningTime",
    default: 30_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long the balancer looks for a plan at most. It takes one thread as long.",
};

/// Loads that are remembered.
pub const LOADS_TO_REMEMBER: Setting<u32> = Setting {
    key: "hbase.master.balancer.stochastic.numRegionLoadsToRemember",
    default: 15,
    min: 1,
    max: 10_000,
    unit: "count",
    doc: "How many loads of each region the balancer remembers and takes the mean of, 24 bytes each. More make it slower to see a change, and \
          less easily misled.",
};

/// How far numbers of regions may lie apart.
pub const SLOP: Setting<f64> = Setting {
    key: "hbase.regions.slop",
    default: 0.2,
    min: -1.0,
    max: 1000.0,
    unit: "fraction",
    doc: "The balancer makes a plan in any case when a server has more or fewer regions than the average by more than this part of it; never for \
          that if it is negative.",
};

/// The same over all tables, for SimpleLoadBalancer.
pub const OVERALL_SLOP: Setting<f64> = Setting {
    key: "hbase.regions.overallSlop",
    default: 0.2,
    min: -1.0,
    max: 1000.0,
    unit: "fraction",
    doc: "SimpleLoadBalancer makes a plan for a table, too, when a server has more or fewer regions of all tables than the average by more than \
          this part of it. Like hbase.regions.slop where it is not set.",
};

/// Which balancer.
pub const CLASS: TextSetting = TextSetting {
    key: "hbase.master.loadbalancer.class",
    default: "org.apache.hadoop.hbase.master.balancer.StochasticLoadBalancer",
    legal: Some(
        "StochasticLoadBalancer or SimpleLoadBalancer of org.apache.hadoop.hbase.master.balancer, or \
         org.apache.hadoop.hbase.rsgroup.RSGroupBasedLoadBalancer",
    ),
    is_legal: |text| Algorithm::of_class(text).is_some(),
    doc: "Which of HBase's balancers evens out the load: StochasticLoadBalancer by all costs, SimpleLoadBalancer by numbers of regions only. \
          RSGroupBasedLoadBalancer switches groups of region servers on, each of which is balanced for itself by the first. Classes of others are \
          refused.",
};

/// The class that balances each group of region servers for itself.
pub const BY_GROUP: &str = "org.apache.hadoop.hbase.rsgroup.RSGroupBasedLoadBalancer";

/// Which balancer evens out each group.
pub const GROUP_CLASS: TextSetting = TextSetting {
    key: "hbase.rsgroup.grouploadbalancer.class",
    default: "org.apache.hadoop.hbase.master.balancer.StochasticLoadBalancer",
    legal: Some("StochasticLoadBalancer or SimpleLoadBalancer of org.apache.hadoop.hbase.master.balancer"),
    is_legal: |text| text.trim() != BY_GROUP && Algorithm::of_class(text).is_some(),
    doc: "Which of HBase's balancers evens out the load in each group, where hbase.master.loadbalancer.class is RSGroupBasedLoadBalancer.",
};

/// A balancer of HBase's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// By costs.
    Stochastic,
    /// By numbers of regions.
    Simple,
}

impl Algorithm {
    /// That of one of HBase's classes.
    pub fn of_class(name: &str) -> Option<Algorithm> {
        if name.trim() == BY_GROUP {
            return Some(Algorithm::Stochastic);
        }
        match name.trim().strip_prefix("org.apache.hadoop.hbase.master.balancer.")? {
            "StochasticLoadBalancer" => Some(Algorithm::Stochastic),
            "SimpleLoadBalancer" => Some(Algorithm::Simple),
            _ => None,
        }
    }
}

/// The settings as values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BalancerSettings {
    /// Which balancer.
    pub algorithm: Algorithm,
    /// The weights of costs.
    pub multipliers: Multipliers,
    /// Whether it is asked where files are.
    pub use_locality: bool,
    /// The mean cost from which on something is done.
    pub min_cost: f32,
    /// Tries at most,
    pub max_steps: u64,
    /// for each region and server,
    pub steps_per_region: u64,
    /// or as many as both say.
    pub run_max_steps: bool,
    /// How long it may take.
    pub max_running_us: u64,
    /// Loads of a region that are remembered.
    pub loads_to_remember: usize,
    /// How far numbers of regions may lie apart.
    pub slop: f32,
    /// The same over all tables.
    pub overall_slop: f32,
}

impl BalancerSettings {
    /// As the configuration says.
    pub fn from_config(config: &Config) -> BalancerSettings {
        let overall = if config.text(OVERALL_SLOP.key).is_some() { &OVERALL_SLOP } else { &SLOP };
        let class = match config.text(CLASS.key).unwrap_or(CLASS.default) {
            by_group if by_group.trim() == BY_GROUP => config.text(GROUP_CLASS.key).unwrap_or(GROUP_CLASS.default),
            class => class,
        };
        BalancerSettings {
            algorithm: Algorithm::of_class(class).unwrap_or(Algorithm::Stochastic),
            multipliers: Multipliers {
                by_function: multipliers(config),
                max_move_part: config.get(&MAX_MOVE_PART) as f32,
            },
            use_locality: config.get(&USE_LOCALITY),
            min_cost: config.get(&MIN_COST_NEED_BALANCE) as f32,
            max_steps: config.get(&MAX_STEPS),
            steps_per_region: config.get(&STEPS_PER_REGION),
            run_max_steps: config.get(&RUN_MAX_STEPS),
            max_running_us: config.get(&MAX_RUNNING_TIME_MS).saturating_mul(1000),
            loads_to_remember: config.get(&LOADS_TO_REMEMBER) as usize,
            slop: config.get(&SLOP) as f32,
            overall_slop: config.get(overall) as f32,
        }
    }
}

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &REGION_COUNT_COST,
    &PRIMARY_COUNT_COST,
    &MOVE_COST,
    &LOCALITY_COST,
    &RACK_LOCALITY_COST,
    &TABLE_SKEW_COST,
    &REPLICA_HOST_COST,
    &REPLICA_RACK_COST,
    &READ_REQUEST_COST,
    &WRITE_REQUEST_COST,
    &MEMSTORE_SIZE_COST,
    &STORE_FILE_SIZE_COST,
    &USE_LOCALITY,
    &MAX_MOVE_PART,
    &MIN_COST_NEED_BALANCE,
    &MAX_STEPS,
    &STEPS_PER_REGION,
    &RUN_MAX_STEPS,
    &MAX_RUNNING_TIME_MS,
    &LOADS_TO_REMEMBER,
    &SLOP,
    &OVERALL_SLOP,
    &CLASS,
    &GROUP_CLASS,
];
