//! What Basalt must reach beside HBase, and how far it is.

use super::figures::{Comparison, Figure};

/// How a target is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The baseline's cost divided by ours must be at least this.
    Cheaper(f64),
    /// Our rate divided by the baseline's must be at least this.
    Faster(f64),
    /// Our cost divided by the baseline's must be at most this.
    ShareOf(f64),
    /// Our own figure must be at most this.
    AtMost(f64),
    /// Our own figure must be at least this.
    AtLeast(f64),
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// In words.
    pub text: &'static str,
    /// Which workload.
    pub workload: &'static str,
    /// Which figure of it.
    pub figure: Figure,
    /// What it must be.
    pub goal: Goal,
    /// Read from Basalt with its own defaults, not with the baseline's settings.
    pub own_defaults: bool,
}

/// Behind the name of a Basalt, that of the same with its own defaults.
pub const OWN_DEFAULTS: &str = "-safe";

const fn target(text: &'static str, workload: &'static str, figure: Figure, goal: Goal) -> Target {
    Target { text, workload, figure, goal, own_defaults: false }
}

const fn with_own_defaults(target: Target) -> Target {
    Target { own_defaults: true, ..target }
}

use Figure::{CpuPerOperation, CpuPerRow, Extra, Longest, Operations, P99, P999, Rows};
use Goal::{AtLeast, AtMost, Cheaper, Faster, ShareOf};

/// The whole table.
pub const TARGETS: &[Target] = &[
    target("server CPU per cached random get", "get-32", CpuPerOperation, Cheaper(6.0)),
    target("server CPU per single put", "put-32", CpuPerOperation, Cheaper(6.0)),
    target("server CPU per row in batches of 100, with flush and compaction", "batch-put", CpuPerRow, Cheaper(6.0)),
    target("server CPU per row of a full scan", "scan-full", CpuPerRow, Cheaper(8.0)),
    target("server CPU per row of PerformanceEvaluation's scan", "scan-pe", CpuPerRow, Cheaper(8.0)),
    target("server CPU per row filtered out at the server", "scan-filtered", CpuPerRow, Cheaper(5.0)),
    target("random gets per second, 32 threads", "get-32", Operations, Faster(4.0)),
    target("single puts per second, 32 threads", "put-32", Operations, Faster(4.0)),
    target("100-row scans per second, 32 threads", "scan-100", Operations, Faster(4.0)),
    target("rows per second in batches of 100", "batch-put", Rows, Faster(3.0)),
    target("FSYNC_WAL puts per second, 1 thread", "fsync-1", Operations, Faster(1.5)),
    target("FSYNC_WAL puts per second, 8 threads", "fsync-8", Operations, Faster(4.0)),
    target("FSYNC_WAL puts per second, 64 threads", "fsync-64", Operations, Faster(5.0)),
    target("share of what grouped fdatasync allows, 1 thread", "fsync-1", Extra("share_of_disk"), AtLeast(0.8)),
    target("share of what grouped fdatasync allows, 8 threads", "fsync-8", Extra("share_of_disk"), AtLeast(0.8)),
    target("share of what grouped fdatasync allows, 64 threads", "fsync-64", Extra("share_of_disk"), AtLeast(0.8)),
    target("YCSB A", "ycsb-a", Operations, Faster(3.0)),
    target("YCSB B", "ycsb-b", Operations, Faster(3.0)),
    target("YCSB C", "ycsb-c", Operations, Faster(3.0)),
    target("YCSB D", "ycsb-d", Operations, Faster(3.0)),
    target("YCSB E", "ycsb-e", Operations, Faster(4.0)),
    target("YCSB F", "ycsb-f", Operations, Faster(3.0)),
    target("p99.9 at half of the baseline's top rate, flushing and compacting", "fixed-rate", P999, Cheaper(10.0)),
    target("longest stall of mixed load (µs, slowest operation)", "mixed", Longest, AtMost(30_000.0)),
    target("single puts, 100 threads against 1", "put-100", Extra("against_one_thread"), AtLeast(8.0)),
    target("p99 of single puts with 100 threads (µs)", "put-100", P99, AtMost(10_000.0)),
    target("most resident memory, against the budget", "memory", Extra("share_of_budget"), AtMost(1.15)),
    target(
        "kill -9 with unflushed log, until every region serves (s)",
        "recovery",
        Extra("seconds_to_serve"),
        Cheaper(6.0),
    ),
    target("compaction, MB per CPU second, same codec", "compaction", Extra("mb_per_cpu_s"), Faster(4.0)),
    target("bytes on disk, same settings", "batch-put", Extra("bytes_on_disk"), ShareOf(1.0)),
    with_own_defaults(target(
        "bytes on disk, defaults against defaults",
        "batch-put",
        Extra("bytes_on_disk"),
        ShareOf(0.5),
    )),
];

