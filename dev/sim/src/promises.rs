//! What clients were promised, and whether what they see keeps it.
//!
//! Four kinds of rows. *Journal* rows belong to one client each: every write puts the same number into both families
//! (`f` keeps one version, `g` all), so a row shows which writes it has and whether it has them whole. *Banks* are shared: the
//! sum of a row's accounts never changes, and every version says whose transfer made it. *Counters* and *strings* grow by
//! retried calls with nonces. *Nodes* are HBase's big linked list: each names the one before, which was acknowledged first. *Unlogged* rows are
//! written without the log, to one family.
//!
//! What is acknowledged and may be lost all the same (an unsynced log and a power failure, ASYNC_WAL, SKIP_WAL) is *at_risk* when the server's life
//! ends: its outcome is open again, but for its place in the log's order ([`crate::order`]).

use crate::calls::RowCells;
use crate::order::{Cuts, Ending, Persistence, Track, Visibility, persistence_of};
use crate::{Violation, ensure};
use model::Durability;
use std::collections::{BTreeMap, BTreeSet};

/// Sum of a bank's accounts.
pub const BANK_SUM: i64 = 400;
/// Accounts of a bank, the last in family `g`.
pub const ACCOUNTS: [&str; 4] = ["f:a0", "f:a1", "f:a2", "g:a3"];

/// What is known of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No answer yet.
    Open,
    /// Acknowledged, or seen: there for ever.
    Acked,
    /// The answer left it open, or the server is gone.
    Maybe,
    /// Refused, or found not to be there when nothing was under way: never there.
    Gone,
}

impl Outcome {
    fn is_open(self) -> bool {
        matches!(self, Outcome::Open | Outcome::Maybe)
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
    pub outcome: Outcome,
    /// When, and what it survives.
    pub track: Track,
}

/// A transfer between a bank's accounts.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The version that it would make.
    pub version: i64,
    /// What became of it.
    pub outcome: Outcome,
    /// When, and what it survives.
    pub track: Track,
}

/// A node of a list.
#[derive(Clone, Debug)]
pub struct ListNode {
    /// The node before; empty: none.
    pub before: String,
    /// What became of the write.
    pub outcome: Outcome,
    /// When, and what it survives.
    pub track: Track,
}

/// A shared row with accounts.
#[derive(Clone, Debug, Default)]
pub struct Bank {
    /// Transfers by id.
    pub transfers: BTreeMap<u64, Transfer>,
    /// The highest version seen.
    pub seen: i64,
}

/// Something that grows by calls with nonces.
#[derive(Clone, Debug, Default)]
pub struct Growing {
    /// Nonces that were acknowledged.
    pub acked: BTreeMap<u64, Track>,
    /// Nonces that were acknowledged and may be lost.
    pub at_risk: BTreeMap<u64, Track>,
    /// Nonces whose outcome is open: to be sent again.
    pub open: BTreeMap<u64, Sent>,
    /// Nonces whose outcome is open and that are not sent again: too much has happened since.
    pub given_up: BTreeSet<u64>,
    /// Nonces that run right now.
    pub running: BTreeSet<u64>,
    /// The highest value seen.
    pub seen: u64,
}

/// When a nonce was first sent. A server knows the nonces of its own life and those in the logs of the life before; that is
/// all that is promised, here and by HBase: not over two lives, nor when the log was archived before the crash, nor when half an
/// hour went by. Of a region that was split or merged since, the next start knows them too, but not one after that when it is broken off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// In which life.
    pub life: u64,
    /// How many logs had been archived by then.
    pub archived: u64,
    /// By the wall clock.
    pub at_ms: i64,
    /// When by the promises' own time, and what it survives.
    pub track: Track,
}

