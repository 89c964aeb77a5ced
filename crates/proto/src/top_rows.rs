//! Messages of Basalt's own endpoint for the first rows of an order that is not the keys'. Apache HBase has none: a client that asks there is
//! told that the service is unknown, and reads and sorts the rows instead.

use bytes::Bytes;

use crate::grouped::{Expression, KeyColumn, Source};
use crate::pb;

/// Its name in a `CoprocessorServiceCall`.
pub const SERVICE: &str = "BasaltTopRowsService";
/// Its method.
pub const METHOD: &str = "TopRows";

/// Which rows are wanted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// The rows, and the cells of them that are wanted or sorted by.
    #[prost(message, optional, tag = "1")]
    pub scan: Option<pb::Scan>,
    /// Bytes of a row key before its first column.
    #[prost(uint32, tag = "2")]
    pub key_prefix_bytes: u32,
    /// The row key's columns, as far as they are sorted by.
    #[prost(message, repeated, tag = "3")]
    pub key_columns: Vec<KeyColumn>,
    /// What rows are sorted by, the first of these before the others.
    #[prost(message, repeated, tag = "4")]
    pub order: Vec<SortKey>,
    /// How many rows at most.
    #[prost(uint32, tag = "5")]
    pub limit: u32,
    /// What sources compute of a row, each once.
    #[prost(message, repeated, tag = "6")]
    pub expressions: Vec<Expression>,
}

/// What rows are sorted by: bytes, or the number that an expression comes to.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SortKey {
    /// Where it is.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// Whether all its bits are flipped, as in a key's column that descends.
    #[prost(bool, tag = "2")]
    pub is_inverted: bool,
    /// Whether the greatest comes first.
    #[prost(bool, tag = "3")]
    pub is_descending: bool,
    /// Whether rows without a value come before all others, or else behind them.
    #[prost(bool, tag = "4")]
    pub nulls_first: bool,
}

/// A region's share.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// Where the region ends; empty for the table's last.
    #[prost(bytes = "bytes", tag = "1")]
    pub region_end_key: Bytes,
    /// Its first rows, in their order, with their cells. Of rows that are equal to the last of them, any may be left out.
    #[prost(message, repeated, tag = "2")]
    pub rows: Vec<pb::Result>,
}
