//! Table descriptors on disk: `.tabledesc/.tableinfo.<10-digit number>.<length>`, the highest number wins.
//! Follows: `FSTableDescriptors`.

use crate::paths::{data_dir, list_if_exists, table_dir};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use fs::{FilePath, Volume};
use model::{TableDescriptor, TableName};
use proto::{magic, pb};

/// Name of the directory of a table's descriptor.
pub const DIR: &str = ".tabledesc";
const PREFIX: &str = ".tableinfo";

/// A descriptor that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DescriptorError {
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// The file holds no descriptor.
    #[error("{path} holds no table descriptor: {what}; restore it from a copy, or move the table's directory away")]
    Damaged {
        /// The file.
        path: FilePath,
        /// What is wrong with it.
        what: String,
    },
}

/// Number of a file named `.tableinfo.NNNNNNNNNN.LEN`; 0 for the old form without numbers.
fn number_of(name: &str) -> Option<u32> {
    match name.strip_prefix(PREFIX)? {
        "" => Some(0),
        rest => rest.strip_prefix('.')?.split('.').next()?.parse().ok(),
    }
}

/// The files that hold a descriptor, newest first.
fn files(volume: &dyn Volume, table: &TableName) -> fs::Result<Vec<(u32, String)>> {
    let entries = list_if_exists(volume, &table_dir(table).join(DIR))?;
    let mut files: Vec<(u32, String)> = entries
        .into_iter()
        .filter(|entry| !entry.is_dir)
        .filter_map(|entry| number_of(&entry.name).map(|number| (number, entry.name)))
        .collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    Ok(files)
}

/// The name of a descriptor's file.
pub fn file_name(number: u32, len_bytes: usize) -> String {
    format!("{PREFIX}.{number:010}.{len_bytes}")
}

/// The bytes of a descriptor's file.
pub fn to_bytes(table: &TableDescriptor) -> Bytes {
    magic::encode(&to_proto::table(table))
}

/// The length that a file named `.tableinfo.NNNNNNNNNN.LEN` was to have.
fn len_of(name: &str) -> Option<usize> {
    name.strip_prefix(PREFIX)?.strip_prefix('.')?.split('.').nth(1)?.parse().ok()
}

