//! What of a WHERE clause the servers do: ranges of row keys from predicates on key columns, filters from those on cells.

use bytes::Bytes;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use filter::Filter;
use types::{KeyLayout, Order, SqlType, salt_of, successor};

use crate::cell_filter::{cell_filter, weaker_filter};
use crate::comparison::{column_of, comparison, encoded, like_prefix, literal};
use crate::interval::{End, Interval, Set, intersect, set_of, unite};
use crate::mapping::{Column, Mapping, Place};

/// Ranges that a list of predicates may become; above, the last column's predicates stay with the planner.
const MAX_RANGES: usize = 10_000;

/// A range of row keys; an empty `stop` is the table's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key after it.
    pub stop: Vec<u8>,
}

impl KeyRange {
    /// Whether only one key is in it.
    pub fn is_one_key(&self) -> bool {
        self.stop.len() == self.start.len() + 1 && self.stop.starts_with(&self.start) && self.stop.ends_with(&[0])
    }

    /// What of it is in another one.
    pub fn within(&self, start: &[u8], stop: &[u8]) -> Option<KeyRange> {
        let first = if *self.start < *start { start } else { &self.start[..] };
        let last = match (self.stop.is_empty(), stop.is_empty()) {
            (true, _) => stop,
            (_, true) => &self.stop[..],
            _ => stop.min(&self.stop[..]),
        };
        let range = KeyRange { start: first.to_vec(), stop: last.to_vec() };
        (range.stop.is_empty() || range.start < range.stop).then_some(range)
    }
}

/// What the servers do of a WHERE clause.
#[derive(Debug, Clone, Default)]
pub struct Pushed {
    /// Whether the servers do it, for each predicate that was asked for.
    pub exact: Vec<bool>,
    /// Whether it makes the ranges smaller, exactly or not.
    pub narrows: Vec<bool>,
    /// Row keys to be read, sorted; the whole table where there is none.
    pub ranges: Option<Vec<KeyRange>>,
    /// The filters on cells, all of which must pass.
    pub filters: Vec<Filter>,
    /// Cells that the filters look at.
    pub cells: Vec<(Bytes, Bytes)>,
    /// Whether a row passes only if one of those cells is there.
    pub needs_a_cell: bool,
}

/// Splits predicates, all of which must hold, into what the servers do and what is left.
pub fn push_down(mapping: &Mapping, predicates: &[&Expr]) -> Pushed {
    let layout = mapping.key_layout();
    let key = mapping.key_columns();
    let none = vec![false; predicates.len()];
    let mut pushed = Pushed { exact: none.clone(), narrows: none, ..Pushed::default() };
    let mut of_key: Vec<Vec<(usize, Passing)>> = vec![Vec::new(); key.len()];
    let mut pages = Vec::new();
    for (at, predicate) in predicates.iter().enumerate() {
        if let Some(passing) = key_set(mapping, predicate) {
            of_key[passing.column].push((at, passing));
        } else if let Some(test) = cell_filter(mapping, predicate) {
            pushed.exact[at] = true;
            pushed.needs_a_cell |= test.needs_a_cell;
            pushed.cells.extend(test.cells);
            pushed.filters.push(test.filter);
        } else {
            if let Some(page) = page(mapping, &layout, predicate, (0, &mut Vec::new())) {
                pushed.narrows[at] = true;
                pages.push(page);
            }
            for (column, of_column) in of_key.iter_mut().enumerate() {
                let set = values_at_most(mapping, predicate, column);
                of_column.extend(set.map(|set| (at, Passing { column, set, is_exact: false })));
            }
            if let Some(test) = weaker_filter(mapping, predicate) {
                pushed.narrows[at] = true;
                pushed.needs_a_cell |= test.needs_a_cell;
                pushed.cells.extend(test.cells);
                pushed.filters.push(test.filter);
            }
        }
    }
    pushed.ranges = key_ranges(&layout, of_key, &pages, &mut pushed.exact, &mut pushed.narrows);
    pushed
}

/// Whether a predicate on one column becomes a range of keys, where the columns before it are known, or a filter.
pub fn can_be_pushed(mapping: &Mapping, predicate: &Expr) -> bool {
    key_set(mapping, predicate).is_some() || cell_filter(mapping, predicate).is_some()
}

