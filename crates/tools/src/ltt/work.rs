//! The tasks: writers, updaters, readers. Follows: `MultiThreadedWriter`, `MultiThreadedUpdater`,
//! `MultiThreadedReader`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use client::{Append, Delete, Increment, Put, Row, Table};
use filter::{Comparator, CompareOp};
use model::mutation::ConditionTest;
use model::{Condition, Get, Mutation, TimeRange};
use tokio::sync::watch;

use super::data::{Generator, INCREMENT, MUTATE_INFO, array_hash, key};
use super::options::{Read, Update, Write};
use super::progress::Progress;
use super::verify::{Change, verify};
use crate::log::Log;

/// What all tasks of one kind share.
pub struct Shared {
    /// The table.
    pub table: Table,
    /// Where values come from.
    pub generator: Arc<Generator>,
    /// What has been done.
    pub progress: Progress,
    /// Where it is told.
    pub log: Arc<Log>,
    /// Last key, exclusive.
    pub end_key: u64,
    /// First key.
    pub start_key: u64,
}

impl Shared {
    async fn timed<T>(&self, work: impl Future<Output = client::Result<T>>) -> client::Result<T> {
        let began_us = self.log.now_us();
        let done = work.await?;
        self.progress.busy_us.fetch_add(self.log.now_us() - began_us, Relaxed);
        Ok(done)
    }

    async fn insert(&self, thread: &str, number: u64, put: Mutation) {
        let began_us = self.log.now_us();
        if let Err(e) = self.timed(self.table.put(&put)).await {
            self.progress.fail(number);
            let ms = (self.log.now_us() - began_us) / 1000;
            self.log.error(thread, format!("Failed to insert: {number} after {ms}ms; errors: {e}"));
        }
    }

    /// Writes rows until there are no more keys.
    pub async fn write(&self, options: &Write, thread: &str) {
        while let Some(number) = self.progress.take_key() {
            let row = key(number);
            self.progress.keys.fetch_add(1, Relaxed);
            let mut put = Put::new(&row);
            let mut columns = 0;
            for family in &self.generator.families {
                for column in 0..self.generator.column_count() {
                    let column = column.to_string();
                    let value = self.generator.value(&row, family, column.as_bytes());
                    put = put.add(family, &column, value);
                    columns += 1;
                    if !options.multi_put {
                        self.insert(thread, number, put.build()).await;
                        self.progress.columns.fetch_add(1, Relaxed);
                        put = Put::new(&row);
                    }
                }
                put = put.add(family, MUTATE_INFO, b"").add(family, INCREMENT, array_hash(&row).to_be_bytes());
                if !options.multi_put {
                    self.insert(thread, number, put.build()).await;
                    self.progress.columns.fetch_add(1, Relaxed);
                    put = Put::new(&row);
                }
            }
            if options.multi_put {
                self.insert(thread, number, put.build()).await;
                self.progress.columns.fetch_add(columns, Relaxed);
            }
            self.progress.done(number);
        }
        self.progress.working.fetch_sub(1, Relaxed);
    }

    async fn change(
        &self,
        thread: &str,
        number: u64,
        options: &Update,
        mutation: &Mutation,
        check: Option<&Condition>,
    ) {
        let began_us = self.log.now_us();
        let changed = match check {
            None => self.timed(self.table.mutate(mutation)).await.map(|_| ()),
            Some(condition) => {
                let check = self.table.check_and_mutate(condition, std::slice::from_ref(mutation));
                self.timed(check).await.map(|_| ())
            }
        };
        if let Err(e) = changed {
            if options.ignore_conflicts {
                self.log.info(thread, format!("Detected nonce conflict, ignoring: {e}"));
                return;
            }
            self.progress.fail(number);
            let ms = (self.log.now_us() - began_us) / 1000;
            self.log.error(thread, format!("Failed to mutate: {number} after {ms}ms; errors: {e}"));
        }
    }

    /// Changes rows until there are no more keys. `writer` is whom it must not overtake.
    pub async fn update(&self, options: &Update, writer: Option<&Shared>, thread: &str) {
        let mut written = writer.map(|writer| writer.progress.done_below());
        while let Some(number) = self.progress.take_key() {
            if let Some(written) = &mut written {
                // An error means that the writers are gone, and with them whatever could still come.
                let _ = written.wait_for(|below| *below > number).await;
            }
            if writer.is_some_and(|writer| writer.progress.has_failed(number)) {
                self.progress.fail(number);
            } else if self.generator.rng.below(100) < options.percent {
                self.progress.keys.fetch_add(1, Relaxed);
                self.update_row(number, options, thread).await;
            }
            self.progress.done(number);
        }
        self.progress.working.fetch_sub(1, Relaxed);
    }

