//! The group `rsgroup`: groups of region servers. Follows: `Hbase::RSGroupAdmin`.

use std::collections::BTreeMap;

use model::TableName;
use proto::pb;

use super::arguments::{Options, table_name, texts};
use super::{Arguments, Command, MANY, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// The attribute of a namespace that names its group.
const GROUP_ATTRIBUTE: &str = "hbase.rsgroup.name";

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("rsgroup", "add_rsgroup", 1..=1, add),
    command("rsgroup", "alter_rsgroup_config", 2..=MANY, alter_config),
    command("rsgroup", "balance_rsgroup", 1..=1, balance),
    command("rsgroup", "get_namespace_rsgroup", 1..=1, of_namespace),
    command("rsgroup", "get_rsgroup", 1..=1, get),
    command("rsgroup", "get_server_rsgroup", 1..=1, of_server),
    command("rsgroup", "get_table_rsgroup", 1..=1, of_table),
    command("rsgroup", "list_rsgroups", 0..=1, list),
    command("rsgroup", "move_namespaces_rsgroup", 2..=2, move_namespaces),
    command("rsgroup", "move_servers_namespaces_rsgroup", 3..=3, move_servers_namespaces),
    command("rsgroup", "move_servers_rsgroup", 2..=2, move_servers),
    command("rsgroup", "move_servers_tables_rsgroup", 3..=3, move_servers_tables),
    command("rsgroup", "move_tables_rsgroup", 2..=2, move_tables),
    command("rsgroup", "remove_rsgroup", 1..=1, remove),
    command("rsgroup", "remove_servers_rsgroup", 1..=MANY, remove_servers),
    command("rsgroup", "rename_rsgroup", 2..=2, rename),
    command("rsgroup", "show_rsgroup_config", 1..=1, show_config),
    command("configuration", "update_rsgroup_config", 1..=1, update_config),
];

/// A group that must be there.
fn existing(shell: &Shell, name: &str) -> Result<pb::RsGroupInfo> {
    let found = shell.session.wait(async { shell.session.admin().group(name).await })?;
    found.ok_or_else(|| Flow::argument(format!("Group does not exist: {name}")))
}

fn servers_of(group: &pb::RsGroupInfo) -> Vec<String> {
    group.servers.iter().map(|server| format!("{}:{}", server.host_name, server.port())).collect()
}

fn tables_of(group: &pb::RsGroupInfo) -> Result<Vec<String>> {
    let name = |table| convert::from_proto::table_name(table).map(|table| table.to_string());
    let names: std::result::Result<_, _> = group.tables.iter().map(name).collect();
    names.map_err(|error| Flow::runtime(format!("the master names a table that cannot be one: {error}")))
}

/// A list of texts; one that is no list is a list of one.
fn list_of(arguments: &Arguments, i: usize) -> Vec<String> {
    arguments.get(i).map(texts).unwrap_or_default()
}

fn tables(arguments: &Arguments, i: usize) -> Result<Vec<TableName>> {
    list_of(arguments, i).iter().map(|name| table_name(name)).collect()
}

/// The tables of namespaces, each of which must be there.
fn tables_in(shell: &Shell, namespaces: &[String]) -> Result<Vec<TableName>> {
    let known = shell.session.wait(async { shell.session.admin().list_namespaces().await })?;
    let mut tables = Vec::new();
    for namespace in namespaces {
        if !known.contains(namespace) {
            return Err(Flow::argument(format!("Can't find a namespace: {namespace}")));
        }
        let admin = shell.session.admin();
        tables.extend(shell.session.wait(async { admin.list_table_names_of_namespace(namespace).await })?);
    }
    Ok(tables)
}

fn add(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    shell.session.wait(async { shell.session.admin().add_group(&name).await }).map(|()| Value::Nil)
}

fn remove(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    shell.session.wait(async { shell.session.admin().remove_group(&name).await }).map(|()| Value::Nil)
}

