//! Messages of Basalt's own endpoint that says how a region's rows are spread over its keys, for planners of queries. Apache HBase has none: a
//! client that asks there is told that the service is unknown.

use bytes::Bytes;

/// Its name in a `CoprocessorServiceCall`.
pub const SERVICE: &str = "BasaltKeyHistogramService";
/// Its method.
pub const METHOD: &str = "GetHistogram";

/// What is asked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// Parts at most; the server has a limit of its own.
    #[prost(uint32, tag = "1")]
    pub most_parts: u32,
}

/// A region's histogram. Its numbers are estimates: a row that was written several times may count as often, deleted rows count.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// Where the region ends; empty for the table's last.
    #[prost(bytes = "bytes", tag = "1")]
    pub region_end_key: Bytes,
    /// Parts in order; none where it has no cells. The first begins with its first row.
    #[prost(message, repeated, tag = "2")]
    pub parts: Vec<KeyPart>,
    /// Its last row.
    #[prost(bytes = "bytes", tag = "3")]
    pub last_row: Bytes,
}

/// A part of a region's key range.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyPart {
    /// Where it begins; it ends where the next one does, the last with the last row.
    #[prost(bytes = "bytes", tag = "1")]
    pub start_row: Bytes,
    /// Bytes of its cells before compression.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// Its rows.
    #[prost(uint64, tag = "3")]
    pub rows: u64,
}
