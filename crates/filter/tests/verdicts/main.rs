//! What real scans of HBase 2.6.4 returned under each filter, reproduced by a small scan loop around the evaluator:
//! a table of families f and g in two regions that meet at r10, scanned forwards, with 3 versions, and in reverse.

mod decode;
mod replay;

use basalt_filter as filter;
use base::{Rng, SeqId};
use bytes::Bytes;
use cell::print::Binary;
use cell::{CellBuffer, CellRef, CellSpec, KeyRef, Order};
use filter::{Error, Evaluator, Filter, Verdict};
use proto::{Message, pb};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

fn golden(path: &str) -> Vec<Value> {
    json_lines(&format!("{}/../../tests/golden/{path}", env!("CARGO_MANIFEST_DIR")))
}

fn json_lines(path: &str) -> Vec<Value> {
    #[allow(clippy::disallowed_methods, reason = "a test reads its golden file")]
    let text = String::from_utf8(std::fs::read(path).expect(path)).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}"))
}

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

/// The order in which a scan meets cells.
fn scan_order(reversed: bool, a: KeyRef<'_>, b: KeyRef<'_>) -> Ordering {
    let rows = a.row().cmp(b.row());
    (if reversed { rows.reverse() } else { rows }).then_with(|| Order::User.keys(a, b))
}

/// One family of one region, and how far the scan has come in it.
struct Store {
    family: Vec<u8>,
    cells: Vec<Vec<u8>>,
    at: usize,
    reversed: bool,
}

