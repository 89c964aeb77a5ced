//! A disk that fails: every call of writing and of reading in turn.

use crate::common::*;
use basalt_hfile::*;
use base::Rng;
use fs::{FaultKind, FilePath, MemVolume};

fn options() -> WriterOptions {
    WriterOptions {
        block_size_bytes: 512,
        index_block_size_bytes: 200,
        index_min_entries: 2,
        bloom: BloomType::Row,
        bloom_block_size_bytes: 128,
        ..WriterOptions::default()
    }
}

fn try_write(volume: &MemVolume, path: &FilePath, cells: &[Owned]) -> Result<FinishedFile> {
    let mut writer = Writer::create(volume, path, options())?;
    for cell in cells {
        writer.append(cell.cell())?;
    }
    writer.finish(&StoreMetadata::default())
}

#[test]
fn a_file_is_whole_or_its_writer_failed() {
    let cells = random_cells(&Rng::seeded(1), 120, false);
    let path = FilePath::new("file");
    let mut failed = 0;
    for nth in 1.. {
        let volume = MemVolume::new();
        volume.fail_op(nth, if nth % 2 == 0 { FaultKind::Io } else { FaultKind::Full });
        match try_write(&volume, &path, &cells) {
            Err(Error::Io(error)) => {
                assert_eq!(error.path, path);
                failed += 1;
            }
            Err(other) => panic!("call {nth}: {other}"),
            Ok(finished) => {
                volume.clear_faults();
                let reader = Reader::open(&volume, &path, ReaderContext::default()).expect("open");
                assert_eq!((reader.len_bytes(), reader.entry_count()), (finished.len_bytes, 120));
                assert_eq!(all_cells(&reader, ScanOptions::default()).expect("read"), cells);
                break;
            }
        }
    }
    assert!(failed > 10, "{failed} calls failed");
}

#[test]
fn a_scanner_goes_on_after_a_failed_read() {
    let cells = random_cells(&Rng::seeded(2), 400, false);
    let (volume, path) = (MemVolume::new(), FilePath::new("file"));
    try_write(&volume, &path, &cells).expect("write");
    for pread in [true, false] {
        let mut failed = 0;
        for nth in 1.. {
            let reader = Reader::open(&volume, &path, ReaderContext::default()).expect("open");
            let mut scanner = reader.scanner(ScanOptions { pread, ..ScanOptions::default() });
            volume.fail_op(nth, FaultKind::TimedOut);
            let (mut seen, mut met) = (Vec::new(), false);
            let mut more = scanner.seek_to_first();
            loop {
                match more {
                    Ok(true) => {
                        seen.push(Owned::of(scanner.current().expect("positioned")));
                        more = scanner.next();
                    }
                    Ok(false) => break,
                    Err(Error::Io(_)) => {
                        met = true;
                        assert!(scanner.current().is_none(), "unpositioned after an error");
                        // Back to the last cell seen, and on.
                        more = match seen.last() {
                            None => scanner.seek_to_first(),
                            Some(last) => {
                                let last: Owned = last.clone();
                                scanner.seek(last.cell().key()).and_then(|_| {
                                    while scanner.current().map(Owned::of).as_ref() != Some(&last) {
                                        scanner.next()?;
                                    }
                                    scanner.next()
                                })
                            }
                        };
                    }
                    Err(other) => panic!("read {nth}: {other}"),
                }
            }
            volume.clear_faults();
            assert!(seen == cells, "read {nth}: {} cells", seen.len());
            if !met {
                break;
            }
            failed += 1;
        }
        assert!(failed > 3, "{failed} reads failed");
    }
}
