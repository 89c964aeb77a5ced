//! Which function answers which RPC of the master's port, by topic. An RPC that is not listed is answered as
//! unsupported.

use super::{
    MasterHandler, client_locks, cluster, decommission, groups, hbck, logs, maintenance, namespaces, peers,
    permissions, procedures, quotas, regions, registry, snapshots, switches, tables,
};
use rpc::service::{
    BootstrapNodeService, ClientMetaService, HbckService, LockService, MasterService, RegionServerStatusService,
};

impl MasterService for MasterHandler {
    rpc::answered_by! {
        get_table_descriptors(GetTableDescriptorsRequest) -> GetTableDescriptorsResponse = tables::descriptors;
        get_table_names(GetTableNamesRequest) -> GetTableNamesResponse = tables::names;
        list_table_descriptors_by_namespace(ListTableDescriptorsByNamespaceRequest)
            -> ListTableDescriptorsByNamespaceResponse = tables::descriptors_by_namespace;
        list_table_names_by_namespace(ListTableNamesByNamespaceRequest)
            -> ListTableNamesByNamespaceResponse = tables::names_by_namespace;
        list_table_descriptors_by_state(ListTableDescriptorsByStateRequest)
            -> ListTableDescriptorsByStateResponse = tables::descriptors_by_state;
        list_table_names_by_state(ListTableNamesByStateRequest) -> ListTableNamesByStateResponse = tables::names_by_state;
        get_table_state(GetTableStateRequest) -> GetTableStateResponse = tables::state;
        get_schema_alter_status(GetSchemaAlterStatusRequest) -> GetSchemaAlterStatusResponse = tables::alter_status;
        create_table(CreateTableRequest) -> CreateTableResponse = tables::create;
        delete_table(DeleteTableRequest) -> DeleteTableResponse = tables::delete;
        truncate_table(TruncateTableRequest) -> TruncateTableResponse = tables::truncate;
        enable_table(EnableTableRequest) -> EnableTableResponse = tables::enable;
        disable_table(DisableTableRequest) -> DisableTableResponse = tables::disable;
        modify_table(ModifyTableRequest) -> ModifyTableResponse = tables::modify;
        add_column(AddColumnRequest) -> AddColumnResponse = tables::add_family;
        modify_column(ModifyColumnRequest) -> ModifyColumnResponse = tables::modify_family;
        modify_table_store_file_tracker(ModifyTableStoreFileTrackerRequest)
            -> ModifyTableStoreFileTrackerResponse = tables::modify_tracker;
        modify_column_store_file_tracker(ModifyColumnStoreFileTrackerRequest)
            -> ModifyColumnStoreFileTrackerResponse = tables::modify_family_tracker;
        delete_column(DeleteColumnRequest) -> DeleteColumnResponse = tables::delete_family;
        flush_table(FlushTableRequest) -> FlushTableResponse = tables::flush;

        list_namespace_descriptors(ListNamespaceDescriptorsRequest)
            -> ListNamespaceDescriptorsResponse = namespaces::descriptors;
        list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse = namespaces::names;
        get_namespace_descriptor(GetNamespaceDescriptorRequest)
            -> GetNamespaceDescriptorResponse = namespaces::descriptor;
        create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse = namespaces::create;
        modify_namespace(ModifyNamespaceRequest) -> ModifyNamespaceResponse = namespaces::modify;
        delete_namespace(DeleteNamespaceRequest) -> DeleteNamespaceResponse = namespaces::delete;

        assign_region(AssignRegionRequest) -> AssignRegionResponse = regions::assign;
        unassign_region(UnassignRegionRequest) -> UnassignRegionResponse = regions::unassign;
        move_region(MoveRegionRequest) -> MoveRegionResponse = regions::move_region;
        offline_region(OfflineRegionRequest) -> OfflineRegionResponse = regions::offline;
        split_region(SplitTableRegionRequest) -> SplitTableRegionResponse = regions::split;
        merge_table_regions(MergeTableRegionsRequest) -> MergeTableRegionsResponse = regions::merge;
        truncate_region(TruncateRegionRequest) -> TruncateRegionResponse = regions::truncate;
        get_last_major_compaction_timestamp(MajorCompactionTimestampRequest)
            -> MajorCompactionTimestampResponse = regions::last_major_compaction_of_table;
        get_last_major_compaction_timestamp_for_region(MajorCompactionTimestampForRegionRequest)
            -> MajorCompactionTimestampResponse = regions::last_major_compaction;
        balance(BalanceRequest) -> BalanceResponse = regions::balance;
        normalize(NormalizeRequest) -> NormalizeResponse = regions::normalize;

        get_procedure_result(GetProcedureResultRequest) -> GetProcedureResultResponse = procedures::result;
        get_procedures(GetProceduresRequest) -> GetProceduresResponse = procedures::list;
        get_locks(GetLocksRequest) -> GetLocksResponse = procedures::locks;
        abort_procedure(AbortProcedureRequest) -> AbortProcedureResponse = procedures::abort;
        exec_procedure(ExecProcedureRequest) -> ExecProcedureResponse = procedures::start_old;
        exec_procedure_with_ret(ExecProcedureRequest) -> ExecProcedureResponse = procedures::call_old;
        is_procedure_done(IsProcedureDoneRequest) -> IsProcedureDoneResponse = procedures::is_old_done;

        get_log_entries(LogRequest) -> LogEntry = logs::entries;

        grant(GrantRequest) -> GrantResponse = permissions::grant;
        revoke(RevokeRequest) -> RevokeResponse = permissions::revoke;
        get_user_permissions(GetUserPermissionsRequest) -> GetUserPermissionsResponse = permissions::list;
        has_user_permissions(HasUserPermissionsRequest) -> HasUserPermissionsResponse = permissions::check;

        snapshot(SnapshotRequest) -> SnapshotResponse = snapshots::take;
        get_completed_snapshots(GetCompletedSnapshotsRequest) -> GetCompletedSnapshotsResponse = snapshots::list;
        delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse = snapshots::delete;
        is_snapshot_done(IsSnapshotDoneRequest) -> IsSnapshotDoneResponse = snapshots::is_done;
        restore_snapshot(RestoreSnapshotRequest) -> RestoreSnapshotResponse = snapshots::restore;

        set_balancer_running(SetBalancerRunningRequest) -> SetBalancerRunningResponse = switches::set_balancer;
        is_balancer_enabled(IsBalancerEnabledRequest) -> IsBalancerEnabledResponse = switches::balancer;
        set_normalizer_running(SetNormalizerRunningRequest) -> SetNormalizerRunningResponse = switches::set_normalizer;
        is_normalizer_enabled(IsNormalizerEnabledRequest) -> IsNormalizerEnabledResponse = switches::normalizer;
        set_split_or_merge_enabled(SetSplitOrMergeEnabledRequest)
            -> SetSplitOrMergeEnabledResponse = switches::set_split_or_merge;
        is_split_or_merge_enabled(IsSplitOrMergeEnabledRequest)
            -> IsSplitOrMergeEnabledResponse = switches::split_or_merge;
        enable_catalog_janitor(EnableCatalogJanitorRequest) -> EnableCatalogJanitorResponse = switches::set_janitor;
        is_catalog_janitor_enabled(IsCatalogJanitorEnabledRequest) -> IsCatalogJanitorEnabledResponse = switches::janitor;
        set_cleaner_chore_running(SetCleanerChoreRunningRequest) -> SetCleanerChoreRunningResponse = switches::set_cleaner;
        is_cleaner_chore_enabled(IsCleanerChoreEnabledRequest) -> IsCleanerChoreEnabledResponse = switches::cleaner;
        switch_snapshot_cleanup(SetSnapshotCleanupRequest) -> SetSnapshotCleanupResponse = switches::set_snapshot_cleanup;
        is_snapshot_cleanup_enabled(IsSnapshotCleanupEnabledRequest)
            -> IsSnapshotCleanupEnabledResponse = switches::snapshot_cleanup;
        switch_rpc_throttle(SwitchRpcThrottleRequest) -> SwitchRpcThrottleResponse = quotas::set_rpc_throttle;
        is_rpc_throttle_enabled(IsRpcThrottleEnabledRequest) -> IsRpcThrottleEnabledResponse = quotas::rpc_throttle;
        switch_exceed_throttle_quota(SwitchExceedThrottleQuotaRequest)
            -> SwitchExceedThrottleQuotaResponse = quotas::set_exceed_throttle;

        run_catalog_scan(RunCatalogScanRequest) -> RunCatalogScanResponse = maintenance::run_janitor;
        run_cleaner_chore(RunCleanerChoreRequest) -> RunCleanerChoreResponse = maintenance::run_cleaners;
        flush_master_store(FlushMasterStoreRequest) -> FlushMasterStoreResponse = maintenance::flush_store;
        exec_master_service(CoprocessorServiceRequest) -> CoprocessorServiceResponse = groups::exec_master_service;
        shutdown(ShutdownRequest) -> ShutdownResponse = maintenance::shutdown;
        stop_master(StopMasterRequest) -> StopMasterResponse = maintenance::stop_master;

        is_master_running(IsMasterRunningRequest) -> IsMasterRunningResponse = cluster::is_running;
        get_cluster_status(GetClusterStatusRequest) -> GetClusterStatusResponse = cluster::status;
        is_master_in_maintenance_mode(IsInMaintenanceModeRequest) -> IsInMaintenanceModeResponse = cluster::is_in_maintenance_mode;
        get_security_capabilities(SecurityCapabilitiesRequest) -> SecurityCapabilitiesResponse = cluster::capabilities;
        list_decommissioned_region_servers(ListDecommissionedRegionServersRequest)
            -> ListDecommissionedRegionServersResponse = decommission::list;
        decommission_region_servers(DecommissionRegionServersRequest)
            -> DecommissionRegionServersResponse = decommission::decommission;
        recommission_region_server(RecommissionRegionServerRequest)
            -> RecommissionRegionServerResponse = decommission::recommission;
        clear_dead_servers(ClearDeadServersRequest) -> ClearDeadServersResponse = cluster::clear_dead_servers;
        add_replication_peer(AddReplicationPeerRequest) -> AddReplicationPeerResponse = peers::add;
        remove_replication_peer(RemoveReplicationPeerRequest) -> RemoveReplicationPeerResponse = peers::remove;
        enable_replication_peer(EnableReplicationPeerRequest) -> EnableReplicationPeerResponse = peers::enable;
        disable_replication_peer(DisableReplicationPeerRequest) -> DisableReplicationPeerResponse = peers::disable;
        update_replication_peer_config(UpdateReplicationPeerConfigRequest)
            -> UpdateReplicationPeerConfigResponse = peers::update;
        get_replication_peer_config(GetReplicationPeerConfigRequest) -> GetReplicationPeerConfigResponse = peers::config;
        list_replication_peers(ListReplicationPeersRequest) -> ListReplicationPeersResponse = peers::list;
        is_replication_peer_enabled(GetReplicationPeerStateRequest) -> GetReplicationPeerStateResponse = peers::is_enabled;
        replication_peer_modification_switch(ReplicationPeerModificationSwitchRequest)
            -> ReplicationPeerModificationSwitchResponse = peers::set_modification;
        is_replication_peer_modification_enabled(IsReplicationPeerModificationEnabledRequest)
            -> IsReplicationPeerModificationEnabledResponse = peers::modification;
        get_replication_peer_modification_procedures(GetReplicationPeerModificationProceduresRequest)
            -> GetReplicationPeerModificationProceduresResponse = peers::procedures;
        set_quota(SetQuotaRequest) -> SetQuotaResponse = quotas::set;
        get_quota_states(GetQuotaStatesRequest) -> GetQuotaStatesResponse = quotas::states;
        get_space_quota_region_sizes(GetSpaceQuotaRegionSizesRequest)
            -> GetSpaceQuotaRegionSizesResponse = quotas::table_sizes;
    }
}

