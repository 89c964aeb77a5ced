//! Reads values.

use super::{Kind, MAX_DEPTH, MAX_NAME_BYTES, Message, MessageKind, Protocol, ProtocolError};
use bytes::Bytes;

/// What a message may be decoded to: so many bytes, and so many more for each of its own.
const DECODED_BYTES: usize = 1 << 20;
const DECODED_PER_BYTE: usize = 16;

/// A place in a message.
pub struct Reader<'a> {
    protocol: Protocol,
    data: &'a [u8],
    /// Where the data lie, to share them.
    owner: Option<&'a Bytes>,
    at: usize,
    depth: usize,
    /// What the header of a field said (compact).
    field_bool: Option<bool>,
    /// Bytes that may still be allocated for what is decoded.
    room_bytes: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `data`, whose parts are shared.
    pub fn new(protocol: Protocol, data: &'a Bytes) -> Reader<'a> {
        Reader { owner: Some(data), ..Reader::over(protocol, data) }
    }

    /// As [`Reader::new`]; parts are copied.
    pub(super) fn over(protocol: Protocol, data: &'a [u8]) -> Reader<'a> {
        let room_bytes = DECODED_BYTES.saturating_add(data.len().saturating_mul(DECODED_PER_BYTE));
        Reader { protocol, data, owner: None, at: 0, depth: 0, field_bool: None, room_bytes }
    }

    /// How far it has come.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        let taken = self.data.get(self.at..).and_then(|rest| rest.get(..count)).ok_or(ProtocolError::Incomplete)?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        self.take(N)?.try_into().map_err(|_| ProtocolError::Incomplete)
    }

    fn u8(&mut self) -> Result<u8, ProtocolError> {
        Ok(self.array::<1>()?[0])
    }

    fn varint(&mut self) -> Result<u64, ProtocolError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtocolError::Unknown { what: "a number of more than ten bytes, its value", code: value as i64 })
    }

    fn zigzag(&mut self) -> Result<i64, ProtocolError> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// What stands before the arguments. A call of the older, unversioned binary form is read, too.
    ///
    /// # Errors
    /// Another protocol, or bytes that are missing.
    pub fn message(&mut self) -> Result<Message, ProtocolError> {
        match self.protocol {
            Protocol::Binary => self.binary_message(),
            Protocol::Compact => {
                let id = self.u8()?;
                if id != 0x82 {
                    return Err(ProtocolError::NotThrift(id));
                }
                let byte = self.u8()?;
                if byte & 0x1f != 1 {
                    return Err(ProtocolError::Unknown { what: "version", code: (byte & 0x1f).into() });
                }
                let sequence = self.varint()? as u32 as i32;
                let length = self.varint()?;
                let name = self.name(i64::try_from(length).unwrap_or(i64::MAX))?;
                Ok(Message { name, kind: MessageKind::of(byte >> 5)?, sequence })
            }
        }
    }

    fn binary_message(&mut self) -> Result<Message, ProtocolError> {
        let first = self.array::<4>()?;
        let word = i32::from_be_bytes(first);
        if word < 0 {
            if first[0] != 0x80 || first[1] != 0x01 {
                return Err(ProtocolError::NotThrift(first[0]));
            }
            let length = i32::from_be_bytes(self.array()?);
            let name = self.name(length.into())?;
            let sequence = i32::from_be_bytes(self.array()?);
            return Ok(Message { name, kind: MessageKind::of(first[3])?, sequence });
        }
        let name = self.name(word.into()).map_err(|error| match error {
            ProtocolError::TooLarge { .. } => ProtocolError::NotThrift(first[0]),
            other => other,
        })?;
        let kind = MessageKind::of(self.u8()?)?;
        Ok(Message { name, kind, sequence: i32::from_be_bytes(self.array()?) })
    }

    fn name(&mut self, length: i64) -> Result<String, ProtocolError> {
        let known = usize::try_from(length).ok().filter(|length| *length <= MAX_NAME_BYTES);
        let length = known.ok_or(ProtocolError::TooLarge { what: "method's name", size: length })?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// Goes into a value that holds others.
    ///
    /// # Errors
    /// Too deep.
    pub fn enter(&mut self) -> Result<(), ProtocolError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(ProtocolError::TooDeep) } else { Ok(()) }
    }

    /// And out of it.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The next field of a struct; none at its end. `last` is 0 before the first.
    ///
    /// # Errors
    /// Bytes that are no field.
    pub fn field(&mut self, last: &mut i16) -> Result<Option<(Kind, i16)>, ProtocolError> {
        let byte = self.u8()?;
        if byte == 0 {
            return Ok(None);
        }
        let kind = match self.protocol {
            Protocol::Binary => {
                *last = i16::from_be_bytes(self.array()?);
                Kind::from_binary(byte)?
            }
            Protocol::Compact => {
                let delta = i16::from(byte >> 4);
                *last = if delta == 0 { self.zigzag()? as i16 } else { last.wrapping_add(delta) };
                let code = byte & 0x0f;
                self.field_bool = (code <= 2).then_some(code == 1);
                Kind::from_compact(code)?
            }
        };
        Ok(Some((kind, *last)))
    }

    /// # Errors
    /// Bytes are missing.
    pub fn bool(&mut self) -> Result<bool, ProtocolError> {
        match self.field_bool.take() {
            Some(value) => Ok(value),
            None => Ok(self.u8()? == 1),
        }
    }

    /// # Errors
    /// Bytes are missing.
    pub fn byte(&mut self) -> Result<i8, ProtocolError> {
        Ok(self.u8()? as i8)
    }

    /// # Errors
    /// Bytes are missing.
    pub fn i16(&mut self) -> Result<i16, ProtocolError> {
        match self.protocol {
            Protocol::Binary => Ok(i16::from_be_bytes(self.array()?)),
            Protocol::Compact => Ok(self.zigzag()? as i16),
        }
    }

    /// # Errors
    /// Bytes are missing.
    pub fn i32(&mut self) -> Result<i32, ProtocolError> {
        match self.protocol {
            Protocol::Binary => Ok(i32::from_be_bytes(self.array()?)),
            Protocol::Compact => Ok(self.zigzag()? as i32),
        }
    }

    /// # Errors
    /// Bytes are missing.
    pub fn i64(&mut self) -> Result<i64, ProtocolError> {
        match self.protocol {
            Protocol::Binary => Ok(i64::from_be_bytes(self.array()?)),
            Protocol::Compact => self.zigzag(),
        }
    }

    /// Length of the string that follows. No more than `i32::MAX`; whether its bytes are there is for the caller to see.
    pub(super) fn binary_length(&mut self) -> Result<usize, ProtocolError> {
        let length = match self.protocol {
            Protocol::Binary => i64::from(i32::from_be_bytes(self.array()?)),
            Protocol::Compact => i64::try_from(self.varint()?).unwrap_or(i64::MAX),
        };
        let legal = usize::try_from(length).ok().filter(|length| *length <= i32::MAX as usize);
        legal.ok_or(ProtocolError::TooLarge { what: "string", size: length })
    }

    /// Bytes, shared with the message.
    ///
    /// # Errors
    /// More than there are.
    pub fn binary(&mut self) -> Result<Bytes, ProtocolError> {
        let length = self.binary_length()?;
        let bytes = self.take(length)?;
        Ok(self.owner.map_or_else(|| Bytes::copy_from_slice(bytes), |owner| owner.slice_ref(bytes)))
    }

    pub(super) fn count(&mut self, what: &'static str, least_bytes: usize) -> Result<usize, ProtocolError> {
        let count = match self.protocol {
            Protocol::Binary => i64::from(i32::from_be_bytes(self.array()?)),
            Protocol::Compact => i64::try_from(self.varint()?).unwrap_or(i64::MAX),
        };
        self.check_count(what, count, least_bytes)
    }

    fn check_count(&self, what: &'static str, count: i64, least_bytes: usize) -> Result<usize, ProtocolError> {
        let legal = usize::try_from(count).ok().filter(|count| *count <= i32::MAX as usize);
        let count = legal.ok_or(ProtocolError::TooLarge { what, size: count })?;
        if self.owner.is_some() && count.saturating_mul(least_bytes) > self.remaining() {
            return Err(ProtocolError::TooLarge { what, size: count as i64 });
        }
        Ok(count)
    }

    /// Type and count of a list's or set's elements.
    ///
    /// # Errors
    /// More than the bytes can hold.
    pub fn list(&mut self) -> Result<(Kind, usize), ProtocolError> {
        let byte = self.u8()?;
        match self.protocol {
            Protocol::Binary => {
                let count = self.count("list", 1)?;
                Ok((Kind::from_binary(byte)?, count))
            }
            Protocol::Compact => {
                let kind = Kind::from_compact(byte & 0x0f)?;
                match byte >> 4 {
                    15 => Ok((kind, self.count("list", 1)?)),
                    few => Ok((kind, self.check_count("list", few.into(), 1)?)),
                }
            }
        }
    }

    /// Types and count of a map's pairs; no types when it is empty.
    ///
    /// # Errors
    /// More than the bytes can hold.
    pub fn map(&mut self) -> Result<Option<(Kind, Kind, usize)>, ProtocolError> {
        match self.protocol {
            Protocol::Binary => {
                let [key, value] = self.array()?;
                let count = self.count("map", 2)?;
                if count == 0 {
                    return Ok(None);
                }
                Ok(Some((Kind::from_binary(key)?, Kind::from_binary(value)?, count)))
            }
            Protocol::Compact => {
                let count = self.count("map", 2)?;
                if count == 0 {
                    return Ok(None);
                }
                let kinds = self.u8()?;
                Ok(Some((Kind::from_compact(kinds >> 4)?, Kind::from_compact(kinds & 0x0f)?, count)))
            }
        }
    }

    /// Room for `count` values of `size` bytes.
    ///
    /// # Errors
    /// They are more than a message of this length may become.
    pub fn make_room(&mut self, count: usize, size: usize) -> Result<(), ProtocolError> {
        let bytes = count.saturating_mul(size);
        let left = self.room_bytes.checked_sub(bytes);
        self.room_bytes = left.ok_or(ProtocolError::TooLarge { what: "list", size: count as i64 })?;
        Ok(())
    }

    /// Passes over a value that holds no others.
    pub(super) fn skip_plain(&mut self, kind: Kind) -> Result<(), ProtocolError> {
        match kind {
            Kind::Bool => self.bool().map(drop),
            Kind::Byte => self.byte().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::I16 => self.i16().map(drop),
            Kind::I32 => self.i32().map(drop),
            Kind::I64 => self.i64().map(drop),
            _ => Ok(()),
        }
    }

    /// Passes over a value.
    ///
    /// # Errors
    /// Bytes that are no value of this type, or too deep.
    pub fn skip(&mut self, kind: Kind) -> Result<(), ProtocolError> {
        match kind {
            Kind::Binary => {
                let length = self.binary_length()?;
                self.take(length).map(drop)
            }
            Kind::Struct => {
                self.enter()?;
                let mut last = 0;
                while let Some((kind, _)) = self.field(&mut last)? {
                    self.skip(kind)?;
                }
                self.leave();
                Ok(())
            }
            Kind::Map => {
                self.enter()?;
                if let Some((key, value, count)) = self.map()? {
                    for _ in 0..count {
                        self.skip(key)?;
                        self.skip(value)?;
                    }
                }
                self.leave();
                Ok(())
            }
            Kind::List | Kind::Set => {
                self.enter()?;
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    self.skip(kind)?;
                }
                self.leave();
                Ok(())
            }
            plain => self.skip_plain(plain),
        }
    }
}
