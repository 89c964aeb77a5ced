//! `basalt zkcli`. Follows: `ZooKeeperMain`.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use cell::print::{to_bytes_binary, to_string_binary};
use client::zookeeper::{NodeStat, Session};

use super::session;
use crate::jobs::defines;

const USAGE: &str = "\
Nodes of ZooKeeper: of the quorum that the configuration names, or of another.

Usage: basalt zkcli [-server HOST:PORT] [COMMAND [ARGUMENTS]...]

  ls [-s] [-R] PATH              nodes below; -s with what is known of the node, -R all the way down
  get [-s] PATH                  data (bytes that are no text as \\xNN)
  stat PATH                      what is known of a node
  create [-e] [-s] PATH [DATA]   makes a node; -e ends with this session, -s gets a number
  set [-v VERSION] PATH DATA     changes data
  delete [-v VERSION] PATH       deletes a node that has none below it
  deleteall PATH                 deletes a node and all below it
  quit

Without a command, commands are read from standard input, one a line. Ends with 1 where a command failed.

Examples:
  basalt zkcli ls /hbase
  basalt zkcli -server zk1:2181 get -s /hbase/master
  echo 'ls -R /hbase' | basalt zkcli
";

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// No ZooKeeper answers.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if crate::arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let (config, rest) = defines(config, given)?;
    let (server, words) = match rest.split_first() {
        Some((word, rest)) if word == "-server" || word == "--server" => {
            let (server, rest) = rest.split_first().context("zkcli: -server needs host:port after it")?;
            (Some(server.clone()), rest.to_vec())
        }
        _ => (None, rest),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut session = match &server {
            Some(server) => {
                let session = Session::open(server).await;
                session.with_context(|| format!("no ZooKeeper answers at {server}"))?
            }
            None => session(&config).await?.0,
        };
        let code =
            if words.is_empty() { talk(&mut session).await? } else { u8::from(!told(&mut session, &words).await) };
        session.close().await;
        Ok(ExitCode::from(code))
    })
}

/// Commands of standard input.
async fn talk(session: &mut Session) -> anyhow::Result<u8> {
    let (stdin, prompt) = (std::io::stdin(), std::io::stdin().is_terminal());
    let mut code = 0;
    loop {
        if prompt {
            print!("[zk] ");
            std::io::stdout().flush()?;
        }
        let mut line = String::new();
        if stdin.lock().read_line(&mut line)? == 0 {
            return Ok(code);
        }
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match words.first().map(String::as_str) {
            None => {}
            Some("quit" | "exit") => return Ok(code),
            Some("help") => print!("{USAGE}"),
            Some(_) if told(session, &words).await => {}
            Some(_) => code = 1,
        }
    }
}

/// Runs a command and tells what went wrong; whether nothing did.
async fn told(session: &mut Session, words: &[String]) -> bool {
    match command(session, words).await {
        Ok(()) => true,
        Err(error) => {
            eprintln!("basalt: zkcli: {error:#}");
            false
        }
    }
}

/// A command with its options and arguments.
struct Words<'a> {
    flags: Vec<&'a str>,
    version: Option<i32>,
    rest: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn of(words: &'a [String]) -> anyhow::Result<Words<'a>> {
        let mut parsed = Words { flags: Vec::new(), version: None, rest: Vec::new() };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-v" => {
                    let version = words.next().and_then(|version| version.parse().ok());
                    parsed.version = Some(version.context("-v needs a version after it")?);
                }
                flag if flag.len() == 2 && flag.starts_with('-') && parsed.rest.is_empty() => parsed.flags.push(flag),
                word => parsed.rest.push(word),
            }
        }
        Ok(parsed)
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn path(&self) -> anyhow::Result<&'a str> {
        let path = self.rest.first().copied().filter(|path| path.starts_with('/'));
        path.context("a path is needed, which begins with /")
    }
}

async fn command(session: &mut Session, words: &[String]) -> anyhow::Result<()> {
    let Some((name, rest)) = words.split_first() else { return Ok(()) };
    let words = Words::of(rest)?;
    let path = words.path()?;
    let missing = || format!("Node does not exist: {path}");
    match name.as_str() {
        "ls" if words.has("-R") => {
            for node in below(session, path).await? {
                println!("{node}");
            }
        }
        "ls" => {
            let children = session.children(path).await?.with_context(missing)?;
            println!("[{}]", children.join(", "));
            if words.has("-s") {
                print_stat(&session.stat(path).await?.with_context(missing)?);
            }
        }
        "get" => {
            let (data, stat) = session.node(path).await?.with_context(missing)?;
            println!("{}", to_string_binary(&data));
            if words.has("-s") {
                print_stat(&stat);
            }
        }
        "stat" => print_stat(&session.stat(path).await?.with_context(missing)?),
        "create" => {
            let data = words.rest.get(1).map(|data| to_bytes_binary(data)).unwrap_or_default();
            let made = session.create(path, &data, words.has("-e"), words.has("-s")).await?;
            println!("Created {made}");
        }
        "set" => {
            let data = to_bytes_binary(words.rest.get(1).context("set needs data behind the path")?);
            session.set_data(path, &data, words.version).await?;
        }
        "delete" => session.delete(path, words.version).await?,
        "deleteall" => {
            let nodes = below(session, path).await?;
            // The lowest first.
            for node in nodes.iter().rev() {
                session.delete(node, None).await?;
            }
        }
        other => bail!("{other} is no command; help lists them"),
    }
    Ok(())
}

/// A node and all below it, each behind the one above it.
async fn below(session: &mut Session, path: &str) -> anyhow::Result<Vec<String>> {
    let mut found = vec![path.to_owned()];
    let mut at = 0;
    while let Some(node) = found.get(at).cloned() {
        at += 1;
        let children = session.children(&node).await?;
        if children.is_none() && at == 1 {
            bail!("Node does not exist: {path}");
        }
        let parent = node.trim_end_matches('/');
        found.extend(children.unwrap_or_default().iter().map(|child| format!("{parent}/{child}")));
    }
    Ok(found)
}

fn print_stat(stat: &NodeStat) {
    println!("cZxid = {:#x}", stat.created_zxid);
    println!("ctime = {}", crate::log::iso_time(stat.created_ms));
    println!("mZxid = {:#x}", stat.modified_zxid);
    println!("mtime = {}", crate::log::iso_time(stat.modified_ms));
    println!("pZxid = {:#x}", stat.children_zxid);
    println!("cversion = {}", stat.children_version);
    println!("dataVersion = {}", stat.version);
    println!("aclVersion = {}", stat.acl_version);
    println!("ephemeralOwner = {:#x}", stat.ephemeral_owner);
    println!("dataLength = {}", stat.data_bytes);
    println!("numChildren = {}", stat.children);
}
