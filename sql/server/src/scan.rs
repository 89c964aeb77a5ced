//! A scan as a node of a physical plan: one partition for some neighbouring regions, each read in the order of its keys.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use client::{Rows, ScanOptions, Scanner, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream, Statistics, apply_expression_roots,
};
use filter::{Filter, RowRange};
use model::Scan;

use crate::decode::Decoder;
use crate::dynamic;
use crate::error::SqlError;
use crate::mapping::{Mapping, Versions};
use crate::predicate::{KeyRange, Pushed};
use crate::progress::{Part, Progress};
use crate::table::Estimate;

/// What is read, from where, and what the servers do on the way.
#[derive(Clone)]
pub struct ScanSpec {
    /// The HBase table.
    pub table: Table,
    /// Its columns.
    pub mapping: Arc<Mapping>,
    /// Those that come out.
    pub projection: Vec<usize>,
    /// Their schema.
    pub schema: SchemaRef,
    /// Columns to be read and filters on them; no rows yet.
    pub scan: Scan,
    /// Filters that all must pass.
    pub filters: Vec<Filter>,
    /// Which versions of the rows come out.
    pub versions: Versions,
    /// How much comes, about.
    pub estimate: Estimate,
    /// The row keys of each partition.
    pub partitions: Vec<Vec<KeyRange>>,
    /// First keys of the regions of each partition; none where it is not known, as of a few keys.
    pub regions: Vec<Arc<[Bytes]>>,
    /// Rows of each partition at most.
    pub limit: Option<usize>,
    /// Filters on what comes out that change while the query runs. Rows that they would not let pass may come, too.
    pub dynamic: Vec<Arc<dyn PhysicalExpr>>,
}

impl ScanSpec {
    /// The scan of one partition: several ranges become one scan that jumps from one to the next. Nothing where no row is in it.
    pub fn scan_of(&self, partition: usize) -> Option<Scan> {
        let pushed = dynamic::pushed_now(self)?;
        self.scan_after(partition, &pushed, None)
    }

    /// The same of rows after `after`, as far as `pushed` lets them pass, too.
    fn scan_after(&self, partition: usize, pushed: &Pushed, after: Option<&[u8]>) -> Option<Scan> {
        let mut ranges = match &pushed.ranges {
            Some(ranges) => common(&self.partitions[partition], ranges),
            None => self.partitions[partition].clone(),
        };
        if let Some(after) = after {
            let next = [after, &[0]].concat();
            ranges = ranges.iter().filter_map(|range| range.within(&next, &[])).collect();
        }
        let mut scan = self.scan.clone();
        let mut filters = Vec::new();
        let (first, last) = (ranges.first()?, ranges.last()?);
        if scan.reversed {
            // From the last key down: what ends a range is not in it, what begins one is.
            scan.start_row = Bytes::copy_from_slice(&last.stop);
            scan.include_start_row = false;
            scan.stop_row = Bytes::copy_from_slice(&first.start);
            scan.include_stop_row = true;
        } else {
            scan.start_row = Bytes::copy_from_slice(&first.start);
            scan.stop_row = Bytes::copy_from_slice(&last.stop);
        }
        if ranges.len() > 1 {
            filters.push(Filter::MultiRowRange { ranges: ranges.iter().map(row_range).collect() });
        }
        filters.extend(self.filters.iter().cloned());
        // A scan of each row's first cell does not see those that are compared.
        if !self.filters.contains(&Filter::FirstKeyOnly) {
            filters.extend(pushed.filters.iter().cloned());
            // No columns are all of them.
            for (family, qualifier) in pushed.cells.iter().filter(|_| !self.scan.columns.is_empty()) {
                let qualifiers = scan.columns.entry(family.clone()).or_default();
                if let Err(at) = qualifiers.binary_search(qualifier) {
                    qualifiers.insert(at, qualifier.clone());
                }
            }
        }
        scan.filter = match filters.len() {
            0 => None,
            1 => filters.pop().map(Arc::new),
            _ => Some(Arc::new(Filter::all_of(filters))),
        };
        Some(scan)
    }
}

/// What is in one of `some` and one of `others`; both are sorted, and so is the result.
fn common(some: &[KeyRange], others: &[KeyRange]) -> Vec<KeyRange> {
    let mut common = Vec::new();
    let mut others = others.iter().peekable();
    for range in some {
        while others.next_if(|other| !other.stop.is_empty() && other.stop <= range.start).is_some() {}
        // The last of those that it meets may meet the next one, too.
        for other in others.clone() {
            if !range.stop.is_empty() && other.start >= range.stop {
                break;
            }
            common.extend(range.within(&other.start, &other.stop));
        }
    }
    common
}

