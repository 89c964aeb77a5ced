//! Sets of a column's values by their encoded bytes, as intervals that do not touch: what comparisons leave of them, and what AND and OR make of that.

use std::cmp::Ordering;

use datafusion::logical_expr::Operator;

/// One end of an interval of encoded values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// There is none.
    Open,
    /// At this value, which is inside.
    At(Vec<u8>),
    /// Just after all that is at this value (as a lower end), or just before it (as an upper one).
    Past(Vec<u8>),
}

/// Encoded values from `low` to `high`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Where it begins.
    pub low: End,
    /// Where it ends.
    pub high: End,
}

impl Interval {
    /// One value.
    pub fn point(value: Vec<u8>) -> Interval {
        Interval { low: End::At(value.clone()), high: End::At(value) }
    }

    /// The value, where it is only one.
    pub fn as_point(&self) -> Option<&[u8]> {
        match (&self.low, &self.high) {
            (End::At(low), End::At(high)) if low == high => Some(low),
            _ => None,
        }
    }

    /// Whether no value is in it.
    pub fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (End::At(low), End::At(high)) => low > high,
            (End::At(low) | End::Past(low), End::At(high) | End::Past(high)) => low >= high,
            _ => false,
        }
    }
}

fn compare_low(a: &End, b: &End) -> Ordering {
    match (a, b) {
        (End::Open, End::Open) => Ordering::Equal,
        (End::Open, _) => Ordering::Less,
        (_, End::Open) => Ordering::Greater,
        (End::At(a), End::At(b)) | (End::Past(a), End::Past(b)) => a.cmp(b),
        (End::At(a), End::Past(b)) => a.cmp(b).then(Ordering::Less),
        (End::Past(a), End::At(b)) => a.cmp(b).then(Ordering::Greater),
    }
}

fn compare_high(a: &End, b: &End) -> Ordering {
    match (a, b) {
        (End::Open, End::Open) => Ordering::Equal,
        (End::Open, _) => Ordering::Greater,
        (_, End::Open) => Ordering::Less,
        (End::At(a), End::At(b)) | (End::Past(a), End::Past(b)) => a.cmp(b),
        (End::At(a), End::Past(b)) => a.cmp(b).then(Ordering::Greater),
        (End::Past(a), End::At(b)) => a.cmp(b).then(Ordering::Less),
    }
}

/// Values of one column, as intervals that are sorted and do not touch; none at all where the list is empty.
pub type Set = Vec<Interval>;

/// What is in both.
pub fn intersect(a: &Set, b: &Set) -> Set {
    let mut both = Set::new();
    for x in a {
        for y in b {
            let low = if compare_low(&x.low, &y.low).is_ge() { &x.low } else { &y.low };
            let high = if compare_high(&x.high, &y.high).is_le() { &x.high } else { &y.high };
            let interval = Interval { low: low.clone(), high: high.clone() };
            if !interval.is_empty() {
                both.push(interval);
            }
        }
    }
    both
}

/// What is in one or the other.
pub fn unite(mut a: Set, b: Set) -> Set {
    a.extend(b);
    a.retain(|interval| !interval.is_empty());
    a.sort_by(|x, y| compare_low(&x.low, &y.low));
    let mut united: Set = Vec::with_capacity(a.len());
    for next in a {
        match united.last_mut() {
            Some(last) if touch(&last.high, &next.low) => {
                if compare_high(&next.high, &last.high).is_gt() {
                    last.high = next.high;
                }
            }
            _ => united.push(next),
        }
    }
    united
}

/// Whether no value is between an upper end and a lower one.
fn touch(high: &End, low: &End) -> bool {
    match (high, low) {
        (End::Open, _) | (_, End::Open) => true,
        (End::Past(high), End::Past(low)) => high > low,
        (End::At(high) | End::Past(high), End::At(low) | End::Past(low)) => high >= low,
    }
}

/// The values that compare so with one; none for another comparison.
pub fn set_of(op: Operator, value: Vec<u8>) -> Option<Set> {
    let interval = |low, high| vec![Interval { low, high }];
    Some(match op {
        Operator::Eq => vec![Interval::point(value)],
        Operator::NotEq => {
            let below = Interval { low: End::Open, high: End::Past(value.clone()) };
            vec![below, Interval { low: End::Past(value), high: End::Open }]
        }
        Operator::Lt => interval(End::Open, End::Past(value)),
        Operator::LtEq => interval(End::Open, End::At(value)),
        Operator::Gt => interval(End::Past(value), End::Open),
        Operator::GtEq => interval(End::At(value), End::Open),
        _ => return None,
    })
}
