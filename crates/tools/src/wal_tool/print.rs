//! Entries of a log for people and as HBase's JSON.

use std::io::Write;

use cell::CellRef;
use cell::print::to_string_binary;
use fs::FilePath;
use serde_json::{Map, Value, json};
use wal::{Entry, Reader};

use super::Wanted;
use crate::print::{java_date, type_name};

/// Prints the entries that are wanted.
pub(super) struct Printer {
    wanted: Wanted,
    values: bool,
    json: bool,
    only_rows: bool,
    only_summary: bool,
    open: bool,
    first: bool,
    entries: u64,
    cells: u64,
}

impl Printer {
    pub fn new(wanted: Wanted, values: bool, json: bool, only_rows: bool, only_summary: bool) -> Printer {
        Printer { wanted, values, json, only_rows, only_summary, open: false, first: true, entries: 0, cells: 0 }
    }

    /// Before the entries of a file.
    pub fn begin(&mut self, _: &FilePath, out: &mut impl Write) -> std::io::Result<()> {
        (self.first, self.entries, self.cells) = (true, 0, 0);
        if self.json && !self.only_summary {
            self.open = true;
            write!(out, "[")?;
        }
        Ok(())
    }

    /// Behind the entries of a file, also where an error ended them: what was printed stays one list.
    pub fn end(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        if std::mem::take(&mut self.open) { writeln!(out, "]") } else { Ok(()) }
    }

    /// What came of a file.
    pub fn summary(&self, path: &FilePath, reader: &Reader, out: &mut impl Write) -> std::io::Result<()> {
        if !self.only_summary {
            return Ok(());
        }
        let (entries, cells) = (self.entries, self.cells);
        match self.json {
            true => {
                let line = json!({"file": format!("/{path}"), "entries": entries, "cells": cells,
                                  "closed": reader.has_trailer(), "sealed": reader.is_sealed()});
                writeln!(out, "{line}")
            }
            false => {
                let closed = if reader.has_trailer() { "closed" } else { "not closed" };
                writeln!(out, "/{path}: {entries} entries with {cells} cells, {closed}")
            }
        }
    }

    /// One entry.
    pub fn entry(&mut self, entry: &Entry, position: u64, out: &mut impl Write) -> std::io::Result<()> {
        if !self.wanted.has(entry) {
            return Ok(());
        }
        let cells: Vec<CellRef<'_>> = entry.cells.iter().filter(|cell| self.wanted.has_row(cell.row())).collect();
        if cells.is_empty() {
            return Ok(());
        }
        self.entries += 1;
        self.cells += cells.len() as u64;
        if self.only_summary {
            return Ok(());
        }
        if self.json {
            let separator = if std::mem::take(&mut self.first) { "" } else { "," };
            return write!(out, "{separator}{}", self.object(entry, &cells));
        }
        self.text(entry, &cells, position, out)
    }

    fn text(&self, entry: &Entry, cells: &[CellRef<'_>], position: u64, out: &mut impl Write) -> std::io::Result<()> {
        let key = &entry.key;
        if !self.only_rows {
            writeln!(
                out,
                "Sequence={}, table={}, region={}, at write timestamp={}",
                key.seq_id.0,
                key.table,
                key.region,
                java_date(key.write_time.0)
            )?;
        }
        for cell in cells {
            let row = to_string_binary(cell.row());
            if self.only_rows {
                writeln!(out, "row={row}")?;
                continue;
            }
            let (family, qualifier) = (to_string_binary(cell.family()), to_string_binary(cell.qualifier()));
            let (at, kind) = (cell.timestamp(), type_name(cell.type_code()));
            writeln!(out, "row={row}, column={family}:{qualifier}, timestamp={at}, type={kind}")?;
            let tags = tags(*cell);
            if !tags.is_empty() {
                writeln!(out, "    tag: [{}]", tags.join(", "))?;
            }
            if self.values {
                writeln!(out, "    value: {}", to_string_binary(cell.value()))?;
            }
            writeln!(out, "cell total size sum: {}", heap_bytes(*cell))?;
        }
        if !self.only_rows {
            let heap: u64 = entry.cells.iter().map(heap_bytes).sum();
            writeln!(out, "edit heap size: {}\nposition: {position}", heap + EDIT_HEAP_BYTES)?;
        }
        Ok(())
    }

    /// HBase's object, in which numbers of 64 bits are texts.
    fn object(&self, entry: &Entry, cells: &[CellRef<'_>]) -> Value {
        let actions: Vec<Value> = cells.iter().map(|cell| self.action(*cell)).collect();
        json!({
            "table": &*entry.key.table,
            "region": &*entry.key.region,
            "sequence": entry.key.seq_id.0.to_string(),
            "actions": actions,
        })
    }

    fn action(&self, cell: CellRef<'_>) -> Value {
        let mut action = Map::new();
        action.insert("row".to_owned(), json!(to_string_binary(cell.row())));
        if self.only_rows {
            return Value::Object(action);
        }
        action.insert("type".to_owned(), json!(type_name(cell.type_code())));
        action.insert("family".to_owned(), json!(to_string_binary(cell.family())));
        action.insert("qualifier".to_owned(), json!(to_string_binary(cell.qualifier())));
        action.insert("timestamp".to_owned(), json!(cell.timestamp().to_string()));
        action.insert("vlen".to_owned(), json!(cell.value().len()));
        action.insert("total_size_sum".to_owned(), json!(heap_bytes(cell).to_string()));
        let tags = tags(cell);
        if !tags.is_empty() {
            action.insert("tag".to_owned(), json!(tags));
        }
        if self.values {
            action.insert("value".to_owned(), json!(to_string_binary(cell.value())));
        }
        Value::Object(action)
    }
}

/// `type:value` of each tag; the type is a byte of Java's, which has a sign.
fn tags(cell: CellRef<'_>) -> Vec<String> {
    cell::tag::iter(cell.tags()).map(|(kind, value)| format!("{}:{}", kind as i8, to_string_binary(value))).collect()
}

/// Bytes of an empty edit in a heap of Java's.
const EDIT_HEAP_BYTES: u64 = 40;

/// Bytes that a cell takes in a heap of Java's, as HBase counts them: the object, the head of its array, and its bytes, rounded up.
fn heap_bytes(cell: CellRef<'_>) -> u64 {
    const OBJECT_BYTES: u64 = 32;
    const ARRAY_HEAD_BYTES: u64 = 16;
    let bytes = ARRAY_HEAD_BYTES + cell.bytes().len() as u64;
    OBJECT_BYTES + bytes.next_multiple_of(8)
}
