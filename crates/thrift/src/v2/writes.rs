//! Mutations. Follows: `ThriftUtilities`' `putFromThrift`, `deleteFromThrift`, `incrementFromThrift`, `appendFromThrift`.

use super::reads::{VISIBILITY, attributes, check_row};
use super::types::*;
use crate::fault::{Fault, Outcome};
use bytes::Bytes;
use client::{Append, Delete, Increment, Put};
use model::{Durability, Mutation};
use proto::{Message, pb};

fn durability(from: Option<TDurability>) -> Durability {
    match from {
        None | Some(TDurability::USE_DEFAULT) => Durability::UseDefault,
        Some(TDurability::SKIP_WAL) => Durability::SkipWal,
        Some(TDurability::ASYNC_WAL) => Durability::AsyncWal,
        Some(TDurability::SYNC_WAL) => Durability::SyncWal,
        Some(TDurability::FSYNC_WAL) => Durability::FsyncWal,
    }
}

fn visibility(from: Option<TCellVisibility>) -> Option<(String, Bytes)> {
    let visibility = pb::CellVisibility { expression: from?.expression.unwrap_or_default() };
    Some((VISIBILITY.to_owned(), visibility.encode_to_vec().into()))
}

/// A time that a client may give a write.
fn timestamp(from: Option<i64>) -> Outcome<i64> {
    match from {
        Some(at) if at < 0 => Err(Fault::Argument(format!("Timestamp cannot be negative. ts={at}"))),
        Some(at) => Ok(at),
        None => Ok(i64::MAX),
    }
}

/// A put.
pub(super) fn put(from: TPut) -> Outcome<Mutation> {
    check_row(&from.row)?;
    let own_time = timestamp(from.timestamp)?;
    let mut put = Put::new(&from.row).durability(durability(from.durability));
    for column in &from.column_values {
        let at = column.timestamp.map_or(Ok(own_time), |at| timestamp(Some(at)))?;
        put = put.add_at(&column.family, &column.qualifier, at, &column.value);
    }
    let mut put = put.build();
    put.timestamp = own_time;
    put.attributes = attributes(from.attributes);
    put.attributes.extend(visibility(from.cell_visibility));
    Ok(put)
}

/// A delete.
pub(super) fn delete(from: TDelete) -> Outcome<Mutation> {
    check_row(&from.row)?;
    let mut delete = Delete::new(&from.row).durability(durability(from.durability));
    match from.columns {
        None => delete = delete.up_to(timestamp(from.timestamp)?),
        Some(columns) => {
            for TColumn { family, qualifier, timestamp: at } in columns {
                let is_dated = at.is_some();
                let at = timestamp(at)?;
                let qualifier = qualifier.unwrap_or_default();
                delete = match from.delete_type {
                    None => return Err(Fault::Argument("DeleteType is required for TDelete".to_owned())),
                    Some(TDeleteType::DELETE_COLUMN) => delete.column_at(family, qualifier, at),
                    Some(TDeleteType::DELETE_COLUMNS) => delete.columns_up_to(family, qualifier, at),
                    Some(TDeleteType::DELETE_FAMILY) => delete.family_up_to(family, at),
                    Some(TDeleteType::DELETE_FAMILY_VERSION) if is_dated => delete.family_version(family, at),
                    Some(TDeleteType::DELETE_FAMILY_VERSION) => {
                        let why = "Timestamp is required for TDelete with DeleteFamilyVersion type";
                        return Err(Fault::Argument(why.to_owned()));
                    }
                };
            }
        }
    }
    let mut delete = delete.build();
    delete.attributes = attributes(from.attributes);
    Ok(delete)
}

/// Puts and deletes of one row.
pub(super) fn row_mutations(from: TRowMutations) -> Outcome<Vec<Mutation>> {
    let mut all = Vec::with_capacity(from.mutations.len());
    for TMutation { put: a_put, delete_single } in from.mutations {
        all.extend(a_put.map(put).transpose()?);
        all.extend(delete_single.map(delete).transpose()?);
    }
    if let Some(other) = all.iter().find(|mutation| mutation.row != from.row) {
        let [other, row] = [&other.row, &from.row].map(|row| cell::print::to_string_binary(row));
        return Err(Fault::io(format!(
            "The row in the recently added Mutation <{other}> doesn't match the original one <{row}>"
        )));
    }
    Ok(all)
}

/// An increment.
pub(super) fn increment(from: TIncrement) -> Outcome<Mutation> {
    check_row(&from.row)?;
    let mut increment = Increment::new(&from.row).durability(durability(from.durability));
    for column in &from.columns {
        increment = increment.add(&column.family, &column.qualifier, column.amount.unwrap_or(1));
    }
    let mut increment = increment.return_results(from.return_results.unwrap_or(true)).build();
    increment.attributes = attributes(from.attributes);
    increment.attributes.extend(visibility(from.cell_visibility));
    Ok(increment)
}

/// An append.
pub(super) fn append(from: TAppend) -> Outcome<Mutation> {
    check_row(&from.row)?;
    let mut append = Append::new(&from.row).durability(durability(from.durability));
    for column in &from.columns {
        append = append.add(&column.family, &column.qualifier, &column.value);
    }
    let mut append = append.return_results(from.return_results.unwrap_or(true)).build();
    append.attributes = attributes(from.attributes);
    append.attributes.extend(visibility(from.cell_visibility));
    Ok(append)
}
