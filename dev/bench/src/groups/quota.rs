//! What quotas add to a get that they do not hold back: the limiters looked up, one get taken of them, and the estimate corrected. An operation
//! is a get.

use crate::Group;
use crate::measure::{Done, Session, Size};
use base::Config;
use model::TableName;
use proto::pb;
use quota::rows::Subject;
use quota::settings::ThrottleSettings;
use quota::{OperationQuota, Refresh, Throttles};
use std::hint::black_box;
use std::thread;

pub const GROUP: Group = Group {
    names: &["quota.get.none", "quota.get.number", "quota.get.size", "quota.get.number.two_threads"],
    needs_server: false,
    run,
};

/// Gets between two looks at whether time is over.
const STEP: u64 = 1000;
const HANDLERS: i64 = 30;

fn throttles(set: impl FnOnce(&mut pb::Throttle, pb::TimedQuota)) -> Throttles {
    let timed = pb::TimedQuota {
        time_unit: pb::TimeUnit::Seconds as i32,
        soft_limit: Some(1 << 40),
        share: None,
        scope: Some(pb::QuotaScope::Machine as i32),
    };
    let mut throttle = pb::Throttle::default();
    set(&mut throttle, timed);
    let quotas = pb::Quotas { throttle: Some(throttle), ..pb::Quotas::default() };
    let throttles = Throttles::new(ThrottleSettings::from_config(&Config::default(), HANDLERS));
    throttles.refresh(&Refresh { quotas: vec![(Subject::User("bob".into()), quotas)], ..Refresh::default() });
    throttles
}

/// As a region server does it for a get, but for the clock: that was read when the call came.
fn get(throttles: &Throttles, user: &str, table: &TableName, now_ms: i64) {
    let settings = throttles.settings();
    let Some(limiters) = throttles.limiters(user, table) else { return };
    let mut operation = OperationQuota::new(limiters, settings.costs, || 65_536, || 0.0);
    assert!(black_box(operation.check_batch(0, 1, false, now_ms)).is_ok(), "the limit is far away");
    operation.close(0, 1000, 0, 0);
}

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let table = TableName::parse("t")?;
    let number = throttles(|throttle, limit| throttle.read_num = Some(limit));
    let size = throttles(|throttle, limit| throttle.read_size = Some(limit));
    let gets = |throttles: &Throttles, user: &str, from: u64, n: u64| {
        (from..from + n).for_each(|at| get(throttles, user, &table, (at / 100) as i64));
    };
    for (name, throttles, user) in
        [("quota.get.none", &number, "eve"), ("quota.get.number", &number, "bob"), ("quota.get.size", &size, "bob")]
    {
        session.measure(
            name,
            Size::Timed { most: u64::MAX, step: STEP },
            |_| Ok(()),
            |(), n| {
                gets(throttles, user, 0, n);
                Ok(Done { ops: n, bytes: 0 })
            },
        )?;
    }
    session.measure(
        "quota.get.number.two_threads",
        Size::Timed { most: u64::MAX, step: STEP },
        |_| Ok(()),
        |(), n| {
            thread::scope(|scope| {
                scope.spawn(|| gets(&number, "bob", 0, n / 2));
                gets(&number, "bob", 0, n - n / 2);
            });
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}
