//! INSERT, UPSERT, UPDATE and DELETE: the rows of a plan become mutations, in batches. A row is written as a whole or not; a statement that
//! fails half-way has written some of its rows. `ON CONFLICT` checks a row and writes it in one operation of HBase's.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use client::{Action, CheckAndMutate, Delete, Put, Row};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::{cast, filter_record_batch, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DFSchema, DataFusionError, TableReference};
use datafusion::datasource::{DefaultTableSource, TableProvider};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    self, AssignmentTarget, ConflictTarget, DoUpdate, FromTable, Ident, OnConflictAction, OnInsert, SelectItem,
    Statement, TableFactor,
};
use filter::{Comparator, CompareOp, Filter, SingleColumnValue};
use futures::TryStreamExt;
use model::Mutation;
use types::{KeyLayout, pack};

use crate::arrow_values::encode_at;
use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, EMPTY_CELL_VALUE, Kind, Mapping, PACKED_QUALIFIER, Phoenix, Place, Versions};
use crate::parameters::Parameters;
use crate::table::HBaseTable;

/// Rows of one batch to HBase.
pub const BATCH_ROWS: usize = 1000;
/// How often a row is tried that others change meanwhile.
const MOST_TRIES: usize = 100;
/// The name of what could not be inserted.
const EXCLUDED: &str = "excluded";

/// What happens to the rows of a plan.
#[derive(Clone)]
pub enum Manner {
    /// Their columns are written, whether the row is there or not.
    Upsert,
    /// Only rows that are not there are written.
    IfAbsent,
    /// Rows that are not there are written, others changed.
    Merge(Arc<Merge>),
    /// The rows are deleted.
    Delete,
}

/// The statement without what DataFusion's planner does not read.
pub fn plannable(statement: &Statement) -> Statement {
    match statement {
        Statement::Insert(insert) => Statement::Insert(ast::Insert { on: None, returning: None, ..insert.clone() }),
        Statement::Update(update) => Statement::Update(ast::Update { returning: None, ..update.clone() }),
        Statement::Delete(delete) => Statement::Delete(ast::Delete { returning: None, ..delete.clone() }),
        other => other.clone(),
    }
}

/// `RETURNING` of a statement.
pub fn returning(statement: &Statement) -> Option<&[SelectItem]> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_deref(),
        Statement::Update(update) => update.returning.as_deref(),
        Statement::Delete(delete) => delete.returning.as_deref(),
        _ => None,
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

/// What a statement wrote.
pub struct Written {
    /// Rows.
    pub count: u64,
    /// What `RETURNING` asks for, of each of them.
    pub returned: Option<(SchemaRef, Vec<RecordBatch>)>,
}

/// The table that a plan writes, and its operation and rows.
///
/// # Errors
/// A plan of something else.
fn target_of(plan: &LogicalPlan) -> Result<(&HBaseTable, &WriteOp, &Arc<LogicalPlan>), DataFusionError> {
    let LogicalPlan::Dml(DmlStatement { target, op, input, .. }) = plan else {
        return Err(SqlError::unsupported("this statement is not supported").into());
    };
    let provider = target.downcast_ref::<DefaultTableSource>().map(|source| source.table_provider.as_ref());
    match provider.and_then(|provider| provider.downcast_ref::<HBaseTable>()) {
        Some(table) if table.versions == Versions::Newest => Ok((table, op, input)),
        _ => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "only tables of HBase can be written").into()),
    }
}

/// Looks at a plan that writes, and gives it the columns of its `RETURNING`.
///
/// # Errors
/// What [`run`] would refuse.
pub fn checked(
    ctx: &SessionContext,
    statement: &Statement,
    mut plan: LogicalPlan,
) -> Result<LogicalPlan, DataFusionError> {
    let (table, op, input) = target_of(&plan)?;
    let mut parameters = Parameters::of(input)?;
    manner(ctx, statement, op, table, &mut parameters)?;
    let input = parameters.with_found(input)?;
    let returning = returning(statement).map(|items| Returning::of(ctx, statement, table, items)).transpose()?;
    if let LogicalPlan::Dml(dml) = &mut plan {
        dml.input = input;
        if let Some(returning) = returning {
            dml.output_schema = Arc::new(DFSchema::try_from(returning.schema)?);
        }
    }
    Ok(plan)
}

