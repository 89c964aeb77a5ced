//! Development commands: `cargo xtask <command>`.
//!
//! One word per need; CI calls `test` and nothing else. Each command prints what it runs and ends with a table of how
//! it went. Knows the tree and the tools; nothing here is part of the server.
#![allow(
    clippy::disallowed_methods,
    reason = "a development tool works on the files, clocks and processes of a machine"
)]

mod check;
mod cli;
mod cluster;
mod compare;
mod coverage;
mod differential;
mod edges;
mod exchange;
mod fuzz;
mod gateways;
mod interop;
mod jvm;
mod kill;
mod ledger;
mod native_client;
mod native_tools;
mod neighbours;
mod on_hdfs;
mod package;
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
mod site;
mod sql;
mod sql_bench;
mod sql_bench_client;
mod sql_bench_phoenix;
mod sql_filter;
mod sql_phoenix;
mod sql_queries;
mod sql_tpch;
mod suites;
mod testing;
mod tidy;
mod toolchain;
mod traced;

use anyhow::Context;
use clap::Parser;

use cli::{Cli, Command};
use report::Report;

fn main() -> std::process::ExitCode {
    // The program behind a command explains itself; clap would take a --help that stands alone for itself.
    let cli = Cli::parse();
    match command(cli.command) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn command(command: Command) -> anyhow::Result<()> {
    std::env::set_current_dir(run::root()).context("cannot enter the root of the tree")?;
    match command {
        Command::Check { quick: true } => reported(|report| {
            check::run_quick(report);
            Ok(())
        }),
        Command::Check { quick: false } => reported(|report| {
            check::run(report);
            Ok(())
        }),
        Command::Test { long } => reported(|report| test(report, long)),
        Command::Interop { against, only, suites } => {
            reported(|report| interop::run(report, against.into(), only.as_deref(), &suites))
        }
        Command::Cluster { minutes: Some(minutes), seed, masters, hbases_list, .. } => {
            reported(|report| cluster::chaos(report, &cluster::Chaos { minutes, seed, masters, hbases_list }))
        }
        Command::Cluster { tests, .. } => reported(|report| cluster::run(report, &tests, false)),
        Command::Kill { rounds, seed, against, sabotage } => {
            reported(|report| kill::run(report, against.into(), rounds, seed, sabotage.is_some()))
        }
        Command::Differential { administration, programs, seed, steps } => {
            let calls = if administration { differential::Calls::Administration } else { differential::Calls::Data };
            let seed = seed.map_or_else(differential::any_seed, Ok)?;
            let limit = std::time::Duration::from_secs(4 * 3600);
            reported(|report| differential::run(report, &differential::Plan { calls, programs, seed, steps, limit }))
        }
        Command::Faults(passed) => faults(&passed.arguments),
        Command::Compare(passed) => compare::run("compare", &passed.arguments),
        Command::Gateways(passed) => compare::run("gateways", &passed.arguments),
        Command::Overload(passed) => compare::run("overload", &passed.arguments),
        Command::Scale(passed) => compare::run("scale", &passed.arguments),
        Command::Stall(passed) => compare::run("stall", &passed.arguments),
        Command::SlowVolume(passed) => compare::run("slow-volume", &passed.arguments),
        Command::WarmCache(passed) => compare::run("warm-cache", &passed.arguments),
        Command::Tiers(passed) => compare::run("tiers", &passed.arguments),
        Command::Neighbours(passed) if !passed.arguments.is_empty() => compare::run("neighbours", &passed.arguments),
        Command::Neighbours(_) => reported(|report| {
            if interop::build(report) {
                neighbours::run(report);
            }
            Ok(())
        }),
        Command::Bench(passed) => bench(&passed.arguments),
        Command::Profile { workload, seconds, more } => profile::run(&workload, &seconds, &more),
        Command::Sql { only } => reported(|report| {
            sql::run(report, only.as_deref());
            Ok(())
        }),
        Command::Sim(passed) => sim::run(&passed.arguments),
        Command::Fuzz(arguments) => fuzz(arguments),
        Command::Schedules { number } => reported(|report| {
            schedules::run(report, number);
            Ok(())
        }),
        Command::Sanitize { only } => reported(|report| sanitize::run(report, only.as_deref())),
        Command::Injected { name } => reported(|report| sim::injected(report, name.as_deref())),
        Command::Package { machine } => reported(|report| package::run(report, machine)),
        Command::Site => site::make(),
        Command::Proto { check } => proto::generate(check),
        Command::Coverage { check } => coverage::run(check),
    }
}

/// Runs something that reports its parts, and ends with the table of how they went.
fn reported(work: impl FnOnce(&mut Report) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut report = Report::default();
    work(&mut report)?;
    report.finish()
}

/// The micro-benchmarks.
fn bench(args: &[String]) -> anyhow::Result<()> {
    // The figures of rpc.* are those of the server binary beside the program: it must not be an old one.
    run::must("release build", run::cargo().args(["build", "--release", "--package", "basalt"]))?;
    let mut cargo = run::cargo();
    cargo.args(["run", "--release", "-p", "basalt-bench", "--bin", "micro", "--"]).args(args);
    run::must("bench", &mut cargo)
}

/// The fault harness, on the binary that is there. Its scratch is on a disk, where syncs are real.
fn faults(args: &[String]) -> anyhow::Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["run", "--quiet", "--profile", "test", "--package", "basalt-faults", "--", "--binary"]);
    cargo.arg(server::binary()).arg("--scratch").arg(run::scratch()?.join("faults")).args(args);
    run::must("faults", &mut cargo)
}

/// The fuzzers; or one of their findings again; or what they found put into the tree.
fn fuzz(arguments: cli::Fuzz) -> anyhow::Result<()> {
    if let Some([target, file]) = arguments.replay.as_deref() {
        return fuzz::replay(target, file);
    }
    if let Some(only) = &arguments.keep {
        return fuzz::keep(Some(only.as_str()).filter(|only| !only.is_empty()));
    }
    let cli::Fuzz { seconds, only, jobs, record, .. } = arguments;
    reported(|report| {
        fuzz::run(report, &fuzz::Plan { seconds, only, jobs: usize::from(jobs), record });
        Ok(())
    })
}

/// Everything, in the order in which a failure is cheapest to learn of.
fn test(report: &mut Report, long: bool) -> anyhow::Result<()> {
    if long {
        check::run(report)
    } else {
        check::run_with_every_feature(report)
    }
    if !long && !report.step("the server, built as the tests are", server::build_like_tests) {
        return Ok(());
    }
    schedules::run(report, 1000);
    sql::build_beside()?;
    interop::run(report, server::Kind::Basalt, None, &[])?;
    cluster::run(report, &[], true)?;
    kill::run(report, server::Kind::Basalt, if long { 100 } else { 10 }, None, false)?;
    kill::run(report, server::Kind::Basalt, 2, None, true)?;
    neighbours::run(report);
    sql::run(report, None);
    if long {
        fuzz::run(report, &fuzz::Plan { seconds: 30, only: None, jobs: 2, record: false });
        report.step("1000 runs of the simulator", || sim::run(&["--runs".to_owned(), "1000".to_owned()]));
        report.step("every crash state", || sim::run(&["--enumerate".to_owned()]));
        sim::injected(report, None)?;
        report.step("all noisy neighbours", || compare::run("neighbours", &[]));
    }
    Ok(())
}
