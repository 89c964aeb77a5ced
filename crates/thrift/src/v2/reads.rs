//! Gets and results.

use super::types::*;
use crate::fault::{Fault, Outcome};
use bytes::Bytes;
use client::Row;
use filter::Filter;
use model::read::Columns;
use model::{Get, TimeRange};
use proto::{Message, pb};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The attribute in which labels of visibility travel.
pub(super) const VISIBILITY: &str = "VISIBILITY";

/// Adds a column, or with no qualifier the whole family.
pub(crate) fn add_column(columns: &mut Columns, family: Bytes, qualifier: Option<Bytes>) {
    match qualifier {
        None => drop(columns.insert(family, Vec::new())),
        Some(qualifier) => {
            let qualifiers = columns.entry(family).or_default();
            if let Err(at) = qualifiers.binary_search(&qualifier) {
                qualifiers.insert(at, qualifier);
            }
        }
    }
}

pub(super) fn columns(from: Option<Vec<TColumn>>) -> Columns {
    let mut columns = Columns::new();
    for column in from.into_iter().flatten() {
        add_column(&mut columns, column.family, column.qualifier);
    }
    columns
}

pub(super) fn attributes(from: Option<BTreeMap<Bytes, Bytes>>) -> Vec<(String, Bytes)> {
    let text = |(name, value): (Bytes, Bytes)| (String::from_utf8_lossy(&name).into_owned(), value);
    from.into_iter().flatten().map(text).collect()
}

/// Follows: `Authorizations`.
pub(super) fn authorizations(from: Option<TAuthorization>, attributes: &mut Vec<(String, Bytes)>) {
    if let Some(authorization) = from {
        let labels = pb::Authorizations { label: authorization.labels.unwrap_or_default() };
        attributes.push((VISIBILITY.to_owned(), labels.encode_to_vec().into()));
    }
}

/// The filter of a read: the bytes count more than the text.
pub(super) fn filter(text: Option<Bytes>, bytes: Option<Bytes>) -> Outcome<Option<Arc<Filter>>> {
    let parsed = text.map(|text| filter::parse::parse_filter(&text)).transpose()?;
    let Some(bytes) = bytes else { return Ok(parsed.map(Arc::new)) };
    let wire = pb::Filter::decode(bytes).map_err(|error| Fault::io(error.to_string()))?;
    let filter = convert::from_proto::filter(&wire).map_err(|error| Fault::io(error.to_string()))?;
    Ok(Some(Arc::new(filter)))
}

/// Follows: `TimeRange#check`.
pub(crate) fn time_range(min: i64, max: i64) -> Outcome<TimeRange> {
    if min < 0 || max < 0 {
        return Err(Fault::Argument(format!("Timestamp cannot be negative. minStamp:{min}, maxStamp:{max}")));
    }
    if max < min {
        return Err(Fault::Argument("maxStamp is smaller than minStamp".to_owned()));
    }
    Ok(TimeRange { min, max })
}

/// Follows: `Mutation#checkRow`.
pub(crate) fn check_row(row: &Bytes) -> Outcome<()> {
    match row.len() {
        0 => Err(Fault::Argument("Row length is 0".to_owned())),
        length if length > cell::MAX_ROW_LENGTH => {
            Err(Fault::Argument(format!("Row length {length} is > {}", cell::MAX_ROW_LENGTH)))
        }
        _ => Ok(()),
    }
}

pub(super) fn max_versions(asked: i32) -> Outcome<u32> {
    let positive = u32::try_from(asked).ok().filter(|versions| *versions > 0);
    positive.ok_or_else(|| Fault::io("versions must be positive"))
}

/// Follows: `ThriftUtilities#getFromThrift`.
pub(super) fn get(from: TGet) -> Outcome<Get> {
    check_row(&from.row)?;
    let mut get = Get::new(from.row);
    match (from.timestamp, from.time_range) {
        (Some(at), _) => get.time_range = time_range(at, at.saturating_add(1))?,
        (None, Some(range)) => get.time_range = time_range(range.min_stamp, range.max_stamp)?,
        (None, None) => {}
    }
    if let Some(asked) = from.max_versions {
        get.max_versions = max_versions(asked)?;
    }
    get.filter = filter(from.filter_string, from.filter_bytes)?;
    get.attributes = attributes(from.attributes);
    authorizations(from.authorizations, &mut get.attributes);
    get.timeline = from.consistency == Some(TConsistency::TIMELINE);
    get.cache_blocks = from.cache_blocks.unwrap_or(true);
    get.store_limit = from.store_limit.and_then(|limit| u32::try_from(limit).ok());
    get.store_offset = from.store_offset.and_then(|offset| u32::try_from(offset).ok()).unwrap_or_default();
    get.existence_only = from.existence_only.unwrap_or_default();
    get.columns = columns(from.columns);
    Ok(get)
}

pub(super) fn gets(from: Vec<TGet>) -> Outcome<Vec<Get>> {
    from.into_iter().map(get).collect()
}

/// Follows: `ThriftUtilities#resultFromHBase`.
pub(super) fn result(row: &Row) -> TResult {
    let run = row.cells().bytes();
    let column_values: Vec<TColumnValue> = row
        .iter()
        .map(|cell| TColumnValue {
            family: run.slice_ref(cell.family()),
            qualifier: run.slice_ref(cell.qualifier()),
            value: run.slice_ref(cell.value()),
            timestamp: Some(cell.timestamp()),
            tags: (!cell.tags().is_empty()).then(|| run.slice_ref(cell.tags())),
            cell_type: Some(cell.type_code() as i8),
        })
        .collect();
    TResult {
        row: (!row.is_empty()).then(|| run.slice_ref(row.row())),
        column_values,
        stale: Some(row.is_stale()),
        partial: Some(row.may_have_more_cells()),
    }
}

pub(super) fn results(rows: &[Row]) -> Vec<TResult> {
    rows.iter().map(result).collect()
}
