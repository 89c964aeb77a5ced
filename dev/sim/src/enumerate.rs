//! Every stop of every step list: the machine goes off at each call to the volume in turn, the disk keeps one of the states
//! that it may keep, and the next start must show what was promised.

use crate::Violation;
use crate::check;
use crate::disks::Named;
use crate::order::Ending;
use crate::promises::Promises;
use crate::stage::calm_settings;
use crate::steps::{self, List};
use crate::work::{self, Desk};
use crate::world::{Life, POLICIES, World};
use base::Rng;
use fs::{CrashPolicy, MemVolume};
use model::Durability;
use parking_lot::Mutex;
use std::sync::Arc;

/// How a list was visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visited {
    /// Calls to the volume at which the machine stopped.
    pub stops: u64,
    /// States of the disk from which a start was checked.
    pub states: u64,
}

/// Visits every list; `say` gets a line for each. Answers the number of states.
///
/// # Errors
/// A promise broken.
pub fn all(say: &mut dyn FnMut(String)) -> Result<u64, Violation> {
    let mut states = 0;
    say(format!("{:<16} {:>6} {:>7}", "steps", "stops", "states"));
    for list in List::ALL {
        let visited = visit(list, 1, 6)?;
        say(format!("{:<16} {:>6} {:>7}", list.to_string(), visited.stops, visited.states));
        states += visited.states;
    }
    let visited = crate::znodes::visit(6)?;
    say(format!("{:<16} {:>6} {:>7}", "Znodes", visited.stops, visited.states));
    Ok(states + visited.states)
}

/// The states that one stop leaves: all lost, all kept, and so many torn ones.
pub(crate) fn policies(torn: u64) -> impl Iterator<Item = (CrashPolicy, u64)> {
    (0..2 + torn).map(|at| match at {
        0 => (POLICIES[0], 0),
        1 => (POLICIES[1], 0),
        at => (POLICIES[2 + (at % 2) as usize], at),
    })
}

fn desk(life: &Arc<Life>, promises: Promises) -> Desk {
    Desk {
        life: life.clone(),
        promises: Arc::new(Mutex::new(promises)),
        violation: Arc::default(),
        rng: Arc::new(Rng::seeded(99)),
        trace: Arc::default(),
    }
}

fn with_disks(world: World, disks: Option<[Named; 3]>) -> World {
    match disks {
        Some(named) => world.with_disks(named),
        None => world,
    }
}

/// Disks as they are named after a crash, whichever of them were when it came.
fn all_disks(list: List) -> Option<[Named; 3]> {
    list.disks().map(|_| [Named::In, Named::In, Named::Out])
}

/// The files and promises from which a list begins.
fn base(list: List) -> (MemVolume, Promises) {
    if list == List::FirstStart {
        return (MemVolume::new(), Promises::default());
    }
    let mut world = with_disks(World::new(7, calm_settings()), list.disks());
    let runtime = World::runtime();
    let promises = runtime.block_on(async {
        let life = world.start().await.expect("an empty disk");
        let desk = desk(&life, Promises::default());
        work::prepare(&desk, Durability::SyncWal).await.expect("no faults");
        steps::before(list, &desk).await;
        assert!(check::quiet(&desk).await, "no faults");
        let mut promises = desk.promises.lock().clone();
        check::check_all(&life, &mut promises).await.expect("no faults");
        promises
    });
    drop(runtime);
    // As a killed process leaves it.
    (world.snapshot().crash(&Rng::seeded(1), CrashPolicy::KeepAll), promises)
}

/// Stops `list` at every `every`th call, with two states and `torn` more for each.
///
/// # Errors
/// A promise broken; the text says at which call and in which state.
pub fn visit(list: List, every: u64, torn: u64) -> Result<Visited, Violation> {
    let (volume, promises) = base(list);
    let mut visited = Visited::default();
    let mut stop = 0;
    loop {
        let (left, promised, ended) = stopped_after(list, &volume, &promises, stop);
        visited.stops += 1;
        for (policy, seed) in policies(torn) {
            let crashed = left.crash(&Rng::seeded(seed * 1000 + stop), policy);
            let mut promised = promised.clone();
            promised.server_gone(0);
            promised.ended(Ending::Power);
            promised.started();
            visited.states += 1;
            recover(list, crashed, promised).map_err(|violation| {
                Violation(format!("{list} stopped after call {stop}, {policy:?} {seed}: {violation}"))
            })?;
        }
        let mut promised = promised;
        promised.server_gone(0);
        visited.states += 4;
        recover_twice(list, left, promised).map_err(|violation| {
            Violation(format!("{list} killed after call {stop}, started, then without power: {violation}"))
        })?;
        if ended {
            return Ok(visited);
        }
        stop += every;
    }
}

