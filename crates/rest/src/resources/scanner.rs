//! Scanners that clients come back to. Follows: `ScannerResource`, `ScannerInstanceResource`.

use super::{filter, model_of};
use crate::gateway::Gateway;
use crate::media::{MODELS_OR_VALUE, Media};
use crate::models::{CellSet, RowModel, ScannerModel};
use crate::reply::{Answer, Reply, X_COLUMN, X_ROW, X_TIMESTAMP};
use crate::request::Request;
use crate::row_spec::{read_columns, time_range};
use crate::scanners::{CellScanner, Found};
use crate::text::base64;
use client::{Error, ScanOptions};
use hyper::StatusCode;
use model::Scan;
use std::sync::Arc;

/// Bytes of a server's reply to a scanner: what each of those that wait holds at most, beside a large row.
const MAX_REPLY_BYTES: u64 = 256 << 10;

/// `PUT` and `POST /{table}/scanner`
pub fn create(gateway: &Gateway, request: &Request, table: &str) -> Answer {
    let model: ScannerModel = model_of(request)?;
    let bad = |why: String| Reply::bad_request(&why);
    let filter = match model.filter.as_deref() {
        None | Some("") => None,
        Some(text) => Some(Arc::new(filter::parse(text).map_err(bad)?)),
    };
    if !model.labels.is_empty() {
        // Rows that a label hides must not be handed out because nobody looked at it.
        return Err(bad("labels: this cluster has no visibility labels".to_owned()));
    }
    let scan = Scan {
        start_row: model.start_row,
        include_start_row: model.include_start_row,
        stop_row: model.end_row,
        include_stop_row: model.include_stop_row,
        columns: read_columns(&model.columns),
        time_range: time_range(model.start_time, model.end_time).map_err(bad)?,
        max_versions: super::versions(model.max_versions)?,
        cache_blocks: model.cache_blocks,
        filter,
        ..Scan::default()
    };
    let handle = gateway.table(table)?;
    let options = handle.scan_options();
    let caching = u32::try_from(model.caching).ok().filter(|rows| *rows > 0).unwrap_or(options.caching);
    let scanner = handle
        .scan(scan, ScanOptions { caching, max_result_size: options.max_result_size.min(MAX_REPLY_BYTES), ..options });
    let batch = usize::try_from(model.batch).unwrap_or(0).max(1);
    let id = gateway.scanner_id();
    gateway.scanners.insert(id.clone(), table, CellScanner::new(scanner, batch));
    Ok(Reply::created(&format!("{}/{id}", request.url().trim_end_matches('/'))))
}

/// `DELETE /{table}/scanner/{id}`
pub fn close(gateway: &Gateway, table: &str, id: &str) -> Answer {
    if gateway.scanners.remove(table, id) { Ok(Reply::ok()) } else { Err(Reply::not_found()) }
}

/// `GET /{table}/scanner/{id}`
pub async fn next(gateway: &Gateway, request: &Request, table: &str, id: &str) -> Answer {
    let media = request.accepted(MODELS_OR_VALUE)?;
    let (rows, cells) = (request.number::<i32>("n")?.unwrap_or(0), request.number::<i32>("c")?.unwrap_or(0));
    let mut scanner = match gateway.scanners.take(table, id) {
        Found::Here(scanner) => scanner,
        Found::Busy => return Err(Reply::unavailable()),
        Found::Nowhere => return Err(Reply::not_found()),
    };
    let answer = match media {
        Media::Binary => one_cell(&mut scanner).await.map(Ok),
        _ => some_cells(&mut scanner, media, (rows, cells), gateway).await,
    };
    match answer {
        Ok(reply) => {
            let mut charge = gateway.gathering();
            if !charge.try_grow_share(scanner.held_bytes()) {
                gateway.scanners.remove(table, id);
                return Err(Reply::crowded());
            }
            gateway.scanners.put_back(id, scanner, charge);
            reply
        }
        // Where it stands is not known any more.
        Err(error) => {
            gateway.scanners.remove(table, id);
            Err(refused(&error))
        }
    }
}

fn refused(error: &Error) -> Reply {
    match error.short_class() {
        Some("TableNotEnabledException") => Reply::text(StatusCode::GONE, "Gone"),
        Some("TableNotFoundException") => Reply::not_found(),
        _ => Reply::of(error),
    }
}

async fn one_cell(scanner: &mut CellScanner) -> Result<Reply, Error> {
    let Some(row) = scanner.row_of_next().await? else { return Ok(Reply::empty(StatusCode::NO_CONTENT)) };
    let Some(cell) = scanner.take(1).pop() else { return Ok(Reply::empty(StatusCode::NO_CONTENT)) };
    let column = cell.column.unwrap_or_default();
    Ok(Reply::bytes(Media::Binary, cell.value)
        .uncached()
        .header(X_ROW, &base64(&row))
        .header(X_COLUMN, &base64(&column))
        .header(X_TIMESTAMP, &cell.timestamp.to_string()))
}

/// As many rows and cells as were asked for, and as a reply may have bytes.
async fn some_cells(
    scanner: &mut CellScanner,
    media: Media,
    (rows, cells): (i32, i32),
    gateway: &Gateway,
) -> Result<Answer, Error> {
    let most_rows = usize::try_from(rows).ok().filter(|rows| *rows > 0).unwrap_or(usize::MAX);
    let mut left = usize::try_from(cells).ok().filter(|cells| *cells > 0).unwrap_or(scanner.batch);
    let mut set = CellSet::default();
    let (mut bytes, mut charge) = (0, gateway.gathering());
    // Where there is no room for more, the answer ends: the next goes on.
    while left > 0
        && bytes < gateway.max_reply_bytes
        && set.rows.len() < most_rows
        && charge.try_grow_share(bytes as u64)
    {
        let Some(key) = scanner.row_of_next().await? else { break };
        let row = RowModel { key: Some(key), cells: scanner.take(left) };
        left -= row.cells.len();
        bytes += row.byte_len();
        set.rows.push(row);
    }
    if set.rows.is_empty() {
        return Ok(Ok(Reply::empty(StatusCode::NO_CONTENT)));
    }
    Ok(gateway.reply_of(set, media, charge).await.map(Reply::uncached))
}
