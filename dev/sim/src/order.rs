//! What is promised of a write beyond its acknowledgement, and the one order that all logged writes have.
//!
//! A server has one log. Whatever a crash takes of it is its end: a write that is there has everything with it that was acknowledged
//! before it was sent, in whatever region (what is in a store file was in the log before, on the disk). Clients do not know the places of their
//! writes in the log; they know when each was sent and when its answer came, and that is enough to notice a hole.

use crate::promises::Fate;
use crate::{Violation, ensure};
use model::Durability;
use std::collections::BTreeMap;

/// What an acknowledged write survives by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Surety {
    /// SKIP_WAL: nothing, until it is flushed.
    InMemory,
    /// ASYNC_WAL: nothing, but it has its place in the log.
    Logged,
    /// The end of the process: the operating system has it.
    Written,
    /// The end of the machine: it is on the disk.
    #[default]
    Synced,
}

/// How a server's life ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The process is gone; the operating system keeps all that it was given.
    Kill,
    /// The power failed: what was not synced may be gone.
    Power,
}

/// A write's way through time. Instants are numbers that only grow ([`crate::promises::Promises::tick`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// The life of the server in which it was sent.
    pub life: u64,
    /// When. 0: not known.
    pub sent: u64,
    /// When it was acknowledged, or seen.
    pub acked: Option<u64>,
    /// What it survives once it is acknowledged.
    pub surety: Surety,
    /// Whether it has its place in the log.
    pub ordered: bool,
    /// Whether it survives everything from now on: it was synced, flushed or recovered.
    pub safe: bool,
}

impl Track {
    /// Of a write that is sent now.
    pub fn new(life: u64, sent: u64, surety: Surety) -> Track {
        Track { life, sent, acked: None, surety, ordered: surety > Surety::InMemory, safe: false }
    }

    /// It was acknowledged at `tick`.
    pub fn ack(&mut self, tick: u64) {
        self.acked.get_or_insert(tick);
        self.safe |= self.surety == Surety::Synced;
    }

    /// What becomes of an acknowledged write when the server's life ends: whether it must still be there.
    pub fn survives(&self, ending: Ending) -> bool {
        self.safe || self.surety >= if ending == Ending::Kill { Surety::Written } else { Surety::Synced }
    }
}

/// What a default means on a server whose log is `relaxed` and a table that says `table`.
pub fn surety_of(own: Durability, table: Durability, relaxed: bool) -> Surety {
    match if own == Durability::UseDefault { table } else { own } {
        Durability::SkipWal => Surety::InMemory,
        Durability::AsyncWal => Surety::Logged,
        Durability::FsyncWal => Surety::Synced,
        Durability::SyncWal | Durability::UseDefault if relaxed => Surety::Written,
        Durability::SyncWal | Durability::UseDefault => Surety::Synced,
    }
}

/// What a look at the table shows of writes whose fate was open.
#[derive(Clone, Debug)]
pub struct Sight {
    /// When.
    tick: u64,
    /// In which life.
    life: u64,
    there: Vec<Track>,
    lost: Vec<Track>,
}

impl Sight {
    /// Nothing seen yet.
    pub fn new(life: u64, tick: u64) -> Sight {
        Sight { tick, life, there: Vec::new(), lost: Vec::new() }
    }

    /// Acknowledged writes that are lost.
    pub fn lost_count(&self) -> u64 {
        self.lost.len() as u64
    }

    /// The write is there: seen once is as good as acknowledged. `certain`: nothing else explains what is seen.
    pub fn there(&mut self, fate: &mut Fate, track: &mut Track, certain: bool) {
        *fate = Fate::Acked;
        track.ack(self.tick);
        if track.life < self.life {
            // It was recovered.
            track.safe = true;
            if certain {
                self.there.push(*track);
            }
        }
    }

