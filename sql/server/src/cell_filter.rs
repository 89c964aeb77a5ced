//! Filters on cells, from predicates on their columns.

use bytes::Bytes;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use filter::{Comparator, CompareOp, Filter, SingleColumnValue};
use types::SqlType;

use crate::comparison::{column_of, comparison, encoded, like_prefix, literal};
use crate::interval::{End, Interval, Set, set_of, unite};
use crate::mapping::{Column, Mapping};

/// A filter on cells, and what it looks at.
pub struct Test {
    /// The filter.
    pub filter: Filter,
    /// The cells.
    pub cells: Vec<(Bytes, Bytes)>,
    /// Whether a row passes only if one of them is there.
    pub needs_a_cell: bool,
}

fn test(column: &Column, op: CompareOp, value: Vec<u8>, filter_if_missing: bool) -> Option<Test> {
    Some(test_of_cell(cell_of(column)?, op, value, filter_if_missing))
}

fn cell_of(column: &Column) -> Option<(Bytes, Bytes)> {
    let (family, qualifier) = column.cell()?;
    Some((Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier)))
}

fn test_of_cell(cell: (Bytes, Bytes), op: CompareOp, value: Vec<u8>, filter_if_missing: bool) -> Test {
    test_by(cell, op, Comparator::Binary { value: value.into() }, filter_if_missing)
}

fn test_by(cell: (Bytes, Bytes), op: CompareOp, comparator: Comparator, filter_if_missing: bool) -> Test {
    let filter = Filter::SingleColumnValue(SingleColumnValue {
        family: Some(cell.0.clone()),
        qualifier: Some(cell.1.clone()),
        op,
        comparator,
        filter_if_missing,
        latest_version_only: true,
    });
    Test { filter, cells: vec![cell], needs_a_cell: filter_if_missing }
}

/// A value that is not NULL is there and not empty.
fn is_there(column: &Column) -> Option<Test> {
    test(column, CompareOp::Greater, Vec::new(), true)
}

/// What AND or OR joins, however it is nested.
fn operands<'a>(expr: &'a Expr, joined_by: Operator, found: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == joined_by => {
            operands(left, joined_by, found);
            operands(right, joined_by, found);
        }
        _ => found.push(expr),
    }
}

/// The cell that a filter compares, and the values that pass; none where it lets a missing cell pass, or is another filter.
fn values_of_cell(filter: &Filter) -> Option<((Bytes, Bytes), Set)> {
    let Filter::SingleColumnValue(test) = filter else { return None };
    let (Comparator::Binary { value }, true) = (&test.comparator, test.filter_if_missing) else { return None };
    let op = match test.op {
        CompareOp::Equal => Operator::Eq,
        CompareOp::Less => Operator::Lt,
        CompareOp::LessOrEqual => Operator::LtEq,
        CompareOp::Greater => Operator::Gt,
        CompareOp::GreaterOrEqual => Operator::GtEq,
        _ => return None,
    };
    Some(((test.family.clone()?, test.qualifier.clone()?), set_of(op, value.to_vec())?))
}

/// Of tests of which one must hold, those of one cell made as few as say the same: a row pays for each.
fn with_few_of_each_cell(tests: Vec<Test>) -> Vec<Test> {
    let mut sets: Vec<((Bytes, Bytes), Set)> = Vec::new();
    let mut few = Vec::with_capacity(tests.len());
    for test in tests {
        let Some((cell, set)) = values_of_cell(&test.filter) else {
            few.push(test);
            continue;
        };
        match sets.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, known)) => known.extend(set),
            None => sets.push((cell, set)),
        }
    }
    for (cell, set) in sets {
        few.extend(unite(set, Set::new()).into_iter().map(|interval| test_of_interval(&cell, interval)));
    }
    few
}

