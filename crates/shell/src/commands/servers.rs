//! Servers in and out of service, their queues and logs; procedures and locks of the master. Parts of `tools`, `procedures`, `quotas`,
//! `security` and `storefiletracker`.

use client::Admin;
use model::ServerName;
use proto::pb;

use super::arguments::texts;
use super::regions::{server, servers};
use super::{Arguments, Command, MANY, command, ddl, listing};
use crate::evaluator::Shell;
use crate::failure::Result;
use crate::pretty;
use crate::value::Value;

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("tools", "clear_compaction_queues", 1..=2, clear_compaction_queues),
    command("tools", "clear_deadservers", 0..=MANY, clear_deadservers),
    command("tools", "compaction_switch", 1..=MANY, compaction_switch),
    command("tools", "decommission_regionservers", 1..=2, decommission),
    command("tools", "flush_master_store", 0..=0, flush_master_store),
    command("tools", "recommission_regionserver", 1..=2, recommission),
    command("tools", "rit", 0..=0, rit),
    command("tools", "truncate_region", 1..=1, truncate_region),
    command("procedures", "list_locks", 0..=0, list_locks),
    command("procedures", "list_procedures", 0..=0, list_procedures),
    command("quotas", "disable_exceed_throttle_quota", 0..=0, |shell, _| exceed_throttle(shell, false)),
    command("quotas", "disable_rpc_throttle", 0..=0, |shell, _| rpc_throttle(shell, false)),
    command("quotas", "enable_exceed_throttle_quota", 0..=0, |shell, _| exceed_throttle(shell, true)),
    command("quotas", "enable_rpc_throttle", 0..=0, |shell, _| rpc_throttle(shell, true)),
    command("security", "list_security_capabilities", 0..=0, list_security_capabilities),
    command("storefiletracker", "change_sft", 2..=3, change_sft),
    command("storefiletracker", "change_sft_all", 2..=3, change_sft_all),
];

/// Servers by their names, in lists or one by one; all that are alive where none is named.
fn named(shell: &Shell, values: &[Value]) -> Result<Vec<ServerName>> {
    let names: Vec<String> = values.iter().flat_map(texts).collect();
    match names.is_empty() {
        true => shell.session.wait(async { shell.session.admin().servers().await }),
        false => names.iter().map(|name| server(shell, name)).collect(),
    }
}

fn clear_compaction_queues(shell: &mut Shell, arguments: &Arguments) -> Result {
    let server = server(shell, &arguments.text(0))?;
    let queues = arguments.get(1).map_or_else(|| vec!["long".to_owned(), "short".to_owned()], texts);
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let admin = shell.session.admin();
    shell.session.wait(async { admin.clear_compaction_queues(&server, &queues).await }).map(|()| Value::Nil)
}

fn clear_deadservers(shell: &mut Shell, arguments: &Arguments) -> Result {
    let admin = shell.session.admin();
    let dead = match arguments.is_empty() {
        true => shell.session.wait(async { admin.dead_servers().await })?,
        false => named(shell, arguments.from(0))?,
    };
    let left = shell.session.wait(async { admin.clear_dead_servers(&dead).await })?;
    if left.is_empty() {
        shell.session.output.row(&["true"])?;
        return Ok(Value::array(Vec::new()));
    }
    shell.session.output.row(&["Some dead server clear failed"])?;
    servers(shell, "SERVERNAME", &left)?;
    Ok(Value::array(left.iter().map(|server| Value::text(server.to_string())).collect()))
}

fn compaction_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let on = arguments.truth(0);
    let among = named(shell, arguments.from(1))?;
    shell.session.output.header(&["SERVER", "PREV_STATE"])?;
    for server in &among {
        let was = shell.session.wait(async { shell.session.admin().set_compaction(server, on).await })?;
        shell.session.output.row(&[&server.to_string(), &was.to_string()])?;
    }
    shell.session.output.footer(Some(among.len() as u64))?;
    Ok(Value::Nil)
}

fn decommission(shell: &mut Shell, arguments: &Arguments) -> Result {
    let names = arguments.get(0).map(texts).unwrap_or_default();
    let among: Result<Vec<ServerName>> = names.iter().map(|name| server(shell, name)).collect();
    let (among, offload) = (among?, arguments.truth(1));
    let admin = shell.session.admin();
    shell.session.wait(async { admin.decommission_servers(&among, offload).await }).map(|()| Value::Nil)
}

fn recommission(shell: &mut Shell, arguments: &Arguments) -> Result {
    let server = server(shell, &arguments.text(0))?;
    let regions = arguments.get(1).map(texts).unwrap_or_default();
    let regions: Vec<bytes::Bytes> = regions.iter().map(|region| ddl::unescaped(region.as_bytes())).collect();
    let admin = shell.session.admin();
    shell.session.wait(async { admin.recommission_server(&server, &regions).await }).map(|()| Value::Nil)
}

