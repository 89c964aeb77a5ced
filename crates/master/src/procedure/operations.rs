//! How many procedures of a kind were begun, how many failed, how long the others took. Follows: `OperationMetrics`,
//! `Procedure#updateMetricsOnSubmit`, `#updateMetricsOnFinish`.

use base::metrics::{Histogram, Sink, Unit};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A region is opened for the first time, or again after a failure.
    Assign,
    /// A region is closed and stays so.
    Unassign,
    /// A region goes to another server.
    Move,
    /// A region is closed and opened where it was.
    Reopen,
    /// A server is asked to open a region.
    Open,
    /// A server is asked to close one.
    Close,
    /// A region becomes two.
    Split,
    /// Regions become one.
    Merge,
    /// What a server left that has crashed is taken care of.
    ServerCrash,
}

/// Those that HBase shows of regions, under its names.
const OF_REGIONS: [(Operation, &str); 8] = [
    (Operation::Assign, "assign"),
    (Operation::Unassign, "unassign"),
    (Operation::Move, "move"),
    (Operation::Reopen, "reopen"),
    (Operation::Open, "open"),
    (Operation::Close, "close"),
    (Operation::Split, "split"),
    (Operation::Merge, "merge"),
];

/// Counts of one operation.
#[derive(Debug)]
struct Counts {
    submitted: AtomicU64,
    failed: AtomicU64,
    times: Histogram,
}

/// Counts of every operation since the start.
#[derive(Debug)]
pub(crate) struct Operations {
    counts: [Counts; OF_REGIONS.len() + 1],
    /// How long regions were in transition.
    in_transition: Histogram,
}

impl Default for Operations {
    fn default() -> Operations {
        let none =
            |_| Counts { submitted: AtomicU64::new(0), failed: AtomicU64::new(0), times: Histogram::new(Unit::Micros) };
        Operations { counts: std::array::from_fn(none), in_transition: Histogram::new(Unit::Micros) }
    }
}

impl Operations {
    fn of(&self, operation: Operation) -> &Counts {
        &self.counts[operation as usize]
    }

    /// One is begun.
    pub fn submitted(&self, operation: Operation) {
        self.of(operation).submitted.fetch_add(1, Relaxed);
    }

    /// One has ended after so long.
    pub fn ended(&self, operation: Operation, has_failed: bool, took_us: u64) {
        let counts = self.of(operation);
        if has_failed {
            counts.failed.fetch_add(1, Relaxed);
            return;
        }
        counts.times.record(took_us);
        if matches!(operation, Operation::Assign | Operation::Unassign | Operation::Move | Operation::Reopen) {
            self.in_transition.record(took_us);
        }
    }

    fn collect_one(&self, sink: &mut Sink, operation: Operation, name: &str, now_ms: i64) {
        let counts = self.of(operation);
        // The first letter large, as Hadoop writes it.
        let capital = name[..1].to_ascii_uppercase() + &name[1..];
        sink.counter(format!("{capital}SubmittedCount"), counts.submitted.load(Relaxed))
            .counter(format!("{capital}FailedCount"), counts.failed.load(Relaxed))
            .histogram(&format!("{name}Time"), &counts.times, now_ms);
    }

    /// Those of regions, into `sink`, whose bean is set.
    pub fn collect_of_regions(&self, sink: &mut Sink, now_ms: i64) {
        for (operation, name) in OF_REGIONS {
            self.collect_one(sink, operation, name, now_ms);
        }
        let moved = [Operation::Assign, Operation::Unassign];
        let count = moved.map(|operation| self.of(operation).submitted.load(Relaxed)).into_iter().sum();
        sink.counter("operationCount", count).histogram("ritDuration", &self.in_transition, now_ms);
    }

    /// Those of crashed servers.
    pub fn collect_of_servers(&self, sink: &mut Sink, now_ms: i64) {
        self.collect_one(sink, Operation::ServerCrash, "serverCrash", now_ms);
    }
}
