//! Peers that lie, stammer or stall, against a live server: the right exception, and nobody else is harmed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Raw, Toy, get_request, header, limits, request, start, until};
use basalt_rpc::{Limits, capped_ledger};
use base::Holder;
use proto::{Message, pb};
use tokio::io::AsyncReadExt;

/// Sends `preamble` and returns the connection's exception.
async fn refused(toy: Toy, preamble: &[u8]) -> (i32, String, String) {
    let server = start(toy, limits());
    let mut raw = Raw::connect(&server).await;
    raw.send(preamble).await;
    let exception = raw.exception().await;
    raw.assert_closed().await;
    exception
}

#[tokio::test]
async fn preambles_that_are_not_ours_are_answered_as_hbase_does() {
    let (id, class, text) = refused(Toy::default(), b"GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!((id, class.as_str()), (-1, "FatalConnectionException"));
    assert!(text.starts_with("Expected HEADER=HBas but received HEADER=GET  from 127.0.0.1:"), "{text}");

    let (_, class, text) = refused(Toy::default(), b"HBas\x07P").await;
    assert_eq!(class, "WrongVersionException");
    assert!(text.starts_with("serverVersion=0, clientVersion=7, authMethod=80"), "{text}");

    let (_, class, _) = refused(Toy::default(), b"HBas\0\x00").await;
    assert_eq!(class, "BadAuthException");

    // Without a cluster id the registry's preamble is as unknown as to an older server.
    let (_, class, text) = refused(Toy { cluster_id: None, ..Toy::default() }, b"Regist").await;
    assert_eq!(class, "FatalConnectionException");
    assert!(text.starts_with("Expected HEADER="), "{text}");
}

#[tokio::test]
async fn the_registry_preamble_is_answered_with_the_cluster_id() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::connect(&server).await;
    raw.send(b"Regist").await;
    let (header, mut rest) = raw.reply().await;
    assert_eq!((header.call_id() as i32, header.exception), (-1, None));
    let reply = basalt_rpc::frame::take_delimited(&mut rest).unwrap();
    let reply = pb::GetConnectionRegistryResponse::decode(reply).unwrap();
    assert_eq!(reply.cluster_id, "the-cluster");
    raw.assert_closed().await;
}

#[tokio::test]
async fn the_security_preamble_is_answered_and_the_connection_goes_on() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::connect(&server).await;
    raw.send(b"Securi").await;
    let (id, class, _) = raw.exception().await;
    assert_eq!((id, class.as_str()), (-1, "SecurityNotEnabledException"));
    raw.hello(&header("ClientService")).await;
    raw.assert_alive().await;
}

#[tokio::test]
async fn a_client_that_offers_kerberos_is_switched_to_simple() {
    use tokio::io::AsyncReadExt;
    let server = start(Toy::default(), limits());
    for auth in [81u8, 82] {
        let mut raw = Raw::connect(&server).await;
        raw.send(&[b'H', b'B', b'a', b's', 0, auth]).await;
        raw.send_delimited(b"a token that nobody reads").await;
        let mut answer = [0; 8];
        raw.stream.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer[..4], i32::from_be_bytes(answer[4..].try_into().unwrap())), (&[0; 4][..], -88));
        raw.send_delimited(&header("ClientService").encode_to_vec()).await;
        raw.assert_alive().await;
    }
}

#[tokio::test]
async fn headers_that_ask_for_what_is_not_there_are_refused() {
    let changed = |change: fn(&mut pb::ConnectionHeader)| {
        let mut header = header("ClientService");
        change(&mut header);
        header.encode_to_vec()
    };
    let cases = [
        (changed(|h| h.service_name = Some("NoService".into())), "UnknownServiceException"),
        (changed(|h| h.service_name = Some("AggregateService".into())), "UnknownServiceException"),
        (changed(|h| h.service_name = None), "EmptyServiceNameException"),
        (changed(|h| h.cell_block_codec_class = Some("no.Codec".into())), "UnsupportedCellCodecException"),
        (changed(|h| h.cell_block_compressor_class = Some("no.Codec".into())), "UnsupportedCompressionCodecException"),
        (b"\xff\xff\xff".to_vec(), "FatalConnectionException"),
    ];
    let server = start(Toy::default(), limits());
    for (bytes, wanted) in cases {
        let mut raw = Raw::connect(&server).await;
        raw.send(b"HBas\0P").await;
        raw.send_delimited(&bytes).await;
        let (id, class, _) = raw.exception().await;
        assert_eq!((id, class.as_str()), (-1, wanted));
        raw.assert_closed().await;
    }
}

