//! A cluster of two region servers and a master in this process that answer by a script.

use basalt_client::{Connection, Options};
use base::SystemClock;
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use convert::to_proto;
use model::{RegionInfo, ServerName, TableName};
use parking_lot::Mutex;
use proto::methods::Method;
use proto::{Message, magic, pb};
use rpc::{Call, Exception, Handler, Local, Outcome, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub const ONE: &str = "one:1";
pub const TWO: &str = "two:2";

/// What a region server does about a call.
#[derive(Clone, Debug)]
pub enum Step {
    /// It does what it is asked.
    Do,
    /// It refuses.
    Refuse(Exception),
    /// It never answers.
    Hang,
    /// Of a multi, it refuses the actions on these rows, and does the others.
    RefuseRows(&'static [&'static str], Exception),
}

/// A call that came to a region server.
#[derive(Clone, Debug)]
pub struct Seen {
    pub server: &'static str,
    pub method: Method,
    pub at: Instant,
    /// How long its client waits, in milliseconds.
    pub timeout_ms: u64,
    pub priority: u32,
    pub attributes: Vec<(String, Bytes)>,
    /// Of a mutation, or of a multi's mutations.
    pub nonces: Vec<Option<u64>>,
    /// Rows of a multi.
    pub rows: Vec<String>,
}

#[derive(Default)]
struct State {
    script: VecDeque<Step>,
    seen: Vec<Seen>,
    lookups: usize,
    is_disabled: bool,
    is_replicated: bool,
    holder: Option<&'static str>,
}

/// The cluster. Its one table has one region.
#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

fn server_name(address: &str) -> ServerName {
    let (host, port) = address.split_once(':').expect("host:port");
    ServerName::new(host, port.parse().expect("a port"), 7)
}

pub fn table() -> TableName {
    TableName::parse("t").expect("legal")
}

impl Fake {
    /// Answers the next calls on the table so; after these it does what it is asked.
    pub fn script(&self, steps: impl IntoIterator<Item = Step>) {
        self.0.lock().script.extend(steps);
    }

    /// hbase:meta says from now on that this server has the region.
    pub fn move_to(&self, server: &'static str) {
        self.0.lock().holder = Some(server);
    }

    pub fn disable(&self) {
        self.0.lock().is_disabled = true;
    }

    /// The second server has a read replica of the region from now on.
    pub fn replicate(&self) {
        self.0.lock().is_replicated = true;
    }

    /// The calls on the table since this was asked last.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.0.lock().seen)
    }

    /// How often hbase:meta was asked for the region since this was asked last.
    pub fn lookups(&self) -> usize {
        std::mem::take(&mut self.0.lock().lookups)
    }

    /// A client with pauses of 100 ms, and of 500 ms for those who have too much to do.
    pub fn connect(&self) -> Connection {
        self.connect_with(|_| ())
    }

    pub fn connect_with(&self, change: impl FnOnce(&mut Options)) -> Connection {
        let servers = [ONE, TWO].map(|address| {
            let server = FakeServer { cluster: self.clone(), address };
            let ledger = rpc::capped_ledger(1 << 30);
            (address.to_owned(), Local::new(Arc::new(server), Arc::new(SystemClock::new()), ledger))
        });
        let mut options = Options::in_process(servers);
        options.pause = Duration::from_millis(100);
        options.pause_overloaded = Duration::from_millis(500);
        change(&mut options);
        Connection::open(options)
    }

    fn holder(&self) -> &'static str {
        self.0.lock().holder.unwrap_or(ONE)
    }

    fn region(&self) -> RegionInfo {
        RegionInfo::new(table(), Bytes::new(), Bytes::new(), 5)
    }

    /// The region's row of hbase:meta.
    fn meta_row(&self) -> CellBuffer {
        let region = self.region();
        let info = [&magic::MAGIC[..], &to_proto::region_info(&region).encode_to_vec()].concat();
        let (holder, start_code) = (self.holder(), 7u64.to_be_bytes());
        let mut columns: Vec<(&[u8], &[u8])> =
            vec![(b"regioninfo", &info), (b"server", holder.as_bytes()), (b"serverstartcode", &start_code)];
        if self.0.lock().is_replicated {
            columns.insert(2, (b"server_0001", TWO.as_bytes()));
            columns.push((b"serverstartcode_0001", &start_code));
        }
        let mut cells = CellBuffer::new();
        columns.iter().for_each(|(qualifier, value)| push(&mut cells, region.name(), b"info", qualifier, value));
        cells
    }
}

fn push(cells: &mut CellBuffer, row: &[u8], family: &[u8], qualifier: &[u8], value: &[u8]) {
    let type_code = CellType::Put.code();
    cells.push_spec(&CellSpec { row, family, qualifier, timestamp: 1, type_code, value, tags: b"" }, base::SeqId(0));
}

fn ready(message: &impl Message) -> Outcome {
    Outcome::Ready(Ok(Reply::new(message)))
}

struct FakeServer {
    cluster: Fake,
    address: &'static str,
}

