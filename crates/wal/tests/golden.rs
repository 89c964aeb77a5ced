//! Files that HBase 2.6.4 wrote, read entry by entry; and the plain one written again, byte for byte.

use basalt_wal::{ClusterId, Entry, EntryKey, Error, FileWriter, Reader, ReplicationScope};
use base::{SeqId, TimestampMs};
use fs::{FilePath, MemVolume, Volume};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

fn golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/wal").join(name);
    let root = fs::LocalVolume::open(path.parent().expect("a directory")).expect("open");
    root.read(&FilePath::new(path.file_name().and_then(|n| n.to_str()).expect("a name"))).expect("the golden file")
}

fn lines(name: &str) -> Vec<Value> {
    let text = String::from_utf8(golden(name)).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("json")).collect()
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("hex");
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex")).collect()
}

/// The value of a cell of the listing: hex, or the formula for long ones.
fn value_of(cell: &Value) -> Vec<u8> {
    let Some(fill) = cell.get("v_fill") else { return hex(&cell["v"]) };
    let number = |i: usize| fill[i].as_u64().expect("a number");
    let (len, a, b) = (number(0), number(1), number(2));
    let byte = |i: u64| match i {
        0 => a as u8,
        1 => b as u8,
        _ => (a + i * b + (i >> 7) * 13 + (i >> 12) * (i & 7)) as u8,
    };
    (0..len).map(byte).collect()
}

fn tags_of(cell: &Value) -> Vec<u8> {
    let mut tags = Vec::new();
    for tag in cell.get("tags").and_then(Value::as_array).into_iter().flatten() {
        cell::tag::write(&mut tags, tag[0].as_u64().expect("a type") as u8, &hex(&tag[1]));
    }
    tags
}

fn uuid(text: &str) -> ClusterId {
    let bits = u128::from_str_radix(&text.replace('-', ""), 16).expect("a UUID");
    ClusterId { most_sig_bits: (bits >> 64) as u64, least_sig_bits: bits as u64 }
}

fn clusters_of(line: &Value) -> Vec<ClusterId> {
    line["clusters"].as_array().expect("clusters").iter().map(|c| uuid(c.as_str().expect("text"))).collect()
}

fn scopes_of(line: &Value) -> Vec<(Vec<u8>, i32)> {
    let scopes = line["scopes"].as_object().expect("scopes");
    scopes.iter().map(|(f, s)| (hex(&Value::String(f.clone())), s.as_i64().expect("a number") as i32)).collect()
}

fn check(entry: &Entry, line: &Value, at: &str) {
    let key = &entry.key;
    assert_eq!(&*key.region, line["region"].as_str().expect("region"), "{at}");
    assert_eq!(&*key.table, line["table"].as_str().expect("table"), "{at}");
    assert_eq!(Some(key.seq_id.0), line["seq"].as_u64(), "{at}");
    assert_eq!(Some(key.write_time.0), line["write_time"].as_i64(), "{at}");
    let (group, nonce) = key.nonce.unwrap_or_default();
    assert_eq!((Some(group), Some(nonce)), (line["nonce_group"].as_u64(), line["nonce"].as_u64()), "{at}");
    assert_eq!(key.cluster_ids, clusters_of(line), "{at}");
    let scopes: Vec<_> = key.scopes.iter().map(|s| (s.family.to_vec(), s.scope)).collect();
    assert_eq!(scopes, scopes_of(line), "{at}");
    let cells = line["cells"].as_array().expect("cells");
    assert_eq!(entry.cells.len(), cells.len(), "{at}");
    for (cell, expected) in entry.cells.iter().zip(cells) {
        assert_eq!(cell.row(), hex(&expected["r"]), "{at}");
        assert_eq!(cell.family(), hex(&expected["f"]), "{at}");
        assert_eq!(cell.qualifier(), hex(&expected["q"]), "{at}");
        assert_eq!(Some(cell.timestamp()), expected["ts"].as_i64(), "{at}");
        assert_eq!(Some(u64::from(cell.type_code())), expected["t"].as_u64(), "{at}");
        assert!(cell.value() == value_of(expected), "{at}: another value");
        assert_eq!(cell.tags(), tags_of(expected), "{at}");
    }
}

fn volume_with(path: &FilePath, bytes: &[u8]) -> MemVolume {
    let volume = MemVolume::new();
    volume.put_file(path, bytes);
    volume
}

