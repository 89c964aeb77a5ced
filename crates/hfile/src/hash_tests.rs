//! The hashes against what HBase computed.

use crate::HashType;
use fs::{FilePath, LocalVolume, Volume};
use serde_json::Value;

#[test]
fn hashes_are_those_of_hbase() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let text =
        LocalVolume::open(&root).and_then(|v| v.read(&FilePath::new("misc/bloom-hashes.jsonl"))).expect("golden");
    let mut seen = 0;
    for line in String::from_utf8(text).expect("UTF-8").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let Some(input) = line.get("hashed_bytes").or(line.get("in")).and_then(Value::as_str) else { continue };
        let bytes: Vec<u8> =
            (0..input.len() / 2).map(|i| u8::from_str_radix(&input[2 * i..2 * i + 2], 16).expect("hex")).collect();
        for hash in HashType::ALL {
            let Some(wanted) = line.get(hash.as_str()).and_then(Value::as_array) else { continue };
            let first = hash.hash(&bytes, 0);
            let got = [first as i32, hash.hash(&bytes, first) as i32].map(i64::from);
            assert_eq!(Some(got[0]), wanted[0].as_i64(), "{hash:?} of {input}");
            assert_eq!(Some(got[1]), wanted[1].as_i64(), "{hash:?} of {input}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} hashes compared");
}
