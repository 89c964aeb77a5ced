//! The list of targets, and what several of them need.

mod cells;
mod files;
mod filters;
mod replies;
mod requests;
mod rest;
mod small;
mod thrift;
mod wire;

use crate::Target;
use bytes::Bytes;
use fs::{FilePath, MemVolume};

/// Every target.
pub const ALL: &[Target] = &[
    wire::CONNECTION,
    wire::FRAMES,
    requests::REQUESTS,
    replies::REPLIES,
    cells::CELL_BLOCK,
    filters::FILTER,
    filters::FILTER_STRING,
    filters::REGEX,
    wire::ZOOKEEPER,
    files::HFILE,
    files::WAL,
    files::CODECS,
    small::TABLE,
    small::REGION_INFO,
    small::SITE_XML,
    small::MARKERS,
    small::PROCEDURE,
    small::META_ROWS,
    small::ZNODES,
    small::BACKUPS,
    thrift::THRIFT,
    rest::REST,
];

/// One byte off the front; 0 where there is none.
fn take_byte(data: &mut &[u8]) -> u8 {
    let Some((first, rest)) = data.split_first() else { return 0 };
    *data = rest;
    *first
}

/// The parts of `data` between a length of two bytes each.
fn take_part<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let len = usize::from(u16::from_be_bytes([take_byte(data), take_byte(data)]));
    let (part, rest) = data.split_at(len.min(data.len()));
    *data = rest;
    part
}

/// What [`take_part`] reads.
fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    let len = u16::try_from(part.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&part[..usize::from(len)]);
}

/// A volume with one file.
fn volume_with(path: &FilePath, bytes: &[u8]) -> MemVolume {
    let volume = MemVolume::new();
    volume.put_file(path, bytes);
    volume
}

fn shared(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
