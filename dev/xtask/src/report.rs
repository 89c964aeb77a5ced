//! What was run, how long it took, how it ended: a table, and the line `N passed, N failed`.

use std::time::{Duration, Instant};

use anyhow::bail;

struct Row {
    name: String,
    took: Duration,
    passed: usize,
    failures: Vec<String>,
}

/// Collects results; nothing stops at the first failure.
pub struct Report {
    started: Instant,
    rows: Vec<Row>,
}

impl Default for Report {
    fn default() -> Report {
        Report { started: Instant::now(), rows: Vec::new() }
    }
}

/// What a part reports of itself: how many cases went well, and one line for each that did not.
#[derive(Default)]
pub struct Outcome {
    /// Cases that passed.
    pub passed: usize,
    /// One line per failed case.
    pub failures: Vec<String>,
}

impl Report {
    /// Runs one part and files its outcome; an error is one failed case.
    pub fn part(&mut self, name: &str, body: impl FnOnce() -> anyhow::Result<Outcome>) {
        let start = Instant::now();
        // A run that is cut off has no table: what took so long is to be seen without it.
        println!("==> {name} (after {})", minutes(start - self.started));
        let outcome =
            body().unwrap_or_else(|e| Outcome { passed: 0, failures: vec![format!("{e:#}").trim_end().to_owned()] });
        let row =
            Row { name: name.to_owned(), took: start.elapsed(), passed: outcome.passed, failures: outcome.failures };
        for failure in &row.failures {
            println!("    FAILED {failure}");
        }
        println!("    {} passed, {} failed, {:.1} s", row.passed, row.failures.len(), row.took.as_secs_f64());
        self.rows.push(row);
    }

    /// A part that is one case. Did it go well?
    pub fn step(&mut self, name: &str, body: impl FnOnce() -> anyhow::Result<()>) -> bool {
        self.part(name, || body().map(|()| Outcome { passed: 1, failures: Vec::new() }));
        self.rows.last().is_some_and(|r| r.failures.is_empty())
    }

    /// Prints the table; an error (hence a non-zero exit) if anything failed.
    pub fn finish(self) -> anyhow::Result<()> {
        let width = self.rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        println!("\n{:width$}  {:>8}  {:>6}  {:>6}", "", "seconds", "passed", "failed");
        for r in &self.rows {
            println!("{:width$}  {:>8.1}  {:>6}  {:>6}", r.name, r.took.as_secs_f64(), r.passed, r.failures.len());
        }
        let failures: Vec<String> =
            self.rows.iter().flat_map(|r| r.failures.iter().map(move |f| format!("{}: {f}", r.name))).collect();
        if !failures.is_empty() {
            println!();
        }
        for failure in &failures {
            println!("FAILED {failure}");
        }
        let passed: usize = self.rows.iter().map(|r| r.passed).sum();
        println!("\n{passed} passed, {} failed", failures.len());
        if !failures.is_empty() {
            bail!("not everything passed");
        }
        Ok(())
    }
}

/// As `7:05`, minutes and seconds.
fn minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::minutes;
    use std::time::Duration;

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(minutes(Duration::from_secs(9)), "0:09");
        assert_eq!(minutes(Duration::from_secs(3725)), "62:05");
    }
}
