use super::*;
use base::ManualClock;
use std::sync::Mutex;

#[derive(Default)]
struct Kept(Mutex<Vec<EndedSpan>>);

impl SpanSink for Kept {
    fn ended(&self, span: EndedSpan) {
        self.0.lock().expect("whole").push(span);
    }
}

fn tracer(ratio: f64) -> (Arc<Tracer>, Arc<ManualClock>, Arc<Kept>) {
    let (clock, kept) = (Arc::new(ManualClock::new(1_700_000_000_000)), Arc::new(Kept::default()));
    (Tracer::new(clock.clone(), Rng::seeded(7), ratio, kept.clone()), clock, kept)
}

#[test]
fn a_call_its_work_and_its_wait_are_one_tree_under_the_parent_of_the_client() {
    let (tracer, clock, kept) = tracer(0.0);
    let parent = TraceParent { trace_id: 0xABC, span_id: 0xDEF, is_sampled: true };
    let received = clock.monotonic_us();
    let call = tracer.call(Some(parent), "ClientService", "Mutate", received).expect("is traced");
    clock.advance_ms(10);
    let begun = clock.monotonic_us();
    {
        let _working = enter(Some(&call));
        let mut region = begin("Region.put").expect("works on a call that is traced");
        region.set("db.hbase.regions", Value::Texts(vec!["t,,1.a.".to_owned()]));
        region.event(Event { name: "block cache hit", at_us: clock.monotonic_us(), attributes: Vec::new() });
        let sync = {
            let _in_region = region.enter();
            current().expect("in the region").begin("WAL.sync")
        };
        clock.advance_ms(100);
        drop(sync);
        clock.advance_ms(5);
    }
    assert!(current().is_none());
    call.ended(begun, Some(("java.io.IOException", "no")));
    call.ended(begun, None);
    let spans = kept.0.lock().expect("whole");
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["WAL.sync", "Region.put", "hbase.pb.ClientService/Mutate", "RpcServer.process"]);
    assert!(spans.iter().all(|span| span.trace_id == 0xABC));
    let parents: Vec<_> = spans.iter().map(|span| span.parent_id).collect();
    assert_eq!(parents, [spans[1].span_id, spans[2].span_id, spans[3].span_id, 0xDEF]);
    let took: Vec<_> = spans.iter().map(|span| span.ended_at_us - span.begun_at_us).collect();
    assert_eq!(took, [100_000, 105_000, 105_000, 115_000]);
    assert_eq!(spans[3].begun_at_us, 1_700_000_000_000_000);
    assert_eq!(spans[1].events[0].at_us, 1_700_000_000_010_000);
    assert_eq!(spans.iter().map(|span| span.is_parent_remote).collect::<Vec<_>>(), [false, false, false, true]);
    assert_eq!(spans[2].error.as_ref().map(|(class, _)| &**class), Some("java.io.IOException"));
    assert_eq!(spans[2].attributes[0], ("rpc.system", Value::from("HBASE_RPC")));
}

#[test]
fn a_client_that_has_decided_is_obeyed_and_others_are_sampled() {
    let counted = |ratio: f64, parent: Option<TraceParent>| {
        let (tracer, ..) = tracer(ratio);
        (0..10_000).filter(|_| tracer.call(parent, "s", "m", 0).is_some()).count()
    };
    let parent = |is_sampled| Some(TraceParent { trace_id: 1, span_id: 1, is_sampled });
    assert_eq!((counted(0.0, None), counted(1.0, None)), (0, 10_000));
    assert_eq!((counted(0.0, parent(true)), counted(1.0, parent(false))), (10_000, 0));
    let tenth = counted(0.1, None);
    assert!((900..1100).contains(&tenth), "{tenth}");
}

#[test]
fn a_span_keeps_so_many_events_and_counts_the_others() {
    let (tracer, _, kept) = tracer(1.0);
    let call = tracer.call(None, "s", "m", 0).expect("is traced");
    let _working = enter(Some(&call));
    let mut span = begin("Region.get").expect("works on a call that is traced");
    for _ in 0..200 {
        span.event(Event { name: "block cache hit", at_us: 0, attributes: Vec::new() });
    }
    drop(span);
    let spans = kept.0.lock().expect("whole");
    assert_eq!((spans[0].events.len(), spans[0].dropped_events), (128, 72));
}

#[test]
fn work_on_a_call_that_is_not_traced_leaves_the_place_as_it_is() {
    let (tracer, _, kept) = tracer(1.0);
    assert!(begin("Region.get").is_none());
    let call = tracer.call(None, "s", "m", 0).expect("is traced");
    let working = enter(Some(&call));
    let not = enter(None);
    drop(not);
    assert!(begin("Region.get").is_some());
    drop(working);
    assert!(begin("Region.get").is_none());
    assert_eq!(kept.0.lock().expect("whole").len(), 1);
}

#[test]
fn work_that_nobody_called_for_is_a_trace_and_goes_on_in_other_servers() {
    let (tracer, clock, kept) = tracer(1.0);
    let cell = TracerCell::default();
    assert!(cell.begin(|| unreachable!("nobody hears")).is_none());
    cell.set(tracer);
    let procedure = cell.begin(|| "CreateTableProcedure".into()).expect("all are sampled");
    let told = {
        let _in_it = procedure.enter();
        let call = begin_call("AdminService", "ExecuteProcedures", "host:16020").expect("a part of it");
        clock.advance_ms(3);
        call.place().traceparent()
    };
    assert!(begin_call("AdminService", "ExecuteProcedures", "host:16020").is_none(), "nothing is traced here");
    drop(procedure);
    let spans = kept.0.lock().expect("whole");
    let [call, procedure] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*call.name, call.kind), ("hbase.pb.AdminService/ExecuteProcedures", SpanKind::Client));
    assert_eq!((&*procedure.name, procedure.kind), ("CreateTableProcedure", SpanKind::Internal));
    assert_eq!((call.parent_id, procedure.parent_id), (procedure.span_id, 0));
    let parent = TraceParent::parse(&told).expect("what it says is read");
    assert_eq!((parent.trace_id, parent.span_id, parent.is_sampled), (call.trace_id, call.span_id, true));
    assert_eq!(call.attributes[3..], [("net.peer.name", Value::from("host")), ("net.peer.port", Value::from(16020))]);
    assert!(!call.is_parent_remote && !procedure.is_parent_remote);
}

#[test]
fn a_future_works_at_its_place_whenever_it_is_polled_and_nobody_else_does() {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    let (tracer, _, kept) = tracer(1.0);
    let span = tracer.begin(None, SpanKind::Server, || "GET".into()).expect("sampled");
    let mut polled = 0;
    let work = std::future::poll_fn(move |_| {
        assert!(current().is_some());
        polled += 1;
        if polled < 3 {
            return Poll::Pending;
        }
        drop(begin("Region.get"));
        Poll::Ready(())
    });
    let mut work = std::pin::pin!(within(Some(span.place().clone()), work));
    let mut context = Context::from_waker(Waker::noop());
    while work.as_mut().poll(&mut context).is_pending() {
        assert!(current().is_none());
    }
    assert!(current().is_none());
    drop(span);
    let spans = kept.0.lock().expect("whole");
    assert_eq!((spans.len(), spans[0].parent_id, spans[1].kind), (2, spans[1].span_id, SpanKind::Server));
    let mut nowhere = std::pin::pin!(within(None, async { current().is_none() }));
    assert_eq!(nowhere.as_mut().poll(&mut context), Poll::Ready(true));
}
