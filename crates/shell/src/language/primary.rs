//! Values, calls with their arguments and blocks, and what follows a value: `.method`, `[index]`, `::Name`.

use std::collections::HashSet;
use std::rc::Rc;

use super::SyntaxError;
use super::lexer::Token;
use super::parser::Parser;
use super::syntax::{Argument, Block, Call, Kind, Node, Piece};

impl Parser {
    /// Whether a comma at hand belongs to a list of arguments or elements.
    pub(super) fn in_list(&self) -> bool {
        self.lists > 0
    }

    fn listing<T>(&mut self, lists: u32, inner: impl FnOnce(&mut Parser) -> T) -> T {
        let before = std::mem::replace(&mut self.lists, lists);
        let result = inner(self);
        self.lists = before;
        result
    }

    /// A value and what follows it.
    pub(super) fn postfixed(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.primary()?;
        loop {
            let (place, spaced) = (node.place, self.lexed(0).spaced);
            let Token::Sign(sign) = *self.token() else { return Ok(node) };
            match sign {
                "." | "&." => {
                    self.advance();
                    self.skip_newlines();
                    let name = match self.advance() {
                        Token::Name(name) | Token::Constant(name) => name,
                        Token::Keyword(word) => word.to_owned(),
                        Token::Label(_) | Token::Sign("(") => return Err(self.unsupported("a call without a name")),
                        _ => return Err(self.unexpected("the name of a method")),
                    };
                    let mut call = self.called(Some(Box::new(node)), name)?;
                    if let Kind::Call(call) = &mut call {
                        call.safe = sign == "&.";
                    }
                    node = Parser::node(place, call);
                    if self.is_sign("=") && !matches!(self.lexed(1).token, Token::Sign("=")) {
                        return Err(self.unsupported("an assignment to an attribute"));
                    }
                }
                "[" if !spaced => {
                    self.advance();
                    let arguments = self.elements("]")?;
                    let call = Call {
                        receiver: Some(Box::new(node)),
                        safe: false,
                        name: "[]".to_owned(),
                        arguments,
                        block: None,
                    };
                    node = Parser::node(place, Kind::Call(call));
                }
                "::" if !spaced => {
                    self.advance();
                    node = match (self.advance(), node) {
                        (Token::Constant(name), Node { kind: Kind::Constant(path), .. }) if !self.is_sign("(") => {
                            Parser::node(place, Kind::Constant(format!("{path}::{name}")))
                        }
                        (Token::Name(name) | Token::Constant(name), node) => {
                            let call = self.called(Some(Box::new(node)), name)?;
                            Parser::node(place, call)
                        }
                        _ => return Err(self.unexpected("a name")),
                    };
                }
                _ => return Ok(node),
            }
        }
    }

