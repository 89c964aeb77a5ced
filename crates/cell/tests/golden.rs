//! Bytes against listings written by HBase itself: printing, variable-length numbers, KeyValues and cell blocks.

#![allow(clippy::disallowed_methods, reason = "a test reads its listings from the tree")]

use basalt_cell::{CellBlock, CellBuffer, CellRef, CellSpec, Order, print, tag, vint};
use base::SeqId;
use bytes::Bytes;
use serde_json::Value;
use std::cmp::Ordering;
use std::path::Path;

fn listing(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/misc").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    assert!(!rows.is_empty(), "{name} is empty");
    rows
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("no text in {field}: {row}"))
}

fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

fn bytes(row: &Value, field: &str) -> Vec<u8> {
    unhex(text(row, field))
}

fn number(row: &Value, field: &str) -> i64 {
    row[field].as_i64().unwrap_or_else(|| panic!("no number in {field}: {row}"))
}

/// A cell of a listing, as parts.
struct Parts {
    row: Vec<u8>,
    family: Vec<u8>,
    qualifier: Vec<u8>,
    timestamp: i64,
    type_code: u8,
    value: Vec<u8>,
    tags: Vec<u8>,
    seq_id: SeqId,
}

impl Parts {
    fn read(cell: &Value) -> Parts {
        let mut tags = Vec::new();
        for tag in cell["tags"].as_array().into_iter().flatten() {
            let tag_type = tag[0].as_u64().and_then(|t| u8::try_from(t).ok()).expect("tag type");
            tag::write(&mut tags, tag_type, &unhex(tag[1].as_str().expect("tag value")));
        }
        Parts {
            row: bytes(cell, "r"),
            family: bytes(cell, "f"),
            qualifier: bytes(cell, "q"),
            timestamp: number(cell, "ts"),
            type_code: u8::try_from(number(cell, "t")).expect("type"),
            value: if cell["v"].is_string() { bytes(cell, "v") } else { filled(&cell["v_fill"]) },
            tags,
            seq_id: SeqId(number(cell, "seq") as u64),
        }
    }

    fn spec(&self, with_tags: bool) -> CellSpec<'_> {
        CellSpec {
            row: &self.row,
            family: &self.family,
            qualifier: &self.qualifier,
            timestamp: self.timestamp,
            type_code: self.type_code,
            value: &self.value,
            tags: if with_tags { &self.tags } else { &[] },
        }
    }
}

/// Long values are given as length and first two bytes.
fn filled(fill: &Value) -> Vec<u8> {
    let at = |i: usize| fill[i].as_u64().unwrap_or_else(|| panic!("not a value: {fill}")) as usize;
    let (len, a, b) = (at(0), at(1), at(2));
    let byte = |i: usize| match i {
        0 => a,
        1 => b,
        _ => a + i * b + (i >> 7) * 13 + (i >> 12) * (i & 7),
    };
    (0..len).map(|i| byte(i) as u8).collect()
}

#[test]
fn bytes_print_and_read_back_as_in_hbase() {
    for row in listing("tostringbinary.jsonl") {
        let printed = print::to_string_binary(&bytes(&row, "in"));
        assert_eq!(printed, text(&row, "toStringBinary"));
        assert_eq!(print::to_bytes_binary(text(&row, "toStringBinary")), bytes(&row, "back"), "{printed}");
    }
}

#[test]
fn variable_length_numbers_are_hadoops() {
    for row in listing("hadoop-vlong.jsonl") {
        let (value, expected) = (number(&row, "value"), bytes(&row, "hadoop_vlong"));
        let mut written = Vec::new();
        vint::write(&mut written, value);
        assert_eq!(written, expected, "{value}");
        assert_eq!(vint::encoded_len(value), expected.len(), "{value}");
        assert_eq!(vint::read(&expected), Some((value, expected.len())));
    }
}

#[test]
fn cells_are_written_and_parsed_as_key_values() {
    for block in listing("cellblocks.jsonl") {
        let mut last: Option<(Vec<u8>, SeqId)> = None;
        for cell in block["cells"].as_array().expect("cells") {
            let parts = Parts::read(cell);
            let mut written = Vec::new();
            let spec = parts.spec(true);
            spec.write(&mut written);
            let expected = bytes(cell, "kv");
            assert_eq!(written, expected, "{cell}");
            assert_eq!(written.len(), spec.encoded_len(), "{cell}");

            let parsed = CellRef::parse_shape(&expected, parts.seq_id).unwrap_or_else(|e| panic!("{e}: {cell}"));
            assert_eq!(parsed.row(), parts.row);
            assert_eq!(parsed.family(), parts.family);
            assert_eq!(parsed.qualifier(), parts.qualifier);
            assert_eq!((parsed.timestamp(), parsed.type_code()), (parts.timestamp, parts.type_code));
            assert_eq!(parsed.value(), parts.value);
            assert_eq!(parsed.tags(), parts.tags);
            // The listings are in HBase's order.
            if let Some((last, seq_id)) = &last {
                let last = CellRef::from_checked(last, *seq_id);
                assert_ne!(Order::User.cells(last, parsed), Ordering::Greater, "{cell}");
            }
            last = Some((expected.clone(), parts.seq_id));
        }
    }
}

#[test]
fn cell_blocks_with_and_without_tags_are_hbases() {
    for block in listing("cellblocks.jsonl") {
        let cells: Vec<Parts> = block["cells"].as_array().expect("cells").iter().map(Parts::read).collect();
        for (codec, with_tags) in [("KeyValueCodecWithTags", true), ("KeyValueCodec", false)] {
            let expected = Bytes::from(bytes(&block, codec));
            let built = CellBlock::from_specs(cells.iter().map(|parts| parts.spec(with_tags)));
            assert_eq!(built.bytes(), &expected, "{codec}");

            let parsed = CellBlock::parse_shapes(expected.clone()).unwrap_or_else(|e| panic!("{codec}: {e}"));
            assert_eq!(parsed.len(), cells.len(), "{codec}");
            let mut again = CellBuffer::new();
            for (cell, parts) in parsed.iter().zip(&cells) {
                assert_eq!((cell.row(), cell.value()), (&parts.row[..], &parts.value[..]), "{codec}");
                again.push(cell);
            }
            assert_eq!(again.bytes(), expected, "{codec}");
        }
        // Leaving the tags out of cells that have them gives what the codec without tags gives.
        let mut bare = Vec::new();
        let tagged =
            CellBlock::parse_shapes(Bytes::from(bytes(&block, "KeyValueCodecWithTags"))).expect("parsed above");
        for cell in &tagged {
            let kv = cell.bytes_without_tags();
            bare.extend_from_slice(&(kv.len() as u32).to_be_bytes());
            bare.extend_from_slice(kv);
        }
        assert_eq!(bare, bytes(&block, "KeyValueCodec"));
    }
}
