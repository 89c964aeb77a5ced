//! INSERT, UPSERT, UPDATE and DELETE: the rows of a plan become mutations, in batches. A row is written as a whole or not; a statement that
//! fails half-way has written some of its rows.

use std::sync::Arc;

use client::{Action, CheckAndMutate, Delete, Put};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::common::DataFusionError;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{self, AssignmentTarget, OnConflictAction, OnInsert, Statement};
use futures::TryStreamExt;
use model::Mutation;
use types::{KeyLayout, Value};

use crate::arrow_values::value_at;
use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, EMPTY_CELL_VALUE, Kind, Mapping, Place};
use crate::table::HBaseTable;

/// Rows of one batch to HBase.
const BATCH_ROWS: usize = 1000;

/// What happens to the rows of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Their columns are written, whether the row is there or not.
    Upsert,
    /// Only rows that are not there are written.
    IfAbsent,
    /// The rows are deleted.
    Delete,
}

/// The statement without what DataFusion's planner does not read.
pub fn plannable(statement: &Statement) -> Statement {
    match statement {
        Statement::Insert(insert) => Statement::Insert(ast::Insert { on: None, ..insert.clone() }),
        other => other.clone(),
    }
}

/// Refuses what no plan says.
///
/// # Errors
/// `RETURNING`, and conflict rules other than `DO NOTHING`.
pub fn check(statement: &Statement) -> Result<(), SqlError> {
    let (returning, on) = match statement {
        Statement::Insert(insert) => (&insert.returning, &insert.on),
        Statement::Update(update) => (&update.returning, &None),
        Statement::Delete(delete) => (&delete.returning, &None),
        _ => return Ok(()),
    };
    if returning.is_some() {
        return Err(SqlError::unsupported("RETURNING is not supported"));
    }
    match on {
        None => Ok(()),
        Some(OnInsert::OnConflict(on)) if matches!(on.action, OnConflictAction::DoNothing) => Ok(()),
        Some(_) => {
            let what = "ON CONFLICT DO UPDATE is not supported: INSERT without it replaces the columns that it names";
            Err(SqlError::unsupported(what))
        }
    }
}

/// Names of the columns that the statement gives values; none where it gives all.
fn named(statement: &Statement) -> Option<Vec<String>> {
    let last = |name: &ast::ObjectName| {
        let ident = name.0.last().and_then(|part| part.as_ident());
        ident.map(|i| if i.quote_style.is_some() { i.value.clone() } else { i.value.to_ascii_lowercase() })
    };
    match statement {
        Statement::Insert(insert) if insert.columns.is_empty() => None,
        Statement::Insert(insert) => Some(insert.columns.iter().filter_map(last).collect()),
        Statement::Update(update) => {
            let targets = update.assignments.iter().filter_map(|assignment| match &assignment.target {
                AssignmentTarget::ColumnName(name) => last(name),
                AssignmentTarget::Tuple(_) => None,
            });
            Some(targets.collect())
        }
        _ => None,
    }
}

/// Runs a plan that writes; gives back how many rows it wrote.
///
/// # Errors
/// A plan of something else, values that do not fit, or a cluster that does not answer.
pub async fn run(ctx: &SessionContext, statement: &Statement, plan: &LogicalPlan) -> Result<u64, DataFusionError> {
    check(statement)?;
    let LogicalPlan::Dml(DmlStatement { target, op, input, .. }) = plan else {
        return Err(SqlError::unsupported(format!("this statement is not supported: {statement}")).into());
    };
    let provider = source_as_provider(target)?;
    let Some(table) = provider.downcast_ref::<HBaseTable>() else {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "only tables of HBase can be written").into());
    };
    let manner = match (op, statement) {
        (WriteOp::Delete, _) => Manner::Delete,
        (WriteOp::Insert(_), Statement::Insert(insert)) if insert.on.is_some() => Manner::IfAbsent,
        (WriteOp::Insert(_) | WriteOp::Update, _) => Manner::Upsert,
        _ => return Err(SqlError::unsupported(format!("{} is not supported", op.name())).into()),
    };
    let written = columns_written(&table.mapping, statement, op)?;
    let writer = Writer::new(table, manner, &written)?;
    // Only what is needed is read: the key, and what is written.
    let picked = written.iter().map(|at| Expr::Column(input.schema().columns()[*at].clone()));
    let input = LogicalPlanBuilder::from(Arc::clone(input)).project(picked)?.build()?;
    let mut batches = ctx.execute_logical_plan(input).await?.execute_stream().await?;
    let mut count = 0;
    while let Some(batch) = batches.try_next().await? {
        count += writer.write(&batch).await?;
    }
    Ok(count)
}

/// Positions of the columns that take part: the key's first, then those that are written.
fn columns_written(mapping: &Mapping, statement: &Statement, op: &WriteOp) -> Result<Vec<usize>, SqlError> {
    let key = mapping.key_columns();
    let mut columns = key.clone();
    if *op == WriteOp::Delete {
        return Ok(columns);
    }
    let named = named(statement);
    for (at, column) in mapping.columns.iter().enumerate() {
        let is_named = named.as_ref().is_none_or(|names| names.contains(&column.name));
        if key.contains(&at) {
            if *op == WriteOp::Update && is_named {
                let what =
                    format!("column \"{}\" is in the primary key: delete the row and insert another", column.name);
                return Err(SqlError::unsupported(what));
            }
        } else if is_named {
            columns.push(at);
        }
    }
    Ok(columns)
}

