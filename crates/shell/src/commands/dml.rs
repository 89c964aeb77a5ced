//! The group `dml`: cells written, counted and taken away; `get`. Follows: `hbase/table.rb`.

use std::sync::Arc;

use bytes::Bytes;
use client::{Append, Delete, Increment, Put, Row};
use model::{Get, Scan, TableName};

use super::arguments::Options;
use super::read::{self, Columns, Shown};
use super::{Arguments, Command, command, ddl, scan};
use crate::evaluator::Shell;
use crate::failure::{Exception, Flow, Result};
use crate::value::Value;

/// The group.
pub(super) const COMMANDS: &[Command] = &[
    command("dml", "append", 4..=5, append),
    command("dml", "count", 1..=2, scan::count),
    command("dml", "delete", 3..=5, delete),
    command("dml", "deleteall", 2..=5, deleteall),
    command("dml", "get", 2..=usize::MAX, get),
    command("dml", "get_counter", 3..=3, get_counter),
    command("dml", "get_splits", 1..=1, get_splits),
    command("dml", "incr", 3..=5, incr),
    command("dml", "put", 4..=6, put),
    command("dml", "scan", 1..=2, scan::scan),
    command("dml", "truncate", 1..=2, |shell, arguments| ddl::empty_table(shell, arguments, false)),
    command("dml", "truncate_preserve", 1..=2, |shell, arguments| ddl::empty_table(shell, arguments, true)),
];

/// A time and options after it, either of which may be left out.
fn time_and_options(arguments: &Arguments, at: usize) -> Result<(Option<i64>, Options)> {
    let options = arguments.hash(at + 1)?;
    match arguments.get(at) {
        None => Ok((None, options)),
        Some(Value::Hash(_)) => Ok((None, arguments.hash(at)?)),
        Some(time) => Ok((Some(super::arguments::int(time, "timestamp")?), options)),
    }
}

/// An unknown family is told with those that there are. Follows: `translate_hbase_exceptions`.
fn explained(shell: &Shell, name: &TableName, flow: Flow) -> Flow {
    let Flow::Raise(exception) = &flow else { return flow };
    if exception.short_class() != "NoSuchColumnFamilyException" {
        return flow;
    }
    let Ok(table) = ddl::descriptor(shell, name) else { return flow };
    let families: Vec<String> =
        table.families.keys().map(|name| format!("{}:*", String::from_utf8_lossy(name))).collect();
    Flow::Raise(std::rc::Rc::new(Exception {
        class: "RuntimeError".to_owned(),
        message: format!("Unknown column family! Valid column names: {}", families.join(", ")),
        cause: exception.cause.clone().or_else(|| Some(exception.clone())),
    }))
}

fn put(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let (time, mut options) = time_and_options(arguments, 4)?;
    read::refuse(&options, &["VISIBILITY"])?;
    let (family, qualifier) = read::column(&arguments.bytes(2));
    let (qualifier, value) = (qualifier.unwrap_or_default(), arguments.bytes(3));
    let mut put = Put::new(arguments.bytes(1));
    put = match time {
        Some(time) => put.add_at(family, qualifier, time, value),
        None => put.add(family, qualifier, value),
    };
    for (key, value) in read::attributes(&mut options)? {
        put = put.attribute(&key, value);
    }
    if let Some(ttl) = options.take_int("TTL")? {
        put = put.ttl_ms(ttl);
    }
    let (table, mutation) = (shell.session.table(&name), put.build());
    shell.session.wait(table.put(&mutation)).map_err(|flow| explained(shell, &name, flow))?;
    Ok(Value::Nil)
}

fn delete(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let (time, options) = time_and_options(arguments, 3)?;
    read::refuse(&options, &["VISIBILITY"])?;
    let row = arguments.bytes(1);
    let mutation = deletion(&row, Some(&arguments.bytes(2)), time, false).build();
    let table = shell.session.table(&name);
    shell.session.wait(table.delete(&mutation)).map_err(|flow| explained(shell, &name, flow))?;
    Ok(Value::Nil)
}

