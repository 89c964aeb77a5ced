//! Calls: of commands, of the few functions of Ruby's that scripts use, of a script's own methods, and of methods of values.

use std::rc::Rc;

use super::Shell;
use super::methods;
use super::scope::Frame;
use crate::commands;
use crate::failure::{Exception, Flow, Result};
use crate::language::syntax::{Argument, Block, Call};
use crate::value::{Closure, Value};

impl Shell {
    /// Evaluates arguments; the block among them apart.
    pub(super) fn arguments(&mut self, arguments: &[Argument]) -> Result<(Vec<Value>, Option<Rc<Closure>>)> {
        let mut values = Vec::with_capacity(arguments.len());
        let mut block = None;
        for argument in arguments {
            match argument {
                Argument::One(node) => values.push(self.eval(node)?),
                Argument::Splat(node) => {
                    let list = self.eval(node)?;
                    values.extend(self.items(&list)?);
                }
                Argument::Block(node) => match self.eval(node)? {
                    Value::Lambda(closure) => block = Some(closure),
                    Value::Nil => {}
                    Value::Symbol(name) => block = Some(Rc::new(methods::symbol_block(&name))),
                    other => return Err(Flow::raise("TypeError", format!("{} is no block", other.inspect()))),
                },
            }
        }
        Ok((values, block))
    }

    pub(super) fn call(&mut self, call: &Call) -> Result {
        let receiver = match &call.receiver {
            Some(node) => match self.eval(node)? {
                Value::Nil if call.safe => return Ok(Value::Nil),
                value => Some(value),
            },
            None => None,
        };
        let (arguments, passed) = self.arguments(&call.arguments)?;
        let block = call.block.as_ref().map(|block| Rc::new(self.closure(block))).or(passed);
        let result = match receiver {
            Some(receiver) => self.method(&receiver, &call.name, arguments, block.as_ref()),
            None => self.function(&call.name, arguments, block.as_ref()),
        };
        match result {
            // `break` in a block ends the call that the block was given to.
            Err(Flow::Break(value)) if call.block.is_some() => Ok(value),
            other => other,
        }
    }

