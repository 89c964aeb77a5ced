//! Reading numbers and slices from untrusted bytes, and what is said when they do not fit.

use cell::vint;

/// Why bytes cannot be what they should be; becomes [`crate::Error::Corrupt`] where path and offset are known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub String);

impl From<&str> for Damage {
    fn from(what: &str) -> Damage {
        Damage(what.to_owned())
    }
}

impl From<String> for Damage {
    fn from(what: String) -> Damage {
        Damage(what)
    }
}

/// Result of decoding untrusted bytes.
pub(crate) type Decoded<T> = Result<T, Damage>;

/// What is left of some untrusted bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    pub fn len(&self) -> usize {
        self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub fn take(&mut self, n: usize) -> Decoded<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(Damage(format!("{n} bytes wanted where {} are left", self.rest.len()))),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(Damage(format!("{N} bytes wanted where {} are left", self.rest.len()))),
        }
    }

    #[inline]
    pub fn u8(&mut self) -> Decoded<u8> {
        self.array::<1>().map(|[b]| b)
    }

    #[inline]
    pub fn u16(&mut self) -> Decoded<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Hadoop's variable-length long.
    #[inline]
    pub fn vlong(&mut self) -> Decoded<i64> {
        let (value, len) = vint::read(self.rest).ok_or("a variable-length long is cut short")?;
        self.rest = &self.rest[len..];
        Ok(value)
    }

    /// HBase's compressed int: 7 bits a byte, lowest first.
    #[inline]
    pub fn compressed_int(&mut self) -> Decoded<usize> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                // Lengths are Java ints: more than 31 bits is damage.
                return if value <= i32::MAX as u64 { Ok(value as usize) } else { Err("a length is negative".into()) };
            }
        }
        Err("a compressed int has more than 5 bytes".into())
    }
}

/// Appends HBase's compressed int.
#[inline]
pub(crate) fn write_compressed_int(out: &mut Vec<u8>, value: usize) {
    let mut value = value as u32;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
