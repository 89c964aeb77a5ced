//! Running one procedure, step by step, until it ends or the master does.

use super::executor::{Control, FIRST_PAUSE, FailingStep, LONGEST_PAUSE, Procedures, Unfinished};
use super::locks::Inherited;
use super::record::Phase;
use super::{BoxedProcedure, Context, Next, Outcome, Record, RemoteCall, Step};
use crate::{ErrorKind, MasterError, Result};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;
use trace::{Span, Value};

/// The master stops before the procedure ends.
struct Stopped;

/// What a step came to.
enum Stepped<E> {
    Next(Next<E>),
    Failed(MasterError),
    Bypassed,
}

/// Turns a panic inside `work` into an error of the procedure, so that it ends and gives its locks back.
async fn caught<T>(mut work: Pin<Box<dyn Future<Output = Result<T>> + Send + '_>>) -> Result<T> {
    std::future::poll_fn(move |context| {
        std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))).unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Poll::Ready(Err(MasterError::do_not_retry(format!("internal error: {what}"))))
        })
    })
    .await
}

/// One procedure while it runs.
struct Runner<E> {
    procedures: Arc<Procedures<E>>,
    context: Context<E>,
    record: Record<E>,
    control: Arc<Control>,
    inherited: Inherited,
}

impl<E: Send + Sync + 'static> Procedures<E> {
    /// Runs a procedure whose locks are held. Answers its record when it ended; `None` when the master stopped before.
    pub(super) fn run(
        self: Arc<Self>,
        env: Arc<E>,
        unfinished: Unfinished<E>,
        inherited: Inherited,
    ) -> Pin<Box<dyn Future<Output = Option<Record<E>>> + Send>> {
        Box::pin(async move {
            let Unfinished { record, children } = unfinished;
            if record.outcome().is_some() {
                return Some(record);
            }
            let span = self.span_of(&record);
            let control = Arc::new(Control::default());
            control.bypass.store(record.bypassed, Ordering::SeqCst);
            self.controls.lock().insert(record.id, Arc::clone(&control));
            if let Some(operation) = record.procedure.operation() {
                self.operations.submitted(operation);
            }
            let context = Context { env, id: record.id };
            let mut runner = Runner { procedures: Arc::clone(&self), context, record, control, inherited };
            let place = span.as_ref().map(|span| span.place().clone());
            let ended = trace::within(place, runner.run_to_end(children)).await;
            if let (Some(mut span), Some(Err(error))) = (span, runner.record.outcome()) {
                span.fail(error.kind.class(), &error.to_string());
            }
            self.controls.lock().remove(&runner.record.id);
            ended.ok().map(|()| runner.record)
        })
    }

    /// The span of a procedure, from its first step (or the one that it is resumed with) to its end: a part of its parent's, or of the call that
    /// asked for it. HBase has one for each time that a worker takes the procedure up, a part of nothing. Follows: `ProcedureSpanBuilder`.
    fn span_of(&self, record: &Record<E>) -> Option<Span> {
        let class = record.procedure.class_name();
        let name = || class.rsplit('.').next().unwrap_or(class);
        let mut span = match trace::current() {
            Some(place) => place.begin(name()),
            None => self.tracer.begin(|| name().into())?,
        };
        span.set("procId", record.id);
        // As HBase says that there is none.
        span.set("parentProcId", record.parent.map_or(Value::Number(-1), Value::from));
        Some(span)
    }
}

