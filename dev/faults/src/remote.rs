//! A client that outlives its server: it connects again, finds regions again, and says of each call that brought no
//! answer whether it certainly did nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientError, ClientOptions, ClientReply};
use tokio::sync::Mutex;

/// Exceptions of which a client may be sure that nothing happened.
const NOTHING_HAPPENED: &[&str] = &[
    "RegionTooBusyException",
    "NotServingRegionException",
    "CallQueueTooBigException",
    "CallDroppedException",
    "ServerNotRunningYetException",
    "WrongRegionException",
    "FailedSanityCheckException",
    "NoSuchColumnFamilyException",
    "DoNotRetryIOException",
];

/// Where a server is now; a restart may change it.
#[derive(Clone, Default)]
pub struct Address(Arc<parking::Slot>);

mod parking {
    use std::net::SocketAddr;
    use std::sync::RwLock;

    #[derive(Default)]
    pub struct Slot(RwLock<Option<SocketAddr>>);

    impl Slot {
        pub fn get(&self) -> Option<SocketAddr> {
            *self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        pub fn set(&self, to: Option<SocketAddr>) {
            *self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = to;
        }
    }
}

impl Address {
    pub fn get(&self) -> Option<SocketAddr> {
        self.0.get()
    }

    pub fn set(&self, to: SocketAddr) {
        self.0.set(Some(to));
    }
}

/// Why a call brought no answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// It did nothing; its class or what the connection said.
    Refused(String),
    /// It may have happened, may happen yet, or not.
    Unknown(String),
}

impl Failure {
    pub fn text(&self) -> &str {
        match self {
            Failure::Refused(text) | Failure::Unknown(text) => text,
        }
    }

    /// The class of the server's exception.
    fn is(&self, class: &str) -> bool {
        self.text().starts_with(class)
    }
}

/// A connection to one service of a server that comes and goes.
pub struct Remote {
    address: Address,
    service: &'static str,
    limit: Duration,
    connection: Mutex<Option<Arc<Client>>>,
}

impl Remote {
    pub fn new(address: Address, service: &'static str, limit: Duration) -> Remote {
        Remote { address, service, limit, connection: Mutex::new(None) }
    }

    async fn connection(&self) -> Result<Arc<Client>, Failure> {
        let mut connection = self.connection.lock().await;
        if let Some(client) = &*connection {
            return Ok(client.clone());
        }
        let refused = |what: String| Failure::Refused(format!("no connection: {what}"));
        let address = self.address.get().ok_or_else(|| refused("no address".into()))?;
        let made = tokio::time::timeout(self.limit, Client::connect(address, self.service, ClientOptions::default()));
        let client = made.await.map_err(|_| refused("time out".into()))?.map_err(|e| refused(e.to_string()))?;
        let client = Arc::new(client);
        *connection = Some(client.clone());
        Ok(client)
    }

    async fn forget(&self, client: &Arc<Client>) {
        let mut connection = self.connection.lock().await;
        if connection.as_ref().is_some_and(|held| Arc::ptr_eq(held, client)) {
            *connection = None;
        }
    }

    /// One try.
    pub async fn call(
        &self,
        method: Method,
        message: &impl prost::Message,
        cells: Option<&CellBlock>,
    ) -> Result<ClientReply, Failure> {
        let client = self.connection().await?;
        let answer = tokio::time::timeout(self.limit, client.call(method.info(), message, cells)).await;
        match answer {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => {
                let Some(class) = error.class() else {
                    self.forget(&client).await;
                    return Err(Failure::Unknown(error.to_string()));
                };
                let class = class.rsplit('.').next().unwrap_or(class).to_owned();
                let text = match &error {
                    ClientError::Remote(said) => {
                        let first = said.stack_trace().lines().next().unwrap_or_default().to_owned();
                        format!("{class}: {first}")
                    }
                    _ => class.clone(),
                };
                let nothing = NOTHING_HAPPENED.contains(&class.as_str());
                Err(if nothing { Failure::Refused(text) } else { Failure::Unknown(text) })
            }
            Err(_) => {
                // The answer may still come; nobody waits for it.
                self.forget(&client).await;
                Err(Failure::Unknown("no answer in time".to_owned()))
            }
        }
    }
}

/// A row as a reader sees it: its cells as `family:qualifier` and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: Vec<u8>,
    pub cells: Vec<(String, Vec<u8>)>,
}

