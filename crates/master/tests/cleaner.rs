//! The cleaners against a picture of who needs what: nothing needed is ever deleted, everything else finally is, and a
//! call that fails deletes nothing.

use crate::common::{Catalog, Life, captured_catalog, start, untar};
use basalt_master::Cleaned;
use base::{Config, Rng};
use bytes::Bytes;
use fs::mem::{Fault, Op};
use fs::{FaultKind, FilePath, MemVolume, Volume};
use model::TableName;
use proto::{Message, pb};
use std::collections::{BTreeMap, BTreeSet};

fn config(pairs: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    config.set(crate::common::LENIENT, "true");
    for (key, value) in pairs {
        config.set(*key, *value);
    }
    config
}

fn at_once() -> Config {
    config(&[("hbase.master.hfilecleaner.ttl", "0"), ("hbase.master.logcleaner.ttl", "0")])
}

async fn life(memory: &MemVolume, config: Config) -> Life {
    start(memory, &Catalog::default(), config).await.expect("starts")
}

fn path(text: impl AsRef<str>) -> FilePath {
    FilePath::new(text)
}

fn archived(memory: &MemVolume) -> BTreeSet<String> {
    let files = memory.all_files();
    files.iter().map(|file| file.as_str().to_owned()).filter(|file| file.starts_with("archive/")).collect()
}

/// A store file, link or reference: the file that it stands for, and what it is called.
#[derive(Clone, Debug)]
struct Entry {
    /// Table, region and name of the file with the cells.
    home: (TableName, String, String),
    name: String,
}

#[derive(Clone)]
struct Region {
    table: TableName,
    name: String,
    entries: Vec<Entry>,
    daughters: Vec<String>,
}

impl Region {
    fn dir(&self) -> FilePath {
        rootdir::table_dir(&self.table).join(&self.name).join("f")
    }
}

/// What happened, kept apart from the names in the files.
struct World {
    memory: MemVolume,
    rng: Rng,
    regions: BTreeMap<String, Region>,
    snapshots: BTreeMap<String, Vec<Region>>,
    count: u32,
}

impl World {
    fn new(seed: u64, memory: MemVolume) -> World {
        World { memory, rng: Rng::seeded(seed), regions: BTreeMap::new(), snapshots: BTreeMap::new(), count: 0 }
    }

    fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.rng.below(from.len().max(1) as u64) as usize)
    }

    fn some_region(&self) -> Option<Region> {
        let serving: Vec<&Region> = self.regions.values().filter(|region| region.daughters.is_empty()).collect();
        self.pick(&serving).map(|region| (*region).clone())
    }

    fn put(&self, region: &Region, entry: &Entry) {
        self.memory.put_file(&region.dir().join(&entry.name), b"");
    }

    fn new_file(&self, region: &mut Region) {
        let mut name = self.rng.uuid_hex();
        if self.rng.one_in(4) {
            name.push_str("_SeqId_7_");
        }
        let entry = Entry { home: (region.table.clone(), region.name.clone(), name.clone()), name };
        self.put(region, &entry);
        region.entries.push(entry);
    }

    fn new_region(&mut self, table: TableName) -> Region {
        let region = Region { table, name: self.rng.uuid_hex(), entries: Vec::new(), daughters: Vec::new() };
        self.memory.create_dir_all(&region.dir()).expect("memory");
        region
    }

    fn create(&mut self) {
        let namespace = if self.rng.one_in(2) { "default" } else { "ns" };
        let table = TableName::of(namespace, &format!("t-{}", self.rng.below(3))).expect("legal");
        let mut region = self.new_region(table);
        for _ in 0..=self.rng.below(3) {
            self.new_file(&mut region);
        }
        self.regions.insert(region.name.clone(), region);
    }

    fn archive(&self, region: &Region) {
        let target = path("archive").join(region.dir().as_str());
        self.memory.create_dir_all(&target).expect("memory");
        for entry in &region.entries {
            self.memory.rename(&region.dir().join(&entry.name), &target.join(&entry.name)).expect("memory");
        }
    }

    fn compact(&mut self) {
        let Some(mut region) = self.some_region() else { return };
        self.archive(&region);
        region.entries.clear();
        self.new_file(&mut region);
        self.regions.insert(region.name.clone(), region);
    }

    fn drop_region(&mut self, region: &Region) {
        self.archive(region);
        self.memory.remove_dir_all(&region.dir().parent()).expect("memory");
        self.regions.remove(&region.name);
    }

    fn split(&mut self) {
        let Some(mut parent) = self.some_region() else { return };
        for _ in 0..2 {
            let mut daughter = self.new_region(parent.table.clone());
            for entry in &parent.entries {
                // Half files of half files are not made: a region with references is not split.
                if entry.name.contains('.') {
                    continue;
                }
                let entry = Entry { home: entry.home.clone(), name: format!("{}.{}", entry.name, parent.name) };
                self.put(&daughter, &entry);
                daughter.entries.push(entry);
            }
            parent.daughters.push(daughter.name.clone());
            self.regions.insert(daughter.name.clone(), daughter);
        }
        self.regions.insert(parent.name.clone(), parent);
    }

    /// What the catalog janitor does.
    fn clean_parents(&mut self) {
        let parents: Vec<Region> =
            self.regions.values().filter(|region| !region.daughters.is_empty()).cloned().collect();
        for parent in parents {
            let suffix = format!(".{}", parent.name);
            let refers = |region: &Region| region.entries.iter().any(|entry| entry.name.ends_with(&suffix));
            if !parent.daughters.iter().filter_map(|name| self.regions.get(name)).any(refers) {
                self.drop_region(&parent);
            }
        }
    }

    fn snapshot(&mut self) {
        let Some(of) = self.some_region() else { return };
        let regions: Vec<Region> = self.regions.values().filter(|region| region.table == of.table).cloned().collect();
        self.count += 1;
        let name = format!("s{}", self.count);
        let manifest = pb::SnapshotDataManifest {
            table_schema: schema(&of.table),
            region_manifests: regions.iter().map(region_manifest).collect(),
        };
        let dir = path(".hbase-snapshot").join(&name);
        self.memory.put_file(&dir.join(".snapshotinfo"), b"info");
        self.memory.put_file(&dir.join("data.manifest"), &manifest.encode_to_vec());
        self.snapshots.insert(name, regions);
    }

    fn some_snapshot(&self) -> Option<String> {
        let names: Vec<&String> = self.snapshots.keys().collect();
        self.pick(&names).map(|name| (*name).clone())
    }

    fn delete_snapshot(&mut self) {
        let Some(name) = self.some_snapshot() else { return };
        self.snapshots.remove(&name);
        self.memory.remove_dir_all(&path(".hbase-snapshot").join(&name)).expect("memory");
    }

    fn clone_snapshot(&mut self) {
        let Some(name) = self.some_snapshot() else { return };
        let table = TableName::of("default", &format!("clone_of_{name}")).expect("legal");
        for source in self.snapshots[&name].clone() {
            let mut region = self.new_region(table.clone());
            for entry in source.entries {
                let (of, of_region, file) = &entry.home;
                let prefix = if of.namespace() == "default" { String::new() } else { format!("{}=", of.namespace()) };
                let name = format!("{prefix}{}={of_region}-{file}", of.qualifier());
                let back = path("archive").join(rootdir::table_dir(of).as_str()).join(of_region).join("f");
                let back = back.join(format!(".links-{file}")).join(format!("{}.{}", region.name, table.qualifier()));
                // The link keeps its file with or without what points back at it.
                if !self.rng.one_in(3) {
                    self.memory.put_file(&back, b"");
                }
                let entry = Entry { home: entry.home.clone(), name };
                self.put(&region, &entry);
                region.entries.push(entry);
            }
            self.regions.insert(region.name.clone(), region);
        }
    }

    fn step(&mut self) {
        match self.rng.below(9) {
            0 | 1 => self.create(),
            2 | 3 => self.compact(),
            4 => self.split(),
            5 => self.snapshot(),
            6 => self.delete_snapshot(),
            7 => self.clone_snapshot(),
            _ => {
                if let Some(region) = self.some_region().filter(|region| !self.is_daughter(region)) {
                    self.drop_region(&region);
                }
            }
        }
        self.clean_parents();
    }

    fn is_daughter(&self, region: &Region) -> bool {
        self.regions.values().any(|parent| parent.daughters.contains(&region.name))
    }

    /// Files with cells that somebody needs, wherever they are.
    fn needed(&self) -> BTreeSet<(TableName, String, String)> {
        let live = self.regions.values();
        let all = live.chain(self.snapshots.values().flatten());
        all.flat_map(|region| &region.entries).map(|entry| entry.home.clone()).collect()
    }

    fn check_needed(&self, seed: u64) {
        for (table, region, file) in self.needed() {
            let home = rootdir::table_dir(&table).join(&region).join("f").join(&file);
            let kept = path("archive").join(home.as_str());
            let there = self.memory.exists(&home).expect("memory") || self.memory.exists(&kept).expect("memory");
            assert!(there, "{home} is needed and gone; CLEANER_SEED={seed}");
        }
    }

    fn check_unneeded(&self, seed: u64) {
        let names: BTreeSet<String> = self.needed().into_iter().map(|(_, _, file)| file).collect();
        for file in archived(&self.memory) {
            let of_needed = names.iter().any(|name| file.contains(name.as_str()));
            assert!(of_needed, "{file} is not needed and still there; CLEANER_SEED={seed}");
        }
    }
}

