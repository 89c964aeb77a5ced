//! The group `namespace`.

use std::collections::BTreeMap;

use super::describe::quotas_line;
use super::listing::{one_column, whole_match};
use super::{Arguments, Command, MANY, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// The group.
pub(super) const COMMANDS: &[Command] = &[
    command("namespace", "alter_namespace", 2..=MANY, alter_namespace),
    command("namespace", "create_namespace", 1..=MANY, create_namespace),
    command("namespace", "describe_namespace", 1..=1, describe_namespace),
    command("namespace", "drop_namespace", 1..=1, drop_namespace),
    command("namespace", "list_namespace", 0..=1, list_namespace),
    command("namespace", "list_namespace_tables", 1..=1, list_namespace_tables),
];

fn create_namespace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let mut properties = BTreeMap::new();
    for i in 1..arguments.len() {
        let options = arguments.hash(i)?;
        properties.extend(options.rest().iter().map(|(key, value)| (key.to_text(), value.to_text())));
    }
    shell.session.wait(async { shell.session.admin().create_namespace(&name, &properties).await })?;
    Ok(Value::Nil)
}

fn alter_namespace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let mut properties = shell.session.wait(async { shell.session.admin().describe_namespace(&name).await })?;
    for i in 1..arguments.len() {
        let mut options = arguments.hash(i)?;
        match options.take_text("METHOD").as_deref() {
            Some("set") => {
                properties.extend(options.rest().iter().map(|(key, value)| (key.to_text(), value.to_text())));
            }
            Some("unset") => {
                let key = options
                    .take_text("NAME")
                    .ok_or_else(|| Flow::argument("NAME parameter missing for unset method"))?;
                properties.remove(&key);
            }
            _ => return Err(Flow::argument("METHOD must be 'set' or 'unset'")),
        }
    }
    shell.session.wait(async { shell.session.admin().modify_namespace(&name, &properties).await })?;
    Ok(Value::Nil)
}

fn describe_namespace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let properties = shell.session.wait(async { shell.session.admin().describe_namespace(&name).await })?;
    let properties: String = properties.iter().map(|(key, value)| format!(", {key} => '{value}'")).collect();
    let output = &mut shell.session.output;
    output.header(&["DESCRIPTION"])?;
    output.row(&[&format!("{{NAME => '{name}'{properties}}}")])?;
    quotas_line(shell, false)?;
    Ok(Value::Nil)
}

fn drop_namespace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    shell.session.wait(async { shell.session.admin().delete_namespace(&name).await })?;
    Ok(Value::Nil)
}

fn list_namespace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let matches = whole_match(arguments.get(0))?;
    let mut names = shell.session.wait(async { shell.session.admin().list_namespaces().await })?;
    names.retain(|name| matches.is_match(name));
    one_column(shell, "NAMESPACE", &names)?;
    Ok(Value::Nil)
}

fn list_namespace_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let names = shell.session.wait(async { shell.session.admin().list_table_names_of_namespace(&name).await })?;
    let names: Vec<String> = names.iter().map(|name| name.qualifier().to_owned()).collect();
    one_column(shell, "TABLE", &names)
}
