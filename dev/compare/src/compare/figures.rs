//! What was measured, as it stands in the JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tools::stats::{LatencySummary, Machine, Progress, Spread, Usage};

/// One workload, played once against one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Name of the workload.
    pub workload: String,
    /// Name of the server.
    pub server: String,
    /// Which run, from 1.
    pub run: u32,
    /// Operations that went well.
    pub operations: u64,
    /// Rows that they carried.
    pub rows: u64,
    /// Operations that failed.
    pub errors: u64,
    /// How long it took.
    pub seconds: f64,
    /// Latencies.
    pub latency: LatencySummary,
    /// `(percent, nanoseconds)` for a chart.
    pub curve: Vec<(f64, u64)>,
    /// Operations in each tenth of a second.
    pub tenths: Vec<u64>,
    /// Longest time in which no operation ended, in milliseconds.
    pub longest_gap_ms: f64,
    /// What the server used.
    pub usage: Usage,
    /// CPU time of the load generator.
    pub client_cpu_ns: u64,
    /// Processors that neither the server nor the load generator kept busy, but others did.
    pub others_cores: f64,
    /// Figures that only this workload has.
    pub extra: BTreeMap<String, f64>,
}

impl Measured {
    /// Takes over what a meter saw.
    pub fn set_progress(&mut self, progress: Progress) {
        self.operations = progress.operations;
        self.rows = progress.rows;
        self.errors = progress.errors;
        self.seconds = progress.took.as_secs_f64();
        self.latency = progress.latency;
        self.curve = progress.latencies.curve();
        self.longest_gap_ms = progress.longest_gap.as_secs_f64() * 1e3;
        self.tenths = progress.intervals;
    }

    /// The value of a figure; `None` when this workload does not have it.
    pub fn value(&self, figure: Figure) -> Option<f64> {
        let per = |n: u64| (n > 0).then(|| self.usage.cpu_ns as f64 / 1e3 / n as f64);
        let rate = |n: u64| (n > 0 && self.seconds > 0.0).then(|| n as f64 / self.seconds);
        let latency = |ns: u64| (self.latency.count > 0).then_some(ns as f64 / 1e3);
        match figure {
            Figure::CpuPerOperation => per(self.operations),
            Figure::CpuPerRow => per(self.rows),
            Figure::Operations => rate(self.operations),
            Figure::Rows => rate(self.rows),
            Figure::P50 => latency(self.latency.p50_ns),
            Figure::P99 => latency(self.latency.p99_ns),
            Figure::P999 => latency(self.latency.p999_ns),
            Figure::P9999 => latency(self.latency.p9999_ns),
            Figure::Longest => latency(self.latency.max_ns),
            Figure::Gap => (self.latency.count > 0).then_some(self.longest_gap_ms),
            Figure::Resident => (self.usage.peak_bytes > 0).then_some(self.usage.peak_bytes as f64 / MIB),
            Figure::Extra(name) => self.extra.get(name).copied(),
        }
    }
}

/// Bytes of a mebibyte.
pub const MIB: f64 = 1_048_576.0;

/// Which figure of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// The server's CPU microseconds per operation.
    CpuPerOperation,
    /// The server's CPU microseconds per row.
    CpuPerRow,
    /// Operations per second.
    Operations,
    /// Rows per second.
    Rows,
    /// Median latency in microseconds.
    P50,
    /// 99th percentile in microseconds.
    P99,
    /// 99.9th percentile in microseconds.
    P999,
    /// 99.99th percentile in microseconds.
    P9999,
    /// Longest operation in microseconds.
    Longest,
    /// Longest time without any operation ending, in milliseconds.
    Gap,
    /// Most resident memory in MiB.
    Resident,
    /// One of the workload's own.
    Extra(&'static str),
}

/// A server that took part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its name in the report.
    pub name: String,
    /// What it is and how it was set up.
    pub about: String,
}

/// A whole comparison.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// When it began, UTC.
    pub begun: String,
    /// On what.
    pub machine: Machine,
    /// Those that took part, in their order; ratios are against the first.
    pub servers: Vec<ServerInfo>,
    /// What the tool was told.
    pub settings: BTreeMap<String, String>,
    /// Everything measured.
    pub measured: Vec<Measured>,
    /// What did not work.
    pub failures: Vec<String>,
}

impl Comparison {
    /// Takes what another comparison has seen: further servers behind these, further runs of the same ones behind theirs.
    pub fn join(&mut self, other: Comparison) {
        for server in other.servers {
            let runs = self.measured.iter().filter(|m| m.server == server.name).map(|m| m.run).max().unwrap_or(0);
            let of_it = other.measured.iter().filter(|m| m.server == server.name);
            let later: Vec<Measured> = of_it.map(|m| Measured { run: runs + m.run, ..m.clone() }).collect();
            self.measured.extend(later);
            if self.servers.iter().all(|known| known.name != server.name) {
                self.servers.push(server);
            }
        }
        self.failures.extend(other.failures);
    }

    /// Mean and deviation over the runs.
    pub fn spread(&self, server: &str, workload: &str, figure: Figure) -> Option<Spread> {
        let of_both = self.measured.iter().filter(|m| m.server == server && m.workload == workload);
        Spread::of(&of_both.filter_map(|m| m.value(figure)).collect::<Vec<_>>())
    }

    /// Mean over the runs.
    pub fn mean(&self, server: &str, workload: &str, figure: Figure) -> Option<f64> {
        self.spread(server, workload, figure).map(|s| s.mean)
    }

    /// Workloads in the order in which they were first played.
    pub fn workloads(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for m in &self.measured {
            if !names.contains(&m.workload.as_str()) {
                names.push(m.workload.as_str());
            }
        }
        names
    }
}
