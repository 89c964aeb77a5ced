//! Nodes and sessions captured from a real HBase on a real ZooKeeper.

use crate::common::{Client, start};
use basalt_coordination::hbase_znodes::{RegionState, TableState, strip_prefix, with_prefix};
use basalt_coordination::jute::JuteReader;
use basalt_coordination::{EndpointOptions, HBaseZnodes, TreeHandle};
use base::Rng;
use bytes::Bytes;
use model::{ServerName, TableName};
use proto::{Message, pb};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

fn lines(path: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/golden/{path}", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods, reason = "a test reads its golden file")]
    let text = std::fs::read(&path).expect("the golden file is in the repository");
    let text = String::from_utf8(text).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect(key)
}

/// The captured cluster's nodes, made by our own writers; returns the captured values.
fn captured_cluster(tree: &TreeHandle) -> Vec<(String, Bytes)> {
    let nodes = HBaseZnodes::new(Arc::new(tree.clone()), "/hbase", 23600, Arc::new(Rng::seeded(3)));
    nodes.create_base_nodes().expect("base nodes");
    let master = ServerName::new("localhost", 23600, 1_795_219_451_480);
    let server = ServerName::new("localhost", 23602, 1_795_219_453_200);
    nodes.set_cluster_id("f2abdd6b-1e55-4f42-be84-8e8e614de13c").expect("id");
    nodes.set_running("Sat Nov 21 00:04:14 UTC 2026").expect("running");
    nodes.set_master(&master, None).expect("master");
    nodes.set_meta_location(&server, RegionState::Opening).expect("meta");
    nodes.set_meta_location(&server, RegionState::Open).expect("meta");
    nodes.set_namespace("default", &BTreeMap::new()).expect("namespace");
    nodes.set_namespace("hbase", &BTreeMap::new()).expect("namespace");
    nodes.set_namespace("ns1", &BTreeMap::from([("k".into(), "v".into())])).expect("namespace");
    let captured = lines("cluster/znodes.jsonl");
    for node in &captured {
        if let Some(table) = text(node, "path").strip_prefix("/hbase/table/") {
            let table = TableName::parse(table).expect("a table");
            nodes.set_table_state(&table, TableState::Enabled).expect("table");
        }
    }
    let value = |node: &Value| (text(node, "path").to_owned(), Bytes::from(unhex(text(node, "data_hex"))));
    let values: Vec<_> = captured.iter().map(value).collect();
    // The region server tells its build, which we take from the capture.
    let rs = values.iter().find(|(path, _)| path.starts_with("/hbase/rs/")).expect("captured");
    let info = proto::magic::decode::<pb::RegionServerInfo>(&strip_prefix(&rs.1).expect("prefix"));
    let version = info.expect("magic").expect("a message").version_info;
    nodes.add_region_server(&server, None, version).expect("rs");
    values
}

#[tokio::test]
async fn our_nodes_are_hbases_byte_for_byte() {
    let server = start(EndpointOptions::default()).await;
    let mut compared = 0;
    for (path, theirs) in captured_cluster(&server.tree) {
        let ours = server.tree.get(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(ours.len(), theirs.len(), "{path}");
        let (payload, captured) = (strip_prefix(&ours).expect("ours"), strip_prefix(&theirs).expect("theirs"));
        assert_eq!(payload, captured, "{path}");
        // All but the salt is equal before the payload, too.
        let head = (ours.len() - payload.len()).saturating_sub(8);
        assert_eq!(ours[..head], theirs[..head], "{path}");
        compared += usize::from(!theirs.is_empty());
    }
    assert_eq!(compared, 20);
}

/// Replays every captured connection; a reply must equal the captured one but for ids, times and salt.
#[tokio::test]
async fn captured_sessions_replay() {
    let server = start(EndpointOptions::default()).await;
    captured_cluster(&server.tree);
    let session = lines("rpc/zkregistry-session.jsonl");
    let of_zk = |frame: &&Value| frame["kind"] == "zk";
    let connections: BTreeSet<&str> = session.iter().filter(of_zk).map(|frame| text(frame, "conn")).collect();
    assert_eq!(connections.len(), 2);
    for connection in connections {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("connects");
        let mut sent = Vec::new();
        for frame in session.iter().filter(of_zk).filter(|frame| text(frame, "conn") == connection) {
            let bytes = unhex(text(frame, "hex"));
            if frame["dir"] == "c2s" {
                tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes).await.expect("sent");
                sent.push(bytes);
            } else {
                let ours = crate::common::read_frame(&mut stream).await.expect("a reply");
                compare(&sent[sent.len() - 1], &ours, &Bytes::copy_from_slice(&bytes[4..]), sent.len() == 1);
            }
        }
        assert_eq!(crate::common::read_frame(&mut stream).await, None, "closed behind closeSession");
    }
}

