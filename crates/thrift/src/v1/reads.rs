//! Gets.

use super::types::*;
use super::{Attributes, Handler, attributes, parse_column};
use crate::fault::{Fault, Outcome};
use crate::v2::{add_column, check_row, time_range};
use bytes::{BufMut, Bytes, BytesMut};
use client::Row;
use model::Get;
use std::collections::BTreeMap;

/// The time before which everything counts.
const LATEST: i64 = i64::MAX;

/// What a call reads of a row.
struct Asked {
    columns: Option<Vec<Bytes>>,
    timestamp: i64,
    attributes: Option<Attributes>,
}

impl Asked {
    fn get(&self, row: Bytes) -> Outcome<Get> {
        check_row(&row)?;
        let mut get = Get::new(row);
        for column in self.columns.iter().flatten() {
            let (family, qualifier) = parse_column(column);
            add_column(&mut get.columns, family, qualifier);
        }
        get.time_range = time_range(0, self.timestamp)?;
        get.attributes = attributes(self.attributes.clone());
        Ok(get)
    }
}

impl Handler {
    async fn cells(
        &self,
        table: &Bytes,
        row: Bytes,
        column: Bytes,
        timestamp: i64,
        versions: i32,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TCell>> {
        let mut get = Asked { columns: Some(vec![column]), timestamp, attributes }.get(row)?;
        let positive = u32::try_from(versions).ok().filter(|versions| *versions > 0);
        get.max_versions = positive.ok_or_else(|| Fault::io("versions must be positive"))?;
        Ok(cells(&self.table(table)?.get(&get).await?))
    }

    async fn row(&self, table: &Bytes, row: Bytes, asked: Asked) -> Outcome<Vec<TRowResult>> {
        let found = self.table(table)?.get(&asked.get(row)?).await?;
        Ok(row_results(&[found], false))
    }

    async fn rows(&self, table: &Bytes, rows: Vec<Bytes>, asked: Asked) -> Outcome<Vec<TRowResult>> {
        self.metrics.batch_get(rows.len());
        let gets = rows.into_iter().map(|row| asked.get(row)).collect::<Outcome<Vec<Get>>>()?;
        Ok(row_results(&self.table(table)?.get_all(&gets).await?, false))
    }

    pub(super) async fn get(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TCell>> {
        self.cells(&table_name, row, column, LATEST, 1, attributes).await
    }

    pub(super) async fn get_ver(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        num_versions: i32,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TCell>> {
        self.cells(&table_name, row, column, LATEST, num_versions, attributes).await
    }

    pub(super) async fn get_ver_ts(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        timestamp: i64,
        num_versions: i32,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TCell>> {
        self.cells(&table_name, row, column, timestamp, num_versions, attributes).await
    }

    pub(super) async fn get_row(
        &self,
        table_name: Bytes,
        row: Bytes,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.row(&table_name, row, Asked { columns: None, timestamp: LATEST, attributes }).await
    }

    pub(super) async fn get_row_ts(
        &self,
        table_name: Bytes,
        row: Bytes,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.row(&table_name, row, Asked { columns: None, timestamp, attributes }).await
    }

    pub(super) async fn get_row_with_columns(
        &self,
        table_name: Bytes,
        row: Bytes,
        columns: Option<Vec<Bytes>>,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.row(&table_name, row, Asked { columns, timestamp: LATEST, attributes }).await
    }

    pub(super) async fn get_row_with_columns_ts(
        &self,
        table_name: Bytes,
        row: Bytes,
        columns: Option<Vec<Bytes>>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.row(&table_name, row, Asked { columns, timestamp, attributes }).await
    }

    pub(super) async fn get_rows(
        &self,
        table_name: Bytes,
        rows: Vec<Bytes>,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.rows(&table_name, rows, Asked { columns: None, timestamp: LATEST, attributes }).await
    }

    pub(super) async fn get_rows_ts(
        &self,
        table_name: Bytes,
        rows: Vec<Bytes>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.rows(&table_name, rows, Asked { columns: None, timestamp, attributes }).await
    }

    pub(super) async fn get_rows_with_columns(
        &self,
        table_name: Bytes,
        rows: Vec<Bytes>,
        columns: Option<Vec<Bytes>>,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.rows(&table_name, rows, Asked { columns, timestamp: LATEST, attributes }).await
    }

    pub(super) async fn get_rows_with_columns_ts(
        &self,
        table_name: Bytes,
        rows: Vec<Bytes>,
        columns: Option<Vec<Bytes>>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<Vec<TRowResult>> {
        self.rows(&table_name, rows, Asked { columns, timestamp, attributes }).await
    }
}

/// Values and times. Follows: `ThriftUtilities#cellFromHBase`.
pub(super) fn cells(row: &Row) -> Vec<TCell> {
    let run = row.cells().bytes();
    row.iter().map(|cell| TCell { value: run.slice_ref(cell.value()), timestamp: cell.timestamp() }).collect()
}

/// The rows that are not empty; of a column with several cells the last counts, unless columns are `sorted`. Follows:
/// `ThriftUtilities#rowResultFromHBase`.
pub(super) fn row_results(rows: &[Row], sorted: bool) -> Vec<TRowResult> {
    rows.iter().filter(|row| !row.is_empty()).map(|row| row_result(row, sorted)).collect()
}

fn row_result(row: &Row, sorted: bool) -> TRowResult {
    let run = row.cells().bytes();
    let columns = row.iter().map(|cell| {
        let mut name = BytesMut::with_capacity(cell.family().len() + 1 + cell.qualifier().len());
        name.put_slice(cell.family());
        name.put_u8(b':');
        name.put_slice(cell.qualifier());
        (name.freeze(), TCell { value: run.slice_ref(cell.value()), timestamp: cell.timestamp() })
    });
    let (columns, sorted_columns) = if sorted {
        (None, Some(columns.map(|(column_name, cell)| TColumn { column_name, cell }).collect()))
    } else {
        (Some(columns.collect::<BTreeMap<_, _>>()), None)
    };
    TRowResult { row: run.slice_ref(row.row()), columns, sorted_columns }
}
