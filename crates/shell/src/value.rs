//! Values of a script.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

use model::TableName;

use crate::evaluator::scope::Frame;
use crate::failure::Exception;
use crate::language::syntax::Block;

/// A value.
#[derive(Clone)]
pub enum Value {
    /// `nil`.
    Nil,
    /// `true` and `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A string: any bytes.
    Text(Rc<[u8]>),
    /// `:name`.
    Symbol(Rc<str>),
    /// A regular expression of Ruby's.
    Regex(Rc<str>),
    /// A list. Copies are the same list.
    Array(Rc<RefCell<Vec<Value>>>),
    /// Keys and values in the order in which they came. Copies are the same hash.
    Hash(Rc<RefCell<Pairs>>),
    /// From, to, and whether `to` is out of it.
    Range(Rc<(Value, Value, bool)>),
    /// A block as a value, with the variables from where it was made.
    Lambda(Rc<Closure>),
    /// A reference to a table.
    Table(TableName),
    /// A filter; copies are the same filter, which its setters change.
    Filter(Rc<RefCell<filter::Filter>>),
    /// What a filter compares with.
    Comparator(Rc<filter::Comparator>),
    /// What was rescued.
    Exception(Rc<Exception>),
    /// A class, by its name.
    Class(Rc<str>),
    /// Something of Java that is only passed on or shown.
    Java(Rc<str>),
}

/// A block and where it was made.
pub struct Closure {
    /// The block.
    pub block: Rc<Block>,
    /// The variables around it.
    pub frame: Frame,
}

/// The pairs of a hash.
#[derive(Clone, Default)]
pub struct Pairs(pub Vec<(Value, Value)>);

impl Pairs {
    /// The value under `key`.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k.same(key)).map(|(_, value)| value)
    }

    /// Puts a value under `key`.
    pub fn set(&mut self, key: Value, value: Value) {
        match self.0.iter_mut().find(|(k, _)| k.same(&key)) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Takes out what is under `key`.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k.same(key))?;
        Some(self.0.remove(at).1)
    }
}

impl Value {
    /// A string.
    pub fn text(text: impl AsRef<[u8]>) -> Value {
        Value::Text(Rc::from(text.as_ref()))
    }

    /// A list.
    pub fn array(items: Vec<Value>) -> Value {
        Value::Array(Rc::new(RefCell::new(items)))
    }

    /// A hash.
    pub fn hash(pairs: Pairs) -> Value {
        Value::Hash(Rc::new(RefCell::new(pairs)))
    }

