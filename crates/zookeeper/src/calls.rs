//! How long the ensemble takes to answer, and how often it does not. Follows: `MetricsZooKeeperSource`.

use base::metrics::{Bean, Histogram, Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;
use zookeeper_client::Error;

/// `ZooKeeper,sub=ZOOKEEPER`: calls of an ensemble.
const BEAN: Bean = Bean { tail: "ZooKeeper,sub=ZOOKEEPER", record: "ZOOKEEPER", context: "zookeeper" };

/// Calls so far.
#[derive(Debug)]
pub(crate) struct Calls {
    reads: Histogram,
    writes: Histogram,
    syncs: Histogram,
    failed: AtomicU64,
}

impl Default for Calls {
    fn default() -> Calls {
        let times = || Histogram::new(Unit::Micros);
        Calls { reads: times(), writes: times(), syncs: times(), failed: AtomicU64::new(0) }
    }
}

impl Calls {
    pub async fn read<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.timed(&self.reads, call).await
    }

    pub async fn write<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.timed(&self.writes, call).await
    }

    pub async fn sync<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.timed(&self.syncs, call).await
    }

    async fn timed<T>(&self, times: &Histogram, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let began = Instant::now();
        let answer = call.await;
        times.record(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
        if answer.as_ref().is_err_and(|error| !is_an_answer(error)) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    pub fn register(self: &Arc<Calls>, registry: &Registry) {
        let calls = Arc::clone(self);
        registry.collect(move |sink, now_ms| {
            sink.bean(BEAN)
                .counter("TotalFailedZKCalls", calls.failed.load(Ordering::Relaxed))
                .histogram("ReadOperationLatency", &calls.reads, now_ms)
                .histogram("WriteOperationLatency", &calls.writes, now_ms)
                .histogram("SyncOperationLatency", &calls.syncs, now_ms);
        });
    }
}

/// What tells how nodes are, and is no failure.
fn is_an_answer(error: &Error) -> bool {
    matches!(error, Error::NoNode | Error::NodeExists | Error::BadVersion | Error::NotEmpty)
}
