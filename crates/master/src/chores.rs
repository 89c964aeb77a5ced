//! What the master does by itself from time to time.

use crate::cluster::{RegionNode, RegionState, TableState};
use crate::master::Master;
use crate::procedure::region_locks;
use crate::resolved::MasterSettings;
use crate::{Result, balancing, cleaner, hbck, healing, janitor, locality, normalizer, quotas, snapshots};
use base::TimestampMs;
use model::RegionInfo;
use quota::space::ChoreTimes;
use std::sync::Arc;
use std::time::Duration;

/// Starts every chore. They end when the master stops.
pub(crate) fn start(master: &Arc<Master>) {
    chore(
        master,
        |settings| settings.janitor_interval,
        |master| async move {
            if master.switches.janitor()
                && let Err(error) = janitor::run(&master).await
            {
                tracing::warn!(%error, "the catalog janitor will try again");
            }
        },
    );
    chore(
        master,
        // Switched off, it may be switched on again.
        |settings| settings.hbck_interval.unwrap_or(Duration::from_secs(60)),
        |master| async move {
            if master.settings().hbck_interval.is_some() {
                hbck::run(&master).await;
            }
        },
    );
    chore(
        master,
        // Switched off, it may be switched on again.
        |settings| settings.healing_interval.unwrap_or(Duration::from_secs(60)),
        |master| async move {
            healing::run(&master).await;
        },
    );
    chore(
        master,
        |settings| settings.cleaner_interval,
        |master| async move {
            if master.switches.cleaner()
                && let Err(error) = cleaner::run(&master).await
                && !error.is_stopped()
            {
                tracing::warn!(%error, "the cleaners will try again");
            }
        },
    );
    chore(
        master,
        |settings| settings.snapshot_cleaner_interval,
        |master| async move {
            if master.switches.snapshot_cleanup()
                && let Err(error) = snapshots::delete_expired(&master).await
                && !error.is_stopped()
            {
                tracing::warn!(%error, "snapshots whose time is over are looked for again later");
            }
        },
    );
    chore(
        master,
        |settings| settings.retry_failed_open,
        |master| async move {
            retry_failed_opens(&master).await;
        },
    );
    chore(master, |_| Duration::from_secs(60), |master| async move { evict_procedures(&master).await });
    chore(
        master,
        |settings| settings.quota_refresh,
        |master| async move {
            if let Err(error) = quotas::refresh(&master).await
                && !error.is_stopped()
            {
                tracing::warn!(%error, "hbase:quota could not be read anew; the limits stay as they were");
            }
        },
    );
    chore(master, |settings| settings.balancer_period, |master| async move { balancing::run_or_look(&master).await });
    chore(
        master,
        |settings| settings.balancer_status_period,
        |master| async move { master.balancer.remember_loads(&master) },
    );
    chore(master, |settings| settings.balancer_status_period, |master| async move { locality::refresh(&master).await });
    chore(master, |settings| settings.normalizer.period, |master| async move { normalizer::request_all(&master) });
    normalizer::start(master);
    if master.quotas.is_enabled() {
        start_of_space_quotas(master);
    }
}

/// What holds tables to their quotas of space.
fn start_of_space_quotas(master: &Arc<Master>) {
    fn tried(done: Result<()>, what: &str) {
        if let Err(error) = done
            && !error.is_stopped()
        {
            tracing::warn!(%error, "quotas of space: {what}; it is tried again");
        }
    }
    delayed_chore(
        master,
        |settings| settings.space_quotas.reporting,
        |master| async move { quotas::space::collect_reports(&master) },
    );
    delayed_chore(
        master,
        |settings| settings.space_quotas.observer,
        |master| async move {
            tried(quotas::space::observe(&master).await, "the sizes of tables could not be held against them");
        },
    );
    delayed_chore(
        master,
        |settings| settings.space_quotas.snapshots,
        |master| async move {
            tried(quotas::space::measure_snapshots(&master).await, "snapshots could not be measured");
        },
    );
    delayed_chore(
        master,
        |settings| settings.space_quotas.refresher,
        |master| async move {
            tried(quotas::space::refresh(&master).await, "who violates them could not be read");
        },
    );
}

/// Runs `work` again and again until the master stops; the pause is between two runs.
fn chore<F>(
    master: &Arc<Master>,
    every: impl Fn(&MasterSettings) -> Duration + Send + 'static,
    work: impl Fn(Arc<Master>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let times = move |settings: &MasterSettings| ChoreTimes { delay: every(settings), period: every(settings) };
    delayed_chore(master, times, work);
}

/// The same, with another pause before the first run.
fn delayed_chore<F>(
    master: &Arc<Master>,
    times: impl Fn(&MasterSettings) -> ChoreTimes + Send + 'static,
    work: impl Fn(Arc<Master>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let (lifetime, master) = (Arc::clone(&master.lifetime), Arc::downgrade(master));
    tokio::spawn(async move {
        let mut is_first = true;
        loop {
            let Some(times) = master.upgrade().map(|master| times(&master.settings())) else { return };
            let pause = if std::mem::take(&mut is_first) { times.delay } else { times.period };
            if lifetime.pause(pause).await.is_err() {
                return;
            }
            let Some(master) = master.upgrade() else { return };
            work(master).await;
        }
    });
}

/// Tries regions that could not be opened again now, where that may be for want of a server of their group.
pub(crate) fn wake_failed_opens(master: &Arc<Master>) {
    if !master.groups.are_on() || !master.is_initialized() {
        return;
    }
    // A thread of the region server's may say that the configuration has changed: then the chore's next turn has to do.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let master = Arc::clone(master);
    runtime.spawn(async move { retry_failed_opens(&master).await });
}

async fn retry_failed_opens(master: &Arc<Master>) {
    let mut failed: Vec<RegionInfo> = {
        let cluster = master.cluster.read();
        let failed = |node: &&RegionNode| {
            node.state == RegionState::FailedOpen && cluster.state(&node.info.table) == Some(TableState::Enabled)
        };
        cluster.with_replicas().filter(failed).map(|node| node.info.clone()).collect()
    };
    // Those that have the others' locks may wait for it.
    failed.sort_by_key(|info| !info.table.is_meta());
    for info in failed {
        let _locks = master.procedures.locks.lock(region_locks(std::slice::from_ref(&info))).await;
        let still = master.cluster.read().region(info.encoded_name()).map(|node| node.state);
        if still == Some(RegionState::FailedOpen)
            && let Err(error) = master.assignment.assign(vec![info.clone()]).await
        {
            // Half way: it must be found again here.
            master.assignment.note_state(&info, RegionState::FailedOpen);
            tracing::warn!(%error, "cannot record the state of a region");
        }
    }
}

async fn evict_procedures(master: &Master) {
    let ttl_ms = i64::try_from(master.settings().procedure_ttl_ms).unwrap_or(i64::MAX);
    let before = master.clock.now_ms().0.saturating_sub(ttl_ms);
    if let Err(error) = master.procedures.evict(TimestampMs(before)).await {
        tracing::warn!(%error, "cannot remove the record of a finished procedure");
    }
}
