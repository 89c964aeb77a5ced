//! The flat key of a cell, borrowed: `rowLen(2) row famLen(1) family qualifier timestamp(8) type(1)`.

use crate::keyvalue::CellError;

/// Bytes of a key besides row, family and qualifier.
pub const KEY_OVERHEAD: usize = 2 + 1 + 8 + 1;

/// A well-formed flat key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRef<'a> {
    bytes: &'a [u8],
}

/// Whether two short byte strings are the same: rows and qualifiers, of which neighbours differ at their ends if at all. Without a call
/// into the C library, which costs more than the comparison.
#[inline]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (Some(a_end), Some(b_end)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) else {
        return a.iter().zip(b).all(|(x, y)| x == y);
    };
    // The whole words before; what is left over lies in the last eight bytes.
    let ((a_words, _), (b_words, _)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    a_end == b_end && a_words.iter().zip(b_words).all(|(x, y)| x == y)
}

impl<'a> KeyRef<'a> {
    /// Checks that the lengths inside `bytes` fit.
    ///
    /// # Errors
    /// [`CellError`] naming the part that does not fit.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<KeyRef<'a>, CellError> {
        let short = || CellError::new("the key is shorter than its parts", bytes.len());
        let row_len = usize::from(u16::from_be_bytes(*bytes.first_chunk::<2>().ok_or_else(short)?));
        if row_len > crate::MAX_ROW_LENGTH {
            return Err(CellError::new("the row is longer than 32767 bytes", row_len));
        }
        let family_len = usize::from(*bytes.get(2 + row_len).ok_or_else(short)?);
        if bytes.len() < KEY_OVERHEAD + row_len + family_len {
            return Err(short());
        }
        Ok(KeyRef { bytes })
    }

    /// A key whose shape the caller has made or checked itself.
    #[inline]
    pub fn from_checked(bytes: &'a [u8]) -> KeyRef<'a> {
        debug_assert!(KeyRef::parse(bytes).is_ok());
        KeyRef { bytes }
    }

    /// The flat bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn row_len(self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[0], self.bytes[1]]))
    }

    /// The row.
    #[inline]
    pub fn row(self) -> &'a [u8] {
        &self.bytes[2..2 + self.row_len()]
    }

    /// The family; empty in keys made for searching.
    #[inline]
    pub fn family(self) -> &'a [u8] {
        let at = 2 + self.row_len();
        &self.bytes[at + 1..at + 1 + usize::from(self.bytes[at])]
    }

    /// The qualifier; may be empty.
    #[inline]
    pub fn qualifier(self) -> &'a [u8] {
        let at = 2 + self.row_len();
        &self.bytes[at + 1 + usize::from(self.bytes[at])..self.bytes.len() - 9]
    }

    /// Family and qualifier in one slice, and the family's length.
    #[inline]
    pub fn column(self) -> (&'a [u8], usize) {
        let at = 2 + self.row_len();
        (&self.bytes[at + 1..self.bytes.len() - 9], usize::from(self.bytes[at]))
    }

    /// Milliseconds; `i64::MAX` means "latest" in search keys.
    #[inline]
    pub fn timestamp(self) -> i64 {
        let at = self.bytes.len() - 9;
        i64::from_be_bytes(self.bytes[at..at + 8].try_into().unwrap_or_default())
    }

    /// The type byte.
    #[inline]
    pub fn type_code(self) -> u8 {
        self.bytes[self.bytes.len() - 1]
    }

    /// Appends the flat key of these parts to `out`.
    ///
    /// # Panics
    /// When row or family are over HBase's limits; callers check them where they come in.
    pub fn write(out: &mut Vec<u8>, row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, type_code: u8) {
        assert!(row.len() <= crate::MAX_ROW_LENGTH, "row of {} bytes", row.len());
        assert!(family.len() <= 255, "family of {} bytes", family.len());
        out.reserve(KEY_OVERHEAD + row.len() + family.len() + qualifier.len());
        out.extend_from_slice(&(row.len() as u16).to_be_bytes());
        out.extend_from_slice(row);
        out.push(family.len() as u8);
        out.extend_from_slice(family);
        out.extend_from_slice(qualifier);
        out.extend_from_slice(&timestamp.to_be_bytes());
        out.push(type_code);
    }
}

#[cfg(test)]
mod tests {
    use super::same_bytes;

    #[test]
    fn bytes_are_the_same_when_every_byte_is() {
        let whole: Vec<u8> = (0..40).collect();
        for len in 0..whole.len() {
            let bytes = &whole[..len];
            let copy = bytes.to_vec();
            assert!(same_bytes(bytes, &copy));
            assert!(!same_bytes(bytes, &whole[..len + 1]));
            for at in 0..len {
                let mut other = bytes.to_vec();
                other[at] ^= 0x80;
                assert!(!same_bytes(bytes, &other), "byte {at} of {len}");
            }
        }
    }
}
