//! Files that say what a directory is: `.regioninfo` of regions, descriptors of tables; and directories that are no region's.

use super::{Found, Kind, Memory, Remedy, Tried, busy, io, list_of};
use crate::Result;
use crate::cluster::RegionNode;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::{region_locks, table_locks};
use fs::{FilePath, Volume};
use model::name::RECOVERED_EDITS;
use model::{RegionInfo, TableDescriptor, TableName};
use rootdir::descriptor::{self, DescriptorError};
use rootdir::{paths, recovered_edits, region_dir, snapshot, store_file};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Files `.regioninfo` that are read in one run: on HDFS a few seconds. The next goes on behind them.
const REGIONS_PER_RUN: usize = 500;
/// Descriptors that are read in one run.
const TABLES_PER_RUN: usize = 200;

/// A directory of no region that hbase:meta has.
#[derive(Debug)]
pub(super) struct Orphan {
    pub table: TableName,
    pub dir: FilePath,
    /// The name of the directory.
    pub encoded: String,
    /// What it says which region it is.
    pub info: Option<RegionInfo>,
    /// The same where the directory has lost it and something else that is known has a region of that encoded name.
    pub known_as: Option<RegionInfo>,
    /// Store files and links in it, and whatever else is in families' directories.
    pub files: usize,
    /// Encoded names of the regions that its references lead to.
    pub refers_to: BTreeSet<String>,
    /// Whether there are edits that no store file has.
    pub has_edits: bool,
}

impl Orphan {
    /// Whether there is nothing in it that is not elsewhere too, but for references.
    pub fn has_no_data(&self) -> bool {
        self.files == 0 && !self.has_edits
    }

    /// Whether somebody is making it, or taking it away: who has the table to himself, or splits or merges what it refers to.
    pub fn is_worked_on(&self, held: &[(Resource, Mode)]) -> bool {
        held.iter().any(|(resource, mode)| match resource {
            Resource::Table(table) => *mode == Mode::Exclusive && *table == self.table,
            Resource::Region(region) => self.refers_to.contains(&**region),
            _ => false,
        })
    }

    /// How it is named to people.
    pub fn shown(&self) -> String {
        self.dir.to_string()
    }
}

/// A region's directory that is not as it should be.
#[derive(Debug)]
struct OddDirectory {
    info: RegionInfo,
    odd: Odd,
}

#[derive(Debug)]
enum Odd {
    Nameless,
    OtherName(RegionInfo),
    NotThere,
}

/// What was read.
pub(super) struct Files {
    pub orphans: Vec<Orphan>,
    odd: Vec<OddDirectory>,
    /// Tables that the master serves and that have no descriptor that can be read, and why.
    undescribed: Vec<(TableName, String)>,
    /// The same of tables that it does not serve: their families' directories, and the snapshots that have a descriptor.
    unserved: Vec<(TableName, String)>,
}

/// Reads what the run looks at.
///
/// # Errors
/// What the volume says.
pub(super) async fn read(
    master: &Arc<Master>,
    memory: &mut Memory,
    orphans: &BTreeMap<String, FilePath>,
) -> Result<Files> {
    let regions = next_regions(master, memory);
    let (tables, served) = next_tables(master, memory);
    let orphans: Vec<(String, FilePath)> = orphans.iter().map(|(name, dir)| (name.clone(), dir.clone())).collect();
    let relatives = relatives(master);
    master
        .files
        .run(move |volume| {
            let mut files =
                Files { orphans: Vec::new(), odd: Vec::new(), undescribed: Vec::new(), unserved: Vec::new() };
            for (encoded, dir) in orphans {
                files.orphans.extend(read_orphan(volume, encoded, dir)?);
            }
            name_orphans(volume, &mut files.orphans, &relatives)?;
            for info in regions {
                if let Some(odd) = read_region(volume, &info)? {
                    files.odd.push(OddDirectory { info, odd });
                }
            }
            for table in tables {
                if let Some(why) = why_undescribed(volume, &table)? {
                    files.undescribed.push((table, why));
                }
            }
            for table in descriptor::list_tables(volume)?.into_iter().filter(|table| !served.contains(table)) {
                let why = match why_undescribed(volume, &table)? {
                    Some(why) => why,
                    None => continue,
                };
                let hint = hint_for(volume, &table)?;
                files.unserved.push((table, format!("{why}; {hint}")));
            }
            Ok(files)
        })
        .await
}

