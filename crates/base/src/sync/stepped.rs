//! What [`super`] is under shuttle. Its threads are coroutines of one real thread, so a real lock that is taken is waited for by
//! letting others go on, and a wait that nobody ends runs out of steps.

use parking_lot::Mutex as Real;
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};

thread_local!(static EXPLORING: Cell<bool> = const { Cell::new(false) });

/// Here the scheduler may let another thread go on.
fn step() {
    if EXPLORING.get() {
        // Any operation of shuttle's own is such a point.
        let _ = shuttle::sync::atomic::AtomicBool::new(false).load(std::sync::atomic::Ordering::SeqCst);
    }
}

/// Others go on until `ready` gives something.
fn until<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    step();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(EXPLORING.get(), "a lock is held for ever");
        shuttle::thread::yield_now();
    }
}

/// Runs `test` under `BASALT_SCHEDULES` schedules (1000), half of them random, half with few changes between threads; or under the one in
/// `BASALT_SCHEDULE`, which the failure of another run printed.
///
/// # Panics
/// As `test` does under one of them, or when one does not end.
pub fn explore(test: impl Fn() + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    let test = std::sync::Arc::new(test);
    let body = {
        let test = test.clone();
        move || {
            EXPLORING.set(true);
            test();
        }
    };
    if let Ok(schedule) = std::env::var("BASALT_SCHEDULE") {
        shuttle::replay(body, &schedule);
        EXPLORING.set(false);
        return;
    }
    let schedules = std::env::var("BASALT_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 19;
    config.max_steps = shuttle::MaxSteps::FailAfter(200_000);
    config.silence_warnings = true;
    let seed = std::env::var("BASALT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_122);
    let random = RandomScheduler::new_from_seed(seed, schedules / 2);
    shuttle::Runner::new(random, config.clone()).run(body.clone());
    shuttle::Runner::new(PctScheduler::new_from_seed(seed, 3, schedules / 2), config).run(body);
    EXPLORING.set(false);
}

/// As parking_lot's.
#[derive(Debug, Default)]
pub struct Mutex<T>(Real<T>);

/// As parking_lot's.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    held: Option<parking_lot::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// As parking_lot's.
    pub const fn new(value: T) -> Self {
        Mutex(Real::new(value))
    }

    /// As parking_lot's.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { lock: self, held: Some(until(|| self.0.try_lock())) }
    }

    /// As parking_lot's.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        step();
        self.0.try_lock().map(|held| MutexGuard { lock: self, held: Some(held) })
    }

    /// As parking_lot's.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// As parking_lot's.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("held but for a wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held but for a wait")
    }
}

/// As parking_lot's, without waits that end by themselves.
#[derive(Debug, Default)]
pub struct Condvar(Real<Waiters>);

#[derive(Debug)]
struct Waiters {
    next: u64,
    waiting: VecDeque<u64>,
    woken: BTreeSet<u64>,
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters::new()
    }
}

impl Waiters {
    const fn new() -> Self {
        Waiters { next: 0, waiting: VecDeque::new(), woken: BTreeSet::new() }
    }
}

/// Whether a wait ended because its time was up.
#[derive(Debug)]
pub struct WaitTimeout(bool);

impl WaitTimeout {
    /// As parking_lot's.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// As parking_lot's.
    pub const fn new() -> Self {
        Condvar(Real::new(Waiters::new()))
    }

    /// The last to wait; says under which number.
    fn line_up(&self) -> u64 {
        let mut waiters = self.0.lock();
        waiters.next += 1;
        let own = waiters.next;
        waiters.waiting.push_back(own);
        own
    }

