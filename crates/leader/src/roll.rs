//! The region servers of the cluster: who was let in, who reports, who is dead. Follows: `ServerManager`, `RegionServerTracker`.

use crate::orders::Reported;
use crate::remote::{Means, RemoteHost};
use base::Clock;
use convert::from_proto;
use master::{Master, RegionHost};
use model::{RegionInfo, ServerName};
use parking_lot::{Mutex, RwLock};
use proto::pb;
use proto::pb::region_state_transition::TransitionCode;
use rpc::{Exception, Kind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Between two attempts to record that a server has crashed.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Default)]
struct State {
    hosts: BTreeMap<ServerName, Arc<RemoteHost>>,
    /// Servers whose nodes are there.
    live: BTreeSet<ServerName>,
    dead: BTreeSet<ServerName>,
}

/// Regions that are remembered before those that are no more are looked for.
const FORGET_FROM: usize = 10_000;
/// Says that nothing is known. Follows: `HConstants.NO_SEQNUM`.
const NO_SEQUENCE_ID: u64 = u64::MAX;

/// Up to which sequence ids edits of regions need no log any more. Follows: `ServerManager#updateLastFlushedSequenceIds`.
struct Flushed {
    of_regions: HashMap<String, FlushedRegion>,
    forget_from: usize,
}

#[derive(Default)]
struct FlushedRegion {
    /// Of all families.
    seq_id: Option<u64>,
    of_families: BTreeMap<bytes::Bytes, u64>,
}

impl Default for Flushed {
    fn default() -> Flushed {
        Flushed { of_regions: HashMap::new(), forget_from: FORGET_FROM }
    }
}

impl Flushed {
    /// What is lower than what was reported before is of an older report.
    fn note(&mut self, load: &pb::RegionLoad) {
        let known = |id: &u64| *id != NO_SEQUENCE_ID;
        let name = RegionInfo::encoded_from_name(&load.region_specifier.value).to_string();
        let region = self.of_regions.entry(name).or_default();
        region.seq_id = region.seq_id.max(load.complete_sequence_id.filter(known));
        for store in load.store_complete_sequence_id.iter().filter(|store| known(&store.sequence_id)) {
            let seq_id = region.of_families.entry(store.family_name.clone()).or_default();
            *seq_id = (*seq_id).max(store.sequence_id);
        }
    }

    fn forget(&mut self, is_there: impl Fn(&str) -> bool) {
        self.of_regions.retain(|region, _| is_there(region));
        self.forget_from = FORGET_FROM.max(2 * self.of_regions.len());
    }
}

/// The servers by name.
pub(crate) struct Roll {
    means: Arc<Means>,
    clock: Arc<dyn Clock>,
    max_clock_skew_ms: u64,
    state: RwLock<State>,
    /// The number of servers that orders can be given to, as it changes.
    ready: watch::Sender<usize>,
    master: OnceLock<Weak<Master>>,
    flushed: Mutex<Flushed>,
    /// The whole cluster: servers close what they have and end, and nothing is opened elsewhere for it. What one that crashes meanwhile had is recovered at the next
    /// start. Follows: `ServerManager.isClusterShutdown`.
    goes_down: AtomicBool,
}

/// A report of an order.
pub(crate) struct KeptReport {
    region: Arc<str>,
    id: u64,
    code: TransitionCode,
    seq_id: i64,
}

/// What the master says to a report of a region.
pub(crate) enum Verdict {
    /// It has it.
    Taken,
    /// The server is to end.
    Refused(String),
    /// The region is to be split.
    Split { parent: Arc<str>, row: bytes::Bytes },
}

impl Roll {
    pub fn new(means: Arc<Means>, clock: Arc<dyn Clock>, max_clock_skew_ms: u64) -> Roll {
        Roll {
            means,
            clock,
            max_clock_skew_ms,
            state: RwLock::default(),
            ready: watch::Sender::new(0),
            master: OnceLock::new(),
            flushed: Mutex::default(),
            goes_down: AtomicBool::new(false),
        }
    }

