//! Blocks on their way to the file: packed, headed, summed, appended. Follows: `HFileBlock.Writer`.

use crate::block::{BlockType, HEADER_LEN, Header, MAX_BLOCK_LEN};
use crate::codec::Compressor;
use crate::index::BlockAt;
use crate::{BlockCache, ChecksumType, Compression, Result, WriterOptions, checksum};
use fs::Appender;
use std::sync::Arc;

/// What [`fs::AppendHints::append_straight`] wants of the place of bytes in memory.
const ALIGN_BYTES: usize = 4096;
/// Blocks may make what is gathered so much longer than it need be before it is handed over; more costs a copy.
const SLACK_BYTES: usize = 512 << 10;

/// Writes blocks one after the other. They are made, sealed and gathered in one memory, from which they leave for the file.
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
    /// Blocks that were sealed and not handed over, from `gathered_from` on.
    gathered: Vec<u8>,
    gathered_from: usize,
    /// How many bytes of them are handed over at a time; 0: each block by itself.
    gather_bytes: usize,
    /// Is told how long the volume takes ([`WriterOptions::times_go_to`]).
    times: Option<Arc<BlockCache>>,
}

impl BlockWriter {
    pub fn new(mut out: Box<dyn Appender>, options: &WriterOptions) -> BlockWriter {
        let bytes_per_checksum = options.bytes_per_checksum as usize;
        assert!(bytes_per_checksum >= HEADER_LEN, "{bytes_per_checksum} bytes per checksum");
        let mut writer = BlockWriter {
            gather_bytes: out.straight_bytes(),
            out,
            compressor: Compressor::new(options.compression, options.zstd_level, options.dictionary.clone()),
            undecided: options.compression_must_pay && options.compression != Compression::None,
            checksum: options.checksum,
            bytes_per_checksum,
            offset: 0,
            previous: [-1; BlockType::COUNT],
            uncompressed_bytes: 0,
            scratch: Vec::new(),
            gathered: Vec::new(),
            gathered_from: 0,
            times: options.times_go_to.clone(),
        };
        writer.align();
        writer
    }

    /// Codec of the file, after its first block.
    pub fn compression(&self) -> Compression {
        self.compressor.codec()
    }

    /// Where the next block will start.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The memory in which the next block is to be made, behind what is in it. [`BlockWriter::write_framed`] takes it back.
    pub fn lend(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.gathered)
    }

    /// Takes the memory back without a block.
    pub fn take_back(&mut self, gathered: Vec<u8>) {
        self.gathered = gathered;
    }

    /// Writes a block with this payload.
    pub fn write(&mut self, block_type: BlockType, payload: &[u8]) -> Result<BlockAt> {
        let base = self.gathered.len();
        self.gathered.resize(base + HEADER_LEN, 0);
        self.compressor.compress(payload, &mut self.gathered);
        if std::mem::take(&mut self.undecided) && !self.pays(payload.len(), self.gathered.len() - base - HEADER_LEN) {
            self.gathered.truncate(base + HEADER_LEN);
            self.gathered.extend_from_slice(payload);
        }
        self.seal(block_type, base, payload.len())
    }

    /// As [`BlockWriter::write`] for a payload that was made in the memory lent, with room for the header before it from `base` on.
    pub fn write_framed(&mut self, block_type: BlockType, gathered: Vec<u8>, base: usize) -> Result<BlockAt> {
        self.gathered = gathered;
        let payload = base + HEADER_LEN;
        let len = self.gathered.len() - payload;
        if !self.compressor.copies() {
            let mut packed = std::mem::take(&mut self.scratch);
            packed.clear();
            self.compressor.compress(&self.gathered[payload..], &mut packed);
            if !std::mem::take(&mut self.undecided) || self.pays(len, packed.len()) {
                self.gathered.truncate(payload);
                self.gathered.extend_from_slice(&packed);
            }
            self.scratch = packed;
        }
        self.seal(block_type, base, len)
    }

    /// Whether the codec takes enough off the file's first block; if not, no block is packed. The codec is the file's, not the block's, and blocks leave as they
    /// fill: the first one speaks for all. What a codec makes of bytes that do not shrink takes hardly longer to read than the bytes, but a copy that a plain
    /// block does not need.
    fn pays(&mut self, plain: usize, packed: usize) -> bool {
        let pays = packed <= plain - plain / 8;
        if !pays {
            self.compressor = Compressor::new(Compression::None, 0, None);
        }
        pays
    }

    /// Gives a block of header room and stored payload, gathered from `base` on, its header and checksums.
    fn seal(&mut self, block_type: BlockType, base: usize, payload_len: usize) -> Result<BlockAt> {
        assert!(payload_len <= MAX_BLOCK_LEN / 2, "a {block_type:?} block of {payload_len} bytes no reader would take");
        let data_len = self.gathered.len() - base;
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
        header.put(&mut self.gathered[base..]);
        checksum::append(&mut self.gathered, base, self.checksum, self.bytes_per_checksum);
        assert_eq!(self.gathered.len() - base, total_len, "the block has the length its header says");
        self.hand_over()?;
        let at = BlockAt { offset: self.offset, len: total_len as u32 };
        self.previous[block_type as usize] = self.offset as i64;
        self.offset += total_len as u64;
        self.uncompressed_bytes += (HEADER_LEN + payload_len) as u64;
        Ok(at)
    }

    /// Hands over what was gathered, if it is enough.
    fn hand_over(&mut self) -> Result<()> {
        if self.gather_bytes == 0 {
            timed(self.times.as_deref(), || self.out.append(&self.gathered))?;
            self.gathered.clear();
        } else if self.gathered.len() - self.gathered_from >= self.gather_bytes {
            self.append_straight()?;
        }
        Ok(())
    }

    fn append_straight(&mut self) -> Result<()> {
        if !self.gathered.as_ptr().wrapping_add(self.gathered_from).addr().is_multiple_of(ALIGN_BYTES) {
            self.align();
        }
        let blocks = &self.gathered[self.gathered_from..];
        let count = timed(self.times.as_deref(), || self.out.append_straight(blocks))?;
        self.gathered.copy_within(self.gathered_from + count.., self.gathered_from);
        self.gathered.truncate(self.gathered.len() - count);
        Ok(())
    }

    /// Gathers where [`fs::AppendHints::append_straight`] needs no copy.
    fn align(&mut self) {
        if self.gather_bytes == 0 {
            return;
        }
        let blocks = &self.gathered[self.gathered_from..];
        let mut aligned: Vec<u8> = Vec::with_capacity(blocks.len().max(self.gather_bytes) + SLACK_BYTES + ALIGN_BYTES);
        let from = aligned.as_ptr().align_offset(ALIGN_BYTES);
        aligned.resize(from, 0);
        aligned.extend_from_slice(blocks);
        (self.gathered, self.gathered_from) = (aligned, from);
    }

    /// Appends the trailer and makes the file durable.
    pub fn close(mut self, trailer: &[u8]) -> Result<u64> {
        if self.gather_bytes > 0 {
            self.append_straight()?;
            timed(self.times.as_deref(), || self.out.append(&self.gathered[self.gathered_from..]))?;
        }
        timed(self.times.as_deref(), || self.out.append(trailer))?;
        let len_bytes = self.offset + trailer.len() as u64;
        // The index and the trailer say where blocks are; a file of another length is not what they tell of.
        assert_eq!(self.out.position(), len_bytes, "the file is as long as its blocks and its trailer");
        self.out.finish()?;
        Ok(len_bytes)
    }
}

