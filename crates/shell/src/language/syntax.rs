//! The tree of a program.

use std::rc::Rc;

use super::Place;

/// A part of a program, with the place where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub kind: Kind,
}

/// A piece of a string.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Bytes as they are.
    Text(Vec<u8>),
    /// `#{...}`.
    Code(Node),
}

/// Parameters and body of a block or method.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Parameters; the default of one that has some.
    pub parameters: Vec<Parameter>,
    /// What is done.
    pub body: Node,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it is where none is given.
    pub default: Option<Node>,
    /// `*rest`.
    pub splat: bool,
}

/// One `rescue` of a `begin` or method.
#[derive(Debug, Clone, PartialEq)]
pub struct Rescue {
    /// Names of classes; none for every `StandardError`.
    pub classes: Vec<String>,
    /// The variable that gets the exception.
    pub variable: Option<String>,
    /// What is done.
    pub body: Node,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A value.
    One(Node),
    /// `*list`.
    Splat(Node),
    /// `&block`.
    Block(Node),
}

/// A call of a command or method.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Whose method; none for a command, a method of the script, or a variable that nobody has set.
    pub receiver: Option<Box<Node>>,
    /// `&.`: nothing is done where the receiver is nil.
    pub safe: bool,
    /// The name.
    pub name: String,
    /// What is given.
    pub arguments: Vec<Argument>,
    /// The block.
    pub block: Option<Rc<Block>>,
}

/// What a part of a program is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `nil`.
    Nil,
    /// `true`.
    True,
    /// `false`.
    False,
    /// `self`.
    Itself,
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A string.
    Text(Vec<Piece>),
    /// `:name`.
    Symbol(String),
    /// `/pattern/`.
    Regex(String),
    /// `[...]`.
    Array(Vec<Argument>),
    /// `{...}`.
    Hash(Vec<(Node, Node)>),
    /// `from..to`.
    Range {
        /// First.
        from: Box<Node>,
        /// Last.
        to: Box<Node>,
        /// Whether `to` is out of it.
        exclusive: bool,
    },
    /// A local variable.
    Variable(String),
    /// `$name` and `@name`.
    Global(String),
    /// `NAME`, or `A::B` with its parts joined.
    Constant(String),
    /// `target = value`.
    Assign(Box<Target>, Box<Node>),
    /// `a, b = value`.
    AssignMany(Vec<Target>, Box<Node>),
    /// `target op= value`.
    Update(Box<Target>, String, Box<Node>),
    /// A call.
    Call(Call),
    /// `!x`.
    Not(Box<Node>),
    /// `a && b`.
    And(Box<Node>, Box<Node>),
    /// `a || b`.
    Or(Box<Node>, Box<Node>),
    /// `if`, `unless`, `?:`.
    If(Box<Node>, Box<Node>, Box<Node>),
    /// `while`, or `until` with the condition turned round.
    While {
        /// As long as this holds.
        condition: Box<Node>,
        /// This is done.
        body: Box<Node>,
        /// `begin ... end while`: once at least.
        body_first: bool,
    },
    /// `for x in list`.
    For(Vec<Target>, Box<Node>, Box<Node>),
    /// `case`: the value, its branches (what matches, what is done), what is done else.
    Case(Option<Box<Node>>, Vec<(Vec<Node>, Node)>, Box<Node>),
    /// `begin ... rescue ... else ... ensure ... end`.
    Begin {
        /// What is done.
        body: Box<Node>,
        /// And where it fails.
        rescues: Vec<Rescue>,
        /// And where it does not.
        otherwise: Option<Box<Node>>,
        /// And then.
        ensure: Option<Box<Node>>,
    },
    /// `def name(...)`.
    Def(String, Rc<Block>),
    /// `-> { }`, `lambda { }`, `proc { }`.
    Lambda(Rc<Block>),
    /// `return`.
    Return(Option<Box<Node>>),
    /// `break`.
    Break(Option<Box<Node>>),
    /// `next`.
    Next(Option<Box<Node>>),
    /// `yield`.
    Yield(Vec<Argument>),
    /// `defined? x`.
    Defined(Box<Node>),
    /// One after the other.
    Sequence(Vec<Node>),
}

/// What can be assigned to.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A local variable.
    Variable(String),
    /// `$name` and `@name`.
    Global(String),
    /// `NAME`.
    Constant(String),
    /// `list[i]`.
    Index(Node, Vec<Argument>),
}
