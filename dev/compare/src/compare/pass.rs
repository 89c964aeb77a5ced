//! One pass: a server from an empty directory, every workload in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use base::Rng;
use bytes::Bytes;
use client::{Connection, Options, Table};
use model::{Durability, FamilyDescriptor, Get, TableDescriptor, TableName};
use rustix::process::{Pid, Signal};

use super::disk;
use super::drive::{Pace, Watch, Worker, play};
use super::figures::{MIB, Measured};
use super::workers::{BATCH_ROWS, FAMILY, FilteredScan, FullScan, Gets, Load, Mixed, Puts, RangeScan, Rows, Ycsb};
use crate::server::Site;
use tools::stats::Usage;
use tools::ycsb::binding::Binding;
use tools::ycsb::core::{Core, Player};
use tools::ycsb::measurements::Measurements;
use tools::ycsb::presets::preset;
use tools::ycsb::properties::Properties;

/// How big and how long.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Rows of the table, of 1000 bytes.
    pub rows: u64,
    /// Records of YCSB's table, of ten times 100 bytes.
    pub records: u64,
    /// Measured time of a workload.
    pub measure: Duration,
    /// Time before, not measured.
    pub warm_up: Duration,
    /// CPU time that a server which compiles as it runs (a JVM) gets before anything is measured.
    pub first_warm_up: Duration,
    /// Measured time of the mixed workload.
    pub mixed: Duration,
    /// Measured time at a fixed rate.
    pub fixed_rate: Duration,
    /// Unflushed bytes when the server is killed.
    pub unflushed_bytes: u64,
    /// Regions of each table.
    pub regions: u64,
    /// Clients at the same time, where the workload does not say.
    pub clients: u64,
}

/// What a pass needs to know.
pub struct Pass<'a> {
    /// The server's place.
    pub site: &'a mut Site,
    /// How big and how long.
    pub scale: &'a Scale,
    /// Which run, from 1.
    pub run: u32,
    /// Which workloads; all when empty.
    pub only: &'a [String],
    /// Half of the baseline's top rate, once that is known.
    pub fixed_rate: &'a mut Option<f64>,
    /// Where to record the server's stacks, if that is wanted.
    pub profile: Option<&'a Path>,
    /// Told of each figure as soon as it is there.
    pub say: &'a dyn Fn(&Measured),
    /// What was measured.
    pub measured: Vec<Measured>,
    /// What did not work.
    pub failures: Vec<String>,
    /// For draws.
    pub rng: Rng,
}

/// Every workload, in the order in which it is played, and what it is.
pub const WORKLOADS: &[(&str, &str)] = &[
    ("start", "process start to the first acknowledged put, on an empty directory"),
    ("batch-put", "rows of 1000 bytes into an empty table, 100 to a batch, 4 clients; with flush and compaction"),
    ("get-32", "random gets of cached rows, 32 clients"),
    ("get-1", "random gets of cached rows, 1 client"),
    ("scan-full", "the whole table, 1 client, calls as large as the server gives"),
    ("scan-pe", "the whole table as PerformanceEvaluation scans it: 30 rows a call, 8 clients"),
    ("scan-filtered", "a tenth of the table at a time, a filter at the server takes everything out, 1 client"),
    ("scan-100", "100 rows from a random one on, 32 clients"),
    ("put-32", "single puts to random rows, 32 clients"),
    ("put-1", "single puts to random rows, 1 client"),
    ("put-100", "single puts to random rows, 100 clients"),
    ("fsync-1", "single puts with FSYNC_WAL, 1 client"),
    ("fsync-8", "single puts with FSYNC_WAL, 8 clients"),
    ("fsync-64", "single puts with FSYNC_WAL, 64 clients"),
    ("ycsb-load", "YCSB's loading phase, single inserts, 32 clients"),
    ("ycsb-a", "YCSB A: half reads, half updates, zipfian"),
    ("ycsb-b", "YCSB B: 95 % reads, 5 % updates, zipfian"),
    ("ycsb-c", "YCSB C: reads, zipfian"),
    ("ycsb-f", "YCSB F: half reads, half read-modify-writes, zipfian"),
    ("ycsb-d", "YCSB D: 95 % reads of the latest, 5 % inserts"),
    ("ycsb-e", "YCSB E: 95 % scans of up to 100 records, 5 % inserts"),
    ("mixed", "half gets, 45 % puts, 5 % range scans, 32 clients, while flushes and compactions run"),
    ("fixed-rate", "the same at half of the baseline's top rate; latency from when an operation was due"),
    ("large-get", "random gets of cached rows of 10,000 bytes, 32 clients"),
    ("large-scan", "the whole table of such rows, 1 client"),
    ("large-put", "single puts of such rows, 32 clients"),
    (
        "disk-get",
        "random gets of 1000 bytes that no cache holds, 32 clients; the system's page cache is emptied all the time",
    ),
    ("compaction", "four files of a quarter of the rows each, compacted into one"),
    ("recovery", "kill -9 with unflushed log, start, until a row of every region can be read"),
    ("memory", "most resident memory in all of the above"),
];

