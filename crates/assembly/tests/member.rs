//! A region server that takes orders of a master elsewhere: here a list of what it reports.

use crate::common::{Pool, Threads, parts};
use basalt_assembly::{Member, MemberParts};
use bytes::Bytes;
use convert::to_proto;
use fs::{MemVolume, Volume};
use model::{FamilyDescriptor, RegionInfo, ServerName, TableDescriptor, TableName};
use parking_lot::Mutex;
use proto::Message;
use proto::pb;
use proto::pb::region_state_transition::TransitionCode;
use proto::pb::remote_procedure_result::Status;
use regionserver::{MasterReports, Orders, Report, ServeLease};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::mpsc;

/// What the master was told.
#[derive(Debug)]
enum Told {
    Transition(pb::RegionStateTransition),
    Done(pb::RemoteProcedureResult),
}

/// Takes every report, unless it was told to refuse.
struct Master {
    told: mpsc::UnboundedSender<Told>,
    refuses: AtomicBool,
    /// While this is held, what was reported is heard, and not answered.
    gate: tokio::sync::RwLock<()>,
    /// Online regions as each transition is reported.
    seen_online: Mutex<Vec<usize>>,
    server: OnceLock<Weak<regionserver::RegionServer>>,
}

impl MasterReports for Master {
    fn region_transition(&self, transition: pb::RegionStateTransition) -> Report<'_> {
        let online = self.server.get().and_then(Weak::upgrade).map_or(0, |server| server.regions().len());
        self.seen_online.lock().push(online);
        let _ = self.told.send(Told::Transition(transition));
        let answer = if self.refuses.load(Ordering::SeqCst) { Err("You are dead".to_owned()) } else { Ok(()) };
        Box::pin(async move {
            let _through = self.gate.read().await;
            answer
        })
    }

    fn procedure_done(&self, result: pb::RemoteProcedureResult) -> Report<'_> {
        let _ = self.told.send(Told::Done(result));
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Place {
    member: Member<Threads>,
    orders: Arc<Orders>,
    master: Arc<Master>,
    told: mpsc::UnboundedReceiver<Told>,
    fatal: mpsc::UnboundedReceiver<String>,
    volume: Arc<MemVolume>,
}

const START_CODE: u64 = 7;

impl Place {
    async fn start(refuses: bool) -> Place {
        let volume = Arc::new(MemVolume::new());
        let (sender, told) = mpsc::unbounded_channel();
        let (fatal_sender, fatal) = mpsc::unbounded_channel();
        let (gate, seen_online) = (tokio::sync::RwLock::default(), Mutex::default());
        let refuses = AtomicBool::new(refuses);
        let master = Arc::new(Master { told: sender, refuses, gate, seen_online, server: OnceLock::new() });
        let of_node = parts(&volume, START_CODE);
        let lease = Arc::new(ServeLease::new(of_node.clock.clone()));
        let member = Member::start(MemberParts {
            volume: of_node.volume,
            outside: of_node.outside,
            root: of_node.root,
            clock: of_node.clock,
            rng: of_node.rng,
            config: of_node.config,
            read_config: of_node.read_config,
            ledger: of_node.ledger,
            server_name: of_node.server_name,
            cluster_id: "id".into(),
            lease: lease.clone(),
            reports: master.clone(),
            runner: Pool,
            syncer: Threads::default(),
            stepped: false,
            on_fatal: Arc::new(move |why| drop(fatal_sender.send(why))),
            second_level: None,
            on_stop_request: Arc::new(|_| ()),
        })
        .await
        .expect("starts");
        let _ = master.server.set(Arc::downgrade(member.server()));
        let orders = member.orders().clone();
        Place { member, orders, master, told, fatal, volume }
    }

    async fn transition(&mut self) -> pb::RegionStateTransition {
        match tokio::time::timeout(Duration::from_secs(10), self.told.recv()).await.expect("in time") {
            Some(Told::Transition(transition)) => transition,
            other => panic!("{other:?}"),
        }
    }

