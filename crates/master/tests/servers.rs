//! Several region servers: one crashes, regions move, servers are taken out of use.

use crate::common::{Catalog, Life, bytes, caller, start_with, table_name};
use basalt_master::ServerLogs;
use basalt_master::cluster::{RegionState, TableState};
use base::Config;
use fs::MemVolume;
use model::{RegionInfo, ServerName};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

async fn three_servers() -> Life {
    let life = start_with(&MemVolume::new(), &Catalog::default(), Config::default(), 3).await.expect("starts");
    life.create("t", &["f"], &["d", "h", "m", "q", "u"]).await;
    life
}

/// What is to be done at once is done then.
async fn others_have_their_turns() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

fn location(life: &Life, info: &RegionInfo) -> Option<ServerName> {
    life.master.cluster().region(info.encoded_name()).and_then(|node| node.location.clone())
}

/// A server of the three that has no hbase:meta, and regions of the table; and these.
fn victim(life: &Life) -> (ServerName, Vec<RegionInfo>) {
    let host = life.hosts.iter().find(|host| !host.open.lock().contains_key("1588230740")).expect("one of three");
    let on_it = |info: &RegionInfo| location(life, info).as_ref() == Some(&host.server);
    let regions: Vec<RegionInfo> = life.regions("t").into_iter().filter(on_it).collect();
    assert!(!regions.is_empty(), "regions are spread");
    (host.server.clone(), regions)
}

fn holder_of_meta(life: &Life) -> ServerName {
    let has_meta = |host: &&std::sync::Arc<crate::common::FakeHost>| host.open.lock().contains_key("1588230740");
    life.hosts.iter().find(has_meta).expect("meta is open").server.clone()
}

/// The server answers nothing any more.
fn kill(life: &Life, server: &ServerName) {
    let host = life.hosts.iter().find(|host| host.server == *server).expect("a server");
    host.open.lock().clear();
}

fn all_open_elsewhere(life: &Life, dead: &ServerName) {
    for info in life.regions("t") {
        let at = location(life, &info).expect("open somewhere");
        assert_ne!(at, *dead, "{}", info.name_string());
        let host = life.hosts.iter().find(|host| host.server == at).expect("a server");
        assert!(host.open.lock().contains_key(&**info.encoded_name()), "{}", info.name_string());
        let state = life.master.cluster().region(info.encoded_name()).map(|node| node.state);
        assert_eq!(state, Some(RegionState::Open));
    }
}

#[tokio::test]
async fn the_regions_of_a_crashed_server_are_opened_elsewhere_after_its_logs_are_split() {
    let life = three_servers().await;
    let (dead, regions) = victim(&life);
    kill(&life, &dead);
    let gate = life.splitter.gate.write().await;
    let id = life.master.server_crashed(&dead).await.expect("accepted");
    others_have_their_turns().await;
    for info in &regions {
        assert_eq!(location(&life, info).as_ref(), Some(&dead), "nothing is opened before the logs are split");
    }
    drop(gate);
    life.master.wait_for(id).await.expect("recovered");
    assert_eq!(*life.splitter.split.lock(), [(dead.clone(), ServerLogs::Others)]);
    all_open_elsewhere(&life, &dead);
}

#[tokio::test]
async fn the_crash_of_the_server_with_meta_brings_meta_back_first() {
    let life = three_servers().await;
    let dead = holder_of_meta(&life);
    kill(&life, &dead);
    life.splitter.failures.store(2, Ordering::SeqCst);
    let id = life.master.server_crashed(&dead).await.expect("accepted");
    life.master.wait_for(id).await.expect("recovered");
    assert_eq!(*life.splitter.split.lock(), [(dead.clone(), ServerLogs::Meta), (dead.clone(), ServerLogs::Others)]);
    assert_ne!(holder_of_meta(&life), dead);
    all_open_elsewhere(&life, &dead);
    // And hbase:meta can be written.
    life.create("after", &["f"], &[]).await;
}

