//! What a directory of backups holds: a directory for each, `<id>/<namespace>/<table>/...`, with a manifest that is written last.
//!
//! ```text
//! <root>/<id>/basalt-backup-manifest             one line of version and checksum, then JSON
//! <root>/basalt-backup-sets                      the same first line, then JSON: sets of tables and their names
//! <root>/<id>/<ns>/<table>/.hbase-snapshot/...   full: a root directory of its own with one snapshot, as ExportSnapshot makes it,
//! <root>/<id>/<ns>/<table>/archive/data/...      and its store files
//! <root>/<id>/<ns>/<table>/<family>/<HFile>      incremental: what was written since, as HFileOutputFormat2 makes it for a bulk load
//! ```
//!
//! Always true: a directory without a manifest is no backup; a manifest names every file of its backup with length and checksum; a directory
//! that has neither a manifest nor a mark of a backup that was begun is somebody else's, whatever it is called, and is never touched.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use fs::{FilePath, Volume};
use model::{TableDescriptor, TableName};
use proto::Message;
use serde::{Deserialize, Serialize};

use crate::jobs::table_hash::{from_hex, to_hex};
use crate::places::{Directory, Opener};
use crate::snapshot_tool::copy;

/// The file that makes a directory a backup.
const MANIFEST: &str = "basalt-backup-manifest";
/// What is known of one that is not done.
const UNFINISHED: &str = "basalt-backup-unfinished";
const HEADER: &str = "basalt-backup 1 crc32 ";
/// How names of backups begin; the time of their beginning follows.
pub(super) const ID_PREFIX: &str = "backup_";

/// What a backup holds of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// All.
    Full,
    /// What was written since another one.
    Incremental,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::Incremental => "incremental",
        }
    }
}

/// How far a server's logs are in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Boundary {
    /// The first log that is not.
    pub first: u64,
    /// Whether that log was there then.
    pub is_there: bool,
}

/// For each server, as `host,port,start`. All logs of others are not in the backup.
pub(super) type Boundaries = BTreeMap<String, Boundary>;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImageFile {
    /// Below the backup's directory.
    pub path: String,
    pub bytes: u64,
    pub crc32: u32,
}

/// One table in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Image {
    pub table: String,
    /// The backup that this one goes on from; none for a full one.
    pub parent: Option<String>,
    /// The descriptor: HBase's `TableSchema` in hexadecimal digits.
    pub schema: String,
    /// Encoded names of the regions.
    pub regions: Vec<String>,
    /// The snapshot in the image of a full backup.
    pub snapshot: Option<String>,
    /// Cells of an incremental one.
    pub cells: u64,
    /// When the first and the last edit in it were made, in ms since 1970.
    pub times_ms: Option<(i64, i64)>,
    /// Their least and greatest sequence id.
    pub sequence_ids: Option<(u64, u64)>,
    /// Files that were loaded in bulk, whose cells are in it.
    pub loaded_files: u64,
    pub files: Vec<ImageFile>,
}

impl Image {
    pub fn name(&self) -> anyhow::Result<TableName> {
        crate::jobs::table_name(&self.table)
    }

    pub fn descriptor(&self) -> anyhow::Result<TableDescriptor> {
        let bytes = from_hex(&self.schema).context("the manifest's schema")?;
        let message = proto::pb::TableSchema::decode(&*bytes).context("the manifest's schema")?;
        convert::from_proto::table(&message).map_err(|error| anyhow::anyhow!("the manifest's schema: {error}"))
    }

    pub fn schema_of(descriptor: &TableDescriptor) -> String {
        to_hex(&convert::to_proto::table(descriptor).encode_to_vec())
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub id: String,
    pub kind: Kind,
    /// The backups that this one was merged of.
    pub merged: Vec<String>,
    /// The set of tables that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    pub started_ms: i64,
    pub completed_ms: i64,
    pub tables: Vec<Image>,
    pub logs: Boundaries,
}

impl Manifest {
    pub fn image(&self, table: &str) -> Option<&Image> {
        self.tables.iter().find(|image| image.table == table)
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(Image::bytes).sum()
    }
}

/// A backup that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unfinished {
    pub id: String,
    pub kind: Kind,
    pub started_ms: i64,
    pub tables: Vec<String>,
    pub logs: Boundaries,
    /// Files loaded in bulk that were in the archive before its snapshots.
    pub archived: BTreeSet<String>,
}