#[tokio::test]
async fn requests_that_cannot_be_read_fail_alone() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::ready(&server).await;

    raw.send(&request(1, "get", b"", b"")).await;
    let (id, class, text) = raw.exception().await;
    assert_eq!((id, class.as_str()), (1, "DoNotRetryIOException"));
    assert!(text.ends_with("java.lang.UnsupportedOperationException: get"), "{text}");

    raw.send(&request(2, "Get", b"\x0a\xff", b"")).await;
    let (id, class, text) = raw.exception().await;
    assert_eq!((id, class.as_str()), (2, "DoNotRetryIOException"));
    assert!(text.contains("GetRequest"), "{text}");

    for (id, cells) in [(3, &b"\x00\x00\x00\x05short"[..]), (4, b"\xff\xff\xff\xff"), (5, b"abc")] {
        raw.send(&request(id, "Multi", b"", cells)).await;
        let (call_id, class, text) = raw.exception().await;
        assert_eq!((call_id as u32, class.as_str()), (id, "DoNotRetryIOException"));
        assert!(text.contains("unable to read call parameter"), "{text}");
    }

    // A cell block that claims more than the frame has.
    let mut lying = request(6, "Multi", b"", b"cells");
    let cut = lying.len() - 3;
    lying.truncate(cut);
    let len = (cut - 4) as u32;
    lying[..4].copy_from_slice(&len.to_be_bytes());
    raw.send(&lying).await;
    assert_eq!(raw.exception().await.0, 6);

    let without_param = pb::RequestHeader { call_id: Some(7), method_name: Some("Get".into()), ..Default::default() };
    let mut frame = bytes::BytesMut::new();
    basalt_rpc::frame::put_frame(&mut frame, &without_param, None, 0);
    raw.send(&frame).await;
    let (id, _, text) = raw.exception().await;
    assert!(id == 7 && text.contains("should have param set in it"), "{text}");

    raw.assert_alive().await;
}

/// As HBase's `CellCodec` says it, through `BaseDecoder#advance`.
#[tokio::test]
async fn a_cell_whose_fields_are_cut_short_is_the_end_of_a_stream() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::connect(&server).await;
    let codec = "org.apache.hadoop.hbase.codec.CellCodec".to_owned();
    raw.hello(&pb::ConnectionHeader { cell_block_codec_class: Some(codec), ..header("ClientService") }).await;
    for (id, cells) in [(1, &b"\x00\x00\x00\x03row\x00\x00"[..]), (2, b"\x00\x00\x00\x09short")] {
        raw.send(&request(id, "Multi", b"", cells)).await;
        let (call_id, class, text) = raw.exception().await;
        assert_eq!((call_id as u32, class.as_str()), (id, "EOFException"));
        assert!(text.contains("Partial cell read"), "{text}");
    }
    raw.assert_alive().await;
}

#[tokio::test]
async fn a_cell_block_without_a_codec_or_with_damaged_compression_fails_alone() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::connect(&server).await;
    raw.hello(&pb::ConnectionHeader { cell_block_codec_class: None, ..header("ClientService") }).await;
    raw.send(&request(1, "Multi", b"", b"cells")).await;
    assert_eq!(raw.exception().await.0, 1);
    raw.assert_alive().await;

    let mut raw = Raw::connect(&server).await;
    let gzip = "org.apache.hadoop.io.compress.GzipCodec".to_owned();
    raw.hello(&pb::ConnectionHeader { cell_block_compressor_class: Some(gzip), ..header("ClientService") }).await;
    raw.send(&request(1, "Multi", b"", b"not gzip at all")).await;
    assert_eq!(raw.exception().await.0, 1);
    raw.assert_alive().await;
}

