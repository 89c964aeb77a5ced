//! PREFIX: each key without the bytes it shares with the key before. Follows: `PrefixKeyDeltaEncoder`.

use super::{PlainCells, encoder::Pair};
use crate::cursor::{Cursor, Decoded, write_compressed_int};
use cell::CellRef;

pub(super) fn decode(mut at: Cursor<'_>, out: &mut PlainCells) -> Decoded<()> {
    let (mut previous, mut previous_len) = (0, 0);
    while !at.is_empty() {
        let (rest, value_len, common) = (at.compressed_int()?, at.compressed_int()?, at.compressed_int()?);
        if common > previous_len {
            return Err(format!("{common} bytes shared with a key of {previous_len}").into());
        }
        let key = out.begin(rest + common, value_len)?;
        out.repeat(previous, common);
        out.copy(&mut at, rest)?;
        out.copy(&mut at, value_len)?;
        out.end(&mut at)?;
        (previous, previous_len) = (key, rest + common);
    }
    Ok(())
}

pub(super) fn encode(cell: CellRef<'_>, previous: Option<CellRef<'_>>, out: &mut Vec<u8>) {
    let key = cell.key().bytes();
    let common = previous.map_or(0, |previous| common_with_time(cell, previous));
    write_compressed_int(out, key.len() - common);
    write_compressed_int(out, cell.value().len());
    write_compressed_int(out, common);
    out.extend_from_slice(&key[common..]);
    out.extend_from_slice(cell.value());
}

/// Shared bytes up to the qualifier, and into timestamp and type when the qualifiers are the same.
fn common_with_time(cell: CellRef<'_>, previous: CellRef<'_>) -> usize {
    let pair = Pair::new(cell, previous);
    if !pair.same_qualifier {
        return pair.common;
    }
    let (a, b) = (cell.key().bytes(), previous.key().bytes());
    pair.common + super::encoder::shared(&a[a.len() - 9..], &b[b.len() - 9..])
}
