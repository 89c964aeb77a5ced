//! What a file consists of, for people who look into it: its trailer, its blocks, the root of its index, its Bloom filters. Follows:
//! `HFilePrettyPrinter`.

use crate::block::{BlockType, HEADER_LEN, Header};
use crate::bloom::Bloom;
use crate::checksum;
use crate::cursor::Damage;
use crate::index::BlockAt;
use crate::reader::Reader;
use crate::{ChecksumType, Error, Result};
use bytes::Bytes;

/// What a trailer says, under HBase's names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it; docs/formats/hfile.md explains them")]
pub struct TrailerFields {
    pub file_info_offset: u64,
    pub load_on_open_offset: u64,
    pub data_index_count: u32,
    pub meta_index_count: u32,
    pub total_uncompressed_bytes: u64,
    pub entry_count: u64,
    pub uncompressed_data_index_bytes: u64,
    pub data_index_levels: u32,
    pub first_data_block_offset: Option<u64>,
    pub last_data_block_offset: Option<u64>,
    pub major_version: u32,
    pub minor_version: u32,
}

/// The header of a block, and how its content begins.
#[derive(Clone, Debug)]
pub struct BlockHeader {
    /// Where it is in the file.
    pub offset: u64,
    /// Its kind, as it is marked: `DATABLK*`, `IDXLEAF2`, ...
    pub magic: &'static [u8; 8],
    /// Bytes of the block with header and checksums.
    pub total_bytes: u64,
    /// Bytes of its content, unpacked.
    pub uncompressed_bytes: u64,
    /// Where the block of its kind before it is; -1 where there is none.
    pub previous_offset: i64,
    /// How its checksums are made.
    pub checksum: ChecksumType,
    /// How many bytes have one.
    pub bytes_per_checksum: u64,
    /// Header and stored content.
    pub data_bytes: u64,
    /// The content's first bytes, at most 32.
    pub begins_with: Bytes,
}

/// An entry of the index's root.
#[derive(Clone, Copy, Debug)]
pub struct RootEntry<'a> {
    /// Flat key at or before the first of the block.
    pub key: &'a [u8],
    /// Where the block is.
    pub offset: u64,
    /// Its bytes with header and checksums.
    pub block_bytes: u32,
}

/// What the header of a Bloom filter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it; docs/formats/hfile.md explains them")]
pub struct BloomFields {
    pub total_bytes: u64,
    pub key_count: u64,
    pub max_key_count: u64,
    pub chunk_count: usize,
    pub is_row_col: bool,
}

fn bloom_fields(bloom: &Bloom) -> BloomFields {
    BloomFields {
        total_bytes: bloom.total_bytes,
        key_count: bloom.key_count,
        max_key_count: bloom.max_key_count,
        chunk_count: bloom.chunk_count(),
        is_row_col: bloom.has_flat_keys(),
    }
}

impl Reader {
    /// What the trailer says.
    ///
    /// # Errors
    /// `Io`: the version is read anew.
    pub fn trailer_fields(&self) -> Result<TrailerFields> {
        let mut version = [0; 4];
        self.source.file.read_exact_at(&mut version, self.len_bytes().saturating_sub(4))?;
        let trailer = self.trailer();
        let offset = |offset: u64| (offset != u64::MAX).then_some(offset);
        Ok(TrailerFields {
            file_info_offset: trailer.file_info_offset,
            load_on_open_offset: trailer.load_on_open_offset,
            data_index_count: trailer.root_entries,
            meta_index_count: trailer.meta_entries,
            total_uncompressed_bytes: trailer.uncompressed_bytes,
            entry_count: trailer.entry_count,
            uncompressed_data_index_bytes: trailer.uncompressed_index_bytes,
            data_index_levels: trailer.index_levels,
            first_data_block_offset: offset(trailer.first_data_block),
            last_data_block_offset: offset(trailer.last_data_block),
            major_version: u32::from_be_bytes([0, version[1], version[2], version[3]]),
            minor_version: u32::from(version[0]),
        })
    }

