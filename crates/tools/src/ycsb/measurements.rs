//! What YCSB reports: a histogram in microseconds and counts of outcomes for each kind of operation, in its wording.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use parking_lot::Mutex;

use super::properties::Properties;
use crate::stats::Latencies;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Well.
    Ok,
    /// No such record.
    NotFound,
    /// Badly.
    Error,
    /// A value was not what it should be.
    UnexpectedState,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::NotFound => "NOT_FOUND",
            Self::Error => "ERROR",
            Self::UnexpectedState => "UNEXPECTED_STATE",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interval {
    Op,
    Intended,
    Both,
}

#[derive(Default)]
struct One {
    total: Latencies,
    since_status: Latencies,
    outcomes: BTreeMap<Status, u64>,
}

/// Everything measured in one run.
pub struct Measurements {
    interval: Interval,
    percentiles: Vec<f64>,
    verbose: bool,
    by_name: Mutex<BTreeMap<(bool, &'static str), One>>,
}

/// Names of an operation, when it went well and when not.
pub type Names = (&'static str, &'static str);

impl Measurements {
    /// As the properties say.
    ///
    /// # Errors
    /// `measurement.interval` is none of op, intended, both.
    pub fn new(p: &Properties) -> anyhow::Result<Self> {
        let interval = match p.text("measurement.interval").unwrap_or("op") {
            "op" => Interval::Op,
            "intended" => Interval::Intended,
            "both" => Interval::Both,
            other => anyhow::bail!("unknown measurement.interval={other}"),
        };
        let percentiles = p.text("hdrhistogram.percentiles").unwrap_or("50,95,99");
        let percentiles: Result<_, _> = percentiles.split(',').map(|n| n.trim().parse()).collect();
        let percentiles = percentiles.unwrap_or_else(|_| {
            eprintln!("[WARN] Couldn't read hdrhistogram.percentiles, the default of '50,95,99' will be used.");
            vec![50.0, 95.0, 99.0]
        });
        let verbose = p.flag("measurement.histogram.verbose", false);
        Ok(Self { interval, percentiles, verbose, by_name: Mutex::default() })
    }

    /// One operation: how long it took, how long since it was due (not for what is never due), and how it ended (not
    /// for what YCSB does not count).
    pub fn record(&self, (well, badly): Names, status: Option<Status>, took: Duration, since_due: Option<Duration>) {
        let name = if status.unwrap_or(Status::Ok) == Status::Ok { well } else { badly };
        let mut by_name = self.by_name.lock();
        if self.interval != Interval::Intended {
            by_name.entry((false, name)).or_default().measure(took);
        }
        if let (true, Some(since_due)) = (self.interval != Interval::Op, since_due) {
            by_name.entry((true, name)).or_default().measure(since_due);
        }
        if let Some(status) = status {
            let counted = by_name.entry((self.interval == Interval::Intended, well)).or_default();
            *counted.outcomes.entry(status).or_default() += 1;
        }
    }

    fn label(&self, intended: bool, name: &str) -> String {
        let prefix = if intended && self.interval == Interval::Both { "Intended-" } else { "" };
        format!("{prefix}{name}")
    }

    /// What the status line says of each operation since the last one.
    pub fn status_line(&self) -> String {
        let mut line = String::new();
        for ((intended, name), one) in self.by_name.lock().iter_mut() {
            let h = &one.since_status;
            let label = self.label(*intended, name);
            let min = if h.count() == 0 { i64::MAX as u64 } else { h.least() };
            let _ =
                write!(line, "[{label}: Count={}, Max={}, Min={min}, Avg={}", h.count(), h.greatest(), short(h.mean()));
            for (label, percent) in [("50", 50.0), ("90", 90.0), ("99", 99.0), ("99.9", 99.9), ("99.99", 99.99)] {
                let _ = write!(line, ", {label}={}", h.percentile(percent));
            }
            line.push_str("] ");
            one.take_interval();
        }
        line
    }

