//! HFiles with 100-byte values: loading blocks, and finding cells in loaded ones.

use crate::Group;
use crate::data::{self, FAMILY, QUALIFIER};
use crate::measure::{Done, Session, Size};
use base::{Rng, SeqId};
use cell::{CellRef, CellSpec, CellType, KeyRef};
use fs::{FilePath, MemVolume};
use hfile::{
    BlockCache, BloomType, Compression, Encoding, Reader, ReaderContext, Residency, ScanOptions, StoreMetadata, Writer,
    WriterOptions,
};
use std::hint::black_box;
use std::sync::Arc;

pub const DECODE: Group = Group {
    names: &[
        "block.none.none",
        "block.none.snappy",
        "block.none.lz4",
        "block.none.zstd",
        "block.none.gz",
        "block.prefix.none",
        "block.prefix.snappy",
        "block.prefix.lz4",
        "block.prefix.zstd",
        "block.prefix.gz",
        "block.diff.none",
        "block.diff.snappy",
        "block.diff.lz4",
        "block.diff.zstd",
        "block.diff.gz",
        "block.fast_diff.none",
        "block.fast_diff.snappy",
        "block.fast_diff.lz4",
        "block.fast_diff.zstd",
        "block.fast_diff.gz",
        "block.row_index_v1.none",
        "block.row_index_v1.snappy",
        "block.row_index_v1.lz4",
        "block.row_index_v1.zstd",
        "block.row_index_v1.gz",
    ],
    needs_server: false,
    run: decode,
};

pub const SEEK: Group =
    Group { names: &["hfile.seek", "hfile.step", "hfile.bloom.absent"], needs_server: false, run: seek };

/// Reading a file back as `basalt hfile --verify` does, cell by cell, and beside it, over the same bytes in the same run, what of that is the
/// checksums' and the codec's alone: every block checked and unpacked. The first is to take at most 1.25 times as long.
pub const VERIFY: Group = Group {
    names: &[
        "hfile.verify.none",
        "hfile.verify.snappy",
        "hfile.verify.gz",
        "hfile.verify.zstd",
        "hfile.unpack.none",
        "hfile.unpack.snappy",
        "hfile.unpack.gz",
        "hfile.unpack.zstd",
    ],
    needs_server: false,
    run: verify,
};

/// Rows in order; every row's one cell has a value of this many bytes.
const VALUE_BYTES: usize = 100;

fn row(n: u64) -> String {
    format!("user{n:012}")
}

