//! Bulk loads: files that somebody else wrote for two families of a few journal rows, and the call that loads them all or none.

use crate::calls::{self, Failure};
use crate::order::Track;
use crate::promises::{Outcome, Write, value_of};
use crate::work::{self, Desk};
use crate::world::ROOT;
use bytes::Bytes;
use cell::{CellSpec, CellType, Order};
use convert::to_proto;
use fs::{FilePath, Volume};
use hfile::{StoreMetadata, Writer, WriterOptions};
use model::Durability;
use proto::methods::Method;
use proto::pb;

const OUTSIDE: &str = "out";
const NAME: &str = "0123456789abcdef0123456789abcdef";

/// A load that is laid out: its files, and the writes that they hold.
pub struct Load {
    dir: FilePath,
    rows: Vec<(String, i64)>,
}

/// The rows of `client`'s loads: side by side, so that a region has them all unless it was split between them.
fn rows_of(client: u64) -> [String; 3] {
    [0, 1, 2].map(|at| format!("{:02}-journal7{client}{at}", (11 + client * 20) % 100))
}

/// A file as a MapReduce job would leave it: without sequence ids, beside the tables.
fn write_file(volume: &dyn Volume, dir: &FilePath, family: &str, rows: &[(String, i64)]) -> hfile::Result<()> {
    let path = dir.join(family).join(NAME);
    volume.create_dir_all_durable(&path.parent())?;
    if volume.exists(&path)? {
        volume.remove_file(&path)?;
    }
    let mut buffer = cell::CellBuffer::new();
    for (row, number) in rows {
        let value = value_of(row, *number);
        let spec = CellSpec {
            row: row.as_bytes(),
            family: family.as_bytes(),
            qualifier: b"v",
            timestamp: *number,
            type_code: CellType::Put.code(),
            value: &value,
            tags: b"",
        };
        buffer.push_spec(&spec, base::SeqId(0));
    }
    let options = WriterOptions { order: Order::User, include_mvcc: false, ..WriterOptions::default() };
    let mut writer = Writer::create(volume, &path, options)?;
    for cell in buffer.iter_from(0) {
        writer.append(cell)?;
    }
    writer.append_file_info(b"BULKLOAD_TIMESTAMP", &1i64.to_be_bytes());
    writer.finish(&StoreMetadata::default())?;
    Ok(volume.sync_dir(&path.parent())?)
}

impl Load {
    /// Writes the files of `client`'s next load, and notes what they hold as open; `None` when the disk fails.
    pub fn lay_out(desk: &Desk, client: u64) -> Option<Load> {
        let rows: Vec<(String, i64)> = {
            let mut promises = desk.promises.lock();
            // Its files are its log: it is as durable as they are, and has no place among the others.
            let track = Track { ordered: false, ..promises.sent(Durability::FsyncWal) };
            let begin = |row: String| {
                let writes = promises.journal.entry(row.clone()).or_default();
                let number = writes.iter().map(|write| write.number).max().unwrap_or(0) + 1;
                writes.push(Write { number, deletes: false, outcome: Outcome::Open, track });
                (row, number)
            };
            rows_of(client).into_iter().map(begin).collect()
        };
        let load = Load { dir: FilePath::new(OUTSIDE).join(client.to_string()), rows };
        let volume = &desk.life.server.env().volume;
        let written =
            ["f", "g"].into_iter().try_for_each(|family| write_file(&**volume, &load.dir, family, &load.rows));
        if let Err(error) = written {
            desk.trace.note(&format!("nothing to load: {error}"));
            load.note(desk, Outcome::Gone);
            return None;
        }
        Some(load)
    }

    /// The load that [`Load::lay_out`] left last.
    pub fn laid_out(desk: &Desk, client: u64) -> Load {
        let promises = desk.promises.lock();
        let newest = |row: String| {
            let writes = promises.journal.get(&row).into_iter().flatten();
            let number = writes.map(|write| write.number).max().unwrap_or(0);
            (row, number)
        };
        Load { dir: FilePath::new(OUTSIDE).join(client.to_string()), rows: rows_of(client).map(newest).into() }
    }

    /// Sends the call, and notes its answer.
    pub async fn send(self, desk: &Desk) {
        let loaded = self.call(desk).await;
        desk.trace.note(&format!("files of {:?} loaded: {loaded:?}", self.rows));
        self.note(
            desk,
            match loaded {
                Ok(true) => Outcome::Acked,
                Ok(false) | Err(Failure::No(_)) => Outcome::Gone,
                Err(Failure::Maybe(_)) => Outcome::Maybe,
            },
        );
    }

    async fn call(&self, desk: &Desk) -> Result<bool, Failure> {
        let region = calls::region_of(&desk.life, &work::table(), self.rows[0].0.as_bytes())?;
        let path = |family: &'static str| pb::bulk_load_h_file_request::FamilyPath {
            family: Bytes::from(family),
            path: format!("{ROOT}/{}/{family}/{NAME}", self.dir),
        };
        let request = pb::BulkLoadHFileRequest {
            region: to_proto::region_specifier(&region),
            family_path: ["f", "g"].map(path).into(),
            assign_seq_num: Some(true),
            ..pb::BulkLoadHFileRequest::default()
        };
        let response: pb::BulkLoadHFileResponse =
            calls::call(&desk.life, Method::ClientBulkLoadHFile, &request).await?;
        Ok(response.loaded)
    }

    fn note(&self, desk: &Desk, outcome: Outcome) {
        let mut promises = desk.promises.lock();
        let tick = promises.tick();
        for (row, number) in &self.rows {
            let writes = promises.journal.get_mut(row).into_iter().flatten();
            // It may have been seen before it was answered.
            for write in writes.filter(|write| write.number == *number && write.outcome == Outcome::Open) {
                write.outcome = outcome;
                if outcome == Outcome::Acked {
                    write.track.ack(tick);
                }
            }
        }
    }
}
