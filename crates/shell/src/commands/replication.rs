//! The group `replication`: tables whose cells are replicated, and peers as they stand.

use proto::pb;

use super::listing::whole_match;
use super::{Arguments, Command, command, peers};
use crate::evaluator::Shell;
use crate::failure::Result;
use crate::value::Value;

/// The group.
pub(super) const COMMANDS: &[Command] = &[
    command("replication", "disable_peer", 1..=1, disable_peer),
    command("replication", "disable_table_replication", 1..=1, disable_table_replication),
    command("replication", "enable_peer", 1..=1, enable_peer),
    command("replication", "enable_table_replication", 1..=1, enable_table_replication),
    command("replication", "list_peers", 0..=0, list_peers),
    command("replication", "list_replicated_tables", 0..=1, list_replicated_tables),
    command("replication", "remove_peer", 1..=1, remove_peer),
];

fn enable_peer(shell: &mut Shell, arguments: &Arguments) -> Result {
    let id = arguments.text(0);
    shell.session.wait(async { shell.session.admin().enable_replication_peer(&id).await }).map(|()| Value::Nil)
}

fn disable_peer(shell: &mut Shell, arguments: &Arguments) -> Result {
    let id = arguments.text(0);
    shell.session.wait(async { shell.session.admin().disable_replication_peer(&id).await }).map(|()| Value::Nil)
}

fn remove_peer(shell: &mut Shell, arguments: &Arguments) -> Result {
    let id = arguments.text(0);
    shell.session.wait(async { shell.session.admin().remove_replication_peer(&id).await }).map(|()| Value::Nil)
}

fn enable_table_replication(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    shell.session.wait(async { shell.session.admin().enable_table_replication(&name).await })?;
    shell.session.output.line(&format!("The replication of table '{name}' successfully enabled"))?;
    Ok(Value::Nil)
}

fn disable_table_replication(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    shell.session.wait(async { shell.session.admin().disable_table_replication(&name).await })?;
    shell.session.output.line(&format!("Replication of table '{name}' successfully disabled."))?;
    Ok(Value::Nil)
}

fn list_replicated_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    let matches = whole_match(arguments.get(0))?;
    let tables = shell.session.wait(async { shell.session.admin().list_replicated_tables().await })?;
    let output = &mut shell.session.output;
    output.header(&["TABLE:COLUMNFAMILY", "ReplicationType"])?;
    for (table, families) in tables.iter().filter(|(table, _)| matches.is_match(table.as_str())) {
        for family in families {
            output.row(&[&format!("{table}:{}", String::from_utf8_lossy(family)), "GLOBAL"])?;
        }
    }
    output.footer(None)?;
    Ok(Value::Nil)
}

fn list_peers(shell: &mut Shell, _: &Arguments) -> Result {
    let peers = shell.session.wait(async { shell.session.admin().replication_peers(None).await })?;
    let output = &mut shell.session.output;
    output.header(&[
        "PEER_ID",
        "CLUSTER_KEY",
        "ENDPOINT_CLASSNAME",
        "STATE",
        "REPLICATE_ALL",
        "NAMESPACES",
        "TABLE_CFS",
        "BANDWIDTH",
        "SERIAL",
    ])?;
    for peer in &peers {
        let config = &peer.config;
        let enabled = peer.state.state() == pb::replication_state::State::Enabled;
        let all = config.replicate_all();
        let (mut spaces, tables) = match all {
            true => (config.exclude_namespaces.clone(), &config.exclude_table_cfs),
            false => (config.namespaces.clone(), &config.table_cfs),
        };
        spaces.sort_unstable();
        let spaces: Vec<String> = spaces.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        // What is left out is marked; nothing is shown of lists that are empty.
        let marked = |text: String| if all && !text.is_empty() { format!("!{text}") } else { text };
        output.row(&[
            &peer.id,
            config.clusterkey(),
            config.replication_endpoint_impl(),
            if enabled { "ENABLED" } else { "DISABLED" },
            &all.to_string(),
            &marked(spaces.join(";")),
            &marked(peers::convert_to_string(tables)),
            &config.bandwidth().to_string(),
            &config.serial().to_string(),
        ])?;
    }
    output.footer(None)?;
    Ok(Value::Nil)
}
