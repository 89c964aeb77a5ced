//! The engine with procedures made for it: what happens when one waits, fails, is killed, or is left by its server.

use super::executor::Parts;
use super::store::ProcedureStore;
use super::*;
use crate::HostError;
use crate::files::Files;
use crate::host::RegionHost;
use crate::lifetime::Lifetime;
use crate::procedure::for_hbase::ForHBase;
use crate::servers::Servers;
use base::ManualClock;
use bytes::Bytes;
use fs::{CrashPolicy, MemVolume, Volume};
use model::ServerName;
use parking_lot::Mutex;
use proto::pb;
use std::sync::atomic::{AtomicI64, Ordering};

/// What the procedures did, in order.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn add(&self, what: String) {
        self.0.lock().push(what);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// A procedure that does what its name says, by letters: each letter is a step.
///
/// `s` goes on durably, `u` without that; `c` has two children that go on and end, `x` two of which one fails, `n` one
/// that has two; `w` waits; `r` asks the server; `t` fails once for a while; `f` fails; `p` panics; `l` waits for ever
/// by failing for a while.
#[derive(Debug)]
struct Toy {
    name: String,
    letters: String,
    failed_once: bool,
}

const CLASS: &str = "test.Toy";

const KINDS: &[ProcedureKind<Log>] = &[ProcedureKind {
    class_name: CLASS,
    read: |data| {
        let state: pb::DeleteNamespaceStateData = unpack(data)?;
        let (name, letters) = state.namespace_name.split_once(':').ok_or_else(|| malformed("no colon"))?;
        Ok(toy(name, letters))
    },
}];

fn toy(name: &str, letters: &str) -> BoxedProcedure<Log> {
    Box::new(Toy { name: name.to_owned(), letters: letters.to_owned(), failed_once: false })
}

fn server() -> ServerName {
    ServerName::new("server", 1, 1)
}

impl Toy {
    fn child(&self, number: u32, letters: &str) -> BoxedProcedure<Log> {
        toy(&format!("{}.{number}", self.name), letters)
    }

    fn ask(&self) -> Next<Log> {
        Next::Remote(RemoteCall {
            server: server(),
            operation: Box::new(|_, _| Box::pin(async { Ok(Sent::Accepted) })),
            timeout: Some(Duration::from_secs(60)),
        })
    }
}

impl Procedure<Log> for Toy {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let namespace_name = format!("{}:{}", self.name, self.letters);
        vec![any(
            "DeleteNamespaceStateData",
            &pb::DeleteNamespaceStateData { namespace_name, namespace_descriptor: None },
        )]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        vec![(Resource::Namespace("all".into()), Mode::Exclusive)]
    }

    fn first_step(&self) -> Step {
        0
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context<Log>) -> BoxFuture<'a, Result<Next<Log>>> {
        Box::pin(async move {
            let letter = self.letters.chars().nth(step as usize);
            context.env.add(format!("{} {}", self.name, letter.unwrap_or('.')));
            let next = step + 1;
            Ok(match letter {
                None => Next::Done(Some(Bytes::from(self.name.clone()))),
                Some('s') => Next::Step(next),
                Some('u') => Next::Unsaved(next),
                Some('c') => Next::Children(vec![self.child(1, "s"), self.child(2, "u")], next),
                Some('x') => Next::Children(vec![self.child(1, "s"), self.child(2, "f")], next),
                Some('n') => Next::Children(vec![self.child(1, "c")], next),
                Some('w') => Next::Wait(Duration::from_secs(100), next),
                Some('r') => self.ask(),
                Some('t') if self.failed_once => Next::Step(next),
                Some('t' | 'l') => {
                    self.failed_once = true;
                    return Err(MasterError::new(ErrorKind::Io, "for a while"));
                }
                Some('p') => panic!("on purpose"),
                Some(letter) => return Err(MasterError::do_not_retry(format!("{} did {letter}", self.name))),
            })
        })
    }

    fn on_remote(&mut self, step: Step, answer: std::result::Result<Bytes, RemoteFailure>) -> Result<Next<Log>> {
        match answer {
            Ok(_) => Ok(Next::Step(step + 1)),
            Err(failure) => Err(MasterError::do_not_retry(failure)),
        }
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context<Log>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            context.env.add(format!("{} -{}", self.name, self.letters.chars().nth(step as usize).unwrap_or('.')));
            Ok(())
        })
    }

    fn may_abort(&self, step: Step) -> bool {
        self.letters.chars().nth(step as usize) == Some('l')
    }
}

/// A server that is only asked for its name.
struct Server;

