//! What a region gives to a snapshot: the names of its store files at one moment. No cell is read or copied.
//!
//! Follows: `HRegion#addRegionToSnapshot`, `SnapshotManifest#addRegion`, `SnapshotRegionCallable`.

use crate::RegionEnv;
use crate::error::{RegionError, Result};
use crate::flush::Flusher;
use crate::region::Region;
use crate::split::live_files;
use crate::store_file::StoreFile;
use bytes::Bytes;
use fs::{FilePath, Volume};
use model::{RegionInfo, TableDescriptor};
use proto::{Message, magic, pb};
use rootdir::snapshot::{FamilyFiles, RegionManifest, SnapshotFile};
use std::sync::Arc;

/// The files of an open region. With `flush` every write that was acknowledged before the call is in them; without, memory stays out.
///
/// # Errors
/// The region is not open, the flush or the volume fails.
pub fn open_region_manifest(region: &Region, flush: bool) -> Result<RegionManifest> {
    let core = region.core();
    core.check_open()?;
    // No flush between the families: a row's cells of one moment are in the snapshot together, or not at all.
    let _flushing = core.flushing.lock();
    if flush {
        Flusher::new(core).flush_stores(&core.stores.iter().collect::<Vec<_>>())?;
    }
    let volume = &*core.env.volume;
    let families = core.stores.iter().map(|store| {
        let files = store.view().files.clone();
        family_files(volume, core.name(), &store.dir, &store.name, &files)
    });
    Ok(RegionManifest { info: core.info.clone(), families: families.collect::<Result<_>>()? })
}

/// The files of a region that nobody has open: of a disabled table, or one that was split. Reads the files' trailers, for one that a
/// compaction replaced before a crash counts no more.
///
/// # Errors
/// The volume fails, or a file is damaged.
pub fn closed_region_manifest(env: &RegionEnv, info: &RegionInfo, table: &TableDescriptor) -> Result<RegionManifest> {
    let mut families: Vec<(&Bytes, Vec<Arc<StoreFile>>)> =
        table.families.keys().map(|name| (name, Vec::new())).collect();
    for (family, file) in live_files(env, info, table)? {
        if let Some((_, files)) = families.iter_mut().find(|(name, _)| *name == family) {
            files.push(Arc::new(file));
        }
    }
    // HBase leaves out a family of a closed region that has no file.
    families.retain(|(_, files)| !files.is_empty());
    let families = families.iter_mut().map(|(name, files)| {
        crate::store::sort_files(files);
        let dir = rootdir::family_dir(info, name);
        family_files(&*env.volume, info.encoded_name(), &dir, name, files)
    });
    Ok(RegionManifest { info: info.clone(), families: families.collect::<Result<_>>()? })
}

fn family_files(
    volume: &dyn Volume,
    region: &Arc<str>,
    dir: &FilePath,
    family: &Bytes,
    files: &[Arc<StoreFile>],
) -> Result<FamilyFiles> {
    let file = |file: &Arc<StoreFile>| {
        let reference = if file.is_reference() {
            let path = dir.join(&file.name);
            let bytes = volume.read(&path).map_err(|e| RegionError::volume(region, e))?;
            let message = magic::strip_slice(&bytes).and_then(|bytes| pb::Reference::decode(bytes).ok());
            let what = || RegionError::Damaged {
                region: region.clone(),
                what: format!("{path} is not a reference to a store file"),
            };
            Some(message.ok_or_else(what)?)
        } else {
            None
        };
        Ok(SnapshotFile { name: file.name.clone(), reference, len_bytes: file.reader.len_bytes() })
    };
    Ok(FamilyFiles { name: family.clone(), files: files.iter().map(file).collect::<Result<_>>()? })
}
