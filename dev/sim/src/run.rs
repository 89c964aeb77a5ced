//! One seeded run: lives of a server under clients and faults, one action after the other, and the check of every promise
//! at each quiet moment.

use crate::Violation;
use crate::busy;
use crate::check;
use crate::disks::{DISKS, Named};
use crate::order::{Ending, Track};
use crate::progress;
use crate::promises::{Counts, Promises};
use crate::steps;
use crate::work::{self, CLIENTS, Desk};
use crate::world::{Life, POLICIES, START_MS, World, small_settings};
use base::{Clock, Rng};
use bytes::Bytes;
use fs::FaultKind;
use fs::mem::{Fault, Op};
use master::Caller;
use model::Durability;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::task::JoinHandle;

/// How long and how hard.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Actions of the schedule.
    pub steps: u64,
    /// Whether every event is printed.
    pub speak: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { steps: 160, speak: false }
    }
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say what they count")]
pub struct Summary {
    pub hash: u64,
    pub events: u64,
    pub steps: u64,
    pub lives: u64,
    pub crashes: u64,
    pub kills: u64,
    pub failed_starts: u64,
    pub faults: u64,
    pub checks: u64,
    pub flushes: u64,
    pub compactions: u64,
    pub splits: u64,
    pub merges: u64,
    pub rolls: u64,
    pub disk_acts: u64,
    pub busy_hours: u64,
    pub counts: Counts,
}

impl Summary {
    /// Adds another run's counts; the hashes are mixed.
    pub fn add(&mut self, other: &Summary) {
        self.hash = self.hash.rotate_left(5) ^ other.hash;
        self.events += other.events;
        self.steps += other.steps;
        self.lives += other.lives;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.failed_starts += other.failed_starts;
        self.faults += other.faults;
        self.checks += other.checks;
        self.flushes += other.flushes;
        self.compactions += other.compactions;
        self.splits += other.splits;
        self.merges += other.merges;
        self.rolls += other.rolls;
        self.disk_acts += other.disk_acts;
        self.busy_hours += other.busy_hours;
        let (mine, theirs) = (&mut self.counts, &other.counts);
        mine.acked += theirs.acked;
        mine.refused += theirs.refused;
        mine.maybe += theirs.maybe;
        mine.reads += theirs.reads;
        mine.scans += theirs.scans;
        mine.loads += theirs.loads;
        mine.retried_nonces += theirs.retried_nonces;
        mine.ddl += theirs.ddl;
        mine.at_risk += theirs.at_risk;
        mine.lost += theirs.lost;
    }
}

/// A violation and how to see it again.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The run.
    pub seed: u64,
    /// What was seen.
    pub violation: Violation,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}\n  again: cargo xtask sim --seed {}", self.seed, self.violation, self.seed)
    }
}

/// Clients that wait for what they have begun.
type Begun = Arc<Mutex<Vec<(usize, JoinHandle<()>)>>>;

/// How a life ends.
enum End {
    /// The machine or the process is gone.
    Crash,
    /// It was stopped cleanly.
    Stopped,
    /// The run is over.
    Done,
}

struct Schedule {
    rng: Rng,
    clients: Arc<Rng>,
    promises: Arc<Mutex<Promises>>,
    violation: Arc<Mutex<Option<Violation>>>,
    summary: Summary,
    left: u64,
    prepared: bool,
    /// A fault may be set: what fails now need not mean anything.
    faulty: bool,
    /// Lives are short and tables change often.
    churn: bool,
    /// Each life has its own limit for what recovery may hold in memory.
    mixed: bool,
}

/// What there is more of in a run with churn: the table changes, what is logged goes to files in part, regions split and merge, the
/// machine stops soon or at once.
const CHURN: [u64; 10] = [80, 80, 80, 80, 65, 75, 78, 95, 95, 97];

/// A life in so many begins with a busy hour.
const BUSY_LIVES: u64 = 6;

/// Shares of the memstores' memory for recovery: all goes through files, some of it, some more, nothing.
const RECOVERY_FRACTIONS: [&str; 4] = ["0", "0.0001", "0.0005", "1"];

