//! A master of three methods behind a real connection, and the embedded tree as its ensemble.

use crate::{Candidate, ClusterNodes, Expelled, JoinError, MasterLink, Reporter, join, keep_reporting};
use base::{Config, Rng, SystemClock};
use bytes::Bytes;
use coordination::{Coordinator, Endpoint, EndpointOptions, HBaseZnodes, TreeHandle};
use model::ServerName;
use parking_lot::Mutex;
use proto::methods::Service;
use proto::pb;
use regionserver::MasterReports;
use rpc::service::{Answer, RegionServerStatusService};
use rpc::{Call, Exception, Handler, Kind, Outcome};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// What it answers next, the last for ever.
#[derive(Default)]
struct Master {
    exceptions: Mutex<Vec<Exception>>,
    refusal: Mutex<Option<String>>,
    reports: Mutex<Vec<pb::RegionServerReportRequest>>,
    versions: Mutex<Vec<String>>,
}

impl Master {
    fn next(&self, call: &Call) -> Result<(), Exception> {
        let version = call.conn.version.as_ref().map(|info| info.version.clone());
        self.versions.lock().extend(version);
        self.exceptions.lock().pop().map_or(Ok(()), Err)
    }
}

impl RegionServerStatusService for Master {
    fn region_server_startup(
        &self,
        call: &Call,
        request: pb::RegionServerStartupRequest,
    ) -> Answer<pb::RegionServerStartupResponse> {
        self.next(call)?;
        let host = request.use_this_hostname_instead.unwrap_or_else(|| "seen.example".into());
        let pair = |name: &str, value: &str| pb::NameStringPair { name: name.into(), value: value.into() };
        let map_entries =
            vec![pair("hbase.regionserver.hostname.seen.by.master", &host), pair("hbase.rootdir", "hdfs://n/hbase")];
        Ok(pb::RegionServerStartupResponse { map_entries }.into())
    }

    fn region_server_report(
        &self,
        call: &Call,
        request: pb::RegionServerReportRequest,
    ) -> Answer<pb::RegionServerReportResponse> {
        self.reports.lock().push(request);
        self.next(call)?;
        Ok(pb::RegionServerReportResponse::default().into())
    }

    fn report_region_state_transition(
        &self,
        call: &Call,
        _: pb::ReportRegionStateTransitionRequest,
    ) -> Answer<pb::ReportRegionStateTransitionResponse> {
        self.next(call)?;
        Ok(pb::ReportRegionStateTransitionResponse { error_message: self.refusal.lock().clone() }.into())
    }
}

struct Port(Arc<Master>);

impl Handler for Port {
    fn call(&self, call: Call) -> Outcome {
        match call.service {
            Service::RegionServerStatus => RegionServerStatusService::dispatch(&*self.0, call),
            _ => Exception::unsupported(call.method).into(),
        }
    }

    fn cluster_id(&self) -> Option<String> {
        None
    }
}

struct Place {
    tree: TreeHandle,
    znodes: HBaseZnodes,
    master: Arc<Master>,
    link: Arc<MasterLink>,
    _port: rpc::Server,
}

impl Place {
    async fn new() -> Place {
        let (clock, rng, config) = (Arc::new(SystemClock::new()), Arc::new(Rng::seeded(1)), Config::default());
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint =
            Endpoint::bind(anywhere, EndpointOptions::from_config(&config), clock.clone(), rng.clone()).await;
        let tree = endpoint.expect("bound").tree();
        let master = Arc::new(Master::default());
        let port = Arc::new(Port(master.clone()));
        let port = rpc::Server::bind(anywhere, port, clock, rpc::Limits::from_config(&config)).expect("bound");
        let znodes = HBaseZnodes::new(Arc::new(tree.clone()), "/hbase", port.local_addr().port(), rng);
        znodes.create_base_nodes().expect("made");
        let nodes = ClusterNodes::new(Arc::new(tree.clone()), "/hbase");
        let link = Arc::new(MasterLink::new(nodes, Duration::from_secs(10)));
        Place { tree, znodes, master, link, _port: port }
    }

    /// A master is active, and the cluster is up.
    fn lead(&self) {
        let name = ServerName::new("127.0.0.1", self._port.local_addr().port(), 1);
        self.znodes.set_cluster_id("the id").expect("set");
        self.znodes.set_running("today").expect("set");
        self.znodes.set_master(&name, None).expect("set");
    }

