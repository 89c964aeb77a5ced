//! A short run of `cargo xtask neighbours` for `cargo xtask test`: three noisy neighbours, ten seconds beside each.

use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::run;

/// Those that differ most: work on the lanes, replies that nobody takes, and writes with nonces.
const NEIGHBOURS: &[&str] = &["scans", "unread", "counters"];
/// Seconds beside each.
const SECONDS: &str = "10";
/// How far a target may be missed: the machine of a test run is busy with something else at times. What this still notices is a server
/// that is silent for seconds. The bound of memory and that no operation fails are held as they are.
const FACTOR: &str = "50";
/// Starting three servers and filling their tables included.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs them; prints the table, with the targets that were missed by less than the factor.
pub fn run(report: &mut Report) {
    report.part("noisy neighbours", || {
        let scratch = run::scratch()?;
        let log = scratch.join("neighbours.log");
        let mut bench = std::process::Command::new(run::built_like_tests("compare")?);
        bench.env("BASALT_BINARY", crate::server::binary());
        bench.args(["neighbours", "--seconds", SECONDS, "--check", FACTOR, "--only"]);
        bench.arg(NEIGHBOURS.join(",")).arg("--out").arg(scratch.join("neighbours"));
        let ended = run::logged(&mut bench, &log, LIMIT)?;
        ended.output.lines().for_each(|line| println!("    {line}"));
        let failures: Vec<String> =
            ended.output.lines().filter_map(|line| line.strip_prefix("missed: ")).map(str::to_owned).collect();
        let mut outcome = Outcome { passed: NEIGHBOURS.len(), failures };
        if !ended.well && outcome.failures.is_empty() {
            outcome.failures.push(format!("it did not come to its end; see {}", log.display()));
        }
        outcome.passed -= outcome.passed.min(outcome.failures.len());
        Ok(outcome)
    });
}
