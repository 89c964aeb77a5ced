//! PostgreSQL's binary values, of `COPY ... FROM STDIN (FORMAT binary)`, as columns. Each column's type says what bytes it takes, as in
//! PostgreSQL's `*recv` functions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryArray, BooleanArray, StringArray};
use datafusion::arrow::array::{
    Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::DataType;
use types::Decimal;

use crate::error::{SqlError, SqlState};
use crate::mapping::Column;

/// What PostgreSQL says of bytes that are no value.
const INVALID_BINARY: &str = "22P03";
/// Days from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_DAYS: i32 = 10_957;
const DAY_US: i64 = 86_400_000_000;

/// The values of a column.
///
/// # Errors
/// Bytes that are no value of its type, or one that it has no room for.
pub fn array_of(column: &Column, values: &[Option<&[u8]>]) -> Result<ArrayRef, SqlError> {
    Ok(match column.arrow_type() {
        DataType::Int16 => Arc::new(all::<_, Int16Array>(values, |v| Ok(i16::from_be_bytes(fixed(v)?)))?),
        DataType::Int32 => Arc::new(all::<_, Int32Array>(values, |v| Ok(i32::from_be_bytes(fixed(v)?)))?),
        DataType::Int64 => Arc::new(all::<_, Int64Array>(values, |v| Ok(i64::from_be_bytes(fixed(v)?)))?),
        DataType::Float32 => Arc::new(all::<_, Float32Array>(values, |v| Ok(f32::from_be_bytes(fixed(v)?)))?),
        DataType::Float64 => Arc::new(all::<_, Float64Array>(values, |v| Ok(f64::from_be_bytes(fixed(v)?)))?),
        DataType::Boolean => Arc::new(all::<_, BooleanArray>(values, |v| Ok(fixed::<1>(v)? != [0]))?),
        DataType::Date32 => Arc::new(all::<_, Date32Array>(values, |v| {
            i32::from_be_bytes(fixed(v)?).checked_add(EPOCH_DAYS).ok_or_else(|| out_of_range("date"))
        })?),
        DataType::Time64(_) => Arc::new(all::<_, Time64MicrosecondArray>(values, |v| {
            let us = i64::from_be_bytes(fixed(v)?);
            if (0..DAY_US).contains(&us) { Ok(us) } else { Err(out_of_range("time")) }
        })?),
        DataType::Timestamp(..) => Arc::new(all::<_, TimestampMicrosecondArray>(values, |v| {
            let us = i64::from_be_bytes(fixed(v)?).checked_add(i64::from(EPOCH_DAYS) * DAY_US);
            us.ok_or_else(|| out_of_range("timestamp"))
        })?),
        of @ DataType::Decimal128(precision, scale) => {
            let digits: Decimal128Array = all(values, |v| numeric(v, precision, scale))?;
            Arc::new(digits.with_data_type(of))
        }
        DataType::Utf8 => {
            let text = |v| {
                std::str::from_utf8(v)
                    .map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""))
            };
            Arc::new(all::<_, StringArray>(values, text)?)
        }
        _ => Arc::new(BinaryArray::from_iter(values.iter().copied())),
    })
}

