//! Methods of numbers.

use super::Given;
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// The number as a float.
pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    }
}

impl Shell {
    pub(super) fn number_method(&mut self, receiver: &Value, given: &Given<'_>) -> Result<Option<Value>> {
        if matches!(given.name, "+" | "-" | "*" | "/" | "%" | "**" | "modulo" | "div" | "pow") {
            return arithmetic(receiver, given.name, &given.value(0)).map(Some);
        }
        Ok(match receiver {
            Value::Int(number) => self.int_method(*number, given)?,
            other => float_method(float(other), given)?,
        })
    }

    fn int_method(&mut self, number: i64, given: &Given<'_>) -> Result<Option<Value>> {
        Ok(Some(match given.name {
            "to_s" | "inspect" => match given.values.first() {
                Some(Value::Int(radix @ 2..=36)) => Value::text(in_radix(number, *radix as u64)),
                _ => Value::text(number.to_string()),
            },
            "to_i" | "to_int" | "floor" | "ceil" | "round" | "truncate" => Value::Int(number),
            "to_f" => Value::Float(number as f64),
            "-@" => Value::Int(number.checked_neg().ok_or_else(too_large)?),
            "abs" => Value::Int(number.checked_abs().ok_or_else(too_large)?),
            "succ" | "next" => Value::Int(number.checked_add(1).ok_or_else(too_large)?),
            "pred" => Value::Int(number.checked_sub(1).ok_or_else(too_large)?),
            "chr" => Value::text([number as u8]),
            "zero?" => Value::Bool(number == 0),
            "even?" => Value::Bool(number % 2 == 0),
            "odd?" => Value::Bool(number % 2 != 0),
            "positive?" => Value::Bool(number > 0),
            "negative?" => Value::Bool(number < 0),
            "integer?" => Value::Bool(true),
            "&" => Value::Int(number & given.int(0)?),
            "|" => Value::Int(number | given.int(0)?),
            "^" => Value::Int(number ^ given.int(0)?),
            "<<" | ">>" => {
                let by = given.int(0)?;
                let shifted = u32::try_from(by).ok().and_then(|by| match given.name {
                    "<<" => number.checked_mul(1_i64.checked_shl(by)?),
                    _ => Some(number >> by.min(63)),
                });
                Value::Int(shifted.ok_or_else(too_large)?)
            }
            "times" => {
                let block = given.block()?;
                for i in 0..number {
                    self.yield_to(&block, vec![Value::Int(i)])?;
                }
                Value::Int(number)
            }
            "upto" | "downto" | "step" => self.steps(number, given)?,
            _ => return Ok(None),
        }))
    }

    fn steps(&mut self, number: i64, given: &Given<'_>) -> Result {
        let to = given.int(0)?;
        let by = match given.name {
            "step" if given.values.len() > 1 => given.int(1)?,
            "downto" => -1,
            _ => 1,
        };
        if by == 0 {
            return Err(Flow::argument("step can't be 0"));
        }
        let block = given.block()?;
        let mut at = number;
        while if by > 0 { at <= to } else { at >= to } {
            self.yield_to(&block, vec![Value::Int(at)])?;
            let Some(next) = at.checked_add(by) else { break };
            at = next;
        }
        Ok(Value::Int(number))
    }
}

fn float_method(number: f64, given: &Given<'_>) -> Result<Option<Value>> {
    Ok(Some(match given.name {
        "to_i" | "to_int" | "truncate" => Value::Int(number as i64),
        "to_f" => Value::Float(number),
        "floor" => Value::Int(number.floor() as i64),
        "ceil" => Value::Int(number.ceil() as i64),
        "round" => match given.values.first() {
            Some(Value::Int(digits @ 1..=15)) => {
                let unit = 10_f64.powi(*digits as i32);
                Value::Float((number * unit).round() / unit)
            }
            _ => Value::Int(number.round() as i64),
        },
        "abs" => Value::Float(number.abs()),
        "-@" => Value::Float(-number),
        "zero?" => Value::Bool(number == 0.0),
        "nan?" => Value::Bool(number.is_nan()),
        _ => return Ok(None),
    }))
}

fn too_large() -> Flow {
    Flow::raise("RangeError", "a number beyond 64 bits")
}

fn arithmetic(a: &Value, operator: &str, b: &Value) -> Result {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        let result = match operator {
            "+" => a.checked_add(*b),
            "-" => a.checked_sub(*b),
            "*" => a.checked_mul(*b),
            "/" | "%" | "div" | "modulo" if *b == 0 => return Err(Flow::raise("ZeroDivisionError", "divided by 0")),
            "/" | "div" => a.checked_div(*b).map(|q| if a % b != 0 && (a < &0) != (b < &0) { q - 1 } else { q }),
            "%" | "modulo" => a.checked_rem(*b).map(|r| if r != 0 && (r < 0) != (b < &0) { r + b } else { r }),
            _ if *b >= 0 => u32::try_from(*b).ok().and_then(|b| a.checked_pow(b)),
            _ => return Ok(Value::Float((*a as f64).powi(*b as i32))),
        };
        return result.map(Value::Int).ok_or_else(too_large);
    }
    if !super::is_number(b) {
        return Err(Flow::raise("TypeError", format!("{} can't be coerced into {}", b.class(), a.class())));
    }
    let (a, b) = (float(a), float(b));
    Ok(Value::Float(match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" | "div" => a / b,
        "%" | "modulo" => a - b * (a / b).floor(),
        _ => a.powf(b),
    }))
}

fn in_radix(number: i64, radix: u64) -> String {
    let mut digits = Vec::new();
    let mut rest = number.unsigned_abs();
    loop {
        digits.push(char::from_digit((rest % radix) as u32, radix as u32).unwrap_or('0'));
        rest /= radix;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        digits.push('-');
    }
    digits.iter().rev().collect()
}
