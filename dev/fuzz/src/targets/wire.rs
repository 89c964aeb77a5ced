//! Connections: HBase's RPC from its first byte on, frames behind a handshake, and ZooKeeper's protocol.

use super::{put_part, shared, take_byte, take_part};
use crate::{Target, golden};
use base::ManualClock;
use bytes::Bytes;
use proto::methods::Service;
use rpc::{Call, CellCodec, Compressor, Exception, Handler, Limits, Outcome, Reply};
use std::sync::Arc;
use std::time::Duration;

pub(super) const CONNECTION: Target = Target {
    name: "connection",
    about: "preamble, connection header, then requests",
    max_len: 4096,
    words: &[
        "HBas\\x00P",
        "HBas\\x00Q",
        "Regist",
        "Securi",
        "ClientService",
        "MasterService",
        "AdminService",
        "Get",
        "Multi",
    ],
    seeds: connection_seeds,
    run: |data| _ = converse(data),
};

pub(super) const FRAMES: Target = Target {
    name: "frames",
    about: "request frames with cell blocks, in every codec and compression",
    max_len: 4096,
    words: &["Get", "Multi", "Mutate", "Scan"],
    seeds: frame_seeds,
    run: frames,
};

pub(super) const ZOOKEEPER: Target = Target {
    name: "zookeeper",
    about: "packets to the coordination endpoint, over two connections",
    max_len: 4096,
    words: &[
        "/hbase",
        "/hbase/meta-region-server",
        "world",
        "anyone",
        "ruok",
        "srvr",
        "mntr",
        "stat",
        "\\xff\\xff\\xff\\xff",
    ],
    seeds: zookeeper_seeds,
    run: zookeeper,
};

/// Answers with what came, now, later or as an exception.
struct Echo;

impl Handler for Echo {
    fn call(&self, call: Call) -> Outcome {
        let answer = call.cells().map(|cells| Reply {
            message: call.param.clone(),
            cells: cells.bytes().clone(),
            may_have_tags: true,
            ..Reply::default()
        });
        match call.id % 3 {
            0 if call.has_codec() => Outcome::Ready(answer),
            1 => {
                let message = String::from_utf8_lossy(&call.param).into_owned();
                Outcome::Ready(Err(Exception::do_not_retry(message)))
            }
            _ => {
                call.responder().answer(Ok(Reply { message: call.param, ..Reply::default() }));
                Outcome::Deferred
            }
        }
    }

    fn cluster_id(&self) -> Option<String> {
        Some("fuzz".to_owned())
    }

    fn serves(&self, service: Service) -> bool {
        rpc::call::is_direct(service)
    }
}

/// The first byte says how the rest is cut.
fn converse(mut data: &[u8]) -> Option<Arc<rpc::ConnInfo>> {
    let chunk = match take_byte(&mut data) {
        0 => data.len(),
        chunk => usize::from(chunk),
    };
    let limits = Limits {
        max_request_bytes: 2000,
        ledger: rpc::capped_ledger(1 << 20),
        max_calls: 10,
        max_unsent_bytes: 1 << 20,
        max_decompressed_bytes: 256 << 10,
        max_connections: 1,
        handshake_timeout: Duration::from_secs(1),
        stall_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
    };
    rpc::server::converse(Arc::new(Echo), Arc::new(ManualClock::new(1)), limits, data, chunk)
}

fn connection_seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![b"\0Regist".to_vec(), b"\0SecuriHBas\0P".to_vec(), b"\x01HBas\0Q\0\0\0\x02ab".to_vec()];
    for sent in golden::conversations() {
        if sent[0].0 == "zk" {
            continue;
        }
        let mut whole = vec![7];
        for (_, bytes) in &sent {
            if whole.len() + bytes.len() > CONNECTION.max_len {
                break;
            }
            whole.extend_from_slice(bytes);
        }
        seeds.push(whole);
    }
    seeds
}

const CODECS: [Option<CellCodec>; 5] = [
    None,
    Some(CellCodec::KeyValue),
    Some(CellCodec::KeyValueWithTags),
    Some(CellCodec::Cell),
    Some(CellCodec::CellWithTags),
];
const COMPRESSORS: [Option<Compressor>; 11] = [
    None,
    Some(Compressor::Zlib),
    Some(Compressor::Gzip),
    Some(Compressor::Snappy),
    Some(Compressor::Lz4),
    Some(Compressor::ZstdStream),
    Some(Compressor::ZstdBlock),
    Some(Compressor::Bzip2),
    Some(Compressor::Lzma),
    Some(Compressor::Brotli),
    Some(Compressor::Lzo),
];