fn row_range(range: &KeyRange) -> RowRange {
    RowRange {
        start_row: Bytes::copy_from_slice(&range.start),
        start_inclusive: true,
        stop_row: Bytes::copy_from_slice(&range.stop),
        stop_inclusive: false,
    }
}

/// The node.
pub struct HBaseScanExec {
    spec: ScanSpec,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    progress: Arc<Progress>,
}

impl HBaseScanExec {
    /// A node of a scan, whose partitions are in the given order.
    pub fn new(spec: ScanSpec, equivalence: EquivalenceProperties) -> HBaseScanExec {
        let partitioning = Partitioning::UnknownPartitioning(spec.partitions.len());
        let properties =
            PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        let progress = Progress::new(&spec, false);
        HBaseScanExec { spec, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new(), progress }
    }

    /// How far it is.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// What it reads.
    pub fn spec(&self) -> &ScanSpec {
        &self.spec
    }
}

impl fmt::Debug for HBaseScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HBaseScanExec").field("table", &self.spec.mapping.hbase_table).finish_non_exhaustive()
    }
}

impl DisplayAs for HBaseScanExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HBaseScan: ")?;
        describe(&self.spec, f)
    }
}

/// What a scan reads, for EXPLAIN.
pub fn describe(spec: &ScanSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let columns: Vec<&str> = spec.projection.iter().map(|at| spec.mapping.columns[*at].name.as_str()).collect();
    write!(f, "table={}, columns=[{}]", spec.mapping.hbase_table, columns.join(", "))?;
    let ranges: Vec<&KeyRange> = spec.partitions.iter().flatten().collect();
    let key = |key: &[u8]| key.escape_ascii().to_string();
    match ranges[..] {
        [] => write!(f, ", rows=none")?,
        [range] if range.is_one_key() => write!(f, ", row='{}'", key(&range.start))?,
        _ if ranges.iter().all(|range| range.is_one_key()) => write!(f, ", rows={}", ranges.len())?,
        [first, .., _] | [first] => {
            let last = ranges.last().map_or(&[][..], |range| &range.stop);
            write!(f, ", ranges={} ['{}', '{}')", ranges.len(), key(&first.start), key(last))?;
        }
    }
    if !spec.filters.is_empty() {
        let filters: Vec<String> = spec.filters.iter().map(|filter| words(spec, filter)).collect();
        write!(f, ", filter={}", filters.join(" AND "))?;
    }
    if spec.scan.reversed {
        write!(f, ", reversed")?;
    }
    if spec.versions == Versions::All {
        write!(f, ", all versions")?;
    }
    if let Some(limit) = spec.limit {
        write!(f, ", limit={limit}")?;
    }
    if !spec.dynamic.is_empty() {
        write!(f, ", dynamic={}", dynamic_words(spec))?;
    }
    write!(f, ", partitions={}", spec.partitions.len())?;
    match spec.estimate.rows {
        Some(rows) => write!(f, ", estimated rows={rows}"),
        None => Ok(()),
    }
}

/// The columns that filters which change are about, and what has come of them.
fn dynamic_words(spec: &ScanSpec) -> String {
    let mut said = vec![format!("[{}]", dynamic::columns(spec).join(", "))];
    match dynamic::pushed_now(spec) {
        Some(pushed) => {
            if let Some(ranges) = &pushed.ranges {
                let key = |key: Option<&Vec<u8>>| key.map_or_else(String::new, |key| key.escape_ascii().to_string());
                let (first, last) = (ranges.first().map(|range| &range.start), ranges.last().map(|range| &range.stop));
                said.push(format!("ranges={} ['{}', '{}')", ranges.len(), key(first), key(last)));
            }
            if !pushed.filters.is_empty() {
                let filters: Vec<String> = pushed.filters.iter().map(|filter| words(spec, filter)).collect();
                said.push(format!("filter={}", filters.join(" AND ")));
            }
        }
        None => said.push("rows=none".to_owned()),
    }
    said.join(" ")
}

fn words(spec: &ScanSpec, filter: &Filter) -> String {
    match filter {
        Filter::SingleColumnValue(test) => {
            let cell = (test.family.as_deref().unwrap_or_default(), test.qualifier.as_deref().unwrap_or_default());
            let column = spec.mapping.columns.iter().find(|column| column.cell() == Some(cell));
            let name = column.map_or("?", |column| &column.name);
            match &test.comparator {
                filter::Comparator::Binary { value } => format!("{name} {} '{}'", sign(test.op), value.escape_ascii()),
                filter::Comparator::BinaryPrefix { value } => format!("{name} like '{}%'", value.escape_ascii()),
                _ => format!("{name} {} '?'", sign(test.op)),
            }
        }
        Filter::List { operator, filters } => {
            let with = if *operator == filter::ListOperator::MustPassAll { " AND " } else { " OR " };
            format!("({})", filters.iter().map(|f| words(spec, f)).collect::<Vec<_>>().join(with))
        }
        Filter::FirstKeyOnly => "first cell only".to_owned(),
        Filter::KeyOnly { .. } => "keys only".to_owned(),
        _ => "other".to_owned(),
    }
}

