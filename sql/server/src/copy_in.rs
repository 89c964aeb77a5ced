//! `COPY ... FROM STDIN`: rows come in pieces that end anywhere, and are written in batches as they come.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use futures::{Sink, SinkExt};
use pgwire::api::copy::CopyHandler;
use pgwire::api::results::Tag;
use pgwire::api::{ClientInfo, PgWireConnectionState};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyFail};

use crate::binary;
use crate::copy::{BINARY_SIGNATURE, Form, Options};
use crate::error::{SqlError, SqlState, of_datafusion};
use crate::mapping::{Column, Versions};
use crate::session::Session;
use crate::table::HBaseTable;
use crate::write::{BATCH_ROWS, Manner, Writer};

/// A row's bytes at most.
const MOST_ROW_BYTES: usize = 64 << 20;

/// A row's values.
type Fields = Vec<Option<Vec<u8>>>;

/// Cuts rows out of what comes.
struct Lines {
    options: Options,
    bytes: Vec<u8>,
    /// Bytes that were looked at and are in no whole row yet.
    seen: usize,
    in_quotes: bool,
    /// Whether what comes before binary rows was read.
    has_begun: bool,
    is_over: bool,
}

impl Lines {
    fn new(options: Options) -> Lines {
        Lines { options, bytes: Vec::new(), seen: 0, in_quotes: false, has_begun: false, is_over: false }
    }

    /// The next row, without its end; `at_end` when nothing more will come.
    fn next(&mut self, at_end: bool) -> Option<Vec<u8>> {
        while self.seen < self.bytes.len() {
            let byte = self.bytes[self.seen];
            let is_csv = self.options.form == Form::Csv;
            let is_escape = is_csv && self.in_quotes && byte == self.options.escape && byte != self.options.quote;
            if (is_escape || (!is_csv && byte == b'\\')) && self.seen + 1 == self.bytes.len() && !at_end {
                return None;
            }
            if is_escape {
                self.seen = (self.seen + 2).min(self.bytes.len());
                continue;
            }
            if is_csv && byte == self.options.quote {
                self.in_quotes = !self.in_quotes;
            }
            // In text a backslash takes what follows it into the value.
            if !is_csv && byte == b'\\' {
                self.seen = (self.seen + 2).min(self.bytes.len());
                continue;
            }
            if byte == b'\n' && !self.in_quotes {
                let mut line: Vec<u8> = self.bytes.drain(..=self.seen).collect();
                self.seen = 0;
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return self.checked(line);
            }
            self.seen += 1;
        }
        if !at_end || self.bytes.is_empty() {
            return None;
        }
        self.seen = 0;
        let line = std::mem::take(&mut self.bytes);
        self.checked(line)
    }

    /// A line `\.` is the end of all rows.
    fn checked(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        self.is_over |= line == b"\\.";
        (!self.is_over).then_some(line)
    }

    /// The next of rows in binary; none where it has not come whole.
    fn next_binary(&mut self, at_end: bool) -> Result<Option<Fields>, SqlError> {
        if !self.has_begun {
            let Some(header) = self.header()? else {
                return if at_end { Err(wrong("COPY file signature not recognized")) } else { Ok(None) };
            };
            self.seen = header;
            self.has_begun = true;
        }
        let mut rest = &self.bytes[self.seen..];
        let row = row(&mut rest)?;
        let left = rest.len();
        if let Some(row) = row {
            self.seen = self.bytes.len() - left;
            self.is_over = row.is_none();
            if self.is_over && left > 0 {
                return Err(wrong("received copy data after EOF marker"));
            }
            return Ok(row);
        }
        if at_end && left > 0 {
            return Err(wrong("unexpected EOF in COPY data"));
        }
        // What is in no whole row yet waits at the front.
        self.bytes.drain(..self.seen);
        self.seen = 0;
        Ok(None)
    }

    /// Bytes before the first row.
    fn header(&self) -> Result<Option<usize>, SqlError> {
        let begun = self.bytes.len().min(BINARY_SIGNATURE.len());
        if self.bytes[..begun] != BINARY_SIGNATURE[..begun] {
            return Err(wrong("COPY file signature not recognized"));
        }
        let mut rest = &self.bytes[begun..];
        let (Some(flags), Some(extension)) = (number(&mut rest), number(&mut rest)) else { return Ok(None) };
        // The upper half of them changes what the rows are.
        if flags >> 16 != 0 {
            return Err(wrong("unrecognized critical flags in COPY file header"));
        }
        let Ok(extension) = usize::try_from(extension) else {
            return Err(wrong("invalid COPY file header (missing length)"));
        };
        Ok((rest.len() >= extension).then(|| self.bytes.len() - rest.len() + extension))
    }

