//! Aggregates inside the region servers: a partial aggregate over a scan becomes one call to each region, which sends its groups instead of
//! its rows. Where a server has no such endpoint (Apache HBase), or too many groups, the rows are read as without it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{
    ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream, apply_expression_roots,
};
use futures::{StreamExt, TryStreamExt};
use proto::Message;
use proto::grouped::{
    Aggregate, Function, Group, METHOD, METHOD_OF_EXPRESSIONS, Number, Request, Response, SERVICE, State, exact_number,
};
use types::SqlType;

use crate::arrow_values::{Builder, at_row};
use crate::below::{Below, computed, key_columns, table_column};
use crate::distinct;
use crate::error::{SqlError, SqlState};
use crate::expression::{exact_array, is_exact, source};
use crate::key_ends::rows_of_extremes;
use crate::mapping::{Mapping, Place};
use crate::progress::{Part, Progress};
use crate::scan::{ScanSpec, describe};

/// The rule that plans it.
#[derive(Debug)]
pub struct PushAggregates;

impl PhysicalOptimizerRule for PushAggregates {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(aggregate) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
            match pushed(aggregate)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "push_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What takes the aggregate's place; nothing where the servers cannot compute it.
fn pushed(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(below) = Below::of(aggregate.input())? else { return Ok(None) };
    let below = below.without_filters_of(aggregate);
    let is_plain = aggregate.filter_expr().iter().all(Option::is_none)
        && !aggregate.group_expr().has_grouping_set()
        && aggregate.limit_options().is_none()
        && below.spec.limit.is_none();
    let is_first = matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::Single);
    if !is_plain || !is_first {
        return Ok(None);
    }
    let (group_by, functions) = (aggregate.group_expr().clone(), aggregate.aggr_expr().to_vec());
    let filters = aggregate.filter_expr().to_vec();
    if let Some(rows) = rows_of_extremes(aggregate, &below, has_extremes)? {
        return Ok(Some(Arc::new(of_mode(*aggregate.mode(), group_by, &functions, &filters, rows, aggregate)?)));
    }
    let Some(wanted) = Wanted::of(aggregate, &below)? else { return Ok(None) };
    let partial = of_mode(AggregateMode::Partial, group_by.clone(), &functions, &filters, below.plan, aggregate)?;
    let schema = partial.schema();
    let mut types = schema.fields().iter().skip(wanted.request.groups.len()).map(|field| field.data_type().clone());
    if !wanted.outputs.iter().all(|output| output.is_of(&mut types)) {
        return Ok(None);
    }
    let pushed: Arc<dyn ExecutionPlan> = Arc::new(HBaseAggregateExec::new(below.spec, wanted, Arc::new(partial)));
    if *aggregate.mode() == AggregateMode::Partial {
        return Ok(Some(in_order_of(aggregate, pushed)));
    }
    if pushed.output_partitioning().partition_count() != 1 {
        return Ok(None);
    }
    let whole = of_mode(AggregateMode::Final, group_by.as_final(), &functions, &filters, pushed, aggregate)?;
    Ok(Some(in_order_of(aggregate, Arc::new(whole))))
}

/// `instead`, sorted if what it stands for is: who is above may count on that, as it comes of rows in the order of keys. Servers send groups in no order.
fn in_order_of(aggregate: &AggregateExec, instead: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match (aggregate as &dyn ExecutionPlan).output_ordering() {
        Some(order) => Arc::new(SortExec::new(order.clone(), instead).with_preserve_partitioning(true)),
        None => instead,
    }
}

fn of_mode(
    mode: AggregateMode,
    group_by: PhysicalGroupBy,
    functions: &[Arc<AggregateFunctionExpr>],
    filters: &[Option<Arc<dyn PhysicalExpr>>],
    input: Arc<dyn ExecutionPlan>,
    like: &AggregateExec,
) -> Result<AggregateExec> {
    AggregateExec::try_new(mode, group_by, functions.to_vec(), filters.to_vec(), input, like.input_schema())
}

