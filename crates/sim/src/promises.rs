//! What clients were promised, and whether what they see keeps it.
//!
//! Four kinds of rows. *Journal* rows belong to one client each: every write puts the same number into both families
//! (`f` keeps one version, `g` all), so a row shows which writes it has and whether it has them whole. *Banks* are shared: the
//! sum of a row's accounts never changes, and every version says whose transfer made it. *Counters* and *strings* grow by
//! retried calls with nonces. *Nodes* are HBase's big linked list: each names the one before, which was acknowledged first.

use crate::calls::RowCells;
use crate::{Violation, ensure};
use std::collections::{BTreeMap, BTreeSet};

/// Sum of a bank's accounts.
pub const BANK_SUM: i64 = 400;
/// Accounts of a bank, the last in family `g`.
pub const ACCOUNTS: [&str; 4] = ["f:a0", "f:a1", "f:a2", "g:a3"];

/// What is known of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// No answer yet.
    Open,
    /// Acknowledged, or seen: there for ever.
    Acked,
    /// The answer left it open, or the server is gone.
    Maybe,
    /// Refused, or found not to be there when nothing was under way: never there.
    Gone,
}

impl Fate {
    fn is_open(self) -> bool {
        matches!(self, Fate::Open | Fate::Maybe)
    }
}

/// A write to a journal row; its number is its timestamp.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Number.
    pub number: i64,
    /// Deletes all before it.
    pub deletes: bool,
    /// What became of it.
    pub fate: Fate,
}

/// A shared row with accounts.
#[derive(Clone, Debug, Default)]
pub struct Bank {
    /// Transfers by id: the version that each would make.
    pub transfers: BTreeMap<u64, (i64, Fate)>,
    /// The highest version seen.
    pub seen: i64,
}

/// Something that grows by calls with nonces.
#[derive(Clone, Debug, Default)]
pub struct Growing {
    /// Nonces that were acknowledged.
    pub acked: BTreeSet<u64>,
    /// Nonces whose fate is open: to be sent again.
    pub open: BTreeMap<u64, Sent>,
    /// Nonces whose fate is open and that are not sent again: too much has happened since.
    pub given_up: BTreeSet<u64>,
    /// Nonces that run right now.
    pub running: BTreeSet<u64>,
    /// The highest value seen.
    pub seen: u64,
}

/// When a nonce was first sent. A server knows the nonces of its own life and those in the logs of the life before; that is
/// all that is promised, here and by HBase: not over two lives, nor when the log was archived before the crash, nor when half an
/// hour went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// In which life.
    pub life: u64,
    /// How many logs had been archived by then.
    pub archived: u64,
    /// By the wall clock.
    pub at_ms: i64,
}

/// A table that comes and goes.
#[derive(Clone, Debug, Default)]
pub struct Changing {
    /// What the table may look like now: `None`, or whether it is enabled and which families it has.
    pub shapes: Vec<Option<(bool, BTreeSet<String>)>>,
    /// Rows that must be there.
    pub rows: BTreeSet<String>,
    /// Rows that may be there.
    pub perhaps: BTreeSet<String>,
}

/// All promises.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    /// Journal rows.
    pub journal: BTreeMap<String, Vec<Write>>,
    /// Banks.
    pub banks: BTreeMap<String, Bank>,
    /// Counters.
    pub counters: BTreeMap<String, Growing>,
    /// Strings that are appended to.
    pub strings: BTreeMap<String, Growing>,
    /// Nodes of lists: the node before (empty: none), and what became of the write.
    pub nodes: BTreeMap<String, (String, Fate)>,
    /// Rows that never change.
    pub still: BTreeSet<String>,
    /// The table of the DDL client.
    pub changing: Changing,
    /// Which life of the server this is.
    pub life: u64,
    /// Calls under way.
    pub busy: usize,
    /// Acknowledged operations, refused ones, those left open, reads that were checked, scans.
    pub counts: Counts,
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say what they count")]
pub struct Counts {
    pub acked: u64,
    pub refused: u64,
    pub maybe: u64,
    pub reads: u64,
    pub scans: u64,
    pub loads: u64,
    pub retried_nonces: u64,
    pub ddl: u64,
}

/// The value that write `number` gives to `row`: it says of itself where it belongs.
pub fn value_of(row: &str, number: i64) -> Vec<u8> {
    let mut value = format!("{row}@{number}:");
    value.extend(std::iter::repeat_n('x', (number * 37 % 90) as usize));
    value.into_bytes()
}

