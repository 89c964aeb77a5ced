//! Values of the IDL: how each travels, and the macros that make structs, enums and services out of tables of the IDL's lines.

use crate::protocol::{Kind, ProtocolError, Reader, Writer};
use bytes::Bytes;
use std::collections::BTreeMap;

/// A value of the IDL.
pub trait Wire: Sized {
    /// Its type on the wire.
    const KIND: Kind;

    /// Reads one.
    ///
    /// # Errors
    /// Bytes that are no such value.
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError>;

    /// Writes it.
    fn write(&self, writer: &mut Writer);

    /// Writes it as a field.
    fn write_field(&self, writer: &mut Writer, id: i16, last: &mut i16) {
        writer.field(Self::KIND, id, last);
        self.write(writer);
    }
}

macro_rules! plain {
    ($($type:ty, $kind:ident, $method:ident;)*) => {$(
        impl Wire for $type {
            const KIND: Kind = Kind::$kind;
            fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
                reader.$method()
            }
            fn write(&self, writer: &mut Writer) {
                writer.$method(*self);
            }
        }
    )*};
}
plain! { i8, Byte, byte; i16, I16, i16; i32, I32, i32; i64, I64, i64; }

impl Wire for bool {
    const KIND: Kind = Kind::Bool;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        reader.bool()
    }
    fn write(&self, writer: &mut Writer) {
        writer.bool(*self);
    }
    fn write_field(&self, writer: &mut Writer, id: i16, last: &mut i16) {
        writer.bool_field(*self, id, last);
    }
}

impl Wire for Bytes {
    const KIND: Kind = Kind::Binary;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        reader.binary()
    }
    fn write(&self, writer: &mut Writer) {
        writer.shared(self);
    }
}

impl Wire for String {
    const KIND: Kind = Kind::Binary;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        Ok(String::from_utf8_lossy(&reader.binary()?).into_owned())
    }
    fn write(&self, writer: &mut Writer) {
        writer.binary(self.as_bytes());
    }
}

/// Nothing: what a method without a result answers.
impl Wire for () {
    const KIND: Kind = Kind::Struct;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        reader.skip(Kind::Struct)
    }
    fn write(&self, _: &mut Writer) {}
    fn write_field(&self, _: &mut Writer, _: i16, _: &mut i16) {}
}

fn read_elements<T: Wire>(reader: &mut Reader<'_>) -> Result<Vec<T>, ProtocolError> {
    reader.enter()?;
    let (kind, count) = reader.list()?;
    if kind != T::KIND && count > 0 {
        return Err(ProtocolError::Unknown { what: "for this list, type", code: (kind as u8).into() });
    }
    reader.make_room(count, size_of::<T>())?;
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(T::read(reader)?);
    }
    reader.leave();
    Ok(elements)
}

impl<T: Wire> Wire for Vec<T> {
    const KIND: Kind = Kind::List;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        read_elements(reader)
    }
    fn write(&self, writer: &mut Writer) {
        writer.list(T::KIND, self.len());
        self.iter().for_each(|element| element.write(writer));
    }
}

/// A set, in the order in which it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Set<T>(pub Vec<T>);

impl<T: Wire> Wire for Set<T> {
    const KIND: Kind = Kind::Set;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        read_elements(reader).map(Set)
    }
    fn write(&self, writer: &mut Writer) {
        self.0.write(writer);
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    const KIND: Kind = Kind::Map;
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        reader.enter()?;
        let mut map = BTreeMap::new();
        if let Some((key, value, count)) = reader.map()? {
            if (key, value) != (K::KIND, V::KIND) {
                return Err(ProtocolError::Unknown { what: "for this map, type", code: (key as u8).into() });
            }
            reader.make_room(count, size_of::<(K, V)>())?;
            for _ in 0..count {
                let key = K::read(reader)?;
                map.insert(key, V::read(reader)?);
            }
        }
        reader.leave();
        Ok(map)
    }
    fn write(&self, writer: &mut Writer) {
        writer.map(K::KIND, V::KIND, self.len());
        for (key, value) in self {
            key.write(writer);
            value.write(writer);
        }
    }
}

/// A field's type: as it is, or one that may be absent.
macro_rules! field_type {
    (opt $type:ty) => { Option<$type> };
    ($need:ident $type:ty) => { $type };
}

