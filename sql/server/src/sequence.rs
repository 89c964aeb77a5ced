//! Sequences: numbers that are handed out once each, by atomic increments of a cell.
//!
//! Always true: no number is handed out twice, by however many servers, unless `setval` or `RESTART` sets the sequence back. Numbers are lost where a
//! statement fails, and what a server has reserved by `CACHE` is lost when it ends: PostgreSQL promises no more.
//!
//! A sequence is a row of the system table as a table's mapping is: its definition in one cell, the number that was handed out last in another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{CheckAndMutate, Delete, Put};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;
use model::{Get, Scan};
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::catalog::{Catalog, FAMILY, system_row};
use crate::ddl::{self, Name};
use crate::error::{SqlError, SqlState};
use crate::session::Session;

const DEFINITION: &[u8] = b"sequence";
/// The number that was handed out last, 8 bytes.
const LAST: &[u8] = b"last";
/// How old what is known of a sequence may be: as of tables.
const DEFINITION_LASTS: Duration = Duration::from_secs(2);
/// Most numbers that `CACHE` may reserve.
pub const MAX_CACHE: i64 = 1_000_000;

/// What `CREATE SEQUENCE` said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Another one after each `RESTART` and `setval`: what was reserved before counts no more.
    pub id: u64,
    /// First number.
    pub start: i64,
    /// From one number to the next; not 0.
    pub increment: i64,
    /// Least number.
    pub min: i64,
    /// Greatest number.
    pub max: i64,
    /// Numbers that a server reserves at a time.
    pub cache: i64,
    /// Of its type.
    #[serde(default = "bigint_bits", skip_serializing_if = "is_bigint")]
    pub bits: u8,
}

fn bigint_bits() -> u8 {
    64
}

fn is_bigint(bits: &u8) -> bool {
    *bits == 64
}

impl Definition {
    fn renewed(&self) -> Definition {
        Definition { id: new_id(), ..self.clone() }
    }
}

/// A number that no other definition has.
pub fn new_id() -> u64 {
    let mut bytes = [0; 8];
    // Without random numbers two definitions look alike: reserved numbers may then be handed out after a RESTART.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_be_bytes(bytes)
}

/// Numbers that were reserved and not handed out.
struct Reserved {
    id: u64,
    next: i64,
    left: i64,
}

/// What a connection was given.
#[derive(Default)]
pub struct Given {
    last: Option<Name>,
    numbers: HashMap<Name, i64>,
}

/// What is known of sequences, and since when.
#[derive(Default)]
pub struct KnownSequences(Mutex<HashMap<Name, (Instant, Definition)>>);

impl KnownSequences {
    fn get(&self, name: &Name) -> Option<Definition> {
        let known = self.0.lock();
        known.get(name).filter(|(read, _)| read.elapsed() < DEFINITION_LASTS).map(|(_, definition)| definition.clone())
    }

    fn learn(&self, name: &Name, definition: &Definition) {
        let mut known = self.0.lock();
        known.retain(|_, (read, _)| read.elapsed() < DEFINITION_LASTS);
        known.insert(name.clone(), (Instant::now(), definition.clone()));
    }

    fn forget(&self, name: &Name) {
        self.0.lock().remove(name);
    }
}

/// The sequences of a cluster.
pub struct Sequences {
    catalog: Arc<Catalog>,
    reserved: Mutex<HashMap<Name, Reserved>>,
}

impl std::fmt::Debug for Sequences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequences").finish_non_exhaustive()
    }
}

fn row_of(name: &Name) -> Vec<u8> {
    system_row(&name.schema, &name.name)
}

fn missing(name: &Name) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

fn json(definition: &Definition) -> Result<Vec<u8>, SqlError> {
    serde_json::to_vec(definition).map_err(|e| SqlError::new(SqlState::INTERNAL_ERROR, e.to_string()))
}