fn test_of_interval(cell: &(Bytes, Bytes), interval: Interval) -> Test {
    let test = |op, value| test_of_cell(cell.clone(), op, value, true);
    if let Some(value) = interval.as_point() {
        return test(CompareOp::Equal, value.to_vec());
    }
    let low = match interval.low {
        End::At(value) => Some(test(CompareOp::GreaterOrEqual, value)),
        End::Past(value) => Some(test(CompareOp::Greater, value)),
        End::Open => None,
    };
    let high = match interval.high {
        End::At(value) => Some(test(CompareOp::LessOrEqual, value)),
        End::Past(value) => Some(test(CompareOp::Less, value)),
        End::Open => None,
    };
    match (low, high) {
        (Some(low), Some(high)) => combine(vec![low, high], true),
        (Some(end), None) | (None, Some(end)) => end,
        (None, None) => test(CompareOp::GreaterOrEqual, Vec::new()),
    }
}

fn combine(mut tests: Vec<Test>, all: bool) -> Test {
    if tests.len() == 1
        && let Some(only) = tests.pop()
    {
        return only;
    }
    let needs_a_cell = if all { tests.iter().any(|t| t.needs_a_cell) } else { tests.iter().all(|t| t.needs_a_cell) };
    let cells = tests.iter().flat_map(|t| t.cells.clone()).collect();
    let filters = tests.into_iter().map(|t| t.filter).collect();
    let filter = if all { Filter::all_of(filters) } else { Filter::any_of(filters) };
    Test { filter, cells, needs_a_cell }
}

/// The filter that does just what a predicate says; none where there is no such filter.
pub fn cell_filter(mapping: &Mapping, expr: &Expr) -> Option<Test> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let mut joined = Vec::new();
            operands(expr, *op, &mut joined);
            let tests = joined.into_iter().map(|expr| cell_filter(mapping, expr)).collect::<Option<Vec<_>>>()?;
            let all = *op == Operator::And;
            Some(combine(if all { tests } else { with_few_of_each_cell(tests) }, all))
        }
        Expr::BinaryExpr(_) => {
            let (_, column, op, value) = comparison(mapping, expr)?;
            let is_equality = matches!(op, Operator::Eq | Operator::NotEq);
            let bytes = encoded(mapping, column, value, is_equality)?;
            let op = match op {
                Operator::Eq => CompareOp::Equal,
                Operator::NotEq => CompareOp::NotEqual,
                Operator::Lt => CompareOp::Less,
                Operator::LtEq => CompareOp::LessOrEqual,
                Operator::Gt => CompareOp::Greater,
                Operator::GtEq => CompareOp::GreaterOrEqual,
                _ => return None,
            };
            let compared = test(column, op, bytes, true)?;
            // An empty value is NULL, and less than all others.
            let can_be_empty = column.sql_type.fixed_width().is_none();
            if can_be_empty && matches!(op, CompareOp::Less | CompareOp::LessOrEqual | CompareOp::NotEqual) {
                return Some(combine(vec![is_there(column)?, compared], true));
            }
            Some(compared)
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let (_, column) = column_of(mapping, expr)?;
            let equal = |e| test(column, CompareOp::Equal, encoded(mapping, column, literal(e)?, true)?, true);
            Some(combine(list.iter().map(equal).collect::<Option<Vec<_>>>()?, false))
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let (_, column) = column_of(mapping, expr)?;
            let end = |e: &Expr, op| test(column, op, encoded(mapping, column, literal(e)?, false)?, true);
            let ends = vec![end(low, CompareOp::GreaterOrEqual)?, end(high, CompareOp::LessOrEqual)?];
            Some(combine(ends, true))
        }
        Expr::Like(like) => {
            let (_, column) = column_of(mapping, &like.expr)?;
            let comparator = Comparator::BinaryPrefix { value: like_prefix(column, like)?.into() };
            Some(test_by(cell_of(column)?, CompareOp::Equal, comparator, true))
        }
        Expr::IsNotNull(inner) => is_there(column_of(mapping, inner)?.1),
        Expr::IsNull(inner) => test(column_of(mapping, inner)?.1, CompareOp::Equal, Vec::new(), false),
        Expr::Column(_) => {
            let (_, column) = column_of(mapping, expr)?;
            (column.sql_type == SqlType::Boolean).then(|| test(column, CompareOp::Equal, vec![1], true))?
        }
        Expr::Not(inner) => {
            let (_, column) = column_of(mapping, inner)?;
            (column.sql_type == SqlType::Boolean).then(|| test(column, CompareOp::Equal, vec![0], true))?
        }
        _ => None,
    }
}

