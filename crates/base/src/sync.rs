//! The locks and atomics of hand-made concurrent parts: parking_lot's and the standard library's.
//!
//! Built with the feature `shuttle` (`cargo xtask schedules`) they are the same things with a point before each operation at which
//! another thread may go on, chosen by shuttle's scheduler: [`explore`] then runs a test under many schedules, and a schedule that goes
//! wrong can be played again. Only orders of operations are explored; every atomic is sequentially consistent there. What weaker
//! orders allow is ThreadSanitizer's business (`cargo xtask sanitize`).

#[cfg(not(feature = "shuttle"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic;
#[cfg(not(feature = "shuttle"))]
pub use std::thread_local;

mod ranked;
pub use ranked::{RankedGuard, RankedMutex};

#[cfg(feature = "shuttle")]
mod stepped;
#[cfg(feature = "shuttle")]
pub use shuttle::thread;
#[cfg(feature = "shuttle")]
pub use shuttle::thread_local;
#[cfg(feature = "shuttle")]
pub use stepped::{Condvar, Mutex, MutexGuard, RwLock, atomic, explore};
