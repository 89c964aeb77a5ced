//! Tables and rows, in every encoding.

use crate::http::Rest;
use proto::{Message, rest};

const XML: &str = "Content-Type: text/xml";
const JSON: &str = "Content-Type: application/json";
const PROTOBUF: &str = "Content-Type: application/x-protobuf";
const BINARY: &str = "Content-Type: application/octet-stream";

/// `<?xml ...?>` before it.
fn xml(document: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>{document}")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_made_described_listed_and_dropped() {
    let rest = Rest::start(&[]).await;
    assert_eq!(rest.get("/t/exists", "*/*").await.status, 404);
    assert_eq!(rest.get("/t/schema", "text/xml").await.status, 404);
    rest.table().await;
    assert_eq!(rest.get("/t/exists", "*/*").await.status, 200);
    let list = rest.get("/", "text/xml").await;
    assert_eq!(list.text(), xml("<TableList><table name=\"t\"/></TableList>"));
    assert_eq!(list.header("cache-control"), Some("no-cache"));
    assert_eq!(json(&rest.get("/", "application/json").await.text()), json("{\"table\":[{\"name\":\"t\"}]}"));
    assert_eq!(rest.get("/", "*/*").await.text(), "t\n");
    let schema = json(&rest.get("/t/schema", "application/json").await.text());
    assert_eq!((&schema["name"], &schema["ColumnSchema"][0]["VERSIONS"]), (&"t".into(), &"3".into()));
    let changed = rest.request("POST /t/schema", &[JSON], b"{\"ColumnSchema\":[{\"name\":\"h\"}]}").await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let schema = rest.get("/t/schema", "application/protobuf").await;
    let schema = rest::TableSchema::decode(&schema.body[..]).expect("a schema");
    let names: Vec<&str> = schema.columns.iter().map(|family| family.name()).collect();
    assert_eq!(names, ["f", "g", "h"]);
    let regions = json(&rest.get("/t/regions", "application/json").await.text());
    assert_eq!((&regions["name"], &regions["Region"][0]["startKey"]), (&"t".into(), &"".into()));
    assert_eq!(rest.request("DELETE /t/schema", &[], b"").await.status, 200);
    assert_eq!(rest.get("/t/exists", "*/*").await.status, 404);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_and_its_namespaces_are_described() {
    let rest = Rest::start(&[]).await;
    let version = json(&rest.get("/version", "application/json").await.text());
    assert_eq!(version["REST"], "0.0.3");
    let cluster = rest.get("/version/cluster", "text/plain").await;
    assert!(cluster.status == 200 && cluster.text().starts_with("2."), "{}", cluster.text());
    let status = rest.get("/status/cluster", "application/x-protobuf").await;
    let status = rest::StorageClusterStatus::decode(&status.body[..]).expect("a status");
    assert_eq!(status.live_nodes.len(), 1);
    assert!(rest.get("/status/cluster", "text/xml").await.text().contains("<LiveNodes><Node "));
    assert_eq!(rest.get("/namespaces", "text/plain").await.text(), "default\nhbase\n");
    let made = rest.request("POST /namespaces/n", &[JSON], b"{\"properties\":{\"a\":\"1\"}}").await;
    assert_eq!((made.status, made.header("location")), (201, Some("http://gateway/namespaces/n")));
    assert_eq!(rest.request("POST /namespaces/n", &[], b"").await.status, 403);
    assert_eq!(rest.get("/namespaces/n", "text/plain").await.text(), "{NAME => 'n', a => '1'}");
    assert_eq!(rest.request("PUT /namespaces/n", &[JSON], b"{\"properties\":{\"b\":\"2\"}}").await.status, 200);
    assert_eq!(rest.request("PUT /namespaces/m", &[], b"").await.status, 403);
    assert_eq!(rest.get("/namespaces/n/tables", "text/plain").await.text(), "");
    assert_eq!(rest.request("DELETE /namespaces/n", &[], b"").await.status, 200);
    assert_eq!(rest.request("DELETE /namespaces/n", &[], b"").await.status, 404);
    assert_eq!(rest.get("/namespaces/n", "text/plain").await.status, 500);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_written_read_and_deleted_in_every_encoding() {
    let rest = Rest::start(&[]).await;
    rest.table().await;
    // a, f:q, 1 at the time 5.
    let row = "<CellSet><Row key=\"YQ==\"><Cell column=\"Zjpx\" timestamp=\"5\">MQ==</Cell></Row></CellSet>";
    assert_eq!(rest.request("PUT /t/a", &[XML], row.as_bytes()).await.status, 200);
    assert_eq!(rest.get("/t/a", "text/xml").await.text(), xml(row));
    let as_json = json(&rest.get("/t/a", "application/json").await.text());
    assert_eq!(
        as_json,
        json("{\"Row\":[{\"key\":\"YQ==\",\"Cell\":[{\"column\":\"Zjpx\",\"timestamp\":5,\"$\":\"MQ==\"}]}]}")
    );
    let as_protobuf = rest.get("/t/a/f:q", "application/x-protobuf").await;
    assert_eq!(as_protobuf.header("content-type"), Some("application/x-protobuf"));
    let set = rest::CellSet::decode(&as_protobuf.body[..]).expect("a cell set");
    assert_eq!(set.rows[0].values[0].data.as_deref(), Some(&b"1"[..]));
    let value = rest.get("/t/a/f:q", "application/octet-stream").await;
    assert_eq!((value.text(), value.header("x-timestamp")), ("1".to_owned(), Some("5")));
    assert_eq!(rest.get("/t/a", "application/octet-stream").await.status, 400);

    // Versions and times.
    let newer = "{\"Row\":[{\"key\":\"YQ==\",\"Cell\":[{\"column\":\"Zjpx\",\"timestamp\":9,\"$\":\"Mg==\"}]}]}";
    assert_eq!(rest.request("POST /t/any", &[JSON], newer.as_bytes()).await.status, 200);
    let versions = json(&rest.get("/t/a/f:q?v=3", "application/json").await.text());
    assert_eq!(versions["Row"][0]["Cell"].as_array().map(Vec::len), Some(2));
    assert_eq!(rest.get("/t/a/f:q/0,6", "application/octet-stream").await.text(), "1");

    // Protobuf and plain values, keys in base64.
    let mut cell = set.rows[0].clone();
    cell.key = "b".into();
    let body = rest::CellSet { rows: vec![cell] }.encode_to_vec();
    assert_eq!(rest.request("PUT /t/b", &[PROTOBUF], &body).await.status, 200);
    assert_eq!(rest.request("PUT /t/_w==/Zjpx?e=b64url", &[BINARY], b"raw").await.status, 200);
    assert_eq!(rest.get("/t/_w==/Zjpx?e=b64url", "application/octet-stream").await.text(), "raw");
    let all = json(&rest.get("/t/*", "application/json").await.text());
    let keys: Vec<&str> = all["Row"].as_array().expect("rows").iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(keys, ["YQ==", "Yg==", "/w=="]);

    assert_eq!(rest.request("DELETE /t/a/f:q/5", &[], b"").await.status, 200);
    assert_eq!(rest.get("/t/a/f:q/0,6", "application/octet-stream").await.status, 404);
    assert_eq!(rest.request("DELETE /t/b", &[], b"").await.status, 200);
    assert_eq!(rest.get("/t/b", "text/xml").await.status, 404);
    assert_eq!(rest.get("/none/a", "text/xml").await.status, 404);
    let refused = rest.request("PUT /t/a/x:q", &[BINARY], b"1").await;
    assert_eq!(refused.status, 404, "{}", refused.text());
    rest.stop().await;
}
