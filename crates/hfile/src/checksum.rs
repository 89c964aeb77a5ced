//! Checksums of a block: one big-endian CRC for each slice of header and stored payload.

use crate::ChecksumType;
use crate::crc32c_wide;
use crate::cursor::Decoded;

/// Bytes of one checksum.
pub(crate) const CHECKSUM_LEN: usize = 4;

/// Bytes of checksums after `data_len` bytes of header and payload.
pub(crate) fn total_len(data_len: usize, bytes_per_checksum: usize) -> usize {
    data_len.div_ceil(bytes_per_checksum) * CHECKSUM_LEN
}

fn checksum(kind: ChecksumType, slice: &[u8]) -> u32 {
    match kind {
        ChecksumType::Null => 0,
        ChecksumType::Crc32 => crc32fast::hash(slice),
        ChecksumType::Crc32c => crc32c_wide::crc32c(slice),
    }
}

/// Appends the checksums of `block[from..]` to `block`.
pub(crate) fn append(block: &mut Vec<u8>, from: usize, kind: ChecksumType, bytes_per_checksum: usize) {
    let data_end = block.len();
    let mut at = from;
    while at < data_end {
        let end = data_end.min(at + bytes_per_checksum);
        let sum = checksum(kind, &block[at..end]);
        block.extend_from_slice(&sum.to_be_bytes());
        at = end;
    }
}

/// Compares the checksums of `data` with `sums` (which has the right length).
pub(crate) fn verify(data: &[u8], sums: &[u8], kind: ChecksumType, bytes_per_checksum: usize) -> Decoded<()> {
    if kind == ChecksumType::Null {
        return Ok(());
    }
    for (i, (slice, sum)) in data.chunks(bytes_per_checksum).zip(sums.chunks_exact(CHECKSUM_LEN)).enumerate() {
        if checksum(kind, slice).to_be_bytes() != sum {
            return Err(format!("checksum {} of the block is wrong", i + 1).into());
        }
    }
    Ok(())
}
