//! The values of many columns in one cell, as Phoenix keeps those of immutable tables. Follows: `PArrayDataTypeEncoder`, `PArrayDataTypeDecoder`.
//!
//! The bytes of the values come first, one after the other. After them comes where each begins (16 or 32 bits each; negative where there is no
//! value), then where that table begins (32 bits), how many values there are (32 bits; negative where the table has 32 bits each), and a version.

use crate::TypeError;

/// Version of what has nulls among its values, with a count; older than 4.12.
const WITH_NULLS: u8 = 2;
/// Version of what is written today.
const WITHOUT_NULLS: u8 = 3;
/// Bytes of what follows the table of offsets.
const END_BYTES: usize = 9;
/// What stands first, so that an offset can be negative.
const FIRST: u8 = b'x';

fn malformed(why: &str) -> TypeError {
    TypeError::Malformed { expected: "cell of many columns".into(), why: why.into() }
}

/// A cell with the values of many columns.
pub struct Packed<'a> {
    bytes: &'a [u8],
    /// Where the table of offsets begins.
    table: usize,
    count: usize,
    is_wide: bool,
    version: u8,
}

impl<'a> Packed<'a> {
    /// Reads what is at the end of a cell.
    ///
    /// # Errors
    /// Bytes that Phoenix does not write.
    pub fn new(bytes: &'a [u8]) -> Result<Packed<'a>, TypeError> {
        let Some((rest, [a, b, c, d, e, f, g, h, version])) = bytes.split_last_chunk::<END_BYTES>() else {
            return Err(malformed("it is too short"));
        };
        if !matches!(*version, WITH_NULLS | WITHOUT_NULLS) {
            return Err(malformed(&format!("its version is {version}")));
        }
        let table = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let count = i32::from_be_bytes([*e, *f, *g, *h]);
        let (is_wide, count) = (count < 0, count.unsigned_abs() as usize);
        let width = if is_wide { 4 } else { 2 };
        if count.checked_mul(width).and_then(|size| size.checked_add(table)) != Some(rest.len()) {
            return Err(malformed("its table of offsets does not fit it"));
        }
        Ok(Packed { bytes, table, count, is_wide, version: *version })
    }

    fn offset(&self, at: usize) -> Option<i32> {
        if self.is_wide {
            let at = self.table + 4 * at;
            Some(i32::from_be_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
        } else {
            let at = self.table + 2 * at;
            Some(i16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?).into())
        }
    }

    /// The bytes of a value; empty where there is none. Those of columns begin at position 1.
    ///
    /// # Errors
    /// Offsets outside the cell.
    pub fn get(&self, at: usize) -> Result<&'a [u8], TypeError> {
        // A column that was added after the cell was written.
        if at >= self.count {
            return Ok(&[]);
        }
        let start = self.offset(at).unwrap_or(-1);
        if start < 0 {
            return Ok(&[]);
        }
        let start = start as usize;
        let end = if at + 1 < self.count {
            self.offset(at + 1).map_or(self.table, |offset| offset.unsigned_abs() as usize)
        } else {
            self.table
        };
        let value = self.bytes.get(start..end).filter(|_| end <= self.table);
        let value = value.ok_or_else(|| malformed("a value lies outside of it"))?;
        // Such a cell says how many values are missing before the next one: one of them is 0x00 or 0xFF, and the number turned round.
        let is_null = self.version == WITH_NULLS && matches!(value, [0 | 0xFF, 0xFF]);
        Ok(if is_null { &[] } else { value })
    }
}

/// Packs values; empty ones are missing.
#[must_use]
pub fn pack<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = vec![FIRST];
    let mut offsets = vec![0i32];
    for value in values {
        // A cell of HBase has at most 2 GiB.
        let at = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        offsets.push(if value.is_empty() { -at } else { at });
        bytes.extend_from_slice(value);
    }
    let table = bytes.len() as u32;
    let count = offsets.len() as i32;
    // As Phoenix decides: the last offset is the largest, whatever its sign.
    let is_wide = offsets.last().is_some_and(|last| i16::try_from(*last).is_err());
    for offset in offsets {
        if is_wide {
            bytes.extend_from_slice(&offset.to_be_bytes());
        } else {
            bytes.extend_from_slice(&(offset as i16).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&table.to_be_bytes());
    bytes.extend_from_slice(&(if is_wide { -count } else { count }).to_be_bytes());
    bytes.push(WITHOUT_NULLS);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells that Phoenix 5.2.1 wrote (`sql/tests/phoenix/cells.txt`), and their values.
    const GOLDEN: [(&[u8], &[&[u8]]); 3] = [
        (
            b"xtext\x80\0\0\x01\0\0\0\x02\xc1\x04\x33\0\0\0\x01\0\x05\0\x09\0\x0d\0\0\0\x10\0\0\0\x05\x03",
            &[b"text", b"\x80\0\0\x01", b"\0\0\0\x02", b"\xc1\x04\x33"],
        ),
        (b"x\0\0\0\x05\0\0\xff\xff\xff\xff\0\x01\xff\xfb\0\0\0\x05\0\0\0\x05\x03", &[b"", b"", b"\0\0\0\x05", b""]),
        (
            b"x\x7f\xff\xff\xff\xff\xff\xff\xf7\0\0\xff\xff\0\x01\0\0\0\x09\0\0\0\x03\x03",
            &[b"", b"\x7f\xff\xff\xff\xff\xff\xff\xf7"],
        ),
    ];

    #[test]
    fn cells_of_many_columns_are_those_of_phoenix() {
        for (cell, values) in GOLDEN {
            assert_eq!(pack(values.iter().copied()), cell);
            let packed = Packed::new(cell).expect("a cell of Phoenix's");
            for (at, value) in values.iter().enumerate() {
                assert_eq!(packed.get(at + 1).expect("inside"), *value);
            }
            assert_eq!(packed.get(0).expect("inside"), b"x");
            assert_eq!(packed.get(values.len() + 1).expect("missing"), b"");
        }
    }

    #[test]
    fn long_cells_have_wide_offsets() {
        let long = vec![7u8; 40_000];
        let cell = pack([&long[..], b"a", b"", b"b"]);
        let packed = Packed::new(&cell).expect("ours");
        assert!(packed.is_wide);
        let values: Vec<&[u8]> = (1..5).map(|at| packed.get(at).expect("inside")).collect();
        assert_eq!(values, [&long[..], b"a", b"", b"b"]);
    }

    #[test]
    fn cells_that_nobody_wrote_are_refused() {
        let (whole, _) = GOLDEN[0];
        for end in 0..whole.len() {
            assert!(Packed::new(&whole[..end]).is_err(), "the first {end} bytes");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut cell = whole.to_vec();
                cell[at] ^= 1 << bit;
                // Some of it may be read; nothing may be read outside of it.
                if let Ok(packed) = Packed::new(&cell) {
                    (0..8).for_each(|value| drop(packed.get(value)));
                }
            }
        }
    }
}
