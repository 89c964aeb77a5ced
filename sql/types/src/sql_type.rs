//! The types. Follows: `PDataType` and its subclasses.

use crate::number::{
    double_from_sortable, double_to_plain, double_to_sortable, float_from_sortable, float_to_plain, float_to_sortable,
    get_int, put_int,
};
use crate::{Decimal, TypeError, Value};

/// A column's type, as Phoenix has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// 1 byte.
    TinyInt,
    /// 2 bytes.
    SmallInt,
    /// 4 bytes.
    Integer,
    /// 8 bytes.
    BigInt,
    /// 1 byte, as `Bytes.toBytes` writes it, from 0 on.
    UnsignedTinyInt,
    /// 2 bytes likewise.
    UnsignedSmallInt,
    /// 4 bytes likewise.
    UnsignedInt,
    /// 8 bytes likewise.
    UnsignedLong,
    /// 4 bytes.
    Float,
    /// 8 bytes.
    Double,
    /// 4 bytes, as `Bytes.toBytes` writes it, from 0 on.
    UnsignedFloat,
    /// 8 bytes likewise.
    UnsignedDouble,
    /// Up to 21 bytes.
    Decimal,
    /// So many characters, padded with spaces.
    Char(u32),
    /// Text.
    Varchar,
    /// So many bytes, padded with zeros.
    Binary(u32),
    /// Bytes; in a key only at its end.
    Varbinary,
    /// 1 byte.
    Boolean,
    /// 8 bytes: milliseconds.
    Date,
    /// 8 bytes: milliseconds.
    Time,
    /// 12 bytes: milliseconds, nanoseconds.
    Timestamp,
    /// 8 bytes, as `Bytes.toBytes` writes them, from 1970 on.
    UnsignedDate,
    /// 8 bytes likewise.
    UnsignedTime,
    /// 12 bytes likewise.
    UnsignedTimestamp,
}

const NAMES: [(SqlType, &str); 20] = [
    (SqlType::TinyInt, "tinyint"),
    (SqlType::SmallInt, "smallint"),
    (SqlType::Integer, "integer"),
    (SqlType::BigInt, "bigint"),
    (SqlType::UnsignedTinyInt, "unsigned_tinyint"),
    (SqlType::UnsignedSmallInt, "unsigned_smallint"),
    (SqlType::UnsignedInt, "unsigned_int"),
    (SqlType::UnsignedLong, "unsigned_long"),
    (SqlType::Float, "float"),
    (SqlType::Double, "double"),
    (SqlType::UnsignedFloat, "unsigned_float"),
    (SqlType::UnsignedDouble, "unsigned_double"),
    (SqlType::Decimal, "decimal"),
    (SqlType::Boolean, "boolean"),
    (SqlType::Date, "date"),
    (SqlType::Time, "time"),
    (SqlType::Timestamp, "timestamp"),
    (SqlType::UnsignedDate, "unsigned_date"),
    (SqlType::UnsignedTime, "unsigned_time"),
    (SqlType::UnsignedTimestamp, "unsigned_timestamp"),
];

impl std::fmt::Display for SqlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SqlType::Char(n) => write!(f, "char({n})"),
            SqlType::Binary(n) => write!(f, "binary({n})"),
            SqlType::Varchar => f.write_str("varchar"),
            SqlType::Varbinary => f.write_str("varbinary"),
            other => {
                let name = NAMES.iter().find(|(of, _)| of == other).map(|(_, name)| *name);
                f.write_str(name.unwrap_or("unknown"))
            }
        }
    }
}

impl std::str::FromStr for SqlType {
    type Err = TypeError;

    /// Reads what [`SqlType`]'s `Display` writes.
    fn from_str(text: &str) -> Result<SqlType, TypeError> {
        let unknown = || TypeError::Malformed { expected: "type".into(), why: format!("there is no type {text}") };
        if let Some((of, _)) = NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(*of);
        }
        match text {
            "varchar" => Ok(SqlType::Varchar),
            "varbinary" => Ok(SqlType::Varbinary),
            _ => {
                let (name, width) = text.strip_suffix(')').and_then(|t| t.split_once('(')).ok_or_else(unknown)?;
                let width = width.parse().ok().filter(|width| *width > 0).ok_or_else(unknown)?;
                match name {
                    "char" => Ok(SqlType::Char(width)),
                    "binary" => Ok(SqlType::Binary(width)),
                    _ => Err(unknown()),
                }
            }
        }
    }
}

