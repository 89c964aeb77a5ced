//! Routes of the REST gateway, each with the test that owns it.

use std::collections::BTreeSet;

use anyhow::{Context, bail};

use super::formats::check_owner;
use super::{Item, Listing, Row, Standing, Surface, Tree};

/// The hand-kept list: `path | method | media types | owner`, where owner is `path::test function`.
const LIST: &str = "tests/inventory/covered/rest_routes.txt";

/// What tells a route from others of its path.
fn key(row: &Row<'_>) -> [String; 3] {
    let media = [row.get("produces"), row.get("consumes"), "-"].into_iter().find(|media| !media.is_empty());
    [row.get("path"), row.get("method"), media.unwrap_or("-")].map(str::to_owned)
}

/// The routes.
pub fn rest_routes(tree: &Tree) -> anyhow::Result<Surface> {
    let text = std::fs::read_to_string(tree.root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let mut owned = BTreeSet::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let place = || format!("{LIST}, line {}", number + 1);
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [path, method, media, owner] = parts.as_slice() else {
            bail!("{}: must be `path | method | media types | owner`", place());
        };
        check_owner(tree, owner).with_context(place)?;
        owned.insert([*path, *method, *media].map(str::to_owned));
    }
    let table = tree.table("rest_routes")?;
    let mut items = Vec::new();
    for row in table.rows() {
        let standing = if owned.remove(&key(&row)) { Standing::There } else { Standing::Missing };
        let name = format!("{} {}", row.get("method"), row.get("path"));
        items.push(Item::new(row, "", &name, standing));
    }
    if let Some([path, method, _]) = owned.first() {
        bail!("{LIST}: the inventory has no {method} {path}");
    }
    Ok(Surface {
        title: "REST gateway",
        rule: format!(
            "A route is there when `{LIST}` names a test that sends such a request over a socket, and that test exists."
        ),
        items,
        listing: Listing::CoreAndCommon,
    })
}
