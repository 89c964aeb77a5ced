//! What is configured and published: attributes, settings, znodes.

use std::collections::BTreeSet;

use anyhow::bail;

use super::lists::{Owned, Reasons};
use super::source::{literals_of, word_at};
use super::{Item, Listing, Row, Standing, Surface, Tree};

/// Attributes whose test tells, or whose reason.
const OWNED: &str = "tests/inventory/covered/attributes.txt";
/// Groups of that list.
const TABLE: &str = "table";
const FAMILY: &str = "family";

/// Keys of hbase-default.xml that HBase's own servers read nowhere.
const UNREAD: &str = "tests/inventory/covered/config_keys_unread.txt";

const MODEL: &str = "crates/model/src/table.rs";

/// Rows whose evidence is another place than an accessor: attribute, file, what must stand there.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("NAME", "crates/model/src/name.rs", "pub fn check_family"),
    ("IS_META", MODEL, "\"IS_META\""),
    ("METADATA", MODEL, "pub attributes: Attributes"),
    ("CONFIGURATION", "crates/region/src/settings/resolved.rs", "pub fn with_overrides"),
];

/// Keys of `alter` and `create` in the shell that no descriptor holds.
const SHELL_ONLY: &[&str] = &["METHOD", "NUMREGIONS / SPLITALGO / SPLITS / SPLITS_FILE"];

fn attribute(tree: &Tree, row: Row<'_>, table: bool, owned: &mut Owned) -> Option<Item> {
    let key = row.get("key");
    if SHELL_ONLY.contains(&key) {
        return None;
    }
    let listed = owned.take(if table { TABLE } else { FAMILY }, key).is_some();
    let honoured = listed
        || accessor_in_use(tree, key, table)
        || override_key(tree, key)
        || ELSEWHERE.iter().any(|(name, path, needle)| {
            *name == key && tree.source(path).is_some_and(|file| file.text.contains(needle))
        });
    Some(Item::new(row, "", key, if honoured { Standing::There } else { Standing::Part }))
}

/// Whether a typed reading of the attribute is called outside `model`.
fn accessor_in_use(tree: &Tree, key: &str, table: bool) -> bool {
    let Some(model) = tree.source(MODEL) else { return false };
    // The family's readings stand before the table's.
    let border = model.text.find("impl TableDescriptor").unwrap_or(model.text.len());
    model.functions().into_iter().any(|function| {
        let after_border = function.body.as_ptr() as usize - model.text.as_ptr() as usize > border;
        let maker = matches!(function.name, "new" | "meta" | "namespace_table" | "slowlog_table" | "with");
        after_border == table
            && !maker
            && literals_of(function.body).contains(&key)
            && tree.is_called(function.name, |source| source.crate_name() != "model")
    })
}

/// Whether the key is a setting that a table or family may override.
fn override_key(tree: &Tree, key: &str) -> bool {
    let key = key.split(' ').next().unwrap_or(key);
    tree.source("crates/region/src/settings.rs").is_some_and(|file| file.literals().contains(&key))
}

const ATTRIBUTE_RULE: &str = "There when a typed reading of the attribute is called by a server, when the key is a setting that \
     descriptors may override, or when `tests/inventory/covered/attributes.txt` names the test that owns it (or says why HBase, too, only \
     keeps it). Every other attribute is there *in part*: it is kept, given back as it came, and has no effect.";

/// Attributes of tables.
pub fn table_attributes(tree: &Tree) -> anyhow::Result<Surface> {
    let table = tree.table("table_attributes")?;
    let mut owned = Owned::read(tree, OWNED)?;
    let items = table.rows().filter_map(|row| attribute(tree, row, true, &mut owned)).collect();
    owned.finish(TABLE)?;
    Ok(Surface {
        title: "Table attributes",
        rule: format!("{ATTRIBUTE_RULE} Keys that only the shell understands are not counted."),
        items,
        listing: Listing::CoreAndCommon,
    })
}

/// Attributes of column families.
pub fn family_attributes(tree: &Tree) -> anyhow::Result<Surface> {
    let table = tree.table("column_family_attributes")?;
    let mut owned = Owned::read(tree, OWNED)?;
    let items = table.rows().filter_map(|row| attribute(tree, row, false, &mut owned)).collect();
    owned.finish(FAMILY)?;
    Ok(Surface {
        title: "Column family attributes",
        rule: ATTRIBUTE_RULE.to_owned(),
        items,
        listing: Listing::CoreAndCommon,
    })
}

/// Keys that some code reads: those of typed rows and of text rows that are named by code which is not the table of rows.
fn keys_read(tree: &Tree) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for source in &tree.sources {
        for (at, found) in source.plain.match_indices("const ") {
            let name = word_at(&source.plain, at + found.len());
            let rest = &source.plain[at..];
            let declared = &rest[found.len() + name.len()..];
            if !declared.starts_with(": Setting<") && !declared.starts_with(": TextSetting") {
                continue;
            }
            let end = rest.find(';').unwrap_or(rest.len());
            let Some(key) = literals_of(&source.text[at..at + end]).first().copied() else { continue };
            // The rows of the process name keys that clients read under their own constants, or none.
            let elsewhere = |reader: &super::Source| reader.path != source.path && reader.literals().contains(&key);
            if tree.sources.iter().any(|reader| reads(reader, source, name) || elsewhere(reader)) {
                keys.insert(key.to_owned());
            }
        }
    }
    keys
}

