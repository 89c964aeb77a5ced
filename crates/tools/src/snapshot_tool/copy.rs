//! Copies files between volumes: checked, at a rate that can be bounded, resumable.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fs::{FilePath, Volume};

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// One file to copy.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub from: FilePath,
    pub to: FilePath,
    pub len_bytes: u64,
}

/// How copies are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Files that are copied at the same time.
    pub threads: usize,
    /// Bytes in a second, all together; as many as go where there is none.
    pub bytes_per_second: Option<u64>,
    /// What was written is read again and compared; a file that is there already is compared, too.
    pub verify: bool,
}

/// What came of it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copied {
    pub files: usize,
    pub bytes: u64,
    /// Files that were there already.
    pub kept: usize,
}

/// Copies all `tasks`. Each file appears under its name when it is whole and durable, so that a run that was broken off goes on where it was.
///
/// # Errors
/// The first that a file ended with.
pub(crate) fn copy_all(from: &dyn Volume, to: &dyn Volume, tasks: &[Task], manner: Manner) -> anyhow::Result<Copied> {
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(Copied::default());
    let threads = manner.threads.clamp(1, tasks.len().max(1));
    let share = manner.bytes_per_second.map(|bytes| (bytes / threads as u64).max(1));
    std::thread::scope(|scope| {
        let work = || -> anyhow::Result<()> {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let done = copy(from, to, task, share, manner.verify);
                let was_copied = done.inspect_err(|_| next.store(tasks.len(), Ordering::Relaxed))?;
                let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                sum.bytes += if was_copied { task.len_bytes } else { 0 };
                sum.files += usize::from(was_copied);
                sum.kept += usize::from(!was_copied);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(done) => done?,
                Err(_) => bail!("a thread that copied files ended by itself"),
            }
        }
        Ok(())
    })?;
    Ok(sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Copies one file; false where it was there already.
fn copy(
    from: &dyn Volume,
    to: &dyn Volume,
    task: &Task,
    bytes_per_second: Option<u64>,
    verify: bool,
) -> anyhow::Result<bool> {
    let source = from.open(&task.from).with_context(|| format!("cannot read {}", task.from))?;
    if let Some(entry) = to.stat(&task.to)?
        && entry.len == task.len_bytes
        && (!verify || sum(to, &task.to)? == sum(from, &task.from)?)
    {
        return Ok(false);
    }
    let dir = task.to.parent();
    to.create_dir_all_durable(&dir)?;
    let temporary = dir.join(to.temporary_name(task.to.name()));
    let start = Instant::now();
    let mut file = to.create(&temporary)?;
    let mut copied = 0;
    let mut crc = crc32fast::Hasher::new();
    let write = || -> anyhow::Result<u32> {
        let mut piece = vec![0; PIECE_BYTES];
        while copied < task.len_bytes {
            let len = (task.len_bytes - copied).min(PIECE_BYTES as u64) as usize;
            source.read_exact_at(&mut piece[..len], copied)?;
            crc.update(&piece[..len]);
            file.append(&piece[..len])?;
            copied += len as u64;
            if let Some(rate) = bytes_per_second {
                let due = Duration::from_secs_f64(copied as f64 / rate as f64);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
        }
        file.finish()?;
        Ok(crc.finalize())
    };
    let written = write().and_then(|wanted| match verify && sum(to, &temporary)? != wanted {
        true => bail!("{}: the copy at {temporary} does not read as it was written", task.from),
        false => Ok(()),
    });
    if let Err(error) = written {
        // What stays is a name that nobody reads.
        let _ = to.remove_file(&temporary);
        return Err(error.context(format!("cannot copy {} to {}", task.from, task.to)));
    }
    to.rename(&temporary, &task.to)?;
    to.sync_dir(&dir)?;
    Ok(true)
}

/// CRC-32 of a file.
pub(crate) fn sum(volume: &dyn Volume, path: &FilePath) -> anyhow::Result<u32> {
    let file = volume.open(path)?;
    let len = file.len()?;
    let mut crc = crc32fast::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < len {
        let part = (len - at).min(PIECE_BYTES as u64) as usize;
        file.read_exact_at(&mut piece[..part], at)?;
        crc.update(&piece[..part]);
        at += part as u64;
    }
    Ok(crc.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::LocalVolume;

    struct Scratch(std::path::PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn copies_are_made_once_and_compared() {
        let scratch = Scratch(std::env::temp_dir().join(format!("basalt-tools-copy-{}", std::process::id())));
        let volume = |name: &str| LocalVolume::open(&scratch.0.join(name)).expect("a volume");
        let (from, to) = (volume("from"), volume("to"));
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES / 2).map(|i| (i % 251) as u8).collect();
        from.publish(&FilePath::new("a"), &bytes).expect("written");
        let task = Task { from: FilePath::new("a"), to: FilePath::new("x/y/a"), len_bytes: bytes.len() as u64 };
        let manner = Manner { threads: 4, bytes_per_second: None, verify: true };
        let first = copy_all(&from, &to, std::slice::from_ref(&task), manner).expect("copied");
        assert_eq!(first, Copied { files: 1, bytes: bytes.len() as u64, kept: 0 });
        assert_eq!(to.read(&task.to).expect("there"), bytes);
        let again = copy_all(&from, &to, std::slice::from_ref(&task), manner).expect("kept");
        assert_eq!(again.kept, 1);
        // Damage of the same length is found, and mended.
        let mut damaged = bytes.clone();
        damaged[7] ^= 1;
        to.publish(&task.to, &damaged).expect("written");
        let mended = copy_all(&from, &to, std::slice::from_ref(&task), manner).expect("mended");
        assert_eq!((mended.files, to.read(&task.to).expect("there") == bytes), (1, true));
        let gone = Task { from: FilePath::new("none"), ..task };
        let error = copy_all(&from, &to, &[gone], manner).expect_err("nothing is there");
        assert!(format!("{error:#}").contains("none"), "{error:#}");
    }
}
