//! Comparisons of rows, `(a, b) > (1, 2)`, as PostgreSQL has them: field by field, up to the first that decides. They are written so before a statement
//! is planned. DataFusion would compare them as values of a struct, which no index, range or filter understands, in which a NULL is a value among
//! others, whose parameters have no types, and which begins with a name or a literal.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Statement, UnaryOperator,
    VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Rows of a list that become comparisons of their own; longer lists stay what they are.
const MOST_LISTED: usize = 1000;
/// What comes after a row that is compared.
const OPERATORS: [&str; 8] = ["<", ">", "=", "!", "in", "not", "between", "is"];

/// A statement whose rows are compared by their fields; one that compares none, or cannot be read, is what it was.
pub fn by_fields(statement: String) -> String {
    if !may_compare_rows(&statement) {
        return statement;
    }
    let Ok(mut parsed) = Parser::parse_sql(&PostgreSqlDialect {}, &statement) else { return statement };
    let mut fields = ByFields { is_changed: false };
    let _never_broken_off: ControlFlow<()> = parsed.visit(&mut fields);
    match &parsed[..] {
        [one] if fields.is_changed => Statement::to_string(one),
        _ => statement,
    }
}

/// Whether an operator comes after a parenthesis anywhere.
fn may_compare_rows(statement: &str) -> bool {
    statement.match_indices(')').any(|(at, _)| {
        let after = statement[at + 1..].trim_start();
        OPERATORS.iter().any(|operator| after.get(..operator.len()).is_some_and(|a| a.eq_ignore_ascii_case(operator)))
    })
}

struct ByFields {
    is_changed: bool,
}

impl VisitorMut for ByFields {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let by_fields = match expr {
            Expr::BinaryOp { left, op, right } => compared(left, op, right),
            Expr::InList { expr, list, negated } => listed(expr, list).map(|one_of| not_if(*negated, one_of)),
            Expr::Between { expr, low, high, negated } => between(expr, low, high).map(|is| not_if(*negated, is)),
            Expr::IsDistinctFrom(left, right) => pairs(left, right).and_then(|pairs| {
                let distinct = pairs.into_iter().map(|(a, b)| Expr::IsDistinctFrom(Box::new(a), Box::new(b)));
                joined(distinct.collect(), &BinaryOperator::Or)
            }),
            Expr::IsNotDistinctFrom(left, right) => pairs(left, right).and_then(|pairs| {
                let same = pairs.into_iter().map(|(a, b)| Expr::IsNotDistinctFrom(Box::new(a), Box::new(b)));
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

    fn filtered(condition: &str) -> String {
        let statement = format!("SELECT 1 FROM t WHERE {condition}");
        let changed = by_fields(statement);
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
            ("(a, b) is distinct from (1, null)", "(a IS DISTINCT FROM 1 OR b IS DISTINCT FROM null)"),
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
