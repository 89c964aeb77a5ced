//! The commands, by HBase's groups.

mod arguments;
mod ddl;
mod describe;
mod dml;
mod families;
mod general;
mod groups;
mod inspect;
mod listing;
mod logs;
mod namespace;
mod peers;
mod quotas;
mod read;
mod regions;
mod replication;
mod scan;
mod servers;
mod snapshots;
mod switches;
mod translate;

use std::ops::RangeInclusive;
use std::time::Instant;

use model::TableName;

pub use self::arguments::Arguments;
pub use self::general::version_line;
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;
pub use describe::describe_lines;

/// A command.
pub struct Command {
    /// What it is called.
    pub name: &'static str,
    /// Another name that it has.
    pub alias: Option<&'static str>,
    /// Its group.
    pub group: &'static str,
    /// How many arguments it takes.
    pub takes: RangeInclusive<usize>,
    run: fn(&mut Shell, &Arguments) -> Result,
}

/// A row of a group's table.
const fn command(
    group: &'static str,
    name: &'static str,
    takes: RangeInclusive<usize>,
    run: fn(&mut Shell, &Arguments) -> Result,
) -> Command {
    Command { name, alias: None, group, takes, run }
}

/// The groups in the order in which help lists them.
pub const GROUPS: &[&str] = &[
    "general",
    "ddl",
    "namespace",
    "dml",
    "tools",
    "replication",
    "snapshots",
    "configuration",
    "quotas",
    "security",
    "procedures",
    "rsgroup",
    "storefiletracker",
];

/// Any number of arguments from so many on.
const MANY: usize = usize::MAX;

/// Every command.
pub fn all() -> impl Iterator<Item = &'static Command> {
    let groups = [
        general::COMMANDS,
        ddl::COMMANDS,
        namespace::COMMANDS,
        dml::COMMANDS,
        regions::COMMANDS,
        switches::COMMANDS,
        servers::COMMANDS,
        inspect::COMMANDS,
        logs::COMMANDS,
        replication::COMMANDS,
        peers::COMMANDS,
        quotas::COMMANDS,
        snapshots::COMMANDS,
        groups::COMMANDS,
    ];
    groups.into_iter().flatten()
}

/// The command of this name.
pub fn find(name: &str) -> Option<&'static Command> {
    all().find(|command| command.name == name || command.alias == Some(name))
}

/// Runs a command as a shell does: errors are told or raised as the session wants it, and the time is told.
pub fn run(shell: &mut Shell, command: &Command, values: Vec<Value>) -> Result {
    let start = Instant::now();
    let arguments = Arguments::new(values);
    let done = match arguments.count_among(&command.takes) {
        Ok(()) => (command.run)(shell, &arguments),
        Err(wrong) => Err(wrong),
    };
    let result = match done.map_err(|flow| translate::translate(command.name, flow, &arguments)) {
        Err(Flow::Raise(exception)) if shell.session.interactive => {
            let output = &mut shell.session.output;
            output.error(&format!("\nERROR: {}\n", translate::shown(&exception)))?;
            output.aside(&format!("For usage try 'help \"{}\"'\n", command.name))?;
            Ok(Value::Nil)
        }
        other => other,
    };
    shell.session.output.aside(&format!("Took {:.4} seconds", start.elapsed().as_secs_f64()))?;
    shell.session.output.flush()?;
    result
}

/// Commands that a reference to a table has as methods: they take the table first.
const OF_TABLES: &[&str] = &[
    "append",
    "count",
    "delete",
    "deleteall",
    "describe",
    "disable",
    "drop",
    "enable",
    "flush",
    "get",
    "get_counter",
    "get_splits",
    "incr",
    "put",
    "scan",
    "snapshot",
];

/// Calls a method of a reference to a table.
pub fn of_table(shell: &mut Shell, table: &TableName, name: &str, values: Vec<Value>) -> Result {
    match name {
        "name" => return Ok(Value::text(table.as_str())),
        "to_s" => return Ok(Value::text(format!("Hbase::Table - {table}"))),
        "close" => return Ok(Value::Nil),
        "help" => {
            return match values.first() {
                Some(command) => crate::help::help(shell, Some(command)).map(|()| Value::Nil),
                None => crate::help::help(shell, Some(&Value::text("table_help"))).map(|()| Value::Nil),
            };
        }
        "get_all_columns" => {
            let described = ddl::descriptor(shell, table)?;
            let family = |name: &bytes::Bytes| Value::text([name.as_ref(), b":"].concat());
            return Ok(Value::array(described.families.keys().map(family).collect()));
        }
        _ => {}
    }
    let command = find(name).filter(|command| OF_TABLES.contains(&command.name));
    let Some(command) = command else {
        let what =
            format!("undefined method `{name}' for Hbase::Table - {table}: help 'table_help' lists what it can do");
        return Err(Flow::raise("NoMethodError", what));
    };
    let mut all = vec![Value::text(table.as_str())];
    all.extend(values);
    run(shell, command, all)
}
