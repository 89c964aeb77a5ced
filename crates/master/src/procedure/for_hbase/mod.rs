//! What is under way as HBase's master is to find it if it leads next, and this one had no time to end: in family `proc` of `master:store`, in
//! HBase's own form. Ours reads its own records ([`super::engine::store`]), and of these rows only those of regions.
//!
//! Always true, where region servers are other processes:
//!  1. Before a region is written to hbase:meta as OPENING or CLOSING, a TransitRegionStateProcedure of it is in the log; before a server is ordered to
//!     open or close it, the OpenRegionProcedure or CloseRegionProcedure with the order's id; before a server's report is answered, the report.
//!     An order that HBase's master repeats has the id that the server knows, and a report that it hears is of an order that it knows.
//!  2. The row of a change says a step of HBase's that may be done again whatever this master has done of it by then. Regions that are to be
//!     opened for it are its children, all of them before the first is opened: HBase's step that opens them would open those again that are open.
//!  3. A row never goes back to an earlier step, but that of a snapshot that HBase's master had begun and this one begins anew.
//!  4. What this master answers for what HBase's had left is in the log before it does: HBase's next does not go on with it.
//!
//! Not here: servers that crashed. HBase's master finds those by their logs, and by the regions that hbase:meta shows on them. Changes without a
//! step of HBase's that may be done again are found as failed: who asked for them asks again. Follows: `ProcedureExecutor#load`,
//! `RegionRemoteProcedureBase`, `TransitRegionStateProcedure`.

mod found;
mod rows;
#[cfg(test)]
mod tests;

use super::Record;
use super::engine::Step;
use crate::files::Files;
use crate::lifetime::Lifetime;
use crate::master_store::log::{MetaAt, StoreLog};
use crate::{ErrorKind, MasterError, Result};
use found::Found;
use model::{RegionInfo, ServerName};
use parking_lot::Mutex;
use proto::Any;
use proto::pb::{self, ProcedureState, RegionTransitionType as Transition, region_state_transition::TransitionCode};
use rows::{Row, bytes_of, ended};
use std::sync::Arc;
use std::time::Duration;

/// Whose a procedure is that no client has asked for.
const OWNER: &str = "hbase";
/// Between two tries to write.
const PAUSE: Duration = Duration::from_millis(200);

/// How HBase's master is to find a change that has just begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// With these steps of HBase's, the last of them to be done.
    Steps(Vec<Step>),
    /// The same, with this data instead of the record's.
    With(Vec<Step>, Vec<Any>),
    /// As one that has failed.
    Failed,
    /// Not at all.
    None,
}

/// What a server is to do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Open it.
    Open,
    /// Close it.
    Close,
}

struct Inner {
    log: StoreLog,
    found: Mutex<Found>,
}

/// Nodes of ZooKeeper alone say where those are.
fn is_replica_of_meta(info: &RegionInfo) -> bool {
    info.table.is_meta() && info.is_replica()
}

/// What HBase's master is to find. Where this process is the only region server there is nothing to find: what is under way ends with it.
pub struct ForHBase {
    inner: Option<Arc<Inner>>,
    files: Files,
    lifetime: Arc<Lifetime>,
}

impl std::fmt::Debug for ForHBase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForHBase").finish_non_exhaustive()
    }
}

impl ForHBase {
    /// `log` is none where region servers do not outlive this process. `active_ms` is when this master became active.
    pub(crate) fn new(log: Option<StoreLog>, active_ms: u64, files: Files, lifetime: Arc<Lifetime>) -> ForHBase {
        let inner = log.map(|log| {
            // Above those of every master before, and not those of orders, which are numbered from the first on, a million for each millisecond.
            let (found, gone) = Found::of(&log.rows(), (active_ms << 20) + (1 << 19));
            log.amend(&gone);
            Arc::new(Inner { log, found: Mutex::new(found) })
        });
        ForHBase { inner, files, lifetime }
    }

