//! Random programs against the oracle (`model/oracle.rs`, which states the rules): writes of every kind; flushes,
//! compactions, re-openings, splits and merges in between; Gets and scans of every shape, with files and regions
//! changing under an open scan. Prints the seed of a failing program.
//!
//! `BASALT_MODEL_PROGRAMS=100000 BASALT_MODEL_THREADS=2 cargo test --release -p basalt-region --test main model:: -- --nocapture`
//! runs more and says how fast; `BASALT_TEST_SEED=7` begins at another seed.

mod arrival;
mod oracle;
mod reads;
mod sieve;
mod world;
mod writes;

use crate::common::programs;
use std::time::Instant;
use world::World;

/// Steps of one program.
const STEPS: u64 = 150;

fn run(world: &mut World) {
    for _ in 0..STEPS {
        match world.rng.below(20) {
            0..11 => world.write(),
            11..13 => world.maintain(),
            13 if world.rng.one_in(2) => world.settle(),
            13 => world.move_clock(),
            14..17 => world.get(),
            _ => world.scan(),
        }
    }
}

/// The same with nothing but trees of filters to read with.
fn run_trees(world: &mut World) {
    for _ in 0..STEPS {
        match world.rng.below(20) {
            0..9 => world.write(),
            9..11 => world.maintain(),
            11 if world.rng.one_in(2) => world.settle(),
            11 => world.move_clock(),
            _ => world.scan_with_a_tree(),
        }
    }
}

/// What the oracle holds, and how it came to that.
fn describe(world: &World, seed: u64) {
    for half in &world.regions {
        eprintln!("{}", half.info.name_string());
        for (name, store) in &half.stores {
            eprintln!(" {name} {:?}: {}", store.rules, world.table.families[name.as_bytes()].bloom_type().as_str());
            for run in store.files.iter().chain([&store.memory]) {
                eprintln!("  [{}]", run.name);
                for cell in &run.cells {
                    let text: String = reads::print(name, cell).chars().take(60).collect();
                    eprintln!("    {text} #{}.{} {:?}", cell.seq_id, cell.position, cell.ttl_ms);
                }
            }
        }
    }
    let tail = world.trace.len().saturating_sub(60);
    eprintln!("{}", world.trace[tail..].join("\n"));
    eprintln!("again: BASALT_TEST_SEED={seed} BASALT_MODEL_PROGRAMS=1 cargo test -p basalt-region --test main model::");
}

/// Programs from `first` on, every `stride`th; panics with the seed of the first that differs.
fn run_programs(program: fn(&mut World), first: u64, count: u64, stride: u64) {
    #[allow(clippy::disallowed_methods, reason = "only to say how fast it went")]
    let began = Instant::now();
    for (done, seed) in (first..first + count).step_by(stride as usize).enumerate() {
        let mut world = World::new(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| program(&mut world)));
        if let Err(panic) = outcome {
            describe(&world, seed);
            std::panic::resume_unwind(panic);
        }
        let done = done + 1;
        if done % 5000 == 0 || seed + stride >= first + count {
            let seconds = began.elapsed().as_secs_f64();
            println!("{done} programs, seeds {first} to {seed}: no difference, {:.1}/s", done as f64 / seconds);
        }
    }
}

fn run_all(program: fn(&mut World), default: u64) {
    let (first, few) = programs(default);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let count = number("BASALT_MODEL_PROGRAMS").unwrap_or(few);
    let threads = number("BASALT_MODEL_THREADS").unwrap_or(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|i| scope.spawn(move || run_programs(program, first + i, count.saturating_sub(i), threads)))
            .collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[test]
fn random_programs_agree_with_the_oracle() {
    run_all(run, 100);
}

/// HBASE-17678: lists of filters within lists, over files and memory, forwards and in reverse.
#[test]
fn f42_filter_trees_agree_with_the_oracle() {
    run_all(run_trees, 40);
}
