//! Rows of HBase as columns of Arrow.

use std::ops::Range;
use std::sync::Arc;

use client::Row;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use types::{KeyLayout, Packed, Value};

use crate::arrow_values::{Builder, at_row};
use crate::error::SqlError;
use crate::mapping::{Column, Mapping, Place};

/// Rows that there is room for at first.
const USUAL_ROWS: usize = 1024;
/// Rows of a batch. As DataFusion's batches.
const BATCH_ROWS: usize = 8192;
/// What a batch takes of rows' bytes: queries account for memory by the batch, and those of many sessions have little room each.
const BATCH_BYTES: usize = 1 << 20;

/// A column that is wanted, and where it goes.
struct Wanted {
    column: Column,
    builder: Builder,
}

/// Takes rows in, hands batches out.
pub struct Decoder {
    schema: SchemaRef,
    layout: KeyLayout,
    /// In the order of the output.
    wanted: Vec<Wanted>,
    /// Those in the key: its position there, and its place in `wanted`.
    of_key: Vec<(usize, usize)>,
    /// Those in cells, in the order of cells.
    of_cells: Vec<usize>,
    /// Those that say when the row was written.
    of_time: Vec<usize>,
    ranges: Vec<Range<usize>>,
    scratch: Vec<u8>,
    rows: usize,
    bytes: usize,
}

impl Decoder {
    /// Of the columns at `projection`.
    pub fn new(mapping: &Mapping, projection: &[usize], schema: SchemaRef) -> Decoder {
        Decoder::for_rows(mapping, projection, schema, USUAL_ROWS)
    }

