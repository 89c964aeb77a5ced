//! The tables of everything that HBase 2.6.4 has, `tests/inventory/*.csv`.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};

/// How much a row matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// Basic clients break without it.
    Core,
    /// Normal operators and tools use it.
    Common,
    /// Security, replication, quotas, surgery and so on.
    Advanced,
    /// Old, internal, example or test.
    Rare,
}

impl Tier {
    /// Every tier, most important first.
    pub const ALL: [Tier; 4] = [Tier::Core, Tier::Common, Tier::Advanced, Tier::Rare];

    fn parse(text: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.to_string() == text)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Core => "core",
            Tier::Common => "common",
            Tier::Advanced => "advanced",
            Tier::Rare => "rare",
        })
    }
}

/// One table.
pub struct Table {
    name: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One row of a table.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    table: &'a Table,
    fields: &'a [String],
}

impl Table {
    /// Reads `tests/inventory/<name>.csv`.
    pub fn read(root: &Path, name: &str) -> anyhow::Result<Table> {
        let path = root.join("tests/inventory").join(name).with_extension("csv");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut rows = text.lines().map(split);
        let header = rows.next().with_context(|| format!("{name} is empty"))?;
        let table = Table { name: name.to_owned(), header, rows: rows.collect() };
        for row in table.rows() {
            if Tier::parse(row.get("tier")).is_none() {
                bail!("{name}: a row has no tier: {:?}", row.fields);
            }
        }
        Ok(table)
    }

    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|fields| Row { table: self, fields })
    }
}

impl<'a> Row<'a> {
    /// The field of that column.
    ///
    /// # Panics
    /// When the table has no such column: the generator and the tables go together.
    pub fn get(self, column: &str) -> &'a str {
        let at = self.table.header.iter().position(|name| name == column);
        let at = at.unwrap_or_else(|| panic!("{} has no column {column}", self.table.name));
        self.fields.get(at).map_or("", String::as_str)
    }

    /// The file that it is in.
    pub fn file(self) -> String {
        format!("{}.csv", self.table.name)
    }

    /// Its tier.
    pub fn tier(self) -> Tier {
        Tier::parse(self.get("tier")).unwrap_or(Tier::Rare)
    }
}

fn split(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_keep_their_commas_and_quotes() {
        assert_eq!(split(r#"a,"b,c","d ""e""",,"#), ["a", "b,c", "d \"e\"", "", ""]);
    }
}
