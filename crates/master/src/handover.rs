//! What the master does for the one that comes after it, which may be HBase's.
//!
//! Always true:
//!  1. While it leads, `master:store` says on which server hbase:meta is, soon after it was moved there.
//!  2. When a handover is done, nothing is under way: HBase's master knows nothing of our procedures.

use crate::master::Master;
use crate::procedure::for_hbase::ForHBase;
use crate::start::write_store;
use crate::{Result, meta};
use std::sync::Arc;
use std::time::Duration;

/// Between two tries to write the store.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes the store whenever hbase:meta has moved, until the master stops. Where its only server is this process it does not move.
pub(crate) fn start(master: &Arc<Master>) {
    if !master.servers.are_remote() {
        return;
    }
    let master = Arc::clone(master);
    tokio::spawn(async move {
        loop {
            let moved = master.servers.meta_moved.notified();
            if master.lifetime.unless_stopped(moved).await.is_err() {
                return;
            }
            let mut is_told = false;
            while let Err(error) = store_meta_location(&master).await {
                if error.is_stopped() {
                    return;
                }
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(
                        %error,
                        "cannot write the location of hbase:meta to master:store, trying again each second; an HBase master that took over now would look for \
                         hbase:meta on its former region server"
                    );
                }
                if master.lifetime.pause(PAUSE).await.is_err() {
                    return;
                }
            }
            if is_told {
                tracing::info!("the location of hbase:meta is written to master:store");
            }
        }
    });
}

/// Writes the store, if it says something else of hbase:meta.
async fn store_meta_location(master: &Master) -> Result<()> {
    let mut stored = master.stored_meta_location.lock().await;
    let now = master.servers.meta_location();
    if *stored == now {
        return Ok(());
    }
    let servers = {
        let host = master.servers.meta_host()?;
        let cells = host.scan(model::region_info::META_ENCODED_NAME, meta::whole_scan()).await?;
        meta::servers(&cells)
    };
    write_store(master, servers).await?;
    *stored = now;
    Ok(())
}

impl Master {
    /// What HBase's master is to find if it leads next.
    pub fn for_hbase(&self) -> Arc<ForHBase> {
        Arc::clone(&self.for_hbase)
    }

    /// Takes up nothing new, and waits until nothing is under way, for so long at most: no procedure, no region on its way. Answers whether that
    /// is so; else the next master finds them unfinished, and only one of ours goes on with them.
    pub async fn hand_over(&self, at_most: Duration) -> bool {
        if !self.is_initialized() {
            return false;
        }
        self.procedures.close();
        let quiet = async {
            loop {
                let changed = self.procedures.changed();
                tokio::pin!(changed);
                // From here on no change is missed.
                changed.as_mut().enable();
                if self.procedures.unfinished().is_empty() {
                    break;
                }
                changed.await;
            }
            while let Err(error) = store_meta_location(self).await {
                tracing::warn!(%error, "the location of hbase:meta was not written to master:store, will try again");
                tokio::time::sleep(PAUSE).await;
            }
        };
        let is_quiet = tokio::time::timeout(at_most, quiet).await.is_ok();
        if !is_quiet {
            let left = self.procedures.unfinished();
            tracing::warn!(
                ?left,
                "stopping with unfinished procedures: the next master of Basalt's goes on with them, one of HBase's does not know of them"
            );
        }
        is_quiet
    }
}
