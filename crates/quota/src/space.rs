//! Quotas of space: how much of its limit a table uses, what the policy of one that uses more forbids, and the chores' periods. Follows:
//! `SpaceQuotaSnapshot`, `SpaceViolationPolicyEnforcement` and its classes in `org.apache.hadoop.hbase.quotas.policies`.

use crate::settings;
use base::{Config, Setting, TextSetting};
use model::{MutationKind, TableName};
use proto::{Message, pb};
use rustc_hash::FxHashMap;
use std::fmt;
use std::time::Duration;

pub use pb::SpaceViolationPolicy as Policy;

/// How a table or namespace stands to its quota of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceSnapshot {
    /// What holds because it uses more than it may; `None`: it does not.
    pub violated: Option<Policy>,
    /// Bytes in use: of store files, and of what only snapshots keep.
    pub usage_bytes: u64,
    /// Bytes that it may use.
    pub limit_bytes: u64,
}

impl SpaceSnapshot {
    /// How `usage_bytes` stand to `quota`.
    pub fn of(quota: &pb::SpaceQuota, usage_bytes: u64) -> SpaceSnapshot {
        let limit_bytes = quota.soft_limit();
        let violated = (usage_bytes > limit_bytes).then(|| quota.violation_policy());
        SpaceSnapshot { violated, usage_bytes, limit_bytes }
    }

    /// The message that stands for it.
    pub fn to_message(&self) -> pb::SpaceQuotaSnapshot {
        let quota_status = pb::SpaceQuotaStatus {
            violation_policy: self.violated.map(|policy| policy as i32),
            in_violation: Some(self.violated.is_some()),
        };
        pb::SpaceQuotaSnapshot {
            quota_status: Some(quota_status),
            quota_usage: Some(self.usage_bytes),
            quota_limit: Some(self.limit_bytes),
        }
    }

    /// What a message says.
    pub fn from_message(message: &pb::SpaceQuotaSnapshot) -> SpaceSnapshot {
        let status = message.quota_status.unwrap_or_default();
        let violated = status.in_violation().then(|| status.violation_policy());
        SpaceSnapshot { violated, usage_bytes: message.quota_usage(), limit_bytes: message.quota_limit() }
    }
}

/// How tables stand to quotas, as region servers know it.
pub type TableSnapshots = FxHashMap<TableName, SpaceSnapshot>;

/// A write, load or compaction that a quota of space forbids. As HBase's SpaceLimitingException says it: the policy's name is the first word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceLimited {
    policy: &'static str,
    message: String,
}

impl fmt::Display for SpaceLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.policy, self.message)
    }
}

impl std::error::Error for SpaceLimited {}

/// Whether a mutation is allowed under a policy that holds.
///
/// # Errors
/// It is not.
pub fn check_mutation(policy: Policy, kind: MutationKind) -> Result<(), SpaceLimited> {
    let message = match (policy, kind) {
        (Policy::Disable, _) => "This table is disabled due to violating a space quota.".to_owned(),
        // A delete frees space, though not at once.
        (Policy::NoInserts, MutationKind::Delete) => return Ok(()),
        _ => format!("{kind:?}s are disallowed due to a space quota."),
    };
    Err(SpaceLimited { policy: policy.as_str_name(), message })
}

