//! From prepared cells to the log's buffer and the memstores, under one sequence id.

use super::Writer;
use super::prepare::Prepared;
use crate::commit::Commit;
use crate::error::{RegionError, Result};
use base::{SeqId, TimestampMs};
use cell::CellIter;
use memstore::{Growth, Segment};
use model::{Durability, Nonce};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::{EntryKey, Level, ReplicationScope, Ticket};

/// Cells handed to a memstore at once.
const INSERTED_AT_ONCE: usize = 32;

impl Writer<'_> {
    /// One entry into the log's buffer and its cells into the memstores.
    pub(super) fn log_and_insert(
        &self,
        prepared: &Prepared,
        nonce: Option<Nonce>,
        durability: Durability,
        commit: &mut Commit,
    ) -> Result<()> {
        let _updating = self.core.updates.read();
        self.core.check_open()?;
        let (seq_id, wait) = if durability == Durability::SkipWal || prepared.for_log().1 == 0 {
            let bytes = prepared.run.len() as u64;
            self.core.counters.writes_without_log.fetch_add(1, Ordering::Relaxed);
            self.core.counters.bytes_without_log.fetch_add(bytes, Ordering::Relaxed);
            self.core.sequencer.unlogged()
        } else {
            self.log_entry(prepared, nonce, durability, commit)?
        };
        self.insert(&prepared.run, seq_id);
        self.core.sequencer.inserted(seq_id);
        self.core.accounting.note_edits(prepared.cells as u64, prepared.moment.now);
        commit.add(seq_id, wait);
        Ok(())
    }

    fn log_entry(
        &self,
        prepared: &Prepared,
        nonce: Option<Nonce>,
        durability: Durability,
        commit: &mut Commit,
    ) -> Result<(SeqId, Option<(Ticket, Level)>)> {
        let mut families: Vec<&[u8]> = Vec::with_capacity(self.core.stores.len().min(8));
        let mut scopes: Vec<ReplicationScope<&[u8]>> = Vec::new();
        for (i, store) in self.core.stores.iter().enumerate() {
            if prepared.touches(i) {
                families.push(&store.name);
                if store.replicated {
                    scopes.push(ReplicationScope { family: &store.name, scope: 1 });
                }
            }
        }
        let (run, cells) = prepared.for_log();
        let mut turn = self.core.sequencer.turn();
        let seq_id = turn.seq_id();
        let key = EntryKey {
            nonce: nonce.map(|n| (n.group, n.number)),
            scopes: &scopes,
            ..EntryKey::new(
                self.core.name(),
                self.core.info.table.as_str(),
                seq_id,
                TimestampMs(prepared.moment.now),
                &families,
            )
        };
        let log = &self.core.env.log;
        // For all others there is a commit, and with it a batch.
        let appended = if durability == Durability::AsyncWal {
            log.append(&key, run, cells)
        } else {
            commit.batch(log).append(&key, run, cells)
        };
        let appended = turn.appended(appended, durability == Durability::FsyncWal);
        if let (Some(outbox), Ok(appended)) = (self.core.outbox.as_ref(), &appended)
            && outbox.has_edits
        {
            outbox.push(seq_id, prepared.moment.now, (run, cells), appended.clone());
        }
        drop(turn);
        let (ticket, level) = appended.map_err(|error| self.log_refused(error))?;
        let wait = match durability {
            Durability::AsyncWal => self.core.sequencer.wait_for_earlier(seq_id),
            Durability::FsyncWal if base::inject!("region.write.fsync-acknowledged-early") => Some((ticket, level)),
            Durability::FsyncWal => Some((ticket, Level::Synced)),
            _ => Some((ticket, level)),
        };
        Ok((seq_id, wait))
    }

    fn insert(&self, run: &[u8], seq_id: SeqId) {
        let mut total = Growth::default();
        let mut cells = CellIter::over_checked(run, seq_id).peekable();
        while let Some(first) = cells.next() {
            let family = first.family();
            let store = self.core.store(family).expect("families were checked");
            let segment: Arc<Segment> = store.peek().memory.active().clone();
            let mut inserter = segment.inserter();
            // Gathered on the stack, so that several places are looked for at once.
            let (mut some, mut count) = ([first; INSERTED_AT_ONCE], 1);
            while let Some(cell) = cells.next_if(|cell| cell.family() == family) {
                if count == some.len() {
                    inserter.insert_all(&some);
                    count = 0;
                }
                some[count] = cell;
                count += 1;
            }
            inserter.insert_all(&some[..count]);
            let growth = inserter.finish();
            total.heap_bytes += growth.heap_bytes;
            total.data_bytes += growth.data_bytes;
        }
        self.core.accounting.grew(total.heap_bytes as i64, total.data_bytes as i64);
    }

    fn log_refused(&self, error: wal::Error) -> RegionError {
        match error {
            wal::Error::Full { .. } | wal::Error::Busy { .. } => {
                RegionError::TooBusy(format!("regionName={}: {error}", self.core.name()))
            }
            error => RegionError::log(self.core.name(), error),
        }
    }
}
