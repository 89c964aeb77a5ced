//! The scenarios, each a function named after its row in `docs/reliability.md`.

mod bounds;
mod busy;
mod crash;
mod disk;
mod files;
mod gateways;
mod hostile;
mod memory;
mod network;
mod returns;
mod syscalls;

use std::pin::Pin;

use crate::lab::Lab;

type Run<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// A scenario's name and what runs it.
pub type Scenario = (&'static str, for<'a> fn(&'a mut Lab) -> Run<'a>);

macro_rules! scenarios {
    ($($part:ident :: $name:ident),* $(,)?) => {
        /// All of them, in the order in which they run.
        pub const ALL: &[Scenario] = &[$((stringify!($name), |lab| Box::pin($part::$name(lab)))),*];
    };
}

scenarios!(
    crash::f01_kill_under_load,
    crash::f01_kill_under_load_relaxed,
    crash::f13_killed_while_recovering,
    crash::f51_nonce_after_restart,
    crash::f32_stopped_and_continued,
    crash::stop_signal_during_start,
    syscalls::f04_sync_fails_once,
    syscalls::f04_sync_fails_for_good,
    syscalls::f04_slow_sync,
    syscalls::f05_failed_sync_then_crash,
    syscalls::f11_read_error_during_replay,
    syscalls::f03_rename_fails,
    syscalls::f06_write_fails,
    disk::f06_full_disk_and_back,
    disk::f06_killed_on_a_full_disk,
    disk::f06_start_on_a_full_disk,
    files::f16_empty_and_headless_logs,
    files::f20_table_deleted_before_replay,
    files::f39_scan_while_files_change,
    files::f47_flipped_byte_is_named,
    network::f34_network_faults,
    network::f34_repeated_requests,
    network::f40_scan_cut_at_every_call,
    memory::f49_memory_cap,
    memory::f49_overload_is_refused,
    memory::f49_huge_rows,
    hostile::f50_slow_loris,
    hostile::f50_half_sent_requests,
    hostile::f50_coordination_flood,
    hostile::f50_connection_flood,
    hostile::f50_descriptors_run_out,
    bounds::f55_nonces_of_a_counter_load,
    busy::f56_filtered_gets_of_a_wide_row,
    busy::f57_large_batches,
    busy::f58_saturated_by_scans_and_stopped,
    busy::f59_clients_that_leave,
    bounds::f60_replies_that_nobody_reads,
    busy::f61_increments_of_many_columns,
    bounds::f62_a_batch_that_grows_when_it_is_decoded,
    bounds::f63_scanners_that_pin_flushed_memory,
    bounds::f64_scanners_without_number,
    bounds::f65_cells_that_grow_when_they_are_inflated,
    bounds::f66_gets_of_a_row_as_large_as_the_budget,
    files::f67_flush_that_failed_once_beside_an_idle_region,
    bounds::f68_many_regions_and_families,
    returns::f69_memory_comes_back,
    gateways::f70_a_thousand_readers_that_do_not_read,
);
