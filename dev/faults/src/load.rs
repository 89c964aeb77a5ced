//! What clients do while things go wrong, what they remember of it, and whether that can be true.
//!
//! Four kinds of rows in one table of two families, each written by puts of both families at once:
//! *registers* `r..` (put, get, checkAndPut by many clients; linearizable), *journal* rows `j..` (written once; durable,
//! whole, nothing invented), *counters* `c..` (increments repeated with their nonces until answered; exact),
//! *fixed* rows `s..` (written before; each scan has each exactly once, in order).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use base::Rng;

use crate::linear::{self, Event, NEVER, Op, Verdict};
use crate::remote::{Address, Admin, Failure, Remote, Row, Table};

const TABLE: &str = "faults";
const REGISTERS: u64 = 8;
const FIXED_ROWS: u64 = 300;

/// How much of what.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub register_clients: u64,
    pub journal_clients: u64,
    pub counter_clients: u64,
    pub scan_clients: u64,
    /// Largest value of a journal row.
    pub value_bytes: u64,
    /// How long a client waits for an answer.
    pub patience: Duration,
    /// Counters send every increment twice at once, over two connections.
    pub twice: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            register_clients: 5,
            journal_clients: 3,
            counter_clients: 2,
            scan_clients: 1,
            value_bytes: 2000,
            patience: Duration::from_secs(3),
            twice: false,
        }
    }
}

/// What was done, in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub done: u64,
    pub unknown: u64,
    pub refused: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.done += other.done;
        self.unknown += other.unknown;
        self.refused += other.refused;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    Unknown,
    Refused,
}

#[derive(Default)]
struct Memory {
    registers: BTreeMap<u64, Vec<Event>>,
    journal: BTreeMap<Vec<u8>, (Vec<u8>, Outcome)>,
    counters: BTreeMap<u64, u64>,
    violations: Vec<String>,
    refusals: BTreeMap<String, u64>,
    unknowns: BTreeMap<String, u64>,
}

struct Shared {
    address: Address,
    shape: Shape,
    rng: Rng,
    started: Instant,
    stop: AtomicBool,
    next_value: AtomicU64,
    done: AtomicU64,
    unknown: AtomicU64,
    refused: AtomicU64,
    memory: Mutex<Memory>,
}

/// Clients at work.
pub struct Load {
    shared: Arc<Shared>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    life: u64,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(NEVER - 1)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn table(&self) -> Table {
        Table::new(TABLE, Arc::new(Remote::new(self.address.clone(), "ClientService", self.shape.patience)))
    }

