//! JSON as it is printed: members in the order in which they are given. Follows: Gson with `setPrettyPrinting`.

use std::fmt::Write;

use crate::value::Value;

/// A value of JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Members with their names.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A string.
    pub fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    /// What a value of a script is in JSON. Bytes that are no UTF-8 are written as `Bytes.toStringBinary` does.
    pub fn of(value: &Value) -> Json {
        match value {
            Value::Nil => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(number) => Json::Int(*number),
            Value::Float(number) => Json::Float(*number),
            Value::Text(bytes) => Json::Text(match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => cell::print::to_string_binary(bytes),
            }),
            Value::Array(items) => Json::List(items.borrow().iter().map(Json::of).collect()),
            Value::Hash(pairs) => {
                Json::Object(pairs.borrow().0.iter().map(|(key, value)| (key.to_text(), Json::of(value))).collect())
            }
            other => Json::Text(other.to_text()),
        }
    }

    /// On one line.
    pub fn line(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None, false);
        out
    }

    /// Over several lines, two spaces deeper at each level, with `<`, `>`, `&`, `=` and `'` escaped as Gson does it.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0), true);
        out
    }

    fn write(&self, out: &mut String, depth: Option<usize>, for_html: bool) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Int(number) => out.push_str(&number.to_string()),
            Json::Float(number) if number.is_finite() => out.push_str(&crate::value::float(*number)),
            Json::Float(_) => out.push_str("null"),
            Json::Text(text) => escaped(text, out, for_html),
            Json::List(items) if items.is_empty() => out.push_str("[]"),
            Json::Object(members) if members.is_empty() => out.push_str("{}"),
            Json::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    separate(out, i, depth);
                    item.write(out, depth.map(|depth| depth + 1), for_html);
                }
                newline(out, depth);
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    separate(out, i, depth);
                    escaped(name, out, for_html);
                    out.push_str(if depth.is_some() { ": " } else { ":" });
                    value.write(out, depth.map(|depth| depth + 1), for_html);
                }
                newline(out, depth);
                out.push('}');
            }
        }
    }
}

fn separate(out: &mut String, i: usize, depth: Option<usize>) {
    if i > 0 {
        out.push(',');
    }
    newline(out, depth.map(|depth| depth + 1));
}

fn newline(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

fn escaped(text: &str, out: &mut String, for_html: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '=' | '\'' if for_html => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if (c as u32) < 0x20 || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_gson_writes_it() {
        let json = Json::Object(vec![
            ("b".to_owned(), Json::List(vec![Json::Int(1), Json::Float(0.5)])),
            ("a".to_owned(), Json::text("x='\n\u{1}\"")),
            ("n".to_owned(), Json::List(Vec::new())),
        ]);
        let pretty =
            "{\n  \"b\": [\n    1,\n    0.5\n  ],\n  \"a\": \"x\\u003d\\u0027\\n\\u0001\\\"\",\n  \"n\": []\n}";
        assert_eq!(json.pretty(), pretty);
        assert_eq!(json.line(), "{\"b\":[1,0.5],\"a\":\"x='\\n\\u0001\\\"\",\"n\":[]}");
        assert_eq!(Json::of(&Value::text(b"\xFFa")).line(), "\"\\\\xFFa\"");
    }
}
