//! What clients may ask any server of a cluster for: its id, its master, where hbase:meta is, which servers live. Follows:
//! `HBaseRpcServicesBase`, `MetaRegionLocationCache`.

use crate::nodes::{ClusterNodes, Registry};
use convert::to_proto;
use model::{RegionInfo, ServerName};
use proto::methods::Service;
use proto::pb;
use rpc::service::{Answer, BootstrapNodeService, ClientMetaService, Response};
use rpc::{Call, Exception, Handler, Outcome};
use std::sync::Arc;

/// ClientMetaService and BootstrapNodeService of a member.
pub struct RegistryService {
    nodes: ClusterNodes,
    registry: Arc<Registry>,
    cluster_id: String,
}

impl RegistryService {
    /// Answers with what `registry` has; somebody keeps it ([`ClusterNodes::watch`]).
    pub fn new(nodes: ClusterNodes, registry: Arc<Registry>, cluster_id: String) -> RegistryService {
        RegistryService { nodes, registry, cluster_id }
    }
}

impl Handler for RegistryService {
    fn call(&self, call: Call) -> Outcome {
        match call.service {
            Service::ClientMeta => ClientMetaService::dispatch(self, call),
            Service::BootstrapNode => BootstrapNodeService::dispatch(self, call),
            _ => Exception::unsupported(call.method).into(),
        }
    }

    fn cluster_id(&self) -> Option<String> {
        Some(self.cluster_id.clone())
    }
}

impl ClientMetaService for RegistryService {
    rpc::answered_by! {
        get_cluster_id(GetClusterIdRequest) -> GetClusterIdResponse = cluster_id;
        get_active_master(GetActiveMasterRequest) -> GetActiveMasterResponse = active_master;
        get_masters(GetMastersRequest) -> GetMastersResponse = masters;
        get_meta_region_locations(GetMetaRegionLocationsRequest) -> GetMetaRegionLocationsResponse = meta_locations;
        get_bootstrap_nodes(GetBootstrapNodesRequest) -> GetBootstrapNodesResponse = bootstrap_nodes;
    }
}

impl BootstrapNodeService for RegistryService {
    rpc::answered_by! {
        get_all_bootstrap_nodes(GetAllBootstrapNodesRequest) -> GetAllBootstrapNodesResponse = all_bootstrap_nodes;
    }
}

fn cluster_id(of: &RegistryService, _: &Call, _: pb::GetClusterIdRequest) -> Answer<pb::GetClusterIdResponse> {
    Ok(pb::GetClusterIdResponse { cluster_id: Some(of.cluster_id.clone()) }.into())
}

fn active_master(of: &RegistryService, _: &Call, _: pb::GetActiveMasterRequest) -> Answer<pb::GetActiveMasterResponse> {
    let server_name = of.registry.master().as_ref().map(to_proto::server_name);
    Ok(pb::GetActiveMasterResponse { server_name }.into())
}

fn masters(of: &RegistryService, _: &Call, _: pb::GetMastersRequest) -> Answer<pb::GetMastersResponse> {
    let entry =
        |name: &ServerName| pb::GetMastersResponseEntry { server_name: to_proto::server_name(name), is_active: true };
    Ok(pb::GetMastersResponse { master_servers: of.registry.master().iter().map(entry).collect() }.into())
}

fn meta_locations(
    of: &RegistryService,
    _: &Call,
    _: pb::GetMetaRegionLocationsRequest,
) -> Answer<pb::GetMetaRegionLocationsResponse> {
    let location = |id: u32, server: &ServerName| pb::RegionLocation {
        region_info: to_proto::region_info(&RegionInfo::meta().replica(id)),
        server_name: Some(to_proto::server_name(server)),
        seq_num: 0,
    };
    let primary = of.registry.meta();
    let replicas = of.registry.meta_replicas();
    let primary = primary.iter().map(|server| location(0, server));
    let meta_locations = primary.chain(replicas.iter().map(|(id, server)| location(*id, server))).collect();
    Ok(pb::GetMetaRegionLocationsResponse { meta_locations }.into())
}

async fn live_servers(nodes: ClusterNodes) -> Result<Vec<pb::ServerName>, Exception> {
    let names = nodes.live_servers().await.map_err(|over| Exception::io(over.to_string()))?;
    Ok(names.iter().map(to_proto::server_name).collect())
}

fn bootstrap_nodes(
    of: &RegistryService,
    _: &Call,
    _: pb::GetBootstrapNodesRequest,
) -> Answer<pb::GetBootstrapNodesResponse> {
    let nodes = of.nodes.clone();
    Ok(Response::future(async move {
        live_servers(nodes).await.map(|server_name| pb::GetBootstrapNodesResponse { server_name })
    }))
}

fn all_bootstrap_nodes(
    of: &RegistryService,
    _: &Call,
    _: pb::GetAllBootstrapNodesRequest,
) -> Answer<pb::GetAllBootstrapNodesResponse> {
    let nodes = of.nodes.clone();
    Ok(Response::future(async move { live_servers(nodes).await.map(|node| pb::GetAllBootstrapNodesResponse { node }) }))
}
