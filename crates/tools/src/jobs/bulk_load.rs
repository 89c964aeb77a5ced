//! `basalt bulkload`. Follows: `BulkLoadHFilesTool`, `LoadIncrementalHFiles`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::{Config, Rng};
use bytes::Bytes;
use client::{BulkLoadOptions, Connection, Table};
use fs::FilePath;
use hfile::{Half, HalfSide, Reader, ReaderContext, ScanOptions, StoreMetadata, file_info};
use model::{FamilyDescriptor, TableDescriptor, TableName};
use serde_json::json;
use tokio::task::JoinSet;

use super::hfile_output::{OrderedWriter, options_of};
use super::{defines, helped, on_cluster, table_name};
use crate::arguments::{self, Known, flag};
use crate::dictionaries;
use crate::places::{Opener, Source};

const USAGE: &str = "\
Loads HFiles into a table: they become files of its regions, without passing through their memory and logs.

Usage: basalt bulkload [-D KEY=VALUE]... DIRECTORY TABLE [-loadTable] [OPTIONS]

    DIRECTORY    has a directory for each family with its HFiles, as HFileOutputFormat and importtsv.bulk.output make it;
                 a path, a file: URI, or hdfs://host:port/directory
    -loadTable   DIRECTORY has directories of families in directories of regions; the table must be there
    --json       one JSON object
    --help       this text

Files whose rows are of several regions are split into a directory .tmp beside them first. The server moves the files, unless they are to be
copied; it must be able to read and move them. A file that does not end as an HFile is told and passed over; one that is damaged otherwise
ends it before anything is loaded. Files of one region are loaded together, or none of them.

Settings:
  create.table=no                 the table must be there; else it is made with the families and the bounds of the files
  ignore.unmatched.families=yes   passes over families that the table has not
  always.copy.files=true          leaves the files where they are
  hbase.mapreduce.bulkload.max.hfiles.perRegion.perFamily=N    at most so many; 32
  hbase.mapreduce.bulkload.assign.sequenceNumbers=false        the files do not count as newer than what was written before
  hbase.mapreduce.bulkload.by.family=true                      each family of a region by itself
  hbase.loadincremental.fail.if.need.split.hfile=true          files of several regions end it
  hbase.loadincremental.validate.hfile=false                   what does not end as an HFile ends it, too
  hbase.loadincremental.threads.max=N                          files and regions at the same time
  hbase.bulkload.retries.number=N                              rounds while regions split under it; 10
  hbase.io.compress.zstd.dictionary=FILE                       dictionary of the files where the table names none

Ends with 0 when all is loaded, with 1 after an error, with 255 when there was nothing to load.

Examples:
  basalt bulkload /out/t t
  basalt bulkload -D create.table=no -D always.copy.files=true /out/t t
  basalt bulkload /restored/data/default/t t -loadTable
";

const KNOWN: &[Known] = &[flag("loadTable", ""), flag("", "json")];
/// Where halves of files are written.
const SPLIT_DIR: &str = ".tmp";
const VALIDATE_KEY: &str = "hbase.loadincremental.validate.hfile";
const NOTHING_TO_LOAD: u8 = 255;

/// A file to be loaded.
#[derive(Clone)]
struct Item {
    family: Bytes,
    source: Source,
    path: FilePath,
    /// A half of a file, written by this tool.
    is_half: bool,
    /// Where the Zstandard dictionary of its family is.
    dictionary: Option<Arc<str>>,
}

impl Item {
    fn open(&self, context: ReaderContext) -> anyhow::Result<Arc<Reader>> {
        dictionaries::open(&*self.source.volume, &self.path, self.dictionary.as_deref(), context)
            .with_context(|| format!("{} cannot be read as an HFile", self.shown()))
    }

    fn shown(&self) -> String {
        self.source.shown(&self.path)
    }
}

