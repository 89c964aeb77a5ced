//! The self-healing: a test for each row of its table in docs/operations/cluster.md. The machine goes off at every call of every remedy, too.

use crate::common::{Catalog, EVER, Life, bytes, caller, start, start_with, table, table_name};
use crate::crash::{copy, settle, store_files};
use crate::service::{Connected, connect};
use basalt_master::cluster::{RegionState, TableState};
use basalt_master::healing::{Finding, Kind, Verdict};
use basalt_master::{ServerLogs, meta};
use base::{Config, Rng, TimestampMs};
use convert::to_proto;
use fs::mem::Fault;
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use model::{RegionInfo, ServerName};
use pb::region_specifier::RegionSpecifierType;
use proto::methods::Method;
use proto::pb;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const META: &str = "1588230740";

/// Two runs: what the first finds, the second acts on.
async fn heal(life: &Life) {
    for _ in 0..2 {
        assert!(life.master.run_healing_chore().await, "it runs");
        settle(life).await;
    }
}

fn findings(life: &Life) -> Vec<Finding> {
    life.master.hbck_report().expect("it has run").findings.clone()
}

/// Of this kind, and what became of it.
fn only(life: &Life, kind: Kind) -> Finding {
    let mut found = findings(life);
    found.retain(|finding| finding.kind == kind);
    assert_eq!(found.len(), 1, "{kind:?}: {:?}", findings(life));
    found.remove(0)
}

fn is_mended(life: &Life, kind: Kind) -> Finding {
    let finding = only(life, kind);
    assert!(matches!(finding.verdict, Verdict::Mended(_)), "{finding}");
    finding
}

/// It is named, and nothing is done.
fn is_left(life: &Life, kind: Kind) -> Finding {
    let finding = only(life, kind);
    assert!(matches!(finding.verdict, Verdict::ForAPerson(_)), "{finding}");
    finding
}

