//! What is wrong or too much is refused early, with the door's own error, and nothing else suffers.

use crate::http::Rest;
use base::{Holder, Share};
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use std::io::Write;

const XML: &str = "Content-Type: text/xml";
const JSON: &str = "Content-Type: application/json";
const PROTOBUF: &str = "Content-Type: application/x-protobuf";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_none_are_refused() {
    let rest = Rest::start(&[("basalt.rest.max.request.bytes", "1024")]).await;
    rest.table().await;
    let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><CellSet>&b;</CellSet>";
    for (kind, body) in [
        (XML, bomb),
        (XML, "<CellSet>"),
        (XML, "<CellSet><Row key=\"!\"/></CellSet>"),
        (XML, "<Scanner/>"),
        (JSON, "{"),
        (JSON, "[[[[[["),
        (JSON, "{\"Row\":[{\"key\":\"cg==\",\"Cell\":[{\"$\":\"eA==\"}]}]}"),
        (PROTOBUF, "\u{a}\u{7f}"),
    ] {
        let refused = rest.request("PUT /t/r", &[kind], body.as_bytes()).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
    }
    assert_eq!(rest.request("PUT /t/r", &["Content-Type: image/png"], b"x").await.status, 415);
    assert_eq!(rest.request("PUT /t/r/f:q", &["Content-Type: application/octet-stream"], &[0; 1025]).await.status, 413);
    // What inflates to more than may be.
    let mut zip = GzEncoder::new(Vec::new(), Compression::best());
    zip.write_all(&[0; 1 << 20]).expect("memory");
    let zipped = &zip.finish().expect("memory")[..];
    assert!(zipped.len() > 1000);
    let rest_of = Rest::start(&[("basalt.rest.max.request.bytes", "4096")]).await;
    let gzip = "Content-Encoding: gzip";
    assert_eq!(
        rest_of.request("PUT /t/r/f:q", &["Content-Type: application/octet-stream", gzip], zipped).await.status,
        413
    );
    assert_eq!(
        rest_of.request("PUT /t/r/f:q", &["Content-Type: application/octet-stream", gzip], b"no gzip").await.status,
        400
    );
    rest_of.stop().await;
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_and_heads_that_are_none_are_refused() {
    let rest = Rest::start(&[]).await;
    rest.table().await;
    for path in ["/t/%zz", "/t/r/,f", "/t/r/f:q/x", "/t/!?e=b64", "/t/r?v=x", "/t/r/f:q/9,5", "/..%2f..%2fetc/exists"] {
        assert_eq!(rest.get(path, "text/xml").await.status, 400, "{path}");
    }
    for path in ["/t", "/t/a*b", "/t/a*,b/f", "/version/x", "/namespaces/a/b/c", "/t/schema/x"] {
        assert_eq!(rest.get(path, "text/xml").await.status, 404, "{path}");
    }
    assert_eq!(rest.get("/t/r", "image/png").await.status, 406);
    assert_eq!(rest.request("PATCH /t/r", &[], b"").await.status, 405);
    assert_eq!(rest.request("DELETE /t/exists", &[], b"").await.status, 405);
    let flood = (0..300).map(|i| format!("x{i}: y\r\n")).collect::<String>();
    assert_eq!(rest.raw(format!("GET / HTTP/1.1\r\nHost: a\r\n{flood}\r\n").as_bytes()).await.status, 431);
    assert_eq!(rest.raw(b"nonsense\r\n\r\n").await.status, 400);
    assert_eq!(rest.get("/t/exists", "*/*").await.status, 200);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_only_reads_changes_nothing() {
    let rest = Rest::start(&[("hbase.rest.readonly", "true")]).await;
    for line in
        ["PUT /t/schema", "PUT /t/r", "POST /t/scanner", "DELETE /t/r", "POST /namespaces/n", "DELETE /t/schema"]
    {
        assert_eq!(rest.request(line, &[XML], b"").await.status, 403, "{line}");
    }
    assert_eq!(rest.get("/", "text/plain").await.status, 200);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_bodies_may_be_compressed() {
    let rest = Rest::start(&[]).await;
    rest.table().await;
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    zip.write_all(b"value").expect("memory");
    let body = zip.finish().expect("memory");
    let headers = ["Content-Type: application/octet-stream", "Content-Encoding: gzip"];
    assert_eq!(rest.request("PUT /t/r/f:q", &headers, &body).await.status, 200);
    for path in ["/t/r/f:q", "/t/r*"] {
        let plain = rest.get(path, "*/*").await.body;
        let zipped = rest.request(&format!("GET {path}"), &["Accept-Encoding: gzip"], b"").await;
        assert_eq!(zipped.header("content-encoding"), Some("gzip"));
        let mut unzip = GzDecoder::new(Vec::new());
        unzip.write_all(&zipped.body).expect("gzip");
        assert_eq!(unzip.finish().expect("gzip"), plain, "{path}");
    }
    rest.stop().await;
}

/// What many clients are sent at once is bounded; those beyond are refused, and the next one is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_under_way_is_bounded() {
    let rest = Rest::start(&[]).await;
    rest.table().await;
    rest.place.ledger.set_share(Holder::Replies, Share::fixed(2 << 20));
    let put = rest.request("PUT /t/r/f:q", &["Content-Type: application/octet-stream"], &[7; 600 << 10]).await;
    assert_eq!(put.status, 200);
    // In JSON it is more than there may be.
    assert_eq!(rest.get("/t/r", "application/json").await.status, 200);
    let large = rest.request("PUT /t/r/g:q", &["Content-Type: application/octet-stream"], &[7; 600 << 10]).await;
    assert_eq!(large.status, 200);
    assert_eq!(rest.get("/t/r", "application/json").await.status, 503);
    assert_eq!(rest.get("/t/r/f:q", "application/octet-stream").await.body.len(), 600 << 10);
    rest.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_must_send_the_header_that_other_sites_cannot() {
    let rest = Rest::start(&[("hbase.rest.csrf.enabled", "true"), ("hbase.rest.filter.classes", "")]).await;
    rest.table().await;
    let (kind, browser) = ("Content-Type: application/octet-stream", "User-Agent: Mozilla/5.0 (X11)");
    let refused = rest.request("PUT /t/r/f:q", &[kind, browser], b"value").await;
    let why = "Missing Required Header for CSRF Vulnerability Protection";
    assert!(refused.status == 400 && refused.text().contains(why), "{} {}", refused.status, refused.text());
    assert_eq!(rest.request("PUT /t/r/f:q", &[kind, browser, "X-XSRF-HEADER: 1"], &[b'v'; 2000]).await.status, 200);
    assert_eq!(rest.request("DELETE /t/none", &["User-Agent: curl/8"], b"").await.status, 200);
    // Without the filter that compresses nothing is.
    let headers = ["Accept: application/octet-stream", "Accept-Encoding: gzip", browser];
    let got = rest.request("GET /t/r/f:q", &headers, b"").await;
    assert_eq!((got.status, got.header("content-encoding"), got.body.len()), (200, None, 2000));
    let scanned = rest.request("GET /t/*", &["Accept: application/json", "Accept-Encoding: gzip"], b"").await;
    assert_eq!((scanned.status, scanned.header("content-encoding")), (200, None));
    rest.stop().await;
}
