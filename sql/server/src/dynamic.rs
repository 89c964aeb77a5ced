//! Filters that are not known before a query runs: the keys on the other side of a join, the threshold that rows must pass to be among the
//! first. What the planner hands down to a scan is weakened to what each column says by itself, so that ranges of row keys and filters on
//! cells come of it as of a WHERE clause; the join or the sort above looks at every row that is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column as NamedColumn, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr as LogicalBinary, Expr, Operator};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column as ColumnExpr, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr,
    IsNullExpr, Literal,
};
use datafusion::physical_plan::PhysicalExpr;

use crate::mapping::Place;
use crate::predicate::{Pushed, can_be_pushed, push_down};
use crate::scan::ScanSpec;

/// Values that a cell is compared with at most: each row pays for each of them. In keys, they are ranges to be jumped between.
const MAX_CELL_VALUES: usize = 50;

/// Whether an expression may change while the query runs.
pub fn is_dynamic(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let mut found = false;
    let looked = expr.apply(|node| {
        found |= node.is::<DynamicFilterPhysicalExpr>();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    looked.is_ok() && found
}

/// Changes whenever one of a scan's filters did.
pub fn generation(spec: &ScanSpec) -> u64 {
    let mut generation = 0u64;
    for filter in &spec.dynamic {
        let _ = filter.apply(|node| {
            generation = generation.wrapping_add(node.snapshot_generation());
            Ok(TreeNodeRecursion::Continue)
        });
    }
    generation
}

/// Names of the columns that a scan's filters are about.
pub fn columns(spec: &ScanSpec) -> Vec<&str> {
    let mut columns = Vec::new();
    for filter in &spec.dynamic {
        let _ = filter.apply(|node| {
            let at = node.downcast_ref::<ColumnExpr>().and_then(|column| spec.projection.get(column.index()));
            columns.extend(at.map(|at| spec.mapping.columns[*at].name.as_str()));
            Ok(TreeNodeRecursion::Continue)
        });
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// What is known of the rows that a predicate lets pass.
enum Known {
    /// There are none.
    Nothing,
    /// Each of these holds, by the column of the scan that it is about.
    Columns(BTreeMap<usize, Expr>),
}

impl Known {
    fn anything() -> Known {
        Known::Columns(BTreeMap::new())
    }

    /// That `expr` holds, which is about this column alone. Nothing is known where servers could do nothing with that.
    fn of(column: usize, expr: Expr, spec: &ScanSpec) -> Known {
        let can_be_pushed = can_be_pushed(&spec.mapping, &expr);
        Known::Columns(can_be_pushed.then_some((column, expr)).into_iter().collect())
    }

    fn and(self, other: Known) -> Known {
        let (Known::Columns(mut columns), Known::Columns(more)) = (self, other) else { return Known::Nothing };
        for (column, expr) in more {
            let both = match columns.remove(&column) {
                Some(one) => joined(one, Operator::And, expr),
                None => expr,
            };
            columns.insert(column, both);
        }
        Known::Columns(columns)
    }

    /// What both say of a column holds where one of them does.
    fn or(self, other: Known) -> Known {
        match (self, other) {
            (Known::Nothing, known) | (known, Known::Nothing) => known,
            (Known::Columns(columns), Known::Columns(mut others)) => {
                let both = columns.into_iter().filter_map(|(column, expr)| {
                    let other = others.remove(&column)?;
                    Some((column, if expr == other { expr } else { joined(expr, Operator::Or, other) }))
                });
                Known::Columns(both.collect())
            }
        }
    }
}

fn joined(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(LogicalBinary { left: Box::new(left), op, right: Box::new(right) })
}

/// What servers can do of a scan's filters as they are now; none of them to be trusted to have been done to the last row. Nothing where no row
/// passes.
pub fn pushed_now(spec: &ScanSpec) -> Option<Pushed> {
    let known = spec.dynamic.iter().map(|filter| known(filter, spec));
    let Known::Columns(columns) = known.fold(Known::anything(), Known::and) else { return None };
    let exprs: Vec<Expr> = columns.into_values().collect();
    Some(push_down(&spec.mapping, &exprs.iter().collect::<Vec<_>>()))
}

fn known(expr: &Arc<dyn PhysicalExpr>, spec: &ScanSpec) -> Known {
    if let Some(dynamic) = expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
        return dynamic.current().map_or_else(|_| Known::anything(), |current| known(&current, spec));
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        let is_true = matches!(literal.value(), ScalarValue::Boolean(Some(true)));
        return if is_true { Known::anything() } else { Known::Nothing };
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::And => known(binary.left(), spec).and(known(binary.right(), spec)),
            Operator::Or => known(binary.left(), spec).or(known(binary.right(), spec)),
            _ => comparison(binary, spec),
        };
    }
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        // Rows go to the branch of their part of the join: which one, servers do not know.
        let thens = case.when_then_expr().iter().map(|(_, then)| known(then, spec));
        let otherwise = case.else_expr().map_or(Known::Nothing, |other| known(other, spec));
        return thens.fold(otherwise, Known::or);
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>().filter(|list| !list.negated()) {
        return in_list(list, spec);
    }
    if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
        return match column(is_null.arg(), spec) {
            Some((at, _)) if !spec.schema.field(at).is_nullable() => Known::Nothing,
            Some((at, named)) => Known::of(at, Expr::IsNull(Box::new(named)), spec),
            None => Known::anything(),
        };
    }
    if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>()
        && let Some((at, named)) = column(is_not_null.arg(), spec)
    {
        return Known::of(at, Expr::IsNotNull(Box::new(named)), spec);
    }
    Known::anything()
}

/// A column of the scan, and its name in the table. A cast to a wider integer changes no comparison.
fn column(expr: &Arc<dyn PhysicalExpr>, spec: &ScanSpec) -> Option<(usize, Expr)> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let rank = |of: &DataType| [DataType::Int16, DataType::Int32, DataType::Int64].iter().position(|t| t == of);
        let from = cast.expr().data_type(&spec.schema).ok()?;
        return if rank(&from)? <= rank(cast.cast_type())? { column(cast.expr(), spec) } else { None };
    }
    let at = expr.downcast_ref::<ColumnExpr>()?.index();
    let column = &spec.mapping.columns[*spec.projection.get(at)?];
    Some((at, Expr::Column(NamedColumn::from_name(&column.name))))
}

