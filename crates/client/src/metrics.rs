//! What a connection counts. Follows: `MetricsConnection`.

use base::Adder;

/// Counters of a connection.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: Adder,
    pub(crate) retries: Adder,
    pub(crate) overload_pauses_ms: Adder,
    pub(crate) cache_hits: Adder,
    pub(crate) cache_misses: Adder,
    pub(crate) locations_dropped: Adder,
    pub(crate) replica_reads: Adder,
    pub(crate) replica_reads_won: Adder,
}

/// What a [`crate::Connection`] has counted since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Calls to regions that were sent.
    pub calls: u64,
    /// Tries after the first of operations.
    pub retries: u64,
    /// Time in milliseconds that was waited because servers had too much to do.
    pub overload_pauses_ms: u64,
    /// Times that a row's region was known.
    pub cache_hits: u64,
    /// Times that hbase:meta was asked for a row's region.
    pub cache_misses: u64,
    /// Known locations that a server's answer, or the lack of one, put in doubt.
    pub locations_dropped: u64,
    /// Reads with TIMELINE consistency that asked replicas, too.
    pub replica_reads: u64,
    /// Those of them that a replica answered first.
    pub replica_reads_won: u64,
}

impl Counters {
    pub(crate) fn read(&self) -> Metrics {
        Metrics {
            calls: self.calls.sum(),
            retries: self.retries.sum(),
            overload_pauses_ms: self.overload_pauses_ms.sum(),
            cache_hits: self.cache_hits.sum(),
            cache_misses: self.cache_misses.sum(),
            locations_dropped: self.locations_dropped.sum(),
            replica_reads: self.replica_reads.sum(),
            replica_reads_won: self.replica_reads_won.sum(),
        }
    }
}
