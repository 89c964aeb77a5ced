//! How long operations take and how much they move, under HBase's names. Follows: `MetricsRegionServer`, `MetricsRegionServerSource`.

use base::Adder;
use base::metrics::{Histogram, Sink, Unit};
use model::{Mutation, MutationKind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Get,
    Put,
    Delete,
    Increment,
    Append,
    /// Puts of one batch, from its beginning until all are durable.
    PutBatch,
    DeleteBatch,
    /// Any mutation under a condition; those below count beside it.
    CheckAndMutate,
    CheckAndPut,
    CheckAndDelete,
    /// A scan's call that reads.
    ScanTime,
    /// A call with entries of a primary's log for its read replica.
    Replay,
}

/// Each operation's metric, and the one that counts the slow ones.
const NAMES: [(&str, Option<&str>); 12] = [
    ("get", Some("slowGetCount")),
    ("put", Some("slowPutCount")),
    ("delete", Some("slowDeleteCount")),
    ("increment", Some("slowIncrementCount")),
    ("append", Some("slowAppendCount")),
    ("putBatch", None),
    ("deleteBatch", None),
    ("checkAndMutate", None),
    ("checkAndPut", None),
    ("checkAndDelete", None),
    ("scanTime", None),
    ("replay", None),
];

impl Operation {
    /// What a mutation counts as that a call asks for alone.
    pub fn of(mutation: &Mutation, is_conditional: bool) -> &'static [Operation] {
        match (mutation.kind, is_conditional) {
            (MutationKind::Put, false) => &[Operation::Put],
            (MutationKind::Delete, false) => &[Operation::Delete],
            (MutationKind::Increment, false) => &[Operation::Increment],
            (MutationKind::Append, false) => &[Operation::Append],
            (MutationKind::Put, true) => &[Operation::CheckAndMutate, Operation::CheckAndPut],
            (MutationKind::Delete, true) => &[Operation::CheckAndMutate, Operation::CheckAndDelete],
            (MutationKind::Increment | MutationKind::Append, true) => &[Operation::CheckAndMutate],
        }
    }

    /// What puts and deletes count as that a batch has together.
    pub fn of_batch<'a>(mut mutations: impl Iterator<Item = &'a Mutation> + Clone) -> &'static [Operation] {
        let has_puts = mutations.clone().any(|mutation| mutation.kind == MutationKind::Put);
        let has_deletes = mutations.any(|mutation| mutation.kind == MutationKind::Delete);
        match (has_puts, has_deletes) {
            (true, true) => &[Operation::PutBatch, Operation::DeleteBatch],
            (true, false) => &[Operation::PutBatch],
            (false, true) => &[Operation::DeleteBatch],
            (false, false) => &[],
        }
    }
}

/// A compaction that has been done.
pub(crate) struct Compacted {
    pub is_major: bool,
    pub took_us: u64,
    pub input_files: u64,
    pub input_bytes: u64,
    pub output_bytes: u64,
}

/// What compactions of one kind (all, or major ones) took.
struct Compactions {
    time: Histogram,
    input_files: Histogram,
    input_bytes: Histogram,
    output_files: Histogram,
    output_bytes: Histogram,
    input_sum_bytes: AtomicU64,
    output_sum_bytes: AtomicU64,
}

impl Compactions {
    fn new() -> Compactions {
        Compactions {
            time: Histogram::new(Unit::Micros),
            input_files: Histogram::new(Unit::Count),
            input_bytes: Histogram::new(Unit::Bytes),
            output_files: Histogram::new(Unit::Count),
            output_bytes: Histogram::new(Unit::Bytes),
            input_sum_bytes: AtomicU64::new(0),
            output_sum_bytes: AtomicU64::new(0),
        }
    }

    fn record(&self, done: &Compacted) {
        self.time.record(done.took_us);
        self.input_files.record(done.input_files);
        self.input_bytes.record(done.input_bytes);
        self.output_files.record(u64::from(done.output_bytes > 0));
        self.output_bytes.record(done.output_bytes);
        self.input_sum_bytes.fetch_add(done.input_bytes, Relaxed);
        self.output_sum_bytes.fetch_add(done.output_bytes, Relaxed);
    }
}