fn manner(
    ctx: &SessionContext,
    statement: &Statement,
    op: &WriteOp,
    table: &HBaseTable,
    parameters: &mut Parameters,
) -> Result<Manner, DataFusionError> {
    let on = match (op, statement) {
        (WriteOp::Delete, _) => return Ok(Manner::Delete),
        (WriteOp::Update, _) => return Ok(Manner::Upsert),
        (WriteOp::Insert(_), Statement::Insert(insert)) => &insert.on,
        _ => return Err(SqlError::unsupported(format!("{} is not supported", op.name())).into()),
    };
    match on {
        None => Ok(Manner::Upsert),
        Some(OnInsert::OnConflict(on)) => match &on.action {
            OnConflictAction::DoNothing => Ok(Manner::IfAbsent),
            OnConflictAction::DoUpdate(update) => {
                let merge = Merge::of(ctx, table, on.conflict_target.as_ref(), update, parameters)?;
                Ok(Manner::Merge(Arc::new(merge)))
            }
        },
        Some(_) => {
            Err(SqlError::unsupported("ON DUPLICATE KEY is MySQL's: ON CONFLICT DO UPDATE does the same").into())
        }
    }
}

/// Runs a plan that writes.
///
/// # Errors
/// A plan of something else, values that do not fit, or a cluster that does not answer.
pub async fn run(ctx: SessionContext, statement: Statement, plan: LogicalPlan) -> Result<Written, DataFusionError> {
    let (table, op, input) = target_of(&plan)?;
    let written = columns_written(&table.mapping, &statement, op)?;
    let manner = manner(&ctx, &statement, op, table, &mut Parameters::with_values(input)?)?;
    let writer = Writer::new(table, manner, &written)?;
    let returning = returning(&statement).map(|items| Returning::of(&ctx, &statement, table, items)).transpose()?;
    let is_insert = matches!(statement, Statement::Insert(_));
    // An INSERT says nothing about columns that it does not name, and a merge less: those rows are read again.
    let reads_again = returning.as_ref().is_some_and(|returning| {
        let is_merge = matches!(writer.manner, Manner::Merge(_));
        is_insert && (is_merge || returning.reads.iter().any(|at| !written.contains(at)))
    });
    // Only what is needed is read: the key, what is written, and what is to come back.
    let mut picked = written.clone();
    if let Some(returning) = &returning
        && !reads_again
    {
        picked.extend(returning.reads.iter().filter(|at| !written.contains(at)));
    }
    let columns = picked.iter().map(|at| Expr::Column(input.schema().columns()[*at].clone()));
    let input = LogicalPlanBuilder::from(Arc::clone(input)).project(columns)?.build()?;
    let memory = MemoryConsumer::new("RETURNING").register(&ctx.runtime_env().memory_pool);
    let mut batches = ctx.execute_logical_plan(input).await?.execute_stream().await?;
    let mut count = 0;
    let mut returned = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let batch = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
            let done = writer.write(&batch).await?;
            count += done.iter().flatten().count() as u64;
            let Some(returning) = &returning else { continue };
            let rows = if reads_again {
                table.rows_of(done.into_iter().flatten()).await?.1
            } else {
                let done: BooleanArray = done.iter().map(|key| Some(key.is_some())).collect();
                returning.in_table_order(table, &picked, &filter_record_batch(&batch, &done)?)?
            };
            let rows = returning.evaluate(&rows)?;
            memory.try_grow(rows.get_array_memory_size())?;
            returned.push(rows);
        }
    }
    Ok(Written { count, returned: returning.map(|returning| (returning.schema, returned)) })
}

/// `RETURNING`: expressions on the rows of a table.
struct Returning {
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    /// Positions of the columns that they look at.
    reads: Vec<usize>,
}

