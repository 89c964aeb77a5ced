//! Settings under HBase's own key names. One [`Setting`] row per key lives in the crate that uses it; a
//! [`Config`] holds what `hbase-site.xml` and `-D key=value` said, as text, and reads it through the rows.
//!
//! Always true: a value out of its bounds is refused aloud by [`Config::check`], never clamped in silence.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// A type that a setting can have.
pub trait Value: Copy + PartialOrd + Display + Send + Sync + 'static {
    /// The value in `text`, or `None`.
    fn parse_text(text: &str) -> Option<Self>;
    /// The type's name for documentation.
    const TYPE: &'static str;
    /// What is legal, where the values have names and bounds say nothing.
    const LEGAL: Option<&'static str> = None;
}

macro_rules! number_value {
    ($($t:ty),*) => {$(
        impl Value for $t {
            fn parse_text(text: &str) -> Option<Self> {
                <$t>::from_str(text.trim()).ok()
            }
            const TYPE: &'static str = stringify!($t);
        }
    )*};
}
number_value!(u16, u32, u64, i32, i64, f64);

impl Value for bool {
    fn parse_text(text: &str) -> Option<Self> {
        match text.trim() {
            t if t.eq_ignore_ascii_case("true") => Some(true),
            t if t.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }
    const TYPE: &'static str = "bool";
}

/// One key: name, default, bounds, and what it does.
#[derive(Debug)]
pub struct Setting<T> {
    /// HBase's key, or one beginning with `basalt.` where HBase has none.
    pub key: &'static str,
    /// Used when the key is absent.
    pub default: T,
    /// Smallest legal value, inclusive.
    pub min: T,
    /// Largest legal value, inclusive.
    pub max: T,
    /// Unit of the value: "bytes", "ms", "count", "fraction", "".
    pub unit: &'static str,
    /// One paragraph: what a bigger value buys and costs.
    pub doc: &'static str,
}

/// A [`Setting`] without its type: for listing, checking and documentation.
pub trait SettingRow: Sync {
    /// The key.
    fn key(&self) -> &'static str;
    /// Type, default, bounds, unit and text, for documentation.
    fn describe(&self) -> SettingText;
    /// Whether `text` is a legal value.
    ///
    /// # Errors
    /// A sentence naming key, value and what is legal.
    fn check(&self, text: &str) -> Result<(), SettingError>;
}

/// What documentation prints of a setting.
#[derive(Debug, Clone)]
pub struct SettingText {
    /// The key.
    pub key: &'static str,
    /// Name of the value's type.
    pub type_name: &'static str,
    /// Default, minimum, maximum as text.
    pub default: String,
    /// Smallest legal value.
    pub min: String,
    /// Largest legal value.
    pub max: String,
    /// The legal values, where they have names.
    pub legal: Option<&'static str>,
    /// Unit.
    pub unit: &'static str,
    /// Paragraph.
    pub doc: &'static str,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{}; change it in hbase-site.xml or with -D {key}=VALUE", self.given_elsewhere())]
pub struct SettingError {
    key: &'static str,
    value: String,
    legal: String,
}

impl SettingError {
    /// The same about a value that was given elsewhere, for the caller to say where it is to be changed.
    pub fn given_elsewhere(&self) -> String {
        format!("{} = {:?} is not usable: it must be {}", self.key, self.value, self.legal)
    }
}

impl<T: Value> Setting<T> {
    fn parse(&self, text: &str) -> Result<T, SettingError> {
        match T::parse_text(text) {
            Some(value) if value >= self.min && value <= self.max => Ok(value),
            _ => Err(SettingError { key: self.key, value: text.to_owned(), legal: self.legal() }),
        }
    }

    fn legal(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        T::LEGAL.map_or_else(|| format!("a {} from {} to {}{unit}", T::TYPE, self.min, self.max), str::to_owned)
    }
}

impl<T: Value> SettingRow for Setting<T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn describe(&self) -> SettingText {
        SettingText {
            key: self.key,
            type_name: T::TYPE,
            default: self.default.to_string(),
            min: self.min.to_string(),
            max: self.max.to_string(),
            legal: T::LEGAL,
            unit: self.unit,
            doc: self.doc,
        }
    }

    fn check(&self, text: &str) -> Result<(), SettingError> {
        self.parse(text).map(|_| ())
    }
}

/// One key whose value is text.
#[derive(Debug)]
pub struct TextSetting {
    /// HBase's key, or one beginning with `basalt.` where HBase has none.
    pub key: &'static str,
    /// What holds when the key is absent, as documentation says it.
    pub default: &'static str,
    /// The legal values, as an error says them; `None`: any text.
    pub legal: Option<&'static str>,
    /// Whether a text is legal.
    pub is_legal: fn(&str) -> bool,
    /// One paragraph: what it does.
    pub doc: &'static str,
}

impl TextSetting {
    /// Its type's name, for documentation.
    pub const TYPE: &'static str = "text";

