//! A server with made-up numbers, and a client that sends bytes.

use basalt_web::Details;
use basalt_web::details::{
    Heap, Lock, Machine, MeasuredSnapshots, Procedure, ProcessDetails, Profile, ProfileRequest, Profiles, Quota,
    Reports, Running as Work, Runtime, SlowCall, Snapshot, SnapshotSizes, StoreFile, Thread,
};
use basalt_web::settings::MetricsPages;
use basalt_web::status::*;
use base::ManualClock;
use base::metrics::{IPC, MASTER, REGION_SERVER, Registry, Sample, Unit, WAL};
use bytes::Bytes;
use key_statistics::{Grid, History, KeySampler, Kind, Measure};
use model::status::{Locality, RegionLoad};
use model::{RegionInfo, ServerName, TableName};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

pub const STARTED_MS: i64 = 1_795_229_872_099;

/// A server whose others are other processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    RegionServer,
    Master,
}

/// What the numbers come from.
pub struct Fake {
    pub requests: AtomicU64,
    pub regions: usize,
    pub serving: AtomicBool,
    pub evil: bool,
    pub gateway: Option<GatewayKind>,
    /// A server without the other kind in its process.
    pub alone: Option<Alone>,
    /// What logs from which level on.
    pub level: std::sync::Mutex<String>,
    /// Metrics as the parts of a process register them.
    pub registry: Arc<Registry>,
}

impl StatusSource for Fake {
    fn status(&self) -> Status {
        let name = ServerName::new("localhost", 16020, STARTED_MS as u64);
        let table = TableName::parse("ns:orders").expect("legal");
        let regions = (0..self.regions).map(|i| {
            let start = if self.evil { Bytes::from_static(b"<script>alert(1)</script>") } else { key(i) };
            let info = RegionInfo::new(table.clone(), start, key(i + 1), 1);
            let load = RegionLoad {
                stores: 2,
                store_files: 3,
                store_file_size_bytes: 1000,
                read_requests: 7,
                locality: Locality { total_bytes: 1000, local_bytes: 250, local_ssd_bytes: 1000 },
                ..RegionLoad::default()
            };
            Region { info, load }
        });
        let evil =
            |text: &str| if self.evil { format!("{text}\"><img src=x onerror=alert(1)>") } else { text.to_owned() };
        Status {
            version: "0.1.0".to_owned(),
            master: ServerName::new("localhost", 16000, STARTED_MS as u64),
            live_servers: vec![name.clone()],
            region_server: name,
            draining_servers: Vec::new(),
            dead_servers: Vec::new(),
            cluster_id: "id".to_owned(),
            zookeeper_quorum: evil("127.0.0.1:2181"),
            host_name: evil("host"),
            started_ms: STARTED_MS,
            initialized_ms: STARTED_MS + 50,
            data_directory: evil("/data"),
            ports: vec![Port { name: "master", address: "127.0.0.1:16000".to_owned() }],
            requests: self.requests(),
            memory: Memory { budget_bytes: 1 << 30, memstore_bytes: 1 << 20, ..Memory::default() },
            volumes: Vec::new(),
            block_cache: BlockCache { hits: 3, misses: 1, ..BlockCache::default() },
            log: Log { syncs: 10, sync_us: 5000, ..Log::default() },
            holders: vec![Holder {
                name: "requests",
                held_bytes: 4711,
                highest_bytes: 9000,
                cap_bytes: Some(16 << 20),
            }],
            queues: Queues::default(),
            rpc: Rpc { connections: 2, ..Rpc::default() },
            tables: vec![Table { name: table.clone(), state: "ENABLED", families: vec![evil("f")] }],
            regions: regions.collect(),
            in_transition: vec![InTransition {
                region: evil("r"),
                state: "OPENING".to_owned(),
                since_ms: STARTED_MS - 100_000,
            }],
            cluster: None,
            problems: vec![Problem { at_ms: STARTED_MS, text: evil("a flush failed") }],
        }
    }

    fn metrics(&self, now_ms: i64) -> Vec<Sample> {
        self.registry.read(now_ms)
    }

