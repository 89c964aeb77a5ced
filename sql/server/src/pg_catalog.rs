//! What `pg_catalog` says beyond names and types: sequences, primary keys as indexes and constraints, lengths and digits of types, comments.
//! `datafusion-pg-catalog` makes the tables and their numbers (OIDs); what it does not know is laid over them here, as psql's `\d+` and `\ds`
//! and other clients ask for it.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Int16Type, Int32Type, Int64Type, SchemaRef};
use datafusion::catalog::{SchemaProvider, Session};
use datafusion::common::ScalarValue;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use parking_lot::Mutex;
use types::SqlType;

use crate::activity::{OfSessions, View};
use crate::catalog::{Catalog, Provider};
use crate::mapping::{Kind, Mapping};
use crate::sequence;
use crate::server::DATABASE;
use crate::session::Sessions;
use crate::table::HBaseTable;

const SCHEMA: &str = "pg_catalog";
/// The number of `pg_class` in itself, and that of the only way in which PostgreSQL keeps tables.
const PG_CLASS: i32 = 1259;
const HEAP: i32 = 2;
const BTREE: i32 = 403;
/// Numbers of an index, and of a constraint, are that of their table with one of these bits; those of sequences have both.
const INDEX_BIT: i32 = 1 << 29;
const CONSTRAINT_BIT: i32 = 1 << 30;

/// What psql's `\d+` asks for by an array of a subquery, which the planner does not know: the options of a table, of which there are none.
const PSQLS_OPTIONS: &str = "pg_catalog.array_to_string(c.reloptions || array(select 'toast.' || x from pg_catalog.unnest(tc.reloptions) x), ', ')";

/// A statement without what psql asks and the planner cannot read.
pub fn plannable(statement: String) -> String {
    if statement.contains(PSQLS_OPTIONS) { statement.replace(PSQLS_OPTIONS, "''") } else { statement }
}

/// What functions say of a number.
#[derive(Debug, Default, Clone)]
struct Facts {
    comment: Option<String>,
    /// Of columns, in their order.
    comments: Vec<Option<String>>,
    /// Of an index or a constraint.
    definition: Option<String>,
    /// Itself, where it is one whose size can be asked for.
    table: Option<Arc<HBaseTable>>,
}

type Known = Arc<Mutex<HashMap<i32, Facts>>>;

/// Lays it over the tables that are there.
pub fn lay_over(context: &SessionContext, catalog: &Arc<Catalog>, sessions: &Arc<Sessions>) -> Result<()> {
    let provider = context.catalog(DATABASE).and_then(|catalog| catalog.schema(SCHEMA));
    let Some(inner) = provider else { return Ok(()) };
    let known = Known::default();
    let (catalog_of, known_of) = (Arc::clone(catalog), Arc::clone(&known));
    let over = Overlay { inner, catalog: catalog_of, known: known_of, sessions: Arc::clone(sessions) };
    datafusion::catalog::CatalogProvider::register_schema(
        &Provider(Arc::clone(catalog)),
        SCHEMA,
        Arc::new(over) as Arc<dyn SchemaProvider>,
    )?;
    let state = context.state();
    if let Some(format) = state.scalar_functions().get("format_type") {
        context.register_udf(ScalarUDF::new_from_impl(FormatType(Arc::clone(format))));
    }
    for function in FUNCTIONS {
        context.register_udf(ScalarUDF::new_from_impl(Function { name: function, known: Arc::clone(&known) }));
    }
    for name in SIZES {
        let size = Arc::new(Size { name, known: Arc::clone(&known) });
        context.register_udf(AsyncScalarUDF::new(size).into_scalar_udf());
    }
    Ok(())
}

/// The schema, some of whose tables are more than they were.
#[derive(Debug)]
struct Overlay {
    inner: Arc<dyn SchemaProvider>,
    catalog: Arc<Catalog>,
    known: Known,
    sessions: Arc<Sessions>,
}

