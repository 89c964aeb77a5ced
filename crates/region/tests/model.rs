//! Random programs against the oracle: writes of every kind; flushes, compactions and re-openings in between; Gets and
//! scans of every shape, with the store changing under an open scan. Prints the seed of a failing program.
//!
//! `BASALT_TEST_PROGRAMS=1000 BASALT_TEST_SEED=7 cargo test -p basalt-region --test model` runs more, from another seed.

mod common;
#[path = "model/oracle.rs"]
mod oracle;

use basalt_region::{CloseMode, Commit, CompactionKind, FlushRequest, Limits, Region, RegionScanner, Unthrottled};
use base::{Clock, Config, Dice};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use common::*;
use fs::MemVolume;
use model::{
    FamilyDescriptor, Get, KeepDeletedCells, Mutation, MutationKind, RegionInfo, Scan, TableDescriptor, TimeRange,
};
use oracle::{Ask, Cell, Rules, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const BASE: i64 = 1_700_000_000_000;
const FAMILIES: [&str; 2] = ["f", "g"];

/// Family, qualifier, timestamp, type, value.
type RandomCell = (Vec<u8>, Vec<u8>, i64, CellType, Vec<u8>);

struct Program {
    dice: Dice,
    server: Server,
    table: Arc<TableDescriptor>,
    info: RegionInfo,
    region: Arc<Region>,
    stores: BTreeMap<&'static str, Store>,
    /// Written and logged, not yet completed: not visible before a later write is.
    pending: Vec<Commit>,
    trace: Vec<String>,
}

fn pick<T: Copy>(dice: &Dice, from: &[T]) -> T {
    from[dice.below(from.len() as u64) as usize]
}

fn random_family(dice: &Dice, name: &'static str) -> (FamilyDescriptor, Rules) {
    let versions = 1 + dice.below(3);
    let min_versions = if dice.one_in(3) { 1 + dice.below(2) } else { 0 };
    let ttl = dice.one_in(3).then_some(10i64);
    let keep =
        pick(dice, &[KeepDeletedCells::False, KeepDeletedCells::False, KeepDeletedCells::True, KeepDeletedCells::Ttl]);
    let mut descriptor = family(name)
        .with("VERSIONS", versions.to_string())
        .with("MIN_VERSIONS", min_versions.to_string())
        .with("KEEP_DELETED_CELLS", keep.as_str())
        .with("BLOCKSIZE", pick(dice, &["200", "700", "65536"]))
        .with("BLOOMFILTER", pick(dice, &["NONE", "ROW", "ROWCOL"]))
        .with("DATA_BLOCK_ENCODING", pick(dice, &["NONE", "NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"]))
        .with("COMPRESSION", pick(dice, &["NONE", "NONE", "SNAPPY"]));
    if let Some(seconds) = ttl {
        descriptor = descriptor.with("TTL", seconds.to_string());
    }
    let rules = Rules {
        max_versions: versions as usize,
        min_versions: min_versions as usize,
        ttl_ms: ttl.map(|seconds| seconds * 1000),
        keep,
    };
    (descriptor, rules)
}

impl Program {
    fn new(seed: u64) -> Program {
        let dice = Dice::seeded(seed);
        let mut stores = BTreeMap::new();
        let mut families = Vec::new();
        for name in FAMILIES {
            let (descriptor, rules) = random_family(&dice, name);
            families.push(descriptor);
            stores.insert(name, Store { rules, memory: oracle::Run::default(), files: Vec::new() });
        }
        let mut config = Config::default();
        config.set("hbase.hstore.compaction.min", "2");
        config.set("hbase.hregion.majorcompaction", "0");
        if dice.one_in(2) {
            config.set("hbase.hstore.compaction.keep.seqId.period", "0");
        }
        config.set("hbase.cells.scanned.per.heartbeat.check", "3");
        let server = Server::try_on(MemVolume::new(), BASE, &config, seed).expect("a volume in memory");
        let table = Arc::new(TableDescriptor::new(table_name(), families));
        let info = whole_table();
        let region = server.open(&info, &table).expect("a new region opens");
        Program { dice, server, table, info, region, stores, pending: Vec::new(), trace: Vec::new() }
    }

    fn now(&self) -> i64 {
        self.server.clock.now_ms().0
    }

    fn row(&self) -> Vec<u8> {
        pick(&self.dice, &[&b"a"[..], b"b", b"b\0", b"c", b"cc", b"d", b"e\xff", b"f"]).to_vec()
    }

    fn qualifier(&self) -> Vec<u8> {
        pick(&self.dice, &[&b""[..], b"p", b"q", b"qq", b"r"]).to_vec()
    }

    fn timestamp(&self) -> i64 {
        BASE + self.dice.below(25) as i64 * 1000
    }

    fn value(&self) -> Vec<u8> {
        let len = if self.dice.one_in(10) { 600 } else { self.dice.below(12) };
        let letter = b'a' + self.dice.below(26) as u8;
        vec![letter; len as usize]
    }

    fn random_mutation(&self) -> Mutation {
        let row = self.row();
        let deletes = self.dice.one_in(3);
        let mut cells: Vec<RandomCell> = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            let family = pick(&self.dice, &FAMILIES).as_bytes().to_vec();
            let latest = self.dice.one_in(4);
            let timestamp = if latest { LATEST } else { self.timestamp() };
            if deletes {
                let cell_type = pick(
                    &self.dice,
                    &[CellType::Delete, CellType::DeleteColumn, CellType::DeleteFamily, CellType::DeleteFamilyVersion],
                );
                let of_family = matches!(cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
                let qualifier = if of_family { Vec::new() } else { self.qualifier() };
                cells.push((family, qualifier, timestamp, cell_type, Vec::new()));
            } else {
                cells.push((family, self.qualifier(), timestamp, CellType::Put, self.value()));
            }
        }
        let specs = cells.iter().map(|(family, qualifier, timestamp, cell_type, value)| CellSpec {
            row: &row,
            family,
            qualifier,
            timestamp: *timestamp,
            type_code: cell_type.code(),
            value,
            tags: b"",
        });
        let kind = if deletes { MutationKind::Delete } else { MutationKind::Put };
        let block = if deletes && self.dice.one_in(6) { CellBlock::default() } else { CellBlock::from_specs(specs) };
        Mutation::new(kind, Bytes::from(row), block)
    }

    /// Does to the oracle what the mutation does, under `seq_id`.
    fn model_mutation(&mut self, mutation: &Mutation, seq_id: u64, position: &mut usize) {
        let now = self.now();
        let mut add = |stores: &mut BTreeMap<&'static str, Store>, family: &[u8], cell: Cell| {
            let store = stores.iter_mut().find(|(name, _)| name.as_bytes() == family).expect("known").1;
            store.memory.cells.push(cell);
            *position += 1;
        };
        if mutation.kind == MutationKind::Delete && mutation.cells.is_empty() {
            for name in FAMILIES {
                let cell = Cell {
                    row: mutation.row.to_vec(),
                    qualifier: Vec::new(),
                    timestamp: now,
                    cell_type: CellType::DeleteFamily,
                    seq_id,
                    position: 0,
                    value: Vec::new(),
                };
                add(&mut self.stores, name.as_bytes(), cell);
            }
            return;
        }
        // Deletes of the latest version look at the state before the mutation.
        let before = self.stores.clone();
        let mut latest_seen: BTreeMap<(Vec<u8>, Vec<u8>), usize> = BTreeMap::new();
        for (i, cell) in mutation.cells.iter().enumerate() {
            let cell_type = CellType::from_code(cell.type_code()).expect("known");
            let mut timestamp = if cell.timestamp() == LATEST { now } else { cell.timestamp() };
            if cell_type == CellType::Delete && cell.timestamp() == LATEST {
                let nth = latest_seen.entry((cell.family().to_vec(), cell.qualifier().to_vec())).or_default();
                *nth += 1;
                let store = before.iter().find(|(name, _)| name.as_bytes() == cell.family()).expect("known").1;
                let ask = Ask {
                    versions: *nth,
                    range: TimeRange::ALL,
                    raw: false,
                    columns: Some(BTreeSet::from([cell.qualifier().to_vec()])),
                    offset: 0,
                    limit: None,
                    read_point: u64::MAX,
                };
                let found = store.read_row(&mutation.row, &ask, now);
                if found.len() >= *nth {
                    timestamp = found[*nth - 1].timestamp;
                }
            }
            let made = Cell {
                row: mutation.row.to_vec(),
                qualifier: cell.qualifier().to_vec(),
                timestamp,
                cell_type,
                seq_id,
                position: i,
                value: cell.value().to_vec(),
            };
            add(&mut self.stores, cell.family(), made);
        }
    }

    fn write(&mut self) {
        let mutation = self.random_mutation();
        self.trace.push(format!(
            "write {:?}",
            mutation.cells.iter().map(|c| show(c, BASE).chars().take(45).collect::<String>()).collect::<Vec<_>>()
        ));
        let applied = self.region.apply(std::slice::from_ref(&mutation)).expect("open");
        applied.results.into_iter().for_each(|result| assert!(result.expect("accepted").is_none()));
        let seq_id = applied.commit.seq_id().expect("something was written").0;
        if self.dice.one_in(6) {
            self.trace.push(format!("   {seq_id} stays pending"));
            self.pending.push(applied.commit);
        } else {
            applied.commit.wait().expect("durable");
            assert!(self.region.read_point().0 >= seq_id);
        }
        self.model_mutation(&mutation, seq_id, &mut 0);
    }

    fn change(&mut self) {
        let increments = self.dice.one_in(2);
        let row = self.row();
        let qualifier = if increments { b"n".to_vec() } else { b"s".to_vec() };
        let family = pick(&self.dice, &FAMILIES);
        let amount = self.dice.below(100) as i64 - 50;
        let delta = if increments { amount.to_be_bytes().to_vec() } else { self.value() };
        let spec = CellSpec {
            row: &row,
            family: family.as_bytes(),
            qualifier: &qualifier,
            timestamp: LATEST,
            type_code: CellType::Put.code(),
            value: &delta,
            tags: b"",
        };
        let kind = if increments { MutationKind::Increment } else { MutationKind::Append };
        let mutation = Mutation::new(kind, row.clone(), CellBlock::from_specs([spec]));
        self.trace.push(format!("{kind:?} {family} {}", cell::print::to_string_binary(&row)));
        let now = self.now();
        let ask = Ask {
            versions: 1,
            range: TimeRange::ALL,
            raw: false,
            columns: Some(BTreeSet::from([qualifier.clone()])),
            offset: 0,
            limit: None,
            read_point: u64::MAX,
        };
        let old = self.stores[family].read_row(&row, &ask, now).into_iter().next();
        let written = if increments { self.region.increment(&mutation) } else { self.region.append(&mutation) };
        let written = written.expect("accepted");
        let value = match (&old, increments) {
            (None, _) => delta,
            (Some(old), true) => {
                let before = i64::from_be_bytes(old.value[..].try_into().expect("8 bytes"));
                (before + amount).to_be_bytes().to_vec()
            }
            (Some(old), false) => [&old.value[..], &delta].concat(),
        };
        assert_eq!(written.result.get(0).value(), value);
        let seq_id = written.commit.seq_id().expect("written").0;
        written.commit.wait().expect("durable");
        let made = Cell {
            row,
            qualifier,
            timestamp: old.map_or(now, |old| now.max(old.timestamp + 1)),
            cell_type: CellType::Put,
            seq_id,
            position: 0,
            value,
        };
        self.stores.get_mut(family).expect("known").memory.cells.push(made);
    }

    fn file_names(&self, family: &str) -> Vec<String> {
        let paths = self.region.store_file_paths(family.as_bytes()).expect("known");
        paths.into_iter().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }

    fn flush(&mut self) {
        let only = self.dice.one_in(3).then(|| pick(&self.dice, &FAMILIES));
        self.trace.push(format!("flush {only:?}"));
        let families = only.iter().map(|name| Bytes::from(*name)).collect();
        self.region.flush(&FlushRequest { families, all: true }).expect("flushed");
        let names: Vec<&str> = only.map_or(FAMILIES.to_vec(), |name| vec![name]);
        self.model_flush(&names);
    }

    fn model_flush(&mut self, families: &[&'static str]) {
        let (now, read_point) = (self.now(), self.region.read_point().0);
        for name in families {
            let files = self.file_names(name);
            let store = self.stores.get_mut(name).expect("known");
            if store.memory.cells.is_empty() {
                continue;
            }
            let new = files.iter().find(|file| !store.files.iter().any(|run| run.name == **file));
            store.flush(new.map(String::as_str), now, read_point);
            assert_eq!(files, store.files.iter().map(|run| run.name.clone()).collect::<Vec<_>>());
        }
    }

    fn compact(&mut self) {
        let name = pick(&self.dice, &FAMILIES);
        let kind = pick(&self.dice, &[CompactionKind::Minor, CompactionKind::Major]);
        self.trace.push(format!("compact {name} {kind:?}"));
        let job = self.region.select_compaction(Some(name.as_bytes()), kind).expect("open");
        let (now, read_point) = (self.now(), self.region.read_point().0);
        // Files with nothing but expired cells were dropped by the selection.
        let files = self.file_names(name);
        self.stores.get_mut(name).expect("known").files.retain(|run| files.contains(&run.name));
        let Some(job) = job else { return };
        let inputs: Vec<String> = job.file_names().map(str::to_owned).collect();
        let outcome = self.region.compact(job, &Unthrottled).expect("compacted");
        assert!(outcome.completed);
        let files = self.file_names(name);
        let store = self.stores.get_mut(name).expect("known");
        let output = files.iter().find(|file| !store.files.iter().any(|run| run.name == **file)).expect("a new file");
        store.compact(&inputs, output, now, read_point);
        assert_eq!(files, store.files.iter().map(|run| run.name.clone()).collect::<Vec<_>>());
    }

    fn reopen(&mut self) {
        self.trace.push("reopen".into());
        self.region.close(CloseMode::Flush).expect("closed");
        self.model_flush(&FAMILIES);
        self.pending.clear();
        self.region = self.server.open(&self.info, &self.table).expect("opened");
    }

    fn maintain(&mut self) {
        match self.dice.below(8) {
            0..4 => self.flush(),
            4..7 => self.compact(),
            _ => self.reopen(),
        }
    }

    fn random_scan(&self) -> Scan {
        let dice = &self.dice;
        let mut scan = Scan { reversed: dice.one_in(3), ..Scan::default() };
        if dice.one_in(2) {
            scan.start_row = Bytes::from(self.row());
            scan.include_start_row = !dice.one_in(4);
        }
        if dice.one_in(2) {
            scan.stop_row = Bytes::from(self.row());
            scan.include_stop_row = dice.one_in(3);
        }
        scan.max_versions = pick(dice, &[1, 1, 2, 3, i32::MAX as u32]);
        scan.raw = dice.one_in(5);
        for name in FAMILIES {
            if dice.one_in(2) {
                let wanted = if scan.raw { 0 } else { dice.below(3) };
                let mut columns: Vec<Bytes> = (0..wanted).map(|_| Bytes::from(self.qualifier())).collect();
                columns.sort();
                columns.dedup();
                scan.columns.insert(Bytes::from(name), columns);
            }
        }
        if dice.one_in(4) {
            let min = self.timestamp();
            scan.time_range = TimeRange { min, max: min + 1 + dice.below(8000) as i64 };
        }
        if dice.one_in(5) {
            scan.store_limit = Some(1 + dice.below(3) as u32);
            scan.store_offset = dice.below(2) as u32;
        }
        scan.pread = dice.one_in(2);
        scan
    }

    fn asks(&self, scan: &Scan) -> Vec<(&'static str, Ask)> {
        let wanted = |name: &&'static str| scan.columns.is_empty() || scan.columns.contains_key(name.as_bytes());
        FAMILIES
            .into_iter()
            .filter(wanted)
            .map(|name| {
                let columns = scan.columns.get(name.as_bytes()).filter(|columns| !columns.is_empty());
                let ask = Ask {
                    versions: scan.max_versions as usize,
                    range: scan.time_range,
                    raw: scan.raw,
                    columns: columns.map(|columns| columns.iter().map(|column| column.to_vec()).collect()),
                    offset: scan.store_offset as usize,
                    limit: scan.store_limit.map(|limit| limit as usize),
                    read_point: self.region.read_point().0,
                };
                (name, ask)
            })
            .collect()
    }

    fn expected(&self, scan: &Scan) -> Vec<String> {
        let rows: BTreeSet<Vec<u8>> =
            self.stores.values().flat_map(|store| store.all_cells()).map(|cell| cell.row).collect();
        let mut rows: Vec<Vec<u8>> = rows.into_iter().collect();
        if scan.reversed {
            rows.reverse();
        }
        let before = |a: &[u8], b: &[u8]| if scan.reversed { a > b } else { a < b };
        let mut out = Vec::new();
        for row in rows {
            let early = !scan.start_row.is_empty()
                && (before(&row, &scan.start_row) || (row == scan.start_row[..] && !scan.include_start_row));
            let late = !scan.stop_row.is_empty()
                && (before(&scan.stop_row, &row) || (row == scan.stop_row[..] && !scan.include_stop_row));
            if early || late {
                continue;
            }
            for (name, ask) in self.asks(scan) {
                for cell in self.stores[name].read_row(&row, &ask, self.now()) {
                    out.push(print(name, &cell));
                }
            }
        }
        out
    }

    fn read(&mut self) {
        let scan = self.random_scan();
        self.trace.push(brief(&format!("scan {scan:?}")));
        let expected = self.expected(&scan);
        let mut scanner = self.region.scanner(&scan).expect("opened");
        // The store changes under the open scan; what it sees must not.
        let busy = self.dice.one_in(2);
        let batch_cells = pick(&self.dice, &[0, 0, 1, 3]);
        let (size_bytes, partial_rows) = pick(&self.dice, &[(u64::MAX, false), (1, true), (300, true), (1, false)]);
        let mut seen = Vec::new();
        loop {
            let mut limits = Limits { batch_cells, size_bytes, used_bytes: 0, partial_rows, deadline_us: None };
            let more = step(&mut scanner, &mut limits, &mut seen);
            if !more {
                break;
            }
            if busy {
                match self.dice.below(6) {
                    0 => self.flush(),
                    1 => self.compact(),
                    2 => self.write(),
                    _ => {}
                }
            }
        }
        compare(&seen, &expected);
    }

    fn get(&mut self) {
        let scan = Scan { raw: false, reversed: false, ..self.random_scan() };
        let row = self.row();
        let get = Get {
            columns: scan.columns.clone(),
            max_versions: scan.max_versions,
            time_range: scan.time_range,
            store_limit: scan.store_limit,
            store_offset: scan.store_offset,
            ..Get::new(row.clone())
        };
        self.trace.push(brief(&format!("get {get:?}")));
        let mut expected = Vec::new();
        for (name, ask) in self.asks(&scan) {
            // A scan's raw mode allows no columns; here the columns were chosen for a scan that is not raw or are none.
            let ask = Ask { raw: false, ..ask };
            let cells = self.stores[name].read_row(&row, &ask, self.now());
            expected.extend(cells.iter().map(|cell| print(name, cell)));
        }
        compare(&common::get(&self.region, &get, BASE), &expected);
    }

    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.dice.below(20) {
                0..9 => self.write(),
                9..11 => self.change(),
                11..13 => self.maintain(),
                13 if self.dice.one_in(2) => self.pending.drain(..).for_each(|commit| commit.wait().expect("durable")),
                13 => self.server.clock.advance_ms(self.dice.below(3000)),
                14..17 => self.get(),
                _ => self.read(),
            }
        }
    }
}

