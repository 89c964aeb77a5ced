//! Golden files and models shared by the tests.
#![allow(dead_code, reason = "each test file uses its part")]

use basalt_hfile::*;
use base::{Rng, SeqId};
use cell::{CellRef, CellSpec};
use fs::{FilePath, LocalVolume, MemVolume, Volume};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A cell of a model: KeyValue bytes and sequence id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub bytes: Vec<u8>,
    pub seq_id: u64,
}

impl Owned {
    pub fn of(cell: CellRef<'_>) -> Owned {
        Owned { bytes: cell.bytes().to_vec(), seq_id: cell.seq_id().0 }
    }

    pub fn cell(&self) -> CellRef<'_> {
        CellRef::parse_shape(&self.bytes, SeqId(self.seq_id)).expect("a cell of the model")
    }
}

pub fn golden_volume() -> LocalVolume {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    LocalVolume::open(&root).expect("tests/golden")
}

pub fn golden(path: &str) -> Vec<u8> {
    golden_volume().read(&FilePath::new(path)).expect(path)
}

pub fn json_lines(path: &str) -> Vec<Value> {
    let text = String::from_utf8(golden(path)).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

pub fn manifest() -> Vec<Value> {
    json_lines("hfile/manifest.jsonl")
}

pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

/// The cells of a listing.
pub fn listed(name: &str) -> Vec<Owned> {
    if name == "empty" {
        return Vec::new();
    }
    let cells = json_lines(&format!("hfile/{name}.cells.jsonl"));
    cells.iter().map(listed_cell).collect()
}

fn listed_cell(line: &Value) -> Owned {
    let bytes = |name: &str| hex(line[name].as_str().expect(name));
    let value = match line.get("v_fill").and_then(Value::as_array) {
        Some(fill) => {
            let number = |i: usize| fill[i].as_u64().expect("v_fill");
            let (a, b) = (number(1), number(2));
            (0..number(0))
                .map(|i| match i {
                    0 => a as u8,
                    1 => b as u8,
                    _ => (a + i * b + (i >> 7) * 13 + (i >> 12) * (i & 7)) as u8,
                })
                .collect()
        }
        None => bytes("v"),
    };
    let mut tags = Vec::new();
    for tag in line.get("tags").and_then(Value::as_array).into_iter().flatten() {
        let tag_type = tag[0].as_u64().expect("tag type") as u8;
        cell::tag::write(&mut tags, tag_type, &hex(tag[1].as_str().expect("tag value")));
    }
    let mut out = Vec::new();
    CellSpec {
        row: &bytes("r"),
        family: &bytes("f"),
        qualifier: &bytes("q"),
        timestamp: line["ts"].as_i64().expect("ts"),
        type_code: line["t"].as_u64().expect("t") as u8,
        value: &value,
        tags: &tags,
    }
    .write(&mut out);
    Owned { bytes: out, seq_id: line.get("seq").and_then(Value::as_u64).unwrap_or(0) }
}

pub fn open_golden(file: &str, context: ReaderContext) -> Result<Arc<Reader>> {
    Reader::open(&golden_volume(), &FilePath::new(format!("hfile/{file}")), context)
}

/// Every cell a scanner passes from where it stands.
pub fn drain(scanner: &mut Scanner, mut more: bool) -> Result<Vec<Owned>> {
    let mut cells = Vec::new();
    while more {
        cells.push(Owned::of(scanner.current().expect("positioned")));
        more = scanner.next()?;
    }
    assert!(scanner.current().is_none());
    Ok(cells)
}

pub fn all_cells(reader: &Arc<Reader>, options: ScanOptions) -> Result<Vec<Owned>> {
    let mut scanner = reader.scanner(options);
    let more = scanner.seek_to_first()?;
    drain(&mut scanner, more)
}

/// Writes `cells` to a new file.
pub fn write(
    volume: &MemVolume,
    path: &str,
    options: WriterOptions,
    metadata: &StoreMetadata,
    cells: &[Owned],
) -> FinishedFile {
    let mut writer = Writer::create(volume, &FilePath::new(path), options).expect("create");
    for cell in cells {
        writer.append(cell.cell()).expect("append");
    }
    writer.finish(metadata).expect("finish")
}

/// Sorted random cells of one family: few distinct rows and columns, so that versions, deletes and equal keys occur.
pub fn random_cells(rng: &Rng, count: usize, tags: bool) -> Vec<Owned> {
    let mut cells: Vec<Owned> = (0..count)
        .map(|_| {
            let row = format!("row{:0width$}", rng.below(count as u64 / 3 + 1), width = 1 + rng.below(6) as usize);
            let qualifier = match rng.below(4) {
                0 => String::new(),
                _ => format!("q{}", "x".repeat(rng.below(9) as usize)),
            };
            let value = vec![rng.below(256) as u8; rng.below(if rng.one_in(20) { 400 } else { 12 }) as usize];
            let type_code = [4, 4, 4, 4, 8, 10, 12, 14][rng.below(8) as usize];
            let timestamp = match rng.below(8) {
                0 => rng.next_u64() as i64,
                _ => 1_700_000_000_000 + rng.below(1000) as i64,
            };
            let mut tag_bytes = Vec::new();
            if tags {
                for _ in 0..rng.below(3) {
                    cell::tag::write(&mut tag_bytes, 64 + rng.below(190) as u8, &[7; 5][..rng.below(5) as usize]);
                }
            }
            let mut bytes = Vec::new();
            CellSpec {
                row: row.as_bytes(),
                family: b"f",
                qualifier: qualifier.as_bytes(),
                timestamp,
                type_code,
                value: &value,
                tags: &tag_bytes,
            }
            .write(&mut bytes);
            Owned { bytes, seq_id: rng.below(1 << 40) >> rng.below(40) }
        })
        .collect();
    cells.sort_by(|a, b| cell::Order::User.cells(a.cell(), b.cell()));
    cells
}
