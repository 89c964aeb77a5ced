//! A table of SQL as DataFusion reads it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use client::{Connection, Row, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Constraint, Constraints, DFSchema, DataFusionError, TableReference};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use filter::{CompareOp, Filter, ListOperator};
use model::{Get, Scan, TimeRange};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::decode::Decoder;
use crate::error::SqlError;
use crate::histogram::Histogram;
use crate::mapping::{Kind, Mapping, Place, Versions};
use crate::predicate::{KeyRange, Pushed, push_down};
use crate::scan::{HBaseScanExec, ScanSpec};

/// How long a table's region boundaries are believed: a stale one costs parallelism, not rows.
const BOUNDARIES_LAST: Duration = Duration::from_secs(5);
/// All versions of a cell, as HBase's clients ask for them.
const MAX_VERSIONS: u32 = i32::MAX as u32;
/// Single keys up to so many are read in one partition, whatever regions they are in.
const FEW_KEYS: usize = 16;

/// Columns asked for, as a scan has them.
pub type Columns = BTreeMap<Bytes, Vec<Bytes>>;

/// Start keys of a table's regions, and when they were asked for.
type Boundaries = (Instant, Arc<Vec<Bytes>>);

/// How long the sizes of a table's regions are believed: they only say which side of a join is the smaller one.
const SIZES_LAST: Duration = Duration::from_secs(60);
/// How long they, and histograms, are waited for.
const SIZES_WITHIN: Duration = Duration::from_secs(1);
/// How long a histogram is believed: a second for so many rows, as small tables change most and are asked for soonest.
const ROWS_LAST_A_SECOND: f64 = 1000.0;
const HISTOGRAMS_LAST_SECONDS: (f64, f64) = (5.0, 300.0);
/// Bytes that a value without a fixed width is taken for.
const VALUE_BYTES: usize = 24;
/// Rows that a part of a region is worth a scan of its own for.
const ROWS_OF_A_PART: f64 = 50_000.0;

/// Start keys of a table's regions with the bytes of their files and memstores, and when they were asked for.
type Sizes = (Instant, Arc<BTreeMap<Bytes, u64>>);

/// The histogram of a table's keys, where its servers have told, and how long it is believed.
type Histograms = (Instant, Option<Arc<Histogram>>);

/// What a scan brings, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Rows, where the servers say.
    pub rows: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
}

/// A table, view or undescribed HBase table.
pub struct HBaseTable {
    /// Its columns.
    pub mapping: Arc<Mapping>,
    /// Where its rows are.
    pub table: Table,
    /// Which versions of its rows are read.
    pub versions: Versions,
    schema: SchemaRef,
    constraints: Option<Constraints>,
    boundaries: Mutex<Option<Boundaries>>,
    sizes: Mutex<Option<Sizes>>,
    histogram: Mutex<Option<Histograms>>,
    connection: Connection,
}

impl fmt::Debug for HBaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HBaseTable").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

impl HBaseTable {
    /// A table over a connection.
    ///
    /// # Errors
    /// A name that HBase does not allow.
    pub fn new(mapping: Mapping, connection: &client::Connection) -> std::result::Result<HBaseTable, SqlError> {
        let table = connection.table(&mapping.table_name()?);
        let key = mapping.key_columns();
        let constraints = (!key.is_empty()).then(|| Constraints::new_unverified(vec![Constraint::PrimaryKey(key)]));
        Ok(HBaseTable {
            schema: mapping.arrow_schema(),
            mapping: Arc::new(mapping),
            table,
            versions: Versions::Newest,
            constraints,
            boundaries: Mutex::new(None),
            sizes: Mutex::new(None),
            histogram: Mutex::new(None),
            connection: connection.clone(),
        })
    }

    /// The same table with other versions of its rows.
    pub fn with_versions(&self, versions: Versions) -> HBaseTable {
        let mapping = match versions {
            Versions::Newest | Versions::AsOf { with_start: false, .. } => Arc::clone(&self.mapping),
            Versions::AsOf { .. } | Versions::All => Arc::new(self.mapping.with_row_start()),
        };
        HBaseTable {
            schema: mapping.arrow_schema(),
            mapping,
            table: self.table.clone(),
            versions,
            constraints: self.constraints.clone(),
            boundaries: Mutex::new(self.boundaries.lock().clone()),
            sizes: Mutex::new(self.sizes.lock().clone()),
            histogram: Mutex::new(self.histogram.lock().clone()),
            connection: self.connection.clone(),
        }
    }

