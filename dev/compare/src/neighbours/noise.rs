//! The neighbours: each a load of its own connections that asks for as much as it can get.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::{Bytes, BytesMut};
use client::{Connection, Increment, Put, ScanOptions, Table};
use filter::{Comparator, CompareOp, Filter, RegexSpec};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};
use proto::pb;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::polite::key;
use super::sql;

/// Rows of the neighbours' table, of about a thousand bytes each.
const ROWS: u64 = 50_000;
const TABLE: &str = "noise";
const FAMILY: &str = "f";
/// Columns of the one wide row.
const WIDE_COLUMNS: u64 = 6_000;
const WIDE_ROW: &str = "wide";
/// Bytes of a value of a large batch.
const BATCH_VALUE_BYTES: u64 = 64 << 10;

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbour {
    Nobody,
    Scans,
    Batches,
    SlowScanners,
    Unread,
    WideRow,
    Regex,
    Connections,
    Counters,
    Sql,
}

impl Neighbour {
    pub(super) const ALL: [Neighbour; 10] = [
        Neighbour::Nobody,
        Neighbour::Scans,
        Neighbour::Batches,
        Neighbour::SlowScanners,
        Neighbour::Unread,
        Neighbour::WideRow,
        Neighbour::Regex,
        Neighbour::Connections,
        Neighbour::Counters,
        Neighbour::Sql,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Neighbour::Nobody => "alone",
            Neighbour::Scans => "scans",
            Neighbour::Batches => "batches",
            Neighbour::SlowScanners => "slow-scanners",
            Neighbour::Unread => "unread",
            Neighbour::WideRow => "wide-row",
            Neighbour::Regex => "regex",
            Neighbour::Connections => "connections",
            Neighbour::Counters => "counters",
            Neighbour::Sql => "sql",
        }
    }

    /// Whether all that it needs is there.
    pub(super) fn is_possible(self) -> bool {
        self != Neighbour::Sql || std::env::var_os(sql::BINARY).is_some()
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Neighbour::Nobody => "the polite client alone",
            Neighbour::Scans => "64 full scans with a filter that passes nothing",
            Neighbour::Batches => "two clients that write batches of a sixteenth of the memory",
            Neighbour::SlowScanners => "200 scanners that read ten rows a second",
            Neighbour::Unread => "6 connections that ask for 200 large scans each and read no reply",
            Neighbour::WideRow => "8 readers of a row of 6,000 columns",
            Neighbour::Regex => "24 full scans with a costly regular expression",
            Neighbour::Connections => "5,000 connections that do nothing",
            Neighbour::Counters => "8 clients that increment with nonces as fast as they can",
            Neighbour::Sql => "8 sessions of the basalt-sql that BASALT_SQL_BINARY names, with queries of all rows",
        }
    }
}

/// Where the noise goes.
#[derive(Clone)]
pub(super) struct Target {
    pub connection: Arc<Connection>,
    /// Where the server is found.
    pub zookeeper: String,
    /// The server's memory.
    pub memory_bytes: u64,
}

impl Target {
    fn table(&self) -> anyhow::Result<Table> {
        Ok(self.connection.table(&TableName::parse(TABLE)?))
    }

    /// Makes the neighbours' table and fills it; a part of it goes to files.
    pub(super) async fn prepare(&self) -> anyhow::Result<()> {
        let name = TableName::parse(TABLE)?;
        let admin = self.connection.admin();
        let split = Bytes::from(key(ROWS / 2));
        admin.create_table(&TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]), &[split]).await?;
        let table = self.table()?;
        for first in (0..ROWS).step_by(500) {
            let value = vec![b'a'; 1000];
            let put = |n| Put::new(key(n)).add(FAMILY, "q", &value).build();
            table.mutate_all(&(first..first + 500).map(put).collect::<Vec<_>>()).await?;
        }
        admin.flush(&name).await?;
        let wide = (0..WIDE_COLUMNS).fold(Put::new(WIDE_ROW), |put, n| put.add(FAMILY, key(n), [b'a'; 20]));
        table.put(&wide.build()).await?;
        Ok(())
    }

    /// Starts a neighbour; it goes on until what is returned is dropped.
    pub(super) async fn start(&self, neighbour: Neighbour) -> anyhow::Result<JoinSet<()>> {
        let mut tasks = JoinSet::new();
        let table = self.table()?;
        match neighbour {
            Neighbour::Nobody => {}
            Neighbour::Scans => {
                let nothing = Comparator::Substring { substring: "no such thing".to_owned() };
                (0..64).for_each(|_| drop(tasks.spawn(scan_again(table.clone(), nothing.clone()))));
            }
            Neighbour::Regex => {
                let costly = Comparator::Regex(RegexSpec::of("(?:(?=a)(?:a|aa))+b").context("a legal expression")?);
                (0..24).for_each(|_| drop(tasks.spawn(scan_again(table.clone(), costly.clone()))));
            }
            Neighbour::Batches => {
                let puts = (self.memory_bytes / 16 / BATCH_VALUE_BYTES).max(1);
                (0..2).for_each(|client| drop(tasks.spawn(write_batches(table.clone(), client, puts))));
            }
            Neighbour::SlowScanners => (0..200).for_each(|_| drop(tasks.spawn(scan_slowly(table.clone())))),
            Neighbour::WideRow => (0..8).for_each(|_| drop(tasks.spawn(read_wide_row(table.clone())))),
            Neighbour::Counters => (0..8).for_each(|client| drop(tasks.spawn(count(table.clone(), client)))),
            Neighbour::Sql => sql::start(&self.zookeeper, TABLE, &mut tasks).await?,
            Neighbour::Unread => {
                let scan = large_scan(&table).await?;
                for _ in 0..6 {
                    let (address, scan) = (address(&table).await?, scan.clone());
                    tasks.spawn(async move {
                        loop {
                            let _ = ask_without_reading(&address, &scan).await;
                            tokio::time::sleep(Duration::from_secs(1)).await;
                        }
                    });
                }
            }
            Neighbour::Connections => {
                let address = address(&table).await?;
                let mut open = Vec::new();
                for _ in 0..5000 {
                    // As many as the system lets a process have.
                    let Ok(mut stream) = TcpStream::connect(&address).await else { break };
                    stream.write_all(&hello()).await?;
                    open.push(stream);
                }
                tasks.spawn(async move {
                    let _open = open;
                    std::future::pending::<()>().await;
                });
            }
        }
        Ok(tasks)
    }
}