/// A delete of a row, a family or a column: of all versions up to a time, or of one.
fn deletion(row: &[u8], column: Option<&[u8]>, time: Option<i64>, all_versions: bool) -> Delete {
    let delete = Delete::new(row);
    let Some(column) = column.filter(|column| !column.is_empty()) else {
        return time.map_or(Delete::new(row), |time| delete.up_to(time));
    };
    match (read::column(column), time) {
        ((family, Some(qualifier)), None) if all_versions => delete.columns(family, qualifier),
        ((family, Some(qualifier)), Some(time)) if all_versions => delete.columns_up_to(family, qualifier, time),
        ((family, Some(qualifier)), None) => delete.column(family, qualifier),
        ((family, Some(qualifier)), Some(time)) => delete.column_at(family, qualifier, time),
        ((family, None), None) => delete.family(family),
        ((family, None), Some(time)) if all_versions => delete.family_up_to(family, time),
        ((family, None), Some(time)) => delete.family_version(family, time),
    }
}

fn deleteall(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let (time, options) = time_and_options(arguments, 3)?;
    read::refuse(&options, &["VISIBILITY"])?;
    let column = arguments.get(2).map(Value::to_bytes);
    let table = shell.session.table(&name);
    if let Some(Value::Hash(_)) = arguments.get(1) {
        if name.is_meta() {
            return Err(Flow::argument("deleteall with ROWPREFIXFILTER in hbase:meta is not allowed."));
        }
        return delete_rows(shell, &name, arguments.hash(1)?, column.as_deref(), time);
    }
    let mutation = deletion(&arguments.bytes(1), column.as_deref(), time, true).build();
    shell.session.wait(table.delete(&mutation)).map_err(|flow| explained(shell, &name, flow))?;
    Ok(Value::Nil)
}

/// Deletes in every row that begins with a prefix, so many rows at a time.
fn delete_rows(
    shell: &mut Shell,
    name: &TableName,
    mut options: Options,
    column: Option<&[u8]>,
    time: Option<i64>,
) -> Result {
    let at_once = options.take_int("CACHE")?.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0).unwrap_or(100);
    let prefix = options
        .take_bytes("ROWPREFIXFILTER")
        .ok_or_else(|| Flow::argument("deleteall needs a row, or ROWPREFIXFILTER"))?;
    let table = shell.session.table(name);
    let scan = Scan {
        stop_row: scan::after_prefix(&prefix),
        start_row: prefix,
        filter: Some(Arc::new(filter::Filter::FirstKeyOnly)),
        ..Scan::default()
    };
    let mut scanner = shell.session.within(|| table.scan(scan, table.scan_options()));
    let mut rows: Vec<Bytes> = Vec::new();
    loop {
        let row = shell.session.wait(scanner.next())?;
        let ended = row.is_none();
        rows.extend(row.map(|row| Bytes::copy_from_slice(row.row())));
        if ended || rows.len() >= at_once {
            let doomed: Vec<_> = rows.drain(..).map(|row| deletion(&row, column, time, true).build()).collect();
            shell.session.wait(table.mutate_all(&doomed))?;
        }
        if ended {
            return Ok(Value::Nil);
        }
    }
}

fn incr(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let (amount, mut options) = time_and_options(arguments, 3)?;
    read::refuse(&options, &["VISIBILITY"])?;
    let (family, qualifier) = read::column(&arguments.bytes(2));
    let mut increment =
        Increment::new(arguments.bytes(1)).add(family, qualifier.unwrap_or_default(), amount.unwrap_or(1));
    for (key, value) in read::attributes(&mut options)? {
        increment = increment.attribute(&key, value);
    }
    if let Some(ttl) = options.take_int("TTL")? {
        increment = increment.ttl_ms(ttl);
    }
    let (table, mutation) = (shell.session.table(&name), increment.build());
    let row = shell.session.wait(table.increment(&mutation)).map_err(|flow| explained(shell, &name, flow))?;
    counter(shell, &row)
}

/// Prints the counter in a row.
fn counter(shell: &mut Shell, row: &Row) -> Result {
    let value = row.iter().next().and_then(|cell| cell.value().try_into().ok()).map(i64::from_be_bytes);
    shell.session.output.line(&match value {
        Some(value) => format!("COUNTER VALUE = {value}"),
        None => "No counter found at specified coordinates".to_owned(),
    })?;
    Ok(Value::Nil)
}