impl ClientMetaService for MasterHandler {
    rpc::answered_by! {
        get_cluster_id(GetClusterIdRequest) -> GetClusterIdResponse = registry::cluster_id;
        get_active_master(GetActiveMasterRequest) -> GetActiveMasterResponse = registry::active_master;
        get_masters(GetMastersRequest) -> GetMastersResponse = registry::masters;
        get_meta_region_locations(GetMetaRegionLocationsRequest)
            -> GetMetaRegionLocationsResponse = registry::meta_locations;
        get_bootstrap_nodes(GetBootstrapNodesRequest) -> GetBootstrapNodesResponse = registry::bootstrap_nodes;
    }
}

impl BootstrapNodeService for MasterHandler {
    rpc::answered_by! {
        get_all_bootstrap_nodes(GetAllBootstrapNodesRequest)
            -> GetAllBootstrapNodesResponse = registry::all_bootstrap_nodes;
    }
}

impl LockService for MasterHandler {
    rpc::answered_by! {
        request_lock(LockRequest) -> LockResponse = client_locks::request;
        lock_heartbeat(LockHeartbeatRequest) -> LockHeartbeatResponse = client_locks::heartbeat;
    }
}

impl HbckService for MasterHandler {
    rpc::answered_by! {
        assigns(AssignsRequest) -> AssignsResponse = hbck::assigns;
        unassigns(UnassignsRequest) -> UnassignsResponse = hbck::unassigns;
        bypass_procedure(BypassProcedureRequest) -> BypassProcedureResponse = hbck::bypass;
        set_table_state_in_meta(SetTableStateInMetaRequest) -> GetTableStateResponse = hbck::set_table_state;
        set_region_state_in_meta(SetRegionStateInMetaRequest) -> SetRegionStateInMetaResponse = hbck::set_region_states;
        schedule_server_crash_procedure(ScheduleServerCrashProcedureRequest)
            -> ScheduleServerCrashProcedureResponse = hbck::schedule_crashes;
        schedule_sc_ps_for_unknown_servers(ScheduleScPsForUnknownServersRequest)
            -> ScheduleScPsForUnknownServersResponse = hbck::schedule_crashes_of_unknown;
        fix_meta(FixMetaRequest) -> FixMetaResponse = hbck::fix_meta;
        run_hbck_chore(RunHbckChoreRequest) -> RunHbckChoreResponse = hbck::run_chore;
    }
}

impl RegionServerStatusService for MasterHandler {
    rpc::answered_by! {
        report_procedure_done(ReportProcedureDoneRequest) -> ReportProcedureDoneResponse = hbck::report_procedures;
        report_region_space_use(RegionSpaceUseReportRequest) -> RegionSpaceUseReportResponse = quotas::report_sizes;
        report_file_archival(FileArchiveNotificationRequest) -> FileArchiveNotificationResponse = quotas::report_archived;
    }
}
