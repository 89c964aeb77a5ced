//! A data block being filled with cells.

use super::{Tail, diff, fast_diff, prefix, tags::TagDictionary};
use crate::Encoding;
use crate::block::HEADER_LEN;
use cell::{CellRef, KeyRef, vint};

/// The payload of the block being written, and the two sizes that decide when it is full.
pub(crate) struct CellEncoder {
    encoding: Encoding,
    tail: Tail,
    /// What was there when the block began, then room for the block's header, then its payload.
    framed: Vec<u8>,
    /// Where the room for the header begins.
    base: usize,
    /// Bytes the cells take in the plain layout.
    plain_len: usize,
    /// Bytes the cells take as encoded, ROW_INDEX_V1's table included.
    encoded_len: usize,
    dictionary: TagDictionary,
    /// Where each row starts (ROW_INDEX_V1).
    rows: Vec<u32>,
}

impl CellEncoder {
    /// `bytes`: as for [`CellEncoder::begin`].
    pub fn new(encoding: Encoding, tail: Tail, bytes: Vec<u8>) -> CellEncoder {
        let mut encoder = CellEncoder {
            encoding,
            tail,
            framed: Vec::new(),
            base: 0,
            plain_len: 0,
            encoded_len: 0,
            dictionary: TagDictionary::default(),
            rows: Vec::new(),
        };
        encoder.begin(bytes);
        encoder
    }

    /// Begins a new block behind what `bytes` has.
    pub fn begin(&mut self, bytes: Vec<u8>) {
        self.framed = bytes;
        self.base = self.framed.len();
        self.framed.resize(self.base + HEADER_LEN, 0);
        self.rows.clear();
        self.dictionary.clear();
        (self.plain_len, self.encoded_len) = (0, 0);
        if self.encoding != Encoding::None {
            self.framed.extend_from_slice(&(self.encoding.code() as u16).to_be_bytes());
        }
        if self.has_plain_len() {
            self.framed.extend_from_slice(&[0; 4]);
        }
    }

    fn has_plain_len(&self) -> bool {
        !matches!(self.encoding, Encoding::None | Encoding::RowIndexV1)
    }

    /// Whether no cell was added since the block began.
    pub fn is_empty(&self) -> bool {
        self.plain_len == 0
    }

    /// Whether either size has reached `block_size`.
    pub fn is_full(&self, block_size: usize) -> bool {
        self.plain_len >= block_size || self.encoded_len >= block_size
    }

    /// Adds `cell`; `previous` is the cell added before it in this file.
    pub fn add(&mut self, cell: CellRef<'_>, previous: Option<CellRef<'_>>) {
        let previous = previous.filter(|_| !self.is_empty());
        let before = self.framed.len();
        let out = &mut self.framed;
        let mut table_len = 0;
        let plain = matches!(self.encoding, Encoding::None | Encoding::RowIndexV1);
        match self.encoding {
            Encoding::None => out.extend_from_slice(cell.bytes_without_tags()),
            Encoding::RowIndexV1 => {
                if previous.is_none_or(|previous| previous.row() != cell.row()) {
                    self.rows.push((before - self.base - HEADER_LEN - 2) as u32);
                    table_len = 4;
                }
                out.extend_from_slice(cell.bytes_without_tags());
            }
            Encoding::Prefix => prefix::encode(cell, previous, out),
            Encoding::Diff => diff::encode(cell, previous, out),
            Encoding::FastDiff => fast_diff::encode(cell, previous, out),
        }
        self.plain_len += cell.bytes_without_tags().len();
        if self.tail.tags {
            let tags = cell.tags();
            if plain {
                out.extend_from_slice(&(tags.len() as u16).to_be_bytes());
            } else {
                crate::cursor::write_compressed_int(out, tags.len());
            }
            if self.tail.tags_compressed && !plain {
                self.dictionary.pack(tags, out);
            } else {
                out.extend_from_slice(tags);
            }
            self.plain_len += 2 + tags.len();
        }
        if self.tail.mvcc {
            let seq_id = cell.seq_id().0 as i64;
            vint::write(out, seq_id);
            self.plain_len += vint::encoded_len(seq_id);
        }
        self.encoded_len += self.framed.len() - before + table_len;
    }

    /// What the block began behind, then room for its header, then its payload; and where the room begins. Nothing but the first when no cell was added.
    /// [`CellEncoder::begin`] begins the next block.
    pub fn finish(&mut self) -> (Vec<u8>, usize) {
        let (base, payload) = (self.base, self.base + HEADER_LEN);
        if self.is_empty() {
            self.framed.truncate(base);
            return (std::mem::take(&mut self.framed), base);
        }
        if self.has_plain_len() {
            self.framed[payload + 2..payload + 6].copy_from_slice(&(self.plain_len as u32).to_be_bytes());
        }
        if self.encoding == Encoding::RowIndexV1 {
            let cells_len = self.framed.len() - payload - 2;
            self.framed.extend_from_slice(&(self.rows.len() as u32).to_be_bytes());
            for row in &self.rows {
                self.framed.extend_from_slice(&row.to_be_bytes());
            }
            self.framed.extend_from_slice(&(cells_len as u32).to_be_bytes());
        }
        (std::mem::take(&mut self.framed), base)
    }
}

/// Length of the common prefix.
pub(super) fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// What two neighbours' keys share, before the timestamp.
pub(super) struct Pair {
    /// Shared leading bytes of the flat keys; the family counts as shared when the rows are the same.
    pub common: usize,
    pub same_qualifier: bool,
}

impl Pair {
    /// Follows: `PrivateCellUtil#findCommonPrefixInFlatKey` with the family check left out.
    pub fn new(cell: CellRef<'_>, previous: CellRef<'_>) -> Pair {
        let (a, b) = (cell.key(), previous.key());
        let (a_row, b_row) = (a.row(), b.row());
        if a_row.len() != b_row.len() {
            return Pair { common: shared(&a.bytes()[..2], &b.bytes()[..2]), same_qualifier: false };
        }
        let row = shared(a_row, b_row);
        if row != a_row.len() {
            return Pair { common: 2 + row, same_qualifier: false };
        }
        let qualifier = shared(a.qualifier(), b.qualifier());
        Pair {
            common: 2 + row + 1 + a.family().len() + qualifier,
            same_qualifier: a.qualifier().len().max(b.qualifier().len()) == qualifier,
        }
    }
}

/// What follows `common` shared bytes, up to the timestamp, the family left out (DIFF and FAST_DIFF).
pub(super) fn write_row_and_qualifier_rest(key: KeyRef<'_>, common: usize, out: &mut Vec<u8>) {
    let bytes = key.bytes();
    let row_end = 2 + key.row().len();
    if common < row_end {
        out.extend_from_slice(&bytes[common..row_end]);
        out.extend_from_slice(key.qualifier());
    } else {
        out.extend_from_slice(&bytes[common..bytes.len() - 9]);
    }
}
