//! What ends a command or a script early.

use std::rc::Rc;

use crate::value::Value;

/// Results of the evaluator and of commands.
pub type Result<T = Value> = std::result::Result<T, Flow>;

/// Why evaluation does not go on here.
#[derive(Clone)]
pub enum Flow {
    /// An exception.
    Raise(Rc<Exception>),
    /// `break`.
    Break(Value),
    /// `next`.
    Next(Value),
    /// `return`.
    Return(Value),
    /// `exit`.
    Exit(u8),
    /// Ctrl-C.
    Interrupted,
}

/// An exception as a script sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Class; Java's as JRuby names them, `Java::OrgApacheHadoopHbase::TableNotFoundException`.
    pub class: String,
    /// Text.
    pub message: String,
    /// What it came from.
    pub cause: Option<Rc<Exception>>,
}

impl Exception {
    /// The full name of its Java class.
    pub fn java_class(&self) -> Option<String> {
        java_name(&self.class)
    }

    /// Its class without package or module.
    pub fn short_class(&self) -> &str {
        self.class.rsplit("::").next().unwrap_or(&self.class)
    }
}

/// `org.apache.hadoop.hbase.X` for `Java::OrgApacheHadoopHbase::X`.
fn java_name(class: &str) -> Option<String> {
    let (package, name) = class.strip_prefix("Java::")?.split_once("::")?;
    let mut out = String::new();
    for c in package.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('.');
        }
        out.extend(c.to_lowercase());
    }
    Some(format!("{out}.{name}"))
}

/// `Java::OrgApacheHadoopHbase::X` for `org.apache.hadoop.hbase.X`.
pub fn ruby_name(java: &str) -> String {
    let (package, name) = java.rsplit_once('.').unwrap_or(("", java));
    let package: String = package.split('.').map(capitalized).collect();
    format!("Java::{package}::{name}")
}

/// The text with a capital at its beginning.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl Flow {
    /// An exception of a class of Ruby's.
    pub fn raise(class: &str, message: impl Into<String>) -> Flow {
        Flow::Raise(Rc::new(Exception { class: class.to_owned(), message: message.into(), cause: None }))
    }

    /// An argument that makes no sense.
    pub fn argument(message: impl Into<String>) -> Flow {
        Flow::raise("ArgumentError", message)
    }

    /// What `raise "text"` raises.
    pub fn runtime(message: impl Into<String>) -> Flow {
        Flow::raise("RuntimeError", message)
    }
}

/// The wrapper in which the Java client has what a server refuses.
const REMOTE: &str = "org.apache.hadoop.hbase.ipc.RemoteWithExtrasException";

impl From<client::Error> for Flow {
    fn from(error: client::Error) -> Flow {
        Flow::Raise(Rc::new(exception(&error)))
    }
}

/// The exception that the Java client would throw.
fn exception(error: &client::Error) -> Exception {
    let java = |class: &str, message: String, cause: Option<Exception>| Exception {
        class: ruby_name(class),
        message,
        cause: cause.map(Rc::new),
    };
    match error {
        client::Error::Remote(remote) => {
            let message = match remote.message.is_empty() {
                true => remote.class.clone(),
                false => remote.message.clone(),
            };
            java(&remote.class, message.clone(), Some(java(REMOTE, message, None)))
        }
        client::Error::TableNotFound(name) => java(error.class().unwrap_or_default(), name.to_string(), None),
        client::Error::TableDisabled(name) => {
            java(error.class().unwrap_or_default(), format!("{name} is disabled."), None)
        }
        client::Error::Procedure { why, class, .. } => java(class, why.clone(), None),
        client::Error::RetriesExhausted { last, .. } => {
            let cause = exception(last);
            java("org.apache.hadoop.hbase.client.RetriesExhaustedException", error.to_string(), Some(cause))
        }
        client::Error::Request(why) => java("java.lang.IllegalArgumentException", why.clone(), None),
        _ => java(error.class().unwrap_or("java.io.IOException"), error.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn javas_classes_have_jrubys_names() {
        let java = "org.apache.hadoop.hbase.TableNotFoundException";
        let ruby = "Java::OrgApacheHadoopHbase::TableNotFoundException";
        assert_eq!(ruby_name(java), ruby);
        assert_eq!(java_name(ruby).as_deref(), Some(java));
        assert_eq!(java_name("ArgumentError"), None);
    }
}