/// A table that comes and goes.
#[derive(Clone, Debug, Default)]
pub struct Changing {
    /// What the table may look like now: `None`, or whether it is enabled and which families it has.
    pub shapes: Vec<Option<(bool, BTreeSet<String>)>>,
    /// Rows that must be there.
    pub rows: BTreeSet<String>,
    /// Of these, those that were written in this life.
    pub fresh: BTreeSet<String>,
    /// Rows that may be there.
    pub perhaps: BTreeSet<String>,
    /// How often a family c was added: what is in it tells which one it was written to.
    pub added: u64,
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
    /// Nodes of lists.
    pub nodes: BTreeMap<String, ListNode>,
    /// Rows whose writes skip the log.
    pub unlogged: BTreeMap<String, Vec<Write>>,
    /// Rows that never change.
    pub still: BTreeSet<String>,
    /// The table of the DDL client.
    pub changing: Changing,
    /// Which life of the server this is.
    pub life: u64,
    /// In which life somebody asked last for a split or merge; it may end in the next one.
    pub reshaped_in: Option<u64>,
    /// Whether the server's log is relaxed (`hbase.wal.hsync` is false).
    pub relaxed: bool,
    /// What the main table says of writes that say nothing.
    pub table_durability: Durability,
    /// The promises' own time.
    pub tick: u64,
    /// Where the logs of earlier lives end.
    pub cuts: Cuts,
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
    pub at_risk: u64,
    pub lost: u64,
}

/// The value that write `number` gives to `row`: it says of itself where it belongs.
pub fn value_of(row: &str, number: i64) -> Vec<u8> {
    let mut value = format!("{row}@{number}:");
    value.extend(std::iter::repeat_n('x', (number * 37 % 90) as usize));
    value.into_bytes()
}

impl Promises {
    /// The next instant.
    pub fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// A write with this durability is sent now.
    pub fn sent(&mut self, durability: Durability) -> Track {
        let persistence = persistence_of(durability, self.table_durability, self.relaxed);
        Track::new(self.life, self.tick(), persistence)
    }

    fn visibility(&mut self) -> Visibility {
        Visibility::new(self.life, self.tick())
    }

    /// Every write that is told apart from others, but for nonces, with its row and what became of it.
    fn each_write(&mut self, mut visit: impl FnMut(&str, &mut Outcome, &mut Track)) {
        for (row, write) in
            self.journal.iter_mut().chain(&mut self.unlogged).flat_map(|(row, ws)| ws.iter_mut().map(move |w| (row, w)))
        {
            visit(row, &mut write.outcome, &mut write.track);
        }
        for (row, bank) in &mut self.banks {
            bank.transfers.values_mut().for_each(|one| visit(row, &mut one.outcome, &mut one.track));
        }
        self.nodes.iter_mut().for_each(|(row, node)| visit(row, &mut node.outcome, &mut node.track));
    }

    fn each_nonce(&mut self, mut visit: impl FnMut(&str, &mut Track)) {
        for (row, growing) in self.counters.iter_mut().chain(&mut self.strings) {
            growing.acked.values_mut().for_each(|track| visit(row, track));
        }
    }

    /// The server is gone: nobody will answer what was under way. `archived` logs have been put away so far.
    pub fn server_gone(&mut self, archived: u64) {
        self.each_write(|_, outcome, _| {
            if *outcome == Outcome::Open {
                *outcome = Outcome::Maybe;
            }
        });
        for growing in self.counters.values_mut().chain(self.strings.values_mut()) {
            growing.running.clear();
            let life = self.life;
            let known = |sent: &Sent| sent.life == life && sent.archived == archived;
            growing.given_up.extend(growing.open.extract_if(.., |_, sent| !known(sent)).map(|(nonce, _)| nonce));
        }
        self.busy = 0;
    }

    /// A start did not come to its end.
    pub fn start_broken_off(&mut self) {
        let Some(reshaped_in) = self.reshaped_in else { return };
        for growing in self.counters.values_mut().chain(self.strings.values_mut()) {
            let forgotten = growing.open.extract_if(.., |_, sent| sent.life <= reshaped_in + 1);
            growing.given_up.extend(forgotten.map(|(nonce, _)| nonce));
        }
    }

