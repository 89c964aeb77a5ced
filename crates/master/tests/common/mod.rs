//! A master with region servers made of maps, on a machine that can be switched off at any call, and what must hold after a start.
#![allow(dead_code, reason = "each test file uses a part")]

mod host;
mod machine;

pub use host::{Catalog, Cells, FakeHost, put_cell};
pub use machine::{Machine, MachineVolume};

use basalt_master::cluster::{NamespaceConfiguration, RegionState, TableState};
use basalt_master::{
    BoxFuture, Caller, GroupMapping, HostError, Inherited, LogSplitter, Master, MasterEnv, Observer, OneRack,
    PeerNodes, RegionHost, ServerLogs, StartError, meta,
};
use base::{Config, ManualClock, Rng};
use bytes::Bytes;
use fs::{FilePath, MemVolume, Volume};
use model::{FamilyDescriptor, RegionInfo, ServerName, TableDescriptor, TableName};
use parking_lot::Mutex;
use proto::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

#[derive(Default)]
pub struct Notes {
    pub tables: Mutex<BTreeMap<String, Option<TableState>>>,
    pub namespaces: Mutex<BTreeMap<String, bool>>,
    pub peers: Mutex<BTreeMap<String, PeerNodes>>,
    /// Where read replicas of hbase:meta are.
    pub meta_replicas: Mutex<BTreeMap<u32, (ServerName, RegionState)>>,
    pub groups: Mutex<BTreeMap<String, Bytes>>,
    /// Servers that were to have hbase:meta, and whom the next master is to find.
    pub meta_locations: tokio::sync::watch::Sender<Vec<ServerName>>,
    /// While this is held, the next master does not find it there.
    pub meta_gate: tokio::sync::RwLock<()>,
    pub stops: Mutex<Vec<bool>>,
}

impl Observer for Notes {
    fn table_state(&self, table: &TableName, state: Option<TableState>) {
        self.tables.lock().insert(table.to_string(), state);
    }
    fn namespace(&self, name: &str, configuration: Option<&NamespaceConfiguration>) {
        self.namespaces.lock().insert(name.to_owned(), configuration.is_some());
    }
    fn meta_replica(&self, id: u32, at: Option<(&ServerName, RegionState)>) {
        let mut replicas = self.meta_replicas.lock();
        match at {
            Some((server, state)) => drop(replicas.insert(id, (server.clone(), state))),
            None => drop(replicas.remove(&id)),
        }
    }
    fn meta_location_is_kept<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<(), String>> {
        self.meta_locations.send_modify(|all| all.push(server.clone()));
        Box::pin(async move {
            let _through = self.meta_gate.read().await;
            Ok(())
        })
    }
    fn peer(&self, id: &str, nodes: Option<&PeerNodes>) {
        let mut peers = self.peers.lock();
        match nodes {
            Some(nodes) => drop(peers.insert(id.to_owned(), nodes.clone())),
            None => drop(peers.remove(id)),
        }
    }
    fn region_server_group(&self, name: &str, node: Option<&[u8]>) {
        let mut groups = self.groups.lock();
        match node {
            Some(node) => drop(groups.insert(name.to_owned(), Bytes::copy_from_slice(node))),
            None => drop(groups.remove(name)),
        }
    }
    fn stop_requested(&self, whole_cluster: bool) {
        self.stops.lock().push(whole_cluster);
    }
}

/// Splits no logs, and says so.
#[derive(Default)]
pub struct Splitter {
    pub split: Mutex<Vec<(ServerName, ServerLogs)>>,
    /// Splits that are to fail first.
    pub failures: AtomicI64,
    /// While this is held, a split waits.
    pub gate: tokio::sync::RwLock<()>,
}

impl LogSplitter for Splitter {
    fn split_logs(&self, server: &ServerName, which: ServerLogs) -> BoxFuture<'_, Result<(), HostError>> {
        let server = server.clone();
        Box::pin(async move {
            let _through = self.gate.read().await;
            if self.failures.fetch_sub(1, Ordering::SeqCst) > 0 {
                return Err(HostError::Failed("a log cannot be read".into()));
            }
            self.split.lock().push((server, which));
            Ok(())
        })
    }
}

/// One life of a server.
pub struct Life {
    pub master: Arc<Master>,
    /// The first region server, the only one in most tests.
    pub host: Arc<FakeHost>,
    /// All of them.
    pub hosts: Vec<Arc<FakeHost>>,
    pub machine: Arc<Machine>,
    pub memory: MemVolume,
    pub catalog: Catalog,
    pub notes: Arc<Notes>,
    pub splitter: Arc<Splitter>,
    pub clock: Arc<ManualClock>,
}

