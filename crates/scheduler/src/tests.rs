//! The promises of the crate's header, with real threads.

use super::*;
use base::SystemClock;
use base::sync::{Condvar, Mutex};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::time::Duration;

fn scheduler(settings: &[(&str, &str)]) -> Arc<Scheduler> {
    let mut config = Config::default();
    settings.iter().for_each(|(key, value)| config.set(*key, *value));
    Scheduler::new(Arc::new(SystemClock::new()), &config)
}

/// A gate at which jobs wait, without a processor.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.changed.wait(&mut is_open);
        }
    }

    fn open(&self) {
        *self.is_open.lock() = true;
        self.changed.notify_all();
    }
}

/// A job that works and pauses until it is told to end.
fn endless(ended: Arc<AtomicBool>, told: mpsc::Sender<Result<(), Dropped>>) -> Job {
    Box::new(move |run| {
        let result = run.and_then(|pause| {
            while !ended.load(Ordering::SeqCst) {
                std::hint::spin_loop();
                pause.pause()?;
            }
            Ok(())
        });
        told.send(result).expect("somebody listens");
    })
}

#[test]
fn a_client_with_a_thousand_long_jobs_does_not_shut_out_another() {
    let scheduler = scheduler(&[("hbase.regionserver.handler.count", "2")]);
    let (told, ends) = mpsc::channel();
    let ended = Arc::new(AtomicBool::new(false));
    for _ in 0..1000 {
        scheduler.submit(LaneName::Read, JobInfo::of_client(1), endless(ended.clone(), told.clone()));
    }
    for _ in 0..20 {
        let (answer, answered) = mpsc::channel();
        let job: Job = Box::new(move |run| answer.send(run.is_ok()).expect("somebody listens"));
        scheduler.submit(LaneName::Read, JobInfo::of_client(2), job);
        assert_eq!(answered.recv_timeout(Duration::from_secs(20)), Ok(true));
    }
    let stats = scheduler.stats()[LaneName::Read as usize].1;
    assert!(stats.running < 16 && stats.queued > 900, "the first client has half of the threads: {stats:?}");
    ended.store(true, Ordering::SeqCst);
    (0..1000).for_each(|_| assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Ok(Ok(()))));
}

#[test]
fn a_lane_full_of_blocked_jobs_leaves_the_others_alone_and_its_queue_has_an_end() {
    let scheduler =
        scheduler(&[("hbase.regionserver.handler.count", "1"), ("hbase.ipc.server.max.callqueue.length", "3")]);
    let gate = Arc::new(Gate::default());
    let refused = Arc::new(AtomicUsize::new(0));
    let (begun, begins) = mpsc::channel();
    for client in 0..8 {
        let (gate, refused, begun) = (gate.clone(), refused.clone(), begun.clone());
        let job: Job = Box::new(move |run| match run {
            Ok(_) => {
                begun.send(()).expect("somebody listens");
                gate.pass();
            }
            Err(Dropped::QueueFull { max_queued: 3 }) => _ = refused.fetch_add(1, Ordering::SeqCst),
            Err(other) => panic!("{other}"),
        });
        scheduler.submit(LaneName::Read, JobInfo::of_client(client), job);
        if client == 0 {
            begins.recv().expect("the first one runs at once");
        }
    }
    assert_eq!(refused.load(Ordering::SeqCst), 4, "one runs, three wait");
    for lane in [LaneName::Meta, LaneName::Write] {
        let (answer, answered) = mpsc::channel();
        let job: Job = Box::new(move |run| answer.send(run.is_ok()).expect("somebody listens"));
        scheduler.submit(lane, JobInfo::of_client(9), job);
        assert_eq!(answered.recv_timeout(Duration::from_secs(20)), Ok(true));
    }
    gate.open();
    (0..3).for_each(|_| begins.recv_timeout(Duration::from_secs(20)).expect("those that waited run"));
}