fn schema(table: &TableName) -> pb::TableSchema {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let name = pb::TableName { namespace: bytes(table.namespace()), qualifier: bytes(table.qualifier()) };
    pb::TableSchema { table_name: Some(name), ..pb::TableSchema::default() }
}

fn region_manifest(region: &Region) -> pb::SnapshotRegionManifest {
    let file = |entry: &Entry| pb::snapshot_region_manifest::StoreFile {
        name: entry.name.clone(),
        ..pb::snapshot_region_manifest::StoreFile::default()
    };
    pb::SnapshotRegionManifest {
        family_files: vec![pb::snapshot_region_manifest::FamilyFiles {
            family_name: Bytes::from_static(b"f"),
            store_files: region.entries.iter().map(file).collect(),
        }],
        ..pb::SnapshotRegionManifest::default()
    }
}

#[tokio::test]
async fn nothing_needed_goes_and_everything_else_does() {
    let seeds: Vec<u64> = match std::env::var("CLEANER_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => {
            let runs = std::env::var("CLEANER_RUNS").map_or(12, |runs| runs.parse().expect("a number"));
            (1..=runs).collect()
        }
    };
    let mut deleted = 0;
    for seed in seeds {
        let memory = MemVolume::new();
        let life = life(&memory, at_once()).await;
        let mut world = World::new(seed, memory);
        for _ in 0..25 {
            for _ in 0..=world.rng.below(4) {
                world.step();
            }
            // Some rounds meet a call that fails: they may do less, never harm.
            let fails = world.rng.one_in(3);
            if fails {
                let op = *world.pick(&[Op::List, Op::Open, Op::Read, Op::Stat, Op::RemoveFile]).expect("some");
                let nth = 1 + world.rng.below(40);
                let fault = Fault { op: Some(op), path_contains: None, nth, kind: FaultKind::Io, forever: false };
                world.memory.inject(fault);
            }
            let outcome = life.master.run_cleaners().await;
            world.memory.clear_faults();
            world.check_needed(seed);
            match outcome {
                Ok(cleaned) => {
                    deleted += cleaned.files;
                    world.check_unneeded(seed);
                }
                Err(error) => assert!(fails, "{error}; CLEANER_SEED={seed}"),
            }
        }
    }
    assert!(deleted > 100, "{deleted}");
}

/// A world with something to delete and something to keep.
fn small_world() -> World {
    let memory = MemVolume::new();
    rootdir::root::prepare(&memory, &Rng::seeded(1)).expect("memory");
    let mut world = World::new(7, memory);
    for _ in 0..6 {
        world.create();
    }
    world.snapshot();
    world.clone_snapshot();
    world.split();
    for _ in 0..10 {
        world.compact();
    }
    world.clean_parents();
    world
}

