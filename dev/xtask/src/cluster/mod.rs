//! `cargo xtask cluster`: what Basalt does on a real HDFS and with a real ZooKeeper, both started here from HBase's jars.

pub mod pieces;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use crate::jvm::Jit;
use crate::report::{Outcome, Report};
use crate::{native_client, run, toolchain};
use pieces::{Pieces, Secured};

/// For the tests of one name.
const LIMIT: Duration = Duration::from_secs(900);
/// How long HBase's own test of recovery is left alone where `BASALT_MTTR_MINUTES` does not say it.
const MTTR_MINUTES: u64 = 15;

/// The tests that go on for as many rounds as one likes, and what a round takes at most: a region server of HBase's may wait for 200 s.
const MASTERS: &str = "masters";
const LIMIT_OF_ROUND: Duration = Duration::from_secs(300);

/// A test binary, and which of its tests.
struct Tests {
    /// As on the command line.
    name: &'static str,
    /// The package's folder, and the binary.
    binary: (&'static str, &'static str),
    /// What is built for it, in words of cargo's.
    packages: &'static [&'static str],
    /// Of the binary's tests.
    filter: &'static [&'static str],
    /// What some of them do to a DataNode.
    harms: &'static [&'static Harm],
}

/// What is done to a DataNode. Tests with `in_names` in their names do it, so they are run by themselves.
struct Harm {
    in_names: &'static str,
    what: &'static str,
}

const KILLED: &Harm = &Harm { in_names: "a_dead_data_node", what: "a DataNode dies" };
const STOPPED: &Harm = &Harm { in_names: "a_stopped_data_node", what: "a DataNode stands still" };

const ALL: &[Tests] = &[
    Tests {
        name: "nodes",
        binary: ("crates/zookeeper", "ensemble"),
        packages: &run::EVERYTHING,
        filter: &[],
        harms: &[],
    },
    // names, passwords, whose nodes are whose
    Tests {
        name: "secured",
        binary: ("crates/zookeeper", SECURED),
        packages: &run::EVERYTHING,
        filter: &[],
        harms: &[],
    },
    Tests {
        name: "volume",
        binary: ("crates/fs-hdfs", "hdfs"),
        packages: &run::EVERYTHING,
        filter: &[],
        harms: &[KILLED, STOPPED],
    },
    Tests {
        name: "server",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["hdfs::"],
        harms: &[KILLED],
    },
    // HBase's master and one of its region servers beside one of ours
    Tests {
        name: "join",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["joined::"],
        harms: &[],
    },
    // two masters and two region servers of ours, and one of HBase's below them
    Tests {
        name: "own",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["own::"],
        harms: &[],
    },
    // masters of HBase's and of ours that lead one cluster in turn
    Tests {
        name: MASTERS,
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["handed::"],
        harms: &[],
    },
    // read replicas between servers of either kind, below a master of either kind
    Tests {
        name: "replicas",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["replicated::"],
        harms: &[],
    },
];

/// What takes minutes, and is run by its name alone.
const LONG: &[Tests] = &[
    // sessions with ZooKeeper over TLS, whose cryptography is compiled for it
    Tests {
        name: "tls",
        binary: ("crates/zookeeper", SECURED),
        packages: &["--package", "basalt-zookeeper", "--features", "tls"],
        filter: &["tls"],
        harms: &[],
    },
    // a hundred regions of a killed server of either kind, taken over by either kind
    Tests {
        name: "recovered",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["recovered::"],
        harms: &[],
    },
    // region servers of ours, killed where three are left
    Tests {
        name: "lost",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["lost::"],
        harms: &[],
    },
    // YCSB on a cluster with one region server, and with three
    Tests {
        name: "spread",
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["spread::"],
        harms: &[],
    },
    // HBase's own integration tests and tools that want several servers
    Tests {
        name: INTEGRATION,
        binary: ("crates/basalt", "main"),
        packages: &run::EVERYTHING,
        filter: &["integration::"],
        harms: &[],
    },
];

/// The tests that want jars which no others do.
const INTEGRATION: &str = "integration";
/// The class path with these, below tests/interop/classpath.
const INTEGRATION_JARS: &str = "hbase-it";

/// The binary whose tests want a ZooKeeper of their own.
const SECURED: &str = "secured";

