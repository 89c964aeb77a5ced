//! The log of `master:store`: rows of family `proc`, and where hbase:meta is while it moves, as the next master is to find them if that is HBase's ([`crate::procedure::for_hbase`]
//! says which). HBase's master replays the logs below `MasterData/WALs` over the store files.
//!
//! Always true:
//!  1. What [`StoreLog::append`] was given outlives this process when [`StoreLog::settle`] returns: it is on the disk, or, on HDFS, on three machines.
//!  2. Each file begins with every row that counts, so that those before it can go; a row that is over has no bytes, and is left out of the next file
//!     but for the one with the largest id: HBase's master counts on from it.
//!  3. Later rows have later timestamps and sequence ids, also than those of every master before.
//!
//! Follows: `RegionProcedureStore`, `MasterRegion`.

use super::contents::QUALIFIER;
use super::{LOG_SUFFIX, StoreError, cell, location};
use base::{Clock, Config, SeqId, TimestampMs};
use bytes::Bytes;
use cell::CellBuffer;
use fs::{FilePath, Volume};
use model::ServerName;
use parking_lot::Mutex;
use rootdir::paths::master_wals_dir;
use std::collections::BTreeMap;
use std::sync::Arc;
use wal::{EntryKey, Log, LogOptions, Ticket};

/// Ends the names of its files: HBase's own have none of it, so that it is seen whether HBase's master has led.
const KIND: &str = ".basalt";
/// A file that has grown so long is followed by one with what still counts.
const ROLL_SIZE_BYTES: u64 = 8 << 20;
const FAMILY: &[u8] = b"proc";
const TABLE: &str = "master:store";

/// Whether a log has a name of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    name.ends_with(KIND)
}

/// Where the log of a master is.
fn dir_of(server: &ServerName) -> FilePath {
    master_wals_dir().join(server.to_string())
}

/// Where hbase:meta is, and whether it is OPEN, OPENING or CLOSING there.
pub(crate) type MetaAt = (ServerName, &'static str);

/// What masters before have written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// The encoded name of the region.
    pub region: Arc<str>,
    /// Rows that count.
    pub rows: BTreeMap<u64, Bytes>,
    pub largest_id: u64,
    pub newest: TimestampMs,
    pub largest_seq_id: SeqId,
}

struct State {
    log: Option<Arc<Log>>,
    before: Before,
    /// Since this master leads: store files say where it was found.
    meta: Option<MetaAt>,
}

impl State {
    /// Appends rows as one entry; those without bytes are over.
    fn append(
        &mut self,
        log: &Arc<Log>,
        rows: &[(u64, Bytes)],
        meta: Option<&MetaAt>,
        now: TimestampMs,
    ) -> wal::Result<Ticket> {
        let stamp = TimestampMs(now.0.max(self.before.newest.0 + 1));
        let seq_id = SeqId(self.before.largest_seq_id.0 + 1);
        let mut cells = meta.map_or_else(CellBuffer::new, |(server, state)| location(server, state, stamp));
        let mut rows: Vec<&(u64, Bytes)> = rows.iter().collect();
        rows.sort_by_key(|(id, _)| *id);
        for (id, bytes) in &rows {
            cell(&mut cells, &id.to_be_bytes(), FAMILY, QUALIFIER, stamp, bytes);
        }
        let families: &[&[u8]] = if meta.is_some() { &[b"info", FAMILY] } else { &[FAMILY] };
        let key = EntryKey::new(&self.before.region, TABLE, seq_id, stamp, families);
        let ticket = log.append(&key, cells.bytes(), cells.len())?;
        (self.before.newest, self.before.largest_seq_id) = (stamp, seq_id);
        Ok(ticket)
    }

    fn note(&mut self, rows: &[(u64, Bytes)]) {
        for (id, bytes) in rows {
            self.before.largest_id = self.before.largest_id.max(*id);
            if bytes.is_empty() {
                self.before.rows.remove(id);
            } else {
                self.before.rows.insert(*id, bytes.clone());
            }
        }
    }

    fn all(&self) -> Vec<(u64, Bytes)> {
        let mut rows: Vec<(u64, Bytes)> = self.before.rows.iter().map(|(id, bytes)| (*id, bytes.clone())).collect();
        if self.before.largest_id > 0 && !self.before.rows.contains_key(&self.before.largest_id) {
            rows.push((self.before.largest_id, Bytes::new()));
        }
        rows
    }
}

/// Rows that are not safe yet.
pub(crate) type Appended = (Arc<Log>, Ticket);

/// The log of the master that leads.
pub(crate) struct StoreLog {
    volume: Arc<dyn Volume>,
    server: ServerName,
    options: LogOptions,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Held by who begins a file. Before `state`.
    beginning: Mutex<()>,
}

impl std::fmt::Debug for StoreLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreLog").field("server", &self.server).finish_non_exhaustive()
    }
}

