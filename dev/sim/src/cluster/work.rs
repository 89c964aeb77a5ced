//! What clients of the cluster do, and what they remember: rows that one client each writes, banks, counters; and whether what they read is no
//! older than what was acknowledged, or seen by anybody, before they asked.

use super::client::Caller;
use super::replicas;
use crate::calls::{Failure, mutation};
use crate::promises::{ACCOUNTS, Outcome, Promises, Transfer, Write, value_of};
use crate::trace::Trace;
use crate::work::{self, JOURNAL_ROWS, answer, place, table};
use crate::{Violation, ensure};
use base::Rng;
use bytes::Bytes;
use cell::CellType;
use filter::{Comparator, CompareOp};
use model::mutation::{ConditionTest, Nonce};
use model::{Condition, Durability, Mutation, MutationKind, TimeRange};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A call is tried so often.
const TRIES: u32 = 200;
const COUNTERS: u64 = 3;
/// Banks of a run.
pub const BANKS: u64 = 2;

/// A counter, whose increments are not repeated; the network may bring one twice, with the same nonce.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    /// Increments that were acknowledged.
    pub acked: u64,
    /// Those whose outcome is open.
    pub maybe: u64,
}

/// What is remembered.
#[derive(Default)]
pub struct Memory {
    /// Promises, as those of the world of one server.
    pub promises: Promises,
    /// Counters by row.
    pub counters: BTreeMap<String, Counter>,
    /// The highest number that was acknowledged or seen of a row: of a journal row, a bank's version, a counter's value.
    pub floor: BTreeMap<String, i64>,
    /// What read replicas have shown of rows, by the replica's encoded name and the row: the highest number in each family.
    pub on_replicas: BTreeMap<(Arc<str>, String), [i64; 2]>,
    /// How often.
    pub replica_reads: u64,
    /// The first violation.
    pub violation: Option<Violation>,
}

impl Memory {
    fn rise(&mut self, row: &str, to: i64) {
        let floor = self.floor.entry(row.to_owned()).or_default();
        *floor = (*floor).max(to);
    }
}

/// A client at work.
#[derive(Clone)]
pub struct Worker {
    /// Its number.
    pub number: u64,
    /// Its way to the cluster.
    pub caller: Arc<Caller>,
    /// What all remember.
    pub memory: Arc<Mutex<Memory>>,
    /// What it draws.
    pub rng: Arc<Rng>,
    /// What happened.
    pub trace: Arc<Trace>,
    /// It is to end.
    pub ends: Arc<AtomicBool>,
    /// Whether it reads of replicas, too.
    pub replicas: bool,
}

impl Worker {
    /// One call after the other, until it is to end.
    pub async fn run(self) {
        while !self.ends.load(Ordering::Relaxed) {
            match self.rng.below(10) {
                0..=3 => self.put().await,
                4..=5 => self.transfer().await,
                6 => self.increment().await,
                7 if self.replicas => self.read_of_replica().await,
                _ => self.read().await,
            }
            tokio::time::sleep(Duration::from_millis(self.rng.below(60))).await;
        }
    }

    fn record(&self, checked: Result<(), Violation>) {
        if let Err(violation) = checked {
            self.trace.note(&format!("violation: {violation}"));
            self.memory.lock().violation.get_or_insert(violation);
        }
    }

    async fn put(&self) {
        let row = place("journal", self.number * JOURNAL_ROWS + self.rng.below(JOURNAL_ROWS));
        let number = {
            let promises = &mut self.memory.lock().promises;
            let track = promises.sent(Durability::SyncWal);
            let writes = promises.journal.entry(row.clone()).or_default();
            let number = writes.iter().map(|write| write.number).max().unwrap_or(0) + 1;
            writes.push(Write { number, deletes: false, outcome: Outcome::Open, track });
            number
        };
        let put = work::Desk::put_of(&row, number, Durability::UseDefault);
        // The same cells again are the same.
        let result = self.caller.mutate(&table(), &put, None, true, TRIES).await.map(drop);
        self.trace.note(&format!("{row} write {number}: {result:?}"));
        let mut memory = self.memory.lock();
        let promises = &mut memory.promises;
        let (outcome, tick) = (promises.outcome_of(&result), promises.tick());
        let writes = promises.journal.get_mut(&row);
        if let Some(write) = writes.and_then(|writes| writes.iter_mut().find(|write| write.number == number)) {
            answer(&mut write.outcome, &mut write.track, outcome, tick);
        }
        if result.is_ok() {
            memory.rise(&row, number);
        }
    }

