//! Random writes of every kind, and what they come to in the oracle.
//!
//! What a write becomes depends on what was there before the call: a delete of "the latest version" takes that one's
//! timestamp, an Increment or Append builds on the newest value, a check lets it pass or not. Several mutations of one
//! call all see the state before it, and share one sequence id.

use super::oracle::{Ask, Cell, Store};
use super::reads::{random_filter, row_of};
use super::sieve::passes;
use super::world::{BASE, FAMILIES, World, pick};
use crate::common::*;
use base::Rng;
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType, tag};
use filter::{Comparator, CompareOp};
use model::mutation::ConditionTest;
use model::{Condition, Durability, Mutation, MutationKind, Scan, TimeRange};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Family, qualifier, timestamp, type, value.
type RandomCell = (&'static str, Vec<u8>, i64, CellType, Vec<u8>);
/// Cells as they will be written, by family.
type Planned = Vec<(&'static str, Cell)>;

pub fn random_row(rng: &Rng) -> Vec<u8> {
    pick(rng, &[&b"a"[..], b"b", b"b\0", b"c", b"cc", b"d", b"e\xff", b"f"]).to_vec()
}

pub fn random_qualifier(rng: &Rng) -> Vec<u8> {
    pick(rng, &[&b""[..], b"p", b"q", b"qq", b"r", b"n", b"s"]).to_vec()
}

pub fn random_timestamp(rng: &Rng) -> i64 {
    BASE + rng.below(25) as i64 * 1000
}

fn random_value(rng: &Rng) -> Vec<u8> {
    let len = if rng.one_in(10) { 600 } else { rng.below(12) };
    vec![b'a' + rng.below(26) as u8; len as usize]
}

fn random_cell(rng: &Rng, kind: MutationKind, empty_puts: bool) -> RandomCell {
    let family = pick(rng, &FAMILIES);
    let timestamp = if rng.one_in(4) { LATEST } else { random_timestamp(rng) };
    // Two columns are kept for numbers and texts, so that counting and appending mostly finds what it wants.
    let put_qualifier = loop {
        let qualifier = random_qualifier(rng);
        if qualifier != b"n" && (empty_puts || !qualifier.is_empty()) {
            break qualifier;
        }
    };
    match kind {
        MutationKind::Put => (family, put_qualifier, timestamp, CellType::Put, random_value(rng)),
        MutationKind::Delete => {
            let all = [CellType::Delete, CellType::DeleteColumn, CellType::DeleteFamily, CellType::DeleteFamilyVersion];
            let cell_type = pick(rng, &all);
            let of_family = matches!(cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
            let qualifier = if of_family { Vec::new() } else { random_qualifier(rng) };
            (family, qualifier, timestamp, cell_type, Vec::new())
        }
        MutationKind::Increment => {
            let qualifier = if rng.one_in(15) { b"s".to_vec() } else { b"n".to_vec() };
            let amount = (rng.below(100) as i64 - 50).to_be_bytes().to_vec();
            (family, qualifier, LATEST, CellType::Put, amount)
        }
        MutationKind::Append => (family, b"s".to_vec(), LATEST, CellType::Put, random_value(rng)),
    }
}

fn random_mutation(world: &World, row: &[u8], kind: MutationKind, durability: Durability) -> Mutation {
    let (rng, empty_puts) = (&world.rng, world.empty_puts);
    let ttl_ms = (kind != MutationKind::Delete && rng.one_in(8)).then(|| 1 + rng.below(9000) as i64);
    let mut tags = Vec::new();
    if let Some(ttl_ms) = ttl_ms {
        tag::write(&mut tags, tag::TTL, &ttl_ms.to_be_bytes());
    }
    let mut cells: Vec<RandomCell> = (0..1 + rng.below(3)).map(|_| random_cell(rng, kind, empty_puts)).collect();
    if matches!(kind, MutationKind::Increment | MutationKind::Append) {
        // One change of each column.
        cells.sort();
        cells.dedup_by(|a, b| (a.0, &a.1) == (b.0, &b.1));
    }
    let specs = cells.iter().map(|(family, qualifier, timestamp, cell_type, value)| CellSpec {
        row,
        family: family.as_bytes(),
        qualifier,
        timestamp: *timestamp,
        type_code: cell_type.code(),
        value,
        tags: if kind == MutationKind::Put { &tags } else { b"" },
    });
    let whole_row = kind == MutationKind::Delete && rng.one_in(6);
    let block = if whole_row { CellBlock::default() } else { CellBlock::from_specs(specs) };
    let mut mutation = Mutation::new(kind, Bytes::copy_from_slice(row), block);
    mutation.ttl_ms = ttl_ms;
    mutation.durability = durability;
    if whole_row && rng.one_in(2) {
        mutation.timestamp = random_timestamp(rng);
    }
    if matches!(kind, MutationKind::Increment | MutationKind::Append) && rng.one_in(6) {
        let min = random_timestamp(rng);
        mutation.time_range = TimeRange { min, max: min + 8000 };
    }
    mutation
}

fn random_durability(rng: &Rng) -> Durability {
    pick(rng, &[Durability::UseDefault, Durability::UseDefault, Durability::SkipWal, Durability::AsyncWal])
}

/// What the mutations become. `stamp` is what LATEST stands for, in puts `put_stamp`.
fn plan(
    stores: &BTreeMap<&'static str, Store>,
    mutations: &[Mutation],
    now: i64,
    stamp: i64,
    put_stamp: i64,
) -> Result<Planned, String> {
    let mut planned: Planned = Vec::new();
    for mutation in mutations {
        let row = mutation.row.to_vec();
        let mut add = |family: &'static str, cell: Cell| {
            planned.push((family, Cell { position: planned.len(), ..cell }));
        };
        let blank = |qualifier: &[u8], timestamp, cell_type, value: &[u8]| Cell {
            row: row.clone(),
            qualifier: qualifier.to_vec(),
            timestamp,
            cell_type,
            seq_id: 0,
            position: 0,
            value: value.to_vec(),
            ttl_ms: mutation.ttl_ms,
        };
        if mutation.kind == MutationKind::Delete && mutation.cells.is_empty() {
            let timestamp = if mutation.timestamp == LATEST { stamp } else { mutation.timestamp };
            FAMILIES.iter().for_each(|family| add(family, blank(b"", timestamp, CellType::DeleteFamily, b"")));
            continue;
        }
        let mut latest_seen: BTreeMap<(&str, Vec<u8>), usize> = BTreeMap::new();
        for cell in &mutation.cells {
            let family = FAMILIES.into_iter().find(|name| name.as_bytes() == cell.family()).expect("known");
            let cell_type = CellType::from_code(cell.type_code()).expect("known");
            let (qualifier, store, is_latest) = (cell.qualifier(), &stores[family], cell.timestamp() == LATEST);
            match mutation.kind {
                MutationKind::Put => {
                    let timestamp = if is_latest { put_stamp } else { cell.timestamp() };
                    add(family, blank(qualifier, timestamp, cell_type, cell.value()));
                }
                MutationKind::Delete if cell_type == CellType::Delete && is_latest => {
                    // The second one for a column means the version before the latest.
                    let nth = latest_seen.entry((family, qualifier.to_vec())).or_default();
                    *nth += 1;
                    let found = store.read_column(&row, &Ask::newest(qualifier, *nth, TimeRange::ALL), now);
                    let timestamp = found.get(*nth - 1).map_or(stamp, |cell| cell.timestamp);
                    add(family, blank(qualifier, timestamp, cell_type, b""));
                }
                MutationKind::Delete => {
                    let timestamp = if is_latest { stamp } else { cell.timestamp() };
                    add(family, blank(qualifier, timestamp, cell_type, b""));
                }
                MutationKind::Increment | MutationKind::Append => {
                    let ask = Ask::newest(qualifier, 1, mutation.time_range);
                    let old = store.read_column(&row, &ask, now).into_iter().next();
                    let before = old.as_ref().map_or(&b""[..], |old| &old.value);
                    let value = if mutation.kind == MutationKind::Append {
                        [before, cell.value()].concat()
                    } else {
                        let number = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes);
                        let before = if old.is_some() { number(before) } else { Ok(0) };
                        let before = before.map_err(|_| "Field is not a long".to_owned())?;
                        (before + number(cell.value()).expect("8 bytes")).to_be_bytes().to_vec()
                    };
                    let timestamp = old.as_ref().map_or(stamp, |old| stamp.max(old.timestamp + 1));
                    // What is built on an old value inherits its time to live.
                    let ttl_ms = mutation.ttl_ms.or(old.and_then(|old| old.ttl_ms));
                    add(family, Cell { ttl_ms, ..blank(qualifier, timestamp, CellType::Put, &value) });
                }
            }
        }
    }
    Ok(planned)
}

/// Whether one call leaves a marker and something else in a row of a family that goes by arrival. Of one moment, HBase's
/// bookkeeping remembers one marker only, and counts what a put of that moment overwrote as still there. The programs
/// stay clear of that.
fn has_markers_of_one_moment(stores: &BTreeMap<&'static str, Store>, mutations: &[Mutation]) -> bool {
    let crowded = |row: &[u8], family: &str| {
        let cells = |m: &Mutation| match m.cells.is_empty() {
            true => 1,
            false => m.cells.iter().filter(|cell| cell.family() == family.as_bytes()).count(),
        };
        mutations.iter().filter(|mutation| mutation.row == row).map(cells).sum::<usize>() > 1
    };
    let by_arrival = |family: &&str| stores[family].rules.by_arrival;
    let mut deletes = mutations.iter().filter(|mutation| mutation.kind == MutationKind::Delete);
    deletes.any(|mutation| FAMILIES.iter().copied().filter(by_arrival).any(|family| crowded(&mutation.row, family)))
}

impl World {
    /// Puts the planned cells into the oracle's memstores.
    fn write_down(&mut self, at: usize, planned: Planned, seq_id: u64) {
        for (family, cell) in planned {
            let store = self.regions[at].stores.get_mut(family).expect("known");
            let cell = Cell { seq_id, ..cell };
            let cells = &mut store.memory.cells;
            cells.retain(|earlier| earlier.seq_id != seq_id || !earlier.is_same(&cell));
            cells.push(cell);
        }
    }

    fn note(&mut self, what: &str, mutations: &[Mutation]) {
        let cells = |m: &Mutation| {
            let cells: Vec<String> = m.cells.iter().map(|c| show(c, BASE).chars().take(40).collect()).collect();
            format!("{:?} {} {cells:?}", m.kind, cell::print::to_string_binary(&m.row))
        };
        self.trace.push(format!("{what} {}", mutations.iter().map(cells).collect::<Vec<_>>().join("; ")));
    }

    pub fn write(&mut self) {
        match self.rng.below(8) {
            0..4 => self.apply(),
            4 => self.change(),
            5 => self.mutate_row(),
            _ => self.check_and_mutate(),
        }
    }

    /// Puts and deletes, one or several rows.
    fn apply(&mut self) {
        let rng = &self.rng;
        let durability = random_durability(rng);
        let kind = |rng: &Rng| if rng.one_in(3) { MutationKind::Delete } else { MutationKind::Put };
        let first = random_mutation(self, &random_row(rng), kind(rng), durability);
        let at = self.half_of(&first.row);
        let mut mutations = vec![first];
        while rng.one_in(4) {
            let row = random_row(rng);
            if self.regions[at].info.contains(&row) {
                mutations.push(random_mutation(self, &row, kind(rng), durability));
            }
        }
        if has_markers_of_one_moment(&self.regions[at].stores, &mutations) {
            return;
        }
        let is_pending = self.rng.one_in(6);
        self.note("apply", &mutations);
        let (now, stamp) = (self.now(), self.stamp(at));
        let planned = plan(&self.regions[at].stores, &mutations, now, stamp, stamp).expect("nothing to refuse");
        let region = &self.regions[at].region;
        let applied = region.apply(&mutations).expect("open");
        applied.results.into_iter().for_each(|result| assert!(result.expect("accepted").is_none()));
        let seq_id = applied.commit.seq_id().expect("something was written").0;
        if is_pending {
            self.trace.push(format!("   {seq_id} stays pending"));
            self.regions[at].pending.push(applied.commit);
        } else {
            applied.commit.wait().expect("durable");
            assert!(region.read_point().0 >= seq_id);
        }
        self.write_down(at, planned, seq_id);
    }

    /// An Increment or an Append.
    fn change(&mut self) {
        let rng = &self.rng;
        let kind = if rng.one_in(2) { MutationKind::Increment } else { MutationKind::Append };
        let mutations = [random_mutation(self, &random_row(rng), kind, random_durability(rng))];
        self.atomically("change", &mutations);
    }

    /// RowMutations.
    fn mutate_row(&mut self) {
        let rng = &self.rng;
        let (row, durability) = (random_row(rng), random_durability(rng));
        let all = [MutationKind::Put, MutationKind::Delete, MutationKind::Increment, MutationKind::Append];
        let mutations: Vec<Mutation> =
            (0..1 + rng.below(4)).map(|_| random_mutation(self, &row, pick(rng, &all), durability)).collect();
        self.atomically("row mutations", &mutations);
    }

    fn atomically(&mut self, what: &str, mutations: &[Mutation]) {
        let at = self.half_of(&mutations[0].row);
        if has_markers_of_one_moment(&self.regions[at].stores, mutations) {
            return;
        }
        self.note(what, mutations);
        let (now, stamp) = (self.now(), self.stamp(at));
        let planned = plan(&self.regions[at].stores, mutations, now, stamp, stamp);
        let written = self.regions[at].region.mutate_rows(mutations, None);
        match (planned, written) {
            (Ok(planned), Ok(written)) => {
                let counted = |m: &Mutation| matches!(m.kind, MutationKind::Increment | MutationKind::Append);
                check_results(&planned, mutations.iter().any(counted), &written.result);
                let seq_id = written.commit.seq_id().expect("written").0;
                written.commit.wait().expect("durable");
                self.write_down(at, planned, seq_id);
            }
            (Err(expected), Err(error)) => assert!(error.to_string().contains(&expected), "{error}"),
            (planned, written) => panic!("expected {planned:?}, got {written:?}"),
        }
    }

    fn random_condition(&self, row: &[u8]) -> Condition {
        let rng = &self.rng;
        let test = if rng.one_in(3) {
            ConditionTest::Filter(Arc::new(random_filter(rng, 1, self.filters)))
        } else {
            let op = pick(rng, &OPS);
            let value = if rng.one_in(3) { Vec::new() } else { random_value(rng) };
            ConditionTest::Value {
                family: Bytes::from(pick(rng, &FAMILIES)),
                qualifier: Bytes::from(random_qualifier(rng)),
                op,
                comparator: Arc::new(Comparator::Binary { value: Bytes::from(value) }),
            }
        };
        let mut time_range = TimeRange::ALL;
        if rng.one_in(4) {
            let min = random_timestamp(rng);
            time_range = TimeRange { min, max: min + 8000 };
        }
        Condition { row: Bytes::copy_from_slice(row), test, time_range }
    }

    /// Whether the condition holds, and the timestamp of what was looked at.
    fn holds(&self, at: usize, condition: &Condition, now: i64) -> (bool, i64) {
        let stores = &self.regions[at].stores;
        match &condition.test {
            ConditionTest::Filter(filter) => {
                let scan = Scan { filter: Some(filter.clone()), time_range: condition.time_range, ..Scan::default() };
                let found = row_of(stores, &scan, &condition.row, u64::MAX, now);
                (!found.is_empty(), found.first().map_or(0, |(_, cell)| cell.timestamp))
            }
            ConditionTest::Value { family, qualifier, op, comparator } => {
                let name = FAMILIES.into_iter().find(|name| name.as_bytes() == &family[..]).expect("known");
                let ask = Ask::newest(qualifier, 1, condition.time_range);
                let cell = stores[name].read_column(&condition.row, &ask, now).into_iter().next();
                let wanted = comparator.value_bytes();
                let holds = match &cell {
                    // Nothing is compared with "no value": what counts is whether there is one.
                    _ if wanted.is_empty() => {
                        cell.as_ref().is_none_or(|cell| cell.value.is_empty()) == (*op != CompareOp::NotEqual)
                    }
                    // Read as: the value that was sent OP the cell.
                    Some(cell) => passes(*op, &Comparator::Binary { value: Bytes::from(cell.value.clone()) }, &wanted),
                    None => false,
                };
                (holds, cell.map_or(0, |cell| cell.timestamp))
            }
        }
    }

    fn check_and_mutate(&mut self) {
        let rng = &self.rng;
        let (row, durability) = (random_row(rng), random_durability(rng));
        let all = [MutationKind::Put, MutationKind::Delete, MutationKind::Increment, MutationKind::Append];
        let mutations: Vec<Mutation> =
            (0..1 + rng.below(3)).map(|_| random_mutation(self, &row, pick(rng, &all), durability)).collect();
        let condition = self.random_condition(&row);
        let at = self.half_of(&row);
        if has_markers_of_one_moment(&self.regions[at].stores, &mutations) {
            return;
        }
        self.note(&format!("if {condition:?} then"), &mutations);
        let (now, stamp) = (self.now(), self.stamp(at));
        let (holds, seen) = self.holds(at, &condition, now);
        // A put must not be eclipsed by what the check saw; nothing else is moved.
        let planned = plan(&self.regions[at].stores, &mutations, now, stamp, stamp.max(seen));
        let checked = self.regions[at].region.check_and_mutate(&condition, &mutations, None);
        match (planned, checked) {
            (_, Ok(checked)) if !holds => {
                assert!(!checked.processed, "the condition does not hold");
                checked.commit.wait().expect("durable");
            }
            (Ok(planned), Ok(checked)) => {
                assert!(checked.processed, "the condition holds");
                let counted = |m: &Mutation| matches!(m.kind, MutationKind::Increment | MutationKind::Append);
                let counts = mutations.iter().any(counted);
                assert_eq!(checked.result.is_some(), counts);
                check_results(&planned, counts, &checked.result.unwrap_or_default());
                let seq_id = checked.commit.seq_id().expect("written").0;
                checked.commit.wait().expect("durable");
                self.write_down(at, planned, seq_id);
            }
            (Err(expected), Err(error)) if holds => assert!(error.to_string().contains(&expected), "{error}"),
            (planned, checked) => panic!("holds: {holds}; expected {planned:?}, got {checked:?}"),
        }
    }
}

/// What comes back of Increments and Appends is their new cells.
fn check_results(planned: &Planned, counts: bool, result: &cell::CellBuffer) {
    assert!(counts || result.is_empty());
    for cell in result.iter_from(0) {
        let same = |(family, planned): &&(&str, Cell)| {
            family.as_bytes() == cell.family()
                && planned.qualifier == cell.qualifier()
                && planned.value == cell.value()
                && planned.timestamp == cell.timestamp()
        };
        assert!(planned.iter().any(|planned| same(&planned)), "unexpected result {}", show(cell, BASE));
    }
}

pub const OPS: [CompareOp; 6] = [
    CompareOp::Less,
    CompareOp::LessOrEqual,
    CompareOp::Equal,
    CompareOp::NotEqual,
    CompareOp::GreaterOrEqual,
    CompareOp::Greater,
];
