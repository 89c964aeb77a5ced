//! Java's regular expressions rewritten for Rust's engines. The flags of Java are worked into the text (its case
//! folding, line ends and classes are ASCII's unless asked otherwise), so the engines run without flags. What needs
//! look-around, back references or atomic groups is marked for the backtracking engine.

use super::regex_spec::flags::{
    CASE_INSENSITIVE, COMMENTS, DOTALL, LITERAL, MULTILINE, UNICODE_CASE, UNICODE_CHARACTER_CLASS, UNIX_LINES,
};
use crate::{Error, ErrorKind};
use std::fmt::Write;

/// An expression in the language that `regex` and `fancy-regex` share.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) text: String,
    /// Whether only `fancy-regex` can run it.
    pub(super) fancy: bool,
}

/// Classes within classes beyond this depth are refused.
const MAX_CLASS_DEPTH: usize = 50;

const LINE_END: &str = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])";
const NOT_LINE_END: &str = r"[^\n\r\x{85}\x{2028}\x{2029}]";

/// Rewrites `pattern`.
///
/// # Errors
/// [`ErrorKind::PatternSyntax`] for what Java refuses, as far as it is noticed here (the engines notice the rest),
/// [`ErrorKind::UnsupportedOperation`] for what Java knows and Rust's engines do not.
pub(super) fn translate(pattern: &str, flags: i32) -> Result<Translated, Error> {
    let mut translator = Translator {
        pattern,
        chars: pattern.chars().collect(),
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        fancy: false,
        flags,
        groups: 0,
        open: Vec::new(),
        atom: None,
    };
    if flags & LITERAL != 0 {
        pattern.chars().for_each(|c| translator.literal(c));
    } else {
        translator.expression()?;
    }
    Ok(Translated { text: translator.out, fancy: translator.fancy })
}

struct Translator<'a> {
    pattern: &'a str,
    chars: Vec<char>,
    at: usize,
    out: String,
    fancy: bool,
    flags: i32,
    /// Capturing groups so far.
    groups: u32,
    /// For each open group the flags outside it, and where its text begins.
    open: Vec<(i32, usize)>,
    /// Where in `out` begins what a quantifier would repeat.
    atom: Option<usize>,
}

/// What an escape stands for.
enum Escape {
    Char(char),
    /// A class, in brackets or as `\p{..}`: good inside and outside of a class.
    Class(String),
}

