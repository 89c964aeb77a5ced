//! Writes with a condition, appends and increments. Follows: `RowResource#checkAndPut`, `checkAndDelete`, `append`, `increment`.

use super::change::{PathColumns, fits, key_of, wrong};
use crate::gateway::Gateway;
use crate::media::{MODELS, Media};
use crate::models::{CellModel, CellSet, RowModel};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::row_spec::RowSpec;
use crate::text::column_of;
use bytes::Bytes;
use client::{Append, CheckAndMutate, Delete, Increment, Put, Row};
use hyper::StatusCode;
use model::Mutation;

fn only_row(set: &CellSet) -> Result<&RowModel, Reply> {
    let [row] = set.rows.as_slice() else { return Err(wrong("Bad request: Number of rows specified is not 1.")) };
    Ok(row)
}

async fn done_if(gateway: &Gateway, table: &str, check: CheckAndMutate, mutation: Mutation, otherwise: &str) -> Answer {
    let checked = gateway.table(table)?.check(&check.then([mutation])).await.map_err(|error| Reply::of(&error))?;
    if checked.processed { Ok(Reply::ok()) } else { Err(Reply::text(StatusCode::NOT_MODIFIED, otherwise)) }
}

/// `?check=put`: the last cell is the expected value, and its column is among those that are written.
pub async fn put(gateway: &Gateway, table: &str, spec: &RowSpec, set: &CellSet) -> Answer {
    let row = only_row(set)?;
    let Some((expected, cells)) = row.cells.split_last().filter(|(_, cells)| !cells.is_empty()) else {
        return Err(wrong("Bad request: Either row key is null or no data found for columns specified."));
    };
    let misplaced = || wrong("Bad request: Column incorrectly specified.");
    let checked = expected.column.clone().ok_or_else(misplaced)?;
    let (family, Some(qualifier)) = column_of(&checked) else { return Err(misplaced()) };
    if qualifier.is_empty() {
        return Err(misplaced());
    }
    let key = key_of(row, spec);
    let mut put = Put::new(&key);
    for cell in cells {
        let column = cell.column.as_ref().ok_or_else(|| wrong("Bad request: Column found to be null."))?;
        let (family, Some(qualifier)) = column_of(column) else { return Err(wrong("Bad request")) };
        fits(family)?;
        put = put.add_at(family, qualifier, cell.timestamp, &cell.value);
    }
    if !cells.iter().any(|cell| cell.column.as_ref() == Some(&checked)) {
        return Err(wrong("Bad request: The column to put and check do not match."));
    }
    let check = CheckAndMutate::if_equals(&key, family, qualifier, &expected.value);
    done_if(gateway, table, check, put.build(), "Value not Modified").await
}

/// `?check=delete`: the last cell is the expected value; the others say what is deleted, and without others it is that column.
pub async fn delete(gateway: &Gateway, table: &str, spec: &RowSpec, set: &CellSet) -> Answer {
    let row = only_row(set)?;
    let Some((expected, cells)) = row.cells.split_last() else {
        return Err(wrong("Bad request: Column not specified for check."));
    };
    let checked = expected.column.as_ref().or_else(|| spec.columns.first());
    let checked = checked.ok_or_else(|| wrong("Bad request: Column not specified for check."))?;
    let key = key_of(row, spec);
    let mut delete = Delete::new(&key);
    for cell in cells {
        let column = cell.column.as_ref().ok_or_else(|| wrong("Bad request: Column found to be null."))?;
        let (family, qualifier) = column_of(column);
        fits(family)?;
        delete = match qualifier {
            None => delete.family_up_to(family, cell.timestamp),
            Some(qualifier) => delete.column_at(family, qualifier, cell.timestamp),
        };
    }
    let (family, Some(qualifier)) = column_of(checked) else {
        return Err(wrong("Bad request: Column to check incorrectly specified."));
    };
    fits(family)?;
    if cells.is_empty() {
        delete = delete.columns(family, qualifier);
    }
    let check = CheckAndMutate::if_equals(&key, family, qualifier, &expected.value);
    done_if(gateway, table, check, delete.build(), " Delete check failed.").await
}

/// What `rr=true` asks for.
fn returned(request: &Request, row: &Row, otherwise: &str) -> Answer {
    if !request.flag("rr", false)? {
        return Ok(Reply::ok());
    }
    if row.is_empty() {
        return Err(Reply::text(StatusCode::NOT_MODIFIED, otherwise));
    }
    let offered: Vec<Media> = MODELS.to_vec();
    Ok(Reply::model(request.accepted(&offered)?, &CellSet { rows: vec![RowModel::of(row)] }))
}

/// The cells of the only row, each with its column in two parts.
fn columns_and_cells<'a>(row: &'a RowModel, spec: &RowSpec) -> Result<Vec<(Bytes, &'a CellModel)>, Reply> {
    let mut columns = PathColumns::of(spec);
    let cell = |cell: &'a CellModel| {
        let column = columns.column_of(cell)?;
        let (family, Some(_)) = column_of(&column) else {
            return Err(wrong("Bad request: Column incorrectly specified."));
        };
        fits(family)?;
        Ok((column, cell))
    };
    row.cells.iter().map(cell).collect()
}

/// `?check=append`
pub async fn append(gateway: &Gateway, request: &Request, table: &str, spec: &RowSpec, set: &CellSet) -> Answer {
    let row = only_row(set)?;
    let mut append = Append::new(key_of(row, spec)).return_results(request.flag("rr", false)?);
    for (column, cell) in columns_and_cells(row, spec)? {
        let (family, qualifier) = column_of(&column);
        append = append.add(family, qualifier.unwrap_or_default(), &cell.value);
    }
    let row = gateway.table(table)?.append(&append.build()).await.map_err(|error| Reply::of(&error))?;
    returned(request, &row, "Append return empty.")
}

/// `?check=increment`: amounts are decimal text. (HBase answers `rr=true` with the amounts that came in; we answer with the new values.)
pub async fn increment(gateway: &Gateway, request: &Request, table: &str, spec: &RowSpec, set: &CellSet) -> Answer {
    let row = only_row(set)?;
    let mut increment = Increment::new(key_of(row, spec)).return_results(request.flag("rr", false)?);
    for (column, cell) in columns_and_cells(row, spec)? {
        let (family, qualifier) = column_of(&column);
        let text = String::from_utf8_lossy(&cell.value);
        let amount =
            text.parse().map_err(|_| Reply::bad_request(&format!("an amount is decimal text, not {text:?}")))?;
        increment = increment.add(family, qualifier.unwrap_or_default(), amount);
    }
    let row = gateway.table(table)?.increment(&increment.build()).await.map_err(|error| Reply::of(&error))?;
    returned(request, &row, "Increment return empty.")
}