impl Store {
    fn peek(&self) -> Option<CellRef<'_>> {
        self.cells.get(self.at).map(|kv| CellRef::from_checked(kv, SeqId(0)))
    }

    fn peek_in(&self, row: &[u8]) -> Option<CellRef<'_>> {
        self.peek().filter(|cell| cell.row() == row)
    }

    fn skip_while(&mut self, skip: impl Fn(CellRef<'_>) -> bool) {
        while self.peek().is_some_and(&skip) {
            self.at += 1;
        }
    }

    /// What `StoreScanner` and `UserScanQueryMatcher` do with one row.
    fn row(
        &mut self,
        row: &[u8],
        max_versions: u32,
        filter: &mut Evaluator,
        out: &mut CellBuffer,
    ) -> Result<(), Error> {
        let (mut column, mut versions) = (Vec::new(), 0);
        let mut hint = Vec::new();
        while let Some(cell) = self.peek_in(row) {
            if filter.filter_all_remaining() {
                self.at = self.cells.len();
                break;
            }
            let mut verdict = filter.filter_cell(cell)?;
            if matches!(verdict, Verdict::Include | Verdict::IncludeAndNextCol | Verdict::IncludeAndSeekNextRow) {
                if column != cell.qualifier() {
                    column = cell.qualifier().to_vec();
                    versions = 0;
                }
                versions += 1;
                if versions > max_versions {
                    verdict =
                        if verdict == Verdict::IncludeAndSeekNextRow { Verdict::NextRow } else { Verdict::NextCol };
                } else if filter.transforms() {
                    filter.transform_cell(cell, out);
                } else {
                    out.push(cell);
                }
            }
            match verdict {
                Verdict::Include | Verdict::Skip => self.at += 1,
                Verdict::IncludeAndNextCol | Verdict::NextCol => {
                    let column = cell.qualifier().to_vec();
                    self.skip_while(|c| c.row() == row && c.qualifier() == column);
                }
                Verdict::IncludeAndSeekNextRow | Verdict::NextRow => self.skip_while(|c| c.row() == row),
                Verdict::SeekNextUsingHint => {
                    let reversed = self.reversed;
                    if filter.next_cell_hint(cell, &mut hint) {
                        let before = self.at;
                        let to = KeyRef::parse(&hint).expect("a flat key");
                        self.skip_while(|c| scan_order(reversed, c.key(), to) == Ordering::Less);
                        assert!(self.at > before, "a hint is strictly ahead");
                    } else {
                        self.at += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A scan of one region: its rows, and whether the filter has ended it.
fn scan_region(
    filter: &Filter,
    mut stores: Vec<Store>,
    max_versions: u32,
    reversed: bool,
) -> Result<(Vec<Vec<String>>, bool), Error> {
    let mut filter = filter.evaluator(reversed, &Arc::new(Rng::seeded(1)));
    let mut rows = Vec::new();
    // The families that the filter does not need come last, and only for rows that have passed.
    stores.sort_by_key(|store| !filter.is_family_essential(&store.family));
    let essential = stores.iter().filter(|store| filter.is_family_essential(&store.family)).count();
    while !filter.filter_all_remaining() {
        let heads = stores[..essential].iter().filter_map(Store::peek);
        let Some(first) = heads.min_by(|a, b| scan_order(reversed, a.key(), b.key())) else { break };
        let row = first.row().to_vec();
        let mut cells = CellBuffer::new();
        if !filter.filter_row_key(first)? {
            for store in &mut stores[..essential] {
                store.row(&row, max_versions, &mut filter, &mut cells)?;
            }
            if !filter.finish_row(&mut cells, 0) {
                for store in &mut stores[essential..] {
                    let order = |c: CellRef<'_>| if reversed { c.row() > &row[..] } else { c.row() < &row[..] };
                    store.skip_while(order);
                    store.row(&row, max_versions, &mut filter, &mut cells)?;
                }
                if !cells.is_empty() {
                    rows.push(cells.iter_from(0).map(print).collect());
                }
            }
        }
        stores.iter_mut().for_each(|store| store.skip_while(|c| c.row() == row));
        filter.reset();
    }
    Ok((rows, filter.filter_all_remaining()))
}

fn print(cell: CellRef<'_>) -> String {
    let (row, family, qualifier) = (Binary(cell.row()), Binary(cell.family()), Binary(cell.qualifier()));
    format!("{row}/{family}:{qualifier}/{}/Put={}", cell.timestamp(), Binary(cell.value()))
}

fn scan(filter: &Filter, max_versions: u32, reversed: bool) -> Result<Vec<Vec<String>>, Error> {
    let data = golden("cluster/filters-data.jsonl");
    let stores = |in_region: &dyn Fn(&str) -> bool| -> Vec<Store> {
        ["f", "g"]
            .map(|family| {
                let wanted = data.iter().filter(|c| text(c, "f") == family && in_region(text(c, "r")));
                let mut cells: Vec<Vec<u8>> = wanted.map(key_value).collect();
                cells.sort_by(|a, b| scan_order(reversed, key(a), key(b)));
                Store { family: family.as_bytes().to_vec(), cells, at: 0, reversed }
            })
            .into()
    };
    let mut regions = [stores(&|row| row < "r10"), stores(&|row| row >= "r10")];
    if reversed {
        regions.reverse();
    }
    let mut all = Vec::new();
    for region in regions {
        let (rows, ended) = scan_region(filter, region, max_versions, reversed)?;
        // An empty reply from a filter that is done ends the client's scan.
        let over = ended && rows.is_empty();
        all.extend(rows);
        if over {
            break;
        }
    }
    Ok(all)
}

fn key(kv: &[u8]) -> KeyRef<'_> {
    CellRef::parse(kv, SeqId(0)).expect("a cell").key()
}

fn key_value(cell: &Value) -> Vec<u8> {
    let mut kv = Vec::new();
    let spec = CellSpec {
        row: text(cell, "r").as_bytes(),
        family: text(cell, "f").as_bytes(),
        qualifier: text(cell, "q").as_bytes(),
        timestamp: cell["ts"].as_i64().expect("ts"),
        type_code: cell::CellType::Put.code(),
        value: &from_hex(text(cell, "v")),
        tags: b"",
    };
    spec.write(&mut kv);
    kv
}

fn filters() -> HashMap<String, Filter> {
    let decode = |line: &Value| {
        let envelope = pb::Filter::decode(Bytes::from(from_hex(text(line, "proto_Filter")))).expect("a filter");
        let filter = decode::filter(&envelope);
        filter.check().unwrap_or_else(|e| panic!("{}: {e}", text(line, "label")));
        (text(line, "label").to_owned(), filter)
    };
    golden("misc/filters-serialized.jsonl").iter().map(decode).collect()
}

#[test]
fn scans_return_what_hbase_returned() {
    let filters = filters();
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in golden("cluster/filters-verdicts.jsonl") {
        let (label, mode) = (text(&line, "label"), text(&line, "scan"));
        let filter = &filters[label];
        let reversed = mode == "reversed";
        let got = scan(filter, if mode == "3 versions" { 3 } else { 1 }, reversed);
        checked += 1;
        if let Some(rows) = line["rows"].as_array() {
            let expected: Vec<Vec<String>> = rows
                .iter()
                .map(|row| {
                    row.as_array().expect("cells").iter().map(|c| c.as_str().expect("cell").to_owned()).collect()
                })
                .collect();
            if got.as_ref() != Ok(&expected) {
                wrong.push(format!("{label} | {mode}\n  expected {expected:?}\n  got      {got:?}"));
            }
        } else if text(&line, "message_start").contains("loading CFs on demand") {
            let evaluator = filter.evaluator(true, &Arc::new(Rng::seeded(1)));
            assert!(!evaluator.is_family_essential(b"g"), "{label}: the region refuses this one");
        } else if label == "FuzzyRowFilter r?3" && reversed {
            // HBase sends its scanner round in circles here.
            let mut forwards = scan(filter, 1, false).expect("rows");
            forwards.reverse();
            assert_eq!(got, Ok(forwards));
        } else {
            assert!(got.is_err(), "{label} | {mode}: HBase fails, got {got:?}");
        }
    }
    assert!(checked > 200, "only {checked} scans");
    assert!(wrong.is_empty(), "{} of {checked} scans differ:\n{}", wrong.len(), wrong.join("\n"));
}