impl RegionHost for Server {
    fn server_name(&self) -> ServerName {
        server()
    }
    fn open_region(
        &self,
        _: model::RegionInfo,
        _: Arc<model::TableDescriptor>,
    ) -> BoxFuture<'_, std::result::Result<u64, HostError>> {
        unreachable!("no region here")
    }
    fn close_region(&self, _: &str) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn flush_region(&self, _: &str, _: Vec<Bytes>) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn compact_region(&self, _: &str, _: Option<Bytes>, _: bool) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn split_point(&self, _: &str) -> BoxFuture<'_, std::result::Result<Option<Bytes>, HostError>> {
        unreachable!("no region here")
    }
    fn split_region_files(
        &self,
        _: &model::RegionInfo,
        _: Arc<model::TableDescriptor>,
        _: [model::RegionInfo; 2],
    ) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn snapshot_region(&self, _: &str, _: &str, _: bool) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn snapshot_closed_region(
        &self,
        _: model::RegionInfo,
        _: Arc<model::TableDescriptor>,
        _: &str,
    ) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn mutate(&self, _: &str, _: Vec<model::Mutation>) -> BoxFuture<'_, std::result::Result<(), HostError>> {
        unreachable!("no region here")
    }
    fn scan(&self, _: &str, _: model::Scan) -> BoxFuture<'_, std::result::Result<cell::CellBuffer, HostError>> {
        unreachable!("no region here")
    }
    fn region_loads(&self) -> Vec<model::status::RegionLoad> {
        Vec::new()
    }
}

/// An engine over a volume, and what an earlier one left.
struct Run {
    procedures: Arc<Procedures<Log>>,
    lifetime: Arc<Lifetime>,
    log: Arc<Log>,
    resuming: tokio::task::JoinHandle<()>,
}

fn start(volume: &MemVolume) -> Run {
    let volume: Arc<dyn Volume> = Arc::new(volume.clone());
    let read = |message: &pb::Procedure| Record::from_message(message, KINDS);
    let (store, records) = ProcedureStore::open(Arc::clone(&volume), read).expect("records");
    let lifetime = Arc::<Lifetime>::default();
    let files = Files::new(volume);
    let parts = Parts {
        store,
        for_hbase: Arc::new(ForHBase::new(None, 0, files.clone(), Arc::clone(&lifetime))),
        largest_id: 0,
        files,
        lifetime: Arc::clone(&lifetime),
        clock: Arc::new(ManualClock::new(1000)),
        servers: Arc::new(Servers::new(vec![Arc::new(Server)])),
        locks: Arc::default(),
        operations: Arc::default(),
        tracer: Arc::default(),
    };
    let (procedures, unfinished) = Procedures::new(parts, records);
    let log = Arc::<Log>::default();
    let (engine, env) = (Arc::clone(&procedures), Arc::clone(&log));
    let unfinished = unfinished.into_iter().map(|unfinished| (None, unfinished)).collect();
    let resuming = tokio::spawn(async move { engine.resume(&env, unfinished).await });
    Run { procedures, lifetime, log, resuming }
}

impl Run {
    async fn submit(&self, letters: &str) -> u64 {
        let locks = vec![(Resource::Namespace("all".into()), Mode::Exclusive)];
        let submission = Submission { owner: "me".into(), nonce: None, locks };
        let procedure = toy("a", letters);
        self.procedures.submit(&self.log, submission, async { Ok(procedure) }).await.expect("accepted")
    }

