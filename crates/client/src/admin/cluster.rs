//! The cluster as a whole.

use bytes::Bytes;
use model::{ServerName, TableName};
use proto::methods::{Method, MethodInfo};
use proto::{Message, pb};

use super::{Admin, server_names};
use crate::{Error, Result};

impl Admin {
    /// The cluster's status: servers, their load, regions in transition.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn cluster_status(&self) -> Result<pb::ClusterStatus> {
        self.cluster_status_of(&[]).await
    }

    /// Parts of the status; all where none is named.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn cluster_status_of(&self, parts: &[pb::Option]) -> Result<pb::ClusterStatus> {
        let request = pb::GetClusterStatusRequest { options: parts.iter().map(|part| (*part).into()).collect() };
        let reply: pb::GetClusterStatusResponse = self.master(Method::MasterGetClusterStatus, &request).await?;
        Ok(reply.cluster_status)
    }

    /// The active master.
    ///
    /// # Errors
    /// It cannot be reached, or does not say who it is.
    pub async fn active_master(&self) -> Result<ServerName> {
        let master = self.cluster_status_of(&[pb::Option::Master]).await?.master;
        let master = master.ok_or_else(|| Error::Malformed("a status without the master's name".to_owned()))?;
        convert::from_proto::server_name(&master).map_err(Error::malformed)
    }

    /// The masters that wait to become the active one.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn backup_masters(&self) -> Result<Vec<ServerName>> {
        server_names(&self.cluster_status_of(&[pb::Option::BackupMasters]).await?.backup_masters)
    }

    /// Port of the master's pages, if it has any.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn master_info_port(&self) -> Result<Option<u16>> {
        let port = self.cluster_status_of(&[pb::Option::MasterInfoPort]).await?.master_info_port;
        Ok(port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0))
    }

    /// Java classes of the master's coprocessors.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn master_coprocessors(&self) -> Result<Vec<String>> {
        let status = self.cluster_status_of(&[pb::Option::MasterCoprocessors]).await?;
        Ok(status.master_coprocessors.into_iter().map(|coprocessor| coprocessor.name).collect())
    }

    /// Runs the balancer: whether it ran, how many moves it found and made. `ignore_rit` also while regions are in transition, `dry_run`
    /// without moving any.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn balance(&self, ignore_rit: bool, dry_run: bool) -> Result<pb::BalanceResponse> {
        let request = pb::BalanceRequest { ignore_rit: Some(ignore_rit), dry_run: Some(dry_run) };
        self.master(Method::MasterBalance, &request).await
    }

    /// Runs the normalizer over tables: those named, of a namespace, whose names match a regular expression of Java's. Whether it ran.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn normalize(&self, tables: &[TableName], namespace: Option<&str>, regex: Option<&str>) -> Result<bool> {
        let request = pb::NormalizeRequest {
            table_names: tables.iter().map(convert::to_proto::table_name).collect(),
            regex: regex.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
        };
        let reply: pb::NormalizeResponse = self.master(Method::MasterNormalize, &request).await?;
        Ok(reply.normalizer_ran)
    }

    /// Runs the catalog janitor; how many entries of hbase:meta it cleaned, none where it could not run.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn run_catalog_janitor(&self) -> Result<Option<u32>> {
        let reply: pb::RunCatalogScanResponse =
            self.master(Method::MasterRunCatalogScan, &pb::RunCatalogScanRequest {}).await?;
        Ok(reply.scan_result.and_then(|cleaned| u32::try_from(cleaned).ok()))
    }

    /// Runs the cleaners of old logs and files. Whether they ran.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn run_cleaner_chore(&self) -> Result<bool> {
        let reply: pb::RunCleanerChoreResponse =
            self.master(Method::MasterRunCleanerChore, &pb::RunCleanerChoreRequest {}).await?;
        Ok(reply.cleaner_chore_ran)
    }

    /// Whether the master is in maintenance mode.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_in_maintenance_mode(&self) -> Result<bool> {
        let reply: pb::IsInMaintenanceModeResponse =
            self.master(Method::MasterIsMasterInMaintenanceMode, &pb::IsInMaintenanceModeRequest {}).await?;
        Ok(reply.in_maintenance_mode)
    }

    /// Whether the master says that it runs.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn is_master_running(&self) -> Result<bool> {
        let reply: pb::IsMasterRunningResponse =
            self.master(Method::MasterIsMasterRunning, &pb::IsMasterRunningRequest {}).await?;
        Ok(reply.is_master_running)
    }

    /// Writes the memstore of the master's own region into a file.
    ///
    /// # Errors
    /// The master refuses or cannot be reached.
    pub async fn flush_master_store(&self) -> Result<()> {
        self.master::<pb::FlushMasterStoreResponse>(Method::MasterFlushMasterStore, &pb::FlushMasterStoreRequest {})
            .await
            .map(|_| ())
    }

    /// Stops the whole cluster.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn shutdown(&self) -> Result<()> {
        self.master::<pb::ShutdownResponse>(Method::MasterShutdown, &pb::ShutdownRequest {}).await.map(|_| ())
    }

    /// Stops the active master.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn stop_master(&self) -> Result<()> {
        self.master::<pb::StopMasterResponse>(Method::MasterStopMaster, &pb::StopMasterRequest {}).await.map(|_| ())
    }

    /// Calls an endpoint of the master.
    ///
    /// # Errors
    /// `UnknownProtocolException` when it has none such.
    pub async fn master_coprocessor<R: Message + Default>(
        &self,
        method: &MethodInfo,
        request: &impl Message,
    ) -> Result<R> {
        let request = service_call(method.service.name(), method.name, request);
        let reply: pb::CoprocessorServiceResponse = self.master(Method::MasterExecMasterService, &request).await?;
        R::decode(reply.value.value.unwrap_or_default()).map_err(Error::malformed)
    }

    /// Calls an endpoint of a region server itself, not of one of its regions.
    ///
    /// # Errors
    /// `UnknownProtocolException` when it has none such.
    pub async fn server_coprocessor<R: Message + Default>(
        &self,
        server: &ServerName,
        method: &MethodInfo,
        request: &impl Message,
    ) -> Result<R> {
        self.server_service(server, method.service.name(), method.name, request).await
    }

    /// As [`Admin::server_coprocessor`], of a service that is not HBase's.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn server_service<R: Message + Default>(
        &self,
        server: &ServerName,
        service: &str,
        method: &str,
        request: &impl Message,
    ) -> Result<R> {
        let request = service_call(service, method, request);
        let cluster = &self.connection.cluster;
        let server = cluster.server(&server.address());
        let mut retry = cluster.retry(cluster.manner.writing());
        let reply: pb::CoprocessorServiceResponse = loop {
            let called = async {
                let channel = server.client().await?;
                let request = crate::channel::Request::new(Method::ClientExecRegionServerService, &request);
                channel.call(request.timeout(retry.call_timeout())).await
            };
            match called.await {
                Ok(reply) => break reply.decode()?,
                Err(error) => retry.pause(error).await?,
            }
        };
        R::decode(reply.value.value.unwrap_or_default()).map_err(Error::malformed)
    }
}

fn service_call(service: &str, method: &str, request: &impl Message) -> pb::CoprocessorServiceRequest {
    let call = pb::CoprocessorServiceCall {
        row: Bytes::new(),
        service_name: service.to_owned(),
        method_name: method.to_owned(),
        request: request.encode_to_vec().into(),
    };
    // No region is meant; the field must be there.
    pb::CoprocessorServiceRequest { region: super::regions::named(b""), call }
}
