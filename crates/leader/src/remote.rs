//! A region server of another process as the master sees it. Follows: `RSProcedureDispatcher`.

use crate::files::RegionFiles;
use crate::lease::Lease;
use crate::link::{CallError, ServerLink};
use crate::orders::{OrderIds, Orders, Reported, Wanted};
use crate::roll::Roll;
use crate::rows;
use bytes::Bytes;
use cell::CellBuffer;
use convert::{from_proto, to_proto};
use master::{BoxFuture, ForHBase, HostError, Latch, Memory, Order, RegionHost};
use model::region_info::META_ENCODED_NAME;
use model::status::{Locality, RegionLoad};
use model::{Durability, Mutation, RegionInfo, Scan, ServerName, TableDescriptor};
use parking_lot::{Mutex, RwLock};
use proto::methods::Method;
use proto::pb::region_specifier::RegionSpecifierType;
use proto::{Message, pb};
use rpc::Dialer;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// After a server that is not ready. Follows: `RSProcedureDispatcher`, which waits as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The pause does not grow beyond it.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// After so long without a report the server is asked what it has: one that has nothing to do for an order says nothing.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A flush or a split point takes as long as the disk.
const LONG_CALL: Duration = Duration::from_secs(600);

/// What hosts share.
pub(crate) struct Means {
    pub ids: OrderIds,
    /// When this master became active, in milliseconds: servers say it again in their reports.
    pub active_ms: i64,
    pub lease: Arc<Lease>,
    pub files: RegionFiles,
    pub call_timeout: Duration,
    /// By which network servers are reached.
    pub dialer: Dialer,
    /// Told when another life of a server answers.
    pub roll: OnceLock<Weak<Roll>>,
    /// Keeps orders and reports for a master of HBase's that leads next.
    pub for_hbase: OnceLock<Arc<ForHBase>>,
}

/// A region server of another process.
pub(crate) struct RemoteHost {
    name: ServerName,
    means: Arc<Means>,
    link: ServerLink,
    orders: Orders,
    is_dead: Latch,
    load: RwLock<Option<Arc<pb::ServerLoad>>>,
    /// What it opened, and at which sequence id.
    opened: Mutex<HashMap<Arc<str>, (RegionInfo, u64)>>,
}

/// Forgets an order when nobody waits for it any more.
pub(crate) struct Waiting<'a> {
    host: &'a RemoteHost,
    region: Arc<str>,
    pub id: u64,
    reported: oneshot::Receiver<Reported>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.host.orders.forget(&self.region, self.id);
    }
}

fn failed(error: &CallError) -> HostError {
    match error {
        CallError::Refused { class, .. } if is_elsewhere(class) => HostError::Unreachable(error.to_string()),
        CallError::Refused { class, .. } if class.ends_with("DoNotRetryIOException") || is_refusal(class) => {
            HostError::Refused(error.to_string())
        }
        CallError::Refused { .. } => HostError::Failed(error.to_string()),
        CallError::NotSent(_) | CallError::Unanswered(_) => HostError::Unreachable(error.to_string()),
    }
}

/// The region is not there, or not yet, or the server goes down.
fn is_elsewhere(class: &str) -> bool {
    let names = [
        "NotServingRegionException",
        "RegionMovedException",
        "RegionOpeningException",
        "RegionServerStoppedException",
        "RegionServerAbortedException",
        "ServerNotRunningYetException",
        "RegionTooBusyException",
        "CallQueueTooBigException",
    ];
    class.rsplit('.').next().is_some_and(|name| names.contains(&name))
}

/// Whether another life of the server has answered: two never have one port, and an earlier one does not come after a later. Follows:
/// `RSRpcServices#executeOpenRegionProcedures`, whose words these are.
fn is_of_another_life(error: &CallError) -> bool {
    matches!(error, CallError::Refused { class, message }
        if class.ends_with("DoNotRetryIOException") && message.contains("intended for a different server with startcode"))
}

fn is_refusal(class: &str) -> bool {
    let names = ["NoSuchColumnFamilyException", "WrongRegionException", "FailedSanityCheckException"];
    class.rsplit('.').next().is_some_and(|name| names.contains(&name))
}

impl RemoteHost {
    pub fn new(name: ServerName, means: Arc<Means>) -> RemoteHost {
        RemoteHost {
            link: ServerLink::new(name.clone(), means.call_timeout, means.dialer.clone()),
            name,
            means,
            orders: Orders::default(),
            is_dead: Latch::default(),
            load: RwLock::default(),
            opened: Mutex::default(),
        }
    }

