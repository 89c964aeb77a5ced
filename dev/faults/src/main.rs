//! The fault harness: the release binary of the server under everything that can be done to a process from outside,
//! while clients remember what they were told. At the end their memories are held against what is there.
//!
//! A scenario is a function of its own, named after its row in the table of scenarios in `docs/reliability.md`. It
//! starts servers ([`site`]), runs clients ([`load`]), does its worst ([`tools`], [`proxy`]), and calls
//! [`load::Load::verify`]. Its random numbers are seeded: the same seed makes the same decisions, as far as a real process lets it.
//!
//! Always true: a contradiction is printed with the seed and the command that plays the scenario again, and its site
//! is kept. Must not know: how the server is built inside; it speaks to it over sockets, signals and files only.
#![allow(clippy::disallowed_methods, reason = "the harness works on real files, clocks and processes")]

mod bystander;
mod lab;
mod linear;
mod load;
mod proxy;
mod remote;
mod scenarios;
mod site;
mod tools;
mod wire;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: faults --binary PATH [--minutes N] [--only PART-OF-A-NAME] [--seed S] [--list]";

struct Options {
    binary: PathBuf,
    scratch: PathBuf,
    minutes: Option<u64>,
    only: Option<String>,
    seed: u64,
}

fn options() -> anyhow::Result<Option<Options>> {
    let mut args = std::env::args().skip(1);
    let (mut binary, mut scratch, mut minutes, mut only, mut seed) = (None, None, None, None, None);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value\n{USAGE}"));
        match arg.as_str() {
            "--binary" => binary = Some(PathBuf::from(value()?)),
            "--scratch" => scratch = Some(PathBuf::from(value()?)),
            "--minutes" => minutes = Some(value()?.parse().context("--minutes wants a number")?),
            "--only" => only = Some(value()?),
            "--seed" => seed = Some(value()?.parse().context("--seed wants a number")?),
            "--list" => {
                scenarios::ALL.iter().for_each(|(name, _)| println!("{name}"));
                return Ok(None);
            }
            _ => bail!("unknown option {arg}\n{USAGE}"),
        }
    }
    let seed = match seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as u64 % 1_000_000_007,
    };
    let scratch = scratch.unwrap_or_else(|| std::env::temp_dir().join("basalt-faults"));
    Ok(Some(Options { binary: binary.context(USAGE)?, scratch, minutes, only, seed }))
}

fn main() -> std::process::ExitCode {
    let run = || {
        let Some(options) = options()? else { return Ok(()) };
        // Worker threads are few: the machine belongs to the server.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(play(&options))
    };
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// One row of the report.
#[derive(Default)]
struct Row {
    runs: u32,
    seconds: f64,
    rounds: u64,
    faults: u64,
    tally: load::Tally,
    failures: Vec<String>,
    skipped: Option<String>,
}

async fn play(options: &Options) -> anyhow::Result<()> {
    let wanted: Vec<_> = scenarios::ALL
        .iter()
        .filter(|(name, _)| options.only.as_ref().is_none_or(|only| name.contains(only.as_str())))
        .collect();
    if wanted.is_empty() {
        bail!("no scenario has {:?} in its name; --list shows them", options.only.as_deref().unwrap_or_default());
    }
    let end = options.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let mut rows: Vec<Row> = wanted.iter().map(|_| Row::default()).collect();
    let mut pass = 0u64;
    loop {
        for ((name, scenario), row) in wanted.iter().zip(&mut rows) {
            if pass > 0 && (row.skipped.is_some() || end.is_some_and(|end| Instant::now() >= end)) {
                continue;
            }
            let seed = options.seed.wrapping_add(pass);
            println!("==> {name}  (again: cargo xtask faults --only {name} --seed {seed})");
            let start = Instant::now();
            let mut lab = lab::Lab::new(&options.binary, &options.scratch, name, seed);
            let outcome = scenario(&mut lab).await;
            row.runs += 1;
            row.seconds += start.elapsed().as_secs_f64();
            row.rounds += lab.rounds;
            row.faults += lab.faults;
            row.tally += lab.tally;
            if let Err(error) = outcome {
                let said = format!("{error:#}");
                match said.strip_prefix("skipped: ") {
                    Some(why) => row.skipped = Some(why.to_owned()),
                    None => lab.violations.push(said),
                }
            }
            for violation in lab.violations.iter().take(20) {
                println!("    VIOLATION {violation}");
            }
            match &row.skipped {
                Some(why) => println!("    skipped: {why}"),
                None => println!(
                    "    {} rounds, {} faults, {} done, {} unknown, {} refused, {} violations, {:.1} s",
                    lab.rounds,
                    lab.faults,
                    lab.tally.done,
                    lab.tally.unknown,
                    lab.tally.refused,
                    lab.violations.len(),
                    start.elapsed().as_secs_f64()
                ),
            }
            if lab.violations.is_empty() {
                lab.clear();
            } else {
                println!("    the data: {}", lab.dir().display());
                row.failures.extend(lab.violations.into_iter().map(|what| format!("seed {seed}: {what}")));
            }
        }
        pass += 1;
        if end.is_none_or(|end| Instant::now() >= end) {
            break;
        }
    }
    report(&wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>(), &rows, options.seed)
}

fn report(names: &[&str], rows: &[Row], seed: u64) -> anyhow::Result<()> {
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    println!(
        "\n{:width$}  {:>4}  {:>7}  {:>6}  {:>6}  {:>9}  {:>7}  {:>7}  violations",
        "", "runs", "seconds", "rounds", "faults", "done", "unknown", "refused"
    );
    let mut total = Row::default();
    for (name, row) in names.iter().zip(rows) {
        let Row { runs, seconds, rounds, faults, tally, failures, skipped } = row;
        let ended = skipped.as_ref().map_or_else(|| failures.len().to_string(), |why| format!("skipped: {why}"));
        println!(
            "{name:width$}  {runs:>4}  {seconds:>7.1}  {rounds:>6}  {faults:>6}  {:>9}  {:>7}  {:>7}  {ended}",
            tally.done, tally.unknown, tally.refused
        );
        total.runs += runs;
        total.seconds += seconds;
        total.rounds += rounds;
        total.faults += faults;
        total.tally += *tally;
        total.failures.extend(failures.iter().map(|what| format!("{name}: {what}")));
    }
    println!(
        "{:width$}  {:>4}  {:>7.1}  {:>6}  {:>6}  {:>9}  {:>7}  {:>7}  {}   (first seed {seed})",
        "all",
        total.runs,
        total.seconds,
        total.rounds,
        total.faults,
        total.tally.done,
        total.tally.unknown,
        total.tally.refused,
        total.failures.len()
    );
    for failure in total.failures.iter().take(50) {
        println!("FAILED {failure}");
    }
    if !total.failures.is_empty() {
        bail!("{} violations", total.failures.len());
    }
    Ok(())
}
