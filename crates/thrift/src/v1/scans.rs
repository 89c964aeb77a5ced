//! Scanners.

use super::types::*;
use super::{Attributes, Handler, attributes, parse_column, reads::row_results};
use crate::fault::{Fault, Outcome};
use crate::scanners::scan_options;
use crate::v2::{add_column, batch, time_range};
use bytes::Bytes;
use filter::Filter;
use model::Scan;
use std::sync::Arc;

fn unknown() -> Fault {
    Fault::Illegal("scanner ID is invalid".to_owned())
}

/// A scan from one row to another.
fn scan(start: Bytes, stop: Bytes, columns: &[Bytes], with: Option<Attributes>) -> Scan {
    let mut scan = Scan { start_row: start, stop_row: stop, attributes: attributes(with), ..Scan::default() };
    for column in columns {
        let (family, qualifier) = parse_column(column);
        add_column(&mut scan.columns, family, qualifier);
    }
    scan
}

impl Handler {
    fn open(&self, table: &Bytes, scan: Scan, caching: Option<i32>, sorted: bool) -> Outcome<i32> {
        let table = self.table(table)?;
        let mut options = scan_options(&table);
        if let Some(rows) = caching.and_then(|rows| u32::try_from(rows).ok()).filter(|rows| *rows > 0) {
            options.caching = rows;
        }
        self.scanners.add(table.scan(scan, options), sorted)
    }

    pub(super) async fn scanner_open(
        &self,
        table_name: Bytes,
        start_row: Bytes,
        columns: Vec<Bytes>,
        attributes: Option<Attributes>,
    ) -> Outcome<i32> {
        self.open(&table_name, scan(start_row, Bytes::new(), &columns, attributes), None, false)
    }

    pub(super) async fn scanner_open_ts(
        &self,
        table_name: Bytes,
        start_row: Bytes,
        columns: Vec<Bytes>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<i32> {
        let scan = scan(start_row, Bytes::new(), &columns, attributes);
        self.open(&table_name, Scan { time_range: time_range(0, timestamp)?, ..scan }, None, false)
    }

    pub(super) async fn scanner_open_with_stop(
        &self,
        table_name: Bytes,
        start_row: Bytes,
        stop_row: Bytes,
        columns: Vec<Bytes>,
        attributes: Option<Attributes>,
    ) -> Outcome<i32> {
        self.open(&table_name, scan(start_row, stop_row, &columns, attributes), None, false)
    }

    pub(super) async fn scanner_open_with_stop_ts(
        &self,
        table_name: Bytes,
        start_row: Bytes,
        stop_row: Bytes,
        columns: Vec<Bytes>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<i32> {
        let scan = scan(start_row, stop_row, &columns, attributes);
        self.open(&table_name, Scan { time_range: time_range(0, timestamp)?, ..scan }, None, false)
    }

    pub(super) async fn scanner_open_with_prefix(
        &self,
        table_name: Bytes,
        start_and_prefix: Bytes,
        columns: Vec<Bytes>,
        attributes: Option<Attributes>,
    ) -> Outcome<i32> {
        let prefix = Box::new(Filter::Prefix { prefix: Some(start_and_prefix.clone()) });
        let filter = Some(Arc::new(Filter::WhileMatch { filter: prefix }));
        let scan = scan(start_and_prefix, Bytes::new(), &columns, attributes);
        self.open(&table_name, Scan { filter, ..scan }, None, false)
    }

    pub(super) async fn scanner_open_with_scan(
        &self,
        table_name: Bytes,
        scan: TScan,
        attributes: Option<Attributes>,
    ) -> Outcome<i32> {
        let (start, stop) = (scan.start_row.unwrap_or_default(), scan.stop_row.unwrap_or_default());
        let mut asked = self::scan(start, stop, &scan.columns.unwrap_or_default(), attributes);
        if let Some(timestamp) = scan.timestamp {
            asked.time_range = time_range(0, timestamp)?;
        }
        let filter = scan.filter_string.map(|text| filter::parse::parse_filter(&text)).transpose()?;
        asked.filter = filter.map(Arc::new);
        asked.batch = batch(scan.batch_size);
        asked.reversed = scan.reversed.unwrap_or_default();
        asked.cache_blocks = scan.cache_blocks.unwrap_or(true);
        self.open(&table_name, asked, scan.caching, scan.sort_columns.unwrap_or_default())
    }

    pub(super) async fn scanner_get(&self, id: i32) -> Outcome<Vec<TRowResult>> {
        self.scanner_get_list(id, 1).await
    }

    pub(super) async fn scanner_get_list(&self, id: i32, nb_rows: i32) -> Outcome<Vec<TRowResult>> {
        let (rows, sorted) = self.scanners.next(id, nb_rows).await.ok_or_else(unknown)??;
        Ok(row_results(&rows, sorted))
    }

    pub(super) async fn scanner_close(&self, id: i32) -> Outcome<()> {
        if self.scanners.close(id) { Ok(()) } else { Err(unknown()) }
    }
}