    /// It reports.
    pub fn set_load(&self, load: pb::ServerLoad) {
        *self.load.write() = Some(Arc::new(load));
    }

    /// Whether it has reported to this master.
    pub fn has_reported(&self) -> bool {
        self.load.read().is_some()
    }

    /// It reports the outcome of an order for a region; whether somebody waited for it.
    pub fn reported(&self, info: &RegionInfo, id: Option<u64>, reported: Reported) -> bool {
        let is_waited_for = self.orders.reported(info.encoded_name(), id, &self.means.ids, reported.clone());
        match reported {
            Reported::Opened { open_seq_id } if is_waited_for => self.has_open(info, open_seq_id),
            Reported::Opened { .. } => {}
            Reported::FailedOpen | Reported::Closed => drop(self.opened.lock().remove(info.encoded_name())),
        }
        is_waited_for
    }

    /// Its report that it has opened a region is taken.
    pub fn has_open(&self, info: &RegionInfo, open_seq_id: u64) {
        self.opened.lock().insert(info.encoded_name().clone(), (info.clone(), open_seq_id));
    }

    /// Whether it says once more, for it did not hear that its report was taken, that it has opened a region, which it was not ordered to close
    /// since.
    pub fn opens_again(&self, info: &RegionInfo, id: Option<u64>, open_seq_id: u64) -> bool {
        let said = self.opened.lock().get(info.encoded_name()).map(|(_, open_seq_id)| *open_seq_id);
        said == Some(open_seq_id) && self.has_answered(info.encoded_name(), id)
    }

    /// Whether it has reported what became of that order before.
    pub fn has_answered(&self, region: &str, id: Option<u64>) -> bool {
        id.is_some_and(|id| self.orders.is_over(region, id, &self.means.ids))
    }

    /// Its report of an order's outcome is taken, though nobody waits for it.
    pub fn settled(&self, region: &str, id: Option<u64>) {
        if let Some(id) = id {
            self.orders.settled(region, id);
        }
    }

    /// It reports the end of a procedure; whether somebody waited for it.
    pub fn procedure_ended(&self, id: u64, result: Result<(), String>) -> bool {
        self.orders.procedure_ended(id, result)
    }

    fn dead(&self) -> HostError {
        HostError::Unreachable(format!("region server {} is dead", self.name))
    }

    /// Another life of the server has answered, so this one is over, whatever its node says. Ends when the master knows that its logs are to be
    /// split first: nothing that it had is given to another before.
    async fn over(&self, how_known: &str) -> HostError {
        tracing::warn!(server = %self.name, "the region server is dead, for another process answers at its address ({how_known}); its logs are split before its regions are opened elsewhere");
        if let Some(roll) = self.means.roll.get().and_then(Weak::upgrade) {
            roll.expire(&self.name);
        }
        self.is_dead.wait().await;
        self.dead()
    }

    /// Does `work` unless the server dies meanwhile, or this master is one no more.
    async fn unless_dead<T>(&self, work: impl Future<Output = T>) -> Result<T, HostError> {
        self.means.lease.check().map_err(HostError::Unreachable)?;
        tokio::select! {
            biased;
            () = self.is_dead.wait() => Err(self.dead()),
            done = work => Ok(done),
        }
    }

    async fn ask<M: Message + Default>(&self, method: Method, request: &impl Message) -> Result<M, HostError> {
        let answer = self.unless_dead(self.link.call_within(method, request, LONG_CALL)).await?;
        answer.map(|(message, _)| message).map_err(|error| failed(&error))
    }

