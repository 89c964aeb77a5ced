//! Opening a file: trailer, and the blocks a reader keeps in memory.

use crate::Dictionary;
use crate::block::{self, BlockType, Header};
use crate::bloom::Bloom;
use crate::cursor::{Cursor, Damage, Decoded};
use crate::encoding::Tail;
use crate::file_info::{self, FileInfo, key};
use crate::index::{self, IndexBlock, MidKey};
use crate::trailer::{self, Trailer, TrailerError};
use crate::{BloomType, Compression, Encoding, Error, Result};
use bytes::Bytes;
use fs::{FilePath, ReadAt};
use std::sync::Arc;

/// The first read of a file takes this much of its end: with a root index of usual size, the only one.
const TAIL_READ: u64 = 16 * 1024;
/// More than this is not believed to be load-on-open data.
const LOAD_ON_OPEN_MAX: u64 = 1 << 30;

/// `HFileIndexBlockEncoderImpl#encode` writes nothing.
const NO_INDEX: &str = " (of which HBase 2.6 has the name alone: this index has no entries)";

/// What is kept of a file.
pub(crate) struct Opened {
    pub len: u64,
    pub trailer: Trailer,
    pub compression: Compression,
    pub encoding: Encoding,
    pub tail: Tail,
    pub root: IndexBlock,
    pub mid_key: Option<MidKey>,
    pub meta_index: IndexBlock,
    pub info: FileInfo,
    pub bloom_type: BloomType,
    pub bloom: Option<Bloom>,
    pub delete_bloom: Option<Bloom>,
    /// Bytes of a ROWPREFIX filter's prefix.
    pub prefix_len: usize,
}

/// Reads trailer and load-on-open blocks.
pub(crate) fn open(file: &dyn ReadAt, path: &FilePath, dictionary: Option<&Arc<Dictionary>>) -> Result<Opened> {
    let len = file.len()?;
    let tail_start = len.saturating_sub(TAIL_READ);
    let mut tail = vec![0; (len - tail_start) as usize];
    file.read_exact_at(&mut tail, tail_start)?;
    let corrupt = |offset: u64, damage: Damage| Error::corrupt(path, offset, damage.0);
    let trailer = Trailer::parse(&tail).map_err(|e| match e {
        TrailerError::Damage(damage) => corrupt(len.saturating_sub(trailer::TRAILER_LEN as u64), damage),
        TrailerError::Unsupported(feature) => Error::Unsupported { path: path.clone(), feature },
    })?;
    if trailer.encrypted {
        return Err(Error::Unsupported { path: path.clone(), feature: "encryption (AES)".into() });
    }
    let Some(compression) = Compression::from_code(trailer.codec) else {
        let feature = format!("the codec {}", trailer::codec_name(trailer.codec));
        return Err(Error::Unsupported { path: path.clone(), feature });
    };
    let trailer_start = len - trailer.len as u64;
    let start = trailer.load_on_open_offset;
    if start >= trailer_start || trailer_start - start > LOAD_ON_OPEN_MAX {
        let what = format!("the trailer's load-on-open offset {start} is not within the file");
        return Err(corrupt(trailer_start, Damage(what)));
    }
    let section = if start >= tail_start {
        tail.truncate((trailer_start - tail_start) as usize);
        Bytes::from(tail).slice((start - tail_start) as usize..)
    } else {
        let mut section = vec![0; (trailer_start - start) as usize];
        file.read_exact_at(&mut section, start)?;
        Bytes::from(section)
    };
    let blocks =
        split_section(&section, start, compression, dictionary).map_err(|(offset, damage)| corrupt(offset, damage))?;
    if let Some(encoding) = index_encoding(&blocks) {
        let why = if encoding == "PREFIX_TREE" { NO_INDEX } else { "" };
        let feature = format!("the index block encoding {encoding}{why}");
        return Err(Error::Unsupported { path: path.clone(), feature });
    }
    assemble(len, trailer, compression, &blocks).map_err(|(offset, damage)| corrupt(offset, damage))
}

type At<T> = std::result::Result<T, (u64, Damage)>;

struct LoadedBlock {
    offset: u64,
    block_type: BlockType,
    payload: Bytes,
}

/// The blocks of the load-on-open section, which they fill exactly.
fn split_section(
    section: &Bytes,
    start: u64,
    compression: Compression,
    dictionary: Option<&Arc<Dictionary>>,
) -> At<Vec<LoadedBlock>> {
    let mut blocks = Vec::with_capacity(5);
    let mut at = 0;
    while at < section.len() {
        let offset = start + at as u64;
        let here = |damage| (offset, damage);
        let total = Header::parse(&section[at..]).map_err(here)?.total_len;
        let raw = (section.len() - at >= total).then(|| section.slice(at..at + total));
        let raw = raw.ok_or_else(|| here("the block runs into the trailer".into()))?;
        let (block_type, payload) = block::unpack(raw, compression, dictionary).map_err(here)?;
        blocks.push(LoadedBlock { offset, block_type, payload });
        at += total;
    }
    Ok(blocks)
}

