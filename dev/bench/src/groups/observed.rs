//! What it costs to be observed: the steps that a get makes for tracing and for key statistics, and a get of a server that has more or less of it
//! switched on.

use super::wire::{Requests, Wire, one_cell};
use crate::Group;
use crate::measure::{Done, Session, Size, Turn};
use anyhow::Context;
use base::{Clock, Holder, Ledger, Rng, SystemClock};
use key_statistics::{KeySampler, Kind};
use model::TableName;
use rpc::{ClientLoad, UserLoad};
use std::hint::black_box;
use std::sync::Arc;
use testkit::collector::Collector;
use trace::{EndedSpan, SpanSink, Tracer, Value};

pub const STEPS: Group = Group {
    names: &["observed.trace.off", "observed.trace.none", "observed.trace.all", "observed.keys", "observed.users"],
    needs_server: false,
    run: steps,
};

pub const CALLS: Group = Group {
    names: &[
        "rpc.observed.get.plain",
        "rpc.observed.get.keys",
        "rpc.observed.get.users",
        "rpc.observed.get.everything",
        "rpc.observed.get.traced.none",
        "rpc.observed.get.traced.percent",
        "rpc.observed.get.traced.all",
    ],
    needs_server: true,
    run: calls,
};

/// Gets between two looks at whether time is over.
const STEP: u64 = 1000;

/// Where spans end in front of whoever sends them.
struct Nowhere;

impl SpanSink for Nowhere {
    fn ended(&self, span: EndedSpan) {
        drop(black_box(span));
    }
}

fn steps(session: &mut Session<'_>) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let tracer = |ratio| Tracer::new(clock.clone(), Rng::seeded(1), ratio, Arc::new(Nowhere));
    let kinds = [
        ("observed.trace.off", None),
        ("observed.trace.none", Some(tracer(0.0))),
        ("observed.trace.all", Some(tracer(1.0))),
    ];
    for (name, tracer) in kinds {
        session.measure(
            name,
            Size::Timed { most: u64::MAX, step: STEP },
            |_| Ok(()),
            |(), n| {
                for _ in 0..n {
                    traced_get(black_box(tracer.as_ref()), &*clock);
                }
                Ok(Done { ops: n, bytes: 0 })
            },
        )?;
    }
    let (sampler, table) = (KeySampler::new(), TableName::parse("bench")?);
    session.measure(
        "observed.keys",
        Size::Timed { most: u64::MAX, step: STEP },
        |_| {
            // As a server does every few seconds.
            drop(sampler.take());
            Ok(())
        },
        |(), n| {
            for _ in 0..n {
                black_box(&sampler).passed(&table, Kind::Read, 1, |_| (b"row of twenty bytes!", 1000));
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )?;
    let ledger = Ledger::new(1 << 30);
    let charge = ledger.try_charge(Holder::Users, UserLoad::BYTES).context("a gigabyte has room for a user")?;
    let load = ClientLoad { user: Some(Arc::new(UserLoad::new(charge))), ..ClientLoad::default() };
    session.measure(
        "observed.users",
        Size::Timed { most: u64::MAX, step: STEP },
        |_| Ok(()),
        |(), n| {
            for _ in 0..n {
                counted_get(black_box(&load));
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}

/// What a get does for the metrics of its user.
fn counted_get(load: &ClientLoad) {
    load.reads.add(1);
    if let Some(user) = &load.user {
        user.block_bytes.add(1000);
        user.times[0].record_many(73, 1);
    }
}

/// What the port, the thread that answers and the work on the region do for tracing in a get.
fn traced_get(tracer: Option<&Arc<Tracer>>, clock: &dyn Clock) {
    // The port reads its clock for its metrics, traced or not.
    let call = tracer.and_then(|tracer| tracer.call(None, "ClientService", "Get", clock.monotonic_us()));
    let entered = trace::enter(call.as_ref());
    if let Some(mut span) = trace::begin("Region.get") {
        span.set("db.hbase.regions", Value::Texts(vec!["bench,,1.0123456789abcdef0123456789abcdef.".to_owned()]));
        drop(span.enter());
    }
    drop(entered);
    if let Some(call) = call {
        call.ended(clock.monotonic_us(), None);
    }
}

fn calls(session: &mut Session<'_>) -> anyhow::Result<()> {
    let collector = Collector::start_forgetful()?;
    let endpoint = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    let traced =
        |ratio: &str| vec!["basalt.key.statistics.enabled=false".to_owned(), endpoint.clone(), ratio.to_owned()];
    let set = |settings: &[&str]| settings.iter().map(|setting| (*setting).to_owned()).collect::<Vec<_>>();
    // Metrics of tables and regions are counted always.
    let kinds = [
        ("rpc.observed.get.plain", set(&["basalt.key.statistics.enabled=false"])),
        ("rpc.observed.get.keys", set(&[])),
        (
            "rpc.observed.get.users",
            set(&["basalt.key.statistics.enabled=false", "hbase.regionserver.user.metrics.enabled=true"]),
        ),
        ("rpc.observed.get.everything", set(&["hbase.regionserver.user.metrics.enabled=true"])),
        ("rpc.observed.get.traced.none", traced("basalt.trace.sampler.ratio=0")),
        ("rpc.observed.get.traced.percent", traced("basalt.trace.sampler.ratio=0.01")),
        ("rpc.observed.get.traced.all", traced("basalt.trace.sampler.ratio=1")),
    ];
    let mut servers: Vec<(&'static str, Wire, Requests)> = Vec::new();
    // Whichever are wanted, they are compared with the plain one.
    let is_wanted = |name: &str, at: usize| at == 0 || session.wants(name);
    for (_, (name, settings)) in kinds.into_iter().enumerate().filter(|(at, (name, _))| is_wanted(name, *at)) {
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let wire = Wire::start(session, &settings)?;
        let gets = wire.gets(&wire.present());
        servers.push((name, wire, gets));
    }
    let turns = servers.iter().map(|(name, wire, gets)| Turn {
        name,
        whose: wire.whose(),
        work: Box::new(move |n| {
            wire.send(gets, n, AT_ONCE, one_cell)?;
            Ok(Done { ops: n, bytes: 0 })
        }),
    });
    session.measure_in_turns(AT_ONCE, turns.collect())
}

/// Calls that wait for their replies at a time.
const AT_ONCE: u64 = 32;
