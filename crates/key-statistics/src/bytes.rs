//! A history as bytes, to be kept in a file over restarts.
//!
//! `BKS1`, the CRC-32C of the rest (4 bytes), then for each of the three levels: the number of its columns' times (4), and for each of them its start
//! (8), the number of tables (4); for each table its name, the number of ranges (4); for each range the first key, the last key, reads, writes, bytes
//! read and bytes written (8 each). Names and keys have their length (2) in front. Numbers are big endian.

use crate::column::{Column, KeyRange, Load, MAX_KEY_BYTES, MAX_RANGES};
use crate::history::{History, Level, MAX_TABLES, Slot};
use model::TableName;
use std::collections::BTreeMap;

const MAGIC: &[u8; 4] = b"BKS1";
const HEADER_LEN: usize = 8;

/// Why bytes are no history.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no key statistics, at byte {at}: {what}")]
pub struct DecodeError {
    /// Where.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl History {
    /// The whole of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = [MAGIC.as_slice(), &[0; 4]].concat();
        let count =
            |out: &mut Vec<u8>, len: usize| out.extend_from_slice(&u32::try_from(len).unwrap_or(0).to_be_bytes());
        for slots in &self.levels {
            count(&mut out, slots.len());
            for slot in slots {
                out.extend_from_slice(&slot.start_ms.to_be_bytes());
                count(&mut out, slot.tables.len());
                for (table, column) in &slot.tables {
                    text(&mut out, table.as_str().as_bytes());
                    count(&mut out, column.ranges().len());
                    for KeyRange { first, last, load } in column.ranges() {
                        text(&mut out, first);
                        text(&mut out, last);
                        for number in [load.reads, load.writes, load.read_bytes, load.written_bytes] {
                            out.extend_from_slice(&number.to_be_bytes());
                        }
                    }
                }
            }
        }
        let checksum = crc32c::crc32c(&out[HEADER_LEN..]);
        out[4..HEADER_LEN].copy_from_slice(&checksum.to_be_bytes());
        out
    }

    /// What [`History::encode`] wrote, to be held within `budget_bytes`.
    ///
    /// # Errors
    /// The bytes are not that.
    pub fn decode(bytes: &[u8], budget_bytes: usize) -> Result<History, DecodeError> {
        let mut input = Input { bytes, at: 0 };
        if input.take(MAGIC.len())? != MAGIC {
            return Err(DecodeError { at: 0, what: "it does not begin with BKS1" });
        }
        let checksum = input.u32()?;
        if crc32c::crc32c(&bytes[HEADER_LEN..]) != checksum {
            return Err(DecodeError { at: MAGIC.len(), what: "the checksum is wrong" });
        }
        let mut history = History::new(budget_bytes);
        for (slots, level) in history.levels.iter_mut().zip(Level::ALL) {
            let mut before_ms = i64::MIN;
            for _ in 0..input.count(level.columns() + 1, "more columns than are kept")? {
                let start_ms = input.i64()?;
                if start_ms <= before_ms {
                    return Err(input.error("a column that is not later than the one before"));
                }
                before_ms = start_ms;
                let mut tables = BTreeMap::new();
                // Each minute of a coarse column may have had others.
                for _ in 0..input.count(MAX_TABLES * 1024, "more tables than are kept")? {
                    let (table, column) = input.table()?;
                    tables.insert(table, column);
                }
                slots.push_back(Slot::new(start_ms, tables));
            }
        }
        if input.at != bytes.len() {
            return Err(input.error("something follows the last column"));
        }
        Ok(history)
    }
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&bytes[..usize::from(len)]);
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn error(&self, what: &'static str) -> DecodeError {
        DecodeError { at: self.at, what }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let taken = taken.ok_or_else(|| self.error("it ends too early"))?;
        self.at += len;
        Ok(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], DecodeError> {
        self.take(LEN).map(|bytes| bytes.try_into().expect("so many were taken"))
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    fn count(&mut self, most: usize, what: &'static str) -> Result<usize, DecodeError> {
        let count = self.u32()? as usize;
        if count > most { Err(self.error(what)) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = u16::from_be_bytes(self.array()?);
        self.take(usize::from(len))
    }

    fn key(&mut self) -> Result<Box<[u8]>, DecodeError> {
        let key = self.text()?;
        if key.len() > MAX_KEY_BYTES { Err(self.error("a key that is too long")) } else { Ok(key.into()) }
    }

    fn table(&mut self) -> Result<(TableName, Column), DecodeError> {
        let name = std::str::from_utf8(self.text()?).ok().and_then(|name| TableName::parse(name).ok());
        let name = name.ok_or_else(|| self.error("no name of a table"))?;
        let count = self.count(MAX_RANGES, "more ranges than a column has")?;
        let mut ranges = Vec::with_capacity(count);
        for _ in 0..count {
            let (first, last) = (self.key()?, self.key()?);
            let [reads, writes, read_bytes, written_bytes] = [self.u64()?, self.u64()?, self.u64()?, self.u64()?];
            ranges.push(KeyRange { first, last, load: Load { reads, writes, read_bytes, written_bytes } });
        }
        Ok((name, Column::of(ranges)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{KeySampler, Kind};

    fn some() -> History {
        let mut history = History::new(1 << 20);
        let sampler = KeySampler::new();
        for minute in 0..12_i64 {
            for n in 0..60_u32 {
                let key = (n * 7919).to_be_bytes();
                let table = TableName::parse(if n % 3 == 0 { "a" } else { "ns:b" }).expect("a name");
                sampler.passed(&table, if n % 2 == 0 { Kind::Read } else { Kind::Write }, 1, |_| (&key, 100));
            }
            history.record(minute * 60_000, sampler.take());
        }
        history
    }

    #[test]
    fn a_history_comes_back_from_its_bytes() {
        let history = some();
        let back = History::decode(&history.encode(), 1 << 20).expect("its bytes");
        assert_eq!(history.levels, back.levels);
        let mut later = History::new(1 << 20);
        later.record(3_000_000, BTreeMap::new());
        later.restore(back);
        assert_eq!(later.levels[0].len(), 13);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let good = some().encode();
        for len in [0, 3, 7, 8, 20, good.len() - 1] {
            assert!(History::decode(&good[..len], 1 << 20).is_err(), "{len} bytes");
        }
        let mut more = good.clone();
        more.push(0);
        assert!(History::decode(&more, 1 << 20).is_err());
        // With a checksum that holds, what is within is looked at.
        for at in (HEADER_LEN..good.len()).step_by(131) {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            assert_eq!(
                History::decode(&bad, 1 << 20).map(|_| ()),
                Err(DecodeError { at: 4, what: "the checksum is wrong" })
            );
            let checksum = crc32c::crc32c(&bad[HEADER_LEN..]).to_be_bytes();
            bad[4..HEADER_LEN].copy_from_slice(&checksum);
            let _ = History::decode(&bad, 1 << 20);
        }
    }
}