/// A further run finds nothing that is wrong.
async fn all_is_well(life: &Life) {
    assert!(life.master.run_healing_chore().await, "it runs");
    let wrong: Vec<String> = findings(life)
        .iter()
        .filter(|finding| !matches!(finding.verdict, Verdict::Mended(_)))
        .map(ToString::to_string)
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

fn location(life: &Life, info: &RegionInfo) -> Option<ServerName> {
    life.master.cluster().region(info.encoded_name()).expect("known").location.clone()
}

/// The servers that have a region open.
fn open_at(life: &Life, info: &RegionInfo) -> Vec<ServerName> {
    let has = |host: &&Arc<crate::common::FakeHost>| host.open.lock().contains_key(&**info.encoded_name());
    life.hosts.iter().filter(has).map(|host| host.server.clone()).collect()
}

async fn two_servers() -> Life {
    let life = start_with(&MemVolume::new(), &Catalog::default(), Config::default(), 2).await.expect("starts");
    life.create("t", &["f"], &["d", "h", "m", "q", "u"]).await;
    life
}

/// A server that has no hbase:meta, and answers nothing any more.
fn kill_one(life: &Life) -> ServerName {
    let host = life.hosts.iter().find(|host| !host.open.lock().contains_key(META)).expect("one of two");
    host.open.lock().clear();
    host.server.clone()
}

fn all_open(life: &Life) {
    for info in life.regions("t") {
        let at = location(life, &info).expect("somewhere");
        assert_eq!(open_at(life, &info), [at], "{}", info.name_string());
        let state = life.master.cluster().region(info.encoded_name()).map(|node| node.state);
        assert_eq!(state, Some(RegionState::Open));
    }
}

async fn bypass(c: &Connected, id: u64) {
    let bypass = pb::BypassProcedureRequest { proc_id: vec![id], wait_time: Some(1), ..Default::default() };
    let answer: pb::BypassProcedureResponse = c.call(Method::HbckBypassProcedure, &bypass).await.expect("answered");
    assert_eq!(answer.bypassed, [true]);
    c.life.master.wait_for(id).await.expect("ended");
}

#[tokio::test]
async fn a_server_whose_recovery_was_broken_off_is_recovered() {
    let c = connect(two_servers().await, "HbckService").await;
    let dead = kill_one(&c.life);
    c.life.splitter.failures.store(EVER, Ordering::SeqCst);
    let crash = c.life.master.server_crashed(&dead).await.expect("accepted");
    bypass(&c, crash).await;
    c.life.splitter.failures.store(0, Ordering::SeqCst);
    assert_eq!(*c.life.splitter.split.lock(), [], "its logs are not split, and its regions open nowhere");
    assert!(c.life.master.run_healing_chore().await);
    assert_eq!(only(&c.life, Kind::UnknownServer).verdict, Verdict::Watched);
    heal(&c.life).await;
    assert_eq!(is_mended(&c.life, Kind::UnknownServer).subject, dead.to_string());
    assert_eq!(*c.life.splitter.split.lock(), [(dead.clone(), ServerLogs::Others)]);
    all_open(&c.life);
    all_is_well(&c.life).await;
}

/// The server is dead and recovered, and its regions are still said to be on it: their table was not to serve then, and is now.
async fn leave_regions_on(c: &Connected, dead: &ServerName) {
    let set = async |state: TableState| {
        let request = pb::SetTableStateInMetaRequest {
            table_name: to_proto::table_name(&table_name("t")),
            table_state: pb::TableState { state: state as i32 },
        };
        let _: pb::GetTableStateResponse = c.call(Method::HbckSetTableStateInMeta, &request).await.expect("set");
    };
    set(TableState::Disabled).await;
    let crash = c.life.master.server_crashed(dead).await.expect("accepted");
    c.life.master.wait_for(crash).await.expect("recovered");
    set(TableState::Enabled).await;
}

/// Regions were left on a dead server, and then somebody had the dead servers cleared.
#[tokio::test]
async fn regions_of_a_server_that_nobody_knows_are_opened_elsewhere_after_its_logs_are_split() {
    let c = connect(two_servers().await, "HbckService").await;
    let dead = kill_one(&c.life);
    leave_regions_on(&c, &dead).await;
    c.life.splitter.split.lock().clear();
    let master = c.reconnect("MasterService").await;
    let clear = pb::ClearDeadServersRequest { server_name: vec![to_proto::server_name(&dead)] };
    let stay: pb::ClearDeadServersResponse =
        master.call(Method::MasterClearDeadServers.info(), &clear, None).await.expect("answered").decode().expect("it");
    assert_eq!(stay.server_name, []);
    heal(&c.life).await;
    assert_eq!(is_mended(&c.life, Kind::UnknownServer).subject, dead.to_string());
    assert_eq!(*c.life.splitter.split.lock(), [(dead.clone(), ServerLogs::Others)], "before they are opened");
    all_open(&c.life);
    all_is_well(&c.life).await;
}

#[tokio::test]
async fn regions_left_on_a_recovered_server_are_opened() {
    let c = connect(two_servers().await, "HbckService").await;
    let dead = kill_one(&c.life);
    leave_regions_on(&c, &dead).await;
    heal(&c.life).await;
    assert!(findings(&c.life).iter().all(|finding| finding.kind == Kind::NotDeployed), "{:?}", findings(&c.life));
    all_open(&c.life);
    all_is_well(&c.life).await;
}

async fn set_region_state(c: &Connected, info: &RegionInfo, state: RegionState) {
    let region_specifier = pb::RegionSpecifier {
        r#type: RegionSpecifierType::EncodedRegionName as i32,
        value: bytes(info.encoded_name()),
    };
    let states = vec![pb::RegionSpecifierAndState { region_specifier, state: state as i32 }];
    let _: pb::SetRegionStateInMetaResponse =
        c.call(Method::HbckSetRegionStateInMeta, &pb::SetRegionStateInMetaRequest { states }).await.expect("set");
}

#[tokio::test]
async fn a_region_in_transition_that_no_procedure_moves_is_opened() {
    for state in [RegionState::Opening, RegionState::Closing, RegionState::Splitting, RegionState::Offline] {
        let c = connect(two_servers().await, "HbckService").await;
        let info = c.life.regions("t").remove(2);
        let host = c.life.hosts.iter().find(|host| Some(&host.server) == location(&c.life, &info).as_ref());
        if state != RegionState::Closing {
            host.expect("online").open.lock().remove(&**info.encoded_name());
        }
        set_region_state(&c, &info, state).await;
        heal(&c.life).await;
        assert_eq!(is_mended(&c.life, Kind::StuckRegion).subject, info.name_string());
        all_open(&c.life);
        all_is_well(&c.life).await;
    }
}

/// Closing it by hand is an operator's right.
#[tokio::test]
async fn a_region_that_is_closed_stays_closed() {
    let c = connect(two_servers().await, "HbckService").await;
    let info = c.life.regions("t").remove(2);
    let region = pb::RegionSpecifier {
        r#type: RegionSpecifierType::EncodedRegionName as i32,
        value: bytes(info.encoded_name()),
    };
    let unassign = pb::UnassignsRequest { region: vec![region], r#override: None };
    let answer: pb::UnassignsResponse = c.call(Method::HbckUnassigns, &unassign).await.expect("answered");
    c.life.master.wait_for(answer.pid[0]).await.expect("closed");
    heal(&c.life).await;
    heal(&c.life).await;
    is_left(&c.life, Kind::NotDeployed);
    assert_eq!(open_at(&c.life, &info), []);
}

/// A split was bypassed after its point of no return.
#[tokio::test]
async fn a_region_that_was_never_open_is_opened() {
    let (life, lost) = lost(&[1], |_, _| {}).await;
    life.host.broken.lock().insert(lost[0].encoded_name().to_string());
    heal(&life).await;
    is_mended(&life, Kind::Hole);
    life.host.broken.lock().clear();
    let c = connect(life, "HbckService").await;
    set_region_state(&c, &lost[0], RegionState::Closed).await;
    heal(&c.life).await;
    is_mended(&c.life, Kind::StuckRegion);
    all_is_well(&c.life).await;
    c.life.check();
}

#[tokio::test]
async fn what_fails_three_times_is_left_for_a_person_and_tried_again_later() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &[]).await;
    let info = life.regions("t").remove(0);
    let file = rootdir::region_dir(&info).join(".regioninfo");
    life.memory.put_file(&file, b"junk");
    life.memory.inject(Fault {
        op: Some(fs::mem::Op::Create),
        path_contains: Some(info.encoded_name().to_string()),
        nth: 1,
        kind: FaultKind::Io,
        forever: true,
    });
    heal(&life).await;
    assert!(matches!(only(&life, Kind::NoRegionInfoFile).verdict, Verdict::Later(_)));
    heal(&life).await;
    is_left(&life, Kind::NoRegionInfoFile);
    life.memory.clear_faults();
    heal(&life).await;
    is_left(&life, Kind::NoRegionInfoFile);
    life.clock.advance_ms(3_600_000);
    heal(&life).await;
    is_mended(&life, Kind::NoRegionInfoFile);
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_region_that_is_open_on_two_servers_is_closed_on_both_and_opened_on_one() {
    let life = two_servers().await;
    let info = life.regions("t").remove(1);
    open_twice(&life, &info);
    assert_eq!(open_at(&life, &info).len(), 2);
    heal(&life).await;
    assert_eq!(is_mended(&life, Kind::MultiDeployed).subject, info.name_string());
    all_open(&life);
    all_is_well(&life).await;
}

/// The other server has it, too.
fn open_twice(life: &Life, info: &RegionInfo) {
    let open = life.hosts.iter().find_map(|host| host.open.lock().get(&**info.encoded_name()).cloned()).expect("open");
    for host in &life.hosts {
        host.open.lock().insert(info.encoded_name().to_string(), open.clone());
    }
}

#[tokio::test]
async fn a_region_that_is_open_elsewhere_or_nowhere_is_opened_where_hbase_meta_says() {
    let life = two_servers().await;
    let regions = life.regions("t");
    open_twice(&life, &regions[1]);
    let said = location(&life, &regions[1]).expect("open");
    life.hosts
        .iter()
        .find(|host| host.server == said)
        .expect("online")
        .open
        .lock()
        .remove(&**regions[1].encoded_name());
    life.hosts.iter().for_each(|host| drop(host.open.lock().remove(&**regions[3].encoded_name())));
    heal(&life).await;
    assert_eq!(is_mended(&life, Kind::ServerDoesNotMatchMeta).subject, regions[1].name_string());
    assert_eq!(is_mended(&life, Kind::NotDeployed).subject, regions[3].name_string());
    all_open(&life);
    all_is_well(&life).await;
}

#[tokio::test]
async fn a_region_of_a_disabled_table_is_closed_where_it_is_open() {
    let life = two_servers().await;
    let info = life.regions("t").remove(1);
    let open = life.hosts.iter().find_map(|host| host.open.lock().get(&**info.encoded_name()).cloned()).expect("open");
    life.disable("t").await;
    life.hosts[1].open.lock().insert(info.encoded_name().to_string(), open);
    heal(&life).await;
    is_mended(&life, Kind::ShouldNotBeDeployed);
    assert_eq!(open_at(&life, &info), []);
    all_is_well(&life).await;
}

/// A table with files, of which hbase:meta has lost regions: the life after that.
async fn lost(regions: &[usize], then: impl Fn(&MemVolume, &[RegionInfo])) -> (Life, Vec<RegionInfo>) {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["c", "g", "m", "s"]).await;
    life.fill("t");
    let all = life.regions("t");
    let lost: Vec<RegionInfo> = regions.iter().map(|at| all[*at].clone()).collect();
    life.master.stop();
    lose_rows(&life.catalog, &lost);
    then(&life.memory, &lost);
    (start(&life.memory, &life.catalog, Config::default()).await.expect("starts"), lost)
}

