//! Queries for one row by its whole key, which need no planner: `SELECT columns FROM table WHERE key = value AND ...` is one Get.
//!
//! What is not of this form, or whose values have no bytes in the key's types, is for the planner: both ways give the same answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::tokenizer::Token;
use datafusion_postgres::arrow_pg::datatypes::{arrow_schema_to_pg_fields, encode_recordbatch, into_pg_type};
use model::Get;
use parking_lot::Mutex;
use pgwire::api::Type;
use pgwire::api::portal::Format;
use pgwire::api::results::FieldInfo;
use pgwire::error::PgWireResult;
use pgwire::messages::data::DataRow;
use types::salt_of;

use crate::answer::{fields, fractions, without_zeros};
use crate::catalog::Catalog;
use crate::comparison::encoded;
use crate::ddl::Name;
use crate::ddl::words::Words;
use crate::decode::Decoder;
use crate::error::SqlError;
use crate::mapping::Kind;
use crate::predicate::Pushed;
use crate::session::Session;
use crate::table::HBaseTable;

/// Prepared texts that are remembered; above, all are forgotten.
const MOST_PLANS: usize = 2000;
/// How long a Get is waited for before it is worth to look whether somebody wants it stopped.
const PATIENCE: Duration = Duration::from_millis(50);
/// Parameters of a statement, as PostgreSQL has it.
const MOST_PARAMETERS: usize = 64;

/// What a column of the key is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    /// `$1` is 0.
    Parameter(usize),
    Integer(i64),
    Text(String),
}

/// A column of the output: its name in the table, and its name for the client.
type Item = (String, String);

/// The parts of a query of this form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    table: Name,
    /// None for `*`.
    items: Option<Vec<Item>>,
    tests: Vec<(String, Operand)>,
}

/// Reads a query; none where it is of another form.
pub fn shape(sql: &str) -> Option<Shape> {
    let start = sql.trim_start().as_bytes();
    if !start.get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"select")) {
        return None;
    }
    let mut words = Words::new(sql).ok()?;
    let words = &mut words;
    words.take("select").then_some(())?;
    let mut items: Vec<(Option<String>, Item)> = Vec::new();
    let is_all = words.take_token(&Token::Mul);
    if !is_all {
        loop {
            let (qualifier, name) = column(words)?;
            let label = if words.take("as") { words.name().ok()? } else { name.clone() };
            items.push((qualifier, (name, label)));
            if !words.take_token(&Token::Comma) {
                break;
            }
        }
    }
    words.take("from").then_some(())?;
    let table = match column(words)? {
        (Some(schema), name) => Name { schema, name },
        (None, name) => Name { schema: "public".to_owned(), name },
    };
    let mut called = table.name.clone();
    if !words.take("where") {
        words.take("as");
        called = words.name().ok()?;
        words.take("where").then_some(())?;
    }
    let is_of_table = |qualifier: &Option<String>| qualifier.as_ref().is_none_or(|qualifier| *qualifier == called);
    let mut tests = Vec::new();
    loop {
        let (qualifier, name) = column(words)?;
        words.take_token(&Token::Eq).then_some(())?;
        is_of_table(&qualifier).then_some(())?;
        tests.push((name, operand(words)?));
        if !words.take("and") {
            break;
        }
    }
    if words.take("limit") && words.number::<u64>().ok()? == 0 {
        return None;
    }
    let is_whole = words.is_at_end() && items.iter().all(|(qualifier, _)| is_of_table(qualifier));
    let items = (!is_all).then(|| items.into_iter().map(|(_, item)| item).collect());
    is_whole.then_some(Shape { table, items, tests })
}

fn column(words: &mut Words) -> Option<(Option<String>, String)> {
    let first = words.name().ok()?;
    if words.take_token(&Token::Period) { Some((Some(first), words.name().ok()?)) } else { Some((None, first)) }
}

fn operand(words: &mut Words) -> Option<Operand> {
    let negative = words.take_token(&Token::Minus);
    let operand = match words.peek()? {
        Token::Number(text, false) => {
            let number: i64 = text.parse().ok()?;
            Operand::Integer(if negative { number.checked_neg()? } else { number })
        }
        _ if negative => return None,
        Token::SingleQuotedString(text) => Operand::Text(text.clone()),
        Token::Placeholder(name) => {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            Operand::Parameter(number.checked_sub(1).filter(|at| *at < MOST_PARAMETERS)?)
        }
        _ => return None,
    };
    words.advance();
    Some(operand)
}