/// The regions whose files are read in this run: those behind the last of the run before, and those of which something was found.
fn next_regions(master: &Master, memory: &mut Memory) -> Vec<RegionInfo> {
    let cluster = master.cluster.read();
    let looked_at = |node: &&RegionNode| !node.info.table.is_meta();
    let mut nodes: Vec<&RegionNode> = cluster.regions().filter(looked_at).collect();
    nodes.sort_by(|a, b| a.info.encoded_name().cmp(b.info.encoded_name()));
    let from = nodes.partition_point(|node| **node.info.encoded_name() <= *memory.next_region);
    let found: BTreeSet<&str> =
        memory.known.keys().filter(|(kind, _)| kind.is_of_files()).map(|(_, of)| &**of).collect();
    let is_found = |node: &&&RegionNode| !found.is_empty() && found.contains(&*node.info.name_string());
    let of_found = nodes.iter().filter(is_found).map(|node| &node.info);
    let turn = nodes.iter().skip(from).take(REGIONS_PER_RUN);
    memory.next_region = match turn.clone().next_back() {
        Some(last) if turn.clone().count() == REGIONS_PER_RUN => last.info.encoded_name().to_string(),
        _ => String::new(),
    };
    let mut all: Vec<RegionInfo> = turn.map(|node| &node.info).chain(of_found).cloned().collect();
    all.sort_by(|a, b| a.encoded_name().cmp(b.encoded_name()));
    all.dedup();
    all
}

/// The same of tables; and all that are served.
fn next_tables(master: &Master, memory: &mut Memory) -> (Vec<TableName>, BTreeSet<TableName>) {
    let cluster = master.cluster.read();
    let served: BTreeSet<TableName> = cluster.tables().map(|(table, _)| table.name.clone()).collect();
    let last = memory.next_table.take();
    let behind = |table: &&TableName| !table.is_meta() && last.as_ref().is_none_or(|last| *table > last);
    let mut turn: Vec<TableName> = served.iter().filter(behind).take(TABLES_PER_RUN).cloned().collect();
    if turn.len() == TABLES_PER_RUN {
        memory.next_table = turn.last().cloned();
    }
    let is_found = |table: &&TableName| memory.known.contains_key(&(Kind::NoTableInfoFile, table.to_string()));
    turn.extend(served.iter().filter(is_found).cloned());
    turn.sort();
    turn.dedup();
    (turn, served)
}

/// Regions that rows of hbase:meta name beside their own, by encoded name.
fn relatives(master: &Master) -> BTreeMap<String, RegionInfo> {
    let cluster = master.cluster.read();
    let named = cluster.regions().flat_map(|node| node.daughters.iter().chain(&node.merge_parents));
    named.map(|info| (info.encoded_name().to_string(), info.clone())).collect()
}

/// `None`: it has gone meanwhile.
fn read_orphan(volume: &dyn Volume, encoded: String, dir: FilePath) -> Result<Option<Orphan>> {
    let home = dir.parent();
    let Ok(table) = TableName::of(home.parent().name(), home.name()) else { return Ok(None) };
    if !volume.exists(&dir)? {
        return Ok(None);
    }
    let info = region_dir::read_region_info(volume, &dir)?;
    let (mut files, mut refers_to) = (0, BTreeSet::new());
    for family in paths::family_names(volume, &dir)? {
        for entry in rootdir::list_if_exists(volume, &dir.join(family))? {
            match store_file::reference_parent(&entry.name).filter(|_| !entry.is_dir && !entry.name.starts_with('.')) {
                Some(parent) => drop(refers_to.insert(parent.to_owned())),
                // Which files count may be written in a list: none of its own changes what is there.
                None if entry.is_dir && entry.name == rootdir::tracker::list::DIR => {}
                None => files += 1,
            }
        }
    }
    let edits = rootdir::list_if_exists(volume, &dir.join(RECOVERED_EDITS))?;
    let says_only = |name: &str| {
        recovered_edits::max_seq_id_file([name]).is_some() || recovered_edits::DeletedFamily::dir_of(name).is_some()
    };
    let has_edits = edits.iter().any(|entry| !says_only(&entry.name));
    Ok(Some(Orphan { table, dir, encoded, info, known_as: None, files, refers_to, has_edits }))
}

