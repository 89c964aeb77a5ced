//! How many puts count at each of many moments, where each put counts from its arrival to some later moment.
//!
//! The moments are the version markers of a column and of its family, by sequence id, and the end ([`END`]). Next to one another they
//! mostly count the same: only where a put begins or ends to count are they told apart ([`Run`]), and the runs lie in blocks that are
//! added to as a whole. So a put costs about the square root of the number of runs, and a marker that nothing depends on costs nothing.

use std::collections::BTreeSet;

/// The moment after all.
pub(super) const END: u64 = u64::MAX;
/// Runs of a block before it is cut in two.
const BLOCK_RUNS: usize = 256;

/// Neighbouring moments at which the same number of puts counts.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The last of the moments.
    last: u64,
    /// To which the block's `added` comes.
    count: u32,
}

/// Runs side by side.
#[derive(Debug)]
struct Block {
    runs: Vec<Run>,
    added: u32,
    /// The highest count of a run, `added` not included.
    highest: u32,
}

impl Block {
    fn of(runs: Vec<Run>) -> Block {
        let mut block = Block { runs, added: 0, highest: 0 };
        block.measure();
        block
    }

    fn measure(&mut self) {
        self.highest = self.runs.iter().map(|run| run.count).max().unwrap_or(0);
    }

    fn last(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.last)
    }
}

/// The counts of one column.
#[derive(Debug)]
pub(super) struct Counts {
    /// In order; the last run ends at [`END`].
    blocks: Vec<Block>,
    /// Moments of the column's own markers; those of the family's are handed in.
    own: BTreeSet<u64>,
    /// No count is higher.
    most: u32,
    #[cfg(test)]
    pub steps: std::cell::Cell<u64>,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            blocks: vec![Block::of(vec![Run { last: END, count: 0 }])],
            own: BTreeSet::new(),
            most: 0,
            #[cfg(test)]
            steps: std::cell::Cell::new(0),
        }
    }
}

