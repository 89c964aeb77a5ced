//! The world of a cluster: its processes, their time, and who lives when.

use super::client::Caller;
use super::ensemble::Ensemble;
use super::hdfs::Hdfs;
use super::network::Net;
use super::process::{Main, Process};
use super::servers::{self, ServerDefect, Status, Surroundings};
use crate::progress;
use crate::trace::Trace;
use crate::world::START_MS;
use base::{Config, ManualClock, Rng};
use master::Master;
use model::ServerName;
use parking_lot::Mutex;
use regionserver::RegionServer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The world's time goes on by as much.
pub const SLICE_MS: u64 = 10;
/// The ensemble ends a session after so long a silence.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Clocks differ by so much at most.
const MOST_SKEW_MS: u64 = 3_000;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A region server.
    Server,
    /// A master.
    Master,
}

/// A place for processes of one role: each life is another process.
struct Seat {
    name: String,
    role: Role,
    host: String,
    skew_ms: i64,
    /// It loses or wins a millisecond each so many slices; 0: never.
    drift_slices: i64,
    process: Option<Process>,
    status: Arc<Status>,
    /// It does not run until then.
    stopped_until_ms: u64,
    /// It is started again then.
    starts_at_ms: Option<u64>,
    lives: u64,
}

/// All of it.
pub struct Cluster {
    /// The volume.
    pub hdfs: Hdfs,
    /// The ensemble.
    pub ensemble: Ensemble,
    /// The network.
    pub net: Net,
    /// What happened.
    pub trace: Arc<Trace>,
    /// What the schedule draws.
    pub rng: Rng,
    config: Config,
    seats: Vec<Seat>,
    carrier: Process,
    clients: Option<Process>,
    clock: Arc<ManualClock>,
    now_ms: u64,
    seed: u64,
    lives: u64,
    server_defect: Option<ServerDefect>,
    /// How processes ended by themselves, and how often.
    pub ends: BTreeMap<String, u64>,
}

/// Settings under which things happen soon.
pub fn settings(rng: &Rng) -> Config {
    let mut config = crate::world::small_settings(rng);
    let mut set = |key: &str, value: &str| config.set(key, value.to_owned());
    set("hbase.master.wait.on.regionservers.interval", "300");
    set("hbase.master.wait.on.regionservers.timeout", "2000");
    set("basalt.master.rpc.timeout", "3000");
    set("hbase.balancer.period", "10000");
    config
}

impl Cluster {
    /// A cluster of so many region servers and masters, none of which has started yet.
    pub fn new(seed: u64, region_servers: usize, masters: usize, config: Config) -> Cluster {
        let trace: Arc<Trace> = Arc::default();
        let rng = Rng::seeded(seed ^ 0x434C_5553);
        let clock = Arc::new(ManualClock::new(START_MS));
        let idle: Main = Box::pin(std::future::pending());
        let carrier = Process::start("network", &trace, Arc::new(ManualClock::new(START_MS)), move |_| idle);
        let net = Net::new(seed, carrier.handle().clone());
        let ensemble = Ensemble::new(seed, clock.clone(), SESSION_TIMEOUT);
        let seat = |role: Role, number: usize| {
            let (name, host) = match role {
                Role::Server => (format!("rs{number}"), format!("10.0.1.{number}")),
                Role::Master => (format!("m{number}"), format!("10.0.2.{number}")),
            };
            let skew_ms = i64::try_from(rng.below(2 * MOST_SKEW_MS)).unwrap_or(0) - MOST_SKEW_MS as i64;
            let drift_slices = [0, 40, -40, 150, -150][rng.below(5) as usize];
            Seat {
                name,
                role,
                host,
                skew_ms,
                drift_slices,
                process: None,
                status: Arc::default(),
                stopped_until_ms: 0,
                starts_at_ms: None,
                lives: 0,
            }
        };
        let seats =
            (1..=masters).map(|n| seat(Role::Master, n)).chain((1..=region_servers).map(|n| seat(Role::Server, n)));
        let seats = seats.collect();
        Cluster {
            hdfs: Hdfs::new(seed),
            ensemble,
            net,
            trace,
            rng,
            config,
            seats,
            carrier,
            clients: None,
            clock,
            now_ms: 0,
            seed,
            lives: 0,
            server_defect: None,
            ends: BTreeMap::new(),
        }
    }

    /// Region servers that start from now on have this bug.
    pub fn plant(&mut self, defect: ServerDefect) {
        self.server_defect = Some(defect);
    }

