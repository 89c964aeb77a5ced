//! SequenceFiles with HBase's rows: what Export writes and Import reads. Follows: `ImmutableBytesWritable`, `ResultSerialization`.
//!
//! ```text
//! key: length (4), row           value: length (varint), protobuf message Result
//! ```

use std::io::{Read, Write};

use bytes::Bytes;
use cell::{CellBlock, CellSpec};
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
pub(super) struct RowReader<R: Read> {
    input: Reader<R>,
}

impl<R: Read> RowReader<R> {
    /// Reads a file's head. `name` is for messages.
    pub fn new(input: R, name: &str) -> anyhow::Result<RowReader<R>> {
        Ok(RowReader { input: Reader::new(input, name, CLASSES)? })
    }

    /// The next row's cells; none at the end.
    pub fn next(&mut self) -> anyhow::Result<Option<CellBlock>> {
        let Some((_, value)) = self.input.next()? else { return Ok(None) };
        let result = pb::Result::decode_length_delimited(value)
            .map_err(|error| self.input.damaged(&format!("its value is no Result ({error})")))?;
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
            spec.check_lengths().map_err(|error| self.input.damaged(&error.to_string()))?;
            cell::tag::check(spec.tags).map_err(|error| self.input.damaged(&error.to_string()))?;
            bytes.push_spec(&spec, base::SeqId(0));
        }
        Ok(bytes.into_block())
    }
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
        let mut reader = RowReader::new(&bytes[..], "the golden file").expect("a head");
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
            while let Some(cells) = reader.next().expect("a record") {
                let first = cells.iter().next().expect("a cell");
                assert_eq!((first.row(), first.timestamp()), (format!("r{rows:03}").as_bytes(), 1000 + rows));
                assert_eq!(first.value(), format!("v{rows}").repeat(20).as_bytes());
                rows += 1;
            }
            assert_eq!(rows, 100, "{name}");
        }
    }

    #[test]
    fn damage_is_named_and_never_a_panic() {
        let bytes = file(Packing::None);
        for len in 0..bytes.len() {
            let Ok(mut reader) = RowReader::new(&bytes[..len], "x") else { continue };
            while let Ok(Some(_)) = reader.next() {}
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            let Ok(mut reader) = RowReader::new(&damaged[..], "x") else { continue };
            while let Ok(Some(_)) = reader.next() {}
        }
        assert!(RowReader::new(&b"SEQ\x05"[..], "x").is_err());
        let error = RowReader::new(&b"PAR1"[..], "the file").err().expect("refused");
        assert!(error.to_string().contains("the file"), "{error}");
    }
}
