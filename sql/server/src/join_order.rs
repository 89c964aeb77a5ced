//! The order of inner joins, by how many rows tables have and how few are left: DataFusion joins as the query is written. What comes first
//! narrows what is read later, so the tables that leave few rows come first.
//!
//! Columns that are equal to each other are one class. A column that is the whole key of its table says how many different values its class
//! has, so that rows of a join are estimated as if those of each side were spread evenly over these.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, FetchType, Join, LogicalPlan, LogicalPlanBuilder, Operator};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::future::join_all;

use crate::table::HBaseTable;

/// Tables that are put in order together: all orders are looked at.
const MOST_TABLES: usize = 12;
/// Tables from which on it is more than the question which of two is the first.
const LEAST_TABLES: usize = 3;
/// What a predicate that servers do not compute is taken to let pass.
const PASSES: f64 = 0.2;
/// The share of a table's rows that differ in what they are grouped by.
const GROUPS: f64 = 1.0 / 3.0;
/// The share that has, or has not, a row in another table.
const HAVE_ONE: f64 = 0.5;
/// Rows whose keys narrow the next scan, as many as are handed down.
const NARROWING_ROWS: f64 = 2000.0;

/// Plans queries: puts joins in order, then as DataFusion does.
#[derive(Debug)]
pub struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::default();
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return planner.create_physical_plan(plan, session).await;
        };
        if !has_many(plan)? {
            return planner.create_physical_plan(plan, session).await;
        }
        let tables = tables(plan)?;
        join_all(tables.iter().filter_map(|table| table.downcast_ref::<HBaseTable>()).map(|t| t.histogram())).await;
        let ordered = in_order(plan.clone())?;
        if !ordered.transformed {
            return planner.create_physical_plan(plan, session).await;
        }
        let pruned = Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]);
        let plan = pruned.optimize(ordered.data, state, |_, _| {})?;
        let mut state = state.clone();
        // The smaller side is the first one already; by its own estimates DataFusion would turn some round again.
        state.config_mut().options_mut().optimizer.join_reordering = !all_inner(&plan)?;
        planner.create_physical_plan(&plan, &state).await
    }
}