    /// What the end of a life, or of a start that did not get far, puts in doubt.
    pub fn ended(&mut self, ending: Ending) {
        let (mut at_risk, mut safe) = (0, Vec::new());
        self.each_write(|_, outcome, track| match outcome {
            Outcome::Acked if track.safe => safe.push(*track),
            Outcome::Acked if !track.survives(ending) => {
                *outcome = Outcome::Maybe;
                at_risk += 1;
            }
            _ => {}
        });
        for bank in self.banks.values_mut() {
            let sure = bank.transfers.values().filter(|one| one.outcome == Outcome::Acked).map(|one| one.version).max();
            let open = bank.transfers.values().any(|one| one.outcome == Outcome::Maybe && one.track.acked.is_some());
            if open {
                bank.seen = sure.unwrap_or(0);
            }
        }
        for growing in self.counters.values_mut().chain(self.strings.values_mut()) {
            safe.extend(growing.acked.values().filter(|track| track.safe));
            growing.at_risk.extend(growing.acked.extract_if(.., |_, track| !track.survives(ending)));
            at_risk += growing.at_risk.len() as u64;
            // What was seen of calls that nobody heard of may be gone as well.
            if !(growing.at_risk.is_empty() && growing.open.is_empty() && growing.given_up.is_empty()) {
                growing.seen = growing.acked.len() as u64;
            }
        }
        if persistence_of(Durability::UseDefault, Durability::SyncWal, self.relaxed) < Persistence::Synced
            && ending == Ending::Power
        {
            let fresh = std::mem::take(&mut self.changing.fresh);
            self.changing.rows.retain(|row| !fresh.contains(row));
            self.changing.perhaps.extend(fresh);
        }
        self.counts.at_risk += at_risk;
        safe.iter().for_each(|track| self.cuts.survived(track));
    }

    /// A server has started: what was acknowledged and not at_risk was recovered, and is safe from now on.
    pub fn started(&mut self) {
        self.life += 1;
        self.changing.fresh.clear();
        self.make_safe(|_, _| true, true);
    }

    /// Every acknowledged write that `is_there`, by its row and way, is on the disk now: of what is in the log, or (`flushed`) also of what is not.
    pub fn make_safe(&mut self, is_there: impl Fn(&str, &Track) -> bool, flushed: bool) {
        let (life, mut survived) = (self.life, Vec::new());
        let mut one = |row: &str, track: &mut Track| {
            if !track.safe && (flushed || track.ordered) && is_there(row, track) {
                track.safe = true;
                if track.life < life {
                    survived.push(*track);
                }
            }
        };
        self.each_write(|row, outcome, track| {
            if *outcome == Outcome::Acked {
                one(row, track);
            }
        });
        self.each_nonce(one);
        survived.iter().for_each(|track| self.cuts.survived(track));
    }

