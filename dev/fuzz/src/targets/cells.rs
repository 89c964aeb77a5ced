//! Cell blocks.

use super::{shared, take_byte};
use crate::{Target, golden};
use base::SeqId;
use cell::{CellBlock, CellRef, CellSpec, CellType, KeyRef, Order};
use rpc::CellCodec;

pub(super) const CELL_BLOCK: Target = Target {
    name: "cell-block",
    about: "cells in every codec, read, written and read again; keys; tags",
    max_len: 2048,
    words: &["\\x7f\\xff\\xff\\xff\\xff\\xff\\xff\\xff", "\\xff\\xff\\xff\\xff", "\\x00\\x00\\x00\\x1a"],
    seeds,
    run,
};

/// Some cells, one of them with tags.
pub(super) fn sample() -> CellBlock {
    let mut tags = Vec::new();
    cell::tag::write(&mut tags, 8, &5000_i64.to_be_bytes());
    let spec = |row: &'static str, qualifier: &'static str, type_code: u8, tags| CellSpec {
        row: row.as_bytes(),
        family: b"f",
        qualifier: qualifier.as_bytes(),
        timestamp: 1_700_000_000_000,
        type_code,
        value: b"value",
        tags,
    };
    CellBlock::from_specs([
        spec("row", "q", CellType::Put.code(), &[][..]),
        spec("row", "r", CellType::DeleteColumn.code(), &[]),
        spec("row2", "", CellType::Put.code(), &tags),
    ])
}

fn run(mut data: &[u8]) {
    let codec = [CellCodec::KeyValue, CellCodec::KeyValueWithTags, CellCodec::Cell, CellCodec::CellWithTags]
        [usize::from(take_byte(&mut data)) % 4];
    look_at_key(data);
    look_at_cell(data);
    let _ = CellBlock::parse_shapes(shared(data));
    let Ok(block) = codec.decode(shared(data)) else { return };
    assert_eq!(block.iter().count(), block.len());
    for cell in block.iter() {
        look_at_cell(cell.bytes());
    }
    let again = codec.decode(codec.encode(block.bytes().clone(), true)).expect("what we write we read");
    // The codecs without tags drop them when they read, so that there are none to be dropped when they write.
    assert_eq!(again.bytes(), block.bytes());
    let _ = block.split(block.len() / 2);
}

fn look_at_cell(bytes: &[u8]) {
    let _ = CellRef::parse_shape(bytes, SeqId(1)).map(|cell| cell.tags().len());
    let Ok(cell) = CellRef::parse(bytes, SeqId(1)) else { return };
    let _ = cell::tag::ttl_ms(cell.tags());
    assert!(cell.row().len() + cell.family().len() + cell.qualifier().len() + cell.value().len() <= bytes.len());
    assert!(Order::User.cells(cell, cell).is_eq());
    let _ = Order::Meta.cells(cell, cell);
    assert_eq!(cell::print::to_bytes_binary(&cell::print::to_string_binary(cell.row())), cell.row());
    let _ = format!("{cell:?}");
}

fn look_at_key(bytes: &[u8]) {
    let _ = cell::vint::read(bytes);
    let _ = cell::tag::check(bytes).is_ok() && cell::tag::iter(bytes).count() > 0;
    let Ok(key) = KeyRef::parse(bytes) else { return };
    let other = KeyRef::parse(bytes).expect("the same bytes");
    assert!(Order::User.keys(key, other).is_eq());
    let _ = Order::Meta.keys(key, other);
    let _ = (key.row(), key.family(), key.qualifier(), key.timestamp(), key.type_code(), key.column());
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for line in golden::lines("misc/cellblocks.jsonl") {
        for (number, field) in ["KeyValueCodec", "KeyValueCodecWithTags", "CellCodec"].iter().enumerate() {
            let Some(bytes) = golden::bytes(&line, field) else { continue };
            let mut seed = vec![number as u8];
            seed.extend_from_slice(&bytes[..bytes.len().min(1500)]);
            seeds.push(seed);
        }
    }
    for (number, codec) in
        [CellCodec::KeyValue, CellCodec::KeyValueWithTags, CellCodec::Cell, CellCodec::CellWithTags].iter().enumerate()
    {
        let mut seed = vec![number as u8];
        seed.extend_from_slice(&codec.encode(sample().bytes().clone(), true));
        seeds.push(seed);
    }
    seeds
}
