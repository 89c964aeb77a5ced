//! Hadoop's SequenceFile with HBase's keys and values: what Export writes and Import reads. Follows: `SequenceFile`, `ImmutableBytesWritable`,
//! `ResultSerialization`.
//!
//! ```text
//! SEQ 6, class of keys, class of values (length and name each), compressed?, by blocks?, [codec], count of pairs of metadata, 16 bytes of sync
//! record: length of key and value (4), length of the key (4), key, value;  before some of them: -1 (4), the 16 bytes of sync
//! key:    length (4), row           value: length (varint), protobuf message Result
//! ```
//!
//! Bytes: docs/formats/sequencefile.md.

use std::io::{Read, Write};

use anyhow::{Context, bail};
use bytes::Bytes;
use cell::{CellBlock, CellSpec};
use proto::{Message, pb};

const MAGIC: &[u8; 3] = b"SEQ";
const VERSION: u8 = 6;
const KEY_CLASS: &str = "org.apache.hadoop.hbase.io.ImmutableBytesWritable";
const VALUE_CLASS: &str = "org.apache.hadoop.hbase.client.Result";
const SYNC_BYTES: usize = 16;
/// Bytes between two sync marks, at least.
const SYNC_INTERVAL_BYTES: u64 = 100 * 1024;
/// A longer record is believed to be damage.
const MAX_RECORD_BYTES: usize = 1 << 30;

/// Writes a file.
pub(super) struct Writer<W: Write> {
    out: W,
    sync: [u8; SYNC_BYTES],
    position: u64,
    synced: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file. `sync` marks places in it: bytes that are not likely to be among the records.
    pub fn new(mut out: W, sync: [u8; SYNC_BYTES]) -> anyhow::Result<Writer<W>> {
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        for class in [KEY_CLASS, VALUE_CLASS] {
            cell::vint::write(&mut head, class.len() as i64);
            head.extend_from_slice(class.as_bytes());
        }
        head.extend_from_slice(&[0, 0]);
        head.extend_from_slice(&0_u32.to_be_bytes());
        head.extend_from_slice(&sync);
        out.write_all(&head)?;
        let position = head.len() as u64;
        Ok(Writer { out, sync, position, synced: position })
    }

    /// Adds a row.
    pub fn row(&mut self, row: &client::Row) -> anyhow::Result<()> {
        let cells = row.iter().map(|cell| pb::Cell {
            row: Some(Bytes::copy_from_slice(cell.row())),
            family: Some(Bytes::copy_from_slice(cell.family())),
            qualifier: Some(Bytes::copy_from_slice(cell.qualifier())),
            timestamp: Some(cell.timestamp() as u64),
            cell_type: Some(i32::from(cell.type_code())),
            value: Some(Bytes::copy_from_slice(cell.value())),
            tags: (!cell.tags().is_empty()).then(|| Bytes::copy_from_slice(cell.tags())),
        });
        let result = pb::Result { cell: cells.collect(), ..pb::Result::default() };
        let value = result.encode_length_delimited_to_vec();
        let key_len = 4 + row.row().len();
        if self.position >= self.synced + SYNC_INTERVAL_BYTES {
            self.out.write_all(&(-1_i32).to_be_bytes())?;
            self.out.write_all(&self.sync)?;
            self.position += 4 + SYNC_BYTES as u64;
            self.synced = self.position;
        }
        let len = u32::try_from(key_len + value.len()).ok().filter(|len| *len as usize <= MAX_RECORD_BYTES);
        let len = len.with_context(|| format!("a row of {} bytes does not fit a record", value.len()))?;
        self.out.write_all(&len.to_be_bytes())?;
        self.out.write_all(&(key_len as u32).to_be_bytes())?;
        self.out.write_all(&(row.row().len() as u32).to_be_bytes())?;
        self.out.write_all(row.row())?;
        self.out.write_all(&value)?;
        self.position += 8 + u64::from(len);
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> anyhow::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads a file.
pub(super) struct Reader<R: Read> {
    input: R,
    name: String,
    sync: [u8; SYNC_BYTES],
    position: u64,
}

impl<R: Read> Reader<R> {
    /// Reads a file's head. `name` is for messages.
    pub fn new(input: R, name: &str) -> anyhow::Result<Reader<R>> {
        let mut reader = Reader { input, name: name.to_owned(), sync: [0; SYNC_BYTES], position: 0 };
        let head: [u8; 4] = reader.array().context("it has no head")?;
        if head[..3] != MAGIC[..] || head[3] != VERSION {
            bail!("{name} is no SequenceFile of version 6: it begins with {}", cell::print::to_string_binary(&head));
        }
        for (wanted, what) in [(KEY_CLASS, "keys"), (VALUE_CLASS, "values")] {
            let class = reader.text()?;
            if class != wanted {
                bail!("{name} has {what} of {class}, not of {wanted}: it is no export of HBase's");
            }
        }
        let [compressed, _by_blocks]: [u8; 2] = reader.array()?;
        if compressed != 0 {
            let codec = reader.text().unwrap_or_default();
            bail!("{name} is compressed ({codec}); export without mapreduce.output.fileoutputformat.compress");
        }
        let pairs = u32::from_be_bytes(reader.array()?);
        for _ in 0..pairs {
            reader.text()?;
            reader.text()?;
        }
        reader.sync = reader.array()?;
        Ok(reader)
    }

    fn damaged(&self, what: &str) -> anyhow::Error {
        anyhow::anyhow!("{} is damaged at byte {}: {what}", self.name, self.position)
    }

    /// So many bytes; an error where the file ends before.
    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| self.damaged(&format!("it ends too early ({error})")))?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn bytes(&mut self, len: usize) -> anyhow::Result<Vec<u8>> {
        // Taken piece by piece: a length that lies takes no memory.
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(len as u64).read_to_end(&mut bytes)?;
        if read < len {
            return Err(self.damaged(&format!("it ends {} bytes too early", len - read)));
        }
        self.position += len as u64;
        Ok(bytes)
    }

    /// A text with its length as Hadoop's vint before it.
    fn text(&mut self) -> anyhow::Result<String> {
        let first: [u8; 1] = self.array()?;
        let more = match first[0] as i8 {
            -112.. => 0,
            at_most @ -120..=-113 => usize::from((-112 - i16::from(at_most)) as u16),
            _ => return Err(self.damaged("a text has a negative length")),
        };
        let mut vint = first.to_vec();
        vint.extend(self.bytes(more)?);
        let len = cell::vint::read(&vint).map(|(len, _)| len);
        let len = len.and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= 1 << 20);
        let len = len.ok_or_else(|| self.damaged("a text has no sane length"))?;
        let bytes = self.bytes(len)?;
        String::from_utf8(bytes).map_err(|_| self.damaged("a text is no UTF-8"))
    }