fn rename(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (old, new) = (arguments.text(0), arguments.text(1));
    shell.session.wait(async { shell.session.admin().rename_group(&old, &new).await }).map(|()| Value::Nil)
}

fn balance(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let reply = shell.session.wait(async { shell.session.admin().balance_group(&name, false, false).await })?;
    let said = if reply.balance_ran { "Ran the balancer." } else { "Couldn't run the balancer." };
    shell.session.output.line(said)?;
    Ok(Value::Bool(reply.balance_ran))
}

fn list(shell: &mut Shell, arguments: &Arguments) -> Result {
    // As Ruby's `match`: anywhere in the name.
    let pattern = match arguments.get(0) {
        None => ".*".to_owned(),
        Some(Value::Regex(pattern)) => pattern.to_string(),
        Some(other) => other.to_text(),
    };
    let matches = crate::evaluator::methods::regex(&pattern)?;
    let groups = shell.session.wait(async { shell.session.admin().groups().await })?;
    shell.session.output.header(&["NAME", "SERVER / TABLE"])?;
    let mut count = 0;
    for group in groups.iter().filter(|group| matches.is_match(&group.name)) {
        count += 1;
        let servers = servers_of(group).into_iter().map(|server| format!("server {server}"));
        let tables = tables_of(group)?.into_iter().map(|table| format!("table {table}"));
        let mut members: Vec<String> = servers.chain(tables).collect();
        if members.is_empty() {
            members.push(String::new());
        }
        for (i, member) in members.iter().enumerate() {
            shell.session.output.row(&[if i == 0 { &group.name } else { "" }, member])?;
        }
    }
    shell.session.output.footer(Some(count))?;
    Ok(Value::Nil)
}

fn get(shell: &mut Shell, arguments: &Arguments) -> Result {
    let group = existing(shell, &arguments.text(0))?;
    for (head, members) in [("SERVERS", servers_of(&group)), ("TABLES", tables_of(&group)?)] {
        shell.session.output.header(&[head])?;
        for member in &members {
            shell.session.output.row(&[member])?;
        }
        shell.session.output.footer(None)?;
    }
    Ok(Value::Nil)
}

/// The name alone.
fn shown(shell: &mut Shell, name: Option<&str>) -> Result {
    if let Some(name) = name {
        shell.session.output.row(&[name])?;
    }
    shell.session.output.footer(Some(1))?;
    Ok(Value::Nil)
}

fn of_server(shell: &mut Shell, arguments: &Arguments) -> Result {
    let server = arguments.text(0);
    let group = shell.session.wait(async { shell.session.admin().group_of_server(&server).await })?;
    let group = group.ok_or_else(|| Flow::argument(format!("Server has no group: {server}")))?;
    shown(shell, Some(&group.name))
}

fn of_table(shell: &mut Shell, arguments: &Arguments) -> Result {
    let table = arguments.table(0)?;
    let group = shell.session.wait(async { shell.session.admin().group_of_table(&table).await })?;
    let group = group.ok_or_else(|| Flow::argument(format!("Table has no group: {table}")))?;
    shown(shell, Some(&group.name))
}

fn of_namespace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let properties = shell.session.wait(async { shell.session.admin().describe_namespace(&name).await })?;
    shown(shell, properties.get(GROUP_ATTRIBUTE).map(String::as_str))
}

fn move_servers(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (target, servers) = (arguments.text(0), list_of(arguments, 1));
    let admin = shell.session.admin();
    shell.session.wait(async { admin.move_servers_to_group(&servers, &target).await }).map(|()| Value::Nil)
}

fn move_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (target, tables) = (arguments.text(0), tables(arguments, 1)?);
    let admin = shell.session.admin();
    shell.session.wait(async { admin.move_tables_to_group(&tables, &target).await }).map(|()| Value::Nil)
}

