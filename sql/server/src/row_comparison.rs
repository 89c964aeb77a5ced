//! Comparisons of rows, `(a, b) > (1, 2)`, as PostgreSQL has them: field by field, up to the first that decides. They are written so before a statement
//! is planned. DataFusion would compare them as values of a struct, which no index, range or filter understands, in which a NULL is a value among
//! others, whose parameters have no types, and which begins with a name or a literal.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SetExpr, UnaryOperator,
    Value, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Rows of a list that become comparisons of their own; longer lists stay what they are.
const MOST_LISTED: usize = 1000;
/// What comes after a row that is compared.
const OPERATORS: [&str; 8] = ["<", ">", "=", "!", "in", "not", "between", "is"];

/// Whether an operator comes after a parenthesis anywhere.
pub fn may_be_in(statement: &str) -> bool {
    statement.match_indices(')').any(|(at, _)| {
        let after = statement[at + 1..].trim_start();
        OPERATORS.iter().any(|operator| after.get(..operator.len()).is_some_and(|a| a.eq_ignore_ascii_case(operator)))
    })
}

/// Writes the comparisons of a statement.
#[derive(Default)]
pub struct ByFields {
    /// Whether there was one.
    pub is_changed: bool,
    /// Rows that were looked for in a subquery.
    looked_for: usize,
}

impl VisitorMut for ByFields {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = &mut *query.body
            && let Some(condition) = &mut select.selection
        {
            self.look_for_rows(condition);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let by_fields = match expr {
            Expr::BinaryOp { left, op, right } => compared(left, op, right),
            Expr::InList { expr, list, negated } => listed(expr, list).map(|one_of| not_if(*negated, one_of)),
            Expr::Between { expr, low, high, negated } => between(expr, low, high).map(|is| not_if(*negated, is)),
            Expr::IsDistinctFrom(left, right) => pairs(left, right).and_then(|pairs| {
                let distinct = pairs.into_iter().map(|(a, b)| distinct(a, b, Expr::IsDistinctFrom, Expr::IsNotNull));
                joined(distinct.collect(), &BinaryOperator::Or)
            }),
            Expr::IsNotDistinctFrom(left, right) => pairs(left, right).and_then(|pairs| {
                let same = pairs.into_iter().map(|(a, b)| distinct(a, b, Expr::IsNotDistinctFrom, Expr::IsNull));
                joined(same.collect(), &BinaryOperator::And)
            }),
            Expr::IsNull(row) => all_fields(row, Expr::IsNull),
            Expr::IsNotNull(row) => all_fields(row, Expr::IsNotNull),
            _ => None,
        };
        if let Some(by_fields) = by_fields {
            *expr = by_fields;
            self.is_changed = true;
        }
        ControlFlow::Continue(())
    }
}

impl ByFields {
    /// `(a, b) IN (SELECT ...)` as EXISTS, which the planner makes a join of. For a row that is not found it is false where IN may be NULL: no
    /// difference to a WHERE, as long as no NOT is around it.
    fn look_for_rows(&mut self, condition: &mut Expr) {
        match condition {
            Expr::Nested(inner) => self.look_for_rows(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.look_for_rows(left);
                self.look_for_rows(right);
            }
            Expr::InSubquery { expr: row, subquery, negated: false } => {
                let Some(fields) = fields(row) else { return };
                self.looked_for += 1;
                // Names that nobody has: those of the fields are for the query around.
                let rows = format!("rows_in_{}", self.looked_for);
                let columns: Vec<String> = (1..=fields.len()).map(|n| format!("{rows}_{n}")).collect();
                let equal = columns.iter().zip(&fields).map(|(column, field)| format!("{rows}.{column} = {field}"));
                let equal = equal.collect::<Vec<_>>().join(" AND ");
                let text =
                    format!("EXISTS (SELECT 1 FROM ({subquery}) AS {rows} ({}) WHERE {equal})", columns.join(", "));
                let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text).and_then(|mut p| p.parse_expr());
                if let Ok(exists) = parsed {
                    *condition = exists;
                    self.is_changed = true;
                }
            }
            _ => {}
        }
    }
}

/// The fields of `(a, b)` or `ROW(a, b)`, each so that operators may stand beside it.
fn fields(row: &Expr) -> Option<Vec<Expr>> {
    match row {
        Expr::Nested(row) => fields(row),
        Expr::Tuple(of) => Some(of.iter().cloned().map(closed).collect()),
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
            if name.to_string().eq_ignore_ascii_case("row") && !list.args.is_empty() =>
        {
            let field = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(field)) => Some(closed(field.clone())),
                _ => None,
            };
            list.args.iter().map(field).collect()
        }
        _ => None,
    }
}

fn closed(expr: Expr) -> Expr {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::Function(_)
        | Expr::Nested(_)
        | Expr::Tuple(_) => expr,
        _ => Expr::Nested(Box::new(expr)),
    }
}

fn not_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) } } else { expr }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// Joined by an operator, in parentheses; nothing where there is nothing. The tree is as deep as it must be.
fn joined(mut of: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    while of.len() > 1 {
        let mut single = of.into_iter();
        let mut paired = Vec::new();
        while let Some(a) = single.next() {
            paired.push(match single.next() {
                Some(b) => binary(a, op.clone(), b),
                None => a,
            });
        }
        of = paired;
    }
    of.pop().map(|all| Expr::Nested(Box::new(all)))
}

/// Pairs of fields, where both are rows of as many.
fn pairs(left: &Expr, right: &Expr) -> Option<Vec<(Expr, Expr)>> {
    let (left, right) = (fields(left)?, fields(right)?);
    (left.len() == right.len()).then(|| left.into_iter().zip(right).collect())
}

