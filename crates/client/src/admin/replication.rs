//! Replication peers. Follows: `RawAsyncHBaseAdmin#addReplicationPeer`, `ReplicationPeerConfigUtil`.

use bytes::Bytes;
use model::{TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use proto::pb::replication_state::State;

use super::Admin;
use crate::{Error, Result};

impl Admin {
    /// Adds a peer and waits until it is there.
    ///
    /// # Errors
    /// `ReplicationPeerAlreadyExistsException` and what else the master refuses.
    pub async fn add_replication_peer(&self, id: &str, config: pb::ReplicationPeer, enabled: bool) -> Result<()> {
        let state = if enabled { State::Enabled } else { State::Disabled };
        let request = pb::AddReplicationPeerRequest {
            peer_id: id.to_owned(),
            peer_config: config,
            peer_state: pb::ReplicationState { state: state.into() },
        };
        let reply: pb::AddReplicationPeerResponse = self.master(Method::MasterAddReplicationPeer, &request).await?;
        self.finish(&format!("add replication peer {id}"), reply.proc_id).await
    }

    /// Removes a peer.
    ///
    /// # Errors
    /// `ReplicationPeerNotFoundException` and what else the master refuses.
    pub async fn remove_replication_peer(&self, id: &str) -> Result<()> {
        let request = pb::RemoveReplicationPeerRequest { peer_id: id.to_owned() };
        let reply: pb::RemoveReplicationPeerResponse =
            self.master(Method::MasterRemoveReplicationPeer, &request).await?;
        self.finish(&format!("remove replication peer {id}"), reply.proc_id).await
    }

    /// Has a peer get edits again.
    ///
    /// # Errors
    /// `ReplicationPeerNotFoundException` and what else the master refuses.
    pub async fn enable_replication_peer(&self, id: &str) -> Result<()> {
        let request = pb::EnableReplicationPeerRequest { peer_id: id.to_owned() };
        let reply: pb::EnableReplicationPeerResponse =
            self.master(Method::MasterEnableReplicationPeer, &request).await?;
        self.finish(&format!("enable replication peer {id}"), reply.proc_id).await
    }

    /// Lets a peer wait for its edits.
    ///
    /// # Errors
    /// `ReplicationPeerNotFoundException` and what else the master refuses.
    pub async fn disable_replication_peer(&self, id: &str) -> Result<()> {
        let request = pb::DisableReplicationPeerRequest { peer_id: id.to_owned() };
        let reply: pb::DisableReplicationPeerResponse =
            self.master(Method::MasterDisableReplicationPeer, &request).await?;
        self.finish(&format!("disable replication peer {id}"), reply.proc_id).await
    }

    /// What a peer is.
    ///
    /// # Errors
    /// `ReplicationPeerNotFoundException`, or the master cannot be reached.
    pub async fn replication_peer(&self, id: &str) -> Result<pb::ReplicationPeer> {
        let request = pb::GetReplicationPeerConfigRequest { peer_id: id.to_owned() };
        let reply: pb::GetReplicationPeerConfigResponse =
            self.master(Method::MasterGetReplicationPeerConfig, &request).await?;
        Ok(reply.peer_config)
    }

    /// Changes a peer.
    ///
    /// # Errors
    /// `ReplicationPeerNotFoundException` and what else the master refuses.
    pub async fn update_replication_peer(&self, id: &str, config: pb::ReplicationPeer) -> Result<()> {
        let request = pb::UpdateReplicationPeerConfigRequest { peer_id: id.to_owned(), peer_config: config };
        let reply: pb::UpdateReplicationPeerConfigResponse =
            self.master(Method::MasterUpdateReplicationPeerConfig, &request).await?;
        self.finish(&format!("update replication peer {id}"), reply.proc_id).await
    }

    /// Whether a peer gets edits.
    ///
    /// # Errors
    /// `ReplicationPeerNotFoundException`, or the master cannot be reached.
    pub async fn is_replication_peer_enabled(&self, id: &str) -> Result<bool> {
        let request = pb::GetReplicationPeerStateRequest { peer_id: id.to_owned() };
        let reply: pb::GetReplicationPeerStateResponse =
            self.master(Method::MasterIsReplicationPeerEnabled, &request).await?;
        Ok(reply.is_enabled)
    }

    /// Peers whose ids match a regular expression of Java's; all where there is none.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn replication_peers(&self, regex: Option<&str>) -> Result<Vec<pb::ReplicationPeerDescription>> {
        let request = pb::ListReplicationPeersRequest { regex: regex.map(str::to_owned) };
        let reply: pb::ListReplicationPeersResponse = self.master(Method::MasterListReplicationPeers, &request).await?;
        Ok(reply.peer_desc)
    }

    /// Lets peers be added, changed and removed, or not; how it stood before. `drain` waits for what is under way.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_replication_peer_modification(&self, on: bool, drain: bool) -> Result<bool> {
        let request = pb::ReplicationPeerModificationSwitchRequest { on };
        let reply: pb::ReplicationPeerModificationSwitchResponse =
            self.master(Method::MasterReplicationPeerModificationSwitch, &request).await?;
        while drain && !self.replication_peer_modifications().await?.is_empty() {
            tokio::time::sleep(self.connection.cluster.options.pause).await;
        }
        Ok(reply.previous_value)
    }

    async fn replication_peer_modifications(&self) -> Result<Vec<pb::Procedure>> {
        let request = pb::GetReplicationPeerModificationProceduresRequest {};
        let reply: pb::GetReplicationPeerModificationProceduresResponse =
            self.master(Method::MasterGetReplicationPeerModificationProcedures, &request).await?;
        Ok(reply.procedure)
    }

    /// Whether peers may be added, changed and removed.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_replication_peer_modification_enabled(&self) -> Result<bool> {
        let request = pb::IsReplicationPeerModificationEnabledRequest {};
        let reply: pb::IsReplicationPeerModificationEnabledResponse =
            self.master(Method::MasterIsReplicationPeerModificationEnabled, &request).await?;
        Ok(reply.enabled)
    }

    /// Adds tables, each with families or wholly (no family), to those that a peer gets.
    ///
    /// # Errors
    /// As [`Admin::update_replication_peer`].
    pub async fn append_replication_peer_tables(&self, id: &str, tables: &[(TableName, Vec<Bytes>)]) -> Result<()> {
        let mut config = self.replication_peer(id).await?;
        for (table, families) in tables {
            let name = convert::to_proto::table_name(table);
            match config.table_cfs.iter_mut().find(|known| known.table_name.as_ref() == Some(&name)) {
                // Wholly is more than any family.
                Some(known) if known.families.is_empty() || families.is_empty() => known.families.clear(),
                Some(known) => {
                    known.families.extend(families.iter().cloned());
                    known.families.sort_unstable();
                    known.families.dedup();
                }
                None => config.table_cfs.push(pb::TableCf { table_name: Some(name), families: families.clone() }),
            }
        }
        self.update_replication_peer(id, config).await
    }

    /// Takes tables, or families of them, from those that a peer gets.
    ///
    /// # Errors
    /// A table that the peer does not get; and as [`Admin::update_replication_peer`].
    pub async fn remove_replication_peer_tables(&self, id: &str, tables: &[(TableName, Vec<Bytes>)]) -> Result<()> {
        let mut config = self.replication_peer(id).await?;
        for (table, families) in tables {
            let name = convert::to_proto::table_name(table);
            let at = config.table_cfs.iter().position(|known| known.table_name.as_ref() == Some(&name));
            let at =
                at.ok_or_else(|| Error::Request(format!("No table: {table} in table-cfs config of peer: {id}")))?;
            let known = &mut config.table_cfs[at].families;
            match (known.is_empty(), families.is_empty()) {
                (true, true) => {}
                (false, false) => known.retain(|family| !families.contains(family)),
                (whole, _) => {
                    let has = if whole { "wholly" } else { "by families" };
                    return Err(Error::Request(format!(
                        "peer {id} has table {table} {has}: it can only be removed so"
                    )));
                }
            }
            if config.table_cfs[at].families.is_empty() {
                config.table_cfs.remove(at);
            }
        }
        self.update_replication_peer(id, config).await
    }

    /// The tables that have families with a scope other than local, and these families.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn list_replicated_tables(&self) -> Result<Vec<(TableName, Vec<Bytes>)>> {
        let replicated = |table: TableDescriptor| {
            let families = table.families.values().filter(|family| family.replication_scope() > 0);
            let families: Vec<Bytes> = families.map(|family| family.name.clone()).collect();
            (!families.is_empty()).then_some((table.name, families))
        };
        Ok(self.list_tables().await?.into_iter().filter_map(replicated).collect())
    }

    /// Has all families of a table replicated. The table must be there at the peers already: unlike Java's client, this one makes it nowhere.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn enable_table_replication(&self, table: &TableName) -> Result<()> {
        self.set_replication_scope(table, "1").await
    }

    /// Has no family of a table replicated.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn disable_table_replication(&self, table: &TableName) -> Result<()> {
        self.set_replication_scope(table, "0").await
    }

    async fn set_replication_scope(&self, name: &TableName, scope: &'static str) -> Result<()> {
        let mut table = self.describe(name).await?.ok_or_else(|| Error::TableNotFound(name.clone()))?;
        for family in table.families.values_mut() {
            family.attributes.insert(Bytes::from_static(b"REPLICATION_SCOPE"), Bytes::from_static(scope.as_bytes()));
        }
        self.modify_table(&table).await
    }
}
