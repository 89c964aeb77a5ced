//! Methods of strings, and `format`.

use std::fmt::Write;

use super::{Given, MAX_RANGE};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// The most that repeating a string may make.
const MAX_BYTES: usize = 64 << 20;

/// A pattern, ready for use.
///
/// # Errors
/// It is none.
pub fn regex(pattern: &str) -> Result<regex::Regex> {
    regex::Regex::new(pattern).map_err(|error| Flow::raise("RegexpError", error.to_string().replace('\n', " ")))
}

/// What follows a string in a range: `a`, `b`, ..., `z`, `aa`.
pub(super) fn successor(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let mut at = out.len();
    while at > 0 {
        at -= 1;
        match out[at] {
            b'z' => out[at] = b'a',
            b'Z' => out[at] = b'A',
            b'9' => out[at] = b'0',
            other => {
                out[at] = other.wrapping_add(1);
                return out;
            }
        }
    }
    match out.first() {
        Some(b'0') => out.insert(0, b'1'),
        Some(first) => {
            let first = *first;
            out.insert(0, first);
        }
        None => {}
    }
    out
}

pub(super) fn range(from: &[u8], to: &[u8], exclusive: bool) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    let mut at = from.to_vec();
    while at.len() <= to.len() && !at.is_empty() {
        if at == to && exclusive {
            break;
        }
        out.push(Value::text(&at));
        if at == to {
            break;
        }
        if out.len() as i64 >= MAX_RANGE {
            return Err(Flow::raise("RangeError", format!("a range of more than {MAX_RANGE} strings")));
        }
        at = successor(&at);
    }
    Ok(out)
}

impl Shell {
    pub(super) fn text_method(&mut self, bytes: &[u8], given: &Given<'_>) -> Result<Option<Value>> {
        if let Some(value) = of_bytes(bytes, given)? {
            return Ok(Some(value));
        }
        let text = String::from_utf8_lossy(bytes);
        Ok(match given.name {
            "gsub" | "sub" => Some(self.substitute(&text, given)?),
            "each_line" => {
                let block = given.block()?;
                for line in text.split_inclusive('\n') {
                    self.yield_to(&block, vec![Value::text(line)])?;
                }
                Some(Value::text(bytes))
            }
            "each_char" => {
                let block = given.block()?;
                for c in text.chars() {
                    self.yield_to(&block, vec![Value::text(c.to_string())])?;
                }
                Some(Value::text(bytes))
            }
            _ => of_text(&text, given)?,
        })
    }

    fn substitute(&mut self, text: &str, given: &Given<'_>) -> Result {
        let pattern = match given.value(0) {
            Value::Regex(pattern) => regex(&pattern)?,
            other => regex(&regex::escape(&other.to_text()))?,
        };
        let mut out = String::new();
        let mut after = 0;
        for found in pattern.find_iter(text) {
            out.push_str(&text[after..found.start()]);
            let replacement = match given.block {
                Some(block) => self.yield_to(block, vec![Value::text(found.as_str())])?,
                None => given.value(1),
            };
            out.push_str(&replacement.to_text());
            after = found.end();
            if given.name == "sub" {
                break;
            }
        }
        out.push_str(&text[after..]);
        Ok(Value::text(out))
    }
}

/// What needs only bytes.
fn of_bytes(bytes: &[u8], given: &Given<'_>) -> Result<Option<Value>> {
    let other = || given.value(0).to_bytes();
    Ok(Some(match given.name {
        "+" => match given.value(0) {
            Value::Text(more) => Value::text([bytes, &more].concat()),
            other => {
                let class = other.class();
                return Err(Flow::raise("TypeError", format!("no implicit conversion of {class} into String")));
            }
        },
        "*" => {
            let times = usize::try_from(given.int(0)?).map_err(|_| Flow::argument("negative argument"))?;
            if bytes.len().saturating_mul(times) > MAX_BYTES {
                return Err(Flow::argument(format!("a string of more than {MAX_BYTES} bytes")));
            }
            Value::text(bytes.repeat(times))
        }
        "<<" | "concat" => {
            return Err(Flow::raise("NoMethodError", "strings do not change: write += instead of <<"));
        }
        "%" => {
            let mut values = vec![Value::text(bytes)];
            match given.value(0) {
                Value::Array(items) => values.extend(items.borrow().iter().cloned()),
                other => values.push(other),
            }
            format(&values)?
        }
        "to_sym" | "intern" => Value::Symbol(String::from_utf8_lossy(bytes).as_ref().into()),
        "to_str" | "to_java_bytes" | "b" | "bytes_string" => Value::text(bytes),
        "bytes" => Value::array(bytes.iter().map(|byte| Value::Int(i64::from(*byte))).collect()),
        "bytesize" => Value::Int(bytes.len() as i64),
        "empty?" => Value::Bool(bytes.is_empty()),
        "start_with?" => Value::Bool(given.values.iter().any(|value| bytes.starts_with(&value.to_bytes()))),
        "end_with?" => Value::Bool(given.values.iter().any(|value| bytes.ends_with(&value.to_bytes()))),
        "include?" => {
            let wanted = other();
            Value::Bool(wanted.is_empty() || bytes.windows(wanted.len()).any(|window| window == wanted))
        }
        "ord" => match bytes.first() {
            Some(byte) => Value::Int(i64::from(*byte)),
            None => return Err(Flow::argument("empty string")),
        },
        "succ" | "next" => Value::text(successor(bytes)),
        "hex" => {
            Value::Int(i64::from_str_radix(String::from_utf8_lossy(bytes).trim_start_matches("0x"), 16).unwrap_or(0))
        }
        "unpack" | "unpack1" | "pack" | "encode" | "force_encoding" => {
            return Err(Flow::raise("NoMethodError", format!("{} is not supported", given.name)));
        }
        _ => return Ok(None),
    }))
}

