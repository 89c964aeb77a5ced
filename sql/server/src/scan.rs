//! A scan as a node of a physical plan: one partition for some neighbouring regions, each read in the order of its keys.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use client::{ScanOptions, Scanner, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use filter::{Filter, RowRange};
use model::Scan;

use crate::decode::Decoder;
use crate::error::SqlError;
use crate::mapping::Mapping;
use crate::predicate::KeyRange;

/// Rows of a batch at most.
const BATCH_ROWS: usize = 8192;

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
    /// The row keys of each partition.
    pub partitions: Vec<Vec<KeyRange>>,
    /// Rows of each partition at most.
    pub limit: Option<usize>,
}

impl ScanSpec {
    /// The scan of one partition: several ranges become one scan that jumps from one to the next.
    pub fn scan_of(&self, partition: usize) -> Scan {
        let ranges = &self.partitions[partition];
        let mut scan = self.scan.clone();
        let mut filters = Vec::new();
        if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
            scan.start_row = Bytes::copy_from_slice(&first.start);
            scan.stop_row = Bytes::copy_from_slice(&last.stop);
            if ranges.len() > 1 {
                filters.push(Filter::MultiRowRange { ranges: ranges.iter().map(row_range).collect() });
            }
        }
        filters.extend(self.filters.iter().cloned());
        scan.filter = match filters.len() {
            0 => None,
            1 => filters.pop().map(Arc::new),
            _ => Some(Arc::new(Filter::all_of(filters))),
        };
        scan
    }
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
}

impl HBaseScanExec {
    /// A node of a scan, whose partitions are in the given order.
    pub fn new(spec: ScanSpec, equivalence: EquivalenceProperties) -> HBaseScanExec {
        let partitioning = Partitioning::UnknownPartitioning(spec.partitions.len());
        let properties =
            PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        HBaseScanExec { spec, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
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
    if let Some(limit) = spec.limit {
        write!(f, ", limit={limit}")?;
    }
    write!(f, ", partitions={}", spec.partitions.len())
}

fn words(spec: &ScanSpec, filter: &Filter) -> String {
    match filter {
        Filter::SingleColumnValue(test) => {
            let cell = (test.family.as_deref().unwrap_or_default(), test.qualifier.as_deref().unwrap_or_default());
            let column = spec.mapping.columns.iter().find(|column| column.cell() == Some(cell));
            let name = column.map_or("?", |column| &column.name);
            let value = match &test.comparator {
                filter::Comparator::Binary { value } => value.escape_ascii().to_string(),
                _ => "?".to_owned(),
            };
            format!("{name} {} '{value}'", sign(test.op))
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
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let spec = ScanSpec { limit, ..self.spec.clone() };
        Some(Arc::new(HBaseScanExec::new(spec, self.properties.eq_properties.clone())))
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.limit
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
        let options = ScanOptions {
            limit: spec.limit.map(|n| n as u64),
            prefetch: spec.limit.is_none(),
            ..spec.table.scan_options()
        };
        let scanner = spec.table.scan(spec.scan_of(partition), options);
        let decoder = Decoder::new(&spec.mapping, &spec.projection, Arc::clone(&spec.schema));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let reading = Reading { scanner, decoder, metrics };
        let batches = futures::stream::try_unfold(reading, |mut reading| async move {
            Ok::<_, DataFusionError>(reading.batch().await?.map(|batch| (batch, reading)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&spec.schema), batches)))
    }
}

/// A partition that is being read. Dropped, it closes its scanner.
struct Reading {
    scanner: Scanner,
    decoder: Decoder,
    metrics: BaselineMetrics,
}

impl Reading {
    /// The next rows; none at the end.
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.decoder.rows() < BATCH_ROWS {
            let Some(row) = self.scanner.next().await.map_err(SqlError::from)? else { break };
            let timer = self.metrics.elapsed_compute().timer();
            self.decoder.push(&row)?;
            drop(timer);
        }
        if self.decoder.rows() == 0 {
            return Ok(None);
        }
        self.metrics.record_output(self.decoder.rows());
        Ok(Some(self.decoder.finish()?))
    }
}
