//! The group `ddl`: tables made, changed and taken away.

use bytes::Bytes;
use model::{FamilyDescriptor, TableDescriptor, TableName};

use super::arguments::{Options, texts};
use super::families::{self, family_of};
use super::{Arguments, Command, MANY, command, describe, listing};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// The group.
pub(super) const COMMANDS: &[Command] = &[
    command("ddl", "alter", 1..=MANY, alter),
    command("ddl", "alter_async", 1..=MANY, alter_async),
    command("ddl", "alter_status", 1..=1, alter_status),
    command("ddl", "clone_table_schema", 2..=3, clone_table_schema),
    command("ddl", "create", 1..=MANY, create),
    Command { alias: Some("desc"), ..command("ddl", "describe", 1..=1, describe::describe) },
    command("ddl", "disable", 1..=1, disable),
    command("ddl", "disable_all", 1..=1, listing::disable_all),
    command("ddl", "drop", 1..=1, drop_table),
    command("ddl", "drop_all", 1..=1, listing::drop_all),
    command("ddl", "enable", 1..=1, enable),
    command("ddl", "enable_all", 1..=1, listing::enable_all),
    command("ddl", "exists", 1..=1, exists),
    command("ddl", "get_table", 1..=1, get_table),
    command("ddl", "is_disabled", 1..=1, is_disabled),
    command("ddl", "is_enabled", 1..=1, is_enabled),
    command("ddl", "list", 0..=1, listing::list),
    command("ddl", "list_disabled_tables", 0..=0, listing::list_disabled_tables),
    command("ddl", "list_enabled_tables", 0..=0, listing::list_enabled_tables),
    command("ddl", "list_regions", 1..=3, listing::list_regions),
    command("ddl", "locate_region", 2..=2, listing::locate_region),
    command("ddl", "show_filters", 0..=0, listing::show_filters),
];

/// A table's descriptor.
///
/// # Errors
/// There is no such table.
pub(super) fn descriptor(shell: &Shell, table: &TableName) -> Result<TableDescriptor> {
    let described = shell.session.wait(async { shell.session.admin().describe(table).await })?;
    described.ok_or_else(|| Flow::argument(format!("Table {table} does not exist.")))
}

/// Whether a table is there.
pub(super) fn is_there(shell: &Shell, table: &TableName) -> Result<bool> {
    shell.session.wait(async { shell.session.admin().table_exists(table).await })
}

/// Whether a table is enabled.
pub(super) fn enabled(shell: &Shell, table: &TableName) -> Result<bool> {
    shell.session.wait(async { shell.session.admin().is_enabled(table).await })
}

fn must_be_there(shell: &Shell, table: &TableName) -> Result<()> {
    match is_there(shell, table)? {
        true => Ok(()),
        false => Err(Flow::argument(format!("Table {table} does not exist."))),
    }
}

fn create(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let mut table = TableDescriptor::new(name.clone(), []);
    let mut splits: Vec<Bytes> = Vec::new();
    for argument in arguments.from(1) {
        let mut options = match argument {
            Value::Text(family) => {
                add_family(shell, &mut table, FamilyDescriptor::new(family.to_vec()))?;
                continue;
            }
            value => Options::of(Some(value))?,
        };
        if options.has("NAME") {
            let family = family_of(shell, options, &table)?;
            add_family(shell, &mut table, family)?;
            continue;
        }
        match options.take_text("METHOD").as_deref() {
            None | Some("table_att") => {}
            Some(_) => return Err(Flow::argument("table_att is currently the only supported method")),
        }
        if let Some(points) = split_points(&mut options, &mut table)? {
            splits = points;
        }
        families::apply_to_table(&mut table, &mut options)?;
        for (key, _) in options.rest() {
            let line = format!("An argument ignored (unknown or overridden): {}", key.to_text());
            shell.session.output.line(&line)?;
        }
    }
    if table.families.is_empty() {
        return Err(Flow::argument("Table must have at least one column family"));
    }
    shell.session.wait(async { shell.session.admin().create_table(&table, &splits).await })?;
    shell.session.output.line(&format!("Created table {name}"))?;
    Ok(Value::Table(name))
}

fn add_family(shell: &mut Shell, table: &mut TableDescriptor, family: FamilyDescriptor) -> Result<()> {
    let name = family.name.clone();
    if table.families.insert(name.clone(), family).is_some() {
        let name = String::from_utf8_lossy(&name);
        shell.session.output.line(&format!("Family '{name}' already exists, the old one will be replaced"))?;
    }
    Ok(())
}

