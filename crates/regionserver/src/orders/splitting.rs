//! Splitting a log of a dead server for the master. Follows: `SplitWALCallable`, `SplitLogWorker#splitLog`.

use crate::server::RegionServer;
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

/// Bytes of entries held while a log is split. Two are split at the same time.
const BUFFER_BYTES: usize = 32 << 20;

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
    let options =
        SplitOptions { buffer_bytes: BUFFER_BYTES, worker: server.name.to_string(), ..SplitOptions::default() };
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
    use super::log_path;

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