/// The cells of a file, one KeyValue after the other, and where each ends.
fn cells(count: u64) -> (Vec<u8>, Vec<usize>) {
    let rng = Rng::seeded(1);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for n in 0..count {
        let (row, value) = (row(n), data::value(VALUE_BYTES, &rng));
        let timestamp = 1_700_000_000_000 + rng.below(100_000) as i64;
        let type_code = CellType::Put.code();
        let (row, family, qualifier) = (row.as_bytes(), FAMILY, QUALIFIER);
        CellSpec { row, family, qualifier, timestamp, type_code, value: &value, tags: b"" }.write(&mut bytes);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn write(volume: &MemVolume, count: u64, encoding: Encoding, compression: Compression) -> anyhow::Result<u64> {
    let (bytes, ends) = cells(count);
    let options = WriterOptions { encoding, compression, bloom: BloomType::Row, ..WriterOptions::default() };
    let mut writer = Writer::create(volume, &FilePath::new("file"), options)?;
    let mut start = 0;
    for end in ends {
        writer.append(CellRef::from_checked(&bytes[start..end], SeqId(1)))?;
        start = end;
    }
    writer.finish(&StoreMetadata::default())?;
    Ok(bytes.len() as u64)
}

/// Steps through the whole file; returns the number of cells.
fn walk(reader: &Arc<Reader>) -> anyhow::Result<u64> {
    let mut scanner = reader.scanner(ScanOptions::default());
    let (mut seen, mut more) = (0, scanner.seek_to_first()?);
    while more {
        black_box(scanner.current());
        seen += 1;
        more = scanner.next()?;
    }
    Ok(seen)
}

fn decode(session: &mut Session<'_>) -> anyhow::Result<()> {
    let count = session.scale().rows;
    for &encoding in Encoding::ALL {
        for compression in
            [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd, Compression::Gz]
        {
            let name = format!("block.{}.{}", encoding.as_str(), compression.as_str()).to_lowercase();
            if !session.wants(&name) {
                continue;
            }
            let volume = MemVolume::new();
            let bytes = write(&volume, count, encoding, compression)?;
            // Without a cache every block is read, checked, decompressed and decoded anew.
            let reader = Reader::open(&volume, &FilePath::new("file"), ReaderContext::default())?;
            session.measure(
                &name,
                Size::Timed { most: u64::MAX, step: count },
                |_| Ok(()),
                |(), n| {
                    for _ in 0..n / count {
                        let seen = walk(&reader)?;
                        anyhow::ensure!(seen == count, "{seen} cells, not {count}");
                    }
                    Ok(Done { ops: n, bytes: n / count * bytes })
                },
            )?;
        }
    }
    Ok(())
}

fn verify(session: &mut Session<'_>) -> anyhow::Result<()> {
    let count = session.scale().rows;
    for compression in [Compression::None, Compression::Snappy, Compression::Gz, Compression::Zstd] {
        let name = |what: &str| format!("hfile.{what}.{}", compression.as_str()).to_lowercase();
        if !session.wants(&name("verify")) && !session.wants(&name("unpack")) {
            continue;
        }
        let volume = MemVolume::new();
        let bytes = write(&volume, count, Encoding::None, compression)?;
        let reader = Reader::open(&volume, &FilePath::new("file"), ReaderContext::default())?;
        let timed = Size::Timed { most: u64::MAX, step: count };
        let done = |n: u64| Done { ops: n, bytes: n / count * bytes };
        if session.wants(&name("verify")) {
            session.measure(
                &name("verify"),
                timed,
                |_| Ok(()),
                |(), n| {
                    for _ in 0..n / count {
                        let seen = reader.read_through()?;
                        anyhow::ensure!(seen == count, "{seen} cells, not {count}");
                    }
                    Ok(done(n))
                },
            )?;
        }
        if session.wants(&name("unpack")) {
            session.measure(
                &name("unpack"),
                timed,
                |_| Ok(()),
                |(), n| {
                    for _ in 0..n / count {
                        for block in reader.blocks() {
                            black_box(block?);
                        }
                    }
                    Ok(done(n))
                },
            )?;
        }
    }
    Ok(())
}

fn seek(session: &mut Session<'_>) -> anyhow::Result<()> {
    let count = session.scale().rows;
    let volume = MemVolume::new();
    write(&volume, count, Encoding::None, Compression::None)?;
    let context = ReaderContext { cache: Some(BlockCache::new(1 << 30)), ..ReaderContext::default() };
    let reader = Reader::open(&volume, &FilePath::new("file"), context)?;
    walk(&reader)?;
    let rng = Rng::seeded(9);
    let timed = Size::Timed { most: u64::MAX, step: 1 };
    let key = |n: u64| {
        let mut key = Vec::new();
        KeyRef::write(&mut key, row(n).as_bytes(), FAMILY, b"", i64::MAX, u8::MAX);
        key
    };
    let keys: Vec<Vec<u8>> = (0..32_768).map(|_| key(rng.below(count))).collect();
    let mut scanner = reader.scanner(ScanOptions::default());
    let mut at = 0;
    session.measure(
        "hfile.seek",
        timed,
        |_| Ok(()),
        |(), n| {
            for _ in 0..n {
                at = (at + 1) % keys.len();
                anyhow::ensure!(scanner.seek(KeyRef::from_checked(&keys[at]))?, "a row is missing");
                black_box(scanner.current());
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )?;
    session.measure(
        "hfile.step",
        Size::Timed { most: u64::MAX, step: count },
        |_| Ok(()),
        |(), n| Ok(Done { ops: (0..n / count).map(|_| walk(&reader)).sum::<anyhow::Result<u64>>()?, bytes: 0 }),
    )?;
    let absent: Vec<String> = (0..32_768).map(|n| row(count + n)).collect();
    session.measure(
        "hfile.bloom.absent",
        timed,
        |_| Ok(()),
        |(), n| {
            let mut maybe = 0;
            for _ in 0..n {
                at = (at + 1) % absent.len();
                maybe += u64::from(reader.may_contain_row(absent[at].as_bytes(), Residency::MayRead)?);
            }
            // One in a hundred is what the filter is built for.
            anyhow::ensure!(maybe <= 100 + n / 10, "{maybe} of {n} absent rows were not refused");
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}
