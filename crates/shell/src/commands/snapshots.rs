//! The group `snapshots`.

use client::RestoreOptions;
use proto::pb;
use proto::pb::snapshot_description::Type;

use super::listing::{confirmed, whole_match};
use super::{Arguments, Command, MANY, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::pretty;
use crate::value::Value;

/// The group.
pub(super) const COMMANDS: &[Command] = &[
    command("snapshots", "clone_snapshot", 2..=3, clone_snapshot),
    command("snapshots", "delete_all_snapshot", 1..=1, delete_all_snapshot),
    command("snapshots", "delete_snapshot", 1..=1, delete_snapshot),
    command("snapshots", "delete_table_snapshots", 1..=2, delete_table_snapshots),
    command("snapshots", "list_snapshots", 0..=1, list_snapshots),
    command("snapshots", "list_table_snapshots", 1..=2, list_table_snapshots),
    command("snapshots", "restore_snapshot", 1..=2, restore_snapshot),
    command("snapshots", "snapshot", 2..=MANY, snapshot),
];

fn snapshot(shell: &mut Shell, arguments: &Arguments) -> Result {
    let table = arguments.table(0)?;
    let mut wanted = pb::SnapshotDescription {
        name: arguments.text(1),
        table: Some(table.to_string()),
        r#type: Some(Type::Flush.into()),
        ..pb::SnapshotDescription::default()
    };
    for i in 2..arguments.len() {
        let mut options = arguments.hash(i)?;
        if options.take_truth("SKIP_FLUSH") == Some(true) {
            wanted.r#type = Some(Type::Skipflush.into());
        }
        wanted.ttl = options.take_int("TTL")?.or(wanted.ttl);
        wanted.max_file_size = options.take_int("MAX_FILESIZE")?.or(wanted.max_file_size);
        if let Some((key, _)) = options.rest().first() {
            return Err(Flow::argument(format!("a snapshot has no option {}", key.to_text())));
        }
    }
    shell.session.wait(async { shell.session.admin().take_snapshot(wanted).await })?;
    Ok(Value::Nil)
}

/// Snapshots by patterns for their tables and their names, shown in a table.
fn shown(
    shell: &mut Shell,
    table: Option<&Value>,
    name: Option<&Value>,
    footer: bool,
) -> Result<Vec<pb::SnapshotDescription>> {
    let (tables, names) = (whole_match(table)?, whole_match(name)?);
    let mut found = shell.session.wait(async {
        let by_table = |text: &str| tables.is_match(text);
        let by_name = |text: &str| names.is_match(text);
        shell.session.admin().list_snapshots_of(&by_table, &by_name).await
    })?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let output = &mut shell.session.output;
    output.header(&["SNAPSHOT", "TABLE + CREATION TIME"])?;
    for snapshot in &found {
        let at = pretty::moment(snapshot.creation_time());
        output.row(&[&snapshot.name, &format!("{} ({at})", snapshot.table())])?;
    }
    if footer {
        output.footer(Some(found.len() as u64))?;
    }
    Ok(found)
}

fn names_of(found: &[pb::SnapshotDescription]) -> Value {
    Value::array(found.iter().map(|snapshot| Value::text(&snapshot.name)).collect())
}

fn list_snapshots(shell: &mut Shell, arguments: &Arguments) -> Result {
    shown(shell, None, arguments.get(0), true).map(|found| names_of(&found))
}

fn list_table_snapshots(shell: &mut Shell, arguments: &Arguments) -> Result {
    shown(shell, arguments.get(0), arguments.get(1), true).map(|found| names_of(&found))
}

fn delete_snapshot(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    shell.session.wait(async { shell.session.admin().delete_snapshot(&name).await })?;
    Ok(Value::Nil)
}

/// Deletes what was listed, after asking.
fn delete_listed(shell: &mut Shell, found: &[pb::SnapshotDescription], pattern: &str, by_name: bool) -> Result {
    if found.is_empty() {
        shell.session.output.line(&format!("No snapshots matched {pattern}"))?;
        return Ok(Value::Nil);
    }
    if !confirmed(shell, &format!("Delete the above {} snapshots", found.len()))? {
        return Ok(Value::Nil);
    }
    let mut deleted = 0;
    for snapshot in found {
        let name = &snapshot.name;
        match shell.session.wait(async { shell.session.admin().delete_snapshot(name).await }) {
            Ok(()) => {
                deleted += 1;
                if by_name {
                    shell.session.output.line(&format!("Successfully deleted snapshot: {name}\n"))?;
                }
            }
            Err(Flow::Raise(exception)) => {
                let why = super::translate::shown(&exception);
                shell.session.output.line(&format!("Failed to delete snapshot: {name}, due to {why}"))?;
            }
            Err(other) => return Err(other),
        }
    }
    if !by_name && deleted > 0 {
        shell.session.output.line(&format!("{deleted} snapshots successfully deleted."))?;
    }
    Ok(Value::Nil)
}

fn delete_all_snapshot(shell: &mut Shell, arguments: &Arguments) -> Result {
    let found = shown(shell, None, arguments.get(0), false)?;
    delete_listed(shell, &found, &format!("the regex {}", arguments.text(0)), false)
}

fn delete_table_snapshots(shell: &mut Shell, arguments: &Arguments) -> Result {
    let found = shown(shell, arguments.get(0), arguments.get(1), false)?;
    let names = arguments.optional_text(1).unwrap_or_else(|| ".*".to_owned());
    let pattern = format!(
        "the table name regular expression {} and the snapshot name regular expression {names}",
        arguments.text(0)
    );
    delete_listed(shell, &found, &pattern, true)
}

fn clone_snapshot(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (name, table) = (arguments.text(0), arguments.table(1)?);
    let mut options = arguments.hash(2)?;
    let acl = options.take_truth("RESTORE_ACL").unwrap_or(false);
    let tracker = options.take_text("CLONE_SFT");
    shell
        .session
        .wait(async { shell.session.admin().clone_snapshot_with(&name, &table, acl, tracker.as_deref()).await })?;
    Ok(Value::Nil)
}

fn restore_snapshot(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.text(0);
    let restore_acl = arguments.hash(1)?.take_truth("RESTORE_ACL").unwrap_or(false);
    let fail_safe = shell.session.connection().options().takes_fail_safe_snapshot;
    let options = RestoreOptions { fail_safe, restore_acl };
    shell.session.wait(async { shell.session.admin().restore_snapshot(&name, options).await })?;
    Ok(Value::Nil)
}
