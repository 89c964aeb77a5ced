//! What one subject (a user, a table, a namespace, a region server) may do: a rate limiter for each of the thirteen throttle types.
//! Follows: `TimeBasedLimiter`, `RpcThrottlingException`.

use crate::rate::{RateLimiter, RateLimiterKind};
use parking_lot::Mutex;
use proto::pb;

/// Which limit a call met. The order is that of `RpcThrottlingException.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottledBy {
    /// REQUEST_NUMBER.
    NumRequests,
    /// REQUEST_SIZE.
    RequestSize,
    /// READ_NUMBER.
    NumReadRequests,
    /// WRITE_NUMBER.
    NumWriteRequests,
    /// WRITE_SIZE.
    WriteSize,
    /// READ_SIZE.
    ReadSize,
    /// REQUEST_CAPACITY_UNIT.
    RequestCapacityUnit,
    /// READ_CAPACITY_UNIT.
    ReadCapacityUnit,
    /// WRITE_CAPACITY_UNIT.
    WriteCapacityUnit,
    /// ATOMIC_REQUEST_NUMBER.
    AtomicRequestNumber,
    /// ATOMIC_READ_SIZE.
    AtomicReadSize,
    /// ATOMIC_WRITE_SIZE.
    AtomicWriteSize,
    /// REQUEST_HANDLER_USAGE_MS.
    RequestHandlerUsageTime,
}

use ThrottledBy as By;

/// How many throttle types there are.
const TYPES: usize = 13;

impl ThrottledBy {
    const ALL: [ThrottledBy; TYPES] = [
        By::NumRequests,
        By::RequestSize,
        By::NumReadRequests,
        By::NumWriteRequests,
        By::WriteSize,
        By::ReadSize,
        By::RequestCapacityUnit,
        By::ReadCapacityUnit,
        By::WriteCapacityUnit,
        By::AtomicRequestNumber,
        By::AtomicReadSize,
        By::AtomicWriteSize,
        By::RequestHandlerUsageTime,
    ];

    /// Its sentence; a client finds the type and the wait by it.
    pub const fn sentence(self) -> &'static str {
        match self {
            By::NumRequests => "number of requests exceeded",
            By::RequestSize => "request size limit exceeded",
            By::NumReadRequests => "number of read requests exceeded",
            By::NumWriteRequests => "number of write requests exceeded",
            By::WriteSize => "write size limit exceeded",
            By::ReadSize => "read size limit exceeded",
            By::RequestCapacityUnit => "request capacity unit exceeded",
            By::ReadCapacityUnit => "read capacity unit exceeded",
            By::WriteCapacityUnit => "write capacity unit exceeded",
            By::AtomicRequestNumber => "atomic request number exceeded",
            By::AtomicReadSize => "atomic read size exceeded",
            By::AtomicWriteSize => "atomic write size exceeded",
            By::RequestHandlerUsageTime => "request handler usage time exceeded",
        }
    }

    /// The quota of this type in `throttle`.
    fn quota(self, throttle: &pb::Throttle) -> Option<&pb::TimedQuota> {
        match self {
            By::NumRequests => &throttle.req_num,
            By::RequestSize => &throttle.req_size,
            By::NumReadRequests => &throttle.read_num,
            By::NumWriteRequests => &throttle.write_num,
            By::WriteSize => &throttle.write_size,
            By::ReadSize => &throttle.read_size,
            By::RequestCapacityUnit => &throttle.req_capacity_unit,
            By::ReadCapacityUnit => &throttle.read_capacity_unit,
            By::WriteCapacityUnit => &throttle.write_capacity_unit,
            By::AtomicRequestNumber => &throttle.atomic_req_num,
            By::AtomicReadSize => &throttle.atomic_read_size,
            By::AtomicWriteSize => &throttle.atomic_write_size,
            By::RequestHandlerUsageTime => &throttle.req_handler_usage_ms,
        }
        .as_ref()
    }
}

/// A call may not be begun now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} - wait {}", by.sentence(), duration_text(*wait_ms))]
pub struct Throttled {
    /// The limit it met.
    pub by: ThrottledBy,
    /// When it may be tried again.
    pub wait_ms: i64,
}

