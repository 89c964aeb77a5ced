//! Running other programs: where, with what said, and with their output kept.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The root of the tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where interop keeps compiled classes, data and logs: under the target directory, so that `cargo clean` clears it.
pub fn scratch() -> anyhow::Result<PathBuf> {
    let dir = target_dir().join("interop");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    dir.canonicalize().context("the scratch directory went away")
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // cargo sets this for us; handed on, it would make the inner cargo think it is us
    cargo.env_remove("CARGO_MANIFEST_DIR").current_dir(root());
    cargo
}

/// What every cargo that compiles tests or lints is told: crates of other packages and features would be compiled for each of them again. The
/// server with all its doors is what is tested.
pub const EVERYTHING: [&str; 3] = ["--workspace", "--features", "basalt/hdfs,basalt/zookeeper"];

/// The test binary `test` of the package in `folder`, compiled as all tests are.
pub fn test_binary(folder: &str, test: &str) -> anyhow::Result<PathBuf> {
    test_binary_with(&EVERYTHING, folder, test)
}

/// The same, of these packages with these features.
pub fn test_binary_with(packages: &[&str], folder: &str, test: &str) -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build.arg("test").args(packages).args(["--test", test, "--no-run", "--message-format=json-render-diagnostics"]);
    let messages = stdout("cargo test --no-run", &mut build)?;
    let manifest = root().join(folder).join("Cargo.toml");
    let built =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find(|built| {
            built["target"]["name"] == test
                && built["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest)
        });
    let binary = built.and_then(|built| Some(PathBuf::from(built["executable"].as_str()?)));
    binary.with_context(|| format!("cargo named no test binary {test} of {folder}"))
}

/// The program `name` of the workspace as the tests are built, from what they have built already. Good enough where no time is measured, or only
/// what is out of all proportion is to be noticed.
pub fn built_like_tests(name: &str) -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    // With the tests: without them the features of what only tests need are off, and most crates would be compiled again.
    build.args(["build", "--quiet", "--profile", "test", "--tests", "--bin", name]).args(EVERYTHING);
    must("cargo build", &mut build)?;
    Ok(target_dir().join("debug").join(name))
}

/// Runs with output going to our own; an error if it does not end well.
pub fn must(what: &str, command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{what}: cannot run {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    Ok(())
}

/// Standard output of a command that must end well; its errors go to our own.
pub fn stdout(what: &str, command: &mut Command) -> anyhow::Result<String> {
    let out = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{what}: cannot run {:?}", command.get_program()))?;
    if !out.status.success() {
        bail!("{what}: {}", out.status);
    }
    String::from_utf8(out.stdout).with_context(|| format!("{what}: output is not text"))
}

/// How a logged command ended.
pub struct Ended {
    /// Exit status zero, and in time.
    pub well: bool,
    /// Time of a core that it took, user and system, in steps of 10 ms and without its last 20 ms. Only its own: no child's.
    pub cpu: Duration,
    /// What it printed, on both streams.
    pub output: String,
}

/// Runs with both streams into `log`; kills it, and what it has started, after `limit`.
pub fn logged(command: &mut Command, log: &Path, limit: Duration) -> anyhow::Result<Ended> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let start = Instant::now();
    let mut cpu = Duration::ZERO;
    let status = loop {
        cpu = cpu_time(child.id()).unwrap_or(cpu);
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            let started = descendants(child.id());
            child.kill()?;
            child.wait()?;
            if !started.is_empty() {
                let ids = started.iter().map(u32::to_string);
                // One that has ended meanwhile is none to be killed.
                Command::new("kill").arg("-9").args(ids).stderr(Stdio::null()).status().context("cannot run kill")?;
            }
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut output = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    if status.is_none() {
        output.push_str(&format!("\nstopped after {} s\n", limit.as_secs()));
    }
    Ok(Ended { well: status.is_some_and(|s| s.success()), cpu, output })
}

/// Processes that a process has started, and those that these have, as far as they are there.
fn descendants(of: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = line.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (process, parent)));
    }
    let mut found = vec![of];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| process));
        at += 1;
    }
    found.split_off(1)
}

/// What a process has used by now, from its line in `/proc`, which stays until its parent has waited for it.
pub fn cpu_time(process: u32) -> Option<Duration> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold anything; the fields behind it are numbers: user and system are the 14th and 15th of all.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers of a test that was stopped at its limit went on, and had the ports of the next one.
    #[test]
    fn what_a_command_has_started_ends_with_it_at_its_limit() {
        let dir = std::env::temp_dir();
        let log = dir.join(format!("basalt-xtask-limit-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "(sleep 1000 & echo child $!; wait) & wait"]);
        let ended = logged(&mut command, &log, Duration::from_millis(500)).expect("sh runs");
        std::fs::remove_file(&log).expect("the log");
        assert!(!ended.well);
        let child = ended.output.lines().find_map(|line| line.strip_prefix("child ")).expect("it began");
        let stat = format!("/proc/{child}/stat");
        let began = Instant::now();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(began.elapsed() < Duration::from_secs(20), "process {child} goes on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_busy_child_costs_time_and_a_sleeping_one_none() {
        let log = std::env::temp_dir().join(format!("basalt-xtask-cpu-{}.log", std::process::id()));
        let run = |script: &str| {
            logged(Command::new("sh").args(["-c", script]), &log, Duration::from_secs(60)).expect("sh runs").cpu
        };
        let (busy, idle) = (run("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"), run("exec sleep 0.3"));
        std::fs::remove_file(&log).expect("the log");
        assert!(busy >= Duration::from_millis(50) && idle < Duration::from_millis(50), "{busy:?} {idle:?}");
    }
}
