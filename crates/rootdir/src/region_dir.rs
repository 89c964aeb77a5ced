//! A region's directory and the file in it that says which region it is. Follows: `HRegionFileSystem`.

use crate::aside::set_aside;
use crate::paths::{family_name, region_dir};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use fs::{FilePath, Result, Volume, publish_all, sync_dirs};
use model::{RegionInfo, TableDescriptor};
use proto::{Message, magic, pb};

/// Name of the file that says which region a directory is.
pub const REGION_INFO_FILE: &str = ".regioninfo";

/// The bytes of `.regioninfo`. Every field is written out, as HBase 2.6 does.
pub fn region_info_bytes(info: &RegionInfo) -> Bytes {
    magic::encode_delimited(&to_proto::region_info(info))
}

/// The region whose directory this is; `Ok(None)` when there is no `.regioninfo` or it cannot be understood (the
/// caller names the path in its message).
///
/// # Errors
/// What the volume says.
pub fn read_region_info(volume: &dyn Volume, region_dir: &FilePath) -> Result<Option<RegionInfo>> {
    let path = region_dir.join(REGION_INFO_FILE);
    let bytes = match volume.read(&path) {
        Ok(bytes) => Bytes::from(bytes),
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let message = magic::strip(&bytes).and_then(|rest| pb::RegionInfo::decode_length_delimited(rest).ok());
    Ok(message.as_ref().and_then(|message| from_proto::region_info(message).ok()))
}

/// Makes a region's directory with its families' and `.regioninfo`. The entry in the table's directory is durable
/// only when the caller has synced that: once for all regions of a table.
///
/// # Errors
/// What the volume says.
pub fn create_region_dir(volume: &dyn Volume, info: &RegionInfo, table: &TableDescriptor) -> Result<()> {
    create_region_dirs(volume, std::iter::once(info), table)
}

/// As [`create_region_dir`], for many: all are made before the first is synced.
///
/// # Errors
/// What the volume says.
pub fn create_region_dirs<'a>(
    volume: &dyn Volume,
    infos: impl IntoIterator<Item = &'a RegionInfo>,
    table: &TableDescriptor,
) -> Result<()> {
    let (mut missing, mut there) = (Vec::new(), Vec::new());
    for info in infos {
        let dir = region_dir(info);
        volume.create_dir_all(&dir)?;
        for family in table.families.keys() {
            volume.create_dir_all(&dir.join(family_name(family)))?;
        }
        let file = dir.join(REGION_INFO_FILE);
        let bytes = region_info_bytes(info);
        if volume.stat(&file)?.is_some_and(|entry| entry.len == bytes.len() as u64) && holds(volume, &file, &bytes)? {
            // The names beside it may be those of an attempt that could not sync them.
            there.push(dir);
        } else {
            missing.push((file, bytes.to_vec()));
        }
    }
    // Publishing syncs the regions' directories, and with them the families' entries.
    publish_all(volume, &missing)?;
    sync_dirs(volume, there)
}

/// Whether a file holds that. One that HBase's master was writing when it was killed is not whole: its lease is not over yet.
fn holds(volume: &dyn Volume, file: &FilePath, bytes: &[u8]) -> Result<bool> {
    match volume.read(file) {
        Ok(found) => Ok(found == bytes),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// As [`create_region_dir`], with the entry in the table's directory durable too.
///
/// # Errors
/// What the volume says.
pub fn create_region_dir_durably(volume: &dyn Volume, info: &RegionInfo, table: &TableDescriptor) -> Result<()> {
    volume.create_dir_all_durable(&region_dir(info))?;
    create_region_dir(volume, info, table)
}

/// Writes `.regioninfo` into a region's directory where it is missing, durably; one that says nothing legible is set aside first. A directory that
/// is not there is not made.
///
/// # Errors
/// What the volume says; and [`std::io::ErrorKind::AlreadyExists`] where the directory says that it is another region.
pub fn write_region_info(volume: &dyn Volume, info: &RegionInfo, now_ms: i64) -> Result<()> {
    let dir = region_dir(info);
    let file = dir.join(REGION_INFO_FILE);
    match read_region_info(volume, &dir)? {
        Some(found) if found.encoded_name() == info.encoded_name() => return volume.sync_dir(&dir),
        Some(_) => return Err(fs::Error::new("write", &file, std::io::ErrorKind::AlreadyExists.into())),
        None => {}
    }
    if volume.exists(&file)? {
        set_aside(volume, &file, now_ms)?;
    }
    if !volume.exists(&dir)? {
        return Err(fs::Error::new("write", &file, std::io::ErrorKind::NotFound.into()));
    }
    volume.publish(&file, &region_info_bytes(info))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FamilyDescriptor, TableName};

    #[test]
    fn region_info_reads_back() {
        let volume = fs::MemVolume::new();
        let table = TableName::of("ns", "t").expect("legal");
        let mut info = RegionInfo::new(table.clone(), Bytes::from("a"), Bytes::from("b"), 7);
        info.split = true;
        volume.create_dir_all(&region_dir(&info)).expect("memory");
        assert_eq!(read_region_info(&volume, &region_dir(&info)).expect("memory"), None);
        let table = TableDescriptor::new(table, [FamilyDescriptor::new("f")]);
        create_region_dir_durably(&volume, &info, &table).expect("memory");
        assert_eq!(read_region_info(&volume, &region_dir(&info)).expect("memory"), Some(info));
    }

    #[test]
    fn a_region_info_that_says_nothing_is_written_again_and_one_of_another_region_stays() {
        let volume = fs::MemVolume::new();
        let table = TableName::of("ns", "t").expect("legal");
        let info = RegionInfo::new(table.clone(), Bytes::from("a"), Bytes::from("b"), 7);
        let file = region_dir(&info).join(REGION_INFO_FILE);
        let error = write_region_info(&volume, &info, 1).expect_err("no directory is made");
        assert!(error.is_not_found(), "{error}");
        volume.put_file(&file, b"junk");
        write_region_info(&volume, &info, 1).expect("memory");
        assert_eq!(read_region_info(&volume, &region_dir(&info)).expect("memory").as_ref(), Some(&info));
        let aside = fs::FilePath::new(".hbck").join(file.as_str());
        assert_eq!(volume.read(&aside).expect("kept"), b"junk");
        let other = RegionInfo::new(table, Bytes::from("a"), Bytes::from("b"), 8);
        volume.put_file(&file, &region_info_bytes(&other));
        let error = write_region_info(&volume, &info, 2).expect_err("another's");
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(read_region_info(&volume, &region_dir(&info)).expect("memory"), Some(other));
    }
}