    fn note<T>(&self, answer: &Result<T, Failure>) -> Outcome {
        let first = |text: &str| text.split(':').next().unwrap_or_default().chars().take(60).collect::<String>();
        match answer {
            Ok(_) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                Outcome::Done
            }
            Err(Failure::Refused(text)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                *self.memory().refusals.entry(first(text)).or_default() += 1;
                Outcome::Refused
            }
            Err(Failure::Unknown(text)) => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
                *self.memory().unknowns.entry(first(text)).or_default() += 1;
                Outcome::Unknown
            }
        }
    }

    fn violation(&self, what: String) {
        self.memory().violations.push(what);
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// A client that was refused or heard nothing rests a moment.
async fn rest(outcome: Outcome) {
    if outcome != Outcome::Done {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn register_row(register: u64) -> Vec<u8> {
    format!("r{register}").into_bytes()
}

fn counter_row(counter: u64) -> Vec<u8> {
    format!("c{counter:03}").into_bytes()
}

fn fixed_row(at: u64) -> Vec<u8> {
    format!("s{at:05}").into_bytes()
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// The value in both families; an error when they differ.
fn same_in_both(row: &Row) -> Result<Vec<u8>, String> {
    match (row.value("f:q"), row.value("g:q")) {
        (Some(f), Some(g)) if f == g => Ok(f.to_vec()),
        (f, g) => Err(format!("row {}: half a write: f={f:02x?} g={g:02x?}", String::from_utf8_lossy(&row.key))),
    }
}

impl Load {
    /// Makes the table and its fixed rows; nothing runs yet.
    pub async fn prepare(region: &Address, master: &Address, shape: Shape, seed: u64) -> anyhow::Result<Load> {
        let admin = Admin::new(master.clone(), region.clone());
        admin.create(TABLE, &["j5", "r4", "s00150"], true).await.context("the table")?;
        let shared = Arc::new(Shared {
            address: region.clone(),
            shape,
            rng: Rng::seeded(seed),
            started: Instant::now(),
            stop: AtomicBool::new(false),
            next_value: AtomicU64::new(1),
            done: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            memory: Mutex::new(Memory::default()),
        });
        let table = shared.table();
        let rows: Vec<(Vec<u8>, Vec<u8>)> = (0..FIXED_ROWS).map(|at| (fixed_row(at), fixed_row(at))).collect();
        for outcome in table.put_all(&rows).await {
            outcome.map_err(|failure| anyhow::anyhow!("a fixed row: {}", failure.text()))?;
        }
        Ok(Load { shared, tasks: Vec::new(), life: 0 })
    }

    /// Starts the clients.
    pub fn go(&mut self) {
        self.shared.stop.store(false, Ordering::Relaxed);
        if !self.tasks.is_empty() {
            return;
        }
        let shape = self.shared.shape;
        self.life += 1;
        for _ in 0..shape.register_clients {
            self.tasks.push(tokio::spawn(registers(self.shared.clone())));
        }
        for client in 0..shape.journal_clients {
            self.tasks.push(tokio::spawn(journal(self.shared.clone(), self.life * 100 + client)));
        }
        for client in 0..shape.counter_clients {
            self.tasks.push(tokio::spawn(counters(self.shared.clone(), client)));
        }
        for _ in 0..shape.scan_clients {
            self.tasks.push(tokio::spawn(scans(self.shared.clone())));
        }
    }

    /// The server is dead and nothing it was sent is under way: what nobody heard of happened by now, or never.
    pub fn server_is_dead(&self) {
        let now = self.shared.now();
        let mut memory = self.shared.memory();
        for event in memory.registers.values_mut().flatten() {
            if event.end == NEVER && !event.certain {
                event.end = now.max(event.start + 1);
            }
        }
    }

    pub fn tally(&self) -> Tally {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Tally {
            done: load(&self.shared.done),
            unknown: load(&self.shared.unknown),
            refused: load(&self.shared.refused),
        }
    }

    /// Somebody else has incremented a counter.
    pub fn counted(&self, counter: u64, count: u64) {
        self.shared.memory().counters.insert(counter, count);
    }

    /// How failures began, with how often.
    pub fn failures(&self) -> String {
        let memory = self.shared.memory();
        let show = |map: &BTreeMap<String, u64>| {
            map.iter().map(|(text, count)| format!("{count} x {text}")).collect::<Vec<_>>().join(", ")
        };
        format!("refused: {}; unknown: {}", show(&memory.refusals), show(&memory.unknowns))
    }

    /// Whether a refusal began so.
    pub fn saw_refusal(&self, class: &str) -> bool {
        self.shared.memory().refusals.keys().any(|text| text.starts_with(class))
    }

    /// Waits until at least `more` operations have been done; an error after `patience`.
    pub async fn progress(&self, more: u64, patience: Duration) -> anyhow::Result<()> {
        let target = self.tally().done + more;
        let start = Instant::now();
        while self.tally().done < target {
            if start.elapsed() > patience {
                bail!(
                    "no progress: {} of {more} operations in {} s ({})",
                    self.tally().done + more - target,
                    patience.as_secs(),
                    self.failures()
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Ends the clients: counters repeat their last increment until it is answered.
    pub async fn finish(&mut self) -> anyhow::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for task in std::mem::take(&mut self.tasks) {
            match tokio::time::timeout(Duration::from_secs(90), task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => bail!("a client panicked: {error}"),
                Err(_) => bail!("a client does not come to an end within 90 s: {}", self.failures()),
            }
        }
        Ok(())
    }

    /// Ends the clients and compares what they remember with what is there. Returns every contradiction.
    pub async fn verify(&mut self) -> anyhow::Result<Vec<String>> {
        self.finish().await?;
        let patience = Duration::from_secs(60);
        let table = Table::new(TABLE, Arc::new(Remote::new(self.shared.address.clone(), "ClientService", patience)));
        let said = |failure: Failure| anyhow::anyhow!("reading back: {}", failure.text());
        let all = table.scan(b"", b"", 500, patience).await.map_err(said)?;
        // Registers are read one by one: the last operation of their histories.
        for register in 0..REGISTERS {
            let start = self.shared.now();
            let key = register_row(register);
            let row = retried(|| table.get(&key), patience).await.map_err(said)?;
            note_read(&self.shared, register, start, row);
        }
        let mut memory = self.shared.memory();
        let mut wrong = std::mem::take(&mut memory.violations);
        let mut seen = BTreeSet::new();
        let mut previous: Option<&[u8]> = None;
        for row in &all {
            let shown = String::from_utf8_lossy(&row.key).into_owned();
            if previous.is_some_and(|previous| previous >= &row.key[..]) {
                wrong.push(format!("row {shown} comes twice or out of order"));
            }
            previous = Some(&row.key);
            let value = match same_in_both(row) {
                Ok(value) => value,
                Err(what) => {
                    wrong.push(what);
                    continue;
                }
            };
            match row.key.first() {
                Some(b'j') => match memory.journal.get(&row.key) {
                    None => wrong.push(format!("journal row {shown} was never written")),
                    Some((_, Outcome::Refused)) => wrong.push(format!("journal row {shown} was refused and is there")),
                    Some((written, _)) if *written != value => wrong.push(format!("journal row {shown} has changed")),
                    Some(_) => _ = seen.insert(row.key.clone()),
                },
                Some(b'c') => {
                    let Some(counter) = shown[1..].parse::<u64>().ok() else { continue };
                    let (is, should) = (number(&value), memory.counters.get(&counter).copied().unwrap_or(0));
                    if is != Some(should) {
                        wrong.push(format!("counter {counter} is {is:?}, {should} increments were made"));
                    }
                }
                _ => {}
            }
        }
        for (counter, should) in &memory.counters {
            if *should > 0 && !all.iter().any(|row| row.key == counter_row(*counter)) {
                wrong.push(format!("counter {counter} is gone, {should} increments were made"));
            }
        }
        for (row, (_, outcome)) in &memory.journal {
            if *outcome == Outcome::Done && !seen.contains(row) {
                wrong.push(format!("journal row {} was acknowledged and is gone", String::from_utf8_lossy(row)));
            }
        }
        check_fixed(&all, &mut wrong);
        for (register, events) in &memory.registers {
            match linear::check(events) {
                Verdict::Linearizable => {}
                Verdict::Violation(what) => wrong.push(format!("register {register}: {what}")),
                Verdict::GaveUp => println!("    register {register}: too much was open at once to be decided"),
            }
        }
        Ok(wrong)
    }
}

fn check_fixed(rows: &[Row], wrong: &mut Vec<String>) {
    let fixed: Vec<&Row> = rows.iter().filter(|row| row.key.first() == Some(&b's')).collect();
    let expected: Vec<Vec<u8>> = (0..FIXED_ROWS).map(fixed_row).collect();
    let keys: Vec<Vec<u8>> = fixed.iter().map(|row| row.key.clone()).collect();
    if keys != expected {
        let missing = expected.iter().filter(|key| !keys.contains(key)).count();
        wrong.push(format!("a scan of {FIXED_ROWS} fixed rows brought {} of which {missing} are missing", keys.len()));
    }
    for row in fixed {
        match same_in_both(row) {
            Ok(value) if value == row.key => {}
            Ok(_) => wrong.push(format!("fixed row {} has changed", String::from_utf8_lossy(&row.key))),
            Err(what) => wrong.push(what),
        }
    }
}

/// Asks again until answered.
pub async fn retried<T, F: Future<Output = Result<T, Failure>>>(
    mut ask: impl FnMut() -> F,
    patience: Duration,
) -> Result<T, Failure> {
    let start = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(failure) if start.elapsed() > patience => return Err(failure),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn note_read(shared: &Shared, register: u64, start: u64, row: Option<Row>) -> Option<u64> {
    let seen = match row.as_ref().map(same_in_both) {
        None => None,
        Some(Ok(value)) => number(&value),
        Some(Err(what)) => {
            shared.violation(what);
            return None;
        }
    };
    let event = Event { start, end: shared.now(), certain: true, op: Op::Read(seen) };
    shared.memory().registers.entry(register).or_default().push(event);
    seen
}

async fn registers(shared: Arc<Shared>) {
    let table = shared.table();
    while shared.goes_on() {
        let register = shared.rng.below(REGISTERS);
        let row = register_row(register);
        let remember = |start: u64, outcome: Outcome, op: Op| {
            let event = match outcome {
                Outcome::Done => Event { start, end: shared.now(), certain: true, op },
                Outcome::Unknown => Event { start, end: NEVER, certain: false, op },
                Outcome::Refused => return,
            };
            shared.memory().registers.entry(register).or_default().push(event);
        };
        let start = shared.now();
        let what = shared.rng.below(10);
        let outcome = if what < 4 {
            let value = shared.next_value.fetch_add(1, Ordering::Relaxed);
            let bytes = value.to_be_bytes();
            let answer = table.put(&row, &[("f", "q", &bytes), ("g", "q", &bytes)]).await;
            let outcome = shared.note(&answer);
            remember(start, outcome, Op::Write(value));
            outcome
        } else {
            let answer = table.get(&row).await;
            let mut outcome = shared.note(&answer);
            let seen = answer.ok().and_then(|found| note_read(&shared, register, start, found));
            if let (Some(old), true) = (seen, what < 7) {
                let new = shared.next_value.fetch_add(1, Ordering::Relaxed);
                let bytes = new.to_be_bytes();
                let start = shared.now();
                let answer = table.put_if(&row, &old.to_be_bytes(), &[("f", "q", &bytes), ("g", "q", &bytes)]).await;
                outcome = shared.note(&answer);
                match answer {
                    Ok(false) => remember(start, outcome, Op::Differs(old)),
                    _ => remember(start, outcome, Op::Swap(old, new)),
                }
            }
            outcome
        };
        rest(outcome).await;
    }
}

async fn journal(shared: Arc<Shared>, client: u64) {
    let table = shared.table();
    let mut next = 0u64;
    while shared.goes_on() {
        let count = if shared.rng.one_in(4) { 1 + shared.rng.below(8) } else { 1 };
        let mut rows = Vec::new();
        for _ in 0..count {
            let row = format!("j{}-{client}-{next:07}", shared.rng.below(10)).into_bytes();
            let len = 8 + shared.rng.below(shared.shape.value_bytes) as usize;
            let seed = shared.rng.next_u64().to_be_bytes();
            let value: Vec<u8> = seed.iter().copied().cycle().take(len).collect();
            rows.push((row, value));
            next += 1;
        }
        // Written down before it is sent: whatever becomes of this program's task, the row is known.
        for (row, value) in &rows {
            shared.memory().journal.insert(row.clone(), (value.clone(), Outcome::Unknown));
        }
        let answers = match rows.as_slice() {
            [(row, value)] => vec![table.put(row, &[("f", "q", value), ("g", "q", value)]).await],
            rows => table.put_all(rows).await,
        };
        let mut worst = Outcome::Done;
        for ((row, _), answer) in rows.iter().zip(&answers) {
            let outcome = shared.note(answer);
            if let Some(entry) = shared.memory().journal.get_mut(row) {
                entry.1 = outcome;
            }
            if outcome != Outcome::Done {
                worst = outcome;
            }
        }
        rest(worst).await;
    }
}

async fn counters(shared: Arc<Shared>, counter: u64) {
    let (table, other) = (shared.table(), shared.table());
    let row = counter_row(counter);
    let group = shared.rng.next_u64() | 1;
    for number in 1.. {
        if !shared.goes_on() {
            return;
        }
        shared.memory().counters.entry(counter).and_modify(|count| *count += 1).or_insert(1);
        // The same increment until it is answered, whatever it was told before; also when all else has stopped.
        loop {
            let nonce = (group, number);
            let answer = if shared.shape.twice {
                let (one, two) = tokio::join!(table.count(&row, nonce), other.count(&row, nonce));
                one.or(two)
            } else {
                table.count(&row, nonce).await
            };
            let outcome = shared.note(&answer);
            if outcome == Outcome::Done {
                break;
            }
            rest(outcome).await;
        }
    }
}

async fn scans(shared: Arc<Shared>) {
    let table = shared.table();
    while shared.goes_on() {
        let per_call = 1 + shared.rng.below(60) as u32;
        match table.scan(b"s", b"t", per_call, Duration::from_secs(2)).await {
            Ok(rows) => {
                shared.done.fetch_add(1, Ordering::Relaxed);
                let mut wrong = Vec::new();
                check_fixed(&rows, &mut wrong);
                wrong.into_iter().for_each(|what| shared.violation(format!("{per_call} rows a call: {what}")));
            }
            Err(failure) => rest(shared.note::<()>(&Err(failure))).await,
        }
    }
}
