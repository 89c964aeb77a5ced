//! How many different values there are, about, in bounded memory: HyperLogLog sketches that region servers make and clients merge.
//!
//! A value's hash names one of 16,384 registers and a rank; a register keeps the highest rank. Few values are kept as a list of registers and
//! ranks, which stands for the same sketch. The standard error is 0.8 %. Estimated as in O. Ertl, "New cardinality estimation algorithms for
//! HyperLogLog sketches" (2017), which is right for few and for many values without a table of corrections.
//!
//! What is always true: sketches of two sets, merged in any order, are the sketch of both sets together, to the byte.

mod hash;

pub use hash::hash;

use std::fmt;

/// Bits of a hash that name a register.
const INDEX_BITS: u32 = 14;
/// Registers of a sketch, a byte each.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// The highest rank: the other bits of a hash are all zero.
const MOST_RANK: usize = 64 - INDEX_BITS as usize + 1;
/// Registers that are kept as a list at most: more are as small in one piece, and quicker.
const MOST_LISTED: usize = 1024;
/// Bytes of a list's entry.
const ENTRY_BYTES: usize = size_of::<u32>();
/// Bits of an entry that are its rank.
const RANK_BITS: u32 = 8;

/// A sketch of a set of values.
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch(Registers);

#[derive(Clone, PartialEq, Eq)]
enum Registers {
    /// Those that are not zero, in order: the register's number, then its rank in the lowest bits.
    Listed(Vec<u32>),
    All(Box<[u8; REGISTERS]>),
}

/// Bytes that are no sketch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "these bytes are no sketch of values: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sketch").field("estimate", &self.estimate()).field("heap_bytes", &self.heap_bytes()).finish()
    }
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch(Registers::Listed(Vec::new()))
    }
}

impl Sketch {
    /// Takes in a value by its bytes. Gives back how many bytes more the sketch holds.
    pub fn add(&mut self, value: &[u8]) -> usize {
        self.add_hash(hash(value))
    }

    /// Takes in a value by its [`hash`].
    pub fn add_hash(&mut self, hash: u64) -> usize {
        let register = (hash & (REGISTERS as u64 - 1)) as usize;
        // The bit above the highest ends the zeros where there is no other.
        let rank = ((hash >> INDEX_BITS) | 1 << (64 - INDEX_BITS)).trailing_zeros() + 1;
        self.raise(register, rank as u8)
    }

    fn raise(&mut self, register: usize, rank: u8) -> usize {
        let listed = match &mut self.0 {
            Registers::All(all) => {
                all[register] = all[register].max(rank);
                return 0;
            }
            Registers::Listed(listed) => listed,
        };
        let entry = (register as u32) << RANK_BITS | u32::from(rank);
        let at = listed.partition_point(|known| (known >> RANK_BITS) < register as u32);
        if let Some(known) = listed.get_mut(at)
            && *known >> RANK_BITS == register as u32
        {
            *known = (*known).max(entry);
            return 0;
        }
        if listed.len() < MOST_LISTED {
            let before = listed.capacity();
            listed.insert(at, entry);
            return (listed.capacity() - before) * ENTRY_BYTES;
        }
        let before = listed.capacity() * ENTRY_BYTES;
        self.all()[register] = rank;
        REGISTERS - before.min(REGISTERS)
    }

    /// All registers in one piece.
    fn all(&mut self) -> &mut [u8; REGISTERS] {
        if let Registers::Listed(listed) = &self.0 {
            let mut all = Box::new([0; REGISTERS]);
            for entry in listed {
                all[(entry >> RANK_BITS) as usize] = *entry as u8;
            }
            self.0 = Registers::All(all);
        }
        match &mut self.0 {
            Registers::All(all) => all,
            Registers::Listed(_) => unreachable!("it was made one piece above"),
        }
    }

    /// Takes in what another has.
    pub fn merge(&mut self, other: &Sketch) {
        match &other.0 {
            Registers::Listed(listed) => {
                for entry in listed {
                    self.raise((entry >> RANK_BITS) as usize, *entry as u8);
                }
            }
            Registers::All(theirs) => {
                for (mine, other) in self.all().iter_mut().zip(&theirs[..]) {
                    *mine = (*mine).max(*other);
                }
            }
        }
    }

    /// About how many different values it has taken in.
    pub fn estimate(&self) -> u64 {
        let mut with_rank = [0u32; MOST_RANK + 1];
        match &self.0 {
            Registers::Listed(listed) => {
                with_rank[0] = (REGISTERS - listed.len()) as u32;
                listed.iter().for_each(|entry| with_rank[usize::from(*entry as u8)] += 1);
            }
            Registers::All(all) => all.iter().for_each(|rank| with_rank[usize::from(*rank)] += 1),
        }
        let registers = REGISTERS as f64;
        let mut z = registers * tau(1.0 - f64::from(with_rank[MOST_RANK]) / registers);
        for count in with_rank[1..MOST_RANK].iter().rev() {
            z = 0.5 * (z + f64::from(*count));
        }
        z += registers * sigma(f64::from(with_rank[0]) / registers);
        // 1 / (2 ln 2) for infinitely many registers.
        (0.5 / std::f64::consts::LN_2 * registers * registers / z).round() as u64
    }

