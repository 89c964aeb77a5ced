//! Groups of region servers, at the master's endpoint RSGroupAdminService. Follows: `RSGroupAdminClient`.
//!
//! Every method fails with `UnknownProtocolException` where groups are off, and with `ConstraintException` or `DoNotRetryIOException` where the
//! master refuses.

use model::TableName;
use proto::methods::Method;
use proto::{Message, pb};

use super::Admin;
use crate::{Error, Result};

/// `host:port`, as a server is named in groups, which keep servers over their restarts.
///
/// # Errors
/// It is none.
fn address(text: &str) -> Result<pb::ServerName> {
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (host, port) = parts.filter(|(host, _)| !host.is_empty()).ok_or_else(|| {
        Error::Malformed(format!("{text:?} is no server: write host:port, as list_rsgroups shows it"))
    })?;
    Ok(pb::ServerName { host_name: host.to_lowercase(), port: Some(u32::from(port)), start_code: None })
}

fn addresses(servers: &[String]) -> Result<Vec<pb::ServerName>> {
    servers.iter().map(|server| address(server)).collect()
}

fn names(tables: &[TableName]) -> Vec<pb::TableName> {
    tables.iter().map(convert::to_proto::table_name).collect()
}

impl Admin {
    async fn of_groups<R: Message + Default>(&self, method: Method, request: &impl Message) -> Result<R> {
        self.master_coprocessor(method.info(), request).await
    }