    fn requests(&self) -> Requests {
        let total = self.requests.load(Ordering::SeqCst);
        Requests { total, reads: total / 2, filtered_reads: 0, writes: total / 4 }
    }

    fn configuration(&self) -> Vec<Property> {
        let property = |key: &str, value: &str| Property {
            key: key.to_owned(),
            value: value.to_owned(),
            source: "hbase-site.xml",
        };
        vec![property("hbase.z", "<&\">"), property("hbase.a", "1"), property("ssl.keystore.password", "hunter2")]
    }

    fn is_region_server_alone(&self) -> bool {
        self.alone == Some(Alone::RegionServer)
    }

    fn is_master_alone(&self) -> bool {
        self.alone == Some(Alone::Master)
    }

    fn is_serving(&self) -> bool {
        self.serving.load(Ordering::SeqCst)
    }

    fn details(&self) -> Option<&dyn Details> {
        self.gateway.is_none().then_some(self)
    }

    fn process(&self) -> Option<&dyn ProcessDetails> {
        Some(self)
    }

    fn gateway(&self) -> Option<Gateway> {
        self.gateway.map(|kind| Gateway { kind, facts: vec![("Cluster", self.evil("zk1:2181"))] })
    }
}

impl Fake {
    /// `text`, with what a browser must not take for markup where somebody is evil.
    fn evil(&self, text: &str) -> String {
        if self.evil { format!("{text}\"><script>alert(1)</script><img src=x>") } else { text.to_owned() }
    }
}

impl Details for Fake {
    fn procedures(&self) -> Vec<Procedure> {
        let one = |id, state: &str| Procedure {
            id,
            class: self.evil("SplitTableRegionProcedure"),
            state: state.to_owned(),
            owner: self.evil("root"),
            ..Procedure::default()
        };
        vec![one(7, "SUCCESS"), one(3, "RUNNABLE")]
    }

    fn locks(&self) -> Vec<Lock> {
        vec![Lock { kind: "table", name: self.evil("ns:orders"), is_exclusive: true }]
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, String> {
        let one = |name: &str| Snapshot { name: self.evil(name), table: self.evil("ns:orders"), ..Snapshot::default() };
        Ok(vec![one("monday"), one("tuesday")])
    }

    fn snapshot_sizes(&self) -> Result<(Vec<Snapshot>, Option<MeasuredSnapshots>), String> {
        let sizes = SnapshotSizes {
            files: 4,
            archived_files: 1,
            shared_bytes: 3 << 20,
            archived_bytes: 1 << 20,
            own_archived_bytes: 512 << 10,
            ..SnapshotSizes::default()
        };
        let damaged = Err(self.evil("data.manifest is damaged"));
        let each = [(self.evil("monday"), Ok(sizes)), (self.evil("tuesday"), damaged)];
        let measured = MeasuredSnapshots { at_ms: STARTED_MS, each: each.into(), all: sizes, is_whole: true };
        Ok((self.snapshots()?, Some(measured)))
    }

    fn quotas(&self) -> Result<Vec<Quota>, String> {
        if self.evil {
            Err(self.evil("no answer"))
        } else {
            Ok(vec![Quota { subject: "user u".into(), limits: "10 requests".into() }])
        }
    }

    fn slow_calls_everywhere(&self) -> (Vec<SlowCall>, Vec<String>) {
        let mut calls = self.slow_calls();
        let mut silent = Vec::new();
        if self.alone == Some(Alone::Master) {
            calls.iter_mut().for_each(|call| call.server = "rs1,16020,1".to_owned());
            silent.push("rs2,16020,1 has not said which calls were slow".to_owned());
        }
        (calls, silent)
    }

    fn slow_calls(&self) -> Vec<SlowCall> {
        let call = SlowCall { method: "Scan".into(), took_ms: 12_345, is_slow: true, ..SlowCall::default() };
        vec![SlowCall { details: self.evil("startRow=a"), client: self.evil("10.0.0.1:1"), ..call }]
    }

    fn running(&self) -> Vec<Work> {
        vec![Work {
            what: "compaction",
            region: self.evil("abc"),
            table: self.evil("ns:orders"),
            cells: Some((30, 100)),
        }]
    }

    fn table(&self, name: &str) -> Option<Vec<String>> {
        (name == "ns:orders").then(|| vec![self.evil("ns:orders"), self.evil("{NAME => 'f'}")])
    }

    fn store_files(&self, region: &str) -> Option<Vec<StoreFile>> {
        (region == "abc").then(|| vec![StoreFile { name: self.evil("0123"), bytes: 2048, ..StoreFile::default() }])
    }

    fn reports(&self) -> Reports {
        Reports { hbck_ended_ms: STARTED_MS, findings: vec![("hole", self.evil("ns:orders from a to b"))] }
    }

    fn tables_with_keys(&self) -> Vec<TableName> {
        ["hbase:meta", "ns:orders"].map(|name| TableName::parse(name).expect("a name")).to_vec()
    }

    fn key_grid(&self, table: &TableName, measure: Measure, span_ms: i64) -> Option<Grid> {
        let mut history = History::new(1 << 20);
        let sampler = KeySampler::new();
        for minute in 0..30 {
            let hot = self.evil("customer-7");
            sampler.passed(table, Kind::Read, 9, |_| (hot.as_bytes(), 100));
            sampler.passed(table, Kind::Read, 1, |_| (b"customer-\xff", 100));
            history.record(STARTED_MS + minute * 60_000, sampler.take());
        }
        Some(history.grid(table, measure, STARTED_MS + 29 * 60_000 + 1, span_ms))
    }

    fn znodes(&self) -> String {
        self.evil("HBase is rooted at /hbase")
    }
}

impl ProcessDetails for Fake {
    fn threads(&self) -> Vec<Thread> {
        vec![Thread { id: 4711, name: self.evil("flusher-0"), ..Thread::default() }]
    }

