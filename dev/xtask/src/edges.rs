//! Which crate may use which: a table, held against the manifests.
//!
//! A new edge is a line here, seen by whoever reads the change; never an accident in a `Cargo.toml`. What no chain of
//! edges can reach is checked too: storage knows nothing of the network.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use serde_json::Value;

/// `(crate, may use)`, bottom to top. Development dependencies of tests may also use the crates listed third.
const EDGES: &[(&str, &[&str], &[&str])] = &[
    ("base", &[], &[]),
    ("proto", &[], &[]),
    ("scheduler", &["base"], &[]),
    ("cell", &["base"], &[]),
    ("filter", &["base", "cell"], &["proto"]),
    ("model", &["base", "cell", "filter"], &[]),
    // protobuf messages <-> values, for the network, files and znodes alike
    ("convert", &["base", "cell", "model", "filter", "proto"], &[]),
    // the codecs that are rare
    ("compression", &[], &["base"]),
    ("fs", &["base"], &[]),
    ("fs-hdfs", &["fs"], &[]),
    // where everything lies on a volume
    ("rootdir", &["base", "model", "convert", "fs", "proto"], &[]),
    ("hfile", &["base", "cell", "compression", "proto", "fs"], &[]),
    ("memstore", &["base", "cell"], &[]),
    ("wal", &["base", "cell", "compression", "proto", "fs"], &[]),
    // which keys are read and written, by sample
    ("key-statistics", &["model"], &[]),
    // how many different values there are
    ("sketch", &[], &[]),
    (
        "region",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "convert",
            "fs",
            "rootdir",
            "hfile",
            "memstore",
            "wal",
            "proto",
            "key-statistics",
        ],
        &[],
    ),
    // rate limiters, and the rows of hbase:quota
    ("quota", &["base", "model", "proto"], &[]),
    // which regions are to be on which servers
    ("balancer", &["base", "model"], &[]),
    // groups of region servers
    ("rsgroup", &["model", "proto", "convert"], &[]),
    // what calls go through, as spans, and how they are sent
    ("trace", &["base"], &[]),
    ("otlp", &["base", "trace"], &["testkit"]),
    ("rpc", &["base", "cell", "compression", "proto", "convert", "trace"], &[]),
    ("coordination", &["base", "model", "proto", "convert"], &[]),
    // a session with a real ensemble, behind the trait of coordination
    ("zookeeper", &["base", "coordination"], &[]),
    ("client", &["base", "cell", "model", "filter", "proto", "convert", "rpc", "coordination", "trace"], &[]),
    (
        "regionserver",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "fs",
            "rootdir",
            "hfile",
            "wal",
            "region",
            "rpc",
            "proto",
            "convert",
            "scheduler",
            "quota",
            "key-statistics",
            "sketch",
            "trace",
        ],
        &[],
    ),
    // what a master has beside itself when its region servers are other processes
    (
        "leader",
        &[
            "base",
            "cell",
            "model",
            "proto",
            "convert",
            "fs",
            "rootdir",
            "hfile",
            "wal",
            "region",
            "trace",
            "rpc",
            "coordination",
            "membership",
            "regionserver",
            "master",
        ],
        &["assembly", "client"],
    ),
    // a region server's membership in a cluster whose master is another process
    (
        "membership",
        &["base", "model", "proto", "convert", "quota", "rpc", "coordination", "client", "regionserver"],
        &[],
    ),
    // hfile and wal: it writes the store that HBase's master reads, and reads the switches of that
    (
        "master",
        &[
            "balancer", "base", "cell", "model", "filter", "fs", "rootdir", "hfile", "rpc", "proto", "convert",
            "quota", "rsgroup", "trace", "wal",
        ],
        &[],
    ),
    // the composition root, a master and a region server in one process: for the binary and for the simulator
    (
        "assembly",
        &[
            "base",
            "cell",
            "coordination",
            "fs",
            "rootdir",
            "hfile",
            "master",
            "model",
            "proto",
            "quota",
            "region",
            "regionserver",
            "rpc",
            "wal",
        ],
        &["client", "convert", "filter"],
    ),
    // stacks and their picture, for the pages and for cargo xtask profile
    ("flame", &[], &[]),
    ("web", &["base", "cell", "model", "key-statistics"], &[]),
    // the REST gateway: a client behind HTTP
    (
        "rest",
        &["base", "cell", "model", "filter", "proto", "client", "trace"],
        &["assembly", "fs", "master", "regionserver", "rpc", "wal"],
    ),
    // the Thrift gateways: a client behind two IDLs
    (
        "thrift",
        &["base", "cell", "model", "filter", "proto", "convert", "client", "trace"],
        &["assembly", "fs", "master", "regionserver", "rpc", "wal"],
    ),
    // load generators: clients with a face
    // over files, and over a server
    (
        "tools",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "proto",
            "convert",
            "compression",
            "fs",
            "rootdir",
            "hfile",
            "wal",
            "rpc",
            "client",
        ],
        &[],
    ),
    // the shell: another one
    ("shell", &["base", "cell", "model", "filter", "convert", "proto", "client"], &[]),
    // comparisons of servers: starts them, and drives them with the load generators
    (
        "compare",
        &["base", "cell", "model", "filter", "proto", "convert", "rpc", "client", "rest", "tools", "testkit"],
        &[],
    ),
    // measures the storage crates from the inside, and the server through its socket
    (
        "bench",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "fs",
            "rootdir",
            "hfile",
            "memstore",
            "wal",
            "region",
            "rpc",
            "proto",
            "convert",
            "quota",
            "regionserver",
            "trace",
            "key-statistics",
            "testkit",
        ],
        &[],
    ),
    // the simulator: the whole server on one thread, for tests
    (
        "sim",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "fs",
            "rootdir",
            "hfile",
            "wal",
            "region",
            "rpc",
            "proto",
            "convert",
            "coordination",
            "membership",
            "leader",
            "regionserver",
            "master",
            "assembly",
        ],
        &[],
    ),
    (
        "basalt",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "fs",
            // by a feature
            "fs-hdfs",
            "zookeeper",
            "rootdir",
            "hfile",
            "wal",
            "region",
            "rpc",
            "proto",
            "coordination",
            "membership",
            "leader",
            "regionserver",
            "master",
            "assembly",
            "flame",
            "key-statistics",
            "trace",
            "otlp",
            "scheduler",
            "quota",
            "balancer",
            "web",
            "tools",
            "client",
            "rest",
            "shell",
            "thrift",
        ],
        &["compare", "convert", "filter", "testkit"],
    ),
    // starts the server's binary and learns where it listens
    ("testkit", &[], &[]),
    // drives the server as a process: sockets, signals, files
    ("faults", &["base", "cell", "model", "rpc", "proto", "convert", "testkit"], &[]),
    // every decoder, driven by made-up bytes; the server of the simulator
    (
        "fuzz",
        &[
            "base",
            "cell",
            "model",
            "filter",
            "fs",
            "rootdir",
            "hfile",
            "wal",
            "region",
            "rpc",
            "client",
            "compression",
            "proto",
            "convert",
            "coordination",
            "regionserver",
            "master",
            "rest",
            "sim",
            "thrift",
            "tools",
        ],
        &[],
    ),
    ("xtask", &["testkit", "flame"], &[]),
];

