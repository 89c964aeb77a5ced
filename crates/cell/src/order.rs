//! HBase's order of cells: row, family, qualifier ascending; timestamp, type, sequence id descending.

use crate::{CellRef, KeyRef};
use std::cmp::Ordering;

/// Which comparator a table's cells are sorted by. The choice is per table and only concerns rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Order {
    /// Rows as unsigned bytes (`CellComparatorImpl`).
    #[default]
    User,
    /// Rows as `table,startKey,id` compared part by part (`MetaCellComparator`).
    Meta,
}

impl Order {
    /// Compares two rows.
    #[inline]
    pub fn rows(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::User => a.cmp(b),
            Order::Meta => meta_rows(a, b),
        }
    }

    /// Compares two flat keys; sequence ids are not looked at. A key with empty family and qualifier and type
    /// Minimum sorts last in its row.
    #[inline]
    pub fn keys(self, a: KeyRef<'_>, b: KeyRef<'_>) -> Ordering {
        self.rows(a.row(), b.row()).then_with(|| without_row(a, b))
    }

    /// Compares two cells: keys, then sequence ids, newer first.
    #[inline]
    pub fn cells(self, a: CellRef<'_>, b: CellRef<'_>) -> Ordering {
        self.keys(a.key(), b.key()).then_with(|| b.seq_id().cmp(&a.seq_id()))
    }
}

/// Compares what follows the row.
#[inline]
pub fn without_row(a: KeyRef<'_>, b: KeyRef<'_>) -> Ordering {
    let ((a_column, a_family_len), (b_column, b_family_len)) = (a.column(), b.column());
    if a_column.is_empty() && a.type_code() == 0 {
        // The fake key "last on row"; two of them are equal.
        return if b_column.is_empty() && b.type_code() == 0 { Ordering::Equal } else { Ordering::Greater };
    }
    if b_column.is_empty() && b.type_code() == 0 {
        return Ordering::Less;
    }
    let columns = if a_family_len == b_family_len {
        a_column.cmp(b_column)
    } else {
        a.family().cmp(b.family()).then_with(|| a.qualifier().cmp(b.qualifier()))
    };
    columns.then_with(|| b.timestamp().cmp(&a.timestamp())).then_with(|| b.type_code().cmp(&a.type_code()))
}

/// Compares `table,startKey,id` rows: table, then start key, then the rest. Follows: `MetaCellComparator#compareRows`.
fn meta_rows(a: &[u8], b: &[u8]) -> Ordering {
    let (a_first, b_first) = (a.iter().position(|c| *c == b','), b.iter().position(|c| *c == b','));
    let table = a[..a_first.unwrap_or(a.len())].cmp(&b[..b_first.unwrap_or(b.len())]);
    if table != Ordering::Equal {
        return table;
    }
    let (Some(a_first), Some(b_first)) = (a_first, b_first) else {
        return a_first.is_some().cmp(&b_first.is_some());
    };
    let (a_rest, b_rest) = (&a[a_first + 1..], &b[b_first + 1..]);
    let last = |rest: &[u8]| rest.iter().rposition(|c| *c == b',');
    let (a_last, b_last) = (last(a_rest), last(b_rest));
    a_rest[..a_last.unwrap_or(a_rest.len())].cmp(&b_rest[..b_last.unwrap_or(b_rest.len())]).then_with(|| {
        match (a_last, b_last) {
            (Some(x), Some(y)) => a_rest[x + 1..].cmp(&b_rest[y + 1..]),
            (x, y) => x.is_some().cmp(&y.is_some()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellType;

    fn key(row: &str, qualifier: &str, ts: i64, t: CellType) -> Vec<u8> {
        let mut out = Vec::new();
        KeyRef::write(&mut out, row.as_bytes(), b"f", qualifier.as_bytes(), ts, t.code());
        out
    }

    #[test]
    fn newer_and_deletes_come_first() {
        let sorted = [
            key("a", "", 9, CellType::DeleteFamily),
            key("a", "q", 9, CellType::DeleteColumn),
            key("a", "q", 9, CellType::Delete),
            key("a", "q", 9, CellType::Put),
            key("a", "q", 8, CellType::Put),
            key("a", "q1", 100, CellType::Put),
            key("aa", "", 100, CellType::Put),
        ];
        for pair in sorted.windows(2) {
            let (a, b) = (KeyRef::from_checked(&pair[0]), KeyRef::from_checked(&pair[1]));
            assert_eq!(Order::User.keys(a, b), Ordering::Less);
            assert_eq!(Order::User.keys(b, a), Ordering::Greater);
        }
        let mut last = Vec::new();
        KeyRef::write(&mut last, b"a", b"", b"", 0, 0);
        let last = KeyRef::from_checked(&last);
        assert_eq!(Order::User.keys(KeyRef::from_checked(&sorted[5]), last), Ordering::Less);
        assert_eq!(Order::User.keys(last, KeyRef::from_checked(&sorted[6])), Ordering::Less);
    }

    #[test]
    fn meta_rows_compare_by_their_parts() {
        let less = |a: &str, b: &str| {
            assert_eq!(Order::Meta.rows(a.as_bytes(), b.as_bytes()), Ordering::Less, "{a} {b}");
            assert_eq!(Order::Meta.rows(b.as_bytes(), a.as_bytes()), Ordering::Greater, "{b} {a}");
        };
        less("t1,a,1", "t1!,a,1");
        less("t1,,1", "t1,a,1");
        less("t1,a,1", "t1,a,b,1");
        less("t1,a,1", "t1,a,2");
        less("t1", "t1,,1");
        less("t1,zzz,9", "t1-x,,1");
    }
}
