//! What one call takes of the limiters that bound it: estimated when it begins, corrected when it ends. Follows: `DefaultOperationQuota`,
//! `ExceedOperationQuota`.

use crate::limiter::{Correction, Demand, Limited, Throttled};
use crate::throttles::Limiters;
use std::sync::Arc;

/// Bytes that a mutation or a Get is taken for, before they are known.
const AVERAGE_BYTES: i64 = 100;
/// Bytes that a scan call is taken for, where results count and blocks do not.
const AVERAGE_SCAN_BYTES: i64 = 1000;
/// One scan call is never taken for more than this share of the limit: it would never be begun.
const MOST_OF_LIMIT: f64 = 0.9;

/// What costs are reckoned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationCosts {
    /// Bytes of a write capacity unit.
    pub write_unit_bytes: i64,
    /// Bytes of a read capacity unit.
    pub read_unit_bytes: i64,
    /// Reads count by the bytes of their results rather than by those of the blocks that were read.
    pub by_result_size: bool,
    /// Handlers of the server.
    pub handlers: i64,
}

impl OperationCosts {
    /// How long a request occupies a handler, by estimate. Follows: `calculateHandlerUsageTimeEstimate`.
    fn handler_ms(&self, requests_per_second: f64) -> i64 {
        if requests_per_second <= self.handlers as f64 {
            self.handlers
        } else {
            ((requests_per_second / 1000.0).ceil() as i64).max(1)
        }
    }
}

/// What is known of a scan when one of its calls begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanEstimate {
    /// Its number; 0 for the first.
    pub call_seq: u64,
    /// Most bytes of its result.
    pub max_result_bytes: u64,
    /// Most bytes of blocks that one of the calls before read.
    pub max_block_bytes: u64,
    /// By how much the call before read more than the one before that.
    pub block_bytes_grew: i64,
}

/// What one call takes. To be closed by [`OperationQuota::close`] however it ends.
#[derive(Debug)]
pub struct OperationQuota {
    limiters: Arc<Limiters>,
    costs: OperationCosts,
    block_bytes: i64,
    demand: Demand,
    read_available_bytes: i64,
}

impl OperationQuota {
    /// What a call takes of `limiters`. `block_bytes`: size of the blocks that it reads, asked where bytes are limited.
    /// `requests_per_second` of the server, asked where time is.
    pub fn new(
        limiters: Arc<Limiters>,
        costs: OperationCosts,
        block_bytes: impl FnOnce() -> u64,
        requests_per_second: impl FnOnce() -> f64,
    ) -> Self {
        let limited = limiters.limited();
        let handler_ms = if limited.counts_time() { costs.handler_ms(requests_per_second()) } else { 0 };
        // HBase asks for reads only where they are taken for any bytes.
        let block_bytes = if limited.counts_bytes() { block_bytes() } else { 1 };
        OperationQuota {
            limiters,
            costs,
            block_bytes: i64::try_from(block_bytes).unwrap_or(i64::MAX),
            demand: Demand { handler_ms, ..Demand::default() },
            read_available_bytes: i64::MAX,
        }
    }

    /// Takes what so many mutations and Gets are taken for.
    ///
    /// # Errors
    /// There is not so much now. Nothing was taken.
    pub fn check_batch(&mut self, writes: u32, reads: u32, is_atomic: bool, now_ms: i64) -> Result<(), Throttled> {
        let (writes, reads) = (i64::from(writes), i64::from(reads));
        let read_bytes = match (self.costs.by_result_size, reads) {
            (_, 0) => 0,
            (true, _) => AVERAGE_BYTES * reads,
            (false, _) => self.block_bytes,
        };
        let write_bytes = AVERAGE_BYTES * writes;
        self.demand = Demand {
            writes,
            write_bytes,
            write_units: units(write_bytes, self.costs.write_unit_bytes),
            reads,
            read_bytes,
            read_units: units(read_bytes, self.costs.read_unit_bytes),
            is_atomic,
            handler_ms: (reads + writes) * self.demand.handler_ms,
        };
        self.check_and_grab(now_ms)
    }

    /// Takes what a call of a scan is taken for.
    ///
    /// # Errors
    /// There is not so much now. Nothing was taken.
    pub fn check_scan(&mut self, scan: &ScanEstimate, now_ms: i64) -> Result<(), Throttled> {
        let read_bytes = if self.costs.by_result_size {
            AVERAGE_SCAN_BYTES
        } else {
            let limit = self.limiters.all.iter().map(|limiter| limiter.read_limit_bytes()).min().unwrap_or(i64::MAX);
            self.scan_bytes(scan).min((MOST_OF_LIMIT * limit as f64).round() as i64)
        };
        let read_units = units(read_bytes, self.costs.read_unit_bytes);
        self.demand = Demand { reads: 1, read_bytes, read_units, ..self.demand };
        self.check_and_grab(now_ms)
    }