/// The files after `stop` calls of the list, the promises made until then, and whether the list had ended.
fn stopped_after(list: List, from: &MemVolume, promises: &Promises, stop: u64) -> (MemVolume, Promises, bool) {
    let mut settings = calm_settings();
    if list == List::RecoveryByFiles {
        settings.set("basalt.recovery.memory.fraction", "0");
    }
    let mut world = with_disks(World::on(from.snapshot(), 11 + stop, settings), list.disks());
    world.clock.advance_ms(100_000);
    let runtime = World::runtime();
    let (promised, ended) = runtime.block_on(async {
        if list.is_start() {
            world.volume.stop_after(stop);
        }
        let started = world.start().await;
        let life = match started {
            Ok(life) => life,
            Err(why) => {
                assert!(world.volume.is_stopped(), "{list}: no fault, and no start: {why}");
                return (promises.clone(), false);
            }
        };
        let desk = desk(&life, promises.clone());
        if list.is_start() {
            // What it brought back in memory goes to files now, and the logs it came from are put away.
            while life.server.step_flush() {}
            for log in &life.logs {
                let _told_by_the_volume = log.archive_flushed();
            }
            return (promises.clone(), !world.volume.is_stopped());
        }
        assert!(check::quiet(&desk).await, "{list}: no faults yet");
        steps::ready(list, &desk).await;
        world.volume.stop_after(stop);
        let (taking, volume) = (desk.clone(), world.volume.clone());
        let task = tokio::spawn(async move { steps::take(list, &taking).await });
        while !task.is_finished() && !volume.is_stopped() {
            life.settle().await;
        }
        // Whoever noticed may still note it.
        life.settle().await;
        let ended = task.is_finished() && !volume.is_stopped();
        let promised = desk.promises.lock().clone();
        (promised, ended)
    });
    world.volume.watch(None);
    drop(runtime);
    (world.volume.clone(), promised, ended)
}

/// A start after a kill rests on what it sees, synced or not; what it does away with must not be needed when the power fails then.
fn recover_twice(list: List, left: MemVolume, mut promises: Promises) -> Result<(), Violation> {
    promises.ended(Ending::Kill);
    let mut world = with_disks(World::on(left.snapshot(), 4, calm_settings()), all_disks(list));
    world.clock.advance_ms(150_000);
    let runtime = World::runtime();
    runtime.block_on(async {
        let life = world.start().await.map_err(|why| Violation(format!("no start: {why}")))?;
        if check::quiet(&desk(&life, promises.clone())).await {
            Ok(())
        } else {
            Err(Violation(format!("it does not become quiet: {:?}{}", life.fatal(), check::not_open(&life))))
        }
    })?;
    world.volume.watch(None);
    drop(runtime);
    promises.ended(Ending::Power);
    promises.started();
    // What one removed may stay removed while what another made is lost.
    (0..4).try_for_each(|seed| {
        let policy = if seed == 0 { CrashPolicy::LoseUnsynced } else { CrashPolicy::Torn };
        recover(list, world.volume.crash(&Rng::seeded(seed), policy), promises.clone())
    })
}

fn recover(list: List, volume: MemVolume, mut promises: Promises) -> Result<(), Violation> {
    let mut world = with_disks(World::on(volume, 5, calm_settings()), all_disks(list));
    world.clock.advance_ms(200_000);
    let runtime = World::runtime();
    runtime.block_on(async {
        let life = world.start().await.map_err(|why| Violation(format!("no start: {why}")))?;
        let desk = desk(&life, promises.clone());
        if !check::quiet(&desk).await {
            return Err(Violation(format!("it does not become quiet: {:?}", life.fatal())));
        }
        if promises.still.is_empty() {
            // Of a first start only that it started is promised.
            return Ok(());
        }
        check::check_all(&life, &mut promises).await?;
        // It goes on working.
        *desk.promises.lock() = promises;
        steps::write(&desk, 2).await;
        steps::flush(&desk, &[]);
        steps::compact(&desk, true);
        let mut promises = desk.promises.lock().clone();
        check::check_all(&life, &mut promises).await
    })
}
