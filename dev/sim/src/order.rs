//! What is promised of a write beyond its acknowledgement, and the one order that all logged writes have.
//!
//! A server has one log. Whatever a crash takes of it is its end: a write that is there has everything with it that was acknowledged
//! before it was sent, in whatever region (what is in a store file was in the log before, on the disk). Clients do not know the places of their
//! writes in the log; they know when each was sent and when its answer came, and that is enough to notice a hole.

use crate::promises::Outcome;
use crate::{Violation, ensure};
use model::Durability;
use std::collections::BTreeMap;

/// What an acknowledged write survives by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Persistence {
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
    pub persistence: Persistence,
    /// Whether it has its place in the log.
    pub ordered: bool,
    /// Whether it survives everything from now on: it was synced, flushed or recovered.
    pub safe: bool,
}

impl Track {
    /// Of a write that is sent now.
    pub fn new(life: u64, sent: u64, persistence: Persistence) -> Track {
        Track { life, sent, acked: None, persistence, ordered: persistence > Persistence::InMemory, safe: false }
    }

    /// It was acknowledged at `tick`.
    pub fn ack(&mut self, tick: u64) {
        self.acked.get_or_insert(tick);
        self.safe |= self.persistence == Persistence::Synced;
    }

    /// What becomes of an acknowledged write when the server's life ends: whether it must still be there.
    pub fn survives(&self, ending: Ending) -> bool {
        self.safe || self.persistence >= if ending == Ending::Kill { Persistence::Written } else { Persistence::Synced }
    }
}

/// What a default means on a server whose log is `relaxed` and a table that says `table`.
pub fn persistence_of(own: Durability, table: Durability, relaxed: bool) -> Persistence {
    match if own == Durability::UseDefault { table } else { own } {
        Durability::SkipWal => Persistence::InMemory,
        Durability::AsyncWal => Persistence::Logged,
        Durability::FsyncWal => Persistence::Synced,
        Durability::SyncWal | Durability::UseDefault if relaxed => Persistence::Written,
        Durability::SyncWal | Durability::UseDefault => Persistence::Synced,
    }
}

/// What a look at the table shows of writes whose outcome was open.
#[derive(Clone, Debug)]
pub struct Visibility {
    /// When.
    tick: u64,
    /// In which life.
    life: u64,
    there: Vec<Track>,
    lost: Vec<Track>,
}

impl Visibility {
    /// Nothing seen yet.
    pub fn new(life: u64, tick: u64) -> Visibility {
        Visibility { tick, life, there: Vec::new(), lost: Vec::new() }
    }

    /// Acknowledged writes that are lost.
    pub fn lost_count(&self) -> u64 {
        self.lost.len() as u64
    }

    /// The write is there: seen once is as good as acknowledged. `certain`: nothing else explains what is seen.
    pub fn there(&mut self, outcome: &mut Outcome, track: &mut Track, certain: bool) {
        *outcome = Outcome::Acked;
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
    pub fn gone(&mut self, outcome: &mut Outcome, track: &Track, certain: bool) {
        *outcome = Outcome::Gone;
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
    pub fn learn(&mut self, visibility: &Visibility, what: &str) -> Result<(), Violation> {
        visibility.there.iter().for_each(|track| self.survived(track));
        for track in visibility.lost.iter().filter(|track| track.ordered) {
            let (cut, acked) = (self.of_life.entry(track.life).or_default(), track.acked.unwrap_or(u64::MAX));
            cut.lost = if cut.lost == 0 { acked } else { cut.lost.min(acked) };
        }
        for track in visibility.there.iter().chain(&visibility.lost).filter(|track| track.ordered) {
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
        let mut track = Track::new(1, sent, Persistence::Written);
        track.ack(acked);
        track
    }

    #[test]
    fn a_lost_suffix_is_no_hole_and_a_lost_middle_is() {
        let mut cuts = Cuts::default();
        let mut visibility = Visibility::new(2, 100);
        visibility.there(&mut Outcome::Maybe.clone(), &mut acked(1, 5), true);
        // Sent before the other was acknowledged: either may come first in the log.
        visibility.gone(&mut Outcome::Maybe.clone(), &acked(2, 4), true);
        cuts.learn(&visibility, "overlapping").expect("no hole");
        let mut visibility = Visibility::new(2, 101);
        visibility.there(&mut Outcome::Maybe.clone(), &mut acked(6, 7), true);
        assert!(cuts.learn(&visibility, "later").is_err(), "sent at 6, and what was acknowledged at 4 is lost");
    }

    #[test]
    fn what_skips_the_log_makes_no_hole() {
        let mut cuts = Cuts::default();
        let mut visibility = Visibility::new(2, 100);
        let mut skipped = Track::new(1, 1, Persistence::InMemory);
        skipped.ack(2);
        visibility.gone(&mut Outcome::Maybe.clone(), &skipped, true);
        visibility.there(&mut Outcome::Maybe.clone(), &mut acked(3, 4), true);
        cuts.learn(&visibility, "skipped").expect("no hole");
    }

    #[test]
    fn what_survives_depends_on_the_ending() {
        let sure = |own, relaxed| {
            let track = Track::new(1, 1, persistence_of(own, Durability::SyncWal, relaxed));
            [Ending::Kill, Ending::Power].map(|ending| track.survives(ending))
        };
        assert_eq!(sure(Durability::UseDefault, false), [true, true]);
        assert_eq!(sure(Durability::UseDefault, true), [true, false]);
        assert_eq!(sure(Durability::FsyncWal, true), [true, true]);
        assert_eq!(sure(Durability::AsyncWal, false), [false, false]);
        assert_eq!(sure(Durability::SkipWal, false), [false, false]);
    }
}
