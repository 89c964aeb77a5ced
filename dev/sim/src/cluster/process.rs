//! A process: a thread of its own with a runtime of its own, that runs when the world says so and for as long as it says. At most one runs at a
//! time, so that one seed gives one run; and each can be left standing in the middle of a call, or dropped with all its memory.

use super::gate::{Gate, Said};
use crate::trace::Trace;
use base::ManualClock;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Once};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;
use tokio::runtime::Handle;

/// A process that does not come back within so much real time hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// What a process does.
pub type Main = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Order {
    /// To live for so long, after as much as it has slept through.
    Live { slept_ms: u64, ms: u64 },
    /// To end.
    End,
}

/// A process in one of its lives.
pub struct Process {
    gate: Arc<Gate>,
    clock: Arc<ManualClock>,
    orders: Sender<Order>,
    said: Receiver<Said>,
    go_on: Sender<()>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    /// It stands still inside a call.
    inside: bool,
    /// What it has slept through and has not noticed.
    behind_ms: u64,
}

/// Panics of processes: where they came from, and what they said.
static PANICS: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current();
            if thread.name().is_some_and(|name| name.starts_with("sim ")) {
                PANICS.lock().push((thread.id(), info.to_string()));
            }
            before(info);
        }));
    });
}

impl Process {
    /// Starts it; it lives from the first [`Process::live`] on. `main` gets its doors.
    ///
    /// # Panics
    /// The system gives no thread.
    #[allow(clippy::disallowed_methods, reason = "of these threads at most one runs at a time")]
    pub fn start(
        name: &str,
        trace: &Arc<Trace>,
        clock: Arc<ManualClock>,
        main: impl FnOnce(Arc<Gate>) -> Main + Send + 'static,
    ) -> Process {
        listen_for_panics();
        let (orders, ordered) = channel();
        let (to_world, said) = channel();
        let (go_on, goes_on) = channel();
        let (tell_handle, told_handle) = channel();
        let gate = Gate::new(name, trace.clone(), clock.clone(), to_world.clone(), goes_on);
        let its_gate = gate.clone();
        let thread = std::thread::Builder::new()
            .name(format!("sim {name}"))
            .spawn(move || run(main, its_gate, &ordered, &to_world, &tell_handle))
            .expect("the system gives a thread");
        let handle = told_handle.recv().expect("it begins");
        Process { gate, clock, orders, said, go_on, handle, thread: Some(thread), inside: false, behind_ms: 0 }
    }

    /// Its doors.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Its runtime, for what others hand to it while it does not run.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// Whether it stands still inside a call.
    pub fn is_inside_a_call(&self) -> bool {
        self.inside
    }

    /// It does not run while `ms` pass.
    pub fn sleep_through(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        self.behind_ms += ms;
    }

    /// It runs while `ms` pass, or until it dies or stands still inside a call.
    ///
    /// # Panics
    /// It hangs.
    pub fn live(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        if self.inside {
            // The rest of what it had begun; what it has slept through it notices at the next slice.
            self.behind_ms += ms;
            self.inside = false;
            let _gone = self.go_on.send(());
        } else {
            let slept_ms = std::mem::take(&mut self.behind_ms);
            let _gone = self.orders.send(Order::Live { slept_ms, ms });
        }
        self.wait();
    }

    fn wait(&mut self) {
        match self.said.recv_timeout(HANGS_AFTER) {
            Ok(Said::Done) => {}
            Ok(Said::StandsStill) => self.inside = true,
            Err(error) => {
                panic!("{} does not come back ({error}); its last call: {}", self.gate.name(), self.gate.last_call())
            }
        }
    }

    /// What it panicked with, if it did.
    pub fn panicked(&self) -> Option<String> {
        let id = self.thread.as_ref()?.thread().id();
        PANICS.lock().iter().find(|(thread, _)| *thread == id).map(|(_, text)| text.clone())
    }

    /// Ends it as `kill -9` does: nothing more that it does has an effect, and all its memory is gone.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.gate.die();
        if self.inside {
            self.inside = false;
            let _gone = self.go_on.send(());
            self.wait();
        }
        let _gone = self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            let id = thread.thread().id();
            let _said_what_went_wrong = thread.join();
            PANICS.lock().retain(|(of, _)| *of != id);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.thread.is_some() && !std::thread::panicking() {
            self.end();
        }
    }
}

fn run(
    main: impl FnOnce(Arc<Gate>) -> Main,
    gate: Arc<Gate>,
    orders: &Receiver<Order>,
    to_world: &Sender<Said>,
    tell_handle: &Sender<Handle>,
) {
    let runtime = crate::world::World::runtime();
    {
        let _inside = runtime.enter();
        drop(runtime.spawn(main(gate)));
    }
    let _gone = tell_handle.send(runtime.handle().clone());
    while let Ok(Order::Live { slept_ms, ms }) = orders.recv() {
        let lived = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                if slept_ms > 0 {
                    tokio::time::advance(Duration::from_millis(slept_ms)).await;
                }
                tokio::time::sleep(Duration::from_millis(ms)).await;
            });
        }));
        let _gone = to_world.send(Said::Done);
        if lived.is_err() {
            break;
        }
    }
}
