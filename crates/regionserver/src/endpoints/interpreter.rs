//! How the values of a column are read, added and sent: HBase's column interpreters. All of them take every cell that
//! the scan finds, whatever its column. Follows: `LongColumnInterpreter`, `DoubleColumnInterpreter`,
//! `BigDecimalColumnInterpreter`.

use super::decimal::Cents;
use bytes::Bytes;
use cell::CellRef;
use proto::{Message, pb};
use rpc::exception::Exception;
use std::cmp::Ordering;

/// A kind of numbers.
pub(super) trait Interpreter: Send + 'static {
    /// One number.
    type Number: Clone + Send + 'static;

    /// The number in a cell; `None` for cells that are passed over.
    ///
    /// # Errors
    /// HBase's interpreter fails on such a cell.
    fn read(cell: CellRef<'_>) -> Result<Option<Self::Number>, Exception>;

    /// Sum.
    fn add(a: &Self::Number, b: &Self::Number) -> Self::Number;

    /// Product.
    fn multiply(a: &Self::Number, b: &Self::Number) -> Self::Number;

    /// Order.
    fn compare(a: &Self::Number, b: &Self::Number) -> Ordering;

    /// The message that carries it.
    fn encode(number: &Self::Number) -> Bytes;

    /// The message with the interpreter's "least value", which stands for weights that nobody asked for.
    fn encode_least() -> Bytes;
}

fn encoded(message: &impl Message) -> Bytes {
    Bytes::from(message.encode_to_vec())
}

/// Values of 8 bytes, big-endian.
pub(super) struct Long;

impl Interpreter for Long {
    type Number = i64;

    fn read(cell: CellRef<'_>) -> Result<Option<i64>, Exception> {
        Ok(cell.value().try_into().ok().map(i64::from_be_bytes))
    }

    fn add(a: &i64, b: &i64) -> i64 {
        a.wrapping_add(*b)
    }

    fn multiply(a: &i64, b: &i64) -> i64 {
        a.wrapping_mul(*b)
    }

    fn compare(a: &i64, b: &i64) -> Ordering {
        a.cmp(b)
    }

    fn encode(number: &i64) -> Bytes {
        encoded(&pb::LongMsg { long_msg: *number })
    }

    fn encode_least() -> Bytes {
        Long::encode(&i64::MIN)
    }
}

/// Values of 8 bytes, as `Double.doubleToLongBits` has them.
pub(super) struct Double;

impl Interpreter for Double {
    type Number = f64;

    fn read(cell: CellRef<'_>) -> Result<Option<f64>, Exception> {
        Ok(cell.value().try_into().ok().map(f64::from_be_bytes))
    }

    fn add(a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn multiply(a: &f64, b: &f64) -> f64 {
        a * b
    }

    /// As `Double#compareTo`: every NaN above all numbers, -0.0 below 0.0.
    fn compare(a: &f64, b: &f64) -> Ordering {
        match (a.is_nan(), b.is_nan()) {
            (false, false) => a.total_cmp(b),
            (a_nan, b_nan) => a_nan.cmp(&b_nan),
        }
    }

    fn encode(number: &f64) -> Bytes {
        encoded(&pb::DoubleMsg { double_msg: *number })
    }

    /// Java's `Double.MIN_VALUE` is the least positive number.
    fn encode_least() -> Bytes {
        Double::encode(&f64::from_bits(1))
    }
}

/// Decimal numbers, taken to two digits after the point.
pub(super) struct Decimal;

impl Interpreter for Decimal {
    type Number = Cents;

    fn read(cell: CellRef<'_>) -> Result<Option<Cents>, Exception> {
        Cents::from_decimal_bytes(cell.value()).map(Some).ok_or_else(|| {
            Exception::do_not_retry(format!(
                "java.lang.NullPointerException: the value of {} bytes in row {} is no BigDecimal",
                cell.value().len(),
                cell::print::Binary(cell.row())
            ))
        })
    }

    fn add(a: &Cents, b: &Cents) -> Cents {
        a.add(b)
    }

    fn multiply(a: &Cents, b: &Cents) -> Cents {
        a.multiply(b)
    }

    fn compare(a: &Cents, b: &Cents) -> Ordering {
        a.cmp(b)
    }

    fn encode(number: &Cents) -> Bytes {
        encoded(&pb::BigDecimalMsg { bigdecimal_msg: number.to_decimal_bytes() })
    }

    /// `BigDecimal.valueOf(Double.MIN_VALUE)`, which is 4.9E-324: 49 at scale 325.
    fn encode_least() -> Bytes {
        encoded(&pb::BigDecimalMsg { bigdecimal_msg: Bytes::from_static(&[0, 0, 1, 69, 49]) })
    }
}