    /// As parking_lot's.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let own = self.line_up();
        guard.held = None;
        until(|| self.0.lock().woken.remove(&own).then_some(()));
        guard.held = guard.lock.lock().held.take();
    }

    /// As parking_lot's, but there is no time: it is up after the others had a turn.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: std::time::Duration) -> WaitTimeout {
        let own = self.line_up();
        guard.held = None;
        step();
        let mut waiters = self.0.lock();
        waiters.waiting.retain(|waiter| *waiter != own);
        let was_woken = waiters.woken.remove(&own);
        drop(waiters);
        guard.held = guard.lock.lock().held.take();
        WaitTimeout(!was_woken)
    }

    /// As parking_lot's.
    pub fn notify_one(&self) -> bool {
        step();
        let mut waiters = self.0.lock();
        let first = waiters.waiting.pop_front();
        waiters.woken.extend(first);
        first.is_some()
    }

    /// As parking_lot's.
    pub fn notify_all(&self) -> usize {
        step();
        let mut waiters = self.0.lock();
        let all = std::mem::take(&mut waiters.waiting);
        let count = all.len();
        waiters.woken.extend(all);
        count
    }
}

/// As parking_lot's.
#[derive(Debug, Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// As parking_lot's.
    pub const fn new(value: T) -> Self {
        RwLock(parking_lot::RwLock::new(value))
    }

    /// As parking_lot's.
    pub fn read(&self) -> parking_lot::RwLockReadGuard<'_, T> {
        until(|| self.0.try_read())
    }

    /// As parking_lot's.
    pub fn write(&self) -> parking_lot::RwLockWriteGuard<'_, T> {
        until(|| self.0.try_write())
    }
}

/// Atomics, a step before each operation.
pub mod atomic {
    use super::step;
    pub use std::sync::atomic::Ordering;

    macro_rules! common {
        ($value:ty) => {
            /// As the standard library's.
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                step();
                self.0.load(order)
            }

            /// As the standard library's.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                step();
                self.0.store(value, order);
            }

            /// As the standard library's.
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.swap(value, order)
            }

            /// As the standard library's.
            ///
            /// # Errors
            /// The value that is there instead.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                self.0.compare_exchange(current, new, success, failure)
            }

            /// As the standard library's; never fails without a reason.
            ///
            /// # Errors
            /// The value that is there instead.
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// As the standard library's.
            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }
        };
    }

    macro_rules! number {
        ($($name:ident $value:ty),*) => {
            $(
                /// As the standard library's.
                #[derive(Debug, Default)]
                #[repr(transparent)]
                pub struct $name(std::sync::atomic::$name);

                impl $name {
                    /// As the standard library's.
                    #[inline]
                    pub const fn new(value: $value) -> Self {
                        Self(std::sync::atomic::$name::new(value))
                    }

                    common!($value);

                    /// As the standard library's, in one step.
                    ///
                    /// # Errors
                    /// The value that `next` makes nothing of.
                    #[inline]
                    pub fn fetch_update(
                        &self,
                        success: Ordering,
                        failure: Ordering,
                        next: impl FnMut($value) -> Option<$value>,
                    ) -> Result<$value, $value> {
                        step();
                        self.0.fetch_update(success, failure, next)
                    }

                    number!(@with $value, fetch_add fetch_sub fetch_max fetch_min fetch_or fetch_and);
                }
            )*
        };
        (@with $value:ty, $($operation:ident)*) => {
            $(
                /// As the standard library's.
                #[inline]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    step();
                    self.0.$operation(value, order)
                }
            )*
        };
    }

    number!(AtomicU8 u8, AtomicU32 u32, AtomicU64 u64, AtomicI64 i64, AtomicUsize usize);

    /// As the standard library's.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct AtomicBool(std::sync::atomic::AtomicBool);

    impl AtomicBool {
        /// As the standard library's.
        #[inline]
        pub const fn new(value: bool) -> Self {
            Self(std::sync::atomic::AtomicBool::new(value))
        }

        common!(bool);
    }

    /// As the standard library's.
    #[repr(transparent)]
    pub struct AtomicPtr<T>(std::sync::atomic::AtomicPtr<T>);

    impl<T> std::fmt::Debug for AtomicPtr<T> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt(f)
        }
    }

    impl<T> AtomicPtr<T> {
        /// As the standard library's.
        #[inline]
        pub const fn new(value: *mut T) -> Self {
            Self(std::sync::atomic::AtomicPtr::new(value))
        }

        common!(*mut T);
    }
}
