//! Cells in any order become HFiles that a bulk load takes: sorted in memory, spilled, merged, cut at the regions' bounds. Follows:
//! `HFileOutputFormat2`, `PutSortReducer`, `CellSortReducer`, `TotalOrderPartitioner`.
//!
//! Always true: at most [`SORT_MB_KEY`] of cells are in memory; of cells with the same key the one added last stays; the directory is not there
//! before, and not after a failure. Cells that come with sequence ids are ordered by them under the same key, whenever they were added; the
//! files have none.

use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::{Clock, Config, Rng, SeqId, SystemClock, TimestampMs};
use bytes::Bytes;
use cell::{CellBuffer, CellRef, KeyRef, Order};
use fs::{FilePath, Volume};
use hfile::file_info::key;
use hfile::{Reader, ReaderContext, ScanOptions, Scanner, StoreMetadata, Writer, WriterOptions};
use model::{FamilyDescriptor, TableDescriptor};

use crate::files;

/// Megabytes of cells that are sorted in memory.
pub(crate) const SORT_MB_KEY: &str = "mapreduce.task.io.sort.mb";
const SORT_MB: usize = 100;
/// Where what does not fit is, until the end.
const SPILL_DIR: &str = "_temporary";
/// A file is ended behind the row that reaches so many bytes (`hbase.hregion.max.filesize`).
const MAX_FILE_BYTES: u64 = 10 << 30;

/// How a file of a family is written, as its descriptor says and, over it, the settings of HBase's output of HFiles.
///
/// # Errors
/// A setting that makes no sense.
pub(crate) fn options_of(config: &Config, family: &FamilyDescriptor) -> anyhow::Result<WriterOptions> {
    const COMPRESSION: &str = "hbase.mapreduce.hfileoutputformat.compression";
    const ENCODING: &str = "hbase.mapreduce.hfileoutputformat.datablock.encoding";
    let compression = config.text(COMPRESSION).unwrap_or(family.compression().as_str()).trim().to_uppercase();
    let encoding = config.text(ENCODING).unwrap_or(family.data_block_encoding().as_str()).trim().to_uppercase();
    let bloom = hfile::BloomType::parse(family.bloom_type().as_str()).unwrap_or(hfile::BloomType::None);
    let prefix_len = family.bloom_prefix_length().unwrap_or(0);
    let is_without_prefix = bloom == hfile::BloomType::RowPrefixFixedLength && prefix_len == 0;
    Ok(WriterOptions {
        compression: hfile::Compression::parse(&compression)
            .with_context(|| format!("{COMPRESSION} = {compression}: there is no such codec"))?,
        encoding: hfile::Encoding::parse(&encoding)
            .with_context(|| format!("{ENCODING} = {encoding}: there is no such encoding"))?,
        block_size_bytes: family.block_size_bytes(),
        bloom: if is_without_prefix { hfile::BloomType::None } else { bloom },
        bloom_prefix_len: prefix_len,
        include_tags: true,
        create_time_ms: TimestampMs(SystemClock::new().now_ms().0),
        ..WriterOptions::default()
    })
}

/// One HFile that grows in order. What is not in order is an error rather than a panic: it may come out of a foreign file.
pub(crate) struct OrderedWriter {
    out: Writer,
    path: FilePath,
    last: Vec<u8>,
}

impl OrderedWriter {
    pub fn create(volume: &dyn Volume, path: FilePath, options: WriterOptions) -> anyhow::Result<OrderedWriter> {
        let out = Writer::create(volume, &path, options).with_context(|| format!("cannot write /{path}"))?;
        Ok(OrderedWriter { out, path, last: Vec::new() })
    }

    pub fn append(&mut self, cell: CellRef<'_>) -> anyhow::Result<()> {
        if !self.last.is_empty() {
            let last = KeyRef::from_checked(&self.last);
            if Order::User.keys(last, cell.key()).is_gt() || last.family() != cell.family() {
                bail!("{} stands behind {}", crate::print::key(cell.key()), crate::print::key(last));
            }
        }
        self.last.clear();
        self.last.extend_from_slice(cell.key().bytes());
        self.out.append(cell).with_context(|| format!("cannot write /{}", self.path))
    }

    pub fn append_file_info(&mut self, key: &[u8], value: &[u8]) {
        self.out.append_file_info(key, value);
    }

    pub fn written_bytes(&self) -> u64 {
        self.out.written_bytes()
    }

