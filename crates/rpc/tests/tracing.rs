//! Calls as spans: where they begin and end, whatever way they are answered.

use crate::common::{Raw, Toy, answer_waiting, get_request, limits, request, start, waiting_request};
use basalt_rpc::frame::put_frame;
use base::{ManualClock, Rng};
use bytes::BytesMut;
use proto::{Message, pb};
use std::sync::{Arc, Mutex};
use trace::{EndedSpan, SpanSink, Tracer};

#[derive(Default)]
struct Kept(Mutex<Vec<EndedSpan>>);

impl SpanSink for Kept {
    fn ended(&self, span: EndedSpan) {
        self.0.lock().expect("whole").push(span);
    }
}

impl Kept {
    /// Names and errors of what has ended since the last look.
    fn take(&self) -> Vec<(String, Option<String>)> {
        let spans = std::mem::take(&mut *self.0.lock().expect("whole"));
        spans.into_iter().map(|span| (span.name.into_owned(), span.error.map(|(class, _)| class))).collect()
    }
}

fn tracer(ratio: f64) -> (Arc<Tracer>, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    (Tracer::new(Arc::new(ManualClock::new(1_000)), Rng::seeded(1), ratio, kept.clone()), kept)
}

/// A Get whose header has `traceparent`, as the header of HBase's client that traces.
fn traced_get(id: u32, traceparent: &str) -> BytesMut {
    let headers = [("traceparent".to_owned(), traceparent.to_owned())].into();
    let header = pb::RequestHeader {
        call_id: Some(id),
        method_name: Some("Get".into()),
        request_param: Some(true),
        trace_info: Some(pb::RpctInfo { headers, ..Default::default() }),
        ..Default::default()
    };
    let get = pb::GetRequest { get: pb::Get { row: "r".into(), ..Default::default() }, ..Default::default() };
    let mut frame = BytesMut::new();
    put_frame(&mut frame, &header, Some(&get.encode_to_vec()), 0);
    frame
}

#[tokio::test]
async fn a_call_is_a_part_of_the_trace_that_its_header_names() {
    let server = start(Toy::default(), limits());
    let (tracer, kept) = tracer(0.0);
    server.trace_by(tracer);
    let mut raw = Raw::ready(&server).await;
    raw.send(&traced_get(1, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")).await;
    raw.frame().await.expect("an answer");
    let spans = std::mem::take(&mut *kept.0.lock().expect("whole"));
    let [get, process] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*get.name, &*process.name), ("hbase.pb.ClientService/Get", "RpcServer.process"));
    assert_eq!(
        (process.trace_id, process.parent_id),
        (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)
    );
    assert_eq!((get.trace_id, get.parent_id), (process.trace_id, process.span_id));
    // The client does not record it, or says nothing that can be understood, which is as nothing; then a part of the calls is traced: none.
    for parent in ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "nonsense"] {
        raw.send(&traced_get(2, parent)).await;
        raw.frame().await.expect("an answer");
    }
    raw.send(&get_request(3, b"r")).await;
    raw.frame().await.expect("an answer");
    assert_eq!(kept.take(), []);
}

#[tokio::test]
async fn a_call_ends_once_however_it_is_answered() {
    let toy = Toy::default();
    let (waiting, gate) = (toy.waiting.clone(), toy.gate.clone());
    let server = start(toy, limits());
    let (tracer, kept) = tracer(1.0);
    server.trace_by(tracer);
    let mut raw = Raw::ready(&server).await;
    let ended = |method: &str, class: Option<&str>| {
        let class = class.map(str::to_owned);
        vec![(format!("hbase.pb.ClientService/{method}"), class.clone()), ("RpcServer.process".to_owned(), class)]
    };
    // Deferred, to whoever answers from another thread.
    raw.send(&waiting_request(1, 5)).await;
    while waiting.lock().expect("whole").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(kept.take(), [], "it is under way");
    answer_waiting(&waiting);
    raw.frame().await.expect("an answer");
    assert_eq!(kept.take(), ended("Scan", None));
    // By a task.
    gate.add_permits(1);
    raw.send(&request(2, "BulkLoadHFile", b"", b"")).await;
    raw.frame().await.expect("an answer");
    assert_eq!(kept.take(), ended("BulkLoadHFile", None));
    // By a panic, at once and in a task, and by nobody.
    let io = Some("java.io.IOException");
    for method in ["CleanupBulkLoad", "PrepareBulkLoad", "ExecRegionServerService"] {
        raw.send(&request(3, method, b"", b"")).await;
        raw.frame().await.expect("an answer");
        assert_eq!(kept.take(), ended(method, io), "{method}");
    }
}
