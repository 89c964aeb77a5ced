//! Row keys with free positions (`FuzzyRowFilter`). A row that is shorter than a key matches if it agrees as far as
//! it goes; one that is longer may go on as it likes.

use crate::{Error, FuzzyKey, Verdict, hint};
use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct Fuzzy {
    rules: Vec<Rule>,
    reversed: bool,
    /// Where the last match was: rows of one rule often come together.
    last_match: usize,
    out: bool,
    done: bool,
}

#[derive(Debug)]
struct Rule {
    key: Vec<u8>,
    /// Whether each position is fixed.
    fixed: Vec<bool>,
    next: Next,
}

/// The next row that could match a rule.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Unknown,
    Row(Vec<u8>),
    None,
}

/// What the constructor of HBase refuses.
pub(crate) fn check(keys: &[FuzzyKey]) -> Result<(), Error> {
    if keys.is_empty() {
        return Err(Error::illegal("a FuzzyRowFilter needs at least one key"));
    }
    match keys.iter().find(|key| key.key.len() != key.mask.len()) {
        Some(bad) => Err(Error::illegal(format!(
            "Fuzzy pair lengths do not match: {{{},{}}}",
            cell::print::Binary(&bad.key),
            cell::print::Binary(&bad.mask)
        ))),
        None => Ok(()),
    }
}

impl Rule {
    fn new(key: &FuzzyKey, mask_v2: bool) -> Rule {
        let free = if mask_v2 { 2 } else { 0 };
        // A client prepares its masks (fixed 0xFF, free 2 or, in the old form, 0); one that did not has 0 and 1.
        let prepared = key.mask.iter().all(|m| *m == 0xFF || *m == free);
        let fixed = key.mask.iter().map(|m| *m >= 0x80 || (!prepared && *m == 0)).collect();
        Rule { key: key.key.to_vec(), fixed, next: Next::Unknown }
    }

    /// The first fixed position where `row` differs.
    fn mismatch(&self, row: &[u8]) -> Option<usize> {
        let parts = row.iter().zip(&self.key).zip(&self.fixed);
        parts.enumerate().find(|(_, ((row, key), fixed))| **fixed && row != key).map(|(i, _)| i)
    }

    /// The first row after `row`, in the scan's direction, that could match; the row itself differs from the rule.
    /// Reversed: a row above all rows that could.
    fn next_after(&self, row: &[u8], reversed: bool) -> Option<Vec<u8>> {
        let at = self.mismatch(row)?;
        let ahead = if reversed { row[at] > self.key[at] } else { row[at] < self.key[at] };
        let (most, least) = if reversed { (0, 0xFF) } else { (0xFF, 0) };
        let changed = if ahead {
            at
        } else {
            // The row is beyond what the fixed byte allows: a free byte before it must move on.
            (0..at).rev().find(|i| !self.fixed[*i] && row[*i] != most)?
        };
        let mut next = row[..changed].to_vec();
        let rest = self.key.iter().zip(&self.fixed).skip(changed);
        next.extend(rest.map(|(key, fixed)| if *fixed { *key } else { least }));
        if !ahead {
            next[changed] = if reversed { row[changed] - 1 } else { row[changed] + 1 };
        }
        // What is free at the end need not be there.
        let needed = self.fixed.iter().rposition(|fixed| *fixed).map_or(0, |last| last + 1).max(changed + 1);
        next.truncate(needed);
        if reversed { hint::after_prefix(&next) } else { Some(next) }
    }
}

impl Fuzzy {
    pub(super) fn new(keys: &[FuzzyKey], mask_v2: bool, reversed: bool) -> Fuzzy {
        let keys = keys.iter().filter(|key| key.key.len() == key.mask.len());
        let rules = keys.map(|key| Rule::new(key, mask_v2)).collect();
        Fuzzy { rules, reversed, last_match: 0, out: false, done: false }
    }

    pub(super) fn reset(&mut self) {
        self.out = false;
    }

    pub(super) fn done(&self) -> bool {
        self.done
    }

    pub(super) fn row(&self) -> bool {
        self.out
    }

    pub(super) fn cell(&mut self, row: &[u8]) -> Verdict {
        let count = self.rules.len();
        for i in (self.last_match..count).chain(0..self.last_match.min(count)) {
            if self.rules[i].mismatch(row).is_none() {
                self.last_match = i;
                return Verdict::Include;
            }
        }
        self.last_match = 0;
        self.out = true;
        Verdict::SeekNextUsingHint
    }

    /// The nearest of the rules' next rows. When no rule has one, nothing more can match and the scan is over.
    pub(super) fn hint(&mut self, row: &[u8], out: &mut Vec<u8>) -> bool {
        let ahead = |a: &[u8], b: &[u8]| a.cmp(b) == if self.reversed { Ordering::Less } else { Ordering::Greater };
        let mut nearest: Option<&[u8]> = None;
        for rule in &mut self.rules {
            let stale = match &rule.next {
                Next::Unknown => true,
                Next::Row(next) => !ahead(next, row),
                Next::None => false,
            };
            if stale {
                rule.next = rule.next_after(row, self.reversed).map_or(Next::None, Next::Row);
            }
            if let Next::Row(next) = &rule.next
                && nearest.is_none_or(|n| ahead(n, next))
            {
                nearest = Some(next);
            }
        }
        match nearest {
            Some(next) => hint::first_on_row(out, next),
            None => {
                self.done = true;
                false
            }
        }
    }
}
