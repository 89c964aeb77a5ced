//! The part of an address behind `?`.

/// Parameters, decoded, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`. What is not valid is taken as it stands; nothing fails.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Query(pairs.collect())
    }

    /// The first value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

/// `%HH` and `+` decoded; bytes that are no UTF-8 become replacement characters.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
                continue;
            }
            (b'+', ..) => out.push(b' '),
            (byte, ..) => out.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `text` as a value in an address.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_can_be_read() {
        let query = Query::parse("a=1&b=x%3Dy+z&c&=d&a=2&bad=%zz%4&half=%e4");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.get("b"), Some("x=y z"));
        assert_eq!(query.get("c"), Some(""));
        assert_eq!(query.get("bad"), Some("%zz%4"));
        assert_eq!(query.get("half"), Some("\u{FFFD}"));
        assert_eq!(query.get("none"), None);
        assert_eq!(Query::parse("").get(""), None);
    }

    #[test]
    fn encoding_is_undone_by_decoding() {
        for text in ["ns:table", "<&\">", "ä+ %", ""] {
            assert_eq!(decode(&encode(text)), text);
        }
    }
}