    /// Refuses a report of what a later master ordered, when that one was already active: this one leads no more, and does not know it yet. Follows:
    /// `MasterRpcServices#throwOnOldMaster`.
    ///
    /// # Errors
    /// `MasterNotRunningException`: the server looks for the other.
    pub fn check_newest(&self, initiating_active_ms: Option<i64>) -> Result<(), Exception> {
        match initiating_active_ms {
            Some(active_ms) if active_ms > self.means.active_ms => {
                Err(Exception::master_not_running("Another master is active"))
            }
            _ => Ok(()),
        }
    }

    /// The servers that orders can be given to.
    pub fn hosts(&self) -> Vec<Arc<RemoteHost>> {
        let state = self.state.read();
        state
            .hosts
            .values()
            .filter(|host| host.has_reported() || state.live.contains(&host.server_name()))
            .cloned()
            .collect()
    }

    /// Names of the servers that are known and not dead.
    pub fn names(&self) -> BTreeSet<ServerName> {
        let state = self.state.read();
        state.hosts.keys().chain(&state.live).cloned().collect()
    }

    /// Their number, as it changes.
    pub fn ready(&self) -> watch::Receiver<usize> {
        self.ready.subscribe()
    }

    fn count(&self) {
        let count = self.hosts().len();
        self.ready.send_replace(count);
    }

    pub fn master(&self) -> Option<Arc<Master>> {
        self.master.get().and_then(Weak::upgrade)
    }

    /// The master has known from its start that these servers are dead.
    pub fn are_dead(&self, names: &[ServerName]) {
        let mut state = self.state.write();
        for name in names {
            state.live.remove(name);
            state.hosts.remove(name);
            state.dead.insert(name.clone());
        }
        drop(state);
        self.count();
    }

    /// From now on the master hears of servers that come and go. Those that came or died since it was put together are told.
    pub fn set_master(self: &Arc<Self>, master: &Arc<Master>) {
        let _only_once = self.means.for_hbase.set(master.for_hbase());
        let _only_once = self.master.set(Arc::downgrade(master));
        for host in self.hosts() {
            master.server_joined(host);
        }
        let dead: Vec<ServerName> = self.state.read().dead.iter().cloned().collect();
        dead.into_iter().for_each(|server| self.tell_of_death(server, None));
    }

    /// A server asks to be let in. Answers its name.
    ///
    /// # Errors
    /// The exceptions of HBase's master.
    pub fn startup(
        self: &Arc<Self>,
        request: &pb::RegionServerStartupRequest,
        seen_host: &str,
    ) -> Result<ServerName, Exception> {
        let host = request.use_this_hostname_instead.as_deref().unwrap_or(seen_host);
        let port = u16::try_from(request.port).map_err(|_| Exception::do_not_retry("no such port"))?;
        let name = ServerName::new(host, port, request.server_start_code);
        self.check_clock(&name, request.server_current_time)?;
        self.check_alive(&name, "STARTUP")?;
        let same_place = |other: &&ServerName| other.address() == name.address() && **other != name;
        let earlier = self.names().iter().find(same_place).cloned();
        if let Some(earlier) = earlier {
            if earlier.start_code > name.start_code {
                return Err(Exception::new(
                    Kind::YouAreDead,
                    format!("Server {name} rejected; {earlier} is known with the same host and port and a later start"),
                ));
            }
            tracing::info!("{name} has taken the place of {earlier}");
            self.expire(&earlier);
        }
        self.state.write().hosts.entry(name.clone()).or_insert_with(|| self.host(&name));
        tracing::info!("region server {name} is let in");
        Ok(name)
    }

    fn host(&self, name: &ServerName) -> Arc<RemoteHost> {
        Arc::new(RemoteHost::new(name.clone(), self.means.clone()))
    }

    fn check_clock(&self, name: &ServerName, its_ms: u64) -> Result<(), Exception> {
        let own_ms = u64::try_from(self.clock.now_ms().0).unwrap_or_default();
        let skew_ms = own_ms.abs_diff(its_ms);
        if skew_ms > self.max_clock_skew_ms {
            return Err(Exception::new(
                Kind::ClockOutOfSync,
                format!(
                    "Server {name} has been rejected; Reported time is too far out of sync with master.  Time difference of {skew_ms}ms > \
                     max allowed of {}ms",
                    self.max_clock_skew_ms
                ),
            ));
        }
        Ok(())
    }

