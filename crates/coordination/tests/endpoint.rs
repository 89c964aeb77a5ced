//! The endpoint under clients good and bad, over real sockets.

use crate::common::{Client, read_frame, soon, start};
use basalt_coordination::EndpointOptions;
use basalt_coordination::jute::{JutePut, JuteReader};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const EXISTS: i32 = 3;
const GET_DATA: i32 = 4;
const GET_CHILDREN: i32 = 8;
const NO_NODE: i32 = -101;

fn quick() -> EndpointOptions {
    EndpointOptions { tick_ms: 20, max_connections_per_address: 0 }
}

#[tokio::test]
async fn a_session_creates_reads_changes_and_deletes() {
    let server = start(EndpointOptions::default()).await;
    let mut client = Client::connect(&server).await;
    assert_eq!(client.timeout_ms, 30_000);
    assert_eq!(client.create("/a", 0).await.err, 0);
    assert_eq!(client.create("/a", 0).await.err, -110);
    assert_eq!(client.create("/b/c", 0).await.err, NO_NODE);
    assert_eq!(client.create("bad", 0).await.err, -8);
    let reply = client.create("/a/s-", 2).await;
    assert_eq!(JuteReader::new(reply.body).string().as_deref(), Ok("/a/s-0000000000"));
    let reply = client.look(GET_DATA, "/a", false).await;
    assert_eq!((reply.err, reply.body.len()), (0, 4 + 4 + 68));
    let set = |version: i32| {
        move |out: &mut bytes::BytesMut| {
            out.put_string("/a");
            out.put_buffer(b"new");
            out.put_i32(version);
        }
    };
    assert_eq!(client.call(5, set(3)).await.err, -103);
    assert_eq!(client.call(5, set(0)).await.err, 0);
    assert_eq!(server.tree.get("/a"), Ok(Bytes::from_static(b"new")));
    let delete = |out: &mut bytes::BytesMut| {
        out.put_string("/a");
        out.put_i32(-1);
    };
    assert_eq!(client.call(2, delete).await.err, -111);
    server.tree.delete("/a/s-0000000000").expect("no children");
    assert_eq!(client.call(2, delete).await.err, 0);
    assert_eq!(client.look(EXISTS, "/a", false).await.err, NO_NODE);
    let acl = client.call(6, |out| out.put_string("/zookeeper")).await;
    assert_eq!((acl.err, acl.body.len()), (0, 4 + 4 + 4 + 5 + 4 + 6 + 68));
    assert_eq!(client.call(9, |out| out.put_string("/zookeeper")).await.err, 0);
    // Reads and changes in order: the transaction id of replies never falls.
    let mut last = 0;
    for round in 0..5 {
        let zxid = client.create(&format!("/n{round}"), 0).await.zxid;
        assert!(zxid > last);
        last = zxid;
    }
}

#[tokio::test]
async fn what_is_not_done_here_is_said_so() {
    let server = start(EndpointOptions::default()).await;
    let mut client = Client::connect(&server).await;
    for op in [14, 17, 18, 19, 21, 22, 102, 103, 104, 106, 107, 4711] {
        assert_eq!(client.call(op, |_| ()).await.err, -6, "operation {op}");
    }
    // An ACL that would not be kept is refused.
    let closed = |out: &mut bytes::BytesMut| {
        out.put_string("/secret");
        out.put_buffer(b"");
        out.put_u32(1);
        out.put_i32(31);
        out.put_string("digest");
        out.put_string("me:x");
        out.put_i32(0);
    };
    assert_eq!(client.call(1, closed).await.err, -114);
    assert_eq!(client.look(EXISTS, "/secret", false).await.err, NO_NODE);
    client.send_as(-2, 11, |_| ()).await;
    let pong = client.reply().await.expect("a pong");
    assert_eq!((pong.xid, pong.err, pong.body.len()), (-2, 0, 0));
}

#[tokio::test]
async fn watches_fire_once_and_before_the_reply_that_shows_the_change() {
    let server = start(EndpointOptions::default()).await;
    let (mut watcher, mut writer) = (Client::connect(&server).await, Client::connect(&server).await);
    assert_eq!(watcher.look(EXISTS, "/w", true).await.err, NO_NODE);
    assert_eq!(watcher.look(GET_CHILDREN, "/", true).await.err, 0);
    assert_eq!(writer.create("/w", 0).await.err, 0);
    assert_eq!(watcher.event().await, (1, "/w".into()));
    assert_eq!(watcher.event().await, (4, "/".into()));
    assert_eq!(watcher.look(GET_DATA, "/w", true).await.err, 0);
    assert_eq!(watcher.look(GET_CHILDREN, "/w", true).await.err, 0);
    server.tree.publish("/w", Bytes::from_static(b"1"), false).expect("set");
    server.tree.publish("/w", Bytes::from_static(b"2"), false).expect("set again: the watch is spent");
    let xid = watcher.send(EXISTS, |out| {
        out.put_string("/w");
        out.put_boolean(true);
    });
    let xid = xid.await;
    assert_eq!(watcher.event().await, (3, "/w".into()));
    assert_eq!(watcher.reply().await.expect("the reply").xid, xid);
    // A node watched in two ways tells of its end once.
    server.tree.delete("/w").expect("deleted");
    assert_eq!(watcher.event().await, (2, "/w".into()));
    assert_eq!(watcher.look(EXISTS, "/w", false).await.err, NO_NODE);
}

