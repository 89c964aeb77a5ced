//! What a client asks before anything else: the cluster's id, its masters, where hbase:meta is.
//! Follows: `RSRpcServices`/`HBaseRpcServicesBase` as `ClientMetaService`.

use super::MasterHandler;
use crate::cluster::RegionState;
use convert::to_proto;
use model::{RegionInfo, ServerName};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;

type Handler = MasterHandler;

fn own_name(handler: &Handler) -> pb::ServerName {
    to_proto::server_name(handler.master.server_name())
}

fn region_servers(handler: &Handler) -> Vec<pb::ServerName> {
    handler.master.servers.names().iter().map(to_proto::server_name).collect()
}

pub(super) fn cluster_id(handler: &Handler, _: &Call, _: pb::GetClusterIdRequest) -> Answer<pb::GetClusterIdResponse> {
    Ok(pb::GetClusterIdResponse { cluster_id: Some(handler.master.cluster_id().to_owned()) }.into())
}

pub(super) fn active_master(
    handler: &Handler,
    _: &Call,
    _: pb::GetActiveMasterRequest,
) -> Answer<pb::GetActiveMasterResponse> {
    Ok(pb::GetActiveMasterResponse { server_name: Some(own_name(handler)) }.into())
}

pub(super) fn masters(handler: &Handler, _: &Call, _: pb::GetMastersRequest) -> Answer<pb::GetMastersResponse> {
    let entry = pb::GetMastersResponseEntry { server_name: own_name(handler), is_active: true };
    Ok(pb::GetMastersResponse { master_servers: vec![entry] }.into())
}

pub(super) fn meta_locations(
    handler: &Handler,
    _: &Call,
    _: pb::GetMetaRegionLocationsRequest,
) -> Answer<pb::GetMetaRegionLocationsResponse> {
    let location = |info: &RegionInfo, server: Option<&ServerName>| pb::RegionLocation {
        region_info: to_proto::region_info(info),
        server_name: server.map(to_proto::server_name),
        seq_num: 0,
    };
    let meta = RegionInfo::meta();
    let mut meta_locations = vec![location(&meta, handler.master.servers.meta_location().as_ref())];
    let cluster = handler.master.cluster();
    let mut replicas: Vec<_> = cluster.replicas_of(&meta).filter(|node| node.state == RegionState::Open).collect();
    replicas.sort_by_key(|node| node.info.replica_id);
    meta_locations.extend(replicas.into_iter().map(|node| location(&node.info, node.location.as_ref())));
    Ok(pb::GetMetaRegionLocationsResponse { meta_locations }.into())
}

pub(super) fn bootstrap_nodes(
    handler: &Handler,
    _: &Call,
    _: pb::GetBootstrapNodesRequest,
) -> Answer<pb::GetBootstrapNodesResponse> {
    Ok(pb::GetBootstrapNodesResponse { server_name: region_servers(handler) }.into())
}

pub(super) fn all_bootstrap_nodes(
    handler: &Handler,
    _: &Call,
    _: pb::GetAllBootstrapNodesRequest,
) -> Answer<pb::GetAllBootstrapNodesResponse> {
    Ok(pb::GetAllBootstrapNodesResponse { node: region_servers(handler) }.into())
}