/// `1hr, 2mins, 3sec, 4ms`. Follows: `RpcThrottlingException#stringFromMillis`.
fn duration_text(ms: i64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let plural = |count: i64| if count > 1 { "s" } else { "" };
    let mut text = String::new();
    if hours != 0 {
        text += &format!("{hours}hr{}, ", plural(hours));
    }
    if minutes != 0 {
        text += &format!("{minutes}min{}, ", plural(minutes));
    }
    if seconds != 0 {
        text += &format!("{seconds}sec, ");
    }
    text + &format!("{}ms", ms % 1000)
}

/// What a call takes, by estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Mutations.
    pub writes: i64,
    /// Their bytes.
    pub write_bytes: i64,
    /// The same in write capacity units.
    pub write_units: i64,
    /// Gets and scan calls.
    pub reads: i64,
    /// Bytes that they read.
    pub read_bytes: i64,
    /// The same in read capacity units.
    pub read_units: i64,
    /// Whether it reads what it writes.
    pub is_atomic: bool,
    /// How long it occupies a handler.
    pub handler_ms: i64,
}

/// Which of the throttle types have a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limited(u16);

impl Limited {
    /// The types for which bytes have to be known: sizes and capacity units.
    const BYTES: u16 = Limited::of(By::RequestSize)
        | Limited::of(By::WriteSize)
        | Limited::of(By::ReadSize)
        | Limited::of(By::RequestCapacityUnit)
        | Limited::of(By::ReadCapacityUnit)
        | Limited::of(By::WriteCapacityUnit)
        | Limited::of(By::AtomicReadSize)
        | Limited::of(By::AtomicWriteSize);

    const fn of(by: ThrottledBy) -> u16 {
        1 << by as u16
    }

    fn by_rates(rates: &[RateLimiter; TYPES]) -> Limited {
        let limited = By::ALL.into_iter().filter(|by| !rates[*by as usize].is_bypass());
        Limited(limited.fold(0, |mask, by| mask | Limited::of(by)))
    }

    /// Those of either.
    pub(crate) fn or(self, other: Limited) -> Limited {
        Limited(self.0 | other.0)
    }

    /// Whether it makes a difference how many bytes a call writes and reads.
    pub fn counts_bytes(self) -> bool {
        self.0 & Limited::BYTES != 0
    }

    /// Whether it makes a difference how long a call occupies a handler.
    pub fn counts_time(self) -> bool {
        self.0 & Limited::of(By::RequestHandlerUsageTime) != 0
    }
}

/// The limits of one subject. Cheap to ask: one lock, held for some comparisons of those types that have a limit.
#[derive(Debug)]
pub struct Limiter {
    rates: Mutex<Rates>,
}

#[derive(Debug)]
struct Rates {
    limited: Limited,
    by_type: [RateLimiter; TYPES],
}

/// Milliseconds of a time unit. What is shorter than one is taken for one: HBase's refresh of its limits fails on it.
pub(crate) fn unit_ms(unit: pb::TimeUnit) -> i64 {
    match unit {
        pb::TimeUnit::Nanoseconds | pb::TimeUnit::Microseconds | pb::TimeUnit::Milliseconds => 1,
        pb::TimeUnit::Seconds => 1000,
        pb::TimeUnit::Minutes => 60_000,
        pb::TimeUnit::Hours => 3_600_000,
        pb::TimeUnit::Days => 86_400_000,
    }
}

impl Limiter {
    /// The limiter for `throttle`, `None` when that says nothing.
    pub fn new(throttle: &pb::Throttle, kind: RateLimiterKind) -> Option<Limiter> {
        let mut rates = std::array::from_fn(|_| RateLimiter::unlimited(kind));
        let mut any = false;
        for by in ThrottledBy::ALL {
            if let Some(quota) = by.quota(throttle) {
                let limit = quota.soft_limit.unwrap_or(0).min(i64::MAX as u64) as i64;
                rates[by as usize].set(limit, unit_ms(quota.time_unit()));
                any = true;
            }
        }
        any.then(|| Limiter { rates: Mutex::new(Rates { limited: Limited::by_rates(&rates), by_type: rates }) })
    }