fn get_counter(shell: &mut Shell, arguments: &Arguments) -> Result {
    let table = shell.session.table(&arguments.table(0)?);
    let (family, qualifier) = read::column(&arguments.bytes(2));
    let columns = [(family, qualifier.into_iter().collect())].into();
    let get = Get { columns, ..Get::new(arguments.bytes(1)) };
    let row = shell.session.wait(table.get(&get))?;
    counter(shell, &row)
}

fn append(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let mut options = arguments.hash(4)?;
    read::refuse(&options, &["VISIBILITY"])?;
    let (family, qualifier) = read::column(&arguments.bytes(2));
    let mut append = Append::new(arguments.bytes(1)).add(family, qualifier.unwrap_or_default(), arguments.bytes(3));
    for (key, value) in read::attributes(&mut options)? {
        append = append.attribute(&key, value);
    }
    if let Some(ttl) = options.take_int("TTL")? {
        append = append.ttl_ms(ttl);
    }
    let (table, mutation) = (shell.session.table(&name), append.build());
    let row = shell.session.wait(table.append(&mutation)).map_err(|flow| explained(shell, &name, flow))?;
    if let Some(cell) = row.iter().next() {
        let value = cell::print::to_string_binary(cell.value());
        shell.session.output.line(&format!("CURRENT VALUE = {value}"))?;
    }
    Ok(Value::Nil)
}

/// The read that `get`'s arguments after the row ask for, how its cells are shown, and the replica that is asked.
fn described_get(arguments: &Arguments) -> Result<(Get, Shown, u32)> {
    let mut get = Get::new(arguments.bytes(1));
    let mut options = match arguments.get(2) {
        Some(Value::Hash(_)) => arguments.hash(2)?,
        _ => Options::default(),
    };
    let mut columns = match arguments.get(2) {
        Some(Value::Hash(_)) | None => Columns::take(&mut options)?,
        Some(_) => {
            let mut specs = Vec::new();
            for value in arguments.from(2) {
                match value {
                    Value::Array(items) => specs.extend(items.borrow().iter().cloned()),
                    other => specs.push(other.clone()),
                }
            }
            Columns::parse(&specs)
        }
    };
    read::refuse(&options, &["AUTHORIZATIONS"])?;
    let shown = Shown::take(&mut options, &mut columns)?;
    get.columns = columns.wanted;
    get.filter = read::filter(&mut options)?;
    get.timeline = read::timeline(&mut options)?;
    let replica_id = read::replica_id(&mut options)?;
    get.attributes = read::attributes(&mut options)?;
    if let Some(versions) = options.take_int("VERSIONS")? {
        get.max_versions = u32::try_from(versions.max(1)).unwrap_or(u32::MAX);
    }
    if let Some(range) = read::time_range(&mut options)? {
        get.time_range = range;
    }
    if let Some((key, _)) = options.rest().first() {
        return Err(Flow::argument(format!("Failed parse of {}: a get has no such option", key.inspect())));
    }
    Ok((get, shown, replica_id))
}

fn get(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    shell.session.output.header(&["COLUMN", "CELL"])?;
    let (get, shown, replica_id) = described_get(arguments)?;
    let table = shell.session.table(&name);
    let row = match replica_id {
        0 => shell.session.wait(table.get(&get)),
        id => shell.session.wait(table.get_from_replica(&get, id)),
    };
    let row = row.map_err(|flow| explained(shell, &name, flow))?;
    for cell in &row {
        let (column, text) = (shown.column(cell), shown.cell(cell, name.is_meta()));
        shell.session.output.row(&[&column, &text])?;
    }
    shell.session.output.footer(Some(u64::from(!row.is_empty())))?;
    if row.is_stale() {
        shell.session.output.line(" (possible stale results) ")?;
    }
    Ok(Value::Nil)
}

fn get_splits(shell: &mut Shell, arguments: &Arguments) -> Result {
    let table = shell.session.table(&arguments.table(0)?);
    let keys = shell.session.wait(table.start_end_keys())?;
    let splits = keys.iter().map(|(start, _)| start).filter(|start| !start.is_empty());
    let splits: Vec<String> = splits.map(|start| cell::print::to_string_binary(start)).collect();
    shell.session.output.line(&format!("Total number of splits = {}", splits.len() + 1))?;
    for split in &splits {
        shell.session.output.line(split)?;
    }
    Ok(Value::array(splits.iter().map(Value::text).collect()))
}