/// The ensemble had lost its quorum, and the master ended before the node was written: the next one opened hbase:meta elsewhere, beside the server
/// that had it (seed 110450 of the simulated cluster).
#[tokio::test]
async fn hbase_meta_is_opened_where_the_next_master_will_look_for_it() {
    let life = three_servers().await;
    life.hosts.iter().for_each(|host| host.remote.store(true, Ordering::SeqCst));
    let dead = holder_of_meta(&life);
    kill(&life, &dead);
    let is_written = Arc::new(AtomicBool::new(false));
    let too_early = Arc::new(AtomicBool::new(false));
    for host in &life.hosts {
        let (is_written, too_early) = (is_written.clone(), too_early.clone());
        *host.at_open.lock() = Some(Box::new(move |info| {
            too_early.fetch_or(info.table.is_meta() && !is_written.load(Ordering::SeqCst), Ordering::SeqCst);
        }));
    }
    let mut told = life.notes.meta_locations.subscribe();
    let gate = life.notes.meta_gate.write().await;
    let id = life.master.server_crashed(&dead).await.expect("accepted");
    let server = told.wait_for(|all| !all.is_empty()).await.expect("told")[0].clone();
    others_have_their_turns().await;
    is_written.store(true, Ordering::SeqCst);
    drop(gate);
    life.master.wait_for(id).await.expect("recovered");
    assert!(!too_early.load(Ordering::SeqCst), "nobody is asked to open it before the node is written");
    assert_eq!(holder_of_meta(&life), server);
    all_open_elsewhere(&life, &dead);
}

/// It was given up after five tries, and everything that was to be written there waited for ever (seed 70451 of the simulated cluster).
#[tokio::test]
async fn meta_is_tried_until_it_opens() {
    let life = three_servers().await;
    let dead = holder_of_meta(&life);
    let tries = Arc::new(AtomicUsize::new(0));
    for host in &life.hosts {
        host.broken.lock().insert("hbase:meta".to_owned());
        let (tries, hosts) = (tries.clone(), life.hosts.clone());
        *host.at_open.lock() = Some(Box::new(move |info| {
            if info.table.is_meta() && tries.fetch_add(1, Ordering::SeqCst) == 8 {
                hosts.iter().for_each(|host| host.broken.lock().clear());
            }
        }));
    }
    kill(&life, &dead);
    let id = life.master.server_crashed(&dead).await.expect("accepted");
    life.master.wait_for(id).await.expect("recovered");
    all_open_elsewhere(&life, &dead);
    life.create("after", &["f"], &[]).await;
}

#[tokio::test]
async fn a_table_of_a_crashed_server_is_disabled_when_its_logs_are_split() {
    let life = three_servers().await;
    let (dead, regions) = victim(&life);
    kill(&life, &dead);
    let gate = life.splitter.gate.write().await;
    let crash = life.master.server_crashed(&dead).await.expect("accepted");
    let disable = life.master.disable_table(&table_name("t"), &caller()).await.expect("accepted");
    while life.master.cluster().state(&table_name("t")) != Some(TableState::Disabling) {
        tokio::task::yield_now().await;
    }
    others_have_their_turns().await;
    assert_eq!(life.master.cluster().state(&table_name("t")), Some(TableState::Disabling), "it waits for the logs");
    drop(gate);
    life.master.wait_for(disable).await.expect("disabled");
    life.master.wait_for(crash).await.expect("recovered");
    for info in &regions {
        assert_eq!(location(&life, info), None);
        assert!(life.hosts.iter().all(|host| !host.open.lock().contains_key(&**info.encoded_name())));
    }
}

#[tokio::test]
async fn the_only_server_cannot_be_given_up() {
    let life = crate::common::fresh().await;
    let error = life.master.server_crashed(&life.host.server).await.expect_err("the only one");
    assert!(error.message.contains("is the only one online"), "{error}");
    life.create("t", &["f"], &[]).await;
    life.check();
}