    /// Sends an order until the server has taken it.
    ///
    /// # Errors
    /// The server is dead; or there never was a connection, so that it cannot have it.
    async fn order(&self, request: &pb::ExecuteProceduresRequest) -> Result<(), HostError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 0_u32.. {
            self.means.lease.check().map_err(HostError::Unreachable)?;
            let sent = self.link.call::<pb::ExecuteProceduresResponse>(Method::AdminExecuteProcedures, request).await;
            match sent {
                Ok(_) => return Ok(()),
                Err(error @ CallError::NotSent(_)) if attempt == 0 => {
                    return Err(HostError::NotTaken(format!("region server {} takes no orders: {error}", self.name)));
                }
                Err(error) if is_of_another_life(&error) => return Err(self.over(&error.to_string()).await),
                // Whether it has the order is not known: until it is dead, nobody else gets it.
                Err(error) => {
                    tracing::info!(server = %self.name, %error, attempt, "an order is sent again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(self.dead())
    }

    /// An order for a region is given: its report is waited for.
    pub fn expect(&self, region: &Arc<str>, wanted: Wanted) -> Waiting<'_> {
        let (id, reported) = self.orders.expect(region, &self.means.ids, wanted);
        Waiting { host: self, region: region.clone(), id, reported }
    }

    /// An order is in the log for the next master before it is given.
    async fn keep_order(&self, waiting: &Waiting<'_>, order: Order) -> Result<(), HostError> {
        let Some(for_hbase) = self.means.for_hbase.get() else { return Ok(()) };
        let kept = for_hbase.ordered(&waiting.region, waiting.id, order, &self.name).await;
        kept.map_err(|_| HostError::Stopping)
    }

    async fn open(&self, info: &RegionInfo) -> Result<u64, HostError> {
        let mut waiting = self.expect(info.encoded_name(), Wanted::Open);
        self.keep_order(&waiting, Order::Open).await?;
        let open_info = pb::open_region_request::RegionOpenInfo {
            region: to_proto::region_info(info),
            open_proc_id: i64::try_from(waiting.id).ok(),
            ..Default::default()
        };
        let request = pb::OpenRegionRequest {
            open_info: vec![open_info],
            server_start_code: Some(self.name.start_code),
            initiating_master_active_time: Some(self.means.active_ms),
            ..Default::default()
        };
        self.order(&pb::ExecuteProceduresRequest { open_region: vec![request], ..Default::default() }).await?;
        loop {
            match tokio::time::timeout(LOOK_EVERY, &mut waiting.reported).await {
                Ok(Ok(Reported::Opened { open_seq_id })) => return Ok(open_seq_id),
                Ok(Ok(Reported::FailedOpen)) => {
                    return Err(HostError::Failed(format!("region server {} could not open it", self.name)));
                }
                Ok(Ok(Reported::Closed) | Err(_)) => {
                    return Err(HostError::Unreachable(format!("another order for it went to {}", self.name)));
                }
                Err(_) => {}
            }
            // One that is open there already is reported by nobody.
            if self.online().await?.contains(&**info.encoded_name()) {
                self.orders.settled(info.encoded_name(), waiting.id);
                let known = self.opened.lock().get(info.encoded_name()).map(|(_, open_seq_id)| *open_seq_id);
                return Ok(known.unwrap_or_default());
            }
        }
    }

    async fn close(&self, region: Arc<str>) -> Result<(), HostError> {
        let mut waiting = self.expect(&region, Wanted::Closed);
        self.keep_order(&waiting, Order::Close).await?;
        let request = pb::CloseRegionRequest {
            region: self.specifier(&region),
            server_start_code: Some(self.name.start_code),
            close_proc_id: i64::try_from(waiting.id).ok(),
            initiating_master_active_time: Some(self.means.active_ms),
            ..Default::default()
        };
        self.order_surely(&pb::ExecuteProceduresRequest { close_region: vec![request], ..Default::default() }).await?;
        loop {
            match tokio::time::timeout(LOOK_EVERY, &mut waiting.reported).await {
                Ok(Ok(Reported::Closed)) => break,
                Ok(_) => return Err(HostError::Unreachable(format!("another order for it went to {}", self.name))),
                Err(_) => {}
            }
            // One that is not open there is reported by nobody. One that is being opened is closed when that is done.
            if !self.online().await?.contains(&*region) && !self.may_open(&region).await {
                self.orders.settled(&region, waiting.id);
                break;
            }
        }
        self.opened.lock().remove(&region);
        Ok(())
    }

    /// As [`RemoteHost::order`]: what is open there can be closed nowhere else.
    async fn order_surely(&self, request: &pb::ExecuteProceduresRequest) -> Result<(), HostError> {
        loop {
            match self.order(request).await {
                Err(HostError::NotTaken(_)) => tokio::time::sleep(FIRST_PAUSE).await,
                outcome => return outcome,
            }
        }
    }

    /// Whether a region that was not open there is being opened, perhaps for an earlier master, or is open meanwhile: unless the server says that it
    /// does not have it. One that is too busy to say may have it.
    async fn may_open(&self, region: &str) -> bool {
        let request = pb::GetRegionInfoRequest { region: self.specifier(region), ..Default::default() };
        match self.link.call::<pb::GetRegionInfoResponse>(Method::AdminGetRegionInfo, &request).await {
            Err(CallError::Refused { class, .. }) => {
                !["NotServingRegionException", "RegionMovedException"].iter().any(|gone| class.ends_with(gone))
            }
            Ok(_) | Err(_) => true,
        }
    }

    /// Who has the server's address now.
    async fn who_answers(&self) -> Result<ServerName, CallError> {
        let request = pb::GetServerInfoRequest::default();
        let (answer, _) = self.link.call::<pb::GetServerInfoResponse>(Method::AdminGetServerInfo, &request).await?;
        from_proto::server_name(&answer.server_info.server_name)
            .map_err(|error| CallError::Unanswered(error.to_string()))
    }

    async fn online(&self) -> Result<BTreeSet<String>, HostError> {
        let request = pb::GetOnlineRegionRequest::default();
        let mut pause = FIRST_PAUSE;
        let answer = loop {
            let asked = self.link.call::<pb::GetOnlineRegionResponse>(Method::AdminGetOnlineRegion, &request).await;
            match asked {
                // A later life would answer for itself; this one cannot have gone before the first answer if it gave the second.
                Ok((answer, _)) => match self.who_answers().await {
                    Ok(name) if name == self.name => break answer,
                    Ok(name) => return Err(self.over(&format!("it is {name}")).await),
                    Err(error) => {
                        tracing::info!(server = %self.name, %error, "the region server did not answer GetServerInfo; it is asked again")
                    }
                },
                Err(error) => tracing::info!(server = %self.name, %error, "it does not say which regions it has"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        let mut names = BTreeSet::new();
        for region in &answer.region_info {
            let info = from_proto::region_info(region).map_err(|error| HostError::Failed(error.to_string()))?;
            names.insert(info.encoded_name().to_string());
            self.opened.lock().entry(info.encoded_name().clone()).or_insert((info, 0));
        }
        Ok(names)
    }

    /// Has the server carry out a procedure of HBase's, and waits for its end.
    ///
    /// # Errors
    /// The server's, or its death.
    pub async fn run_procedure(&self, class: &str, data: &impl Message) -> Result<(), HostError> {
        let id = self.means.ids.next();
        let ended = self.orders.expect_procedure(id);
        let procedure = pb::RemoteProcedureRequest {
            proc_id: id,
            proc_class: class.to_owned(),
            proc_data: Some(data.encode_to_vec().into()),
            initiating_master_active_time: Some(self.means.active_ms),
        };
        let request = pb::ExecuteProceduresRequest { proc: vec![procedure], ..Default::default() };
        let both = async {
            self.order(&request).await?;
            ended.await.unwrap_or_else(|_| Err("nobody waits for it".to_owned())).map_err(HostError::Failed)
        };
        let outcome = self.unless_dead(both).await;
        self.orders.forget_procedure(id);
        outcome?
    }

    /// A region by its whole name: servers of HBase's find none by another, whatever the specifier says that it is
    /// (`RSRpcServices#getRegion`). One that is not known to be open here goes by its encoded name, which they understand where it is closed.
    fn specifier(&self, encoded_name: &str) -> pb::RegionSpecifier {
        if encoded_name == META_ENCODED_NAME {
            return to_proto::region_specifier(&RegionInfo::meta());
        }
        let known = self.opened.lock().get(encoded_name).map(|(info, _)| to_proto::region_specifier(info));
        known.unwrap_or_else(|| pb::RegionSpecifier {
            r#type: RegionSpecifierType::EncodedRegionName as i32,
            value: Bytes::copy_from_slice(encoded_name.as_bytes()),
        })
    }

    fn info_of(&self, encoded_name: &str) -> Result<RegionInfo, HostError> {
        let known = self.opened.lock().get(encoded_name).map(|(info, _)| info.clone());
        known.ok_or_else(|| HostError::Failed(format!("region {encoded_name} is not open on {}", self.name)))
    }
}

impl RegionHost for RemoteHost {
    fn server_name(&self) -> ServerName {
        self.name.clone()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn died(&self) {
        self.is_dead.set();
    }

    fn online_regions(&self) -> BoxFuture<'_, Result<BTreeSet<String>, HostError>> {
        Box::pin(async move { self.unless_dead(self.online()).await? })
    }

    fn reported_load(&self) -> Option<pb::ServerLoad> {
        self.load.read().as_deref().cloned()
    }

    fn open_region(&self, info: RegionInfo, table: Arc<TableDescriptor>) -> BoxFuture<'_, Result<u64, HostError>> {
        Box::pin(async move {
            self.means.lease.check().map_err(HostError::Unreachable)?;
            // Region servers make none: one that was deleted meanwhile would come back.
            let made = self.means.files.make_region(&info, &table).await;
            // Nothing was ordered: the server may have it open all the same.
            made.map_err(|error| HostError::NotTaken(error.to_string()))?;
            self.unless_dead(self.open(&info)).await?
        })
    }

    fn close_region(&self, encoded_name: &str) -> BoxFuture<'_, Result<(), HostError>> {
        let name: Arc<str> = Arc::from(encoded_name);
        Box::pin(async move { self.unless_dead(self.close(name)).await? })
    }

    fn flush_region(&self, encoded_name: &str, families: Vec<Bytes>) -> BoxFuture<'_, Result<(), HostError>> {
        let region = self.specifier(encoded_name);
        Box::pin(async move {
            let families: Vec<Option<Bytes>> =
                if families.is_empty() { vec![None] } else { families.into_iter().map(Some).collect() };
            for family in families {
                let request = pb::FlushRegionRequest { region: region.clone(), family, ..Default::default() };
                self.ask::<pb::FlushRegionResponse>(Method::AdminFlushRegion, &request).await?;
            }
            Ok(())
        })
    }

    fn compact_region(
        &self,
        encoded_name: &str,
        family: Option<Bytes>,
        major: bool,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let request = pb::CompactRegionRequest { region: self.specifier(encoded_name), family, major: Some(major) };
        Box::pin(
            async move { self.ask::<pb::CompactRegionResponse>(Method::AdminCompactRegion, &request).await.map(drop) },
        )
    }

    fn split_point(&self, encoded_name: &str) -> BoxFuture<'_, Result<Option<Bytes>, HostError>> {
        let request = pb::GetRegionInfoRequest {
            region: self.specifier(encoded_name),
            best_split_row: Some(true),
            ..Default::default()
        };
        Box::pin(async move {
            let answer: pb::GetRegionInfoResponse = self.ask(Method::AdminGetRegionInfo, &request).await?;
            Ok(answer.best_split_row.filter(|row| !row.is_empty()))
        })
    }

    fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: Arc<TableDescriptor>,
        daughters: [RegionInfo; 2],
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let parent = parent.clone();
        Box::pin(async move { self.means.files.split_region(parent, table, daughters).await })
    }