    pub fn finish(self, metadata: &StoreMetadata) -> anyhow::Result<FilePath> {
        self.out.finish(metadata).with_context(|| format!("cannot write /{}", self.path))?;
        Ok(self.path)
    }
}

/// Cells of one family, in memory and spilled.
struct Family {
    descriptor: FamilyDescriptor,
    cells: CellBuffer,
    spilled: Vec<FilePath>,
}

/// What was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub files: u64,
    pub cells: u64,
    pub bytes: u64,
}

/// Takes cells, and makes files of them.
pub(crate) struct HFileOutput {
    config: Config,
    volume: Arc<dyn Volume>,
    dir: FilePath,
    table: String,
    /// First rows of the regions but the first.
    bounds: Vec<Bytes>,
    families: BTreeMap<Bytes, Family>,
    waiting_bytes: usize,
    sort_bytes: usize,
    rng: Rng,
    now_ms: i64,
    is_done: bool,
}

impl HFileOutput {
    /// Begins a directory of files for a table whose regions begin at `starts`.
    ///
    /// # Errors
    /// The directory is there already, or cannot be made.
    pub fn new(
        config: &Config,
        place: &Path,
        table: &TableDescriptor,
        starts: impl IntoIterator<Item = Bytes>,
    ) -> anyhow::Result<HFileOutput> {
        HFileOutput::on(config, Arc::new(files::everything()?), files::path_of(place)?, table, starts)
            .with_context(|| format!("cannot write HFiles to {}", place.display()))
    }

    /// As [`HFileOutput::new`], in a directory of a volume. What does not fit into memory is spilled there, too.
    ///
    /// # Errors
    /// As there.
    pub fn on(
        config: &Config,
        volume: Arc<dyn Volume>,
        dir: FilePath,
        table: &TableDescriptor,
        starts: impl IntoIterator<Item = Bytes>,
    ) -> anyhow::Result<HFileOutput> {
        if volume.exists(&dir)? {
            bail!("the directory is there already: that for the HFiles must be a new one");
        }
        let sort_mb = config.text(SORT_MB_KEY).map_or(Ok(SORT_MB), |text| super::scan::word(SORT_MB_KEY, text))?;
        let family = |descriptor: &FamilyDescriptor| {
            options_of(config, descriptor)?;
            let family = Family { descriptor: descriptor.clone(), cells: CellBuffer::new(), spilled: Vec::new() };
            Ok((descriptor.name.clone(), family))
        };
        let families = table.families.values().map(family).collect::<anyhow::Result<_>>()?;
        let mut bounds: Vec<Bytes> = starts.into_iter().filter(|start| !start.is_empty()).collect();
        bounds.sort();
        volume.create_dir_all(&dir.join(SPILL_DIR))?;
        Ok(HFileOutput {
            config: config.clone(),
            volume,
            dir,
            table: table.name.to_string(),
            bounds,
            families,
            waiting_bytes: 0,
            sort_bytes: sort_mb.max(1) << 20,
            rng: Rng::from_system(),
            now_ms: SystemClock::new().now_ms().0,
            is_done: false,
        })
    }

    /// Takes a cell. One at the latest time is written at the time of the output's beginning.
    ///
    /// # Errors
    /// The table has no such family, or what is in memory cannot be spilled.
    pub fn add(&mut self, cell: CellRef<'_>) -> anyhow::Result<()> {
        self.add_at(cell, SeqId(0))
    }

    /// As [`HFileOutput::add`], of a cell with a sequence id: under the same key the greatest stays.
    pub fn add_at(&mut self, cell: CellRef<'_>, seq_id: SeqId) -> anyhow::Result<()> {
        let Some(family) = self.families.get_mut(cell.family()) else {
            bail!("table {} has no family {}", self.table, cell::print::to_string_binary(cell.family()));
        };
        if cell.timestamp() == i64::MAX {
            let spec = cell::CellSpec {
                row: cell.row(),
                family: cell.family(),
                qualifier: cell.qualifier(),
                timestamp: self.now_ms,
                type_code: cell.type_code(),
                value: cell.value(),
                tags: cell.tags(),
            };
            family.cells.push_spec(&spec, seq_id);
        } else {
            family.cells.push(cell.with_seq_id(seq_id));
        }
        self.waiting_bytes += cell.bytes().len();
        if self.waiting_bytes >= self.sort_bytes { self.spill() } else { Ok(()) }
    }