#[test]
fn every_variant_reads_as_listed() {
    let listing = lines("wal.entries.jsonl");
    for file in lines("manifest.jsonl") {
        let name = file["file"].as_str().expect("a name");
        let bytes = golden(name);
        let path = FilePath::new(format!("x/{name}"));
        let volume = volume_with(&path, &bytes);
        if name == "secure.wal" {
            let error = Reader::open(&volume, &path).err().expect("it is encrypted");
            assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains("secure.wal"), "{error}");
            continue;
        }
        let mut reader = Reader::open(&volume, &path).expect("open");
        let readable = file["entries_read_back"].as_u64().expect("a count") as usize;
        assert_eq!(Some(reader.has_trailer()), file["trailer_written"].as_bool(), "{name}");
        for (i, line) in listing.iter().take(readable).enumerate() {
            let entry = reader.next().unwrap_or_else(|e| panic!("{name} entry {i}: {e}")).expect("an entry");
            assert_eq!(Some(entry.offset), file["entry_offsets"][i].as_u64(), "{name} entry {i}");
            check(&entry, line, &format!("{name} entry {i}"));
        }
        assert!(reader.next().expect("the end").is_none(), "{name}");
        assert!(reader.next().expect("still the end").is_none(), "{name}");
    }
}

#[test]
fn the_plain_file_is_written_byte_for_byte() {
    let volume = MemVolume::new();
    let path = FilePath::new("plain.wal");
    let mut writer = FileWriter::create(&volume, &path, false).expect("create");
    for line in lines("wal.entries.jsonl") {
        let mut cells = cell::CellBuffer::new();
        for c in line["cells"].as_array().expect("cells") {
            let (row, family, qualifier) = (hex(&c["r"]), hex(&c["f"]), hex(&c["q"]));
            let (value, tags) = (value_of(c), tags_of(c));
            let spec = cell::CellSpec {
                row: &row,
                family: &family,
                qualifier: &qualifier,
                timestamp: c["ts"].as_i64().expect("a number"),
                type_code: c["t"].as_u64().expect("a number") as u8,
                value: &value,
                tags: &tags,
            };
            cells.push_spec(&spec, SeqId(0));
        }
        let region: Arc<str> = Arc::from(line["region"].as_str().expect("region"));
        let scopes = scopes_of(&line);
        let scopes: Vec<_> = scopes.iter().map(|(f, s)| ReplicationScope { family: &f[..], scope: *s }).collect();
        let (group, nonce) = (line["nonce_group"].as_u64().expect("group"), line["nonce"].as_u64().expect("nonce"));
        let clusters = clusters_of(&line);
        let key = EntryKey {
            region: &region,
            table: line["table"].as_str().expect("table"),
            seq_id: SeqId(line["seq"].as_u64().expect("seq")),
            write_time: TimestampMs(line["write_time"].as_i64().expect("time")),
            families: &[],
            nonce: Some((group, nonce)),
            scopes: &scopes,
            cluster_ids: &clusters,
        };
        writer.append(&key, cells.bytes(), cells.len()).expect("append");
    }
    writer.finish().expect("finish");
    assert!(volume.read(&path).expect("read") == golden("plain.wal"), "the bytes differ");
}

/// The markers in the file decode, and are written again as the same cells.
#[test]
fn markers_are_understood_and_written_alike() {
    use basalt_wal::marker::Marker;
    let path = FilePath::new("plain.wal");
    let volume = volume_with(&path, &golden("plain.wal"));
    let mut reader = Reader::open(&volume, &path).expect("open");
    let mut kinds = std::collections::BTreeSet::new();
    while let Some(entry) = reader.next().expect("next") {
        for cell in &entry.cells {
            let Some(marker) = Marker::decode(cell).expect("HBase's own message") else {
                assert!(!entry.is_marker());
                continue;
            };
            assert!(entry.is_marker());
            let mut again = cell::CellBuffer::new();
            marker.write(cell.row(), cell.timestamp(), &mut again);
            assert_eq!(again.get(0).bytes(), cell.bytes());
            kinds.insert(format!("{marker:?}").split('(').next().map(str::to_owned));
        }
    }
    assert!(!kinds.is_empty());
    assert_eq!(basalt_wal::marker::row_for_region(b""), b"\0");
}

