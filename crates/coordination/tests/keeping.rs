//! What clients are told of nodes that are kept over restarts, and when.

use crate::common::{Client, soon, start_on};
use basalt_coordination::jute::{JutePut, JuteReader};
use basalt_coordination::{EndpointOptions, Kept, TreeHandle};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use tokio::io::AsyncReadExt;

const GET_DATA: i32 = 4;
const GET_CHILDREN: i32 = 8;
const SYSTEM_ERROR: i32 = -1;

fn options() -> EndpointOptions {
    EndpointOptions { tick_ms: 20, max_connections_per_address: 0 }
}

/// Makes durable what is to be; what a restart finds.
async fn keep(tree: &TreeHandle) -> Kept {
    let to_keep = soon(tree.next_to_keep()).await;
    tree.is_kept(&to_keep);
    Kept::decode(&to_keep.kept.encode()).expect("what was written")
}

async fn ask_to_create(client: &mut Client, path: &str) {
    client
        .send(1, |out| {
            out.put_string(path);
            out.put_buffer(b"data");
            out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 31]);
            out.put_string("world");
            out.put_string("anyone");
            out.extend_from_slice(&[0; 4]);
        })
        .await;
}

/// Nothing of this connection's answer has arrived while another's whole exchange went over the same endpoint.
async fn is_silent(client: &mut Client) -> bool {
    let mut byte = [0; 1];
    let mut reading = pin!(client.stream.peek(&mut byte));
    poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn who_made_a_node_and_who_sees_it_are_answered_when_it_is_durable() {
    let server = start_on(options(), Some(&Kept::default())).await;
    keep(&server.tree).await;
    server.tree.publish("/hbase/master", "m".into(), false).expect("a path");
    let (mut maker, mut reader, mut other) =
        (Client::connect(&server).await, Client::connect(&server).await, Client::connect(&server).await);
    reader.look(GET_CHILDREN, "/", true).await;
    ask_to_create(&mut maker, "/app").await;
    let to_keep = soon(server.tree.next_to_keep()).await;
    // The change is there, and a watch of it has fired; the node of the server is nobody's business.
    reader
        .send(GET_DATA, |out| {
            out.put_string("/app");
            out.put_boolean(false);
        })
        .await;
    for _ in 0..5 {
        assert_eq!(other.look(GET_DATA, "/hbase/master", false).await.err, 0);
    }
    assert!(is_silent(&mut maker).await, "it is not durable yet");
    assert!(is_silent(&mut reader).await, "it is not durable yet");
    server.tree.is_kept(&to_keep);
    let reply = maker.reply().await.expect("a reply");
    assert_eq!((reply.err, JuteReader::new(reply.body).string().as_deref()), (0, Ok("/app")));
    assert_eq!(reader.event().await, (4, "/".to_owned()));
    assert_eq!(reader.reply().await.expect("a reply").err, 0);
}

#[tokio::test]
async fn a_client_of_the_next_life_finds_the_nodes_and_the_next_number() {
    let server = start_on(options(), Some(&Kept::default())).await;
    let mut client = Client::connect(&server).await;
    let tree = server.tree.clone();
    let keeper = tokio::spawn(async move {
        loop {
            let to_keep = tree.next_to_keep().await;
            tree.is_kept(&to_keep);
        }
    });
    assert_eq!(client.create("/app", 0).await.err, 0);
    for flags in [2, 3, 1] {
        assert_eq!(client.create("/app/n-", flags).await.err, 0);
    }
    let last = client.look(GET_DATA, "/app", false).await.zxid;
    keeper.abort();
    // Something that is kept with all the rest.
    ask_to_create(&mut client, "/app/last").await;
    let kept = keep(&server.tree).await;
    let server = start_on(options(), Some(&kept)).await;
    keep(&server.tree).await;
    let mut client = Client::connect(&server).await;
    let children = client.look(GET_CHILDREN, "/app", false).await;
    assert!(children.zxid >= last, "{} after {last}", children.zxid);
    let names = JuteReader::new(children.body).vector(JuteReader::string);
    assert_eq!(names, Ok(vec!["last".to_owned(), "n-0000000000".to_owned()]), "the ephemeral ones are gone");
    ask_to_create(&mut client, "/app/m").await;
    keep(&server.tree).await;
    assert_eq!(client.reply().await.expect("a reply").err, 0);
    assert_eq!(server.tree.create_for_user("/app/n-", "".into(), sequential()), Ok("/app/n-0000000005".to_owned()));
}

fn sequential() -> basalt_coordination::CreateMode {
    basalt_coordination::CreateMode { ephemeral_owner: 0, sequential: true }
}

#[tokio::test]
async fn f_full_disk_refuses_users_changes_and_shows_the_servers_nodes() {
    let server = start_on(options(), Some(&Kept::default())).await;
    keep(&server.tree).await;
    server.tree.publish("/hbase/master", "m".into(), false).expect("a path");
    let (mut maker, mut other) = (Client::connect(&server).await, Client::connect(&server).await);
    ask_to_create(&mut maker, "/app").await;
    soon(server.tree.next_to_keep()).await;
    server.tree.is_not_kept();
    assert_eq!(other.look(GET_DATA, "/hbase/master", false).await.err, 0);
    ask_to_create(&mut other, "/hbase/users").await;
    assert_eq!(other.reply().await.expect("told at once").err, SYSTEM_ERROR);
    // Ephemeral ones of the server's tree go on, and what was in doubt is done when there is room again.
    assert_eq!(other.create("/hbase/lock", 1).await.err, 0);
    keep(&server.tree).await;
    assert_eq!(maker.reply().await.expect("a reply").err, 0);
    let mut rest = [0; 1];
    drop(server);
    assert_eq!(soon(maker.stream.read(&mut rest)).await.unwrap_or(0), 0);
}
