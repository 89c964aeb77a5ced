//! Conditions of checkAndMutate. Follows: `HRegion#checkAndMutateInternal`.

use super::Writer;
use crate::error::Result;
use crate::scan::open::RegionReader;
use base::{ReadMode, ReadPoint};
use cell::CellBuffer;
use filter::CompareOp;
use model::mutation::ConditionTest;
use model::{Condition, Get};

impl Writer<'_> {
    /// Whether the condition holds, and the timestamp of the cell that was looked at (0 without one).
    pub(super) fn check_condition(&self, condition: &Condition, mode: ReadMode<'_>) -> Result<(bool, i64)> {
        let mut get = Get::new(condition.row.clone());
        get.time_range = condition.time_range;
        match &condition.test {
            ConditionTest::Value { family, qualifier, .. } => {
                if self.core.store(family).is_none() {
                    return Err(self.core.no_such_family(family));
                }
                get.columns.insert(family.clone(), vec![qualifier.clone()]);
            }
            ConditionTest::Filter(filter) => get.filter = Some(filter.clone()),
        }
        let mut found = CellBuffer::new();
        RegionReader::new(self.core).read_row(&get, ReadPoint::ALL, mode, &mut found)?;
        let first = (!found.is_empty()).then(|| found.get(0));
        let seen_timestamp = first.map_or(0, |cell| cell.timestamp());
        let ConditionTest::Value { op, comparator, .. } = &condition.test else {
            return Ok((first.is_some(), seen_timestamp));
        };
        let holds = match first {
            // An empty value stands for "absent".
            first if comparator.value_bytes().is_empty() => {
                let absent = first.is_none_or(|cell| cell.value().is_empty());
                absent == (*op != CompareOp::NotEqual)
            }
            // Read as `value OP cell`, so the answer of the comparator is turned round.
            Some(cell) => op.passes(comparator.compare(cell.value())?.reverse()).unwrap_or(false),
            None => false,
        };
        Ok((holds, seen_timestamp))
    }
}