#[tokio::test]
async fn a_cell_block_that_explodes_is_stopped() {
    let server = start(Toy::default(), Limits { max_decompressed_bytes: 100_000, ..limits() });
    let mut raw = Raw::connect(&server).await;
    let zlib = "org.apache.hadoop.io.compress.DefaultCodec".to_owned();
    raw.hello(&pb::ConnectionHeader { cell_block_compressor_class: Some(zlib), ..header("ClientService") }).await;
    let bomb = basalt_rpc::Compressor::Zlib.compress(&vec![0; 50_000_000]);
    assert!(bomb.len() < 100_000);
    raw.send(&request(1, "Multi", b"", &bomb)).await;
    let (_, _, text) = raw.exception().await;
    assert!(text.contains("larger than 100000 bytes"), "{text}");
    raw.assert_alive().await;
}

#[tokio::test]
async fn a_frame_that_is_too_long_is_refused_on_its_call_before_it_is_read() {
    let server = start(Toy::default(), Limits { max_request_bytes: 10_000, ..limits() });
    for (version, wanted) in [("2.6.4", "RequestTooBigException"), ("1.2.0", "DoNotRetryIOException")] {
        let mut raw = Raw::connect(&server).await;
        let version_info = Some(pb::VersionInfo { version: version.into(), ..Default::default() });
        raw.hello(&pb::ConnectionHeader { version_info, ..header("ClientService") }).await;
        raw.assert_alive().await;
        let mut frame = get_request(77, b"row");
        frame[..4].copy_from_slice(&0xffff_fff0u32.to_be_bytes());
        // In two pieces, the header cut.
        raw.send(&frame[..10]).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        raw.send(&frame[10..]).await;
        let (id, class, text) = raw.exception().await;
        assert_eq!((id, class.as_str()), (77, wanted));
        assert!(text.starts_with("RPC data length of 4294967280 received from"), "{text}");
        raw.assert_closed().await;
    }
}

#[tokio::test]
async fn a_frame_whose_header_is_garbage_ends_the_connection() {
    let server = start(Toy::default(), limits());
    for garbage in [&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"[..], b"", b"\x7f", b"\x02\x08"] {
        let mut raw = Raw::ready(&server).await;
        raw.send_delimited(garbage).await;
        raw.assert_closed().await;
    }
    Raw::ready(&server).await.assert_alive().await;
}

