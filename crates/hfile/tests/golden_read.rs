//! Every golden HFile that HBase wrote, read back cell by cell and fact by fact.

use crate::common::*;
use basalt_hfile::*;
use std::sync::Arc;

#[test]
fn every_vector_reads_as_it_is_listed() {
    let cache = BlockCache::new(64 << 20);
    for line in manifest() {
        let file = line["file"].as_str().expect("file");
        if file == "aes.hfile" {
            continue;
        }
        let reader = open_golden(file, ReaderContext { cache: Some(cache.clone()), ..Default::default() })
            .unwrap_or_else(|e| panic!("{file}: {e}"));
        let mut wanted = listed(line["cells"].as_str().expect("cells"));
        if line["file_info"].get("KEY_VALUE_VERSION").is_none() {
            wanted.iter_mut().for_each(|cell| cell.seq_id = 0);
        }
        for pread in [true, false, true] {
            let got = all_cells(&reader, ScanOptions { pread, ..Default::default() });
            let got = got.unwrap_or_else(|e| panic!("{file}: {e}"));
            assert_eq!(got.len(), wanted.len(), "{file}");
            for (i, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
                assert_eq!(got, wanted, "{file} cell {i}");
            }
        }
        check_facts(file, &line, &reader, &wanted);
        check_blooms(file, &reader, &wanted);
    }
}

fn check_facts(file: &str, line: &serde_json::Value, reader: &Arc<Reader>, cells: &[Owned]) {
    let trailer = &line["trailer"];
    assert_eq!(Some(reader.entry_count()), trailer["entryCount"].as_u64(), "{file}");
    assert_eq!(Some(reader.len_bytes()), line["bytes"].as_u64(), "{file}");
    assert_eq!(Some(reader.uncompressed_bytes()), trailer["totalUncompressedBytes"].as_u64(), "{file}");
    assert_eq!(Some(reader.index_bytes()), trailer["uncompressedDataIndexSize"].as_u64(), "{file}");
    assert_eq!(Some(u64::from(reader.index_levels())), trailer["numDataIndexLevels"].as_u64(), "{file}");
    assert_eq!(Some(reader.compression().as_str()), trailer["codec"].as_str(), "{file}");
    let info = line["file_info"].as_object().expect("file_info");
    assert_eq!(reader.file_info().len(), info.len(), "{file}");
    for (key, value) in info {
        let wanted = hex(value.as_str().expect("hex"));
        assert_eq!(reader.file_info().get(key.as_bytes()).map(|v| v.to_vec()), Some(wanted), "{file} {key}");
    }
    let bytes = |name: &str| line.get(name).and_then(|v| v.as_str()).map(hex);
    assert_eq!(reader.mid_key().expect("mid key").map(|k| k.to_vec()), bytes("mid_key"), "{file}");
    assert_eq!(reader.last_key().map(|k| k.bytes().to_vec()), bytes("last_key").filter(|k| !k.is_empty()), "{file}");
    assert_eq!(reader.first_key().map(|k| k.bytes().to_vec()), cells.first().map(|c| c.cell().key().bytes().to_vec()));
}

fn check_blooms(file: &str, reader: &Arc<Reader>, cells: &[Owned]) {
    let (mut asked, mut wrong) = (0, 0);
    for owned in cells {
        let cell = owned.cell();
        let (row, qualifier) = (cell.row(), cell.qualifier());
        assert!(reader.may_contain_row(row, Residency::MayRead).expect("bloom"), "{file} {cell:?}");
        assert!(reader.may_contain_row_col(row, qualifier, Residency::MayRead).expect("bloom"), "{file} {cell:?}");
        if matches!(cell.type_code(), 10 | 14) {
            assert!(reader.may_contain_delete_family(row, Residency::MayRead).expect("bloom"), "{file} {cell:?}");
        }
        let mut absent = row.to_vec();
        absent[0] ^= 0x15;
        absent.extend_from_slice(b"~absent");
        asked += 1;
        wrong += u32::from(reader.may_contain_row_col(&absent, qualifier, Residency::MayRead).expect("bloom"));
    }
    if reader.has_bloom() && asked > 100 {
        assert!(wrong * 10 < asked, "{file}: {wrong} of {asked} absent rows are not refused");
    }
}

#[test]
fn an_encrypted_file_is_refused_by_name() {
    match open_golden("aes.hfile", ReaderContext::default()) {
        Err(Error::Unsupported { path, feature }) => {
            assert_eq!(path.as_str(), "hfile/aes.hfile");
            assert!(feature.contains("AES"), "{feature}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_trailer_of_version_2_3_is_read() {
    // No vector has one; it differs from version 3 in its length and its last four bytes only.
    let v3 = golden("hfile/nt-none.hfile");
    let (body, trailer) = v3.split_at(v3.len() - 4096);
    let mut v2 = [body, &trailer[..208]].concat();
    v2.extend_from_slice(&0x0300_0002u32.to_be_bytes());
    let volume = fs::MemVolume::new();
    let path = fs::FilePath::new("v2");
    volume.put_file(&path, &v2);
    let reader = Reader::open(&volume, &path, ReaderContext::default()).expect("open");
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("read").len(), 513);
}

#[test]
fn an_open_file_takes_little_memory() {
    // 10,000 regions have at least as many files open.
    let reader = open_golden("mt-none-none.hfile", ReaderContext::default()).expect("open");
    assert!(reader.heap_bytes() < 8 * 1024, "{} bytes", reader.heap_bytes());
    println!("{} bytes", reader.heap_bytes());
}