/// Where a new table is split; none where nothing is said of it.
fn split_points(options: &mut Options, table: &mut TableDescriptor) -> Result<Option<Vec<Bytes>>> {
    if let Some(file) = options.take_text("SPLITS_FILE") {
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Flow::argument(format!("Splits file {file} cannot be read: {error}")))?;
        table.attributes.insert("SPLITS_FILE".into(), file.into());
        return Ok(Some(text.lines().map(|line| cell::print::to_bytes_binary(line).into()).collect()));
    }
    if let Some(points) = options.take("SPLITS") {
        let points = match &points {
            Value::Array(points) => points.borrow().clone(),
            Value::Range(_) => return Err(Flow::argument("SPLITS must be an array: write [*'a'..'f']")),
            other => vec![other.clone()],
        };
        return Ok(Some(points.iter().map(|point| unescaped(&point.to_bytes())).collect()));
    }
    if !options.has("NUMREGIONS") && !options.has("SPLITALGO") {
        return Ok(None);
    }
    let count = options.take_int("NUMREGIONS")?.ok_or_else(|| Flow::argument("Number of regions must be specified"))?;
    let algorithm =
        options.take_text("SPLITALGO").ok_or_else(|| Flow::argument("Split algorithm must be specified"))?;
    if !(2..=1_000_000).contains(&count) {
        return Err(Flow::argument("Number of regions must be greater than 1"));
    }
    algorithmic(count as u64, &algorithm).map(Some)
}

/// `Bytes.toBytesBinary` of bytes, some of which may be no text.
pub(super) fn unescaped(bytes: &[u8]) -> Bytes {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains("\\x") => cell::print::to_bytes_binary(text).into(),
        _ => Bytes::copy_from_slice(bytes),
    }
}

/// Points that part the keys evenly. Follows: `RegionSplitter.HexStringSplit`, `DecimalStringSplit`, `UniformSplit`.
fn algorithmic(count: u64, algorithm: &str) -> Result<Vec<Bytes>> {
    let at = |last: u128, i: u64| -> u64 { (u128::from(i) * (last + 1) / u128::from(count)) as u64 };
    let points = 1..count;
    Ok(match algorithm.rsplit(['.', '$']).next().unwrap_or(algorithm) {
        "HexStringSplit" => {
            let size = (u128::from(u32::MAX) + 1) / u128::from(count);
            points.map(|i| format!("{:08x}", u128::from(i) * size).into()).collect()
        }
        "DecimalStringSplit" => {
            let size = 100_000_000 / count;
            points.map(|i| format!("{:08}", i * size).into()).collect()
        }
        "UniformSplit" => points.map(|i| Bytes::copy_from_slice(&at(u128::from(u64::MAX), i).to_be_bytes())).collect(),
        other => {
            let known = "HexStringSplit, DecimalStringSplit, UniformSplit";
            return Err(Flow::argument(format!("split algorithm {other} is not known; known are {known}")));
        }
    })
}

fn alter(shell: &mut Shell, arguments: &Arguments) -> Result {
    change(shell, arguments, true)
}

fn alter_async(shell: &mut Shell, arguments: &Arguments) -> Result {
    change(shell, arguments, false)
}

fn change(shell: &mut Shell, arguments: &Arguments, wait: bool) -> Result {
    let name = arguments.table(0)?;
    if !is_there(shell, &name)? {
        return Err(Flow::argument(format!("Can't find a table: {name}")));
    }
    if arguments.len() < 2 {
        return Err(Flow::argument("There should be at least one argument but the table name"));
    }
    let mut table = descriptor(shell, &name)?;
    for argument in arguments.from(1) {
        let options = match argument {
            Value::Text(family) => {
                let family = FamilyDescriptor::new(family.to_vec());
                table.families.entry(family.name.clone()).or_insert(family);
                continue;
            }
            value => Options::of(Some(value))?,
        };
        change_one(shell, &mut table, options)?;
    }
    shell.session.wait(async { shell.session.admin().modify_table(&table).await })?;
    if wait {
        shell.session.output.line("Updating all regions with the new schema...")?;
        updated(shell, &name)?;
    }
    Ok(Value::Nil)
}

fn change_one(shell: &mut Shell, table: &mut TableDescriptor, mut options: Options) -> Result<()> {
    if let Some(family) = options.take_bytes("delete") {
        table.families.remove(&family);
        return Ok(());
    }
    let method = options.take_text("METHOD");
    if method.is_none() && options.has("NAME") {
        let family = family_of(shell, options, table)?;
        table.families.insert(family.name.clone(), family);
        return Ok(());
    }
    let names = options.take("NAME").map(|name| texts(&name));
    let needed = |method: &str| {
        names.clone().ok_or_else(|| Flow::argument(format!("NAME parameter missing for {method} method")))
    };
    match method.as_deref() {
        None | Some("table_att") => {
            families::apply_to_table(table, &mut options)?;
            families::apply_coprocessors(table, &mut options)?;
        }
        Some("delete") => {
            for name in needed("delete")? {
                table.families.remove(name.as_bytes());
            }
        }
        Some(method @ ("table_att_unset" | "table_conf_unset")) => {
            for name in needed(method)? {
                let gone = match method {
                    "table_att_unset" => table.attributes.remove(name.as_bytes()).is_some(),
                    // HBase 2 keeps a table's configuration among its attributes.
                    _ => {
                        table.configuration.remove(&name).is_some() | table.attributes.remove(name.as_bytes()).is_some()
                    }
                };
                if !gone {
                    let what = if method == "table_att_unset" { "attribute" } else { "configuration" };
                    return Err(Flow::argument(format!("Could not find {what}: {name}")));
                }
            }
        }
        Some(method) => return Err(Flow::argument(format!("Unknown method: {method}"))),
    }
    for (key, _) in options.rest() {
        shell.session.output.line(&format!("Unknown argument ignored: {}", key.to_text()))?;
    }
    Ok(())
}

