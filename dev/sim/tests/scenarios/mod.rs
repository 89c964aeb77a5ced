//! Scenes after faults that others have met: the whole server on a model disk. Numbers as in docs/reliability.md; where HBase
//! met the fault first, the comment says in which issue.

mod batches;
mod busy;
mod common;
mod disk;
mod files;
mod log;
mod procedures;
mod reads;
mod recovery;
mod snapshots;
mod tables;