/// How the blocks of the index are encoded, where they are (INDEX_BLOCK_ENCODING of a family): read plainly they would seem damaged. Basalt
/// encodes none, whatever the family says: HBase 2.6 has a single encoding, and nobody who reads it.
fn index_encoding(blocks: &[LoadedBlock]) -> Option<String> {
    let info = blocks.iter().find(|block| block.block_type == BlockType::FileInfo)?;
    let names_it =
        info.payload.windows(key::INDEX_BLOCK_ENCODING.len()).any(|bytes| bytes == key::INDEX_BLOCK_ENCODING);
    let info = if names_it { file_info::parse(&info.payload).ok()? } else { return None };
    let encoding = String::from_utf8_lossy(info.get(key::INDEX_BLOCK_ENCODING)?).into_owned();
    (encoding != "NONE").then_some(encoding)
}

fn assemble(len: u64, trailer: Trailer, compression: Compression, blocks: &[LoadedBlock]) -> At<Opened> {
    let trailer_at = len - trailer.len as u64;
    let [root, meta, info, blooms @ ..] = blocks else {
        return Err((trailer.load_on_open_offset, "root index, meta index and file info are not all there".into()));
    };
    let wanted = [(root, BlockType::RootIndex), (meta, BlockType::RootIndex), (info, BlockType::FileInfo)];
    for (block, block_type) in wanted {
        if block.block_type != block_type {
            return Err((
                block.offset,
                format!("a {:?} block where {block_type:?} should be", block.block_type).into(),
            ));
        }
    }
    if info.offset != trailer.file_info_offset {
        return Err((trailer_at, "the trailer's file info offset is not that of the file info block".into()));
    }
    let (root_index, mid_key) =
        index::parse_data_root(&root.payload, trailer.root_entries as usize, trailer.index_levels, trailer.order)
            .map_err(|d| (root.offset, d))?;
    if (root_index.len() == 0) != (trailer.entry_count == 0) {
        return Err((trailer_at, "the trailer's count of cells and the index disagree".into()));
    }
    let mut meta_at = Cursor::new(&meta.payload);
    let meta_index = IndexBlock::parse_root(&mut meta_at, trailer.meta_entries as usize)
        .and_then(|index| if meta_at.is_empty() { Ok(index) } else { Err("bytes follow the meta index".into()) })
        .map_err(|d| (meta.offset, d))?;
    let facts = file_info::parse(&info.payload)
        .and_then(|info| Facts::read(&info).map(|facts| (info, facts)))
        .map_err(|d| (info.offset, d))?;
    let (info_map, facts) = facts;
    let (mut bloom, mut delete_bloom) = (None, None);
    for block in blooms {
        let here = |d| (block.offset, d);
        match block.block_type {
            BlockType::GeneralBloomMeta => {
                let flat_keys = facts.bloom_type == BloomType::RowCol;
                bloom = Some(Bloom::parse(&block.payload, flat_keys.then_some(trailer.order)).map_err(here)?);
            }
            BlockType::DeleteFamilyBloomMeta => {
                delete_bloom = Some(Bloom::parse(&block.payload, None).map_err(here)?);
            }
            other => return Err(here(format!("a {other:?} block lies after file info").into())),
        }
    }
    Ok(Opened {
        len,
        trailer,
        compression,
        encoding: facts.encoding,
        tail: facts.tail,
        root: root_index,
        mid_key,
        meta_index,
        bloom_type: if bloom.is_some() { facts.bloom_type } else { BloomType::None },
        bloom: bloom.filter(|_| facts.bloom_type != BloomType::None),
        delete_bloom,
        prefix_len: facts.prefix_len,
        info: info_map,
    })
}

/// What file info says of how to read the file.
struct Facts {
    encoding: Encoding,
    tail: Tail,
    bloom_type: BloomType,
    prefix_len: usize,
}

impl Facts {
    fn read(info: &FileInfo) -> Decoded<Facts> {
        let name = |key: &[u8]| info.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let encoding = match name(key::DATA_BLOCK_ENCODING) {
            None => Encoding::None,
            Some(text) => Encoding::parse(&text).ok_or_else(|| Damage(format!("encoding {text:?} is not known")))?,
        };
        let bloom_type = match name(key::BLOOM_FILTER_TYPE) {
            None => BloomType::None,
            Some(text) => BloomType::parse(&text).ok_or_else(|| Damage(format!("Bloom type {text:?} is not known")))?,
        };
        let prefix_len = match (bloom_type, file_info::int(info, key::BLOOM_FILTER_PARAM)?) {
            (BloomType::RowPrefixFixedLength, Some(len)) if len > 0 => len as usize,
            (BloomType::RowPrefixFixedLength, _) => return Err("the Bloom filter's prefix length is missing".into()),
            _ => 0,
        };
        let tags = info.contains_key(key::MAX_TAGS_LEN);
        let tail = Tail {
            tags,
            tags_compressed: tags && encoding != Encoding::None && file_info::flag(info, key::TAGS_COMPRESSED),
            mvcc: file_info::int(info, key::KEY_VALUE_VERSION)? == Some(1),
        };
        Ok(Facts { encoding, tail, bloom_type, prefix_len })
    }
}
