//! Lists of the group `ddl`, and what is done to all tables of one.

use filter::parse::SUPPORTED;
use model::TableName;

use super::{Arguments, ddl};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// A pattern as a server is given it.
fn pattern(arguments: &Arguments, i: usize) -> Option<String> {
    arguments.get(i).map(|value| match value {
        Value::Regex(pattern) => pattern.to_string(),
        other => other.to_text(),
    })
}

/// A pattern that a whole name must match; everything where none is given.
pub(super) fn whole_match(pattern: Option<&Value>) -> Result<regex::Regex> {
    let pattern = match pattern {
        None => ".*".to_owned(),
        Some(Value::Regex(pattern)) => pattern.to_string(),
        Some(other) => other.to_text(),
    };
    crate::evaluator::methods::regex(&format!("^(?:{pattern})$"))
}

/// Tables whose names match.
pub(super) fn names_like(shell: &Shell, pattern: Option<&str>) -> Result<Vec<TableName>> {
    shell.session.wait(async { shell.session.admin().list_table_names(pattern, false).await })
}

/// Prints a table of one column, and gives its cells back.
pub(super) fn one_column(shell: &mut Shell, head: &str, cells: &[String]) -> Result {
    let output = &mut shell.session.output;
    output.header(&[head])?;
    for cell in cells {
        output.row(&[cell])?;
    }
    output.footer(Some(cells.len() as u64))?;
    Ok(Value::array(cells.iter().map(Value::text).collect()))
}

pub(super) fn list(shell: &mut Shell, arguments: &Arguments) -> Result {
    let names = names_like(shell, pattern(arguments, 0).as_deref())?;
    let names: Vec<String> = names.iter().map(TableName::to_string).collect();
    one_column(shell, "TABLE", &names)
}

fn by_state(shell: &mut Shell, enabled: bool) -> Result {
    let names = shell.session.wait(async { shell.session.admin().list_table_names_by_state(enabled).await })?;
    let names: Vec<String> = names.iter().map(TableName::to_string).collect();
    one_column(shell, "TABLE", &names)
}

pub(super) fn list_enabled_tables(shell: &mut Shell, _: &Arguments) -> Result {
    by_state(shell, true)
}

pub(super) fn list_disabled_tables(shell: &mut Shell, _: &Arguments) -> Result {
    by_state(shell, false)
}

pub(super) fn show_filters(shell: &mut Shell, _: &Arguments) -> Result {
    for name in SUPPORTED {
        shell.session.output.row(&[name])?;
    }
    Ok(Value::Nil)
}

/// Asks whether something is to be done to what was listed.
pub(super) fn confirmed(shell: &mut Shell, what: &str) -> Result<bool> {
    shell.session.output.line(&format!("\n{what} (y/n)?"))?;
    shell.session.output.flush()?;
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Flow::raise("IOError", format!("cannot read the answer: {error}")))?;
    Ok(answer.trim_start().to_lowercase().starts_with('y'))
}

enum Deed {
    Enable,
    Disable,
    Drop,
}

/// Lists the tables that a pattern names, asks, and does the same to each.
fn to_all(shell: &mut Shell, arguments: &Arguments, deed: &Deed) -> Result {
    let (verb, done) = match deed {
        Deed::Enable => ("Enable", "enabled"),
        Deed::Disable => ("Disable", "disabled"),
        Deed::Drop => ("Drop", "dropped"),
    };
    let pattern = pattern(arguments, 0).unwrap_or_default();
    let names = names_like(shell, Some(&pattern))?;
    for name in &names {
        shell.session.output.row(&[&name.to_string()])?;
    }
    if names.is_empty() {
        shell.session.output.line(&format!("No tables matched the regex {pattern}"))?;
        return Ok(Value::Nil);
    }
    if !confirmed(shell, &format!("{verb} the above {} tables", names.len()))? {
        return Ok(Value::Nil);
    }
    let mut failed = Vec::new();
    for name in &names {
        let admin = shell.session.admin();
        let result = shell.session.wait(async {
            match deed {
                Deed::Enable => admin.enable_table(name).await,
                Deed::Disable => admin.disable_table(name).await,
                Deed::Drop => admin.delete_table(name).await,
            }
        });
        match result {
            Ok(()) => {}
            Err(Flow::Raise(exception)) => {
                let why = super::translate::shown(&exception);
                shell.session.output.line(&format!("table:{name}, error:{why}"))?;
                failed.push(name.to_string());
            }
            Err(other) => return Err(other),
        }
    }
    shell.session.output.line(&format!("{} tables successfully {done}", names.len() - failed.len()))?;
    if !failed.is_empty() {
        let line = format!("{} tables not {done} due to an exception: {}", failed.len(), failed.join(","));
        shell.session.output.line(&line)?;
    }
    Ok(Value::Nil)
}

pub(super) fn enable_all(shell: &mut Shell, arguments: &Arguments) -> Result {
    to_all(shell, arguments, &Deed::Enable)
}

pub(super) fn disable_all(shell: &mut Shell, arguments: &Arguments) -> Result {
    to_all(shell, arguments, &Deed::Disable)
}

pub(super) fn drop_all(shell: &mut Shell, arguments: &Arguments) -> Result {
    to_all(shell, arguments, &Deed::Drop)
}