impl FakeServer {
    fn scan_meta(&self) -> Outcome {
        self.cluster.0.lock().lookups += 1;
        let cells = self.cluster.meta_row();
        let response = pb::ScanResponse {
            cells_per_result: vec![cells.len() as u32],
            partial_flag_per_result: vec![false],
            more_results: Some(false),
            ..pb::ScanResponse::default()
        };
        Outcome::Ready(Ok(Reply::with_cells(&response, cells)))
    }

    fn get(&self, get: &pb::GetRequest) -> Outcome {
        if get.region.value.starts_with(b"hbase:meta") {
            use pb::table_state::State;
            let disabled = self.cluster.0.lock().is_disabled;
            let state = if disabled { State::Disabled } else { State::Enabled };
            let value = pb::TableState { state: state.into() }.encode_to_vec();
            let mut cells = CellBuffer::new();
            push(&mut cells, b"t", b"table", b"state", &value);
            return one_cell(cells, false);
        }
        let mut cells = CellBuffer::new();
        push(&mut cells, &get.get.row, b"f", b"q", b"value");
        let of_replica = get.region.value.windows(5).any(|part| part == b"_0001");
        one_cell(cells, of_replica)
    }

    fn multi(&self, request: &pb::MultiRequest, step: &Step) -> Outcome {
        let mut response = pb::MultiResponse::default();
        for action in &request.region_action {
            let outcome = |action: &pb::Action| {
                let row =
                    action.mutation.as_ref().map(pb::MutationProto::row).or(action.get.as_ref().map(|g| &g.row[..]));
                let refused = match step {
                    Step::RefuseRows(rows, exception) => rows
                        .iter()
                        .any(|refused| Some(refused.as_bytes()) == row)
                        .then(|| exception.to_name_bytes_pair()),
                    _ => None,
                };
                let result = refused.is_none().then(pb::Result::default);
                pb::ResultOrException { index: action.index, result, exception: refused, ..Default::default() }
            };
            response.region_action_result.push(pb::RegionActionResult {
                result_or_exception: action.action.iter().map(outcome).collect(),
                processed: Some(true),
                ..pb::RegionActionResult::default()
            });
        }
        ready(&response)
    }

    /// Notes a call on the table, and says what is to be done about it.
    fn note(&self, call: &Call, nonces: Vec<Option<u64>>, rows: Vec<String>) -> Step {
        let timeout_ms = call.deadline_us.map_or(0, |deadline| (deadline - call.received_at_us) / 1000);
        let attribute = |pair: &pb::NameBytesPair| (pair.name.clone(), pair.value.clone().unwrap_or_default());
        let mut state = self.cluster.0.lock();
        state.seen.push(Seen {
            server: self.address,
            method: call.method.method,
            at: Instant::now(),
            timeout_ms,
            priority: call.priority,
            attributes: call.attributes.iter().map(attribute).collect(),
            nonces,
            rows,
        });
        state.script.pop_front().unwrap_or(Step::Do)
    }

    fn act(&self, step: Step, work: impl FnOnce(&Step) -> Outcome) -> Outcome {
        match step {
            Step::Refuse(exception) => exception.into(),
            Step::Hang => Outcome::later(std::future::pending()),
            step => work(&step),
        }
    }
}

fn one_cell(cells: CellBuffer, stale: bool) -> Outcome {
    let result = pb::Result { stale: Some(stale), ..to_proto::result_with_count(1) };
    let response = pb::GetResponse { result: Some(result) };
    Outcome::Ready(Ok(Reply::with_cells(&response, cells)))
}

impl Handler for FakeServer {
    fn call(&self, call: Call) -> Outcome {
        match call.method.method {
            Method::ClientMetaGetMetaRegionLocations => {
                let location = pb::RegionLocation {
                    region_info: to_proto::region_info(&RegionInfo::meta()),
                    server_name: Some(to_proto::server_name(&server_name(ONE))),
                    seq_num: 0,
                };
                ready(&pb::GetMetaRegionLocationsResponse { meta_locations: vec![location] })
            }
            Method::ClientScan => self.scan_meta(),
            Method::ClientGet => {
                let get: pb::GetRequest = call.decode().expect("a get");
                if get.region.value.starts_with(b"hbase:meta") {
                    return self.get(&get);
                }
                let step = self.note(&call, Vec::new(), Vec::new());
                self.act(step, |_| self.get(&get))
            }
            Method::ClientMutate => {
                let mutate: pb::MutateRequest = call.decode().expect("a mutation");
                let step = self.note(&call, vec![mutate.mutation.nonce], Vec::new());
                self.act(step, |_| ready(&pb::MutateResponse { processed: Some(true), ..Default::default() }))
            }
            Method::ClientMulti => {
                let multi: pb::MultiRequest = call.decode().expect("a multi");
                let mutations =
                    multi.region_action.iter().flat_map(|region| &region.action).filter_map(|a| a.mutation.as_ref());
                let nonces = mutations.clone().map(|mutation| mutation.nonce).collect();
                let rows = mutations.map(|m| String::from_utf8_lossy(m.row()).into_owned()).collect();
                let step = self.note(&call, nonces, rows);
                self.act(step, |step| self.multi(&multi, step))
            }
            _ => Exception::unsupported(call.method).into(),
        }
    }

    fn cluster_id(&self) -> Option<String> {
        None
    }
}
