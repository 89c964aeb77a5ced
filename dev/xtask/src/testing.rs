//! The helpers for tests of others (`testing/`), run as their users run them: the Python fixture by `unittest`, the Java rule and extension by
//! JUnit 4 and JUnit 5. Each starts servers of its own; the suite's server is not asked anything.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use crate::report::Outcome;
use crate::suites::Context;
use crate::{jvm, run, toolchain};

const LIMIT: Duration = Duration::from_secs(300);
/// JUnit 5 in one jar, with what runs the tests of both generations.
const CONSOLE: (&str, &str) = ("org.junit.platform:junit-platform-console-standalone", "1.10.5");

/// Both languages.
pub fn suite(context: &Context) -> anyhow::Result<Outcome> {
    let binary = crate::server::binary();
    let mut outcome = python(context, &binary)?;
    let java = java(context, &binary)?;
    outcome.passed += java.passed;
    outcome.failures.extend(java.failures);
    Ok(outcome)
}

fn python(context: &Context, binary: &Path) -> anyhow::Result<Outcome> {
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "-v"]).current_dir(run::root().join("testing/python"));
    python.env("BASALT_BINARY", binary).env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = run::logged(&mut python, &context.log.with_extension("python.log"), LIMIT)?;
    let passed = ended.output.lines().filter(|line| line.ends_with("... ok")).count();
    if !ended.well || passed == 0 {
        return Ok(Outcome { passed, failures: vec![format!("python: {}", last_lines(&ended.output))] });
    }
    Ok(Outcome { passed, failures: Vec::new() })
}

fn java(context: &Context, binary: &Path) -> anyhow::Result<Outcome> {
    let console = toolchain::jar(CONSOLE.0, CONSOLE.1)?;
    let jars = context.lab.join("hbase");
    let class_path =
        format!("{}/*:{}/*:{}", jars.join("jars").display(), jars.join("testjars").display(), console.display());
    let classes = run::scratch()?.join("classes/testing");
    std::fs::create_dir_all(&classes)?;
    let mut files = Vec::new();
    for tree in ["testing/java/src", "testing/java/test"] {
        jvm::java_files(&run::root().join(tree), &mut files)?;
    }
    let mut javac = jvm::javac();
    javac.args(["-nowarn", "-encoding", "UTF-8", "-d"]).arg(&classes).args(["-cp", &class_path]).args(&files);
    let ended = run::logged(&mut javac, &context.log.with_extension("javac.log"), LIMIT)?;
    if !ended.well {
        bail!("javac failed:\n{}", ended.output);
    }
    let whole = format!("{}:{class_path}", classes.display());
    let mut java = jvm::java(&whole, "org.junit.platform.console.ConsoleLauncher");
    java.args([
        "execute",
        "--disable-banner",
        "--details=tree",
        "--select-package=basalt.testing",
        "--include-classname=.*Test",
    ]);
    java.env("BASALT_BINARY", binary);
    let ended = run::logged(&mut java, &context.log.with_extension("junit.log"), LIMIT)?;
    let passed = count(&ended.output, "tests successful");
    if !ended.well || passed == 0 {
        return Ok(Outcome { passed, failures: vec![format!("java: {}", last_lines(&ended.output))] });
    }
    Ok(Outcome { passed, failures: Vec::new() })
}

/// The number in a line like `[         3 tests successful      ]`.
fn count(output: &str, what: &str) -> usize {
    let line = output.lines().find(|line| line.contains(what)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.trim_matches('[').parse().ok()).unwrap_or(0)
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().rev().take(15).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn junit_is_read() {
        let output = "Test run finished\n[         3 tests found           ]\n[        12 tests successful      ]\n";
        assert_eq!((count(output, "tests successful"), count(output, "tests failed")), (12, 0));
    }
}
