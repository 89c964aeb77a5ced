//! A segment's bytes: blocks one after the other, then a table of them, then 40 bytes that say where that is and whose.
//!
//! ```text
//! block... | file(16) offset(8) at(4) len(4) crc(4) ... | magic(8) cache(8) segment(8) table at(4) entries(4) crc(4) 0(4)
//! ```

use super::BlockKey;
use bytes::Bytes;
use fs::{FilePath, ReadAt, Volume};

const MAGIC: &[u8; 8] = b"BASALTL2";
const IDENTITY_MAGIC: &[u8; 8] = b"BASALTC2";
const ENTRY_LEN: usize = 36;
const TAIL_LEN: usize = 40;
/// No segment has more blocks.
const ENTRIES_MAX: usize = 1 << 20;

/// Where a block lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub key: BlockKey,
    pub at: u32,
    pub len: u32,
    pub crc: u32,
}

/// Bytes of a segment of blocks that are so long.
pub(super) fn len_bytes(blocks: impl Iterator<Item = usize>) -> u64 {
    blocks.fold(TAIL_LEN, |sum, len| sum + len + ENTRY_LEN) as u64
}

pub(super) fn encode_identity(id: u64) -> Vec<u8> {
    let mut bytes = IDENTITY_MAGIC.to_vec();
    bytes.extend_from_slice(&id.to_be_bytes());
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_be_bytes());
    bytes
}

pub(super) fn decode_identity(bytes: &[u8]) -> Option<u64> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
        return None;
    }
    Some(u64::from_be_bytes(body.strip_prefix(IDENTITY_MAGIC)?.try_into().ok()?))
}

/// Writes the segment; its name need not be durable.
pub(super) fn write(
    volume: &dyn Volume,
    path: &FilePath,
    cache: u64,
    segment: u64,
    blocks: &[(BlockKey, Bytes)],
) -> fs::Result<Vec<Entry>> {
    let mut out = volume.create_past_cache(path)?;
    let mut entries = Vec::with_capacity(blocks.len());
    let mut at = 0;
    for (key, raw) in blocks {
        out.append(raw)?;
        entries.push(Entry { key: *key, at, len: raw.len() as u32, crc: crc32c::crc32c(raw) });
        at += raw.len() as u32;
    }
    let mut table = Vec::with_capacity(entries.len() * ENTRY_LEN + TAIL_LEN);
    for Entry { key: (file, offset), at, len, crc } in &entries {
        table.extend_from_slice(&file.to_be_bytes());
        table.extend_from_slice(&offset.to_be_bytes());
        for number in [at, len, crc] {
            table.extend_from_slice(&number.to_be_bytes());
        }
    }
    table.extend_from_slice(MAGIC);
    table.extend_from_slice(&cache.to_be_bytes());
    table.extend_from_slice(&segment.to_be_bytes());
    table.extend_from_slice(&at.to_be_bytes());
    table.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    let crc = crc32c::crc32c(&table);
    table.extend_from_slice(&crc.to_be_bytes());
    table.extend_from_slice(&[0; 4]);
    out.append(&table)?;
    out.finish()?;
    Ok(entries)
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn long(bytes: &[u8]) -> u64 {
    u64::from(number(bytes)) << 32 | u64::from(number(&bytes[4..]))
}

/// The blocks of a segment of this cache; why it is none otherwise.
pub(super) fn read(file: &dyn ReadAt, cache: u64, segment: u64) -> Result<Vec<Entry>, String> {
    let io = |error: fs::Error| error.to_string();
    let len = file.len().map_err(io)?;
    let mut tail = [0; TAIL_LEN];
    let tail_at = len.checked_sub(TAIL_LEN as u64).ok_or("it is not whole")?;
    file.read_exact_at(&mut tail, tail_at).map_err(io)?;
    if !tail.starts_with(MAGIC) {
        return Err("it is not whole".to_owned());
    }
    let (table_at, count) = (u64::from(number(&tail[24..])), number(&tail[28..]) as usize);
    if long(&tail[8..]) != cache || long(&tail[16..]) != segment {
        return Err("it is of another cache".to_owned());
    }
    if count > ENTRIES_MAX || table_at + (count * ENTRY_LEN) as u64 != tail_at {
        return Err("its table is damaged".to_owned());
    }
    let mut table = vec![0; count * ENTRY_LEN + TAIL_LEN];
    file.read_exact_at(&mut table, table_at).map_err(io)?;
    if crc32c::crc32c(&table[..table.len() - 8]) != number(&tail[32..]) {
        return Err("its table is damaged".to_owned());
    }
    let entry = |bytes: &[u8]| {
        let file = u128::from(long(bytes)) << 64 | u128::from(long(&bytes[8..]));
        let [at, len, crc] = [24, 28, 32].map(|place| number(&bytes[place..]));
        let is_inside = u64::from(at) + u64::from(len) <= table_at;
        is_inside.then_some(Entry { key: (file, long(&bytes[16..])), at, len, crc })
    };
    let entries = table[..count * ENTRY_LEN].chunks_exact(ENTRY_LEN).map(entry);
    entries.collect::<Option<_>>().ok_or_else(|| "its table names blocks outside of it".to_owned())
}
