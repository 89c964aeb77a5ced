//! Comparisons of rows, `(a, b) > (1, 2)`, as PostgreSQL has them: field by field, up to the first that decides. DataFusion compares them as values
//! of a struct, which no index, range or filter understands, and in which a NULL is a value among others.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Rows of a list that become comparisons of their own; longer lists stay what they are.
const MOST_LISTED: usize = 1000;

/// Writes comparisons of rows as comparisons of their fields.
#[derive(Debug)]
pub struct RowComparisons;

impl FunctionRewrite for RowComparisons {
    fn name(&self) -> &str {
        "row_comparisons"
    }

    fn rewrite(&self, expr: Expr, _schema: &DFSchema, _config: &ConfigOptions) -> Result<Transformed<Expr>> {
        let by_fields = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => compared(left, *op, right)?,
            Expr::InList(list) => listed(list)?,
            _ => None,
        };
        Ok(by_fields.map_or_else(|| Transformed::no(expr), Transformed::yes))
    }
}

/// The fields of a row.
fn fields(expr: &Expr) -> Result<Option<Vec<Expr>>> {
    Ok(match expr {
        Expr::ScalarFunction(function) if function.name() == "struct" => Some(function.args.clone()),
        Expr::Literal(ScalarValue::Struct(row), _) => {
            let values = row.columns().iter().map(|column| ScalarValue::try_from_array(column, 0));
            Some(values.map(|value| Ok(Expr::Literal(value?, None))).collect::<Result<_>>()?)
        }
        _ => None,
    })
}

fn binary(left: &Expr, op: Operator, right: &Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left.clone()), op, right: Box::new(right.clone()) })
}

fn compared(left: &Expr, op: Operator, right: &Expr) -> Result<Option<Expr>> {
    let (Some(left), Some(right)) = (fields(left)?, fields(right)?) else { return Ok(None) };
    if left.len() != right.len() {
        return Ok(None);
    }
    let pairs = || left.iter().zip(&right);
    Ok(match op {
        Operator::Eq => pairs().map(|(a, b)| binary(a, op, b)).reduce(Expr::and),
        Operator::NotEq => pairs().map(|(a, b)| binary(a, op, b)).reduce(Expr::or),
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
            let strictly = if matches!(op, Operator::Lt | Operator::LtEq) { Operator::Lt } else { Operator::Gt };
            pairs().rev().fold(None, |rest, (a, b)| {
                Some(match rest {
                    None => binary(a, op, b),
                    Some(rest) => binary(a, strictly, b).or(binary(a, Operator::Eq, b).and(rest)),
                })
            })
        }
        _ => None,
    })
}

fn listed(list: &InList) -> Result<Option<Expr>> {
    if list.list.len() > MOST_LISTED || fields(&list.expr)?.is_none() {
        return Ok(None);
    }
    let equal = list.list.iter().map(|row| compared(&list.expr, Operator::Eq, row));
    let Some(equal) = equal.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
    let one_of = equal.into_iter().reduce(Expr::or);
    Ok(one_of.map(|expr| if list.negated { Expr::Not(Box::new(expr)) } else { expr }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::functions::core::expr_fn::r#struct;
    use datafusion::logical_expr::{col, in_list, lit};

    fn by_fields(expr: Expr) -> String {
        let rewritten = RowComparisons.rewrite(expr, &DFSchema::empty(), &ConfigOptions::default()).expect("legal");
        if rewritten.transformed { rewritten.data.to_string() } else { "as it was".to_owned() }
    }

    #[test]
    fn rows_are_compared_up_to_the_first_field_that_decides() {
        let (columns, row) = (|| r#struct(vec![col("a"), col("b")]), |a, b| r#struct(vec![lit(a), lit(b)]));
        let (one, two) = ("Int32(1)", "Int32(2)");
        assert_eq!(by_fields(columns().eq(row(1, 2))), format!("a = {one} AND b = {two}"));
        assert_eq!(by_fields(columns().not_eq(row(1, 2))), format!("a != {one} OR b != {two}"));
        assert_eq!(by_fields(columns().gt(row(1, 2))), format!("a > {one} OR a = {one} AND b > {two}"));
        assert_eq!(by_fields(columns().lt_eq(row(1, 2))), format!("a < {one} OR a = {one} AND b <= {two}"));
        let list = vec![row(1, 2), row(2, 1)];
        let either = format!("a = {one} AND b = {two} OR a = {two} AND b = {one}");
        assert_eq!(by_fields(in_list(columns(), list.clone(), false)), either);
        assert_eq!(by_fields(in_list(columns(), list, true)), format!("NOT {either}"));
        assert_eq!(by_fields(columns().gt(r#struct(vec![lit(1)]))), "as it was");
        assert_eq!(by_fields(col("a").gt(lit(1))), "as it was");
    }
}
