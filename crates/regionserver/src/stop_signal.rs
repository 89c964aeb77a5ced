//! The signal that ends the background threads of a server.

use parking_lot::{Condvar, Mutex};

/// Tells background threads to end, and lets them wait for it.
#[derive(Default)]
pub(crate) struct StopSignal {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    pub fn is_set(&self) -> bool {
        *self.stopped.lock()
    }

    pub fn set(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for the signal, at most `timeout`; returns whether it is set.
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, timeout);
        }
        *stopped
    }
}
