//! What servers say to the client: a hostile server behind a loopback socket, and the client's public face before it.
//!
//! The server knows enough to be believed (registry, hbase:meta, handshakes), unless the input wants those answers for itself; all others
//! are the input's. Time stands still unless nobody has anything to do, so that pauses and timeouts cost nothing, and a caller who is
//! left to wait for ever is seen at once.

use super::{put_part, shared, take_byte, take_part};
use crate::Target;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use cell::{CellBlock, CellSpec, CellType};
use client::{Action, Connection, Increment, Options, Put, ScanOptions};
use convert::to_proto;
use filter::{Comparator, CompareOp};
use model::mutation::ConditionTest;
use model::{Condition, FamilyDescriptor, Get, RegionInfo, Scan, ServerName, TableDescriptor, TableName};
use proto::{Message, magic, pb};
use rpc::CellCodec;
use rpc::frame::{Front, RequestHead, put_frame, take_delimited, take_frame};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) const REPLIES: Target = Target {
    name: "replies",
    about: "replies, cell blocks, exceptions and nodes, read by the client",
    max_len: 2048,
    words: &["hostname=127.0.0.1 port=1 ", "PBUF", "info", "regioninfo", "server", "t,,", "hbase:meta"],
    seeds,
    run,
};

/// The registry is the coordination endpoint, not a server.
const FLAG_ZOOKEEPER: u8 = 1;
/// The input answers for registry and hbase:meta, too.
const FLAG_ALL: u8 = 2;
/// Cells travel with tags.
const FLAG_TAGS: u8 = 4;
/// Another step answers the same request.
const FLAG_MORE: u8 = 0x80;
/// Steps that one input can have: then the server is gone.
const MAX_STEPS: usize = 24;
/// No operation takes so long, whatever its tries and timeouts are.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

/// What the client may be told: how it goes on depends on the class.
const CLASSES: &[&str] = &[
    "org.apache.hadoop.hbase.NotServingRegionException",
    "org.apache.hadoop.hbase.exceptions.RegionMovedException",
    "org.apache.hadoop.hbase.UnknownScannerException",
    "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException",
    "org.apache.hadoop.hbase.exceptions.ScannerResetException",
    "org.apache.hadoop.hbase.CallQueueTooBigException",
    "org.apache.hadoop.hbase.RegionTooBusyException",
    "org.apache.hadoop.hbase.MultiActionResultTooLarge",
    "org.apache.hadoop.hbase.regionserver.RegionServerStoppedException",
    "org.apache.hadoop.hbase.TableNotFoundException",
    "java.io.IOException",
];

/// What the client is made to do; the input's first byte chooses.
const QUESTIONS: u8 = 20;

/// What is left of the input.
struct Script {
    data: Vec<u8>,
    at: usize,
    steps: usize,
}

impl Script {
    /// The answer to a request, or to a packet of ZooKeeper; none when the server is gone.
    fn answer(&mut self, call: Option<u32>, codec: CellCodec) -> Option<BytesMut> {
        let mut out = BytesMut::new();
        loop {
            let mut rest = &self.data[self.at..];
            if rest.is_empty() || self.steps == MAX_STEPS {
                return (!out.is_empty()).then_some(out);
            }
            self.steps += 1;
            let kind = take_byte(&mut rest);
            match call {
                Some(id) => put_answer(&mut out, kind, id, codec, &mut rest),
                None if kind.is_multiple_of(2) => {
                    let part = take_part(&mut rest);
                    let mut body = vec![0; 16];
                    body.put_u32(part.len() as u32);
                    body.extend_from_slice(part);
                    put_packet(&mut out, &body);
                }
                None => put_packet(&mut out, take_part(&mut rest)),
            }
            self.at = self.data.len() - rest.len();
            if kind & FLAG_MORE == 0 {
                return Some(out);
            }
        }
    }
}

