//! Expressions: assignment, the conditional operator, ranges, and the operators by their binding.

use super::SyntaxError;
use super::lexer::Token;
use super::parser::Parser;
use super::syntax::{Argument, Call, Kind, Node};

/// Operators that are methods, by how tightly they bind.
const BINARY: &[(&str, u8)] = &[
    ("<=>", 5),
    ("==", 5),
    ("===", 5),
    ("!=", 5),
    ("=~", 5),
    ("!~", 5),
    ("<", 6),
    ("<=", 6),
    (">", 6),
    (">=", 6),
    ("|", 7),
    ("^", 7),
    ("&", 8),
    ("<<", 9),
    (">>", 9),
    ("+", 10),
    ("-", 10),
    ("*", 11),
    ("/", 11),
    ("%", 11),
    ("**", 13),
];

const UPDATES: &[&str] = &["+=", "-=", "*=", "/=", "%=", "||=", "&&=", "|=", "<<=", "**="];

impl Parser {
    /// An expression, assignment among them.
    pub(super) fn expression(&mut self) -> Result<Node, SyntaxError> {
        self.deeper(Parser::assignment)
    }

    fn assignment(&mut self) -> Result<Node, SyntaxError> {
        let left = self.conditional_operator()?;
        let Token::Sign(sign) = *self.token() else { return Ok(left) };
        if sign != "=" && !UPDATES.contains(&sign) {
            return Ok(left);
        }
        let target = self.as_target(&left).ok_or_else(|| self.unexpected("something that can be assigned to"))?;
        self.advance();
        self.skip_newlines();
        self.declare_target(&target);
        let value = self.expression()?;
        let value = match sign == "=" && self.is_sign(",") && !self.in_list() {
            true => self.listed(value)?,
            false => value,
        };
        let kind = match sign {
            "=" => Kind::Assign(Box::new(target), Box::new(value)),
            sign => Kind::Update(Box::new(target), sign.trim_end_matches('=').to_owned(), Box::new(value)),
        };
        Ok(Parser::node(left.place, kind))
    }

    fn conditional_operator(&mut self) -> Result<Node, SyntaxError> {
        let condition = self.range()?;
        if !self.take_sign("?") {
            return Ok(condition);
        }
        self.skip_newlines();
        // `a ? NAME: b` has a label where a value and a colon are meant.
        let (then, colon) = match self.token().clone() {
            Token::Label(name) => {
                let place = self.place();
                self.advance();
                let kind = match name.chars().next().is_some_and(char::is_uppercase) {
                    true => Kind::Constant(name),
                    false => Kind::Variable(name),
                };
                (Parser::node(place, kind), true)
            }
            _ => (self.expression()?, false),
        };
        self.skip_newlines();
        if !colon {
            self.expect_sign(":")?;
        }
        self.skip_newlines();
        let otherwise = self.expression()?;
        let place = condition.place;
        Ok(Parser::node(place, Kind::If(Box::new(condition), Box::new(then), Box::new(otherwise))))
    }

    fn range(&mut self) -> Result<Node, SyntaxError> {
        let from = self.or()?;
        let exclusive = self.is_sign("...");
        if !exclusive && !self.is_sign("..") {
            return Ok(from);
        }
        self.advance();
        let to = Box::new(self.or()?);
        let place = from.place;
        Ok(Parser::node(place, Kind::Range { from: Box::new(from), to, exclusive }))
    }

    fn or(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.and()?;
        while self.take_sign("||") {
            self.skip_newlines();
            let right = self.and()?;
            left = Parser::node(left.place, Kind::Or(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.turned_operand()?;
        while self.take_sign("&&") {
            self.skip_newlines();
            let right = self.turned_operand()?;
            left = Parser::node(left.place, Kind::And(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn turned_operand(&mut self) -> Result<Node, SyntaxError> {
        self.binary(0)
    }

    /// Operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Result<Node, SyntaxError> {
        let mut left = self.unary()?;
        loop {
            let Token::Sign(sign) = *self.token() else { return Ok(left) };
            let Some((_, binding)) = BINARY.iter().find(|(name, binding)| *name == sign && *binding >= least) else {
                return Ok(left);
            };
            // The `|` that ends a block's parameters is taken by them, not here.
            self.advance();
            self.skip_newlines();
            let right_binding = if sign == "**" { *binding } else { binding + 1 };
            let right = self.deeper(|parser| parser.binary(right_binding))?;
            let place = left.place;
            left = match sign {
                "!=" | "!~" => {
                    let name = if sign == "!=" { "==" } else { "=~" };
                    let call = Parser::node(place, method(left, name, vec![right]));
                    Parser::node(place, Kind::Not(Box::new(call)))
                }
                sign => Parser::node(place, method(left, sign, vec![right])),
            };
        }
    }

    fn unary(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        if self.take_sign("!") {
            let inner = self.deeper(Parser::unary)?;
            return Ok(Parser::node(place, Kind::Not(Box::new(inner))));
        }
        if self.take_sign("-") {
            let inner = self.deeper(|parser| parser.binary(12))?;
            return Ok(match inner.kind {
                Kind::Int(number) => Parser::node(place, Kind::Int(-number)),
                Kind::Float(number) => Parser::node(place, Kind::Float(-number)),
                _ => Parser::node(place, method(inner, "-@", Vec::new())),
            });
        }
        if self.take_sign("+") {
            return self.deeper(Parser::unary);
        }
        if self.is_sign("~") {
            return Err(self.unsupported("~"));
        }
        self.postfixed()
    }
}

/// `receiver.name(arguments)`.
pub(super) fn method(receiver: Node, name: &str, arguments: Vec<Node>) -> Kind {
    Kind::Call(Call {
        receiver: Some(Box::new(receiver)),
        safe: false,
        name: name.to_owned(),
        arguments: arguments.into_iter().map(Argument::One).collect(),
        block: None,
    })
}
