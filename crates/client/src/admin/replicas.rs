//! What region servers ask of one another for the sake of read replicas. Follows: `RegionReplicaReplicationEndpoint`, `RegionReplicaFlushHandler`.

use bytes::Bytes;
use proto::methods::Method;
use proto::pb;

use super::Admin;
use crate::Result;
use crate::channel::Request;
use crate::locator::RegionLocation;

impl Admin {
    /// Has a read replica take entries of its primary's log, in one try. `cells` is as a cell block has them, without codec.
    ///
    /// # Errors
    /// The replica is not there, has no room, or the server cannot be reached.
    pub async fn replay(&self, at: &RegionLocation, entries: &[pb::WalEntry], cells: &Bytes) -> Result<()> {
        let cluster = &self.connection.cluster;
        let name = Bytes::copy_from_slice(at.region.encoded_name().as_bytes());
        let mut entry = entries.to_vec();
        entry.iter_mut().for_each(|entry| entry.key.encoded_region_name = name.clone());
        let message = pb::ReplicateWalEntryRequest { entry, ..pb::ReplicateWalEntryRequest::default() };
        let cells = [cluster.options.codec.encode(cells.clone(), true)];
        let channel = cluster.server(&at.server.address()).admin().await?;
        let timeout = cluster.manner.writing().rpc_timeout;
        channel.call(Request::new(Method::AdminReplay, &message).cells(&cells).timeout(timeout)).await.map(drop)
    }

    /// Has a region flushed, or else told in its log that there is nothing to flush. Whether the log has the one or the other.
    ///
    /// # Errors
    /// The region's server refuses or cannot be reached.
    pub async fn flush_for_replicas(&self, primary: &RegionLocation) -> Result<bool> {
        let request = pb::FlushRegionRequest {
            region: convert::to_proto::region_specifier(&primary.region),
            write_flush_wal_marker: Some(true),
            ..pb::FlushRegionRequest::default()
        };
        let reply = self.region_call(primary, Method::AdminFlushRegion, &request).await?;
        let reply: pb::FlushRegionResponse = reply.decode()?;
        // One that does not say is of before: it is taken for done, as in HBase.
        Ok(reply.flushed() || reply.wrote_flush_wal_marker.unwrap_or(true))
    }
}
