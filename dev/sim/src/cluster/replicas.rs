//! Read replicas in the simulated cluster: which of HBase's two ways a run has them hear of writes, a region server's routes to them, and what a client
//! may see on one.
//!
//! A replica may be behind. It never shows what nobody wrote, nor less than it has shown before: not after a flush, nor when it opens elsewhere.

use super::client::Caller;
use super::work::Memory;
use crate::calls::RowCells;
use crate::promises::{Outcome, value_of};
use crate::{Violation, ensure};
use base::{Config, Rng};
use bytes::Bytes;
use cell::CellBlock;
use convert::to_proto;
use membership::{Asked, ReplicaRoutes};
use model::{RegionInfo, ServerName};
use proto::methods::Method;
use proto::pb;
use std::pin::Pin;
use std::sync::Arc;

/// How replicas hear of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// There are none.
    None,
    /// They look for store files.
    Look,
    /// They are told of the log.
    Told,
}

impl Replicas {
    /// Of a run: where `wanted` always some, else sometimes.
    pub fn of(seed: u64, wanted: bool) -> Replicas {
        // Nobody else's dice: runs without them are what they were.
        match Rng::seeded(seed ^ 0x5245_504C).below(if wanted { 3 } else { 9 }) {
            0 => Replicas::Look,
            1 | 2 => Replicas::Told,
            _ => Replicas::None,
        }
    }

    /// Has servers do so.
    pub fn set(self, seed: u64, config: &mut Config) {
        let rng = Rng::seeded(seed ^ 0x4255_4646);
        match self {
            Replicas::None => {}
            Replicas::Look => config.set("hbase.regionserver.storefile.refresh.period", "500"),
            Replicas::Told => {
                config.set("hbase.region.replica.replication.enabled", "true");
                // Sometimes there is hardly any room for what waits.
                let bytes = ["2048", "1048576"][rng.below(2) as usize];
                config.set("hbase.region.replica.replication.buffersize", bytes);
            }
        }
    }
}

/// A region server's way to replicas elsewhere.
pub struct Routes(pub Arc<Caller>);

impl ReplicaRoutes for Routes {
    fn replicas<'a>(&'a self, region: &'a RegionInfo) -> Asked<'a, Vec<(RegionInfo, ServerName)>> {
        Box::pin(async move {
            let all = self.0.replicas(&region.table).await?;
            Ok(all.into_iter().filter(|(info, _)| info.replica(0) == *region).collect())
        })
    }

    fn replay<'a>(
        &'a self,
        (region, server): &'a (RegionInfo, ServerName),
        entries: &'a [pb::WalEntry],
        cells: &'a Bytes,
    ) -> Asked<'a, ()> {
        Box::pin(async move {
            let name = Bytes::copy_from_slice(region.encoded_name().as_bytes());
            let mut entry = entries.to_vec();
            entry.iter_mut().for_each(|entry| entry.key.encoded_region_name = name.clone());
            let message = pb::ReplicateWalEntryRequest { entry, ..Default::default() };
            let cells = CellBlock::parse(cells.clone()).map_err(|error| error.to_string())?;
            self.0
                .ask_server_with(server, Method::AdminReplay, &message, Some(&cells))
                .await
                .map(|_: pb::ReplicateWalEntryResponse| ())
        })
    }

    fn flush<'a>(&'a self, primary: &'a RegionInfo) -> Asked<'a, Option<bool>> {
        Box::pin(async move {
            let all = self.0.regions(&primary.table).await?;
            let found = all.into_iter().find(|(info, _)| info == primary);
            let (_, server) = found.ok_or("the primary is open nowhere")?;
            let request = pb::FlushRegionRequest {
                region: to_proto::region_specifier(primary),
                write_flush_wal_marker: Some(true),
                ..Default::default()
            };
            let answer: pb::FlushRegionResponse =
                self.0.ask_server_with(&server, Method::AdminFlushRegion, &request, None).await?;
            Ok(Some(answer.flushed() || answer.wrote_flush_wal_marker.unwrap_or(true)))
        })
    }

    fn run(&self, work: Box<dyn FnOnce() + Send>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { work() })
    }
}

/// The highest number that a family of a row shows.
fn highest(cells: &RowCells, column: &str) -> i64 {
    cells.iter().filter(|(name, ..)| name == column).map(|(_, number, _)| *number).max().unwrap_or_default()
}

/// What a replica had shown of a row when it was asked.
pub fn shown_before(memory: &Memory, replica: &RegionInfo, row: &str) -> [i64; 2] {
    memory.on_replicas.get(&(replica.encoded_name().clone(), row.to_owned())).copied().unwrap_or_default()
}

/// A journal row as a replica shows it. Its families are flushed one by one: one may be ahead of the other.
///
/// # Errors
/// What nobody wrote, or less than before.
pub fn see(
    memory: &mut Memory,
    replica: &RegionInfo,
    row: &str,
    before: [i64; 2],
    cells: &RowCells,
) -> Result<(), Violation> {
    let name = replica.name_string();
    let writes = memory.promises.journal.get(row).map(Vec::as_slice).unwrap_or_default();
    for (column, number, value) in cells {
        ensure(*value == value_of(row, *number), || format!("{row} on {name}: {column} has a foreign value"))?;
        let known = writes.iter().any(|write| write.number == *number && write.outcome != Outcome::Gone);
        ensure(known, || format!("{row} on {name}: {column} at {number} was never written, or refused: {writes:?}"))?;
    }
    let shown = ["f:v", "g:v"].map(|column| highest(cells, column));
    let is_older = (0..2).any(|at| shown[at] < before[at]);
    ensure(!is_older, || format!("{row} on {name} went back in time: {before:?} was shown, and then {shown:?}"))?;
    let floor = memory.on_replicas.entry((replica.encoded_name().clone(), row.to_owned())).or_default();
    (0..2).for_each(|at| floor[at] = floor[at].max(shown[at]));
    memory.replica_reads += 1;
    Ok(())
}
