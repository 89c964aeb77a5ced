//! Random runs of a cluster, and that one seed gives one run.
//!
//! `BASALT_TEST_CLUSTERS=n` runs n seeds instead of 12; `BASALT_TEST_SEED` says which comes first.

use basalt_sim::cluster::run::{Plan, Summary, run};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn one_seed_gives_one_run_of_a_cluster() {
    let plan = Plan { episodes: 1, ..Plan::default() };
    let once = run(3, &plan).unwrap_or_else(|failed| panic!("{failed}"));
    let again = run(3, &plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(once, again, "two runs differ");
}

#[test]
fn a_cluster_keeps_its_promises_under_any_seed() {
    let (first, count) = (number("BASALT_TEST_SEED").unwrap_or(1), number("BASALT_TEST_CLUSTERS").unwrap_or(12));
    let plan = Plan { episodes: 1, actions: 30, ..Plan::default() };
    // One runs without the other.
    let sums: Vec<Summary> = std::thread::scope(|scope| {
        let work = |worker: u64| {
            let mut sum = Summary::default();
            for seed in (first + worker..first + count).step_by(2) {
                sum.add(&run(seed, &plan).unwrap_or_else(|failed| panic!("{failed}")));
            }
            sum
        };
        let threads: Vec<_> = (0..2).map(|worker| scope.spawn(move || work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no violation")).collect()
    });
    let mut total = Summary::default();
    sums.iter().for_each(|sum| total.add(sum));
    println!("{count} runs: {total:#?}");
    assert!(total.kills > count / 2 && total.acked > 20 * count, "too little to show anything: {total:?}");
}
