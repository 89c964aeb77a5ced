//! Values as messages. The inverse of [`crate::from_proto`]; nothing here can fail.
//!
//! Follows `ProtobufUtil`, `RequestConverter`, `ResponseConverter`.

mod filters;
mod mutation;
mod read;
mod result;
mod schema;
mod status;

use bytes::Bytes;
use model::{RegionInfo, ServerName, TableName, TimeRange};
use proto::pb;

pub use filters::{comparator, compare_type, filter};
pub use mutation::{condition, mutation, mutation_without_cells};
pub use read::{get, scan};
pub use result::{get_response_with_count, inline_result, result_with_count};
pub use schema::{family, namespace, table};
pub use status::{coprocessors, region_cached_info, region_load, task};

/// A time range.
pub fn time_range(range: TimeRange) -> pb::TimeRange {
    pb::TimeRange { from: Some(range.min as u64), to: Some(range.max as u64) }
}

/// A table's name.
pub fn table_name(name: &TableName) -> pb::TableName {
    pb::TableName {
        namespace: Bytes::copy_from_slice(name.namespace().as_bytes()),
        qualifier: Bytes::copy_from_slice(name.qualifier().as_bytes()),
    }
}

/// A server's name.
pub fn server_name(name: &ServerName) -> pb::ServerName {
    pb::ServerName {
        host_name: name.host.to_string(),
        port: Some(u32::from(name.port)),
        start_code: Some(name.start_code),
    }
}

/// A region.
pub fn region_info(info: &RegionInfo) -> pb::RegionInfo {
    pb::RegionInfo {
        region_id: info.region_id,
        table_name: table_name(&info.table),
        start_key: Some(info.start_key.clone()),
        end_key: Some(info.end_key.clone()),
        offline: Some(info.offline),
        split: Some(info.split),
        replica_id: Some(info.replica_id as i32),
    }
}

/// A region by its full name.
pub fn region_specifier(info: &RegionInfo) -> pb::RegionSpecifier {
    pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
        value: info.name().clone(),
    }
}

fn name_bytes(name: impl Into<String>, value: impl Into<Bytes>) -> pb::NameBytesPair {
    pb::NameBytesPair { name: name.into(), value: Some(value.into()) }
}
