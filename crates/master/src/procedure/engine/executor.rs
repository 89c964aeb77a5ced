//! Submitting procedures, asking for them, resuming them at a start.

use super::locks::Inherited;
use super::record::Phase;
use super::remote::Dispatcher;
use super::status::StatusTable;
use super::store::ProcedureStore;
use super::{BoxedProcedure, Outcome, ProcedureStatus, Record, Step};
use crate::files::Files;
use crate::lifetime::Lifetime;
use crate::locks::{LockSet, Locks, Mode, Resource};
use crate::procedure::for_hbase::ForHBase;
use crate::procedure::operations::Operations;
use crate::servers::Servers;
use crate::{ErrorKind, MasterError, Result};
use base::{Clock, TimestampMs};
use model::Nonce;
use parking_lot::Mutex;
use proto::pb;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use trace::TracerCell;

pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// Who asks for a procedure, and what it is going to hold.
pub(crate) struct Submission {
    pub owner: String,
    pub nonce: Option<Nonce>,
    pub locks: Vec<(Resource, Mode)>,
}

/// What clients ask of a procedure that runs, and what it says of itself.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub abort: AtomicBool,
    pub bypass: AtomicBool,
    /// One of them was set.
    pub changed: Notify,
    /// The step that fails and is tried again.
    pub failing: Mutex<Option<FailingStep>>,
}

/// A step that fails and is tried again.
#[derive(Clone, Debug)]
pub(crate) struct FailingStep {
    /// The procedure.
    pub id: u64,
    /// Its class.
    pub class: &'static str,
    /// The step.
    pub step: Step,
    /// Since when it fails.
    pub since: TimestampMs,
    /// What it said last.
    pub error: MasterError,
    /// Whether the procedure can be rolled back now.
    pub may_abort: bool,
}

/// The procedures of a master.
pub(crate) struct Procedures<E> {
    pub(super) statuses: StatusTable,
    pub(super) store: Arc<ProcedureStore>,
    pub(super) for_hbase: Arc<ForHBase>,
    pub(super) files: Files,
    pub(super) lifetime: Arc<Lifetime>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) servers: Arc<Servers>,
    pub(super) controls: Mutex<HashMap<u64, Arc<Control>>>,
    /// What was done so far.
    pub operations: Arc<Operations>,
    pub(super) tracer: Arc<TracerCell>,
    /// What servers were handed.
    pub dispatcher: Dispatcher,
    /// Who works on what.
    pub locks: Arc<Locks>,
    /// Nothing new is taken up.
    closed: AtomicBool,
    env: std::marker::PhantomData<fn() -> E>,
}

impl<E> std::fmt::Debug for Procedures<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Procedures").field("statuses", &self.statuses).finish_non_exhaustive()
    }
}

/// What the engine stands on.
pub(crate) struct Parts {
    pub store: ProcedureStore,
    pub for_hbase: Arc<ForHBase>,
    /// The largest id that a master before has given.
    pub largest_id: u64,
    pub files: Files,
    pub lifetime: Arc<Lifetime>,
    pub clock: Arc<dyn Clock>,
    pub servers: Arc<Servers>,
    pub locks: Arc<Locks>,
    pub operations: Arc<Operations>,
    pub tracer: Arc<TracerCell>,
}

/// A procedure of an earlier run that has not ended, with its children.
#[derive(Debug)]
pub(crate) struct Unfinished<E> {
    pub record: Record<E>,
    pub children: Vec<Unfinished<E>>,
}

