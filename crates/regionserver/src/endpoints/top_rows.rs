//! The first rows of an order that is not the keys', found while a region's rows are walked: Basalt's own endpoint, for SQL. It knows bytes and
//! where they lie.
//!
//! What it keeps is bounded: rows that are too large together are an error, and the client reads all of them instead.

use super::expression::{Computed, Program, programs};
use super::row_values::{self, At, RowValues};
use super::walk::{self, Fold};
use crate::blocking::Caller;
use crate::server::RegionServer;
use bytes::Bytes;
use cell::{CellBuffer, CellRef};
use convert::{from_proto, to_proto};
use proto::top_rows::{METHOD, Request, Response, SERVICE, SortKey};
use proto::{Message, pb};
use region::Region;
use rpc::exception::Exception;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What the rows of one call may take together.
const MAX_BYTES: usize = 16 << 20;
/// What a row takes besides its bytes, and a cell of it, about.
const OVERHEAD_BYTES: usize = 128;
/// Rows and sort keys of a request at most: more are no query's.
const MAX_ROWS: u32 = 100_000;
const MAX_SORT_KEYS: usize = 100;

/// Whether a call is for this endpoint.
pub(super) fn is_meant(call: &pb::CoprocessorServiceCall) -> bool {
    call.service_name == SERVICE && call.method_name == METHOD
}

/// A request that can be answered.
pub(super) struct Asked {
    request: Request,
    programs: Vec<Program>,
}

/// Reads a request.
///
/// # Errors
/// It is not readable, or names what is not there.
pub(super) fn decode(bytes: Bytes) -> Result<Asked, Exception> {
    let refused = |why: &str| Exception::do_not_retry(format!("cannot read the request of {SERVICE}: {why}"));
    let request = Request::decode(bytes).map_err(|error| refused(&error.to_string()))?;
    if request.limit > MAX_ROWS || request.order.len() > MAX_SORT_KEYS {
        return Err(refused(&format!("more than {MAX_ROWS} rows or {MAX_SORT_KEYS} sort keys")));
    }
    let programs = programs(&request.expressions).map_err(refused)?;
    let sources: Option<Vec<_>> = request.order.iter().map(|key| key.source.as_ref()).collect();
    let sources = sources.ok_or_else(|| refused("a sort key of nothing"))?;
    row_values::check_sources(sources.into_iter(), &request.key_columns, &programs).map_err(refused)?;
    Ok(Asked { request, programs })
}

/// The region's share.
///
/// # Errors
/// Those of the scan; values that are no numbers; rows that are too large.
pub(super) async fn top_rows(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    mut asked: Asked,
    caller: &Caller,
) -> Result<pb::NameBytesPair, Exception> {
    let region_end_key = region.info().end_key.clone();
    let answer = |rows| Response { region_end_key, rows }.encode_to_vec();
    let mut scan = from_proto::scan(asked.request.scan.take().unwrap_or_default())?;
    let value = if asked.request.limit == 0 {
        answer(Vec::new())
    } else {
        let rows = TopRows::new(asked);
        if rows.values.needs_no_cells() {
            row_values::leave_values(&mut scan);
        }
        walk::fold(server, region, scan, rows, |rows: TopRows| answer(rows.into_rows()), caller).await?
    };
    Ok(pb::NameBytesPair { name: SERVICE.to_owned(), value: Some(value.into()) })
}

/// A row that is among the first so far.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    /// Bytes that sort as the rows do.
    order: Vec<u8>,
    /// Later rows come behind those that are equal to them.
    number: u64,
    cells: KeptCells,
}

/// Not compared: no two rows have one number.
struct KeptCells(pb::Result);

impl PartialEq for KeptCells {
    fn eq(&self, _: &KeptCells) -> bool {
        true
    }
}

impl Eq for KeptCells {}

impl PartialOrd for KeptCells {
    fn partial_cmp(&self, other: &KeptCells) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeptCells {
    fn cmp(&self, _: &KeptCells) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let cell = |cell: &pb::Cell| OVERHEAD_BYTES + cell.row().len() + cell.qualifier().len() + cell.value().len();
        OVERHEAD_BYTES + self.order.len() + self.cells.0.cell.iter().map(cell).sum::<usize>()
    }
}