    async fn transfer(&self) {
        let row = place("bank", self.rng.below(BANKS));
        let Some((version, balances)) = self.look_at_bank(&row).await else { return };
        let mut balances = balances;
        let (from, to) = (self.rng.below(4) as usize, self.rng.below(4) as usize);
        let amount = i64::try_from(self.rng.below(50)).unwrap_or(0);
        balances[from] -= amount;
        balances[to] += amount;
        let id = self.rng.next_u64() >> 1;
        let texts = balances.map(|balance| balance.to_string());
        let [a, b, c, d] = &texts;
        let put = work::transfer(&row, version + 1, id, [a, b, c, d]);
        let condition = Condition {
            row: Bytes::from(row.clone()),
            test: ConditionTest::Value {
                family: Bytes::from("f"),
                qualifier: Bytes::from("ver"),
                op: CompareOp::Equal,
                comparator: Arc::new(Comparator::Binary { value: Bytes::from(version.to_string()) }),
            },
            time_range: TimeRange::ALL,
        };
        {
            let promises = &mut self.memory.lock().promises;
            let track = promises.sent(Durability::SyncWal);
            let bank = promises.banks.entry(row.clone()).or_default();
            bank.transfers.insert(id, Transfer { version: version + 1, outcome: Outcome::Open, track });
        }
        let result = self.caller.mutate(&table(), &put, Some(&condition), false, TRIES).await.map(|(held, _)| held);
        self.trace.note(&format!("{row} transfer {id} to version {}: {result:?}", version + 1));
        let mut memory = self.memory.lock();
        let promises = &mut memory.promises;
        let outcome = match &result {
            Ok(false) => Outcome::Gone,
            Ok(true) => promises.outcome_of(&Ok(())),
            Err(failure) => promises.outcome_of(&Err(failure.clone())),
        };
        let tick = promises.tick();
        let known = promises.banks.get_mut(&row).and_then(|bank| bank.transfers.get_mut(&id));
        if let Some(known) = known {
            answer(&mut known.outcome, &mut known.track, outcome, tick);
        }
        if result == Ok(true) {
            memory.rise(&row, version + 1);
        }
    }

    async fn look_at_bank(&self, row: &str) -> Option<(i64, [i64; 4])> {
        let floor = self.floor(row);
        let cells = self.caller.get(&table(), row, TRIES).await.ok()?;
        let number = |column: &str| {
            let value = cells.iter().find(|(name, ..)| name == column).map(|(_, _, value)| value.clone());
            value.and_then(|value| String::from_utf8_lossy(&value).parse::<i64>().ok())
        };
        let version = number("f:ver");
        self.trace.note(&format!("{row} is at {version:?}"));
        let Some(version) = version else {
            self.record(Err(Violation(format!("{row} lost its version: {cells:?}"))));
            return None;
        };
        self.record(not_below(row, floor, version));
        self.memory.lock().rise(row, version);
        let mut balances = [0; 4];
        for (balance, column) in balances.iter_mut().zip(ACCOUNTS) {
            *balance = number(column)?;
        }
        Some((version, balances))
    }

    fn floor(&self, row: &str) -> i64 {
        self.memory.lock().floor.get(row).copied().unwrap_or_default()
    }

    async fn increment(&self) {
        let row = place("counter", self.rng.below(COUNTERS));
        let floor = self.floor(&row);
        let amount = 1_i64.to_be_bytes();
        let mut increment =
            mutation(MutationKind::Increment, &row, &[("f", "n", i64::MAX, CellType::Put, &amount[..])]);
        increment.nonce = Some(Nonce { group: self.rng.next_u64() | 1, number: self.rng.next_u64() | 1 });
        self.memory.lock().counters.entry(row.clone()).or_default().maybe += 1;
        // Once: a copy of a call that was refused may be done later, and another attempt beside it, at a server that knows nothing of the first.
        let result = self.caller.mutate(&table(), &increment, None, false, 1).await;
        self.trace.note(&format!("{row} increment: {result:?}"));
        let mut memory = self.memory.lock();
        let counter = memory.counters.entry(row.clone()).or_default();
        match result {
            Ok((_, cells)) => {
                (counter.acked, counter.maybe) = (counter.acked + 1, counter.maybe - 1);
                memory.promises.counts.acked += 1;
                let value = cells.first().map(|(_, _, value)| number_of(value)).unwrap_or_default();
                drop(memory);
                self.record(not_below(&row, floor + 1, value));
                self.memory.lock().rise(&row, value);
            }
            // A copy of it may still come, and be done.
            Err(Failure::No(_)) => memory.promises.counts.refused += 1,
            Err(Failure::Maybe(_)) => memory.promises.counts.maybe += 1,
        }
    }

