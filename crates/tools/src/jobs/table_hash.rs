//! What HashTable leaves in a directory and SyncTable reads: `manifest`, `partitions`, `hashes/part-r-*`. Follows: `HashTable.TableHash`,
//! `HashTable.ResultHasher`. Bytes: docs/formats/hashtable.md.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use cell::CellRef;
use md5::{Digest, Md5};
use model::{Scan, TimeRange};

use super::map_file::{BYTES_CLASS, MapReader, bytes_of};
use super::packing::Codec;
use super::row_file::immutable_bytes;
use super::scan;
use super::sequence_file::{Classes, Form, Packing, Reader, Writer};
use crate::ycsb::properties::Properties;

pub(super) const MANIFEST: &str = "manifest";
pub(super) const PARTITIONS: &str = "partitions";
pub(super) const HASHES: &str = "hashes";
const DATA_PREFIX: &str = "part-r-";
const PARTITION_CLASSES: Classes =
    Classes { key: BYTES_CLASS, value: "org.apache.hadoop.io.NullWritable", what: "file of partitions" };
/// Bytes of cells under one hash.
const BATCH_BYTES: u64 = 8000;

/// What was hashed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableHash {
    pub table: String,
    pub families: Option<String>,
    pub batch_bytes: u64,
    pub files: usize,
    pub start_row: Vec<u8>,
    pub stop_row: Vec<u8>,
    pub scan_batch: u32,
    pub versions: i32,
    pub start_time: i64,
    pub end_time: i64,
    pub raw: bool,
    /// First keys of the files of hashes but the first.
    pub partitions: Vec<Bytes>,
}

impl Default for TableHash {
    fn default() -> TableHash {
        TableHash {
            table: String::new(),
            families: None,
            batch_bytes: BATCH_BYTES,
            files: 0,
            start_row: Vec::new(),
            stop_row: Vec::new(),
            scan_batch: 0,
            versions: -1,
            start_time: 0,
            end_time: 0,
            raw: false,
            partitions: Vec::new(),
        }
    }
}

/// Bytes out of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> anyhow::Result<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok().filter(|_| pair.len() == 2 && pair[0] != b'+')
    };
    let bytes = digits.chunks(2).map(pair).collect::<Option<Vec<u8>>>();
    bytes.with_context(|| format!("{text} is no row: rows are given as hexadecimal digits, two for each byte"))
}

/// The digits that [`from_hex`] reads.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value as `java.util.Properties.store` escapes it.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for (i, c) in value.chars().enumerate() {
        match c {
            ' ' if i == 0 => out.push_str("\\ "),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// The same read again.
fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            (_, Some('t')) => out.push('\t'),
            (_, Some('n')) => out.push('\n'),
            (_, Some('r')) => out.push('\r'),
            (_, Some('f')) => out.push('\u{c}'),
            (_, Some('u')) => {
                let code: String = chars.by_ref().take(4).collect();
                out.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            (_, Some(other)) => out.push(other),
            (c, None) => out.push(c),
        }
    }
    out
}

impl TableHash {
    /// What is hashed of the table.
    ///
    /// # Errors
    /// The time range is empty.
    pub fn scan(&self) -> anyhow::Result<Scan> {
        let mut wanted = Scan {
            start_row: Bytes::copy_from_slice(&self.start_row),
            stop_row: Bytes::copy_from_slice(&self.stop_row),
            cache_blocks: false,
            raw: self.raw,
            ..Scan::default()
        };
        if self.start_time != 0 || self.end_time != 0 {
            wanted.time_range = match self.end_time {
                0 => TimeRange { min: self.start_time, max: i64::MAX },
                end => scan::time_range(self.start_time, end)?,
            };
        }
        if self.scan_batch > 0 {
            wanted.batch = Some(self.scan_batch);
        }
        if let Ok(versions) = u32::try_from(self.versions) {
            wanted.max_versions = versions;
        }
        for family in self.families.iter().flat_map(|families| families.split(',')) {
            scan::add_column(&mut wanted, family);
        }
        Ok(wanted)
    }

