//! SequenceFiles with HBase's rows: what Export writes and Import reads. Follows: `ImmutableBytesWritable`, `ResultSerialization`.
//!
//! ```text
//! key: length (4), row           value: length (varint), protobuf message Result
//! ```

use std::io::{BufRead, Write};

use anyhow::Context;
use bytes::Bytes;
use cell::{CellBuffer, CellSpec};
use prost::decode_length_delimiter;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use proto::{Message, pb};

use super::sequence_file::{Classes, Form, Reader, Writer};

const CLASSES: Classes = Classes {
    key: "org.apache.hadoop.hbase.io.ImmutableBytesWritable",
    value: "org.apache.hadoop.hbase.client.Result",
    what: "export of HBase's",
};

/// Bytes as `ImmutableBytesWritable` writes them.
pub(super) fn immutable_bytes(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// Writes a file.
pub(super) struct RowWriter<W: Write> {
    out: Writer<W>,
}

impl<W: Write> RowWriter<W> {
    /// Begins a file.
    pub fn new(out: W, form: &Form) -> anyhow::Result<RowWriter<W>> {
        Ok(RowWriter { out: Writer::new(out, CLASSES, form)? })
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
        self.out.append(&immutable_bytes(row.row()), &result.encode_length_delimited_to_vec())
    }

    /// Ends the file.
    pub fn finish(self) -> anyhow::Result<W> {
        self.out.finish()
    }
}

/// Reads a file.
pub(super) struct RowReader<R: BufRead> {
    input: Reader<R>,
}

impl<R: BufRead> RowReader<R> {
    /// Reads a file's head. `name` is for messages.
    pub fn new(input: R, name: &str) -> anyhow::Result<RowReader<R>> {
        Ok(RowReader { input: Reader::new(input, name, CLASSES)? })
    }

    /// Appends the next row's cells to `cells`; how many they are. None at the end.
    pub fn next(&mut self, cells: &mut CellBuffer) -> anyhow::Result<Option<usize>> {
        match self.input.next_value(|value| read_result(value, cells))? {
            None => Ok(None),
            Some(Ok(count)) => Ok(Some(count)),
            Some(Err(what)) => Err(self.input.damaged(&format!("its value is no Result ({what})"))),
        }
    }
}

/// Appends the cells of a message `Result`, with its length before it, as [`pb::Result`] would read it, but nothing of it is copied twice.
fn read_result(mut bytes: &[u8], cells: &mut CellBuffer) -> anyhow::Result<usize> {
    let mut count = 0;
    let mut result = length_delimited(&mut bytes)?;
    while !result.is_empty() {
        match decode_key(&mut result)? {
            (1, WireType::LengthDelimited) => {
                let cell = read_cell(length_delimited(&mut result)?)?;
                cell.check_lengths()?;
                cell::tag::check(cell.tags)?;
                cells.push_spec(&cell, base::SeqId(0));
                count += 1;
            }
            (tag, wire_type) => skip_field(wire_type, tag, &mut result, DecodeContext::default())?,
        }
    }
    Ok(count)
}

/// A message `Cell`.
fn read_cell(mut bytes: &[u8]) -> anyhow::Result<CellSpec<'_>> {
    let mut cell =
        CellSpec { row: b"", family: b"", qualifier: b"", timestamp: 0, type_code: 0, value: b"", tags: b"" };
    while !bytes.is_empty() {
        match decode_key(&mut bytes)? {
            (1, WireType::LengthDelimited) => cell.row = length_delimited(&mut bytes)?,
            (2, WireType::LengthDelimited) => cell.family = length_delimited(&mut bytes)?,
            (3, WireType::LengthDelimited) => cell.qualifier = length_delimited(&mut bytes)?,
            (4, WireType::Varint) => cell.timestamp = decode_varint(&mut bytes)? as i64,
            (5, WireType::Varint) => cell.type_code = decode_varint(&mut bytes)? as u8,
            (6, WireType::LengthDelimited) => cell.value = length_delimited(&mut bytes)?,
            (7, WireType::LengthDelimited) => cell.tags = length_delimited(&mut bytes)?,
            (tag, wire_type) => skip_field(wire_type, tag, &mut bytes, DecodeContext::default())?,
        }
    }
    Ok(cell)
}

