//! Methods of hashes.

use std::cell::RefCell;
use std::rc::Rc;

use super::Given;
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::{Pairs, Value};

impl Shell {
    pub(super) fn hash_method(&mut self, pairs: &Rc<RefCell<Pairs>>, given: &Given<'_>) -> Result<Option<Value>> {
        let receiver = Value::Hash(pairs.clone());
        let all = || pairs.borrow().0.clone();
        Ok(Some(match given.name {
            "[]" => pairs.borrow().get(&given.value(0)).cloned().unwrap_or(Value::Nil),
            "fetch" => match (pairs.borrow().get(&given.value(0)), given.values.get(1)) {
                (Some(value), _) => value.clone(),
                (None, Some(default)) => default.clone(),
                (None, None) => {
                    return Err(Flow::raise("KeyError", format!("key not found: {}", given.value(0).inspect())));
                }
            },
            "[]=" | "store" => {
                pairs.borrow_mut().set(given.value(0), given.value(1));
                given.value(1)
            }
            "delete" => pairs.borrow_mut().remove(&given.value(0)).unwrap_or(Value::Nil),
            "key?" | "has_key?" | "include?" | "member?" => Value::Bool(pairs.borrow().get(&given.value(0)).is_some()),
            "keys" => Value::array(all().into_iter().map(|pair| pair.0).collect()),
            "values" => Value::array(all().into_iter().map(|pair| pair.1).collect()),
            "size" | "length" | "count" if given.block.is_none() => Value::Int(pairs.borrow().0.len() as i64),
            "empty?" => Value::Bool(pairs.borrow().0.is_empty()),
            "to_h" => receiver,
            "merge" => {
                let mut merged = pairs.borrow().clone();
                if let Value::Hash(other) = given.value(0) {
                    other.borrow().0.iter().for_each(|(key, value)| merged.set(key.clone(), value.clone()));
                }
                Value::hash(merged)
            }
            "each" | "each_pair" => {
                let block = given.block()?;
                for (key, value) in all() {
                    self.yield_to(&block, vec![Value::array(vec![key, value])])?;
                }
                receiver
            }
            "each_key" | "each_value" => {
                let block = given.block()?;
                for (key, value) in all() {
                    self.yield_to(&block, vec![if given.name == "each_key" { key } else { value }])?;
                }
                receiver
            }
            "select" | "filter" | "reject" => {
                let block = given.block()?;
                let mut kept = Pairs::default();
                for (key, value) in all() {
                    let holds = self.yield_to(&block, vec![Value::array(vec![key.clone(), value.clone()])])?;
                    if holds.is_true() == (given.name != "reject") {
                        kept.0.push((key, value));
                    }
                }
                Value::hash(kept)
            }
            _ => {
                let items = all().into_iter().map(|(key, value)| Value::array(vec![key, value])).collect();
                return self.list_method(&Value::array(items), given);
            }
        }))
    }
}
