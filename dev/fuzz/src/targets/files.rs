//! The large files: HFiles and logs; and the codecs of theirs that few tables have.

use super::{take_byte, volume_with};
use crate::{Target, golden};
use base::SeqId;
use cell::{CellRef, CellSpec, CellType, KeyRef};
use compression::Codec;
use fs::{FilePath, MemVolume, Volume};
use hfile::{
    BlockCache, BloomType, ChecksumType, Compression, Encoding, Half, HalfSide, Reader, ReaderContext, Residency,
    ScanOptions, Scanner, StoreMetadata, Writer, WriterOptions,
};
use std::sync::Arc;

pub(super) const HFILE: Target = Target {
    name: "hfile",
    about: "an HFile, opened, scanned, searched, its Bloom filters asked, whole and by halves",
    max_len: 8192,
    words: &[
        "DATABLK*",
        "DATABLKE",
        "IDXROOT2",
        "IDXINTE2",
        "IDXLEAF2",
        "METABLKc",
        "BLMFBLK2",
        "BLMFMET2",
        "DFBLMET2",
        "FILEINF2",
        "TRABLK\\\"$",
        "PBUF",
        "hfile.LASTKEY",
        "DATA_BLOCK_ENCODING",
        "MAX_SEQ_ID_KEY",
    ],
    seeds: hfile_seeds,
    run: hfile,
};

pub(super) const CODECS: Target = Target {
    name: "codecs",
    about: "BZIP2, LZMA, BROTLI and LZO: what is unpacked within its limit, packed again and unpacked to the same",
    max_len: 4096,
    words: &["BZh9", "1AY&SY"],
    seeds: codec_seeds,
    run: codecs,
};

pub(super) const WAL: Target = Target {
    name: "wal",
    about: "a log, plain and compressed, its entries and markers; recovered edits",
    max_len: 4096,
    words: &["PWAL", "LAWP", "HBASE::FLUSH", "HBASE::REGION_EVENT", "METAFAMILY", "\\xff\\xff\\xff\\xff"],
    seeds: wal_seeds,
    run: wal,
};

/// More cells than any input has; an endless scan is a finding.
const CELLS_MAX: usize = 1 << 20;

fn path() -> FilePath {
    FilePath::new("d/file")
}

/// A trailer is 4096 bytes, nearly all of them zeros; an input has only the others, and their number at its end.
fn unpack(data: &[u8]) -> Vec<u8> {
    const TRAILER: usize = 4096;
    let Some((rest, version)) = data.split_last_chunk::<4>() else { return data.to_vec() };
    let Some((rest, len)) = rest.split_last_chunk::<2>() else { return data.to_vec() };
    let len = usize::from(u16::from_be_bytes(*len)).min(rest.len()).min(TRAILER - 4);
    let mut whole = rest.to_vec();
    whole.resize(rest.len() - len + TRAILER - 4, 0);
    whole.extend_from_slice(version);
    whole
}

/// What [`unpack`] reads.
fn pack(file: &[u8]) -> Vec<u8> {
    let (body, trailer) = file.split_at(file.len() - 4096);
    let used = trailer[..4092].iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    let mut packed = body.to_vec();
    packed.extend_from_slice(&trailer[..used]);
    packed.extend_from_slice(&(used as u16).to_be_bytes());
    packed.extend_from_slice(&trailer[4092..]);
    packed
}

fn drain(scanner: &mut Scanner, mut more: bool, keys: &mut Vec<Vec<u8>>) -> hfile::Result<()> {
    let mut count = 0;
    while more {
        let cell = scanner.current().expect("positioned");
        CellRef::parse_shape(cell.bytes(), cell.seq_id()).expect("a cell that was shown is one");
        if count % 5 == 0 && keys.len() < 8 {
            keys.push(cell.key().bytes().to_vec());
        }
        let _ = (scanner.current_shared(), scanner.next_indexed_key());
        count += 1;
        assert!(count < CELLS_MAX, "a scan does not end");
        more = scanner.next()?;
    }
    Ok(())
}

