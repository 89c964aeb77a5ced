//! The real server as a process of its own, and connections to it.

use crate::data::FAMILY;
use crate::scratch::Scratch;
use anyhow::{Context, bail};
use bytes::Bytes;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::ReadyFile;

/// Longest time that a start may take.
const START_LIMIT: Duration = Duration::from_secs(90);

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    region_port: u16,
    master_port: u16,
    _scratch: Scratch,
}

impl Server {
    /// Starts `binary` on free ports and an empty directory, and waits until it serves. Its log is not waited for
    /// beyond the operating system (`hbase.wal.hsync` is false) unless a write asks for more. `settings` are `KEY=VALUE` each.
    pub fn start(binary: &Path, scratch: Scratch, settings: &[&str]) -> anyhow::Result<Server> {
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
        ]
        .into_iter()
        .chain(settings.iter().copied())
        {
            command.args(["-D", define]);
        }
        let ready = ReadyFile::new(scratch.path().join("ready.json"));
        ready.pass_to(&mut command);
        command.env_remove("HBASE_CONF_DIR").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let mut server = Server { child, region_port: 0, master_port: 0, _scratch: scratch };
        let serving = ready.wait(&mut server.child, START_LIMIT).with_context(|| {
            let said = std::fs::read_to_string(server._scratch.path().join("stderr.log")).unwrap_or_default();
            format!("{} does not serve: {said}", binary.display())
        })?;
        (server.region_port, server.master_port) = (serving.region_port, serving.master_port);
        Ok(server)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to `service`.
    pub async fn connect(&self, service: &str) -> anyhow::Result<Client> {
        let port = if service == "MasterService" { self.master_port } else { self.region_port };
        Ok(Client::connect(testkit::local(port), service, ClientOptions::default()).await?)
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

/// A region by its name.
pub fn specifier(region: &[u8]) -> pb::RegionSpecifier {
    let kind = pb::region_specifier::RegionSpecifierType::RegionName;
    pb::RegionSpecifier { r#type: kind as i32, value: Bytes::copy_from_slice(region) }
}
