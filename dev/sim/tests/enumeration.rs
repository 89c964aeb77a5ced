//! F3, F13, F46 and more: every step list that makes something durable, stopped at each call to the volume, from every kind of
//! disk that may be left. `cargo xtask sim --enumerate` prints the same with more states of each stop.

use basalt_sim::enumerate::{Visited, visit};
use basalt_sim::steps::List;
use basalt_sim::znodes;

/// `BASALT_TEST_THOROUGH` visits every stop of the long lists too.
fn all_of(lists: &[List]) {
    let thorough = std::env::var_os("BASALT_TEST_THOROUGH").is_some();
    for list in lists {
        let every = match list {
            List::Recovery | List::RecoveryByFiles | List::FirstStart | List::CleanStop | List::Volumes
                if !thorough =>
            {
                17
            }
            List::Append | List::Flush | List::FlushOneFamily | List::Roll | List::MobFlush => 1,
            _ if thorough => 1,
            _ => 5,
        };
        let Visited { stops, states } = visit(*list, every, 1).unwrap_or_else(|violation| panic!("{violation}"));
        println!("{list}: {stops} stops, {states} states");
        // Of the least that a list has when it has something to do.
        let least = 40u64.div_ceil(every).min(15);
        assert!(stops >= least, "{list} ends after {stops} stops: it has nothing to do");
    }
}

#[test]
fn f03_every_crash_state_of_the_log_and_of_a_flush() {
    all_of(&[List::Append, List::Roll, List::Flush, List::FlushOneFamily]);
}

#[test]
fn f03_every_crash_state_of_compactions() {
    all_of(&[List::MinorCompaction, List::MajorCompaction]);
}

#[test]
fn f03_every_crash_state_of_mob_files() {
    all_of(&[List::MobFlush, List::MobCompaction]);
}

#[test]
fn f03_every_crash_state_of_volumes_that_come_and_go() {
    all_of(&[List::Volumes]);
}

#[test]
fn f38_every_crash_state_of_a_bulk_load() {
    all_of(&[List::BulkLoad]);
}

#[test]
fn f03_every_crash_state_of_split_and_merge() {
    all_of(&[List::Split, List::Merge, List::Janitor]);
}

#[test]
fn f03_every_crash_state_of_ddl() {
    use List::{AddFamily, Alter, Create, Delete, DeleteFamily, Disable, Enable, Truncate};
    all_of(&[Create, Alter, AddFamily, DeleteFamily, Disable, Enable, Truncate, Delete]);
}

#[test]
fn f13_every_crash_state_of_recovery() {
    all_of(&[List::Recovery, List::RecoveryByFiles, List::FirstStart, List::CleanStop]);
}

#[test]
fn f03_every_crash_state_of_kept_znodes() {
    let Visited { stops, states } = znodes::visit(4).unwrap_or_else(|violation| panic!("{violation}"));
    println!("Znodes: {stops} stops, {states} states");
    assert!(stops >= 40, "it ends after {stops} stops: it has nothing to do");
}