    fn fields(&self, line: &[u8]) -> Result<Fields, SqlError> {
        if self.options.form == Form::Csv { self.csv(line) } else { self.text(line) }
    }

    fn text(&self, line: &[u8]) -> Result<Fields, SqlError> {
        let mut fields = Vec::new();
        let mut start = 0;
        let mut at = 0;
        loop {
            match line.get(at) {
                Some(b'\\') => at += 2,
                Some(byte) if *byte != self.options.delimiter => at += 1,
                end => {
                    let raw = &line[start..at.min(line.len())];
                    fields.push((raw != self.options.null).then(|| unescaped(raw)));
                    if end.is_none() {
                        return Ok(fields);
                    }
                    at += 1;
                    start = at;
                }
            }
        }
    }

    fn csv(&self, line: &[u8]) -> Result<Fields, SqlError> {
        let Options { delimiter, quote, escape, .. } = self.options;
        let mut fields = Vec::new();
        let mut value = Vec::new();
        let (mut was_quoted, mut in_quotes) = (false, false);
        let mut at = 0;
        loop {
            match line.get(at) {
                None if in_quotes => {
                    return Err(SqlError::new(SqlState::BAD_COPY_FORMAT, "unterminated CSV quoted field"));
                }
                Some(byte)
                    if in_quotes
                        && *byte == escape
                        && line.get(at + 1).is_some_and(|next| *next == quote || *next == escape) =>
                {
                    value.push(line[at + 1]);
                    at += 1;
                }
                Some(byte) if *byte == quote => {
                    in_quotes = !in_quotes;
                    was_quoted = true;
                }
                Some(byte) if in_quotes || *byte != delimiter => value.push(*byte),
                end => {
                    let value = std::mem::take(&mut value);
                    fields.push((was_quoted || value != self.options.null).then_some(value));
                    was_quoted = false;
                    if end.is_none() {
                        return Ok(fields);
                    }
                }
            }
            at += 1;
        }
    }
}

fn wrong(what: &str) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FORMAT, what)
}

fn number(rest: &mut &[u8]) -> Option<i32> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(i32::from_be_bytes(*number))
}

/// A row in binary, or (none in the inner one) the end of all rows; none in the outer one where it has not come whole, and `rest` stays.
fn row(rest: &mut &[u8]) -> Result<Option<Option<Fields>>, SqlError> {
    let Some((count, mut after)) = rest.split_first_chunk::<2>() else { return Ok(None) };
    let count = i16::from_be_bytes(*count);
    if count == -1 {
        *rest = after;
        return Ok(Some(None));
    }
    let count = u16::try_from(count).map_err(|_| wrong("a row of fewer fields than none"))?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let Some(length) = number(&mut after) else { return Ok(None) };
        if length == -1 {
            fields.push(None);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| wrong("invalid field size"))?;
        let Some((value, next)) = after.split_at_checked(length) else { return Ok(None) };
        fields.push(Some(value.to_vec()));
        after = next;
    }
    *rest = after;
    Ok(Some(Some(fields)))
}

/// A value of text, whose backslashes stand for something else.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        at += 1;
        let Some(next) = raw.get(at).filter(|_| *byte == b'\\') else {
            value.push(*byte);
            continue;
        };
        at += 1;
        let number = |digits: &[u8], radix| {
            std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, radix).ok())
        };
        let count = |from: usize, most: usize, is_digit: fn(&u8) -> bool| {
            raw[from..].iter().take(most).take_while(|byte| is_digit(byte)).count()
        };
        value.push(match next {
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0B,
            b'0'..=b'7' => {
                let digits = count(at - 1, 3, |byte| (b'0'..=b'7').contains(byte));
                let byte = number(&raw[at - 1..at - 1 + digits], 8).unwrap_or_default();
                at += digits - 1;
                byte as u8
            }
            b'x' if count(at, 2, u8::is_ascii_hexdigit) > 0 => {
                let digits = count(at, 2, u8::is_ascii_hexdigit);
                let byte = number(&raw[at..at + digits], 16).unwrap_or_default();
                at += digits;
                byte as u8
            }
            other => *other,
        });
    }
    value
}

