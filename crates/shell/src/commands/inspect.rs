//! What a cluster is made of: its nodes in ZooKeeper, one region. Part of the group `tools`. Follows: `ZKDump`, `MutableRegionInfo#toString`.

use std::time::Duration;

use bytes::Bytes;
use client::Registry;
use client::zookeeper::{self, Session};
use proto::{Message, magic, pb};

use super::{Arguments, Command, command, ddl};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// These commands.
pub(super) const COMMANDS: &[Command] =
    &[command("tools", "regioninfo", 1..=1, region_info), command("tools", "zk_dump", 0..=0, zk_dump)];

/// How long a member of the quorum has for its statistics.
const STATISTICS_PATIENCE: Duration = Duration::from_secs(1);

fn region_info(shell: &mut Shell, arguments: &Arguments) -> Result {
    let region = ddl::unescaped(&arguments.bytes(0));
    let info = shell.session.wait(async { shell.session.admin().region(&region).await })?.region;
    shell.session.output.line(&info.description())?;
    Ok(Value::Nil)
}

fn zk_dump(shell: &mut Shell, _: &Arguments) -> Result {
    let Registry::ZooKeeper { quorum, znode_parent } = shell.session.connection().options().registry.clone() else {
        return Err(Flow::argument("this connection asks servers where things are, and no ZooKeeper"));
    };
    let failed = |error: std::io::Error| client::Error::Registry { registry: quorum.join(","), why: error.to_string() };
    let dump = shell.session.wait(async { dump(&quorum, &znode_parent).await.map_err(failed) })?;
    shell.session.output.line(&dump)?;
    Ok(Value::Nil)
}

/// A session with the first member that answers.
async fn session(quorum: &[String]) -> std::io::Result<Session> {
    let mut why = std::io::Error::other("no member of the quorum is known");
    for member in quorum {
        match Session::open(member).await {
            Ok(session) => return Ok(session),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// What HBase's ZKDump writes.
async fn dump(quorum: &[String], parent: &str) -> std::io::Result<String> {
    let mut session = session(quorum).await?;
    let mut out = format!("HBase is rooted at {parent}\nActive master address: ");
    out.push_str(&format!("\n {}", server_in::<pb::Master>(&mut session, &format!("{parent}/master")).await?));
    out.push_str("\nBackup master addresses:");
    for child in session.children(&format!("{parent}/backup-masters")).await?.unwrap_or_default() {
        out.push_str(&format!("\n {child}"));
    }
    out.push_str("\nRegion server holding hbase:meta:");
    let meta = format!("{parent}/meta-region-server");
    out.push_str(&format!("\n {}", server_in::<pb::MetaRegionServer>(&mut session, &meta).await?));
    for replica in 1.. {
        let node = format!("{meta}-{replica}");
        if session.stat(&node).await?.is_none() {
            break;
        }
        let server = server_in::<pb::MetaRegionServer>(&mut session, &node).await?;
        out.push_str(&format!("\n replica{replica}: {server}"));
    }
    out.push_str("\nRegion servers:");
    for child in session.children(&format!("{parent}/rs")).await?.unwrap_or_default() {
        out.push_str(&format!("\n {child}"));
    }
    replication(&mut session, &format!("{parent}/replication"), &mut out).await?;
    session.close().await;
    out.push_str("\nQuorum Server Statistics:");
    for member in quorum {
        out.push_str(&format!("\n {member}"));
        match zookeeper::four_letter_word(member, "stat", STATISTICS_PATIENCE).await {
            Ok(answer) => answer.lines().for_each(|line| out.push_str(&format!("\n  {line}"))),
            Err(error) => out.push_str(&format!("\n  ERROR: {error}")),
        }
    }
    Ok(out)
}

/// Messages that name a server.
trait Names: Message + Default {
    fn server(&self) -> &pb::ServerName;
}

impl Names for pb::Master {
    fn server(&self) -> &pb::ServerName {
        &self.master
    }
}

impl Names for pb::MetaRegionServer {
    fn server(&self) -> &pb::ServerName {
        &self.server
    }
}

/// The server that a node names; `null` where there is none, as Java prints it.
async fn server_in<M: Names>(session: &mut Session, node: &str) -> std::io::Result<String> {
    let data: Option<Bytes> = session.data(node).await?;
    let name = data.and_then(|data| {
        let message = M::decode(magic::strip(&data)?).ok()?;
        convert::from_proto::server_name(message.server()).ok()
    });
    Ok(name.map_or_else(|| "null".to_owned(), |name| name.to_string()))
}

/// The nodes of replication: peers with their states, and what else is there.
async fn replication(session: &mut Session, node: &str, out: &mut String) -> std::io::Result<()> {
    let Some(children) = session.children(node).await? else { return Ok(()) };
    out.push_str(&format!("\n{node}: "));
    for child in children {
        let below = format!("{node}/{child}");
        out.push_str(&format!("\n{below}: "));
        if child != "peers" {
            continue;
        }
        for peer in session.children(&below).await?.unwrap_or_default() {
            let peer = format!("{below}/{peer}");
            let config = session.data(&peer).await?;
            let config = config.and_then(|data| pb::ReplicationPeer::decode(magic::strip(&data)?).ok());
            let Some(config) = config else { continue };
            out.push_str(&format!("\n{peer}: {}", config.clusterkey()));
            let state = format!("{peer}/peer-state");
            let data = session.data(&state).await?;
            if let Some(found) = data.and_then(|data| pb::ReplicationState::decode(magic::strip(&data)?).ok()) {
                out.push_str(&format!("\n{state}: {}", found.state().as_str_name()));
            }
        }
    }
    Ok(())
}