/// A column of the output, or two.
#[derive(Debug, Clone)]
enum Output {
    /// The bytes that make a group, of this column of the table.
    Group(usize),
    /// The number that makes a group.
    ComputedGroup,
    /// `count`.
    Count,
    /// `sum` of exact numbers.
    ExactSum,
    /// `sum` of floating-point numbers.
    FloatSum,
    /// `avg` of integers: the count, then the sum as a floating-point number.
    IntegerAverage,
    /// `avg` of decimals: the count, then the sum.
    ExactAverage,
    /// `avg` of floating-point numbers likewise.
    FloatAverage,
    /// `min`, `max` of this column of the table.
    Extreme(usize),
    /// `min`, `max` of exact numbers.
    ComputedExtreme,
    /// `approx_distinct`.
    Sketch,
}

impl Output {
    /// Whether the next of a partial aggregate's columns are of types that this makes.
    fn is_of(&self, types: &mut impl Iterator<Item = DataType>) -> bool {
        let mut next = || types.next().unwrap_or(DataType::Null);
        match self {
            // Those of groups are not among them.
            Output::Group(_) | Output::ComputedGroup => true,
            Output::Count => next() == DataType::Int64,
            Output::ExactSum | Output::ComputedExtreme => is_exact(&next()),
            Output::FloatSum => next() == DataType::Float64,
            Output::IntegerAverage | Output::FloatAverage => next() == DataType::UInt64 && next() == DataType::Float64,
            Output::ExactAverage => next() == DataType::UInt64 && is_exact(&next()),
            Output::Extreme(_) => next() != DataType::Null,
            Output::Sketch => next() == DataType::Binary,
        }
    }
}

/// What the servers are asked, and how their answers become columns.
#[derive(Debug, Clone)]
struct Wanted {
    request: Request,
    /// Those of the groups, then one for each aggregate.
    outputs: Vec<Output>,
    /// For EXPLAIN.
    words: String,
}

impl Wanted {
    fn of(aggregate: &AggregateExec, below: &Below) -> Result<Option<Wanted>> {
        let (spec, mapping) = (&below.spec, &*below.spec.mapping);
        let mut request = Request {
            key_prefix_bytes: mapping.key_layout().prefix_len() as u32,
            key_columns: key_columns(mapping),
            ..Request::default()
        };
        let mut outputs = Vec::new();
        let mut groups = Vec::new();
        for (expr, name) in aggregate.group_expr().expr() {
            let expr = below.resolved(expr)?;
            if let Some(at) = table_column(&expr, spec) {
                let column = &mapping.columns[at];
                let Some(source) = source(column).filter(|_| !column.is_array) else { return Ok(None) };
                groups.push(column.name.clone());
                request.groups.push(source);
                outputs.push(Output::Group(at));
                continue;
            }
            let Some((source, _)) = computed(&expr, spec, &mut request.expressions).filter(|(_, of)| is_exact(of))
            else {
                return Ok(None);
            };
            groups.push(name.clone());
            request.groups.push(source);
            outputs.push(Output::ComputedGroup);
        }
        let mut functions = Vec::new();
        for function in aggregate.aggr_expr() {
            let arguments = function.expressions();
            let [argument] = &arguments[..] else { return Ok(None) };
            let argument = below.resolved(argument)?;
            let pushed = aggregate_of(function, &argument, spec)
                .or_else(|| aggregate_of_computed(function, &argument, spec, &mut request));
            let Some((aggregate, output)) = pushed else { return Ok(None) };
            request.aggregates.push(aggregate);
            outputs.push(output);
            functions.push(function.name().to_owned());
        }
        let words = format!("groups=[{}], aggregates=[{}]", groups.join(", "), functions.join(", "));
        Ok(Some(Wanted { request, outputs, words }))
    }

    fn method(&self) -> &'static str {
        if self.request.expressions.is_empty() { METHOD } else { METHOD_OF_EXPRESSIONS }
    }
}

