//! Descriptors as text for people, in HBase's form. Follows: `TableDescriptorBuilder#toString`, `ColumnFamilyDescriptorBuilder#toString`,
//! `PrettyPrinter`.

use crate::{FamilyDescriptor, TableDescriptor, java_order};

impl TableDescriptor {
    /// `'t', {TABLE_ATTRIBUTES => {..}}, {NAME => 'f', ..}`: the name, what the table says, its families.
    pub fn description(&self) -> String {
        let families: String = self.families.values().map(|family| format!(", {}", family.description())).collect();
        format!("'{}'{}{families}", self.name, self.attributes_description())
    }

    /// `, {TABLE_ATTRIBUTES => {..}}`; empty where the table says nothing.
    pub fn attributes_description(&self) -> String {
        attributes(self)
    }
}

impl FamilyDescriptor {
    /// `{NAME => 'f', ..}`.
    pub fn description(&self) -> String {
        family_text(self)
    }
}

/// Seconds of a time to live: `86400 SECONDS (1 DAY)`.
pub fn interval(seconds: i64) -> String {
    let plural = |number: i64, unit: &str| format!("{number} {unit}{}", if number == 1 { "" } else { "S" });
    if seconds == i64::from(i32::MAX) {
        return "FOREVER".to_owned();
    }
    if seconds < 60 {
        return plural(seconds, "SECOND");
    }
    let parts = [
        (seconds / 86_400, "DAY"),
        (seconds / 3600 % 24, "HOUR"),
        (seconds / 60 % 60, "MINUTE"),
        (seconds % 60, "SECOND"),
    ];
    let parts: Vec<String> = parts.iter().filter(|part| part.0 > 0).map(|part| plural(part.0, part.1)).collect();
    format!("{seconds} SECONDS ({})", parts.join(" "))
}

/// Bytes: `65536 B (64KB)`.
pub fn size(bytes: i64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB"), (0, "B")];
    let parts = units.iter().map(|(shift, unit)| {
        let number = bytes >> shift;
        (if *shift == 40 { number } else { number & 1023 }, unit)
    });
    let parts: Vec<String> = parts.filter(|part| part.0 > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
    format!("{bytes} B ({})", parts.join(" "))
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
        ("MAX_FILESIZE" | "MEMSTORE_FLUSHSIZE", Ok(bytes)) => size(bytes),
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
        ("TTL", Ok(seconds)) => interval(seconds),
        ("BLOCKSIZE", Ok(bytes)) => size(bytes),
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
    use crate::TableName;

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

    #[test]
    fn a_table_is_its_name_what_it_says_and_its_families() {
        let name = TableName::parse("t").unwrap_or_else(|_| TableName::meta());
        let table = TableDescriptor::new(name, [FamilyDescriptor::new("f")]);
        assert_eq!(table.description(), format!("'t', {}", FamilyDescriptor::new("f").description()));
    }

    #[test]
    fn times_and_sizes_have_their_parts_behind_them() {
        assert_eq!(interval(86_400), "86400 SECONDS (1 DAY)");
        assert_eq!(interval(93_784), "93784 SECONDS (1 DAY 2 HOURS 3 MINUTES 4 SECONDS)");
        assert_eq!(interval(i64::from(i32::MAX)), "FOREVER");
        assert_eq!(interval(1), "1 SECOND");
        assert_eq!(size(65_536), "65536 B (64KB)");
        assert_eq!(size(134_217_728), "134217728 B (128MB)");
        assert_eq!(size(10_763_632_640), "10763632640 B (10GB 25MB)");
    }
}