pub(super) fn encode(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    Ok(seal(&serde_json::to_vec_pretty(value)?))
}

/// The first line, and what it is of.
pub(super) fn seal(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{HEADER}{:08x}\n", crc32fast::hash(body)).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(super) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> anyhow::Result<T> {
    let end = bytes.iter().position(|byte| *byte == b'\n').context("it has no first line")?;
    let (first, body) = (std::str::from_utf8(&bytes[..end])?, &bytes[end + 1..]);
    let sum = first.strip_prefix(HEADER).context("it is of another version")?;
    if u32::from_str_radix(sum, 16).ok() != Some(crc32fast::hash(body)) {
        bail!("its checksum is of other bytes");
    }
    Ok(serde_json::from_slice(body)?)
}

/// A directory of backups.
pub(super) struct Place {
    pub volume: Arc<dyn Volume>,
    pub directory: Directory,
}

impl Place {
    /// The directory that a command line names; made where `is_new` allows it.
    ///
    /// # Errors
    /// It is not there, or cannot be used.
    pub fn open(opener: &dyn Opener, config: &Config, text: &str, is_new: bool) -> anyhow::Result<Place> {
        let directory = Directory::open(opener, config, text, is_new).context("the directory of backups")?;
        Ok(Place { volume: directory.volume.clone(), directory })
    }

    /// Keeps other processes from changing backups here.
    pub fn claim(&self) -> anyhow::Result<Box<dyn Any + Send>> {
        self.directory.claim()
    }

    /// What its mark in a root directory is called.
    pub fn hold_id(&self) -> String {
        use md5::{Digest, Md5};
        to_hex(&Md5::digest(self.directory.name.as_bytes()))
    }

    /// Every backup, in the order of their beginnings.
    ///
    /// # Errors
    /// A manifest is damaged; the directory cannot be read.
    pub fn backups(&self) -> anyhow::Result<Backups> {
        let mut all = Vec::new();
        for id in self.directories()? {
            let path = FilePath::new(&id).join(MANIFEST);
            if !self.volume.exists(&path)? {
                continue;
            }
            let manifest: Manifest = self
                .volume
                .read(&path)
                .map_err(anyhow::Error::from)
                .and_then(|bytes| decode(&bytes))
                .with_context(|| format!("{} is no manifest of a backup", self.directory.shown(&path)))?;
            if manifest.id != id {
                bail!("{} is the manifest of {}", self.directory.shown(&path), manifest.id);
            }
            all.push(manifest);
        }
        all.sort_by(|a, b| (a.started_ms, &a.id).cmp(&(b.started_ms, &b.id)));
        Ok(Backups(all))
    }

    fn directories(&self) -> anyhow::Result<Vec<String>> {
        let entries = self.volume.list(&FilePath::root())?;
        Ok(entries.into_iter().filter(|e| e.is_dir && e.name.starts_with(ID_PREFIX)).map(|e| e.name).collect())
    }

    /// Directories of backups that were begun and are not done, or were being removed, with what is known of them.
    pub fn unfinished(&self) -> anyhow::Result<Vec<(String, Option<Unfinished>)>> {
        let mut all = Vec::new();
        for id in self.directories()? {
            let dir = FilePath::new(&id);
            if self.volume.exists(&dir.join(MANIFEST))? || !self.volume.exists(&dir.join(UNFINISHED))? {
                continue;
            }
            // One that is damaged, or a manifest that was given this name, tells that the directory is ours and no more.
            let state = decode(&self.volume.read(&dir.join(UNFINISHED))?).ok();
            all.push((id, state));
        }
        Ok(all)
    }

    pub fn begin(&self, state: &Unfinished) -> anyhow::Result<()> {
        let dir = FilePath::new(&state.id);
        self.volume.create_dir_all_durable(&dir)?;
        Ok(self.volume.publish(&dir.join(UNFINISHED), &encode(state)?)?)
    }

