//! One group, and its message.

use crate::Address;
use convert::{from_proto, to_proto};
use model::TableName;
use proto::pb;
use std::collections::{BTreeMap, BTreeSet};

/// A group of region servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name: letters, digits and underscores.
    pub name: String,
    /// Its servers, online or not; of `default` only those online.
    pub servers: BTreeSet<Address>,
    /// Its tables.
    pub tables: BTreeSet<TableName>,
    /// What is configured for it.
    pub configuration: BTreeMap<String, String>,
}

/// Why a group cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the group {group} names {what}, and is not read: mend its row in hbase:rsgroup")]
pub struct MalformedGroup {
    group: String,
    what: String,
}

impl Group {
    /// An empty group.
    pub fn new(name: &str) -> Group {
        Group {
            name: name.to_owned(),
            servers: BTreeSet::new(),
            tables: BTreeSet::new(),
            configuration: BTreeMap::new(),
        }
    }

    /// As hbase:rsgroup and clients have it.
    pub fn to_proto(&self) -> pb::RsGroupInfo {
        let server = |server: &Address| pb::ServerName {
            host_name: server.host.to_string(),
            port: Some(u32::from(server.port)),
            start_code: None,
        };
        let pair = |(name, value): (&String, &String)| pb::NameStringPair { name: name.clone(), value: value.clone() };
        pb::RsGroupInfo {
            name: self.name.clone(),
            tables: self.tables.iter().map(to_proto::table_name).collect(),
            servers: self.servers.iter().map(server).collect(),
            configuration: self.configuration.iter().map(pair).collect(),
        }
    }

    /// Reads what [`Group::to_proto`] or HBase wrote.
    ///
    /// # Errors
    /// A table or server that cannot be one.
    pub fn from_proto(message: &pb::RsGroupInfo) -> Result<Group, MalformedGroup> {
        let malformed = |what: String| MalformedGroup { group: message.name.clone(), what };
        let server = |server: &pb::ServerName| match u16::try_from(server.port()) {
            Ok(port) => Ok(Address::new(&server.host_name, port)),
            Err(_) => Err(malformed(format!("the server {}:{}", server.host_name, server.port()))),
        };
        let table = |table: &pb::TableName| {
            from_proto::table_name(table).map_err(|error| malformed(format!("a table that cannot be one ({error})")))
        };
        let pair = |pair: &pb::NameStringPair| (pair.name.clone(), pair.value.clone());
        Ok(Group {
            name: message.name.clone(),
            servers: message.servers.iter().map(server).collect::<Result<_, _>>()?,
            tables: message.tables.iter().map(table).collect::<Result<_, _>>()?,
            configuration: message.configuration.iter().map(pair).collect(),
        })
    }
}
