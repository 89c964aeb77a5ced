//! Random runs of a cluster, and that one seed gives one run.
//!
//! `BASALT_TEST_CLUSTERS=n` runs n seeds instead of 8; `BASALT_TEST_SEED` says which comes first.

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
    let (first, count) = (number("BASALT_TEST_SEED").unwrap_or(1), number("BASALT_TEST_CLUSTERS").unwrap_or(8));
    let speak = std::env::var("BASALT_SPEAK").is_ok();
    let mut total = Summary::default();
    for seed in first..first + count {
        let summary = run(seed, &Plan { speak, ..Plan::default() }).unwrap_or_else(|failed| panic!("{failed}"));
        println!("seed {seed}: {summary:?}");
        total.add(&summary);
    }
    println!("{count} runs: {total:#?}");
}