/// Which regions the nameless are: an encoded name is a digest of table, first row and id, so that whoever has the same is the same.
///
/// # Errors
/// The snapshots cannot be listed: without them it would be said that nobody knows the region.
fn name_orphans(volume: &dyn Volume, orphans: &mut [Orphan], relatives: &BTreeMap<String, RegionInfo>) -> Result<()> {
    let mut nameless: Vec<&mut Orphan> = orphans.iter_mut().filter(|orphan| orphan.info.is_none()).collect();
    if nameless.is_empty() {
        return Ok(());
    }
    let mut snapshots = BTreeMap::new();
    let tables: BTreeSet<String> = nameless.iter().map(|orphan| orphan.table.to_string()).collect();
    for taken in snapshot::list(volume)?.into_iter().flatten() {
        if !taken.table.as_ref().is_some_and(|table| tables.contains(table)) {
            continue;
        }
        // One that is damaged says nothing.
        let Ok(manifest) = snapshot::read_manifest(volume, &snapshot::completed_dir(&taken.name)) else { continue };
        snapshots
            .extend(manifest.regions.into_iter().map(|region| (region.info.encoded_name().to_string(), region.info)));
    }
    for orphan in &mut nameless {
        let known = relatives.get(&orphan.encoded).or_else(|| snapshots.get(&orphan.encoded));
        orphan.known_as = known.filter(|info| info.table == orphan.table && !info.is_replica()).map(plain);
    }
    Ok(())
}

/// The region as its directory says it: without what hbase:meta says of a split.
fn plain(info: &RegionInfo) -> RegionInfo {
    let mut info = info.clone();
    (info.split, info.offline) = (false, false);
    info
}

fn read_region(volume: &dyn Volume, info: &RegionInfo) -> Result<Option<Odd>> {
    let dir = rootdir::region_dir(info);
    Ok(match region_dir::read_region_info(volume, &dir)? {
        Some(found) if found.encoded_name() == info.encoded_name() => None,
        Some(found) => Some(Odd::OtherName(found)),
        None if volume.exists(&dir)? => Some(Odd::Nameless),
        None => Some(Odd::NotThere),
    })
}

fn why_undescribed(volume: &dyn Volume, table: &TableName) -> Result<Option<String>> {
    match descriptor::read(volume, table) {
        Ok(Some(_)) => Ok(None),
        Ok(None) => Ok(Some(format!("{}/{} holds no descriptor", rootdir::table_dir(table), descriptor::DIR))),
        Err(DescriptorError::Damaged { path, what }) => Ok(Some(format!("{path} holds no descriptor: {what}"))),
        Err(error) => Err(io(error)),
    }
}

/// What is known of a table that lost its descriptor.
fn hint_for(volume: &dyn Volume, table: &TableName) -> Result<String> {
    let home = rootdir::table_dir(table);
    let mut families = BTreeSet::new();
    for region in paths::region_names(volume, &home)? {
        families.extend(paths::family_names(volume, &home.join(region))?);
    }
    let of_table = |taken: &proto::pb::SnapshotDescription| taken.table.as_deref() == Some(table.as_str());
    let snapshots = snapshot::list(volume)?.into_iter().flatten().filter(of_table).map(|taken| taken.name);
    let snapshots = list_of(snapshots);
    let snapshots = if snapshots.is_empty() {
        "no snapshot of it has one".into()
    } else {
        format!("snapshots that have one: {snapshots}")
    };
    Ok(format!("its regions have the families {}; {snapshots}", list_of(families)))
}