fn lose_rows(catalog: &Catalog, lost: &[RegionInfo]) {
    let mut catalog = catalog.lock();
    let rows = catalog.get_mut(META).expect("hbase:meta");
    lost.iter().for_each(|info| rows.lose_row(info.name()));
}

#[tokio::test]
async fn regions_that_hbase_meta_lost_are_taken_in_again_with_their_files() {
    let (life, lost) = lost(&[0, 2, 3], |_, _| {}).await;
    let files = store_files(&life.memory);
    heal(&life).await;
    let mended: Vec<String> = findings(&life).into_iter().map(|finding| finding.to_string()).collect();
    assert_eq!(mended.len(), 2, "two holes: {mended:?}");
    for info in &lost {
        assert!(life.host.open.lock().contains_key(&**info.encoded_name()), "the same region: {}", info.name_string());
    }
    assert_eq!(store_files(&life.memory), files);
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_table_of_which_hbase_meta_lost_every_region_is_taken_in_again() {
    let (life, lost) = lost(&[0, 1, 2, 3, 4], |_, _| {}).await;
    assert_eq!(life.regions("t"), []);
    heal(&life).await;
    is_mended(&life, Kind::Hole);
    assert_eq!(life.regions("t"), lost);
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_hole_of_which_nothing_is_left_is_filled_by_an_empty_region() {
    let gone = |memory: &MemVolume, lost: &[RegionInfo]| {
        lost.iter().for_each(|info| memory.remove_dir_all(&rootdir::region_dir(info)).expect("memory"));
    };
    let (life, lost) = lost(&[1], gone).await;
    heal(&life).await;
    is_mended(&life, Kind::Hole);
    let filling = life.regions("t").remove(1);
    assert_eq!((&filling.start_key, &filling.end_key), (&lost[0].start_key, &lost[0].end_key));
    assert_ne!(filling.encoded_name(), lost[0].encoded_name());
    all_is_well(&life).await;
    life.check();
}

/// Directories that overlap, with data each: which of them is right cannot be told.
#[tokio::test]
async fn a_hole_with_data_that_does_not_fit_is_left_as_it_is() {
    let other = RegionInfo::new(table_name("t"), bytes("c"), bytes("e"), 5);
    let (life, _) = lost(&[1], |memory, _| {
        rootdir::create_region_dir(memory, &other, &table("t", &["f"])).expect("memory");
        memory.put_file(&rootdir::family_dir(&other, b"f").join("00000000000000000000000000000001"), b"cells");
    })
    .await;
    let before = life.memory.all_files();
    heal(&life).await;
    heal(&life).await;
    let Verdict::ForAPerson(why) = is_left(&life, Kind::Hole).verdict else { panic!("left") };
    assert!(why.contains(rootdir::region_dir(&other).as_str()), "{why}");
    assert_eq!(life.regions("t").len(), 4);
    assert_eq!(life.memory.all_files(), before);
}

/// A split had been begun when hbase:meta lost the parent: the parent has everything, its daughters refer to it.
#[tokio::test]
async fn a_lost_parent_goes_before_daughters_that_only_refer_to_it() {
    let (life, lost) = lost(&[1], |memory, lost| {
        for (start, end) in [("c", "e"), ("e", "g")] {
            let daughter = RegionInfo::new(table_name("t"), bytes(start), bytes(end), lost[0].region_id + 1);
            rootdir::create_region_dir(memory, &daughter, &table("t", &["f"])).expect("memory");
            let name = format!("00000000000000000000000000000001.{}", lost[0].encoded_name());
            memory.put_file(&rootdir::family_dir(&daughter, b"f").join(name), b"PBUFreference");
        }
    })
    .await;
    heal(&life).await;
    is_mended(&life, Kind::Hole);
    assert!(life.host.open.lock().contains_key(&**lost[0].encoded_name()));
    // What is left of the split is not needed, and is set aside.
    heal(&life).await;
    all_is_well(&life).await;
    assert_eq!(life.files_below(".hbck/data/default/t").len(), 4, "two references, two .regioninfo");
    life.check();
}

#[tokio::test]
async fn an_empty_directory_is_set_aside_and_one_with_data_stays() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let orphan = |id| RegionInfo::new(table_name("t"), bytes("a"), bytes("b"), id);
    let (empty, full, edits) = (orphan(5), orphan(6), orphan(7));
    for info in [&empty, &full, &edits] {
        rootdir::create_region_dir(&life.memory, info, &table("t", &["f"])).expect("memory");
    }
    life.memory.put_file(&rootdir::region_dir(&empty).join("recovered.edits/7.seqid"), b"");
    life.memory.put_file(&rootdir::family_dir(&full, b"f").join("00000000000000000000000000000001"), b"cells");
    life.memory.put_file(&rootdir::region_dir(&edits).join("recovered.edits/0000000000000000007"), b"edits");
    heal(&life).await;
    heal(&life).await;
    let there = |info| life.memory.exists(&rootdir::region_dir(info)).expect("memory");
    assert_eq!([there(&empty), there(&full), there(&edits)], [false, true, true]);
    let aside = FilePath::new(".hbck").join(rootdir::region_dir(&empty).as_str());
    assert_eq!(
        rootdir::read_region_info(&life.memory, &aside).expect("memory"),
        Some(empty),
        "with all that was in it"
    );
    let left: Vec<Finding> =
        findings(&life).into_iter().filter(|finding| matches!(finding.verdict, Verdict::ForAPerson(_))).collect();
    let mut subjects: Vec<&str> = left.iter().map(|finding| &*finding.subject).collect();
    subjects.sort_unstable();
    let mut expected = [rootdir::region_dir(&full).to_string(), rootdir::region_dir(&edits).to_string()];
    expected.sort_unstable();
    assert_eq!(subjects, expected);
}

#[tokio::test]
async fn a_region_info_file_that_is_lost_or_damaged_is_written_as_hbase_meta_has_it() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let regions = life.regions("t");
    let file = |info| rootdir::region_dir(info).join(".regioninfo");
    life.memory.remove_file(&file(&regions[0])).expect("memory");
    life.memory.put_file(&file(&regions[1]), b"junk");
    heal(&life).await;
    assert_eq!(findings(&life).len(), 2, "{:?}", findings(&life));
    for info in &regions {
        let said = rootdir::read_region_info(&life.memory, &rootdir::region_dir(info)).expect("memory");
        assert_eq!(said.as_ref(), Some(info));
    }
    let aside = FilePath::new(".hbck").join(file(&regions[1]).as_str());
    assert_eq!(life.memory.read(&aside).expect("kept"), b"junk");
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_region_info_file_of_another_region_is_left_as_it_is() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let regions = life.regions("t");
    let file = rootdir::region_dir(&regions[0]).join(".regioninfo");
    let other = rootdir::region_info_bytes(&regions[1]);
    life.memory.put_file(&file, &other);
    heal(&life).await;
    heal(&life).await;
    is_left(&life, Kind::WrongRegionInfo);
    assert_eq!(life.memory.read(&file).expect("memory"), other);
}

