//! Filters and comparators (interface; being filled in).

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {}
/// A comparator.
#[derive(Debug, Clone, PartialEq)]
pub enum Comparator {}
/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
    /// never
    NoOp,
}
