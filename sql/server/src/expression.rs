//! Expressions on a table's columns that region servers compute of each row: the planner's, as steps of the endpoint's machine. What the
//! machine does not do exactly as the planner would has no steps, and the rows are read.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Decimal256Array, Int16Array, Int32Array, Int64Array,
    TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, TimeUnit, i256};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column as ColumnExpr, Literal};
use datafusion::physical_plan::PhysicalExpr;
use proto::grouped::{Expression, Number, Operation, Source, Step, TimePart, exact_bytes};
use types::SqlType;

use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, Place};
use crate::scan::ScanSpec;

const DAY_MS: i128 = 86_400_000;
const DAY_US: i128 = 1000 * DAY_MS;
/// Digits of a decimal number at most.
const MAX_DIGITS: u8 = 38;

/// Where a column's bytes are; none where region servers do not find them.
pub fn source(column: &Column) -> Option<Source> {
    match &column.place {
        Place::Key(at) => Some(Source { key_column: Some(*at as u32), ..Source::default() }),
        Place::Cell { family, qualifier } => Some(Source {
            family: Bytes::copy_from_slice(family.as_bytes()),
            qualifier: Bytes::copy_from_slice(qualifier),
            ..Source::default()
        }),
        Place::Packed { .. } | Place::WrittenAt => None,
    }
}

/// An expression on the columns of a scan, and its type; none where region servers do not compute it.
pub fn expression(expr: &Arc<dyn PhysicalExpr>, spec: &ScanSpec) -> Option<(Expression, DataType)> {
    let mut steps = Steps { spec, steps: Vec::new() };
    let of = steps.push(expr)?;
    Some((Expression { steps: steps.steps }, of))
}

struct Steps<'a> {
    spec: &'a ScanSpec,
    steps: Vec<Step>,
}

fn step(operation: Operation) -> Step {
    Step { operation: operation as i32, ..Step::default() }
}

fn power(digits: i8) -> Option<i128> {
    10i128.checked_pow(u32::try_from(digits).ok()?)
}

fn is_integer(of: &DataType) -> bool {
    most(of).is_some()
}

/// The greatest number of an integer type.
fn most(of: &DataType) -> Option<i128> {
    Some(match of {
        DataType::Int16 => i16::MAX.into(),
        DataType::Int32 => i32::MAX.into(),
        DataType::Int64 => i64::MAX.into(),
        _ => return None,
    })
}