#[tokio::test]
async fn a_region_without_a_directory_is_named_and_left() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let regions = life.regions("t");
    let dir = rootdir::region_dir(&regions[1]);
    life.memory.remove_dir_all(&dir).expect("memory");
    heal(&life).await;
    heal(&life).await;
    assert_eq!(is_left(&life, Kind::NotInHdfs).subject, regions[1].name_string());
    assert!(!life.memory.exists(&dir).expect("memory"), "an empty one would hide that something is missing");
}

#[tokio::test]
async fn a_region_that_is_open_and_not_in_hbase_meta_is_named_and_left() {
    let life = two_servers().await;
    let regions = life.regions("t");
    let stranger = RegionInfo::new(regions[0].table.clone(), bytes("z"), bytes(""), 7);
    let unknown = stranger.encoded_name().to_string();
    life.hosts[0].open.lock().insert(unknown.clone(), (stranger, Arc::new(table("t", &["f"]))));
    heal(&life).await;
    heal(&life).await;
    is_left(&life, Kind::NotInMeta);
    assert!(life.hosts[0].open.lock().contains_key(&unknown), "nobody has closed it");
    all_open(&life);
}

/// hbase:meta and the directory both lost it: a snapshot knows a region of that name, which is a digest of what it says.
#[tokio::test]
async fn a_directory_without_region_info_gets_it_back_from_a_snapshot_and_is_taken_in() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["c", "g"]).await;
    life.fill("t");
    let wanted = pb::SnapshotDescription { name: "s".into(), table: Some("t".into()), ..Default::default() };
    let id = life.master.take_snapshot(wanted, &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("taken");
    let lost = life.regions("t").remove(1);
    life.master.stop();
    lose_rows(&life.catalog, std::slice::from_ref(&lost));
    life.memory.remove_file(&rootdir::region_dir(&lost).join(".regioninfo")).expect("memory");
    let life = start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
    heal(&life).await;
    is_left(&life, Kind::Hole);
    is_mended(&life, Kind::NoRegionInfoFile);
    heal(&life).await;
    is_mended(&life, Kind::Hole);
    assert!(life.host.open.lock().contains_key(&**lost.encoded_name()));
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_directory_that_nobody_knows_keeps_a_hole_from_being_filled() {
    let (life, lost) = lost(&[1], |memory, lost| {
        memory.remove_file(&rootdir::region_dir(&lost[0]).join(".regioninfo")).expect("memory");
    })
    .await;
    heal(&life).await;
    heal(&life).await;
    let dir = rootdir::region_dir(&lost[0]).to_string();
    assert_eq!(is_left(&life, Kind::NoRegionInfoFile).subject, dir);
    let Verdict::ForAPerson(why) = is_left(&life, Kind::Hole).verdict else { panic!("left") };
    assert!(why.contains(&dir), "{why}");
    assert_eq!(life.regions("t").len(), 4);
}

fn descriptors(life: &Life) -> Vec<FilePath> {
    let dir = FilePath::new("data/default/t/.tabledesc");
    life.memory.all_files().into_iter().filter(|path| path.starts_with(&dir)).collect()
}

#[tokio::test]
async fn a_descriptor_that_is_lost_or_damaged_is_written_as_the_master_has_it() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &[]).await;
    let path = descriptors(&life).remove(0);
    life.memory.remove_file(&path).expect("memory");
    heal(&life).await;
    assert_eq!(is_mended(&life, Kind::NoTableInfoFile).subject, "t");
    let said = rootdir::descriptor::read(&life.memory, &table_name("t")).expect("readable");
    assert_eq!(said.as_ref(), life.master.cluster().descriptor(&table_name("t")).as_deref());
    let path = descriptors(&life).remove(0);
    life.memory.put_file(&path, b"junk");
    heal(&life).await;
    let said = rootdir::descriptor::read(&life.memory, &table_name("t")).expect("readable");
    assert_eq!(said.as_ref(), life.master.cluster().descriptor(&table_name("t")).as_deref());
    assert_eq!(life.memory.read(&FilePath::new(".hbck").join(path.as_str())).expect("kept"), b"junk");
    all_is_well(&life).await;
    life.restart().await.check();
}

