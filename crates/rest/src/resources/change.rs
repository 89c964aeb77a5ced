//! Writes and deletes. Follows: `RowResource#update`, `RowResource#updateBinary`, `RowResource#delete`.

use super::read::spec_of;
use super::{check, model_of};
use crate::gateway::Gateway;
use crate::media::{MODELS, Media};
use crate::models::{CellModel, CellSet, RowModel};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::row_spec::RowSpec;
use crate::text::column_of;
use bytes::Bytes;
use client::{Delete, Put};
use hyper::StatusCode;

/// Columns of the path, for cells that bring none: one after the other.
pub struct PathColumns<'a> {
    columns: Vec<&'a Bytes>,
    next: usize,
}

impl<'a> PathColumns<'a> {
    /// Of a row specification.
    pub fn of(spec: &'a RowSpec) -> PathColumns<'a> {
        PathColumns { columns: spec.columns.iter().collect(), next: 0 }
    }

    /// The cell's column, or the path's next.
    pub fn column_of(&mut self, cell: &CellModel) -> Result<Bytes, Reply> {
        if let Some(column) = &cell.column {
            return Ok(column.clone());
        }
        let column = self.columns.get(self.next).map(|column| (*column).clone());
        self.next += 1;
        column.ok_or_else(|| wrong("Bad request: Column found to be null."))
    }
}

/// 400 in HBase's words.
pub fn wrong(text: &str) -> Reply {
    Reply::text(StatusCode::BAD_REQUEST, text)
}

/// The row's key, or the path's.
pub fn key_of(row: &RowModel, spec: &RowSpec) -> Bytes {
    row.key.clone().unwrap_or_else(|| spec.row.clone())
}

/// `PUT` and `POST /{table}/{row}...`
pub async fn put(gateway: &Gateway, request: &Request, table: &str, spec: &str) -> Answer {
    let spec = spec_of(request, spec)?;
    let media = request.content(&[MODELS, &[Media::Binary]].concat())?;
    if media == Media::Binary {
        return put_value(gateway, request, table, &spec).await;
    }
    let set: CellSet = model_of(request)?;
    match request.parameter("check")?.unwrap_or_default().to_ascii_lowercase().as_str() {
        "" => put_rows(gateway, table, &spec, &set).await,
        "put" => check::put(gateway, table, &spec, &set).await,
        "delete" => check::delete(gateway, table, &spec, &set).await,
        "append" => check::append(gateway, request, table, &spec, &set).await,
        "increment" => check::increment(gateway, request, table, &spec, &set).await,
        other => Err(wrong(&format!("Invalid check value '{other}'"))),
    }
}

async fn put_rows(gateway: &Gateway, table: &str, spec: &RowSpec, set: &CellSet) -> Answer {
    let mut puts = Vec::with_capacity(set.rows.len());
    for row in &set.rows {
        let mut put = Put::new(key_of(row, spec));
        let mut columns = PathColumns::of(spec);
        for cell in &row.cells {
            let column = columns.column_of(cell)?;
            let (family, Some(qualifier)) = column_of(&column) else { return Err(wrong("Bad request")) };
            fits(family)?;
            put = put.add_at(family, qualifier, cell.timestamp, &cell.value);
        }
        puts.push(put.build());
    }
    gateway.table(table)?.mutate_all(&puts).await.map_err(|error| Reply::of(&error))?;
    Ok(Reply::ok())
}

/// A family's length travels in one byte.
pub fn fits(family: &[u8]) -> Result<(), Reply> {
    if family.len() > cell::MAX_FAMILY_LENGTH {
        return Err(wrong(&format!("Bad request: a family's name has {} bytes at most", cell::MAX_FAMILY_LENGTH)));
    }
    Ok(())
}

/// One value as it is.
async fn put_value(gateway: &Gateway, request: &Request, table: &str, spec: &RowSpec) -> Answer {
    let header = |name: &str| request.header(name).map(|text| Bytes::copy_from_slice(text.as_bytes()));
    let row = header("x-row").unwrap_or_else(|| spec.row.clone());
    let column = header("x-column").or_else(|| spec.columns.first().cloned());
    let column = column.ok_or_else(|| wrong("Bad request: Column found to be null."))?;
    let timestamp = match request.header("x-timestamp") {
        None => i64::MAX,
        Some(text) => text.parse().map_err(|_| Reply::bad_request(&format!("X-Timestamp: {text} is not a number")))?,
    };
    let (family, Some(qualifier)) = column_of(&column) else { return Err(wrong("Bad request")) };
    fits(family)?;
    let put = Put::new(row).add_at(family, qualifier, timestamp, &request.body).build();
    gateway.table(table)?.put(&put).await.map_err(|error| Reply::of(&error))?;
    Ok(Reply::ok())
}

/// `DELETE /{table}/{row}...`
pub async fn delete(gateway: &Gateway, request: &Request, table: &str, spec: &str) -> Answer {
    let spec = spec_of(request, spec)?;
    let at = spec.timestamp();
    let mut delete = Delete::new(&spec.row);
    if let Some(at) = at {
        delete = delete.up_to(at);
    }
    for column in &spec.columns {
        let (family, qualifier) = column_of(column);
        fits(family)?;
        delete = match (qualifier, at) {
            (None, None) => delete.family(family),
            (None, Some(at)) => delete.family_up_to(family, at),
            (Some(qualifier), None) => delete.columns(family, qualifier),
            (Some(qualifier), Some(at)) => delete.columns_up_to(family, qualifier, at),
        };
    }
    gateway.table(table)?.delete(&delete.build()).await.map_err(|error| Reply::of(&error))?;
    Ok(Reply::ok())
}
