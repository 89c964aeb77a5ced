//! Every page for people: what it shows, that nothing in it is somebody else's markup, and that it asks for nothing elsewhere.

use crate::fixture::{Response, Running};
use basalt_web::status::GatewayKind;
use std::time::{Duration, Instant};

/// Every page, and something that only it shows.
const PAGES: [(&str, &str); 30] = [
    ("/master-status", "compaction"),
    ("/rs-status", "10.0.0.1"),
    ("/table.jsp?name=ns:orders", "{NAME"),
    ("/table.jsp?name=nobody", "no such table"),
    ("/tablesDetailed.jsp", "{NAME"),
    ("/region.jsp?name=abc", "2.0 KiB"),
    ("/region.jsp?name=nobody", "No region of that name"),
    ("/keys", "customer-7"),
    ("/keys?name=hbase:meta&measure=read-bytes&span=35d", "90.0 %"),
    ("/keys?name=nobody", "Nothing is known of the keys of that table"),
    ("/procedures.jsp", "RUNNABLE"),
    (
        "/snapshot.jsp?name=monday",
        "4 HFiles (1 in archive), total size 4.0 MiB (75.00 % 3.0 MiB shared with the source table, 25.00 % 1.0 MiB archived",
    ),
    ("/snapshot.jsp?name=tuesday", "data.manifest is damaged"),
    ("/snapshot.jsp?name=nobody", "There is no snapshot of that name"),
    ("/userSnapshots.jsp", "tuesday"),
    ("/snapshotsStats.jsp", "<td class=n>75.00</td>"),
    ("/quotas.jsp", "Quotas"),
    ("/operationDetails.jsp", "12345"),
    ("/rsOperationDetails.jsp", "startRow"),
    ("/rits.jsp", "OPENING"),
    ("/hbck.jsp", "hole"),
    ("/rsgroup.jsp?name=default", "RSGroups are not enabled"),
    ("/zk.jsp", "rooted at /hbase"),
    ("/processMaster.jsp", "4711"),
    ("/processRS.jsp", "flusher-0"),
    ("/configuration", "hbase.a"),
    ("/configuration?q=hbase.z", "hbase.z"),
    ("/logs/", "the disk is full"),
    ("/prof", "4,321"),
    ("/logLevel", "0123456789abcdef"),
];

/// A picture is in the page itself.
const PICTURE: &str = "src=\"data:image/png;base64,";

/// A tag's attributes: `name=value` in quotes or without, or a name alone.
fn attributes(tag: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = tag.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            rest = match after.strip_prefix('"') {
                Some(quoted) => {
                    let (inside, after) = quoted.split_once('"').expect("a quote is closed");
                    value = inside.to_owned();
                    after
                }
                None => {
                    let end = after.find(char::is_whitespace).unwrap_or(after.len());
                    value = after[..end].to_owned();
                    &after[end..]
                }
            };
        }
        if !name.is_empty() && name != "/" {
            found.push((name, value));
        }
        rest = rest.trim_start();
    }
    found
}

/// Reads a page as a browser with a strict policy would, and fails where that would complain.
pub fn check_html(path: &str, body: &str) {
    assert!(body.starts_with("<!doctype html>"), "{path}");
    let (mut columns, mut cells, mut open) = (0, 0, Vec::new());
    for piece in body.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("{path}: a tag that is not closed: {piece}"));
        let name = tag.split(|c: char| c.is_whitespace()).next().unwrap_or("");
        match name {
            "img" => assert!(tag.contains(PICTURE), "{path}: <{tag}>"),
            "script" | "style" | "iframe" | "object" | "base" => panic!("{path}: <{tag}>"),
            "table" => {
                columns = 0;
                open.push(name);
            }
            "th" => columns += 1,
            "tr" => cells = 0,
            "td" => cells += 1,
            // A list without a head may have rows of any kind.
            "/tr" if cells > 0 && columns > 0 => {
                assert_eq!(cells, columns, "{path}: a row has other cells than the head")
            }
            "main" | "form" | "dl" | "nav" | "pre" | "tbody" => open.push(name),
            _ => {}
        }
        if let Some(name) = name.strip_prefix('/').filter(|name| open.contains(name)) {
            assert_eq!(open.pop(), Some(name), "{path}: closed out of order");
        }
        for (name, value) in attributes(tag.strip_prefix(name).unwrap_or("")) {
            let is_address = matches!(name.as_str(), "href" | "action" | "src");
            let is_own = value.starts_with('/') && !value.starts_with("//")
                || value.starts_with('#')
                || value == "data:,"
                || value.starts_with("data:image/png;base64,");
            assert!(!is_address || is_own, "{path}: {name} = {value}");
            assert!(name != "style" && !name.starts_with("on"), "{path}: {name} in <{tag}>");
        }
    }
    assert!(open.is_empty(), "{path}: not closed: {open:?}");
}