fn hfile(data: &[u8]) {
    let volume = volume_with(&path(), &unpack(data));
    let mut keys = Vec::new();
    let mut split = None;
    for round in 0..3 {
        let half = match (round, &split) {
            (0, _) => None,
            (_, None) => return,
            (1, Some(key)) => Some(Half { side: HalfSide::Top, split_key: Clone::clone(key) }),
            (_, Some(key)) => Some(Half { side: HalfSide::Bottom, split_key: Clone::clone(key) }),
        };
        let cache = (round == 0).then(|| BlockCache::new(1 << 20));
        let context =
            ReaderContext { cache, half, override_seq_id: (round == 2).then_some(SeqId(9)), ..Default::default() };
        let Ok(reader) = Reader::open(&volume, &path(), context) else { return };
        look(&reader, &mut keys);
        if round == 0 {
            split = keys.get(keys.len() / 2).map(|key| super::shared(key));
        }
    }
}

/// Everything that one asks a file. Errors are fine.
fn look(reader: &Arc<Reader>, keys: &mut Vec<Vec<u8>>) {
    let _ = (reader.mid_key(), reader.time_range(), reader.max_seq_id(), reader.first_key(), reader.last_key());
    let _ = (reader.compacted_files(), reader.has_tags(), reader.heap_bytes(), reader.highest_seq_id());
    let _ =
        (reader.bulk_load_time_ms(), reader.create_time_ms(), reader.earliest_put_ts(), reader.delete_family_count());
    for name in ["TIMERANGE", "meta", ""] {
        let _ = reader.meta_block(name.as_bytes());
    }
    for (pread, compaction) in [(true, false), (false, true)] {
        let mut scanner = reader.scanner(ScanOptions { pread, compaction, ..ScanOptions::default() });
        if let Ok(more) = scanner.seek_to_first() {
            let _ = drain(&mut scanner, more, keys);
        }
    }
    let mut scanner = reader.scanner(ScanOptions::default());
    let mut asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    // A key before all and a key after all.
    let (low, high) = (b"\0\x01\x00\x01f\x7f\xff\xff\xff\xff\xff\xff\xff\x04", b"\0\x01\xff\x01f\0\0\0\0\0\0\0\0\x04");
    asked.extend([&low[..], &high[..]]);
    for key in asked {
        let key = KeyRef::parse(key).expect("a key");
        let _ = scanner.seek(key);
        let _ = scanner.reseek(key);
        let _ = scanner.next_indexed_key();
        let _ = scanner.seek_before(key);
        let _ = scanner.is_positioned() && scanner.next().is_ok();
        let _ = reader.may_contain_row(key.row(), Residency::MayRead);
        let _ = reader.may_contain_row_col(key.row(), key.qualifier(), Residency::MayRead);
        let _ = reader.may_contain_delete_family(key.row(), Residency::MayRead);
    }
}

/// More than what comes out of any seed.
const CODEC_LIMIT: usize = 20_000;

fn codecs(mut data: &[u8]) {
    let codec = Codec::ALL[usize::from(take_byte(&mut data)) % Codec::ALL.len()];
    let mut plain = Vec::new();
    if codec.unpack(data, CODEC_LIMIT, &mut plain).is_err() {
        return;
    }
    assert!(plain.len() <= CODEC_LIMIT + 1, "{codec:?}: {} bytes of {CODEC_LIMIT}", plain.len());
    let (mut packed, mut again) = (Vec::new(), Vec::new());
    codec.pack(&plain, &mut packed);
    codec.unpack(&packed, plain.len(), &mut again).expect("what was packed");
    assert!(again == plain, "{codec:?}: other bytes come back");
}