/// The definition of a sequence as it is now; none where there is no such sequence.
///
/// # Errors
/// The cluster does not answer; a later version wrote it.
pub async fn read(catalog: &Catalog, name: &Name) -> Result<Option<Definition>, SqlError> {
    let Some(table) = catalog.known_system_table().await? else { return Ok(None) };
    let row = table.get(&Get::new(row_of(name))).await?;
    let Some(value) = row.value(FAMILY.as_bytes(), DEFINITION) else { return Ok(None) };
    let damaged = |e| SqlError::new(SqlState::DATA_CORRUPTED, format!("the definition of sequence \"{name}\": {e}"));
    serde_json::from_slice(value).map(Some).map_err(damaged)
}

/// All sequences, by their names.
///
/// # Errors
/// The cluster does not answer.
pub async fn all(catalog: &Catalog) -> Result<Vec<(Name, Definition)>, SqlError> {
    let Some(table) = catalog.known_system_table().await? else { return Ok(Vec::new()) };
    let columns = [(Bytes::from_static(FAMILY.as_bytes()), vec![Bytes::from_static(DEFINITION)])];
    let scan = Scan { columns: columns.into_iter().collect(), ..Scan::default() };
    let mut scanner = table.scan(scan, table.scan_options());
    let mut all = Vec::new();
    while let Some(row) = scanner.next().await? {
        let name = std::str::from_utf8(row.row()).ok().and_then(|name| name.split_once('\0'));
        let definition = row.value(FAMILY.as_bytes(), DEFINITION).map(serde_json::from_slice);
        // One that a later version wrote must not take the others away.
        if let (Some((schema, name)), Some(Ok(definition))) = (name, definition) {
            all.push((Name { schema: schema.to_owned(), name: name.to_owned() }, definition));
        }
    }
    Ok(all)
}

/// Makes a sequence.
///
/// # Errors
/// The name is taken; the cluster does not answer.
pub async fn create(catalog: &Catalog, name: &Name, definition: &Definition) -> Result<(), SqlError> {
    let taken = || SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"));
    if catalog.table(&name.schema, &name.name).await?.is_some() {
        return Err(taken());
    }
    let row = row_of(name);
    let before_first = definition.start.wrapping_sub(definition.increment).to_be_bytes();
    let put = Put::new(&row).add(FAMILY, DEFINITION, json(definition)?).add(FAMILY, LAST, &before_first[..]).build();
    let check = CheckAndMutate::if_not_exists(&row, FAMILY, DEFINITION).then([put]);
    if catalog.system_table().await?.check(&check).await?.processed { Ok(()) } else { Err(taken()) }
}

/// Forgets a sequence; whether there was one.
///
/// # Errors
/// The cluster does not answer.
pub async fn remove(catalog: &Catalog, name: &Name) -> Result<bool, SqlError> {
    if read(catalog, name).await?.is_none() {
        return Ok(false);
    }
    catalog.system_table().await?.delete(&Delete::new(row_of(name)).build()).await?;
    catalog.sequences.forget(name);
    Ok(true)
}

/// Sets the number that counts as handed out last.
///
/// # Errors
/// There is no such sequence; the cluster does not answer.
pub async fn set_last(catalog: &Catalog, name: &Name, definition: &Definition, last: i64) -> Result<(), SqlError> {
    let row = row_of(name);
    let put = Put::new(&row)
        .add(FAMILY, DEFINITION, json(&definition.renewed())?)
        .add(FAMILY, LAST, &last.to_be_bytes()[..])
        .build();
    let check = CheckAndMutate::if_equals(&row, FAMILY, DEFINITION, json(definition)?).then([put]);
    if catalog.system_table().await?.check(&check).await?.processed {
        catalog.sequences.forget(name);
        return Ok(());
    }
    let message = format!("sequence \"{name}\" was changed by somebody else meanwhile: try again");
    Err(SqlError::new("40001", message))
}

impl Sequences {
    /// Those of a catalog.
    pub fn new(catalog: Arc<Catalog>) -> Arc<Sequences> {
        Arc::new(Sequences { catalog, reserved: Mutex::default() })
    }

    async fn definition(&self, name: &Name) -> Result<Definition, SqlError> {
        if let Some(definition) = self.catalog.sequences.get(name) {
            return Ok(definition);
        }
        let definition = read(&self.catalog, name).await?.ok_or_else(|| missing(name))?;
        self.catalog.sequences.learn(name, &definition);
        Ok(definition)
    }