    async fn join(&self, host: Option<&str>) -> Result<crate::Admitted, JoinError> {
        let candidate = Candidate { host: host.map(str::to_owned), port: 16020, start_code: 7, version: None };
        let (clock, rng) = (SystemClock::new(), Rng::seeded(2));
        let joined = join(&self.link, &candidate, None, (&clock, &rng));
        tokio::time::timeout(Duration::from_secs(20), joined).await.expect("in time")
    }
}

fn not_yet() -> Exception {
    Exception::server_not_running_yet("Server is not running yet")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_waits_for_a_master_and_is_known_as_that_one_says() {
    let place = Place::new().await;
    place.master.exceptions.lock().push(not_yet());
    let version = pb::VersionInfo { version: "2.6.4-hadoop3".into(), ..pb::VersionInfo::default() };
    place.znodes.add_region_server(&ServerName::new("a", 1, 1), None, Some(version)).expect("there");
    let (joined, ()) = tokio::join!(place.join(None), async {
        tokio::task::yield_now().await;
        place.lead();
    });
    let joined = joined.expect("let in");
    assert_eq!(joined.server_name, ServerName::new("seen.example", 16020, 7));
    assert_eq!(joined.cluster_id, "the id");
    assert_eq!(joined.settings, [("hbase.rootdir".to_owned(), "hdfs://n/hbase".to_owned())]);
    let node = Coordinator::value(&place.tree, "/hbase/rs/seen.example,16020,7").await.expect("an answer");
    let said = coordination::hbase_znodes::read_region_server_version(&node.expect("the server's node"));
    assert_eq!(said.as_deref(), Some("2.6.4-hadoop3"), "as the other server");
    assert!(place.master.versions.lock().iter().all(|version| version == "2.6.4-hadoop3"));
    assert_eq!(place.master.versions.lock().len(), 2, "it was asked again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_a_member_impossible_is_said() {
    let place = Place::new().await;
    place.lead();
    place.master.exceptions.lock().push(Exception::new(Kind::ClockOutOfSync, "31 s off"));
    let refused = place.join(None).await.expect_err("its clock is wrong");
    assert!(matches!(refused, JoinError::Refused(_)) && refused.to_string().contains("31 s off"), "{refused}");

    place.tree.publish("/hbase/rs/b,16020,7", Bytes::from_static(b"another's"), false).expect("made");
    assert!(matches!(place.join(Some("b")).await, Err(JoinError::Taken(_))));

    let state = pb::ReplicationState { state: pb::replication_state::State::Enabled as i32 };
    place.znodes.set_peer("p", b"PBUF", &proto::magic::encode(&state)).expect("set");
    let refused = place.join(None).await.expect_err("it would not ship edits");
    assert!(matches!(refused, JoinError::Replicates(ref peer) if peer == "p"), "{refused}");
    let state = pb::ReplicationState { state: pb::replication_state::State::Disabled as i32 };
    place.znodes.set_peer("p", b"PBUF", &proto::magic::encode(&state)).expect("set");
    assert!(place.join(None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_the_master_takes_for_dead_is_told_so() {
    let place = Place::new().await;
    place.lead();
    let name = ServerName::new("a", 16020, 7);
    // The last comes first: a master that starts, one that has it, one that does not.
    let dead = Exception::new(Kind::YouAreDead, "currently processing a,16020,7 as dead server");
    *place.master.exceptions.lock() = vec![dead, not_yet()];
    let load = || pb::ServerLoad { total_number_of_requests: Some(3), ..pb::ServerLoad::default() };
    let expelled = keep_reporting(&place.link, &name, Duration::from_millis(10), load);
    let expelled = tokio::time::timeout(Duration::from_secs(20), expelled).await.expect("in time");
    assert!(matches!(expelled, Expelled::Dead(_)), "{expelled}");
    let reports = place.master.reports.lock();
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0].load.as_ref().and_then(|load| load.total_number_of_requests), Some(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_tried_until_a_master_answers_it() {
    let place = Place::new().await;
    place.lead();
    let reporter = Reporter::new(place.link.clone(), ServerName::new("a", 16020, 7));
    *place.master.exceptions.lock() = vec![Exception::please_hold(), not_yet()];
    let transition = || pb::RegionStateTransition::default();
    let told = tokio::time::timeout(Duration::from_secs(20), reporter.region_transition(transition())).await;
    assert_eq!(told.expect("in time"), Ok(()));
    *place.master.refusal.lock() = Some("You are dead".into());
    let told = tokio::time::timeout(Duration::from_secs(20), reporter.region_transition(transition())).await;
    assert_eq!(told.expect("in time"), Err("You are dead".into()), "a refusal is never taken for done");
}
