//! Submitting, running, polling.

use super::Work;
use crate::locks::{LockSet, Mode, Resource};
use crate::master::Master;
use crate::{ErrorKind, MasterError, Result};
use base::TimestampMs;
use bytes::Bytes;
use model::Nonce;
use parking_lot::Mutex;
use proto::pb;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Finished procedures kept in memory at most.
const MAX_FINISHED: usize = 10_000;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How a procedure ended: perhaps with a result.
pub type Outcome = Result<Option<Bytes>>;

/// A procedure, as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: u64,
    pub work: Work,
    pub owner: String,
    pub nonce: Option<Nonce>,
    pub submitted: TimestampMs,
    pub updated: TimestampMs,
    pub outcome: Option<Outcome>,
}

impl Record {
    /// HBase's message.
    pub fn to_message(&self) -> pb::Procedure {
        let state = match &self.outcome {
            None => pb::ProcedureState::Runnable,
            Some(Ok(_)) => pb::ProcedureState::Success,
            Some(Err(_)) => pb::ProcedureState::Rolledback,
        };
        let (result, exception) = match &self.outcome {
            Some(Ok(result)) => (result.clone(), None),
            Some(Err(error)) => (None, Some(error.to_foreign())),
            None => (None, None),
        };
        let to_u64 = |time: TimestampMs| u64::try_from(time.0).unwrap_or(0);
        pb::Procedure {
            class_name: self.work.class_name().to_owned(),
            proc_id: self.id,
            submitted_time: to_u64(self.submitted),
            owner: Some(self.owner.clone()),
            state: state as i32,
            last_update: to_u64(self.updated),
            exception,
            result,
            nonce_group: self.nonce.map(|nonce| nonce.group),
            nonce: self.nonce.map(|nonce| nonce.number),
            state_message: vec![self.work.state_data()],
            ..Default::default()
        }
    }

    /// Reads HBase's message.
    pub fn from_message(message: &pb::Procedure) -> Result<Record> {
        let data = message.state_message.first().ok_or_else(|| super::strange("no state"))?;
        let state = pb::ProcedureState::try_from(message.state).map_err(super::strange)?;
        let outcome = match state {
            pb::ProcedureState::Success => Some(Ok(message.result.clone())),
            pb::ProcedureState::Rolledback | pb::ProcedureState::Failed => {
                Some(Err(MasterError::from_foreign(message.exception.as_ref())))
            }
            _ => None,
        };
        let nonce = match (message.nonce_group, message.nonce) {
            (Some(group), Some(number)) => Some(Nonce { group, number }),
            _ => None,
        };
        let time = |ms: u64| TimestampMs(i64::try_from(ms).unwrap_or(i64::MAX));
        Ok(Record {
            id: message.proc_id,
            work: Work::from_state_data(data)?,
            owner: message.owner.clone().unwrap_or_default(),
            nonce,
            submitted: time(message.submitted_time),
            updated: time(message.last_update),
            outcome,
        })
    }
}

/// A procedure as others see it.
#[derive(Clone, Debug)]
pub struct Known {
    pub(crate) submitted: TimestampMs,
    pub(crate) updated: TimestampMs,
    pub(crate) outcome: Option<Outcome>,
    /// Absent for one that was refused before it began.
    pub(crate) record: Option<Arc<Record>>,
    nonce: Option<Nonce>,
}

#[derive(Debug, Default)]
struct Table {
    last_id: u64,
    known: BTreeMap<u64, Known>,
    by_nonce: HashMap<(u64, u64), u64>,
}

/// Every procedure that runs or ended lately.
#[derive(Debug, Default)]
pub struct Procedures {
    table: Mutex<Table>,
    changed: Notify,
}

impl Procedures {
    /// A new id, under `nonce`; or the id that the nonce already has.
    fn reserve(&self, nonce: Option<Nonce>, now: TimestampMs) -> std::result::Result<u64, u64> {
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
        table.known.insert(id, Known { submitted: now, updated: now, outcome: None, record: None, nonce });
        Ok(id)
    }

    /// Takes over the records of an earlier life.
    pub(crate) fn restore(&self, records: &[Record]) {
        let mut table = self.table.lock();
        for record in records {
            table.last_id = table.last_id.max(record.id);
            if let Some(nonce) = record.nonce {
                table.by_nonce.insert((nonce.group, nonce.number), record.id);
            }
            table.known.insert(record.id, Known::of(record));
        }
    }

    fn update(&self, record: &Record) {
        self.table.lock().known.insert(record.id, Known::of(record));
        self.changed.notify_waiters();
    }

