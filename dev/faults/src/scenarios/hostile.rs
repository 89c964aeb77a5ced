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

/// F50: many large requests of which all but the end is sent: what they hold together is bounded, those beyond it are refused with
/// the exception that clients retry, others do not feel them.
pub async fn f50_half_sent_requests(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    site.defines.retain(|define| !define.starts_with("basalt.memory.size"));
    site.define("basalt.memory.size", 64 << 20);
    site.define("basalt.ipc.connection.stall.timeout", 3000);
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    let Some(address) = site.region.get() else { anyhow::bail!("no address") };
    let before_mib = server.resident_mib();
    // A preamble, a header, and of a request of 200 MiB the header and 6 MiB.
    let mut sent = b"HBas\0P\0\0\0\x0f\x12\x0dClientService".to_vec();
    sent.extend_from_slice(&(200u32 << 20).to_be_bytes());
    sent.extend_from_slice(b"\x0b\x08\x07\x1a\x05Multi\x20\x01");
    sent.resize(sent.len() + (6 << 20), 0xAA);
    let mut half = connections(address, 60).await;
    let count = half.len();
    let (mut most, mut refused) = (0, 0);
    for stream in &mut half {
        // One that is refused is closed while we send.
        let _ = tokio::time::timeout(Duration::from_secs(2), stream.write_all(&sent)).await;
        most = most.max(server.resident_mib().saturating_sub(before_mib));
    }
    for stream in &mut half {
        let mut reply = [0; 256];
        let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut reply)).await;
        if matches!(read, Ok(Ok(len)) if String::from_utf8_lossy(&reply[..len]).contains("CallQueueTooBig")) {
            refused += 1;
        }
    }
    println!("    {refused} of {count} half-sent requests refused, at most {most} MiB more resident");
    load.go();
    load.progress(200, PATIENCE).await?;
    lab.faults += count as u64;
    lab.rounds += 1;
    // 32 MiB may be queued with this budget, half of it by requests that are on their way.
    lab.expect(most < 64, || format!("{most} MiB for {count} requests of which 6 MiB each were sent"));
    lab.expect(refused > 0, || "none was refused".to_owned());
    // The timeout is looked at twice in its time.
    lab.sleep(5500, 6000).await;
    let gone = closed(&mut half).await;
    lab.expect(gone == count, || format!("only {gone} of {count} were closed after the stall timeout"));
    lab.expect(server.is_alive(), || "the process ended".to_owned());
    lab.verify(&mut load, &mut site, server).await
}

/// F50: the coordination endpoint under a flood, under peers that send a byte now and then, and under watches without number: it
/// answers others as before, and its memory stays what it was.
pub async fn f50_coordination_flood(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    load.progress(100, PATIENCE).await?;
    let Some(address) = site.coordination.get() else { anyhow::bail!("no address") };
    let (before_mib, before) = (server.resident_mib(), server.sockets());
    // A session, and then a long path to watch again and again.
    let mut hello = vec![0, 0, 0, 45];
    hello.resize(49, 0);
    (hello[18], hello[19], hello[31]) = (0x75, 0x30, 16);
    let watch = |number: usize| {
        let path = format!("/{number:08}{}", "x".repeat(4000));
        let body = [&[0, 0, 0, 1, 0, 0, 0, 3][..], &(path.len() as u32).to_be_bytes(), path.as_bytes(), &[1]].concat();
        [&(body.len() as u32).to_be_bytes()[..], &body].concat()
    };
    for round in 0..3 {
        let mut flood = connections(address, 500).await;
        for (at, stream) in flood.iter_mut().enumerate() {
            let hello = if at % 2 == 0 { &hello[..] } else { &hello[..20] };
            let _ = tokio::time::timeout(Duration::from_millis(5), stream.write_all(hello)).await;
        }
        for number in 0..2000 {
            let at = number % 20 * 2;
            if let Some(stream) = flood.get_mut(at) {
                let _ = tokio::time::timeout(Duration::from_millis(5), stream.write_all(&watch(number))).await;
            }
        }
        lab.sleep(300, 500).await;
        let (grown, sockets) = (server.resident_mib().saturating_sub(before_mib), server.sockets());
        let gone = closed(&mut flood).await;
        println!("    round {round}: {gone} of {} closed, {grown} MiB more resident, {sockets} sockets", flood.len());
        // On a busy machine not all of the 500 get in.
        lab.expect(gone + 300 >= flood.len(), || {
            format!("only {gone} of {} over the cap of 300 were closed", flood.len())
        });
        // The clients have theirs.
        lab.expect(sockets < before + 330, || format!("{sockets} sockets, before it were {before}"));
        lab.expect(grown < 128, || format!("{grown} MiB more"));
        load.progress(100, PATIENCE).await?;
        drop(flood);
        lab.sleep(200, 300).await;
        lab.faults += 500;
        lab.rounds += 1;
    }
    let mut asking = TcpStream::connect(address).await?;
    asking.write_all(b"ruok").await?;
    let mut answer = [0; 4];
    tokio::time::timeout(PATIENCE, asking.read_exact(&mut answer)).await??;
    lab.expect(&answer == b"imok", || "the endpoint does not say that it is well".to_owned());
    lab.expect(server.is_alive(), || "the process ended".to_owned());
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
