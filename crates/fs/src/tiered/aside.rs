//! A sync that is given up while it stands still: it runs on a thread of its own, so that who asked for it can write the same elsewhere.

use super::STALLED_US;
use super::other::{Other, Writing};
use super::speed::Timed;
use crate::{Appender, Result};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Starts a thread that has this name and does this.
pub type Spawn = Arc<dyn Fn(&str, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync>;

/// A file that is being written.
pub(super) struct Written {
    pub appender: Box<dyn Appender>,
    /// Until it is ended it is not moved.
    pub _writing: Writing,
}

/// Whose turn it is.
enum Turn {
    /// That of who writes, who has the file.
    Writer,
    /// The thread's, which has not begun.
    Asked(Written),
    /// The thread's.
    Syncs,
    /// The writer's, who has not seen it yet.
    Done(Written, Result<()>),
    /// Nobody waits for it any more.
    GivenUp,
}

struct Shared {
    turn: Mutex<Turn>,
    changed: Condvar,
}

/// Syncs a file of `other`. The thread ends with it, or once a sync returns that was given up.
pub(super) struct Aside {
    shared: Arc<Shared>,
    other: Arc<Other>,
    /// Volumes that could take the file's place.
    peers: Vec<Arc<Other>>,
}

impl Aside {
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(spawn: &Spawn, other: &Arc<Other>, peers: Vec<Arc<Other>>) -> io::Result<Aside> {
        let shared = Arc::new(Shared { turn: Mutex::new(Turn::Writer), changed: Condvar::new() });
        let (of_thread, of_other) = (shared.clone(), other.clone());
        spawn("volume-sync", Box::new(move || of_thread.serve(&of_other)))?;
        Ok(Aside { shared, other: other.clone(), peers })
    }

    /// Syncs the file. `None`: it stands still, while another volume would take the file; nobody writes to it again.
    pub(super) fn sync(&self, file: Written) -> Option<(Written, Result<()>)> {
        let mut turn = self.shared.turn.lock();
        *turn = Turn::Asked(file);
        self.shared.changed.notify_all();
        loop {
            let timed_out = self.shared.changed.wait_for(&mut turn, Duration::from_micros(STALLED_US)).timed_out();
            match std::mem::replace(&mut *turn, Turn::Writer) {
                Turn::Done(file, outcome) => return Some((file, outcome)),
                Turn::Syncs if timed_out && self.is_better_elsewhere() => {
                    *turn = Turn::GivenUp;
                    return None;
                }
                other => *turn = other,
            }
        }
    }

    fn is_better_elsewhere(&self) -> bool {
        self.other.speed.is_slow() && self.peers.iter().any(|peer| peer.takes_files() && !peer.speed.is_slow())
    }
}

/// A file's [`Aside`]: its thread is started when it is first asked for.
pub(super) enum SyncsAside {
    /// With what it takes.
    Wanted(Spawn, Vec<Arc<Other>>),
    /// It runs.
    Runs(Aside),
}

impl SyncsAside {
    /// # Errors
    /// When its thread cannot be started.
    pub(super) fn started(&mut self, other: &Arc<Other>) -> io::Result<&Aside> {
        if let SyncsAside::Wanted(spawn, peers) = self {
            let aside = Aside::start(spawn, other, std::mem::take(peers))?;
            *self = SyncsAside::Runs(aside);
        }
        match self {
            SyncsAside::Runs(aside) => Ok(aside),
            SyncsAside::Wanted(..) => Err(io::ErrorKind::Other.into()),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        *self.shared.turn.lock() = Turn::GivenUp;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn serve(&self, other: &Other) {
        while let Some(mut file) = self.next() {
            let outcome = other.speed.time(Timed::Sync, || file.appender.sync());
            let mut turn = self.turn.lock();
            if matches!(*turn, Turn::GivenUp) {
                // Ending a file may wait as well.
                drop(turn);
                return;
            }
            *turn = Turn::Done(file, outcome);
            self.changed.notify_all();
        }
    }

    /// The file to sync next; `None` when there is none to come.
    fn next(&self) -> Option<Written> {
        let mut turn = self.turn.lock();
        loop {
            match std::mem::replace(&mut *turn, Turn::Syncs) {
                Turn::Asked(file) => return Some(file),
                Turn::GivenUp => return None,
                other => *turn = other,
            }
            self.changed.wait(&mut turn);
        }
    }
}