impl SqlType {
    /// Bytes of each value, where all have as many.
    pub fn fixed_width(self) -> Option<usize> {
        Some(match self {
            SqlType::TinyInt | SqlType::UnsignedTinyInt | SqlType::Boolean => 1,
            SqlType::SmallInt | SqlType::UnsignedSmallInt => 2,
            SqlType::Integer | SqlType::UnsignedInt | SqlType::Float | SqlType::UnsignedFloat => 4,
            SqlType::BigInt | SqlType::UnsignedLong | SqlType::Double | SqlType::UnsignedDouble => 8,
            SqlType::Date | SqlType::Time | SqlType::UnsignedDate | SqlType::UnsignedTime => 8,
            SqlType::Timestamp | SqlType::UnsignedTimestamp => 12,
            SqlType::Char(n) | SqlType::Binary(n) => n as usize,
            SqlType::Decimal | SqlType::Varchar | SqlType::Varbinary => return None,
        })
    }

    /// Bytes and lowest value of an integer type.
    fn integer(self) -> Option<(usize, bool)> {
        Some(match self {
            SqlType::TinyInt => (1, true),
            SqlType::SmallInt => (2, true),
            SqlType::Integer => (4, true),
            SqlType::BigInt => (8, true),
            SqlType::UnsignedTinyInt => (1, false),
            SqlType::UnsignedSmallInt => (2, false),
            SqlType::UnsignedInt => (4, false),
            SqlType::UnsignedLong => (8, false),
            _ => return None,
        })
    }

    /// Appends the bytes of a value.
    ///
    /// # Errors
    /// A value of another kind, or one that has no room.
    pub fn encode(self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
        let range = |value: String| TypeError::OutOfRange { expected: self.to_string(), value };
        match (self, *value) {
            (_, Value::Int(v)) if self.integer().is_some() => {
                let (width, signed) = self.integer().unwrap_or((8, true));
                // Phoenix's unsigned types are Java's signed ones from 0 on: the highest bit is never set.
                let most = i64::MAX >> (64 - 8 * width as u32);
                let least = if signed { -most - 1 } else { 0 };
                if !(least..=most).contains(&v) {
                    return Err(range(v.to_string()));
                }
                put_int(v, width, signed, out);
            }
            (SqlType::Float, Value::Float(v)) => out.extend_from_slice(&float_to_sortable(v)),
            (SqlType::Double, Value::Double(v)) => out.extend_from_slice(&double_to_sortable(v)),
            (SqlType::UnsignedFloat, Value::Float(v)) if v < 0.0 => return Err(range(v.to_string())),
            (SqlType::UnsignedFloat, Value::Float(v)) => out.extend_from_slice(&float_to_plain(v)),
            (SqlType::UnsignedDouble, Value::Double(v)) if v < 0.0 => return Err(range(v.to_string())),
            (SqlType::UnsignedDouble, Value::Double(v)) => out.extend_from_slice(&double_to_plain(v)),
            (SqlType::Decimal, Value::Decimal(v)) => v.encode(out)?,
            (SqlType::Varchar, Value::Text(v)) => out.extend_from_slice(v.as_bytes()),
            (SqlType::Char(n), Value::Text(v)) => self.pad(v.trim_end_matches(' ').as_bytes(), n, b' ', out)?,
            (SqlType::Varbinary, Value::Bytes(v)) => out.extend_from_slice(v),
            (SqlType::Binary(n), Value::Bytes(v)) => self.pad(v, n, 0, out)?,
            (SqlType::Boolean, Value::Bool(v)) => out.push(u8::from(v)),
            (SqlType::Date | SqlType::Time, Value::Millis(v)) => put_int(v, 8, true, out),
            (SqlType::UnsignedDate | SqlType::UnsignedTime, Value::Millis(v)) if v < 0 => {
                return Err(range(format!("{v} ms")));
            }
            (SqlType::UnsignedDate | SqlType::UnsignedTime, Value::Millis(v)) => put_int(v, 8, false, out),
            (SqlType::UnsignedTimestamp, Value::Timestamp { ms, .. }) if ms < 0 => {
                return Err(range(format!("{ms} ms")));
            }
            (SqlType::Timestamp | SqlType::UnsignedTimestamp, Value::Timestamp { ms, nanos }) => {
                put_int(ms, 8, self == SqlType::Timestamp, out);
                out.extend_from_slice(&(nanos % 1_000_000).to_be_bytes());
            }
            (_, other) => return Err(TypeError::Kind { expected: self.to_string(), value: format!("{other:?}") }),
        }
        Ok(())
    }