    /// Its columns at these positions, in Arrow.
    pub fn schema_of(&self, projection: &[usize]) -> SchemaRef {
        let fields = projection.iter().map(|at| Arc::clone(&self.schema.fields()[*at]));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// What all rows of a view of Phoenix's have in common: predicates that must all hold.
    fn condition(&self, state: &dyn Session) -> Result<Vec<Expr>> {
        let Some(text) = self.mapping.phoenix.as_ref().and_then(|phoenix| phoenix.condition.as_ref()) else {
            return Ok(Vec::new());
        };
        let unread = |e: DataFusionError| {
            let message = format!("the condition of view \"{}\" cannot be read ({e}): {text}", self.mapping.name);
            DataFusionError::from(SqlError::unsupported(message))
        };
        let state = state.as_any().downcast_ref::<SessionState>();
        let state = state.ok_or_else(|| unread(DataFusionError::Internal("there is no parser".to_owned())))?;
        // Names may have their family in front.
        let fields = self.mapping.columns.iter().zip(self.schema.fields()).map(|(column, field)| {
            let family = match &column.place {
                Place::Key(_) | Place::WrittenAt => None,
                Place::Cell { family, .. } | Place::Packed { family, .. } => Some(family.to_ascii_lowercase()),
            };
            (family.map(TableReference::bare), Arc::clone(field))
        });
        let named = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        let condition = state.create_logical_expr(text, &named).map_err(unread)?;
        let bare = |expr: Expr| {
            Ok(match expr {
                Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
                other => Transformed::no(other),
            })
        };
        let condition = condition.transform(bare)?.data;
        let schema = Arc::new(DFSchema::try_from(Arc::clone(&self.schema))?);
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&schema))
            .with_config_options(Arc::clone(state.config_options()))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let condition = simplifier.simplify(simplifier.coerce(condition, &schema)?).map_err(unread)?;
        Ok(split_conjunction_owned(condition))
    }

    /// Times that are read.
    fn time_range(&self) -> TimeRange {
        match self.versions {
            Versions::AsOf { last_ms, .. } => TimeRange { min: 0, max: last_ms.saturating_add(1) },
            Versions::Newest | Versions::All => TimeRange::ALL,
        }
    }

    async fn region_starts(&self) -> std::result::Result<Arc<Vec<Bytes>>, SqlError> {
        if let Some((asked, starts)) = &*self.boundaries.lock()
            && asked.elapsed() < BOUNDARIES_LAST
        {
            return Ok(Arc::clone(starts));
        }
        let keys = self.table.start_end_keys().await?;
        let starts = Arc::new(keys.into_iter().map(|(start, _)| start).collect::<Vec<_>>());
        *self.boundaries.lock() = Some((Instant::now(), Arc::clone(&starts)));
        Ok(starts)
    }

    /// Bytes of each region.
    async fn sizes(&self) -> std::result::Result<Arc<BTreeMap<Bytes, u64>>, SqlError> {
        if let Some((asked, sizes)) = &*self.sizes.lock()
            && asked.elapsed() < SIZES_LAST
        {
            return Ok(Arc::clone(sizes));
        }
        let regions = self.table.regions().await?;
        let servers: BTreeSet<_> = regions.iter().map(|location| location.server.clone()).collect();
        let starts: HashMap<Bytes, Bytes> =
            regions.into_iter().map(|location| (location.region.name().clone(), location.region.start_key)).collect();
        let name = self.mapping.table_name()?;
        let mut sizes = BTreeMap::new();
        for server in servers {
            for load in self.connection.admin().region_metrics(&server, Some(&name)).await? {
                let Some(start) = starts.get(&load.region_specifier.value) else { continue };
                let mib = u64::from(load.storefile_size_mb()) + u64::from(load.mem_store_size_mb());
                sizes.insert(start.clone(), mib << 20);
            }
        }
        let sizes = Arc::new(sizes);
        *self.sizes.lock() = Some((Instant::now(), Arc::clone(&sizes)));
        Ok(sizes)
    }

    /// The same, or nothing where the servers do not say at once: sizes are a hint, for which no query waits for a server that does not
    /// answer, nor does the next one.
    async fn sizes_at_once(&self) -> Arc<BTreeMap<Bytes, u64>> {
        match tokio::time::timeout(SIZES_WITHIN, self.sizes()).await {
            Ok(Ok(sizes)) => sizes,
            Ok(Err(e)) => self.without_sizes(&e.to_string()),
            Err(_) => self.without_sizes("no answer in time"),
        }
    }

    /// Bytes of all regions together; nothing where the servers do not say at once.
    pub async fn size_bytes(&self) -> Option<u64> {
        let sizes = self.sizes_at_once().await;
        (!sizes.is_empty()).then(|| sizes.values().sum())
    }

    /// The sizes are not known for a while: an empty list.
    fn without_sizes(&self, why: &str) -> Arc<BTreeMap<Bytes, u64>> {
        tracing::debug!("the sizes of {}'s regions are not known: {why}", self.mapping.hbase_table);
        let none = Arc::new(BTreeMap::new());
        *self.sizes.lock() = Some((Instant::now(), Arc::clone(&none)));
        none
    }

    /// How the rows are spread over the keys; nothing where the servers do not say at once, as Apache HBase's never do.
    pub async fn histogram(&self) -> Option<Arc<Histogram>> {
        if let Some((until, histogram)) = &*self.histogram.lock()
            && Instant::now() < *until
        {
            return histogram.clone();
        }
        let (histogram, seconds) = match tokio::time::timeout(SIZES_WITHIN, Histogram::of(&self.table)).await {
            Ok(Ok(histogram)) => {
                let (least, most) = HISTOGRAMS_LAST_SECONDS;
                let seconds = (histogram.all().rows / ROWS_LAST_A_SECOND).clamp(least, most);
                (Some(Arc::new(histogram)), Duration::from_secs_f64(seconds))
            }
            Ok(Err(e)) => {
                tracing::debug!("there is no histogram of {}'s keys: {e}", self.mapping.hbase_table);
                (None, SIZES_LAST)
            }
            Err(_) => (None, SIZES_LAST),
        };
        *self.histogram.lock() = Some((Instant::now() + seconds, histogram.clone()));
        histogram
    }

    /// The histogram that was last asked for.
    pub fn known_histogram(&self) -> Option<Arc<Histogram>> {
        self.histogram.lock().as_ref().and_then(|(_, histogram)| histogram.clone())
    }

    /// About how many rows pass some predicates; nothing where that is not known. Asks nobody.
    pub fn rows_with(&self, predicates: &[&Expr]) -> Option<f64> {
        let filters = self.push_down(predicates).filters;
        Some(self.rows_read_with(predicates)? * filters.iter().map(selectivity).product::<f64>())
    }

    /// About how many rows the servers look at for some predicates: those of the key's ranges. Asks nobody.
    pub fn rows_read_with(&self, predicates: &[&Expr]) -> Option<f64> {
        let histogram = self.known_histogram()?;
        Some(match &self.push_down(predicates).ranges {
            Some(ranges) => histogram.within(ranges).rows,
            None => histogram.all().rows,
        })
    }

    /// What a scan brings.
    async fn estimate(&self, partitions: &[Vec<KeyRange>], filters: &[Filter], projection: &[usize]) -> Estimate {
        let ranges = || partitions.iter().flatten();
        let pass: f64 = filters.iter().map(selectivity).product();
        let has_passed = |amount: f64| (amount * pass).ceil() as u64;
        let of_rows = |rows: f64| {
            let width: usize = projection.iter().map(|at| width_bytes(&self.mapping.columns[*at].arrow_type())).sum();
            let rows = has_passed(rows);
            Estimate { rows: Some(rows), bytes: Some(rows * width as u64) }
        };
        if ranges().all(KeyRange::is_one_key) {
            return of_rows(ranges().count() as f64);
        }
        if let Some(histogram) = self.histogram().await {
            let rows = partitions.iter().map(|ranges| histogram.within(ranges).rows).sum();
            return of_rows(rows);
        }
        let sizes = self.sizes_at_once().await;
        if sizes.is_empty() {
            return Estimate::default();
        }
        let mut bytes = 0;
        let mut regions = sizes.iter().peekable();
        while let Some((start, of_region)) = regions.next() {
            let stop = regions.peek().map_or(&[][..], |(next, _)| &next[..]);
            if ranges().any(|range| range.within(start, stop).is_some()) {
                bytes += of_region;
            }
        }
        Estimate { rows: None, bytes: Some(has_passed(bytes as f64)) }
    }

    /// Row keys to be read, in at most `most` parts that end where regions do, or within regions of many rows, and the first keys of each
    /// one's regions.
    async fn partitions(
        &self,
        ranges: Option<Vec<KeyRange>>,
        most: usize,
        may_cut: bool,
    ) -> std::result::Result<(Vec<Vec<KeyRange>>, Vec<Arc<[Bytes]>>), SqlError> {
        if let Some(keys) = &ranges
            && keys.len() <= FEW_KEYS
            && keys.iter().all(KeyRange::is_one_key)
        {
            return Ok((vec![keys.clone()], Vec::new()));
        }
        let ranges = ranges.unwrap_or_else(|| vec![KeyRange { start: Vec::new(), stop: Vec::new() }]);
        let starts = self.region_starts().await?;
        let (touched, regions): (Vec<Vec<KeyRange>>, Vec<Bytes>) = (0..starts.len())
            .map(|at| {
                let stop = starts.get(at + 1).map_or(&[][..], |next| &next[..]);
                let inside: Vec<KeyRange> = ranges.iter().filter_map(|range| range.within(&starts[at], stop)).collect();
                (inside, starts[at].clone())
            })
            .filter(|(inside, _)| !inside.is_empty())
            .unzip();
        let pieces = most / touched.len().max(1);
        if may_cut
            && pieces > 1
            && !touched.is_empty()
            && let Some(histogram) = self.histogram().await
        {
            return Ok(cut(&histogram, &touched, &regions, pieces));
        }
        let each = touched.len().div_ceil(most.max(1)).max(1);
        let mut partitions: Vec<Vec<KeyRange>> = touched.chunks(each).map(|some| joined(some.concat())).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        Ok((partitions, regions.chunks(each).map(Arc::from).collect()))
    }

    /// The rows of some keys: each as it is in HBase, and those that are there in all columns.
    ///
    /// # Errors
    /// The cluster does not answer, or has bytes that are no values of their types.
    pub async fn rows_of(&self, keys: impl Iterator<Item = Bytes>) -> Result<(Vec<Row>, RecordBatch)> {
        let projection: Vec<usize> = (0..self.mapping.columns.len()).collect();
        let (columns, filters) = self.cells_to_read(&projection, &Pushed::default());
        let filter = (!filters.is_empty()).then(|| Arc::new(Filter::all_of(filters)));
        let get = |key| Get { columns: columns.clone(), filter: filter.clone(), ..Get::new(key) };
        let gets: Vec<Get> = keys.map(get).collect();
        let rows = self.table.get_all(&gets).await.map_err(SqlError::from)?;
        let mut decoder = Decoder::for_rows(&self.mapping, &projection, Arc::clone(&self.schema), rows.len());
        for row in rows.iter().filter(|row| row.exists()) {
            decoder.push(row)?;
        }
        let batch = decoder.finish()?;
        Ok((rows, batch))
    }

    /// What the servers do of predicates that must all hold.
    fn push_down(&self, predicates: &[&Expr]) -> Pushed {
        if self.versions != Versions::All {
            return push_down(&self.mapping, predicates);
        }
        // A filter looks at the newest version alone: only ranges of keys are the same for all.
        let is_of_key = |expr: &Expr| {
            let of_key = |column: &Column| {
                let found = self.mapping.column(&column.name);
                found.is_some_and(|(_, column)| matches!(column.place, Place::Key(_)))
            };
            expr.column_refs().into_iter().all(of_key)
        };
        let (places, of_key): (Vec<usize>, Vec<&Expr>) =
            predicates.iter().copied().enumerate().filter(|(_, expr)| is_of_key(expr)).unzip();
        let mut pushed = push_down(&self.mapping, &of_key);
        let (mut exact, mut narrows) = (vec![false; predicates.len()], vec![false; predicates.len()]);
        for (of_key, at) in places.into_iter().enumerate() {
            (exact[at], narrows[at]) = (pushed.exact[of_key], pushed.narrows[of_key]);
        }
        (pushed.exact, pushed.narrows) = (exact, narrows);
        pushed
    }

    /// The columns that a scan reads, and the filters that it needs besides.
    pub fn cells_to_read(&self, projection: &[usize], pushed: &Pushed) -> (Columns, Vec<Filter>) {
        let mapping = &self.mapping;
        // When a row was written, and how many versions it has, depends on all of its cells.
        let is_written_at = |at: &usize| mapping.columns[*at].place == Place::WrittenAt;
        if self.versions == Versions::All || projection.iter().any(is_written_at) {
            return (Columns::new(), Vec::new());
        }
        let of_output = projection.iter().filter_map(|at| mapping.columns[*at].stored_in());
        let mut cells: Vec<(Bytes, Bytes)> = of_output
            .map(|(family, qualifier)| (Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier)))
            .chain(pushed.cells.iter().cloned())
            .collect();
        match mapping.empty_cell() {
            Some(empty) if !pushed.needs_a_cell => cells.push(empty),
            Some(_) => {}
            // A row is there if it has any cell at all.
            None if pushed.needs_a_cell => {}
            None if cells.is_empty() => {
                return (Columns::new(), vec![Filter::FirstKeyOnly, Filter::KeyOnly { len_as_val: false }]);
            }
            None => cells.clear(),
        }
        let mut columns: Columns = BTreeMap::new();
        for (family, qualifier) in cells {
            columns.entry(family).or_default().push(qualifier);
        }
        columns.values_mut().for_each(|qualifiers| {
            qualifiers.sort_unstable();
            qualifiers.dedup();
        });
        (columns, Vec::new())
    }

    /// Rows come in the order of the key's columns, as far as these are in the output.
    fn equivalence(&self, projection: &[usize], schema: &SchemaRef) -> EquivalenceProperties {
        let mut order = Vec::new();
        if self.mapping.salt_buckets == 0 {
            for at in self.mapping.key_columns() {
                let Some(output) = projection.iter().position(|projected| *projected == at) else { break };
                let column = &self.mapping.columns[at];
                // The bytes of arrays do not sort as arrays do.
                if column.is_array {
                    break;
                }
                let options = SortOptions { descending: column.descending, nulls_first: true };
                order.push(PhysicalSortExpr { expr: Arc::new(ColumnExpr::new(&column.name, output)), options });
            }
        }
        if order.is_empty() {
            return EquivalenceProperties::new(Arc::clone(schema));
        }
        EquivalenceProperties::new_with_orderings(Arc::clone(schema), [order])
    }
}

