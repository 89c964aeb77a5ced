//! Where a region's files are, and the small ones among them.
//!
//! ```text
//! data/<ns>/<table>/<region>/.regioninfo                       PBUF + length + RegionInfo
//! data/<ns>/<table>/<region>/<family>/<store file>
//! data/<ns>/<table>/<region>/.tmp/<opening>/<family>/<file being written>
//! data/<ns>/<table>/<region>/recovered.edits/<19 digits>       edits split from a dead server's log
//! data/<ns>/<table>/<region>/recovered.edits/<n>.seqid         empty: ids up to n are used
//! data/<ns>/<table>/<region>/recovered.edits/<family>.deleted  a note: see model::recovered_edits
//! archive/data/<ns>/<table>/<region>/<family>/<store file>
//! ```
//!
//! Follows: `HRegionFileSystem`, `HFileArchiver`, `WALSplitUtil`, `StoreFileInfo`, `HFileLink`.

use base::SeqId;
use bytes::Bytes;
use convert::{from_proto, to_proto};
use fs::{FilePath, Volume};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::{Message, magic, pb};

/// Name of the file that says which region a directory is.
pub const REGION_INFO_FILE: &str = ".regioninfo";
/// Directory of files being written: one directory below it for each opening of the region.
pub const TEMP_DIR: &str = ".tmp";
/// Directory of edits split from logs.
pub const RECOVERED_EDITS_DIR: &str = model::recovered_edits::DIR;

/// The directory of a table.
pub fn table_dir(table: &TableName) -> FilePath {
    FilePath::new(format!("data/{}/{}", table.namespace(), table.qualifier()))
}

/// The directory of a region.
pub fn region_dir(info: &RegionInfo) -> FilePath {
    table_dir(&info.table).join(&**info.encoded_name())
}

/// Where one opening of a region writes its files before they are moved into place. No other opening has the same: `server` is
/// `host,port,startcode`, and the ids of a server's openings grow.
pub fn temp_dir(info: &RegionInfo, server: &str, open_seq_id: SeqId) -> FilePath {
    let start_code = server.rsplit(',').next().unwrap_or(server);
    region_dir(info).join(TEMP_DIR).join(format!("{start_code}-{open_seq_id}"))
}

/// The name of a family's directory. Families are checked to be legal names when the table is made.
pub fn family_name(family: &[u8]) -> String {
    String::from_utf8_lossy(family).into_owned()
}

/// The directory of a family in a region.
pub fn family_dir(info: &RegionInfo, family: &[u8]) -> FilePath {
    region_dir(info).join(family_name(family))
}

/// Where the files of `dir` (below `data`) go when they are no longer needed.
pub fn archive_dir(dir: &FilePath) -> FilePath {
    FilePath::new("archive").join(dir.as_str())
}

/// The archive's directory of a region.
pub fn archive_region_dir(info: &RegionInfo) -> FilePath {
    archive_dir(&region_dir(info))
}

/// The bytes of `.regioninfo`. Every field is written out, as HBase 2.6 does.
pub fn region_info_bytes(info: &RegionInfo) -> Bytes {
    magic::encode_delimited(&to_proto::region_info(info))
}

/// Writes `.regioninfo` into the region's directory, durably.
pub fn write_region_info(volume: &dyn Volume, info: &RegionInfo) -> fs::Result<()> {
    volume.publish(&region_dir(info).join(REGION_INFO_FILE), &region_info_bytes(info))
}

