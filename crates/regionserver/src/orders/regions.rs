//! Opening and closing regions as ordered.

use super::moving::{Direction, Move};
use super::{Ordered, Orders, URGENT_PRIORITY, refusal};
use crate::blocking::off_worker;
use crate::lifecycle::OpenedRegion;
use model::RegionInfo;
use proto::pb::region_state_transition::TransitionCode;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at a region that another order has in hand. Follows: `HandlerUtil#getRetryCounter`.
const PAUSE: Duration = Duration::from_millis(100);

impl Orders {
    /// Opens a region, tells the master, and puts it online.
    pub(super) async fn open(self: Arc<Self>, info: RegionInfo, ordered: Ordered) {
        let name = info.name_string();
        if self.server.region(info.encoded_name()).is_some() {
            tracing::info!("{name} is to be opened, and is online already");
            return self.submitted.finish(ordered.procedure);
        }
        let Some(moved) = self.turn_of(info.encoded_name(), Direction::Opening).await else {
            tracing::info!("{name} is being opened already");
            return self.submitted.finish(ordered.procedure);
        };
        match self.open_offline(&info).await {
            Ok(opened) => {
                self.serve(&info, opened, ordered).await;
                drop(moved);
            }
            Err(why) => {
                // The report may be told more than once: a master that has heard it may order the next try while this one still waits for an answer.
                drop(moved);
                self.report_failed_open(&info, &why, ordered).await;
            }
        }
    }

    async fn open_offline(&self, info: &RegionInfo) -> Result<OpenedRegion, String> {
        let inside = |error| format!("the opening failed inside: {error}");
        let is_system = info.table.is_system();
        let table = {
            // hbase:meta and its like must not wait behind what needs them.
            let _permit = if is_system { None } else { Some(self.readers.acquire().await) };
            let (server, of) = (self.server.clone(), info.clone());
            let read = move || refusal::servable_table(&*server.env.volume, &of);
            off_worker(read).await.map_err(inside)??
        };
        let waits = !is_system && table.priority() < URGENT_PRIORITY;
        let _permit = if waits { Some(self.openers.acquire().await) } else { None };
        let (server, of) = (self.server.clone(), info.clone());
        let open = move || server.open_offline(&of, Arc::new(table)).map_err(|error| error.to_string());
        off_worker(open).await.unwrap_or_else(|error| Err(inside(error)))
    }

    async fn serve(&self, info: &RegionInfo, opened: OpenedRegion, ordered: Ordered) {
        let name = info.name_string();
        let open_seq_id = opened.open_seq_id();
        match self.report(TransitionCode::Opened, info, Some(open_seq_id), ordered).await {
            Ok(()) => {
                self.server.put_online(opened);
                self.submitted.finish(ordered.procedure);
                tracing::info!("opened {name} at {open_seq_id}");
            }
            // Its marker is in the log: there is no way back.
            Err(why) => self.server.fail(format!("the master does not take it that {name} is open here ({why})")),
        }
    }

    async fn report_failed_open(&self, info: &RegionInfo, why: &str, ordered: Ordered) {
        let name = info.name_string();
        if self.server.has_failed() {
            return;
        }
        tracing::error!("{name} is not opened here; the master will place it elsewhere: {why}");
        match self.report(TransitionCode::FailedOpen, info, None, ordered).await {
            Ok(()) => self.submitted.finish(ordered.procedure),
            Err(why) => self.server.fail(format!("the master does not take it that {name} was not opened ({why})")),
        }
    }

    /// Flushes and closes a region, and tells the master.
    pub(super) async fn close(self: Arc<Self>, encoded_name: Arc<str>, ordered: Ordered) {
        let Some(moved) = self.turn_of(&encoded_name, Direction::Closing).await else {
            tracing::info!("{encoded_name} is being closed already");
            return self.submitted.finish(ordered.procedure);
        };
        // Closed until its volume is back is closed for good from now on.
        let online = self.server.region(&encoded_name).map(|region| region.info().clone());
        let Some(info) = online.or_else(|| self.server.waiting_region(&encoded_name)) else {
            tracing::info!("{encoded_name} is to be closed, and is not online");
            return self.submitted.finish(ordered.procedure);
        };
        let (server, name) = (self.server.clone(), encoded_name.clone());
        let closed = off_worker(move || server.close_region(&name).map_err(|error| error.to_string())).await;
        let closed = closed.unwrap_or_else(|error| Err(format!("the closing failed inside: {error}")));
        if let Err(why) = closed {
            // There is no such outcome as "not closed": the log is split, and others open the region.
            return self.server.fail(format!("{} cannot be closed ({why})", info.name_string()));
        }
        let name = info.name_string();
        match self.report(TransitionCode::Closed, &info, None, ordered).await {
            Ok(()) => tracing::info!("closed {name}"),
            // All that it had is in its files, and nobody reads it here: whatever the master takes it for, there is nothing to recover. A region server of
            // HBase's aborts. Seen where a master was killed before it had answered, and the next one has deleted the table since.
            Err(why) => {
                tracing::error!("closed {name}, and the master refused the report; the region server goes on: {why}")
            }
        }
        self.submitted.finish(ordered.procedure);
        drop(moved);
    }

    /// Waits until no order moves the region the other way; `None` where one moves it this way already.
    async fn turn_of(&self, name: &Arc<str>, direction: Direction) -> Option<Move> {
        loop {
            match self.server.moving.begin(name, direction) {
                Ok(begun) => return Some(begun),
                Err(other) if other == direction => return None,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