/// Cross product of the leading columns' values with the intervals of the first column that has more than points; of it what is in all `pages`.
fn key_ranges(
    layout: &KeyLayout,
    of_key: Vec<Vec<(usize, Passing)>>,
    pages: &[KeyRange],
    exact: &mut [bool],
    narrows: &mut [bool],
) -> Option<Vec<KeyRange>> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut ranges: Option<Vec<KeyRange>> = None;
    let columns = of_key.len();
    let in_pages = |range: KeyRange| pages.iter().try_fold(range, |range, page| range.within(&page.start, &page.stop));
    for (column, sets) in of_key.into_iter().enumerate() {
        let of_column = sets.iter().map(|(_, passing)| passing.set.clone());
        let Some(set) = of_column.reduce(|a, b| intersect(&a, &b)) else { break };
        if prefixes.len().saturating_mul(set.len()) > MAX_RANGES {
            break;
        }
        for (at, passing) in &sets {
            (exact[*at], narrows[*at]) = (passing.is_exact, true);
        }
        if set.iter().all(|interval| interval.as_point().is_some()) {
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| {
                    set.iter().filter_map(Interval::as_point).map(|value| {
                        let mut longer = prefix.clone();
                        layout.append_encoded(column, value, &mut longer);
                        longer
                    })
                })
                .collect();
            let whole = column + 1 == columns;
            let one = |prefix: &Vec<u8>| {
                let mut start = prefix.clone();
                // As of keys whose later columns are NULL.
                layout.without_end(column, &mut start);
                KeyRange { start, stop: after(prefix, whole) }
            };
            ranges = Some(prefixes.iter().map(one).collect());
            if whole {
                let keys = ranges.map(|keys| keys.into_iter().filter_map(in_pages).collect());
                return keys.map(|keys| with_salt_of_keys(layout, keys));
            }
            continue;
        }
        let of = |prefix: &Vec<u8>| {
            set.iter().map(|i| range_of(layout, column, prefix, i)).filter(is_not_empty).collect::<Vec<_>>()
        };
        ranges = Some(prefixes.iter().flat_map(of).collect());
        break;
    }
    let all = || (!pages.is_empty()).then(|| vec![KeyRange { start: Vec::new(), stop: Vec::new() }]);
    let ranges = ranges.or_else(all)?.into_iter().filter_map(in_pages).collect();
    Some(with_every_salt(layout, ranges))
}

fn is_not_empty(range: &KeyRange) -> bool {
    range.stop.is_empty() || range.start < range.stop
}

/// The first key after those of a value: they begin with `bytes`, or are just that.
fn after(bytes: &[u8], is_whole_key: bool) -> Vec<u8> {
    if is_whole_key { [bytes, &[0]].concat() } else { successor(bytes).unwrap_or_default() }
}

fn range_of(layout: &KeyLayout, column: usize, prefix: &[u8], interval: &Interval) -> KeyRange {
    let at = |value: &[u8]| {
        let mut bytes = prefix.to_vec();
        layout.append_encoded(column, value, &mut bytes);
        bytes
    };
    let past = |value: &[u8]| after(&at(value), layout.is_open_ended(column));
    // The first key with a value has nothing after it where all later columns are NULL.
    let first_of = |value: &[u8]| {
        let mut bytes = at(value);
        layout.without_end(column, &mut bytes);
        bytes
    };
    let descending = layout.columns[column].order == Order::Descending;
    let variable = layout.columns[column].fixed_width().is_none();
    // What comes first by its bytes.
    let (first, last) = if descending { (&interval.high, &interval.low) } else { (&interval.low, &interval.high) };
    let start = match first {
        End::At(value) => first_of(value),
        End::Past(value) => past(value),
        // NULLs are in front of all values, and no comparison holds for them.
        End::Open if variable && layout.is_open_ended(column) => [prefix, &[0]].concat(),
        End::Open if variable => [prefix, &[1]].concat(),
        End::Open => prefix.to_vec(),
    };
    let stop = match last {
        End::At(value) => past(value),
        End::Past(value) => first_of(value),
        End::Open => successor(prefix).unwrap_or_default(),
    };
    KeyRange { start, stop }
}

fn with_salt_of_keys(layout: &KeyLayout, mut keys: Vec<KeyRange>) -> Vec<KeyRange> {
    if layout.salt_buckets > 0 {
        for range in &mut keys {
            let salt = salt_of(&range.start, layout.salt_buckets);
            range.start.insert(0, salt);
            range.stop.insert(0, salt);
        }
    }
    sorted(keys)
}