#[tokio::test]
async fn every_page_shows_its_own_and_leads_only_to_pages_that_are_there() {
    let server = Running::start(3, false);
    for (path, shown) in PAGES {
        let page = server.get(path).await;
        assert_eq!(page.code, 200, "{path}");
        assert!(page.body.contains(shown), "{path} does not show {shown}: {}", page.body);
        check_html(path, &page.body);
        let policy = "content-security-policy: default-src 'none'; style-src 'self'";
        assert!(page.head.contains(policy), "{path}: {}", page.head);
        for link in page.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = link.replace("&amp;", "&");
            if link.starts_with('/') {
                let leads_to = server.get(link.split('#').next().unwrap_or(&link)).await;
                assert_eq!(leads_to.code, 200, "{path} leads to {link}");
            }
        }
    }
    for (path, text) in [
        ("/stacks", "flusher-0"),
        ("/dump", "RUNNABLE"),
        ("/logs/basalt.log", "disk is full"),
        ("/metrics", "server_region_count"),
    ] {
        let page = server.get(path).await;
        assert!(
            page.code == 200 && page.head.contains("text/plain") && page.body.contains(text),
            "{path}: {}",
            page.body
        );
    }
    assert!(
        !server.get("/dump").await.body.contains("hunter2")
            && !server.get("/configuration").await.body.contains("hunter2")
    );
    let style = server.get("/static/style.css").await;
    assert!(
        style.head.contains("text/css")
            && style.body.contains("prefers-color-scheme:dark")
            && style.body.contains("max-width:640px")
    );
    server.stop().await;
}

#[tokio::test]
async fn a_gateway_has_the_pages_of_its_process_and_one_of_its_own() {
    for (kind, status, process) in [
        (GatewayKind::Rest, "/rest.jsp", "/processRest.jsp"),
        (GatewayKind::Thrift, "/thrift.jsp", "/processThrift.jsp"),
    ] {
        for evil in [false, true] {
            let gateway = Running::of_gateway(kind, evil);
            let pages = [
                (status, "zk1:2181"),
                (process, "flusher-0"),
                ("/configuration", "hbase.a"),
                ("/logs/", "the disk is full"),
                ("/logLevel", "0123456789abcdef"),
                ("/prof", "4,321"),
            ];
            for (path, shown) in pages {
                let page = gateway.get(path).await;
                assert!(page.code == 200 && page.body.contains(shown), "{path}: {}", page.body);
                check_html(path, &page.body);
                for link in page.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                    let leads_to = if link.starts_with('/') { gateway.get(link).await.code } else { 200 };
                    assert_eq!(leads_to, 200, "{path} leads to {link}");
                }
            }
            assert!(gateway.get("/").await.head.contains(&format!("location: {status}")));
            let dump = gateway.get("/dump").await;
            assert!(dump.code == 200 && dump.body.contains("Cluster: zk1:2181") && dump.body.contains("flusher-0"));
            assert_eq!((gateway.get("/jmx").await.code, gateway.get("/prometheus").await.code), (200, 200));
            // What only servers have.
            for path in ["/master-status", "/rs-status", "/table.jsp", "/procedures.jsp", "/rits.jsp", "/zk.jsp"] {
                let missing = gateway.get(path).await;
                assert!(missing.code == 404 && missing.body.contains(status), "{path}: {}", missing.body);
            }
        }
    }
}

#[tokio::test]
async fn a_master_alone_shows_the_slow_calls_of_its_servers_and_no_keys() {
    let server = Running::of_master();
    let slow = server.get("/operationDetails.jsp").await;
    assert!(slow.body.contains("<th>Server") && slow.body.contains("rs1,16020,1"), "{}", slow.body);
    assert!(slow.body.contains("rs2,16020,1 has not said which calls were slow"), "{}", slow.body);
    assert!(!slow.body.contains("href=\"/keys\"") && slow.body.contains("href=\"/procedures.jsp\""));
    assert_eq!(server.get("/keys").await.code, 404);
    // A server that has all of it in one process is not told apart.
    let server = Running::start(1, false);
    let slow = server.get("/operationDetails.jsp").await;
    assert!(!slow.body.contains("<th>Server") && slow.body.contains("href=\"/keys\""), "{}", slow.body);
}

#[tokio::test]
async fn a_region_server_alone_has_what_is_its_own() {
    let server = Running::of_region_server(2);
    for (path, shown) in [
        ("/rs-status", "10.0.0.1"),
        ("/keys", "customer-7"),
        ("/table.jsp?name=ns:orders", "{NAME"),
        ("/region.jsp?name=abc", "2.0 KiB"),
        ("/rsOperationDetails.jsp", "startRow"),
        ("/processRS.jsp", "flusher-0"),
        ("/prof", "4,321"),
        ("/logs/", "the disk is full"),
    ] {
        let page = server.get(path).await;
        assert!(page.code == 200 && page.body.contains(shown), "{path}: {}", page.body);
        check_html(path, &page.body);
        for link in page.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = link.replace("&amp;", "&");
            let link = link.split('#').next().unwrap_or(&link);
            let leads_to = if link.starts_with('/') { server.get(link).await.code } else { 200 };
            assert_eq!(leads_to, 200, "{path} leads to {link}");
        }
    }
    assert!(server.get("/").await.head.contains("location: /rs-status"));
    for path in
        ["/master-status", "/procedures.jsp", "/userSnapshots.jsp", "/quotas.jsp", "/rits.jsp", "/hbck.jsp", "/zk.jsp"]
    {
        assert_eq!(server.get(path).await.code, 404, "{path}");
    }
}

