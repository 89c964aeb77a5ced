//! Tests of the composition root.

mod client;
mod common;
mod node;
mod quotas;
mod recovery;
