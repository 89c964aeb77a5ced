//! Region servers.

use model::{RegionInfo, ServerName, TableName};
use proto::methods::Method;
use proto::{pb, volumes};

use super::{Admin, server_names};
use crate::{Error, RegionLocation, Result};

impl Admin {
    /// The region servers that are alive.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn servers(&self) -> Result<Vec<ServerName>> {
        let status = self.cluster_status_of(&[pb::Option::ServersName]).await?;
        server_names(&status.servers_name)
    }

    /// The region servers that have died.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn dead_servers(&self) -> Result<Vec<ServerName>> {
        server_names(&self.cluster_status_of(&[pb::Option::DeadServers]).await?.dead_servers)
    }

    /// Servers that regions are said to be on and that the master does not know.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn unknown_servers(&self) -> Result<Vec<ServerName>> {
        server_names(&self.cluster_status_of(&[pb::Option::UnknownServers]).await?.unknown_servers)
    }

    /// Has the master forget dead servers; those that it could not forget come back.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn clear_dead_servers(&self, servers: &[ServerName]) -> Result<Vec<ServerName>> {
        let request =
            pb::ClearDeadServersRequest { server_name: servers.iter().map(convert::to_proto::server_name).collect() };
        let reply: pb::ClearDeadServersResponse = self.master(Method::MasterClearDeadServers, &request).await?;
        server_names(&reply.server_name)
    }

    /// Lets servers get no more regions; `offload` also moves those away that they have.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn decommission_servers(&self, servers: &[ServerName], offload: bool) -> Result<()> {
        let server_name = servers.iter().map(convert::to_proto::server_name).collect();
        let request = pb::DecommissionRegionServersRequest { server_name, offload };
        self.master::<pb::DecommissionRegionServersResponse>(Method::MasterDecommissionRegionServers, &request)
            .await
            .map(|_| ())
    }

    /// Lets a server have regions again, at once those that are named.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn recommission_server(&self, server: &ServerName, regions: &[bytes::Bytes]) -> Result<()> {
        let request = pb::RecommissionRegionServerRequest {
            server_name: convert::to_proto::server_name(server),
            region: regions.iter().map(|region| super::regions::named(region)).collect(),
        };
        self.master::<pb::RecommissionRegionServerResponse>(Method::MasterRecommissionRegionServer, &request)
            .await
            .map(|_| ())
    }

    /// Servers that get no more regions.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn decommissioned_servers(&self) -> Result<Vec<ServerName>> {
        let request = pb::ListDecommissionedRegionServersRequest {};
        let reply: pb::ListDecommissionedRegionServersResponse =
            self.master(Method::MasterListDecommissionedRegionServers, &request).await?;
        server_names(&reply.server_name)
    }

    /// What a server says of itself: its name and the port of its pages.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn server_info(&self, server: &ServerName) -> Result<pb::ServerInfo> {
        let reply: pb::GetServerInfoResponse =
            self.server_call(server, Method::AdminGetServerInfo, &pb::GetServerInfoRequest {}).await?;
        Ok(reply.server_info)
    }

    /// The regions that a server serves.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn online_regions(&self, server: &ServerName) -> Result<Vec<RegionInfo>> {
        let reply: pb::GetOnlineRegionResponse =
            self.server_call(server, Method::AdminGetOnlineRegion, &pb::GetOnlineRegionRequest {}).await?;
        reply.region_info.iter().map(|info| convert::from_proto::region_info(info).map_err(Error::malformed)).collect()
    }

    /// The load of a server's regions, of all tables or one.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn region_metrics(&self, server: &ServerName, table: Option<&TableName>) -> Result<Vec<pb::RegionLoad>> {
        let request = pb::GetRegionLoadRequest { table_name: table.map(convert::to_proto::table_name) };
        let reply: pb::GetRegionLoadResponse = self.server_call(server, Method::AdminGetRegionLoad, &request).await?;
        Ok(reply.region_loads)
    }

    /// Names of store files whose blocks a server has cached wholly.
    ///
    /// # Errors
    /// The server cannot be reached, or keeps no such list.
    pub async fn cached_files(&self, server: &ServerName) -> Result<Vec<String>> {
        let reply: pb::GetCachedFilesListResponse =
            self.server_call(server, Method::AdminGetCachedFilesList, &pb::GetCachedFilesListRequest {}).await?;
        Ok(reply.cached_files)
    }

    /// Writes the memstores of a server's regions into files.
    ///
    /// # Errors
    /// A region is refused, or the server cannot be reached.
    pub async fn flush_server(&self, server: &ServerName) -> Result<()> {
        for region in self.online_regions(server).await? {
            let request = pb::FlushRegionRequest {
                region: convert::to_proto::region_specifier(&region),
                ..pb::FlushRegionRequest::default()
            };
            self.server_call::<pb::FlushRegionResponse>(server, Method::AdminFlushRegion, &request).await?;
        }
        Ok(())
    }

    /// Asks for a compaction of a server's regions and does not wait for it.
    ///
    /// # Errors
    /// A region is refused, or the server cannot be reached.
    pub async fn compact_server(&self, server: &ServerName, major: bool) -> Result<()> {
        for region in self.online_regions(server).await? {
            self.compact_at(&RegionLocation { region, server: server.clone() }, None, major).await?;
        }
        Ok(())
    }

    /// Lets a server compact or not; how it stood before.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn set_compaction(&self, server: &ServerName, enabled: bool) -> Result<bool> {
        let request = pb::CompactionSwitchRequest { enabled };
        let reply: pb::CompactionSwitchResponse =
            self.server_call(server, Method::AdminCompactionSwitch, &request).await?;
        Ok(reply.prev_state)
    }

    /// Empties a server's queues of compactions: `long`, `short`.
    ///
    /// # Errors
    /// There is no such queue, or the server cannot be reached.
    pub async fn clear_compaction_queues(&self, server: &ServerName, queues: &[&str]) -> Result<()> {
        let queue_name = queues.iter().map(|queue| (*queue).to_owned()).collect();
        let request = pb::ClearCompactionQueuesRequest { queue_name };
        self.server_call::<pb::ClearCompactionQueuesResponse>(server, Method::AdminClearCompactionQueues, &request)
            .await
            .map(|_| ())
    }

    /// Has a server begin a new WAL file.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn roll_wal(&self, server: &ServerName) -> Result<()> {
        self.server_call::<pb::RollWalWriterResponse>(server, Method::AdminRollWALWriter, &pb::RollWalWriterRequest {})
            .await
            .map(|_| ())
    }

    /// What the volumes of a server's root directory are like (`basalt.volumes`).
    ///
    /// # Errors
    /// The server cannot be reached, or is HBase's.
    pub async fn volumes(&self, server: &ServerName) -> Result<volumes::StatusResponse> {
        self.server_service(server, volumes::SERVICE, volumes::STATUS, &volumes::StatusRequest {}).await
    }

    /// Has a server move the files off one of its volumes, which is to be emptied. Does not wait for it.
    ///
    /// # Errors
    /// There is no such volume, or it gets new files still; the server cannot be reached.
    pub async fn drain_volume(&self, server: &ServerName, directory: &str) -> Result<()> {
        let request = volumes::DrainRequest { directory: directory.to_owned() };
        self.server_service::<volumes::DrainResponse>(server, volumes::SERVICE, volumes::DRAIN, &request)
            .await
            .map(|_| ())
    }

    /// Has a server read its configuration anew.
    ///
    /// # Errors
    /// The configuration is refused, or the server cannot be reached.
    pub async fn update_configuration(&self, server: &ServerName) -> Result<()> {
        let request = pb::UpdateConfigurationRequest {};
        self.server_call::<pb::UpdateConfigurationResponse>(server, Method::AdminUpdateConfiguration, &request)
            .await
            .map(|_| ())
    }

    /// Has every server read its configuration anew: the masters, too.
    ///
    /// # Errors
    /// The first that refuses or cannot be reached.
    pub async fn update_all_configurations(&self) -> Result<()> {
        for server in self.servers().await? {
            self.update_configuration(&server).await?;
        }
        let masters = std::iter::once(self.active_master().await?).chain(self.backup_masters().await?);
        for master in masters {
            self.update_configuration(&master).await?;
        }
        Ok(())
    }

    /// Stops a region server.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn stop_server(&self, server: &ServerName, reason: &str) -> Result<()> {
        let request = pb::StopServerRequest { reason: reason.to_owned() };
        self.server_call::<pb::StopServerResponse>(server, Method::AdminStopServer, &request).await.map(|_| ())
    }
}
