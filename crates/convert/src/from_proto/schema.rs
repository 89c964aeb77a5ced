//! Tables, families, namespaces.

use std::collections::BTreeMap;

use model::table::Attributes;
use model::{FamilyDescriptor, TableDescriptor};
use proto::pb;

use super::{illegal_name, required, table_name, utf8};
use crate::ConvertError;
use crate::error::Result;

/// A family. What the message does not say has HBase's default.
///
/// # Errors
/// A name that HBase would refuse.
pub fn family(schema: &pb::ColumnFamilySchema) -> Result<FamilyDescriptor> {
    model::name::check_family(&schema.name).map_err(illegal_name("ColumnFamilySchema.name"))?;
    let mut family = FamilyDescriptor::new(schema.name.clone());
    set_attributes(&mut family.attributes, &schema.attributes);
    family.configuration = configuration(&schema.configuration);
    Ok(family)
}

/// A table. What the message does not say has HBase's default.
///
/// # Errors
/// An illegal name of the table or of a family, or a family twice.
pub fn table(schema: &pb::TableSchema) -> Result<TableDescriptor> {
    let name = table_name(required(schema.table_name.as_ref(), "TableSchema.table_name", "table_name")?)?;
    let mut table = TableDescriptor::new(name, []);
    set_attributes(&mut table.attributes, &schema.attributes);
    table.configuration = configuration(&schema.configuration);
    for schema in &schema.column_families {
        let family = family(schema)?;
        if table.families.insert(family.name.clone(), family).is_some() {
            let name = String::from_utf8_lossy(&schema.name);
            let message = format!("Family '{name}' already exists so cannot be added");
            return Err(ConvertError::illegal("TableSchema.column_families", message));
        }
    }
    Ok(table)
}

/// A namespace: its name and its configuration.
///
/// # Errors
/// A name that HBase would refuse.
pub fn namespace(descriptor: &pb::NamespaceDescriptor) -> Result<(String, BTreeMap<String, String>)> {
    let name = utf8(&descriptor.name, "NamespaceDescriptor.name", "the namespace")?;
    model::name::check_namespace(name).map_err(illegal_name("NamespaceDescriptor.name"))?;
    Ok((name.to_owned(), pairs_of(&descriptor.configuration)))
}

/// Puts what was sent over the defaults. An empty value takes back what was sent before it. (HBase takes the default away too,
/// and has it again as soon as it reads the descriptor from its file: `setValue` of the two builders.)
fn set_attributes(attributes: &mut Attributes, pairs: &[pb::BytesBytesPair]) {
    let defaults = attributes.clone();
    for pair in pairs {
        let value = Some(&pair.second).filter(|value| !value.is_empty()).or_else(|| defaults.get(&pair.first));
        match value {
            Some(value) => attributes.insert(pair.first.clone(), value.clone()),
            None => attributes.remove(&pair.first),
        };
    }
}

/// Follows: `ColumnFamilyDescriptorBuilder#setConfiguration`.
fn configuration(pairs: &[pb::NameStringPair]) -> BTreeMap<String, String> {
    let mut configuration = pairs_of(pairs);
    configuration.retain(|_, value| !value.is_empty());
    configuration
}

fn pairs_of(pairs: &[pb::NameStringPair]) -> BTreeMap<String, String> {
    pairs.iter().map(|p| (p.name.clone(), p.value.clone())).collect()
}