/// How it is done.
#[derive(Debug, Clone)]
struct Manner {
    config: Config,
    options: BulkLoadOptions,
    by_family: bool,
    fail_if_split: bool,
    max_per_family: usize,
    parallel: usize,
    rounds: usize,
}

impl Manner {
    fn of(config: &Config) -> anyhow::Result<Manner> {
        let is = |key: &str, otherwise: bool| config.text(key).map_or(otherwise, |text| text.trim() == "true");
        let number = |key: &str, otherwise: usize| {
            config.text(key).map_or(Ok(otherwise), |text| super::scan::word::<usize>(key, text))
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Manner {
            config: config.clone(),
            options: BulkLoadOptions {
                assign_seq_ids: is("hbase.mapreduce.bulkload.assign.sequenceNumbers", true),
                copy_files: is("always.copy.files", false),
                replicate: true,
            },
            by_family: is("hbase.mapreduce.bulkload.by.family", false),
            fail_if_split: is("hbase.loadincremental.fail.if.need.split.hfile", false),
            max_per_family: number("hbase.mapreduce.bulkload.max.hfiles.perRegion.perFamily", 32)?,
            parallel: number("hbase.loadincremental.threads.max", cores)?.max(1),
            rounds: number("hbase.bulkload.retries.number", 10)?,
        })
    }
}

/// Entries of a directory, in order: where each is, and whether it is a directory.
fn entries(source: &Source, dir: &FilePath) -> anyhow::Result<Vec<(FilePath, bool)>> {
    let entries = source.volume.list(dir).with_context(|| format!("cannot read {}", source.shown(dir)))?;
    Ok(entries.into_iter().map(|entry| (dir.join(&entry.name), entry.is_dir)).collect())
}

/// Whether a file ends as HFiles do: with a version that there is. Follows: `HFile#isHFileFormat`, which looks no further.
fn ends_as_hfile(source: &Source, path: &FilePath) -> anyhow::Result<bool> {
    let look = || -> fs::Result<bool> {
        let file = source.volume.open(path)?;
        let Some(at) = file.len()?.checked_sub(4) else { return Ok(false) };
        let mut version = [0; 4];
        file.read_exact_at(&mut version, at)?;
        // The first byte is the minor one.
        Ok(matches!(u32::from_be_bytes(version) & 0x00FF_FFFF, 2 | 3))
    };
    look().with_context(|| format!("cannot read {}", source.shown(path)))
}

/// The files of the families' directories in `dir`; `look`: only those that end as HFiles do.
fn of_families(source: &Source, dir: &FilePath, look: bool, found: &mut Vec<Item>) -> anyhow::Result<()> {
    for (family_dir, is_dir) in entries(source, dir)? {
        let (family, shown) = (family_dir.name(), source.shown(&family_dir));
        if !is_dir {
            if !family.starts_with(['_', '.']) {
                eprintln!("bulkload: skipping {shown}: not the directory of a column family");
            }
            continue;
        }
        if family.starts_with('.') || family.contains(':') {
            eprintln!("bulkload: skipping {shown}: not a legal name of a column family");
            continue;
        }
        for (path, is_dir) in entries(source, &family_dir)? {
            let (name, shown) = (path.name(), source.shown(&path));
            // Hadoop's local file system does not show names with a period, and has checksums under such.
            if name.starts_with(['_', '.']) || is_dir {
                continue;
            }
            let parsed = rootdir::FileName::parse(name);
            if parsed.is_some_and(|name| name.parent.is_some() || name.link.is_some()) {
                eprintln!("bulkload: skipping {shown}: a reference or link to a file of another region");
                continue;
            }
            if look && !ends_as_hfile(source, &path)? {
                eprintln!("bulkload: skipping {shown}: it does not seem to be an HFile");
                continue;
            }
            let family = Bytes::from(family.to_owned());
            found.push(Item { family, source: source.clone(), path, is_half: false, dictionary: None });
        }
    }
    Ok(())
}

