//! Every server gets as many regions of a table as the others, or one more; those that have fewest in all get it. Follows:
//! `SimpleLoadBalancer`.

use crate::snapshot::{Move, Snapshot};
use crate::{FEWEST_SERVERS, need};
use std::cmp::Reverse;

/// Which regions of a table (or of all) are to move: no more than it takes, the newest first. `all` has the number of regions of each server over
/// all tables, and is kept up. Empty where it is even enough: when no server has more or less by the part `slop` than the average, neither of
/// these regions nor, by the part `overall_slop`, of all.
pub fn balance(snapshot: &Snapshot, all: &mut [usize], slop: f32, overall_slop: f32) -> Vec<Move> {
    let counts = snapshot.counts();
    let servers = counts.len();
    if servers < FEWEST_SERVERS {
        return Vec::new();
    }
    let average = all.iter().sum::<usize>() as f32 / all.len().max(1) as f32;
    let is_uneven = need::is_one_idle(&counts) || need::is_sloppy(&counts, slop);
    if !is_uneven && !need::is_beyond(all, average, overall_slop) {
        return Vec::new();
    }
    let targets = targets(&counts, all);
    let mut spare = Vec::new();
    let mut regions: Vec<usize> = (0..snapshot.regions.len()).collect();
    // The newest go first: they have the least in caches and on the server's disks.
    regions.sort_by_key(|region| Reverse(snapshot.regions[*region].created_ms));
    let mut excess: Vec<usize> =
        counts.iter().zip(&targets).map(|(count, target)| count.saturating_sub(*target)).collect();
    for region in regions {
        let from = snapshot.regions[region].server;
        if excess[from] > 0 {
            excess[from] -= 1;
            spare.push((region, from));
        }
    }
    let mut wanting: Vec<usize> =
        counts.iter().zip(&targets).map(|(count, target)| target.saturating_sub(*count)).collect();
    let mut moves = Vec::new();
    let mut spare = spare.into_iter();
    // In turns, so that no server gets only the newest.
    while wanting.iter().any(|count| *count > 0) {
        for (to, wanted) in wanting.iter_mut().enumerate().filter(|(_, wanted)| **wanted > 0) {
            let Some((region, from)) = spare.next() else { return moves };
            *wanted -= 1;
            all[from] = all[from].saturating_sub(1);
            all[to] += 1;
            moves.push(Move { region, from, to });
        }
    }
    moves
}

/// How many each server is to have.
fn targets(counts: &[usize], all: &[usize]) -> Vec<usize> {
    let total: usize = counts.iter().sum();
    let (least, more) = (total / counts.len(), total % counts.len());
    let mut order: Vec<usize> = (0..counts.len()).collect();
    // Of what it has beside these regions and those that it gets in any case; who has one more already keeps it.
    order.sort_by_key(|server| {
        (all[*server] + least - counts[*server].min(all[*server]), Reverse(counts[*server]), *server)
    });
    let mut targets = vec![least; counts.len()];
    order.into_iter().take(more).for_each(|server| targets[server] += 1);
    targets
}
