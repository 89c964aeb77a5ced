//! Opening and closing regions, many at once, and what hbase:meta is told of it. Follows: `AssignmentManager`,
//! `TransitRegionStateProcedure`.

use crate::catalog::Catalog;
use crate::cluster::{Cluster, RegionNode, RegionState};
use crate::groups::RegionServerGroups;
use crate::host::{Observer, RegionHost};
use crate::lifetime::Lifetime;
use crate::locality::Localities;
use crate::procedure::for_hbase::{ForHBase, Order};
use crate::procedure::operations::{Operation, Operations};
use crate::servers::{Servers, Wish};
use crate::{ErrorKind, HostError, MasterError, Result, meta};
use balancer::placement;
use base::Clock;
use bytes::Bytes;
use model::region_info::META_ENCODED_NAME;
use model::{RegionInfo, ServerName, TableDescriptor, TableName};
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Tries before a region is left as FAILED_OPEN; it is tried again from time to time.
const OPEN_ATTEMPTS: u32 = 5;
/// Between two tries at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Whether a region is left as FAILED_OPEN after so many tries. hbase:meta never is: whoever would try it again may wait for what is to be
/// written there.
pub(crate) fn is_given_up(info: &RegionInfo, failed_attempts: u32) -> bool {
    failed_attempts >= OPEN_ATTEMPTS && !is_primary_of_meta(info)
}

/// The highest id of a read replica is 65535. Follows: `MutableRegionInfo`.
const MAX_REPLICATION: u32 = 0x1_0000;

/// The region in which everything else is written down.
fn is_primary_of_meta(info: &RegionInfo) -> bool {
    info.table.is_meta() && !info.is_replica()
}

/// Before a server is asked to open hbase:meta, which has no row of itself: whoever is the master next is to look for it there. A node that is to be
/// written is not enough: where the ensemble has lost its quorum, and this master ends before the quorum is back, the next one would open hbase:meta
/// elsewhere, beside the server that has it.
///
/// # Errors
/// It cannot be said, and this process is the master no more.
pub(crate) async fn keep_meta_location(observer: &dyn Observer, server: &ServerName) -> Result<()> {
    observer.meta_location(server, false);
    observer.meta_location_is_kept(server).await.map_err(|why| MasterError::new(ErrorKind::Io, why))
}

/// The servers that have the other replicas of a region, the region itself among them.
fn siblings(cluster: &Cluster, info: &RegionInfo) -> Vec<ServerName> {
    let primary = info.replica(0);
    let others = cluster.region(primary.encoded_name()).into_iter().chain(cluster.replicas_of(&primary));
    others
        .filter(|node| node.info.encoded_name() != info.encoded_name())
        .filter_map(|node| node.location.clone())
        .collect()
}

/// The server that is to open a region.
pub(crate) struct Place {
    pub host: Arc<dyn RegionHost>,
    /// It may have it already, or have been asked before: it is not to be opened elsewhere because the server is not reached now.
    pub may_have_it: bool,
}

/// Where regions are, and how they get there.
pub(crate) struct Assignment {
    pub cluster: Arc<RwLock<Cluster>>,
    pub servers: Arc<Servers>,
    pub catalog: Arc<Catalog>,
    pub lifetime: Arc<Lifetime>,
    pub clock: Arc<dyn Clock>,
    /// Regions that may be opened or closed at a time.
    pub slots: Semaphore,
    /// What was done so far.
    pub operations: Arc<Operations>,
    /// Told where hbase:meta goes.
    pub observer: Arc<dyn Observer>,
    pub groups: Arc<RegionServerGroups>,
    /// In which racks machines stand.
    pub localities: Arc<Localities>,
    pub for_hbase: Arc<ForHBase>,
}

