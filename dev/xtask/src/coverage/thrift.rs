//! Methods and types of the Thrift gateways: the lines of the tables that the gateways are made of.

use std::collections::BTreeSet;

use super::{Item, Listing, Standing, Surface, Tree};

/// `sortColumns` as the tables have it: `sort_columns`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut last = ' ';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit()) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        last = c;
    }
    // A word of Rust.
    if out == "type" { "cell_type".to_owned() } else { out }
}

/// Whether the binary starts the gateways.
fn is_wired(tree: &Tree) -> bool {
    tree.of_crate("basalt").any(|source| source.plain.contains("thrift::Server::bind"))
}

/// `type number name` of every line of a table of types.
fn lines(tree: &Tree, path: &str) -> BTreeSet<String> {
    let Some(source) = tree.source(path).filter(|_| is_wired(tree)) else { return BTreeSet::new() };
    let mut known = BTreeSet::new();
    let mut of = "";
    for line in source.text.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            of = name;
        } else if let Some((variant, number)) = line.trim_end_matches(',').split_once(" = ")
            && number.bytes().all(|b| b.is_ascii_digit())
            && !variant.contains(' ')
        {
            known.insert(format!("{of} {number} {variant}"));
        } else if let Some((head, _)) = line.split_once(':') {
            let words: Vec<&str> = head.split(' ').collect();
            if let [number, _, name] = words.as_slice() {
                known.insert(format!("{of} {number} {name}"));
            }
        }
    }
    known
}

fn folder(version: &str) -> &'static str {
    if version == "thrift1" { "v1" } else { "v2" }
}

/// The methods.
pub fn methods(tree: &Tree) -> anyhow::Result<Surface> {
    let wired = is_wired(tree);
    let inventory = tree.table("thrift_methods")?;
    let items = inventory.rows().map(|row| {
        let (version, method) = (row.get("version"), row.get("method"));
        let service = tree.source(&format!("crates/thrift/src/{}/service.rs", folder(version)));
        let there = wired && service.is_some_and(|source| source.literals().contains(&method));
        Item::new(row, version, method, if there { Standing::There } else { Standing::Missing })
    });
    Ok(Surface {
        title: "Thrift gateway",
        rule: "A method is there when the table of its service names it, which does not compile without what answers it, and the \
               binary starts the gateways."
            .to_owned(),
        items: items.collect(),
        listing: Listing::CoreAndCommon,
    })
}

/// Fields and values of enums.
pub fn types(tree: &Tree) -> anyhow::Result<Surface> {
    let of = |folder| lines(tree, &format!("crates/thrift/src/{folder}/types.rs"));
    let (one, two) = (of("v1"), of("v2"));
    let inventory = tree.table("thrift_types")?;
    let items = inventory.rows().map(|row| {
        let (version, of, number) = (row.get("version"), row.get("type"), row.get("number"));
        let is_enum = row.get("kind") == "enum";
        let name = if is_enum { row.get("name").to_owned() } else { snake(row.get("name")) };
        let known = if version == "thrift1" { &one } else { &two };
        let there = known.contains(&format!("{of} {number} {name}"));
        let shown = format!("{of}.{}", row.get("name"));
        Item::new(row, version, &shown, if there { Standing::There } else { Standing::Missing })
    });
    Ok(Surface {
        title: "Thrift types",
        rule: "A field or value is there when the table of types has it under its number and name, and the binary starts the \
               gateways."
            .to_owned(),
        items: items.collect(),
        listing: Listing::CoreAndCommon,
    })
}

#[cfg(test)]
mod tests {
    use super::snake;

    #[test]
    fn names_of_the_idl_become_words_of_rust() {
        for (idl, ours) in
            [("sortColumns", "sort_columns"), ("writeToWAL", "write_to_wal"), ("existence_only", "existence_only")]
        {
            assert_eq!(snake(idl), ours);
        }
    }
}
