//! How long a hundred regions of a killed server are away below HBase's own master, by whose server was killed and whose takes them over.
//! `cargo xtask cluster recovered`; it takes minutes, prints what it saw, and fails where ours is behind. `BASALT_RECOVERED_LOG_MB` has as many
//! megabytes in the log of the server that is killed.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes, and measure them")]

use crate::joined::lab::{Lab, Piece, regions, servers, until};
use bytes::Bytes;
use client::{Connection, Put, ScanOptions};
use model::{FamilyDescriptor, Get, Scan, ServerName, TableDescriptor, TableName, TimeRange};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const REGIONS: usize = 100;
/// In each region, in its log alone.
const ROWS: usize = 20;
/// Of all regions, written at a time where there are megabytes of them.
const WRITERS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    HBases,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Whose::Ours { "ours" } else { "HBase's" })
    }
}

/// What was seen of one kill.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// From the kill until a row of each region was read.
    until_served: Duration,
    /// From the first region that was to be opened to the last that was open, as hbase:meta has it.
    opening: Duration,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_regions_are_back_no_later_than_those_of_hbases_servers() {
    let mut seen = Vec::new();
    for (victim, survivor) in [
        (Whose::HBases, Whose::HBases),
        (Whose::Ours, Whose::HBases),
        (Whose::HBases, Whose::Ours),
        (Whose::Ours, Whose::Ours),
    ] {
        let Some(lab) = Lab::open(&format!("recovered-{}", seen.len())) else { return };
        let found = kill_one(&lab, victim, survivor).await;
        lab.note(&format!(
            "{victim} killed, {survivor} takes over: all served after {:.2?}; opened within {:.2?}",
            found.until_served, found.opening
        ));
        seen.push(found);
    }
    let [java, ours_killed, ours_opens, ours] = seen.try_into().expect("four");
    // Both wait for the same session and the same leases; half a second is what two such waits differ by. What is in the logs goes through the
    // same HDFS, as much of it as there is: that differs by a tenth from run to run.
    let (late, times) = match log_bytes() {
        0 => (Duration::from_millis(500), 3),
        _ => (Duration::from_millis(500) + java.until_served / 10, 2),
    };
    assert!(ours_killed.until_served <= java.until_served + late, "{ours_killed:?}, HBase's {java:?}");
    assert!(ours_opens.opening * times <= java.opening, "{ours_opens:?}, HBase's {java:?}");
    assert!(ours.until_served <= java.until_served, "{ours:?}, HBase's {java:?}");
}

fn row(n: usize) -> String {
    format!("{:03}-{:03}", n % REGIONS, n / REGIONS)
}

