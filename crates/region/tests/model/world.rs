//! A table's regions, each beside its oracle, and everything that changes files: flush, compaction, reopening, split,
//! merge.

use super::oracle::{Rows, Rules, Run, Store};
use super::reads::FilterUse;
use crate::common::*;
use basalt_region::{CloseMode, Commit, CompactionKind, FlushRequest, Region, Unthrottled, split};
use base::{Clock, Config, Rng};
use bytes::Bytes;
use fs::MemVolume;
use model::{FamilyDescriptor, KeepDeletedCells, RegionInfo, TableDescriptor};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const BASE: i64 = 1_700_000_000_000;
const ENGINE: &str = "hbase.hstore.engine.class";
pub const FAMILIES: [&str; 2] = ["f", "g"];

/// A region and its oracle.
pub struct Half {
    pub info: RegionInfo,
    pub region: Arc<Region>,
    pub stores: BTreeMap<&'static str, Store>,
    /// Written and logged, not yet completed: not visible before a later write is.
    pub pending: Vec<Commit>,
    /// The region's last stamp: no LATEST is stamped earlier, though the clock may step back.
    pub last_stamp: i64,
}

pub struct World {
    pub rng: Rng,
    pub server: Server,
    pub table: Arc<TableDescriptor>,
    /// In the order of their keys.
    pub regions: Vec<Half>,
    pub trace: Vec<String>,
    /// Whether puts go to the column with the empty qualifier; filters then give no hints.
    pub empty_puts: bool,
    pub filters: FilterUse,
    next_region_id: u64,
}