fn all<'a, T, A: Array + FromIterator<Option<T>>>(
    values: &[Option<&'a [u8]>],
    read: impl Fn(&'a [u8]) -> Result<T, SqlError>,
) -> Result<A, SqlError> {
    values.iter().map(|value| value.map(&read).transpose()).collect()
}

fn invalid(what: &str) -> SqlError {
    SqlError::new(INVALID_BINARY, what)
}

fn out_of_range(of: &str) -> SqlError {
    SqlError::new("22008", format!("{of} out of range"))
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], SqlError> {
    // PostgreSQL tells them apart: too few bytes are a broken message to it.
    value.try_into().map_err(|_| match value.len() < N {
        true => SqlError::new("08P01", "insufficient data left in message"),
        false => invalid("incorrect binary data format"),
    })
}

/// A number of digits in base 10,000: how many, the weight of the first, the sign, digits behind the point that are shown, the digits.
fn numeric(value: &[u8], precision: u8, scale: i8) -> Result<i128, SqlError> {
    let mut words = value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let mut next = || words.next().ok_or_else(|| SqlError::new("08P01", "insufficient data left in message"));
    let (count, weight, sign, shown) = (next()?, next()? as i16, next()?, next()?);
    let room = || SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "numeric field overflow");
    let is_negative = match sign {
        0 => false,
        0x4000 => true,
        // NaN, and the infinities.
        0xC000 | 0xD000 | 0xF000 => return Err(room()),
        _ => return Err(invalid("invalid sign in external \"numeric\" value")),
    };
    if shown > 0x3FFF {
        return Err(invalid("invalid scale in external \"numeric\" value"));
    }
    let mut unscaled = 0i128;
    let mut places = -4 * (i32::from(weight) + 1);
    for _ in 0..count {
        let digit = next()?;
        if digit >= 10_000 {
            return Err(invalid("invalid digit in external \"numeric\" value"));
        }
        places += 4;
        // Zeros that were only sent have no say in whether there is room.
        let (mut digit, mut by) = (i128::from(digit), 10_000);
        if i32::from(shown) < places && places - i32::from(shown) < 4 {
            let unseen = 10i128.pow((places - i32::from(shown)) as u32);
            if digit % unseen == 0 {
                (digit, by) = (digit / unseen, by / unseen);
                places = i32::from(shown);
            }
        }
        unscaled = unscaled.checked_mul(by).and_then(|number| number.checked_add(digit)).ok_or_else(room)?;
    }
    if words.next().is_some() || !value.len().is_multiple_of(2) {
        return Err(invalid("incorrect binary data format"));
    }
    let number = Decimal { unscaled: if is_negative { -unscaled } else { unscaled }, scale: places };
    let number = number.normalized().rescaled(i32::from(scale)).ok_or_else(room)?.unscaled;
    let most = 10u128.checked_pow(u32::from(precision)).ok_or_else(room)?;
    if number.unsigned_abs() < most { Ok(number) } else { Err(room()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn numbers_are_read_as_postgresql_sends_them() {
        // 12345.678, -0.05, 0, 1000000, 1e20.
        assert_eq!(numeric(&of(&[3, 1, 0, 3, 1, 2345, 6780]), 15, 2), Ok(1_234_568));
        assert_eq!(numeric(&of(&[1, 0xFFFF, 0x4000, 2, 500]), 15, 2), Ok(-5));
        assert_eq!(numeric(&of(&[0, 0, 0, 0]), 15, 2), Ok(0));
        assert_eq!(numeric(&of(&[1, 1, 0, 0, 100]), 15, 2), Ok(100_000_000));
        assert_eq!(numeric(&of(&[1, 5, 0, 0, 1]), 38, 0), Ok(10i128.pow(20)));
        // 38 nines, the last two behind the point.
        let nines = of(&[10, 8, 0, 2, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9900]);
        assert_eq!(numeric(&nines, 38, 2), Ok(10i128.pow(38) - 1));
        let wrong: [(&[u16], &str); 7] = [
            (&[1, 0, 0xC000, 0, 0], "22003"),
            (&[1, 0, 7, 0, 1], INVALID_BINARY),
            (&[1, 0, 0, 0, 10_000], INVALID_BINARY),
            (&[1, 0, 0, 0], "08P01"),
            (&[1, 0, 0, 0, 1, 1], INVALID_BINARY),
            (&[1, 4, 0, 0, 1], "22003"),
            (&[1, 0x7FFF, 0, 0, 1], "22003"),
        ];
        for (words, state) in wrong {
            assert_eq!(numeric(&of(words), 10, 2).map_err(|e| e.state), Err(state), "{words:?}");
        }
    }

    #[test]
    fn a_value_of_other_length_is_none() {
        assert_eq!(fixed::<4>(&[0; 4]), Ok([0; 4]));
        assert_eq!(fixed::<4>(&[0; 3]).map_err(|e| e.state), Err("08P01"));
        assert_eq!(fixed::<4>(&[0; 5]).map_err(|e| e.state), Err(INVALID_BINARY));
    }
}
