//! Switches of the master and what it runs on demand: the balancer, the normalizer, the cleaners, the catalog janitor. Part of `tools`.

use super::ddl::truth_row;
use super::{Arguments, Command, MANY, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("tools", "balance_switch", 1..=1, balance_switch),
    command("tools", "balancer", 0..=2, balancer),
    command("tools", "balancer_enabled", 0..=0, balancer_enabled),
    command("tools", "catalogjanitor_enabled", 0..=0, catalogjanitor_enabled),
    command("tools", "catalogjanitor_run", 0..=0, catalogjanitor_run),
    command("tools", "catalogjanitor_switch", 1..=1, catalogjanitor_switch),
    command("tools", "cleaner_chore_enabled", 0..=0, cleaner_chore_enabled),
    command("tools", "cleaner_chore_run", 0..=0, cleaner_chore_run),
    command("tools", "cleaner_chore_switch", 1..=1, cleaner_chore_switch),
    command("tools", "hbck_chore_run", 0..=0, hbck_chore_run),
    command("tools", "is_in_maintenance_mode", 0..=0, is_in_maintenance_mode),
    command("tools", "normalize", 0..=MANY, normalize),
    command("tools", "normalizer_enabled", 0..=0, normalizer_enabled),
    command("tools", "normalizer_switch", 1..=1, normalizer_switch),
    command("tools", "snapshot_cleanup_enabled", 0..=0, snapshot_cleanup_enabled),
    command("tools", "snapshot_cleanup_switch", 1..=1, snapshot_cleanup_switch),
    command("tools", "splitormerge_enabled", 1..=1, splitormerge_enabled),
    command("tools", "splitormerge_switch", 2..=2, splitormerge_switch),
    command("tools", "trace", 0..=2, trace),
];

/// Prints a state in a sentence and gives it back.
fn said(shell: &mut Shell, what: &str, is: bool) -> Result {
    shell.session.output.row(&[&format!("Previous {what} state : {is}")])?;
    Ok(Value::Bool(is))
}

/// Whether a span is open. Its name, behind 'start', is for a receiver of spans, and there is none.
fn trace(shell: &mut Shell, arguments: &Arguments) -> Result {
    let what = arguments.from(0).first().map(|what| what.to_text());
    match what.as_deref() {
        Some("start") => shell.session.is_tracing = true,
        Some("stop") => shell.session.is_tracing = false,
        // Any other word asks, as in HBase's shell.
        _ => {}
    }
    Ok(Value::Bool(shell.session.is_tracing))
}

fn balance_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let on = arguments.truth(0);
    let was = shell.session.wait(async { shell.session.admin().set_balancer(on, false).await })?;
    said(shell, "balancer", was)
}

fn balancer(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (mut ignore_rit, mut dry_run) = (false, false);
    for argument in arguments.from(0) {
        match argument.to_text().as_str() {
            "force" | "ignore_rit" => ignore_rit = true,
            "dry_run" => dry_run = true,
            other => return Err(Flow::argument(format!("Invalid argument {other}."))),
        }
    }
    let reply = shell.session.wait(async { shell.session.admin().balance(ignore_rit, dry_run).await })?;
    let output = &mut shell.session.output;
    if reply.balancer_ran {
        let (calculated, executed) = (reply.moves_calculated(), reply.moves_executed());
        output.line("Balancer ran")?;
        output.line(&format!("Moves calculated: {calculated}, moves executed: {executed}"))?;
    } else {
        output.line("Balancer did not run. See logs for details.")?;
    }
    Ok(Value::Bool(reply.balancer_ran))
}

fn balancer_enabled(shell: &mut Shell, _: &Arguments) -> Result {
    let is = shell.session.wait(async { shell.session.admin().is_balancer_enabled().await })?;
    truth_row(shell, is)
}

fn catalogjanitor_enabled(shell: &mut Shell, _: &Arguments) -> Result {
    let is = shell.session.wait(async { shell.session.admin().is_catalog_janitor_enabled().await })?;
    truth_row(shell, is)
}

