//! Playing load: clients that do one operation after the other, as fast as they can or at a fixed rate.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::figures::Measured;
use tools::stats::{Meter, PreciseTimer, Usage, busy_ns, own_cpu_ns};

/// A client: does one operation when it is told to.
pub trait Worker: Send + 'static {
    /// One operation; how many rows it carried. `None`: there is nothing left to do.
    fn step(&mut self) -> impl Future<Output = anyhow::Result<Option<u64>>> + Send;
}

/// How long, how fast.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Not measured.
    pub warm_up: Duration,
    /// Measured; `None` for as long as there is something to do.
    pub measure: Option<Duration>,
    /// Operations per second of all clients together; `None` for as many as possible.
    pub per_second: Option<f64>,
}

/// Operations in a tenth of a second are counted together.
const INTERVAL: Duration = Duration::from_millis(100);

/// Looks at the server and at ourselves, before and after.
pub struct Watch {
    pids: Vec<u32>,
    server: Vec<Usage>,
    own_ns: u64,
    busy_ns: u64,
    start: Instant,
}

impl Watch {
    /// Looks for the first time at the processes that are the server.
    pub fn start(pids: &[u32]) -> Watch {
        pids.iter().for_each(|pid| Usage::forget_peak(*pid));
        let server = usage(pids);
        Watch { pids: pids.to_vec(), server, own_ns: own_cpu_ns(), busy_ns: busy_ns(), start: Instant::now() }
    }

    /// What was used since.
    pub fn finish(self, into: &mut Measured) {
        let used = usage(&self.pids).into_iter().zip(self.server).map(|(now, then)| now - then);
        into.usage = used.reduce(|sum, one| sum + one).unwrap_or_default();
        into.client_cpu_ns = own_cpu_ns() - self.own_ns;
        let took = self.start.elapsed().as_nanos() as f64;
        let ours = into.usage.cpu_ns + into.client_cpu_ns;
        into.others_cores = busy_ns().saturating_sub(self.busy_ns).saturating_sub(ours) as f64 / took.max(1.0);
    }
}

fn usage(pids: &[u32]) -> Vec<Usage> {
    pids.iter().map(|pid| Usage::of(*pid).unwrap_or_default()).collect()
}

struct Shared {
    meter: Mutex<Meter>,
    stop: AtomicBool,
    slot: AtomicU64,
}

/// Plays `workers` against the server, which is the processes `pids`.
pub async fn play<W: Worker>(workers: Vec<W>, pace: Pace, pids: &[u32]) -> Measured {
    let shared = Arc::new(Shared {
        meter: Mutex::new(Meter::start(INTERVAL)),
        stop: AtomicBool::new(false),
        slot: AtomicU64::new(0),
    });
    let start = Instant::now();
    let timer = pace.per_second.map(|rate| (PreciseTimer::new(), rate));
    let mut tasks = tokio::task::JoinSet::new();
    for worker in workers {
        tasks.spawn(client(worker, shared.clone(), timer.clone(), start));
    }
    tokio::time::sleep(pace.warm_up).await;
    let watch = Watch::start(pids);
    *shared.meter.lock() = Meter::start(INTERVAL);
    match pace.measure {
        Some(measure) => tokio::time::sleep(measure).await,
        None => while tasks.join_next().await.is_some() {},
    }
    let mut measured = Measured::default();
    watch.finish(&mut measured);
    let meter = std::mem::replace(&mut *shared.meter.lock(), Meter::start(INTERVAL));
    measured.set_progress(meter.finish());
    shared.stop.store(true, Ordering::Relaxed);
    while tasks.join_next().await.is_some() {}
    measured
}

async fn client<W: Worker>(mut worker: W, shared: Arc<Shared>, timer: Option<(PreciseTimer, f64)>, start: Instant) {
    let mut said = false;
    while !shared.stop.load(Ordering::Relaxed) {
        let since = match &timer {
            None => Instant::now(),
            Some((timer, rate)) => {
                // each slot is one operation, due at its time; whoever is free takes the next, late or not
                let slot = shared.slot.fetch_add(1, Ordering::Relaxed);
                let due = start + Duration::from_secs_f64(slot as f64 / rate);
                timer.sleep_until(due).await;
                due
            }
        };
        let ended = worker.step().await;
        let now = Instant::now();
        match ended {
            Ok(Some(rows)) => shared.meter.lock().done(since, now, rows),
            Ok(None) => return,
            Err(error) => {
                shared.meter.lock().failed();
                if !said {
                    said = true;
                    eprintln!("      an operation failed: {error}");
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}