    /// Makes a directory a backup.
    pub fn complete(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let dir = FilePath::new(&manifest.id);
        self.volume.create_dir_all_durable(&dir)?;
        self.volume.publish(&dir.join(MANIFEST), &encode(manifest)?)?;
        if self.volume.exists(&dir.join(UNFINISHED))? {
            self.volume.remove_file(&dir.join(UNFINISHED))?;
        }
        Ok(())
    }

    /// Removes a backup. Its manifest becomes the mark of one that is not done, which goes last: so none is there without its files, and what a kill
    /// leaves is known for a backup's.
    pub fn remove(&self, id: &str) -> anyhow::Result<()> {
        let dir = FilePath::new(id);
        if self.volume.exists(&dir.join(MANIFEST))? {
            self.volume.rename(&dir.join(MANIFEST), &dir.join(UNFINISHED))?;
            self.volume.sync_dir(&dir)?;
        }
        for entry in self.volume.list(&dir)?.iter().filter(|entry| entry.name != UNFINISHED) {
            match entry.is_dir {
                true => self.volume.remove_dir_all(&dir.join(&entry.name))?,
                false => self.volume.remove_file(&dir.join(&entry.name))?,
            }
        }
        self.volume.sync_dir(&dir)?;
        self.volume.remove_dir_all(&dir)?;
        Ok(self.volume.sync_dir(&FilePath::root())?)
    }

    /// Where a table's image is, below the directory.
    pub fn image_dir(id: &str, table: &TableName) -> FilePath {
        FilePath::new(id).join(table.namespace()).join(table.qualifier())
    }

