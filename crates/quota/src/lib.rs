//! Quotas: what users, tables, namespaces and region servers may use. The rows of hbase:quota ([`rows`]), how a request changes them
//! ([`change`]), the rate limiters that they ask for ([`Limiter`]), which of these bound a call ([`Throttles`]), what a call takes of them
//! ([`OperationQuota`]), and which tables use more space than they may ([`observer`], [`space`]).
//!
//! Always true:
//!  1. Numbers and sentences are HBase's: a client learns how long it is to wait from the text of the exception.
//!  2. What a call took by estimate is corrected when it ends, however it ends.
//!  3. Rows are read as they are: one that cannot be read bounds nobody, and is told of.
//!
//! Must not know: the network, files, regions; time is handed in as milliseconds. Follows: `org.apache.hadoop.hbase.quotas`.

pub mod change;
mod limiter;
pub mod observer;
mod operation;
mod rate;
mod remembered;
pub mod rows;
pub mod settings;
pub mod space;
mod throttles;

pub use limiter::{Demand, Limited, Limiter, Throttled, ThrottledBy};
pub use operation::{OperationCosts, OperationQuota, ScanEstimate};
pub use rate::{RateLimiter, RateLimiterKind};
pub use space::{Policy, SpaceSnapshot, TableSnapshots};
pub use throttles::{Factors, Limiters, Refresh, Throttles};