    /// Decides how many files of hashes there are, and where each begins: at regions' first rows. Follows: `selectPartitions`.
    pub fn select_partitions(&mut self, starts: &[Bytes]) {
        let count = starts.len().max(1);
        let files = if self.files == 0 { count / 100 } else { self.files };
        self.files = files.max(1).min(count);
        self.partitions = (1..self.files).map(|i| starts[count * i / self.files].clone()).collect();
    }

    /// The manifest, as Java's properties; `written` is what its comment says.
    pub fn manifest(&self, written: &str) -> String {
        let mut text = format!("#{written}\n");
        let mut set = |name: &str, value: &str| text.push_str(&format!("{name}={}\n", escaped(value)));
        set("table", &self.table);
        if let Some(families) = &self.families {
            set("columnFamilies", families);
        }
        set("targetBatchSize", &self.batch_bytes.to_string());
        set("numHashFiles", &self.files.to_string());
        for (name, row) in [("startRowHex", &self.start_row), ("stopRowHex", &self.stop_row)] {
            if !row.is_empty() {
                set(name, &to_hex(row));
            }
        }
        if self.scan_batch > 0 {
            set("scanBatch", &self.scan_batch.to_string());
        }
        if self.versions >= 0 {
            set("versions", &self.versions.to_string());
        }
        for (name, time) in [("startTimestamp", self.start_time), ("endTimestamp", self.end_time)] {
            if time != 0 {
                set(name, &time.to_string());
            }
        }
        set("rawScan", if self.raw { "true" } else { "false" });
        text
    }

    /// A manifest, read.
    fn parse(text: &str) -> anyhow::Result<TableHash> {
        let mut properties = Properties::default();
        properties.read(text);
        let value = |name: &str| properties.text(name).map(unescaped);
        let needed = |name: &str| value(name).with_context(|| format!("it does not say {name}"));
        let row = |name: &str| value(name).map_or(Ok(Vec::new()), |hex| from_hex(&hex)).context(name.to_owned());
        needed("targetBatchSize")?;
        needed("numHashFiles")?;
        Ok(TableHash {
            table: needed("table")?,
            families: value("columnFamilies"),
            batch_bytes: properties.number("targetBatchSize", BATCH_BYTES)?,
            files: properties.number("numHashFiles", 0)?,
            start_row: row("startRowHex")?,
            stop_row: row("stopRowHex")?,
            scan_batch: properties.number("scanBatch", 0)?,
            versions: properties.number("versions", -1)?,
            start_time: properties.number("startTimestamp", 0)?,
            end_time: properties.number("endTimestamp", 0)?,
            raw: properties.flag("rawScan", false),
            partitions: Vec::new(),
        })
    }

    /// Writes the file of partitions. It is compressed as Hadoop's older calls do by themselves.
    ///
    /// # Errors
    /// The disk fails.
    pub fn write_partitions(&self, place: &Path, sync: [u8; 16]) -> anyhow::Result<()> {
        let file = File::create(place).with_context(|| format!("cannot write {}", place.display()))?;
        let form = Form { sync, packing: Packing::Records(Codec::Default) };
        let mut out = Writer::new(BufWriter::new(file), PARTITION_CLASSES, &form)?;
        for key in &self.partitions {
            out.append(&immutable_bytes(key), b"")?;
        }
        let file = out.finish()?.into_inner().map_err(|error| anyhow::anyhow!("{error}"))?;
        file.sync_all().with_context(|| format!("cannot write {}", place.display()))
    }