    /// The next row's cells; none at the end.
    pub fn next(&mut self) -> anyhow::Result<Option<CellBlock>> {
        let mut len = [0; 4];
        // At a record's beginning the file may end.
        if self.input.read(&mut len[..1])? == 0 {
            return Ok(None);
        }
        self.position += 1;
        len[1..].copy_from_slice(&self.array::<3>()?);
        let mut len = i32::from_be_bytes(len);
        if len == -1 {
            if self.array::<SYNC_BYTES>()? != self.sync {
                return Err(self.damaged("a sync mark is another than the head's"));
            }
            len = i32::from_be_bytes(self.array()?);
        }
        let key_len = i32::from_be_bytes(self.array()?);
        let sizes = (usize::try_from(len), usize::try_from(key_len));
        let (Ok(len), Ok(key_len)) = sizes else { return Err(self.damaged("a record has a negative length")) };
        if len > MAX_RECORD_BYTES || key_len > len {
            return Err(self.damaged(&format!("a record says {len} bytes with a key of {key_len}")));
        }
        let record = Bytes::from(self.bytes(len)?);
        let result = pb::Result::decode_length_delimited(record.slice(key_len..))
            .map_err(|error| self.damaged(&format!("its value is no Result ({error})")))?;
        self.cells(&result).map(Some)
    }

    fn cells(&self, result: &pb::Result) -> anyhow::Result<CellBlock> {
        let mut bytes = cell::CellBuffer::new();
        for one in &result.cell {
            let spec = CellSpec {
                row: one.row(),
                family: one.family(),
                qualifier: one.qualifier(),
                timestamp: one.timestamp() as i64,
                type_code: one.cell_type() as u8,
                value: one.value(),
                tags: one.tags(),
            };
            spec.check_lengths().map_err(|error| self.damaged(&error.to_string()))?;
            cell::tag::check(spec.tags).map_err(|error| self.damaged(&error.to_string()))?;
            bytes.push_spec(&spec, base::SeqId(0));
        }
        Ok(bytes.into_block())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut out = Writer::new(Vec::new(), [7; SYNC_BYTES]).expect("begun");
        // Nothing makes a row but a client; an empty one has a key, too.
        for _ in 0..5 {
            out.row(&client::Row::default()).expect("written");
        }
        out.finish().expect("ended")
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = file();
        let mut reader = Reader::new(&bytes[..], "x").expect("a head");
        let mut count = 0;
        while let Some(cells) = reader.next().expect("a record") {
            assert!(cells.is_empty());
            count += 1;
        }
        assert_eq!(count, 5);
    }

    #[test]
    fn what_hbase_exported_is_read() {
        // Made by MakeExport.java beside it, with the classes of HBase 2.6.4 and Hadoop 3.4.2.
        let bytes = include_bytes!("../../../../tests/golden/export/part-m-00000");
        let mut reader = Reader::new(&bytes[..], "the golden file").expect("a head");
        let mut rows = 0;
        while let Some(cells) = reader.next().expect("a record") {
            let all: Vec<_> = cells.iter().collect();
            assert_eq!(all.len(), 2);
            assert_eq!(all[0].row(), format!("row-{rows:05}").as_bytes());
            assert_eq!((all[0].timestamp(), all[0].value().len()), (1000 + rows as i64, rows * 100));
            assert!(!all[0].is_delete() && all[1].is_delete() && all[1].timestamp() == 5);
            rows += 1;
        }
        assert_eq!(rows, 60);
    }

    #[test]
    fn damage_is_named_and_never_a_panic() {
        let bytes = file();
        for len in 0..bytes.len() {
            let Ok(mut reader) = Reader::new(&bytes[..len], "x") else { continue };
            while let Ok(Some(_)) = reader.next() {}
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            let Ok(mut reader) = Reader::new(&damaged[..], "x") else { continue };
            while let Ok(Some(_)) = reader.next() {}
        }
        assert!(Reader::new(&b"SEQ\x05"[..], "x").is_err());
        let error = Reader::new(&b"PAR1"[..], "the file").err().expect("refused");
        assert!(error.to_string().contains("the file"), "{error}");
    }
}