    /// The types that have a limit.
    pub fn limited(&self) -> Limited {
        self.rates.lock().limited
    }

    /// Takes over the limits of `other`, and keeps what was used.
    pub(crate) fn update(&self, other: Limiter) {
        let other = other.rates.into_inner();
        let mut rates = self.rates.lock();
        for (rate, other) in rates.by_type.iter_mut().zip(&other.by_type) {
            rate.update(other);
        }
        rates.limited = Limited::by_rates(&rates.by_type);
    }

    /// Whether `demand` may be taken now, as it is. Takes nothing.
    ///
    /// # Errors
    /// The first limit that it meets, in HBase's order.
    pub fn check(&self, demand: &Demand, now_ms: i64) -> Result<(), Throttled> {
        self.rates.lock().check(demand, now_ms)
    }

    /// The same of a demand that is never for more than the whole limit: that would never be granted. Says how many bytes may be read.
    ///
    /// # Errors
    /// As [`Limiter::check`].
    pub(crate) fn check_within_limit(&self, demand: &Demand, now_ms: i64) -> Result<i64, Throttled> {
        self.rates.lock().check_within_limit(demand, now_ms)
    }

    /// The same, and takes it.
    ///
    /// # Errors
    /// As [`Limiter::check`]; nothing is taken.
    pub(crate) fn take(&self, demand: &Demand, now_ms: i64) -> Result<i64, Throttled> {
        let rates = &mut *self.rates.lock();
        let available = rates.check_within_limit(demand, now_ms)?;
        rates.grab(demand);
        Ok(available)
    }

    /// Takes `demand`, whether it is there or not.
    pub fn grab(&self, demand: &Demand) {
        self.rates.lock().grab(demand);
    }

    /// Takes more than was estimated, or gives some back.
    pub(crate) fn correct(&self, correction: &Correction) {
        let Correction { write_bytes, write_units, read_bytes, read_units, is_atomic, handler_ms } = *correction;
        let rates = &mut *self.rates.lock();
        if write_bytes != 0 {
            rates.take(By::RequestSize, write_bytes);
            rates.take(By::WriteSize, write_bytes);
            rates.take(By::RequestCapacityUnit, write_units);
            rates.take(By::WriteCapacityUnit, write_units);
            if is_atomic {
                rates.take(By::AtomicWriteSize, write_bytes);
            }
        }
        if read_bytes != 0 {
            rates.take(By::RequestSize, read_bytes);
            rates.take(By::ReadSize, read_bytes);
            rates.take(By::RequestCapacityUnit, read_units);
            rates.take(By::ReadCapacityUnit, read_units);
            if is_atomic {
                rates.take(By::AtomicReadSize, read_bytes);
            }
        }
        rates.take(By::RequestHandlerUsageTime, handler_ms);
    }

    /// Most bytes that an estimate of reads may ask for.
    pub(crate) fn read_limit_bytes(&self) -> i64 {
        self.rates.lock().limit_bytes(By::ReadSize)
    }

    /// Bytes that may be read now.
    pub(crate) fn read_available_bytes(&self) -> i64 {
        self.rates.lock().by_type[By::ReadSize as usize].available()
    }
}

/// By how much what a call took differs from its estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correction {
    pub write_bytes: i64,
    pub write_units: i64,
    pub read_bytes: i64,
    pub read_units: i64,
    pub is_atomic: bool,
    pub handler_ms: i64,
}

impl Rates {
    #[inline]
    fn is_limited(&self, by: ThrottledBy) -> bool {
        self.limited.0 & Limited::of(by) != 0
    }

    #[inline]
    fn ask(&mut self, by: ThrottledBy, amount: i64, now_ms: i64) -> Result<(), Throttled> {
        if !self.is_limited(by) {
            return Ok(());
        }
        match self.by_type[by as usize].wait_ms(amount, now_ms) {
            wait_ms if wait_ms > 0 => Err(Throttled { by, wait_ms }),
            _ => Ok(()),
        }
    }

