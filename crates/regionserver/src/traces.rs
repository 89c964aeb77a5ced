//! The work of a call on a region, and its wait for the log, as spans of a trace; blocks that it looks at are events. Names and attributes are
//! those of HBase: `HRegion#createRegionSpan`, `AbstractFSWAL#createSpan`, `HFileReaderImpl#readBlock`, `BlockIOUtils`.
//!
//! A write's span ends when the write is in the memstore and its entry in the log's buffer: the wait for the log is a span beside it and not
//! within it as in HBase, for no thread waits there.
//!
//! Besides, what the server does by itself or for a master: `AssignRegionHandler`, `UnassignRegionHandler` and `RSProcedureHandler` as HBase's
//! (`EventHandler#run`), `WAL.rollWriter`; and two that HBase has no spans for, `Region.flush` and `Region.compact`.

use crate::server::RegionServer;
use hfile::{BlockFrom, BlockLook, LooksRecording};
use model::RegionInfo;
use region::{Region, RegionError};
use trace::{Entered, Event, Span, Value};

/// What HBase calls the class of its log.
const WAL_IMPL: &str = "basalt";

/// A span of this thread's work on a region.
pub(crate) struct RegionSpan {
    // In this order: the thread leaves the span before it ends.
    _entered: Entered,
    looks: LooksRecording,
    span: Span,
}

impl RegionSpan {
    /// Begins it, if what this thread does is traced.
    #[inline]
    pub fn begin(name: &'static str, region: &Region) -> Option<RegionSpan> {
        let mut span = trace::begin(name)?;
        span.set("db.hbase.regions", Value::Texts(vec![region.info().name_string()]));
        Some(RegionSpan { _entered: span.enter(), looks: LooksRecording::begin(), span })
    }

    /// It has ended so: what would have had to wait was not done, and is told of when it is.
    pub fn end<T>(mut self, result: &Result<T, RegionError>) {
        match result {
            Err(error) if error.is_would_block() => return self.span.cancel(),
            Err(error) => {
                let exception = crate::errors::exception_of(error);
                self.span.fail(exception.class(), exception.message());
            }
            Ok(_) => {}
        }
        let (looks, more) = self.looks.take();
        looks.into_iter().for_each(|look| self.span.event(event_of(look)));
        self.span.dropped_events(more);
    }
}

/// Does `work` on a region within a span, if it is traced.
pub(crate) fn in_region<T>(
    name: &'static str,
    region: &Region,
    work: impl FnOnce() -> Result<T, RegionError>,
) -> Result<T, RegionError> {
    let span = RegionSpan::begin(name, region);
    let result = work();
    if let Some(span) = span {
        span.end(&result);
    }
    result
}

/// Work of the server's own: a part of what this thread does if that is traced, else a trace by itself, if it is sampled.
pub(crate) fn begin_own(server: &RegionServer, name: &'static str) -> Option<Span> {
    trace::begin(name).or_else(|| server.tracer.begin(|| name.into()))
}

/// Does `work` of the server's own on a region within such a span.
pub(crate) fn on_region<T, E: std::fmt::Display>(
    server: &RegionServer,
    name: &'static str,
    region: &RegionInfo,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let Some(mut span) = begin_own(server, name) else { return work() };
    span.set("db.hbase.regions", Value::Texts(vec![region.name_string()]));
    within(span, work)
}

/// Does `work` within `span`, which ends with it.
pub(crate) fn within<T, E: std::fmt::Display>(mut span: Span, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let result = {
        let _entered = span.enter();
        work()
    };
    if let Err(error) = &result {
        span.fail("java.io.IOException", &error.to_string());
    }
    result
}

/// Rolls a log within a span. Follows: `AbstractFSWAL#rollWriter`.
pub(crate) fn roll(server: &RegionServer, log: &wal::Log) -> wal::Result<Option<wal::Rolled>> {
    let Some(mut span) = begin_own(server, "WAL.rollWriter") else { return log.roll() };
    span.set("db.hbase.wal.impl", WAL_IMPL);
    within(span, || log.roll())
}

/// The wait for the log on behalf of what this thread does, if that is traced; it ends when it is dropped.
#[inline]
pub(crate) fn log_wait() -> Option<Span> {
    let mut span = trace::begin("WAL.sync")?;
    span.set("db.hbase.wal.impl", WAL_IMPL);
    Some(span)
}

fn event_of(look: BlockLook) -> Event {
    let name = match look.from {
        BlockFrom::Cache => "block cache hit",
        BlockFrom::SecondLevel => "block cache hit in the second level",
        BlockFrom::File => "BlockIOUtils.preadWithExtra",
    };
    let mut attributes = vec![
        ("db.hbase.io.hfile.file_name", Value::from(look.path.to_string())),
        ("db.hbase.io.hfile.block_cache_key", Value::from(format!("{}_{}", look.path.name(), look.offset))),
    ];
    if look.from == BlockFrom::File {
        attributes.push(("db.hbase.io.heap_bytes_read", Value::from(u64::from(look.bytes))));
    }
    Event { name, at_us: look.at_us, attributes }
}
