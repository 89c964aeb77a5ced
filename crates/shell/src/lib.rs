//! `basalt shell`: HBase's shell as a native program. The part of Ruby that its users write ([`language`], [`evaluator`]), its commands over the
//! native client ([`commands`]), its words ([`help`]), and the shapes of its output ([`output`]).
//!
//! Always true:
//!  1. What is printed has the form that HBase's own shell gives it; scripts that read it go on working.
//!  2. Text that is no supported Ruby is refused with line, column and caret before anything of the statement is done.
//!  3. Nothing that a server or a script says ends the process but `exit`, the end of the input, and with `-n` the first error.
//!  4. Evaluation is bounded: nesting, ranges, repeated strings.
//!
//! Must not know: the server, files of tables, how a connection finds its cluster (that is the `client` crate's). Follows: `hbase-shell`
//! (`shell.rb`, `commands/*.rb`, `hbase/admin.rb`, `hbase/table.rb`, `formatter.rb`).
#![allow(
    clippy::disallowed_methods,
    reason = "a program for people: it reads the scripts that they name and times real commands"
)]

pub mod cli;
pub mod commands;
mod constants;
mod echo;
pub mod evaluator;
pub mod failure;
pub mod help;
mod interactive;
pub mod json;
pub mod language;
pub mod output;
mod pretty;
pub mod session;
pub mod value;

pub use cli::run;
pub use commands::describe_lines;
