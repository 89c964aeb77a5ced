//! How long reads and writes of store files take, and how often what is read is damaged. Follows: `MetricsIO`, `HFile#updateReadLatency`,
//! `HFile#updateWriteLatency`.

use base::metrics::{Histogram, Unit};
use std::sync::atomic::{AtomicU64, Ordering};

/// Times and counts of all files that use one cache. Timed only where somebody has a clock ([`crate::BlockCache::time_reads_by`]).
pub struct FileReads {
    /// Reads of a block by itself.
    preads: Histogram,
    /// Reads of a scan or a compaction that go on where the one before has ended.
    reads: Histogram,
    /// What was handed to the volume of files being written.
    writes: Histogram,
    /// Reads that took longer than this are slow; `None`: none is.
    slow_ms: Option<u64>,
    slow: AtomicU64,
    damaged: AtomicU64,
}

impl FileReads {
    pub(crate) fn new(slow_ms: Option<u64>) -> FileReads {
        let times = || Histogram::new(Unit::Micros);
        FileReads {
            preads: times(),
            reads: times(),
            writes: times(),
            slow_ms,
            slow: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
        }
    }

    /// Reads of single blocks, in microseconds. HBase: fsPReadTime.
    pub fn pread_times(&self) -> &Histogram {
        &self.preads
    }

    /// Reads in sequence, in microseconds. HBase: fsReadTime.
    pub fn read_times(&self) -> &Histogram {
        &self.reads
    }

    /// Writes of blocks that the volume was handed at once, and of trailers, in microseconds; making a file durable is not among them.
    /// HBase: fsWriteTime.
    pub fn write_times(&self) -> &Histogram {
        &self.writes
    }

    /// Reads that took longer than `hbase.fs.reader.warn.time.ms`.
    pub fn slow(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }

    /// Blocks that were not what their checksums say. HBase: fsChecksumFailureCount.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// A read took so long.
    pub(crate) fn took(&self, us: u64, is_sequential: bool) {
        if is_sequential {
            self.reads.record(us)
        } else {
            self.preads.record(us)
        }
        if self.slow_ms.is_some_and(|slow_ms| us > slow_ms.saturating_mul(1000)) {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A write took so long.
    pub(crate) fn wrote(&self, us: u64) {
        self.writes.record(us)
    }

    pub(crate) fn found_damage(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }
}
