//! Scanners that clients know by a number. One that nobody asks for its time is closed.

use crate::fault::{Fault, Outcome};
use base::{Charge, Clock, Holder, Ledger};
use client::{Row, ScanOptions, Scanner, Table};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Scanners that may be open at once.
const MAX_OPEN: usize = 10_000;

struct Held {
    /// Away while a call uses it.
    scanner: Option<Scanner>,
    sorted: bool,
    used_us: u64,
    /// Rows that came and were not asked for yet.
    _charge: Charge,
}

/// Bytes of one reply to a scanner: what each of those that wait holds at most, beside a large row.
const MAX_REPLY_BYTES: u64 = 256 << 10;

/// How a table is scanned for clients of a gateway.
pub fn scan_options(table: &Table) -> ScanOptions {
    let options = table.scan_options();
    ScanOptions { max_result_size: options.max_result_size.min(MAX_REPLY_BYTES), ..options }
}

/// A scanner that a call uses. Dropped before it is back, it takes the scanner's number with it.
struct Away<'a> {
    scanners: &'a Scanners,
    id: i32,
    is_back: bool,
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        if !self.is_back {
            self.scanners.close(self.id);
        }
    }
}

/// The open ones.
pub struct Scanners {
    open: Mutex<HashMap<i32, Held>>,
    next: AtomicI32,
    idle_us: u64,
    /// Bytes that one call may gather.
    max_bytes: u64,
    clock: Arc<dyn Clock>,
    ledger: Arc<Ledger>,
}

impl Scanners {
    /// None yet.
    pub fn new(idle_ms: u64, max_bytes: u64, clock: Arc<dyn Clock>, ledger: Arc<Ledger>) -> Scanners {
        let idle_us = idle_ms.saturating_mul(1000);
        Scanners { open: Mutex::default(), next: AtomicI32::new(0), idle_us, max_bytes, clock, ledger }
    }

    /// A number for the scanner; `sorted` comes back with its rows.
    pub fn add(&self, scanner: Scanner, sorted: bool) -> Outcome<i32> {
        self.expire();
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            return Err(Fault::io(format!("{MAX_OPEN} scanners are open; close some, or try again later")));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let charge = self.ledger.charge(Holder::Scanners, 0);
        open.insert(id, Held { scanner: Some(scanner), sorted, used_us: self.clock.monotonic_us(), _charge: charge });
        Ok(id)
    }

    /// The next rows; `None` when no scanner has this number.
    pub async fn next(&self, id: i32, count: i32) -> Option<Outcome<(Vec<Row>, bool)>> {
        self.expire();
        let (mut scanner, sorted) = {
            let mut open = self.open.lock();
            let held = open.get_mut(&id)?;
            (held.scanner.take()?, held.sorted)
        };
        // A client that leaves during its call ends the call here: its scanner is closed, and its number free.
        let mut away = Away { scanners: self, id, is_back: false };
        let rows = self.gather(&mut scanner, count).await;
        let mut charge = self.ledger.charge(Holder::Scanners, 0);
        if !charge.try_grow_share(scanner.held_bytes() as u64) {
            // Dropped with its number: what it would keep is what there is no room for.
            return Some(Err(Fault::io("the gateway holds too many bytes of scanners; open it again later")));
        }
        away.is_back = true;
        if let Some(held) = self.open.lock().get_mut(&id) {
            *held = Held { scanner: Some(scanner), sorted, used_us: self.clock.monotonic_us(), _charge: charge };
        }
        Some(rows.map(|rows| (rows, sorted)))
    }

    /// Up to `count` rows of a scanner.
    pub async fn gather(&self, scanner: &mut Scanner, count: i32) -> Outcome<Vec<Row>> {
        let wanted = usize::try_from(count).unwrap_or_default();
        let mut rows = Vec::new();
        let mut charge = self.ledger.charge(Holder::Scanners, 0);
        while rows.len() < wanted {
            let Some(row) = scanner.next().await? else { break };
            let bytes = charge.bytes() + row.byte_len() as u64;
            if bytes > self.max_bytes || !charge.try_grow_share(bytes) {
                let why = format!("{count} rows are more than {} bytes; ask for fewer rows at once", charge.bytes());
                return Err(Fault::io(why));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Closes it; false when no scanner has this number.
    pub fn close(&self, id: i32) -> bool {
        let held = self.open.lock().remove(&id);
        match held {
            Some(mut held) => {
                if let Some(scanner) = &mut held.scanner {
                    scanner.close();
                }
                true
            }
            None => false,
        }
    }

    /// Closes those whose time is over.
    pub fn expire(&self) {
        let now_us = self.clock.monotonic_us();
        let over: Vec<Held> = {
            let mut open = self.open.lock();
            let is_over = |held: &Held| held.scanner.is_some() && now_us.saturating_sub(held.used_us) > self.idle_us;
            open.extract_if(|_, held| is_over(held)).map(|(_, held)| held).collect()
        };
        // Dropped without the lock: each tells its server.
        drop(over);
    }
}
