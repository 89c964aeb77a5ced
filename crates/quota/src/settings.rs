//! Settings of quotas under HBase's keys.

use crate::operation::OperationCosts;
use crate::rate::RateLimiterKind;
use crate::space::ChoreKeys;
use base::{Config, Setting, SettingRow, TextSetting};
use proto::pb;

/// Whether there are quotas at all.
pub const ENABLED: Setting<bool> = Setting {
    key: "hbase.quota.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether quotas of users, tables, namespaces and region servers count. The table hbase:quota is made at the next start.",
};

/// How often all limits are read again.
pub const REFRESH_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.quota.refresh.period",
    default: 43_200_000,
    min: 1,
    max: i32::MAX as u64,
    unit: "ms",
    doc: "How often hbase:quota is read anew, beside each time that a quota is set: shares of limits for the whole cluster follow its regions so.",
};

/// Size of a read capacity unit.
pub const READ_UNIT_BYTES: Setting<u64> = Setting {
    key: "hbase.quota.read.capacity.unit",
    default: 1024,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Bytes of one read capacity unit, of which quotas may limit the number.",
};

/// Size of a write capacity unit.
pub const WRITE_UNIT_BYTES: Setting<u64> = Setting {
    key: "hbase.quota.write.capacity.unit",
    default: 1024,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Bytes of one write capacity unit, of which quotas may limit the number.",
};

/// What reads cost.
pub const BY_RESULT_SIZE: Setting<bool> = Setting {
    key: "hbase.quota.use.result.size.bytes",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether reads count by the bytes of their results alone. Otherwise by those of the blocks that were read, where these are more.",
};

/// The rate limiter.
pub const RATE_LIMITER: TextSetting = TextSetting {
    key: "hbase.quota.rate.limiter",
    default: "org.apache.hadoop.hbase.quotas.AverageIntervalRateLimiter",
    legal: Some(
        "org.apache.hadoop.hbase.quotas.AverageIntervalRateLimiter or org.apache.hadoop.hbase.quotas.FixedIntervalRateLimiter",
    ),
    is_legal: |text| matches!(text.trim(), AVERAGE_CLASS | FIXED_CLASS),
    doc: "How what was used comes back: little by little, or all at once at the end of each interval.",
};

const AVERAGE_CLASS: &str = "org.apache.hadoop.hbase.quotas.AverageIntervalRateLimiter";
const FIXED_CLASS: &str = "org.apache.hadoop.hbase.quotas.FixedIntervalRateLimiter";

/// The interval of fixed-interval limiters.
pub const REFILL_INTERVAL_MS: Setting<u64> = Setting {
    key: "hbase.quota.rate.limiter.refill.interval.ms",
    default: 1000,
    min: 1,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "With the fixed-interval limiter, after how long what was used comes back: a second at most, and then a part of the limit.",
};

/// Which attribute of a request names the user whose quotas count.
pub const USER_OVERRIDE: TextSetting = TextSetting::any(
    "hbase.quota.user.override.key",
    "none",
    "A request's attribute of this name holds the user whose quotas count for it, instead of the one who is connected.",
);

/// The throttle that its quota is to be set in.
type SetDefault = fn(&mut pb::Throttle, pb::TimedQuota);

macro_rules! defaults {
    ($($name:ident = $key:literal, $unit:literal, $field:ident;)*) => {
        $(
            /// Limit of each user without quotas.
            pub const $name: Setting<i32> = Setting {
                key: $key,
                default: -1,
                min: -1,
                max: i32::MAX,
                unit: $unit,
                doc: "What a user that has no quota of its own may do in a second, on each region server; -1 is no limit.",
            };
        )*
        const DEFAULTS: &[(&Setting<i32>, SetDefault)] =
            &[$((&$name, |throttle: &mut pb::Throttle, quota: pb::TimedQuota| throttle.$field = Some(quota)),)*];
    };
}

