//! The load that a server reports to a master in another process. Follows: `HRegionServer#buildServerLoad`.

use crate::server::RegionServer;
use convert::to_proto;
use parking_lot::Mutex;
use proto::pb;

/// Makes reports; each tells what came since the one before.
#[derive(Debug, Default)]
pub struct LoadReports {
    last: Mutex<Last>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    requests: u64,
    at_us: u64,
    at_ms: u64,
}

fn mib(bytes: u64) -> u32 {
    u32::try_from(bytes >> 20).unwrap_or(u32::MAX)
}

fn per_second(requests: u64, took_us: u64) -> u64 {
    if took_us == 0 {
        0
    } else {
        u64::try_from(u128::from(requests) * 1_000_000 / u128::from(took_us)).unwrap_or(u64::MAX)
    }
}

impl LoadReports {
    /// The load of `server` now. Cost: proportional to the number of regions; no I/O.
    pub fn take(&self, server: &RegionServer, info_port: Option<u16>) -> pb::ServerLoad {
        let (status, env) = (server.status(), server.env());
        let now = Last {
            requests: status.requests,
            at_us: env.clock.monotonic_us(),
            at_ms: u64::try_from(env.clock.now_ms().0).unwrap_or_default(),
        };
        let last = std::mem::replace(&mut *self.last.lock(), now);
        let used_bytes = env.memory.memstore_bytes() + env.cache.stats().used_bytes;
        let took_us = now.at_us.saturating_sub(last.at_us);
        pb::ServerLoad {
            number_of_requests: Some(per_second(now.requests.saturating_sub(last.requests), took_us)),
            total_number_of_requests: Some(now.requests),
            used_heap_mb: Some(mib(used_bytes)),
            max_heap_mb: Some(mib(status.memory_budget_bytes)),
            coprocessors: to_proto::coprocessors(&status.regions),
            region_loads: status.regions.iter().map(to_proto::region_load).collect(),
            region_cached_info: to_proto::region_cached_info(&status.regions),
            report_start_time: Some(if last.at_ms == 0 { now.at_ms } else { last.at_ms }),
            report_end_time: Some(now.at_ms),
            info_server_port: Some(info_port.map_or(u32::MAX, u32::from)),
            user_loads: server.user_loads(),
            tasks: server.tasks().iter().map(to_proto::task).collect(),
            ..pb::ServerLoad::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn requests_are_counted_by_the_second() {
        assert_eq!(per_second(300, 3_000_000), 100);
        assert_eq!(per_second(300, 0), 0, "the first report");
    }
}