    /// Writes what is in memory into a sorted file for each family.
    fn spill(&mut self) -> anyhow::Result<()> {
        for family in self.families.values_mut().filter(|family| !family.cells.is_empty()) {
            let path = self.dir.join(SPILL_DIR).join(self.rng.uuid_hex());
            let options = WriterOptions { include_tags: true, ..WriterOptions::default() };
            let mut out = OrderedWriter::create(&*self.volume, path, options)?;
            let cells = std::mem::replace(&mut family.cells, CellBuffer::new());
            for i in sorted(&cells) {
                out.append(cells.get(i))?;
            }
            family.spilled.push(out.finish(&StoreMetadata::default())?);
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    /// Merges, and writes the files and the mark that all are there.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> anyhow::Result<Written> {
        let mut written = Written::default();
        for (name, family) in std::mem::take(&mut self.families) {
            self.merge(&name, family, &mut written)?;
        }
        self.volume.remove_dir_all(&self.dir.join(SPILL_DIR))?;
        self.volume.create(&self.dir.join("_SUCCESS"))?.finish()?;
        self.volume.sync_dir(&self.dir)?;
        self.is_done = true;
        Ok(written)
    }

    fn merge(&self, name: &Bytes, family: Family, written: &mut Written) -> anyhow::Result<()> {
        let order = sorted(&family.cells);
        let mut sources = Vec::with_capacity(family.spilled.len() + 1);
        for path in &family.spilled {
            let reader = Reader::open(&*self.volume, path, ReaderContext::default())?;
            let options = ScanOptions { cache_blocks: false, pread: false, compaction: true, ..ScanOptions::default() };
            let mut scanner = Box::new(reader.scanner(options));
            if scanner.seek_to_first()? {
                sources.push(Source::Spilled(scanner));
            }
        }
        if !order.is_empty() {
            sources.push(Source::Memory { cells: family.cells, order: order.into_iter().peekable() });
        }
        if sources.is_empty() {
            return Ok(());
        }
        let dir = self.dir.join(rootdir::family_name(name));
        self.volume.create_dir_all_durable(&dir)?;
        let options = options_of(&self.config, &family.descriptor)?;
        let max_bytes = self.config.text("hbase.hregion.max.filesize").and_then(|text| text.trim().parse().ok());
        let max_bytes = max_bytes.unwrap_or(MAX_FILE_BYTES);
        let mut heap: BinaryHeap<Head> = BinaryHeap::new();
        for (source, at) in sources.iter_mut().zip(0..) {
            heap.extend(source.cell().map(|cell| Head::of(cell, at)));
        }
        let mut out: Option<OrderedWriter> = None;
        let mut last: Option<Vec<u8>> = None;
        let mut region = 0;
        while let Some(head) = heap.pop() {
            let source = &mut sources[head.source];
            // The newest comes first among equal keys; the others' cells are passed over.
            if last.as_deref() != Some(&head.key[..])
                && let Some(cell) = source.cell()
            {
                let row = cell.row();
                let is_new_row = last.as_deref().is_none_or(|last| KeyRef::from_checked(last).row() != row);
                let here = self.bounds.partition_point(|bound| &bound[..] <= row);
                let is_full = is_new_row && out.as_ref().is_some_and(|out| out.written_bytes() >= max_bytes);
                if (here != region || is_full)
                    && let Some(out) = out.take()
                {
                    self.end(out, written)?;
                }
                region = here;
                let writer = match &mut out {
                    Some(writer) => writer,
                    none => {
                        let path = dir.join(self.rng.uuid_hex());
                        none.insert(OrderedWriter::create(&*self.volume, path, options.clone())?)
                    }
                };
                writer.append(cell.with_seq_id(SeqId(0)))?;
                written.cells += 1;
            }
            if source.step()? {
                heap.extend(source.cell().map(|cell| Head::of(cell, head.source)));
            }
            last = Some(head.key);
        }
        if let Some(out) = out {
            self.end(out, written)?;
        }
        self.volume.sync_dir(&dir)?;
        Ok(())
    }

    fn end(&self, mut out: OrderedWriter, written: &mut Written) -> anyhow::Result<()> {
        out.append_file_info(key::BULKLOAD_TIMESTAMP, &self.now_ms.to_be_bytes());
        let task = format!("attempt_basalt_{}_{}", std::process::id(), self.now_ms);
        out.append_file_info(key::BULKLOAD_SOURCE_TASK, task.as_bytes());
        let metadata =
            StoreMetadata { major_compaction: true, exclude_from_minor: Some(false), ..StoreMetadata::default() };
        let path = out.finish(&metadata)?;
        written.files += 1;
        written.bytes += self.volume.stat(&path)?.map_or(0, |entry| entry.len);
        Ok(())
    }
}

impl Drop for HFileOutput {
    fn drop(&mut self) {
        if !self.is_done {
            // It was made by this output; what cannot be removed stays, without the mark that it is whole.
            let _ = self.volume.remove_dir_all(&self.dir);
        }
    }
}

/// The places of cells in their order; of equal keys the last one's.
fn sorted(cells: &CellBuffer) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    // Stable: among equal keys and sequence ids the last one added stays last.
    order.sort_by(|a, b| {
        let (a, b) = (cells.get(*a), cells.get(*b));
        Order::User.keys(a.key(), b.key()).then(a.seq_id().cmp(&b.seq_id()))
    });
    let mut kept: Vec<usize> = Vec::with_capacity(order.len());
    for i in order {
        match kept.last_mut() {
            Some(last) if cells.get(*last).key().bytes() == cells.get(i).key().bytes() => *last = i,
            _ => kept.push(i),
        }
    }
    kept
}

