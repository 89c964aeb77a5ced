//! A cluster of Basalt's own: regions placed, moved, split; servers and masters that die; servers that come back from the dead.

use crate::common::{Place, Rows, ServerProcess, no_logs_of, two_servers, until};
use basalt_leader::Leader;
use bytes::Bytes;
use fs::mem::Op;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use parking_lot::{Condvar, Mutex};
use proto::methods::Method;
use proto::pb;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The one without hbase:meta, then the one with it.
async fn by_meta(rows: &Rows, [first, second]: [ServerProcess; 2]) -> (ServerProcess, ServerProcess) {
    if rows.meta_is_on(&first.name).await { (second, first) } else { (first, second) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn regions_are_placed_moved_and_split_on_servers_of_other_processes() {
    let mut place = Place::new().await;
    let (_master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    for server in &servers {
        assert_eq!(rows.regions_on(&server.name).await.len(), 4, "{}", server.name);
    }
    rows.put(200).await;
    rows.expect_all().await;

    let admin = rows.connection.admin();
    let region = rows.regions_on(&servers[0].name).await.remove(0).region;
    let name = Bytes::copy_from_slice(region.encoded_name().as_bytes());
    admin.move_region(&name, Some(&servers[1].name)).await.expect("moved");
    assert_eq!(rows.regions_on(&servers[1].name).await.len(), 5);
    rows.put(40).await;
    rows.expect_all().await;

    admin.flush(&rows.table).await.expect("flushed");
    let row = Bytes::from([&region.start_key[..], b"00100"].concat());
    admin.split_region(region.name(), Some(&row)).await.expect("accepted");
    until("there are nine regions", async || rows.regions().await.len() == 9).await;
    rows.put(40).await;
    rows.expect_all().await;

    admin.snapshot("s", &rows.table).await.expect("a snapshot of regions on both");
    admin.major_compact(&rows.table).await.expect("compacting");
    rows.make_and_drop("other").await;
    rows.expect_all().await;
    // A server's last report may be of the table that is gone.
    until("no server has a region that the master does not know", async || {
        assert!(leader.master().run_hbck_chore().await);
        leader.master().hbck_report().expect("it ran").orphan_regions_on_servers.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_killed_server_had_is_served_by_the_others_with_every_row() {
    let mut place = Place::new().await;
    let (_master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(200).await;
    rows.connection.admin().flush(&rows.table).await.expect("flushed");
    rows.put(100).await;
    let (other, with_meta) = by_meta(&rows, servers).await;

    let dead = other.name.clone();
    other.kill().await;
    until("one server has all", async || rows.regions_on(&with_meta.name).await.len() == 8).await;
    rows.expect_all().await;
    until("it is recovered", async || leader.master().unfinished_procedures() == 0).await;
    no_logs_of(&place.volume, &dead);

    let third = place.region_server().await;
    rows.put(100).await;
    let dead = with_meta.name.clone();
    with_meta.kill().await;
    until("the third has all", async || third.regions() >= 8 && leader.master().unfinished_procedures() == 0).await;
    assert!(rows.meta_is_on(&third.name).await);
    rows.expect_all().await;
    rows.put(40).await;
    rows.make_and_drop("other").await;
    rows.expect_all().await;
    no_logs_of(&place.volume, &dead);
}

/// A server that was a little slower than the others got what those had closed, closed it, and was told to open it again, for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn when_the_cluster_goes_down_nothing_is_opened_elsewhere_and_the_next_start_finds_every_row() {
    let mut place = Place::new().await;
    let (master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(200).await;
    let (other, with_meta) = by_meta(&rows, servers).await;
    leader.go_down();
    let has = with_meta.regions();
    other.kill().await;
    until("one server is left", async || leader.servers().len() == 1).await;
    rows.make_and_drop("other").await;
    assert_eq!((with_meta.regions(), leader.master().unfinished_procedures()), (has, 0));
    with_meta.kill().await;
    leader.servers_gone(Duration::from_secs(60)).await;
    assert!(leader.servers().is_empty());
    master.kill(Some(leader)).await;

    let (_master, leader, servers) = two_servers(&mut place).await;
    until("all is open", async || servers.iter().map(ServerProcess::regions).sum::<usize>() >= 8).await;
    rows.expect_all().await;
    assert_eq!(leader.master().unfinished_procedures(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_takes_over_and_regions_stay_where_they_are() {
    let mut place = Place::new().await;
    let (master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(100).await;
    // Where regions are open already, it waits for no more servers.
    for key in ["interval", "timeout"] {
        place.config.set(format!("hbase.master.wait.on.regionservers.{key}"), "600000");
    }
    let mut backup = place.backup_master().await;
    until("the active master knows who waits", async || leader.master().views().backup_masters().len() == 1).await;
    let before = rows.regions().await;
    master.kill(Some(leader)).await;
    // Nobody leads, and the data is served.
    rows.put(20).await;
    let leader = backup.leads().await;
    assert!(place.tree.children("/hbase/backup-masters").is_ok_and(|names| names.is_empty()));
    let after = rows.regions().await;
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before.region, &before.server), (&after.region, &after.server), "nothing was opened anew");
    }
    rows.expect_all().await;
    rows.make_and_drop("other").await;
    assert_eq!(leader.servers().len(), 2);
    assert_eq!(servers.iter().map(ServerProcess::regions).sum::<usize>(), 8 + leader_regions(&leader));
}

/// A master ordered a region closed that its predecessor had a server open, took it for closed because it was not open yet, and for open when it was;
/// then the server closed it, as ordered, and nobody opened it again (seed 61354 of the simulated cluster).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_region_that_a_master_has_closed_while_it_is_opened_for_the_one_before_is_served_in_the_end() {
    let mut place = Place::new().await;
    let (master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(80).await;
    let (other, with_meta) = by_meta(&rows, servers).await;
    let region = rows.regions_on(&with_meta.name).await.remove(0).region;
    let mut backup = place.backup_master().await;
    // Who opens it next stands still.
    let family = rootdir::region_dir(&region).join("f");
    let (stands, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new((Mutex::new(false), Condvar::new())));
    let (seen, gate) = (stands.clone(), goes_on.clone());
    place.volume.watch(Some(Arc::new(move |op, path| {
        if op == Op::List && *path == family {
            seen.store(true, Ordering::SeqCst);
            let mut is_open = gate.0.lock();
            gate.1.wait_while(&mut is_open, |is_open| !*is_open);
        }
    })));
    let moving = tokio::spawn({
        let (admin, name) = (rows.connection.admin(), Bytes::copy_from_slice(region.encoded_name().as_bytes()));
        let to = other.name.clone();
        async move { admin.move_region(&name, Some(&to)).await }
    });
    until("the other server opens it", async || stands.load(Ordering::SeqCst)).await;
    master.kill(Some(leader)).await;
    moving.abort();
    // Its successor looks each second whether the region is open there.
    let let_it_go_on = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        *goes_on.0.lock() = true;
        goes_on.1.notify_all();
    };
    let (leader, ()) = tokio::join!(backup.leads(), let_it_go_on);
    until("nothing is left to do", async || leader.master().unfinished_procedures() == 0).await;
    rows.expect_all().await;
    assert_eq!(other.regions() + with_meta.regions(), 8 + leader_regions(&leader));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_joins_gets_its_share_from_the_balancer_while_rows_are_written() {
    let mut place = Place::new().await;
    for key in ["decision", "rejection"] {
        place.config.set(format!("hbase.master.balancer.{key}.buffer.enabled"), "true");
    }
    let (_master, leader, _servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(200).await;
    let third = place.region_server().await;
    until("the third is known", async || leader.servers().len() == 3).await;
    let connection = place.connect();
    let admin = connection.admin();
    // Moves without anybody's asking would be in the way of counting them.
    admin.set_balancer(false, true).await.expect("switched off");
    assert!(!admin.balance(false, false).await.expect("asked").balancer_ran);

    let mut dry = admin.balance(false, true).await.expect("asked");
    until("it has reported", async || {
        dry = admin.balance(false, true).await.expect("asked");
        dry.moves_calculated > Some(0)
    })
    .await;
    assert!(dry.balancer_ran && dry.moves_executed == Some(0), "{dry:?}");
    assert_eq!(third.regions(), 0, "a dry run moves nothing");

    admin.set_balancer(true, true).await.expect("switched on");
    let (moved, ()) = tokio::join!(admin.balance(false, false), rows.put(200));
    let moved = moved.expect("balanced");
    assert!(moved.balancer_ran && moved.moves_executed == moved.moves_calculated, "{moved:?}");
    until("all have arrived", async || leader.master().unfinished_procedures() == 0).await;
    let all = 8 + leader_regions(&leader);
    assert!((all / 3..=all / 3 + 1).contains(&third.regions()), "{} of {all}", third.regions());
    rows.expect_all().await;

    let decision = admin.balancer_decisions(1).await.expect("told").remove(0);
    assert!(decision.computed_total_cost < decision.init_total_cost && decision.computed_steps > 0, "{decision:?}");
    assert!(decision.initial_function_costs.contains(" RegionCountSkewCostFunction : "), "{decision:?}");
    let to_third = format!(" , destination: {}", third.name);
    assert!(
        decision.region_plans.iter().any(|plan| plan.starts_with("table: t , region: ") && plan.ends_with(&to_third))
    );
    let again = admin.balance(false, false).await.expect("asked");
    assert_eq!((again.balancer_ran, again.moves_calculated), (true, Some(0)));
    let rejection = admin.balancer_rejections(1).await.expect("told").remove(0);
    assert!(rejection.reason.contains("<= "), "{rejection:?}");
    let name = "org.apache.hadoop.hbase.master.balancer.RegionCountSkewCostFunction cost:";
    assert!(rejection.cost_func_info[0].starts_with(name), "{rejection:?}");
    rows.put(40).await;
    rows.expect_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_balancer_evens_out_by_itself_and_then_leaves_regions_where_they_are() {
    let mut place = Place::new().await;
    place.config.set("hbase.balancer.period", "300");
    let (_master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(100).await;
    let third = place.region_server().await;
    let all = 8 + leader_regions(&leader);
    until("the third has its share", async || third.regions() >= all / 3).await;
    until("all have arrived", async || leader.master().unfinished_procedures() == 0).await;
    rows.put(100).await;
    let before = rows.regions().await;
    let runs = leader.master().views().balancer().1.expect("it ran").at_ms;
    until("it ran ten times more", async || {
        leader.master().views().balancer().1.is_some_and(|run| run.at_ms > runs + 3_000)
    })
    .await;
    let after = rows.regions().await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before.region, &before.server), (&after.region, &after.server), "it was moved without cause");
    }
    assert_eq!(servers.iter().map(ServerProcess::regions).sum::<usize>() + third.regions(), all);
    rows.expect_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn regions_of_a_new_table_are_spread_although_a_server_has_nothing_yet() {
    let mut place = Place::new().await;
    let (_master, leader, servers) = two_servers(&mut place).await;
    // No balancer may even it out.
    place.connect().admin().set_balancer(false, true).await.expect("switched off");
    let admin = place.connect();
    let many = TableName::parse("many").expect("a name");
    let splits: Vec<Bytes> = (1..20).map(|n| Bytes::from(format!("{n:02}"))).collect();
    let descriptor = |name: &TableName| TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    admin.admin().create_table(&descriptor(&many), &splits).await.expect("made");
    let third = place.region_server().await;
    until("the third takes regions", async || leader.master().views().servers().0.contains(&third.name)).await;
    let rows = Rows::create(&place).await;
    for name in servers.iter().map(|server| &server.name).chain([&third.name]) {
        let count = rows.regions_on(name).await.len();
        assert!((2..=3).contains(&count), "{count} of eight regions are on {name}");
    }
}

/// `tests/inventory/online.csv` names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_balancer_goes_by_the_configuration_of_now() {
    let mut place = Place::new().await;
    for key in ["decision", "rejection"] {
        place.config.set(format!("hbase.master.balancer.{key}.buffer.enabled"), "true");
    }
    let (_master, leader, _servers) = two_servers(&mut place).await;
    let _rows = Rows::create(&place).await;
    let third = place.region_server().await;
    let connection = place.connect();
    let admin = connection.admin();
    let set = |pairs: &[(&str, &str)]| {
        let mut config = place.config.clone();
        pairs.iter().for_each(|(key, value)| config.set(format!("hbase.master.balancer.{key}"), *value));
        leader.master().update_configuration(&config);
    };
    let dry = async || admin.balance(false, true).await.expect("asked").moves_calculated.expect("a number");
    until("there is something to move", async || dry().await > 0).await;
    set(&[("stochastic.moveCost", "1000000")]);
    assert_eq!(dry().await, 0, "no move is worth that");
    let steps = async || {
        assert!(dry().await > 0);
        admin.balancer_decisions(1).await.expect("told").remove(0).computed_steps
    };
    set(&[("stochastic.maxSteps", "200")]);
    assert_eq!(steps().await, 200);
    let all = (8 + leader_regions(&leader)) as u64;
    set(&[("stochastic.stepsPerRegion", "7")]);
    assert_eq!(steps().await, all * 3 * 7);
    set(&[("stochastic.stepsPerRegion", "7"), ("stochastic.maxSteps", "3000"), ("stochastic.runMaxSteps", "true")]);
    assert_eq!(steps().await, 3000);
    let decisions = async || admin.balancer_decisions(250).await.expect("told").len();
    set(&[("decision.buffer.enabled", "false")]);
    let before = decisions().await;
    assert!(dry().await > 0);
    assert_eq!(decisions().await, before);

    set(&[]);
    admin.balance(false, false).await.expect("balanced");
    until("all have arrived", async || leader.master().unfinished_procedures() == 0).await;
    assert!(third.regions() > 0);
    let rejections = async || {
        let before = admin.balancer_rejections(250).await.expect("told").len();
        assert_eq!(dry().await, 0);
        admin.balancer_rejections(250).await.expect("told").len() - before
    };
    assert_eq!(rejections().await, 1, "it is even enough");
    set(&[("stochastic.minCostNeedBalance", "0")]);
    assert_eq!(rejections().await, 0, "something better is looked for in any case");
}

/// The next master used not to know.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_decommissioned_server_gets_no_regions_from_the_next_master_either() {
    let mut place = Place::new().await;
    let (master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(100).await;
    let gone = servers[0].name.clone();
    let connection = place.connect();
    let admin = connection.admin();
    admin.decommission_servers(std::slice::from_ref(&gone), true).await.expect("decommissioned");
    until("it has nothing", async || servers[0].regions() == 0).await;
    assert_eq!(place.tree.children("/hbase/draining").expect("the nodes"), [gone.to_string()]);
    let mut backup = place.master();
    master.kill(Some(leader)).await;
    let leader = backup.leads().await;
    assert_eq!(leader.master().views().draining_servers(), std::slice::from_ref(&gone));
    rows.make_and_drop("other").await;
    admin.balance(false, false).await.expect("asked");
    assert_eq!(servers[0].regions(), 0);
    admin.recommission_server(&gone, &[]).await.expect("recommissioned");
    assert!(place.tree.children("/hbase/draining").expect("the nodes").is_empty());
    until("the balancer gives it some", async || {
        admin.balance(false, false).await.expect("asked");
        servers[0].regions() > 0
    })
    .await;
    // Whoever writes the node says so, too.
    place.tree.ensure(&format!("/hbase/draining/{gone}")).expect("made");
    until("it is draining", async || !leader.master().views().draining_servers().is_empty()).await;
    rows.expect_all().await;
}

/// Regions of the system's tables.
fn leader_regions(leader: &Leader) -> usize {
    let cluster = leader.master().cluster();
    cluster.regions().filter(|node| node.info.table.is_system()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_dies_while_nobody_leads_is_recovered_by_the_next_master() {
    let mut place = Place::new().await;
    let (master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(200).await;
    let (other, with_meta) = by_meta(&rows, servers).await;
    master.kill(Some(leader)).await;
    let dead = with_meta.name.clone();
    with_meta.kill().await;
    place.config.set("hbase.master.wait.on.regionservers.mintostart", "1");
    let mut next = place.master();
    let leader = next.leads().await;
    rows.expect_all().await;
    assert_eq!(rows.regions_on(&other.name).await.len(), 8);
    rows.put(40).await;
    rows.make_and_drop("other").await;
    rows.expect_all().await;
    until("it is recovered", async || leader.master().unfinished_procedures() == 0).await;
    no_logs_of(&place.volume, &dead);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_was_taken_for_dead_is_told_so() {
    let mut place = Place::new().await;
    let (_master, leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    rows.put(100).await;
    let (other, with_meta) = by_meta(&rows, servers).await;
    other.lose_session();
    until("it hears of its death", async || other.expelled().is_some()).await;
    let why = other.expelled().expect("it heard");
    assert!(why.contains("YouAreDeadException") && why.contains("as dead server"), "{why}");
    until("the other has all", async || with_meta.regions() >= 8 && leader.master().unfinished_procedures() == 0).await;
    rows.connection.forget_locations();
    rows.expect_all().await;
    other.kill().await;
}

/// A master that was taken for dead and still answers must not take what its successor's orders brought. Follows:
/// `MasterRpcServices#throwOnOldMaster`.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_later_master_ordered_is_not_reported_to_an_earlier_one() {
    let mut place = Place::new().await;
    let (_master, _leader, [first, _second]) = two_servers(&mut place).await;
    let link = place.link();
    let result = |active_ms| pb::RemoteProcedureResult {
        proc_id: 1 << 60,
        status: pb::remote_procedure_result::Status::Success as i32,
        error: None,
        initiating_master_active_time: active_ms,
    };
    let done = async |active_ms| {
        let request = pb::ReportProcedureDoneRequest { result: vec![result(active_ms)] };
        link.call::<pb::ReportProcedureDoneResponse>(Method::RegionServerStatusReportProcedureDone, &request).await
    };
    let moved = async |active_ms| {
        let transition = pb::RegionStateTransition { initiating_master_active_time: active_ms, ..Default::default() };
        let request = pb::ReportRegionStateTransitionRequest {
            server: convert::to_proto::server_name(&first.name),
            transition: vec![transition],
        };
        let method = Method::RegionServerStatusReportRegionStateTransition;
        link.call::<pb::ReportRegionStateTransitionResponse>(method, &request).await
    };
    for refused in [done(Some(i64::MAX)).await.map(drop), moved(Some(i64::MAX)).await.map(drop)] {
        let refused = refused.expect_err("there is a later master");
        assert!(refused.is("MasterNotRunningException"), "{refused}");
        assert!(refused.to_string().contains("Another master is active"), "{refused}");
    }
    done(Some(1)).await.expect("of an earlier master");
    done(None).await.expect("of one that does not say");
    assert!(!moved(Some(1)).await.expect_err("it names no region").is("MasterNotRunningException"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_splits_a_log_is_told_what_needs_it_no_more() {
    let mut place = Place::new().await;
    let (_master, _leader, servers) = two_servers(&mut place).await;
    let mut rows = Rows::create(&place).await;
    let link = place.link();
    let flushed = async |region: &str| {
        let request = pb::GetLastFlushedSequenceIdRequest { region_name: Bytes::copy_from_slice(region.as_bytes()) };
        let method = Method::RegionServerStatusGetLastFlushedSequenceId;
        link.call::<pb::GetLastFlushedSequenceIdResponse>(method, &request).await.expect("an answer")
    };
    assert_eq!(
        flushed("0123456789abcdef0123456789abcdef").await,
        pb::GetLastFlushedSequenceIdResponse { last_flushed_sequence_id: u64::MAX, ..Default::default() }
    );
    rows.put(80).await;
    let (other, with_meta) = by_meta(&rows, servers).await;
    let region = rows.regions_on(&other.name).await.remove(0).region;
    let written = || {
        let open = other.server().regions();
        let region = open.iter().find(|open| open.info().encoded_name() == region.encoded_name());
        region.expect("it is there").stats().flushed_seq_id
    };
    let before = written();
    rows.connection.admin().flush(&rows.table).await.expect("flushed");
    let after = written();
    assert!(after > before);
    until("the flush is reported", async || {
        let answer = flushed(region.encoded_name()).await;
        let of_families: Vec<_> =
            answer.store_last_flushed_sequence_id.iter().map(|s| (&s.family_name[..], s.sequence_id)).collect();
        answer.last_flushed_sequence_id == after && of_families == [(&b"f"[..], after)]
    })
    .await;
    // Edits behind it are in the log alone: they are not counted, not even when the server is dead.
    rows.put(80).await;
    other.kill().await;
    until("its regions are elsewhere", async || rows.regions_on(&with_meta.name).await.len() == 8).await;
    rows.expect_all().await;
}
