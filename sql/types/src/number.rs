//! Integers and floating-point numbers whose bytes sort. Follows: `PInteger`, `PLong`, `PFloat`, `PDouble` and their codecs.

/// The low `width` bytes of `value`, big endian; the sign bit flipped where `signed`, so that negative ones sort first.
pub(crate) fn put_int(value: i64, width: usize, signed: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&value.to_be_bytes()[8 - width..]);
    if signed {
        out[start] ^= 0x80;
    }
}

/// The reverse of [`put_int`]; `bytes` are 1 to 8.
pub(crate) fn get_int(bytes: &[u8], signed: bool) -> i64 {
    let mut wide = [0u8; 8];
    let at = 8 - bytes.len();
    wide[at..].copy_from_slice(bytes);
    if signed {
        wide[at] ^= 0x80;
    }
    let value = i64::from_be_bytes(wide);
    let unused_bits = at as u32 * 8;
    if signed { (value << unused_bits) >> unused_bits } else { value }
}

/// As Java's `floatToIntBits`: there is one NaN.
fn float_bits(value: f32) -> i32 {
    if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() as i32 }
}

fn double_bits(value: f64) -> i64 {
    if value.is_nan() { 0x7FF8_0000_0000_0000 } else { value.to_bits() as i64 }
}

pub(crate) fn float_to_sortable(value: f32) -> [u8; 4] {
    let bits = float_bits(value);
    (bits ^ ((bits >> 31) | i32::MIN)).wrapping_add(1).to_be_bytes()
}

pub(crate) fn float_from_sortable(bytes: [u8; 4]) -> f32 {
    let bits = i32::from_be_bytes(bytes).wrapping_sub(1);
    f32::from_bits((bits ^ ((!bits >> 31) | i32::MIN)) as u32)
}

pub(crate) fn double_to_sortable(value: f64) -> [u8; 8] {
    let bits = double_bits(value);
    (bits ^ ((bits >> 63) | i64::MIN)).wrapping_add(1).to_be_bytes()
}

pub(crate) fn double_from_sortable(bytes: [u8; 8]) -> f64 {
    let bits = i64::from_be_bytes(bytes).wrapping_sub(1);
    f64::from_bits((bits ^ ((!bits >> 63) | i64::MIN)) as u64)
}

pub(crate) fn float_to_plain(value: f32) -> [u8; 4] {
    float_bits(value).to_be_bytes()
}

pub(crate) fn double_to_plain(value: f64) -> [u8; 8] {
    double_bits(value).to_be_bytes()
}
