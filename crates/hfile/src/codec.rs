//! Compression of a block's payload.
//!
//! Snappy, LZ4, LZO, LZMA and Brotli lie in Hadoop's block framing: `rawLen(4)` and then parts `packedLen(4) packed` until `rawLen`
//! bytes are produced, again and again; a closing `rawLen` of 0 is legal. GZ is one gzip member, BZIP2 one `.bz2` stream (the `compression`
//! crate has it, LZO, LZMA and Brotli). Zstandard has two framings
//! and the trailer does not say which: Hadoop's own codec, HBase's default class, stores a bare frame; HBase's bundled
//! one the block framing. Both are read, told apart by the frame's magic; bare frames are written, since that is what
//! an HBase with default settings reads. Follows: Hadoop `BlockCompressorStream`, `ZStandardCodec`.

use crate::Compression;
use crate::Dictionary;
use crate::cursor::{Cursor, Damage, Decoded};
use compression as rare;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::sync::Arc;

/// Under which family, table or site say where their dictionary is.
pub(crate) const DICTIONARY_KEY: &str = "hbase.io.compress.zstd.dictionary";
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Hadoop's default `io.compression.codec.*.buffersize`.
const BUFFER_LEN: usize = 256 * 1024;
/// More than Snappy can stand for: one tag of 3 bytes for 64.
const SNAPPY_MAX_RATIO: usize = 32;

type Unpacker = zstd::bulk::Decompressor<'static>;

thread_local! {
    /// Making one costs as much as unpacking a block.
    static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
    /// The same with the dictionary that was used last.
    static UNPACKER_WITH: RefCell<Option<(Arc<Dictionary>, Unpacker)>> = const { RefCell::new(None) };
}

/// Unpacks `stored` into exactly `plain_len` bytes. Memory is taken as bytes come out, not as lengths promise; none is kept beyond them, for
/// the cache charges a block by its length.
pub(crate) fn decompress(
    codec: Compression,
    dictionary: Option<&Arc<Dictionary>>,
    stored: &[u8],
    plain_len: usize,
) -> Decoded<Vec<u8>> {
    let mut plain = match codec {
        Compression::None => stored.to_vec(),
        Compression::Gz if plain_len == 0 => Vec::new(),
        Compression::Gz => read_stream(flate2::read::GzDecoder::new(stored), stored.len(), plain_len, "gzip")?,
        Compression::Zstd if stored.starts_with(&ZSTD_MAGIC) => unpack_zstd(dictionary, stored, plain_len)?,
        Compression::Zstd => block_framed(stored, plain_len, |part, out, limit| {
            out.extend_from_slice(&unpack_zstd(dictionary, part, limit)?);
            Ok(())
        })?,
        Compression::Snappy => block_framed(stored, plain_len, unpack_snappy_part)?,
        Compression::Lz4 => block_framed(stored, plain_len, unpack_lz4_part)?,
        Compression::Bzip2 if plain_len == 0 => Vec::new(),
        Compression::Bzip2 => {
            let mut out = Vec::with_capacity(room(stored.len(), plain_len));
            rare::Codec::Bzip2.unpack(stored, plain_len, &mut out)?;
            out
        }
        Compression::Lzma => {
            block_framed(stored, plain_len, |part, out, limit| unpack_rare(rare::Codec::Lzma, part, out, limit))?
        }
        Compression::Brotli => {
            block_framed(stored, plain_len, |part, out, limit| unpack_rare(rare::Codec::Brotli, part, out, limit))?
        }
        Compression::Lzo => {
            block_framed(stored, plain_len, |part, out, limit| unpack_rare(rare::Codec::Lzo, part, out, limit))?
        }
    };
    if plain.len() != plain_len {
        return Err(format!("unpacks to {} bytes where {plain_len} were announced", plain.len()).into());
    }
    if plain.capacity() - plain.len() > plain.len() / 8 {
        plain.shrink_to_fit();
    }
    Ok(plain)
}

/// Room for what a stream may well come to.
fn room(stored_len: usize, limit: usize) -> usize {
    limit.min(stored_len.saturating_mul(16).max(4096))
}

fn read_stream(stream: impl Read, stored_len: usize, limit: usize, name: &str) -> Decoded<Vec<u8>> {
    let mut out = Vec::with_capacity(room(stored_len, limit));
    stream
        .take(limit as u64 + 1)
        .read_to_end(&mut out)
        .map_err(|e| Damage(format!("does not unpack as {name}: {e}")))?;
    Ok(out)
}

