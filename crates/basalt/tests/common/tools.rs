//! Tools of the binary, run as processes against a server.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use super::Server;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the binary by itself.
pub fn alone(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// Runs the binary against a server, and writes `input` to it.
pub fn basalt_with(server: &Server, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .arg("-D")
        .arg(format!("hbase.zookeeper.property.clientPort={}", server.zk_port))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("piped").write_all(input).expect("taken");
    child.wait_with_output().expect("it ends")
}

/// Runs the binary against a server.
pub fn basalt(server: &Server, arguments: &[&str]) -> Output {
    basalt_with(server, arguments, b"")
}

/// All that it said.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a tool that must succeed; what it said.
pub fn said(server: &Server, arguments: &[&str]) -> String {
    let output = basalt(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

/// Runs a tool that must succeed; the last object of its output.
pub fn json(server: &Server, arguments: &[&str]) -> Value {
    let output = basalt(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(said.lines().rfind(|line| line.starts_with('{')).unwrap_or_default())
        .unwrap_or_else(|e| panic!("{arguments:?}: {said}: {e}"))
}

/// Runs commands of the shell, which must succeed; all that they printed.
pub fn shell(server: &Server, commands: &[&str]) -> String {
    let mut arguments = vec!["shell"];
    commands.iter().for_each(|command| arguments.extend(["-e", command]));
    said(server, &arguments)
}
