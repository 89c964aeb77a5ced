//! Ground: clock, random numbers, sizes, settings, effort, the memory ledger, and the ids that must not mix.
//!
//! Always true: this crate knows nothing of cells, files or sockets, and it is the only place (with `fs`
//! for files) where the real clock is read. Everything above takes a [`Clock`] and a [`Rng`].

mod adder;
pub mod clock;
pub mod effort;
pub mod ids;
pub mod inject;
pub mod ledger;
mod log_throttle;
pub mod metrics;
mod never;
pub mod rng;
pub mod setting;
pub mod size;
pub mod sync;
pub mod tasks;

pub use adder::{Adder, PairAdder};
pub use clock::{Clock, ManualClock, SystemClock};
pub use effort::{EffortBudget, Interrupted, PausePoint, ReadMode, Unpaced};
pub use ids::{ReadPoint, SeqId, TimestampMs};
pub use ledger::{Charge, Demand, Holder, Ledger, Share};
pub use log_throttle::LogThrottle;
#[doc(hidden)]
pub use never::never_happened;
pub use rng::Rng;
pub use setting::{Config, Setting, SettingError, SettingRow, TextSetting, Value};
pub use tasks::{RunningTask, Task, TaskState, Tasks};
