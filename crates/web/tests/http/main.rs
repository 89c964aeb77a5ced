//! The pages over a real socket: what they show, what they refuse, and who cannot hold them up.

mod fixture;
mod pages;

use fixture::{Response, Running};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn the_page_shows_what_is() {
    let server = Running::start(3, false);
    let root = server.get("/").await;
    assert_eq!(root.code, 302);
    assert!(root.head.contains("location: /master-status"), "{}", root.head);
    let page = server.get("/master-status").await;
    assert_eq!(page.code, 200);
    for expected in [
        "localhost,16020,1795229872099",
        "up 1 min 0 s",
        "2026-11-21 02:57:52 UTC",
        "ns:orders",
        "row000001",
        "a flush failed",
        "OPENING",
        "1.0 MiB",
        "75.0 %",
        "/data",
        "127.0.0.1:16000",
    ] {
        assert!(page.body.contains(expected), "{expected} is missing");
    }
    for header in ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "no-store"] {
        assert!(page.head.contains(header), "{}", page.head);
    }
    // nothing is loaded from anywhere
    pages::check_html("/master-status", &page.body);
    server.stop().await;
}

#[tokio::test]
async fn rates_follow_the_counters() {
    let server = Running::start(1, false);
    server.clock.advance_ms(2000);
    server.fake.requests.store(1000, Ordering::SeqCst);
    assert!(server.get("/master-status").await.body.contains("<b>500</b>"));
    let jmx = server.get("/jmx?get=Hadoop:service=HBase,name=RegionServer,sub=Server::readRequestRatePerSecond").await;
    assert_eq!(jmx.json()["beans"][0]["readRequestRatePerSecond"], 250.0);
    server.fake.requests.store(3000, Ordering::SeqCst);
    assert!(server.get("/master-status").await.body.contains("<b>1,500</b>"));
}

#[tokio::test]
async fn nothing_from_outside_becomes_markup() {
    let server = Running::start(2, true);
    let page = server.get("/master-status?table=%3Cscript%3Ealert(2)%3C/script%3E%22").await;
    assert_eq!(page.code, 200);
    assert!(page.body.contains("&lt;script&gt;alert(2)"));
    for body in [page.body, server.get("/master-status").await.body, server.get("/%3Cscript%3E<x>").await.body] {
        assert!(!body.contains("<script") && !body.contains("<img") && !body.contains("<x>"), "{body}");
    }
    // JSON and metrics stay what they are
    let jmx = server.get("/jmx").await;
    assert!(!jmx.body.contains('<'));
    assert!(jmx.json()["beans"][0]["tag.zookeeperQuorum"].as_str().expect("text").contains("<img"));
    let metrics = server.get("/prometheus").await;
    assert!(metrics.head.contains("text/plain"));
    check_exposition(&metrics.body);
}

#[tokio::test]
async fn many_regions_come_in_pages() {
    let server = Running::start(10_000, false);
    let rows = |page: &Response| page.body.matches("<tr title=").count();
    let first = server.get("/master-status").await;
    assert_eq!(rows(&first), 200);
    assert!(first.body.contains("1 to 200 of 10,000"));
    assert!(first.body.contains("href=\"/master-status?from=200#regions\""));
    assert!(first.body.len() < 300_000, "{} bytes", first.body.len());
    let last = server.get("/master-status?from=9800&table=ns%3Aorders").await;
    assert_eq!(rows(&last), 200);
    assert!(last.body.contains("href=\"/master-status?table=ns:orders&amp;from=9600#regions\""));
    assert_eq!(rows(&server.get("/master-status?table=other").await), 0);
    // an address that leads past the end, or is nonsense, shows the beginning
    for query in ["from=10000", "from=99999999999999999999999", "from=-1", "from=x"] {
        assert_eq!(rows(&server.get(&format!("/master-status?{query}")).await), 200, "{query}");
    }
}

