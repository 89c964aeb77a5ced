//! What pages show of the master: records and locks as they are kept, quotas as they are written.

use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::quotas::table::QuotaTable;
use crate::{LastRun, Memory, Result};
use model::status::RegionLoad;
use model::{ServerName, TableName};
use proto::pb;
use quota::rows::{self, Subject};
use std::sync::Arc;

/// Looks at a master, and changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Views<'a>(pub(crate) &'a Arc<Master>);

/// Something that is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// `table`, `region` and so on.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Nobody else may have it.
    pub is_exclusive: bool,
}

/// A group of region servers, as pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOfServers {
    /// Its name.
    pub name: String,
    /// `host:port` of its servers, online or not.
    pub servers: Vec<String>,
    /// Its tables.
    pub tables: Vec<TableName>,
    /// What is configured for it.
    pub configuration: Vec<(String, String)>,
}

impl Master {
    /// For pages.
    pub fn views(self: &Arc<Self>) -> Views<'_> {
        Views(self)
    }
}

impl Views<'_> {
    /// Region servers that are online, and those that were and are not recovered or forgotten yet.
    pub fn servers(&self) -> (Vec<ServerName>, Vec<ServerName>) {
        (self.0.servers.names(), self.0.servers.dead())
    }

    /// Masters that wait to lead.
    pub fn backup_masters(&self) -> Vec<ServerName> {
        self.0.backup_masters.read().clone()
    }

    /// Region servers that are online, with what they reported last of their regions and their memory.
    pub fn loads(&self) -> Vec<(ServerName, Vec<RegionLoad>, Memory)> {
        let hosts = self.0.servers.all();
        hosts.iter().map(|host| (host.server_name(), host.region_loads(), host.memory())).collect()
    }

    /// Region servers that are decommissioned.
    pub fn draining_servers(&self) -> Vec<ServerName> {
        self.0.servers.draining()
    }

    /// Whether the balancer is switched on, and what it did last.
    pub fn balancer(&self) -> (bool, Option<LastRun>) {
        (self.0.switches.balancer(), self.0.balancer.last_run())
    }

    /// The groups of region servers; `None` where there are none, or they are not known yet.
    pub fn groups(&self) -> Option<Vec<GroupOfServers>> {
        let groups = self.0.groups.current(&self.0.servers)?;
        let view = |group: &rsgroup::Group| GroupOfServers {
            name: group.name.clone(),
            servers: group.servers.iter().map(ToString::to_string).collect(),
            tables: group.tables.iter().cloned().collect(),
            configuration: group.configuration.clone().into_iter().collect(),
        };
        Some(groups.list().map(view).collect())
    }

    /// Where hbase:meta is.
    pub fn meta_server(&self) -> Option<ServerName> {
        self.0.servers.meta_host().ok().map(|host| host.server_name())
    }

    /// Procedures that run or ended lately, as they are recorded.
    pub fn procedures(&self) -> Vec<Arc<pb::Procedure>> {
        self.0.procedures.records()
    }

    /// What is locked.
    pub fn locks(&self) -> Vec<HeldLock> {
        let held = self.0.procedures.locks.held().into_iter().map(|(resource, mode)| {
            let (kind, name) = match resource {
                Resource::Server(name) => ("server", name),
                Resource::Peer(name) => ("peer", name),
                Resource::Namespace(name) => ("namespace", name),
                Resource::Table(table) => ("table", table.to_string()),
                Resource::Region(name) => ("region", name.to_string()),
                Resource::Snapshot(name) => ("snapshot", name),
            };
            HeldLock { kind, name, is_exclusive: mode == Mode::Exclusive }
        });
        held.collect()
    }

    /// Whose quotas there are, in words, and what they say. Nothing while hbase:quota is not there.
    ///
    /// # Errors
    /// hbase:quota cannot be read.
    pub async fn quotas(&self) -> Result<Vec<(String, pb::Quotas)>> {
        let table = model::TableName::quota_table();
        if self.0.cluster().state(&table).is_none() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for cells in (QuotaTable { master: self.0 }).settings().await? {
            let parsed = cells.iter_from(0).filter_map(|cell| rows::parse(cell.row(), cell.qualifier(), cell.value()));
            found.extend(parsed.filter_map(std::result::Result::ok).map(|(subject, quotas)| (shown(&subject), quotas)));
        }
        Ok(found)
    }
}

fn shown(subject: &Subject) -> String {
    match subject {
        Subject::User(user) => format!("user {user}"),
        Subject::UserTable(user, table) => format!("user {user} on table {table}"),
        Subject::UserNamespace(user, namespace) => format!("user {user} in namespace {namespace}"),
        Subject::Table(table) => format!("table {table}"),
        Subject::Namespace(namespace) => format!("namespace {namespace}"),
        Subject::RegionServer(name) => format!("region server {name}"),
    }
}