fn with_every_salt(layout: &KeyLayout, ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    if layout.salt_buckets == 0 {
        return sorted(ranges);
    }
    let salted = (0..layout.salt_buckets).flat_map(|salt| {
        ranges.iter().map(move |range| {
            let start = [&[salt], &range.start[..]].concat();
            let stop = if range.stop.is_empty() { vec![salt + 1] } else { [&[salt], &range.stop[..]].concat() };
            KeyRange { start, stop }
        })
    });
    sorted(salted.collect())
}

fn sorted(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    ranges.dedup();
    ranges
}

/// What a predicate on one column of the key lets pass.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Passing {
    /// Position in the key.
    column: usize,
    /// No other values.
    set: Set,
    /// Whether all of these.
    is_exact: bool,
}

/// Those values that pass a predicate on one column of the key.
fn key_set(mapping: &Mapping, expr: &Expr) -> Option<Passing> {
    let exactly = |column, set| Some(Passing { column, set, is_exact: true });
    let key_column = |expr: &Expr| match column_of(mapping, expr)?.1 {
        column @ Column { place: Place::Key(at), .. } => Some((*at, column)),
        _ => None,
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (key_set(mapping, left)?, key_set(mapping, right)?);
            let is_exact = left.is_exact && right.is_exact;
            let set = if *op == Operator::And { intersect(&left.set, &right.set) } else { unite(left.set, right.set) };
            (left.column == right.column).then_some(Passing { column: left.column, set, is_exact })
        }
        Expr::BinaryExpr(_) => {
            let (_, column, op, value) = comparison(mapping, expr)?;
            let Place::Key(at) = column.place else { return None };
            if let Some(interval) = of_char(column, op, value) {
                return Some(Passing { column: at, set: vec![interval], is_exact: false });
            }
            let bytes = encoded(mapping, column, value, matches!(op, Operator::Eq | Operator::NotEq))?;
            exactly(at, set_of(op, bytes)?)
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let (at, column) = key_column(expr)?;
            let points = list.iter().map(|e| encoded(mapping, column, literal(e)?, true).map(Interval::point));
            exactly(at, unite(points.collect::<Option<Set>>()?, Set::new()))
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let (at, column) = key_column(expr)?;
            if let SqlType::Char(_) = column.sql_type {
                let low = of_char(column, Operator::GtEq, literal(low)?)?;
                let high = of_char(column, Operator::LtEq, literal(high)?)?;
                return Some(Passing { column: at, set: intersect(&vec![low], &vec![high]), is_exact: false });
            }
            let end = |e: &Expr| encoded(mapping, column, literal(e)?, false).map(End::At);
            let interval = Interval { low: end(low)?, high: end(high)? };
            exactly(at, unite(vec![interval], Set::new()))
        }
        Expr::Like(like) => {
            let (at, column) = key_column(&like.expr)?;
            let prefix = like_prefix(column, like)?;
            let high = successor(&prefix).map_or(End::Open, End::Past);
            exactly(at, vec![Interval { low: End::At(prefix), high }])
        }
        _ => None,
    }
}

/// Values of a column of the key among which is that of every row that passes, whatever else the predicate is about: of `(a, b) > (1, 2)`, said as
/// `a > 1 or a = 1 and b > 2`, those of `a` from 1 on.
fn values_at_most(mapping: &Mapping, expr: &Expr, column: usize) -> Option<Set> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (values_at_most(mapping, left, column), values_at_most(mapping, right, column)) {
                (Some(left), Some(right)) => Some(intersect(&left, &right)),
                (one, other) => one.or(other),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(unite(values_at_most(mapping, left, column)?, values_at_most(mapping, right, column)?))
        }
        _ => key_set(mapping, expr).filter(|passing| passing.column == column).map(|passing| passing.set),
    }
}

