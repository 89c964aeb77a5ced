//! What is in the way and may be of use to somebody goes below `.hbck`, under its own path: nothing is deleted. Follows: `HBaseFsck`, which puts
//! there what it takes out of tables.

use crate::paths::HBCK;
use fs::{FilePath, Result, Volume};

/// Where `path` goes, unless something is there.
fn home(path: &FilePath) -> FilePath {
    FilePath::new(HBCK).join(path.as_str())
}

/// Moves a file or a directory aside, durably; answers where it is now. `now_ms` makes the name another where one of that name is there. Where
/// nothing is at `path`, an earlier attempt moved it.
///
/// # Errors
/// What the volume says.
pub fn set_aside(volume: &dyn Volume, path: &FilePath, now_ms: i64) -> Result<FilePath> {
    let home = home(path);
    let dir = home.parent();
    volume.create_dir_all_durable(&dir)?;
    let is_taken = volume.exists(&home)?;
    let target = if is_taken { dir.join(format!("{}-{now_ms}", home.name())) } else { home.clone() };
    let moved = match volume.rename_new(path, &target) {
        Err(error) if error.is_not_found() => home,
        moved => moved.map(|()| target)?,
    };
    volume.sync_dir(&dir)?;
    let from = path.parent();
    if volume.exists(&from)? {
        volume.sync_dir(&from)?;
    }
    Ok(moved)
}

/// Leaves a copy of a small file aside, durably; answers where. `now_ms` as in [`set_aside`].
///
/// # Errors
/// What the volume says.
pub fn copy_aside(volume: &dyn Volume, file: &FilePath, now_ms: i64) -> Result<FilePath> {
    let bytes = volume.read(file)?;
    let mut target = home(file);
    let dir = target.parent();
    volume.create_dir_all_durable(&dir)?;
    if volume.exists(&target)? && volume.read(&target)? != bytes {
        target = dir.join(format!("{}-{now_ms}", target.name()));
    }
    volume.publish(&target, &bytes)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    #[test]
    fn what_is_set_aside_is_all_there_and_a_second_one_does_not_take_its_place() {
        let volume = MemVolume::new();
        let (dir, file) = (FilePath::new("data/default/t/r"), FilePath::new("data/default/t/r/f/file"));
        volume.put_file(&file, b"first");
        let first = set_aside(&volume, &dir, 7).expect("memory");
        assert_eq!(first.as_str(), ".hbck/data/default/t/r");
        assert_eq!(set_aside(&volume, &dir, 8).expect("repeated"), first);
        volume.put_file(&file, b"second");
        let second = set_aside(&volume, &dir, 9).expect("memory");
        assert_eq!(second.as_str(), ".hbck/data/default/t/r-9");
        assert_eq!(volume.read(&first.join("f/file")).expect("there"), b"first");
        assert_eq!(volume.read(&second.join("f/file")).expect("there"), b"second");
        assert!(!volume.exists(&dir).expect("memory"));
        volume.put_file(&file, b"third");
        let copy = copy_aside(&volume, &file, 10).expect("memory");
        assert_eq!(copy.as_str(), ".hbck/data/default/t/r/f/file-10");
        assert_eq!(volume.read(&copy).expect("there"), b"third");
        assert_eq!(volume.read(&file).expect("there"), b"third");
    }
}
