//! Rows of hbase:quota, read and written where their regions are.

use crate::master::Master;
use crate::{HostError, MasterError, Result};
use base::SeqId;
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use model::{Mutation, MutationKind, RegionInfo, Scan, TableName};
use proto::pb;
use quota::rows::{self, SETTINGS_FAMILY, Subject, USAGE_FAMILY, Usage};
use std::sync::Arc;

/// The table hbase:quota.
pub(crate) struct QuotaTable<'a> {
    pub master: &'a Arc<Master>,
}

impl QuotaTable<'_> {
    /// All cells of settings, region by region.
    pub async fn settings(&self) -> Result<Vec<CellBuffer>> {
        self.scan(&[], SETTINGS_FAMILY, None).await
    }

    /// The quotas of `subject`.
    pub async fn quotas(&self, subject: &Subject) -> Result<Option<pb::Quotas>> {
        let value = self.value(&subject.row(), &subject.qualifier()).await?;
        let decoded = value.map(|value| rows::decode(&value)).transpose();
        decoded.map_err(|what| MasterError::new(crate::ErrorKind::Io, what))
    }

    /// The value of a setting.
    pub async fn value(&self, row: &[u8], qualifier: &[u8]) -> Result<Option<Bytes>> {
        let found = self.scan(row, SETTINGS_FAMILY, Some(qualifier)).await?;
        let mut cells = found.iter().flat_map(|cells| cells.iter_from(0));
        Ok(cells.next().map(|cell| Bytes::copy_from_slice(cell.value())))
    }

    /// What is known of the use of space. What cannot be read is told of and left out.
    pub async fn usage(&self, row: &[u8]) -> Result<Vec<Usage>> {
        let mut usage = Vec::new();
        for cells in self.scan(row, USAGE_FAMILY, None).await? {
            for cell in cells.iter_from(0) {
                match rows::parse_usage(cell.row(), cell.qualifier(), cell.value()) {
                    Some(Ok(found)) => usage.push(found),
                    Some(Err(error)) => tracing::error!("{error}"),
                    None => {}
                }
            }
        }
        Ok(usage)
    }

    /// Writes a setting.
    pub async fn put(&self, row: Bytes, qualifier: Bytes, value: Bytes) -> Result<()> {
        self.put_cell((row, SETTINGS_FAMILY, qualifier), &value).await
    }

    /// Writes what is known of the use of space.
    pub async fn put_usage(&self, usage: &Usage) -> Result<()> {
        let (row, qualifier, value) = usage.cell();
        self.put_cell((row, USAGE_FAMILY, qualifier), &value).await
    }

    async fn put_cell(&self, (row, family, qualifier): (Bytes, &'static [u8], Bytes), value: &[u8]) -> Result<()> {
        let mut cells = CellBuffer::new();
        let timestamp = self.master.catalog.stamp().0;
        push(&mut cells, CellType::Put, (&row, family, &qualifier), timestamp, value);
        self.write(Mutation::new(MutationKind::Put, row, cells.into_block())).await
    }

    /// Deletes what was known of the use of space.
    pub async fn delete_usage(&self, usage: &Usage) -> Result<()> {
        let (row, qualifier, _) = usage.cell();
        let mut cells = CellBuffer::new();
        let timestamp = self.master.catalog.delete_stamp().0;
        push(&mut cells, CellType::DeleteColumn, (&row, USAGE_FAMILY, &qualifier), timestamp, &[]);
        self.write(Mutation::new(MutationKind::Delete, row, cells.into_block())).await
    }

    /// Deletes what is kept of `subject`: its whole row, where that is its own.
    pub async fn delete(&self, subject: &Subject) -> Result<()> {
        let (row, timestamp) = (subject.row(), self.master.catalog.delete_stamp().0);
        let mut cells = CellBuffer::new();
        if subject.owns_row() {
            push(&mut cells, CellType::DeleteFamily, (&row, SETTINGS_FAMILY, &[]), timestamp, &[]);
            push(&mut cells, CellType::DeleteFamily, (&row, USAGE_FAMILY, &[]), timestamp, &[]);
        } else {
            let qualifier = subject.qualifier();
            push(&mut cells, CellType::DeleteColumn, (&row, SETTINGS_FAMILY, &qualifier), timestamp, &[]);
        }
        self.write(Mutation::new(MutationKind::Delete, row, cells.into_block())).await
    }

    /// Cells of one family; of one row where `row` is not empty.
    async fn scan(&self, row: &[u8], family: &'static [u8], qualifier: Option<&[u8]>) -> Result<Vec<CellBuffer>> {
        let qualifiers = qualifier.map(Bytes::copy_from_slice).into_iter().collect();
        let scan = Scan {
            start_row: Bytes::copy_from_slice(row),
            stop_row: Bytes::copy_from_slice(row),
            include_stop_row: !row.is_empty(),
            columns: [(Bytes::from_static(family), qualifiers)].into_iter().collect(),
            cache_blocks: true,
            ..Scan::default()
        };
        let mut found = Vec::new();
        for region in self.regions(row) {
            let name = region.encoded_name();
            found.push(self.master.assignment.host_of(name)?.scan(name, scan.clone()).await?);
        }
        Ok(found)
    }

    async fn write(&self, mutation: Mutation) -> Result<()> {
        let not_open = || HostError::Failed(format!("no region of {} is open", TableName::quota_table()));
        let region = self.regions(&mutation.row).pop().ok_or_else(not_open)?;
        let name = region.encoded_name();
        Ok(self.master.assignment.host_of(name)?.mutate(name, vec![mutation]).await?)
    }

    /// The region of `row`; all of them where that is empty.
    fn regions(&self, row: &[u8]) -> Vec<RegionInfo> {
        let mut regions = self.master.tables.live_regions(&TableName::quota_table());
        let ends_after = |region: &RegionInfo| region.end_key.is_empty() || row < &region.end_key[..];
        regions.retain(|region| row.is_empty() || (region.start_key[..] <= *row && ends_after(region)));
        regions
    }
}

fn push(
    cells: &mut CellBuffer,
    of_type: CellType,
    (row, family, qualifier): (&[u8], &[u8], &[u8]),
    timestamp: i64,
    value: &[u8],
) {
    let spec = CellSpec { row, family, qualifier, timestamp, type_code: of_type.code(), value, tags: &[] };
    cells.push_spec(&spec, SeqId(0));
}
