//! How long each fuzzer has run: `dev/fuzz/time.csv`, and the table of `docs/internals/test-log.md` that is drawn from it.
//!
//! A run adds to `target/fuzz/time` only; [`record`] moves what is there into the tree, so that a test run leaves the tree clean and hours
//! outlive a clone. Times are seconds of a core (user and system), not of the wall's clock: a fuzzer is nice to others.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use crate::run;

const LEDGER: &str = "dev/fuzz/time.csv";
const HEADER: &str = "target,cpu_seconds,inputs,edges,findings";
const PAGE: &str = "docs/internals/test-log.md";
/// The head of the table on the page.
const TABLE: &str = "| target | what it reads | core time | inputs | edges reached | inputs that went wrong |";

/// What one target has done by now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry {
    /// Seconds of a core.
    pub cpu_seconds: f64,
    /// Inputs that were tried.
    pub inputs: u64,
    /// Edges that the last run reached; not a sum.
    pub edges: u64,
    /// Inputs that went wrong, all fixed since.
    pub findings: u64,
}

impl Entry {
    /// This and what came after it.
    pub fn and(self, later: Entry) -> Entry {
        Entry {
            cpu_seconds: self.cpu_seconds + later.cpu_seconds,
            inputs: self.inputs + later.inputs,
            edges: if later.edges > 0 { later.edges } else { self.edges },
            findings: self.findings + later.findings,
        }
    }

    fn parse(line: &str) -> Option<(String, Entry)> {
        let mut fields = line.split(',');
        let name = fields.next()?.to_owned();
        let cpu_seconds = fields.next()?.parse().ok()?;
        let mut count = || fields.next()?.parse::<u64>().ok();
        let entry = Entry { cpu_seconds, inputs: count()?, edges: count()?, findings: count()? };
        fields.next().is_none().then_some((name, entry))
    }

    fn line(&self, name: &str) -> String {
        format!("{name},{:.1},{},{},{}\n", self.cpu_seconds, self.inputs, self.edges, self.findings)
    }

    /// As it stands on the page.
    fn cells(&self) -> [String; 4] {
        let seconds = self.cpu_seconds;
        let time = if seconds < 600.0 { format!("{seconds:.0} s") } else { format!("{:.1} min", seconds / 60.0) };
        let findings = if self.findings == 0 { "none".to_owned() } else { self.findings.to_string() };
        [time, self.inputs.to_string(), self.edges.to_string(), findings]
    }
}

/// Entries by target.
pub type Ledger = BTreeMap<String, Entry>;

/// The tree's ledger.
///
/// # Errors
/// A line that is none, named.
pub fn read() -> anyhow::Result<Ledger> {
    let text = std::fs::read_to_string(run::root().join(LEDGER)).with_context(|| LEDGER.to_owned())?;
    parse(&text).with_context(|| format!("in {LEDGER}"))
}

fn parse(text: &str) -> anyhow::Result<Ledger> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        bail!("the first line is not {HEADER}");
    }
    lines.map(|line| Entry::parse(line).with_context(|| format!("not a line of the ledger: {line}"))).collect()
}

/// What one target has run in `folder` since that was last recorded.
pub fn unrecorded(folder: &Path, target: &str) -> Entry {
    let text = std::fs::read_to_string(folder.join(target)).unwrap_or_default();
    Entry::parse(text.trim_end()).map(|(_, entry)| entry).unwrap_or_default()
}

/// Adds a run to what is in `folder`, and says what stands there now.
pub fn note(folder: &Path, target: &str, run: Entry) -> anyhow::Result<Entry> {
    std::fs::create_dir_all(folder)?;
    let now = unrecorded(folder, target).and(run);
    std::fs::write(folder.join(target), now.line(target))
        .with_context(|| format!("cannot write {}", folder.display()))?;
    Ok(now)
}