/// What a field is after reading: required ones must have come, others have what the IDL says.
macro_rules! field_value {
    (req $found:ident []) => {
        $found.ok_or($crate::protocol::ProtocolError::Missing(stringify!($found)))?
    };
    (opt $found:ident []) => {
        $found
    };
    (opt $found:ident [$default:expr]) => {
        $found.or(Some($default))
    };
    (def $found:ident []) => {
        $found.unwrap_or_default()
    };
    (def $found:ident [$default:expr]) => {
        $found.unwrap_or($default)
    };
}

/// Writes a field if it is there.
macro_rules! field_write {
    (opt $value:expr, $writer:ident, $id:literal, $last:ident) => {
        if let Some(value) = &$value {
            value.write_field($writer, $id, &mut $last);
        }
    };
    ($need:ident $value:expr, $writer:ident, $id:literal, $last:ident) => {
        $value.write_field($writer, $id, &mut $last);
    };
}

/// Reads the fields of a struct, whose head was read, into variables of their names.
macro_rules! read_fields {
    ($reader:ident { $($id:literal $need:ident $field:ident: $type:ty $(= $default:expr)?),* }) => {
        $(let mut $field: Option<$type> = None;)*
        $reader.enter()?;
        let mut last = 0;
        while let Some((kind, id)) = $reader.field(&mut last)? {
            match id {
                $($id if kind == <$type as $crate::wire::Wire>::KIND => {
                    $field = Some(<$type as $crate::wire::Wire>::read($reader)?);
                })*
                _ => $reader.skip(kind)?,
            }
        }
        $reader.leave();
        $(let $field = field_value!($need $field [$($default)?]);)*
    };
}

/// Structs and exceptions out of the IDL's lines: `number need name: type = default`, where the need is `req`, `opt` or `def`.
macro_rules! structs {
    ($($name:ident { $($id:literal $need:ident $field:ident: $type:ty $(= $default:expr)?),* $(,)? })*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the IDL.")]
        #[derive(Debug, Clone, Default, PartialEq)]
        #[allow(missing_docs, reason = "the IDL names the fields")]
        pub struct $name { $(pub $field: field_type!($need $type)),* }

        impl $crate::wire::Wire for $name {
            const KIND: $crate::protocol::Kind = $crate::protocol::Kind::Struct;
            fn read(reader: &mut $crate::protocol::Reader<'_>) -> Result<Self, $crate::protocol::ProtocolError> {
                read_fields!(reader { $($id $need $field: $type $(= $default)?),* });
                Ok($name { $($field),* })
            }
            fn write(&self, writer: &mut $crate::protocol::Writer) {
                let mut last = 0;
                $(field_write!($need self.$field, writer, $id, last);)*
                let _ = last;
                writer.stop();
            }
        }
    )*};
}

/// Enums out of the IDL's lines.
macro_rules! enums {
    ($($name:ident { $($variant:ident = $code:literal),* $(,)? })*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the IDL.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, non_camel_case_types, clippy::upper_case_acronyms, reason = "the IDL's names")]
        pub enum $name { $($variant = $code),* }

        impl $crate::wire::Wire for $name {
            const KIND: $crate::protocol::Kind = $crate::protocol::Kind::I32;
            fn read(reader: &mut $crate::protocol::Reader<'_>) -> Result<Self, $crate::protocol::ProtocolError> {
                match reader.i32()? {
                    $($code => Ok($name::$variant),)*
                    code => Err($crate::protocol::ProtocolError::Unknown { what: stringify!($name), code: code.into() }),
                }
            }
            fn write(&self, writer: &mut $crate::protocol::Writer) {
                writer.i32(*self as i32);
            }
        }
    )*};
}

/// A service out of the IDL's lines: the method on the left is called with the arguments that were read.
macro_rules! service {
    ($handler:ty {
        $($method:ident = $name:literal ($($id:literal $need:ident $arg:ident: $type:ty $(= $default:expr)?),*);)*
    }) => {
        impl $crate::dispatch::Service for $handler {
            async fn dispatch(
                &self,
                name: &str,
                reader: &mut $crate::protocol::Reader<'_>,
                answer: &mut $crate::dispatch::Answer<'_>,
            ) -> Result<bool, $crate::protocol::ProtocolError> {
                match name {
                    $($name => {
                        read_fields!(reader { $($id $need $arg: $type $(= $default)?),* });
                        answer.set(Box::pin(self.$method($($arg),*)).await);
                    })*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn over(&self, connection: client::Connection) -> Self {
                Self::over(self, connection)
            }
        }
    };
}

pub(crate) use {enums, field_type, field_value, field_write, read_fields, service, structs};
