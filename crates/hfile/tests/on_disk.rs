//! A file is the same on a disk, through the page cache and past it, as in memory, where each block is appended by itself.

use basalt_hfile::*;
use base::{Rng, SeqId};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{FilePath, LocalVolume, MemVolume, Volume};
use std::path::Path;
use std::sync::Arc;

/// In order; values of letters or of noise.
fn cells(rng: &Rng, count: u64, value_bytes: u64, noise: bool) -> CellBuffer {
    let mut cells = CellBuffer::new();
    for n in 0..count {
        let row = format!("row{n:09}");
        let letter = b'a' + (n % 26) as u8;
        let value: Vec<u8> =
            (0..rng.below(value_bytes)).map(|_| if noise { rng.below(256) as u8 } else { letter }).collect();
        let spec = CellSpec {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"q",
            timestamp: 1000,
            type_code: CellType::Put.code(),
            value: &value,
            tags: b"",
        };
        cells.push_spec(&spec, SeqId(n));
    }
    cells
}

fn write(volume: &dyn Volume, name: &str, options: &WriterOptions, cells: &CellBuffer) -> Vec<u8> {
    let path = FilePath::new(name);
    let mut writer = Writer::create(volume, &path, options.clone()).expect("created");
    cells.iter_from(0).for_each(|cell| writer.append(cell).expect("appended"));
    let finished = writer.finish(&StoreMetadata::default()).expect("finished");
    let bytes = volume.read(&path).expect("read");
    assert_eq!(finished.len_bytes, bytes.len() as u64);
    bytes
}

#[test]
fn files_are_the_same_wherever_they_are() {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (parent, name) = (LocalVolume::open(base).expect("opened"), format!("hfiles-{}", std::process::id()));
    let local = LocalVolume::open(&base.join(&name)).expect("opened");
    let rng = Rng::seeded(3);
    let plain = WriterOptions { bloom: BloomType::Row, bloom_block_size_bytes: 4096, ..WriterOptions::default() };
    let encoded = |encoding| WriterOptions { encoding, ..plain.clone() };
    let packed =
        |must_pay| WriterOptions { compression: Compression::Snappy, compression_must_pay: must_pay, ..plain.clone() };
    let cases = [
        ("plain", plain.clone(), cells(&rng, 6000, 1800, false)),
        ("small blocks", WriterOptions { block_size_bytes: 700, ..plain.clone() }, cells(&rng, 6000, 300, false)),
        ("large cells", plain.clone(), cells(&rng, 6, 3_000_000, false)),
        ("no cells", plain.clone(), CellBuffer::new()),
        ("row index", encoded(Encoding::RowIndexV1), cells(&rng, 5000, 900, false)),
        ("differences", encoded(Encoding::FastDiff), cells(&rng, 5000, 900, false)),
        ("packed", packed(true), cells(&rng, 5000, 900, false)),
        ("not worth packing", packed(true), cells(&rng, 5000, 900, true)),
        ("packed all the same", packed(false), cells(&rng, 5000, 900, true)),
    ];
    for (case, options, cells) in cases {
        let wanted = write(&MemVolume::new(), "f", &options, &cells);
        for past_cache in [false, true] {
            let options = WriterOptions { past_cache, ..options.clone() };
            let name = format!("{}-{past_cache}", case.replace(' ', "-"));
            assert!(write(&local, &name, &options, &cells) == wanted, "{case}, past the page cache: {past_cache}");
        }
        let reader =
            Reader::open(&local, &FilePath::new(format!("{}-true", case.replace(' ', "-"))), ReaderContext::default());
        assert_eq!(Arc::new(reader.expect("opened")).entry_count(), cells.iter_from(0).count() as u64, "{case}");
    }
    parent.remove_dir_all(&FilePath::new(name)).expect("removed");
}