#[tokio::test]
async fn requests_cut_at_every_byte_harm_nobody() {
    let server = start(Toy::default(), limits());
    let mut whole = b"HBas\0P".to_vec();
    let header = header("ClientService").encode_to_vec();
    whole.extend_from_slice(&(header.len() as u32).to_be_bytes());
    whole.extend_from_slice(&header);
    whole.extend_from_slice(&get_request(1, b"row"));
    for cut in 0..whole.len() {
        let mut raw = Raw::connect(&server).await;
        raw.send(&whole[..cut]).await;
    }
    until("all have gone", || server.counters().connections.load(Ordering::Relaxed) == 0).await;
    Raw::ready(&server).await.assert_alive().await;
    assert_eq!(server.counters().exceptions.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn bytes_that_come_one_by_one_make_a_request_all_the_same() {
    let server = start(Toy::default(), limits());
    let mut raw = Raw::ready(&server).await;
    for byte in get_request(9, b"row").iter() {
        raw.send(std::slice::from_ref(byte)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(raw.reply().await.0.call_id, Some(9));
}

#[tokio::test]
async fn peers_that_stall_are_dropped_in_time() {
    let quick = Duration::from_millis(100);
    let server = start(
        Toy::default(),
        Limits { handshake_timeout: quick, stall_timeout: quick, idle_timeout: Duration::from_millis(600), ..limits() },
    );
    let mut silent = Raw::connect(&server).await;
    silent.assert_closed().await;
    let mut stammering = Raw::connect(&server).await;
    stammering.send(b"HBa").await;
    stammering.assert_closed().await;
    let mut stalling = Raw::ready(&server).await;
    stalling.assert_alive().await;
    stalling.send(&get_request(1, b"row")[..7]).await;
    stalling.assert_closed().await;
    let mut idle = Raw::ready(&server).await;
    tokio::time::sleep(quick * 3).await;
    idle.assert_alive().await;
    idle.assert_closed().await;
}

#[tokio::test]
async fn a_large_request_is_read_and_a_lie_about_one_costs_nothing() {
    let server = start(Toy::default(), limits());
    let mut liars = Vec::new();
    for _ in 0..50 {
        let mut liar = Raw::ready(&server).await;
        liar.send(&(200u32 << 20).to_be_bytes()).await;
        liars.push(liar);
    }
    let mut raw = Raw::ready(&server).await;
    let row = vec![b'r'; 3 << 20];
    raw.send(&get_request(1, &row)).await;
    let (header, rest) = raw.reply().await;
    assert_eq!(header.call_id, Some(1));
    assert!(rest.len() > row.len());
    // 50 frames that claim 200 MiB: had they been believed, this process would hold 10 GiB by now.
    let status = String::from_utf8(proc_status()).unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmData:")).unwrap().trim().trim_end_matches(" kB");
    assert!(peak.trim().parse::<u64>().unwrap() < 2 << 20, "{peak} kB");
}

#[allow(clippy::disallowed_methods, reason = "a test asks the kernel about its own process")]
fn proc_status() -> Vec<u8> {
    std::fs::read("/proc/self/status").unwrap()
}

#[tokio::test]
async fn random_bytes_after_the_handshake_never_stop_the_server() {
    let seed = 20_264;
    let rng = base::Rng::seeded(seed);
    let server = start(Toy::default(), Limits { max_request_bytes: 100_000, ..limits() });
    let template = get_request(1, b"row");
    for round in 0..300 {
        let mut raw = Raw::ready(&server).await;
        let mut bytes = template.to_vec();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        raw.send(&bytes).await;
        drop(raw);
        if round % 50 == 0 {
            Raw::ready(&server).await.assert_alive().await;
        }
    }
    Raw::ready(&server).await.assert_alive().await;
}

/// Once only whole requests counted: each connection could hold as much of an unfinished one as a request may have.
#[tokio::test]
async fn requests_that_never_end_count_as_queued() {
    let server = start(Toy::default(), Limits { ledger: capped_ledger(4 << 20), ..limits() });
    let mut slow = Vec::new();
    let unfinished = {
        let mut request = get_request(7, &vec![b'r'; 900_000]);
        request[..4].copy_from_slice(&(100u32 << 20).to_be_bytes());
        request
    };
    for _ in 0..20 {
        let mut raw = Raw::ready(&server).await;
        // Those that are refused may be closed while we send.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut raw.stream, &unfinished).await;
        slow.push(raw);
    }
    until("what is held has been counted", || server.counters().exceptions.load(Ordering::Relaxed) >= 17).await;
    let queued = server.ledger().held_bytes(Holder::Requests);
    assert!((500_000..4 << 20).contains(&queued), "{queued} bytes");
    let mut refused = 0;
    for raw in &mut slow {
        // Those that are held wait for the rest.
        if let Ok(frame) = tokio::time::timeout(Duration::from_millis(50), raw.frame()).await {
            let mut frame = frame.expect("the exception first");
            let head = pb::ResponseHeader::decode(basalt_rpc::frame::take_delimited(&mut frame).unwrap()).unwrap();
            assert_eq!(head.call_id(), 7);
            assert!(head.exception.unwrap().exception_class_name().ends_with("CallQueueTooBigException"));
            raw.assert_closed().await;
            refused += 1;
        }
    }
    assert!((17..20).contains(&refused), "{refused} of 20 were refused");
    // Ordinary calls go on meanwhile, and all of it is given back.
    Raw::ready(&server).await.assert_alive().await;
    drop(slow);
    until("what was held is free", || server.ledger().held_bytes(Holder::Requests) == 0).await;
}

/// A peer that asks for much and takes a byte now and then.
#[tokio::test]
async fn a_peer_that_sips_its_replies_is_dropped() {
    let stall_timeout = Duration::from_millis(300);
    let server = start(Toy::default(), Limits { stall_timeout, ..limits() });
    let mut raw = Raw::ready(&server).await;
    let scan = pb::ScanRequest { number_of_rows: Some(30_000_000), ..Default::default() }.encode_to_vec();
    raw.send(&request(1, "Scan", &scan, b"")).await;
    let mut byte = [0];
    let sip = async {
        while matches!(raw.stream.read(&mut byte).await, Ok(1)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if server.counters().connections.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), sip).await.expect("it is dropped");
    until("it is dropped", || server.counters().connections.load(Ordering::Relaxed) == 0).await;
    assert_eq!(server.ledger().held_bytes(Holder::Replies), 0);
    // One who takes them, if not fast, is not.
    let mut raw = Raw::ready(&server).await;
    raw.send(&request(1, "Scan", &scan, b"")).await;
    let mut left = 30_000_000_usize;
    let mut some = vec![0; 100_000];
    while left > 0 {
        let read = raw.stream.read(&mut some).await.expect("more");
        assert!(read > 0, "dropped with {left} bytes to come");
        left = left.saturating_sub(read);
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
}

/// Replies that nobody takes, over many connections: together they are held to the queue's bound.
#[tokio::test]
async fn unsent_replies_are_bounded_over_all_connections() {
    let server = start(Toy::default(), Limits { ledger: capped_ledger(4 << 20), ..limits() });
    let scan = pb::ScanRequest { number_of_rows: Some(1_000_000), ..Default::default() }.encode_to_vec();
    let mut deaf = Vec::new();
    for _ in 0..12 {
        let mut raw = Raw::ready(&server).await;
        // The kernel takes some MB on both sides: more than that is asked for.
        for id in 0..30 {
            raw.send(&request(id, "Scan", &scan, b"")).await;
        }
        deaf.push(raw);
    }
    let mut last = u64::MAX;
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let sent = server.counters().sent_bytes.load(Ordering::Relaxed);
        if std::mem::replace(&mut last, sent) == sent {
            break;
        }
    }
    let registry = base::metrics::Registry::new();
    server.register_metrics(&registry, base::metrics::IPC);
    let most = || {
        let samples = registry.read(0);
        let most = samples.iter().find(|sample| sample.name == "nettyMaxPendingOutboundBytes").expect("it is there");
        match most.number {
            base::metrics::Number::Long(bytes) => bytes as u64,
            other => panic!("{other:?}"),
        }
    };
    let unsent = server.ledger().held_bytes(Holder::Replies);
    // One connection has more than its share of all of it, and not more than all.
    assert!((unsent / 12..=unsent + (64 << 10)).contains(&most()), "{} of {unsent} bytes", most());
    // Each may be given one reply more when others have filled the bound.
    assert!((1 << 20..18 << 20).contains(&unsent), "{unsent} bytes");
    Raw::ready(&server).await.assert_alive().await;
    let unwritable = &server.counters().unwritable_times;
    assert_eq!(unwritable.count(), 0, "none is written to again");
    // Whoever takes what is his gets the rest.
    let mut one = deaf.pop().unwrap();
    for _ in 0..30 {
        assert_eq!(one.reply().await.0.exception, None);
    }
    assert!(unwritable.count() > 0, "how long it took nothing is measured");
    drop((deaf, one));
    until("all is free", || server.ledger().held_bytes(Holder::Replies) == 0).await;
    until("no connection holds anything", || most() == 0).await;
}

#[tokio::test]
async fn connections_over_the_cap_are_closed_and_taken_again_when_others_end() {
    let server = start(Toy::default(), Limits { max_connections: 3, ..limits() });
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::connect(&server).await;
        raw.send(b"Securi").await;
        let _ = raw.exception().await;
        held.push(raw);
    }
    for _ in 0..20 {
        Raw::connect(&server).await.assert_closed().await;
    }
    assert_eq!(server.counters().connections.load(Ordering::Relaxed), 3);
    assert_eq!(server.counters().refused_connections.load(Ordering::Relaxed), 20);
    // Those that are in are served on, and a place that gets free is given away.
    held[0].send(b"Securi").await;
    let _ = held[0].exception().await;
    drop(held.pop());
    until("one has gone", || server.counters().connections.load(Ordering::Relaxed) == 2).await;
    let mut late = Raw::connect(&server).await;
    late.send(b"Securi").await;
    let _ = late.exception().await;
}