/// What a file holds; `None` when it is half written: HBase's master, which writes it in its place, was killed meanwhile. Follows:
/// `FSTableDescriptors#getTableDescriptorFromFs`.
fn whole(volume: &dyn Volume, path: &FilePath) -> fs::Result<Option<Bytes>> {
    match volume.read(path) {
        Ok(bytes) if len_of(path.name()).is_some_and(|len| bytes.len() < len) => {}
        Ok(bytes) => return Ok(Some(bytes.into())),
        // Its writer's lease is not over yet.
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    tracing::warn!(%path, "a descriptor is half written: the one before it counts, if there is one");
    Ok(None)
}

/// A table's descriptor; `None` when it has none.
///
/// # Errors
/// A file that cannot be read, or holds something else.
pub fn read(volume: &dyn Volume, table: &TableName) -> Result<Option<TableDescriptor>, DescriptorError> {
    let mut half = None;
    for (_, name) in files(volume, table)? {
        let path = table_dir(table).join(DIR).join(name);
        if let Some(bytes) = whole(volume, &path)? {
            return decode(table, &path, &bytes).map(Some);
        }
        half.get_or_insert(path);
    }
    let damaged =
        |path| DescriptorError::Damaged { path, what: "it is half written, and there is none before it".into() };
    half.map_or(Ok(None), |path| Err(damaged(path)))
}

fn decode(table: &TableName, path: &FilePath, bytes: &Bytes) -> Result<TableDescriptor, DescriptorError> {
    let damaged = |what: String| DescriptorError::Damaged { path: path.clone(), what };
    let message = match magic::decode::<pb::TableSchema>(bytes) {
        None => return Err(damaged("it does not begin with PBUF".into())),
        Some(Err(error)) => return Err(damaged(error.to_string())),
        Some(Ok(message)) => message,
    };
    let descriptor = from_proto::table(&message).map_err(|error| damaged(error.to_string()))?;
    if descriptor.name != *table {
        return Err(damaged(format!("it is of table {}", descriptor.name)));
    }
    Ok(descriptor)
}

/// Makes `table` the table's descriptor, durably; older ones go. No file is written when it is that already.
///
/// # Errors
/// What the volume says.
pub fn write(volume: &dyn Volume, table: &TableDescriptor) -> Result<(), DescriptorError> {
    let dir = table_dir(&table.name).join(DIR);
    volume.create_dir_all_durable(&dir)?;
    let mut old = files(volume, &table.name)?;
    let is_there = match old.first().map(|(_, name)| dir.join(name)) {
        // The table is known, and what it is comes now: damage is repaired.
        Some(path) => whole(volume, &path)?
            .is_some_and(|bytes| decode(&table.name, &path, &bytes).is_ok_and(|found| found == *table)),
        None => false,
    };
    if is_there {
        // It may be that of an attempt that could not sync its name.
        volume.sync_dir(&dir)?;
        old.remove(0);
    } else {
        let number = old.first().map_or(1, |(number, _)| number + 1);
        let bytes = to_bytes(table);
        volume.publish(&dir.join(file_name(number, bytes.len())), &bytes)?;
    }
    for (_, name) in old {
        volume.remove_file(&dir.join(name))?;
    }
    Ok(())
}

/// Names of all tables that have a directory, by namespace.
///
/// # Errors
/// What the volume says.
pub fn list_tables(volume: &dyn Volume) -> fs::Result<Vec<TableName>> {
    let data = data_dir();
    let mut tables = Vec::new();
    for namespace in list_if_exists(volume, &data)? {
        if !namespace.is_dir {
            continue;
        }
        for table in list_if_exists(volume, &data.join(&namespace.name))? {
            if table.is_dir
                && !table.name.starts_with('.')
                && let Ok(name) = TableName::of(&namespace.name, &table.name)
            {
                tables.push(name);
            }
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{archive_table, create_region_dir, region_dir};
    use base::Rng;
    use fs::{CrashPolicy, FaultKind, MemVolume};
    use model::{FamilyDescriptor, RegionInfo};

    /// `act` fails at each of its calls in turn and is then repeated; whatever a power failure after that may take, `check` finds the rest
    /// of a volume that `before` made.
    fn repeated_after_any_error(
        before: impl Fn(&MemVolume),
        act: impl Fn(&MemVolume) -> bool,
        check: impl Fn(&MemVolume, u64),
    ) {
        for nth in 1.. {
            let volume = MemVolume::new();
            before(&volume);
            volume.fail_op(nth, FaultKind::Io);
            if act(&volume) {
                assert!(nth > 4, "only {} calls failed", nth - 1);
                return;
            }
            assert!(act(&volume), "repeated after call {nth} failed");
            check(&volume.crash(&Rng::seeded(nth), CrashPolicy::LoseUnsynced), nth);
            for seed in 0..20 {
                check(&volume.crash(&Rng::seeded(seed), CrashPolicy::Torn), nth);
            }
        }
    }

    fn table(families: &[&str]) -> TableDescriptor {
        let families = families.iter().map(|name| FamilyDescriptor::new(name.as_bytes().to_vec()));
        TableDescriptor::new(TableName::of("default", "t").expect("a name"), families)
    }

    #[test]
    fn a_descriptor_written_again_after_an_error_is_durable() {
        let (old, new) = (table(&["f"]), table(&["f", "g"]));
        let is_new = |volume: &MemVolume, nth: u64| {
            let found = read(volume, &new.name).expect("readable");
            assert_eq!(found.as_ref(), Some(&new), "call {nth} failed");
        };
        repeated_after_any_error(|_| {}, |volume| write(volume, &new).is_ok(), is_new);
        repeated_after_any_error(
            |volume| write(volume, &old).expect("written"),
            |volume| write(volume, &new).is_ok(),
            |volume, nth| {
                is_new(volume, nth);
                assert_eq!(files(volume, &new.name).expect("listed")[0].0, 2);
            },
        );
    }

    #[test]
    fn a_damaged_descriptor_gives_way_to_a_new_one() {
        let volume = MemVolume::new();
        let (old, new) = (table(&["f"]), table(&["f", "g"]));
        write(&volume, &old).expect("written");
        let path = volume.all_files().remove(0);
        volume.put_file(&path, b"junk");
        assert!(matches!(read(&volume, &old.name), Err(DescriptorError::Damaged { .. })));
        write(&volume, &new).expect("written");
        assert_eq!(read(&volume, &new.name).expect("readable"), Some(new));
        assert!(!volume.exists(&path).expect("answered"));
    }

    /// As when HBase's master is killed in the middle of an alter, or of a create.
    #[test]
    fn a_half_written_descriptor_leaves_the_one_before_it() {
        let volume = MemVolume::new();
        let (old, new) = (table(&["f"]), table(&["f", "g"]));
        let bytes = to_bytes(&new);
        let half = |number| table_dir(&new.name).join(DIR).join(file_name(number, bytes.len()));
        for number in [1, 2] {
            volume.put_file(&half(number), &bytes[..bytes.len() - 1]);
            match read(&volume, &new.name) {
                Ok(found) => assert_eq!((number, found.as_ref()), (2, Some(&old))),
                Err(error) => assert_eq!(number, 1, "{error}"),
            }
            write(&volume, &old).expect("written");
            assert_eq!(read(&volume, &new.name).expect("read").as_ref(), Some(&old));
            assert_eq!(files(&volume, &new.name).expect("listed").len(), 1, "what is half written goes");
        }
    }

    #[test]
    fn a_table_archived_again_after_an_error_is_gone_for_good_and_its_files_are_not() {
        let table = table(&["f"]);
        let info = RegionInfo::new(table.name.clone(), Bytes::new(), Bytes::new(), 1);
        let home = table_dir(&table.name);
        let file =
            |below: &str| FilePath::new(below).join("data/default/t").join(&**info.encoded_name()).join("f/file");
        repeated_after_any_error(
            |volume| {
                write(volume, &table).expect("written");
                create_region_dir(volume, &info, &table).expect("made");
                volume.publish(&region_dir(&info).join("f/file"), b"cells").expect("written");
                volume.sync_dir(&region_dir(&info)).expect("synced");
                volume.sync_dir(&home).expect("synced");
            },
            |volume| archive_table(volume, &table.name).is_ok(),
            |volume, nth| {
                assert!(!volume.exists(&home).expect("answered"), "call {nth} failed");
                assert_eq!(volume.read(&file("archive")).expect("archived"), b"cells", "call {nth} failed");
            },
        );
    }
}
