//! Cells of compressed logs: dictionaries for the parts of the key and for tags, a codec for values. Reading only; Basalt
//! writes plain logs. Follows `CompressedKvDecoder`, `CompressionContext`, `TagCompressionContext`.

use crate::dictionary::Dictionary;
use crate::source::{Fault, Source, bad};
use bytes::Bytes;
use cell::CellSpec;
use compression::Codec;
use std::io::Read;

/// First byte of a word that is not in the dictionary.
const NEW_WORD: u8 = 0xFF;
/// Longest value that is believed.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// How values are packed (`Compression.Algorithm`, by ordinal).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueCodec {
    Gz,
    None,
    Snappy,
    Lz4,
    Zstd,
    /// BZIP2, LZMA, BROTLI or LZO.
    Rare(Codec),
}

impl ValueCodec {
    pub(crate) fn from_ordinal(ordinal: u32) -> Result<ValueCodec, String> {
        Ok(match ordinal {
            1 => ValueCodec::Gz,
            2 => ValueCodec::None,
            3 => ValueCodec::Snappy,
            4 => ValueCodec::Lz4,
            6 => ValueCodec::Zstd,
            0 => ValueCodec::Rare(Codec::Lzo),
            5 => ValueCodec::Rare(Codec::Bzip2),
            7 => ValueCodec::Rare(Codec::Lzma),
            8 => ValueCodec::Rare(Codec::Brotli),
            _ => return Err(format!("its values are compressed with algorithm number {ordinal}")),
        })
    }
}

/// What a reader of a compressed file remembers.
pub(crate) struct Compression {
    region: Dictionary,
    table: Dictionary,
    row: Dictionary,
    family: Dictionary,
    qualifier: Dictionary,
    tag: Option<Dictionary>,
    values: Option<ValueCodec>,
    scratch: Vec<u8>,
}