impl Promises {
    /// The server is gone: nobody will answer what was under way. `archived` logs have been put away so far.
    pub fn server_gone(&mut self, archived: u64) {
        let lost = |fate: &mut Fate| {
            if *fate == Fate::Open {
                *fate = Fate::Maybe;
            }
        };
        self.journal.values_mut().flatten().for_each(|write| lost(&mut write.fate));
        self.banks.values_mut().flat_map(|bank| bank.transfers.values_mut()).for_each(|(_, fate)| lost(fate));
        self.nodes.values_mut().for_each(|(_, fate)| lost(fate));
        for growing in self.counters.values_mut().chain(self.strings.values_mut()) {
            growing.running.clear();
            let life = self.life;
            let known = |sent: &Sent| sent.life == life && sent.archived == archived;
            growing.given_up.extend(growing.open.extract_if(.., |_, sent| !known(sent)).map(|(nonce, _)| nonce));
        }
        self.busy = 0;
    }

    /// Checks what was read of a journal row. `quiet`: nothing is under way, so what is not there never will be.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_journal(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(), Violation> {
        let writes = self.journal.entry(row.to_owned()).or_default();
        let mut in_g = BTreeSet::new();
        let mut in_f = None;
        for (column, number, value) in cells {
            ensure(*value == value_of(row, *number), || format!("{row}: {column} at {number} has a foreign value"))?;
            match column.as_str() {
                "f:v" => {
                    ensure(in_f.is_none(), || format!("{row}: two versions in family f"))?;
                    in_f = Some(*number);
                }
                "g:v" => drop(in_g.insert(*number)),
                other => return Err(Violation(format!("{row}: nobody wrote column {other}"))),
            }
        }
        let shown = || format!("{row} shows f={in_f:?} g={in_g:?}");
        ensure(in_f == in_g.last().copied(), || format!("a write is there in part: {}", shown()))?;
        for number in &in_g {
            let known = writes.iter().any(|w| w.number == *number && !w.deletes && w.fate != Fate::Gone);
            ensure(known, || format!("invented, refused or lost before: {number}; {}; {writes:?}", shown()))?;
        }
        // The last delete that happened: an acknowledged one or a later open one.
        let acked = writes.iter().filter(|w| w.deletes && w.fate == Fate::Acked).map(|w| w.number).max().unwrap_or(0);
        let open = writes.iter().filter(|w| w.deletes && w.fate.is_open() && w.number > acked).map(|w| w.number);
        let fits = |deleted: i64| {
            in_g.first().is_none_or(|first| *first > deleted)
                && writes
                    .iter()
                    .filter(|w| !w.deletes && w.fate == Fate::Acked && w.number > deleted)
                    .all(|w| in_g.contains(&w.number))
        };
        let Some(deleted) = std::iter::once(acked).chain(open).find(|deleted| fits(*deleted)) else {
            return Err(Violation(format!("an acknowledged write is lost or undone: {}; {writes:?}", shown())));
        };
        for write in writes.iter_mut().filter(|w| w.fate.is_open()) {
            let there = if write.deletes { write.number == deleted } else { in_g.contains(&write.number) };
            if there {
                // Seen once is as good as acknowledged.
                write.fate = Fate::Acked;
            } else if quiet && (!write.deletes || write.number > deleted) {
                write.fate = Fate::Gone;
            }
        }
        if quiet {
            // What lies below a delete that happened is history.
            writes.retain(|w| w.number >= deleted || w.fate == Fate::Gone);
        }
        Ok(())
    }

    /// Checks what was read of a bank; answers its version and balances.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_bank(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(i64, [i64; 4]), Violation> {
        let bank = self.banks.get_mut(row).ok_or_else(|| Violation(format!("{row} is no bank")))?;
        let shown: Vec<String> =
            cells.iter().map(|(c, t, v)| format!("{c}/{t}={}", String::from_utf8_lossy(v))).collect();
        let number = |column: &str| {
            let value =
                cells.iter().find(|(c, ..)| c == column).map(|(_, _, v)| String::from_utf8_lossy(v).into_owned());
            value
                .and_then(|v| v.parse::<i64>().ok())
                .ok_or_else(|| Violation(format!("{row} lost {column}: {shown:?}")))
        };
        let mut balances = [0; 4];
        for (balance, column) in balances.iter_mut().zip(ACCOUNTS) {
            *balance = number(column)?;
        }
        let version = number("f:ver")?;
        ensure(balances.iter().sum::<i64>() == BANK_SUM, || format!("{row} does not sum up: {shown:?}"))?;
        ensure(version >= bank.seen, || format!("{row} went back from version {} to {version}", bank.seen))?;
        bank.seen = version;
        let mut makers: BTreeMap<i64, u64> = BTreeMap::new();
        for (_, timestamp, value) in cells.iter().filter(|(c, ..)| c == "g:who") {
            let id = String::from_utf8_lossy(value).parse().unwrap_or(u64::MAX);
            makers.insert(*timestamp - 1, id);
        }
        for made in 1..=version {
            let maker = makers.get(&made).copied();
            let known = maker.and_then(|id| bank.transfers.get(&id)).copied();
            ensure(known.is_some_and(|(v, fate)| v == made && fate != Fate::Gone), || {
                format!("{row}: version {made} of {version} was made by {maker:?}, who did {known:?}: {shown:?}")
            })?;
        }
        ensure(makers.keys().all(|made| *made <= version), || format!("{row}: a version to come: {shown:?}"))?;
        for (id, (made, fate)) in &mut bank.transfers {
            let there = makers.get(made) == Some(id);
            ensure(there || *fate != Fate::Acked, || format!("{row}: acknowledged transfer {id} is lost: {shown:?}"))?;
            if there {
                *fate = Fate::Acked;
            } else if quiet && fate.is_open() {
                *fate = Fate::Gone;
            }
        }
        Ok((version, balances))
    }

    /// Checks a counter's value.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_counter(&mut self, row: &str, cells: &RowCells) -> Result<(), Violation> {
        let growing = self.counters.entry(row.to_owned()).or_default();
        let value = match cells.as_slice() {
            [] => 0,
            [(_, _, value)] => u64::from_be_bytes(value.as_slice().try_into().unwrap_or([0xFF; 8])),
            _ => return Err(Violation(format!("{row}: two versions of a counter"))),
        };
        let open = growing.open.len() + growing.given_up.len();
        let (least, most) = (growing.acked.len() as u64, (growing.acked.len() + open) as u64);
        ensure((least.max(growing.seen)..=most).contains(&value), || {
            format!("{row} is {value}: {least} acknowledged, {most} sent, {} seen before", growing.seen)
        })?;
        growing.seen = value;
        Ok(())
    }

    /// Checks a string that was appended to: every acknowledged piece once, open ones at most once.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_string(&mut self, row: &str, cells: &RowCells) -> Result<(), Violation> {
        let growing = self.strings.entry(row.to_owned()).or_default();
        let text = cells.first().map(|(_, _, v)| String::from_utf8_lossy(v).into_owned()).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for piece in text.split(';').filter(|piece| !piece.is_empty()) {
            let nonce: u64 = piece.parse().map_err(|_| Violation(format!("{row}: a torn piece in {text}")))?;
            let open = growing.open.contains_key(&nonce) || growing.given_up.contains(&nonce);
            let known = growing.acked.contains(&nonce) || open;
            ensure(known, || format!("{row}: nobody appended {nonce}: {text}"))?;
            ensure(seen.insert(nonce), || format!("{row}: {nonce} was appended twice: {text}"))?;
        }
        let lost: Vec<u64> = growing.acked.difference(&seen).copied().collect();
        ensure(lost.is_empty(), || format!("{row} lost {lost:?}: {text}"))
    }

    /// Checks every node of the lists, `seen` being all that a scan showed, with the node before each.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_nodes(&mut self, seen: &BTreeMap<String, String>, quiet: bool) -> Result<(), Violation> {
        for (row, before) in seen {
            let known = self.nodes.get(row);
            ensure(known.is_some_and(|(b, fate)| b == before && *fate != Fate::Gone), || {
                format!("node {row} -> {before} is invented or refused: {known:?}")
            })?;
            ensure(before.is_empty() || seen.contains_key(before), || format!("node {row} refers to {before}: lost"))?;
        }
        for (row, (_, fate)) in &mut self.nodes {
            let there = seen.contains_key(row);
            ensure(there || *fate != Fate::Acked, || format!("acknowledged node {row} is lost"))?;
            if there {
                *fate = Fate::Acked;
            } else if quiet && fate.is_open() {
                *fate = Fate::Gone;
            }
        }
        Ok(())
    }
}