impl Steps<'_> {
    fn push_with(&mut self, operation: Operation, number: i128) {
        self.steps.push(Step { literal: Bytes::copy_from_slice(&exact_bytes(number)), ..step(operation) });
    }

    fn multiply(&mut self, by: i128) {
        if by != 1 {
            self.push_with(Operation::Literal, by);
            self.steps.push(step(Operation::Multiply));
        }
    }

    fn push(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<DataType> {
        if let Some(column) = expr.downcast_ref::<ColumnExpr>() {
            let at = self.spec.projection.get(column.index())?;
            return self.load(&self.spec.mapping.columns[*at]);
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return self.literal(literal.value());
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let from = self.push(cast.expr())?;
            return self.cast(&from, cast.cast_type());
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            let of = expr.data_type(&self.spec.schema).ok()?;
            return self.arithmetic(binary, of);
        }
        self.function(expr.downcast_ref::<ScalarFunctionExpr>()?)
    }

    fn load(&mut self, column: &Column) -> Option<DataType> {
        let of = column.arrow_type();
        if column.is_array {
            return None;
        }
        let (number, scale) = match (column.sql_type, &of) {
            (SqlType::TinyInt | SqlType::SmallInt | SqlType::Integer | SqlType::BigInt | SqlType::Date, _) => {
                (Number::SortableInteger, 0)
            }
            (
                SqlType::UnsignedTinyInt
                | SqlType::UnsignedSmallInt
                | SqlType::UnsignedInt
                | SqlType::UnsignedLong
                | SqlType::UnsignedDate,
                _,
            ) => (Number::Integer, 0),
            (SqlType::Float | SqlType::Double, _) => (Number::SortableFloat, 0),
            (SqlType::UnsignedFloat | SqlType::UnsignedDouble, _) => (Number::Float, 0),
            (SqlType::Decimal, DataType::Decimal128(_, scale)) if *scale >= 0 => (Number::Decimal, i32::from(*scale)),
            (SqlType::Timestamp, _) => (Number::SortableTimestamp, 0),
            (SqlType::UnsignedTimestamp, _) => (Number::Timestamp, 0),
            _ => return None,
        };
        self.steps.push(Step {
            source: Some(source(column)?),
            number: number as i32,
            is_inverted: matches!(column.place, Place::Key(_)) && column.descending,
            scale,
            ..step(Operation::Load)
        });
        if of == DataType::Date32 {
            self.push_with(Operation::FloorDivide, DAY_MS);
        } else if column.with_time {
            self.multiply(1000);
        }
        Some(of)
    }

    fn literal(&mut self, value: &ScalarValue) -> Option<DataType> {
        let number = match value {
            ScalarValue::Int16(Some(v)) => i128::from(*v),
            ScalarValue::Int32(Some(v)) => i128::from(*v),
            ScalarValue::Int64(Some(v)) => i128::from(*v),
            ScalarValue::Decimal128(Some(v), _, scale) if *scale >= 0 => *v,
            // Larger ones, and those with a fraction, the machine has no step for.
            ScalarValue::Float64(Some(v))
                if v.fract() == 0.0 && v.abs() < 1e15 && (*v != 0.0 || !v.is_sign_negative()) =>
            {
                self.push_with(Operation::Literal, *v as i128);
                self.steps.push(step(Operation::ToFloat));
                return Some(DataType::Float64);
            }
            _ => return None,
        };
        self.push_with(Operation::Literal, number);
        Some(value.data_type())
    }

    /// Casts that round nothing.
    fn cast(&mut self, from: &DataType, to: &DataType) -> Option<DataType> {
        match (from, to) {
            _ if from == to => {}
            (_, DataType::Int16 | DataType::Int32 | DataType::Int64) if is_integer(from) => {
                if most(to) < most(from) {
                    self.push_with(Operation::Limit, most(to)?);
                }
            }
            (_, DataType::Decimal128(precision, scale)) if is_integer(from) => {
                self.multiply(power(*scale)?);
                self.push_with(Operation::Limit, power(*precision as i8)? - 1);
            }
            (DataType::Decimal128(_, scale), DataType::Decimal128(precision, wider)) if wider >= scale => {
                self.multiply(power(*wider - *scale)?);
                self.push_with(Operation::Limit, power(*precision as i8)? - 1);
            }
            (_, DataType::Float64) if is_integer(from) => self.steps.push(step(Operation::ToFloat)),
            (DataType::Float32, DataType::Float64) => {}
            (DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)) => self.multiply(DAY_US),
            _ => return None,
        }
        Some(to.clone())
    }

    fn arithmetic(&mut self, binary: &BinaryExpr, of: DataType) -> Option<DataType> {
        let operation = match binary.op() {
            Operator::Plus => Operation::Add,
            Operator::Minus => Operation::Subtract,
            Operator::Multiply => Operation::Multiply,
            _ => return None,
        };
        let side = |expr: &Arc<dyn PhysicalExpr>| expr.data_type(&self.spec.schema).ok();
        let types = (side(binary.left())?, side(binary.right())?);
        // As the planner adds decimals: both with as many digits behind the point as the one that has more.
        let missing = match (&types, &of) {
            ((DataType::Decimal128(_, a), DataType::Decimal128(_, b)), DataType::Decimal128(_, scale)) => {
                let is_product = operation == Operation::Multiply;
                let expected = if is_product { a.checked_add(*b)? } else { *a.max(b) };
                if *scale != expected || *a < 0 || *b < 0 {
                    return None;
                }
                if is_product { (0, 0) } else { (scale - a, scale - b) }
            }
            ((a, b), of) if a == b && a == of && (is_integer(of) || *of == DataType::Float64) => (0, 0),
            _ => return None,
        };
        self.push(binary.left())?;
        self.multiply(power(missing.0)?);
        self.push(binary.right())?;
        self.multiply(power(missing.1)?);
        self.steps.push(step(operation));
        if let Some(most) = most(&of) {
            self.push_with(Operation::Limit, most);
        }
        Some(of)
    }

    fn function(&mut self, function: &ScalarFunctionExpr) -> Option<DataType> {
        let [part, time] = function.args() else { return None };
        let part = part.downcast_ref::<Literal>()?.value().try_as_str().flatten()?.to_lowercase();
        let operation = match function.fun().name() {
            "date_trunc" => Operation::Truncate,
            "date_part" => Operation::Extract,
            _ => return None,
        };
        let part = match (&*part, operation) {
            ("microsecond" | "microseconds", Operation::Truncate) => TimePart::Microsecond,
            ("millisecond" | "milliseconds", Operation::Truncate) => TimePart::Millisecond,
            ("second", _) => TimePart::Second,
            ("minute", _) => TimePart::Minute,
            ("hour", _) => TimePart::Hour,
            ("day", _) => TimePart::Day,
            ("week", Operation::Truncate) => TimePart::Week,
            ("month", _) => TimePart::Month,
            ("quarter", _) => TimePart::Quarter,
            ("year", _) => TimePart::Year,
            ("dow", Operation::Extract) => TimePart::DayOfWeek,
            ("isodow", Operation::Extract) => TimePart::IsoDayOfWeek,
            ("doy", Operation::Extract) => TimePart::DayOfYear,
            _ => return None,
        };
        match (self.push(time)?, operation) {
            (DataType::Timestamp(TimeUnit::Microsecond, None), _) => {}
            (DataType::Date32, Operation::Extract) if part >= TimePart::Day => self.multiply(DAY_US),
            _ => return None,
        }
        self.steps.push(Step { part: part as i32, ..step(operation) });
        Some(function.return_type().clone())
    }
}