fn comparison(binary: &BinaryExpr, spec: &ScanSpec) -> Known {
    let value = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().map(|literal| literal.value().clone());
    let (left, right) = (binary.left(), binary.right());
    let of = match (column(left, spec), value(right), column(right, spec), value(left)) {
        (Some(column), Some(value), _, _) => Some((column, *binary.op(), value)),
        (_, _, Some(column), Some(value)) => binary.op().swap().map(|op| (column, op, value)),
        _ => None,
    };
    match of {
        // What is compared with NULL does not pass.
        Some((_, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq, value))
            if value.is_null() =>
        {
            Known::Nothing
        }
        Some(((at, named), op, value)) => Known::of(at, joined(named, op, Expr::Literal(value, None)), spec),
        None => Known::anything(),
    }
}

/// A column that is one of some values; or several that together are, each of which is then one of its own.
fn in_list(list: &InListExpr, spec: &ScanSpec) -> Known {
    let values: Option<Vec<&ScalarValue>> =
        list.list().iter().map(|expr| Some(expr.downcast_ref::<Literal>()?.value())).collect();
    let Some(values) = values else { return Known::anything() };
    if let Some(of) = column(list.expr(), spec) {
        return one_of(of, values.into_iter().cloned(), spec);
    }
    let tuple = list.expr().downcast_ref::<ScalarFunctionExpr>().filter(|f| f.fun().name() == "struct");
    let Some(tuple) = tuple else { return Known::anything() };
    tuple.args().iter().enumerate().fold(Known::anything(), |known, (at, expr)| {
        let Some(of) = column(expr, spec) else { return known };
        let of_this = values.iter().map(|value| match value {
            ScalarValue::Struct(fields) => ScalarValue::try_from_array(fields.columns().get(at)?, 0).ok(),
            _ => None,
        });
        match of_this.collect::<Option<Vec<_>>>() {
            Some(values) => known.and(one_of(of, values.into_iter(), spec)),
            None => known,
        }
    })
}

