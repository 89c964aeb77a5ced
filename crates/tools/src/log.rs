//! Lines as HBase's tools write them: time, level, thread, logger. To standard error, as HBase's configuration does.

use std::fmt::Display;
use std::io::Write;

use base::{Clock, SystemClock};

/// A logger under one Java name.
#[derive(Debug)]
pub struct Log {
    name: &'static str,
    clock: SystemClock,
}

impl Log {
    /// A logger that calls itself `name`.
    pub fn new(name: &'static str) -> Log {
        Log { name, clock: SystemClock::new() }
    }

    fn line(&self, level: &str, thread: &str, message: &dyn Display) {
        let text = format!("{} {level:<5} [{thread}] {}: {message}\n", iso_time(self.clock.now_ms().0), self.name);
        // There is nobody to tell when standard error is gone.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// Something to know.
    pub fn info(&self, thread: &str, message: impl Display) {
        self.line("INFO", thread, &message);
    }

    /// Something odd.
    pub fn warn(&self, thread: &str, message: impl Display) {
        self.line("WARN", thread, &message);
    }

    /// Something wrong.
    pub fn error(&self, thread: &str, message: impl Display) {
        self.line("ERROR", thread, &message);
    }

    /// Microseconds on the logger's clock.
    pub fn now_us(&self) -> u64 {
        self.clock.monotonic_us()
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms().0
    }
}

/// `2026-11-21T05:00:00,123` in UTC.
pub fn iso_time(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Days since 0000-03-01 in eras of 400 years.
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02},{milli:03}")
}

#[cfg(test)]
mod tests {
    use super::iso_time;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00,000");
        assert_eq!(iso_time(951_782_399_999), "2000-02-28T23:59:59,999");
        assert_eq!(iso_time(951_782_400_000), "2000-02-29T00:00:00,000");
        assert_eq!(iso_time(1_795_237_200_007), "2026-11-21T05:00:00,007");
    }
}
