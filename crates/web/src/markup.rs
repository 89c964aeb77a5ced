//! Text for HTML and XML that cannot be written unescaped, and numbers for people.

use std::fmt::{self, Display, Write};

/// A document being written. Only literals go in as they are; every value is escaped.
#[derive(Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// An empty document with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Markup {
        Markup(String::with_capacity(bytes))
    }

    /// Adds a piece of markup of our own.
    pub fn raw(&mut self, markup: &'static str) -> &mut Markup {
        self.0.push_str(markup);
        self
    }

    /// Adds a value, escaped for text and for quoted attributes.
    pub fn text(&mut self, value: impl Display) -> &mut Markup {
        write!(Escape(&mut self.0), "{value}").expect("writing to a string");
        self
    }

    /// The document.
    pub fn finish(self) -> String {
        self.0
    }
}

struct Escape<'a>(&'a mut String);

impl Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\t' | '\n' | '\r' => self.0.push(c),
                // XML has no way at all to write these
                c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => self.0.push('\u{FFFD}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Bytes with a binary unit: `1.5 MiB`.
pub struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 1023.95 would be shown as 1024.0
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

/// A count with its thousands apart: `1,234,567`.
pub struct Count(pub u64);

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// A part of a whole: `0`, `0.747`, `1`; a dash where the whole is nothing.
pub struct Part(pub u64, pub u64);

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part(part, whole) = *self;
        match whole {
            0 => f.write_char('-'),
            _ if part == 0 || part == whole => write!(f, "{}", part / whole),
            // Cut off, so that 1 is all of it.
            _ => write!(f, "{:.3}", (part as f64 / whole as f64 * 1000.0).floor() / 1000.0),
        }
    }
}

/// A rate: `0`, `0.4`, `12.5`, `1,204`.
pub struct Rate(pub f64);

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0.05 {
            f.write_char('0')
        } else if self.0 < 99.95 {
            write!(f, "{:.1}", self.0)
        } else {
            Count(self.0.round() as u64).fmt(f)
        }
    }
}

/// A span of milliseconds with its two largest units: `3 d 4 h`.
pub struct Span(pub u64);

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        match seconds {
            0..60 => write!(f, "{seconds} s"),
            60..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3600..86_400 => write!(f, "{} h {} min", seconds / 3600, seconds % 3600 / 60),
            _ => write!(f, "{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
        }
    }
}

/// Milliseconds since the epoch as `2026-01-31 23:59:58 UTC`.
pub struct Moment(pub i64);

impl Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1000);
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // days to a date in the Gregorian calendar, with years that begin in March
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (of_day / 3600, of_day % 3600 / 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through_unescaped() {
        let mut markup = Markup::default();
        markup.raw("<b>").text("<script>&\"'\u{1}\n").raw("</b>");
        assert_eq!(markup.finish(), "<b>&lt;script&gt;&amp;&quot;&#39;\u{FFFD}\n</b>");
    }

    #[test]
    fn numbers_for_people() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_575, "1.0 MiB"), (u64::MAX, "16.0 EiB")];
        for (bytes, text) in cases {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(Count(0).to_string(), "0");
        assert_eq!(Count(1_234_567).to_string(), "1,234,567");
        assert_eq!(Count(999).to_string(), "999");
        assert_eq!([0.01, 0.4, 99.97, 1203.6].map(|r| Rate(r).to_string()), ["0", "0.4", "100", "1,204"]);
        assert_eq!(
            [59_999, 61_000, 7_260_000, 273_600_000].map(|s| Span(s).to_string()),
            ["59 s", "1 min 1 s", "2 h 1 min", "3 d 4 h"]
        );
    }

    #[test]
    fn moments() {
        let cases = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_795_229_872_099, "2026-11-21 02:57:52 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ];
        for (ms, text) in cases {
            assert_eq!(Moment(ms).to_string(), text);
        }
    }
}