/// Bytes with their length before them.
fn length_delimited<'a>(bytes: &mut &'a [u8]) -> anyhow::Result<&'a [u8]> {
    let len = decode_length_delimiter(&mut *bytes)?;
    let (first, rest) = bytes.split_at_checked(len).context("it ends before its last field does")?;
    *bytes = rest;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::packing::Codec;
    use crate::jobs::sequence_file::Packing;

    fn file(packing: Packing) -> Vec<u8> {
        let mut out = RowWriter::new(Vec::new(), &Form { sync: [7; 16], packing }).expect("begun");
        // Nothing makes a row but a client; an empty one has a key, too.
        for _ in 0..5 {
            out.row(&client::Row::default()).expect("written");
        }
        out.finish().expect("ended")
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = file(Packing::Blocks(Codec::Gzip));
        let mut reader = RowReader::new(&bytes[..], "x").expect("a head");
        let (mut count, mut cells) = (0, CellBuffer::new());
        while let Some(0) = reader.next(&mut cells).expect("a record") {
            count += 1;
        }
        assert_eq!(count, 5);
    }

    #[test]
    fn what_hbase_exported_is_read() {
        // Made by MakeExport.java beside it, with the classes of HBase 2.6.4 and Hadoop 3.4.2.
        let bytes = include_bytes!("../../../../tests/golden/export/part-m-00000");
        let mut reader = RowReader::new(&bytes[..], "the golden file").expect("a head");
        let mut rows = 0;
        let mut cells = CellBuffer::new();
        while let Some(count) = reader.next(&mut cells).expect("a record") {
            assert_eq!(count, 2);
            let all: Vec<_> = cells.iter_from(2 * rows).collect();
            assert_eq!(all[0].row(), format!("row-{rows:05}").as_bytes());
            assert_eq!((all[0].timestamp(), all[0].value().len()), (1000 + rows as i64, rows * 100));
            assert!(!all[0].is_delete() && all[1].is_delete() && all[1].timestamp() == 5);
            rows += 1;
        }
        assert_eq!(rows, 60);
    }

    #[test]
    fn what_hbase_exported_compressed_is_read() {
        // Made by HBase 2.6.4's Export of the rows r000 to r099 of table t of tests/golden/hashtable, with codec and type as they are called.
        for (name, packing) in [
            ("default-record", Packing::Records(Codec::Default)),
            ("gzip-block", Packing::Blocks(Codec::Gzip)),
            ("snappy-block", Packing::Blocks(Codec::Snappy)),
            ("bzip2-block", Packing::Blocks(Codec::Bzip2)),
        ] {
            let place = format!("{}/../../tests/golden/export/compressed/{name}", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(&place).expect("readable");
            let mut reader = RowReader::new(&bytes[..], name).expect("a head");
            assert_eq!(reader.input.packing(), packing);
            let mut rows = 0;
            let mut cells = CellBuffer::new();
            while reader.next(&mut cells).expect("a record").is_some() {
                let first = cells.get(0);
                assert_eq!((first.row(), first.timestamp()), (format!("r{rows:03}").as_bytes(), 1000 + rows));
                assert_eq!(first.value(), format!("v{rows}").repeat(20).as_bytes());
                cells.clear();
                rows += 1;
            }
            assert_eq!(rows, 100, "{name}");
        }
    }

    #[test]
    fn a_result_reads_as_its_message_does() {
        let rng = base::Rng::seeded(7);
        let bytes = |most: u64| Bytes::from((0..rng.below(most)).map(|_| rng.below(256) as u8).collect::<Vec<_>>());
        for _ in 0..200 {
            let cell = (0..rng.below(4)).map(|_| pb::Cell {
                row: Some(bytes(300)),
                family: (rng.below(5) > 0).then(|| bytes(20)),
                qualifier: (rng.below(5) > 0).then(|| bytes(20)),
                timestamp: (rng.below(5) > 0).then(|| rng.next_u64()),
                cell_type: (rng.below(5) > 0).then_some(4),
                value: (rng.below(5) > 0).then(|| bytes(300)),
                tags: None,
            });
            let message = pb::Result { cell: cell.collect(), stale: Some(true), ..pb::Result::default() };
            let mut cells = CellBuffer::new();
            let count = read_result(&message.encode_length_delimited_to_vec(), &mut cells).expect("a Result");
            assert_eq!(count, message.cell.len());
            for (one, read) in message.cell.iter().zip(cells.iter_from(0)) {
                assert_eq!((one.row(), one.family(), one.qualifier()), (read.row(), read.family(), read.qualifier()));
                assert_eq!((one.timestamp() as i64, one.value()), (read.timestamp(), read.value()));
                assert_eq!(one.cell_type() as u8, read.type_code());
            }
        }
    }

    #[test]
    fn damage_is_named_and_never_a_panic() {
        let bytes = file(Packing::None);
        for len in 0..bytes.len() {
            let Ok(mut reader) = RowReader::new(&bytes[..len], "x") else { continue };
            while let Ok(Some(_)) = reader.next(&mut CellBuffer::new()) {}
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            let Ok(mut reader) = RowReader::new(&damaged[..], "x") else { continue };
            while let Ok(Some(_)) = reader.next(&mut CellBuffer::new()) {}
        }
        assert!(RowReader::new(&b"SEQ\x05"[..], "x").is_err());
        let error = RowReader::new(&b"PAR1"[..], "the file").err().expect("refused");
        assert!(error.to_string().contains("the file"), "{error}");
    }
}