    /// What is in a directory of HashTable.
    ///
    /// # Errors
    /// It is no such directory, its making was broken off, or its parts do not fit together.
    pub fn read(dir: &Path) -> anyhow::Result<TableHash> {
        let place = dir.join(MANIFEST);
        let text = std::fs::read_to_string(&place).with_context(|| {
            format!("cannot read {}: hashtable writes it when everything else is there", place.display())
        })?;
        let mut hash = TableHash::parse(&text).with_context(|| format!("{} is damaged", place.display()))?;
        let place = dir.join(PARTITIONS);
        let file = File::open(&place).with_context(|| format!("cannot read {}", place.display()))?;
        let mut input = Reader::new(BufReader::new(file), &place.display().to_string(), PARTITION_CLASSES)?;
        while let Some((key, _)) = input.next()? {
            hash.partitions.push(bytes_of(&key).map_err(|error| input.damaged(&error.to_string()))?);
        }
        if !hash.partitions.is_sorted() {
            bail!("{} is damaged: its keys are not in order", place.display());
        }
        let hashes = dir.join(HASHES);
        let entries = std::fs::read_dir(&hashes).with_context(|| format!("cannot read {}", hashes.display()))?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let names = names.collect::<std::io::Result<Vec<String>>>()?;
        let there = names.iter().filter(|name| name.starts_with(DATA_PREFIX)).count();
        if hash.files != hash.partitions.len() + 1 || there != hash.files {
            bail!(
                "{} is damaged: its manifest says {} files of hashes, there are {there}, and {} keys between them",
                dir.display(),
                hash.files,
                hash.partitions.len()
            );
        }
        Ok(hash)
    }

    /// The place of a file of hashes.
    pub fn data_dir(dir: &Path, index: usize) -> PathBuf {
        dir.join(HASHES).join(format!("{DATA_PREFIX}{index:05}"))
    }

    /// Which file of hashes has a key.
    pub fn file_of(&self, key: &[u8]) -> usize {
        self.partitions.partition_point(|partition| &partition[..] <= key)
    }
}

/// Hashes in the order of their keys, over all files.
pub(super) struct Hashes {
    dir: PathBuf,
    files: usize,
    file: usize,
    reader: MapReader,
    first: Option<(Bytes, Bytes)>,
}

impl Hashes {
    /// Begins at the first batch whose key is not before `from`. Blocks on files.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn open(hash: &TableHash, dir: &Path, from: &[u8]) -> anyhow::Result<Hashes> {
        let file = hash.file_of(from);
        let (reader, first) = MapReader::open(&TableHash::data_dir(dir, file), from)?;
        let mut hashes = Hashes { dir: dir.to_owned(), files: hash.files, file, reader, first };
        if hashes.first.is_none() {
            hashes.first = hashes.step()?;
        }
        Ok(hashes)
    }

    fn step(&mut self) -> anyhow::Result<Option<(Bytes, Bytes)>> {
        loop {
            if let Some(record) = self.reader.next()? {
                return Ok(Some(record));
            }
            self.file += 1;
            if self.file >= self.files {
                return Ok(None);
            }
            let (reader, first) = MapReader::open(&TableHash::data_dir(&self.dir, self.file), b"")?;
            self.reader = reader;
            if first.is_some() {
                return Ok(first);
            }
        }
    }

    /// The next batch: its first row, and its hash; none at the end.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn next(&mut self) -> anyhow::Result<Option<(Bytes, Bytes)>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.step(),
        }
    }
}

/// Hashes cells of a batch as HashTable does.
pub(super) struct Hasher {
    digest: Md5,
    /// Bytes of the batch so far.
    pub bytes: u64,
    ignore_timestamps: bool,
}

impl Hasher {
    pub fn new(ignore_timestamps: bool) -> Hasher {
        Hasher { digest: Md5::new(), bytes: 0, ignore_timestamps }
    }

    pub fn add(&mut self, cell: CellRef<'_>) {
        for part in [cell.row(), cell.family(), cell.qualifier()] {
            self.digest.update(part);
            self.bytes += part.len() as u64;
        }
        if !self.ignore_timestamps {
            // The lowest byte first.
            self.digest.update(cell.timestamp().to_le_bytes());
        }
        self.digest.update(cell.value());
        self.bytes += 8 + cell.value().len() as u64;
    }

