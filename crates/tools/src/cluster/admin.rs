//! `basalt admin`: servers are restarted one after the other, or emptied; tables come to other disks, and disks are emptied. Follows: `rolling-restart.sh`, `graceful_stop.sh`, `draining_servers.rb`.

use std::process::ExitCode;
use std::task::Poll;
use std::time::Instant;

use anyhow::{Context, bail};
use base::Config;
use client::Connection;
use model::ServerName;

use super::move_to_tier::Move;
use super::region_mover::{Moved, Mover, address, is_at};
use super::{balancer_note, drain_volume};
use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster};

const USAGE: &str = "\
Restarts the region servers of a cluster one after the other, or empties some; moves a table's files to another tier of disks,
or all files off a disk.

Usage: basalt admin rolling-restart [OPTIONS] [HOST[:PORT]]...
       basalt admin draining add|remove|list [HOST[:PORT]]...
       basalt admin move-to-tier [--wait] TABLE [FAMILY] TIER
       basalt admin drain-volume [--wait] DIRECTORY

rolling-restart: all region servers, or those that are named. Each is stopped; whatever keeps it running (systemd) is to start it again, or the
command is to do both. The next one's turn comes when it is there again.

    --graceful         moves the regions of each to the others before, and back when it is there again; the balancer is off meanwhile. Should this be
                       killed (kill -9), the next run switches it on again when it is through, and basalt doctor says so
    --command COMMAND  runs this by sh in place of stopping a server, with {host} and {port} replaced: ssh {host} systemctl restart basalt
    --maxthreads N     regions that move at the same time; 1
    --noack            does not look whether a region can be read before and after its move

draining: a server that is added gets no regions any more, and those that it has are moved to others; removed, it gets some again.

move-to-tier: new files of the table, or of the family, go to the tier of basalt.volumes (STORAGE_POLICY), and a major compaction of every region
writes those anew that there are. Begun again, it goes on.

drain-volume: what lies on the volume of that directory is moved to the others of its tier, or to the root directory's disk: tables' files, also those of
disabled tables, archives, logs. basalt.volumes names it with :drain behind it, and the servers have read that (update_config in the shell).

    --wait             returns when all is done, and says how far it is meanwhile

Examples:
  basalt admin rolling-restart --graceful --maxthreads 4 --command 'ssh {host} systemctl restart basalt'
  basalt admin rolling-restart --graceful host1 host2
  basalt admin draining add host3:16020
  basalt admin move-to-tier --wait logs cold
  basalt admin drain-volume --wait /data/2
";