fn of_text(text: &str, given: &Given<'_>) -> Result<Option<Value>> {
    let other = || given.value(0).to_text();
    let list = |items: Vec<&str>| Value::array(items.into_iter().map(Value::text).collect());
    let width = |fill: fn(&str, usize, &str) -> String| -> Result {
        let width = usize::try_from(given.int(0)?.clamp(0, 1 << 20)).unwrap_or(0);
        let pad = if given.values.len() > 1 { given.value(1).to_text() } else { " ".to_owned() };
        Ok(Value::text(fill(text, width, &pad)))
    };
    Ok(Some(match given.name {
        "length" | "size" => Value::Int(text.chars().count() as i64),
        "upcase" => Value::text(text.to_uppercase()),
        "downcase" => Value::text(text.to_lowercase()),
        "capitalize" => Value::text(crate::failure::capitalized(&text.to_lowercase())),
        "reverse" => Value::text(text.chars().rev().collect::<String>()),
        "strip" => Value::text(text.trim()),
        "lstrip" => Value::text(text.trim_start()),
        "rstrip" => Value::text(text.trim_end()),
        "chomp" => Value::text(text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))),
        "chop" => Value::text(&text[..text.char_indices().next_back().map_or(0, |(at, _)| at)]),
        "to_i" => Value::Int(leading_int(text, given.values.first())),
        "to_f" => Value::Float(leading_float(text)),
        "chars" => Value::array(text.chars().map(|c| Value::text(c.to_string())).collect()),
        "lines" => list(text.split_inclusive('\n').collect()),
        "split" => match given.value(0) {
            Value::Nil => list(text.split_whitespace().collect()),
            Value::Regex(pattern) => list(regex(&pattern)?.split(text).collect()),
            separator if separator.to_text() == " " => list(text.split_whitespace().collect()),
            separator => {
                let separator = separator.to_text();
                let mut parts: Vec<&str> = text.split(separator.as_str()).collect();
                while parts.last() == Some(&"") {
                    parts.pop();
                }
                list(parts)
            }
        },
        "index" => text.find(&other()).map_or(Value::Nil, |at| Value::Int(text[..at].chars().count() as i64)),
        "count" => Value::Int(text.chars().filter(|c| other().contains(*c)).count() as i64),
        "tr" => Value::text(translated(text, &other(), &given.value(1).to_text())),
        "delete" => Value::text(text.chars().filter(|c| !other().contains(*c)).collect::<String>()),
        "ljust" => width(|text, width, pad| text.to_owned() + &filling(text, width, pad))?,
        "rjust" => width(|text, width, pad| filling(text, width, pad) + text)?,
        "casecmp" => Value::Int(text.to_lowercase().cmp(&other().to_lowercase()) as i64),
        "casecmp?" => Value::Bool(text.to_lowercase() == other().to_lowercase()),
        "=~" | "match" | "match?" => {
            let found = match given.value(0) {
                Value::Regex(pattern) => regex(&pattern)?.find(text).map(|found| found.start()),
                other => regex(&other.to_text())?.find(text).map(|found| found.start()),
            };
            match given.name {
                "match?" => Value::Bool(found.is_some()),
                _ => found.map_or(Value::Nil, |at| Value::Int(text[..at].chars().count() as i64)),
            }
        }
        "[]" | "slice" => slice(text, given)?,
        _ => return Ok(None),
    }))
}

fn filling(text: &str, width: usize, pad: &str) -> String {
    let missing = width.saturating_sub(text.chars().count());
    pad.chars().cycle().take(if pad.is_empty() { 0 } else { missing }).collect()
}

fn translated(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    let one = |c: char| match from.chars().position(|f| f == c) {
        Some(at) => to.get(at).or(to.last()).copied(),
        None => Some(c),
    };
    text.chars().filter_map(one).collect()
}