    async fn done(&mut self) -> pb::RemoteProcedureResult {
        match tokio::time::timeout(Duration::from_secs(10), self.told.recv()).await.expect("in time") {
            Some(Told::Done(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    async fn online(&self, count: usize) {
        let there = async {
            while self.member.server().regions().len() != count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), there).await.expect("in time");
    }

    /// As the master makes them.
    fn make_region(&self, start: &'static str) -> RegionInfo {
        let table = table();
        let info = RegionInfo::new(table.name.clone(), Bytes::from(start), Bytes::new(), 1);
        rootdir::descriptor::write(&*self.volume, &table).expect("written");
        rootdir::create_region_dir(&*self.volume, &info, &table).expect("made");
        info
    }
}

fn table() -> TableDescriptor {
    TableDescriptor::new(TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")])
}

fn open(info: &RegionInfo, procedure: i64) -> pb::ExecuteProceduresRequest {
    let open_info = pb::open_region_request::RegionOpenInfo {
        region: to_proto::region_info(info),
        open_proc_id: Some(procedure),
        ..Default::default()
    };
    let request = pb::OpenRegionRequest {
        open_info: vec![open_info],
        server_start_code: Some(START_CODE),
        initiating_master_active_time: Some(77),
        ..Default::default()
    };
    pb::ExecuteProceduresRequest { open_region: vec![request], ..Default::default() }
}

fn close(info: &RegionInfo, procedure: i64) -> pb::ExecuteProceduresRequest {
    let request = pb::CloseRegionRequest {
        region: pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName as i32,
            value: Bytes::copy_from_slice(info.encoded_name().as_bytes()),
        },
        server_start_code: Some(START_CODE),
        close_proc_id: Some(procedure),
        ..Default::default()
    };
    pb::ExecuteProceduresRequest { close_region: vec![request], ..Default::default() }
}

fn procedure(class: &str, data: &impl Message) -> pb::ExecuteProceduresRequest {
    let request = pb::RemoteProcedureRequest {
        proc_id: 5,
        proc_class: class.into(),
        proc_data: Some(data.encode_to_vec().into()),
        initiating_master_active_time: Some(77),
    };
    pb::ExecuteProceduresRequest { proc: vec![request], ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_is_online_when_the_master_knows_that_it_is() {
    let mut place = Place::start(false).await;
    let info = place.make_region("");
    place.orders.execute(open(&info, 1)).expect("taken");
    let opened = place.transition().await;
    assert_eq!(opened.transition_code(), TransitionCode::Opened);
    assert_eq!((opened.proc_id.as_slice(), opened.initiating_master_active_time), (&[1][..], Some(77)));
    assert!(opened.open_seq_num.is_some_and(|id| id > 0));
    place.online(1).await;
    // The answer to the order was lost, and it comes again.
    place.orders.execute(open(&info, 1)).expect("taken");
    place.orders.execute(close(&info, 2)).expect("taken");
    let closed = place.transition().await;
    assert_eq!((closed.transition_code(), closed.proc_id.as_slice()), (TransitionCode::Closed, &[2][..]));
    place.online(0).await;
    place.orders.execute(open(&info, 3)).expect("taken");
    let again = place.transition().await;
    assert_eq!((again.transition_code(), again.proc_id.as_slice()), (TransitionCode::Opened, &[3][..]));
    assert!(again.open_seq_num > opened.open_seq_num, "a region that is opened again has a higher number");
    assert_eq!(*place.master.seen_online.lock(), [0, 0, 0], "as each was reported");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_opened_is_reported_so() {
    let mut place = Place::start(false).await;
    let info = RegionInfo::new(table().name, Bytes::new(), Bytes::new(), 1);
    place.orders.execute(open(&info, 1)).expect("taken");
    let failed = place.transition().await;
    assert_eq!((failed.transition_code(), failed.proc_id.as_slice()), (TransitionCode::FailedOpen, &[1][..]));
    assert!(!place.volume.exists(&rootdir::region_dir(&info)).expect("looked"), "only the master makes regions");
}

/// It was taken for one that is being opened already, and the master waited for ever for what became of it (seed 120212 of the simulated cluster): the
/// master had heard that the try before had failed, and its answer was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_is_opened_though_the_failed_try_before_has_no_answer_yet() {
    let mut place = Place::start(false).await;
    let master = place.master.clone();
    let gate = master.gate.write().await;
    let info = RegionInfo::new(table().name, Bytes::new(), Bytes::new(), 1);
    place.orders.execute(open(&info, 1)).expect("taken");
    assert_eq!(place.transition().await.transition_code(), TransitionCode::FailedOpen);
    let info = place.make_region("");
    place.orders.execute(open(&info, 2)).expect("taken");
    let opened = place.transition().await;
    assert_eq!((opened.transition_code(), opened.proc_id.as_slice()), (TransitionCode::Opened, &[2][..]));
    drop(gate);
    place.online(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_for_another_life_is_refused() {
    let place = Place::start(false).await;
    let info = place.make_region("");
    let mut request = open(&info, 1);
    request.open_region[0].server_start_code = Some(START_CODE + 1);
    let refused = place.orders.execute(request).expect_err("another is meant");
    assert!(refused.to_string().contains("intended for a different server"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_does_not_take_it_ends_the_server() {
    let mut place = Place::start(true).await;
    let info = place.make_region("");
    place.orders.execute(open(&info, 1)).expect("taken");
    assert_eq!(place.transition().await.transition_code(), TransitionCode::Opened);
    let why = tokio::time::timeout(Duration::from_secs(10), place.fatal.recv()).await.expect("in time");
    assert!(why.expect("told").contains("You are dead"));
    assert!(place.member.server().regions().is_empty(), "it is served by nobody here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_goes_on_whose_closed_region_the_master_does_not_know() {
    let mut place = Place::start(false).await;
    let info = place.make_region("");
    place.orders.execute(open(&info, 1)).expect("taken");
    place.transition().await;
    place.online(1).await;
    place.master.refuses.store(true, Ordering::SeqCst);
    place.orders.execute(close(&info, 2)).expect("taken");
    assert_eq!(place.transition().await.transition_code(), TransitionCode::Closed);
    place.online(0).await;
    place.master.refuses.store(false, Ordering::SeqCst);
    place.orders.execute(open(&info, 3)).expect("taken");
    assert_eq!(place.transition().await.transition_code(), TransitionCode::Opened);
    place.online(1).await;
    assert!(place.fatal.try_recv().is_err(), "it serves");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn procedures_end_with_a_report_unknown_ones_with_an_error() {
    let mut place = Place::start(false).await;
    let info = place.make_region("");
    place.orders.execute(open(&info, 1)).expect("taken");
    place.transition().await;
    place.online(1).await;
    let flush = pb::FlushRegionParameter { region: to_proto::region_info(&info), column_family: Vec::new() };
    let class = "org.apache.hadoop.hbase.regionserver.FlushRegionCallable";
    place.orders.execute(procedure(class, &flush)).expect("taken");
    let result = place.done().await;
    assert_eq!((result.proc_id, result.status(), result.error), (5, Status::Success, None));

    let other = RegionInfo::new(table().name, Bytes::from("x"), Bytes::new(), 1);
    let flush = pb::FlushRegionParameter { region: to_proto::region_info(&other), column_family: Vec::new() };
    place.orders.execute(procedure(class, &flush)).expect("taken");
    let class_of = |result: pb::RemoteProcedureResult| {
        assert_eq!(result.status(), Status::Error);
        result.error.and_then(|error| error.generic_exception?.class_name).unwrap_or_default()
    };
    assert!(class_of(place.done().await).ends_with("NotServingRegionException"), "the procedure goes elsewhere");

    let queue = pb::ClaimReplicationQueueRemoteParameter::default();
    let claim = "org.apache.hadoop.hbase.replication.regionserver.ClaimReplicationQueueCallable";
    for class in [claim, "org.example.Unknown"] {
        place.orders.execute(procedure(class, &queue)).expect("taken");
        assert!(class_of(place.done().await).ends_with("UnsupportedOperationException"), "{class}");
    }
}

/// What a dead server's log holds goes to the directories of its regions, and is there when they are opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_servers_log_is_split() {
    let mut place = Place::start(false).await;
    let dead = ServerName::new("dead", 1, 1).to_string();
    let (volume, clock) = (place.volume.clone() as Arc<dyn Volume>, Arc::new(base::SystemClock::new()));
    let dir = rootdir::server_wals_dir(&format!("{dead}-splitting"));
    let log = wal::Log::create(volume, dir.clone(), &dead, wal::LogOptions::default(), clock).expect("made");
    log.close().expect("closed");
    let file = place.volume.list(&dir).expect("there").remove(0);
    let parameter = pb::SplitWalParameter { wal_path: dir.join(&file.name).to_string() };
    let class = "org.apache.hadoop.hbase.regionserver.SplitWALCallable";
    place.orders.execute(procedure(class, &parameter)).expect("taken");
    assert_eq!(place.done().await.status(), Status::Success);
    assert!(place.volume.exists(&dir.join(&file.name)).expect("looked"), "the master takes it away");
    // It has, and asks again.
    place.volume.remove_file(&dir.join(&file.name)).expect("removed");
    place.orders.execute(procedure(class, &parameter)).expect("taken");
    assert_eq!(place.done().await.status(), Status::Success);
    let parameter = pb::SplitWalParameter { wal_path: "data/default/t/x".into() };
    place.orders.execute(procedure(class, &parameter)).expect("taken");
    assert_eq!(place.done().await.status(), Status::Error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_leaves_no_log_to_split_and_an_abort_serves_nothing() {
    let mut place = Place::start(false).await;
    let info = place.make_region("");
    place.orders.execute(open(&info, 1)).expect("taken");
    place.transition().await;
    place.online(1).await;
    let (member, volume) = (place.member, place.volume.clone());
    let dir = rootdir::server_wals_dir(&member.server().name().to_string());
    assert!(!volume.list(&dir).expect("there").is_empty());
    let stopped = tokio::task::spawn_blocking(move || member.stop(Duration::from_secs(60)));
    assert_eq!(stopped.await.expect("no panic").expect("stops"), 0);
    assert!(volume.list(&dir).expect("there").is_empty(), "the archive has them");

    let mut place = Place::start(false).await;
    let info = place.make_region("");
    place.orders.execute(open(&info, 1)).expect("taken");
    place.transition().await;
    place.online(1).await;
    place.member.server().abort();
    assert!(place.member.server().region(info.encoded_name()).is_none());
    assert!(place.orders.execute(open(&info, 9)).is_err(), "it takes no orders any more");
}
