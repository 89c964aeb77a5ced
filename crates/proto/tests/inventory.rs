//! The `.proto` files against the inventory of HBase 2.6: every message, field, enum value and method that the tables
//! list for the packages we carry is here, under the same number, name, type and label; and nothing else is.

#![allow(clippy::disallowed_methods, reason = "a test reads its tables from the tree")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use basalt_proto::methods::{METHODS, Service};

/// Of modules besides hbase-protocol-shaded we leave out what only HBase's own tests use.
const MODULES: &[&str] =
    &["hbase-protocol-shaded", "hbase-protocol", "hbase-endpoint", "hbase-examples", "hbase-rsgroup", "hbase-rest"];
/// The package of the REST gateway's messages, here in a folder and a package of their own.
const REST_PACKAGE: &str = "org.apache.hadoop.hbase.rest.protobuf.generated.";
const TEST_SERVICES: &[&str] = &[
    "PingService",
    "TestProtobufRpcProto",
    "DummyService",
    "ColumnAggregationService",
    "ColumnAggregationServiceNullResponse",
    "ColumnAggregationServiceWithErrors",
    "ShellExecService",
];

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn table(name: &str) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(tree("../../tests/inventory").join(name)).unwrap();
    let mut rows = text.lines().map(split_csv);
    let header = rows.next().unwrap();
    rows.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

fn split_csv(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.push(chars.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    fields.push(field);
    fields
}

/// What our `.proto` files say: `message#number` -> `label type name`, `enum#value` -> number, types by their last name.
#[derive(Default)]
struct Ours {
    fields: BTreeMap<String, String>,
    values: BTreeMap<String, String>,
    messages: Vec<String>,
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Every `.proto` file, and whether it is of the REST gateway.
fn proto_files() -> Vec<(PathBuf, bool)> {
    let files = |folder: &str, is_rest: bool| -> Vec<(PathBuf, bool)> {
        let entries = std::fs::read_dir(tree(folder)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).map(|path| (path, is_rest)).collect()
    };
    [files("proto", false), files("proto/rest", true)].concat()
}

fn ours() -> Ours {
    let mut out = Ours::default();
    for (path, is_rest) in proto_files() {
        let text = std::fs::read_to_string(path).unwrap();
        let mut scope: Vec<(String, &str)> = Vec::new();
        if is_rest {
            scope.push(("rest".to_owned(), "package"));
        }
        for line in text.lines().map(str::trim).filter(|l| !l.starts_with("//")) {
            let path = || scope.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>().join(".");
            let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
            match words.as_slice() {
                [kind @ ("message" | "enum" | "service"), name, rest @ ..] => {
                    scope.push(((*name).to_string(), if *kind == "message" { "message" } else { kind }));
                    if *kind == "message" {
                        let full = scope.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>().join(".");
                        out.messages.push(full);
                    }
                    if rest == ["{}"] {
                        scope.pop();
                    }
                }
                ["}"] => {
                    scope.pop();
                }
                [label @ ("optional" | "required" | "repeated"), ty, name, "=", number, ..] => {
                    out.fields.insert(format!("{}#{number}", path()), format!("{label} {} {name}", last(ty)));
                }
                ["map<string,", ty, name, "=", number] | ["map<int32,", ty, name, "=", number] => {
                    let ty = ty.trim_end_matches('>');
                    out.fields.insert(format!("{}#{number}", path()), format!("map {} {name}", last(ty)));
                }
                [name, "=", number] if scope.last().is_some_and(|(_, k)| *k == "enum") => {
                    out.values.insert(format!("{}#{name}", path()), (*number).to_string());
                }
                _ => {}
            }
        }
    }
    out
}

fn carried(row: &BTreeMap<String, String>, name: &str) -> Option<String> {
    let name = if name == "RegionNormalizerState" { "hbase.pb.RegionNormalizerState" } else { name };
    let ours = MODULES.contains(&row["module"].as_str()) && !row["note"].starts_with("older");
    if let Some(message) = name.strip_prefix(REST_PACKAGE) {
        return Some(format!("rest.{message}"));
    }
    name.strip_prefix("hbase.pb.").filter(|_| ours).map(str::to_string)
}

#[test]
fn each_field_has_the_number_type_and_label_of_the_inventory() {
    let mut ours = ours();
    let mut checked = 0;
    let mut map_entries = BTreeMap::new();
    let rows = table("protobuf_messages.csv");
    for row in rows.iter().filter(|r| r["note"] == "map entry" && r["field_name"] == "value") {
        let name = carried(row, &row["message"]).unwrap();
        let ty = if row["type_name"].is_empty() { &row["type"] } else { &row["type_name"] };
        map_entries.insert(name, last(ty).to_string());
    }
    for row in &rows {
        let Some(message) = carried(row, &row["message"]) else { continue };
        if row["note"] == "map entry" {
            continue;
        }
        assert!(ours.messages.contains(&message), "message {message} is missing");
        if row["label"] == "empty" {
            continue;
        }
        let wanted = match map_entries.get(row["type_name"].trim_start_matches("hbase.pb.")) {
            Some(value) => format!("map {value} {}", row["field_name"]),
            None => {
                let ty = if row["type_name"].is_empty() { &row["type"] } else { &row["type_name"] };
                format!("{} {} {}", row["label"], last(ty), row["field_name"])
            }
        };
        let key = format!("{message}#{}", row["field_number"]);
        assert_eq!(ours.fields.remove(&key), Some(wanted), "{key}");
        checked += 1;
    }
    assert!(checked > 1500, "only {checked} fields");
    assert_eq!(ours.fields, BTreeMap::new(), "fields that HBase does not have");
}

#[test]
fn each_enum_value_has_the_number_of_the_inventory() {
    let mut ours = ours();
    for row in table("protobuf_enums.csv") {
        let Some(name) = carried(&row, &row["enum"]) else { continue };
        let key = format!("{name}#{}", row["value_name"]);
        assert_eq!(ours.values.remove(&key).as_deref(), Some(row["number"].as_str()), "{key}");
    }
    assert_eq!(ours.values, BTreeMap::new(), "values that HBase does not have");
}

#[test]
fn the_method_table_is_the_inventory_s() {
    let mut found = 0;
    for row in table("rpc_methods.csv").iter().filter(|r| !TEST_SERVICES.contains(&r["service"].as_str())) {
        let service = Service::from_name(&row["service"]).unwrap_or_else(|| panic!("service {}", row["service"]));
        let info = service.method(&row["method"]).unwrap_or_else(|| panic!("{}.{}", row["service"], row["method"]));
        assert_eq!(format!("hbase.pb.{}", info.request), row["request_message"], "{}", info.name);
        assert_eq!(format!("hbase.pb.{}", info.response), row["response_message"], "{}", info.name);
        found += 1;
    }
    assert_eq!(found, METHODS.len());
}
