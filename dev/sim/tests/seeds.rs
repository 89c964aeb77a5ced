//! Random runs of the whole server, and that one seed gives one run.
//!
//! `BASALT_TEST_PROGRAMS=n` runs n seeds instead of 500; `BASALT_TEST_SEED` says which comes first.

use basalt_sim::run::{Plan, Summary, run};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn one_seed_gives_one_run() {
    for seed in [3, 10, 17, 404] {
        let once = run(seed, &Plan::default()).unwrap_or_else(|failed| panic!("{failed}"));
        let again = run(seed, &Plan::default()).unwrap_or_else(|failed| panic!("{failed}"));
        assert!(once.events > 500, "seed {seed}: a run of {} events shows nothing", once.events);
        assert_eq!(once, again, "seed {seed}: two runs differ");
    }
    let (one, other) = (run(5, &Plan::default()), run(6, &Plan::default()));
    assert_ne!(one.map(|s| s.hash).ok(), other.map(|s| s.hash).ok(), "seeds matter");
}

#[test]
fn nothing_promised_is_lost_under_any_seed() {
    let (first, count) = (number("BASALT_TEST_SEED").unwrap_or(1), number("BASALT_TEST_PROGRAMS").unwrap_or(500));
    let mut total = Summary::default();
    // One runs without the other: as many at once as there are processors.
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(4) as u64;
    let sums: Vec<Summary> = std::thread::scope(|scope| {
        let work = |worker: u64| {
            let mut sum = Summary::default();
            for seed in (first + worker..first + count).step_by(workers as usize) {
                match run(seed, &Plan::default()) {
                    Ok(summary) => sum.add(&summary),
                    Err(failed) => panic!("{failed}"),
                }
            }
            sum
        };
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no violation")).collect()
    });
    sums.iter().for_each(|sum| total.add(sum));
    println!("{count} runs: {total:?}");
    assert!(total.crashes > count, "too few crashes to show anything: {total:?}");
}
