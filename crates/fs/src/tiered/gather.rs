//! Makes one directory again, as HBase can open it.

use super::attach::each_record;
use super::{IDENTITY_NAME, LIST_NAME, MOVING, OBJECTS, Record, TieredVolume};
use crate::{Appender, Error, FilePath, ReadAt, Result, Volume};
use std::io;

const COPY_BYTES: usize = 1 << 20;

/// What was brought back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Copies a file and makes the copy durable; the bytes that it has, or `None` when `goes_on`, told of each piece, says no.
pub(super) fn copy(
    source: &dyn ReadAt,
    mut out: Box<dyn Appender>,
    goes_on: &dyn Fn(u64) -> bool,
) -> Result<Option<u64>> {
    let len = source.len()?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < len {
        let piece = usize::try_from(len - at).unwrap_or(usize::MAX).min(COPY_BYTES);
        source.read_exact_at(&mut buffer[..piece], at)?;
        out.append(&buffer[..piece])?;
        at += piece as u64;
        if !goes_on(piece as u64) {
            return Ok(None);
        }
    }
    out.finish()?;
    Ok(Some(len))
}

impl TieredVolume {
    /// Brings every file back beside its name, and ends with volumes that are nobody's and a root that is as if it never had any. May be
    /// interrupted and begun again. Nobody else may use the root meanwhile. `progress` is told after each file.
    ///
    /// # Errors
    /// What volumes say; a file whose bytes are lost. What was brought back stays so.
    pub fn gather(&self, progress: &mut dyn FnMut(&FilePath, Gathered)) -> Result<Gathered> {
        let mut records: Vec<(FilePath, Record)> = Vec::new();
        each_record(&*self.home, &FilePath::root(), &mut |path, record| records.push((path.clone(), record)))?;
        let mut gathered = Gathered::default();
        for (path, record) in &records {
            gathered.bytes += self.bring_back(path, record)?;
            gathered.files += 1;
            progress(path, gathered);
        }
        for volume in self.set().others.iter().filter_map(|other| other.volume()) {
            // What no name has stays: it may be somebody's.
            if volume.list(&FilePath::new(OBJECTS))?.is_empty() {
                volume.remove_dir_all(&FilePath::new(OBJECTS))?;
            }
            match volume.remove_file(&FilePath::new(IDENTITY_NAME)) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => volume.sync_dir(&FilePath::root())?,
            }
        }
        self.home.remove_dir_all(&FilePath::new(MOVING))?;
        match self.home.remove_file(&FilePath::new(LIST_NAME)) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => self.home.sync_dir(&FilePath::root())?,
        }
        Ok(gathered)
    }

    fn bring_back(&self, path: &FilePath, record: &Record) -> Result<u64> {
        let source = Volume::open(self, path)?;
        let (temporary, out) = loop {
            let temporary = path.parent().join(self.home.temporary_name(path.name()));
            match self.home.create(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => break (temporary, created?),
            }
        };
        let len = match copy(&*source, out, &|_| true) {
            Ok(len) => len.unwrap_or(0),
            Err(error) => {
                let _ = self.home.remove_file(&temporary);
                return Err(error);
            }
        };
        if self.home.stat(&temporary)?.map(|entry| entry.len) != Some(len) {
            return Err(Error::new("bring back", path, io::ErrorKind::UnexpectedEof.into()));
        }
        self.home.rename(&temporary, path)?;
        self.home.sync_dir(&path.parent())?;
        self.discard(record);
        Ok(len)
    }
}