/// An aggregate of a column as it is stored.
fn aggregate_of(
    function: &AggregateFunctionExpr,
    argument: &Arc<dyn PhysicalExpr>,
    spec: &ScanSpec,
) -> Option<(Aggregate, Output)> {
    if function.is_distinct() || !function.order_bys().is_empty() {
        return None;
    }
    let name = function.fun().name();
    if let Some(literal) = argument.downcast_ref::<Literal>() {
        let counts_rows = name == "count" && !literal.value().is_null();
        let aggregate = Aggregate { function: Function::CountRows as i32, ..Aggregate::default() };
        return counts_rows.then_some((aggregate, Output::Count));
    }
    // Numbers are widened before they are added.
    let is_sum = matches!(name, "sum" | "avg");
    let inner = argument.downcast_ref::<CastExpr>().filter(|_| is_sum).map_or(argument, |cast| cast.expr());
    let at = table_column(inner, spec)?;
    let column = &spec.mapping.columns[at];
    let source = source(column)?;
    let of = |function: Function, number: Number| Aggregate {
        function: function as i32,
        source: Some(source.clone()),
        number: number as i32,
        ..Aggregate::default()
    };
    if name == "count" {
        return Some((of(Function::Count, Number::Integer), Output::Count));
    }
    if name == distinct::NAME {
        let is_inverted = matches!(column.place, Place::Key(_)) && column.descending;
        let is_padded = matches!(column.sql_type, SqlType::Char(_));
        // Other types' bytes are sketched as the numbers that they stand for.
        let is_bytes = match column.sql_type {
            SqlType::Char(_) | SqlType::Varchar | SqlType::Binary(_) | SqlType::Varbinary => true,
            SqlType::Boolean => !is_inverted,
            _ => false,
        };
        let aggregate = Aggregate { is_inverted, is_padded, ..of(Function::Distinct, Number::Integer) };
        return (is_bytes && !column.is_array).then_some((aggregate, Output::Sketch));
    }
    // Bytes that are turned round are not numbers, and the longer of two texts is in front where they begin alike, which no comparison of them says.
    if column.is_array || (matches!(column.place, Place::Key(_)) && column.descending) {
        return None;
    }
    let number = number(column.sql_type);
    let result = function.field().data_type().clone();
    match (name, number, result) {
        ("sum", Some((number, true)), DataType::Int64) => Some((of(Function::Sum, number), Output::ExactSum)),
        ("sum", Some((number, false)), DataType::Float64) => Some((of(Function::Sum, number), Output::FloatSum)),
        ("avg", Some((number, true)), DataType::Float64) => Some((of(Function::Sum, number), Output::IntegerAverage)),
        ("avg", Some((number, false)), DataType::Float64) => Some((of(Function::Sum, number), Output::FloatAverage)),
        ("min", _, _) if has_extremes(column.sql_type) => {
            Some((of(Function::Min, Number::Integer), Output::Extreme(at)))
        }
        ("max", _, _) if has_extremes(column.sql_type) => {
            Some((of(Function::Max, Number::Integer), Output::Extreme(at)))
        }
        _ => None,
    }
}

/// An aggregate of what an expression comes to.
fn aggregate_of_computed(
    function: &AggregateFunctionExpr,
    argument: &Arc<dyn PhysicalExpr>,
    spec: &ScanSpec,
    request: &mut Request,
) -> Option<(Aggregate, Output)> {
    if function.is_distinct() || !function.order_bys().is_empty() {
        return None;
    }
    let (source, argument) = computed(argument, spec, &mut request.expressions)?;
    let result = function.field().data_type().clone();
    let scale = |of: &DataType| match of {
        DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    };
    let (function, output) = match (function.fun().name(), &argument, &result) {
        ("count", _, _) => (Function::Count, Output::Count),
        (distinct::NAME, _, _) => (Function::Distinct, Output::Sketch),
        ("sum", DataType::Float64, DataType::Float64) => (Function::Sum, Output::FloatSum),
        ("sum", DataType::Int64, DataType::Int64) => (Function::Sum, Output::ExactSum),
        ("sum", DataType::Decimal128(..), _) if scale(&argument) == scale(&result) => (Function::Sum, Output::ExactSum),
        ("avg", DataType::Float64, DataType::Float64) => (Function::Sum, Output::FloatAverage),
        ("avg", DataType::Decimal128(..), DataType::Decimal128(..)) => (Function::Sum, Output::ExactAverage),
        ("min", _, _) if is_exact(&argument) && argument == result => (Function::Min, Output::ComputedExtreme),
        ("max", _, _) if is_exact(&argument) && argument == result => (Function::Max, Output::ComputedExtreme),
        _ => return None,
    };
    Some((Aggregate { function: function as i32, source: Some(source), ..Aggregate::default() }, output))
}

/// Form of a type's bytes, and whether they are integers.
fn number(of: SqlType) -> Option<(Number, bool)> {
    Some(match of {
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Integer | SqlType::BigInt => (Number::SortableInteger, true),
        SqlType::UnsignedTinyInt | SqlType::UnsignedSmallInt | SqlType::UnsignedInt | SqlType::UnsignedLong => {
            (Number::Integer, true)
        }
        SqlType::Float | SqlType::Double => (Number::SortableFloat, false),
        SqlType::UnsignedFloat | SqlType::UnsignedDouble => (Number::Float, false),
        _ => return None,
    })
}

