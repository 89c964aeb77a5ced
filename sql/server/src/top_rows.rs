//! The first rows of an order that is not the keys', found inside the region servers: below a sort that wants only so many rows, each region
//! sends no more than these instead of all. Where a server has no such endpoint (Apache HBase), or they are too large, the rows are read as
//! without it. The sort stays where it is: what comes is of all regions, and in no order.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use client::Row;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties, SendableRecordBatchStream,
    apply_expression_roots,
};
use futures::{StreamExt, TryStreamExt};
use proto::Message;
use proto::pb;
use proto::top_rows::{METHOD, Request, Response, SERVICE, SortKey};
use types::SqlType;

use crate::below::{Below, computed, key_columns, table_column};
use crate::decode::Decoder;
use crate::error::SqlError;
use crate::expression::source;
use crate::mapping::{Column, Place};
use crate::progress::{Part, Progress};
use crate::scan::{HBaseScanExec, ScanSpec, describe};

/// Rows that are wanted at most: of more, each region would send many that are not.
const MAX_ROWS: usize = 1000;

/// The rule that plans it.
#[derive(Debug)]
pub struct PushTopRows;

impl PhysicalOptimizerRule for PushTopRows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            let Some(below) = pushed(sort)? else { return Ok(Transformed::no(node)) };
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(vec![below], options)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "push_top_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What the sort is to have below it; nothing where the servers cannot find its rows, or need not.
fn pushed(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(limit) = sort.fetch().filter(|limit| (1..=MAX_ROWS).contains(limit)) else { return Ok(None) };
    let Some(below) = Below::of(sort.input())? else { return Ok(None) };
    if below.spec.limit.is_some() {
        return Ok(None);
    }
    let below = below.without_filters_of(sort);
    let Some(wanted) = Wanted::of(sort, limit, &below)? else { return Ok(None) };
    let spec = below.spec;
    let replaced = below.plan.transform_down(|node| {
        if !node.is::<HBaseScanExec>() {
            return Ok(Transformed::no(node));
        }
        let top: Arc<dyn ExecutionPlan> = Arc::new(HBaseTopRowsExec::new(spec.clone(), wanted.clone(), node));
        Ok(Transformed::new(top, true, TreeNodeRecursion::Jump))
    });
    replaced.data().map(Some)
}

/// What the servers are asked.
#[derive(Clone)]
struct Wanted {
    request: Request,
    /// For EXPLAIN.
    words: String,
}

impl Wanted {
    fn of(sort: &SortExec, limit: usize, below: &Below) -> Result<Option<Wanted>> {
        let (spec, mapping) = (&below.spec, &*below.spec.mapping);
        let mut request = Request {
            key_prefix_bytes: mapping.key_layout().prefix_len() as u32,
            key_columns: key_columns(mapping),
            limit: limit as u32,
            ..Request::default()
        };
        let last = sort.expr().len() - 1;
        let mut words = Vec::new();
        for (index, PhysicalSortExpr { expr, options }) in sort.expr().iter().enumerate() {
            let expr = below.resolved(expr)?;
            let column = table_column(&expr, spec).map(|at| &mapping.columns[at]);
            let (source, is_inverted) = match column {
                // What is known of a key's first column makes ranges of rows: others need not be walked.
                Some(column) if index == 0 && column.place == Place::Key(0) => return Ok(None),
                Some(column) if sorts_by_bytes(column, index == last) => {
                    let Some(source) = source(column) else { return Ok(None) };
                    (source, column.descending && matches!(column.place, Place::Key(_)))
                }
                _ => match computed(&expr, spec, &mut request.expressions) {
                    Some((source, _)) => (source, false),
                    None => return Ok(None),
                },
            };
            request.order.push(SortKey {
                source: Some(source),
                is_inverted,
                is_descending: options.descending,
                nulls_first: options.nulls_first,
            });
            let name = column.map_or_else(|| expr.to_string(), |column| column.name.clone());
            words.push(format!("{name} {options}"));
        }
        let words = format!("order=[{}], limit={limit}", words.join(", "));
        Ok(Some(Wanted { request, words }))
    }
}

