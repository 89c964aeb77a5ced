//! `docs/reliability.md` against the tree: each test that it names exists, and each scenario's test is named there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::run;

const PAGE: &str = "docs/reliability.md";

/// Holds the page's table of scenarios against the functions of the tree.
pub fn check() -> anyhow::Result<()> {
    let page = std::fs::read_to_string(run::root().join(PAGE)).with_context(|| PAGE.to_owned())?;
    let mut functions = BTreeSet::new();
    let mut sources = Vec::new();
    for dir in ["crates", "dev/sim", "dev/faults", "dev/fuzz"] {
        rust_files(&run::root().join(dir), &mut sources)?;
    }
    for source in sources {
        functions.extend(functions_of(&std::fs::read_to_string(&source)?));
    }
    let named = named_tests(&page);
    if named.len() < 20 {
        bail!("{PAGE} names {} tests: its table of scenarios is not where it was", named.len());
    }
    let mut wrong: Vec<String> =
        named.difference(&functions).map(|name| format!("{PAGE} names {name}, which is no function")).collect();
    let scenarios = functions.iter().filter(|name| is_scenario(name));
    wrong.extend(scenarios.filter(|name| !named.contains(*name)).map(|name| format!("{name} is not in {PAGE}")));
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n           "));
    }
    Ok(())
}

pub(crate) fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

/// Names of functions that take what tests and scenarios take: nothing, or a laboratory.
fn functions_of(source: &str) -> impl Iterator<Item = String> {
    source.lines().filter_map(|line| {
        let (_, rest) = line.trim_start().split_once("fn ")?;
        let (name, _) = rest.split_once('(')?;
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_').then(|| name.to_owned())
    })
}

/// `f04_sync_fails_once` is one, `finish` is none.
fn is_scenario(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() > 4 && bytes[0] == b'f' && bytes[1].is_ascii_digit() && bytes[2].is_ascii_digit() && bytes[3] == b'_'
}

/// What stands in backquotes in the last column of the rows that begin with a scenario's number.
fn named_tests(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with("| F") || line.starts_with("| - |"));
    let cells = rows.filter_map(|row| row.trim_end().trim_end_matches('|').rsplit('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_in_the_table_and_in_the_tree() {
        let page =
            "text with `code`\n| # | what | tests |\n| F4 | sync `x` | process: `f04_a`; model: `other_test` |\n";
        assert_eq!(named_tests(page).into_iter().collect::<Vec<_>>(), ["f04_a", "other_test"]);
        let source = "#[test]\nfn f04_a() {}\npub async fn f05_b(lab: &mut Lab) -> X {\n";
        assert_eq!(functions_of(source).collect::<Vec<_>>(), ["f04_a", "f05_b"]);
        assert!(is_scenario("f04_a") && !is_scenario("finish") && !is_scenario("f4_a"));
    }
}