#[tokio::test]
async fn a_table_that_has_lost_its_descriptor_before_the_master_started_is_named_and_left() {
    let life = crate::common::fresh().await;
    life.create("t", &["f", "g"], &["m"]).await;
    life.master.stop();
    let path = descriptors(&life).remove(0);
    life.memory.remove_file(&path).expect("memory");
    let life = start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
    let before = life.memory.all_files();
    heal(&life).await;
    heal(&life).await;
    let finding = is_left(&life, Kind::NoTableInfoFile);
    assert!(finding.what.contains("families f, g"), "{finding}");
    assert_eq!(life.memory.all_files(), before);
}

/// hbase:meta has a region over two others.
fn overlap(memory: &MemVolume, catalog: &Catalog, regions: &[RegionInfo]) {
    let covering = RegionInfo::new(table_name("t"), bytes("c"), bytes("m"), regions[0].region_id + 1);
    rootdir::create_region_dir_durably(memory, &covering, &table("t", &["f"])).expect("memory");
    memory.put_file(&rootdir::family_dir(&covering, b"f").join("00000000000000000000000000000001"), b"cells");
    let mut catalog = catalog.lock();
    let rows = catalog.get_mut(META).expect("hbase:meta");
    rows.apply(&[meta::put_region(&covering, RegionState::Closed, TimestampMs(1))]);
}