impl Compression {
    pub(crate) fn new(recovered_edits: bool, tags: bool, values: Option<ValueCodec>) -> Compression {
        // A recovered edits file belongs to one region.
        let names = if recovered_edits { 1 } else { 32767 };
        Compression {
            region: Dictionary::new(names),
            table: Dictionary::new(names),
            row: Dictionary::new(32767),
            family: Dictionary::new(127),
            qualifier: Dictionary::new(127),
            tag: tags.then(|| Dictionary::new(32767)),
            values,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn region(&mut self, packed: &[u8]) -> Result<Bytes, Fault> {
        word_of_field(packed, &mut self.region)
    }

    pub(crate) fn table(&mut self, packed: &[u8]) -> Result<Bytes, Fault> {
        word_of_field(packed, &mut self.table)
    }

    pub(crate) fn family(&mut self, packed: &[u8]) -> Result<Bytes, Fault> {
        word_of_field(packed, &mut self.family)
    }

    /// Reads a cell and appends it to `out` in cell-block layout.
    pub(crate) fn cell(&mut self, source: &mut Source, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (key_len, value_len, tags_len) = (source.len_varint()?, source.len_varint()?, source.len_varint()?);
        if value_len > MAX_VALUE_BYTES || tags_len > usize::from(u16::MAX) {
            return bad(format!("a value of {value_len} bytes with tags of {tags_len} bytes"));
        }
        let row = word(source, &mut self.row)?;
        let family = word(source, &mut self.family)?;
        let qualifier = word(source, &mut self.qualifier)?;
        if row.len() > cell::MAX_ROW_LENGTH || family.len() > cell::MAX_FAMILY_LENGTH {
            return bad(format!("a row of {} bytes in a family name of {} bytes", row.len(), family.len()));
        }
        if key_len != cell::key::KEY_OVERHEAD + row.len() + family.len() + qualifier.len() {
            return bad(format!("a key length of {key_len} that its parts do not have"));
        }
        let timestamp = i64::from_be_bytes(source.take(8)?.try_into().unwrap_or_default());
        let type_code = source.byte()?;
        let value = match self.values {
            None => source.take(value_len)?.to_vec(),
            Some(codec) => {
                let packed_len = source.len_varint()?;
                unpack(codec, source.take(packed_len)?, value_len)?
            }
        };
        self.tags(source, tags_len)?;
        let spec = CellSpec {
            row: &row,
            family: &family,
            qualifier: &qualifier,
            timestamp,
            type_code,
            value: &value,
            tags: &self.scratch,
        };
        out.extend_from_slice(&(spec.encoded_len() as u32).to_be_bytes());
        spec.write(out);
        Ok(())
    }

    /// Reads `len` bytes of tags into `scratch`.
    fn tags(&mut self, source: &mut Source, len: usize) -> Result<(), Fault> {
        self.scratch.clear();
        let Some(dictionary) = &mut self.tag else {
            self.scratch.extend_from_slice(source.take(len)?);
            return Ok(());
        };
        while self.scratch.len() < len {
            let tag = word(source, dictionary)?;
            let tag_len = u16::try_from(tag.len()).map_err(|_| Fault::Bad(format!("a tag of {} bytes", tag.len())))?;
            self.scratch.extend_from_slice(&tag_len.to_be_bytes());
            self.scratch.extend_from_slice(&tag);
        }
        if self.scratch.len() > len { bad(format!("tags of more than {len} bytes")) } else { Ok(()) }
    }
}

/// A word: `FF length bytes`, which adds it, or an index of two bytes.
fn word(source: &mut Source, dictionary: &mut Dictionary) -> Result<Bytes, Fault> {
    let first = source.byte()?;
    if first == NEW_WORD {
        let len = source.len_varint()?;
        let word = Bytes::copy_from_slice(source.take(len)?);
        dictionary.add(word.clone());
        return Ok(word);
    }
    let index = u16::from_be_bytes([first, source.byte()?]);
    dictionary.get(index).ok_or_else(|| Fault::Bad(format!("an entry {index} that the dictionary does not have")))
}

/// The same within a field of the key.
fn word_of_field(packed: &[u8], dictionary: &mut Dictionary) -> Result<Bytes, Fault> {
    let wrong = || Fault::Bad("a field of the key is not a word of a dictionary".to_owned());
    let (first, rest) = packed.split_first().ok_or_else(wrong)?;
    if *first == NEW_WORD {
        let (len, n) = crate::key::get_varint(rest).ok_or_else(wrong)?;
        let bytes = rest.get(n..).filter(|bytes| bytes.len() as u64 == len).ok_or_else(wrong)?;
        let word = Bytes::copy_from_slice(bytes);
        dictionary.add(word.clone());
        return Ok(word);
    }
    let [second] = rest else { return Err(wrong()) };
    let index = u16::from_be_bytes([*first, *second]);
    dictionary.get(index).ok_or_else(|| Fault::Bad(format!("an entry {index} that the dictionary does not have")))
}

/// Bytes that one byte of the codec's block can stand for at most: a copy of 64 takes three, a length grows by 255 with each. What a damaged
/// log claims beyond that takes no memory.
const SNAPPY_MOST: usize = 22;
const LZ4_MOST: usize = 255;

fn unpack(codec: ValueCodec, packed: &[u8], len: usize) -> Result<Vec<u8>, Fault> {
    if len == 0 {
        // The codec wrote its frame all the same.
        return Ok(Vec::new());
    }
    let wrong = |e: &dyn std::fmt::Display| Fault::Bad(format!("a value that {codec:?} cannot unpack: {e}"));
    let fail = || Fault::Bad(format!("a value that {codec:?} unpacks to another length than {len}"));
    match codec {
        ValueCodec::None => packed.get(..len).map(<[u8]>::to_vec).ok_or_else(fail),
        ValueCodec::Gz => read_exactly(flate2::bufread::MultiGzDecoder::new(packed), len).map_err(|e| wrong(&e)),
        ValueCodec::Zstd if packed.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) => {
            read_exactly(zstd::Decoder::with_buffer(packed).map_err(|e| wrong(&e))?, len).map_err(|e| wrong(&e))
        }
        ValueCodec::Rare(stream) if stream.is_stream() => {
            let mut out = Vec::new();
            stream.unpack(packed, len, &mut out).map_err(|e| wrong(&e))?;
            if out.len() == len { Ok(out) } else { Err(fail()) }
        }
        ValueCodec::Snappy | ValueCodec::Lz4 | ValueCodec::Zstd | ValueCodec::Rare(_) => {
            blocks(packed, len, |block, out| unpack_block(codec, block, len, out)).ok_or_else(fail)
        }
    }
}

/// Adds what one block of a stream holds to `out`, which may come to `len` bytes.
fn unpack_block(codec: ValueCodec, block: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let left = len - start;
    match codec {
        ValueCodec::Snappy => {
            let raw_len = snap::raw::decompress_len(block).ok()?;
            if raw_len > left.min(block.len().saturating_mul(SNAPPY_MOST)) {
                return None;
            }
            out.resize(start + raw_len, 0);
            snap::raw::Decoder::new().decompress(block, &mut out[start..]).ok().map(|_| ())
        }
        ValueCodec::Lz4 => {
            out.resize(start + left.min(block.len().saturating_mul(LZ4_MOST)), 0);
            let n = lz4_flex::block::decompress_into(block, &mut out[start..]).ok()?;
            out.truncate(start + n);
            Some(())
        }
        ValueCodec::Zstd => {
            let part = read_to_end(zstd::Decoder::with_buffer(block).ok()?, left).ok()?;
            out.extend_from_slice(&part);
            Some(())
        }
        ValueCodec::Rare(codec) => codec.unpack(block, left, out).ok().filter(|()| out.len() <= len),
        ValueCodec::None | ValueCodec::Gz => None,
    }
}

fn read_exactly(mut from: impl Read, len: usize) -> std::io::Result<Vec<u8>> {
    let out = read_to_end(&mut from, len)?;
    if out.len() == len { Ok(out) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

fn read_to_end(from: impl Read, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    from.take(limit as u64).read_to_end(&mut out)?;
    Ok(out)
}

/// Hadoop's block stream: `rawLen(4)`, then `packedLen(4) packed` until that many raw bytes are out, and again. Values
/// larger than the codec's buffer leave `rawLen` 0 at the end.
fn blocks(mut packed: &[u8], len: usize, mut block: impl FnMut(&[u8], &mut Vec<u8>) -> Option<()>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(len.min(packed.len().saturating_mul(8)));
    while out.len() < len {
        let (raw_len, rest) = packed.split_first_chunk::<4>()?;
        packed = rest;
        let end = out.len().checked_add(u32::from_be_bytes(*raw_len) as usize).filter(|end| *end <= len)?;
        while out.len() < end {
            let (packed_len, rest) = packed.split_first_chunk::<4>()?;
            let (bytes, rest) = rest.split_at_checked(u32::from_be_bytes(*packed_len) as usize)?;
            let before = out.len();
            block(bytes, &mut out)?;
            if out.len() == before {
                return None;
            }
            packed = rest;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One block of Hadoop's stream.
    fn stream(raw_len: usize, block: &[u8]) -> Vec<u8> {
        [&(raw_len as u32).to_be_bytes()[..], &(block.len() as u32).to_be_bytes(), block].concat()
    }

    #[test]
    fn what_packs_best_unpacks_and_no_block_stands_for_more() {
        let zeros = vec![0; 3 << 20];
        let packed: [(ValueCodec, Vec<u8>); 2] = [
            (ValueCodec::Lz4, lz4_flex::block::compress(&zeros)),
            (ValueCodec::Snappy, snap::raw::Encoder::new().compress_vec(&zeros).expect("packed")),
        ];
        for (codec, block) in packed {
            let out = unpack(codec, &stream(zeros.len(), &block), zeros.len());
            assert!(out.is_ok_and(|out| out == zeros), "{codec:?}");
            // A length that no such block can have: refused before there is memory for it.
            let claimed = 300 << 20;
            let mut grown = 0;
            let result = blocks(&stream(claimed, &block[..20]), claimed, |block, out| {
                let result = unpack_block(codec, block, claimed, out);
                grown = out.capacity();
                result
            });
            assert!(result.is_none() && grown < 1 << 20, "{codec:?}: {grown} bytes");
        }
    }
}
