//! The cells of every golden HFile written again: without compression byte for byte the file HBase wrote, with
//! compression the same blocks up to the compressor's own choices. `BASALT_TEST_OUTPUT=dir` keeps the files, for HBase's
//! own tools to read (`HFilePrettyPrinter -k -v -p -f`).

use crate::common::*;
use basalt_hfile::*;
use base::{SeqId, TimestampMs};
use cell::Order;
use fs::{FilePath, LocalVolume, MemVolume, Volume};
use serde_json::Value;

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line.get(name).and_then(Value::as_str).unwrap_or("")
}

fn number(conf: &Value, key: &str, default: u32) -> u32 {
    conf.get(key).and_then(Value::as_str).map_or(default, |t| t.parse().expect(key))
}

fn info<'a>(line: &'a Value, key: &str) -> Option<&'a str> {
    line["file_info"].get(key).and_then(Value::as_str)
}

fn long(line: &Value, key: &str) -> Option<i64> {
    info(line, key).map(|t| i64::from_be_bytes(hex(t).try_into().expect("8 bytes")))
}

/// What the vector was written with, as its manifest says.
fn options(line: &Value) -> WriterOptions {
    let (file, conf, defaults) = (text(line, "file"), &line["conf"], WriterOptions::default());
    let (checksum, bytes_per_checksum) = match file {
        "cksum-null.hfile" => (ChecksumType::Null, 16 * 1024),
        "cksum-crc32.hfile" => (ChecksumType::Crc32, 512),
        _ => (ChecksumType::Crc32c, 16 * 1024),
    };
    WriterOptions {
        compression: Compression::parse(text(line, "compression")).expect("compression"),
        encoding: Encoding::parse(text(line, "encoding")).expect("encoding"),
        // The manifest does not say it for two files; its block list does.
        block_size_bytes: match line["block_size_target"].as_u64() {
            Some(size) => size as u32,
            None if file.starts_with("meta") => 128,
            None => 65536,
        },
        bloom: BloomType::parse(text(line, "bloom")).expect("bloom"),
        bloom_prefix_len: 6,
        bloom_block_size_bytes: number(conf, "io.storefile.bloom.block.size", defaults.bloom_block_size_bytes),
        bloom_hash: HashType::parse(conf["hbase.hash.type"].as_str().unwrap_or("murmur")).expect("hash"),
        checksum,
        bytes_per_checksum,
        index_block_size_bytes: number(conf, "hfile.index.block.max.size", defaults.index_block_size_bytes),
        index_min_entries: number(conf, "hfile.index.block.min.entries", defaults.index_min_entries),
        order: if file.starts_with("meta") { Order::Meta } else { Order::User },
        include_mvcc: info(line, "KEY_VALUE_VERSION").is_some(),
        include_tags: info(line, "hfile.MAX_TAGS_LEN").is_some(),
        compress_tags: info(line, "hfile.TAGS_COMPRESSED") == Some("ff"),
        create_time_ms: TimestampMs(long(line, "hfile.CREATE_TIME_TS").expect("create time")),
        ..defaults
    }
}

fn metadata(line: &Value) -> StoreMetadata {
    StoreMetadata {
        max_seq_id: long(line, "MAX_SEQ_ID_KEY").map(|id| SeqId(id as u64)),
        major_compaction: info(line, "MAJOR_COMPACTION_KEY") == Some("ff"),
        historical: false,
        exclude_from_minor: info(line, "EXCLUDE_FROM_MINOR_COMPACTION").map(|t| t == "ff"),
        compacted_files: Vec::new(),
        ..StoreMetadata::default()
    }
}

#[test]
fn every_vector_is_written_as_hbase_wrote_it() {
    let (mut same, mut others) = (0, Vec::new());
    for line in manifest() {
        let file = text(&line, "file");
        if file == "aes.hfile" {
            continue;
        }
        let cells = listed(text(&line, "cells"));
        let volume = MemVolume::new();
        let path = FilePath::new("written");
        let mut writer = Writer::create(&volume, &path, options(&line)).expect("create");
        for name in ["BULKLOAD_SOURCE_TASK", "BULKLOAD_TIMESTAMP"] {
            if let Some(value) = info(&line, name) {
                writer.append_file_info(name.as_bytes(), &hex(value));
            }
        }
        cells.iter().for_each(|cell| writer.append(cell.cell()).expect("append"));
        let finished = writer.finish(&metadata(&line)).expect("finish");
        let written = volume.read(&path).expect("read");
        assert_eq!(written.len() as u64, finished.len_bytes, "{file}");
        if let Ok(dir) = std::env::var("BASALT_TEST_OUTPUT") {
            let kept = LocalVolume::open(std::path::Path::new(&dir)).expect("BASALT_TEST_OUTPUT");
            kept.publish(&FilePath::new(file), &written).expect("keep");
        }
        let golden = golden(&format!("hfile/{file}"));
        if written == golden {
            same += 1;
        } else if text(&line, "compression") == "NONE" {
            let at = written.iter().zip(&golden).take_while(|(a, b)| a == b).count();
            panic!("{file}: differs from byte {at} on ({} and {} bytes)", written.len(), golden.len());
        } else {
            others.push(file.to_owned());
        }
        check_written(file, &line, &volume, &path, &cells);
    }
    println!("{same} files are byte for byte the same; not so, for their compressor: {others:?}");
    assert!(same >= 20, "{same} files are the same");
}

fn check_written(file: &str, line: &Value, volume: &MemVolume, path: &FilePath, cells: &[Owned]) {
    let reader = Reader::open(volume, path, ReaderContext::default()).unwrap_or_else(|e| panic!("{file}: {e}"));
    let mut wanted = cells.to_vec();
    if info(line, "KEY_VALUE_VERSION").is_none() {
        wanted.iter_mut().for_each(|cell| cell.seq_id = 0);
    }
    assert!(all_cells(&reader, ScanOptions::default()).expect(file) == wanted, "{file}");
    for (key, value) in line["file_info"].as_object().expect("file_info") {
        let got = reader.file_info().get(key.as_bytes()).map(|v| v.to_vec());
        assert_eq!(got, value.as_str().map(hex), "{file} {key}");
    }
    assert_eq!(reader.file_info().len(), line["file_info"].as_object().map_or(0, |o| o.len()), "{file}");
    let trailer = &line["trailer"];
    assert_eq!(Some(reader.uncompressed_bytes()), trailer["totalUncompressedBytes"].as_u64(), "{file}");
    assert_eq!(Some(reader.index_bytes()), trailer["uncompressedDataIndexSize"].as_u64(), "{file}");
}
