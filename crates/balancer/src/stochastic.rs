//! Moves are tried at random, and those kept that lower the cost. Follows: `StochasticLoadBalancer#balanceTable`, `#needsBalance`.

use crate::candidates;
use crate::costs::{Costs, Function, FunctionCost, Multipliers};
use crate::settings::BalancerSettings;
use crate::snapshot::{Move, Snapshot};
use crate::state::State;
use crate::{FEWEST_SERVERS, need, text};
use base::{Clock, Rng};

/// The clock is asked after so many steps.
const STEPS_BETWEEN_LOOKS: u64 = 64;

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// There are fewer servers than can be balanced.
    TooFewServers(usize),
    /// No kind of cost has a weight.
    NoCosts,
    /// It is even enough as it is.
    Even {
        /// Why, in HBase's words.
        reason: String,
        /// What it costs.
        costs: Vec<FunctionCost>,
    },
    /// Nothing that costs less was found.
    NothingBetter(Walk),
    /// These are to be moved.
    Moves(Vec<Move>, Walk),
}

/// How a plan was looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// Actions tried.
    pub steps: u64,
    /// How long that took.
    pub took_us: u64,
    /// The cost as it is.
    pub initial_cost: f64,
    /// The cost of the plan.
    pub final_cost: f64,
    /// The costs as they are.
    pub initial: Vec<FunctionCost>,
    /// The costs of the plan.
    pub planned: Vec<FunctionCost>,
}

/// The weighted costs in HBase's words, those that are 0 left out. Follows: `StochasticLoadBalancer#totalCostsPerFunc`.
pub fn in_words(costs: &[FunctionCost]) -> String {
    let there = costs.iter().filter(|cost| cost.weighted() > 0.0);
    let words: Vec<String> = there
        .map(|cost| format!(" {} : {}", cost.function.simple_name(), text::java_double(cost.weighted())))
        .collect();
    words.join(";")
}

/// Which regions are to move. Time: `maxSteps` tries, each independent of the number of regions, or `maxRunningTime`, whichever is over first.
/// Memory: some hundred bytes for each region, and eight for each server and table.
pub fn balance(snapshot: &Snapshot, settings: &BalancerSettings, rng: &Rng, clock: &dyn Clock) -> Decision {
    let begun_us = clock.monotonic_us();
    let servers = snapshot.servers.len();
    if servers < FEWEST_SERVERS {
        return Decision::TooFewServers(servers);
    }
    let mut state = State::new(snapshot);
    let mut costs = Costs::new(&state, settings.multipliers);
    if costs.multiplier() <= 0.0 {
        return Decision::NoCosts;
    }
    let initial = costs.functions(&state);
    let initial_cost = costs.total(&state);
    if let Some(reason) = even(&state, &costs, settings) {
        return Decision::Even { reason, costs: initial };
    }
    let most = steps(snapshot, settings);
    let mut cost = initial_cost;
    let mut step = 0;
    while step < most {
        step += 1;
        if let Some((one, other)) = candidates::generate(&state, costs.weights(&state), rng) {
            state.apply(one);
            let undo_one = costs.apply(&state, one);
            let undo_other = other.map(|other| {
                state.apply(other);
                costs.apply(&state, other)
            });
            let now = costs.total(&state);
            if now < cost {
                cost = now;
            } else {
                let back = |step: Move| Move { region: step.region, from: step.to, to: step.from };
                if let (Some(other), Some(undo)) = (other, undo_other) {
                    state.apply(back(other));
                    costs.undo(&state, undo);
                }
                state.apply(back(one));
                costs.undo(&state, undo_one);
            }
        }
        let is_time = step.is_multiple_of(STEPS_BETWEEN_LOOKS);
        if is_time && clock.monotonic_us().saturating_sub(begun_us) > settings.max_running_us {
            break;
        }
    }
    let walk = Walk {
        steps: step,
        took_us: clock.monotonic_us().saturating_sub(begun_us),
        initial_cost,
        final_cost: cost,
        initial,
        planned: costs.functions(&state),
    };
    let moves = state.moves();
    if moves.is_empty() { Decision::NothingBetter(walk) } else { Decision::Moves(moves, walk) }
}

/// What a snapshot costs, for whoever only looks.
pub fn costs(snapshot: &Snapshot, settings: &BalancerSettings) -> Vec<FunctionCost> {
    let state = State::new(snapshot);
    Costs::new(&state, settings.multipliers).functions(&state)
}

fn steps(snapshot: &Snapshot, settings: &BalancerSettings) -> u64 {
    let each = settings.steps_per_region.saturating_mul(snapshot.servers.len() as u64);
    let wanted = each.saturating_mul(snapshot.regions.len() as u64);
    if settings.run_max_steps { wanted.max(settings.max_steps) } else { wanted.min(settings.max_steps) }
}

/// Why nothing needs to be done; `None` where something does.
fn even(state: &State<'_>, costs: &Costs, settings: &BalancerSettings) -> Option<String> {
    let shares = |function: Function| costs.cost(state, function) > 0.0;
    let is_shared = state.hosts.count() >= state.max_replicas && shares(Function::RegionReplicaHost)
        || state.racks.count() >= state.max_replicas && shares(Function::RegionReplicaRack);
    let counts: Vec<usize> = state.regions_of.iter().map(Vec::len).collect();
    if is_shared || need::is_one_idle(&counts) || need::is_sloppy(&counts, settings.slop) {
        return None;
    }
    let (total, multiplier) = (costs.total(state), costs.multiplier());
    let average = total / f64::from(multiplier);
    if average >= f64::from(settings.min_cost) {
        return None;
    }
    Some(if total <= 0.0 {
        format!("(cost1*multiplier1)+(cost2*multiplier2)+...+(costn*multipliern) = {} <= 0", text::java_double(total))
    } else {
        format!(
            "[(cost1*multiplier1)+(cost2*multiplier2)+...+(costn*multipliern)]/sumMultiplier = {} <= \
             minCostNeedBalance({})",
            text::java_double(average),
            text::java_float(settings.min_cost)
        )
    })
}

/// What `look` makes of the state and the costs after regions have gone, one after the other, to servers: for whoever compares costs.
pub fn replay<T>(
    snapshot: &Snapshot,
    multipliers: Multipliers,
    moves: &[(usize, usize)],
    look: impl FnOnce(&State<'_>, &Costs) -> T,
) -> T {
    let mut state = State::new(snapshot);
    let mut costs = Costs::new(&state, multipliers);
    for (region, to) in moves {
        let step = Move { region: *region, from: state.server_of[*region], to: *to };
        state.apply(step);
        costs.apply(&state, step);
    }
    look(&state, &costs)
}
