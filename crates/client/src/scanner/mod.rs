//! A scan, region after region, reply after reply. Follows: `AsyncClientScanner`,
//! `AsyncScanSingleRegionRpcRetryingCaller`, `CompleteScanResultCache`, `ConnectionUtils#noMoreResultsForScan`.

mod metrics;
mod reply;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cell::CellBlock;
use model::Scan;
use proto::methods::Method;
use proto::pb;

pub use self::metrics::ScanMetrics;
use self::reply::response;
use crate::channel::{Channel, Pending, Reply, Request};
use crate::locator::{Located, Side, rows_of};
use crate::traces::{Operation, operation_span};
use crate::{Error, Result, Row, Rows, Table};

/// How a scan travels.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// Results in one reply at most.
    pub caching: u32,
    /// Rows at most.
    pub limit: Option<u64>,
    /// Bytes in one reply at most, about.
    pub max_result_size: u64,
    /// Whether the next reply is asked for while this one is consumed.
    pub prefetch: bool,
    /// Whether the scanner counts, and servers count for it ([`Scanner::metrics`]).
    pub metrics: bool,
    /// The read replica of each region that is scanned; 0 is the primary.
    pub replica_id: u32,
}

impl Default for ScanOptions {
    fn default() -> Self {
        ScanOptions {
            caching: i32::MAX as u32,
            limit: None,
            max_result_size: 2 << 20,
            prefetch: false,
            metrics: false,
            replica_id: 0,
        }
    }
}

/// A scanner that is open at a server.
struct Open {
    located: Arc<Located>,
    channel: Channel,
    /// Known from the first reply on.
    scanner_id: Option<u64>,
    next_call_seq: u64,
}

/// Rows of a table in order. Dropped or closed, it tells the server, and waits for nothing.
pub struct Scanner {
    table: Table,
    scan: Scan,
    options: ScanOptions,
    open: Option<Open>,
    pending: Option<Pending>,
    rows: Rows,
    /// Bytes of the replies that `rows` and `pieces` are of.
    reply_bytes: usize,
    /// Pieces of a row whose end has not come yet.
    pieces: Vec<Row>,
    /// The last row that was handed out.
    last_row: Bytes,
    /// Cells of `last_row` handed out while its end had not come (only where pieces are handed out).
    unfinished: usize,
    /// Cells to pass over after a row was begun again.
    skip: usize,
    remaining: Option<u64>,
    was_out_of_order: bool,
    done: bool,
    is_stale: bool,
    metrics: Option<Box<ScanMetrics>>,
    /// The whole scan, if it is traced where it was begun.
    span: Option<Box<trace::Span>>,
}

impl Scanner {
    pub(crate) fn new(table: Table, mut scan: Scan, options: ScanOptions) -> Scanner {
        scan.max_result_size.get_or_insert(options.max_result_size);
        Scanner {
            remaining: options.limit,
            metrics: options.metrics.then(Box::default),
            span: operation_span(table.name(), || Some(Operation::Scan)).map(Box::new),
            done: options.limit == Some(0),
            table,
            scan,
            options,
            open: None,
            pending: None,
            rows: Rows::default(),
            reply_bytes: 0,
            pieces: Vec::new(),
            last_row: Bytes::new(),
            unfinished: 0,
            skip: 0,
            was_out_of_order: false,
            is_stale: false,
        }
    }