fn put_answer(out: &mut BytesMut, kind: u8, id: u32, codec: CellCodec, rest: &mut &[u8]) {
    let header = |call_id| pb::ResponseHeader { call_id: Some(call_id), ..pb::ResponseHeader::default() };
    match (kind & !FLAG_MORE) % 6 {
        // A message, and cells that the server means to have written well.
        0 => {
            let message = take_part(rest);
            let cells = take_part(rest);
            put_reply(out, id, message, cells);
        }
        1 => {
            let count = usize::from(take_byte(rest) % 8);
            let message = take_part(rest);
            put_reply(out, id, message, &codec.encode(sample(count).bytes().clone(), true));
        }
        2 => {
            let exception = exception(rest);
            put_frame(out, &pb::ResponseHeader { exception: Some(exception), ..header(id) }, None, 0);
        }
        3 => {
            let exception = exception(rest);
            put_frame(out, &pb::ResponseHeader { exception: Some(exception), ..header(u32::MAX) }, None, 0);
        }
        // A reply to somebody else.
        4 => put_frame(out, &header(id ^ (1 << (take_byte(rest) % 31))), Some(take_part(rest)), 0),
        _ => out.extend_from_slice(take_part(rest)),
    }
}

fn put_reply(out: &mut BytesMut, id: u32, message: &[u8], cells: &[u8]) {
    let cell_block_meta =
        (!cells.is_empty()).then_some(pb::CellBlockMeta { length: Some(u32::try_from(cells.len()).unwrap_or(0)) });
    let header = pb::ResponseHeader { call_id: Some(id), exception: None, cell_block_meta };
    put_frame(out, &header, Some(message), cells.len());
    out.extend_from_slice(cells);
}

fn exception(rest: &mut &[u8]) -> pb::ExceptionResponse {
    let class = CLASSES[usize::from(take_byte(rest)) % CLASSES.len()];
    let bits = take_byte(rest);
    pb::ExceptionResponse {
        exception_class_name: Some(class.to_owned()),
        stack_trace: Some(String::from_utf8_lossy(take_part(rest)).into_owned()),
        hostname: (bits & 1 != 0).then(|| "127.0.0.1".to_owned()),
        port: (bits & 2 != 0).then_some(i32::from(bits) << 12),
        do_not_retry: Some(bits & 4 != 0),
        server_overloaded: Some(bits & 8 != 0),
    }
}

fn put_packet(out: &mut BytesMut, body: &[u8]) {
    out.put_u32(body.len() as u32);
    out.extend_from_slice(body);
}

/// So many cells of some rows.
fn sample(count: usize) -> CellBlock {
    let rows = [&b"row"[..], b"row", b"row1", b"row2", b"x", b"x", b"y", b"z"];
    let spec = |row| CellSpec {
        row,
        family: b"f",
        qualifier: b"q",
        timestamp: 5,
        type_code: CellType::Put.code(),
        value: &[0, 0, 0, 0, 0, 0, 0, 7],
        tags: &[],
    };
    CellBlock::from_specs(rows.into_iter().take(count).map(spec))
}

/// The server of one input, at an address that no other input used lately: closed connections block theirs for a minute.
#[derive(Clone)]
struct Stranger {
    script: Arc<Mutex<Script>>,
    host: String,
    port: u16,
    flags: u8,
}

impl Stranger {
    fn codec(&self) -> CellCodec {
        if self.flags & FLAG_TAGS == 0 { CellCodec::KeyValue } else { CellCodec::KeyValueWithTags }
    }

