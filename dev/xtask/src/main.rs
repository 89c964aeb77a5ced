//! Development commands: `cargo xtask <command>`.
//!
//! One word per need; CI calls `test` and nothing else. Each command prints what it runs and ends with a table of how
//! it went. Knows the tree and the tools; nothing here is part of the server.
#![allow(
    clippy::disallowed_methods,
    reason = "a development tool works on the files, clocks and processes of a machine"
)]

mod check;
mod coverage;
mod differential;
mod edges;
mod exchange;
mod flame;
mod fuzz;
mod interop;
mod jvm;
mod kill;
mod ledger;
mod native_tools;
mod neighbours;
mod pages;
mod profile;
mod proto;
mod reliability;
mod report;
mod run;
mod sanitize;
mod schedules;
mod server;
mod sim;
mod suites;
mod tidy;
mod toolchain;

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  check [--quick]           format, crate edges, generated code, tidiness, licences; unless quick, lints and fast tests
  test                      everything: check's tests, the release build, real clients, the kill test, three noisy neighbours
  interop [--against basalt|hbase] [--only REGEX] [SUITE...]
                            real clients against the server; suites: java java3 asynchbase shell go pe ltt tools
                            differential bad-input moving, by name only: exchange
  kill [--rounds N] [--seed S] [--against basalt|hbase] [sabotage]
                            kill -9 under concurrent writes, restart, compare with the journal; sabotage cuts the log
                            before each restart and wants the loss to be found
  differential [--programs N] [--seed S] [--steps 1,2,..]
                            random programs against Apache HBase and Basalt, every reply compared
  faults [--minutes N] [--only PART-OF-A-NAME] [--seed S] [--list]
                            the release binary (BASALT_BINARY or target/release/basalt) under kill -9, SIGSTOP, a full
                            disk, little memory, failing system calls, a bad network, hostile clients; histories checked
  neighbours                three noisy neighbours of `basalt bench neighbours`, 10 s each, with bounds that a busy machine meets
  bench [ARGS...]           the micro-benchmarks
  profile WORKLOAD [--seconds N] [-- ARGS...]
                            flame graph of the server under a workload of `basalt bench compare`, in target/profile
  sim [--runs N] [--seed S] [--steps N] [--speak] | sim --enumerate
                            random runs of the whole server in the simulator; every crash state of every step list
  fuzz [--seconds N] [--only PART-OF-A-NAME] [--jobs N] [--record] | fuzz --replay TARGET FILE | fuzz --keep [PART-OF-A-NAME]
                            every decoder of foreign bytes under libFuzzer, 60 s each; what was found is in target/fuzz;
                            record adds the time to dev/fuzz/time.csv, keep does so and puts inputs into the tree
  schedules [N]             the hand-made concurrent parts under N (1000) orders of their threads' operations each
  sanitize [address|thread] the tests of crates with unsafe code under the nightly compiler's sanitizers
  injected [NAME]           builds the simulator with known bugs and wants it to notice each (also: planted)
  proto [--check]           generated protobuf code from crates/proto/proto
  coverage [--check]        docs/coverage.md: what is there, counted against the inventory";