pub(super) fn locate_region(shell: &mut Shell, arguments: &Arguments) -> Result {
    let table = shell.session.table(&arguments.table(0)?);
    let row = ddl::unescaped(&arguments.bytes(1));
    let location = shell.session.wait(async { table.region_of(&row, true).await })?;
    let output = &mut shell.session.output;
    output.header(&["HOST", "REGION"])?;
    output.row(&[&location.server.address(), &model::RegionInfo::description(&location.region)])?;
    output.footer(Some(1))?;
    Ok(Value::Java("#<Java::OrgApacheHadoopHbase::HRegionLocation:0x0>".into()))
}

const COLUMNS: &[(&str, usize)] = &[
    ("SERVER_NAME", 12),
    ("REGION_NAME", 12),
    ("START_KEY", 10),
    ("END_KEY", 10),
    ("SIZE", 5),
    ("REQ", 5),
    ("LOCALITY", 10),
];

/// The columns that are wanted, with their least widths.
fn columns(wanted: Option<&Value>) -> Result<Vec<(&'static str, usize)>> {
    let possible = "Possible values are SERVER_NAME, REGION_NAME, START_KEY, END_KEY, SIZE, REQ, LOCALITY.";
    let Some(wanted) = wanted else { return Ok(COLUMNS.to_vec()) };
    let Value::Array(wanted) = wanted else {
        return Err(Flow::runtime(format!("{} must be an array of strings. {possible}", wanted.to_text())));
    };
    let wanted = wanted.borrow();
    let column = |name: &Value| {
        let name = name.to_text();
        let found = COLUMNS.iter().find(|column| column.0.eq_ignore_ascii_case(&name));
        found.copied().ok_or_else(|| Flow::runtime(format!("{name} is not a valid column. {possible}")))
    };
    wanted.iter().map(column).collect()
}

pub(super) fn list_regions(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let (server, threshold) = match arguments.get(1) {
        Some(Value::Hash(pairs)) => {
            let pairs = pairs.borrow();
            let threshold = match pairs.get(&Value::text("LOCALITY_THRESHOLD")) {
                None => 1.0,
                Some(Value::Float(threshold)) if (0.0..=1.0).contains(threshold) => *threshold,
                Some(Value::Float(_)) => {
                    return Err(Flow::runtime("LOCALITY_THRESHOLD must be between 0 and 1.0, inclusive"));
                }
                Some(_) => return Err(Flow::runtime("LOCALITY_THRESHOLD must be a float value")),
            };
            (pairs.get(&Value::text("SERVER_NAME")).map(Value::to_text), threshold)
        }
        other => (other.map(Value::to_text), 1.0),
    };
    if !ddl::enabled(shell, &name)? {
        return Err(Flow::runtime(format!("Table {name} must be enabled.")));
    }
    let mut columns = columns(arguments.get(2))?;
    let regions = shell.session.wait(async { shell.session.admin().regions(&name).await })?;
    let status = shell.session.wait(async { shell.session.admin().cluster_status().await })?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for location in &regions {
        let on = location.server.to_string();
        if server.as_ref().is_some_and(|server| !on.starts_with(server.as_str())) {
            continue;
        }
        let region = &location.region;
        let mut loads = status.live_servers.iter().flat_map(|live| &live.server_load.region_loads);
        let load = loads.find(|load| load.region_specifier.value == region.name());
        if load.is_some_and(|load| f64::from(load.data_locality()) > threshold) {
            continue;
        }
        if load.is_none() {
            let line = format!(
                "Can not find all details for region: {} , it may be disabled or in transition",
                region.name_string()
            );
            shell.session.output.line(&line)?;
        }
        let cell = |column: &str| match column {
            "SERVER_NAME" => on.clone(),
            "REGION_NAME" => region.name_string(),
            "START_KEY" => cell::print::to_string_binary(&region.start_key),
            "END_KEY" => cell::print::to_string_binary(&region.end_key),
            "SIZE" => load.map(|load| load.storefile_size_mb().to_string()).unwrap_or_default(),
            "REQ" => {
                let requests = |load: &proto::pb::RegionLoad| load.read_requests_count() + load.write_requests_count();
                load.map(|load| requests(load).to_string()).unwrap_or_default()
            }
            _ => load.map(|load| crate::value::float(f64::from(load.data_locality()))).unwrap_or_default(),
        };
        rows.push(columns.iter().map(|column| cell(column.0)).collect());
    }
    for (i, column) in columns.iter_mut().enumerate() {
        column.1 = rows.iter().map(|row| row[i].chars().count()).fold(column.1, usize::max);
    }
    let line = |cells: Vec<String>| -> String {
        cells.iter().zip(&columns).map(|(cell, column)| format!(" {cell:>width$} |", width = column.1)).collect()
    };
    let output = &mut shell.session.output;
    output.line(&line(columns.iter().map(|column| column.0.to_owned()).collect()))?;
    output.line(&line(columns.iter().map(|column| "-".repeat(column.1)).collect()))?;
    let count = rows.len();
    for row in rows {
        output.line(&line(row))?;
    }
    output.line(&format!(" {count} rows"))?;
    Ok(Value::Nil)
}
