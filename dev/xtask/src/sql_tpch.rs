//! TPC-H on `basalt-sql` and PostgreSQL: the same rows in both, all 22 queries, answers compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;

use crate::report::Outcome;
use crate::run;
use crate::sql::{Target, answers, judge, records, root};

/// What makes the rows: a program from PyPI.
const GENERATOR: &str = "tpchgen-cli==4.0.0";
const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];
/// How far two numbers may be apart, against their size: the two round averages and quotients at other digits.
const TOLERANCE: f64 = 1e-5;

/// The tables as files of comma-separated values.
fn files(dir: &Path, scale: &str) -> anyhow::Result<PathBuf> {
    let made = dir.join(format!("tpch-{scale}"));
    if TABLES.iter().all(|table| made.join(format!("{table}.csv")).exists()) {
        return Ok(made);
    }
    let environment = dir.join("tpchgen");
    if !environment.join("bin/tpchgen-cli").exists() {
        run::must("python3 -m venv", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install", GENERATOR]);
        run::must("pip install (network needed on first use)", &mut pip)?;
    }
    let mut generator = Command::new(environment.join("bin/tpchgen-cli"));
    generator.args(["csv", "-s", scale, "--output-dir"]).arg(&made);
    run::must("tpchgen-cli", generator.stdout(Stdio::null()).stderr(Stdio::null()))?;
    Ok(made)
}

fn load(target: &Target, tables: &Path, files: &Path, log: &Path) -> anyhow::Result<()> {
    let mut script = std::fs::read_to_string(tables)?;
    for table in TABLES {
        script.push_str(&format!("\\copy {table} from '{}/{table}.csv' with (format csv, header)\n", files.display()));
    }
    let file = log.with_extension("psql");
    std::fs::write(&file, script)?;
    let mut psql = target.psql();
    psql.args(["-v", "ON_ERROR_STOP=1", "-f"]).arg(&file).stdout(Stdio::null());
    run::must("loading with psql", &mut psql)
}

/// Whether two lines of values between bars are the same but for the last digits of numbers.
fn is_near(ours: &str, theirs: &str) -> bool {
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (ours.split('|').collect(), theirs.split('|').collect());
    let is_same = |(a, b): (&&str, &&str)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0),
        _ => a == b,
    };
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(is_same)
}

/// Loads both, asks both.
pub fn compare(targets: &[Target; 2], dir: &Path, scale: &str) -> anyhow::Result<Outcome> {
    let tests = root().join("tests/tpch");
    let files = files(dir, scale)?;
    for target in targets {
        let start = Instant::now();
        load(target, &tests.join("tables.sql"), &files, &dir.join(format!("tpch-load-{}.out", target.name)))?;
        println!("    {} has the rows of scale {scale} after {:.1} s", target.name, start.elapsed().as_secs_f64());
    }
    let records = records(&std::fs::read_to_string(tests.join("queries.test"))?)?;
    let mut outcome = Outcome::default();
    let mut table = String::from("| query | basalt-sql, s | PostgreSQL, s | rows |\n|---|---|---|---|\n");
    for (at, record) in records.iter().enumerate() {
        if !record.is_for(&targets[1]) {
            // What our plan of a query must be.
            let log = dir.join(format!("tpch-{}-plan.out", at + 1));
            let plan = answers(&targets[0], std::slice::from_ref(record), &log)?;
            match judge(record, &plan[0], &[]) {
                None => outcome.passed += 1,
                Some(complaint) => outcome.failures.push(complaint),
            }
            continue;
        }
        let mut both = Vec::new();
        for target in targets {
            let start = Instant::now();
            let log = dir.join(format!("tpch-{}-{}.out", at + 1, target.name));
            let answer = answers(target, std::slice::from_ref(record), &log)?;
            both.push((answer.into_iter().next().context("one answer")?, start.elapsed().as_secs_f64()));
        }
        let [(ours, our_time), (theirs, their_time)] = &both[..] else { anyhow::bail!("two answers") };
        table.push_str(&format!("| {} | {our_time:.2} | {their_time:.2} | {} |\n", at + 1, theirs.len()));
        let failed = |lines: &[String]| lines.iter().any(|line| line.starts_with("ERROR "));
        let same = ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_near(a, b));
        if same && !failed(ours) {
            outcome.passed += 1;
        } else {
            let first = |lines: &[String]| lines.iter().take(2).cloned().collect::<Vec<_>>();
            let (first_of_ours, first_of_theirs) = (first(ours), first(theirs));
            let counts = format!("{} rows and {}", ours.len(), theirs.len());
            outcome
                .failures
                .push(format!("query {}: {counts}: ours {first_of_ours:?}, PostgreSQL's {first_of_theirs:?}", at + 1));
        }
    }
    println!("{table}");
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn numbers_may_differ_in_their_last_digits_alone() {
        assert!(is_near("a|25.5200|x", "a|25.52000000001|x"));
        assert!(!is_near("a|25.5200", "a|25.53"));
        assert!(!is_near("a|1", "b|1") && !is_near("1", "1|1"));
    }
}
