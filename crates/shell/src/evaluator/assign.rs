//! Assignments.

use super::Shell;
use crate::failure::{Flow, Result};
use crate::language::syntax::{Kind, Target};
use crate::value::Value;

impl Shell {
    pub(super) fn assignment(&mut self, kind: &Kind) -> Result {
        match kind {
            Kind::Assign(target, value) => {
                let value = self.eval(value)?;
                self.assign(target, value.clone())?;
                Ok(value)
            }
            Kind::AssignMany(targets, value) => {
                let value = self.eval(value)?;
                self.spread(targets, value.clone())?;
                Ok(value)
            }
            Kind::Update(target, operator, value) => {
                let old = self.read(target)?;
                let new = match operator.as_str() {
                    "||" if old.is_true() => return Ok(old),
                    "&&" if !old.is_true() => return Ok(old),
                    "||" | "&&" => self.eval(value)?,
                    operator => {
                        let operand = self.eval(value)?;
                        self.method(&old, operator, vec![operand], None)?
                    }
                };
                self.assign(target, new.clone())?;
                Ok(new)
            }
            _ => Ok(Value::Nil),
        }
    }

    /// Assigns the items of a list, one to each target; what is no list goes to the first.
    pub(super) fn spread(&mut self, targets: &[Target], value: Value) -> Result<()> {
        if let [target] = targets {
            return self.assign(target, value);
        }
        let items = match &value {
            Value::Array(items) => items.borrow().clone(),
            _ => vec![value],
        };
        for (i, target) in targets.iter().enumerate() {
            self.assign(target, items.get(i).cloned().unwrap_or(Value::Nil))?;
        }
        Ok(())
    }

    fn assign(&mut self, target: &Target, value: Value) -> Result<()> {
        match target {
            Target::Variable(name) => self.frame.set(name, value),
            Target::Global(name) => drop(self.globals.insert(name.clone(), value)),
            Target::Constant(name) => drop(self.constants.insert(name.clone(), value)),
            Target::Index(receiver, arguments) => {
                let receiver = self.eval(receiver)?;
                let mut arguments = self.arguments(arguments)?.0;
                arguments.push(value);
                self.method(&receiver, "[]=", arguments, None)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, target: &Target) -> Result {
        match target {
            Target::Variable(name) => Ok(self.frame.get(name).unwrap_or(Value::Nil)),
            Target::Global(name) => Ok(self.globals.get(name).cloned().unwrap_or(Value::Nil)),
            Target::Constant(name) => {
                let unknown = || Flow::raise("NameError", format!("uninitialized constant {name}"));
                self.constants.get(name).cloned().ok_or_else(unknown)
            }
            Target::Index(receiver, arguments) => {
                let receiver = self.eval(receiver)?;
                let arguments = self.arguments(arguments)?.0;
                self.method(&receiver, "[]", arguments, None)
            }
        }
    }
}