    fn snapshot_region(&self, encoded_name: &str, snapshot: &str, flush: bool) -> BoxFuture<'_, Result<(), HostError>> {
        use pb::snapshot_description::Type;
        let (info, name) = (self.info_of(encoded_name), snapshot.to_owned());
        Box::pin(async move {
            let info = info?;
            let parameter = pb::SnapshotRegionParameter {
                region: to_proto::region_info(&info),
                snapshot: pb::SnapshotDescription {
                    name,
                    table: Some(info.table.to_string()),
                    r#type: Some(if flush { Type::Flush } else { Type::Skipflush } as i32),
                    // Without it HBase's server writes the first format, which is in no manifest.
                    version: Some(rootdir::snapshot::FORMAT_VERSION),
                    ..Default::default()
                },
            };
            self.run_procedure("org.apache.hadoop.hbase.regionserver.SnapshotRegionCallable", &parameter).await
        })
    }

    fn snapshot_closed_region(
        &self,
        info: RegionInfo,
        table: Arc<TableDescriptor>,
        snapshot: &str,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let snapshot = snapshot.to_owned();
        Box::pin(async move { self.means.files.snapshot_closed_region(info, table, snapshot).await })
    }

    fn mutate(&self, encoded_name: &str, mut mutations: Vec<Mutation>) -> BoxFuture<'_, Result<(), HostError>> {
        let region = self.specifier(encoded_name);
        mutations.iter_mut().for_each(|mutation| mutation.durability = Durability::FsyncWal);
        Box::pin(async move {
            let written = self.unless_dead(rows::mutate(&self.link, &region, &mutations)).await?;
            written.map_err(|error| failed(&error))
        })
    }

    fn slow_calls(&self, most: u32) -> BoxFuture<'_, Result<Vec<pb::SlowLogPayload>, HostError>> {
        use pb::slow_log_payload::Type;
        use pb::slow_log_response_request::LogType;
        Box::pin(async move {
            let request = |log: LogType| pb::SlowLogResponseRequest {
                limit: Some(most),
                log_type: Some(log as i32),
                ..Default::default()
            };
            let slow: pb::SlowLogResponses =
                self.ask(Method::AdminGetSlowLogResponses, &request(LogType::SlowLog)).await?;
            let large: pb::SlowLogResponses =
                self.ask(Method::AdminGetLargeLogResponses, &request(LogType::LargeLog)).await?;
            // Those that are both came with the first.
            let large = large.slow_log_payloads.into_iter().filter(|payload| payload.r#type() != Type::All);
            Ok(slow.slow_log_payloads.into_iter().chain(large).collect())
        })
    }

    fn scan(&self, encoded_name: &str, scan: Scan) -> BoxFuture<'_, Result<CellBuffer, HostError>> {
        let region = self.specifier(encoded_name);
        Box::pin(async move {
            let found = self.unless_dead(rows::scan(&self.link, &region, &scan)).await?;
            found.map_err(|error| failed(&error))
        })
    }

    fn order_quotas(&self) -> BoxFuture<'_, Result<(), HostError>> {
        Box::pin(self.run_procedure("org.apache.hadoop.hbase.regionserver.ReloadQuotasCallable", &()))
    }

    fn order_rpc_throttle(&self, on: bool) -> BoxFuture<'_, Result<(), HostError>> {
        Box::pin(async move {
            let class = "org.apache.hadoop.hbase.replication.regionserver.SwitchRpcThrottleRemoteCallable";
            let data = pb::SwitchRpcThrottleRemoteStateData {
                target_server: to_proto::server_name(&self.name),
                rpc_throttle_enabled: on,
                ..Default::default()
            };
            self.run_procedure(class, &data).await
        })
    }

    fn order_peer(&self, id: &str, change: pb::PeerModificationType) -> BoxFuture<'_, Result<(), HostError>> {
        let data = pb::RefreshPeerParameter {
            peer_id: id.to_owned(),
            r#type: change as i32,
            target_server: to_proto::server_name(&self.name),
        };
        Box::pin(async move {
            self.run_procedure("org.apache.hadoop.hbase.replication.regionserver.RefreshPeerCallable", &data).await
        })
    }

    fn memory(&self) -> Memory {
        let load = self.load.read();
        let bytes = |mib: Option<u32>| u64::from(mib.unwrap_or_default()) << 20;
        load.as_ref().map_or_else(Memory::default, |load| Memory {
            used_bytes: bytes(load.used_heap_mb),
            max_bytes: bytes(load.max_heap_mb),
        })
    }

    /// As it reported last; in whole mebibytes.
    fn region_loads(&self) -> Vec<RegionLoad> {
        let load = self.load.read();
        load.iter().flat_map(|load| &load.region_loads).map(region_load).collect()
    }
}

