//! The few classes of Java's and Ruby's whose methods scripts call by name: `Bytes`, `Time`.

use super::Given;
use crate::failure::Result;
use crate::value::Value;

/// `Class.method`.
pub(super) fn class_method(class: &str, given: &Given<'_>) -> Result<Option<Value>> {
    Ok(Some(match (class, given.name) {
        (_, "name" | "to_s" | "getName") => Value::text(class),
        ("Bytes", "toBytes") => match given.value(0) {
            Value::Int(number) => Value::text(number.to_be_bytes()),
            other => Value::text(other.to_bytes()),
        },
        ("Bytes", "toBytesBinary") => Value::text(cell::print::to_bytes_binary(&given.value(0).to_text())),
        ("Bytes", "toString") => Value::text(given.value(0).to_bytes()),
        ("Bytes", "toStringBinary") => Value::text(cell::print::to_string_binary(&given.value(0).to_bytes())),
        ("Bytes", "toLong" | "toInt" | "toShort") => {
            let bytes = given.value(0).to_bytes();
            Value::Int(signed(&bytes[bytes.len().saturating_sub(8)..]))
        }
        ("Array", "new") => Value::array(Vec::new()),
        ("Hash", "new") => Value::hash(crate::value::Pairs::default()),
        ("String", "new") => Value::text(given.value(0).to_bytes()),
        ("ArgumentError" | "RuntimeError" | "StandardError" | "Exception", "new") => {
            let message = if given.values.is_empty() { class.to_owned() } else { given.value(0).to_text() };
            let exception = crate::failure::Exception { class: class.to_owned(), message, cause: None };
            Value::Exception(std::rc::Rc::new(exception))
        }
        _ => return Ok(None),
    }))
}

/// The next part of a name such as `org.apache.hadoop.hbase.util.Bytes`: the class where it is one that is known here.
pub(super) fn path_method(path: &str, given: &Given<'_>) -> Result<Option<Value>> {
    if path == "main" || !given.values.is_empty() {
        return Ok(None);
    }
    Ok(Some(match given.name {
        name if name.starts_with(char::is_uppercase) && super::is_class(name) => Value::Class(name.into()),
        name => Value::Java(format!("{path}.{name}").as_str().into()),
    }))
}

/// A number of at most eight bytes, big endian.
pub(crate) fn signed(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |number: i64, byte| (number << 8) | i64::from(*byte))
}
