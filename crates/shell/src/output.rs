//! What is printed: lines, and tables in HBase's form or, where a program reads it, as lines of JSON. Follows: `Shell::Formatter::Base`.

use std::io::{self, Write};

use crate::failure::{Flow, Result};
use crate::json::Json;

/// How output looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// As HBase's.
    #[default]
    Plain,
    /// The same in colours.
    Coloured,
    /// A JSON object for each row of a table, under the heads of its columns, and for each line `{"message": ...}`; no counts and times.
    Json,
}

const BOLD: &str = "\u{1B}[1m";
const RED: &str = "\u{1B}[31m";
const PLAIN: &str = "\u{1B}[0m";

/// Where output goes.
pub struct Output {
    out: Box<dyn Write>,
    /// Characters in a line of the terminal; 0 where there is none.
    width: usize,
    rows: u64,
    style: Style,
    heads: Vec<String>,
}

/// A pipe whose reader has gone ends the shell as it ends other programs.
fn gone(error: &io::Error) -> Flow {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Flow::Exit(0),
        _ => Flow::raise("IOError", format!("cannot write output: {error}")),
    }
}

impl Output {
    /// To `out`; tables are as wide as `width` says, or as their cells where it is 0.
    pub fn new(out: Box<dyn Write>, width: usize) -> Output {
        Output { out, width, rows: 0, style: Style::Plain, heads: Vec::new() }
    }

    /// The same in another style.
    pub fn styled(self, style: Style) -> Output {
        Output { style, ..self }
    }

    /// Whether it is in colours.
    pub fn is_coloured(&self) -> bool {
        self.style == Style::Coloured
    }

    /// Whether a program reads what is printed.
    pub fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// Bytes as they are.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| gone(&error))
    }

    /// Text without an end of the line.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }

    /// A line.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn line(&mut self, line: &str) -> Result<()> {
        if self.is_json() {
            return if line.trim().is_empty() { Ok(()) } else { self.member("message", line.trim_matches('\n')) };
        }
        self.plain_line(line)
    }

    fn plain_line(&mut self, line: &str) -> Result<()> {
        self.text(line)?;
        self.bytes(b"\n")
    }

    /// What a statement brought, for programs.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn value(&mut self, value: &Json) -> Result<()> {
        self.plain_line(&Json::Object(vec![("value".to_owned(), value.clone())]).line())
    }

    fn member(&mut self, name: &str, text: &str) -> Result<()> {
        self.plain_line(&Json::Object(vec![(name.to_owned(), Json::text(text))]).line())
    }

    /// A line about something that went wrong.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn error(&mut self, line: &str) -> Result<()> {
        match self.style {
            Style::Plain => self.line(line),
            Style::Coloured => self.line(&format!("{RED}{line}{PLAIN}")),
            Style::Json => {
                let line = line.trim_matches('\n');
                self.member("error", line.strip_prefix("ERROR: ").unwrap_or(line))
            }
        }
    }

    /// A line for people alone: how long something took.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn aside(&mut self, line: &str) -> Result<()> {
        if self.is_json() { Ok(()) } else { self.line(line) }
    }

    /// Hands on what is kept back.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| gone(&error))
    }

    /// The heads of a table's columns; rows are counted from here.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn header(&mut self, heads: &[&str]) -> Result<()> {
        self.rows = 0;
        self.heads = heads.iter().map(|head| (*head).to_owned()).collect();
        if heads.is_empty() || self.is_json() {
            return Ok(());
        }
        let coloured = self.style == Style::Coloured;
        if coloured {
            self.text(BOLD)?;
        }
        self.cells(heads, false)?;
        if coloured { self.text(PLAIN) } else { Ok(()) }
    }

    /// A row of a table.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn row(&mut self, cells: &[&str]) -> Result<()> {
        self.rows += 1;
        if !self.is_json() {
            return self.cells(cells, true);
        }
        let name = |i: usize| match (self.heads.get(i), cells.len()) {
            (Some(head), _) => head.clone(),
            (None, 1) => "value".to_owned(),
            (None, _) => format!("column{}", i + 1),
        };
        let members = cells.iter().enumerate().map(|(i, cell)| (name(i), Json::text(*cell))).collect();
        let line = Json::Object(members).line();
        self.plain_line(&line)
    }

    fn cells(&mut self, cells: &[&str], inset: bool) -> Result<()> {
        match cells {
            [one] => {
                for part in split(one, self.width) {
                    self.line(&padded(&part, self.width))?;
                }
            }
            [first, second] => self.pair(first, second, inset)?,
            many => {
                self.text(" ")?;
                self.line(&many.join(" "))?;
            }
        }
        Ok(())
    }

    /// Two columns; what is wider than its column goes on below.
    fn pair(&mut self, first: &str, second: &str, inset: bool) -> Result<()> {
        let (first_width, second_width) = match self.width {
            0 => (0, 0),
            width => (width / 4, width.saturating_sub(width / 4 + 2)),
        };
        let (first, second) = (split(first, first_width), split(second, second_width));
        for i in 0..first.len().max(second.len()) {
            let left = padded(first.get(i).map_or("", String::as_str), first_width);
            let right = padded(second.get(i).map_or("", String::as_str), second_width);
            let line = if inset { format!(" {left} {right}") } else { format!("{left}  {right}") };
            self.line(if self.width == 0 { &line } else { line.trim_end() })?;
        }
        Ok(())
    }

    /// `N row(s)`: of `count`, or of the rows since the header.
    ///
    /// # Errors
    /// As [`Output::bytes`].
    pub fn footer(&mut self, count: Option<u64>) -> Result<()> {
        let count = count.unwrap_or(self.rows);
        self.heads.clear();
        self.aside(&format!("{count} row(s)"))
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

fn split(text: &str, width: usize) -> Vec<String> {
    if width == 0 || text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(width).map(|chunk| chunk.iter().collect()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Output that a test can read.
    #[derive(Clone, Default)]
    pub(crate) struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        pub(crate) fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.borrow()).into_owned()
        }
    }

    fn printed(width: usize, print: impl FnOnce(&mut Output) -> Result<()>) -> String {
        let kept = Kept::default();
        assert!(print(&mut Output::new(Box::new(kept.clone()), width)).is_ok());
        kept.text()
    }

    #[test]
    fn tables_have_hbases_form() {
        let table = |out: &mut Output| {
            out.header(&["COLUMN", "CELL"])?;
            out.row(&["f:a", "value=1"])?;
            out.footer(None)
        };
        assert_eq!(printed(0, table), "COLUMN  CELL\n f:a value=1\n1 row(s)\n");
        assert_eq!(printed(24, table), "COLUMN  CELL\n f:a    value=1\n1 row(s)\n");
        let kept = Kept::default();
        assert!(table(&mut Output::new(Box::new(kept.clone()), 0).styled(Style::Json)).is_ok());
        assert_eq!(kept.text(), "{\"COLUMN\":\"f:a\",\"CELL\":\"value=1\"}\n");
        let long = |out: &mut Output| out.row(&["abcdefgh", "v"]);
        assert_eq!(printed(24, long), " abcdef v\n gh\n");
    }
}
