//! Hadoop's compression codecs around a cell block.
//!
//! Two framings exist. *Stream*: the bytes of the library's own container (zlib, gzip, bzip2, a zstd frame). *Block*:
//! `rawLen(4) { chunkLen(4) chunk }*` repeated, each block's chunks decompressing to `rawLen` bytes in all.
//!
//! Follows Hadoop's `DefaultCodec`, `GzipCodec`, `BlockCompressorStream`, `BlockDecompressorStream`.

use std::io::{Read, Write};

use bytes::Bytes;
use compression::Codec;
use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::CellBlockError;

/// Raw bytes per block written. Readers use buffers of 256 KiB that must hold a whole chunk, raw and compressed.
const BLOCK_BYTES: usize = 64 * 1024;

/// Compression of a connection's cell blocks, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// zlib stream.
    Zlib,
    /// gzip stream.
    Gzip,
    /// Snappy blocks.
    Snappy,
    /// LZ4 blocks.
    Lz4,
    /// zstd stream, Hadoop's own codec.
    ZstdStream,
    /// zstd blocks, HBase's codecs.
    ZstdBlock,
    /// A bzip2 stream.
    Bzip2,
    /// LZMA blocks.
    Lzma,
    /// Brotli blocks.
    Brotli,
    /// LZO1X blocks.
    Lzo,
}

use Compressor::{Brotli, Bzip2, Gzip, Lz4, Lzma, Lzo, Snappy, Zlib, ZstdBlock, ZstdStream};

/// The Java classes that we can stand in for; the first one of a codec gives it its name.
const CLASSES: &[(Compressor, &str)] = &[
    (Zlib, "org.apache.hadoop.io.compress.DefaultCodec"),
    (Zlib, "org.apache.hadoop.io.compress.DeflateCodec"),
    (Gzip, "org.apache.hadoop.io.compress.GzipCodec"),
    (Gzip, "org.apache.hadoop.hbase.io.compress.ReusableStreamGzipCodec"),
    (Snappy, "org.apache.hadoop.io.compress.SnappyCodec"),
    (Snappy, "org.apache.hadoop.hbase.io.compress.xerial.SnappyCodec"),
    (Snappy, "org.apache.hadoop.hbase.io.compress.aircompressor.SnappyCodec"),
    (Lz4, "org.apache.hadoop.io.compress.Lz4Codec"),
    (Lz4, "org.apache.hadoop.hbase.io.compress.lz4.Lz4Codec"),
    (Lz4, "org.apache.hadoop.hbase.io.compress.aircompressor.Lz4Codec"),
    (ZstdStream, "org.apache.hadoop.io.compress.ZStandardCodec"),
    (ZstdBlock, "org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec"),
    (ZstdBlock, "org.apache.hadoop.hbase.io.compress.aircompressor.ZstdCodec"),
    (Bzip2, "org.apache.hadoop.io.compress.BZip2Codec"),
    (Lzma, "org.apache.hadoop.hbase.io.compress.xz.LzmaCodec"),
    (Brotli, "org.apache.hadoop.hbase.io.compress.brotli.BrotliCodec"),
    (Lzo, "org.apache.hadoop.hbase.io.compress.aircompressor.LzoCodec"),
    (Lzo, "com.hadoop.compression.lzo.LzoCodec"),
];

impl Compressor {
    /// The compressor of that Java class.
    pub fn from_class(class: &str) -> Option<Self> {
        CLASSES.iter().find(|(_, name)| *name == class).map(|(compressor, _)| *compressor)
    }

