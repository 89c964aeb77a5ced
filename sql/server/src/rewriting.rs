//! What of a statement is written otherwise before the planner reads it, for it would refuse it or take it for something else.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, OrderByKind, Query, SelectItem, SetExpr, Statement, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::row_comparison::{self, ByFields};

/// The statement as the planner is to read it. One that has nothing of that, or cannot be read, is what it was.
pub fn plannable(statement: String) -> String {
    if let Some(of_setting) = shown(&statement) {
        return of_setting;
    }
    let (may_compare_rows, may_have_ordinals) = (row_comparison::may_be_in(&statement), may_have_ordinals(&statement));
    if !may_compare_rows && !may_have_ordinals {
        return statement;
    }
    let Ok(mut parsed) = Parser::parse_sql(&PostgreSqlDialect {}, &statement) else { return statement };
    let (mut rows, mut ordinals) = (ByFields::default(), Ordinals::default());
    let _never_broken_off: ControlFlow<()> = parsed.visit(&mut rows);
    let _never_broken_off: ControlFlow<()> = parsed.visit(&mut ordinals);
    match &parsed[..] {
        [one] if rows.is_changed || ordinals.is_changed => Statement::to_string(one),
        _ => statement,
    }
}

/// Settings of the server that DataFusion would answer with its own.
fn shown(statement: &str) -> Option<String> {
    let mut words = statement.trim().trim_end_matches(';').split_ascii_whitespace();
    let (verb, name, rest) = (words.next()?, words.next()?, words.next());
    let name = ["server_version", "server_version_num"].into_iter().find(|known| known.eq_ignore_ascii_case(name))?;
    let is_shown = verb.eq_ignore_ascii_case("show") && rest.is_none();
    is_shown.then(|| format!("SELECT current_setting('{name}') AS {name}"))
}

fn may_have_ordinals(statement: &str) -> bool {
    let has =
        |words: &str| statement.as_bytes().windows(words.len()).any(|at| at.eq_ignore_ascii_case(words.as_bytes()));
    has("group") && has("order")
}

/// `ORDER BY 1` of a query with groups, as the expression that it stands for: of one that has no name and is computed of what is grouped, and is not
/// grouped itself, the planner does not find the groups behind the number.
#[derive(Default)]
struct Ordinals {
    is_changed: bool,
}

impl VisitorMut for Ordinals {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let (SetExpr::Select(select), Some(order_by)) = (&*query.body, &mut query.order_by) else {
            return ControlFlow::Continue(());
        };
        let is_grouped = matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if !groups.is_empty());
        let OrderByKind::Expressions(orders) = &mut order_by.kind else { return ControlFlow::Continue(()) };
        if !is_grouped || select.distinct.is_some() {
            return ControlFlow::Continue(());
        }
        for order in orders {
            let Expr::Value(number) = &order.expr else { continue };
            let Value::Number(number, _) = &number.value else { continue };
            let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let before = at.and_then(|at| select.projection.get(..=at)).unwrap_or_default();
            let are_single =
                before.iter().all(|item| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }));
            let Some(SelectItem::UnnamedExpr(expr)) = before.last().filter(|_| are_single) else { continue };
            // A number would be an ordinal again.
            if !matches!(expr, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                order.expr = expr.clone();
                self.is_changed = true;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_version_is_postgresqls() {
        let asked = plannable(" Show SERVER_VERSION ;".to_owned());
        assert_eq!(asked, "SELECT current_setting('server_version') AS server_version");
        for same in ["show timezone", "show server_version x", "select server_version", "show"] {
            assert_eq!(plannable(same.to_owned()), same);
        }
    }

    #[test]
    fn numbers_of_computed_columns_are_these_columns() {
        for (written, plannable_as) in [
            ("SELECT a + 1, count(*) FROM t GROUP BY a ORDER BY 1, 2 DESC", "ORDER BY a + 1, count(*) DESC"),
            ("SELECT a, b % 2, count(*) FROM t GROUP BY a, b ORDER BY 2, 1 LIMIT 3", "ORDER BY b % 2, 1 LIMIT 3"),
        ] {
            let changed = plannable(written.to_owned());
            assert_eq!(
                changed.split_once("ORDER").map(|(_, order)| format!("ORDER{order}")).as_deref(),
                Some(plannable_as)
            );
        }
        for same in [
            "SELECT a + 1 AS x, count(*) FROM t GROUP BY a ORDER BY 1",
            "SELECT *, a + 1 FROM t GROUP BY a, b ORDER BY 2",
            "SELECT 5, count(*) FROM t GROUP BY a ORDER BY 1",
            "SELECT a + 1 FROM t ORDER BY 1",
            "SELECT a + 1 FROM t GROUP BY a ORDER BY 7",
        ] {
            assert_eq!(plannable(same.to_owned()), same);
        }
    }
}