fn flush_master_store(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.wait(async { shell.session.admin().flush_master_store().await }).map(|()| Value::Nil)
}

fn truncate_region(shell: &mut Shell, arguments: &Arguments) -> Result {
    let region = ddl::unescaped(&arguments.bytes(0));
    shell.session.wait(async { shell.session.admin().truncate_region(&region).await }).map(|()| Value::Nil)
}

fn rit(shell: &mut Shell, _: &Arguments) -> Result {
    let part = [pb::Option::RegionsInTransition];
    let status = shell.session.wait(async { shell.session.admin().cluster_status_of(&part).await })?;
    for region in &status.regions_in_transition {
        let name = cell::print::to_string_binary(&region.spec.value);
        let state = region.region_state.state().as_str_name();
        shell.session.output.row(&[&format!("{name} state={state}")])?;
    }
    shell.session.output.footer(Some(status.regions_in_transition.len() as u64))?;
    Ok(Value::Nil)
}

fn list_procedures(shell: &mut Shell, _: &Arguments) -> Result {
    let procedures = shell.session.wait(async { shell.session.admin().procedures().await })?;
    let output = &mut shell.session.output;
    output.header(&["PID", "Name", "State", "Submitted", "Last_Update", "Parameters"])?;
    for procedure in &procedures {
        output.row(&[
            &procedure.proc_id.to_string(),
            &procedure.class_name,
            procedure.state().as_str_name(),
            &pretty::moment(procedure.submitted_time as i64),
            &pretty::moment(procedure.last_update as i64),
            "[]",
        ])?;
    }
    output.footer(Some(procedures.len() as u64))?;
    Ok(Value::Nil)
}

fn list_locks(shell: &mut Shell, _: &Arguments) -> Result {
    let locks = shell.session.wait(async { shell.session.admin().locks().await })?;
    let output = &mut shell.session.output;
    for lock in &locks {
        output.line(&format!("{}({})", lock.resource_type().as_str_name(), lock.resource_name()))?;
        let kind = lock.lock_type().as_str_name();
        match &lock.exclusive_lock_owner_procedure {
            Some(owner) => output.line(&format!("Lock type: {kind}, procedure: {}", owner.proc_id))?,
            None => output.line(&format!("Lock type: {kind}, count: {}", lock.shared_lock_count()))?,
        }
        output.line("")?;
    }
    Ok(Value::Nil)
}

/// Prints how a switch stood before.
fn switched(shell: &mut Shell, what: &str, was: bool) -> Result {
    shell.session.output.row(&[&format!("Previous {what} : {was}")])?;
    Ok(Value::Bool(was))
}

fn rpc_throttle(shell: &mut Shell, on: bool) -> Result {
    let was = shell.session.wait(async { shell.session.admin().set_rpc_throttle(on).await })?;
    switched(shell, "rpc throttle state", was)
}

fn exceed_throttle(shell: &mut Shell, on: bool) -> Result {
    let was = shell.session.wait(async { shell.session.admin().set_exceed_throttle_quota(on).await })?;
    switched(shell, "exceed throttle quota enabled", was)
}

fn list_security_capabilities(shell: &mut Shell, _: &Arguments) -> Result {
    let capabilities = shell.session.wait(async { shell.session.admin().security_capabilities().await })?;
    let names: Vec<&str> = capabilities.iter().map(|capability| capability.as_str_name()).collect();
    for name in &names {
        shell.session.output.line(name)?;
    }
    Ok(Value::array(names.into_iter().map(Value::text).collect()))
}

fn change_sft(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let admin: Admin = shell.session.admin();
    shell.session.wait(async {
        match arguments.len() {
            2 => admin.modify_table_store_file_tracker(&name, &arguments.text(1)).await,
            _ => admin.modify_family_store_file_tracker(&name, arguments.bytes(1), &arguments.text(2)).await,
        }
    })?;
    Ok(Value::Nil)
}

fn change_sft_all(shell: &mut Shell, arguments: &Arguments) -> Result {
    let pattern = arguments.text(0);
    let names = listing::names_like(shell, Some(&pattern))?;
    for name in &names {
        shell.session.output.row(&[name.as_str()])?;
    }
    let count = names.len();
    if count == 0 {
        shell.session.output.line(&format!("No tables matched the regex {pattern}"))?;
        return Ok(Value::Nil);
    }
    if !listing::confirmed(shell, &format!("Change the above {count} tables' sft"))? {
        return Ok(Value::Nil);
    }
    let admin: Admin = shell.session.admin();
    for name in &names {
        shell.session.wait(async {
            match arguments.len() {
                2 => admin.modify_table_store_file_tracker(name, &arguments.text(1)).await,
                _ => admin.modify_family_store_file_tracker(name, arguments.bytes(1), &arguments.text(2)).await,
            }
        })?;
    }
    shell.session.output.line(&format!("{count} tables' sft changed"))?;
    Ok(Value::Nil)
}
