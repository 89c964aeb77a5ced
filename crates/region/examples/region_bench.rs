//! Costs of a region's operations without network: `cargo run --release -p basalt-region --example region_bench`.
//! With a number, opens that many empty regions on a local volume in the directory given after it, to be measured from
//! outside (`/usr/bin/time -v`).

use basalt_region::{
    CompactionKind, FlushRequest, Limits, MemoryMeter, OpenRegion, Region, RegionEnv, RegionSettings, Unthrottled,
};
use base::{Clock, Config, Rng, SystemClock};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellSpec, CellType};
use fs::{FilePath, MemVolume, Volume};
use hfile::Residency;
use model::{Durability, FamilyDescriptor, Get, Mutation, MutationKind, RegionInfo, Scan, TableDescriptor, TableName};
use std::sync::Arc;

const ROWS: u64 = 200_000;
const VALUE: [u8; 100] = [b'v'; 100];

fn row(n: u64) -> Bytes {
    // Spread over the key space, as hashed keys are.
    Bytes::from(format!("user{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

fn put(n: u64, durability: Durability) -> Mutation {
    let row = row(n);
    let spec = CellSpec {
        row: &row,
        family: b"f",
        qualifier: b"q",
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value: &VALUE,
        tags: b"",
    };
    let cells = CellBlock::from_specs([spec]);
    Mutation { durability, ..Mutation::new(MutationKind::Put, row, cells) }
}

struct Bench {
    clock: SystemClock,
}

impl Bench {
    fn time(&self, what: &str, count: u64, mut run: impl FnMut(u64)) {
        let start = self.clock.monotonic_us();
        (0..count).for_each(&mut run);
        let micros = self.clock.monotonic_us() - start;
        println!(
            "{what:<52} {:>8.3} us each, {:>10.0}/s",
            micros as f64 / count as f64,
            count as f64 * 1e6 / micros as f64
        );
    }
}

fn gets(bench: &Bench, region: &Arc<Region>, what: &str, residency: Residency) {
    let rng = Rng::seeded(5);
    let mut out = CellBuffer::new();
    bench.time(&format!("get, whole row, {what}"), 200_000, |_| {
        out.clear();
        region.get(&Get::new(row(rng.below(ROWS))), &mut out, residency).expect("read");
        assert_eq!(out.len(), 1);
    });
    bench.time(&format!("get, one column, {what}"), 200_000, |_| {
        out.clear();
        let mut get = Get::new(row(rng.below(ROWS)));
        get.columns.insert(Bytes::from_static(b"f"), vec![Bytes::from_static(b"q")]);
        region.get(&get, &mut out, residency).expect("read");
        assert_eq!(out.len(), 1);
    });
    bench.time(&format!("get, missing row, {what}"), 200_000, |n| {
        out.clear();
        region.get(&Get::new(row(ROWS * 10 + n)), &mut out, residency).expect("read");
    });
}

fn scans(bench: &Bench, region: &Arc<Region>, what: &str) {
    let mut rows = 0u64;
    let start = bench.clock.monotonic_us();
    let mut scanner = region.scanner(&Scan::default()).expect("opened");
    let mut out = CellBuffer::new();
    let mut limits = Limits::NONE.clone();
    while scanner.next(&mut limits, &mut out).expect("read").more {
        rows += 1;
        if out.len() >= 1000 {
            out.clear();
        }
    }
    let micros = bench.clock.monotonic_us() - start;
    println!(
        "scan, {what:<46} {:>8.3} us per row, {:>8.0}/s",
        micros as f64 / rows as f64,
        rows as f64 * 1e6 / micros as f64
    );
}

/// Opens `count` empty regions of three families.
fn empty_regions(count: u64, root: &str) {
    let clock = SystemClock::new();
    let volume: Arc<dyn Volume> = Arc::new(fs::LocalVolume::open(root.as_ref()).expect("a directory"));
    let env = environment(volume.clone());
    let name = TableName::parse("t").expect("legal");
    let table = Arc::new(TableDescriptor::new(name.clone(), ["f", "g", "h"].map(FamilyDescriptor::new)));
    let infos: Vec<RegionInfo> = (0..count)
        .map(|n| RegionInfo::new(name.clone(), Bytes::from(format!("{n:08}")), Bytes::from(format!("{:08}", n + 1)), 1))
        .collect();
    let start = clock.monotonic_us();
    for info in &infos {
        if volume.stat(&rootdir::region_dir(info)).expect("a directory").is_none() {
            Region::create(&env, info, &table).expect("created");
        }
    }
    let created = clock.monotonic_us();
    let regions: Vec<Arc<Region>> = infos
        .into_iter()
        .map(|info| Region::open(OpenRegion { info, table: table.clone(), env: env.clone() }).expect("opened"))
        .collect();
    let opened = clock.monotonic_us();
    println!("{count} regions: made in {} ms, opened in {} ms", (created - start) / 1000, (opened - created) / 1000);
    assert_eq!(regions.len() as u64, count);
}

fn environment(volume: Arc<dyn Volume>) -> Arc<RegionEnv> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let dir = FilePath::new(format!("WALs/s{}", clock.now_ms()));
    let log = wal::Log::create(volume.clone(), dir, "localhost,1,1", wal::LogOptions::default(), clock.clone())
        .expect("a log");
    let mut config = Config::default();
    config.set("hbase.hregion.memstore.flush.size", "1073741824");
    config.set("basalt.hfile.compression.default", "NONE");
    Arc::new(RegionEnv {
        volume,
        log,
        clock,
        rng: Arc::new(Rng::from_system()),
        dictionaries: Arc::default(),
        cache: hfile::BlockCache::new(1 << 30),
        settings: RegionSettings::from_config(&config).shared(),
        memory: MemoryMeter::new(),
        ticks: Arc::default(),
        keys: Arc::default(),
        server_name: model::ServerName::new("localhost", 1, 1),
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, count, root] = &arguments[..] {
        return empty_regions(count.parse().expect("a number of regions"), root);
    }
    let bench = Bench { clock: SystemClock::new() };
    let env = environment(Arc::new(MemVolume::new()));
    let name = TableName::parse("t").expect("legal");
    let table = Arc::new(TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]));
    let info = RegionInfo::new(name, Bytes::new(), Bytes::new(), 1);
    let region = Region::open(OpenRegion { info, table, env }).expect("opened");

    bench.time("put, logged, not waited for (ASYNC_WAL)", ROWS / 2, |n| {
        let applied = region.apply(&[put(n, Durability::AsyncWal)]).expect("applied");
        applied.commit.wait().expect("visible");
    });
    bench.time("put, logged and synced (volume in memory)", ROWS / 4, |n| {
        let applied = region.apply(&[put(ROWS / 2 + n, Durability::SyncWal)]).expect("applied");
        applied.commit.wait().expect("visible");
    });
    bench.time("batch of 100 puts, logged and synced", ROWS / 400, |n| {
        let batch: Vec<Mutation> = (0..100).map(|i| put(ROWS * 3 / 4 + n * 100 + i, Durability::SyncWal)).collect();
        region.apply(&batch).expect("applied").commit.wait().expect("visible");
    });
    gets(&bench, &region, "in memory", Residency::CachedOnly);
    scans(&bench, &region, "in memory");
    region.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("flushed");
    scans(&bench, &region, "one file, warming the cache");
    gets(&bench, &region, "one file", Residency::MayRead);
    scans(&bench, &region, "one file, cached");
    for part in 0..3 {
        for n in (part..ROWS).step_by(10) {
            region.apply(&[put(n, Durability::SkipWal)]).expect("applied").commit.wait().expect("visible");
        }
        region.flush(&FlushRequest { all: true, ..FlushRequest::default() }).expect("flushed");
    }
    scans(&bench, &region, "four files, warming the cache");
    gets(&bench, &region, "four files", Residency::MayRead);
    scans(&bench, &region, "four files, cached");
    let start = bench.clock.monotonic_us();
    let job = region.select_compaction(None, CompactionKind::Major).expect("open").expect("four files");
    let outcome = region.compact(job, &Unthrottled).expect("compacted");
    let micros = bench.clock.monotonic_us() - start;
    println!("major compaction: {:.1} MB/s", outcome.input_bytes as f64 / micros as f64);
    gets(&bench, &region, "one file after compaction", Residency::MayRead);
}
