//! Sessions of `basalt-sql` as a neighbour: each is a psql that asks the same queries of all rows again and again.

use std::process::Stdio;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::noise::PAUSE_AFTER_ERROR;

/// Names the program; without it there is no such neighbour.
pub(super) const BINARY: &str = "BASALT_SQL_BINARY";
const SESSIONS: usize = 8;

/// Counted and grouped in the region servers, filtered, ordered, read and computed in `basalt-sql`, and joined.
const QUERIES: &str = "
select count(*), count(q), max(k) from noise_rows;
select count(*) from noise_rows where q like 'b%';
select k from noise_rows order by q desc, k limit 10;
select length(q) + length(k), count(*) from noise_rows group by 1;
select count(*) from noise_rows a join noise_rows b on a.k = b.k where a.k < '000000010000';
";

/// Starts it for the cluster and `table`, whose sessions go on with `tasks`.
pub(super) async fn start(zookeeper: &str, table: &str, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let binary = std::env::var_os(BINARY).with_context(|| format!("{BINARY} is to name basalt-sql"))?;
    let mut server = Command::new(binary);
    server.args(["--cluster", zookeeper, "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.kill_on_drop(true).spawn().context("cannot start basalt-sql")?;
    let said = server.stdout.take().context("its output is piped")?;
    let line = BufReader::new(said).lines().next_line().await?.unwrap_or_default();
    let (_, port) = line.trim().rsplit_once(':').with_context(|| format!("basalt-sql said {line:?}"))?;
    let view = format!("create view noise_rows (k text primary key, \"f\".\"q\" text) with (hbase_table = '{table}');");
    let made = psql(port, &["-c", &view])?.wait().await?;
    anyhow::ensure!(made.success(), "psql cannot make a view: {made}");
    for _ in 0..SESSIONS {
        let port = port.to_owned();
        tasks.spawn(async move {
            loop {
                let _why = session(&port).await;
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        });
    }
    tasks.spawn(async move {
        let _ended = server.wait().await;
    });
    Ok(())
}

/// Asks the queries again and again, until one fails: psql takes them from a pipe, which holds few.
async fn session(port: &str) -> anyhow::Result<()> {
    let mut session = psql(port, &["-f", "-"])?;
    let mut queries = session.stdin.take().context("its input is piped")?;
    loop {
        queries.write_all(QUERIES.as_bytes()).await?;
    }
}

/// psql, with what else it is told; it ends with the first error.
fn psql(port: &str, options: &[&str]) -> anyhow::Result<Child> {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", port, "-U", "noise", "-d", "basalt"]);
    psql.args(["-o", "/dev/null"]).args(options).stdout(Stdio::null()).stdin(Stdio::piped());
    psql.kill_on_drop(true).spawn().context("cannot start psql")
}
