//! What `master:store` holds that the next master needs: the switches (family `state`), and the procedures of HBase's master (family `proc`).
//!
//! ```text
//! <id, 8 bytes>   proc:d   Procedure, without PBUF; nothing where it is over and forgotten
//! ```
//!
//! Read from the store files and, over them, from the logs that HBase's master has not made files of. Follows: `RegionProcedureStore`,
//! `MasterRegion`.

use super::log::{self, Before};
use super::{StoreError, made_here, region};
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::{CellRef, CellType};
use fs::{FilePath, Volume};
use hfile::{Reader, ReaderContext, ScanOptions};
use rootdir::list_if_exists;
use rootdir::paths::master_wals_dir;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The only qualifier of both families.
pub(crate) const QUALIFIER: &[u8] = b"d";

/// Below the region: logs of dead masters, as HBase's next master has taken them.
pub(crate) const RECOVERED: &str = "recovered.wals";

/// A value by its row, with its timestamp. It is empty where the row was deleted.
pub(crate) type Values = BTreeMap<Vec<u8>, (TimestampMs, Vec<u8>)>;

/// What is read of the store.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The encoded name of the only region.
    pub region: Arc<str>,
    /// The switches.
    pub states: Values,
    /// Whether logs have something of them that files have not.
    pub logs_have_states: bool,
    /// Procedures by their ids, as they were written; those that are forgotten have no bytes.
    pub procedures: BTreeMap<u64, Bytes>,
    /// Names of logs and of store files that HBase's master has made since a master of ours wrote the store: none where it has not led since.
    pub of_hbase: BTreeSet<String>,
    /// The largest id of a procedure that is in a store file.
    pub largest_id_in_files: u64,
    /// No row of family `proc` is newer.
    pub newest: TimestampMs,
    /// No row of it has a larger sequence id.
    pub largest_seq_id: SeqId,
}

impl Contents {
    /// What the log of the next master goes on from.
    pub fn before(&self) -> Before {
        let rows = self.procedures.iter().filter(|(_, bytes)| !bytes.is_empty());
        Before {
            region: Arc::clone(&self.region),
            rows: rows.map(|(id, bytes)| (*id, bytes.clone())).collect(),
            largest_id: self.procedures.last_key_value().map_or(0, |(id, _)| *id),
            newest: self.newest,
            largest_seq_id: self.largest_seq_id,
        }
    }
}

#[derive(Default)]
struct Families {
    proc: Values,
    state: Values,
    largest_seq_id: SeqId,
}

impl Families {
    fn of(&mut self, family: &[u8]) -> Option<&mut Values> {
        match family {
            b"proc" => Some(&mut self.proc),
            b"state" => Some(&mut self.state),
            _ => None,
        }
    }

    /// The newest counts. Of two of one time it is the one that is met later in a log, and the one that is met first in a file, where the
    /// newer stands before the older.
    fn note(&mut self, cell: CellRef<'_>, later_wins: bool) {
        let kind = CellType::from_code(cell.type_code());
        let is_put = kind == Some(CellType::Put);
        if is_put && cell.qualifier() != QUALIFIER {
            return;
        }
        let Some(values) = self.of(cell.family()) else { return };
        let stamp = TimestampMs(cell.timestamp());
        let is_newer = |known: TimestampMs| if later_wins { known <= stamp } else { known < stamp };
        if values.get(cell.row()).is_none_or(|(known, _)| is_newer(*known)) {
            let value = if is_put { cell.value().to_vec() } else { Vec::new() };
            values.insert(cell.row().to_vec(), (stamp, value));
        }
    }
}