/// Such a query on a table that is known.
pub struct Plan {
    shape: Shape,
    table: Arc<HBaseTable>,
    projection: Vec<usize>,
    schema: SchemaRef,
    /// Values of the key's columns, in the key's order.
    key: Vec<Operand>,
    parameters: Vec<DataType>,
    get: Get,
    /// What was known of the tables when this was found right.
    seen: AtomicU64,
}

impl Plan {
    /// The plan of a query; none where its table or columns are for the planner to find, or its key is not given.
    fn of(shape: Shape, table: Arc<HBaseTable>, version: u64) -> Option<Plan> {
        let mapping = &table.mapping;
        let has_condition = mapping.phoenix.as_ref().is_some_and(|phoenix| phoenix.condition.is_some());
        if mapping.kind == Kind::Raw || has_condition {
            return None;
        }
        let at = |name: &str| mapping.column(name).map(|(at, _)| at);
        let (projection, labels): (Vec<usize>, Vec<String>) = match &shape.items {
            None => mapping.columns.iter().enumerate().map(|(at, column)| (at, column.name.clone())).unzip(),
            Some(items) => {
                let found = items.iter().map(|(name, label)| Some((at(name)?, label.clone())));
                found.collect::<Option<Vec<_>>>()?.into_iter().unzip()
            }
        };
        let key_columns = mapping.key_columns();
        if shape.tests.len() != key_columns.len() {
            return None;
        }
        let mut key = Vec::with_capacity(key_columns.len());
        let mut parameters: Vec<Option<DataType>> = Vec::new();
        for at in key_columns {
            let column = &mapping.columns[at];
            let mut operands = shape.tests.iter().filter(|(name, _)| *name == column.name).map(|(_, operand)| operand);
            let (operand, None) = (operands.next()?.clone(), operands.next()) else { return None };
            match operand {
                Operand::Parameter(number) => {
                    parameters.resize(parameters.len().max(number + 1), None);
                    if parameters[number].replace(column.arrow_type()).is_some() {
                        return None;
                    }
                }
                Operand::Integer(_) if !column.arrow_type().is_numeric() => return None,
                Operand::Text(_) if column.arrow_type() != DataType::Utf8 => return None,
                Operand::Integer(_) | Operand::Text(_) => {}
            }
            key.push(operand);
        }
        let whole = table.schema_of(&projection);
        let labelled = whole.fields().iter().zip(labels).map(|(field, label)| field.as_ref().clone().with_name(label));
        let schema = Arc::new(Schema::new(labelled.collect::<Vec<_>>()));
        let (columns, filters) = table.cells_to_read(&projection, &Pushed::default());
        let filter = (!filters.is_empty()).then(|| Arc::new(filter::Filter::all_of(filters)));
        let get = Get { columns, filter, ..Get::new(Bytes::new()) };
        let parameters = parameters.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Plan { shape, table, projection, schema, key, parameters, get, seen: AtomicU64::new(version) })
    }

    /// Types of its parameters.
    ///
    /// # Errors
    /// None that is known.
    pub fn parameter_types(&self) -> PgWireResult<Vec<Type>> {
        self.parameters.iter().map(into_pg_type).collect()
    }

    /// The same in Arrow.
    pub fn parameters(&self) -> Vec<Option<&DataType>> {
        self.parameters.iter().map(Some).collect()
    }

    /// Its columns as a client is told of them.
    ///
    /// # Errors
    /// None that is known.
    pub fn fields(&self, format: &Format) -> PgWireResult<Arc<Vec<FieldInfo>>> {
        let columns = arrow_schema_to_pg_fields(&self.schema, format, None)?;
        Ok(Arc::new(fields(&columns)))
    }

    /// The row key; none where a value has no bytes in its column's type.
    pub fn key(&self, parameters: &[ScalarValue]) -> Option<Vec<u8>> {
        let mapping = &self.table.mapping;
        let layout = mapping.key_layout();
        let mut key = vec![0; layout.prefix_len()];
        for ((index, at), operand) in mapping.key_columns().into_iter().enumerate().zip(&self.key) {
            let literal;
            let value = match operand {
                Operand::Parameter(number) => parameters.get(*number)?,
                Operand::Integer(number) => {
                    literal = ScalarValue::Int64(Some(*number));
                    &literal
                }
                Operand::Text(text) => {
                    literal = ScalarValue::Utf8(Some(text.clone()));
                    &literal
                }
            };
            layout.append_encoded(index, &encoded(mapping, &mapping.columns[at], value, true)?, &mut key);
        }
        if layout.salt_buckets > 0 {
            key[0] = salt_of(&key[1..], layout.salt_buckets);
        }
        Some(key)
    }

    /// The row of a key, in the form of `columns`.
    ///
    /// # Errors
    /// The cluster does not answer, the bytes are no values of their types, or it was interrupted.
    pub async fn row(
        &self,
        session: &Arc<Session>,
        key: Vec<u8>,
        columns: &Arc<Vec<FieldInfo>>,
    ) -> PgWireResult<Option<DataRow>> {
        let get = Get { row: Bytes::from(key), ..self.get.clone() };
        let mut reading = std::pin::pin!(self.table.table.get(&get));
        let row = match tokio::time::timeout(PATIENCE, &mut reading).await {
            Ok(row) => row,
            Err(_) => session.run(reading).await?,
        };
        let row = row.map_err(SqlError::from)?;
        if !row.exists() {
            return Ok(None);
        }
        let mut decoder = Decoder::for_rows(&self.table.mapping, &self.projection, Arc::clone(&self.schema), 1);
        decoder.push(&row)?;
        let batch = decoder.finish()?;
        let Some(row) = encode_recordbatch(Arc::clone(columns), batch).next() else { return Ok(None) };
        let with_fractions = fractions(columns);
        Ok(Some(if with_fractions.contains(&true) { without_zeros(row?, &with_fractions) } else { row? }))
    }
}

