//! Writes that read first, in memory, logged without waiting for the disk.

use crate::Group;
use crate::data::{self, Engine, FAMILY, QUALIFIER};
use crate::measure::{Done, Session, Size};
use base::Rng;
use bytes::Bytes;
use cell::CellBlock;
use filter::{Comparator, CompareOp};
use fs::MemVolume;
use model::mutation::ConditionTest;
use model::{Condition, Durability, Mutation, MutationKind, TimeRange};
use region::Region;
use std::sync::Arc;
use wal::SyncMode;

pub const GROUP: Group = Group { names: &["increment", "check_and_put"], needs_server: false, run };

/// Rows that are updated again and again.
const COUNTERS: u64 = 1000;

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let size = Size::Timed { most: session.scale().writes_max, step: 1 };
    let fresh = || -> anyhow::Result<(Arc<Region>, Engine)> {
        let engine = Engine::new(Arc::new(MemVolume::new()), SyncMode::Written)?;
        Ok((engine.region()?, engine))
    };
    let rng = Rng::seeded(3);
    let increments: Vec<Mutation> = (0..COUNTERS)
        .map(|n| {
            let row = data::row(n);
            let cells = CellBlock::from_specs([data::spec(&row, &1i64.to_be_bytes())]);
            Mutation::new(MutationKind::Increment, row, cells)
        })
        .collect();
    session.measure(
        "increment",
        size,
        |_| fresh(),
        |(region, _), n| {
            for _ in 0..n {
                let written = region.increment_or_append(&increments[rng.below(COUNTERS) as usize])?;
                anyhow::ensure!(written.result.len() == 1, "an increment gave no result");
                written.commit.wait()?;
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )?;
    let value = Bytes::from(data::value(100, &rng));
    let updates: Vec<(Condition, Mutation)> = (0..COUNTERS)
        .map(|n| {
            let test = ConditionTest::Value {
                family: Bytes::from_static(FAMILY),
                qualifier: Bytes::from_static(QUALIFIER),
                op: CompareOp::Equal,
                comparator: Arc::new(Comparator::Binary { value: value.clone() }),
            };
            let condition = Condition { row: data::row(n), test, time_range: TimeRange::ALL };
            (condition, data::put(n, &value, Durability::UseDefault))
        })
        .collect();
    session.measure(
        "check_and_put",
        size,
        |_| {
            let (region, engine) = fresh()?;
            updates.iter().try_for_each(|(_, put)| data::apply(&region, std::slice::from_ref(put)))?;
            Ok((region, engine))
        },
        |(region, _), n| {
            for _ in 0..n {
                let (condition, put) = &updates[rng.below(COUNTERS) as usize];
                let checked = region.check_and_mutate(condition, std::slice::from_ref(put), None)?;
                anyhow::ensure!(checked.processed, "the condition did not hold");
                checked.commit.wait()?;
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}