/// The measurements of a server.
pub(crate) struct Operations {
    times: [Histogram; NAMES.len()],
    slow: [AtomicU64; NAMES.len()],
    /// From so long on an operation is slow.
    slow_us: u64,
    scan_sizes: Histogram,
    /// Bytes of data blocks that each scan's call went through, where it did,
    scan_block_bytes: Histogram,
    /// and each get.
    get_block_bytes: Histogram,
    /// The same of changes that read before they write.
    check_block_bytes: Histogram,
    increment_block_bytes: Histogram,
    append_block_bytes: Histogram,
    /// How long writes were held up for the memstores' sake.
    updates_blocked_us: AtomicU64,
    flush_times: Histogram,
    flush_memstore_sizes: Histogram,
    flush_output_sizes: Histogram,
    flushed_memstore_bytes: AtomicU64,
    compactions: Compactions,
    major_compactions: Compactions,
    /// Scans of whole regions that were begun.
    pub full_scans: Adder,
}

impl Operations {
    /// Nothing was measured yet.
    pub fn new(slow_us: u64) -> Operations {
        Operations {
            times: std::array::from_fn(|_| Histogram::new(Unit::Micros)),
            slow: std::array::from_fn(|_| AtomicU64::new(0)),
            slow_us,
            scan_sizes: Histogram::new(Unit::Bytes),
            scan_block_bytes: Histogram::new(Unit::Bytes),
            get_block_bytes: Histogram::new(Unit::Bytes),
            check_block_bytes: Histogram::new(Unit::Bytes),
            increment_block_bytes: Histogram::new(Unit::Bytes),
            append_block_bytes: Histogram::new(Unit::Bytes),
            updates_blocked_us: AtomicU64::new(0),
            flush_times: Histogram::new(Unit::Micros),
            flush_memstore_sizes: Histogram::new(Unit::Bytes),
            flush_output_sizes: Histogram::new(Unit::Bytes),
            flushed_memstore_bytes: AtomicU64::new(0),
            compactions: Compactions::new(),
            major_compactions: Compactions::new(),
            full_scans: Adder::default(),
        }
    }

    /// An operation has ended that took so long.
    #[inline]
    pub fn ended(&self, operation: Operation, took_us: u64) {
        self.ended_together(operation, took_us, 1);
    }

    /// So many operations have ended that took so long each.
    #[inline]
    pub fn ended_together(&self, operation: Operation, took_us: u64, times: u64) {
        self.times[operation as usize].record_many(took_us, times);
        if took_us > self.slow_us {
            self.slow[operation as usize].fetch_add(times, Relaxed);
        }
    }

    /// A scan's call has read so many bytes of cells, and gone through so many of data blocks.
    pub fn scanned(&self, took_us: u64, bytes: u64, block_bytes: u64) {
        self.ended(Operation::ScanTime, took_us);
        self.scan_sizes.record(bytes);
        if block_bytes > 0 {
            self.scan_block_bytes.record(block_bytes);
        }
    }

    /// So many gets have gone through so many bytes of data blocks each.
    #[inline]
    pub fn got(&self, block_bytes: u64, times: u64) {
        if block_bytes > 0 {
            self.get_block_bytes.record_many(block_bytes, times);
        }
    }

    /// A change that reads before it writes has gone through so many bytes of data blocks.
    pub fn changed(&self, kind: MutationKind, is_conditional: bool, block_bytes: u64) {
        if block_bytes == 0 {
            return;
        }
        match (kind, is_conditional) {
            (_, true) => self.check_block_bytes.record(block_bytes),
            (MutationKind::Increment, false) => self.increment_block_bytes.record(block_bytes),
            (MutationKind::Append, false) => self.append_block_bytes.record(block_bytes),
            (MutationKind::Put | MutationKind::Delete, false) => {}
        }
    }

    /// A write was held up for so long because the memstores hold much.
    pub fn updates_blocked(&self, blocked_us: u64) {
        self.updates_blocked_us.fetch_add(blocked_us, Relaxed);
    }

    /// A flush has written what took `memstore_bytes` in memory to files of `file_bytes`.
    pub fn flushed(&self, took_us: u64, memstore_bytes: u64, file_bytes: u64) {
        self.flush_times.record(took_us);
        self.flush_memstore_sizes.record(memstore_bytes);
        self.flush_output_sizes.record(file_bytes);
        self.flushed_memstore_bytes.fetch_add(memstore_bytes, Relaxed);
    }

    /// A compaction was done.
    pub fn compacted(&self, done: &Compacted) {
        self.compactions.record(done);
        if done.is_major {
            self.major_compactions.record(done);
        }
    }