/// The region whose directory this is; `Ok(None)` when there is no `.regioninfo` or it cannot be understood (the
/// caller names the path in its message).
pub fn read_region_info(volume: &dyn Volume, region_dir: &FilePath) -> fs::Result<Option<RegionInfo>> {
    let path = region_dir.join(REGION_INFO_FILE);
    let bytes = match volume.read(&path) {
        Ok(bytes) => Bytes::from(bytes),
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let message = magic::strip(&bytes).and_then(|rest| pb::RegionInfo::decode_length_delimited(rest).ok());
    Ok(message.as_ref().and_then(|message| from_proto::region_info(message).ok()))
}

/// Writes a region's directory: itself, one per family, `.regioninfo`. Durable; may be repeated.
pub fn create_region_dir(volume: &dyn Volume, info: &RegionInfo, table: &TableDescriptor) -> fs::Result<()> {
    let dir = region_dir(info);
    volume.create_dir_all_durable(&dir)?;
    for family in table.families.keys() {
        volume.create_dir_all(&dir.join(family_name(family)))?;
    }
    // Publishing syncs the region's directory, and with it the families' entries.
    write_region_info(volume, info)
}

/// Moves the store files `names` of `family_dir` to the archive. One that is gone already was moved before.
pub fn archive_files(volume: &dyn Volume, family_dir: &FilePath, names: &[&str]) -> fs::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let target = archive_dir(family_dir);
    volume.create_dir_all_durable(&target)?;
    for name in names {
        match volume.rename(&family_dir.join(name), &target.join(name)) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    // Durable at once: the file that replaced these may itself be archived next, and with it the knowledge that a
    // file that came back is a dead one.
    volume.sync_dir(&target)?;
    volume.sync_dir(family_dir)
}

/// Moves every store file of a region to the archive and removes its directory. May be repeated. `table` says which
/// families there are; directories of families that the table lost are archived too.
pub fn archive_region(volume: &dyn Volume, info: &RegionInfo, _table: &TableDescriptor) -> fs::Result<()> {
    let dir = region_dir(info);
    if volume.stat(&dir)?.is_none() {
        return Ok(());
    }
    for entry in volume.list(&dir)? {
        if !entry.is_dir || entry.name.starts_with('.') || entry.name == RECOVERED_EDITS_DIR {
            continue;
        }
        let family = dir.join(&entry.name);
        let files = volume.list(&family)?;
        let names: Vec<&str> = files
            .iter()
            .filter(|f| !f.is_dir && !matches!(FileName::parse(&f.name), Some(FileName { parent: Some(_), .. })))
            .map(|f| f.name.as_str())
            .filter(|name| FileName::parse(name).is_some())
            .collect();
        archive_files(volume, &family, &names)?;
    }
    volume.remove_dir_all(&dir)?;
    volume.sync_dir(&table_dir(&info.table))
}

/// What the name of a file in a family's directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Set on links: the table and the encoded region that the file belongs to.
    pub link: Option<(TableName, String)>,
    /// Name of the file with the cells.
    pub file: String,
    /// Set on references: the encoded name of the region that was split or merged.
    pub parent: Option<String>,
}

fn is_plain_file_name(name: &str) -> bool {
    let (hex, suffix) = name.split_at_checked(32).unwrap_or((name, ""));
    let suffix_ok = suffix.is_empty()
        || suffix == "_del"
        || suffix.strip_prefix("_SeqId_").and_then(|s| s.strip_suffix('_')).is_some_and(|n| n.parse::<u64>().is_ok());
    !hex.is_empty() && suffix_ok && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

impl FileName {
    /// `None` when no store file is called so. Follows: `StoreFileInfo#isValid`.
    pub fn parse(name: &str) -> Option<FileName> {
        let (link, rest) = match name.split_once('=') {
            None => (None, name),
            Some((first, rest)) => {
                let (namespace, table, rest) = match rest.split_once('=') {
                    Some((table, rest)) => (first, table, rest),
                    None => (model::name::DEFAULT_NAMESPACE, first, rest),
                };
                let (region, file) = rest.split_once('-')?;
                // A name of a directory; paths are made of it.
                if region.is_empty() || !region.bytes().all(|b| b.is_ascii_alphanumeric()) {
                    return None;
                }
                (Some((TableName::of(namespace, table).ok()?, region.to_owned())), file)
            }
        };
        let (file, parent) = match rest.split_once('.') {
            Some((file, parent)) if !parent.is_empty() && parent.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                (file, Some(parent.to_owned()))
            }
            Some(_) => return None,
            None => (rest, None),
        };
        is_plain_file_name(file).then(|| FileName { link, file: file.to_owned(), parent })
    }

    /// The sequence id in a bulk-loaded file's name.
    pub fn bulk_load_seq_id(&self) -> Option<SeqId> {
        self.file.get(32..)?.strip_prefix("_SeqId_")?.strip_suffix('_')?.parse().ok().map(SeqId)
    }

    /// The name without a reference's parent: what the file is called where it really is.
    pub fn target_name(&self) -> String {
        match &self.link {
            None => self.file.clone(),
            Some((table, region)) => link_name(table, region, &self.file),
        }
    }

    /// Where the cells may be, best guess first, for a file of `family` in the region `info`.
    pub fn candidates(&self, info: &RegionInfo, family: &[u8]) -> Vec<FilePath> {
        let family = family_name(family);
        let below = |table: &TableName, region: &str, file: &str| {
            let home = table_dir(table).join(region).join(&family).join(file);
            [home.clone(), FilePath::new(".tmp").join(home.as_str()), archive_dir(&home)]
        };
        match (&self.link, &self.parent) {
            (None, None) => vec![region_dir(info).join(&family).join(&self.file)],
            (Some((table, region)), _) => {
                let mut all = below(table, region, &self.file).to_vec();
                let home = table_dir(table).join(region).join(&family).join(&self.file);
                all.insert(2, FilePath::new("mobdir").join(home.as_str()));
                all
            }
            (None, Some(parent)) => below(&info.table, parent, &self.file).to_vec(),
        }
    }
}