/// Whether `reader` reads the row `name` that `declared` has: in the same file by `get(&NAME)`, elsewhere by naming it.
fn reads(reader: &super::Source, declared: &super::Source, name: &str) -> bool {
    if reader.path == declared.path {
        return reader.plain.contains(&format!("get(&{name})")) || reader.plain.contains(&format!("text({name}.key)"));
    }
    if reader.crate_name() != declared.crate_name() && !reader.plain.contains(&format!("{}::", declared.crate_name())) {
        return false;
    }
    reader.plain.match_indices(name).any(|(at, _)| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let before = reader.plain[..at].chars().next_back();
        let after = reader.plain[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Keys of hbase-default.xml.
pub fn config_keys(tree: &Tree) -> anyhow::Result<Surface> {
    let read = keys_read(tree);
    let unheeded = tree.sources.iter().find(|source| source.path.ends_with("crates/basalt/src/unheeded.rs"));
    let unheeded: BTreeSet<&str> = unheeded.into_iter().flat_map(super::Source::literals).collect();
    let table = tree.table("config_keys")?;
    let mut known = BTreeSet::new();
    let mut unread = Reasons::read(tree, UNREAD)?;
    let mut items = Vec::new();
    for row in table.rows() {
        let name = row.get("name");
        known.insert(name.to_owned());
        if unread.take(name) {
            if read.contains(name) {
                bail!("{UNREAD}: {name} is read here: take the line out");
            }
            continue;
        }
        let standing = match () {
            () if read.contains(name) => Standing::There,
            () if unheeded.contains(name) => Standing::Part,
            () => Standing::Missing,
        };
        items.push(Item::new(row, "", name, standing));
    }
    unread.finish()?;
    let more = read.iter().filter(|key| !known.contains(*key) && !key.starts_with("basalt.")).count();
    let own = read.iter().filter(|key| key.starts_with("basalt.")).count();
    Ok(Surface {
        title: "Configuration keys",
        rule: format!(
            "Of the keys in `hbase-default.xml`: there when a setting of that key is read by the code, *in part* when it has no \
             effect and a start with it says why. Not counted: those that HBase's own code reads nowhere, which `{UNREAD}` lists. Many of these belong to clients, to Hadoop, or to what is not there yet. {more} keys are read besides that HBase has only in its \
             code, and {own} of Basalt's own. All of them: [operations/settings.md](operations/settings.md)."
        ),
        items,
        listing: Listing::CoreAndCommon,
    })
}

/// A path of the inventory or of the code with every variable part as `*`.
fn pattern(path: &str, open: char, close: char) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for c in path.chars() {
        if c == open {
            if depth == 0 {
                out.push('*');
            }
            depth += 1;
        } else if c == close {
            depth -= 1;
        } else if depth == 0 {
            out.push(c);
        }
    }
    out
}

/// ZooKeeper nodes.
pub fn znodes(tree: &Tree) -> anyhow::Result<Surface> {
    let (mut written, mut empty) = (BTreeSet::new(), BTreeSet::new());
    let mut prefix = false;
    if let Some(file) = tree.source("crates/coordination/src/hbase_znodes.rs") {
        let in_use = |name: &str| tree.is_called(name, |source| source.crate_name() != "coordination");
        for function in file.functions().into_iter().filter(|function| in_use(function.name)) {
            let literals = literals_of(function.body).into_iter().map(|text| pattern(text, '{', '}'));
            if function.name == "create_base_nodes" {
                empty.extend(literals);
            } else {
                written.extend(literals);
                prefix |= file.text.contains("fn with_prefix");
            }
        }
    }
    let table = tree.table("znodes")?;
    let items = table.rows().map(|row| {
        let path = row.get("path");
        let name = pattern(path.strip_prefix("/hbase/").unwrap_or(path), '<', '>');
        let standing = if path.starts_with("(every value") {
            if prefix { Standing::There } else { Standing::Missing }
        } else if path == "/hbase" {
            if empty.is_empty() { Standing::Missing } else { Standing::There }
        } else if written.contains(&name) || (row.get("content_format") == "empty" && empty.contains(&name)) {
            Standing::There
        } else if empty.contains(&name) || empty.iter().any(|have| have.starts_with(&parent(&name))) {
            Standing::Part
        } else {
            Standing::Missing
        };
        Item::new(row, "", path, standing)
    });
    Ok(Surface {
        title: "ZooKeeper nodes",
        rule: "Nodes that the embedded endpoint shows. *In part*: the node (or the one above it) is there and empty, as in an idle \
               cluster; nothing is done with it."
            .into(),
        items: items.collect(),
        listing: Listing::CoreAndCommon,
    })
}

/// What stands before the first variable part: `online-snapshot/abort/` of `online-snapshot/abort/*`.
fn parent(name: &str) -> String {
    let fixed = name.split(['*', '{']).next().unwrap_or(name).trim_end_matches('/');
    if fixed.is_empty() { name.to_owned() } else { fixed.to_owned() }
}