/// The files to be loaded; `by_regions` where directories of regions stand between.
fn discover(config: &Config, source: &Source, dir: &FilePath, by_regions: bool) -> anyhow::Result<Vec<Item>> {
    let look = config.text(VALIDATE_KEY).is_none_or(|text| text.trim() != "false");
    let dictionary = dictionaries::named(config, None, b"");
    let mut found = Vec::new();
    match by_regions {
        false => of_families(source, dir, look, &mut found)?,
        true => {
            for (region_dir, is_dir) in entries(source, dir)? {
                if is_dir && !region_dir.name().starts_with('.') {
                    of_families(source, &region_dir, look, &mut found)?;
                }
            }
        }
    }
    // A table that is there may say more.
    found.iter_mut().for_each(|item| item.dictionary.clone_from(&dictionary));
    Ok(found)
}

/// First and last row of a file; none where it has no cells.
fn rows_of(item: &Item) -> anyhow::Result<Option<(Bytes, Bytes)>> {
    let reader = item.open(ReaderContext::default())?;
    let (Some(first), Some(last)) = (reader.first_key(), reader.last_key()) else { return Ok(None) };
    let (first, last) = (Bytes::copy_from_slice(first.row()), Bytes::copy_from_slice(last.row()));
    if first > last {
        let (first, last) = (cell::print::to_string_binary(&first), cell::print::to_string_binary(&last));
        bail!("{} is damaged: its first row {first} is after its last row {last}", item.shown());
    }
    Ok(Some((first, last)))
}

/// A table as the files are: their families with their compression, regions between files that do not overlap.
fn table_of(name: &TableName, items: &[Item]) -> anyhow::Result<(TableDescriptor, Vec<Bytes>)> {
    let mut families: BTreeMap<Bytes, FamilyDescriptor> = BTreeMap::new();
    let mut bounds: BTreeMap<Bytes, i64> = BTreeMap::new();
    for item in items {
        let reader = item.open(ReaderContext::default())?;
        let family = families.entry(item.family.clone()).or_insert_with(|| FamilyDescriptor::new(item.family.clone()));
        *family = family.clone().with("COMPRESSION", reader.compression().as_str());
        if let Some((first, last)) = rows_of(item)? {
            *bounds.entry(first).or_default() += 1;
            *bounds.entry(last).or_default() -= 1;
        }
    }
    if families.is_empty() {
        bail!("table {name} does not exist, and there are no HFiles to create it from");
    }
    Ok((TableDescriptor::new(name.clone(), families.into_values()), inferred(&bounds)))
}

/// First rows of regions, but the first's, out of how many files begin and end at each row. Follows: `inferBoundaries`.
fn inferred(bounds: &BTreeMap<Bytes, i64>) -> Vec<Bytes> {
    let (mut open, mut start) = (0, Bytes::new());
    let mut starts = Vec::new();
    for (row, change) in bounds {
        if open == 0 {
            start = row.clone();
        }
        open += change;
        if open == 0 {
            starts.push(start.clone());
        }
    }
    if !starts.is_empty() {
        starts.remove(0);
    }
    starts
}

