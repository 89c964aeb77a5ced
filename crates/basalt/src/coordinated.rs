//! Where this process's nodes are: in its own endpoint, or in an ensemble.

use crate::ports::Ports;
use anyhow::{Context, Result};
use base::Config;
use coordination::{HBaseZnodes, ZnodeStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The endpoint or the session.
pub enum Coordination {
    /// The embedded endpoint, until it is told to stop.
    Embedded {
        /// Its nodes.
        tree: coordination::TreeHandle,
        /// Its connections.
        task: JoinHandle<()>,
    },
    /// A session with an ensemble.
    #[cfg(feature = "zookeeper")]
    Ensemble(Arc<zookeeper::Ensemble>),
}

impl Coordination {
    /// Serves the endpoint that the ports opened, or opens a session where they opened none.
    pub async fn start(
        config: &Config,
        ports: &mut Ports,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<Coordination> {
        #[cfg(feature = "zookeeper")]
        if let Some(connect) = crate::quorum::connect_string(config) {
            return Ok(Coordination::Ensemble(crate::quorum::connect(config, connect).await?));
        }
        let _ = config;
        let endpoint = ports.endpoint.take().context("the ZooKeeper endpoint was started before")?;
        let tree = endpoint.tree();
        let stop = async move { drop(stopping.wait_for(|stop| *stop).await) };
        Ok(Coordination::Embedded { tree, task: tokio::spawn(endpoint.run(stop)) })
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
            Coordination::Embedded { task, .. } => drop(tokio::time::timeout(at_most, task).await),
            #[cfg(feature = "zookeeper")]
            Coordination::Ensemble(ensemble) => drop(tokio::time::timeout(at_most, ensemble.written()).await),
        }
    }
}
