//! Blocks on their way to the file: packed, headed, summed, appended. Follows: `HFileBlock.Writer`.

use crate::block::{BlockType, HEADER_LEN, Header, MAX_BLOCK_LEN};
use crate::codec::Compressor;
use crate::index::BlockAt;
use crate::{ChecksumType, Compression, Result, WriterOptions, checksum};
use fs::Appender;

/// Writes blocks one after the other.
pub(crate) struct BlockWriter {
    out: Box<dyn Appender>,
    compressor: Compressor,
    /// No block is written yet, and the first one says whether the codec stays ([`WriterOptions::compression_must_pay`]).
    undecided: bool,
    checksum: ChecksumType,
    bytes_per_checksum: usize,
    /// Where the next block will start.
    offset: u64,
    /// Where the last block of each type starts.
    previous: [i64; BlockType::COUNT],
    /// Bytes of all blocks before compression, headers included.
    pub uncompressed_bytes: u64,
    scratch: Vec<u8>,
}

impl BlockWriter {
    pub fn new(out: Box<dyn Appender>, options: &WriterOptions) -> BlockWriter {
        let bytes_per_checksum = options.bytes_per_checksum as usize;
        assert!(bytes_per_checksum >= HEADER_LEN, "{bytes_per_checksum} bytes per checksum");
        BlockWriter {
            out,
            compressor: Compressor::new(options.compression),
            undecided: options.compression_must_pay && options.compression != Compression::None,
            checksum: options.checksum,
            bytes_per_checksum,
            offset: 0,
            previous: [-1; BlockType::COUNT],
            uncompressed_bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Codec of the file, after its first block.
    pub fn compression(&self) -> Compression {
        self.compressor.codec()
    }

    /// Writes a block with this payload.
    pub fn write(&mut self, block_type: BlockType, payload: &[u8]) -> Result<BlockAt> {
        let mut block = std::mem::take(&mut self.scratch);
        self.pack(payload, &mut block);
        let at = self.seal(block_type, &mut block, payload.len());
        self.scratch = block;
        at
    }

    /// Header room and the stored form of `payload` into `block`.
    fn pack(&mut self, payload: &[u8], block: &mut Vec<u8>) {
        block.clear();
        block.resize(HEADER_LEN, 0);
        self.compressor.compress(payload, block);
        if !std::mem::take(&mut self.undecided) {
            return;
        }
        // The codec is the file's, not the block's, and blocks leave as they fill: the first one speaks for all. What a codec makes of bytes
        // that do not shrink takes hardly longer to read than the bytes, but a copy that a plain block does not need.
        let stored = block.len() - HEADER_LEN;
        if stored > payload.len() - payload.len() / 8 {
            self.compressor = Compressor::new(Compression::None);
            block.truncate(HEADER_LEN);
            block.extend_from_slice(payload);
        }
    }

    /// As [`BlockWriter::write`] for a payload with room for the header before it. Where nothing is compressed the block is finished in place:
    /// what lies behind the payload afterwards is of no use to the caller.
    pub fn write_framed(&mut self, block_type: BlockType, framed: &mut Vec<u8>) -> Result<BlockAt> {
        if self.compressor.copies() {
            return self.seal(block_type, framed, framed.len() - HEADER_LEN);
        }
        self.write(block_type, &framed[HEADER_LEN..])
    }

    /// Gives a block of header room and stored payload its header and checksums, and appends it to the file.
    fn seal(&mut self, block_type: BlockType, block: &mut Vec<u8>, payload_len: usize) -> Result<BlockAt> {
        assert!(payload_len <= MAX_BLOCK_LEN / 2, "a {block_type:?} block of {payload_len} bytes no reader would take");
        let data_len = block.len();
        let total_len = data_len + checksum::total_len(data_len, self.bytes_per_checksum);
        let header = Header {
            block_type,
            total_len,
            uncompressed_len: payload_len,
            prev_offset: self.previous[block_type as usize],
            checksum: self.checksum,
            bytes_per_checksum: self.bytes_per_checksum,
            data_len,
        };
        header.put(block);
        checksum::append(block, self.checksum, self.bytes_per_checksum);
        assert_eq!(block.len(), total_len, "the block has the length its header says");
        self.out.append(block)?;
        let at = BlockAt { offset: self.offset, len: total_len as u32 };
        self.previous[block_type as usize] = self.offset as i64;
        self.offset += total_len as u64;
        self.uncompressed_bytes += (HEADER_LEN + payload_len) as u64;
        Ok(at)
    }

    /// Appends the trailer and makes the file durable.
    pub fn close(mut self, trailer: &[u8]) -> Result<u64> {
        self.out.append(trailer)?;
        self.out.sync()?;
        Ok(self.offset + trailer.len() as u64)
    }
}