pub const EVER: i64 = i64::MAX;
/// Setting of a host that opens regions without a directory.
pub const LENIENT: &str = "test.lenient";
/// Setting of hosts that are machines of their own: `host0` and so on.
pub const APART: &str = "test.apart";
/// Setting of a host whose log takes so long to sync.
pub const SYNC_MS: &str = "test.sync.ms";
/// Setting of hosts that are other processes, and of which the first three scans of a table come before they have taken in that its region is open.
pub const LATE: &str = "test.late";

/// Has tables called `of_<group>` in that group, as a script would.
pub struct ByPrefix;

impl GroupMapping for ByPrefix {
    fn group<'a>(&'a self, table: &'a TableName) -> BoxFuture<'a, Option<String>> {
        let group = table.qualifier().strip_prefix("of_").map(str::to_owned);
        Box::pin(std::future::ready(group))
    }
}

pub async fn start(memory: &MemVolume, catalog: &Catalog, config: Config) -> Result<Life, StartError> {
    start_with(memory, catalog, config, 1).await
}

/// With so many region servers.
pub async fn start_with(
    memory: &MemVolume,
    catalog: &Catalog,
    config: Config,
    servers: u16,
) -> Result<Life, StartError> {
    start_after(memory, catalog, config, servers, Inherited::default()).await
}

/// After a master that has left this.
pub async fn start_after(
    memory: &MemVolume,
    catalog: &Catalog,
    config: Config,
    servers: u16,
    inherited: Inherited,
) -> Result<Life, StartError> {
    let machine = Machine::new(EVER);
    let volume = Arc::new(MachineVolume { memory: memory.clone(), machine: Arc::clone(&machine) });
    let clock = Arc::new(ManualClock::new(1_795_220_000_000));
    let cluster_id = rootdir::root::prepare(&*volume, &Rng::seeded(5)).expect("a root directory");
    let host = |number: u16| FakeHost {
        machine: Arc::clone(&machine),
        volume: Arc::clone(&volume),
        catalog: Arc::clone(catalog),
        open: Mutex::default(),
        split_points: Mutex::default(),
        broken: Mutex::default(),
        flushed: Mutex::default(),
        log_entries: AtomicI64::new(0),
        server: if config.is_set(APART) {
            ServerName::new(&format!("host{number}"), 16020, 1)
        } else {
            server_name(number, 1)
        },
        lenient: config.is_set(LENIENT),
        locality: Mutex::default(),
        unreached: AtomicBool::default(),
        remote: AtomicBool::new(config.is_set(LATE)),
        late: Mutex::new(config.text(LATE).map(|table| (table.to_owned(), 3))),
        at_open: Mutex::default(),
        sync_ms: AtomicU64::new(config.text(SYNC_MS).map_or(0, |text| text.parse().expect("a number"))),
    };
    let hosts: Vec<Arc<FakeHost>> = (0..servers).map(|number| Arc::new(host(number))).collect();
    let notes = Arc::new(Notes::default());
    let splitter = Arc::new(Splitter::default());
    let env = MasterEnv {
        volume,
        clock: clock.clone(),
        hosts: hosts.iter().map(|host| host.clone() as Arc<dyn RegionHost>).collect(),
        config,
        inherited,
        log_splitter: splitter.clone(),
        observer: notes.clone(),
        racks: Arc::new(OneRack),
        group_mapping: Arc::new(ByPrefix),
        cluster_id,
        server_name: ServerName::new("localhost", 16000, 1_795_220_000_000),
        info_port: Some(16010),
    };
    let master = Master::start(env).await?;
    Ok(Life {
        master,
        host: hosts[0].clone(),
        hosts,
        machine,
        memory: memory.clone(),
        catalog: Arc::clone(catalog),
        notes,
        splitter,
        clock,
    })
}

/// The name of a region server in its life of this number.
pub fn server_name(number: u16, life: u64) -> ServerName {
    ServerName::new("localhost", 16020 + number, 1_795_220_000_000 + life)
}

pub async fn fresh() -> Life {
    start(&MemVolume::new(), &Catalog::default(), Config::default()).await.expect("a first start")
}

