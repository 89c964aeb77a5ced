//! Hadoop's MapFile: a directory with sorted records (`data`) and the places of every 128th key (`index`). Follows: `MapFile`,
//! `MapFileOutputFormat`. Bytes: docs/formats/hashtable.md.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;

use super::packing::Codec;
use super::row_file::immutable_bytes;
use super::sequence_file::{Classes, Form, Packing, Reader, Writer};

/// Java's class of bytes with their length before them.
pub(super) const BYTES_CLASS: &str = "org.apache.hadoop.hbase.io.ImmutableBytesWritable";
const DATA_CLASSES: Classes = Classes { key: BYTES_CLASS, value: BYTES_CLASS, what: "file of hashes" };
const INDEX_CLASSES: Classes =
    Classes { key: BYTES_CLASS, value: "org.apache.hadoop.io.LongWritable", what: "index of a file of hashes" };
/// Keys between two that the index has (`io.map.index.interval`).
const INDEX_INTERVAL: u64 = 128;

/// Bytes out of what `ImmutableBytesWritable` wrote.
pub(super) fn bytes_of(written: &Bytes) -> anyhow::Result<Bytes> {
    let (len, rest) = written.split_first_chunk::<4>().context("bytes have no length before them")?;
    if u32::from_be_bytes(*len) as usize != rest.len() {
        bail!("bytes say that they are {}, and are {}", u32::from_be_bytes(*len), rest.len());
    }
    Ok(written.slice(4..))
}

/// Writes a MapFile of bytes to bytes.
pub(super) struct MapWriter {
    dir: PathBuf,
    data: Writer<BufWriter<File>>,
    index: Writer<BufWriter<File>>,
    last: Option<Vec<u8>>,
    count: u64,
    indexed_at: Option<u64>,
}

impl MapWriter {
    /// Begins a directory, which must not be there.
    ///
    /// # Errors
    /// It is there, or cannot be made.
    pub fn create(dir: &Path, sync: [u8; 16]) -> anyhow::Result<MapWriter> {
        let make = |name: &str, classes: Classes, packing: Packing| {
            let place = dir.join(name);
            let file = File::create_new(&place).with_context(|| format!("cannot write {}", place.display()))?;
            Writer::new(BufWriter::new(file), classes, &Form { sync, packing })
        };
        std::fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(MapWriter {
            dir: dir.to_owned(),
            data: make("data", DATA_CLASSES, Packing::None)?,
            index: make("index", INDEX_CLASSES, Packing::Blocks(Codec::Default))?,
            last: None,
            count: 0,
            indexed_at: None,
        })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Its key is before the last one, or the disk fails.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        if self.last.as_deref().is_some_and(|last| last > key) {
            bail!("keys are out of order: {} stands behind another", cell::print::to_string_binary(key));
        }
        let (written_key, position) = (immutable_bytes(key), self.data.position());
        if self.count.is_multiple_of(INDEX_INTERVAL) && self.indexed_at.is_none_or(|at| position > at) {
            self.index.append(&written_key, &position.to_be_bytes())?;
            self.indexed_at = Some(position);
        }
        self.data.append(&written_key, &immutable_bytes(value))?;
        self.last = Some(key.to_vec());
        self.count += 1;
        Ok(())
    }

    /// Ends both files, durably.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(self) -> anyhow::Result<()> {
        for out in [self.data, self.index] {
            let file = out.finish()?.into_inner().map_err(|error| anyhow::anyhow!("{error}"))?;
            file.sync_all().with_context(|| format!("cannot write {}", self.dir.display()))?;
        }
        Ok(())
    }
}

/// Reads a MapFile of bytes to bytes.
pub(super) struct MapReader {
    data: Reader<BufReader<File>>,
}

impl MapReader {
    /// Opens it at the first key that is not before `from`, and answers that record, too; none where all are before it.
    ///
    /// # Errors
    /// A file is not there, or damaged.
    pub fn open(dir: &Path, from: &[u8]) -> anyhow::Result<(MapReader, Option<(Bytes, Bytes)>)> {
        let open = |name: &str, classes: Classes| {
            let place = dir.join(name);
            let file = File::open(&place).with_context(|| format!("cannot read {}", place.display()))?;
            Reader::new(BufReader::new(file), &place.display().to_string(), classes)
        };
        let mut reader = MapReader { data: open("data", DATA_CLASSES)? };
        // Blocks begin elsewhere than their records say.
        if !matches!(reader.data.packing(), Packing::Blocks(_)) {
            let mut index = open("index", INDEX_CLASSES)?;
            let mut position = None;
            while let Some((key, value)) = index.next()? {
                if bytes_of(&key).map_err(|error| index.damaged(&error.to_string()))? > from {
                    break;
                }
                let value = <[u8; 8]>::try_from(&value[..]);
                position = Some(value.map_err(|_| index.damaged("a place is no number"))?);
            }
            if let Some(position) = position {
                reader.data.seek(u64::from_be_bytes(position))?;
            }
        }
        while let Some((key, value)) = reader.next()? {
            if key >= from {
                return Ok((reader, Some((key, value))));
            }
        }
        Ok((reader, None))
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next(&mut self) -> anyhow::Result<Option<(Bytes, Bytes)>> {
        let Some((key, value)) = self.data.next()? else { return Ok(None) };
        let bytes = |written: &Bytes| bytes_of(written).map_err(|error| self.data.damaged(&error.to_string()));
        Ok(Some((bytes(&key)?, bytes(&value)?)))
    }
}