const KNOWN: &[Known] =
    &[flag("", "graceful"), flag("", "noack"), flag("", "wait"), valued("", "command"), valued("", "maxthreads")];

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or a server does not come back.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let config = &config;
    let parsed = arguments::parse("admin", KNOWN, &rest)?;
    let threads = parsed.number("maxthreads")?.unwrap_or(1).max(1);
    let (ack, graceful) = (!parsed.has("noack"), parsed.has("graceful"));
    let command = parsed.value("command").map(str::to_owned);
    let addresses = |texts: &[String]| -> anyhow::Result<Vec<(String, u16)>> {
        texts.iter().map(|text| address(config, text)).collect()
    };
    match parsed.rest.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rolling-restart", ..] => {
            let named = addresses(&parsed.rest[1..])?;
            on_cluster(config, |connection| async move {
                let restart = Restart { mover: Mover::new(connection, config, threads, ack), command, graceful };
                restart.all(&named).await
            })?;
        }
        ["draining", what @ ("add" | "remove" | "list"), ..] => {
            let (what, named) = ((*what).to_owned(), addresses(&parsed.rest[2..])?);
            on_cluster(config, |connection| async move { draining(&connection, &what, &named).await })?;
        }
        ["move-to-tier", ..] => {
            let wanted = Move::parse(config, &parsed.rest[1..], parsed.has("wait"))?;
            on_cluster(config, |connection| async move { wanted.run(&connection).await })?;
        }
        ["drain-volume", directory] => {
            let (directory, waits) = ((*directory).to_owned(), parsed.has("wait"));
            on_cluster(config, |connection| async move { drain_volume::run(&connection, &directory, waits).await })?;
        }
        _ => bail!(
            "admin: the command is rolling-restart, move-to-tier, drain-volume, or draining add, remove or list; see basalt admin --help"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

async fn draining(connection: &Connection, what: &str, named: &[(String, u16)]) -> anyhow::Result<()> {
    let admin = connection.admin();
    if what == "list" {
        admin.decommissioned_servers().await?.iter().for_each(|server| println!("{server}"));
        return Ok(());
    }
    if named.is_empty() {
        bail!("admin draining {what}: name at least one server, HOST[:PORT]");
    }
    let servers = admin.servers().await?;
    for at in named {
        let found = servers.iter().find(|server| is_at(server, at));
        let server = found.with_context(|| format!("no region server is at {}:{}", at.0, at.1))?;
        match what {
            "add" => admin.decommission_servers(std::slice::from_ref(server), true).await?,
            _ => admin.recommission_server(server, &[]).await?,
        }
        println!("{server} {}", if what == "add" { "gets no regions any more" } else { "gets regions again" });
    }
    Ok(())
}

/// How servers are restarted.
struct Restart {
    mover: Mover,
    command: Option<String>,
    graceful: bool,
}

impl Restart {
    /// Those that are named, or all, one after the other. The balancer is as it was before when all are through, or one is not.
    async fn all(&self, named: &[(String, u16)]) -> anyhow::Result<()> {
        let admin = self.mover.connection.admin();
        let mut servers = admin.servers().await?;
        if let Some(missing) = named.iter().find(|at| !servers.iter().any(|server| is_at(server, at))) {
            bail!("no region server is at {}:{}", missing.0, missing.1);
        }
        servers.retain(|server| named.is_empty() || named.iter().any(|at| is_at(server, at)));
        let balanced = self.graceful && self.switch_balancer_off().await?;
        let restarted = async {
            for server in &servers {
                self.one(server).await.with_context(|| format!("{server} is not restarted"))?;
            }
            Ok(())
        };
        let mut ended = tokio::select! {
            biased;
            signal = told_to_end() => Err(anyhow::anyhow!("ended by {signal}; what was moved away is not brought back")),
            ended = restarted => ended,
        };
        if balanced {
            ended = ended.and(self.switch_balancer_on().await);
        }
        ended
    }

    /// It would bring regions to a server whose turn is to come, and away from one that is being filled. Whether it is to be on again afterwards: it
    /// was, or had been when an earlier run was killed.
    async fn switch_balancer_off(&self) -> anyhow::Result<bool> {
        let (admin, options) = (self.mover.connection.admin(), self.mover.connection.options());
        let left = balancer_note::left(options).await.unwrap_or_else(|error| {
            eprintln!("cannot read from ZooKeeper whether an earlier rolling restart left the balancer off; after this one, look (balancer_enabled in basalt shell): {error:#}");
            None
        });
        if let Some(who) = &left {
            println!(
                "a rolling restart before ({who}) was ended and left the balancer off: it is switched on when this one is through"
            );
        }
        let balanced = left.is_some() || admin.is_balancer_enabled().await?;
        if balanced && let Err(error) = balancer_note::leave(options).await {
            eprintln!(
                "if this is killed, the balancer stays off until somebody switches it on (balance_switch true): {error:#}"
            );
        }
        admin.set_balancer(false, true).await?;
        Ok(balanced)
    }

    async fn switch_balancer_on(&self) -> anyhow::Result<()> {
        let connection = &self.mover.connection;
        connection.admin().set_balancer(true, true).await.context("the balancer is off: balance_switch true")?;
        if let Err(error) = balancer_note::take_back(connection.options()).await {
            eprintln!(
                "the balancer is on again, but the znode that says it is off is still there; the next rolling restart removes it: {error:#}"
            );
        }
        Ok(())
    }

    async fn one(&self, server: &ServerName) -> anyhow::Result<()> {
        let (began, at, moved) = (Instant::now(), (server.host.to_string(), server.port), Moved::default());
        if self.graceful {
            let targets = self.mover.targets(&at, None, None).await?;
            self.mover.unload(&at, &targets, &[], &moved).await?;
        }
        match &self.command {
            Some(command) => run_command(command, server).await?,
            None => self.mover.connection.admin().stop_server(server, "a rolling restart").await?,
        }
        let now = self.mover.wait_for_server(&at, Some(server)).await?;
        let regions = moved.lock().clone();
        let count = regions.len();
        if self.graceful {
            self.mover.load(&at, regions, &Moved::default()).await?;
        }
        println!(
            "{server} was restarted as {now}; {count} regions moved away and back; {:.1} s",
            began.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

/// Ends with the name of a signal that is to end this process.
async fn told_to_end() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds =
        [(SignalKind::interrupt(), "SIGINT"), (SignalKind::terminate(), "SIGTERM"), (SignalKind::hangup(), "SIGHUP")];
    let mut signals: Vec<_> = kinds.into_iter().filter_map(|(kind, name)| Some((signal(kind).ok()?, name))).collect();
    std::future::poll_fn(|context| {
        for (signal, name) in &mut signals {
            if signal.poll_recv(context).is_ready() {
                return Poll::Ready(*name);
            }
        }
        Poll::Pending
    })
    .await
}

async fn run_command(command: &str, server: &ServerName) -> anyhow::Result<()> {
    let command = command.replace("{host}", &server.host).replace("{port}", &server.port.to_string());
    let shown = command.clone();
    let status = tokio::task::spawn_blocking(move || std::process::Command::new("sh").arg("-c").arg(&command).status());
    let status = status.await.context("the command ended by itself")?.context("sh cannot be run")?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}
