//! Encodings of data blocks: to plain cells when a block is loaded, from cells when it is written.
//!
//! Plain cells are `keyLen(4) valueLen(4) key value [tagsLen(2) tags] [sequence id as vlong]`, where the last two parts are
//! present in all cells of a file or in none ([`Tail`]). The differences of PREFIX, DIFF and FAST_DIFF are always against
//! the cell before, across rows; each block begins anew. Follows: `BufferedDataBlockEncoder` and its subclasses.

mod diff;
mod encoder;
mod fast_diff;
mod prefix;
mod tags;

pub(crate) use encoder::CellEncoder;

use crate::Encoding;
use crate::cursor::{Cursor, Damage, Decoded};
use bytes::Bytes;
use tags::TagDictionary;

/// What follows a cell's value in this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// A tags section, perhaps empty.
    pub tags: bool,
    /// The tags of encoded blocks are dictionary-compressed.
    pub tags_compressed: bool,
    /// A sequence id.
    pub mvcc: bool,
}

/// The plain cells of the payload of a data block. `encoded`: whether the block's magic says so.
pub(crate) fn decode(payload: Bytes, encoded: bool, tail: Tail) -> Decoded<Bytes> {
    if !encoded {
        return Ok(payload);
    }
    let mut at = Cursor::new(&payload);
    let id = at.u16()?;
    match Encoding::from_code(u32::from(id)) {
        Some(Encoding::RowIndexV1) => row_index_cells(&payload),
        Some(encoding @ (Encoding::Prefix | Encoding::Diff | Encoding::FastDiff)) => {
            let plain_len = at.u32()? as usize;
            if plain_len > crate::block::MAX_BLOCK_LEN {
                return Err(format!("{plain_len} bytes of cells are too many for a block").into());
            }
            let mut out = PlainCells::new(plain_len, payload.len(), tail);
            match encoding {
                Encoding::Prefix => prefix::decode(at, &mut out)?,
                Encoding::Diff => diff::decode(at, &mut out)?,
                _ => fast_diff::decode(at, &mut out)?,
            }
            Ok(Bytes::from(out.bytes))
        }
        Some(Encoding::None) | None => Err(format!("block encoding {id} is not known").into()),
    }
}

/// The cell area of a ROW_INDEX_V1 block: its length is the block's last number, its table of rows is not needed.
fn row_index_cells(payload: &Bytes) -> Decoded<Bytes> {
    let body = payload.slice(2..);
    let cells_len = body.last_chunk::<4>().map(|b| u32::from_be_bytes(*b) as usize);
    let cells_len = cells_len.ok_or("the block has no room for its row index")?;
    let mut table = Cursor::new(body.get(cells_len..).ok_or("the cells are longer than their block")?);
    let rows = table.u32()? as usize;
    if rows.checked_mul(4).and_then(|len| len.checked_add(4)) != Some(table.len()) {
        return Err(format!("a row index of {rows} rows does not fill the rest of the block").into());
    }
    Ok(body.slice(..cells_len))
}

/// Plain cells being decoded.
struct PlainCells {
    bytes: Vec<u8>,
    limit: usize,
    tail: Tail,
    dictionary: TagDictionary,
}

impl PlainCells {
    fn new(limit: usize, source_len: usize, tail: Tail) -> PlainCells {
        // The announced size is reserved only as far as the source makes it likely.
        let bytes = Vec::with_capacity(limit.min(source_len.saturating_mul(16)));
        PlainCells { bytes, limit, tail, dictionary: TagDictionary::default() }
    }

    /// Begins a cell: checks that it fits and writes its lengths. Returns where its key starts.
    #[inline]
    fn begin(&mut self, key_len: usize, value_len: usize) -> Decoded<usize> {
        if key_len.saturating_add(value_len) > self.limit.saturating_sub(self.bytes.len() + 8) {
            return Err("the cells are longer than the block announces".into());
        }
        self.bytes.extend_from_slice(&(key_len as u32).to_be_bytes());
        self.bytes.extend_from_slice(&(value_len as u32).to_be_bytes());
        Ok(self.bytes.len())
    }

    /// Repeats `len` bytes from `from` on, which lie in a cell before.
    #[inline]
    fn repeat(&mut self, from: usize, len: usize) {
        self.bytes.extend_from_within(from..from + len);
    }

    #[inline]
    fn copy(&mut self, at: &mut Cursor<'_>, len: usize) -> Decoded<()> {
        self.bytes.extend_from_slice(at.take(len)?);
        Ok(())
    }

    fn row_len_at(&self, key: usize) -> Decoded<usize> {
        let bytes = self.bytes.get(key..key + 2).ok_or("a row length is missing")?;
        let len = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        if len > cell::MAX_ROW_LENGTH { Err(Damage(format!("a row of {len} bytes"))) } else { Ok(len) }
    }

    /// Ends a cell: copies what follows its value.
    #[inline]
    fn end(&mut self, at: &mut Cursor<'_>) -> Decoded<()> {
        if self.tail.tags {
            let len = at.compressed_int()?;
            let len16 = u16::try_from(len).map_err(|_| Damage(format!("tags of {len} bytes")))?;
            self.bytes.extend_from_slice(&len16.to_be_bytes());
            if self.tail.tags_compressed && len > 0 {
                self.dictionary.unpack(at, len, &mut self.bytes)?;
            } else {
                self.copy(at, len)?;
            }
        }
        if self.tail.mvcc {
            cell::vint::write(&mut self.bytes, at.vlong()?);
        }
        if self.bytes.len() > self.limit { Err("the cells are longer than the block announces".into()) } else { Ok(()) }
    }
}

/// The key length of a cell whose parts are known, from the length its encoding gives.
fn rest_len(key_len: usize, known: usize) -> Decoded<usize> {
    key_len.checked_sub(known).ok_or_else(|| Damage(format!("a key of {key_len} bytes has parts of {known}")))
}