    fn check_alive(&self, name: &ServerName, what: &str) -> Result<(), Exception> {
        if !self.state.read().dead.contains(name) {
            return Ok(());
        }
        Err(Exception::new(
            Kind::YouAreDead,
            format!("Server {what} rejected; currently processing {name} as dead server"),
        ))
    }

    /// The host of a server that lives.
    ///
    /// # Errors
    /// It is taken for dead; or its node has not been seen yet.
    fn known(&self, name: &ServerName, what: &str) -> Result<Arc<RemoteHost>, Exception> {
        self.check_alive(name, what)?;
        self.state.read().hosts.get(name).cloned().ok_or_else(Exception::please_hold)
    }

    /// A server reports what it holds and does.
    ///
    /// # Errors
    /// It is taken for dead, or not known yet.
    pub fn report(&self, name: &ServerName, load: pb::ServerLoad) -> Result<(), Exception> {
        let host = self.known(name, "REPORT")?;
        let is_first = !host.has_reported();
        self.note_flushed(&load);
        host.set_load(load);
        if is_first {
            self.count();
            if let Some(master) = self.master()
                && master.server_joined(host)
            {
                tracing::info!("region server {name} takes regions");
            }
        }
        Ok(())
    }

    fn note_flushed(&self, load: &pb::ServerLoad) {
        let mut flushed = self.flushed.lock();
        load.region_loads.iter().for_each(|region| flushed.note(region));
        if flushed.of_regions.len() > flushed.forget_from
            && let Some(master) = self.master().filter(|master| master.knows_regions())
        {
            let cluster = master.cluster();
            flushed.forget(|region| cluster.region(region).is_some());
        }
    }

    /// Up to which sequence ids the edits of a region, which is named by its encoded name, are in files: whoever splits a log may leave them out.
    pub fn last_flushed(&self, region: &[u8]) -> pb::GetLastFlushedSequenceIdResponse {
        let flushed = self.flushed.lock();
        let found = std::str::from_utf8(region).ok().and_then(|region| flushed.of_regions.get(region));
        let of_families = found.iter().flat_map(|region| &region.of_families);
        let store = |(family_name, sequence_id): (&bytes::Bytes, &u64)| pb::StoreSequenceId {
            family_name: family_name.clone(),
            sequence_id: *sequence_id,
        };
        pb::GetLastFlushedSequenceIdResponse {
            last_flushed_sequence_id: found.and_then(|region| region.seq_id).unwrap_or(NO_SEQUENCE_ID),
            store_last_flushed_sequence_id: of_families.map(store).collect(),
        }
    }

    /// The nodes of servers are these now. A server that had one and has it no more is dead.
    pub fn nodes_are(self: &Arc<Self>, names: &[String]) {
        let now: BTreeSet<ServerName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        // Of two that have one address the earlier is over: its node stays until its session has run out.
        let newest: BTreeMap<String, u64> = now.iter().map(|name| (name.address(), name.start_code)).collect();
        let (now, over): (BTreeSet<ServerName>, BTreeSet<ServerName>) =
            now.into_iter().partition(|name| newest.get(&name.address()) == Some(&name.start_code));
        let gone: Vec<ServerName> = {
            let mut state = self.state.write();
            let gone = state.live.difference(&now).chain(over.difference(&state.dead)).cloned().collect();
            for name in &now {
                if !state.hosts.contains_key(name) && !state.dead.contains(name) {
                    state.hosts.insert(name.clone(), self.host(name));
                }
            }
            state.live = now;
            gone
        };
        for name in gone {
            tracing::warn!(
                "region server {name} is dead: its znode is gone, or a later process has one with the same address"
            );
            self.expire(&name);
        }
        self.count();
    }

    /// The whole cluster is to go down from now on.
    pub fn go_down(&self) {
        self.goes_down.store(true, Ordering::SeqCst);
    }

    fn goes_down(&self) -> bool {
        self.goes_down.load(Ordering::SeqCst)
    }

    /// A server is dead from now on.
    pub fn expire(self: &Arc<Self>, name: &ServerName) {
        let host = {
            let mut state = self.state.write();
            state.live.remove(name);
            if !state.dead.insert(name.clone()) {
                return;
            }
            state.hosts.remove(name)
        };
        self.count();
        self.tell_of_death(name.clone(), host);
    }