    /// How these end is decided, as of some that HBase's master left: its next is not to go on with what it had. To be said before the log begins.
    pub(crate) fn are_decided(&self, records: &[Record]) {
        let Some(inner) = &self.inner else { return };
        let mut found = inner.found.lock();
        for record in records.iter().filter(|record| record.parent.is_none()) {
            let Some(outcome) = record.outcome() else { continue };
            inner.log.amend(&found.end_change(&record.to_message(), outcome.as_ref().err()));
        }
    }

    /// Where the log is.
    pub(crate) fn log_dir(&self) -> Option<fs::FilePath> {
        self.inner.as_ref().map(|inner| inner.log.dir())
    }

    /// Begins the log, with what masters before have left in theirs.
    ///
    /// # Errors
    /// The volume's.
    pub(crate) async fn begin_log(&self) -> Result<()> {
        let Some(inner) = self.inner.clone() else { return Ok(()) };
        self.files.run(move |_| inner.log.begin().map_err(|error| MasterError::new(ErrorKind::Io, error))).await
    }

    /// Changes what is found; it is in the log when this returns.
    ///
    /// # Errors
    /// The master stops.
    async fn change(&self, work: impl FnOnce(&mut Found) -> Vec<Row> + Send + 'static) -> Result<()> {
        self.write(None, work).await
    }

    async fn write(
        &self,
        meta: Option<MetaAt>,
        work: impl FnOnce(&mut Found) -> Vec<Row> + Send + 'static,
    ) -> Result<()> {
        let Some(inner) = self.inner.clone() else { return Ok(()) };
        let write = {
            let inner = Arc::clone(&inner);
            move |_: &dyn fs::Volume| {
                let appended = {
                    let mut found = inner.found.lock();
                    let rows = work(&mut found);
                    if rows.is_empty() && meta.is_none() {
                        return Ok(());
                    }
                    inner.log.append(&rows, meta)
                };
                let settled = appended.and_then(|appended| inner.log.settle(appended));
                settled.map_err(|error| MasterError::new(ErrorKind::Io, error))
            }
        };
        let mut outcome = self.files.run(write).await;
        while let Err(error) = outcome {
            tracing::warn!(%error, "cannot write the WAL of master:store, will try again; changes of tables and regions wait until then: is HDFS writable?");
            self.lifetime.pause(PAUSE).await?;
            let inner = Arc::clone(&inner);
            outcome = self
                .files
                .run(move |_| inner.log.begin().map_err(|error| MasterError::new(ErrorKind::Io, error)))
                .await;
        }
        Ok(())
    }

    /// A procedure has begun.
    ///
    /// # Errors
    /// As all of these: the master stops.
    pub(crate) async fn begun(&self, record: Arc<pb::Procedure>, form: Form) -> Result<()> {
        match form {
            Form::None => Ok(()),
            // No row is a child of one that is not found.
            Form::Failed if record.parent_id.is_some() => Ok(()),
            Form::Failed => {
                let why = MasterError::new(
                    ErrorKind::ProcedureAborted,
                    "the master, which was asked for it, ended in the middle of it. See what is done, and ask again",
                );
                self.change(move |_| vec![bytes_of(&ended(&record, ProcedureState::Rolledback, Some(&why)))]).await
            }
            Form::Steps(states) => self.change(move |found| found.change(&record, &states, None, false)).await,
            Form::With(states, data) => {
                self.change(move |found| found.change(&record, &states, Some(data), false)).await
            }
        }
    }

    /// A procedure is begun anew with the last of these steps, however far HBase's master was with it.
    pub(crate) async fn anew(&self, record: Option<Arc<pb::Procedure>>, states: Vec<Step>) -> Result<()> {
        let Some(record) = record else { return Ok(()) };
        self.change(move |found| found.begin_anew(&record, &states)).await
    }

    /// A procedure goes on with the last of these steps.
    pub(crate) async fn at(
        &self,
        record: Option<Arc<pb::Procedure>>,
        states: Vec<Step>,
        data: Option<Vec<Any>>,
    ) -> Result<()> {
        let Some(record) = record else { return Ok(()) };
        self.change(move |found| found.change(&record, &states, data, false)).await
    }

