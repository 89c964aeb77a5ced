//! With which codec files are written: the one that the family names, else the server's default where it pays.

use crate::common::*;
use basalt_region::{CloseMode, CompactionKind, Region, Throttle, Unthrottled};
use base::{Config, Rng};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use fs::{FilePath, MemVolume, Volume};
use hfile::{Compression, Reader, ReaderContext};
use model::{FamilyDescriptor, Mutation, MutationKind, RegionInfo, Scan, TableDescriptor, TableName};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NOW: i64 = 1_700_000_000_000;
const KEY: &str = "basalt.hfile.compression.default";

fn server(default: Option<&str>) -> Server {
    let mut config = Config::default();
    if let Some(codec) = default {
        config.set(KEY, codec);
    }
    Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume")
}

/// As PerformanceEvaluation makes them: letters in runs of eight.
fn letters(rng: &Rng, len: usize) -> Vec<u8> {
    (0..len / 8).flat_map(|_| [b'A' + rng.below(26) as u8; 8]).collect()
}

/// What nothing makes smaller.
fn noise(rng: &Rng, len: usize) -> Vec<u8> {
    (0..len / 8).flat_map(|_| rng.next_u64().to_be_bytes()).collect()
}

fn fill(region: &Region, rows: std::ops::Range<u64>, value: impl Fn() -> Vec<u8>) {
    let put = |n: u64| {
        let (row, value) = (format!("{n:026}"), value());
        let spec = CellSpec {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"0",
            timestamp: NOW,
            type_code: CellType::Put.code(),
            value: &value,
            tags: b"",
        };
        Mutation::new(MutationKind::Put, Bytes::from(row.clone()), CellBlock::from_specs([spec]))
    };
    write(region, &rows.map(put).collect::<Vec<_>>());
}

fn open(volume: &dyn Volume, path: &FilePath) -> Arc<Reader> {
    Reader::open(volume, path, ReaderContext::default()).expect("a whole file")
}

/// Codec and length of each store file.
fn files(server: &Server, region: &Region) -> Vec<(Compression, u64)> {
    let paths = region.store_file_paths(b"f").expect("the family");
    let one = |path: &String| {
        let path = &FilePath::new(path);
        let file = open(&server.volume, path);
        file.read_through().expect("every block unpacks");
        (file.compression(), server.volume.open(path).and_then(|file| file.len()).expect("there"))
    };
    paths.iter().map(one).collect()
}

fn codecs(server: &Server, region: &Region) -> Vec<Compression> {
    files(server, region).into_iter().map(|(codec, _)| codec).collect()
}

fn minor_compact(region: &Arc<Region>) {
    let job = region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open").expect("enough files");
    assert!(!job.is_major(), "what was written in between has no part in it");
    assert!(region.compact(job, &Unthrottled).expect("compacted").completed);
}

#[test]
fn a_family_without_a_codec_takes_less_than_half_the_bytes() {
    let bytes = |default: Option<&str>| {
        let (server, rng) = (server(default), Rng::seeded(5));
        let region = server.table([family("f")]);
        let mut after_flush = 0;
        for round in 0..3 {
            fill(&region, round * 300..(round + 1) * 300, || letters(&rng, 1000));
            flush(&region);
            after_flush = files(&server, &region).iter().map(|(_, len)| len).sum();
        }
        major_compact(&region);
        let compacted = files(&server, &region);
        assert_eq!(compacted.len(), 1);
        let rows = scan(&region, &Scan::default(), NOW);
        (compacted[0].0, after_flush, compacted[0].1, rows)
    };
    let (plain, packed) = (bytes(Some("NONE")), bytes(None));
    assert_eq!((plain.0, packed.0), (Compression::None, Compression::Snappy));
    assert!(packed.1 * 2 < plain.1 && packed.2 * 2 < plain.2, "{:?} against {:?}", (packed.1, packed.2), plain.2);
    assert_eq!(packed.3.len(), 900);
    assert!(packed.3 == plain.3, "the same rows");
}

#[test]
fn a_file_that_hardly_shrinks_is_plain_and_no_longer_than_without() {
    let len = |default: &str| {
        let (server, rng) = (server(Some(default)), Rng::seeded(6));
        let region = server.table([family("f")]);
        fill(&region, 0..300, || noise(&rng, 1000));
        flush(&region);
        fill(&region, 300..600, || noise(&rng, 1000));
        flush(&region);
        assert_eq!(codecs(&server, &region), [Compression::None; 2], "{default}: flushed");
        major_compact(&region);
        let files = files(&server, &region);
        assert_eq!(files[0].0, Compression::None, "{default}: compacted");
        files[0].1
    };
    let plain = len("NONE");
    for codec in ["SNAPPY", "LZ4", "ZSTD", "GZ", "BZIP2", "LZMA", "BROTLI", "LZO"] {
        assert_eq!(len(codec), plain, "{codec}");
    }
}