#[tokio::test]
async fn a_call_that_fails_deletes_nothing() {
    let world = small_world();
    // One whole round, to see which calls come before the first that deletes.
    let copy = world.memory.snapshot();
    let whole = life(&copy, at_once()).await;
    copy.record_ops();
    assert!(whole.master.run_cleaners().await.expect("runs").files > 3);
    let ops = copy.op_log();
    let first_remove = ops.iter().position(|call| call.op == Op::RemoveFile).expect("deletes");
    for op in [Op::List, Op::Open, Op::Read, Op::Stat] {
        let calls = ops[..first_remove].iter().filter(|call| call.op == op).count() as u64;
        assert!(calls > 0, "{op:?}");
        for nth in 1..=calls {
            let memory = world.memory.snapshot();
            let life = life(&memory, at_once()).await;
            let before = memory.all_files();
            memory.inject(Fault { op: Some(op), path_contains: None, nth, kind: FaultKind::TimedOut, forever: false });
            let outcome = life.master.run_cleaners().await;
            memory.clear_faults();
            assert_eq!(memory.all_files(), before, "{op:?} {nth} {outcome:?}");
            assert!(
                outcome.is_err(),
                "{op:?} {nth} {:?}",
                ops.iter().filter(|call| call.op == op).nth(nth as usize - 1)
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_understood_stops_the_cleaner() {
    let world = small_world();
    let manifest = path(".hbase-snapshot/s1/data.manifest");
    let whole = world.memory.read(&manifest).expect("memory");
    let empty_region = pb::SnapshotDataManifest {
        table_schema: schema(&TableName::of("default", "t").expect("legal")),
        region_manifests: Vec::new(),
    };
    type Damage<'a> = (&'a str, Box<dyn Fn(&MemVolume) + 'a>);
    let damages: Vec<Damage<'_>> = vec![
        ("cut", Box::new(|memory| memory.truncate(&manifest, whole.len() as u64 - 1))),
        ("empty", Box::new(|memory| memory.truncate(&manifest, 0))),
        (
            "no regions",
            Box::new(|memory| {
                memory.remove_file(&manifest).expect("memory");
                memory.put_file(&manifest, &empty_region.encode_to_vec());
            }),
        ),
        ("none", Box::new(|memory| memory.remove_file(&manifest).expect("memory"))),
        (
            "half a region manifest",
            Box::new(|memory| {
                memory.put_file(&path(".hbase-snapshot/.tmp/s9/region-manifest.abc"), &whole[..whole.len() / 2]);
            }),
        ),
        ("a strange file", Box::new(|memory| memory.put_file(&path(".hbase-snapshot/s1/other"), b"x"))),
        ("a strange snapshot", Box::new(|memory| memory.put_file(&path(".hbase-snapshot/s2"), b"x"))),
        ("an old snapshot", Box::new(|memory| memory.put_file(&path(".hbase-snapshot/s1/region/f/file"), b"x"))),
    ];
    for (name, damage) in damages {
        let memory = world.memory.snapshot();
        let life = life(&memory, at_once()).await;
        damage(&memory);
        let before = archived(&memory);
        let error = life.master.run_cleaners().await.expect_err(name).to_string();
        assert!(error.contains(".hbase-snapshot"), "{name}: {error}");
        assert_eq!(archived(&memory), before, "{name}");
    }
    // Queues and backups of HBase may need what nothing here names.
    for holder in ["data/hbase/replication/x", "data/backup/system/x", "peers/1/x"] {
        let memory = world.memory.snapshot();
        let life = life(&memory, at_once()).await;
        memory.put_file(&path(holder), b"x");
        let before = memory.all_files();
        assert_eq!(life.master.run_cleaners().await.expect("runs"), Cleaned::default());
        assert_eq!(memory.all_files(), before, "{holder}");
    }
}

const FILE: &str = "0123456789abcdef0123456789abcdef";
const REGION: &str = "fedcba98765432100123456789abcdef";

#[tokio::test]
async fn files_of_large_values_go_when_nothing_names_them() {
    let memory = MemVolume::new();
    let life = life(&memory, at_once()).await;
    let dir = "data/default/mobt/a99681ebcb9527f52bbf0c47f4bed766/m";
    let other = FILE.chars().rev().collect::<String>();
    let mob = |id: &str| format!("{FILE}20240101{id}_{REGION}");
    let (gone, linked) = (format!("archive/{dir}/{}", mob(&other)), format!("archive/{dir}/{}", mob(FILE)));
    for file in [&gone, &linked] {
        memory.put_file(&path(file), b"");
    }
    // What still lies among the living, as after a crash between two steps, is a name like any other.
    memory.put_file(&path(format!("mobdir/{dir}/{}", mob(FILE))), b"");
    let round = async || life.master.run_cleaners().await.expect("runs");
    assert_eq!(round().await.files + round().await.files, 1);
    assert_eq!(archived(&memory), BTreeSet::from([linked]));
}

#[tokio::test]
async fn files_are_kept_for_their_time() {
    let memory = MemVolume::new();
    let life = life(&memory, config(&[])).await;
    let in_archive = format!("archive/data/default/t/{REGION}/f/{FILE}");
    let server = "localhost%2C16020%2C5";
    let log = format!("oldWALs/{server}.7");
    let meta_log = format!("oldWALs/localhost,16020,5/{server}.meta.7.meta");
    let master_log = format!("oldWALs/{server}.7$masterlocalwal$");
    let strange = [
        "archive/data/default/t/notes".to_owned(),
        format!("archive/data/default/t/{REGION}/f/{FILE}.part"),
        format!("archive/data/default/t/{REGION}/f/{FILE}20240101{FILE}_{REGION}"),
        format!("archive/data/master/store/{REGION}/proc/{FILE}"),
        format!("archive/other/{FILE}"),
        "oldWALs/notes.txt".to_owned(),
        "oldWALs/pv2-00000000000000000001.log".to_owned(),
    ];
    let master_file = format!("archive/data/master/store/{REGION}/proc/{FILE}$-masterlocalhfile-$");
    let mob_region = "a99681ebcb9527f52bbf0c47f4bed766";
    let mob = format!("archive/data/default/mobt/{mob_region}/m/{FILE}");
    for file in [&in_archive, &log, &meta_log, &master_log, &master_file, &mob].into_iter().chain(&strange) {
        memory.put_file(&path(file), b"");
    }
    let there = |file: &str| memory.exists(&path(file)).expect("memory");
    let round = async || life.master.run_cleaners().await.expect("runs");
    assert_eq!(round().await, Cleaned::default());
    life.clock.advance_ms(299_999);
    // The wall clock does not matter.
    life.clock.set_wall_ms(9_000_000_000_000);
    assert_eq!(round().await, Cleaned::default());
    life.clock.advance_ms(1);
    assert_eq!(round().await, Cleaned { files: 1, logs: 0 });
    assert!(!there(&in_archive) && there(&log));
    life.clock.advance_ms(300_000);
    assert_eq!(round().await, Cleaned { files: 0, logs: 2 });
    assert!(!there(&log) && !there(&meta_log) && there(&master_log));
    life.clock.advance_ms(604_800_000);
    assert!(there(&master_file));
    assert_eq!(round().await, Cleaned { files: 0, logs: 2 });
    assert!(!there(&master_log) && !there(&master_file));
    for file in strange.iter().chain([&mob]) {
        assert!(there(file), "{file}");
    }

    // A file that was needed begins to age when it no longer is.
    memory.put_file(&path(&in_archive), b"");
    let link = format!("data/default/u/{REGION}/f/t={REGION}-{FILE}");
    memory.put_file(&path(&link), b"");
    round().await;
    life.clock.advance_ms(300_000);
    assert_eq!(round().await, Cleaned::default());
    memory.remove_file(&path(&link)).expect("memory");
    assert_eq!(round().await, Cleaned::default());
    life.clock.advance_ms(300_000);
    assert_eq!(round().await.files, 1);

    // Each file has an age of its own; one to which something points back that is not understood stays.
    let other = |digit: char| in_archive.replace("/0123", &format!("/{digit}123"));
    let (younger, pointed_at) = (other('1'), other('2'));
    memory.put_file(&path(&in_archive), b"");
    let (dir, name) = pointed_at.rsplit_once('/').expect("a path");
    memory.put_file(&path(&pointed_at), b"");
    memory.put_file(&path(format!("{dir}/.links-{name}/strange")), b"");
    round().await;
    life.clock.advance_ms(200_000);
    memory.put_file(&path(&younger), b"");
    round().await;
    life.clock.advance_ms(100_000);
    assert_eq!(round().await.files, 1);
    assert!(!there(&in_archive) && there(&younger) && there(&pointed_at));
    life.clock.advance_ms(200_000);
    assert_eq!(round().await.files, 1);
    assert!(!there(&younger) && there(&pointed_at));

    // A restart begins it anew, and a stopped master deletes nothing.
    memory.put_file(&path(&in_archive), b"");
    round().await;
    life.clock.advance_ms(300_000);
    let next = life.restart().await;
    next.master.run_cleaners().await.expect("runs");
    assert!(there(&in_archive));
    assert!(life.master.run_cleaners().await.expect_err("stopped").is_stopped());
    assert!(there(&in_archive));
}

/// `basalt backup` says what its next increment reads: logs, and files that were loaded in bulk. Everything else goes as ever.
#[tokio::test]
async fn what_a_backup_has_yet_to_copy_stays() {
    use rootdir::backup_hold::{self, Hold};
    let memory = MemVolume::new();
    let life = life(&memory, at_once()).await;
    let there = |file: &str| memory.exists(&path(file)).expect("memory");
    let log = |number: u64| format!("oldWALs/a%2C1%2C7.{number}");
    let loaded = |table: &str, n: u64| format!("archive/data/default/{table}/{REGION}/f/{FILE}_SeqId_{n}_");
    let hold = |first: u64, covered: &[u64]| Hold {
        place: "/b".to_owned(),
        tables: ["t".to_owned()].into(),
        logs: [("a,1,7".to_owned(), first)].into(),
        covered: covered.iter().map(|n| format!("{FILE}_SeqId_{n}_")).collect(),
    };
    hold(20, &[3]).publish(&memory, "x").expect("memory");
    let others = [loaded("u", 4), format!("archive/data/default/t/{REGION}/f/{FILE}"), loaded("t", 3), log(19)];
    let meta_log = "oldWALs/a%2C1%2C7.meta.30.meta".to_owned();
    let unknown = "oldWALs/b%2C1%2C7.1".to_owned();
    for file in others.iter().chain([&log(20), &log(21), &loaded("t", 4), &meta_log, &unknown]) {
        memory.put_file(&path(file), b"");
    }
    let round = async || life.master.run_cleaners().await;
    assert_eq!(round().await.expect("runs"), Cleaned { files: 3, logs: 2 });
    for gone in others.iter().chain([&meta_log]) {
        assert!(!there(gone), "{gone}");
    }
    for kept in [&log(20), &log(21), &loaded("t", 4), &unknown] {
        assert!(there(kept), "{kept}");
    }
    // One that cannot be read keeps everything; two keep what either needs.
    memory.put_file(&backup_hold::holds_dir().join("y"), b"basalt-backup-hold 1");
    let error = round().await.expect_err("damaged").to_string();
    assert!(error.contains("backups/y"), "{error}");
    hold(21, &[4]).publish(&memory, "y").expect("memory");
    assert_eq!(round().await.expect("runs"), Cleaned::default());
    backup_hold::release(&memory, "x").expect("memory");
    assert_eq!(round().await.expect("runs"), Cleaned { files: 1, logs: 1 });
    assert!(!there(&log(20)) && there(&log(21)) && !there(&loaded("t", 4)));
    backup_hold::release(&memory, "y").expect("memory");
    assert_eq!(round().await.expect("runs").logs, 2);
}

#[tokio::test]
async fn empty_directories_go_when_nothing_can_come_to_them() {
    let memory = MemVolume::new();
    let life = life(&memory, at_once()).await;
    let live = format!("data/default/kept/{REGION}/f");
    memory.create_dir_all(&path(&live)).expect("memory");
    memory.put_file(&path(format!("archive/{live}/{FILE}")), b"");
    memory.put_file(&path(format!("archive/data/gone/t/{REGION}/f/{FILE}")), b"");
    memory.put_file(&path(format!("archive/data/gone/t/{REGION}/recovered.edits/17.seqid")), b"");
    memory.put_file(&path(format!("archive/data/default/kept/{FILE}/recovered.edits/17")), b"edits");
    assert_eq!(life.master.run_cleaners().await.expect("runs"), Cleaned { files: 2, logs: 0 });
    let there = |dir: &str| memory.exists(&path(dir)).expect("memory");
    assert!(there(&format!("archive/{live}")), "the region may archive to it at any time");
    assert!(!there("archive/data/gone"));
    assert!(there(&format!("archive/data/default/kept/{FILE}/recovered.edits/17")));
    // Large values' files are archived beside the others.
    let mob = "mobdir/data/default/m/a99681ebcb9527f52bbf0c47f4bed766/f";
    memory.put_file(&path(format!("{mob}/x")), b"");
    rootdir::archive_family_dir(&memory, &path(mob)).expect("memory");
    assert!(there("archive/data/default/m/a99681ebcb9527f52bbf0c47f4bed766/f/x"));
}

#[tokio::test]
async fn a_root_directory_of_hbase_keeps_what_its_snapshots_and_clones_need() {
    for tarball in ["rootdir/live-unclosed-wal.tar.gz", "rootdir/after-recovery-clean-stop.tar.gz"] {
        let memory = untar(tarball);
        let life = start(&memory, &captured_catalog(), at_once()).await.expect("starts");
        let files: BTreeSet<String> = memory.all_files().iter().map(|file| file.as_str().to_owned()).collect();
        let cleaned = life.master.run_cleaners().await.expect("runs");
        let now: BTreeSet<String> = memory.all_files().iter().map(|file| file.as_str().to_owned()).collect();
        let gone: BTreeSet<&String> = files.difference(&now).collect();
        assert!(cleaned.files > 20 && gone.len() >= cleaned.files, "{tarball} {cleaned:?}");
        for file in &gone {
            assert!(file.starts_with("archive/data/") || file.starts_with("oldWALs/"), "{tarball} {file}");
        }
        // Every file that a manifest names is somewhere, and every link leads somewhere.
        let plain = |name: &str| name.rsplit('-').next().and_then(|name| name.split('.').next()).map(str::to_owned);
        let mut named = BTreeSet::new();
        for snapshot in memory.list(&path(".hbase-snapshot")).expect("memory") {
            let manifest = path(".hbase-snapshot").join(&snapshot.name).join("data.manifest");
            if !memory.exists(&manifest).expect("memory") {
                continue;
            }
            let bytes = memory.read(&manifest).expect("memory");
            let manifest = pb::SnapshotDataManifest::decode(&bytes[..]).expect("whole");
            let regions = manifest.region_manifests.iter().flat_map(|region| &region.family_files);
            named.extend(regions.flat_map(|family| &family.store_files).filter_map(|file| plain(&file.name)));
        }
        let links = now.iter().filter(|file| file.starts_with("data/") && file.contains('='));
        named.extend(links.filter_map(|file| plain(file)));
        assert!(named.len() > 4, "{tarball} {named:?}");
        for name in named {
            let is_there = |file: &String| file.ends_with(&format!("/{name}"));
            assert!(now.iter().any(is_there), "{tarball} {name} is needed and gone");
        }
        // A second round finds nothing more to do; the back references of the clone are there.
        assert_eq!(life.master.run_cleaners().await.expect("runs"), Cleaned::default());
        assert_eq!(now.iter().filter(|file| file.contains("/.links-")).count(), 2, "{tarball}");
    }
}
