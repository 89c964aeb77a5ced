//! A table's columns over one axis of keys: what a picture is drawn from.

use crate::column::{Column, KeyRange, Load, joined};
use crate::history::{History, Level};
use model::TableName;

/// Rows of a grid at most.
pub const MAX_ROWS: usize = 128;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Rows read and written.
    #[default]
    Operations,
    /// Rows read.
    Reads,
    /// Rows written.
    Writes,
    /// Bytes read.
    ReadBytes,
    /// Bytes written.
    WrittenBytes,
}

impl Measure {
    /// That of a load.
    pub fn of(self, load: &Load) -> u64 {
        match self {
            Measure::Operations => load.reads.saturating_add(load.writes),
            Measure::Reads => load.reads,
            Measure::Writes => load.writes,
            Measure::ReadBytes => load.read_bytes,
            Measure::WrittenBytes => load.written_bytes,
        }
    }
}

/// Columns of equal time, rows of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// When the first column begins.
    pub start_ms: i64,
    /// Time of a column.
    pub column_ms: i64,
    /// Columns, those without load among them.
    pub columns: usize,
    /// The lowest key of each row, in order.
    pub rows: Vec<Box<[u8]>>,
    /// `columns` times `rows`, column by column.
    pub values: Vec<u64>,
    /// Ranges with the most load in the last minutes, the hottest first, and the load of all.
    pub hottest: Vec<KeyRange>,
    /// Load of the last minutes.
    pub recent: Load,
}

/// How far back `hottest` looks.
const RECENT_MS: i64 = 3 * 60_000;
/// Ranges in `hottest`.
const HOTTEST: usize = 12;

impl History {
    /// The load of a table from `span_ms` ago until now. The axis is cut where the load of the whole time is: about as much in each row.
    pub fn grid(&self, table: &TableName, measure: Measure, now_ms: i64, span_ms: i64) -> Grid {
        let level = Level::of_span(span_ms);
        let column_ms = level.column_ms();
        let from_ms = now_ms.saturating_sub(span_ms);
        let columns = self.columns(table, level, from_ms);
        let measured = |range: &KeyRange| measure.of(&range.load) > 0;
        let mut all: Vec<KeyRange> = columns
            .clone()
            .flat_map(|(_, column)| column.ranges().iter().filter(|range| measured(range)).cloned())
            .collect();
        all.sort_by(|a, b| (&a.first, &a.last).cmp(&(&b.first, &b.last)));
        let rows: Vec<Box<[u8]>> = {
            let mut rows: Vec<_> = joined(all, MAX_ROWS).into_iter().map(|range| range.first).collect();
            rows.dedup();
            rows
        };
        let start_ms = from_ms - from_ms.rem_euclid(column_ms);
        let count = usize::try_from((now_ms - start_ms) / column_ms).unwrap_or(0) + 1;
        let count = count.min(level.columns() + 1);
        let mut values = vec![0; count * rows.len()];
        for (at_ms, column) in columns {
            let at = usize::try_from((at_ms - start_ms) / column_ms).unwrap_or(usize::MAX);
            if at_ms >= start_ms && at < count {
                fill(&mut values[at * rows.len()..][..rows.len()], &rows, column, measure);
            }
        }
        let recent: Vec<KeyRange> = self
            .columns(table, Level::Minutes, now_ms - RECENT_MS)
            .flat_map(|(_, column)| column.ranges().iter().cloned())
            .collect();
        let recent = Column::of(recent);
        let mut hottest: Vec<KeyRange> = recent.ranges().iter().filter(|range| measured(range)).cloned().collect();
        hottest.sort_by_key(|range| std::cmp::Reverse(measure.of(&range.load)));
        hottest.truncate(HOTTEST);
        Grid { start_ms, column_ms, columns: count, rows, values, hottest, recent: recent.load() }
    }
}

/// Adds a column to its place; a range that spans several rows is spread over them evenly.
fn fill(out: &mut [u64], rows: &[Box<[u8]>], column: &Column, measure: Measure) {
    for range in column.ranges() {
        let row_of = |key: &[u8]| rows.partition_point(|first| **first <= *key).saturating_sub(1);
        let (from, to) = (row_of(&range.first), row_of(&range.last));
        let (Some(touched), value) = (out.get_mut(from..=to.max(from)), measure.of(&range.load)) else { continue };
        let (share, rest) = (value / touched.len() as u64, value % touched.len() as u64);
        for (number, cell) in touched.iter_mut().enumerate() {
            *cell = cell.saturating_add(share + u64::from((number as u64) < rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{KeySampler, Kind};

    #[test]
    fn a_sequential_load_is_a_diagonal() {
        let (mut history, sampler) = (History::new(4 << 20), KeySampler::new());
        let table: TableName = TableName::parse("t").expect("a name");
        let minutes = 60_u32;
        for minute in 0..minutes {
            for n in 0..1000 {
                let key = (minute * 1000 + n).to_be_bytes();
                sampler.passed(&table, Kind::Write, 1, |_| (&key, 100));
            }
            history.record(i64::from(minute) * 60_000, sampler.take());
        }
        let grid = history.grid(&table, Measure::Writes, i64::from(minutes) * 60_000 - 1, 3_540_000);
        assert_eq!(grid.values.iter().sum::<u64>(), 60_000);
        assert!(grid.rows.len() > 20 && grid.columns == 60, "{} rows, {} columns", grid.rows.len(), grid.columns);
        // The middle of each column's load moves on and never back.
        let middle = |column: &[u64]| -> f64 {
            let sum: u64 = column.iter().sum();
            column.iter().enumerate().map(|(row, value)| row as f64 * *value as f64).sum::<f64>() / sum as f64
        };
        let middles: Vec<f64> = grid.values.chunks(grid.rows.len()).map(middle).collect();
        assert!(middles.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "{middles:?}");
        assert!(middles[59] - middles[0] > grid.rows.len() as f64 * 0.8, "{middles:?}");
    }

    #[test]
    fn a_hot_key_is_named() {
        let (mut history, sampler) = (History::new(4 << 20), KeySampler::new());
        let table: TableName = TableName::parse("t").expect("a name");
        for n in 0..50_000_u32 {
            let key = (n.wrapping_mul(2_654_435_761)).to_be_bytes();
            sampler.passed(&table, Kind::Read, 1, |_| (if n % 10 == 0 { b"celebrity" } else { &key[..] }, 100));
        }
        history.record(30_000, sampler.take());
        let grid = history.grid(&table, Measure::Reads, 31_000, 3_600_000);
        let hot = &grid.hottest[0];
        assert_eq!((&*hot.first, &*hot.last), (&b"celebrity"[..], &b"celebrity"[..]));
        assert!(hot.load.reads.abs_diff(5000) < 700, "{:?}", hot.load);
        assert!(grid.recent.reads.abs_diff(50_000) < 5000, "{:?}", grid.recent);
    }

    #[test]
    fn nothing_is_known_of_a_table_without_load() {
        let grid = History::new(1000).grid(&TableName::parse("t").expect("a name"), Measure::Reads, 1_000_000, 60_000);
        assert!(grid.rows.is_empty() && grid.values.is_empty() && grid.hottest.is_empty());
    }
}