struct Writer<'a> {
    table: &'a HBaseTable,
    layout: KeyLayout,
    manner: Manner,
    columns: Vec<&'a Column>,
    key_len: usize,
}

impl<'a> Writer<'a> {
    fn new(table: &'a HBaseTable, manner: Manner, written: &[usize]) -> Result<Writer<'a>, SqlError> {
        let mapping = &table.mapping;
        if manner == Manner::IfAbsent && mapping.kind != Kind::Table {
            let what = "ON CONFLICT DO NOTHING needs a table that CREATE TABLE made: its rows have a cell to look for";
            return Err(SqlError::unsupported(what));
        }
        Ok(Writer {
            table,
            layout: mapping.key_layout(),
            manner,
            columns: written.iter().map(|at| &mapping.columns[*at]).collect(),
            key_len: mapping.key_columns().len(),
        })
    }

    /// Writes a batch of rows; gives back how many were written.
    async fn write(&self, batch: &RecordBatch) -> Result<u64, DataFusionError> {
        let cast_to_own = |(column, array): (&&Column, &ArrayRef)| {
            if *array.data_type() == column.arrow_type() {
                Ok(Arc::clone(array))
            } else {
                cast(array, &column.arrow_type())
            }
        };
        let arrays = self.columns.iter().zip(batch.columns()).map(cast_to_own).collect::<Result<Vec<_>, _>>()?;
        let mut count = 0;
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let rows = start..batch.num_rows().min(start + BATCH_ROWS);
            let actions = rows.map(|row| self.action(&arrays, row)).collect::<Result<Vec<_>, SqlError>>()?;
            for outcome in self.table.table.batch(&actions).await.map_err(SqlError::from)? {
                let row = outcome.map_err(SqlError::from)?;
                count += u64::from(self.manner != Manner::IfAbsent || row.exists());
            }
        }
        Ok(count)
    }

    /// What is to be done for a row.
    fn action(&self, arrays: &[ArrayRef], row: usize) -> Result<Action, SqlError> {
        let mut key_values: Vec<Option<Value<'_>>> = Vec::with_capacity(self.key_len);
        for (column, array) in self.columns.iter().zip(arrays).take(self.key_len) {
            let value = value_at(column, array, row)?;
            // An empty text is NULL to Phoenix, and so it is here.
            let is_null = matches!(value, None | Some(Value::Text("") | Value::Bytes([])));
            if is_null && column.not_null {
                return Err(null_in(&self.table.mapping, column));
            }
            key_values.push(value);
        }
        let key = self.layout.encode(&key_values)?;
        if self.manner == Manner::Delete {
            return Ok(Action::Mutate(Delete::new(&key).build()));
        }
        let mutations = self.mutations(&key, arrays, row)?;
        if self.manner == Manner::IfAbsent {
            let (family, qualifier) = self.table.mapping.empty_cell().unwrap_or_default();
            let puts = mutations.into_iter().take(1);
            return Ok(CheckAndMutate::if_not_exists(&key, family, qualifier).then(puts).into_action());
        }
        let mut mutations = mutations;
        Ok(match mutations.len() {
            1 => Action::Mutate(mutations.remove(0)),
            _ => Action::MutateRow(mutations),
        })
    }

    /// A Put of the values that are there, then a Delete of the columns that are NULL.
    fn mutations(&self, key: &[u8], arrays: &[ArrayRef], row: usize) -> Result<Vec<Mutation>, SqlError> {
        let mut put = Put::new(key);
        let mut delete = None;
        let mut puts = 0;
        let mut bytes = Vec::new();
        for (column, array) in self.columns.iter().zip(arrays).skip(self.key_len) {
            let Place::Cell { family, qualifier } = &column.place else { continue };
            bytes.clear();
            if let Some(value) = value_at(column, array, row)? {
                column.sql_type.encode(&value, &mut bytes)?;
            }
            if bytes.is_empty() {
                if column.not_null {
                    return Err(null_in(&self.table.mapping, column));
                }
                delete = Some(delete.unwrap_or_else(|| Delete::new(key)).columns(family, qualifier));
            } else {
                put = put.add(family, qualifier, &bytes);
                puts += 1;
            }
        }
        if let Some((family, qualifier)) = self.table.mapping.empty_cell() {
            put = put.add(family, qualifier, EMPTY_CELL_VALUE);
            puts += 1;
        }
        let mut mutations = Vec::with_capacity(2);
        if puts > 0 {
            mutations.push(put.build());
        }
        mutations.extend(delete.map(Delete::build));
        if mutations.is_empty() {
            let message = "a row of a view needs a value that is not NULL: HBase has no rows without cells";
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message));
        }
        Ok(mutations)
    }
}

fn null_in(mapping: &Mapping, column: &Column) -> SqlError {
    let message = format!(
        "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
        column.name, mapping.name
    );
    SqlError::new(SqlState::NOT_NULL_VIOLATION, message)
}
