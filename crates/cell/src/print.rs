//! Bytes as HBase prints them (`Bytes.toStringBinary`) and reads them back (`Bytes.toBytesBinary`).

use std::fmt::{self, Write};

/// Shows bytes with unprintable ones as `\xHH`.
#[derive(Clone, Copy)]
pub struct Binary<'a>(pub &'a [u8]);

impl fmt::Display for Binary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for b in self.0 {
            match b {
                b' '..=b'~' if *b != b'\\' => f.write_char(char::from(*b))?,
                _ => write!(f, "\\x{b:02X}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Binary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `bytes` in printable form.
pub fn to_string_binary(bytes: &[u8]) -> String {
    Binary(bytes).to_string()
}

/// The bytes that `text` stands for: `\xHH` is one byte, every other character its low byte.
pub fn to_bytes_binary(text: &str) -> Vec<u8> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        if let ['\\', 'x', high, low, ..] = chars[at..]
            && let (Some(high), Some(low)) = (high.to_digit(16), low.to_digit(16))
        {
            out.push((high * 16 + low) as u8);
            at += 4;
        } else {
            out.push(chars[at] as u32 as u8);
            at += 1;
        }
    }
    out
}