fn leading_int(text: &str, radix: Option<&Value>) -> i64 {
    let radix = match radix {
        Some(Value::Int(radix @ 2..=36)) => *radix as u32,
        _ => 10,
    };
    let text: String = text.trim_start().chars().filter(|c| *c != '_').collect();
    let digits = text.char_indices().take_while(|(at, c)| c.is_digit(radix) || (*at == 0 && matches!(c, '-' | '+')));
    let end = digits.last().map_or(0, |(at, c)| at + c.len_utf8());
    i64::from_str_radix(&text[..end], radix).unwrap_or(0)
}

fn leading_float(text: &str) -> f64 {
    let text = text.trim_start();
    (0..=text.len()).rev().filter_map(|end| text.get(..end)).find_map(|text| text.parse().ok()).unwrap_or(0.0)
}

/// `text[i]`, `text[from, length]`, `text[range]`, `text[/pattern/]`, `text["part"]`.
fn slice(text: &str, given: &Given<'_>) -> Result {
    let chars: Vec<char> = text.chars().collect();
    let bounds = match given.value(0) {
        Value::Text(part) => {
            let part = String::from_utf8_lossy(&part).into_owned();
            return Ok(if text.contains(&part) { Value::text(part) } else { Value::Nil });
        }
        Value::Regex(pattern) => {
            let pattern = regex(&pattern)?;
            return Ok(pattern.find(text).map_or(Value::Nil, |found| Value::text(found.as_str())));
        }
        Value::Int(at) if given.values.len() == 1 => super::list::position(at, chars.len()).map(|at| at..at + 1),
        _ => super::list::bounds(given, chars.len())?,
    };
    let found = bounds.and_then(|bounds| chars.get(bounds));
    Ok(found.map_or(Value::Nil, |chars| Value::text(chars.iter().collect::<String>())))
}

/// Ruby's `format`: flags, width, precision, and the conversions d i s f x X o b e g c p %.
///
/// # Errors
/// A conversion that is not among them, or too few values.
pub fn format(arguments: &[Value]) -> Result {
    let Some(template) = arguments.first() else { return Err(Flow::argument("too few arguments")) };
    let template = template.to_text();
    let mut values = arguments[1..].iter();
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flags = String::new();
        while let Some(flag) = chars.next_if(|c| "-+ 0#".contains(*c)) {
            flags.push(flag);
        }
        let mut number = || -> Option<usize> {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits.parse().ok().map(|n: usize| n.min(4096))
        };
        let width = number().unwrap_or(0);
        let precision = match chars.next_if_eq(&'.') {
            Some(_) => {
                let mut digits = String::new();
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                Some(digits.parse().unwrap_or(0_usize).min(4096))
            }
            None => None,
        };
        let conversion = chars.next().ok_or_else(|| Flow::argument("incomplete format specifier; use %% instead"))?;
        if conversion == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| Flow::argument("too few arguments"))?;
        let text = converted(conversion, value, precision, flags.contains('+'))?;
        pad(&mut out, &text, width, &flags, conversion);
    }
    Ok(Value::text(out))
}

fn converted(conversion: char, value: &Value, precision: Option<usize>, plus: bool) -> Result<String> {
    let int = || match super::convert("Integer", std::slice::from_ref(value))? {
        Value::Int(number) => Ok(number),
        _ => Err(Flow::argument("no number")),
    };
    let float = || match super::convert("Float", std::slice::from_ref(value))? {
        Value::Float(number) => Ok(number),
        _ => Err(Flow::argument("no number")),
    };
    let signed = |text: String| if plus && !text.starts_with('-') { format!("+{text}") } else { text };
    Ok(match conversion {
        'd' | 'i' | 'u' => signed(int()?.to_string()),
        'f' => signed(format!("{:.*}", precision.unwrap_or(6), float()?)),
        'e' => signed(format!("{:.*e}", precision.unwrap_or(6), float()?)),
        'g' => signed(float()?.to_string()),
        'x' => format!("{:x}", int()?),
        'X' => format!("{:X}", int()?),
        'o' => format!("{:o}", int()?),
        'b' => format!("{:b}", int()?),
        'c' => value.to_text().chars().take(1).collect(),
        'p' => value.inspect(),
        's' => {
            let text = value.to_text();
            precision.map_or(text.clone(), |precision| text.chars().take(precision).collect())
        }
        other => return Err(Flow::argument(format!("malformed format string - %{other}"))),
    })
}

fn pad(out: &mut String, text: &str, width: usize, flags: &str, conversion: char) {
    let missing = width.saturating_sub(text.chars().count());
    if flags.contains('-') {
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if flags.contains('0') && conversion != 's' {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text),
        };
        let _ = write!(out, "{sign}{}{digits}", "0".repeat(missing));
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(text);
    }
}
