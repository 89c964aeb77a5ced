//! The least and the greatest value of the column that a key begins with: they are in the first and the last row, so that a row of each partition is
//! read, from one end or the other, instead of all. As PostgreSQL finds them in an index.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::below::{Below, table_column};
use crate::mapping::{Place, Versions};
use crate::scan::{HBaseScanExec, ScanSpec};

/// What reads the rows that an aggregate of such extremes needs; nothing where it is of something else, too.
pub fn rows_of_extremes(
    aggregate: &AggregateExec,
    below: &Below,
    has_extremes: impl Fn(types::SqlType) -> bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let spec = &below.spec;
    // A row that a filter which changes leaves out must not be the one that is read.
    let may_end = spec.dynamic.is_empty() && spec.versions == Versions::Newest && spec.mapping.salt_buckets == 0;
    if !may_end || !aggregate.group_expr().is_empty() || aggregate.aggr_expr().is_empty() {
        return Ok(None);
    }
    let (mut first, mut last) = (false, false);
    for function in aggregate.aggr_expr() {
        match is_at_end(function, below, &has_extremes)? {
            Some(true) => last = true,
            Some(false) => first = true,
            None => return Ok(None),
        }
    }
    // A scan that is reversed does not jump from one range to the next.
    if last && spec.partitions.iter().any(|ranges| ranges.len() > 1) {
        return Ok(None);
    }
    let ends = [(first, false), (last, true)].into_iter().filter(|(is_wanted, _)| *is_wanted);
    let mut scans = ends.map(|(_, reversed)| one_row(&below.plan, reversed)).collect::<Result<Vec<_>>>()?;
    let rows = match (scans.pop(), scans.pop()) {
        (Some(last), Some(first)) => UnionExec::try_new(vec![first, last])?,
        (Some(only), _) => only,
        (None, _) => return Ok(None),
    };
    // Who is above counts on one partition where there was one.
    let was_one = aggregate.input().output_partitioning().partition_count() == 1;
    if was_one && rows.output_partitioning().partition_count() > 1 {
        return Ok(Some(Arc::new(CoalescePartitionsExec::new(rows))));
    }
    Ok(Some(rows))
}

/// Whether the value of an aggregate is in the last row of a range, or in the first; nothing where it is in neither.
fn is_at_end(
    function: &AggregateFunctionExpr,
    below: &Below,
    has_extremes: impl Fn(types::SqlType) -> bool,
) -> Result<Option<bool>> {
    let is_max = match function.fun().name() {
        "max" => true,
        "min" => false,
        _ => return Ok(None),
    };
    let arguments = function.expressions();
    let [argument] = &arguments[..] else { return Ok(None) };
    let Some(at) = table_column(&below.resolved(argument)?, &below.spec) else { return Ok(None) };
    let column = &below.spec.mapping.columns[at];
    if column.place != Place::Key(0) || column.is_array || !has_extremes(column.sql_type) {
        return Ok(None);
    }
    let is_last = is_max != column.descending;
    // NULLs are in front of all values.
    Ok((is_last || column.not_null).then_some(is_last))
}

/// The same plan over one row of each partition.
fn one_row(plan: &Arc<dyn ExecutionPlan>, reversed: bool) -> Result<Arc<dyn ExecutionPlan>> {
    Arc::clone(plan)
        .transform_up(|node| {
            let Some(scan) = node.downcast_ref::<HBaseScanExec>() else { return Ok(Transformed::no(node)) };
            let spec = scan.spec();
            let order = EquivalenceProperties::new(Arc::clone(&spec.schema));
            let scan = model::Scan { reversed, ..spec.scan.clone() };
            // The aggregate's own filter is nobody's any more.
            let spec = ScanSpec { scan, limit: Some(1), dynamic: Vec::new(), ..spec.clone() };
            Ok(Transformed::yes(Arc::new(HBaseScanExec::new(spec, order)) as Arc<dyn ExecutionPlan>))
        })
        .data()
}
