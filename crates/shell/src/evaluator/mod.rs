//! Evaluates a script: a walk over its tree.

mod assign;
mod call;
pub mod methods;
pub mod scope;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;

use self::scope::Frame;
use crate::constants;
use crate::failure::{Exception, Flow, Result};
use crate::language::syntax::{Block, Kind, Node, Piece, Rescue};
use crate::session::Session;
use crate::value::{Closure, Pairs, Value};

/// The deepest nesting of calls and of parts of a script: evaluation is recursive.
const MAX_DEPTH: u32 = 400;
/// Elements that a range may be spelled out to.
pub(crate) const MAX_RANGE: i64 = 10_000_000;

/// A shell: what a script has set, and its session with a cluster.
pub struct Shell {
    /// The session.
    pub session: Session,
    pub(crate) frame: Frame,
    globals: HashMap<String, Value>,
    constants: HashMap<String, Value>,
    methods: HashMap<String, Rc<Block>>,
    depth: u32,
}

impl Shell {
    /// A shell that has set nothing yet.
    pub fn new(session: Session) -> Shell {
        Shell {
            session,
            frame: Frame::new(None),
            globals: HashMap::new(),
            constants: HashMap::new(),
            methods: HashMap::new(),
            depth: 0,
        }
    }

    /// Names of the local variables of the outermost level.
    pub fn variables(&self) -> std::collections::HashSet<String> {
        self.frame.names().into_iter().collect()
    }

    /// The value of a part of a script.
    pub fn eval(&mut self, node: &Node) -> Result {
        if self.depth >= MAX_DEPTH {
            return Err(Flow::raise("SystemStackError", format!("more than {MAX_DEPTH} levels of calls and nesting")));
        }
        if self.session.is_interrupted() {
            return Err(Flow::Interrupted);
        }
        self.depth += 1;
        let result = self.eval_kind(node);
        self.depth -= 1;
        result
    }

    fn eval_kind(&mut self, node: &Node) -> Result {
        match &node.kind {
            Kind::Nil => Ok(Value::Nil),
            Kind::True => Ok(Value::Bool(true)),
            Kind::False => Ok(Value::Bool(false)),
            Kind::Itself => Ok(Value::Java("main".into())),
            Kind::Int(number) => Ok(Value::Int(*number)),
            Kind::Float(number) => Ok(Value::Float(*number)),
            Kind::Symbol(name) => Ok(Value::Symbol(name.as_str().into())),
            Kind::Regex(pattern) => Ok(Value::Regex(pattern.as_str().into())),
            Kind::Text(pieces) => self.text(pieces),
            Kind::Array(items) => Ok(Value::array(self.arguments(items)?.0)),
            Kind::Hash(pairs) => self.hash(pairs),
            Kind::Range { from, to, exclusive } => {
                Ok(Value::Range(Rc::new((self.eval(from)?, self.eval(to)?, *exclusive))))
            }
            Kind::Variable(name) => Ok(self.frame.get(name).unwrap_or(Value::Nil)),
            Kind::Global(name) => Ok(self.globals.get(name).cloned().unwrap_or(Value::Nil)),
            Kind::Constant(name) => self.constant(name),
            Kind::Call(call) => self.call(call),
            Kind::Lambda(block) => Ok(Value::Lambda(Rc::new(self.closure(block)))),
            Kind::Not(inner) => Ok(Value::Bool(!self.eval(inner)?.is_true())),
            Kind::Sequence(nodes) => {
                let mut last = Value::Nil;
                for node in nodes {
                    last = self.eval(node)?;
                }
                Ok(last)
            }
            Kind::Assign(..) | Kind::AssignMany(..) | Kind::Update(..) => self.assignment(&node.kind),
            _ => self.control(&node.kind),
        }
    }

    /// What decides about what is evaluated.
    fn control(&mut self, kind: &Kind) -> Result {
        match kind {
            Kind::And(left, right) => {
                let left = self.eval(left)?;
                if left.is_true() { self.eval(right) } else { Ok(left) }
            }
            Kind::Or(left, right) => {
                let left = self.eval(left)?;
                if left.is_true() { Ok(left) } else { self.eval(right) }
            }
            Kind::If(condition, then, otherwise) => {
                let branch = if self.eval(condition)?.is_true() { then } else { otherwise };
                self.eval(branch)
            }
            Kind::While { condition, body, body_first } => self.repeat(condition, body, *body_first),
            Kind::For(targets, list, body) => {
                let items = self.eval(list)?;
                for item in self.items(&items)? {
                    self.spread(targets, item)?;
                    match self.eval(body) {
                        Err(Flow::Break(value)) => return Ok(value),
                        Ok(_) | Err(Flow::Next(_)) => {}
                        Err(other) => return Err(other),
                    }
                }
                Ok(items)
            }
            Kind::Case(value, branches, otherwise) => self.case(value.as_deref(), branches, otherwise),
            Kind::Begin { body, rescues, otherwise, ensure } => {
                let result = self.rescued(body, rescues, otherwise.as_deref());
                if let Some(ensure) = ensure {
                    self.eval(ensure)?;
                }
                result
            }
            Kind::Def(name, block) => {
                self.methods.insert(name.clone(), block.clone());
                Ok(Value::Symbol(name.as_str().into()))
            }
            Kind::Return(value) => Err(Flow::Return(self.optional(value.as_deref())?)),
            Kind::Break(value) => Err(Flow::Break(self.optional(value.as_deref())?)),
            Kind::Next(value) => Err(Flow::Next(self.optional(value.as_deref())?)),
            Kind::Yield(arguments) => {
                let arguments = self.arguments(arguments)?.0;
                match self.frame.block() {
                    Some(block) => self.yield_to(&block, arguments),
                    None => Err(Flow::raise("LocalJumpError", "no block given (yield)")),
                }
            }
            Kind::Defined(node) => Ok(self.defined(node)),
            _ => Ok(Value::Nil),
        }
    }

