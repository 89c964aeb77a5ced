//! The trailer: the last 4096 bytes of a v3 file, the last 212 of a v2.3 file. Follows: `FixedFileTrailer`.

use crate::Compression;
use crate::cursor::{Cursor, Damage, Decoded};
use bytes::Bytes;
use cell::Order;
use proto::Message;
use proto::disk::FileTrailerProto;

const MAGIC: &[u8; 8] = b"TRABLK\"$";
/// Bytes of a v3 trailer.
pub(crate) const TRAILER_LEN: usize = 4096;
const TRAILER_LEN_V2: usize = 212;
const MINOR: u32 = 3;
const USER_COMPARATOR: &str = "org.apache.hadoop.hbase.KeyValue$KVComparator";
const META_COMPARATOR: &str = "org.apache.hadoop.hbase.KeyValue$MetaComparator";

/// What the trailer says.
#[derive(Clone, Debug)]
pub(crate) struct Trailer {
    /// Major version of the format.
    pub version: u32,
    /// Bytes of the trailer itself.
    pub len: usize,
    pub file_info_offset: u64,
    pub load_on_open_offset: u64,
    pub uncompressed_index_bytes: u64,
    pub uncompressed_bytes: u64,
    pub root_entries: u32,
    pub meta_entries: u32,
    pub entry_count: u64,
    pub index_levels: u32,
    pub first_data_block: u64,
    pub last_data_block: u64,
    pub order: Order,
    /// A codec ordinal; perhaps one that is not served.
    pub codec: u32,
    pub encrypted: bool,
}

/// Why a trailer is not used.
#[derive(Debug)]
pub(crate) enum TrailerError {
    Damage(Damage),
    Unsupported(String),
}

impl<T: Into<Damage>> From<T> for TrailerError {
    fn from(damage: T) -> TrailerError {
        TrailerError::Damage(damage.into())
    }
}

impl Trailer {
    /// Reads the trailer at the end of `tail`, the last bytes of the file.
    pub fn parse(tail: &[u8]) -> Result<Trailer, TrailerError> {
        let version = *tail.last_chunk::<4>().ok_or("the file is too short for a trailer")?;
        let [minor, major @ ..] = version;
        let major = u32::from_be_bytes([0, major[0], major[1], major[2]]);
        let len = match major {
            3 => TRAILER_LEN,
            2 => TRAILER_LEN_V2,
            _ => return Err(format!("the trailer says HFile version {major}.{minor}; 2 and 3 are known").into()),
        };
        if minor > 3 {
            return Err(format!("the trailer says HFile version {major}.{minor}; minor versions end at 3").into());
        }
        if major == 2 && minor < 3 {
            return Err(TrailerError::Unsupported(format!("HFile version 2.{minor} (HBase 2.6 reads 2.3 and 3)")));
        }
        let start = tail.len().checked_sub(len).ok_or("the file is too short for its trailer")?;
        let mut at = Cursor::new(&tail[start..tail.len() - 4]);
        if at.take(8)? != MAGIC {
            return Err("the trailer's magic is missing".into());
        }
        let trailer = Trailer { version: major, ..from_proto(&mut at, len)? };
        if !(1..=16).contains(&trailer.index_levels) {
            return Err(format!("the trailer says {} index levels", trailer.index_levels).into());
        }
        Ok(trailer)
    }

    /// The trailer's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let comparator = match self.order {
            Order::User => USER_COMPARATOR,
            Order::Meta => META_COMPARATOR,
        };
        let message = FileTrailerProto {
            file_info_offset: Some(self.file_info_offset),
            load_on_open_data_offset: Some(self.load_on_open_offset),
            uncompressed_data_index_size: Some(self.uncompressed_index_bytes),
            total_uncompressed_bytes: Some(self.uncompressed_bytes),
            data_index_count: Some(self.root_entries),
            meta_index_count: Some(self.meta_entries),
            entry_count: Some(self.entry_count),
            num_data_index_levels: Some(self.index_levels),
            first_data_block_offset: Some(self.first_data_block),
            last_data_block_offset: Some(self.last_data_block),
            comparator_class_name: Some(comparator.to_owned()),
            compression_codec: Some(self.codec),
            encryption_key: None,
        };
        let mut out = Vec::with_capacity(TRAILER_LEN);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&message.encode_length_delimited_to_vec());
        out.resize(TRAILER_LEN - 4, 0);
        out.extend_from_slice(&((MINOR << 24) | self.version).to_be_bytes());
        out
    }
}

fn from_proto(at: &mut Cursor<'_>, len: usize) -> Result<Trailer, TrailerError> {
    let bytes = Bytes::copy_from_slice(at.take(at.len())?);
    let message = FileTrailerProto::decode_length_delimited(bytes)
        .map_err(|e| Damage(format!("the trailer is not readable: {e}")))?;
    // What has no sane default must be there: an absent number would silently become another file.
    let need = |field: Option<u64>, name: &str| field.ok_or_else(|| Damage(format!("the trailer lacks {name}")));
    Ok(Trailer {
        version: 0,
        len,
        file_info_offset: need(message.file_info_offset, "file_info_offset")?,
        load_on_open_offset: need(message.load_on_open_data_offset, "load_on_open_data_offset")?,
        uncompressed_index_bytes: message.uncompressed_data_index_size.unwrap_or(0),
        uncompressed_bytes: message.total_uncompressed_bytes.unwrap_or(0),
        root_entries: need(message.data_index_count.map(u64::from), "data_index_count")? as u32,
        meta_entries: message.meta_index_count.unwrap_or(0),
        entry_count: need(message.entry_count, "entry_count")?,
        index_levels: need(message.num_data_index_levels.map(u64::from), "num_data_index_levels")? as u32,
        first_data_block: message.first_data_block_offset.unwrap_or(u64::MAX),
        last_data_block: message.last_data_block_offset.unwrap_or(u64::MAX),
        order: order_of(message.comparator_class_name.as_deref().unwrap_or(""))?,
        codec: message.compression_codec.unwrap_or(Compression::None.code()),
        encrypted: message.encryption_key.is_some(),
    })
}

/// The order a comparator's class stands for, under its names from HBase 0.92 to 2.6.
fn order_of(class: &str) -> Decoded<Order> {
    let name = class.strip_prefix("org.apache.hadoop.hbase.").unwrap_or("");
    match name {
        "KeyValue$KVComparator"
        | "KeyValue$KeyComparator"
        | "CellComparator"
        | "CellComparatorImpl"
        | "InnerStoreCellComparator" => Ok(Order::User),
        "KeyValue$MetaComparator"
        | "KeyValue$MetaKeyComparator"
        | "CellComparator$MetaCellComparator"
        | "CellComparatorImpl$MetaCellComparator"
        | "MetaCellComparator" => Ok(Order::Meta),
        _ => Err(format!("the trailer's comparator {class:?} is not known").into()),
    }
}

/// The name of a codec ordinal, for messages.
pub(crate) fn codec_name(ordinal: u32) -> String {
    Compression::from_code(ordinal).map_or_else(|| format!("codec number {ordinal}"), |codec| codec.to_string())
}
