//! Reads of one row, of a range or of a glob, and of single values. Follows: `RowResource#get`, `RowResource#getBinary`,
//! `RowResultGenerator`.

use super::versions;
use crate::gateway::{Gateway, LARGE_REPLY_BYTES};
use crate::media::{MODELS_OR_VALUE, Media};
use crate::models::{CellSet, RowModel};
use crate::reply::{Answer, Reply, X_TIMESTAMP};
use crate::request::Request;
use crate::row_spec::RowSpec;
use base::Charge;
use bytes::Bytes;
use client::{Error, Row, ScanOptions};
use hyper::StatusCode;
use model::{Get, Scan};

/// A row specification of a request's path.
pub fn spec_of(request: &Request, spec: &str) -> Result<RowSpec, Reply> {
    let encoding = request.key_encoding()?;
    let mut spec = RowSpec::parse(spec, encoding.as_deref()).map_err(|why| Reply::bad_request(&why))?;
    if let Some(given) = request.parameter("v")? {
        spec.max_versions = given.parse().map_err(|_| Reply::bad_request(&format!("v={given} is not a number")))?;
    }
    Ok(spec)
}

/// The read of one row.
pub fn get_of(spec: &RowSpec, cache_blocks: bool) -> Result<Get, Reply> {
    Ok(Get {
        columns: spec.read_columns(),
        time_range: spec.time_range().map_err(|why| Reply::bad_request(&why))?,
        max_versions: versions(spec.max_versions)?,
        cache_blocks,
        ..Get::new(spec.row.clone())
    })
}

/// `GET /{table}/{row}...`
pub async fn get(gateway: &Gateway, request: &Request, table: &str, spec: &str) -> Answer {
    let media = request.accepted(MODELS_OR_VALUE)?;
    let spec = spec_of(request, spec)?;
    if media == Media::Binary && spec.columns.len() != 1 {
        return Err(Reply::text(
            StatusCode::BAD_REQUEST,
            "Bad request: Default 'GET' method only works if there is exactly 1 column in the row. Using the 'Accept' \
             header with one of these formats lets you retrieve the entire row if it has multiple columns: text/xml, \
             application/json, application/x-protobuf, application/protobuf",
        ));
    }
    let cache_blocks = request.raw_parameter("nocache").is_none();
    let first_alone = media == Media::Binary;
    let mut gathered = gateway.gathering();
    let rows = match &spec.end_row {
        None => one(gateway, table, &get_of(&spec, cache_blocks)?, &mut gathered).await?.into_iter().collect(),
        Some(end) => several(gateway, table, &spec, end, cache_blocks, first_alone, &mut gathered).await?,
    };
    if media == Media::Binary {
        return value(&rows);
    }
    if rows.is_empty() {
        return Err(Reply::not_found());
    }
    gateway.reply_of(CellSet { rows: rows.iter().map(RowModel::of).collect() }, media, gathered).await
}

/// One row, if there is one. As in HBase an error that no retry helps is as good as no row, unless it is one of rights.
async fn one(gateway: &Gateway, table: &str, get: &Get, gathered: &mut Charge) -> Result<Option<Row>, Reply> {
    match gateway.table(table)?.get(get).await {
        // A small one is answered at once.
        Ok(row) if row.byte_len() > LARGE_REPLY_BYTES && !gathered.try_grow_share(row.byte_len() as u64) => {
            Err(Reply::crowded())
        }
        Ok(row) => Ok(Some(row).filter(|row| !row.is_empty())),
        Err(error) if is_final(&error) && error.short_class() != Some("AccessDeniedException") => Ok(None),
        Err(error) => Err(Reply::of(&error)),
    }
}

/// Whether the class is one of HBase's `DoNotRetryIOException`s.
pub fn is_final(error: &Error) -> bool {
    match error {
        Error::Remote(remote) => remote.do_not_retry,
        Error::TableNotFound(_) | Error::TableDisabled(_) => true,
        Error::RetriesExhausted { last, .. } => is_final(last),
        _ => false,
    }
}

async fn several(
    gateway: &Gateway,
    table: &str,
    spec: &RowSpec,
    end: &Bytes,
    cache_blocks: bool,
    first_alone: bool,
    gathered: &mut Charge,
) -> Result<Vec<Row>, Reply> {
    let scan = Scan {
        start_row: spec.row.clone(),
        stop_row: end.clone(),
        columns: spec.read_columns(),
        time_range: spec.time_range().map_err(|why| Reply::bad_request(&why))?,
        max_versions: versions(spec.max_versions)?,
        cache_blocks,
        ..Scan::default()
    };
    let table = gateway.table(table)?;
    let mut scanner = table.scan(scan, ScanOptions { limit: first_alone.then_some(1), ..table.scan_options() });
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = scanner.next().await.map_err(|error| Reply::of(&error))? {
        bytes += row.byte_len();
        if bytes > gateway.max_reply_bytes {
            let text = format!(
                "Unavailable: the rows have more than {} bytes (basalt.rest.max.reply.bytes); use a scanner",
                gateway.max_reply_bytes
            );
            return Err(Reply::text(StatusCode::SERVICE_UNAVAILABLE, &text));
        }
        if !gathered.try_grow_share(bytes as u64) {
            return Err(Reply::crowded());
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The first cell's value.
fn value(rows: &[Row]) -> Answer {
    let Some((row, cell)) = rows.first().and_then(|row| Some((row, row.iter().next()?))) else {
        return Err(Reply::not_found());
    };
    let (run, value) = (row.cells().bytes(), cell.value());
    // A small value does not keep the cells beside it.
    let is_most = value.len() > run.len() / 2;
    let value = if is_most { run.slice_ref(value) } else { Bytes::copy_from_slice(value) };
    let reply = Reply::bytes(Media::Binary, value);
    Ok(reply.header(X_TIMESTAMP, &cell.timestamp().to_string()))
}