fn main() -> std::process::ExitCode {
    match command() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn command() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = args.split_first() else { bail!("{USAGE}") };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    std::env::set_current_dir(run::root()).context("cannot enter the root of the tree")?;
    match command.as_str() {
        "check" => {
            let mut report = report::Report::default();
            match rest.as_slice() {
                [] => check::run(&mut report),
                ["--quick"] => check::run_quick(&mut report),
                _ => bail!("{USAGE}"),
            }
            report.finish()
        }
        "test" => test(),
        "interop" => {
            let (options, suites) = options(&rest, &["--against", "--only"])?;
            let against = server::Kind::parse(options.get("--against").map_or("basalt", String::as_str))?;
            let mut report = report::Report::default();
            interop::run(&mut report, against, options.get("--only").map(String::as_str), &suites)?;
            report.finish()
        }
        "kill" => {
            let (options, words) = options(&rest, &["--rounds", "--seed", "--against"])?;
            let sabotage = match words.as_slice() {
                [] => false,
                [word] if word == "sabotage" => true,
                _ => bail!("{USAGE}"),
            };
            let against = server::Kind::parse(options.get("--against").map_or("basalt", String::as_str))?;
            let rounds = options.get("--rounds").map_or(Ok(20), |n| n.parse()).context("--rounds wants a number")?;
            let seed = options.get("--seed").map(|s| s.parse()).transpose().context("--seed wants a number")?;
            let mut report = report::Report::default();
            kill::run(&mut report, against, rounds, seed, sabotage)?;
            report.finish()
        }
        "differential" => {
            let (options, words) = options(&rest, &["--programs", "--seed", "--steps"])?;
            if !words.is_empty() {
                bail!("{USAGE}");
            }
            let programs =
                options.get("--programs").map_or(Ok(2000), |n| n.parse()).context("--programs wants a number")?;
            let seed = options.get("--seed").map(|s| s.parse()).transpose().context("--seed wants a number")?;
            let plan = differential::Plan {
                programs,
                seed: seed.map_or_else(differential::any_seed, Ok)?,
                steps: options.get("--steps").cloned(),
                limit: std::time::Duration::from_secs(4 * 3600),
            };
            let mut report = report::Report::default();
            differential::run(&mut report, &plan)?;
            report.finish()
        }
        "faults" => faults(&rest),
        "bench" => {
            // The figures of rpc.* are those of the server binary beside the program: it must not be an old one.
            run::must("release build", run::cargo().args(["build", "--release", "--package", "basalt"]))?;
            let mut cargo = run::cargo();
            cargo.args(["run", "--release", "-p", "basalt-bench", "--bin", "micro", "--"]).args(&rest);
            run::must("bench", &mut cargo)
        }
        "profile" => {
            let end = rest.iter().position(|word| *word == "--").unwrap_or(rest.len());
            let more: Vec<String> = rest.iter().skip(end + 1).map(|word| (*word).to_owned()).collect();
            let (options, words) = options(&rest[..end], &["--seconds"])?;
            let [workload] = words.as_slice() else { bail!("{USAGE}") };
            profile::run(workload, options.get("--seconds").map_or("10", String::as_str), &more)
        }
        "neighbours" => {
            let mut report = report::Report::default();
            if interop::build(&mut report) {
                neighbours::run(&mut report);
            }
            report.finish()
        }
        "sim" => sim::run(&rest),
        "fuzz" => fuzz(&rest),
        "schedules" => {
            let number = rest.first().map_or(Ok(1000), |n| n.parse()).context("schedules wants a number")?;
            let mut report = report::Report::default();
            schedules::run(&mut report, number);
            report.finish()
        }
        "sanitize" => {
            let mut report = report::Report::default();
            sanitize::run(&mut report, rest.first().copied())?;
            report.finish()
        }
        "injected" | "planted" => {
            let mut report = report::Report::default();
            sim::injected(&mut report, rest.first().copied())?;
            report.finish()
        }
        "proto" => match rest.as_slice() {
            [] => proto::generate(false),
            ["--check"] => proto::generate(true),
            _ => bail!("{USAGE}"),
        },
        "coverage" => match rest.as_slice() {
            [] => coverage::run(false),
            ["--check"] => coverage::run(true),
            _ => bail!("{USAGE}"),
        },
        _ => bail!("{USAGE}"),
    }
}

/// The fault harness, on the binary that is there. Its scratch is on a disk, where syncs are real.
fn faults(args: &[&str]) -> anyhow::Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["run", "--quiet", "--profile", "test", "--package", "basalt-faults", "--", "--binary"]);
    cargo.arg(server::binary()).arg("--scratch").arg(run::scratch()?.join("faults")).args(args);
    run::must("faults", &mut cargo)
}

/// The fuzzers; or one of their findings again; or what they found put into the tree.
fn fuzz(args: &[&str]) -> anyhow::Result<()> {
    match args {
        ["--replay", target, file] => return fuzz::replay(target, file),
        ["--keep"] => return fuzz::keep(None),
        ["--keep", only] => return fuzz::keep(Some(only)),
        _ => {}
    }
    let record = args.contains(&"--record");
    let args: Vec<&str> = args.iter().copied().filter(|word| *word != "--record").collect();
    let (options, words) = options(&args, &["--seconds", "--only", "--jobs"])?;
    if !words.is_empty() {
        bail!("{USAGE}");
    }
    let number = |name: &str, default: u64| {
        options.get(name).map_or(Ok(default), |n| n.parse()).with_context(|| format!("{name} wants a number"))
    };
    let jobs = usize::try_from(number("--jobs", 1)?).unwrap_or(1).max(1);
    let plan = fuzz::Plan { seconds: number("--seconds", 60)?, only: options.get("--only").cloned(), jobs, record };
    let mut report = report::Report::default();
    fuzz::run(&mut report, &plan);
    report.finish()
}

/// Everything, in the order in which a failure is cheapest to learn of.
fn test() -> anyhow::Result<()> {
    let mut report = report::Report::default();
    check::run(&mut report);
    schedules::run(&mut report, 1000);
    fuzz::run(&mut report, &fuzz::Plan { seconds: 5, only: None, jobs: 2, record: false });
    interop::run(&mut report, server::Kind::Basalt, None, &[])?;
    kill::run(&mut report, server::Kind::Basalt, 20, None, false)?;
    kill::run(&mut report, server::Kind::Basalt, 2, None, true)?;
    neighbours::run(&mut report);
    report.finish()
}

type Options = std::collections::BTreeMap<String, String>;

/// Splits `--name value` pairs from plain words.
fn options(args: &[&str], known: &[&str]) -> anyhow::Result<(Options, Vec<String>)> {
    let mut options = Options::new();
    let mut words = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if known.contains(arg) {
            let value = args.next().with_context(|| format!("{arg} wants a value"))?;
            options.insert((*arg).to_owned(), (*value).to_owned());
        } else if arg.starts_with('-') {
            bail!("unknown option {arg}\n{USAGE}");
        } else {
            words.push((*arg).to_owned());
        }
    }
    Ok((options, words))
}