/// `(crate, what it must not reach by any chain of edges)`.
const NEVER: &[(&str, &[&str])] = &[
    ("rootdir", &["hfile", "wal", "memstore", "region", "rpc"]),
    ("convert", &["fs", "rpc", "hfile", "wal", "memstore", "region"]),
    ("region", &["rpc", "coordination", "client", "regionserver", "master"]),
    ("rpc", &["fs", "hfile", "wal", "memstore", "region"]),
    ("coordination", &["fs", "hfile", "wal", "memstore", "region", "rpc"]),
    ("web", &["fs", "hfile", "wal", "memstore", "region", "rpc", "proto"]),
    ("client", &["fs", "hfile", "wal", "memstore", "region"]),
    ("tools", &["memstore", "region", "regionserver", "master", "assembly"]),
    ("rest", &["fs", "hfile", "wal", "memstore", "region", "regionserver", "master"]),
    ("shell", &["fs", "hfile", "wal", "memstore", "region", "regionserver", "master"]),
    ("thrift", &["fs", "hfile", "wal", "memstore", "region", "regionserver", "master"]),
    ("balancer", &["fs", "proto", "rpc"]),
    ("rsgroup", &["fs", "rpc"]),
    ("trace", &["fs", "proto", "rpc"]),
    ("otlp", &["fs", "proto", "rpc"]),
];

/// Crates that hold the engine: synchronous, so no runtime.
const NO_RUNTIME: &[&str] = &[
    "base", "cell", "model", "filter", "convert", "fs", "rootdir", "hfile", "memstore", "wal", "region", "balancer",
    "rsgroup", "trace",
];

/// Holds the manifests (`cargo metadata`) against the table; every violation is one line.
pub fn check(metadata: &Value) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        if !package["source"].is_null() {
            continue;
        }
        if package["manifest_path"].as_str().is_some_and(is_third_party) {
            continue;
        }
        let name = short(package["name"].as_str().unwrap_or_default());
        let Some((_, normal, dev)) = EDGES.iter().find(|e| e.0 == name) else {
            wrong.push(format!("{name} is not in the table of edges (xtask/src/edges.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if target == "tokio" && !is_dev && NO_RUNTIME.contains(&name) {
                wrong.push(format!("{name} uses {target}: the engine is synchronous"));
            }
            if dependency["path"].is_null() || dependency["path"].as_str().is_some_and(is_third_party) {
                continue;
            }
            let target = short(target);
            if !(normal.contains(&target) || is_dev && dev.contains(&target)) {
                wrong.push(format!("{name} -> {target} is not an edge of the table (xtask/src/edges.rs)"));
            }
            if !is_dev {
                reach.entry(name).or_default().insert(target);
            }
        }
    }
    for (from, never) in NEVER {
        let mut seen = BTreeSet::new();
        let mut todo = vec![*from];
        while let Some(at) = todo.pop() {
            for next in reach.get(at).into_iter().flatten() {
                if seen.insert(*next) {
                    todo.push(next);
                }
            }
        }
        for target in never.iter().filter(|t| seen.contains(*t)) {
            wrong.push(format!("{from} reaches {target}"));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n           "));
    }
    Ok(())
}

/// A crate of others that is kept in the tree with changes.
fn is_third_party(path: &str) -> bool {
    path.contains("/third_party/")
}

fn short(package: &str) -> &str {
    package.strip_prefix("basalt-").unwrap_or(package)
}