/// Whether the sizes of files that are to be loaded fit in what `snapshot` leaves. `None`: the table has no quota, and any size fits. The
/// files are looked at one after the other, until they do not fit; `size_of` answers the bytes of one, `None` where they cannot be told.
///
/// # Errors
/// They do not fit, or a file's size cannot be told.
pub fn check_bulk_load<'a>(
    snapshot: Option<&SpaceSnapshot>,
    paths: &[&'a str],
    size_of: impl Fn(&'a str) -> Option<u64>,
) -> Result<(), SpaceLimited> {
    let policy = match snapshot {
        None => "NoQuota",
        Some(SpaceSnapshot { violated: None, .. }) => "BulkLoadVerifying",
        Some(SpaceSnapshot { violated: Some(policy), .. }) => policy.as_str_name(),
    };
    let mut bytes = 0u64;
    for path in paths {
        let Some(size) = size_of(path) else {
            // The word is HBase's.
            let word = if snapshot.is_some() { "Colud" } else { "Could" };
            return Err(SpaceLimited {
                policy,
                message: format!("{word} not verify length of file to bulk load: {path}"),
            });
        };
        bytes = bytes.saturating_add(size);
        let fits = snapshot.is_none_or(|snapshot| {
            // More may be used than is allowed: nothing at all fits then, not even an empty file.
            snapshot.limit_bytes.checked_sub(snapshot.usage_bytes).is_some_and(|left| bytes <= left)
        });
        if !fits {
            let message = format!(
                "Bulk load of [{}] is disallowed because the file(s) exceed the limits of a space quota.",
                paths.join(", ")
            );
            return Err(SpaceLimited { policy, message });
        }
    }
    Ok(())
}

/// Whether a policy that holds lets nobody but superusers ask for compactions.
pub fn forbids_compactions(policy: Policy) -> bool {
    policy == Policy::NoWritesCompactions
}

/// How a table stands to its quota, in a cell's value: without the magic that settings begin with.
pub fn encode(snapshot: &SpaceSnapshot) -> Vec<u8> {
    snapshot.to_message().encode_to_vec()
}

/// What [`encode`] wrote.
///
/// # Errors
/// What is wrong with it.
pub fn decode(value: &[u8]) -> Result<SpaceSnapshot, String> {
    let message = pb::SpaceQuotaSnapshot::decode(value).map_err(|error| error.to_string())?;
    Ok(SpaceSnapshot::from_message(&message))
}

/// Bytes that only snapshots keep, in a cell's value.
pub fn encode_size(bytes: u64) -> Vec<u8> {
    pb::SpaceQuotaSnapshot { quota_usage: Some(bytes), ..pb::SpaceQuotaSnapshot::default() }.encode_to_vec()
}

/// What [`encode_size`] wrote.
///
/// # Errors
/// What is wrong with it.
pub fn decode_size(value: &[u8]) -> Result<u64, String> {
    pb::SpaceQuotaSnapshot::decode(value).map(|message| message.quota_usage()).map_err(|error| error.to_string())
}

/// When a chore runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChoreTimes {
    /// Before its first run.
    pub delay: Duration,
    /// Between two runs.
    pub period: Duration,
}

/// The settings of a chore's times.
#[derive(Debug)]
pub struct ChoreKeys {
    /// Before its first run.
    pub delay: Setting<u64>,
    /// Between two runs.
    pub period: Setting<u64>,
    /// What the two are counted in.
    pub unit: TextSetting,
}

