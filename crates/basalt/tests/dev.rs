//! `basalt dev`: what it says, that it serves, and that nothing of it is left.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories")]

use crate::common::Scratch;
use client::{Connection, Options, Put};
use model::{FamilyDescriptor, Get, TableDescriptor, TableName};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An instance, and the line that it said.
struct Instance {
    child: Child,
    said: Value,
    directory: PathBuf,
}

impl Instance {
    fn start(parent: &Path, arguments: &[&str]) -> Instance {
        let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
        command.env_remove("HBASE_CONF_DIR").args(["dev", "--directory"]).arg(parent).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let directory = parent.join(format!("basalt-dev-{}", child.id()));
        assert!(directory.is_dir(), "{}", directory.display());
        Instance { child, said, directory }
    }

    async fn works(&self) {
        let connection = Connection::open(Options::zookeeper(self.said["quorum"].as_str().expect("a quorum")));
        let name = TableName::parse("t").expect("legal");
        let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
        connection.admin().create_table(&descriptor, &[]).await.expect("made");
        let t = connection.table(&name);
        t.put(&Put::new("a").add("f", "q", "1").build()).await.expect("written");
        assert_eq!(t.get(&Get::new("a")).await.expect("read").value(b"f", b"q"), Some(&b"1"[..]));
    }

    /// It ends by itself, well, and its directory with it.
    fn must_be_gone(mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        assert!(!self.directory.exists(), "{} is left", self.directory.display());
    }
}

#[tokio::test]
async fn it_serves_and_goes_with_its_data_when_its_input_is_closed() {
    let scratch = Scratch::new("dev-stdin");
    let mut instance = Instance::start(&scratch.0, &["--until-stdin-closes"]);
    instance.works().await;
    let ports = ["zookeeper_port", "master_port", "region_port", "info_port"].map(|name| instance.said[name].as_u64());
    assert!(ports.iter().all(|port| port.is_some_and(|port| port > 1024)), "{}", instance.said);
    assert_eq!(instance.said["pid"], instance.child.id());
    drop(instance.child.stdin.take());
    instance.must_be_gone();
}

#[tokio::test]
async fn sigterm_ends_it_and_a_closed_input_alone_does_not() {
    let scratch = Scratch::new("dev-sigterm");
    let mut instance = Instance::start(&scratch.0, &[]);
    drop(instance.child.stdin.take());
    instance.works().await;
    let pid = rustix::process::Pid::from_child(&instance.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
    instance.must_be_gone();
}

#[tokio::test]
async fn what_a_killed_one_left_goes_with_the_next() {
    let scratch = Scratch::new("dev-killed");
    let mut killed = Instance::start(&scratch.0, &["--until-stdin-closes"]);
    killed.child.kill().expect("it is there");
    killed.child.wait().expect("it ends");
    assert!(killed.directory.exists());
    let mut next = Instance::start(&scratch.0, &["--until-stdin-closes"]);
    assert!(!killed.directory.exists());
    drop(next.child.stdin.take());
    next.must_be_gone();
}