fn codec_seeds() -> Vec<Vec<u8>> {
    let mut plains = vec![Vec::new(), b"row".to_vec(), vec![b'x'; 3000]];
    plains.push((0..6000_u32).flat_map(|n| (n / 7).to_be_bytes()).take(9000).collect());
    // What hardly repeats.
    plains.push((0..1500_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect());
    let mut seeds = Vec::new();
    for (number, codec) in Codec::ALL.into_iter().enumerate() {
        for plain in &plains {
            let mut seed = vec![number as u8];
            codec.pack(plain, &mut seed);
            seeds.push(seed);
        }
    }
    seeds
}

/// Small files of every encoding, codec and Bloom filter, without checksums, which would keep changed bytes from the
/// decoders behind them; and of those that HBase wrote the ones that are small.
fn hfile_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, &encoding) in Encoding::ALL.iter().enumerate() {
        for (other, &compression) in Compression::ALL.iter().enumerate() {
            let turn = number + other;
            let options = WriterOptions {
                encoding,
                compression,
                include_tags: turn % 2 == 0,
                compress_tags: turn % 4 == 0,
                block_size_bytes: 200,
                index_block_size_bytes: 128,
                index_min_entries: 2,
                bloom: [BloomType::Row, BloomType::RowCol, BloomType::None][turn % 3],
                bloom_block_size_bytes: 64,
                checksum: ChecksumType::Null,
                ..WriterOptions::default()
            };
            let volume = MemVolume::new();
            volume.create_dir_all(&path().parent()).expect("a directory");
            let mut writer = Writer::create(&volume, &path(), options).expect("a file in memory");
            for n in 0..18_u64 {
                let (row, qualifier) = (format!("row{:02}", n / 3), format!("q{}", n % 3));
                let mut tags = Vec::new();
                cell::tag::write(&mut tags, 66, b"tag");
                let type_code = if n % 9 == 0 { CellType::DeleteFamily } else { CellType::Put }.code();
                let qualifier = if n % 9 == 0 { "" } else { &qualifier };
                let spec = CellSpec {
                    row: row.as_bytes(),
                    family: b"f",
                    qualifier: qualifier.as_bytes(),
                    timestamp: 1_700_000_000_000 - n as i64,
                    type_code,
                    value: b"some value",
                    tags: if turn % 2 == 0 && n % 4 == 0 { &tags } else { &[] },
                };
                let mut bytes = Vec::new();
                spec.write(&mut bytes);
                writer.append(CellRef::parse(&bytes, SeqId(n)).expect("a cell")).expect("in order");
            }
            writer.finish(&StoreMetadata::default()).expect("a file");
            seeds.push(pack(&volume.read(&path()).expect("a file")));
        }
    }
    for name in ["empty.hfile", "metacomparator.hfile", "mobref.hfile"] {
        seeds.push(pack(&golden::file(&format!("hfile/{name}"))));
    }
    seeds.retain(|seed| seed.len() <= HFILE.max_len);
    seeds
}

/// The first byte says how much of the file is there when it is opened; the rest comes while it is read.
fn wal(mut data: &[u8]) {
    let kept_back = usize::from(take_byte(&mut data)).min(data.len());
    let volume = volume_with(&path(), &data[..data.len() - kept_back]);
    let Ok(mut reader) = wal::Reader::open(&volume, &path()) else { return };
    for round in 0..2 {
        let mut last = 0;
        while let Ok(Some(entry)) = reader.next() {
            for cell in entry.cells.iter() {
                CellRef::parse_shape(cell.bytes(), cell.seq_id()).expect("a cell that was shown is one");
                let _ = wal::marker::Marker::decode(cell);
            }
            let _ = entry.is_marker();
            assert!(reader.position() > last, "an entry without bytes");
            last = reader.position();
        }
        if round == 0 {
            volume.put_file(&path(), data);
            let _ = reader.refresh();
        }
    }
}

fn wal_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for name in golden::names("wal", ".wal") {
        let bytes = golden::file(&format!("wal/{name}"));
        for (len, kept_back) in [(1200, 0), (3500, 0), (2000, 200)] {
            let mut seed = vec![kept_back];
            seed.extend_from_slice(&bytes[..bytes.len().min(len)]);
            seeds.push(seed);
        }
        // A short file that was closed: its beginning and its trailer.
        let mut seed = vec![0];
        seed.extend_from_slice(&bytes[..bytes.len().min(400)]);
        seed.extend_from_slice(&bytes[bytes.len().saturating_sub(8)..]);
        seeds.push(seed);
    }
    for name in golden::names("wal/recovered.edits", "") {
        let bytes = golden::file(&format!("wal/recovered.edits/{name}"));
        let mut seed = vec![0];
        seed.extend_from_slice(&bytes[..bytes.len().min(3000)]);
        seeds.push(seed);
    }
    seeds.push(own_log());
    seeds
}

/// A log as we write it, with the checksums in its entries.
fn own_log() -> Vec<u8> {
    let volume: Arc<dyn Volume> = Arc::new(MemVolume::new());
    let clock = Arc::new(base::ManualClock::new(1));
    let dir = FilePath::new("WALs/s");
    let log = wal::Log::create(volume.clone(), dir.clone(), "s", wal::LogOptions::default(), clock).expect("a log");
    log.close().expect("a closed log");
    let files = volume.list(&dir).expect("a directory");
    let bytes = files.first().map(|file| volume.read(&dir.join(&file.name)).expect("a file")).unwrap_or_default();
    [&[0], &bytes[..bytes.len().min(3000)]].concat()
}