    async fn read_of_replica(&self) {
        let row = place("journal", self.rng.below(4 * JOURNAL_ROWS));
        let Ok(replicas) = self.caller.replicas(&table()).await else { return };
        let Some(at) = replicas.into_iter().find(|(info, _)| info.contains(row.as_bytes())) else { return };
        let before = replicas::shown_before(&self.memory.lock(), &at.0, &row);
        let Some(cells) = self.caller.get_from_replica(&at, &row).await else { return };
        self.trace.note(&format!("{row} on {} at {}: {} cells", at.0.name_string(), at.1, cells.len()));
        let seen = replicas::see(&mut self.memory.lock(), &at.0, &row, before, &cells);
        self.record(seen);
    }

    async fn read(&self) {
        let number = self.rng.below(4 * JOURNAL_ROWS);
        let row = place("journal", number);
        let floor = self.floor(&row);
        let Ok(cells) = self.caller.get(&table(), &row, TRIES).await else { return };
        let numbers =
            |column: &str| cells.iter().filter(|(name, ..)| name == column).map(|(_, number, _)| *number).max();
        let (in_f, in_g) = (numbers("f:v"), numbers("g:v"));
        self.trace.note(&format!("{row} shows f={in_f:?} g={in_g:?}"));
        let shown = in_f.unwrap_or_default();
        self.record(ensure(in_f == in_g, || format!("{row}: a write is there in part: f={in_f:?} g={in_g:?}")));
        self.record(not_below(&row, floor, shown));
        let foreign = cells.iter().find(|(_, number, value)| *value != value_of(&row, *number));
        self.record(ensure(foreign.is_none(), || format!("{row} has a foreign value: {foreign:?}")));
        let mut memory = self.memory.lock();
        memory.rise(&row, shown);
        memory.promises.counts.reads += 1;
    }
}

fn number_of(value: &[u8]) -> i64 {
    value.try_into().map(i64::from_be_bytes).unwrap_or_default()
}

fn not_below(row: &str, floor: i64, shown: i64) -> Result<(), Violation> {
    ensure(shown >= floor, || {
        format!("a stale read: {row} shows {shown}, and {floor} was acknowledged or seen before it was asked for")
    })
}

/// Rows that are there from the beginning.
pub fn first_rows() -> Vec<Mutation> {
    let banks = (0..BANKS).map(|number| work::new_bank(&place("bank", number)));
    (0..work::STILL_ROWS).map(work::still_row).chain(banks).collect()
}

/// They are.
pub fn first_rows_are_there(memory: &mut Memory) {
    memory.promises.still = (0..work::STILL_ROWS).map(|number| place("still", number)).collect();
    memory.promises.banks = (0..BANKS).map(|number| (place("bank", number), Default::default())).collect();
}

/// Checks every row of the table. Nothing is under way.
///
/// # Errors
/// A promise broken.
pub fn check_rows(memory: &mut Memory, rows: &[(String, crate::calls::RowCells)]) -> Result<(), Violation> {
    let promises = &mut memory.promises;
    let mut missing: Vec<String> = promises.journal.keys().cloned().collect();
    missing.extend(promises.banks.keys().cloned());
    missing.extend(promises.still.iter().cloned());
    missing.extend(memory.counters.iter().filter(|(_, counter)| counter.acked > 0).map(|(row, _)| row.clone()));
    let mut last: Option<&String> = None;
    for (row, cells) in rows {
        ensure(last.is_none_or(|last| last < row), || format!("row {row} comes after {last:?}"))?;
        last = Some(row);
        missing.retain(|other| other != row);
        let kind = row.split_once('-').map_or("", |(_, kind)| kind);
        if kind.starts_with("journal") {
            promises.see_journal(row, cells, true)?;
        } else if kind.starts_with("bank") {
            promises.see_bank(row, cells, true)?;
        } else if kind.starts_with("counter") {
            let value = cells.iter().find(|(column, ..)| column == "f:n").map_or(0, |(_, _, value)| number_of(value));
            let counter = memory.counters.get(row).copied().unwrap_or_default();
            let most = i64::try_from(counter.acked + counter.maybe).unwrap_or(i64::MAX);
            let least = i64::try_from(counter.acked).unwrap_or(i64::MAX);
            ensure((least..=most).contains(&value), || format!("{row} is {value}, {counter:?}"))?;
        } else {
            ensure(promises.still.contains(row), || format!("nobody wrote row {row}"))?;
            let whole = cells.len() == 2 && cells.iter().all(|(_, number, value)| *value == value_of(row, *number));
            ensure(whole, || format!("row {row} was changed: {cells:?}"))?;
        }
    }
    for row in missing {
        if row.contains("-journal") {
            promises.see_journal(&row, &Vec::new(), true)?;
        } else {
            return Err(Violation(format!("row {row} is lost")));
        }
    }
    Ok(())
}
