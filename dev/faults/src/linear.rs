//! Whether one row's history could have happened one operation at a time.
//!
//! Follows Lowe's just-in-time linearization (after Wing and Gong): walking through the history in the order of time,
//! it keeps every state in which the row may be. A state is the row's value and which of the open operations have
//! taken effect. An operation that nobody heard of again may have taken effect at any moment until its `end`, or never.

use std::collections::BTreeSet;

/// No time: the end of an operation that nobody heard of again.
pub const NEVER: u64 = u64::MAX;

/// Most operations open at the same time that are looked into.
const MAX_OPEN: usize = 60;
/// Most states looked into; beyond it the history is given up, not condemned.
const MAX_STATES: usize = 2_000_000;

/// What an operation did. Values are unique; `None` is the row that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Wrote.
    Write(u64),
    /// Saw.
    Read(Option<u64>),
    /// Saw the first and wrote the second, in one.
    Swap(u64, u64),
    /// Saw something other than this.
    Differs(u64),
}

/// An operation of a client.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When it was sent.
    pub start: u64,
    /// When its answer came, or when it can have had no effect any more; [`NEVER`].
    pub end: u64,
    /// Whether it certainly took effect.
    pub certain: bool,
    /// What it did.
    pub op: Op,
}

impl Op {
    /// The value after it, or `None` when it cannot happen on `value`.
    fn apply(self, value: Option<u64>) -> Option<Option<u64>> {
        match self {
            Op::Write(new) => Some(Some(new)),
            Op::Read(seen) => (seen == value).then_some(value),
            Op::Swap(old, new) => (value == Some(old)).then_some(Some(new)),
            Op::Differs(from) => (value != Some(from)).then_some(value),
        }
    }

    fn writes(self) -> Option<u64> {
        match self {
            Op::Write(new) | Op::Swap(_, new) => Some(new),
            Op::Read(_) | Op::Differs(_) => None,
        }
    }

    fn sees(self) -> Option<u64> {
        match self {
            Op::Read(seen) => seen,
            Op::Swap(old, _) => Some(old),
            Op::Write(_) | Op::Differs(_) => None,
        }
    }
}

/// What the checker says.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order that explains everything.
    Linearizable,
    /// There is none: the operation that cannot be explained.
    Violation(String),
    /// Too much was open at once to be decided.
    GaveUp,
}

/// Looks for an order of `events` of one row, which is not there at first.
pub fn check(events: &[Event]) -> Verdict {
    let events = without_the_unseen(events);
    // At one time, who begins comes before who ends.
    let mut steps: Vec<(u64, bool, usize)> = Vec::with_capacity(events.len() * 2);
    for (at, event) in events.iter().enumerate() {
        steps.push((event.start, false, at));
        if event.end != NEVER {
            steps.push((event.end, true, at));
        }
    }
    steps.sort_unstable();
    let mut slots: Vec<Option<usize>> = Vec::new();
    let mut states: BTreeSet<(Option<u64>, u64)> = BTreeSet::from([(None, 0)]);
    for (_, is_end, at) in steps {
        if !is_end {
            match slots.iter().position(Option::is_none) {
                Some(free) => slots[free] = Some(at),
                None => slots.push(Some(at)),
            }
            if slots.len() > MAX_OPEN {
                return Verdict::GaveUp;
            }
            continue;
        }
        let slot = slots.iter().position(|held| *held == Some(at)).expect("it began");
        let bit = 1 << slot;
        let Some(reached) = reach(&states, &events, &slots) else { return Verdict::GaveUp };
        let certain = events[at].certain;
        let mut next = BTreeSet::new();
        for (value, done) in &reached {
            if done & bit != 0 {
                next.insert((*value, done & !bit));
            }
        }
        if !certain {
            next.extend(states.iter().filter(|(_, done)| done & bit == 0));
        }
        if next.is_empty() {
            let possible: BTreeSet<Option<u64>> = reached.iter().map(|(value, _)| *value).collect();
            let open: Vec<Op> = slots.iter().flatten().map(|at| events[*at].op).collect();
            return Verdict::Violation(format!(
                "{:?} cannot have happened: the row could hold {possible:?}, open were {open:?}",
                events[at].op
            ));
        }
        states = next;
        slots[slot] = None;
    }
    Verdict::Linearizable
}