/// Writes the halves of a file beside it.
fn split(manner: &Manner, family: &FamilyDescriptor, item: &Item, at: &Bytes) -> anyhow::Result<Vec<Item>> {
    let (source, beside) = (&item.source, item.path.parent());
    let dir = if item.is_half { beside } else { beside.join(SPLIT_DIR) };
    source.volume.create_dir_all(&dir).with_context(|| format!("cannot make {}", source.shown(&dir)))?;
    source.open_to_all(&dir)?;
    let name = Rng::from_system().uuid_hex();
    let mut split_key = Vec::new();
    cell::KeyRef::write(&mut split_key, at, b"", b"", i64::MAX, u8::MAX);
    let mut halves = Vec::new();
    for (side, extension) in [(HalfSide::Bottom, "bottom"), (HalfSide::Top, "top")] {
        let half = Half { side, split_key: Bytes::from(split_key.clone()) };
        let context = ReaderContext { half: Some(half), ..ReaderContext::default() };
        let reader = item.open(context)?;
        let path = dir.join(format!("{name}.{extension}"));
        let mut out = OrderedWriter::create(&*source.volume, path.clone(), options_of(&manner.config, family)?)?;
        let options = ScanOptions { cache_blocks: false, pread: false, compaction: true, ..ScanOptions::default() };
        let mut scanner = reader.scanner(options);
        let mut more = scanner.seek_to_first()?;
        let damaged = || format!("{} is damaged", item.shown());
        while more {
            let Some(cell) = scanner.current() else { break };
            out.append(cell).with_context(damaged)?;
            more = scanner.next().with_context(damaged)?;
        }
        for (key, value) in reader.file_info().iter().filter(|(key, _)| is_copied(key)) {
            out.append_file_info(key, value);
        }
        // Major compacted, and whether minor compactions take it, as the whole file was.
        let metadata = StoreMetadata {
            major_compaction: reader.is_major_compacted(),
            exclude_from_minor: Some(reader.exclude_from_minor()),
            ..StoreMetadata::default()
        };
        out.finish(&metadata)?;
        source.open_to_all(&path)?;
        halves.push(Item { path, is_half: true, ..item.clone() });
    }
    if item.is_half {
        source.volume.remove_file(&item.path)?;
    }
    Ok(halves)
}

/// Whether a half has what the whole file says of itself under this key: not what its own writer finds out.
fn is_copied(key: &[u8]) -> bool {
    use file_info::key as k;
    let own = [
        k::KEY_VALUE_VERSION,
        k::MAX_MEMSTORE_TS,
        k::MAX_SEQ_ID,
        k::MAJOR_COMPACTION,
        k::EXCLUDE_FROM_MINOR_COMPACTION,
        k::HISTORICAL,
        k::TIME_RANGE,
        k::EARLIEST_PUT_TS,
        k::BLOOM_FILTER_TYPE,
        k::BLOOM_FILTER_PARAM,
        k::LAST_BLOOM_KEY,
        k::DELETE_FAMILY_COUNT,
        k::DATA_BLOCK_ENCODING,
        k::COMPACTION_EVENT,
    ];
    !key.starts_with(b"hfile.") && !own.contains(&key)
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub files: u64,
    regions: BTreeSet<Bytes>,
    splits: u64,
    rounds: u64,
}

/// Files by the first rows of their regions, and halves that are still to be looked at.
type Groups = (BTreeMap<Bytes, Vec<Item>>, Vec<Item>);

/// One load.
struct Load {
    manner: Arc<Manner>,
    table: Table,
    descriptor: TableDescriptor,
    loaded: Loaded,
}

