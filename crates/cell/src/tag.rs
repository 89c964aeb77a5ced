//! Tags of a cell: `len(2) type(1) value`, where `len` counts type and value.

use crate::CellError;

/// Access control list.
pub const ACL: u8 = 1;
/// Visibility expression.
pub const VISIBILITY: u8 = 2;
/// Value lives in a MOB file.
pub const MOB_REFERENCE: u8 = 5;
/// Table of the MOB file.
pub const MOB_TABLE_NAME: u8 = 6;
/// Time to live of the cell, 8-byte milliseconds.
pub const TTL: u8 = 8;
/// By which 8-byte value its row was put into a file with others, of a store that divides rows so.
pub const CELL_VALUE_TIERING: u8 = 9;

/// Checks that `tags` is whole tags.
///
/// # Errors
/// The offset where a tag does not fit.
pub fn check(tags: &[u8]) -> Result<(), CellError> {
    let mut at = 0;
    while at < tags.len() {
        let Some(len) = tags.get(at..at + 2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]]))) else {
            return Err(CellError::new("a tag is cut short at offset", at));
        };
        if len == 0 || at + 2 + len > tags.len() {
            return Err(CellError::new("a tag is cut short at offset", at));
        }
        at += 2 + len;
    }
    Ok(())
}

/// The tags as (type, value); stops at a damaged one.
pub fn iter(tags: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = tags;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let (tag, next) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        rest = next;
        tag.split_first().map(|(t, v)| (*t, v))
    })
}

/// Appends one tag to `out`.
pub fn write(out: &mut Vec<u8>, tag_type: u8, value: &[u8]) {
    out.extend_from_slice(&u16::try_from(value.len() + 1).expect("tag value under 64 KiB").to_be_bytes());
    out.push(tag_type);
    out.extend_from_slice(value);
}

/// The cell's own time to live in milliseconds, from its TTL tag.
pub fn ttl_ms(tags: &[u8]) -> Option<i64> {
    number(tags, TTL)
}

/// The tiering value of the cell's row, from its tag.
pub fn tiering_value(tags: &[u8]) -> Option<i64> {
    number(tags, CELL_VALUE_TIERING)
}

fn number(tags: &[u8], tag_type: u8) -> Option<i64> {
    iter(tags).find(|(t, _)| *t == tag_type).and_then(|(_, v)| v.try_into().ok()).map(i64::from_be_bytes)
}