#[tokio::test]
async fn jmx_has_the_shape_that_monitors_expect() {
    let server = Running::start(3, false);
    server.fake.requests.store(8, Ordering::SeqCst);
    let all = server.get("/jmx").await;
    assert!(all.head.contains("content-type: application/json"), "{}", all.head);
    let beans = all.json();
    let beans = beans["beans"].as_array().expect("beans");
    let bean = |name: &str| {
        let name = format!("Hadoop:service=HBase,name={name}");
        beans.iter().find(|bean| bean["name"] == name.as_str()).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let server_bean = bean("RegionServer,sub=Server");
    assert_eq!(server_bean["modelerType"], "RegionServer,sub=Server");
    assert_eq!(server_bean["tag.Context"], "regionserver");
    let expected = [("regionCount", 3), ("memStoreSize", 1 << 20), ("blockCacheHitCount", 3), ("Get_num_ops", 4)];
    for (name, value) in expected {
        assert_eq!(server_bean[name], value, "{name}");
    }
    let milliseconds = |name: &str| server_bean[name].as_f64().unwrap_or_else(|| panic!("{name} is no number"));
    assert!(
        (1.0..1.1).contains(&milliseconds("Get_median")) && (9.0..9.6).contains(&milliseconds("Get_99.9th_percentile"))
    );
    let master = bean("Master,sub=Server");
    assert_eq!(master["tag.isActiveMaster"], "true");
    assert_eq!((&master["averageLoad"], &master["numRegionServers"]), (&3.0.into(), &1.into()));
    assert_eq!(bean("RegionServer,sub=IPC")["numOpenConnections"], 2);
}

#[tokio::test]
async fn forms_of_metrics_are_there_as_the_setting_says() {
    use basalt_web::settings::{METRICS_SERVLETS, MetricsPages};
    for (set, there) in [
        (None, [true; 3]),
        (Some("prometheus"), [false, false, true]),
        (Some(" metrics , jmx"), [true, true, false]),
        (Some(""), [false; 3]),
    ] {
        let mut config = base::Config::default();
        set.into_iter().for_each(|text| config.set(METRICS_SERVLETS.key, text));
        config.check(basalt_web::settings::ALL).expect("legal");
        let server = Running::with_metrics(MetricsPages::from_config(&config));
        for (path, there) in ["/jmx", "/metrics", "/prometheus"].into_iter().zip(there) {
            let answer = server.get(path).await;
            assert_eq!(answer.code, if there { 200 } else { 404 }, "{set:?} {path}");
            assert_eq!(server.get_at(server.second, path).await.code, answer.code, "{set:?} {path}");
        }
        assert_eq!(server.get("/master-status").await.code, 200);
        server.stop().await;
    }
    assert_eq!(MetricsPages::parse("jmx,graphite"), None);
}

#[tokio::test]
async fn jmx_answers_what_is_asked() {
    let server = Running::start(1, false);
    let name = "Hadoop:service=HBase,name=RegionServer,sub=Server";
    let count = |response: &Response| response.json()["beans"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&server.get(&format!("/jmx?qry={name}")).await), 1);
    assert_eq!(count(&server.get("/jmx?qry=Hadoop:*,sub=Server").await), 2);
    assert_eq!(count(&server.get("/jmx?qry=Hadoop%3Aservice%3DHBase%2Cname%3DMaster%2Csub%3D*").await), 1);
    assert_eq!(count(&server.get("/jmx?qry=java.lang:*").await), 4);
    let memory = server.get("/jmx?qry=java.lang:type=Memory").await.json();
    let memory = &memory["beans"][0];
    assert_eq!((&memory["HeapMemoryUsage"]["used"], &memory["HeapMemoryUsage"]["max"]), (&4096.into(), &8192.into()));
    assert_eq!(
        (&memory["NonHeapMemoryUsage"]["used"], &memory["NonHeapMemoryUsage"]["max"]),
        (&1024.into(), &(-1).into())
    );
    assert_eq!(memory["ObjectName"], "java.lang:type=Memory");
    let process = server.get("/jmx?qry=java.lang:type=Runtime").await.json();
    let process = &process["beans"][0];
    assert_eq!(process["Name"], "77@host");
    assert_eq!(process["InputArguments"], serde_json::json!(["standalone", "-D", "a.password=<redacted>", "<b>"]));
    let one = server.get("/jmx?get=java.lang:type=Threading::ThreadCount").await.json();
    assert_eq!(one["beans"][0]["ThreadCount"], 1);
    assert!(!server.get("/prometheus").await.body.contains("java"));
    let (all, without) = (server.get("/jmx").await, server.get("/jmx?excl=*:sub=WAL,*").await);
    assert_eq!(count(&all), count(&without) + 1);
    // these three answers are those of HBase 2.6.4
    let one = server.get(&format!("/jmx?get={name}::regionCount")).await;
    assert_eq!(
        one.body,
        "{\n  \"beans\": [\n    {\n      \"name\": \"Hadoop:service=HBase,name=RegionServer,sub=Server\",\n      \
         \"modelerType\": \"RegionServer,sub=Server\",\n      \"regionCount\": 1\n    }\n  ]\n}"
    );
    let none = server.get(&format!("/jmx?get={name}::nope")).await.json();
    assert_eq!(none["beans"][0]["message"], "No attribute with name nope was found.");
    assert_eq!(server.get("/jmx?get=No:a=b::c").await.body, "{\n  \"beans\": []\n}");
    let some = server.get(&format!("/jmx?get={name}::[a-z]*Count,[a-z]*Size")).await.json();
    assert!(some["beans"][0]["regionCount"] == 1 && some["beans"][0]["memStoreSize"].is_number());
    assert!(some["beans"][0]["percentFilesLocal"].is_null());
    let script = server.get("/jmx?callback=cb_1").await;
    assert!(script.body.starts_with("cb_1({") && script.body.ends_with("});"), "{}", script.body);
    for bad in ["qry=bad", "get=x", "callback=a%3Cb", "callback=", "get=*:*::*(", &format!("qry={}", "x".repeat(2000))]
    {
        assert_eq!(server.get(&format!("/jmx?{bad}")).await.code, 400, "{bad}");
    }
}

