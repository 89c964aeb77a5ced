//! Arrays as values of cells and as last columns of keys. Follows: `PArrayDataType`, `PArrayDataTypeEncoder`.
//!
//! Elements of fixed width stand one after the other, and none of them is NULL. Others end with 0x00 each; a run of NULLs is 0x00 and their number
//! turned round; two 0x00 end the last one. Then comes where each begins (16 bits from -32767 on, or 32 bits), where that table begins (32 bits),
//! how many elements there are (32 bits; negative where the table has 32 bits each), and a version.

use crate::{SqlType, TypeError, Value};

const VERSION: u8 = 1;
const END_BYTES: usize = 9;
/// Bytes that end the last element's end.
const END_OF_ELEMENTS: usize = 2;
/// Offsets of 16 bits are less by so much.
const SHORT_BASE: i64 = i16::MAX as i64;
/// NULLs that one byte counts.
const NULLS_OF_A_BYTE: usize = 255;

fn malformed(of: SqlType, why: String) -> TypeError {
    TypeError::Malformed { expected: format!("{of}[]"), why }
}

/// Appends the bytes of an array. One without elements has none: it is NULL to Phoenix.
///
/// # Errors
/// What [`SqlType::encode`] refuses; NULL, or an empty text, among elements of fixed width; a text with a zero byte.
pub fn encode_array(of: SqlType, elements: &[Option<Value<'_>>], out: &mut Vec<u8>) -> Result<(), TypeError> {
    if elements.is_empty() {
        return Ok(());
    }
    if of.fixed_width().is_some() {
        for element in elements {
            let null = || TypeError::Kind { expected: format!("{of}[]"), value: "an array with NULL in it".into() };
            of.encode(element.as_ref().ok_or_else(null)?, out)?;
        }
        return Ok(());
    }
    let start = out.len();
    let mut offsets = Vec::with_capacity(elements.len());
    let mut nulls = 0;
    let mut bytes = Vec::new();
    for element in elements {
        bytes.clear();
        if let Some(value) = element {
            of.encode(value, &mut bytes)?;
        }
        if of == SqlType::Varchar && bytes.contains(&0) {
            return Err(TypeError::NotInKey("it contains a zero byte, which ends an element of an array".into()));
        }
        if bytes.is_empty() {
            offsets.push(out.len() - start);
            nulls += 1;
            continue;
        }
        if nulls > 0 {
            out.push(0);
            out.extend(std::iter::repeat_n(1, nulls / NULLS_OF_A_BYTE));
            if !nulls.is_multiple_of(NULLS_OF_A_BYTE) {
                out.push(!((nulls % NULLS_OF_A_BYTE - 1) as u8));
            }
            nulls = 0;
        }
        offsets.push(out.len() - start);
        out.extend_from_slice(&bytes);
        out.push(0);
    }
    out.extend_from_slice(&[0; END_OF_ELEMENTS]);
    let table = (out.len() - start) as u32;
    let count = offsets.len() as i32;
    let is_wide = offsets.last().is_some_and(|last| *last as i64 > 2 * SHORT_BASE);
    for offset in offsets {
        if is_wide {
            out.extend_from_slice(&(offset as u32).to_be_bytes());
        } else {
            out.extend_from_slice(&((offset as i64 - SHORT_BASE) as i16).to_be_bytes());
        }
    }
    out.extend_from_slice(&table.to_be_bytes());
    out.extend_from_slice(&(if is_wide { -count } else { count }).to_be_bytes());
    out.push(VERSION);
    Ok(())
}

/// The elements of an array's bytes, one after the other.
///
/// # Errors
/// Bytes that Phoenix does not write; what `each` refuses.
pub fn decode_array<'a, E: From<TypeError>>(
    of: SqlType,
    bytes: &'a [u8],
    mut each: impl FnMut(Option<Value<'a>>) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(width) = of.fixed_width() {
        if !bytes.len().is_multiple_of(width) {
            return Err(malformed(of, format!("{} bytes of elements with {width} each", bytes.len())).into());
        }
        return bytes.chunks(width).try_for_each(|element| each(of.decode(element)?));
    }
    let table = Table::of(of, bytes)?;
    let elements = &bytes[..table.elements_end];
    for at in 0..table.count() {
        let start = table.offset(at);
        // What ends an element, and the whole, is not of it.
        let end = if at + 1 < table.count() {
            table.offset(at + 1).checked_sub(1)
        } else {
            table.elements_end.checked_sub(END_OF_ELEMENTS + 1)
        };
        let outside = || malformed(of, "an element lies outside of it".into());
        let value = match elements.get(start) {
            Some(0) => None,
            Some(_) => {
                let bytes = end.and_then(|end| elements.get(start..end)).ok_or_else(outside)?;
                // NULLs after an element begin where it ends; where others follow them, their number stands between.
                of.decode(bytes)?
            }
            None => return Err(outside().into()),
        };
        each(value)?;
    }
    Ok(())
}

