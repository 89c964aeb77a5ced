//! Whether a connection still lives: how long nothing moved, how long a request takes to arrive, how long replies wait to be taken.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::server::Limits;

/// A peer with replies to take must take so much in a stall timeout.
const MIN_TAKEN_BYTES: usize = 16 * 1024;
/// A frame must be whole after so many stall timeouts, however steadily it trickles.
const TRICKLE_FACTOR: u32 = 10;

/// What the connection waits for while it sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The rest of a request.
    pub partial: bool,
    /// That the peer takes replies.
    pub unsent: bool,
    /// Calls whose replies are to come.
    pub in_flight: usize,
}

/// What a look at the clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Something has moved lately.
    Active,
    /// Nothing has for a tick.
    Quiet,
    /// Nothing has for the idle timeout, and nothing is under way.
    Idle,
}

/// The timers of one connection.
#[derive(Debug)]
pub(super) struct Liveness {
    stall_timeout: Duration,
    idle_timeout: Duration,
    last_progress: Instant,
    /// Since when the rest of a request is waited for.
    partial_since: Option<Instant>,
    /// Since when, or since it was last counted, replies wait to be taken.
    unsent_since: Option<Instant>,
    /// What was taken since then.
    taken_bytes: usize,
}

impl Liveness {
    pub(super) fn new(limits: &Limits, now: Instant) -> Liveness {
        Liveness {
            stall_timeout: limits.stall_timeout,
            idle_timeout: limits.idle_timeout,
            last_progress: now,
            partial_since: None,
            unsent_since: None,
            taken_bytes: 0,
        }
    }

    /// The limits may have changed.
    pub(super) fn set_timeouts(&mut self, limits: &Limits) {
        (self.stall_timeout, self.idle_timeout) = (limits.stall_timeout, limits.idle_timeout);
    }

    /// How often [`Liveness::check`] is to be called.
    pub(super) fn tick(&self) -> Duration {
        (self.stall_timeout.min(self.idle_timeout) / 2).max(Duration::from_millis(5))
    }

    /// Bytes came, or an answer.
    pub(super) fn progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// The peer took so many bytes.
    pub(super) fn taken(&mut self, bytes: usize, now: Instant) {
        self.taken_bytes += bytes;
        self.progress(now);
    }

    /// The connection is about to sleep. The clock is read where something is waited for that was not before.
    pub(super) fn waits_for(&mut self, waiting: Waiting, now: impl Fn() -> Instant) {
        if !waiting.unsent {
            self.unsent_since = None;
        } else if self.unsent_since.is_none() {
            (self.unsent_since, self.taken_bytes) = (Some(now()), 0);
        }
        if waiting.partial {
            self.partial_since.get_or_insert_with(now);
        } else {
            self.partial_since = None;
        }
    }

    /// Holds what is waited for against the clock.
    ///
    /// # Errors
    /// The peer is too slow: the connection ends.
    pub(super) fn check(&mut self, now: Instant, waiting: Waiting) -> io::Result<Verdict> {
        let quiet = now - self.last_progress;
        let lasts = |since: Option<Instant>, timeout| since.is_some_and(|since| now - since >= timeout);
        if (waiting.unsent || waiting.partial) && quiet >= self.stall_timeout {
            return Err(timed_out("the peer neither sends nor receives"));
        }
        if lasts(self.partial_since, self.stall_timeout * TRICKLE_FACTOR) {
            return Err(timed_out("a request is taking too long to arrive"));
        }
        if lasts(self.unsent_since, self.stall_timeout) {
            if self.taken_bytes < MIN_TAKEN_BYTES {
                return Err(timed_out("the peer takes too long to receive its replies"));
            }
            (self.unsent_since, self.taken_bytes) = (Some(now), 0);
        }
        Ok(if waiting.in_flight == 0 && quiet >= self.idle_timeout {
            Verdict::Idle
        } else if quiet >= self.tick() {
            Verdict::Quiet
        } else {
            Verdict::Active
        })
    }
}

fn timed_out(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Waiting = Waiting { partial: false, unsent: false, in_flight: 0 };

    fn liveness() -> (Liveness, Instant) {
        let mut limits = Limits::from_config(&base::Config::default());
        (limits.stall_timeout, limits.idle_timeout) = (Duration::from_secs(10), Duration::from_secs(60));
        let now = Instant::now();
        (Liveness::new(&limits, now), now)
    }

    const STEP: Duration = Duration::from_secs(5);

    #[test]
    fn a_connection_without_calls_is_idle_after_its_timeout_and_one_with_calls_never() {
        let (mut liveness, start) = liveness();
        let mut after =
            |seconds, waiting| liveness.check(start + Duration::from_secs(seconds), waiting).expect("alive");
        assert_eq!(after(4, NOTHING), Verdict::Active);
        assert_eq!(after(54, NOTHING), Verdict::Quiet);
        assert_eq!(after(104, Waiting { in_flight: 1, ..NOTHING }), Verdict::Quiet);
        assert_eq!(after(104, NOTHING), Verdict::Idle);
    }

    #[test]
    fn a_peer_that_does_not_move_for_the_stall_timeout_ends_the_connection() {
        let (mut liveness, start) = liveness();
        let partial = Waiting { partial: true, ..NOTHING };
        liveness.waits_for(partial, || start);
        assert!(liveness.check(start + STEP, partial).is_ok());
        assert!(liveness.check(start + 2 * STEP, partial).is_err());
    }

    #[test]
    fn a_request_that_trickles_for_ten_timeouts_ends_the_connection() {
        let (mut liveness, mut now) = liveness();
        let partial = Waiting { partial: true, ..NOTHING };
        for _ in 0..19 {
            liveness.waits_for(partial, || now);
            now += STEP;
            assert!(liveness.check(now, partial).is_ok());
            liveness.progress(now);
        }
        assert!(liveness.check(now + STEP, partial).is_err());
    }

    #[test]
    fn a_peer_must_take_some_of_its_replies_in_each_timeout() {
        let (mut liveness, mut now) = liveness();
        let unsent = Waiting { unsent: true, ..NOTHING };
        liveness.waits_for(unsent, || now);
        let mut takes = |bytes| {
            liveness.taken(bytes, now);
            now += STEP;
            liveness.check(now, unsent).is_ok()
        };
        for _ in 0..3 {
            assert!(takes(MIN_TAKEN_BYTES) && takes(1));
        }
        assert!(takes(1));
        assert!(!takes(1));
    }
}