impl Load {
    /// Looks at every file, on threads that may block: into which region it goes, or splits it.
    async fn group(&mut self, items: Vec<Item>, regions: &[(Bytes, Bytes)]) -> anyhow::Result<Groups> {
        let regions: Arc<[(Bytes, Bytes)]> = regions.into();
        let (mut groups, mut halves) = (BTreeMap::<Bytes, Vec<Item>>::new(), Vec::new());
        let mut waiting = items.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.manner.parallel
                && let Some(item) = waiting.next()
            {
                let (manner, regions) = (self.manner.clone(), regions.clone());
                let family = self.descriptor.families.get(&item.family).cloned();
                let is_later_round = self.loaded.rounds > 1;
                under_way.spawn_blocking(move || group_one(&manner, family.as_ref(), item, &regions, is_later_round));
            }
            match under_way.join_next().await {
                None => return Ok((groups, halves)),
                Some(ended) => match ended.context("looking at a file ended by itself")?? {
                    Grouped::Nothing => {}
                    Grouped::Into(start, item) => groups.entry(start).or_default().push(item),
                    Grouped::Split(more) => {
                        self.loaded.splits += 1;
                        halves.extend(more);
                    }
                },
            }
        }
    }

    /// Loads groups; gives back what did not fit.
    async fn load(&mut self, groups: BTreeMap<Bytes, Vec<Item>>, token: &str) -> anyhow::Result<Vec<Item>> {
        let mut calls: Vec<(Bytes, Vec<Item>)> = Vec::new();
        for (start, items) in groups {
            let mut by_family: BTreeMap<Bytes, Vec<Item>> = BTreeMap::new();
            for item in items {
                by_family.entry(item.family.clone()).or_default().push(item);
            }
            if let Some((family, items)) = by_family.iter().find(|(_, items)| items.len() > self.manner.max_per_family)
            {
                bail!(
                    "{} files are for family {} of the region that begins at \"{}\", more than {}: \
                     hbase.mapreduce.bulkload.max.hfiles.perRegion.perFamily says how many may be",
                    items.len(),
                    cell::print::to_string_binary(family),
                    cell::print::to_string_binary(&start),
                    self.manner.max_per_family
                );
            }
            match self.manner.by_family {
                true => calls.extend(by_family.into_values().map(|items| (start.clone(), items))),
                false => calls.push((start, by_family.into_values().flatten().collect())),
            }
        }
        let mut waiting = calls.into_iter();
        let mut under_way = JoinSet::new();
        let mut again = Vec::new();
        loop {
            while under_way.len() < self.manner.parallel
                && let Some((start, items)) = waiting.next()
            {
                let (table, manner, token) = (self.table.clone(), self.manner.clone(), token.to_owned());
                under_way.spawn(async move {
                    let path = |item: &Item| (item.family.clone(), item.source.text(&item.path));
                    let paths: Vec<(Bytes, String)> = items.iter().map(path).collect();
                    let loaded = table.bulk_load(&start, &paths, &token, &manner.options).await;
                    (start, items, loaded)
                });
            }
            let Some(ended) = under_way.join_next().await else { return Ok(again) };
            let (start, items, loaded) = ended.context("a call ended by itself")?;
            let shown = cell::print::to_string_binary(&start);
            match loaded.with_context(|| format!("{} files of the region that begins at \"{shown}\"", items.len()))? {
                true => {
                    self.loaded.files += items.len() as u64;
                    self.loaded.regions.insert(start);
                    eprintln!("bulkload: loaded {} files", self.loaded.files);
                }
                false => {
                    eprintln!(
                        "bulkload: {} files were not loaded into the region that begins at \"{shown}\"",
                        items.len()
                    );
                    again.extend(items);
                }
            }
        }
    }

    /// Rounds of looking and loading, until all is in.
    async fn rounds(&mut self, mut items: Vec<Item>, token: &str) -> anyhow::Result<()> {
        while !items.is_empty() {
            self.table.forget_locations();
            let regions = self.table.start_end_keys().await?;
            let limit = self.manner.rounds.max(regions.len() + 1) as u64;
            if self.loaded.rounds >= limit {
                bail!(
                    "{} files are not loaded after {} rounds, among them {}: the server's log says why",
                    items.len(),
                    self.loaded.rounds,
                    items.first().map(Item::shown).unwrap_or_default()
                );
            }
            self.loaded.rounds += 1;
            let (groups, halves) = self.group(items, &regions).await?;
            items = self.load(groups, token).await?;
            items.extend(halves);
        }
        Ok(())
    }
}

/// What came of looking at a file.
enum Grouped {
    /// It has no cells, or was loaded by a call whose reply was lost.
    Nothing,
    /// It goes into the region that begins here.
    Into(Bytes, Item),
    /// It was split.
    Split(Vec<Item>),
}