fn one_of((at, named): (usize, Expr), values: impl Iterator<Item = ScalarValue>, spec: &ScanSpec) -> Known {
    let mut list: Vec<ScalarValue> = values.filter(|value| !value.is_null()).collect();
    // Those of a column are of one type, which has an order.
    list.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    list.dedup();
    let is_key = matches!(spec.mapping.columns[spec.projection[at]].place, Place::Key(_));
    match list.len() {
        0 => Known::Nothing,
        more if more > MAX_CELL_VALUES && !is_key => Known::anything(),
        _ => {
            let list = list.into_iter().map(|value| Expr::Literal(value, None)).collect();
            Known::of(at, Expr::InList(InList { expr: Box::new(named), list, negated: false }), spec)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Column, Kind, Mapping, Versions};
    use datafusion::physical_expr::expressions::{in_list, lit};
    use filter::Filter;
    use model::Scan;
    use types::SqlType;

    /// A scan of `id`, `serial` (the key), `weight` and `kind`, with a filter that changes.
    fn spec() -> (ScanSpec, Arc<DynamicFilterPhysicalExpr>) {
        let column = |name: &str, sql_type, place| Column {
            name: name.to_owned(),
            sql_type,
            max_chars: None,
            decimal: None,
            not_null: matches!(place, Place::Key(_)),
            descending: false,
            is_array: false,
            with_time: false,
            place,
            comment: None,
        };
        let cell = |qualifier: &str| Place::Cell { family: "0".to_owned(), qualifier: qualifier.as_bytes().to_vec() };
        let mapping = Mapping {
            schema: "public".to_owned(),
            name: "t".to_owned(),
            hbase_table: "t".to_owned(),
            kind: Kind::Table,
            columns: vec![
                column("id", SqlType::BigInt, Place::Key(0)),
                column("serial", SqlType::Integer, Place::Key(1)),
                column("weight", SqlType::Integer, cell("w")),
                column("kind", SqlType::Varchar, cell("k")),
            ],
            salt_buckets: 0,
            phoenix: None,
            comment: None,
            version: 0,
        };
        let options = client::Options::parse("localhost:1").expect("an address");
        let table = client::Connection::open(options).table(&mapping.table_name().expect("a name"));
        let all: Vec<usize> = (0..mapping.columns.len()).collect();
        let schema = mapping.arrow_schema();
        let children = all.iter().map(|at| named(schema.field(*at).name(), *at)).collect();
        let filter = Arc::new(DynamicFilterPhysicalExpr::new(children, lit(true)));
        let spec = ScanSpec {
            table,
            mapping: Arc::new(mapping),
            projection: all,
            schema,
            scan: Scan::default(),
            filters: Vec::new(),
            partitions: vec![Vec::new()],
            regions: Vec::new(),
            limit: None,
            versions: Versions::Newest,
            estimate: crate::table::Estimate::default(),
            dynamic: vec![Arc::clone(&filter) as Arc<dyn PhysicalExpr>],
        };
        (spec, filter)
    }

    fn named(name: &str, at: usize) -> Arc<dyn PhysicalExpr> {
        Arc::new(ColumnExpr::new(name, at))
    }

    fn compared(left: Arc<dyn PhysicalExpr>, op: Operator, right: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, op, right))
    }

    /// First bytes of ranges, as numbers, and the filters.
    fn now(spec: &ScanSpec) -> Option<(Option<Vec<i64>>, Vec<Filter>)> {
        let number = |key: &[u8]| i64::from_be_bytes(key[..8].try_into().expect("long enough")) ^ i64::MIN;
        let pushed = pushed_now(spec)?;
        Some((pushed.ranges.map(|ranges| ranges.iter().map(|r| number(&r.start)).collect()), pushed.filters))
    }

    #[test]
    fn keys_of_a_join_become_ranges_of_rows() {
        let (spec, filter) = spec();
        assert!(is_dynamic(&spec.dynamic[0]));
        assert_eq!(now(&spec), Some((None, Vec::new())));
        let before = generation(&spec);
        let id = || named("id", 0);
        let keys =
            in_list(id(), vec![lit(7i64), lit(3i64), lit(7i64), lit(9i64)], &false, &spec.schema).expect("legal");
        let bounds = compared(
            compared(id(), Operator::GtEq, lit(3i64)),
            Operator::And,
            compared(id(), Operator::LtEq, lit(9i64)),
        );
        filter.update(compared(bounds, Operator::And, keys)).expect("an update");
        assert_ne!(generation(&spec), before);
        assert_eq!(now(&spec), Some((Some(vec![3, 7, 9]), Vec::new())));
        // Each branch is of one part of the join.
        let of = |key: i64| compared(id(), Operator::Eq, lit(key));
        let branches = vec![(lit(0i64), of(4)), (lit(1i64), lit(false)), (lit(2i64), of(1))];
        let case = CaseExpr::try_new(Some(named("serial", 1)), branches, Some(lit(false))).expect("legal");
        filter.update(Arc::new(case)).expect("an update");
        assert_eq!(now(&spec), Some((Some(vec![1, 4]), Vec::new())));
        filter.update(lit(false)).expect("an update");
        assert_eq!(now(&spec), None);
    }

    #[test]
    fn a_threshold_of_two_columns_says_what_each_may_be() {
        let (spec, filter) = spec();
        let (id, weight) = (|| named("id", 0), || named("weight", 2));
        let is_null: Arc<dyn PhysicalExpr> = Arc::new(IsNullExpr::new(id()));
        // What no row's id is, for it is in the key.
        let first = compared(is_null, Operator::Or, compared(id(), Operator::Gt, lit(5i64)));
        let second =
            compared(compared(id(), Operator::Eq, lit(5i64)), Operator::And, compared(weight(), Operator::Lt, lit(3)));
        filter.update(compared(first, Operator::Or, second)).expect("an update");
        assert_eq!(now(&spec), Some((Some(vec![5]), Vec::new())));
        // A text that the servers compare, and an expression that they do not know.
        let long = compared(named("kind", 3), Operator::Lt, lit("m"));
        let sum = compared(compared(weight(), Operator::Plus, lit(1)), Operator::Gt, lit(3));
        filter.update(compared(long, Operator::And, sum)).expect("an update");
        let (ranges, filters) = now(&spec).expect("rows may pass");
        assert_eq!((ranges, filters.len()), (None, 1));
        // Not as an alternative.
        let long = compared(named("kind", 3), Operator::Lt, lit("m"));
        filter
            .update(compared(long, Operator::Or, compared(weight(), Operator::Eq, named("serial", 1))))
            .expect("an update");
        assert_eq!(now(&spec), Some((None, Vec::new())));
    }
}
