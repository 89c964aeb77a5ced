//! What pages show of a region server beside its status.

use crate::server::RegionServer;
use base::Task;
use proto::pb;
use std::sync::Arc;

/// A flush or compaction that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningWork {
    /// `flush`, `compaction`, `major compaction`.
    pub what: &'static str,
    /// Encoded name of its region.
    pub region: Arc<str>,
}

impl RegionServer {
    /// Flushes and compactions that run now. Those that a client waits for itself are not among them.
    pub fn running_work(&self) -> Vec<RunningWork> {
        let maintenance = &self.maintenance;
        let kinds = [
            ("flush", maintenance.flushes.working()),
            ("compaction", maintenance.small_compactions.working()),
            ("major compaction", maintenance.large_compactions.working()),
        ];
        let of = |(what, regions): (&'static str, Vec<Arc<str>>)| {
            regions.into_iter().map(move |region| RunningWork { what, region })
        };
        kinds.into_iter().flat_map(of).collect()
    }

    /// Flushes and compactions that run, whoever waits for them, and those that ended within the last minute.
    pub fn tasks(&self) -> Vec<Task> {
        self.tasks.list()
    }

    /// The newest slow calls, or calls with large answers, newest first.
    pub fn slow_calls(&self, large: bool, most: u32) -> Vec<pb::SlowLogPayload> {
        use pb::slow_log_response_request::LogType;
        let log_type = if large { LogType::LargeLog } else { LogType::SlowLog };
        let request = pb::SlowLogResponseRequest {
            limit: Some(most),
            log_type: Some(log_type as i32),
            ..pb::SlowLogResponseRequest::default()
        };
        self.slow_log.entries(&request)
    }
}
