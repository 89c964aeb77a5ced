//! Lists kept by hand below `tests/inventory/covered`: rows with a reason, and rows with the test that owns them.
//!
//! Always true: every line names a row of the inventory; none is left over when the surface was counted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};

use super::formats::check_owner;
use super::{Standing, Tree};

/// The lines of a list, in fields between ` | `, each with its number; empty lines and remarks are passed over.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| (at + 1, line.split(" | ").map(str::trim).collect()))
}

fn read(tree: &Tree, path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(tree.root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// `row | reason`.
pub struct Reasons {
    path: &'static str,
    left: BTreeSet<String>,
}

impl Reasons {
    /// Reads the list.
    pub fn read(tree: &Tree, path: &'static str) -> anyhow::Result<Reasons> {
        Reasons::parse(&read(tree, path)?, path)
    }

    fn parse(text: &str, path: &'static str) -> anyhow::Result<Reasons> {
        let mut left = BTreeSet::new();
        for (number, fields) in lines(text) {
            match fields.as_slice() {
                [row, reason] if !reason.is_empty() => {
                    if !left.insert((*row).to_owned()) {
                        bail!("{path}, line {number}: {row} stands there twice");
                    }
                }
                _ => bail!("{path}, line {number}: must be `row | reason`"),
            }
        }
        Ok(Reasons { path, left })
    }

    /// Rows that were not asked for yet.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether the row is in the list. Each is asked for once.
    pub fn take(&mut self, row: &str) -> bool {
        self.left.remove(row)
    }

    /// Refuses lines that no row was asked for.
    pub fn finish(self) -> anyhow::Result<()> {
        match self.left.first() {
            Some(row) => bail!("{}: the inventory has no row {row:?}", self.path),
            None => Ok(()),
        }
    }
}

/// `group | row | path::test`, or `group | row | kept: reason` for what HBase, too, only keeps and gives back.
pub struct Owned {
    path: &'static str,
    left: BTreeMap<(String, String), Standing>,
}

impl Owned {
    /// Reads the list, and looks whether the tests are there.
    pub fn read(tree: &Tree, path: &'static str) -> anyhow::Result<Owned> {
        let mut left = BTreeMap::new();
        for (number, fields) in lines(&read(tree, path)?) {
            let [group, row, why] = fields.as_slice() else {
                bail!("{path}, line {number}: must be `group | row | path::test` or `group | row | kept: reason`")
            };
            match why.strip_prefix("kept:") {
                Some(reason) if reason.trim().is_empty() => bail!("{path}, line {number}: no reason is given"),
                Some(_) => {}
                None => check_owner(tree, why).with_context(|| format!("{path}, line {number}"))?,
            }
            if left.insert(((*group).to_owned(), (*row).to_owned()), Standing::There).is_some() {
                bail!("{path}, line {number}: {row} stands there twice");
            }
        }
        Ok(Owned { path, left })
    }

    /// What the list says of the row. Each is asked for once.
    pub fn take(&mut self, group: &str, row: &str) -> Option<Standing> {
        self.left.remove(&(group.to_owned(), row.to_owned()))
    }

    /// Refuses lines of `group` that no row was asked for.
    pub fn finish(self, group: &str) -> anyhow::Result<()> {
        match self.left.keys().find(|(of, _)| of == group) {
            Some((_, row)) => bail!("{}: the inventory has no row {row:?} of {group}", self.path),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_reason_and_stands_there_once() {
        let mut list = Reasons::parse("# a remark\na.B | because\n\nc.D | so", "list").expect("a good list");
        assert!(list.take("a.B") && !list.take("a.B") && !list.take("e.F"));
        assert!(list.finish().expect_err("one is left").to_string().contains("c.D"));
        for bad in ["a.B", "a.B | ", "a.B | x | y", "a.B | x\na.B | y"] {
            assert!(Reasons::parse(bad, "list").is_err(), "{bad}");
        }
    }
}