/// The plans of prepared texts.
#[derive(Default)]
pub struct Plans(Mutex<HashMap<String, Arc<Plan>>>);

impl Plans {
    /// The plan of a text that was prepared, if it is still right.
    pub fn known(&self, catalog: &Catalog, sql: &str) -> Option<Arc<Plan>> {
        let plan = self.0.lock().get(sql).cloned()?;
        let version = catalog.version();
        if plan.seen.load(Ordering::Acquire) == version {
            return Some(plan);
        }
        let table = catalog.described(&plan.shape.table.schema, &plan.shape.table.name)?;
        if Arc::ptr_eq(&table, &plan.table) {
            plan.seen.store(version, Ordering::Release);
            return Some(plan);
        }
        let plan = Arc::new(Plan::of(plan.shape.clone(), table, version)?);
        self.0.lock().insert(sql.to_owned(), Arc::clone(&plan));
        Some(plan)
    }

    /// As [`Plans::known`], of a text that may be new.
    pub fn prepare(&self, catalog: &Catalog, sql: &str) -> Option<Arc<Plan>> {
        if let Some(plan) = self.known(catalog, sql) {
            return Some(plan);
        }
        let plan = Arc::new(plan(catalog, sql)?);
        let mut plans = self.0.lock();
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(sql.to_owned(), Arc::clone(&plan));
        Some(plan)
    }
}

/// The plan of a text, if it is of this form.
pub fn plan(catalog: &Catalog, sql: &str) -> Option<Plan> {
    let shape = shape(sql)?;
    let version = catalog.version();
    let table = catalog.described(&shape.table.schema, &shape.table.name)?;
    Plan::of(shape, table, version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_for_one_row_are_told_from_others() {
        let read = shape("SELECT t.a, \"B\" AS c FROM s.x t WHERE t.k = $1 AND l = 'it''s' and m = -5 limit 1;");
        let read = read.expect("of this form");
        assert_eq!((read.table.schema.as_str(), read.table.name.as_str()), ("s", "x"));
        let items = [("a".to_owned(), "a".to_owned()), ("B".to_owned(), "c".to_owned())];
        assert_eq!(read.items.as_deref(), Some(&items[..]));
        let operands: Vec<&Operand> = read.tests.iter().map(|(_, operand)| operand).collect();
        assert_eq!(operands, [&Operand::Parameter(0), &Operand::Text("it's".into()), &Operand::Integer(-5)]);
        assert_eq!(shape("select * from t where k=1").expect("of this form").items, None);
        for other in [
            "select a + 1 from t where k = 1",
            "select a from t where k = 1 or k = 2",
            "select a from t where k = 1.5",
            "select a from t where k > 1",
            "select count(*) from t where k = 1",
            "select distinct a from t where k = 1",
            "select a from t where k = 1 limit 0",
            "select a from t where k = 1 offset 1",
            "select a from t, u where k = 1",
            "select a from t where k = 1; select 2",
            "select u.a from t where k = 1",
            "select a from t where k = l",
            "select 1",
            "update t set a = 1 where k = 1",
        ] {
            assert_eq!(shape(other), None, "{other}");
        }
    }
}
