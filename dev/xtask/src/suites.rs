//! The interop suites: what each client is made to do, and how its output is judged.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::report::Outcome;
use crate::server::Kind;
use crate::{differential, gateways, jvm, native_client, native_tools, run, testing, toolchain, traced};

/// What a suite is told.
pub struct Context {
    /// Which server it faces.
    pub kind: Kind,
    /// The directory with the jars.
    pub lab: PathBuf,
    /// `host:port`.
    pub zookeeper: String,
    /// `host:port`.
    pub bootstrap: String,
    /// The server's root directory.
    pub root: PathBuf,
    /// Where its output goes; further files beside it.
    pub log: PathBuf,
    /// Only cases whose name this regular expression finds.
    pub only: Option<String>,
}

/// A named suite.
pub struct Suite {
    /// As on the command line.
    pub name: &'static str,
    /// Runs it against a server that is up.
    pub run: fn(&Context) -> anyhow::Result<Outcome>,
    /// What that server is told besides.
    pub settings: &'static [(&'static str, &'static str)],
}

/// The suite that ends its server.
pub const STOP: &str = "stop";

/// In the order they run.
pub const ALL: &[Suite] = &[
    Suite { name: "java", run: |c| java(c, &jvm::HBASE_2, "2.x", &[]), settings: &[] },
    Suite { name: "java3", run: |c| java(c, &jvm::HBASE_3, "3.x", &[]), settings: &[] },
    Suite { name: "asynchbase", run: asynchbase, settings: &[] },
    Suite { name: "shell", run: shell, settings: &[] },
    Suite { name: "go", run: go, settings: &[] },
    Suite { name: "pe", run: performance_evaluation, settings: &[] },
    Suite { name: "ltt", run: load_test_tool, settings: &[] },
    Suite { name: "tools", run: native_tools::suite, settings: &[] },
    Suite { name: "client", run: native_client::suite, settings: &[] },
    Suite { name: "gateways", run: gateways::suite, settings: &[] },
    Suite { name: "differential", run: differential::suite, settings: &[] },
    Suite { name: "administration", run: differential::administration_suite, settings: differential::WITH_QUOTAS },
    Suite { name: "bad-input", run: |c| java(c, &jvm::HBASE_2, "2.x", &["--bad-input", "yes"]), settings: &[] },
    Suite { name: "traced", run: traced::suite, settings: traced::SETTINGS },
    Suite { name: "testing", run: testing::suite, settings: &[] },
    Suite { name: STOP, run: |c| java(c, &jvm::HBASE_2, "2.x", &["--stop", "yes"]), settings: &[] },
    Suite { name: "moving", run: |c| java(c, &jvm::HBASE_2, "2.x", &["--moving", "yes"]), settings: &[] },
];

const LIMIT: Duration = Duration::from_secs(900);

/// Counts "ok ..." and "FAILED ..." lines; a run that does not come to its last line has failed whatever it printed.
pub fn judge(ended: &run::Ended) -> Outcome {
    let mut outcome = Outcome::default();
    let mut summary = None;
    for line in ended.output.lines() {
        if line.starts_with("ok ") {
            outcome.passed += 1;
        } else if let Some(failure) = line.strip_prefix("FAILED ") {
            outcome.failures.push(failure.to_owned());
        } else if line.ends_with(" failed") && line.contains(" passed, ") {
            summary = Some(line.to_owned());
        }
    }
    let wanted = format!("{} passed, {} failed", outcome.passed, outcome.failures.len());
    if summary.as_deref() != Some(wanted.as_str()) || ended.well != outcome.failures.is_empty() {
        let tail: Vec<&str> = ended.output.lines().rev().take(5).collect();
        outcome.failures.push(format!("did not come to its end; last lines, newest first: {}", tail.join(" / ")));
    }
    outcome
}

/// Expected answers are what the real HBase says.
fn only_hbase_is_expected(c: &Context) -> anyhow::Result<()> {
    if std::env::var_os("UPDATE_EXPECT").is_some() && c.kind != Kind::HBase {
        bail!("what is expected is what the real HBase says: UPDATE_EXPECT goes with --against hbase");
    }
    Ok(())
}

fn java(c: &Context, client: &jvm::Client, label: &str, more: &[&str]) -> anyhow::Result<Outcome> {
    only_hbase_is_expected(c)?;
    let class_path = client.compile(&c.lab)?;
    let mut command = jvm::java(&class_path, "basalt.interop.Main");
    command.args(["--zk", &c.zookeeper, "--bootstrap", &c.bootstrap, "--label", label, "--golden"]);
    command.arg(run::root().join("tests/golden")).args(more);
    if let Some(only) = &c.only {
        command.args(["--only", only]);
    }
    Ok(judge(&run::logged(&mut command, &c.log, LIMIT)?))
}

fn asynchbase(c: &Context) -> anyhow::Result<Outcome> {
    let maker = jvm::HBASE_2.compile(&c.lab)?;
    let mut make = jvm::java(&maker, "basalt.interop.MakeTable");
    let made = run::logged(make.args([&c.zookeeper, "it_asynchbase"]), &c.log.with_extension("table.log"), LIMIT)?;
    if !made.well {
        bail!("cannot make the table: {}", made.output);
    }
    let class_path = jvm::ASYNCHBASE.compile(&c.lab)?;
    let mut command = jvm::java(&class_path, "basalt.interop.AsyncHBaseMain");
    command.args(["--zk", &c.zookeeper, "--table", "it_asynchbase"]);
    Ok(judge(&run::logged(&mut command, &c.log, LIMIT)?))
}

