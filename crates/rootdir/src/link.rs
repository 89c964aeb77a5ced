//! Links: an empty file in a family's directory whose name tells the table, region and file that are meant, and beside that file's place
//! in the archive an entry that points back, for whoever cleans the archive.
//!
//! ```text
//! data/<ns>/<table>/<region>/<family>/<linked table>=<linked region>-<file>
//! archive/data/<ns>/<linked table>/<linked region>/<family>/.links-<file>/<region>.<table>
//! ```
//!
//! Always true: the back reference is durable before the link is there, so that a link without one was made by nobody. Follows:
//! `HFileLink`, `HFileLinkCleaner`.

use crate::paths::{BACK_REFERENCES_PREFIX, archive_dir, create_dirs_durable, table_dir};
use crate::store_file::{FileName, link_name};
use fs::{FilePath, Result, Volume, sync_dirs};
use model::TableName;

/// The file that a link stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTarget {
    /// Its table.
    pub table: TableName,
    /// Its region, encoded.
    pub region: String,
    /// Its name there: a store file's or a MOB file's.
    pub file: String,
}

impl LinkTarget {
    /// What a link's name says; `None` for any other name. A MOB file's may be at its end, too.
    pub fn of_link(name: &str) -> Option<LinkTarget> {
        if let Some(FileName { link: Some((table, region)), file, parent: None }) = FileName::parse(name) {
            return Some(LinkTarget { table, region, file });
        }
        let (head, rest) = name.rsplit_once('=')?;
        let (region, file) = rest.split_once('-')?;
        let (namespace, table) = head.split_once('=').unwrap_or((model::name::DEFAULT_NAMESPACE, head));
        let legal =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let table = TableName::of(namespace, table).ok().filter(|_| legal(region) && legal(file))?;
        Some(LinkTarget { table, region: region.to_owned(), file: file.to_owned() })
    }

    /// The name of a link to it.
    pub fn link_name(&self) -> String {
        link_name(&self.table, &self.region, &self.file)
    }

    /// The directory of what points back from it, for a family.
    pub fn back_references_dir(&self, family: &str) -> FilePath {
        let home = table_dir(&self.table).join(&self.region).join(family);
        archive_dir(&home).join(format!("{BACK_REFERENCES_PREFIX}{}", self.file))
    }
}

/// The name of the entry that points back to a region of a table. Follows: `HFileLink#createBackReferenceName`.
pub fn back_reference_name(table: &TableName, region: &str) -> String {
    format!("{region}.{}", table.as_str().replace(':', "="))
}

/// Makes an empty file; one that is there is that already.
fn touch(volume: &dyn Volume, path: &FilePath) -> Result<()> {
    match volume.create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made?.flush(),
    }
}

/// Links that a family's directory gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyLinks {
    /// The directory of the family, which is there.
    pub dir: FilePath,
    /// The region, encoded.
    pub region: String,
    /// The family.
    pub family: String,
    /// What the links are to.
    pub targets: Vec<LinkTarget>,
}

/// Makes links in directories of families of `table`, each with its back reference, durably but for the names of the directories themselves.
/// May be repeated. All back references are made before the first directory is synced, and synced before the first link is made: so a
/// disk's journal takes thousands of them in a few turns.
///
/// # Errors
/// What the volume says.
pub fn create_links(volume: &dyn Volume, table: &TableName, families: &[FamilyLinks]) -> Result<()> {
    let back_references = families.iter().flat_map(|family| {
        let name = back_reference_name(table, &family.region);
        family.targets.iter().map(move |target| target.back_references_dir(&family.family).join(&name))
    });
    let back_references: Vec<FilePath> = back_references.collect();
    let dirs = || back_references.iter().map(FilePath::parent);
    create_dirs_durable(volume, dirs().map(|dir| dir.parent()))?;
    for back_reference in &back_references {
        volume.create_dir_all(&back_reference.parent())?;
        touch(volume, back_reference)?;
    }
    sync_dirs(volume, dirs().chain(dirs().map(|dir| dir.parent())))?;
    for family in families {
        family.targets.iter().try_for_each(|target| touch(volume, &family.dir.join(target.link_name())))?;
    }
    sync_dirs(volume, families.iter().map(|family| family.dir.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use fs::{CrashPolicy, MemVolume};

    const HEX: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_links_name_tells_its_target() {
        let region = "fedcba98765432100123456789abcdef";
        for (table, name) in [("t", format!("t={region}-{HEX}")), ("n:a.b-c", format!("n=a.b-c={region}-{HEX}"))] {
            let table = TableName::parse(table).expect("legal");
            let target = LinkTarget { table, region: region.to_owned(), file: HEX.to_owned() };
            assert_eq!(target.link_name(), name);
            assert_eq!(LinkTarget::of_link(&name), Some(target));
        }
        let mob = format!("d41d8cd98f00b204e9800998ecf8427e20240101{HEX}_{region}");
        let target = LinkTarget::of_link(&format!("t={region}-{mob}")).expect("a MOB file's");
        assert_eq!((target.file, target.region.as_str()), (mob, region));
        for bad in [HEX, "t=r", "t=../x-y", "t=r-..", "=r-f", &format!("t={region}-{HEX}.{region}"), "t=r-a/b"] {
            assert_eq!(LinkTarget::of_link(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_power_failure_leaves_a_link_without_its_back_reference() {
        let table = TableName::parse("n:copy").expect("legal");
        let target =
            LinkTarget { table: TableName::parse("t").expect("legal"), region: "abc".into(), file: HEX.into() };
        let dir = table_dir(&table).join("def").join("f");
        let back = FilePath::new("archive/data/default/t/abc/f").join(format!(".links-{HEX}")).join("def.n=copy");
        for stop in 1.. {
            let volume = MemVolume::new();
            volume.create_dir_all_durable(&dir).expect("made");
            volume.fail_op(stop, fs::FaultKind::Io);
            let links = FamilyLinks {
                dir: dir.clone(),
                region: "def".to_owned(),
                family: "f".to_owned(),
                targets: vec![target.clone()],
            };
            let done = create_links(&volume, &table, &[links]).is_ok();
            for seed in 0..8 {
                let left = volume.crash(&Rng::seeded(seed), CrashPolicy::Torn);
                let link = left.exists(&dir.join(target.link_name())).expect("answered");
                assert!(!link || left.exists(&back).expect("answered"), "call {stop} failed, seed {seed}");
                assert!(!done || link, "what was done is lost");
            }
            if done {
                return;
            }
        }
    }
}