    /// The next `count` numbers.
    async fn next(&self, name: &Name, count: i64) -> Result<Vec<i64>, SqlError> {
        let definition = self.definition(name).await?;
        let step = definition.increment;
        let numbers = |first: i64| (0..count).map(|n| first.wrapping_add(n.wrapping_mul(step))).collect();
        if let Some(reserved) = self.reserved.lock().get_mut(name)
            && reserved.id == definition.id
            && reserved.left >= count
        {
            let first = reserved.next;
            reserved.next = first.wrapping_add(count.wrapping_mul(step));
            reserved.left -= count;
            return Ok(numbers(first));
        }
        let asked = count.max(definition.cache);
        let amount = asked.checked_mul(step).ok_or_else(|| at_an_end(name, &definition))?;
        let table = self.catalog.system_table().await?;
        let last = table.increment_column_value(&row_of(name), FAMILY.as_bytes(), LAST, amount).await?;
        let first = last.wrapping_sub((asked - 1).wrapping_mul(step));
        // Where it has run over its end, or round, what is beyond is never handed out.
        let within = |number: i64| (definition.min..=definition.max).contains(&number);
        let left = (0..asked).take_while(|n| within(first.wrapping_add(n.wrapping_mul(step)))).count() as i64;
        if left < count {
            return Err(at_an_end(name, &definition));
        }
        let next = first.wrapping_add(count.wrapping_mul(step));
        if left > count {
            self.reserved.lock().insert(name.clone(), Reserved { id: definition.id, next, left: left - count });
        }
        Ok(numbers(first))
    }

    async fn set(&self, name: &Name, number: i64, is_called: bool) -> Result<i64, SqlError> {
        let definition = read(&self.catalog, name).await?.ok_or_else(|| missing(name))?;
        if !(definition.min..=definition.max).contains(&number) {
            let (min, max) = (definition.min, definition.max);
            let message = format!("setval: value {number} is out of bounds for sequence \"{name}\" ({min}..{max})");
            return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
        }
        let last = if is_called { number } else { number.wrapping_sub(definition.increment) };
        set_last(&self.catalog, name, &definition, last).await?;
        Ok(number)
    }
}

fn at_an_end(name: &Name, definition: &Definition) -> SqlError {
    let (which, number) = match definition.increment > 0 {
        true => ("maximum", definition.max),
        false => ("minimum", definition.min),
    };
    SqlError::new("2200H", format!("nextval: reached {which} value of sequence \"{name}\" ({number})"))
}

/// The functions on sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    Next,
    Current,
    Last,
    Set,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::Next => "nextval",
            Function::Current => "currval",
            Function::Last => "lastval",
            Function::Set => "setval",
        }
    }

    fn signature(self) -> Signature {
        let (text, number) = (DataType::Utf8, DataType::Int64);
        match self {
            Function::Next | Function::Current => Signature::exact(vec![text], Volatility::Volatile),
            Function::Last => Signature::nullary(Volatility::Volatile),
            Function::Set => Signature::one_of(
                vec![
                    TypeSignature::Exact(vec![text.clone(), number.clone()]),
                    TypeSignature::Exact(vec![text, number, DataType::Boolean]),
                ],
                Volatility::Volatile,
            ),
        }
    }
}

#[derive(Debug)]
struct Udf {
    function: Function,
    signature: Signature,
    sequences: Arc<Sequences>,
}

impl PartialEq for Udf {
    fn eq(&self, other: &Udf) -> bool {
        self.function == other.function
    }
}

impl Eq for Udf {}

impl std::hash::Hash for Udf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

/// Lets a context know the functions on sequences.
pub fn register(context: &SessionContext, sequences: &Arc<Sequences>) {
    for function in [Function::Next, Function::Current, Function::Last, Function::Set] {
        let udf = Udf { function, signature: function.signature(), sequences: Arc::clone(sequences) };
        context.register_udf(ScalarUDF::new_from_impl(udf));
    }
}

/// One argument of each row.
fn column<A: Array + Clone + 'static>(args: &ScalarFunctionArgs, at: usize) -> DfResult<A> {
    let array = args.args[at].to_array(args.number_rows)?;
    let array = array.as_any().downcast_ref::<A>().cloned();
    array.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "an argument of another type").into())
}