impl Assignment {
    /// A region that the master knows, by its encoded name.
    ///
    /// # Errors
    /// It does not know it.
    pub fn known_region(&self, encoded_name: &str) -> Result<RegionInfo> {
        let info = self.cluster.read().region(encoded_name).map(|node| node.info.clone());
        info.ok_or_else(|| MasterError::new(ErrorKind::UnknownRegion, encoded_name))
    }

    /// The server that has the region, by the region's encoded name.
    ///
    /// # Errors
    /// It is not open anywhere, or its server is not online.
    pub fn host_of(&self, region: &str) -> std::result::Result<Arc<dyn RegionHost>, HostError> {
        if region == META_ENCODED_NAME {
            return self.servers.meta_host();
        }
        let location = self.cluster.read().region(region).and_then(|node| node.location.clone());
        let location = location.ok_or_else(|| HostError::Failed(format!("region {region} is not open anywhere")))?;
        self.servers.get(&location)
    }

    /// Opens regions, so many at once, then the read replicas of those that are open; each is in hbase:meta as OPEN when it serves. One that
    /// cannot be opened is left as FAILED_OPEN and does not hold up the others.
    ///
    /// # Errors
    /// The master stops, or hbase:meta cannot be written.
    pub async fn assign(self: &Arc<Self>, regions: Vec<RegionInfo>) -> Result<()> {
        self.open_all(regions.iter().filter(|info| !info.is_replica()).cloned().collect()).await?;
        let primaries: BTreeMap<Bytes, RegionInfo> =
            regions.iter().map(|info| info.replica(0)).map(|info| (info.name().clone(), info)).collect();
        self.settle_replicas(primaries.into_values().collect()).await
    }

    /// That each region of an enabled table is open, or will be: none was given up.
    ///
    /// # Errors
    /// Some were: whoever had the table made or enabled is to hear of it. They are tried again from time to time. (In HBase with a limit of
    /// attempts, `hbase.assignment.maximum.attempts`, that is a RetriesExhaustedException; without, its procedure waits for ever.)
    pub fn check_none_failed(&self, table: &TableName) -> Result<()> {
        let cluster = self.cluster.read();
        let mut failed = cluster.regions_of(table).filter(|node| node.state == RegionState::FailedOpen);
        let Some(first) = failed.next() else { return Ok(()) };
        let (first, others) = (first.info.name_string(), failed.count());
        let of_all = cluster.regions_of(table).count();
        let among = self.groups.servers_for(table, &cluster, &self.servers);
        if among.is_some_and(|among| among.is_empty()) {
            return Err(MasterError::new(
                ErrorKind::HBaseIo,
                format!(
                    "Table {table} is enabled, but {} of its {of_all} regions wait for a region server of their group: none is online. They are \
                     opened as soon as one is, or when the table is moved to another group (move_tables_rsgroup).",
                    others + 1
                ),
            ));
        }
        Err(MasterError::new(
            ErrorKind::HBaseIo,
            format!(
                "Table {table} is enabled, but {} of its {of_all} regions cannot be opened, {first} among them; the log of its region server \
                 says why. It is tried again by itself from time to time.",
                others + 1
            ),
        ))
    }

    /// Opens the read replicas of a region that nobody has opened yet: when their number was raised the region itself was not open.
    ///
    /// # Errors
    /// As [`Assignment::assign`].
    pub async fn open_new_replicas(self: &Arc<Self>, primary: &RegionInfo) -> Result<()> {
        let some_are_new = {
            let cluster = self.cluster.read();
            let wanted = cluster.descriptor(&primary.table).map_or(1, |table| table.region_replication());
            (1..wanted).any(|id| match cluster.region(primary.replica(id).encoded_name()) {
                Some(node) => matches!(node.state, RegionState::Closed | RegionState::Offline),
                None => true,
            })
        };
        if some_are_new { self.settle_replicas(vec![primary.clone()]).await } else { Ok(()) }
    }

