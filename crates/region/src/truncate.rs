//! Emptying a region. Follows: `TruncateRegionProcedure`.

use crate::RegionEnv;
use crate::error::{RegionError, Result};
use model::RegionInfo;

/// Empties a closed region: its store files go to the archive. What the region's directory says of sequence ids stays, so that ids grow
/// and no log brings anything back. Durable; may be repeated after a crash.
///
/// # Errors
/// When the volume fails: what is left is found by the next attempt.
pub fn truncate(env: &RegionEnv, info: &RegionInfo) -> Result<()> {
    let volume = &*env.volume;
    let wrap = |e| RegionError::volume(info.encoded_name(), e);
    let dir = rootdir::region_dir(info);
    for family in rootdir::family_names(volume, &dir).map_err(wrap)? {
        let family = dir.join(&family);
        rootdir::archive_family_dir(volume, &family).map_err(wrap)?;
        // With references to other regions' files, which are nothing of their own.
        rootdir::paths::remove_dir_durably(volume, &family).map_err(wrap)?;
    }
    Ok(())
}