#[tokio::test]
async fn two_crashes_one_after_the_other_leave_all_on_the_third() {
    let life = three_servers().await;
    let (first, _) = victim(&life);
    let second = holder_of_meta(&life);
    kill(&life, &first);
    kill(&life, &second);
    let one = life.master.server_crashed(&first).await.expect("accepted");
    let two = life.master.server_crashed(&second).await.expect("accepted");
    life.master.wait_for(one).await.expect("recovered");
    life.master.wait_for(two).await.expect("recovered");
    all_open_elsewhere(&life, &first);
    all_open_elsewhere(&life, &second);
}

/// The power fails after each call while a crash is handled: the next start has every region open.
#[tokio::test]
async fn a_crash_procedure_is_finished_after_a_restart() {
    for stop_after in 0i64.. {
        let life = three_servers().await;
        let (dead, _) = victim(&life);
        kill(&life, &dead);
        life.machine.switch_off_after(stop_after);
        let machine = std::sync::Arc::clone(&life.machine);
        let crash = async {
            if let Ok(id) = life.master.server_crashed(&dead).await {
                let _ended = life.master.wait_for(id).await;
            } else {
                machine.is_off().await;
            }
        };
        tokio::select! {
            () = machine.is_off() => {}
            () = crash => {}
        }
        let whole = !machine.went_off();
        life.machine.switch_off_after(0);
        life.master.stop();
        let crashed = life.memory.crash(&base::Rng::seeded(stop_after as u64), fs::CrashPolicy::LoseUnsynced);
        let catalog = std::sync::Arc::new(parking_lot::Mutex::new(life.catalog.lock().clone()));
        let next = start_with(&crashed, &catalog, Config::default(), 1).await.expect("starts");
        let settled = async {
            while next.master.unfinished_procedures() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), settled).await.expect("what was begun ends");
        next.check();
        next.master.stop();
        if whole {
            assert!(stop_after > 20, "{stop_after}");
            break;
        }
    }
}

#[tokio::test]
async fn a_split_of_a_region_whose_server_crashes_is_rolled_back() {
    let life = three_servers().await;
    let (dead, regions) = victim(&life);
    kill(&life, &dead);
    let gate = life.splitter.gate.write().await;
    let crash = life.master.server_crashed(&dead).await.expect("accepted");
    let row = Some(bytes(&format!("{}1", String::from_utf8_lossy(&regions[0].start_key))));
    let split = life.master.split_region(regions[0].encoded_name(), row, &caller()).await.expect("accepted");
    drop(gate);
    life.master.wait_for(split).await.expect_err("its server is gone");
    life.master.wait_for(crash).await.expect("recovered");
    all_open_elsewhere(&life, &dead);
}

/// Whether its server has it still is not known. A merge that was given up opened such a region elsewhere, without what the server's log had.
#[tokio::test]
async fn a_region_whose_close_is_in_doubt_is_opened_nowhere_else() {
    let life = three_servers().await;
    let regions = life.regions("t");
    let (first, second) = (&regions[0], &regions[1]);
    let server = location(&life, first).expect("it is open");
    let host = life.hosts.iter().find(|host| host.server == server).expect("one of three");
    let (tell, mut asked) = tokio::sync::mpsc::unbounded_channel();
    *host.at_open.lock() = Some(Box::new(move |info| _ = tell.send(info.encoded_name().to_string())));
    host.unreached.store(true, Ordering::SeqCst);
    let names = [first, second].map(|info| info.encoded_name().to_string());
    let merge = life.master.merge_regions(&names, false, &caller()).await.expect("accepted");
    for _ in 0..3 {
        let name = asked.recv().await.expect("it is tried where it was");
        assert_eq!(name, **first.encoded_name());
        let elsewhere = life.hosts.iter().filter(|other| other.server != server);
        assert!(!elsewhere.clone().any(|other| other.open.lock().contains_key(&name)), "two servers may have it");
    }
    host.unreached.store(false, Ordering::SeqCst);
    life.master.wait_for(merge).await.expect_err("it was given up");
    assert!(host.open.lock().contains_key(&**first.encoded_name()));
    assert_eq!(location(&life, first), Some(server));
}