    /// The procedure never began: without a nonce nobody can ask for it; with one, a repetition hears the same.
    fn refused(&self, id: u64, error: &MasterError, now: TimestampMs) {
        let mut table = self.table.lock();
        if let Some(known) = table.known.get_mut(&id) {
            if known.nonce.is_some() {
                // Without a record: it is no procedure that anybody could list.
                (known.updated, known.outcome, known.record) = (now, Some(Err(error.clone())), None);
            } else {
                table.known.remove(&id);
            }
        }
        drop(table);
        // A repetition may wait for it.
        self.changed.notify_waiters();
    }

    /// What is known of a procedure; `None` when it never was, or ended long ago.
    pub fn get(&self, id: u64) -> Option<Known> {
        self.table.lock().known.get(&id).cloned()
    }

    /// Every record, oldest first.
    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        self.table.lock().known.values().filter_map(|known| known.record.clone()).collect()
    }

    /// Forgets procedures that ended before `before`, and the oldest when there are too many; the newest that has a record stays, so
    /// that ids go on growing after a restart. Answers the ids.
    pub(crate) fn evict(&self, before: TimestampMs) -> Vec<u64> {
        let mut table = self.table.lock();
        let too_many = table.known.len().saturating_sub(MAX_FINISHED);
        let newest = table.known.iter().rev().find(|(_, known)| known.record.is_some()).map(|(id, _)| *id);
        let mut gone = Vec::new();
        for (id, known) in &table.known {
            if known.outcome.is_some() && Some(*id) != newest && (known.updated < before || gone.len() < too_many) {
                gone.push(*id);
            }
        }
        for id in &gone {
            if let Some(Known { nonce: Some(nonce), .. }) = table.known.remove(id) {
                table.by_nonce.remove(&(nonce.group, nonce.number));
            }
        }
        gone
    }
}

impl Known {
    fn of(record: &Record) -> Known {
        Known {
            submitted: record.submitted,
            updated: record.updated,
            outcome: record.outcome.clone(),
            record: Some(Arc::new(record.clone())),
            nonce: record.nonce,
        }
    }
}

/// Who asks for a procedure, and what it is going to hold.
pub(crate) struct Submission {
    pub owner: String,
    pub nonce: Option<Nonce>,
    pub locks: Vec<(Resource, Mode)>,
}