struct TopRows {
    values: RowValues,
    order: Vec<(SortKey, At)>,
    limit: usize,
    /// The last of those that are kept on top.
    kept: BinaryHeap<Kept>,
    bytes: usize,
    /// Cells of the row that is walked, where it is not seen as a whole.
    cells: CellBuffer,
    /// Sort key of the row that has been walked.
    of_row: Vec<u8>,
    rows: u64,
    failed: Option<Exception>,
}

impl TopRows {
    fn new(Asked { request, programs }: Asked) -> TopRows {
        let mut values = RowValues::new(request.key_prefix_bytes, request.key_columns, programs);
        let order = request.order.into_iter().filter_map(|key| {
            let at = values.at(key.source.as_ref()?);
            Some((key, at))
        });
        TopRows {
            order: order.collect(),
            values,
            limit: request.limit as usize,
            kept: BinaryHeap::new(),
            bytes: 0,
            cells: CellBuffer::new(),
            of_row: Vec::new(),
            rows: 0,
            failed: None,
        }
    }

    /// Whether the row that has been walked is among the first so far.
    fn is_among_first(&mut self) -> bool {
        self.of_row.clear();
        for (key, at) in &self.order {
            push_sort_key(&mut self.of_row, key, *at, &self.values);
        }
        self.kept.len() < self.limit || self.kept.peek().is_some_and(|last| self.of_row < last.order)
    }

    /// Keeps the row that has been walked, instead of the last one where there are enough.
    fn keep(&mut self, cells: pb::Result) -> Result<(), Exception> {
        let kept = Kept { order: self.of_row.clone(), number: self.rows, cells: KeptCells(cells) };
        self.bytes += kept.bytes();
        self.kept.push(kept);
        if self.kept.len() > self.limit
            && let Some(last) = self.kept.pop()
        {
            self.bytes -= last.bytes();
        }
        if self.bytes > MAX_BYTES {
            let rows = self.kept.len();
            return Err(Exception::do_not_retry(format!("{rows} rows take more than {MAX_BYTES} bytes")));
        }
        Ok(())
    }

    /// The row has no more cells. Whether its own are wanted.
    fn end_of_row(&mut self) -> Result<bool, Exception> {
        let is_row = self.values.end_of_row()?;
        self.rows += u64::from(is_row);
        Ok(is_row && self.is_among_first())
    }

    fn take_row(&mut self) -> Result<(), Exception> {
        if self.end_of_row()? {
            let cells = to_proto::inline_result(self.cells.iter_from(0));
            self.keep(cells)?;
        }
        Ok(())
    }

    fn into_rows(self) -> Vec<pb::Result> {
        self.kept.into_sorted_vec().into_iter().map(|kept| kept.cells.0).collect()
    }
}

impl Fold for TopRows {
    fn cell(&mut self, cell: CellRef<'_>) -> Result<(), Exception> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        self.values.take_cell(cell);
        self.cells.push(cell);
        // A wide row comes in pieces, and is no smaller for that.
        if self.cells.byte_len() > MAX_BYTES {
            return Err(self.values.bad_value(&format!("it takes more than {MAX_BYTES} bytes")));
        }
        Ok(())
    }

    fn end_of_result(&mut self) {
        let taken = self.take_row();
        self.cells.clear();
        if let Err(e) = taken {
            self.failed.get_or_insert(e);
        }
    }

