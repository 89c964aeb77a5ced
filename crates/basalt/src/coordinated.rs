//! Where this process's nodes are: in its own endpoint, which keeps those of users in the root directory or in a directory of their own, or in
//! an ensemble.

use crate::ports::Ports;
use anyhow::{Context, Result};
use assembly::znodes;
use base::Config;
use coordination::settings::DATA_DIRECTORY;
use coordination::{HBaseZnodes, Kept, TreeHandle, ZnodeStore};
use fs::{FilePath, LocalVolume, Volume};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two attempts to write what cannot be written.
const RETRY: Duration = Duration::from_secs(1);

/// The file of users' nodes.
#[derive(Clone)]
struct Place {
    volume: Arc<dyn Volume>,
    file: FilePath,
    /// What came from the root directory and is not here yet.
    moving: Option<Arc<Kept>>,
}

impl Place {
    /// Finds it, with what it has.
    fn find(directory: Option<PathBuf>, root: Arc<dyn Volume>) -> Result<(Place, Kept)> {
        let Some(directory) = directory else {
            let kept = znodes::load(&*root)?;
            return Ok((Place { volume: root, file: znodes::file(), moving: None }, kept));
        };
        let said = || format!("{} = {}", DATA_DIRECTORY.key, directory.display());
        let volume = LocalVolume::open(&directory).with_context(said)?;
        // Held until the process is gone, as the root directory's.
        std::mem::forget(volume.lock().with_context(said)?);
        let file = znodes::own_file();
        let (kept, moving) = match znodes::load_from(&volume, &file).with_context(said)? {
            Some(kept) => (kept, None),
            None => {
                let kept = znodes::load_from(&*root, &znodes::file())?;
                (kept.clone().unwrap_or_default(), kept.map(Arc::new))
            }
        };
        Ok((Place { volume: Arc::new(volume), file, moving }, kept))
    }

    /// Makes the nodes durable.
    fn publish(&self, kept: &Kept) -> fs::Result<()> {
        znodes::publish_at(&*self.volume, &self.file, kept)
    }

    /// Moves here what was in the root directory.
    fn finish_moving(&mut self, root: &dyn Volume) -> fs::Result<()> {
        if let Some(kept) = &self.moving {
            self.publish(kept)?;
            root.remove_file(&znodes::file())?;
            root.sync_dir(&znodes::file().parent())?;
            self.moving = None;
        }
        Ok(())
    }
}

/// Writes users' nodes as they change: all changes that came while the last were written go together.
async fn keep(tree: TreeHandle, place: Place, mut stopping: watch::Receiver<bool>) {
    let mut has_failed = false;
    loop {
        let to_keep = tokio::select! {
            to_keep = tree.next_to_keep() => Arc::new(to_keep),
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let (place, writing) = (place.clone(), to_keep.clone());
        let written = tokio::task::spawn_blocking(move || place.publish(&writing.kept)).await;
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

/// Where an endpoint keeps its users' nodes.
pub struct KeptNodes(Place);

/// The endpoint or the session.
pub enum Coordination {
    /// The embedded endpoint, until it is told to stop.
    Embedded {
        /// Its nodes.
        tree: TreeHandle,
        /// Where its users' nodes are kept.
        place: KeptNodes,
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
            let ensemble = crate::quorum::connect(config, connect).await?;
            ensemble.register_metrics(ports.pages.registry());
            return Ok(Coordination::Ensemble(ensemble));
        }
        let endpoint = ports.endpoint.take().context("the ZooKeeper endpoint was started before")?;
        let tree = endpoint.tree();
        let directory = config.text(DATA_DIRECTORY.key).map(str::trim).filter(|text| !text.is_empty());
        let directory = directory.map(|text| text.strip_prefix("file://").unwrap_or(text));
        let directory = directory.map(std::path::absolute).transpose().context(DATA_DIRECTORY.key)?;
        let root = volume.clone();
        let (place, kept) = tokio::task::spawn_blocking(move || Place::find(directory, root))
            .await
            .context("reading znodes failed inside")??;
        tree.restore(&kept)?;
        let place = KeptNodes(place);
        let stop = async move { drop(stopping.wait_for(|stop| *stop).await) };
        Ok(Coordination::Embedded { tree, place, task: tokio::spawn(endpoint.run(stop)), keeper: None })
    }

    /// From now on users' nodes are kept, for the node has made the root directory its own. Clients that have changed some until then are
    /// answered after that.
    ///
    /// # Errors
    /// Nodes that are to move out of the root directory and cannot.
    pub async fn keep(&mut self, root: Arc<dyn Volume>, stopping: watch::Receiver<bool>) -> Result<()> {
        match self {
            Coordination::Embedded { tree, place, keeper, .. } => {
                let mut place = place.0.clone();
                let moved = tokio::task::spawn_blocking(move || place.finish_moving(&*root).map(|()| place));
                let place = moved.await.context("moving znodes failed inside")?;
                let place = place.with_context(|| format!("{}: znodes cannot move there", DATA_DIRECTORY.key))?;
                *keeper = Some(tokio::spawn(keep(tree.clone(), place, stopping)));
            }
            #[cfg(feature = "zookeeper")]
            Coordination::Ensemble(_) => {}
        }
        Ok(())
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
