//! Administration: what the master does, and work on regions at their servers. Follows: `Admin`, `RawAsyncHBaseAdmin`.
//!
//! Every method of Java's `Admin` that is a call to a server is here, by subject: tables, families, namespaces, regions, servers, the cluster,
//! switches, snapshots, quotas, replication peers, procedures, logs, permissions, and repairs ([`Hbck`]). Beyond values of `model`, they speak
//! in HBase's protobuf messages ([`proto::pb`]).

mod call;
mod cluster;
mod families;
mod groups;
mod hbck;
mod logs;
mod namespaces;
mod procedures;
mod quotas;
mod regions;
mod replicas;
mod replication;
mod security;
mod servers;
mod snapshots;
mod switches;
mod tables;

use model::ServerName;
use proto::pb;

pub use self::hbck::Hbck;
pub use self::quotas::{QuotaOwner, QuotaSettings};
pub use self::regions::CompactionState;
pub use self::snapshots::RestoreOptions;
pub use self::tables::Pattern;
use crate::{Connection, Error, Result};

/// Administration of a cluster. What changes a table waits until the change is made: the master's procedure is asked for its result.
///
/// ```no_run
/// # use basalt_client as client;
/// # async fn example(connection: client::Connection) -> Result<(), client::Error> {
/// use model::{FamilyDescriptor, TableDescriptor, TableName};
/// let admin = connection.admin();
/// let name = TableName::parse("t").expect("a legal name");
/// let table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f").with("VERSIONS", "3")]);
/// admin.create_table(&table, &["m".into()]).await?;
/// admin.snapshot("before", &name).await?;
/// admin.disable_table(&name).await?;
/// admin.restore_snapshot("before", client::RestoreOptions::default()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Admin {
    connection: Connection,
}

impl Admin {
    pub(crate) fn new(connection: Connection) -> Admin {
        Admin { connection }
    }

    /// Its connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Repairs, for when the cluster's own view of itself is wrong.
    pub fn hbck(&self) -> Hbck {
        Hbck::new(self.clone())
    }
}

/// Names of servers out of a message.
fn server_names(names: &[pb::ServerName]) -> Result<Vec<ServerName>> {
    names.iter().map(|name| convert::from_proto::server_name(name).map_err(Error::malformed)).collect()
}