    fn optional(&mut self, node: Option<&Node>) -> Result {
        node.map_or(Ok(Value::Nil), |node| self.eval(node))
    }

    fn text(&mut self, pieces: &[Piece]) -> Result {
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => bytes.extend_from_slice(text),
                Piece::Code(node) => {
                    let value = self.eval(node)?;
                    bytes.extend(value.to_bytes());
                }
            }
        }
        Ok(Value::text(bytes))
    }

    fn hash(&mut self, pairs: &[(Node, Node)]) -> Result {
        let mut hash = Pairs::default();
        for (key, value) in pairs {
            let key = self.eval(key)?;
            hash.set(key, self.eval(value)?);
        }
        Ok(Value::hash(hash))
    }

    fn constant(&mut self, name: &str) -> Result {
        if let Some(value) = self.constants.get(name) {
            return Ok(value.clone());
        }
        if let Some(text) = constants::value(name) {
            return Ok(Value::text(text));
        }
        if let Some(value) = methods::filter_constant(name) {
            return Ok(value);
        }
        match methods::is_class(name) {
            true => Ok(Value::Class(name.into())),
            false => Err(Flow::raise("NameError", format!("uninitialized constant {name}"))),
        }
    }

    fn repeat(&mut self, condition: &Node, body: &Node, body_first: bool) -> Result {
        let mut first = body_first;
        while std::mem::take(&mut first) || self.eval(condition)?.is_true() {
            match self.eval(body) {
                Err(Flow::Break(value)) => return Ok(value),
                Ok(_) | Err(Flow::Next(_)) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Value::Nil)
    }

    fn case(&mut self, value: Option<&Node>, branches: &[(Vec<Node>, Node)], otherwise: &Node) -> Result {
        let value = match value {
            Some(node) => Some(self.eval(node)?),
            None => None,
        };
        for (tests, body) in branches {
            for test in tests {
                let test = self.eval(test)?;
                let holds = match &value {
                    Some(value) => methods::matches(&test, value)?,
                    None => test.is_true(),
                };
                if holds {
                    return self.eval(body);
                }
            }
        }
        self.eval(otherwise)
    }

    fn rescued(&mut self, body: &Node, rescues: &[Rescue], otherwise: Option<&Node>) -> Result {
        let exception = match self.eval(body) {
            Err(Flow::Raise(exception)) => exception,
            Ok(value) => return otherwise.map_or(Ok(value), |node| self.eval(node)),
            other => return other,
        };
        let Some(rescue) = rescues.iter().find(|rescue| catches(rescue, &exception)) else {
            return Err(Flow::Raise(exception));
        };
        if let Some(name) = &rescue.variable {
            self.frame.set(name, Value::Exception(exception));
        }
        self.eval(&rescue.body)
    }

    fn defined(&self, node: &Node) -> Value {
        let what = match &node.kind {
            Kind::Variable(name) => self.frame.get(name).map(|_| "local-variable"),
            Kind::Global(name) => self.globals.get(name).map(|_| "global-variable"),
            Kind::Constant(name) => {
                let known = self.constants.contains_key(name) || constants::value(name).is_some();
                (known || methods::is_class(name)).then_some("constant")
            }
            Kind::Call(call) if call.receiver.is_none() => self.knows(&call.name).then_some("method"),
            Kind::Call(_) => None,
            _ => Some("expression"),
        };
        what.map_or(Value::Nil, Value::text)
    }

    fn closure(&self, block: &Rc<Block>) -> Closure {
        Closure { block: block.clone(), frame: self.frame.clone() }
    }

    /// The items of what can be gone through.
    pub(crate) fn items(&mut self, list: &Value) -> Result<Vec<Value>> {
        match list {
            Value::Array(items) => Ok(items.borrow().clone()),
            Value::Hash(pairs) => {
                Ok(pairs.borrow().0.iter().map(|(k, v)| Value::array(vec![k.clone(), v.clone()])).collect())
            }
            Value::Range(range) => methods::range_items(range),
            other => Err(Flow::raise("NoMethodError", format!("undefined method `each' for {}", other.inspect()))),
        }
    }
}

fn catches(rescue: &Rescue, exception: &Exception) -> bool {
    rescue.classes.is_empty() || rescue.classes.iter().any(|class| methods::is_a_class(exception, class))
}
