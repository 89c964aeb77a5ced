//! Which master is the active one. Follows: `ActiveMasterManager`.

use bytes::Bytes;
use coordination::hbase_znodes::read_master;
use coordination::{Claim, Coordinator, HBaseZnodes, SessionOver};
use model::ServerName;

/// Why a master cannot be one.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// The session is over.
    #[error(transparent)]
    Over(#[from] SessionOver),
    /// The node is somebody else's.
    #[error("the node {0} is not HBase's: look at zookeeper.znode.parent")]
    NotHBase(String),
    /// Another process has the name.
    #[error(
        "the node {0} is another process's: do two masters have the same host name and port? Change hbase.master.port of one"
    )]
    Taken(String),
}

/// Waits until some master is active, as one that is started as a backup does: it never is the first. Follows: `HMaster#run`.
///
/// # Errors
/// The session is over.
pub async fn wait_for_active(
    coordinator: &dyn Coordinator,
    znodes: &HBaseZnodes,
    master: &ServerName,
) -> Result<(), SessionOver> {
    let (path, _) = znodes.master_node(master, None);
    if coordinator.value(&path).await?.is_none() {
        tracing::info!("{master} was started in backup mode and waits until another master is active");
        coordinator.value_other_than(&path, None).await?;
    }
    Ok(())
}

/// Waits until this process is the active master, known as a backup meanwhile. A node that an earlier process at the same address left is
/// removed, as HBase does. The parents of the nodes are there. Answers path and value of its node.
///
/// # Errors
/// [`ElectionError`].
pub async fn become_active(
    coordinator: &dyn Coordinator,
    znodes: &HBaseZnodes,
    master: &ServerName,
    info_port: Option<u16>,
) -> Result<(String, Bytes), ElectionError> {
    let (path, value) = znodes.master_node(master, info_port);
    let mut backup = None;
    loop {
        let Claim::Taken(found) = coordinator.claim(&path, &value).await? else { break };
        let Some(active) = read_master(&found) else { return Err(ElectionError::NotHBase(path)) };
        if active.address() == master.address() {
            tracing::info!("the node of the master that was at {} before is removed", active.address());
            coordinator.remove(&path).await?;
            continue;
        }
        if backup.is_none() {
            let (own, value) = znodes.backup_master_node(master, info_port);
            if let Claim::Taken(_) = coordinator.claim(&own, &value).await? {
                return Err(ElectionError::Taken(own));
            }
            tracing::info!("{active} is the active master; {master} waits as a backup master");
            backup = Some(own);
        }
        coordinator.value_other_than(&path, Some(found)).await?;
    }
    if let Some(own) = backup {
        coordinator.remove(&own).await?;
    }
    tracing::info!("{master} is the active master");
    Ok((path, value))
}