fn unpack_zstd(dictionary: Option<&Arc<Dictionary>>, stored: &[u8], limit: usize) -> Decoded<Vec<u8>> {
    let wrong = |e: std::io::Error| Damage(format!("does not unpack as zstd: {e}"));
    if let Some(number) = zstd::zstd_safe::get_dict_id_from_frame(stored).map(u32::from) {
        check_dictionary(number, dictionary)?;
    }
    // Most frames unpack in one go into a buffer of the announced size; only an improbable ratio goes the slow, safe way.
    if limit > stored.len().saturating_mul(128) {
        let bytes = dictionary.map_or(&[][..], |dictionary| dictionary.bytes());
        let stream = zstd::stream::read::Decoder::with_dictionary(stored, bytes).map_err(wrong)?;
        return read_stream(stream.single_frame(), stored.len(), limit, "zstd");
    }
    match dictionary {
        None => UNPACKER.with_borrow_mut(|unpacker| {
            let unpacker = match unpacker {
                Some(unpacker) => unpacker,
                none => none.insert(Unpacker::new().map_err(wrong)?),
            };
            unpacker.decompress(stored, limit).map_err(wrong)
        }),
        Some(dictionary) => UNPACKER_WITH.with_borrow_mut(|last| {
            let (_, unpacker) = match last {
                Some(known) if Arc::ptr_eq(&known.0, dictionary) => known,
                other => {
                    let unpacker = Unpacker::with_dictionary(dictionary.bytes()).map_err(wrong)?;
                    other.insert((dictionary.clone(), unpacker))
                }
            };
            unpacker.decompress(stored, limit).map_err(wrong)
        }),
    }
}

/// A frame that names its dictionary says nothing with another one, or without.
fn check_dictionary(number: u32, dictionary: Option<&Arc<Dictionary>>) -> Decoded<()> {
    match dictionary {
        Some(dictionary) if dictionary.number() == Some(number) => Ok(()),
        Some(dictionary) => {
            let own = dictionary.number().map_or("one without a number".into(), |own| format!("number {own}"));
            Err(Damage(format!(
                "it was packed with the Zstandard dictionary number {number}, and {} is {own}: name the right one by {DICTIONARY_KEY}",
                dictionary.path()
            )))
        }
        None => Err(Damage(format!(
            "it was packed with the Zstandard dictionary number {number}, and none is named: name it by {DICTIONARY_KEY}, in the family, \
             the table or the site"
        ))),
    }
}

fn unpack_snappy_part(part: &[u8], out: &mut Vec<u8>, limit: usize) -> Decoded<()> {
    let len = snap::raw::decompress_len(part).map_err(|e| Damage(format!("does not unpack as snappy: {e}")))?;
    if len > limit || len > part.len().saturating_mul(SNAPPY_MAX_RATIO) {
        return Err(format!("a snappy part of {} bytes announces {len}", part.len()).into());
    }
    let from = out.len();
    out.resize(from + len, 0);
    snap::raw::Decoder::new()
        .decompress(part, &mut out[from..])
        .map_err(|e| Damage(format!("does not unpack as snappy: {e}")))?;
    Ok(())
}

fn unpack_lz4_part(part: &[u8], out: &mut Vec<u8>, limit: usize) -> Decoded<()> {
    let from = out.len();
    // One byte of LZ4 can stand for 255.
    out.resize(from + limit.min(part.len().saturating_mul(256)), 0);
    let len = lz4_flex::block::decompress_into(part, &mut out[from..])
        .map_err(|e| Damage(format!("does not unpack as LZ4: {e}")))?;
    out.truncate(from + len);
    Ok(())
}

fn unpack_rare(codec: rare::Codec, part: &[u8], out: &mut Vec<u8>, limit: usize) -> Decoded<()> {
    Ok(codec.unpack(part, limit, out)?)
}

fn block_framed(
    stored: &[u8],
    plain_len: usize,
    part: impl Fn(&[u8], &mut Vec<u8>, usize) -> Decoded<()>,
) -> Decoded<Vec<u8>> {
    let mut at = Cursor::new(stored);
    // As much as Snappy can make of the bytes, so that a block of it never grows on the way.
    let mut out = Vec::with_capacity(plain_len.min(stored.len().saturating_mul(SNAPPY_MAX_RATIO)));
    while out.len() < plain_len {
        let raw_len = at.u32()? as usize;
        let end = out.len().checked_add(raw_len).filter(|end| *end <= plain_len && raw_len > 0);
        let end = end.ok_or_else(|| format!("a compressed run of {raw_len} bytes does not fit the block"))?;
        while out.len() < end {
            let packed_len = at.u32()? as usize;
            let before = out.len();
            let room = end - before;
            part(at.take(packed_len)?, &mut out, room)?;
            if out.len() == before || out.len() > end {
                return Err("a compressed part unpacks to too few or too many bytes".into());
            }
        }
    }
    Ok(out)
}