/// The name of a link to `file` of another table's region.
pub fn link_name(table: &TableName, region: &str, file: &str) -> String {
    if table.namespace() == model::name::DEFAULT_NAMESPACE {
        format!("{}={region}-{file}", table.qualifier())
    } else {
        format!("{}={}={region}-{file}", table.namespace(), table.qualifier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_file_is() {
        let hex = "0123456789abcdef0123456789abcdef";
        let plain = FileName::parse(hex).expect("a store file");
        assert_eq!((&plain.link, &plain.parent, plain.bulk_load_seq_id()), (&None, &None, None));
        let bulk = FileName::parse(&format!("{hex}_SeqId_12_")).expect("a bulk-loaded file");
        assert_eq!(bulk.bulk_load_seq_id(), Some(SeqId(12)));
        let reference = FileName::parse(&format!("{hex}.fedcba")).expect("a reference");
        assert_eq!(reference.parent.as_deref(), Some("fedcba"));
        let link = FileName::parse(&format!("ns=t-1=abc-{hex}.fed")).expect("a reference to a link");
        assert_eq!(link.link, Some((TableName::of("ns", "t-1").expect("legal"), "abc".to_owned())));
        assert_eq!((link.parent.as_deref(), link.target_name()), (Some("fed"), format!("ns=t-1=abc-{hex}")));
        for bad in ["", ".tmp", ".tmp-x", "xyz", "0123.", &format!("{hex}.a.b"), &format!("{hex}_SeqId_x_")] {
            assert_eq!(FileName::parse(bad), None, "{bad}");
        }
    }

    /// A path made of such a name would be none, and making it one a panic.
    #[test]
    fn a_link_leads_into_a_region_and_nowhere_else() {
        let hex = "0123456789abcdef0123456789abcdef";
        for bad in [format!("t=..-{hex}"), format!("t=-{hex}"), format!("t=.-{hex}"), format!("ns=t=a/../b-{hex}")] {
            assert_eq!(FileName::parse(&bad), None, "{bad}");
        }
        let good = FileName::parse(&format!("t=1588230740-{hex}")).expect("a link");
        assert_eq!(good.candidates(&RegionInfo::meta(), b"f").len(), 4);
    }

    #[test]
    fn region_info_reads_back() {
        let volume = fs::MemVolume::new();
        let table = TableName::of("ns", "t").expect("legal");
        let mut info = RegionInfo::new(table, Bytes::from("a"), Bytes::from("b"), 7);
        info.split = true;
        volume.create_dir_all(&region_dir(&info)).expect("memory");
        assert_eq!(read_region_info(&volume, &region_dir(&info)).expect("memory"), None);
        write_region_info(&volume, &info).expect("memory");
        assert_eq!(read_region_info(&volume, &region_dir(&info)).expect("memory"), Some(info));
    }
}
