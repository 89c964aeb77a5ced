//! The report as text: a line as soon as something is measured, tables at the end.

use std::fmt::Write;

use super::figures::{Comparison, Figure, Measured};
use super::pass::WORKLOADS;
use super::targets::{Outcome, outcomes};

/// One measurement in one line.
pub fn line(m: &Measured) -> String {
    let mut line = format!("{:<14}", m.workload);
    if m.operations > 0 {
        let _ = write!(line, " {:>10}/s", number(m.operations as f64 / m.seconds));
        if m.rows != m.operations {
            let _ = write!(line, " {:>11} rows/s", number(m.rows as f64 / m.seconds));
        }
    }
    if let Some(cpu) = m.value(Figure::CpuPerOperation) {
        let _ = write!(line, "  server {cpu:.1} us CPU");
        if let Some(row) = m.value(Figure::CpuPerRow).filter(|_| m.rows != m.operations) {
            let _ = write!(line, " ({row:.2} a row)");
        }
        let _ = write!(line, ", client {:.1} us", m.client_cpu_ns as f64 / 1e3 / m.operations as f64);
    }
    if m.latency.count > 0 {
        let ms = |ns: u64| ns as f64 / 1e6;
        let l = &m.latency;
        let _ = write!(
            line,
            "  ms: p50 {:.2} p99 {:.2} p99.9 {:.2} p99.99 {:.2} max {:.1}",
            ms(l.p50_ns),
            ms(l.p99_ns),
            ms(l.p999_ns),
            ms(l.p9999_ns),
            ms(l.max_ns)
        );
    }
    for (name, value) in &m.extra {
        let _ = write!(line, "  {name} {}", number(*value));
    }
    if m.operations > 0 {
        let _ = write!(line, "  (others {:.1} cores)", m.others_cores);
    }
    line
}

/// The servers that targets are read for: the first is the baseline.
fn pair(comparison: &Comparison) -> Option<(&str, &str)> {
    let baseline = comparison.servers.first()?;
    // Basalt as durable as the baseline, or whoever comes second
    let ours = comparison.servers.iter().skip(1).find(|s| s.name == "basalt").or(comparison.servers.get(1))?;
    Some((&baseline.name, &ours.name))
}

/// Targets and how far they are, if two servers took part.
pub fn target_rows(comparison: &Comparison) -> Vec<Outcome> {
    pair(comparison).map(|(baseline, ours)| outcomes(comparison, baseline, ours)).unwrap_or_default()
}

/// What a target's outcome says.
pub fn verdict(outcome: &Outcome) -> &'static str {
    match outcome.met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "no baseline",
    }
}

/// Columns of figures that most workloads have.
const COLUMNS: &[(&str, Figure)] = &[
    ("ops/s", Figure::Operations),
    ("rows/s", Figure::Rows),
    ("CPU us/op", Figure::CpuPerOperation),
    ("CPU us/row", Figure::CpuPerRow),
    ("p50 us", Figure::P50),
    ("p99 us", Figure::P99),
    ("p99.9 us", Figure::P999),
    ("p99.99 us", Figure::P9999),
    ("max us", Figure::Longest),
    ("peak MiB", Figure::Resident),
];

/// The head of the table of figures.
pub fn head() -> Vec<&'static str> {
    ["workload", "server"]
        .into_iter()
        .chain(COLUMNS.iter().map(|(name, _)| *name))
        .chain(["disk MB r/w", "other figures"])
        .collect()
}