fn step(scanner: &mut RegionScanner, limits: &mut Limits, seen: &mut Vec<String>) -> bool {
    let mut out = cell::CellBuffer::new();
    let progress = scanner.next(limits, &mut out).expect("read");
    assert_eq!(progress.cells, out.len());
    assert!(limits.batch_cells == 0 || out.len() <= limits.batch_cells as usize);
    let rows: BTreeSet<&[u8]> = (0..out.len()).map(|i| out.get(i).row()).collect();
    assert!(rows.len() <= 1, "one step gives one row");
    seen.extend(show_all(&out, BASE));
    progress.more
}

/// Without what is as it always is.
fn brief(text: &str) -> String {
    let usual = [
        ", max: 9223372036854775807",
        ", family_time_ranges: {}",
        ", store_limit: None",
        ", store_offset: 0",
        ", filter: None",
        ", cache_blocks: true",
        ", load_column_families_on_demand: None",
        ", allow_partial_results: false",
        ", need_cursor: false",
        ", read_uncommitted: false",
        ", read_point: None",
        ", is_get: false",
        ", batch: None",
        ", max_result_size: None",
        ", timeline: false",
        ", existence_only: false",
    ];
    usual.iter().fold(text.to_owned(), |text, part| text.replace(part, ""))
}

/// Panics at the first difference, with what is around it.
fn compare(seen: &[String], expected: &[String]) {
    if seen == expected {
        return;
    }
    let at = seen.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let around = |cells: &[String]| {
        let near = cells.iter().skip(at.saturating_sub(2)).take(6);
        near.map(|cell| cell.chars().take(50).collect::<String>()).collect::<Vec<_>>()
    };
    panic!(
        "cell {at} differs\n    seen     {:?}\n    expected {:?} ({} and {} cells)",
        around(seen),
        around(expected),
        seen.len(),
        expected.len()
    );
}