    fn next(&self, call: Option<u32>) -> Option<BytesMut> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).answer(call, self.codec())
    }

    fn name(&self) -> pb::ServerName {
        to_proto::server_name(&ServerName::new(&self.host, self.port, 1))
    }

    /// Talks to one connection until it has nothing more to say.
    async fn serve(self, mut stream: TcpStream) -> Option<()> {
        let mut buffer = BytesMut::new();
        while buffer.len() < 4 {
            (stream.read_buf(&mut buffer).await.ok()? > 0).then_some(())?;
        }
        let is_rpc = buffer.starts_with(b"HBas");
        let mut to_skip = 1;
        if is_rpc {
            while buffer.len() < 6 {
                (stream.read_buf(&mut buffer).await.ok()? > 0).then_some(())?;
            }
            buffer.advance(6);
        }
        loop {
            let Front::Frame(frame) = take_frame(&mut buffer, 1 << 20) else {
                (stream.read_buf(&mut buffer).await.ok()? > 0).then_some(())?;
                continue;
            };
            let is_hello = std::mem::take(&mut to_skip) > 0;
            let out = match (is_rpc, is_hello) {
                (true, true) => continue,
                (true, false) => self.answer_call(frame)?,
                (false, true) if self.flags & FLAG_ALL == 0 => {
                    let mut out = BytesMut::new();
                    put_packet(&mut out, &[&[0, 0, 0, 0, 0, 0, 0x75, 0x30][..], &[0; 8], &[0, 0, 0, 0]].concat());
                    out
                }
                (false, _) if self.flags & FLAG_ALL == 0 => self.node(&frame),
                (false, _) => self.next(None)?,
            };
            stream.write_all(&out).await.ok()?;
        }
    }

    /// A node of ZooKeeper, as HBase writes it.
    fn node(&self, frame: &[u8]) -> BytesMut {
        let asks = |name: &str| frame.windows(name.len()).any(|window| window == name.as_bytes());
        let server = self.name();
        let node = if asks("meta-region-server") {
            magic::encode(&pb::MetaRegionServer { server, ..pb::MetaRegionServer::default() })
        } else if asks("hbaseid") {
            magic::encode(&pb::ClusterId { cluster_id: "fuzz".to_owned() })
        } else {
            magic::encode(&pb::Master { master: server, ..pb::Master::default() })
        };
        let mut out = BytesMut::new();
        let mut body = vec![0; 16];
        body.put_u32(node.len() as u32);
        body.extend_from_slice(&node);
        put_packet(&mut out, &body);
        out
    }

    fn answer_call(&self, mut frame: Bytes) -> Option<BytesMut> {
        let head = take_delimited(&mut frame).expect("the client's frames are whole");
        let head = RequestHead::decode(head).expect("the client's headers are headers");
        let message = take_delimited(&mut frame).expect("the client's frames are whole");
        if self.flags & FLAG_ALL == 0
            && let Some((message, cells)) = self.helpful(&head, &message)
        {
            let mut out = BytesMut::new();
            put_reply(&mut out, head.call_id, &message, &self.codec().encode(cells.bytes().clone(), true));
            return Some(out);
        }
        self.next(Some(head.call_id))
    }

    /// True answers to those who ask where things are.
    fn helpful(&self, head: &RequestHead, message: &Bytes) -> Option<(Vec<u8>, CellBlock)> {
        match &head.method_name[..] {
            b"GetMetaRegionLocations" => {
                let location = pb::RegionLocation {
                    region_info: to_proto::region_info(&RegionInfo::meta()),
                    server_name: Some(self.name()),
                    ..pb::RegionLocation::default()
                };
                let reply = pb::GetMetaRegionLocationsResponse { meta_locations: vec![location] };
                Some((reply.encode_to_vec(), CellBlock::default()))
            }
            b"GetActiveMaster" => {
                let reply = pb::GetActiveMasterResponse { server_name: Some(self.name()) };
                Some((reply.encode_to_vec(), CellBlock::default()))
            }
            b"Scan" => {
                let request = pb::ScanRequest::decode(message.clone()).expect("the client's requests are requests");
                let is_meta = request.region.is_some_and(|region| region.value.starts_with(b"hbase:meta"));
                is_meta.then(|| self.meta_rows(&request.scan.unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// The table has two regions, parted at `m`.
    fn meta_rows(&self, scan: &pb::Scan) -> (Vec<u8>, CellBlock) {
        let (name, address) = (table(), format!("{}:{}", self.host, self.port));
        let part = |from: &'static str, to: &'static str| RegionInfo::new(name.clone(), from.into(), to.into(), 5);
        let regions = match scan.start_row() {
            _ if !scan.reversed() => vec![part("", "m"), part("m", "")],
            row if row >= &b"t,m"[..] => vec![part("m", "")],
            _ => vec![part("", "m")],
        };
        let mut cells = cell::CellBuffer::new();
        for region in &regions {
            let info = magic::encode(&to_proto::region_info(region));
            let values = [("regioninfo", &info[..]), ("server", address.as_bytes()), ("serverstartcode", &[0; 8])];
            for (qualifier, value) in values {
                let spec = CellSpec {
                    row: region.name(),
                    family: b"info",
                    qualifier: qualifier.as_bytes(),
                    timestamp: 5,
                    type_code: CellType::Put.code(),
                    value,
                    tags: &[],
                };
                cells.push_spec(&spec, base::SeqId(0));
            }
        }
        let reply = pb::ScanResponse {
            cells_per_result: vec![3; regions.len()],
            more_results: Some(false),
            more_results_in_region: Some(false),
            scanner_id: Some(1),
            ..pb::ScanResponse::default()
        };
        (reply.encode_to_vec(), cells.into_block())
    }
}

fn table() -> TableName {
    TableName::parse("t").expect("a legal name")
}

struct Stage {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
    inputs: u32,
}

impl Stage {
    fn new() -> Stage {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime of one thread");
        let listener = runtime.block_on(TcpListener::bind("0.0.0.0:0")).expect("a port");
        Stage { runtime, listener, inputs: 0 }
    }

    fn play(&mut self, data: &[u8]) {
        let mut rest = data;
        let (question, flags) = (take_byte(&mut rest) % QUESTIONS, take_byte(&mut rest));
        self.inputs = self.inputs % 0x00FF_FFF0 + 1;
        let [_, a, b, c] = self.inputs.to_be_bytes();
        let port = self.listener.local_addr().expect("bound").port();
        let script = Arc::new(Mutex::new(Script { data: rest.to_vec(), at: 0, steps: 0 }));
        let stranger = Stranger { script, host: format!("127.{a}.{b}.{c}"), port, flags };
        let address = format!("{}:{port}", stranger.host);
        let mut options = match flags & FLAG_ZOOKEEPER {
            0 => Options::rpc(&address),
            _ => Options::zookeeper(&address),
        };
        options.retries = 3;
        options.rpc_timeout = Duration::from_secs(600);
        options.operation_timeout = Duration::from_secs(1200);
        options.codec = stranger.codec();
        let listener = &self.listener;
        self.runtime.block_on(async {
            let connection = Connection::open(options);
            let serving = async {
                let mut tasks = tokio::task::JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.expect("connections can be accepted");
                    tasks.spawn(stranger.clone().serve(stream));
                }
            };
            let asking = tokio::time::timeout(FOR_EVER, ask(question, connection));
            tokio::select! {
                biased;
                asked = asking => assert!(asked.is_ok(), "a caller waits for ever"),
                () = serving => {}
            }
        });
    }
}

/// Does it, and looks at all that comes back.
async fn ask(question: u8, connection: Connection) {
    let (name, table) = (table(), connection.table(&table()));
    let put = || Put::new("row").add("f", "q", "value").build();
    match question {
        0 => _ = table.get(&Get::new("row")).await.map(|row| look(&row)),
        1 => _ = table.exists(&Get::new("row")).await,
        2 => scan(&table, Scan::default(), ScanOptions::default()).await,
        3 => scan(&table, Scan { allow_partial_results: true, ..Scan::default() }, ScanOptions::default()).await,
        4 => {
            let options = ScanOptions { caching: 2, limit: Some(3), prefetch: true, ..ScanOptions::default() };
            scan(&table, Scan { reversed: true, start_row: "row".into(), ..Scan::default() }, options).await;
        }
        5 => scan(&table, Scan { batch: Some(2), ..Scan::default() }, ScanOptions::default()).await,
        6 => {
            let more = [
                Action::Get(Get::new("row")),
                Action::Mutate(put()),
                Action::Mutate(Increment::new("a").add("f", "q", 1).build()),
                Action::MutateRow(vec![put(), put()]),
                Action::Check { condition: condition(), mutations: vec![put()] },
                Action::Get(Get::new("a")),
            ];
            if let Ok(outcomes) = table.batch(&more).await {
                assert_eq!(outcomes.len(), more.len());
                outcomes.into_iter().flatten().for_each(|row| look(&row));
            }
        }
        7 => _ = table.increment(&Increment::new("row").add("f", "q", 1).build()).await.map(|row| look(&row)),
        8 => _ = table.check_and_mutate(&condition(), &[put(), put()]).await.map(|checked| look(&checked.row)),
        9 => _ = table.check_and_mutate(&condition(), &[put()]).await.map(|checked| look(&checked.row)),
        10 => _ = table.regions().await,
        11 => _ = connection.cluster_id().await,
        12 => _ = connection.admin().describe(&name).await,
        13 => _ = connection.admin().cluster_status().await,
        14 => _ = connection.admin().flush(&name).await,
        15 => {
            let descriptor = TableDescriptor::new(name, [FamilyDescriptor::new(Bytes::from("f"))]);
            _ = connection.admin().create_table(&descriptor, &["m".into()]).await;
        }
        16 => _ = connection.admin().is_compacting(&name).await,
        17 => _ = connection.admin().split(&name, Some(b"row")).await,
        18 => _ = connection.admin().list_namespaces().await,
        _ => _ = table.region_of(b"row", true).await,
    }
}

fn condition() -> Condition {
    let test = ConditionTest::Value {
        family: "f".into(),
        qualifier: "q".into(),
        op: CompareOp::Equal,
        comparator: Arc::new(Comparator::Binary { value: "value".into() }),
    };
    Condition { row: "row".into(), test, time_range: model::TimeRange::default() }
}

async fn scan(table: &client::Table, scan: Scan, options: ScanOptions) {
    let limit = options.limit;
    let mut scanner = table.scan(scan, options);
    let mut rows = 0;
    while let Ok(Some(row)) = scanner.next().await {
        look(&row);
        rows += 1;
        if rows % 3 == 0 && scanner.renew().await.is_err() {
            break;
        }
    }
    assert!(limit.is_none_or(|limit| rows <= limit), "more rows than were asked for");
}

fn look(row: &client::Row) {
    for cell in row {
        let _ = cell::tag::iter(cell.tags()).count();
        assert!(cell.row().len() + cell.family().len() + cell.qualifier().len() + cell.value().len() <= row.byte_len());
    }
    assert_eq!(row.iter().count(), row.len());
    let _ = (row.exists(), row.row(), row.value(b"f", b"q"));
}

/// Question, flags, then steps.
fn run(data: &[u8]) {
    thread_local!(static STAGE: RefCell<Option<Stage>> = const { RefCell::new(None) });
    STAGE.with_borrow_mut(|stage| stage.get_or_insert_with(Stage::new).play(data));
}

/// A step with a good message, and so many sample cells.
fn good(message: &impl Message, cells: u8) -> Vec<u8> {
    let mut step = vec![1, cells];
    put_part(&mut step, &message.encode_to_vec());
    step
}

fn refusal(class: u8, bits: u8, text: &str) -> Vec<u8> {
    let mut step = vec![2, class, bits];
    put_part(&mut step, text.as_bytes());
    step
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut add =
        |question: u8, flags: u8, steps: &[Vec<u8>]| seeds.push([&[question, flags][..], &steps.concat()].concat());
    let result = |count| pb::Result { associated_cell_count: Some(count), ..pb::Result::default() };
    let inline = pb::Result {
        cell: vec![pb::Cell {
            row: Some("row".into()),
            family: Some("f".into()),
            qualifier: Some("q".into()),
            timestamp: Some(5),
            cell_type: Some(4),
            value: Some("v".into()),
            tags: Some(shared(b"\0\x02\x08x")),
        }],
        ..pb::Result::default()
    };
    for flags in [0, FLAG_ZOOKEEPER, FLAG_TAGS] {
        let get = |result| pb::GetResponse { result: Some(result) };
        add(0, flags, &[good(&get(result(2)), 2)]);
        add(0, flags, &[good(&get(inline.clone()), 0)]);
        add(1, flags, &[good(&get(pb::Result { exists: Some(true), ..pb::Result::default() }), 0)]);
    }
    for class in 0..CLASSES.len() as u8 {
        let text = "Region moved to: hostname=127.0.0.1 port=1 startCode=7.";
        add(0, 0, &[refusal(class, class, text), good(&pb::GetResponse { result: Some(result(1)) }, 1)]);
        add(
            2,
            0,
            &[
                good(&scan_reply(&[2], &[true], true), 2),
                refusal(class, 0, text),
                good(&scan_reply(&[1], &[], false), 1),
            ],
        );
    }
    for question in [2, 3, 4, 5] {
        let first = good(&scan_reply(&[2, 1], &[], true), 3);
        add(
            question,
            0,
            &[first.clone(), good(&scan_reply(&[1], &[], false), 1), good(&scan_reply(&[2], &[true], true), 7)],
        );
        add(question, 0, &[good(&scan_reply(&[1], &[true], true), 1), good(&scan_reply(&[1], &[false], false), 1)]);
        let in_message = pb::ScanResponse {
            results: vec![inline.clone()],
            more_results: Some(false),
            ..pb::ScanResponse::default()
        };
        add(question, 0, &[good(&in_message, 0)]);
    }
    let one = |index, result| pb::ResultOrException { index: Some(index), result: Some(result), ..Default::default() };
    let region = |results| pb::RegionActionResult { result_or_exception: results, ..Default::default() };
    let failed = |class: &str| pb::NameBytesPair { name: class.to_owned(), value: Some(shared(b"text")) };
    let multi = pb::MultiResponse {
        region_action_result: vec![
            region(vec![one(0, result(1)), one(1, result(0))]),
            pb::RegionActionResult { processed: Some(true), ..region(vec![one(0, result(0))]) },
            pb::RegionActionResult { processed: Some(false), ..region(Vec::new()) },
            region(vec![
                one(0, result(1)),
                pb::ResultOrException { index: Some(1), exception: Some(failed(CLASSES[0])), ..Default::default() },
            ]),
        ],
        ..Default::default()
    };
    add(6, 0, &[good(&multi, 2)]);
    let refused = pb::RegionActionResult { exception: Some(failed(CLASSES[6])), ..Default::default() };
    add(
        6,
        0,
        &[
            good(&pb::MultiResponse { region_action_result: vec![refused.clone(); 4], ..Default::default() }, 0),
            good(&multi, 2),
        ],
    );
    add(
        8,
        0,
        &[good(&pb::MultiResponse { region_action_result: vec![refused], ..Default::default() }, 0), good(&multi, 1)],
    );
    let mutated = pb::MutateResponse { result: Some(result(1)), processed: Some(true), ..Default::default() };
    add(7, 0, &[good(&mutated, 1)]);
    add(9, 0, &[good(&mutated, 0)]);
    add(10, FLAG_ALL, &[good(&pb::GetMetaRegionLocationsResponse::default(), 0)]);
    add(11, FLAG_ZOOKEEPER, &[]);
    add(11, 0, &[good(&pb::GetClusterIdResponse { cluster_id: Some("fuzz".to_owned()) }, 0)]);
    let table_schema = to_proto::table(&TableDescriptor::new(table(), [FamilyDescriptor::new(Bytes::from("f"))]));
    add(12, 0, &[good(&pb::GetTableDescriptorsResponse { table_schema: vec![table_schema] }, 0)]);
    add(13, 0, &[good(&pb::GetClusterStatusResponse::default(), 0)]);
    add(14, 0, &[good(&pb::FlushRegionResponse::default(), 0), good(&pb::FlushRegionResponse::default(), 0)]);
    let running = pb::GetProcedureResultResponse::default();
    add(15, 0, &[good(&pb::CreateTableResponse { proc_id: Some(3) }, 0), good(&running, 0)]);
    add(17, 0, &[good(&pb::SplitTableRegionResponse { proc_id: Some(3) }, 0), good(&running, 0)]);
    add(18, 0, &[good(&pb::ListNamespacesResponse { namespace_name: vec!["default".to_owned()] }, 0)]);
    // ZooKeeper's answers from the input: hello, node.
    let mut hello = vec![1];
    put_part(&mut hello, &[&[0, 0, 0, 0, 0, 0, 0x75, 0x30][..], &[0; 12]].concat());
    let mut node = vec![0];
    put_part(&mut node, &magic::encode(&pb::ClusterId { cluster_id: "fuzz".to_owned() }));
    add(11, FLAG_ZOOKEEPER | FLAG_ALL, &[hello, node]);
    // A reply, and in the same write what is no frame; the end of the connection.
    let mut more = good(&pb::GetResponse { result: Some(result(1)) }, 1);
    more[0] |= FLAG_MORE;
    let mut broken = vec![5];
    put_part(&mut broken, b"\0\0\0\x02\x7F\0");
    add(0, 0, &[more, broken]);
    let mut fatal = refusal(10, 0, "the end");
    fatal[0] = 3;
    add(0, 0, &[fatal]);
    seeds
}

fn scan_reply(cells_per_result: &[u32], partial: &[bool], more_results: bool) -> pb::ScanResponse {
    pb::ScanResponse {
        cells_per_result: cells_per_result.to_vec(),
        partial_flag_per_result: partial.to_vec(),
        more_results: Some(more_results),
        more_results_in_region: Some(more_results),
        scanner_id: Some(9),
        ..pb::ScanResponse::default()
    }
}
