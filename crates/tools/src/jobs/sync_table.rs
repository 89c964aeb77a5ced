//! `basalt synctable`. Follows: `SyncTable`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::{Clock, Config, SystemClock};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellRef, CellSpec, CellType};
use client::{BufferedMutator, Connection, Row, Scanner, Table};
use model::{Durability, Scan};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::copy_table::peer;
use super::import::mutations;
use super::table_hash::{Hasher, Hashes, TableHash};
use super::threads::{Bringer, bringing};
use super::{Part, Work, defines, helped, on_cluster, parallel, table_name};
use crate::arguments::{self, Known, flag, valued};
use crate::files;

const USAGE: &str = "\
Makes a table as another one is, reading of it only what differs by the hashes that hashtable wrote.

Usage: basalt synctable [-D KEY=VALUE]... [OPTIONS] DIRECTORY SOURCE-TABLE TARGET-TABLE

    DIRECTORY                  what hashtable, or HBase's HashTable, wrote of the source table
    --sourcezkcluster=QUORUM   the source's cluster: host[,host...][:port][:/base-node]; the configured one unless given
    --targetzkcluster=QUORUM   the same for the target
    --dryrun=true              counts what differs, and writes nothing
    --doDeletes=false          leaves cells that only the target has
    --doPuts=false             does not write cells that only the source has, or has otherwise
    --ignoreTimestamps=true    times do not matter; what is written is written at the present time
    --check                    ends with 1 where something differed
    --json                     one JSON object
    --help                     this text

Examples:
  basalt hashtable t /hashes/t && basalt synctable --dryrun=true --check --targetzkcluster=zk1,zk2,zk3:2181:/hbase /hashes/t t t
  basalt synctable --doDeletes=false /hashes/t t t_copy
";

const KNOWN: &[Known] = &[
    valued("", "sourcezkcluster"),
    valued("", "targetzkcluster"),
    valued("", "dryrun"),
    valued("", "doDeletes"),
    valued("", "doPuts"),
    valued("", "ignoreTimestamps"),
    flag("", "check"),
    flag("", "json"),
];
/// Bytes that are gathered before they are sent.
const BUFFER_BYTES: usize = 2 << 20;
/// HBase's counters, in the order in which Hadoop prints them.
const COUNTERS: [&str; 14] = [
    "BATCHES",
    "DIFFERENTCELLVALUES",
    "EMPTY_BATCHES",
    "HASHES_MATCHED",
    "HASHES_NOT_MATCHED",
    "MATCHINGCELLS",
    "MATCHINGROWS",
    "RANGESMATCHED",
    "RANGESNOTMATCHED",
    "ROWSWITHDIFFS",
    "SOURCEMISSINGCELLS",
    "SOURCEMISSINGROWS",
    "TARGETMISSINGCELLS",
    "TARGETMISSINGROWS",
];

/// What is the same for all regions.
struct Manner {
    dir: PathBuf,
    hash: TableHash,
    scan: Scan,
    source: Table,
    target: Table,
    dry_run: bool,
    deletes: bool,
    puts: bool,
    ignore_timestamps: bool,
    now_ms: i64,
}

/// Batches of the source, read by a thread.
struct SourceHashes {
    groups: mpsc::Receiver<Vec<(Bytes, Bytes)>>,
    group: std::vec::IntoIter<(Bytes, Bytes)>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl SourceHashes {
    fn open(manner: Arc<Manner>, from: Bytes) -> SourceHashes {
        let (groups, thread) = bringing(move |to: &mut Bringer<(Bytes, Bytes)>| {
            let mut hashes = Hashes::open(&manner.hash, &manner.dir, &from)?;
            while let Some((key, hash)) = hashes.next()? {
                let bytes = key.len() + hash.len();
                if !to.bring((key, hash), bytes) {
                    break;
                }
            }
            Ok(())
        });
        SourceHashes { groups, group: Vec::new().into_iter(), thread: Some(thread) }
    }

    async fn next(&mut self) -> anyhow::Result<Option<(Bytes, Bytes)>> {
        loop {
            if let Some(one) = self.group.next() {
                return Ok(Some(one));
            }
            match self.groups.recv().await {
                Some(group) => self.group = group.into_iter(),
                None => {
                    // Whether that was the end, or damage.
                    if let Some(thread) = self.thread.take() {
                        thread.await.context("reading the hashes ended by itself")??;
                    }
                    return Ok(None);
                }
            }
        }
    }
}

/// A row's cells one by one, though they may come in several results.
struct Cells {
    scanner: Scanner,
    row: Option<Bytes>,
    current: std::vec::IntoIter<CellBlock>,
    ahead: Option<Row>,
}

/// Each cell by itself.
fn one_by_one(row: &Row) -> std::vec::IntoIter<CellBlock> {
    let one = |cell: CellRef<'_>| {
        let mut buffer = CellBuffer::new();
        buffer.push(cell);
        buffer.into_block()
    };
    row.iter().map(one).collect::<Vec<_>>().into_iter()
}

