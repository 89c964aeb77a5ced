//! Messages from outside as values: everything is checked here, and what HBase refuses is refused in its words.
//!
//! Where HBase throws an unchecked exception it goes over as a plain `IOException`, as there: [`Exception::thrown`].
//!
//! Follows `ProtobufUtil`.

mod filters;
mod mutation;
mod read;
mod schema;

use std::borrow::Cow;

use bytes::Bytes;
use model::{RegionInfo, ServerName, TableName, TimeRange};
use proto::pb;

pub use filters::{Filters, comparator, compare_op, filter, is_light_filter};
pub use mutation::{Cells, condition, mutation};
pub use read::{check_row, get, get_of, scan};
pub use schema::{family, namespace, table};

use crate::Exception;

type Result<T> = std::result::Result<T, Exception>;

/// A time range.
///
/// # Errors
/// A negative timestamp, or bounds in the wrong order.
pub fn time_range(range: &pb::TimeRange) -> Result<TimeRange> {
    let (min, max) = (range.from.unwrap_or(0) as i64, range.to.map_or(i64::MAX, |t| t as i64));
    if min < 0 || max < 0 {
        return Err(illegal(format!("Timestamp cannot be negative. minStamp:{min}, maxStamp:{max}")));
    }
    if max < min {
        return Err(illegal("maxStamp is smaller than minStamp"));
    }
    Ok(TimeRange { min, max })
}

/// A timestamp, which travels unsigned.
pub(crate) fn timestamp(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| illegal(format!("Timestamp cannot be negative. ts={}", value as i64)))
}

/// An argument that HBase's constructors do not take.
pub(crate) fn illegal(message: impl std::fmt::Display) -> Exception {
    Exception::thrown("java.lang.IllegalArgumentException", message)
}

/// Text that the protocol carries as bytes.
pub(crate) fn utf8<'a>(bytes: &'a Bytes, what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        let shown = cell::print::Binary(bytes);
        Exception::do_not_retry(format!("{what} is not UTF-8: {shown}"))
    })
}

/// A required part of a message.
pub(crate) fn required<T>(part: Option<T>, what: &str) -> Result<T> {
    part.ok_or_else(|| Exception::do_not_retry(format!("Missing required field: {what}")))
}

/// A table's name.
///
/// # Errors
/// A name that HBase would refuse.
pub fn table_name(name: &pb::TableName) -> Result<TableName> {
    let (namespace, qualifier) = (utf8(&name.namespace, "the namespace")?, utf8(&name.qualifier, "the table's name")?);
    Ok(TableName::of(namespace, qualifier)?)
}

/// A server's name.
///
/// # Errors
/// A port that is none.
pub fn server_name(name: &pb::ServerName) -> Result<ServerName> {
    let port = u16::try_from(name.port()).map_err(|_| Exception::do_not_retry(format!("no port: {}", name.port())))?;
    Ok(ServerName::new(&name.host_name, port, name.start_code()))
}

/// A region.
///
/// # Errors
/// An illegal table name or replica id.
pub fn region_info(info: &pb::RegionInfo) -> Result<RegionInfo> {
    let table = table_name(&info.table_name)?;
    let replica = u32::try_from(info.replica_id())
        .ok()
        .filter(|r| *r <= 0xFFFF)
        .ok_or_else(|| Exception::do_not_retry(format!("no replica id: {}", info.replica_id())))?;
    if table.is_meta() {
        // There is one hbase:meta, whatever the other fields say.
        return Ok(RegionInfo::with_replica(table, Bytes::new(), Bytes::new(), 1, replica));
    }
    let (start, end) = (info.start_key.clone().unwrap_or_default(), info.end_key.clone().unwrap_or_default());
    let mut region = RegionInfo::with_replica(table, start, end, info.region_id, replica);
    region.offline = info.offline();
    region.split = info.split();
    Ok(region)
}

/// Encoded name of the region that is meant. The specifier names it by its full or its encoded name.
///
/// # Errors
/// An encoded name that is not text.
pub fn region_encoded_name(region: &pb::RegionSpecifier) -> Result<Cow<'_, str>> {
    match region.r#type() {
        pb::region_specifier::RegionSpecifierType::EncodedRegionName => {
            Ok(Cow::Borrowed(utf8(&region.value, "the region's encoded name")?))
        }
        pb::region_specifier::RegionSpecifierType::RegionName => Ok(RegionInfo::encoded_from_name(&region.value)),
    }
}

#[cfg(test)]
mod tests;
