//! Small and quick: what the process takes when idle, how soon it serves, and ten thousand regions on one server.
//!
//! The figures that a release build must reach hold for the build under test too, which is slower; the test prints
//! what it saw.
#![allow(clippy::disallowed_methods, reason = "tests measure with the real clock")]

mod common;

use common::{Scratch, Server, Tester};
use std::time::{Duration, Instant};

/// Without the pages of the program itself, which the system has in common for all and gives up when it likes: it is far larger unoptimised.
fn resident_mib(server: &Server) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("the process is there");
    let line = text.lines().find(|line| line.starts_with("RssAnon:")).expect("a line about memory of its own");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") / 1024
}

#[tokio::test]
async fn a_put_within_a_second_of_the_start_and_little_memory_when_idle() {
    // The best of three: what else the machine does at that moment is not the server's doing.
    let mut best = Duration::MAX;
    for attempt in 0..3 {
        let scratch = Scratch::new(&format!("first-put-{attempt}"));
        let start = Instant::now();
        let server = Server::start(&scratch.join("data"), &[]);
        let tester = Tester::connect(&server).await;
        tester.create_table("t", &[]).await;
        let regions = tester.regions("t").await;
        tester.put(&regions[0], "first", "v").await.expect("put");
        best = best.min(start.elapsed());
        let resident = resident_mib(&server);
        println!("first put after {:?}, {resident} MiB of memory", start.elapsed());
        assert!(resident < 40, "{resident} MiB of memory");
    }
    assert!(best.as_millis() < 1000, "first put after {best:?}");
}

#[tokio::test]
async fn ten_thousand_regions_are_ordinary() {
    let scratch = Scratch::new("many-regions");
    let root = scratch.join("data");
    let server = Server::start(&root, &[]);
    let tester = Tester::connect(&server).await;
    let splits: Vec<String> = (1..10_000).map(|i| format!("{i:05}")).collect();
    let start = Instant::now();
    tester.create_table("wide", &splits.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let created = start.elapsed();
    let regions = tester.regions("wide").await;
    assert_eq!(regions.len(), 10_000);
    for at in [0, 4_999, 9_999] {
        let row = format!("{at:05}x");
        tester.put(&regions[at], &row, "v").await.expect("put");
    }
    let after_create = resident_mib(&server);
    server.kill();

    let start = Instant::now();
    let server = Server::start(&root, &[]);
    let started = start.elapsed();
    let tester = Tester::connect(&server).await;
    for at in [0, 4_999, 9_999] {
        let row = format!("{at:05}x");
        assert_eq!(tester.get(&regions[at], &row).await.expect("get"), Some(b"v".to_vec()));
    }
    let after_start = resident_mib(&server);
    println!("created in {created:?} ({after_create} MiB), started again in {started:?} ({after_start} MiB resident)");
    assert!(after_create < 512 && after_start < 512, "{after_create} and {after_start} MiB of memory");
    assert_eq!(server.terminate().code(), Some(0));
}
