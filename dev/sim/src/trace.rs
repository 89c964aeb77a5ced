//! What happened, in order, as one number: two runs with the same hash made the same calls.

use parking_lot::Mutex;

/// The hash of everything noted so far, and the last notes for whoever looks for a cause.
#[derive(Debug, Default)]
pub struct Trace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    hash: u64,
    count: u64,
    spoken: bool,
}

impl Trace {
    /// Notes an event.
    pub fn note(&self, event: &str) {
        let mut state = self.state.lock();
        // FNV-1a; an event ends with a byte that no event has.
        for byte in event.bytes().chain([0xFF]) {
            state.hash = (state.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        state.count += 1;
        if state.spoken {
            println!("{:>7} {event}", state.count);
        }
    }

    /// Prints every further event.
    pub fn speak(&self) {
        self.state.lock().spoken = true;
    }

    /// The hash, and how many events it covers.
    pub fn hash(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.hash, state.count)
    }
}
