//! Values between Arrow's arrays and HBase's bytes.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, ListArray, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use std::sync::Arc;
use types::{Decimal, SqlType, Value};

use crate::error::{SqlError, SqlState};
use crate::mapping::Column;

const DAY_MS: i64 = 86_400_000;
/// Bytes of a text that there is room for at first.
const USUAL_BYTES: usize = 16;

/// Appends the bytes of a column's value in an array of its Arrow type; none for NULL.
///
/// # Errors
/// As [`value_at`]; values that have no bytes.
pub fn encode_at(column: &Column, array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if !column.is_array {
        if let Some(value) = value_at(column, array, row)? {
            column.sql_type.encode(&value, out)?;
        }
        return Ok(());
    }
    if array.is_null(row) {
        return Ok(());
    }
    let lists = array.as_list_opt::<i32>().ok_or_else(|| wrong_type(column, array))?;
    let elements = lists.value(row);
    let values = (0..elements.len()).map(|at| value_at(column, &elements, at));
    types::encode_array(column.sql_type, &values.collect::<Result<Vec<_>, _>>()?, out)?;
    Ok(())
}

fn wrong_type(column: &Column, array: &dyn Array) -> SqlError {
    let message = format!("column \"{}\" is of type {}, not {}", column.name, column.type_name(), array.data_type());
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// The value of a column, or of an element of its arrays, in an array of its Arrow type.
///
/// # Errors
/// An array of another type; a text that is too long for a `varchar(n)`.
pub fn value_at<'a>(column: &Column, array: &'a dyn Array, row: usize) -> Result<Option<Value<'a>>, SqlError> {
    if array.is_null(row) {
        return Ok(None);
    }
    if *array.data_type() != column.element_type() {
        return Err(wrong_type(column, array));
    }
    Ok(Some(match array.data_type() {
        DataType::Int16 => Value::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            let unscaled = array.as_primitive::<Decimal128Type>().value(row);
            Value::Decimal(Decimal { unscaled, scale: (*scale).into() })
        }
        DataType::Utf8 => {
            let text = array.as_string::<i32>().value(row);
            if let Some(most) = column.max_chars
                && text.chars().count() > most as usize
            {
                let message = format!("value too long for type character varying({most})");
                return Err(SqlError::new(SqlState::STRING_TRUNCATION, message));
            }
            Value::Text(text)
        }
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row)),
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Date32 => Value::Millis(i64::from(array.as_primitive::<Date32Type>().value(row)) * DAY_MS),
        DataType::Time64(_) => Value::Millis(array.as_primitive::<Time64MicrosecondType>().value(row) / 1000),
        _ if column.with_time => {
            Value::Millis(array.as_primitive::<TimestampMicrosecondType>().value(row).div_euclid(1000))
        }
        _ => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            Value::Timestamp { ms: micros.div_euclid(1000), nanos: (micros.rem_euclid(1000) * 1000) as u32 }
        }
    }))
}

/// Gathers a column's values into an array.
pub enum Builder {
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, i32),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Bool(BooleanBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    /// Of elements: how many there are up to each array's end, and whether it is one.
    List(Box<Builder>, Vec<i32>, Vec<bool>),
}

impl Builder {
    /// An empty one for a column.
    pub fn new(column: &Column) -> Builder {
        Builder::with_capacity(column, 0)
    }

    /// An empty one for a column, with room for so many values.
    pub fn with_capacity(column: &Column, rows: usize) -> Builder {
        if column.is_array {
            return Builder::List(Box::new(Builder::of_elements(column, rows)), vec![0], Vec::new());
        }
        Builder::of_elements(column, rows)
    }

