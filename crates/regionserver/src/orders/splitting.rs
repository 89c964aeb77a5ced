//! Splitting a log of a dead server for the master. Follows: `SplitWALCallable`, `SplitLogWorker#splitLog`.

use crate::server::RegionServer;
use base::{Charge, Holder, Ledger};
use fs::{FilePath, Volume};
use parking_lot::Mutex;
use region::RegionDirectories;
use rpc::exception::Exception;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::Duration;
use wal::SplitOptions;

/// Between two looks at a log whose lease is being recovered, or that another order splits.
const PAUSE: Duration = Duration::from_millis(250);

/// So many bytes of entries are held while a log is split however little memory there is.
const LEAST_BUFFER_BYTES: u64 = 8 << 20;

/// The logs that are being split.
#[derive(Default)]
pub(super) struct Splitting(Mutex<FxHashSet<FilePath>>);

/// A log that is being split; not any more when dropped.
struct Turn<'a> {
    splitting: &'a Splitting,
    path: FilePath,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.splitting.0.lock().remove(&self.path);
    }
}

impl Splitting {
    async fn turn_of(&self, path: &FilePath) -> Turn<'_> {
        // The order may come again while it is carried out.
        while !self.0.lock().insert(path.clone()) {
            tokio::time::sleep(PAUSE).await;
        }
        Turn { splitting: self, path: path.clone() }
    }

    /// Brings the edits of a log to the directories of their regions; the master takes the log away then.
    pub async fn split(&self, server: &Arc<RegionServer>, wal_path: &str) -> Result<(), Exception> {
        let path = log_path(wal_path).map_err(Exception::do_not_retry)?;
        let turn = self.turn_of(&path).await;
        for attempt in 0_u32.. {
            let (at, path) = (server.clone(), path.clone());
            let split = crate::blocking::off_worker(move || split(&at, &path)).await;
            match split {
                Ok(Ok(true)) => break,
                Ok(Ok(false)) if attempt % 40 == 0 => tracing::info!("recovering the lease of {}", turn.path),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => return Err(Exception::io(format!("{} cannot be split: {error}", turn.path))),
                Err(error) => return Err(Exception::io(format!("splitting {} failed inside: {error}", turn.path))),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// Whether it is done; else the log may still be written to.
fn split(server: &RegionServer, path: &FilePath) -> wal::Result<bool> {
    let volume: &dyn Volume = &*server.env.volume;
    let settings = server.settings();
    let buffer = buffer(&server.ledger, settings.split_buffer_bytes);
    let options = SplitOptions {
        buffer_bytes: usize::try_from(buffer.bytes()).unwrap_or(usize::MAX),
        writers: settings.split_writers,
        worker: server.name.to_string(),
        ..SplitOptions::default()
    };
    match wal::split_file(volume, path, &mut RegionDirectories { volume }, &options) {
        Ok(report) => {
            let files = report.files.len();
            tracing::info!("split {path}: {} of {} entries to {files} files", report.written, report.entries);
            Ok(true)
        }
        Err(wal::Error::Unsettled { .. }) => Ok(false),
        Err(error) => match volume.exists(path) {
            // It was split and archived already.
            Ok(false) => {
                tracing::info!("{path} is gone: it was split before");
                Ok(true)
            }
            _ => Err(error),
        },
    }
}

/// Memory for the entries of one log: as much as was asked for, or a half, a quarter and so on of it.
fn buffer(ledger: &Arc<Ledger>, bytes: u64) -> Charge {
    let enough = std::iter::successors(Some(bytes), |bytes| Some(bytes / 2));
    let found = enough
        .take_while(|bytes| *bytes > LEAST_BUFFER_BYTES)
        .find_map(|bytes| ledger.try_charge(Holder::WalSplitting, bytes));
    found.unwrap_or_else(|| ledger.charge(Holder::WalSplitting, LEAST_BUFFER_BYTES.min(bytes)))
}

/// The log in the root directory, given as a URL, an absolute path or relative to it.
fn log_path(text: &str) -> Result<FilePath, String> {
    let no_log = || format!("{text} is no log of a region server");
    let (_, rest) = match text.strip_prefix("WALs/") {
        Some(rest) => ("", rest),
        None => text.rsplit_once("/WALs/").ok_or_else(no_log)?,
    };
    let (dir, file) = rest.split_once('/').ok_or_else(no_log)?;
    let is_name = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    if is_name(dir) && is_name(file) { Ok(rootdir::wals_dir().join(dir).join(file)) } else { Err(no_log()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Share;

    #[test]
    fn a_log_is_split_with_the_memory_that_there_is() {
        let ledger = Ledger::new(1 << 30);
        let cap_bytes = 128 << 20;
        ledger.set_share(Holder::WalSplitting, Share { floor_bytes: 0, start_bytes: 0, cap_bytes });
        let first = buffer(&ledger, 96 << 20);
        assert_eq!(first.bytes(), 96 << 20);
        let second = buffer(&ledger, 96 << 20);
        assert_eq!(second.bytes(), 24 << 20, "a quarter is what is left for it");
        let third = buffer(&ledger, 96 << 20);
        assert_eq!(third.bytes(), LEAST_BUFFER_BYTES, "it goes on with little");
        drop((first, second, third));
        assert_eq!(ledger.held_bytes(Holder::WalSplitting), 0);
        assert_eq!(buffer(&ledger, 1 << 20).bytes(), 1 << 20, "no more than was asked for");
    }

    #[test]
    fn a_log_is_named_in_any_of_hbases_ways() {
        let inside = "WALs/h,1,2-splitting/h%2C1%2C2.3";
        for text in [inside.to_owned(), format!("/hbase/{inside}"), format!("hdfs://n:8020/hbase/{inside}")] {
            assert_eq!(log_path(&text).map(|path| path.to_string()), Ok(inside.to_owned()), "{text}");
        }
        for text in ["", "WALs/a", "WALs/../x", "WALs/a/b/c", "data/default/t/x", "WALs/a/.."] {
            assert!(log_path(text).is_err(), "{text}");
        }
    }
}
