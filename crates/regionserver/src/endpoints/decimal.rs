//! Decimal numbers with two digits after the point and any number before it: all that the interpreter of BigDecimals
//! works with, for it rounds each value as it reads it. Follows: `BigDecimal#setScale(2, HALF_EVEN)`, `Bytes#toBytes`.

use bytes::Bytes;
use std::cmp::Ordering;

/// Digits after the point.
const SCALE: i64 = 2;
/// A value may have any scale: one that asks for more digits than this is refused, as no memory would hold it.
const MAX_DIGITS: u64 = 100_000;

/// A number of hundredths: sign and magnitude, the magnitude in 32-bit limbs, least first, without leading zeros. Zero
/// is not negative.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Cents {
    negative: bool,
    limbs: Vec<u32>,
}

impl Cents {
    fn new(negative: bool, mut limbs: Vec<u32>) -> Cents {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Cents { negative: negative && !limbs.is_empty(), limbs }
    }

    /// The number in `scale(4) unscaled(two's complement, big-endian)`, rounded half to even; `None` for fewer than 5
    /// bytes, and for numbers beyond any use.
    pub(super) fn from_decimal_bytes(bytes: &[u8]) -> Option<Cents> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
        let scale = i64::from(i32::from_be_bytes(*scale));
        let negative = *unscaled.first()? >= 0x80;
        let mut limbs: Vec<u32> = unscaled
            .rchunks(4)
            .map(|chunk| {
                let mut wide = [if negative { 0xFF } else { 0 }; 4];
                wide[4 - chunk.len()..].copy_from_slice(chunk);
                u32::from_be_bytes(wide)
            })
            .collect();
        if negative {
            negate(&mut limbs);
        }
        let mut number = Cents::new(negative, limbs);
        match scale.checked_sub(SCALE)? {
            more @ 1.. => number.divide_by_power_of_ten(more as u64),
            fewer => number.multiply_by_power_of_ten(fewer.unsigned_abs())?,
        }
        Some(Cents::new(number.negative, number.limbs))
    }

    /// The bytes that [`Cents::from_decimal_bytes`] reads, with the fewest bytes of the number.
    pub(super) fn to_decimal_bytes(&self) -> Bytes {
        let mut limbs = self.limbs.clone();
        limbs.push(0);
        if self.negative {
            negate(&mut limbs);
        }
        let unscaled: Vec<u8> = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
        let mut shortest = &unscaled[..];
        while let [first, second, ..] = shortest
            && ((*first == 0 && *second < 0x80) || (*first == 0xFF && *second >= 0x80))
        {
            shortest = &shortest[1..];
        }
        [&(SCALE as i32).to_be_bytes()[..], shortest].concat().into()
    }

    /// Sum.
    pub(super) fn add(&self, other: &Cents) -> Cents {
        if self.negative == other.negative {
            return Cents::new(self.negative, add(&self.limbs, &other.limbs));
        }
        match compare(&self.limbs, &other.limbs) {
            Ordering::Less => Cents::new(other.negative, subtract(&other.limbs, &self.limbs)),
            _ => Cents::new(self.negative, subtract(&self.limbs, &other.limbs)),
        }
    }

    /// Product, rounded to hundredths.
    pub(super) fn multiply(&self, other: &Cents) -> Cents {
        let mut limbs = vec![0u32; self.limbs.len() + other.limbs.len()];
        for (i, a) in self.limbs.iter().enumerate() {
            let mut carry = 0u64;
            for (j, b) in other.limbs.iter().enumerate() {
                let sum = u64::from(limbs[i + j]) + u64::from(*a) * u64::from(*b) + carry;
                limbs[i + j] = sum as u32;
                carry = sum >> 32;
            }
            limbs[i + other.limbs.len()] = carry as u32;
        }
        let mut product = Cents::new(self.negative != other.negative, limbs);
        product.divide_by_power_of_ten(SCALE as u64);
        Cents::new(product.negative, product.limbs)
    }

    fn multiply_by_power_of_ten(&mut self, power: u64) -> Option<()> {
        if self.limbs.is_empty() {
            return Some(());
        }
        if power > MAX_DIGITS {
            return None;
        }
        let mut left = power;
        while left > 0 {
            let step = left.min(9);
            let (factor, mut carry) = (10u64.pow(step as u32), 0u64);
            for limb in &mut self.limbs {
                let product = u64::from(*limb) * factor + carry;
                *limb = product as u32;
                carry = product >> 32;
            }
            if carry > 0 {
                self.limbs.push(carry as u32);
            }
            left -= step;
        }
        Some(())
    }

    /// Rounds half to even. `power` is at least 1.
    fn divide_by_power_of_ten(&mut self, power: u64) {
        // All but the last digit first: of them it only counts whether they are zero.
        let mut below_half_digit = false;
        let mut left = power - 1;
        while left > 0 && !self.limbs.is_empty() {
            let step = left.min(9);
            below_half_digit |= self.divide(10u32.pow(step as u32)) != 0;
            left -= step;
        }
        if self.limbs.is_empty() {
            return;
        }
        let digit = self.divide(10);
        let odd = self.limbs.first().is_some_and(|limb| limb & 1 == 1);
        if digit > 5 || (digit == 5 && (below_half_digit || odd)) {
            self.limbs = add(&self.limbs, &[1]);
        }
    }

    /// Divides the magnitude; the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for limb in self.limbs.iter_mut().rev() {
            let part = (rest << 32) | u64::from(*limb);
            *limb = (part / u64::from(divisor)) as u32;
            rest = part % u64::from(divisor);
        }
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
        rest as u32
    }
}