#[tokio::test]
async fn watches_are_set_again_after_a_reconnect() {
    let server = start(EndpointOptions::default()).await;
    server.tree.publish("/p/same", Bytes::new(), false).expect("made");
    server.tree.publish("/p/changed", Bytes::new(), false).expect("made");
    let mut client = Client::connect(&server).await;
    let seen = client.look(EXISTS, "/p", false).await.zxid;
    server.tree.publish("/p/changed", Bytes::from_static(b"x"), false).expect("set");
    server.tree.publish("/p/new", Bytes::new(), false).expect("made");
    let list = |out: &mut bytes::BytesMut, paths: &[&str]| {
        out.put_u32(paths.len() as u32);
        paths.iter().for_each(|path| out.put_string(path));
    };
    client
        .send_as(-8, 101, |out| {
            out.put_i64(seen);
            list(out, &["/p/same", "/p/changed", "/p/gone"]);
            list(out, &["/p/new", "/p/later"]);
            list(out, &["/p", "/p/same"]);
        })
        .await;
    let expected =
        [(3, "/p/changed"), (2, "/p/gone"), (1, "/p/new"), (4, "/p")].map(|(kind, path)| (kind, path.to_owned()));
    for event in expected {
        assert_eq!(client.event().await, event);
    }
    let reply = client.reply().await.expect("the reply");
    assert_eq!((reply.xid, reply.err), (-8, 0));
    server.tree.publish("/p/later", Bytes::new(), false).expect("made");
    assert_eq!(client.event().await, (1, "/p/later".into()));
    server.tree.publish("/p/same", Bytes::from_static(b"x"), false).expect("set");
    assert_eq!(client.event().await, (3, "/p/same".into()));
}

#[tokio::test]
async fn ephemeral_nodes_go_with_their_session() {
    let server = start(quick()).await;
    let (mut watcher, mut owner) = (Client::connect(&server).await, Client::connect(&server).await);
    assert_eq!(owner.create("/e", 1).await.err, 0);
    assert_eq!(watcher.look(EXISTS, "/e", true).await.err, 0);
    // A broken connection alone ends nothing: the session resumes with its password, and not with another.
    let (session, password) = (owner.session, owner.password.clone());
    drop(owner);
    assert_eq!(Client::resume(&server, session, &[9; 16]).await.session, 0);
    let mut owner = Client::resume(&server, session, &password).await;
    assert_eq!(owner.session, session);
    assert_eq!(owner.look(EXISTS, "/e", false).await.err, 0);
    assert_eq!(owner.call(-11, |_| ()).await.err, 0);
    assert_eq!(owner.read_frame().await, None);
    assert_eq!(watcher.event().await, (2, "/e".into()));
    assert_eq!(Client::resume(&server, session, &password).await.session, 0, "closed is closed");

    // Silence ends a session; pings keep one.
    let mut silent = Client::connect(&server).await;
    assert_eq!(silent.timeout_ms, 400);
    assert_eq!(silent.create("/e2", 1).await.err, 0);
    assert_eq!(watcher.look(EXISTS, "/e2", true).await.err, 0);
    server.clock.advance_ms(300);
    watcher.send_as(-2, 11, |_| ()).await;
    assert_eq!(watcher.reply().await.expect("a pong").xid, -2);
    server.clock.advance_ms(300);
    assert_eq!(watcher.event().await, (2, "/e2".into()));
    assert_eq!(silent.read_frame().await, None, "cut off");
}

#[tokio::test]
async fn a_session_that_moves_takes_its_old_connection_down() {
    let server = start(EndpointOptions::default()).await;
    let mut first = Client::connect(&server).await;
    let mut second = Client::resume(&server, first.session, &first.password.clone()).await;
    assert_eq!(second.session, first.session);
    assert_eq!(first.read_frame().await, None);
    assert_eq!(second.look(EXISTS, "/", false).await.err, 0);
}

async fn word(server: &crate::common::Server, word: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.expect("connects");
    stream.write_all(word).await.expect("written");
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.expect("read");
    answer
}

#[tokio::test]
async fn four_letter_words() {
    let server = start(EndpointOptions::default()).await;
    let _client = Client::connect(&server).await;
    assert_eq!(word(&server, b"ruok").await, "imok");
    assert!(word(&server, b"stat").await.contains("Mode: standalone\nNode count: 2\n"));
    assert!(word(&server, b"srvr").await.starts_with("Zookeeper version: 3.8"));
    assert!(word(&server, b"mntr\n").await.contains("zk_znode_count\t2\n"));
    assert!(word(&server, b"kill").await.contains("not in the whitelist"));
}