/// Parts of regions: of each one so many pieces at most, as many as its rows are worth. A region counts as read with its last piece.
fn cut(
    histogram: &Histogram,
    touched: &[Vec<KeyRange>],
    regions: &[Bytes],
    pieces: usize,
) -> (Vec<Vec<KeyRange>>, Vec<Arc<[Bytes]>>) {
    let (mut partitions, mut of_regions): (Vec<Vec<KeyRange>>, Vec<Arc<[Bytes]>>) = (Vec::new(), Vec::new());
    for (ranges, region) in touched.iter().zip(regions) {
        let worth = (histogram.within(ranges).rows / ROWS_OF_A_PART) as usize;
        let cuts = histogram.cuts(ranges, pieces.min(worth).max(1));
        let mut start: &[u8] = &[];
        for stop in cuts.iter().map(|cut| &cut[..]).chain([&[][..]]) {
            let inside: Vec<KeyRange> = ranges.iter().filter_map(|range| range.within(start, stop)).collect();
            if !inside.is_empty() {
                partitions.push(joined(inside));
                of_regions.push(Arc::from([]));
            }
            start = stop;
        }
        if let Some(last) = of_regions.last_mut() {
            *last = Arc::from([region.clone()]);
        }
    }
    (partitions, of_regions)
}

