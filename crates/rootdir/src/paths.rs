//! Names and paths below the root directory. Follows: `HConstants`, `CommonFSUtils`, `HFileArchiveUtil`, `MobUtils`.

use base::SeqId;
use bytes::Bytes;
use fs::{DirEntry, FilePath, Result, Volume, sync_dirs};
use model::name::RECOVERED_EDITS;
use model::{RegionInfo, ServerName, TableName};
use std::collections::{BTreeMap, BTreeSet};

/// Namespaces, tables, regions.
pub const DATA: &str = "data";
/// Store files that nothing reads any more.
pub const ARCHIVE: &str = "archive";
/// Files of large values, in a tree like that of `data`.
pub const MOB: &str = "mobdir";
/// Logs in use, a directory for each server.
pub const WALS: &str = "WALs";
/// Logs whose edits are all in store files.
pub const OLD_WALS: &str = "oldWALs";
/// Logs that were damaged.
pub const CORRUPT: &str = "corrupt";
/// What is being made: of the root directory, and of each region's, where each opening of the region has a directory below it.
pub const TEMP: &str = ".tmp";
/// Finished snapshots.
pub const SNAPSHOTS: &str = ".hbase-snapshot";
/// Files that are to be bulk-loaded.
pub const STAGING: &str = "staging";
/// What HBase's master keeps for itself.
pub const MASTER_DATA: &str = "MasterData";
const MASTER_STORE: &str = "data/master/store";
/// Where HBase's repair tool works.
pub const HBCK: &str = ".hbck";
/// Begins the name of the directory of the links that point at a store file: this, then the file's name.
pub const BACK_REFERENCES_PREFIX: &str = ".links-";

/// The directory of all namespaces.
pub fn data_dir() -> FilePath {
    FilePath::new(DATA)
}

/// The directory of a namespace.
pub fn namespace_dir(namespace: &str) -> FilePath {
    data_dir().join(namespace)
}

/// The directory of a table.
pub fn table_dir(table: &TableName) -> FilePath {
    namespace_dir(table.namespace()).join(table.qualifier())
}

/// The directory of a region. A read replica has none of its own: it shows what is in its primary's.
pub fn region_dir(info: &RegionInfo) -> FilePath {
    let home = table_dir(&info.table);
    if info.is_replica() { home.join(&**info.replica(0).encoded_name()) } else { home.join(&**info.encoded_name()) }
}

/// Where one opening of a region writes its files before they are moved into place. No other opening has the same: a server
/// has its own start code, and the ids of its openings grow.
pub fn temp_dir(info: &RegionInfo, server: &ServerName, open_seq_id: SeqId) -> FilePath {
    region_dir(info).join(TEMP).join(format!("{}-{open_seq_id}", server.start_code))
}

/// The name of a family's directory. Families are checked to be legal names when the table is made.
pub fn family_name(family: &[u8]) -> String {
    String::from_utf8_lossy(family).into_owned()
}

/// The directory of a family in a region.
pub fn family_dir(info: &RegionInfo, family: &[u8]) -> FilePath {
    region_dir(info).join(family_name(family))
}

/// Where the files of `dir` (below `data`, or below `mobdir`) go when they are no longer needed: one archive for both.
pub fn archive_dir(dir: &FilePath) -> FilePath {
    let path = dir.as_str();
    let of_mob = path.strip_prefix(MOB).and_then(|rest| rest.strip_prefix('/'));
    FilePath::new(ARCHIVE).join(of_mob.unwrap_or(path))
}

/// The archive's directory of a namespace.
pub fn archived_namespace_dir(namespace: &str) -> FilePath {
    archive_dir(&namespace_dir(namespace))
}

/// The archive's directory of a table.
pub fn archived_table_dir(table: &TableName) -> FilePath {
    archive_dir(&table_dir(table))
}

/// The tree of large values that goes with a directory below `data`.
pub fn mob_dir(dir: &FilePath) -> FilePath {
    FilePath::new(MOB).join(dir.as_str())
}

/// The encoded name of the region that all MOB files of a table count to. It is in no list of regions. Follows:
/// `MobUtils#getMobRegionInfo`.
pub fn mob_region_name(table: &TableName) -> String {
    let info = RegionInfo::new(table.clone(), Bytes::from_static(b".mob"), Bytes::new(), 0);
    info.encoded_name().to_string()
}

/// The directory of a family's MOB files.
pub fn mob_family_dir(table: &TableName, family: &[u8]) -> FilePath {
    mob_dir(&table_dir(table)).join(mob_region_name(table)).join(family_name(family))
}

/// The directory with the logs of all servers.
pub fn wals_dir() -> FilePath {
    FilePath::new(WALS)
}

/// The directory with the logs of a server, by its name.
pub fn server_wals_dir(server: &str) -> FilePath {
    wals_dir().join(server)
}

/// The directory of logs that are not needed any more.
pub fn old_wals_dir() -> FilePath {
    FilePath::new(OLD_WALS)
}

/// The directory of damaged logs.
pub fn corrupt_dir() -> FilePath {
    FilePath::new(CORRUPT)
}

/// The directory of the table `master:store`, which HBase's master keeps for itself.
pub fn master_store_dir() -> FilePath {
    FilePath::new(MASTER_DATA).join(MASTER_STORE)
}

/// The archive's directory of `master:store`.
pub fn archived_master_store_dir() -> FilePath {
    FilePath::new(ARCHIVE).join(MASTER_STORE)
}

