//! Turns of jobs that have run for long: a few go on at once, the others wait, clients one after the other.

use base::sync::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One that waits for its turn.
struct Waiter {
    client: u64,
    arrival: u64,
    seat: Arc<Seat>,
}

#[derive(Default)]
struct Seat {
    called: Mutex<bool>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    free: usize,
    waiters: Vec<Waiter>,
    next_arrival: u64,
    /// Time that each client's jobs have had, of those that have any here.
    served_us: FxHashMap<u64, (u64, usize)>,
    /// Nobody waits any more.
    is_open: bool,
}

/// The turns of one server.
pub(crate) struct Turns {
    state: Mutex<State>,
}

impl Turns {
    /// So many go on at once.
    pub(crate) fn new(at_once: usize) -> Turns {
        Turns { state: Mutex::new(State { free: at_once, ..State::default() }) }
    }

    /// A job of `client` has become a long one.
    pub(crate) fn enter(&self, client: u64) {
        let state = &mut *self.state.lock();
        // It begins level with the one that has had least, or it would hold up everybody until it has caught up.
        let least = state.served_us.values().map(|(served, _)| *served).min().unwrap_or(0);
        let entry = state.served_us.entry(client).or_insert((least, 0));
        entry.1 += 1;
    }

    /// A long job of `client` has ended, outside of a turn.
    pub(crate) fn leave(&self, client: u64) {
        let state = &mut *self.state.lock();
        if let Some(entry) = state.served_us.get_mut(&client) {
            entry.1 -= 1;
            if entry.1 == 0 {
                state.served_us.remove(&client);
            }
        }
    }

    /// Waits for a turn.
    pub(crate) fn begin(&self, client: u64) {
        let seat = {
            let mut state = self.state.lock();
            if state.is_open {
                return;
            }
            if state.free > 0 {
                state.free -= 1;
                return;
            }
            let seat = Arc::<Seat>::default();
            let arrival = state.next_arrival;
            state.next_arrival += 1;
            state.waiters.push(Waiter { client, arrival, seat: seat.clone() });
            seat
        };
        let mut called = seat.called.lock();
        while !*called {
            seat.changed.wait(&mut called);
        }
    }

    /// Ends a turn in which a job of `client` ran for `ran_us`.
    pub(crate) fn end(&self, client: u64, ran_us: u64) {
        let mut state = self.state.lock();
        if let Some((served, _)) = state.served_us.get_mut(&client) {
            *served += ran_us;
        }
        state.pass_on();
    }

    /// Whether somebody waits for a turn.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.state.lock().waiters.is_empty()
    }

    /// Lets everybody go on, now and from now on.
    pub(crate) fn open(&self) {
        let mut state = self.state.lock();
        state.is_open = true;
        for waiter in std::mem::take(&mut state.waiters) {
            waiter.seat.call();
        }
    }
}

impl Seat {
    fn call(&self) {
        *self.called.lock() = true;
        self.changed.notify_one();
    }
}

impl State {
    /// The turn goes to the client that has had least.
    fn pass_on(&mut self) {
        let served = |waiter: &Waiter| self.served_us.get(&waiter.client).map_or(0, |(served, _)| *served);
        let next = self.waiters.iter().enumerate().min_by_key(|(_, waiter)| (served(waiter), waiter.arrival));
        match next.map(|(at, _)| at) {
            Some(at) => self.waiters.swap_remove(at).seat.call(),
            None => self.free += 1,
        }
    }
}
