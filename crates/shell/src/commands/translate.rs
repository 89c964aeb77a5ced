//! Exceptions in the words that HBase's shell has for them. Follows: `Shell::Commands::Command#translate_hbase_exceptions`.

use std::rc::Rc;

use super::Arguments;
use crate::failure::{Exception, Flow};

/// What the shell says in place of an exception; the exception becomes its cause.
pub(super) fn translate(command: &str, flow: Flow, arguments: &Arguments) -> Flow {
    let Flow::Raise(exception) = flow else { return flow };
    let first = if arguments.is_empty() { String::new() } else { arguments.text(0) };
    let line = exception.message.lines().next().unwrap_or("").to_owned();
    let said = match exception.short_class() {
        "TableNotFoundException" => Some(format!("Unknown table {first}!")),
        "TableNotEnabledException" => Some(format!("Table {first} is disabled!")),
        "TableNotDisabledException" => Some(format!("Table {} should be disabled!", after_class(&line))),
        "UnknownRegionException" | "MergeRegionException" | "SpaceLimitingException" | "AccessDeniedException" => {
            Some(line)
        }
        "NamespaceNotFoundException" => Some(match command {
            "clone_snapshot" => format!("Unknown namespace: {}!", arguments.text(1).split(':').next().unwrap_or("")),
            _ => format!("Unknown namespace {}!", after_class(&line)),
        }),
        "SnapshotDoesNotExistException" => Some(format!("Unknown snapshot {first}!")),
        "TableExistsException" => Some(match command {
            "clone_snapshot" => format!("Table already exists: {}!", arguments.text(1)),
            _ => format!("Table already exists: {first}!"),
        }),
        _ => None,
    };
    match said {
        Some(message) => {
            Flow::Raise(Rc::new(Exception { class: "RuntimeError".to_owned(), message, cause: Some(exception) }))
        }
        None => Flow::Raise(exception),
    }
}

/// The message after the class that a server puts before it.
fn after_class(line: &str) -> &str {
    match line.split_once(": ") {
        Some((class, rest)) if class.ends_with("Exception") => rest,
        _ => line,
    }
}

/// An exception as `ERROR: ` shows it.
pub(crate) fn shown(exception: &Exception) -> String {
    let message = exception.message.lines().next().unwrap_or("");
    match exception.java_class() {
        Some(class) if !message.starts_with(&class) => format!("{class}: {message}"),
        _ => message.to_owned(),
    }
}
