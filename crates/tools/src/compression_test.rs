//! `basalt compressiontest`. Follows: `CompressionTest`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::{Config, SeqId};
use cell::{CellBuffer, CellSpec, CellType};
use fs::Volume;
use hfile::{Compression, ReaderContext, ScanOptions, StoreMetadata, Writer, WriterOptions};

use crate::jobs::helped;
use crate::{dictionaries, files};

const USAGE: &str = "\
Whether a codec works here: writes an HFile with it, and reads it.

Usage: basalt compressiontest FILE CODEC

    FILE     where the HFile is written; it must not be there, and is removed again
    CODEC    none, gz, snappy, lz4, zstd, lzo, bzip2, lzma or brotli
    --help   this text

With -D hbase.io.compress.zstd.dictionary=FILE zstd is tried with that dictionary.

Prints SUCCESS, or ends with 1.

Examples:
  basalt compressiontest file:///tmp/testfile gz
";

const ROW: &[u8] = b"compressiontestkey";
const VALUE: &[u8] = b"compressiontestval";

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The codec is not known, the file is there, cannot be written, or is read otherwise than it was written.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let [file, codec] = given else {
        bail!("compressiontest: a file and a codec are needed; see basalt compressiontest --help")
    };
    let compression = Compression::parse(&codec.to_uppercase())
        .with_context(|| format!("compressiontest: {codec} is no codec; basalt compressiontest --help lists them"))?;
    let place = files::place(file)?;
    let (volume, path) = (files::everything()?, files::path_of(&place)?);
    if volume.exists(&path)? {
        bail!("compressiontest: {} is there already; give the path of a new file", place.display());
    }
    let dictionary = dictionaries::named(config, None, b"").filter(|_| compression == Compression::Zstd);
    let tested = test(&volume, &path, compression, dictionary.as_deref());
    let removed = volume.remove_file(&path);
    tested.with_context(|| format!("compressiontest: {codec}"))?;
    removed?;
    println!("SUCCESS");
    Ok(ExitCode::SUCCESS)
}

fn test(
    volume: &dyn Volume,
    path: &fs::FilePath,
    compression: Compression,
    dictionary: Option<&str>,
) -> anyhow::Result<()> {
    let mut cells = CellBuffer::new();
    let (family, qualifier) = (&b"f"[..], &b""[..]);
    let type_code = CellType::Put.code();
    let spec = CellSpec { row: ROW, family, qualifier, timestamp: 1, type_code, value: VALUE, tags: b"" };
    cells.push_spec(&spec, SeqId(0));
    let packed_with = dictionary.map(dictionaries::get).transpose()?;
    let options = WriterOptions { compression, dictionary: packed_with, ..WriterOptions::default() };
    let mut out = Writer::create(volume, path, options)?;
    out.append(cells.get(0))?;
    out.append_file_info(b"compressioninfokey", b"compressioninfoval");
    out.finish(&StoreMetadata::default())?;
    let reader = dictionaries::open(volume, path, dictionary, ReaderContext::default())?;
    if reader.compression() != compression {
        bail!("the trailer of the file names codec {}", reader.compression().as_str());
    }
    let mut scanner = reader.scanner(ScanOptions::default());
    let is_there = scanner.seek_to_first()?;
    match scanner.current().filter(|_| is_there) {
        Some(cell) if cell.row() == ROW && cell.value() == VALUE => Ok(()),
        _ => bail!("the cell that was read is not the one that was written"),
    }
}
