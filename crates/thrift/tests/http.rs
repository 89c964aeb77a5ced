//! Messages as the bodies of POST.

use crate::socket::Gateway;
use basalt_thrift::Version;
use basalt_thrift::v2::types::TNamespaceDescriptor;
use basalt_thrift::wire::Wire;
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
        ("POST / HTTP/1.1\r\ndoas: somebody\r\n", "x", 500, "Support for proxyuser is not configured"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_on_behalf_of_another_is_made_as_that_user_where_the_gateways_may_do_so() {
    let mut config = base::Config::default();
    let user = client::Options::rpc("localhost:1").user;
    config.set("hbase.thrift.support.proxyuser", "true");
    config.set(format!("hadoop.proxyuser.{user}.users"), "ann");
    config.set(format!("hadoop.proxyuser.{user}.hosts"), "127.0.0.1");
    let gateway = Gateway::configured(Version::Two, &config, |options| options.http = true).await;
    let mut client = gateway.connect().await;
    let mut make = async |name: &str, head: &str| {
        let namespace = TNamespaceDescriptor { name: name.to_owned(), configuration: None };
        let message = client.message("createNamespace", |w, last| namespace.write_field(w, 1, last));
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {}\r\n\r\n", message.len());
        client.socket.write_all(&[head.as_bytes(), &message].concat()).await.expect("it is open");
        let (status, body) = client.response().await;
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    let eve = format!("User: {user} is not allowed to impersonate eve");
    for (name, head, status, said) in [
        ("one", "", 200, ""),
        ("two", "doAs: ann\r\n", 200, ""),
        ("three", "doAs: eve\r\n", 500, eve.as_str()),
        ("four", "doAs: \r\n", 500, "doAs names nobody"),
    ] {
        let (seen, body) = make(name, head).await;
        assert!(seen == status && body.contains(said), "{name}: {seen} {body}");
    }
    let place = gateway.stop_gateway().await;
    let procedures = place.connection.admin().procedures().await.expect("answered");
    let made = procedures.iter().filter(|one| one.class_name.ends_with("CreateNamespaceProcedure"));
    let mut owners: Vec<&str> = made.map(pb_owner).collect();
    owners.sort_unstable();
    let mut expected = [user.as_str(), "ann"];
    expected.sort_unstable();
    assert_eq!(owners, expected);
    place.stop().await;
}

fn pb_owner(procedure: &proto::pb::Procedure) -> &str {
    procedure.owner()
}