pub fn pick<T: Copy>(rng: &Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

fn random_family(rng: &Rng, name: &'static str) -> (FamilyDescriptor, Rules) {
    let versions = 1 + rng.below(3);
    let min_versions = if rng.one_in(3) { 1 + rng.below(2) } else { 0 };
    let ttl = rng.one_in(3).then_some(10i64);
    let keep =
        pick(rng, &[KeepDeletedCells::False, KeepDeletedCells::False, KeepDeletedCells::True, KeepDeletedCells::Ttl]);
    let by_arrival = rng.one_in(3);
    let mut descriptor = family(name)
        .with("VERSIONS", versions.to_string())
        .with("MIN_VERSIONS", min_versions.to_string())
        .with("KEEP_DELETED_CELLS", keep.as_str())
        .with("NEW_VERSION_BEHAVIOR", by_arrival.to_string())
        .with("BLOCKSIZE", pick(rng, &["200", "700", "65536"]))
        .with("BLOOMFILTER", pick(rng, &["NONE", "ROW", "ROWCOL"]))
        .with("DATA_BLOCK_ENCODING", pick(rng, &["NONE", "NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"]))
        .with("COMPRESSION", pick(rng, &["NONE", "NONE", "SNAPPY"]));
    if rng.one_in(3) {
        // Large values in files of their own: only a filter that looks at values can tell.
        descriptor = descriptor.with("IS_MOB", "true").with("MOB_THRESHOLD", pick(rng, &["0", "2", "8"]));
    }
    if rng.one_in(3) {
        // In stripes of a few rows each, which a store with MOB files does not have.
        descriptor = descriptor.with(ENGINE, "StripeStoreEngine");
        let stripe = |key: &str| format!("hbase.store.stripe.{key}");
        for (key, value) in [
            ("initialStripeCount", pick(rng, &["1", "2", "4"])),
            ("compaction.minFiles", "2"),
            ("compaction.minFilesL0", pick(rng, &["1", "2"])),
            ("compaction.maxFiles", pick(rng, &["2", "10"])),
            ("compaction.flushToL0", pick(rng, &["false", "false", "true"])),
            ("sizeToSplit", pick(rng, &["9000", "14000", "100000"])),
        ] {
            descriptor.configuration.insert(stripe(key), value.to_owned());
        }
    }
    if let Some(seconds) = ttl {
        descriptor = descriptor.with("TTL", seconds.to_string());
    }
    let rules = Rules {
        max_versions: versions as usize,
        min_versions: min_versions as usize,
        ttl_ms: ttl.map(|seconds| seconds * 1000),
        keep,
        by_arrival,
    };
    (descriptor, rules)
}

impl World {
    pub fn new(seed: u64) -> World {
        let rng = Rng::seeded(seed);
        let mut stores = BTreeMap::new();
        let mut families = Vec::new();
        for name in FAMILIES {
            let (descriptor, rules) = random_family(&rng, name);
            families.push(descriptor);
            stores.insert(name, Store::new(rules));
        }
        let mut config = Config::default();
        config.set("hbase.hstore.compaction.min", "2");
        config.set("hbase.hregion.majorcompaction", "0");
        if rng.one_in(2) {
            config.set("hbase.hstore.compaction.keep.seqId.period", "0");
        }
        config.set("hbase.cells.scanned.per.heartbeat.check", "3");
        // The oracle is HBase; what else there is has tests of its own (`ticks.rs`).
        config.set("basalt.hbase.tick.semantics", "true");
        let server = Server::try_on(MemVolume::new(), BASE, &config, seed).expect("a volume in memory");
        let table = Arc::new(TableDescriptor::new(table_name(), families));
        let info = whole_table();
        let region = server.open(&info, &table).expect("a new region opens");
        let whole = Half { info, region, stores, pending: Vec::new(), last_stamp: 0 };
        let next_region_id = BASE as u64 + 1;
        let empty_puts = rng.one_in(2);
        let filters = FilterUse { hints: !empty_puts, values: !table.families.values().any(FamilyDescriptor::is_mob) };
        World { rng, server, table, regions: vec![whole], trace: Vec::new(), empty_puts, filters, next_region_id }
    }

    pub fn now(&self) -> i64 {
        self.server.clock.now_ms().0
    }

    pub fn half_of(&self, row: &[u8]) -> usize {
        self.regions.iter().position(|half| half.info.contains(row)).expect("every row has a region")
    }

    /// Milliseconds that LATEST stands for in a write to that region.
    pub fn stamp(&mut self, at: usize) -> i64 {
        let now = self.now();
        let half = &mut self.regions[at];
        half.last_stamp = half.last_stamp.max(now);
        half.last_stamp
    }

    /// Time passes, or the clock is set back.
    pub fn move_clock(&mut self) {
        if self.rng.one_in(5) {
            let back = self.now() - self.rng.below(2000) as i64;
            self.server.clock.set_wall_ms(back.max(BASE));
        } else {
            self.server.clock.advance_ms(self.rng.below(3000));
        }
        self.trace.push(format!("it is {}", self.now() - BASE));
    }

    pub fn settle(&mut self) {
        for half in &mut self.regions {
            half.pending.drain(..).for_each(|commit| commit.wait().expect("durable"));
        }
    }

    /// One of the ways in which files change; none of them may change what is read.
    pub fn maintain(&mut self) {
        let at = self.rng.below(self.regions.len() as u64) as usize;
        match self.rng.below(20) {
            0..8 => self.flush(at),
            8..16 => self.compact(at),
            16 => self.archive(at),
            17 => self.reopen(at),
            18 => self.split(at),
            _ => self.merge(),
        }
    }

    pub fn flush(&mut self, at: usize) {
        let only = self.rng.one_in(3).then(|| pick(&self.rng, &FAMILIES));
        self.trace.push(format!("flush {at} {only:?}"));
        let families = only.iter().map(|name| Bytes::from(*name)).collect();
        self.regions[at].region.flush(&FlushRequest { families, all: true }).expect("flushed");
        let names: Vec<&str> = only.map_or(FAMILIES.to_vec(), |name| vec![name]);
        let now = self.now();
        self.regions[at].model_flush(&self.server, &names, now);
    }

    pub fn compact(&mut self, at: usize) {
        let name = pick(&self.rng, &FAMILIES);
        let kind = pick(&self.rng, &[CompactionKind::Minor, CompactionKind::Major]);
        self.trace.push(format!("compact {at} {name} {kind:?}"));
        let now = self.now();
        self.regions[at].compact(&self.server, name, kind, now);
    }

    fn archive(&mut self, at: usize) {
        self.regions[at].region.archive_compacted_files().expect("archived");
    }

    fn close(&mut self, at: usize) {
        let now = self.now();
        let half = &mut self.regions[at];
        half.region.close(CloseMode::Flush).expect("closed");
        half.model_flush(&self.server, &FAMILIES, now);
        half.pending.clear();
    }

    fn reopen(&mut self, at: usize) {
        self.trace.push(format!("reopen {at}"));
        self.close(at);
        let half = &mut self.regions[at];
        half.region = self.server.open(&half.info, &self.table).expect("opened");
        half.last_stamp = 0;
    }

    fn id(&mut self) -> u64 {
        self.next_region_id += 1;
        self.next_region_id
    }

    /// Without references to others' files a region may be split or merged.
    fn rewrite_references(&mut self, at: usize) {
        let now = self.now();
        for name in FAMILIES {
            self.regions[at].compact(&self.server, name, CompactionKind::Major, now);
        }
        self.archive(at);
    }

    pub fn split(&mut self, at: usize) {
        let row = super::writes::random_row(&self.rng);
        let parent = self.regions[at].info.clone();
        self.rewrite_references(at);
        let busy = self.regions[at].region.splitter().has_references();
        if self.regions.len() > 3 || row == parent.start_key || !parent.contains(&row) || busy {
            return;
        }
        self.trace.push(format!("split {at} at {}", cell::print::to_string_binary(&row)));
        self.close(at);
        let id = self.id();
        let row = Bytes::from(row);
        let bottom = RegionInfo::new(table_name(), parent.start_key.clone(), row.clone(), id);
        let top = RegionInfo::new(table_name(), row, parent.end_key.clone(), id);
        split::write_daughters(&self.server.env, &parent, &self.table, [&bottom, &top]).expect("split");
        let whole = self.regions.remove(at);
        for (i, info) in [bottom, top].into_iter().enumerate() {
            let daughter = self.successor(info, &[&whole]);
            self.regions.insert(at + i, daughter);
        }
    }

    pub fn merge(&mut self) {
        if self.regions.len() < 2 {
            return;
        }
        let at = self.rng.below(self.regions.len() as u64 - 1) as usize;
        for part in [at, at + 1] {
            self.rewrite_references(part);
            if self.regions[part].region.splitter().has_references() {
                return;
            }
        }
        self.trace.push(format!("merge {at}"));
        self.close(at);
        self.close(at + 1);
        let (left, right) = (self.regions.remove(at), self.regions.remove(at));
        let (start, end) = (left.info.start_key.clone(), right.info.end_key.clone());
        let merged = RegionInfo::new(table_name(), start, end, self.id());
        split::write_merged(&self.server.env, &[&left.info, &right.info], &self.table, &merged).expect("merged");
        let merged = self.successor(merged, &[&left, &right]);
        self.regions.insert(at, merged);
    }

    /// A region made of references and links to the files of closed ones.
    fn successor(&self, info: RegionInfo, parents: &[&Half]) -> Half {
        let region = self.server.open(&info, &self.table).expect("opened");
        let mut stores = BTreeMap::new();
        for name in FAMILIES {
            let mut store = Store::new(parents[0].stores[name].rules.clone());
            for file in file_names(&region, name) {
                let reference = |parent: &&Half| {
                    let encoded = parent.info.encoded_name();
                    let mut runs = parent.stores[name].files.iter();
                    // A parent's file may be another region's already.
                    let is_it = |run: &&Run| file == run.name || file == format!("{}.{encoded}", run.name);
                    runs.find(is_it).cloned()
                };
                let run = parents.iter().find_map(reference).expect("a reference to a parent's file");
                let cells = run.cells.iter().filter(|cell| info.contains(&cell.row)).cloned().collect();
                store.files.push(Run { name: file, cells, ..run });
            }
            let kept: usize = store.files.iter().map(|run| run.cells.len()).sum();
            let cells = parents.iter().flat_map(|parent| parent.stores[name].all_cells());
            assert_eq!(kept, cells.filter(|cell| info.contains(&cell.row)).count(), "a file was left behind");
            stores.insert(name, store);
        }
        Half { info, region, stores, pending: Vec::new(), last_stamp: 0 }
    }
}

impl Half {
    fn model_flush(&mut self, server: &Server, families: &[&'static str], now: i64) {
        let read_point = self.region.smallest_read_point().0;
        for name in families {
            let files = file_names(&self.region, name);
            let new = self.new_files(server, name);
            let store = self.stores.get_mut(name).expect("known");
            if store.memory.cells.is_empty() {
                continue;
            }
            store.flush(&new, now, read_point);
            store.files.sort_by_key(|run| files.iter().position(|file| *file == run.name));
            assert_eq!(files, store.files.iter().map(|run| run.name.clone()).collect::<Vec<_>>());
        }
    }

    fn compact(&mut self, server: &Server, name: &'static str, kind: CompactionKind, now: i64) {
        let job = self.region.select_compaction(Some(name.as_bytes()), kind).expect("open");
        let read_point = self.region.smallest_read_point().0;
        // Files with nothing but expired cells were dropped by the selection.
        let files = file_names(&self.region, name);
        self.stores.get_mut(name).expect("known").files.retain(|run| files.contains(&run.name));
        let Some(job) = job else { return };
        let inputs: Vec<String> = job.file_names().map(by_place).collect();
        let outcome = self.region.compact(job, &Unthrottled).expect("compacted");
        assert!(outcome.completed);
        let files = file_names(&self.region, name);
        let output = self.new_files(server, name);
        assert!(!output.is_empty(), "one at least");
        let store = self.stores.get_mut(name).expect("known");
        store.compact(&inputs, &output, now, read_point);
        if self.region.table().families[name.as_bytes()].overrides().any(|(key, _)| key == ENGINE) {
            // Files of different stripes may be of one age, and one of level 0 between those of a stripe.
            store.files.sort_by_key(|run| files.iter().position(|file| *file == run.name));
        }
        assert_eq!(files, store.files.iter().map(|run| run.name.clone()).collect::<Vec<_>>());
    }

    /// The files that the oracle does not know yet, with the rows that they are for.
    fn new_files(&self, server: &Server, family: &str) -> Vec<(String, Rows)> {
        let paths = self.region.store_file_paths(family.as_bytes()).expect("known");
        let named = file_names(&self.region, family).into_iter().zip(paths);
        let known = |name: &String| self.stores[family].files.iter().any(|run| run.name == *name);
        let rows = |path: &str| {
            let path = fs::FilePath::new(path);
            let file = hfile::Reader::open(&*server.env.volume, &path, hfile::ReaderContext::default());
            let file = file.expect("a store file");
            file.stripe().map_or_else(Rows::default, |(start, end)| Rows(start.to_vec(), end.to_vec()))
        };
        named.filter(|(name, _)| !known(name)).map(|(name, path)| (name, rows(&path))).collect()
    }
}

/// A store file by its name; by `file.region` if its cells are in another region's directory.
fn by_place(name: &str) -> String {
    let rootdir::FileName { link, file, parent } = rootdir::FileName::parse(name).expect("a store file");
    match link.map(|(_, region)| region).or(parent) {
        Some(region) => format!("{file}.{region}"),
        None => file,
    }
}

/// The same of a family's files, oldest first.
fn file_names(region: &Region, family: &str) -> Vec<String> {
    let paths = region.store_file_paths(family.as_bytes()).expect("known");
    let name = |path: String| {
        let mut parts = path.rsplit('/');
        let (file, _family, of) = (parts.next(), parts.next(), parts.next());
        let (file, of) = (file.expect("a file"), of.expect("a region"));
        if of == &**region.name() { file.to_owned() } else { format!("{file}.{of}") }
    };
    paths.into_iter().map(name).collect()
}
