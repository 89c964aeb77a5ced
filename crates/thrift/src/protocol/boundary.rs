//! Where a message ends that no frame bounds. It goes on where it stopped when more bytes have come, so that a message that comes in
//! small pieces is looked at once.

use super::{Kind, MAX_DEPTH, Protocol, ProtocolError, Reader};

/// What has been begun.
#[derive(Clone, Copy)]
enum Open {
    /// The message, before its arguments.
    Message,
    Struct,
    Elements {
        kind: Kind,
        left: usize,
    },
    Pairs {
        key: Kind,
        value: Kind,
        left: usize,
        is_value: bool,
    },
}

/// How far the bytes of one message have been looked at.
pub struct Boundary {
    protocol: Protocol,
    at: usize,
    open: Vec<Open>,
}

impl Boundary {
    /// Before the first byte.
    pub fn new(protocol: Protocol) -> Boundary {
        Boundary { protocol, at: 0, open: vec![Open::Message] }
    }

    /// Length of the message that `data` begins with; `None` when it has not come whole. `data` only grows from call to call.
    ///
    /// # Errors
    /// No message, or a string longer than `limit` allows.
    pub fn find(&mut self, data: &[u8], limit: usize) -> Result<Option<usize>, ProtocolError> {
        while let Some(open) = self.open.last().copied() {
            if self.at > limit {
                return Err(ProtocolError::TooLarge { what: "message", size: self.at as i64 });
            }
            let Some(rest) = data.get(self.at..) else { return Ok(None) };
            let before = self.open.len();
            let mut reader = Reader::over(self.protocol, rest);
            match self.step(open, &mut reader) {
                Ok(skip) => self.at = self.at.saturating_add(reader.position()).saturating_add(skip),
                Err(ProtocolError::Incomplete) => {
                    self.open.truncate(before);
                    if let Some(last) = self.open.last_mut() {
                        *last = open;
                    }
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        if self.at > limit {
            return Err(ProtocolError::TooLarge { what: "message", size: self.at as i64 });
        }
        Ok((self.at <= data.len()).then_some(self.at))
    }

    /// One step in what is open; how many bytes after the reader's place belong to a string.
    fn step(&mut self, open: Open, reader: &mut Reader<'_>) -> Result<usize, ProtocolError> {
        match open {
            Open::Message => {
                reader.message()?;
                self.open.pop();
                self.open.push(Open::Struct);
                Ok(0)
            }
            Open::Struct => match reader.field(&mut 0)? {
                Some((kind, _)) => self.value(kind, reader),
                None => {
                    self.open.pop();
                    Ok(0)
                }
            },
            Open::Elements { left: 0, .. } | Open::Pairs { left: 0, .. } => {
                self.open.pop();
                Ok(0)
            }
            Open::Elements { kind, left } => {
                self.replace(Open::Elements { kind, left: left - 1 });
                self.value(kind, reader)
            }
            Open::Pairs { key, value, left, is_value: false } => {
                self.replace(Open::Pairs { key, value, left, is_value: true });
                self.value(key, reader)
            }
            Open::Pairs { key, value, left, is_value: true } => {
                self.replace(Open::Pairs { key, value, left: left - 1, is_value: false });
                self.value(value, reader)
            }
        }
    }

    fn replace(&mut self, open: Open) {
        if let Some(last) = self.open.last_mut() {
            *last = open;
        }
    }

    fn value(&mut self, kind: Kind, reader: &mut Reader<'_>) -> Result<usize, ProtocolError> {
        let open = match kind {
            Kind::Binary => return reader.binary_length(),
            Kind::Struct => Open::Struct,
            Kind::List | Kind::Set => {
                let (kind, left) = reader.list()?;
                Open::Elements { kind, left }
            }
            Kind::Map => match reader.map()? {
                Some((key, value, left)) => Open::Pairs { key, value, left, is_value: false },
                None => return Ok(0),
            },
            plain => return reader.skip_plain(plain).map(|()| 0),
        };
        if self.open.len() >= MAX_DEPTH {
            return Err(ProtocolError::TooDeep);
        }
        self.open.push(open);
        Ok(0)
    }
}
