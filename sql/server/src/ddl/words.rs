//! The tokens of a statement, one after the other.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::Literal;
use crate::error::{SqlError, SqlState};

/// Tokens without spaces and comments.
pub struct Words {
    tokens: Vec<Token>,
    at: usize,
}

impl Words {
    /// The tokens of `sql`.
    ///
    /// # Errors
    /// A text or comment without its end.
    pub fn new(sql: &str) -> Result<Words, SqlError> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
            .tokenize()
            .map_err(|e| SqlError::new(SqlState::SYNTAX_ERROR, e.to_string()))?;
        let tokens = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        Ok(Words { tokens, at: 0 })
    }

    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).filter(|token| **token != Token::SemiColon)
    }

    pub fn is_over(&self) -> bool {
        self.peek().is_none()
    }

    /// Whether nothing follows but semicolons: no other statement either.
    pub fn is_at_end(&self) -> bool {
        self.tokens[self.at.min(self.tokens.len())..].iter().all(|token| *token == Token::SemiColon)
    }

    /// Passes over a token.
    pub fn advance(&mut self) {
        self.at += 1;
    }

    /// A syntax error here.
    pub fn error(&self) -> SqlError {
        let message = match self.peek() {
            Some(token) => format!("syntax error at or near \"{token}\""),
            None => "syntax error at end of input".to_owned(),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        let token = self.tokens.get(self.at + ahead);
        matches!(token, Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
    }

    /// Takes these words, if they are next.
    pub fn take(&mut self, words: &str) -> bool {
        let count = words.split(' ').count();
        let found = words.split(' ').enumerate().all(|(ahead, word)| self.is_word(ahead, word));
        if found {
            self.at += count;
        }
        found
    }

    pub fn expect(&mut self, words: &str) -> Result<(), SqlError> {
        if self.take(words) { Ok(()) } else { Err(self.error()) }
    }

    pub fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    pub fn expect_token(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.take_token(token) { Ok(()) } else { Err(self.error()) }
    }

    /// A name; without quotes it is lower case.
    pub fn name(&mut self) -> Result<String, SqlError> {
        let name = match self.peek() {
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) => word.value.to_ascii_lowercase(),
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(name)
    }

    /// A number without a sign.
    pub fn number<N: std::str::FromStr>(&mut self) -> Result<N, SqlError> {
        let number = match self.peek() {
            Some(Token::Number(text, _)) => text.parse().map_err(|_| self.error())?,
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(number)
    }

    /// A text, number or word.
    pub fn literal(&mut self) -> Result<Literal, SqlError> {
        let minus = self.take_token(&Token::Minus);
        let literal = match self.peek() {
            Some(Token::Number(text, _)) => Literal::Number(if minus { format!("-{text}") } else { text.clone() }),
            _ if minus => return Err(self.error()),
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => Literal::Text(text.clone()),
            Some(Token::Word(word)) => Literal::Text(word.value.clone()),
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(literal)
    }

    /// What stands in brackets, separated by commas.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Words) -> Result<T, SqlError>) -> Result<Vec<T>, SqlError> {
        self.expect_token(&Token::LParen)?;
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if !self.take_token(&Token::Comma) {
                self.expect_token(&Token::RParen)?;
                return Ok(items);
            }
        }
    }
}
