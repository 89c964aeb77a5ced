//! Times and sizes as HBase shows them to people, and reads them back. Follows: `PrettyPrinter`, `ColumnFamilyDescriptorBuilder#getUnit`,
//! `LocalDateTime#toString`.

/// Numbers with units as they are summed up: `1 DAY 2 HOURS`, `10GB 5MB`; what [`interval`] and [`size`] write is read, too.
fn summed(text: &str, units: &[(&str, i64)]) -> Option<i64> {
    let text = text.trim().to_uppercase();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let inner = match text.split_once('(') {
        Some((_, inner)) => inner.strip_suffix(')')?,
        None => text.as_str(),
    };
    let mut rest = inner.trim();
    let mut sum = 0_i64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: i64 = rest[..digits].parse().ok()?;
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = &after[..letters];
        let (_, factor) =
            units.iter().find(|(name, _)| *name == unit || (name.len() > 2 && format!("{name}S") == unit))?;
        sum = sum.checked_add(number.checked_mul(*factor)?)?;
        rest = after[letters..].trim_start();
    }
    Some(sum)
}

/// The seconds that a text means; none where it means none.
pub fn seconds(text: &str) -> Option<i64> {
    if text.trim().eq_ignore_ascii_case("FOREVER") {
        return Some(i64::from(i32::MAX));
    }
    summed(text, &[("DAY", 86_400), ("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1)])
}

/// The bytes that a text means.
pub fn bytes(text: &str) -> Option<i64> {
    let units = [
        ("TB", 1 << 40),
        ("GB", 1 << 30),
        ("MB", 1 << 20),
        ("KB", 1 << 10),
        ("T", 1 << 40),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("K", 1 << 10),
        ("B", 1),
    ];
    summed(text, &units)
}

/// A time as `LocalDateTime.toString` writes it, in UTC: no seconds where all that follows the minutes is zero.
pub fn timestamp(ms: i64) -> String {
    let (seconds, milli) = (ms.div_euclid(1000), ms.rem_euclid(1000));
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second_of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", -year),
    };
    let mut out = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}");
    if second != 0 || milli != 0 {
        out.push_str(&format!(":{second:02}"));
    }
    if milli != 0 {
        out.push_str(&format!(".{milli:03}"));
    }
    out
}

/// Year, month and day of a number of days since 1970. By Howard Hinnant's `civil_from_days`.
pub fn date(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * mp + 2) / 5 + 1)
}

/// A time as `java.util.Date.toString` has it, less the day of the week and the zone: `2026-11-25 08:00:00 UTC`.
pub fn moment(ms: i64) -> String {
    let seconds = ms.div_euclid(1000);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second_of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_hbases() {
        for (text, meant) in
            [("FOREVER", i64::from(i32::MAX)), ("1 DAY 2 HOURS", 93_600), ("77", 77), ("86400 SECONDS (1 DAY)", 86_400)]
        {
            assert_eq!(seconds(text), Some(meant), "{text}");
        }
        assert_eq!(bytes("10GB 25MB"), Some(10_763_632_640));
        assert_eq!((bytes("7 parsecs"), seconds("")), (None, None));
    }

    #[test]
    fn timestamps_are_javas() {
        assert_eq!(timestamp(100), "1970-01-01T00:00:00.100");
        assert_eq!(timestamp(0), "1970-01-01T00:00");
        assert_eq!(timestamp(1_764_057_600_000), "2025-11-25T08:00");
        assert_eq!(timestamp(951_782_399_999), "2000-02-28T23:59:59.999");
        assert_eq!(timestamp(i64::MAX), "+292278994-08-17T07:12:55.807");
    }
}
