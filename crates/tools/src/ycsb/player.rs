//! Carrying out what was drawn, and measuring it.

use std::sync::Arc;
use std::time::Instant;

use super::binding::Binding;
use super::core::{Core, Operation};
use super::measurements::{Measurements, Names, Status};

const READ: Names = ("READ", "READ-FAILED");
const UPDATE: Names = ("UPDATE", "UPDATE-FAILED");
const INSERT: Names = ("INSERT", "INSERT-FAILED");
const SCAN: Names = ("SCAN", "SCAN-FAILED");
const READ_MODIFY_WRITE: Names = ("READ-MODIFY-WRITE", "READ-MODIFY-WRITE");
const VERIFY: Names = ("VERIFY", "VERIFY");

/// Carries out `operation`, due at `due`. Returns how it ended.
pub async fn play(
    core: &Arc<Core>,
    binding: &Binding,
    measurements: &Measurements,
    operation: Operation,
    due: Option<Instant>,
) -> Status {
    let start = Instant::now();
    let due = due.unwrap_or(start);
    let record = |names: Names, status: Status, since: Instant| {
        let now = Instant::now();
        measurements.record(names, Some(status), now - since, Some(now.saturating_duration_since(due)));
        status
    };
    let read = async |key: &str, fields: &Option<Vec<bytes::Bytes>>| {
        let since = Instant::now();
        let (status, row) = binding.read(key, fields.as_deref()).await;
        record(READ, status, since);
        if core.data_integrity {
            let since = Instant::now();
            let verdict = match &row {
                None => Status::Error,
                Some(row) if row.iter().all(|c| core.verify(key, c.qualifier(), c.value())) => Status::Ok,
                Some(_) => Status::UnexpectedState,
            };
            measurements.record(VERIFY, Some(verdict), since.elapsed(), None);
        }
        status
    };
    match operation {
        Operation::Read { key, fields } => read(&key, &fields).await,
        Operation::Update { key, values } => record(UPDATE, binding.write(&key, &values).await, start),
        Operation::Insert { number, key, values } => {
            let status = record(INSERT, binding.write(&key, &values).await, start);
            core.inserted.acknowledge(number);
            status
        }
        Operation::Scan { key, records, fields } => {
            record(SCAN, binding.scan(&key, records, fields.as_deref()).await, start)
        }
        Operation::ReadModifyWrite { key, fields, values } => {
            let first = read(&key, &fields).await;
            let since = Instant::now();
            let second = record(UPDATE, binding.write(&key, &values).await, since);
            let now = Instant::now();
            measurements.record(READ_MODIFY_WRITE, None, now - start, Some(now.saturating_duration_since(due)));
            first.max(second)
        }
    }
}
