//! The logs of a root directory: which there are, how far they are in backups, what they hold of tables.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use base::{Config, SeqId};
use client::Admin;
use fs::{FilePath, Volume};
use hfile::{ReaderContext, ScanOptions};
use model::{ServerName, TableDescriptor, TableName};
use rootdir::backup_hold::LogName;
use wal::marker::{METAFAMILY, Marker};

use super::manifest::{Boundaries, Boundary};
use crate::dictionaries;
use crate::jobs::hfile_output::HFileOutput;

/// Logs by name, and where each is.
pub(super) type Logs = BTreeMap<LogName, FilePath>;

/// Every log of a region server but those of hbase:meta.
pub(super) fn survey(volume: &dyn Volume) -> anyhow::Result<Logs> {
    let mut logs = Logs::new();
    // Those in use first: a log moves from there to the others.
    for root in [rootdir::wals_dir(), rootdir::old_wals_dir()] {
        let mut dirs = vec![root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in rootdir::list_if_exists(volume, &dir)? {
                let path = dir.join(&entry.name);
                if entry.is_dir && dir == root {
                    dirs.push(path);
                } else if let Some(name) = LogName::parse(&entry.name).filter(|name| !entry.is_dir && !name.is_meta) {
                    logs.insert(name, path);
                }
            }
        }
    }
    Ok(logs)
}

/// Has every server begin a new log, and says how far the logs before are complete: all that was written before the call is in them.
///
/// # Errors
/// A server cannot be reached.
pub(super) async fn roll(admin: &Admin, volume: &dyn Volume) -> anyhow::Result<Boundaries> {
    let before = survey(volume)?;
    let live: BTreeSet<String> = admin.servers().await?.iter().map(ToString::to_string).collect();
    for server in &live {
        let name: ServerName = server.parse().map_err(|_| anyhow::anyhow!("{server} is no server's name"))?;
        admin.roll_wal(&name).await.with_context(|| format!("{server} cannot begin a new log"))?;
    }
    Ok(boundaries(&before, &survey(volume)?, &live))
}

/// Refuses a root directory that is not the cluster's: what is not seen there would be missing in every increment.
///
/// # Errors
/// No server that lives has a log there.
pub(super) async fn check_root(admin: &Admin, volume: &dyn Volume) -> anyhow::Result<()> {
    let logs = survey(volume)?;
    let live: BTreeSet<String> = admin.servers().await?.iter().map(ToString::to_string).collect();
    if !logs.keys().any(|name| live.contains(&name.server)) {
        bail!(
            "no server of the cluster has a log below hbase.rootdir: it names another cluster's directory, or the logs are elsewhere"
        );
    }
    Ok(())
}

/// Of logs before and after servers began new ones. Follows: `RSRollLogTask`, which notes the number of each server's newest log.
fn boundaries(before: &Logs, after: &Logs, live: &BTreeSet<String>) -> Boundaries {
    let mut boundaries = Boundaries::new();
    for name in before.keys() {
        if !live.contains(&name.server) {
            // Of a server that is gone, all is there.
            let end = Boundary { first: name.number + 1, is_there: false };
            let known = boundaries.entry(name.server.clone()).or_insert(end);
            known.first = known.first.max(end.first);
        }
    }
    for server in live {
        let of_server = |logs: &Logs| -> Vec<u64> {
            logs.keys().filter(|name| name.server == *server).map(|name| name.number).collect()
        };
        let Some(newest) = of_server(before).into_iter().max() else { continue };
        // The first that was begun since; one that a server would not end, as nothing was in it, may still get edits.
        let first = of_server(after).into_iter().filter(|number| *number > newest).min().unwrap_or(newest);
        boundaries.insert(server.clone(), Boundary { first, is_there: true });
    }
    boundaries
}

/// Refuses to go on from `from` where a log since is gone.
///
/// # Errors
/// Which.
pub(super) fn check_whole(from: &Boundaries, logs: &Logs) -> anyhow::Result<()> {
    for (server, boundary) in from.iter().filter(|(_, boundary)| boundary.is_there) {
        if !logs.keys().any(|name| name.server == *server && name.number == boundary.first) {
            bail!(
                "the log {} of {server} is gone, and with it edits since the last backup: a full backup is needed \
                 (basalt backup create full)",
                boundary.first
            );
        }
    }
    Ok(())
}

fn is_between(name: &LogName, from: &Boundaries, to: &Boundaries) -> bool {
    let end = to.get(&name.server).is_some_and(|to| name.number < to.first);
    end && from.get(&name.server).is_none_or(|from| name.number >= from.first)
}

