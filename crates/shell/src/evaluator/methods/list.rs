//! Methods of lists and ranges.

use std::ops::Range;

use super::{Given, compare, sorted};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::{Pairs, Value};

/// Where the item at `at` is, counted from the end where that is negative.
pub(super) fn position(at: i64, len: usize) -> Option<usize> {
    let at = if at < 0 { at + len as i64 } else { at };
    usize::try_from(at).ok().filter(|at| *at < len)
}

/// What `[from, length]` or `[range]` means for something so long.
pub(super) fn bounds(given: &Given<'_>, len: usize) -> Result<Option<Range<usize>>> {
    let from_end = |at: i64| if at < 0 { at + len as i64 } else { at };
    let (from, until) = match given.value(0) {
        Value::Range(range) => match (&range.0, &range.1) {
            (Value::Int(from), Value::Int(to)) => (from_end(*from), from_end(*to) + i64::from(!range.2)),
            _ => return Err(Flow::raise("TypeError", "a range of numbers is needed")),
        },
        _ => {
            let from = from_end(given.int(0)?);
            (from, from.saturating_add(given.int(1)?.max(0)))
        }
    };
    let Ok(from) = usize::try_from(from) else { return Ok(None) };
    let until = usize::try_from(until).unwrap_or(0).min(len);
    Ok((from <= len).then(|| from..until.max(from)))
}

impl Shell {
    pub(super) fn list_method(&mut self, receiver: &Value, given: &Given<'_>) -> Result<Option<Value>> {
        if let Value::Array(items) = receiver
            && let Some(value) = changing(items, receiver, given)?
        {
            return Ok(Some(value));
        }
        if let Value::Range(range) = receiver {
            match given.name {
                "begin" => return Ok(Some(range.0.clone())),
                "end" => return Ok(Some(range.1.clone())),
                "include?" | "cover?" | "member?" => {
                    return super::matches(receiver, &given.value(0)).map(|is| Some(Value::Bool(is)));
                }
                "step" => return self.range_steps(receiver, given).map(Some),
                _ => {}
            }
        }
        let items = self.items(receiver)?;
        if let Some(value) = plain(&items, given)? {
            return Ok(Some(value));
        }
        if matches!(given.name, "each" | "each_with_index" | "reverse_each" | "each_slice" | "map" | "collect") {
            return self.walk(receiver, items, given).map(Some);
        }
        self.sift(items, given)
    }

    fn range_steps(&mut self, receiver: &Value, given: &Given<'_>) -> Result {
        let by = usize::try_from(given.int(0)?).ok().filter(|by| *by > 0);
        let by = by.ok_or_else(|| Flow::argument("step can't be 0 or negative"))?;
        let items: Vec<Value> = self.items(receiver)?.into_iter().step_by(by).collect();
        match given.block {
            Some(block) => {
                for item in items {
                    self.yield_to(block, vec![item])?;
                }
                Ok(receiver.clone())
            }
            None => Ok(Value::array(items)),
        }
    }

    fn walk(&mut self, receiver: &Value, items: Vec<Value>, given: &Given<'_>) -> Result {
        let block = given.block()?;
        match given.name {
            "map" | "collect" => {
                let mapped: Result<Vec<Value>> =
                    items.into_iter().map(|item| self.yield_to(&block, vec![item])).collect();
                return mapped.map(Value::array);
            }
            "each_slice" => {
                let size = usize::try_from(given.int(0)?).ok().filter(|size| *size > 0);
                let size = size.ok_or_else(|| Flow::argument("invalid slice size"))?;
                for slice in items.chunks(size) {
                    self.yield_to(&block, vec![Value::array(slice.to_vec())])?;
                }
                return Ok(Value::Nil);
            }
            "reverse_each" => {
                for item in items.into_iter().rev() {
                    self.yield_to(&block, vec![item])?;
                }
            }
            "each_with_index" => {
                for (i, item) in items.into_iter().enumerate() {
                    self.yield_to(&block, vec![item, Value::Int(i as i64)])?;
                }
            }
            _ => {
                for item in items {
                    self.yield_to(&block, vec![item])?;
                }
            }
        }
        Ok(receiver.clone())
    }

