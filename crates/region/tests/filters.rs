//! Every filter through whole regions: what real scans of HBase 2.6.4 returned on a table of families f and g in two
//! regions that meet at r10, forwards, with 3 versions and in reverse; from memory, from files, and from both.

#[path = "../../filter/tests/verdicts/decode.rs"]
mod decode;

use crate::common::*;
use basalt_region::{Limits, Region, Result};
use bytes::Bytes;
use cell::CellBuffer;
use filter::Filter;
use model::{RegionInfo, Scan, TableDescriptor};
use proto::{Message, pb};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}"))
}

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn filters() -> HashMap<String, Arc<Filter>> {
    lines(include_str!("../../../tests/golden/misc/filters-serialized.jsonl"))
        .iter()
        .map(|line| {
            let envelope = pb::Filter::decode(Bytes::from(from_hex(text(line, "proto_Filter")))).expect("a filter");
            (text(line, "label").to_owned(), Arc::new(decode::filter(&envelope)))
        })
        .collect()
}

#[derive(Clone, Copy, Debug)]
enum Where {
    Memory,
    Files,
    Both,
}

fn regions(server: &Server, place: Where) -> [Arc<Region>; 2] {
    let f = family("f").with("VERSIONS", "3").with("BLOCKSIZE", "400");
    let table = Arc::new(TableDescriptor::new(table_name(), [f, family("g")]));
    let middle = Bytes::from("r10");
    let infos = [
        RegionInfo::new(table_name(), Bytes::new(), middle.clone(), 1),
        RegionInfo::new(table_name(), middle, Bytes::new(), 1),
    ];
    let regions = infos.map(|info| server.open(&info, &table).expect("opened"));
    for (i, cell) in lines(include_str!("../../../tests/golden/cluster/filters-data.jsonl")).iter().enumerate() {
        let value = from_hex(text(cell, "v"));
        let spec = cell::CellSpec {
            row: text(cell, "r").as_bytes(),
            family: text(cell, "f").as_bytes(),
            qualifier: text(cell, "q").as_bytes(),
            timestamp: cell["ts"].as_i64().expect("ts"),
            type_code: cell::CellType::Put.code(),
            value: &value,
            tags: b"",
        };
        let put = model::Mutation::new(
            model::MutationKind::Put,
            Bytes::copy_from_slice(spec.row),
            cell::CellBlock::from_specs([spec]),
        );
        let region = regions.iter().find(|region| region.info().contains(&put.row)).expect("the regions tile");
        write(region, &[put]);
        if matches!(place, Where::Both) && i % 37 == 36 {
            regions.iter().for_each(|region| flush(region));
        }
    }
    if matches!(place, Where::Files) {
        regions.iter().for_each(|region| flush(region));
    }
    regions
}

/// As a client does: region after region, until a filter that is done gives an empty reply.
fn scan_table(regions: &[Arc<Region>; 2], scan: &Scan) -> Result<Vec<Vec<String>>> {
    let mut order: Vec<&Arc<Region>> = regions.iter().collect();
    if scan.reversed {
        order.reverse();
    }
    let mut all = Vec::new();
    for region in order {
        let mut scanner = region.scanner(scan)?;
        let before = all.len();
        loop {
            let mut out = CellBuffer::new();
            let progress = scanner.next(&mut Limits::NONE.clone(), &mut out)?;
            if !out.is_empty() {
                all.push(show_all(&out, 0));
            }
            if !progress.more {
                break;
            }
        }
        if scanner.is_filter_done() && all.len() == before {
            break;
        }
    }
    Ok(all)
}

#[test]
fn scans_return_what_hbase_returned() {
    let filters = filters();
    for place in [Where::Memory, Where::Files, Where::Both] {
        let server = Server::new(1_700_000_000_000);
        let regions = regions(&server, place);
        let (mut checked, mut wrong) = (0, Vec::new());
        for line in lines(include_str!("../../../tests/golden/cluster/filters-verdicts.jsonl")) {
            let (label, mode) = (text(&line, "label"), text(&line, "scan"));
            let scan = Scan {
                filter: Some(filters[label].clone()),
                reversed: mode == "reversed",
                max_versions: if mode == "3 versions" { 3 } else { 1 },
                ..Scan::default()
            };
            let got = scan_table(&regions, &scan);
            checked += 1;
            let Some(rows) = line["rows"].as_array() else {
                let message = text(&line, "message_start");
                // Where HBase gives up for reasons of its own, a right answer is welcome: it is that of the forward scan.
                let own_reasons = message.contains("loading CFs on demand") || label == "FuzzyRowFilter r?3";
                if own_reasons && scan.reversed {
                    let mut forwards = scan_table(&regions, &Scan { reversed: false, ..scan }).expect("rows");
                    forwards.reverse();
                    assert_eq!(got.expect("rows"), forwards, "{label}");
                } else {
                    assert!(got.is_err(), "{label} | {mode}: HBase fails with {message}, got {got:?}");
                }
                continue;
            };
            let expected: Vec<Vec<String>> = rows
                .iter()
                .map(|row| {
                    row.as_array().expect("cells").iter().map(|c| c.as_str().expect("cell").to_owned()).collect()
                })
                .collect();
            match got {
                Ok(got) if got == expected => {}
                got => wrong.push(format!("{label} | {mode}\n  expected {expected:?}\n  got      {got:?}")),
            }
        }
        assert!(checked > 200, "only {checked} scans");
        assert!(wrong.is_empty(), "{place:?}: {} of {checked} scans differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[test]
fn a_filter_that_drops_everything_gives_the_clock_its_due() {
    let server = Server::new(1_700_000_000_000);
    let mut config = base::Config::default();
    config.set("hbase.cells.scanned.per.heartbeat.check", "4");
    let server = Server::try_on(server.volume, 1_700_000_000_000, &config, 2).expect("a volume in memory");
    let region = server.table([family("f")]);
    for i in 0..20 {
        write(&region, &[put(&format!("row{i:02}"), "f", "q", LATEST, "x")]);
    }
    let nothing = Filter::Row {
        op: filter::CompareOp::Equal,
        comparator: Some(filter::Comparator::Binary { value: Bytes::from("none") }),
    };
    let scan = Scan { filter: Some(Arc::new(nothing)), ..Scan::default() };
    let mut scanner = region.scanner(&scan).expect("opened");
    let mut heartbeats = 0;
    loop {
        let mut out = CellBuffer::new();
        let mut limits = Limits { deadline_us: Some(0), partial_rows: true, ..Limits::NONE };
        let progress = scanner.next(&mut limits, &mut out).expect("read");
        assert_eq!(progress.cells, 0);
        if !progress.more {
            break;
        }
        assert_eq!(progress.reason, basalt_region::Reason::Time);
        assert!(!scanner.last_row().is_empty());
        heartbeats += 1;
        assert!(heartbeats < 100);
    }
    assert!(heartbeats >= 4, "{heartbeats} heartbeats in 20 rows");
}