fn print(family: &str, cell: &Cell) -> String {
    format!(
        "{}/{family}:{}/{}/{:?}={}",
        cell::print::to_string_binary(&cell.row),
        cell::print::to_string_binary(&cell.qualifier),
        cell.timestamp - BASE,
        cell.cell_type,
        cell::print::to_string_binary(&cell.value)
    )
}

#[test]
fn random_programs_agree_with_the_oracle() {
    let (first, count) = programs(120);
    for seed in first..first + count {
        let mut program = Program::new(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| program.run(150)));
        if let Err(panic) = outcome {
            for (name, store) in &program.stores {
                eprintln!(
                    "{name} {:?}: {}",
                    store.rules,
                    program.table.families[name.as_bytes()].bloom_type().as_str()
                );
                for run in store.files.iter().chain([&store.memory]) {
                    let cells = run.cells.iter().map(|cell| format!("{}#{}", print(name, cell), cell.seq_id));
                    let cells = cells.map(|text| text.chars().take(45).collect::<String>());
                    eprintln!("  [{}] {:?}", run.name, cells.collect::<Vec<_>>());
                }
            }
            let tail = program.trace.len().saturating_sub(60);
            eprintln!("{}", program.trace[tail..].join("\n"));
            eprintln!("again: BASALT_TEST_SEED={seed} BASALT_TEST_PROGRAMS=1 cargo test -p basalt-region --test model");
            std::panic::resume_unwind(panic);
        }
    }
}