    /// A key for which any text will do, as far as can be said without using it.
    pub const fn any(key: &'static str, default: &'static str, doc: &'static str) -> TextSetting {
        TextSetting { key, default, legal: None, is_legal: |_| true, doc }
    }
}

impl SettingRow for TextSetting {
    fn key(&self) -> &'static str {
        self.key
    }

    fn describe(&self) -> SettingText {
        SettingText {
            key: self.key,
            type_name: TextSetting::TYPE,
            default: self.default.to_owned(),
            min: String::new(),
            max: String::new(),
            legal: self.legal,
            unit: "",
            doc: self.doc,
        }
    }

    fn check(&self, text: &str) -> Result<(), SettingError> {
        if (self.is_legal)(text) {
            return Ok(());
        }
        let legal = self.legal.unwrap_or("another text").to_owned();
        Err(SettingError { key: self.key, value: text.to_owned(), legal })
    }
}

/// Keys that have another name since the last release, and that name. A row stays here for one release.
const RENAMED: &[(&str, &str)] = &[("basalt.wal.gather.percent", "basalt.wal.group.commit.delay.percent")];

/// Key-value settings as the operator gave them.
#[derive(Debug, Clone, Default)]
pub struct Config {
    values: BTreeMap<String, String>,
}

impl Config {
    /// Sets `key`; a later call wins. The name that a key had in the release before is taken for its new one, unless that is given too.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        match RENAMED.iter().find(|(former, _)| *former == key) {
            Some((_, new)) => _ = self.values.entry((*new).to_owned()).or_insert_with(|| value.into()),
            None => _ = self.values.insert(key, value.into()),
        }
    }

    /// The raw text of `key`, if given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Whether the operator gave `key`.
    pub fn is_set(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value of `setting`: what was given if it is legal, else the default. [`Config::check`] at start has
    /// refused illegal values, so the fallback is never met in a running server.
    pub fn get<T: Value>(&self, setting: &Setting<T>) -> T {
        self.text(setting.key).and_then(|text| setting.parse(text).ok()).unwrap_or(setting.default)
    }

    /// Checks every given value against its row; returns the keys that no row knows.
    ///
    /// # Errors
    /// The first value that is out of its bounds.
    pub fn check(&self, rows: &[&dyn SettingRow]) -> Result<Vec<&str>, SettingError> {
        let by_key: BTreeMap<&str, &&dyn SettingRow> = rows.iter().map(|row| (row.key(), row)).collect();
        let mut unknown = Vec::new();
        for (key, value) in &self.values {
            match by_key.get(key.as_str()) {
                Some(row) => row.check(value)?,
                None => unknown.push(key.as_str()),
            }
        }
        Ok(unknown)
    }

    /// All given keys and values in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Setting<u64> =
        Setting { key: "hbase.hregion.memstore.flush.size", default: 128, min: 1, max: 1000, unit: "bytes", doc: "" };

    #[test]
    fn a_key_is_known_by_its_former_name_too() {
        let (former, new) = RENAMED[0];
        let mut config = Config::default();
        config.set(former, "7");
        assert_eq!((config.text(new), config.text(former)), (Some("7"), None));
        config.set(new, "8");
        config.set(former, "9");
        assert_eq!(config.text(new), Some("8"), "the new name wins");
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_aloud() {
        let mut config = Config::default();
        assert_eq!(config.get(&FLUSH), 128);
        config.set(FLUSH.key, "2000");
        let error = config.check(&[&FLUSH]).expect_err("2000 is over the maximum");
        assert!(error.to_string().contains("hbase.hregion.memstore.flush.size"), "{error}");
        config.set(FLUSH.key, "500");
        config.set("some.other.key", "x");
        assert_eq!(config.check(&[&FLUSH]), Ok(vec!["some.other.key"]));
        assert_eq!(config.get(&FLUSH), 500);
    }

    #[test]
    fn a_name_that_is_not_known_is_refused_aloud() {
        const TYPE: TextSetting = TextSetting {
            key: "hbase.hash.type",
            default: "murmur",
            legal: Some("murmur or jenkins"),
            is_legal: |text| ["murmur", "jenkins"].contains(&text),
            doc: "",
        };
        let mut config = Config::default();
        config.set(TYPE.key, "md5");
        let error = config.check(&[&TYPE]).expect_err("no such name").to_string();
        assert!(error.contains("murmur or jenkins") && error.contains(TYPE.key), "{error}");
    }
}
