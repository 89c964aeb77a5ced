//! Messages of Basalt's own endpoint for aggregates by group. Apache HBase has none: a client that asks there is told that the service is
//! unknown, and reads the rows instead.
//!
//! The endpoint knows bytes and where they lie, not types of SQL: a key's columns are of fixed width or end at a byte, numbers have one of
//! the forms that [`Number`] lists.

use bytes::Bytes;

use crate::pb;

/// Its name in a `CoprocessorServiceCall`.
pub const SERVICE: &str = "BasaltGroupedAggregateService";
/// Its method for requests without expressions.
pub const METHOD: &str = "Aggregate";
/// Its method for those with: a server from before there were any does not know it, and so does not pass over them.
pub const METHOD_OF_EXPRESSIONS: &str = "AggregateExpressions";

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
    /// What sources compute of a row, each once.
    #[prost(message, repeated, tag = "6")]
    pub expressions: Vec<Expression>,
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
    /// Else what this expression of the request's comes to. Exact numbers are written as [`exact_bytes`] has them.
    #[prost(uint32, optional, tag = "4")]
    pub expression: Option<u32>,
}

/// A number that is computed of a row: what is left on a stack after the last step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Expression {
    /// In order. Where an operand is none, so is the result.
    #[prost(message, repeated, tag = "1")]
    pub steps: Vec<Step>,
}

/// A step of an expression.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Step {
    /// Which.
    #[prost(enumeration = "Operation", tag = "1")]
    pub operation: i32,
    /// Of [`Operation::Load`]: where the number is; no expression.
    #[prost(message, optional, tag = "2")]
    pub source: Option<Source>,
    /// Of [`Operation::Load`]: its form.
    #[prost(enumeration = "Number", tag = "3")]
    pub number: i32,
    /// Of [`Operation::Load`]: whether all its bits are flipped, as in a key's column that descends.
    #[prost(bool, tag = "4")]
    pub is_inverted: bool,
    /// Of [`Operation::Load`], for [`Number::Decimal`]: digits behind the point. The number is rounded half up to so many, and is as many
    /// units of the last of them.
    #[prost(int32, tag = "5")]
    pub scale: i32,
    /// An exact number, as [`exact_bytes`] has it: of [`Operation::Literal`], [`Operation::FloorDivide`], [`Operation::Limit`].
    #[prost(bytes = "bytes", tag = "6")]
    pub literal: Bytes,
    /// Of [`Operation::Truncate`] and [`Operation::Extract`].
    #[prost(enumeration = "TimePart", tag = "7")]
    pub part: i32,
}

/// What a step does. Exact numbers are integers of 128 bits; a result without room is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Operation {
    /// Puts a number of the row on the stack.
    Load = 0,
    /// Puts a number on the stack that is the same for all rows.
    Literal = 1,
    /// Adds the two on top, both exact or both floating-point, as for the next two.
    Add = 2,
    /// Subtracts the one on top from the one below.
    Subtract = 3,
    /// Multiplies.
    Multiply = 4,
    /// Divides an exact number by the literal, which is above 0, and rounds down.
    FloorDivide = 5,
    /// Leaves an exact number as it is, unless it is further from 0 than the literal: that is an error.
    Limit = 6,
    /// Makes a floating-point number of an exact one.
    ToFloat = 7,
    /// Sets microseconds since 1970-01-01 00:00 UTC back to where a part of time began.
    Truncate = 8,
    /// The number that a part of such a time has in the calendar.
    Extract = 9,
}

/// Parts of time, in the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum TimePart {
    /// Microseconds; not extracted.
    Microsecond = 0,
    /// Milliseconds; not extracted.
    Millisecond = 1,
    /// Seconds.
    Second = 2,
    /// Minutes.
    Minute = 3,
    /// Hours.
    Hour = 4,
    /// Days; of the month.
    Day = 5,
    /// Weeks, which begin on Mondays; not extracted.
    Week = 6,
    /// Months.
    Month = 7,
    /// Quarters.
    Quarter = 8,
    /// Years.
    Year = 9,
    /// Days since Sunday; only extracted, like those that follow.
    DayOfWeek = 10,
    /// Days from 1 on Mondays to 7 on Sundays.
    IsoDayOfWeek = 11,
    /// Days from 1 on January 1.
    DayOfYear = 12,
}

/// The bytes of an exact number that an expression came to: 16, big endian, with the sign bit flipped, so that they sort as the numbers do.
pub fn exact_bytes(number: i128) -> [u8; 16] {
    (number ^ i128::MIN).to_be_bytes()
}

/// The reverse; nothing where there are not 16.
pub fn exact_number(bytes: &[u8]) -> Option<i128> {
    Some(i128::from_be_bytes(bytes.try_into().ok()?) ^ i128::MIN)
}

/// The bytes of a floating-point number, big endian: the same for both zeros, and for all that are no numbers.
pub fn float_bytes(number: f64) -> [u8; 8] {
    let number = if number == 0.0 { 0.0 } else { number };
    let number = if number.is_nan() { f64::NAN } else { number };
    number.to_be_bytes()
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
    /// Of [`Function::Distinct`]: whether all bits of a value are flipped, as in a key's column that descends.
    #[prost(bool, tag = "4")]
    pub is_inverted: bool,
    /// Of [`Function::Distinct`]: whether spaces at the end of a value are none of it.
    #[prost(bool, tag = "5")]
    pub is_padded: bool,
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
    /// How many different values there are, about: a sketch of their bytes. Floating-point numbers that are computed are taken by
    /// [`float_bytes`]. A server from before there were sketches refuses it.
    Distinct = 5,
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
    /// Phoenix's decimal number, in base 100. This form and those below stand in expressions alone.
    Decimal = 4,
    /// A time of 12 bytes: milliseconds as an [`Number::Integer`], nanoseconds within one in 4. It is read as microseconds.
    Timestamp = 5,
    /// The same with the milliseconds as a [`Number::SortableInteger`].
    SortableTimestamp = 6,
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
    /// The sketch of the different values, as the crate `sketch` writes it.
    #[prost(bytes = "bytes", tag = "5")]
    pub sketch: Bytes,
}
