//! Settings of the lanes, under HBase's keys.

use crate::queue::QueueKind;
use base::{Setting, SettingRow};

/// Calls that wait in a lane for each of its handlers, where nothing is set.
pub(crate) const QUEUED_CALLS_PER_HANDLER: usize = 10;
/// Calls that may wait in a lane however few handlers it has, where nothing is set.
pub(crate) const LEAST_QUEUED_CALLS: usize = 1024;
/// Long-running calls that may be under way for each handler; all but a few of them wait for their turn.
pub(crate) const LONG_CALLS_PER_HANDLER: usize = 7;

/// Calls at once in a lane of users' work.
pub const HANDLER_COUNT: Setting<u32> = Setting {
    key: "hbase.regionserver.handler.count",
    default: 30,
    min: 1,
    max: 10_000,
    unit: "count",
    doc: "Calls that read or write files at the same time, in the lane of reads and in that of writes; calls that memory answers need no \
          handler. Those that have run for some milliseconds do not count: they take turns.",
};

/// Calls at once in the lane of system tables.
pub const META_HANDLER_COUNT: Setting<u32> = Setting {
    key: "hbase.regionserver.metahandler.count",
    default: 20,
    min: 1,
    max: 10_000,
    unit: "count",
    doc: "Calls to system tables, and calls of a priority above 10, that read or write files at the same time. They have threads of their \
          own, which users' calls cannot take.",
};

/// Order of waiting calls.
pub const CALL_QUEUE_TYPE: Setting<QueueKind> = Setting {
    key: "hbase.ipc.server.callqueue.type",
    default: QueueKind::Fair,
    min: QueueKind::Fair,
    max: QueueKind::Codel,
    unit: "",
    doc: "Which waiting call is next. fair: clients in turn, so that one client's thousand scans do not shut out another's Get. fifo, \
          deadline and codel as in HBase, whose default is fifo.",
};

/// Calls that may wait.
pub const MAX_CALL_QUEUE_LENGTH: Setting<u32> = Setting {
    key: "hbase.ipc.server.max.callqueue.length",
    default: 0,
    min: 0,
    max: 1_000_000,
    unit: "count",
    doc: "Calls that may wait in one lane; one more is answered with CallQueueTooBigException. 0 takes ten for each handler, and at \
          least 1024.",
};

/// CoDel's target.
pub const CODEL_TARGET_DELAY_MS: Setting<u64> = Setting {
    key: "hbase.ipc.server.callqueue.codel.target.delay",
    default: 100,
    min: 1,
    max: 3_600_000,
    unit: "ms",
    doc: "With codel: the lane is overloaded when no call of an interval waited for less; calls that have waited for twice as long are then \
          dropped with CallDroppedException.",
};

/// CoDel's interval.
pub const CODEL_INTERVAL_MS: Setting<u64> = Setting {
    key: "hbase.ipc.server.callqueue.codel.interval",
    default: 100,
    min: 1,
    max: 3_600_000,
    unit: "ms",
    doc: "With codel: how often it is decided anew whether the lane is overloaded.",
};

/// CoDel's threshold for newest first.
pub const CODEL_LIFO_THRESHOLD: Setting<f64> = Setting {
    key: "hbase.ipc.server.callqueue.codel.lifo.threshold",
    default: 0.8,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "With codel: when the queue is fuller than this, the newest calls go first.",
};

/// Every row of this crate.
pub const ALL: &[&dyn SettingRow] = &[
    &HANDLER_COUNT,
    &META_HANDLER_COUNT,
    &CALL_QUEUE_TYPE,
    &MAX_CALL_QUEUE_LENGTH,
    &CODEL_TARGET_DELAY_MS,
    &CODEL_INTERVAL_MS,
    &CODEL_LIFO_THRESHOLD,
];
