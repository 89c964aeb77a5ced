//! `describe`: a table's descriptor in HBase's form. Follows: `TableDescriptorBuilder#toStringTableAttributes`,
//! `ColumnFamilyDescriptorBuilder#toString`.

use model::{FamilyDescriptor, TableDescriptor, TableName, java_order};

use super::Arguments;
use super::ddl::{descriptor, enabled, is_there};
use crate::evaluator::Shell;
use crate::failure::Result;
use crate::pretty;
use crate::value::Value;

pub(super) fn describe(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let table = descriptor(shell, &name)?;
    let state = if enabled(shell, &name)? { "ENABLED" } else { "DISABLED" };
    let output = &mut shell.session.output;
    output.header(&[&format!("Table {name} is {state}")])?;
    output.row(&[&format!("{name}{}", attributes(&table))])?;
    output.header(&["COLUMN FAMILIES DESCRIPTION"])?;
    for family in table.families.values() {
        output.row(&[&family_text(family)])?;
        output.line("")?;
    }
    output.footer(None)?;
    quotas_line(shell, name.is_meta())?;
    Ok(Value::Nil)
}

/// A table's own line, and one for each family, as `describe` prints them.
pub fn describe_lines(table: &TableDescriptor) -> Vec<String> {
    let own = format!("{}{}", table.name, attributes(table));
    std::iter::once(own).chain(table.families.values().map(family_text)).collect()
}

/// Says that quotas are off, where they are.
pub(super) fn quotas_line(shell: &mut Shell, is_meta: bool) -> Result<()> {
    let on = is_there(shell, &TableName::quota_table())?;
    match on || is_meta {
        true => Ok(()),
        false => shell.session.output.line("Quota is disabled"),
    }
}

/// Attributes of tables that stand by themselves rather than under METADATA.
const RESERVED_OF_TABLES: &[&str] = &[
    "DURABILITY",
    "ERASURE_CODING_POLICY",
    "IS_META",
    "MAX_FILESIZE",
    "MEMSTORE_FLUSHSIZE",
    "PRIORITY",
    "READONLY",
    "REGION_REPLICATION",
];

fn attributes(table: &TableDescriptor) -> String {
    let shown = |key: &str, value: &str| match (key, value.parse()) {
        ("MAX_FILESIZE" | "MEMSTORE_FLUSHSIZE", Ok(bytes)) => pretty::size(bytes),
        _ => value.to_owned(),
    };
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let pairs = table
        .attributes
        .iter()
        .map(|(key, value)| (String::from_utf8_lossy(key), cell::print::to_string_binary(value)));
    let configured = table.configuration.iter().map(|(key, value)| (key.as_str().into(), value.clone()));
    for (key, value) in pairs.chain(configured) {
        if key == "IS_META" && !value.eq_ignore_ascii_case("true") {
            continue;
        }
        let value = shown(&key, &value);
        match RESERVED_OF_TABLES.contains(&key.as_ref()) || key.starts_with("coprocessor$") {
            true => own.push(format!("{key} => '{value}'")),
            false => others.push(format!("'{key}' => '{value}'")),
        }
    }
    if !others.is_empty() {
        own.push(format!("METADATA => {{{}}}", others.join(", ")));
    }
    match own.is_empty() {
        true => String::new(),
        false => format!(", {{TABLE_ATTRIBUTES => {{{}}}}}", own.join(", ")),
    }
}

/// Attributes of families that stand by themselves.
const RESERVED_OF_FAMILIES: &[&str] = &[
    "BLOOMFILTER",
    "REPLICATION_SCOPE",
    "VERSIONS",
    "MIN_VERSIONS",
    "COMPRESSION",
    "TTL",
    "BLOCKSIZE",
    "IN_MEMORY",
    "BLOCKCACHE",
    "KEEP_DELETED_CELLS",
    "DATA_BLOCK_ENCODING",
    "INDEX_BLOCK_ENCODING",
    "ENCRYPTION",
    "ENCRYPTION_KEY",
    "IS_MOB",
    "MOB_THRESHOLD",
    "MOB_COMPACT_PARTITION_POLICY",
];

fn family_text(family: &FamilyDescriptor) -> String {
    let shown = |key: &str, value: &str| match (key, value.parse()) {
        ("TTL", Ok(seconds)) => pretty::interval(seconds),
        ("BLOCKSIZE", Ok(bytes)) => pretty::size(bytes),
        _ => value.to_owned(),
    };
    let mut parts = vec![format!("NAME => '{}'", cell::print::to_string_binary(&family.name))];
    let mut others = Vec::new();
    // HBase prints a family's attributes as its map has them.
    let mut keys: Vec<_> = family.attributes.keys().collect();
    java_order::sort(&mut keys, |key| key);
    for key in keys {
        let name = String::from_utf8_lossy(key);
        let value = shown(&name, &cell::print::to_string_binary(&family.attributes[key]));
        match RESERVED_OF_FAMILIES.contains(&name.as_ref()) {
            true => parts.push(format!("{name} => '{value}'")),
            false => others.push(format!("'{name}' => '{value}'")),
        }
    }
    if !others.is_empty() {
        parts.push(format!("METADATA => {{{}}}", others.join(", ")));
    }
    if !family.configuration.is_empty() {
        let pairs: Vec<String> =
            family.configuration.iter().map(|(key, value)| format!("'{key}' => '{value}'")).collect();
        parts.push(format!("CONFIGURATION => {{{}}}", pairs.join(", ")));
    }
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_shown_as_hbase_shows_it() {
        let family = FamilyDescriptor::new("f").with("TTL", "86400").with("VERSIONS", "3");
        assert_eq!(
            family_text(&family),
            "{NAME => 'f', INDEX_BLOCK_ENCODING => 'NONE', VERSIONS => '3', KEEP_DELETED_CELLS => 'FALSE', \
             DATA_BLOCK_ENCODING => 'NONE', TTL => '86400 SECONDS (1 DAY)', MIN_VERSIONS => '0', REPLICATION_SCOPE => '0', \
             BLOOMFILTER => 'ROW', IN_MEMORY => 'false', COMPRESSION => 'NONE', BLOCKCACHE => 'true', \
             BLOCKSIZE => '65536 B (64KB)'}"
        );
    }

    #[test]
    fn attributes_of_tables_are_parted() {
        let name = TableName::parse("t").unwrap_or_else(|_| TableName::meta());
        let mut table = TableDescriptor::new(name, []);
        assert_eq!(attributes(&table), "");
        table.attributes.insert("MAX_FILESIZE".into(), "134217728".into());
        table.attributes.insert("a.b".into(), "c".into());
        assert_eq!(
            attributes(&table),
            ", {TABLE_ATTRIBUTES => {MAX_FILESIZE => '134217728 B (128MB)', METADATA => {'a.b' => 'c'}}}"
        );
    }
}