/// A `COPY ... FROM STDIN` that is under way.
pub struct CopyIn {
    table: Arc<HBaseTable>,
    /// Positions of the columns that come, in their order.
    columns: Vec<usize>,
    /// The same, the key's first: the order that they are written in, by their place among those that come.
    written: Vec<(usize, usize)>,
    lines: Lines,
    is_before_header: bool,
    line: u64,
    rows: Vec<Fields>,
    count: usize,
}

impl CopyIn {
    /// Into these columns of a table, or all of them.
    ///
    /// # Errors
    /// A column that is not there; one of the key that is not among them.
    pub fn new(table: Arc<HBaseTable>, names: &[String], options: Options) -> Result<CopyIn, SqlError> {
        let mapping = &table.mapping;
        if table.versions != Versions::Newest {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "only tables of HBase can be written"));
        }
        let position = |name: &String| {
            let missing = || {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", mapping.name);
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            };
            mapping.column(name).map(|(at, _)| at).ok_or_else(missing)
        };
        let columns = match names {
            [] => (0..mapping.columns.len()).collect(),
            names => names.iter().map(position).collect::<Result<Vec<_>, _>>()?,
        };
        let key = mapping.key_columns();
        let mut written = Vec::with_capacity(columns.len());
        for at in &key {
            let place = columns.iter().position(|column| column == at).ok_or_else(|| {
                let name = &mapping.columns[*at].name;
                let message =
                    format!("column \"{name}\" is in the primary key of \"{}\": COPY must name it", mapping.name);
                SqlError::new(SqlState::NOT_NULL_VIOLATION, message)
            })?;
            written.push((*at, place));
        }
        written.extend(columns.iter().enumerate().filter(|(_, at)| !key.contains(at)).map(|(place, at)| (*at, place)));
        let is_before_header = options.header;
        let lines = Lines::new(options);
        Ok(CopyIn { table, columns, written, lines, is_before_header, line: 0, rows: Vec::new(), count: 0 })
    }

    /// How many columns come.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether PostgreSQL's binary values come.
    pub fn is_binary(&self) -> bool {
        self.lines.options.form == Form::Binary
    }

    /// The next row.
    fn next(&mut self, at_end: bool) -> Result<Option<Fields>, SqlError> {
        if self.is_binary() {
            let row = self.lines.next_binary(at_end);
            let row = row.map_err(|e| self.wrong(e.state, e.message, self.line + 1))?;
            self.line += u64::from(row.is_some());
            return Ok(row);
        }
        loop {
            let Some(line) = self.lines.next(at_end) else { return Ok(None) };
            self.line += 1;
            if !std::mem::take(&mut self.is_before_header) {
                return self.lines.fields(&line).map(Some);
            }
        }
    }

    async fn take(&mut self, bytes: &[u8], at_end: bool) -> Result<(), SqlError> {
        if self.lines.is_over {
            let is_more = self.is_binary() && !bytes.is_empty();
            return if is_more { Err(wrong("received copy data after EOF marker")) } else { Ok(()) };
        }
        self.lines.bytes.extend_from_slice(bytes);
        while let Some(fields) = self.next(at_end)? {
            if fields.len() != self.columns.len() {
                let what = if self.is_binary() {
                    format!("row field count is {}, expected {}", fields.len(), self.columns.len())
                } else if fields.len() > self.columns.len() {
                    "extra data after last expected column".to_owned()
                } else {
                    let missing = &self.table.mapping.columns[self.columns[fields.len()]].name;
                    format!("missing data for column \"{missing}\"")
                };
                return Err(self.wrong(SqlState::BAD_COPY_FORMAT, what, self.line));
            }
            self.rows.push(fields);
            if self.rows.len() == BATCH_ROWS {
                self.write().await?;
            }
        }
        if self.lines.bytes.len() > MOST_ROW_BYTES {
            let what = format!("a row of more than {MOST_ROW_BYTES} bytes");
            return Err(self.wrong(SqlState::BAD_COPY_FORMAT, what, self.line + 1));
        }
        Ok(())
    }

    fn wrong(&self, state: &'static str, what: String, line: u64) -> SqlError {
        SqlError::new(state, format!("{what} (COPY {}, line {line})", self.table.mapping.name))
    }

    async fn write(&mut self) -> Result<(), SqlError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let first = self.line + 1 - rows.len() as u64;
        let mut arrays = Vec::with_capacity(self.written.len());
        for (at, place) in &self.written {
            let column = &self.table.mapping.columns[*at];
            let values: Vec<Option<&[u8]>> = rows.iter().map(|row| row[*place].as_deref()).collect();
            let array_of = if self.is_binary() { binary::array_of } else { array_of };
            arrays.push(array_of(column, &values).map_err(|whole| {
                // Which of them it is.
                let wrong =
                    values.iter().zip(first..).find_map(|(v, line)| Some((line, array_of(column, &[*v]).err()?)));
                let (line, why) = wrong.unwrap_or((self.line, whole));
                self.wrong(why.state, format!("column \"{}\": {}", column.name, why.message), line)
            })?);
        }
        let field = |(at, array): (&(usize, usize), &ArrayRef)| {
            Field::new(&self.table.mapping.columns[at.0].name, array.data_type().clone(), true)
        };
        let schema = Schema::new(self.written.iter().zip(&arrays).map(field).collect::<Vec<_>>());
        let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(|e| of_datafusion(&e.into()))?;
        let positions: Vec<usize> = self.written.iter().map(|(at, _)| *at).collect();
        let writer = Writer::new(&self.table, Manner::Upsert, &positions)?;
        self.count += writer.write(&batch).await.map_err(|e| of_datafusion(&e))?.len();
        Ok(())
    }
}

