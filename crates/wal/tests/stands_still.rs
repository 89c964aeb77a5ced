//! The log on a tier of two volumes, of which one or both stand still.

use crate::common::one_cell;
use basalt_wal::{EntryKey, Level, Log, LogOptions, Reader, Ticket};
use base::{Clock, Config, Rng, SeqId, SystemClock, TimestampMs};
use fs::tiered::{Attached, Rules, TieredVolume};
use fs::{FileKind, FilePath, MemVolume, Placement, SlowVolume, Trouble, Volume};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

type Shared<T> = Arc<Mutex<Vec<T>>>;

struct Machine {
    volume: Arc<TieredVolume>,
    troubles: [Trouble; 2],
    threads: Shared<JoinHandle<()>>,
    told: Shared<String>,
}

#[allow(clippy::disallowed_methods, reason = "threads of a test")]
fn machine() -> Machine {
    let troubles = [Trouble::default(), Trouble::default()];
    let attached = |at: usize| {
        let volume: Arc<dyn Volume> = Arc::new(SlowVolume::new(Arc::new(MemVolume::new()), troubles[at].clone()));
        Attached { spec: format!("logs:ssd:/mnt/{at}").parse().expect("legal"), volume: Some(volume), claim: None }
    };
    let rules = Rules { kinds: [(FileKind::Log.name(), "logs".to_owned())].into(), ..Rules::default() };
    let (told, threads): (Shared<String>, Shared<JoinHandle<()>>) = (Shared::default(), Shared::default());
    let (telling, starting) = (told.clone(), threads.clone());
    let tell = Arc::new(move |sentence| telling.lock().expect("free").push(sentence));
    let home = Arc::new(MemVolume::new());
    let attached = TieredVolume::attach(home, vec![attached(0), attached(1)], rules, &Rng::seeded(3), tell);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let volume = attached.expect("attached").0.measured(&clock).with_threads(Arc::new(move |name, body| {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        starting.lock().expect("free").push(thread);
        Ok(())
    }));
    Machine { volume: Arc::new(volume), troubles, threads, told }
}

impl Machine {
    fn log(&self) -> Arc<Log> {
        let options = LogOptions::on(&*self.volume, &Config::default());
        let options = LogOptions { placement: Placement::of(FileKind::Log), ..options };
        let clock = Arc::new(SystemClock::new());
        Log::create(self.volume.clone(), FilePath::new("WALs/h,1,2"), "h,1,2", options, clock).expect("created")
    }

    /// How long the oldest call to each volume takes that has not returned.
    fn waits(&self) -> [Duration; 2] {
        let status = self.volume.status();
        [0, 1].map(|at| Duration::from_micros(status[at].speed.waits_us))
    }

    /// The ids in the files of the log; which are in two is told by the second.
    fn read_back(&self) -> (Vec<u64>, usize) {
        let (dir, mut ids) = (FilePath::new("WALs/h,1,2"), Vec::new());
        for entry in self.volume.list(&dir).expect("listed") {
            let mut reader = Reader::open(&*self.volume, &dir.join(&entry.name)).expect("opened");
            while let Some(entry) = reader.next().expect("read") {
                ids.push(entry.key.seq_id.0);
            }
        }
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        let twice = all - ids.len();
        (ids, twice)
    }
}

fn append(log: &Arc<Log>, seq: u64) -> Ticket {
    let (region, cells) = (Arc::<str>::from("r"), one_cell());
    let key = EntryKey::new(&region, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
    log.append(&key, cells.bytes(), cells.len()).expect("room")
}

/// A disk that has its calls wait for ever held up every write for as long.
#[test]
fn a_sync_that_does_not_return_costs_a_second_and_the_log_goes_on_elsewhere() {
    let machine = machine();
    let log = machine.log();
    thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        append(&log, 1).wait().expect("synced");
        let used = machine.volume.status().iter().position(|status| status.files > 0).expect("a file is on one");
        machine.troubles[used].stand_still(true);
        append(&log, 2).wait().expect("synced on the other, while the first stands still");
        assert!(machine.waits()[used] >= Duration::from_secs(1), "{:?}", machine.waits());
        for seq in 3..=20 {
            append(&log, seq).wait().expect("synced");
        }
        assert_eq!((log.stats().rescues, log.failure().is_none()), (1, true));
        let told = machine.told.lock().expect("free").clone();
        assert!(told.iter().any(|told| told.contains("has not returned for a second")), "{told:?}");
        machine.troubles[used].stand_still(false);
        log.close().expect("closed");
        syncer.join().expect("no panic").expect("it did not fail");
    });
    drop(log);
    let threads = std::mem::take(&mut *machine.threads.lock().expect("free"));
    assert_eq!(threads.len(), 2, "one for each file");
    threads.into_iter().for_each(|thread| thread.join().expect("it ends with its file"));
    assert_eq!(machine.read_back(), ((1..=20).collect(), 1), "what stood still was written after all");
}

#[test]
fn where_no_volume_answers_the_log_waits_and_does_not_fail() {
    let machine = machine();
    let log = machine.log();
    thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        append(&log, 1).wait().expect("synced");
        machine.troubles.iter().for_each(|trouble| trouble.stand_still(true));
        let waiting = append(&log, 2);
        // The first is given up, the second does not answer either.
        while machine.waits().iter().all(|waits| *waits < Duration::from_millis(1500)) {
            thread::park_timeout(Duration::from_millis(5));
        }
        assert!(!waiting.is_done_at(Level::Synced) && log.failure().is_none());
        machine.troubles.iter().for_each(|trouble| trouble.stand_still(false));
        waiting.wait().expect("synced once they answer");
        append(&log, 3).wait().expect("synced");
        log.close().expect("closed");
        syncer.join().expect("no panic").expect("it did not fail");
    });
    assert_eq!(machine.read_back().0, [1, 2, 3]);
}
