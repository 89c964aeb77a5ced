//! Which keys of a table are read and written, over time: what the Key Visualizer draws.
//!
//! [`KeySampler`] picks some of the operations as they pass; every minute what it picked becomes a [`Column`] for each table, ranges of keys with
//! what went to them; [`History`] keeps columns of a minute for three hours, of ten minutes for two days and of two hours for five weeks; a
//! [`Grid`] lays the columns of a table over one axis of keys.
//!
//! Always true:
//!  1. Memory and the saved file are bounded: samples by [`sampler::MAX_SAMPLES`], a history by its budget.
//!  2. While there are few operations every one of them is picked; when there are many, each stands for others, so that sums stay right.
//!  3. Bytes that are not a history are refused, and never panic.
//!
//! Must not know: time (handed in as milliseconds), files, regions. Follows: Cloud Bigtable's and TiDB's Key Visualizer, which have a region
//! or tablet as their smallest range; here ranges are as fine as the load is uneven.

mod bytes;
mod column;
mod grid;
mod history;
pub mod sampler;

pub use bytes::DecodeError;
pub use column::{Column, KeyRange, Load};
pub use grid::{Grid, Measure};
pub use history::{History, Level};
pub use sampler::{KeySampler, Kind};
