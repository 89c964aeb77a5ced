//! What region servers can take over together with a scan: what is between it and a node of the plan, and where the values of that node's
//! expressions are in a row.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PhysicalExpr};
use proto::grouped::{Expression, KeyColumn, Source};

use crate::expression::expression;
use crate::mapping::{Mapping, Versions};
use crate::scan::{HBaseScanExec, ScanSpec};

/// A scan, and nodes above it that region servers take over with it.
pub struct Below {
    /// The whole, without what only hands batches on.
    pub plan: Arc<dyn ExecutionPlan>,
    /// What the scan reads.
    pub spec: ScanSpec,
    /// What comes out, as expressions on the scan's columns.
    columns: Vec<Arc<dyn PhysicalExpr>>,
}

impl Below {
    /// What is below a node; nothing where there is more than region servers take over.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Below>> {
        if let Some(scan) = plan.downcast_ref::<HBaseScanExec>() {
            let spec = scan.spec().clone();
            // Whoever turned the scan round wants its rows in that order.
            if spec.scan.reversed || spec.versions == Versions::All {
                return Ok(None);
            }
            let column = |(at, field): (usize, &Arc<Field>)| {
                Arc::new(ColumnExpr::new(field.name(), at)) as Arc<dyn PhysicalExpr>
            };
            let columns = spec.schema.fields().iter().enumerate().map(column).collect();
            return Ok(Some(Below { plan: Arc::clone(plan), spec, columns }));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let Some(below) = Below::of(projection.input())? else { return Ok(None) };
            let columns = projection.expr().iter().map(|projected| below.resolved(&projected.expr));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let plan = Arc::new(ProjectionExec::try_new(projection.expr().to_vec(), below.plan)?);
            return Ok(Some(Below { plan, columns, spec: below.spec }));
        }
        let hands_on = plan.is::<CooperativeExec>()
            || plan
                .downcast_ref::<RepartitionExec>()
                .is_some_and(|r| matches!(r.partitioning(), Partitioning::RoundRobinBatch(_)));
        match plan.children()[..] {
            [child] if hands_on => Below::of(child),
            _ => Ok(None),
        }
    }

    /// The same without filters that the node above, which is not to be one any more, tells its scan.
    pub fn without_filters_of(mut self, above: &dyn ExecutionPlan) -> Below {
        let own: Vec<u64> =
            above.dynamic_expressions_produced().iter().filter_map(|expr| expr.expression_id()).collect();
        self.spec.dynamic.retain(|filter| filter.expression_id().is_none_or(|id| !own.contains(&id)));
        self
    }

    /// An expression on what comes out, as one on the scan's columns.
    pub fn resolved(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let resolve = |node: Arc<dyn PhysicalExpr>| {
            let column = node.downcast_ref::<ColumnExpr>().map(ColumnExpr::index);
            Ok(match column.and_then(|at| self.columns.get(at)) {
                Some(column) => Transformed::new(Arc::clone(column), true, TreeNodeRecursion::Jump),
                None => Transformed::no(node),
            })
        };
        Arc::clone(expr).transform_down(resolve).data()
    }
}

/// What an expression comes to as a source of values, and its type.
pub fn computed(
    expr: &Arc<dyn PhysicalExpr>,
    spec: &ScanSpec,
    expressions: &mut Vec<Expression>,
) -> Option<(Source, DataType)> {
    let (expression, of) = expression(expr, spec)?;
    let at = expressions.iter().position(|known| *known == expression).unwrap_or_else(|| {
        expressions.push(expression);
        expressions.len() - 1
    });
    Some((Source { expression: Some(at as u32), ..Source::default() }, of))
}

/// The columns of a table's row keys, as region servers find them.
pub fn key_columns(mapping: &Mapping) -> Vec<KeyColumn> {
    let layout = mapping.key_layout();
    let column = |(at, column): (usize, &types::KeyColumn)| KeyColumn {
        width_bytes: column.fixed_width().unwrap_or(0) as u32,
        // An array is the rest of the key: what ends others may be in it.
        separator: layout.end(at).filter(|_| !column.is_array).map(u32::from),
    };
    layout.columns.iter().enumerate().map(column).collect()
}

/// Position in the table of a column of the scan.
pub fn table_column(expr: &Arc<dyn PhysicalExpr>, spec: &ScanSpec) -> Option<usize> {
    let column = expr.downcast_ref::<ColumnExpr>()?;
    spec.projection.get(column.index()).copied()
}
