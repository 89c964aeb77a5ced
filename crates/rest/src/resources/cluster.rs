//! Versions and status. Follows: `VersionResource`, `StorageClusterVersionResource`, `StorageClusterStatusResource`.

use crate::gateway::Gateway;
use crate::media::{MODELS_OR_TEXT, Media};
use crate::models::{ClusterStatus, ClusterVersion, NodeModel, RegionLoadModel, Version};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use model::ServerName;
use proto::{pb, rest};

/// `/version`
pub fn version(request: &Request) -> Answer {
    Ok(Reply::model(request.accepted(MODELS_OR_TEXT)?, &Version::own()).uncached())
}

/// `/version/cluster`
pub async fn cluster_version(gateway: &Gateway, request: &Request) -> Answer {
    let media = request.accepted(&[Media::Text, Media::Xml, Media::Json])?;
    let status = gateway.connection.admin().cluster_status_of(&[pb::Option::HbaseVersion]).await;
    let status = status.map_err(|_| Reply::unavailable())?;
    let version = status.hbase_version.map(|version| version.version).unwrap_or_default();
    Ok(Reply::model(media, &ClusterVersion(version)).uncached())
}

/// `/status/cluster`
pub async fn status(gateway: &Gateway, request: &Request) -> Answer {
    let media = request.accepted(MODELS_OR_TEXT)?;
    let parts = [pb::Option::LiveServers, pb::Option::DeadServers];
    let status = gateway.connection.admin().cluster_status_of(&parts).await.map_err(|_| Reply::unavailable())?;
    Ok(Reply::model(media, &model_of(&status)).uncached())
}

fn int(number: Option<u32>) -> Option<i32> {
    Some(i32::try_from(number.unwrap_or(0)).unwrap_or(i32::MAX))
}

fn long(number: Option<u64>) -> Option<i64> {
    Some(i64::try_from(number.unwrap_or(0)).unwrap_or(i64::MAX))
}

fn model_of(status: &pb::ClusterStatus) -> ClusterStatus {
    let mut live_nodes: Vec<NodeModel> = status.live_servers.iter().map(node).collect();
    live_nodes.sort_by(|a, b| (&a.name, a.start_code).cmp(&(&b.name, b.start_code)));
    let dead_nodes = status.dead_servers.iter().map(|name| {
        ServerName::new(&name.host_name, name.port.unwrap_or(0) as u16, name.start_code.unwrap_or(0)).to_string()
    });
    let all_regions = || live_nodes.iter().flat_map(|node| &node.regions);
    let regions = all_regions().count();
    let requests = all_regions()
        .map(|region| region.read_requests_count.unwrap_or(0).saturating_add(region.write_requests_count.unwrap_or(0)));
    let servers = live_nodes.len();
    ClusterStatus(rest::StorageClusterStatus {
        dead_nodes: dead_nodes.collect(),
        regions: Some(i32::try_from(regions).unwrap_or(i32::MAX)),
        requests: Some(requests.fold(0, i64::saturating_add)),
        average_load: Some(if servers == 0 { 0.0 } else { regions as f64 / servers as f64 }),
        live_nodes,
    })
}

fn node(server: &pb::LiveServerInfo) -> NodeModel {
    let (name, load) = (&server.server, &server.server_load);
    let mut regions: Vec<RegionLoadModel> = load.region_loads.iter().map(region).collect();
    regions.sort_by(|a, b| a.name.cmp(&b.name));
    NodeModel {
        name: format!("{}:{}", name.host_name, name.port.unwrap_or(0)),
        start_code: long(name.start_code),
        requests: long(load.total_number_of_requests),
        heap_size_mb: int(load.used_heap_mb),
        max_heap_size_mb: int(load.max_heap_mb),
        regions,
    }
}

fn region(load: &pb::RegionLoad) -> RegionLoadModel {
    RegionLoadModel {
        name: load.region_specifier.value.clone(),
        stores: int(load.stores),
        storefiles: int(load.storefiles),
        storefile_size_mb: int(load.storefile_size_mb),
        mem_store_size_mb: int(load.mem_store_size_mb),
        storefile_index_size_kb: long(load.storefile_index_size_kb),
        read_requests_count: long(load.read_requests_count),
        write_requests_count: long(load.write_requests_count),
        root_index_size_kb: int(load.root_index_size_kb),
        total_static_index_size_kb: int(load.total_static_index_size_kb),
        total_static_bloom_size_kb: int(load.total_static_bloom_size_kb),
        total_compacting_k_vs: long(load.total_compacting_k_vs),
        current_compacted_k_vs: long(load.current_compacted_k_vs),
    }
}
