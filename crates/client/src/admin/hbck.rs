//! Repairs. Follows: `Hbck`, `HBaseHbck`.

use bytes::Bytes;
use model::{ServerName, TableName};
use proto::methods::Method;
use proto::pb;

use super::regions::named;
use super::{Admin, server_names};
use crate::Result;

/// Repairs of a cluster whose own view of itself is wrong. Each does what it says without asking whether it is right: for those who have
/// looked. Procedures that it starts are given back by their numbers and not waited for.
#[derive(Clone)]
pub struct Hbck {
    admin: Admin,
}

impl Hbck {
    pub(super) fn new(admin: Admin) -> Hbck {
        Hbck { admin }
    }

    /// Writes a table's state into hbase:meta; what it was.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn set_table_state_in_meta(
        &self,
        table: &TableName,
        state: pb::table_state::State,
    ) -> Result<pb::table_state::State> {
        let request = pb::SetTableStateInMetaRequest {
            table_name: convert::to_proto::table_name(table),
            table_state: pb::TableState { state: state.into() },
        };
        let reply: pb::GetTableStateResponse = self.admin.master(Method::HbckSetTableStateInMeta, &request).await?;
        Ok(reply.table_state.state())
    }

    /// Writes regions' states into hbase:meta, by their names, whole or encoded; what they were.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn set_region_states_in_meta(
        &self,
        states: &[(Bytes, pb::region_state::State)],
    ) -> Result<Vec<(Bytes, pb::region_state::State)>> {
        let states = states.iter().map(|(region, state)| pb::RegionSpecifierAndState {
            region_specifier: named(region),
            state: (*state).into(),
        });
        let request = pb::SetRegionStateInMetaRequest { states: states.collect() };
        let reply: pb::SetRegionStateInMetaResponse =
            self.admin.master(Method::HbckSetRegionStateInMeta, &request).await?;
        Ok(reply.states.into_iter().map(|was| (was.region_specifier.value.clone(), was.state())).collect())
    }

    /// Has regions opened, by their encoded names; `override_owner` also those that another procedure has.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn assigns(&self, regions: &[Bytes], override_owner: bool) -> Result<Vec<u64>> {
        let region = regions.iter().map(|region| named(region)).collect();
        let request = pb::AssignsRequest { region, r#override: Some(override_owner) };
        Ok(self.admin.master::<pb::AssignsResponse>(Method::HbckAssigns, &request).await?.pid)
    }

    /// Has regions closed.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn unassigns(&self, regions: &[Bytes], override_owner: bool) -> Result<Vec<u64>> {
        let region = regions.iter().map(|region| named(region)).collect();
        let request = pb::UnassignsRequest { region, r#override: Some(override_owner) };
        Ok(self.admin.master::<pb::UnassignsResponse>(Method::HbckUnassigns, &request).await?.pid)
    }

    /// Has procedures end without what they still have to do; for each, whether it does. `override_lock` also those that are running,
    /// `recursive` with their children.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn bypass_procedures(
        &self,
        proc_ids: &[u64],
        wait_ms: u64,
        override_lock: bool,
        recursive: bool,
    ) -> Result<Vec<bool>> {
        let request = pb::BypassProcedureRequest {
            proc_id: proc_ids.to_vec(),
            wait_time: Some(wait_ms),
            r#override: Some(override_lock),
            recursive: Some(recursive),
        };
        Ok(self.admin.master::<pb::BypassProcedureResponse>(Method::HbckBypassProcedure, &request).await?.bypassed)
    }

    /// Has the master take servers for crashed.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn schedule_server_crash_procedures(&self, servers: &[ServerName]) -> Result<Vec<u64>> {
        let server_name = servers.iter().map(convert::to_proto::server_name).collect();
        let request = pb::ScheduleServerCrashProcedureRequest { server_name };
        let reply: pb::ScheduleServerCrashProcedureResponse =
            self.admin.master(Method::HbckScheduleServerCrashProcedure, &request).await?;
        Ok(reply.pid)
    }

    /// The same for those that regions are said to be on and that it does not know.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn schedule_scps_for_unknown_servers(&self) -> Result<Vec<u64>> {
        let request = pb::ScheduleScPsForUnknownServersRequest {};
        let reply: pb::ScheduleScPsForUnknownServersResponse =
            self.admin.master(Method::HbckScheduleSCPsForUnknownServers, &request).await?;
        Ok(reply.pid)
    }

    /// Has the master compare its view of regions with the files and with the servers; whether it did.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn run_hbck_chore(&self) -> Result<bool> {
        let request = pb::RunHbckChoreRequest {};
        Ok(self.admin.master::<pb::RunHbckChoreResponse>(Method::HbckRunHbckChore, &request).await?.ran)
    }

    /// Has the master mend holes and overlaps of hbase:meta.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn fix_meta(&self) -> Result<()> {
        self.admin.master::<pb::FixMetaResponse>(Method::HbckFixMeta, &pb::FixMetaRequest {}).await.map(|_| ())
    }

    /// Servers that regions are said to be on and that the master does not know.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn unknown_servers(&self) -> Result<Vec<ServerName>> {
        let status = self.admin.cluster_status_of(&[pb::Option::UnknownServers]).await?;
        server_names(&status.unknown_servers)
    }
}