#[test]
fn whoever_is_not_waited_for_is_not_begun_and_ends_at_a_pause_point() {
    let scheduler = scheduler(&[("hbase.regionserver.handler.count", "1")]);
    let (told, ends) = mpsc::channel();
    let never = Arc::new(AtomicBool::new(false));
    let cancelled = Arc::new(AtomicBool::new(false));
    let info = |deadline_us| {
        let cancelled = cancelled.clone();
        JobInfo {
            deadline_us,
            is_cancelled: Box::new(move || cancelled.load(Ordering::SeqCst)),
            ..JobInfo::of_client(1)
        }
    };
    scheduler.submit(LaneName::Read, info(Some(20_000)), endless(never.clone(), told.clone()));
    let ended = ends.recv_timeout(Duration::from_secs(20)).expect("it ends");
    assert_eq!(ended, Err(Dropped::Interrupted(Interrupted::DeadlinePassed)));
    scheduler.submit(LaneName::Read, info(Some(1)), endless(never.clone(), told.clone()));
    let ended = ends.recv_timeout(Duration::from_secs(20)).expect("it is not begun");
    assert_eq!(ended, Err(Dropped::Interrupted(Interrupted::DeadlinePassed)));
    scheduler.submit(LaneName::Read, info(None), endless(never.clone(), told.clone()));
    cancelled.store(true, Ordering::SeqCst);
    let ended = ends.recv_timeout(Duration::from_secs(20)).expect("its client has left");
    assert_eq!(ended, Err(Dropped::Interrupted(Interrupted::ClientGone)));
    cancelled.store(false, Ordering::SeqCst);
    (0..50).for_each(|_| scheduler.submit(LaneName::Read, info(None), endless(never.clone(), told.clone())));
    scheduler.stop();
    for _ in 0..50 {
        let ended = ends.recv_timeout(Duration::from_secs(20)).expect("the scheduler stops");
        assert_eq!(ended, Err(Dropped::Interrupted(Interrupted::Stopping)));
    }
}

#[test]
fn a_job_without_room_waits_until_there_is_some() {
    let scheduler = scheduler(&[]);
    let room = Arc::new(AtomicBool::new(false));
    let (answer, answered) = mpsc::channel();
    let has_room = room.clone();
    let info = JobInfo { admit: Some(Box::new(move || has_room.load(Ordering::SeqCst))), ..JobInfo::of_client(1) };
    let (first, second) = (answer.clone(), answer);
    scheduler.submit(LaneName::Read, info, Box::new(move |_| first.send("waits").expect("somebody listens")));
    scheduler.submit(LaneName::Read, JobInfo::of_client(2), Box::new(move |_| _ = second.send("has room")));
    assert_eq!(answered.recv_timeout(Duration::from_secs(20)), Ok("has room"));
    assert!(answered.try_recv().is_err());
    room.store(true, Ordering::SeqCst);
    scheduler.kick();
    assert_eq!(answered.recv_timeout(Duration::from_secs(20)), Ok("waits"));
}

#[test]
fn a_panic_takes_no_thread_along() {
    let scheduler = scheduler(&[("hbase.regionserver.handler.count", "1")]);
    for _ in 0..5 {
        scheduler.submit(LaneName::Write, JobInfo::of_client(1), Box::new(|_| panic!("of a test")));
    }
    let (answer, answered) = mpsc::channel();
    scheduler.submit(LaneName::Write, JobInfo::of_client(1), Box::new(move |run| _ = answer.send(run.is_ok())));
    assert_eq!(answered.recv_timeout(Duration::from_secs(20)), Ok(true));
    assert_eq!(scheduler.stats()[LaneName::Write as usize].1.run, 6);
}

mod order {
    use crate::queue::{Next, Queue};
    use crate::{Dropped, JobInfo, QueueKind};
    use base::Config;
    use std::cell::RefCell;
    use std::sync::{Arc, Mutex};

