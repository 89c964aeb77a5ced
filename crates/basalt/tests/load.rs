//! The load generators against the server, as processes: YCSB's data survives its own verification, and a comparison
//! ends with a report.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories")]

use crate::common::tools::{alone, text};
use crate::common::{Scratch, Server};

#[test]
fn ycsb_loads_runs_and_verifies() {
    let scratch = Scratch::new("ycsb");
    let server = Server::start(&scratch.join("root"), &["hbase.wal.hsync=false"]);
    let port = format!("hbase.zookeeper.property.clientPort={}", server.zk_port);
    let ycsb = |command: &str, workload: &str, more: &[&str]| {
        let mut arguments =
            vec!["-D", &port, "-D", "hbase.zookeeper.quorum=127.0.0.1", "ycsb", command, "hbase20", "-P", workload];
        let common =
            ["columnfamily=family", "recordcount=300", "operationcount=600", "threadcount=8", "dataintegrity=true"];
        for property in common.iter().chain(more) {
            arguments.extend(["-p", property]);
        }
        alone(&arguments)
    };
    let missing = ycsb("load", "workloada", &[]);
    assert!(!missing.status.success() && text(&missing).contains("does not exist"), "{}", text(&missing));
    let loaded = ycsb("load", "workloada", &["basalt.create=true"]);
    assert!(loaded.status.success(), "{}", text(&loaded));
    assert!(text(&loaded).contains("[INSERT], Return=OK, 300\n"), "{}", text(&loaded));
    for (workload, wants) in [
        ("workloada", &["[READ], Return=OK, ", "[UPDATE], Return=OK, ", "[VERIFY], Return=OK, "][..]),
        ("workloadd", &["[INSERT], Return=OK, "]),
        ("workloade", &["[SCAN], Return=OK, "]),
        ("workloadf", &["[READ-MODIFY-WRITE], Operations, "]),
    ] {
        let ran = ycsb("run", workload, &["target=3000", "measurement.interval=both", "status=true"]);
        let text = text(&ran);
        assert!(ran.status.success() && text.contains("[OVERALL], Throughput(ops/sec), "), "{workload}: {text}");
        for want in wants {
            assert!(text.contains(want), "{workload} lacks {want}: {text}");
        }
        for bad in ["Return=ERROR", "Return=NOT_FOUND", "Return=UNEXPECTED_STATE", "-FAILED"] {
            assert!(!text.contains(bad), "{workload} has {bad}: {text}");
        }
    }
    let buffered = ycsb("load", "workloada", &["clientbuffering=true", "writebuffersize=20000"]);
    assert!(buffered.status.success() && !text(&buffered).contains("ERROR"), "{}", text(&buffered));
}

#[test]
fn a_comparison_of_two_builds_ends_with_a_report() {
    let scratch = Scratch::new("compare");
    let out = scratch.join("out");
    let program = env!("CARGO_BIN_EXE_basalt");
    let (a, b) = (format!("basalt={program}"), format!("other={program}"));
    let out_text = out.display().to_string();
    let mut arguments =
        vec!["compare", "compare", "--quick", "--no-safe", "--basalt", &a, "--basalt", &b, "--out", &out_text];
    arguments.extend([
        "--rows",
        "1000",
        "--records",
        "1000",
        "--seconds",
        "0.2",
        "--warm-up",
        "0.1",
        "--first-warm-up",
        "0",
    ]);
    arguments.extend(["--mixed-seconds", "0.4", "--unflushed", "2", "--memory", "256", "--clients", "4"]);
    let ended = compare::run(arguments.iter().map(std::ffi::OsString::from)).expect("compares");
    assert_eq!(ended, std::process::ExitCode::SUCCESS);
    let json = std::fs::read_to_string(out.join("report.json")).expect("a report");
    for workload in
        ["start", "batch-put", "get-32", "scan-filtered", "fsync-64", "ycsb-e", "fixed-rate", "compaction", "recovery"]
    {
        assert!(json.contains(&format!("\"{workload}\"")), "{workload} is missing: {json}");
    }
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("recovery"));
    assert!(!out.join("data").exists(), "data is cleared away");
}