impl Life {
    /// Another region server comes, or one that was there in another life.
    pub fn join(&mut self, number: u16, life: u64) {
        let host = Arc::new(FakeHost {
            machine: Arc::clone(&self.machine),
            volume: Arc::clone(&self.host.volume),
            catalog: Arc::clone(&self.catalog),
            open: Mutex::default(),
            split_points: Mutex::default(),
            broken: Mutex::default(),
            flushed: Mutex::default(),
            log_entries: AtomicI64::new(0),
            locality: Mutex::default(),
            unreached: AtomicBool::default(),
            remote: AtomicBool::new(false),
            late: Mutex::default(),
            at_open: Mutex::default(),
            server: server_name(number, life),
            lenient: false,
            sync_ms: AtomicU64::new(0),
        });
        assert!(self.master.server_joined(host.clone()));
        self.hosts.push(host);
    }

    /// Stops orderly and starts again on the same files.
    pub async fn restart(&self) -> Life {
        self.master.stop();
        start(&self.memory, &self.catalog, Config::default()).await.expect("another start")
    }

    pub async fn create(&self, name: &str, families: &[&str], split_keys: &[&str]) {
        let keys: Vec<Bytes> = split_keys.iter().map(|key| Bytes::copy_from_slice(key.as_bytes())).collect();
        let id = self.master.create_table(table(name, families), &keys, &caller()).await.expect("accepted");
        self.master.wait_for(id).await.expect("created");
    }

    pub async fn disable(&self, name: &str) {
        let id = self.master.disable_table(&table_name(name), &caller()).await.expect("accepted");
        self.master.wait_for(id).await.expect("disabled");
    }

    /// A store file in every region and family of a table, as if it had been written and flushed.
    pub fn fill(&self, name: &str) {
        for info in self.regions(name) {
            let families = self.host.open.lock()[&**info.encoded_name()].1.families.clone();
            for (number, family) in families.keys().enumerate() {
                let family = String::from_utf8_lossy(family).into_owned();
                let file = format!("{}{number:x}", &info.encoded_name()[..31]);
                self.memory.put_file(&rootdir::region_dir(&info).join(family).join(file), b"cells");
            }
        }
    }

    /// Live regions in key order.
    pub fn regions(&self, name: &str) -> Vec<RegionInfo> {
        let cluster = self.master.cluster();
        let live = cluster.regions_of(&table_name(name)).filter(|node| node.is_live());
        live.map(|node| node.info.clone()).collect()
    }

    pub fn files_below(&self, dir: &str) -> Vec<String> {
        let dir = FilePath::new(dir);
        let files = self.memory.all_files();
        files.iter().filter(|path| path.starts_with(&dir)).map(|path| path.as_str().to_owned()).collect()
    }

    /// What must be true of a server that is at rest.
    pub fn check(&self) {
        let cluster = self.master.cluster();
        let open = self.host.open.lock();
        let catalog = self.catalog.lock();
        let content = meta::parse_meta(&catalog["1588230740"].scan());
        assert_eq!(content.strange_rows, Vec::<String>::new());
        // The picture is the catalog's.
        let picture: BTreeMap<TableName, TableState> = cluster
            .tables()
            .map(|(table, state)| (table.name.clone(), state))
            .filter(|(table, _)| !table.is_meta())
            .collect();
        assert_eq!(picture, content.tables.iter().cloned().collect());
        let in_meta: BTreeMap<String, _> =
            content.regions.iter().map(|row| (row.info.encoded_name().to_string(), row)).collect();
        let mut known = 0;
        for (table, state) in cluster.tables() {
            let name = &table.name;
            assert!(matches!(state, TableState::Enabled | TableState::Disabled), "{name} is {state:?}");
            let mut end: Option<Bytes> = None;
            for node in cluster.regions_of(name) {
                let info = &node.info;
                if !name.is_meta() {
                    known += 1;
                    let row = in_meta[&**info.encoded_name()];
                    assert_eq!(row.info, *info);
                    assert_eq!(row.state, Some(node.state), "{}", info.name_string());
                }
                if !node.is_live() {
                    assert!(!open.contains_key(&**info.encoded_name()));
                    continue;
                }
                // Regions tile the key space.
                match &end {
                    None => assert!(info.start_key.is_empty(), "{name} begins at its beginning"),
                    Some(end) => assert_eq!(*end, info.start_key, "{name} has no gap"),
                }
                end = Some(info.end_key.clone());
                let serving = open.get(&**info.encoded_name());
                if state == TableState::Enabled {
                    assert_eq!(node.state, RegionState::Open, "{}", info.name_string());
                    assert_eq!(serving.map(|(_, table)| table), Some(table), "{}", info.name_string());
                } else {
                    assert!(serving.is_none(), "{}", info.name_string());
                }
            }
            assert_eq!(end.as_deref(), Some(&b""[..]), "{name} ends at its end");
        }
        assert_eq!(known, in_meta.len(), "no rows of regions that nobody knows");
        // No directory that hbase:meta does not know.
        for table in rootdir::descriptor::list_tables(&self.memory).expect("memory") {
            assert!(cluster.exists(&table), "a directory of no table: {table}");
            for entry in self.memory.list(&rootdir::table_dir(&table)).expect("memory") {
                let merged_away = || {
                    let mut parents = cluster.regions_of(&table).flat_map(|node| &node.merge_parents);
                    parents.any(|parent| **parent.encoded_name() == entry.name)
                };
                if !entry.name.starts_with('.') && !merged_away() {
                    assert!(cluster.region(&entry.name).is_some(), "a directory of no region: {table} {}", entry.name);
                }
            }
        }
        assert_eq!(self.master.unfinished_procedures(), 0);
    }
}