fn go(c: &Context) -> anyhow::Result<Outcome> {
    toolchain::programs(&["go"])?;
    let binary = run::scratch()?.join("gohbase");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&binary).arg(".").current_dir(run::root().join("tests/interop/go"));
    let built = run::logged(&mut build, &c.log.with_extension("build.log"), LIMIT)?;
    if !built.well {
        bail!("go build (network needed on first use): {}", built.output);
    }
    Ok(judge(&run::logged(Command::new(binary).args([&c.zookeeper, "it_go"]), &c.log, LIMIT)?))
}

/// One of the scripts that run HBase's own programs, against the suite's server.
pub fn script(c: &Context, name: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(toolchain::scripts().join(name)).env("LAB", &c.lab).env("ZK", &c.zookeeper);
    let conf = c.log.with_extension("conf");
    command.env("CLIENT_CONF", conf).env("CLIENT_OPTS", jvm::Jit::Quick.options().join(" "));
    command
}

/// The shell's own words against those the real server made it say.
fn shell(c: &Context) -> anyhow::Result<Outcome> {
    let dir = run::root().join("tests/interop/shell");
    let ended = run::logged(script(c, "shell.sh").arg(dir.join("commands.rb")), &c.log, LIMIT)?;
    let got = testkit::shell::plain(&ended.output);
    let expected_file = dir.join("expected.txt");
    only_hbase_is_expected(c)?;
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&expected_file, &got)?;
    }
    let expected = std::fs::read_to_string(&expected_file).context("tests/interop/shell/expected.txt")?;
    let mut outcome = Outcome::default();
    // compare command by command, so that one difference is one failure
    let expected = testkit::shell::commands(&expected);
    let mut got = testkit::shell::commands(&got).into_iter().peekable();
    for (command, answer) in &expected {
        match got.next_if(|(c, _)| c == command) {
            Some((_, a)) if a == *answer => outcome.passed += 1,
            Some((_, a)) => outcome.failures.push(format!("{command}: expected {answer:?}, got {a:?}")),
            None => {
                outcome.failures.push(format!("{command}: the shell did not come so far; see {}", c.log.display()));
                break;
            }
        }
    }
    if !ended.well {
        outcome.failures.push("the shell ended with an error".to_owned());
    }
    Ok(outcome)
}

/// PerformanceEvaluation, in threads of one JVM; every command must finish, and leave the rows it wrote.
fn performance_evaluation(c: &Context) -> anyhow::Result<Outcome> {
    const CLIENTS: u32 = 4;
    /// Of each client: that it comes to its end is what is tested.
    const ROWS: u32 = 5_000;
    let commands: &[(&str, u32)] = &[
        ("sequentialWrite", ROWS),
        ("randomWrite", ROWS),
        ("randomRead", ROWS),
        ("scan", ROWS),
        ("scanRange100", 500),
    ];
    let mut outcome = Outcome::default();
    for (command, rows) in commands {
        let log = c.log.with_extension(format!("{command}.log"));
        let mut pe = script(c, "pe.sh");
        pe.arg(format!("--rows={rows}")).args(["--presplit=4", command, &CLIENTS.to_string()]);
        let ended = run::logged(&mut pe, &log, LIMIT)?;
        let finished = ended.output.lines().filter(|l| l.contains("Finished ") && l.contains("ms")).count();
        let exceptions: Vec<&str> = ended.output.lines().filter(|l| l.contains("Exception")).take(3).collect();
        if ended.well && exceptions.is_empty() && finished >= CLIENTS as usize {
            outcome.passed += 1;
        } else {
            let tail: Vec<&str> = ended.output.lines().rev().take(3).collect();
            outcome.failures.push(format!(
                "{command}: {finished} of {CLIENTS} threads finished; {} {}; see {}",
                exceptions.join(" / "),
                tail.join(" / "),
                log.display()
            ));
        }
    }
    let class_path = jvm::HBASE_2.compile(&c.lab)?;
    let mut count = jvm::java(&class_path, "basalt.interop.CountRows");
    let rows = (CLIENTS * ROWS).to_string();
    let counted = run::logged(count.args([&c.zookeeper, "TestTable", &rows]), &c.log, LIMIT)?;
    let count = judge(&counted);
    outcome.passed += count.passed;
    outcome.failures.extend(count.failures);
    Ok(outcome)
}

/// LoadTestTool: writes with several columns and updates, then reads everything back and verifies it.
fn load_test_tool(c: &Context) -> anyhow::Result<Outcome> {
    let table = ["-tn", "it_ltt"];
    let keys = ["-num_keys", "10000"];
    let runs: &[(&str, &[&str])] = &[
        ("write", &["-write", "3:200:4", "-num_regions_per_server", "4"]),
        ("read", &["-read", "100:4", "-skip_init"]),
        ("update", &["-update", "30:4:1", "-skip_init"]),
        ("multiput", &["-write", "3:200:4", "-multiput", "-start_key", "10000", "-skip_init"]),
    ];
    let mut outcome = Outcome::default();
    for (name, arguments) in runs {
        let log = c.log.with_extension(format!("{name}.log"));
        let ended = run::logged(script(c, "ltt.sh").args(table).args(keys).args(*arguments), &log, LIMIT)?;
        // the tool's own verdict is its exit status: no key it failed to write, read or verify
        let failed: Vec<&str> = ended
            .output
            .lines()
            .filter(|l| l.contains("Exception") || l.contains("Failed to ") && !l.ends_with(": 0"))
            .take(3)
            .collect();
        let to_the_end =
            *name == "read" || ended.output.lines().any(|l| l.starts_with("Failed to ") && l.ends_with(": 0"));
        if ended.well && failed.is_empty() && to_the_end {
            outcome.passed += 1;
        } else {
            outcome.failures.push(format!("{name}: {}; see {}", failed.join(" / "), log.display()));
        }
    }
    Ok(outcome)
}
