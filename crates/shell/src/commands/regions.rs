//! Work on regions and servers: flush, compact, split, merge, move, stop. Part of `tools`, and the group `configuration`.

use bytes::Bytes;
use client::CompactionState;
use model::ServerName;

use super::arguments::texts;
use super::listing::one_column;
use super::{Arguments, Command, MANY, command, ddl};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("tools", "assign", 1..=1, assign),
    command("tools", "clear_block_cache", 1..=1, clear_block_cache),
    Command { alias: Some("close_region"), ..command("tools", "unassign", 1..=2, unassign) },
    command("tools", "compact", 1..=3, |shell, arguments| compact(shell, arguments, false)),
    command("tools", "compact_rs", 1..=2, compact_rs),
    command("tools", "compaction_state", 1..=1, compaction_state),
    command("tools", "flush", 1..=2, flush),
    command("tools", "list_deadservers", 0..=0, list_deadservers),
    command("tools", "list_decommissioned_regionservers", 0..=0, list_decommissioned),
    command("tools", "list_liveservers", 0..=0, list_liveservers),
    command("tools", "list_unknownservers", 0..=0, list_unknownservers),
    command("tools", "major_compact", 1..=3, |shell, arguments| compact(shell, arguments, true)),
    command("tools", "merge_region", 1..=MANY, merge_region),
    command("tools", "move", 1..=2, move_region),
    command("tools", "split", 1..=2, split),
    command("tools", "stop_master", 0..=0, stop_master),
    command("tools", "stop_regionserver", 1..=1, stop_regionserver),
    Command { alias: Some("hlog_roll"), ..command("tools", "wal_roll", 1..=1, wal_roll) },
    command("configuration", "update_all_config", 0..=0, update_all_config),
    command("configuration", "update_config", 1..=1, update_config),
];

/// What a command that takes a table, a region or a server was given.
enum Place {
    Table(model::TableName),
    Region(Bytes),
    Server(ServerName),
}

fn place(shell: &Shell, arguments: &Arguments) -> Result<Place> {
    let text = arguments.text(0);
    if let Some(Value::Table(name)) = arguments.get(0) {
        return Ok(Place::Table(name.clone()));
    }
    if let Ok(server) = text.parse() {
        return Ok(Place::Server(server));
    }
    let encoded = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if encoded || text.contains(',') {
        return Ok(Place::Region(ddl::unescaped(&arguments.bytes(0))));
    }
    let name = arguments.table(0)?;
    match ddl::is_there(shell, &name)? {
        true => Ok(Place::Table(name)),
        false => Err(Flow::argument(format!("{text} is neither a table, nor a region, nor a server of this cluster"))),
    }
}

/// A server by its whole name, or by `host:port` or `host` among those that are alive.
pub(super) fn server(shell: &Shell, text: &str) -> Result<ServerName> {
    if let Ok(server) = text.parse() {
        return Ok(server);
    }
    let alive = shell.session.wait(async { shell.session.admin().servers().await })?;
    let found = alive.into_iter().find(|server| server.address() == text || *server.host == *text);
    found.ok_or_else(|| Flow::argument(format!("no server {text} is alive; list_liveservers names those that are")))
}

fn assign(shell: &mut Shell, arguments: &Arguments) -> Result {
    let region = ddl::unescaped(&arguments.bytes(0));
    shell.session.wait(async { shell.session.admin().assign(&region).await }).map(|()| Value::Nil)
}

fn unassign(shell: &mut Shell, arguments: &Arguments) -> Result {
    let region = ddl::unescaped(&arguments.bytes(0));
    shell.session.wait(async { shell.session.admin().unassign(&region).await }).map(|()| Value::Nil)
}

fn flush(shell: &mut Shell, arguments: &Arguments) -> Result {
    let place = place(shell, arguments)?;
    let family = arguments.get(1).map(Value::to_bytes);
    let families: Vec<Bytes> = family.iter().map(|family| Bytes::copy_from_slice(family)).collect();
    let admin = shell.session.admin();
    shell.session.wait(async {
        match &place {
            Place::Table(name) => admin.flush_families(name, &families).await,
            Place::Region(region) => admin.flush_region(region, family.as_deref()).await,
            Place::Server(server) => admin.flush_server(server).await,
        }
    })?;
    Ok(Value::Nil)
}

fn compact(shell: &mut Shell, arguments: &Arguments, major: bool) -> Result {
    let place = place(shell, arguments)?;
    let family = arguments.get(1).map(Value::to_bytes);
    match arguments.optional_text(2).as_deref() {
        None | Some("NORMAL") => {}
        Some(other) => {
            return Err(Flow::argument(format!("compaction type {other} is not supported by this shell yet")));
        }
    }
    let admin = shell.session.admin();
    shell.session.wait(async {
        match &place {
            Place::Table(name) => admin.compact_family(name, family.as_deref(), major).await,
            Place::Region(region) => admin.compact_region(region, family.as_deref(), major).await,
            Place::Server(server) => admin.compact_server(server, major).await,
        }
    })?;
    Ok(Value::Nil)
}