    fn profiles(&self) -> Profiles {
        let request = ProfileRequest { event: self.evil("cpu-clock"), seconds: 10 };
        let profile = |id, error: Option<&str>| Profile {
            id,
            begun_ms: STARTED_MS,
            request: request.clone(),
            samples: 4321,
            error: error.map(|error| self.evil(error)),
        };
        Profiles { recording: None, done: vec![profile(7, None), profile(6, Some("perf is not installed"))] }
    }

    fn start_profile(&self, request: ProfileRequest) -> Result<(), String> {
        if request.seconds == 10 && request.event == "cpu-clock" { Ok(()) } else { Err(format!("{request:?}")) }
    }

    fn profile(&self, id: u64) -> Option<String> {
        (id == 7).then(|| "<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_owned())
    }

    fn runtime(&self) -> Runtime {
        let arguments = ["standalone", "-D", "a.password=secret", "<b>"];
        Runtime {
            resident_bytes: 5120,
            heap: Heap::of(5120, Some((4096, 8192)), 1 << 20),
            threads: 1,
            pid: 77,
            arguments: arguments.map(str::to_owned).into(),
            machine: Machine { host: "host".to_owned(), ..Machine::default() },
            ..Runtime::default()
        }
    }

    fn log_lines(&self) -> Vec<String> {
        vec![self.evil("WARN the disk is full")]
    }

    fn log_filter(&self) -> String {
        self.level.lock().expect("nobody panicked").clone()
    }

    fn set_log_level(&self, part: &str, level: &str) -> Result<String, String> {
        if part.is_empty() {
            return Err("no part".to_owned());
        }
        *self.level.lock().expect("nobody panicked") = format!("{part}={level}");
        Ok(self.log_filter())
    }

    fn token(&self) -> &str {
        "0123456789abcdef"
    }
}

/// A few metrics of each kind.
fn registry(regions: usize) -> Arc<Registry> {
    let registry = Registry::new();
    registry.collect(move |sink, _| {
        sink.bean(MASTER).gauge("numRegionServers", 1).real("averageLoad", regions as f64);
        sink.bean(REGION_SERVER).gauge("regionCount", regions as u64).gauge("memStoreSize", 1 << 20);
        sink.bean(IPC).gauge("numOpenConnections", 2);
        sink.bean(WAL).counter("appendCount", 10);
    });
    let get = registry.histogram(REGION_SERVER, "get", Unit::Micros);
    [1000, 1000, 1000, 9000].into_iter().for_each(|us| get.record(us));
    registry.counter(REGION_SERVER, "blockCacheHitCount").add(3);
    registry
}

fn key(i: usize) -> Bytes {
    Bytes::from(format!("row{i:06}"))
}

/// A server that runs until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub second: SocketAddr,
    pub fake: Arc<Fake>,
    pub clock: Arc<ManualClock>,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub fn start(regions: usize, evil: bool) -> Running {
        Running::with_timeouts(regions, evil, Duration::from_secs(10), Duration::from_secs(60))
    }

