//! The native client against a server: its tests of the binary, pointed at the suite's server instead of one of their own.

use std::process::Command;
use std::time::Duration;

use crate::report::Outcome;
use crate::run;
use crate::suites::Context;

/// Compiling the tests takes most of it.
const LIMIT: Duration = Duration::from_secs(1800);

/// The suite `client`.
pub fn suite(c: &Context) -> anyhow::Result<Outcome> {
    let mut command = Command::new(run::test_binary("crates/basalt", "main")?);
    command.args(["--test-threads", "4"]).current_dir(run::root().join("crates/basalt"));
    command.arg(c.only.as_deref().unwrap_or("client::"));
    command.env("BASALT_TEST_ZOOKEEPER", &c.zookeeper);
    let ended = run::logged(&mut command, &c.log, LIMIT)?;
    Ok(judge(&ended.output, ended.well))
}

/// Counts the lines of the test harness; a run without any, or one that did not end well though no test failed, has failed.
pub fn judge(output: &str, well: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for line in output.lines() {
        let Some(rest) = line.strip_prefix("test ") else { continue };
        if let Some(name) = rest.strip_suffix(" ... ok") {
            outcome.passed += usize::from(!name.is_empty());
        } else if let Some(name) = rest.strip_suffix(" ... FAILED") {
            outcome.failures.push(name.to_owned());
        }
    }
    if outcome.failures.is_empty() && (!well || outcome.passed == 0) {
        let tail: Vec<&str> = output.lines().rev().take(5).collect();
        outcome.failures.push(format!("did not come to its end; last lines, newest first: {}", tail.join(" / ")));
    }
    outcome
}

/// What the failed tests printed: the first lines of each, and those from where it panicked.
pub fn failures_say(output: &str) -> Vec<&str> {
    const EACH: usize = 40;
    let mut said = Vec::new();
    let mut left = 0;
    // With `--show-output` the harness prints what those that passed said before that, in the same form.
    for line in output.lines().skip_while(|line| *line != "failures:") {
        if line.starts_with("---- ") {
            left = EACH;
        } else if line.starts_with("failures:") || line.starts_with("test result:") {
            left = 0;
        } else if line.contains(" panicked at ") {
            left = left.max(EACH / 4);
        }
        if left > 0 {
            left -= 1;
            said.push(line);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_tests_print_is_found_in_the_output() {
        let output = "test a ... ok\n\nsuccesses:\n\n---- a stdout ----\nwell\n\nsuccesses:\n    a\n\nfailures:\n\n\
                      ---- a::b stdout ----\nat x:1\nit is 2\n\nfailures:\n    a::b\n\ntest result: FAILED";
        assert_eq!(failures_say(output), ["---- a::b stdout ----", "at x:1", "it is 2", ""]);
        let lines = "line\n".repeat(100);
        let long =
            format!("failures:\n---- c stdout ----\n{lines}thread 'c' panicked at d:1:\n{lines}test result: FAILED");
        assert_eq!(failures_say(&long).len(), 50);
    }

    #[test]
    fn the_harness_lines_are_counted_and_silence_is_a_failure() {
        let outcome = judge("running 2 tests\ntest client::a ... ok\ntest client::b ... FAILED\n", false);
        assert_eq!((outcome.passed, outcome.failures.as_slice()), (1, &["client::b".to_owned()][..]));
        assert_eq!(judge("test client::a ... ok\n", true).failures.len(), 0);
        assert_eq!(judge("test client::a ... ok\n", false).failures.len(), 1);
        assert_eq!(judge("running 0 tests\n", true).failures.len(), 1);
    }
}