/// Whether the least of a type's bytes is its least value. Floating-point numbers have NaN.
fn has_extremes(of: SqlType) -> bool {
    number(of).is_some_and(|(_, integers)| integers)
        || matches!(
            of,
            SqlType::Varchar | SqlType::Decimal | SqlType::Date | SqlType::Timestamp | SqlType::UnsignedDate
        )
}

/// The node: partial aggregates from region servers.
pub struct HBaseAggregateExec {
    spec: ScanSpec,
    wanted: Wanted,
    /// The same, computed here from the rows.
    instead: Arc<AggregateExec>,
    properties: Arc<PlanProperties>,
    progress: Arc<Progress>,
}

impl HBaseAggregateExec {
    fn new(spec: ScanSpec, wanted: Wanted, instead: Arc<AggregateExec>) -> HBaseAggregateExec {
        let partitioning = Partitioning::UnknownPartitioning(spec.partitions.len());
        let equivalence = EquivalenceProperties::new(instead.schema());
        let properties = PlanProperties::new(equivalence, partitioning, EmissionType::Final, Boundedness::Bounded);
        let progress = Progress::new(&spec, true);
        HBaseAggregateExec { spec, wanted, instead, properties: Arc::new(properties), progress }
    }

    /// How far it is.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl fmt::Debug for HBaseAggregateExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HBaseAggregateExec").field("wanted", &self.wanted.words).finish_non_exhaustive()
    }
}

impl DisplayAs for HBaseAggregateExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HBaseAggregate: {}, ", self.wanted.words)?;
        describe(&self.spec, f)
    }
}

impl ExecutionPlan for HBaseAggregateExec {
    fn name(&self) -> &str {
        "HBaseAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.spec.dynamic, f)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (spec, wanted, instead) = (self.spec.clone(), self.wanted.clone(), Arc::clone(&self.instead));
        let schema = self.schema();
        let of_batch = Arc::clone(&schema);
        let part = Part::new(&self.progress, &self.spec, partition);
        let batches = async move {
            match ask(&spec, &wanted, partition, part).await {
                Ok(groups) => {
                    let batch = batch_of(&spec.mapping, &wanted, &groups, of_batch)?;
                    Ok::<_, DataFusionError>(futures::stream::iter([Ok(batch)]).boxed())
                }
                Err(e) => {
                    tracing::debug!("rows are read, for {} did not answer with groups: {e}", spec.mapping.hbase_table);
                    Ok(instead.execute(partition, context)?.boxed())
                }
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(batches).try_flatten())))
    }
}

/// The groups of a partition's regions, one after the other. A region that was split since answers for itself alone: the next call goes to
/// where it says that it ends.
async fn ask(
    spec: &ScanSpec,
    wanted: &Wanted,
    partition: usize,
    mut part: Part,
) -> std::result::Result<Vec<Group>, client::Error> {
    let mut groups = Vec::new();
    let Some(mut scan) = spec.scan_of(partition) else {
        part.end(0);
        return Ok(groups);
    };
    loop {
        let request = Request { scan: Some(convert::to_proto::scan(&scan)), ..wanted.request.clone() };
        let bytes = Bytes::from(request.encode_to_vec());
        let answer = spec.table.coprocessor_raw(&scan.start_row, SERVICE, wanted.method(), bytes).await?;
        let answer = Response::decode(answer).map_err(|e| client::Error::Malformed(e.to_string()))?;
        groups.extend(answer.groups);
        let end = answer.region_end_key;
        if end.is_empty() || (!scan.stop_row.is_empty() && end >= scan.stop_row) {
            part.end(0);
            return Ok(groups);
        }
        part.next_region();
        scan.start_row = end;
    }
}

