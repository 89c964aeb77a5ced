//! The root directory as a whole: made when it is empty, recognised when it is HBase's, refused when it is neither.
//!
//! Always true: [`inspect`] touches nothing; [`prepare`] writes `hbase.version` last, so that a directory has either
//! everything or is taken for one that was never finished. Follows: `MasterFileSystem`, `FSUtils#checkVersion`.

use crate::descriptor;
use crate::paths::{
    ARCHIVE, CORRUPT, DATA, HBCK, MASTER_DATA, OLD_WALS, TEMP, WALS, archive_dir, data_dir, list_if_exists,
    namespace_dir, table_dir,
};
use crate::region_dir::create_region_dir;
use crate::tracker::Site;
use base::Rng;
use bytes::Bytes;
use fs::{FilePath, Volume};
use model::name::{DEFAULT_NAMESPACE, SYSTEM_NAMESPACE};
use model::{RegionInfo, TableDescriptor};
use proto::{magic, pb};

/// The version of the layout that HBase 0.98 to 2.6 write.
pub const VERSION: &str = "8";
const VERSION_FILE: &str = "hbase.version";
const ID_FILE: &str = "hbase.id";

/// Why a directory cannot be served. One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// A newer or older layout.
    #[error(
        "the root directory has layout version {found}, and this server knows version {VERSION} only: use the version of HBase that wrote it"
    )]
    OtherVersion {
        /// What `hbase.version` says.
        found: String,
    },
    /// A small file that makes no sense.
    #[error("{path} is damaged ({what}): restore it from a copy; nothing was changed")]
    Damaged {
        /// The file.
        path: FilePath,
        /// What is wrong.
        what: String,
    },
    /// Not empty, and not HBase's.
    #[error(
        "the root directory is not empty and not HBase's (it holds {example} but no hbase.version): give an empty directory, or one that HBase wrote"
    )]
    NotOurs {
        /// One entry found.
        example: String,
    },
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// The descriptor of hbase:meta failed.
    #[error(transparent)]
    Descriptor(#[from] descriptor::DescriptorError),
}

/// What is in a root directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or what an unfinished first start left.
    Empty,
    /// HBase's layout.
    HBase {
        /// The cluster's id.
        cluster_id: String,
    },
}

/// Entries that a first start makes before it is finished, or that are no part of the layout.
fn is_ours(name: &str) -> bool {
    name.starts_with('.')
        || name == "lost+found"
        || matches!(name, ID_FILE | VERSION_FILE | DATA | WALS | OLD_WALS | ARCHIVE | MASTER_DATA | CORRUPT)
        || name.ends_with(".lock")
}

fn read_small(volume: &dyn Volume, name: &str) -> Result<Option<Bytes>, RootError> {
    let path = FilePath::new(name);
    match volume.stat(&path)? {
        None => Ok(None),
        Some(entry) if entry.is_dir || entry.len > 4096 => {
            Err(RootError::Damaged { path, what: format!("{} bytes, or a directory", entry.len) })
        }
        Some(_) => Ok(Some(Bytes::from(volume.read(&path)?))),
    }
}

fn damaged(name: &str, what: impl std::fmt::Display) -> RootError {
    RootError::Damaged { path: FilePath::new(name), what: what.to_string() }
}

fn parse_version(bytes: &Bytes) -> Result<String, RootError> {
    match magic::decode::<pb::HBaseVersionFileContent>(bytes) {
        Some(Ok(content)) if !content.version.is_empty() => Ok(content.version),
        Some(Ok(_)) => Err(damaged(VERSION_FILE, "it names no version")),
        Some(Err(error)) => Err(damaged(VERSION_FILE, error)),
        None => Err(damaged(VERSION_FILE, "it does not begin with PBUF")),
    }
}

fn parse_id(bytes: &Bytes) -> Result<String, RootError> {
    match magic::decode::<pb::ClusterId>(bytes) {
        Some(Ok(id)) if !id.cluster_id.is_empty() => Ok(id.cluster_id),
        Some(Ok(_)) => Err(damaged(ID_FILE, "it names no id")),
        Some(Err(error)) => Err(damaged(ID_FILE, error)),
        // HBase before 0.96 wrote the bare text.
        None => match std::str::from_utf8(bytes) {
            Ok(text) if text.trim().len() == 36 => Ok(text.trim().to_owned()),
            _ => Err(damaged(ID_FILE, "it does not begin with PBUF")),
        },
    }
}

/// Says what the directory is. Writes nothing.
///
/// # Errors
/// One that cannot be served.
pub fn inspect(volume: &dyn Volume) -> Result<Found, RootError> {
    let id = read_small(volume, ID_FILE)?;
    if let Some(version) = read_small(volume, VERSION_FILE)? {
        let version = parse_version(&version)?;
        if version != VERSION {
            return Err(RootError::OtherVersion { found: version });
        }
        let id = id.ok_or_else(|| damaged(ID_FILE, "it is missing"))?;
        return Ok(Found::HBase { cluster_id: parse_id(&id)? });
    }
    let entries = list_if_exists(volume, &FilePath::root())?;
    if let Some(stranger) = entries.iter().find(|entry| !is_ours(&entry.name)) {
        return Err(RootError::NotOurs { example: stranger.name.clone() });
    }
    // Without a version but with tables: the version was lost, not never written.
    let data = data_dir();
    for namespace in list_if_exists(volume, &data)? {
        let tables = list_if_exists(volume, &data.join(&namespace.name))?;
        if let Some(table) = tables.iter().find(|table| namespace.name != "hbase" || table.name != "meta") {
            let example = data.join(&namespace.name).join(&table.name).to_string();
            return Err(RootError::NotOurs { example });
        }
    }
    Ok(Found::Empty)
}

/// Makes an empty directory HBase's, or leaves HBase's as it is; answers the cluster's id.
///
/// # Errors
/// As [`inspect`], and what the volume says.
pub fn prepare(volume: &dyn Volume, rng: &Rng) -> Result<String, RootError> {
    if let Found::HBase { cluster_id } = inspect(volume)? {
        return Ok(cluster_id);
    }
    let namespaces = [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE].map(namespace_dir);
    let others = [WALS, OLD_WALS].map(FilePath::new).into_iter().chain([archive_dir(&data_dir())]);
    for dir in namespaces.into_iter().chain(others).chain([CORRUPT, TEMP, HBCK].map(FilePath::new)) {
        volume.create_dir_all_durable(&dir)?;
    }
    let cluster_id = match read_small(volume, ID_FILE)? {
        Some(bytes) => parse_id(&bytes)?,
        None => {
            let cluster_id = uuid(rng);
            let message = pb::ClusterId { cluster_id: cluster_id.clone() };
            volume.publish(&FilePath::new(ID_FILE), &magic::encode(&message))?;
            cluster_id
        }
    };
    let meta = with_file_tracker(TableDescriptor::meta());
    descriptor::write(volume, &meta)?;
    create_region_dir(volume, &RegionInfo::meta(), &meta)?;
    volume.sync_dir(&table_dir(&meta.name))?;
    let version = pb::HBaseVersionFileContent { version: VERSION.to_owned() };
    volume.publish(&FilePath::new(VERSION_FILE), &magic::encode(&version))?;
    Ok(cluster_id)
}

/// The table with HBase 2.6's default file tracker, unless it names one: a table from before there were others.
pub fn with_file_tracker(table: TableDescriptor) -> TableDescriptor {
    Site::default().named_in(table)
}

fn uuid(rng: &Rng) -> String {
    let hex = rng.uuid_hex();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
