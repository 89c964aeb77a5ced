//! Methods of values: those of Ruby's that scripts for HBase's shell use.

mod filters;
mod hash;
mod java;
mod list;
mod number;
mod text;

use std::cmp::Ordering;
use std::rc::Rc;

use super::{MAX_RANGE, Shell};
use crate::commands;
use crate::failure::{Exception, Flow, Result};
use crate::language::Place;
use crate::language::syntax::{Block, Call, Kind, Node, Parameter};
use crate::value::{Closure, Value};

pub(crate) use filters::constant as filter_constant;
pub use text::{format, regex};

/// Classes that a script can name.
const CLASSES: &[&str] = &[
    "ArgumentError",
    "Array",
    "Bytes",
    "Exception",
    "FalseClass",
    "Float",
    "Hash",
    "IOError",
    "Integer",
    "LoadError",
    "NameError",
    "NilClass",
    "NoMethodError",
    "Proc",
    "Range",
    "Regexp",
    "RuntimeError",
    "StandardError",
    "String",
    "Symbol",
    "Time",
    "TrueClass",
    "TypeError",
    "ZeroDivisionError",
    "Object",
    "Numeric",
    "Interrupt",
];

/// Whether a class has this name.
pub fn is_class(name: &str) -> bool {
    CLASSES.contains(&name) || filters::CLASSES.contains(&name)
}

/// Whether an exception is one of a class, by the class's name as a script writes it.
pub fn is_a_class(exception: &Exception, class: &str) -> bool {
    match class {
        "Exception" | "StandardError" | "Object" => true,
        "NameError" if exception.class == "NoMethodError" => true,
        class => {
            let class = class.rsplit("::").next().unwrap_or(class);
            exception.class == class || exception.short_class() == class
        }
    }
}

/// What a range spells out.
pub(crate) fn range_items(range: &(Value, Value, bool)) -> Result<Vec<Value>> {
    match (&range.0, &range.1) {
        (Value::Int(from), Value::Int(to)) => {
            let to = if range.2 { *to - 1 } else { *to };
            if to.saturating_sub(*from) >= MAX_RANGE {
                return Err(Flow::raise("RangeError", format!("a range of more than {MAX_RANGE} numbers")));
            }
            Ok((*from..=to).map(Value::Int).collect())
        }
        (Value::Text(from), Value::Text(to)) => text::range(from, to, range.2),
        _ => Err(Flow::raise("TypeError", format!("can't iterate from {}", range.0.class()))),
    }
}

/// Ruby's `===`.
pub(crate) fn matches(test: &Value, value: &Value) -> Result<bool> {
    match (test, value) {
        (Value::Regex(pattern), value) => Ok(regex(pattern)?.is_match(&value.to_text())),
        (Value::Range(range), value) => {
            let above = compare(&range.0, value).is_some_and(Ordering::is_le);
            let below = compare(value, &range.1).is_some_and(|o| if range.2 { o.is_lt() } else { o.is_le() });
            Ok(above && below)
        }
        (Value::Class(class), value) => Ok(is_a(value, class)),
        (test, value) => Ok(test.same(value)),
    }
}

fn is_a(value: &Value, class: &str) -> bool {
    match value {
        Value::Exception(exception) => is_a_class(exception, class),
        value => value.class() == class || class == "Object" || (class == "Numeric" && is_number(value)),
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_))
}

/// Ruby's `<=>`.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Symbol(a), Value::Symbol(b)) => Some(a.cmp(b)),
        (Value::Array(a), Value::Array(b)) => {
            let (a, b) = (a.borrow(), b.borrow());
            let differs = a.iter().zip(b.iter()).map(|(a, b)| compare(a, b)).find(|o| *o != Some(Ordering::Equal));
            differs.unwrap_or_else(|| Some(a.len().cmp(&b.len())))
        }
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            number::float(a).partial_cmp(&number::float(b))
        }
        _ => None,
    }
}