    /// Lets everything happen that needs no time.
    async fn settle(&self) {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_waits_for_its_children_and_theirs() {
    let run = start(&MemVolume::new());
    let id = run.submit("sn").await;
    assert_eq!(run.procedures.wait_for(id).await, Ok(Some(Bytes::from("a"))));
    let lines = run.log.lines();
    assert_eq!(lines[..4], ["a s", "a n", "a.1 c", "a.1.1 s"]);
    assert_eq!(lines[lines.len() - 2..], ["a.1 .", "a ."]);
    run.settle().await;
    assert_eq!(run.procedures.records().len(), 1, "children are forgotten when they are done with");
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_child_rolls_back_its_siblings_and_then_its_parent() {
    let run = start(&MemVolume::new());
    let id = run.submit("sx").await;
    let error = run.procedures.wait_for(id).await.expect_err("a child failed");
    assert_eq!(error.message, "a.2 did f");
    let lines = run.log.lines();
    let undone: Vec<&str> = lines.iter().filter(|line| line.contains('-')).map(String::as_str).collect();
    assert_eq!(undone, ["a.2 -f", "a.1 -.", "a.1 -s", "a -.", "a -x", "a -s"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_is_tried_again_and_a_panic_fails_only_its_procedure() {
    let run = start(&MemVolume::new());
    let id = run.submit("t").await;
    run.procedures.wait_for(id).await.expect("the second time");
    assert_eq!(run.log.lines(), ["a t", "a t", "a ."]);
    let panicked = run.submit("p").await;
    let error = run.procedures.wait_for(panicked).await.expect_err("panicked");
    assert_eq!(error.message, "internal error: on purpose");
    let next = run.submit("s").await;
    run.procedures.wait_for(next).await.expect("the locks were given back");
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_for_its_time_and_shown() {
    let run = start(&MemVolume::new());
    let begun = tokio::time::Instant::now();
    let id = run.submit("w").await;
    run.settle().await;
    assert_eq!(run.procedures.records()[0].state, pb::ProcedureState::WaitingTimeout as i32);
    run.procedures.wait_for(id).await.expect("ends");
    assert!(begun.elapsed() >= Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn a_server_reports_the_end_of_what_it_was_handed() {
    let run = start(&MemVolume::new());
    let id = run.submit("r").await;
    run.settle().await;
    assert!(!run.procedures.dispatcher.report(id + 1, Ok(Bytes::new())), "nobody waits for that");
    assert!(run.procedures.dispatcher.report(id, Ok(Bytes::new())));
    run.procedures.wait_for(id).await.expect("done");
    assert!(!run.procedures.dispatcher.report(id, Ok(Bytes::new())), "reported twice");
}

#[tokio::test(start_paused = true)]
async fn the_death_of_a_server_fails_what_it_was_handed() {
    let run = start(&MemVolume::new());
    let id = run.submit("r").await;
    run.settle().await;
    run.procedures.dispatcher.server_died(&ServerName::new("another", 1, 1));
    run.settle().await;
    assert_eq!(run.procedures.unfinished(), [id]);
    run.procedures.dispatcher.server_died(&server());
    let error = run.procedures.wait_for(id).await.expect_err("its server died");
    assert_eq!(error.message, "region server server,1,1 is not online");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_reports_is_waited_for_no_longer_than_agreed() {
    let run = start(&MemVolume::new());
    let id = run.submit("r").await;
    let error = run.procedures.wait_for(id).await.expect_err("too late");
    assert_eq!(error.message, "region server server,1,1 did not report within 60000 ms");
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_heard_where_all_can_be_rolled_back() {
    let run = start(&MemVolume::new());
    let id = run.submit("sl").await;
    run.settle().await;
    assert!(run.procedures.abort(id));
    let error = run.procedures.wait_for(id).await.expect_err("aborted");
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::ProcedureAborted, "Toy abort requested"));
    assert_eq!(run.log.lines().last().map(String::as_str), Some("a -s"));
    assert!(!run.procedures.abort(id), "it has ended");
}

/// The power fails after each change of the volume; the next start ends what was begun, in the same way.
#[tokio::test(start_paused = true)]
async fn a_kill_at_any_time_leaves_nothing_half_done() {
    for letters in ["sus", "sc", "scs", "ncs", "sx", "snx"] {
        let whole = start(&MemVolume::new());
        let id = whole.submit(letters).await;
        let expected = whole.procedures.wait_for(id).await;
        let mut kills = 0;
        for kill_after in 0.. {
            let volume = MemVolume::new();
            let run = start(&volume);
            let left = Arc::new(AtomicI64::new(kill_after));
            let (snapshot, calls) = (Arc::new(Mutex::new(None)), Arc::clone(&left));
            let taken = Arc::clone(&snapshot);
            let memory = volume.clone();
            volume.watch(Some(Arc::new(move |_, _| {
                if calls.fetch_sub(1, Ordering::SeqCst) == 0 {
                    *taken.lock() = Some(memory.snapshot());
                }
            })));
            let id = run.submit(letters).await;
            run.procedures.wait_for(id).await.ok();
            run.settle().await;
            run.lifetime.stop();
            let Some(memory) = snapshot.lock().take() else { break };
            kills += 1;
            for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll] {
                let crashed = memory.crash(&base::Rng::seeded(kill_after as u64), policy);
                let next = start(&crashed);
                let what = format!("{letters}, killed after {kill_after} calls, {policy:?}");
                let Run { procedures, resuming, log, .. } = next;
                resuming.await.expect("no panic");
                assert_eq!(procedures.unfinished(), Vec::<u64>::new(), "{what}");
                let records = procedures.records();
                assert!(records.len() <= 1, "{what}: children are left: {records:?}");
                if let Some(record) = records.first() {
                    assert_eq!(procedures.wait_for(record.proc_id).await, expected, "{what}: {:?}", log.lines());
                }
            }
        }
        assert!(kills > 8, "{letters}: {kills} kills");
    }
}
