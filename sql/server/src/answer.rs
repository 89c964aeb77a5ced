//! Answers as PostgreSQL words them, where `datafusion-postgres` differs: names of columns, fractions of seconds, whole numbers among
//! floating-point ones.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use futures::StreamExt;
use pgwire::api::Type;
use pgwire::api::results::{FieldFormat, FieldInfo, QueryResponse, Response};
use pgwire::messages::data::DataRow;

/// DataFusion's names of literals.
const LITERALS: [&str; 9] =
    ["Int64(", "Utf8(", "Float64(", "Boolean(", "Decimal128(", "Date32(", "UInt64(", "NULL", "IntervalMonthDayNano("];

/// PostgreSQL's name of a column that has none: that of its function, or `?column?`.
fn name(name: &str) -> String {
    if LITERALS.iter().any(|literal| name.starts_with(literal)) {
        return "?column?".to_owned();
    }
    match name.split_once('(') {
        Some((function, rest)) if rest.ends_with(')') && is_word(function) => function.to_owned(),
        _ => name.to_owned(),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The fields with PostgreSQL's names.
pub fn fields(fields: &[FieldInfo]) -> Vec<FieldInfo> {
    let renamed = |field: &FieldInfo| {
        let (of, format) = (field.datatype().clone(), field.format());
        FieldInfo::new(name(field.name()), field.table_id(), field.column_id(), of, format)
            .with_format_options(Arc::clone(field.format_options()))
            .with_type_size(field.type_size())
            .with_type_modifier(field.type_modifier())
    };
    fields.iter().map(renamed).collect()
}

/// The answer as PostgreSQL sends it.
pub fn as_postgres(response: Response) -> Response {
    let Response::Query(QueryResponse { command_tag, row_schema, data_rows, .. }) = response else { return response };
    let with_fractions = fractions(&row_schema);
    let schema = Arc::new(fields(&row_schema));
    let mut response = if with_fractions.contains(&true) {
        QueryResponse::new(schema, data_rows.map(move |row| row.map(|row| without_zeros(row, &with_fractions))))
    } else {
        QueryResponse::new(schema, data_rows)
    };
    response.set_command_tag(&command_tag);
    Response::Query(response)
}

/// Which columns are texts that may end with zeros.
pub fn fractions(columns: &[FieldInfo]) -> Vec<bool> {
    let has_fraction = |field: &FieldInfo| {
        let types = [Type::TIMESTAMP, Type::TIMESTAMPTZ, Type::TIME, Type::FLOAT8, Type::FLOAT4];
        field.format() == FieldFormat::Text && types.contains(field.datatype())
    };
    columns.iter().map(has_fraction).collect()
}

/// A row whose fractions end with their last digit that is not zero.
pub fn without_zeros(row: DataRow, with_fractions: &[bool]) -> DataRow {
    let mut data = BytesMut::with_capacity(row.data.len());
    let mut rest = &row.data[..];
    for with_fraction in with_fractions {
        let Some((length, after)) = rest.split_first_chunk::<4>() else { break };
        let size = i32::from_be_bytes(*length);
        let Some((value, after)) = after.split_at_checked(usize::try_from(size).unwrap_or(0)) else { break };
        rest = after;
        let value = if *with_fraction { trimmed(value) } else { value };
        // NULL has the length -1 and no bytes.
        data.put_i32(if size < 0 { size } else { value.len() as i32 });
        data.put_slice(value);
    }
    DataRow::new(data, row.field_count)
}

fn trimmed(value: &[u8]) -> &[u8] {
    if !value.contains(&b'.') || value.contains(&b'e') {
        return value;
    }
    let last = value.iter().rposition(|b| *b != b'0').unwrap_or(0);
    if value[last] == b'.' { &value[..last] } else { &value[..=last] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_a_name_get_postgresqls() {
        assert_eq!(name("count(*)"), "count");
        assert_eq!(name("sum(t.a + Int64(1))"), "sum");
        assert_eq!(name("Int64(1)"), "?column?");
        for kept in ["a", "My Column", "f(x", "t (old)"] {
            assert_eq!(name(kept), kept);
        }
    }

    #[test]
    fn fractions_end_with_their_last_digit() {
        let row = |values: &[Option<&str>]| {
            let mut data = BytesMut::new();
            for value in values {
                data.put_i32(value.map_or(-1, |v| v.len() as i32));
                data.put_slice(value.unwrap_or_default().as_bytes());
            }
            DataRow::new(data, values.len() as i16)
        };
        let long = row(&[Some("1.500"), Some("2024-01-01 00:00:00.000000"), None, Some("10:00:00.120000")]);
        let short = row(&[Some("1.500"), Some("2024-01-01 00:00:00"), None, Some("10:00:00.12")]);
        assert_eq!(without_zeros(long, &[false, true, true, true]).data, short.data);
        assert_eq!(trimmed(b"2000-10-10 00:00:00"), b"2000-10-10 00:00:00");
    }
}