    /// Brings the read replicas of regions to the number that their table asks for: those beyond are closed and forgotten; where the region is
    /// open, those that are not are opened.
    ///
    /// # Errors
    /// As [`Assignment::assign`].
    pub async fn settle_replicas(self: &Arc<Self>, primaries: Vec<RegionInfo>) -> Result<()> {
        let (mut missing, mut excess) = (Vec::new(), Vec::new());
        {
            let mut cluster = self.cluster.write();
            let now = self.clock.now_ms();
            for primary in primaries {
                let Some(table) = cluster.descriptor(&primary.table) else { continue };
                let wanted = table.region_replication();
                let beyond = cluster.replicas_of(&primary).filter(|node| node.info.replica_id >= wanted);
                excess.extend(beyond.map(|node| node.info.clone()));
                let is_open = |node: &RegionNode| node.state == RegionState::Open;
                if !cluster.region(primary.encoded_name()).is_some_and(is_open) {
                    continue;
                }
                for replica in (1..wanted).map(|id| primary.replica(id)) {
                    match cluster.region(replica.encoded_name()) {
                        Some(node) if is_open(node) => continue,
                        Some(_) => {}
                        None => cluster.put_region(RegionNode::new(replica.clone(), RegionState::Closed, now)),
                    }
                    missing.push(replica);
                }
            }
        }
        self.close_all(excess.clone()).await?;
        if !excess.is_empty() {
            let stamp = self.catalog.stamp();
            let (of_meta, others): (Vec<&RegionInfo>, Vec<_>) = excess.iter().partition(|info| info.table.is_meta());
            self.catalog.write_many(others.iter().map(|info| meta::delete_replica(info, stamp)).collect()).await?;
            of_meta.iter().for_each(|info| self.observer.meta_replica(info.replica_id, None));
            let mut cluster = self.cluster.write();
            excess.iter().for_each(|info| cluster.remove_region(info));
        }
        self.open_all(missing).await
    }

    /// Refuses a table that asks for more than is served.
    ///
    /// # Errors
    /// It asks for more read replicas than can be numbered.
    pub fn check_replication(&self, table: &TableDescriptor) -> Result<()> {
        let replication = table.region_replication();
        if replication > MAX_REPLICATION {
            return Err(MasterError::do_not_retry(format!(
                "REGION_REPLICATION {replication} of table {}: ids of replicas end at {}.",
                table.name,
                MAX_REPLICATION - 1
            )));
        }
        Ok(())
    }

    async fn open_all(self: &Arc<Self>, regions: Vec<RegionInfo>) -> Result<()> {
        let turns = self.turns(&regions);
        self.each(regions, |assignment, info| {
            let turn = turns.get(info.encoded_name()).cloned();
            async move { assignment.counted(Operation::Assign, assignment.assign_one(&info, turn)).await }
        })
        .await
    }

    /// Servers for those regions that were nowhere, in turn: a server that has nothing yet is not to get all regions of a new table.
    fn turns(&self, regions: &[RegionInfo]) -> HashMap<Arc<str>, ServerName> {
        let servers = self.servers.assignable();
        let cluster = self.cluster.read();
        let is_nowhere =
            |info: &&RegionInfo| cluster.region(info.encoded_name()).is_none_or(|node| node.location.is_none());
        let new: Vec<&RegionInfo> = regions.iter().filter(|info| !info.is_replica()).filter(is_nowhere).collect();
        let loads: Vec<usize> = servers.iter().map(|server| cluster.regions_on(server)).collect();
        let turns = placement::round_robin(new.len(), &loads);
        new.into_iter()
            .zip(turns)
            .map(|(info, turn)| (Arc::clone(info.encoded_name()), servers[turn].clone()))
            .collect()
    }

    /// Closes regions, their read replicas first; hbase:meta has them as CLOSED then.
    ///
    /// # Errors
    /// A region that cannot be flushed and closed, and as [`Assignment::assign`].
    pub async fn unassign(self: &Arc<Self>, regions: Vec<RegionInfo>) -> Result<()> {
        self.unassign_replicas(&regions).await?;
        self.close_all(regions).await
    }

