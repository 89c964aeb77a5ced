//! Local variables: those of a block know those around it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::value::{Closure, Value};

/// The variables of a place in a script, and the block that its method was given.
#[derive(Clone)]
pub struct Frame(Rc<Inner>);

struct Inner {
    variables: RefCell<HashMap<String, Value>>,
    around: Option<Frame>,
    block: Option<Rc<Closure>>,
}

impl Frame {
    /// Of a method, with the block that it was given.
    pub fn new(block: Option<Rc<Closure>>) -> Frame {
        Frame(Rc::new(Inner { variables: RefCell::default(), around: None, block }))
    }

    /// Of a block within this.
    pub fn within(&self) -> Frame {
        let block = self.0.block.clone();
        Frame(Rc::new(Inner { variables: RefCell::default(), around: Some(self.clone()), block }))
    }

    /// The block that `yield` calls.
    pub fn block(&self) -> Option<Rc<Closure>> {
        self.0.block.clone()
    }

    /// A variable.
    pub fn get(&self, name: &str) -> Option<Value> {
        let mut frame = Some(self);
        while let Some(Frame(inner)) = frame {
            if let Some(value) = inner.variables.borrow().get(name) {
                return Some(value.clone());
            }
            frame = inner.around.as_ref();
        }
        None
    }

    /// Sets a variable, where it is known; else here.
    pub fn set(&self, name: &str, value: Value) {
        let mut frame = Some(self);
        while let Some(Frame(inner)) = frame {
            if let Some(old) = inner.variables.borrow_mut().get_mut(name) {
                *old = value;
                return;
            }
            frame = inner.around.as_ref();
        }
        self.declare(name, value);
    }

    /// Sets a variable here.
    pub fn declare(&self, name: &str, value: Value) {
        self.0.variables.borrow_mut().insert(name.to_owned(), value);
    }

    /// Names of the variables here.
    pub fn names(&self) -> Vec<String> {
        self.0.variables.borrow().keys().cloned().collect()
    }
}