/// What is gathered of a table.
pub(super) struct Gathering {
    pub name: TableName,
    config: Config,
    pub descriptor: TableDescriptor,
    /// How far its last backup goes.
    pub from: Boundaries,
    pub output: HFileOutput,
    pub cells: u64,
    pub times_ms: Option<(i64, i64)>,
    pub sequence_ids: Option<(u64, u64)>,
    /// Files that were loaded in bulk.
    pub loaded: BTreeSet<String>,
}

impl Gathering {
    pub fn new(
        config: &Config,
        name: TableName,
        descriptor: TableDescriptor,
        from: Boundaries,
        output: HFileOutput,
    ) -> Gathering {
        let (times_ms, sequence_ids, loaded) = (None, None, BTreeSet::new());
        Gathering { name, config: config.clone(), descriptor, from, output, cells: 0, times_ms, sequence_ids, loaded }
    }

    fn note(&mut self, at_ms: i64, seq_id: u64) {
        let (from, to) = self.times_ms.unwrap_or((at_ms, at_ms));
        self.times_ms = Some((from.min(at_ms), to.max(at_ms)));
        let (from, to) = self.sequence_ids.unwrap_or((seq_id, seq_id));
        self.sequence_ids = Some((from.min(seq_id), to.max(seq_id)));
    }

    fn take(&mut self, volume: &dyn Volume, entry: &wal::Entry) -> anyhow::Result<()> {
        let seq_id = entry.key.seq_id;
        let mut is_noted = false;
        for cell in entry.cells.iter() {
            if cell.family() == METAFAMILY {
                if let Some(Marker::BulkLoad(load)) = Marker::decode(cell)? {
                    self.note(entry.key.write_time.0, seq_id.0);
                    self.load(volume, &load)?;
                }
                continue;
            }
            // A family that was dropped since: its cells would be gone, too.
            if self.descriptor.families.contains_key(cell.family()) {
                if !is_noted {
                    self.note(entry.key.write_time.0, seq_id.0);
                    is_noted = true;
                }
                self.output.add_at(cell, seq_id)?;
                self.cells += 1;
            }
        }
        Ok(())
    }