impl<E: Send + Sync + 'static> Runner<E> {
    async fn run_to_end(&mut self, mut resumed: Vec<Unfinished<E>>) -> std::result::Result<(), Stopped> {
        loop {
            match self.record.phase.clone() {
                Phase::Ended(_) => return Ok(()),
                Phase::Failed(error) => {
                    self.roll_back().await?;
                    self.end(Err(error)).await?;
                }
                Phase::Waiting => self.run_children(std::mem::take(&mut resumed)).await?,
                Phase::Runnable | Phase::WaitingTimeout => match self.step().await? {
                    Stepped::Next(next) => self.go_on(next).await?,
                    Stepped::Failed(error) => self.fail(error).await?,
                    Stepped::Bypassed => {
                        self.record.bypassed = true;
                        self.end(Ok(None)).await?;
                    }
                },
            }
        }
    }

    /// Does the last step until it leads somewhere.
    async fn step(&mut self) -> std::result::Result<Stepped<E>, Stopped> {
        let mut pause = FIRST_PAUSE;
        let (step, class) = (self.record.step(), self.record.procedure.class_name());
        loop {
            if self.control.bypass.load(Ordering::SeqCst) {
                return Ok(Stepped::Bypassed);
            }
            if self.control.abort.load(Ordering::SeqCst) && self.record.procedure.may_abort(step) {
                let name = class.rsplit('.').next().unwrap_or(class);
                return Ok(Stepped::Failed(MasterError::new(
                    ErrorKind::ProcedureAborted,
                    format!("{name} abort requested"),
                )));
            }
            let mut next = caught(self.record.procedure.execute(step, &self.context)).await;
            if let Ok(Next::Remote(call)) = next {
                next = self.call(step, call).await;
            }
            if !matches!(&next, Err(error) if error.is_transient()) {
                *self.control.failing.lock() = None;
            }
            match next {
                Ok(next) => return Ok(Stepped::Next(next)),
                Err(error) if error.is_stopped() => return Err(Stopped),
                // Regions are being closed under it: what it says of that is no verdict. The next start asks again.
                Err(error) if self.procedures.lifetime.is_stopping() => {
                    tracing::info!(pid = self.record.id, class, %error, "left for the next start");
                    return Err(Stopped);
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(pid = self.record.id, class, %error, "will try again");
                    self.note_failing(step, error);
                    self.pause(pause).await?;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Ok(Stepped::Failed(error)),
            }
        }
    }

    fn note_failing(&self, step: Step, error: MasterError) {
        let mut failing = self.control.failing.lock();
        let since = failing.as_ref().map_or_else(|| self.procedures.clock.now_ms(), |failing| failing.since);
        let (class, may_abort) = (self.record.procedure.class_name(), self.record.procedure.may_abort(step));
        *failing = Some(FailingStep { id: self.record.id, class, step, since, error, may_abort });
    }

    /// Has a server do something. What it says is for the procedure to understand.
    async fn call(&mut self, step: Step, call: RemoteCall) -> Result<Next<E>> {
        let procedures = Arc::clone(&self.procedures);
        let host = procedures.servers.get(&call.server);
        let changed = self.control.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let operation = self.record.procedure.remote_operation(step);
        if let Some(operation) = operation {
            procedures.operations.submitted(operation);
        }
        let begun_us = procedures.clock.monotonic_us();
        let answer = tokio::select! {
            biased;
            answer = procedures.lifetime.unless_stopped(procedures.dispatcher.call(self.record.id, host, call)) => answer?,
            // The step sees what was asked of it.
            () = changed => return Ok(Next::Unsaved(step)),
        };
        if let Some(operation) = operation {
            let took_us = procedures.clock.monotonic_us().saturating_sub(begun_us);
            procedures.operations.ended(operation, answer.is_err(), took_us);
        }
        self.record.procedure.on_remote(step, answer)
    }

    async fn go_on(&mut self, next: Next<E>) -> std::result::Result<(), Stopped> {
        match next {
            Next::Step(step) => {
                self.record.steps.push(step);
                self.record.phase = Phase::Runnable;
                self.save().await
            }
            Next::Unsaved(step) => {
                // One that is asked again is no new one.
                if self.record.step() != step {
                    self.record.steps.push(step);
                }
                Ok(())
            }
            Next::Wait(time, step) => {
                self.record.steps.push(step);
                self.record.phase = Phase::WaitingTimeout;
                self.save().await?;
                self.pause(time).await?;
                self.record.phase = Phase::Runnable;
                Ok(())
            }
            Next::Children(children, step) => {
                self.record.steps.push(step);
                if children.is_empty() {
                    return self.save().await;
                }
                self.add_children(children).await
            }
            Next::Remote(_) => {
                self.fail(MasterError::do_not_retry("internal error: a server's answer led to another call")).await
            }
            Next::Done(result) => self.end(Ok(result)).await,
        }
    }

    /// Makes children durable, then that they are waited for: those that no parent waits for never begin.
    async fn add_children(&mut self, children: Vec<BoxedProcedure<E>>) -> std::result::Result<(), Stopped> {
        let now = self.procedures.clock.now_ms();
        let (parent, owner) = (self.record.id, self.record.owner.clone());
        let new = |procedure| {
            let id = self.procedures.statuses.next_id();
            Record::new(id, Some(parent), procedure, owner.clone(), now)
        };
        let children: Vec<Record<E>> = children.into_iter().map(new).collect();
        for child in &children {
            self.save_surely(child).await?;
        }
        self.record.phase = Phase::Waiting;
        self.save().await?;
        let children = children.into_iter().map(|record| Unfinished { record, children: Vec::new() });
        self.run_children(children.collect()).await
    }

    async fn run_children(&mut self, children: Vec<Unfinished<E>>) -> std::result::Result<(), Stopped> {
        let mut running = JoinSet::new();
        for child in children {
            let (procedures, env) = (Arc::clone(&self.procedures), Arc::clone(&self.context.env));
            let own = self.inherited.missing(child.record.procedure.locks());
            let inherited = self.inherited.with(own.clone());
            running.spawn(trace::within(trace::current(), async move {
                let locks = procedures.lifetime.unless_stopped(procedures.locks.lock(own)).await.ok()?;
                let ended = procedures.run(env, child, inherited).await;
                drop(locks);
                ended
            }));
        }
        let (mut ended, mut stopped) = (Vec::new(), false);
        while let Some(child) = running.join_next().await {
            match child {
                Ok(Some(record)) => ended.push(record),
                Ok(None) => stopped = true,
                Err(panic) => tracing::error!(pid = self.record.id, %panic, "a child procedure ended inside"),
            }
        }
        if stopped {
            return Err(Stopped);
        }
        self.after_children(ended).await
    }

    async fn after_children(&mut self, mut ended: Vec<Record<E>>) -> std::result::Result<(), Stopped> {
        ended.sort_by_key(|record| record.id);
        let failure =
            ended.iter().find_map(|record| record.outcome().and_then(|outcome| outcome.as_ref().err()).cloned());
        if failure.is_some() {
            for child in ended.iter_mut().rev().filter(|child| matches!(child.outcome(), Some(Ok(_)))) {
                let context = Context { env: Arc::clone(&self.context.env), id: child.id };
                roll_back(&self.procedures, child, &context).await?;
            }
        }
        match failure {
            Some(error) => self.fail(error).await?,
            None => {
                self.record.phase = Phase::Runnable;
                self.save().await?;
            }
        }
        // Only now: until here a restart had to know how they ended.
        let ids: Vec<u64> = ended.iter().map(|record| record.id).collect();
        self.insist(|procedures| procedures.withdraw(ids.clone())).await?;
        self.procedures.statuses.forget(&ids);
        Ok(())
    }

    async fn fail(&mut self, error: MasterError) -> std::result::Result<(), Stopped> {
        self.record.phase = Phase::Failed(error);
        self.save().await
    }

    async fn roll_back(&mut self) -> std::result::Result<(), Stopped> {
        roll_back(&self.procedures, &mut self.record, &self.context).await
    }

    /// The end must be on disk before the locks go: what follows it could not bear that it runs again.
    async fn end(&mut self, outcome: Outcome) -> std::result::Result<(), Stopped> {
        let (pid, class) = (self.record.id, self.record.procedure.class_name());
        match &outcome {
            Ok(_) => tracing::info!(pid, class, "finished"),
            Err(error) => tracing::warn!(pid, class, %error, "failed"),
        }
        let has_failed = outcome.is_err();
        let error = outcome.as_ref().err().cloned();
        self.record.phase = Phase::Ended(outcome);
        self.save().await?;
        let for_hbase = Arc::clone(&self.procedures.for_hbase);
        for_hbase.ended(Arc::new(self.record.to_message()), error).await.map_err(|_| Stopped)?;
        if let Some(operation) = self.record.procedure.operation() {
            let took_ms = self.record.updated.0.saturating_sub(self.record.submitted.0);
            self.procedures.operations.ended(operation, has_failed, u64::try_from(took_ms).unwrap_or(0) * 1000);
        }
        Ok(())
    }

    async fn save(&mut self) -> std::result::Result<(), Stopped> {
        self.record.updated = self.procedures.clock.now_ms();
        self.save_surely(&self.record).await
    }

    async fn save_surely(&self, record: &Record<E>) -> std::result::Result<(), Stopped> {
        self.insist(|procedures| async move { procedures.save(record).await }).await
    }

    /// Repeats what must succeed before anything else is done.
    async fn insist<'a, F: Future<Output = Result<()>>>(
        &'a self,
        attempt: impl Fn(&'a Procedures<E>) -> F,
    ) -> std::result::Result<(), Stopped> {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = attempt(&self.procedures).await {
            tracing::warn!(pid = self.record.id, %error, "cannot record the state of a procedure, will try again");
            self.procedures.lifetime.pause(pause).await.map_err(|_| Stopped)?;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    /// Waits, unless a client asks something of the procedure.
    async fn pause(&self, time: Duration) -> std::result::Result<(), Stopped> {
        let changed = self.control.changed.notified();
        tokio::select! {
            biased;
            () = changed => Ok(()),
            ended = self.procedures.lifetime.pause(time) => ended.map_err(|_| Stopped),
        }
    }
}

/// Undoes every step of a procedure that was begun, the last one first.
async fn roll_back<E: Send + Sync + 'static>(
    procedures: &Procedures<E>,
    record: &mut Record<E>,
    context: &Context<E>,
) -> std::result::Result<(), Stopped> {
    for step in record.steps.clone().into_iter().rev() {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = caught(record.procedure.roll_back(step, context)).await {
            if error.is_stopped() || procedures.lifetime.is_stopping() {
                return Err(Stopped);
            }
            tracing::warn!(pid = record.id, class = record.procedure.class_name(), step, %error, "cannot roll back, will try again");
            procedures.lifetime.pause(pause).await.map_err(|_| Stopped)?;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
    Ok(())
}