/// However the file is cut: whole entries, then the end; never an error, never a wrong entry.
#[test]
fn every_cut_of_an_unclosed_file_is_a_clean_end() {
    let listing = lines("wal.entries.jsonl");
    for name in ["plain.wal", "dict.wal", "value-gz.wal"] {
        let file = lines("manifest.jsonl").into_iter().find(|f| f["file"] == *name).expect("listed");
        let offsets: Vec<u64> =
            file["entry_offsets"].as_array().expect("offsets").iter().filter_map(Value::as_u64).collect();
        let (bytes, path) = (golden(name), FilePath::new(name));
        let step = if std::env::var_os("BASALT_LONG_TESTS").is_some() { 1 } else { 97 };
        let short = (0..600).chain((600..bytes.len()).step_by(step));
        for cut in short {
            let volume = volume_with(&path, &bytes[..cut]);
            let mut reader = Reader::open(&volume, &path).unwrap_or_else(|e| panic!("{name} cut at {cut}: {e}"));
            let whole = offsets
                .iter()
                .skip(1)
                .chain(file["end_of_entries"].as_u64().iter())
                .filter(|o| **o <= cut as u64)
                .count();
            for (i, line) in listing.iter().take(whole).enumerate() {
                let entry = reader.next().unwrap_or_else(|e| panic!("{name} cut at {cut}: {e}"));
                check(&entry.expect("a whole entry"), line, &format!("{name} cut at {cut} entry {i}"));
            }
            let end = reader.next().unwrap_or_else(|e| panic!("{name} cut at {cut}: {e}"));
            assert!(end.is_none(), "{name} cut at {cut}");
        }
    }
}

/// A reader that follows a growing file gives each entry once, with dictionaries too (HBASE-27621).
#[test]
fn a_growing_file_is_followed() {
    for name in ["plain.wal", "dict.wal", "value-lz4.wal"] {
        let (bytes, path, listing) = (golden(name), FilePath::new(name), lines("wal.entries.jsonl"));
        let volume = MemVolume::new();
        let mut file = volume.create(&path).expect("create");
        let mut reader = Reader::open(&volume, &path).expect("open");
        let (rng, mut at, mut seen) = (base::Rng::seeded(11), 0, 0);
        while at < bytes.len() {
            let more = (1 + rng.below(700) as usize).min(bytes.len() - at);
            file.append(&bytes[at..at + more]).expect("append");
            file.flush().expect("flush");
            at += more;
            assert!(reader.refresh().expect("refresh"));
            while let Some(entry) = reader.next().expect("next") {
                check(&entry, &listing[seen], &format!("{name} entry {seen}"));
                seen += 1;
            }
        }
        assert_eq!((seen, reader.has_trailer()), (listing.len(), true), "{name}");
    }
}

/// No bytes make the reader panic or take memory by the length they claim; a closed file is whole or an error.
#[test]
fn flipped_bits_never_panic() {
    for name in ["plain.wal", "dict.wal", "dict-notags.wal", "value-gz.wal", "value-lz4.wal", "value-snappy.wal"] {
        let (bytes, path) = (golden(name), FilePath::new(name));
        let rounds = if std::env::var_os("BASALT_LONG_TESTS").is_some() { 20_000 } else { 150 };
        for seed in 0..rounds {
            let rng = base::Rng::seeded(seed);
            let mut bytes = bytes.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(if rng.one_in(2) { 2000 } else { bytes.len() as u64 }) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            let volume = volume_with(&path, &bytes);
            let Ok(mut reader) = Reader::open(&volume, &path) else { continue };
            let mut count = 0;
            while let Ok(Some(_)) = reader.next() {
                count += 1;
                assert!(count < 10_000, "{name} seed {seed}: no end");
            }
        }
    }
}

/// Made by `tests/golden/hfile/MakeMore.java`: `WALEdit#createBulkLoadEvent` of HBase 2.6.4.
#[test]
fn the_marker_of_a_bulk_load_is_written_as_hbase_writes_it() {
    use basalt_wal::marker::Marker;
    let theirs = hex(&Value::String(String::from_utf8(golden("bulk-load-marker.hex")).expect("digits").trim().into()));
    let cell = cell::CellRef::parse(&theirs, SeqId(0)).expect("a KeyValue");
    let marker = Marker::decode(cell).expect("HBase's own message").expect("a marker");
    let Marker::BulkLoad(load) = &marker else { panic!("{marker:?}") };
    let files: Vec<(&[u8], usize)> = load.stores.iter().map(|s| (&s.family_name[..], s.store_file.len())).collect();
    assert_eq!((files, load.bulkload_seq_num), (vec![(&b"f"[..], 2), (&b"g"[..], 1)], 7));
    assert_eq!((load.replicate, &load.cluster_ids[..]), (Some(true), &["here".to_owned()][..]));
    assert_eq!(load.stores[0].store_file[0], "0123456789abcdef0123456789abcdef_SeqId_7_");
    let mut again = cell::CellBuffer::new();
    marker.write(cell.row(), cell.timestamp(), &mut again);
    assert_eq!(again.get(0).bytes(), &theirs[..]);
}
