//! Quotas of requests: whether a call may be begun, and what it takes of the limits of its user, table, namespace and of this server.
//!
//! Always true:
//!  1. While there are no quotas a call costs one atomic load here.
//!  2. What a call took by estimate is corrected when its [`QuotaCharge`] is dropped, however the call ended.
//!
//! Limits come from the master, which reads hbase:quota. A call's user is the one of its connection, or the one that an attribute of the
//! request names. Follows: `RegionServerRpcQuotaManager`.

use base::{Clock, Config};
use model::TableName;
use parking_lot::Mutex;
use proto::pb;
use quota::settings::ThrottleSettings;
use quota::{OperationQuota, Refresh, ScanEstimate, Throttled, Throttles};
use region::Region;
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult};
use scheduler::settings::HANDLER_COUNT;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How long a rate of requests is taken to hold.
const RATE_HOLDS_MS: i64 = 60_000;

/// The quotas of a server's requests.
pub struct RpcQuotas {
    /// There are quotas, and they count.
    is_on: AtomicBool,
    enabled: bool,
    throttles: Throttles,
    clock: Arc<dyn Clock>,
    requests: Mutex<RequestRate>,
    /// Calls that were told to wait.
    throttled: AtomicU64,
}

/// Requests per second, as they were in the last minute.
#[derive(Default)]
struct RequestRate {
    since_ms: Option<i64>,
    total: u64,
    per_second: f64,
}

impl RequestRate {
    fn per_second(&mut self, total: u64, now_ms: i64) -> f64 {
        let passed_ms = now_ms.saturating_sub(self.since_ms.unwrap_or(now_ms));
        if self.since_ms.is_none() || passed_ms >= RATE_HOLDS_MS {
            self.per_second =
                if passed_ms > 0 { total.saturating_sub(self.total) as f64 * 1000.0 / passed_ms as f64 } else { 0.0 };
            (self.since_ms, self.total) = (Some(now_ms), total);
        }
        self.per_second
    }
}

impl RpcQuotas {
    /// Quotas as `config` says; without limits until the first [`RpcQuotas::refresh`].
    pub(crate) fn new(config: &Config, clock: Arc<dyn Clock>) -> RpcQuotas {
        let enabled = config.get(&quota::settings::ENABLED);
        RpcQuotas {
            is_on: AtomicBool::new(enabled),
            enabled,
            throttles: Throttles::new(settings(config)),
            clock,
            requests: Mutex::default(),
            throttled: AtomicU64::new(0),
        }
    }

    /// The configuration was read anew. Limits that it changes count from the next [`RpcQuotas::refresh`].
    pub(crate) fn update_configuration(&self, config: &Config) {
        self.throttles.set_settings(settings(config));
    }

    /// From now on the limits are these.
    pub fn refresh(&self, refresh: &Refresh) {
        self.throttles.refresh(refresh);
    }

    /// Whether limits count at all (`rpc-throttle`).
    pub fn switch(&self, on: bool) {
        self.is_on.store(on && self.enabled, Ordering::Relaxed);
    }

