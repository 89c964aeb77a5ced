//! Where a file to be loaded is, and how it comes into the region's volume.

use fs::{FilePath, ReadAt, Volume};
use rootdir::paths;
use std::io::ErrorKind;
use std::sync::Arc;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Directories of the root whose files belong to somebody: they are copied, never moved away.
const OWNED: [&str; 6] = [paths::DATA, paths::ARCHIVE, paths::MOB, paths::WALS, paths::OLD_WALS, paths::SNAPSHOTS];

/// Where a file is.
#[derive(Clone)]
pub enum Place {
    /// In the region's volume.
    Inside(FilePath),
    /// In another.
    Outside {
        /// Which.
        volume: Arc<dyn Volume>,
        /// Where in it.
        path: FilePath,
        /// Where the region's volume is in it: files can be renamed from one to the other.
        root: FilePath,
    },
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Inside(path) => write!(f, "Inside({path:?})"),
            Place::Outside { path, .. } => write!(f, "Outside({path:?})"),
        }
    }
}

impl Place {
    /// The path in its volume.
    pub fn path(&self) -> &FilePath {
        match self {
            Place::Inside(path) | Place::Outside { path, .. } => path,
        }
    }

    fn volume<'a>(&'a self, own: &'a dyn Volume) -> &'a dyn Volume {
        match self {
            Place::Inside(_) => own,
            Place::Outside { volume, .. } => &**volume,
        }
    }

    pub(super) fn open(&self, own: &dyn Volume) -> fs::Result<Arc<dyn ReadAt>> {
        self.volume(own).open(self.path())
    }

    fn is_owned(&self) -> bool {
        let first = self.path().as_str().split('/').next().unwrap_or_default();
        matches!(self, Place::Inside(_)) && OWNED.contains(&first)
    }

    /// Brings the file to `target` of the region's volume `own`; a file on another disk is copied in any case.
    pub(super) fn bring(&self, own: &dyn Volume, target: &FilePath, copy: bool) -> fs::Result<()> {
        let moved = match self {
            Place::Inside(path) if path == target => return Ok(()),
            _ if copy || self.is_owned() => return self.copy(own, target),
            Place::Inside(path) => own.rename(path, target),
            Place::Outside { volume, path, root } => volume.rename(path, &root.join(target.as_str())),
        };
        match moved {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => self.copy(own, target),
            other => other,
        }
    }

    fn copy(&self, own: &dyn Volume, target: &FilePath) -> fs::Result<()> {
        let source = self.open(own)?;
        let len = source.len()?;
        let mut out = own.create(target)?;
        let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(len).unwrap_or(COPY_BYTES))];
        let mut at = 0;
        while at < len {
            let piece = usize::try_from(len - at).unwrap_or(usize::MAX).min(buffer.len());
            source.read_exact_at(&mut buffer[..piece], at)?;
            out.append(&buffer[..piece])?;
            at += piece as u64;
        }
        out.finish()
    }

    /// The load has failed: what was moved goes back, what was copied goes. Best effort: the client looks into the
    /// staging directory itself.
    pub(super) fn give_back(&self, own: &dyn Volume, staged: &FilePath, copy: bool) {
        if self.path() == staged && matches!(self, Place::Inside(_)) {
            return;
        }
        if copy || self.is_owned() {
            // Whether it was brought at all is not known; what is not there cannot be removed.
            let _ = own.remove_file(staged);
            return;
        }
        // Never over a file: it was not moved, or somebody has written a new one.
        if self.volume(own).exists(self.path()).unwrap_or(true) || !own.exists(staged).unwrap_or(false) {
            return;
        }
        let back = match self {
            Place::Inside(path) => own.rename(staged, path),
            Place::Outside { volume, path, root } => volume.rename(&root.join(staged.as_str()), path),
        };
        if let Err(error) = back {
            tracing::warn!(%error, "a file that was not loaded stays in the staging directory");
        }
    }
}
