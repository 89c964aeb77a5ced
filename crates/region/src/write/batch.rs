//! Batches: each mutation by itself, in groups and, where somebody sets the pace, in pieces.

use super::{Applied, WritePace, Writer};
use crate::commit::Commit;
use crate::error::{ErrorKind, RegionError, Result};
use crate::row_lock::RowSet;
use base::ReadMode;
use cell::CellBuffer;
use model::Mutation;
use std::sync::atomic::Ordering;

/// How far a batch has come.
struct Progress {
    /// One for each mutation that is done.
    results: Vec<Result<Option<CellBuffer>>>,
    commit: Commit,
    /// The rest waits for the clock, so many milliseconds.
    wait_ms: Option<u64>,
}

impl Progress {
    /// None of `mutations` that is not done yet will be.
    fn end(&mut self, mutations: &[Mutation], why: &RegionError) {
        self.results.resize_with(mutations.len(), || Err(why.clone()));
    }
}

impl Writer<'_> {
    /// Writes each mutation by itself, in pieces if there is a pace.
    pub(crate) fn apply_at_pace(&self, mutations: &[Mutation], pace: Option<&dyn WritePace>) -> Result<Applied> {
        self.core.check_writable()?;
        let commit = self.core.sequencer.commit();
        let mut progress = Progress { results: Vec::with_capacity(mutations.len()), commit, wait_ms: None };
        while progress.results.len() < mutations.len() && progress.wait_ms.is_none() {
            let rest = &mutations[progress.results.len()..];
            let most_bytes = pace.map_or(usize::MAX, |pace| pace.piece_bytes());
            let group = &rest[..self.group_len(rest, most_bytes)];
            if let Some(pace) = pace {
                progress.commit.let_go();
                let bytes = group.iter().map(|mutation| mutation.cells.bytes().len() as u64).sum();
                if let Err(error) = pace.admit(bytes) {
                    progress.end(mutations, &error);
                    break;
                }
            }
            if let Err(error) = self.apply_group(group, &mut progress) {
                progress.end(mutations, &error);
            }
        }
        let Progress { results, commit, wait_ms } = progress;
        self.core.counters.writes.fetch_add(results.len() as u64, Ordering::Relaxed);
        self.core.rows_written(&mutations[..results.len().min(mutations.len())]);
        Ok(Applied { results, commit, wait_ms })
    }

    /// # Errors
    /// The log refused the entry: what was written before stays written, the rest of the batch is not to be tried.
    fn apply_group(&self, group: &[Mutation], progress: &mut Progress) -> Result<()> {
        let at = progress.results.len();
        let mut set = RowSet::default();
        for mutation in group {
            // Here HBase's own client is not to look for the region once more.
            let verdict = self.validate(mutation).map_err(|error| match error.kind() {
                ErrorKind::WrongRegion => RegionError::FailedSanityCheck(error.to_string()),
                _ => error,
            });
            if verdict.is_ok() {
                set.add(&mutation.row);
            }
            progress.results.push(verdict.map(|()| None));
        }
        let results = &mut progress.results[at..];
        match self.write_group(group, set, results, None, ReadMode::UNPACED, &mut progress.commit) {
            Ok(written) => progress.results.truncate(at + written.unwrap_or(0)),
            Err(RegionError::AheadOfClock { wait_ms, .. }) => {
                progress.results.truncate(at);
                progress.wait_ms = Some(wait_ms);
            }
            Err(error) => {
                for result in results.iter_mut().filter(|result| result.is_ok()) {
                    *result = Err(error.clone());
                }
                return Err(error);
            }
        }
        Ok(())
    }
}
