//! Table descriptors on disk: `.tabledesc/.tableinfo.<10-digit number>.<length>`, the highest number wins.
//! Follows: `FSTableDescriptors`.

use crate::{convert, layout};
use bytes::Bytes;
use fs::{FilePath, Volume};
use model::{TableDescriptor, TableName};
use proto::{magic, pb};

const DIR: &str = ".tabledesc";
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
    let entries = layout::list_if_exists(volume, &layout::table_dir(table).join(DIR))?;
    let mut files: Vec<(u32, String)> = entries
        .into_iter()
        .filter(|entry| !entry.is_dir)
        .filter_map(|entry| number_of(&entry.name).map(|number| (number, entry.name)))
        .collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    Ok(files)
}

/// The bytes of a descriptor's file.
pub fn to_bytes(table: &TableDescriptor) -> Bytes {
    magic::encode(&convert::table_message(table))
}

/// A table's descriptor; `None` when it has none.
///
/// # Errors
/// A file that cannot be read, or holds something else.
pub fn read(volume: &dyn Volume, table: &TableName) -> Result<Option<TableDescriptor>, DescriptorError> {
    let Some((_, name)) = files(volume, table)?.into_iter().next() else { return Ok(None) };
    let path = layout::table_dir(table).join(DIR).join(name);
    let bytes = Bytes::from(volume.read(&path)?);
    let damaged = |what: String| DescriptorError::Damaged { path: path.clone(), what };
    let message = match magic::decode::<pb::TableSchema>(&bytes) {
        None => return Err(damaged("it does not begin with PBUF".into())),
        Some(Err(error)) => return Err(damaged(error.to_string())),
        Some(Ok(message)) => message,
    };
    let descriptor = convert::table(&message).map_err(|error| damaged(error.to_string()))?;
    if descriptor.name != *table {
        return Err(damaged(format!("it is of table {}", descriptor.name)));
    }
    Ok(Some(descriptor))
}

/// Makes `table` the table's descriptor, durably; older ones go. Nothing happens when it is that already.
///
/// # Errors
/// What the volume says, or a damaged file in its place.
pub fn write(volume: &dyn Volume, table: &TableDescriptor) -> Result<(), DescriptorError> {
    let dir = layout::table_dir(&table.name).join(DIR);
    layout::create_dir_durably(volume, &dir)?;
    let old = files(volume, &table.name)?;
    if read(volume, &table.name)?.as_ref() != Some(table) {
        let number = old.first().map_or(1, |(number, _)| number + 1);
        let bytes = to_bytes(table);
        volume.publish(&dir.join(format!("{PREFIX}.{number:010}.{}", bytes.len())), &bytes)?;
        for (_, name) in old {
            volume.remove_file(&dir.join(name))?;
        }
    }
    Ok(())
}

/// Names of all tables that have a directory, by namespace.
///
/// # Errors
/// What the volume says.
pub fn list_tables(volume: &dyn Volume) -> fs::Result<Vec<TableName>> {
    let data = FilePath::new("data");
    let mut tables = Vec::new();
    for namespace in layout::list_if_exists(volume, &data)? {
        if !namespace.is_dir {
            continue;
        }
        for table in layout::list_if_exists(volume, &data.join(&namespace.name))? {
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