/// Items in their order.
pub(crate) fn sorted(mut items: Vec<Value>) -> Result<Vec<Value>> {
    let mut refused = None;
    items.sort_by(|a, b| {
        compare(a, b).unwrap_or_else(|| {
            refused = Some(format!("comparison of {} with {} failed", a.class(), b.inspect()));
            Ordering::Equal
        })
    });
    refused.map_or(Ok(items), |why| Err(Flow::argument(why)))
}

/// `&:name`: a block that calls the method of its argument.
pub(crate) fn symbol_block(name: &str) -> Closure {
    let place = Place::default();
    let node = |kind| Node { place, kind };
    let call = Call {
        receiver: Some(Box::new(node(Kind::Variable("it".to_owned())))),
        safe: false,
        name: name.to_owned(),
        arguments: Vec::new(),
        block: None,
    };
    let parameters = vec![Parameter { name: "it".to_owned(), default: None, splat: false }];
    let block = Rc::new(Block { parameters, body: node(Kind::Call(call)) });
    Closure { block, frame: super::Frame::new(None) }
}

/// `Integer("1")` and its kin.
pub(crate) fn convert(class: &str, arguments: &[Value]) -> Result {
    let value = arguments.first().cloned().unwrap_or(Value::Nil);
    match (class, &value) {
        ("String", value) => Ok(Value::text(value.to_bytes())),
        ("Array", Value::Array(_)) => Ok(value),
        ("Array", Value::Nil) => Ok(Value::array(Vec::new())),
        ("Array", _) => Ok(Value::array(vec![value])),
        ("Integer", Value::Int(_)) | ("Float", Value::Float(_)) => Ok(value),
        ("Integer", Value::Float(number)) => Ok(Value::Int(*number as i64)),
        ("Float", Value::Int(number)) => Ok(Value::Float(*number as f64)),
        (class, value) => {
            let text = value.to_text();
            let number = match class {
                "Integer" => text.trim().parse().map(Value::Int).ok(),
                _ => text.trim().parse().map(Value::Float).ok(),
            };
            number.ok_or_else(|| Flow::argument(format!("invalid value for {class}(): {}", value.inspect())))
        }
    }
}

/// The arguments of a method of a value.
pub(crate) struct Given<'a> {
    /// The method's name.
    pub name: &'a str,
    /// What was given.
    pub values: Vec<Value>,
    /// The block.
    pub block: Option<&'a Rc<Closure>>,
}

impl Given<'_> {
    /// An argument; nil where it was not given.
    pub fn value(&self, i: usize) -> Value {
        self.values.get(i).cloned().unwrap_or(Value::Nil)
    }

    /// A whole number.
    pub fn int(&self, i: usize) -> Result<i64> {
        match self.value(i) {
            Value::Int(number) => Ok(number),
            Value::Float(number) => Ok(number as i64),
            other => Err(Flow::raise("TypeError", format!("no implicit conversion of {} into Integer", other.class()))),
        }
    }

    /// The block.
    pub fn block(&self) -> Result<Rc<Closure>> {
        self.block.cloned().ok_or_else(|| Flow::raise("LocalJumpError", format!("{} needs a block", self.name)))
    }
}

impl Shell {
    /// Calls a method of a value.
    pub(crate) fn method(
        &mut self,
        receiver: &Value,
        name: &str,
        values: Vec<Value>,
        block: Option<&Rc<Closure>>,
    ) -> Result {
        let given = Given { name, values, block };
        if let Some(result) = self.common(receiver, &given)? {
            return Ok(result);
        }
        let found = match receiver {
            Value::Text(bytes) => self.text_method(bytes, &given)?,
            Value::Symbol(symbol) => self.text_method(symbol.as_bytes(), &given)?,
            Value::Int(_) | Value::Float(_) => self.number_method(receiver, &given)?,
            Value::Array(_) | Value::Range(_) => self.list_method(receiver, &given)?,
            Value::Hash(pairs) => self.hash_method(pairs, &given)?,
            Value::Table(table) => return commands::of_table(self, table, name, given.values),
            Value::Exception(exception) => exception_method(exception, name),
            Value::Class(class) => match filters::class_method(class, &given)? {
                Some(value) => Some(value),
                None => java::class_method(class, &given)?,
            },
            Value::Filter(filter) => filters::filter_method(filter, &given)?,
            Value::Java(path) => java::path_method(path, &given)?,
            Value::Lambda(closure) if matches!(name, "call" | "()" | "[]" | "yield") => {
                let result = self.yield_to(closure, given.values);
                return match result {
                    Err(Flow::Return(value)) => Ok(value),
                    other => other,
                };
            }
            _ => None,
        };
        found.ok_or_else(|| {
            let what = match receiver {
                Value::Nil => "nil".to_owned(),
                Value::Java(path) => format!("{path}: this shell has no Java"),
                other => format!("{} ({})", other.inspect(), other.class()),
            };
            Flow::raise("NoMethodError", format!("undefined method `{name}' for {what}"))
        })
    }