/// The values of a column, from their text.
fn array_of(column: &Column, values: &[Option<&[u8]>]) -> Result<ArrayRef, SqlError> {
    let of = column.arrow_type();
    if of == DataType::Binary {
        let values = values.iter().map(|value| value.map(bytes_of).transpose());
        let values = values.collect::<Result<Vec<_>, _>>()?;
        return Ok(Arc::new(BinaryArray::from_iter(values)));
    }
    let texts = values.iter().map(|value| value.map(text_of).transpose()).collect::<Result<Vec<_>, _>>()?;
    let texts = StringArray::from(texts);
    if of == DataType::Utf8 {
        return Ok(Arc::new(texts));
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&texts, &of, &strict).map_err(|e| of_datafusion(&e.into()))
}

fn text_of(value: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(value).map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}

/// Bytes as PostgreSQL writes them: hexadecimal, or text with octal numbers.
fn bytes_of(text: &[u8]) -> Result<Vec<u8>, SqlError> {
    let wrong = || SqlError::new(SqlState::INVALID_TEXT, "invalid input syntax for type bytea");
    let Some(digits) = text.strip_prefix(b"\\x") else { return Ok(unescaped(text)) };
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
    digits.chunks_exact(2).map(|pair| Ok((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}

/// The messages of a copy of one connection.
pub struct CopyMessages(pub Arc<Session>);

#[async_trait]
impl CopyHandler for CopyMessages {
    async fn on_copy_data<C>(&self, _client: &mut C, data: CopyData) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        // One that fails is over: what still comes of it is passed over.
        let under_way = self.0.copy.lock().take();
        let Some(mut copy) = under_way else { return Ok(()) };
        self.0.run(copy.take(&data.data, false)).await??;
        *self.0.copy.lock() = Some(copy);
        Ok(())
    }

    async fn on_copy_done<C>(&self, client: &mut C, _done: CopyDone) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        // What follows in the extended protocol is a Sync, as after every other command.
        client.set_state(PgWireConnectionState::ReadyForQuery);
        let under_way = self.0.copy.lock().take();
        let Some(mut copy) = under_way else { return Ok(()) };
        let rest = async {
            copy.take(b"", true).await?;
            copy.write().await
        };
        self.0.run(rest).await??;
        let tag = Tag::new("COPY").with_rows(copy.count);
        client.send(PgWireBackendMessage::CommandComplete(tag.into())).await?;
        Ok(())
    }

    async fn on_copy_fail<C>(&self, client: &mut C, fail: CopyFail) -> PgWireError
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        client.set_state(PgWireConnectionState::ReadyForQuery);
        *self.0.copy.lock() = None;
        let text = format!("COPY from stdin failed: {}", fail.message);
        PgWireError::UserError(Box::new(ErrorInfo::new("ERROR".into(), SqlState::QUERY_CANCELED.into(), text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &str, text: &str, piece: usize) -> Vec<Vec<Option<String>>> {
        let copy = crate::copy::parse(&format!("copy t from stdin {options}")).expect("legal").expect("a COPY");
        let mut lines = Lines::new(copy.options);
        let mut rows = Vec::new();
        let as_text = |field: Option<Vec<u8>>| field.map(|bytes| String::from_utf8(bytes).expect("text"));
        let pieces = text.as_bytes().chunks(piece).map(|piece| (piece, false)).chain([(&b""[..], true)]);
        for (piece, at_end) in pieces {
            lines.bytes.extend_from_slice(piece);
            while let Some(line) = lines.next(at_end) {
                let fields = lines.fields(&line).expect("well formed");
                rows.push(fields.into_iter().map(as_text).collect());
            }
        }
        rows
    }

    #[test]
    fn rows_are_cut_out_of_pieces_of_any_size() {
        let some = |text: &str| Some(text.to_owned());
        for piece in 1..20 {
            let text = "a\\tb\tc\\\nd\t\\N\r\n\\x41\\102\\\\\t\t\\\\N\n\\.\nnot this\n";
            let rows = read("", text, piece);
            assert_eq!(rows[0], [some("a\tb"), some("c\nd"), None], "{piece}");
            assert_eq!(rows[1], [some("AB\\"), some(""), some("\\N")], "{piece}");
            assert_eq!(rows.len(), 2, "{piece}");
            let rows = read("csv", "a,,\"\"\r\n\"x,\"\"y\"\"\nz\",b\"c\"d,\"\"\"\"", piece);
            assert_eq!(rows[0], [some("a"), None, some("")], "{piece}");
            assert_eq!(rows[1], [some("x,\"y\"\nz"), some("bcd"), some("\"")], "{piece}");
            let rows = read("csv quote '''' escape '\\' delimiter ';'", "'a\\'b\n';c", piece);
            assert_eq!(rows, [[some("a'b\n"), some("c")]], "{piece}");
        }
    }

    #[test]
    fn rows_in_binary_are_cut_out_of_pieces_of_any_size() {
        let read = |bytes: &[u8], piece: usize| {
            let copy = crate::copy::parse("copy t from stdin binary").expect("legal").expect("a COPY");
            let mut lines = Lines::new(copy.options);
            let mut rows = Vec::new();
            for (piece, at_end) in bytes.chunks(piece).map(|piece| (piece, false)).chain([(&b""[..], true)]) {
                if lines.is_over {
                    break;
                }
                lines.bytes.extend_from_slice(piece);
                while let Some(row) = lines.next_binary(at_end)? {
                    rows.push(row);
                }
            }
            Ok::<_, SqlError>(rows)
        };
        // Four bytes before the first row are an extension.
        let header = [BINARY_SIGNATURE, &[0, 0, 0, 1, 0, 0, 0, 4], b"more"].concat();
        let rows = b"\0\x02\0\0\0\x03abc\xFF\xFF\xFF\xFF\0\x02\0\0\0\0\0\0\0\x01z";
        let expected = [vec![Some(b"abc".to_vec()), None], vec![Some(Vec::new()), Some(b"z".to_vec())]];
        for piece in 1..40 {
            let whole = [&header[..], rows, &[0xFF, 0xFF]].concat();
            assert_eq!(read(&whole, piece).expect("well formed"), expected, "{piece}");
            // Without its end it is as long as it is.
            assert_eq!(read(&[&header[..], rows].concat(), piece).expect("well formed"), expected, "{piece}");
            let wrong: [Vec<u8>; 6] = [
                b"a\tb\n".to_vec(),
                BINARY_SIGNATURE.to_vec(),
                [BINARY_SIGNATURE, &[0, 1, 0, 0, 0, 0, 0, 0]].concat(),
                [&header[..], &rows[..7]].concat(),
                [&header[..], &[0xFF, 0xFE]].concat(),
                [&header[..], b"\0\x01\xFF\xFF\xFF\xFE"].concat(),
            ];
            for wrong in wrong {
                assert!(read(&wrong, piece).is_err(), "{piece} {wrong:?}");
            }
        }
    }

    #[test]
    fn bytes_have_two_forms() {
        assert_eq!(bytes_of(b"\\x00fF").expect("legal"), [0, 255]);
        assert_eq!(bytes_of(b"a\\\\\\001").expect("legal"), [b'a', b'\\', 1]);
        assert!(bytes_of(b"\\x0").is_err() && bytes_of(b"\\xzz").is_err());
    }
}
