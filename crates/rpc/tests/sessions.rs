//! What the Java client said to HBase, said to this server: every connection header is taken, every request is read,
//! its cells included, and gets its reply.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Raw, Toy, limits, start};
use bytes::Bytes;

fn session(name: &str) -> Vec<serde_json::Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/rpc/{name}-session.jsonl"));
    #[allow(clippy::disallowed_methods, reason = "a test reads its vectors from the tree")]
    let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn hex(text: &str) -> Bytes {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

async fn replay(name: &str) -> usize {
    let server = start(Toy { says_yes: true, ..Toy::default() }, limits());
    let mut connections: BTreeMap<String, (Raw, Vec<u64>)> = BTreeMap::new();
    for line in session(name) {
        let kind = line["kind"].as_str().unwrap();
        if line["dir"] != "c2s" || !matches!(kind, "preamble" | "connection_header" | "request") {
            continue;
        }
        let conn = line["conn"].as_str().unwrap().to_owned();
        if !connections.contains_key(&conn) {
            connections.insert(conn.clone(), (Raw::connect(&server).await, Vec::new()));
        }
        let (raw, calls) = connections.get_mut(&conn).unwrap();
        let bytes = line["frame_hex"].as_str().or_else(|| line["hex"].as_str()).unwrap();
        raw.send(&hex(bytes)).await;
        if kind == "request" {
            calls.push(line["call_id"].as_u64().unwrap());
        }
    }
    let mut answered = 0;
    for (conn, (mut raw, calls)) in connections {
        for call in calls {
            let (header, _) = raw.reply().await;
            assert_eq!(header.exception, None, "{name} {conn} call {call}");
            assert_eq!(u64::from(header.call_id()), call, "{name} {conn}");
            answered += 1;
        }
    }
    answered
}

#[tokio::test]
async fn every_request_of_the_captured_sessions_is_read_and_answered() {
    for name in ["zkregistry", "rpcregistry", "nocodec", "gzip"] {
        let answered = replay(name).await;
        assert!(answered > 100, "{name}: {answered}");
    }
}

#[tokio::test]
async fn the_registry_preamble_gets_the_bytes_that_hbase_sent() {
    let lines = session("rpcregistry");
    let recorded = lines.iter().find(|l| l["kind"] == "preamble_response").expect("the session has one");
    let recorded = hex(recorded["frame_hex"].as_str().or_else(|| recorded["hex"].as_str()).unwrap());
    // Its cluster id is the only part that is not fixed: 36 characters at the end.
    let cluster_id = String::from_utf8(recorded[recorded.len() - 36..].to_vec()).unwrap();
    let server = start(Toy { cluster_id: Some(cluster_id), ..Toy::default() }, limits());
    let mut raw = Raw::connect(&server).await;
    raw.send(b"Regist").await;
    assert_eq!(raw.frame().await.unwrap(), recorded.slice(4..));
}
