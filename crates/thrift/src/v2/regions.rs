//! Where regions are, and what the cluster is.

use super::Handler;
use super::types::*;
use crate::fault::Outcome;
use bytes::Bytes;
use client::RegionLocation;

impl Handler {
    pub(super) async fn get_region_location(
        &self,
        table: Bytes,
        row: Bytes,
        reload: Option<bool>,
    ) -> Outcome<THRegionLocation> {
        Ok(location(&self.table(&table)?.region_of(&row, reload.unwrap_or_default()).await?))
    }

    pub(super) async fn get_all_region_locations(&self, table: Bytes) -> Outcome<Vec<THRegionLocation>> {
        Ok(self.table(&table)?.regions().await?.iter().map(location).collect())
    }

    pub(super) async fn get_thrift_server_type(&self) -> Outcome<TThriftServerType> {
        Ok(TThriftServerType::TWO)
    }

    pub(super) async fn get_cluster_id(&self) -> Outcome<String> {
        Ok(self.connection.cluster_id().await?)
    }
}

/// Follows: `ThriftUtilities#regionLocationFromHBase`.
fn location(from: &RegionLocation) -> THRegionLocation {
    let RegionLocation { region, server } = from;
    THRegionLocation {
        server_name: TServerName {
            host_name: server.host.to_string(),
            port: Some(server.port.into()),
            start_code: Some(server.start_code as i64),
        },
        region_info: THRegionInfo {
            region_id: region.region_id as i64,
            table_name: Bytes::copy_from_slice(region.table.as_str().as_bytes()),
            start_key: Some(region.start_key.clone()),
            end_key: Some(region.end_key.clone()),
            offline: Some(region.offline),
            split: Some(region.split),
            replica_id: Some(region.replica_id as i32),
        },
    }
}