/// Whether [`exact_array`] makes arrays of a type.
pub fn is_exact(of: &DataType) -> bool {
    is_integer(of)
        || matches!(
            of,
            DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::Date32
                | DataType::Timestamp(TimeUnit::Microsecond, None)
        )
}

/// An array of numbers that region servers computed exactly.
///
/// # Errors
/// A number that the type has no room for.
pub fn exact_array(of: &DataType, numbers: impl Iterator<Item = Option<i128>>) -> Result<ArrayRef, SqlError> {
    fn all<T, C: FromIterator<Option<T>>>(
        of: &DataType,
        numbers: impl Iterator<Item = Option<i128>>,
        fits: impl Fn(i128) -> Option<T>,
    ) -> Result<C, SqlError> {
        let room = || SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, format!("{} out of range", name(of)));
        numbers.map(|number| number.map(|number| fits(number).ok_or_else(room)).transpose()).collect()
    }
    Ok(match of {
        DataType::Int16 => Arc::new(all::<_, Int16Array>(of, numbers, |n| n.try_into().ok())?),
        DataType::Int32 => Arc::new(all::<_, Int32Array>(of, numbers, |n| n.try_into().ok())?),
        DataType::Date32 => Arc::new(all::<_, Date32Array>(of, numbers, |n| n.try_into().ok())?),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            Arc::new(all::<_, TimestampMicrosecondArray>(of, numbers, |n| n.try_into().ok())?)
        }
        DataType::Decimal128(precision, _) => {
            let most = power((*precision).min(MAX_DIGITS) as i8).map_or(0, i128::unsigned_abs);
            let array: Decimal128Array = all(of, numbers, |n| (n.unsigned_abs() < most).then_some(n))?;
            Arc::new(array.with_data_type(of.clone()))
        }
        DataType::Decimal256(..) => {
            let array: Decimal256Array = all(of, numbers, |n| Some(i256::from_i128(n)))?;
            Arc::new(array.with_data_type(of.clone()))
        }
        _ => Arc::new(all::<_, Int64Array>(of, numbers, |n| n.try_into().ok())?),
    })
}

/// A type as PostgreSQL calls it.
fn name(of: &DataType) -> &'static str {
    match of {
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::Date32 => "date",
        DataType::Timestamp(..) => "timestamp",
        _ => "numeric",
    }
}