impl Returning {
    fn of(
        ctx: &SessionContext,
        statement: &Statement,
        table: &HBaseTable,
        items: &[SelectItem],
    ) -> Result<Returning, DataFusionError> {
        let schema = table.schema();
        let called = called(statement).unwrap_or_else(|| table.mapping.name.clone());
        let of = DFSchema::try_from_qualified_schema(TableReference::bare(called), &schema)?;
        let state = ctx.state();
        let mut expressions = Vec::new();
        for item in items {
            match item {
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    expressions.extend(of.columns().into_iter().map(Expr::Column));
                }
                SelectItem::UnnamedExpr(expr) => expressions.push(state.create_logical_expr(&expr.to_string(), &of)?),
                SelectItem::ExprWithAlias { expr, alias } => {
                    let name = name_of(alias);
                    expressions.push(state.create_logical_expr(&expr.to_string(), &of)?.alias(name));
                }
                other => return Err(SqlError::unsupported(format!("RETURNING {other} is not supported")).into()),
            }
        }
        let mut reads: Vec<usize> = expressions
            .iter()
            .flat_map(Expr::column_refs)
            .filter_map(|column| schema.index_of(&column.name).ok())
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let field = |expr: &Expr| -> Result<Field, DataFusionError> {
            let (_, field) = expr.to_field(&of)?;
            Ok(field.as_ref().clone().with_name(expr.qualified_name().1))
        };
        let fields = expressions.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let expressions = expressions.into_iter().map(|expr| physical(ctx, expr, &of));
        Ok(Returning {
            expressions: expressions.collect::<Result<Vec<_>, _>>()?,
            schema: Arc::new(Schema::new(fields)),
            reads,
        })
    }

    /// Rows of some of the table's columns as rows of all of them: those that nobody looks at are NULL.
    fn in_table_order(
        &self,
        table: &HBaseTable,
        picked: &[usize],
        batch: &RecordBatch,
    ) -> Result<RecordBatch, DataFusionError> {
        let arrays = table.mapping.columns.iter().enumerate().map(|(at, column)| {
            match picked.iter().position(|picked| *picked == at) {
                Some(found) => as_column(column, batch.column(found)),
                None => Ok(new_null_array(&column.arrow_type(), batch.num_rows())),
            }
        });
        let fields = table.mapping.columns.iter().map(|c| Field::new(&c.name, c.arrow_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(RecordBatch::try_new(schema, arrays.collect::<Result<Vec<_>, _>>()?)?)
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let value = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(rows)?.into_array(rows.num_rows());
        let arrays = self.expressions.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let fields = self.schema.fields().iter().zip(&arrays);
        let fields = fields.map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// An expression that can be computed. Some functions are only there to be replaced by others.
fn physical(ctx: &SessionContext, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
    let state = ctx.state();
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expr = simplifier.simplify(simplifier.coerce(expr, schema)?)?;
    state.create_physical_expr(expr, schema)
}

/// What the statement calls its table, if it says.
fn called(statement: &Statement) -> Option<String> {
    let of_factor = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. } => Some(name_of(&alias.name)),
        _ => None,
    };
    match statement {
        Statement::Update(update) => of_factor(&update.table.relation),
        Statement::Delete(delete) => match &delete.from {
            FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => {
                of_factor(&tables.first()?.relation)
            }
        },
        _ => None,
    }
}

/// A name as PostgreSQL reads it.
pub fn name_of(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

fn as_column(column: &Column, array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let of = column.arrow_type();
    if *array.data_type() == of { Ok(Arc::clone(array)) } else { Ok(cast(array, &of)?) }
}

/// Positions of the columns that take part: the key's first, then those that are written.
fn columns_written(mapping: &Mapping, statement: &Statement, op: &WriteOp) -> Result<Vec<usize>, SqlError> {
    let key = mapping.key_columns();
    let mut columns = key.clone();
    if *op == WriteOp::Delete {
        return Ok(columns);
    }
    if *op == WriteOp::Update && mapping.columns.iter().any(|column| matches!(column.place, Place::Packed { .. })) {
        let message =
            format!("rows of \"{}\" are written once: Phoenix has all their columns in one cell", mapping.name);
        return Err(SqlError::unsupported(message));
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

/// Whether rows of one of Phoenix's tables can be written as well as Phoenix does.
fn is_writable(phoenix: &Phoenix, name: &str, manner: &Manner) -> Result<(), SqlError> {
    if !phoenix.indexes.is_empty() {
        let indexes = phoenix.indexes.join(", ");
        let message = format!("\"{name}\" has indexes of Phoenix's ({indexes}), which would miss what is written here");
        return Err(SqlError::unsupported(message));
    }
    if phoenix.condition.is_some() && !matches!(manner, Manner::Delete) {
        let message = format!("\"{name}\" is one of Phoenix's views with a condition: write the table it shows");
        return Err(SqlError::unsupported(message));
    }
    Ok(())
}

/// Writes rows of some columns of a table.
pub struct Writer<'a> {
    table: &'a HBaseTable,
    layout: KeyLayout,
    manner: Manner,
    columns: Vec<&'a Column>,
    key_len: usize,
}

impl<'a> Writer<'a> {
    /// A writer of the columns at these positions: those of the key first, all of them.
    ///
    /// # Errors
    /// A table whose rows have no cell to look for, where that is needed.
    pub fn new(table: &'a HBaseTable, manner: Manner, written: &[usize]) -> Result<Writer<'a>, SqlError> {
        let mapping = &table.mapping;
        if matches!(manner, Manner::IfAbsent | Manner::Merge(_)) && mapping.kind != Kind::Table {
            let what = "ON CONFLICT needs a table that CREATE TABLE made: its rows have a cell to look for";
            return Err(SqlError::unsupported(what));
        }
        if let Some(phoenix) = &mapping.phoenix {
            is_writable(phoenix, &mapping.name, &manner)?;
        }
        Ok(Writer {
            table,
            layout: mapping.key_layout(),
            manner,
            columns: written.iter().map(|at| &mapping.columns[*at]).collect(),
            key_len: mapping.key_columns().len(),
        })
    }

    /// Writes a batch of rows, all at once; gives back the keys of those that were written. Columns after the writer's own are passed over.
    ///
    /// # Errors
    /// Values that do not fit, or a cluster that does not answer.
    pub async fn write(&self, batch: &RecordBatch) -> Result<Vec<Option<Bytes>>, DataFusionError> {
        let arrays = self.columns.iter().zip(batch.columns()).map(|(column, array)| as_column(column, array));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let rows = 0..batch.num_rows();
        let keys = rows.clone().map(|row| self.key(&arrays, row)).collect::<Result<Vec<_>, _>>()?;
        if let Manner::Merge(merge) = &self.manner {
            return self.merge(merge, &arrays, keys).await;
        }
        let actions = rows.map(|row| self.action(&keys[row], &arrays, row)).collect::<Result<Vec<_>, SqlError>>()?;
        let mut done = Vec::with_capacity(keys.len());
        for (outcome, key) in self.table.table.batch(&actions).await.map_err(SqlError::from)?.into_iter().zip(keys) {
            let row = outcome.map_err(SqlError::from)?;
            let is_written = !matches!(self.manner, Manner::IfAbsent) || row.exists();
            done.push(is_written.then_some(key));
        }
        Ok(done)
    }

    fn key(&self, arrays: &[ArrayRef], row: usize) -> Result<Bytes, SqlError> {
        let encode = |index: usize, out: &mut Vec<u8>| {
            let column = self.columns[index];
            encode_at(column, &arrays[index], row, out)?;
            // An empty text is NULL to Phoenix, and so it is here.
            if out.is_empty() && column.not_null {
                return Err(null_in(&self.table.mapping, column));
            }
            Ok(())
        };
        Ok(self.layout.encode_with(encode)?.into())
    }

    /// What is to be done for a row.
    fn action(&self, key: &Bytes, arrays: &[ArrayRef], row: usize) -> Result<Action, SqlError> {
        if matches!(self.manner, Manner::Delete) {
            return Ok(Action::Mutate(Delete::new(key).build()));
        }
        let mut mutations = self.mutations(key, arrays, row)?;
        if !matches!(self.manner, Manner::Upsert) {
            return Ok(self.if_absent(key, mutations));
        }
        Ok(match mutations.len() {
            1 => Action::Mutate(mutations.remove(0)),
            _ => Action::MutateRow(mutations),
        })
    }

    /// The Put of some mutations, if the row is not there. There is nothing to delete in it.
    fn if_absent(&self, key: &Bytes, mutations: Vec<Mutation>) -> Action {
        let (family, qualifier) = self.table.mapping.empty_cell().unwrap_or_default();
        CheckAndMutate::if_not_exists(key, family, qualifier).then(mutations.into_iter().take(1)).into_action()
    }

    /// `ON CONFLICT DO UPDATE`: each row is inserted if it is not there, or changed if it is still what the change was computed from.
    async fn merge(
        &self,
        merge: &Merge,
        arrays: &[ArrayRef],
        keys: Vec<Bytes>,
    ) -> Result<Vec<Option<Bytes>>, DataFusionError> {
        let distinct: HashSet<&Bytes> = keys.iter().collect();
        if distinct.len() < keys.len() {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message).into());
        }
        let mut done: Vec<Option<Bytes>> = vec![None; keys.len()];
        let mut left: Vec<usize> = (0..keys.len()).collect();
        for _ in 0..MOST_TRIES {
            let insert = |row: &usize| Ok(self.if_absent(&keys[*row], self.mutations(&keys[*row], arrays, *row)?));
            let inserts = left.iter().map(insert).collect::<Result<Vec<_>, SqlError>>()?;
            let mut there = Vec::new();
            for (outcome, row) in self.table.table.batch(&inserts).await.map_err(SqlError::from)?.into_iter().zip(left)
            {
                if outcome.map_err(SqlError::from)?.exists() {
                    done[row] = Some(keys[row].clone());
                } else {
                    there.push(row);
                }
            }
            let (found, existing) = self.table.rows_of(there.iter().map(|row| keys[*row].clone())).await?;
            // Who has gone since is inserted in the next turn.
            left = Vec::new();
            let (mut rows, mut cells) = (Vec::new(), Vec::new());
            for (row, found) in there.into_iter().zip(found) {
                if found.exists() {
                    rows.push(row);
                    cells.push(found);
                } else {
                    left.push(row);
                }
            }
            let offered = self.offered(arrays, &rows)?;
            let changes = merge.changes(self.table, &existing, &offered)?;
            let (mut actions, mut of_rows) = (Vec::new(), Vec::new());
            for (at, row) in rows.into_iter().enumerate() {
                if let Some(action) = changes.action(self, merge, &keys[row], &cells[at], at)? {
                    actions.push(action);
                    of_rows.push(row);
                }
            }
            for (outcome, row) in
                self.table.table.batch(&actions).await.map_err(SqlError::from)?.into_iter().zip(of_rows)
            {
                if outcome.map_err(SqlError::from)?.exists() {
                    done[row] = Some(keys[row].clone());
                } else {
                    left.push(row);
                }
            }
            if left.is_empty() {
                return Ok(done);
            }
        }
        let message = format!("{} rows were changed by others at each of {MOST_TRIES} tries", left.len());
        Err(SqlError::new("40001", message).into())
    }

    /// `excluded`: the rows that could not be inserted, in the table's columns.
    fn offered(&self, arrays: &[ArrayRef], rows: &[usize]) -> Result<Vec<ArrayRef>, DataFusionError> {
        let rows: UInt64Array = rows.iter().map(|row| *row as u64).collect();
        let of = |column: &Column| match self.columns.iter().position(|written| written.name == column.name) {
            Some(at) => Ok(take(&arrays[at], &rows, None)?),
            None => Ok(new_null_array(&column.arrow_type(), rows.len())),
        };
        self.table.mapping.columns.iter().map(of).collect()
    }

    /// A Put of the values that are there, then a Delete of the columns that are NULL.
    fn mutations(&self, key: &[u8], arrays: &[ArrayRef], row: usize) -> Result<Vec<Mutation>, SqlError> {
        let values = self.columns.iter().copied().zip(arrays).skip(self.key_len);
        self.mutations_of(key, values, row)
    }

    /// Cells with all columns of a family, of some columns' values in a row.
    fn packed_cells<'b>(
        values: impl Iterator<Item = (&'b Column, &'b ArrayRef)>,
        row: usize,
    ) -> Result<Vec<(&'b str, Vec<u8>)>, SqlError> {
        let mut families: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
        for (column, array) in values {
            let Place::Packed { family, at } = &column.place else { continue };
            let of_family = families.entry(family).or_default();
            of_family.resize_with(of_family.len().max(*at), Vec::new);
            encode_at(column, array, row, &mut of_family[*at - 1])?;
        }
        let packed = |(family, values): (_, Vec<Vec<u8>>)| (family, pack(values.iter().map(Vec::as_slice)));
        Ok(families.into_iter().map(packed).collect())
    }

    fn mutations_of<'b>(
        &self,
        key: &[u8],
        values: impl Iterator<Item = (&'b Column, &'b ArrayRef)> + Clone,
        row: usize,
    ) -> Result<Vec<Mutation>, SqlError> {
        let mut put = Put::new(key);
        let mut delete = None;
        let mut puts = 0;
        let mut bytes = Vec::new();
        for (family, cell) in Self::packed_cells(values.clone(), row)? {
            put = put.add(family, PACKED_QUALIFIER, &cell);
            puts += 1;
        }
        for (column, array) in values {
            let Place::Cell { family, qualifier } = &column.place else { continue };
            bytes.clear();
            encode_at(column, array, row, &mut bytes)?;
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

/// `ON CONFLICT DO UPDATE`: what becomes of a row that is there.
pub struct Merge {
    /// Positions of the columns that are set, and to what, computed from the row's columns and those of `excluded`.
    sets: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// Positions of the row's columns that these look at: they must be the same when the change is made.
    reads: Vec<usize>,
    schema: SchemaRef,
}

impl Merge {
    fn of(
        ctx: &SessionContext,
        table: &HBaseTable,
        target: Option<&ConflictTarget>,
        update: &DoUpdate,
        parameters: &mut Parameters,
    ) -> Result<Merge, DataFusionError> {
        let mapping = &table.mapping;
        let mut key: Vec<&str> = mapping.key_columns().iter().map(|at| mapping.columns[*at].name.as_str()).collect();
        key.sort_unstable();
        let is_key = match target {
            None => false,
            Some(ConflictTarget::Columns(columns)) => {
                let mut columns: Vec<String> = columns.iter().map(name_of).collect();
                columns.sort_unstable();
                columns == key
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let name = name.0.last().and_then(|part| part.as_ident()).map(name_of);
                name == Some(format!("{}_pkey", mapping.name))
            }
        };
        if !is_key {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification: there is the \
                           primary key alone, whose columns are to be named";
            return Err(SqlError::new("42P10", message).into());
        }
        let row = DFSchema::try_from_qualified_schema(TableReference::bare(mapping.name.as_str()), &table.schema())?;
        let offered = DFSchema::try_from_qualified_schema(TableReference::bare(EXCLUDED), &table.schema())?;
        let both = row.join(&offered)?;
        let state = ctx.state();
        let mut reads = Vec::new();
        type Typed = (DataType, Arc<dyn PhysicalExpr>);
        let mut expression = |expr: &ast::Expr, alone: DataType| -> Result<Typed, DataFusionError> {
            let expr = state.create_logical_expr(&expr.to_string(), &both)?;
            let expr = parameters.filled(expr, &both, Some(&alone))?;
            for column in expr.column_refs() {
                if column.relation.as_ref().is_none_or(|relation| relation.table() != EXCLUDED) {
                    reads.extend(mapping.column(&column.name).map(|(at, _)| at));
                }
            }
            Ok((expr.get_type(&both)?, physical(ctx, expr, &both)?))
        };
        let mut sets = Vec::new();
        for assignment in &update.assignments {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(
                    SqlError::unsupported("ON CONFLICT DO UPDATE SET (columns) = (...) is not supported").into()
                );
            };
            let name = name.0.last().and_then(|part| part.as_ident()).map(name_of).unwrap_or_default();
            let Some((at, column)) = mapping.column(&name) else {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", mapping.name);
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message).into());
            };
            if matches!(column.place, Place::Key(_)) {
                let what = format!("column \"{name}\" is in the primary key: delete the row and insert another");
                return Err(SqlError::unsupported(what).into());
            }
            sets.push((at, expression(&assignment.value, column.arrow_type())?.1));
        }
        let condition = update.selection.as_ref().map(|expr| expression(expr, DataType::Boolean)).transpose()?;
        if condition.as_ref().is_some_and(|(of, _)| !matches!(of, DataType::Boolean | DataType::Null)) {
            let message = "argument of WHERE must be type boolean";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).into());
        }
        reads.sort_unstable();
        reads.dedup();
        let fields = mapping.columns.iter().chain(&mapping.columns);
        let fields = fields.map(|column| Field::new(&column.name, column.arrow_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Merge { sets, condition: condition.map(|(_, expr)| expr), reads, schema })
    }

    /// What becomes of rows, and of which of them.
    fn changes(
        &self,
        table: &HBaseTable,
        existing: &RecordBatch,
        offered: &[ArrayRef],
    ) -> Result<Changes, DataFusionError> {
        let arrays = existing.columns().iter().chain(offered).cloned().collect();
        let both = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        let value = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&both)?.into_array(both.num_rows());
        let set = |(at, expr): &(usize, Arc<dyn PhysicalExpr>)| {
            as_column(&table.mapping.columns[*at], &value(expr)?).map(|array| (*at, array))
        };
        let holds = self.condition.as_ref().map(value).transpose()?;
        Ok(Changes { values: self.sets.iter().map(set).collect::<Result<Vec<_>, _>>()?, holds })
    }
}

