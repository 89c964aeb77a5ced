//! Hadoop's variable-length integers (`WritableUtils.writeVLong`): one byte for -112..=127, else a length byte and
//! 1 to 8 big-endian bytes.

/// Appends `value`.
pub fn write(out: &mut Vec<u8>, value: i64) {
    if (-112..=127).contains(&value) {
        out.push(value as u8);
        return;
    }
    let (magnitude, base) = if value < 0 { (!value as u64, -120i8) } else { (value as u64, -112i8) };
    let bytes = (8 - magnitude.leading_zeros() as usize / 8).max(1);
    out.push((base - bytes as i8) as u8);
    out.extend_from_slice(&magnitude.to_be_bytes()[8 - bytes..]);
}

/// The number at the start of `bytes` and how many bytes it took; `None` when cut short.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(i64, usize)> {
    let first = *bytes.first()? as i8;
    if first >= -112 {
        return Some((i64::from(first), 1));
    }
    let (len, negative) = if first >= -120 {
        ((-112 - i32::from(first)) as usize, false)
    } else {
        ((-120 - i32::from(first)) as usize, true)
    };
    let magnitude = bytes.get(1..1 + len)?.iter().fold(0u64, |n, b| (n << 8) | u64::from(*b));
    Some((if negative { !(magnitude as i64) } else { magnitude as i64 }, 1 + len))
}

/// How many bytes `value` takes.
#[inline]
pub fn encoded_len(value: i64) -> usize {
    if (-112..=127).contains(&value) {
        return 1;
    }
    let magnitude = if value < 0 { !value as u64 } else { value as u64 };
    1 + (8 - magnitude.leading_zeros() as usize / 8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_at_every_width() {
        let mut values = vec![0, 1, -1, 127, 128, -112, -113, i64::MAX, i64::MIN];
        values.extend((0..63).flat_map(|s| [1i64 << s, (1i64 << s) - 1, -(1i64 << s), -(1i64 << s) - 1]));
        for value in values {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!(out.len(), encoded_len(value), "{value}");
            assert_eq!(read(&out), Some((value, out.len())), "{value}");
            assert_eq!(read(&out[..out.len() - 1]), None, "{value} cut short");
        }
    }
}
