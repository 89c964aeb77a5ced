//! Groups of region servers: who is in which group, which tables belong to it, and what may be changed.
//!
//! [`Groups`] is all of it at one moment. A change is asked of it and answers what the groups become; [`Groups::rows_after`] says what that
//! changes of the rows of hbase:rsgroup (and the nodes below `/hbase/rsgroup`, which hold the same bytes behind `PBUF`).
//!
//! Always true:
//!  1. There is a group `default`. It has the tables that no other group has.
//!  2. A server is in one group, and so is a table.
//!  3. A change that is refused changes nothing.
//!
//! Must not know: where rows and nodes are written, how regions are moved, who watches servers. Follows: `RSGroupAdminServer`,
//! `RSGroupInfoManagerImpl`, `RSGroupInfo`, `RSGroupProtobufUtil`, in branch 2 of HBase.

mod address;
mod change;
mod group;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use group::{Group, MalformedGroup};

use model::TableName;
use proto::pb;
use std::collections::{BTreeMap, BTreeSet};

/// The group of what is in no other.
pub const DEFAULT: &str = "default";
/// The attribute of a namespace, and of a table, that names its group.
pub const GROUP_ATTRIBUTE: &str = "hbase.rsgroup.name";
/// The table of the groups, whose rows are their names.
pub const TABLE: &str = "hbase:rsgroup";
/// Family and column of that table.
pub const COLUMN: (&str, &str) = ("m", "i");
/// The node above the groups' nodes, below `zookeeper.znode.parent`.
pub const NODE: &str = "rsgroup";

/// Why a change is not made: HBase's exception class, and its sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `ConstraintException`.
    #[error("{0}")]
    Constraint(String),
    /// `DoNotRetryIOException`.
    #[error("{0}")]
    DoNotRetry(String),
}

fn constraint<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Constraint(message.into()))
}

/// Servers as they are when a change is asked for.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// Those that serve.
    pub online: BTreeSet<Address>,
    /// Of these, those that are to be emptied.
    pub draining: BTreeSet<Address>,
    /// Those that are known to be dead.
    pub dead: BTreeSet<Address>,
}

/// All groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    groups: BTreeMap<String, Group>,
}

/// What a change does to the rows of hbase:rsgroup: all of it in one mutation of the rows, as HBase does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowChanges {
    /// Groups whose rows are deleted.
    pub deleted: Vec<String>,
    /// Groups whose rows are put, with what is in [`COLUMN`].
    pub put: Vec<(String, pb::RsGroupInfo)>,
}

/// Regions that are not where they belong after a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Servers whose regions go back to the group that they left, but for regions of `tables`.
    pub servers: BTreeSet<Address>,
    /// Tables whose regions go to the servers of their new group.
    pub tables: BTreeSet<TableName>,
}

impl Groups {
    /// The groups that are kept, with `default` made of what is left: of the tables that there are, and the servers that are online. A table or
    /// server that two kept groups name is the first one's, in the order of their names.
    pub fn load(kept: impl IntoIterator<Item = Group>, tables: &BTreeSet<TableName>, servers: &Servers) -> Groups {
        let kept = kept.into_iter().filter(|group| group.name != DEFAULT);
        let mut groups: BTreeMap<String, Group> = kept.map(|group| (group.name.clone(), group)).collect();
        let (mut seen_tables, mut seen_servers) = (BTreeSet::new(), BTreeSet::new());
        for group in groups.values_mut() {
            group.tables.retain(|table| seen_tables.insert(table.clone()));
            group.servers.retain(|server| seen_servers.insert(server.clone()));
        }
        let mut default = Group::new(DEFAULT);
        default.tables = tables.difference(&seen_tables).cloned().collect();
        default.servers = servers.online.difference(&seen_servers).cloned().collect();
        groups.insert(DEFAULT.to_owned(), default);
        Groups { groups }
    }

    /// Every group, by name.
    pub fn list(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// The group of this name.
    pub fn get(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// The group of a server; none has one that was never online.
    pub fn of_server(&self, server: &Address) -> Option<&Group> {
        self.list().find(|group| group.servers.contains(server))
    }

    /// The group that has taken a table in; of one that is being made it is [`Groups::for_table`].
    pub fn of_table(&self, table: &TableName) -> Option<&Group> {
        self.list().find(|group| group.tables.contains(table))
    }

    /// Where the regions of a table belong: its group, else the one that the table's attribute names, else its namespace's, else `default`. A
    /// name of no group counts for nothing.
    pub fn for_table(&self, table: &TableName, of_table: Option<&str>, of_namespace: Option<&str>) -> &Group {
        let named = |name: Option<&str>| name.and_then(|name| self.get(name));
        let found = self.of_table(table).or_else(|| named(of_table)).or_else(|| named(of_namespace));
        found.unwrap_or_else(|| self.default_group())
    }

    /// The servers on which the regions of `group` may be opened, of those `online`: the group's; where none of them is, and `fallback`
    /// (`hbase.rsgroup.fallback.enable`) is on, those of `default`, and where none of these is, all.
    pub fn candidates(&self, group: &Group, online: &BTreeSet<Address>, fallback: bool) -> BTreeSet<Address> {
        let of = |group: &Group| -> BTreeSet<Address> { group.servers.intersection(online).cloned().collect() };
        let own = of(group);
        if !own.is_empty() || !fallback {
            return own;
        }
        let default = of(self.default_group());
        if default.is_empty() { online.clone() } else { default }
    }

    /// What is to be written when `self` becomes `after`: as in HBase every group's row, and the deletion of rows of groups that are gone.
    pub fn rows_after(&self, after: &Groups) -> RowChanges {
        RowChanges {
            deleted: self.groups.keys().filter(|name| !after.groups.contains_key(*name)).cloned().collect(),
            put: after.list().map(|group| (group.name.clone(), group.to_proto())).collect(),
        }
    }

    fn default_group(&self) -> &Group {
        self.groups.get(DEFAULT).expect("there is always a default group")
    }
}
