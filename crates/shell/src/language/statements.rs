//! Statements: those that begin with a word of the language, assignments of several values, and what may follow a statement.

use std::collections::HashSet;
use std::rc::Rc;

use super::SyntaxError;
use super::lexer::Token;
use super::parser::Parser;
use super::syntax::{Block, Kind, Node, Parameter, Rescue, Target};

impl Parser {
    /// Statements up to one of the words, or a closing brace, or the end.
    pub(super) fn statements(&mut self, until: &[&str]) -> Result<Node, SyntaxError> {
        let place = self.place();
        let mut statements = Vec::new();
        loop {
            self.skip_newlines();
            let ends = match self.token() {
                Token::End => true,
                Token::Sign("}") => true,
                Token::Keyword(word) => until.contains(word),
                _ => false,
            };
            if ends {
                break;
            }
            statements.push(self.statement()?);
            let separated = match self.token() {
                Token::Newline | Token::End | Token::Sign("}") => true,
                Token::Keyword(word) => until.contains(word),
                _ => false,
            };
            if !separated {
                return Err(self.unexpected("the end of the statement"));
            }
        }
        match statements.len() {
            1 => Ok(statements.remove(0)),
            _ => Ok(Parser::node(place, Kind::Sequence(statements))),
        }
    }

    /// A statement with what may follow it: `if`, `unless`, `while`, `until`, `rescue`.
    pub(super) fn statement(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.deeper(Parser::joined)?;
        loop {
            let place = node.place;
            let Token::Keyword(word) = *self.token() else { return Ok(node) };
            if !matches!(word, "if" | "unless" | "while" | "until" | "rescue") {
                return Ok(node);
            }
            self.advance();
            let other = Box::new(self.deeper(Parser::joined)?);
            let nil = || Box::new(Parser::node(place, Kind::Nil));
            let kind = match word {
                "if" => Kind::If(other, Box::new(node), nil()),
                "unless" => Kind::If(other, nil(), Box::new(node)),
                "rescue" => {
                    let rescue = Rescue { classes: Vec::new(), variable: None, body: *other };
                    Kind::Begin { body: Box::new(node), rescues: vec![rescue], otherwise: None, ensure: None }
                }
                word => {
                    let body_first = matches!(node.kind, Kind::Begin { .. });
                    Kind::While { condition: negated_if(word == "until", other), body: Box::new(node), body_first }
                }
            };
            node = Parser::node(place, kind);
        }
    }

    /// Expressions joined by `and` and `or`, with `not` before them.
    fn joined(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.turned()?;
        loop {
            let place = left.place;
            let is_and = self.is_keyword("and");
            if !is_and && !self.is_keyword("or") {
                return Ok(left);
            }
            self.advance();
            self.skip_newlines();
            let right = Box::new(self.turned()?);
            let kind = if is_and { Kind::And(Box::new(left), right) } else { Kind::Or(Box::new(left), right) };
            left = Parser::node(place, kind);
        }
    }

    fn turned(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        if self.take_keyword("not") {
            let inner = self.deeper(Parser::turned)?;
            return Ok(Parser::node(place, Kind::Not(Box::new(inner))));
        }
        let first = self.expression()?;
        if self.is_sign(",")
            && let Some(target) = self.as_target(&first)
        {
            return self.several(first, target);
        }
        Ok(first)
    }

    /// `a, b = values`.
    fn several(&mut self, first: Node, target: Target) -> Result<Node, SyntaxError> {
        let mut targets = vec![target];
        while self.take_sign(",") {
            let next = self.primary()?;
            targets.push(self.as_target(&next).ok_or_else(|| self.unexpected("a variable"))?);
        }
        self.expect_sign("=")?;
        self.skip_newlines();
        targets.iter().for_each(|target| self.declare_target(target));
        let value = self.expression()?;
        let value = match self.is_sign(",") {
            true => self.listed(value)?,
            false => value,
        };
        Ok(Parser::node(first.place, Kind::AssignMany(targets, Box::new(value))))
    }

    /// The list that goes on after `first`.
    pub(super) fn listed(&mut self, first: Node) -> Result<Node, SyntaxError> {
        let place = first.place;
        let mut items = vec![super::syntax::Argument::One(first)];
        while self.take_sign(",") {
            self.skip_newlines();
            items.push(super::syntax::Argument::One(self.expression()?));
        }
        Ok(Parser::node(place, Kind::Array(items)))
    }

    pub(super) fn as_target(&self, node: &Node) -> Option<Target> {
        match &node.kind {
            Kind::Variable(name) => Some(Target::Variable(name.clone())),
            Kind::Global(name) => Some(Target::Global(name.clone())),
            Kind::Constant(name) if !name.contains(':') => Some(Target::Constant(name.clone())),
            Kind::Call(call) if call.name == "[]" => {
                Some(Target::Index((**call.receiver.as_ref()?).clone(), call.arguments.clone()))
            }
            Kind::Call(call) if call.receiver.is_none() && call.arguments.is_empty() && call.block.is_none() => {
                Some(Target::Variable(call.name.clone())).filter(|_| !call.name.ends_with(['?', '!']))
            }
            _ => None,
        }
    }