    async fn update_row(&self, number: u64, options: &Update, thread: &str) {
        let row = key(number);
        let (mut increment, mut append) = (Increment::new(&row), Append::new(&row));
        let mut columns = 0;
        for family in &self.generator.families {
            let family_hash = array_hash(family);
            increment = increment.add(family, INCREMENT, family_hash);
            // What is noted under `mutate_info` of this family and not yet sent.
            let mut notes = mutate_info(INCREMENT, Change::Increment);
            columns += 1;
            if !options.batch {
                append = append.add(family, MUTATE_INFO, std::mem::take(&mut notes));
                self.change(thread, number, options, &increment.build(), None).await;
                self.change(thread, number, options, &append.build(), None).await;
                self.progress.columns.fetch_add(2, Relaxed);
                (increment, append) = (Increment::new(&row), Append::new(&row));
            }
            let get = Get { columns: [(family.clone(), Vec::new())].into(), ..Get::new(row.clone()) };
            let found = self.table.get(&get).await.unwrap_or_else(|e| {
                let key = String::from_utf8_lossy(&row);
                self.log.warn(thread, format!("Failed to get the row for key = [{key}]: {e}"));
                Row::default()
            });
            if found.is_empty() {
                self.progress.fail(number);
                let key = String::from_utf8_lossy(&row);
                let why = "since we could not get the original row";
                self.log.error(thread, format!("Failed to update the row with key = [{key}], {why}"));
            }
            for cell in found.iter().filter(|cell| cell.qualifier() != INCREMENT && cell.qualifier() != MUTATE_INFO) {
                let column = cell.qualifier();
                let hash = family_hash.wrapping_add(array_hash(column));
                let hash_bytes = hash.to_be_bytes();
                // An odd hash makes the check fail: such a column keeps its value.
                let checked = if hash % 2 == 0 { cell.value() } else { &[] };
                let condition = equals(&row, family, column, checked);
                columns += 1;
                let change = Change::ALL[self.generator.rng.below(4) as usize];
                let change = match change {
                    Change::Put => {
                        let put = Put::new(&row).add(family, column, hash_bytes).build();
                        self.change(thread, number, options, &put, Some(&condition)).await;
                        Change::Put
                    }
                    Change::Delete => {
                        let delete = Delete::new(&row).columns(family, column).build();
                        self.change(thread, number, options, &delete, Some(&condition)).await;
                        Change::Delete
                    }
                    Change::Append | Change::Increment => {
                        append = append.add(family, column, hash_bytes);
                        Change::Append
                    }
                };
                notes.extend(mutate_info(column, change));
                if !options.batch {
                    append = append.add(family, MUTATE_INFO, std::mem::take(&mut notes));
                    self.change(thread, number, options, &append.build(), None).await;
                    self.progress.columns.fetch_add(1, Relaxed);
                    append = Append::new(&row);
                }
            }
            if options.batch {
                // In one piece: a server keeps only the last of several pieces for one column.
                append = append.add(family, MUTATE_INFO, notes);
            }
        }
        if options.batch {
            self.change(thread, number, options, &increment.build(), None).await;
            self.change(thread, number, options, &append.build(), None).await;
            self.progress.columns.fetch_add(columns, Relaxed);
        }
    }
}

/// A line of `mutate_info`.
fn mutate_info(column: &[u8], change: Change) -> Vec<u8> {
    [b"#", column, b":", change.number().to_string().as_bytes()].concat()
}

fn equals(row: &Bytes, family: &Bytes, qualifier: &[u8], value: &[u8]) -> Condition {
    Condition {
        row: row.clone(),
        test: ConditionTest::Value {
            family: family.clone(),
            qualifier: Bytes::copy_from_slice(qualifier),
            op: CompareOp::Equal,
            comparator: Arc::new(Comparator::Binary { value: Bytes::copy_from_slice(value) }),
        },
        time_range: TimeRange::ALL,
    }
}