/// What of the rows a filter is taken to let pass, where nothing is known of the values: as PostgreSQL's planner guesses, or somewhat more.
fn selectivity(filter: &Filter) -> f64 {
    match filter {
        Filter::SingleColumnValue(test) => match test.op {
            CompareOp::Equal => 0.05,
            CompareOp::NotEqual => 0.95,
            _ => 1.0 / 3.0,
        },
        Filter::List { operator: ListOperator::MustPassAll, filters } => filters.iter().map(selectivity).product(),
        Filter::List { filters, .. } => 1.0 - filters.iter().map(|filter| 1.0 - selectivity(filter)).product::<f64>(),
        _ => 1.0,
    }
}

/// Bytes of a value.
fn width_bytes(of: &DataType) -> usize {
    match of {
        DataType::Boolean => 1,
        other => other.primitive_width().unwrap_or(VALUE_BYTES),
    }
}

/// Neighbours that touch become one range.
fn joined(ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    let mut joined: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.stop == range.start && !last.stop.is_empty() => last.stop = range.stop,
            _ => joined.push(range),
        }
    }
    joined
}

#[async_trait]
impl TableProvider for HBaseTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    fn table_type(&self) -> TableType {
        if self.mapping.kind == Kind::View { TableType::View } else { TableType::Base }
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let of = |does| match does {
            (true, _) => TableProviderFilterPushDown::Exact,
            (false, true) => TableProviderFilterPushDown::Inexact,
            (false, false) => TableProviderFilterPushDown::Unsupported,
        };
        let pushed = self.push_down(filters);
        Ok(pushed.exact.into_iter().zip(pushed.narrows).map(of).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let condition = self.condition(state)?;
        let predicates: Vec<&Expr> = filters.iter().chain(&condition).collect();
        let pushed = self.push_down(&predicates);
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.mapping.columns.len()).collect());
        // What the servers do not do of a view's condition is done here, on columns that the query may not ask for.
        let left: Vec<Expr> = condition
            .into_iter()
            .zip(&pushed.exact[filters.len()..])
            .filter(|(_, exact)| !**exact)
            .map(|(e, _)| e)
            .collect();
        let mut projection = wanted.clone();
        for column in left.iter().flat_map(Expr::column_refs) {
            let at = self.schema.index_of(&column.name)?;
            if !projection.contains(&at) {
                projection.push(at);
            }
        }
        // Of all versions there are more than rows.
        let limit = limit.filter(|_| left.is_empty() && self.versions != Versions::All);
        let max_versions = if self.versions == Versions::All { MAX_VERSIONS } else { 1 };
        let schema = Arc::new(self.schema.project(&projection)?);
        let (columns, more) = self.cells_to_read(&projection, &pushed);
        let filters: Vec<Filter> = pushed.filters.into_iter().chain(more).collect();
        let most = state.config().target_partitions();
        let (partitions, regions) = self.partitions(pushed.ranges, most, limit.is_none()).await?;
        let equivalence = self.equivalence(&projection, &schema);
        let estimate = self.estimate(&partitions, &filters, &projection).await;
        let spec = ScanSpec {
            table: self.table.clone(),
            mapping: Arc::clone(&self.mapping),
            projection,
            schema,
            scan: Scan { columns, time_range: self.time_range(), max_versions, ..Scan::default() },
            versions: self.versions,
            estimate,
            filters,
            partitions,
            regions,
            limit,
            dynamic: Vec::new(),
        };
        let schema = Arc::clone(&spec.schema);
        let scan = Arc::new(HBaseScanExec::new(spec, equivalence));
        let Some(left) = conjunction(left) else { return Ok(scan) };
        let left = state.create_physical_expr(left, &DFSchema::try_from(schema)?)?;
        let filter = FilterExecBuilder::new(left, scan).apply_projection(Some((0..wanted.len()).collect()))?;
        Ok(Arc::new(filter.build()?))
    }
}
