//! Text in URLs and headers: percent signs, query parameters, base64, columns.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

/// Java's decoders take padding or leave it.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASIC: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Appends base64 with padding.
pub fn push_base64(out: &mut String, bytes: &[u8]) {
    STANDARD.encode_string(bytes, out);
}

/// What base64 says; an error says what is wrong with it.
pub fn from_base64(text: &str) -> Result<Bytes, String> {
    BASIC.decode(text).map(Bytes::from).map_err(|error| format!("illegal base64: {error}"))
}

/// As [`from_base64`], with the alphabet for URLs.
pub fn from_base64_url(text: &[u8]) -> Result<Bytes, String> {
    URL.decode(text).map(Bytes::from).map_err(|error| format!("illegal base64 (URL alphabet): {error}"))
}

/// As [`from_base64`], from bytes.
pub fn from_base64_bytes(text: &[u8]) -> Result<Bytes, String> {
    BASIC.decode(text).map(Bytes::from).map_err(|error| format!("illegal base64: {error}"))
}

/// Decodes percent signs, and `+` as a space where `plus` says so. As `java.net.URLDecoder`: bytes that are no UTF-8 become U+FFFD.
pub fn percent_decoded(text: &str, plus: bool) -> Result<String, String> {
    if !text.bytes().any(|byte| byte == b'%' || (plus && byte == b'+')) {
        return Ok(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digits = [bytes.next(), bytes.next()].map(|digit| (digit? as char).to_digit(16));
                let [Some(high), Some(low)] = digits else {
                    return Err(format!("illegal %-escape in {text:?}: two hex digits must follow the percent sign"));
                };
                (high * 16 + low) as u8
            }
            b'+' if plus => b' ',
            other => other,
        });
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// The parameters of a query, still encoded.
pub fn parameters(query: &str) -> Vec<(&str, &str)> {
    query.split('&').filter(|part| !part.is_empty()).map(|part| part.split_once('=').unwrap_or((part, ""))).collect()
}

/// `family[:qualifier]`: a column without a colon is a family alone. Follows: `CellUtil#parseColumn`.
pub fn column_of(column: &[u8]) -> (&[u8], Option<&[u8]>) {
    match column.iter().position(|byte| *byte == b':') {
        None => (column, None),
        Some(at) => (&column[..at], Some(&column[at + 1..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_decoded_as_java_does() {
        assert_eq!(percent_decoded("a%2Fb+c", true).as_deref(), Ok("a/b c"));
        assert_eq!(percent_decoded("a+b", false).as_deref(), Ok("a+b"));
        assert_eq!(percent_decoded("%ff", true).as_deref(), Ok("\u{fffd}"));
        assert!(percent_decoded("a%2", true).is_err() && percent_decoded("%zz", true).is_err());
    }

    #[test]
    fn columns_are_split_at_the_first_colon() {
        assert_eq!(column_of(b"f"), (&b"f"[..], None));
        assert_eq!(column_of(b"f:"), (&b"f"[..], Some(&b""[..])));
        assert_eq!(column_of(b"f:a:b"), (&b"f"[..], Some(&b"a:b"[..])));
    }

    #[test]
    fn base64_is_read_with_and_without_padding() {
        assert_eq!(from_base64("YQ==").as_deref(), Ok(&b"a"[..]));
        assert_eq!(from_base64("YQ").as_deref(), Ok(&b"a"[..]));
        assert_eq!(from_base64_url(b"-_8=").as_deref(), Ok(&[0xfb, 0xff][..]));
        assert!(from_base64("a b").is_err());
    }
}