/// Whether any joins are worth an order.
fn has_many(plan: &LogicalPlan) -> Result<bool> {
    let mut joins = 0;
    plan.apply(|node| {
        joins += usize::from(matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(joins + 1 >= LEAST_TABLES)
}

fn all_inner(plan: &LogicalPlan) -> Result<bool> {
    let is_other = |node: &LogicalPlan| {
        Ok(matches!(node, LogicalPlan::Join(join) if join.join_type != JoinType::Inner || join.null_aware))
    };
    Ok(!plan.exists(is_other)?)
}

/// Tables that a plan reads, those of subqueries aside.
fn tables(plan: &LogicalPlan) -> Result<Vec<Arc<dyn TableProvider>>> {
    let mut tables = Vec::new();
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            tables.push(source_as_provider(&scan.source)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// A plan whose inner joins are in order. Unchanged where it is not known how many rows its tables have.
fn in_order(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down(|node| {
        if !is_inner_join(&node) {
            return Ok(Transformed::no(node));
        }
        let mut flat = Flat::default();
        flat.add(&node);
        if !(LEAST_TABLES..=MOST_TABLES).contains(&flat.tables.len()) {
            return Ok(Transformed::no(node));
        }
        // Joins within, as in subqueries of FROM that group.
        for table in &mut flat.tables {
            *table = in_order(table.clone())?.data;
        }
        let Some(joins) = Joins::of(flat) else { return Ok(Transformed::no(node)) };
        let columns = node.schema().columns().into_iter().map(Expr::Column);
        let ordered = LogicalPlanBuilder::from(joins.in_best_order()?).project(columns)?.build()?;
        Ok(Transformed::new(ordered, true, TreeNodeRecursion::Jump))
    })
}

fn is_inner_join(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
        && join.null_equality == NullEquality::NullEqualsNothing)
}

/// A tree of inner joins as what it joins, and what must hold.
#[derive(Default)]
struct Flat {
    tables: Vec<LogicalPlan>,
    equal: Vec<(Expr, Expr)>,
    predicates: Vec<Expr>,
}

impl Flat {
    fn add(&mut self, plan: &LogicalPlan) {
        match plan {
            LogicalPlan::Join(join) if is_inner_join(plan) => {
                self.add(&join.left);
                self.add(&join.right);
                self.equal.extend(join.on.iter().cloned());
                self.predicates.extend(join.filter.iter().flat_map(|filter| split_conjunction_owned(filter.clone())));
            }
            // Columns that are left out are left out again in the end.
            LogicalPlan::Projection(projection)
                if leads_to_join(&projection.input)
                    && projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) =>
            {
                self.add(&projection.input);
            }
            LogicalPlan::Filter(filter) if leads_to_join(&filter.input) && !filter.predicate.is_volatile() => {
                self.predicates.extend(split_conjunction_owned(filter.predicate.clone()));
                self.add(&filter.input);
            }
            other => self.tables.push(other.clone()),
        }
    }
}

fn leads_to_join(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => leads_to_join(&projection.input),
        LogicalPlan::Filter(filter) => leads_to_join(&filter.input),
        other => is_inner_join(other),
    }
}

/// Tables, a bit each.
type Set = u32;

/// Columns that are equal to each other.
struct Class {
    columns: Vec<(usize, Column)>,
    /// How many different values they have, where that is known.
    values: Option<f64>,
}

impl Class {
    fn columns_of(&self, tables: Set) -> Vec<&Column> {
        self.columns.iter().filter(|(of, _)| tables & 1 << of != 0).map(|(_, column)| column).collect()
    }
}

/// What is joined, and how many rows it has.
struct Joins {
    tables: Vec<LogicalPlan>,
    rows: Vec<f64>,
    /// Rows of the HBase table that one is of, and its key's columns as far as they are in its output; none of others.
    keys: Vec<Option<(f64, Vec<Column>)>>,
    /// The first column of the key, where the rows are read by a scan.
    leading: Vec<Option<Column>>,
    /// Rows that are read for one.
    reads: Vec<f64>,
    classes: Vec<Class>,
    /// Other predicates, with the tables that they are about.
    predicates: Vec<(Set, Expr)>,
}

/// Tables that were joined.
#[derive(Clone)]
struct Step {
    cost: f64,
    rows: f64,
    /// In this order.
    order: Vec<usize>,
}

impl Joins {
    /// Nothing where something is not known.
    fn of(flat: Flat) -> Option<Joins> {
        let Flat { tables, equal, mut predicates } = flat;
        let mut names = HashSet::new();
        if !tables.iter().flat_map(|table| table.schema().columns()).all(|column| names.insert(column)) {
            return None;
        }
        let rows = tables.iter().map(rows_of).collect::<Option<Vec<f64>>>()?;
        let reads = tables.iter().zip(&rows).map(|(table, rows)| reads_of(table).unwrap_or(*rows)).collect();
        let of = |column: &Column| tables.iter().position(|table| table.schema().has_column(column));
        let mut classes: Vec<Class> = Vec::new();
        for (left, right) in equal {
            let (Expr::Column(left), Expr::Column(right)) = (&left, &right) else {
                predicates.push(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::Eq, Box::new(right))));
                continue;
            };
            let pair = [(of(left)?, left.clone()), (of(right)?, right.clone())];
            let (same, others): (Vec<Class>, Vec<Class>) =
                classes.into_iter().partition(|class| pair.iter().any(|column| class.columns.contains(column)));
            let mut columns: Vec<(usize, Column)> = same.into_iter().flat_map(|class| class.columns).collect();
            for column in pair {
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
            classes = others;
            classes.push(Class { columns, values: None });
        }
        let keys: Vec<Option<(f64, Vec<Column>)>> = tables.iter().map(key_of).collect();
        for class in &mut classes {
            let is_key = |(table, column): &(usize, Column)| match &keys[*table] {
                Some((rows, key)) if key[..] == [column.clone()] => Some(*rows),
                _ => None,
            };
            class.values = class.columns.iter().filter_map(is_key).max_by(f64::total_cmp);
        }
        let set = |expr: Expr| {
            let tables = expr.column_refs().into_iter().map(of).collect::<Option<Vec<usize>>>()?;
            Some((tables.into_iter().fold(0, |set, table| set | 1 << table), expr))
        };
        let predicates = predicates.into_iter().map(set).collect::<Option<Vec<_>>>()?;
        let leading = tables.iter().map(leading_key_of).collect();
        Some(Joins { tables, rows, keys, leading, reads, classes, predicates })
    }

    /// Classes that a table has a column of and those before it, too.
    fn shared(&self, before: Set, table: usize) -> impl Iterator<Item = &Class> {
        self.classes.iter().filter(move |class| {
            class.columns.iter().any(|(of, _)| before & 1 << of != 0)
                && class.columns.iter().any(|(of, _)| *of == table)
        })
    }

    /// Predicates that can be computed once a table has been joined.
    fn due(&self, before: Set, table: usize) -> impl Iterator<Item = &Expr> {
        let after = before | 1 << table;
        // Those about one table alone, or none, are due with the first join.
        let was_due = move |set: Set| before.count_ones() > 1 && set & !before == 0;
        let is_due = move |set: Set| set & !after == 0 && !was_due(set);
        self.predicates.iter().filter(move |(set, _)| is_due(*set)).map(|(_, expr)| expr)
    }

    /// Rows of a join of what was joined before with a table.
    fn joined_rows(&self, before: Set, rows: f64, table: usize) -> f64 {
        let mut share = 1.0;
        let mut bound: Vec<&Column> = Vec::new();
        for class in self.shared(before, table) {
            bound.extend(class.columns.iter().filter(|(of, _)| *of == table).map(|(_, column)| column));
            // Without a key among them, as many values as a tenth of the larger side's rows.
            let values = class.values.unwrap_or_else(|| rows.max(self.rows[table]) / 10.0);
            share /= values.max(1.0);
        }
        // All of a key has one row.
        if let Some((all, key)) = &self.keys[table]
            && !key.is_empty()
            && key.iter().all(|column| bound.contains(&column))
        {
            share = share.max(1.0 / all.max(1.0));
        }
        let passing = PASSES.powi(self.due(before, table).count() as i32);
        (rows * self.rows[table] * share * passing).max(1.0)
    }

    /// What it costs to join a table to those before: rows that are read, that are put into a table of hashes, and that come out.
    fn cost(&self, before: Set, rows: f64, table: usize, joined: f64) -> f64 {
        let is_narrowed = rows <= NARROWING_ROWS
            && self.leading[table].as_ref().is_some_and(|leading| {
                self.shared(before, table).any(|class| class.columns.iter().any(|(_, column)| column == leading))
            });
        let reads = if is_narrowed { joined.min(self.reads[table]) } else { self.reads[table] };
        reads + rows.min(self.rows[table]) + joined
    }

    fn after(&self, before: Set, step: &Step, table: usize) -> Step {
        let rows = self.joined_rows(before, step.rows, table);
        let cost = step.cost + self.cost(before, step.rows, table, rows);
        Step { cost, rows, order: step.order.iter().copied().chain([table]).collect() }
    }

    /// The order that costs least; tables that nothing connects come last.
    fn best_order(&self) -> Vec<usize> {
        let count = self.tables.len();
        let mut best: Vec<Option<Step>> = vec![None; 1 << count];
        for table in 0..count {
            let step = Step { cost: self.reads[table], rows: self.rows[table], order: vec![table] };
            best[1 << table] = Some(step);
        }
        for before in 1..(1usize << count) - 1 {
            let Some(step) = best[before].clone() else { continue };
            let set = before as Set;
            let others = || (0..count).filter(move |table| set & 1 << table == 0);
            let connected: Vec<usize> = others().filter(|table| self.shared(set, *table).next().is_some()).collect();
            for table in if connected.is_empty() { others().collect() } else { connected } {
                let after = self.after(set, &step, table);
                let known = &mut best[before | 1 << table];
                if known.as_ref().is_none_or(|known| after.cost < known.cost) {
                    *known = Some(after);
                }
            }
        }
        best.pop().flatten().map_or_else(|| (0..count).collect(), |step| step.order)
    }

    /// The joins in that order, the side with fewer rows first.
    fn in_best_order(&self) -> Result<LogicalPlan> {
        let order = self.best_order();
        let first = order[0];
        let mut plan = Arc::new(self.tables[first].clone());
        let (mut before, mut rows): (Set, f64) = (1 << first, self.rows[first]);
        let mut tied: BTreeSet<&Column> = BTreeSet::new();
        for table in order.into_iter().skip(1) {
            let mut on: Vec<(Expr, Expr)> = Vec::new();
            for class in self.shared(before, table) {
                let (mine, theirs) = (class.columns_of(before), class.columns_of(1 << table));
                // What is equal to one of them is equal to all. Of the first table there may be several that nothing has made equal yet.
                let to_first = theirs.iter().map(|theirs| (mine[0], *theirs));
                let others = mine[1..].iter().filter(|mine| !tied.contains(*mine)).map(|mine| (*mine, theirs[0]));
                on.extend(to_first.chain(others).map(|(a, b)| (Expr::Column(a.clone()), Expr::Column(b.clone()))));
                tied.extend(mine.iter().chain(&theirs).copied());
            }
            let filter = conjunction(self.due(before, table).cloned());
            let joined = self.joined_rows(before, rows, table);
            let other = Arc::new(self.tables[table].clone());
            let (left, right) = if rows <= self.rows[table] {
                (plan, other)
            } else {
                on = on.into_iter().map(|(mine, theirs)| (theirs, mine)).collect();
                (other, plan)
            };
            let null = NullEquality::NullEqualsNothing;
            let join = Join::try_new(left, right, on, filter, JoinType::Inner, JoinConstraint::On, null, false)?;
            plan = Arc::new(LogicalPlan::Join(join));
            (before, rows) = (before | 1 << table, joined);
        }
        Ok(Arc::unwrap_or_clone(plan))
    }
}

/// Runs `look` on the HBase table that a scan is of.
fn of_table<T>(plan: &LogicalPlan, look: impl FnOnce(&HBaseTable, &[Expr]) -> Option<T>) -> Option<T> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    look(provider.downcast_ref::<HBaseTable>()?, &scan.filters)
}

