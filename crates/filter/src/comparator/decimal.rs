//! Decimal numbers as HBase writes them: `scale(4) unscaled(two's complement, big-endian)`; the number is
//! `unscaled * 10^-scale`. Numbers are equal whatever their scale (`BigDecimal.compareTo`).

use crate::{Error, ErrorKind};
use bytes::Bytes;
use std::cmp::Ordering;

/// The work (limb products) after which a comparison is refused: two honest numbers need a handful, but 4 bytes of
/// scale can ask for a number of two billion digits.
const MAX_LIMB_PRODUCTS: u64 = 50_000_000;

/// A decimal number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BigDecimal {
    scale: i32,
    /// Two's complement, big-endian, at least one byte.
    unscaled: Bytes,
}

impl BigDecimal {
    /// `unscaled * 10^-scale`.
    pub fn new(unscaled: i128, scale: i32) -> BigDecimal {
        let bytes = unscaled.to_be_bytes();
        BigDecimal { scale, unscaled: Bytes::copy_from_slice(shortest(&bytes)) }
    }

    /// The number in `bytes`; `None` when there are fewer than 5.
    pub fn from_bytes(bytes: &[u8]) -> Option<BigDecimal> {
        let (scale, unscaled) = split(bytes)?;
        Some(BigDecimal { scale, unscaled: Bytes::copy_from_slice(shortest(unscaled)) })
    }

    /// The bytes that [`BigDecimal::from_bytes`] reads.
    pub fn to_bytes(&self) -> Bytes {
        [&self.scale.to_be_bytes()[..], &self.unscaled].concat().into()
    }

    /// Compares with the number in `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::NullPointer`] for fewer than 5 bytes, [`ErrorKind::Arithmetic`] for numbers whose comparison
    /// would be a denial of service.
    pub fn compare_bytes(&self, bytes: &[u8]) -> Result<Ordering, Error> {
        let (scale, unscaled) = split(bytes).ok_or_else(super::no_decimal)?;
        compare((&self.unscaled, self.scale), (shortest(unscaled), scale))
    }
}

fn split(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
    (!unscaled.is_empty()).then(|| (i32::from_be_bytes(*scale), unscaled))
}

/// Without the leading bytes that only repeat the sign.
fn shortest(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes
        && ((*first == 0 && *second < 0x80) || (*first == 0xFF && *second >= 0x80))
    {
        bytes = &bytes[1..];
    }
    bytes
}

fn compare(a: (&[u8], i32), b: (&[u8], i32)) -> Result<Ordering, Error> {
    let (a_sign, b_sign) = (sign(a.0), sign(b.0));
    if a_sign != b_sign || a_sign == 0 {
        return Ok(a_sign.cmp(&b_sign));
    }
    if let (Some(x), Some(y)) = (small(a.0), small(b.0))
        && let Some(order) = compare_small((x, a.1), (y, b.1))
    {
        return Ok(order);
    }
    let magnitudes = compare_large((limbs(a.0), a.1), (limbs(b.0), b.1))?;
    Ok(if a_sign < 0 { magnitudes.reverse() } else { magnitudes })
}

fn sign(bytes: &[u8]) -> i32 {
    match bytes {
        [0] => 0,
        [first, ..] if *first >= 0x80 => -1,
        _ => 1,
    }
}

fn small(bytes: &[u8]) -> Option<i128> {
    if bytes.len() > 16 {
        return None;
    }
    let mut wide = [if sign(bytes) < 0 { 0xFF } else { 0 }; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// Numbers of one sign that stay within 128 bits when brought to one scale.
fn compare_small(a: (i128, i32), b: (i128, i32)) -> Option<Ordering> {
    let apart = i64::from(a.1) - i64::from(b.1);
    let raise = |number: i128, by: u64| 10i128.checked_pow(u32::try_from(by).ok()?)?.checked_mul(number);
    Some(if apart >= 0 { a.0.cmp(&raise(b.0, apart as u64)?) } else { raise(a.0, apart.unsigned_abs())?.cmp(&b.0) })
}

/// The magnitude, least significant limb first, without leading zero limbs.
fn limbs(bytes: &[u8]) -> Vec<u32> {
    let negative = sign(bytes) < 0;
    let mut carry = negative;
    let mut out: Vec<u32> = Vec::with_capacity(bytes.len() / 4 + 1);
    for chunk in bytes.rchunks(4) {
        let mut wide = [if negative { 0xFF } else { 0 }; 4];
        wide[4 - chunk.len()..].copy_from_slice(chunk);
        let limb = u32::from_be_bytes(wide);
        let (limb, overflow) = if negative { (!limb).overflowing_add(u32::from(carry)) } else { (limb, false) };
        carry = negative && overflow;
        out.push(limb);
    }
    if carry {
        out.push(1);
    }
    trim(&mut out);
    out
}

fn trim(limbs: &mut Vec<u32>) {
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
}

fn compare_large(mut a: (Vec<u32>, i32), mut b: (Vec<u32>, i32)) -> Result<Ordering, Error> {
    // Powers of ten that bracket each number decide most cases; what remains has scales about as far apart as the
    // numbers are long.
    let ((a_low, a_high), (b_low, b_high)) = (powers_of_ten(&a.0, a.1), powers_of_ten(&b.0, b.1));
    if a_low > b_high {
        return Ok(Ordering::Greater);
    }
    if b_low > a_high {
        return Ok(Ordering::Less);
    }
    let apart = i64::from(a.1) - i64::from(b.1);
    raise(if apart >= 0 { &mut b.0 } else { &mut a.0 }, apart.unsigned_abs())?;
    Ok(a.0.len().cmp(&b.0.len()).then_with(|| a.0.iter().rev().cmp(b.0.iter().rev())))
}

/// `10^low <= number <= 10^high`, generously.
fn powers_of_ten(limbs: &[u32], scale: i32) -> (i64, i64) {
    let top_bits = limbs.last().map_or(0, |top| 32 - i64::from(top.leading_zeros()));
    let bits = (limbs.len() as i64 - 1) * 32 + top_bits;
    // log10(2) is between 0.30102 and 0.30103.
    let (low, high) = ((bits - 1) * 30_102 / 100_000 - 1, bits * 30_103 / 100_000 + 1);
    (low - i64::from(scale), high - i64::from(scale))
}

/// Multiplies by `10^by`.
fn raise(limbs: &mut Vec<u32>, by: u64) -> Result<(), Error> {
    let steps = by.div_ceil(9);
    if steps.saturating_mul(limbs.len() as u64 + steps) > MAX_LIMB_PRODUCTS {
        let message = format!("a number of {} bits cannot be raised by 10^{by}", limbs.len() * 32);
        return Err(Error::new(ErrorKind::Arithmetic, message));
    }
    let mut left = by;
    while left > 0 {
        let step = left.min(9);
        let factor = 10u64.pow(step as u32);
        let mut carry = 0u64;
        for limb in limbs.iter_mut() {
            let product = u64::from(*limb) * factor + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
        left -= step;
    }
    Ok(())
}
