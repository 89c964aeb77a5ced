//! The embedded ZooKeeper endpoint's users change nodes, and the machine goes off at each call to the volume in turn: what was told to a user is there
//! afterwards, no group of changes is there in part, and no transaction id is given twice.

use crate::Violation;
use crate::enumerate::{Visited, policies};
use assembly::znodes;
use base::{ManualClock, Rng};
use bytes::Bytes;
use coordination::{CreateMode, Kept, TreeHandle};
use fs::MemVolume;
use std::sync::Arc;

/// What the lives that follow each other have in common. The clock stands still, so that ids do not grow by it.
fn life(volume: &MemVolume) -> Result<TreeHandle, Violation> {
    let kept = znodes::load(volume).map_err(|error| Violation(error.to_string()))?;
    let tree = TreeHandle::unserved(Arc::new(ManualClock::new(1)), Arc::new(Rng::seeded(1)));
    tree.restore(&kept).map_err(|error| Violation(error.to_string()))?;
    Ok(tree)
}

/// One group of changes, as users make them.
fn change(tree: &TreeHandle, group: u64) {
    let (value, sequential) =
        (Bytes::from(vec![b'v'; 700 * (1 + group as usize)]), CreateMode { ephemeral_owner: 0, sequential: true });
    let _there_already = tree.create_for_user("/app", Bytes::new(), CreateMode::PERSISTENT);
    let changed = [
        tree.create_for_user("/app/n-", value.clone(), sequential).map(drop),
        tree.set_for_user("/app", value).map(drop),
        // Ephemeral, and gone after a restart whatever happens.
        tree.create_for_user("/app/e-", Bytes::new(), CreateMode { ephemeral_owner: 7, sequential: true }).map(drop),
    ];
    assert!(changed.iter().all(Result::is_ok), "nothing is in the way: {changed:?}");
    if group.is_multiple_of(2) {
        let first = tree.children("/app").expect("there").into_iter().find(|name| name.starts_with("n-"));
        tree.delete_for_user(&format!("/app/{}", first.expect("one was made"))).expect("there");
    }
}

/// Writes what is to be written; whether it is.
fn keep(volume: &MemVolume, tree: &TreeHandle, trying: &mut Option<Kept>) -> bool {
    let Some(to_keep) = tree.to_keep_now() else { return true };
    *trying = Some(to_keep.kept.clone());
    let kept = znodes::publish(volume, &to_keep.kept).is_ok();
    if kept {
        tree.is_kept(&to_keep);
        *trying = None;
    }
    kept
}

/// Stops the groups of changes after each call to the volume; with two states and `torn` more for each.
///
/// # Errors
/// A promise broken; the text says at which call and in which state.
pub fn visit(torn: u64) -> Result<Visited, Violation> {
    let mut visited = Visited::default();
    for stop in 0.. {
        let volume = MemVolume::new();
        volume.stop_after(stop);
        let (mut told, mut trying, mut last_zxid) = (Kept::default(), None, 0);
        // Two lives, three groups in each.
        'lives: for _ in 0..2 {
            let Ok(tree) = life(&volume) else { break };
            if !keep(&volume, &tree, &mut trying) {
                break;
            }
            for group in 0..3 {
                change(&tree, group);
                let changed = tree.to_keep_now().expect("there are changes").kept;
                if !keep(&volume, &tree, &mut trying) {
                    break 'lives;
                }
                (told, last_zxid) = (changed, tree.last_zxid());
            }
        }
        visited.stops += 1;
        let ended = !volume.is_stopped();
        for (policy, seed) in policies(torn) {
            visited.states += 1;
            let crashed = volume.crash(&Rng::seeded(seed * 1000 + stop), policy);
            let violation =
                |what: String| Violation(format!("znodes stopped after call {stop}, {policy:?} {seed}: {what}"));
            let found = znodes::load(&crashed).map_err(|error| violation(error.to_string()))?;
            let is_new = trying.as_ref().is_some_and(|trying| trying.nodes == found.nodes);
            if found.nodes != told.nodes && !is_new {
                return Err(violation(format!(
                    "there are {} nodes which are neither the old nor the new",
                    found.nodes.len()
                )));
            }
            let again = life(&crashed).map_err(|Violation(what)| violation(what))?;
            if again.last_zxid() < last_zxid {
                return Err(violation(format!("transaction ids go back from {last_zxid} to {}", again.last_zxid())));
            }
            change(&again, 1);
            if !keep(&crashed, &again, &mut None) {
                return Err(violation("nothing more can be kept".to_owned()));
            }
        }
        if ended {
            break;
        }
    }
    Ok(visited)
}
