//! Regular expressions in Java's language, run by Rust's engines.

use super::java_regex;
use crate::{Error, ErrorKind};
use std::borrow::Cow;
use std::sync::Arc;

/// Java's `Pattern` flags, as they travel.
pub mod flags {
    /// Only `\n` ends a line.
    pub const UNIX_LINES: i32 = 1;
    /// Letters match in either case (ASCII only without [`UNICODE_CASE`]).
    pub const CASE_INSENSITIVE: i32 = 2;
    /// White space and `#` comments are not part of the expression.
    pub const COMMENTS: i32 = 4;
    /// `^` and `$` match at each line.
    pub const MULTILINE: i32 = 8;
    /// The expression is plain text.
    pub const LITERAL: i32 = 16;
    /// `.` matches line ends too. HBase's default.
    pub const DOTALL: i32 = 32;
    /// Case folding knows Unicode.
    pub const UNICODE_CASE: i32 = 64;
    /// Canonically equivalent text is equal; accepted, but compared as it stands.
    pub const CANON_EQ: i32 = 128;
    /// `\w`, `\d`, `\s` and POSIX classes know Unicode.
    pub const UNICODE_CHARACTER_CLASS: i32 = 256;
}

/// Which of HBase's two engines was asked for. Both are served by the same one here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RegexEngine {
    /// `java.util.regex`.
    Java,
    /// Joni, with Java's syntax.
    Joni,
}

impl RegexEngine {
    /// The engine called `name` on the wire.
    ///
    /// # Errors
    /// [`ErrorKind::IllegalArgument`] for any other name.
    pub fn from_name(name: &str) -> Result<RegexEngine, Error> {
        match name {
            "JAVA" => Ok(RegexEngine::Java),
            "JONI" => Ok(RegexEngine::Joni),
            _ => Err(Error::illegal(format!(
                "No enum constant org.apache.hadoop.hbase.filter.RegexStringComparator.EngineType.{name}"
            ))),
        }
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            RegexEngine::Java => "JAVA",
            RegexEngine::Joni => "JONI",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Charset {
    Utf8,
    Latin1,
    Ascii,
    Utf16 { big_endian: bool, marked: bool },
}

#[derive(Debug)]
enum Program {
    Plain(regex::Regex),
    /// Look-around, back references, possessive and atomic groups.
    Fancy(fancy_regex::Regex),
}

/// A compiled regular expression. Two are equal when what travels is equal. Cloning shares the program.
#[derive(Clone, Debug)]
pub struct RegexSpec {
    pattern: String,
    flags: i32,
    charset_name: String,
    engine: RegexEngine,
    charset: Charset,
    program: Arc<Program>,
    compiled_bytes: usize,
}

impl PartialEq for RegexSpec {
    fn eq(&self, other: &RegexSpec) -> bool {
        (&self.pattern, self.flags, &self.charset_name, self.engine)
            == (&other.pattern, other.flags, &other.charset_name, other.engine)
    }
}

impl RegexSpec {
    /// Compiles `pattern` under Java's `flags`. An empty or illegal charset name means UTF-8, as in HBase.
    ///
    /// # Errors
    /// [`ErrorKind::PatternSyntax`], [`ErrorKind::UnsupportedOperation`] for what Java knows and this engine does
    /// not, [`ErrorKind::UnsupportedCharset`].
    pub fn new(pattern: &str, flags: i32, charset_name: &str, engine: RegexEngine) -> Result<RegexSpec, Error> {
        let charset = charset(charset_name)?;
        let (program, compiled_bytes) = compile(pattern, flags)?;
        let charset_name = if charset_name.is_empty() { "UTF-8" } else { charset_name };
        Ok(RegexSpec {
            pattern: pattern.to_owned(),
            flags,
            charset_name: charset_name.to_owned(),
            engine,
            charset,
            program: Arc::new(program),
            compiled_bytes,
        })
    }

    /// As HBase's constructor with only an expression: DOTALL, UTF-8, Java's engine.
    ///
    /// # Errors
    /// As [`RegexSpec::new`].
    pub fn of(pattern: &str) -> Result<RegexSpec, Error> {
        RegexSpec::new(pattern, flags::DOTALL, "UTF-8", RegexEngine::Java)
    }

    /// The expression.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Java's flags.
    pub fn flags(&self) -> i32 {
        self.flags
    }

    /// The character set's name.
    pub fn charset_name(&self) -> &str {
        &self.charset_name
    }

    /// The engine that was asked for.
    pub fn engine(&self) -> RegexEngine {
        self.engine
    }

    /// An upper bound of the memory that the compiled expression takes: a few characters may need megabytes.
    pub fn compiled_bytes(&self) -> usize {
        self.compiled_bytes
    }

    /// Whether the expression is found somewhere in `text`.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedOperation`] when the expression backtracks beyond all measure.
    pub fn is_found(&self, text: &[u8]) -> Result<bool, Error> {
        let text = decode(self.charset, text);
        match &*self.program {
            Program::Plain(regex) => Ok(regex.is_match(&text)),
            Program::Fancy(regex) => regex.is_match(&*text).map_err(|e| {
                Error::new(ErrorKind::UnsupportedOperation, format!("regular expression {:?}: {e}", self.pattern))
            }),
        }
    }
}

/// UTF-8 text is looked at in place; everything else is made a string first, as Java does.
fn decode(charset: Charset, text: &[u8]) -> Cow<'_, str> {
    match charset {
        Charset::Utf8 => String::from_utf8_lossy(text),
        Charset::Latin1 if !text.is_ascii() => text.iter().map(|b| char::from(*b)).collect::<String>().into(),
        Charset::Ascii if !text.is_ascii() => {
            text.iter().map(|b| if b.is_ascii() { char::from(*b) } else { '\u{FFFD}' }).collect::<String>().into()
        }
        Charset::Latin1 | Charset::Ascii => String::from_utf8_lossy(text),
        Charset::Utf16 { big_endian, marked } => {
            let (text, big_endian) = match text {
                [0xFE, 0xFF, rest @ ..] if marked => (rest, true),
                [0xFF, 0xFE, rest @ ..] if marked => (rest, false),
                _ => (text, big_endian),
            };
            let (units, rest) = text.as_chunks::<2>();
            let units = units.iter().map(|u| if big_endian { u16::from_be_bytes(*u) } else { u16::from_le_bytes(*u) });
            let mut out: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{FFFD}')).collect();
            if !rest.is_empty() {
                out.push('\u{FFFD}');
            }
            out.into()
        }
    }
}

fn charset(name: &str) -> Result<Charset, Error> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-+.:_".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(legal) {
        return Ok(Charset::Utf8);
    }
    Ok(match name.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "unicode-1-1-utf-8" => Charset::Utf8,
        "us-ascii" | "ascii" | "ascii7" | "iso646-us" | "iso_646.irv:1991" | "iso_646.irv:1983" | "646" | "cp367"
        | "ibm367" | "csascii" | "us" | "iso-ir-6" | "ansi_x3.4-1986" | "ansi_x3.4-1968" | "default" => Charset::Ascii,
        "iso-8859-1" | "iso8859-1" | "iso8859_1" | "iso_8859-1" | "iso_8859_1" | "iso_8859-1:1987" | "iso-ir-100"
        | "latin1" | "l1" | "8859_1" | "819" | "cp819" | "ibm819" | "ibm-819" | "csisolatin1" => Charset::Latin1,
        "utf-16" | "utf_16" | "utf16" | "unicode" | "unicodebig" => Charset::Utf16 { big_endian: true, marked: true },
        "utf-16be" | "utf_16be" | "iso-10646-ucs-2" | "x-utf-16be" | "unicodebigunmarked" => {
            Charset::Utf16 { big_endian: true, marked: false }
        }
        "utf-16le" | "utf_16le" | "x-utf-16le" | "unicodelittleunmarked" => {
            Charset::Utf16 { big_endian: false, marked: false }
        }
        _ => return Err(Error::new(ErrorKind::UnsupportedCharset, name)),
    })
}