    /// Every group of region servers.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn groups(&self) -> Result<Vec<pb::RsGroupInfo>> {
        let request = pb::ListRsGroupInfosRequest {};
        let reply: pb::ListRsGroupInfosResponse =
            self.of_groups(Method::RSGroupAdminListRSGroupInfos, &request).await?;
        Ok(reply.r_s_group_info)
    }

    /// The group of this name; `None` where there is none.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn group(&self, name: &str) -> Result<Option<pb::RsGroupInfo>> {
        let request = pb::GetRsGroupInfoRequest { r_s_group_name: name.to_owned() };
        let reply: pb::GetRsGroupInfoResponse = self.of_groups(Method::RSGroupAdminGetRSGroupInfo, &request).await?;
        Ok(reply.r_s_group_info)
    }

    /// The group of a server (`host:port`); `None` where it is in none.
    ///
    /// # Errors
    /// As for all methods of groups; what is no server.
    pub async fn group_of_server(&self, server: &str) -> Result<Option<pb::RsGroupInfo>> {
        let request = pb::GetRsGroupInfoOfServerRequest { server: address(server)? };
        let reply: pb::GetRsGroupInfoOfServerResponse =
            self.of_groups(Method::RSGroupAdminGetRSGroupInfoOfServer, &request).await?;
        Ok(reply.r_s_group_info)
    }

    /// The group of a table; `None` where there is no such table.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn group_of_table(&self, table: &TableName) -> Result<Option<pb::RsGroupInfo>> {
        let request = pb::GetRsGroupInfoOfTableRequest { table_name: convert::to_proto::table_name(table) };
        let reply: pb::GetRsGroupInfoOfTableResponse =
            self.of_groups(Method::RSGroupAdminGetRSGroupInfoOfTable, &request).await?;
        Ok(reply.r_s_group_info)
    }

    /// Makes a group, which is empty.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn add_group(&self, name: &str) -> Result<()> {
        let request = pb::AddRsGroupRequest { r_s_group_name: name.to_owned() };
        self.of_groups::<pb::AddRsGroupResponse>(Method::RSGroupAdminAddRSGroup, &request).await.map(drop)
    }

    /// Removes a group without servers and tables.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn remove_group(&self, name: &str) -> Result<()> {
        let request = pb::RemoveRsGroupRequest { r_s_group_name: name.to_owned() };
        self.of_groups::<pb::RemoveRsGroupResponse>(Method::RSGroupAdminRemoveRSGroup, &request).await.map(drop)
    }

    /// Balances the regions of a group over its servers.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn balance_group(
        &self,
        name: &str,
        ignore_rit: bool,
        dry_run: bool,
    ) -> Result<pb::BalanceRsGroupResponse> {
        let (ignore_rit, dry_run) = (Some(ignore_rit), Some(dry_run));
        let request = pb::BalanceRsGroupRequest { r_s_group_name: name.to_owned(), ignore_rit, dry_run };
        self.of_groups(Method::RSGroupAdminBalanceRSGroup, &request).await
    }

    /// Moves servers (`host:port`) to a group; done when the regions that they had for others are elsewhere.
    ///
    /// # Errors
    /// As for all methods of groups; what is no server.
    pub async fn move_servers_to_group(&self, servers: &[String], group: &str) -> Result<()> {
        let request = pb::MoveServersRequest { target_group: group.to_owned(), servers: addresses(servers)? };
        self.of_groups::<pb::MoveServersResponse>(Method::RSGroupAdminMoveServers, &request).await.map(drop)
    }

    /// Moves tables to a group; done when their regions are on its servers.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn move_tables_to_group(&self, tables: &[TableName], group: &str) -> Result<()> {
        let request = pb::MoveTablesRequest { target_group: group.to_owned(), table_name: names(tables) };
        self.of_groups::<pb::MoveTablesResponse>(Method::RSGroupAdminMoveTables, &request).await.map(drop)
    }

    /// Moves servers (`host:port`) and tables of one group to another.
    ///
    /// # Errors
    /// As for all methods of groups; what is no server.
    pub async fn move_servers_and_tables_to_group(
        &self,
        servers: &[String],
        tables: &[TableName],
        group: &str,
    ) -> Result<()> {
        let request = pb::MoveServersAndTablesRequest {
            target_group: group.to_owned(),
            servers: addresses(servers)?,
            table_name: names(tables),
        };
        let method = Method::RSGroupAdminMoveServersAndTables;
        self.of_groups::<pb::MoveServersAndTablesResponse>(method, &request).await.map(drop)
    }

    /// Takes servers (`host:port`) that come back no more out of their groups.
    ///
    /// # Errors
    /// As for all methods of groups; what is no server.
    pub async fn remove_servers_from_groups(&self, servers: &[String]) -> Result<()> {
        let request = pb::RemoveServersRequest { servers: addresses(servers)? };
        self.of_groups::<pb::RemoveServersResponse>(Method::RSGroupAdminRemoveServers, &request).await.map(drop)
    }

    /// Gives a group another name.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn rename_group(&self, old: &str, new: &str) -> Result<()> {
        let (old_rsgroup_name, new_rsgroup_name) = (old.to_owned(), new.to_owned());
        let request = pb::RenameRsGroupRequest { old_rsgroup_name, new_rsgroup_name };
        self.of_groups::<pb::RenameRsGroupResponse>(Method::RSGroupAdminRenameRSGroup, &request).await.map(drop)
    }

    /// Replaces what is configured for a group.
    ///
    /// # Errors
    /// As for all methods of groups.
    pub async fn configure_group(&self, name: &str, configuration: Vec<pb::NameStringPair>) -> Result<()> {
        let request = pb::UpdateRsGroupConfigRequest { group_name: name.to_owned(), configuration };
        let method = Method::RSGroupAdminUpdateRSGroupConfig;
        self.of_groups::<pb::UpdateRsGroupConfigResponse>(method, &request).await.map(drop)
    }

    /// Has the servers of a group that are online read their configuration again; `false` where there is no such group.
    ///
    /// # Errors
    /// As for all methods of groups; a server cannot be reached, and those after it are not asked.
    pub async fn update_group_configuration(&self, name: &str) -> Result<bool> {
        let Some(group) = self.group(name).await? else { return Ok(false) };
        for server in self.servers().await? {
            let is_same = |one: &pb::ServerName| {
                one.port() == u32::from(server.port) && one.host_name.eq_ignore_ascii_case(&server.host)
            };
            if group.servers.iter().any(is_same) {
                self.update_configuration(&server).await?;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_host_and_port() {
        let server = address("Host.Example:16020").expect("a server");
        assert_eq!((server.host_name.as_str(), server.port()), ("host.example", 16020));
        for wrong in ["", "host", "host:", ":1", "host:65536", "host,1,2"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
