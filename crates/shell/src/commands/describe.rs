//! `describe`: a table's descriptor in HBase's form.

use model::{TableDescriptor, TableName};

use super::Arguments;
use super::ddl::{descriptor, enabled, is_there};
use crate::evaluator::Shell;
use crate::failure::Result;
use crate::value::Value;

pub(super) fn describe(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let table = descriptor(shell, &name)?;
    let state = if enabled(shell, &name)? { "ENABLED" } else { "DISABLED" };
    let output = &mut shell.session.output;
    output.header(&[&format!("Table {name} is {state}")])?;
    output.row(&[&format!("{name}{}", table.attributes_description())])?;
    output.header(&["COLUMN FAMILIES DESCRIPTION"])?;
    for family in table.families.values() {
        output.row(&[&family.description()])?;
        output.line("")?;
    }
    output.footer(None)?;
    quotas_line(shell, name.is_meta())?;
    Ok(Value::Nil)
}

/// A table's own line, and one for each family, as `describe` prints them.
pub fn describe_lines(table: &TableDescriptor) -> Vec<String> {
    let own = format!("{}{}", table.name, table.attributes_description());
    std::iter::once(own).chain(table.families.values().map(model::FamilyDescriptor::description)).collect()
}

/// Says that quotas are off, where they are.
pub(super) fn quotas_line(shell: &mut Shell, is_meta: bool) -> Result<()> {
    let on = is_there(shell, &TableName::quota_table())?;
    match on || is_meta {
        true => Ok(()),
        false => shell.session.output.line("Quota is disabled"),
    }
}