fn sign(op: filter::CompareOp) -> &'static str {
    use filter::CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    match op {
        Equal => "=",
        NotEqual => "<>",
        Less => "<",
        LessOrEqual => "<=",
        Greater => ">",
        GreaterOrEqual => ">=",
        _ => "?",
    }
}

impl ExecutionPlan for HBaseScanExec {
    fn name(&self) -> &str {
        "HBaseScanExec"
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

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = result.parent_filters.into_iter().map(|parent| parent.filter);
        let (mut dynamic, count) = (self.spec.dynamic.clone(), filters.len());
        // The first rows of a key's order are not those of what a filter leaves; filters that do not change were looked at when the scan was
        // planned.
        // A scan that was narrowed goes on after the last row, which is the first one of a reversed scan.
        let takes = phase == FilterPushdownPhase::Post
            && self.spec.limit.is_none()
            && !self.spec.scan.reversed
            && self.spec.versions != Versions::All;
        dynamic.extend(filters.filter(|filter| takes && dynamic::is_dynamic(filter)));
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(vec![PushedDown::No; count]);
        if dynamic.len() == self.spec.dynamic.len() {
            return Ok(answer);
        }
        let spec = ScanSpec { dynamic, ..self.spec.clone() };
        Ok(answer.with_updated_node(Arc::new(HBaseScanExec::new(spec, self.properties.eq_properties.clone()))))
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // Of all versions there are more than rows.
        if !self.spec.dynamic.is_empty() || self.spec.versions == Versions::All {
            return None;
        }
        let spec = ScanSpec { limit, ..self.spec.clone() };
        Some(Arc::new(HBaseScanExec::new(spec, self.properties.eq_properties.clone())))
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.limit
    }

