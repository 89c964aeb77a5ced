//! Changes of groups: what is refused and in which words, and what they become.

use crate::{Address, DEFAULT, Group, Groups, Moved, Refusal, Servers, constraint};
use model::TableName;
use std::collections::{BTreeMap, BTreeSet};

/// Follows: `RSGroupInfoManagerImpl#checkGroupName`.
fn check_name(name: &str) -> Result<(), Refusal> {
    let is_legal = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_legal { Ok(()) } else { constraint("RSGroup name should only contain alphanumeric characters") }
}

fn check_online(servers: &BTreeSet<Address>, all: &Servers) -> Result<(), Refusal> {
    match servers.difference(&all.online).next() {
        Some(server) => constraint(format!("Server {server} is not an online server in 'default' RSGroup.")),
        None => Ok(()),
    }
}

impl Groups {
    /// With another group, which is empty.
    ///
    /// # Errors
    /// An illegal name; there is such a group.
    pub fn add(&self, name: &str) -> Result<Groups, Refusal> {
        check_name(name)?;
        if self.groups.contains_key(name) {
            return Err(Refusal::DoNotRetry(format!("Group already exists: {name}")));
        }
        let mut after = self.clone();
        after.groups.insert(name.to_owned(), Group::new(name));
        Ok(after)
    }

    /// Without a group; `namespaces` are those that name a group, with its name.
    ///
    /// # Errors
    /// There is none, it has tables or servers, a namespace names it, or it is `default`.
    pub fn remove<'a>(
        &self,
        name: &str,
        namespaces: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Groups, Refusal> {
        let Some(group) = self.get(name) else { return constraint(format!("RSGroup {name} does not exist")) };
        if !group.tables.is_empty() {
            return constraint(format!(
                "RSGroup {name} has {} tables; you must remove these tables from the rsgroup before the rsgroup can be removed.",
                group.tables.len()
            ));
        }
        // The missing space is HBase's.
        if !group.servers.is_empty() {
            return constraint(format!(
                "RSGroup {name} has {} servers; you must remove these servers from the RSGroup beforethe RSGroup can be removed.",
                group.servers.len()
            ));
        }
        if let Some((namespace, _)) = namespaces.into_iter().find(|(_, group)| *group == name) {
            return constraint(format!("RSGroup {name} is referenced by namespace: {namespace}"));
        }
        if name == DEFAULT {
            return Err(Refusal::DoNotRetry(format!("Group {name} does not exist or is a reserved group")));
        }
        let mut after = self.clone();
        after.groups.remove(name);
        Ok(after)
    }

    fn target(&self, name: &str) -> Result<&Group, Refusal> {
        if name.is_empty() {
            return constraint("RSGroup cannot be null.");
        }
        self.get(name).map_or_else(|| constraint(format!("RSGroup does not exist: {name}")), Ok)
    }

    /// The one group of all these servers.
    fn source(&self, servers: &BTreeSet<Address>, first: &Address) -> Result<&Group, Refusal> {
        let Some(source) = self.of_server(first) else {
            return constraint(format!("Server {first} is either offline or it does not exist."));
        };
        let expecting = |what: &str, name: &str| {
            constraint(format!(
                "Move {what} request should only come from one source RSGroup. Expecting only {} but contains {name}",
                source.name
            ))
        };
        for server in servers {
            match self.of_server(server) {
                Some(group) if group.name == source.name => {}
                Some(group) => return expecting("server", &group.name),
                // HBase ends in a NullPointerException here.
                None => return constraint(format!("Server {server} is either offline or it does not exist.")),
            }
        }
        Ok(source)
    }

    /// With these servers in another group, all of them from one. Servers that are not online are dropped where `default` is to have them.
    ///
    /// # Errors
    /// No such group, no such server, servers of several groups, servers of `default` that are not online; `default` would have none left,
    /// or a group with tables would have none.
    pub fn move_servers(
        &self,
        servers: &BTreeSet<Address>,
        target: &str,
        all: &Servers,
    ) -> Result<(Groups, Moved), Refusal> {
        let Some(first) = servers.first() else { return Ok((self.clone(), Moved::default())) };
        let target = self.target(target)?;
        let Some(source) = self.of_server(first) else {
            return constraint(format!("Server {first} is either offline or it does not exist."));
        };
        if source.name == DEFAULT {
            if source.servers.len() <= servers.len() {
                return constraint("should keep at least one server in 'default' RSGroup.");
            }
            check_online(servers, all)?;
        }
        let source = self.source(servers, first)?;
        if source.servers.len() <= servers.len() && !source.tables.is_empty() {
            return constraint(format!(
                "Cannot leave a RSGroup {} that contains tables without servers to host them.",
                source.name
            ));
        }
        let arriving = servers.iter().filter(|server| target.name != DEFAULT || all.online.contains(*server));
        let moved: BTreeSet<Address> = arriving.cloned().collect();
        let after = self.with_moved(servers, &moved, &BTreeSet::new(), (&source.name, &target.name));
        Ok((after, Moved { servers: moved, tables: BTreeSet::new() }))
    }

    /// With these tables in another group.
    ///
    /// # Errors
    /// No such group, or one without servers.
    pub fn move_tables(&self, tables: &BTreeSet<TableName>, target: &str) -> Result<(Groups, Moved), Refusal> {
        if tables.is_empty() {
            return Ok((self.clone(), Moved::default()));
        }
        let Some(group) = self.get(target) else {
            return constraint(format!("Target {target} RSGroup does not exist."));
        };
        if group.servers.is_empty() {
            return constraint("Target RSGroup must have at least one server.");
        }
        let after = self.with_tables(tables, target);
        Ok((after, Moved { servers: BTreeSet::new(), tables: tables.clone() }))
    }