impl Counts {
    fn note_steps(&self, _steps: usize) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + _steps as u64);
    }

    /// Nothing counts, and the column has no markers.
    pub(super) fn clear(&mut self) {
        if self.blocks.len() == 1 && self.blocks[0].runs.len() == 1 {
            self.blocks[0] = Block::of(vec![Run { last: END, count: 0 }]);
        } else {
            self.blocks = vec![Block::of(vec![Run { last: END, count: 0 }])];
        }
        self.own.clear();
        self.most = 0;
    }

    /// The last moment that is not after `at`. `family` are those of the family's markers, in order.
    pub(super) fn last_until(&self, at: u64, family: &[u64]) -> Option<u64> {
        if at == END {
            return Some(END);
        }
        let of_family = family.partition_point(|moment| *moment <= at).checked_sub(1).map(|i| family[i]);
        self.own.range(..=at).next_back().copied().max(of_family)
    }

    /// The first moment that is not before `at`.
    pub(super) fn first_from(&self, at: u64, family: &[u64]) -> u64 {
        let of_family = family.get(family.partition_point(|moment| *moment < at)).copied().unwrap_or(END);
        self.own.range(at..).next().copied().unwrap_or(END).min(of_family)
    }

    /// Block and place of the run that `moment` is in.
    fn find(&self, moment: u64) -> (usize, usize) {
        let block = self.blocks.partition_point(|block| block.last() < moment);
        let run = self.blocks[block].runs.partition_point(|run| run.last < moment);
        self.note_steps(1);
        (block, run)
    }

    /// Puts that count at `moment`.
    pub(super) fn at(&self, moment: u64) -> u32 {
        let (block, run) = self.find(moment);
        self.blocks[block].runs[run].count + self.blocks[block].added
    }

    /// A run ends with `moment`, which is one of the moments.
    fn cut_after(&mut self, moment: u64) {
        let (block, at) = self.find(moment);
        let run = self.blocks[block].runs[at];
        if run.last != moment {
            self.insert(block, at, Run { last: moment, count: run.count });
        }
    }

    fn insert(&mut self, block: usize, at: usize, run: Run) {
        let runs = &mut self.blocks[block].runs;
        runs.insert(at, run);
        if runs.len() > BLOCK_RUNS {
            let upper = runs.split_off(BLOCK_RUNS / 2);
            let added = self.blocks[block].added;
            self.blocks[block].measure();
            self.blocks.insert(block + 1, Block { added, ..Block::of(upper) });
        } else {
            let block = &mut self.blocks[block];
            block.highest = block.highest.max(run.count);
        }
    }

    /// A marker of the column itself makes `moment` one of the moments, with `count` puts.
    pub(super) fn add_moment(&mut self, moment: u64, count: u32, family: &[u64]) {
        self.most = self.most.max(count);
        let is_new = self.own.insert(moment) && family.binary_search(&moment).is_err();
        if let Some(before) = moment.checked_sub(1).and_then(|before| self.last_until(before, family)) {
            self.cut_after(before);
        }
        if !is_new {
            self.cut_after(moment);
            let (block, at) = self.find(moment);
            self.settle(block);
            self.blocks[block].runs[at].count = count;
            self.blocks[block].measure();
            return;
        }
        let (block, at) = self.find(moment);
        // What was added to the block as a whole must not count for what is new in it.
        if count < self.blocks[block].added {
            self.settle(block);
        }
        let added = self.blocks[block].added;
        self.insert(block, at, Run { last: moment, count: count - added });
    }

    /// Adds to each run of a block what was added to the block.
    fn settle(&mut self, block: usize) {
        let block = &mut self.blocks[block];
        block.runs.iter_mut().for_each(|run| run.count += block.added);
        block.highest += std::mem::take(&mut block.added);
    }

    /// The first moment after `after` and not after `until` at which `most` puts or more count.
    pub(super) fn first_full(&mut self, after: Option<u64>, until: u64, most: u32, family: &[u64]) -> Option<u64> {
        if self.most < most {
            return None;
        }
        let (from, to) = self.bounds(after, until, family)?;
        let (mut block, mut at) = from;
        loop {
            let this = &self.blocks[block];
            self.note_steps(1);
            let end = if block == to.0 { to.1 + 1 } else { this.runs.len() };
            if this.highest + this.added >= most {
                self.note_steps(end - at);
                if let Some(found) = (at..end).find(|at| this.runs[*at].count + this.added >= most) {
                    return Some(self.first_of(block, found, family));
                }
            }
            if block == to.0 {
                return None;
            }
            (block, at) = (block + 1, 0);
        }
    }

    /// The first moment of a run.
    fn first_of(&self, block: usize, at: usize, family: &[u64]) -> u64 {
        let before = match at.checked_sub(1) {
            Some(at) => Some(self.blocks[block].runs[at].last),
            None => block.checked_sub(1).map(|block| self.blocks[block].last()),
        };
        self.first_from(before.map_or(0, |last| last + 1), family)
    }

    /// One put more counts at the moments after `after` and not after `until`; the last of them, if there is any.
    pub(super) fn add(&mut self, after: Option<u64>, until: u64, family: &[u64]) -> Option<u64> {
        let (from, to) = self.bounds(after, until, family)?;
        for block in from.0..=to.0 {
            let this = &mut self.blocks[block];
            let at = if block == from.0 { from.1 } else { 0 };
            let end = if block == to.0 { to.1 + 1 } else { this.runs.len() };
            let is_whole = at == 0 && end == this.runs.len();
            if is_whole {
                this.added += 1;
            } else {
                this.runs[at..end].iter_mut().for_each(|run| run.count += 1);
                this.measure();
            }
            let steps = if is_whole { 1 } else { self.blocks[block].runs.len() };
            self.note_steps(steps);
        }
        self.most = self.most.saturating_add(1);
        Some(self.blocks[to.0].runs[to.1].last)
    }

    /// Cuts the runs so that some are exactly the moments after `after` and not after `until`: the first and the last.
    fn bounds(&mut self, after: Option<u64>, until: u64, family: &[u64]) -> Option<((usize, usize), (usize, usize))> {
        let last = self.last_until(until, family).filter(|last| after.is_none_or(|after| *last > after))?;
        let before = after.and_then(|after| self.last_until(after, family));
        if let Some(before) = before {
            self.cut_after(before);
        }
        self.cut_after(last);
        let from = self.find(before.map_or(0, |before| before + 1));
        Some((from, self.find(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Against counters in a plain list.
    #[test]
    fn counts_are_what_counting_one_by_one_gives() {
        let rng = Rng::seeded(7);
        for round in 0..40 {
            let family: Vec<u64> = (0..round * 7).map(|i| i * 13 + 5).collect();
            let mut counts = Counts::default();
            let mut plain: std::collections::BTreeMap<u64, u32> =
                family.iter().copied().chain([END]).map(|moment| (moment, 0)).collect();
            for _ in 0..600 {
                let a = rng.below(4000);
                match rng.below(4) {
                    0 => {
                        let count = rng.below(5) as u32;
                        counts.add_moment(a, count, &family);
                        plain.insert(a, count);
                    }
                    1 => {
                        let (until, most) = (a + 1 + rng.below(1000), 1 + rng.below(9) as u32);
                        let expected = plain.range(a + 1..=until).find(|(_, count)| **count >= most);
                        let found = counts.first_full(Some(a), until, most, &family);
                        assert_eq!(found, expected.map(|(moment, _)| *moment));
                    }
                    _ => {
                        let until = if rng.below(3) == 0 { END } else { a + 1 + rng.below(1000) };
                        counts.add(Some(a), until, &family);
                        plain.range_mut(a + 1..=until).for_each(|(_, count)| *count += 1);
                    }
                }
            }
            for (moment, count) in &plain {
                assert_eq!(counts.at(*moment), *count, "{moment}");
            }
        }
    }
}