fn region_load(load: &pb::RegionLoad) -> RegionLoad {
    let name = load.region_specifier.value.clone();
    let bytes = |mib: Option<u32>| u64::from(mib.unwrap_or_default()) << 20;
    RegionLoad {
        encoded_name: Arc::from(&*RegionInfo::encoded_from_name(&name)),
        name,
        stores: load.stores.unwrap_or_default(),
        store_files: load.storefiles.unwrap_or_default(),
        store_file_size_bytes: bytes(load.storefile_size_mb),
        store_uncompressed_size_bytes: bytes(load.store_uncompressed_size_mb),
        own_file_size_bytes: bytes(load.region_size_mb),
        cached_bytes: (bytes(load.region_size_mb) as f64 * f64::from(load.current_region_cached_ratio())) as u64,
        memstore_size_bytes: bytes(load.mem_store_size_mb),
        read_requests: load.read_requests_count.unwrap_or_default(),
        write_requests: load.write_requests_count.unwrap_or_default(),
        last_major_compaction_ms: load.last_major_compaction_ts.unwrap_or_default(),
        locality: Locality {
            total_bytes: load.blocks_total_weight(),
            local_bytes: load.blocks_local_weight(),
            local_ssd_bytes: load.blocks_local_with_ssd_weight(),
        },
        ..RegionLoad::default()
    }
}
