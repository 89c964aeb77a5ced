//! Keys and values that say of themselves what they must be: a value is random bytes seeded by its length and by the
//! names of its row, family and column. Follows: `LoadTestKVGenerator`, `MultiThreadedAction.DefaultDataGenerator`,
//! `LoadTestDataGeneratorWithMOB`, and `java.util.Random`, `String#hashCode`, `Arrays#hashCode`.

use std::fmt::Write;

use base::Rng;
use bytes::Bytes;
use md5::{Digest, Md5};

/// Column whose value tells which columns were changed since, and how.
pub const MUTATE_INFO: &[u8] = b"mutate_info";
/// Column that is a counter, begun at the hash of the row.
pub const INCREMENT: &[u8] = b"increment";

/// `java.util.Random`: a linear congruential generator of 48 bits.
struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> JavaRandom {
        JavaRandom((seed as u64 ^ Self::MULTIPLIER) & Self::MASK)
    }

    fn fill(&mut self, out: &mut [u8]) {
        for piece in out.chunks_mut(4) {
            self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB) & Self::MASK;
            let bytes = ((self.0 >> 16) as u32).to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }
}

/// `String.hashCode` of bytes read as UTF-8.
fn string_hash(bytes: &[u8]) -> i32 {
    let text = String::from_utf8_lossy(bytes);
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `Arrays.hashCode` of bytes.
pub fn array_hash(bytes: &[u8]) -> i64 {
    i64::from(bytes.iter().fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8))))
}

/// The key of number `key`: its digest, and the number.
pub fn key(key: u64) -> Bytes {
    let number = key.to_string();
    let mut out = String::with_capacity(33 + number.len());
    Md5::digest(number.as_bytes()).iter().for_each(|byte| write!(out, "{byte:02x}").expect("writing to a string"));
    out.push('-');
    out.push_str(&number);
    Bytes::from(out)
}

/// The value of `length` bytes that a column must have.
pub fn value(length: usize, row: &[u8], family: &[u8], column: &[u8]) -> Vec<u8> {
    let names = [row, family, column].iter().map(|name| i64::from(string_hash(name))).sum::<i64>();
    let mut out = vec![0; length];
    JavaRandom::new(length as i64 + names).fill(&mut out);
    out
}

/// Sizes of values: from `min` to below `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Smallest.
    pub min: u64,
    /// Just above the largest, unless it is the smallest.
    pub max: u64,
}

impl Sizes {
    fn draw(self, rng: &Rng) -> usize {
        (self.min + rng.below(self.max.saturating_sub(self.min))) as usize
    }
}

/// What makes the columns of a row.
#[derive(Debug)]
pub struct Generator {
    /// Families of the table.
    pub families: Vec<Bytes>,
    /// Fewest columns in a family.
    pub min_columns: u64,
    /// Most columns in a family.
    pub max_columns: u64,
    /// Sizes of values.
    pub sizes: Sizes,
    /// A family whose values have sizes of their own.
    pub mob: Option<(Bytes, Sizes)>,
    /// How many columns, and which sizes.
    pub rng: Rng,
}

impl Generator {
    /// How many columns the row gets in a family: they are called `0`, `1`, ...
    pub fn column_count(&self) -> u64 {
        self.min_columns + self.rng.below(self.max_columns - self.min_columns + 1)
    }

    /// A value for a column.
    pub fn value(&self, row: &[u8], family: &[u8], column: &[u8]) -> Vec<u8> {
        let sizes = match &self.mob {
            Some((mob, sizes)) if mob == family => *sizes,
            _ => self.sizes,
        };
        value(sizes.draw(&self.rng), row, family, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_random_bytes_are_javas() {
        assert_eq!(string_hash(b"hello"), 99_162_322);
        assert_eq!(array_hash(b""), 1);
        assert_eq!(array_hash(b"\xff\x01"), 31 * (31 - 1) + 1);
        // new Random(42).nextInt() is -1170105035, then 234785527
        let mut bytes = [0; 8];
        JavaRandom::new(42).fill(&mut bytes);
        assert_eq!(bytes[..4], (-1_170_105_035i32).to_le_bytes());
        assert_eq!(bytes[4..], 234_785_527i32.to_le_bytes());
        let mut odd = [0; 5];
        JavaRandom::new(42).fill(&mut odd);
        assert_eq!((&odd[..4], odd[4]), (&bytes[..4], bytes[4]));
    }

    #[test]
    fn keys_are_spread_by_their_digest() {
        assert_eq!(key(0), "cfcd208495d565ef66e7dff9f98764da-0");
        assert_eq!(key(100), "f899139df5e1059396431415e770c6dd-100");
    }

    #[test]
    fn a_value_depends_on_its_length_and_names() {
        let v = value(100, b"row", b"f", b"0");
        assert_eq!(v, value(100, b"row", b"f", b"0"));
        assert_ne!(v[..50], value(50, b"row", b"f", b"0"));
        assert_ne!(v, value(100, b"row", b"f", b"1"));
    }
}
