//! The list of what is measured.

mod cells;
mod disk;
mod files;
mod get;
mod memory;
mod observed;
mod put;
mod quota;
mod replay;
mod scan;
mod slow_log;
mod update;
mod wire;
mod work;

use crate::Session;

/// Names that share their setting up.
#[derive(Clone, Copy)]
pub struct Group {
    /// Each is measured once in a run that wants it.
    pub names: &'static [&'static str],
    /// Whether it needs the server's binary.
    pub needs_server: bool,
    /// Measures those of the names that the session wants.
    pub run: fn(&mut Session<'_>) -> anyhow::Result<()>,
}

/// Everything, from the outside in.
pub const ALL: &[Group] = &[
    wire::GROUP,
    put::GROUP,
    update::GROUP,
    get::GROUP,
    scan::GROUP,
    scan::NARROW,
    disk::GROUP,
    work::FLUSH,
    work::COMPACTION,
    replay::GROUP,
    files::DECODE,
    files::SEEK,
    files::VERIFY,
    memory::GROUP,
    cells::GROUP,
    quota::GROUP,
    slow_log::GROUP,
    observed::STEPS,
    observed::CALLS,
];