    #[inline]
    fn take(&mut self, by: ThrottledBy, amount: i64) {
        if self.is_limited(by) {
            self.by_type[by as usize].consume(amount);
        }
    }

    fn limit(&self, by: ThrottledBy) -> i64 {
        self.by_type[by as usize].limit()
    }

    /// The limit for bytes of reads or writes, which is never beyond that for both.
    fn limit_bytes(&self, by: ThrottledBy) -> i64 {
        self.limit(by).min(self.limit(By::RequestSize))
    }

    fn check(&mut self, demand: &Demand, now_ms: i64) -> Result<(), Throttled> {
        let mut ask = |by: ThrottledBy, amount: i64| self.ask(by, amount, now_ms);
        let requests = demand.writes + demand.reads;
        ask(By::NumRequests, requests)?;
        ask(By::RequestSize, demand.write_bytes.saturating_add(demand.read_bytes))?;
        ask(By::RequestCapacityUnit, demand.write_units.saturating_add(demand.read_units))?;
        if demand.is_atomic {
            ask(By::AtomicRequestNumber, requests)?;
        }
        if demand.write_bytes > 0 {
            ask(By::NumWriteRequests, demand.writes)?;
            ask(By::WriteSize, demand.write_bytes)?;
            ask(By::WriteCapacityUnit, demand.write_units)?;
            if demand.is_atomic {
                // Requests, not bytes: HBase asks so.
                ask(By::AtomicWriteSize, demand.writes)?;
            }
        }
        if demand.read_bytes > 0 {
            ask(By::NumReadRequests, demand.reads)?;
            ask(By::ReadSize, demand.read_bytes)?;
            ask(By::ReadCapacityUnit, demand.read_units)?;
            if demand.is_atomic {
                ask(By::AtomicReadSize, requests)?;
            }
        }
        ask(By::RequestHandlerUsageTime, demand.handler_ms)
    }

    /// Follows: `DefaultOperationQuota#checkQuota`.
    fn check_within_limit(&mut self, demand: &Demand, now_ms: i64) -> Result<i64, Throttled> {
        let (reads, writes) = (self.limit(By::NumReadRequests), self.limit(By::NumWriteRequests));
        let requests = self.limit(By::NumRequests).min(reads.saturating_add(writes));
        let asked = Demand {
            writes: demand.writes.min(requests.min(writes)),
            write_bytes: demand.write_bytes.min(self.limit_bytes(By::WriteSize)),
            reads: demand.reads.min(requests.min(reads)),
            read_bytes: demand.read_bytes.min(self.limit_bytes(By::ReadSize)),
            ..*demand
        };
        self.check(&asked, now_ms)?;
        Ok(self.by_type[By::ReadSize as usize].available())
    }