/// Runs one seed.
///
/// # Errors
/// The first broken promise.
pub fn run(seed: u64, plan: &Plan) -> Result<Summary, Failed> {
    let rng = Rng::seeded(seed);
    let mut config = small_settings(&rng);
    // Half of the servers promise as HBase does by default: that the operating system has what is acknowledged.
    let relaxed = rng.one_in(2);
    config.set("hbase.wal.hsync", (!relaxed).to_string());
    let mut world = World::new(seed, config);
    // A third of the servers have other disks.
    if rng.one_in(3) {
        world = world.with_disks([Named::In, Named::In, if rng.one_in(2) { Named::In } else { Named::Out }]);
    }
    if plan.speak {
        world.trace.speak();
    }
    let mut schedule = Schedule {
        clients: Arc::new(Rng::seeded(rng.next_u64())),
        rng,
        promises: Arc::new(Mutex::new(Promises { relaxed, ..Promises::default() })),
        violation: Arc::default(),
        summary: Summary::default(),
        left: plan.steps,
        prepared: false,
        faulty: false,
        churn: false,
        mixed: false,
    };
    schedule.churn = schedule.rng.one_in(3);
    schedule.mixed = schedule.rng.one_in(2);
    let outcome = schedule.lives(&mut world);
    let mut summary = schedule.summary;
    (summary.hash, summary.events) = world.trace.hash();
    summary.counts = schedule.promises.lock().counts;
    outcome.map(|()| summary).map_err(|violation| Failed { seed, violation })
}

impl Schedule {
    fn lives(&mut self, world: &mut World) -> Result<(), Violation> {
        let mut failed_starts = 0;
        loop {
            // Sometimes the start itself meets a fault; two in a row are enough.
            if self.prepared && failed_starts < 2 && self.rng.one_in(4) {
                self.set_fault_at_start(world);
            }
            if self.mixed {
                let fraction = RECOVERY_FRACTIONS[self.rng.below(RECOVERY_FRACTIONS.len() as u64) as usize];
                world.config.set("basalt.recovery.memory.fraction", fraction);
            }
            let runtime = World::runtime();
            let mut life_of_logs = None;
            let outcome = runtime.block_on(async {
                match world.start().await {
                    Err(why) => Err(why),
                    Ok(life) => {
                        life_of_logs = Some(life.logs.clone());
                        Ok(self.live(world, life).await)
                    }
                }
            });
            // Whoever waits for a log is told that it is gone, so that nothing outlives the life.
            world.volume.watch(None);
            world.volume.set_capacity(None);
            let was_stopped = world.volume.is_stopped();
            world.volume.stop_after(0);
            for log in life_of_logs.iter().flatten() {
                let _gone = log.sync_once();
            }
            drop(runtime);
            drop(life_of_logs);
            if outcome.is_ok() {
                self.promises.lock().server_gone(world.archived());
            }
            self.summary.lives += 1;
            match outcome {
                Ok(Err(violation)) => return Err(violation),
                Ok(Ok(End::Done)) => return Ok(()),
                Ok(Ok(End::Crash)) => {
                    failed_starts = 0;
                    self.summary.crashes += 1;
                }
                Ok(Ok(End::Stopped)) => failed_starts = 0,
                Err(why) => {
                    world.trace.note(&format!("no start: {why}"));
                    if !self.faulty {
                        return Err(Violation(format!("the server does not start: {why}")));
                    }
                    failed_starts += 1;
                    self.promises.lock().start_broken_off();
                    self.summary.failed_starts += 1;
                }
            }
            // A clean stop leaves nothing unsynced that matters; the disk is asked all the same.
            let killed = self.rng.one_in(if was_stopped { 4 } else { 2 });
            let ending = if killed { Ending::Kill } else { Ending::Power };
            self.promises.lock().ended(ending);
            match ending {
                Ending::Kill => world.kill(),
                Ending::Power => world.crash(&self.rng, POLICIES[self.rng.below(4) as usize]),
            }
            self.summary.kills += u64::from(killed);
            self.faulty = false;
        }
    }