impl Translator<'_> {
    fn has(&self, flag: i32) -> bool {
        self.flags & flag != 0
    }

    fn syntax(&self, what: &str) -> Error {
        Error::new(ErrorKind::PatternSyntax, format!("{what} near index {} of {:?}", self.at, self.pattern))
    }

    fn unsupported(&self, what: &str) -> Error {
        let message = format!("{what} near index {} of {:?} is not supported", self.at, self.pattern);
        Error::new(ErrorKind::UnsupportedOperation, message)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, text: &str) -> bool {
        let matches = self.chars[self.at..].iter().copied().take(text.len()).eq(text.chars());
        self.at += if matches { text.len() } else { 0 };
        matches
    }

    /// White space and comments, where they do not count.
    fn skip_comments(&mut self) {
        while self.has(COMMENTS) {
            match self.peek() {
                Some(' ' | '\t'..='\r') => self.at += 1,
                Some('#') => {
                    while !matches!(self.next(), None | Some('\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')) {}
                }
                _ => return,
            }
        }
    }

    fn expression(&mut self) -> Result<(), Error> {
        loop {
            self.skip_comments();
            let Some(c) = self.next() else { break };
            let start = self.out.len();
            match c {
                '(' => {
                    self.open_group(start)?;
                    continue;
                }
                ')' => {
                    let (flags, start) = self.open.pop().ok_or_else(|| self.syntax("Unmatched closing ')'"))?;
                    self.flags = flags;
                    self.out.push(')');
                    self.atom = Some(start);
                    continue;
                }
                '|' => {
                    self.out.push('|');
                    self.atom = None;
                    continue;
                }
                '*' | '+' | '?' | '{' => {
                    self.quantifier(c)?;
                    continue;
                }
                '.' if self.has(DOTALL) => self.out.push_str("(?s:.)"),
                '.' if self.has(UNIX_LINES) => self.out.push_str(r"[^\n]"),
                '.' => self.out.push_str(NOT_LINE_END),
                '^' => self.line_start(),
                '$' if self.has(MULTILINE) => self.line_end(),
                '$' => self.text_end(),
                '[' => {
                    let class = self.class(0)?;
                    self.push_class(&class);
                }
                '\\' => self.escape_outside()?,
                c => self.literal(c),
            }
            self.atom = Some(start);
        }
        if self.open.is_empty() { Ok(()) } else { Err(self.syntax("Unclosed group")) }
    }

    fn literal(&mut self, c: char) {
        if self.has(CASE_INSENSITIVE) && self.has(UNICODE_CASE) && c.is_alphabetic() {
            let _ = write!(self.out, "(?i:{c})");
        } else if self.has(CASE_INSENSITIVE) && c.is_ascii_alphabetic() {
            let _ = write!(self.out, "[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase());
        } else if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            let _ = write!(self.out, r"\x{{{:x}}}", u32::from(c));
        }
    }

    fn push_class(&mut self, class: &str) {
        if self.has(CASE_INSENSITIVE) && self.has(UNICODE_CASE) {
            let _ = write!(self.out, "(?i:{class})");
        } else {
            self.out.push_str(class);
        }
    }

    fn line_start(&mut self) {
        if !self.has(MULTILINE) {
            self.out.push_str(r"\A");
            return;
        }
        self.fancy = true;
        // Java's ^ does not match at the very end, not even of an empty text.
        self.out.push_str(if self.has(UNIX_LINES) {
            r"(?:\A|(?<=\n))(?!\z)"
        } else {
            r"(?:\A|(?<=[\n\x{85}\x{2028}\x{2029}])|(?<=\r)(?!\n))(?!\z)"
        });
    }

    fn line_end(&mut self) {
        self.fancy = true;
        self.out.push_str(if self.has(UNIX_LINES) {
            r"(?=\n|\z)"
        } else {
            r"(?:(?=[\r\x{85}\x{2028}\x{2029}])|\z|(?<!\r)(?=\n))"
        });
    }

    /// `$` and `\Z`: the end, or before the last line's end. Where nothing can follow, the line's end may as well
    /// be taken, for only whether there is a match counts.
    fn text_end(&mut self) {
        let is_last = self.open.is_empty() && matches!(self.peek(), None | Some('|'));
        let line_end = if self.has(UNIX_LINES) { r"\n" } else { LINE_END };
        if is_last {
            let _ = write!(self.out, r"(?:{line_end}?\z)");
        } else {
            self.fancy = true;
            let not_within = if self.has(UNIX_LINES) { "" } else { r"(?!(?<=\r)\n)" };
            let _ = write!(self.out, r"(?:{not_within}(?={line_end}?\z)|\z)");
        }
    }

    fn open_group(&mut self, start: usize) -> Result<(), Error> {
        let outside = self.flags;
        let mut opens = true;
        if !self.eat("?") {
            self.groups += 1;
            self.out.push('(');
        } else if let Some(kind) = ["<=", "<!", "=", "!", ">"].iter().find(|kind| self.eat(kind)) {
            self.fancy = true;
            let _ = write!(self.out, "(?{kind}");
        } else if self.eat("<") {
            self.groups += 1;
            let name = self.name('>')?;
            let _ = write!(self.out, "(?<{name}>");
        } else {
            opens = self.group_flags()?;
            if opens {
                self.out.push_str("(?:");
            }
        }
        if opens {
            self.open.push((outside, start));
        }
        self.atom = None;
        Ok(())
    }

    fn name(&mut self, end: char) -> Result<String, Error> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(c) if c == end && !name.is_empty() => return Ok(name),
                Some(c) if c.is_ascii_alphabetic() || (c.is_ascii_digit() && !name.is_empty()) => name.push(c),
                _ => return Err(self.syntax("a group's name is made of letters and digits")),
            }
        }
    }

    /// After `(?`: `flags)` for what follows, or `flags:` for a group. Whether it was a group.
    fn group_flags(&mut self) -> Result<bool, Error> {
        let (mut flags, mut on) = (self.flags, true);
        let opens = loop {
            let flag = match self.next() {
                Some('i') => CASE_INSENSITIVE,
                Some('d') => UNIX_LINES,
                Some('m') => MULTILINE,
                Some('s') => DOTALL,
                Some('u') => UNICODE_CASE,
                Some('x') => COMMENTS,
                Some('U') => UNICODE_CHARACTER_CLASS | UNICODE_CASE,
                Some('-') if on => {
                    on = false;
                    0
                }
                Some(')') => break false,
                Some(':') => break true,
                _ => return Err(self.syntax("Unknown inline modifier")),
            };
            if on {
                flags |= flag;
            } else {
                flags &= !flag;
            }
        };
        // A group's own flags end with it: its end restores what was outside.
        self.flags = flags;
        Ok(opens)
    }

    fn quantifier(&mut self, c: char) -> Result<(), Error> {
        let mut text = String::from(c);
        if c == '{' {
            while let Some(c) = self.next() {
                text.push(c);
                if c == '}' {
                    break;
                }
            }
            let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or_default();
            let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
            let number = |n: &str| n.bytes().all(|b| b.is_ascii_digit()).then(|| n.parse::<i32>().ok()).flatten();
            let Some(least) = number(least) else { return Err(self.syntax("Illegal repetition")) };
            if !most.is_empty() && number(most).is_none_or(|most| most < least) {
                return Err(self.syntax("Illegal repetition range"));
            }
        }
        let (lazy, possessive) = (self.eat("?"), self.eat("+"));
        let Some(atom) = self.atom.take() else {
            // Java repeats the nothing before it.
            return if c == '{' { Ok(()) } else { Err(self.syntax(&format!("Dangling meta character '{c}'"))) };
        };
        if lazy && possessive {
            return Err(self.syntax("Dangling meta character '+'"));
        }
        if possessive {
            self.fancy = true;
            self.out.insert_str(atom, "(?>");
            let _ = write!(self.out, "{text})");
        } else {
            self.out.push_str(&text);
            self.out.push_str(if lazy { "?" } else { "" });
        }
        Ok(())
    }

    fn escape_outside(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some('A' | 'G') => self.out.push_str(r"\A"),
            Some('z') => self.out.push_str(r"\z"),
            Some('Z') => {
                self.at += 1;
                self.text_end();
                return Ok(());
            }
            Some('b') if self.chars.get(self.at + 1) == Some(&'{') => return Err(self.unsupported(r"\b{g}")),
            Some('b') => self.out.push_str(r"\b"),
            Some('B') => self.out.push_str(r"\B"),
            Some('R') => self.out.push_str(r"(?:\r\n|[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])"),
            Some('X') => return Err(self.unsupported(r"\X")),
            Some('1'..='9') => {
                self.back_reference();
                return Ok(());
            }
            Some('k') => {
                self.at += 1;
                if !self.eat("<") {
                    return Err(self.syntax(r"\k is not followed by '<' for named capturing group"));
                }
                let name = self.name('>')?;
                self.fancy = true;
                let fold = if self.has(CASE_INSENSITIVE) { "i" } else { "" };
                let _ = write!(self.out, r"(?{fold}:\k<{name}>)");
                return Ok(());
            }
            Some('Q') => {
                self.at += 1;
                while self.at < self.chars.len() && !self.eat(r"\E") {
                    let c = self.chars[self.at];
                    self.at += 1;
                    self.literal(c);
                }
                return Ok(());
            }
            _ => {
                match self.escape()? {
                    Escape::Char(c) => self.literal(c),
                    Escape::Class(class) => self.push_class(&class),
                }
                return Ok(());
            }
        }
        self.at += 1;
        Ok(())
    }

    /// As many digits as still name a group.
    fn back_reference(&mut self) {
        let mut group = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let longer = group * 10 + digit;
            if group > 0 && longer > self.groups {
                break;
            }
            group = longer;
            self.at += 1;
        }
        self.fancy = true;
        let fold = if self.has(CASE_INSENSITIVE) { "i" } else { "" };
        let _ = write!(self.out, r"(?{fold}:\{group})");
    }

    /// What stands after a backslash, inside or outside of a class.
    fn escape(&mut self) -> Result<Escape, Error> {
        let Some(c) = self.next() else { return Err(self.syntax("Unexpected internal error: stray backslash")) };
        let unicode = self.has(UNICODE_CHARACTER_CLASS);
        let class = |positive: bool, text: &str| {
            let not = if positive { "" } else { "^" };
            Ok(Escape::Class(format!("[{not}{text}]")))
        };
        Ok(Escape::Char(match c {
            'd' | 'D' => return class(c == 'd', if unicode { r"\d" } else { "0-9" }),
            'w' | 'W' => return class(c == 'w', if unicode { r"\w" } else { "0-9A-Za-z_" }),
            's' | 'S' => return class(c == 's', if unicode { r"\s" } else { r"\t\n\x0B\x0C\r\x20" }),
            'h' | 'H' => {
                return class(c == 'h', r"\t\x20\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}");
            }
            'v' | 'V' => return class(c == 'v', r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}"),
            'p' | 'P' => return self.property(c == 'p').map(Escape::Class),
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\x0C',
            'a' => '\x07',
            'e' => '\x1B',
            'c' => {
                let control =
                    self.next().filter(char::is_ascii).ok_or_else(|| self.syntax("Illegal control escape sequence"))?;
                char::from(control as u8 ^ 64)
            }
            '0' => self.octal()?,
            'x' if self.eat("{") => {
                let mut code: u32 = 0;
                loop {
                    match self.next() {
                        Some('}') => break,
                        Some(c) if c.is_ascii_hexdigit() && code < 0x11_0000 => {
                            code = code * 16 + c.to_digit(16).unwrap_or(0);
                        }
                        _ => return Err(self.syntax("Unclosed hexadecimal escape sequence")),
                    }
                }
                self.code_point(code)?
            }
            'x' => {
                let code = self.hex(2)?;
                self.code_point(code)?
            }
            'u' => {
                let high = self.hex(4)?;
                let before = self.at;
                if (0xD800..0xDC00).contains(&high) && self.eat(r"\u") {
                    match self.hex(4)? {
                        low @ 0xDC00..0xE000 => self.code_point(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))?,
                        _ => {
                            self.at = before;
                            self.code_point(high)?
                        }
                    }
                } else {
                    self.code_point(high)?
                }
            }
            c if c.is_ascii_alphabetic() => return Err(self.syntax("Illegal/unsupported escape sequence")),
            c => c,
        }))
    }

    fn code_point(&self, code: u32) -> Result<char, Error> {
        char::from_u32(code).ok_or_else(|| match code {
            0xD800..0xE000 => self.unsupported("half a character"),
            _ => self.syntax("Hexadecimal codepoint is too big"),
        })
    }

    fn hex(&mut self, digits: usize) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.next().and_then(|c| c.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.syntax("Illegal hexadecimal escape sequence"))?;
        }
        Ok(code)
    }

    /// One to three digits, at most 0377.
    fn octal(&mut self) -> Result<char, Error> {
        let mut code = 0;
        let mut digits = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(8))
            && digits < 3
            && code * 8 + digit <= 0o377
        {
            code = code * 8 + digit;
            digits += 1;
            self.at += 1;
        }
        if digits == 0 {
            return Err(self.syntax("Illegal octal escape sequence"));
        }
        self.code_point(code)
    }

    /// After `\p` or `\P`.
    fn property(&mut self, positive: bool) -> Result<String, Error> {
        let name: String = if self.eat("{") {
            let end = self.chars[self.at..].iter().position(|c| *c == '}');
            let end = end.ok_or_else(|| self.syntax("Unclosed character family"))?;
            let name = self.chars[self.at..self.at + end].iter().collect();
            self.at += end + 1;
            name
        } else {
            self.next().ok_or_else(|| self.syntax("Unknown character property"))?.into()
        };
        let unicode = self.has(UNICODE_CHARACTER_CLASS);
        let folded = self.has(CASE_INSENSITIVE);
        let ascii = match name.as_str() {
            "Lower" | "Upper" if folded && !unicode => "A-Za-z",
            "Lower" | "Upper" | "Lu" | "Ll" | "Lt" | "IsLu" | "IsLl" | "IsLt" | "javaLowerCase" | "javaUpperCase"
                if folded =>
            {
                r"\p{Lu}\p{Ll}\p{Lt}"
            }
            "Lower" if unicode => r"\p{Lowercase}",
            "Upper" if unicode => r"\p{Uppercase}",
            "Alpha" if unicode => r"\p{Alphabetic}",
            "Digit" if unicode => r"\p{Nd}",
            "Alnum" if unicode => r"\p{Alphabetic}\p{Nd}",
            "Punct" if unicode => r"\p{P}",
            "Space" if unicode => r"\p{White_Space}",
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => r"\x00-\x7F",
            "Alpha" => "A-Za-z",
            "Digit" => "0-9",
            "Alnum" => "0-9A-Za-z",
            "Punct" => r"!-/:-@\[-`{-~\x{7e}",
            "Graph" => "!-~",
            "Print" => r"\x20-~",
            "Blank" => r"\x20\t",
            "Cntrl" => r"\x00-\x1F\x7F",
            "XDigit" => "0-9A-Fa-f",
            "Space" => r"\t\n\x0B\x0C\r\x20",
            "L1" => r"\x00-\x{FF}",
            "all" => r"\x00-\x{10FFFF}",
            "LC" | "IsLC" => r"\p{Lu}\p{Ll}\p{Lt}",
            "LD" | "javaLetterOrDigit" => r"\p{L}\p{Nd}",
            "javaLowerCase" => r"\p{Lowercase}",
            "javaUpperCase" => r"\p{Uppercase}",
            "javaAlphabetic" => r"\p{Alphabetic}",
            "javaLetter" | "IsLetter" => r"\p{L}",
            "javaDigit" | "IsDigit" => r"\p{Nd}",
            "javaTitleCase" | "IsTitlecase" => r"\p{Lt}",
            "javaWhitespace" => {
                r"\t-\r\x1C-\x20\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
            }
            "javaSpaceChar" => r"\p{Z}",
            "IsPunctuation" => r"\p{P}",
            "IsControl" => r"\p{Cc}",
            _ => "",
        };
        let not = if positive { "" } else { "^" };
        if !ascii.is_empty() {
            return Ok(format!("[{not}{ascii}]"));
        }
        let (key, value) = name.split_once('=').unwrap_or(("", &name));
        let value = match key {
            "blk" | "block" => return Err(self.unsupported("a property of a block")),
            "" if value.starts_with("In") || value.starts_with("java") => {
                return Err(self.unsupported("this property"));
            }
            "" => value.strip_prefix("Is").unwrap_or(value),
            _ => value,
        };
        if !value.chars().all(|c| c.is_ascii_alphanumeric() || "_- ".contains(c)) || value.is_empty() {
            return Err(self.syntax("Unknown character property name"));
        }
        Ok(format!(r"[{not}\p{{{value}}}]"))
    }

    /// After `[`: a whole class, in the engines' words. Its brackets are the engines' own (unions, `&&`).
    fn class(&mut self, depth: usize) -> Result<String, Error> {
        if depth > MAX_CLASS_DEPTH {
            return Err(self.unsupported("a class this deep"));
        }
        let mut out = String::from("[");
        if self.eat("^") {
            out.push('^');
        }
        let mut empty = true;
        loop {
            self.skip_comments();
            let Some(c) = self.next() else { return Err(self.syntax("Unclosed character class")) };
            let from = match c {
                ']' if !empty => break,
                '[' => {
                    let inner = self.class(depth + 1)?;
                    out.push_str(&inner);
                    empty = false;
                    continue;
                }
                '&' if self.eat("&") => {
                    out.push_str("&&");
                    continue;
                }
                '\\' if self.eat("Q") => {
                    while self.at < self.chars.len() && !self.eat(r"\E") {
                        let c = self.chars[self.at];
                        self.at += 1;
                        self.class_range(&mut out, c, c);
                        empty = false;
                    }
                    continue;
                }
                '\\' => match self.escape()? {
                    Escape::Char(c) => c,
                    Escape::Class(class) => {
                        out.push_str(&class);
                        empty = false;
                        continue;
                    }
                },
                c => c,
            };
            empty = false;
            self.skip_comments();
            let is_range = self.peek() == Some('-') && !matches!(self.chars.get(self.at + 1), None | Some(']' | '['));
            let to = if is_range {
                self.at += 1;
                self.skip_comments();
                match self.next() {
                    Some('\\') => match self.escape()? {
                        Escape::Char(c) => c,
                        Escape::Class(_) => return Err(self.syntax("Illegal character range")),
                    },
                    Some(c) => c,
                    None => return Err(self.syntax("Unclosed character class")),
                }
            } else {
                from
            };
            if to < from {
                return Err(self.syntax("Illegal character range"));
            }
            self.class_range(&mut out, from, to);
        }
        out.push(']');
        Ok(out)
    }

    fn class_range(&self, out: &mut String, from: char, to: char) {
        let mut push = |from: u32, to: u32| {
            let _ = write!(out, r"\x{{{from:x}}}-\x{{{to:x}}}");
        };
        let (from, to) = (u32::from(from), u32::from(to));
        push(from, to);
        if self.has(CASE_INSENSITIVE) {
            for (first, last, other) in [(u32::from('a'), u32::from('z'), -32), (u32::from('A'), u32::from('Z'), 32)] {
                let (from, to) = (from.max(first), to.min(last));
                if from <= to {
                    push(from.wrapping_add_signed(other), to.wrapping_add_signed(other));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