/// Whoever is refused tries again after a while, as clients do.
pub(super) const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

async fn scan_again(table: Table, comparator: Comparator) {
    let filter = Arc::new(Filter::Value { op: CompareOp::Equal, comparator: Some(comparator) });
    loop {
        let scan = Scan { filter: Some(filter.clone()), ..Scan::default() };
        let mut scanner = table.scan(scan, ScanOptions::default());
        loop {
            match scanner.next_batch().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                    break;
                }
            }
        }
    }
}

async fn write_batches(table: Table, client: u64, puts: u64) {
    let value = vec![b'b'; BATCH_VALUE_BYTES as usize];
    let put = |n| Put::new(format!("batch{client}-{n:06}")).add(FAMILY, "q", &value).build();
    let batch: Vec<_> = (0..puts).map(put).collect();
    loop {
        if table.mutate_all(&batch).await.is_err() {
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

async fn scan_slowly(table: Table) {
    loop {
        let mut scanner = table.scan(Scan::default(), ScanOptions { caching: 10, ..ScanOptions::default() });
        while let Ok(Some(_)) = scanner.next_batch().await {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
    }
}

async fn read_wide_row(table: Table) {
    let get = Get::new(Bytes::from(WIDE_ROW));
    loop {
        if table.get(&get).await.is_err() {
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

async fn count(table: Table, client: u64) {
    for n in 0_u64.. {
        let increment = Increment::new(format!("counter{client}-{}", n % 100)).add(FAMILY, "q", 1).build();
        if table.increment(&increment).await.is_err() {
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

/// `host:port` of the server of the table's first region.
async fn address(table: &Table) -> anyhow::Result<String> {
    let regions = table.regions().await?;
    Ok(regions.first().context("a table has regions")?.server.address())
}

/// A connection's first bytes.
fn hello() -> Vec<u8> {
    let header = pb::ConnectionHeader {
        user_info: Some(pb::UserInformation { effective_user: "noise".to_owned(), real_user: None }),
        service_name: Some("ClientService".to_owned()),
        cell_block_codec_class: Some(rpc::CellCodec::KeyValue.class().to_owned()),
        ..pb::ConnectionHeader::default()
    };
    let header = proto::Message::encode_to_vec(&header);
    let mut hello = b"HBas\0P".to_vec();
    hello.extend_from_slice(&(header.len() as u32).to_be_bytes());
    hello.extend_from_slice(&header);
    hello
}

/// A scan for as much as fits into a reply.
async fn large_scan(table: &Table) -> anyhow::Result<Vec<u8>> {
    let regions = table.regions().await?;
    let region = &regions.first().context("a table has regions")?.region;
    Ok(proto::Message::encode_to_vec(&pb::ScanRequest {
        region: Some(convert::to_proto::region_specifier(region)),
        scan: Some(pb::Scan::default()),
        number_of_rows: Some(i32::MAX as u32),
        client_handles_partials: Some(true),
        close_scanner: Some(true),
        ..pb::ScanRequest::default()
    }))
}

/// Asks 200 times, and reads nothing until the server has had enough of it.
async fn ask_without_reading(address: &str, scan: &[u8]) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&hello()).await?;
    let mut requests = BytesMut::new();
    for id in 0..200 {
        let header = pb::RequestHeader {
            call_id: Some(id),
            method_name: Some("Scan".to_owned()),
            request_param: Some(true),
            ..pb::RequestHeader::default()
        };
        rpc::frame::put_frame(&mut requests, &header, Some(scan), 0);
    }
    stream.write_all(&requests).await?;
    // Until the server has given it up, by its stall timeout of a minute.
    tokio::time::sleep(Duration::from_secs(70)).await;
    Ok(())
}