/// A filter that lets every row pass that a predicate does, where there is none that does just what it says: of two conditions that must both
/// hold the one that has a filter, and of several of which one must hold what each of them demands.
pub fn weaker_filter(mapping: &Mapping, expr: &Expr) -> Option<Test> {
    let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = expr else {
        return cell_filter(mapping, expr);
    };
    let mut joined = Vec::new();
    operands(expr, *op, &mut joined);
    let tests = joined.into_iter().map(|expr| weaker_filter(mapping, expr));
    if *op == Operator::Or {
        return Some(combine(with_few_of_each_cell(tests.collect::<Option<Vec<_>>>()?), false));
    }
    let tests: Vec<Test> = tests.flatten().collect();
    (!tests.is_empty()).then(|| combine(tests, true))
}

/// What a filter says, in a few words.
#[cfg(test)]
pub fn said(filter: &Filter) -> String {
    match filter {
        Filter::SingleColumnValue(test) => {
            let Comparator::Binary { value } = &test.comparator else { return "?".to_owned() };
            let qualifier = test.qualifier.as_deref().unwrap_or_default().escape_ascii().to_string();
            let missing = if test.filter_if_missing { "" } else { " or none" };
            format!("{qualifier} {:?} {}{missing}", test.op, value.escape_ascii())
        }
        Filter::List { filters, .. } => format!("({})", filters.iter().map(said).collect::<Vec<_>>().join(", ")),
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str) -> (Bytes, Bytes) {
        (Bytes::from_static(b"0"), Bytes::copy_from_slice(name.as_bytes()))
    }

    fn few(tests: &[(&str, CompareOp, &str)]) -> Vec<String> {
        let test = |(name, op, value): &(&str, CompareOp, &str)| {
            test_of_cell(cell(name), *op, value.as_bytes().to_vec(), true)
        };
        with_few_of_each_cell(tests.iter().map(test).collect()).iter().map(|test| said(&test.filter)).collect()
    }

    #[test]
    fn of_tests_that_or_joins_a_cell_is_compared_as_seldom_as_can_be() {
        use CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        assert_eq!(few(&[("a", Greater, "5"), ("a", Equal, "5"), ("a", Equal, "5")]), ["a GreaterOrEqual 5"]);
        assert_eq!(few(&[("a", Less, "3"), ("b", Equal, "x"), ("a", LessOrEqual, "2")]), ["a Less 3", "b Equal x"]);
        assert_eq!(few(&[("a", Equal, "7"), ("a", Equal, "1")]), ["a Equal 1", "a Equal 7"]);
        assert_eq!(few(&[("a", Less, "3"), ("a", GreaterOrEqual, "3")]), ["a GreaterOrEqual "]);
        assert_eq!(few(&[("a", Less, "3"), ("a", Greater, "3")]), ["a Less 3", "a Greater 3"]);
        assert_eq!(few(&[("a", NotEqual, "3"), ("a", Equal, "3")]), ["a NotEqual 3", "a Equal 3"]);
        let null = test_of_cell(cell("a"), Equal, Vec::new(), false);
        let more = test_of_cell(cell("a"), Greater, b"5".to_vec(), true);
        let both = with_few_of_each_cell(vec![null, more]);
        assert_eq!(both.iter().map(|test| said(&test.filter)).collect::<Vec<_>>(), ["a Equal  or none", "a Greater 5"]);
    }
}
