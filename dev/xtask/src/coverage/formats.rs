//! Elements of the file formats and of the protocol, each with the test that owns it.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

use super::{Item, Listing, Standing, Surface, Tree};

/// The hand-kept list: `category | name | owner [| read]`, where owner is `path::test function`.
const LIST: &str = "tests/inventory/covered/file_format_elements.txt";

/// Elements of the file formats.
pub fn elements(tree: &Tree) -> anyhow::Result<Surface> {
    let text = std::fs::read_to_string(tree.root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let mut owned: BTreeMap<(String, String), Standing> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let place = || format!("{LIST}, line {}", number + 1);
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let (category, name, owner, standing) = match parts.as_slice() {
            [category, name, owner] => (category, name, owner, Standing::There),
            [category, name, owner, "read"] => (category, name, owner, Standing::Part),
            _ => bail!("{}: must be `category | name | owner [| read]`", place()),
        };
        check_owner(tree, owner).with_context(place)?;
        owned.insert(((*category).to_owned(), (*name).to_owned()), standing);
    }
    let table = tree.table("file_format_elements")?;
    let mut items = Vec::new();
    for row in table.rows() {
        let (category, name) = (row.get("category"), row.get("name"));
        let standing = owned.remove(&(category.to_owned(), name.to_owned())).unwrap_or(Standing::Missing);
        items.push(Item::new(row, category, name, standing));
    }
    if let Some(((category, name), _)) = owned.first_key_value() {
        bail!("{LIST}: the inventory has no {name:?} in {category:?}");
    }
    Ok(Surface {
        title: "File formats and protocol constants",
        rule: format!(
            "There when `{LIST}` names a test that owns the element, and that test exists. *In part*: read when HBase wrote it, \
             never written by Basalt."
        ),
        items,
        listing: Listing::CoreAndCommon,
    })
}

/// Whether `path::function` is a test.
pub fn check_owner(tree: &Tree, owner: &str) -> anyhow::Result<()> {
    body_of(tree, owner).map(drop)
}

/// Fails unless the test is there and each of `words` stands in it.
pub fn check_given(tree: &Tree, owner: &str, words: &[&str]) -> anyhow::Result<()> {
    let body = body_of(tree, owner)?;
    match words.iter().find(|word| !body.contains(*word)) {
        None => Ok(()),
        Some(word) => bail!("the test {owner} does not say {word}"),
    }
}

/// The text of a test up to the brace that ends it.
fn body_of(tree: &Tree, owner: &str) -> anyhow::Result<String> {
    let (path, function) = owner.rsplit_once("::").with_context(|| format!("{owner:?} is not path::test"))?;
    let text = std::fs::read_to_string(tree.root.join(path)).with_context(|| format!("cannot read {path}"))?;
    let mut lines = text.lines();
    let mut is_test = false;
    let wanted = [format!("fn {function}("), format!("async fn {function}(")];
    let found = lines.any(|line| {
        let line = line.trim();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("#[") {
            if is_test && wanted.iter().any(|start| line.starts_with(start)) {
                return true;
            }
            is_test = false;
        }
        false
    });
    if !found {
        bail!("there is no test {function} in {path}");
    }
    Ok(lines.take_while(|line| !line.starts_with('}')).collect::<Vec<_>>().join("\n"))
}
