//! Phoenix's types as bytes that sort like their values, and row keys made of several of them.
//!
//! ```
//! use basalt_sql_types::{Order, SqlType, Value};
//! let mut bytes = Vec::new();
//! SqlType::Integer.encode(&Value::Int(-1), &mut bytes).unwrap();
//! assert_eq!(bytes, [0x7F, 0xFF, 0xFF, 0xFF]);
//! assert_eq!(SqlType::Integer.decode(&bytes).unwrap(), Some(Value::Int(-1)));
//! ```
//!
//! Always true:
//!  1. The bytes are those that Apache Phoenix's `PDataType` writes (`tests/golden.rs` holds them to its own).
//!  2. Encoded values of one type sort by their bytes as the values sort; inverted (`DESC`) they sort the other way round.
//!  3. An empty encoding is NULL.
//!  4. Bytes from outside never panic: what cannot be a value is a [`TypeError`].
//!
//! Must not know: tables, Arrow, the network.

mod array;
mod decimal;
mod key;
mod number;
mod packed;
mod sql_type;
mod value;

pub use array::{decode_array, encode_array, invert_array};
pub use decimal::Decimal;
pub use key::{KeyColumn, KeyLayout, Order, salt_of, successor};
pub use packed::{Packed, pack};
pub use sql_type::SqlType;
pub use value::{TypeError, Value};
