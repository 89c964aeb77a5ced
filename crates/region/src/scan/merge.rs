//! A k-way merge of [`Source`]s into one run in cell order: a tree of losers, so that a step costs one comparison per
//! level. Reversed, it goes row by row from the last to the first, each row's cells still in order.
//!
//! Follows: `KeyValueHeap`, `ReversedKeyValueHeap`.

use super::source::{AnyRun, Source};
use cell::{CellRef, KeyRef, Order};
use hfile::Result;
use std::cmp::Ordering;

/// The merged run and the position in it.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// `losers[1..k]` are the inner nodes of a tournament whose leaf `i` is node `k + i`.
    losers: Vec<u32>,
    winner: usize,
    order: Order,
    /// Set when reversed: the row that the merge stands in.
    row: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Merge {
    /// Stands nowhere until a seek.
    pub(crate) fn new(order: Order, sources: Vec<Source>) -> Merge {
        let losers = if sources.len() > 1 { vec![0; sources.len()] } else { Vec::new() };
        Merge { sources, losers, winner: 0, order, row: None, scratch: Vec::new() }
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// For a compaction: whether readers want the block of the cell here in the cache.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.sources.get(self.winner).is_some_and(Source::is_wanted)
    }

    /// The cell here.
    #[inline]
    pub(crate) fn current(&self) -> Option<CellRef<'_>> {
        self.sources.get(self.winner).and_then(Source::current)
    }

    /// Whether the cell here is in the memstore.
    #[inline]
    pub(crate) fn is_in_memory(&self) -> bool {
        self.sources.get(self.winner).is_some_and(Source::is_in_memory)
    }

    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Reversed: the row that it stands in, if there is one.
    pub(crate) fn row(&self) -> Option<&[u8]> {
        self.row.as_deref()
    }

    pub(crate) fn sources_mut(&mut self) -> &mut [Source] {
        &mut self.sources
    }

    /// The cells from here on of the source that has the first one. Up to the row in which the next source stands, exclusively, they
    /// are the merge's; without that row, to the end. After the run was moved, [`Merge::run_moved`] must be called.
    #[inline]
    pub(crate) fn run(&mut self) -> Option<(AnyRun<'_>, Option<&[u8]>)> {
        if self.sources.len() == 1 {
            return self.sources[0].run().map(|run| (run, None));
        }
        let rival = self.rival()?;
        let [winner, rival] = self.sources.get_disjoint_mut([self.winner, rival]).ok()?;
        if rival.has_lazy_seek() {
            return None;
        }
        winner.run().map(|run| (run, rival.raw_row()))
    }

    /// The source of a run stands elsewhere, no further than the row that the run was to stop at.
    #[inline]
    pub(crate) fn run_moved(&mut self) {
        // Neither the winner nor its rival has put a seek off: whoever wins now stands where it says.
        self.replay();
    }

    /// Who would win without the winner: one of those that lost to it.
    #[inline]
    fn rival(&self) -> Option<usize> {
        let k = self.sources.len();
        let mut node = (self.winner + k) / 2;
        let mut best: Option<usize> = None;
        while node >= 1 {
            let loser = self.losers[node] as usize;
            if best.is_none_or(|best| self.beats(loser, best)) {
                best = Some(loser);
            }
            node /= 2;
        }
        best
    }

    fn rebuild(&mut self) {
        let k = self.sources.len();
        if k < 2 {
            self.winner = 0;
            return;
        }
        // Plays the tournament from the leaves up.
        let mut inline = [0u32; 32];
        let mut large = Vec::new();
        let winners: &mut [u32] = if 2 * k <= inline.len() {
            &mut inline[..2 * k]
        } else {
            large.resize(2 * k, 0);
            &mut large
        };
        for i in 0..k {
            winners[k + i] = i as u32;
        }
        for node in (1..k).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let a_wins = self.beats(a as usize, b as usize);
            winners[node] = if a_wins { a } else { b };
            self.losers[node] = if a_wins { b } else { a };
        }
        self.winner = winners[1] as usize;
    }

    #[inline]
    fn beats(&self, a: usize, b: usize) -> bool {
        match self.sources[a].compare(&self.sources[b], self.order) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => a < b,
        }
    }

    /// The winner has moved: play its matches again.
    #[inline]
    fn replay(&mut self) {
        let k = self.sources.len();
        if k < 2 {
            return;
        }
        let mut champion = self.winner;
        let mut node = (champion + k) / 2;
        while node >= 1 {
            let rival = self.losers[node] as usize;
            if self.beats(rival, champion) {
                self.losers[node] = champion as u32;
                champion = rival;
            }
            node /= 2;
        }
        self.winner = champion;
    }

    /// Makes sure that the winner really stands where it says.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        while let Some(source) = self.sources.get_mut(self.winner)
            && source.has_lazy_seek()
        {
            source.settle()?;
            self.replay();
        }
        Ok(())
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<()> {
        for source in &mut self.sources {
            source.seek_to_first()?;
        }
        self.rebuild();
        Ok(())
    }

    /// The sources have been positioned one by one.
    pub(crate) fn sources_moved(&mut self) -> Result<()> {
        self.rebuild();
        self.settle()
    }

    /// To the first cell at or after `key`, never backwards. `late`: files may put the seek off.
    pub(crate) fn reseek(&mut self, key: KeyRef<'_>, late: bool) -> Result<()> {
        while let Some(source) = self.sources.get_mut(self.winner)
            && source.is_before(key, self.order)
        {
            if late {
                source.lazy_seek(key)?;
            } else {
                source.reseek(key)?;
            }
            self.park_if_out_of_row();
            self.replay();
        }
        self.settle()
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        if let Some(source) = self.sources.get_mut(self.winner) {
            source.next()?;
            self.park_if_out_of_row();
            self.replay();
            self.settle()?;
        }
        Ok(())
    }

    #[inline]
    fn park_if_out_of_row(&mut self) {
        if let Some(row) = &self.row {
            let source = &mut self.sources[self.winner];
            if source.raw_row() != Some(row) {
                source.park(true);
            }
        }
    }

    /// Reversed: to the last row before `bound` (or at it, when `inclusive`; `None` is the end of everything).
    pub(crate) fn seek_row_back(&mut self, bound: Option<&[u8]>, inclusive: bool) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        for source in &mut self.sources {
            source.park(false);
            source.seek_row_back(bound, inclusive, &mut scratch)?;
        }
        self.scratch = scratch;
        self.choose_last_row();
        Ok(())
    }

    /// Reversed: from the row it stands in to the one before.
    pub(crate) fn previous_row(&mut self) -> Result<()> {
        let Some(row) = self.row.take() else { return Ok(()) };
        self.back_below(&row, false)?;
        Ok(())
    }

    /// Reversed: to the last row before (or at) `bound`; sources that stand there already stay.
    pub(crate) fn back_below(&mut self, bound: &[u8], inclusive: bool) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        for source in &mut self.sources {
            source.park(false);
            // One that ran off its end comes back; one that stands before the bound has not been in the row yet.
            let stays = source.is_finished()
                || source.raw_row().is_some_and(|row| self.order.rows(row, bound) == Ordering::Less);
            if !stays {
                source.seek_row_back(Some(bound), inclusive, &mut scratch)?;
            }
        }
        self.scratch = scratch;
        self.choose_last_row();
        Ok(())
    }

    fn choose_last_row(&mut self) {
        let order = self.order;
        let last = self.sources.iter().filter_map(Source::raw_row).max_by(|a, b| order.rows(a, b));
        let row = last.map(<[u8]>::to_vec);
        for source in &mut self.sources {
            let parked = row.is_none() || source.raw_row() != row.as_deref();
            source.park(parked);
        }
        self.row = row;
        self.rebuild();
    }
}