    /// Entries of the root of the data index.
    pub fn root_index(&self) -> impl Iterator<Item = RootEntry<'_>> {
        (0..self.root.len()).map(|i| {
            let block = self.root.block(i);
            RootEntry { key: self.root.raw_key(i), offset: block.offset, block_bytes: block.len }
        })
    }

    /// The block at `offset`, read and checked.
    ///
    /// # Errors
    /// `Corrupt` where no block lies there or its checksums do not fit, `Io`.
    pub fn block_at(&self, offset: u64) -> Result<BlockHeader> {
        let damaged = |what: String| Error::corrupt(self.path(), offset, what);
        let header = self.header_at(offset)?;
        let len = u32::try_from(header.total_len).map_err(|_| damaged("the block is too long".to_owned()))?;
        let (block_type, payload) = self.source.read(BlockAt { offset, len }, false, None)?;
        Ok(BlockHeader {
            offset,
            magic: block_type.magic(),
            total_bytes: header.total_len as u64,
            uncompressed_bytes: header.uncompressed_len as u64,
            previous_offset: header.prev_offset,
            checksum: header.checksum,
            bytes_per_checksum: header.bytes_per_checksum as u64,
            data_bytes: header.data_len as u64,
            begins_with: payload.slice(..payload.len().min(32)),
        })
    }

    /// The blocks from the first data block to the last, with the index and Bloom blocks between them. Ends after an error.
    pub fn blocks(&self) -> impl Iterator<Item = Result<BlockHeader>> {
        let last = self.trailer().last_data_block;
        let mut next = Some(self.trailer().first_data_block).filter(|first| *first != u64::MAX && last != u64::MAX);
        std::iter::from_fn(move || {
            let offset = next.take().filter(|offset| *offset <= last)?;
            let block = self.block_at(offset);
            if let Ok(block) = &block {
                next = offset.checked_add(block.total_bytes);
            }
            Some(block)
        })
    }

    /// How many blocks there are from the first data block to the last, with those between them. The checksums of all are checked, and those
    /// that hold no cells are unpacked: [`Reader::read_through`] unpacks the others.
    ///
    /// # Errors
    /// `Corrupt` where no block lies or its checksums do not fit, `Io`.
    pub fn count_blocks(&self) -> Result<u64> {
        let (first, last) = (self.trailer().first_data_block, self.trailer().last_data_block);
        let (mut offset, mut count, mut raw) = (first, 0, Vec::new());
        while first != u64::MAX && last != u64::MAX && offset <= last {
            let header = self.header_at(offset)?;
            if matches!(header.block_type, BlockType::Data | BlockType::EncodedData) {
                let damaged = |damage: Damage| Error::corrupt(self.path(), offset, damage.0);
                raw.resize(header.total_len, 0);
                self.source.file.read_exact_at(&mut raw, offset)?;
                let (data, sums) = raw.split_at(header.data_len.min(raw.len()));
                checksum::verify(data, sums, header.checksum, header.bytes_per_checksum).map_err(damaged)?;
            } else {
                self.block_at(offset)?;
            }
            count += 1;
            offset = offset.saturating_add(header.total_len as u64);
        }
        Ok(count)
    }

    fn header_at(&self, offset: u64) -> Result<Header> {
        let damaged = |what: String| Error::corrupt(self.path(), offset, what);
        if offset.checked_add(HEADER_LEN as u64).is_none_or(|end| end > self.trailer().load_on_open_offset) {
            return Err(damaged("a block would begin here, beyond the file's blocks".to_owned()));
        }
        let mut bytes = [0; HEADER_LEN];
        self.source.file.read_exact_at(&mut bytes, offset)?;
        let header = Header::parse(&bytes).map_err(|damage| damaged(damage.0))?;
        // A length that is damaged takes no memory beyond the file's.
        let room = self.trailer().load_on_open_offset - offset;
        if header.total_len as u64 > room {
            return Err(damaged(format!("the block would have {} bytes, and {room} are left", header.total_len)));
        }
        Ok(header)
    }

    /// The Bloom filter of rows or columns.
    pub fn bloom_fields(&self) -> Option<BloomFields> {
        self.bloom().map(bloom_fields)
    }

    /// The Bloom filter of rows with deleted families.
    pub fn delete_bloom_fields(&self) -> Option<BloomFields> {
        self.delete_bloom().map(bloom_fields)
    }
}