    fn grab(&mut self, demand: &Demand) {
        let mut take = |by: ThrottledBy, amount: i64| self.take(by, amount);
        let requests = demand.writes + demand.reads;
        take(By::NumRequests, requests);
        take(By::RequestSize, demand.write_bytes.saturating_add(demand.read_bytes));
        if demand.write_bytes > 0 {
            take(By::NumWriteRequests, demand.writes);
            take(By::WriteSize, demand.write_bytes);
        }
        if demand.read_bytes > 0 {
            take(By::NumReadRequests, demand.reads);
            take(By::ReadSize, demand.read_bytes);
        }
        if demand.write_units > 0 {
            take(By::RequestCapacityUnit, demand.write_units);
            take(By::WriteCapacityUnit, demand.write_units);
        }
        if demand.read_units > 0 {
            take(By::RequestCapacityUnit, demand.read_units);
            take(By::ReadCapacityUnit, demand.read_units);
        }
        if demand.is_atomic {
            take(By::AtomicRequestNumber, requests);
            if demand.read_bytes > 0 {
                take(By::AtomicReadSize, demand.read_bytes);
            }
            if demand.write_bytes > 0 {
                take(By::AtomicWriteSize, demand.write_bytes);
            }
        }
        take(By::RequestHandlerUsageTime, demand.handler_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(limit: u64) -> Option<pb::TimedQuota> {
        Some(pb::TimedQuota {
            time_unit: pb::TimeUnit::Minutes as i32,
            soft_limit: Some(limit),
            share: None,
            scope: Some(pb::QuotaScope::Machine as i32),
        })
    }

    fn limiter(throttle: pb::Throttle) -> Limiter {
        Limiter::new(&throttle, RateLimiterKind::Average).expect("it limits")
    }

    const READ: Demand = Demand {
        writes: 0,
        write_bytes: 0,
        write_units: 0,
        reads: 1,
        read_bytes: 100,
        read_units: 1,
        is_atomic: false,
        handler_ms: 1,
    };
    const WRITE: Demand =
        Demand { writes: 1, write_bytes: 100, write_units: 1, reads: 0, read_bytes: 0, read_units: 0, ..READ };
    const ATOMIC: Demand = Demand { reads: 1, read_bytes: 100, read_units: 1, is_atomic: true, ..WRITE };

    /// Every throttle type bounds what it is for, is told by its sentence, and lets the rest pass.
    #[test]
    fn each_throttle_type_bounds_its_calls_and_no_others() {
        type Set = fn(&mut pb::Throttle, Option<pb::TimedQuota>);
        let rows: [(ThrottledBy, Set, u64, Demand, Option<Demand>); TYPES] = [
            (By::NumRequests, |t, q| t.req_num = q, 1, WRITE, None),
            (By::RequestSize, |t, q| t.req_size = q, 100, READ, None),
            (By::NumReadRequests, |t, q| t.read_num = q, 1, READ, Some(WRITE)),
            (By::NumWriteRequests, |t, q| t.write_num = q, 1, WRITE, Some(READ)),
            (By::WriteSize, |t, q| t.write_size = q, 100, WRITE, Some(READ)),
            (By::ReadSize, |t, q| t.read_size = q, 100, READ, Some(WRITE)),
            (By::RequestCapacityUnit, |t, q| t.req_capacity_unit = q, 1, READ, None),
            (By::ReadCapacityUnit, |t, q| t.read_capacity_unit = q, 1, READ, Some(WRITE)),
            (By::WriteCapacityUnit, |t, q| t.write_capacity_unit = q, 1, WRITE, Some(READ)),
            (By::AtomicRequestNumber, |t, q| t.atomic_req_num = q, 2, ATOMIC, Some(WRITE)),
            (By::AtomicReadSize, |t, q| t.atomic_read_size = q, 100, ATOMIC, Some(READ)),
            (By::AtomicWriteSize, |t, q| t.atomic_write_size = q, 100, ATOMIC, Some(WRITE)),
            (By::RequestHandlerUsageTime, |t, q| t.req_handler_usage_ms = q, 1, READ, None),
        ];
        for (by, set, limit, demand, free) in rows {
            let mut throttle = pb::Throttle::default();
            set(&mut throttle, quota(limit));
            let limiter = limiter(throttle);
            assert_eq!(limiter.check(&demand, 0), Ok(()), "{by:?}");
            limiter.grab(&demand);
            let throttled = limiter.check(&demand, 0).expect_err("the limit is used up");
            assert_eq!(throttled.by, by);
            assert!(throttled.to_string().starts_with(&format!("{} - wait ", by.sentence())), "{throttled}");
            if let Some(free) = free {
                assert_eq!(limiter.check(&free, 0), Ok(()), "{by:?} bounds only its own");
            }
        }
    }

    #[test]
    fn the_wait_is_told_as_hbase_tells_it() {
        let text = |wait_ms| Throttled { by: By::ReadSize, wait_ms }.to_string();
        assert_eq!(text(7), "read size limit exceeded - wait 7ms");
        assert_eq!(text(1000), "read size limit exceeded - wait 1sec, 0ms");
        assert_eq!(text(3_600_000 + 60_000 + 2001), "read size limit exceeded - wait 1hr, 1min, 2sec, 1ms");
        assert_eq!(text(2 * 3_600_000 + 120_000), "read size limit exceeded - wait 2hrs, 2mins, 0ms");
    }

    #[test]
    fn a_throttle_that_says_nothing_is_no_limiter() {
        assert!(Limiter::new(&pb::Throttle::default(), RateLimiterKind::Average).is_none());
    }
}