    /// Closes the read replicas of regions.
    ///
    /// # Errors
    /// As [`Assignment::unassign`].
    pub async fn unassign_replicas(self: &Arc<Self>, primaries: &[RegionInfo]) -> Result<()> {
        self.close_all(self.replicas_of(primaries, |node| node.state != RegionState::Closed)).await
    }

    fn replicas_of(&self, primaries: &[RegionInfo], wanted: impl Fn(&RegionNode) -> bool) -> Vec<RegionInfo> {
        let cluster = self.cluster.read();
        let replicas = primaries.iter().flat_map(|primary| cluster.replicas_of(primary));
        replicas.filter(|node| wanted(node)).map(|node| node.info.clone()).collect()
    }

    async fn close_all(self: &Arc<Self>, regions: Vec<RegionInfo>) -> Result<()> {
        self.each(regions, |assignment, info| async move {
            assignment.counted(Operation::Unassign, assignment.unassign_one(&info)).await
        })
        .await
    }

    /// Closes and opens regions, then their read replicas, with the table's descriptor of now.
    ///
    /// # Errors
    /// As [`Assignment::unassign`].
    pub async fn reopen(self: &Arc<Self>, regions: Vec<RegionInfo>) -> Result<()> {
        let replicas = self.replicas_of(&regions, |node| node.state == RegionState::Open);
        self.reopen_all(regions).await?;
        self.reopen_all(replicas).await
    }

    async fn reopen_all(self: &Arc<Self>, regions: Vec<RegionInfo>) -> Result<()> {
        self.each(regions, |assignment, info| async move {
            assignment.counted(Operation::Reopen, assignment.reopen_one(&info)).await
        })
        .await
    }

    async fn reopen_one(self: &Arc<Self>, info: &RegionInfo) -> Result<()> {
        // What is to be written to hbase:meta waits for it where it is on another server's process; the one process of master and region server
        // never closes it.
        if let Ok(host) = self.host_of(info.encoded_name())
            && (host.is_remote() || !is_primary_of_meta(info))
        {
            self.close_on(&*host, info).await?;
            self.note_let_go(info);
        }
        self.assign_one(info, None).await
    }

    /// Counts `work` as `operation`, and how long it takes.
    async fn counted<T, E>(
        &self,
        operation: Operation,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        self.operations.submitted(operation);
        let begun_us = self.clock.monotonic_us();
        let outcome = work.await;
        let took_us = self.clock.monotonic_us().saturating_sub(begun_us);
        self.operations.ended(operation, outcome.is_err(), took_us);
        outcome
    }

    /// Does the same with every region, side by side; the first error is answered when all are through.
    async fn each<F>(
        self: &Arc<Self>,
        regions: Vec<RegionInfo>,
        work: impl Fn(Arc<Assignment>, RegionInfo) -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let mut running = JoinSet::new();
        for info in regions {
            running.spawn(trace::within(trace::current(), work(Arc::clone(self), info)));
        }
        let mut outcome = Ok(());
        while let Some(done) = running.join_next().await {
            let done =
                done.unwrap_or_else(|panic| Err(crate::MasterError::do_not_retry(format!("internal error: {panic}"))));
            outcome = outcome.and(done);
        }
        outcome
    }

    pub fn note_state(&self, info: &RegionInfo, state: RegionState) {
        let now = self.clock.now_ms();
        self.cluster.write().change_region(info.encoded_name(), |node| (node.state, node.since) = (state, now));
    }

    /// The server that has a region has said that it closed it. It is best opened there again.
    pub fn note_let_go(&self, info: &RegionInfo) {
        self.cluster.write().change_region(info.encoded_name(), |node| node.is_let_go = true);
    }

