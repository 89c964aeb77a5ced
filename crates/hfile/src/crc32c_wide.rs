//! CRC-32C by the processor's wide carry-less multiplication, where it has one: 256 bytes a step instead of 24.
//!
//! Four registers of 64 bytes are carried over the bytes, each step multiplied by x^2048 modulo the polynomial, so that they always stand for all that was passed.
//! In the end they are folded into the 64 bytes that have the same CRC as everything before, which the `crc32c` crate sums together with the rest.
//! Follows: Intel, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (2009), for reflected bits.

/// From here on the way pays.
#[cfg(target_arch = "x86_64")]
const LEAST_BYTES: usize = 1024;

/// The CRC-32C of `bytes`.
#[inline]
#[allow(
    unsafe_code,
    reason = "summed twice, a compacted kilobyte takes 80 ns by the `crc32` instruction, a tenth of all (`compact.major`)"
)]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= LEAST_BYTES && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vpclmulqdq") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { wide::crc32c(bytes) };
    }
    crc32c::crc32c(bytes)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi32_si128, _mm512_clmulepi64_epi128, _mm512_loadu_si512, _mm512_set_epi64,
        _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };

    /// The polynomial, highest power first, without x^32.
    const POLYNOMIAL: u32 = 0x1EDC_6F41;
    const LANE: usize = 64;

    /// x^`power` modulo the polynomial, its bits reversed and moved up by one: what a product of reversed numbers needs.
    pub(super) const fn factor(power: u32, polynomial: u32) -> i64 {
        let mut rest = 1u32;
        let mut n = 0;
        while n < power {
            let carry = rest >> 31 == 1;
            rest <<= 1;
            if carry {
                rest ^= polynomial;
            }
            n += 1;
        }
        (rest.reverse_bits() as i64) << 1
    }

    /// What the halves of each 16 bytes are multiplied by to be carried over `bits`.
    #[target_feature(enable = "avx512f")]
    fn factors(low: i64, high: i64) -> __m512i {
        _mm512_set_epi64(high, low, high, low, high, low, high, low)
    }

    /// `sum` carried over, and `next` added.
    #[inline]
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    fn fold(sum: __m512i, factors: __m512i, next: __m512i) -> __m512i {
        let low = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
        let high = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
        // All three added.
        _mm512_ternarylogic_epi64::<0x96>(low, high, next)
    }

    /// `bytes` are 256 at least.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    #[allow(unsafe_code, reason = "loads and stores of 64 bytes by pointer; see the caller for the benchmark")]
    pub(super) fn crc32c(bytes: &[u8]) -> u32 {
        const FAR: (i64, i64) = (factor(4 * 512 + 32, POLYNOMIAL), factor(4 * 512 - 32, POLYNOMIAL));
        const THREE: (i64, i64) = (factor(3 * 512 + 32, POLYNOMIAL), factor(3 * 512 - 32, POLYNOMIAL));
        const TWO: (i64, i64) = (factor(2 * 512 + 32, POLYNOMIAL), factor(2 * 512 - 32, POLYNOMIAL));
        const ONE: (i64, i64) = (factor(512 + 32, POLYNOMIAL), factor(512 - 32, POLYNOMIAL));
        let load = |lane: &[u8; LANE]| {
            // SAFETY: 64 bytes are there; the load asks for no alignment.
            unsafe { _mm512_loadu_si512(lane.as_ptr().cast()) }
        };
        let (lanes, rest) = bytes.as_chunks::<LANE>();
        let (steps, last_lanes) = lanes.as_chunks::<4>();
        let Some(([a, b, c, d], steps)) = steps.split_first() else { return ::crc32c::crc32c(bytes) };
        // A CRC begins with all ones.
        let begin = _mm512_zextsi128_si512(_mm_cvtsi32_si128(-1));
        let (mut a, mut b, mut c, mut d) = (_mm512_xor_si512(load(a), begin), load(b), load(c), load(d));
        let far = factors(FAR.0, FAR.1);
        for [next_a, next_b, next_c, next_d] in steps {
            a = fold(a, far, load(next_a));
            b = fold(b, far, load(next_b));
            c = fold(c, far, load(next_c));
            d = fold(d, far, load(next_d));
        }
        let sum = fold(a, factors(THREE.0, THREE.1), d);
        let sum = fold(b, factors(TWO.0, TWO.1), sum);
        let sum = fold(c, factors(ONE.0, ONE.1), sum);
        let mut folded = [0u8; LANE];
        // SAFETY: 64 bytes are there; the store asks for no alignment.
        unsafe { _mm512_storeu_si512(folded.as_mut_ptr().cast(), sum) };
        // These bytes begin with no ones: they are in them.
        let mut crc = ::crc32c::crc32c_append(u32::MAX, &folded);
        for lane in last_lanes {
            crc = ::crc32c::crc32c_append(crc, lane);
        }
        ::crc32c::crc32c_append(crc, rest)
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    #[test]
    fn sums_are_those_of_the_crate() {
        let rng = Rng::seeded(11);
        let bytes: Vec<u8> = (0..70_000).map(|_| rng.below(256) as u8).collect();
        for n in 0..3000 {
            let len = if n < 1500 { n } else { rng.below(66_000) as usize };
            let start = rng.below(300) as usize;
            let part = &bytes[start..start + len];
            assert_eq!(super::crc32c(part), crc32c::crc32c(part), "{len} bytes from {start}");
        }
        assert_eq!(super::crc32c(&[0; 40_000]), crc32c::crc32c(&[0; 40_000]));
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn factors_are_those_of_the_paper() {
        // For gzip's polynomial, as printed there and in zlib.
        assert_eq!(super::wide::factor(4 * 128 + 32, 0x04C1_1DB7), 0x1_5444_2bd4);
        assert_eq!(super::wide::factor(4 * 128 - 32, 0x04C1_1DB7), 0x1_c6e4_1596);
    }
}