    /// The world's time since it began.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Names of the seats.
    pub fn names(&self, role: Role) -> Vec<String> {
        self.seats.iter().filter(|seat| seat.role == role).map(|seat| seat.name.clone()).collect()
    }

    fn seat(&mut self, name: &str) -> &mut Seat {
        self.seats.iter_mut().find(|seat| seat.name == name).expect("a seat of that name")
    }

    /// What the world sees of the process on a seat.
    pub fn status(&self, name: &str) -> Arc<Status> {
        self.seats.iter().find(|seat| seat.name == name).expect("a seat of that name").status.clone()
    }

    /// Whether a process lives on the seat.
    pub fn lives(&self, name: &str) -> bool {
        self.seats.iter().any(|seat| seat.name == name && seat.process.is_some())
    }

    /// Starts the process of a seat.
    pub fn start(&mut self, name: &str) {
        self.lives += 1;
        let wall_ms = START_MS + i64::try_from(self.now_ms).unwrap_or(0);
        let (hdfs, ensemble, net) = (self.hdfs.clone(), self.ensemble.clone(), self.net.clone());
        let (config, unique, seed) = (self.config.clone(), self.lives, self.seed);
        let (trace, defect) = (self.trace.clone(), self.server_defect);
        trace.note(&format!("{name} starts"));
        let seat = self.seat(name);
        seat.lives += 1;
        (seat.starts_at_ms, seat.stopped_until_ms) = (None, 0);
        seat.status = Arc::default();
        let clock = Arc::new(ManualClock::new(wall_ms + seat.skew_ms));
        let around = Surroundings {
            hdfs,
            ensemble,
            net,
            clock: clock.clone(),
            rng: Arc::new(Rng::seeded(seed ^ (unique << 32))),
            config,
            host: seat.host.clone(),
            unique,
            defect,
        };
        let status = seat.status.clone();
        seat.process = Some(match seat.role {
            Role::Server => Process::start(name, &trace, clock, servers::region_server(around, status)),
            Role::Master => Process::start(name, &trace, clock, servers::master(around, status)),
        });
    }

    /// Ends the process of a seat as `kill -9` does, and starts another after `again_after_ms`.
    pub fn kill(&mut self, name: &str, again_after_ms: Option<u64>) {
        let (now_ms, net, trace) = (self.now_ms, self.net.clone(), self.trace.clone());
        let seat = self.seat(name);
        seat.starts_at_ms = again_after_ms.map(|ms| now_ms + ms);
        if let Some(process) = seat.process.take() {
            trace.note(&format!("{name} is killed"));
            net.forget(process.gate());
            process.kill();
        }
    }

    /// The process of a seat does not run for so long.
    pub fn stop(&mut self, name: &str, ms: u64) {
        self.trace.note(&format!("{name} stands still for {ms} ms"));
        let until_ms = self.now_ms + ms;
        self.seat(name).stopped_until_ms = until_ms;
    }

    /// The process of a seat goes on at once, and nothing is to happen to it at any call.
    pub fn wake(&mut self, name: &str) {
        let now_ms = self.now_ms;
        let seat = self.seat(name);
        seat.stopped_until_ms = seat.stopped_until_ms.min(now_ms);
        if let Some(process) = &seat.process {
            process.gate().spare();
        }
    }

    /// The process of a seat.
    pub fn process(&self, name: &str) -> Option<&Process> {
        self.seats.iter().find(|seat| seat.name == name).and_then(|seat| seat.process.as_ref())
    }

    /// Starts the process of the clients, if it has not begun. Its runtime, and what a client is made of.
    pub fn clients(&mut self) -> (Handle, Arc<Caller>) {
        self.patient_clients(Duration::from_secs(4))
    }

    /// The same with a client that waits so long for an answer.
    pub fn patient_clients(&mut self, patience: Duration) -> (Handle, Arc<Caller>) {
        let process = self.clients.get_or_insert_with(|| {
            let idle: Main = Box::pin(std::future::pending());
            Process::start("clients", &self.trace, Arc::new(ManualClock::new(START_MS)), move |_| idle)
        });
        let gate = process.gate().clone();
        let session = self.ensemble.session(gate.clone());
        let keeping = session.clone();
        process.handle().spawn(async move { keeping.keep().await });
        (process.handle().clone(), Arc::new(Caller::new(&self.net, session, gate, patience)))
    }