#[tokio::test]
async fn regions_with_rows_in_common_are_merged() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["c", "g", "m", "s"]).await;
    life.fill("t");
    life.master.stop();
    overlap(&life.memory, &life.catalog, &life.regions("t"));
    let life = start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
    let files = store_files(&life.memory);
    heal(&life).await;
    is_mended(&life, Kind::Overlap);
    let starts: Vec<_> = life.regions("t").iter().map(|info| info.start_key.clone()).collect();
    assert_eq!(starts, ["", "c", "m", "s"]);
    assert_eq!(store_files(&life.memory), files);
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_procedure_that_can_be_rolled_back_is_when_its_step_fails_for_long() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let fault = |path: &str| Fault {
        op: None,
        path_contains: Some(path.to_owned()),
        nth: 1,
        kind: FaultKind::Io,
        forever: true,
    };
    life.memory.inject(fault("data.manifest"));
    let wanted = pb::SnapshotDescription { name: "s".into(), table: Some("t".into()), ..Default::default() };
    let id = life.master.take_snapshot(wanted, &caller()).await.expect("accepted");
    wait_until(|| has_failing(&life)).await;
    assert!(life.master.run_healing_chore().await);
    assert_eq!(findings(&life), [], "it has not failed for long");
    life.clock.advance_ms(700_000);
    for _ in 0..2 {
        assert!(life.master.run_healing_chore().await);
    }
    is_mended(&life, Kind::StuckProcedure);
    let error = life.master.wait_for(id).await.expect_err("rolled back");
    assert!(error.message.contains("abort requested"), "{error}");
    assert_eq!(life.files_below(".hbase-snapshot"), Vec::<String>::new());
    all_is_well(&life).await;
    life.check();
}

