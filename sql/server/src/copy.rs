//! `COPY`: the statement, its forms of rows (text, csv, binary), and rows on their way out.

use bytes::{BufMut, Bytes, BytesMut};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use pgwire::messages::data::DataRow;

use crate::ddl::Name;
use crate::ddl::words::Words;
use crate::error::{SqlError, SqlState};

/// What binary rows begin with.
pub const BINARY_SIGNATURE: &[u8] = b"PGCOPY\n\xFF\r\n\0";
/// The same with no flags and no more in front of the first row.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xFF\r\n\0\0\0\0\0\0\0\0\0";
/// What they end with.
const BINARY_TRAILER: &[u8] = &[0xFF, 0xFF];

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Columns between tabs.
    Text,
    /// Comma-separated values.
    Csv,
    /// PostgreSQL's binary values.
    Binary,
}

/// `WITH (...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub form: Form,
    pub delimiter: u8,
    pub null: Vec<u8>,
    pub header: bool,
    pub quote: u8,
    pub escape: u8,
}

/// What is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A table, or these columns of it.
    Table(Name, Vec<String>),
    /// The rows of a query.
    Query(String),
}

/// The statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    pub source: Source,
    /// From the client, not to it.
    pub is_from: bool,
    pub options: Options,
}

/// The statement, if it is a `COPY`.
///
/// # Errors
/// It is one, and wrong.
pub fn parse(sql: &str) -> Result<Option<Copy>, SqlError> {
    let start = sql.trim_start().as_bytes();
    if !start.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"copy")) {
        return Ok(None);
    }
    let mut words = Words::new(sql)?;
    if !words.take("copy") {
        return Ok(None);
    }
    let (source, mut words) = if words.take_token(&Token::LParen) {
        let (query, rest) = in_brackets(sql)?;
        (Source::Query(query), Words::new(&rest)?)
    } else {
        let first = words.name()?;
        let name = if words.take_token(&Token::Period) {
            Name { schema: first, name: words.name()? }
        } else {
            Name { schema: "public".to_owned(), name: first }
        };
        let columns = if words.peek() == Some(&Token::LParen) { words.list(Words::name)? } else { Vec::new() };
        (Source::Table(name, columns), words)
    };
    let is_from = words.take("from");
    if !is_from {
        words.expect("to")?;
    }
    if !words.take(if is_from { "stdin" } else { "stdout" }) {
        let what = "COPY reads and writes no files of the server: use STDIN or STDOUT, or \\copy in psql";
        return Err(SqlError::unsupported(what));
    }
    if is_from && matches!(source, Source::Query(_)) {
        return Err(words.error());
    }
    let options = options(&mut words)?;
    if words.is_over() { Ok(Some(Copy { source, is_from, options })) } else { Err(words.error()) }
}

/// The text in the first brackets, and what follows them.
fn in_brackets(sql: &str) -> Result<(String, String), SqlError> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).with_unescape(false).tokenize();
    let tokens = tokens.map_err(|e| SqlError::new(SqlState::SYNTAX_ERROR, e.to_string()))?;
    let (mut inside, mut after, mut depth, mut is_over) = (String::new(), String::new(), 0, false);
    for token in tokens {
        match token {
            _ if is_over => after.push_str(&token.to_string()),
            Token::LParen => {
                depth += 1;
                if depth > 1 {
                    inside.push('(');
                }
            }
            Token::RParen => {
                depth -= 1;
                is_over = depth == 0;
                if !is_over {
                    inside.push(')');
                }
            }
            _ if depth > 0 => inside.push_str(&token.to_string()),
            _ => {}
        }
    }
    if is_over { Ok((inside, after)) } else { Err(SqlError::new(SqlState::SYNTAX_ERROR, "unbalanced brackets")) }
}

fn options(words: &mut Words) -> Result<Options, SqlError> {
    let mut form = Form::Text;
    let (mut delimiter, mut null, mut header, mut quote, mut escape) = (None, None, false, None, None);
    let wrong = |what: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what);
    let one_byte = |name: &str, text: &str| match text.as_bytes() {
        [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err(wrong(format!("COPY {name} must be a single one-byte character"))),
    };
    words.take("with");
    let in_brackets = words.take_token(&Token::LParen);
    while !words.is_over() {
        let name = words.name()?;
        let has_value = !matches!(words.peek(), None | Some(Token::Comma | Token::RParen));
        match name.as_str() {
            "csv" | "binary" | "text" if !in_brackets => form = form_of(&name)?,
            "format" => form = form_of(words.literal()?.text())?,
            "header" if in_brackets && has_value => {
                header = matches!(words.literal()?.text().to_ascii_lowercase().as_str(), "true" | "on" | "1");
            }
            "header" => header = true,
            "delimiter" | "null" | "quote" | "escape" => {
                words.take("as");
                let value = words.literal()?;
                let text = value.text();
                match name.as_str() {
                    "delimiter" => delimiter = Some(one_byte("delimiter", text)?),
                    "null" => null = Some(text.as_bytes().to_vec()),
                    "quote" => quote = Some(one_byte("quote", text)?),
                    _ => escape = Some(one_byte("escape", text)?),
                }
            }
            "encoding" => {
                let name = words.literal()?.text().to_ascii_lowercase();
                if !matches!(name.as_str(), "utf8" | "utf-8" | "unicode") {
                    return Err(SqlError::unsupported(format!(
                        "encoding {name} is not supported: there is UTF8 alone"
                    )));
                }
            }
            _ => return Err(SqlError::unsupported(format!("COPY option \"{name}\" is not supported"))),
        }
        if in_brackets && words.take_token(&Token::RParen) {
            break;
        }
        if in_brackets {
            words.expect_token(&Token::Comma)?;
        }
    }
    let quote = quote.unwrap_or(b'"');
    Ok(Options {
        form,
        delimiter: delimiter.unwrap_or(if form == Form::Csv { b',' } else { b'\t' }),
        null: null.unwrap_or_else(|| if form == Form::Csv { Vec::new() } else { b"\\N".to_vec() }),
        header,
        quote,
        escape: escape.unwrap_or(quote),
    })
}

