//! The hashes of Bloom filters, bit for bit as HBase computes them. Follows: `JenkinsHash`, `MurmurHash`, `MurmurHash3`.

use crate::HashType;

impl HashType {
    /// Hash of `bytes` from `seed`.
    pub(crate) fn hash(self, bytes: &[u8], seed: u32) -> u32 {
        match self {
            HashType::Jenkins => jenkins(bytes, seed),
            HashType::Murmur => murmur(bytes, seed),
            HashType::Murmur3 => murmur3(bytes, seed),
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// A byte as Java widens it: with its sign.
fn signed(byte: u8) -> u32 {
    byte as i8 as i32 as u32
}

fn murmur(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = seed ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for chunk in &mut words {
        let mut k = word(chunk).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        if tail.len() >= 3 {
            h ^= signed(tail[2]) << 16;
        }
        if tail.len() >= 2 {
            h ^= signed(tail[1]) << 8;
        }
        h = (h ^ signed(tail[0])).wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let mix = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut h = seed;
    let mut words = bytes.chunks_exact(4);
    for chunk in &mut words {
        h = (h ^ mix(word(chunk))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        h ^= mix(tail.iter().rev().fold(0, |k, b| (k << 8) | u32::from(*b)));
    }
    h ^= bytes.len() as u32;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

fn jenkins(bytes: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest));
        b = b.wrapping_add(word(&rest[4..]));
        c = c.wrapping_add(word(&rest[8..]));
        for (turn_c, turn_a, turn_b) in [(4, 6, 8), (16, 19, 4)] {
            a = a.wrapping_sub(c) ^ c.rotate_left(turn_c);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(turn_a);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(turn_b);
            b = b.wrapping_add(a);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let mut last = [0u8; 12];
    last[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(word(&last));
    b = b.wrapping_add(word(&last[4..]));
    c = c.wrapping_add(word(&last[8..]));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
#[path = "hash_tests.rs"]
mod tests;
