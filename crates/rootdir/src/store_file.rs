//! Names of store files: plain ones, bulk-loaded ones, references to a parent's file, links to another table's file.
//! Follows: `StoreFileInfo`, `HFileLink`.

use crate::paths::{TEMP, archive_dir, family_dir, family_name, mob_dir, region_dir, table_dir};
use base::SeqId;
use fs::{BlockHosts, FilePart, FilePath, Result, Volume};
use model::{RegionInfo, TableName};
use proto::{Message, magic, pb};

/// The region whose file a reference stands for, half of it or all, by the reference's name; `None` for any other name.
pub fn reference_parent(name: &str) -> Option<&str> {
    // The name of a link's table may have periods, too.
    let after_table = name.rsplit_once('=').map_or(name, |(_, rest)| rest);
    after_table.rsplit_once('.').filter(|(file, _)| !file.is_empty()).map(|(_, parent)| parent)
}

/// Whether a store file's name says that it refers to half of (or to all of) another region's file.
pub fn is_reference(name: &str) -> bool {
    reference_parent(name).is_some()
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
            [home.clone(), FilePath::new(TEMP).join(home.as_str()), archive_dir(&home)]
        };
        match (&self.link, &self.parent) {
            (None, None) => {
                let home = region_dir(info).join(&family).join(&self.file);
                // Its primary compacts without asking it. Follows: `ServerRegionReplicaUtil#getStoreFileInfo`.
                if info.is_replica() { vec![home.clone(), archive_dir(&home)] } else { vec![home] }
            }
            (Some((table, region)), _) => {
                let mut all = below(table, region, &self.file).to_vec();
                let home = table_dir(table).join(region).join(&family).join(&self.file);
                all.insert(2, mob_dir(&home));
                all
            }
            (None, Some(parent)) => below(&info.table, parent, &self.file).to_vec(),
        }
    }
}

/// Which part of its file a reference with these bytes stands for; `None` when they are none of a reference. Follows: `Reference#read`.
pub fn reference_part(bytes: &[u8]) -> Option<FilePart> {
    let message = pb::Reference::decode(magic::strip_slice(bytes)?).ok()?;
    match message.range() {
        pb::reference::Range::Top => Some(FilePart::SecondHalf),
        pb::reference::Range::Bottom => Some(FilePart::FirstHalf),
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

/// On which machines the blocks of a family's store files are, by their names on the volume: for who does not have them open. Links are followed,
/// of references the halves count, and files that go meanwhile do not. Cost: a listing, a call for each file, and one more for each reference.
/// Follows: `HRegion#computeHDFSBlocksDistribution`.
///
/// # Errors
/// The first that says more than that something is not there.
pub fn block_hosts(volume: &dyn Volume, info: &RegionInfo, family: &[u8]) -> Result<BlockHosts> {
    let (mut all, dir) = (BlockHosts::default(), family_dir(info, family));
    let entries = match volume.list(&dir) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(all),
        Err(error) => return Err(error),
    };
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        let Some(parsed) = FileName::parse(&entry.name) else { continue };
        if let Some(found) = hosts_of(volume, info, family, &dir.join(&entry.name), &parsed)? {
            all.add(&found);
        }
    }
    Ok(all)
}

fn hosts_of(
    volume: &dyn Volume,
    info: &RegionInfo,
    family: &[u8],
    path: &FilePath,
    parsed: &FileName,
) -> Result<Option<BlockHosts>> {
    let mut part = FilePart::Whole;
    if parsed.parent.is_some() {
        match volume.read(path) {
            Ok(bytes) => part = reference_part(&bytes).unwrap_or_default(),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    for place in parsed.candidates(info, family) {
        match volume.block_hosts(&place, part) {
            Err(error) if error.is_not_found() => {}
            answer => return answer,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the region itself, a half of its parent's, and one of another table that was archived meanwhile.
    #[test]
    fn the_blocks_of_a_family_are_found_by_names_through_references_and_links() {
        let volume = fs::MemVolume::new();
        let table = TableName::parse("t").expect("legal");
        let info = RegionInfo::new(table.clone(), Default::default(), Default::default(), 1);
        let (hex, parent) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
        let dir = family_dir(&info, b"f");
        assert_eq!(block_hosts(&volume, &info, b"f").expect("looked").total_bytes(), 0, "there is no such directory");
        volume.put_file(&dir.join(hex), &[0; 10]);
        volume.put_file(&dir.join("not-a-store-file"), &[0; 1000]);
        let home = |table: &TableName| table_dir(table).join(parent).join("f").join(hex);
        let reference = pb::Reference { splitkey: Default::default(), range: pb::reference::Range::Bottom as i32 };
        volume.put_file(&dir.join(format!("{hex}.{parent}")), &magic::encode(&reference));
        volume.put_file(&home(&table), &[0; 7]);
        let other = TableName::parse("o").expect("legal");
        volume.put_file(&dir.join(link_name(&other, parent, hex)), &[]);
        volume.put_file(&archive_dir(&home(&other)), &[0; 100]);
        // Where a link leads to is gone.
        volume.put_file(&dir.join(link_name(&other, parent, &hex.replace('0', "1"))), &[]);
        volume.place_blocks("data/", &[("near", true)]);
        volume.place_blocks("archive/", &[("far", false)]);
        let found = block_hosts(&volume, &info, b"f").expect("looked");
        assert_eq!((found.on("near").bytes, found.on("near").ssd_bytes, found.on("far").bytes), (13, 13, 100));
        assert_eq!(found.total_bytes(), 113);
        assert_eq!(reference_part(b"PBUF of something else"), None);
    }

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

    #[test]
    fn a_link_to_a_table_with_a_period_in_its_name_is_no_reference() {
        let hex = "0123456789abcdef0123456789abcdef";
        for name in [format!("a.b=abc-{hex}"), format!("ns=a.b=abc-{hex}"), hex.to_owned()] {
            assert_eq!(reference_parent(&name), None, "{name}");
            assert_eq!(reference_parent(&format!("{name}.fed")), Some("fed"), "{name}");
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
}
