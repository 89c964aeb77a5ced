//! A block as it lies in the file: 33-byte header, stored payload, checksums.
//!
//! ```text
//! magic(8) sizeWithoutHeader(4) uncompressedSize(4) prevOffset(8) checksumType(1) bytesPerChecksum(4) dataSizeWithHeader(4)
//! ```
//!
//! Follows: `HFileBlock`.

use crate::Dictionary;
use crate::cursor::{Cursor, Decoded};
use crate::{ChecksumType, Compression, checksum, codec};
use bytes::Bytes;
use std::sync::Arc;

/// Bytes of a block header.
pub(crate) const HEADER_LEN: usize = 33;

/// No block is believed to be larger than this, stored or unpacked. HBase's own limit on one cell is 10 MiB by default.
pub(crate) const MAX_BLOCK_LEN: usize = 1 << 30;

macro_rules! block_types {
    ($($(#[$meta:meta])* $variant:ident = $magic:literal),* $(,)?) => {
        /// What a block holds.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum BlockType { $($(#[$meta])* $variant),* }
        impl BlockType {
            pub const COUNT: usize = [$($magic),*].len();
            pub fn magic(self) -> &'static [u8; 8] {
                match self { $(BlockType::$variant => $magic),* }
            }
            fn from_magic(magic: &[u8]) -> Option<BlockType> {
                $(if magic == $magic { return Some(BlockType::$variant); })*
                None
            }
        }
    };
}

block_types! {
    /// Plain cells.
    Data = b"DATABLK*",
    /// Encoded cells.
    EncodedData = b"DATABLKE",
    /// Lowest level of a multi-level index.
    LeafIndex = b"IDXLEAF2",
    /// Middle level of an index.
    IntermediateIndex = b"IDXINTE2",
    /// Top level of an index.
    RootIndex = b"IDXROOT2",
    /// Bits of a Bloom filter.
    BloomChunk = b"BLMFBLK2",
    /// A named block of the file's maker.
    Meta = b"METABLKc",
    /// File info.
    FileInfo = b"FILEINF2",
    /// Header of the general Bloom filter.
    GeneralBloomMeta = b"BLMFMET2",
    /// Header of the delete-family Bloom filter.
    DeleteFamilyBloomMeta = b"DFBLMET2",
}

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub block_type: BlockType,
    /// Header, stored payload and checksums.
    pub total_len: usize,
    pub uncompressed_len: usize,
    pub prev_offset: i64,
    pub checksum: ChecksumType,
    pub bytes_per_checksum: usize,
    /// Header and stored payload.
    pub data_len: usize,
}

impl Header {
    /// Reads a header and holds its numbers against each other.
    pub fn parse(bytes: &[u8]) -> Decoded<Header> {
        let mut at = Cursor::new(bytes);
        let magic = at.take(8)?;
        let block_type = BlockType::from_magic(magic)
            .ok_or_else(|| format!("no block starts here (found {})", cell::print::Binary(magic)))?;
        let (stored, uncompressed, prev_offset) = (at.u32()? as usize, at.u32()? as usize, at.u64()? as i64);
        let checksum = at.u8()?;
        let checksum = ChecksumType::from_code(u32::from(checksum))
            .ok_or_else(|| format!("checksum type {checksum} is not known"))?;
        let (bytes_per_checksum, data_len) = (at.u32()? as usize, at.u32()? as usize);
        if stored > MAX_BLOCK_LEN || uncompressed > MAX_BLOCK_LEN || data_len > MAX_BLOCK_LEN {
            return Err(format!("sizes {stored}, {uncompressed}, {data_len} are not those of a block").into());
        }
        if bytes_per_checksum < HEADER_LEN || data_len < HEADER_LEN {
            return Err(format!("{bytes_per_checksum} bytes per checksum or {data_len} of data is too few").into());
        }
        let total_len = HEADER_LEN + stored;
        if data_len + checksum::total_len(data_len, bytes_per_checksum) != total_len {
            return Err(format!("the header's sizes disagree: {data_len} of data, {total_len} in all").into());
        }
        Ok(Header {
            block_type,
            total_len,
            uncompressed_len: uncompressed,
            prev_offset,
            checksum,
            bytes_per_checksum,
            data_len,
        })
    }

    /// Writes the header over the first 33 bytes of `block`.
    pub fn put(&self, block: &mut [u8]) {
        let mut out = Vec::with_capacity(HEADER_LEN);
        out.extend_from_slice(self.block_type.magic());
        out.extend_from_slice(&((self.total_len - HEADER_LEN) as u32).to_be_bytes());
        out.extend_from_slice(&(self.uncompressed_len as u32).to_be_bytes());
        out.extend_from_slice(&self.prev_offset.to_be_bytes());
        out.push(self.checksum.code() as u8);
        out.extend_from_slice(&(self.bytes_per_checksum as u32).to_be_bytes());
        out.extend_from_slice(&(self.data_len as u32).to_be_bytes());
        block[..HEADER_LEN].copy_from_slice(&out);
    }
}

/// Checks a whole block and gives its type and its plain payload. An uncompressed payload is a slice of `raw`.
pub(crate) fn unpack(
    raw: Bytes,
    compression: Compression,
    dictionary: Option<&Arc<Dictionary>>,
) -> Decoded<(BlockType, Bytes)> {
    unpack_verified(raw, compression, dictionary, true)
}

/// As [`unpack`]; the checksums count only if `verify` says so.
pub(crate) fn unpack_verified(
    raw: Bytes,
    compression: Compression,
    dictionary: Option<&Arc<Dictionary>>,
    verify: bool,
) -> Decoded<(BlockType, Bytes)> {
    let header = Header::parse(&raw)?;
    if raw.len() != header.total_len {
        return Err(format!("the block has {} bytes where {} were expected", header.total_len, raw.len()).into());
    }
    let (data, sums) = raw.split_at(header.data_len);
    if verify {
        checksum::verify(data, sums, header.checksum, header.bytes_per_checksum)?;
    }
    let payload = if compression == Compression::None {
        if header.data_len - HEADER_LEN != header.uncompressed_len {
            return Err("stored and uncompressed size of an uncompressed block disagree".into());
        }
        raw.slice(HEADER_LEN..header.data_len)
    } else {
        Bytes::from(codec::decompress(compression, dictionary, &data[HEADER_LEN..], header.uncompressed_len)?)
    };
    Ok((header.block_type, payload))
}
