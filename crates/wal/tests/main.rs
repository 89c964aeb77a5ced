//! Tests of the log. `schedules` is a binary of its own, built with the feature `shuttle` alone
//! (`cargo xtask schedules`).

mod behind;
mod common;
mod crash;
mod golden;
mod hbase;
mod inherit;
mod order;
mod remote;
mod stands_still;