/// A linked list that is written while servers, masters and what they stand on are killed and stopped, for as long as one likes.
const CHAOS: Tests = Tests {
    name: "chaos",
    binary: ("crates/basalt", "main"),
    packages: &run::EVERYTHING,
    filter: &["chaos::"],
    harms: &[],
};

/// How long [`CHAOS`] goes on, and what it does.
pub struct Chaos {
    /// Minutes of it.
    pub minutes: u64,
    /// The same seed does the same.
    pub seed: Option<u64>,
    /// Whose masters lead.
    pub masters: Masters,
    /// Whether HBase's own linked list is written beside ours.
    pub hbases_list: bool,
}

/// Whose masters lead a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Masters {
    /// Ours, two of them.
    #[default]
    Basalt,
    /// HBase's, two of them.
    Java,
}

/// Harms a cluster for some minutes.
pub fn chaos(report: &mut Report, chaos: &Chaos) -> anyhow::Result<()> {
    let lab = toolchain::jars()?;
    let seed = match chaos.seed {
        Some(seed) => seed,
        None => std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH)?.as_secs(),
    };
    let masters = match chaos.masters {
        Masters::Basalt => "basalt",
        Masters::Java => "java",
    };
    let list = if chaos.hbases_list { " --hbases-list" } else { "" };
    println!("replay with: cargo xtask cluster --minutes {} --masters {masters}{list} --seed {seed}", chaos.minutes);
    let mut binary = None;
    report.step("cluster: build of the tests", || {
        binary = Some(run::test_binary_with(CHAOS.packages, CHAOS.binary.0, CHAOS.binary.1)?);
        Ok(())
    });
    let Some(binary) = binary else { return Ok(()) };
    report.part("cluster: chaos", || {
        let pieces = Pieces::start(&lab, Jit::Quick)?;
        let mut told = vec![
            ("BASALT_CHAOS_MINUTES", chaos.minutes.to_string()),
            ("BASALT_CHAOS_MASTERS", masters.to_owned()),
            ("BASALT_SEED", seed.to_string()),
        ];
        if chaos.hbases_list {
            told.push(tools(&lab));
        }
        // What is being done when they are over is done to its end, and then all is read.
        let limit = LIMIT + 2 * Duration::from_secs(60 * chaos.minutes);
        let outcome = play(&pieces, (&CHAOS, &binary), CHAOS.name, CHAOS.filter, &told, limit)?;
        let said = std::fs::read_to_string(run::scratch()?.join("logs/cluster-chaos.log")).unwrap_or_default();
        said.lines().filter(|line| line.contains(" s  ") || line.contains("CONTRA")).for_each(|l| println!("    {l}"));
        Ok(outcome)
    });
    Ok(())
}