fn compact_rs(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (server, major) = (server(shell, &arguments.text(0))?, arguments.truth(1));
    shell.session.wait(async { shell.session.admin().compact_server(&server, major).await }).map(|()| Value::Nil)
}

fn compaction_state(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let state: CompactionState = shell.session.wait(async { shell.session.admin().compaction_state(&name).await })?;
    let word = word(state);
    shell.session.output.row(&[word])?;
    Ok(Value::text(word))
}

/// Java's name of the state.
fn word(state: CompactionState) -> &'static str {
    state.as_str_name()
}

fn clear_block_cache(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let stats = shell.session.wait(async { shell.session.admin().clear_block_cache(&name).await })?;
    let text = format!(
        "CacheEvictionStats{{evictedBlocks={}, maxCacheSize={}}}",
        stats.evicted_blocks(),
        stats.max_cache_size()
    );
    shell.session.output.row(&[&text])?;
    Ok(Value::Nil)
}

/// Lists servers.
pub(super) fn servers(shell: &mut Shell, head: &str, names: &[ServerName]) -> Result {
    let names: Vec<String> = names.iter().map(ServerName::to_string).collect();
    one_column(shell, head, &names)?;
    Ok(Value::Nil)
}

fn list_liveservers(shell: &mut Shell, _: &Arguments) -> Result {
    let names = shell.session.wait(async { shell.session.admin().servers().await })?;
    servers(shell, "SERVERNAME", &names)
}

fn list_deadservers(shell: &mut Shell, _: &Arguments) -> Result {
    let names = shell.session.wait(async { shell.session.admin().dead_servers().await })?;
    servers(shell, "SERVERNAME", &names)
}

fn list_unknownservers(shell: &mut Shell, _: &Arguments) -> Result {
    let names = shell.session.wait(async { shell.session.admin().unknown_servers().await })?;
    servers(shell, "SERVERNAME", &names)
}

fn list_decommissioned(shell: &mut Shell, _: &Arguments) -> Result {
    let names = shell.session.wait(async { shell.session.admin().decommissioned_servers().await })?;
    servers(shell, "DECOMMISSIONED REGION SERVERS", &names)
}

fn merge_region(shell: &mut Shell, arguments: &Arguments) -> Result {
    let mut force = false;
    let mut regions: Vec<Bytes> = Vec::new();
    for argument in arguments.from(0) {
        match argument {
            Value::Bool(forced) => force = *forced,
            other => regions.extend(texts(other).iter().map(|region| ddl::unescaped(region.as_bytes()))),
        }
    }
    if regions.len() < 2 {
        return Err(Flow::argument("Must pass at least 2 regions to merge"));
    }
    shell.session.wait(async { shell.session.admin().merge_regions(&regions, force).await }).map(|()| Value::Nil)
}

fn move_region(shell: &mut Shell, arguments: &Arguments) -> Result {
    let region = ddl::unescaped(&arguments.bytes(0));
    let to = match arguments.optional_text(1).filter(|name| !name.is_empty()) {
        Some(name) => Some(server(shell, &name)?),
        None => None,
    };
    shell.session.wait(async { shell.session.admin().move_region(&region, to.as_ref()).await }).map(|()| Value::Nil)
}

fn split(shell: &mut Shell, arguments: &Arguments) -> Result {
    let place = place(shell, arguments)?;
    let point = arguments.get(1).map(Value::to_bytes);
    let admin = shell.session.admin();
    match place {
        Place::Server(server) => {
            return Err(Flow::argument(format!("{server} is a server: a table or region is split")));
        }
        Place::Table(name) => shell.session.wait(async { admin.split(&name, point.as_deref()).await })?,
        Place::Region(region) => shell.session.wait(async { admin.split_region(&region, point.as_deref()).await })?,
    }
    Ok(Value::Nil)
}

fn stop_master(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.wait(async { shell.session.admin().stop_master().await }).map(|()| Value::Nil)
}

fn stop_regionserver(shell: &mut Shell, arguments: &Arguments) -> Result {
    let server = server(shell, &arguments.text(0))?;
    let why = "asked for by a shell";
    shell.session.wait(async { shell.session.admin().stop_server(&server, why).await }).map(|()| Value::Nil)
}

fn wal_roll(shell: &mut Shell, arguments: &Arguments) -> Result {
    let server = server(shell, &arguments.text(0))?;
    shell.session.wait(async { shell.session.admin().roll_wal(&server).await }).map(|()| Value::Nil)
}

fn update_all_config(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.wait(async { shell.session.admin().update_all_configurations().await }).map(|()| Value::Nil)
}

fn update_config(shell: &mut Shell, arguments: &Arguments) -> Result {
    let server = server(shell, &arguments.text(0))?;
    shell.session.wait(async { shell.session.admin().update_configuration(&server).await }).map(|()| Value::Nil)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_two_compactions_at_once_has_its_underscores() {
        let words = [CompactionState::None, CompactionState::Minor, CompactionState::MajorAndMinor].map(word);
        assert_eq!(words, ["NONE", "MINOR", "MAJOR_AND_MINOR"]);
    }
}
