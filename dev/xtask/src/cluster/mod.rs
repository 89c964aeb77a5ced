//! `cargo xtask cluster`: what Basalt does on a real HDFS and with a real ZooKeeper, both started here from HBase's jars.

mod pieces;

use std::path::Path;
use std::time::Duration;

use anyhow::bail;

use crate::report::{Outcome, Report};
use crate::{native_client, run, toolchain};
use pieces::Pieces;

/// Compiling the tests takes most of it.
const LIMIT: Duration = Duration::from_secs(1800);

/// A test binary, and what cargo is told to build it.
struct Tests {
    /// As on the command line.
    name: &'static str,
    build: &'static [&'static str],
    /// Of the binary's tests.
    filter: &'static [&'static str],
    /// Whether some of them kill a DataNode.
    kills: bool,
}

const ALL: &[Tests] = &[
    Tests { name: "nodes", build: &["--package", "basalt-zookeeper", "--test", "ensemble"], filter: &[], kills: false },
    Tests { name: "volume", build: &["--package", "basalt-fs-hdfs", "--test", "hdfs"], filter: &[], kills: true },
    Tests {
        name: "server",
        build: &["--package", "basalt", "--features", "hdfs,zookeeper", "--test", "main"],
        filter: &["hdfs::"],
        kills: true,
    },
    // HBase's master and one of its region servers beside one of ours
    Tests {
        name: "join",
        build: &["--package", "basalt", "--features", "hdfs,zookeeper", "--test", "main"],
        filter: &["joined::"],
        kills: false,
    },
];

/// Tests with this in their names kill a DataNode, so each is run by itself.
const KILLS: &str = "a_dead_data_node";

/// Runs the tests of these names (none: all). Without the jars of HBase it says so and is done where `may_skip`, else it has failed.
pub fn run(report: &mut Report, wanted: &[String], may_skip: bool) -> anyhow::Result<()> {
    if let Some(name) = wanted.iter().find(|name| ALL.iter().all(|tests| tests.name != **name)) {
        let names: Vec<&str> = ALL.iter().map(|tests| tests.name).collect();
        bail!("no tests {name}; there are: {}", names.join(" "));
    }
    let wanted: Vec<&Tests> =
        ALL.iter().filter(|tests| wanted.is_empty() || wanted.iter().any(|name| tests.name == name)).collect();
    let lab = match toolchain::jars() {
        Ok(lab) => lab,
        Err(e) if may_skip => {
            println!("==> cluster: skipped, as HDFS and ZooKeeper cannot be started without HBase's jars: {e:#}");
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    // The JVMs do not wait for the compiler, nor it for their cores.
    let built = report.step("cluster: build of the tests", || {
        let build = |tests: &&Tests| run::must("cargo test", run::cargo().args(["test", "--no-run"]).args(tests.build));
        wanted.iter().try_for_each(build)
    });
    if built {
        play_all(report, &lab, &wanted);
    }
    Ok(())
}

fn play_all(report: &mut Report, lab: &Path, wanted: &[&Tests]) {
    let mut started = None;
    report.step("cluster: ZooKeeper, a NameNode and three DataNodes", || {
        started = Some(Pieces::start(lab)?);
        Ok(())
    });
    let Some(mut pieces) = started else { return };
    for tests in wanted {
        report.part(&format!("cluster: {}", tests.name), || {
            play(&pieces, tests, tests.name, &[tests.filter, &["--skip", KILLS]].concat())
        });
        if tests.kills {
            report.part(&format!("cluster: {}, a DataNode dies", tests.name), || {
                let outcome = play(&pieces, tests, &format!("{}-dead", tests.name), &[KILLS]);
                pieces.start_data_node(0)?;
                outcome
            });
        }
    }
}

/// Runs those tests of a binary that `which` leaves. One that found nothing to test on has failed.
fn play(pieces: &Pieces, tests: &Tests, log: &str, which: &[&str]) -> anyhow::Result<Outcome> {
    let logs = run::scratch()?.join("logs");
    std::fs::create_dir_all(&logs)?;
    let log = logs.join(format!("cluster-{log}.log"));
    let mut command = run::cargo();
    command.arg("test").args(tests.build).args(["--", "--show-output", "--test-threads", "4"]).args(which);
    command.env("BASALT_TEST_HDFS", pieces.hdfs()).env("BASALT_TEST_ZOOKEEPER", pieces.zookeeper());
    command.env("BASALT_TEST_HDFS_KILL", pieces.kill_data_node(0)?).env_remove("HADOOP_CONF_DIR");
    let (launcher, dir) = pieces.launcher()?;
    command.env("BASALT_TEST_HBASE_LAUNCHER", launcher).env("BASALT_TEST_HBASE_DIR", dir);
    let ended = run::logged(&mut command, &log, LIMIT)?;
    let mut outcome = native_client::judge(&ended.output, ended.well);
    let skipped = ended.output.lines().filter(|line| line.starts_with("skipped: "));
    outcome.failures.extend(skipped.map(str::to_owned));
    if !outcome.failures.is_empty() {
        println!("    output: {}", log.display());
    }
    Ok(outcome)
}
