//! One cell in KeyValue layout, borrowed ([`CellRef`]), or described by its parts ([`CellSpec`]).

use crate::{CellType, KeyRef, key::KEY_OVERHEAD};
use base::SeqId;

/// Longest row: `Short.MAX_VALUE`.
pub const MAX_ROW_LENGTH: usize = 32767;
/// Longest family name: `Byte.MAX_VALUE`.
pub const MAX_FAMILY_LENGTH: usize = 127;

/// Bytes that are not a cell.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("not a KeyValue: {what} ({number})")]
pub struct CellError {
    what: &'static str,
    number: usize,
}

impl CellError {
    /// An error that says `what` is wrong, with the number that shows it.
    pub fn new(what: &'static str, number: usize) -> CellError {
        CellError { what, number }
    }
}

/// A well-formed cell: KeyValue bytes (with `tagsLen(2) tags` only if it has tags) and its sequence id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    bytes: &'a [u8],
    seq_id: SeqId,
}

impl<'a> CellRef<'a> {
    /// Checks foreign bytes: all lengths agree, row is 1 to 32767 bytes or empty (markers), the type is known, the
    /// timestamp is not negative, tags are whole.
    ///
    /// # Errors
    /// [`CellError`] naming the part that is wrong. Follows: `KeyValueUtil#checkKeyValueBytes`.
    #[inline]
    pub fn parse(bytes: &'a [u8], seq_id: SeqId) -> Result<CellRef<'a>, CellError> {
        let cell = CellRef::parse_shape(bytes, seq_id)?;
        if CellType::from_code(cell.type_code()).is_none() {
            return Err(CellError::new("unknown cell type", usize::from(cell.type_code())));
        }
        if cell.timestamp() < 0 {
            return Err(CellError::new("negative timestamp; low 32 bits", cell.timestamp() as u32 as usize));
        }
        Ok(cell)
    }

    /// As [`CellRef::parse`], without judging type and timestamp: files may hold what the wire refuses.
    ///
    /// # Errors
    /// [`CellError`] naming the length that does not fit.
    #[inline]
    pub fn parse_shape(bytes: &'a [u8], seq_id: SeqId) -> Result<CellRef<'a>, CellError> {
        let Some((lengths, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(CellError::new("fewer than 8 bytes", bytes.len()));
        };
        let [k0, k1, k2, k3, v0, v1, v2, v3] = *lengths;
        let (key_len, value_len) =
            (u32::from_be_bytes([k0, k1, k2, k3]) as usize, u32::from_be_bytes([v0, v1, v2, v3]) as usize);
        let Some((key, after)) = rest.split_at_checked(key_len) else {
            return Err(CellError::new("the key length is larger than the cell", key_len));
        };
        KeyRef::parse(key)?;
        let Some(tags_part) = after.get(value_len..) else {
            return Err(CellError::new("the value length is larger than the cell", value_len));
        };
        if !tags_part.is_empty() {
            let Some((len, tags)) = tags_part.split_first_chunk::<2>() else {
                return Err(CellError::new("one stray byte after the value", 1));
            };
            let tags_len = usize::from(u16::from_be_bytes(*len));
            if tags_len != tags.len() || tags_len == 0 {
                return Err(CellError::new("the tags length disagrees with the cell", tags_len));
            }
            crate::tag::check(tags)?;
        }
        Ok(CellRef { bytes, seq_id })
    }

    /// A cell whose bytes were made or checked before.
    #[inline]
    pub fn from_checked(bytes: &'a [u8], seq_id: SeqId) -> CellRef<'a> {
        debug_assert!(CellRef::parse_shape(bytes, seq_id).is_ok());
        CellRef { bytes, seq_id }
    }

    /// The KeyValue bytes, tags included.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The KeyValue bytes up to and including the value.
    #[inline]
    pub fn bytes_without_tags(self) -> &'a [u8] {
        &self.bytes[..8 + self.key_len() + self.value_len()]
    }

    /// Sequence id (MVCC number).
    #[inline]
    pub fn seq_id(self) -> SeqId {
        self.seq_id
    }

    /// The same bytes under another sequence id.
    #[inline]
    pub fn with_seq_id(self, seq_id: SeqId) -> CellRef<'a> {
        CellRef { bytes: self.bytes, seq_id }
    }

    #[inline]
    fn key_len(self) -> usize {
        u32::from_be_bytes([self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]]) as usize
    }

    #[inline]
    fn value_len(self) -> usize {
        u32::from_be_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]]) as usize
    }

    /// The flat key.
    #[inline]
    pub fn key(self) -> KeyRef<'a> {
        KeyRef::from_checked(&self.bytes[8..8 + self.key_len()])
    }

    /// The row.
    #[inline]
    pub fn row(self) -> &'a [u8] {
        self.key().row()
    }

    /// The family.
    #[inline]
    pub fn family(self) -> &'a [u8] {
        self.key().family()
    }

    /// The qualifier.
    #[inline]
    pub fn qualifier(self) -> &'a [u8] {
        self.key().qualifier()
    }

    /// Milliseconds.
    #[inline]
    pub fn timestamp(self) -> i64 {
        self.key().timestamp()
    }

    /// The type byte.
    #[inline]
    pub fn type_code(self) -> u8 {
        self.bytes[8 + self.key_len() - 1]
    }

    /// Whether this is one of the four delete markers.
    #[inline]
    pub fn is_delete(self) -> bool {
        CellType::is_delete(self.type_code())
    }

    /// The value.
    #[inline]
    pub fn value(self) -> &'a [u8] {
        let at = 8 + self.key_len();
        &self.bytes[at..at + self.value_len()]
    }

    /// The tags, without their length; empty when there are none. See [`crate::tag::iter`].
    #[inline]
    pub fn tags(self) -> &'a [u8] {
        self.bytes.get(8 + self.key_len() + self.value_len() + 2..).unwrap_or_default()
    }
}