/// Does it, and notes how long that took where somebody has a clock. Cost: two looks at the clock for each time that blocks are handed over,
/// which is tens of KiB or more.
fn timed<T>(times: Option<&BlockCache>, write: impl FnOnce() -> fs::Result<T>) -> fs::Result<T> {
    let Some((cache, clock)) = times.and_then(|cache| Some((cache, cache.clock()?))) else { return write() };
    let begun_us = clock.monotonic_us();
    let written = write()?;
    cache.file_reads().wrote(clock.monotonic_us().saturating_sub(begun_us));
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    /// Takes 2 ms for every append, and 5 s to make the file durable.
    struct Slow {
        clock: Arc<ManualClock>,
        bytes: u64,
    }

    impl Appender for Slow {
        fn append(&mut self, bytes: &[u8]) -> fs::Result<()> {
            self.clock.advance_ms(2);
            self.bytes += bytes.len() as u64;
            Ok(())
        }

        fn flush(&mut self) -> fs::Result<()> {
            Ok(())
        }

        fn sync(&mut self) -> fs::Result<()> {
            self.clock.advance_ms(5000);
            Ok(())
        }

        fn position(&self) -> u64 {
            self.bytes
        }
    }

    #[test]
    fn writes_of_files_are_timed_and_their_sync_is_not_among_them() {
        let (cache, clock) = (BlockCache::new(1 << 20), Arc::new(ManualClock::new(0)));
        let write = |times_go_to| {
            let options = WriterOptions { times_go_to, ..WriterOptions::default() };
            let mut writer = BlockWriter::new(Box::new(Slow { clock: clock.clone(), bytes: 0 }), &options);
            for _ in 0..3 {
                writer.write(BlockType::Data, &[7; 1000]).expect("written");
            }
            writer.close(b"trailer").expect("written");
        };
        let times = cache.file_reads().write_times();
        write(Some(cache.clone()));
        assert_eq!(times.count(), 0, "nobody has a clock");
        cache.time_reads_by(clock.clone());
        write(None);
        assert_eq!(times.count(), 0, "nobody's");
        write(Some(cache.clone()));
        let spread = times.spread(base::Clock::now_ms(&*clock).0);
        assert_eq!(times.count(), 4, "three blocks and a trailer");
        // The buckets are fine to a few per cent.
        assert!((1900..=2100).contains(&spread.min()) && (1900..=2100).contains(&spread.max()), "{spread:?}");
    }
}