#[async_trait]
impl SchemaProvider for Overlay {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.inner.table_names();
        names.extend(View::ALL.map(|view| view.name().to_owned()));
        names.sort_unstable();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> std::result::Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some(view) = View::ALL.into_iter().find(|view| view.name() == name) {
            return Ok(Some(Arc::new(OfSessions::new(view, &self.sessions))));
        }
        let Some(inner) = self.inner.table(name).await? else { return Ok(None) };
        let what = match name {
            "pg_class" => What::Class,
            "pg_attribute" => What::Attribute,
            "pg_index" => What::Index,
            "pg_constraint" => What::Constraint,
            "pg_sequence" => What::Sequence,
            "pg_description" => What::Description,
            _ => return Ok(Some(inner)),
        };
        let (Some(classes), Some(namespaces)) =
            (self.inner.table("pg_class").await?, self.inner.table("pg_namespace").await?)
        else {
            return Ok(Some(inner));
        };
        let (catalog, known) = (Arc::clone(&self.catalog), Arc::clone(&self.known));
        Ok(Some(Arc::new(Over { what, inner, classes, namespaces, catalog, known })))
    }

    fn table_exist(&self, name: &str) -> bool {
        View::ALL.iter().any(|view| view.name() == name) || self.inner.table_exist(name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Class,
    Attribute,
    Index,
    Constraint,
    Sequence,
    Description,
}

/// A table with more rows, or more in them.
#[derive(Debug)]
struct Over {
    what: What,
    inner: Arc<dyn TableProvider>,
    classes: Arc<dyn TableProvider>,
    namespaces: Arc<dyn TableProvider>,
    catalog: Arc<Catalog>,
    known: Known,
}

/// A table that was described.
struct Relation {
    oid: i32,
    namespace: i32,
    table: Arc<HBaseTable>,
}

impl Relation {
    fn mapping(&self) -> &Mapping {
        &self.table.mapping
    }

    /// Numbers of its key's columns, from 1 on; none where it is a view.
    fn key(&self) -> Option<Vec<i16>> {
        let of = (self.mapping().kind == Kind::Table).then(|| self.mapping().key_columns())?;
        Some(of.into_iter().map(|at| at as i16 + 1).collect())
    }

    fn key_name(&self) -> String {
        format!("{}_pkey", self.mapping().name)
    }

    fn key_columns(&self) -> String {
        let columns = &self.mapping().columns;
        let key = self.mapping().key_columns().into_iter().map(|at| quoted(&columns[at].name));
        key.collect::<Vec<_>>().join(", ")
    }
}

/// A name as it has to be written.
fn quoted(name: &str) -> String {
    let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A sequence's number: always the same for a name.
fn oid_of_sequence(schema: &str, name: &str) -> i32 {
    let hash = [schema.as_bytes(), &[0], name.as_bytes()].concat();
    let hash = hash.iter().fold(0x811C_9DC5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    (hash >> 3) as i32 | INDEX_BIT | CONSTRAINT_BIT
}

/// A row's values, by the names of their columns; others are NULL, or nothing.
pub type Row = Vec<(&'static str, ScalarValue)>;

pub fn text(value: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8(Some(value.into()))
}

pub fn int(value: i32) -> ScalarValue {
    ScalarValue::Int32(Some(value))
}

pub fn long(value: i64) -> ScalarValue {
    ScalarValue::Int64(Some(value))
}

fn yes() -> ScalarValue {
    ScalarValue::Boolean(Some(true))
}

/// Numbers of columns, as a list or, where there is none, with spaces between them.
fn numbers(of: &[i16], field: Option<&Field>) -> Result<ScalarValue> {
    match field.map(Field::data_type) {
        Some(DataType::List(item)) => {
            let values = of.iter().map(|n| ScalarValue::Int16(Some(*n)).cast_to(item.data_type()));
            let values = values.collect::<Result<Vec<_>>>()?;
            Ok(ScalarValue::List(ScalarValue::new_list(&values, item.data_type(), item.is_nullable())))
        }
        _ => Ok(text(of.iter().map(i16::to_string).collect::<Vec<_>>().join(" "))),
    }
}

pub fn batch_of(schema: &SchemaRef, rows: &[Row]) -> Result<RecordBatch> {
    if rows.is_empty() {
        return Ok(RecordBatch::new_empty(Arc::clone(schema)));
    }
    let arrays = schema.fields().iter().map(|field| {
        let of = field.data_type();
        let value = |row: &Row| match row.iter().find(|(name, _)| name == field.name()) {
            Some((_, value)) => value.cast_to(of),
            None if field.is_nullable() => ScalarValue::try_new_null(of),
            None => ScalarValue::new_default(of),
        };
        ScalarValue::iter_to_array(rows.iter().map(value).collect::<Result<Vec<_>>>()?)
    });
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays.collect::<Result<Vec<_>>>()?)?)
}

async fn rows_of(table: &Arc<dyn TableProvider>, state: &dyn Session) -> Result<RecordBatch> {
    let plan = table.scan(state, None, &[], None).await?;
    let batches = collect(plan, state.task_ctx()).await?;
    Ok(concat_batches(&table.schema(), &batches)?)
}

/// A column's values as one type.
fn column(batch: &RecordBatch, name: &str, of: &DataType) -> Result<ArrayRef> {
    let missing = || DataFusionError::Internal(format!("pg_catalog has no column {name}"));
    Ok(cast(batch.column_by_name(name).ok_or_else(missing)?, of)?)
}

/// The same batch with other values in a column.
fn replaced(batch: &RecordBatch, name: &str, values: ArrayRef) -> Result<RecordBatch> {
    let at = batch.schema().index_of(name)?;
    let mut arrays = batch.columns().to_vec();
    arrays[at] = cast(&values, batch.schema().field(at).data_type())?;
    Ok(RecordBatch::try_new(batch.schema(), arrays)?)
}

impl Over {
    /// The tables that were described, and numbers of schemas.
    async fn relations(&self, state: &dyn Session) -> Result<(Vec<Relation>, HashMap<String, i32>)> {
        let namespaces = rows_of(&self.namespaces, state).await?;
        let (oids, names) =
            (column(&namespaces, "oid", &DataType::Int32)?, column(&namespaces, "nspname", &DataType::Utf8)?);
        let (oids, names) = (oids.as_primitive::<Int32Type>(), names.as_string::<i32>());
        let schemas: HashMap<i32, &str> = oids.values().iter().copied().zip(names.iter().flatten()).collect();
        let classes = rows_of(&self.classes, state).await?;
        let (oids, names) = (column(&classes, "oid", &DataType::Int32)?, column(&classes, "relname", &DataType::Utf8)?);
        let of = column(&classes, "relnamespace", &DataType::Int32)?;
        let (oids, names, of) =
            (oids.as_primitive::<Int32Type>(), names.as_string::<i32>(), of.as_primitive::<Int32Type>());
        let mut relations = Vec::new();
        for row in 0..classes.num_rows() {
            let schema = schemas.get(&of.value(row)).copied().unwrap_or_default();
            if let Some(table) = self.catalog.described(schema, names.value(row)) {
                relations.push(Relation { oid: oids.value(row), namespace: of.value(row), table });
            }
        }
        self.learn(&relations);
        Ok((relations, schemas.into_iter().map(|(oid, name)| (name.to_owned(), oid)).collect()))
    }

    /// What the functions are asked of tables' numbers next.
    fn learn(&self, relations: &[Relation]) {
        let mut known = HashMap::new();
        for relation in relations {
            let mapping = relation.mapping();
            let comments = mapping.columns.iter().map(|column| column.comment.clone()).collect();
            let (comment, table) = (mapping.comment.clone(), Some(Arc::clone(&relation.table)));
            known.insert(relation.oid, Facts { comment, comments, definition: None, table });
            if relation.key().is_none() {
                continue;
            }
            let (name, columns) = (quoted(&relation.key_name()), relation.key_columns());
            let index = format!("CREATE UNIQUE INDEX {name} ON {} USING btree ({columns})", quoted(&mapping.name));
            let of = |definition| Facts { definition: Some(definition), ..Facts::default() };
            known.insert(relation.oid | INDEX_BIT, of(index));
            known.insert(relation.oid | CONSTRAINT_BIT, of(format!("PRIMARY KEY ({columns})")));
        }
        *self.known.lock() = known;
    }

    async fn batch(&self, state: &dyn Session) -> Result<RecordBatch> {
        let inner = rows_of(&self.inner, state).await?;
        let (relations, schemas) = self.relations(state).await?;
        let inner = match self.what {
            What::Class => class(&inner, &relations)?,
            What::Attribute => attribute(&inner, &relations)?,
            _ => inner,
        };
        let schema = inner.schema();
        let field = |name: &str| schema.field_with_name(name).ok();
        let mut rows: Vec<Row> = Vec::new();
        for relation in &relations {
            match (self.what, relation.key()) {
                (What::Class, Some(key)) => rows.push(vec![
                    ("oid", int(relation.oid | INDEX_BIT)),
                    ("relname", text(relation.key_name())),
                    ("relnamespace", int(relation.namespace)),
                    ("relam", int(BTREE)),
                    ("relkind", text("i")),
                    ("relpersistence", text("p")),
                    ("relnatts", int(key.len() as i32)),
                    ("relispopulated", yes()),
                    ("relreplident", text("n")),
                ]),
                (What::Index, Some(key)) => rows.push(vec![
                    ("indexrelid", int(relation.oid | INDEX_BIT)),
                    ("indrelid", int(relation.oid)),
                    ("indnatts", int(key.len() as i32)),
                    ("indnkeyatts", int(key.len() as i32)),
                    ("indisunique", yes()),
                    ("indisprimary", yes()),
                    ("indimmediate", yes()),
                    ("indisvalid", yes()),
                    ("indisready", yes()),
                    ("indislive", yes()),
                    ("indkey", numbers(&key, field("indkey"))?),
                ]),
                (What::Constraint, Some(key)) => rows.push(vec![
                    ("oid", int(relation.oid | CONSTRAINT_BIT)),
                    ("conname", text(relation.key_name())),
                    ("connamespace", int(relation.namespace)),
                    ("contype", text("p")),
                    ("convalidated", yes()),
                    ("conrelid", int(relation.oid)),
                    ("conindid", int(relation.oid | INDEX_BIT)),
                    ("conislocal", yes()),
                    ("connoinherit", yes()),
                    ("conkey", numbers(&key, field("conkey"))?),
                ]),
                (What::Description, _) => {
                    let of_table = relation.mapping().comment.iter().map(|comment| (0, comment));
                    let columns = relation.mapping().columns.iter().enumerate();
                    let of_columns = columns.filter_map(|(at, c)| Some((at as i32 + 1, c.comment.as_ref()?)));
                    rows.extend(of_table.chain(of_columns).map(|(number, comment)| {
                        vec![
                            ("objoid", int(relation.oid)),
                            ("classoid", int(PG_CLASS)),
                            ("objsubid", int(number)),
                            ("description", text(comment)),
                        ]
                    }));
                }
                _ => {}
            }
        }
        if matches!(self.what, What::Class | What::Sequence) {
            for (name, definition) in sequence::all(&self.catalog).await? {
                let oid = int(oid_of_sequence(&name.schema, &name.name));
                rows.push(if self.what == What::Class {
                    vec![
                        ("oid", oid),
                        ("relname", text(name.name)),
                        ("relnamespace", int(schemas.get(&name.schema).copied().unwrap_or_default())),
                        ("relkind", text("S")),
                        ("relpersistence", text("p")),
                        ("relnatts", int(3)),
                        ("relispopulated", yes()),
                        ("relreplident", text("n")),
                    ]
                } else {
                    let type_of = if definition.bits == 16 {
                        21
                    } else if definition.bits == 32 {
                        23
                    } else {
                        20
                    };
                    vec![
                        ("seqrelid", oid),
                        ("seqtypid", int(type_of)),
                        ("seqstart", long(definition.start)),
                        ("seqincrement", long(definition.increment)),
                        ("seqmax", long(definition.max)),
                        ("seqmin", long(definition.min)),
                        ("seqcache", long(definition.cache)),
                        ("seqcycle", ScalarValue::Boolean(Some(false))),
                    ]
                });
            }
        }
        if rows.is_empty() {
            return Ok(inner);
        }
        Ok(concat_batches(&schema, [&inner, &batch_of(&schema, &rows)?])?)
    }
}

/// Tables with what PostgreSQL says of them all, and whether they have a key.
fn class(inner: &RecordBatch, relations: &[Relation]) -> Result<RecordBatch> {
    let (oids, kinds) = (column(inner, "oid", &DataType::Int32)?, column(inner, "relkind", &DataType::Utf8)?);
    let (oids, kinds) = (oids.as_primitive::<Int32Type>(), kinds.as_string::<i32>());
    let with_key: Vec<i32> = relations.iter().filter(|r| r.key().is_some()).map(|r| r.oid).collect();
    let has_key = ScalarValue::iter_to_array(
        oids.values().iter().map(|oid| ScalarValue::Boolean(Some(with_key.contains(oid)))).chain(padding(inner)),
    );
    let methods = kinds.iter().map(|kind| int(if kind == Some("r") { HEAP } else { 0 })).chain(padding(inner));
    let methods = ScalarValue::iter_to_array(methods);
    if inner.num_rows() == 0 {
        return Ok(inner.clone());
    }
    replaced(&replaced(inner, "relhasindex", has_key?)?, "relam", methods?)
}

/// Arrays are not made of nothing.
fn padding(batch: &RecordBatch) -> Option<ScalarValue> {
    (batch.num_rows() == 0).then_some(ScalarValue::Null)
}

/// Columns with the lengths and digits of their types.
fn attribute(inner: &RecordBatch, relations: &[Relation]) -> Result<RecordBatch> {
    let by_oid: HashMap<i32, &Relation> = relations.iter().map(|relation| (relation.oid, relation)).collect();
    let (oids, numbers) = (column(inner, "attrelid", &DataType::Int32)?, column(inner, "attnum", &DataType::Int16)?);
    let (oids, numbers) = (oids.as_primitive::<Int32Type>(), numbers.as_primitive::<Int16Type>());
    let types = column(inner, "atttypid", &DataType::Int32)?;
    let modifiers = column(inner, "atttypmod", &DataType::Int32)?;
    let (types, modifiers) = (types.as_primitive::<Int32Type>(), modifiers.as_primitive::<Int32Type>());
    let (mut new_types, mut new_modifiers) = (types.values().to_vec(), modifiers.values().to_vec());
    for row in 0..inner.num_rows() {
        let at = usize::try_from(numbers.value(row) - 1).unwrap_or(usize::MAX);
        let column = by_oid.get(&oids.value(row)).and_then(|relation| relation.mapping().columns.get(at));
        let Some(column) = column.filter(|column| !column.is_array) else { continue };
        let modified = match (column.sql_type, column.max_chars, column.decimal) {
            (SqlType::Char(chars), _, _) => Some((1042, chars as i32 + 4)),
            (SqlType::Varchar, Some(chars), _) => Some((1043, chars as i32 + 4)),
            (SqlType::Decimal, _, Some((precision, scale))) => {
                Some((1700, (i32::from(precision) << 16 | i32::from(scale) & 0xFFFF) + 4))
            }
            _ => None,
        };
        if let Some((of, modifier)) = modified {
            (new_types[row], new_modifiers[row]) = (of, modifier);
        }
    }
    let array = |values: Vec<i32>| Arc::new(datafusion::arrow::array::Int32Array::from(values)) as ArrayRef;
    replaced(&replaced(inner, "atttypid", array(new_types))?, "atttypmod", array(new_modifiers))
}

#[async_trait]
impl TableProvider for Over {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batch = self.batch(state).await?;
        let plan = MemorySourceConfig::try_new_exec(&[vec![batch]], self.schema(), projection.cloned())?;
        Ok(plan)
    }
}

const FUNCTIONS: [&str; 5] =
    ["col_description", "obj_description", "pg_get_indexdef", "pg_get_constraintdef", "pg_size_pretty"];

/// A function on numbers of tables and of what belongs to them.
#[derive(Debug)]
struct Function {
    name: &'static str,
    known: Known,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl std::hash::Hash for Function {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        static SIGNATURE: std::sync::LazyLock<Signature> = std::sync::LazyLock::new(|| {
            let counts = (1..=3).map(TypeSignature::Any).collect();
            Signature::one_of(counts, Volatility::Volatile)
        });
        &SIGNATURE
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let argument = |at: usize| -> Result<ArrayRef> {
            let array = match args.args.get(at) {
                Some(argument) => argument.to_array(args.number_rows)?,
                None => return Ok(Arc::new(Int64Array::from(vec![Some(0); args.number_rows]))),
            };
            Ok(cast(&array, &DataType::Int64)?)
        };
        let first = argument(0)?;
        let first = first.as_primitive::<Int64Type>();
        if self.name == "pg_size_pretty" {
            let sizes: StringArray = first.iter().map(|size| size.map(pretty)).collect();
            return Ok(ColumnarValue::Array(Arc::new(sizes)));
        }
        let known = self.known.lock();
        let of = |oid: Option<i64>| known.get(&i32::try_from(oid?).ok()?);
        let texts: StringArray = match self.name {
            "col_description" => {
                let columns = argument(1)?;
                let columns = columns.as_primitive::<Int64Type>();
                let comment = |(oid, column): (Option<i64>, Option<i64>)| {
                    of(oid)?.comments.get(usize::try_from(column? - 1).ok()?)?.clone()
                };
                first.iter().zip(columns.iter()).map(comment).collect()
            }
            "obj_description" => first.iter().map(|oid| of(oid)?.comment.clone()).collect(),
            _ => first.iter().map(|oid| of(oid)?.definition.clone()).collect(),
        };
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}

const SIZES: [&str; 3] = ["pg_relation_size", "pg_table_size", "pg_total_relation_size"];
/// Tables whose sizes are asked for at a time.
const SIZES_AT_A_TIME: usize = 16;

/// A function that asks the servers for a table's size: that of its regions' store files and memstores, replicas in HDFS not counted. What is
/// not a table of HBase's has none.
#[derive(Debug)]
struct Size {
    name: &'static str,
    known: Known,
}

impl PartialEq for Size {
    fn eq(&self, other: &Size) -> bool {
        self.name == other.name
    }
}

impl Eq for Size {}

impl std::hash::Hash for Size {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Size {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        static SIGNATURE: std::sync::LazyLock<Signature> = std::sync::LazyLock::new(|| {
            let counts = (1..=2).map(TypeSignature::Any).collect();
            Signature::one_of(counts, Volatility::Volatile)
        });
        &SIGNATURE
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} was called without waiting", self.name)))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Size {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(argument) = args.args.first() else {
            return Err(DataFusionError::Internal(format!("{} has no argument", self.name)));
        };
        let oids = cast(&argument.to_array(args.number_rows)?, &DataType::Int64)?;
        let tables: Vec<Option<Arc<HBaseTable>>> = {
            let known = self.known.lock();
            let table = |oid: Option<i64>| known.get(&i32::try_from(oid?).ok()?)?.table.clone();
            oids.as_primitive::<Int64Type>().iter().map(table).collect()
        };
        let size = |table: Option<Arc<HBaseTable>>| async move { table?.size_bytes().await.map(|bytes| bytes as i64) };
        let sizes: Vec<Option<i64>> =
            futures::stream::iter(tables.into_iter().map(size)).buffered(SIZES_AT_A_TIME).collect().await;
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(sizes))))
    }
}