    /// Every file of a table's image, with its checksum.
    pub fn files(&self, id: &str, table: &TableName) -> anyhow::Result<Vec<ImageFile>> {
        let mut found = Vec::new();
        let mut dirs = vec![Place::image_dir(id, table)];
        while let Some(dir) = dirs.pop() {
            for entry in rootdir::list_if_exists(&*self.volume, &dir)? {
                let path = dir.join(&entry.name);
                if entry.is_dir {
                    dirs.push(path);
                } else if !entry.name.starts_with(fs::TEMPORARY_PREFIX) {
                    let crc32 = copy::sum(&*self.volume, &path)?;
                    let below = path.as_str().strip_prefix(&format!("{id}/")).unwrap_or_default().to_owned();
                    found.push(ImageFile { path: below, bytes: entry.len, crc32 });
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// What is wrong with the files of an image: path and why. `quick` compares lengths only.
    pub fn faults(&self, id: &str, image: &Image, quick: bool) -> anyhow::Result<Vec<(String, String)>> {
        let mut faults = Vec::new();
        for file in &image.files {
            if file.path.split('/').any(|part| matches!(part, "" | "." | "..")) {
                bail!("the manifest of {id} names a file {:?}, which is none of a backup", file.path);
            }
            let path = FilePath::new(id).join(&file.path);
            let why = match self.volume.stat(&path)? {
                None => Some("it is missing".to_owned()),
                Some(entry) if entry.len != file.bytes => {
                    Some(format!("{} bytes instead of {}", entry.len, file.bytes))
                }
                Some(_) if quick => None,
                Some(_) => match copy::sum(&*self.volume, &path) {
                    Ok(sum) if sum == file.crc32 => None,
                    Ok(_) => Some("damaged: its checksum is of other bytes".to_owned()),
                    Err(error) => Some(format!("{error:#}")),
                },
            };
            faults.extend(why.map(|why| (self.directory.shown(&path), why)));
        }
        Ok(faults)
    }
}

/// The backups of a directory, oldest first.
#[derive(Debug)]
pub(super) struct Backups(pub Vec<Manifest>);

impl Backups {
    /// The backup of this id.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, id: &str) -> anyhow::Result<&Manifest> {
        if let Some(found) = self.0.iter().find(|manifest| manifest.id == id) {
            return Ok(found);
        }
        match self.0.iter().find(|manifest| manifest.merged.iter().any(|merged| merged == id)) {
            Some(merged) => bail!("{id} was merged into {}", merged.id),
            None => bail!("there is no backup {id}; basalt backup list shows them"),
        }
    }

    /// The backup of this id, or that it was merged into.
    fn holding(&self, id: &str) -> Option<&Manifest> {
        let merged = || self.0.iter().find(|manifest| manifest.merged.iter().any(|merged| merged == id));
        self.0.iter().find(|manifest| manifest.id == id).or_else(merged)
    }

    /// The newest state of a table.
    pub fn newest(&self, table: &str) -> Option<(&Manifest, &Image)> {
        let with = |manifest| Manifest::image(manifest, table).map(|image| (manifest, image));
        // A merged one has the time of the last that it was merged of.
        self.0.iter().filter_map(with).max_by_key(|(manifest, _)| (manifest.completed_ms, manifest.started_ms))
    }

    /// The tables that there are backups of.
    pub fn tables(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|manifest| &manifest.tables).map(|image| image.table.clone()).collect()
    }

    /// What a table is restored from: a full image, and those that go on from it up to `id`.
    ///
    /// # Errors
    /// A part is missing.
    pub fn chain(&self, id: &str, table: &str) -> anyhow::Result<Vec<(&Manifest, &Image)>> {
        let mut manifest = self.get(id)?;
        let mut chain = Vec::new();
        loop {
            let image =
                manifest.image(table).with_context(|| format!("{} is no backup of table {table}", manifest.id))?;
            chain.push((manifest, image));
            let Some(parent) = &image.parent else { break };
            if chain.len() > self.0.len() {
                bail!("the backups of table {table} go on from each other in a circle");
            }
            manifest = self.holding(parent).with_context(|| {
                format!("{} goes on from {parent}, which is not there: the table cannot be restored", manifest.id)
            })?;
        }
        chain.reverse();
        Ok(chain)
    }

    /// Backups that were done before, but for those that younger ones go on from.
    pub fn older_than(&self, kept_from_ms: i64) -> Vec<String> {
        let is_kept = |manifest: &&Manifest| manifest.completed_ms >= kept_from_ms;
        let mut needed = BTreeSet::new();
        for manifest in self.0.iter().filter(is_kept) {
            for image in &manifest.tables {
                // Of a chain with a hole all parts stay.
                match self.chain(&manifest.id, &image.table) {
                    Ok(chain) => needed.extend(chain.into_iter().map(|(part, _)| part.id.as_str())),
                    Err(_) => needed.extend(self.0.iter().map(|manifest| manifest.id.as_str())),
                }
            }
        }
        let doomed = self.0.iter().filter(|manifest| !is_kept(manifest) && !needed.contains(manifest.id.as_str()));
        doomed.map(|manifest| manifest.id.clone()).collect()
    }

    /// Backups that one of `ids` is a part of, and that are not among them.
    pub fn depending_on(&self, ids: &[String]) -> BTreeSet<String> {
        let mut dependent = BTreeSet::new();
        for manifest in self.0.iter().filter(|manifest| !ids.contains(&manifest.id)) {
            for image in &manifest.tables {
                let chain = self.chain(&manifest.id, &image.table).unwrap_or_default();
                if chain.iter().any(|(part, _)| ids.contains(&part.id)) {
                    dependent.insert(manifest.id.clone());
                }
            }
        }
        dependent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::tests::Nowhere;

    fn image(table: &str, parent: Option<&str>) -> Image {
        Image {
            table: table.to_owned(),
            parent: parent.map(str::to_owned),
            schema: String::new(),
            regions: Vec::new(),
            snapshot: None,
            cells: 0,
            times_ms: None,
            sequence_ids: None,
            loaded_files: 0,
            files: Vec::new(),
        }
    }

    fn manifest(n: i64, merged: &[&str], tables: Vec<Image>) -> Manifest {
        let kind = if tables.iter().any(|image| image.parent.is_some()) { Kind::Incremental } else { Kind::Full };
        let merged = merged.iter().map(|id| (*id).to_owned()).collect();
        let logs = Boundaries::new();
        Manifest {
            id: format!("{ID_PREFIX}{n}"),
            kind,
            merged,
            set: None,
            started_ms: n,
            completed_ms: n,
            tables,
            logs,
        }
    }

    fn chain(backups: &Backups, id: &str, table: &str) -> String {
        match backups.chain(id, table) {
            Ok(chain) => {
                chain.iter().map(|(part, _)| part.id.trim_start_matches(ID_PREFIX)).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_table_is_restored_from_its_own_chain_through_what_was_merged() {
        let backups = Backups(vec![
            manifest(1, &[], vec![image("t", None), image("u", None)]),
            manifest(2, &[], vec![image("t", Some("backup_1"))]),
            manifest(5, &["backup_3", "backup_4"], vec![image("t", Some("backup_2"))]),
            manifest(6, &[], vec![image("t", Some("backup_4")), image("u", Some("backup_1"))]),
        ]);
        assert_eq!(chain(&backups, "backup_6", "t"), "1 2 5 6");
        assert_eq!(chain(&backups, "backup_6", "u"), "1 6");
        assert_eq!(chain(&backups, "backup_2", "t"), "1 2");
        assert!(chain(&backups, "backup_2", "u").contains("no backup of table u"));
        assert!(chain(&backups, "backup_4", "t").contains("merged into backup_5"));
        assert!(chain(&backups, "backup_9", "t").contains("there is no backup"));
        let on = |id: &str| backups.depending_on(&[id.to_owned()]).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!((on("backup_2"), on("backup_6")), ("backup_5 backup_6".to_owned(), String::new()));
        assert_eq!(backups.newest("u").map(|(newest, _)| &*newest.id), Some("backup_6"));
        assert_eq!(backups.older_than(7).len(), 4);
        assert_eq!(backups.older_than(6), [] as [&str; 0], "the newest goes on from all of them");
        let later = Backups(vec![manifest(1, &[], vec![image("t", None)]), manifest(3, &[], vec![image("t", None)])]);
        assert_eq!((later.older_than(1), later.older_than(2)), (vec![], vec!["backup_1".to_owned()]));
        let broken = Backups(vec![manifest(2, &[], vec![image("t", Some("backup_1"))])]);
        assert!(chain(&broken, "backup_2", "t").contains("backup_1, which is not there"));
        let round = Backups(vec![manifest(1, &[], vec![image("t", Some("backup_1"))])]);
        assert!(chain(&round, "backup_1", "t").contains("in a circle"));
    }

    /// HBase's own backups are called alike, and so may be anything else beside ours.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a real directory, as somebody else may have filled it")]
    fn what_is_called_like_a_backup_and_is_none_is_left_alone() {
        let root = std::env::temp_dir().join(format!("basalt-backups-{}", std::process::id()));
        let foreign = root.join("backup_1600000000000/default/t");
        std::fs::create_dir_all(&foreign).expect("made");
        std::fs::write(foreign.join(".backup.manifest"), b"HBase's").expect("written");
        let place = Place::open(&Nowhere, &Config::default(), root.to_str().expect("UTF-8"), true).expect("opened");
        assert_eq!((place.unfinished().expect("listed"), place.backups().expect("listed").0), (vec![], vec![]));
        let begun = Unfinished {
            id: "backup_1".to_owned(),
            kind: Kind::Full,
            started_ms: 1,
            tables: vec!["t".to_owned()],
            logs: Boundaries::new(),
            archived: BTreeSet::new(),
        };
        place.begin(&begun).expect("begun");
        assert_eq!(place.unfinished().expect("listed"), [("backup_1".to_owned(), Some(begun))]);
        place.complete(&manifest(1, &[], vec![image("t", None)])).expect("done");
        assert!(place.unfinished().expect("listed").is_empty());
        // As a kill leaves one that was being removed.
        let ours = FilePath::new("backup_1");
        place.volume.rename(&ours.join(MANIFEST), &ours.join(UNFINISHED)).expect("renamed");
        assert_eq!(place.unfinished().expect("listed"), [("backup_1".to_owned(), None)]);
        place.remove("backup_1").expect("removed");
        assert!(place.unfinished().expect("listed").is_empty() && !root.join("backup_1").exists());
        assert!(foreign.join(".backup.manifest").exists());
        std::fs::remove_dir_all(&root).expect("cleared");
    }

    #[test]
    fn a_manifest_with_any_damage_is_refused() {
        let whole = manifest(1, &[], vec![image("t", None)]);
        let bytes = encode(&whole).expect("JSON");
        assert_eq!(decode::<Manifest>(&bytes).expect("whole"), whole);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode::<Manifest>(&damaged).is_err(), "byte {at}");
            assert!(decode::<Manifest>(&bytes[..at]).is_err(), "{at} bytes");
        }
    }
}