/// The parts of a cell that is still to be written as bytes.
#[derive(Clone, Copy, Debug)]
pub struct CellSpec<'a> {
    /// Row, at most [`MAX_ROW_LENGTH`].
    pub row: &'a [u8],
    /// Family, at most 255 bytes.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Milliseconds.
    pub timestamp: i64,
    /// Type byte.
    pub type_code: u8,
    /// Value.
    pub value: &'a [u8],
    /// Encoded tags without their total length, at most 65535 bytes.
    pub tags: &'a [u8],
}

impl CellSpec<'_> {
    /// Whether a cell of these parts may be written: HBase's limits of a row, a family, tags and the whole.
    ///
    /// # Errors
    /// The part that is too long.
    pub fn check_lengths(&self) -> Result<(), CellError> {
        if self.row.len() > MAX_ROW_LENGTH {
            return Err(CellError::new("the row is longer than 32767 bytes", self.row.len()));
        }
        if self.family.len() > MAX_FAMILY_LENGTH {
            return Err(CellError::new("the family is longer than 127 bytes", self.family.len()));
        }
        if self.tags.len() > usize::from(u16::MAX) {
            return Err(CellError::new("the tags are longer than 65535 bytes", self.tags.len()));
        }
        // Java's arrays end at 2 GiB, and so does a KeyValue.
        let whole = self.row.len() + self.qualifier.len() + self.value.len();
        if whole > i32::MAX as usize - 256 * 1024 {
            return Err(CellError::new("the cell is larger than 2 GiB", whole));
        }
        Ok(())
    }

    /// Whether row, family and tags fit into the fields that hold their lengths.
    pub fn has_room(&self) -> bool {
        self.row.len() <= MAX_ROW_LENGTH && self.family.len() <= 255 && self.tags.len() <= usize::from(u16::MAX)
    }

    /// Length of the KeyValue.
    pub fn encoded_len(&self) -> usize {
        let tags = if self.tags.is_empty() { 0 } else { 2 + self.tags.len() };
        8 + KEY_OVERHEAD + self.row.len() + self.family.len() + self.qualifier.len() + self.value.len() + tags
    }

    /// Appends the KeyValue to `out`.
    ///
    /// # Panics
    /// When a part is over its limit; callers check foreign parts where they come in.
    pub fn write(&self, out: &mut Vec<u8>) {
        assert!(self.tags.len() <= usize::from(u16::MAX), "tags of {} bytes", self.tags.len());
        let key_len = KEY_OVERHEAD + self.row.len() + self.family.len() + self.qualifier.len();
        out.reserve(self.encoded_len());
        out.extend_from_slice(&u32::try_from(key_len).expect("key under 4 GiB").to_be_bytes());
        out.extend_from_slice(&u32::try_from(self.value.len()).expect("value under 4 GiB").to_be_bytes());
        KeyRef::write(out, self.row, self.family, self.qualifier, self.timestamp, self.type_code);
        out.extend_from_slice(self.value);
        if !self.tags.is_empty() {
            out.extend_from_slice(&(self.tags.len() as u16).to_be_bytes());
            out.extend_from_slice(self.tags);
        }
    }
}
