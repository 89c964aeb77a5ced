//! Writes values.

use super::written::{LENGTH_BYTES, Written};
use super::{Kind, MessageKind, Protocol};
use bytes::Bytes;

/// From so many bytes on a value is not copied into the message: a table's large values go from where they were read to the socket.
const SHARED_BYTES: usize = 8 << 10;
/// Room that a message begins with: most need no more but for their values.
const FIRST_BYTES: usize = 128;

/// A message that is being written.
pub struct Writer {
    protocol: Protocol,
    /// What was copied, behind room for the length of a frame.
    out: Vec<u8>,
    /// What was not, and where in `out` it belongs.
    shared: Vec<(usize, Bytes)>,
}

impl Writer {
    /// An empty one.
    pub fn new(protocol: Protocol) -> Writer {
        let mut out = Vec::with_capacity(FIRST_BYTES);
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        Writer { protocol, out, shared: Vec::new() }
    }

    /// What was written.
    pub fn finish(self) -> Written {
        Written::new(self.out, self.shared)
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// What stands before arguments or a result.
    pub fn message(&mut self, name: &str, kind: MessageKind, sequence: i32) {
        match self.protocol {
            Protocol::Binary => {
                self.out.extend_from_slice(&[0x80, 0x01, 0, kind as u8]);
                self.binary(name.as_bytes());
                self.out.extend_from_slice(&sequence.to_be_bytes());
            }
            Protocol::Compact => {
                self.out.extend_from_slice(&[0x82, (kind as u8) << 5 | 1]);
                self.varint((sequence as u32).into());
                self.binary(name.as_bytes());
            }
        }
    }

    /// The head of a field.
    pub fn field(&mut self, kind: Kind, id: i16, last: &mut i16) {
        match self.protocol {
            Protocol::Binary => {
                self.out.push(kind as u8);
                self.out.extend_from_slice(&id.to_be_bytes());
            }
            Protocol::Compact => self.compact_field(kind.compact(), id, last),
        }
        *last = id;
    }

    fn compact_field(&mut self, code: u8, id: i16, last: &i16) {
        match id.checked_sub(*last) {
            Some(delta @ 1..=15) => self.out.push((delta as u8) << 4 | code),
            _ => {
                self.out.push(code);
                self.zigzag(id.into());
            }
        }
    }

    /// A whole field with a truth value, which compact has in the head.
    pub fn bool_field(&mut self, value: bool, id: i16, last: &mut i16) {
        match self.protocol {
            Protocol::Binary => {
                self.field(Kind::Bool, id, last);
                self.bool(value);
            }
            Protocol::Compact => {
                self.compact_field(if value { 1 } else { 2 }, id, last);
                *last = id;
            }
        }
    }

    /// The end of a struct.
    pub fn stop(&mut self) {
        self.out.push(0);
    }

    /// A truth value outside of a field.
    pub fn bool(&mut self, value: bool) {
        let code = match self.protocol {
            Protocol::Binary => u8::from(value),
            Protocol::Compact => 2 - u8::from(value),
        };
        self.out.push(code);
    }

    /// A byte.
    pub fn byte(&mut self, value: i8) {
        self.out.push(value as u8);
    }

    /// Two bytes.
    pub fn i16(&mut self, value: i16) {
        match self.protocol {
            Protocol::Binary => self.out.extend_from_slice(&value.to_be_bytes()),
            Protocol::Compact => self.zigzag(value.into()),
        }
    }

    /// Four bytes.
    pub fn i32(&mut self, value: i32) {
        match self.protocol {
            Protocol::Binary => self.out.extend_from_slice(&value.to_be_bytes()),
            Protocol::Compact => self.zigzag(value.into()),
        }
    }

    /// Eight bytes.
    pub fn i64(&mut self, value: i64) {
        match self.protocol {
            Protocol::Binary => self.out.extend_from_slice(&value.to_be_bytes()),
            Protocol::Compact => self.zigzag(value),
        }
    }

    fn size(&mut self, size: usize) {
        match self.protocol {
            // What does not fit into four bytes does not fit into a reply either: its bytes are bounded first.
            Protocol::Binary => self.out.extend_from_slice(&(size as u32).to_be_bytes()),
            Protocol::Compact => self.varint(size as u64),
        }
    }

    /// Bytes or text.
    pub fn binary(&mut self, value: &[u8]) {
        self.size(value.len());
        self.out.extend_from_slice(value);
    }

    /// As [`Writer::binary`]; a large value is kept, not copied.
    pub fn shared(&mut self, value: &Bytes) {
        if value.len() < SHARED_BYTES {
            return self.binary(value);
        }
        self.size(value.len());
        self.shared.push((self.out.len(), value.clone()));
    }

    /// The head of a list or set.
    pub fn list(&mut self, kind: Kind, count: usize) {
        match self.protocol {
            Protocol::Binary => {
                self.out.push(kind as u8);
                self.size(count);
            }
            Protocol::Compact if count < 15 => self.out.push((count as u8) << 4 | kind.compact()),
            Protocol::Compact => {
                self.out.push(0xf0 | kind.compact());
                self.size(count);
            }
        }
    }

    /// The head of a map.
    pub fn map(&mut self, key: Kind, value: Kind, count: usize) {
        match self.protocol {
            Protocol::Binary => {
                self.out.extend_from_slice(&[key as u8, value as u8]);
                self.size(count);
            }
            Protocol::Compact => {
                self.size(count);
                if count > 0 {
                    self.out.push(key.compact() << 4 | value.compact());
                }
            }
        }
    }
}
