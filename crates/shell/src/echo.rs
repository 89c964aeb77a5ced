//! Runs the statements of a script or of a pipe, and tells what is read and what comes of it, as HBase's shell does. Follows: `IRB::HIRB`.

use std::io::BufRead;

use crate::evaluator::Shell;
use crate::failure::{Exception, Flow, Result};
use crate::json::Json;
use crate::language::{SyntaxError, parser};
use crate::value::Value;

/// Whether what is read is shown with a prompt, and values behind `=>`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// As a script or a pipe has it.
    All,
    /// As `-e` has it.
    None,
}

/// What a text so far is.
pub enum Read {
    /// The beginning of a statement.
    Part,
    /// Statements.
    Whole(crate::language::syntax::Node),
    /// Neither.
    Wrong(SyntaxError),
}

/// Reads a text that may go on.
pub fn read(shell: &Shell, text: &str) -> Read {
    match parser::parse(text, &shell.variables()) {
        Ok(program) => Read::Whole(program),
        Err(error) if error.incomplete => Read::Part,
        Err(error) => Read::Wrong(error),
    }
}

/// The prompt before the line of this number.
pub fn prompt(line: u32, goes_on: bool) -> String {
    format!("hbase:{line:03}:0{} ", if goes_on { '*' } else { '>' })
}

/// Runs what `source` holds; the code that the process is to end with, if it is.
///
/// # Errors
/// Output cannot be written.
pub fn run(shell: &mut Shell, source: &mut dyn BufRead, echo: Echo) -> Result<Option<u8>> {
    let mut number = 0;
    let mut text = String::new();
    loop {
        let mut line = Vec::new();
        let count = source
            .read_until(b'\n', &mut line)
            .map_err(|error| Flow::raise("IOError", format!("cannot read the script: {error}")))?;
        if count == 0 && text.is_empty() {
            if echo == Echo::All {
                shell.session.output.line(&prompt(number + 1, false))?;
            }
            return Ok(None);
        }
        number += 1;
        let line = String::from_utf8_lossy(&line).into_owned();
        if echo == Echo::All && count > 0 {
            let before = if text.is_empty() { prompt(number, false) } else { String::new() };
            shell.session.output.line(&format!("{before}{}", line.trim_end_matches(['\n', '\r'])))?;
        }
        text.push_str(&line);
        let program = match read(shell, &text) {
            Read::Part if count > 0 => continue,
            Read::Part => Err(parser::parse(&text, &shell.variables()).err()),
            Read::Wrong(error) => Err(Some(error)),
            Read::Whole(program) => Ok(program),
        };
        let source = std::mem::take(&mut text);
        let lines = source.lines().count().max(1) as u32;
        let result = match program {
            Ok(program) => shell.eval(&program),
            Err(error) => {
                let shown = error.map(|mut error| {
                    let shown = error.shown(&source);
                    // The text of a statement begins at a line of its own.
                    let within = error.place.line;
                    error.place.line += (number + 1).saturating_sub(lines + 1);
                    shown.replacen(&format!("line {within},"), &format!("line {},", error.place.line), 1)
                });
                Err(Flow::raise("SyntaxError", shown.unwrap_or_default()))
            }
        };
        if let Some(code) = told(shell, result, echo)? {
            return Ok(Some(code));
        }
    }
}

/// Tells what came of a statement; the code that the process is to end with, if it is.
///
/// # Errors
/// Output cannot be written.
pub fn told(shell: &mut Shell, result: Result, echo: Echo) -> Result<Option<u8>> {
    let interactive = shell.session.interactive;
    let output = &mut shell.session.output;
    let ended = match result {
        Ok(Value::Nil) => None,
        Ok(value) => {
            match echo {
                Echo::All if output.is_json() => output.value(&Json::of(&value))?,
                Echo::All => output.line(&format!("=> {}", value.inspect()))?,
                Echo::None => {}
            }
            None
        }
        Err(Flow::Exit(code)) => Some(code),
        Err(Flow::Raise(exception)) if interactive => {
            output.error(&format!("{} ({})", exception.class, exception.message))?;
            None
        }
        Err(Flow::Raise(exception)) => {
            output.error(&error_line(&exception))?;
            Some(1)
        }
        Err(Flow::Interrupted) => {
            output.line("^C")?;
            shell.session.forget_interrupt();
            if interactive { None } else { Some(130) }
        }
        Err(Flow::Break(_) | Flow::Next(_) | Flow::Return(_)) => {
            let exception = Exception {
                class: "LocalJumpError".to_owned(),
                message: "break, next or return where there is nothing to leave".to_owned(),
                cause: None,
            };
            output.error(&error_line(&exception))?;
            (!interactive).then_some(1)
        }
    };
    shell.session.output.flush()?;
    Ok(ended)
}

/// What the shell without a prompt says last.
fn error_line(exception: &Exception) -> String {
    format!("ERROR {}: {}", exception.class, exception.message)
}
