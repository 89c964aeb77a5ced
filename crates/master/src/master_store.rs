//! `MasterData/data/master/store`: what HBase's master keeps for itself, written so that HBase can take the directory
//! over at any time, and read ([`contents`]) after HBase's master has led.
//!
//! HBase's master takes two things from its store when it starts: where hbase:meta was open, and which servers were
//! alive. It holds a crash procedure for each of them, and these open everything again. Without them it takes
//! hbase:meta for one that was never made: it waits for ever or, when hbase:meta has no file yet, deletes its
//! directory.
//!
//! Always true:
//!  1. Once [`write`] is through, the store says that hbase:meta is open on this life's server and names every server
//!     on which hbase:meta shows a region. The location is there before anything older goes.
//!  2. Procedures that HBase left do not stay: our master goes on with them (`procedure::of_hbase`). Their files go to the archive,
//!     under the names that HBase's cleaners look for. Of them the largest id stays, so that HBase's master gives none twice: region
//!     servers take a second order of one id for a repetition of the first. Family `state` (HBase's switches) is that of `master_state`.
//!
//! Follows: `MasterRegion`, `MasterRegionFactory`, `MasterRegionServerList`,
//! `HMaster#tryMigrateMetaLocationsFromZooKeeper`.

pub(crate) mod contents;
pub(crate) mod log;

use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use convert::to_proto;
use fs::{FilePath, Volume};
use hfile::{BloomType, Encoding, StoreMetadata, Writer, WriterOptions};
use model::{FamilyDescriptor, NameError, RegionInfo, ServerName, TableDescriptor, TableName};
use proto::magic;
use rootdir::descriptor::{self, DescriptorError};
use rootdir::list_if_exists;
use rootdir::paths::{self, master_store_dir, master_wals_dir, remove_dir_durably};
use rootdir::region_dir::REGION_INFO_FILE;
use std::collections::BTreeSet;

/// A directory: HBase takes a store without it for one that an older version made.
const INITIALIZED: &str = ".initialized";
/// Ends the names of archived files: HBase's cleaners know them by it.
const FILE_SUFFIX: &str = "$-masterlocalhfile-$";
const LOG_SUFFIX: &str = "$masterlocalwal$";