    /// Its bytes, for [`Sketch::from_bytes`]: all registers, or the list's entries as they are, big endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Registers::Listed(listed) => listed.iter().flat_map(|entry| entry.to_be_bytes()).collect(),
            Registers::All(all) => all.to_vec(),
        }
    }

    /// The sketch of some bytes.
    ///
    /// # Errors
    /// [`Sketch::to_bytes`] does not make them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Sketch, Malformed> {
        let is_rank = |rank: u8| usize::from(rank) <= MOST_RANK;
        if let Ok(all) = <&[u8; REGISTERS]>::try_from(bytes) {
            if let Some(rank) = all.iter().find(|rank| !is_rank(**rank)) {
                return Err(Malformed(format!("a register of {rank}, where {MOST_RANK} is the most")));
            }
            return Ok(Sketch(Registers::All(Box::new(*all))));
        }
        let (entries, []) = bytes.as_chunks::<ENTRY_BYTES>() else {
            return Err(Malformed(format!("{} bytes are neither all registers nor entries of a list", bytes.len())));
        };
        if entries.len() > MOST_LISTED {
            return Err(Malformed(format!("a list of {} registers, where {MOST_LISTED} are the most", entries.len())));
        }
        let listed: Vec<u32> = entries.iter().map(|entry| u32::from_be_bytes(*entry)).collect();
        let is_entry =
            |entry: &u32| (*entry >> RANK_BITS) < REGISTERS as u32 && *entry as u8 != 0 && is_rank(*entry as u8);
        if !listed.iter().all(is_entry) || !listed.is_sorted_by(|a, b| a >> RANK_BITS < b >> RANK_BITS) {
            return Err(Malformed("a list whose registers are not in order, or not registers".to_owned()));
        }
        Ok(Sketch(Registers::Listed(listed)))
    }

    /// Memory beside itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Registers::Listed(listed) => listed.capacity() * ENTRY_BYTES,
            Registers::All(_) => REGISTERS,
        }
    }
}

/// What registers of zero stand for: x + Σ 2^(k-1) x^(2^k).
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut sum, mut power) = (x, 1.0);
    loop {
        x *= x;
        let next = sum + x * power;
        if next == sum {
            return sum;
        }
        (sum, power) = (next, power * 2.0);
    }
}

/// What registers of the highest rank stand for: (1 - x - Σ 2^-k (1 - x^(2^-k))²) / 3.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut sum, mut power) = (1.0 - x, 1.0);
    loop {
        x = x.sqrt();
        power *= 0.5;
        let next = sum - (1.0 - x).powi(2) * power;
        if next == sum {
            return sum / 3.0;
        }
        sum = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: std::ops::Range<u64>) -> Sketch {
        let mut sketch = Sketch::default();
        for value in values {
            sketch.add(&value.to_be_bytes());
        }
        sketch
    }

    #[test]
    fn few_values_are_counted_and_many_estimated() {
        assert_eq!(Sketch::default().estimate(), 0);
        for count in [1, 2, 10, 100] {
            assert_eq!(of(0..count).estimate(), count);
        }
        // The error of one set of values is anything; that of many is about the standard error of 0.8 %. The values are always the same.
        for count in [1000, 20_000, 100_000, 300_000] {
            let error = |set: u64| of(set << 32..(set << 32) + count).estimate() as f64 / count as f64 - 1.0;
            let errors: Vec<f64> = (0..16).map(error).collect();
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            let deviation = (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt();
            assert!(mean.abs() < 0.006 && deviation < 0.012, "{count}: {errors:?}");
        }
    }

    #[test]
    fn values_that_come_again_change_nothing() {
        for count in [10, 5000] {
            let once = of(0..count);
            let mut again = once.clone();
            for value in 0..count {
                assert_eq!(again.add(&value.to_be_bytes()), 0);
            }
            assert_eq!(once, again);
        }
    }

    #[test]
    fn merged_sketches_are_that_of_all_values() {
        let parts = [0..0, 0..10, 5..700, 600..1500, 1000..9000, 8000..8001];
        for first in &parts {
            for second in &parts {
                let (mut merged, other) = (of(first.clone()), of(second.clone()));
                merged.merge(&other);
                let mut all = of(first.clone());
                second.clone().for_each(|value| {
                    all.add(&value.to_be_bytes());
                });
                assert_eq!(merged.estimate(), all.estimate(), "{first:?} and {second:?}");
                let mut turned = of(second.clone());
                turned.merge(&of(first.clone()));
                assert_eq!(merged.clone().all(), turned.all());
            }
        }
    }

    #[test]
    fn what_it_says_to_have_grown_is_what_it_holds() {
        let (mut sketch, mut grown) = (Sketch::default(), 0);
        for value in 0..5000u64 {
            grown += sketch.add(&value.to_be_bytes());
        }
        assert!(grown >= sketch.heap_bytes(), "{grown}");
        assert!(grown < 2 * REGISTERS);
    }

    #[test]
    fn bytes_are_read_again_and_others_refused() {
        for count in [0, 1, 900, 100_000] {
            let sketch = of(0..count);
            assert_eq!(Sketch::from_bytes(&sketch.to_bytes()), Ok(sketch));
        }
        let entry = |register: u32, rank: u32| (register << RANK_BITS | rank).to_be_bytes();
        let lists = [
            [entry(5, 1), entry(5, 2)].concat(),
            [entry(5, 1), entry(4, 1)].concat(),
            entry(5, 0).to_vec(),
            entry(5, 52).to_vec(),
            entry(REGISTERS as u32, 1).to_vec(),
            vec![0, 0, 5],
            vec![1; REGISTERS + 4],
            vec![52; REGISTERS],
        ];
        for list in lists {
            assert!(Sketch::from_bytes(&list).is_err(), "{list:?}");
        }
        assert!(Sketch::from_bytes(&entry(5, 51)).is_ok());
    }
}
