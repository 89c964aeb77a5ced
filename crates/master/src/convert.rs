//! Between protobuf messages and the model's values, as far as the master's files and requests need it.
//!
//! Always true: a message that comes from outside yields a value that is legal, or an error in HBase's words.

use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use model::{FamilyDescriptor, RegionInfo, ServerName, TableDescriptor, TableName, name};
use proto::pb;
use std::collections::BTreeMap;

fn illegal(message: impl std::fmt::Display) -> MasterError {
    MasterError::new(ErrorKind::IllegalArgument, message)
}

fn text(bytes: &Bytes) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| illegal("a name is not UTF-8"))
}

fn bytes_of(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A table's name.
pub fn table_name(message: &pb::TableName) -> Result<TableName> {
    TableName::of(text(&message.namespace)?, text(&message.qualifier)?).map_err(illegal)
}

/// A table's name as a message.
pub fn table_name_message(table: &TableName) -> pb::TableName {
    pb::TableName { namespace: bytes_of(table.namespace()), qualifier: bytes_of(table.qualifier()) }
}

/// A server's name as a message.
pub fn server_name_message(server: &ServerName) -> pb::ServerName {
    pb::ServerName {
        host_name: server.host.to_string(),
        port: Some(u32::from(server.port)),
        start_code: Some(server.start_code),
    }
}

/// A region as a message; every field is written out, as HBase 2.6 does.
pub fn region_info_message(info: &RegionInfo) -> pb::RegionInfo {
    pb::RegionInfo {
        region_id: info.region_id,
        table_name: table_name_message(&info.table),
        start_key: Some(info.start_key.clone()),
        end_key: Some(info.end_key.clone()),
        offline: Some(info.offline),
        split: Some(info.split),
        replica_id: Some(i32::try_from(info.replica_id).unwrap_or(0)),
    }
}

/// A region.
pub fn region_info(message: &pb::RegionInfo) -> Result<RegionInfo> {
    let mut info = RegionInfo::with_replica(
        table_name(&message.table_name)?,
        message.start_key.clone().unwrap_or_default(),
        message.end_key.clone().unwrap_or_default(),
        message.region_id,
        u32::try_from(message.replica_id.unwrap_or(0)).map_err(|_| illegal("a negative replica id"))?,
    );
    info.offline = message.offline.unwrap_or(false);
    info.split = message.split.unwrap_or(false);
    Ok(info)
}

fn pairs(attributes: &BTreeMap<Bytes, Bytes>) -> Vec<pb::BytesBytesPair> {
    attributes.iter().map(|(k, v)| pb::BytesBytesPair { first: k.clone(), second: v.clone() }).collect()
}

fn string_pairs(configuration: &BTreeMap<String, String>) -> Vec<pb::NameStringPair> {
    configuration.iter().map(|(k, v)| pb::NameStringPair { name: k.clone(), value: v.clone() }).collect()
}

fn attributes(pairs: &[pb::BytesBytesPair]) -> BTreeMap<Bytes, Bytes> {
    pairs.iter().map(|pair| (pair.first.clone(), pair.second.clone())).collect()
}

fn configuration(pairs: &[pb::NameStringPair]) -> BTreeMap<String, String> {
    pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect()
}

/// A family as a message.
pub fn family_message(family: &FamilyDescriptor) -> pb::ColumnFamilySchema {
    pb::ColumnFamilySchema {
        name: family.name.clone(),
        attributes: pairs(&family.attributes),
        configuration: string_pairs(&family.configuration),
    }
}

/// A family; its name is checked.
pub fn family(message: &pb::ColumnFamilySchema) -> Result<FamilyDescriptor> {
    name::check_family(&message.name).map_err(illegal)?;
    Ok(FamilyDescriptor {
        name: message.name.clone(),
        attributes: attributes(&message.attributes),
        configuration: configuration(&message.configuration),
    })
}

/// A table as a message.
pub fn table_message(table: &TableDescriptor) -> pb::TableSchema {
    pb::TableSchema {
        table_name: Some(table_name_message(&table.name)),
        attributes: pairs(&table.attributes),
        column_families: table.families.values().map(family_message).collect(),
        configuration: string_pairs(&table.configuration),
    }
}

/// A table; its name and its families' names are checked.
pub fn table(message: &pb::TableSchema) -> Result<TableDescriptor> {
    let name = message.table_name.as_ref().ok_or_else(|| illegal("the table has no name"))?;
    let mut families = BTreeMap::new();
    for schema in &message.column_families {
        let family = family(schema)?;
        families.insert(family.name.clone(), family);
    }
    Ok(TableDescriptor {
        name: table_name(name)?,
        families,
        attributes: attributes(&message.attributes),
        configuration: configuration(&message.configuration),
    })
}

/// A namespace's configuration, in name order.
pub type NamespaceConfiguration = Vec<(String, String)>;

/// A namespace as a message.
pub fn namespace_message(name: &str, configuration: &[(String, String)]) -> pb::NamespaceDescriptor {
    let pairs = configuration.iter().map(|(k, v)| pb::NameStringPair { name: k.clone(), value: v.clone() });
    pb::NamespaceDescriptor { name: bytes_of(name), configuration: pairs.collect() }
}

/// A namespace: its name, not yet checked, and its configuration.
pub fn namespace(message: &pb::NamespaceDescriptor) -> Result<(String, NamespaceConfiguration)> {
    let name = text(&message.name)?.to_owned();
    Ok((name, configuration(&message.configuration).into_iter().collect()))
}
