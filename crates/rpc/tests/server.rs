//! A live server on loopback: ordinary calls, replies to come, gathering, limits, shutdown.
#![allow(clippy::disallowed_methods, reason = "a test starts real threads")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Raw, Toy, answer_waiting, get_request, limits, request, start, until, waiting_request};
use basalt_rpc::client::{Client, ClientOptions};
use basalt_rpc::transport::pipe;
use basalt_rpc::{
    Call, CellCodec, Compressor, Handler, Limits, Outcome, Reply, Server, answer_together, capped_ledger,
};
use base::{Holder, ManualClock};
use bytes::{Bytes, BytesMut};
use cell::{CellBlock, CellSpec};
use proto::methods::Method;
use proto::pb;
use tokio::io::AsyncWriteExt;

fn get(row: &str) -> pb::GetRequest {
    let get = pb::Get { row: Bytes::copy_from_slice(row.as_bytes()), ..Default::default() };
    pb::GetRequest { get, ..Default::default() }
}

#[tokio::test]
async fn concurrent_calls_get_their_own_replies() {
    let server = start(Toy::default(), limits());
    let options = ClientOptions { user: "ann".into(), ..Default::default() };
    let client = std::sync::Arc::new(Client::connect(server.local_addr(), "ClientService", options).await.unwrap());
    let calls: Vec<_> = (0..200)
        .map(|i| {
            let client = client.clone();
            tokio::spawn(async move {
                let row = format!("row-{i}");
                let reply = client.call(Method::ClientGet.info(), &get(&row), None).await.unwrap();
                let reply: pb::CoprocessorServiceResult = reply.decode().unwrap();
                let value = reply.value.unwrap();
                assert_eq!((value.name, value.value.unwrap()), ("ann".to_owned(), Bytes::from(row)));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let unsupported = client.call(Method::ClientMutate.info(), &pb::MutateRequest::default(), None).await.unwrap_err();
    assert_eq!(unsupported.class(), Some("org.apache.hadoop.hbase.DoNotRetryIOException"));
    assert!(unsupported.to_string().contains("ClientService.Mutate is not supported"), "{unsupported}");
}

#[tokio::test]
async fn a_connection_in_memory_is_served_like_one_of_a_socket() {
    let server = start(Toy::default(), limits());
    // Smaller than a request, so that both ends have to wait for each other.
    let (ours, theirs) = pipe(100);
    server.attach(theirs, ([127, 0, 0, 1], 1).into());
    let options = ClientOptions { user: "ann".into(), ..Default::default() };
    let client = Client::over(ours, "ClientService", options).await.unwrap();
    for row in ["a".to_owned(), "b".repeat(10_000)] {
        let reply = client.call(Method::ClientGet.info(), &get(&row), None).await.unwrap();
        let value = reply.decode::<pb::CoprocessorServiceResult>().unwrap().value.unwrap();
        assert_eq!((value.name, value.value.unwrap()), ("ann".to_owned(), Bytes::from(row)));
    }
    assert_eq!(server.counters().connections.load(Ordering::Relaxed), 1);
    drop(client);
    until("the connection ends", || server.counters().connections.load(Ordering::Relaxed) == 0).await;
}

#[tokio::test]
async fn deferred_calls_are_answered_once_from_any_thread() {
    let server = start(Toy::default(), limits());
    let client = Client::connect(server.local_addr(), "ClientService", ClientOptions::default()).await.unwrap();
    let client = std::sync::Arc::new(client);
    let calls: Vec<_> = (0..100u32)
        .map(|i| {
            let client = client.clone();
            tokio::spawn(async move {
                let request = pb::RegionSpecifier { r#type: 1, value: Bytes::from(vec![7; i as usize]) };
                let reply = client.call(Method::ClientExecService.info(), &request, None).await.unwrap();
                assert_eq!(reply.decode::<pb::RegionSpecifier>().unwrap(), request);
                let empty = pb::EmptyMsg::default();
                let method = Method::ClientExecRegionServerService.info();
                let error = client.call(method, &empty, None).await.unwrap_err();
                assert!(error.to_string().contains("without an answer"), "{error}");
                let error = client.call(method, &request, None).await.unwrap_err();
                assert!(error.to_string().contains("without an answer"), "{error}");
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(server.ledger().held_bytes(Holder::Requests), 0);
}

#[tokio::test]
async fn cells_travel_both_ways_in_every_codec_and_compression() {
    let server = start(Toy::default(), limits());
    let value = vec![b'v'; 100_000];
    let spec = CellSpec {
        row: b"r",
        family: b"f",
        qualifier: b"q",
        timestamp: 5,
        type_code: 4,
        value: &value,
        tags: b"\x00\x02\x08x",
    };
    let cells = CellBlock::from_specs([spec, CellSpec { value: b"small", ..spec }]);
    let codecs = [CellCodec::KeyValue, CellCodec::KeyValueWithTags, CellCodec::Cell, CellCodec::CellWithTags];
    let compressors =
        [None, Some(Compressor::Gzip), Some(Compressor::Zlib), Some(Compressor::Snappy), Some(Compressor::ZstdBlock)];
    for codec in codecs {
        for compressor in compressors {
            let options = ClientOptions { codec: Some(codec), compressor, ..Default::default() };
            let client = Client::connect(server.local_addr(), "ClientService", options).await.unwrap();
            let multi = pb::MultiRequest::default();
            let reply = client.call(Method::ClientMulti.info(), &multi, Some(&cells)).await.unwrap();
            assert_eq!(reply.cells.len(), 2, "{codec:?} {compressor:?}");
            for (came, went) in reply.cells.iter().zip(&cells) {
                assert_eq!((came.key(), came.value()), (went.key(), went.value()));
                assert_eq!(!came.tags().is_empty(), codec.carries_tags(), "{codec:?}");
            }
            assert!(client.call(Method::ClientMulti.info(), &multi, None).await.unwrap().cells.is_empty());
        }
    }
}

#[tokio::test]
async fn a_later_reply_does_not_hold_up_others() {
    let toy = Toy::default();
    let gate = toy.gate.clone();
    let server = start(toy, limits());
    let mut raw = Raw::ready(&server).await;
    raw.send(&request(1, "BulkLoadHFile", b"", b"")).await;
    raw.assert_alive().await;
    gate.add_permits(1);
    let (header, _) = raw.reply().await;
    assert_eq!((header.call_id(), header.exception), (1, None));
    assert_eq!(server.ledger().held_bytes(Holder::Requests), 0);
}

#[tokio::test]
async fn replies_to_requests_that_came_together_leave_together() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::ready(&server).await;
    raw.assert_alive().await;
    let before = server.counters().writes.load(Ordering::Relaxed);
    let mut together = BytesMut::new();
    (0..100).for_each(|i| together.extend_from_slice(&get_request(i, b"row")));
    raw.send(&together).await;
    for i in 0..100 {
        assert_eq!(raw.reply().await.0.call_id(), i, "replies that need not wait keep their order");
    }
    let writes = server.counters().writes.load(Ordering::Relaxed) - before;
    assert!(writes <= 10, "{writes} writes for 100 replies");
}

/// This runtime has one thread: while the test does not await, no task of the server runs.
#[tokio::test]
async fn who_answers_a_group_sends_it_in_one_write_while_the_connection_sleeps() {
    let toy = Toy::default();
    let waiting = toy.waiting.clone();
    let server = start(toy, limits());
    let mut raw = Raw::ready(&server).await;
    for round in 0..3 {
        let mut together = BytesMut::new();
        (0..5).for_each(|i| together.extend_from_slice(&waiting_request(round * 5 + i, 100)));
        raw.send(&together).await;
        until("the calls are there", || waiting.lock().unwrap().len() == 5).await;
        let before = server.counters().writes.load(Ordering::Relaxed);
        answer_together(|| answer_waiting(&waiting));
        assert_eq!(server.counters().writes.load(Ordering::Relaxed) - before, 1, "nobody else could have sent them");
        for i in 0..5 {
            let (header, rest) = raw.reply().await;
            assert_eq!((header.call_id(), header.exception, rest.len()), (round * 5 + i, None, 101));
        }
        raw.assert_alive().await;
    }
    assert_eq!(server.ledger().held_bytes(Holder::Requests), 0);
}

#[tokio::test]
async fn what_a_socket_does_not_take_from_who_answers_is_sent_by_the_connection() {
    let toy = Toy::default();
    let waiting = toy.waiting.clone();
    let server = start(toy, limits());
    // More connections than one thread serves by itself.
    let mut raws = Vec::new();
    for _ in 0..6 {
        let mut raw = Raw::ready(&server).await;
        raw.send(&waiting_request(1, 16 << 20)).await;
        raw.send(&waiting_request(2, 10)).await;
        raws.push(raw);
    }
    until("the calls are there", || waiting.lock().unwrap().len() == 12).await;
    let answers = waiting.clone();
    std::thread::spawn(move || answer_together(|| answer_waiting(&answers))).join().unwrap();
    for raw in &mut raws {
        assert!(raw.reply().await.1.len() > 16 << 20);
        assert_eq!(raw.reply().await.0.call_id(), 2);
        raw.assert_alive().await;
    }
}

#[tokio::test]
async fn a_connection_without_calls_since_the_last_reply_was_sent_ends_when_it_is_idle() {
    let toy = Toy::default();
    let waiting = toy.waiting.clone();
    let server = start(toy, Limits { idle_timeout: Duration::from_millis(400), ..limits() });
    let mut raw = Raw::ready(&server).await;
    raw.send(&waiting_request(1, 10)).await;
    until("the call is there", || waiting.lock().unwrap().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    answer_together(|| answer_waiting(&waiting));
    let answered = tokio::time::Instant::now();
    assert_eq!(raw.reply().await.0.call_id(), 1);
    raw.assert_closed().await;
    assert!(answered.elapsed() >= Duration::from_millis(350), "idle since its answer, not since its call");
}

#[tokio::test]
async fn a_panic_is_an_exception_of_its_call() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::ready(&server).await;
    for (id, method, text) in [(1, "CleanupBulkLoad", "inline"), (2, "PrepareBulkLoad", "later")] {
        raw.send(&request(id, method, b"", b"")).await;
        let (call_id, class, message) = raw.exception().await;
        assert_eq!((call_id as u32, class.as_str()), (id, "IOException"));
        assert!(message.contains("internal error") && message.contains(text), "{message}");
    }
    raw.assert_alive().await;
}

#[tokio::test]
async fn a_connection_with_too_many_calls_in_flight_is_not_read_from() {
    let toy = Toy::default();
    let (gate, running) = (toy.gate.clone(), toy.running.clone());
    let server = start(toy, Limits { max_calls: 3, ..limits() });
    let mut raw = Raw::ready(&server).await;
    for id in 0..5 {
        raw.send(&request(id, "BulkLoadHFile", b"", b"")).await;
    }
    until("three calls run", || running.load(Ordering::SeqCst) == 3).await;
    Raw::ready(&server).await.assert_alive().await;
    assert_eq!(running.load(Ordering::SeqCst), 3, "the fourth call waits in the socket");
    gate.add_permits(5);
    for _ in 0..5 {
        assert_eq!(raw.reply().await.0.exception, None);
    }
    raw.assert_alive().await;
}

#[tokio::test]
async fn beyond_the_queue_s_size_calls_are_refused_as_overload() {
    let toy = Toy::default();
    let gate = toy.gate.clone();
    let server = start(toy, Limits { ledger: capped_ledger(1024), ..limits() });
    let mut raw = Raw::ready(&server).await;
    raw.send(&request(1, "BulkLoadHFile", &[0x7A; 900], b"")).await;
    raw.send(&request(2, "BulkLoadHFile", &[0x7A; 900], b"")).await;
    let (header, _) = raw.reply().await;
    let exception = header.exception.unwrap();
    assert_eq!(header.call_id, Some(2));
    assert_eq!(exception.exception_class_name(), "org.apache.hadoop.hbase.CallQueueTooBigException");
    assert_eq!((exception.server_overloaded, exception.do_not_retry), (Some(true), Some(false)));
    gate.add_permits(1);
    assert_eq!(raw.reply().await.0.call_id, Some(1));
    raw.assert_alive().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_holds_up_only_itself() {
    let server = start(Toy::default(), Limits { stall_timeout: Duration::from_millis(400), ..limits() });
    let mut deaf = Raw::ready(&server).await;
    let scan = pb::ScanRequest { number_of_rows: Some(4 << 20), ..Default::default() };
    let scan = request(1, "Scan", &prost::Message::encode_to_vec(&scan), b"");
    for _ in 0..64 {
        deaf.send(&scan).await;
    }
    until("replies are ready", || server.counters().calls.sum() > 3).await;
    Raw::ready(&server).await.assert_alive().await;
    until("the deaf peer is dropped", || server.counters().connections.load(Ordering::Relaxed) == 0).await;
    let calls = server.counters().calls.sum();
    assert!(calls < 20, "{calls} calls of 4 MiB were answered for a peer that takes none");
}

#[tokio::test]
async fn a_half_closed_connection_still_gets_its_replies() {
    let toy = Toy::default();
    let gate = toy.gate.clone();
    let server = start(toy, limits());
    let mut raw = Raw::ready(&server).await;
    raw.send(&request(1, "BulkLoadHFile", b"", b"")).await;
    raw.send(&get_request(2, b"row")).await;
    raw.stream.shutdown().await.unwrap();
    assert_eq!(raw.reply().await.0.call_id, Some(2));
    gate.add_permits(1);
    assert_eq!(raw.reply().await.0.call_id, Some(1));
    raw.assert_closed().await;
}

#[tokio::test]
async fn a_call_whose_client_has_closed_its_side_is_cancelled() {
    let toy = Toy::default();
    let (gate, running, cancellation) = (toy.gate.clone(), toy.running.clone(), toy.cancellation.clone());
    let server = start(toy, limits());
    let mut raw = Raw::ready(&server).await;
    raw.send(&request(1, "BulkLoadHFile", b"", b"")).await;
    until("the call runs", || running.load(Ordering::SeqCst) == 1).await;
    let cancellation = cancellation.lock().unwrap().take().unwrap();
    assert!(!cancellation.is_cancelled(), "somebody waits");
    drop(raw);
    until("the call learns that nobody waits", || cancellation.is_cancelled()).await;
    gate.add_permits(1);
}

#[tokio::test]
async fn a_call_goes_on_when_its_client_is_gone() {
    let toy = Toy::default();
    let (gate, running) = (toy.gate.clone(), toy.running.clone());
    let server = start(toy, limits());
    let mut raw = Raw::ready(&server).await;
    raw.send(&request(1, "BulkLoadHFile", b"", b"")).await;
    until("the call runs", || running.load(Ordering::SeqCst) == 1).await;
    drop(raw);
    gate.add_permits(1);
    until("the call has ended", || running.load(Ordering::SeqCst) == 0).await;
    until("its bytes are given back", || server.ledger().held_bytes(Holder::Requests) == 0).await;
}

#[tokio::test]
async fn shutdown_answers_what_was_received() {
    let toy = Toy::default();
    let (gate, running) = (toy.gate.clone(), toy.running.clone());
    let server = start(toy, limits());
    let address = server.local_addr();
    let mut raw = Raw::ready(&server).await;
    let mut idle = Raw::ready(&server).await;
    idle.assert_alive().await;
    raw.send(&request(1, "BulkLoadHFile", b"", b"")).await;
    until("the call runs", || running.load(Ordering::SeqCst) == 1).await;
    let shutdown = tokio::spawn(server.shutdown(Duration::from_secs(20)));
    idle.assert_closed().await;
    gate.add_permits(1);
    assert_eq!(raw.reply().await.0.call_id, Some(1));
    assert!(shutdown.await.unwrap(), "all connections ended by themselves");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn many_connections_cost_few_threads() {
    let server = start(Toy::default(), limits());
    let mut connections = Vec::new();
    for _ in 0..300 {
        connections.push(Raw::ready(&server).await);
    }
    for connection in &mut connections {
        connection.assert_alive().await;
    }
    assert_eq!(server.counters().connections.load(Ordering::Relaxed), 300);
    drop(connections);
    until("all are gone", || server.counters().connections.load(Ordering::Relaxed) == 0).await;
}

#[tokio::test]
async fn a_client_learns_why_its_connection_is_refused() {
    let server = start(Toy::default(), limits());
    let client = Client::connect(server.local_addr(), "NoService", ClientOptions::default()).await.unwrap();
    let error = client.call(Method::ClientGet.info(), &get("r"), None).await.unwrap_err();
    assert_eq!(error.class(), Some("org.apache.hadoop.hbase.ipc.UnknownServiceException"), "{error}");
}

/// `BASALT_BENCH=1 cargo test -p basalt-rpc --test main -- --nocapture calls_per_second`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_per_second() {
    if std::env::var_os("BASALT_BENCH").is_none() {
        return;
    }
    for (callers, pipelined) in [(1, 1), (1, 64), (8, 1), (2, 64)] {
        let server = start(Toy::default(), limits());
        let rounds = 200_000 / (callers * pipelined);
        let start = tokio::time::Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let address = server.local_addr();
                tokio::spawn(async move {
                    let mut batch = BytesMut::new();
                    (0..pipelined).for_each(|i| batch.extend_from_slice(&get_request(i as u32, b"row-0000000001")));
                    let mut raw = Raw::connect_to(address).await;
                    raw.hello(&crate::common::header("ClientService")).await;
                    for _ in 0..rounds {
                        raw.send(&batch).await;
                        for _ in 0..pipelined {
                            raw.frame().await.unwrap();
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let calls = callers * pipelined * rounds;
        let per_second = calls as f64 / start.elapsed().as_secs_f64();
        let writes = server.counters().writes.load(Ordering::Relaxed);
        println!("{callers} connections, {pipelined} in flight each: {per_second:.0} calls/s, {writes} writes");
    }
}

/// Holds the thread that calls it for as many milliseconds as the row says.
struct Holding(Arc<ManualClock>);

impl Handler for Holding {
    fn call(&self, call: Call) -> Outcome {
        let request: pb::GetRequest = call.decode().expect("a Get");
        self.0.advance_ms(u64::from(request.get.row[0]));
        Outcome::Ready(Ok(Reply::default()))
    }

    fn cluster_id(&self) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn a_call_that_holds_its_network_thread_for_long_is_counted() {
    let clock = Arc::new(ManualClock::new(0));
    let any_port = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(any_port, Arc::new(Holding(clock.clone())), clock, limits()).unwrap();
    let client = Client::connect(server.local_addr(), "ClientService", ClientOptions::default()).await.unwrap();
    for row in ["\0", "\u{1}", "\u{5}", "\0"] {
        client.call(Method::ClientGet.info(), &get(row), None).await.unwrap();
    }
    let times = &server.counters().times;
    assert_eq!((times.holds(), times.long_holds()), (4, 1), "one millisecond is allowed, five are not");
}

/// What `UpdateConfiguration` changes counts for connections that are open, too.
#[tokio::test]
async fn limits_are_exchanged_while_the_server_runs() {
    let server = start(Toy::default(), limits());
    let client = Client::connect(server.local_addr(), "ClientService", ClientOptions::default()).await.unwrap();
    let long_row = "x".repeat(5_000);
    client.call(Method::ClientGet.info(), &get(&long_row), None).await.unwrap();
    let handle = server.limits();
    handle.set(Limits { max_request_bytes: 1_000, ..limits() });
    client.call(Method::ClientGet.info(), &get("short"), None).await.unwrap();
    let refused = client.call(Method::ClientGet.info(), &get(&long_row), None).await;
    assert!(refused.is_err(), "{refused:?}");
    handle.set(limits());
    let client = Client::connect(server.local_addr(), "ClientService", ClientOptions::default()).await.unwrap();
    client.call(Method::ClientGet.info(), &get(&long_row), None).await.unwrap();
    drop(server);
    // The server is gone: nothing to change.
    handle.set(limits());
}
