//! Tables, families, namespaces.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::table::Attributes;
use model::{FamilyDescriptor, TableDescriptor};
use proto::pb;

use super::table_name;

/// A family.
pub fn family(family: &FamilyDescriptor) -> pb::ColumnFamilySchema {
    pb::ColumnFamilySchema {
        name: family.name.clone(),
        attributes: attributes(&family.attributes),
        configuration: configuration(&family.configuration),
    }
}

/// A table.
pub fn table(table: &TableDescriptor) -> pb::TableSchema {
    pb::TableSchema {
        table_name: Some(table_name(&table.name)),
        attributes: attributes(&table.attributes),
        column_families: table.families.values().map(family).collect(),
        configuration: configuration(&table.configuration),
    }
}

/// A namespace.
pub fn namespace(name: &str, settings: &BTreeMap<String, String>) -> pb::NamespaceDescriptor {
    pb::NamespaceDescriptor { name: Bytes::copy_from_slice(name.as_bytes()), configuration: configuration(settings) }
}

fn attributes(attributes: &Attributes) -> Vec<pb::BytesBytesPair> {
    attributes.iter().map(|(k, v)| pb::BytesBytesPair { first: k.clone(), second: v.clone() }).collect()
}

fn configuration(settings: &BTreeMap<String, String>) -> Vec<pb::NameStringPair> {
    settings.iter().map(|(k, v)| pb::NameStringPair { name: k.clone(), value: v.clone() }).collect()
}