    /// The write is not there and never will be. `certain`: nothing else explains what is not seen.
    pub fn gone(&mut self, fate: &mut Fate, track: &Track, certain: bool) {
        *fate = Fate::Gone;
        if certain && track.acked.is_some() {
            self.lost.push(*track);
        }
    }
}

/// What is known of where the log of one life ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cut {
    /// When the last write was sent that survived.
    survived: u64,
    /// When the first write was acknowledged that did not; 0: there is none.
    lost: u64,
}

/// The ends of all logs.
#[derive(Clone, Debug, Default)]
pub struct Cuts {
    of_life: BTreeMap<u64, Cut>,
}

impl Cuts {
    /// Notes a write that survived its life.
    pub fn survived(&mut self, track: &Track) {
        if track.ordered {
            let cut = self.of_life.entry(track.life).or_default();
            cut.survived = cut.survived.max(track.sent);
        }
    }

    /// Notes what was seen of `what`.
    ///
    /// # Errors
    /// There is a hole: an acknowledged write is lost, and one that was sent afterwards is there.
    pub fn learn(&mut self, sight: &Sight, what: &str) -> Result<(), Violation> {
        sight.there.iter().for_each(|track| self.survived(track));
        for track in sight.lost.iter().filter(|track| track.ordered) {
            let (cut, acked) = (self.of_life.entry(track.life).or_default(), track.acked.unwrap_or(u64::MAX));
            cut.lost = if cut.lost == 0 { acked } else { cut.lost.min(acked) };
        }
        for track in sight.there.iter().chain(&sight.lost).filter(|track| track.ordered) {
            let cut = self.of_life.get(&track.life).copied().unwrap_or_default();
            ensure(cut.lost == 0 || cut.survived < cut.lost, || {
                format!(
                    "{what}: a hole in what life {} left: what was acknowledged at {} is lost, what was sent at {} is there",
                    track.life, cut.lost, cut.survived
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(sent: u64, acked: u64) -> Track {
        let mut track = Track::new(1, sent, Surety::Written);
        track.ack(acked);
        track
    }

    #[test]
    fn a_lost_suffix_is_no_hole_and_a_lost_middle_is() {
        let mut cuts = Cuts::default();
        let mut sight = Sight::new(2, 100);
        sight.there(&mut Fate::Maybe.clone(), &mut acked(1, 5), true);
        // Sent before the other was acknowledged: either may come first in the log.
        sight.gone(&mut Fate::Maybe.clone(), &acked(2, 4), true);
        cuts.learn(&sight, "overlapping").expect("no hole");
        let mut sight = Sight::new(2, 101);
        sight.there(&mut Fate::Maybe.clone(), &mut acked(6, 7), true);
        assert!(cuts.learn(&sight, "later").is_err(), "sent at 6, and what was acknowledged at 4 is lost");
    }

    #[test]
    fn what_skips_the_log_makes_no_hole() {
        let mut cuts = Cuts::default();
        let mut sight = Sight::new(2, 100);
        let mut skipped = Track::new(1, 1, Surety::InMemory);
        skipped.ack(2);
        sight.gone(&mut Fate::Maybe.clone(), &skipped, true);
        sight.there(&mut Fate::Maybe.clone(), &mut acked(3, 4), true);
        cuts.learn(&sight, "skipped").expect("no hole");
    }

    #[test]
    fn what_survives_depends_on_the_ending() {
        let sure = |own, relaxed| {
            let track = Track::new(1, 1, surety_of(own, Durability::SyncWal, relaxed));
            [Ending::Kill, Ending::Power].map(|ending| track.survives(ending))
        };
        assert_eq!(sure(Durability::UseDefault, false), [true, true]);
        assert_eq!(sure(Durability::UseDefault, true), [true, false]);
        assert_eq!(sure(Durability::FsyncWal, true), [true, true]);
        assert_eq!(sure(Durability::AsyncWal, false), [false, false]);
        assert_eq!(sure(Durability::SkipWal, false), [false, false]);
    }
}