/// Whether a column's values sort as their bytes do. The last column's bytes may tell values apart that are one when they are read, as times of a
/// day are where only dates are: any of these rows may be left out.
fn sorts_by_bytes(column: &Column, is_last: bool) -> bool {
    use SqlType::{
        BigInt, Date, Decimal, Double, Float, Integer, SmallInt, Timestamp, TinyInt, UnsignedDate, UnsignedInt,
        UnsignedLong, UnsignedSmallInt, UnsignedTinyInt, Varbinary, Varchar,
    };
    let sorts = match column.sql_type {
        TinyInt | SmallInt | Integer | BigInt | UnsignedTinyInt | UnsignedSmallInt | UnsignedInt | UnsignedLong => true,
        Float | Double | Varchar | Varbinary => true,
        Decimal | Date | UnsignedDate | Timestamp => is_last,
        _ => false,
    };
    sorts && !column.is_array
}

/// The node: rows of region servers among which are the first.
pub struct HBaseTopRowsExec {
    spec: ScanSpec,
    wanted: Wanted,
    /// The scan of all rows.
    instead: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    progress: Arc<Progress>,
}

impl HBaseTopRowsExec {
    fn new(spec: ScanSpec, wanted: Wanted, instead: Arc<dyn ExecutionPlan>) -> HBaseTopRowsExec {
        let partitioning = Partitioning::UnknownPartitioning(spec.partitions.len());
        let equivalence = EquivalenceProperties::new(instead.schema());
        let properties = PlanProperties::new(equivalence, partitioning, EmissionType::Final, Boundedness::Bounded);
        let progress = Progress::new(&spec, true);
        HBaseTopRowsExec { spec, wanted, instead, properties: Arc::new(properties), progress }
    }

    /// How far it is.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl fmt::Debug for HBaseTopRowsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HBaseTopRowsExec").field("wanted", &self.wanted.words).finish_non_exhaustive()
    }
}

impl DisplayAs for HBaseTopRowsExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HBaseTopRows: {}, ", self.wanted.words)?;
        describe(&self.spec, f)
    }
}

impl ExecutionPlan for HBaseTopRowsExec {
    fn name(&self) -> &str {
        "HBaseTopRowsExec"
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
        let part = Part::new(&self.progress, &self.spec, partition);
        let batches = async move {
            match ask(&spec, &wanted, partition, part).await {
                Ok(rows) => Ok::<_, DataFusionError>(futures::stream::iter([batch_of(&spec, &rows)]).boxed()),
                Err(e) => {
                    tracing::debug!(
                        "all rows are read, for {} did not answer with the first: {e}",
                        spec.mapping.hbase_table
                    );
                    Ok(instead.execute(partition, context)?.boxed())
                }
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(batches).try_flatten())))
    }
}

/// The first rows of each of a partition's regions.
async fn ask(
    spec: &ScanSpec,
    wanted: &Wanted,
    partition: usize,
    mut part: Part,
) -> std::result::Result<Vec<pb::Result>, client::Error> {
    let mut rows = Vec::new();
    let Some(mut scan) = spec.scan_of(partition) else {
        part.end(0);
        return Ok(rows);
    };
    loop {
        let request = Request { scan: Some(convert::to_proto::scan(&scan)), ..wanted.request.clone() };
        let bytes = Bytes::from(request.encode_to_vec());
        let answer = spec.table.coprocessor_raw(&scan.start_row, SERVICE, METHOD, bytes).await?;
        let answer = Response::decode(answer).map_err(|e| client::Error::Malformed(e.to_string()))?;
        rows.extend(answer.rows);
        let end = answer.region_end_key;
        if end.is_empty() || (!scan.stop_row.is_empty() && end >= scan.stop_row) {
            part.end(rows.len());
            return Ok(rows);
        }
        part.next_region();
        scan.start_row = end;
    }
}

fn batch_of(spec: &ScanSpec, rows: &[pb::Result]) -> Result<RecordBatch> {
    let mut decoder = Decoder::for_rows(&spec.mapping, &spec.projection, Arc::clone(&spec.schema), rows.len());
    for row in rows {
        let row = Row::of_result(row).map_err(SqlError::from)?;
        decoder.push(&row)?;
    }
    Ok(decoder.finish()?)
}