/// A target beside what was measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The target.
    pub target: Target,
    /// The baseline's figure.
    pub baseline: Option<f64>,
    /// Ours.
    pub ours: Option<f64>,
    /// What is held against the goal: a ratio, or our figure.
    pub reached: Option<f64>,
    /// Whether it is enough.
    pub met: Option<bool>,
}

/// Every target for which `ours`, or the same with its own defaults, has a figure.
pub fn outcomes(comparison: &Comparison, baseline: &str, ours: &str) -> Vec<Outcome> {
    let one = |target: &Target| {
        let figure = |server: &str| comparison.mean(server, target.workload, target.figure);
        let own = if target.own_defaults { figure(&format!("{ours}{OWN_DEFAULTS}")) } else { figure(ours) };
        let base = figure(baseline);
        let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?).filter(|r| r.is_finite());
        let (reached, met): (Option<f64>, fn(f64, f64) -> bool) = match target.goal {
            Cheaper(_) => (ratio(base, own), |r, goal| r >= goal),
            Faster(_) => (ratio(own, base), |r, goal| r >= goal),
            ShareOf(_) => (ratio(own, base), |r, goal| r <= goal * 1.005),
            AtMost(_) => (own, |r, goal| r <= goal),
            AtLeast(_) => (own, |r, goal| r >= goal),
        };
        let (Cheaper(goal) | Faster(goal) | ShareOf(goal) | AtMost(goal) | AtLeast(goal)) = target.goal;
        Outcome { target: *target, baseline: base, ours: own, reached, met: reached.map(|r| met(r, goal)) }
    };
    TARGETS.iter().map(one).filter(|outcome| outcome.ours.is_some()).collect()
}

impl Goal {
    /// In words.
    pub fn text(self) -> String {
        match self {
            Cheaper(n) => format!("1/{n} or less"),
            Faster(n) => format!("{n}x or more"),
            ShareOf(n) => format!("{n}x or less"),
            AtMost(n) => format!("{n} or less"),
            AtLeast(n) => format!("{n} or more"),
        }
    }

    /// What was reached, in the same words.
    pub fn reached(self, reached: f64) -> String {
        match self {
            Cheaper(_) if reached >= 1.0 => format!("1/{reached:.1}"),
            Cheaper(_) => format!("{:.2}x", 1.0 / reached),
            Faster(_) | ShareOf(_) => format!("{reached:.2}x"),
            AtMost(_) | AtLeast(_) if reached >= 100.0 => format!("{reached:.0}"),
            AtMost(_) | AtLeast(_) => format!("{reached:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figures::Measured;

    fn measured(server: &str, workload: &str, operations: u64, cpu_ns: u64) -> Measured {
        let mut m = Measured { server: server.into(), workload: workload.into(), operations, ..Measured::default() };
        (m.seconds, m.usage.cpu_ns) = (1.0, cpu_ns);
        m
    }

    #[test]
    fn ratios_are_of_means_and_honest_about_misses() {
        let measured = vec![
            measured("hbase", "get-32", 100, 11_000_000),
            measured("hbase", "get-32", 100, 9_000_000),
            measured("basalt", "get-32", 500, 2_500_000),
            measured("basalt", "put-32", 500, 2_500_000),
        ];
        let comparison = Comparison { measured, ..Comparison::default() };
        let outcomes = outcomes(&comparison, "hbase", "basalt");
        let find = |text: &str| outcomes.iter().find(|o| o.target.text.starts_with(text)).expect("listed");
        let cpu = find("server CPU per cached random get");
        assert_eq!((cpu.reached, cpu.met), (Some(20.0), Some(true)));
        assert_eq!(cpu.target.goal.reached(20.0), "1/20.0");
        let rate = find("random gets per second");
        assert_eq!((rate.reached, rate.met), (Some(5.0), Some(true)));
        let alone = find("server CPU per single put");
        assert_eq!((alone.baseline, alone.reached, alone.met), (None, None, None));
        assert_eq!(Cheaper(6.0).reached(0.5), "2.00x");
        assert!(outcomes.iter().all(|o| o.target.workload != "scan-full"));
    }

    #[test]
    fn defaults_are_held_against_defaults() {
        let bytes = |server: &str, bytes: f64| {
            let mut m = measured(server, "batch-put", 100, 1_000_000);
            m.extra.insert("bytes_on_disk".to_owned(), bytes);
            m
        };
        let reached = |measured: Vec<Measured>| {
            let comparison = Comparison { measured, ..Comparison::default() };
            let of_bytes = |o: &Outcome| (o.target.figure == Extra("bytes_on_disk")).then_some((o.reached, o.met));
            outcomes(&comparison, "hbase", "basalt").iter().filter_map(of_bytes).collect::<Vec<_>>()
        };
        let all = vec![bytes("hbase", 1000.0), bytes("basalt", 1000.0), bytes("basalt-safe", 300.0)];
        assert_eq!(reached(all.clone()), [(Some(1.0), Some(true)), (Some(0.3), Some(true))]);
        assert_eq!(reached(all[..2].to_vec()), [(Some(1.0), Some(true))], "nothing to say without such a pass");
    }
}
