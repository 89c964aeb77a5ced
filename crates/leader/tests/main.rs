//! A cluster in one process: masters and region servers over real connections, the embedded tree as their ensemble, a volume in memory.
#![allow(clippy::disallowed_methods, reason = "a test starts real threads")]

mod cluster;
mod common;
mod groups;
mod healing;
mod locality;
mod quotas;
mod replicas;