/// About how many rows a plan has.
fn rows_of(plan: &LogicalPlan) -> Option<f64> {
    Some(match plan {
        LogicalPlan::TableScan(_) => {
            of_table(plan, |table, filters| table.rows_with(&filters.iter().collect::<Vec<_>>()))?.max(1.0)
        }
        LogicalPlan::Filter(filter) => {
            let predicates = split_conjunction(&filter.predicate).len();
            (rows_of(&filter.input)? * PASSES.powi(predicates.min(3) as i32)).max(1.0)
        }
        LogicalPlan::Projection(projection) => rows_of(&projection.input)?,
        LogicalPlan::SubqueryAlias(alias) => rows_of(&alias.input)?,
        LogicalPlan::Sort(sort) => rows_of(&sort.input)?.min(sort.fetch.map_or(f64::MAX, |fetch| fetch as f64)),
        LogicalPlan::Window(window) => rows_of(&window.input)?,
        LogicalPlan::Distinct(_) => rows_of(plan.inputs().first()?)? * GROUPS,
        LogicalPlan::Limit(limit) => match limit.get_fetch_type() {
            Ok(FetchType::Literal(Some(fetch))) => rows_of(&limit.input)?.min(fetch as f64),
            _ => rows_of(&limit.input)?,
        },
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => 1.0,
        LogicalPlan::Aggregate(aggregate) => (rows_of(&aggregate.input)? * GROUPS).max(1.0),
        LogicalPlan::Union(union) => union.inputs.iter().map(|input| rows_of(input)).sum::<Option<f64>>()?,
        LogicalPlan::Values(values) => values.values.len() as f64,
        LogicalPlan::EmptyRelation(empty) => f64::from(u8::from(empty.produce_one_row)),
        LogicalPlan::Join(join) => {
            let (left, right) = (rows_of(&join.left)?, rows_of(&join.right)?);
            match join.join_type {
                JoinType::LeftSemi | JoinType::LeftAnti => left * HAVE_ONE,
                JoinType::RightSemi | JoinType::RightAnti => right * HAVE_ONE,
                _ => left.max(right),
            }
        }
        _ => return None,
    })
}

