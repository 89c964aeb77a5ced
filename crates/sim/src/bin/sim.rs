//! Seeded runs and enumerations of the model world, from the command line: see `cargo xtask sim`.
#![allow(clippy::disallowed_methods, reason = "a tool: it looks at the machine's clock for its own figures")]

use basalt_sim::run::{Plan, Summary, run};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    if args.iter().any(|arg| arg == "--enumerate") {
        return enumerate();
    }
    let steps = number("--steps").unwrap_or(Plan::default().steps);
    let (first, runs) = match number("--seed") {
        Some(seed) => (seed, number("--runs").unwrap_or(1)),
        None => (1, number("--runs").unwrap_or(500)),
    };
    let plan = Plan { steps, speak: args.iter().any(|arg| arg == "--speak") };
    let most_failures = if args.iter().any(|arg| arg == "--until-failure") { 1 } else { 10 };
    seeds(first, runs, &plan, most_failures)
}

fn seeds(first: u64, runs: u64, plan: &Plan, most_failures: usize) -> ExitCode {
    static NOW: AtomicU64 = AtomicU64::new(0);
    static SINCE: AtomicU64 = AtomicU64::new(0);
    let begun = Instant::now();
    // A run that hangs says which one it is.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(5));
            if begun.elapsed().as_secs().saturating_sub(SINCE.load(Ordering::Relaxed)) > 120 {
                let seed = NOW.load(Ordering::Relaxed);
                eprintln!("seed {seed} hangs\n  again: cargo xtask sim --seed {seed}");
                std::process::exit(2);
            }
        }
    });
    let mut total = Summary::default();
    let mut failures = Vec::new();
    for seed in first..first + runs {
        NOW.store(seed, Ordering::Relaxed);
        SINCE.store(begun.elapsed().as_secs(), Ordering::Relaxed);
        match std::panic::catch_unwind(|| run(seed, plan)) {
            Ok(Ok(summary)) => total.add(&summary),
            Ok(Err(failed)) => {
                eprintln!("{failed}");
                failures.push(seed);
            }
            Err(_) => {
                eprintln!("seed {seed}: a panic\n  again: cargo xtask sim --seed {seed}");
                failures.push(seed);
            }
        }
        if failures.len() >= most_failures {
            break;
        }
    }
    println!(
        "{runs} runs from seed {first} in {:.1} s: {} failed {failures:?}",
        begun.elapsed().as_secs_f64(),
        failures.len()
    );
    println!("{total:#?}");
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn enumerate() -> ExitCode {
    let begun = Instant::now();
    match basalt_sim::enumerate::all(&mut |line| println!("{line}")) {
        Ok(states) => {
            println!("{states} crash states in {:.1} s, none lost anything", begun.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(violation) => {
            eprintln!("{violation}\n  again: cargo xtask sim --enumerate");
            ExitCode::FAILURE
        }
    }
}