impl Udf {
    fn name_of(text: &str) -> Result<Name, SqlError> {
        ddl::name_of(text).map_err(|_| {
            let message = format!("invalid name syntax: \"{text}\"");
            SqlError::new(SqlState::INVALID_NAME, message)
        })
    }

    async fn next(&self, args: &ScalarFunctionArgs) -> DfResult<Vec<Option<i64>>> {
        let names: StringArray = column(args, 0)?;
        let mut numbers = Vec::with_capacity(names.len());
        let mut at = 0;
        while at < names.len() {
            if names.is_null(at) {
                numbers.push(None);
                at += 1;
                continue;
            }
            let text = names.value(at);
            let same = (at..names.len()).take_while(|at| !names.is_null(*at) && names.value(*at) == text).count();
            let name = Udf::name_of(text)?;
            let next = self.sequences.next(&name, same as i64).await?;
            if let (Some(last), Some(session)) = (next.last(), Session::current()) {
                let mut given = session.given.lock();
                given.numbers.insert(name.clone(), *last);
                given.last = Some(name);
            }
            numbers.extend(next.into_iter().map(Some));
            at += same;
        }
        Ok(numbers)
    }

    async fn current(&self, args: &ScalarFunctionArgs) -> DfResult<Vec<Option<i64>>> {
        let names: StringArray = column(args, 0)?;
        let mut numbers = Vec::with_capacity(names.len());
        for text in names.iter() {
            let Some(text) = text else {
                numbers.push(None);
                continue;
            };
            let name = Udf::name_of(text)?;
            self.sequences.definition(&name).await?;
            let found = Session::current().and_then(|session| session.given.lock().numbers.get(&name).copied());
            let message = || format!("currval of sequence \"{name}\" is not yet defined in this session");
            numbers.push(Some(found.ok_or_else(|| SqlError::new("55000", message()))?));
        }
        Ok(numbers)
    }

    fn last(args: &ScalarFunctionArgs) -> DfResult<Vec<Option<i64>>> {
        let found = Session::current().and_then(|session| {
            let given = session.given.lock();
            given.last.as_ref().and_then(|name| given.numbers.get(name).copied())
        });
        let found = found.ok_or_else(|| SqlError::new("55000", "lastval is not yet defined in this session"))?;
        Ok(vec![Some(found); args.number_rows])
    }

    async fn set(&self, args: &ScalarFunctionArgs) -> DfResult<Vec<Option<i64>>> {
        let (names, numbers): (StringArray, Int64Array) = (column(args, 0)?, column(args, 1)?);
        let called: Option<BooleanArray> = (args.args.len() > 2).then(|| column(args, 2)).transpose()?;
        let mut set = Vec::with_capacity(names.len());
        for at in 0..names.len() {
            let is_called = called.as_ref().is_none_or(|called| called.is_null(at) || called.value(at));
            if names.is_null(at) || numbers.is_null(at) {
                set.push(None);
                continue;
            }
            let name = Udf::name_of(names.value(at))?;
            let number = self.sequences.set(&name, numbers.value(at), is_called).await?;
            if let Some(session) = Session::current().filter(|_| is_called) {
                session.given.lock().numbers.insert(name, number);
            }
            set.push(Some(number));
        }
        Ok(set)
    }
}

impl ScalarUDFImpl for Udf {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let threads = tokio::runtime::Handle::try_current();
        let threads =
            threads.map_err(|e| DataFusionError::from(SqlError::new(SqlState::INTERNAL_ERROR, e.to_string())))?;
        // An expression cannot be waited for, and `VALUES` are computed while they are planned. Queries have threads of their own, and what else this
        // one had to do goes to another.
        let numbers = tokio::task::block_in_place(|| {
            threads.block_on(async {
                match self.function {
                    Function::Next => self.next(&args).await,
                    Function::Current => self.current(&args).await,
                    Function::Last => Udf::last(&args),
                    Function::Set => self.set(&args).await,
                }
            })
        })?;
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(numbers)) as ArrayRef))
    }
}