fn group_one(
    manner: &Manner,
    family: Option<&FamilyDescriptor>,
    item: Item,
    regions: &[(Bytes, Bytes)],
    is_later_round: bool,
) -> anyhow::Result<Grouped> {
    if is_later_round && !item.source.volume.exists(&item.path)? {
        eprintln!("bulkload: {} no longer exists: loaded by an earlier try, it seems", item.shown());
        return Ok(Grouped::Nothing);
    }
    let Some((first, last)) = rows_of(&item)? else {
        eprintln!("bulkload: skipping {}: it has no cells", item.shown());
        return Ok(Grouped::Nothing);
    };
    let index = |row: &Bytes| regions.partition_point(|(start, _)| start <= row).checked_sub(1);
    let hole = || {
        let row = cell::print::to_string_binary(&first);
        format!("hbase:meta has a hole where row {row} is: basalt hbck looks for more")
    };
    let of_first = index(&first).with_context(hole)?;
    let (start, end) = &regions[of_first];
    if !end.is_empty() && first >= *end {
        bail!("{}", hole());
    }
    if end.is_empty() || last < *end {
        return Ok(Grouped::Into(start.clone(), item));
    }
    if manner.fail_if_split {
        bail!(
            "{} has rows of several regions, and hbase.loadincremental.fail.if.need.split.hfile is set",
            item.shown()
        );
    }
    let of_last = index(&last).with_context(hole)?;
    let at = &regions[usize::midpoint(of_first, of_last)].1;
    if at.is_empty() || *at <= first || *at > last {
        bail!("{}", hole());
    }
    let family = family.context("a family that the table has")?;
    eprintln!("bulkload: splitting {} at \"{}\"", item.shown(), cell::print::to_string_binary(at));
    Ok(Grouped::Split(split(manner, family, &item, at)?))
}

/// Loads what is in `dir` into a table that is there.
pub(crate) async fn load_dir(
    connection: &Connection,
    config: &Config,
    name: &TableName,
    source: &Source,
    dir: &FilePath,
) -> anyhow::Result<Loaded> {
    let (of_source, of_dir, settings) = (source.clone(), dir.clone(), config.clone());
    let items = tokio::task::spawn_blocking(move || discover(&settings, &of_source, &of_dir, false)).await??;
    load_items(connection, config, name, items).await
}

