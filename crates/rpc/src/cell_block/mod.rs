//! Cell blocks on the wire: the codec that a connection asked for, and the compression around it.
//!
//! Inside the server a run of cells has one layout, `len(4) KeyValue` with tags ([`CellBlock`]); two of the codecs are
//! that layout, so most requests and replies are passed on without a copy. Every cell from outside is checked here.
//!
//! Follows `CellBlockBuilder`, `KeyValueCodec`, `KeyValueCodecWithTags`, `CellCodec`, `CellCodecWithTags`.

mod compress;

use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellError, CellIter, CellRuns, CellSpec};

pub use compress::Compressor;

/// Cells or compressed bytes that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CellBlockError {
    /// A cell is damaged or not legal.
    #[error("malformed cell block: {0}")]
    Cell(#[from] CellError),
    /// The cell block ends inside a cell.
    #[error("the cell block is cut short inside cell number {cell_number}")]
    Truncated {
        /// Which cell, from 0.
        cell_number: usize,
    },
    /// The compressed bytes are damaged.
    #[error("the cell block cannot be decompressed as {codec}: {what}")]
    Compressed {
        /// Codec class.
        codec: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The cell block grows too large.
    #[error("the cell block is larger than {limit} bytes when decompressed")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
}

/// How the cells of a connection are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellCodec {
    /// Length and KeyValue, tags dropped. What clients ask for by default.
    KeyValue,
    /// Length and KeyValue with its tags.
    KeyValueWithTags,
    /// Each field with a length of its own, and the sequence id.
    Cell,
    /// As [`CellCodec::Cell`], with tags.
    CellWithTags,
}

impl CellCodec {
    const CLASSES: [(Self, &'static str); 4] = [
        (Self::KeyValue, "org.apache.hadoop.hbase.codec.KeyValueCodec"),
        (Self::KeyValueWithTags, "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"),
        (Self::Cell, "org.apache.hadoop.hbase.codec.CellCodec"),
        (Self::CellWithTags, "org.apache.hadoop.hbase.codec.CellCodecWithTags"),
    ];

    /// The codec of that Java class.
    pub fn from_class(class: &str) -> Option<Self> {
        Self::CLASSES.iter().find(|(_, name)| *name == class).map(|(codec, _)| *codec)
    }

    /// The Java class.
    pub fn class(self) -> &'static str {
        Self::CLASSES[self as usize].1
    }

    /// Whether tags survive.
    pub fn carries_tags(self) -> bool {
        matches!(self, Self::KeyValueWithTags | Self::CellWithTags)
    }

    /// Reads and checks foreign cells.
    ///
    /// # Errors
    /// The first cell that is not whole or not legal.
    pub fn decode(self, bytes: Bytes) -> Result<CellBlock, CellBlockError> {
        match self {
            Self::KeyValueWithTags => Ok(CellBlock::parse(bytes)?),
            Self::KeyValue => {
                let block = CellBlock::parse(bytes)?;
                // A peer that slips tags into a codec without tags could forge visibility; HBase drops them too.
                if block.iter().all(|c| c.tags().is_empty()) {
                    return Ok(block);
                }
                Ok(CellBlock::parse(strip_tags(block.bytes()))?)
            }
            Self::Cell | Self::CellWithTags => decode_fields(&bytes, self.carries_tags()),
        }
    }

    /// As [`CellCodec::decode`], in consecutive runs of so many cells; the rest is checked and left out. `None` when there are fewer.
    ///
    /// # Errors
    /// As [`CellCodec::decode`].
    pub fn decode_runs(self, bytes: Bytes, counts: &[u32]) -> Result<Option<CellRuns>, CellBlockError> {
        if matches!(self, Self::KeyValue | Self::KeyValueWithTags) {
            match CellBlock::parse_into(&bytes, counts)? {
                // Tags are to be dropped.
                Some((_, true)) if self == Self::KeyValue => {}
                runs => return Ok(runs.map(|(runs, _)| runs)),
            }
        }
        Ok(self.decode(bytes)?.split_into(counts))
    }

    /// Writes checked cells in this codec's layout; a copy is made only if they are not in it already.
    /// `may_have_tags` says whether it is worth looking for tags to drop.
    pub fn encode(self, cells: Bytes, may_have_tags: bool) -> Bytes {
        match self {
            Self::KeyValueWithTags => cells,
            Self::KeyValue if may_have_tags => strip_tags(&cells),
            Self::KeyValue => cells,
            Self::Cell | Self::CellWithTags => encode_fields(&cells, self.carries_tags()),
        }
    }
}

/// Checked cells without their tags.
fn strip_tags(cells: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(cells.len());
    for cell in CellIter::over_checked(cells, base::SeqId(0)) {
        let tags = cell.tags();
        let kv = cell.bytes();
        let kv = if tags.is_empty() { kv } else { &kv[..kv.len() - 2 - tags.len()] };
        out.extend_from_slice(&(kv.len() as u32).to_be_bytes());
        out.extend_from_slice(kv);
    }
    Bytes::from(out)
}

fn encode_fields(cells: &[u8], with_tags: bool) -> Bytes {
    let mut out = Vec::with_capacity(cells.len() + cells.len() / 4);
    let field = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    for cell in CellIter::over_checked(cells, base::SeqId(0)) {
        field(&mut out, cell.row());
        field(&mut out, cell.family());
        field(&mut out, cell.qualifier());
        out.extend_from_slice(&cell.timestamp().to_be_bytes());
        out.push(cell.type_code());
        field(&mut out, cell.value());
        if with_tags {
            field(&mut out, cell.tags());
        }
        out.extend_from_slice(&cell.seq_id().0.to_be_bytes());
    }
    Bytes::from(out)
}

fn decode_fields(bytes: &[u8], with_tags: bool) -> Result<CellBlock, CellBlockError> {
    fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (bytes, after) = after.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        *rest = after;
        Some(bytes)
    }
    fn spec<'a>(rest: &mut &'a [u8], with_tags: bool) -> Option<CellSpec<'a>> {
        let (row, family, qualifier) = (field(rest)?, field(rest)?, field(rest)?);
        let (timestamp, after) = rest.split_first_chunk::<8>()?;
        let (type_code, after) = after.split_first()?;
        *rest = after;
        let value = field(rest)?;
        let tags = if with_tags { field(rest)? } else { &[] };
        let (_, after) = rest.split_first_chunk::<8>()?;
        *rest = after;
        let (timestamp, type_code) = (i64::from_be_bytes(*timestamp), *type_code);
        Some(CellSpec { row, family, qualifier, timestamp, type_code, value, tags })
    }
    let mut rest = bytes;
    let mut out = CellBuffer::new();
    while !rest.is_empty() {
        let spec = spec(&mut rest, with_tags).ok_or(CellBlockError::Truncated { cell_number: out.len() })?;
        spec.check_lengths()?;
        out.push_spec(&spec, base::SeqId(0));
    }
    // The lengths agree now; type, timestamp and tags are judged as in every other codec.
    Ok(CellBlock::parse(Bytes::from(out.into_bytes()))?)
}

#[cfg(test)]
mod tests;