#[tokio::test]
async fn a_profile_is_begun_by_a_form_with_the_token_and_shown_as_a_picture() {
    let server = Running::start(1, false);
    let begun = server.post("/prof", "event=cpu-clock&duration=10&token=0123456789abcdef").await;
    assert!(begun.code == 200 && !begun.body.contains("class=bad>ProfileRequest"), "{}", begun.body);
    let refused = server.post("/prof", "event=cpu-clock&duration=11&token=0123456789abcdef").await;
    assert!(refused.body.contains("class=bad>ProfileRequest"), "{}", refused.body);
    assert_eq!(server.post("/prof", "event=cpu-clock&duration=10&token=0").await.code, 403);
    let picture = server.get("/prof-output-hbase?id=7").await;
    assert!(picture.code == 200 && picture.head.contains("image/svg+xml") && picture.body.starts_with("<svg"));
    assert_eq!(
        (server.get("/prof-output-hbase?id=8").await.code, server.get("/prof-output-hbase").await.code),
        (404, 404)
    );
}

#[tokio::test]
async fn no_page_takes_text_for_markup() {
    let server = Running::start(2, true);
    for (path, _) in PAGES {
        let page = server.get(path).await;
        assert_eq!(page.code, 200, "{path}");
        check_html(path, &page.body);
    }
    for path in [
        "/table.jsp?name=%3Cscript%3E",
        "/region.jsp?name=%3Cimg%20src=x%3E",
        "/configuration?q=%22%3E%3Cscript%3E",
        "/master-status?q=%22%3E%3Cscript%3E&sort=%3Cb%3E",
    ] {
        check_html(path, &server.get(path).await.body);
    }
}

#[tokio::test]
async fn regions_are_searched_sorted_and_paged_by_the_server() {
    let server = Running::start(10_000, false);
    let rows = |page: &Response| page.body.matches("<tr title=").count();
    let found = server.get("/master-status?q=row0042").await;
    assert_eq!(rows(&found), 100, "a name has the first key in it, not the last");
    #[expect(clippy::disallowed_methods, reason = "times a real server")]
    let begun = Instant::now();
    let sorted = server.get("/table.jsp?name=ns:orders&sort=size&from=200").await;
    let took = begun.elapsed();
    assert_eq!(rows(&sorted), 200);
    assert!(sorted.body.contains("Size &darr;") && sorted.body.contains("201 to 400 of 10,000"));
    assert!(sorted.body.contains("/table.jsp?name=ns:orders&amp;sort=size&amp;from=400#regions"));
    assert!(sorted.body.len() < 300_000, "{} bytes", sorted.body.len());
    // Unoptimized, and beside other tests; optimized it takes a tenth of it.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_log_level_is_set_with_the_token_of_the_page_alone() {
    let server = Running::start(1, false);
    let post = |form: &str| {
        let (server, form) = (&server, form.to_owned());
        async move { server.post("/logLevel", &form).await }
    };
    for form in ["log=basalt_wal&level=DEBUG", "log=basalt_wal&level=DEBUG&token=guess", ""] {
        assert_eq!(post(form).await.code, 403, "{form}");
    }
    assert_eq!(
        server.get("/logLevel?log=basalt_wal&level=DEBUG&token=0123456789abcdef").await.code,
        403,
        "a link sets nothing"
    );
    assert_eq!(*server.fake.level.lock().expect("nobody panicked"), "warn");
    let set = post("log=basalt_wal&level=DEBUG&token=0123456789abcdef").await;
    assert!(set.code == 200 && set.body.contains("basalt_wal=DEBUG"), "{}", set.body);
    let refused = post("log=&level=DEBUG&token=0123456789abcdef").await;
    assert!(refused.code == 200 && refused.body.contains("no part"), "{}", refused.body);
    assert_eq!(post(&format!("token={}", "x".repeat(10_000))).await.code, 403);
}

#[tokio::test]
async fn regions_in_transition_come_in_three_forms() {
    let server = Running::start(1, false);
    assert_eq!(server.get("/rits.jsp?format=json").await.json()[0]["state"], "OPENING");
    assert_eq!(server.get("/rits.jsp?format=txt").await.body, "r OPENING\n");
    assert_eq!(server.get("/rits.jsp?format=json&state=CLOSING").await.body, "[]");
}