    /// The next row; none at the end. Whole rows, unless the scan has a batch or allows partial results.
    ///
    /// # Errors
    /// What the server refuses, or that it could not be reached in time. The scan is over then.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            if self.done {
                return Ok(None);
            }
            self.fetch().await?;
        }
    }

    /// The rows that came in the next reply; none at the end.
    ///
    /// # Errors
    /// As [`Scanner::next`].
    pub async fn next_batch(&mut self) -> Result<Option<Rows>> {
        loop {
            if !self.rows.is_empty() {
                return Ok(Some(std::mem::take(&mut self.rows)));
            }
            if self.done {
                return Ok(None);
            }
            self.fetch().await?;
        }
    }

    /// Whether a read replica gave the last reply: its rows may be behind what was written.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Bytes that it holds of replies whose rows were not all handed out.
    pub fn held_bytes(&self) -> usize {
        if self.rows.is_empty() && self.pieces.is_empty() { 0 } else { self.reply_bytes }
    }

    /// What was counted so far; nothing where the options do not ask for it.
    pub fn metrics(&self) -> Option<&ScanMetrics> {
        self.metrics.as_deref()
    }

    /// Keeps the server from closing the scanner while nobody asks for rows. False when none is open.
    ///
    /// # Errors
    /// The server does not know the scanner any more, or cannot be reached.
    pub async fn renew(&mut self) -> Result<bool> {
        let Some(Open { channel, scanner_id: Some(id), next_call_seq, .. }) = &self.open else { return Ok(false) };
        if self.pending.is_some() {
            return Ok(true);
        }
        let request = pb::ScanRequest {
            scanner_id: Some(*id),
            number_of_rows: Some(0),
            renew: Some(true),
            next_call_seq: Some(*next_call_seq),
            ..pb::ScanRequest::default()
        };
        channel.clone().call(Request::new(Method::ClientScan, &request)).await.map(|_| true)
    }

    /// Ends the scan.
    pub fn close(&mut self) {
        self.done = true;
        self.rows = Rows::default();
        self.pending = None;
        let span = self.span.take();
        let _within = span.as_ref().map(|span| span.enter());
        if let Some(Open { channel, scanner_id: Some(id), .. }) = self.open.take() {
            let request = pb::ScanRequest {
                scanner_id: Some(id),
                number_of_rows: Some(0),
                close_scanner: Some(true),
                ..pb::ScanRequest::default()
            };
            channel.forget(&Request::new(Method::ClientScan, &request));
        }
    }

    /// Makes one call and takes in its reply; tries again where that may help.
    async fn fetch(&mut self) -> Result<()> {
        let Some(place) = self.span.as_ref().map(|span| span.place().clone()) else { return self.fetch_untold().await };
        // Boxed, so that a scan of which nobody is to hear is no larger.
        let fetched = trace::within(Some(place), Box::pin(self.fetch_untold())).await;
        if let (Err(error), Some(span)) = (&fetched, &mut self.span) {
            span.fail(error.class().unwrap_or("java.io.IOException"), &error.to_string());
        }
        fetched
    }

    async fn fetch_untold(&mut self) -> Result<()> {
        let cluster = self.table.cluster.clone();
        let mut retry = cluster.retry(self.table.manner.scanning());
        loop {
            let replied = match self.pending.take() {
                Some(pending) => pending.await,
                None => match self.send(retry.call_timeout()).await {
                    Ok(pending) => pending.await,
                    Err(e) => Err(e),
                },
            };
            let error = match replied.and_then(|reply| self.take_in(&reply)) {
                Ok(()) => {
                    if self.options.prefetch && !self.done && self.open.is_some() {
                        // A failure shows when the reply is asked for.
                        self.pending = self.send(self.table.manner.scanning().first_call_timeout()).await.ok();
                    }
                    return Ok(());
                }
                Err(e) => e,
            };
            let error = self.reopen_after(error)?;
            if let Some(metrics) = &mut self.metrics {
                metrics.note_failure(&error);
            }
            if let Err(e) = retry.pause(error).await {
                self.close();
                return Err(e);
            }
        }
    }

    /// Sends the call for the next rows: to the open scanner, or one that opens the scanner in the region that is due.
    async fn send(&mut self, timeout: Duration) -> Result<Pending> {
        let common = pb::ScanRequest {
            number_of_rows: Some(self.options.caching),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            track_scan_metrics: self.metrics.is_some().then_some(true),
            limit_of_rows: self.remaining.map(|rows| u32::try_from(rows).unwrap_or(i32::MAX as u32)),
            ..pb::ScanRequest::default()
        };
        if let Some(open) = &mut self.open
            && let Some(id) = open.scanner_id
        {
            let request = pb::ScanRequest { scanner_id: Some(id), next_call_seq: Some(open.next_call_seq), ..common };
            open.next_call_seq += 1;
            let request = Request::new(Method::ClientScan, &request).timeout(timeout);
            return self.table.start_on(&open.channel, &open.located, request);
        }
        let primary = self.locate().await?;
        let (cluster, id) = (&self.table.cluster, self.options.replica_id);
        let located = cluster.locate_replica(&self.table.cache, &primary, id).await?;
        let channel = match located.server.client().await {
            Ok(channel) => channel,
            Err(e) => {
                self.table.cluster.learn(&self.table.cache, &located, &e);
                return Err(e);
            }
        };
        let scan = Some(convert::to_proto::scan(&self.scan));
        let request = pb::ScanRequest { region: Some(located.specifier.clone()), scan, ..common };
        let request = Request::new(Method::ClientScan, &request).timeout(timeout);
        let pending = self.table.start_on(&channel, &located, request);
        self.open = Some(Open { located, channel, scanner_id: None, next_call_seq: 0 });
        pending
    }

    async fn locate(&self) -> Result<Arc<Located>> {
        let (cluster, cache, scan) = (&self.table.cluster, &self.table.cache, &self.scan);
        match (scan.reversed, scan.include_start_row) {
            (false, true) => cluster.locate(cache, &scan.start_row, Side::Current).await,
            (false, false) => {
                let after = [&scan.start_row[..], b"\0"].concat();
                cluster.locate(cache, &after, Side::Current).await
            }
            (true, true) if !scan.start_row.is_empty() => cluster.locate(cache, &scan.start_row, Side::Current).await,
            (true, _) => cluster.locate(cache, &scan.start_row, Side::Before).await,
        }
    }

    /// What the error says about the scanner: given back when the scan can go on from the last row.
    fn reopen_after(&mut self, error: Error) -> Result<Error> {
        let lost = match error.short_class() {
            Some("UnknownScannerException" | "ScannerResetException" | "LeaseException") => true,
            Some("OutOfOrderScannerNextException") if !self.was_out_of_order => {
                self.was_out_of_order = true;
                true
            }
            _ => false,
        };
        if !lost && !error.may_pass() {
            self.close();
            return Err(error);
        }
        if self.options.replica_id > 0 {
            // What was remembered of the region tells where the replica is.
            self.table.forget_locations();
        }
        if let Some(open) = self.open.take()
            && !lost
        {
            self.table.cluster.learn(&self.table.cache, &open.located, &error);
        }
        self.pieces.clear();
        if self.unfinished > 0 {
            self.scan.start_row = self.last_row.clone();
            self.scan.include_start_row = true;
            self.skip = self.unfinished;
        } else if !self.last_row.is_empty() {
            self.scan.start_row = self.last_row.clone();
            self.scan.include_start_row = false;
        }
        Ok(match error {
            // These classes say that this scanner is of no use any more; the scan is.
            Error::Remote(mut e) if lost => {
                e.do_not_retry = false;
                Error::Remote(e)
            }
            other => other,
        })
    }

    fn take_in(&mut self, reply: &Reply) -> Result<()> {
        let message = response(reply.message())?;
        self.reply_bytes = self.held_bytes() + reply.byte_len();
        if let Some(metrics) = &mut self.metrics {
            metrics.note_reply(&message, reply.byte_len());
        }
        self.is_stale = message.stale();
        let results = rows_of(&message, reply)?;
        if self.are_whole_and_wanted(&message, &results) {
            if let Some(rows) = &mut self.remaining {
                *rows -= results.len() as u64;
            }
            if self.rows.is_empty() {
                self.rows = results;
            } else {
                results.for_each(|row| self.rows.push(row));
            }
        } else {
            let in_message = message.cells_per_result.is_empty();
            for (i, row) in results.enumerate() {
                let partial = if in_message {
                    message.results.get(i).is_some_and(pb::Result::partial)
                } else {
                    message.partial_flag_per_result.get(i).copied().unwrap_or(false)
                };
                self.take_result(row, partial)?;
            }
        }
        if let Some(row) = self.rows.last_row()
            && !row.is_empty()
        {
            // A copy: a scanner that waits does not keep a whole reply for one key.
            self.last_row = Bytes::copy_from_slice(row.row());
        }
        if let Some(open) = &mut self.open
            && open.scanner_id.is_none()
        {
            open.scanner_id = message.scanner_id;
        }
        if self.scan.need_cursor
            && let Some(row) = message.cursor.as_ref().and_then(|cursor| cursor.row.clone())
        {
            self.rows.push(Row::of_cursor(row));
        }
        let region_is_done = message.more_results_in_region == Some(false) || self.scanner_is_missing();
        let all_is_done = message.more_results == Some(false);
        if region_is_done || all_is_done {
            self.flush_pieces();
            if let Some(metrics) = &mut self.metrics {
                metrics.regions_scanned += 1;
            }
            if let Some(open) = self.open.take() {
                self.done = all_is_done || !self.advance(&open.located);
            }
        }
        if self.remaining == Some(0) {
            let rows = std::mem::take(&mut self.rows);
            self.close();
            self.rows = rows;
        }
        Ok(())
    }

    /// Whether every result is a row to be handed out as it is.
    fn are_whole_and_wanted(&self, message: &pb::ScanResponse, results: &Rows) -> bool {
        self.pieces.is_empty()
            && !self.pieces_matter()
            && !message.partial_flag_per_result.contains(&true)
            && !message.results.iter().any(pb::Result::partial)
            && self.remaining.is_none_or(|rows| rows >= results.len() as u64)
            && !message.cells_per_result.contains(&0)
            && !message.results.iter().any(|result| result.cell.is_empty())
    }

    /// Whether rows are handed out in pieces.
    fn pieces_matter(&self) -> bool {
        self.scan.batch.is_some() || self.scan.allow_partial_results
    }

    fn scanner_is_missing(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.scanner_id.is_none())
    }

    fn take_result(&mut self, mut row: Row, partial: bool) -> Result<()> {
        if row.is_empty() {
            return Ok(());
        }
        if self.pieces_matter() {
            if self.skip > 0 && row.row() == &self.last_row[..] {
                let skipped = self.skip.min(row.len());
                self.skip -= skipped;
                let rest = row.cells().split(skipped).map(|(_, rest)| rest).unwrap_or_default();
                if rest.is_empty() {
                    self.unfinished = if partial { self.unfinished } else { 0 };
                    return Ok(());
                }
                row = Row::new(rest);
            }
            let before = if row.row() == &self.last_row[..] { self.unfinished } else { 0 };
            self.unfinished = if partial { before + row.len() } else { 0 };
            self.hand_out(row.cut(partial), !partial);
            return Ok(());
        }
        if self.pieces.first().is_some_and(|first| first.row() != row.row()) {
            self.flush_pieces();
        }
        if partial || !self.pieces.is_empty() {
            self.pieces.push(row);
            if !partial {
                self.flush_pieces();
            }
            return Ok(());
        }
        self.hand_out(row, true);
        Ok(())
    }

    /// The pieces are a whole row.
    fn flush_pieces(&mut self) {
        if self.pieces.is_empty() {
            return;
        }
        let mut bytes = BytesMut::with_capacity(self.pieces.iter().map(Row::byte_len).sum());
        self.pieces.drain(..).for_each(|piece| bytes.extend_from_slice(piece.cells().bytes()));
        // Each piece was checked when it came.
        if let Ok(cells) = CellBlock::parse_shapes(bytes.freeze()) {
            self.hand_out(Row::new(cells), true);
        }
    }

    fn hand_out(&mut self, row: Row, whole: bool) {
        if self.remaining == Some(0) {
            return;
        }
        if whole && let Some(rows) = &mut self.remaining {
            *rows -= 1;
        }
        if self.pieces_matter() && row.row() != &self.last_row[..] {
            self.last_row = row.cells().bytes().slice_ref(row.row());
        }
        self.rows.push(row);
    }

    /// Goes on to the next region; false when there is none that the scan wants.
    fn advance(&mut self, located: &Located) -> bool {
        let (region, scan) = (&located.region, &mut self.scan);
        let stop = &scan.stop_row;
        if scan.reversed {
            if region.start_key.is_empty() || (!stop.is_empty() && region.start_key <= *stop) {
                return false;
            }
            scan.start_row = region.start_key.clone();
            scan.include_start_row = false;
        } else {
            let ends = |end: &Bytes| match end.cmp(stop) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => !scan.include_stop_row,
                std::cmp::Ordering::Less => false,
            };
            if region.end_key.is_empty() || (!stop.is_empty() && ends(&region.end_key)) {
                return false;
            }
            scan.start_row = region.end_key.clone();
            scan.include_start_row = true;
        }
        // What was handed out lies behind; a new start must not fall back to it.
        self.last_row = Bytes::new();
        self.unfinished = 0;
        self.skip = 0;
        true
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.close();
    }
}