    /// Whoever waits for the server hears of its death when the master knows that its logs are to be split first, and not before.
    fn tell_of_death(self: &Arc<Self>, name: ServerName, host: Option<Arc<RemoteHost>>) {
        let Some(master) = self.master() else { return };
        // Where it is recovered already, whoever does holds the lock on it, and a second would wait for that.
        if self.goes_down() || master.views().servers().1.contains(&name) {
            host.iter().for_each(|host| host.died());
            return;
        }
        tokio::spawn(async move {
            while let Err(error) = master.server_crashed(&name).await {
                tracing::error!("cannot record that {name} has crashed, will try again: {error}");
                if master.is_stopping() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
            if let Some(host) = host {
                host.died();
            }
        });
    }

    /// Reports of orders that the next master is to know before they are answered.
    pub fn reports_to_keep(&self, transitions: &[pb::RegionStateTransition]) -> Vec<KeptReport> {
        let Some(for_hbase) = self.means.for_hbase.get() else { return Vec::new() };
        let kept = transitions.iter().filter_map(|transition| {
            let info = from_proto::region_info(transition.region_info.first()?).ok()?;
            let id = u64::try_from(*transition.proc_id.first()?).ok()?;
            let code = transition.transition_code();
            let is_end = matches!(code, TransitionCode::Opened | TransitionCode::FailedOpen | TransitionCode::Closed);
            let region = Arc::clone(info.encoded_name());
            let seq_id = transition.open_seq_num.and_then(|id| i64::try_from(id).ok()).unwrap_or(-1);
            (is_end && for_hbase.is_of_order(&region, id)).then_some(KeptReport { region, id, code, seq_id })
        });
        kept.collect()
    }

    /// Keeps a report for the next master.
    ///
    /// # Errors
    /// This one stops.
    pub async fn keep_report(&self, report: KeptReport) -> Result<(), Exception> {
        let Some(for_hbase) = self.means.for_hbase.get() else { return Ok(()) };
        let KeptReport { region, id, code, seq_id } = report;
        let kept = for_hbase.reported(&region, id, code, seq_id).await;
        kept.map_err(|_| Exception::io("This master stops: report it again"))
    }

    /// A server reports what became of a region.
    ///
    /// # Errors
    /// It is taken for dead; or where regions are is not known yet.
    pub fn transition(
        self: &Arc<Self>,
        name: &ServerName,
        transition: &pb::RegionStateTransition,
    ) -> Result<Verdict, Exception> {
        let host = self.known(name, "REPORT")?;
        let info = transition.region_info.first().ok_or_else(|| Exception::do_not_retry("no region"))?;
        let info = from_proto::region_info(info)?;
        let id = transition.proc_id.first().and_then(|id| u64::try_from(*id).ok());
        let code = transition.transition_code();
        if code == TransitionCode::Opened {
            // What a snapshot was restored over may count from a lower id again.
            self.flushed.lock().of_regions.remove(&**info.encoded_name());
        }
        let reported = match code {
            TransitionCode::Opened => Reported::Opened { open_seq_id: transition.open_seq_num() },
            TransitionCode::FailedOpen => Reported::FailedOpen,
            TransitionCode::Closed => Reported::Closed,
            TransitionCode::ReadyToSplit => {
                let second = transition.region_info.get(2).ok_or_else(|| Exception::do_not_retry("no daughters"))?;
                let row = from_proto::region_info(second)?.start_key;
                return Ok(Verdict::Split { parent: info.encoded_name().clone(), row });
            }
            other => return Ok(Verdict::Refused(format!("{other:?} is not taken from a region server"))),
        };
        let reported_closed = reported == Reported::Closed;
        if reported_closed && host.has_answered(info.encoded_name(), id) {
            // It was sent again because the answer was lost. The region may be open there again, or elsewhere.
            return Ok(Verdict::Taken);
        }
        if let Reported::Opened { open_seq_id } = reported
            && host.opens_again(&info, id, open_seq_id)
        {
            return Ok(Verdict::Taken);
        }
        if host.reported(&info, id, reported) {
            return Ok(Verdict::Taken);
        }
        let Some(master) = self.master().filter(|master| master.knows_regions()) else {
            if reported_closed && info == RegionInfo::meta() {
                // Who takes over looks for it by himself, and waits for this server if it is asked to open it again: it does so when this is answered.
                return Ok(Verdict::Taken);
            }
            return Err(Exception::please_hold());
        };
        // What follows is an answer: the server has done with it.
        host.settled(info.encoded_name(), id);
        match code {
            // Its answer was lost, or an earlier master had ordered it.
            TransitionCode::Opened if master.has_region_on(info.encoded_name(), name) => {
                host.has_open(&info, transition.open_seq_num());
                Ok(Verdict::Taken)
            }
            TransitionCode::Opened => {
                let region = info.name_string();
                Ok(Verdict::Refused(format!("{region} is not to be open on {name}: it was given to another server")))
            }
            TransitionCode::Closed if self.goes_down() => Ok(Verdict::Taken),
            TransitionCode::Closed => {
                let (region, name) = (info.encoded_name().clone(), name.clone());
                tokio::spawn(async move {
                    while let Err(error) = master.region_closed_unasked(&region, &name).await {
                        tracing::warn!("{region} was closed and cannot be opened again yet: {error}");
                        if master.is_stopping() {
                            return;
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                });
                Ok(Verdict::Taken)
            }
            _ => Ok(Verdict::Taken),
        }
    }

    /// The end of a procedure that a server was handed; whether somebody waited for it.
    pub fn procedure_ended(&self, id: u64, result: &Result<(), String>) -> bool {
        let hosts: Vec<Arc<RemoteHost>> = self.state.read().hosts.values().cloned().collect();
        hosts.iter().any(|host| host.procedure_ended(id, result.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::RegionFiles;
    use crate::lease::Lease;
    use crate::orders::{OrderIds, Wanted};
    use base::{Config, ManualClock, Rng};
    use fs::{MemVolume, SlowVolume, Trouble};
    use master::{HostError, RegionHost};
    use model::{RegionInfo, TableDescriptor, TableName};

    const NOW_MS: u64 = 1_000;

    fn roll() -> Arc<Roll> {
        roll_with(Trouble::default())
    }

    /// A master that leads, whose root directory is on a volume in that trouble.
    fn roll_with(trouble: Trouble) -> Arc<Roll> {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(NOW_MS as i64));
        let (name, rng) = (ServerName::new("m", 1, 1), Arc::new(Rng::seeded(1)));
        let volume = Arc::new(SlowVolume::new(Arc::new(MemVolume::new()), trouble));
        let files = RegionFiles::new(volume, "mem://nowhere/hbase", clock.clone(), rng, &Config::default(), &name);
        let means = Means {
            ids: OrderIds::of_master(1),
            active_ms: 1,
            lease: Arc::new(Lease::until(clock.clone(), u64::MAX)),
            files: files.expect("made"),
            call_timeout: Duration::from_secs(1),
            dialer: rpc::Dialer::Tcp,
            roll: OnceLock::new(),
            for_hbase: OnceLock::new(),
        };
        Arc::new(Roll::new(Arc::new(means), clock, 30_000))
    }

    /// A server that is let in, and the master's view of it.
    fn let_in(roll: &Arc<Roll>) -> (ServerName, Arc<RemoteHost>) {
        let request = pb::RegionServerStartupRequest {
            port: 7,
            server_start_code: 5,
            server_current_time: NOW_MS,
            ..Default::default()
        };
        let name = roll.startup(&request, "h").expect("let in");
        let host = roll.known(&name, "REPORT").expect("known");
        (name, host)
    }

    fn report(info: &RegionInfo, code: TransitionCode, id: u64) -> pb::RegionStateTransition {
        pb::RegionStateTransition {
            transition_code: code as i32,
            region_info: vec![convert::to_proto::region_info(info)],
            open_seq_num: Some(9),
            proc_id: vec![id as i64],
            ..Default::default()
        }
    }

    #[test]
    fn who_reports_again_that_hbase_meta_is_open_is_heard_before_it_is_read() {
        let roll = roll();
        let (name, host) = let_in(&roll);
        let meta = RegionInfo::meta();
        let is_taken = |code, id| matches!(roll.transition(&name, &report(&meta, code, id)), Ok(Verdict::Taken));
        let waiting = host.expect(meta.encoded_name(), Wanted::Open);
        let first = waiting.id;
        assert!(is_taken(TransitionCode::Opened, first), "it is open");
        drop(waiting);
        // The answer is lost. A get of hbase:meta finds that it is being opened, and the master orders it anew.
        let second = host.expect(meta.encoded_name(), Wanted::Open);
        assert_ne!(second.id, first);
        assert!(is_taken(TransitionCode::Opened, first), "it is open, the server says once more");
        drop(second);
        let closing = host.expect(meta.encoded_name(), Wanted::Closed);
        assert!(is_taken(TransitionCode::Closed, closing.id));
        drop(closing);
        let third = host.expect(meta.encoded_name(), Wanted::Open);
        assert!(!is_taken(TransitionCode::Opened, first), "it was closed, and perhaps open elsewhere, since");
        assert!(!is_taken(TransitionCode::Opened, first), "not either because it was said before");
        assert!(is_taken(TransitionCode::Opened, third.id));
    }

    /// Else the server, which opens it when that is done, and the new master wait for each other (seed 71084 of the simulated cluster).
    #[test]
    fn who_has_closed_hbase_meta_for_the_master_before_is_heard_before_it_is_read() {
        let roll = roll();
        let (name, host) = let_in(&roll);
        let meta = RegionInfo::meta();
        let opening = host.expect(meta.encoded_name(), Wanted::Open);
        let closed = roll.transition(&name, &report(&meta, TransitionCode::Closed, 1));
        assert!(matches!(closed, Ok(Verdict::Taken)));
        assert!(matches!(
            roll.transition(&name, &report(&meta, TransitionCode::Opened, opening.id)),
            Ok(Verdict::Taken)
        ));
        let region =
            RegionInfo::new(TableName::parse("t").expect("a name"), bytes::Bytes::new(), bytes::Bytes::new(), 1);
        assert!(
            roll.transition(&name, &report(&region, TransitionCode::Closed, 1)).is_err(),
            "where it is to be is not known yet"
        );
    }

    /// HBase's region servers would wait for minutes before they report it again, and close nothing meanwhile.
    #[tokio::test]
    async fn a_report_is_held_while_the_cluster_is_taken_over() {
        let roll = roll();
        let (name, host) = let_in(&roll);
        let table = TableName::parse("t").expect("a name");
        let region = RegionInfo::new(table, bytes::Bytes::new(), bytes::Bytes::new(), 1);
        let report = || vec![report(&region, TransitionCode::Closed, 1)];
        let told = crate::status::held(roll.clone(), name.clone(), report()).await.expect_err("regions are not known");
        assert_eq!(told.kind(), Kind::Io, "and not PleaseHold");
        let held = tokio::spawn(crate::status::held(roll.clone(), name, report()));
        let waiting = host.expect(region.encoded_name(), Wanted::Closed);
        assert_eq!(held.await.expect("no panic").expect("taken").error_message, None);
        drop(waiting);
    }

    #[tokio::test]
    async fn a_region_whose_directory_cannot_be_looked_at_was_not_ordered() {
        let trouble = Trouble::default();
        let (_, host) = let_in(&roll_with(trouble.clone()));
        trouble.fail(true);
        let table = TableName::parse("t").expect("a name");
        let info = RegionInfo::new(table.clone(), bytes::Bytes::new(), bytes::Bytes::new(), 1);
        let opened = host.open_region(info, Arc::new(TableDescriptor::new(table, []))).await;
        // A master that takes over asks that server again: it may have the region open.
        assert!(matches!(opened, Err(HostError::NotTaken(_))), "{opened:?}");
    }

    #[test]
    fn of_two_nodes_with_one_address_the_earlier_is_of_a_server_that_is_dead() {
        let (roll, name) = (roll(), |start_code| ServerName::new("h", 7, start_code));
        let nodes = |codes: &[u64]| codes.iter().map(|code| name(*code).to_string()).collect::<Vec<_>>();
        roll.nodes_are(&nodes(&[5, 9]));
        assert_eq!(roll.names(), [name(9)].into());
        assert!(roll.check_alive(&name(5), "REPORT").is_err() && roll.check_alive(&name(9), "REPORT").is_ok());
        // One that was known to live, and has a successor before its node goes.
        roll.nodes_are(&nodes(&[9, 12]));
        assert_eq!(roll.names(), [name(12)].into());
        roll.are_dead(&[name(12)]);
        assert_eq!((roll.names().len(), *roll.ready().borrow()), (0, 0));
    }
}
