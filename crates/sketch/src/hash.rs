//! MurmurHash3 for 64-bit machines: the first half of its 128 bits, with seed 0. Sketches of servers and clients of different ages are merged,
//! so it stays what it is.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The hash of some bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(*block);
        h1 ^= mixed_first(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mixed_second(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(last);
    // Zeros change nothing.
    h1 ^= mixed_first(k1);
    h2 ^= mixed_second(k2);
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    finished(h1).wrapping_add(finished(h2))
}

fn halves(block: [u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(block);
    (both as u64, (both >> 64) as u64)
}

fn mixed_first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mixed_second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finished(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn hashes_are_those_of_murmur3() {
        // Of the Python package mmh3, `hash64(text, signed=False)[0]`.
        let known: [(&[u8], u64); 5] = [
            (b"", 0),
            (b"a", 0x8555_5565_f659_7889),
            (b"basalt", 0x7591_4208_77a4_81b7),
            (b"0123456789abcdef", 0x4be0_6d94_cf4a_d1a7),
            (b"0123456789abcdef0123456789ABCDEF region", 0x2e5e_f349_ec79_49c5),
        ];
        for (bytes, expected) in known {
            assert_eq!(hash(bytes), expected, "{}", bytes.escape_ascii());
        }
    }
}
