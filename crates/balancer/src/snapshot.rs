//! What a balancer is given: servers and regions by number.

use crate::history::RegionCosts;
use std::sync::Arc;

/// A server that regions may be on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its machine: several servers may be on one.
    pub host: Arc<str>,
    /// Where its machine stands; the same for all where that is not known.
    pub rack: Arc<str>,
}

/// A region that is open, or is being opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionEntry {
    /// The server that has it, by its number in [`Snapshot::servers`].
    pub server: usize,
    /// Its table, by a number below [`Snapshot::tables`].
    pub table: usize,
    /// Of a read replica its number, from 1; 0 of a region that is none.
    pub replica_id: u32,
    /// Of a read replica: its primary, by number in [`Snapshot::regions`], if that is there.
    pub primary: Option<usize>,
    /// When it was made, in milliseconds.
    pub created_ms: u64,
    /// What it has to do.
    pub costs: RegionCosts,
    /// Which part of its files lies on the machine of a server: `(server, 0 to 1)`. Servers that are not named have nothing of them.
    pub localities: Vec<(usize, f32)>,
}

/// Servers and regions at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The servers that take regions.
    pub servers: Vec<ServerEntry>,
    /// The number of tables.
    pub tables: usize,
    /// The regions that those servers have.
    pub regions: Vec<RegionEntry>,
}

impl Snapshot {
    /// Number of regions of each server.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.servers.len()];
        self.regions.iter().for_each(|region| counts[region.server] += 1);
        counts
    }
}

/// A region goes from one server to another; all three by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The region.
    pub region: usize,
    /// The server that has it.
    pub from: usize,
    /// The server that is to have it.
    pub to: usize,
}