#[tokio::test]
async fn a_procedure_that_cannot_be_rolled_back_is_named_and_goes_on_when_it_can() {
    let life = two_servers().await;
    let dead = kill_one(&life);
    life.splitter.failures.store(EVER, Ordering::SeqCst);
    let id = life.master.server_crashed(&dead).await.expect("accepted");
    wait_until(|| has_failing(&life)).await;
    life.clock.advance_ms(700_000);
    for _ in 0..3 {
        assert!(life.master.run_healing_chore().await);
    }
    let finding = is_left(&life, Kind::StuckProcedure);
    assert!(finding.what.contains("a log cannot be read"), "{finding}");
    life.splitter.failures.store(0, Ordering::SeqCst);
    life.master.wait_for(id).await.expect("recovered");
    all_open(&life);
    all_is_well(&life).await;
}

fn has_failing(life: &Life) -> bool {
    life.master.failing_procedures() == 1
}

async fn wait_until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await.expect("it comes");
}

#[tokio::test]
async fn nothing_is_mended_where_it_is_switched_off() {
    let mut config = Config::default();
    config.set("basalt.master.healing.chore.interval", "-1");
    let life = start(&MemVolume::new(), &Catalog::default(), config).await.expect("starts");
    life.create("t", &["f"], &[]).await;
    life.memory.remove_file(&descriptors(&life)[0]).expect("memory");
    for _ in 0..3 {
        assert!(!life.master.run_healing_chore().await);
    }
    assert!(life.master.hbck_report().is_none());
    assert_eq!(descriptors(&life), []);
}

#[tokio::test]
async fn who_works_on_a_table_is_not_waited_for() {
    let (life, lost) = lost(&[1], |_, _| {}).await;
    assert!(life.master.run_healing_chore().await);
    let c = connect(life, "LockService").await;
    let request = pb::LockRequest {
        lock_type: pb::LockType::Exclusive as i32,
        table_name: Some(to_proto::table_name(&table_name("t"))),
        description: Some("a backup".into()),
        nonce_group: Some(1),
        nonce: Some(1),
        ..Default::default()
    };
    let held: pb::LockResponse = c.call(Method::LockRequestLock, &request).await.expect("asked for");
    let beat = |keep| pb::LockHeartbeatRequest { proc_id: held.proc_id, keep_alive: Some(keep) };
    let is_locked = async {
        loop {
            let answer: pb::LockHeartbeatResponse =
                c.call(Method::LockLockHeartbeat, &beat(true)).await.expect("answered");
            if answer.lock_status() == pb::lock_heartbeat_response::LockStatus::Locked {
                break;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), is_locked).await.expect("it is free");
    assert!(c.life.master.run_healing_chore().await);
    let finding = only(&c.life, Kind::Hole);
    assert!(matches!(&finding.verdict, Verdict::Later(why) if why.contains("works on t")), "{finding}");
    let _: pb::LockHeartbeatResponse = c.call(Method::LockLockHeartbeat, &beat(false)).await.expect("answered");
    heal(&c.life).await;
    assert!(c.life.host.open.lock().contains_key(&**lost[0].encoded_name()));
    c.life.check();
}

type Steps<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A table with files is damaged: on disk before the master starts, and then in the life. The machine goes off at every call of what mends it;
/// what the next master finds it mends, every rule holds then, and no store file is lost.
async fn broken_off(
    name: &str,
    on_disk: impl Fn(&MemVolume, &Catalog, &[RegionInfo]),
    in_life: impl for<'a> Fn(&'a Life) -> Steps<'a>,
) {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &["c", "g", "m", "s"]).await;
    life.fill("t");
    life.check();
    let regions = life.regions("t");
    life.master.stop();
    on_disk(&life.memory, &life.catalog, &regions);
    let (memory, catalog) = (life.memory.snapshot(), life.catalog);
    let files = store_files(&memory);
    for stop_after in 0i64.. {
        for (policy, seed) in [(CrashPolicy::LoseUnsynced, 0), (CrashPolicy::Torn, stop_after as u64)] {
            let (memory, catalog) = (memory.snapshot(), copy(&catalog));
            let life = start_with(&memory, &catalog, Config::default(), 2).await.expect("starts");
            in_life(&life).await;
            assert!(life.master.run_healing_chore().await);
            life.machine.switch_off_after(stop_after);
            let machine = Arc::clone(&life.machine);
            tokio::select! {
                () = machine.is_off() => {}
                _ = life.master.run_healing_chore() => {}
            }
            let is_whole = !machine.went_off();
            if is_whole {
                life.machine.switch_off_after(EVER);
                settle(&life).await;
                all_is_well(&life).await;
            }
            life.machine.switch_off_after(0);
            life.master.stop();
            let what = format!("{name}, off after {stop_after} calls, {policy:?} with seed {seed}");
            let crashed = if is_whole { memory } else { memory.crash(&Rng::seeded(seed), policy) };
            let next = start(&crashed, &catalog, Config::default()).await.unwrap_or_else(|e| panic!("{what}: {e}"));
            println!("{what}");
            heal(&next).await;
            heal(&next).await;
            all_is_well(&next).await;
            next.check();
            let lost: Vec<_> = files.difference(&store_files(&crashed)).cloned().collect();
            assert_eq!(lost, Vec::<String>::new(), "{what}");
            next.master.stop();
            if is_whole {
                println!("{name}: {stop_after} calls");
                assert!(stop_after > 2, "{name}: the machine went off {stop_after} times only");
                return;
            }
        }
    }
}