/// The logs of `master:store`.
pub fn master_wals_dir() -> FilePath {
    FilePath::new(MASTER_DATA).join(WALS)
}

/// Ends the name of a directory below [`master_wals_dir`] whose master leads no more: it can make no other log there. Follows:
/// `MasterRegion.DEAD_WAL_DIR_SUFFIX`.
pub const DEAD_MASTER_WALS: &str = "-dead";

/// What Basalt's master keeps: procedures, switches. HBase passes it over.
pub fn own_master_dir() -> FilePath {
    FilePath::new(MASTER_DATA).join("basalt")
}

/// Where region servers keep which of their keys were read and written: a file each.
pub fn key_statistics_dir() -> FilePath {
    own_master_dir().join("keys")
}

/// The directory of a region by names that may be anything; `None` when they are no names of a table and a region, and would lead
/// elsewhere.
pub fn region_dir_of_names(table: &str, region: &str) -> Option<FilePath> {
    let (namespace, name) = table.split_once(':').unwrap_or((model::name::DEFAULT_NAMESPACE, table));
    // Names that HBase allows (letters of any language).
    let legal = |name: &str| {
        let ok = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty() && name != "." && name != ".." && name.chars().all(ok)
    };
    let all_legal = [namespace, name, region].into_iter().all(legal);
    all_legal.then(|| namespace_dir(namespace).join(name).join(region))
}

/// The entries of a directory; none when it is not there.
///
/// # Errors
/// What the volume says.
pub fn list_if_exists(volume: &dyn Volume, dir: &FilePath) -> Result<Vec<DirEntry>> {
    match volume.list(dir) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        result => result,
    }
}

/// Names of the directories of regions in a table's directory; none when it is not there.
///
/// # Errors
/// What the volume says.
pub fn region_names(volume: &dyn Volume, table_dir: &FilePath) -> Result<Vec<String>> {
    // What begins with a period is a descriptor's directory, or being made.
    let is_region = |entry: &DirEntry| entry.is_dir && !entry.name.starts_with('.');
    let entries = list_if_exists(volume, table_dir)?;
    Ok(entries.into_iter().filter(is_region).map(|entry| entry.name).collect())
}

/// Names of the directories of families in a region's directory; none when it is not there.
///
/// # Errors
/// What the volume says.
pub fn family_names(volume: &dyn Volume, region_dir: &FilePath) -> Result<Vec<String>> {
    let is_family = |entry: &DirEntry| entry.is_dir && !entry.name.starts_with('.') && entry.name != RECOVERED_EDITS;
    let entries = list_if_exists(volume, region_dir)?;
    Ok(entries.into_iter().filter(is_family).map(|entry| entry.name).collect())
}

/// As [`Volume::create_dir_all_durable`], for many directories, which mostly share those above them: level by level from the top, and each
/// directory that gets a name is synced once.
///
/// # Errors
/// What the volume says.
pub(crate) fn create_dirs_durable(volume: &dyn Volume, dirs: impl IntoIterator<Item = FilePath>) -> Result<()> {
    let (mut there, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for mut at in dirs {
        while !at.as_str().is_empty() && !there.contains(&at) && !missing.contains(&at) {
            if volume.exists(&at)? {
                there.insert(at);
                break;
            }
            let parent = at.parent();
            missing.insert(at);
            at = parent;
        }
    }
    // One that is there can be one that was never synced: the lowest, as levels are made one after the other.
    sync_dirs(volume, there.iter().map(FilePath::parent))?;
    let mut levels: BTreeMap<usize, Vec<FilePath>> = BTreeMap::new();
    for dir in missing {
        levels.entry(dir.as_str().matches('/').count()).or_default().push(dir);
    }
    for level in levels.into_values() {
        level.iter().try_for_each(|dir| volume.create_dir_all(dir))?;
        sync_dirs(volume, level.iter().map(FilePath::parent))?;
    }
    Ok(())
}

/// Removes a directory and makes that durable; also when an earlier attempt removed it and could not.
///
/// # Errors
/// What the volume says.
pub fn remove_dir_durably(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    volume.remove_dir_all(dir)?;
    let parent = dir.parent();
    if volume.exists(&parent)? { volume.sync_dir(&parent) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_and_the_rest_share_one_archive() {
        let table = TableName::of("ns", "mobt").expect("legal");
        let family = mob_family_dir(&table, b"f");
        assert_eq!(family.as_str(), format!("mobdir/data/ns/mobt/{}/f", mob_region_name(&table)));
        assert_eq!(archive_dir(&family).as_str(), format!("archive/data/ns/mobt/{}/f", mob_region_name(&table)));
        assert_eq!(archived_table_dir(&table).as_str(), "archive/data/ns/mobt");
        let default = TableName::of("default", "mobt").expect("legal");
        assert_eq!(mob_region_name(&default), "a99681ebcb9527f52bbf0c47f4bed766", "HBase's");
    }

    #[test]
    fn names_from_a_log_lead_to_a_region_or_nowhere() {
        let dir = |table, region| region_dir_of_names(table, region).map(|dir| dir.to_string());
        assert_eq!(dir("t", "r").as_deref(), Some("data/default/t/r"));
        assert_eq!(dir("ns:größe", "r").as_deref(), Some("data/ns/größe/r"));
        for (table, region) in
            [("..", "r"), ("t", ".."), ("t", ""), ("", "r"), ("a/b", "r"), ("a:b:c", "r"), ("t", "a/b")]
        {
            assert_eq!(dir(table, region), None, "{table} {region}");
        }
    }
}
