//! What other issues are to bring: `tests/inventory/later.txt`, one row a line: the table's file, the row, the reason,
//! with tabs between. A row is `name` or `group: name`, as `docs/coverage.md` lists it; `group: *` and `*` are all rows
//! of a group or file.
//!
//! Always true: every line names rows that exist; a line that names one row names one that is not there yet; no row is
//! named twice.

use std::path::Path;

use anyhow::{Context, bail};

use super::{Item, Standing, Surface};

/// Which rows of a file a line names.
#[derive(Debug, PartialEq)]
enum Rows<'a> {
    All,
    Group(&'a str),
    One(&'a str),
}

impl<'a> Rows<'a> {
    fn parse(text: &'a str) -> Rows<'a> {
        match text.strip_suffix(": *") {
            _ if text == "*" => Rows::All,
            Some(group) => Rows::Group(group),
            None => Rows::One(text),
        }
    }

    fn names(&self, item: &Item) -> bool {
        match self {
            Rows::All => true,
            Rows::Group(group) => item.group == *group,
            Rows::One(name) if item.group.is_empty() => item.name == *name,
            Rows::One(name) => {
                name.strip_prefix(&item.group).and_then(|rest| rest.strip_prefix(": ")) == Some(&item.name)
            }
        }
    }
}

/// Marks what the list names.
pub fn mark(root: &Path, surfaces: &mut [Surface]) -> anyhow::Result<()> {
    let path = root.join("tests/inventory/later.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        mark_line(line, surfaces).with_context(|| format!("{}:{}", path.display(), number + 1))?;
    }
    Ok(())
}

fn mark_line(line: &str, surfaces: &mut [Surface]) -> anyhow::Result<()> {
    let mut fields = line.split('\t');
    let (Some(file), Some(rows), Some(reason), None) = (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        bail!("not a file, a row and a reason with tabs between: {line:?}");
    };
    if reason.trim().is_empty() {
        bail!("no reason is given");
    }
    let parsed = Rows::parse(rows);
    let items = surfaces.iter_mut().flat_map(|surface| &mut surface.items);
    let mut found = 0;
    for item in items.filter(|item| item.file == file && parsed.names(item)) {
        found += 1;
        if matches!(parsed, Rows::One(_)) && item.standing == Standing::There {
            bail!("{rows:?} of {file} is there: take the line out");
        }
        // What a whole group leaves to others may be there in part.
        if item.standing == Standing::There {
            continue;
        }
        if std::mem::replace(&mut item.later, true) {
            bail!("{rows:?} of {file} is named twice");
        }
    }
    if found == 0 {
        bail!("{file} has no row {rows:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Listing;
    use crate::coverage::inventory::Tier;

    fn surfaces() -> Vec<Surface> {
        let item = |group: &str, name: &str, standing| Item {
            file: "a.csv".into(),
            group: group.into(),
            name: name.into(),
            tier: Tier::Core,
            standing,
            later: false,
        };
        let items = vec![
            item("S", "one", Standing::Missing),
            item("S", "two", Standing::There),
            item("", "three", Standing::Part),
        ];
        vec![Surface { title: "A", rule: String::new(), items, listing: Listing::None }]
    }

    fn later(surfaces: &[Surface]) -> Vec<&str> {
        surfaces.iter().flat_map(|surface| &surface.items).filter(|item| item.later).map(|item| &*item.name).collect()
    }

    #[test]
    fn lines_name_rows_that_exist_and_are_not_there() {
        let mut all = surfaces();
        mark_line("a.csv\tS: *\tcluster", &mut all).expect("a group");
        mark_line("a.csv\tthree\tcluster", &mut all).expect("a row");
        assert_eq!(later(&all), ["one", "three"]);
        for bad in [
            "a.csv\tS: one\tnamed twice",
            "a.csv\tS: two\tis there",
            "a.csv\tS: four\tno such row",
            "b.csv\t*\tno such file",
            "a.csv\tthree",
            "a.csv\tthree\t",
        ] {
            assert!(mark_line(bad, &mut surfaces()).is_err() || mark_line(bad, &mut all).is_err(), "{bad}");
        }
    }
}