    /// Whether there is a function, method or command of this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.methods.contains_key(name) || commands::find(name).is_some() || FUNCTIONS.contains(&name)
    }

    fn function(&mut self, name: &str, arguments: Vec<Value>, block: Option<&Rc<Closure>>) -> Result {
        if let Some(method) = self.methods.get(name).cloned() {
            return self.own_method(&method, arguments, block);
        }
        if let Some(command) = commands::find(name) {
            let result = commands::run(self, command, arguments)?;
            self.session.output.line("")?;
            return Ok(result);
        }
        match name {
            "puts" => self.puts(&arguments).map(|()| Value::Nil),
            "print" => {
                for value in &arguments {
                    self.session.output.bytes(&value.to_bytes())?;
                }
                Ok(Value::Nil)
            }
            "p" => {
                for value in &arguments {
                    self.session.output.line(&value.inspect())?;
                }
                Ok(arguments.into_iter().next().unwrap_or(Value::Nil))
            }
            "format" | "sprintf" => methods::format(&arguments),
            "printf" => {
                let text = methods::format(&arguments)?;
                self.session.output.bytes(&text.to_bytes())?;
                Ok(Value::Nil)
            }
            "help" => crate::help::help(self, arguments.first()).map(|()| Value::Nil),
            "tools" => crate::help::group(self, "tools").map(|()| Value::Nil),
            "exit" | "quit" => Err(Flow::Exit(match arguments.first() {
                None | Some(Value::Bool(true)) => 0,
                Some(Value::Int(code)) => (*code & 0xFF) as u8,
                Some(_) => 1,
            })),
            "raise" => Err(raised(&arguments)),
            "sleep" => self.sleep(&arguments),
            "loop" => {
                let block = block.ok_or_else(|| Flow::argument("loop needs a block"))?;
                loop {
                    self.yield_to(block, Vec::new())?;
                }
            }
            "rand" => Err(Flow::runtime("rand is not supported: the shell has no randomness")),
            "block_given?" => Ok(Value::Bool(self.frame.block().is_some())),
            "Integer" | "Float" | "String" | "Array" => methods::convert(name, &arguments),
            // Classes that are known need no import.
            "java_import" | "import" if arguments.iter().all(|class| matches!(class, Value::Class(_))) => {
                Ok(Value::Nil)
            }
            "require" | "java_import" | "load" | "include" | "import" => Err(Flow::raise(
                "LoadError",
                format!("{name} is not supported: this shell has no Java and no libraries of Ruby's"),
            )),
            "org" | "java" | "com" => Ok(Value::Java(name.into())),
            _ => Err(Flow::raise(
                "NameError",
                format!("undefined local variable or method `{name}': no command, method or variable has this name"),
            )),
        }
    }

    fn puts(&mut self, arguments: &[Value]) -> Result<()> {
        if arguments.is_empty() {
            return self.session.output.line("");
        }
        for value in arguments {
            match value {
                Value::Array(items) => {
                    let items = items.borrow().clone();
                    if !items.is_empty() {
                        self.puts(&items)?;
                    }
                }
                value => {
                    let mut bytes = value.to_bytes();
                    if bytes.last() != Some(&b'\n') {
                        bytes.push(b'\n');
                    }
                    self.session.output.bytes(&bytes)?;
                }
            }
        }
        Ok(())
    }

    fn sleep(&mut self, arguments: &[Value]) -> Result {
        let seconds = match arguments.first() {
            Some(Value::Int(seconds)) if (0..=86_400).contains(seconds) => *seconds as f64,
            Some(Value::Float(seconds)) if (0.0..=86_400.0).contains(seconds) => *seconds,
            _ => return Err(Flow::argument("sleep needs a number of seconds, at most a day")),
        };
        self.session.wait(async {
            tokio::time::sleep(std::time::Duration::from_secs_f64(seconds)).await;
            Ok(())
        })?;
        Ok(Value::Int(seconds.round() as i64))
    }

    fn own_method(&mut self, method: &Rc<Block>, arguments: Vec<Value>, block: Option<&Rc<Closure>>) -> Result {
        let frame = Frame::new(block.cloned());
        let required = method.parameters.iter().filter(|p| p.default.is_none() && !p.splat).count();
        let at_most = if method.parameters.iter().any(|p| p.splat) { usize::MAX } else { method.parameters.len() };
        if !(required..=at_most).contains(&arguments.len()) {
            let given = arguments.len();
            return Err(Flow::argument(format!("wrong number of arguments (given {given}, expected {required})")));
        }
        match self.in_frame(frame, |shell| shell.bind_and_run(method, arguments)) {
            Err(Flow::Return(value)) => Ok(value),
            other => other,
        }
    }

    /// Calls a block.
    pub(crate) fn yield_to(&mut self, closure: &Closure, mut arguments: Vec<Value>) -> Result {
        let block = closure.block.clone();
        // A block of several parameters takes a list apart.
        if block.parameters.len() > 1
            && let [Value::Array(items)] = arguments.as_slice()
        {
            let items = items.borrow().clone();
            arguments = items;
        }
        match self.in_frame(closure.frame.within(), |shell| shell.bind_and_run(&block, arguments)) {
            Err(Flow::Next(value)) => Ok(value),
            other => other,
        }
    }

    fn in_frame(&mut self, frame: Frame, run: impl FnOnce(&mut Shell) -> Result) -> Result {
        let before = std::mem::replace(&mut self.frame, frame);
        let result = run(self);
        self.frame = before;
        result
    }

    fn bind_and_run(&mut self, block: &Rc<Block>, arguments: Vec<Value>) -> Result {
        let mut arguments = arguments.into_iter();
        for (i, parameter) in block.parameters.iter().enumerate() {
            let value = if parameter.splat {
                let after = block.parameters.len() - i - 1;
                let count = arguments.len().saturating_sub(after);
                Value::array(arguments.by_ref().take(count).collect())
            } else {
                match (arguments.next(), &parameter.default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => self.eval(default)?,
                    (None, None) => Value::Nil,
                }
            };
            self.frame.declare(&parameter.name, value);
        }
        self.eval(&block.body)
    }
}

const FUNCTIONS: &[&str] = &[
    "puts",
    "print",
    "p",
    "format",
    "sprintf",
    "printf",
    "help",
    "tools",
    "exit",
    "quit",
    "raise",
    "sleep",
    "loop",
    "block_given?",
    "Integer",
    "Float",
    "String",
    "Array",
];

fn raised(arguments: &[Value]) -> Flow {
    match arguments {
        [Value::Exception(exception)] => Flow::Raise(exception.clone()),
        [Value::Class(class)] => Flow::raise(class, class.to_string()),
        [Value::Class(class), message, ..] => Flow::raise(class, message.to_text()),
        [message, ..] => Flow::runtime(message.to_text()),
        [] => Flow::Raise(Rc::new(Exception {
            class: "RuntimeError".to_owned(),
            message: "unhandled exception".to_owned(),
            cause: None,
        })),
    }
}
