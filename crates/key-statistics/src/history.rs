//! Columns of all tables over time: fine ones of late, coarse ones of long ago.

use crate::column::Column;
use model::TableName;
use std::collections::{BTreeMap, VecDeque};

/// How fine columns are, and how many of them are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A minute each, for three hours.
    Minutes,
    /// Ten minutes each, for two days.
    TenMinutes,
    /// Two hours each, for five weeks.
    TwoHours,
}

impl Level {
    /// All of them, the finest first.
    pub const ALL: [Level; 3] = [Level::Minutes, Level::TenMinutes, Level::TwoHours];

    /// Time of a column.
    pub fn column_ms(self) -> i64 {
        match self {
            Level::Minutes => 60_000,
            Level::TenMinutes => 600_000,
            Level::TwoHours => 7_200_000,
        }
    }

    /// Columns that are kept.
    pub fn columns(self) -> usize {
        match self {
            Level::Minutes => 180,
            Level::TenMinutes => 288,
            Level::TwoHours => 420,
        }
    }

    /// The finest that reaches so far back.
    pub fn of_span(span_ms: i64) -> Level {
        let reaches = |level: &Level| level.column_ms().saturating_mul(level.columns() as i64) >= span_ms;
        Level::ALL.into_iter().find(reaches).unwrap_or(Level::TwoHours)
    }
}

/// Tables of a column at most: of more, those with the most load.
pub const MAX_TABLES: usize = 64;

/// The columns of one piece of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub start_ms: i64,
    pub tables: BTreeMap<TableName, Column>,
    /// Bytes of memory.
    size_bytes: usize,
}

impl Slot {
    pub fn new(start_ms: i64, tables: BTreeMap<TableName, Column>) -> Slot {
        let size_of = |(table, column): (&TableName, &Column)| table.as_str().len() + column.size_bytes();
        let size_bytes = tables.iter().map(size_of).sum();
        Slot { start_ms, tables, size_bytes }
    }
}

/// Everything that is known of the load of keys.
#[derive(Debug)]
pub struct History {
    pub(crate) levels: [VecDeque<Slot>; 3],
    budget_bytes: usize,
}

impl History {
    /// An empty one that is to hold no more than so many bytes.
    pub fn new(budget_bytes: usize) -> History {
        History { levels: [VecDeque::new(), VecDeque::new(), VecDeque::new()], budget_bytes }
    }

    /// Takes in what was seen in the minute up to `now_ms`. Cost: joins each table's column with one of each level.
    pub fn record(&mut self, now_ms: i64, mut tables: BTreeMap<TableName, Column>) {
        if tables.len() > MAX_TABLES {
            let mut weights: Vec<u64> = tables.values().map(|column| column.load().weight()).collect();
            weights.sort_unstable_by(|a, b| b.cmp(a));
            let least = weights[MAX_TABLES - 1];
            tables.retain(|_, column| column.load().weight() >= least);
        }
        for (slots, level) in self.levels.iter_mut().zip(Level::ALL) {
            let start_ms = now_ms - now_ms.rem_euclid(level.column_ms());
            let mut joined = tables.clone();
            // The column of now; and after a clock was set back those that are of times to come, or nothing would be seen until then.
            while let Some(slot) = slots.pop_back_if(|slot| slot.start_ms >= start_ms) {
                for (table, before) in slot.tables {
                    let column = joined.remove(&table).unwrap_or_default();
                    joined.insert(table, before.and(column));
                }
            }
            slots.push_back(Slot::new(start_ms, joined));
            let oldest_ms = start_ms.saturating_sub(level.column_ms().saturating_mul(level.columns() as i64));
            while slots.front().is_some_and(|slot| slot.start_ms <= oldest_ms) {
                slots.pop_front();
            }
        }
        self.keep_to_budget();
    }

    /// Bytes of memory, without what maps and queues add.
    pub fn size_bytes(&self) -> usize {
        self.levels.iter().flatten().map(|slot| slot.size_bytes).sum()
    }

