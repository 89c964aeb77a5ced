//! Region servers taken out of use: they get no regions any more, and lose those that they have if that is asked for.
//! Follows: `HMaster#decommissionRegionServers` and its neighbours. In a cluster the next master
//! knows it, too (`draining` among the coordination nodes); a server that is started again has another name.

use super::{MasterHandler, caller, later};
use crate::procedure::region::transit::{self, Transition};
use crate::{ErrorKind, MasterError, Result};
use convert::{from_proto, to_proto};
use model::{RegionInfo, ServerName};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn list(
    handler: &Handler,
    _: &Call,
    _: pb::ListDecommissionedRegionServersRequest,
) -> Answer<pb::ListDecommissionedRegionServersResponse> {
    let server_name = handler.master.servers.draining().iter().map(to_proto::server_name).collect();
    Ok(pb::ListDecommissionedRegionServersResponse { server_name }.into())
}

pub(super) fn decommission(
    handler: &Handler,
    call: &Call,
    request: pb::DecommissionRegionServersRequest,
) -> Answer<pb::DecommissionRegionServersResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let names = request.server_name.iter().map(|name| Ok(from_proto::server_name(name)?));
        let names: Vec<ServerName> = names.collect::<Result<_>>()?;
        let added: Vec<ServerName> = names.into_iter().filter(|name| master.servers.set_draining(name, true)).collect();
        added.iter().for_each(|server| master.observer.draining(server, true));
        if !request.offload {
            return Ok(pb::DecommissionRegionServersResponse {});
        }
        for server in &added {
            let regions: Vec<RegionInfo> = {
                let cluster = master.cluster.read();
                let on_server = cluster.with_replicas().filter(|node| node.location.as_ref() == Some(server));
                on_server.map(|node| node.info.clone()).collect()
            };
            for info in regions {
                let load = |name: &ServerName| master.cluster.read().regions_on(name);
                let destination = master.servers.assignable().into_iter().min_by_key(load).ok_or_else(|| {
                    let message = format!("Unable to determine a plan to move {}", info.name_string());
                    MasterError::new(ErrorKind::HBaseIo, message)
                })?;
                transit::submit(&master, info, Transition::Move, Some(destination), &caller, || Ok(())).await?;
            }
        }
        Ok(pb::DecommissionRegionServersResponse {})
    })
}

pub(super) fn recommission(
    handler: &Handler,
    call: &Call,
    request: pb::RecommissionRegionServerRequest,
) -> Answer<pb::RecommissionRegionServerResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let server = from_proto::server_name(&request.server_name)?;
        if master.servers.set_draining(&server, false) {
            master.observer.draining(&server, false);
        }
        if !master.servers.names().contains(&server) {
            return Ok(pb::RecommissionRegionServerResponse {});
        }
        for region in &request.region {
            let encoded = String::from_utf8_lossy(&region.value).into_owned();
            let node = master.cluster.read().region(&encoded).map(|node| (node.info.clone(), node.location.clone()));
            match node {
                None => tracing::warn!(region = encoded, "an unknown region is not moved"),
                Some((info, location)) if location.as_ref() != Some(&server) => {
                    let to = Some(server.clone());
                    transit::submit(&master, info, Transition::Move, to, &caller, || Ok(())).await?;
                }
                Some(_) => {}
            }
        }
        Ok(pb::RecommissionRegionServerResponse {})
    })
}
