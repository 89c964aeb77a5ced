//! Text to tokens.

use super::{Place, SyntaxError};

/// A token, where it begins, and whether white space is before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lexed {
    /// What it is.
    pub token: Token,
    /// Where it begins.
    pub place: Place,
    /// Whether white space is before it.
    pub spaced: bool,
}

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A string.
    Text(Vec<Part>),
    /// `:name`.
    Symbol(String),
    /// `/pattern/`.
    Regex(String),
    /// `%w[a b]`.
    Words(Vec<String>),
    /// `name:`, a key of a hash.
    Label(String),
    /// A name that begins small.
    Name(String),
    /// A name that begins with a capital.
    Constant(String),
    /// `$name`, `@name`.
    Global(String),
    /// A word of the language.
    Keyword(&'static str),
    /// Signs.
    Sign(&'static str),
    /// The end of a line, or `;`.
    Newline,
    /// The end of the text.
    End,
}

/// A part of a string.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Bytes as they are.
    Text(Vec<u8>),
    /// `#{...}`: its tokens, the last being [`Token::End`].
    Code(Vec<Lexed>),
}

const KEYWORDS: &[&str] = &[
    "alias", "and", "begin", "break", "case", "class", "def", "defined?", "do", "else", "elsif", "end", "ensure",
    "false", "for", "if", "in", "module", "next", "nil", "not", "or", "redo", "rescue", "retry", "return", "self",
    "super", "then", "true", "undef", "unless", "until", "when", "while", "yield", "BEGIN",
];

/// Longer ones before their beginnings.
const SIGNS: &[&str] = &[
    "**=", "<=>", "===", "...", "<<=", ">>=", "&&=", "||=", "**", "==", "!=", ">=", "<=", "=~", "!~", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "|=", "..", "::", "=>", "->", "&.", "<<", ">>", "+", "-", "*", "/", "%", "=", "<", ">",
    "!", "&", "|", "^", "~", "?", ":", ",", ".", "(", ")", "[", "]", "{", "}",
];

/// The deepest nesting of strings with code in them.
const MAX_NESTING: u32 = 20;

/// The tokens of `source`; the last one is [`Token::End`].
///
/// # Errors
/// What is no token, or a string without its end.
pub fn tokens(source: &str) -> Result<Vec<Lexed>, SyntaxError> {
    let mut lexer = Lexer { chars: source.chars().collect(), at: 0, line: 1, column: 1, nesting: 0 };
    lexer.run(false)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: u32,
    column: u32,
    nesting: u32,
}

