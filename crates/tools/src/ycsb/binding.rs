//! YCSB's operations on an HBase table, as its hbase2 binding does them.

use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::Bytes;
use client::{Put, Row, ScanOptions, Table};
use filter::{Comparator, CompareOp, Filter, ListOperator};
use model::{Durability, Get, Mutation, Scan};
use parking_lot::Mutex;

use super::core::Values;
use super::measurements::Status;
use super::properties::Properties;

/// A table and how it is used; one per client.
pub struct Binding {
    table: Table,
    family: Bytes,
    durability: Durability,
    page_filter: bool,
    value_filter: Option<Filter>,
    buffer: Option<Mutex<Buffer>>,
    debug: bool,
}

/// Writes that wait to be sent together (`clientbuffering`).
#[derive(Default)]
struct Buffer {
    limit_bytes: usize,
    bytes: usize,
    waiting: Vec<Mutation>,
}

impl Binding {
    /// As the properties say.
    ///
    /// # Errors
    /// `columnfamily` is missing, or a property is not what it should be.
    pub fn new(table: Table, p: &Properties) -> anyhow::Result<Binding> {
        let family = p.text("columnfamily").context("no column family: say -p columnfamily=NAME")?;
        let durability = match p.text("durability").unwrap_or("USE_DEFAULT") {
            "USE_DEFAULT" => Durability::UseDefault,
            "SKIP_WAL" => Durability::SkipWal,
            "ASYNC_WAL" => Durability::AsyncWal,
            "SYNC_WAL" => Durability::SyncWal,
            "FSYNC_WAL" => Durability::FsyncWal,
            other => bail!("unknown durability {other}"),
        };
        let value_filter = p.flag("hbase.usescanvaluefiltering", false).then(|| value_filter(p)).transpose()?;
        let limit_bytes = p.number("writebuffersize", 12 << 20)?;
        let buffer = p.flag("clientbuffering", false);
        Ok(Binding {
            table,
            family: Bytes::copy_from_slice(family.as_bytes()),
            durability,
            page_filter: p.flag("hbase.usepagefilter", true),
            value_filter,
            buffer: buffer.then(|| Mutex::new(Buffer { limit_bytes, ..Buffer::default() })),
            debug: p.flag("debug", false),
        })
    }

    /// One record.
    pub async fn read(&self, key: &str, fields: Option<&[Bytes]>) -> (Status, Option<Row>) {
        let mut get = Get::new(Bytes::copy_from_slice(key.as_bytes()));
        get.columns.insert(self.family.clone(), columns(fields));
        match self.table.get(&get).await {
            Ok(row) if row.is_empty() => (Status::NotFound, None),
            Ok(row) => (Status::Ok, Some(row)),
            Err(error) => (self.failed("get", &error), None),
        }
    }

    /// Up to `records` records from `key` on.
    pub async fn scan(&self, key: &str, records: i64, fields: Option<&[Bytes]>) -> Status {
        let mut filters = Vec::new();
        if self.page_filter {
            filters.push(Filter::Page { page_size: records });
        }
        filters.extend(self.value_filter.clone());
        let mut scan = Scan { start_row: Bytes::copy_from_slice(key.as_bytes()), ..Scan::default() };
        scan.columns.insert(self.family.clone(), columns(fields));
        scan.filter = Some(Arc::new(Filter::List { operator: ListOperator::MustPassAll, filters }));
        let caching = u32::try_from(records).unwrap_or(1).max(1);
        let mut scanner = self.table.scan(scan, ScanOptions { caching, ..ScanOptions::default() });
        let mut found = 0;
        while found < records {
            match scanner.next().await {
                Ok(Some(_)) => found += 1,
                Ok(None) => break,
                Err(error) => return self.failed("scan", &error),
            }
        }
        scanner.close();
        Status::Ok
    }

    /// An insert or an update.
    pub async fn write(&self, key: &str, values: &Values) -> Status {
        let mut put = Put::new(key).durability(self.durability);
        for (field, value) in values {
            put = put.add(&self.family, field, value);
        }
        let put = put.build();
        let Some(buffer) = &self.buffer else {
            return match self.table.put(&put).await {
                Ok(_) => Status::Ok,
                Err(error) => self.failed("put", &error),
            };
        };
        let full = {
            let mut buffer = buffer.lock();
            buffer.bytes += put.cells.bytes().len();
            buffer.waiting.push(put);
            buffer.bytes >= buffer.limit_bytes
        };
        if full { self.flush().await } else { Status::Ok }
    }

    /// Sends what is buffered.
    pub async fn flush(&self) -> Status {
        let Some(buffer) = &self.buffer else { return Status::Ok };
        let waiting = {
            let mut buffer = buffer.lock();
            buffer.bytes = 0;
            std::mem::take(&mut buffer.waiting)
        };
        if waiting.is_empty() {
            return Status::Ok;
        }
        match self.table.mutate_all(&waiting).await {
            Ok(()) => Status::Ok,
            Err(error) => self.failed("put", &error),
        }
    }

    fn failed(&self, what: &str, error: &client::Error) -> Status {
        if self.debug {
            eprintln!("Error doing {what}: {error}");
        }
        Status::Error
    }
}

fn columns(fields: Option<&[Bytes]>) -> Vec<Bytes> {
    let mut columns = fields.map(<[Bytes]>::to_vec).unwrap_or_default();
    columns.sort();
    columns
}

/// `hbase.scanfilteroperator` against `hbase.scanfiltervalue`: by default about half of random values pass.
fn value_filter(p: &Properties) -> anyhow::Result<Filter> {
    let set = |name: &str| p.text(name).map(str::trim).filter(|text| !text.is_empty());
    let op = match set("hbase.scanfilteroperator").unwrap_or("less_or_equal").to_ascii_lowercase().as_str() {
        "less" => CompareOp::Less,
        "less_or_equal" => CompareOp::LessOrEqual,
        "equal" => CompareOp::Equal,
        "not_equal" => CompareOp::NotEqual,
        "greater_or_equal" => CompareOp::GreaterOrEqual,
        "greater" => CompareOp::Greater,
        other => bail!("unknown hbase.scanfilteroperator {other}"),
    };
    let default = format!("7F{}", "FF".repeat(99));
    let hex = set("hbase.scanfiltervalue").unwrap_or(&default);
    let digits = hex.as_bytes().chunks(2).map(|pair| {
        std::str::from_utf8(pair).ok().filter(|p| p.len() == 2).and_then(|p| u8::from_str_radix(p, 16).ok())
    });
    let value: Option<Vec<u8>> = digits.collect();
    let value = value.context("hbase.scanfiltervalue wants pairs of hexadecimal digits")?;
    Ok(Filter::Value { op, comparator: Some(Comparator::Binary { value: Bytes::from(value) }) })
}
