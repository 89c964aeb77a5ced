//! The one source of randomness: a small seeded generator (SplitMix64). Not for secrets.

use std::sync::atomic::{AtomicU64, Ordering};

/// A seeded random number generator; one seed always gives the same numbers. May be shared between threads (which of them
/// draws which number is then left to their timing).
#[derive(Debug)]
pub struct Rng {
    state: AtomicU64,
}

impl Rng {
    /// A generator that replays `seed`.
    pub fn seeded(seed: u64) -> Self {
        Rng { state: AtomicU64::new(seed) }
    }

    /// A generator seeded by the operating system's randomness.
    pub fn from_system() -> Self {
        use std::hash::{BuildHasher, Hasher};
        // RandomState draws its keys from the operating system; that is all the entropy wanted here.
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u64(u64::from(std::process::id()));
        Rng::seeded(hasher.finish())
    }

    /// The next 64 random bits.
    pub fn next_u64(&self) -> u64 {
        let mut z = self.state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        // The bias of the multiply-shift reduction is below 2^-32 for the bounds in use.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `n` calls on average; never when `n` is 0.
    pub fn one_in(&self, n: u64) -> bool {
        n != 0 && self.below(n) == 0
    }

    /// 16 random bytes.
    pub fn bytes_16(&self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.next_u64().to_be_bytes());
        out[8..].copy_from_slice(&self.next_u64().to_be_bytes());
        out
    }

    /// 32 hexadecimal digits in the shape of a version-4 UUID without dashes: the name of a store file.
    pub fn uuid_hex(&self) -> String {
        let mut bytes = self.bytes_16();
        bytes[6] = (bytes[6] & 0x0F) | 0x40;
        bytes[8] = (bytes[8] & 0x3F) | 0x80;
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_run() {
        let (a, b) = (Rng::seeded(7), Rng::seeded(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert!((0..1000).all(|_| a.below(10) < 10));
        assert_eq!(a.uuid_hex().len(), 32);
    }
}