impl StoreLog {
    /// It has no file yet.
    pub fn new(
        volume: Arc<dyn Volume>,
        server: ServerName,
        config: &Config,
        clock: Arc<dyn Clock>,
        before: Before,
    ) -> StoreLog {
        let options = LogOptions {
            kind: KIND,
            roll_size_bytes: ROLL_SIZE_BYTES,
            archive_suffix: LOG_SUFFIX,
            // Where flushed entries survive who wrote them that is enough: who loses all DataNodes at once has lost the region servers, which are recovered.
            ..LogOptions::on(&*volume, config)
        };
        let state = Mutex::new(State { log: None, before, meta: None });
        StoreLog { volume, server, options, clock, state, beginning: Mutex::new(()) }
    }

    /// Begins a file with all that counts; those before it go to the archive.
    ///
    /// # Errors
    /// The file cannot be made or written: the rows are nowhere newer than before.
    pub fn begin(&self) -> Result<(), StoreError> {
        let _beginning = self.beginning.lock();
        self.begin_file()
    }

    fn begin_file(&self) -> Result<(), StoreError> {
        let log = Log::create(
            Arc::clone(&self.volume),
            dir_of(&self.server),
            &self.server.to_string(),
            self.options.clone(),
            Arc::clone(&self.clock),
        )?;
        let (former, ticket) = {
            let mut state = self.state.lock();
            let (rows, meta) = (state.all(), state.meta.clone());
            let is_empty = rows.is_empty() && meta.is_none();
            let ticket =
                (!is_empty).then(|| state.append(&log, &rows, meta.as_ref(), self.clock.now_ms())).transpose()?;
            (state.log.replace(Arc::clone(&log)), ticket)
        };
        if let Some(ticket) = ticket
            && let Err(failed) = ticket.wait()
        {
            self.give_up(&log);
            return Err(wal::Error::from(failed).into());
        }
        let Some(former) = former else { return Ok(()) };
        // One that failed may not close; its file goes all the same.
        if let Err(error) = former.close() {
            tracing::info!(%error, "cannot close the former WAL file of master:store; the new one has all that it had");
        }
        let archive = rootdir::old_wals_dir();
        self.volume.create_dir_all_durable(&archive)?;
        for file in former.files() {
            let target = archive.join(format!("{}{LOG_SUFFIX}", file.path.name()));
            match self.volume.rename(&file.path, &target) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until rows are safe.
    ///
    /// # Errors
    /// The volume's: some or all of them may be there.
    pub fn settle(&self, (log, ticket): Appended) -> Result<(), StoreError> {
        if let Err(failed) = ticket.wait() {
            self.give_up(&log);
            return Err(wal::Error::from(failed).into());
        }
        if log.wants_roll() {
            let _beginning = self.beginning.lock();
            let is_last = self.state.lock().log.as_ref().is_some_and(|last| Arc::ptr_eq(last, &log));
            if is_last {
                self.begin_file()?;
            }
        }
        Ok(())
    }

    /// The next who writes begins another file, which has all rows.
    fn give_up(&self, log: &Arc<Log>) {
        let mut state = self.state.lock();
        if state.log.as_ref().is_some_and(|last| Arc::ptr_eq(last, log)) {
            state.log = None;
        }
    }

    /// Appends rows, in the order of the calls; those without bytes are over. Whatever it answers, they count from now on, and are in the next file.
    ///
    /// # Errors
    /// As [`StoreLog::begin`].
    pub fn append(&self, rows: &[(u64, Bytes)], meta: Option<MetaAt>) -> Result<Appended, StoreError> {
        let mut state = self.state.lock();
        state.note(rows);
        if meta.is_some() {
            state.meta.clone_from(&meta);
        }
        if state.log.is_none() {
            drop(state);
            let _beginning = self.beginning.lock();
            if self.state.lock().log.is_none() {
                self.begin_file()?;
            }
            state = self.state.lock();
        }
        let Some(log) = state.log.clone() else {
            return Err(fs::Error::new(
                "write",
                &dir_of(&self.server),
                std::io::Error::other("the WAL failed meanwhile"),
            )
            .into());
        };
        match state.append(&log, rows, meta.as_ref(), self.clock.now_ms()) {
            Ok(ticket) => Ok((log, ticket)),
            Err(error) => {
                drop(state);
                self.give_up(&log);
                Err(error.into())
            }
        }
    }

    /// These rows of masters before are so by now, or over where they have no bytes: the first file of this one has them so.
    pub fn amend(&self, rows: &[(u64, Bytes)]) {
        self.state.lock().note(rows);
    }

    /// Where its files are.
    pub fn dir(&self) -> FilePath {
        dir_of(&self.server)
    }

    /// Rows that count.
    pub fn rows(&self) -> BTreeMap<u64, Bytes> {
        self.state.lock().before.rows.clone()
    }
}
