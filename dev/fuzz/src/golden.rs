//! Bytes that Apache HBase wrote, from `tests/golden`.
#![allow(clippy::disallowed_methods, reason = "reads the tree's own files")]

use serde_json::Value;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// A file.
pub fn file(name: &str) -> Vec<u8> {
    std::fs::read(root().join(name)).unwrap_or_else(|error| panic!("tests/golden/{name}: {error}"))
}

/// Names of the files in a folder that end so, sorted.
pub fn names(folder: &str, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("tests/golden/{folder}: {e}"));
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

/// The lines of a file of JSON lines.
pub fn lines(name: &str) -> Vec<Value> {
    let text = String::from_utf8(file(name)).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Bytes written as hexadecimal digits.
pub fn hex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len() / 2).map(|i| digit(2 * i)).collect()
}

/// The bytes in a field of a line, if it is there.
pub fn bytes(line: &Value, field: &str) -> Option<Vec<u8>> {
    line.get(field).and_then(Value::as_str).map(hex)
}

/// That field of every line that has it.
pub fn column(name: &str, field: &str) -> Vec<Vec<u8>> {
    lines(name).iter().filter_map(|line| bytes(line, field)).collect()
}

/// What a client sent over one connection: kinds and bytes.
pub type Sent = Vec<(String, Vec<u8>)>;

/// What clients sent in the recorded sessions, connection by connection.
pub fn conversations() -> Vec<Sent> {
    let mut all = Vec::new();
    for session in names("rpc", ".jsonl") {
        let mut open: Vec<(String, Sent)> = Vec::new();
        for line in lines(&format!("rpc/{session}")) {
            let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
            let Some(bytes) = bytes(&line, "hex").or_else(|| bytes(&line, "frame_hex")) else { continue };
            if text("dir") != "c2s" {
                continue;
            }
            let kind = if text("kind") == "request" { text("method") } else { text("kind") };
            match open.iter_mut().find(|(conn, _)| *conn == text("conn")) {
                Some((_, sent)) => sent.push((kind, bytes)),
                None => open.push((text("conn"), vec![(kind, bytes)])),
            }
        }
        all.extend(open.into_iter().map(|(_, sent)| sent));
    }
    all
}