/// An eighth of the first block, plus or minus.
#[test]
fn a_file_is_packed_where_its_first_block_loses_an_eighth() {
    let codec = |noise_in_64: usize| {
        let (server, rng) = (server(None), Rng::seeded(7));
        let region = server.table([family("f")]);
        let value = || {
            let mut value = noise(&rng, 64 * 64);
            value.chunks_mut(64).for_each(|chunk| chunk[noise_in_64..].fill(b'-'));
            value
        };
        fill(&region, 0..16, value);
        // What comes after the first block has no say.
        fill(&region, 100..300, || vec![b'-'; 1000]);
        flush(&region);
        codecs(&server, &region)[0]
    };
    assert_eq!(codec(64), Compression::None);
    assert_eq!(codec(56), Compression::None, "what the copies cost");
    assert_eq!(codec(48), Compression::Snappy);
    assert_eq!(codec(8), Compression::Snappy);
}

#[test]
fn a_file_without_cells_is_plain() {
    let server = server(None);
    let region = server.table([family("f")]);
    fill(&region, 0..10, || vec![b'-'; 1000]);
    flush(&region);
    let delete = |n: u64| delete(&format!("{n:026}"), "f", "0", NOW, CellType::DeleteColumn);
    write(&region, &(0..10).map(delete).collect::<Vec<_>>());
    flush(&region);
    major_compact(&region);
    assert_eq!(codecs(&server, &region), [Compression::None]);
    assert!(scan(&region, &Scan::default(), NOW).is_empty());
}

#[test]
fn a_codec_that_the_family_names_is_obeyed() {
    let packs = |codec: &'static str| family("f").with("COMPRESSION", codec);
    let after = |family: FamilyDescriptor, default: Option<&str>, noisy: bool| {
        let (server, rng) = (server(default), Rng::seeded(8));
        let region = server.table([family]);
        let value = || if noisy { noise(&rng, 1000) } else { letters(&rng, 1000) };
        // The first file is too large for a minor compaction of those that come after it.
        fill(&region, 0..800, value);
        flush(&region);
        let flushed = codecs(&server, &region)[0];
        for round in 8..11 {
            fill(&region, round * 100..(round * 100 + 10), value);
            flush(&region);
        }
        minor_compact(&region);
        let minor = codecs(&server, &region).into_iter().next_back().expect("a file");
        major_compact(&region);
        (flushed, minor, codecs(&server, &region)[0])
    };
    let all = |codec| (codec, codec, codec);
    let of = |family: FamilyDescriptor| {
        let mut family = family;
        let small = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        family.configuration.extend([
            small("hbase.hstore.compaction.min.size", "1"),
            small("hbase.hstore.compaction.max.size", "60000"),
            small("hbase.hstore.compaction.ratio", "2"),
        ]);
        family
    };
    // Also where it does not pay.
    assert_eq!(after(of(packs("GZ")), None, false), all(Compression::Gz));
    assert_eq!(after(of(packs("LZ4")), None, true), all(Compression::Lz4));
    assert_eq!(after(of(packs("ZSTD")), Some("NONE"), false), all(Compression::Zstd));
    assert_eq!(after(of(packs("NONE")), None, false), all(Compression::Snappy));
    assert_eq!(after(of(family("f")), Some("zstd"), false), all(Compression::Zstd), "in letters of either case");
    assert_eq!(after(of(family("f")), Some("NONE"), false), all(Compression::None));
    let compacts = |key: &'static str, codec: &'static str| of(family("f").with(key, codec));
    let (plain, snappy, gz) = (Compression::None, Compression::Snappy, Compression::Gz);
    assert_eq!(after(compacts("COMPRESSION_COMPACT", "GZ"), None, false), (snappy, gz, gz));
    assert_eq!(after(compacts("COMPRESSION_COMPACT", "NONE"), None, false), (snappy, plain, plain));
    assert_eq!(after(compacts("COMPRESSION_COMPACT_MAJOR", "GZ"), None, false), (snappy, snappy, gz));
    assert_eq!(after(compacts("COMPRESSION_COMPACT_MINOR", "GZ"), None, false), (snappy, gz, snappy));
    // A table or a family may say otherwise than the server.
    let mut own = of(family("f"));
    own.configuration.insert(KEY.to_owned(), "NONE".to_owned());
    assert_eq!(after(own, None, false), all(plain));
}