/// Codec, compressor and chunk, then frames.
fn frames(mut data: &[u8]) {
    let codec = CODECS[usize::from(take_byte(&mut data)) % CODECS.len()];
    let compressor = COMPRESSORS[usize::from(take_byte(&mut data)) % COMPRESSORS.len()];
    let header = proto::pb::ConnectionHeader {
        service_name: Some("ClientService".to_owned()),
        cell_block_codec_class: codec.map(|codec| codec.class().to_owned()),
        cell_block_compressor_class: compressor.map(|compressor| compressor.class().to_owned()),
        ..Default::default()
    };
    let header = proto::Message::encode_to_vec(&header);
    let mut whole = vec![take_byte(&mut data)];
    whole.extend_from_slice(b"HBas\0P");
    whole.extend_from_slice(&(header.len() as u32).to_be_bytes());
    whole.extend_from_slice(&header);
    whole.extend_from_slice(data);
    let conn = converse(&whole).expect("the handshake is good");
    assert_eq!((conn.codec, conn.compressor), (codec, compressor.filter(|_| codec.is_some())));
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for sent in golden::conversations() {
        for (_, bytes) in sent.iter().filter(|(kind, _)| kind.contains("Service.")).step_by(5) {
            let mut seed = vec![1, 0, 0];
            seed.extend_from_slice(&bytes[..bytes.len().min(1000)]);
            seeds.push(seed);
        }
    }
    // A Multi with cells in every layout.
    let cells = super::cells::sample();
    for (number, codec) in CODECS.iter().enumerate().skip(1) {
        let plain = codec.map(|codec| codec.encode(cells.bytes().clone(), true)).unwrap_or_default();
        for (compression, compressor) in COMPRESSORS.iter().enumerate() {
            let block = compressor.map_or_else(|| plain.clone(), |compressor| compressor.compress(&plain));
            let mut seed = vec![number as u8, compression as u8, 0];
            seed.extend_from_slice(&request(b"Multi", b"", &block));
            seed.extend_from_slice(&request(b"Get", b"abc", b""));
            seeds.push(seed);
        }
    }
    seeds
}

fn request(method: &[u8], message: &[u8], cells: &[u8]) -> Vec<u8> {
    let header = proto::pb::RequestHeader {
        call_id: Some(3),
        method_name: Some(String::from_utf8_lossy(method).into_owned()),
        request_param: Some(true),
        cell_block_meta: (!cells.is_empty()).then_some(proto::pb::CellBlockMeta { length: Some(cells.len() as u32) }),
        ..Default::default()
    };
    let mut frame = bytes::BytesMut::new();
    rpc::frame::put_frame(&mut frame, &header, Some(message), cells.len());
    frame.extend_from_slice(cells);
    frame.to_vec()
}

/// The chunk, what the first connection sends, and the rest is what the second sends.
fn zookeeper(mut data: &[u8]) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime of one thread");
    }
    let chunk = match take_byte(&mut data) {
        0 => data.len(),
        chunk => usize::from(chunk),
    };
    let first = take_part(&mut data);
    RUNTIME.with(|runtime| runtime.block_on(coordination::fuzzing::converse(first, data, chunk)));
}

fn packet(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

fn zookeeper_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = ["ruok", "srvr", "stat", "mntr", "isro", "conf"]
        .iter()
        .map(|word| [b"\0\0\0", word.as_bytes()].concat())
        .collect();
    let seed = |first: &[u8], second: &[u8]| {
        let mut seed = vec![0];
        put_part(&mut seed, first);
        seed.extend_from_slice(second);
        seed
    };
    for sent in golden::conversations().iter().filter(|sent| sent[0].0 == "zk") {
        let whole: Vec<u8> = sent.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        seeds.push(seed(&whole, &whole));
    }
    // A session that uses every operation, and one that watches.
    let hello = packet(&[&[0; 12], &[0, 0, 0x15, 0xF9], &[0; 8], &[0, 0, 0, 16], &[0; 16], &[0]]);
    let string = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let int = |number: i32| number.to_be_bytes().to_vec();
    let acl = [int(1), int(31), string("world"), string("anyone")].concat();
    let op = |op: i32, body: &[Vec<u8>]| packet(&[&int(7), &int(op), &body.concat()]);
    let changes = [
        hello.clone(),
        op(1, &[string("/a"), string("data"), acl.clone(), int(0)]),
        op(15, &[string("/a/n-"), string("d"), acl.clone(), int(3)]),
        op(5, &[string("/a"), string("new"), int(-1)]),
        op(7, &[string("/a"), acl, int(-1)]),
        op(6, &[string("/a")]),
        op(9, &[string("/a")]),
        op(2, &[string("/a"), int(-1)]),
        op(100, &[int(0), string("digest"), string("u:p")]),
        op(11, &[]),
        op(-11, &[]),
    ]
    .concat();
    let watches = [
        hello,
        op(3, &[string("/a"), vec![1]]),
        op(4, &[string("/"), vec![1]]),
        op(8, &[string("/"), vec![1]]),
        op(12, &[string("/"), vec![1]]),
        op(101, &[vec![0; 8], int(1), string("/a"), int(1), string("/b"), int(1), string("/")]),
        op(105, &[vec![0; 8], int(1), string("/"), int(0), int(0), int(0), int(0)]),
        op(11, &[]),
        op(11, &[]),
    ]
    .concat();
    seeds.push(seed(&watches, &changes));
    seeds.push(seed(&changes, &watches));
    seeds
}

/// For other targets: a request of the recorded sessions as method, message and cell block.
pub(super) fn recorded_requests() -> Vec<(String, Bytes, Bytes)> {
    let mut requests = Vec::new();
    for sent in golden::conversations() {
        for (method, frame) in sent.iter().filter(|(kind, _)| kind.contains("Service.")) {
            let mut rest = shared(&frame[4..]);
            let Ok(head) = rpc::frame::take_delimited(&mut rest) else { continue };
            let Ok(head) = rpc::frame::RequestHead::decode(head) else { continue };
            // The recorded cell blocks of one session are compressed; the others are enough.
            if let Ok(body) = rpc::frame::split_body(rest, true, head.cell_block_len) {
                requests.push((method.clone(), body.message, body.cell_block));
            }
        }
    }
    requests
}