    /// What every value can do.
    fn common(&mut self, receiver: &Value, given: &Given<'_>) -> Result<Option<Value>> {
        Ok(Some(match given.name {
            "==" => Value::Bool(receiver.same(&given.value(0))),
            "===" => Value::Bool(matches(receiver, &given.value(0))?),
            "equal?" | "eql?" => Value::Bool(receiver.same(&given.value(0))),
            "<=>" => compare(receiver, &given.value(0)).map_or(Value::Nil, |order| Value::Int(order as i64)),
            "<" | "<=" | ">" | ">=" => {
                let order = compare(receiver, &given.value(0)).ok_or_else(|| {
                    let (a, b) = (receiver.class(), given.value(0).inspect());
                    Flow::argument(format!("comparison of {a} with {b} failed"))
                })?;
                Value::Bool(match given.name {
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            "nil?" => Value::Bool(receiver.is_nil()),
            "!" => Value::Bool(!receiver.is_true()),
            "inspect" => Value::text(receiver.inspect()),
            "to_s" if !matches!(receiver, Value::Table(_) | Value::Int(_) | Value::Filter(_)) => {
                Value::text(receiver.to_bytes())
            }
            "class" => Value::Class(receiver.class().as_str().into()),
            "is_a?" | "kind_of?" | "instance_of?" => {
                Value::Bool(matches!(given.value(0), Value::Class(class) if is_a(receiver, &class)))
            }
            "respond_to?" => Value::Bool(responds(receiver, &given.value(0).to_text())),
            "freeze" | "itself" => receiver.clone(),
            "dup" | "clone" => match receiver {
                Value::Array(items) => Value::array(items.borrow().clone()),
                Value::Hash(pairs) => Value::hash(pairs.borrow().clone()),
                other => other.clone(),
            },
            "tap" => {
                let block = given.block()?;
                self.yield_to(&block, vec![receiver.clone()])?;
                receiver.clone()
            }
            "to_a" if receiver.is_nil() => Value::array(Vec::new()),
            "send" | "public_send" => {
                let mut values = given.values.clone();
                if values.is_empty() {
                    return Err(Flow::argument("no method name given"));
                }
                let name = values.remove(0).to_text();
                self.method(receiver, &name, values, given.block)?
            }
            _ => return Ok(None),
        }))
    }
}

fn responds(receiver: &Value, name: &str) -> bool {
    match receiver {
        Value::Exception(_) => matches!(name, "message" | "cause" | "backtrace"),
        Value::Array(_) | Value::Hash(_) | Value::Range(_) => matches!(name, "each" | "map" | "size" | "first"),
        Value::Text(_) => matches!(name, "to_s" | "size" | "length" | "to_i" | "strip"),
        _ => name == "to_s",
    }
}

fn exception_method(exception: &Rc<Exception>, name: &str) -> Option<Value> {
    Some(match name {
        "message" | "getMessage" | "full_message" | "to_string" | "toString" => Value::text(&exception.message),
        "cause" | "getCause" => exception.cause.clone().map_or(Value::Nil, Value::Exception),
        "backtrace" => Value::array(Vec::new()),
        _ => return None,
    })
}