fn catalogjanitor_run(shell: &mut Shell, _: &Arguments) -> Result {
    let cleaned = shell.session.wait(async { shell.session.admin().run_catalog_janitor().await })?;
    Ok(cleaned.map_or(Value::Nil, |cleaned| Value::Int(i64::from(cleaned))))
}

fn catalogjanitor_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let on = arguments.truth(0);
    let was = shell.session.wait(async { shell.session.admin().set_catalog_janitor(on).await })?;
    truth_row(shell, was)
}

fn cleaner_chore_enabled(shell: &mut Shell, _: &Arguments) -> Result {
    let is = shell.session.wait(async { shell.session.admin().is_cleaner_chore_enabled().await })?;
    truth_row(shell, is)
}

fn cleaner_chore_run(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.wait(async { shell.session.admin().run_cleaner_chore().await }).map(Value::Bool)
}

fn cleaner_chore_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let on = arguments.truth(0);
    let was = shell.session.wait(async { shell.session.admin().set_cleaner_chore(on).await })?;
    truth_row(shell, was)
}

fn hbck_chore_run(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.wait(async { shell.session.admin().hbck().run_hbck_chore().await }).map(Value::Bool)
}

fn is_in_maintenance_mode(shell: &mut Shell, _: &Arguments) -> Result {
    let is = shell.session.wait(async { shell.session.admin().is_in_maintenance_mode().await })?;
    truth_row(shell, is)
}

fn normalize(shell: &mut Shell, arguments: &Arguments) -> Result {
    let mut tables = Vec::new();
    let (mut namespace, mut regex) = (None, None);
    for i in 0..arguments.len() {
        let mut options = arguments.hash(i)?;
        for key in ["TABLE_NAME", "TABLE_NAMES"] {
            for name in options.take_texts(key).unwrap_or_default() {
                tables.push(super::arguments::table_name(&name)?);
            }
        }
        regex = options.take_text("REGEX").or(regex);
        namespace = options.take_text("NAMESPACE").or(namespace);
        if let Some((key, _)) = options.rest().first() {
            return Err(Flow::argument(format!("Unrecognized argument {}", key.to_text())));
        }
    }
    let ran = shell
        .session
        .wait(async { shell.session.admin().normalize(&tables, namespace.as_deref(), regex.as_deref()).await })?;
    truth_row(shell, ran)
}

fn normalizer_enabled(shell: &mut Shell, _: &Arguments) -> Result {
    let is = shell.session.wait(async { shell.session.admin().is_normalizer_enabled().await })?;
    truth_row(shell, is)
}

fn normalizer_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let on = arguments.truth(0);
    let was = shell.session.wait(async { shell.session.admin().set_normalizer(on).await })?;
    truth_row(shell, was)
}

fn snapshot_cleanup_enabled(shell: &mut Shell, _: &Arguments) -> Result {
    let is = shell.session.wait(async { shell.session.admin().is_snapshot_cleanup_enabled().await })?;
    truth_row(shell, is)
}

fn snapshot_cleanup_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let on = arguments.truth(0);
    let was = shell.session.wait(async { shell.session.admin().set_snapshot_cleanup(on, false).await })?;
    said(shell, "snapshot cleanup", was)
}

/// Whether SPLIT is meant, rather than MERGE.
fn is_split(arguments: &Arguments) -> Result<bool> {
    match arguments.text(0).as_str() {
        "SPLIT" => Ok(true),
        "MERGE" => Ok(false),
        _ => Err(Flow::argument("only SPLIT or MERGE accepted for type!")),
    }
}

fn splitormerge_enabled(shell: &mut Shell, arguments: &Arguments) -> Result {
    let split = is_split(arguments)?;
    let admin = shell.session.admin();
    let is = shell
        .session
        .wait(async { if split { admin.is_split_enabled().await } else { admin.is_merge_enabled().await } })?;
    truth_row(shell, is)
}

fn splitormerge_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (split, on) = (is_split(arguments)?, arguments.truth(1));
    let admin = shell.session.admin();
    let was = shell
        .session
        .wait(async { if split { admin.set_split(on, false).await } else { admin.set_merge(on, false).await } })?;
    truth_row(shell, was)
}