impl ChoreKeys {
    /// As `config` says.
    pub fn times(&self, config: &Config) -> ChoreTimes {
        let unit = config.text(self.unit.key).and_then(settings::nanos_of).unwrap_or(1_000_000);
        let of = |setting: &Setting<u64>| Duration::from_nanos(config.get(setting).saturating_mul(unit));
        ChoreTimes { delay: of(&self.delay), period: of(&self.period) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: [Policy; 4] = [Policy::Disable, Policy::NoWritesCompactions, Policy::NoWrites, Policy::NoInserts];

    #[test]
    fn each_policy_forbids_what_hbases_does_with_its_sentence() {
        use MutationKind::{Append, Delete, Increment, Put};
        let said = |policy, kind| check_mutation(policy, kind).map_err(|limited| limited.to_string());
        for kind in [Put, Delete, Increment, Append] {
            let disabled = "DISABLE This table is disabled due to violating a space quota.".to_owned();
            assert_eq!(said(Policy::Disable, kind), Err(disabled));
            let plural = format!("{kind:?}s are disallowed due to a space quota.");
            assert_eq!(said(Policy::NoWrites, kind), Err(format!("NO_WRITES {plural}")));
            assert_eq!(said(Policy::NoWritesCompactions, kind), Err(format!("NO_WRITES_COMPACTIONS {plural}")));
            let inserts = if kind == Delete { Ok(()) } else { Err(format!("NO_INSERTS {plural}")) };
            assert_eq!(said(Policy::NoInserts, kind), inserts);
        }
        assert_eq!(POLICIES.map(forbids_compactions), [false, true, false, false]);
    }

    /// What Apache HBase 2.6.4 answered to `tests/interop`'s `SpaceQuotaGolden`.
    const GOLDEN: &str = include_str!("../../../tests/golden/quota/space-answers.txt");

    #[test]
    fn what_hbase_refused_is_refused_with_the_same_words() {
        use MutationKind::{Append, Delete, Increment, Put};
        let mut compared = 0;
        for policy in [Policy::NoInserts, Policy::NoWrites, Policy::NoWritesCompactions] {
            for (kind, call) in [(Put, "put"), (Delete, "delete"), (Increment, "increment"), (Append, "append")] {
                let begins = format!("{} {call} => ", policy.as_str_name());
                let answer = GOLDEN.lines().find_map(|line| line.strip_prefix(&begins)).expect("it was asked");
                let ours = match check_mutation(policy, kind) {
                    Ok(()) => "null".to_owned(),
                    Err(why) => format!("throws org.apache.hadoop.hbase.quotas.SpaceLimitingException: {why}"),
                };
                assert_eq!(ours, answer);
                compared += 1;
            }
        }
        assert_eq!(compared, 12);
    }

    #[test]
    fn a_bulk_load_fits_in_what_the_quota_leaves() {
        let size = |path: &str| (path != "gone").then_some(path.len() as u64);
        let check = |snapshot: Option<SpaceSnapshot>, paths: &[&'static str]| {
            check_bulk_load(snapshot.as_ref(), paths, size).map_err(|limited| limited.to_string())
        };
        let with = |violated, usage_bytes, limit_bytes| Some(SpaceSnapshot { violated, usage_bytes, limit_bytes });
        assert_eq!(check(None, &["aaaa", "bb"]), Ok(()));
        assert_eq!(check(with(None, 4, 10), &["aaaa", "bb"]), Ok(()), "it may be full to the last byte");
        assert_eq!(
            check(with(None, 5, 10), &["aaaa", "bb"]),
            Err("BulkLoadVerifying Bulk load of [aaaa, bb] is disallowed because the file(s) exceed the limits of a space quota."
                .to_owned())
        );
        let over = check(with(Some(Policy::NoInserts), 11, 10), &[""]).expect_err("nothing fits");
        assert!(over.starts_with("NO_INSERTS Bulk load of [] is disallowed"), "{over}");
        assert_eq!(
            check(None, &["gone"]),
            Err("NoQuota Could not verify length of file to bulk load: gone".to_owned())
        );
        let gone = check(with(None, 0, 10), &["gone"]).expect_err("it is not there");
        assert!(gone.starts_with("BulkLoadVerifying Colud not verify length"), "{gone}");
    }

    #[test]
    fn usage_is_written_as_hbase_writes_it() {
        let quota =
            pb::SpaceQuota { soft_limit: Some(1 << 20), violation_policy: Some(Policy::NoWrites as i32), remove: None };
        let observes = SpaceSnapshot::of(&quota, 1 << 20);
        assert_eq!(observes.violated, None, "as much as it may is not too much");
        assert_eq!(encode(&observes), b"\x0a\x02\x10\x00\x10\x80\x80\x40\x18\x80\x80\x40");
        let violates = SpaceSnapshot::of(&quota, (1 << 20) + 1);
        assert_eq!(encode(&violates), b"\x0a\x04\x08\x03\x10\x01\x10\x81\x80\x40\x18\x80\x80\x40");
        for snapshot in [observes, violates] {
            assert_eq!(decode(&encode(&snapshot)), Ok(snapshot));
        }
        assert_eq!(encode_size(300), b"\x10\xac\x02");
        assert_eq!(decode_size(&encode_size(300)), Ok(300));
        assert!(decode(b"PBUF").is_err() && decode_size(b"\x10").is_err());
    }

    #[test]
    fn a_chores_times_are_in_its_unit() {
        let mut config = Config::default();
        let keys = &settings::OBSERVER;
        let plain = ChoreTimes { delay: Duration::from_secs(15), period: Duration::from_secs(60) };
        assert_eq!(keys.times(&config), plain);
        config.set(keys.period.key, "2");
        config.set(keys.delay.key, "0");
        config.set(keys.unit.key, "HOURS");
        assert_eq!(keys.times(&config), ChoreTimes { delay: Duration::ZERO, period: Duration::from_secs(7200) });
        assert!((keys.unit.is_legal)("NANOSECONDS") && !(keys.unit.is_legal)("hours"));
    }
}