pub(super) fn look(master: &Master, files: &Files, found: &mut Vec<Found>) {
    for OddDirectory { info, odd } in &files.odd {
        let dir = rootdir::region_dir(info);
        let (kind, what, remedy) = match odd {
            Odd::Nameless => {
                let what = format!("{dir} has no .regioninfo that can be read");
                (Kind::NoRegionInfoFile, what, Remedy::NameDirectory(plain(info)))
            }
            Odd::OtherName(other) => {
                let what = format!("{dir}/.regioninfo is of {}", other.name_string());
                let why = "which of both is right, only what is in its files tells; the region is served as hbase:meta has it";
                (Kind::WrongRegionInfo, what, Remedy::Nothing(why.into()))
            }
            Odd::NotThere => {
                let what = format!("{dir} is not there");
                let why = "what was in it is looked for in the archive, a snapshot, a backup; opening the region makes an empty one";
                (Kind::NotInHdfs, what, Remedy::Nothing(why.into()))
            }
        };
        found.push(Found { kind, subject: info.name_string(), what, remedy });
    }
    for (table, why) in &files.undescribed {
        found.push(Found {
            kind: Kind::NoTableInfoFile,
            subject: table.to_string(),
            what: why.clone(),
            remedy: Remedy::WriteDescriptor(table.clone()),
        });
    }
    let held = master.procedures.locks.held();
    for (table, why) in &files.unserved {
        // It is being made, or unmade.
        if held.iter().any(|(resource, _)| *resource == Resource::Table(table.clone())) {
            continue;
        }
        let remedy = Remedy::Nothing(
            "what its families keep (VERSIONS, TTL) cannot be told from its files, and compactions delete by it: put a .tableinfo of it there, from a \
             copy, a snapshot's data.manifest or another cluster, and restart the master"
                .into(),
        );
        found.push(Found { kind: Kind::NoTableInfoFile, subject: table.to_string(), what: why.clone(), remedy });
    }
}

/// `.regioninfo` is written as hbase:meta, or who else knows the region, has it.
pub(super) async fn name_directory(master: &Arc<Master>, info: RegionInfo) -> Result<Tried> {
    let Some(_locks) = master.procedures.locks.try_lock(region_locks(std::slice::from_ref(&info))) else {
        return Ok(busy(info.name_string()));
    };
    let now_ms = master.clock.now_ms().0;
    let written = master
        .files
        .run(move |volume| match region_dir::write_region_info(volume, &info, now_ms) {
            Ok(()) => Ok(true),
            // It went meanwhile: cleaned away by who had the lock before.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        })
        .await?;
    Ok(if written { Tried::Done(".regioninfo was written again".into()) } else { Tried::Passed })
}

/// The table's descriptor is written as the master has it: what it read or wrote last, and what its regions are open with.
pub(super) async fn write_descriptor(master: &Arc<Master>, table: &TableName) -> Result<Tried> {
    let Some(_locks) = master.procedures.locks.try_lock(table_locks(table)) else { return Ok(busy(table)) };
    let Some(described) = master.cluster.read().descriptor(table) else { return Ok(Tried::Passed) };
    let now_ms = master.clock.now_ms().0;
    let written = master.files.run(move |volume| restore_descriptor(volume, &described, now_ms)).await?;
    Ok(if written { Tried::Done("it was written again, as the master has it".into()) } else { Tried::Passed })
}

fn restore_descriptor(volume: &dyn Volume, described: &TableDescriptor, now_ms: i64) -> Result<bool> {
    match descriptor::read(volume, &described.name) {
        Ok(Some(_)) => return Ok(false),
        Ok(None) => {}
        // A copy: where this is broken off, the next start is to find no older one in its place.
        Err(DescriptorError::Damaged { path, .. }) => drop(rootdir::aside::copy_aside(volume, &path, now_ms)?),
        Err(error) => return Err(io(error)),
    }
    descriptor::write(volume, described).map_err(io)?;
    Ok(true)
}

/// A directory goes below `.hbck`.
pub(super) async fn set_aside(master: &Arc<Master>, table: &TableName, dir: FilePath) -> Result<Tried> {
    let Some(_locks) = master.procedures.locks.try_lock(table_locks(table)) else { return Ok(busy(table)) };
    let encoded = dir.name().to_owned();
    let live: BTreeSet<String> = {
        let cluster = master.cluster.read();
        if cluster.region(&encoded).is_some() {
            return Ok(Tried::Passed);
        }
        cluster
            .regions_of(table)
            .filter(|node| node.is_live())
            .map(|node| node.info.encoded_name().to_string())
            .collect()
    };
    let now_ms = master.clock.now_ms().0;
    let moved = master.files.run(move |volume| {
        let Some(orphan) = read_orphan(volume, encoded, dir.clone())? else { return Ok(None) };
        if !orphan.has_no_data() || !orphan.refers_to.is_subset(&live) {
            return Ok(Some(None));
        }
        Ok(Some(Some(rootdir::aside::set_aside(volume, &dir, now_ms)?)))
    });
    Ok(match moved.await? {
        None => Tried::Passed,
        Some(None) => Tried::NotNow("something has come into it".into()),
        Some(Some(path)) => Tried::Done(format!("it is {path} now; nothing in it is needed")),
    })
}