impl Cells {
    fn new(table: &Table, scan: Scan) -> Cells {
        let scanner = table.scan(scan, table.scan_options());
        Cells { scanner, row: None, current: Vec::new().into_iter(), ahead: None }
    }

    async fn result(&mut self) -> anyhow::Result<Option<Row>> {
        loop {
            match self.scanner.next().await? {
                Some(row) if row.is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    /// The next row, past what is left of this one.
    async fn next_row(&mut self) -> anyhow::Result<Option<Bytes>> {
        let mut next = self.ahead.take();
        while next.is_none() {
            match self.result().await? {
                None => {
                    (self.row, self.current) = (None, Vec::new().into_iter());
                    return Ok(None);
                }
                Some(result) if self.row.as_deref() == Some(result.row()) => {}
                Some(result) => next = Some(result),
            }
        }
        let row = next.map(|next| {
            self.current = one_by_one(&next);
            Bytes::copy_from_slice(next.row())
        });
        self.row.clone_from(&row);
        Ok(row)
    }

    /// The row's next cell; none at its end.
    async fn next_cell(&mut self) -> anyhow::Result<Option<CellBlock>> {
        loop {
            if let Some(cell) = self.current.next() {
                return Ok(Some(cell));
            }
            if self.ahead.is_some() || self.row.is_none() {
                return Ok(None);
            }
            match self.result().await? {
                None => return Ok(None),
                Some(result) if self.row.as_deref() == Some(result.row()) => self.current = one_by_one(&result),
                Some(result) => self.ahead = Some(result),
            }
        }
    }
}

fn first(block: &CellBlock) -> Option<CellRef<'_>> {
    block.iter().next()
}

/// None sorts behind everything.
fn some_first<T>(a: Option<T>, b: Option<T>, compare: impl FnOnce(T, T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// One region of the target.
struct Region {
    manner: Arc<Manner>,
    hashes: SourceHashes,
    /// The source's next batch.
    next: Option<(Bytes, Bytes)>,
    /// First row and hash of the source's batch that is under way.
    batch: Option<(Bytes, Bytes)>,
    hasher: Hasher,
    out: BufferedMutator,
    counts: BTreeMap<&'static str, u64>,
}

impl Region {
    fn count(&mut self, name: &'static str, more: u64) {
        *self.counts.entry(name).or_default() += more;
    }

    async fn sync(manner: Arc<Manner>, part: Part) -> anyhow::Result<BTreeMap<&'static str, u64>> {
        let mut region = Region {
            hashes: SourceHashes::open(manner.clone(), part.start.clone()),
            next: None,
            batch: None,
            hasher: Hasher::new(manner.ignore_timestamps),
            out: manner.target.buffered(BUFFER_BYTES),
            counts: BTreeMap::new(),
            manner,
        };
        region.next = region.hashes.next().await?;
        let scan = |start: Bytes, stop: Bytes| Scan { start_row: start, stop_row: stop, ..region.manner.scan.clone() };
        let target = region.manner.target.clone();
        let mut scanner = target.scan(scan(part.start.clone(), part.stop.clone()), target.scan_options());
        while let Some(row) = scanner.next().await? {
            while region.next.as_ref().is_some_and(|(key, _)| row.row() >= &key[..]) {
                region.next_batch().await?;
            }
            region.hash(&row);
        }
        let is_last = part.stop.is_empty();
        while region.next.as_ref().is_some_and(|(key, _)| is_last || *key < part.stop) {
            region.next_batch().await?;
        }
        if region.batch.is_some() {
            // The source's batch may go on in the target's next regions.
            let stop = region.next_start();
            if stop != part.stop {
                let scan = Scan { start_row: part.stop.clone(), stop_row: stop, ..region.manner.scan.clone() };
                let mut scanner = target.scan(scan, target.scan_options());
                while let Some(row) = scanner.next().await? {
                    region.hash(&row);
                }
            }
            region.end_batch().await?;
        }
        region.out.flush().await?;
        Ok(region.counts)
    }

    /// Where the batch that is under way ends.
    fn next_start(&self) -> Bytes {
        match &self.next {
            Some((key, _)) => key.clone(),
            None => Bytes::copy_from_slice(&self.manner.hash.stop_row),
        }
    }

    fn hash(&mut self, row: &Row) {
        if self.batch.is_some() {
            row.iter().for_each(|cell| self.hasher.add(cell));
        }
    }

    async fn next_batch(&mut self) -> anyhow::Result<()> {
        if self.batch.is_some() {
            self.end_batch().await?;
        }
        self.batch = self.next.take();
        self.next = self.hashes.next().await?;
        Ok(())
    }

    async fn end_batch(&mut self) -> anyhow::Result<()> {
        let Some((start, of_source)) = self.batch.take() else { return Ok(()) };
        self.count("BATCHES", 1);
        if self.hasher.bytes == 0 {
            self.count("EMPTY_BATCHES", 1);
        }
        if self.hasher.finish()[..] == of_source[..] {
            self.count("HASHES_MATCHED", 1);
            return Ok(());
        }
        self.count("HASHES_NOT_MATCHED", 1);
        let stop = self.next_start();
        self.sync_range(start, stop).await
    }

    async fn sync_range(&mut self, start: Bytes, stop: Bytes) -> anyhow::Result<()> {
        let scan = Scan { start_row: start, stop_row: stop, ..self.manner.scan.clone() };
        let mut source = Cells::new(&self.manner.source, scan.clone());
        let mut target = Cells::new(&self.manner.target, scan);
        let (mut source_row, mut target_row) = (source.next_row().await?, target.next_row().await?);
        let mut is_same = true;
        while source_row.is_some() || target_row.is_some() {
            let order = some_first(source_row.as_deref(), target_row.as_deref(), |a, b| a.cmp(b));
            is_same &= match order {
                Ordering::Less => {
                    self.count("TARGETMISSINGROWS", 1);
                    self.sync_row(Some(&mut source), None).await?
                }
                Ordering::Greater => {
                    self.count("SOURCEMISSINGROWS", 1);
                    self.sync_row(None, Some(&mut target)).await?
                }
                Ordering::Equal => self.sync_row(Some(&mut source), Some(&mut target)).await?,
            };
            if order.is_le() {
                source_row = source.next_row().await?;
            }
            if order.is_ge() {
                target_row = target.next_row().await?;
            }
        }
        self.count(if is_same { "RANGESMATCHED" } else { "RANGESNOTMATCHED" }, 1);
        Ok(())
    }

    /// Holds a row's cells against each other; whether they are the same.
    async fn sync_row(
        &mut self,
        mut source: Option<&mut Cells>,
        mut target: Option<&mut Cells>,
    ) -> anyhow::Result<bool> {
        async fn next(cells: &mut Option<&mut Cells>) -> anyhow::Result<Option<CellBlock>> {
            match cells {
                Some(cells) => cells.next_cell().await,
                None => Ok(None),
            }
        }
        let manner = self.manner.clone();
        let (puts, deletes) = (!manner.dry_run && manner.puts, !manner.dry_run && manner.deletes);
        let (mut put, mut delete) = (CellBuffer::new(), CellBuffer::new());
        let (mut of_source, mut of_target) = (next(&mut source).await?, next(&mut target).await?);
        let (mut matching, mut is_same) = (0, true);
        loop {
            let (a, b) = (of_source.as_ref().and_then(first), of_target.as_ref().and_then(first));
            if a.is_none() && b.is_none() {
                break;
            }
            let order = some_first(a, b, |a, b| {
                let times = if manner.ignore_timestamps { Ordering::Equal } else { b.timestamp().cmp(&a.timestamp()) };
                a.family().cmp(b.family()).then(a.qualifier().cmp(b.qualifier())).then(times)
            });
            let name = match (order, a, b) {
                (Ordering::Less, ..) => "TARGETMISSINGCELLS",
                (Ordering::Greater, ..) => "SOURCEMISSINGCELLS",
                (_, Some(a), Some(b)) if a.value() == b.value() => "",
                _ => "DIFFERENTCELLVALUES",
            };
            if name.is_empty() {
                matching += 1;
            } else {
                is_same = false;
                match (order, a, b) {
                    (Ordering::Greater, _, Some(cell)) if deletes => {
                        let kind = CellType::Delete.code();
                        let spec = CellSpec { type_code: kind, value: b"", ..spec_of(cell, cell.timestamp()) };
                        delete.push_spec(&spec, base::SeqId(0));
                    }
                    (Ordering::Less | Ordering::Equal, Some(cell), _) if puts => {
                        let at = if manner.ignore_timestamps { manner.now_ms } else { cell.timestamp() };
                        put.push_spec(&spec_of(cell, at), base::SeqId(0));
                    }
                    _ => {}
                }
                self.count(name, 1);
            }
            if order.is_le() {
                of_source = next(&mut source).await?;
            }
            if order.is_ge() {
                of_target = next(&mut target).await?;
            }
            let most = manner.hash.scan_batch as usize;
            for cells in [&mut put, &mut delete] {
                if most > 0 && cells.len() >= most {
                    self.write(std::mem::replace(cells, CellBuffer::new())).await?;
                }
            }
        }
        self.write(put).await?;
        self.write(delete).await?;
        self.count("MATCHINGCELLS", matching);
        self.count(if is_same { "MATCHINGROWS" } else { "ROWSWITHDIFFS" }, 1);
        Ok(is_same)
    }

    async fn write(&mut self, cells: CellBuffer) -> anyhow::Result<()> {
        for mutation in mutations(&cells.into_block(), &HashMap::new(), Durability::UseDefault) {
            self.out.mutate(mutation).await?;
        }
        Ok(())
    }
}

fn spec_of(cell: CellRef<'_>, timestamp: i64) -> CellSpec<'_> {
    CellSpec {
        row: cell.row(),
        family: cell.family(),
        qualifier: cell.qualifier(),
        timestamp,
        type_code: cell.type_code(),
        value: cell.value(),
        tags: cell.tags(),
    }
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, the hashes are damaged, or a table cannot be read or written.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("synctable", KNOWN, &rest)?;
    let [dir, source, target] = parsed.rest.as_slice() else {
        bail!(
            "synctable: a directory of hashes, the source table and the target table are needed; see basalt synctable --help"
        )
    };
    let dir = files::place(dir)?;
    let (from, to) = (table_name(source)?, table_name(target)?);
    let hash = TableHash::read(&dir)?;
    if hash.table != *source {
        eprintln!("synctable: the hashes are of table {}, not of {source}", hash.table);
    }
    let is = |name: &str, otherwise: bool| {
        parsed.value(name).map_or(otherwise, |text| text.trim().eq_ignore_ascii_case("true"))
    };
    let cluster = |name: &str| parsed.value(name).map(peer).transpose().with_context(|| format!("--{name}"));
    let (of_source, of_target) = (cluster("sourcezkcluster")?, cluster("targetzkcluster")?);
    let (dry_run, deletes, puts) = (is("dryrun", false), is("doDeletes", true), is("doPuts", true));
    let ignore_timestamps = is("ignoreTimestamps", false);
    let settings = config.clone();
    let counts = on_cluster(&config, |connection| async move {
        let source = of_source.map_or_else(|| connection.clone(), Connection::open);
        let target = of_target.map_or_else(|| connection.clone(), Connection::open);
        for (connection, name) in [(&source, &from), (&target, &to)] {
            if !connection.admin().table_exists(name).await? {
                bail!("there is no table {name}");
            }
        }
        let scan = hash.scan()?;
        let work = Work::new(&settings, target.table(&to), scan.clone(), "synctable");
        let manner = Arc::new(Manner {
            dir,
            hash,
            scan,
            source: source.table(&from),
            target: target.table(&to),
            dry_run,
            deletes,
            puts,
            ignore_timestamps,
            now_ms: SystemClock::new().now_ms().0,
        });
        let parts = work.parts().await?;
        let count = parts.len();
        let mut waiting = parts.into_iter();
        let mut under_way = JoinSet::new();
        let mut sum: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut done = 0;
        loop {
            while under_way.len() < parallel(&settings)
                && let Some(part) = waiting.next()
            {
                under_way.spawn(Region::sync(manner.clone(), part));
            }
            let Some(ended) = under_way.join_next().await else { return Ok(sum) };
            for (name, more) in ended.context("a part of the work ended by itself")?? {
                *sum.entry(name).or_default() += more;
            }
            done += 1;
            eprintln!("synctable: {done} of {count} regions");
        }
    })?;
    let of = |name: &str| counts.get(name).copied().unwrap_or_default();
    match parsed.has("json") {
        true => {
            let all: serde_json::Map<_, _> =
                COUNTERS.iter().map(|name| ((*name).to_owned(), of(name).into())).collect();
            println!("{}", json!(all));
        }
        false => {
            println!("\torg.apache.hadoop.hbase.mapreduce.SyncTable$SyncMapper$Counter");
            for name in COUNTERS.iter().filter(|name| of(name) > 0) {
                println!("\t\t{name}={}", of(name));
            }
        }
    }
    Ok(ExitCode::from(u8::from(parsed.has("check") && of("ROWSWITHDIFFS") > 0)))
}