    /// A procedure goes on with the last of these steps when these regions are opened, closed or reopened.
    pub(crate) async fn with_regions(
        &self,
        record: Option<Arc<pb::Procedure>>,
        states: Vec<Step>,
        data: Option<Vec<Any>>,
        regions: Vec<RegionInfo>,
        transition: Transition,
    ) -> Result<()> {
        let Some(record) = record else { return Ok(()) };
        self.change(move |found| {
            let mut rows = found.change(&record, &states, data, !regions.is_empty());
            rows.extend(found.add_regions(record.proc_id, &regions, transition));
            rows
        })
        .await
    }

    /// A procedure has failed, and these regions are opened again.
    pub(crate) async fn rolled_back(&self, record: Option<Arc<pb::Procedure>>, regions: Vec<RegionInfo>) -> Result<()> {
        let Some(record) = record else { return Ok(()) };
        self.change(move |found| found.roll_back(&record, &regions)).await
    }

    /// A procedure has ended.
    pub(crate) async fn ended(&self, record: Arc<pb::Procedure>, error: Option<MasterError>) -> Result<()> {
        self.change(move |found| found.end_change(&record, error.as_ref())).await
    }

    /// Procedures that ended are forgotten.
    pub(crate) async fn forgotten(&self, ids: Vec<u64>) -> Result<()> {
        self.change(move |found| found.forget(&ids)).await
    }

    /// A procedure of a region's own has begun, or goes on after a restart.
    pub(crate) async fn own(
        &self,
        record: Option<Arc<pb::Procedure>>,
        info: &RegionInfo,
        transition: Transition,
        candidate: Option<ServerName>,
    ) -> Result<()> {
        let Some(record) = record.filter(|_| !is_replica_of_meta(info)) else { return Ok(()) };
        let info = info.clone();
        self.change(move |found| found.own(record, &info, transition, candidate)).await
    }

    /// A region is to be written to hbase:meta as on its way.
    pub(crate) async fn on_its_way(&self, info: &RegionInfo, order: Order) -> Result<()> {
        if is_replica_of_meta(info) {
            return Ok(());
        }
        let info = info.clone();
        self.change(move |found| found.set_out(&info, order)).await
    }

    /// Where hbase:meta is, which has no row of itself.
    pub(crate) async fn meta_at(&self, server: &ServerName, state: &'static str) -> Result<()> {
        self.write(Some((server.clone(), state)), |_| Vec::new()).await
    }

    /// A server is to be ordered, under this number, to open or close a region.
    ///
    /// # Errors
    /// The master stops.
    pub async fn ordered(&self, encoded_name: &str, id: u64, order: Order, server: &ServerName) -> Result<()> {
        let (name, server) = (encoded_name.to_owned(), server.clone());
        self.change(move |found| found.order(&name, id, order, server)).await
    }

    /// Whether a report is of an order that HBase's master would know, and is to be told before it is answered.
    pub fn is_of_order(&self, encoded_name: &str, id: u64) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.found.lock().is_of_order(encoded_name, id))
    }

    /// A server has reported what became of an order.
    ///
    /// # Errors
    /// The master stops.
    pub async fn reported(&self, encoded_name: &str, id: u64, code: TransitionCode, seq_id: i64) -> Result<()> {
        let name = encoded_name.to_owned();
        self.change(move |found| found.report(&name, id, code, seq_id)).await
    }

    /// hbase:meta says that a region is where it is to be.
    pub(crate) async fn arrived(&self, info: &RegionInfo) -> Result<()> {
        let name = Arc::clone(info.encoded_name());
        self.change(move |found| found.arrive(&name)).await
    }

    /// hbase:meta says that a region is closed: it has arrived, unless it is to be opened again.
    pub(crate) async fn closed(&self, info: &RegionInfo) -> Result<()> {
        let name = Arc::clone(info.encoded_name());
        self.change(move |found| found.close(&name)).await
    }

    /// All that masters before left of regions is done by now.
    pub(crate) async fn all_arrived(&self) -> Result<()> {
        self.change(Found::all_arrive).await
    }
}