    async fn live(&mut self, world: &mut World, life: Arc<Life>) -> Result<End, Violation> {
        let desk = Desk {
            life: life.clone(),
            promises: self.promises.clone(),
            violation: self.violation.clone(),
            rng: self.clients.clone(),
            trace: world.trace.clone(),
        };
        self.promises.lock().started();
        if !self.prepared {
            let durability = [Durability::SyncWal, Durability::SyncWal, Durability::AsyncWal, Durability::FsyncWal];
            work::prepare(&desk, durability[self.rng.below(4) as usize]).await?;
            self.prepared = true;
        } else if !self.faulty || self.rng.one_in(2) {
            world.volume.clear_faults();
            self.faulty = false;
            if !self.check(world, &desk).await? {
                return Ok(End::Crash);
            }
            if self.rng.one_in(BUSY_LIVES) {
                busy::hour(&desk).await?;
                self.summary.busy_hours += 1;
            }
        }
        let mut clients: Vec<Option<JoinHandle<()>>> = (0..=CLIENTS).map(|_| None).collect();
        while self.left > 0 {
            self.left -= 1;
            progress::step();
            self.summary.steps += 1;
            if let Some(end) = self.act(world, &desk, &mut clients).await? {
                return Ok(end);
            }
            life.settle().await;
            if let Some(violation) = self.violation.lock().take() {
                return Err(violation);
            }
            if world.volume.is_stopped() || life.fatal().is_some() {
                world.trace.note("the server is gone");
                return Ok(End::Crash);
            }
            self.note_flushed(&life);
        }
        // The end of the run: everything is let go, merged into one file per store, stopped and started once more.
        world.volume.clear_faults();
        world.volume.set_capacity(None);
        self.faulty = false;
        if !self.check(world, &desk).await? {
            self.left = 1;
            return Ok(End::Crash);
        }
        self.compact_all(&life);
        if !self.check(world, &desk).await? {
            return Err(Violation(format!("without a fault: {:?}", life.fatal())));
        }
        Ok(End::Done)
    }

    /// Waits for a quiet moment without faults and checks everything. False when the server had to give up over an
    /// earlier fault.
    async fn check(&mut self, world: &World, desk: &Desk) -> Result<bool, Violation> {
        self.mend_disks(world, &desk.life).await;
        let quiet = check::quiet(desk).await;
        if let Some(violation) = self.violation.lock().take() {
            return Err(violation);
        }
        if desk.life.fatal().is_some() {
            return Ok(false);
        }
        if !quiet {
            let procedures = desk.life.master.unfinished_procedures();
            let busy = desk.promises.lock().busy;
            return Err(Violation(
                format!(
                    "without faults it does not become quiet: {procedures} procedures, {busy} calls, stalled {:?}",
                    desk.life.logs.iter().map(|log| log.is_stalled()).collect::<Vec<_>>()
                ) + &check::not_open(&desk.life),
            ));
        }
        world.trace.note("check");
        self.summary.checks += 1;
        let mut promises = self.promises.lock().clone();
        check::check_all(&desk.life, &mut promises).await?;
        *self.promises.lock() = promises;
        Ok(true)
    }

    fn roll(&mut self, world: &World, desk: &Desk, clients: &mut [Option<JoinHandle<()>>]) {
        let (begun, cut) = (Begun::default(), self.promises.lock().tick());
        if self.promises.lock().relaxed && self.rng.one_in(2) {
            self.write_during_the_roll(world, desk, clients, &begun);
        }
        for (at, log) in desk.life.logs.iter().enumerate() {
            if let Ok(rolled) = log.roll() {
                if at == 0 && rolled.is_some() {
                    // The file before is on the disk.
                    let in_it = |_: &str, track: &Track| track.acked.is_some_and(|acked| acked <= cut);
                    self.promises.lock().make_safe(in_it, false);
                }
                self.summary.rolls += 1;
                let _kept = log.archive_flushed();
            }
        }
        world.set_sync_hook(None);
        for (client, running) in begun.lock().drain(..) {
            clients[client] = Some(running);
        }
    }

