//! What a client asks before anything else: the cluster's id, its masters, where hbase:meta is.
//! Follows: `RSRpcServices`/`HBaseRpcServicesBase` as `ClientMetaService`.

use super::ready;
use crate::convert::{region_info_message, server_name_message};
use crate::master::Master;
use model::RegionInfo;
use proto::methods::Method;
use proto::pb;
use rpc::{Call, Outcome};

/// `None` for methods of other services.
pub(super) fn answer(master: &Master, call: &Call) -> Option<Outcome> {
    let own = || server_name_message(master.server_name());
    let region_server = || server_name_message(&master.host.server_name());
    Some(match call.method.method {
        Method::ClientMetaGetClusterId => {
            ready(Ok(pb::GetClusterIdResponse { cluster_id: Some(master.cluster_id().to_owned()) }))
        }
        Method::ClientMetaGetActiveMaster => ready(Ok(pb::GetActiveMasterResponse { server_name: Some(own()) })),
        Method::ClientMetaGetMasters => ready(Ok(pb::GetMastersResponse {
            master_servers: vec![pb::GetMastersResponseEntry { server_name: own(), is_active: true }],
        })),
        Method::ClientMetaGetMetaRegionLocations => ready(Ok(pb::GetMetaRegionLocationsResponse {
            meta_locations: vec![pb::RegionLocation {
                region_info: region_info_message(&RegionInfo::meta()),
                server_name: Some(region_server()),
                seq_num: 0,
            }],
        })),
        Method::ClientMetaGetBootstrapNodes => {
            ready(Ok(pb::GetBootstrapNodesResponse { server_name: vec![region_server()] }))
        }
        Method::BootstrapNodeGetAllBootstrapNodes => {
            ready(Ok(pb::GetAllBootstrapNodesResponse { node: vec![region_server()] }))
        }
        _ => return None,
    })
}