/// Reads Prometheus' text format as strictly as Prometheus does; returns the names.
fn check_exposition(text: &str) -> HashSet<String> {
    let mut series = HashSet::new();
    let mut typed = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(kind == "counter" || kind == "gauge", "{line}");
            typed = name.to_owned();
            continue;
        }
        let (name, rest) = line.split_once('{').expect("labels");
        assert_eq!(name, typed, "a sample follows its type");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
        assert!(series.insert(name.to_owned()), "{name} is there twice");
        let (labels, value) = rest.rsplit_once("} ").expect("a value");
        value.parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
        read_labels(labels);
    }
    assert!(text.ends_with('\n'));
    series
}

/// `name="value",...`, with quotes, backslashes and line ends escaped.
fn read_labels(mut labels: &str) {
    while !labels.is_empty() {
        let (name, rest) = labels.split_once("=\"").expect("a label");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{labels}");
        let mut end = None;
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => assert!(matches!(chars.next(), Some((_, '\\' | '"' | 'n'))), "{labels}"),
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let rest = &rest[end.expect("a quote at the end") + 1..];
        labels = if rest.is_empty() { rest } else { rest.strip_prefix(',').expect("a comma") };
    }
}

#[tokio::test]
async fn prometheus_can_read_the_metrics() {
    let server = Running::start(3, false);
    let metrics = server.get("/prometheus").await;
    let names = check_exposition(&metrics.body);
    for name in [
        "server_region_count",
        "server_block_cache_hit_count",
        "server_average_load",
        "server_get_99_9th_percentile",
        "wal_append_count",
        "region_server_num_open_connections",
    ] {
        assert!(names.contains(name), "{name}");
    }
    // as HBase 2.6.4 writes it
    assert!(metrics.body.contains("# TYPE server_region_count gauge\nserver_region_count{zookeeperquorum=\"127.0.0.1:2181\",servername=\"localhost,16020,1795229872099\",clusterid=\"id\",context=\"regionserver\",hostname=\"host\"} 3\n"));
    let some = server.get("/prometheus?qry=cache_hit").await;
    assert!(check_exposition(&some.body).iter().all(|name| name.contains("cache_hit")));
}

