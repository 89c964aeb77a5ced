//! The real server as a process of its own, and connections to it.

use crate::data::FAMILY;
use crate::scratch::Scratch;
use anyhow::{Context, bail};
use bytes::Bytes;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    region_port: u16,
    master_port: u16,
    _scratch: Scratch,
}

impl Server {
    /// Starts `binary` on free ports and an empty directory, and waits until it serves. Its log is not waited for
    /// beyond the operating system (`hbase.wal.hsync` is false) unless a write asks for more.
    pub fn start(binary: &Path, scratch: Scratch) -> anyhow::Result<Server> {
        let log = std::fs::File::create(scratch.path().join("stderr.log"))?;
        let root = format!("hbase.rootdir={}", scratch.path().join("data").display());
        let mut command = Command::new(binary);
        for define in [
            root.as_str(),
            "hbase.zookeeper.property.clientPort=0",
            "hbase.master.port=0",
            "hbase.regionserver.port=0",
            "hbase.master.info.port=-1",
            "hbase.wal.hsync=false",
        ] {
            command.args(["-D", define]);
        }
        command.env_remove("HBASE_CONF_DIR").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take();
        let mut server = Server { child, region_port: 0, master_port: 0, _scratch: scratch };
        let mut lines = BufReader::new(stdout.context("its output")?).lines();
        let listening = loop {
            let Some(line) = lines.next() else {
                let said = std::fs::read_to_string(server._scratch.path().join("stderr.log")).unwrap_or_default();
                bail!("{} ended before it was ready: {said}", binary.display());
            };
            let line = line?;
            if line.contains("listening") {
                break line;
            }
        };
        // The rest of what it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        server.region_port = port(&listening, "region server")?;
        server.master_port = port(&listening, "master")?;
        Ok(server)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to `service`.
    pub async fn connect(&self, service: &str) -> anyhow::Result<Client> {
        let port = if service == "MasterService" { self.master_port } else { self.region_port };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Client::connect(address, service, ClientOptions::default()).await?)
    }

    /// Makes a table of one region; returns the region's name.
    pub async fn create_table(&self, name: &str) -> anyhow::Result<Bytes> {
        let master = self.connect("MasterService").await?;
        let table = TableDescriptor::new(TableName::parse(name)?, [FamilyDescriptor::new(FAMILY)]);
        let request = pb::CreateTableRequest {
            table_schema: convert::to_proto::table(&table),
            ..pb::CreateTableRequest::default()
        };
        let reply = master.call(Method::MasterCreateTable.info(), &request, None).await?;
        let proc_id = reply.decode::<pb::CreateTableResponse>()?.proc_id.context("no procedure was started")?;
        loop {
            use pb::get_procedure_result_response::State;
            let request = pb::GetProcedureResultRequest { proc_id };
            let reply = master.call(Method::MasterGetProcedureResult.info(), &request, None).await?;
            let response: pb::GetProcedureResultResponse = reply.decode()?;
            if let Some(exception) = response.exception {
                bail!("the table was not made: {exception:?}");
            }
            if response.state() != State::Running {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let scan = pb::Scan {
            start_row: Some(Bytes::from(format!("{name},,"))),
            stop_row: Some(Bytes::from(format!("{name} ,,"))),
            column: vec![pb::Column { family: Bytes::from("info"), qualifier: vec![Bytes::from("regioninfo")] }],
            ..pb::Scan::default()
        };
        let request = pb::ScanRequest {
            region: Some(specifier(b"hbase:meta,,1")),
            scan: Some(scan),
            number_of_rows: Some(10),
            close_scanner: Some(true),
            ..pb::ScanRequest::default()
        };
        let client = self.connect("ClientService").await?;
        let reply = client.call(Method::ClientScan.info(), &request, None).await?;
        let cell = reply.cells.iter().next().context("the table has no region in hbase:meta")?;
        Ok(Bytes::copy_from_slice(cell.row()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number after `what` in the line about ports.
fn port(listening: &str, what: &str) -> anyhow::Result<u16> {
    let rest = listening.split_once(what).map_or("", |(_, rest)| rest).trim_start();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().with_context(|| format!("no port of the {what} in {listening:?}"))
}

/// A region by its name.
pub fn specifier(region: &[u8]) -> pb::RegionSpecifier {
    let kind = pb::region_specifier::RegionSpecifierType::RegionName;
    pb::RegionSpecifier { r#type: kind as i32, value: Bytes::copy_from_slice(region) }
}