fn alter_status(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    if !is_there(shell, &name)? {
        return Err(Flow::argument(format!("Can't find a table: {name}")));
    }
    updated(shell, &name)?;
    Ok(Value::Nil)
}

/// Tells how many regions have taken over a change, until all have.
fn updated(shell: &mut Shell, name: &TableName) -> Result<()> {
    loop {
        let (left, all) = shell.session.wait(async { shell.session.admin().alter_status(name).await })?;
        shell.session.output.line(&match all {
            0 => "All regions updated.".to_owned(),
            all => format!("{}/{all} regions updated.", all - left.min(all)),
        })?;
        if left == 0 {
            return shell.session.output.line("Done.");
        }
        shell.session.output.flush()?;
        shell.session.wait(async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            Ok(())
        })?;
    }
}

fn clone_table_schema(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (from, to) = (arguments.table(0)?, arguments.table(1)?);
    let preserve = arguments.get(2).is_none() || arguments.truth(2);
    shell.session.wait(async { shell.session.admin().clone_table_schema(&from, &to, preserve).await })?;
    Ok(Value::Nil)
}

fn enable(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    must_be_there(shell, &name)?;
    if !enabled(shell, &name)? {
        shell.session.wait(async { shell.session.admin().enable_table(&name).await })?;
    }
    Ok(Value::Nil)
}

fn disable(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    must_be_there(shell, &name)?;
    if !shell.session.wait(async { shell.session.admin().is_disabled(&name).await })? {
        shell.session.wait(async { shell.session.admin().disable_table(&name).await })?;
    }
    Ok(Value::Nil)
}

fn drop_table(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    must_be_there(shell, &name)?;
    if enabled(shell, &name)? {
        return Err(Flow::argument(format!("Table {name} is enabled. Disable it first.")));
    }
    shell.session.wait(async { shell.session.admin().delete_table(&name).await })?;
    Ok(Value::Nil)
}

fn exists(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let there = is_there(shell, &name)?;
    let does = if there { "does exist" } else { "does not exist" };
    shell.session.output.row(&[&format!("Table {name} {does}")])?;
    Ok(Value::Bool(there))
}

fn get_table(_: &mut Shell, arguments: &Arguments) -> Result {
    arguments.table(0).map(Value::Table)
}

fn is_enabled(shell: &mut Shell, arguments: &Arguments) -> Result {
    let is = enabled(shell, &arguments.table(0)?)?;
    truth_row(shell, is)
}

fn is_disabled(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let is = shell.session.wait(async { shell.session.admin().is_disabled(&name).await })?;
    truth_row(shell, is)
}

/// Prints a truth and gives it back.
pub(super) fn truth_row(shell: &mut Shell, is: bool) -> Result {
    shell.session.output.row(&[if is { "true" } else { "false" }])?;
    Ok(Value::Bool(is))
}

/// `truncate` and `truncate_preserve`.
pub(super) fn empty_table(shell: &mut Shell, arguments: &Arguments, preserve: bool) -> Result {
    let name = arguments.table(0)?;
    shell.session.output.line(&format!("Truncating '{name}' table (it may take a while):"))?;
    if enabled(shell, &name)? {
        shell.session.output.line("Disabling table...")?;
        shell.session.wait(async { shell.session.admin().disable_table(&name).await })?;
    }
    shell.session.output.line("Truncating table...")?;
    shell.session.wait(async { shell.session.admin().truncate_table(&name, preserve).await })?;
    Ok(Value::Nil)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(count: u64, algorithm: &str) -> Vec<String> {
        let points = algorithmic(count, algorithm).unwrap_or_default();
        points.iter().map(|point| cell::print::to_string_binary(point)).collect()
    }

    #[test]
    fn split_algorithms_are_hbases() {
        assert_eq!(points(4, "HexStringSplit"), ["40000000", "80000000", "c0000000"]);
        assert_eq!(points(4, "DecimalStringSplit"), ["25000000", "50000000", "75000000"]);
        assert_eq!(points(2, "UniformSplit"), ["\\x80\\x00\\x00\\x00\\x00\\x00\\x00\\x00"]);
        assert!(points(2, "Other").is_empty());
    }

    #[test]
    fn escapes_in_split_points_are_read() {
        assert_eq!(&unescaped(b"a\\x00")[..], b"a\0");
        assert_eq!(&unescaped(b"\xFF\\x00")[..], b"\xFF\\x00");
    }
}