    /// Rows in the opposite of the key's order come from reversed scans.
    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let spec = &self.spec;
        // Of several ranges the servers jump from one to the next, forward.
        let is_one_range = spec.partitions.iter().all(|ranges| ranges.len() <= 1);
        if spec.scan.reversed || spec.limit.is_some() || !spec.dynamic.is_empty() || !is_one_range {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let turned =
            |sort: &PhysicalSortExpr| PhysicalSortExpr { expr: Arc::clone(&sort.expr), options: !sort.options };
        if !self.properties.eq_properties.ordering_satisfy(order.iter().map(turned))? {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let equivalence = EquivalenceProperties::new_with_orderings(Arc::clone(&spec.schema), [order.to_vec()]);
        let reversed = ScanSpec { scan: Scan { reversed: true, ..spec.scan.clone() }, ..spec.clone() };
        Ok(SortOrderPushdownResult::Exact { inner: Arc::new(HBaseScanExec::new(reversed, equivalence)) })
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let parts = if args.partition().is_some() { self.spec.partitions.len().max(1) } else { 1 };
        let share = |of: Option<u64>| of.map_or(Precision::Absent, |of| Precision::Inexact(of as usize / parts));
        let Estimate { rows, bytes } = self.spec.estimate;
        let limit = self.spec.limit.map_or(u64::MAX, |limit| (limit * self.spec.partitions.len()) as u64);
        let rows = rows.map(|rows| rows.min(limit));
        let mut statistics = Statistics {
            num_rows: share(rows),
            total_byte_size: share(bytes),
            ..Statistics::new_unknown(&self.spec.schema)
        };
        // A key of one column is another one in each row.
        if let [key] = self.spec.mapping.key_columns()[..]
            && let Some(at) = self.spec.projection.iter().position(|projected| *projected == key)
        {
            statistics.column_statistics[at].distinct_count = share(rows);
        }
        Ok(Arc::new(statistics))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let spec = &self.spec;
        // Predicates that contradict each other leave no row.
        if spec.partitions[partition].is_empty() {
            return Ok(Box::pin(EmptyRecordBatchStream::new(Arc::clone(&spec.schema))));
        }
        let reading = Reading {
            spec: spec.clone(),
            partition,
            source: None,
            is_at_end: false,
            pushed: Pushed::default(),
            generation: 0,
            rows: 0,
            part: Part::new(&self.progress, spec, partition),
            rows_at_next_look: 0,
            narrowed: MetricBuilder::new(&self.metrics).counter("narrowed", partition),
            decoder: Decoder::new(&spec.mapping, &spec.projection, Arc::clone(&spec.schema)),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = futures::stream::try_unfold(reading, |mut reading| async move {
            Ok::<_, DataFusionError>(reading.batch().await?.map(|batch| (batch, reading)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&spec.schema), batches)))
    }
}

/// A partition that is being read. Dropped, it closes its scanner.
struct Reading {
    spec: ScanSpec,
    partition: usize,
    /// None before the first batch: until then, more may be known of what is wanted.
    source: Option<Source>,
    /// Whether that has no more rows.
    is_at_end: bool,
    /// What the scan was last narrowed to, and by which state of the filters.
    pushed: Pushed,
    generation: u64,
    /// Rows that were read.
    rows: usize,
    part: Part,
    /// How many it must have read before it is narrowed again: a new scan costs some calls.
    rows_at_next_look: usize,
    /// How often filters that changed have narrowed what is read.
    narrowed: Count,
    decoder: Decoder,
    metrics: BaselineMetrics,
}

struct Source {
    scanner: Scanner,
    /// What came with its last reply and was not taken in yet.
    rows: Rows,
    /// The last row that came.
    last: Vec<u8>,
}

impl Reading {
    /// Opens the scan, or another one in its place that reads less. False where there is nothing to be read.
    fn look(&mut self) -> bool {
        let generation = dynamic::generation(&self.spec);
        let is_due = self.source.is_none() || (self.rows >= self.rows_at_next_look && generation != self.generation);
        if !is_due {
            return true;
        }
        // Filters that change meanwhile are looked at once more.
        self.generation = generation;
        self.rows_at_next_look = self.rows * 2;
        let Some(pushed) = dynamic::pushed_now(&self.spec) else {
            self.narrowed.add(1);
            return false;
        };
        let after = self.source.as_ref().map(|source| &source.last[..]);
        let scan = self.spec.scan_after(self.partition, &pushed, after);
        let before = self.spec.scan_after(self.partition, &self.pushed, after);
        if scan != before {
            self.narrowed.add(1);
        } else if self.source.is_some() {
            return true;
        }
        self.pushed = pushed;
        let Some(scan) = scan else { return false };
        let limit = self.spec.limit.map(|limit| limit.saturating_sub(self.rows) as u64);
        if limit == Some(0) {
            return false;
        }
        let options = ScanOptions { limit, prefetch: limit.is_none(), ..self.spec.table.scan_options() };
        let last = self.source.take().map(|source| source.last).unwrap_or_default();
        self.source = Some(Source { scanner: self.spec.table.scan(scan, options), rows: Rows::default(), last });
        true
    }

    /// The next rows; none at the end.
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.is_at_end || !self.look() {
            self.part.end(0);
            return Ok(None);
        }
        let Some(source) = &mut self.source else { return Ok(None) };
        while !self.decoder.is_full() {
            if source.rows.is_empty() {
                let Some(rows) = source.scanner.next_batch().await.map_err(SqlError::from)? else {
                    self.is_at_end = true;
                    break;
                };
                source.rows = rows;
            }
            let _timer = self.metrics.elapsed_compute().timer();
            for row in source.rows.by_ref() {
                if self.spec.versions == Versions::All {
                    self.decoder.push_versions(&row)?;
                } else {
                    self.decoder.push(&row)?;
                }
                if self.decoder.is_full() {
                    source.last.clear();
                    source.last.extend_from_slice(row.row());
                    break;
                }
            }
        }
        self.rows += self.decoder.rows();
        if self.is_at_end {
            self.part.end(self.decoder.rows());
        } else {
            self.part.came_to(&source.last, self.decoder.rows());
        }
        if self.decoder.rows() == 0 {
            return Ok(None);
        }
        self.metrics.record_output(self.decoder.rows());
        Ok(Some(self.decoder.finish()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(&str, &str)]) -> Vec<KeyRange> {
        of.iter()
            .map(|(start, stop)| KeyRange { start: start.as_bytes().to_vec(), stop: stop.as_bytes().to_vec() })
            .collect()
    }

    #[test]
    fn ranges_have_in_common_what_is_in_both() {
        let partition = ranges(&[("b", "d"), ("d", "f"), ("x", "")]);
        let others = ranges(&[("a", "b"), ("bb", "dd"), ("e", "ea"), ("eb", "z"), ("zz", "")]);
        let both = [("bb", "d"), ("d", "dd"), ("e", "ea"), ("eb", "f"), ("x", "z"), ("zz", "")];
        assert_eq!(common(&partition, &others), ranges(&both));
        assert_eq!(common(&others, &partition), ranges(&both));
        assert_eq!(common(&partition, &[]), []);
        assert_eq!(common(&ranges(&[("", "")]), &others), others);
    }
}
