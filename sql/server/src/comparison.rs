//! Comparisons of columns with literals, and the literals' bytes.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use types::SqlType;

use crate::arrow_values::{sorts_exactly, value_at};
use crate::mapping::{Column, Kind, Mapping, Place};

/// A column that is compared, without casts that change nothing.
pub fn column_of<'a>(mapping: &'a Mapping, expr: &Expr) -> Option<(usize, &'a Column)> {
    match expr {
        Expr::Column(column) => mapping.column(&column.name),
        Expr::Alias(alias) => column_of(mapping, &alias.expr),
        _ => None,
    }
}

pub fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// The bytes of a literal in a column's type; none where it has no such bytes, or where they do not compare as it does.
pub fn encoded(mapping: &Mapping, column: &Column, value: &ScalarValue, is_equality: bool) -> Option<Vec<u8>> {
    if column.is_array {
        return None;
    }
    let of = column.arrow_type();
    let same = value.data_type() == of || value.data_type().is_null();
    let value = if same { value.clone() } else { value.cast_to(&of).ok().filter(|c| casts_back(c, value))? };
    if value.is_null() {
        return None;
    }
    if !is_equality && !sorts_exactly(column.sql_type) {
        return None;
    }
    // Others may have written values that are finer than SQL's.
    let is_coarse = matches!(
        column.sql_type,
        SqlType::Date
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::UnsignedDate
            | SqlType::UnsignedTime
            | SqlType::UnsignedTimestamp
            | SqlType::Decimal
    );
    // A date with its time of day has milliseconds, and so has the literal.
    let is_exact =
        column.with_time && matches!(value, ScalarValue::TimestampMicrosecond(Some(us), _) if us % 1000 == 0);
    if is_coarse && mapping.kind != Kind::Table && !is_exact {
        return None;
    }
    // The two zeros are equal and have different bytes; so have many NaNs.
    match value {
        ScalarValue::Float32(Some(v)) if v == 0.0 || v.is_nan() => return None,
        ScalarValue::Float64(Some(v)) if v == 0.0 || v.is_nan() => return None,
        _ => {}
    }
    let array = value.to_array().ok()?;
    let mut bytes = Vec::new();
    column.sql_type.encode(&value_at(column, &array, 0).ok()??, &mut bytes).ok()?;
    // A zero byte ends a column of the key: a text with one is in no row, and must not pass for two columns.
    let ends_early = matches!(column.place, Place::Key(_)) && column.sql_type == SqlType::Varchar && bytes.contains(&0);
    // An empty value is NULL here.
    (!bytes.is_empty() && !ends_early).then_some(bytes)
}

fn casts_back(cast: &ScalarValue, original: &ScalarValue) -> bool {
    cast.cast_to(&original.data_type()).is_ok_and(|back| back == *original)
}

/// A comparison of a column with a literal, the column on the left.
pub fn comparison<'a>(mapping: &'a Mapping, expr: &'a Expr) -> Option<(usize, &'a Column, Operator, &'a ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    if let (Some((at, column)), Some(value)) = (column_of(mapping, left), literal(right)) {
        return Some((at, column, *op, value));
    }
    let ((at, column), value) = (column_of(mapping, right)?, literal(left)?);
    Some((at, column, op.swap()?, value))
}

/// The text before the `%` of a pattern that has nothing else.
pub fn like_prefix(column: &Column, like: &Like) -> Option<Vec<u8>> {
    if like.negated || like.case_insensitive || like.escape_char.is_some() || column.sql_type != SqlType::Varchar {
        return None;
    }
    let pattern = literal(&like.pattern)?.try_as_str().flatten()?;
    let prefix = pattern.strip_suffix('%')?;
    let plain = !prefix.is_empty() && !prefix.contains(['%', '_', '\\']);
    plain.then(|| prefix.as_bytes().to_vec())
}
