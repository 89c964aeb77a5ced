//! Commands and options of HBase's scripts and jars. The options of `pe` and `ltt` are looked for in the sources; every other row is there when
//! a list names the test that owns it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};

use super::formats::check_given;
use super::outside::test_text;
use super::source::Source;
use super::{Item, Listing, Standing, Surface, Tree};

/// The hand-kept list: `tool | name | words | owner`, where owner is `path::test function`, and the words, parted by blanks, stand in the test:
/// how it gives the option.
const LIST: &str = "tests/inventory/covered/tools.txt";

/// Options that a native tool reads and then refuses or ignores.
const REFUSED: &[(&str, &str)] = &[("ltt", "encryption"), ("ltt", "region_replica_id"), ("ltt", "region_replication")];

/// Rows that have a test, each with the line that says so.
fn owned(tree: &Tree) -> anyhow::Result<BTreeMap<[String; 2], usize>> {
    let text = std::fs::read_to_string(tree.root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let mut owned = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let place = || format!("{LIST}, line {}", number + 1);
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [tool, name, words, owner] = parts.as_slice() else {
            bail!("{}: must be `tool | name | words | owner`", place());
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        if words.is_empty() {
            bail!("{}: no word says how the test gives it", place());
        }
        check_given(tree, owner, &words).with_context(place)?;
        if owned.insert([*tool, *name].map(str::to_owned), number + 1).is_some() {
            bail!("{}: {tool} {name} is named twice", place());
        }
    }
    Ok(owned)
}

/// Every row.
pub fn tools(tree: &Tree) -> anyhow::Result<Surface> {
    let mut owned = owned(tree)?;
    let tests = test_text(tree, "crates/basalt/tests", "rs")?;
    let given: BTreeSet<&str> = tests.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let known = |tool: &str, name: &str| {
        let folder = format!("crates/tools/src/{tool}/");
        let mut sources = tree.of_crate("tools").filter(|source: &&Source| source.path.starts_with(&folder));
        sources.any(|source| source.literals().iter().any(|literal| literal.split(',').any(|part| part == name)))
    };
    let inventory = tree.table("tools")?;
    let mut items = Vec::new();
    for row in inventory.rows() {
        let (tool, name) = (row.get("tool"), row.get("name"));
        let word = name.rsplit(' ').next().unwrap_or(name).trim_start_matches('-');
        let is_owned = owned.remove(&[tool, name].map(str::to_owned)).is_some();
        let standing = match row.get("kind") {
            _ if is_owned => Standing::There,
            _ if !matches!(tool, "pe" | "ltt") || REFUSED.contains(&(tool, word)) => Standing::Missing,
            "hbase command" => Standing::There,
            _ if !known(tool, word) => Standing::Missing,
            _ if given.contains(word) => Standing::There,
            _ => Standing::Part,
        };
        items.push(Item::new(row, tool, name, standing));
    }
    if let Some(([tool, name], line)) = owned.first_key_value() {
        bail!("{LIST}, line {line}: the inventory has no {tool} {name}");
    }
    Ok(Surface {
        title: "Tools",
        rule: format!(
            "Commands, options and tool classes of HBase's scripts and jars, as commands of Basalt's own. A row counts when `{LIST}` names \
             a test of the binary that gives it and looks at what comes of it, and that test is there and says the word. An option or test of \
             `basalt pe` and `basalt ltt` counts when a test of the binary gives it, *in part* when only the tool knows it. One that is \
             refused or ignored does not count. HBase's own tools run against Basalt from its jars as well."
        ),
        items,
        listing: Listing::CoreAndCommon,
    })
}