/// Reads all of it: it is small.
///
/// # Errors
/// A file that cannot be read. What follows damage in a log is lost to HBase's master, too, and passed over.
pub(crate) fn read(volume: &dyn Volume) -> Result<Contents, StoreError> {
    let (info, region) = region()?;
    let mut families = Families::default();
    let mut of_hbase = BTreeSet::new();
    for family in ["info", "proc", "rs", "state"] {
        let names: Vec<String> = files_in(volume, &region.join(family))?;
        if family != "state" {
            of_hbase.extend(names.iter().filter(|name| !made_here(name)).cloned());
        }
        if matches!(family, "proc" | "state") {
            read_files(volume, &region.join(family), &names, &mut families)?;
        }
    }
    let (in_files, largest_id_in_files) = (families.state.clone(), families.proc.keys().filter_map(id_of).max());
    for dir in std::iter::once(region.join(RECOVERED)).chain(log_dirs(volume)?) {
        for name in files_in(volume, &dir)? {
            read_log(volume, &dir.join(&name), &mut families);
            if !log::is_ours(&name) {
                of_hbase.insert(name);
            }
        }
    }
    let newest = families.proc.values().map(|(stamp, _)| *stamp).max().unwrap_or(TimestampMs(0));
    let by_id = |(row, (_, value)): (Vec<u8>, (TimestampMs, Vec<u8>))| {
        let id = id_of(&row);
        if id.is_none() {
            tracing::warn!("a row key of master:store, family proc, is not the id of a procedure; the row is skipped");
        }
        id.map(|id| (id, Bytes::from(value)))
    };
    Ok(Contents {
        region: Arc::clone(info.encoded_name()),
        logs_have_states: families.state != in_files,
        states: families.state.into_iter().filter(|(_, (_, value))| !value.is_empty()).collect(),
        procedures: families.proc.into_iter().filter_map(by_id).collect(),
        of_hbase,
        largest_id_in_files: largest_id_in_files.unwrap_or(0),
        newest,
        largest_seq_id: families.largest_seq_id,
    })
}

fn id_of(row: &Vec<u8>) -> Option<u64> {
    row.as_slice().try_into().ok().map(u64::from_be_bytes)
}

/// The directories of logs, one for each life of a master of HBase's.
pub(crate) fn log_dirs(volume: &dyn Volume) -> fs::Result<Vec<FilePath>> {
    let logs = master_wals_dir();
    let dirs = list_if_exists(volume, &logs)?.into_iter().filter(|entry| entry.is_dir);
    let mut dirs: Vec<FilePath> = dirs.map(|entry| logs.join(&entry.name)).collect();
    dirs.sort();
    Ok(dirs)
}

fn files_in(volume: &dyn Volume, dir: &FilePath) -> fs::Result<Vec<String>> {
    let files = list_if_exists(volume, dir)?.into_iter().filter(|entry| !entry.is_dir);
    let mut names: Vec<String> = files.map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}

fn read_files(volume: &dyn Volume, dir: &FilePath, names: &[String], into: &mut Families) -> Result<(), StoreError> {
    let open = |name: &String| Reader::open(volume, &dir.join(name), ReaderContext::default());
    let mut readers: Vec<Arc<Reader>> = names.iter().map(open).collect::<Result<_, _>>()?;
    readers.sort_by_key(|reader| reader.max_seq_id());
    for reader in readers {
        into.largest_seq_id = into.largest_seq_id.max(reader.max_seq_id().unwrap_or_default());
        let mut of_file = Families::default();
        let mut scanner = reader.scanner(ScanOptions::default());
        let mut more = scanner.seek_to_first()?;
        while more {
            if let Some(cell) = scanner.current() {
                of_file.note(cell, false);
            }
            more = scanner.next()?;
        }
        for (values, of_file) in [(&mut into.proc, of_file.proc), (&mut into.state, of_file.state)] {
            for (row, (stamp, value)) in of_file {
                if values.get(&row).is_none_or(|(known, _)| *known <= stamp) {
                    values.insert(row, (stamp, value));
                }
            }
        }
    }
    Ok(())
}

fn read_log(volume: &dyn Volume, path: &FilePath, families: &mut Families) {
    let mut read = || -> wal::Result<()> {
        let mut reader = wal::Reader::open(volume, path)?;
        while let Some(entry) = reader.next()? {
            families.largest_seq_id = families.largest_seq_id.max(entry.key.seq_id);
            entry.cells.iter().for_each(|cell| families.note(cell, true));
        }
        Ok(())
    };
    if let Err(error) = read() {
        tracing::warn!(%path, %error, "the rest of this WAL of master:store cannot be read and is skipped; switches (balancer, split, merge, normalizer) and requests for changes of tables that came shortly before the master stopped may have to be repeated");
    }
}