impl PartialOrd for Cents {
    fn partial_cmp(&self, other: &Cents) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cents {
    fn cmp(&self, other: &Cents) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => compare(&self.limbs, &other.limbs),
            (true, true) => compare(&other.limbs, &self.limbs),
        }
    }
}

fn compare(a: &[u32], b: &[u32]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

fn add(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut out = Vec::with_capacity(a.len().max(b.len()) + 1);
    let mut carry = 0u64;
    for i in 0..a.len().max(b.len()) {
        let limb = |of: &[u32]| u64::from(of.get(i).copied().unwrap_or(0));
        let sum = limb(a) + limb(b) + carry;
        out.push(sum as u32);
        carry = sum >> 32;
    }
    if carry > 0 {
        out.push(carry as u32);
    }
    out
}

/// `a - b`, where `a` is not less.
fn subtract(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut borrow = false;
    a.iter()
        .enumerate()
        .map(|(i, limb)| {
            let (difference, first) = limb.overflowing_sub(b.get(i).copied().unwrap_or(0));
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            borrow = first || second;
            difference
        })
        .collect()
}

/// Two's complement.
fn negate(limbs: &mut Vec<u32>) {
    let mut carry = true;
    for limb in limbs.iter_mut() {
        (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
    }
    if carry {
        limbs.push(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(unscaled: i128, scale: i32) -> Vec<u8> {
        [&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()
    }

    fn cents(unscaled: i128, scale: i32) -> Cents {
        Cents::from_decimal_bytes(&bytes(unscaled, scale)).expect("a number")
    }

    #[test]
    fn values_are_rounded_half_to_even_as_they_are_read() {
        for (unscaled, scale, hundredths) in [
            (0, 0, 0),
            (5, 0, 500),
            (-5, 0, -500),
            (125, 3, 12),
            (135, 3, 14),
            (-125, 3, -12),
            (1251, 4, 13),
            (1250, 4, 12),
            (-1251, 4, -13),
            (5, 3, 0),
            (51, 4, 1),
            (12_345_678_901_234_567_890_123_456_789, 0, 1_234_567_890_123_456_789_012_345_678_900),
            (7, -3, 700_000),
            (1, i32::MAX, 0),
            (i128::MAX, 40, 2),
        ] {
            assert_eq!(cents(unscaled, scale), cents(hundredths, 2), "{unscaled} at {scale}");
        }
        assert_eq!(Cents::from_decimal_bytes(&[0, 0, 0, 2]), None);
        assert_eq!(Cents::from_decimal_bytes(&bytes(1, i32::MIN)), None, "a number of two billion digits");
        assert_eq!(cents(0, i32::MIN), Cents::default());
    }

    #[test]
    fn arithmetic_agrees_with_128_bits() {
        let numbers =
            [0i128, 1, -1, 99, -100, 255, -256, 65_535, i128::from(u32::MAX), -(1 << 32), 1 << 62, -(1 << 60) - 7];
        for a in numbers {
            for b in numbers {
                assert_eq!(cents(a, 2).add(&cents(b, 2)), cents(a + b, 2), "{a} + {b}");
                assert_eq!(cents(a, 2).cmp(&cents(b, 2)), a.cmp(&b), "{a} <> {b}");
                assert_eq!(cents(a, 2).multiply(&cents(b, 2)), cents(a * b, 4), "{a} * {b}");
            }
            let bytes = cents(a, 2).to_decimal_bytes();
            assert_eq!(Cents::from_decimal_bytes(&bytes), Some(cents(a, 2)));
        }
        // As BigInteger#toByteArray: the fewest bytes that keep the sign.
        for (unscaled, expected) in
            [(0, &[0][..]), (127, &[127]), (128, &[0, 128]), (-128, &[128]), (-129, &[255, 127])]
        {
            assert_eq!(cents(unscaled, 2).to_decimal_bytes()[4..], *expected, "{unscaled}");
        }
    }
}
