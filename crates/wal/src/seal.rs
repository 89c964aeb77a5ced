//! The seal of an entry: a checksum and a synced watermark, carried as the last extended attribute of the key.
//!
//! HBase's log has no checksums, for HDFS has them below; a local disk has not. A file whose header says so (an unknown field that
//! HBase skips) has in each entry's key the attribute `basalt`: `synced(8) crc(4)`, big-endian.
//!  - `crc` is CRC-32C over the entry (length, key up to the attribute's value, cells), its offset in the file, and `synced`. So a bit
//!    that flipped, a sector that was not written and an old block in the wrong place are all seen.
//!  - `synced` is the watermark: all bytes of the file below it were durable when the entry was made, and everything in the files before.
//!    So damage below the watermark of any later entry has destroyed something that was there; damage above is what a crash may leave.
//!  - Or, in an unsynced log whose file before was still being synced, `synced` names that file and its length ([`Follows`]) in place of a
//!    watermark: what stands here counts only if that file is whole.
//!
//! HBase ignores the attribute, and may copy it into its own files, where the header does not ask for it and nobody looks.

use crate::key::get_varint;

/// The attribute up to its value: field 12, 22 bytes {key: "basalt", value: 12 bytes}.
pub(crate) const HEAD: [u8; 12] = *b"\x62\x16\x0A\x06basalt\x12\x0C";
/// The value's length.
pub(crate) const TAIL_LEN: usize = 12;
/// The attribute's name.
pub(crate) const NAME: &str = "basalt";

/// The highest bit of `synced`: it is no watermark but a [`Follows`].
const FOLLOWS: u64 = 1 << 63;
/// Bits of a file's time that are kept.
const FILE_MS_MASK: u64 = (1 << 31) - 1;

/// The file that an entry's file follows, when nobody knew it to be on the disk yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Follows {
    /// The lower 31 bits of the time in its name.
    pub(crate) file_ms: u32,
    /// What it is long in all, its trailer not counted.
    pub(crate) len_bytes: u32,
}

impl Follows {
    /// `None` for a file that is too long to be named so.
    pub(crate) fn new(file_ms: u64, len_bytes: u64) -> Option<Follows> {
        Some(Follows { file_ms: (file_ms & FILE_MS_MASK) as u32, len_bytes: u32::try_from(len_bytes).ok()? })
    }

    /// Whether this may be the time in that file's name.
    pub(crate) fn is_of(self, file_ms: u64) -> bool {
        u64::from(self.file_ms) == file_ms & FILE_MS_MASK
    }

    /// In place of a watermark.
    pub(crate) fn encode(self) -> u64 {
        FOLLOWS | u64::from(self.file_ms) << 32 | u64::from(self.len_bytes)
    }
}

/// What an unbroken entry says of what is before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Says {
    /// All below this offset was durable, and so were the files before.
    Synced(u64),
    /// Nobody knew, not even of the file before.
    Follows(Follows),
}

impl Says {
    fn decode(synced: u64) -> Says {
        if synced & FOLLOWS == 0 {
            return Says::Synced(synced);
        }
        Says::Follows(Follows { file_ms: (synced >> 32 & FILE_MS_MASK) as u32, len_bytes: synced as u32 })
    }
}

/// The attribute's value for an entry at `offset`; `body_crc` covers what [`body_crc`] says.
pub(crate) fn tail(body_crc: u32, offset: u64, synced: u64) -> [u8; TAIL_LEN] {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&offset.to_be_bytes());
    place[8..].copy_from_slice(&synced.to_be_bytes());
    let crc = crc32c::crc32c_append(body_crc, &place);
    let mut tail = [0; TAIL_LEN];
    tail[..8].copy_from_slice(&synced.to_be_bytes());
    tail[8..].copy_from_slice(&crc.to_be_bytes());
    tail
}

/// Checksum of the delimited key without the attribute's value, and the cells.
pub(crate) fn body_crc(head: &[u8], cells: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), cells)
}

/// What the seal of an entry says when it is unbroken. `key` is the delimited key, `cells` what follows.
pub(crate) fn check(key: &[u8], cells: &[u8], offset: u64) -> Option<Says> {
    let (head, value) = key.split_at_checked(key.len().checked_sub(TAIL_LEN)?)?;
    if !head.ends_with(&HEAD) {
        return None;
    }
    let synced = u64::from_be_bytes(*value.first_chunk()?);
    (tail(body_crc(head, cells), offset, synced) == value).then(|| Says::decode(synced))
}

/// Seals whole entries again for another place: `bytes` (made by this crate) will stand at `offset` in a file that is
/// durable up to `synced`.
///
/// # Panics
/// When `bytes` are not whole sealed entries: they come from the log's own buffer.
pub(crate) fn reseal(bytes: &mut [u8], mut offset: u64, synced: u64) {
    let mut at = 0;
    while at < bytes.len() {
        let (cells_at, end) = entry(bytes, at).expect("the log's buffer holds whole entries");
        let value_at = cells_at - TAIL_LEN;
        let crc = body_crc(&bytes[at..value_at], &bytes[cells_at..end]);
        let tail = tail(crc, offset, synced);
        bytes[value_at..cells_at].copy_from_slice(&tail);
        offset += (end - at) as u64;
        at = end;
    }
}

/// Whether whole entries (made by this crate), about to be written at `offset`, are still what was sealed when they were appended: nobody
/// used their buffer again. Reads them all.
pub(crate) fn holds(bytes: &[u8], offset: u64) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let Some((cells_at, end)) = entry(bytes, at) else { return false };
        if check(&bytes[at..cells_at], &bytes[cells_at..end], offset + at as u64).is_none() {
            return false;
        }
        at = end;
    }
    true
}

/// Where the cells of the entry at `at` begin, and where it ends; `None`: no whole entry is there.
fn entry(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (key_len, len_len) = get_varint(bytes.get(at..)?)?;
    let cells_at = (at + len_len).checked_add(usize::try_from(key_len).ok()?)?;
    let count = cell_count(bytes.get(at + len_len..cells_at)?)?;
    let mut end = cells_at;
    for _ in 0..count {
        let len = bytes.get(end..)?.first_chunk::<4>()?;
        end += 4 + u32::from_be_bytes(*len) as usize;
    }
    (end <= bytes.len()).then_some((cells_at, end))
}

/// Field 7 of a key.
fn cell_count(mut key: &[u8]) -> Option<u64> {
    while !key.is_empty() {
        let (tag, n) = get_varint(key)?;
        let (value, m) = get_varint(key.get(n..)?)?;
        match (tag >> 3, tag & 7) {
            (7, 0) => return Some(value),
            (_, 0) => key = key.get(n + m..)?,
            (_, 2) => key = key.get(n + m + usize::try_from(value).ok()?..)?,
            _ => return None,
        }
    }
    None
}