    /// A Java class that reads and writes it.
    pub fn class(self) -> &'static str {
        CLASSES.iter().find(|(compressor, _)| *compressor == self).map_or("", |(_, name)| *name)
    }

    /// The bytes before compression, at most `limit` of them.
    ///
    /// # Errors
    /// The bytes are damaged, or grow beyond `limit`; no more than that is ever allocated.
    pub fn decompress(self, bytes: &[u8], limit: u64) -> Result<Bytes, CellBlockError> {
        let damaged = |what: String| CellBlockError::Compressed { codec: self.class(), what };
        let out = match self {
            Zlib => read_limited(ZlibDecoder::new(bytes), limit),
            Gzip => read_limited(MultiGzDecoder::new(bytes), limit),
            ZstdStream => zstd::stream::read::Decoder::with_buffer(bytes).and_then(|d| read_limited(d, limit)),
            Bzip2 => {
                let (mut out, most) = (Vec::new(), usize::try_from(limit).unwrap_or(usize::MAX - 1));
                Codec::Bzip2.unpack(bytes, most, &mut out).map(|()| out).map_err(std::io::Error::other)
            }
            Snappy | Lz4 | ZstdBlock | Lzma | Brotli | Lzo => return self.decompress_blocks(bytes, limit),
        };
        let out = out.map_err(|e| damaged(e.to_string()))?;
        if out.len() as u64 > limit { Err(CellBlockError::TooLarge { limit }) } else { Ok(Bytes::from(out)) }
    }

    fn decompress_blocks(self, mut rest: &[u8], limit: u64) -> Result<Bytes, CellBlockError> {
        let damaged = |what: &str| CellBlockError::Compressed { codec: self.class(), what: what.to_owned() };
        let mut out = Vec::new();
        while let Some((raw_len, after)) = rest.split_first_chunk::<4>() {
            rest = after;
            let raw_len = u32::from_be_bytes(*raw_len) as usize;
            let block_end = out.len() + raw_len;
            if block_end as u64 > limit {
                return Err(CellBlockError::TooLarge { limit });
            }
            while out.len() < block_end {
                let (len, after) = rest.split_first_chunk::<4>().ok_or_else(|| damaged("a chunk is missing"))?;
                let (chunk, after) = after
                    .split_at_checked(u32::from_be_bytes(*len) as usize)
                    .ok_or_else(|| damaged("a chunk is cut short"))?;
                rest = after;
                let before = out.len();
                self.decompress_chunk(chunk, block_end - before, &mut out).map_err(|e| damaged(&e))?;
                if out.len() == before {
                    return Err(damaged("a chunk is empty"));
                }
            }
        }
        if rest.is_empty() { Ok(Bytes::from(out)) } else { Err(damaged("stray bytes at the end")) }
    }

    /// Appends one chunk, which may not be larger than `room`.
    fn decompress_chunk(self, chunk: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let at = out.len();
        match self {
            Snappy => {
                let len = snap::raw::decompress_len(chunk).map_err(|e| e.to_string())?;
                if len > room {
                    return Err("a chunk is larger than its block".to_owned());
                }
                out.resize(at + len, 0);
                snap::raw::Decoder::new().decompress(chunk, &mut out[at..]).map_err(|e| e.to_string())?;
            }
            Lz4 => {
                // LZ4 chunks do not say how long they are, but they do not shrink by more than 255 to 1.
                let most = room.min(chunk.len().saturating_mul(255));
                out.resize(at + most, 0);
                let len = lz4_flex::block::decompress_into(chunk, &mut out[at..]).map_err(|e| e.to_string())?;
                out.truncate(at + len);
            }
            Lzma | Brotli | Lzo => {
                let codec = match self {
                    Lzma => Codec::Lzma,
                    Brotli => Codec::Brotli,
                    _ => Codec::Lzo,
                };
                codec.unpack(chunk, room, out)?;
                if out.len() - at > room {
                    return Err("a chunk is larger than its block".to_owned());
                }
            }
            _ => {
                let decoder = zstd::stream::read::Decoder::with_buffer(chunk).map_err(|e| e.to_string())?;
                decoder.take(room as u64 + 1).read_to_end(out).map_err(|e| e.to_string())?;
                if out.len() - at > room {
                    return Err("a chunk is larger than its block".to_owned());
                }
            }
        }
        Ok(())
    }

    /// The bytes compressed.
    pub fn compress(self, bytes: &[u8]) -> Bytes {
        // Writing to memory cannot fail.
        const INTO_MEMORY: &str = "compression into memory";
        match self {
            Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::default());
                encoder.write_all(bytes).expect(INTO_MEMORY);
                Bytes::from(encoder.finish().expect(INTO_MEMORY))
            }
            Gzip => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::default());
                encoder.write_all(bytes).expect(INTO_MEMORY);
                Bytes::from(encoder.finish().expect(INTO_MEMORY))
            }
            ZstdStream => Bytes::from(zstd::bulk::compress(bytes, 0).expect(INTO_MEMORY)),
            Bzip2 => packed(Codec::Bzip2, bytes).into(),
            Snappy | Lz4 | ZstdBlock | Lzma | Brotli | Lzo => {
                let mut out = Vec::with_capacity(bytes.len() / 2 + 16);
                let block_len = if self == Lzo { BLOCK_BYTES.min(Codec::Lzo.max_part()) } else { BLOCK_BYTES };
                for block in bytes.chunks(block_len) {
                    let chunk = match self {
                        Snappy => snap::raw::Encoder::new().compress_vec(block).expect(INTO_MEMORY),
                        Lz4 => lz4_flex::block::compress(block),
                        Lzma => packed(Codec::Lzma, block),
                        Brotli => packed(Codec::Brotli, block),
                        Lzo => packed(Codec::Lzo, block),
                        _ => zstd::bulk::compress(block, 0).expect(INTO_MEMORY),
                    };
                    out.extend_from_slice(&(block.len() as u32).to_be_bytes());
                    out.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
                    out.extend_from_slice(&chunk);
                }
                Bytes::from(out)
            }
        }
    }
}

fn packed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    codec.pack(bytes, &mut out);
    out
}

fn read_limited(reader: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(limit.saturating_add(1)).read_to_end(&mut out)?;
    Ok(out)
}
