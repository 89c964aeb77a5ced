//! What the tasks of one kind have done: counters, keys that failed, how far everything is done without a gap.
//! Follows: `MultiThreadedAction`, `MultiThreadedWriterBase`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::log::Log;

/// Lines of progress come this often.
const REPORTING_INTERVAL: Duration = Duration::from_secs(5);

/// Counters of the writers, the updaters or the readers.
pub struct Progress {
    letter: char,
    start_key: u64,
    end_key: u64,
    /// Tasks that still work.
    pub working: AtomicU64,
    /// Keys done.
    pub keys: AtomicU64,
    /// Columns done.
    pub columns: AtomicU64,
    /// Time of all requests.
    pub busy_us: AtomicU64,
    /// The next key that nobody has taken.
    next_key: AtomicU64,
    /// Keys that could not be written.
    failed: Mutex<BTreeSet<u64>>,
    /// Keys done before all smaller ones were.
    ahead: Mutex<BTreeSet<u64>>,
    /// Every key below is done.
    done_below: watch::Sender<u64>,
    /// Rows that were verified.
    pub verified: AtomicU64,
    /// Rows that were wrong.
    pub read_errors: AtomicU64,
    /// Reads that failed.
    pub read_failures: AtomicU64,
}

impl Progress {
    /// Of `threads` tasks over keys from `start_key` to below `end_key`.
    pub fn new(letter: char, start_key: u64, end_key: u64, threads: u32) -> Progress {
        Progress {
            letter,
            start_key,
            end_key,
            working: AtomicU64::new(u64::from(threads)),
            keys: AtomicU64::new(0),
            columns: AtomicU64::new(0),
            busy_us: AtomicU64::new(0),
            next_key: AtomicU64::new(start_key),
            failed: Mutex::default(),
            ahead: Mutex::default(),
            done_below: watch::channel(start_key).0,
            verified: AtomicU64::new(0),
            read_errors: AtomicU64::new(0),
            read_failures: AtomicU64::new(0),
        }
    }

    /// Takes the next key.
    pub fn take_key(&self) -> Option<u64> {
        let key = self.next_key.fetch_add(1, Relaxed);
        (key < self.end_key).then_some(key)
    }

    /// A key is done, well or not.
    pub fn done(&self, key: u64) {
        let mut ahead = self.ahead.lock();
        ahead.insert(key);
        let before = *self.done_below.borrow();
        let mut below = before;
        while ahead.remove(&below) {
            below += 1;
        }
        if below != before {
            self.done_below.send_replace(below);
        }
    }

    /// The end of what is done without a gap; changes can be waited for.
    pub fn done_below(&self) -> watch::Receiver<u64> {
        self.done_below.subscribe()
    }

    /// Marks a key as failed.
    pub fn fail(&self, key: u64) {
        self.failed.lock().insert(key);
    }

    /// Whether a key failed.
    pub fn has_failed(&self, key: u64) -> bool {
        self.failed.lock().contains(&key)
    }

    /// The keys that failed.
    pub fn failures(&self) -> Vec<u64> {
        self.failed.lock().iter().copied().collect()
    }

    /// A line of progress every five seconds, as long as a task works.
    pub async fn report(&self, log: &Log) {
        let started_us = log.now_us();
        let (mut prior_keys, mut prior_busy_us) = (0, 0);
        loop {
            tokio::time::sleep(REPORTING_INTERVAL).await;
            let working = self.working.load(Relaxed);
            if working == 0 {
                return;
            }
            let thread = "MultiThreadedAction-ProgressReporter";
            let threads_left = format!("[{}:{working}] ", self.letter);
            let (keys, busy_us) = (self.keys.load(Relaxed), self.busy_us.load(Relaxed));
            if keys == 0 {
                log.info(thread, format!("{threads_left}Number of keys = 0"));
                continue;
            }
            let time_ms = ((log.now_us() - started_us) / 1000).max(1);
            let latency = |us: u64, keys: u64| us as f64 / 1000.0 / keys as f64;
            let mut line = format!(
                "{threads_left}Keys={keys}, cols={}, time={} Overall: [keys/s= {}, latency={:.2} ms]",
                human(self.columns.load(Relaxed)),
                clock(time_ms / 1000),
                keys * 1000 / time_ms,
                latency(busy_us, keys)
            );
            let delta = keys - prior_keys;
            if delta > 0 {
                let rate = delta * 1000 / REPORTING_INTERVAL.as_millis() as u64;
                let current = latency(busy_us - prior_busy_us, delta);
                line.push_str(&format!(" Current: [keys/s={rate}, latency={current:.2} ms]"));
            }
            line.push_str(&self.more());
            log.info(thread, line);
            (prior_keys, prior_busy_us) = (keys, busy_us);
        }
    }

    fn more(&self) -> String {
        let figures = if self.letter == 'R' {
            vec![
                ("verified", self.verified.load(Relaxed)),
                ("READ FAILURES", self.read_failures.load(Relaxed)),
                ("READ ERRORS", self.read_errors.load(Relaxed)),
            ]
        } else {
            let below = *self.done_below.borrow();
            let up_to = if below > self.start_key { below - 1 } else { 0 };
            vec![("wroteUpTo", up_to), ("wroteQSize", self.ahead.lock().len() as u64)]
        };
        figures.iter().filter(|(_, value)| *value > 0).map(|(name, value)| format!(", {name}={value}")).collect()
    }
}

/// `1.5 K`, as Hadoop writes it.
fn human(number: u64) -> String {
    let units = ["", " K", " M", " G", " T", " P", " E"];
    let step = (0..units.len() - 1).find(|step| number >> (10 * (step + 1)) == 0).unwrap_or(units.len() - 1);
    if step == 0 {
        number.to_string()
    } else {
        format!("{:.1}{}", number as f64 / (1u64 << (10 * step)) as f64, units[step])
    }
}

fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_without_a_gap_is_known() {
        let progress = Progress::new('W', 5, 10, 1);
        let below = progress.done_below();
        for (key, end) in [(6, 5), (5, 7), (9, 7), (8, 7), (7, 10)] {
            progress.done(key);
            assert_eq!(*below.borrow(), end, "after {key}");
        }
        assert_eq!((0..9).map_while(|_| progress.take_key()).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([human(0), human(1023), human(1536), human(5 << 20)], ["0", "1023", "1.5 K", "5.0 M"]);
        assert_eq!(clock(3 * 3600 + 62), "03:01:02");
    }
}