fn all_fields(row: &Expr, is: fn(Box<Expr>) -> Expr) -> Option<Expr> {
    joined(fields(row)?.into_iter().map(|field| is(Box::new(field))).collect(), &BinaryOperator::And)
}

/// How two fields differ, or how one does from a NULL that is written: the planner finds no type for two of those.
fn distinct(a: Expr, b: Expr, from: fn(Box<Expr>, Box<Expr>) -> Expr, from_null: fn(Box<Expr>) -> Expr) -> Expr {
    let is_null = |expr: &Expr| matches!(expr, Expr::Value(value) if value.value == Value::Null);
    let distinct = match (is_null(&a), is_null(&b)) {
        (_, true) => from_null(Box::new(a)),
        (true, _) => from_null(Box::new(b)),
        _ => from(Box::new(a), Box::new(b)),
    };
    // All that comes after DISTINCT FROM is taken for what is compared.
    Expr::Nested(Box::new(distinct))
}

/// One comparison of fields, which may be rows themselves.
fn of_fields(left: &Expr, op: &BinaryOperator, right: &Expr) -> Expr {
    compared(left, op, right).unwrap_or_else(|| binary(left.clone(), op.clone(), right.clone()))
}

fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let strictly = match op {
        Eq | NotEq => {
            let fields = pairs(left, right)?.iter().map(|(a, b)| of_fields(a, op, b)).collect();
            return joined(fields, if *op == Eq { &And } else { &Or });
        }
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
        _ => return None,
    };
    pairs(left, right)?.iter().rev().fold(None, |rest, (a, b)| {
        let Some(rest) = rest else { return Some(of_fields(a, op, b)) };
        let further = joined(vec![of_fields(a, &Eq, b), rest], &And)?;
        joined(vec![of_fields(a, &strictly, b), further], &Or)
    })
}

fn listed(row: &Expr, list: &[Expr]) -> Option<Expr> {
    if list.len() > MOST_LISTED {
        return None;
    }
    let equal: Option<Vec<Expr>> = list.iter().map(|listed| compared(row, &BinaryOperator::Eq, listed)).collect();
    joined(equal?, &BinaryOperator::Or)
}

fn between(row: &Expr, low: &Expr, high: &Expr) -> Option<Expr> {
    let (from, to) = (compared(row, &BinaryOperator::GtEq, low)?, compared(row, &BinaryOperator::LtEq, high)?);
    joined(vec![from, to], &BinaryOperator::And)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewriting::plannable;

    fn filtered(condition: &str) -> String {
        let statement = format!("SELECT 1 FROM t WHERE {condition}");
        let changed = plannable(statement);
        changed.strip_prefix("SELECT 1 FROM t WHERE ").expect("the same query").to_owned()
    }

    #[test]
    fn rows_are_compared_up_to_the_first_field_that_decides() {
        for (rows, by_fields) in [
            ("(a, b) = (1, 2)", "(a = 1 AND b = 2)"),
            ("(a, b) <> (1, 2)", "(a <> 1 OR b <> 2)"),
            ("(a, b) > (1, 2)", "(a > 1 OR (a = 1 AND b > 2))"),
            ("(a, b) <= (1, 2)", "(a < 1 OR (a = 1 AND b <= 2))"),
            ("(a, b) in ((1, 2), (2, 1))", "((a = 1 AND b = 2) OR (a = 2 AND b = 1))"),
            ("(a, b) not in ((1, 2))", "NOT ((a = 1 AND b = 2))"),
            ("row(a, b) = ROW($1, $2)", "(a = $1 AND b = $2)"),
            ("(a, b) between (1, 2) and (3, 4)", "((a > 1 OR (a = 1 AND b >= 2)) AND (a < 3 OR (a = 3 AND b <= 4)))"),
            ("(a, b) is null", "(a IS NULL AND b IS NULL)"),
            ("(a, b) is distinct from (1, null)", "((a IS DISTINCT FROM 1) OR (b IS NOT NULL))"),
            (
                "(a, b) in (select c, d from u) and e = 1",
                "EXISTS (SELECT 1 FROM (SELECT c, d FROM u) AS rows_in_1 (rows_in_1_1, rows_in_1_2) \
                 WHERE rows_in_1.rows_in_1_1 = a AND rows_in_1.rows_in_1_2 = b) AND e = 1",
            ),
            ("((a, b), c) = ((1, 2), 3)", "((a = 1 AND b = 2) AND c = 3)"),
            ("(x or y, b) = (true, 2)", "((x OR y) = true AND b = 2)"),
            ("('2024-01-01'::date, 1) < (d, b)", "(('2024-01-01'::DATE) < d OR (('2024-01-01'::DATE) = d AND 1 < b))"),
        ] {
            assert_eq!(filtered(rows), by_fields, "{rows}");
        }
    }

    #[test]
    fn a_long_list_of_rows_is_written_and_read_without_a_deep_stack() {
        let rows: Vec<String> = (0..MOST_LISTED).map(|n| format!("({n}, $1)")).collect();
        let listed = filtered(&format!("(a, b) in ({})", rows.join(", ")));
        assert_eq!(listed.matches(" OR ").count(), MOST_LISTED - 1);
        assert_eq!(filtered(&listed), listed);
    }

    #[test]
    fn what_compares_no_rows_stays_as_it_was() {
        for condition in
            ["count(a) = 1", "(a, b) = (1, 2, 3)", "(a + 1) > 2 and b in (1, 2)", "f(a) is null", "(a, b) <"]
        {
            assert_eq!(filtered(condition), condition);
        }
    }
}