defaults! {
    DEFAULT_READ_NUM = "hbase.quota.default.user.machine.read.num", "requests", read_num;
    DEFAULT_READ_SIZE = "hbase.quota.default.user.machine.read.size", "bytes", read_size;
    DEFAULT_REQUEST_NUM = "hbase.quota.default.user.machine.request.num", "requests", req_num;
    DEFAULT_REQUEST_SIZE = "hbase.quota.default.user.machine.request.size", "bytes", req_size;
    DEFAULT_WRITE_NUM = "hbase.quota.default.user.machine.write.num", "requests", write_num;
    DEFAULT_WRITE_SIZE = "hbase.quota.default.user.machine.write.size", "bytes", write_size;
    DEFAULT_ATOMIC_READ_SIZE = "hbase.quota.default.user.machine.atomic.read.size", "bytes", atomic_read_size;
    DEFAULT_ATOMIC_REQUEST_NUM = "hbase.quota.default.user.machine.atomic.request.num", "requests", atomic_req_num;
    DEFAULT_ATOMIC_WRITE_SIZE = "hbase.quota.default.user.machine.atomic.write.size", "bytes", atomic_write_size;
    DEFAULT_HANDLER_MS = "hbase.quota.default.user.machine.request.handler.usage.ms", "ms", req_handler_usage_ms;
}

/// Nanoseconds of a unit by its name in Java.
pub(crate) fn nanos_of(unit: &str) -> Option<u64> {
    Some(match unit.trim() {
        "NANOSECONDS" => 1,
        "MICROSECONDS" => 1_000,
        "MILLISECONDS" => 1_000_000,
        "SECONDS" => 1_000_000_000,
        "MINUTES" => 60_000_000_000,
        "HOURS" => 3_600_000_000_000,
        "DAYS" => 86_400_000_000_000,
        _ => return None,
    })
}

