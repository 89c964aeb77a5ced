//! Messages from outside as values: everything is checked here, and what HBase refuses is refused in its words.
//! Follows `ProtobufUtil`.

mod filters;
mod mutation;
mod read;
mod schema;

use std::borrow::Cow;

use bytes::Bytes;
use model::name::DEFAULT_NAMESPACE;
use model::{RegionInfo, ServerName, TableName, TimeRange};
use proto::pb;

pub use filters::{Filters, comparator, compare_op, filter, is_light_filter};
pub use mutation::{Cells, condition, mutation};
pub use read::{check_row, get, get_of, scan};
pub use schema::{family, namespace, table};

use crate::error::Result;
use crate::{ConvertError, ConvertErrorKind};

/// A time range.
///
/// # Errors
/// A negative timestamp, or bounds in the wrong order.
pub fn time_range(range: &pb::TimeRange) -> Result<TimeRange> {
    let (min, max) = (range.from.unwrap_or(0) as i64, range.to.map_or(i64::MAX, |t| t as i64));
    if min < 0 || max < 0 {
        let message = format!("Timestamp cannot be negative. minStamp:{min}, maxStamp:{max}");
        return Err(ConvertError::illegal("TimeRange", message));
    }
    if max < min {
        return Err(ConvertError::illegal("TimeRange", "maxStamp is smaller than minStamp"));
    }
    Ok(TimeRange { min, max })
}

/// A timestamp, which travels unsigned.
pub(crate) fn timestamp(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| {
        ConvertError::illegal("MutationProto.timestamp", format!("Timestamp cannot be negative. ts={}", value as i64))
    })
}

/// Text that the protocol carries as bytes.
pub(crate) fn utf8<'a>(bytes: &'a Bytes, at: &'static str, what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        let shown = cell::print::Binary(bytes);
        ConvertError::malformed(at, format!("{what} is not UTF-8: {shown}"))
    })
}

/// A required part of a message.
pub(crate) fn required<T>(part: Option<T>, at: &'static str, what: &str) -> Result<T> {
    part.ok_or_else(|| ConvertError::malformed(at, format!("Missing required field: {what}")))
}

/// A name that HBase refuses.
pub(crate) fn illegal_name(at: &'static str) -> impl FnOnce(model::NameError) -> ConvertError {
    move |error| ConvertError::new(ConvertErrorKind::IllegalName, at, error.0)
}

/// A table's name.
///
/// # Errors
/// A name that HBase would refuse.
pub fn table_name(name: &pb::TableName) -> Result<TableName> {
    let namespace = utf8(&name.namespace, "TableName.namespace", "the namespace")?;
    let qualifier = utf8(&name.qualifier, "TableName.qualifier", "the table's name")?;
    // An empty namespace is the default one, as in `TableName#valueOf(ByteBuffer, ByteBuffer)`.
    let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
    TableName::of(namespace, qualifier).map_err(illegal_name("TableName"))
}

/// A server's name.
///
/// # Errors
/// A port that is none.
pub fn server_name(name: &pb::ServerName) -> Result<ServerName> {
    let no_port = |_| ConvertError::malformed("ServerName.port", format!("no port: {}", name.port()));
    let port = u16::try_from(name.port()).map_err(no_port)?;
    Ok(ServerName::new(&name.host_name, port, name.start_code()))
}

/// Highest id of a read replica. Follows: `MutableRegionInfo`.
const MAX_REPLICA_ID: u32 = 0xFFFF;

/// A region.
///
/// # Errors
/// An illegal table name or replica id.
pub fn region_info(info: &pb::RegionInfo) -> Result<RegionInfo> {
    let table = table_name(&info.table_name)?;
    let replica = replica_id(info.replica_id())?;
    if table.is_meta() && replica == 0 {
        // There is one hbase:meta, whatever the other fields say.
        return Ok(RegionInfo::meta());
    }
    let (start, end) = (info.start_key.clone().unwrap_or_default(), info.end_key.clone().unwrap_or_default());
    let mut region = RegionInfo::with_replica(table, start, end, info.region_id, replica);
    region.offline = info.offline();
    region.split = info.split();
    Ok(region)
}

fn replica_id(id: i32) -> Result<u32> {
    let illegal = |message| ConvertError::illegal("RegionInfo.replica_id", message);
    let id = u32::try_from(id).map_err(|_| illegal(format!("ReplicaId cannot be negative: {id}")))?;
    if id > MAX_REPLICA_ID {
        return Err(illegal(format!("ReplicaId cannot be greater than {MAX_REPLICA_ID}")));
    }
    Ok(id)
}

/// Encoded name of the region that is meant. The specifier names it by its full or its encoded name.
///
/// # Errors
/// An encoded name that is not text.
pub fn region_encoded_name(region: &pb::RegionSpecifier) -> Result<Cow<'_, str>> {
    match region.r#type() {
        pb::region_specifier::RegionSpecifierType::EncodedRegionName => {
            Ok(Cow::Borrowed(utf8(&region.value, "RegionSpecifier.value", "the region's encoded name")?))
        }
        pb::region_specifier::RegionSpecifierType::RegionName => Ok(RegionInfo::encoded_from_name(&region.value)),
    }
}

#[cfg(test)]
mod tests;