/// Every state that open operations can lead to.
fn reach(
    states: &BTreeSet<(Option<u64>, u64)>,
    events: &[Event],
    slots: &[Option<usize>],
) -> Option<BTreeSet<(Option<u64>, u64)>> {
    let mut all = states.clone();
    let mut todo: Vec<(Option<u64>, u64)> = states.iter().copied().collect();
    while let Some((value, done)) = todo.pop() {
        for (slot, held) in slots.iter().enumerate() {
            let bit = 1u64 << slot;
            let Some(at) = held else { continue };
            if done & bit != 0 {
                continue;
            }
            if let Some(after) = events[*at].op.apply(value)
                && all.insert((after, done | bit))
            {
                todo.push((after, done | bit));
            }
        }
        if all.len() > MAX_STATES {
            return None;
        }
    }
    Some(all)
}

/// A write whose fate is open and that nobody saw need not have happened: without it there is an order whenever there
/// is one with it, if nobody's mere "differs" hangs on it; those that might are left out, too.
fn without_the_unseen(events: &[Event]) -> Vec<Event> {
    let seen: BTreeSet<u64> = events.iter().filter(|e| e.certain).filter_map(|e| e.op.sees()).collect();
    let open_swaps: BTreeSet<u64> = events.iter().filter(|e| !e.certain).filter_map(|e| e.op.sees()).collect();
    let unseen = |event: &Event| {
        !event.certain && event.op.writes().is_none_or(|value| !seen.contains(&value) && !open_swaps.contains(&value))
    };
    let first_unseen = events.iter().filter(|e| unseen(e)).map(|e| e.start).min().unwrap_or(NEVER);
    let hangs = |event: &Event| matches!(event.op, Op::Differs(_)) && event.end > first_unseen;
    events.iter().filter(|event| !unseen(event) && !hangs(event)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure(start: u64, end: u64, op: Op) -> Event {
        Event { start, end, certain: true, op }
    }

    fn maybe(start: u64, end: u64, op: Op) -> Event {
        Event { start, end, certain: false, op }
    }

    #[test]
    fn reads_see_the_latest_write() {
        let good = [
            sure(0, 1, Op::Read(None)),
            sure(2, 5, Op::Write(1)),
            sure(3, 4, Op::Read(Some(1))),
            sure(6, 7, Op::Swap(1, 2)),
            sure(8, 9, Op::Differs(1)),
            sure(10, 11, Op::Read(Some(2))),
        ];
        assert_eq!(check(&good), Verdict::Linearizable);
        let stale = [sure(0, 1, Op::Write(1)), sure(2, 3, Op::Write(2)), sure(4, 5, Op::Read(Some(1)))];
        assert!(matches!(check(&stale), Verdict::Violation(_)));
        let back = [
            sure(0, 1, Op::Write(1)),
            sure(2, 9, Op::Write(2)),
            sure(3, 4, Op::Read(Some(2))),
            sure(5, 6, Op::Read(Some(1))),
        ];
        assert!(matches!(check(&back), Verdict::Violation(_)), "a new value was seen, then the old one");
        let lost = [sure(0, 1, Op::Write(1)), sure(2, 3, Op::Read(None))];
        assert!(matches!(check(&lost), Verdict::Violation(_)));
        let twice = [sure(0, 1, Op::Write(1)), sure(2, 5, Op::Swap(1, 2)), sure(3, 6, Op::Swap(1, 3))];
        assert!(matches!(check(&twice), Verdict::Violation(_)), "both swapped the same value away");
    }

    #[test]
    fn an_open_write_may_come_late_or_never_but_not_after_its_end() {
        let write = maybe(0, NEVER, Op::Write(1));
        assert_eq!(check(&[write, sure(5, 6, Op::Read(None))]), Verdict::Linearizable);
        assert_eq!(check(&[write, sure(1, 2, Op::Read(None)), sure(5, 6, Op::Read(Some(1)))]), Verdict::Linearizable);
        let gone = [write, sure(5, 6, Op::Read(Some(1))), sure(7, 8, Op::Read(None))];
        assert!(matches!(check(&gone), Verdict::Violation(_)));
        let ended = [maybe(0, 3, Op::Write(1)), sure(4, 5, Op::Read(None)), sure(6, 7, Op::Read(Some(1)))];
        assert!(matches!(check(&ended), Verdict::Violation(_)), "it rose from the dead");
        let ended = [maybe(0, 3, Op::Write(1)), sure(4, 5, Op::Read(Some(1))), sure(6, 7, Op::Read(Some(1)))];
        assert_eq!(check(&ended), Verdict::Linearizable);
    }

    #[test]
    fn many_unseen_writes_cost_nothing() {
        let mut events: Vec<Event> = (0..500).map(|i| maybe(i, NEVER, Op::Write(1000 + i))).collect();
        events.push(sure(600, 601, Op::Write(1)));
        events.push(sure(602, 603, Op::Read(Some(1))));
        assert_eq!(check(&events), Verdict::Linearizable);
    }
}
