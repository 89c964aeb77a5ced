//! That a tool has switched the balancer off and means to switch it on again: a znode says so while it is off, for a tool may be killed.
//!
//! HBase's scripts remember the switch in the shell that runs them, and lose it with that.

use anyhow::Context;
use client::Options;
use std::io::ErrorKind;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::session_of;

/// Below HBase's base node.
const NODE: &str = "basalt-rolling-restart";
/// Looking for it is no reason to wait for an ensemble that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Says who has switched it off, if that is not said yet.
///
/// # Errors
/// ZooKeeper's, or that none is named by the configuration.
pub(super) async fn leave(options: &Options) -> anyhow::Result<()> {
    let (mut session, parent) = session_of(options).await?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let who = format!("process {} on {host}, begun {} s after 1970", std::process::id(), now.as_secs());
    let made = session.create(&format!("{parent}/{NODE}"), who.as_bytes(), false, false).await;
    session.close().await;
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).context("cannot remember in ZooKeeper that the balancer was on")
        }
        _ => Ok(()),
    }
}

/// Who has switched it off and has not switched it on again.
///
/// # Errors
/// As of [`leave`].
pub(super) async fn left(options: &Options) -> anyhow::Result<Option<String>> {
    let (mut session, parent) = session_of(options).await?;
    let node = session.node(&format!("{parent}/{NODE}")).await;
    session.close().await;
    Ok(node?.map(|(who, _)| String::from_utf8_lossy(&who).into_owned()))
}

/// It is on again.
///
/// # Errors
/// As of [`leave`].
pub(super) async fn take_back(options: &Options) -> anyhow::Result<()> {
    let (mut session, parent) = session_of(options).await?;
    let gone = session.delete(&format!("{parent}/{NODE}"), None).await;
    session.close().await;
    match gone {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).context("cannot forget in ZooKeeper that the balancer was on")
        }
        _ => Ok(()),
    }
}

/// For whoever looks at a cluster from outside: who has switched the balancer off and not on again; nothing where ZooKeeper does not answer soon.
pub fn balancer_left_off(config: &base::Config) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let options = Options::from_config(config);
    runtime.block_on(async { tokio::time::timeout(PATIENCE, left(&options)).await.ok()?.ok()? })
}
