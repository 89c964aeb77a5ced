//! Programs of the operator that are asked something, and print the answer. Follows: Hadoop's `Shell.ShellCommandExecutor`.

use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// What a program prints that is called with these words; or what went wrong with it. One that is not done after `at_most` is ended.
pub(crate) async fn run(
    file: &str,
    words: &[impl AsRef<std::ffi::OsStr>],
    at_most: Duration,
) -> Result<String, String> {
    let call = Command::new(file).args(words).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = match tokio::time::timeout(at_most, call).await {
        Ok(called) => called.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("it was not done after {} ms", at_most.as_millis())),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
