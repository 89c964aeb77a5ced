use super::*;
use std::path::Path;

fn golden() -> Vec<serde_json::Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/misc/cellblocks.jsonl");
    #[allow(clippy::disallowed_methods, reason = "a test reads its vectors from the tree")]
    let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn hex(value: &serde_json::Value) -> Bytes {
    let text = value.as_str().unwrap();
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

const LIMIT: u64 = 1 << 20;

#[test]
fn blocks_that_hbase_wrote_are_read_and_written_alike() {
    for (line, vector) in golden().iter().enumerate() {
        let with_tags = hex(&vector["KeyValueCodecWithTags"]);
        let wanted = vector["cells"].as_array().unwrap();
        // The vectors hold cells that the wire refuses (negative timestamps): those blocks must be refused.
        let legal = wanted.iter().all(|c| c["ts"].as_i64().unwrap() >= 0);
        let decoded = CellCodec::KeyValueWithTags.decode(with_tags.clone());
        if !legal {
            assert!(decoded.is_err(), "line {line} has a negative timestamp");
            continue;
        }
        let block = decoded.unwrap();
        assert_eq!(block.len(), wanted.len(), "line {line}");
        let without = hex(&vector["KeyValueCodec"]);
        assert_eq!(CellCodec::KeyValue.encode(with_tags.clone(), true), without, "line {line}");
        assert_eq!(CellCodec::KeyValue.decode(with_tags.clone()).unwrap().bytes(), &without, "line {line}");
        assert_eq!(CellCodec::Cell.decode(hex(&vector["CellCodec"])).unwrap().bytes(), &without, "line {line}");
    }
}

#[test]
fn blocks_that_hadoop_compressed_are_read() {
    let mut read = 0;
    for vector in golden() {
        let plain = hex(&vector["KeyValueCodec"]);
        for (key, value) in vector.as_object().unwrap() {
            let Some(class) = key.strip_prefix("KeyValueCodec+") else { continue };
            let compressor = Compressor::from_class(class).unwrap();
            assert_eq!(compressor.decompress(&hex(value), LIMIT).unwrap(), plain, "{class}");
            read += 1;
        }
    }
    assert!(read > 8, "{read}");
}

const ALL: [Compressor; 10] = [
    Compressor::Zlib,
    Compressor::Gzip,
    Compressor::Snappy,
    Compressor::Lz4,
    Compressor::ZstdStream,
    Compressor::ZstdBlock,
    Compressor::Bzip2,
    Compressor::Lzma,
    Compressor::Brotli,
    Compressor::Lzo,
];

#[test]
fn each_compressor_reads_what_it_writes_and_refuses_what_is_damaged_or_too_large() {
    let plain: Vec<u8> = (0..40_000u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
    for compressor in ALL {
        assert_eq!(Compressor::from_class(compressor.class()), Some(compressor));
        let packed = compressor.compress(&plain);
        assert_eq!(compressor.decompress(&packed, 1 << 21).unwrap(), plain, "{compressor:?}");
        assert!(
            matches!(compressor.decompress(&packed, 1000), Err(CellBlockError::TooLarge { limit: 1000 })),
            "{compressor:?}"
        );
        for cut in [1, 5, packed.len() / 2, packed.len() - 1] {
            let short = compressor.decompress(&packed[..cut], 1 << 21);
            assert!(short.is_err(), "{compressor:?} cut at {cut}");
        }
        let mut flipped = packed.to_vec();
        for at in (0..flipped.len()).step_by(211) {
            flipped[at] ^= 0x55;
            // Whatever comes out, it comes without a panic and within the limit.
            assert!(compressor.decompress(&flipped, 1 << 21).map_or(0, |b| b.len()) <= 1 << 21);
            flipped[at] ^= 0x55;
        }
        assert_eq!(compressor.decompress(&compressor.compress(b""), LIMIT).unwrap(), "", "{compressor:?}");
    }
}

#[test]
fn field_codecs_round_trip_and_refuse_every_truncation() {
    let tags = b"\x00\x02\x08x";
    let spec = CellSpec { row: b"r", family: b"f", qualifier: b"q", timestamp: 7, type_code: 4, value: b"v", tags };
    let block = CellBlock::from_specs([spec, spec]);
    for codec in [CellCodec::Cell, CellCodec::CellWithTags] {
        let bytes = codec.encode(block.bytes().clone(), true);
        let again = codec.decode(bytes.clone()).unwrap();
        assert_eq!(again.iter().next().unwrap().tags(), if codec.carries_tags() { &tags[..] } else { b"" });
        for cut in (1..bytes.len()).filter(|cut| *cut != bytes.len() / 2) {
            assert!(codec.decode(bytes.slice(..cut)).is_err(), "{codec:?} cut at {cut}");
        }
    }
    assert_eq!(CellCodec::from_class("org.example.NoCodec"), None);
}