    /// Whether limits count now.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Calls that were told to wait, since the start.
    pub fn throttled_calls(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    /// Takes what `writes` mutations and `reads` Gets of `region` are taken for; `None` where nothing bounds them.
    ///
    /// # Errors
    /// RpcThrottlingException: there is not so much now.
    pub(crate) fn check_batch(
        &self,
        call: &Call,
        region: &Region,
        (writes, reads, is_atomic): (u32, u32, bool),
        total_requests: impl FnOnce() -> u64,
    ) -> Result<Option<QuotaCharge>, Exception> {
        let check = |operation: &mut OperationQuota, now_ms| operation.check_batch(writes, reads, is_atomic, now_ms);
        self.check(call, region, check, total_requests)
    }

    /// The same of one call of a scan.
    ///
    /// # Errors
    /// As [`RpcQuotas::check_batch`].
    pub(crate) fn check_scan(
        &self,
        call: &Call,
        region: &Region,
        estimate: &ScanEstimate,
        total_requests: impl FnOnce() -> u64,
    ) -> Result<Option<QuotaCharge>, Exception> {
        self.check(call, region, |operation, now_ms| operation.check_scan(estimate, now_ms), total_requests)
    }

    #[inline]
    fn check(
        &self,
        call: &Call,
        region: &Region,
        check: impl FnOnce(&mut OperationQuota, i64) -> Result<(), Throttled>,
        total_requests: impl FnOnce() -> u64,
    ) -> Result<Option<QuotaCharge>, Exception> {
        if !self.is_on() {
            return Ok(None);
        }
        self.check_limits(call, region, check, total_requests)
    }

    fn check_limits(
        &self,
        call: &Call,
        region: &Region,
        check: impl FnOnce(&mut OperationQuota, i64) -> Result<(), Throttled>,
        total_requests: impl FnOnce() -> u64,
    ) -> Result<Option<QuotaCharge>, Exception> {
        let table: &TableName = &region.info().table;
        let settings = self.throttles.settings();
        let user = user_of(call, settings.user_override.as_deref());
        let Some(limiters) = self.throttles.limiters(&user, table) else { return Ok(None) };
        // Limits are told the time by the monotonic clock, which was read when the call came.
        let now_ms = i64::try_from(call.received_at_us / 1000).unwrap_or(i64::MAX);
        let block_bytes = || {
            let families = region.table().families.values();
            families.map(|family| u64::from(family.block_size_bytes())).min().unwrap_or(0)
        };
        let per_second = || self.requests.lock().per_second(total_requests(), now_ms);
        let mut operation = OperationQuota::new(limiters, settings.costs, block_bytes, per_second);
        check(&mut operation, now_ms).map_err(|throttled| {
            self.throttled.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%user, %table, "{throttled}");
            Exception::new(Kind::RpcThrottling, throttled.to_string())
        })?;
        let started = operation.limited().counts_time().then(|| (self.clock.monotonic_us(), self.clock.clone()));
        Ok(Some(QuotaCharge {
            counts_bytes: operation.limited().counts_bytes(),
            operation,
            written_bytes: AtomicU64::new(0),
            result_bytes: AtomicU64::new(0),
            started,
        }))
    }
}

fn settings(config: &Config) -> ThrottleSettings {
    ThrottleSettings::from_config(config, i64::from(config.get(&HANDLER_COUNT)))
}

/// The user whose quotas count. Follows: `QuotaCache#getQuotaUserName`, `KerberosName#getShortName`.
fn user_of<'a>(call: &'a Call, attribute: Option<&str>) -> Cow<'a, str> {
    let named = attribute.and_then(|name| call.attributes.iter().find(|pair| pair.name == name));
    match named.and_then(|pair| pair.value.as_ref()) {
        Some(user) => String::from_utf8_lossy(user),
        None => Cow::Borrowed(call.user.split(['/', '@']).next().unwrap_or_default()),
    }
}

/// What a call that is under way has taken of its limits. Dropped when the call has ended, or that part of it which counts.
pub(crate) struct QuotaCharge {
    operation: OperationQuota,
    counts_bytes: bool,
    written_bytes: AtomicU64,
    result_bytes: AtomicU64,
    /// Where time is limited: when it began, by which clock.
    started: Option<(u64, Arc<dyn Clock>)>,
}

impl QuotaCharge {
    /// The call writes so many bytes of cells more.
    pub(crate) fn add_written(&self, bytes: impl FnOnce() -> usize) {
        if self.counts_bytes {
            self.written_bytes.fetch_add(bytes() as u64, Ordering::Relaxed);
        }
    }