#[test]
fn tables_of_hbase_itself_stay_plain() {
    let codec_of = |name: &str, codec: &'static str| {
        let server = server(None);
        let name = TableName::parse(name).expect("legal");
        let info = RegionInfo::new(name.clone(), Bytes::new(), Bytes::new(), 1);
        let table = Arc::new(TableDescriptor::new(name, [family("f").with("COMPRESSION", codec)]));
        let region = server.open(&info, &table).expect("opened");
        for round in 0..2 {
            fill(&region, round * 300..(round + 1) * 300, || vec![b'v'; 100]);
            flush(&region);
        }
        let flushed = codecs(&server, &region)[0];
        major_compact(&region);
        assert_eq!(codecs(&server, &region), [flushed], "compacted as flushed");
        flushed
    };
    for name in ["hbase:meta", "hbase:namespace", "hbase:acl", "hbase:quota"] {
        assert_eq!(codec_of(name, "NONE"), Compression::None, "{name}");
    }
    assert_eq!(codec_of("hbase:quota", "GZ"), Compression::Gz, "who names a codec gets it");
    assert_eq!(codec_of("ns:meta", "NONE"), Compression::Snappy);
}

/// A MOB file is judged by its own first value.
#[test]
fn mob_files_are_packed_where_it_pays() {
    let codecs_with = |value: &dyn Fn(&Rng) -> Vec<u8>| {
        let (server, rng) = (server(None), Rng::seeded(9));
        let region = server.table([family("f").with("IS_MOB", "true").with("MOB_THRESHOLD", "100000")]);
        fill(&region, 0..5, || value(&rng));
        fill(&region, 5..500, || vec![b'v'; 100]);
        flush(&region);
        let dir = rootdir::mob_family_dir(&table_name(), b"f");
        let entries = server.volume.list(&dir).expect("MOB files");
        assert_eq!(entries.len(), 1);
        (open(&server.volume, &dir.join(&entries[0].name)).compression(), codecs(&server, &region))
    };
    let documents = codecs_with(&|rng| letters(rng, 200_000));
    assert_eq!(documents, (Compression::Snappy, vec![Compression::Snappy]));
    let pictures = codecs_with(&|rng| noise(rng, 200_000));
    assert_eq!(pictures, (Compression::None, vec![Compression::Snappy]));
}

/// As HBase counts: by what is rewritten, not by how small it gets. Else packed files would be compacted without a pause.
#[test]
fn a_compaction_is_paced_by_bytes_before_compression() {
    #[derive(Default)]
    struct Count(AtomicU64);
    impl Throttle for Count {
        fn wrote(&self, bytes: u64) -> bool {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            true
        }
    }
    let counted = |default: &str| {
        let (server, rng) = (server(Some(default)), Rng::seeded(11));
        let region = server.table([family("f")]);
        for round in 0..2 {
            fill(&region, round * 1000..(round + 1) * 1000, || letters(&rng, 1000));
            flush(&region);
        }
        let count = Count::default();
        let job = region.select_compaction(Some(b"f"), CompactionKind::Major).expect("open").expect("two files");
        let outcome = region.compact(job, &count).expect("compacted");
        (count.0.into_inner(), outcome.output_bytes)
    };
    let (plain, packed) = (counted("NONE"), counted("SNAPPY"));
    assert!(packed.1 * 2 < plain.1);
    assert!(plain.0 > 1_900_000 && packed.0.abs_diff(plain.0) < 70_000, "{plain:?} {packed:?}");
}

/// What `docs/operations/migration.md` asks for before a move back: NONE, then a major compaction.
#[test]
fn a_major_compaction_unpacks_when_the_default_was_taken_back() {
    let (before, rng) = (server(None), Rng::seeded(10));
    let region = before.table([family("f")]);
    fill(&region, 0..100, || letters(&rng, 1000));
    flush(&region);
    major_compact(&region);
    assert_eq!(codecs(&before, &region), [Compression::Snappy]);
    let rows = scan(&region, &Scan::default(), NOW);
    region.close(basalt_region::CloseMode::Flush).expect("closed");
    let mut config = Config::default();
    config.set(KEY, "NONE");
    let after = Server::try_on(before.volume.clone(), NOW + 1, &config, 2).expect("the same volume");
    let region = after.table([family("f")]);
    assert_eq!(codecs(&after, &region), [Compression::Snappy], "opened as it is");
    major_compact(&region);
    assert_eq!(codecs(&after, &region)[..], [Compression::None]);
    assert_eq!(scan(&region, &Scan::default(), NOW), rows);
}