/// `format_type`, which says of decimals without digits behind their point that there are none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FormatType(Arc<ScalarUDF>);

impl ScalarUDFImpl for FormatType {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let names = self.0.invoke_with_args(args)?.to_array(rows)?;
        let names = cast(&names, &DataType::Utf8)?;
        let whole = |name: &str| match name.strip_suffix(')') {
            Some(start) if name.starts_with("numeric(") && !name.contains(',') => format!("{start},0)"),
            _ => name.to_owned(),
        };
        let names: StringArray = names.as_string::<i32>().iter().map(|name| name.map(whole)).collect();
        Ok(ColumnarValue::Array(Arc::new(names)))
    }
}

/// A number of bytes as PostgreSQL writes it for people.
fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes.unsigned_abs() < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    // Each unit begins at 10,240 of the one before, rounded half up.
    let mut half = bytes >> 9;
    for unit in UNITS {
        if half.unsigned_abs() < 20 * 1024 - 1 || unit == "PB" {
            return format!("{} {unit}", (half + if half < 0 { -1 } else { 1 }) / 2);
        }
        half >>= 10;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_postgresql_does() {
        let of = [(0, "0 bytes"), (10_239, "10239 bytes"), (10_240, "10 kB"), (10_485_247, "10239 kB")];
        let more = [(10_485_248, "10 MB"), (-20_000, "-20 kB"), (1 << 45, "32 TB")];
        for (bytes, text) in of.into_iter().chain(more) {
            assert_eq!(pretty(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn what_psql_asks_of_options_is_left_out() {
        let asked = format!("SELECT c.relkind, {PSQLS_OPTIONS}\n, c.reltablespace");
        assert_eq!(plannable(asked), "SELECT c.relkind, ''\n, c.reltablespace");
        assert_eq!(plannable("select 1".to_owned()), "select 1");
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!((quoted("a_1"), quoted("A\"b"), quoted("1a")), ("a_1".into(), "\"A\"\"b\"".into(), "\"1a\"".into()));
        assert_ne!(oid_of_sequence("public", "a"), oid_of_sequence("public", "b"));
        assert!(oid_of_sequence("public", "a") > 0);
    }
}