/// Runs the tests of these names (none: all). Without the jars of HBase it says so and is done where `may_skip`, else it has failed.
pub fn run(report: &mut Report, wanted: &[String], may_skip: bool) -> anyhow::Result<()> {
    let all = || ALL.iter().chain(LONG);
    if let Some(name) = wanted.iter().find(|name| all().all(|tests| tests.name != **name)) {
        let names: Vec<&str> = all().map(|tests| tests.name).collect();
        bail!("no tests {name}; there are: {}", names.join(" "));
    }
    let wanted: Vec<&Tests> = match wanted {
        [] => ALL.iter().collect(),
        names => all().filter(|tests| names.iter().any(|name| tests.name == name)).collect(),
    };
    let more: &[&str] = if wanted.iter().any(|tests| tests.name == INTEGRATION) { &[INTEGRATION_JARS] } else { &[] };
    let lab = match toolchain::jars_with(more) {
        Ok(lab) => lab,
        Err(e) if may_skip => {
            println!("==> cluster: skipped, as HDFS and ZooKeeper cannot be started without HBase's jars: {e:#}");
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    // The JVMs do not wait for the compiler, nor it for their cores.
    let mut binaries = Vec::new();
    report.step("cluster: build of the tests", || {
        for tests in &wanted {
            binaries.push(run::test_binary_with(tests.packages, tests.binary.0, tests.binary.1)?);
        }
        Ok(())
    });
    if binaries.len() == wanted.len() {
        play_all(report, &lab, &wanted.into_iter().zip(binaries).collect::<Vec<_>>());
    }
    Ok(())
}

/// The class path of HBase's test programs, for tests that run them.
fn tools(lab: &Path) -> (&'static str, String) {
    ("BASALT_TEST_HBASE_TOOLS", format!("{}/*", lab.join("hbase/testjars").display()))
}

fn play_all(report: &mut Report, lab: &Path, wanted: &[(&Tests, PathBuf)]) {
    let mut started = None;
    report.step("cluster: ZooKeeper, a NameNode and three DataNodes", || {
        started = Some(Pieces::start(lab, Jit::Quick)?);
        Ok(())
    });
    let Some(mut pieces) = started else { return };
    for (tests, binary) in wanted {
        report.part(&format!("cluster: {}", tests.name), || {
            let others = [KILLED, STOPPED].map(|harm| ["--skip", harm.in_names]).concat();
            let which = [tests.filter, &others].concat();
            let secured = if tests.binary.1 == SECURED { Some(pieces.start_secured_zookeeper()?) } else { None };
            let mut told = secured.iter().flat_map(Secured::told).collect::<Vec<_>>();
            told.push(tools(lab));
            let mut limit = LIMIT;
            if tests.name == MASTERS {
                let rounds = std::env::var("BASALT_HANDED_ROUNDS").ok().and_then(|text| text.parse().ok());
                limit += LIMIT_OF_ROUND * rounds.unwrap_or(1);
            }
            if tests.name == INTEGRATION {
                let jars = format!("{}/*", lab.join(INTEGRATION_JARS).display());
                let launcher = pieces.launcher_of(INTEGRATION_JARS, &jars)?;
                told.push(("BASALT_TEST_HBASE_IT_LAUNCHER", launcher.display().to_string()));
                let minutes = std::env::var("BASALT_MTTR_MINUTES").ok().and_then(|text| text.parse().ok());
                limit += Duration::from_secs(60 * minutes.unwrap_or(MTTR_MINUTES));
            }
            play(&pieces, (tests, binary), tests.name, &which, &told, limit)
        });
        for harm in tests.harms {
            report.part(&format!("cluster: {}, {}", tests.name, harm.what), || {
                let log = format!("{}-{}", tests.name, harm.in_names);
                let outcome = play(&pieces, (tests, binary), &log, &[harm.in_names], &[], LIMIT);
                pieces.start_data_node(HARMED)?;
                outcome
            });
        }
    }
}

/// The DataNode that tests harm.
const HARMED: usize = 0;

/// Runs those tests of a binary that `which` leaves. One that found nothing to test on has failed.
fn play(
    pieces: &Pieces,
    (tests, binary): (&Tests, &Path),
    log: &str,
    which: &[&str],
    told: &[(&str, String)],
    limit: Duration,
) -> anyhow::Result<Outcome> {
    let logs = run::scratch()?.join("logs");
    std::fs::create_dir_all(&logs)?;
    let log = logs.join(format!("cluster-{log}.log"));
    let mut command = Command::new(binary);
    command.args(["--show-output", "--test-threads", "4"]).args(which).current_dir(run::root().join(tests.binary.0));
    command.env("BASALT_TEST_HDFS", pieces.hdfs()).env("BASALT_TEST_ZOOKEEPER", pieces.zookeeper());
    let node = pieces.data_node(HARMED)?;
    for (name, signal) in [("KILL", "KILL"), ("STOP", "STOP"), ("GO_ON", "CONT")] {
        command.env(format!("BASALT_TEST_HDFS_{name}"), format!("kill -{signal} {node}"));
    }
    command.env_remove("HADOOP_CONF_DIR");
    let (launcher, dir) = pieces.launcher();
    command.env("BASALT_TEST_HBASE_LAUNCHER", launcher).env("BASALT_TEST_HBASE_DIR", dir);
    command.envs(told.iter().map(|(name, value)| (name, value)));
    let ended = run::logged(&mut command, &log, limit)?;
    let mut outcome = native_client::judge(&ended.output, ended.well);
    let skipped = ended.output.lines().filter(|line| line.starts_with("skipped: "));
    outcome.failures.extend(skipped.map(str::to_owned));
    if !outcome.failures.is_empty() {
        println!("    output: {}", log.display());
        native_client::failures_say(&ended.output).iter().for_each(|line| println!("    | {line}"));
    }
    Ok(outcome)
}