/// Workloads for servers that only play those that write.
const WRITES: &[&str] = &[
    "start",
    "batch-put",
    "put-32",
    "put-1",
    "put-100",
    "fsync-1",
    "fsync-8",
    "fsync-64",
    "mixed",
    "fixed-rate",
    "memory",
];

/// Attributes of families among those a table is made with.
const OF_FAMILY: &[&str] = &["BLOCKCACHE"];

impl Pass<'_> {
    /// Plays everything. A workload that fails is noted and passed over; only a server that does not start ends it.
    pub async fn play(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        self.site.spawn()?;
        self.site.ready().await?;
        let connection = self.site.connect();
        self.first_put(&connection, start).await.context("the first put")?;
        if !self.scale.first_warm_up.is_zero() {
            self.warm_up(&connection).await.context("warming up")?;
        }
        let result = self.pe(&connection).await;
        self.note("tables of rows", result);
        let result = self.ycsb(&connection).await;
        self.note("YCSB", result);
        let result = self.large(&connection).await;
        self.note("large values", result);
        let result = self.cold(&connection).await;
        self.note("reads from the disk", result);
        let result = self.compaction(&connection).await;
        self.note("compaction", result);
        drop(connection);
        if self.site.is_ours() {
            let result = self.recovery().await;
            self.note("recovery", result);
        }
        self.summaries();
        Ok(())
    }

    pub(super) fn wants(&self, workload: &str) -> bool {
        let chosen = self.only.is_empty() || self.only.iter().any(|name| workload.starts_with(name.as_str()));
        chosen && (!self.site.contender.only_writes || WRITES.contains(&workload))
    }

    fn note(&mut self, what: &str, result: anyhow::Result<()>) {
        if let Err(error) = result {
            self.fail(format!("{what}: {error:#}"));
        }
    }

    fn fail(&mut self, what: String) {
        let failure = format!("{}, run {}: {what}", self.site.contender.name, self.run);
        eprintln!("      {failure}");
        self.failures.push(failure);
    }

    /// Records the server's stacks under a workload, if that was asked for: for `span`, or until [`stop_recording`].
    fn start_recording(&self, workload: &str, span: Option<Duration>) -> Option<Child> {
        let dir = self.profile.filter(|_| self.wants(workload))?;
        record_stacks(dir, workload, self.site.pid(), span)
    }

    fn record(&mut self, workload: &str, mut measured: Measured) {
        measured.workload = workload.to_owned();
        measured.server.clone_from(&self.site.contender.name);
        measured.run = self.run;
        if measured.errors > 0 {
            self.fail(format!("{workload}: {} operations failed", measured.errors));
        }
        (self.say)(&measured);
        self.measured.push(measured);
    }

    pub(super) fn pace(&self) -> Pace {
        Pace { warm_up: self.scale.warm_up, measure: Some(self.scale.measure), per_second: None }
    }

    pub(super) fn rng(&self) -> Rng {
        Rng::seeded(self.rng.next_u64())
    }

    pub(super) async fn measure<W: Worker>(&mut self, workload: &str, pace: Pace, clients: u64, new: impl Fn() -> W) {
        if !self.wants(workload) {
            return;
        }
        let (warm_up, span) = (pace.warm_up.as_secs_f64(), pace.measure.unwrap_or_default().as_secs_f64());
        eprintln!("  {workload}: {clients} clients begin, are measured after {warm_up} s for {span} s");
        let workers = (0..clients).map(|_| new()).collect();
        let recording = pace.measure.and_then(|span| self.start_recording(workload, Some(pace.warm_up + span)));
        let measured = play(workers, pace, &[self.site.pid()]).await;
        if let Some(mut recording) = recording {
            recording.wait().ok();
        }
        self.record(workload, measured);
    }

    /// A table of the default namespace, made anew.
    pub(super) async fn table(
        &self,
        connection: &Connection,
        name: &str,
        splits: &[Bytes],
        attributes: &[(&'static str, String)],
    ) -> anyhow::Result<Table> {
        let name = TableName::parse(name)?;
        let admin = connection.admin();
        if admin.table_exists(&name).await? {
            if admin.is_enabled(&name).await? {
                admin.disable_table(&name).await?;
            }
            admin.delete_table(&name).await?;
        }
        let family = if name.qualifier() == "usertable" { "family" } else { FAMILY };
        let mut family = FamilyDescriptor::new(family.to_owned());
        for (key, value) in attributes.iter().filter(|(key, _)| OF_FAMILY.contains(key)) {
            family = family.with(key, value.clone());
        }
        let mut descriptor = TableDescriptor::new(name.clone(), [family]);
        for (key, value) in attributes.iter().filter(|(key, _)| !OF_FAMILY.contains(key)) {
            if key.starts_with("hbase.") {
                descriptor.configuration.insert((*key).to_owned(), value.clone());
            } else {
                descriptor.attributes.insert(Bytes::from(*key), Bytes::from(value.clone()));
            }
        }
        admin.create_table(&descriptor, splits).await?;
        Ok(connection.table(&name))
    }

    pub(super) async fn drop_table(&self, connection: &Connection, name: &str) -> anyhow::Result<()> {
        let name = TableName::parse(name)?;
        connection.admin().disable_table(&name).await?;
        connection.admin().delete_table(&name).await?;
        Ok(())
    }

    async fn first_put(&mut self, connection: &Connection, start: Instant) -> anyhow::Result<()> {
        let table = self.table(connection, "first", &[], &[]).await?;
        let rows = Rows::new(1, &self.rng);
        table.put(&rows.put(0, &self.rng, Durability::SyncWal)).await?;
        if self.wants("start") && self.site.is_ours() {
            let took = start.elapsed().as_secs_f64();
            let mut measured = Measured { seconds: took, ..Measured::default() };
            measured.usage = Usage::of(self.site.pid())?;
            measured.extra.insert("seconds_to_first_put".to_owned(), took);
            measured.extra.insert("idle_mib".to_owned(), measured.usage.resident_bytes as f64 / MIB);
            self.record("start", measured);
        }
        self.drop_table(connection, "first").await
    }

    /// Load of every kind on a table of its own, so that a JVM has compiled what is measured later. Counted in the
    /// server's CPU time: on a busy machine a JVM takes longer to get warm.
    async fn warm_up(&mut self, connection: &Connection) -> anyhow::Result<()> {
        let rows = Rows::new(20_000.min(self.scale.rows), &self.rng);
        let table = self.table(connection, "warm", &rows.splits(self.scale.regions), &[]).await?;
        self.load(&table, &rows, rows.count).await;
        let (clients, pid) = (self.scale.clients, self.site.pid());
        // a native server only fills its caches
        let all = self.scale.first_warm_up.mul_f64(if self.site.contender.compiles_as_it_runs() { 1.0 } else { 0.15 });
        let pace = Pace { warm_up: Duration::ZERO, measure: Some(Duration::from_millis(500)), per_second: None };
        let start = Instant::now();
        let begun = Usage::of(pid)?.cpu_ns;
        for round in 0_u32.. {
            let used = Duration::from_nanos(Usage::of(pid)?.cpu_ns.saturating_sub(begun));
            if used >= all || start.elapsed() >= all * 3 {
                break;
            }
            match round % 8 {
                0 | 4 => {
                    let new = |_| Gets(table.clone(), rows.clone(), self.rng());
                    play((0..clients).map(new).collect(), pace, &[pid]).await;
                }
                1 | 5 => {
                    let new = |_| Puts(table.clone(), rows.clone(), self.rng(), Durability::SyncWal);
                    play((0..clients).map(new).collect(), pace, &[pid]).await;
                }
                2 => {
                    play(vec![FullScan::new(&table)], pace, &[pid]).await;
                }
                6 => {
                    play(vec![FilteredScan(table.clone(), rows.clone(), self.rng())], pace, &[pid]).await;
                }
                3 => {
                    let next = Arc::default();
                    let load = (0..4).map(|_| self.loader(&table, &rows, u64::MAX, &next)).collect();
                    play(load, pace, &[pid]).await;
                    connection.admin().flush(&TableName::parse("warm")?).await?;
                }
                _ => {
                    let new = |_| Mixed(table.clone(), rows.clone(), self.rng());
                    play((0..clients).map(new).collect(), pace, &[pid]).await;
                }
            }
        }
        self.drop_table(connection, "warm").await
    }

    fn loader(&self, table: &Table, rows: &Rows, until: u64, next: &Arc<AtomicU64>) -> Load {
        Load { table: table.clone(), rows: rows.clone(), rng: self.rng(), next: next.clone(), until }
    }

    /// Writes the first `until` of `rows` in batches, as fast as can be.
    pub(super) async fn load(&self, table: &Table, rows: &Rows, until: u64) -> Measured {
        let next = Arc::default();
        let workers = (0..4).map(|_| self.loader(table, rows, until, &next)).collect();
        play(workers, Pace { warm_up: Duration::ZERO, measure: None, per_second: None }, &[self.site.pid()]).await
    }

    /// Workloads in the manner of PerformanceEvaluation.
    async fn pe(&mut self, connection: &Connection) -> anyhow::Result<()> {
        let names = ["batch-put", "get", "scan", "put", "fsync", "mixed", "fixed-rate"];
        if !WORKLOADS.iter().any(|(w, _)| names.iter().any(|n| w.starts_with(n)) && self.wants(w)) {
            return Ok(());
        }
        let rows = Rows::new(self.scale.rows, &self.rng);
        let table = self.table(connection, "rows", &rows.splits(self.scale.regions), &[]).await?;
        let name = TableName::parse("rows")?;
        let admin = connection.admin();
        let watch = Watch::start(&[self.site.pid()]);
        let recording = self.start_recording("batch-put", None);
        let mut loaded = self.load(&table, &rows, rows.count).await;
        admin.flush(&name).await?;
        self.settle(connection, &name).await?;
        // with what flush and compaction cost afterwards
        watch.finish(&mut loaded);
        stop_recording(recording);
        // what is compared on disk is the same content in the same number of files
        admin.major_compact(&name).await?;
        self.wait_for_compaction(connection, &name).await?;
        if let Some(bytes) = self.site.compacted_bytes("rows") {
            loaded.extra.insert("bytes_on_disk".to_owned(), bytes as f64);
        }
        if self.wants("batch-put") {
            self.record("batch-put", loaded);
        }
        // everything into the cache, and regions opened to readers
        let everything = FullScan::new(&table);
        play(vec![everything], Pace { warm_up: Duration::ZERO, ..self.pace() }, &[self.site.pid()]).await;

        let (pace, clients, rng) = (self.pace(), self.scale.clients, Rng::seeded(self.rng.next_u64()));
        let rng = || Rng::seeded(rng.next_u64());
        self.measure("get-32", pace, clients, || Gets(table.clone(), rows.clone(), rng())).await;
        self.measure("get-1", pace, 1, || Gets(table.clone(), rows.clone(), rng())).await;
        self.measure("scan-full", pace, 1, || FullScan::new(&table)).await;
        self.measure("scan-pe", pace, 8, || FullScan::in_small_calls(&table)).await;
        self.measure("scan-filtered", pace, 1, || FilteredScan(table.clone(), rows.clone(), rng())).await;
        self.measure("scan-100", pace, clients, || RangeScan(table.clone(), rows.clone(), rng())).await;
        let put = |durability| Puts(table.clone(), rows.clone(), rng(), durability);
        self.measure("put-32", pace, clients, || put(Durability::SyncWal)).await;
        self.measure("put-1", pace, 1, || put(Durability::SyncWal)).await;
        self.measure("put-100", pace, 100, || put(Durability::SyncWal)).await;
        for (workload, clients) in [("fsync-1", 1), ("fsync-8", 8), ("fsync-64", 64)] {
            if !self.wants(workload) {
                continue;
            }
            self.measure(workload, pace, clients, || put(Durability::FsyncWal)).await;
            // right beside it: what a shared disk allows changes by the minute
            let dir = self.site.table_dir("rows").and_then(|dir| dir.parent().map(Path::to_owned));
            let allowed = match dir {
                Some(dir) => disk::grouped_syncs_per_second(&dir, clients as usize, self.scale.measure / 4)?,
                None => continue,
            };
            if let Some(last) = self.measured.last_mut() {
                last.extra.insert("disk_allows_per_second".to_owned(), allowed);
                let share = last.operations as f64 / last.seconds / allowed;
                last.extra.insert("share_of_disk".to_owned(), share);
            }
        }
        let churn = tokio::spawn(churn(connection.clone(), name.clone()));
        let new = || Mixed(table.clone(), rows.clone(), rng());
        self.measure("mixed", Pace { measure: Some(self.scale.mixed), ..pace }, clients, new).await;
        if self.fixed_rate.is_none() {
            let top = self.measured.iter().find(|m| m.workload == "mixed");
            *self.fixed_rate = top.map(|m| m.operations as f64 / m.seconds / 2.0);
        }
        if let (Some(per_second), true) = (*self.fixed_rate, self.wants("fixed-rate")) {
            let pace = Pace { per_second: Some(per_second), measure: Some(self.scale.fixed_rate), ..pace };
            self.measure("fixed-rate", pace, clients * 2, new).await;
            if let Some(last) = self.measured.last_mut() {
                last.extra.insert("per_second_asked".to_owned(), per_second);
            }
        }
        churn.abort();
        self.settle(connection, &name).await?;
        self.drop_table(connection, "rows").await
    }

    /// Waits until the table's files have stopped changing.
    pub(super) async fn settle(&self, connection: &Connection, name: &TableName) -> anyhow::Result<()> {
        self.wait_for_compaction(connection, name).await?;
        let Some(mut before) = self.site.table_bytes(name.qualifier()) else { return Ok(()) };
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = self.site.table_bytes(name.qualifier()).unwrap_or(before);
            if now == before && !connection.admin().is_compacting(name).await? {
                return Ok(());
            }
            before = now;
        }
        Ok(())
    }

    pub(super) async fn wait_for_compaction(&self, connection: &Connection, name: &TableName) -> anyhow::Result<()> {
        let start = Instant::now();
        // a request that was only just made may not be under way
        tokio::time::sleep(Duration::from_millis(150)).await;
        while connection.admin().is_compacting(name).await? {
            if start.elapsed() > Duration::from_secs(300) {
                bail!("{name} is still compacted after 5 minutes");
            }
            // Asking costs the server time, too, which counts as the compaction's.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// YCSB's workloads, in the order that its authors recommend, but F before D: D and E insert.
    async fn ycsb(&mut self, connection: &Connection) -> anyhow::Result<()> {
        let names = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f", "ycsb-d", "ycsb-e"];
        if !names.iter().any(|n| self.wants(n)) && !self.wants("ycsb-load") {
            return Ok(());
        }
        let regions = self.scale.regions;
        let splits: Vec<Bytes> =
            (1..regions).map(|n| Bytes::from(format!("user{}", 1000 + n * 8999 / regions))).collect();
        let table = self.table(connection, "usertable", &splits, &[]).await?;
        let mut records = self.scale.records;
        let left = Arc::new(AtomicU64::new(records));
        let (core, workers) = self.ycsb_clients("workloada", records, &table, Some(&left))?;
        drop(core);
        let pace = Pace { warm_up: Duration::ZERO, measure: None, per_second: None };
        let loaded = play(workers, pace, &[self.site.pid()]).await;
        if self.wants("ycsb-load") {
            self.record("ycsb-load", loaded);
        }
        for name in names {
            if !self.wants(name) {
                continue;
            }
            let letter = name.strip_prefix("ycsb-").unwrap_or(name);
            let (core, workers) = self.ycsb_clients(&format!("workload{letter}"), records, &table, None)?;
            let recording = self.start_recording(name, None);
            let measured = play(workers, self.pace(), &[self.site.pid()]).await;
            stop_recording(recording);
            self.record(name, measured);
            records = u64::try_from(core.inserted.last() + 1).unwrap_or(records);
        }
        self.drop_table(connection, "usertable").await
    }

    fn ycsb_clients(
        &self,
        workload: &str,
        records: u64,
        table: &Table,
        to_load: Option<&Arc<AtomicU64>>,
    ) -> anyhow::Result<(Arc<Core>, Vec<Ycsb>)> {
        let mut properties = Properties::default();
        properties.read(preset(workload).with_context(|| format!("no workload {workload}"))?);
        properties.set("recordcount", &records.to_string());
        // only for how many inserts are to be expected
        properties.set("operationcount", "100000");
        properties.set("columnfamily", "family");
        properties.set("durability", "SYNC_WAL");
        let core = Arc::new(Core::new(&properties)?);
        let measurements = Arc::new(Measurements::new(&properties)?);
        let worker = |_| -> anyhow::Result<Ycsb> {
            Ok(Ycsb {
                player: Player::new(core.clone(), self.rng()),
                core: core.clone(),
                binding: Binding::new(table.clone(), &properties)?,
                measurements: measurements.clone(),
                to_load: to_load.cloned(),
            })
        };
        let workers = (0..self.scale.clients).map(worker).collect::<anyhow::Result<_>>()?;
        Ok((core, workers))
    }

    /// Four files of known content, rewritten as one.
    async fn compaction(&mut self, connection: &Connection) -> anyhow::Result<()> {
        if !self.wants("compaction") || !self.site.is_ours() {
            return Ok(());
        }
        // no compaction but the one that is asked for; one region, so that there is one file to write
        let attributes = [("hbase.hstore.compaction.min", "100".to_owned())];
        let rows = Rows::new(self.scale.rows, &self.rng);
        let table = self.table(connection, "compacted", &[], &attributes).await?;
        let name = TableName::parse("compacted")?;
        for quarter in 0..4 {
            let next = Arc::new(AtomicU64::new(rows.count / 4 * quarter / BATCH_ROWS * BATCH_ROWS));
            let until =
                if quarter == 3 { rows.count } else { rows.count / 4 * (quarter + 1) / BATCH_ROWS * BATCH_ROWS };
            let workers = (0..4).map(|_| self.loader(&table, &rows, until, &next)).collect();
            play(workers, Pace { warm_up: Duration::ZERO, measure: None, per_second: None }, &[self.site.pid()]).await;
            connection.admin().flush(&name).await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let bytes = self.site.table_bytes("compacted").unwrap_or_default();
        let mut measured = Measured::default();
        let recording = self.start_recording("compaction", None);
        let (watch, start) = (Watch::start(&[self.site.pid()]), Instant::now());
        connection.admin().major_compact(&name).await?;
        self.wait_for_compaction(connection, &name).await?;
        measured.seconds = start.elapsed().as_secs_f64();
        watch.finish(&mut measured);
        stop_recording(recording);
        let mb = bytes as f64 / 1e6;
        measured.extra.insert("mb".to_owned(), mb);
        measured.extra.insert("mb_per_s".to_owned(), mb / measured.seconds);
        if measured.usage.cpu_ns > 0 {
            measured.extra.insert("mb_per_cpu_s".to_owned(), mb / (measured.usage.cpu_ns as f64 / 1e9));
        }
        self.record("compaction", measured);
        self.drop_table(connection, "compacted").await
    }

    /// Kills the server with log that no store file holds, and waits for its rows.
    async fn recovery(&mut self) -> anyhow::Result<()> {
        if !self.wants("recovery") {
            return Ok(());
        }
        let connection = self.site.connect();
        let rows = Rows::new((self.scale.unflushed_bytes / 1_100).max(1_000), &self.rng);
        // no flush by size
        let attributes = [("MEMSTORE_FLUSHSIZE", (64_u64 << 30).to_string())];
        let splits = rows.splits(self.scale.regions);
        let table = self.table(&connection, "recovered", &splits, &attributes).await?;
        self.load(&table, &rows, rows.count).await;
        let flushed = self.site.table_bytes("recovered").unwrap_or_default();
        drop((table, connection));
        self.site.kill();
        let start = Instant::now();
        self.site.spawn()?;
        let mut firsts: Vec<Bytes> = vec![Bytes::from(Rows::key(0))];
        firsts.extend(splits);
        let options = Options {
            retries: 1,
            pause: Duration::from_millis(10),
            rpc_timeout: Duration::from_secs(2),
            operation_timeout: Duration::from_secs(4),
            ..Options::zookeeper(&self.site.zookeeper())
        };
        let name = TableName::parse("recovered")?;
        let mut connection = Connection::open(options.clone());
        while let Some(row) = firsts.last().cloned() {
            let get = connection.table(&name);
            match tokio::time::timeout(Duration::from_secs(5), get.get(&Get::new(row))).await {
                Ok(Ok(row)) if !row.is_empty() => {
                    firsts.pop();
                }
                Ok(Ok(_)) => bail!("a row was lost"),
                _ if start.elapsed() > Duration::from_secs(300) => bail!("no service 5 minutes after kill -9"),
                _ => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    connection = Connection::open(options.clone());
                }
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let mut measured = Measured { seconds, usage: Usage::of(self.site.pid())?, ..Measured::default() };
        measured.extra.insert("seconds_to_serve".to_owned(), seconds);
        measured.extra.insert("unflushed_mib".to_owned(), rows.count as f64 * 1_100.0 / MIB);
        measured.extra.insert("flushed_mib".to_owned(), flushed as f64 / MIB);
        // and nothing is missing
        let table = self.site.connect().table(&name);
        for _ in 0..1_000 {
            let row = table.get(&Get::new(Rows::key(self.rng.below(rows.count)))).await?;
            measured.errors += u64::from(row.is_empty());
        }
        self.record("recovery", measured);
        Ok(())
    }

    /// Figures that follow from several workloads of this pass.
    fn summaries(&mut self) {
        let rate = |name: &str| {
            let found = self.measured.iter().find(|m| m.workload == name);
            found.map(|m| m.operations as f64 / m.seconds)
        };
        let against_one = rate("put-100").zip(rate("put-1")).map(|(many, one)| many / one);
        if let (Some(ratio), Some(m)) = (against_one, self.measured.iter_mut().find(|m| m.workload == "put-100")) {
            m.extra.insert("against_one_thread".to_owned(), ratio);
        }
        let peak = self.measured.iter().map(|m| m.usage.peak_bytes).max().unwrap_or_default();
        if peak > 0 && self.wants("memory") && self.site.is_ours() {
            let share = peak as f64 / self.site.contender.memory_bytes as f64;
            let extra =
                BTreeMap::from([("share_of_budget".to_owned(), share), ("peak_mib".to_owned(), peak as f64 / MIB)]);
            self.record("memory", Measured { extra, ..Measured::default() });
        }
    }
}

/// Ends a recording that has no end of its own.
fn stop_recording(recording: Option<Child>) {
    if let Some(mut recording) = recording {
        // it writes its file to the end when it is interrupted
        rustix::process::kill_process(Pid::from_child(&recording), Signal::INT).ok();
        recording.wait().ok();
    }
}

/// Starts `perf` on the server; it ends by itself after `span`, without one when it is interrupted.
fn record_stacks(dir: &Path, workload: &str, pid: u32, span: Option<Duration>) -> Option<Child> {
    let seconds = span.map_or("infinity".to_owned(), |span| span.as_secs_f64().to_string());
    let mut perf = Command::new("perf");
    // a virtual machine may count no cycles; its clock ticks
    perf.args(["record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-p"]).arg(pid.to_string()).arg("-o");
    perf.arg(dir.join(format!("{workload}.data"))).args(["--", "sleep"]).arg(seconds);
    match perf.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            eprintln!("      cannot run perf: {error}");
            None
        }
    }
}

/// Flushes every other second, compacts everything every tenth.
async fn churn(connection: Connection, table: TableName) {
    let admin = connection.admin();
    for round in 1_u32.. {
        tokio::time::sleep(Duration::from_secs(2)).await;
        // a server too busy to flush says so in its latencies
        admin.flush(&table).await.ok();
        if round % 5 == 0 {
            admin.major_compact(&table).await.ok();
        }
    }
}
