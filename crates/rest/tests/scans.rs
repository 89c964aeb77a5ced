//! Scans, globs, many rows at once, conditional writes.

use crate::http::Rest;
use proto::{Message, rest};

const XML: &str = "Content-Type: text/xml";
const JSON: &str = "Content-Type: application/json";
const BINARY: &str = "Content-Type: application/octet-stream";

/// Rows `r0` to `r9`, each with `f:q` and `g:q`.
async fn filled(settings: &[(&str, &str)]) -> Rest {
    let rest = Rest::start(settings).await;
    rest.table().await;
    for i in 0..10 {
        for family in ["f", "g"] {
            let put = rest.request(&format!("PUT /t/r{i}/{family}:q"), &[BINARY], format!("{i}").as_bytes()).await;
            assert_eq!(put.status, 200);
        }
    }
    rest
}

/// Keys of the rows of an answer in JSON.
fn keys(body: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let rows = value["Row"].as_array().expect("rows").iter();
    rows.map(|row| row["key"].as_str().expect("a key").to_owned()).collect()
}

/// A path of an absolute URL.
fn path(location: &str) -> &str {
    location.strip_prefix("http://gateway").expect("of this gateway")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scanner_hands_out_its_cells_until_it_is_closed() {
    let rest = filled(&[]).await;
    // From r2 up to r6.
    let made =
        rest.request("PUT /t/scanner", &[XML], b"<Scanner batch=\"3\" startRow=\"cjI=\" endRow=\"cjY=\"/>").await;
    assert_eq!(made.status, 201, "{}", made.text());
    let scanner = path(made.header("location").expect("a place")).to_owned();
    let first = rest.get(&scanner, "application/json").await;
    assert_eq!(keys(&first.text()), ["cjI=", "cjM="]);
    // The row goes on where the batch ended.
    let value = rest.get(&scanner, "application/octet-stream").await;
    let headers = (value.header("x-row"), value.header("x-column"));
    assert_eq!((value.text(), headers), ("3".to_owned(), (Some("cjM="), Some("Zzpx"))));
    assert_eq!(keys(&rest.get(&format!("{scanner}?n=1"), "application/json").await.text()), ["cjQ="]);
    assert_eq!(keys(&rest.get(&format!("{scanner}?c=2"), "application/json").await.text()), ["cjU="]);
    assert_eq!(rest.get(&scanner, "text/xml").await.status, 204);
    assert_eq!(rest.get(&scanner.replace("/t/", "/u/"), "text/xml").await.status, 404);
    assert_eq!(rest.request(&format!("DELETE {scanner}"), &[], b"").await.status, 200);
    assert_eq!(rest.get(&scanner, "text/xml").await.status, 404);
    assert_eq!(rest.request(&format!("DELETE {scanner}"), &[], b"").await.status, 404);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scanner_has_columns_and_a_filter() {
    let rest = filled(&[]).await;
    let filter = "{\\\"type\\\":\\\"RowFilter\\\",\\\"op\\\":\\\"GREATER\\\",\\\"comparator\\\":{\\\"type\\\":\
                  \\\"BinaryComparator\\\",\\\"value\\\":\\\"cjc=\\\"}}";
    let body = format!("{{\"column\":[\"Zg==\"],\"filter\":\"{filter}\"}}");
    let made = rest.request("POST /t/scanner", &[JSON], body.as_bytes()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let cells = rest.get(path(made.header("location").expect("a place")), "application/x-protobuf").await;
    let set = rest::CellSet::decode(&cells.body[..]).expect("a cell set");
    let rows: Vec<(&[u8], usize)> = set.rows.iter().map(|row| (&row.key[..], row.values.len())).collect();
    assert_eq!(rows, [(&b"r8"[..], 1), (b"r9", 1)]);
    for body in
        ["{\"filter\":\"x\"}", "{\"startRow\":1}", "{\"labels\":[\"secret\"]}", "{\"startTime\":5,\"endTime\":1}"]
    {
        assert_eq!(rest.request("POST /t/scanner", &[JSON], body.as_bytes()).await.status, 400, "{body}");
    }
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scanner_that_was_not_used_for_longest_goes_first() {
    let rest = filled(&[("hbase.rest.scannercache.size", "2")]).await;
    let mut scanners = Vec::new();
    for _ in 0..3 {
        let made = rest.request("PUT /t/scanner", &[XML], b"<Scanner batch=\"1\"/>").await;
        scanners.push(path(made.header("location").expect("a place")).to_owned());
    }
    let mut found = Vec::new();
    for scanner in &scanners {
        found.push(rest.get(scanner, "text/xml").await.status);
    }
    assert_eq!(found, [404, 200, 200]);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stateless_scans_are_streams() {
    let rest = filled(&[("hbase.rest.scan.fetchsize", "4")]).await;
    let all = rest.get("/t/*", "application/json").await;
    assert_eq!((keys(&all.text()).len(), all.header("transfer-encoding")), (10, Some("chunked")));
    assert_eq!(keys(&rest.get("/t/r*?limit=3&column=f:q", "application/json").await.text()).len(), 3);
    assert_eq!(keys(&rest.get("/t/r3*", "application/json").await.text()), ["cjM="]);
    let range =
        rest.get("/t/*?startrow=r2&endrow=r4&maxversions=2&batchsize=1&cacheblocks=false", "application/json").await;
    // A batch of one cell: each row comes in two.
    assert_eq!(keys(&range.text()), ["cjI=", "cjI=", "cjM=", "cjM="]);
    let down = rest.get("/t/*?reversed=true&startrow=r2&includeStartRow=false", "application/json").await;
    assert_eq!(keys(&down.text()), ["cjE=", "cjA="]);
    let filtered = rest.get("/t/*?filter=PrefixFilter('r7')", "application/json").await;
    assert_eq!(keys(&filtered.text()), ["cjc="]);
    assert_eq!(
        rest.get("/t/x*", "text/xml").await.text(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><CellSet/>"
    );
    assert_eq!(keys(&rest.get("/t/x*", "application/json").await.text()).len(), 0);
    let stream = rest.get("/t/*", "application/x-protobuf").await;
    let (mut body, mut messages) = (&stream.body[..], Vec::new());
    while let [high, low, rest @ ..] = body {
        let (message, others) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        messages.push(rest::CellSet::decode(message).expect("a cell set").rows.len());
        body = others;
    }
    assert_eq!(messages, [4, 4, 2]);
    assert_eq!(rest.get("/none/*", "text/xml").await.status, 404);
    assert_eq!(rest.get("/t/*?limit=x", "text/xml").await.status, 404);
    assert_eq!(rest.get("/t/*?filter=Nonsense(", "text/xml").await.status, 400);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_rows_come_by_glob_range_and_keys() {
    let rest = filled(&[]).await;
    assert_eq!(keys(&rest.get("/t/r*/f:q", "application/json").await.text()).len(), 10);
    assert_eq!(keys(&rest.get("/t/r2,r4/f", "application/json").await.text()), ["cjI=", "cjM="]);
    assert_eq!(
        keys(&rest.get("/t/multiget?row=r1&row=none&row=r3/f:q", "application/json").await.text()),
        ["cjE=", "cjM="]
    );
    assert_eq!(
        keys(&rest.get("/t/multiget/f:q?row=r1&v=2&filter=ValueFilter(=,'binary:1')", "application/json").await.text()),
        ["cjE="]
    );
    assert_eq!(keys(&rest.get("/t/multiget?row=cjE=&e=b64url", "application/json").await.text()), ["cjE="]);
    assert_eq!(rest.get("/t/multiget?row=none", "text/xml").await.status, 404);
    assert_eq!(rest.get("/t/multiget?row=a*,b", "text/xml").await.status, 400);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_may_have_conditions_and_counters_count() {
    let rest = filled(&[]).await;
    // f:q becomes "new" where it is "1".
    let body = |expected: &str| {
        format!(
            "<CellSet><Row key=\"cjE=\"><Cell column=\"Zjpx\">bmV3</Cell><Cell column=\"Zjpx\">{expected}</Cell></Row></CellSet>"
        )
    };
    assert_eq!(rest.request("PUT /t/r1?check=put", &[XML], body("Mg==").as_bytes()).await.status, 304);
    assert_eq!(rest.request("PUT /t/r1?check=put", &[XML], body("MQ==").as_bytes()).await.status, 200);
    assert_eq!(rest.get("/t/r1/f:q", "application/octet-stream").await.text(), "new");
    let only = b"<CellSet><Row key=\"cjE=\"><Cell column=\"Zjpx\">bmV3</Cell></Row></CellSet>";
    assert_eq!(rest.request("PUT /t/r1?check=put", &[XML], only).await.status, 400);
    assert_eq!(rest.request("PUT /t/r1?check=delete", &[XML], only).await.status, 200);
    assert_eq!(rest.request("PUT /t/r1?check=delete", &[XML], only).await.status, 304);
    assert_eq!(rest.get("/t/r1/f:q", "application/octet-stream").await.status, 404);
    assert_eq!(rest.request("PUT /t/r1?check=nonsense", &[XML], only).await.status, 400);

    // "1" and then "ab".
    let append = b"{\"Row\":[{\"key\":\"cjE=\",\"Cell\":[{\"column\":\"Zzpx\",\"$\":\"YWI=\"}]}]}";
    assert_eq!(rest.request("PUT /t/r1?check=append", &[JSON], append).await.status, 200);
    assert_eq!(rest.get("/t/r1/g:q", "application/octet-stream").await.text(), "1ab");
    let accept = "Accept: application/x-protobuf";
    // f:n by 5, twice.
    let increment = b"{\"Row\":[{\"key\":\"cjE=\",\"Cell\":[{\"column\":\"Zjpu\",\"$\":\"NQ==\"}]}]}";
    assert_eq!(rest.request("POST /t/r1?check=increment", &[JSON], increment).await.status, 200);
    let counted = rest.request("POST /t/r1?check=increment&rr=true", &[JSON, accept], increment).await;
    let set = rest::CellSet::decode(&counted.body[..]).expect("a cell set");
    assert_eq!(set.rows[0].values[0].data.as_deref(), Some(&10i64.to_be_bytes()[..]));
    let no_number = b"{\"Row\":[{\"key\":\"cjE=\",\"Cell\":[{\"column\":\"Zjpu\",\"$\":\"eA==\"}]}]}";
    assert_eq!(rest.request("POST /t/r1?check=increment", &[JSON], no_number).await.status, 400);
    rest.stop().await;
}
