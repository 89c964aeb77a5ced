//! The balancer: which regions are to go to which servers, so that no server has more to do than the others.
//!
//! [`stochastic::balance`] tries moves at random and keeps those that lower a weighted sum of costs; [`simple::balance`] evens out numbers of
//! regions. Both take a [`Snapshot`] of servers and regions, and answer moves. [`LoadHistory`] is what is remembered of a region between two
//! runs; [`placement`] says where regions go that are open nowhere.
//!
//! Always true:
//!  1. Nothing is read but the arguments, and one seed gives one plan: time and randomness come from outside.
//!  2. A plan costs less than what is there, moves included; where none does, there is no plan.
//!  3. A cost is between 0 (even) and 1 (all on one server), as HBase's classes compute it from the same snapshot (`tests/golden.rs`).
//!
//! Must not know: how regions are moved, who reports loads, files, the network. Follows: `StochasticLoadBalancer`, `BalancerClusterState`,
//! `CostFunction` and `CandidateGenerator` with their subclasses, `SimpleLoadBalancer`, `BaseLoadBalancer`.

mod candidates;
mod costs;
mod history;
mod need;
pub mod placement;
pub mod settings;
pub mod simple;
mod skew;
mod snapshot;
mod state;
pub mod stochastic;
mod text;

pub use costs::{Costs, Function, FunctionCost, Multipliers};
pub use history::{LoadHistory, LoadSample, RegionCosts};
pub use settings::{Algorithm, BalancerSettings};
pub use snapshot::{Move, RegionEntry, ServerEntry, Snapshot};
pub use state::State;
pub use stochastic::replay;
pub use text::{java_double, java_float};

/// With fewer servers nothing can be balanced.
pub const FEWEST_SERVERS: usize = 2;