impl Lexer {
    fn place(&self) -> Place {
        Place { line: self.line, column: self.column }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        match c {
            '\n' => (self.line, self.column) = (self.line + 1, 1),
            _ => self.column += 1,
        }
        Some(c)
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    /// Tokens to the end, or with `in_string` to the brace that closes the code in a string.
    fn run(&mut self, in_string: bool) -> Result<Vec<Lexed>, SyntaxError> {
        let mut out: Vec<Lexed> = Vec::new();
        let mut braces = 0_u32;
        loop {
            let spaced = self.blank()?;
            let place = self.place();
            let Some(c) = self.peek(0) else {
                if in_string {
                    return Err(SyntaxError::incomplete(place, "#{ without its }"));
                }
                out.push(Lexed { token: Token::End, place, spaced });
                return Ok(out);
            };
            match c {
                '{' => braces += 1,
                '}' if braces == 0 && in_string => {
                    self.next();
                    out.push(Lexed { token: Token::End, place, spaced });
                    return Ok(out);
                }
                '}' => braces = braces.saturating_sub(1),
                _ => {}
            }
            let token = self.token(c, place, out.last(), spaced)?;
            if token == Token::Newline && self.continues_below() {
                continue;
            }
            out.push(Lexed { token, place, spaced });
        }
    }

    /// Passes over white space and comments; whether there were some.
    fn blank(&mut self) -> Result<bool, SyntaxError> {
        let start = self.at;
        loop {
            match self.peek(0) {
                Some(' ' | '\t' | '\r') => self.skip(1),
                Some('\\') if self.peek(1) == Some('\n') => self.skip(2),
                Some('\\') if self.peek(1).is_none() => {
                    return Err(SyntaxError::incomplete(self.place(), "the line goes on"));
                }
                Some('#') => self.comment(),
                Some('=') if self.column == 1 && self.starts_with("=begin") => self.block_comment()?,
                _ => return Ok(self.at > start),
            }
        }
    }

    fn comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.next();
        }
    }

    fn block_comment(&mut self) -> Result<(), SyntaxError> {
        let place = self.place();
        while self.peek(0).is_some() {
            self.comment();
            self.next();
            if self.starts_with("=end") {
                self.comment();
                return Ok(());
            }
        }
        Err(SyntaxError::incomplete(place, "=begin without =end"))
    }

    /// Whether the next line begins with `.method`.
    fn continues_below(&self) -> bool {
        let rest = &self.chars[self.at..];
        let blank = rest.iter().take_while(|c| c.is_whitespace()).count();
        match &rest[blank..] {
            ['.', c, ..] => *c != '.',
            ['&', '.', ..] => true,
            _ => false,
        }
    }

    fn token(&mut self, c: char, place: Place, last: Option<&Lexed>, spaced: bool) -> Result<Token, SyntaxError> {
        let after_value = last.is_some_and(|last| ends_value(&last.token));
        let after_name = matches!(last, Some(Lexed { token: Token::Name(_), .. }));
        // An operator has space on both sides or on none; `list /x/` is a command and its argument.
        let begins_argument = after_name && spaced && !self.peek(1).is_none_or(char::is_whitespace);
        let operand = !after_value || begins_argument;
        match c {
            '\n' | ';' => {
                self.next();
                Ok(Token::Newline)
            }
            '0'..='9' => self.number(place),
            '`' => Err(SyntaxError::new(place, "commands of the system cannot be run from here")),
            '"' => self.double_quoted(place, '"').map(Token::Text),
            '\'' => self.single_quoted(place).map(|bytes| Token::Text(vec![Part::Text(bytes)])),
            '/' if operand && self.peek(1) != Some('=') => self.regex(place),
            '%' if operand
                && matches!((self.peek(1), self.peek(2)), (Some('w' | 'i'), Some('[' | '(' | '{' | '<'))) =>
            {
                self.words(place)
            }
            '<' if operand && self.starts_with("<<~") => {
                Err(SyntaxError::new(place, "here documents are not supported"))
            }
            ':' if self.peek(1) == Some('"') => {
                self.next();
                match self.double_quoted(place, '"')?.as_slice() {
                    [Part::Text(bytes)] => Ok(Token::Symbol(String::from_utf8_lossy(bytes).into_owned())),
                    _ => Err(SyntaxError::new(place, "a symbol with code in it is not supported")),
                }
            }
            ':' if self.peek(1).is_some_and(begins_name) && (!after_value || spaced) => {
                self.next();
                Ok(Token::Symbol(self.name()))
            }
            '$' | '@' if self.peek(1).is_some_and(|c| begins_name(c) || c == '@' || c.is_ascii_digit()) => {
                self.next();
                let second = if self.peek(0) == Some('@') { self.next() } else { None };
                Ok(Token::Global(format!("{c}{}{}", second.map_or("", |_| "@"), self.name())))
            }
            c if begins_name(c) => Ok(self.word(last)),
            _ => self.sign(place),
        }
    }

    fn sign(&mut self, place: Place) -> Result<Token, SyntaxError> {
        match SIGNS.iter().find(|sign| self.starts_with(sign)) {
            Some(sign) => {
                self.skip(sign.chars().count());
                Ok(Token::Sign(sign))
            }
            None => Err(SyntaxError::new(place, format!("{:?} begins nothing", self.peek(0).unwrap_or(' ')))),
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek(0).filter(|c| continues_name(*c)) {
            name.push(c);
            self.next();
        }
        if let Some(c @ ('?' | '!')) = self.peek(0)
            && self.peek(1) != Some('=')
        {
            name.push(c);
            self.next();
        }
        name
    }

    fn word(&mut self, last: Option<&Lexed>) -> Token {
        let name = self.name();
        let is_method = matches!(last, Some(Lexed { token: Token::Sign("." | "&."), .. }));
        let is_label = self.peek(0) == Some(':')
            && self.peek(1) != Some(':')
            && !matches!(last, Some(Lexed { token: Token::Sign("?"), .. }));
        if is_label && !is_method && self.peek(1).is_none_or(|c| c.is_whitespace() || !begins_name(c)) {
            self.next();
            return Token::Label(name);
        }
        if is_method {
            return Token::Name(name);
        }
        if let Some(keyword) = KEYWORDS.iter().find(|keyword| **keyword == name) {
            return Token::Keyword(keyword);
        }
        match name.chars().next().is_some_and(char::is_uppercase) {
            true => Token::Constant(name),
            false => Token::Name(name),
        }
    }

    fn number(&mut self, place: Place) -> Result<Token, SyntaxError> {
        let mut text = String::new();
        let radix = match (self.peek(0), self.peek(1)) {
            (Some('0'), Some('x' | 'X')) => 16,
            (Some('0'), Some('b' | 'B')) => 2,
            (Some('0'), Some('o')) => 8,
            _ => 10,
        };
        if radix != 10 {
            self.skip(2);
        }
        let mut is_float = false;
        while let Some(c) = self.peek(0) {
            let exponent = radix == 10 && matches!(c, 'e' | 'E');
            let sign = matches!(c, '+' | '-') && is_float && text.ends_with(['e', 'E']);
            let point = radix == 10 && c == '.' && !is_float && self.peek(1).is_some_and(|c| c.is_ascii_digit());
            match c {
                '_' => {}
                c if c.is_digit(radix) || sign => text.push(c),
                c if exponent || point => {
                    is_float = true;
                    text.push(c);
                }
                _ => break,
            }
            self.next();
        }
        if is_float {
            return text.parse().map(Token::Float).map_err(|_| SyntaxError::new(place, format!("{text} is no number")));
        }
        let octal = radix == 10 && text.len() > 1 && text.starts_with('0');
        let radix = if octal { 8 } else { radix };
        i64::from_str_radix(&text, radix)
            .map(Token::Int)
            .map_err(|_| SyntaxError::new(place, format!("{text} is no number of 64 bits")))
    }

    fn single_quoted(&mut self, place: Place) -> Result<Vec<u8>, SyntaxError> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('\'') => return Ok(text.into_bytes()),
                Some('\\') => match self.peek(0) {
                    Some(c @ ('\'' | '\\')) => {
                        self.next();
                        text.push(c);
                    }
                    _ => text.push('\\'),
                },
                Some(c) => text.push(c),
                None => return Err(SyntaxError::incomplete(place, "a string without its closing '")),
            }
        }
    }

    fn double_quoted(&mut self, place: Place, closing: char) -> Result<Vec<Part>, SyntaxError> {
        self.next();
        let mut parts = Vec::new();
        let mut text: Vec<u8> = Vec::new();
        loop {
            match self.next() {
                Some(c) if c == closing => {
                    if !text.is_empty() || parts.is_empty() {
                        parts.push(Part::Text(text));
                    }
                    return Ok(parts);
                }
                Some('\\') => self.escape(place, &mut text)?,
                Some('#') if self.peek(0) == Some('{') => {
                    self.next();
                    self.nesting += 1;
                    if self.nesting > MAX_NESTING {
                        return Err(SyntaxError::new(place, "strings with code in them are nested too deeply"));
                    }
                    let code = self.run(true)?;
                    self.nesting -= 1;
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text)));
                    }
                    parts.push(Part::Code(code));
                }
                Some(c) => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Err(SyntaxError::incomplete(place, "a string without its closing \"")),
            }
        }
    }

    /// What follows a backslash in double quotes.
    fn escape(&mut self, place: Place, text: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(c) = self.next() else {
            return Err(SyntaxError::incomplete(place, "a string without its closing \""));
        };
        match c {
            'n' => text.push(b'\n'),
            't' => text.push(b'\t'),
            'r' => text.push(b'\r'),
            's' => text.push(b' '),
            'e' => text.push(0x1B),
            'a' => text.push(7),
            'b' => text.push(8),
            'f' => text.push(12),
            'v' => text.push(11),
            'x' => match self.digits(16, 2) {
                Some(code) => text.push(code as u8),
                None => return Err(SyntaxError::new(self.place(), "\\x needs one or two hexadecimal digits")),
            },
            'u' => self.unicode(text)?,
            '0'..='7' => {
                let first = c.to_digit(8).unwrap_or(0);
                let mut code = first;
                for _ in 0..2 {
                    let Some(digit) = self.peek(0).and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.next();
                }
                text.push(code as u8);
            }
            '\n' => {}
            c => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        Ok(())
    }

    /// `\uHHHH` or `\u{H...}`.
    fn unicode(&mut self, text: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let place = self.place();
        let braced = self.peek(0) == Some('{');
        if braced {
            self.next();
        }
        let code = self.digits(16, if braced { 6 } else { 4 }).and_then(char::from_u32);
        let closed = !braced || self.next() == Some('}');
        match code.filter(|_| closed) {
            Some(c) => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => return Err(SyntaxError::new(place, "\\u needs the number of a character")),
        }
        Ok(())
    }

    fn digits(&mut self, radix: u32, at_most: usize) -> Option<u32> {
        let mut number = None;
        for _ in 0..at_most {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(radix)) else { break };
            number = Some(number.unwrap_or(0) * radix + digit);
            self.next();
        }
        number
    }

    fn regex(&mut self, place: Place) -> Result<Token, SyntaxError> {
        self.next();
        let mut pattern = String::new();
        loop {
            match self.next() {
                Some('/') => break,
                Some('\\') if self.peek(0) == Some('/') => {
                    self.next();
                    pattern.push('/');
                }
                Some('\\') => pattern.extend(['\\'].into_iter().chain(self.next())),
                Some('\n') | None => return Err(SyntaxError::new(place, "a regular expression without its closing /")),
                Some(c) => pattern.push(c),
            }
        }
        if self.peek(0) == Some('i') {
            self.next();
            pattern = format!("(?i){pattern}");
        }
        Ok(Token::Regex(pattern))
    }

    fn words(&mut self, place: Place) -> Result<Token, SyntaxError> {
        let closing = match self.peek(2) {
            Some('[') => ']',
            Some('(') => ')',
            Some('{') => '}',
            _ => '>',
        };
        self.skip(3);
        let mut text = String::new();
        loop {
            match self.next() {
                Some(c) if c == closing => break,
                Some(c) => text.push(c),
                None => return Err(SyntaxError::incomplete(place, format!("%w without its closing {closing}"))),
            }
        }
        Ok(Token::Words(text.split_whitespace().map(str::to_owned).collect()))
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a value can end with this token: what follows is then an operator rather than the beginning of another value.
fn ends_value(token: &Token) -> bool {
    match token {
        Token::Sign(sign) => matches!(*sign, ")" | "]" | "}"),
        Token::Keyword(word) => matches!(*word, "end" | "self" | "true" | "false" | "nil"),
        Token::Newline | Token::End | Token::Label(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Vec<Token> {
        let mut tokens: Vec<Token> = tokens(source).expect(source).into_iter().map(|lexed| lexed.token).collect();
        assert_eq!(tokens.pop(), Some(Token::End));
        tokens
    }

    fn text(bytes: &[u8]) -> Token {
        Token::Text(vec![Part::Text(bytes.to_vec())])
    }

    #[test]
    fn strings_have_their_bytes() {
        assert_eq!(of(r#""\x00\xFFbin""#), [text(b"\x00\xFFbin")]);
        assert_eq!(of(r#""\001\t\"\\q\u00e9\u{1F600}""#), [text("\u{1}\t\"\\qé😀".as_bytes())]);
        assert_eq!(of(r"'\x00\'\\#{a}'"), [text(br"\x00'\#{a}")]);
        assert_eq!(of("''"), [text(b"")]);
    }

    #[test]
    fn code_in_strings_is_lexed_to_its_brace() {
        let tokens = of("\"r#{ {'a' => \"}\"}['a'] }x\"");
        let [Token::Text(parts)] = tokens.as_slice() else { panic!("{tokens:?}") };
        assert_eq!(parts.len(), 3);
        assert!(matches!(&parts[1], Part::Code(code) if code.len() == 9), "{parts:?}");
    }

    #[test]
    fn numbers_are_read_in_rubys_ways() {
        assert_eq!(of("1_000 0xff 0b11 017"), [1000, 255, 3, 15].map(Token::Int));
        assert_eq!(of("1.5 2e3"), [Token::Float(1.5), Token::Float(2000.0)]);
        assert_eq!(of("1..2"), [Token::Int(1), Token::Sign(".."), Token::Int(2)]);
        assert!(tokens("99999999999999999999").is_err());
    }

    #[test]
    fn a_slash_divides_or_begins_a_pattern() {
        assert_eq!(of("list /t.*/")[1], Token::Regex("t.*".to_owned()));
        assert_eq!(of("a / b")[1], Token::Sign("/"));
        assert_eq!(of("4/2")[1], Token::Sign("/"));
    }

    #[test]
    fn what_is_not_closed_may_go_on() {
        for source in ["'abc", "\"abc", "\"a#{b", "%w[a", "a \\"] {
            assert!(tokens(source).expect_err(source).incomplete, "{source}");
        }
        assert!(!tokens("`ls`").expect_err("refused").incomplete);
    }

    #[test]
    fn a_line_that_begins_with_a_point_goes_on() {
        assert!(!of("a\n  .b").contains(&Token::Newline));
        assert!(of("a\n..b").contains(&Token::Newline));
    }
}