fn move_both(shell: &Shell, target: &str, servers: &[String], tables: &[TableName]) -> Result {
    let admin = shell.session.admin();
    let moved = async { admin.move_servers_and_tables_to_group(servers, tables, target).await };
    shell.session.wait(moved).map(|()| Value::Nil)
}

fn move_servers_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    move_both(shell, &arguments.text(0), &list_of(arguments, 1), &tables(arguments, 2)?)
}

fn move_servers_namespaces(shell: &mut Shell, arguments: &Arguments) -> Result {
    let tables = tables_in(shell, &list_of(arguments, 2))?;
    move_both(shell, &arguments.text(0), &list_of(arguments, 1), &tables)
}

/// The tables that there are, and by the namespace's attribute those to come.
fn move_namespaces(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (target, namespaces) = (arguments.text(0), list_of(arguments, 1));
    let tables = tables_in(shell, &namespaces)?;
    let admin = shell.session.admin();
    shell.session.wait(async { admin.move_tables_to_group(&tables, &target).await })?;
    for namespace in &namespaces {
        let mut properties = shell.session.wait(async { admin.describe_namespace(namespace).await })?;
        properties.insert(GROUP_ATTRIBUTE.to_owned(), target.clone());
        shell.session.wait(async { admin.modify_namespace(namespace, &properties).await })?;
    }
    Ok(Value::Nil)
}

fn remove_servers(shell: &mut Shell, arguments: &Arguments) -> Result {
    let servers: Vec<String> = arguments.from(0).iter().flat_map(texts).collect();
    let admin = shell.session.admin();
    shell.session.wait(async { admin.remove_servers_from_groups(&servers).await }).map(|()| Value::Nil)
}

fn alter_config(shell: &mut Shell, arguments: &Arguments) -> Result {
    if !matches!(arguments.get(0), Some(Value::Text(_))) {
        return Err(Flow::argument("RSGroup name must be of type String"));
    }
    let name = arguments.text(0);
    let group = shell.session.wait(async { shell.session.admin().group(&name).await })?;
    let group = group.ok_or_else(|| Flow::argument("RSGroup does not exist"))?;
    let mut pairs: BTreeMap<String, String> =
        group.configuration.into_iter().map(|pair| (pair.name, pair.value)).collect();
    let given = arguments.from(1).iter().flat_map(|value| match value {
        Value::Array(items) => items.borrow().clone(),
        other => vec![other.clone()],
    });
    for value in given.filter(|value| !value.is_nil()) {
        let mut options = Options::of(Some(&value))?;
        match options.take_text("METHOD").as_deref() {
            Some("set") => pairs.extend(options.rest().iter().map(|(key, value)| (key.to_text(), value.to_text()))),
            Some("unset") => {
                pairs.remove(&options.take_text("NAME").unwrap_or_default());
            }
            other => return Err(Flow::argument(format!("Unknown method {}", other.unwrap_or_default()))),
        }
    }
    let pairs = pairs.into_iter().map(|(name, value)| pb::NameStringPair { name, value }).collect();
    shell.session.wait(async { shell.session.admin().configure_group(&name, pairs).await }).map(|()| Value::Nil)
}

fn show_config(shell: &mut Shell, arguments: &Arguments) -> Result {
    let group = existing(shell, &arguments.text(0))?;
    let output = &mut shell.session.output;
    // The quotes are HBase's.
    output.header(&["'KEY'", "'VALUE'"])?;
    for pair in &group.configuration {
        output.row(&[&pair.name, &pair.value])?;
    }
    output.footer(Some(group.configuration.len() as u64))?;
    Ok(Value::Nil)
}

fn update_config(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    match shell.session.wait(async { shell.session.admin().update_group_configuration(&name).await })? {
        true => Ok(Value::Nil),
        false => {
            let message = format!("RSGroup does not exist: {name}");
            Err(Flow::raise("Java::JavaLang::IllegalArgumentException", message))
        }
    }
}
