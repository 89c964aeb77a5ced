//! Comparators: what a filter holds a row, family, qualifier or value against.

use crate::{Error, ErrorKind};
use bytes::Bytes;
use std::cmp::Ordering;

mod decimal;
mod java_regex;
mod regex_spec;

pub use decimal::BigDecimal;
pub use regex_spec::{RegexEngine, RegexSpec, flags};

/// How a cell's part and a comparator are compared: part OP comparator. (A Condition of checkAndMutate reads it the
/// other way round: that is the caller's affair.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
    /// Never: nothing passes.
    NoOp,
}

impl CompareOp {
    /// Whether a part passes whose comparator's answer was `of_comparator` (comparator against part). `None` for
    /// [`CompareOp::NoOp`], which HBase's filters treat each in its way.
    #[inline]
    pub fn passes(self, of_comparator: Ordering) -> Option<bool> {
        Some(match self {
            CompareOp::Less => of_comparator == Ordering::Greater,
            CompareOp::LessOrEqual => of_comparator != Ordering::Less,
            CompareOp::Equal => of_comparator == Ordering::Equal,
            CompareOp::NotEqual => of_comparator != Ordering::Equal,
            CompareOp::GreaterOrEqual => of_comparator != Ordering::Greater,
            CompareOp::Greater => of_comparator == Ordering::Less,
            CompareOp::NoOp => return None,
        })
    }
}

/// How a [`Comparator::Bit`] combines two byte strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum BitwiseOp {
    /// Some bit is set in both.
    And,
    /// Some bit is set in either.
    Or,
    /// Some bit differs.
    Xor,
}

/// A comparator. The variants are named after HBase's classes without "Comparator".
#[derive(Clone, PartialEq, Debug)]
pub enum Comparator {
    /// As decimal numbers (4 bytes of scale, then the unscaled number).
    BigDecimal(BigDecimal),
    /// Byte by byte.
    Binary {
        /// The bytes.
        value: Bytes,
    },
    /// Byte by byte with the bytes at an offset.
    BinaryComponent {
        /// The bytes.
        value: Bytes,
        /// Where they are looked for.
        offset: u32,
    },
    /// Byte by byte with as many first bytes.
    BinaryPrefix {
        /// The bytes.
        value: Bytes,
    },
    /// Equal when the lengths agree and the combination has a bit set.
    Bit {
        /// The bytes.
        value: Bytes,
        /// The combination.
        op: BitwiseOp,
    },
    /// As signed 8-byte integers.
    Long {
        /// The number.
        value: i64,
    },
    /// Equal to what is not there; a cell's parts are always there.
    Null,
    /// Equal when a regular expression is found somewhere in the text.
    Regex(RegexSpec),
    /// Equal when the lower-case text is found in the lower-case text.
    Substring {
        /// The text, in lower case: made by [`Comparator::substring`].
        substring: String,
    },
}

impl Comparator {
    /// [`Comparator::Substring`] of `text` in any case.
    pub fn substring(text: &str) -> Comparator {
        Comparator::Substring { substring: text.to_lowercase() }
    }

    /// [`Comparator::Long`] from the 8 bytes that travel.
    ///
    /// # Errors
    /// [`ErrorKind::IllegalArgument`] when there are not 8.
    pub fn long_from_bytes(bytes: &[u8]) -> Result<Comparator, Error> {
        Ok(Comparator::Long { value: long(bytes)? })
    }

    /// [`Comparator::BigDecimal`] from the bytes that travel.
    ///
    /// # Errors
    /// [`ErrorKind::NullPointer`] when there are fewer than 5.
    pub fn big_decimal_from_bytes(bytes: &[u8]) -> Result<Comparator, Error> {
        BigDecimal::from_bytes(bytes).map(Comparator::BigDecimal).ok_or_else(no_decimal)
    }

    /// Memory besides its own bytes, at most: that of a compiled regular expression.
    pub fn compiled_bytes(&self) -> usize {
        match self {
            Comparator::Regex(regex) => regex.compiled_bytes(),
            _ => 0,
        }
    }

