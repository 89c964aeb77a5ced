//! What is known of procedures: those that run, and those that ended lately.

use super::{Outcome, Record};
use crate::MasterError;
use base::TimestampMs;
use model::Nonce;
use parking_lot::Mutex;
use proto::pb;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Notify;

/// Finished procedures kept in memory at most.
const MAX_FINISHED: usize = 10_000;

/// A procedure as others see it.
#[derive(Clone, Debug)]
pub struct ProcedureStatus {
    pub(crate) submitted: TimestampMs,
    pub(crate) updated: TimestampMs,
    pub(crate) outcome: Option<Outcome>,
    /// Its record as it was last made durable; absent for one that was refused before it began.
    pub(crate) record: Option<Arc<pb::Procedure>>,
    nonce: Option<Nonce>,
}

impl ProcedureStatus {
    fn of<E: 'static>(record: &Record<E>, message: &Arc<pb::Procedure>) -> ProcedureStatus {
        ProcedureStatus {
            submitted: record.submitted,
            updated: record.updated,
            outcome: record.outcome().cloned(),
            record: Some(Arc::clone(message)),
            nonce: record.nonce,
        }
    }

    /// The procedure whose child it is.
    pub(crate) fn parent(&self) -> Option<u64> {
        self.record.as_ref().and_then(|record| record.parent_id)
    }
}

#[derive(Debug, Default)]
struct Table {
    last_id: u64,
    statuses: BTreeMap<u64, ProcedureStatus>,
    by_nonce: HashMap<(u64, u64), u64>,
}

/// Every procedure that runs or ended lately.
#[derive(Debug, Default)]
pub(super) struct StatusTable {
    table: Mutex<Table>,
    /// Something ended.
    pub changed: Notify,
}

impl StatusTable {
    /// A new id, under `nonce`; or the id that the nonce already has.
    pub fn reserve(&self, nonce: Option<Nonce>, now: TimestampMs) -> std::result::Result<u64, u64> {
        let mut table = self.table.lock();
        if let Some(nonce) = nonce {
            if let Some(id) = table.by_nonce.get(&(nonce.group, nonce.number)) {
                return Err(*id);
            }
            let id = table.last_id + 1;
            table.by_nonce.insert((nonce.group, nonce.number), id);
        }
        table.last_id += 1;
        let id = table.last_id;
        table.statuses.insert(id, ProcedureStatus { submitted: now, updated: now, outcome: None, record: None, nonce });
        Ok(id)
    }

    /// No id up to this one is given any more.
    pub fn ids_follow(&self, id: u64) {
        let mut table = self.table.lock();
        table.last_id = table.last_id.max(id);
    }

    /// Whether a procedure has the nonce.
    pub fn knows(&self, nonce: Nonce) -> bool {
        self.table.lock().by_nonce.contains_key(&(nonce.group, nonce.number))
    }

    /// A new id for a child.
    pub fn next_id(&self) -> u64 {
        let mut table = self.table.lock();
        table.last_id += 1;
        table.last_id
    }

    /// Takes over a record of an earlier run.
    pub fn restore<E: 'static>(&self, record: &Record<E>) {
        let mut table = self.table.lock();
        table.last_id = table.last_id.max(record.id);
        if let Some(nonce) = record.nonce {
            table.by_nonce.insert((nonce.group, nonce.number), record.id);
        }
        table.statuses.insert(record.id, ProcedureStatus::of(record, &Arc::new(record.to_message())));
    }

    /// The record is durable as `message`.
    pub fn update<E: 'static>(&self, record: &Record<E>, message: &Arc<pb::Procedure>) {
        self.table.lock().statuses.insert(record.id, ProcedureStatus::of(record, message));
        if record.outcome().is_some() {
            self.changed.notify_waiters();
        }
    }

    /// The procedure never began: without a nonce nobody can ask for it; with one, a repetition hears the same.
    pub fn refused(&self, id: u64, error: &MasterError, now: TimestampMs) {
        let mut table = self.table.lock();
        if let Some(status) = table.statuses.get_mut(&id) {
            if status.nonce.is_some() {
                // Without a record: it is no procedure that anybody could list.
                (status.updated, status.outcome, status.record) = (now, Some(Err(error.clone())), None);
            } else {
                table.statuses.remove(&id);
            }
        }
        drop(table);
        // A repetition may wait for it.
        self.changed.notify_waiters();
    }

    /// A procedure that failed before it had a record; answers its id.
    pub fn failed(&self, error: MasterError, now: TimestampMs) -> u64 {
        let mut table = self.table.lock();
        table.last_id += 1;
        let id = table.last_id;
        let outcome = Some(Err(error));
        table.statuses.insert(id, ProcedureStatus { submitted: now, updated: now, outcome, record: None, nonce: None });
        id
    }

    /// What is known of a procedure; `None` when it never was, or ended long ago.
    pub fn get(&self, id: u64) -> Option<ProcedureStatus> {
        self.table.lock().statuses.get(&id).cloned()
    }

    /// Every record, oldest first.
    pub fn records(&self) -> Vec<Arc<pb::Procedure>> {
        self.table.lock().statuses.values().filter_map(|status| status.record.clone()).collect()
    }

    /// Procedures that have a record and have not ended.
    pub fn unfinished(&self) -> Vec<u64> {
        let table = self.table.lock();
        let unfinished = |status: &ProcedureStatus| status.record.is_some() && status.outcome.is_none();
        table.statuses.iter().filter(|(_, status)| unfinished(status)).map(|(id, _)| *id).collect()
    }

    /// The children of a procedure that are known.
    pub fn children(&self, id: u64) -> Vec<u64> {
        let table = self.table.lock();
        table.statuses.iter().filter(|(_, status)| status.parent() == Some(id)).map(|(child, _)| *child).collect()
    }

    /// Forgets procedures.
    pub fn forget(&self, ids: &[u64]) {
        let mut table = self.table.lock();
        for id in ids {
            table.statuses.remove(id);
        }
    }

    /// Forgets procedures that ended before `before`, and the oldest when there are too many; the newest that has a
    /// record stays, so that ids go on growing after a restart. So do children, which their parent forgets. Answers the
    /// ids.
    pub fn evict(&self, before: TimestampMs) -> Vec<u64> {
        let mut table = self.table.lock();
        let too_many = table.statuses.len().saturating_sub(MAX_FINISHED);
        let newest = table.statuses.iter().rev().find(|(_, status)| status.record.is_some()).map(|(id, _)| *id);
        let mut gone = Vec::new();
        for (id, status) in &table.statuses {
            let kept = status.outcome.is_none() || Some(*id) == newest || status.parent().is_some();
            if !kept && (status.updated < before || gone.len() < too_many) {
                gone.push(*id);
            }
        }
        for id in &gone {
            if let Some(ProcedureStatus { nonce: Some(nonce), .. }) = table.statuses.remove(id) {
                table.by_nonce.remove(&(nonce.group, nonce.number));
            }
        }
        gone
    }
}
