//! The parts of the master's procedures that region servers carry out, by the names of HBase's classes.

use super::Orders;
use crate::blocking::off_worker;
use crate::server::{RegionServer, ServerError};
use bytes::Bytes;
use convert::from_proto;
use proto::pb::PeerModificationType;
use proto::pb::remote_procedure_result::Status;
use proto::pb::snapshot_description::Type as SnapshotType;
use proto::{Message, pb};
use rootdir::snapshot::restore::find_missing;
use rootdir::snapshot::{Manifest, read_manifest, working_dir};
use rpc::exception::{Exception, Kind};
use std::sync::Arc;

const REGION_SERVER: &str = "org.apache.hadoop.hbase.regionserver.";
const REPLICATION: &str = "org.apache.hadoop.hbase.replication.regionserver.";

impl Orders {
    /// Carries it out, and tells the master how it ended.
    pub(super) async fn run_procedure(self: Arc<Self>, request: pb::RemoteProcedureRequest) {
        let span = crate::traces::begin_own(&self.server, "RSProcedureHandler").map(|mut span| {
            span.set("procId", request.proc_id);
            span.set("class", request.proc_class.clone());
            span
        });
        let place = span.as_ref().map(|span| span.place().clone());
        trace::within(place, self.run_procedure_here(request)).await;
    }

    async fn run_procedure_here(self: Arc<Self>, request: pb::RemoteProcedureRequest) {
        let class = request.proc_class.clone();
        let outcome = self.carry_out(&class, request.proc_data.unwrap_or_default()).await;
        let error = outcome.err().map(|exception| {
            tracing::warn!("procedure {} ({class}) failed: {exception}", request.proc_id);
            exception.to_foreign(&self.server.name.to_string())
        });
        let result = pb::RemoteProcedureResult {
            proc_id: request.proc_id,
            status: if error.is_none() { Status::Success } else { Status::Error } as i32,
            error,
            initiating_master_active_time: request.initiating_master_active_time,
        };
        if let Err(why) = self.reports.procedure_done(result).await {
            // The server is no member any more: whoever runs it knows.
            tracing::warn!("the end of procedure {} cannot be reported: {why}", request.proc_id);
        }
    }

    async fn carry_out(&self, class: &str, data: Bytes) -> Result<(), Exception> {
        let short = class.strip_prefix(REGION_SERVER).or_else(|| class.strip_prefix(REPLICATION)).unwrap_or(class);
        match short {
            "SplitWALCallable" => {
                let parameter: pb::SplitWalParameter = decode(data)?;
                self.splitting.split(&self.server, &parameter.wal_path).await
            }
            "FlushRegionCallable" => self.blocking(decode(data)?, flush_region).await,
            "SnapshotRegionCallable" => self.blocking(decode(data)?, snapshot_region).await,
            "SnapshotVerifyCallable" => self.blocking(decode(data)?, verify_snapshot).await,
            "SwitchRpcThrottleRemoteCallable" => {
                let parameter: pb::SwitchRpcThrottleRemoteStateData = decode(data)?;
                self.server.quotas().switch(parameter.rpc_throttle_enabled);
                Ok(())
            }
            "ReloadQuotasCallable" => {
                self.reload_quotas().await;
                Ok(())
            }
            "RefreshPeerCallable" => refresh_peer(&decode(data)?),
            "ClaimReplicationQueueCallable" => {
                Err(unsupported("edits are not replicated from here, and no queue of another server is taken over"))
            }
            _ => Err(unsupported(&format!("there is no procedure {class} here"))),
        }
    }

    async fn blocking<M: Send + 'static>(
        &self,
        parameter: M,
        work: fn(&RegionServer, M) -> Result<(), Exception>,
    ) -> Result<(), Exception> {
        let server = self.server.clone();
        let ended = off_worker(move || work(&server, parameter)).await;
        ended.unwrap_or_else(|error| Err(Exception::io(format!("it failed inside the server: {error}"))))
    }
}

fn decode<M: Message + Default>(data: Bytes) -> Result<M, Exception> {
    M::decode(data).map_err(|error| Exception::do_not_retry(format!("its parameter cannot be read: {error}")))
}

fn unsupported(what: &str) -> Exception {
    Exception::new(Kind::UnsupportedOperation, what.to_owned())
}

fn exception(server: &RegionServer, error: ServerError) -> Exception {
    crate::handlers::server_exception(server, error)
}

fn flush_region(server: &RegionServer, parameter: pb::FlushRegionParameter) -> Result<(), Exception> {
    let info = from_proto::region_info(&parameter.region)?;
    let families = parameter.column_family.into_iter().filter(|family| !family.is_empty()).collect();
    server.flush_region(info.encoded_name(), families).map(drop).map_err(|error| exception(server, error))
}

fn snapshot_region(server: &RegionServer, parameter: pb::SnapshotRegionParameter) -> Result<(), Exception> {
    let info = from_proto::region_info(&parameter.region)?;
    let flush = parameter.snapshot.r#type() == SnapshotType::Flush;
    let name = &parameter.snapshot.name;
    server.snapshot_region(info.encoded_name(), name, flush).map_err(|error| exception(server, error))
}

/// Follows: `RSSnapshotVerifier`.
fn verify_snapshot(server: &RegionServer, parameter: pb::SnapshotVerifyParameter) -> Result<(), Exception> {
    let info = from_proto::region_info(&parameter.region)?;
    let name = &parameter.snapshot.name;
    let volume = &*server.env.volume;
    let whole = read_manifest(volume, &working_dir(name)).map_err(|error| Exception::io(error.to_string()))?;
    let mut regions = whole.regions;
    regions.retain(|region| region.info.encoded_name() == info.encoded_name());
    let missing = |what: String| {
        let class = "org.apache.hadoop.hbase.snapshot.CorruptedSnapshotException";
        Exception::io(format!("{class}: {what}"))
    };
    if regions.is_empty() {
        return Err(missing(format!("No data was found for region {} in snapshot {name}", info.name_string())));
    }
    match find_missing(volume, &Manifest { table: whole.table, regions }) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => Err(missing(what)),
        Err(error) => Err(Exception::io(error.to_string())),
    }
}

/// Edits of regions that are served here are not shipped: no peer may begin to count on it.
fn refresh_peer(parameter: &pb::RefreshPeerParameter) -> Result<(), Exception> {
    match parameter.r#type() {
        // HBase's way to tell read replicas, which goes another way here. A refusal would be sent again for ever.
        _ if parameter.peer_id == "region_replica_replication" => Ok(()),
        PeerModificationType::AddPeer | PeerModificationType::EnablePeer => Err(unsupported(&format!(
            "replication peer {}: this server ships no edits. Remove or disable the peer, or stop this server.",
            parameter.peer_id
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_would_ship_edits_is_refused() {
        let of_peer = |id: &str, kind: PeerModificationType| {
            refresh_peer(&pb::RefreshPeerParameter {
                peer_id: id.to_owned(),
                r#type: kind as i32,
                target_server: pb::ServerName::default(),
            })
        };
        let of = |kind| of_peer("p", kind);
        assert!(of_peer("region_replica_replication", PeerModificationType::AddPeer).is_ok());
        assert!(of(PeerModificationType::AddPeer).is_err() && of(PeerModificationType::EnablePeer).is_err());
        assert!(of(PeerModificationType::DisablePeer).is_ok() && of(PeerModificationType::RemovePeer).is_ok());
    }
}