impl<E: Send + Sync + 'static> Procedures<E> {
    /// The engine, and what an earlier run left unfinished in the order in which it was begun.
    pub fn new(parts: Parts, records: Vec<Record<E>>) -> (Arc<Self>, Vec<Unfinished<E>>) {
        let Parts { store, for_hbase, largest_id, files, lifetime, clock, servers, locks, operations, tracer } = parts;
        let procedures = Procedures {
            statuses: StatusTable::default(),
            store: Arc::new(store),
            for_hbase,
            files,
            lifetime,
            clock,
            servers,
            controls: Mutex::default(),
            operations,
            tracer,
            dispatcher: Dispatcher::default(),
            locks,
            closed: AtomicBool::new(false),
            env: std::marker::PhantomData,
        };
        procedures.statuses.ids_follow(largest_id);
        for record in &records {
            procedures.statuses.restore(record);
        }
        let (unfinished, stale) = family_trees(records);
        procedures.statuses.forget(&stale);
        let procedures = Arc::new(procedures);
        if !stale.is_empty() {
            // Before any parent makes children anew.
            let store = Arc::clone(&procedures.store);
            for id in stale {
                if let Err(error) = store.withdraw(id) {
                    tracing::warn!(pid = id, %error, "cannot remove the record of a child that its parent has left behind");
                }
            }
        }
        (procedures, unfinished)
    }

    /// Takes the locks, lets `prepare` see whether it can be done, makes the procedure durable, starts it, and
    /// answers its id. A repeated nonce answers the id it had.
    ///
    /// # Errors
    /// What `prepare` says: nothing was begun then. Or that the procedure could not be made durable: nothing was begun
    /// and nothing will be, unless the sentence says that this is unknown.
    pub async fn submit(
        self: &Arc<Self>,
        env: &Arc<E>,
        submission: Submission,
        prepare: impl Future<Output = Result<BoxedProcedure<E>>>,
    ) -> Result<u64> {
        self.lifetime.check_running()?;
        if self.closed.load(Ordering::SeqCst) {
            return Err(MasterError::new(ErrorKind::PleaseHold, "This master stops, and another is to lead"));
        }
        let now = self.clock.now_ms();
        let id = match self.statuses.reserve(submission.nonce, now) {
            Ok(id) => id,
            Err(earlier) => return Ok(earlier),
        };
        let locks = self.locks.lock(submission.locks).await;
        // A stop makes procedures give their locks back before their end is recorded. The next start runs those once
        // more, and what had followed them here would be done twice.
        let prepared = match self.lifetime.check_running() {
            Ok(()) => prepare.await,
            Err(error) => Err(error),
        };
        let procedure = match prepared {
            Ok(procedure) => procedure,
            Err(error) => {
                self.statuses.refused(id, &error, self.clock.now_ms());
                return Err(error);
            }
        };
        // What it makes is its own until it has ended. Nobody else knows of it yet, so this does not wait.
        let own = locks.missing(procedure.locks());
        let locks = locks.and(self.locks.lock(own).await);
        let (owner, nonce) = (submission.owner, submission.nonce);
        let record = Record { nonce, ..Record::new(id, None, procedure, owner, now) };
        if let Err(error) = self.save(&record).await {
            return Err(self.take_record_back(record, error, locks).await);
        }
        self.for_hbase.begun(Arc::new(record.to_message()), record.procedure.for_hbase()).await?;
        let (procedures, env) = (Arc::clone(self), Arc::clone(env));
        // A part of the call that asks for it, if that is traced.
        let work = trace::within(trace::current(), async move {
            procedures.run_root(env, Unfinished { record, children: Vec::new() }).await;
            drop(locks);
        });
        tokio::spawn(work);
        Ok(id)
    }

    /// Takes back a procedure whose record could not be made durable. The record may be on the disk all the same, and
    /// the next start would run it for one that was accepted. Answers what the caller is told.
    ///
    /// While the record cannot be taken back either, the procedure counts as unfinished and holds its locks: nobody
    /// builds on its refusal before that is certain.
    async fn take_record_back(self: &Arc<Self>, record: Record<E>, error: MasterError, locks: LockSet) -> MasterError {
        let Err(why) = self.withdraw(vec![record.id]).await else {
            self.statuses.refused(record.id, &error, self.clock.now_ms());
            return error;
        };
        let (id, class) = (record.id, record.procedure.class_name());
        tracing::warn!(pid = id, class, %error, %why, "cannot record the procedure nor roll its record back; retrying");
        self.statuses.update(&record, &Arc::new(record.to_message()));
        let (procedures, refusal) = (Arc::clone(self), error.clone());
        tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                if procedures.lifetime.pause(pause).await.is_err() {
                    tracing::warn!(pid = id, class, "may be done at the next start, though it was not accepted");
                    return;
                }
                match procedures.withdraw(vec![id]).await {
                    Ok(()) => break,
                    Err(why) => tracing::warn!(pid = id, class, %why, "cannot take a record back, will try again"),
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            procedures.statuses.refused(id, &refusal, procedures.clock.now_ms());
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

    /// A procedure that failed in its first step, having done nothing; answers its id. It has no record: a restart forgets it.
    pub fn failed(&self, error: MasterError) -> u64 {
        self.statuses.failed(error, self.clock.now_ms())
    }

    /// Makes records vanish for good.
    pub(super) async fn withdraw(&self, ids: Vec<u64>) -> Result<()> {
        let store = Arc::clone(&self.store);
        let withdrawn = ids.clone();
        self.files.run(move |_| Ok(withdrawn.into_iter().try_for_each(|id| store.withdraw(id))?)).await?;
        self.for_hbase.forgotten(ids).await
    }

    /// Makes a record durable, then shows it.
    pub(super) async fn save(&self, record: &Record<E>) -> Result<()> {
        let message = Arc::new(record.to_message());
        let (store, written) = (Arc::clone(&self.store), Arc::clone(&message));
        self.files.run(move |_| Ok(store.save(&written)?)).await?;
        self.statuses.update(record, &message);
        Ok(())
    }

    /// Finishes what an earlier run began. Procedures that hold the same locks keep their order: locks are given in the
    /// order in which they were asked for, and asked for here one after the other. Some may be held already.
    pub async fn resume(self: &Arc<Self>, env: &Arc<E>, unfinished: Vec<(Option<LockSet>, Unfinished<E>)>) {
        let mut running = JoinSet::new();
        for (held, unfinished) in unfinished {
            let record = &unfinished.record;
            tracing::info!(pid = record.id, class = record.procedure.class_name(), "resuming procedure");
            // One record per lock at a time, by rule 3 of procedures: this does not wait.
            let locks = match held {
                Some(locks) => locks,
                None => self.locks.lock(record.procedure.locks()).await,
            };
            let (procedures, env) = (Arc::clone(self), Arc::clone(env));
            running.spawn(async move {
                procedures.run_root(env, unfinished).await;
                drop(locks);
            });
        }
        while running.join_next().await.is_some() {}
    }

    async fn run_root(self: Arc<Self>, env: Arc<E>, unfinished: Unfinished<E>) {
        let inherited = Inherited::default().with(unfinished.record.procedure.locks());
        // Without an end, the next start goes on with it.
        let _ended = self.run(env, unfinished, inherited).await;
    }

    /// An id for what is no procedure here but is one of HBase's; or the id that the nonce already has.
    ///
    /// # Errors
    /// The earlier id.
    pub fn new_id(&self, nonce: Option<Nonce>) -> std::result::Result<u64, u64> {
        let id = self.statuses.reserve(nonce, self.clock.now_ms())?;
        if nonce.is_none() {
            self.statuses.forget(&[id]);
        }
        Ok(id)
    }

    /// Whether a procedure was asked for under the nonce.
    pub fn knows(&self, nonce: Nonce) -> bool {
        self.statuses.knows(nonce)
    }

    /// What is known of a procedure; `None` when it never was, or ended long ago.
    pub fn get(&self, id: u64) -> Option<ProcedureStatus> {
        self.statuses.get(id)
    }

    /// A procedure's record as it was last made durable.
    pub fn record(&self, id: u64) -> Option<Arc<pb::Procedure>> {
        self.statuses.get(id)?.record
    }

    /// Every record, oldest first.
    pub fn records(&self) -> Vec<Arc<pb::Procedure>> {
        self.statuses.records()
    }

    /// Nothing new is taken up from now on: who asks is to come back, to the next master.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Ends when a procedure has ended since it was asked for.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.statuses.changed.notified()
    }

    /// Procedures that have not ended.
    pub fn unfinished(&self) -> Vec<u64> {
        self.statuses.unfinished()
    }

    /// Waits until a procedure ended.
    ///
    /// # Errors
    /// Its own; or that the master stopped.
    pub async fn wait_for(&self, id: u64) -> Outcome {
        loop {
            let changed = self.statuses.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            match self.get(id) {
                None => return Err(MasterError::new(ErrorKind::Io, format!("no procedure {id}"))),
                Some(ProcedureStatus { outcome: Some(outcome), .. }) => return outcome,
                Some(_) => self.lifetime.unless_stopped(changed).await?,
            }
        }
    }

    /// Forgets procedures that ended before `before`.
    ///
    /// # Errors
    /// A record cannot be removed; it is forgotten at a later start.
    pub async fn evict(&self, before: TimestampMs) -> Result<()> {
        let gone = self.statuses.evict(before);
        let store = Arc::clone(&self.store);
        let forgotten = gone.clone();
        self.files.run(move |_| Ok(forgotten.into_iter().try_for_each(|id| store.forget(id))?)).await?;
        if gone.is_empty() { Ok(()) } else { self.for_hbase.forgotten(gone).await }
    }

    /// A client wishes a procedure to end. Answers whether it is heard: the procedure ends, rolled back, before its
    /// next step that allows it.
    pub fn abort(&self, id: u64) -> bool {
        let control = self.controls.lock().get(&id).cloned();
        let Some(control) = control else { return false };
        control.abort.store(true, Ordering::SeqCst);
        control.changed.notify_one();
        true
    }

    /// Procedures that are at a step which failed, and is tried again; the oldest first.
    pub fn failing(&self) -> Vec<FailingStep> {
        let controls = self.controls.lock();
        let mut failing: Vec<FailingStep> =
            controls.values().filter_map(|control| control.failing.lock().clone()).collect();
        failing.sort_by_key(|step| step.id);
        failing
    }

    /// An operator has a procedure end where it is, as if it had succeeded: before its next step, or while it waits to
    /// try one again. So its parents end, too. Answers whether it is heard: not of one that has children that run,
    /// unless these are to end with it. Follows: `ProcedureExecutor#bypassProcedure`.
    pub fn bypass(&self, id: u64, recursive: bool) -> bool {
        let running = |status: &ProcedureStatus| status.outcome.is_none() && status.record.is_some();
        let Some(status) = self.get(id).filter(running) else { return false };
        let children: Vec<u64> = self.statuses.children(id);
        let children = children.into_iter().filter(|child| self.get(*child).is_some_and(|status| running(&status)));
        for child in children {
            if !recursive {
                return false;
            }
            self.bypass(child, true);
        }
        let controls = self.controls.lock();
        let mut next = Some((id, status));
        while let Some((id, status)) = next {
            if let Some(control) = controls.get(&id) {
                control.bypass.store(true, Ordering::SeqCst);
                control.changed.notify_one();
            }
            next = status.parent().and_then(|parent| Some((parent, self.get(parent)?)));
        }
        true
    }
}

/// Splits records into trees of what is unfinished, and the ids of children that their parents have left behind: made
/// by a step that was not made durable, or done with.
fn family_trees<E: 'static>(records: Vec<Record<E>>) -> (Vec<Unfinished<E>>, Vec<u64>) {
    let mut of_parent: BTreeMap<u64, Vec<Record<E>>> = BTreeMap::new();
    let mut roots = Vec::new();
    for record in records {
        match record.parent {
            Some(parent) => of_parent.entry(parent).or_default().push(record),
            None => roots.push(record),
        }
    }
    fn tree<E: 'static>(record: Record<E>, of_parent: &mut BTreeMap<u64, Vec<Record<E>>>) -> Unfinished<E> {
        let children = match record.phase {
            Phase::Waiting => of_parent.remove(&record.id).unwrap_or_default(),
            _ => Vec::new(),
        };
        let children = children.into_iter().map(|child| tree(child, of_parent)).collect();
        Unfinished { record, children }
    }
    let unfinished = roots.into_iter().filter(|record| record.outcome().is_none());
    let unfinished = unfinished.map(|record| tree(record, &mut of_parent)).collect();
    (unfinished, of_parent.into_values().flatten().map(|record| record.id).collect())
}
