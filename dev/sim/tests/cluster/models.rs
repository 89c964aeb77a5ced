//! The models of HDFS and of an ensemble keep to what the real ones do, and to their own rules.

#[path = "../../../../crates/fs/tests/shared/mod.rs"]
mod contract;
#[path = "../../../../crates/coordination/tests/shared/mod.rs"]
mod sessions;
#[path = "../../../../crates/fs/tests/shared/several.rs"]
mod several;

use basalt_sim::cluster::ensemble::Ensemble;
use basalt_sim::cluster::gate::Fate;
use basalt_sim::cluster::hdfs::{Hdfs, NameNode};
use basalt_sim::cluster::process::Process;
use basalt_sim::trace::Trace;
use base::ManualClock;
use coordination::{Claim, Coordinator};
use fs::{FilePath, Settled, TEMPORARY_PREFIX, Volume};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn idle(name: &str) -> Process {
    let main = |_| Box::pin(std::future::pending()) as basalt_sim::cluster::process::Main;
    Process::start(name, &Arc::new(Trace::default()), Arc::new(ManualClock::new(0)), main)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the contract waits in real time")]
fn the_model_of_hdfs_keeps_the_contract_of_a_volume() {
    let (hdfs, ends) = (Hdfs::new(1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // It waits for leases' recoveries, in its own time.
        scope.spawn(|| {
            for now_ms in (0..).step_by(1_000).take_while(|_| !ends.load(Ordering::Relaxed)) {
                hdfs.set_now_ms(now_ms);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        contract::contract(&hdfs.view());
        ends.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_model_of_hdfs_says_what_hdfs_says() {
    for seed in 1..30 {
        let (hdfs, mut now_ms) = (Hdfs::new(seed), 0);
        let (a, b) = (idle("a"), idle("b"));
        several::play(&hdfs.mount(a.gate().clone(), 1), &hdfs.mount(b.gate().clone(), 2), || {
            now_ms += 250;
            hdfs.set_now_ms(now_ms);
        });
    }
}

#[test]
fn what_a_dead_writer_had_sent_is_there_up_to_some_byte_and_what_was_acknowledged_is_whole() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 1..60 {
        let hdfs = Hdfs::new(seed);
        let process = idle("a");
        let mut file = hdfs.mount(process.gate().clone(), 1).create(&FilePath::new("log")).expect("created");
        file.append(b"acked").and_then(|()| file.flush()).expect("flushed");
        file.append(b"sent").expect("gathered");
        process.gate().at_call(1, Fate::Dies);
        assert!(file.flush().is_err(), "it died there");
        drop(file);
        let view = hdfs.view();
        view.settle(&FilePath::new("log")).expect("its recovery begins");
        hdfs.set_now_ms(10_000);
        let Settled::Final { len_bytes } = view.settle(&FilePath::new("log")).expect("settled") else { panic!("late") };
        let bytes = view.read(&FilePath::new("log")).expect("read");
        assert!(bytes.starts_with(b"acked") && b"ackedsent".starts_with(&bytes) && bytes.len() as u64 == len_bytes);
        lengths.insert(len_bytes);
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [5, 6, 7, 8, 9], "everything between");
}

#[test]
fn a_name_node_that_is_down_or_in_safe_mode_changes_nothing_and_a_lost_answer_may_have() {
    let (hdfs, process) = (Hdfs::new(1), idle("a"));
    let (volume, path) = (hdfs.mount(process.gate().clone(), 1), FilePath::new("dir"));
    hdfs.set_name_node(NameNode::Down);
    assert_eq!(volume.create_dir_all(&path).expect_err("down").kind(), ErrorKind::ConnectionRefused);
    assert!(volume.exists(&path).is_err());
    hdfs.set_name_node(NameNode::SafeMode);
    assert_eq!(volume.create_dir_all(&path).expect_err("safe").kind(), ErrorKind::ResourceBusy);
    assert!(!volume.exists(&path).expect("it answers"));
    hdfs.set_name_node(NameNode::Up);
    hdfs.lose_answers(1);
    assert_eq!(volume.create_dir_all(&path).expect_err("lost").kind(), ErrorKind::TimedOut);
    assert!(volume.exists(&path).expect("it answers"));
}

/// Runs `work` in a process of the ensemble, for as much time as it takes.
fn with_sessions<F: Future<Output = ()> + Send + 'static>(
    ensemble: &Ensemble,
    work: impl FnOnce([Arc<basalt_sim::cluster::ensemble::Session>; 2]) -> F,
) {
    let (mut process, other) = (idle("one"), idle("other"));
    let sessions = [process.gate(), other.gate()].map(|gate| ensemble.session(gate.clone()));
    for session in sessions.clone() {
        process.handle().spawn(async move { session.keep().await });
    }
    let done = Arc::new(Mutex::new(false));
    let (told, work) = (done.clone(), work(sessions));
    process.handle().spawn(async move {
        work.await;
        *told.lock() = true;
    });
    for slice in 1..6_000 {
        ensemble.set_now_ms(slice * 10);
        process.live(10);
        assert_eq!(process.panicked(), None);
        if *done.lock() {
            return;
        }
    }
    panic!("it does not end in a minute");
}

fn ensemble(seed: u64) -> Ensemble {
    Ensemble::new(seed, Arc::new(ManualClock::new(0)), Duration::from_secs(10))
}

#[test]
fn the_model_of_an_ensemble_says_what_zookeeper_says() {
    for seed in 1..10 {
        let model = ensemble(seed);
        model.tree().ensure("/base").expect("made");
        let cut = model.clone();
        with_sessions(&model, |[one, other]| async move {
            // The ensemble does not hear of it any more.
            let end = async || cut.set_cut("one", true);
            sessions::play(&*one, &*other, "/base", end).await;
        });
        assert_eq!(model.ended_sessions(), 1);
    }
}

#[test]
fn no_session_ends_without_a_quorum_and_one_that_is_over_is_told_when_it_is_connected_again() {
    let model = ensemble(1);
    let world = model.clone();
    with_sessions(&model, |[one, other]| async move {
        let pause = |ms| tokio::time::sleep(Duration::from_millis(ms));
        assert_eq!(one.claim("/a", b"one").await, Ok(Claim::Ours));
        world.set_quorum(false);
        pause(15_000).await;
        world.set_quorum(true);
        assert_eq!(other.latest_value("/a").await.map(|value| value.is_some()), Ok(true));
        // Its member lost the leader, and answers as things were.
        world.set_behind("one", true);
        pause(12_000).await;
        assert_eq!(other.latest_value("/a").await, Ok(None), "the leader has not heard of it");
        assert_eq!(one.value("/a").await.map(|value| value.is_some()), Ok(true), "an old answer");
        world.set_behind("one", false);
        one.over().await;
        assert!(one.value("/a").await.is_err());
    });
    assert_eq!(model.ended_sessions(), 1);
}