/// New values of rows that are there.
struct Changes {
    values: Vec<(usize, ArrayRef)>,
    holds: Option<ArrayRef>,
}

impl Changes {
    /// The change of a row, on the condition that it still has the cells that were read; none where nothing is to be changed.
    fn action(
        &self,
        writer: &Writer<'_>,
        merge: &Merge,
        key: &Bytes,
        row: &Row,
        at: usize,
    ) -> Result<Option<Action>, SqlError> {
        let holds = self.holds.as_ref().and_then(|holds| holds.as_boolean_opt());
        if self.holds.is_some() && !holds.is_some_and(|holds| holds.is_valid(at) && holds.value(at)) {
            return Ok(None);
        }
        let columns = &writer.table.mapping.columns;
        let values = self.values.iter().map(|(column, array)| (&columns[*column], array));
        let mutations = writer.mutations_of(key, values, at)?;
        let (family, qualifier) = writer.table.mapping.empty_cell().unwrap_or_default();
        let mut tests = vec![cell_is(&family, &qualifier, EMPTY_CELL_VALUE)];
        for (family, qualifier) in merge.reads.iter().filter_map(|at| columns[*at].cell()) {
            tests.push(cell_is(family, qualifier, row.value(family, qualifier).unwrap_or_default()));
        }
        let check = CheckAndMutate::if_filter(key, Arc::new(Filter::all_of(tests)));
        Ok(Some(check.then(mutations).into_action()))
    }
}

/// A filter that passes rows whose cell has this value; an empty one is the same as none.
fn cell_is(family: &[u8], qualifier: &[u8], value: &[u8]) -> Filter {
    Filter::SingleColumnValue(SingleColumnValue {
        family: Some(Bytes::copy_from_slice(family)),
        qualifier: Some(Bytes::copy_from_slice(qualifier)),
        op: CompareOp::Equal,
        comparator: Comparator::Binary { value: Bytes::copy_from_slice(value) },
        filter_if_missing: !value.is_empty(),
        latest_version_only: true,
    })
}

fn null_in(mapping: &Mapping, column: &Column) -> SqlError {
    let message = format!(
        "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
        column.name, mapping.name
    );
    SqlError::new(SqlState::NOT_NULL_VIOLATION, message)
}
