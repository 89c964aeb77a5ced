//! Messages as the bodies of POST.

use crate::socket::Gateway;
use basalt_thrift::Version;
use bytes::Bytes;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_versions_are_served_over_one_connection_after_another() {
    // Compact and framed are for sockets: over HTTP it is the binary protocol.
    let gateway = Gateway::start(Version::One, |options| (options.http, options.framed) = (true, true)).await;
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        assert!(client.call::<Vec<Bytes>>("getTableNames", |_, _| ()).await.value().is_empty());
    }
    gateway.stop().await;
    let gateway = Gateway::start(Version::Two, |options| options.http = true).await;
    let mut client = gateway.connect().await;
    let names = client.call::<Vec<String>>("listNamespaces", |_, _| ()).await.value();
    assert_eq!(names, ["default", "hbase"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_refused_and_the_connection_goes_on() {
    let gateway = Gateway::start(Version::One, |options| {
        options.http = true;
        options.max_message_bytes = 1 << 20;
    })
    .await;
    let mut client = gateway.connect().await;
    let requests: [(&str, &str, u16, &str); 4] = [
        ("GET / HTTP/1.1\r\n", "", 405, "POST"),
        ("POST / HTTP/1.1\r\n", "rubbish", 400, ""),
        ("POST / HTTP/1.1\r\ndoas: somebody\r\n", "x", 500, "proxyuser"),
        ("POST / HTTP/1.1\r\n", "", 400, ""),
    ];
    for (head, body, status, why) in requests {
        let request = format!("{head}Host: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        client.socket.write_all(request.as_bytes()).await.expect("it is open");
        let (seen, text) = client.response().await;
        let text = String::from_utf8_lossy(&text);
        assert!(seen == status && text.contains(why), "{head}: {seen} {text}");
    }
    assert!(client.call::<Vec<Bytes>>("getTableNames", |_, _| ()).await.value().is_empty());
    let mut other = gateway.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2147483647\r\n\r\n";
    other.socket.write_all(head).await.expect("it is open");
    assert_eq!(other.response().await.0, 413, "before a byte of it came");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_in_the_middle_of_its_message_is_left() {
    let gateway = Gateway::start(Version::One, |options| {
        options.http = true;
        options.socket_timeout = Duration::from_millis(200);
    })
    .await;
    let mut client = gateway.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf";
    client.socket.write_all(head).await.expect("it is open");
    // Its connection ends; what it is told before matters little.
    client.is_closed().await;
    let mut other = gateway.connect().await;
    assert!(other.call::<Vec<Bytes>>("getTableNames", |_, _| ()).await.value().is_empty());
    gateway.stop().await;
}
