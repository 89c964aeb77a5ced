//! DIFF: keys without shared bytes, timestamps as differences, family once in the block. Follows: `DiffKeyDeltaEncoder`.

use super::{PlainCells, encoder::Pair, rest_len};
use crate::cursor::{Cursor, Decoded, write_compressed_int};
use cell::CellRef;

const SAME_KEY_LENGTH: u8 = 0x01;
const SAME_VALUE_LENGTH: u8 = 0x02;
const SAME_TYPE: u8 = 0x04;
const TIMESTAMP_IS_DIFFERENCE: u8 = 0x08;
const TIMESTAMP_LENGTH_SHIFT: u8 = 4;
const TIMESTAMP_SIGN: u8 = 0x80;

pub(super) fn decode(mut at: Cursor<'_>, out: &mut PlainCells) -> Decoded<()> {
    if at.is_empty() {
        return Ok(());
    }
    let family_len = usize::from(at.u8()?);
    let family = at.take(family_len)?;
    let (mut previous, mut key_len, mut value_len, mut row_len, mut timestamp, mut type_code) = (0, 0, 0, 0, 0i64, 0);
    let mut first = true;
    while !at.is_empty() {
        let flag = at.u8()?;
        let previous_key_len = key_len;
        if flag & SAME_KEY_LENGTH == 0 {
            key_len = at.compressed_int()?;
        }
        if flag & SAME_VALUE_LENGTH == 0 {
            value_len = at.compressed_int()?;
        }
        let common = at.compressed_int()?;
        // What is shared ends before the timestamp.
        if common > usize::saturating_sub(previous_key_len, 9) {
            return Err(format!("{common} bytes shared with a key of {previous_key_len}").into());
        }
        let key = out.begin(key_len, value_len)?;
        out.repeat(previous, common);
        let qualifier_rest = if first || common < 2 + row_len {
            if common < 2 {
                out.copy(&mut at, 2 - common)?;
            }
            row_len = out.row_len_at(key)?;
            out.copy(&mut at, rest_len(2 + row_len, common.max(2))?)?;
            out.bytes.push(family_len as u8);
            out.bytes.extend_from_slice(family);
            rest_len(key_len, 2 + row_len + 1 + family_len + 9)?
        } else {
            rest_len(key_len, common + 9)?
        };
        out.copy(&mut at, qualifier_rest)?;
        let width = usize::from((flag & !TIMESTAMP_SIGN) >> TIMESTAMP_LENGTH_SHIFT) + 1;
        let mut bytes = [0u8; 8];
        bytes[..width].copy_from_slice(at.take(width)?);
        let mut number = i64::from_le_bytes(bytes);
        if flag & TIMESTAMP_SIGN != 0 {
            number = number.wrapping_neg();
        }
        timestamp = if flag & TIMESTAMP_IS_DIFFERENCE == 0 { number } else { timestamp.wrapping_sub(number) };
        out.bytes.extend_from_slice(&timestamp.to_be_bytes());
        if flag & SAME_TYPE == 0 {
            type_code = at.u8()?;
        }
        out.bytes.push(type_code);
        out.copy(&mut at, value_len)?;
        out.end(&mut at)?;
        (previous, first) = (key, false);
    }
    Ok(())
}

/// Bytes that `value` needs as an unsigned number; a negative one needs all.
fn width(value: i64) -> usize {
    (8 - value.leading_zeros() as usize / 8).max(1)
}

pub(super) fn encode(cell: CellRef<'_>, previous: Option<CellRef<'_>>, out: &mut Vec<u8>) {
    let key = cell.key();
    let timestamp = key.timestamp();
    let magnitude = timestamp.wrapping_abs();
    let (mut flag, mut number, mut negative) = (0, magnitude, timestamp < 0);
    let mut common = 0;
    match previous {
        None => {
            out.push(key.family().len() as u8);
            out.extend_from_slice(key.family());
        }
        Some(previous) => {
            common = Pair::new(cell, previous).common;
            if key.bytes().len() == previous.key().bytes().len() {
                flag |= SAME_KEY_LENGTH;
            }
            if cell.value().len() == previous.value().len() {
                flag |= SAME_VALUE_LENGTH;
            }
            if key.type_code() == previous.type_code() {
                flag |= SAME_TYPE;
            }
            let difference = previous.timestamp().wrapping_sub(timestamp);
            if width(difference.wrapping_abs()) < width(magnitude) {
                flag |= TIMESTAMP_IS_DIFFERENCE;
                (number, negative) = (difference.wrapping_abs(), difference < 0);
            }
        }
    }
    let width = width(number);
    flag |= ((width - 1) as u8) << TIMESTAMP_LENGTH_SHIFT;
    if negative {
        flag |= TIMESTAMP_SIGN;
    }
    out.push(flag);
    if flag & SAME_KEY_LENGTH == 0 {
        write_compressed_int(out, key.bytes().len());
    }
    if flag & SAME_VALUE_LENGTH == 0 {
        write_compressed_int(out, cell.value().len());
    }
    write_compressed_int(out, common);
    super::encoder::write_row_and_qualifier_rest(key, common, out);
    out.extend_from_slice(&number.to_le_bytes()[..width]);
    if flag & SAME_TYPE == 0 {
        out.push(key.type_code());
    }
    out.extend_from_slice(cell.value());
}