    /// The cells of files that were loaded in bulk, at the sequence id that the load gave them.
    fn load(&mut self, volume: &dyn Volume, load: &proto::pb::BulkLoadDescriptor) -> anyhow::Result<()> {
        let region = String::from_utf8_lossy(&load.encoded_region_name).into_owned();
        let home = rootdir::table_dir(&self.name);
        for store in load.stores.iter().filter(|store| self.descriptor.families.contains_key(&store.family_name)) {
            for file in &store.store_file {
                let parsed = rootdir::FileName::parse(file)
                    .filter(|_| !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric()))
                    .with_context(|| {
                        format!("a log tells of a file {file:?} of region {region:?}: no file is called so")
                    })?;
                if !self.loaded.insert(file.clone()) {
                    continue;
                }
                let place = home.join(&region).join(rootdir::family_name(&store.family_name)).join(file);
                let seq_id = parsed.bulk_load_seq_id().unwrap_or(SeqId(0));
                let dictionary = dictionaries::named(&self.config, Some(&self.descriptor), &store.family_name);
                let is_gone = |error: &anyhow::Error| matches!(error.downcast_ref(), Some(hfile::Error::Io(error)) if error.is_not_found());
                let open = |path| dictionaries::open(volume, path, dictionary.as_deref(), ReaderContext::default());
                let reader = [place.clone(), rootdir::archive_dir(&place)]
                    .iter()
                    .find_map(|path| match open(path) {
                        Err(error) if is_gone(&error) => None,
                        opened => Some(opened),
                    })
                    .with_context(|| {
                        format!(
                            "{place} was loaded in bulk into table {} and is gone: a full backup is needed (basalt \
                             backup create full)",
                            self.name
                        )
                    })??;
                let options =
                    ScanOptions { cache_blocks: false, pread: false, compaction: true, ..ScanOptions::default() };
                let mut scanner = reader.scanner(options);
                let mut more = scanner.seek_to_first()?;
                while more {
                    let Some(cell) = scanner.current() else { break };
                    self.output.add_at(cell, seq_id)?;
                    self.cells += 1;
                    more = scanner.next()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads all logs between the last backups of tables and `to`.
///
/// # Errors
/// A log is damaged or cannot be read.
pub(super) fn gather(volume: &dyn Volume, to: &Boundaries, tables: &mut [Gathering]) -> anyhow::Result<u64> {
    let mut logs = survey(volume)?;
    let mut wanted: Vec<LogName> = logs.keys().cloned().collect();
    wanted.retain(|name| tables.iter().any(|table| is_between(name, &table.from, to)));
    wanted.sort_by_key(|name| name.number);
    for (done, name) in wanted.iter().enumerate() {
        let mut path = logs.get(name).cloned().unwrap_or_else(FilePath::root);
        let mut reader = wal::Reader::open(volume, &path);
        if matches!(&reader, Err(wal::Error::Io(error)) if error.is_not_found()) {
            // It was moved to the others meanwhile.
            logs = survey(volume)?;
            path = logs.get(name).cloned().with_context(|| format!("the log {path} is gone"))?;
            reader = wal::Reader::open(volume, &path);
        }
        let mut reader = reader?;
        let mut mine: BTreeMap<String, &mut Gathering> = tables
            .iter_mut()
            .filter(|table| is_between(name, &table.from, to))
            .map(|table| (table.name.to_string(), table))
            .collect();
        while let Some(entry) = reader.next()? {
            if let Some(table) = mine.get_mut(&*entry.key.table) {
                table.take(volume, &entry).with_context(|| format!("{path}, at byte {}", entry.offset))?;
            }
        }
        eprintln!("backup: read {} of {} logs", done + 1, wanted.len());
    }
    Ok(wanted.len() as u64)
}

/// Names of files that were loaded in bulk and that a table has in its regions and in the archive, or there alone.
pub(super) fn loaded_files(
    volume: &dyn Volume,
    table: &TableName,
    archived_alone: bool,
) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut places = vec![rootdir::archived_table_dir(table)];
    if !archived_alone {
        places.push(rootdir::table_dir(table));
    }
    for place in places {
        for region in rootdir::list_if_exists(volume, &place)?.iter().filter(|entry| entry.is_dir) {
            let region_dir = place.join(&region.name);
            for family in rootdir::list_if_exists(volume, &region_dir)?.iter().filter(|entry| entry.is_dir) {
                let entries = rootdir::list_if_exists(volume, &region_dir.join(&family.name))?;
                let names = entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name);
                found.extend(names.filter(|name| is_loaded(name)));
            }
        }
    }
    Ok(found)
}

/// Whether a store file's name says that it was loaded in bulk.
pub(super) fn is_loaded(name: &str) -> bool {
    rootdir::FileName::parse(name)
        .is_some_and(|name| name.parent.is_none() && name.link.is_none() && name.bulk_load_seq_id().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(names: &[(&str, u64)]) -> Logs {
        let log = |(server, number): &(&str, u64)| {
            (LogName { server: (*server).to_owned(), number: *number, is_meta: false }, FilePath::root())
        };
        names.iter().map(log).collect()
    }

    /// A server that is quick may have begun a second log since: the first of them is the bound.
    #[test]
    fn what_was_written_before_is_below_the_bound() {
        let before = logs(&[("a,1,1", 10), ("a,1,1", 12), ("b,1,1", 5), ("dead,1,1", 7), ("dead,1,1", 8)]);
        let after = logs(&[("a,1,1", 12), ("a,1,1", 20), ("a,1,1", 21), ("b,1,1", 5), ("new,1,1", 30)]);
        let live = ["a,1,1", "b,1,1", "new,1,1"].map(str::to_owned).into();
        let found = boundaries(&before, &after, &live);
        let of = |server: &str| found.get(server).map(|boundary| (boundary.first, boundary.is_there));
        assert_eq!(of("a,1,1"), Some((20, true)));
        assert_eq!(of("b,1,1"), Some((5, true)), "nothing was in it, and it goes on");
        assert_eq!(of("dead,1,1"), Some((9, false)));
        assert_eq!(of("new,1,1"), None, "it came meanwhile: all of it is for the next backup");
        assert!(check_whole(&found, &after).is_ok());
        let error = check_whole(&found, &logs(&[("a,1,1", 21), ("b,1,1", 5)])).expect_err("a log is gone");
        assert!(error.to_string().contains("the log 20 of a,1,1 is gone"), "{error}");
    }

    #[test]
    fn an_increment_reads_each_log_once() {
        let at = |first| Boundary { first, is_there: true };
        let from = Boundaries::from([("a,1,1".to_owned(), at(10))]);
        let to = Boundaries::from([("a,1,1".to_owned(), at(20)), ("b,1,1".to_owned(), at(6))]);
        let is = |server: &str, number| {
            is_between(&LogName { server: server.to_owned(), number, is_meta: false }, &from, &to)
        };
        assert!(!is("a,1,1", 9) && is("a,1,1", 10) && is("a,1,1", 19) && !is("a,1,1", 20));
        assert!(is("b,1,1", 1) && !is("b,1,1", 6) && !is("c,1,1", 1));
    }
}
