//! Moves that may be worth it. Follows: `CandidateGenerator` and its subclasses.

use crate::costs::Weights;
use crate::snapshot::Move;
use crate::state::{Groups, State};
use base::Rng;
use std::collections::HashMap;

/// One move, or two regions that change places.
pub(crate) type Action = (Move, Option<Move>);

/// A number from 0 to 1.
fn part(rng: &Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn any(rng: &Rng, count: usize) -> usize {
    rng.below(count as u64) as usize
}

/// Makes an action up, in one of the ways, which are chosen by their weights; none where the way finds nothing.
pub(crate) fn generate(state: &State<'_>, weights: Weights, rng: &Rng) -> Option<Action> {
    let ways = [weights.random, weights.load, weights.locality, weights.rack];
    let sum: f64 = ways.iter().sum();
    // Where nothing costs anything any way is as good, the one too that has no weight of its own.
    let mut way = if sum == 0.0 { any(rng, ways.len() + 1) } else { 0 };
    if sum > 0.0 {
        let mut left = part(rng) * sum;
        while way + 1 < ways.len() && left > ways[way] {
            left -= ways[way];
            way += 1;
        }
    }
    match way {
        0 => random(state, rng),
        1 => by_load(state, rng),
        2 => by_locality(state, rng),
        3 => apart_in_racks(state, rng),
        _ => apart(state, rng),
    }
}

fn action(from: usize, region: Option<usize>, to: usize, other: Option<usize>) -> Option<Action> {
    let there = |region| Move { region, from, to };
    let back = |region| Move { region, from: to, to: from };
    match (region, other) {
        (Some(region), other) => Some((there(region), other.map(back))),
        (None, Some(other)) => Some((back(other), None)),
        (None, None) => None,
    }
}

/// A region of a server; none in `chance_of_none` of all cases.
fn pick(state: &State<'_>, server: usize, chance_of_none: f64, rng: &Rng) -> Option<usize> {
    let regions = &state.regions_of[server];
    if regions.is_empty() || part(rng) < chance_of_none {
        return None;
    }
    Some(regions[any(rng, regions.len())])
}

fn other_than(not: usize, count: usize, rng: &Rng) -> Option<usize> {
    let other = any(rng, count.checked_sub(1).filter(|others| *others > 0)?);
    Some(if other >= not { other + 1 } else { other })
}

/// Regions of two servers change places, or one goes from the server with more to the other.
fn between(state: &State<'_>, one: usize, other: usize, rng: &Rng) -> Option<Action> {
    let has_more = state.count_on(one) > state.count_on(other);
    let region = pick(state, one, if has_more { 0.0 } else { 0.5 }, rng);
    let back = pick(state, other, if has_more { 0.5 } else { 0.0 }, rng);
    action(one, region, other, back)
}

fn random(state: &State<'_>, rng: &Rng) -> Option<Action> {
    let count = state.snapshot.servers.len();
    let one = any(rng, count);
    between(state, one, other_than(one, count, rng)?, rng)
}

/// Between a server with the most regions and one with the fewest.
fn by_load(state: &State<'_>, rng: &Rng) -> Option<Action> {
    let servers = 0..state.snapshot.servers.len();
    let among = |wanted: &dyn Fn(usize) -> bool| {
        let count = servers.clone().filter(|server| wanted(*server)).count();
        servers.clone().filter(|server| wanted(*server)).nth(any(rng, count))
    };
    let most = state.regions_of.iter().map(Vec::len).max()?;
    let one = among(&|server| state.count_on(server) == most)?;
    let fewest = servers.clone().filter(|server| *server != one).map(|server| state.count_on(server)).min()?;
    let other = among(&|server| server != one && state.count_on(server) == fewest)?;
    between(state, one, other, rng)
}

/// A region goes where most of its files are, if there is room, or if one may take its place that loses less.
fn by_locality(state: &State<'_>, rng: &Rng) -> Option<Action> {
    let localities = state.localities.as_ref()?;
    let regions = state.snapshot.regions.len();
    let first = any(rng, regions);
    let fewest = regions / state.snapshot.servers.len();
    for region in (first..regions).chain(0..first) {
        let (from, to) = (state.server_of[region], localities.best_server[region]);
        if from == to {
            continue;
        }
        if state.count_on(to) < fewest {
            return action(from, Some(region), to, None);
        }
        let gained = state.local_mb(region, to) - state.local_mb(region, from);
        let others = &state.regions_of[to];
        let start = any(rng, others.len());
        let mut turn = others[start..].iter().chain(&others[..start]);
        let fits = |other: &&usize| gained + state.local_mb(**other, from) - state.local_mb(**other, to) >= 0.0;
        if let Some(other) = turn.find(fits) {
            return action(from, Some(region), to, Some(*other));
        }
    }
    None
}

/// A read replica that shares its place with another of the same region: never the primary.
fn sharing(
    state: &State<'_>,
    counts: &HashMap<Option<usize>, u32>,
    regions: impl Iterator<Item = usize>,
    rng: &Rng,
) -> Option<usize> {
    let mut shared: Vec<Option<usize>> = counts.iter().filter(|(_, n)| **n > 1).map(|(primary, _)| *primary).collect();
    // A map has no order that one seed gives again.
    shared.sort_unstable();
    let chosen = *shared.get(any(rng, shared.len()))?;
    let mut regions = regions;
    regions.find(|region| state.primary(*region) == chosen && chosen != Some(*region))
}

fn apart(state: &State<'_>, rng: &Rng) -> Option<Action> {
    let count = state.snapshot.servers.len();
    let from = any(rng, count);
    let found = sharing(state, &state.servers.replicas[from], state.regions_of[from].iter().copied(), rng);
    let Some(region) = found else { return random(state, rng) };
    let to = other_than(from, count, rng)?;
    action(from, Some(region), to, pick(state, to, 0.9, rng))
}

fn apart_in_racks(state: &State<'_>, rng: &Rng) -> Option<Action> {
    let racks: &Groups = &state.racks;
    if racks.count() <= 1 {
        return apart(state, rng);
    }
    let rack = any(rng, racks.count());
    let regions = racks.servers[rack].iter().flat_map(|server| state.regions_of[*server].iter().copied());
    let Some(region) = sharing(state, &racks.replicas[rack], regions, rng) else { return random(state, rng) };
    let servers = &racks.servers[other_than(rack, racks.count(), rng)?];
    let to = servers[any(rng, servers.len())];
    action(state.server_of[region], Some(region), to, pick(state, to, 0.9, rng))
}
