//! Scanners that clients come back to, by id. Follows: `ScannerResource`'s cache, `ScannerInstanceResource`,
//! `ScannerResultGenerator`.

use crate::models::CellModel;
use base::Charge;
use bytes::Bytes;
use client::{Error, Row, Scanner};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// One scanner, cell by cell.
pub struct CellScanner {
    scanner: Scanner,
    row: Row,
    /// Cells of `row` that were handed out.
    taken: usize,
    /// Cells of one answer.
    pub batch: usize,
}

impl CellScanner {
    /// At the beginning.
    pub fn new(scanner: Scanner, batch: usize) -> CellScanner {
        CellScanner { scanner, row: Row::default(), taken: 0, batch }
    }

    /// Bytes that it keeps of rows which came and were not handed out.
    pub fn held_bytes(&self) -> u64 {
        let rest_of_row = if self.taken < self.row.len() { self.row.byte_len() } else { 0 };
        rest_of_row.max(self.scanner.held_bytes()) as u64
    }

    /// The row that the next cell is of; none at the end. Reads on where that is not known.
    pub async fn row_of_next(&mut self) -> Result<Option<Bytes>, Error> {
        while self.taken >= self.row.len() {
            match self.scanner.next().await? {
                Some(row) => (self.row, self.taken) = (row, 0),
                None => return Ok(None),
            }
        }
        Ok(Some(self.row.cells().bytes().slice_ref(self.row.row())))
    }

    /// Takes as many as `most` of the cells of the row at hand.
    pub fn take(&mut self, most: usize) -> Vec<CellModel> {
        let run = self.row.cells().bytes();
        let cells = self.row.iter().skip(self.taken).take(most).map(|cell| CellModel::of(cell, run));
        let cells: Vec<CellModel> = cells.collect();
        self.taken += cells.len();
        cells
    }
}

struct Entry {
    /// What the scanner keeps; none before its first use.
    charge: Option<Charge>,
    /// `None` while a request uses it.
    scanner: Option<Box<CellScanner>>,
    table: String,
    used: Instant,
}

/// What came of looking for a scanner.
pub enum Found {
    /// It is the caller's until it is put back.
    Here(Box<CellScanner>),
    /// Another request uses it.
    Busy,
    /// There is none.
    Nowhere,
}

/// Scanners by id.
pub struct Scanners {
    entries: Mutex<HashMap<String, Entry>>,
    most: usize,
    expire: Duration,
}

impl Scanners {
    /// As many as `most`, kept unused for as long as `expire`.
    pub fn new(most: usize, expire: Duration) -> Scanners {
        Scanners { entries: Mutex::default(), most, expire }
    }

    /// Keeps a scanner of a table. Where there are too many, the one that was not used for longest goes.
    pub fn insert(&self, id: String, table: &str, scanner: CellScanner) {
        let mut gone = None;
        let mut entries = self.entries.lock();
        if entries.len() >= self.most {
            let oldest =
                entries.iter().filter(|(_, entry)| entry.scanner.is_some()).min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                gone = entries.remove(&oldest);
            }
        }
        let entry =
            Entry { charge: None, scanner: Some(Box::new(scanner)), table: table.to_owned(), used: Instant::now() };
        entries.insert(id, entry);
        drop(entries);
        // Closing sends a message: not under the lock.
        drop(gone);
    }

    /// Takes a scanner out for a request.
    pub fn take(&self, table: &str, id: &str) -> Found {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(id).filter(|entry| entry.table == table) else { return Found::Nowhere };
        entry.used = Instant::now();
        entry.scanner.take().map_or(Found::Busy, Found::Here)
    }

    /// Puts it back, with the charge for what it keeps, unless it was removed meanwhile.
    pub fn put_back(&self, id: &str, scanner: Box<CellScanner>, charge: Charge) {
        if let Some(entry) = self.entries.lock().get_mut(id) {
            entry.charge = Some(charge);
            entry.used = Instant::now();
            entry.scanner = Some(scanner);
        }
    }

    /// Closes a scanner. False when there is none.
    pub fn remove(&self, table: &str, id: &str) -> bool {
        let mut entries = self.entries.lock();
        let known = entries.get(id).is_some_and(|entry| entry.table == table);
        let gone = known.then(|| entries.remove(id));
        drop(entries);
        gone.is_some()
    }

    /// Closes those that nobody has used for too long.
    pub fn expire(&self) {
        let mut entries = self.entries.lock();
        let gone: Vec<Entry> = entries
            .extract_if(|_, entry| entry.scanner.is_some() && entry.used.elapsed() >= self.expire)
            .map(|e| e.1)
            .collect();
        drop(entries);
        drop(gone);
    }

    /// How often to look for those.
    pub fn expire_every(&self) -> Duration {
        (self.expire / 4).clamp(Duration::from_millis(10), Duration::from_secs(10))
    }
}
