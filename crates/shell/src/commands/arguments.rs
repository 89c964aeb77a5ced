//! What a command was given, and the readings of it that commands share.

use std::ops::RangeInclusive;

use bytes::Bytes;
use model::TableName;

use crate::failure::{Flow, Result};
use crate::value::{Pairs, Value};

/// The arguments of a command.
pub struct Arguments(Vec<Value>);

impl Arguments {
    pub(super) fn new(values: Vec<Value>) -> Arguments {
        Arguments(values)
    }

    pub(super) fn count_among(&self, takes: &RangeInclusive<usize>) -> Result<()> {
        let given = self.0.len();
        if takes.contains(&given) {
            return Ok(());
        }
        let expected = match (*takes.start(), *takes.end()) {
            (from, to) if from == to => from.to_string(),
            (from, usize::MAX) => format!("{from}+"),
            (from, to) => format!("{from}..{to}"),
        };
        Err(Flow::argument(format!("wrong number of arguments (given {given}, expected {expected})")))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One; none where it is nil.
    pub fn get(&self, i: usize) -> Option<&Value> {
        self.0.get(i).filter(|value| !value.is_nil())
    }

    /// All from one on.
    pub fn from(&self, i: usize) -> &[Value] {
        self.0.get(i..).unwrap_or_default()
    }

    /// One as text.
    pub fn text(&self, i: usize) -> String {
        self.0.get(i).map(Value::to_text).unwrap_or_default()
    }

    /// One as text, where it is given.
    pub fn optional_text(&self, i: usize) -> Option<String> {
        self.get(i).map(Value::to_text)
    }

    /// One as bytes.
    pub fn bytes(&self, i: usize) -> Bytes {
        self.0.get(i).map(Value::to_bytes).unwrap_or_default().into()
    }

    /// One as the name of a table.
    ///
    /// # Errors
    /// It is none.
    pub fn table(&self, i: usize) -> Result<TableName> {
        match self.0.get(i) {
            Some(Value::Table(name)) => Ok(name.clone()),
            Some(Value::Text(_) | Value::Symbol(_)) => table_name(&self.text(i)),
            other => {
                let what = other.map_or("nothing".to_owned(), Value::inspect);
                Err(Flow::argument(format!("{what} is not the name of a table")))
            }
        }
    }

    /// One as a hash; an empty one where it is not given.
    ///
    /// # Errors
    /// It is something else.
    pub fn hash(&self, i: usize) -> Result<Options> {
        Options::of(self.get(i))
    }

    /// One as a truth: `true`, `'true'`.
    pub fn truth(&self, i: usize) -> bool {
        self.get(i).is_some_and(truth)
    }
}

/// The name of a table.
pub(super) fn table_name(text: &str) -> Result<TableName> {
    TableName::parse(text).map_err(|error| Flow::raise("Java::JavaLang::IllegalArgumentException", error.to_string()))
}

/// Java's `Boolean.valueOf` of a value's text.
pub(super) fn truth(value: &Value) -> bool {
    value.to_text().eq_ignore_ascii_case("true")
}

/// Options of a command by their names; those that were read are left out of what is left.
#[derive(Clone, Default)]
pub struct Options(Pairs);

impl Options {
    /// Of a hash, or of nothing.
    ///
    /// # Errors
    /// It is something else.
    pub fn of(value: Option<&Value>) -> Result<Options> {
        match value {
            None => Ok(Options::default()),
            Some(Value::Hash(pairs)) => Ok(Options(pairs.borrow().clone())),
            Some(other) => Err(Flow::argument(format!("{} of {} is not of Hash type", other.class(), other.inspect()))),
        }
    }

    /// Takes out an option. Keys are strings or symbols.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let at =
            self.0.0.iter().position(|(key, _)| {
                matches!(key, Value::Text(_) | Value::Symbol(_)) && key.to_bytes() == name.as_bytes()
            });
        at.map(|at| self.0.0.remove(at).1).filter(|value| !value.is_nil())
    }

    /// Whether an option is there.
    pub fn has(&self, name: &str) -> bool {
        self.0.0.iter().any(|(key, value)| key.to_bytes() == name.as_bytes() && !value.is_nil())
    }

    /// Takes out an option as text.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|value| value.to_text())
    }

    /// Takes out an option as bytes.
    pub fn take_bytes(&mut self, name: &str) -> Option<Bytes> {
        self.take(name).map(|value| value.to_bytes().into())
    }

    /// Takes out a truth.
    pub fn take_truth(&mut self, name: &str) -> Option<bool> {
        self.take(name).map(|value| truth(&value))
    }

    /// Takes out a whole number.
    ///
    /// # Errors
    /// It is something else.
    pub fn take_int(&mut self, name: &str) -> Result<Option<i64>> {
        self.take(name).map(|value| int(&value, name)).transpose()
    }

    /// Takes out a list of texts; one text is a list of one.
    pub fn take_texts(&mut self, name: &str) -> Option<Vec<String>> {
        self.take(name).map(|value| texts(&value))
    }

    /// Takes out a hash.
    ///
    /// # Errors
    /// It is something else.
    pub fn take_hash(&mut self, name: &str) -> Result<Option<Vec<(Value, Value)>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Hash(pairs)) => Ok(Some(pairs.borrow().0.clone())),
            Some(_) => Err(Flow::argument(format!("{name} must be a Hash type"))),
        }
    }

    /// What nobody has taken.
    pub fn rest(&self) -> &[(Value, Value)] {
        &self.0.0
    }
}

/// A value as a list of texts; one that is no list is a list of one.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.borrow().iter().map(Value::to_text).collect(),
        other => vec![other.to_text()],
    }
}

/// A value as a whole number.
pub(super) fn int(value: &Value, name: &str) -> Result<i64> {
    let number = match value {
        Value::Int(number) => Some(*number),
        Value::Float(number) => Some(*number as i64),
        other => other.to_text().trim().parse().ok(),
    };
    number.ok_or_else(|| Flow::argument(format!("{name} must be a number, not {}", value.inspect())))
}