impl Master {
    /// Takes the locks, lets `prepare` look whether it can be done, makes the procedure durable, starts it, and
    /// answers its id. A repeated nonce answers the id it had.
    ///
    /// # Errors
    /// What `prepare` says: nothing was begun then. Or that the procedure could not be made durable: nothing was begun and
    /// nothing will be, unless the sentence says that this is unknown.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        submission: Submission,
        prepare: impl Future<Output = Result<Work>>,
    ) -> Result<u64> {
        self.check_running()?;
        let now = self.clock.now_ms();
        let id = match self.procedures.reserve(submission.nonce, now) {
            Ok(id) => id,
            Err(earlier) => return Ok(earlier),
        };
        let locks = self.locks.lock(submission.locks).await;
        // A stop makes procedures give their locks back before their end is recorded. The next start runs those once more, and what
        // had followed them here would be done twice.
        let prepared = match self.check_running() {
            Ok(()) => prepare.await,
            Err(error) => Err(error),
        };
        let work = match prepared {
            Ok(work) => work,
            Err(error) => {
                self.procedures.refused(id, &error, self.clock.now_ms());
                return Err(error);
            }
        };
        let Submission { owner, nonce, .. } = submission;
        let record = Record { id, work, owner, nonce, submitted: now, updated: now, outcome: None };
        if let Err(error) = self.save(&record).await {
            return Err(self.take_record_back(record, error, locks).await);
        }
        self.procedures.update(&record);
        let master = Arc::clone(self);
        tokio::spawn(async move {
            master.run_to_end(record).await;
            drop(locks);
        });
        Ok(id)
    }

    /// Takes back a procedure whose record could not be made durable. The record may be on the disk all the same, and the next
    /// start would run it for one that was accepted. Answers what the caller is told.
    ///
    /// While the record cannot be taken back either, the procedure counts as unfinished and holds its locks: nobody builds on
    /// its refusal before that is certain.
    async fn take_record_back(self: &Arc<Self>, record: Record, error: MasterError, locks: LockSet) -> MasterError {
        let Err(why) = self.withdraw(record.id).await else {
            self.procedures.refused(record.id, &error, self.clock.now_ms());
            return error;
        };
        let (id, class) = (record.id, record.work.class_name());
        tracing::warn!(pid = id, class, %error, %why, "cannot record the procedure nor roll its record back; retrying");
        self.procedures.update(&record);
        let (master, refusal) = (Arc::clone(self), error.clone());
        tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                if master.pause(pause).await.is_err() {
                    tracing::warn!(pid = id, class, "may be done at the next start, though it was not accepted");
                    return;
                }
                match master.withdraw(id).await {
                    Ok(()) => break,
                    Err(why) => tracing::warn!(pid = id, class, %why, "cannot take a record back, will try again"),
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            master.procedures.refused(id, &refusal, master.clock.now_ms());
            drop(locks);
        });
        let kind = error.kind;
        MasterError::new(
            kind,
            format!(
                "{error}; and its record cannot be rolled back: {why}. It is not done now; whether it will be is unknown \
                 until the disk works again: procedure {id} may come back at a start before that"
            ),
        )
    }

    async fn withdraw(&self, id: u64) -> Result<()> {
        let journal = Arc::clone(&self.journal);
        self.blocking(move |_| Ok(journal.withdraw(id)?)).await
    }

    async fn save(&self, record: &Record) -> Result<()> {
        let (journal, record) = (Arc::clone(&self.journal), record.clone());
        self.blocking(move |_| Ok(journal.save(&record)?)).await
    }

    /// Runs a procedure until it ends, or the master does. The caller holds its locks.
    pub(crate) async fn run_to_end(self: &Arc<Self>, mut record: Record) {
        let mut pause = FIRST_PAUSE;
        let outcome = loop {
            // In a task of its own, so that a panic ends the procedure and not the locks' order.
            let (master, work) = (Arc::clone(self), record.work.clone());
            let attempt = tokio::spawn(async move { master.execute(work).await }).await;
            match attempt.unwrap_or_else(|panic| Err(MasterError::do_not_retry(format!("internal error: {panic}")))) {
                Err(error) if error.is_stopped() => return,
                // Regions are being closed under it: what it says of that is no verdict. The next start asks again.
                Err(error) if self.is_stopping() => {
                    tracing::info!(pid = record.id, class = record.work.class_name(), %error, "left for the next start");
                    return;
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(pid = record.id, class = record.work.class_name(), %error, "will try again");
                    if self.pause(pause).await.is_err() {
                        return;
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                outcome => break outcome,
            }
        };
        match &outcome {
            Ok(_) => tracing::info!(pid = record.id, class = record.work.class_name(), "finished"),
            Err(error) => tracing::warn!(pid = record.id, class = record.work.class_name(), %error, "failed"),
        }
        record.updated = self.clock.now_ms();
        record.outcome = Some(outcome);
        // The end must be on disk before the locks go: what follows it could not bear that it runs again.
        pause = FIRST_PAUSE;
        while let Err(error) = self.save(&record).await {
            tracing::warn!(pid = record.id, %error, "cannot record the end of a procedure, will try again");
            if self.pause(pause).await.is_err() {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.procedures.update(&record);
    }

    async fn execute(self: Arc<Self>, work: Work) -> Outcome {
        match work {
            Work::CreateTable { table, regions } => self.create_table_steps(&table, &regions).await,
            Work::DeleteTable { table, regions } => self.delete_table_steps(&table, &regions).await,
            Work::TruncateTable { table, old, new, .. } => self.truncate_table_steps(&table, &old, &new).await,
            Work::EnableTable { table } => self.enable_table_steps(&table).await,
            Work::DisableTable { table } => self.disable_table_steps(&table).await,
            Work::ModifyTable { old, new, reopen } => self.modify_table_steps(&old, &new, reopen).await,
            Work::CreateNamespace { name, configuration } | Work::ModifyNamespace { name, configuration } => {
                self.put_namespace_steps(name, configuration).await
            }
            Work::DeleteNamespace { name } => self.delete_namespace_steps(&name).await,
            Work::SplitRegion { parent, daughters } => self.split_steps(&parent, &daughters).await,
            Work::MergeRegions { parents, child } => self.merge_steps(&parents, &child).await,
            Work::FlushTable { table, families } => self.flush_table_steps(&table, &families).await,
        }
        .map(|()| None)
    }

    /// Waits until a procedure ended.
    ///
    /// # Errors
    /// Its own; or that the master stopped.
    pub async fn wait_for(&self, id: u64) -> Outcome {
        loop {
            let changed = self.procedures.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            match self.procedures.get(id) {
                None => return Err(MasterError::new(ErrorKind::Io, format!("no procedure {id}"))),
                Some(Known { outcome: Some(outcome), .. }) => return outcome,
                Some(_) => self.unless_stopped(changed).await?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_record_is_kept_whatever_was_refused_since() {
        let procedures = Procedures::default();
        let work = Work::DeleteNamespace { name: "n".to_owned() };
        let long_ago = TimestampMs(1);
        let ended = |id| Record {
            id,
            work: work.clone(),
            owner: String::new(),
            nonce: None,
            submitted: long_ago,
            updated: long_ago,
            outcome: Some(Ok(None)),
        };
        procedures.restore(&[ended(6), ended(7)]);
        let refused = procedures.reserve(None, long_ago).expect("new");
        procedures.refused(refused, &MasterError::do_not_retry("no"), long_ago);
        assert_eq!(procedures.evict(TimestampMs(2)), [6], "the next start counts on from 7");
    }
}
