//! Puts into a region on the local disk, by durability and by writers at once.

use crate::Group;
use crate::data::{self, Engine, VALUE_BYTES};
use crate::measure::{Done, Session, Size};
use model::{Durability, Mutation};
use region::Region;
use std::sync::Arc;
use wal::SyncMode;

pub const GROUP: Group = Group {
    names: &[
        "put.skip_wal.t1",
        "put.skip_wal.t8",
        "put.skip_wal.t64",
        "put.relaxed.t1",
        "put.relaxed.t8",
        "put.relaxed.t64",
        "put.synced.t1",
        "put.synced.t8",
        "put.synced.t64",
        "put.batch100.relaxed",
        "put.batch100.synced",
    ],
    needs_server: false,
    run,
};

struct Ready {
    region: Arc<Region>,
    mutations: Vec<Mutation>,
    _engine: Engine,
}

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let kinds = [
        ("skip_wal", Durability::SkipWal, SyncMode::Written),
        ("relaxed", Durability::UseDefault, SyncMode::Written),
        ("synced", Durability::UseDefault, SyncMode::Synced),
    ];
    for (kind, durability, mode) in kinds {
        for threads in [1, 8, 64] {
            puts(session, &format!("put.{kind}.t{threads}"), durability, mode, threads, 1)?;
        }
    }
    puts(session, "put.batch100.relaxed", Durability::UseDefault, SyncMode::Written, 1, 100)?;
    puts(session, "put.batch100.synced", Durability::UseDefault, SyncMode::Synced, 1, 100)
}

fn puts(
    session: &mut Session<'_>,
    name: &str,
    durability: Durability,
    mode: SyncMode,
    threads: usize,
    batch: usize,
) -> anyhow::Result<()> {
    if !session.wants(name) {
        return Ok(());
    }
    let parent = session.scratch()?;
    let size = Size::Timed { most: session.scale().writes_max, step: (threads * batch) as u64 };
    // An empty memstore in every round: it grows to about what a flush takes away.
    let prepare = |n: u64| {
        let engine = Engine::on_disk(crate::scratch::Scratch::below(parent.path())?, mode)?;
        let region = engine.region()?;
        Ok(Ready { region, mutations: data::puts(0..n, durability), _engine: engine })
    };
    session.measure(name, size, prepare, |ready: &mut Ready, n| {
        let (region, mutations) = (&ready.region, &ready.mutations);
        std::thread::scope(|scope| {
            let write = |share: &[Mutation]| share.chunks(batch).try_for_each(|chunk| data::apply(region, chunk));
            if threads == 1 {
                return write(mutations);
            }
            let shares = mutations.chunks(mutations.len().div_ceil(threads));
            let writers: Vec<_> = shares.map(|share| scope.spawn(move || write(share))).collect();
            writers.into_iter().try_for_each(|w| w.join().map_err(|_| anyhow::anyhow!("a writer panicked"))?)
        })?;
        Ok(Done { ops: n, bytes: n * VALUE_BYTES as u64 })
    })
}
