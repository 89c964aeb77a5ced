//! Tokens to a tree, by recursive descent. What is Ruby and not supported is refused where it stands.

use std::collections::HashSet;

use super::lexer::{self, Lexed, Part, Token};
use super::syntax::{Kind, Node, Piece};
use super::{Place, SyntaxError};

/// The deepest nesting that is read: the tree is walked by recursion.
const MAX_DEPTH: u32 = 100;

/// The program that `source` is. `known` are the local variables that earlier text has set: a name among them is a variable, every other
/// one a command.
///
/// # Errors
/// The first place where the text is no program.
pub fn parse(source: &str, known: &HashSet<String>) -> Result<Node, SyntaxError> {
    let tokens = lexer::tokens(source)?;
    Parser::new(tokens, vec![known.clone()]).program()
}

pub(super) struct Parser {
    tokens: Vec<Lexed>,
    at: usize,
    depth: u32,
    /// Names of local variables, from the outermost block to this one; a method begins anew.
    pub(super) scopes: Vec<HashSet<String>>,
    /// Whether a `do` belongs to somebody further out.
    pub(super) no_do: bool,
    /// How many lists of arguments or elements are open around.
    pub(super) lists: u32,
}

impl Parser {
    fn new(tokens: Vec<Lexed>, scopes: Vec<HashSet<String>>) -> Parser {
        Parser { tokens, at: 0, depth: 0, scopes, no_do: false, lists: 0 }
    }

    fn program(mut self) -> Result<Node, SyntaxError> {
        let program = self.statements(&[])?;
        match self.token() {
            Token::End => Ok(program),
            _ => Err(self.unexpected("the end of the statement")),
        }
    }

    pub(super) fn lexed(&self, ahead: usize) -> &Lexed {
        // The last token is the end, which nothing goes beyond.
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    pub(super) fn token(&self) -> &Token {
        &self.lexed(0).token
    }

    pub(super) fn place(&self) -> Place {
        self.lexed(0).place
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.token().clone();
        self.at += 1;
        token
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(s) if *s == sign)
    }

    pub(super) fn is_keyword(&self, word: &str) -> bool {
        matches!(self.token(), Token::Keyword(w) if *w == word)
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    pub(super) fn take_keyword(&mut self, word: &str) -> bool {
        let is = self.is_keyword(word);
        self.at += usize::from(is);
        is
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<(), SyntaxError> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => Err(self.unexpected(sign)),
        }
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Result<(), SyntaxError> {
        match self.take_keyword(word) {
            true => Ok(()),
            false => Err(self.unexpected(word)),
        }
    }

    pub(super) fn skip_newlines(&mut self) {
        while *self.token() == Token::Newline {
            self.at += 1;
        }
    }

    pub(super) fn unexpected(&self, wanted: &str) -> SyntaxError {
        let found = match self.token() {
            Token::End => {
                return SyntaxError::incomplete(self.place(), format!("the text ends where {wanted} is expected"));
            }
            Token::Newline => "the line ends".to_owned(),
            token => format!("{} stands", shown(token)),
        };
        SyntaxError::new(self.place(), format!("{found} where {wanted} is expected"))
    }

    pub(super) fn unsupported(&self, what: &str) -> SyntaxError {
        SyntaxError::new(self.place(), format!("{what}: this part of Ruby is not supported"))
    }

    /// Runs `inner` one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Parser) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth >= MAX_DEPTH {
            return Err(SyntaxError::new(self.place(), format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Runs `inner` where a `do` belongs to the call at hand, or to somebody further out.
    pub(super) fn with_no_do<T>(&mut self, no_do: bool, inner: impl FnOnce(&mut Parser) -> T) -> T {
        let before = std::mem::replace(&mut self.no_do, no_do);
        let result = inner(self);
        self.no_do = before;
        result
    }

    pub(super) fn declare(&mut self, name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned());
        }
    }

    pub(super) fn is_variable(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
    }

    /// The pieces of a string; code in it knows the variables from around.
    pub(super) fn pieces(&mut self, parts: Vec<Part>) -> Result<Vec<Piece>, SyntaxError> {
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            pieces.push(match part {
                Part::Text(bytes) => Piece::Text(bytes),
                Part::Code(tokens) => {
                    let inner = Parser { depth: self.depth + 1, ..Parser::new(tokens, self.scopes.clone()) };
                    if inner.depth > MAX_DEPTH {
                        return Err(self.unsupported("strings nested so deeply"));
                    }
                    Piece::Code(inner.program()?)
                }
            });
        }
        Ok(pieces)
    }

    pub(super) fn node(place: Place, kind: Kind) -> Node {
        Node { place, kind }
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Int(number) => number.to_string(),
        Token::Float(number) => number.to_string(),
        Token::Text(_) => "a string".to_owned(),
        Token::Symbol(name) => format!(":{name}"),
        Token::Regex(pattern) => format!("/{pattern}/"),
        Token::Words(_) => "%w[...]".to_owned(),
        Token::Label(name) => format!("{name}:"),
        Token::Name(name) | Token::Constant(name) | Token::Global(name) => name.clone(),
        Token::Keyword(word) => (*word).to_owned(),
        Token::Sign(sign) => (*sign).to_owned(),
        Token::Newline => "the end of the line".to_owned(),
        Token::End => "the end".to_owned(),
    }
}
