//! AggregateService: one region's share of a column's extremes, sum, count, average, deviation and median; the client
//! puts the shares together. A share of nothing is an empty answer.
//!
//! A client that takes partial results gets whole ones: only throttling would cut them. Follows:
//! `AggregateImplementation`.

use super::interpreter::{Decimal, Double, Interpreter, Long};
use super::walk::{self, Fold};
use crate::blocking::Caller;
use crate::server::RegionServer;
use bytes::Bytes;
use cell::CellRef;
use convert::from_proto;
use filter::Filter;
use model::Scan;
use proto::methods::Method;
use proto::pb;
use region::Region;
use rpc::exception::Exception;
use std::cmp::Ordering;
use std::sync::Arc;

/// Answers one of the service's methods.
///
/// # Errors
/// An interpreter that is not one of HBase's; no family; those of the scan and of the interpreter.
pub(super) async fn aggregate(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    method: Method,
    request: pb::AggregateRequest,
    caller: &Caller,
) -> Result<pb::AggregateResponse, Exception> {
    if method == Method::AggregateGetRowNum {
        return count_rows(server, region, request, caller).await;
    }
    let class = request.interpreter_class_name.as_str();
    let name = class.strip_prefix("org.apache.hadoop.hbase.client.coprocessor.").unwrap_or_default();
    let scan = || from_proto::scan(request.scan.clone());
    match name {
        "LongColumnInterpreter" => run::<Long>(server, region, method, scan()?, caller).await,
        "DoubleColumnInterpreter" => run::<Double>(server, region, method, scan()?, caller).await,
        "BigDecimalColumnInterpreter" => run::<Decimal>(server, region, method, scan()?, caller).await,
        _ => Err(Exception::io(format!("java.lang.ClassNotFoundException: {class}"))),
    }
}

fn count_bytes(count: u64) -> Bytes {
    Bytes::copy_from_slice(&count.to_be_bytes())
}

#[derive(Default)]
struct RowNum {
    any: bool,
    rows: u64,
}

impl Fold for RowNum {
    fn cell(&mut self, _: CellRef<'_>) -> Result<(), Exception> {
        self.any = true;
        Ok(())
    }

    fn end_of_result(&mut self) {
        self.rows += u64::from(std::mem::take(&mut self.any));
    }
}

async fn count_rows(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    request: pb::AggregateRequest,
    caller: &Caller,
) -> Result<pb::AggregateResponse, Exception> {
    let mut scan = from_proto::scan(request.scan)?;
    let has_qualifier = scan.columns.values().next().is_some_and(|qualifiers| !qualifiers.is_empty());
    if scan.filter.is_none() && !has_qualifier {
        scan.filter = Some(Arc::new(Filter::FirstKeyOnly));
    }
    let rows = walk::fold(server, region, scan, RowNum::default(), |counted| counted.rows, caller).await?;
    Ok(pb::AggregateResponse { first_part: vec![count_bytes(rows)], ..pb::AggregateResponse::default() })
}

/// Which extreme is kept.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Greatest,
    Least,
    /// None: sums alone are wanted.
    Neither,
}

/// All that the methods ask for, gathered in one pass.
struct Totals<I: Interpreter> {
    keep: Keep,
    squares: bool,
    extreme: Option<I::Number>,
    sum: Option<I::Number>,
    sum_of_squares: Option<I::Number>,
    row_sum: Option<I::Number>,
    results: u64,
}

fn add_to<I: Interpreter>(sum: &mut Option<I::Number>, number: &I::Number) {
    *sum = Some(match sum.take() {
        Some(sum) => I::add(&sum, number),
        None => number.clone(),
    });
}

impl<I: Interpreter> Fold for Totals<I> {
    fn cell(&mut self, cell: CellRef<'_>) -> Result<(), Exception> {
        let Some(number) = I::read(cell)? else { return Ok(()) };
        let wanted = match self.keep {
            Keep::Greatest => Ordering::Greater,
            Keep::Least => Ordering::Less,
            Keep::Neither => {
                add_to::<I>(if self.squares { &mut self.row_sum } else { &mut self.sum }, &number);
                return Ok(());
            }
        };
        if self.extreme.as_ref().is_none_or(|extreme| I::compare(&number, extreme) == wanted) {
            self.extreme = Some(number);
        }
        Ok(())
    }

    fn end_of_result(&mut self) {
        self.results += 1;
        if let Some(row_sum) = self.row_sum.take() {
            add_to::<I>(&mut self.sum, &row_sum);
            add_to::<I>(&mut self.sum_of_squares, &I::multiply(&row_sum, &row_sum));
        }
    }
}

async fn run<I: Interpreter>(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    method: Method,
    scan: Scan,
    caller: &Caller,
) -> Result<pb::AggregateResponse, Exception> {
    let Some(qualifiers) = scan.columns.values().next() else {
        return Err(Exception::do_not_retry(
            "java.lang.NullPointerException: the scan of an aggregate names no family",
        ));
    };
    let weighted = qualifiers.len() > 1;
    let totals = Totals::<I> {
        keep: match method {
            Method::AggregateGetMax => Keep::Greatest,
            Method::AggregateGetMin => Keep::Least,
            _ => Keep::Neither,
        },
        squares: method == Method::AggregateGetStd,
        extreme: None,
        sum: None,
        sum_of_squares: None,
        row_sum: None,
        results: 0,
    };
    let totals = walk::fold(server, region, scan, totals, |totals| totals, caller).await?;
    let mut response = pb::AggregateResponse::default();
    let Some(main) = totals.extreme.as_ref().or(totals.sum.as_ref()) else { return Ok(response) };
    response.first_part.push(I::encode(main));
    match method {
        Method::AggregateGetAvg => response.second_part = Some(count_bytes(totals.results)),
        Method::AggregateGetStd => {
            response.first_part.extend(totals.sum_of_squares.as_ref().map(I::encode));
            response.second_part = Some(count_bytes(totals.results));
        }
        // No interpreter of HBase's tells columns apart, so weights come to the same sum as values.
        Method::AggregateGetMedian if weighted => response.first_part.push(I::encode(main)),
        Method::AggregateGetMedian => response.first_part.push(I::encode_least()),
        _ => {}
    }
    Ok(response)
}