    /// As [`Decoder::new`], with room for so many rows.
    pub fn for_rows(mapping: &Mapping, projection: &[usize], schema: SchemaRef, rows: usize) -> Decoder {
        let columns = projection.iter().map(|at| mapping.columns[*at].clone());
        let of = |column: Column| Wanted { builder: Builder::with_capacity(&column, rows), column };
        let wanted: Vec<Wanted> = columns.map(of).collect();
        let mut of_key = Vec::new();
        let mut of_cells = Vec::new();
        let mut of_time = Vec::new();
        for (at, Wanted { column, .. }) in wanted.iter().enumerate() {
            match column.place {
                Place::Key(position) => of_key.push((position, at)),
                Place::Cell { .. } | Place::Packed { .. } => of_cells.push(at),
                Place::WrittenAt => of_time.push(at),
            }
        }
        of_cells.sort_by(|a, b| wanted[*a].column.stored_in().cmp(&wanted[*b].column.stored_in()));
        Decoder {
            schema,
            layout: mapping.key_layout(),
            wanted,
            of_key,
            of_cells,
            of_time,
            ranges: Vec::new(),
            scratch: Vec::new(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Rows since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the next batch is large enough, by its rows or by the bytes of these.
    pub fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Takes all versions of a row in, the newest first: each is what the newest cells were when one of its cells was written.
    ///
    /// # Errors
    /// As [`Decoder::push`].
    pub fn push_versions(&mut self, row: &Row) -> Result<(), SqlError> {
        let mut times: Vec<i64> = row.iter().map(|cell| cell.timestamp()).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        times.dedup();
        times.into_iter().try_for_each(|time| self.push_up_to(row, time))
    }

    /// Takes a row in.
    ///
    /// # Errors
    /// Stored bytes that are no value of a column's type.
    pub fn push(&mut self, row: &Row) -> Result<(), SqlError> {
        self.push_up_to(row, i64::MAX)
    }

    /// Takes in the newest cells of a row that were written up to a time.
    fn push_up_to(&mut self, row: &Row, last: i64) -> Result<(), SqlError> {
        let key = row.row();
        if !self.of_key.is_empty() {
            let first = &self.wanted[self.of_key[0].1].column;
            self.layout.split(key, &mut self.ranges).map_err(|e| at_row(e, first, key))?;
            for (position, at) in &self.of_key {
                let Wanted { column, builder } = &mut self.wanted[*at];
                let range = self.ranges[*position].clone();
                if column.is_array {
                    let bytes = self.layout.ascending(*position, key, range, &mut self.scratch);
                    let bytes = bytes.map_err(|e| at_row(e, column, key))?;
                    builder.push_stored(column, bytes).map_err(|e| at_row(e, column, key))?;
                    continue;
                }
                let value = self.layout.value(*position, key, range, &mut self.scratch);
                builder.push(column, value.map_err(|e| at_row(e, column, key))?)?;
            }
        }
        for at in &self.of_time {
            let Wanted { column, builder } = &mut self.wanted[*at];
            let written = row.iter().map(|cell| cell.timestamp()).filter(|time| *time <= last).max();
            builder.push(column, written.map(|ms| Value::Timestamp { ms, nanos: 0 }))?;
        }
        let mut cells = row.iter().filter(|cell| last == i64::MAX || cell.timestamp() <= last).peekable();
        for at in &self.of_cells {
            let Wanted { column, builder } = &mut self.wanted[*at];
            let cell = column.stored_in().unwrap_or_default();
            while cells.next_if(|next| (next.family(), next.qualifier()) < cell).is_some() {}
            let bytes = match cells.peek() {
                Some(next) if (next.family(), next.qualifier()) == cell => next.value(),
                _ => &[],
            };
            let bytes = match column.place {
                Place::Packed { at, .. } if !bytes.is_empty() => Packed::new(bytes).and_then(|packed| packed.get(at)),
                _ => Ok(bytes),
            };
            let bytes = bytes.map_err(|e| at_row(e, column, key))?;
            builder.push_stored(column, bytes).map_err(|e| at_row(e, column, key))?;
        }
        self.rows += 1;
        self.bytes += row.byte_len();
        Ok(())
    }

    /// What came in since the last batch.
    ///
    /// # Errors
    /// None that is known.
    pub fn finish(&mut self) -> Result<RecordBatch, SqlError> {
        let arrays = self.wanted.iter_mut().map(|wanted| wanted.builder.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|e| SqlError::new(crate::error::SqlState::INTERNAL_ERROR, e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proto::pb;
    use types::SqlType;

    use super::*;
    use crate::mapping::Kind;

    fn column(name: &str, place: Place) -> Column {
        Column {
            name: name.to_owned(),
            sql_type: SqlType::Varchar,
            max_chars: None,
            decimal: None,
            not_null: matches!(place, Place::Key(_)),
            descending: false,
            is_array: false,
            with_time: false,
            place,
            comment: None,
        }
    }

    fn row(number: usize, value_bytes: usize) -> Row {
        let cell = pb::Cell {
            row: Some(Bytes::from(format!("{number:06}"))),
            family: Some(Bytes::from_static(b"0")),
            qualifier: Some(Bytes::from_static(b"v")),
            timestamp: Some(1),
            cell_type: Some(4),
            value: Some(Bytes::from(vec![b'v'; value_bytes])),
            ..pb::Cell::default()
        };
        Row::of_result(&pb::Result { cell: vec![cell], ..pb::Result::default() }).expect("a row")
    }

    #[test]
    fn a_batch_is_full_by_its_rows_or_by_their_bytes() {
        let of_cell = Place::Cell { family: "0".to_owned(), qualifier: b"v".to_vec() };
        let mapping = Mapping {
            schema: "public".to_owned(),
            name: "t".to_owned(),
            hbase_table: "t".to_owned(),
            kind: Kind::Table,
            columns: vec![column("k", Place::Key(0)), column("v", of_cell)],
            salt_buckets: 0,
            phoenix: None,
            comment: None,
            version: 0,
        };
        let mut decoder = Decoder::new(&mapping, &[0, 1], mapping.arrow_schema());
        let mut rows_of_batch = |value_bytes: usize| {
            let mut rows = 0;
            while !decoder.is_full() {
                decoder.push(&row(rows, value_bytes)).expect("a text");
                rows += 1;
            }
            assert_eq!(decoder.finish().expect("a batch").num_rows(), rows);
            rows
        };
        assert_eq!(rows_of_batch(10), BATCH_ROWS);
        assert_eq!(rows_of_batch(256 << 10), 4, "a new batch counts anew");
        assert_eq!(rows_of_batch(BATCH_BYTES), 1);
    }
}
