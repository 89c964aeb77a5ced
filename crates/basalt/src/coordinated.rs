//! Where this process's nodes are: in its own endpoint, which keeps those of users on the volume, or in an ensemble.

use crate::ports::Ports;
use anyhow::{Context, Result};
use assembly::znodes;
use base::Config;
use coordination::{HBaseZnodes, TreeHandle, ZnodeStore};
use fs::Volume;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two attempts to write what cannot be written.
const RETRY: Duration = Duration::from_secs(1);

/// Writes users' nodes as they change: all changes that came while the last were written go together.
async fn keep(tree: TreeHandle, volume: Arc<dyn Volume>, mut stopping: watch::Receiver<bool>) {
    let mut has_failed = false;
    loop {
        let to_keep = tokio::select! {
            to_keep = tree.next_to_keep() => Arc::new(to_keep),
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let (volume, writing) = (volume.clone(), to_keep.clone());
        let written = tokio::task::spawn_blocking(move || znodes::publish(&*volume, &writing.kept)).await;
        match written.map_err(|error| error.to_string()).and_then(|written| written.map_err(|error| error.to_string()))
        {
            Ok(()) => {
                if std::mem::take(&mut has_failed) {
                    tracing::info!("znodes that clients make are kept again");
                }
                tree.is_kept(&to_keep);
            }
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::error!(
                        "znodes that clients make cannot be kept, and are refused until they can: {error}; free space on the volume, or mend it"
                    );
                }
                tree.is_not_kept();
                tokio::select! {
                    () = tokio::time::sleep(RETRY) => {}
                    _ = stopping.wait_for(|stop| *stop) => return,
                }
            }
        }
    }
}

/// The endpoint or the session.
pub enum Coordination {
    /// The embedded endpoint, until it is told to stop.
    Embedded {
        /// Its nodes.
        tree: TreeHandle,
        /// Its connections.
        task: JoinHandle<()>,
        /// Keeps its users' nodes, once it may write.
        keeper: Option<JoinHandle<()>>,
    },
    /// A session with an ensemble.
    #[cfg(feature = "zookeeper")]
    Ensemble(Arc<zookeeper::Ensemble>),
}

impl Coordination {
    /// Serves the endpoint that the ports opened, or opens a session where they opened none.
    ///
    /// # Errors
    /// Nodes that were kept and cannot be read; no session.
    pub async fn start(
        config: &Config,
        ports: &mut Ports,
        volume: &Arc<dyn Volume>,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<Coordination> {
        #[cfg(feature = "zookeeper")]
        if let Some(connect) = crate::quorum::connect_string(config) {
            return Ok(Coordination::Ensemble(crate::quorum::connect(config, connect).await?));
        }
        let _ = config;
        let endpoint = ports.endpoint.take().context("the ZooKeeper endpoint was started before")?;
        let tree = endpoint.tree();
        let volume = volume.clone();
        let kept = tokio::task::spawn_blocking(move || znodes::load(&*volume))
            .await
            .context("reading znodes failed inside")??;
        tree.restore(&kept)?;
        let stop = async move { drop(stopping.wait_for(|stop| *stop).await) };
        Ok(Coordination::Embedded { tree, task: tokio::spawn(endpoint.run(stop)), keeper: None })
    }

    /// From now on users' nodes are kept on the volume, which the node has made its own. Clients that have changed some until then are answered
    /// after that.
    pub fn keep_on(&mut self, volume: Arc<dyn Volume>, stopping: watch::Receiver<bool>) {
        match self {
            Coordination::Embedded { tree, keeper, .. } => {
                *keeper = Some(tokio::spawn(keep(tree.clone(), volume, stopping)));
            }
            #[cfg(feature = "zookeeper")]
            Coordination::Ensemble(_) => {}
        }
    }

    /// Where the nodes are written.
    pub fn store(&self) -> Arc<dyn ZnodeStore> {
        match self {
            Coordination::Embedded { tree, .. } => Arc::new(tree.clone()),
            #[cfg(feature = "zookeeper")]
            Coordination::Ensemble(ensemble) => crate::quorum::store(ensemble),
        }
    }

    /// Waits until no other master is active. From then on the end of the session is told to `on_lost`.
    #[allow(unused_variables, reason = "an endpoint of one's own has no other master")]
    pub async fn take_over(
        &self,
        znodes: &HBaseZnodes,
        ports: &Ports,
        on_lost: impl FnOnce(String) + Send + 'static,
    ) -> Result<()> {
        match self {
            Coordination::Embedded { .. } => Ok(()),
            #[cfg(feature = "zookeeper")]
            Coordination::Ensemble(ensemble) => {
                let lost = ensemble.lost();
                tokio::spawn(async move { on_lost(format!("its ZooKeeper session is over: {}", lost.await)) });
                crate::quorum::become_active_master(ensemble, znodes, &ports.master_name, ports.info_port()).await
            }
        }
    }

    /// Waits, not for long, until the last that was written is there.
    pub async fn stop(self, at_most: Duration) {
        match self {
            Coordination::Embedded { task, keeper, .. } => {
                let ended = async {
                    // The connections are gone; nobody hears of what is written last, but it is whole.
                    let _ended = task.await;
                    if let Some(keeper) = keeper {
                        let _ended = keeper.await;
                    }
                };
                drop(tokio::time::timeout(at_most, ended).await);
            }
            #[cfg(feature = "zookeeper")]
            Coordination::Ensemble(ensemble) => drop(tokio::time::timeout(at_most, ensemble.written()).await),
        }
    }
}
