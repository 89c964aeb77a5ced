//! What a scan counts. Follows: `ScanMetrics`, `ServerSideScanMetrics`.

use std::collections::BTreeMap;

use proto::pb;

use crate::Error;

/// What a scan has cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanMetrics {
    /// Replies that came.
    pub rpc_calls: u64,
    /// Calls that failed and were tried again.
    pub rpc_retries: u64,
    /// Of these: the region was not there.
    pub not_serving_region: u64,
    /// Bytes of the replies.
    pub bytes_in_results: u64,
    /// Regions scanned to their ends, or to the scan's.
    pub regions_scanned: u64,
    /// What servers counted, under HBase's names: `ROWS_SCANNED`, `ROWS_FILTERED`, `BLOCK_BYTES_SCANNED` and others.
    pub server: BTreeMap<String, i64>,
}

impl ScanMetrics {
    pub(super) fn note_reply(&mut self, message: &pb::ScanResponse, bytes: usize) {
        self.rpc_calls += 1;
        self.bytes_in_results += bytes as u64;
        for pair in message.scan_metrics.iter().flat_map(|metrics| &metrics.metrics) {
            let count = self.server.entry(pair.name().to_owned()).or_default();
            *count = count.saturating_add(pair.value());
        }
    }

    pub(super) fn note_failure(&mut self, error: &Error) {
        self.rpc_retries += 1;
        self.not_serving_region += u64::from(error.is_not_serving());
    }
}
