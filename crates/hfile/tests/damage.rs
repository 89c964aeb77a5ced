//! Damaged files: every byte of small files is flipped in several ways. The file then reads as before or is refused with
//! an error; it never reads as other cells and never panics. Truncations likewise.

use crate::common::*;
use basalt_hfile::*;
use base::Rng;
use fs::{FilePath, MemVolume, Volume};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Everything a caller may see of a file; `Err` when anything is refused.
fn see(volume: &MemVolume, wanted: &[Owned]) -> Result<Vec<Owned>> {
    let reader = Reader::open(volume, &FilePath::new("file"), ReaderContext::default())?;
    reader.mid_key()?;
    for cell in wanted.iter().step_by(7) {
        let cell = cell.cell();
        let column = reader.may_contain_row_col(cell.row(), cell.qualifier(), Residency::MayRead)?;
        assert!(column, "a damaged Bloom filter hides {cell:?}");
        if matches!(cell.type_code(), 10 | 14) {
            assert!(reader.may_contain_delete_family(cell.row(), Residency::MayRead)?);
        }
        let mut scanner = reader.scanner(ScanOptions::default());
        let found = scanner.seek(cell.key())?;
        assert!(found && scanner.current_key() == Some(cell.key()), "a damaged index hides {cell:?}");
    }
    all_cells(&reader, ScanOptions { pread: false, ..ScanOptions::default() })
}