impl Row {
    pub fn value(&self, column: &str) -> Option<&[u8]> {
        self.cells.iter().find(|(name, _)| name == column).map(|(_, value)| &value[..])
    }
}

fn rows_of(cells: &CellBlock) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for cell in cells.iter() {
        let column =
            format!("{}:{}", String::from_utf8_lossy(cell.family()), String::from_utf8_lossy(cell.qualifier()));
        match rows.last_mut() {
            Some(row) if row.key == cell.row() => row.cells.push((column, cell.value().to_vec())),
            _ => rows.push(Row { key: cell.row().to_vec(), cells: vec![(column, cell.value().to_vec())] }),
        }
    }
    rows
}

/// Columns written together: `(family, qualifier, value)`.
pub type Columns<'a> = &'a [(&'a str, &'a str, &'a [u8])];

/// One table, as a client knows it.
pub struct Table {
    pub name: String,
    remote: Arc<Remote>,
    /// `(first row, region name)` in order.
    regions: Mutex<Vec<(Vec<u8>, Bytes)>>,
}

impl Table {
    pub fn new(name: &str, remote: Arc<Remote>) -> Table {
        Table { name: name.to_owned(), remote, regions: Mutex::new(Vec::new()) }
    }

    /// Names of the table's regions.
    pub async fn regions(&self) -> Result<Vec<(Vec<u8>, Bytes)>, Failure> {
        let mut known = self.regions.lock().await;
        if known.is_empty() {
            let scan = pb::Scan {
                start_row: Some(Bytes::from(format!("{},,", self.name))),
                stop_row: Some(Bytes::from(format!("{} ,,", self.name))),
                column: vec![pb::Column { family: "info".into(), qualifier: vec!["regioninfo".into()] }],
                ..pb::Scan::default()
            };
            let request = pb::ScanRequest {
                region: Some(specifier(b"hbase:meta,,1")),
                scan: Some(scan),
                number_of_rows: Some(10_000),
                close_scanner: Some(true),
                ..pb::ScanRequest::default()
            };
            let as_refusal = |failure: Failure| Failure::Refused(failure.text().to_owned());
            let reply = self.remote.call(Method::ClientScan, &request, None).await.map_err(as_refusal)?;
            let mut regions: Vec<(Vec<u8>, Bytes)> = Vec::new();
            for row in rows_of(&reply.cells) {
                // table,first row,time.encoded. with a first row that may hold commas
                let (Some(from), Some(to)) =
                    (row.key.iter().position(|b| *b == b','), row.key.iter().rposition(|b| *b == b','))
                else {
                    continue;
                };
                let start = row.key.get(from + 1..to).unwrap_or_default().to_vec();
                // A later region with the same first row is the daughter of a split.
                regions.retain(|(known, _)| *known != start);
                regions.push((start, Bytes::from(row.key)));
            }
            *known = regions;
        }
        if known.is_empty() {
            return Err(Failure::Refused("the table has no regions".to_owned()));
        }
        Ok(known.clone())
    }

    async fn region_of(&self, row: &[u8]) -> Result<Bytes, Failure> {
        let regions = self.regions().await?;
        let at = regions.partition_point(|(start, _)| start.as_slice() <= row).saturating_sub(1);
        Ok(regions[at].1.clone())
    }

    /// Looks regions up again next time, if the failure says that they have moved.
    async fn learn(&self, failure: Failure) -> Failure {
        if failure.is("NotServingRegionException") || failure.is("WrongRegionException") {
            self.regions.lock().await.clear();
        }
        failure
    }

    async fn mutate(&self, mut request: pb::MutateRequest, cells: &CellBlock) -> Result<ClientReply, Failure> {
        let row = request.mutation.row.clone().unwrap_or_default();
        request.region = specifier(&self.region_of(&row).await?);
        match self.remote.call(Method::ClientMutate, &request, Some(cells)).await {
            Ok(reply) => Ok(reply),
            Err(failure) => Err(self.learn(failure).await),
        }
    }

    /// Writes a row's columns at once.
    pub async fn put(&self, row: &[u8], columns: Columns<'_>) -> Result<(), Failure> {
        let (request, cells) = mutation(pb::mutation_proto::MutationType::Put, row, columns, None);
        self.mutate(request, &cells).await.map(|_| ())
    }

    /// Writes a row's columns at once if `f:q` has this value.
    pub async fn put_if(&self, row: &[u8], expected: &[u8], columns: Columns<'_>) -> Result<bool, Failure> {
        let (mut request, cells) = mutation(pb::mutation_proto::MutationType::Put, row, columns, None);
        let comparable = pb::ByteArrayComparable { value: Some(Bytes::copy_from_slice(expected)) };
        let comparator = pb::BinaryComparator { comparable };
        request.condition = Some(pb::Condition {
            row: Bytes::copy_from_slice(row),
            family: Some("f".into()),
            qualifier: Some("q".into()),
            compare_type: Some(pb::CompareType::Equal as i32),
            comparator: Some(pb::Comparator {
                name: "org.apache.hadoop.hbase.filter.BinaryComparator".to_owned(),
                serialized_comparator: Some(Bytes::from(prost::Message::encode_to_vec(&comparator))),
            }),
            ..pb::Condition::default()
        });
        let reply = self.mutate(request, &cells).await?;
        let response: pb::MutateResponse = reply.decode().map_err(|e| Failure::Unknown(e.to_string()))?;
        Ok(response.processed())
    }

    /// Adds one to `f:q` and `g:q`, at most once for one nonce.
    pub async fn count(&self, row: &[u8], nonce: (u64, u64)) -> Result<(), Failure> {
        let one = 1i64.to_be_bytes();
        let columns: Columns<'_> = &[("f", "q", &one), ("g", "q", &one)];
        let (request, cells) = mutation(pb::mutation_proto::MutationType::Increment, row, columns, Some(nonce));
        self.mutate(request, &cells).await.map(|_| ())
    }

    /// Several rows in one call, each with an outcome of its own.
    pub async fn put_all(&self, rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<Result<(), Failure>> {
        let mut all = vec![Err(Failure::Refused("not sent".to_owned())); rows.len()];
        let regions = match self.regions().await {
            Ok(regions) => regions,
            Err(failure) => return vec![Err(failure); rows.len()],
        };
        let mut actions: Vec<(usize, pb::RegionAction, Vec<usize>)> = Vec::new();
        let mut specs = Vec::new();
        let region_at = |row: &[u8]| regions.partition_point(|(s, _)| s.as_slice() <= row).saturating_sub(1);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|at| region_at(&rows[*at].0));
        for at in order {
            let (row, value) = &rows[at];
            let region = region_at(row);
            if actions.last().is_none_or(|(last, ..)| *last != region) {
                let action = pb::RegionAction { region: specifier(&regions[region].1), ..Default::default() };
                actions.push((region, action, Vec::new()));
            }
            let Some((_, action, members)) = actions.last_mut() else { continue };
            let mutation = pb::MutationProto {
                row: Some(Bytes::copy_from_slice(row)),
                mutate_type: Some(pb::mutation_proto::MutationType::Put as i32),
                associated_cell_count: Some(2),
                ..pb::MutationProto::default()
            };
            let index = members.len() as u32;
            action.action.push(pb::Action { index: Some(index), mutation: Some(mutation), ..pb::Action::default() });
            members.push(at);
            for family in ["f", "g"] {
                specs.push(spec(row, family, "q", value));
            }
        }
        let request = pb::MultiRequest {
            region_action: actions.iter().map(|(_, action, _)| action.clone()).collect(),
            ..pb::MultiRequest::default()
        };
        let block = CellBlock::from_specs(specs);
        let answer = match self.remote.call(Method::ClientMulti, &request, Some(&block)).await {
            Ok(reply) => reply.decode::<pb::MultiResponse>().map_err(|e| Failure::Unknown(e.to_string())),
            Err(failure) => Err(failure),
        };
        let response = match answer {
            Ok(response) => response,
            Err(failure) => return vec![Err(self.learn(failure).await); rows.len()],
        };
        let failure_of = |said: &pb::NameBytesPair| {
            let class = said.name.rsplit('.').next().unwrap_or(&said.name).to_owned();
            match NOTHING_HAPPENED.contains(&class.as_str()) {
                true => Failure::Refused(class),
                false => Failure::Unknown(class),
            }
        };
        for ((_, _, members), result) in actions.iter().zip(&response.region_action_result) {
            if let Some(said) = &result.exception {
                let failure = self.learn(failure_of(said)).await;
                members.iter().for_each(|at| all[*at] = Err(failure.clone()));
                continue;
            }
            for one in &result.result_or_exception {
                let Some(at) = members.get(one.index() as usize) else { continue };
                all[*at] = match &one.exception {
                    Some(said) => Err(self.learn(failure_of(said)).await),
                    None => Ok(()),
                };
            }
        }
        all
    }

    pub async fn get(&self, row: &[u8]) -> Result<Option<Row>, Failure> {
        let get = pb::Get { row: Bytes::copy_from_slice(row), ..pb::Get::default() };
        let request = pb::GetRequest { region: specifier(&self.region_of(row).await?), get };
        match self.remote.call(Method::ClientGet, &request, None).await {
            Ok(reply) => Ok(rows_of(&reply.cells).into_iter().next()),
            Err(failure) => Err(self.learn(failure).await),
        }
    }

    /// Every row in `from..to`, by as many calls as it takes, `per_call` rows at a time; after a failure it goes on
    /// behind the last whole row, as HBase's client does.
    pub async fn scan(&self, from: &[u8], to: &[u8], per_call: u32, patience: Duration) -> Result<Vec<Row>, Failure> {
        let deadline = tokio::time::Instant::now() + patience;
        let mut rows: Vec<Row> = Vec::new();
        loop {
            let (start, include) = match rows.last() {
                Some(row) => (row.key.clone(), false),
                None => (from.to_vec(), true),
            };
            match self.scan_once(&start, include, to, per_call, &mut rows).await {
                Ok(()) => return Ok(rows),
                Err(failure) => {
                    let failure = self.learn(failure).await;
                    if tokio::time::Instant::now() > deadline {
                        return Err(failure);
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    async fn scan_once(
        &self,
        start: &[u8],
        include: bool,
        to: &[u8],
        per_call: u32,
        rows: &mut Vec<Row>,
    ) -> Result<(), Failure> {
        let regions = self.regions().await?;
        let first = regions.partition_point(|(s, _)| s.as_slice() <= start).saturating_sub(1);
        for (at, (region_start, name)) in regions.iter().enumerate().skip(first) {
            if !to.is_empty() && region_start.as_slice() >= to {
                break;
            }
            let (start_row, include_start_row) = if at == first { (start, include) } else { (&region_start[..], true) };
            let scan = pb::Scan {
                start_row: Some(Bytes::copy_from_slice(start_row)),
                include_start_row: Some(include_start_row),
                stop_row: Some(Bytes::copy_from_slice(to)),
                ..pb::Scan::default()
            };
            let mut request = pb::ScanRequest {
                region: Some(specifier(name)),
                scan: Some(scan),
                number_of_rows: Some(per_call),
                ..pb::ScanRequest::default()
            };
            for seq in 0.. {
                let reply = self.remote.call(Method::ClientScan, &request, None).await?;
                let response: pb::ScanResponse = reply.decode().map_err(|e| Failure::Unknown(e.to_string()))?;
                rows.extend(rows_of(&reply.cells));
                if !response.more_results() || !response.more_results_in_region() {
                    break;
                }
                request = pb::ScanRequest {
                    scanner_id: response.scanner_id,
                    number_of_rows: Some(per_call),
                    next_call_seq: Some(seq),
                    ..pb::ScanRequest::default()
                };
            }
        }
        Ok(())
    }
}

/// A region by its name.
pub fn specifier(region: &[u8]) -> pb::RegionSpecifier {
    pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
        value: Bytes::copy_from_slice(region),
    }
}

fn spec<'a>(row: &'a [u8], family: &'a str, qualifier: &'a str, value: &'a [u8]) -> CellSpec<'a> {
    CellSpec {
        row,
        family: family.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    }
}

fn mutation(
    kind: pb::mutation_proto::MutationType,
    row: &[u8],
    columns: Columns<'_>,
    nonce: Option<(u64, u64)>,
) -> (pb::MutateRequest, CellBlock) {
    let mutation = pb::MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(kind as i32),
        associated_cell_count: Some(columns.len() as i32),
        nonce: nonce.map(|(_, number)| number),
        ..pb::MutationProto::default()
    };
    let request = pb::MutateRequest {
        region: specifier(b""),
        mutation,
        nonce_group: nonce.map(|(group, _)| group),
        ..pb::MutateRequest::default()
    };
    let cells = CellBlock::from_specs(columns.iter().map(|(f, q, value)| spec(row, f, q, value)));
    (request, cells)
}

/// The master's side: tables made and dropped, regions flushed.
pub struct Admin {
    master: Remote,
    region: Arc<Remote>,
}

impl Admin {
    pub fn new(master: Address, region: Address) -> Admin {
        let limit = Duration::from_secs(30);
        Admin {
            master: Remote::new(master, "MasterService", limit),
            region: Arc::new(Remote::new(region, "AdminService", limit)),
        }
    }

    async fn finish(&self, proc_id: Option<u64>) -> anyhow::Result<()> {
        use pb::get_procedure_result_response::State;
        let request = pb::GetProcedureResultRequest { proc_id: proc_id.unwrap_or_default() };
        loop {
            let reply = self.master.call(Method::MasterGetProcedureResult, &request, None).await.map_err(said)?;
            let response: pb::GetProcedureResultResponse = reply.decode()?;
            match (response.state(), response.exception) {
                (State::Running, _) => tokio::time::sleep(Duration::from_millis(10)).await,
                (_, Some(exception)) => anyhow::bail!("{exception:?}"),
                _ => return Ok(()),
            }
        }
    }

    /// Makes a table with the families `f` and `g`.
    pub async fn create(&self, name: &str, splits: &[&str], one_version: bool) -> anyhow::Result<()> {
        let family = |name: &str| {
            let family = model::FamilyDescriptor::new(name.to_owned());
            if one_version { family } else { family.with("VERSIONS", "3") }
        };
        self.create_from(name, vec![family("f"), family("g")], splits).await
    }

    /// Makes a table of one region with these families.
    pub async fn create_with_families(&self, name: &str, families: &[String]) -> anyhow::Result<()> {
        let families = families.iter().map(|family| model::FamilyDescriptor::new(family.clone())).collect();
        self.create_from(name, families, &[]).await
    }

    async fn create_from(
        &self,
        name: &str,
        families: Vec<model::FamilyDescriptor>,
        splits: &[&str],
    ) -> anyhow::Result<()> {
        let table =
            model::TableDescriptor::new(model::TableName::parse(name).map_err(|e| anyhow::anyhow!("{e}"))?, families);
        let request = pb::CreateTableRequest {
            table_schema: convert::to_proto::table(&table),
            split_keys: splits.iter().map(|key| Bytes::copy_from_slice(key.as_bytes())).collect(),
            ..pb::CreateTableRequest::default()
        };
        let reply = self.master.call(Method::MasterCreateTable, &request, None).await.map_err(said)?;
        self.finish(reply.decode::<pb::CreateTableResponse>()?.proc_id).await
    }

    /// Disables and deletes a table.
    pub async fn drop_table(&self, name: &str) -> anyhow::Result<()> {
        let table_name =
            pb::TableName { namespace: "default".into(), qualifier: Bytes::copy_from_slice(name.as_bytes()) };
        let request = pb::DisableTableRequest { table_name: table_name.clone(), ..Default::default() };
        let reply = self.master.call(Method::MasterDisableTable, &request, None).await.map_err(said)?;
        self.finish(reply.decode::<pb::DisableTableResponse>()?.proc_id).await?;
        let request = pb::DeleteTableRequest { table_name, ..Default::default() };
        let reply = self.master.call(Method::MasterDeleteTable, &request, None).await.map_err(said)?;
        self.finish(reply.decode::<pb::DeleteTableResponse>()?.proc_id).await
    }

    /// Flushes one region.
    pub async fn flush(&self, region: &[u8]) -> Result<(), Failure> {
        let request = pb::FlushRegionRequest { region: specifier(region), ..Default::default() };
        self.region.call(Method::AdminFlushRegion, &request, None).await.map(|_| ())
    }

    /// Asks for a compaction of one region.
    pub async fn compact(&self, region: &[u8], major: bool) -> Result<(), Failure> {
        let request = pb::CompactRegionRequest { region: specifier(region), major: Some(major), ..Default::default() };
        self.region.call(Method::AdminCompactRegion, &request, None).await.map(|_| ())
    }

    /// Rolls the log.
    pub async fn roll(&self) -> Result<(), Failure> {
        self.region.call(Method::AdminRollWALWriter, &pb::RollWalWriterRequest {}, None).await.map(|_| ())
    }
}

fn said(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{}", failure.text())
}