/// What a compiled piece may take: tried one after the other, so that something is known of how much it takes.
const PIECE_BYTES: [usize; 3] = [16 << 10, 512 << 10, 10 << 20];
/// What all pieces of one expression may take.
const MAX_COMPILED_BYTES: usize = 64 << 20;

/// The program, and a bound of what it takes.
fn compile(pattern: &str, flags: i32) -> Result<(Program, usize), Error> {
    let translated = java_regex::translate(pattern, flags)?;
    let text = &translated.text;
    // The backtracking engine has every plain piece between its own constructs compiled for itself.
    let begins_piece = |byte: &u8| b"([\\.|*+?{".contains(byte);
    let pieces = if translated.fancy { 1 + text.bytes().filter(begins_piece).count() } else { 1 };
    let too_big = || {
        let message = format!("regular expression {pattern:?} needs more than {MAX_COMPILED_BYTES} bytes compiled");
        Error::new(ErrorKind::UnsupportedOperation, message)
    };
    let mut last = too_big();
    for piece_bytes in PIECE_BYTES {
        let bytes = piece_bytes.saturating_mul(pieces);
        if bytes > MAX_COMPILED_BYTES {
            break;
        }
        // Memory for states found while matching.
        let states_bytes = (piece_bytes * 16).min(2 << 20);
        let program = if translated.fancy {
            let mut builder = fancy_regex::RegexBuilder::new(text);
            builder.delegate_size_limit(piece_bytes).delegate_dfa_size_limit(states_bytes);
            builder.build().map(Program::Fancy).map_err(|e| refused(pattern, &e))
        } else {
            let mut builder = regex::RegexBuilder::new(text);
            builder.size_limit(piece_bytes).dfa_size_limit(states_bytes);
            builder.build().map(Program::Plain).map_err(|e| match e {
                regex::Error::CompiledTooBig(_) => too_big(),
                other => refused(pattern, &other),
            })
        };
        match program {
            Ok(program) => return Ok((program, bytes)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn refused(pattern: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::PatternSyntax, format!("{pattern:?}: {error}"))
}
