//! The part of Ruby that HBase's shell is used with: text to tokens ([`lexer`]), tokens to a tree ([`parser`]).

pub mod lexer;
mod operators;
pub mod parser;
mod primary;
mod statements;
pub mod syntax;

use std::fmt;

/// Where something stands in the text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// Text that is no program, or needs more of Ruby than is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
    /// Whether more text could make it right: a prompt then asks for the next line.
    pub incomplete: bool,
}

impl SyntaxError {
    pub(crate) fn new(place: Place, what: impl Into<String>) -> SyntaxError {
        SyntaxError { place, what: what.into(), incomplete: false }
    }

    pub(crate) fn incomplete(place: Place, what: impl Into<String>) -> SyntaxError {
        SyntaxError { place, what: what.into(), incomplete: true }
    }

    /// The error with the line of `source` that it is in and a caret below the column.
    pub fn shown(&self, source: &str) -> String {
        let line = source.lines().nth(self.place.line.saturating_sub(1) as usize).unwrap_or("");
        let before = line.chars().take(self.place.column.saturating_sub(1) as usize);
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{self}\n  {line}\n  {indent}^")
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.place.line, self.place.column, self.what)
    }
}

impl std::error::Error for SyntaxError {}
