//! Values of settings about compactions.

use base::Value;

const HOUR_MS: i64 = 3_600_000;

/// How a compaction chooses files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum CompactionPolicy {
    /// The run of neighbours that gets rid of the most files for the least bytes.
    Exploring,
    /// All from the oldest file on that is within the ratio.
    RatioBased,
    /// None: what is past its time to live is dropped.
    Fifo,
}

impl std::fmt::Display for CompactionPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CompactionPolicy::Exploring => "ExploringCompactionPolicy",
            CompactionPolicy::RatioBased => "RatioBasedCompactionPolicy",
            CompactionPolicy::Fifo => "FIFOCompactionPolicy",
        })
    }
}

impl Value for CompactionPolicy {
    fn parse_text(text: &str) -> Option<Self> {
        let class = text.trim().rsplit('.').next().unwrap_or_default();
        [CompactionPolicy::Exploring, CompactionPolicy::RatioBased, CompactionPolicy::Fifo]
            .into_iter()
            .find(|policy| policy.to_string() == class)
    }
    const TYPE: &'static str = "compaction policy";
    const LEGAL: Option<&'static str> =
        Some("ExploringCompactionPolicy, RatioBasedCompactionPolicy or FIFOCompactionPolicy");
}

/// The hours of the day in which compactions may be eager. Follows: `OffPeakHours`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffPeakHours(Option<(i64, i64)>);

impl OffPeakHours {
    /// From the beginning of one hour to the beginning of another; none if one of them is not an hour of the day, or they are the same.
    pub fn new(start: i64, end: i64) -> OffPeakHours {
        let are_hours = (0..24).contains(&start) && (0..24).contains(&end);
        OffPeakHours((are_hours && start != end).then_some((start, end)))
    }

    /// Whether `now_ms` is within them, by UTC.
    pub fn contains(self, now_ms: i64) -> bool {
        let hour = now_ms.div_euclid(HOUR_MS).rem_euclid(24);
        self.0.is_some_and(
            |(start, end)| {
                if start < end { (start..end).contains(&hour) } else { hour >= start || hour < end }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_peak_hours_may_go_past_midnight() {
        let hours = |start, end| {
            let hours = OffPeakHours::new(start, end);
            (0..24).filter(|hour| hours.contains(hour * HOUR_MS + 7)).collect::<Vec<_>>()
        };
        assert_eq!(hours(2, 5), [2, 3, 4]);
        assert_eq!(hours(22, 2), [0, 1, 22, 23]);
        assert_eq!((hours(-1, -1), hours(3, 3), hours(-1, 4)), (vec![], vec![], vec![]));
    }

    #[test]
    fn a_policy_is_said_by_the_name_of_its_class() {
        let package = "org.apache.hadoop.hbase.regionserver.compactions";
        let parse = CompactionPolicy::parse_text;
        assert_eq!(parse(&format!("{package}.FIFOCompactionPolicy")), Some(CompactionPolicy::Fifo));
        assert_eq!(parse(" RatioBasedCompactionPolicy "), Some(CompactionPolicy::RatioBased));
        assert_eq!(parse("com.example.MyPolicy"), None);
    }
}