fn batch_of(mapping: &Mapping, wanted: &Wanted, groups: &[Group], schema: SchemaRef) -> Result<RecordBatch> {
    let malformed = || SqlError::new(SqlState::INTERNAL_ERROR, "a region server sent groups of another form");
    let keys = wanted.request.groups.len();
    let is_whole = |group: &Group| group.keys.len() == keys && group.states.len() + keys == wanted.outputs.len();
    if !groups.iter().all(is_whole) {
        return Err(malformed().into());
    }
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (index, output) in wanted.outputs.iter().enumerate() {
        let states = || groups.iter().map(|group| &group.states[index - keys]);
        let sums = |of: &DataType| {
            let sums = states().map(|s| if s.count == 0 { Ok(None) } else { exact_sum(s).map(Some) });
            exact_array(of, sums.collect::<std::result::Result<Vec<_>, SqlError>>()?.into_iter())
        };
        // As DataFusion's own partial average: of nothing it is NULL, not 0 of 0.
        let counts = || Arc::new(states().map(|s| (s.count > 0).then_some(s.count)).collect::<UInt64Array>());
        let of = schema.fields().get(arrays.len()).ok_or_else(malformed)?.data_type();
        match output {
            Output::Group(at) => arrays.push(column_of(mapping, *at, groups.iter().map(|group| &group.keys[index]))?),
            Output::Count => {
                arrays.push(Arc::new(states().map(|s| Some(s.count as i64)).collect::<Int64Array>()));
            }
            Output::ComputedGroup => {
                let keys = groups.iter().map(|group| computed_number(&group.keys[index]));
                let keys = keys.collect::<Option<Vec<_>>>().ok_or_else(malformed)?;
                arrays.push(exact_array(of, keys.into_iter())?);
            }
            Output::ExactSum => arrays.push(sums(of)?),
            Output::FloatSum => {
                let sums = states().map(|s| (s.count > 0).then_some(s.float_sum));
                arrays.push(Arc::new(sums.collect::<Float64Array>()));
            }
            Output::IntegerAverage => {
                arrays.push(counts());
                let sum = |s: &State| exact_sum(s).map(|sum| sum as f64);
                let sums = states().map(|s| if s.count == 0 { Ok(None) } else { sum(s).map(Some) });
                arrays.push(Arc::new(sums.collect::<std::result::Result<Float64Array, SqlError>>()?));
            }
            Output::ExactAverage => {
                arrays.push(counts());
                let of = schema.fields().get(arrays.len()).ok_or_else(malformed)?.data_type();
                arrays.push(sums(of)?);
            }
            Output::FloatAverage => {
                arrays.push(counts());
                let sums = states().map(|s| (s.count > 0).then_some(s.float_sum));
                arrays.push(Arc::new(sums.collect::<Float64Array>()));
            }
            Output::ComputedExtreme => {
                let extremes = states().map(|state| computed_number(&state.extreme));
                let extremes = extremes.collect::<Option<Vec<_>>>().ok_or_else(malformed)?;
                arrays.push(exact_array(of, extremes.into_iter())?);
            }
            Output::Sketch => {
                let sketches = states().map(|state| Some(&state.sketch[..]));
                arrays.push(Arc::new(sketches.collect::<BinaryArray>()));
            }
            Output::Extreme(at) => {
                arrays.push(column_of(mapping, *at, states().map(|state| &state.extreme))?);
            }
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
    Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
}

/// Stored values of a column.
fn column_of<'a>(mapping: &Mapping, at: usize, stored: impl Iterator<Item = &'a Bytes>) -> Result<ArrayRef> {
    let column = &mapping.columns[at];
    let layout = mapping.key_layout();
    let mut builder = Builder::new(column);
    let mut scratch = Vec::new();
    for bytes in stored {
        let value = match column.place {
            Place::Key(position) => layout.value(position, bytes, 0..bytes.len(), &mut scratch),
            Place::Cell { .. } | Place::Packed { .. } | Place::WrittenAt => column.sql_type.decode(bytes),
        };
        builder.push(column, value.map_err(|e| at_row(e, column, bytes))?)?;
    }
    Ok(builder.finish())
}

/// A number that a server computed, which may be none; nothing where its bytes are not those of one.
fn computed_number(bytes: &[u8]) -> Option<Option<i128>> {
    if bytes.is_empty() { Some(None) } else { exact_number(bytes).map(Some) }
}

fn exact_sum(state: &State) -> std::result::Result<i128, SqlError> {
    if state.sum.is_empty() {
        return Ok(0);
    }
    let out_of_range = || SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "a sum of other than 16 bytes");
    let bytes: [u8; 16] = state.sum[..].try_into().map_err(|_| out_of_range())?;
    Ok(i128::from_be_bytes(bytes))
}
