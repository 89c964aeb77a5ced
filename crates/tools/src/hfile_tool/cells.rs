//! The cells of a file: printed, counted, and held against what HBase expects of them.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use base::Config;
use cell::print::to_string_binary;
use cell::{CellRef, KeyRef};
use fs::{FilePath, LocalVolume, Volume};
use hfile::{Reader, ScanOptions};
use model::TableName;
use serde_json::json;

use super::stats::Stats;
use super::{Asked, absolute};
use crate::{files, print};

/// How many names of MOB files are remembered.
const REMEMBERED_FILES: usize = 10_000;

/// A reading of one file's cells.
pub(super) struct Cells<'a> {
    asked: &'a Asked,
    config: &'a Config,
    volume: &'a LocalVolume,
    path: String,
    /// Whether files of large values are there.
    mob_files: BTreeMap<(String, String), bool>,
    /// Cells so far.
    pub count: u64,
    /// Warnings so far.
    pub warnings: u64,
}

impl<'a> Cells<'a> {
    pub fn new(config: &'a Config, asked: &'a Asked, volume: &'a LocalVolume, path: &FilePath) -> Cells<'a> {
        let path = absolute(path);
        Cells { asked, config, volume, path, mob_files: BTreeMap::new(), count: 0, warnings: 0 }
    }

    /// Reads the file.
    pub fn read(&mut self, reader: &Arc<Reader>, stats: &mut Stats, out: &mut impl Write) -> anyhow::Result<()> {
        let options = ScanOptions { cache_blocks: false, pread: false, compaction: true, ..ScanOptions::default() };
        let mut scanner = reader.scanner(options);
        let mut more = match &self.asked.row {
            Some(row) => {
                let mut first = Vec::new();
                // Nothing of a row comes before a cell without column, at the latest time, of the highest type.
                KeyRef::write(&mut first, row, b"", b"", i64::MAX, u8::MAX);
                scanner.seek(KeyRef::from_checked(&first))?
            }
            None => scanner.seek_to_first()?,
        };
        let mut previous: Option<Vec<u8>> = None;
        while more {
            let Some(cell) = scanner.current() else { break };
            if self.asked.row.as_ref().is_some_and(|row| cell.row() != row) {
                break;
            }
            if self.asked.stats {
                stats.add(cell);
            }
            if self.asked.keys {
                self.print(cell, out)?;
            }
            let before = previous.as_deref().map(KeyRef::from_checked);
            self.check(reader, before, cell)?;
            if self.asked.check_rows || self.asked.check_family {
                let key = previous.get_or_insert_default();
                key.clear();
                key.extend_from_slice(cell.key().bytes());
            }
            self.count += 1;
            more = scanner.next()?;
        }
        Ok(())
    }

    fn print(&self, cell: CellRef<'_>, out: &mut impl Write) -> std::io::Result<()> {
        let value = self.asked.values.then(|| to_string_binary(cell.value()));
        if self.asked.json {
            let mut line = json!({
                "row": to_string_binary(cell.row()),
                "family": to_string_binary(cell.family()),
                "qualifier": to_string_binary(cell.qualifier()),
                "timestamp": cell.timestamp(),
                "type": print::type_name(cell.type_code()),
                "vlen": cell.value().len(),
                "seqid": cell.seq_id().0,
            });
            if let Some(value) = value {
                line["value"] = value.into();
            }
            return writeln!(out, "{line}");
        }
        match value {
            Some(value) => writeln!(out, "K: {} V: {value}{}", print::cell(cell), print::tags(cell)),
            None => writeln!(out, "K: {}", print::cell(cell)),
        }
    }

    fn warn(&mut self, what: &str) {
        self.warnings += 1;
        eprintln!("{what}");
    }

    fn check(&mut self, reader: &Reader, before: Option<KeyRef<'_>>, cell: CellRef<'_>) -> anyhow::Result<()> {
        let current = print::cell(cell);
        if self.asked.check_rows
            && let Some(before) = before
            && reader.order().rows(before.row(), cell.row()).is_gt()
        {
            let (path, before) = (self.path.clone(), print::key(before));
            self.warn(&format!(
                "WARNING, previous row is greater then current row\n\tfilename -> {path}\n\tprevious -> {before}\n\tcurrent  -> {current}"
            ));
        }
        if self.asked.check_family {
            let family = String::from_utf8_lossy(cell.family()).into_owned();
            if !self.path.contains(&family) {
                let path = self.path.clone();
                self.warn(&format!(
                    "WARNING, filename does not match kv family,\n\tfilename -> {path}\n\tkeyvalue -> {current}"
                ));
            }
            if let Some(before) = before.filter(|before| before.family() != cell.family()) {
                let (path, before) = (self.path.clone(), print::key(before));
                self.warn(&format!(
                    "WARNING, previous kv has different family compared to current key\n\tfilename -> {path}\n\tprevious -> {before}\n\tcurrent  -> {current}"
                ));
            }
        }
        if self.asked.check_mob {
            self.check_mob(cell, &current)?;
        }
        Ok(())
    }

    /// Whether the file that a cell's value is in is there: below `mobdir`, or in the archive.
    fn check_mob(&mut self, cell: CellRef<'_>, shown: &str) -> anyhow::Result<()> {
        let tag = |wanted: u8| cell::tag::iter(cell.tags()).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        if tag(cell::tag::MOB_REFERENCE).is_none() {
            return Ok(());
        }
        let table = tag(cell::tag::MOB_TABLE_NAME).and_then(|name| std::str::from_utf8(name).ok());
        let Some(table) = table.and_then(|name| TableName::parse(name).ok()) else {
            self.warn(&format!("ERROR, wrong tag format in mob reference cell {shown}"));
            return Ok(());
        };
        // Four bytes of the value's length, then the file's name.
        let Some(name) =
            cell.value().get(4..).and_then(|name| std::str::from_utf8(name).ok()).filter(|n| !n.is_empty())
        else {
            self.warn(&format!("ERROR, wrong value format in mob reference cell {shown}"));
            return Ok(());
        };
        let key = (table.to_string(), name.to_owned());
        let there = match self.mob_files.get(&key) {
            Some(there) => *there,
            None => {
                let there = self.mob_file_is_there(&table, cell.family(), name)?;
                if self.mob_files.len() >= REMEMBERED_FILES {
                    self.mob_files.clear();
                }
                self.mob_files.insert(key, there);
                there
            }
        };
        if !there {
            self.warn(&format!("ERROR, the mob file [{name}] is missing referenced by cell {shown}"));
        }
        Ok(())
    }

    fn mob_file_is_there(&self, table: &TableName, family: &[u8], name: &str) -> anyhow::Result<bool> {
        // A name from a file leads to no place outside of its directory.
        if name.contains('/') || matches!(name, "." | "..") {
            return Ok(false);
        }
        let root = files::path_of(&files::root_place(self.config)?)?;
        let dir = rootdir::mob_family_dir(table, family);
        for dir in [dir.clone(), rootdir::archive_dir(&dir)] {
            if self.volume.exists(&root.join(dir.as_str()).join(name))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