    async fn assign_one(self: &Arc<Self>, info: &RegionInfo, turn: Option<ServerName>) -> Result<()> {
        let Some(table) = self.cluster.read().descriptor(&info.table) else {
            tracing::error!(region = %info.name_string(), "the table has no descriptor: the region stays closed");
            return Ok(());
        };
        match self.open_with_retries(info, &table, turn.as_ref()).await? {
            Some((server, open_seq_id)) => self.record_open(info, &server, open_seq_id).await,
            None => self.record_failed_open(info).await,
        }
    }

    /// Chooses the server to open a region on, `wanted` if that is online, and notes it. One that a server may have stays there
    /// ([`RegionNode::holder`]): whether it has it is not known before it says so, or is dead.
    ///
    /// `None` where there are groups of region servers, and no server is online on which it may be.
    ///
    /// # Errors
    /// No server is online; or the region was on a server that crashed, whose logs may hold edits of it.
    pub fn place(
        &self,
        info: &RegionInfo,
        wanted: Option<&ServerName>,
        avoid: Option<&ServerName>,
    ) -> std::result::Result<Option<Place>, HostError> {
        let now = self.clock.now_ms();
        let mut cluster = self.cluster.write();
        let node = cluster.region(info.encoded_name());
        let last = node.and_then(|node| node.location.clone());
        let holder = node.filter(|_| !base::inject!("master.place.holder-overlooked"));
        let holder = holder.and_then(RegionNode::holder).and_then(|server| self.servers.get(server).ok());
        let siblings = siblings(&cluster, info);
        if let Some(host) = holder {
            cluster.change_region(info.encoded_name(), |node| {
                if node.state != RegionState::Opening {
                    (node.state, node.since) = (RegionState::Opening, now);
                }
            });
            return Ok(Some(Place { host, may_have_it: true }));
        }
        if let Some(crashed) = last.as_ref().filter(|server| self.must_wait_for_logs(info, server)) {
            return Err(HostError::Failed(format!("the WAL of the crashed region server {crashed} is not split yet")));
        }
        let among = self.groups.servers_for(&info.table, &cluster, &self.servers);
        if among.as_ref().is_some_and(BTreeSet::is_empty) {
            tracing::warn!(region = %info.name_string(), "no region server of the table's RSGroup is online: the region is FAILED_OPEN until one starts, or the table is moved to another group \
                 (move_tables_rsgroup)");
            return Ok(None);
        }
        let load = |server: &ServerName| cluster.regions_on(server);
        // Where it was is no reason to share a server with another of its replicas.
        let last = last.filter(|server| !siblings.contains(server));
        let wish = Wish { among: among.as_ref(), wanted: wanted.or(last.as_ref()), avoid, apart: &siblings };
        let rack = |server: &ServerName| self.localities.rack(&server.host);
        let host = self.servers.choose_by(wish, load, rack)?;
        cluster.change_region(info.encoded_name(), |node| {
            (node.state, node.since, node.location) = (RegionState::Opening, now, Some(host.server_name()));
            node.is_let_go = false;
        });
        Ok(Some(Place { host, may_have_it: false }))
    }

    /// The log of hbase:meta is split before everything else. What a read replica shows does not depend on its server's.
    fn must_wait_for_logs(&self, info: &RegionInfo, server: &ServerName) -> bool {
        !info.table.is_meta() && !info.is_replica() && self.servers.has_logs_to_split(server)
    }

    /// The server that is to close a region; none when it is open nowhere.
    ///
    /// # Errors
    /// The region was on a server that crashed, whose logs may hold edits of it: it is closed when they are split.
    pub fn host_to_close(&self, info: &RegionInfo) -> std::result::Result<Option<Arc<dyn RegionHost>>, HostError> {
        let location = self.cluster.read().region(info.encoded_name()).and_then(|node| node.location.clone());
        let Some(location) = location else { return Ok(None) };
        match self.servers.get(&location) {
            Ok(host) => Ok(Some(host)),
            Err(_) if self.must_wait_for_logs(info, &location) => {
                Err(HostError::Failed(format!("the WAL of the crashed region server {location} is not split yet")))
            }
            Err(_) => Ok(None),
        }
    }