    /// The call's results have so many bytes of cells.
    pub(crate) fn set_result_bytes(&self, bytes: u64) {
        self.result_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The call has ended so.
    pub(crate) fn set_result(&self, result: &CallResult) {
        if let (true, Ok(reply)) = (self.counts_bytes, result) {
            // Results without a block of their own are in the message.
            let bytes = if reply.cells.is_empty() { reply.message.len() as u64 } else { cell_bytes(&reply.cells) };
            self.set_result_bytes(bytes);
        }
    }

    /// Bytes of results that the call may make; `None`: as many as it likes.
    pub(crate) fn max_result_bytes(&self) -> Option<u64> {
        self.operation.max_result_bytes()
    }
}

impl Drop for QuotaCharge {
    fn drop(&mut self) {
        let elapsed_us =
            self.started.as_ref().map_or(0, |(started_us, clock)| clock.monotonic_us().saturating_sub(*started_us));
        // Bytes of blocks are not counted yet: results stand for them.
        let (written, result) = (*self.written_bytes.get_mut(), *self.result_bytes.get_mut());
        self.operation.close(written, result, 0, i64::try_from(elapsed_us / 1000).unwrap_or(i64::MAX));
    }
}

/// Bytes of the cells in a block, the lengths before them left out.
fn cell_bytes(mut block: &[u8]) -> u64 {
    let mut bytes = 0;
    while let Some((length, rest)) = block.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        bytes += length as u64;
        block = rest.get(length..).unwrap_or_default();
    }
    bytes
}

/// What a mutation counts as: mutations, Gets, and whether it reads what it writes. Follows: `QuotaUtil#getQuotaOperationType`.
pub(crate) fn cost_of_mutation(mutation: &pb::MutationProto, has_condition: bool) -> (u32, u32, bool) {
    use pb::mutation_proto::MutationType;
    let is_atomic = has_condition || matches!(mutation.mutate_type(), MutationType::Append | MutationType::Increment);
    (1, u32::from(is_atomic), is_atomic)
}

/// The same of the actions on one region.
pub(crate) fn cost_of_actions(action: &pb::RegionAction) -> (u32, u32, bool) {
    let has_condition = action.condition.is_some();
    action.action.iter().fold((0, 0, false), |(writes, reads, is_atomic), one| match (&one.mutation, &one.get) {
        (Some(mutation), _) => {
            let (write, read, atomic) = cost_of_mutation(mutation, has_condition);
            (writes + write, reads + read, is_atomic || atomic)
        }
        (None, Some(_)) => (writes, reads + 1, is_atomic),
        (None, None) => (writes, reads, is_atomic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_requests_is_that_of_the_minute_before() {
        let mut rate = RequestRate::default();
        assert_eq!(rate.per_second(1000, 5000), 0.0);
        assert_eq!(rate.per_second(2000, 5001), 0.0, "not measured yet");
        assert_eq!(rate.per_second(61_000, 65_000), 1000.0);
        assert_eq!(rate.per_second(90_000, 66_000), 1000.0);
    }

    #[test]
    fn bytes_of_cells_are_counted_without_their_lengths() {
        assert_eq!(cell_bytes(b""), 0);
        assert_eq!(cell_bytes(b"\0\0\0\x02ab\0\0\0\x03abc"), 5);
        assert_eq!(cell_bytes(b"\0\0\0\x09ab"), 9, "cut short, it ends");
    }

    #[test]
    fn what_reads_what_it_writes_counts_as_both() {
        use pb::mutation_proto::MutationType;
        let mutation = |of_type: MutationType| pb::MutationProto {
            mutate_type: Some(of_type as i32),
            ..pb::MutationProto::default()
        };
        assert_eq!(cost_of_mutation(&mutation(MutationType::Put), false), (1, 0, false));
        assert_eq!(cost_of_mutation(&mutation(MutationType::Put), true), (1, 1, true));
        assert_eq!(cost_of_mutation(&mutation(MutationType::Append), false), (1, 1, true));
        let one = |mutation| pb::Action { mutation: Some(mutation), ..pb::Action::default() };
        let get = pb::Action { get: Some(pb::Get::default()), ..pb::Action::default() };
        let action = pb::RegionAction {
            action: vec![one(mutation(MutationType::Put)), get, one(mutation(MutationType::Increment))],
            ..pb::RegionAction::default()
        };
        assert_eq!(cost_of_actions(&action), (2, 2, true));
    }
}
