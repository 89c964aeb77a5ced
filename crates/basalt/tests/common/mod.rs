//! A real server process for tests: started on free ports, spoken to over RPC, stopped or killed.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories")]
#![allow(dead_code, reason = "not every test uses every helper")]

pub mod tools;

use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use proto::methods::{Method, Service};
use proto::pb;
use rpc::client::{Client, ClientError, ClientOptions, ClientReply};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::ReadyFile;

/// A directory of its own for one test, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("basalt-test-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub struct Server {
    pub child: Child,
    pub zk_port: u16,
    pub master_port: u16,
    pub region_port: u16,
    pub info_port: Option<u16>,
    /// Every line of its announcement.
    pub announcement: Vec<String>,
}

/// The command that starts a server on `root` and free ports.
pub fn command(root: &Path, defines: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    command.env_remove("HBASE_CONF_DIR").arg("-D").arg(format!("hbase.rootdir={}", root.display()));
    for define in [
        "hbase.zookeeper.property.clientPort=0",
        "hbase.master.port=0",
        "hbase.regionserver.port=0",
        "hbase.master.info.port=-1",
    ] {
        let key = define.split('=').next().unwrap_or_default();
        if !defines.iter().any(|given| given.starts_with(&format!("{key}="))) {
            command.arg("-D").arg(define);
        }
    }
    for define in defines {
        command.arg("-D").arg(define);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a start that must fail; its exit status and what it said.
pub fn start_refused(root: &Path, defines: &[&str]) -> (ExitStatus, String) {
    let output = command(root, defines).output().expect("the binary runs");
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

impl Server {
    /// Starts and waits for the announcement.
    pub fn start(root: &Path, defines: &[&str]) -> Server {
        Server::run(command(root, defines))
    }

    /// The same with a command made by [`command`].
    pub fn run(mut command: Command) -> Server {
        static STARTS: AtomicU32 = AtomicU32::new(0);
        let name = format!("basalt-ready-{}-{}.json", std::process::id(), STARTS.fetch_add(1, Ordering::Relaxed));
        let ready = ReadyFile::new(std::env::temp_dir().join(name));
        ready.pass_to(&mut command);
        let mut child = command.spawn().expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut announcement = Vec::new();
        while announcement.len() < 5 {
            let Some(Ok(line)) = lines.next() else {
                let mut said = String::new();
                let _ = child.stderr.take().expect("piped").read_to_string(&mut said);
                panic!("the server ended before it was ready: {announcement:?}\n{said}");
            };
            announcement.push(line);
        }
        // Whatever it says later must not fill the pipe.
        let stderr = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| eprintln!("server: {line}"))
        });
        // The file comes right behind what is said to people.
        let serving = ready.wait(&mut child, std::time::Duration::from_secs(60)).expect("it serves");
        let _ = std::fs::remove_file(ready.path());
        let (zk_port, master_port, region_port) = (serving.zookeeper_port, serving.master_port, serving.region_port);
        Server { child, zk_port, master_port, region_port, info_port: serving.info_port, announcement }
    }

    pub fn region_address(&self) -> SocketAddr {
        testkit::local(self.region_port)
    }

    pub fn master_address(&self) -> SocketAddr {
        testkit::local(self.master_port)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the process is there");
    }

    /// SIGTERM, then its exit status.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().expect("it ends")
    }

    /// Waits until it ends by itself.
    pub async fn ended(mut self) -> ExitStatus {
        let waited = tokio::task::spawn_blocking(move || self.child.wait().expect("it ends"));
        waited.await.expect("no panic")
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("the process is there");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of one server: enough to make a table, write and read.
pub struct Tester {
    pub region: Client,
    pub master: Client,
}

impl Tester {
    pub async fn connect(server: &Server) -> Tester {
        let region = Client::connect(server.region_address(), "ClientService", ClientOptions::default()).await;
        let master = Client::connect(server.master_address(), "MasterService", ClientOptions::default()).await;
        Tester {
            region: region.expect("the region server takes connections"),
            master: master.expect("so does the master"),
        }
    }

    pub async fn master_call<M: prost::Message + Default>(
        &self,
        method: Method,
        message: &impl prost::Message,
    ) -> Result<M, ClientError> {
        self.master.call(method.info(), message, None).await?.decode()
    }

    pub async fn region_call(
        &self,
        method: Method,
        message: &impl prost::Message,
        cells: Option<&CellBlock>,
    ) -> Result<ClientReply, ClientError> {
        self.region.call(method.info(), message, cells).await
    }

    /// Waits for a procedure by asking for its result until it is there.
    pub async fn finish(&self, proc_id: u64) -> Result<(), String> {
        use pb::get_procedure_result_response::State;
        loop {
            let request = pb::GetProcedureResultRequest { proc_id };
            let response: pb::GetProcedureResultResponse = self
                .master_call(Method::MasterGetProcedureResult, &request)
                .await
                .map_err(|error| error.to_string())?;
            match (response.state(), response.exception) {
                (State::Running, _) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                (_, Some(exception)) => return Err(format!("{exception:?}")),
                _ => return Ok(()),
            }
        }
    }

    pub async fn create_table(&self, name: &str, splits: &[&str]) {
        let table = model::TableDescriptor::new(
            model::TableName::parse(name).expect("a legal name"),
            [model::FamilyDescriptor::new("f")],
        );
        let request = pb::CreateTableRequest {
            table_schema: convert::to_proto::table(&table),
            split_keys: splits.iter().map(|key| Bytes::copy_from_slice(key.as_bytes())).collect(),
            ..pb::CreateTableRequest::default()
        };
        let response: pb::CreateTableResponse =
            self.master_call(Method::MasterCreateTable, &request).await.expect("create table");
        self.finish(response.proc_id.expect("a procedure")).await.expect("the table is made");
    }

    /// Names of the regions of a table, in order, from hbase:meta.
    pub async fn regions(&self, table: &str) -> Vec<Bytes> {
        let scan = pb::Scan {
            start_row: Some(Bytes::from(format!("{table},,"))),
            stop_row: Some(Bytes::from(format!("{table} ,,"))),
            column: vec![pb::Column { family: Bytes::from("info"), qualifier: vec![Bytes::from("regioninfo")] }],
            ..pb::Scan::default()
        };
        let cells = self.scan(b"hbase:meta,,1", scan).await.expect("hbase:meta is there");
        cells.iter().map(|cell| Bytes::copy_from_slice(cell.row())).collect()
    }

    pub async fn scan(&self, region: &[u8], scan: pb::Scan) -> Result<CellBlock, ClientError> {
        let request = pb::ScanRequest {
            region: Some(specifier(region)),
            scan: Some(scan),
            number_of_rows: Some(u32::MAX >> 1),
            close_scanner: Some(true),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..pb::ScanRequest::default()
        };
        Ok(self.region_call(Method::ClientScan, &request, None).await?.cells)
    }

    pub async fn put(&self, region: &[u8], row: &str, value: &str) -> Result<ClientReply, ClientError> {
        let (request, cells) = put_request(region, row.as_bytes(), b"f", value.as_bytes());
        self.region_call(Method::ClientMutate, &request, Some(&cells)).await
    }

    pub async fn get(&self, region: &[u8], row: &str) -> Result<Option<Vec<u8>>, ClientError> {
        let get = pb::Get { row: Bytes::copy_from_slice(row.as_bytes()), ..pb::Get::default() };
        let request = pb::GetRequest { region: specifier(region), get };
        let reply = self.region_call(Method::ClientGet, &request, None).await?;
        Ok(reply.cells.iter().next().map(|cell| cell.value().to_vec()))
    }
}

pub fn specifier(region: &[u8]) -> pb::RegionSpecifier {
    pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
        value: Bytes::copy_from_slice(region),
    }
}

pub fn put_request(region: &[u8], row: &[u8], family: &[u8], value: &[u8]) -> (pb::MutateRequest, CellBlock) {
    let spec = CellSpec {
        row,
        family,
        qualifier: b"q",
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    };
    let mutation = pb::MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(pb::mutation_proto::MutationType::Put as i32),
        associated_cell_count: Some(1),
        ..pb::MutationProto::default()
    };
    let request = pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() };
    (request, CellBlock::from_specs([spec]))
}

/// Every service has a name.
pub fn service_name(service: Service) -> &'static str {
    service.name()
}
