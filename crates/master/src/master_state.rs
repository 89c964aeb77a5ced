//! Family `state` of `master:store`: where HBase's master keeps its switches. Either kind of master finds there what the other has set.
//!
//! ```text
//! load_balancer_on                  state:d   PBUF LoadBalancerState
//! split_enabled, merge_enabled      state:d   PBUF SwitchState
//! region_normalizer_on              state:d   PBUF RegionNormalizerState
//! snapshot_cleanup_enabled          state:d   PBUF SnapshotCleanupState
//! replication_peer_modification_on  state:d   PBUF ReplicationPeerModificationState
//! ```
//!
//! Each message has one field, a bool of number 1. Follows: `MasterStateStore`, `BooleanStateStore`.

use crate::master_store::{self, StoreError};
use base::{SeqId, TimestampMs};
use cell::{CellBuffer, CellRef, CellSpec, CellType};
use fs::{FilePath, Volume};
use hfile::{Reader, ReaderContext, ScanOptions};
use proto::{Message, magic, pb};
use rootdir::list_if_exists;
use rootdir::paths::master_wals_dir;
use std::collections::BTreeMap;

const FAMILY: &str = "state";
const QUALIFIER: &[u8] = b"d";

/// A value by its row, with its timestamp.
pub(crate) type States = BTreeMap<Vec<u8>, (TimestampMs, Vec<u8>)>;

/// The newest counts; of two of one time the one that is met later.
fn note(states: &mut States, cell: CellRef<'_>) {
    let is_value = cell.family() == FAMILY.as_bytes() && cell.qualifier() == QUALIFIER;
    if !is_value || CellType::from_code(cell.type_code()) != Some(CellType::Put) {
        return;
    }
    let stamp = TimestampMs(cell.timestamp());
    let known = states.get(cell.row()).map(|(stamp, _)| *stamp);
    if known.is_none_or(|known| known <= stamp) {
        states.insert(cell.row().to_vec(), (stamp, cell.value().to_vec()));
    }
}

/// What the store's files and logs have, and whether logs have something. Reads all of both: they are small.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn read(volume: &dyn Volume) -> Result<(States, bool), StoreError> {
    let (_, region) = master_store::region()?;
    let mut states = States::new();
    let dir = region.join(FAMILY);
    for entry in list_if_exists(volume, &dir)?.into_iter().filter(|entry| !entry.is_dir) {
        let reader = Reader::open(volume, &dir.join(&entry.name), ReaderContext::default())?;
        let mut scanner = reader.scanner(ScanOptions::default());
        let mut more = scanner.seek_to_first()?;
        while more {
            if let Some(cell) = scanner.current() {
                note(&mut states, cell);
            }
            more = scanner.next()?;
        }
    }
    let in_files = states.clone();
    let logs = master_wals_dir();
    let mut dirs: Vec<FilePath> = list_if_exists(volume, &logs)?
        .into_iter()
        .filter(|entry| entry.is_dir)
        .map(|entry| logs.join(&entry.name))
        .collect();
    dirs.push(region.join("recovered.wals"));
    for dir in dirs {
        for entry in list_if_exists(volume, &dir)?.into_iter().filter(|entry| !entry.is_dir) {
            read_log(volume, &dir.join(&entry.name), &mut states);
        }
    }
    let logs_have_some = states != in_files;
    Ok((states, logs_have_some))
}

/// What follows damage in a log of the master's is lost to HBase, too.
fn read_log(volume: &dyn Volume, path: &FilePath, states: &mut States) {
    let mut read = || -> wal::Result<()> {
        let mut reader = wal::Reader::open(volume, path)?;
        while let Some(entry) = reader.next()? {
            entry.cells.iter().for_each(|cell| note(states, cell));
        }
        Ok(())
    };
    if let Err(error) = read() {
        tracing::warn!(%path, %error, "the rest of this WAL of master:store cannot be read and is skipped; switches (balancer, split, merge, normalizer) that were set shortly before the master stopped may have to be set again");
    }
}

/// Makes `states` all that the family has; durable when it returns. Two small files' worth of calls.
///
/// # Errors
/// The volume's; the family has what it had, or this.
pub(crate) fn write(volume: &dyn Volume, states: &States) -> Result<(), StoreError> {
    let (info, region) = master_store::region()?;
    let mut cells = CellBuffer::new();
    for (row, (stamp, value)) in states {
        let type_code = CellType::Put.code();
        let (family, timestamp) = (FAMILY.as_bytes(), stamp.0);
        let spec = CellSpec { row, family, qualifier: QUALIFIER, timestamp, type_code, value, tags: &[] };
        cells.push_spec(&spec, SeqId(0));
    }
    let newest = states.values().map(|(stamp, _)| *stamp).max().unwrap_or(TimestampMs(0));
    let name = master_store::add_file(volume, &region, FAMILY, newest, &cells)?;
    master_store::archive_files(volume, &info, FAMILY, Some(&name))
}

/// A switch as HBase writes it: each of its messages has this form.
pub(crate) fn encode(on: bool) -> Vec<u8> {
    magic::encode(&pb::SwitchState { enabled: Some(on) }).to_vec()
}

/// The same read back; `None` where it is something else.
pub(crate) fn decode(value: &[u8]) -> Option<bool> {
    pb::SwitchState::decode(magic::strip_slice(value)?).ok()?.enabled
}
