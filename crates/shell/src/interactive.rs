//! The prompt: history, completion, statements of several lines, Ctrl-C.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use crate::echo::{self, Echo, Read};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::session::{FamilyNames, TableNames};
use crate::{commands, constants};

/// Characters in a line of the terminal that output goes to; 0 where it goes elsewhere.
pub fn width() -> usize {
    if !std::io::stdout().is_terminal() {
        return 0;
    }
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(80, |size| usize::from(size.ws_col))
}

/// Completes commands, constants and, within quotes, names of tables and of families; colours what is typed.
struct Words {
    tables: TableNames,
    families: FamilyNames,
    coloured: bool,
}

impl Helper for Words {}
impl Hinter for Words {
    type Hint = String;
}
impl Validator for Words {}

impl Highlighter for Words {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.coloured { Cow::Owned(coloured(line)) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.coloured
    }
}

const GREEN: &str = "\u{1B}[32m";
const CYAN: &str = "\u{1B}[36m";
const YELLOW: &str = "\u{1B}[33m";
const PLAIN: &str = "\u{1B}[0m";

/// A line with its strings, commands and constants in colours.
fn coloured(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (len, colour) = if first == '\'' || first == '"' {
            (quoted_bytes(rest, first), Some(GREEN))
        } else if is_word(first) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = &rest[..len];
            let known = commands::find(word).map(|_| CYAN).or_else(|| constants::value(word).map(|_| YELLOW));
            (len, known)
        } else {
            (first.len_utf8(), None)
        };
        let (part, after) = rest.split_at(len);
        match colour {
            Some(colour) => out.extend([colour, part, PLAIN]),
            None => out.push_str(part),
        }
        rest = after;
    }
    out
}

/// Bytes of the string that `text` begins with, up to its closing quote or the end.
fn quoted_bytes(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The strings that are complete in a line.
fn complete_strings(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['\'', '"']) {
        let quote = if rest.as_bytes()[at] == b'"' { '"' } else { '\'' };
        let len = quoted_bytes(&rest[at..], quote);
        let text = &rest[at..at + len];
        if len >= 2 && text.ends_with(quote) {
            found.push(&text[1..len - 1]);
        }
        rest = &rest[at + len..];
    }
    found
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        let in_quotes = before.matches('\'').count() % 2 == 1 || before.matches('"').count() % 2 == 1;
        let is_part = |c: char| c.is_alphanumeric() || "_.:-".contains(c) && in_quotes || c == '_';
        let start = before
            .rfind(|c: char| !is_part(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let begun = &before[start..];
        let mut known: Vec<String> = match (in_quotes, complete_strings(before).first()) {
            // Behind the name of a table its columns are likely.
            (true, Some(table)) => (self.families)(table).into_iter().chain((self.tables)()).collect(),
            (true, None) => (self.tables)(),
            (false, _) => commands::all()
                .map(|command| command.name.to_owned())
                .chain(constants::names().map(str::to_owned))
                .collect(),
        };
        known.retain(|word| word.starts_with(begun));
        known.sort();
        known.dedup();
        Ok((start, known.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

fn history_file() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".basalt_shell_history"))
}

/// Talks with whoever sits at the terminal; the code that the process is to end with, if one was given.
///
/// # Errors
/// The terminal cannot be read or written.
pub fn run(shell: &mut Shell) -> Result<Option<u8>> {
    let failed = |error: ReadlineError| Flow::raise("IOError", format!("cannot use the terminal: {error}"));
    let mut editor: Editor<Words, FileHistory> = Editor::new().map_err(failed)?;
    let words = Words {
        tables: shell.session.table_names(),
        families: shell.session.family_names(),
        coloured: shell.session.output.is_coloured(),
    };
    editor.set_helper(Some(words));
    let history = history_file();
    if let Some(history) = &history {
        // There is none before the first session.
        let _ = editor.load_history(history);
    }
    let caught = shell.session.catch_interrupts();
    caught.map_err(|error| Flow::raise("IOError", format!("cannot wait for Ctrl-C: {error}")))?;
    banner(shell)?;
    let ended = talk(shell, &mut editor);
    if let Some(history) = &history {
        // A session is not worse for a history that cannot be kept.
        let _ = editor.save_history(history);
    }
    ended
}

fn banner(shell: &mut Shell) -> Result<()> {
    let output = &mut shell.session.output;
    output.line("HBase Shell")?;
    output.line("Use \"help\" to get list of supported commands.")?;
    output.line("Use \"exit\" to quit this interactive shell.")?;
    output.line(&format!("Version {}\n", commands::version_line()))?;
    output.flush()
}

fn talk(shell: &mut Shell, editor: &mut Editor<Words, FileHistory>) -> Result<Option<u8>> {
    let mut number = 0;
    let mut text = String::new();
    loop {
        number += 1;
        match editor.readline(&echo::prompt(number, !text.is_empty())) {
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(None),
            Err(error) => return Err(Flow::raise("IOError", format!("cannot read from the terminal: {error}"))),
        }
        let program = match echo::read(shell, &text) {
            Read::Part => continue,
            Read::Whole(program) => Ok(program),
            Read::Wrong(error) => Err(Flow::raise("SyntaxError", error.shown(&text))),
        };
        // History that cannot be kept in memory is not worth an error.
        let _ = editor.add_history_entry(text.trim_end());
        text.clear();
        shell.session.forget_interrupt();
        let result = program.and_then(|program| shell.eval(&program));
        if let Some(code) = echo::told(shell, result, Echo::All)? {
            return Ok(Some(code));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_coloured_and_nothing_else_is_changed() {
        for line in ["put 't', \"r\\\"x\", NAME => 5", "scan 'open", "é '", ""] {
            let shown = coloured(line);
            let plain = [GREEN, CYAN, YELLOW, PLAIN].iter().fold(shown, |text, colour| text.replace(colour, ""));
            assert_eq!(plain, line);
        }
        let shown = coloured("put 't'");
        assert_eq!(shown, format!("{CYAN}put{PLAIN} {GREEN}'t'{PLAIN}"));
    }

    #[test]
    fn strings_of_a_line_are_found() {
        assert_eq!(complete_strings("put 't', \"a'b\", 'f"), ["t", "a'b"]);
        assert!(complete_strings("put '").is_empty());
    }

    #[test]
    fn families_are_completed_behind_a_table() {
        let words = Words {
            tables: Box::new(|| vec!["t1".to_owned(), "t2".to_owned()]),
            families: Box::new(|table| if table == "t1" { vec!["f:".to_owned()] } else { Vec::new() }),
            coloured: false,
        };
        let history = rustyline::history::DefaultHistory::new();
        let complete = |line: &str| {
            let (start, found) = words.complete(line, line.len(), &Context::new(&history)).expect("it completes");
            (start, found.into_iter().map(|pair| pair.replacement).collect::<Vec<String>>())
        };
        assert_eq!(complete("get 't"), (5, vec!["t1".to_owned(), "t2".to_owned()]));
        assert_eq!(complete("get 't1', 'r', 'f"), (16, vec!["f:".to_owned()]));
        assert_eq!(complete("is_enab"), (0, vec!["is_enabled".to_owned()]));
        assert_eq!(complete("create 't', {NAME => 'f', VERS"), (26, vec!["VERSIONS".to_owned()]));
    }
}
