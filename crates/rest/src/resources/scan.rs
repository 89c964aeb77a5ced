//! Stateless scans, sent as they are read. Follows: `TableResource#getScanResource`, `TableScanResource`, `ProtobufStreamingOutput`.

use super::{filter_of, versions};
use crate::body::ReplyBody;
use crate::gateway::Gateway;
use crate::media::{MODELS, Media};
use crate::models::{CellStream, RowModel};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::row_spec::{read_columns, time_range};
use base::Charge;
use bytes::Bytes;
use client::{Error, ScanOptions, Scanner};
use filter::{Filter, ListOperator};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use model::Scan;
use std::io::{self, Write};
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, channel};

/// Bytes of rows that are gathered for one piece of the body, about. What a client holds that reads nothing is a few of these.
const PIECE_BYTES: usize = 128 << 10;
/// What a stream holds for each byte of a batch: the rows as they came, the piece that the socket takes, and the one that waits for it, each of
/// which may be longer than its rows.
const HELD_PER_BYTE: u64 = 4;

/// `GET /{table}/{prefix}*`
pub async fn get(gateway: &Gateway, request: &Request, table: &str, prefix: &str) -> Answer {
    let media = request.accepted(MODELS)?;
    let limit = request.number::<i32>("limit")?.unwrap_or(i32::MAX);
    let limit = u64::try_from(limit).unwrap_or(0);
    let scan = scan_of(request, prefix)?;
    let handle = gateway.table(table)?;
    let options = ScanOptions {
        caching: gateway.fetch_size,
        limit: Some(limit),
        max_result_size: PIECE_BYTES as u64,
        ..handle.scan_options()
    };
    let mut stream = Stream {
        scanner: handle.scan(scan, options),
        charge: gateway.streaming(),
        cells: CellStream::new(media),
        fetch_size: gateway.fetch_size as usize,
        is_protobuf: matches!(media, Media::Protobuf | Media::ProtobufIetf),
        zip: gateway.compresses_for(request).then(|| GzEncoder::new(Vec::new(), Compression::fast())),
    };
    // The first rows are read before the status is sent: an error can still be said.
    let first = stream.batch().await.map_err(|ended| match ended {
        Ended::Failed(error) => Reply::of(&error),
        Ended::Crowded => Reply::crowded(),
    })?;
    let is_zipped = stream.zip.is_some();
    let (sender, receiver) = channel(1);
    let short = stream.is_protobuf && limit < u64::from(gateway.fetch_size);
    tokio::spawn(stream.send(first, short, sender));
    let reply = Reply { body: ReplyBody::Stream(receiver), ..Reply::ok() }.header(CONTENT_TYPE, media.name());
    Ok(if is_zipped { reply.header(CONTENT_ENCODING, "gzip") } else { reply })
}

fn scan_of(request: &Request, prefix: &str) -> Result<Scan, Reply> {
    let row = |name: &str| Ok::<_, Reply>(Bytes::from(request.parameter(name)?.unwrap_or_default()));
    let (mut start_row, stop_row) = (row("startrow")?, row("endrow")?);
    let mut filters: Vec<Filter> = filter_of(request)?.into_iter().collect();
    if !prefix.is_empty() {
        let prefix = Bytes::copy_from_slice(prefix.as_bytes());
        filters.push(Filter::Prefix { prefix: Some(prefix.clone()) });
        if start_row.is_empty() {
            start_row = prefix;
        }
    }
    let columns = request.all_parameters("column")?.into_iter().map(|column| Bytes::from(column.trim().to_owned()));
    let columns: Vec<Bytes> = columns.collect();
    let (from, to) = (request.number("starttime")?.unwrap_or(0), request.number("endtime")?.unwrap_or(i64::MAX));
    let batch = request.number::<i32>("batchsize")?.and_then(|cells| u32::try_from(cells).ok());
    Ok(Scan {
        start_row,
        stop_row,
        include_start_row: request.flag("includeStartRow", true)?,
        include_stop_row: request.flag("includeStopRow", false)?,
        columns: read_columns(&columns),
        max_versions: versions(request.number("maxversions")?.unwrap_or(1))?,
        time_range: time_range(from, to).map_err(|why| Reply::bad_request(&why))?,
        batch: batch.filter(|cells| *cells > 0),
        cache_blocks: request.flag("cacheblocks", true)?,
        reversed: request.flag("reversed", false)?,
        filter: (!filters.is_empty()).then(|| Arc::new(Filter::List { operator: ListOperator::MustPassAll, filters })),
        ..Scan::default()
    })
}

/// Why there are no more rows before the end.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Failed(Error),
    #[error("the gateway holds too many bytes of replies; read faster, or ask for smaller rows")]
    Crowded,
}

/// What reads the rows and writes the body.
struct Stream {
    scanner: Scanner,
    /// What it holds at most, by the largest batch so far.
    charge: Charge,
    cells: CellStream,
    fetch_size: usize,
    is_protobuf: bool,
    zip: Option<GzEncoder<Vec<u8>>>,
}

impl Stream {
    /// The next rows; none at the end.
    async fn batch(&mut self) -> Result<Vec<RowModel>, Ended> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < self.fetch_size && bytes < PIECE_BYTES {
            let Some(row) = self.scanner.next().await.map_err(Ended::Failed)? else { break };
            if row.is_empty() {
                continue;
            }
            bytes += row.byte_len();
            if !self.charge.try_grow_share(bytes.max(self.scanner.held_bytes()) as u64 * HELD_PER_BYTE) {
                return Err(Ended::Crowded);
            }
            rows.push(RowModel::of(&row));
        }
        Ok(rows)
    }

    /// What goes over the wire for plain bytes.
    fn wire(&mut self, plain: Bytes) -> io::Result<Bytes> {
        let Some(zip) = &mut self.zip else { return Ok(plain) };
        zip.write_all(&plain)?;
        zip.flush()?;
        Ok(std::mem::take(zip.get_mut()).into())
    }

    fn end(mut self) -> io::Result<Bytes> {
        let last = std::mem::replace(&mut self.cells, CellStream::new(Media::Xml)).end();
        let Some(mut zip) = self.zip.take() else { return Ok(last) };
        zip.write_all(&last)?;
        zip.finish().map(Bytes::from)
    }

    /// Sends all of it, until it is done or nobody reads. `short`: as HBase, one protobuf message even where there are no rows.
    async fn send(mut self, first: Vec<RowModel>, short: bool, sender: Sender<io::Result<Bytes>>) {
        let mut rows = first;
        let mut is_first = true;
        while !rows.is_empty() || (is_first && short) {
            is_first = false;
            let plain = self.cells.rows(&rows);
            let piece = self.wire(plain);
            if sender.send(piece).await.is_err() {
                return;
            }
            // The piece before has been taken: one waits, and none is made meanwhile.
            if sender.reserve().await.is_err() {
                return;
            }
            rows = match self.batch().await {
                Ok(rows) => rows,
                Err(ended) => return drop(sender.send(Err(io::Error::other(ended.to_string()))).await),
            };
        }
        drop(sender.clone().send(self.end()).await);
    }
}
