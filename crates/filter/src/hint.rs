//! Where a scanner may go on: flat keys that sort before everything else of their row, column or version.

use cell::{CellType, KeyRef, MAX_ROW_LENGTH, Order};
use std::cmp::Ordering;

/// Writes the first key of `row`. False for a row that no cell can have.
pub(crate) fn first_on_row(out: &mut Vec<u8>, row: &[u8]) -> bool {
    out.clear();
    if row.len() > MAX_ROW_LENGTH {
        return false;
    }
    KeyRef::write(out, row, b"", b"", i64::MAX, CellType::Maximum.code());
    true
}

/// Writes the first key of column `qualifier` in the row and family of `at`.
pub(crate) fn first_on_column(out: &mut Vec<u8>, at: KeyRef<'_>, qualifier: &[u8]) {
    out.clear();
    KeyRef::write(out, at.row(), at.family(), qualifier, i64::MAX, CellType::Maximum.code());
}

/// Writes the first key at `timestamp` in the column of `at`.
pub(crate) fn first_at_timestamp(out: &mut Vec<u8>, at: KeyRef<'_>, timestamp: i64) {
    out.clear();
    KeyRef::write(out, at.row(), at.family(), at.qualifier(), timestamp, CellType::Maximum.code());
}

/// Writes the last key in the column of `at`.
pub(crate) fn last_on_column(out: &mut Vec<u8>, at: KeyRef<'_>) {
    out.clear();
    KeyRef::write(out, at.row(), at.family(), at.qualifier(), i64::MIN, CellType::Minimum.code());
}

/// The order in which hints are compared: in a reversed scan all of HBase's order turned round. That is not the order
/// in which such a scan meets the cells of a row, and an OR of column filters loses cells by it; so does HBase's.
pub(crate) fn order(reversed: bool, a: KeyRef<'_>, b: KeyRef<'_>) -> Ordering {
    let order = Order::User.keys(a, b);
    if reversed { order.reverse() } else { order }
}

/// The smallest row that is above every row with `prefix`; `None` when there is none. (HBase's
/// `increaseLastNonMaxByte` takes bytes as signed and so can name a row below the prefix.)
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|b| *b != 0xFF)?;
    let mut row = prefix[..=last].to_vec();
    row[last] += 1;
    Some(row)
}
