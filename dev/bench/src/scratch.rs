//! A directory for the files of a run, removed at its end.

use anyhow::Context;
use fs::LocalVolume;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A directory that goes with its owner.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory below `parent`.
    pub fn below(parent: &Path) -> anyhow::Result<Scratch> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("basalt-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory as a volume.
    pub fn volume(&self) -> anyhow::Result<Arc<LocalVolume>> {
        Ok(Arc::new(LocalVolume::open(&self.path)?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
