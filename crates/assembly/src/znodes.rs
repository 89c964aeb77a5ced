//! The file in which the embedded ZooKeeper endpoint keeps its users' nodes, `MasterData/basalt/znodes` if no directory was named for it: the
//! whole of them, published anew for each group of changes. Its bytes are [`coordination::kept`]'s.
//!
//! Always true: what [`publish`] has answered is found by [`load`], whatever happens between; the file is the old one or the new one, and whoever
//! cannot read it does not start.

use coordination::{Damaged, Kept};
use fs::{FilePath, Volume};
use rootdir::paths::own_master_dir;

/// Where the nodes are kept in a root directory.
pub fn file() -> FilePath {
    own_master_dir().join("znodes")
}

/// Where they are kept in a directory of their own, in which other things may be.
pub fn own_file() -> FilePath {
    FilePath::new("basalt-znodes")
}

/// The nodes cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ZnodesError {
    /// The volume failed.
    #[error("cannot read the kept znodes: {0}")]
    Io(#[from] fs::Error),
    /// The file is something else.
    #[error(
        "{path} does not hold the kept znodes, {damage}; restore it from a backup, or move it away to start without the nodes that ZooKeeper \
         clients had made"
    )]
    Damaged {
        /// The file.
        path: FilePath,
        /// Where it is wrong, and how.
        damage: Damaged,
    },
}

/// What an earlier life kept; nothing on a volume that is new.
///
/// # Errors
/// The volume, or a file that is something else.
pub fn load(volume: &dyn Volume) -> Result<Kept, ZnodesError> {
    Ok(load_from(volume, &file())?.unwrap_or_default())
}

/// What an earlier life kept in the file at `path`, if it is there.
///
/// # Errors
/// As of [`load`].
pub fn load_from(volume: &dyn Volume, path: &FilePath) -> Result<Option<Kept>, ZnodesError> {
    let bytes = match volume.read(path) {
        Err(error) if error.is_not_found() => return Ok(None),
        read => read?,
    };
    let kept = Kept::decode(&bytes.into()).map_err(|damage| ZnodesError::Damaged { path: path.clone(), damage })?;
    Ok(Some(kept))
}

/// Makes the nodes durable, in the place of those that were there.
///
/// # Errors
/// The volume's: then the old ones are there, or the new.
pub fn publish(volume: &dyn Volume, kept: &Kept) -> fs::Result<()> {
    publish_at(volume, &file(), kept)
}

/// As [`publish`], in the file at `path`.
///
/// # Errors
/// As of [`publish`].
pub fn publish_at(volume: &dyn Volume, path: &FilePath, kept: &Kept) -> fs::Result<()> {
    volume.create_dir_all_durable(&path.parent())?;
    volume.publish(path, &kept.encode())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    #[test]
    fn a_damaged_file_is_named_with_the_place_and_what_to_do() {
        let volume = MemVolume::new();
        assert_eq!(load(&volume).expect("a new volume"), Kept::default());
        publish(&volume, &Kept { zxid_limit: 7, nodes: Vec::new() }).expect("written");
        assert_eq!(load(&volume).expect("as written").zxid_limit, 7);
        volume.put_file(&file(), b"BSLTZNODsomething else that is as long as a header");
        assert_eq!(
            load(&volume).expect_err("damaged").to_string(),
            "MasterData/basalt/znodes does not hold the kept znodes, at byte 0: the header's checksum is wrong; restore it from a backup, or \
             move it away to start without the nodes that ZooKeeper clients had made"
        );
    }
}
