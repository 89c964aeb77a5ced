//! Seeded runs and enumerations of the simulator, from the command line: see `cargo xtask sim`.
#![allow(clippy::disallowed_methods, reason = "a tool: it looks at the machine's clock for its own figures")]

use basalt_sim::cluster;
use basalt_sim::progress::{Patience, Steps};
use basalt_sim::run::{Plan, Summary, run};
use parking_lot::Mutex;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A run that makes no step for so long hangs. A step is a few milliseconds' work; on a machine that does much else, seconds.
const HANGS_AFTER: Duration = Duration::from_secs(120);

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
    let speak = args.iter().any(|arg| arg == "--speak");
    let most_failures = if args.iter().any(|arg| arg == "--until-failure") { 1 } else { 10 };
    if let Some(servers) = number("--servers") {
        if speak {
            basalt_sim::spoken::listen();
        }
        let of_cluster = cluster::run::Plan::default();
        let plan = cluster::run::Plan {
            servers: usize::try_from(servers).unwrap_or(of_cluster.servers),
            masters: number("--masters").map_or(of_cluster.masters, |masters| masters as usize),
            episodes: number("--episodes").map_or(of_cluster.episodes, |episodes| episodes as u32),
            actions: number("--actions").map_or(of_cluster.actions, |actions| actions as u32),
            replicas: args.iter().any(|arg| arg == "--replicas"),
            speak,
            ..of_cluster
        };
        // A run has threads of its own, of which one at most runs at a time.
        let runs = if args.iter().any(|arg| arg == "--runs" || arg == "--seed") { runs } else { 50 };
        return seeds(first, runs, &plan, most_failures);
    }
    seeds(first, runs, &Plan { steps, speak }, most_failures)
}

/// A world that can be run by seeds.
trait World: Sync {
    type Summary: Summed;
    fn run(&self, seed: u64) -> Result<Self::Summary, String>;
    /// The command that plays a seed again.
    fn again(&self, seed: u64) -> String;
}

/// What runs did.
trait Summed: Default + Send + std::fmt::Debug {
    fn add(&mut self, other: &Self);
}

impl Summed for Summary {
    fn add(&mut self, other: &Summary) {
        Summary::add(self, other);
    }
}

impl Summed for cluster::run::Summary {
    fn add(&mut self, other: &Self) {
        cluster::run::Summary::add(self, other);
    }
}

impl World for Plan {
    type Summary = Summary;

    fn run(&self, seed: u64) -> Result<Summary, String> {
        run(seed, self).map_err(|failed| failed.to_string())
    }

    fn again(&self, seed: u64) -> String {
        format!("cargo xtask sim --seed {seed}")
    }
}

impl World for cluster::run::Plan {
    type Summary = cluster::run::Summary;

    fn run(&self, seed: u64) -> Result<Self::Summary, String> {
        cluster::run::run(seed, self).map_err(|failed| failed.to_string())
    }

    fn again(&self, seed: u64) -> String {
        cluster::run::Plan::again(self, seed)
    }
}

/// What the threads share.
struct Campaign {
    begun: Instant,
    first: u64,
    runs: u64,
    most_failures: usize,
    next: AtomicU64,
    /// By worker: the seed it is at, and the steps that it has made.
    now: Vec<(AtomicU64, Mutex<Option<Steps>>)>,
    failures: Mutex<Vec<u64>>,
}

impl Campaign {
    /// Runs one seed after the other until all are taken or too many failed.
    fn work<W: World>(&self, worker: usize, world: &W) -> Vec<(u64, W::Summary)> {
        let mut done = Vec::new();
        loop {
            let seed = self.first + self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.first + self.runs || self.failures.lock().len() >= self.most_failures {
                *self.now[worker].1.lock() = None;
                return done;
            }
            self.now[worker].0.store(seed, Ordering::Relaxed);
            *self.now[worker].1.lock() = Some(Steps::here());
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run(seed))) {
                Ok(Ok(summary)) => done.push((seed, summary)),
                Ok(Err(failed)) => {
                    eprintln!("{failed}");
                    self.failures.lock().push(seed);
                }
                Err(_) => {
                    eprintln!("seed {seed}: a panic\n  again: {}", world.again(seed));
                    self.failures.lock().push(seed);
                }
            }
        }
    }

    /// A run that hangs says which one it is, and ends the program.
    fn watch(&self, again: impl Fn(u64) -> String) -> ! {
        let mut patience: Vec<Patience> = self.now.iter().map(|_| Patience::new(HANGS_AFTER)).collect();
        loop {
            std::thread::sleep(Duration::from_secs(5));
            for ((seed, steps), patience) in self.now.iter().zip(&mut patience) {
                let Some(made) = steps.lock().as_ref().map(Steps::count) else { continue };
                if patience.ends(made, self.begun.elapsed()) {
                    let seed = seed.load(Ordering::Relaxed);
                    let after = HANGS_AFTER.as_secs();
                    eprintln!(
                        "seed {seed} hangs: it has made no step for {after} s of real time\n  run it again with: {}",
                        again(seed)
                    );
                    std::process::exit(2);
                }
            }
        }
    }
}

/// As many at once as there are processors; runs know nothing of each other.
fn seeds<W: World + Copy + Send + 'static>(first: u64, runs: u64, world: &W, most_failures: usize) -> ExitCode {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(usize::try_from(runs).unwrap_or(1));
    let campaign = Arc::new(Campaign {
        begun: Instant::now(),
        first,
        runs,
        most_failures,
        next: AtomicU64::new(0),
        now: (0..workers).map(|_| (AtomicU64::new(first), Mutex::default())).collect(),
        failures: Mutex::default(),
    });
    let (watched, of) = (campaign.clone(), *world);
    std::thread::spawn(move || watched.watch(|seed| of.again(seed)));
    let mut done: Vec<(u64, W::Summary)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                let campaign = &campaign;
                scope.spawn(move || campaign.work(worker, world))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a run's panic is caught")).collect()
    });
    // In the order of the seeds: the sum of a campaign is the same whoever ran what.
    done.sort_by_key(|(seed, _)| *seed);
    let mut total = W::Summary::default();
    done.iter().for_each(|(_, summary)| total.add(summary));
    let mut failures = campaign.failures.lock().clone();
    failures.sort_unstable();
    println!(
        "{} of {runs} runs from seed {first} in {:.1} s: {} failed {failures:?}",
        done.len() + failures.len(),
        campaign.begun.elapsed().as_secs_f64(),
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
