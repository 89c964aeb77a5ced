//! The simulator: a whole server (logs, regions, region server, master) on one thread, over files in memory, a clock
//! that is moved by hand and a seeded random number generator, with clients that remember what they were promised.
//!
//! Always true:
//!  1. One seed gives one run, call by call: [`trace::Trace`] has the same hash. Nothing here reads a real clock, starts a
//!     thread that the server could meet, or draws a random number that does not come from the seed.
//!  2. The server's crates run unchanged. Only what their threads would do is done by the schedule, one piece at a time.
//!  3. What a client was told stays true over every crash that a disk allows: acknowledged is there and whole, refused is
//!     not, "maybe" is one of the two and stays what it was once seen.
//!  4. Every failure names its seed and the command that plays it again.
//!
//! Several servers and masters share a world of their own, [`cluster`]: models of HDFS, of a ZooKeeper ensemble and of a network under the same
//! promises. There each process has a thread, of which one at most runs at a time.
//!
//! Tests only: nothing of it is in the server. What comes later (bulk load over several servers) finds its place as an action of the schedule
//! ([`run`], [`cluster::run`]), a promise ([`promises`]) and a step list ([`enumerate`]).

pub mod busy;
pub mod calls;
pub mod check;
pub mod cluster;
pub mod disks;
pub mod enumerate;
pub mod host;
pub mod loads;
pub mod network;
pub mod order;
pub mod progress;
pub mod promises;
pub mod run;
pub mod scans;
pub mod spoken;
pub mod stage;
pub mod steps;
pub mod trace;
pub mod work;
pub mod world;
pub mod znodes;

/// What was promised and is not so; the text says what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with a sentence unless `holds`.
///
/// # Errors
/// The sentence.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(what())) }
}