    /// Follows: `getScanReadConsumeEstimate`.
    fn scan_bytes(&self, scan: &ScanEstimate) -> i64 {
        let of = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        if scan.call_seq == 0 {
            return self.block_bytes;
        }
        if scan.block_bytes_grew > self.block_bytes {
            of(scan.max_result_bytes).min(of(scan.call_seq).saturating_mul(of(scan.max_block_bytes)))
        } else {
            of(scan.max_block_bytes)
        }
    }

    fn check_and_grab(&mut self, now_ms: i64) -> Result<(), Throttled> {
        let Some(exceed) = self.limiters.exceed.clone() else { return self.check_and_grab_all(now_ms) };
        exceed.check(&self.demand, now_ms)?;
        let exceeds = self.check_and_grab_all(now_ms).is_err();
        self.read_available_bytes = self.read_available_bytes.max(exceed.read_available_bytes());
        // HBase takes write units for read units here.
        let taken = Demand { read_units: self.demand.write_units, ..self.demand };
        exceed.grab(&taken);
        if exceeds {
            let taken = Demand { handler_ms: 0, ..taken };
            self.limiters.all.iter().for_each(|limiter| limiter.grab(&taken));
        }
        Ok(())
    }

    fn check_and_grab_all(&mut self, now_ms: i64) -> Result<(), Throttled> {
        self.read_available_bytes = i64::MAX;
        if let [limiter] = self.limiters.all.as_slice() {
            self.read_available_bytes = limiter.take(&self.demand, now_ms)?;
            return Ok(());
        }
        for limiter in &self.limiters.all {
            let available = limiter.check_within_limit(&self.demand, now_ms)?;
            self.read_available_bytes = self.read_available_bytes.min(available);
        }
        self.limiters.all.iter().for_each(|limiter| limiter.grab(&self.demand));
        Ok(())
    }

    /// Which of what it wrote, read, and how long it took has to be known when it is closed.
    pub fn limited(&self) -> Limited {
        self.limiters.limited()
    }

    /// Bytes of results that the call may make: what may be read now, and never less than it was taken for. `None`: as many as it likes.
    pub fn max_result_bytes(&self) -> Option<u64> {
        let bytes = self.read_available_bytes.max(self.demand.read_bytes);
        (bytes != i64::MAX).then(|| u64::try_from(bytes).unwrap_or(0))
    }

    /// Corrects the estimate by what the call wrote, read, and how long it took. What [`OperationQuota::limited`] does not count may be 0.
    pub fn close(&self, written_bytes: u64, result_bytes: u64, block_bytes_scanned: u64, elapsed_ms: i64) {
        let (demand, costs, limited) = (&self.demand, &self.costs, self.limited());
        let mut correction = Correction {
            write_bytes: 0,
            write_units: 0,
            read_bytes: 0,
            read_units: 0,
            is_atomic: demand.is_atomic,
            // The wrong way round, as HBase has it: who takes longer than estimated gets time back.
            handler_ms: if limited.counts_time() { demand.handler_ms - elapsed_ms } else { 0 },
        };
        if limited.counts_bytes() {
            let of = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            let (written, result) = (of(written_bytes), of(result_bytes));
            let read = if costs.by_result_size { result } else { result.max(of(block_bytes_scanned)) };
            let more_units = |actual, estimate, unit| units(actual, unit) - units(estimate, unit);
            correction.write_bytes = written - demand.write_bytes;
            correction.read_bytes = read - demand.read_bytes;
            correction.write_units = more_units(written, demand.write_bytes, costs.write_unit_bytes);
            correction.read_units = more_units(result, demand.read_bytes, costs.read_unit_bytes);
        }
        if (correction.write_bytes, correction.read_bytes, correction.handler_ms) == (0, 0, 0) {
            return;
        }
        self.limiters.all.iter().for_each(|limiter| limiter.correct(&correction));
        if let Some(exceed) = &self.limiters.exceed {
            exceed.correct(&Correction { is_atomic: false, ..correction });
        }
    }
}

