//! Statistics of a file's keys, values and rows. Follows: `HFilePrettyPrinter.KeyValueStatsCollector`.

use std::io::Write;

use cell::CellRef;
use cell::print::to_string_binary;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Upper bounds of the ranges that are counted.
const RANGES: &[u64] = &[
    1,
    3,
    10,
    50,
    100,
    500,
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    750_000,
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
];
/// Numbers above are counted as this one.
const HIGHEST: u64 = 1 << 40;

/// One quantity.
struct Quantity {
    name: &'static str,
    histogram: Option<Histogram<u64>>,
    min: u64,
    max: u64,
    ranges: [u64; RANGES.len() + 1],
}

impl Quantity {
    fn new(name: &'static str) -> Quantity {
        let histogram = Histogram::new_with_bounds(1, HIGHEST, 3).ok();
        Quantity { name, histogram, min: u64::MAX, max: 0, ranges: [0; RANGES.len() + 1] }
    }

    fn add(&mut self, value: u64) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(value);
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.ranges[RANGES.partition_point(|bound| *bound < value)] += 1;
    }

    /// The number that so many per cent do not exceed.
    fn percentile(&self, percent: f64) -> f64 {
        let value = self.histogram.as_ref().map_or(0, |histogram| histogram.value_at_percentile(percent));
        value.clamp(self.min.min(self.max), self.max) as f64
    }

    fn print(&self, ranges: bool, out: &mut impl Write) -> std::io::Result<()> {
        let count = self.histogram.as_ref().map_or(0, |histogram| histogram.len());
        let (mean, deviation) = self.histogram.as_ref().map_or((0.0, 0.0), |h| (h.mean(), h.stdev()));
        writeln!(out, "   {}:", self.name)?;
        writeln!(out, "               min = {}", self.min)?;
        writeln!(out, "               max = {}", self.max)?;
        writeln!(out, "              mean = {mean:.2}")?;
        writeln!(out, "            stddev = {deviation:.2}")?;
        writeln!(out, "            median = {:.2}", self.percentile(50.0))?;
        for (label, percent) in [
            ("              75%", 75.0),
            ("              95%", 95.0),
            ("              98%", 98.0),
            ("              99%", 99.0),
            ("            99.9%", 99.9),
        ] {
            writeln!(out, "{label} <= {:.2}", self.percentile(percent))?;
        }
        writeln!(out, "             count = {count}")?;
        if ranges { self.print_ranges(out) } else { Ok(()) }
    }

    /// Counts by range: those that are not empty, and the one before the first of them.
    fn print_ranges(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "           (range <= count):")?;
        let mut seen = false;
        for (i, count) in self.ranges.iter().enumerate() {
            if *count == 0 {
                continue;
            }
            if !seen && i > 0 {
                writeln!(out, "{:>18} <= 0", RANGES[i - 1])?;
            }
            seen = true;
            writeln!(out, "{:>18} <= {count}", RANGES.get(i).copied().unwrap_or(i64::MAX as u64))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let (mean, deviation) = self.histogram.as_ref().map_or((0.0, 0.0), |h| (h.mean(), h.stdev()));
        let ranges: serde_json::Map<String, Value> = self
            .ranges
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(i, count)| (RANGES.get(i).map_or("more".to_owned(), u64::to_string), json!(count)))
            .collect();
        json!({
            "min": self.min, "max": self.max, "mean": mean, "stddev": deviation,
            "median": self.percentile(50.0), "p75": self.percentile(75.0), "p95": self.percentile(95.0),
            "p99": self.percentile(99.0), "p999": self.percentile(99.9), "ranges": ranges,
        })
    }
}

/// What is counted of a file.
pub(super) struct Stats {
    ranges: bool,
    key_bytes: Quantity,
    value_bytes: Quantity,
    row_bytes: Quantity,
    row_columns: Quantity,
    row: Vec<u8>,
    bytes_of_row: u64,
    columns_of_row: u64,
    key_bytes_of_row: u64,
    biggest_row: Vec<u8>,
    biggest_row_bytes: u64,
}

impl Stats {
    pub fn new(ranges: bool) -> Stats {
        Stats {
            ranges,
            key_bytes: Quantity::new("Key length"),
            value_bytes: Quantity::new("Val length"),
            row_bytes: Quantity::new("Row size (bytes)"),
            row_columns: Quantity::new("Row size (columns)"),
            row: Vec::new(),
            bytes_of_row: 0,
            columns_of_row: 0,
            key_bytes_of_row: 0,
            biggest_row: Vec::new(),
            biggest_row_bytes: 0,
        }
    }

    pub fn add(&mut self, cell: CellRef<'_>) {
        self.value_bytes.add(cell.value().len() as u64);
        if self.columns_of_row > 0 && self.row != cell.row() {
            self.end_row();
        }
        self.bytes_of_row += cell.bytes().len() as u64;
        self.columns_of_row += 1;
        self.key_bytes_of_row = cell.key().bytes().len() as u64;
        if self.row != cell.row() {
            self.row.clear();
            self.row.extend_from_slice(cell.row());
        }
    }

    fn end_row(&mut self) {
        self.row_bytes.add(self.bytes_of_row);
        self.row_columns.add(self.columns_of_row);
        self.key_bytes.add(self.key_bytes_of_row);
        if self.bytes_of_row > self.biggest_row_bytes {
            self.biggest_row_bytes = self.bytes_of_row;
            self.biggest_row.clone_from(&self.row);
        }
        (self.bytes_of_row, self.columns_of_row) = (0, 0);
    }

    pub fn print(&mut self, file: &str, as_json: bool, out: &mut impl Write) -> std::io::Result<()> {
        if self.columns_of_row > 0 {
            self.end_row();
        }
        let quantities = [&self.key_bytes, &self.value_bytes, &self.row_bytes, &self.row_columns];
        if as_json {
            let stats: serde_json::Map<String, Value> =
                quantities.iter().map(|quantity| (quantity.name.to_owned(), quantity.json())).collect();
            let biggest = to_string_binary(&self.biggest_row);
            return writeln!(out, "{}", json!({"file": file, "stats": stats, "biggest_row": biggest}));
        }
        writeln!(out, "Stats:")?;
        if self.biggest_row_bytes == 0 {
            return writeln!(out, "no data available for statistics");
        }
        for quantity in quantities {
            quantity.print(self.ranges, out)?;
        }
        writeln!(out, "\n\nKey of biggest row: {}", to_string_binary(&self.biggest_row))
    }
}
