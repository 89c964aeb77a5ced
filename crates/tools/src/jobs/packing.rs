//! Hadoop's codecs, as streams of unknown length: what SequenceFiles are compressed with. Follows: `DefaultCodec`, `GzipCodec`, `BZip2Codec`,
//! `SnappyCodec`, `Lz4Codec`, `ZStandardCodec`, `BlockCompressorStream`.

use std::io::{Read, Write};

use anyhow::{Context, bail};

/// Plain bytes of a part of the block framing: less than Hadoop's decoders have room for.
const PART_BYTES: usize = 64 << 10;
/// One byte of LZ4 stands for at most so many.
const LZ4_MAX_RATIO: usize = 255;
const PACKAGE: &str = "org.apache.hadoop.io.compress.";

/// A codec of Hadoop's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// A zlib stream.
    Default,
    /// A gzip member, or several.
    Gzip,
    /// A `.bz2` stream.
    Bzip2,
    /// Snappy in the block framing.
    Snappy,
    /// LZ4 in the block framing.
    Lz4,
    /// A Zstandard frame.
    Zstd,
}

impl Codec {
    const ALL: [Codec; 6] = [Codec::Default, Codec::Gzip, Codec::Bzip2, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    fn simple_name(self) -> &'static str {
        match self {
            Codec::Default => "DefaultCodec",
            Codec::Gzip => "GzipCodec",
            Codec::Bzip2 => "BZip2Codec",
            Codec::Snappy => "SnappyCodec",
            Codec::Lz4 => "Lz4Codec",
            Codec::Zstd => "ZStandardCodec",
        }
    }

    /// Hadoop's class.
    pub fn class(self) -> String {
        format!("{PACKAGE}{}", self.simple_name())
    }

    /// A codec by Hadoop's class, with its package or without.
    ///
    /// # Errors
    /// It is none of those that are here.
    pub fn parse(class: &str) -> anyhow::Result<Codec> {
        let simple = class.trim().strip_prefix(PACKAGE).unwrap_or(class.trim());
        let known = || Codec::ALL.map(Codec::simple_name).join(", ");
        let found = Codec::ALL.into_iter().find(|codec| codec.simple_name() == simple);
        found.with_context(|| format!("{class} is no codec that is here; there are {}", known()))
    }

    /// Packs all of `plain`.
    pub fn pack(self, plain: &[u8]) -> anyhow::Result<Vec<u8>> {
        use flate2::Compression;
        Ok(match self {
            Codec::Default => {
                let mut out = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
                out.write_all(plain)?;
                out.finish()?
            }
            Codec::Gzip => {
                let mut out = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
                out.write_all(plain)?;
                out.finish()?
            }
            Codec::Bzip2 => {
                let mut out = Vec::new();
                compression::Codec::Bzip2.pack(plain, &mut out);
                out
            }
            Codec::Zstd => zstd::bulk::compress(plain, zstd::DEFAULT_COMPRESSION_LEVEL)?,
            Codec::Snappy => {
                let mut encoder = snap::raw::Encoder::new();
                framed(plain, |part| Ok(encoder.compress_vec(part)?))?
            }
            Codec::Lz4 => framed(plain, |part| Ok(lz4_flex::block::compress(part)))?,
        })
    }