/// Capacity units for so many bytes: parts count as whole ones. As HBase reckons, by floating point numbers, which are exact for what calls come
/// to: most come to none or one, and are not divided at all.
fn units(bytes: i64, unit_bytes: i64) -> i64 {
    match bytes {
        0 if unit_bytes != 0 => 0,
        1.. if bytes <= unit_bytes => 1,
        _ => (bytes as f64 / unit_bytes as f64).ceil() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{Limiter, ThrottledBy};
    use crate::rate::RateLimiterKind;
    use proto::pb;

    #[test]
    fn units_are_what_floating_point_numbers_make_of_them() {
        for unit in [-1, 0, 1, 3, 1000, 1024, 1 << 20] {
            for bytes in [0, 1, 2, 3, 4, 100, 999, 1000, 1001, 1024, 1025, 65_536, 65_537, 1 << 40] {
                let as_hbase = (bytes as f64 / unit as f64).ceil() as i64;
                assert_eq!(units(bytes, unit), as_hbase, "{bytes} bytes in units of {unit}");
            }
        }
    }

    const COSTS: OperationCosts =
        OperationCosts { write_unit_bytes: 1024, read_unit_bytes: 1024, by_result_size: false, handlers: 30 };
    const BLOCK_BYTES: u64 = 65_536;

    fn limit(set: impl FnOnce(&mut pb::Throttle, pb::TimedQuota), limit: u64) -> Arc<Limiter> {
        let timed = pb::TimedQuota {
            time_unit: pb::TimeUnit::Hours as i32,
            soft_limit: Some(limit),
            share: None,
            scope: Some(pb::QuotaScope::Machine as i32),
        };
        let mut throttle = pb::Throttle::default();
        set(&mut throttle, timed);
        Arc::new(Limiter::new(&throttle, RateLimiterKind::Average).expect("it limits"))
    }

    fn operation(all: &[&Arc<Limiter>], exceed: Option<&Arc<Limiter>>) -> OperationQuota {
        let limiters = Limiters::new(all.iter().map(|l| Arc::clone(l)).collect(), exceed.cloned());
        OperationQuota::new(Arc::new(limiters), COSTS, || BLOCK_BYTES, || 0.0)
    }

    #[test]
    fn an_estimate_is_corrected_when_the_call_ends() {
        let bytes = limit(|t, q| t.write_size = Some(q), 1000);
        let mut first = operation(&[&bytes], None);
        first.check_batch(1, 0, false, 0).expect("there is enough");
        first.close(900, 0, 0, 0);
        assert_eq!(
            operation(&[&bytes], None).check_batch(2, 0, false, 0).map_err(|throttled| throttled.by),
            Err(ThrottledBy::WriteSize),
            "900 of 1000 are taken, not 100"
        );
        operation(&[&bytes], None).check_batch(1, 0, false, 0).expect("100 are left");
    }

    #[test]
    fn a_read_that_found_less_than_a_block_gives_the_rest_back() {
        let limit_bytes = 2 * BLOCK_BYTES;
        let bytes = limit(|t, q| t.read_size = Some(q), limit_bytes);
        for _ in 0..10 {
            let mut get = operation(&[&bytes], None);
            get.check_batch(0, 1, false, 0).expect("the one before gave back");
            assert!(get.max_result_bytes() > Some(BLOCK_BYTES), "a result is bounded by what is there");
            get.close(0, 10, 0, 0);
        }
        let mut scan = operation(&[&bytes], None);
        scan.check_scan(&ScanEstimate::default(), 0).expect("most is still there");
        assert_eq!(scan.max_result_bytes(), Some(limit_bytes - 100));
        scan.close(0, 10, 2 * BLOCK_BYTES, 0);
        operation(&[&bytes], None)
            .check_batch(0, 1, false, 0)
            .expect_err("blocks count, where they are more than results");
    }

    #[test]
    fn who_asks_for_more_than_the_whole_limit_waits_for_the_limit_only() {
        let few = limit(|t, q| t.write_num = Some(q), 10);
        let mut batch = operation(&[&few], None);
        batch.check_batch(1000, 0, false, 0).expect("all of the limit is there");
        let wait = operation(&[&few], None).check_batch(1, 0, false, 0).expect_err("990 too many were taken").wait_ms;
        assert_eq!(wait, 991 * 360_000);
    }

    #[test]
    fn the_region_servers_quota_may_be_used_when_others_are_used_up() {
        let user = limit(|t, q| t.req_num = Some(q), 1);
        let server = limit(|t, q| t.req_num = Some(q), 3);
        for _ in 0..3 {
            operation(&[&user], Some(&server)).check_batch(1, 0, false, 0).expect("the server has enough");
        }
        let throttled = operation(&[&user], Some(&server)).check_batch(1, 0, false, 0).expect_err("it has not");
        assert_eq!(throttled.by, ThrottledBy::NumRequests);
    }

    #[test]
    fn a_scan_that_reads_more_and_more_is_taken_for_more() {
        let bytes = limit(|t, q| t.read_size = Some(q), 100 << 20);
        let scan = operation(&[&bytes], None);
        let estimate = |call_seq, max_block_bytes, block_bytes_grew| {
            scan.scan_bytes(&ScanEstimate { call_seq, max_result_bytes: 2 << 20, max_block_bytes, block_bytes_grew })
        };
        assert_eq!(estimate(0, 0, 0), BLOCK_BYTES as i64);
        assert_eq!(estimate(3, 200_000, 100_000), 600_000);
        assert_eq!(estimate(30, 200_000, 100_000), 2 << 20);
        assert_eq!(estimate(3, 200_000, 0), 200_000);
    }

    #[test]
    fn a_handler_is_taken_for_as_long_as_the_load_lets_it() {
        assert_eq!(COSTS.handler_ms(0.0), 30);
        assert_eq!(COSTS.handler_ms(31.0), 1);
        assert_eq!(COSTS.handler_ms(2500.0), 3);
    }
}