    pub fn with_metrics(metrics: MetricsPages) -> Running {
        Running::with(1, (false, None), (metrics, None), (Duration::from_secs(10), Duration::from_secs(60)))
    }

    pub fn with_timeouts(regions: usize, evil: bool, head: Duration, connection: Duration) -> Running {
        Running::with(regions, (evil, None), (MetricsPages::default(), None), (head, connection))
    }

    pub fn of_gateway(kind: GatewayKind, evil: bool) -> Running {
        Running::with(
            0,
            (evil, Some(kind)),
            (MetricsPages::default(), None),
            (Duration::from_secs(10), Duration::from_secs(60)),
        )
    }

    /// A region server whose master is another process.
    pub fn of_region_server(regions: usize) -> Running {
        let times = (Duration::from_secs(10), Duration::from_secs(60));
        Running::with(regions, (false, None), (MetricsPages::default(), Some(Alone::RegionServer)), times)
    }

    /// A master whose region servers are other processes.
    pub fn of_master() -> Running {
        let times = (Duration::from_secs(10), Duration::from_secs(60));
        Running::with(2, (false, None), (MetricsPages::default(), Some(Alone::Master)), times)
    }

    fn with(
        regions: usize,
        (evil, gateway): (bool, Option<GatewayKind>),
        (metrics, alone): (MetricsPages, Option<Alone>),
        (head, connection): (Duration, Duration),
    ) -> Running {
        let registry = registry(regions);
        let fake = Arc::new(Fake {
            requests: AtomicU64::new(0),
            regions,
            serving: AtomicBool::new(true),
            evil,
            gateway,
            alone,
            level: std::sync::Mutex::new("warn".into()),
            registry,
        });
        let clock = Arc::new(ManualClock::new(STARTED_MS + 60_000));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let source = fake.clone() as Arc<dyn basalt_web::StatusSource>;
        let mut server = basalt_web::Server::bind_with(any, source, clock.clone(), metrics).expect("bind");
        let address = server.local_addr();
        let second = server.listen_also(any).expect("bind");
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.with_timeouts(head, connection).run(async {
            let _ = stopped.await;
        }));
        Running { address, second, fake, clock, stop: Some(stop), task }
    }

    pub async fn stop(mut self) {
        let _ = self.stop.take().expect("once").send(());
        self.task.await.expect("no panic").expect("no error");
    }

    /// Sends bytes and reads all that comes.
    pub async fn raw(&self, request: &[u8]) -> String {
        Running::raw_at(self.address, request).await
    }

    async fn raw_at(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.expect("connect");
        stream.write_all(request).await.expect("write");
        let mut answer = Vec::new();
        // a connection that is reset has said what it had to
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).expect("answers are UTF-8")
    }

    /// Sends a form.
    pub async fn post(&self, path: &str, form: &str) -> Response {
        let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{form}", form.len());
        Response::parse(&self.raw(request.as_bytes()).await)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.get_at(self.address, path).await
    }

    pub async fn get_at(&self, address: SocketAddr, path: &str) -> Response {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        Response::parse(&Running::raw_at(address, request.as_bytes()).await)
    }
}

pub struct Response {
    pub code: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    pub fn parse(text: &str) -> Response {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status code");
        Response { code, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}