/// Packs payloads; keeps its working memory.
pub(crate) struct Compressor {
    codec: Compression,
    snappy: snap::raw::Encoder,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    zstd_level: i32,
    dictionary: Option<Arc<Dictionary>>,
    scratch: Vec<u8>,
}

impl Compressor {
    /// Packs Zstandard as HBase's bundled codec does if it is given a dictionary, which is the only one that knows of any.
    pub fn new(codec: Compression, zstd_level: i32, dictionary: Option<Arc<Dictionary>>) -> Compressor {
        let snappy = snap::raw::Encoder::new();
        Compressor { codec, snappy, zstd: None, zstd_level, dictionary, scratch: Vec::new() }
    }

    /// Which codec it packs with.
    pub fn codec(&self) -> Compression {
        self.codec
    }

    /// Whether the packed form is the plain one.
    pub fn copies(&self) -> bool {
        self.codec == Compression::None
    }

    /// Appends the packed form of `plain` to `out`.
    ///
    /// # Panics
    /// When an encoder that writes to memory fails, which none does.
    pub fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        match self.codec {
            Compression::None => out.extend_from_slice(plain),
            Compression::Gz => {
                let mut gz =
                    flate2::GzBuilder::new().operating_system(0).write(&mut *out, flate2::Compression::default());
                gz.write_all(plain).and_then(|()| gz.finish().map(drop)).expect("memory takes every write");
            }
            Compression::Zstd => {
                let bytes = self.dictionary.as_ref().map_or(&[][..], |dictionary| dictionary.bytes());
                let make = || zstd::bulk::Compressor::with_dictionary(self.zstd_level, bytes).expect("memory for zstd");
                let zstd = self.zstd.get_or_insert_with(make);
                if self.dictionary.is_none() {
                    out.extend_from_slice(&zstd.compress(plain).expect("zstd packs any bytes"));
                    return;
                }
                write_block_framed(plain, BUFFER_LEN - BUFFER_LEN / 256, out, |part, out| {
                    let packed = zstd.compress(part).expect("zstd packs any bytes");
                    out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
                    out.extend_from_slice(&packed);
                });
            }
            Compression::Snappy => {
                let (snappy, scratch) = (&mut self.snappy, &mut self.scratch);
                write_block_framed(plain, BUFFER_LEN - (BUFFER_LEN / 6 + 32), out, |part, out| {
                    scratch.resize(snap::raw::max_compress_len(part.len()), 0);
                    let len = snappy.compress(part, scratch).expect("snappy packs parts under 4 GiB");
                    out.extend_from_slice(&(len as u32).to_be_bytes());
                    out.extend_from_slice(&scratch[..len]);
                });
            }
            Compression::Lz4 => {
                let scratch = &mut self.scratch;
                write_block_framed(plain, BUFFER_LEN - (BUFFER_LEN / 255 + 16), out, |part, out| {
                    scratch.resize(lz4_flex::block::get_maximum_output_size(part.len()), 0);
                    let len =
                        lz4_flex::block::compress_into(part, scratch).expect("the buffer has room for the worst case");
                    out.extend_from_slice(&(len as u32).to_be_bytes());
                    out.extend_from_slice(&scratch[..len]);
                });
            }
            Compression::Bzip2 => rare::Codec::Bzip2.pack(plain, out),
            Compression::Lzma => write_rare(rare::Codec::Lzma, plain, out),
            Compression::Brotli => write_rare(rare::Codec::Brotli, plain, out),
            Compression::Lzo => write_rare(rare::Codec::Lzo, plain, out),
        }
    }
}

fn write_rare(codec: rare::Codec, plain: &[u8], out: &mut Vec<u8>) {
    write_block_framed(plain, codec.max_part(), out, |part, out| {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        codec.pack(part, out);
        let len = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    });
}

/// Hadoop's `BlockCompressorStream` given all of `plain` in one write.
fn write_block_framed(plain: &[u8], max_part: usize, out: &mut Vec<u8>, mut part: impl FnMut(&[u8], &mut Vec<u8>)) {
    out.extend_from_slice(&(plain.len() as u32).to_be_bytes());
    plain.chunks(max_part).for_each(|chunk| part(chunk, out));
    if plain.len() > max_part {
        // Finishing the stream announces one more, empty run.
        out.extend_from_slice(&0u32.to_be_bytes());
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