    /// Has clients write while the old file is being synced, as they may on an unsynced log, and the machine stop just then, now and then.
    fn write_during_the_roll(&mut self, world: &World, desk: &Desk, clients: &[Option<JoinHandle<()>>], begun: &Begun) {
        let log = desk.life.logs[0].clone();
        let Some(old) = log.files().into_iter().find(|file| file.current) else { return };
        let idle = |client: &usize| clients[*client].as_ref().is_none_or(|running| running.is_finished());
        let writers: Vec<usize> = (0..CLIENTS as usize).filter(idle).collect();
        let stops = self.rng.one_in(3);
        self.faulty |= stops;
        let (desk, begun, volume) = (desk.clone(), begun.clone(), world.volume.clone());
        let work = move || {
            desk.trace.note("during a roll");
            for client in writers {
                let mut work = Box::pin(desk.clone().work_briefly(client as u64));
                // Up to where it waits for the log; the rest when the roll is over.
                if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                    begun.lock().push((client, tokio::spawn(work)));
                }
                // Who waits is told.
                let _outcome = log.write_once();
            }
            if stops {
                volume.stop_after(0);
            }
        };
        world.set_sync_hook(Some((old.path, Box::new(work))));
    }

    /// Something happens to the disks beside the root directory's, or is said of them.
    fn act_on_disks(&mut self, world: &World, life: &Arc<Life>) {
        let Some(disks) = &world.disks else { return };
        self.summary.disk_acts += 1;
        let disk = self.rng.below(DISKS.len() as u64) as usize;
        match self.rng.below(12) {
            0..=1 => {
                use std::io::ErrorKind::{NotFound, Other, ReadOnlyFilesystem, StorageFull};
                let kind = [Other, NotFound, ReadOnlyFilesystem, StorageFull][self.rng.below(4) as usize];
                world.trace.note(&format!("disk {disk} fails: {kind:?}"));
                disks.fail(disk, Some(kind));
                self.faulty = true;
                self.summary.faults += 1;
            }
            2 => {
                world.trace.note(&format!("disk {disk} is well"));
                disks.fail(disk, None);
            }
            3 => {
                // Slow, at a standstill for a while, or as before.
                let ms = [40, 2_500, 0][self.rng.below(3) as usize];
                world.trace.note(&format!("disk {disk} takes {ms} ms"));
                disks.slow(disk, ms);
            }
            4..=6 => {
                world.clock.advance_ms([1_000, 16_000][self.rng.below(2) as usize]);
                life.server.look_after_volumes();
            }
            7..=9 => {
                let mut named = disks.named();
                named[disk] = [Named::Out, Named::In, Named::Small, Named::Drains][self.rng.below(4) as usize];
                let taken = life.read_volumes(named);
                world.trace.note(&format!("disks {named:?}: {taken}"));
            }
            _ => life.drain(),
        }
    }

    /// All disks are well, and so known to the server.
    async fn mend_disks(&self, world: &World, life: &Arc<Life>) {
        if let Some(disks) = &world.disks {
            disks.mend();
            life.look_at_disks(&world.clock).await;
        }
    }

    fn compact_all(&mut self, life: &Arc<Life>) {
        for region in sorted_regions(life) {
            let _may_have_gone = life.server.request_compaction(region.info().encoded_name(), None, true);
            while life.server.step_compaction() {
                self.summary.compactions += 1;
            }
        }
    }

    async fn act(
        &mut self,
        world: &mut World,
        desk: &Desk,
        clients: &mut [Option<JoinHandle<()>>],
    ) -> Result<Option<End>, Violation> {
        let life = &desk.life;
        let choice = match self.churn && self.rng.one_in(3) {
            true => CHURN[self.rng.below(CHURN.len() as u64) as usize],
            false => self.rng.below(100),
        };
        world.trace.note(&format!("act {choice}"));
        world.clock.advance_ms(self.rng.below(40));
        if world.disks.is_some() && self.rng.one_in(5) {
            self.act_on_disks(world, life);
            return Ok(None);
        }
        match choice {
            0..=44 => {
                let client = self.rng.below(CLIENTS) as usize;
                if clients[client].as_ref().is_none_or(|running| running.is_finished()) {
                    clients[client] = Some(tokio::spawn(desk.clone().work(client as u64)));
                }
            }
            // The calls so far came together over one connection.
            45..=48 => life.service.on_batch_end(),
            49..=60 => {
                for log in &life.logs {
                    // Who waits is told.
                    let _outcome = log.sync_once();
                }
            }
            61..=64 => {
                life.server.step_chores();
                self.summary.flushes += u64::from(life.server.step_flush());
                self.summary.compactions += u64::from(life.server.step_compaction());
            }
            65..=70 => {
                if let Some(region) = self.any_region(life) {
                    let families = [vec![], vec!["f"], vec!["g"]][self.rng.below(3) as usize]
                        .iter()
                        .map(|name| Bytes::from(*name))
                        .collect();
                    if life.server.flush_region(&region, families).is_ok() {
                        self.summary.flushes += 1;
                    }
                }
            }
            71..=74 => {
                if let Some(region) = self.any_region(life) {
                    let _refused = life.server.request_compaction(&region, None, self.rng.one_in(2));
                }
                self.summary.compactions += u64::from(life.server.step_compaction());
            }
            75..=77 => self.roll(world, desk, clients),
            78..=79 => self.split_or_merge(life),
            80..=82 => {
                let last = clients.len() - 1;
                if clients[last].as_ref().is_none_or(|running| running.is_finished()) {
                    clients[last] = Some(tokio::spawn(desk.clone().change()));
                }
            }
            83 => self.alter(life),
            84 => {
                if self.rng.one_in(2) {
                    steps::clean_mob_files(desk);
                }
                let master = life.master.clone();
                tokio::spawn(async move {
                    let _later = master.run_catalog_janitor().await;
                    let _later = master.run_cleaners().await;
                });
            }
            85..=87 => self.move_clock(world),
            88..=91 => self.set_fault(world),
            92 => {
                let used = world.volume.used_bytes();
                let room = if self.rng.one_in(2) { Some(used + self.rng.below(3000)) } else { None };
                world.volume.set_capacity(room);
                world.trace.note(&format!("room {room:?}"));
                self.faulty |= room.is_some();
                self.summary.faults += u64::from(room.is_some());
            }
            93..=94 => {
                world.volume.set_capacity(None);
                world.volume.clear_faults();
            }
            95..=96 => {
                // The machine stops at one of the next calls.
                world.volume.stop_after(self.rng.below(60));
                self.faulty = true;
            }
            97 => return Ok(Some(End::Crash)),
            98 => {
                world.volume.clear_faults();
                world.volume.set_capacity(None);
                self.faulty = false;
                if !self.check(world, desk).await? {
                    return Ok(Some(End::Crash));
                }
            }
            _ => {
                world.volume.clear_faults();
                world.volume.set_capacity(None);
                self.mend_disks(world, life).await;
                let stopped = life.stop().await;
                if let Err(why) = &stopped
                    && !self.faulty
                    && life.fatal().is_none()
                {
                    return Err(Violation(format!("a clean stop failed without a fault: {why}")));
                }
                if stopped.is_ok() {
                    self.promises.lock().make_safe(|_, _| true, true);
                }
                return Ok(Some(End::Stopped));
            }
        }
        Ok(None)
    }

    /// What regions with empty memstores have acknowledged is in their files.
    fn note_flushed(&self, life: &Life) {
        let table = work::table();
        let mut promises = self.promises.lock();
        for region in life.server.regions() {
            let info = region.info();
            if info.table == table && region.stats().memstore_data_bytes == 0 {
                promises.make_safe(|row, _| info.contains(row.as_bytes()), true);
            }
        }
    }

    fn any_region(&self, life: &Life) -> Option<String> {
        let regions = sorted_regions(life);
        let at = self.rng.below(regions.len() as u64) as usize;
        regions.get(at).map(|region| region.info().encoded_name().to_string())
    }

    fn split_or_merge(&mut self, life: &Arc<Life>) {
        {
            let mut promises = self.promises.lock();
            promises.reshaped_in = Some(promises.life);
        }
        // The table that families and rows come to and go from, too.
        let changing = self.churn && self.rng.one_in(2);
        let table = if changing { work::changing() } else { work::table() };
        let regions: Vec<_> = {
            let cluster = life.master.cluster();
            cluster.regions_of(&table).filter(|node| node.is_live()).map(|node| node.info.clone()).collect()
        };
        let (master, at) = (life.master.clone(), self.rng.below(regions.len() as u64) as usize);
        let Some(region) = regions.get(at).cloned() else { return };
        if regions.len() > 1 && self.rng.one_in(2) {
            let Some(next) = regions.get(at + 1) else { return };
            let names = [region.encoded_name().to_string(), next.encoded_name().to_string()];
            self.summary.merges += 1;
            tokio::spawn(async move { master.merge_regions(&names, false, &Caller::default()).await.map(|_| ()) });
        } else if regions.len() < 6 {
            let row = match changing {
                true => format!("{}m", (b'a' + self.rng.below(26) as u8) as char),
                false => format!("{:02}", self.rng.below(100)),
            };
            let row = self.rng.one_in(2).then(|| Bytes::from(row));
            self.summary.splits += 1;
            tokio::spawn(async move {
                master.split_region(region.encoded_name(), row, &Caller::default()).await.map(|_| ())
            });
        }
    }

    /// Changes how the main table stores its cells, while it is used.
    fn alter(&mut self, life: &Arc<Life>) {
        let family = work::stored_otherwise(life, &self.rng, self.rng.below(2) as usize);
        let master = life.master.clone();
        tokio::spawn(async move { master.modify_family(&work::table(), family, &Caller::default()).await.map(|_| ()) });
    }

    fn move_clock(&mut self, world: &World) {
        let now = world.clock.now_ms().0;
        let to = match self.rng.below(5) {
            0 => now - 3_600_000,
            1 => now + 3_600_000,
            2 => now - i64::try_from(self.rng.below(5_000)).unwrap_or(0),
            3 => START_MS,
            _ => now + i64::try_from(self.rng.below(100_000)).unwrap_or(0),
        };
        world.clock.set_wall_ms(to);
        self.summary.faults += 1;
    }

    fn set_fault(&mut self, world: &World) {
        let nth = 1 + self.rng.below(12);
        let disk = [FaultKind::Io, FaultKind::Full, FaultKind::TimedOut][self.rng.below(3) as usize];
        let fault = match self.rng.below(6) {
            0 => Fault { op: Some(Op::Sync), path_contains: None, nth, kind: disk, forever: false },
            1 => Fault { op: Some(Op::Sync), path_contains: Some("WALs".into()), nth: 1, kind: disk, forever: false },
            2 => {
                let kind = [FaultKind::ShortRead, FaultKind::TimedOut, FaultKind::Io][self.rng.below(3) as usize];
                Fault { op: Some(Op::Read), path_contains: None, nth, kind, forever: false }
            }
            3 => {
                let family = ["/f/", "/g/"][self.rng.below(2) as usize];
                let kind = FaultKind::FlippedBit;
                Fault { op: Some(Op::Read), path_contains: Some(family.into()), nth, kind, forever: false }
            }
            4 => Fault { op: Some(Op::Rename), path_contains: None, nth: 1, kind: disk, forever: false },
            _ => Fault { op: None, path_contains: None, nth: nth * 5, kind: disk, forever: false },
        };
        world.trace.note(&format!("{fault:?}"));
        world.volume.inject(fault);
        self.faulty = true;
        self.summary.faults += 1;
    }

    fn set_fault_at_start(&mut self, world: &World) {
        if let Some(disks) = &world.disks
            && self.rng.one_in(4)
        {
            // One that is not there is not gone on without.
            disks.fail(self.rng.below(DISKS.len() as u64) as usize, Some(std::io::ErrorKind::Other));
            self.faulty = true;
            self.summary.faults += 1;
            return;
        }
        match self.rng.below(3) {
            0 => world.volume.stop_after(self.rng.below(400)),
            1 => {
                let kind = [FaultKind::Io, FaultKind::TimedOut, FaultKind::ShortRead, FaultKind::Full]
                    [self.rng.below(4) as usize];
                world.volume.fail_op(1 + self.rng.below(300), kind);
            }
            // It lasts: some regions cannot be opened, whatever else goes on meanwhile.
            _ => world.volume.inject(Fault {
                op: Some([Op::Open, Op::Create, Op::Read, Op::RemoveFile, Op::SyncDir][self.rng.below(5) as usize]),
                path_contains: Some("data/default/".into()),
                nth: 1 + self.rng.below(30),
                kind: [FaultKind::Io, FaultKind::Full][self.rng.below(2) as usize],
                forever: true,
            }),
        }
        self.faulty = true;
        self.summary.faults += 1;
    }
}

/// Regions that are online, in the order of their names: the server's own order is nobody's promise.
fn sorted_regions(life: &Life) -> Vec<Arc<region::Region>> {
    let mut regions = life.server.regions();
    regions.sort_by(|a, b| a.info().name().cmp(b.info().name()));
    regions
}