macro_rules! chore {
    ($(#[$meta:meta])* $name:ident, $prefix:literal, $delay:literal, $period:literal, $what:literal) => {
        $(#[$meta])*
        pub const $name: ChoreKeys = ChoreKeys {
            delay: Setting {
                key: concat!($prefix, ".delay"),
                default: $delay,
                min: 0,
                max: i64::MAX as u64,
                unit: "",
                doc: concat!("After how long from the start ", $what, " for the first time, counted as ", $prefix, ".timeunit says."),
            },
            period: Setting {
                key: concat!($prefix, ".period"),
                default: $period,
                min: 1,
                max: i32::MAX as u64,
                unit: "",
                doc: concat!("How often ", $what, ", counted as ", $prefix, ".timeunit says."),
            },
            unit: TextSetting {
                key: concat!($prefix, ".timeunit"),
                default: "MILLISECONDS",
                legal: Some("one of NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS and DAYS"),
                is_legal: |text| nanos_of(text).is_some(),
                doc: concat!("What the period and the delay are counted in after which ", $what, "."),
            },
        };
    };
}

chore!(
    /// Times of the chore that holds tables against their quotas of space.
    OBSERVER,
    "hbase.master.quotas.observer.chore",
    15_000,
    60_000,
    "the sizes of tables are held against their quotas of space"
);
chore!(
    /// Times of the chore that measures snapshots.
    SNAPSHOT_SIZES,
    "hbase.master.quotas.snapshot.chore",
    60_000,
    300_000,
    "it is measured what only snapshots keep of tables with quotas of space"
);
chore!(
    /// Times of the chore that reads how tables stand to their quotas of space.
    REFRESHER,
    "hbase.regionserver.quotas.policy.refresher.chore",
    15_000,
    60_000,
    "region servers learn anew from hbase:quota which tables violate their quotas of space, beside each time that this changes"
);
chore!(
    /// Times of the chore that reports the sizes of regions.
    REPORTING,
    "hbase.regionserver.quotas.region.size.reporting.chore",
    30_000,
    60_000,
    "the sizes of regions are reported to the master"
);

/// How much of a table must be known.
pub const REPORT_FRACTION: Setting<f64> = Setting {
    key: "hbase.master.quotas.observer.report.percent",
    default: 0.95,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "Which part of a table's regions must have been reported before the table can violate its quota of space.",
};

/// How long a reported size counts.
pub const REPORT_RETENTION_MS: Setting<u64> = Setting {
    key: "hbase.master.quotas.region.report.retention.millis",
    default: 600_000,
    min: 0,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "How long the reported size of a region counts, unless it is reported again.",
};

/// What throttling needs of the settings.
#[derive(Clone, Debug)]
pub struct ThrottleSettings {
    /// What costs are reckoned by.
    pub costs: OperationCosts,
    /// The rate limiter.
    pub kind: RateLimiterKind,
    /// Limits of users without quotas, where there are any.
    pub defaults: Option<pb::Throttle>,
    /// The attribute of a request that names its user.
    pub user_override: Option<String>,
}

impl ThrottleSettings {
    /// As `config` says, for a server with so many handlers.
    pub fn from_config(config: &Config, handlers: i64) -> ThrottleSettings {
        let bytes = |setting| i64::try_from(config.get(setting)).unwrap_or(i64::MAX);
        let is_fixed = config.text(RATE_LIMITER.key).is_some_and(|text| text.trim() == FIXED_CLASS);
        let interval_ms = i64::try_from(config.get(&REFILL_INTERVAL_MS)).unwrap_or(i64::MAX);
        let mut throttle = pb::Throttle::default();
        for (setting, set) in DEFAULTS {
            let limit = config.get(*setting);
            if limit != -1 {
                set(&mut throttle, per_second(limit));
            }
        }
        ThrottleSettings {
            costs: OperationCosts {
                write_unit_bytes: bytes(&WRITE_UNIT_BYTES),
                read_unit_bytes: bytes(&READ_UNIT_BYTES),
                by_result_size: config.get(&BY_RESULT_SIZE),
                handlers,
            },
            kind: if is_fixed { RateLimiterKind::fixed(interval_ms) } else { RateLimiterKind::Average },
            defaults: (throttle != pb::Throttle::default()).then_some(throttle),
            user_override: config.text(USER_OVERRIDE.key).map(str::to_owned),
        }
    }
}

fn per_second(limit: i32) -> pb::TimedQuota {
    pb::TimedQuota {
        time_unit: pb::TimeUnit::Seconds as i32,
        soft_limit: Some(u64::try_from(limit).unwrap_or(0)),
        share: None,
        scope: Some(pb::QuotaScope::Machine as i32),
    }
}

/// Every row of this crate.
pub const ALL: &[&dyn SettingRow] = &[
    &ENABLED,
    &REFRESH_PERIOD_MS,
    &READ_UNIT_BYTES,
    &WRITE_UNIT_BYTES,
    &BY_RESULT_SIZE,
    &RATE_LIMITER,
    &REFILL_INTERVAL_MS,
    &USER_OVERRIDE,
    &DEFAULT_READ_NUM,
    &DEFAULT_READ_SIZE,
    &DEFAULT_REQUEST_NUM,
    &DEFAULT_REQUEST_SIZE,
    &DEFAULT_WRITE_NUM,
    &DEFAULT_WRITE_SIZE,
    &DEFAULT_ATOMIC_READ_SIZE,
    &DEFAULT_ATOMIC_REQUEST_NUM,
    &DEFAULT_ATOMIC_WRITE_SIZE,
    &DEFAULT_HANDLER_MS,
    &OBSERVER.period,
    &OBSERVER.delay,
    &OBSERVER.unit,
    &REPORT_FRACTION,
    &REPORT_RETENTION_MS,
    &SNAPSHOT_SIZES.period,
    &SNAPSHOT_SIZES.delay,
    &SNAPSHOT_SIZES.unit,
    &REFRESHER.period,
    &REFRESHER.delay,
    &REFRESHER.unit,
    &REPORTING.period,
    &REPORTING.delay,
    &REPORTING.unit,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_which_limiter_and_what_users_without_quotas_may_do() {
        let mut config = Config::default();
        let plain = ThrottleSettings::from_config(&config, 30);
        assert_eq!((plain.kind, plain.defaults), (RateLimiterKind::Average, None));
        config.set(RATE_LIMITER.key, FIXED_CLASS);
        config.set(REFILL_INTERVAL_MS.key, "5000");
        for (at, (setting, _)) in DEFAULTS.iter().enumerate() {
            config.set(setting.key, (at + 1).to_string());
        }
        let set = ThrottleSettings::from_config(&config, 30);
        assert_eq!(set.kind, RateLimiterKind::Fixed { interval_ms: 1000 });
        let throttle = set.defaults.expect("limits are given");
        assert_eq!(throttle.read_num, Some(per_second(1)));
        assert_eq!(throttle.req_handler_usage_ms, Some(per_second(10)));
        assert_eq!(throttle.req_capacity_unit, None, "HBase has no default for it");
    }
}
