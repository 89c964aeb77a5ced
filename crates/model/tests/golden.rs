//! Region names against a listing written by HBase itself.

#![allow(clippy::disallowed_methods, reason = "a test reads its listing from the tree")]

use basalt_model::{RegionInfo, TableName};
use bytes::Bytes;
use serde_json::Value;
use std::path::Path;

fn listing(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/misc").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    assert!(!rows.is_empty(), "{name} is empty");
    rows
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("no text in {field}: {row}"))
}

fn bytes(row: &Value, field: &str) -> Bytes {
    let digits = text(row, field);
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("no number in {field}: {row}"))
}

#[test]
fn region_names_and_their_hashes_are_hbases() {
    for row in listing("region-names.jsonl") {
        let table = TableName::parse(text(&row, "table")).expect("a legal name");
        let replica_id = u32::try_from(number(&row, "replica")).expect("a replica id");
        let (start, end) = (bytes(&row, "start"), bytes(&row, "end"));
        let region = RegionInfo::with_replica(table, start.clone(), end.clone(), number(&row, "id"), replica_id);
        assert_eq!(region.name(), &bytes(&row, "name_bytes"), "{row}");
        assert_eq!(region.name_string(), text(&row, "name"));
        assert_eq!(&**region.encoded_name(), text(&row, "encoded"));
        assert_eq!(RegionInfo::encoded_from_name(region.name()), text(&row, "encoded"), "{row}");
        assert!(region.contains(&start), "{row}");
        assert!(end.is_empty() || !region.contains(&end), "{row}");
    }
}