    /// The numbers of `jobs` (client, priority, delay in ms, arrival in ms) in the order in which they are taken at `at_ms`.
    fn taken(kind: QueueKind, max_len: usize, jobs: &[(u64, u32, u64, u64)], at_ms: u64) -> Vec<(usize, bool)> {
        let mut queue = Queue::new(kind, max_len, &Config::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        for (number, (client, priority, delay_ms, arrival_ms)) in jobs.iter().enumerate() {
            let info = JobInfo { priority: *priority, delay_us: delay_ms * 1000, ..JobInfo::of_client(*client) };
            let order = order.clone();
            let job: crate::Job = Box::new(move |run| order.lock().expect("one thread").push((number, run.is_ok())));
            assert!(queue.push(info, job, arrival_ms * 1000).is_ok());
        }
        let told = RefCell::new(0);
        loop {
            match queue.take(at_ms * 1000, |_| true) {
                Next::Run { job, .. } => job(Ok(&base::Unpaced)),
                Next::Drop(job, why) => {
                    assert!(matches!(why, Dropped::Overloaded { .. }));
                    job(Err(why));
                }
                Next::Nothing => break,
            }
            *told.borrow_mut() += 1;
        }
        order.lock().expect("one thread").clone()
    }

    fn numbers(order: &[(usize, bool)]) -> Vec<usize> {
        order.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn fair_takes_clients_in_turn_and_fifo_does_not() {
        let jobs = [(1, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 1), (2, 0, 0, 1), (3, 0, 0, 2)];
        assert_eq!(numbers(&taken(QueueKind::Fair, 10, &jobs, 5)), [0, 3, 5, 1, 4, 2]);
        assert_eq!(numbers(&taken(QueueKind::Fifo, 10, &jobs, 5)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_priority_is_worth_some_waiting_and_no_more() {
        let jobs = [(1, 0, 0, 0), (1, 0, 0, 0), (1, 2, 0, 0), (1, 0, 0, 0)];
        assert_eq!(numbers(&taken(QueueKind::Fair, 10, &jobs, 5)), [0, 2, 1, 3]);
        let jobs = [(1, 0, 0, 0), (2, 5, 0, 3), (2, 5, 0, 30)];
        assert_eq!(numbers(&taken(QueueKind::Deadline, 10, &jobs, 40)), [0, 1, 2]);
    }

    #[test]
    fn deadline_puts_long_scans_behind() {
        let jobs = [(1, 0, 50, 0), (2, 0, 0, 10), (3, 0, 0, 100)];
        assert_eq!(numbers(&taken(QueueKind::Deadline, 10, &jobs, 200)), [1, 0, 2]);
    }

    #[test]
    fn codel_takes_the_newest_of_a_full_queue_and_drops_what_waited_long() {
        let jobs: Vec<_> = (0..9).map(|n| (1, 0, 0, n)).collect();
        let order = taken(QueueKind::Codel, 10, &jobs, 20);
        assert_eq!(numbers(&order), [8, 0, 1, 2, 3, 4, 5, 6, 7], "more than eight tenths: the newest first");
        assert!(order.iter().all(|(_, ran)| *ran), "nobody waited for long");
        // The first take ends the interval in which nobody waited for less than the target.
        let late = taken(QueueKind::Codel, 100, &jobs, 5_000);
        assert!(late.iter().skip(1).all(|(_, ran)| !*ran), "{late:?}");
    }

    #[test]
    fn codel_drops_and_turns_round_as_the_configuration_says_now() {
        let update = |queue: &mut Queue, key: &str, value: &str| {
            let mut config = Config::default();
            config.set(format!("hbase.ipc.server.callqueue.codel.{key}"), value);
            queue.update(10, &config);
        };
        let fill = |queue: &mut Queue| {
            (0..9).for_each(|n| assert!(queue.push(JobInfo::of_client(n), Box::new(|_| ()), 0).is_ok()));
        };
        let client = |next: Next| match next {
            Next::Run { info, .. } => Some(info.client),
            Next::Drop(..) => None,
            Next::Nothing => panic!("something waits"),
        };
        let mut queue = Queue::new(QueueKind::Codel, 10, &Config::default());
        fill(&mut queue);
        // More than eight tenths: the newest is first, until that is not many any more.
        assert_eq!(client(queue.take(1, |_| true)), Some(8));
        assert!(queue.push(JobInfo::of_client(8), Box::new(|_| ()), 0).is_ok());
        update(&mut queue, "lifo.threshold", "0.95");
        assert_eq!(client(queue.take(2, |_| true)), Some(0));
        // The first of an interval is never dropped; behind an interval in which all waited for long the others are, until the target is longer.
        assert_eq!(client(queue.take(5_000_000, |_| true)), Some(1));
        assert_eq!(client(queue.take(5_100_001, |_| true)), Some(2));
        assert_eq!(client(queue.take(5_100_002, |_| true)), None);
        update(&mut queue, "target.delay", "10000");
        assert_eq!(client(queue.take(5_100_003, |_| true)), Some(4));
        // Intervals of a millisecond, and the target is the default again.
        update(&mut queue, "interval", "1");
        assert_eq!(client(queue.take(5_200_002, |_| true)), Some(5));
        assert_eq!(client(queue.take(5_200_003, |_| true)), None);
        assert_eq!(client(queue.take(5_201_003, |_| true)), Some(7), "the next interval has begun");
    }
}

#[test]
fn whoever_fills_the_queue_makes_room_for_others() {
    let scheduler =
        scheduler(&[("hbase.regionserver.handler.count", "1"), ("hbase.ipc.server.max.callqueue.length", "3")]);
    let gate = Arc::new(Gate::default());
    let (told, ends) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    for (number, client) in [1, 1, 1, 1, 2, 2].into_iter().enumerate() {
        let (gate, told, begun) = (gate.clone(), told.clone(), begun.clone());
        let job: Job = Box::new(move |run| {
            let is_run = run.is_ok();
            if is_run {
                begun.send(()).expect("somebody listens");
                gate.pass();
            }
            told.send((number, is_run)).expect("somebody listens");
        });
        scheduler.submit(LaneName::Read, JobInfo::of_client(client), job);
        if number == 0 {
            begins.recv().expect("the first one runs at once");
        }
    }
    // One waits for the first client after that, and one for the second, whose next finds no client with more.
    assert_eq!(ends.recv(), Ok((3, false)), "the newest of the client that has the most");
    assert_eq!(ends.recv(), Ok((5, false)), "one more would be as many as the other has");
    gate.open();
    let mut run: Vec<_> = (0..4).map(|_| ends.recv_timeout(Duration::from_secs(20)).expect("it runs")).collect();
    run.sort_unstable();
    assert_eq!(run, [(0, true), (1, true), (2, true), (4, true)]);
}

#[test]
fn a_lane_takes_more_and_fewer_calls_when_the_configuration_is_another() {
    let length = "hbase.ipc.server.max.callqueue.length";
    let scheduler = scheduler(&[("hbase.regionserver.handler.count", "1"), (length, "3")]);
    let (gate, refused) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(0)));
    let (begun, begins) = mpsc::channel();
    let mut client = 0;
    let mut submit = |count: usize| {
        for _ in 0..count {
            let (gate, refused, begun) = (gate.clone(), refused.clone(), begun.clone());
            let job: Job = Box::new(move |run| match run {
                Ok(_) => {
                    begun.send(()).expect("somebody listens");
                    gate.pass();
                }
                Err(Dropped::QueueFull { .. }) => _ = refused.fetch_add(1, Ordering::SeqCst),
                Err(other) => panic!("{other}"),
            });
            client += 1;
            scheduler.submit(LaneName::Read, JobInfo::of_client(client), job);
        }
        refused.swap(0, Ordering::SeqCst)
    };
    let update = |value: &str| {
        let mut config = Config::default();
        config.set("hbase.regionserver.handler.count", "1");
        config.set(length, value);
        scheduler.update_configuration(&config);
    };
    submit(1);
    begins.recv_timeout(Duration::from_secs(20)).expect("the first one runs at once");
    assert_eq!(submit(4), 1, "three wait");
    update("5");
    assert_eq!(submit(3), 1, "two more wait");
    update("2");
    assert_eq!(submit(2), 2, "there is no room, and what waits stays");
    gate.open();
    (0..5).for_each(|_| begins.recv_timeout(Duration::from_secs(20)).expect("those that waited run"));
}