    /// Puts all of it into `sink`, whose bean is set.
    pub fn collect(&self, sink: &mut Sink, now_ms: i64) {
        for (at, (name, slow)) in NAMES.into_iter().enumerate() {
            sink.histogram(name, &self.times[at], now_ms);
            if let Some(slow) = slow {
                sink.counter(slow, self.slow[at].load(Relaxed));
            }
        }
        let (all, major) = (&self.compactions, &self.major_compactions);
        let sum = |counter: &AtomicU64| counter.load(Relaxed);
        let histograms = [
            &self.scan_block_bytes,
            &self.get_block_bytes,
            &self.check_block_bytes,
            &self.increment_block_bytes,
            &self.append_block_bytes,
        ];
        let block_bytes = histograms.iter().map(|histogram| histogram.all().sum()).sum();
        sink.histogram("scanSize", &self.scan_sizes, now_ms)
            .histogram("scanBlockBytesScanned", &self.scan_block_bytes, now_ms)
            .histogram("getBlockBytesScanned", &self.get_block_bytes, now_ms)
            .histogram("checkAndMutateBlockBytesScanned", &self.check_block_bytes, now_ms)
            .histogram("incrementBlockBytesScanned", &self.increment_block_bytes, now_ms)
            .histogram("appendBlockBytesScanned", &self.append_block_bytes, now_ms)
            .counter("blockBytesScannedCount", block_bytes)
            .counter("updatesBlockedTime", sum(&self.updates_blocked_us) / 1000)
            .histogram("flushTime", &self.flush_times, now_ms)
            .histogram("flushMemstoreSize", &self.flush_memstore_sizes, now_ms)
            .histogram("flushOutputSize", &self.flush_output_sizes, now_ms)
            .counter("flushedMemstoreBytes", sum(&self.flushed_memstore_bytes))
            .histogram("compactionTime", &all.time, now_ms)
            .histogram("compactionInputFileCount", &all.input_files, now_ms)
            .histogram("compactionInputSize", &all.input_bytes, now_ms)
            .histogram("compactionOutputFileCount", &all.output_files, now_ms)
            .histogram("compactionOutputSize", &all.output_bytes, now_ms)
            .counter("compactedInputBytes", sum(&all.input_sum_bytes))
            .counter("compactedOutputBytes", sum(&all.output_sum_bytes))
            .histogram("majorCompactionTime", &major.time, now_ms)
            .histogram("majorCompactionInputFileCount", &major.input_files, now_ms)
            .histogram("majorCompactionInputSize", &major.input_bytes, now_ms)
            .histogram("majorCompactionOutputFileCount", &major.output_files, now_ms)
            .histogram("majorCompactionOutputSize", &major.output_bytes, now_ms)
            .counter("majorCompactedInputBytes", sum(&major.input_sum_bytes))
            .counter("majorCompactedOutputBytes", sum(&major.output_sum_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metrics::{Number, REGION_SERVER, Registry};
    use std::sync::Arc;

    fn value(registry: &Registry, name: &str) -> Option<Number> {
        registry.read(0).iter().find(|sample| sample.name == name).map(|sample| sample.number)
    }

    fn registered(slow_us: u64) -> (Arc<Registry>, Arc<Operations>) {
        let (registry, operations) = (Registry::new(), Arc::new(Operations::new(slow_us)));
        let seen = operations.clone();
        registry.collect(move |sink, now_ms| seen.collect(sink.bean(REGION_SERVER), now_ms));
        (registry, operations)
    }

    #[test]
    fn each_operation_is_counted_under_its_own_name_and_slow_ones_twice() {
        let (registry, operations) = registered(1000);
        operations.ended(Operation::Put, 1001);
        operations.ended_together(Operation::Get, 1000, 3);
        operations.ended(Operation::ScanTime, 5);
        let count = |name: &str| value(&registry, name);
        assert_eq!((count("Put_num_ops"), count("slowPutCount")), (Some(Number::Long(1)), Some(Number::Long(1))));
        assert_eq!((count("Get_num_ops"), count("slowGetCount")), (Some(Number::Long(3)), Some(Number::Long(0))));
        assert_eq!(
            (count("ScanTime_num_ops"), count("Append_num_ops")),
            (Some(Number::Long(1)), Some(Number::Long(0)))
        );
    }

    #[test]
    fn a_major_compaction_counts_among_all_and_among_its_own() {
        let (registry, operations) = registered(1000);
        let done =
            |is_major, output_bytes| Compacted { is_major, took_us: 9, input_files: 3, input_bytes: 70, output_bytes };
        operations.compacted(&done(false, 50));
        operations.compacted(&done(true, 0));
        let count = |name: &str| value(&registry, name);
        assert_eq!(count("CompactionTime_num_ops"), Some(Number::Long(2)));
        assert_eq!(count("MajorCompactionTime_num_ops"), Some(Number::Long(1)));
        assert_eq!(count("compactedInputBytes"), Some(Number::Long(140)));
        assert_eq!(count("MajorCompactionOutputFileCount_max"), Some(Number::Long(0)), "nothing was left of it");
    }
}
