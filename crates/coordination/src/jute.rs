//! ZooKeeper's serialisation: big-endian numbers, `len(4)` before strings, buffers and vectors.

use bytes::{BufMut, Bytes, BytesMut};

/// A body that does not hold what its type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request is cut short or has an impossible length")]
pub struct Malformed;

/// Reads one frame's body; never past its end.
#[derive(Debug, Clone)]
pub struct JuteReader {
    rest: Bytes,
}

impl JuteReader {
    /// Over a whole frame without its length.
    pub fn new(frame: Bytes) -> JuteReader {
        JuteReader { rest: frame }
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if len > self.rest.len() { Err(Malformed) } else { Ok(self.rest.split_to(len)) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        taken.as_ref().try_into().map_err(|_| Malformed)
    }

    /// Whatever has not been read.
    pub fn rest(self) -> Bytes {
        self.rest
    }

    /// A 4-byte number.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    /// An 8-byte number.
    pub fn long(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// A truth value.
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        Ok(self.array::<1>()?[0] != 0)
    }

    /// Bytes; null (-1) reads as empty.
    pub fn buffer(&mut self) -> Result<Bytes, Malformed> {
        match self.int()? {
            -1 => Ok(Bytes::new()),
            len => self.take(usize::try_from(len).map_err(|_| Malformed)?),
        }
    }

    /// A string; null reads as empty.
    pub fn string(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.buffer()?.to_vec()).map_err(|_| Malformed)
    }

    /// A vector of what `item` reads; null reads as empty. Memory grows with what is really there.
    pub fn vector<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.int()?;
        if count == -1 {
            return Ok(Vec::new());
        }
        let count = usize::try_from(count).map_err(|_| Malformed)?;
        // Every item takes at least four bytes.
        if count > self.rest.len() / 4 {
            return Err(Malformed);
        }
        (0..count).map(|_| item(self)).collect()
    }
}

/// Writes what [`JuteReader`] reads.
pub trait JutePut {
    /// A truth value.
    fn put_boolean(&mut self, value: bool);
    /// Bytes with their length.
    fn put_buffer(&mut self, value: &[u8]);
    /// A string with its length.
    fn put_string(&mut self, value: &str);
}

impl JutePut for BytesMut {
    fn put_boolean(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    fn put_buffer(&mut self, value: &[u8]) {
        self.put_u32(u32::try_from(value.len()).expect("no node holds 4 GiB: frames are limited"));
        self.put_slice(value);
    }

    fn put_string(&mut self, value: &str) {
        self.put_buffer(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_lengths_are_refused_before_allocating() {
        for bytes in [&b"\x7f\xff\xff\xff"[..], b"\xff\xff\xff\xfe", b"\0\0\0\x05abcd", b"\0\0"] {
            assert_eq!(JuteReader::new(Bytes::copy_from_slice(bytes)).buffer(), Err(Malformed), "{bytes:?}");
        }
        let mut huge_vector = JuteReader::new(Bytes::from_static(b"\x7f\xff\xff\xff\0\0\0\x01"));
        assert_eq!(huge_vector.vector(JuteReader::int), Err(Malformed));
        let mut null = JuteReader::new(Bytes::from_static(b"\xff\xff\xff\xff"));
        assert_eq!(null.vector(JuteReader::int), Ok(vec![]));
    }
}