    /// Checks what was read of a journal row. `quiet`: nothing is under way, so what is not there never will be.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_journal(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(), Violation> {
        let mut visibility = self.visibility();
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
            let known = writes.iter().any(|w| w.number == *number && !w.deletes && w.outcome != Outcome::Gone);
            ensure(known, || format!("invented, refused or lost before: {number}; {}; {writes:?}", shown()))?;
        }
        // The last delete that happened: an acknowledged one or a later open one.
        let acked =
            writes.iter().filter(|w| w.deletes && w.outcome == Outcome::Acked).map(|w| w.number).max().unwrap_or(0);
        let open = writes.iter().filter(|w| w.deletes && w.outcome.is_open() && w.number > acked).map(|w| w.number);
        let fits = |deleted: i64| {
            in_g.first().is_none_or(|first| *first > deleted)
                && writes
                    .iter()
                    .filter(|w| !w.deletes && w.outcome == Outcome::Acked && w.number > deleted)
                    .all(|w| in_g.contains(&w.number))
        };
        let feasible: Vec<i64> = std::iter::once(acked).chain(open).filter(|deleted| fits(*deleted)).collect();
        let (Some(&deleted), Some(&highest)) = (feasible.first(), feasible.iter().max()) else {
            return Err(Violation(format!("an acknowledged write is lost or undone: {}; {writes:?}", shown())));
        };
        for write in writes.iter_mut().filter(|w| w.outcome.is_open()) {
            let there = if write.deletes { write.number == deleted } else { in_g.contains(&write.number) };
            if there {
                visibility.there(&mut write.outcome, &mut write.track, !write.deletes || feasible.len() == 1);
            } else if quiet && (!write.deletes || write.number > deleted) {
                visibility.gone(&mut write.outcome, &write.track, write.number > highest);
            }
        }
        if quiet {
            // What lies below a delete that happened for good is history.
            let past = writes.iter().filter(|w| w.deletes && w.outcome == Outcome::Acked && w.track.safe);
            let past = past.map(|w| w.number).max().unwrap_or(0);
            writes.retain(|w| w.number >= past || w.outcome == Outcome::Gone);
        }
        self.learn(visibility, row)
    }

    fn learn(&mut self, visibility: Visibility, what: &str) -> Result<(), Violation> {
        self.counts.lost += visibility.lost_count();
        self.cuts.learn(&visibility, what)
    }

    /// Checks what was read of a row whose writes skip the log: the newest that is there, if there is one.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_loose(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(), Violation> {
        let mut visibility = self.visibility();
        let writes = self.unlogged.entry(row.to_owned()).or_default();
        let shown = match cells.as_slice() {
            [] => 0,
            [(column, number, value)] if column == "f:l" && *value == value_of(row, *number) => *number,
            _ => return Err(Violation(format!("{row} shows what nobody wrote: {cells:?}"))),
        };
        let known = shown == 0 || writes.iter().any(|w| w.number == shown && w.outcome != Outcome::Gone);
        ensure(known, || format!("{row}: invented or lost before: {shown}; {writes:?}"))?;
        let least = writes.iter().filter(|w| w.outcome == Outcome::Acked).map(|w| w.number).max().unwrap_or(0);
        ensure(shown >= least, || format!("{row} went back to {shown}: {writes:?}"))?;
        for write in writes.iter_mut().filter(|w| w.outcome.is_open()) {
            if write.number == shown {
                visibility.there(&mut write.outcome, &mut write.track, true);
            } else if quiet && write.number > shown {
                visibility.gone(&mut write.outcome, &write.track, true);
            }
        }
        if quiet {
            // Only the newest is told apart.
            let past = writes.iter().filter(|w| w.outcome == Outcome::Acked && w.track.safe).map(|w| w.number).max();
            writes.retain(|w| w.number >= past.unwrap_or(0) || w.outcome == Outcome::Gone);
        }
        self.learn(visibility, row)
    }

    /// Checks what was read of a bank; answers its version and balances.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_bank(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(i64, [i64; 4]), Violation> {
        let mut visibility = self.visibility();
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
            ensure(known.is_some_and(|one| one.version == made && one.outcome != Outcome::Gone), || {
                format!("{row}: version {made} of {version} was made by {maker:?}, who did {known:?}: {shown:?}")
            })?;
        }
        ensure(makers.keys().all(|made| *made <= version), || format!("{row}: a version to come: {shown:?}"))?;
        for (id, Transfer { version: made, outcome, track }) in &mut bank.transfers {
            let there = makers.get(made) == Some(id);
            ensure(there || *outcome != Outcome::Acked, || {
                format!("{row}: acknowledged transfer {id} is lost: {shown:?}")
            })?;
            if there && outcome.is_open() {
                visibility.there(outcome, track, true);
            } else if quiet && outcome.is_open() {
                visibility.gone(outcome, track, true);
            }
        }
        self.learn(visibility, row)?;
        Ok((version, balances))
    }

    /// Checks a counter's value.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_counter(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(), Violation> {
        let mut visibility = self.visibility();
        let growing = self.counters.entry(row.to_owned()).or_default();
        let value = match cells.as_slice() {
            [] => 0,
            [(_, _, value)] => u64::from_be_bytes(value.as_slice().try_into().unwrap_or([0xFF; 8])),
            _ => return Err(Violation(format!("{row}: two versions of a counter"))),
        };
        let open = (growing.open.len() + growing.given_up.len()) as u64;
        let (least, at_risk) = (growing.acked.len() as u64, growing.at_risk.len() as u64);
        let most = least + at_risk + open;
        ensure((least.max(growing.seen)..=most).contains(&value), || {
            format!(
                "{row} is {value}: {least} acknowledged, {at_risk} more perhaps lost, {most} sent, {} seen before",
                growing.seen
            )
        })?;
        growing.seen = value;
        if quiet && at_risk > 0 {
            // So many are lost at least, and they are those that came last, if all were sent in one life; else nobody can say which.
            let there = (value - least).min(at_risk) as usize;
            let mut by_time: Vec<(u64, Track)> = std::mem::take(&mut growing.at_risk).into_iter().collect();
            by_time.sort_by_key(|(_, track)| track.acked);
            if by_time.iter().any(|(_, track)| track.life != by_time[0].1.life) {
                growing.given_up.extend(by_time.drain(..).map(|(nonce, _)| nonce));
            }
            for (at, (nonce, mut track)) in by_time.into_iter().enumerate() {
                let mut outcome = Outcome::Maybe;
                if at >= there {
                    visibility.gone(&mut outcome, &track, true);
                } else if open == 0 {
                    visibility.there(&mut outcome, &mut track, false);
                    growing.acked.insert(nonce, track);
                } else {
                    growing.given_up.insert(nonce);
                }
            }
        }
        self.learn(visibility, row)
    }

    /// Checks a string that was appended to: every acknowledged piece once, open ones at most once.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_string(&mut self, row: &str, cells: &RowCells, quiet: bool) -> Result<(), Violation> {
        let mut visibility = self.visibility();
        let growing = self.strings.entry(row.to_owned()).or_default();
        let text = cells.first().map(|(_, _, v)| String::from_utf8_lossy(v).into_owned()).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for piece in text.split(';').filter(|piece| !piece.is_empty()) {
            let nonce: u64 = piece.parse().map_err(|_| Violation(format!("{row}: a torn piece in {text}")))?;
            let open = growing.open.contains_key(&nonce) || growing.given_up.contains(&nonce);
            let known = growing.acked.contains_key(&nonce) || growing.at_risk.contains_key(&nonce) || open;
            ensure(known, || format!("{row}: nobody appended {nonce}, or it was lost: {text}"))?;
            ensure(seen.insert(nonce), || format!("{row}: {nonce} was appended twice: {text}"))?;
        }
        let lost: Vec<&u64> = growing.acked.keys().filter(|nonce| !seen.contains(nonce)).collect();
        ensure(lost.is_empty(), || format!("{row} lost {lost:?}: {text}"))?;
        for (nonce, mut track) in growing.at_risk.extract_if(.., |nonce, _| quiet || seen.contains(nonce)) {
            let mut outcome = Outcome::Maybe;
            if seen.contains(&nonce) {
                visibility.there(&mut outcome, &mut track, true);
                growing.acked.insert(nonce, track);
            } else {
                visibility.gone(&mut outcome, &track, true);
            }
        }
        self.learn(visibility, row)
    }

    /// Checks every node of the lists, `seen` being all that a scan showed, with the node before each.
    ///
    /// # Errors
    /// A promise broken.
    pub fn see_nodes(&mut self, seen: &BTreeMap<String, String>, quiet: bool) -> Result<(), Violation> {
        let mut visibility = self.visibility();
        for (row, before) in seen {
            let known = self.nodes.get(row);
            ensure(known.is_some_and(|node| node.before == *before && node.outcome != Outcome::Gone), || {
                format!("node {row} -> {before} is invented or refused: {known:?}")
            })?;
            ensure(before.is_empty() || seen.contains_key(before), || format!("node {row} refers to {before}: lost"))?;
        }
        for (row, ListNode { outcome, track, .. }) in &mut self.nodes {
            let there = seen.contains_key(row);
            ensure(there || *outcome != Outcome::Acked, || format!("acknowledged node {row} is lost"))?;
            if there && outcome.is_open() {
                visibility.there(outcome, track, true);
            } else if quiet && outcome.is_open() {
                visibility.gone(outcome, track, true);
            }
        }
        self.learn(visibility, "the lists")
    }
}