    /// The batch's hash; the next batch begins.
    pub fn finish(&mut self) -> [u8; 16] {
        self.bytes = 0;
        self.digest.finalize_reset().into()
    }
}

/// Writes the manifest under its name when everything else is there.
pub(super) fn publish_manifest(dir: &Path, text: &str) -> anyhow::Result<()> {
    let (temporary, place) = (dir.join("manifest.tmp"), dir.join(MANIFEST));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &place)
    });
    written.with_context(|| format!("cannot write {}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash() -> TableHash {
        TableHash {
            table: "ns:t".to_owned(),
            families: Some("a,b".to_owned()),
            files: 3,
            start_row: vec![0, 255],
            versions: 2,
            start_time: 5,
            end_time: 9,
            raw: true,
            ..TableHash::default()
        }
    }

    #[test]
    fn a_manifest_is_javas_properties() {
        let text = hash().manifest("Thu Nov 26 10:00:00 UTC 2026");
        assert!(text.starts_with("#Thu Nov 26 10:00:00 UTC 2026\ntable=ns\\:t\ncolumnFamilies=a,b\n"), "{text}");
        assert!(text.contains("startRowHex=00ff\nversions=2\n") && !text.contains("stopRowHex"), "{text}");
        assert_eq!(TableHash::parse(&text).expect("read"), hash());
        for damaged in ["", "table=t\n", "table=t\ntargetBatchSize=x\nnumHashFiles=1\n"] {
            assert!(TableHash::parse(damaged).is_err(), "{damaged}");
        }
        let with_odd_row = text.replace("00ff", "0");
        assert!(TableHash::parse(&with_odd_row).is_err());
    }

    #[test]
    fn what_hbase_hashed_is_read() {
        // Made by HBase 2.6.4's HashTable --batchsize=1000 --numhashfiles=2, of a table with regions at r100 and r200.
        let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/hashtable"));
        let hash = TableHash::read(dir).expect("whole");
        assert_eq!((hash.table.as_str(), hash.batch_bytes, hash.files), ("t", 1000, 2));
        assert_eq!(hash.partitions, [Bytes::from_static(b"r100")]);
        let all = |from: &[u8]| {
            let mut hashes = Hashes::open(&hash, dir, from).expect("whole");
            let mut keys = Vec::new();
            while let Some((key, of_batch)) = hashes.next().expect("whole") {
                assert_eq!(of_batch.len(), 16);
                keys.push(key);
            }
            keys
        };
        let keys = all(b"");
        assert!(keys.len() == 37 && keys[0].is_empty() && keys.is_sorted(), "{keys:?}");
        for from in [&b"r0"[..], b"r100", b"r150", b"r399", b"z"] {
            assert_eq!(all(from), keys[keys.partition_point(|key| &key[..] < from)..], "{from:?}");
        }
    }

    #[test]
    fn files_of_hashes_begin_at_regions() {
        let starts: Vec<Bytes> = (0..250_u8).map(|i| Bytes::from(vec![i; usize::from(i > 0)])).collect();
        let select = |files: usize, regions: usize| {
            let mut hash = TableHash { files, ..TableHash::default() };
            hash.select_partitions(&starts[..regions]);
            (hash.files, hash.partitions.iter().map(|key| key[0]).collect::<Vec<_>>())
        };
        assert_eq!(select(0, 250), (2, vec![125]));
        assert_eq!(select(0, 5), (1, vec![]));
        assert_eq!(select(3, 5), (3, vec![1, 3]));
        assert_eq!(select(9, 3), (3, vec![1, 2]));
        let mut hash = TableHash { files: 3, ..TableHash::default() };
        hash.select_partitions(&starts[..5]);
        assert_eq!([0, 1, 2, 3, 9].map(|row| hash.file_of(&[row])), [0, 1, 1, 2, 2]);
    }
}
