//! The self-healing of a master over servers of other processes.

use crate::common::{LIMIT, Place, Rows, ServerProcess, no_logs_of, row, two_servers, until};
use basalt_leader::Leader;
use client::Put;
use master::healing::{Finding, Kind, Verdict};
use model::{Get, RegionInfo};
use std::sync::Arc;

async fn heal(leader: &Leader) {
    for _ in 0..2 {
        let ran = tokio::time::timeout(LIMIT, leader.master().run_healing_chore()).await.expect("in time");
        assert!(ran, "it runs");
    }
    until("what was begun ends", async || leader.master().unfinished_procedures() == 0).await;
}

fn mended(leader: &Leader) -> Vec<Kind> {
    let report = leader.master().hbck_report().expect("it has run");
    let is_mended = |finding: &&Finding| matches!(finding.verdict, Verdict::Mended(_));
    assert!(report.findings.iter().all(|finding| is_mended(&finding)), "{:?}", report.findings);
    report.findings.iter().map(|finding| finding.kind).collect()
}

fn has(server: &ServerProcess, info: &RegionInfo) -> bool {
    server.server().regions().iter().any(|region| region.info().encoded_name() == info.encoded_name())
}

/// What clients of both were acknowledged is there, in the memory of one and of the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_region_that_two_servers_have_open_is_served_by_one_with_what_both_were_told() {
    let mut place = Place::new().await;
    let (_master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(80).await;
    heal(&leader).await;
    assert_eq!(mended(&leader), [], "nothing is wrong");

    let location = rows.regions_on(&servers[0].name).await.remove(0);
    let info = location.region;
    let table = leader.master().cluster().descriptor(&rows.table).expect("known");
    let server = servers[1].server().clone();
    let opened = info.clone();
    tokio::task::spawn_blocking(move || server.open_region(&opened, table)).await.expect("no panic").expect("opened");
    // In any region: none begins beyond its first letter.
    let told = if info.start_key.is_empty() { b"0".to_vec() } else { [&info.start_key[..], b"zz"].concat() };
    let put = Put::new(told.clone()).add("f", "q", "told to the other").build();
    let open = servers[1].server().regions();
    let region: Arc<_> =
        open.iter().find(|open| open.info().encoded_name() == info.encoded_name()).expect("open").clone();
    tokio::task::spawn_blocking(move || region.apply(&[put]).expect("applied").commit.wait().expect("durable"))
        .await
        .expect("no panic");
    drop(open);
    until("both report it", async || {
        leader.master().run_hbck_chore().await;
        leader.master().hbck_report().is_some_and(|report| report.inconsistent_regions.len() == 1)
    })
    .await;

    heal(&leader).await;
    assert_eq!(mended(&leader), [Kind::MultiDeployed]);
    // A server reports a region as open, and takes calls for it when that was answered.
    let count = || servers.iter().filter(|server| has(server, &info)).count();
    until("one of them serves it", async || count() > 0).await;
    assert_eq!(count(), 1);
    rows.connection.forget_locations();
    let got = rows.connection.table(&rows.table).get(&Get::new(told)).await.expect("an answer");
    assert_eq!(got.value(b"f", b"q"), Some(&b"told to the other"[..]));
    let table = rows.connection.table(&rows.table);
    for n in 0..80 {
        let row = row(n);
        let got = table.get(&Get::new(row.clone())).await.expect("an answer");
        assert_eq!(got.value(b"f", b"q"), Some(format!("value{n}").as_bytes()), "{row}");
    }
}

/// hbck2's `bypass` where it does not help.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_server_whose_recovery_is_bypassed_is_recovered_with_every_row() {
    let mut place = Place::new().await;
    let (_master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(200).await;
    let [first, second] = servers;
    let (other, with_meta) = if rows.meta_is_on(&first.name).await { (second, first) } else { (first, second) };
    let dead = other.name.clone();
    // Nobody can read its logs for a while.
    place.volume.inject(fs::mem::Fault {
        op: Some(fs::mem::Op::Open),
        path_contains: Some(dead.to_string()),
        nth: 1,
        kind: fs::FaultKind::Io,
        forever: true,
    });
    other.kill().await;
    until("its recovery fails, and is tried again", async || leader.master().failing_procedures() > 0).await;
    // Somebody has it end all the same: what it had still to do is done by nobody.
    let admin = rows.connection.admin();
    let ids: Vec<u64> = (1..100).collect();
    let bypassed = admin.hbck().bypass_procedures(&ids, 1, true, true).await.expect("answered");
    assert!(bypassed.contains(&true));
    until("it has ended", async || leader.master().unfinished_procedures() == 0).await;
    place.volume.clear_faults();
    assert!(rows.regions_on(&with_meta.name).await.len() < 8, "its regions are open nowhere");
    heal(&leader).await;
    assert!(mended(&leader).contains(&Kind::UnknownServer));
    until("the other has all", async || rows.regions_on(&with_meta.name).await.len() == 8).await;
    rows.expect_all().await;
    no_logs_of(&place.volume, &dead);
}