/// Loads files into a table that is there.
async fn load_items(
    connection: &Connection,
    config: &Config,
    name: &TableName,
    mut items: Vec<Item>,
) -> anyhow::Result<Loaded> {
    let manner = Arc::new(Manner::of(config)?);
    let descriptor = connection.admin().describe(name).await?.with_context(|| format!("there is no table {name}"))?;
    let strange: BTreeSet<String> = items
        .iter()
        .filter(|item| !descriptor.families.contains_key(&item.family))
        .map(|item| cell::print::to_string_binary(&item.family))
        .collect();
    if !strange.is_empty() {
        let known: Vec<String> = descriptor.families.keys().map(|f| cell::print::to_string_binary(f)).collect();
        let said = format!("there are files for the families {strange:?}; table {name} has {known:?}");
        if !config.text("ignore.unmatched.families").is_some_and(|text| text.trim().eq_ignore_ascii_case("yes")) {
            bail!("{said}: -D ignore.unmatched.families=yes passes over them");
        }
        eprintln!("bulkload: {said}");
        items.retain(|item| descriptor.families.contains_key(&item.family));
    }
    for item in &mut items {
        item.dictionary = dictionaries::named(config, Some(&descriptor), &item.family);
    }
    // All of them are looked at before anything is changed.
    let (items, new_dirs) = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
        items.iter().try_for_each(|item| rows_of(item).map(drop))?;
        let mut new_dirs: BTreeMap<FilePath, Source> = BTreeMap::new();
        for item in &items {
            let dir = item.path.parent().join(SPLIT_DIR);
            if !new_dirs.contains_key(&dir) && !item.source.volume.exists(&dir)? {
                new_dirs.insert(dir, item.source.clone());
            }
        }
        Ok((items, new_dirs))
    })
    .await??;
    let table = connection.table(name);
    let token = table.prepare_bulk_load().await?;
    let mut load = Load { manner, table, descriptor, loaded: Loaded::default() };
    let loaded = load.rounds(items, &token).await;
    let cleaned = load.table.cleanup_bulk_load(&token).await;
    if loaded.is_ok() {
        // Halves that were copied; nothing else is in directories that this load made.
        let removed = tokio::task::spawn_blocking(move || {
            new_dirs.iter().for_each(|(dir, source)| drop(source.volume.remove_dir_all(dir)));
        });
        removed.await?;
    }
    loaded?;
    cleaned.context("everything is loaded, but the directory of the load is not removed")?;
    Ok(load.loaded)
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, a file is damaged, or a server refuses it.
pub fn run(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("bulkload", KNOWN, &rest)?;
    let [dir, table] = parsed.rest.as_slice() else { bail!("bulkload: a directory and a table are needed") };
    let (name, by_regions) = (table_name(table)?, parsed.has("loadTable"));
    Manner::of(&config)?;
    let (source, path) = Source::named(opener, &config, dir)?;
    let items = discover(&config, &source, &path, by_regions)?;
    let mut bytes = 0;
    for item in &items {
        bytes += item.source.volume.stat(&item.path)?.map_or(0, |entry| entry.len);
    }
    let create = config.text("create.table").is_none_or(|text| text.trim().eq_ignore_ascii_case("yes")) && !by_regions;
    let settings = config.clone();
    let loaded = on_cluster(&config, |connection| async move {
        let admin = connection.admin();
        if !admin.table_exists(&name).await? {
            if !create {
                bail!("there is no table {name}");
            }
            if items.is_empty() {
                return Ok(Loaded::default());
            }
            let (of_name, of_items) = (name.clone(), items.clone());
            let (table, starts) = tokio::task::spawn_blocking(move || table_of(&of_name, &of_items)).await??;
            admin.create_table(&table, &starts).await?;
            eprintln!("bulkload: table {name} is made, with {} regions", starts.len() + 1);
        }
        if items.is_empty() {
            return Ok(Loaded::default());
        }
        load_items(&connection, &settings, &name, items).await
    })?;
    if loaded.files == 0 {
        eprintln!(
            "basalt: bulkload: nothing was loaded: {} has no HFiles in directories that are called as families",
            source.shown(&path)
        );
        return Ok(ExitCode::from(NOTHING_TO_LOAD));
    }
    match parsed.has("json") {
        true => println!(
            "{}",
            json!({
                "table": table, "files": loaded.files, "regions": loaded.regions.len(), "splits": loaded.splits,
                "rounds": loaded.rounds, "bytes": bytes,
            })
        ),
        false => println!("Loaded {} files into {} regions of {table}", loaded.files, loaded.regions.len()),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_inferred_between_files_that_do_not_overlap() {
        let of = |rows: &[(&'static str, &'static str)]| {
            let mut bounds = BTreeMap::new();
            for (first, last) in rows {
                *bounds.entry(Bytes::from_static(first.as_bytes())).or_default() += 1;
                *bounds.entry(Bytes::from_static(last.as_bytes())).or_default() -= 1;
            }
            inferred(&bounds).iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect::<Vec<_>>()
        };
        // The example of HBase's own test of inferBoundaries.
        let rows = [
            ("a", "e"),
            ("r", "s"),
            ("o", "p"),
            ("g", "k"),
            ("v", "x"),
            ("c", "i"),
            ("m", "q"),
            ("s", "t"),
            ("u", "w"),
        ];
        assert_eq!(of(&rows), ["m", "r", "u"]);
        assert!(of(&[]).is_empty() && of(&[("a", "z")]).is_empty());
    }
}