    pub(super) fn declare_target(&mut self, target: &Target) {
        if let Target::Variable(name) = target {
            self.declare(name);
        }
    }

    /// What begins with a word of the language.
    pub(super) fn worded(&mut self, word: &'static str) -> Result<Node, SyntaxError> {
        let place = self.place();
        let value_follows = |parser: &Parser| !parser.statement_ends();
        let kind = match word {
            "nil" | "true" | "false" | "self" => {
                self.advance();
                match word {
                    "nil" => Kind::Nil,
                    "true" => Kind::True,
                    "false" => Kind::False,
                    _ => Kind::Itself,
                }
            }
            "if" | "unless" => return self.conditional(),
            "while" | "until" => return self.repeated(),
            "for" => return self.for_each(),
            "case" => return self.case(),
            "begin" => {
                self.advance();
                let body = self.with_no_do(false, Parser::guarded)?;
                self.expect_keyword("end")?;
                body
            }
            "def" => return self.definition(),
            "return" | "break" | "next" => {
                self.advance();
                let value = match value_follows(self) {
                    true => {
                        let value = self.expression()?;
                        let value = if self.is_sign(",") { self.listed(value)? } else { value };
                        Some(Box::new(value))
                    }
                    false => None,
                };
                match word {
                    "return" => Kind::Return(value),
                    "break" => Kind::Break(value),
                    _ => Kind::Next(value),
                }
            }
            "yield" => {
                self.advance();
                let spaced = self.lexed(0).spaced;
                let arguments = if self.is_sign("(") && !spaced {
                    self.parenthesized()?
                } else if self.argument_begins(false) {
                    self.command_arguments()?
                } else {
                    Vec::new()
                };
                Kind::Yield(arguments)
            }
            "defined?" => {
                self.advance();
                Kind::Defined(Box::new(self.deeper(Parser::primary)?))
            }
            word => return Err(self.unsupported(word)),
        };
        Ok(Parser::node(place, kind))
    }

    /// Whether nothing of the statement is left.
    pub(super) fn statement_ends(&self) -> bool {
        match self.token() {
            Token::Newline | Token::End => true,
            Token::Sign(sign) => matches!(*sign, "}" | ")" | "]"),
            Token::Keyword(word) => {
                matches!(*word, "if" | "unless" | "while" | "until" | "end" | "and" | "or" | "rescue")
            }
            _ => false,
        }
    }

    fn condition(&mut self) -> Result<Box<Node>, SyntaxError> {
        self.with_no_do(true, |parser| parser.deeper(Parser::joined)).map(Box::new)
    }

    fn conditional(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        let is_unless = self.is_keyword("unless");
        self.advance();
        let condition = self.condition()?;
        self.take_keyword("then");
        let body =
            |parser: &mut Parser| parser.with_no_do(false, |p| p.deeper(|p| p.statements(&["elsif", "else", "end"])));
        let then = Box::new(body(self)?);
        let otherwise = if self.is_keyword("elsif") {
            // It takes the `end` for both.
            Box::new(self.deeper(Parser::conditional)?)
        } else {
            let otherwise = match self.take_keyword("else") {
                true => body(self)?,
                false => Parser::node(place, Kind::Nil),
            };
            self.expect_keyword("end")?;
            Box::new(otherwise)
        };
        let kind = match is_unless {
            true => Kind::If(condition, otherwise, then),
            false => Kind::If(condition, then, otherwise),
        };
        Ok(Parser::node(place, kind))
    }

    fn repeated(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        let is_until = self.is_keyword("until");
        self.advance();
        let condition = negated_if(is_until, self.condition()?);
        self.take_keyword("do");
        let body = Box::new(self.with_no_do(false, |p| p.deeper(|p| p.statements(&["end"])))?);
        self.expect_keyword("end")?;
        Ok(Parser::node(place, Kind::While { condition, body, body_first: false }))
    }

    fn for_each(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        self.advance();
        let mut targets = Vec::new();
        loop {
            let next = self.primary()?;
            targets.push(self.as_target(&next).ok_or_else(|| self.unexpected("a variable"))?);
            if !self.take_sign(",") {
                break;
            }
        }
        targets.iter().for_each(|target| self.declare_target(target));
        self.expect_keyword("in")?;
        let list = self.condition()?;
        self.take_keyword("do");
        let body = Box::new(self.with_no_do(false, |p| p.deeper(|p| p.statements(&["end"])))?);
        self.expect_keyword("end")?;
        Ok(Parser::node(place, Kind::For(targets, list, body)))
    }