/// Why the store could not be written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The volume.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// A store file.
    #[error(transparent)]
    File(#[from] hfile::Error),
    /// The log.
    #[error(transparent)]
    Log(#[from] wal::Error),
    /// A descriptor.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The name of the table; never.
    #[error(transparent)]
    Name(#[from] NameError),
}

fn table() -> Result<TableDescriptor, NameError> {
    let info = FamilyDescriptor::new("info")
        .with("VERSIONS", "3")
        .with("IN_MEMORY", "true")
        .with("BLOCKSIZE", "8192")
        .with("BLOOMFILTER", "ROWCOL")
        .with("DATA_BLOCK_ENCODING", "ROW_INDEX_V1");
    let families = [info, FamilyDescriptor::new("proc"), FamilyDescriptor::new("rs"), FamilyDescriptor::new("state")];
    Ok(rootdir::root::with_file_tracker(TableDescriptor::new(TableName::parse("master:store")?, families)))
}

/// The only region, and its directory.
pub(crate) fn region() -> Result<(RegionInfo, FilePath), StoreError> {
    let region = RegionInfo::new(table()?.name, Bytes::new(), Bytes::new(), 1);
    let dir = master_store_dir().join(&**region.encoded_name());
    Ok((region, dir))
}

fn cell(cells: &mut CellBuffer, row: &[u8], family: &[u8], qualifier: &[u8], stamp: TimestampMs, value: &[u8]) {
    let type_code = CellType::Put.code();
    cells.push_spec(&CellSpec { row, family, qualifier, timestamp: stamp.0, type_code, value, tags: &[] }, SeqId(0));
}

/// The location of hbase:meta; qualifiers in their order.
fn location(server: &ServerName, state: &str, stamp: TimestampMs) -> CellBuffer {
    let meta = RegionInfo::meta();
    let (info, address, name) = (magic::encode(&to_proto::region_info(&meta)), server.address(), server.to_string());
    let mut cells = CellBuffer::new();
    let columns: [(&[u8], &[u8]); 6] = [
        (b"regioninfo", &info),
        (b"seqnumDuringOpen", &(-1i64).to_be_bytes()),
        (b"server", address.as_bytes()),
        (b"serverstartcode", &server.start_code.to_be_bytes()),
        (b"sn", name.as_bytes()),
        (b"state", state.as_bytes()),
    ];
    for (qualifier, value) in columns {
        cell(&mut cells, meta.name(), b"info", qualifier, stamp, value);
    }
    cells
}

fn file_name(stamp: TimestampMs, number: u32) -> String {
    format!("{:016x}{number:016x}", stamp.0)
}

/// Whether a store file has a name of ours: HBase's are of 32 random digits.
fn made_here(name: &str) -> bool {
    name.len() == 32 && name.get(16..24) == Some("00000000")
}

/// A file of `cells` in the family's directory, durable when it returns; its name.
pub(crate) fn add_file(
    volume: &dyn Volume,
    region: &FilePath,
    family: &str,
    stamp: TimestampMs,
    cells: &CellBuffer,
) -> Result<String, StoreError> {
    let dir = region.join(family);
    volume.create_dir_all_durable(&dir)?;
    // HBase's names are of random digits; a clock that stands still must not make one twice.
    let mut number = 1;
    let mut name = file_name(stamp, number);
    while volume.exists(&dir.join(&name))? {
        number += 1;
        name = file_name(stamp, number);
    }
    let temp_dir = region.join(paths::TEMP).join(family);
    volume.create_dir_all(&temp_dir)?;
    let temp = temp_dir.join(&name);
    let is_info = family == "info";
    let options = WriterOptions {
        encoding: if is_info { Encoding::RowIndexV1 } else { Encoding::None },
        bloom: if is_info { BloomType::RowCol } else { BloomType::Row },
        create_time_ms: stamp,
        ..WriterOptions::default()
    };
    let mut writer = Writer::create(volume, &temp, options)?;
    for one in cells.iter_from(0) {
        writer.append(one)?;
    }
    writer.finish(&StoreMetadata { max_seq_id: Some(SeqId(1)), ..StoreMetadata::default() })?;
    volume.rename(&temp, &dir.join(&name))?;
    volume.sync_dir(&dir)?;
    Ok(name)
}

/// Moves a family's files to the archive, except the one that is to stay.
pub(crate) fn archive_files(
    volume: &dyn Volume,
    region: &RegionInfo,
    family: &str,
    keep: Option<&str>,
) -> Result<(), StoreError> {
    let dir = master_store_dir().join(&**region.encoded_name()).join(family);
    let archive = paths::archived_master_store_dir().join(&**region.encoded_name()).join(family);
    for entry in list_if_exists(volume, &dir)? {
        if !entry.is_dir && Some(entry.name.as_str()) != keep {
            volume.create_dir_all_durable(&archive)?;
            volume.rename(&dir.join(&entry.name), &archive.join(format!("{}{FILE_SUFFIX}", entry.name)))?;
        }
    }
    Ok(())
}

/// Moves the logs of masters before to the old logs: what they hold would be replayed over this store. That in `keep` is this master's.
fn archive_logs(volume: &dyn Volume, region: &FilePath, keep: Option<&FilePath>) -> Result<(), StoreError> {
    let archive = rootdir::old_wals_dir();
    let dirs = std::iter::once(region.join(contents::RECOVERED)).chain(contents::log_dirs(volume)?);
    for dir in dirs.filter(|dir| Some(dir) != keep) {
        for entry in list_if_exists(volume, &dir)? {
            volume.create_dir_all_durable(&archive)?;
            volume.rename(&dir.join(&entry.name), &archive.join(format!("{}{LOG_SUFFIX}", entry.name)))?;
        }
        remove_dir_durably(volume, &dir)?;
    }
    Ok(())
}

/// Writes the store of this life. `server` has hbase:meta; `others` are the servers on which it shows regions; no procedure that HBase's
/// master began has an id beyond `largest_id`. May be repeated after a crash. Some small files, each synced.
///
/// # Errors
/// What the volume says; the directory can be served all the same, but HBase could not take it over.
pub fn write(
    volume: &dyn Volume,
    server: &ServerName,
    others: &BTreeSet<String>,
    largest_id: Option<u64>,
    log_dir: Option<&FilePath>,
    stamp: TimestampMs,
) -> Result<(), StoreError> {
    let table = table()?;
    let home = master_store_dir();
    let (region, dir) = region()?;
    // The region and its description first, the mark that all is there last.
    volume.create_dir_all_durable(&dir)?;
    let info_file = dir.join(REGION_INFO_FILE);
    if volume.exists(&info_file)? {
        // It may be that of an attempt that could not sync its name.
        volume.sync_dir(&dir)?;
    } else {
        volume.publish(&info_file, &rootdir::region_info_bytes(&region))?;
    }
    let unfinished = dir.join(paths::TEMP);
    if volume.exists(&unfinished)? {
        volume.remove_dir_all(&unfinished)?;
    }
    for family in ["proc", "state"] {
        volume.create_dir_all(&dir.join(family))?;
    }
    let info = add_file(volume, &dir, "info", stamp, &location(server, "OPEN", stamp))?;
    let mut alive = CellBuffer::new();
    let mut names = others.clone();
    names.insert(server.to_string());
    for name in &names {
        cell(&mut alive, name.as_bytes(), b"rs", b"state", stamp, b"ONLINE");
    }
    let rs = add_file(volume, &dir, "rs", stamp, &alive)?;
    let described = home.join(descriptor::DIR);
    if list_if_exists(volume, &described)?.is_empty() {
        volume.create_dir_all_durable(&described)?;
        let bytes = descriptor::to_bytes(&table);
        volume.publish(&described.join(descriptor::file_name(1, bytes.len())), &bytes)?;
    } else {
        volume.sync_dir(&described)?;
    }
    volume.create_dir_all_durable(&home.join(INITIALIZED))?;
    volume.create_dir_all(&master_wals_dir())?;
    archive_files(volume, &region, "info", Some(&info))?;
    archive_files(volume, &region, "rs", Some(&rs))?;
    let ids = largest_id.map(|id| {
        let mut ids = CellBuffer::new();
        cell(&mut ids, &id.to_be_bytes(), b"proc", contents::QUALIFIER, stamp, b"");
        add_file(volume, &dir, "proc", stamp, &ids)
    });
    let ids = ids.transpose()?;
    archive_logs(volume, &dir, log_dir)?;
    archive_files(volume, &region, "proc", ids.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;
    use hfile::{Reader, ReaderContext, ScanOptions};

    const REGION: &str = "MasterData/data/master/store/1595e783b53d99cd5eef43b6debb2682";

    fn names(volume: &dyn Volume, dir: &str) -> Vec<String> {
        list_if_exists(volume, &FilePath::new(dir)).expect("memory").into_iter().map(|e| e.name).collect()
    }

    /// `row qualifier=value` of the only file of a family.
    fn content(volume: &dyn Volume, family: &str) -> Vec<String> {
        let dir = format!("{REGION}/{family}");
        let files = names(volume, &dir);
        assert_eq!(files.len(), 1, "{files:?}");
        let path = FilePath::new(dir).join(&files[0]);
        let reader = Reader::open(volume, &path, ReaderContext::default()).expect("a store file");
        let mut scanner = reader.scanner(ScanOptions::default());
        let mut lines = Vec::new();
        let mut more = scanner.seek_to_first().expect("readable");
        while more {
            let cell = scanner.current().expect("a cell");
            let text = |bytes: &[u8]| cell::print::to_string_binary(bytes);
            lines.push(format!("{} {}={}", text(cell.row()), text(cell.qualifier()), text(cell.value())));
            more = scanner.next().expect("readable");
        }
        lines
    }

    #[test]
    fn hbase_finds_its_meta_and_the_servers_and_no_procedures() {
        let volume = MemVolume::new();
        for file in ["proc/aa", "info/bb", "rs/cc", "state/dd"] {
            volume.put_file(&FilePath::new(REGION).join(file), b"HBase's");
        }
        volume.put_file(&FilePath::new("MasterData/WALs/m,1,1/m%2C1%2C1.5"), b"HBase's");
        let first = ServerName::new("h", 1, 100);
        let others = BTreeSet::from(["h,1,50".to_owned()]);
        // Twice in the same millisecond, as after a crash.
        for _ in 0..2 {
            write(&volume, &first, &others, Some(0x2a), None, TimestampMs(7)).expect("written");
        }
        assert_eq!(content(&volume, "rs"), ["h,1,100 state=ONLINE", "h,1,50 state=ONLINE"]);
        let info = content(&volume, "info");
        assert!(info.iter().all(|line| line.starts_with("hbase:meta,,1 ")), "{info:?}");
        for line in ["server=h:1", "sn=h,1,100", "state=OPEN"] {
            assert!(info.contains(&format!("hbase:meta,,1 {line}")), "{line} is not in {info:?}");
        }
        assert_eq!(
            content(&volume, "proc"),
            ["\\x00\\x00\\x00\\x00\\x00\\x00\\x00* d="],
            "no procedure, and no id twice"
        );
        assert_eq!(names(&volume, &format!("{REGION}/state")), ["dd"]);
        assert_eq!(names(&volume, "MasterData/WALs"), [""; 0]);
        assert_eq!(names(&volume, "oldWALs"), ["m%2C1%2C1.5$masterlocalwal$"]);
        let archive = "archive/data/master/store/1595e783b53d99cd5eef43b6debb2682";
        assert!(names(&volume, &format!("{archive}/proc")).contains(&"aa$-masterlocalhfile-$".to_owned()));
        assert_eq!(names(&volume, "MasterData/data/master/store").len(), 3);
        // The next life takes the place of this one.
        write(&volume, &ServerName::new("h", 1, 200), &BTreeSet::new(), None, None, TimestampMs(8)).expect("written");
        assert_eq!(content(&volume, "rs"), ["h,1,200 state=ONLINE"]);
        assert_eq!(names(&volume, &format!("{REGION}/proc")), [""; 0]);
    }
}