/// Another file may say so in other words one day.
#[test]
fn a_file_whose_index_is_encoded_is_refused_by_that_name() {
    for (encoding, is_read) in [("PREFIX_TREE", false), ("LATER", false), ("NONE", true)] {
        let (volume, path) = (MemVolume::new(), FilePath::new("file"));
        let mut writer = Writer::create(&volume, &path, WriterOptions::default()).expect("created");
        let cells = random_cells(&Rng::seeded(1), 10, false);
        cells.iter().for_each(|cell| writer.append(cell.cell()).expect("appended"));
        writer.append_file_info(b"INDEX_BLOCK_ENCODING", encoding.as_bytes());
        writer.finish(&StoreMetadata::default()).expect("written");
        match Reader::open(&volume, &path, ReaderContext::default()) {
            Ok(_) => assert!(is_read, "{encoding}"),
            Err(error @ Error::Unsupported { .. }) => {
                assert!(
                    !is_read && error.to_string().contains(&format!("the index block encoding {encoding}")),
                    "{error}"
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn flip_every_byte(label: &str, options: WriterOptions, cells: &[Owned]) {
    let volume = MemVolume::new();
    write(&volume, "file", options, &StoreMetadata::default(), cells);
    let path = FilePath::new("file");
    let bytes = volume.read(&path).expect("read");
    let (mut refused, mut harmless) = (0, 0);
    for at in 0..bytes.len() {
        // The trailer's padding is long and dull: look at a part of it only.
        if at + 3800 > bytes.len() && at + 8 < bytes.len() && at % 97 != 0 {
            continue;
        }
        for mask in [0x01, 0x80, 0xFF, bytes[at]] {
            if mask == 0 {
                continue;
            }
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            volume.put_file(&path, &damaged);
            match see(&volume, cells) {
                Ok(seen) => {
                    assert!(seen == cells, "{label}: byte {at} xor {mask:#x} gives other cells");
                    harmless += 1;
                }
                Err(Error::Corrupt { path: named, .. } | Error::Unsupported { path: named, .. }) => {
                    assert_eq!(named, path);
                    refused += 1;
                }
                Err(other) => panic!("{label}: byte {at} xor {mask:#x}: {other}"),
            }
        }
    }
    println!("{label}: {refused} damages refused, {harmless} harmless of {} bytes", bytes.len());
    assert!(refused > 0);
}

#[test]
fn no_flipped_byte_gives_other_cells() {
    let rng = Rng::seeded(7);
    for (encoding, compression) in [
        (Encoding::None, Compression::None),
        (Encoding::FastDiff, Compression::Snappy),
        (Encoding::RowIndexV1, Compression::Lz4),
        (Encoding::Diff, Compression::Zstd),
        (Encoding::Prefix, Compression::Gz),
    ] {
        let cells = random_cells(&rng, 24, true);
        let options = WriterOptions {
            encoding,
            compression,
            include_tags: true,
            compress_tags: true,
            block_size_bytes: 400,
            index_block_size_bytes: 128,
            index_min_entries: 2,
            bloom: BloomType::Row,
            bloom_block_size_bytes: 128,
            checksum: if encoding == Encoding::Prefix { ChecksumType::Crc32 } else { ChecksumType::Crc32c },
            bytes_per_checksum: 256,
            ..WriterOptions::default()
        };
        flip_every_byte(&format!("{encoding:?} {compression:?}"), options, &cells);
    }
}

/// As `basalt hfile --verify` reads it, by several threads.
fn read_in_parts(reader: &std::sync::Arc<Reader>, most: usize) -> basalt_hfile::Result<u64> {
    let parts = reader.parts(most);
    let count = parts.iter().try_fold(0, |sum, part| Ok::<u64, basalt_hfile::Error>(sum + reader.read_part(part)?))?;
    reader.check_count(count)?;
    Ok(count)
}

/// Without checksums only reading tells what an index, a Bloom filter or a block hides.
#[test]
fn whatever_is_read_through_can_be_found() {
    for (index_block_size_bytes, encoding) in [(128, Encoding::None), (128 << 10, Encoding::FastDiff)] {
        let cells = random_cells(&Rng::seeded(9), 60, false);
        let (volume, path) = (MemVolume::new(), FilePath::new("file"));
        let options = WriterOptions {
            encoding,
            block_size_bytes: 300,
            index_block_size_bytes,
            index_min_entries: 2,
            bloom: BloomType::Row,
            checksum: ChecksumType::Null,
            ..WriterOptions::default()
        };
        write(&volume, "file", options, &StoreMetadata::default(), &cells);
        let bytes = volume.read(&path).expect("read");
        let open = || Reader::open(&volume, &path, ReaderContext::default());
        assert_eq!(open().and_then(|reader| reader.read_through()).expect("whole"), cells.len() as u64);
        for most in [1, 2, 3, 1000] {
            assert_eq!(open().and_then(|reader| read_in_parts(&reader, most)).expect("whole"), cells.len() as u64);
        }
        let (mut misled, mut whole) = (0, 0);
        for at in 0..bytes.len().saturating_sub(3800) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x04;
            volume.put_file(&path, &damaged);
            let Ok(reader) = open() else { continue };
            let whole_file = reader.read_through();
            if let Err(error) = &whole_file {
                assert!(
                    read_in_parts(&reader, 3).is_err(),
                    "byte {at} is passed over where it is read in parts: {error}"
                );
            }
            match whole_file {
                Err(error) => misled += u32::from(error.to_string().contains("its index does not lead")),
                Ok(_) => {
                    whole += 1;
                    let mut scanner = reader.scanner(ScanOptions::default());
                    for cell in all_cells(&reader, ScanOptions::default()).expect("read before") {
                        let key = cell.cell().key();
                        let found = scanner.seek(key).expect("read before");
                        assert!(found && scanner.current_key() == Some(key), "byte {at} hides {:?}", cell.cell());
                    }
                }
            }
        }
        assert!(misled > 0 && whole > 0, "{misled} and {whole}");
    }
}

#[test]
fn every_vector_of_hbases_is_read_through() {
    for line in manifest() {
        let file = line["file"].as_str().expect("file");
        if file != "aes.hfile" {
            let reader = open_golden(file, ReaderContext::default()).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert_eq!(Some(reader.read_through().expect(file)), line["trailer"]["entryCount"].as_u64(), "{file}");
            assert_eq!(read_in_parts(&reader, 4).expect(file), reader.read_through().expect(file), "{file}");
            assert_eq!(reader.count_blocks().expect(file), reader.blocks().count() as u64, "{file}");
        }
    }
}

#[test]
fn no_truncation_gives_other_cells() {
    let cells = random_cells(&Rng::seeded(8), 60, false);
    let volume = MemVolume::new();
    write(&volume, "file", WriterOptions::default(), &StoreMetadata::default(), &cells);
    let path = FilePath::new("file");
    let bytes = volume.read(&path).expect("read");
    for len in (0..bytes.len()).step_by(3) {
        volume.put_file(&path, &bytes[..len]);
        match see(&volume, &cells) {
            // A cut may leave bytes at the end that look like an old version's trailer.
            Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => {}
            other => panic!("truncated to {len}: {other:?}"),
        }
    }
}

#[test]
fn decoders_survive_payloads_without_checksums() {
    // Checksum type NULL: damage reaches the decoders behind it. Anything but a panic will do.
    let seed = number("BASALT_TEST_SEED", 9);
    let damages = number("BASALT_TEST_PROGRAMS", 150);
    println!(
        "replay: BASALT_TEST_SEED={seed} BASALT_TEST_PROGRAMS={damages} cargo test -p basalt-hfile --test main damage::"
    );
    let rng = Rng::seeded(seed);
    for &encoding in Encoding::ALL {
        for &compression in Compression::ALL {
            let cells = random_cells(&rng, 60, true);
            let options = WriterOptions {
                encoding,
                compression,
                include_tags: true,
                compress_tags: true,
                block_size_bytes: 600,
                index_block_size_bytes: 100,
                index_min_entries: 2,
                checksum: ChecksumType::Null,
                bloom: BloomType::RowCol,
                bloom_block_size_bytes: 128,
                ..WriterOptions::default()
            };
            let volume = MemVolume::new();
            write(&volume, "file", options, &StoreMetadata::default(), &cells);
            let path = FilePath::new("file");
            let bytes = volume.read(&path).expect("read");
            for _ in 0..damages {
                let mut damaged = bytes.clone();
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(bytes.len() as u64 - 3900) as usize;
                    damaged[at] = match rng.below(3) {
                        0 => rng.next_u64() as u8,
                        1 => 0xFF,
                        _ => damaged[at] ^ (1 << rng.below(8)),
                    };
                }
                volume.put_file(&path, &damaged);
                let Ok(reader) = Reader::open(&volume, &path, ReaderContext::default()) else { continue };
                let _ = all_cells(&reader, ScanOptions::default());
                let _ = reader.mid_key();
                for cell in cells.iter().step_by(9) {
                    let cell = cell.cell();
                    let mut scanner = reader.scanner(ScanOptions::default());
                    let _ = scanner.seek(cell.key());
                    let _ = scanner.seek_before(cell.key());
                    let _ = reader.may_contain_row_col(cell.row(), cell.qualifier(), Residency::MayRead);
                }
            }
        }
    }
}
