//! What the tests of a cluster do with it and its one table, whoever leads.

use super::lab::{Lab, Piece, regions, server, until};
use bytes::Bytes;
use client::{Connection, Options, Put, ScanOptions};
use model::{Get, RegionInfo, Scan, ServerName, TableName};
use std::time::{Duration, Instant};

/// The cluster in one test's hands.
pub struct Cluster {
    pub lab: Lab,
    pub connection: Connection,
    pub table: TableName,
    /// Rows that were acknowledged.
    pub rows: u32,
}

/// How a region server is lost.
#[derive(Clone, Copy)]
pub enum Loss {
    Killed,
    /// It stands still, and goes on when others have what it had.
    Stopped,
}

pub fn row(n: u32) -> String {
    // Over all regions.
    format!("{}{n:05}", char::from(b'a' + (n % 8) as u8))
}

impl Cluster {
    /// Writes so many rows more; answers how long the slowest took.
    pub async fn put(&mut self, count: u32) -> Duration {
        let table = self.connection.table(&self.table);
        let mut slowest = Duration::ZERO;
        for n in self.rows..self.rows + count {
            let put = Put::new(row(n)).add("f", "q", format!("value{n}"));
            let began = Instant::now();
            table.put(&put.build()).await.unwrap_or_else(|error| panic!("row {n}: {error}"));
            slowest = slowest.max(began.elapsed());
        }
        self.rows += count;
        slowest
    }

    /// Every acknowledged row is there, by a scan and by gets.
    pub async fn expect_rows(&self) {
        let table = self.connection.table(&self.table);
        let mut scanner = table.scan(Scan::default(), ScanOptions::default());
        let mut found = 0;
        while scanner.next().await.expect("a row or the end").is_some() {
            found += 1;
        }
        assert_eq!(found, self.rows, "rows by a scan");
        for n in (0..self.rows).step_by(7) {
            let got = table.get(&Get::new(row(n))).await.expect("an answer");
            assert_eq!(got.value(b"f", b"q"), Some(format!("value{n}").as_bytes()), "{}", row(n));
        }
    }

    pub async fn regions_of(&self, server: &ServerName) -> Vec<RegionInfo> {
        let all = regions(&self.connection, &self.table).await;
        all.into_iter().filter(|at| at.server == *server).map(|at| at.region).collect()
    }

    pub async fn move_to(&self, region: &RegionInfo, to: &ServerName) {
        let name = Bytes::copy_from_slice(region.encoded_name().as_bytes());
        self.connection.admin().move_region(&name, Some(to)).await.expect("the master moves it");
        until(&format!("{} is on {to}", region.name_string()), async || {
            self.regions_of(to).await.iter().any(|there| there.encoded_name() == region.encoded_name())
        })
        .await;
    }

    pub async fn move_meta_to(&self, to: &ServerName) {
        let meta = RegionInfo::meta();
        self.connection
            .admin()
            .move_region(meta.encoded_name().as_bytes(), Some(to))
            .await
            .expect("the master moves it");
        until(&format!("hbase:meta is on {to}"), async || self.meta_is_on(to).await).await;
    }

    pub async fn meta_is_on(&self, to: &ServerName) -> bool {
        regions(&self.connection, &TableName::meta()).await.iter().any(|at| at.server == *to)
    }

    /// The name of the server that the process is; its log has its earlier lives, too.
    pub async fn name_of(&self, piece: &Piece) -> ServerName {
        let mut found = None;
        until("the server is in the cluster", async || {
            let said = piece.said();
            let last = said.rsplit("  serving    ").next().and_then(|rest| rest.lines().next()).unwrap_or_default();
            found = server(&self.connection, |name| name.to_string() == last).await;
            found.is_some()
        })
        .await;
        found.expect("found")
    }

    /// A row of each region is read: all are served.
    pub async fn all_served(&self) -> bool {
        self.all_served_to(&self.connection).await
    }

    async fn all_served_to(&self, connection: &Connection) -> bool {
        let table = connection.table(&self.table);
        for n in 0..8 {
            if table.get(&Get::new(row(n))).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Has a region server serve no more; answers how long it took until all regions were served again.
    pub async fn lose(&self, piece: Piece, name: &ServerName, loss: Loss) -> Duration {
        let had_meta = self.meta_is_on(name).await;
        let regions = self.regions_of(name).await.len();
        let (what, standing) = match loss {
            Loss::Killed => {
                piece.kill();
                ("kill -9", None)
            }
            Loss::Stopped => {
                piece.signal(rustix::process::Signal::STOP);
                ("SIGSTOP", Some(piece))
            }
        };
        let began = Instant::now();
        // One that stands still answers nobody: whoever waits for it as long as clients do hears no earlier that others have its regions.
        // After many tries they pause for ten seconds, in which the regions may long be served.
        let reader =
            self.lab.connect_with(|options| Options { rpc_timeout: Duration::from_secs(1), retries: 2, ..options });
        until("all regions are served", async || self.all_served_to(&reader).await).await;
        let took = began.elapsed();
        let meta = if had_meta { " and hbase:meta" } else { "" };
        self.lab.note(&format!("{what} of a server with {regions} regions{meta}: all served after {took:.2?}"));
        if let Some(piece) = standing {
            piece.signal(rustix::process::Signal::CONT);
            assert!(piece.ends(), "it learns that others have its regions");
            assert!(self.all_served().await, "and has done them no harm");
        }
        took
    }
}
