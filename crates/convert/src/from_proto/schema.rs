//! Tables, families, namespaces.

use std::collections::BTreeMap;

use model::{FamilyDescriptor, TableDescriptor};
use proto::pb;

use super::{illegal_name, required, table_name, utf8};
use crate::ConvertError;
use crate::error::Result;

/// A family.
///
/// # Errors
/// A name that HBase would refuse.
pub fn family(schema: &pb::ColumnFamilySchema) -> Result<FamilyDescriptor> {
    model::name::check_family(&schema.name).map_err(illegal_name("ColumnFamilySchema.name"))?;
    let mut family = FamilyDescriptor::new(schema.name.clone());
    // What the client sent counts; it sends every attribute that differs from its own defaults, and usually all.
    for pair in &schema.attributes {
        family.attributes.insert(pair.first.clone(), pair.second.clone());
    }
    family.configuration = configuration(&schema.configuration);
    Ok(family)
}

/// A table.
///
/// # Errors
/// An illegal name of the table or of a family, or a family twice.
pub fn table(schema: &pb::TableSchema) -> Result<TableDescriptor> {
    let name = table_name(required(schema.table_name.as_ref(), "TableSchema.table_name", "table_name")?)?;
    let mut families = BTreeMap::new();
    for schema in &schema.column_families {
        let family = family(schema)?;
        if families.insert(family.name.clone(), family).is_some() {
            let name = String::from_utf8_lossy(&schema.name);
            let message = format!("Family '{name}' already exists so cannot be added");
            return Err(ConvertError::illegal("TableSchema.column_families", message));
        }
    }
    let attributes = schema.attributes.iter().map(|a| (a.first.clone(), a.second.clone())).collect();
    Ok(TableDescriptor { name, families, attributes, configuration: configuration(&schema.configuration) })
}

/// A namespace: its name and its configuration.
///
/// # Errors
/// A name that HBase would refuse.
pub fn namespace(descriptor: &pb::NamespaceDescriptor) -> Result<(String, BTreeMap<String, String>)> {
    let name = utf8(&descriptor.name, "NamespaceDescriptor.name", "the namespace")?;
    model::name::check_namespace(name).map_err(illegal_name("NamespaceDescriptor.name"))?;
    Ok((name.to_owned(), configuration(&descriptor.configuration)))
}

fn configuration(pairs: &[pb::NameStringPair]) -> BTreeMap<String, String> {
    pairs.iter().map(|p| (p.name.clone(), p.value.clone())).collect()
}