    /// With servers and tables of one group in another.
    ///
    /// # Errors
    /// As of both; nothing to move.
    pub fn move_servers_and_tables(
        &self,
        servers: &BTreeSet<Address>,
        tables: &BTreeSet<TableName>,
        target: &str,
        all: &Servers,
    ) -> Result<(Groups, Moved), Refusal> {
        let Some(first) = servers.first() else {
            return constraint("The list of servers to move cannot be null or empty.");
        };
        if tables.is_empty() {
            return constraint("The list of tables to move cannot be null or empty.");
        }
        let target = self.target(target)?;
        if self.of_server(first).is_none() {
            return constraint(format!("Server {first} is either offline or it does not exist."));
        }
        check_online(servers, all)?;
        let source = self.source(servers, first)?;
        for table in tables {
            let name = self.of_table(table).map_or("no RSGroup", |group| &group.name);
            if name != source.name {
                return constraint(format!(
                    "Move table request should only come from one source RSGroup. Expecting only {} but contains {name}",
                    source.name
                ));
            }
        }
        if source.servers.len() <= servers.len() && source.tables.len() > tables.len() {
            return constraint(format!(
                "Cannot leave a RSGroup {} that contains tables without servers to host them.",
                source.name
            ));
        }
        let after = self.with_moved(servers, servers, tables, (&source.name, &target.name));
        Ok((after, Moved { servers: servers.clone(), tables: tables.clone() }))
    }

    /// Without these servers, which are to come back no more. Those of no group are passed over.
    ///
    /// # Errors
    /// One is online and not draining, or on the list of dead servers; there are none.
    pub fn remove_servers(&self, servers: &BTreeSet<Address>, all: &Servers) -> Result<Groups, Refusal> {
        if servers.is_empty() {
            return constraint("The set of servers to remove cannot be null or empty.");
        }
        for server in servers {
            if all.online.contains(server) && !all.draining.contains(server) {
                return constraint(format!("Server {server} is an online server, not allowed to remove."));
            }
            if all.dead.contains(server) {
                return constraint(format!(
                    "Server {server} is on the dead servers list, Maybe it will come back again, not allowed to remove."
                ));
            }
        }
        let mut after = self.clone();
        for group in after.groups.values_mut() {
            group.servers.retain(|server| !servers.contains(server));
        }
        Ok(after)
    }

    /// With another name for a group; as in HBase what is configured for it is not kept.
    ///
    /// # Errors
    /// An illegal name, `default`, no such group, or there is one of the new name.
    pub fn rename(&self, old: &str, new: &str) -> Result<Groups, Refusal> {
        check_name(old)?;
        check_name(new)?;
        if old == DEFAULT {
            return constraint("Can't rename default rsgroup");
        }
        if !self.groups.contains_key(old) {
            return constraint(format!("RSGroup {old} does not exist"));
        }
        if self.groups.contains_key(new) {
            return constraint(format!("Group already exists: {new}"));
        }
        let mut after = self.clone();
        if let Some(group) = after.groups.remove(old) {
            let renamed = Group { name: new.to_owned(), configuration: BTreeMap::new(), ..group };
            after.groups.insert(new.to_owned(), renamed);
        }
        Ok(after)
    }

    /// With this configuration of a group in place of what it had.
    ///
    /// # Errors
    /// `default`, or no such group.
    pub fn configure(&self, name: &str, configuration: BTreeMap<String, String>) -> Result<Groups, Refusal> {
        if name == DEFAULT {
            return constraint(format!("configuration of {DEFAULT} can't be stored persistently"));
        }
        let mut after = self.clone();
        match after.groups.get_mut(name) {
            Some(group) => group.configuration = configuration,
            None => return Err(Refusal::DoNotRetry(format!("RSGroup {name} does not exist"))),
        }
        Ok(after)
    }

    /// After servers came or went: `default` has those online that no other group has.
    pub fn with_online(&self, online: &BTreeSet<Address>) -> Groups {
        let mut after = self.clone();
        let others = after.groups.values().filter(|group| group.name != DEFAULT);
        let taken: BTreeSet<&Address> = others.flat_map(|group| &group.servers).collect();
        let left: BTreeSet<Address> = online.iter().filter(|server| !taken.contains(server)).cloned().collect();
        if let Some(default) = after.groups.get_mut(DEFAULT) {
            default.servers = left;
        }
        after
    }

    /// With a table, which was made, in a group that there is.
    pub fn with_table(&self, table: &TableName, group: &str) -> Groups {
        self.with_tables(&BTreeSet::from([table.clone()]), group)
    }

    /// Without a table, which was deleted.
    pub fn without_table(&self, table: &TableName) -> Groups {
        let mut after = self.clone();
        for group in after.groups.values_mut() {
            group.tables.remove(table);
        }
        after
    }

    /// With these tables in a group that there is.
    fn with_tables(&self, tables: &BTreeSet<TableName>, target: &str) -> Groups {
        let mut after = self.clone();
        for group in after.groups.values_mut() {
            group.tables.retain(|table| !tables.contains(table));
            if group.name == target {
                group.tables.extend(tables.iter().cloned());
            }
        }
        after
    }

    fn with_moved(
        &self,
        leaving: &BTreeSet<Address>,
        arriving: &BTreeSet<Address>,
        tables: &BTreeSet<TableName>,
        (source, target): (&str, &str),
    ) -> Groups {
        let mut after = self.with_tables(tables, target);
        if let Some(group) = after.groups.get_mut(source) {
            group.servers.retain(|server| !leaving.contains(server));
        }
        if let Some(group) = after.groups.get_mut(target) {
            group.servers.extend(arriving.iter().cloned());
        }
        after
    }
}
