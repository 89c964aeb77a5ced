//! What clients do: one call each, with the promises noted before and after.

use crate::Violation;
use crate::calls::{self, Failure};
use crate::loads::Load;
use crate::order::Track;
use crate::promises::{ACCOUNTS, BANK_SUM, Growing, ListNode, Outcome, Promises, Sent, Transfer, Write, value_of};
use crate::scans::{self, Manner};
use crate::trace::Trace;
use crate::world::Life;
use base::{Clock, Rng};
use bytes::Bytes;
use cell::CellType;
use filter::{Comparator, CompareOp};
use master::Caller;
use model::mutation::ConditionTest;
use model::{
    Condition, Durability, FamilyDescriptor, Mutation, MutationKind, Nonce, TableDescriptor, TableName, TimeRange,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Clients that run at once.
pub const CLIENTS: u64 = 4;
pub(crate) const JOURNAL_ROWS: u64 = 6;
pub(crate) const STILL_ROWS: u64 = 24;
const UNLOGGED_ROWS: u64 = 2;
/// What writes to the log may ask for; most say nothing.
const DURABILITIES: [Durability; 6] = [
    Durability::UseDefault,
    Durability::UseDefault,
    Durability::UseDefault,
    Durability::AsyncWal,
    Durability::SyncWal,
    Durability::FsyncWal,
];
const LATEST: i64 = i64::MAX;

/// The table that everybody writes to.
pub fn table() -> TableName {
    TableName::parse("t").expect("legal")
}

/// The table that comes and goes.
pub fn changing() -> TableName {
    TableName::parse("changing").expect("legal")
}

/// What a call needs: a server, the promises, a generator of its own.
#[derive(Clone)]
pub struct Desk {
    /// The server.
    pub life: Arc<Life>,
    /// What was promised so far.
    pub promises: Arc<Mutex<Promises>>,
    /// The first violation, if there was one.
    pub violation: Arc<Mutex<Option<Violation>>>,
    /// What the clients choose.
    pub rng: Arc<Rng>,
    /// What happened.
    pub trace: Arc<Trace>,
}

/// Spreads rows of all kinds over the table.
pub(crate) fn place(kind: &str, number: u64) -> String {
    let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (kind.len() as u64 * 31);
    format!("{:02}-{kind}{number}", (mixed >> 40) % 100)
}

/// The families of the main table, with attributes drawn at random.
pub fn families(rng: &Rng) -> [FamilyDescriptor; 2] {
    let one = |name: &'static str, versions: &str| {
        FamilyDescriptor::new(name)
            .with("VERSIONS", versions)
            .with("BLOCKSIZE", ["200", "1000", "65536"][rng.below(3) as usize])
            .with("DATA_BLOCK_ENCODING", ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"][rng.below(5) as usize])
            .with("BLOOMFILTER", ["NONE", "ROW", "ROWCOL"][rng.below(3) as usize])
            .with("COMPRESSION", ["NONE", "SNAPPY", "GZ"][rng.below(3) as usize])
    };
    [one("f", "1"), one("g", "100000")]
}

/// A family of the main table with other attributes than now. What is in MOB files can be read only as long as the family is one of
/// MOB: that is [`prepare`]'s to choose, and stays.
pub fn stored_otherwise(life: &Life, rng: &Rng, at: usize) -> FamilyDescriptor {
    keeping_mob(life, families(rng)[at].clone())
}

/// `family` of the main table, of MOB if it is that now.
pub fn keeping_mob(life: &Life, family: FamilyDescriptor) -> FamilyDescriptor {
    let table = life.master.cluster().descriptor(&table());
    let is_mob = table.as_ref().and_then(|table| table.families.get(&family.name)).is_some_and(|now| now.is_mob());
    if is_mob { of_mob(family) } else { family }
}

/// `family` with its longer values in MOB files.
pub fn of_mob(family: FamilyDescriptor) -> FamilyDescriptor {
    family.with("IS_MOB", "true").with("MOB_THRESHOLD", "30")
}

/// The row whose cells are a bank's first version.
pub(crate) fn new_bank(row: &str) -> Mutation {
    let balance = (BANK_SUM / 4).to_string();
    transfer(row, 0, 0, [balance.as_str(); 4])
}

pub(crate) fn transfer(row: &str, version: i64, id: u64, balances: [&str; 4]) -> Mutation {
    let (stamp, version_text, id) = (version + 1, version.to_string(), id.to_string());
    let mut cells: Vec<(&str, &str, i64, CellType, &[u8])> = Vec::new();
    for (column, balance) in ACCOUNTS.iter().zip(&balances) {
        let (family, qualifier) = column.split_once(':').expect("family:qualifier");
        cells.push((family, qualifier, stamp, CellType::Put, balance.as_bytes()));
    }
    cells.push(("f", "ver", stamp, CellType::Put, version_text.as_bytes()));
    if version > 0 {
        cells.push(("g", "who", stamp, CellType::Put, id.as_bytes()));
    }
    calls::mutation(MutationKind::Put, row, &cells)
}

pub(crate) fn still_row(number: u64) -> Mutation {
    let row = place("still", number);
    let value = value_of(&row, 1);
    calls::mutation(
        MutationKind::Put,
        &row,
        &[("f", "s", 1, CellType::Put, &value), ("g", "s", 1, CellType::Put, &value)],
    )
}

/// Makes the tables and what never changes. Without faults. The main table's writes are as durable as `durability` if they say nothing
/// themselves.
///
/// # Errors
/// Something did not work on an empty disk.
pub async fn prepare(desk: &Desk, durability: Durability) -> Result<(), Violation> {
    let Desk { life, promises, rng, .. } = desk;
    let failed = |what: &str, e: &dyn std::fmt::Debug| Violation(format!("{what} on an empty disk: {e:?}"));
    let splits: Vec<Bytes> =
        [vec![], vec!["50"], vec!["33", "66"]][rng.below(3) as usize].iter().map(|key| Bytes::from(*key)).collect();
    let mut descriptor =
        TableDescriptor::new(table(), families(rng).map(|family| if rng.one_in(4) { of_mob(family) } else { family }));
    let said = match durability {
        Durability::AsyncWal => Some("ASYNC_WAL"),
        Durability::FsyncWal => Some("FSYNC_WAL"),
        _ => None,
    };
    descriptor.attributes.extend(said.map(|said| (Bytes::from("DURABILITY"), Bytes::from(said))));
    let id = life.master.create_table(descriptor, &splits, &Caller::default()).await;
    let id = id.map_err(|e| failed("create", &e))?;
    life.master.wait_for(id).await.map_err(|e| failed("create", &e))?;
    let mut rows: Vec<Mutation> = (0..STILL_ROWS).map(still_row).collect();
    rows.extend((0..2).map(|number| new_bank(&place("bank", number))));
    // What every check rests on is there whatever happens.
    rows.iter_mut().for_each(|row| row.durability = Durability::FsyncWal);
    let (at, sent) = (life.clone(), rows.clone());
    let batch = tokio::spawn(async move { calls::batch(&at, &table(), &sent).await });
    life.settle().await;
    life.quiet().await;
    for result in batch.await.map_err(|e| failed("batch", &e))? {
        result.map_err(|e| failed("batch", &e))?;
    }
    let mut promises = promises.lock();
    promises.still = (0..STILL_ROWS).map(|number| place("still", number)).collect();
    promises.banks = (0..2).map(|number| (place("bank", number), crate::promises::Bank::default())).collect();
    promises.changing.shapes = vec![None];
    promises.table_durability = durability;
    Ok(())
}

impl Desk {
    fn record<T>(&self, result: Result<T, Violation>) -> Option<T> {
        result.map_err(|violation| _ = self.violation.lock().get_or_insert(violation)).ok()
    }

    /// One call of client `client`, chosen at random. Ends when it is answered.
    pub async fn work(self, client: u64) {
        self.promises.lock().busy += 1;
        match self.rng.below(22) {
            21 => self.put_unlogged(client).await,
            20 => self.load(client).await,
            0..=3 => self.put(client).await,
            4..=5 => self.put_several(client).await,
            6 => self.delete(client).await,
            7..=9 => self.transfer().await,
            10..=11 => self.grow(false).await,
            12 => self.grow(true).await,
            13..=14 => self.extend_list(client).await,
            15..=16 => self.read(client).await,
            _ => self.scan().await,
        }
        let mut promises = self.promises.lock();
        promises.busy = promises.busy.saturating_sub(1);
    }

    /// A put alone, for moments at which nothing may wait.
    pub async fn work_briefly(self, client: u64) {
        self.promises.lock().busy += 1;
        self.put(client).await;
        let mut promises = self.promises.lock();
        promises.busy = promises.busy.saturating_sub(1);
    }

    fn own_row(&self, client: u64) -> String {
        place("journal", client * JOURNAL_ROWS + self.rng.below(JOURNAL_ROWS))
    }

    fn durability(&self) -> Durability {
        DURABILITIES[self.rng.below(DURABILITIES.len() as u64) as usize]
    }

    /// The next write of a journal row, noted.
    fn begin_write(&self, row: &str, deletes: bool, durability: Durability) -> i64 {
        let mut promises = self.promises.lock();
        let track = promises.sent(durability);
        let writes = promises.journal.entry(row.to_owned()).or_default();
        let number = writes.iter().map(|w| w.number).max().unwrap_or(0) + 1;
        writes.push(Write { number, deletes, outcome: Outcome::Open, track });
        number
    }

    fn end_write(&self, row: &str, number: i64, result: &Result<(), Failure>) {
        self.trace.note(&format!("{row} write {number}: {result:?}"));
        let mut promises = self.promises.lock();
        let (outcome, tick) = (promises.outcome_of(result), promises.tick());
        let rows = if row.contains("-unlogged") { &mut promises.unlogged } else { &mut promises.journal };
        if let Some(write) = rows.get_mut(row).and_then(|ws| ws.iter_mut().find(|w| w.number == number)) {
            answer(&mut write.outcome, &mut write.track, outcome, tick);
        }
    }

    pub(crate) fn put_of(row: &str, number: i64, durability: Durability) -> Mutation {
        let value = value_of(row, number);
        let cells = [("f", "v", number, CellType::Put, &value[..]), ("g", "v", number, CellType::Put, &value[..])];
        Mutation { durability, ..calls::mutation(MutationKind::Put, row, &cells) }
    }

    /// A put that skips the log. To one family: a flush writes one family after the other, so of such a row a crash may leave a part.
    async fn put_unlogged(&self, client: u64) {
        let row = place("unlogged", client * UNLOGGED_ROWS + self.rng.below(UNLOGGED_ROWS));
        let number = {
            let mut promises = self.promises.lock();
            let track = promises.sent(Durability::SkipWal);
            let writes = promises.unlogged.entry(row.clone()).or_default();
            let number = writes.iter().map(|w| w.number).max().unwrap_or(0) + 1;
            writes.push(Write { number, deletes: false, outcome: Outcome::Open, track });
            number
        };
        let value = value_of(&row, number);
        let put = calls::mutation(MutationKind::Put, &row, &[("f", "l", number, CellType::Put, &value[..])]);
        let put = Mutation { durability: Durability::SkipWal, ..put };
        let result = calls::mutate(&self.life, &table(), &put).await.map(|_| ());
        self.end_write(&row, number, &result);
    }

    async fn put(&self, client: u64) {
        let (row, durability) = (self.own_row(client), self.durability());
        let number = self.begin_write(&row, false, durability);
        let put = Self::put_of(&row, number, durability);
        let result = if self.rng.one_in(3) {
            calls::atomic(&self.life, &table(), &[put], None).await.map(|_| ())
        } else {
            calls::mutate(&self.life, &table(), &put).await.map(|_| ())
        };
        self.end_write(&row, number, &result);
    }

    async fn put_several(&self, client: u64) {
        let rows: BTreeSet<String> = (0..3).map(|_| self.own_row(client)).collect();
        let begun: Vec<(String, i64, Durability)> = rows
            .into_iter()
            .map(|row| {
                let durability = self.durability();
                (row.clone(), self.begin_write(&row, false, durability), durability)
            })
            .collect();
        let put = |(row, number, durability): &(String, i64, Durability)| Self::put_of(row, *number, *durability);
        let puts: Vec<Mutation> = begun.iter().map(put).collect();
        let results = calls::batch(&self.life, &table(), &puts).await;
        for ((row, number, _), result) in begun.iter().zip(&results) {
            self.end_write(row, *number, result);
        }
    }

    async fn delete(&self, client: u64) {
        let (row, durability) = (self.own_row(client), self.durability());
        let number = self.begin_write(&row, true, durability);
        let families =
            [("f", "", number, CellType::DeleteFamily, &b""[..]), ("g", "", number, CellType::DeleteFamily, b"")];
        let delete = Mutation { durability, ..calls::mutation(MutationKind::Delete, &row, &families) };
        let result = calls::mutate(&self.life, &table(), &delete).await.map(|_| ());
        self.end_write(&row, number, &result);
    }

    /// Loads files that hold a write each of a few rows.
    async fn load(&self, client: u64) {
        let Some(load) = Load::lay_out(self, client) else { return };
        load.send(self).await;
        self.promises.lock().counts.loads += 1;
    }

    async fn transfer(&self) {
        let row = place("bank", self.rng.below(2));
        let Ok(cells) = calls::get(&self.life, &table(), &row).await else { return };
        let seen = self.promises.lock().see_bank(&row, &cells, false);
        let Some((version, mut balances)) = self.record(seen) else { return };
        let (from, to) = (self.rng.below(4) as usize, self.rng.below(4) as usize);
        let amount = i64::try_from(self.rng.below(50)).unwrap_or(0);
        balances[from] -= amount;
        balances[to] += amount;
        let id = self.rng.next_u64() >> 1;
        let texts = balances.map(|balance| balance.to_string());
        let [a, b, c, d] = &texts;
        let durability = self.durability();
        let put = Mutation { durability, ..transfer(&row, version + 1, id, [a, b, c, d]) };
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
            let mut promises = self.promises.lock();
            let track = promises.sent(durability);
            if let Some(bank) = promises.banks.get_mut(&row) {
                bank.transfers.insert(id, Transfer { version: version + 1, outcome: Outcome::Open, track });
            }
        }
        if self.rng.one_in(3) {
            // Others may be quicker.
            self.life.settle().await;
        }
        let result = calls::atomic(&self.life, &table(), &[put], Some(&condition)).await;
        self.trace.note(&format!("{row} transfer {id} to version {}: {result:?}", version + 1));
        let mut promises = self.promises.lock();
        let outcome = match &result {
            Ok(false) => Outcome::Gone,
            Ok(true) => promises.outcome_of(&Ok(())),
            Err(failure) => promises.outcome_of(&Err(failure.clone())),
        };
        let tick = promises.tick();
        let Some(known) = promises.banks.get_mut(&row).and_then(|bank| bank.transfers.get_mut(&id)) else {
            return;
        };
        if known.outcome == Outcome::Acked && result == Ok(false) {
            let what = format!("{row}: transfer {id} was seen and then said not to have happened");
            drop(promises);
            self.record::<()>(Err(Violation(what)));
        } else {
            answer(&mut known.outcome, &mut known.track, outcome, tick);
        }
    }

    /// An increment or append with a nonce: a new one, or one whose outcome is open. Sometimes sent twice at once.
    async fn grow(&self, append: bool) {
        let row = place(if append { "string" } else { "counter" }, self.rng.below(2));
        let nonce = {
            let (now_ms, archived) = (self.life.clock.now_ms().0, self.life.archived());
            let mut promises = self.promises.lock();
            let life = promises.life;
            let growing = promises.growing(&row, append);
            // By the wall clock half an hour has gone by, or perhaps has: not sent again.
            let old = |sent: &Sent| (sent.at_ms - now_ms).abs() > 1_000_000;
            growing.given_up.extend(growing.open.extract_if(.., |_, sent| old(sent)).map(|(nonce, _)| nonce));
            let open = growing.open.keys().find(|nonce| !growing.running.contains(nonce)).copied();
            let nonce = open.unwrap_or_else(|| self.rng.next_u64() >> 1 | 1);
            growing.running.insert(nonce);
            let sent = growing.open.get(&nonce).copied();
            let track = match sent {
                None => promises.sent(durability_of_nonce(nonce)),
                // What it finds may be an earlier life's work: when it was sent says nothing.
                Some(sent) if sent.track.life != life => Track { life, sent: 0, ..sent.track },
                Some(sent) => sent.track,
            };
            let first = sent.unwrap_or(Sent { life, archived, at_ms: now_ms, track });
            promises.growing(&row, append).open.insert(nonce, Sent { track, ..first });
            promises.counts.retried_nonces += u64::from(open.is_some());
            nonce
        };
        let result = if self.rng.one_in(3) {
            let (one, two) = (self.clone(), self.clone());
            let (row_one, row_two) = (row.clone(), row.clone());
            let first = tokio::spawn(async move { one.send_growth(&row_one, nonce, append).await });
            let second = tokio::spawn(async move { two.send_growth(&row_two, nonce, append).await });
            let (first, second) = (first.await, second.await);
            match (first, second) {
                (Ok(Ok(())), _) | (_, Ok(Ok(()))) => Ok(()),
                (Ok(failure), _) | (_, Ok(failure)) => failure,
                _ => Err(Failure::Maybe("both tries ended badly".into())),
            }
        } else {
            self.send_growth(&row, nonce, append).await
        };
        let mut promises = self.promises.lock();
        let _counted = promises.outcome_of(&result);
        let tick = promises.tick();
        let growing = promises.growing(&row, append);
        growing.running.remove(&nonce);
        // Nobody hears some answers: the call is made again, perhaps in the next life.
        if result.is_ok()
            && !self.rng.one_in(4)
            && let Some(Sent { mut track, .. }) = growing.open.remove(&nonce)
        {
            track.ack(tick);
            growing.acked.insert(nonce, track);
        }
    }

    async fn send_growth(&self, row: &str, nonce: u64, append: bool) -> Result<(), Failure> {
        let piece = format!("{nonce};");
        let mut mutation = if append {
            calls::mutation(MutationKind::Append, row, &[("f", "n", LATEST, CellType::Put, piece.as_bytes())])
        } else {
            calls::mutation(MutationKind::Increment, row, &[("f", "n", LATEST, CellType::Put, &1u64.to_be_bytes())])
        };
        mutation.nonce = Some(Nonce { group: 7, number: nonce });
        mutation.durability = durability_of_nonce(nonce);
        self.trace.note(&format!("{row} nonce {nonce} sent"));
        let result = calls::mutate(&self.life, &table(), &mutation).await.map(|_| ());
        self.trace.note(&format!("{row} nonce {nonce}: {result:?}"));
        result
    }

    /// Some nodes that refer to one that was acknowledged.
    async fn extend_list(&self, client: u64) {
        let durability = self.durability();
        let (before, rows) = {
            let mut promises = self.promises.lock();
            let mine = |row: &&String| row.contains(&format!("-node{client}x"));
            let acked = |(_, node): &(&String, &ListNode)| node.outcome == Outcome::Acked;
            let known: Vec<String> =
                promises.nodes.iter().filter(|(row, _)| mine(row)).filter(acked).map(|(row, _)| row.clone()).collect();
            let before = known.get(self.rng.below(known.len() as u64) as usize).cloned().unwrap_or_default();
            let rows: Vec<String> = (0..=self.rng.below(4))
                .map(|_| format!("{:02}-node{client}x{}", self.rng.below(100), self.rng.next_u64() >> 20))
                .collect();
            for row in &rows {
                let track = promises.sent(durability);
                promises.nodes.insert(row.clone(), ListNode { before: before.clone(), outcome: Outcome::Open, track });
            }
            (before, rows)
        };
        let puts: Vec<Mutation> = rows
            .iter()
            .map(|row| calls::mutation(MutationKind::Put, row, &[("f", "prev", 1, CellType::Put, before.as_bytes())]))
            .map(|put| Mutation { durability, ..put })
            .collect();
        let results = calls::batch(&self.life, &table(), &puts).await;
        self.trace.note(&format!("nodes {rows:?} -> {before}: {results:?}"));
        let mut promises = self.promises.lock();
        for (row, result) in rows.iter().zip(&results) {
            let (outcome, tick) = (promises.outcome_of(result), promises.tick());
            if let Some(node) = promises.nodes.get_mut(row) {
                answer(&mut node.outcome, &mut node.track, outcome, tick);
            }
        }
    }

    async fn read(&self, client: u64) {
        let (kind, row) = match self.rng.below(4) {
            0 => (0, place("bank", self.rng.below(2))),
            1 => (1, place("counter", self.rng.below(2))),
            2 => (2, place("string", self.rng.below(2))),
            _ => (3, self.own_row(client)),
        };
        let Ok(cells) = calls::get(&self.life, &table(), &row).await else { return };
        let mut promises = self.promises.lock();
        promises.counts.reads += 1;
        let seen = match kind {
            0 => promises.see_bank(&row, &cells, false).map(|_| ()),
            1 => promises.see_counter(&row, &cells, false),
            2 => promises.see_string(&row, &cells, false),
            _ => promises.see_journal(&row, &cells, false),
        };
        drop(promises);
        self.record(seen);
    }

    async fn scan(&self) {
        let manner = Manner::any(&self.rng);
        let before = self.promises.lock().clone();
        let Ok(rows) = scans::whole(&self.life, &table(), manner).await else { return };
        self.promises.lock().counts.scans += 1;
        self.record(scans::check_moving(&before, &rows, manner));
    }

    /// One change of the changing table. Ends when the procedure does.
    pub async fn change(self) {
        self.promises.lock().busy += 1;
        self.change_inner().await;
        let mut promises = self.promises.lock();
        promises.busy = promises.busy.saturating_sub(1);
    }

    async fn change_inner(&self) {
        let (name, master, caller) = (changing(), &self.life.master, Caller::default());
        let now = match self.promises.lock().changing.shapes.as_slice() {
            [one] => one.clone(),
            // What the last change came to is not known yet.
            _ => return,
        };
        let choice = self.rng.below(8);
        let (submitted, after) = match &now {
            None => {
                let fams: BTreeSet<String> = ["a", "b"].map(str::to_owned).into();
                let descriptor = TableDescriptor::new(name.clone(), ["a", "b"].map(FamilyDescriptor::new));
                let after = Some((true, fams));
                self.expect([now.clone(), after.clone()]);
                (master.create_table(descriptor, &[Bytes::from("k")], &caller).await, after)
            }
            Some((true, fams)) if choice < 3 => return self.fill(fams.contains("c")).await,
            Some((true, fams)) if choice < 6 => {
                let after = Some((false, fams.clone()));
                self.expect([now.clone(), after.clone()]);
                (master.disable_table(&name, &caller).await, after)
            }
            Some((enabled, fams)) if choice == 6 || *enabled => {
                let (mut fams, family) = (fams.clone(), Bytes::from("c"));
                let there = fams.contains("c");
                if there {
                    fams.remove("c")
                } else {
                    self.promises.lock().changing.added += 1;
                    fams.insert("c".into())
                };
                let after = Some((*enabled, fams));
                self.expect([now.clone(), after.clone()]);
                let submitted = if there {
                    master.delete_family(&name, &family, &caller).await
                } else {
                    master.add_family(&name, FamilyDescriptor::new("c"), &caller).await
                };
                (submitted, after)
            }
            Some((_, fams)) if choice < 2 => {
                let after = Some((true, fams.clone()));
                self.expect([now.clone(), after.clone()]);
                (master.enable_table(&name, &caller).await, after)
            }
            Some((_, fams)) if choice < 4 => {
                // It ends enabled and empty.
                let after = Some((true, fams.clone()));
                self.expect([now.clone(), after.clone()]);
                self.doubt_rows();
                (master.truncate_table(&name, choice == 2, &caller).await, after)
            }
            Some(_) => {
                self.expect([now.clone(), None]);
                self.doubt_rows();
                (master.delete_table(&name, &caller).await, None)
            }
        };
        let truncated = matches!((&now, &after), (Some((false, _)), Some((true, _))) if (2..4).contains(&choice));
        self.trace.note(&format!("change {now:?} to {after:?}"));
        let outcome = match submitted {
            Ok(id) => master.wait_for(id).await.map(|_| ()),
            Err(error) => Err(error),
        };
        self.trace.note(&format!("change to {after:?}: {outcome:?}"));
        let mut promises = self.promises.lock();
        if outcome.is_ok() {
            promises.counts.ddl += 1;
            if after.is_none() || truncated {
                promises.changing.rows.clear();
                promises.changing.fresh.clear();
                promises.changing.perhaps.clear();
            }
            promises.changing.shapes = vec![after];
        }
        // Else it is one of the two, and the next quiet moment shows which.
    }

    fn expect(&self, shapes: [Option<(bool, BTreeSet<String>)>; 2]) {
        self.promises.lock().changing.shapes = shapes.into();
    }

    fn doubt_rows(&self) {
        let changing = &mut self.promises.lock().changing;
        let rows = std::mem::take(&mut changing.rows);
        changing.perhaps.extend(rows);
    }

    async fn fill(&self, has_c: bool) {
        let added = self.promises.lock().changing.added.to_string();
        let rows: Vec<String> = (0..3).map(|_| format!("{}", (b'a' + self.rng.below(26) as u8) as char)).collect();
        self.promises.lock().changing.perhaps.extend(rows.iter().cloned());
        let puts: Vec<Mutation> = rows
            .iter()
            .map(|row| {
                let mut cells = vec![("a", "q", 1, CellType::Put, row.as_bytes())];
                if has_c {
                    cells.push(("c", "q", 1, CellType::Put, added.as_bytes()));
                }
                calls::mutation(MutationKind::Put, row, &cells)
            })
            .collect();
        let results = calls::batch(&self.life, &changing(), &puts).await;
        let mut promises = self.promises.lock();
        for (row, result) in rows.into_iter().zip(&results) {
            if promises.outcome_of(result) == Outcome::Acked && promises.changing.rows.insert(row.clone()) {
                promises.changing.fresh.insert(row);
            }
        }
    }
}

/// Notes an answer: of a write that nobody has seen yet.
pub(crate) fn answer(known: &mut Outcome, track: &mut Track, outcome: Outcome, tick: u64) {
    if *known == Outcome::Open {
        *known = outcome;
    }
    if outcome == Outcome::Acked {
        track.ack(tick);
    }
}

/// A call that is sent again asks for the same.
fn durability_of_nonce(nonce: u64) -> Durability {
    DURABILITIES[(nonce % DURABILITIES.len() as u64) as usize]
}

impl Promises {
    pub(crate) fn outcome_of(&mut self, result: &Result<(), Failure>) -> Outcome {
        match result {
            Ok(()) => {
                self.counts.acked += 1;
                Outcome::Acked
            }
            Err(Failure::No(_)) => {
                self.counts.refused += 1;
                Outcome::Gone
            }
            Err(Failure::Maybe(_)) => {
                self.counts.maybe += 1;
                Outcome::Maybe
            }
        }
    }

    fn growing(&mut self, row: &str, append: bool) -> &mut Growing {
        let all = if append { &mut self.strings } else { &mut self.counters };
        all.entry(row.to_owned()).or_default()
    }
}
