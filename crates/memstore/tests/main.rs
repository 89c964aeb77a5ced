//! Tests of the memstore. Binaries of their own are `spare`, as the pool of chunks that it measures belongs to the whole process, and
//! `schedules`, as it is built with the feature `shuttle` alone (`cargo xtask schedules`).

mod common;
mod memstore;
mod model;
mod threads;