/// Moves what is in `folder` into the tree's ledger and draws the page's table anew.
pub fn record(folder: &Path, targets: &[(String, String)]) -> anyhow::Result<()> {
    let mut ledger = read()?;
    for (name, _) in targets {
        let entry = ledger.entry(name.clone()).or_default();
        *entry = entry.and(unrecorded(folder, name));
    }
    let lines: String = ledger.iter().map(|(name, entry)| entry.line(name)).collect();
    std::fs::write(run::root().join(LEDGER), format!("{HEADER}\n{lines}")).with_context(|| LEDGER.to_owned())?;
    for (name, _) in targets {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let page = run::root().join(PAGE);
    let drawn = draw(&std::fs::read_to_string(&page).with_context(|| PAGE.to_owned())?, &ledger)?;
    std::fs::write(page, drawn).with_context(|| PAGE.to_owned())
}

/// Holds the page's table against the ledger.
pub fn check() -> anyhow::Result<()> {
    let page = std::fs::read_to_string(run::root().join(PAGE)).with_context(|| PAGE.to_owned())?;
    if draw(&page, &read()?)? != page {
        bail!("the table of fuzzers in {PAGE} is not that of {LEDGER}: cargo xtask fuzz --seconds 0 --record draws it");
    }
    Ok(())
}

/// The page with the ledger's figures in its table of fuzzers; names and what they read stay as they are.
///
/// # Errors
/// No table, or one that lacks a target of the ledger, or has one that the ledger does not know.
fn draw(page: &str, ledger: &Ledger) -> anyhow::Result<String> {
    let mut drawn = String::new();
    let mut open: BTreeMap<_, _> = ledger.iter().collect();
    let (mut in_table, mut seen) = (false, false);
    for line in page.split_inclusive('\n') {
        in_table = line.starts_with('|') && (in_table || line.trim_end() == TABLE);
        seen |= in_table;
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let is_row = in_table && line.trim_end() != TABLE && !line.starts_with("|-");
        if let ([name, about, ..], true) = (cells.as_slice(), is_row) {
            let entry = open.remove(&(*name).to_owned()).with_context(|| format!("{LEDGER} has no target {name}"))?;
            drawn.push_str(&format!("| {name} | {about} | {} |\n", entry.cells().join(" | ")));
        } else {
            drawn.push_str(line);
        }
    }
    if !seen {
        bail!("{PAGE} has no table that begins {TABLE}");
    }
    if let Some((missing, _)) = open.first_key_value() {
        bail!("the table of fuzzers in {PAGE} has no row for {missing}: give it one that says what it reads");
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cpu_seconds: f64, inputs: u64, edges: u64, findings: u64) -> Entry {
        Entry { cpu_seconds, inputs, edges, findings }
    }

    #[test]
    fn times_add_up_and_edges_are_the_last_ones() {
        let sum = entry(10.0, 100, 50, 1).and(entry(2.5, 7, 60, 0)).and(Entry::default());
        assert_eq!(sum, entry(12.5, 107, 60, 1));
        assert_eq!(Entry::parse(sum.line("wal").trim_end()), Some(("wal".to_owned(), sum)));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        assert!(parse(&format!("{HEADER}\nwal,1.0,2,3,0\n")).is_ok());
        for wrong in ["wal,1.0,2,3", "wal,1.0,2,3,0,0", "wal,x,2,3,0"] {
            let error = parse(&format!("{HEADER}\n{wrong}\n")).expect_err(wrong);
            assert!(error.to_string().contains(wrong), "{error}");
        }
        assert!(parse("wal,1.0,2,3,0\n").is_err());
    }

    #[test]
    fn the_table_is_drawn_from_the_ledger() {
        let page = format!(
            "words\n\n{TABLE}\n|---|---|---|---|---|---|\n| wal | logs | 1 s | 1 | 1 | 9 |\n\n| wal | other |\n"
        );
        let ledger = Ledger::from([("wal".to_owned(), entry(720.0, 5, 6, 0))]);
        let drawn = draw(&page, &ledger).expect("a table");
        assert_eq!(drawn, page.replace("| 1 s | 1 | 1 | 9 |", "| 12.0 min | 5 | 6 | none |"));
        assert!(draw(&page, &Ledger::new()).is_err(), "a row without an entry");
        let two = Ledger::from([("wal".to_owned(), Entry::default()), ("hfile".to_owned(), Entry::default())]);
        assert!(draw(&page, &two).is_err(), "an entry without a row");
        assert!(draw("words", &ledger).is_err());
    }
}