fn compare(request: &[u8], ours: &Bytes, theirs: &Bytes, is_connect: bool) {
    assert_eq!(ours.len(), theirs.len(), "reply to {request:x?}");
    let (mut ours, mut theirs) = (JuteReader::new(ours.clone()), JuteReader::new(theirs.clone()));
    if is_connect {
        assert_eq!((ours.int(), ours.int()), (theirs.int(), theirs.int()), "protocol and timeout");
        return;
    }
    assert_eq!(ours.int(), theirs.int(), "xid");
    assert_ne!(ours.long().expect("zxid"), 0);
    theirs.long().expect("zxid");
    assert_eq!(ours.int(), theirs.int(), "error");
    match i32::from_be_bytes(request[8..12].try_into().expect("an operation")) {
        4 => {
            let (data, captured) = (ours.buffer().expect("data"), theirs.buffer().expect("data"));
            assert_eq!(strip_prefix(&data), strip_prefix(&captured));
            for reader in [&mut ours, &mut theirs] {
                (0..4).for_each(|_| assert!(reader.long().expect("ids and times") > 0));
            }
            let path_is_meta = request.windows(4).any(|w| w == b"meta");
            let (version, captured) = (ours.int(), theirs.int());
            assert!(version == captured || path_is_meta, "version");
            assert_eq!((ours.int(), ours.int()), (theirs.int(), theirs.int()), "cversion, aversion");
            let (owner, captured) = (ours.long().expect("owner"), theirs.long().expect("owner"));
            assert_eq!(owner == 0, captured == 0, "ephemeral");
            assert_eq!((ours.int(), ours.int()), (theirs.int(), theirs.int()), "lengths");
        }
        8 => {
            let names = |reader: &mut JuteReader| -> BTreeSet<String> {
                reader.vector(JuteReader::string).expect("names").into_iter().collect()
            };
            assert_eq!(names(&mut ours), names(&mut theirs));
        }
        _ => assert!(ours.is_empty() && theirs.is_empty()),
    }
}

#[test]
fn the_prefix_is_put_on_and_taken_off() {
    let value = with_prefix("master:16000", *b"saltsalt", b"PBUFx");
    assert_eq!(&value[..5], b"\xff\0\0\0\x14");
    assert_eq!(strip_prefix(&value), Some(Bytes::from_static(b"PBUFx")));
    assert_eq!(strip_prefix(&Bytes::from_static(b"PBUFx")), Some(Bytes::from_static(b"PBUFx")));
    assert_eq!(strip_prefix(&Bytes::new()), Some(Bytes::new()));
    for cut in 1..value.len() - 5 {
        assert_eq!(strip_prefix(&value.slice(..cut)), None, "{cut}");
    }
    assert_eq!(strip_prefix(&Bytes::from_static(b"\xff\xff\xff\xff\xff")), None);
    // Namespaces stand without magic.
    let bare = pb::NamespaceDescriptor { name: Bytes::from_static(b"ns1"), configuration: vec![] };
    assert_eq!(bare.encode_to_vec(), b"\x0a\x03ns1");
}

#[tokio::test]
async fn another_parent_is_possible() {
    let server = start(EndpointOptions::default()).await;
    let nodes = HBaseZnodes::new(Arc::new(server.tree.clone()), "/hbase-unsecure", 16000, server.rng.clone());
    nodes.create_base_nodes().expect("base nodes");
    let master = ServerName::new("h", 16000, 1);
    nodes.set_master(&master, Some(16010)).expect("master");
    let mut client = Client::connect(&server).await;
    assert_eq!(client.look(3, "/hbase-unsecure/master", false).await.err, 0);
    assert_eq!(client.look(3, "/hbase/master", false).await.err, -101);
    nodes.clear_running(true).expect("gone");
    assert_eq!(client.look(3, "/hbase-unsecure/master", false).await.err, -101);
}
