//! The index and the blocks of a file.

use std::io::Write;

use cell::KeyRef;
use cell::print::to_string_binary;
use hfile::Reader;
use serde_json::json;

use super::absolute;
use crate::print;

/// An index key for people.
fn key(bytes: &[u8]) -> String {
    KeyRef::parse(bytes).map_or_else(|_| to_string_binary(bytes), print::key)
}

/// The root of the index.
pub(super) fn print_index(reader: &Reader, as_json: bool, out: &mut impl Write) -> std::io::Result<()> {
    if as_json {
        let entries: Vec<_> = reader
            .root_index()
            .map(|entry| json!({"key": key(entry.key), "offset": entry.offset, "dataSize": entry.block_bytes}))
            .collect();
        return writeln!(out, "{}", json!({"file": absolute(reader.path()), "index": entries}));
    }
    writeln!(out, "Block Index:\nsize={}", reader.root_index().count())?;
    for entry in reader.root_index() {
        writeln!(out, "key={}\n  offset={}, dataSize={}", key(entry.key), entry.offset, entry.block_bytes)?;
    }
    writeln!(out)
}

/// The header of each block.
pub(super) fn print_headers(reader: &Reader, as_json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    if !as_json {
        writeln!(out, "Block Headers:")?;
    }
    for block in reader.blocks() {
        let block = block?;
        let kind = String::from_utf8_lossy(block.magic).into_owned();
        let on_disk = block.total_bytes - u64::from(HEADER_BYTES);
        let checksums = block.total_bytes - block.data_bytes;
        let begins = to_string_binary(&block.begins_with);
        match as_json {
            true => writeln!(
                out,
                "{}",
                json!({
                    "file": absolute(reader.path()), "blockType": kind, "fileOffset": block.offset,
                    "onDiskSizeWithoutHeader": on_disk, "uncompressedSizeWithoutHeader": block.uncompressed_bytes,
                    "prevBlockOffset": block.previous_offset, "checksumType": block.checksum.as_str(),
                    "bytesPerChecksum": block.bytes_per_checksum, "totalChecksumBytes": checksums,
                    "dataBeginsWith": begins,
                })
            )?,
            false => writeln!(
                out,
                "[blockType={kind}, fileOffset={}, headerSize={HEADER_BYTES}, onDiskSizeWithoutHeader={on_disk}, \
                 uncompressedSizeWithoutHeader={}, prevBlockOffset={}, isUseHBaseChecksum=true, checksumType={}, \
                 bytesPerChecksum={}, onDiskDataSizeWithHeader={}, getOnDiskSizeWithHeader={}, \
                 totalChecksumBytes={checksums}, dataBeginsWith={begins}]",
                block.offset,
                block.uncompressed_bytes,
                block.previous_offset,
                block.checksum.as_str(),
                block.bytes_per_checksum,
                block.data_bytes,
                block.total_bytes,
            )?,
        }
    }
    Ok(())
}

/// Bytes of a block's header.
const HEADER_BYTES: u32 = 33;