    /// One slice of time passes, for everybody who lives and does not stand still.
    ///
    /// # Errors
    /// A process panicked.
    pub fn step(&mut self) -> Result<(), String> {
        progress::step();
        self.now_ms += SLICE_MS;
        self.clock.advance_ms(SLICE_MS);
        self.hdfs.set_now_ms(self.now_ms);
        self.ensemble.set_now_ms(self.now_ms);
        self.carrier.live(SLICE_MS);
        // Who comes first changes.
        let count = self.seats.len();
        let first = self.rng.below(count as u64) as usize;
        for at in (0..count).map(|n| (first + n) % count) {
            self.live(at)?;
        }
        if let Some(clients) = &mut self.clients {
            clients.live(SLICE_MS);
            if let Some(text) = clients.panicked() {
                return Err(format!("a client panicked: {text}"));
            }
        }
        let due: Vec<String> = self
            .seats
            .iter()
            .filter(|seat| seat.process.is_none() && seat.starts_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms))
            .map(|seat| seat.name.clone())
            .collect();
        due.iter().for_each(|name| self.start(name));
        Ok(())
    }

    fn live(&mut self, at: usize) -> Result<(), String> {
        let slices = i64::try_from(self.now_ms / SLICE_MS).unwrap_or(0);
        let seat = &mut self.seats[at];
        let Some(process) = &mut seat.process else { return Ok(()) };
        let mut ms = SLICE_MS;
        if seat.drift_slices != 0 && slices % seat.drift_slices == 0 {
            ms = if seat.drift_slices > 0 { ms + 1 } else { ms - 1 };
        }
        if seat.stopped_until_ms > self.now_ms {
            process.sleep_through(ms);
            return Ok(());
        }
        process.live(ms);
        if let Some(text) = process.panicked() {
            return Err(format!("{} panicked: {text}", seat.name));
        }
        if process.is_inside_a_call() {
            // It stands still there as long as the schedule says.
            seat.stopped_until_ms = self.now_ms + 500 + self.rng.below(25_000);
        }
        let ended = seat.status.ended.lock().clone();
        let (name, is_dead) = (seat.name.clone(), process.gate().is_dead());
        if is_dead || ended.is_some() {
            let why = ended.unwrap_or_else(|| "it was killed inside a call".to_owned());
            self.trace.note(&format!("{name} has ended: {why}"));
            *self.ends.entry(why).or_default() += 1;
            let again_ms = 500 + self.rng.below(4_000);
            self.kill(&name, Some(again_ms));
        }
        Ok(())
    }

    /// Time passes until `is_so`, for so long at most; whether it is.
    ///
    /// # Errors
    /// A process panicked.
    pub fn until(&mut self, at_most_ms: u64, mut is_so: impl FnMut(&mut Cluster) -> bool) -> Result<bool, String> {
        let end_ms = self.now_ms + at_most_ms;
        while self.now_ms < end_ms {
            if is_so(self) {
                return Ok(true);
            }
            self.step()?;
        }
        Ok(is_so(self))
    }

    /// Has a client do something, while time passes for so long at most; what it came to.
    ///
    /// # Errors
    /// It did not end, or a process panicked.
    pub fn wait_for<T: Send + 'static>(
        &mut self,
        at_most_ms: u64,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let (handle, _) = self.clients();
        let done: Arc<Mutex<Option<T>>> = Arc::default();
        let here = done.clone();
        let task = handle.spawn(async move {
            let result = work.await;
            *here.lock() = Some(result);
        });
        let is_done = self.until(at_most_ms, |_| done.lock().is_some())?;
        task.abort();
        let result = done.lock().take();
        result.filter(|_| is_done).ok_or_else(|| format!("it does not end within {at_most_ms} ms"))
    }

    /// The master that leads, if one does: the first whose own lease lets it.
    pub fn leader(&self) -> Option<Arc<Master>> {
        let masters = self.seats.iter().filter(|seat| seat.role == Role::Master && seat.process.is_some());
        masters.filter_map(|seat| seat.status.master.lock().as_ref()?.upgrade()).find(|master| !master.is_stopping())
    }

    /// Region servers that serve: their names, and until when they answer.
    pub fn serving(&self) -> Vec<(String, ServerName, Arc<RegionServer>, bool)> {
        let seats = self.seats.iter().filter(|seat| seat.role == Role::Server && seat.process.is_some());
        seats
            .filter_map(|seat| {
                let server = seat.status.server.lock().as_ref()?.upgrade()?;
                let name = seat.status.name.lock().clone()?;
                let holds = seat.status.lease.lock().as_ref().is_some_and(|lease| lease.holds());
                Some((seat.name.clone(), name, server, holds))
            })
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let names: Vec<String> = self.seats.iter().map(|seat| seat.name.clone()).collect();
        names.iter().for_each(|name| self.kill(name, None));
    }
}
