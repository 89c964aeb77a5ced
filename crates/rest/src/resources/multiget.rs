//! Many rows by their keys. Follows: `MultiRowResource`, `MultiRowResultReader`.

use super::filter_of;
use super::read::{get_of, is_final};
use crate::gateway::Gateway;
use crate::media::MODELS;
use crate::models::CellSet;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::row_spec::RowSpec;
use bytes::Bytes;
use hyper::StatusCode;
use std::sync::Arc;

/// Rows that are asked for together: what they have is known, and counted, when they are there.
const ROWS_AT_ONCE: usize = 100;

/// `GET /{table}/multiget[/{columns}]?row=...&row=...`
pub async fn get(gateway: &Gateway, request: &Request, table: &str, columns: &str) -> Answer {
    let media = request.accepted(MODELS)?;
    let filter = filter_of(request)?.map(Arc::new);
    let encoding = request.key_encoding()?;
    let cache_blocks = request.raw_parameter("nocache").is_none();
    let versions = request.parameter("v")?;
    let mut gets = Vec::new();
    for key in request.all_parameters("row")? {
        let mut spec = RowSpec::parse(&key, encoding.as_deref()).map_err(|why| Reply::bad_request(&why))?;
        if let Some(given) = &versions {
            spec.max_versions = given.parse().map_err(|_| Reply::bad_request(&format!("v={given} is not a number")))?;
        }
        let given = columns.split(',').filter(|column| !column.is_empty());
        spec.columns.extend(given.map(|column| Bytes::copy_from_slice(column.as_bytes())));
        let mut get = get_of(&spec, cache_blocks)?;
        get.filter.clone_from(&filter);
        gets.push(get);
    }
    let nothing = || Reply::text(StatusCode::NOT_FOUND, "No rows found.");
    let (table, mut rows, mut charge) = (gateway.table(table)?, Vec::new(), gateway.gathering());
    for some in gets.chunks(ROWS_AT_ONCE) {
        rows.extend(match table.get_all(some).await {
            Ok(rows) => rows,
            Err(error) if is_final(&error) && error.short_class() != Some("AccessDeniedException") => {
                return Err(nothing());
            }
            Err(error) => return Err(Reply::of(&error)),
        });
        let bytes: usize = rows.iter().map(client::Row::byte_len).sum();
        if bytes > gateway.max_reply_bytes || !charge.try_grow_share(bytes as u64) {
            return Err(Reply::crowded());
        }
    }
    let set = CellSet::of(&rows);
    if set.rows.is_empty() { Err(nothing()) } else { gateway.reply_of(set, media, charge).await }
}
