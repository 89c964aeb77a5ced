//! Messages of Basalt's own endpoint for aggregates by group. Apache HBase has none: a client that asks there is told that the service is
//! unknown, and reads the rows instead.
//!
//! The endpoint knows bytes and where they lie, not types of SQL: a key's columns are of fixed width or end at a byte, numbers have one of
//! the forms that [`Number`] lists.

use bytes::Bytes;

use crate::pb;

/// Its name in a `CoprocessorServiceCall`.
pub const SERVICE: &str = "BasaltGroupedAggregateService";
/// Its only method.
pub const METHOD: &str = "Aggregate";

/// What is to be computed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// The rows, and the cells of them that are needed.
    #[prost(message, optional, tag = "1")]
    pub scan: Option<pb::Scan>,
    /// Bytes of a row key before its first column.
    #[prost(uint32, tag = "2")]
    pub key_prefix_bytes: u32,
    /// The row key's columns, as far as groups need them.
    #[prost(message, repeated, tag = "3")]
    pub key_columns: Vec<KeyColumn>,
    /// What makes a group; nothing puts all rows into one.
    #[prost(message, repeated, tag = "4")]
    pub groups: Vec<Source>,
    /// What is computed of each group.
    #[prost(message, repeated, tag = "5")]
    pub aggregates: Vec<Aggregate>,
}

/// A column of a row key.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyColumn {
    /// Its width in bytes; 0 where it ends at a byte, or with the key.
    #[prost(uint32, tag = "1")]
    pub width_bytes: u32,
    /// The byte that ends it; none where only the key's end does.
    #[prost(uint32, optional, tag = "2")]
    pub separator: Option<u32>,
}

/// Where a value is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Source {
    /// In the row key: which of its columns.
    #[prost(uint32, optional, tag = "1")]
    pub key_column: Option<u32>,
    /// Else in the cell of this family
    #[prost(bytes = "bytes", tag = "2")]
    pub family: Bytes,
    /// and qualifier. An empty value is none.
    #[prost(bytes = "bytes", tag = "3")]
    pub qualifier: Bytes,
}

/// An aggregate.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Aggregate {
    /// Which.
    #[prost(enumeration = "Function", tag = "1")]
    pub function: i32,
    /// Of what; nothing for [`Function::CountRows`].
    #[prost(message, optional, tag = "2")]
    pub source: Option<Source>,
    /// Form of the numbers of [`Function::Sum`].
    #[prost(enumeration = "Number", tag = "3")]
    pub number: i32,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Function {
    /// Rows.
    CountRows = 0,
    /// Values that are there.
    Count = 1,
    /// Their sum; and how many they are.
    Sum = 2,
    /// The least, by its bytes.
    Min = 3,
    /// The greatest, by its bytes.
    Max = 4,
}

/// The bytes of a number, big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Number {
    /// An integer of 1 to 8 bytes in two's complement.
    Integer = 0,
    /// The same with its sign bit flipped.
    SortableInteger = 1,
    /// IEEE 754 of 4 or 8 bytes.
    Float = 2,
    /// The same as Phoenix makes it sort.
    SortableFloat = 3,
}

/// A region's share.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// Where the region ends; empty for the table's last.
    #[prost(bytes = "bytes", tag = "1")]
    pub region_end_key: Bytes,
    /// Its groups, in no order. None where no row was found.
    #[prost(message, repeated, tag = "2")]
    pub groups: Vec<Group>,
}

/// A group.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Group {
    /// The bytes that make it, one for each source; empty for none.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub keys: Vec<Bytes>,
    /// What was computed, one for each aggregate.
    #[prost(message, repeated, tag = "2")]
    pub states: Vec<State>,
}

/// The share of one aggregate.
#[derive(Clone, PartialEq, prost::Message)]
pub struct State {
    /// Rows or values.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// Sum of integers: an integer of 16 bytes in two's complement, big endian.
    #[prost(bytes = "bytes", tag = "2")]
    pub sum: Bytes,
    /// Sum of floating-point numbers.
    #[prost(double, tag = "3")]
    pub float_sum: f64,
    /// The least or greatest.
    #[prost(bytes = "bytes", tag = "4")]
    pub extreme: Bytes,
}