    fn row(&mut self, cells: &[CellRef<'_>]) -> Result<(), Exception> {
        cells.iter().for_each(|cell| self.values.take_cell(*cell));
        if self.end_of_row()? {
            self.keep(to_proto::inline_result(cells.iter().copied()))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Exception> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// Ends the bytes of a value: less than any byte of it, as a zero byte has another behind it.
const END: [u8; 2] = [0, 0];
const ZERO: [u8; 2] = [0, 0xFF];

/// Adds a sort key's bytes, such that the whole sorts as its parts do, one after the other.
fn push_sort_key(out: &mut Vec<u8>, key: &SortKey, at: At, values: &RowValues) {
    let float;
    let value = match at {
        At::Computed(expression) => match values.computed(expression) {
            (Computed::Float(number), _) => {
                float = sortable_float(*number);
                &float[..]
            }
            (_, bytes) => bytes,
        },
        at => values.value(at),
    };
    let is_first_null = key.nulls_first && value.is_empty();
    out.push(if is_first_null { 0 } else { 1 + u8::from(value.is_empty()) });
    if value.is_empty() {
        return;
    }
    let from = out.len();
    let flip = if key.is_inverted { 0xFF } else { 0 };
    for byte in value {
        match byte ^ flip {
            0 => out.extend_from_slice(&ZERO),
            byte => out.push(byte),
        }
    }
    out.extend_from_slice(&END);
    if key.is_descending {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Bytes that sort as `f64::total_cmp` does.
fn sortable_float(number: f64) -> [u8; 8] {
    let bits = number.to_bits();
    let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    (bits ^ flip).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CellBlock, CellSpec, CellType};
    use proto::grouped::{Expression, KeyColumn, Number, Operation, Source, Step};

    fn key_column(at: u32) -> Source {
        Source { key_column: Some(at), ..Source::default() }
    }

    fn cell_n() -> Source {
        Source { family: Bytes::from_static(b"f"), qualifier: Bytes::from_static(b"n"), ..Source::default() }
    }

    fn by(source: Source) -> SortKey {
        SortKey { source: Some(source), ..SortKey::default() }
    }

    fn with_rows(request: &Request, whole: bool, rows: &[(&[u8], &[u8])]) -> Result<Vec<pb::Result>, Exception> {
        let mut top = TopRows::new(decode(request.encode_to_vec().into())?);
        for (row, value) in rows {
            let of = |qualifier, value| CellSpec {
                row,
                family: b"f",
                qualifier,
                timestamp: 1,
                type_code: CellType::Put.code(),
                value,
                tags: b"",
            };
            let has_value = !value.is_empty();
            let block = CellBlock::from_specs([of(b"m", b"x"), of(if has_value { b"n" } else { b"o" }, value)]);
            let cells: Vec<CellRef<'_>> = block.iter().collect();
            if whole {
                top.row(&cells)?;
                continue;
            }
            cells.iter().try_for_each(|cell| top.cell(*cell))?;
            top.end_of_result();
        }
        top.end_of_result();
        top.finish()?;
        Ok(top.into_rows())
    }

    /// The keys of the rows, whether they are seen as a whole or cell by cell.
    fn keys(request: &Request, rows: &[(&[u8], &[u8])]) -> Vec<Vec<u8>> {
        let [seen, told] = [true, false].map(|whole| with_rows(request, whole, rows).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(seen, told);
        assert!(seen.iter().all(|row| row.cell.len() == 2), "with all their cells");
        seen.iter().map(|row| row.cell[0].row().to_vec()).collect()
    }

    #[test]
    fn the_first_rows_by_a_cell_and_then_by_the_key() {
        let key_columns = vec![KeyColumn { width_bytes: 1, separator: None }];
        let request =
            Request { key_columns, order: vec![by(cell_n()), by(key_column(0))], limit: 3, ..Request::default() };
        let rows: [(&[u8], &[u8]); 6] =
            [(b"a", b"5"), (b"b", b""), (b"c", b"1"), (b"d", b"1\0"), (b"e", b"1"), (b"f", b"0")];
        assert_eq!(keys(&request, &rows), [b"f", b"c", b"e"]);
        let descending = |nulls_first| SortKey { is_descending: true, nulls_first, ..by(cell_n()) };
        let of = |nulls_first, limit| Request {
            order: vec![descending(nulls_first), SortKey { is_descending: true, ..by(key_column(0)) }],
            limit,
            ..request.clone()
        };
        assert_eq!(keys(&of(false, 4), &rows), [b"a", b"d", b"e", b"c"]);
        assert_eq!(keys(&of(true, 2), &rows), [b"b", b"a"]);
        assert_eq!(keys(&of(false, 9), &rows), [b"a", b"d", b"e", b"c", b"f", b"b"]);
    }

    #[test]
    fn a_column_of_the_key_that_descends_sorts_by_what_it_stands_for() {
        let key_columns = vec![KeyColumn { width_bytes: 0, separator: Some(0xFF) }];
        let order = vec![SortKey { is_inverted: true, ..by(key_column(0)) }];
        let request = Request { key_columns, order, limit: 2, ..Request::default() };
        let row = |text: &[u8]| text.iter().map(|byte| !byte).chain([0xFF]).collect::<Vec<u8>>();
        let [b, ab, a, aa] = [&b"b"[..], b"ab", b"a", b"aa"].map(row);
        assert_eq!(keys(&request, &[(&b, b"1"), (&ab, b"1"), (&aa, b"1"), (&a, b"1")]), [a, aa]);
    }

    #[test]
    fn what_is_computed_sorts_as_numbers_do() {
        let load = Step {
            source: Some(cell_n()),
            number: Number::SortableInteger as i32,
            operation: Operation::Load as i32,
            ..Step::default()
        };
        let to_float = Step { operation: Operation::ToFloat as i32, ..Step::default() };
        for steps in [vec![load.clone()], vec![load, to_float]] {
            let order =
                vec![SortKey { is_descending: true, ..by(Source { expression: Some(0), ..Source::default() }) }];
            let request = Request { order, limit: 3, expressions: vec![Expression { steps }], ..Request::default() };
            let of = |number: i64| (number ^ i64::MIN).to_be_bytes();
            let (less, zero, more, most) = (of(-7), of(0), of(9), of(300));
            let rows: [(&[u8], &[u8]); 5] = [(b"a", &less), (b"b", &more), (b"c", b""), (b"d", &most), (b"e", &zero)];
            assert_eq!(keys(&request, &rows), [b"d", b"b", b"e"]);
        }
    }

    #[test]
    fn floats_sort_in_their_total_order() {
        let sorted = [f64::NEG_INFINITY, -2.5, -1e-300, -0.0, 0.0, 1e-300, 7.0, f64::INFINITY, f64::NAN];
        assert!(sorted.windows(2).all(|pair| sortable_float(pair[0]) < sortable_float(pair[1])));
    }

    #[test]
    fn rows_that_are_too_large_are_an_error_and_not_memory() {
        let request = Request { order: vec![by(cell_n())], limit: 1000, ..Request::default() };
        let large = vec![b'v'; 1 << 20];
        let rows = vec![(&b"r"[..], &large[..]); 20];
        assert!([true, false].iter().all(|whole| with_rows(&request, *whole, &rows).is_err()));
        // One that is left out takes nothing.
        assert!(with_rows(&Request { limit: 3, ..request }, true, &rows).is_ok());
    }

    #[test]
    fn a_row_that_comes_in_pieces_is_no_larger_than_all_may_be() {
        let request = Request { order: vec![by(cell_n())], limit: 1, ..Request::default() };
        let mut top = TopRows::new(decode(request.encode_to_vec().into()).unwrap_or_else(|e| panic!("{e}")));
        let value = vec![b'v'; 1 << 20];
        let block = CellBlock::from_specs([CellSpec {
            row: b"wide",
            family: b"f",
            qualifier: b"n",
            timestamp: 1,
            type_code: CellType::Put.code(),
            value: &value,
            tags: b"",
        }]);
        let cell = block.iter().next().expect("one");
        assert_eq!((0..100).take_while(|_| top.cell(cell).is_ok()).count(), (MAX_BYTES >> 20) - 1);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        let of = |order, limit| Request { order, limit, ..Request::default() };
        let requests = [
            of(vec![SortKey::default()], 1),
            of(vec![by(key_column(0))], 1),
            of(vec![by(Source { expression: Some(0), ..Source::default() })], 1),
            of(vec![by(cell_n())], MAX_ROWS + 1),
            of(vec![by(cell_n()); MAX_SORT_KEYS + 1], 1),
        ];
        for request in requests {
            assert!(decode(request.encode_to_vec().into()).is_err());
        }
        assert!(decode(Bytes::from_static(b"\xFF\xFF")).is_err());
    }
}