/// Turns the bytes of an array round, so that arrays sort in descending order as the last column of a key; and back. Elements are turned round with
/// what ends them, and so is what ends the last one; numbers of NULLs, and the table of where elements begin, stay.
///
/// # Errors
/// Bytes that Phoenix does not write; some of them are turned round then.
pub fn invert_array(of: SqlType, bytes: &mut [u8]) -> Result<(), TypeError> {
    // Not `SqlType::invert`: Phoenix turns all bits of booleans round in arrays, where it does not alone.
    let invert = |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = !*byte);
    if of.fixed_width().is_some() || bytes.is_empty() {
        invert(bytes);
        return Ok(());
    }
    let outside = || malformed(of, "an element lies outside of it".into());
    let table = Table::of(of, bytes)?;
    let last = table.elements_end.checked_sub(END_OF_ELEMENTS).ok_or_else(outside)?;
    let mut starts: Vec<usize> = (0..table.count()).map(|at| table.offset(at)).collect();
    let elements_end = table.elements_end;
    // NULLs of a run begin where the run does.
    starts.dedup();
    starts.push(last);
    for part in starts.windows(2) {
        let part = bytes[..last].get_mut(part[0]..part[1]).ok_or_else(outside)?;
        if part.first() != Some(&0) {
            invert(part);
        }
    }
    invert(&mut bytes[last..elements_end]);
    Ok(())
}

/// Where the elements of an array begin.
struct Table<'a> {
    /// Where the elements and what ends them end, which is where it begins.
    elements_end: usize,
    offsets: &'a [u8],
    width: usize,
}

impl<'a> Table<'a> {
    /// That of an array of variable width.
    fn of(of: SqlType, bytes: &'a [u8]) -> Result<Table<'a>, TypeError> {
        let Some((rest, [a, b, c, d, e, f, g, h, version])) = bytes.split_last_chunk::<END_BYTES>() else {
            return Err(malformed(of, format!("{} bytes are too few", bytes.len())));
        };
        if *version != VERSION {
            return Err(malformed(of, format!("its version is {version}")));
        }
        let elements_end = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let count = i32::from_be_bytes([*e, *f, *g, *h]);
        let width = if count < 0 { 4 } else { 2 };
        let size = (count.unsigned_abs() as usize).checked_mul(width);
        if size.and_then(|size| size.checked_add(elements_end)) != Some(rest.len()) {
            return Err(malformed(of, "its table of offsets does not fit it".into()));
        }
        Ok(Table { elements_end, offsets: &rest[elements_end..], width })
    }

    fn count(&self) -> usize {
        self.offsets.len() / self.width
    }

    fn offset(&self, at: usize) -> usize {
        match self.offsets[at * self.width..(at + 1) * self.width] {
            [a, b] => usize::try_from(i64::from(i16::from_be_bytes([a, b])) + SHORT_BASE).unwrap_or(usize::MAX),
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]) as usize,
            _ => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_nobody_wrote_are_refused_or_read_inside() {
        let mut whole = Vec::new();
        let elements = [Some(Value::Text("a")), None, Some(Value::Text("ccc")), None];
        encode_array(SqlType::Varchar, &elements, &mut whole).expect("an array");
        let read = |bytes: &[u8]| {
            let mut count = 0;
            decode_array(SqlType::Varchar, bytes, |_| {
                count += 1;
                Ok::<_, TypeError>(())
            })
            .map(|()| count)
        };
        assert_eq!(read(&whole), Ok(4));
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "the first {end} bytes");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                drop(read(&bytes));
                drop(invert_array(SqlType::Varchar, &mut bytes));
            }
        }
        for end in 0..whole.len() {
            drop(invert_array(SqlType::Varchar, &mut whole[..end].to_vec()));
        }
    }

    #[test]
    fn what_has_no_bytes_in_an_array_is_refused() {
        let mut out = Vec::new();
        assert!(encode_array(SqlType::Integer, &[Some(Value::Int(1)), None], &mut out).is_err());
        assert!(encode_array(SqlType::Varchar, &[Some(Value::Text("a\0"))], &mut out).is_err());
        out.clear();
        assert_eq!(encode_array(SqlType::Varchar, &[], &mut out), Ok(()));
        assert!(out.is_empty());
    }
}
