//! What a master in another process orders: to open and close regions, and to take part in its procedures. An order is answered when it was
//! taken; what became of it is reported. Follows: `RSRpcServices#executeProcedures`, `AssignRegionHandler`, `UnassignRegionHandler`,
//! `RSProcedureHandler`.
//!
//! Always true:
//!  1. An order that comes twice is carried out once.
//!  2. A region that opened is online only when the master knows that it is; one that closed stays under way until the master knows.
//!  3. What is refused is reported as refused, with a sentence; nothing is passed over in silence.

pub(crate) mod moving;
mod procedures;
mod refusal;
mod regions;
mod reports;
mod splitting;
mod submitted;

pub use reports::{MasterReports, QuotaSource, Report};

use crate::server::RegionServer;
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::RegionInfo;
use proto::pb;
use proto::pb::region_state_transition::TransitionCode;
use rpc::exception::Exception;
use splitting::Splitting;
use std::sync::{Arc, OnceLock};
use submitted::{NO_PROCEDURE, Submitted};
use tokio::sync::Semaphore;

/// Regions of users that are opened at the same time. Those of the system, and of tables with a high PRIORITY, wait for nobody.
const OPENERS: usize = 8;
/// From this PRIORITY on a table's regions are opened beside the others. Follows: `HConstants.ADMIN_QOS`.
const URGENT_PRIORITY: i32 = 100;

/// The orders of one server.
pub struct Orders {
    server: Arc<RegionServer>,
    reports: Arc<dyn MasterReports>,
    submitted: Submitted,
    openers: Semaphore,
    /// Descriptors that are read at the same time, to see how urgent a region is.
    readers: Semaphore,
    splitting: Splitting,
    quotas: OnceLock<Arc<dyn QuotaSource>>,
}

/// Which procedure of which life of the master's an order is part of.
#[derive(Clone, Copy, Debug)]
struct Ordered {
    procedure: i64,
    /// When the master that ordered it became active: it is told so again, that one which took over since may know.
    master_active_ms: Option<i64>,
}

impl Orders {
    /// Orders are carried out by `server`; what becomes of them goes to `reports`.
    pub fn new(server: Arc<RegionServer>, reports: Arc<dyn MasterReports>) -> Arc<Orders> {
        Arc::new(Orders {
            submitted: Submitted::new(server.env().clock.clone()),
            server,
            reports,
            openers: Semaphore::new(OPENERS),
            readers: Semaphore::new(OPENERS),
            splitting: Splitting::default(),
            quotas: OnceLock::new(),
        })
    }

    /// Has hbase:quota read anew where somebody reads it. As in HBase, an error is told of here alone: a master would ask for ever.
    pub(crate) async fn reload_quotas(&self) {
        if let Some(source) = self.quotas.get()
            && let Err(why) = source.reload().await
        {
            tracing::warn!("quotas were not reloaded from hbase:quota, those that were read last hold: {why}");
        }
    }

    /// From now on the master may have hbase:quota read, by `source`. The first one stays.
    pub fn set_quota_source(&self, source: Arc<dyn QuotaSource>) {
        let _the_first_stays = self.quotas.set(source);
    }

    /// Takes all of them; they are carried out from now on.
    ///
    /// # Errors
    /// None was taken: the server stops, is not the one that is meant, or the message cannot be read.
    pub fn execute(self: &Arc<Self>, request: pb::ExecuteProceduresRequest) -> Result<(), Exception> {
        self.check_addressee(&request)?;
        let mut opens = Vec::new();
        for open in &request.open_region {
            for region in &open.open_info {
                let info = from_proto::region_info(&region.region)?;
                let (procedure, master_active_ms) = (region.open_proc_id(), open.initiating_master_active_time);
                opens.push((info, Ordered { procedure, master_active_ms }));
            }
        }
        let mut closes = Vec::new();
        for close in &request.close_region {
            let name: Arc<str> = Arc::from(from_proto::region_encoded_name(&close.region)?.as_ref());
            let (procedure, master_active_ms) = (close.close_proc_id(), close.initiating_master_active_time);
            closes.push((name, Ordered { procedure, master_active_ms }));
        }
        let is_new = |ordered: &Ordered| {
            let is_new = self.submitted.begin(ordered.procedure);
            if !is_new {
                tracing::info!("the order of procedure {} came again", ordered.procedure);
            }
            is_new
        };
        for (info, ordered) in opens.into_iter().filter(|(_, ordered)| is_new(ordered)) {
            tokio::spawn(trace::within(trace::current(), self.clone().open(info, ordered)));
        }
        for (name, ordered) in closes.into_iter().filter(|(_, ordered)| is_new(ordered)) {
            tokio::spawn(trace::within(trace::current(), self.clone().close(name, ordered)));
        }
        for procedure in request.proc {
            tokio::spawn(trace::within(trace::current(), self.clone().run_procedure(procedure)));
        }
        Ok(())
    }

    fn check_addressee(&self, request: &pb::ExecuteProceduresRequest) -> Result<(), Exception> {
        let name = &self.server.name;
        if self.server.stop.is_set() {
            return Err(Exception::server_stopped(&name.to_string()));
        }
        let of_opens = request.open_region.iter().map(|open| open.server_start_code);
        let of_closes = request.close_region.iter().map(|close| close.server_start_code);
        match of_opens.chain(of_closes).flatten().find(|start_code| *start_code != name.start_code) {
            Some(start_code) => Err(Exception::do_not_retry(format!(
                "This RPC was intended for a different server with startcode {start_code}, this server is: {name}"
            ))),
            None => Ok(()),
        }
    }

    /// Tells the master what became of a region.
    async fn report(
        &self,
        code: TransitionCode,
        info: &RegionInfo,
        open_seq_id: Option<u64>,
        ordered: Ordered,
    ) -> Result<(), String> {
        let transition = pb::RegionStateTransition {
            transition_code: code as i32,
            region_info: vec![to_proto::region_info(info)],
            open_seq_num: open_seq_id,
            proc_id: vec![ordered.procedure],
            initiating_master_active_time: ordered.master_active_ms,
        };
        self.reports.region_transition(transition).await
    }

    /// Asks the master to split a region at `split_row`, or where it is best split: nothing is asked where there is no such row.
    ///
    /// # Errors
    /// The master's refusal.
    pub async fn request_split(&self, parent: &RegionInfo, split_row: Option<Bytes>) -> Result<(), String> {
        let split_row = match split_row {
            Some(row) => row,
            None => match self.best_split_row(parent).await? {
                Some(row) => row,
                None => return Ok(()),
            },
        };
        // The master makes daughters of its own; these tell it where.
        let id = u64::try_from(self.server.env.clock.now_ms().0).unwrap_or_default().max(parent.region_id + 1);
        let table = &parent.table;
        let first = RegionInfo::new(table.clone(), parent.start_key.clone(), split_row.clone(), id);
        let second = RegionInfo::new(table.clone(), split_row, parent.end_key.clone(), id);
        let transition = pb::RegionStateTransition {
            transition_code: TransitionCode::ReadyToSplit as i32,
            region_info: [parent, &first, &second].map(to_proto::region_info).to_vec(),
            open_seq_num: None,
            proc_id: vec![NO_PROCEDURE],
            initiating_master_active_time: None,
        };
        self.reports.region_transition(transition).await
    }

    async fn best_split_row(&self, region: &RegionInfo) -> Result<Option<Bytes>, String> {
        let (server, name) = (self.server.clone(), region.encoded_name().clone());
        let found = crate::blocking::off_worker(move || server.split_point(&name)).await;
        found.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}
