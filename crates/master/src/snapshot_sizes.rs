//! What snapshots take, for the pages: measured when somebody asks, once for all who ask meanwhile, and kept for a while.
//!
//! Always true: at most one measuring runs, between two snapshots it lets others have the thread, and it looks at so many files and no more.
//! Whoever asks waits as long as it likes; the measuring goes on without it.

use crate::master::Master;
use crate::{MasterError, Result, snapshots};
use base::TimestampMs;
use parking_lot::Mutex;
use proto::pb;
use rootdir::snapshot::sizes::{Measured, Measuring};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// So long what was measured is good enough.
const KEPT_MS: i64 = 60_000;
/// Files of snapshots, and of the directories that these are in, that are looked at. Their names are held meanwhile: about 100 bytes each.
const ENTRIES_MAX: usize = 500_000;

/// What snapshots took at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSizes {
    /// When it was measured.
    pub at: TimestampMs,
    /// What was found.
    pub measured: Measured,
    /// Whether every snapshot was measured: there may be more files than are looked at.
    pub is_whole: bool,
}

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct LastSizes(Mutex<State>);

/// A snapshot by its name and when it was taken.
type Taken = (String, i64);

#[derive(Debug, Default)]
struct State {
    last: Option<std::result::Result<Arc<SnapshotSizes>, String>>,
    /// When that was known,
    at_ms: i64,
    /// and of which snapshots.
    of: Vec<Taken>,
    /// Ends with the measuring that runs.
    running: Option<watch::Receiver<()>>,
}

impl Master {
    /// The snapshots and what they take: measured anew unless it was within the last minute and they are the same. `None`: that takes longer
    /// than `patience`, and nothing was known before; it goes on, and is to be asked for again.
    ///
    /// # Errors
    /// What the volume said.
    pub async fn snapshot_sizes(
        self: &Arc<Self>,
        patience: Duration,
    ) -> Result<(Vec<pb::SnapshotDescription>, Option<Arc<SnapshotSizes>>)> {
        let listed = snapshots::list(self).await?;
        let of = listed.iter().map(|snapshot| (snapshot.name.clone(), snapshot.creation_time())).collect();
        if let Some(mut running) = self.running_or_begun(of) {
            // It fails when the measuring has ended, which is what is waited for.
            let _ = tokio::time::timeout(patience, running.changed()).await;
        }
        match &self.last_sizes.0.lock().last {
            None => Ok((listed, None)),
            Some(Ok(sizes)) => Ok((listed, Some(Arc::clone(sizes)))),
            Some(Err(why)) => Err(MasterError::do_not_retry(why.clone())),
        }
    }

    /// The measuring that is to be waited for; `None` where what is known is good enough.
    fn running_or_begun(self: &Arc<Self>, of: Vec<Taken>) -> Option<watch::Receiver<()>> {
        let mut state = self.last_sizes.0.lock();
        // One whose sender is gone has ended, however it did.
        if let Some(running) = state.running.take_if(|running| running.has_changed().is_ok()) {
            return Some(state.running.insert(running).clone());
        }
        let age_ms = self.clock.now_ms().0.saturating_sub(state.at_ms);
        if state.last.is_some() && state.of == of && (0..KEPT_MS).contains(&age_ms) {
            return None;
        }
        let (ends, running) = watch::channel(());
        state.running = Some(running.clone());
        let master = Arc::clone(self);
        tokio::spawn(async move {
            let measured = measure(&master, &of).await;
            let mut state = master.last_sizes.0.lock();
            (state.at_ms, state.of) = (master.clock.now_ms().0, of);
            state.last = Some(measured.map(Arc::new).map_err(|error| error.to_string()));
            drop(state);
            drop(ends);
        });
        Some(running)
    }
}

async fn measure(master: &Arc<Master>, of: &[Taken]) -> Result<SnapshotSizes> {
    let (mut measuring, mut is_whole) = (Measuring::new(ENTRIES_MAX), true);
    for (name, _) in of {
        master.lifetime.check_running()?;
        let name = name.clone();
        let step = master.files.run(move |volume| {
            let is_measured = measuring.add(volume, &name)?;
            Ok((measuring, is_measured))
        });
        (measuring, is_whole) = step.await?;
        if !is_whole {
            tracing::warn!(
                files = ENTRIES_MAX,
                "snapshots have more files than are looked at for the page of their sizes"
            );
            break;
        }
    }
    let measured = master.files.run(move |volume| Ok(measuring.finish(volume)?)).await?;
    Ok(SnapshotSizes { at: master.clock.now_ms(), measured, is_whole })
}