    /// The report at the end: `operations` in `took`.
    pub fn report(&self, operations: u64, took: Duration) -> String {
        let ms = (took.as_millis() as u64).max(1);
        let mut out = String::new();
        let _ = writeln!(out, "[OVERALL], RunTime(ms), {ms}");
        let _ =
            writeln!(out, "[OVERALL], Throughput(ops/sec), {}", java_double(1000.0 * operations as f64 / ms as f64));
        for ((intended, name), one) in self.by_name.lock().iter_mut() {
            one.take_interval();
            let (h, name) = (&one.total, self.label(*intended, name));
            let _ = writeln!(out, "[{name}], Operations, {}", h.count());
            let _ = writeln!(out, "[{name}], AverageLatency(us), {}", java_double(h.mean()));
            let _ = writeln!(out, "[{name}], MinLatency(us), {}", h.least());
            let _ = writeln!(out, "[{name}], MaxLatency(us), {}", h.greatest());
            for percent in &self.percentiles {
                let _ =
                    writeln!(out, "[{name}], {}PercentileLatency(us), {}", ordinal(*percent), h.percentile(*percent));
            }
            for (status, count) in &one.outcomes {
                let _ = writeln!(out, "[{name}], Return={}, {count}", status.name());
            }
            if self.verbose {
                for (value, count) in h.recorded() {
                    let _ = writeln!(out, "[{name}], {value}, {}", java_double(count as f64));
                }
            }
        }
        out
    }
}

impl One {
    fn measure(&mut self, took: Duration) {
        self.since_status.record_ns(took.as_micros() as u64);
    }

    fn take_interval(&mut self) {
        self.total.add(&self.since_status);
        self.since_status.clear();
    }
}

/// A number with at most two decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number as Java prints a double.
fn java_double(value: f64) -> String {
    if value != 0.0 && (value.abs() >= 1e7 || value.abs() < 1e-3) {
        let text = format!("{value:E}");
        let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        return format!("{digits}{point}E{exponent}");
    }
    format!("{value:?}")
}

fn ordinal(percent: f64) -> String {
    if percent.fract() != 0.0 {
        return format!("{percent}");
    }
    let whole = percent as u64;
    let suffix = match (whole % 100, whole % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{whole}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_in_ycsbs_words() {
        let mut properties = Properties::default();
        properties.set("measurement.interval", "both");
        let measurements = Measurements::new(&properties).expect("known");
        let us = Duration::from_micros;
        measurements.record(("READ", "READ-FAILED"), Some(Status::Ok), us(100), Some(us(300)));
        measurements.record(("READ", "READ-FAILED"), Some(Status::NotFound), us(50), Some(us(50)));
        measurements.record(("VERIFY", "VERIFY"), Some(Status::Ok), us(1), None);
        let line = measurements.status_line();
        assert!(
            line.starts_with(
                "[READ: Count=1, Max=100, Min=100, Avg=100, 50=100, 90=100, 99=100, 99.9=100, 99.99=100] "
            )
        );
        assert!(!line.contains("Intended-VERIFY"));
        let report = measurements.report(2, Duration::from_millis(400));
        for want in [
            "[OVERALL], RunTime(ms), 400\n",
            "[OVERALL], Throughput(ops/sec), 5.0\n",
            "[READ], Operations, 1\n[READ], AverageLatency(us), 100.0\n[READ], MinLatency(us), 100\n",
            "[READ], 50thPercentileLatency(us), 100\n[READ], 95thPercentileLatency(us), 100\n",
            "[READ], Return=OK, 1\n[READ], Return=NOT_FOUND, 1\n",
            "[READ-FAILED], MaxLatency(us), 50\n",
            "[Intended-READ], AverageLatency(us), 300.0\n",
        ] {
            assert!(report.contains(want), "{want} in {report}");
        }
    }

    #[test]
    fn numbers_look_as_java_prints_them() {
        assert_eq!([java_double(12_345_678.5), java_double(0.0), java_double(1e7)], ["1.23456785E7", "0.0", "1.0E7"]);
        assert_eq!([ordinal(1.0), ordinal(12.0), ordinal(22.0), ordinal(99.9)], ["1st", "12th", "22nd", "99.9"]);
        assert_eq!([short(1.5), short(100.0), short(0.126)], ["1.5", "100", "0.13"]);
    }
}
