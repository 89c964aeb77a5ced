//! Tests of the composition root.

mod admin;
mod client;
mod common;
mod member;
mod metrics;
mod node;
mod normalizer;
mod online;
mod quotas;
mod recovery;
mod space_quotas;
mod trackers;
mod volumes;