#[tokio::test]
async fn settings_in_both_forms() {
    let server = Running::start(1, false);
    let xml = server.get("/conf").await;
    assert!(xml.head.contains("content-type: text/xml"));
    let document = roxmltree::Document::parse(&xml.body).expect("XML");
    let values: Vec<_> =
        document.descendants().filter(|n| n.has_tag_name("value")).map(|n| n.text().unwrap_or_default()).collect();
    assert_eq!(values, ["1", "<&\">", "<redacted>"]);
    let json = server.get("/conf?format=json").await.json();
    assert_eq!(json["properties"][0]["key"], "hbase.a");
    assert_eq!(json["properties"][1]["value"], "<&\">");
    assert_eq!(json["properties"][2]["value"], "<redacted>");
    assert_eq!(json["properties"][2]["resource"], "hbase-site.xml");
    assert_eq!(server.get("/conf?format=yaml").await.code, 400);
}

#[tokio::test]
async fn health_is_told_by_the_code() {
    let server = Running::start(0, false);
    assert_eq!(server.get("/healthz").await.code, 200);
    server.fake.serving.store(false, Ordering::SeqCst);
    assert_eq!(server.get("/healthz").await.code, 503);
    assert!(server.get("/master-status").await.body.contains("not serving"));
}

#[tokio::test]
async fn what_is_not_asked_for_properly_is_refused() {
    let server = Running::start(1, false);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let request = format!("{method} /jmx HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        let answer = Response::parse(&server.raw(request.as_bytes()).await);
        assert!(answer.code == 405 && answer.head.contains("allow: get, head"), "{method}: {}", answer.head);
    }
    let head = Response::parse(&server.raw(b"HEAD /master-status HTTP/1.1\r\nHost: x\r\n\r\n").await);
    assert!(head.code == 200 && head.body.is_empty() && head.head.contains("content-length: "), "{}", head.head);
    assert_eq!(server.get("/nothing").await.code, 404);
    assert_eq!(server.get("/master-status/../etc/passwd").await.code, 404);
    // an old client is one too
    assert_eq!(Response::parse(&server.raw(b"GET /healthz HTTP/1.0\r\n\r\n").await).code, 200);
    // one request per connection
    let twice = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(server.raw(twice).await.matches("HTTP/1.1 ").count(), 1);
    let bad: [Vec<u8>; 6] = [
        b"\0\x01\x02\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)).into_bytes(),
        format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(100_000)).into_bytes(),
        format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000)).into_bytes(),
    ];
    for request in bad {
        let answer = tokio::time::timeout(Duration::from_secs(5), server.raw(&request)).await.expect("ends");
        let refused = ["HTTP/1.1 400", "HTTP/1.1 414", "HTTP/1.1 431"].iter().any(|code| answer.starts_with(code));
        assert!(refused || answer.is_empty(), "{answer}");
    }
    // and it still serves
    assert_eq!(server.get("/healthz").await.code, 200);
}

#[tokio::test]
async fn slow_peers_are_let_go() {
    let server = Running::with_timeouts(10_000, false, Duration::from_millis(100), Duration::from_millis(400));
    let mut silent = TcpStream::connect(server.address).await.expect("connect");
    let mut dripping = TcpStream::connect(server.address).await.expect("connect");
    dripping.write_all(b"GET /healthz HTTP/1.1\r\nX-A: ").await.expect("write");
    let mut body = TcpStream::connect(server.address).await.expect("connect");
    body.write_all(b"POST /jmx HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n").await.expect("write");
    for stream in [&mut silent, &mut dripping, &mut body] {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "still open after {} bytes", rest.len());
    }
    // meanwhile and afterwards others are served
    assert_eq!(server.get("/healthz").await.code, 200);
}

#[tokio::test]
async fn stopping_does_not_wait_for_a_silent_peer() {
    let server = Running::start(1, false);
    let address = server.address;
    let _silent = TcpStream::connect(address).await.expect("connect");
    assert_eq!(server.get("/healthz").await.code, 200);
    tokio::time::timeout(Duration::from_secs(5), server.stop()).await.expect("stops");
    assert!(TcpStream::connect(address).await.is_err(), "the port is free again");
}
