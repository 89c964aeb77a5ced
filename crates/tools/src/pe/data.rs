//! Keys and values as PerformanceEvaluation makes them. Follows: `PerformanceEvaluation#format, #generateData`,
//! `RandomDistribution.Zipf`.

use base::Rng;

/// Bytes of a key.
pub const ROW_LENGTH: usize = 26;
/// Bytes of each tag's value.
pub const TAG_LENGTH: usize = 256;

/// A row number as 26 decimal digits.
pub fn format_row(number: u64) -> [u8; ROW_LENGTH] {
    let mut row = [b'0'; ROW_LENGTH];
    let mut rest = number;
    for digit in row.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    row
}

/// Letters drawn twelve at a time.
struct Letters<'a> {
    rng: &'a Rng,
    bits: u64,
    left: u32,
}

impl Letters<'_> {
    fn next(&mut self) -> u8 {
        if self.left == 0 {
            self.bits = self.rng.next_u64();
            self.left = 12;
        }
        self.left -= 1;
        let product = u128::from(self.bits) * 26;
        self.bits = product as u64;
        b'A' + (product >> 64) as u8
    }
}

/// A value: letters, each eight times; what is left over at the end, up to eight bytes, is one letter.
pub fn generate_data(rng: &Rng, length: usize, out: &mut Vec<u8>) {
    let mut letters = Letters { rng, bits: 0, left: 0 };
    out.clear();
    out.reserve(length);
    while out.len() + 8 < length {
        out.extend_from_slice(&[letters.next(); 8]);
    }
    out.resize(length, letters.next());
}

/// Sizes of which small ones are many: `P(size) ~ size^-1.2` from 1 to below a maximum.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// Sizes, and how likely one is at most that large; neighbours that differ by less than a thousandth share an entry.
    steps: Vec<(u32, f64)>,
}

impl Zipf {
    const SIGMA: f64 = 1.2;
    const EPSILON: f64 = 0.001;

    /// Sizes in `1..max`.
    pub fn new(max: u32) -> Zipf {
        let mut steps: Vec<(u32, f64)> = Vec::new();
        let mut sum = 0.0;
        for size in 1..max.max(2) {
            sum += (-Self::SIGMA * f64::from(size).ln()).exp();
            if steps.last().is_none_or(|(last, _)| f64::from(size) * (1.0 - Self::EPSILON) > f64::from(*last)) {
                steps.push((size, sum));
            }
        }
        if steps.last().is_some_and(|(last, _)| *last != max - 1) && max > 2 {
            steps.push((max - 1, sum));
        }
        steps.iter_mut().for_each(|step| step.1 /= sum);
        Zipf { steps }
    }

    /// A size.
    pub fn draw(&self, rng: &Rng) -> u32 {
        let d = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let at = self.steps.partition_point(|(_, likely)| *likely <= d).min(self.steps.len() - 1);
        let ceiling = self.steps[at].0;
        let lower = if at == 0 { ceiling - 1 } else { self.steps[at - 1].0 };
        ceiling - rng.below(u64::from(ceiling - lower)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_26_digits() {
        assert_eq!(&format_row(0), b"00000000000000000000000000");
        assert_eq!(&format_row(1_048_575), b"00000000000000000001048575");
        assert_eq!(&format_row(u64::MAX), b"00000018446744073709551615");
    }

    #[test]
    fn values_are_letters_in_runs_of_eight() {
        let rng = Rng::seeded(1);
        let mut value = Vec::new();
        for length in [0, 1, 7, 8, 9, 16, 17, 1000] {
            generate_data(&rng, length, &mut value);
            assert_eq!(value.len(), length);
            assert!(value.iter().all(u8::is_ascii_uppercase));
            assert!(value.chunks(8).all(|run| run.iter().all(|b| *b == run[0])), "{value:?}");
        }
        let mut seen = [0u32; 26];
        (0..100).for_each(|_| {
            generate_data(&rng, 1000, &mut value);
            value.iter().step_by(8).for_each(|b| seen[usize::from(b - b'A')] += 1);
        });
        assert!(seen.iter().all(|n| (350..620).contains(n)), "every letter as often as another: {seen:?}");
    }

    #[test]
    fn zipf_sizes_fall_off_as_they_should() {
        let (zipf, rng) = (Zipf::new(1000), Rng::seeded(2));
        let mut ones = 0;
        for _ in 0..100_000 {
            let size = zipf.draw(&rng);
            assert!((1..1000).contains(&size));
            ones += u32::from(size == 1);
        }
        // 1 / sum(i^-1.2, i < 1000) = 0.2306
        assert!((22_000..24_200).contains(&ones), "{ones}");
    }
}