    /// Before a server of another process is asked to open a region: the next master is to find it there.
    ///
    /// # Errors
    /// hbase:meta cannot be written, or the node that says where it is.
    pub async fn record_opening(&self, info: &RegionInfo, host: &dyn RegionHost) -> Result<()> {
        if !host.is_remote() {
            return Ok(());
        }
        let server = host.server_name();
        if is_primary_of_meta(info) {
            self.for_hbase.on_its_way(info, Order::Open).await?;
            keep_meta_location(&*self.observer, &server).await?;
            return self.for_hbase.meta_at(&server, "OPENING").await;
        }
        if info.table.is_meta() {
            self.tell_of_meta(info, &server, RegionState::Opening);
            return Ok(());
        }
        self.for_hbase.on_its_way(info, Order::Open).await?;
        let row = meta::put_opening_region(info, &server, self.catalog.stamp());
        self.catalog.write(vec![row]).await
    }

    /// Before a server of another process is asked to close a region: the next master is to know.
    ///
    /// # Errors
    /// hbase:meta cannot be written.
    pub async fn record_closing(&self, info: &RegionInfo, host: &dyn RegionHost) -> Result<()> {
        if !host.is_remote() || (info.table.is_meta() && info.is_replica()) {
            return Ok(());
        }
        self.for_hbase.on_its_way(info, Order::Close).await?;
        if info.table.is_meta() {
            return self.for_hbase.meta_at(&host.server_name(), "CLOSING").await;
        }
        let row = meta::put_closing_region(info, self.catalog.stamp());
        self.catalog.write(vec![row]).await
    }

    /// Regions are closed for good, and what comes in their place is to be written. hbase:meta still says that they are being closed.
    ///
    /// # Errors
    /// hbase:meta cannot be written.
    pub async fn record_parents_closed(&self, parents: &[RegionInfo]) -> Result<()> {
        if !self.servers.are_remote() {
            return Ok(());
        }
        let stamp = self.catalog.stamp();
        let rows = parents.iter().map(|info| meta::put_region(info, RegionState::Closed, stamp)).collect();
        self.catalog.write(rows).await?;
        for info in parents {
            self.for_hbase.closed(info).await?;
        }
        Ok(())
    }

    /// Has a region closed by the server that has it.
    ///
    /// # Errors
    /// The server's; hbase:meta cannot be written.
    pub async fn close_on(&self, host: &dyn RegionHost, info: &RegionInfo) -> Result<()> {
        self.record_closing(info, host).await?;
        Ok(host.close_region(info.encoded_name()).await?)
    }

    /// The server has said that it could not open the region: it may be opened elsewhere.
    pub fn note_not_opened(&self, info: &RegionInfo) {
        let now = self.clock.now_ms();
        self.cluster.write().change_region(info.encoded_name(), |node| {
            (node.state, node.since, node.location) = (RegionState::Offline, now, None);
        });
    }