/// One reader: it reads the keys whose number leaves its own when divided by the number of readers.
pub struct Reader<'a> {
    /// What the readers share.
    pub shared: &'a Shared,
    /// Whom they must not overtake.
    pub writer: Option<&'a Shared>,
    /// What they are told.
    pub options: &'a Read,
    /// Set when too much was wrong.
    pub aborted: &'a AtomicBool,
    /// Which of the readers.
    pub id: u32,
}

impl Reader<'_> {
    /// Reads until there are no more keys or too much was wrong.
    pub async fn run(self) {
        let thread = format!("HBaseReaderThread_{}", self.id);
        let shared = self.shared;
        let mut written = self.writer.map(|writer| writer.progress.done_below());
        let mut current = shared.start_key;
        let mut batch = Vec::with_capacity(self.options.batch_size);
        while current < shared.end_key && !self.aborted.load(Relaxed) {
            batch.clear();
            while batch.len() < self.options.batch_size && current < shared.end_key && !self.aborted.load(Relaxed) {
                let number = self.next_key(&mut current, written.as_mut()).await;
                let own = number % u64::from(self.options.threads) == u64::from(self.id);
                if own && !self.writer.is_some_and(|writer| writer.progress.has_failed(number)) {
                    batch.push(number);
                }
            }
            if !batch.is_empty() {
                self.read(&batch, &thread).await;
            }
        }
        shared.progress.working.fetch_sub(1, Relaxed);
    }

    /// The next key of all; when the writer is not so far, one that was written before.
    async fn next_key(&self, current: &mut u64, written: Option<&mut watch::Receiver<u64>>) -> u64 {
        let take = |current: &mut u64| {
            *current += 1;
            *current - 1
        };
        let Some(written) = written else { return take(current) };
        let (start, end, window) = (self.shared.start_key, self.shared.end_key, self.options.key_window);
        // What may be read: everything when all is written, else what lies a window behind.
        let readable = |below: u64| if below >= end { end } else { below.saturating_sub(window).max(start) };
        let _ = written.wait_for(|below| readable(*below) > start).await;
        let readable = readable(*written.borrow());
        if *current < readable {
            return take(current);
        }
        // Ahead of the writer: let it go on, and read something again.
        tokio::task::yield_now().await;
        start + self.shared.generator.rng.below(readable.max(start + 1) - start)
    }

    fn get(&self, number: u64) -> Get {
        let columns = self.shared.generator.families.iter().map(|family| (family.clone(), Vec::new())).collect();
        Get { columns, ..Get::new(key(number)) }
    }

    async fn read(&self, numbers: &[u64], thread: &str) {
        let shared = self.shared;
        let check = shared.generator.rng.below(100) < self.options.verify_percent;
        let gets: Vec<Get> = numbers.iter().map(|number| self.get(*number)).collect();
        let rows = match &gets[..] {
            [one] => shared.timed(shared.table.get(one)).await.map(|row| vec![row]),
            many => shared.timed(shared.table.get_all(many)).await,
        };
        match rows {
            Ok(rows) => {
                shared.progress.keys.fetch_add(rows.len() as u64, Relaxed);
                rows.iter().zip(&gets).for_each(|(row, get)| self.check_row(row, get, check, thread));
            }
            Err(e) => {
                if shared.progress.read_failures.fetch_add(numbers.len() as u64, Relaxed) == 0 {
                    shared.log.warn(thread, format!("FAILED read, keys = {numbers:?}: {e}"));
                }
            }
        }
    }

    fn check_row(&self, row: &Row, get: &Get, check: bool, thread: &str) {
        let shared = self.shared;
        let verdict = if row.is_empty() {
            let key = String::from_utf8_lossy(&get.row);
            Err(format!("Error checking data for key [{key}], no data returned"))
        } else if check {
            shared.progress.verified.fetch_add(1, Relaxed);
            verify(row)
        } else {
            Ok(Vec::new())
        };
        match verdict {
            Ok(warnings) => {
                warnings.iter().for_each(|warning| shared.log.warn(thread, warning));
                shared.progress.columns.fetch_add(row.len() as u64, Relaxed);
            }
            Err(error) => {
                shared.log.error(thread, error);
                let errors = shared.progress.read_errors.fetch_add(1, Relaxed) + 1;
                if errors > self.options.max_errors {
                    let max = self.options.max_errors;
                    shared.log.error(thread, format!("Aborting readers -- found more than {max} errors"));
                    self.aborted.store(true, Relaxed);
                }
            }
        }
    }
}
