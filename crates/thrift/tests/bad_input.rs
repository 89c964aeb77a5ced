//! Bytes that no client should send.

use crate::socket::{Gateway, Reply};
use basalt_thrift::Version;
use basalt_thrift::protocol::Protocol;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_of_two_gigabytes_is_refused_unread() {
    let gateway = Gateway::start(Version::Two, |options| options.framed = true).await;
    for length in [i32::MAX, -1, (2 << 20) + 1] {
        let mut client = gateway.connect().await;
        client.socket.write_all(&length.to_be_bytes()).await.expect("it is open");
        assert!(client.is_closed().await, "{length}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_string_of_two_gigabytes_takes_no_memory() {
    let gateway = Gateway::start(Version::Two, |options| options.max_message_bytes = 1 << 20).await;
    let mut client = gateway.connect().await;
    let mut message = client.message("get", |_, _| ());
    message.pop();
    message.extend_from_slice(&[11, 0, 1, 0x7f, 0xff, 0xff, 0xff]);
    client.socket.write_all(&message).await.expect("it is open");
    assert!(client.is_closed().await);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_more_than_allowed_is_closed_and_a_place_that_is_free_is_given_again() {
    let gateway = Gateway::start(Version::One, |options| options.max_connections = 1).await;
    let mut first = gateway.connect().await;
    let names: Vec<bytes::Bytes> = first.call("getTableNames", |_, _| ()).await.value();
    assert!(names.is_empty());
    assert!(gateway.connect().await.is_closed().await, "there is one already");
    // A request that ends its connection: its place is free a moment later.
    first.socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it is open");
    assert!(first.is_closed().await);
    loop {
        let mut next = gateway.connect().await;
        let message = next.message("getTableNames", |_, _| ());
        let is_sent = next.socket.write_all(&message).await.is_ok();
        // The first byte of a reply; none where it was closed.
        if is_sent && next.socket.peek(&mut [0]).await.is_ok_and(|bytes| bytes == 1) {
            break;
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_nesting_ends_the_connection_and_no_other() {
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let gateway = Gateway::start(Version::One, |options| options.protocol = protocol).await;
        let mut other = gateway.connect().await;
        let mut client = gateway.connect().await;
        let mut message = client.message("getRow", |_, _| ());
        message.pop();
        // A struct in the first field of a struct, and so on.
        let field: &[u8] = if protocol == Protocol::Binary { &[12, 0, 1] } else { &[0x1c] };
        message.extend(field.iter().copied().cycle().take(field.len() * 10_000));
        // It may be closed before all is sent.
        let _ = client.socket.write_all(&message).await;
        assert!(client.is_closed().await);
        let names: Vec<bytes::Bytes> = other.call("getTableNames", |_, _| ()).await.value();
        assert!(names.is_empty());
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_methods_and_missing_arguments_are_answered() {
    let gateway = Gateway::start(Version::Two, |_| ()).await;
    let mut client = gateway.connect().await;
    let unknown: Reply<()> = client.call("dropEverything", |_, _| ()).await;
    assert_eq!(unknown, Reply::Application(1, "Invalid method name: 'dropEverything'".to_owned()));
    let missing: Reply<()> = client.call("get", |_, _| ()).await;
    assert_eq!(missing, Reply::Application(7, "Required field 'table' was not present!".to_owned()));
    let id: String = client.call("getClusterId", |_, _| ()).await.value();
    assert!(!id.is_empty(), "the connection goes on");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_request_and_a_web_browser_are_left() {
    let gateway = Gateway::start(Version::Two, |options| options.socket_timeout = Duration::from_millis(200)).await;
    let mut half = gateway.connect().await;
    let message = half.message("getClusterId", |_, _| ());
    half.socket.write_all(&message[..10]).await.expect("it is open");
    assert!(half.is_closed().await, "silence ends it");
    let mut browser = gateway.connect().await;
    browser.socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it is open");
    assert!(browser.is_closed().await);
    gateway.stop().await;
}

#[test]
fn made_up_bytes_are_values_or_errors() {
    let rng = base::Rng::seeded(7);
    for _ in 0..20_000 {
        let length = rng.next_u64() as usize % 64;
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8 & 0x8f).collect();
        basalt_thrift::decode_anything(&bytes);
        bytes.splice(0..0, [0x82, 0x21, 1, 1, b'm']);
        basalt_thrift::decode_anything(&bytes);
    }
}
