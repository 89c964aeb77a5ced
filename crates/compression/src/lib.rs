//! The codecs of HBase that few tables have, for store files, logs and cell blocks alike: BZIP2, LZMA, BROTLI, LZO.
//!
//! Hadoop puts the packed bytes into a stream: BZIP2 is one `.bz2` stream and nothing around it ([`Codec::is_stream`]); of the
//! others each *part* of the block framing (`rawLen(4) { packedLen(4) part }*`) is packed by itself: LZMA as a `.lzma` file of known
//! length, BROTLI as a brotli stream, LZO as LZO1X with its end mark. The framing belongs to the callers, who have other codecs in it.
//!
//! Always true: what is unpacked never takes more memory than the limit that the caller names and a window of the codec, and no input
//! makes it panic. Must not know: files, logs, the network. Follows Hadoop's `BZip2Codec` and the codecs of
//! `hbase-compression-xz`, `-brotli` and `-aircompressor`.

mod lzo;

use std::io::{Read, Write};

/// `io.compression.codec.lzo.buffersize`: HBase's and Hadoop's codecs unpack a part into a buffer of so many bytes.
const LZO_BUFFER: usize = 64 << 10;
/// `hbase.io.compress.lzma.buffersize` and `hbase.io.compress.brotli.buffersize`.
const BUFFER: usize = 256 << 10;
/// Logarithm of the window that we pack with: a part is never longer.
const BROTLI_WINDOW: i32 = 18;
/// `hbase.io.compress.brotli.level` and `hbase.io.compress.lzma.level`.
const LEVEL: u32 = 6;
/// The shortest window that LZMA has.
const LZMA_LEAST_WINDOW: u32 = 4 << 10;
const LZMA_HEADER: usize = 13;
/// Bytes of a block of bzip2 for each level.
const BZIP2_STEP: usize = 100_000;

/// A codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// One `.bz2` stream.
    Bzip2,
    /// `.lzma` in Hadoop's block framing.
    Lzma,
    /// Brotli in Hadoop's block framing.
    Brotli,
    /// LZO1X in Hadoop's block framing.
    Lzo,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Codec; 4] = [Codec::Bzip2, Codec::Lzma, Codec::Brotli, Codec::Lzo];

    /// HBase's name.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Bzip2 => "BZIP2",
            Codec::Lzma => "LZMA",
            Codec::Brotli => "BROTLI",
            Codec::Lzo => "LZO",
        }
    }

    /// Whether the packed bytes stand by themselves, without Hadoop's block framing.
    pub fn is_stream(self) -> bool {
        self == Codec::Bzip2
    }

    /// The most bytes that Hadoop's `BlockCompressorStream` puts into one part, and that its readers have room for.
    pub fn max_part(self) -> usize {
        match self {
            Codec::Bzip2 => usize::MAX,
            Codec::Lzma | Codec::Brotli => BUFFER - (BUFFER / 6 + 32),
            Codec::Lzo => LZO_BUFFER - (LZO_BUFFER / 6 + 32),
        }
    }

    /// Appends the packed form of `plain` to `out`.
    ///
    /// # Panics
    /// When an encoder that writes to memory fails, which none does.
    pub fn pack(self, plain: &[u8], out: &mut Vec<u8>) {
        const INTO_MEMORY: &str = "memory takes every write";
        match self {
            Codec::Bzip2 => {
                // The level is the room for one block: more of it than there are bytes changes nothing but the memory of both ends.
                let level = plain.len().div_ceil(BZIP2_STEP).clamp(1, 9) as u32;
                let mut bzip2 = bzip2::write::BzEncoder::new(out, bzip2::Compression::new(level));
                bzip2.write_all(plain).and_then(|()| bzip2.finish().map(drop)).expect(INTO_MEMORY);
            }
            Codec::Lzma => {
                let mut options = lzma_rust2::LzmaOptions::with_preset(LEVEL);
                options.dict_size = (plain.len() as u32).next_power_of_two().clamp(LZMA_LEAST_WINDOW, BUFFER as u32);
                let mut lzma = lzma_rust2::LzmaWriter::new_use_header(out, &options, Some(plain.len() as u64))
                    .expect("options of a preset");
                lzma.write_all(plain).and_then(|()| lzma.finish().map(drop)).expect(INTO_MEMORY);
            }
            Codec::Brotli => {
                let params = brotli::enc::BrotliEncoderParams {
                    quality: LEVEL as i32,
                    lgwin: BROTLI_WINDOW,
                    size_hint: plain.len(),
                    ..Default::default()
                };
                brotli::BrotliCompress(&mut &*plain, out, &params).expect(INTO_MEMORY);
            }
            Codec::Lzo => lzo::pack(plain, out),
        }
    }

    /// Appends the bytes that `packed` stands for to `out`, at most `limit` and one: a caller sees from the length that there were too many.
    /// Memory is taken as bytes come out.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn unpack(self, packed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("does not unpack as {}: {e}", self.name());
        match self {
            Codec::Bzip2 => read(bzip2::bufread::BzDecoder::new(packed), limit, out).map_err(failed),
            Codec::Brotli => read(brotli::Decompressor::new(packed, 4096), limit, out).map_err(failed),
            Codec::Lzma => read(lzma(packed, limit)?, limit, out).map_err(failed),
            Codec::Lzo => lzo::unpack(packed, limit, out).map_err(|e| format!("does not unpack as LZO: {e}")),
        }
    }
}

/// A reader of a `.lzma` file whose window is no longer than what may come out of it.
fn lzma(packed: &[u8], limit: usize) -> Result<lzma_rust2::LzmaReader<&[u8]>, String> {
    let header = "does not unpack as LZMA: its header of 13 bytes is cut short";
    let (header, rest) = packed.split_first_chunk::<LZMA_HEADER>().ok_or(header)?;
    let [props, a, b, c, d, len @ ..] = *header;
    let (window, len) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(len));
    // All bits: the length is not known, an end mark says it.
    if len != u64::MAX && len > limit as u64 {
        return Err(format!("does not unpack as LZMA: {len} bytes where {limit} have room"));
    }
    let most = u32::try_from(limit).unwrap_or(u32::MAX).saturating_add(1);
    let window = window.min(most).max(LZMA_LEAST_WINDOW);
    lzma_rust2::LzmaReader::new_with_props(rest, len, props, window, None)
        .map_err(|e| format!("does not unpack as LZMA: {e}"))
}

fn read(from: impl Read, limit: usize, out: &mut Vec<u8>) -> std::io::Result<()> {
    from.take(limit as u64 + 1).read_to_end(out).map(drop)
}

#[cfg(test)]
mod tests;