pub fn caller() -> Caller {
    Caller { user: "tester".into(), nonce: None }
}

pub fn table_name(name: &str) -> TableName {
    TableName::parse(name).expect("a legal name")
}

pub fn table(name: &str, families: &[&str]) -> TableDescriptor {
    let families = families.iter().map(|family| FamilyDescriptor::new(Bytes::copy_from_slice(family.as_bytes())));
    TableDescriptor::new(table_name(name), families)
}

pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub fn golden(path: &str) -> Vec<u8> {
    #[allow(clippy::disallowed_methods, reason = "a test reads its golden file")]
    let read = std::fs::read(format!("{}/../../tests/golden/{path}", env!("CARGO_MANIFEST_DIR")));
    read.expect("the golden file is in the repository")
}

/// The files of a `.tar.gz`: plain entries with short names are all there are in ours, and GNU long names.
pub fn untar(name: &str) -> MemVolume {
    let packed = golden(name);
    let mut tar = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut tar).expect("gzip");
    let volume = MemVolume::new();
    let text = |field: &[u8]| {
        let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
        String::from_utf8(field[..end].to_vec()).expect("text")
    };
    let (mut at, mut long_name) = (0, None);
    while at + 512 <= tar.len() && tar[at] != 0 {
        let header = &tar[at..at + 512];
        let len = usize::from_str_radix(text(&header[124..136]).trim(), 8).expect("octal");
        let body = &tar[at + 512..at + 512 + len];
        let path = long_name.take().unwrap_or_else(|| {
            let prefix = text(&header[345..500]);
            let name = text(&header[..100]);
            if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
        });
        let path = path.trim_start_matches("./").trim_end_matches('/').to_owned();
        match header[156] {
            b'L' => long_name = Some(text(body)),
            b'5' if !path.is_empty() && path != "." => volume.create_dir_all(&FilePath::new(path)).expect("memory"),
            b'0' => volume.put_file(&FilePath::new(path), body),
            _ => {}
        }
        at += 512 + len.div_ceil(512) * 512;
    }
    for dir in volume.all_files().iter().map(FilePath::parent) {
        volume.sync_dir(&dir).expect("memory");
    }
    volume
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

/// A row as `Bytes.toStringBinary` prints it.
pub fn unprint(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(b"\\x") {
            Some(hex) => {
                out.push(u8::from_str_radix(std::str::from_utf8(&hex[..2]).expect("hex"), 16).expect("hex"));
                rest = &hex[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// hbase:meta and hbase:namespace as the captured cluster had them.
pub fn captured_catalog() -> Catalog {
    let catalog = Catalog::default();
    let dump = String::from_utf8(golden("cluster/meta-dump.jsonl")).expect("text");
    for line in dump.lines() {
        let cell: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        let text = |key: &str| cell[key].as_str().expect(key);
        let stamp = cell["ts"].as_i64().expect("ts");
        put_cell(&catalog, "1588230740", &unprint(text("row")), text("column"), stamp, &unhex(text("value_hex")));
    }
    for (name, pairs) in [("default", None), ("hbase", None), ("ns1", Some(("k".to_owned(), "v".to_owned())))] {
        let value = convert::to_proto::namespace(name, &pairs.into_iter().collect()).encode_to_vec();
        put_cell(&catalog, "a734b296b56ad33b7d6bd72a952ae175", name.as_bytes(), "info:d", 1, &value);
    }
    catalog
}