fn form_of(name: &str) -> Result<Form, SqlError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "text" => Form::Text,
        "csv" => Form::Csv,
        "binary" => Form::Binary,
        _ => {
            let message = format!("COPY format \"{name}\" not recognized");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    })
}

/// Writes rows in a form.
pub struct Out(pub Options);

impl Out {
    /// What comes before all rows.
    pub fn begin(&self, columns: &[&str]) -> Bytes {
        let mut out = BytesMut::new();
        match self.0.form {
            Form::Binary => out.put_slice(BINARY_HEADER),
            _ if self.0.header => self.line(columns.iter().map(|name| Some(name.as_bytes())), &mut out),
            _ => {}
        }
        out.freeze()
    }

    /// A row, whose values are texts unless the form is binary.
    pub fn row(&self, row: &DataRow) -> Bytes {
        let mut out = BytesMut::with_capacity(row.data.len() + 2);
        if self.0.form == Form::Binary {
            // The values of a row of a query are just as those of a row here.
            out.put_i16(row.field_count);
            out.put_slice(&row.data);
        } else {
            self.line(Values(&row.data), &mut out);
        }
        out.freeze()
    }

    /// What comes after all rows.
    pub fn end(&self) -> Bytes {
        Bytes::from_static(if self.0.form == Form::Binary { BINARY_TRAILER } else { b"" })
    }

    fn line<'a>(&self, values: impl Iterator<Item = Option<&'a [u8]>>, out: &mut BytesMut) {
        for (at, value) in values.enumerate() {
            if at > 0 {
                out.put_u8(self.0.delimiter);
            }
            match value {
                None => out.put_slice(&self.0.null),
                Some(value) if self.0.form == Form::Csv => self.quoted(value, at == 0, out),
                Some(value) => self.escaped(value, out),
            }
        }
        out.put_u8(b'\n');
    }

    fn escaped(&self, value: &[u8], out: &mut BytesMut) {
        for byte in value {
            let short = match byte {
                b'\\' => b'\\',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x08 => b'b',
                0x0B => b'v',
                0x0C => b'f',
                byte if *byte == self.0.delimiter => *byte,
                byte => {
                    out.put_u8(*byte);
                    continue;
                }
            };
            out.put_u8(b'\\');
            out.put_u8(short);
        }
    }

    fn quoted(&self, value: &[u8], is_first: bool, out: &mut BytesMut) {
        let Options { delimiter, quote, escape, .. } = self.0;
        let special = |byte: &u8| *byte == delimiter || *byte == quote || matches!(byte, b'\n' | b'\r');
        let is_end = is_first && value == b"\\.";
        if !is_end && value != self.0.null && !value.iter().any(special) {
            return out.put_slice(value);
        }
        out.put_u8(quote);
        for byte in value {
            if *byte == quote || *byte == escape {
                out.put_u8(escape);
            }
            out.put_u8(*byte);
        }
        out.put_u8(quote);
    }
}

/// The values of a row as it is sent: a length, -1 for NULL, then the bytes.
struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.0 = rest;
            return Some(None);
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(of: &str) -> Options {
        parse(&format!("copy t from stdin {of}")).expect("legal").expect("a COPY").options
    }

    #[test]
    fn statements_are_read() {
        let read = parse("COPY (select ')', (1) from t where a = 'it''s') TO STDOUT WITH (FORMAT csv, HEADER)");
        let read = read.expect("legal").expect("a COPY");
        assert_eq!(read.source, Source::Query("select ')', (1) from t where a = 'it''s'".to_owned()));
        assert!(!read.is_from && read.options.header && read.options.form == Form::Csv);
        let read = parse("copy s.t (a, \"B\") from stdin").expect("legal").expect("a COPY");
        let name = Name { schema: "s".into(), name: "t".into() };
        assert_eq!(read.source, Source::Table(name, vec!["a".into(), "B".into()]));
        assert_eq!(options("csv header delimiter as ';' null 'x'").null, b"x");
        assert_eq!(options("with (delimiter '|', header false)").delimiter, b'|');
        assert_eq!(parse("select 1").expect("another"), None);
        for wrong in ["copy t from '/etc/passwd'", "copy t to program 'x'", "copy t from stdin (format parquet)"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_written_as_postgresql_does() {
        let mut data = BytesMut::new();
        for value in [Some("a\tb\\"), None, Some("x,\"y\"\n"), Some("")] {
            data.put_i32(value.map_or(-1, |value| value.len() as i32));
            data.put_slice(value.unwrap_or_default().as_bytes());
        }
        let row = DataRow::new(data, 4);
        let out = |of: &str| Out(options(of));
        assert_eq!(out("").row(&row), &b"a\\tb\\\\\t\\N\tx,\"y\"\\n\t\n"[..]);
        assert_eq!(out("csv").row(&row), &b"a\tb\\,,\"x,\"\"y\"\"\n\",\"\"\n"[..]);
        assert_eq!(out("csv header").begin(&["a", "b c"]), &b"a,b c\n"[..]);
    }
}
