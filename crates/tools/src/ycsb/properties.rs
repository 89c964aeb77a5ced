//! Java property files and `-p name=value`, as YCSB reads its parameters.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, anyhow};

/// Names and values; later ones win.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    values: BTreeMap<String, String>,
}

impl Properties {
    /// Adds what a property file says: `#` and `!` begin comments, `=`, `:` or white space end a name, a backslash at
    /// the end continues a line.
    pub fn read(&mut self, text: &str) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut line = line.trim_start().to_owned();
            if line.starts_with(['#', '!']) {
                continue;
            }
            while line.ends_with('\\') {
                line.pop();
                line.push_str(lines.next().unwrap_or_default().trim_start());
            }
            let end = line.find(|c: char| c == '=' || c == ':' || c.is_whitespace()).unwrap_or(line.len());
            let (name, rest) = line.split_at(end);
            let rest = rest.trim_start();
            let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
            if !name.is_empty() {
                self.set(name, value);
            }
        }
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: Properties) {
        self.values.extend(others.values);
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The value as a number, or `default`.
    ///
    /// # Errors
    /// It is none; the property is named.
    pub fn number<T: FromStr>(&self, name: &str, default: T) -> anyhow::Result<T> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.trim().parse().map_err(|_| anyhow!("{text:?} is no number")).with_context(|| format!("property {name}"))
    }

    /// True for the word `true` in any case, false for all others, as Java has it; or `default`.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.text(name).map_or(default, |text| text.trim().eq_ignore_ascii_case("true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_files_are_read_as_java_reads_them() {
        let mut properties = Properties::default();
        properties.read("# a\n! b\n\nrecordcount=1000\n  x : 1\ny 2 3\nlong=a\\\n   b\nempty=\nrecordcount=5\n");
        assert_eq!(properties.number("recordcount", 0).ok(), Some(5));
        assert_eq!(properties.text("x"), Some("1"));
        assert_eq!(properties.text("y"), Some("2 3"));
        assert_eq!(properties.text("long"), Some("ab"));
        assert_eq!(properties.text("empty"), Some(""));
        assert!(properties.number::<i64>("y", 0).is_err());
        assert_eq!(properties.number("none", 7).ok(), Some(7));
        properties.set("f", "TRUE");
        assert!(properties.flag("f", false) && !properties.flag("x", true) && properties.flag("none", true));
    }
}
