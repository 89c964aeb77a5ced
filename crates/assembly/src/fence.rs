//! The logs of servers that are no more, taken from them: on a volume that other machines write to, a server that is thought dead may only be slow.
//!
//! Always true afterwards: no server of before adds a byte to its logs, and what it acknowledged is in them. It can make no new log either, for
//! the directory that it knows is gone; so it acknowledges nothing more, and ends.

use crate::Runner;
use crate::node::NodeError;
use fs::{FilePath, Settled, Volume};
use model::ServerName;
use std::sync::Arc;
use std::time::Duration;

/// A lease's recovery waits for the next report of a DataNode, which comes every three seconds.
const PAUSE: Duration = Duration::from_millis(250);
/// Pauses between lines in the log.
const TELL_EVERY: u32 = 40;

/// Renames the directories of the logs and settles every file in them; waits as long as that takes. Nothing is to be done on a volume that
/// this process has to itself.
///
/// # Errors
/// The volume fails.
pub(crate) async fn fence_logs<R: Runner>(volume: &Arc<dyn Volume>, runner: &R) -> Result<(), NodeError> {
    if !volume.capabilities().shared {
        return Ok(());
    }
    let renaming = volume.clone();
    let mut open = runner.run(move || Ok(rename_directories(&*renaming))).await.map_err(NodeError::Runner)??;
    let files = open.len();
    for pause in 0_u32.. {
        let settling = volume.clone();
        open = runner.run(move || Ok(unsettled(&*settling, open))).await.map_err(NodeError::Runner)??;
        let Some(first) = open.first() else { break };
        if pause % TELL_EVERY == 0 {
            let left = open.len();
            tracing::info!(
                "recovering the leases of {left} of {files} WAL files of earlier servers, {first} among them"
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Gives each directory another server's name; returns the files in them.
fn rename_directories(volume: &dyn Volume) -> wal::Result<Vec<FilePath>> {
    let wals = rootdir::wals_dir();
    if !volume.exists(&wals)? {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in volume.list(&wals)?.into_iter().filter(|entry| entry.is_dir) {
        let dir = rename_directory(volume, &wals, &entry.name)?;
        let inside = volume.list(&dir)?.into_iter().filter(|entry| !entry.is_dir);
        files.extend(inside.map(|entry| dir.join(&entry.name)));
    }
    Ok(files)
}

/// The next start code that is free: so HBase, should it start here, finds the logs of a dead server as ever. Names that are none stay.
fn rename_directory(volume: &dyn Volume, wals: &FilePath, name: &str) -> wal::Result<FilePath> {
    let from = wals.join(name);
    let Ok(server) = name.parse::<ServerName>() else { return Ok(from) };
    let mut start_code = server.start_code;
    loop {
        start_code = start_code.saturating_add(1);
        let to = wals.join(ServerName::new(&server.host, server.port, start_code).to_string());
        match volume.rename_new(&from, &to) {
            Ok(()) => return Ok(to),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn unsettled(volume: &dyn Volume, files: Vec<FilePath>) -> wal::Result<Vec<FilePath>> {
    let mut open = Vec::new();
    for file in files {
        if volume.settle(&file)? == Settled::Pending {
            open.push(file);
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    #[test]
    fn a_directory_gets_a_name_that_its_server_does_not_know() {
        let volume = MemVolume::new();
        for name in ["h,1,5/log", "h,1,6/log", "other/log"] {
            let path = rootdir::wals_dir().join(name);
            volume.create_dir_all(&path.parent()).expect("made");
            volume.put_file(&path, b"bytes");
        }
        let files = rename_directories(&volume).expect("renamed");
        let names: Vec<&str> = files.iter().map(FilePath::as_str).collect();
        // The first goes past the second; any free name will do.
        assert_eq!(names, ["WALs/h,1,7/log", "WALs/h,1,8/log", "WALs/other/log"]);
        assert!(!volume.exists(&FilePath::new("WALs/h,1,5")).expect("looked"));
        assert!(unsettled(&volume, files).expect("settled").is_empty());
    }
}
