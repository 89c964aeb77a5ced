//! The doors of a process: every call to the volume, the ensemble and the network goes through them, and there it can die or stand still, in
//! the middle of whatever it does.

use crate::trace::Trace;
use base::{Clock, ManualClock};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// What happens at a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The process is gone: nothing that it does from now on has an effect.
    Dies,
    /// It stands still, until the world has it go on.
    Stops,
}

/// What a process says to the world, which waits for it.
#[derive(Debug)]
pub(crate) enum Said {
    /// It has done what was to be done in this slice of time.
    Done,
    /// It stands still inside a call.
    StandsStill,
}

/// The doors of one life of a process.
pub struct Gate {
    name: Arc<str>,
    trace: Arc<Trace>,
    clock: Arc<ManualClock>,
    dead: AtomicBool,
    /// The world itself looks at something of the process, which does nothing.
    aside: AtomicBool,
    calls: AtomicU64,
    /// So many calls from now this happens.
    fate: Mutex<Option<(u64, Fate)>>,
    /// The last call, for who wonders where it hangs.
    last: Mutex<String>,
    to_world: Sender<Said>,
    go_on: Mutex<Receiver<()>>,
}

impl Gate {
    pub(crate) fn new(
        name: &str,
        trace: Arc<Trace>,
        clock: Arc<ManualClock>,
        to_world: Sender<Said>,
        go_on: Receiver<()>,
    ) -> Arc<Gate> {
        Arc::new(Gate {
            name: Arc::from(name),
            trace,
            clock,
            dead: AtomicBool::new(false),
            aside: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            fate: Mutex::new(None),
            last: Mutex::default(),
            to_world,
            go_on: Mutex::new(go_on),
        })
    }

    /// The process's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing that it does has an effect any more.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// It is gone.
    pub fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The call that was made last.
    pub fn last_call(&self) -> String {
        self.last.lock().clone()
    }

    /// The `nth` call from now on (1 is the next) meets that.
    pub fn at_call(&self, nth: u64, fate: Fate) {
        *self.fate.lock() = Some((nth, fate));
    }

    /// Nothing is to happen at any call.
    pub fn spare(&self) {
        *self.fate.lock() = None;
    }

    /// Lets the world look at something of the process while that does not run: no call of it counts or meets anything.
    pub fn aside<T>(&self, look: impl FnOnce() -> T) -> T {
        self.aside.store(true, Ordering::Relaxed);
        let seen = look();
        self.aside.store(false, Ordering::Relaxed);
        seen
    }

    /// Goes through a door to do `what`.
    ///
    /// # Errors
    /// The process is dead: nothing is done.
    pub fn pass(&self, what: &str) -> io::Result<()> {
        self.door(what, true)
    }

    /// As [`Gate::pass`], on behalf of the process and not on its thread: it may die, but does not stand still.
    ///
    /// # Errors
    /// As [`Gate::pass`].
    pub(crate) fn pass_for(&self, what: &str) -> io::Result<()> {
        self.door(what, false)
    }

    fn door(&self, what: &str, is_own_thread: bool) -> io::Result<()> {
        if self.is_dead() {
            return Err(dead());
        }
        if self.aside.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let event = format!("{} {what} at {}", self.name, self.clock.now_ms());
        self.trace.note(&event);
        let fate = {
            let mut waiting = self.fate.lock();
            match &mut *waiting {
                Some((1, Fate::Stops)) if !is_own_thread => None,
                Some((1, fate)) => {
                    let fate = *fate;
                    *waiting = None;
                    Some(fate)
                }
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            }
        };
        *self.last.lock() = event;
        match fate {
            Some(Fate::Dies) => {
                self.trace.note(&format!("{} dies there", self.name));
                self.die();
            }
            Some(Fate::Stops) => {
                self.trace.note(&format!("{} stands still there", self.name));
                let _the_world_is_gone = self.to_world.send(Said::StandsStill);
                let _the_world_is_gone = self.go_on.lock().recv();
            }
            None => {}
        }
        if self.is_dead() { Err(dead()) } else { Ok(()) }
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is no more")
}