fn nothing(_: &Life) -> Steps<'_> {
    Box::pin(async {})
}

#[tokio::test]
async fn broken_off_while_directories_are_taken_in() {
    broken_off("adopt", |_, catalog, regions| lose_rows(catalog, &regions[1..3]), nothing).await;
}

#[tokio::test]
async fn broken_off_while_a_hole_is_filled() {
    let lose = |memory: &MemVolume, catalog: &Catalog, regions: &[RegionInfo]| {
        lose_rows(catalog, &regions[..1]);
        // Its files are in the archive.
        rootdir::archive_region_dir(memory, &rootdir::region_dir(&regions[0])).expect("memory");
    };
    broken_off("fill", lose, nothing).await;
}

#[tokio::test]
async fn broken_off_while_an_overlap_is_merged() {
    broken_off("merge", overlap, nothing).await;
}

#[tokio::test]
async fn broken_off_while_a_region_on_two_servers_is_settled() {
    let twice = |life: &Life| {
        for info in &life.regions("t")[1..3] {
            open_twice(life, info);
        }
    };
    broken_off("settle", |_, _, _| {}, |life| Box::pin(async move { twice(life) })).await;
}

#[tokio::test]
async fn broken_off_while_a_server_is_recovered() {
    let crashed = |life: &Life| {
        for info in life.regions("t") {
            life.hosts.iter().for_each(|host| drop(host.open.lock().remove(&**info.encoded_name())));
        }
    };
    broken_off("open again", |_, _, _| {}, |life| Box::pin(async move { crashed(life) })).await;
}

#[tokio::test]
async fn broken_off_while_small_files_are_written_again() {
    let lose = |memory: &MemVolume, _: &Catalog, regions: &[RegionInfo]| {
        memory.put_file(&rootdir::region_dir(&regions[0]).join(".regioninfo"), b"junk");
        memory.remove_file(&rootdir::region_dir(&regions[1]).join(".regioninfo")).expect("memory");
        memory.sync_dir(&rootdir::region_dir(&regions[1])).expect("memory");
    };
    let descriptor = |life: &Life| {
        let path = descriptors(life).remove(0);
        life.memory.put_file(&path, b"junk");
    };
    // A master that starts with a damaged descriptor serves the table no more, so it is damaged in the life, and lost where that was broken off.
    broken_off("small files", lose, nothing).await;
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &[]).await;
    descriptor(&life);
    assert!(life.master.run_healing_chore().await);
    // The first that fails is the next.
    life.memory.fail_op(2, FaultKind::Io);
    heal(&life).await;
    heal(&life).await;
    is_mended(&life, Kind::NoTableInfoFile);
    life.restart().await.check();
}

#[tokio::test]
async fn broken_off_while_a_directory_is_set_aside() {
    let leave = |memory: &MemVolume, _: &Catalog, regions: &[RegionInfo]| {
        let left = RegionInfo::new(table_name("t"), bytes("c"), bytes("e"), 5);
        rootdir::create_region_dir_durably(memory, &left, &table("t", &["f"])).expect("memory");
        let name = format!("00000000000000000000000000000001.{}", regions[1].encoded_name());
        memory.put_file(&rootdir::family_dir(&left, b"f").join(name), b"PBUFreference");
    };
    broken_off("set aside", leave, nothing).await;
}