/// The rows from a key on, or up to one, that `(a, b) > (1, 2)` says, as `a > 1 or a = 1 and b > 2`, of columns that the key begins with: of those
/// from `column` on, where those before are `prefix`.
fn page(
    mapping: &Mapping,
    layout: &KeyLayout,
    expr: &Expr,
    (column, prefix): (usize, &mut Vec<u8>),
) -> Option<KeyRange> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) = expr else {
        let (op, value) = bound(mapping, layout, expr, column)?;
        let [interval] = &set_of(op, value)?[..] else { return None };
        let KeyRange { start, stop } = range_of(layout, column, prefix, interval);
        let is_lower = matches!(op, Operator::Gt | Operator::GtEq);
        return Some(if is_lower {
            KeyRange { start, stop: Vec::new() }
        } else {
            KeyRange { start: Vec::new(), stop }
        });
    };
    let ((op, value), rest) = match (bound(mapping, layout, left, column), bound(mapping, layout, right, column)) {
        (Some(bound), None) => (bound, right),
        (None, Some(bound)) => (bound, left),
        _ => return None,
    };
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) = &**rest else { return None };
    let equal = |expr: &Expr| {
        bound(mapping, layout, expr, column).is_some_and(|(op, same)| op == Operator::Eq && same == value)
    };
    let rest = match (equal(left), equal(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    layout.append_encoded(column, &value, prefix);
    let page = page(mapping, layout, rest, (column + 1, prefix))?;
    // All the comparisons are in one direction.
    let is_page = match op {
        Operator::Gt => page.stop.is_empty(),
        Operator::Lt => page.start.is_empty(),
        _ => false,
    };
    is_page.then_some(page)
}

/// How an ascending column of the key is compared, and with which bytes.
fn bound(mapping: &Mapping, layout: &KeyLayout, expr: &Expr, column: usize) -> Option<(Operator, Vec<u8>)> {
    let (_, of, op, value) = comparison(mapping, expr)?;
    if of.place != Place::Key(column) || layout.columns[column].order != Order::Ascending {
        return None;
    }
    let is_known = matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    is_known.then_some((op, encoded(mapping, of, value, false)?))
}

/// Bytes among which are those of all `char(n)` that compare so with a text. Stored ones end with spaces that SQL does not compare: a text that begins
/// with another is greater, but its bytes are less where it goes on with a control character.
fn of_char(column: &Column, op: Operator, value: &ScalarValue) -> Option<Interval> {
    let SqlType::Char(chars) = column.sql_type else { return None };
    let text = value.try_as_str().flatten().filter(|_| !column.is_array)?.trim_end_matches(' ').as_bytes();
    let padded = |with: u8| {
        let mut bytes = text.to_vec();
        bytes.resize(chars as usize, with);
        bytes
    };
    let is_longer = text.len() > chars as usize;
    match op {
        Operator::Gt | Operator::GtEq => Some(Interval { low: End::At(padded(0)), high: End::Open }),
        Operator::Lt | Operator::LtEq if text.iter().all(|byte| *byte >= b' ') => {
            let high = if op == Operator::Lt && !is_longer { End::Past(padded(b' ')) } else { End::At(padded(b' ')) };
            Some(Interval { low: End::Open, high })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_filter::said;
    use crate::mapping::Kind;

    #[test]
    fn ranges_of_padded_texts_leave_out_none_that_compares_so() {
        let column = Column {
            name: "c".to_owned(),
            sql_type: SqlType::Char(3),
            max_chars: None,
            decimal: None,
            not_null: true,
            descending: false,
            is_array: false,
            with_time: false,
            place: Place::Key(0),
            comment: None,
        };
        let letters = ["", "\u{1}", " ", "a", "b", "~"];
        let mut texts = std::collections::BTreeSet::new();
        for (a, b, c) in (0..216).map(|n| (n / 36, n / 6 % 6, n % 6)) {
            let text = [letters[a], letters[b], letters[c]].concat();
            texts.insert(text.trim_end_matches(' ').to_owned());
        }
        let (mut asked, mut left_out) = (0, 0);
        for limit in texts.iter().map(String::as_str).chain(["aaaa", "a\u{1}aa", "a  a"]) {
            for op in [Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq] {
                let Some(interval) = of_char(&column, op, &ScalarValue::from(limit)) else { continue };
                asked += 1;
                for text in &texts {
                    let stored = format!("{text:3}").into_bytes();
                    let is_in = !intersect(&vec![interval.clone()], &vec![Interval::point(stored)]).is_empty();
                    let compares = match op {
                        Operator::Lt => text.as_str() < limit,
                        Operator::LtEq => text.as_str() <= limit,
                        Operator::Gt => text.as_str() > limit,
                        _ => text.as_str() >= limit,
                    };
                    assert!(is_in || !compares, "{text:?} {op} {limit:?}");
                    left_out += usize::from(!is_in);
                }
            }
        }
        assert!(asked > 300 && left_out > asked * texts.len() / 4, "{left_out} of {asked} times {}", texts.len());
    }

    /// `a` and `b` are the key, `c` is a cell.
    fn mapping() -> Mapping {
        let column = |name: &str, place| Column {
            name: name.to_owned(),
            sql_type: SqlType::Integer,
            max_chars: None,
            decimal: None,
            not_null: matches!(place, Place::Key(_)),
            descending: false,
            is_array: false,
            with_time: false,
            place,
            comment: None,
        };
        let of_cell = Place::Cell { family: "0".to_owned(), qualifier: b"c".to_vec() };
        Mapping {
            schema: "public".to_owned(),
            name: "t".to_owned(),
            hbase_table: "t".to_owned(),
            kind: Kind::Table,
            columns: vec![column("a", Place::Key(0)), column("b", Place::Key(1)), column("c", of_cell)],
            salt_buckets: 0,
            phoenix: None,
            comment: None,
            version: 0,
        }
    }

    /// Of a predicate on them: first and last values of `a` and `b` in each range, and the filters.
    fn pushed(predicate: &Expr) -> (Vec<String>, Vec<String>) {
        let pushed = push_down(&mapping(), &[predicate]);
        assert_eq!(pushed.exact, [false]);
        assert_eq!(pushed.narrows, [pushed.ranges.is_some() || !pushed.filters.is_empty()]);
        let number = |bytes: &[u8]| i64::from(u32::from_be_bytes(bytes.try_into().expect("four bytes")) ^ (1 << 31));
        let key = |key: &[u8]| {
            key.chunks(4)
                .map(|part| if part.len() == 4 { number(part).to_string() } else { "+".to_owned() })
                .collect::<Vec<_>>()
                .join(" ")
        };
        let ranges = pushed.ranges.unwrap_or_default();
        let ranges = ranges.iter().map(|range| format!("{} to {}", key(&range.start), key(&range.stop))).collect();
        (ranges, pushed.filters.iter().map(said).collect())
    }

    #[test]
    fn what_each_alternative_demands_of_a_column_is_a_range_or_a_filter() {
        use datafusion::logical_expr::{col, lit};
        // The next page of an order by both.
        let next = col("a").gt(lit(1)).or(col("a").eq(lit(1)).and(col("b").gt(lit(2))));
        assert_eq!(pushed(&next).0, ["1 3 to "]);
        let before = col("a").eq(lit(1)).and(col("b").lt_eq(lit(2))).or(col("a").lt(lit(1)));
        assert_eq!(pushed(&before).0, [" to 1 3"]);
        let turned = col("a").lt(lit(1)).or(col("a").eq(lit(1)).and(col("b").gt(lit(2))));
        assert_eq!(pushed(&turned).0, [" to 2"], "no page, and what both demand of a");
        let pairs = [(1, 2), (3, 4)].map(|(a, b)| col("a").eq(lit(a)).and(col("b").eq(lit(b))));
        let pairs = pairs.into_iter().reduce(Expr::or).expect("two");
        assert_eq!(pushed(&pairs).0, ["1 2 to 1 2 +", "1 4 to 1 4 +", "3 2 to 3 2 +", "3 4 to 3 4 +"]);
        // What else is said of the row.
        let other = || (col("b") + col("c")).gt(lit(7));
        let mixed = col("a").eq(lit(1)).and(other()).or(col("a").eq(lit(5)).and(col("c").gt(lit(0))));
        assert_eq!(pushed(&mixed).0, ["1 to 2", "5 to 6"]);
        let filtered = col("c").eq(lit(1)).and(other()).or(col("c").eq(lit(4)).and(col("b").gt(lit(2))));
        let (ranges, filters) = pushed(&filtered);
        assert!(ranges.is_empty());
        assert_eq!(filters.len(), 1);
        assert!(filters[0].starts_with("(c Equal") && filters[0].contains("x01, c Equal"), "{filters:?}");
        // One alternative demands nothing of either.
        let open = col("a").eq(lit(1)).or(other()).or(col("c").eq(lit(4)));
        assert_eq!(pushed(&open), (Vec::new(), Vec::new()));
    }
}
