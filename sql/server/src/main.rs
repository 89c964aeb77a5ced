//! `basalt-sql`: PostgreSQL's clients on HBase's tables.
//!
//! DataFusion plans, `datafusion-postgres` and `pgwire` speak PostgreSQL's protocol, [`client`] reaches the cluster; stateless, any number of
//! them beside a cluster of Basalt or Apache HBase.
//!
//! Always true:
//!  1. What the servers are said to do in EXPLAIN they do exactly: predicates that they cannot do bit for bit stay with the planner.
//!  2. Every error has PostgreSQL's SQLSTATE; one statement's error leaves other sessions alone.
//!  3. No statement reads or writes files of this machine.
//!  4. Without users only this machine may connect.
//!  5. Queries run on threads of their own: connections are served, and can end their queries, whatever these compute.
//!
//! Must not know: how a server is made, regions' insides, files.

mod activity;
mod aggregate;
mod answer;
mod arrow_values;
mod auth;
mod below;
mod binary;
mod catalog;
mod cell_filter;
mod comparison;
mod copy;
mod copy_in;
mod current_setting;
mod ddl;
mod decode;
mod distinct;
mod dynamic;
mod error;
mod expression;
mod histogram;
mod hook;
mod information_schema;
mod interval;
mod join_order;
mod key_ends;
mod mapping;
mod parameters;
mod pg_catalog;
mod phoenix;
mod point;
mod predicate;
mod progress;
mod rewriting;
mod row_comparison;
mod running;
mod scan;
mod sequence;
mod server;
mod service;
mod session;
mod table;
mod tls;
mod top_rows;
mod write;

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::auth::Users;
use crate::catalog::Catalog;
use crate::running::Runner;
use crate::server::Settings;

/// SQL for PostgreSQL's clients on the tables of a cluster of Basalt or Apache HBase.
#[derive(Parser)]
#[command(name = "basalt-sql", version)]
struct Arguments {
    /// The cluster: host:port,...[/base-node] of its ZooKeeper, or hbase+rpc://host:port,... of its servers.
    #[arg(long, env = "BASALT_CLUSTER", default_value = "localhost:2181", global = true)]
    cluster: String,
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:5432", global = true)]
    listen: SocketAddr,
    /// Users with what their passwords are checked with. Without this file, only this machine may connect, with any name.
    #[arg(long, default_value = "basalt-sql.users", global = true)]
    users: PathBuf,
    /// Memory that queries may hold before they spill to disk, in MiB.
    #[arg(long, default_value_t = 1024, global = true)]
    memory_mib: usize,
    /// Regions that one scan reads at a time.
    #[arg(long, default_value_t = 4, global = true)]
    scan_concurrency: usize,
    /// Niceness of the threads of queries, so that region servers on the same machine answer sooner; 0: as other processes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=19), global = true)]
    nice: u8,
    /// Connections at a time.
    #[arg(long, default_value_t = 500, global = true)]
    connections: usize,
    /// The server's certificate with those that signed it, in PEM: connections may use TLS.
    #[arg(long, requires = "tls_key", global = true)]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, requires = "tls_cert", global = true)]
    tls_key: Option<PathBuf>,
    /// Refuses connections without TLS.
    #[arg(long, requires = "tls_cert", global = true)]
    tls_required: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serves (what happens without a command, too).
    Serve,
    /// Users.
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
}

#[derive(Subcommand)]
enum UserCommand {
    /// Adds a user or changes its password, which is read from standard input.
    Add {
        /// The user's name.
        name: String,
    },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .init();
    match &arguments.command {
        None | Some(Command::Serve) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let nice = i32::from(arguments.nice);
            let mut queries = tokio::runtime::Builder::new_multi_thread();
            queries.thread_name("query").on_thread_start(move || give_way(nice));
            let queries = queries.enable_all().build()?;
            let ended = runtime.block_on(serve(&arguments, Runner::new(queries.handle().clone())));
            // A query that is under way is nobody's any more.
            queries.shutdown_background();
            runtime.shutdown_background();
            ended
        }
        Some(Command::User { command: UserCommand::Add { name } }) => add_user(&arguments, name),
    }
}

/// Linux has a niceness of each thread; elsewhere it is the process's, whose other threads are not to wait.
fn give_way(nice: i32) {
    if cfg!(target_os = "linux") {
        let thread_itself = None;
        // Whoever runs it may have made it nicer already, and it may not go back.
        let _unchanged = rustix::process::setpriority_process(thread_itself, nice);
    }
}

#[allow(clippy::disallowed_methods, reason = "the users file is this program's own")]
fn read_users(arguments: &Arguments) -> anyhow::Result<Option<Users>> {
    match std::fs::read_to_string(&arguments.users) {
        Ok(text) => Users::parse(&text).with_context(|| arguments.users.display().to_string()).map(Some),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| arguments.users.display().to_string()),
    }
}

#[allow(clippy::disallowed_methods, reason = "the users file is this program's own")]
fn add_user(arguments: &Arguments, name: &str) -> anyhow::Result<()> {
    eprint!("Password for {name}: ");
    std::io::stderr().flush()?;
    let mut password = String::new();
    std::io::stdin().lock().read_line(&mut password)?;
    let password = password.trim_end_matches(['\r', '\n']);
    anyhow::ensure!(!password.is_empty(), "an empty password is none: nothing was changed");
    let mut users = read_users(arguments)?.unwrap_or_default();
    users.add(name, password)?;
    let path = &arguments.users;
    let aside = path.with_extension("users.new");
    let write = || -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&aside)?;
        file.write_all(users.to_text().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, path)
    };
    write().with_context(|| path.display().to_string())
}

async fn serve(arguments: &Arguments, runner: Runner) -> anyhow::Result<()> {
    let settings = Settings {
        memory_bytes: arguments.memory_mib << 20,
        scan_concurrency: arguments.scan_concurrency.max(1),
        connections: arguments.connections.max(1),
        users: read_users(arguments)?.map(Arc::new),
        tls: match (&arguments.tls_cert, &arguments.tls_key) {
            (Some(certificate), Some(key)) => Some(Arc::new(tls::Certificates::read(certificate, key)?)),
            _ => None,
        },
        tls_required: arguments.tls_required,
    };
    let options = client::Options::parse(&arguments.cluster).with_context(|| arguments.cluster.clone())?;
    let catalog = Catalog::new(client::Connection::open(options));
    let listener = tokio::net::TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    // Harnesses read this line.
    println!("basalt-sql listens on {}", listener.local_addr()?);
    tokio::select! {
        ended = server::serve(listener, catalog, settings, runner) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}
