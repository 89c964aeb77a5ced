//! Procedures that make no progress.

use super::{Found, Kind, Remedy, Tried};
use crate::Result;
use crate::master::Master;
use std::sync::Arc;

/// A step that fails for so long is stuck: it was tried again more than thirty times.
const STUCK_MS: i64 = 600_000;

pub(super) fn look(master: &Master, found: &mut Vec<Found>) {
    let before = master.clock.now_ms().0.saturating_sub(STUCK_MS);
    for stuck in master.procedures.failing() {
        if stuck.since.0 > before {
            continue;
        }
        let class = stuck.class.rsplit('.').next().unwrap_or(stuck.class);
        let id = stuck.id;
        let remedy = if stuck.may_abort {
            Remedy::Abort(id)
        } else {
            Remedy::Nothing(format!(
                "what it did cannot be undone any more, so it goes on as soon as what its error names is mended; `basalt hbck bypass {id}` ends it where \
                 it is, and leaves to you what it had still to do"
            ))
        };
        let minutes = (master.clock.now_ms().0 - stuck.since.0) / 60_000;
        found.push(Found {
            kind: Kind::StuckProcedure,
            subject: format!("pid={id} {class}"),
            what: format!("its step {} has failed for {minutes} min, last with: {}", stuck.step, stuck.error),
            remedy,
        });
    }
}

/// As a client's abort: the procedure says itself that what it did so far can be rolled back.
pub(super) async fn abort(master: &Arc<Master>, id: u64) -> Result<Tried> {
    let still = master.procedures.failing().into_iter().any(|stuck| stuck.id == id && stuck.may_abort);
    if !still || !master.procedures.abort(id) {
        return Ok(Tried::Passed);
    }
    // What it says is its own client's to hear.
    let ended = tokio::time::timeout(super::PATIENCE, master.procedures.wait_for(id)).await;
    master.lifetime.check_running()?;
    Ok(Tried::Done(match ended {
        Ok(_) => "it was aborted and rolled back: all is as before it".into(),
        Err(_) => "it was aborted and is being rolled back".into(),
    }))
}