    fn case(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        self.advance();
        let value = if *self.token() == Token::Newline { None } else { Some(self.condition()?) };
        self.skip_newlines();
        let mut branches = Vec::new();
        while self.take_keyword("when") {
            let mut values = vec![self.expression()?];
            while self.take_sign(",") {
                self.skip_newlines();
                values.push(self.expression()?);
            }
            self.take_keyword("then");
            let body = self.with_no_do(false, |p| p.deeper(|p| p.statements(&["when", "else", "end"])))?;
            branches.push((values, body));
        }
        let otherwise = match self.take_keyword("else") {
            true => self.with_no_do(false, |p| p.deeper(|p| p.statements(&["end"])))?,
            false => Parser::node(place, Kind::Nil),
        };
        self.expect_keyword("end")?;
        Ok(Parser::node(place, Kind::Case(value, branches, Box::new(otherwise))))
    }

    /// Statements with their `rescue`, `else` and `ensure`, up to the `end`.
    pub(super) fn guarded(&mut self) -> Result<Kind, SyntaxError> {
        const ENDS: [&str; 4] = ["rescue", "else", "ensure", "end"];
        let body = Box::new(self.deeper(|p| p.statements(&ENDS))?);
        let mut rescues = Vec::new();
        while self.take_keyword("rescue") {
            let mut classes = Vec::new();
            while let Token::Constant(_) | Token::Name(_) = self.token() {
                let class = self.postfixed()?;
                classes.push(match class.kind {
                    Kind::Constant(name) => name,
                    Kind::Call(call) => call.name,
                    _ => return Err(self.unexpected("a class")),
                });
                if !self.take_sign(",") {
                    break;
                }
            }
            let variable = match self.take_sign("=>") {
                true => match self.advance() {
                    Token::Name(name) => Some(name),
                    _ => return Err(self.unexpected("a variable")),
                },
                false => None,
            };
            if let Some(name) = &variable {
                self.declare(name);
            }
            self.take_keyword("then");
            let body = self.deeper(|p| p.statements(&ENDS))?;
            rescues.push(Rescue { classes, variable, body });
        }
        let mut part = |word| -> Result<Option<Box<Node>>, SyntaxError> {
            match self.take_keyword(word) {
                true => self.deeper(|p| p.statements(&ENDS)).map(|body| Some(Box::new(body))),
                false => Ok(None),
            }
        };
        let (otherwise, ensure) = (part("else")?, part("ensure")?);
        Ok(Kind::Begin { body, rescues, otherwise, ensure })
    }

    fn definition(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        self.advance();
        let name = match self.advance() {
            Token::Name(name) | Token::Constant(name) => name,
            _ => return Err(SyntaxError::new(place, "def needs a name")),
        };
        if self.is_sign(".") {
            return Err(self.unsupported("a method of one object"));
        }
        let outer = std::mem::replace(&mut self.scopes, vec![HashSet::new()]);
        let result = self.with_no_do(false, |parser| {
            let parameters = match parser.take_sign("(") {
                true => parser.parameters(")")?,
                false => parser.parameters("")?,
            };
            let body_place = parser.place();
            let body = parser.guarded()?;
            parser.expect_keyword("end")?;
            Ok((parameters, Parser::node(body_place, body)))
        });
        self.scopes = outer;
        let (parameters, body) = result?;
        Ok(Parser::node(place, Kind::Def(name, Rc::new(Block { parameters, body }))))
    }

    /// Parameters up to `closing`, which is taken; up to the end of the line where that is empty.
    pub(super) fn parameters(&mut self, closing: &str) -> Result<Vec<Parameter>, SyntaxError> {
        let mut parameters = Vec::new();
        loop {
            if closing.is_empty() && *self.token() == Token::Newline || self.take_sign(closing) {
                return Ok(parameters);
            }
            let splat = self.take_sign("*");
            let name = match self.token().clone() {
                Token::Name(name) => name,
                Token::Sign("(") => return Err(self.unsupported("parameters in parentheses of their own")),
                _ => return Err(self.unexpected("a parameter")),
            };
            self.advance();
            self.declare(&name);
            // A `|` closes, rather than being an operator of a default.
            let default = match self.take_sign("=") {
                true => Some(self.primary()?),
                false => None,
            };
            parameters.push(Parameter { name, default, splat });
            if !self.take_sign(",") && !self.is_sign(closing) && *self.token() != Token::Newline {
                return Err(self.unexpected(if closing.is_empty() { "the end of the line" } else { closing }));
            }
        }
    }
}

fn negated_if(turned: bool, condition: Box<Node>) -> Box<Node> {
    match turned {
        true => Box::new(Parser::node(condition.place, Kind::Not(condition))),
        false => condition,
    }
}
