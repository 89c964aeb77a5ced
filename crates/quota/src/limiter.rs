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

/// The limits of one subject. Cheap to ask: one lock, held for some comparisons.
#[derive(Debug)]
pub struct Limiter {
    rates: Mutex<[RateLimiter; TYPES]>,
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
        any.then(|| Limiter { rates: Mutex::new(rates) })
    }

    /// Takes over the limits of `other`, and keeps what was used.
    pub(crate) fn update(&self, other: Limiter) {
        let other = other.rates.into_inner();
        for (rate, other) in self.rates.lock().iter_mut().zip(&other) {
            rate.update(other);
        }
    }

    /// Whether `demand` may be taken now. Takes nothing.
    ///
    /// # Errors
    /// The first limit that it meets, in HBase's order.
    pub fn check(&self, demand: &Demand, now_ms: i64) -> Result<(), Throttled> {
        let rates = &mut *self.rates.lock();
        let mut ask = |by: ThrottledBy, amount: i64| match rates[by as usize].wait_ms(amount, now_ms) {
            wait_ms if wait_ms > 0 => Err(Throttled { by, wait_ms }),
            _ => Ok(()),
        };
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

    /// Takes `demand`, whether it is there or not.
    pub fn grab(&self, demand: &Demand) {
        let rates = &mut *self.rates.lock();
        let mut take = |by: ThrottledBy, amount: i64| rates[by as usize].consume(amount);
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

    /// Takes more bytes and units of writes than were estimated, or gives some back.
    pub(crate) fn correct_write(&self, bytes: i64, units: i64, is_atomic: bool) {
        let rates = &mut *self.rates.lock();
        rates[By::RequestSize as usize].consume(bytes);
        rates[By::WriteSize as usize].consume(bytes);
        rates[By::RequestCapacityUnit as usize].consume(units);
        rates[By::WriteCapacityUnit as usize].consume(units);
        if is_atomic {
            rates[By::AtomicWriteSize as usize].consume(bytes);
        }
    }

    /// The same of reads.
    pub(crate) fn correct_read(&self, bytes: i64, units: i64, is_atomic: bool) {
        let rates = &mut *self.rates.lock();
        rates[By::RequestSize as usize].consume(bytes);
        rates[By::ReadSize as usize].consume(bytes);
        rates[By::RequestCapacityUnit as usize].consume(units);
        rates[By::ReadCapacityUnit as usize].consume(units);
        if is_atomic {
            rates[By::AtomicReadSize as usize].consume(bytes);
        }
    }

    /// The same of a handler's time.
    pub(crate) fn correct_time(&self, handler_ms: i64) {
        self.rates.lock()[By::RequestHandlerUsageTime as usize].consume(handler_ms);
    }

    /// Most requests, reads and writes that an estimate may ask for: more would never be granted.
    pub(crate) fn request_limits(&self) -> (i64, i64, i64) {
        let rates = self.rates.lock();
        let (reads, writes) =
            (rates[By::NumReadRequests as usize].limit(), rates[By::NumWriteRequests as usize].limit());
        (rates[By::NumRequests as usize].limit().min(reads.saturating_add(writes)), reads, writes)
    }

    /// Most bytes that an estimate of reads may ask for.
    pub(crate) fn read_limit_bytes(&self) -> i64 {
        let rates = self.rates.lock();
        rates[By::ReadSize as usize].limit().min(rates[By::RequestSize as usize].limit())
    }

    /// The same of writes.
    pub(crate) fn write_limit_bytes(&self) -> i64 {
        let rates = self.rates.lock();
        rates[By::WriteSize as usize].limit().min(rates[By::RequestSize as usize].limit())
    }

    /// Bytes that may be read now.
    pub(crate) fn read_available_bytes(&self) -> i64 {
        self.rates.lock()[By::ReadSize as usize].available()
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