    /// Drops the oldest columns of the level that holds most.
    fn keep_to_budget(&mut self) {
        let mut sizes = self.levels.each_ref().map(|slots| slots.iter().map(|slot| slot.size_bytes).sum::<usize>());
        while sizes.iter().sum::<usize>() > self.budget_bytes {
            let largest = (0..sizes.len()).max_by_key(|&level| sizes[level]).expect("there are three");
            let Some(slot) = self.levels[largest].pop_front() else { return };
            sizes[largest] = sizes[largest].saturating_sub(slot.size_bytes);
        }
    }

    /// Columns that were saved, older than those that are here.
    pub fn restore(&mut self, saved: History) {
        for (slots, old) in self.levels.iter_mut().zip(saved.levels) {
            let first_ms = slots.front().map_or(i64::MAX, |slot| slot.start_ms);
            for slot in old.into_iter().rev().filter(|slot| slot.start_ms < first_ms) {
                slots.push_front(slot);
            }
        }
        self.keep_to_budget();
    }

    /// Tables of which something is known, the names in order.
    pub fn tables(&self) -> Vec<TableName> {
        let mut tables: Vec<TableName> =
            self.levels.iter().flatten().flat_map(|slot| slot.tables.keys().cloned()).collect();
        tables.sort();
        tables.dedup();
        tables
    }

    /// The columns of a table from `from_ms` on, with the time at which each begins.
    pub fn columns<'a>(
        &'a self,
        table: &'a TableName,
        level: Level,
        from_ms: i64,
    ) -> impl Iterator<Item = (i64, &'a Column)> + Clone + 'a {
        let slots = &self.levels[level as usize];
        let since = slots.iter().filter(move |slot| slot.start_ms.saturating_add(level.column_ms()) > from_ms);
        since.filter_map(move |slot| Some((slot.start_ms, slot.tables.get(table)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{KeyRange, Load};

    fn table(name: &str) -> TableName {
        TableName::parse(name).expect("a name")
    }

    fn column(key: &str, reads: u64) -> Column {
        let key = key.as_bytes();
        Column::of(vec![KeyRange { first: key.into(), last: key.into(), load: Load { reads, ..Load::default() } }])
    }

    #[test]
    fn minutes_become_ten_minutes_and_hours() {
        let mut history = History::new(1 << 20);
        for minute in 0..600 {
            history.record(minute * 60_000 + 5, BTreeMap::from([(table("t"), column("k", 1))]));
        }
        assert_eq!(history.levels.each_ref().map(VecDeque::len), [180, 60, 5]);
        let name = table("t");
        let whole: u64 = history.columns(&name, Level::TwoHours, 0).map(|(_, column)| column.load().reads).sum();
        assert_eq!(whole, 600);
        let last: Vec<i64> = history.columns(&name, Level::Minutes, 598 * 60_000).map(|(start, _)| start).collect();
        assert_eq!(last, [598 * 60_000, 599 * 60_000]);
    }

    #[test]
    fn a_history_keeps_to_its_budget_and_to_the_busiest_tables() {
        let mut history = History::new(50_000);
        for minute in 0..30 {
            let tables = (0..100).map(|n| (table(&format!("t{n}")), column("a-key", n + 1)));
            history.record(minute * 60_000, tables.collect());
            assert!(history.size_bytes() <= 50_000, "minute {minute}");
        }
        assert!(history.tables().len() == MAX_TABLES && history.tables().contains(&table("t99")));
        assert!(!history.tables().contains(&table("t0")));
    }

    #[test]
    fn a_clock_that_is_set_back_loses_nothing_and_time_goes_on() {
        let mut history = History::new(1 << 20);
        history.record(600_000, BTreeMap::from([(table("t"), column("k", 1))]));
        history.record(60_000, BTreeMap::from([(table("t"), column("k", 2))]));
        history.record(120_000, BTreeMap::from([(table("t"), column("k", 4))]));
        let name = table("t");
        let columns = history.columns(&name, Level::Minutes, 0);
        let reads: Vec<(i64, u64)> = columns.map(|(start_ms, column)| (start_ms, column.load().reads)).collect();
        assert_eq!(reads, [(60_000, 3), (120_000, 4)]);
    }

    #[test]
    fn the_finest_level_that_reaches_back_is_taken() {
        assert_eq!(Level::of_span(3_600_000), Level::Minutes);
        assert_eq!(Level::of_span(24 * 3_600_000), Level::TenMinutes);
        assert_eq!(Level::of_span(i64::MAX), Level::TwoHours);
    }
}
