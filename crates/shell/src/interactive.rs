//! The prompt: history, completion, statements of several lines, Ctrl-C.

use std::io::IsTerminal;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use crate::echo::{self, Echo, Read};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::{commands, constants};

/// Characters in a line of the terminal that output goes to; 0 where it goes elsewhere.
pub fn width() -> usize {
    if !std::io::stdout().is_terminal() {
        return 0;
    }
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(80, |size| usize::from(size.ws_col))
}

/// Completes commands, constants and, within quotes, names of tables.
struct Words {
    tables: Box<dyn Fn() -> Vec<String>>,
}

impl Helper for Words {}
impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}

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
        let mut known: Vec<String> = match in_quotes {
            true => (self.tables)(),
            false => commands::all()
                .map(|command| command.name.to_owned())
                .chain(constants::names().map(str::to_owned))
                .collect(),
        };
        known.retain(|word| word.starts_with(begun));
        known.sort();
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
    editor.set_helper(Some(Words { tables: shell.session.table_names() }));
    let history = history_file();
    if let Some(history) = &history {
        // There is none before the first session.
        let _ = editor.load_history(history);
    }
    shell.session.catch_interrupts();
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