async fn kill_one(lab: &Lab, victim: Whose, survivor: Whose) -> Seen {
    let _master = lab.master();
    let connection = lab.connect();
    let start = |whose: Whose, name: &str| match whose {
        Whose::Ours => lab.basalt(name, "regionserver"),
        // Each memstore takes 2 MB of it, and what is in the log is in those.
        Whose::HBases => lab.java_server_with(name, if log_bytes() > 0 { "4g" } else { "768m" }),
    };
    // The first has hbase:meta.
    let _survivor = start(survivor, "survivor");
    until("the first server is in the cluster", async || servers(&connection).await.len() == 1).await;
    let first = servers(&connection).await.remove(0);
    let table = TableName::parse("t").expect("a name");
    let descriptor = TableDescriptor::new(table.clone(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = (1..REGIONS).map(|n| Bytes::from(format!("{n:03}"))).collect();
    connection.admin().create_table(&descriptor, &splits).await.expect("made");
    let piece = start(victim, "victim");
    until("both servers are in the cluster", async || servers(&connection).await.len() == 2).await;
    // HBase's tells the master of itself before it takes orders.
    until("the second takes orders", async || {
        let said = piece.said();
        said.contains("Serving as ") || said.contains("  serving    ")
    })
    .await;
    let second = servers(&connection).await.into_iter().find(|server| *server != first).expect("two");
    until("all regions are on it", async || {
        let places = regions(&connection, &table).await;
        let elsewhere: Vec<_> = places.iter().filter(|at| at.server != second).collect();
        // HBase's master takes a second for each; they need not wait for one another. One that the server was not ready for yet stays.
        let moves: Vec<_> = elsewhere
            .iter()
            .map(|at| {
                let (connection, second, region) = (connection.clone(), second.clone(), at.region.clone());
                tokio::spawn(async move {
                    connection.admin().move_region(region.encoded_name().as_bytes(), Some(&second)).await
                })
            })
            .collect();
        for moved in moves {
            let _tried_again = moved.await.expect("no panic");
        }
        places.len() == REGIONS && elsewhere.is_empty()
    })
    .await;
    fill_log(&connection, &table).await;
    let written = connection.table(&table);
    for n in 0..REGIONS * ROWS {
        written.put(&Put::new(row(n)).add("f", "q", format!("value{n}")).build()).await.expect("acknowledged");
    }
    kill(&connection, &table, piece, &first).await
}

fn log_bytes() -> usize {
    let megabytes = std::env::var("BASALT_RECOVERED_LOG_MB").ok().map(|text| text.parse::<usize>().expect("a number"));
    megabytes.unwrap_or(0) << 20
}

/// Rows of other columns than those that are looked for.
async fn fill_log(connection: &Connection, table: &TableName) {
    const VALUE_BYTES: usize = 10_000;
    let (rows, written) = (log_bytes() / VALUE_BYTES, Arc::new(connection.table(table)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let written = written.clone();
            tokio::spawn(async move {
                for n in (writer..rows).step_by(WRITERS) {
                    let put = Put::new(row(n)).add("f", "large", vec![b'v'; VALUE_BYTES]).build();
                    written.put(&put).await.expect("acknowledged");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
}

async fn kill(connection: &Connection, table: &TableName, victim: Piece, survivor: &ServerName) -> Seen {
    let since_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_millis();
    let killed = Instant::now();
    victim.kill();
    let reading = Arc::new(connection.table(table));
    let reads: Vec<_> = (0..REGIONS)
        .map(|n| {
            let table = reading.clone();
            tokio::spawn(async move {
                // The last that was written to the region.
                let n = n + REGIONS * (ROWS - 1);
                let got = table.get(&Get::new(row(n))).await.expect("served");
                assert_eq!(got.value(b"f", b"q"), Some(format!("value{n}").as_bytes()), "{}", row(n));
            })
        })
        .collect();
    for read in reads {
        read.await.expect("no panic");
    }
    let until_served = killed.elapsed();
    assert!(regions(connection, table).await.iter().all(|at| at.server == *survivor));
    Seen { until_served, opening: opening(connection, table, i64::try_from(since_ms).expect("this century")).await }
}

/// From the first OPENING to the last OPEN that hbase:meta was told since then.
async fn opening(connection: &Connection, table: &TableName, since_ms: i64) -> Duration {
    let name = table.as_str().as_bytes();
    let scan = Scan {
        start_row: Bytes::from([name, b",,"].concat()),
        stop_row: Bytes::from([name, b" ,,"].concat()),
        columns: [(Bytes::from_static(b"info"), vec![Bytes::from_static(b"state")])].into(),
        max_versions: 10,
        time_range: TimeRange { min: since_ms, ..TimeRange::ALL },
        ..Scan::default()
    };
    let meta = connection.table(&TableName::meta());
    let mut scanner = meta.scan(scan, ScanOptions::default());
    let (mut first, mut last, mut opened) = (i64::MAX, 0, 0);
    while let Some(row) = scanner.next().await.expect("a row or the end") {
        for cell in &row {
            match cell.value() {
                b"OPENING" => first = first.min(cell.timestamp()),
                b"OPEN" => (last, opened) = (last.max(cell.timestamp()), opened + 1),
                _ => {}
            }
        }
    }
    assert_eq!(opened, REGIONS, "regions that hbase:meta has as opened since the kill");
    Duration::from_millis(u64::try_from(last - first).expect("in order"))
}