#[test]
fn new_files_are_written_as_the_settings_and_the_tables_configuration_say() {
    let bloom_bytes = |of_server: Option<&str>, of_family: Option<&str>| {
        let (key, mut config) = ("io.storefile.bloom.error.rate", Config::default());
        if let Some(rate) = of_server {
            config.set(key, rate);
        }
        let server = Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume");
        let mut family = family("f");
        if let Some(rate) = of_family {
            family.configuration.insert(key.to_owned(), rate.to_owned());
        }
        let region = server.table([family]);
        fill(&region, 0..2000, || b"value".to_vec());
        flush(&region);
        let paths = region.store_file_paths(b"f").expect("the family");
        open(&server.volume, &FilePath::new(&paths[0])).bloom_bytes()
    };
    let usual = bloom_bytes(None, None);
    // Three times the bits for a key, folded down to a power of two.
    let exact = bloom_bytes(Some("0.000001"), None);
    assert!(exact > usual, "{exact} bytes against {usual}");
    assert_eq!(bloom_bytes(None, Some("0.000001")), exact);
    assert_eq!(bloom_bytes(Some("0.000001"), Some("0.01")), usual);
}

/// The dictionary is the family's word, the table's or the site's; flushes, compactions, splits and other openings use it.
#[test]
fn a_store_packs_and_unpacks_with_its_dictionary() {
    const KEY: &str = "hbase.io.compress.zstd.dictionary";
    let server = Server::new(1_700_000_000_000);
    let place = FilePath::new("dictionaries/readings");
    let bytes = include_bytes!("../../../tests/golden/hfile/zstd.dictionary");
    server.volume.create_dir_all_durable(&place.parent()).expect("memory");
    server.volume.publish(&place, bytes).expect("memory");
    let packed = || family("f").with("COMPRESSION", "ZSTD").with("BLOCKSIZE", "1024");
    let table = |family: model::FamilyDescriptor, of_table: Option<&str>| {
        let mut table = TableDescriptor::new(table_name(), [family]);
        of_table.map(|path| table.configuration.insert(KEY.into(), path.into()));
        Arc::new(table)
    };
    let with = table(packed().with(KEY, place.as_str()), None);
    let region = server.open(&whole_table(), &with).expect("opens");
    for round in 0..2 {
        for row in 0..200 {
            let value =
                format!("{{\"sensor\":\"{}\",\"place\":\"hall {}\",\"celsius\":{row}.{round}}}", row % 7, row % 11);
            write(&region, &[put(&format!("r{row:03}"), "f", "q", round + 1, &value)]);
        }
        flush(&region);
    }
    let before = scan(&region, &Scan::default(), 0);
    assert_eq!(before.concat().len(), 200);
    major_compact(&region);
    assert_eq!(scan(&region, &Scan::default(), 0), before);
    let path = region.store_file_paths(b"f").expect("a family").remove(0);
    let plain = hfile::Reader::open(&*server.env.volume, &FilePath::new(&path), hfile::ReaderContext::default());
    assert!(plain.expect_err("it is packed with the dictionary").to_string().contains(KEY));
    region.close(CloseMode::Flush).expect("closed");

    // The table may say it as well as the family.
    let region = server.open(&whole_table(), &table(packed(), Some(place.as_str()))).expect("opens");
    assert_eq!(scan(&region, &Scan::default(), 0), before);
    region.close(CloseMode::Flush).expect("closed");

    // Without it, or where it is not, nothing opens, and the message says what is missing and where.
    let refused = |table: Arc<TableDescriptor>| server.open(&whole_table(), &table).expect_err("refused").to_string();
    let unnamed = refused(table(packed(), None));
    assert!(unnamed.contains(KEY) && unnamed.contains("none is named"), "{unnamed}");
    let missing = refused(table(packed().with(KEY, "dictionaries/gone"), None));
    assert!(missing.contains("Unable to load dictionary at dictionaries/gone"), "{missing}");

    let [bottom, top] = [(Bytes::new(), "r100".into()), ("r100".into(), Bytes::new())]
        .map(|(start, end)| model::RegionInfo::new(table_name(), start, end, whole_table().region_id + 1));
    basalt_region::split::write_daughters(&server.env, &whole_table(), &with, [&bottom, &top]).expect("split");
    for daughter in [&bottom, &top] {
        let region = server.open(daughter, &with).expect("opens");
        major_compact(&region);
        assert_eq!(scan(&region, &Scan::default(), 0).concat().len(), 100);
    }
}
