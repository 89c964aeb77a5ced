//! Decimal numbers in base 100. Follows: `PDecimal`, `PDataType#toBytes(BigDecimal)`.

use std::cmp::Ordering;

use crate::TypeError;

/// The encoding's longest form.
const MAX_BYTES: usize = 21;
const MAX_DIGITS: u32 = 38;
const ZERO: u8 = 0x80;
/// Ends negative numbers, so that longer ones sort first.
const NEGATIVE_END: u8 = 102;

/// `unscaled` / 10^`scale`, at most 38 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// All digits as an integer.
    pub unscaled: i128,
    /// How many of them are behind the point; where it is negative, zeros follow.
    pub scale: i32,
}

impl Decimal {
    /// The same number without zeros at its end.
    #[must_use]
    pub fn normalized(self) -> Decimal {
        if self.unscaled == 0 {
            return Decimal { unscaled: 0, scale: 0 };
        }
        let Decimal { mut unscaled, mut scale } = self;
        while unscaled % 10 == 0 {
            unscaled /= 10;
            scale -= 1;
        }
        Decimal { unscaled, scale }
    }

    /// The same number with so many digits behind the point, rounded half up; none where it has no room for them.
    #[must_use]
    pub fn rescaled(self, scale: i32) -> Option<Decimal> {
        let mut unscaled = self.unscaled;
        let by = scale - self.scale;
        if by >= 0 {
            for _ in 0..by {
                unscaled = unscaled.checked_mul(10)?;
                if unscaled == 0 {
                    break;
                }
            }
        } else {
            for i in (by..0).rev() {
                // Only the first digit that is cut off decides.
                let last = i == by;
                let rest = unscaled % 10;
                unscaled /= 10;
                if last && rest.abs() >= 5 {
                    unscaled += rest.signum();
                }
                if unscaled == 0 {
                    break;
                }
            }
        }
        Some(Decimal { unscaled, scale })
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) -> Result<(), TypeError> {
        let Decimal { unscaled, scale } = self.normalized();
        let error = || TypeError::OutOfRange { expected: "decimal".into(), value: format!("{unscaled}e{}", -scale) };
        let negative = match unscaled.cmp(&0) {
            Ordering::Equal => {
                out.push(ZERO);
                return Ok(());
            }
            order => order == Ordering::Less,
        };
        let mut rest = unscaled.unsigned_abs();
        if rest.ilog10() >= MAX_DIGITS {
            return Err(error());
        }
        // Digits from the last one on; 19 of two, and one more where the scale is odd.
        let mut digits = [0u8; 20];
        let mut count = 0;
        let odd = scale.rem_euclid(2) == 1;
        if odd {
            digits[0] = (rest % 10 * 10) as u8;
            rest /= 10;
            count = 1;
        }
        while rest > 0 {
            digits[count] = (rest % 100) as u8;
            rest /= 100;
            count += 1;
        }
        let even_scale = scale + i32::from(odd);
        let exponent = -even_scale / 2 + count as i32 - 1 + 65;
        if !(0..=127).contains(&exponent) {
            return Err(error());
        }
        let start = out.len();
        let exponent = exponent as u8;
        out.push(if negative { !(exponent | 0x80) & 0x7F } else { exponent | 0x80 });
        out.extend(digits[..count].iter().rev().map(|digit| if negative { 101 - digit } else { digit + 1 }));
        if negative && out.len() - start < MAX_BYTES {
            out.push(NEGATIVE_END);
        }
        Ok(())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Decimal, TypeError> {
        let error = |why: &str| TypeError::Malformed { expected: "decimal".into(), why: why.into() };
        let Some((&first, mut digits)) = bytes.split_first() else { return Err(error("no bytes")) };
        if first == ZERO && digits.is_empty() {
            return Ok(Decimal { unscaled: 0, scale: 0 });
        }
        let negative = first & 0x80 == 0;
        let exponent = if negative { !first & 0x7F } else { first & 0x7F };
        if negative && digits.last() == Some(&NEGATIVE_END) {
            digits = &digits[..digits.len() - 1];
        }
        if digits.is_empty() {
            return Err(error("no digits"));
        }
        let mut unscaled: i128 = 0;
        let mut scale = 2 * (digits.len() as i32 - 1 - (i32::from(exponent) - 65));
        for (i, digit) in digits.iter().enumerate() {
            let value = if negative { 101u8.checked_sub(*digit) } else { digit.checked_sub(1) };
            let value = i128::from(value.filter(|v| *v < 100).ok_or_else(|| error("a digit is not below 100"))?);
            let last = i + 1 == digits.len();
            // A zero at the end is the encoding's, not the number's: it may not fit.
            let (by, value) = if last && value % 10 == 0 { (10, value / 10) } else { (100, value) };
            scale -= i32::from(by == 10);
            let wider = unscaled.checked_mul(by).and_then(|wide| wide.checked_add(value));
            unscaled = wider.ok_or_else(|| error("more than 38 digits"))?;
        }
        Ok(Decimal { unscaled: if negative { -unscaled } else { unscaled }, scale }.normalized())
    }
}