#[tokio::test]
async fn bad_peers_lose_their_own_connection_only() {
    let server = start(EndpointOptions::default()).await;
    let mut good = Client::connect(&server).await;
    let connect_frame = {
        let mut body = vec![0; 44];
        body[19] = 16;
        body[27] = 16;
        body
    };
    let with_len = |body: &[u8]| [&(body.len() as u32).to_be_bytes(), body].concat();
    let openings: [&[u8]; 6] = [
        b"\xff\xff\xff\xff",
        b"\x00\x10\x00\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x05abcde",
        &with_len(&[&[0; 24][..], b"\x7f\xff\xff\xff"].concat()),
    ];
    for opening in openings {
        let mut stream = TcpStream::connect(server.address).await.expect("connects");
        stream.write_all(opening).await.expect("written");
        let mut rest = Vec::new();
        soon(stream.read_to_end(&mut rest)).await.ok();
        assert_eq!(rest, b"", "{opening:?}");
    }
    // A good start, then a request that is cut short inside.
    for body in [&b""[..], b"\0\0\0\x01", b"\0\0\0\x01\0\0\0\x03\0\0\0\x09/a", b"\0\0\0\x01\0\0\0\x04\0\0\0\x01\xff\0"]
    {
        let mut stream = TcpStream::connect(server.address).await.expect("connects");
        stream.write_all(&with_len(&connect_frame)).await.expect("written");
        assert!(read_frame(&mut stream).await.is_some());
        stream.write_all(&with_len(body)).await.expect("written");
        assert_eq!(read_frame(&mut stream).await, None, "{body:?}");
    }
    // Bytes one at a time, a connection that says nothing, one that never reads: the good client goes on.
    let _silent = TcpStream::connect(server.address).await.expect("connects");
    let mut drip = TcpStream::connect(server.address).await.expect("connects");
    for byte in with_len(&connect_frame) {
        drip.write_all(&[byte]).await.expect("written");
        tokio::task::yield_now().await;
    }
    assert!(read_frame(&mut drip).await.is_some());
    let mut deaf = Client::connect(&server).await;
    server.tree.publish("/big", Bytes::from(vec![7; 900_000]), false).expect("made");
    for _ in 0..40 {
        deaf.send(GET_DATA, |out| {
            out.put_string("/big");
            out.put_boolean(false);
        })
        .await;
    }
    assert_eq!(good.look(GET_DATA, "/big", false).await.err, 0);
    assert_eq!(good.create("/still", 0).await.err, 0);
}

#[tokio::test]
async fn one_address_holds_so_many_connections() {
    let server = start(EndpointOptions { max_connections_per_address: 2, ..EndpointOptions::default() }).await;
    let (first, mut second) = (Client::connect(&server).await, Client::connect(&server).await);
    let mut third = TcpStream::connect(server.address).await.expect("connects");
    let mut nothing = Vec::new();
    soon(third.read_to_end(&mut nothing)).await.ok();
    assert_eq!(nothing, b"");
    assert_eq!(second.look(EXISTS, "/", false).await.err, 0);
    drop(first);
    // The place is free once the server has seen the end.
    let again = async {
        loop {
            if word(&server, b"ruok").await == "imok" {
                break;
            }
        }
    };
    soon(again).await;
}

/// Once a watch counted as one, however long its path: a hundred thousand of them, with paths of a megabyte.
#[tokio::test]
async fn long_watched_paths_cannot_fill_the_memory() {
    let server = start(EndpointOptions::default()).await;
    let (mut good, mut greedy) = (Client::connect(&server).await, Client::connect(&server).await);
    assert_eq!(good.look(EXISTS, "/mine", true).await.err, -101);
    let mut held = 0;
    for number in 0..100_000 {
        greedy
            .send(EXISTS, |out| {
                out.put_string(&format!("/{number:06}{}", "x".repeat(4000)));
                out.put_boolean(true);
            })
            .await;
        if greedy.reply().await.is_none() {
            break;
        }
        held = number;
    }
    assert!((100..1000).contains(&held), "{held} watches of 8 KB each");
    // SetWatches takes paths that no node could have.
    let mut greedy = Client::connect(&server).await;
    for number in 0..100 {
        let path = format!("/{number:06}{}", "x".repeat(900_000));
        let mut body = BytesMut::new();
        body.put_i32(-8);
        body.put_i32(101);
        body.put_i64(0);
        body.put_u32(0);
        body.put_u32(1);
        body.put_string(&path);
        body.put_u32(0);
        let frame = [&(body.len() as u32).to_be_bytes()[..], &body].concat();
        if greedy.stream.write_all(&frame).await.is_err() || greedy.reply().await.is_none() {
            break;
        }
        assert!(number < 5, "watches of {} bytes", (number + 1) * 1_800_000);
    }
    // Others keep theirs, and what was held is free again.
    server.tree.publish("/mine", Bytes::new(), false).expect("made");
    assert_eq!(good.event().await, (1, "/mine".to_owned()));
    for number in 0..200 {
        assert_eq!(good.look(EXISTS, &format!("/{number}"), true).await.err, -101);
    }
}