    /// Methods that ask a block about each item.
    fn sift(&mut self, items: Vec<Value>, given: &Given<'_>) -> Result<Option<Value>> {
        let mut ask = |item: &Value| match given.block {
            Some(block) => self.yield_to(block, vec![item.clone()]),
            None => Ok(item.clone()),
        };
        Ok(Some(match given.name {
            "select" | "filter" | "reject" => {
                let mut kept = Vec::new();
                for item in items {
                    if ask(&item)?.is_true() == (given.name != "reject") {
                        kept.push(item);
                    }
                }
                Value::array(kept)
            }
            "find" | "detect" => {
                for item in items {
                    if ask(&item)?.is_true() {
                        return Ok(Some(item));
                    }
                }
                Value::Nil
            }
            "any?" | "all?" | "none?" => {
                let wanted = given.name != "all?";
                for item in items {
                    if ask(&item)?.is_true() == wanted {
                        return Ok(Some(Value::Bool(given.name == "any?")));
                    }
                }
                Value::Bool(given.name != "any?")
            }
            "sort_by" | "min_by" | "max_by" => {
                let mut keyed = Vec::new();
                for item in items {
                    keyed.push(Value::array(vec![ask(&item)?, Value::Int(keyed.len() as i64), item]));
                }
                // The number in the middle keeps the comparison from reaching the items.
                let mut sorted = sorted(keyed)?.into_iter().map(|pair| match pair {
                    Value::Array(pair) => pair.borrow()[2].clone(),
                    other => other,
                });
                match given.name {
                    "min_by" => sorted.next().unwrap_or(Value::Nil),
                    "max_by" => sorted.next_back().unwrap_or(Value::Nil),
                    _ => Value::array(sorted.collect()),
                }
            }
            "flat_map" => {
                let mut out = Vec::new();
                for item in items {
                    match ask(&item)? {
                        Value::Array(inner) => out.extend(inner.borrow().iter().cloned()),
                        other => out.push(other),
                    }
                }
                Value::array(out)
            }
            "group_by" => {
                let mut groups = Pairs::default();
                for item in items {
                    let key = ask(&item)?;
                    match groups.get(&key) {
                        Some(Value::Array(group)) => group.borrow_mut().push(item),
                        _ => groups.set(key, Value::array(vec![item])),
                    }
                }
                Value::hash(groups)
            }
            "inject" | "reduce" => self.fold(items, given)?,
            "each_with_object" => {
                let (block, object) = (given.block()?, given.value(0));
                for item in items {
                    self.yield_to(&block, vec![item, object.clone()])?;
                }
                object
            }
            _ => return Ok(None),
        }))
    }

    fn fold(&mut self, items: Vec<Value>, given: &Given<'_>) -> Result {
        let mut items = items.into_iter();
        let operator = given.values.last().and_then(|value| match value {
            Value::Symbol(name) => Some(name.clone()),
            _ => None,
        });
        let has_start = given.values.len() > usize::from(operator.is_some());
        let mut so_far = if has_start { given.value(0) } else { items.next().unwrap_or(Value::Nil) };
        for item in items {
            so_far = match &operator {
                Some(name) => self.method(&so_far, name, vec![item], None)?,
                None => {
                    let block = given.block()?;
                    self.yield_to(&block, vec![so_far, item])?
                }
            };
        }
        Ok(so_far)
    }
}

/// Methods that change the list.
fn changing(
    items: &std::rc::Rc<std::cell::RefCell<Vec<Value>>>,
    receiver: &Value,
    given: &Given<'_>,
) -> Result<Option<Value>> {
    Ok(Some(match given.name {
        "<<" | "push" | "append" => {
            items.borrow_mut().extend(given.values.iter().cloned());
            receiver.clone()
        }
        "pop" => items.borrow_mut().pop().unwrap_or(Value::Nil),
        "shift" => {
            let mut items = items.borrow_mut();
            if items.is_empty() { Value::Nil } else { items.remove(0) }
        }
        "unshift" => {
            items.borrow_mut().splice(0..0, given.values.iter().cloned());
            receiver.clone()
        }
        "clear" => {
            items.borrow_mut().clear();
            receiver.clone()
        }
        "[]=" => {
            let mut items = items.borrow_mut();
            let at = given.int(0)?;
            let at = usize::try_from(if at < 0 { at + items.len() as i64 } else { at })
                .ok()
                .filter(|at| *at < super::MAX_RANGE as usize)
                .ok_or_else(|| Flow::raise("IndexError", format!("index {at} out of range")))?;
            if at >= items.len() {
                items.resize(at + 1, Value::Nil);
            }
            items[at] = given.value(1);
            given.value(1)
        }
        _ => return Ok(None),
    }))
}

