//! What `help` says: a text of our own for every command and group.

mod ddl;
mod dml;
mod general;
mod groups;
mod logs;
mod namespace;
mod peers;
mod quotas;
mod servers;
mod tools;

use crate::commands::{self, GROUPS};
use crate::evaluator::Shell;
use crate::failure::Result;
use crate::value::Value;

/// Commands with what they do and examples.
type Texts = &'static [(&'static str, &'static str)];

const ALL: &[Texts] = &[
    general::TEXTS,
    ddl::TEXTS,
    dml::TEXTS,
    namespace::TEXTS,
    tools::TEXTS,
    servers::TEXTS,
    logs::TEXTS,
    peers::TEXTS,
    quotas::TEXTS,
    groups::TEXTS,
];

/// The text for a command.
pub fn text(command: &str) -> Option<&'static str> {
    let command = commands::find(command)?;
    ALL.iter().flat_map(|texts| texts.iter()).find(|(name, _)| *name == command.name).map(|(_, text)| *text)
}

/// `help`, `help 'command'`, `help 'group'`.
///
/// # Errors
/// Output cannot be written.
pub fn help(shell: &mut Shell, what: Option<&Value>) -> Result<()> {
    let Some(what) = what.map(Value::to_text) else { return overview(shell, true) };
    if let Some(text) = text(&what) {
        return shell.session.output.line(text.trim_end());
    }
    if GROUPS.contains(&what.as_str()) {
        return group(shell, &what);
    }
    shell.session.output.line(&format!("ERROR: Invalid command or command group name: {what}\n"))?;
    overview(shell, false)
}

/// Every command of a group with its text.
///
/// # Errors
/// Output cannot be written.
pub fn group(shell: &mut Shell, group: &str) -> Result<()> {
    for command in commands::all().filter(|command| command.group == group) {
        shell.session.output.line(&format!("Command: {}", command.name))?;
        shell.session.output.line(text(command.name).unwrap_or("").trim_end())?;
        shell.session.output.line("")?;
    }
    Ok(())
}

fn overview(shell: &mut Shell, with_usage: bool) -> Result<()> {
    let output = &mut shell.session.output;
    output.line(&format!("HBase Shell, version {}", commands::version_line()))?;
    output.line(
        "Type 'help \"COMMAND\"' (with the quotes) for one command, 'help \"GROUP\"' for a group of commands.\n",
    )?;
    output.line("COMMAND GROUPS:")?;
    for group in GROUPS {
        let names: Vec<&str> =
            commands::all().filter(|command| command.group == *group).map(|command| command.name).collect();
        output.line(&format!("  Group name: {group}\n  Commands: {}\n", names.join(", ")))?;
    }
    if with_usage {
        output.line(USAGE.trim_end())?;
    }
    Ok(())
}

const USAGE: &str = "\
SHELL USAGE:
Names of tables, rows and columns are strings: put them into quotes. Arguments are parted by commas. Options are hashes,
  {NAME => 'f', VERSIONS => 3}
whose keys are constants such as NAME, VERSIONS, COMPRESSION, or strings. Bytes that cannot be typed are written in double
quotes: \"key\\x00\\xFF\", or in octal, \"key\\000\\377\".
Variables, arrays, ranges, blocks (each, times, map), if, unless, while, for, case, def, begin/rescue and \"#{...}\" in double
quotes work as in Ruby; what is beyond that is refused with its line and column.
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_has_a_text_with_an_example_and_no_text_is_left_over() {
        for command in commands::all() {
            let text = text(command.name).unwrap_or_default();
            assert!(text.contains("hbase> "), "help for {} has no example", command.name);
            assert!(GROUPS.contains(&command.group), "{} is in no group", command.name);
        }
        let known: BTreeSet<&str> = commands::all().map(|command| command.name).collect();
        let texts: BTreeSet<&str> = ALL.iter().flat_map(|texts| texts.iter()).map(|(name, _)| *name).collect();
        assert_eq!(texts, known);
    }
}