    fn of_elements(column: &Column, rows: usize) -> Builder {
        match column.element_type() {
            DataType::Int16 => Builder::Int16(Int16Builder::with_capacity(rows)),
            DataType::Int32 => Builder::Int32(Int32Builder::with_capacity(rows)),
            DataType::Int64 => Builder::Int64(Int64Builder::with_capacity(rows)),
            DataType::Float32 => Builder::Float32(Float32Builder::with_capacity(rows)),
            DataType::Float64 => Builder::Float64(Float64Builder::with_capacity(rows)),
            DataType::Decimal128(precision, scale) => {
                let of = DataType::Decimal128(precision, scale);
                Builder::Decimal(Decimal128Builder::with_capacity(rows).with_data_type(of), scale.into())
            }
            DataType::Utf8 => Builder::Text(StringBuilder::with_capacity(rows, rows * USUAL_BYTES)),
            DataType::Binary => Builder::Bytes(BinaryBuilder::with_capacity(rows, rows * USUAL_BYTES)),
            DataType::Boolean => Builder::Bool(BooleanBuilder::with_capacity(rows)),
            DataType::Date32 => Builder::Date(Date32Builder::with_capacity(rows)),
            DataType::Time64(_) => Builder::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            _ => Builder::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows)),
        }
    }

    /// Appends what stored bytes are, or NULL where there are none.
    ///
    /// # Errors
    /// Bytes that are no value of the column's type; one that it has no room for.
    pub fn push_stored(&mut self, column: &Column, bytes: &[u8]) -> Result<(), SqlError> {
        let Builder::List(elements, ends, are_there) = self else {
            return self.push(column, column.sql_type.decode(bytes)?);
        };
        let mut end = ends.last().copied().unwrap_or(0);
        if !bytes.is_empty() {
            types::decode_array(column.sql_type, bytes, |value| {
                end = end.checked_add(1).ok_or_else(|| SqlError::new(SqlState::OUT_OF_MEMORY, "too many elements"))?;
                elements.push(column, value)
            })?;
        }
        ends.push(end);
        are_there.push(!bytes.is_empty());
        Ok(())
    }

    /// Appends a value that is no array, or NULL.
    ///
    /// # Errors
    /// A stored value that the column has no room for.
    pub fn push(&mut self, column: &Column, value: Option<Value<'_>>) -> Result<(), SqlError> {
        let room = || {
            let message = format!("a stored value of column \"{}\" does not fit type {}", column.name, column.sql_type);
            SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
        };
        match (self, value) {
            (Builder::Int16(b), Some(Value::Int(v))) => b.append_value(i16::try_from(v).map_err(|_| room())?),
            (Builder::Int32(b), Some(Value::Int(v))) => b.append_value(i32::try_from(v).map_err(|_| room())?),
            (Builder::Int64(b), Some(Value::Int(v))) => b.append_value(v),
            (Builder::Float32(b), Some(Value::Float(v))) => b.append_value(v),
            (Builder::Float64(b), Some(Value::Double(v))) => b.append_value(v),
            (Builder::Decimal(b, scale), Some(Value::Decimal(v))) => {
                b.append_value(v.rescaled(*scale).ok_or_else(room)?.unscaled);
            }
            (Builder::Text(b), Some(Value::Text(v))) => b.append_value(v),
            (Builder::Bytes(b), Some(Value::Bytes(v))) => b.append_value(v),
            (Builder::Bool(b), Some(Value::Bool(v))) => b.append_value(v),
            (Builder::Date(b), Some(Value::Millis(v))) => {
                b.append_value(i32::try_from(v.div_euclid(DAY_MS)).map_err(|_| room())?);
            }
            (Builder::Time(b), Some(Value::Millis(v))) => b.append_value(v.rem_euclid(DAY_MS) * 1000),
            (Builder::Timestamp(b), Some(Value::Timestamp { ms, nanos })) => {
                let micros = ms.checked_mul(1000).and_then(|us| us.checked_add(i64::from(nanos / 1000)));
                b.append_value(micros.ok_or_else(room)?);
            }
            (Builder::Timestamp(b), Some(Value::Millis(v))) => b.append_value(v.checked_mul(1000).ok_or_else(room)?),
            (builder, _) => builder.push_null(),
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Builder::Int16(b) => b.append_null(),
            Builder::Int32(b) => b.append_null(),
            Builder::Int64(b) => b.append_null(),
            Builder::Float32(b) => b.append_null(),
            Builder::Float64(b) => b.append_null(),
            Builder::Decimal(b, _) => b.append_null(),
            Builder::Text(b) => b.append_null(),
            Builder::Bytes(b) => b.append_null(),
            Builder::Bool(b) => b.append_null(),
            Builder::Date(b) => b.append_null(),
            Builder::Time(b) => b.append_null(),
            Builder::Timestamp(b) => b.append_null(),
            Builder::List(_, ends, are_there) => {
                ends.push(ends.last().copied().unwrap_or(0));
                are_there.push(false);
            }
        }
    }

    /// The array; the builder is empty then.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Int16(b) => Arc::new(b.finish()),
            Builder::Int32(b) => Arc::new(b.finish()),
            Builder::Int64(b) => Arc::new(b.finish()),
            Builder::Float32(b) => Arc::new(b.finish()),
            Builder::Float64(b) => Arc::new(b.finish()),
            Builder::Decimal(b, _) => Arc::new(b.finish()),
            Builder::Text(b) => Arc::new(b.finish()),
            Builder::Bytes(b) => Arc::new(b.finish()),
            Builder::Bool(b) => Arc::new(b.finish()),
            Builder::Date(b) => Arc::new(b.finish()),
            Builder::Time(b) => Arc::new(b.finish()),
            Builder::Timestamp(b) => Arc::new(b.finish()),
            Builder::List(elements, ends, are_there) => {
                let values = elements.finish();
                let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
                let ends = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                Arc::new(ListArray::new(field, ends, values, Some(std::mem::take(are_there).into())))
            }
        }
    }
}

/// Why a stored value could not be read, with its column and row.
pub fn at_row(e: impl Into<SqlError>, column: &Column, row: &[u8]) -> SqlError {
    let own = e.into();
    let row = row.escape_ascii();
    SqlError::new(own.state, format!("column \"{}\" of row '{row}': {}", column.name, own.message))
}

/// Whether the bytes of a cell of this type compare as SQL compares its values, other than by equality.
pub fn sorts_exactly(of: SqlType) -> bool {
    // Spaces at the end of a char(n) do not count in SQL.
    !matches!(of, SqlType::Char(_))
}