/// Methods that need nothing but the items.
fn plain(items: &[Value], given: &Given<'_>) -> Result<Option<Value>> {
    let count = || usize::try_from(given.int(0)?).map_err(|_| Flow::argument("negative array size"));
    Ok(Some(match given.name {
        "size" | "length" => Value::Int(items.len() as i64),
        "count" if given.block.is_none() => match given.values.first() {
            Some(wanted) => Value::Int(items.iter().filter(|item| item.same(wanted)).count() as i64),
            None => Value::Int(items.len() as i64),
        },
        "empty?" => Value::Bool(items.is_empty()),
        "to_a" | "entries" => Value::array(items.to_vec()),
        "first" if given.values.is_empty() => items.first().cloned().unwrap_or(Value::Nil),
        "last" if given.values.is_empty() => items.last().cloned().unwrap_or(Value::Nil),
        "first" | "take" => Value::array(items[..count()?.min(items.len())].to_vec()),
        "last" => Value::array(items[items.len().saturating_sub(count()?)..].to_vec()),
        "drop" => Value::array(items[count()?.min(items.len())..].to_vec()),
        "include?" => Value::Bool(items.iter().any(|item| item.same(&given.value(0)))),
        "index" if given.block.is_none() => {
            items.iter().position(|item| item.same(&given.value(0))).map_or(Value::Nil, |at| Value::Int(at as i64))
        }
        "join" => {
            let separator = given.value(0).to_bytes();
            let parts: Vec<Vec<u8>> = items.iter().map(Value::to_bytes).collect();
            Value::text(parts.join(separator.as_slice()))
        }
        "reverse" => Value::array(items.iter().rev().cloned().collect()),
        "sort" if given.block.is_none() => Value::array(sorted(items.to_vec())?),
        "min" => items
            .iter()
            .min_by(|a, b| compare(a, b).unwrap_or(std::cmp::Ordering::Equal))
            .cloned()
            .unwrap_or(Value::Nil),
        "max" => items
            .iter()
            .max_by(|a, b| compare(a, b).unwrap_or(std::cmp::Ordering::Equal))
            .cloned()
            .unwrap_or(Value::Nil),
        "uniq" => {
            let mut out: Vec<Value> = Vec::new();
            for item in items {
                if !out.iter().any(|known| known.same(item)) {
                    out.push(item.clone());
                }
            }
            Value::array(out)
        }
        "compact" => Value::array(items.iter().filter(|item| !item.is_nil()).cloned().collect()),
        "flatten" => {
            let mut out = Vec::new();
            flatten(items, &mut out, 0)?;
            Value::array(out)
        }
        "sum" if given.block.is_none() => {
            let is_float = items.iter().any(|item| matches!(item, Value::Float(_)));
            match is_float {
                true => Value::Float(items.iter().map(super::number::float).sum()),
                false => Value::Int(items.iter().map(|item| if let Value::Int(n) = item { *n } else { 0 }).sum()),
            }
        }
        "+" => match given.value(0) {
            Value::Array(more) => Value::array([items, &more.borrow()].concat()),
            other => {
                return Err(Flow::raise(
                    "TypeError",
                    format!("no implicit conversion of {} into Array", other.class()),
                ));
            }
        },
        "-" => match given.value(0) {
            Value::Array(less) => {
                let less = less.borrow();
                Value::array(items.iter().filter(|item| !less.iter().any(|l| l.same(item))).cloned().collect())
            }
            other => {
                return Err(Flow::raise(
                    "TypeError",
                    format!("no implicit conversion of {} into Array", other.class()),
                ));
            }
        },
        "[]" | "slice" | "at" => match given.value(0) {
            Value::Int(at) if given.values.len() == 1 => {
                position(at, items.len()).map_or(Value::Nil, |at| items[at].clone())
            }
            _ => bounds(given, items.len())?
                .and_then(|bounds| items.get(bounds))
                .map_or(Value::Nil, |items| Value::array(items.to_vec())),
        },
        "to_h" => {
            let mut pairs = Pairs::default();
            for item in items {
                let Value::Array(pair) = item else { return Err(Flow::raise("TypeError", "to_h needs pairs")) };
                let pair = pair.borrow();
                let (Some(key), Some(value)) = (pair.first(), pair.get(1)) else {
                    return Err(Flow::argument("to_h needs pairs"));
                };
                pairs.set(key.clone(), value.clone());
            }
            Value::hash(pairs)
        }
        _ => return Ok(None),
    }))
}

fn flatten(items: &[Value], out: &mut Vec<Value>, depth: u32) -> Result<()> {
    if depth > 100 {
        return Err(Flow::argument("tried to flatten recursive array"));
    }
    for item in items {
        match item {
            Value::Array(inner) => flatten(&inner.borrow(), out, depth + 1)?,
            other => out.push(other.clone()),
        }
    }
    Ok(())
}