    /// The bytes that HBase's `getValue` gives: what a comparator is sent and printed as.
    pub fn value_bytes(&self) -> Bytes {
        match self {
            Comparator::BigDecimal(decimal) => decimal.to_bytes(),
            Comparator::Binary { value }
            | Comparator::BinaryComponent { value, .. }
            | Comparator::BinaryPrefix { value }
            | Comparator::Bit { value, .. } => value.clone(),
            Comparator::Long { value } => Bytes::copy_from_slice(&value.to_be_bytes()),
            Comparator::Null => Bytes::new(),
            Comparator::Regex(regex) => Bytes::copy_from_slice(regex.pattern().as_bytes()),
            Comparator::Substring { substring } => Bytes::copy_from_slice(substring.as_bytes()),
        }
    }

    /// Compares this comparator (on the left) with `part` (on the right), HBase's `compareTo`.
    ///
    /// # Errors
    /// A part too short for a decimal or a component, a regular expression that gives up.
    #[inline]
    pub fn compare(&self, part: &[u8]) -> Result<Ordering, Error> {
        Ok(match self {
            Comparator::Binary { value } => value[..].cmp(part),
            Comparator::BinaryPrefix { value } => value[..].cmp(&part[..part.len().min(value.len())]),
            Comparator::BinaryComponent { value, offset } => {
                let component = part.get(*offset as usize..).and_then(|rest| rest.get(..value.len()));
                value[..].cmp(component.ok_or_else(|| too_short(part, *offset, value))?)
            }
            Comparator::Bit { value, op } => equal_if(bits(value, *op, part)),
            Comparator::Long { value } => value.cmp(&long_at_start(part)),
            Comparator::BigDecimal(decimal) => decimal.compare_bytes(part)?,
            Comparator::Null => Ordering::Greater,
            Comparator::Substring { substring } => equal_if(contains_ignoring_case(part, substring)),
            Comparator::Regex(regex) => equal_if(regex.is_found(part)?),
        })
    }
}

fn equal_if(found: bool) -> Ordering {
    if found { Ordering::Equal } else { Ordering::Greater }
}

fn long(bytes: &[u8]) -> Result<i64, Error> {
    let eight = bytes.try_into().map_err(|_| Error::illegal(format!("Wrong length: {}, expected 8", bytes.len())))?;
    Ok(i64::from_be_bytes(eight))
}

/// The number in the first 8 bytes, zeros standing for those that are not there. HBase reads on into whatever follows
/// a short value in its memstore, and throws for one in a file; long values it cuts in the one case, and throws in
/// the other. This is what the first comes to, without the foreign bytes.
fn long_at_start(bytes: &[u8]) -> i64 {
    let mut eight = [0; 8];
    let shared = bytes.len().min(8);
    eight[..shared].copy_from_slice(&bytes[..shared]);
    i64::from_be_bytes(eight)
}

fn no_decimal() -> Error {
    Error::new(ErrorKind::NullPointer, "a decimal needs at least 5 bytes: 4 of scale and a number")
}

fn too_short(part: &[u8], offset: u32, value: &[u8]) -> Error {
    Error::new(
        ErrorKind::IndexOutOfBounds,
        format!("{} bytes have no component of {} bytes at offset {offset}", part.len(), value.len()),
    )
}

fn bits(value: &[u8], op: BitwiseOp, part: &[u8]) -> bool {
    value.len() == part.len()
        && value.iter().zip(part).any(|(a, b)| {
            0 != match op {
                BitwiseOp::And => a & b,
                BitwiseOp::Or => a | b,
                BitwiseOp::Xor => a ^ b,
            }
        })
}

/// Whether `needle` (lower case) is in the lower-case form of `part` read as UTF-8.
fn contains_ignoring_case(part: &[u8], needle: &str) -> bool {
    if part.is_ascii() {
        // No text but ASCII's lower case can come of ASCII, so the bytes can be looked at where they are.
        let needle = needle.as_bytes();
        return needle.is_empty()
            || part.len() >= needle.len()
                && part.windows(needle.len()).any(|w| {
                    w[0].to_ascii_lowercase() == needle[0]
                        && w.iter().zip(needle).all(|(a, b)| a.to_ascii_lowercase() == *b)
                });
    }
    String::from_utf8_lossy(part).to_lowercase().contains(needle)
}

#[cfg(test)]
mod tests;
