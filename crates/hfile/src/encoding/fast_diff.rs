//! FAST_DIFF: as DIFF, with whole shared bytes of timestamps and repeated values left out. Follows: `FastDiffDeltaEncoder`.

use super::{PlainCells, encoder::Pair, rest_len};
use crate::cursor::{Cursor, Decoded, write_compressed_int};
use cell::CellRef;

const TIMESTAMP_SHARED: u8 = 0x07;
const SAME_KEY_LENGTH: u8 = 0x08;
const SAME_VALUE_LENGTH: u8 = 0x10;
const SAME_TYPE: u8 = 0x20;
const SAME_VALUE: u8 = 0x40;

pub(super) fn decode(mut at: Cursor<'_>, out: &mut PlainCells) -> Decoded<()> {
    let (mut previous, mut key_len, mut value_len, mut row_len) = (0, 0, 0, 0);
    let mut first = true;
    while !at.is_empty() {
        let flag = at.u8()?;
        let (previous_key_len, previous_value_len) = (key_len, value_len);
        if flag & SAME_KEY_LENGTH == 0 {
            key_len = at.compressed_int()?;
        }
        if flag & SAME_VALUE_LENGTH == 0 {
            value_len = at.compressed_int()?;
        }
        let common = at.compressed_int()?;
        let key = out.begin(key_len, value_len)?;
        if first {
            // A whole key; that it is well formed is needed below, where the family is taken from the cell before.
            out.copy(&mut at, key_len)?;
            cell::KeyRef::parse(&out.bytes[key..]).map_err(|e| e.to_string())?;
            row_len = out.row_len_at(key)?;
            out.copy(&mut at, value_len)?;
            out.end(&mut at)?;
            (previous, first) = (key, false);
            continue;
        }
        if common > previous_key_len - 9 {
            return Err(format!("{common} bytes shared with a key of {previous_key_len}").into());
        }
        out.repeat(previous, common);
        let qualifier_rest = if common < 2 + row_len {
            let family = previous + 2 + row_len;
            let family_len = usize::from(out.bytes[family]);
            if common < 2 {
                out.copy(&mut at, 2 - common)?;
            }
            row_len = out.row_len_at(key)?;
            out.copy(&mut at, rest_len(2 + row_len, common.max(2))?)?;
            out.repeat(family, 1 + family_len);
            rest_len(key_len, 2 + row_len + 1 + family_len + 9)?
        } else {
            // The family may be cut off by what is shared; then the rest must hold it, and it cannot.
            let family_end = 2 + row_len + 1 + usize::from(out.bytes[previous + 2 + row_len]);
            if common < family_end {
                return Err(format!("{common} shared bytes end within the family").into());
            }
            rest_len(key_len, common + 9)?
        };
        out.copy(&mut at, qualifier_rest)?;
        let shared = usize::from(flag & TIMESTAMP_SHARED);
        out.repeat(previous + previous_key_len - 9, shared);
        out.copy(&mut at, 8 - shared)?;
        if flag & SAME_TYPE == 0 {
            out.copy(&mut at, 1)?;
        } else {
            out.repeat(previous + previous_key_len - 1, 1);
        }
        if flag & SAME_VALUE == 0 {
            out.copy(&mut at, value_len)?;
        } else if value_len == previous_value_len {
            out.repeat(previous + previous_key_len, value_len);
        } else {
            return Err("the same value has another length".into());
        }
        out.end(&mut at)?;
        previous = key;
    }
    Ok(())
}

pub(super) fn encode(cell: CellRef<'_>, previous: Option<CellRef<'_>>, out: &mut Vec<u8>) {
    let (key, value) = (cell.key(), cell.value());
    let Some(previous) = previous else {
        out.push(0);
        write_compressed_int(out, key.bytes().len());
        write_compressed_int(out, value.len());
        write_compressed_int(out, 0);
        out.extend_from_slice(key.bytes());
        out.extend_from_slice(value);
        return;
    };
    let common = Pair::new(cell, previous).common;
    let (timestamp, previous_timestamp) = (key.timestamp().to_be_bytes(), previous.timestamp().to_be_bytes());
    // At least one byte of the timestamp is always stored.
    let shared = super::encoder::shared(&timestamp[..7], &previous_timestamp[..7]);
    let mut flag = shared as u8;
    if key.bytes().len() == previous.key().bytes().len() {
        flag |= SAME_KEY_LENGTH;
    }
    if value.len() == previous.value().len() {
        flag |= SAME_VALUE_LENGTH;
    }
    if key.type_code() == previous.type_code() {
        flag |= SAME_TYPE;
    }
    if value == previous.value() {
        flag |= SAME_VALUE;
    }
    out.push(flag);
    if flag & SAME_KEY_LENGTH == 0 {
        write_compressed_int(out, key.bytes().len());
    }
    if flag & SAME_VALUE_LENGTH == 0 {
        write_compressed_int(out, value.len());
    }
    write_compressed_int(out, common);
    super::encoder::write_row_and_qualifier_rest(key, common, out);
    out.extend_from_slice(&timestamp[shared..]);
    if flag & SAME_TYPE == 0 {
        out.push(key.type_code());
    }
    if flag & SAME_VALUE == 0 {
        out.extend_from_slice(value);
    }
}