/// The table of figures: means over the runs, with the deviation where there were several.
pub fn rows(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for workload in comparison.workloads() {
        for server in &comparison.servers {
            let of_both: Vec<&Measured> =
                comparison.measured.iter().filter(|m| m.server == server.name && m.workload == workload).collect();
            let Some(first) = of_both.first() else { continue };
            let mut row = vec![workload.to_owned(), server.name.clone()];
            for (_, figure) in COLUMNS {
                let spread = comparison.spread(&server.name, workload, *figure);
                // rows say nothing that operations do not
                let same = matches!(figure, Figure::Rows | Figure::CpuPerRow) && first.rows == first.operations;
                row.push(match spread {
                    Some(spread) if !same && spread.kept > 1 => {
                        format!("{} ±{}", number(spread.mean), number(spread.deviation))
                    }
                    Some(spread) if !same => number(spread.mean),
                    _ => "-".to_owned(),
                });
            }
            let mean =
                |of: fn(&Measured) -> u64| of_both.iter().map(|m| of(m)).sum::<u64>() as f64 / of_both.len() as f64;
            let mb = [mean(|m| m.usage.disk_read_bytes), mean(|m| m.usage.disk_written_bytes)].map(|b| number(b / 1e6));
            row.push(mb.join(" / "));
            let extra = |name: &String| {
                let values: Vec<f64> = of_both.iter().filter_map(|m| m.extra.get(name).copied()).collect();
                let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
                format!("{} {}", name.replace('_', " "), number(mean))
            };
            row.push(first.extra.keys().map(extra).collect::<Vec<_>>().join("; "));
            rows.push(row);
        }
    }
    rows
}

/// Cells of the table of targets.
pub fn target_cells(outcome: &Outcome) -> Vec<String> {
    let value = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), number);
    vec![
        outcome.target.text.to_owned(),
        outcome.target.goal.text(),
        value(outcome.baseline),
        value(outcome.ours),
        outcome.reached.map_or_else(|| "-".to_owned(), |r| outcome.target.goal.reached(r)),
        verdict(outcome).to_owned(),
    ]
}

/// Everything for a terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for server in &comparison.servers {
        let _ = writeln!(out, "{}: {}", server.name, server.about);
    }
    out.push('\n');
    let mut all = vec![head().into_iter().map(str::to_owned).collect::<Vec<_>>()];
    all.extend(rows(comparison));
    align(&mut out, &all);
    let targets = target_rows(comparison);
    if let (Some((baseline, ours)), false) = (pair(comparison), targets.is_empty()) {
        out.push('\n');
        let mut all = vec![["target", "goal", baseline, ours, "reached", ""].map(str::to_owned).to_vec()];
        all.extend(targets.iter().map(target_cells));
        align(&mut out, &all);
    }
    for failure in &comparison.failures {
        let _ = writeln!(out, "FAILED {failure}");
    }
    out
}

/// Everything for a page of documentation.
pub fn markdown(comparison: &Comparison) -> String {
    let m = &comparison.machine;
    let mut out = format!(
        "{}; {}, {} cores, {} GiB, Linux {}\n\n",
        comparison.begun,
        m.processor,
        m.cores,
        m.memory_bytes >> 30,
        m.kernel
    );
    for server in &comparison.servers {
        let _ = writeln!(out, "- `{}`: {}", server.name, server.about);
    }
    let mut grid = |head: Vec<String>, rows: Vec<Vec<String>>| {
        let _ = writeln!(out, "\n| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
        for row in rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
    };
    let targets = target_rows(comparison);
    if let Some((baseline, ours)) = pair(comparison) {
        grid(
            ["figure", "goal", baseline, ours, "reached", ""].map(str::to_owned).to_vec(),
            targets.iter().map(target_cells).collect(),
        );
    }
    grid(head().into_iter().map(str::to_owned).collect(), rows(comparison));
    for failure in &comparison.failures {
        let _ = writeln!(out, "\nFailed: {failure}");
    }
    out
}

/// What a workload is.
pub fn about(workload: &str) -> &'static str {
    WORKLOADS.iter().find(|(name, _)| *name == workload).map_or("", |(_, about)| about)
}

fn align(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(out, "{cell:<width$}  ");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
}

/// A number with about three digits, thousands apart.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |w| ("-", w));
    let groups: Vec<&str> = whole.as_bytes().rchunks(3).rev().filter_map(|g| std::str::from_utf8(g).ok()).collect();
    format!("{sign}{}{rest}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let shown = [1_234_567.8, 999.6, 12.34, 1.234, 0.01234, 0.0, -1234.0].map(number);
        assert_eq!(shown, ["1,234,568", "1,000", "12.3", "1.23", "0.0123", "0", "-1,234"]);
    }
}
