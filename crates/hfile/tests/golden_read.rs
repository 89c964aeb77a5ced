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

/// Made by `tests/golden/hfile/MakeZstd.java`: HBase's own writer and the Zstandard codec that it bundles, with a dictionary.
fn golden_dictionary() -> Arc<Dictionary> {
    Dictionary::new("zstd.dictionary", include_bytes!("../../../tests/golden/hfile/zstd.dictionary").to_vec())
        .expect("a dictionary")
}

fn reading(i: usize) -> String {
    let celsius = format!("{}.{}", i * 37 % 400 / 10, i * 37 % 10);
    format!("{{\"sensor\":\"{}\",\"place\":\"hall {}\",\"celsius\":{celsius}}}", i % 7, i * 31 % 11)
}

#[test]
fn a_file_that_hbase_packed_with_a_dictionary_is_read_with_it() {
    let context = |dictionary| ReaderContext { dictionary, ..Default::default() };
    let reader = open_golden("zstd-dictionary.hfile", context(Some(golden_dictionary()))).expect("opens");
    assert_eq!((reader.compression(), reader.entry_count()), (Compression::Zstd, 300));
    let cells = all_cells(&reader, ScanOptions::default()).expect("reads");
    for (i, cell) in cells.iter().enumerate() {
        assert_eq!((cell.cell().row(), cell.seq_id), (format!("r{i:04}").as_bytes(), i as u64 + 1));
        assert_eq!(String::from_utf8_lossy(cell.cell().value()), reading(i));
    }
    let numbered = |number: u32| {
        let mut bytes = golden_dictionary_bytes();
        bytes[4..8].copy_from_slice(&number.to_le_bytes());
        Dictionary::new("other.dictionary", bytes).expect("a dictionary")
    };
    let own = golden_dictionary().number().expect("a trained one has a number");
    for (dictionary, said) in [
        (None, vec![format!("number {own}"), "none is named".into(), "hbase.io.compress.zstd.dictionary".into()]),
        (Some(numbered(77)), vec![format!("number {own}"), "other.dictionary is number 77".into()]),
        (Dictionary::new("text", b"sensor place celsius".to_vec()).ok(), vec!["text is one without a number".into()]),
    ] {
        let error = open_golden("zstd-dictionary.hfile", context(dictionary)).expect_err("not without it").to_string();
        for text in said.iter().chain([&"zstd-dictionary.hfile".to_owned()]) {
            assert!(error.contains(text), "{text}: {error}");
        }
    }
}

fn golden_dictionary_bytes() -> Vec<u8> {
    include_bytes!("../../../tests/golden/hfile/zstd.dictionary").to_vec()
}

#[test]
fn what_is_packed_with_a_dictionary_is_smaller_and_lies_as_hbases_codec_lays_it() {
    let cells = {
        let context = ReaderContext { dictionary: Some(golden_dictionary()), ..Default::default() };
        all_cells(&open_golden("zstd-dictionary.hfile", context).expect("opens"), ScanOptions::default())
            .expect("reads")
    };
    let volume = fs::MemVolume::new();
    let write = |name: &str, level: i32, dictionary: Option<Arc<Dictionary>>| {
        let options = WriterOptions {
            compression: Compression::Zstd,
            block_size_bytes: 1024,
            zstd_level: level,
            dictionary,
            ..WriterOptions::default()
        };
        let mut writer = Writer::create(&volume, &fs::FilePath::new(name), options).expect("memory");
        cells.iter().for_each(|cell| writer.append(cell.cell()).expect("in order"));
        writer.finish(&StoreMetadata::default()).expect("memory").len_bytes
    };
    let (plain, with) = (write("plain", 3, None), write("with", 3, Some(golden_dictionary())));
    let theirs = include_bytes!("../../../tests/golden/hfile/zstd-dictionary.hfile").len() as u64;
    let at_their_level = write("level 5", 5, Some(golden_dictionary()));
    assert!(
        with < plain && at_their_level < with && at_their_level.abs_diff(theirs) < 600,
        "{with} {plain} {at_their_level}"
    );
    assert!(write("fast", -50, None) > plain, "the level counts");
    let bytes = fs::Volume::read(&volume, &fs::FilePath::new("with")).expect("memory");
    // Behind the block's header: the run's length, the part's, the frame.
    assert_eq!(bytes[41..45], [0x28, 0xB5, 0x2F, 0xFD]);
    for level in [1, 19] {
        let name = format!("level {level}");
        write(&name, level, Some(golden_dictionary()));
        let context = ReaderContext { dictionary: Some(golden_dictionary()), ..Default::default() };
        let reader = Reader::open(&volume, &fs::FilePath::new(&name), context).expect("opens");
        assert_eq!(all_cells(&reader, ScanOptions::default()).expect("reads"), cells);
    }
}

/// Made by `tests/golden/hfile/MakeMore.java`.
#[test]
fn meta_blocks_that_hbase_wrote_are_read() {
    let reader = open_golden("meta-block.hfile", ReaderContext::default()).expect("opens");
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("reads").len(), 1);
    let text = |name: &[u8]| reader.meta_block(name).expect("readable");
    assert_eq!(text(b"second").as_deref(), Some(&b"\x21what stands in a block of its own"[..]), "behind its length");
    assert_eq!(text(b"first").map(|block| block.len()), Some(3 + 3000));
    assert_eq!(text(b"third"), None);
    assert!(golden("hfile/meta-block.hfile").windows(8).any(|bytes| bytes == b"METABLKc"));
}

/// Made by `tests/golden/hfile/MakeMore.java`: HBase writes every block of an encoded index without an entry, and then cannot open the file.
#[test]
fn a_file_whose_index_hbase_left_out_is_refused_as_hbase_refuses_it() {
    let of_hbase = String::from_utf8(golden("hfile/index-prefix-tree.txt")).expect("text");
    assert_eq!(of_hbase.trim(), "java.lang.NullPointerException at readMultiLevelIndexRoot");
    let bytes = golden("hfile/index-prefix-tree.hfile");
    let leaf = bytes.windows(8).position(|magic| magic == b"IDXLEAF2").expect("an index of two levels");
    assert_eq!(bytes[leaf + 12..leaf + 16], [0; 4], "bytes of its entries");
    match open_golden("index-prefix-tree.hfile", ReaderContext::default()) {
        Err(error @ Error::Unsupported { .. }) => {
            let said = error.to_string();
            assert!(said.contains("the index block encoding PREFIX_TREE") && said.contains("no entries"), "{said}");
        }
        other => panic!("{other:?}"),
    }
}
