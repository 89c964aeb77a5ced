//! Frames that the Java client and HBase exchanged: each header and each message decodes, and encodes to the same bytes
//! (so no field is unknown to us and none is read under another number).

#![allow(clippy::disallowed_methods, reason = "a test reads its vectors from the tree")]

use std::path::Path;

use basalt_proto::methods::Service;
use basalt_proto::{Message, pb};
use bytes::Bytes;

macro_rules! round_trip_by_name {
    ($($name:ident)*) => {
        fn round_trip(name: &str, bytes: Bytes) -> Vec<u8> {
            match name {
                $(stringify!($name) => pb::$name::decode(bytes).expect(name).encode_to_vec(),)*
                other => panic!("add {other} to this test"),
            }
        }
    };
}

round_trip_by_name! {
    RequestHeader ResponseHeader ConnectionHeader
    CreateTableRequest CreateTableResponse DeleteSnapshotRequest DeleteSnapshotResponse DeleteTableRequest
    DeleteTableResponse DisableTableRequest DisableTableResponse FlushTableRequest FlushTableResponse
    GetActiveMasterRequest GetActiveMasterResponse GetClusterIdRequest GetClusterIdResponse GetClusterStatusRequest
    GetClusterStatusResponse GetMetaRegionLocationsRequest GetMetaRegionLocationsResponse GetProcedureResultRequest
    GetProcedureResultResponse GetRequest GetResponse GetTableDescriptorsRequest GetTableDescriptorsResponse
    IsMasterRunningRequest IsMasterRunningResponse MultiRequest MultiResponse MutateRequest MutateResponse ScanRequest
    ScanResponse SnapshotRequest SnapshotResponse
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

fn golden(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(path)
}

fn delimited(frame: &mut Bytes) -> Bytes {
    let len = prost::decode_length_delimiter(&mut *frame).unwrap();
    frame.split_to(len)
}

fn replay(session: &str) -> usize {
    let text = std::fs::read_to_string(golden(session)).unwrap();
    let mut messages = 0;
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(mut frame) = line["frame_hex"].as_str().map(|h| Bytes::from(hex(h)).slice(4..)) else { continue };
        let mut check = |name: &str, bytes: Bytes| {
            assert_eq!(round_trip(name, bytes.clone()), bytes, "{session} {name}: {line}");
            messages += 1;
        };
        let info = line["method"].as_str().map(|full| {
            let (service, method) = full.split_once('.').unwrap();
            Service::from_name(service).unwrap().method(method).unwrap()
        });
        match line["kind"].as_str().unwrap() {
            "connection_header" => check("ConnectionHeader", frame),
            "request" => {
                check("RequestHeader", delimited(&mut frame));
                check(info.unwrap().request, delimited(&mut frame));
            }
            "response" => {
                let header = delimited(&mut frame);
                check("ResponseHeader", header.clone());
                if pb::ResponseHeader::decode(header).unwrap().exception.is_none() {
                    check(info.unwrap().response, delimited(&mut frame));
                }
            }
            _ => {}
        }
    }
    messages
}

#[test]
fn captured_frames_survive_decoding_and_encoding() {
    for session in ["zkregistry", "rpcregistry", "nocodec", "gzip"] {
        let messages = replay(&format!("rpc/{session}-session.jsonl"));
        assert!(messages > 400, "{session}: only {messages} messages");
    }
}

#[test]
fn a_log_header_decodes() {
    // `PWAL`, version, then the header with its length before it.
    let wal = Bytes::from(std::fs::read(golden("wal/plain.wal")).unwrap());
    assert_eq!(&wal[..4], b"PWAL");
    let header = pb::WalHeader::decode_length_delimited(wal.slice(4..)).unwrap();
    assert_eq!(header.cell_codec_cls_name.as_deref(), Some("org.apache.hadoop.hbase.regionserver.wal.WALCellCodec"));
}