    /// Turns bytes of a value round, so that they sort in descending order; and back.
    pub fn invert(self, bytes: &mut [u8]) {
        // A boolean becomes the other one.
        let mask = if self == SqlType::Boolean { 1 } else { 0xFF };
        bytes.iter_mut().for_each(|byte| *byte ^= mask);
    }

    fn pad(self, value: &[u8], width: u32, with: u8, out: &mut Vec<u8>) -> Result<(), TypeError> {
        let width = width as usize;
        if value.len() > width {
            return Err(TypeError::TooLong { expected: self.to_string(), length: value.len() });
        }
        let end = out.len() + width;
        out.extend_from_slice(value);
        out.resize(end, with);
        Ok(())
    }

    /// The value of some bytes; none (NULL) where there are none.
    ///
    /// # Errors
    /// Bytes that the type does not write.
    pub fn decode(self, bytes: &[u8]) -> Result<Option<Value<'_>>, TypeError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let malformed = |why: String| TypeError::Malformed { expected: self.to_string(), why };
        if let Some(width) = self.fixed_width()
            && bytes.len() != width
        {
            return Err(malformed(format!("{} bytes instead of {width}", bytes.len())));
        }
        let int = |bytes: &[u8], signed: bool| -> Result<i64, TypeError> {
            let value = get_int(bytes, signed);
            // In the widest unsigned type a set highest bit shows as a negative number.
            if !signed && bytes[0] & 0x80 != 0 { Err(malformed("a negative number".into())) } else { Ok(value) }
        };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|e| malformed(e.to_string()));
        Ok(Some(match self {
            SqlType::Float => Value::Float(float_from_sortable(take(bytes))),
            SqlType::Double => Value::Double(double_from_sortable(take(bytes))),
            SqlType::UnsignedFloat => Value::Float(f32::from_be_bytes(take(bytes))),
            SqlType::UnsignedDouble => Value::Double(f64::from_be_bytes(take(bytes))),
            SqlType::Decimal => Value::Decimal(Decimal::decode(bytes)?),
            SqlType::Varchar => Value::Text(text(bytes)?),
            SqlType::Char(_) => Value::Text(text(bytes)?.trim_end_matches(' ')),
            SqlType::Varbinary | SqlType::Binary(_) => Value::Bytes(bytes),
            SqlType::Boolean => match bytes[0] {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                other => return Err(malformed(format!("the byte {other}"))),
            },
            SqlType::Date | SqlType::Time => Value::Millis(int(bytes, true)?),
            SqlType::UnsignedDate | SqlType::UnsignedTime => Value::Millis(int(bytes, false)?),
            SqlType::Timestamp | SqlType::UnsignedTimestamp => {
                let (ms, nanos) = bytes.split_at(8);
                let nanos = u32::from_be_bytes(take(nanos)) % 1_000_000;
                Value::Timestamp { ms: int(ms, self == SqlType::Timestamp)?, nanos }
            }
            integer => Value::Int(int(bytes, integer.integer().is_none_or(|(_, signed)| signed))?),
        }))
    }
}

/// The first `N` bytes of a value whose width was compared already.
fn take<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    let length = bytes.len().min(N);
    array[..length].copy_from_slice(&bytes[..length]);
    array
}