/// The scan whose rows come out of a plan, some left out.
fn scan_below(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::TableScan(_) => Some(plan),
        LogicalPlan::Filter(filter) => scan_below(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => scan_below(&alias.input),
        LogicalPlan::Projection(projection) if projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) => {
            scan_below(&projection.input)
        }
        LogicalPlan::Join(join) if matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) => {
            scan_below(&join.left)
        }
        _ => None,
    }
}

/// Rows that servers look at for a scan.
fn reads_of(plan: &LogicalPlan) -> Option<f64> {
    of_table(scan_below(plan)?, |table, filters| table.rows_read_with(&filters.iter().collect::<Vec<_>>()))
}

/// Rows of the whole HBase table whose rows come out of a plan, and its key's columns as they are called there: all of them or none.
fn key_of(plan: &LogicalPlan) -> Option<(f64, Vec<Column>)> {
    let scan = scan_below(plan)?;
    let (rows, names) = of_table(scan, |table, _| {
        let names: Vec<String> =
            table.mapping.key_columns().into_iter().map(|at| table.mapping.columns[at].name.clone()).collect();
        Some((table.known_histogram()?.all().rows, names))
    })?;
    let key = names.iter().map(|name| column_of(plan, name)).collect::<Option<Vec<Column>>>();
    Some((rows, key.unwrap_or_default()))
}

fn leading_key_of(plan: &LogicalPlan) -> Option<Column> {
    let name = of_table(scan_below(plan)?, |table, _| {
        let first = *table.mapping.key_columns().first()?;
        (table.mapping.salt_buckets == 0).then(|| table.mapping.columns[first].name.clone())
    })?;
    column_of(plan, &name)
}

fn column_of(plan: &LogicalPlan, name: &str) -> Option<Column> {
    plan.schema().columns().into_iter().find(|column| column.name == name)
}