    /// A value by itself.
    pub(super) fn primary(&mut self) -> Result<Node, SyntaxError> {
        let place = self.place();
        if let Token::Keyword(word) = *self.token() {
            return self.deeper(|parser| parser.worded(word));
        }
        let token = self.token().clone();
        let kind = match token {
            Token::Int(number) => self.literal(Kind::Int(number)),
            Token::Float(number) => self.literal(Kind::Float(number)),
            Token::Symbol(name) => self.literal(Kind::Symbol(name)),
            Token::Regex(pattern) => self.literal(Kind::Regex(pattern)),
            Token::Global(name) => self.literal(Kind::Global(name)),
            Token::Words(words) => {
                let item = |word: String| Parser::node(place, Kind::Text(vec![Piece::Text(word.into_bytes())]));
                self.literal(Kind::Array(words.into_iter().map(|word| Argument::One(item(word))).collect()))
            }
            Token::Text(_) => Kind::Text(self.text()?),
            Token::Constant(name) => {
                self.advance();
                let is_call = self.is_sign("(") && !self.lexed(0).spaced;
                if is_call { self.called(None, name)? } else { Kind::Constant(name) }
            }
            Token::Name(name) => {
                self.advance();
                let is_call = self.is_sign("(") && !self.lexed(0).spaced;
                if matches!(name.as_str(), "lambda" | "proc") && (self.is_sign("{") || self.is_keyword("do")) {
                    Kind::Lambda(Rc::new(self.block()?))
                } else if self.is_variable(&name) && !is_call {
                    Kind::Variable(name)
                } else {
                    self.called(None, name)?
                }
            }
            Token::Sign("(") => {
                self.advance();
                let inner = self.with_no_do(false, |p| p.listing(0, |p| p.deeper(Parser::parenthesis)))?;
                self.expect_sign(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => {
                self.advance();
                Kind::Array(self.elements("]")?)
            }
            Token::Sign("{") => {
                self.advance();
                self.with_no_do(false, |p| p.listing(1, Parser::hash))?
            }
            Token::Sign("->") => {
                self.advance();
                let parameters = if self.take_sign("(") { self.parameters(")")? } else { Vec::new() };
                parameters.iter().for_each(|parameter| self.declare(&parameter.name));
                let block = self.block()?;
                Kind::Lambda(Rc::new(Block { parameters, ..block }))
            }
            Token::Sign("::") => {
                self.advance();
                return self.primary();
            }
            Token::Label(_) => return Err(self.unexpected("a value; a key belongs into { } or after a command")),
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Parser::node(place, kind))
    }

    fn literal(&mut self, kind: Kind) -> Kind {
        self.advance();
        kind
    }

    /// Strings side by side are one.
    fn text(&mut self) -> Result<Vec<Piece>, SyntaxError> {
        let mut pieces = Vec::new();
        while let Token::Text(parts) = self.token().clone() {
            self.advance();
            pieces.extend(self.pieces(parts)?);
        }
        Ok(pieces)
    }

    fn parenthesis(&mut self) -> Result<Node, SyntaxError> {
        self.skip_newlines();
        if self.is_sign(")") {
            return Ok(Parser::node(self.place(), Kind::Nil));
        }
        let inner = self.statement()?;
        self.skip_newlines();
        Ok(inner)
    }

    fn hash(&mut self) -> Result<Kind, SyntaxError> {
        let mut pairs = Vec::new();
        loop {
            self.skip_newlines();
            if self.take_sign("}") {
                return Ok(Kind::Hash(pairs));
            }
            let place = self.place();
            let key = match self.token().clone() {
                Token::Label(name) => {
                    self.advance();
                    Parser::node(place, Kind::Symbol(name))
                }
                _ => {
                    let key = self.expression()?;
                    self.skip_newlines();
                    self.expect_sign("=>")?;
                    key
                }
            };
            self.skip_newlines();
            pairs.push((key, self.expression()?));
            self.skip_newlines();
            if !self.take_sign(",") && !self.is_sign("}") {
                return Err(self.unexpected(", or }"));
            }
        }
    }

    /// Elements up to the closing sign, which is taken.
    fn elements(&mut self, closing: &str) -> Result<Vec<Argument>, SyntaxError> {
        self.with_no_do(false, |parser| parser.listing(1, |parser| parser.arguments_until(closing)))
    }

    pub(super) fn parenthesized(&mut self) -> Result<Vec<Argument>, SyntaxError> {
        self.expect_sign("(")?;
        self.elements(")")
    }

    fn arguments_until(&mut self, closing: &str) -> Result<Vec<Argument>, SyntaxError> {
        let mut arguments = Arguments::default();
        loop {
            self.skip_newlines();
            if self.take_sign(closing) {
                return Ok(arguments.done());
            }
            self.argument(&mut arguments)?;
            self.skip_newlines();
            if !self.take_sign(",") && !self.is_sign(closing) {
                return Err(self.unexpected(&format!(", or {closing}")));
            }
        }
    }

    /// Arguments without parentheses, to the end of the statement.
    pub(super) fn command_arguments(&mut self) -> Result<Vec<Argument>, SyntaxError> {
        let mut arguments = Arguments::default();
        self.with_no_do(true, |parser| {
            parser.listing(1, |parser| {
                loop {
                    parser.argument(&mut arguments)?;
                    if !parser.take_sign(",") {
                        return Ok(());
                    }
                    parser.skip_newlines();
                }
            })
        })?;
        Ok(arguments.done())
    }

    fn argument(&mut self, into: &mut Arguments) -> Result<(), SyntaxError> {
        let place = self.place();
        if self.take_sign("*") {
            let list = self.expression()?;
            into.list.push(Argument::Splat(list));
            return Ok(());
        }
        if self.take_sign("&") {
            let block = self.expression()?;
            into.list.push(Argument::Block(block));
            return Ok(());
        }
        if self.is_sign("**") {
            return Err(self.unsupported("**"));
        }
        if let Token::Label(name) = self.token().clone() {
            self.advance();
            self.skip_newlines();
            let value = self.expression()?;
            into.pairs.push((Parser::node(place, Kind::Symbol(name)), value));
            return Ok(());
        }
        let value = self.expression()?;
        if self.take_sign("=>") {
            self.skip_newlines();
            into.pairs.push((value, self.expression()?));
        } else if into.pairs.is_empty() {
            into.list.push(Argument::One(value));
        } else {
            return Err(SyntaxError::new(place, "a value after key => value: put the keys into { }"));
        }
        Ok(())
    }

    /// Whether what is at hand begins an argument of a command. A sign is one only with space before it and none after, as in `puts -1`.
    pub(super) fn argument_begins(&self, is_method: bool) -> bool {
        let (now, next) = (self.lexed(0), self.lexed(1));
        match &now.token {
            Token::Newline | Token::End => false,
            _ if !now.spaced => false,
            Token::Sign(sign) => match *sign {
                "[" => !is_method || now.spaced,
                "->" | "::" | "(" | "!" => true,
                "-" | "*" | "&" => !next.spaced,
                _ => false,
            },
            Token::Keyword(word) => {
                matches!(*word, "nil" | "true" | "false" | "self" | "not" | "defined?" | "case" | "yield")
            }
            _ => true,
        }
    }

    /// A call of `name`: its arguments, in parentheses or not, and its block.
    fn called(&mut self, receiver: Option<Box<Node>>, name: String) -> Result<Kind, SyntaxError> {
        let spaced = self.lexed(0).spaced;
        let arguments = if self.is_sign("(") && !spaced {
            self.parenthesized()?
        } else if self.argument_begins(receiver.is_some()) {
            self.deeper(Parser::command_arguments)?
        } else {
            Vec::new()
        };
        let has_block = self.is_sign("{") || (self.is_keyword("do") && !self.no_do);
        let block = if has_block { Some(Rc::new(self.block()?)) } else { None };
        Ok(Kind::Call(Call { receiver, safe: false, name, arguments, block }))
    }

    /// `{ |x| ... }` or `do |x| ... end`.
    pub(super) fn block(&mut self) -> Result<Block, SyntaxError> {
        self.deeper(|parser| parser.with_no_do(false, |parser| parser.listing(0, Parser::block_within)))
    }

    fn block_within(&mut self) -> Result<Block, SyntaxError> {
        let braces = self.take_sign("{");
        if !braces {
            self.expect_keyword("do")?;
        }
        self.scopes.push(HashSet::new());
        let result = (|| {
            self.skip_newlines();
            let parameters = match self.take_sign("||") {
                true => Vec::new(),
                false if self.take_sign("|") => self.parameters("|")?,
                false => Vec::new(),
            };
            let place = self.place();
            let body = match braces {
                true => self.statements(&[])?,
                false => {
                    let guarded = self.guarded()?;
                    Parser::node(place, guarded)
                }
            };
            Ok(Block { parameters, body })
        })();
        self.scopes.pop();
        let block = result?;
        match braces {
            true => self.expect_sign("}")?,
            false => self.expect_keyword("end")?,
        }
        Ok(block)
    }
}

/// Arguments as they come; pairs are one hash at the end.
#[derive(Default)]
struct Arguments {
    list: Vec<Argument>,
    pairs: Vec<(Node, Node)>,
}

impl Arguments {
    fn done(self) -> Vec<Argument> {
        let Arguments { mut list, pairs } = self;
        if let Some((first, _)) = pairs.first() {
            let hash = Argument::One(Parser::node(first.place, Kind::Hash(pairs)));
            // `&block` stays last.
            let at = list.iter().position(|argument| matches!(argument, Argument::Block(_))).unwrap_or(list.len());
            list.insert(at, hash);
        }
        list
    }
}