    /// All but `nil` and `false`.
    pub fn is_true(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Whether it is `nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// The name of its class.
    pub fn class(&self) -> String {
        let name = match self {
            Value::Nil => "NilClass",
            Value::Bool(true) => "TrueClass",
            Value::Bool(false) => "FalseClass",
            Value::Int(_) => "Integer",
            Value::Float(_) => "Float",
            Value::Text(_) => "String",
            Value::Symbol(_) => "Symbol",
            Value::Regex(_) => "Regexp",
            Value::Array(_) => "Array",
            Value::Hash(_) => "Hash",
            Value::Range(_) => "Range",
            Value::Lambda(_) => "Proc",
            Value::Table(_) => "Hbase::Table",
            Value::Filter(_) => "Java::OrgApacheHadoopHbaseFilter::Filter",
            Value::Comparator(_) => "Java::OrgApacheHadoopHbaseFilter::ByteArrayComparable",
            Value::Exception(exception) => return exception.class.clone(),
            Value::Class(_) => "Class",
            Value::Java(_) => "Java::JavaLang::Object",
        };
        name.to_owned()
    }

    /// Ruby's `==`.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Symbol(a), Value::Symbol(b))
            | (Value::Regex(a), Value::Regex(b))
            | (Value::Class(a), Value::Class(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => {
                let (a, b) = (a.borrow(), b.borrow());
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same(b))
            }
            (Value::Hash(a), Value::Hash(b)) => {
                let (a, b) = (a.borrow(), b.borrow());
                a.0.len() == b.0.len() && a.0.iter().all(|(key, value)| b.get(key).is_some_and(|v| v.same(value)))
            }
            (Value::Range(a), Value::Range(b)) => a.0.same(&b.0) && a.1.same(&b.1) && a.2 == b.2,
            (Value::Table(a), Value::Table(b)) => a == b,
            _ => false,
        }
    }

    /// Ruby's `to_s`, as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Value::Nil => Vec::new(),
            Value::Text(bytes) => bytes.to_vec(),
            Value::Symbol(name) => name.as_bytes().to_vec(),
            Value::Exception(exception) => exception.message.clone().into_bytes(),
            Value::Class(name) | Value::Java(name) => name.as_bytes().to_vec(),
            Value::Regex(pattern) => format!("(?-mix:{pattern})").into_bytes(),
            Value::Range(range) => {
                let mut out = range.0.to_bytes();
                out.extend_from_slice(if range.2 { b"..." } else { b".." });
                out.extend(range.1.to_bytes());
                out
            }
            other => other.inspect().into_bytes(),
        }
    }

    /// The same as text; what is no UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.to_bytes()).into_owned()
    }

    /// Ruby's `inspect`.
    pub fn inspect(&self) -> String {
        let mut out = String::new();
        self.inspect_into(&mut out, 0);
        out
    }

    fn inspect_into(&self, out: &mut String, depth: u32) {
        // A list can be an element of itself.
        if depth > 20 {
            return out.push_str("...");
        }
        match self {
            Value::Nil => out.push_str("nil"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::Float(number) => out.push_str(&float(*number)),
            Value::Text(bytes) => inspect_bytes(bytes, out),
            Value::Symbol(name) if name.chars().all(|c| c.is_alphanumeric() || "_?!".contains(c)) => {
                out.push(':');
                out.push_str(name);
            }
            Value::Symbol(name) => {
                out.push(':');
                inspect_bytes(name.as_bytes(), out);
            }
            Value::Regex(pattern) => out.push_str(&format!("/{pattern}/")),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.borrow().iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    item.inspect_into(out, depth + 1);
                }
                out.push(']');
            }
            Value::Hash(pairs) => {
                out.push('{');
                for (i, (key, value)) in pairs.borrow().0.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    key.inspect_into(out, depth + 1);
                    out.push_str("=>");
                    value.inspect_into(out, depth + 1);
                }
                out.push('}');
            }
            Value::Range(range) => {
                range.0.inspect_into(out, depth + 1);
                out.push_str(if range.2 { "..." } else { ".." });
                range.1.inspect_into(out, depth + 1);
            }
            Value::Lambda(_) => out.push_str("#<Proc>"),
            Value::Table(name) => out.push_str(&format!("Hbase::Table - {name}")),
            Value::Filter(_) => out.push_str("#<Filter>"),
            Value::Comparator(_) => out.push_str("#<Comparator>"),
            Value::Exception(exception) => out.push_str(&format!("#<{}: {}>", exception.class, exception.message)),
            Value::Class(name) | Value::Java(name) => out.push_str(name),
        }
    }
}

/// A number as Ruby writes it: always with a point or an exponent.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        let exponent: i32 = exponent.parse().unwrap_or(0);
        return format!("{digits}{point}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    let text = number.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn inspect_bytes(bytes: &[u8], out: &mut String) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' | '\\' => {
                    out.push('\\');
                    out.push(c);
                }
                '#' if matches!(chars.peek(), Some('{' | '$' | '@')) => out.push_str("\\#"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '\u{1B}' => out.push_str("\\e"),
                c if c.is_ascii_control() => {
                    let _ = write!(out, "\\x{:02X}", c as u32);
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_ruby_shows_them() {
        for (value, shown) in [
            (Value::text("a\"\\\n\u{0}é"), r#""a\"\\\n\x00é""#),
            (Value::text(b"\xFFx"), r#""\xFFx""#),
            (Value::array(vec![Value::Int(1), Value::Nil, Value::Bool(true)]), "[1, nil, true]"),
            (Value::Float(1.0), "1.0"),
            (Value::Float(1e20), "1.0e+20"),
            (Value::Float(0.25), "0.25"),
            (Value::Symbol("a".into()), ":a"),
            (Value::hash(Pairs(vec![(Value::text("a"), Value::Int(1))])), r#"{"a"=>1}"#),
        ] {
            assert_eq!(value.inspect(), shown);
        }
    }

    #[test]
    fn a_list_within_itself_is_shown() {
        let list = Value::array(Vec::new());
        let Value::Array(items) = &list else { unreachable!() };
        items.borrow_mut().push(list.clone());
        assert!(list.inspect().contains("..."));
        items.borrow_mut().clear();
    }
}