/// Where sorted cells come from.
enum Source {
    Memory { cells: CellBuffer, order: std::iter::Peekable<std::vec::IntoIter<usize>> },
    Spilled(Box<Scanner>),
}

impl Source {
    fn cell(&mut self) -> Option<CellRef<'_>> {
        match self {
            Source::Memory { cells, order } => order.peek().map(|i| cells.get(*i)),
            Source::Spilled(scanner) => scanner.current(),
        }
    }

    fn step(&mut self) -> anyhow::Result<bool> {
        Ok(match self {
            Source::Memory { order, .. } => {
                order.next();
                order.peek().is_some()
            }
            Source::Spilled(scanner) => scanner.next()?,
        })
    }
}

/// The key of a source's cell. The greatest is the first in order and, of the same key, the one with the greatest sequence id or of the newest
/// source.
struct Head {
    key: Vec<u8>,
    seq_id: SeqId,
    source: usize,
}

impl Head {
    fn of(cell: CellRef<'_>, source: usize) -> Head {
        Head { key: cell.key().bytes().to_vec(), seq_id: cell.seq_id(), source }
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        let keys = Order::User.keys(KeyRef::from_checked(&other.key), KeyRef::from_checked(&self.key));
        keys.then(self.seq_id.cmp(&other.seq_id)).then(self.source.cmp(&other.source))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::CellSpec;

    /// A region that moved there and back: its edits are in two logs, and the newest is not in the log that is read last.
    #[test]
    fn the_greatest_sequence_id_wins_whatever_is_read_last() {
        let place = std::env::temp_dir().join(format!("basalt-tools-order-{}", std::process::id()));
        let table = TableDescriptor::new(model::TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")]);
        for is_spilled in [false, true] {
            let mut output = HFileOutput::new(&Config::default(), &place, &table, []).expect("begun");
            let mut add = |value: &[u8], seq_id| {
                let mut cells = CellBuffer::new();
                let spec = CellSpec {
                    row: b"r",
                    family: b"f",
                    qualifier: b"q",
                    timestamp: 7,
                    type_code: cell::CellType::Put.code(),
                    value,
                    tags: b"",
                };
                cells.push_spec(&spec, SeqId(0));
                output.add_at(cells.get(0), SeqId(seq_id)).expect("taken");
                if is_spilled {
                    output.spill().expect("spilled");
                }
            };
            for (value, seq_id) in [("first", 3), ("newest", 9), ("between", 5)] {
                add(value.as_bytes(), seq_id);
            }
            assert_eq!(output.finish().expect("written").cells, 1);
            let name = std::fs::read_dir(place.join("f")).expect("there").next().expect("a file").expect("an entry");
            let path = files::path_of(&name.path()).expect("a path");
            let volume = files::everything().expect("readable");
            let reader = Reader::open(&volume, &path, ReaderContext::default()).expect("whole");
            let mut scanner = reader.scanner(ScanOptions::default());
            assert!(scanner.seek_to_first().expect("read"));
            let cell = scanner.current().expect("a cell");
            assert_eq!((cell.value(), cell.seq_id()), (&b"newest"[..], SeqId(0)), "spilled: {is_spilled}");
            std::fs::remove_dir_all(&place).expect("removed");
        }
    }
}