    /// Unpacks all of `packed`. Memory is taken as bytes come out.
    ///
    /// # Errors
    /// It is damaged, or has more than `limit` bytes.
    pub fn unpack(self, packed: &[u8], limit: usize) -> anyhow::Result<Vec<u8>> {
        match self {
            Codec::Default => read(flate2::read::ZlibDecoder::new(packed), limit),
            Codec::Gzip => read(flate2::read::MultiGzDecoder::new(packed), limit),
            Codec::Zstd => read(zstd::stream::read::Decoder::new(packed)?, limit),
            Codec::Bzip2 => {
                let mut out = Vec::new();
                // It stops at its limit, and does not say so.
                compression::Codec::Bzip2.unpack(packed, limit + 1, &mut out).map_err(anyhow::Error::msg)?;
                within(out, limit)
            }
            Codec::Snappy => unframed(packed, limit, |part, left, out| {
                let len = snap::raw::decompress_len(part)?;
                if len > left {
                    bail!("a part unpacks to {len} bytes where {left} are left");
                }
                let plain = snap::raw::Decoder::new().decompress_vec(part)?;
                out.extend_from_slice(&plain);
                Ok(plain.len())
            }),
            Codec::Lz4 => unframed(packed, limit, |part, left, out| {
                let begin = out.len();
                out.resize(begin + left.min(part.len().saturating_mul(LZ4_MAX_RATIO)), 0);
                let len = lz4_flex::block::decompress_into(part, &mut out[begin..])?;
                out.truncate(begin + len);
                Ok(len)
            }),
        }
    }
}

/// All that a stream brings.
fn read(stream: impl Read, limit: usize) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    stream.take(limit as u64 + 1).read_to_end(&mut out)?;
    within(out, limit)
}

fn within(out: Vec<u8>, limit: usize) -> anyhow::Result<Vec<u8>> {
    if out.len() > limit {
        bail!("it unpacks to more than {limit} bytes");
    }
    Ok(out)
}

/// `rawLen(4) packedLen(4) packed` for each part.
fn framed(plain: &[u8], mut pack: impl FnMut(&[u8]) -> anyhow::Result<Vec<u8>>) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    for part in plain.chunks(PART_BYTES) {
        let packed = pack(part)?;
        out.extend_from_slice(&(part.len() as u32).to_be_bytes());
        out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
        out.extend_from_slice(&packed);
    }
    if plain.is_empty() {
        out.extend_from_slice(&0_u32.to_be_bytes());
    }
    Ok(out)
}

/// A length, and what is behind it.
fn length(bytes: &[u8]) -> anyhow::Result<(usize, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>().context("it ends in the middle of a length")?;
    Ok((u32::from_be_bytes(*len) as usize, rest))
}

/// `rawLen(4) { packedLen(4) packed }*`, again and again. `unpack` is given a part and how many bytes it may bring, and answers how many it brought.
fn unframed(
    mut packed: &[u8],
    limit: usize,
    mut unpack: impl FnMut(&[u8], usize, &mut Vec<u8>) -> anyhow::Result<usize>,
) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    while !packed.is_empty() {
        let (mut left, rest) = length(packed)?;
        packed = rest;
        if left > limit - out.len() {
            bail!("it unpacks to more than {limit} bytes");
        }
        while left > 0 {
            let (len, rest) = length(packed)?;
            let (part, rest) = rest.split_at_checked(len).context("it ends in the middle of a part")?;
            packed = rest;
            let brought = unpack(part, left, &mut out)?;
            if brought == 0 {
                bail!("a part is empty where {left} bytes are left");
            }
            left -= brought;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_its_limit_is_held() {
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        for codec in Codec::ALL {
            assert_eq!(Codec::parse(&codec.class()).expect("known"), codec);
            for plain in [&plain[..], &plain[..1], &[]] {
                let packed = codec.pack(plain).expect("packed");
                assert_eq!(codec.unpack(&packed, plain.len()).expect("whole"), plain, "{codec:?}");
                if !plain.is_empty() {
                    assert!(codec.unpack(&packed, plain.len() - 1).is_err(), "{codec:?}: more than its limit");
                }
            }
        }
        assert!(Codec::parse("org.example.Codec").expect_err("unknown").to_string().contains("GzipCodec"));
    }

    #[test]
    fn damage_is_an_error_or_other_bytes_and_never_a_panic() {
        let plain: Vec<u8> = (0..3_000_u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        for codec in Codec::ALL {
            let packed = codec.pack(&plain).expect("packed");
            for at in 0..packed.len().min(2_000) {
                let mut damaged = packed.clone();
                damaged[at] ^= 0x55;
                let _ = codec.unpack(&damaged, 1 << 20);
                let _ = codec.unpack(&packed[..at], 1 << 20);
            }
        }
    }
}
