//! Clients that mean harm, or are simply too many.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::lab::Lab;
use crate::load::Shape;

const PATIENCE: Duration = Duration::from_secs(30);

/// Connections, as many as can be had up to `count`.
async fn connections(address: std::net::SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        match tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => all.push(stream),
            _ => break,
        }
    }
    all
}

/// How many have been closed by the server.
async fn closed(connections: &mut [TcpStream]) -> usize {
    let mut closed = 0;
    let mut byte = [0; 64];
    for stream in connections {
        loop {
            match tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte)).await {
                Ok(Ok(0) | Err(_)) => {
                    closed += 1;
                    break;
                }
                Ok(Ok(_)) => {}
                Err(_) => break,
            }
        }
    }
    closed
}

/// F50: hundreds of connections that send a byte now and then, in the preamble, the header and in a frame: they are closed
/// in time, others do not feel them.
pub async fn f50_slow_loris(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    site.define("basalt.ipc.connection.handshake.timeout", 2000);
    site.define("basalt.ipc.connection.stall.timeout", 1000);
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    let Some(address) = site.region.get() else { anyhow::bail!("no address") };
    let before_mib = server.resident_mib();
    let mut slow = connections(address, 400).await;
    let count = slow.len();
    // A third is at the preamble, a third promises a long header, a third promises a giant frame after a whole header.
    let header = [b"HBas\0P".as_slice(), &10_000u32.to_be_bytes()].concat();
    for (at, stream) in slow.iter_mut().enumerate() {
        let hello: &[u8] = match at % 3 {
            0 => b"HB",
            1 => &header,
            _ => b"HBas\0P\0\0\0\x0f\x12\x0dClientService\x0f\xff\xff\xff",
        };
        // A connection that is closed already is what is wanted.
        let _ = stream.write_all(hello).await;
    }
    lab.sleep(500, 600).await;
    // Nothing else works yet: what has grown is theirs.
    let growth = server.resident_mib().saturating_sub(before_mib);
    load.go();
    let mut gone = 0;
    for _ in 0..16 {
        for stream in &mut slow {
            let _ = tokio::time::timeout(Duration::from_millis(1), stream.write_all(b"x")).await;
        }
        load.progress(20, Duration::from_secs(10)).await?;
        lab.sleep(300, 500).await;
        gone = closed(&mut slow).await;
    }
    println!("    {gone} of {count} slow connections closed, {growth} MiB more resident");
    lab.faults += count as u64;
    lab.rounds += 1;
    lab.expect(gone * 10 >= count * 6, || format!("only {gone} of {count} slow connections were closed"));
    lab.expect(growth < 64, || format!("{growth} MiB for {count} slow connections"));
    lab.expect(server.is_alive(), || "the process ended".to_owned());
    drop(slow);
    lab.verify(&mut load, &mut site, server).await
}

/// F50: more connections than the cap: those over it are closed at once, those under it work on, and when the flood is over
/// new ones are taken.
pub async fn f50_connection_flood(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    site.define("basalt.ipc.max.connections", 120);
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    load.progress(100, PATIENCE).await?;
    let Some(address) = site.region.get() else { anyhow::bail!("no address") };
    for _ in 0..3 {
        let before = server.descriptors();
        let mut flood = connections(address, 600).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (gone, descriptors) = (closed(&mut flood).await, server.descriptors());
        lab.expect(gone >= 480, || {
            format!("only {gone} of {} connections over the cap of 120 were closed", flood.len())
        });
        lab.expect(descriptors < before + 130, || format!("{descriptors} descriptors, before it were {before}"));
        load.progress(200, PATIENCE).await?;
        drop(flood);
        lab.sleep(200, 400).await;
        let mut late = connections(address, 20).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let refused = closed(&mut late).await;
        lab.expect(refused == 0, || format!("{refused} of 20 connections after the flood were closed"));
        lab.faults += 600;
        lab.rounds += 1;
    }
    lab.expect(server.is_alive(), || "the process ended".to_owned());
    let told = server.said().lines().filter(|line| line.contains("basalt.ipc.max.connections")).count();
    lab.expect((1..=20).contains(&told), || format!("{told} lines of log about the flood"));
    lab.verify(&mut load, &mut site, server).await
}

/// F50: few descriptors and a flood of connections: files can still be opened, the log rolls, the process lives.
pub async fn f50_descriptors_run_out(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    site.descriptors = Some(160);
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    load.progress(100, PATIENCE).await?;
    let (Some(region), Some(master)) = (site.region.get(), site.master.get()) else { anyhow::bail!("no address") };
    for _ in 0..3 {
        let flood = (connections(region, 400).await, connections(master, 400).await);
        lab.sleep(1000, 2500).await;
        lab.faults += 800;
        lab.rounds += 1;
        if !server.is_alive() {
            anyhow::bail!("descriptors ran out and the process ended: {}", server.last_words());
        }
        load.progress(200, PATIENCE).await?;
        let descriptors = server.descriptors();
        println!("    {descriptors} descriptors of 160 in the flood");
        drop(flood);
        lab.sleep(300, 500).await;
    }
    load.progress(200, PATIENCE).await?;
    lab.verify(&mut load, &mut site, server).await
}