    /// Where it is open, and the sequence id that it opened at; `None` when nobody could open it.
    async fn open_with_retries(
        &self,
        info: &RegionInfo,
        table: &Arc<TableDescriptor>,
        wanted: Option<&ServerName>,
    ) -> Result<Option<(ServerName, u64)>> {
        let mut wait = Duration::from_millis(20);
        let mut avoid = None;
        for attempt in 1.. {
            let Some(Place { host, may_have_it }) = self.place(info, wanted, avoid.as_ref())? else { return Ok(None) };
            self.record_opening(info, &*host).await?;
            // The writes to hbase:meta wait for others of their kind, not for a slot.
            let slot = self.slots.acquire().await;
            let opened = self.counted(Operation::Open, host.open_region(info.clone(), Arc::clone(table))).await;
            drop(slot);
            match opened {
                Ok(open_seq_id) => return Ok(Some((host.server_name(), open_seq_id))),
                Err(HostError::Stopping) => return Err(HostError::Stopping.into()),
                // It stays where it is until its server is dead and the logs of that are split.
                Err(error @ HostError::Unreachable(_)) => return Err(error.into()),
                Err(error @ HostError::NotTaken(_)) if may_have_it => return Err(error.into()),
                Err(error) if !is_given_up(info, attempt) => {
                    tracing::warn!(region = %info.name_string(), %error, attempt, "cannot open a region, will try again");
                    self.note_not_opened(info);
                    avoid = Some(host.server_name());
                    self.lifetime.pause(wait).await?;
                    wait = (wait * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    tracing::error!(region = %info.name_string(), %error, "cannot open a region: FAILED_OPEN");
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// A region serves: first in hbase:meta, then in the picture.
    ///
    /// # Errors
    /// hbase:meta cannot be written.
    pub async fn record_open(&self, info: &RegionInfo, location: &ServerName, open_seq_id: u64) -> Result<()> {
        if info.table.is_meta() {
            if !info.is_replica() {
                self.servers.set_meta_location(location.clone());
                self.for_hbase.meta_at(location, "OPEN").await?;
            }
            self.tell_of_meta(info, location, RegionState::Open);
        } else {
            let row = meta::put_open_region(info, location, open_seq_id, self.catalog.stamp());
            self.catalog.write(vec![row]).await?;
        }
        let now = self.clock.now_ms();
        self.cluster.write().change_region(info.encoded_name(), |node| {
            (node.state, node.since, node.open_seq_id) = (RegionState::Open, now, Some(open_seq_id));
        });
        self.for_hbase.arrived(info).await
    }

    /// hbase:meta and its read replicas have no rows: nodes say where they are.
    fn tell_of_meta(&self, info: &RegionInfo, server: &ServerName, state: RegionState) {
        match info.replica_id {
            0 => self.observer.meta_location(server, state == RegionState::Open),
            id => self.observer.meta_replica(id, Some((server, state))),
        }
    }

    /// A region could not be opened.
    ///
    /// # Errors
    /// hbase:meta cannot be written.
    pub async fn record_failed_open(&self, info: &RegionInfo) -> Result<()> {
        if info.table.is_meta() {
            self.note_state(info, RegionState::FailedOpen);
            return Ok(());
        }
        self.catalog.write(vec![meta::put_region(info, RegionState::FailedOpen, self.catalog.stamp())]).await?;
        self.note_state(info, RegionState::FailedOpen);
        self.for_hbase.arrived(info).await
    }

    /// A region is closed.
    ///
    /// # Errors
    /// hbase:meta cannot be written.
    pub async fn record_closed(&self, info: &RegionInfo) -> Result<()> {
        if is_primary_of_meta(info) {
            // It has no row of itself, and could not be written while it is closed.
            self.note_state(info, RegionState::Closed);
            return self.for_hbase.closed(info).await;
        }
        if info.table.is_meta() {
            let last = self.cluster.read().region(info.encoded_name()).and_then(|node| node.location.clone());
            last.inspect(|server| self.tell_of_meta(info, server, RegionState::Closed));
        } else {
            self.catalog.write(vec![meta::put_region(info, RegionState::Closed, self.catalog.stamp())]).await?;
        }
        let now = self.clock.now_ms();
        self.cluster.write().change_region(info.encoded_name(), |node| {
            (node.state, node.since, node.location) = (RegionState::Closed, now, None);
        });
        self.for_hbase.closed(info).await
    }

    async fn unassign_one(&self, info: &RegionInfo) -> Result<()> {
        self.note_state(info, RegionState::Closing);
        let host = self.host_to_close(info)?;
        let slot = self.slots.acquire().await;
        let closed = match host {
            Some(host) => self.counted(Operation::Close, self.close_on(&*host, info)).await,
            None => Ok(()),
        };
        drop(slot);
        closed?;
        self.record_closed(info).await
    }
}
