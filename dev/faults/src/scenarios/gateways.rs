//! Clients of the gateways in the server's process that take nothing of what they ask for: memory stays in its bounds, and others are
//! answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use proto::methods::Method;
use proto::pb::mutation_proto::{Durability, MutationType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use super::busy::{call, puts, said, start_with_table};
use crate::bystander::Bystander;
use crate::lab::Lab;
use crate::remote::{Address, Admin};
use crate::wire::{mutate, mutation};

const BUDGET_MIB: u64 = 128;
const READERS: usize = 1000;
/// What a read of the polite client may take on a busy machine.
const MOST_WAIT: Duration = Duration::from_secs(2);

/// F70: a thousand clients ask for 10 MB each, by scans over REST, rows over REST and rows over Thrift, and read nothing of it.
pub async fn f70_a_thousand_readers_that_do_not_read(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    site.define("basalt.rest.port", 0);
    site.define("basalt.thrift.port", 0);
    let (server, region) = start_with_table(&mut site).await?;
    let value = Bytes::from(vec![7; 100_000]);
    call(&site, Method::ClientMulti, &puts(&region, "", 0..50, &value)).await?;
    call(&site, Method::ClientMulti, &puts(&region, "", 50..100, &value)).await?;
    let columns = (0..60).map(|n| (format!("{n:03}").into(), value.clone()));
    let row = mutation(MutationType::Put, b"large", columns, Durability::SkipWal);
    call(&site, Method::ClientMutate, &mutate(&region, row)).await?;
    let small = [(Bytes::from_static(b"q"), Bytes::from(vec![1; 1000]))];
    let row = mutation(MutationType::Put, b"small", small.into_iter(), Durability::SkipWal);
    call(&site, Method::ClientMutate, &mutate(&region, row)).await?;
    Admin::new(site.master.clone(), site.region.clone()).flush(&region).await.map_err(said)?;
    let table = "noise";
    let bystander = Bystander::start(&site).await?;
    let polite = Polite::start(site.rest.clone(), format!("/{table}/small"))?;
    let head = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n");
    let requests = [
        (&site.rest, head(&format!("/{table}/*")).into_bytes()),
        (&site.rest, head(&format!("/{table}/large")).into_bytes()),
        (&site.thrift, thrift_get_row(table, "large")),
    ];
    let mut readers = Vec::new();
    for (address, request) in requests.iter().cycle().take(READERS) {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        let mut stream = socket.connect(address.get().context("no gateway")?).await?;
        stream.write_all(request).await?;
        readers.push(stream);
        lab.faults += 1;
    }
    lab.sleep(10_000, 12_000).await;
    lab.rounds += 1;
    polite.finish(lab).await?;
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    drop(readers);
    lab.expect_idle(&server).await;
    server.stop()
}

/// `getRow` in the binary protocol without a frame.
fn thrift_get_row(table: &str, row: &str) -> Vec<u8> {
    let mut message = Vec::from(0x8001_0001_u32.to_be_bytes());
    let text = |message: &mut Vec<u8>, text: &str| {
        message.extend((text.len() as u32).to_be_bytes());
        message.extend(text.as_bytes());
    };
    text(&mut message, "getRow");
    message.extend(1_u32.to_be_bytes());
    for (id, argument) in [(1_u8, table), (2, row)] {
        // A string, by its number.
        message.extend([11, 0, id]);
        text(&mut message, argument);
    }
    message.push(0);
    message
}

/// A client that gets one small row over and over, on a thread and a connection of its own.
struct Polite {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl Polite {
    fn start(rest: Address, path: String) -> anyhow::Result<Polite> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::Builder::new().name("polite".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(read_on(rest, &path, &stopping))
        })?;
        Ok(Polite { stop, thread })
    }

    async fn finish(self, lab: &mut Lab) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await?;
        let mut took = joined.map_err(|_| anyhow::anyhow!("the polite client panicked"))??;
        took.sort_unstable();
        ensure!(!took.is_empty(), "the polite client got nothing");
        let at = |permille: usize| took[(took.len() - 1) * permille / 1000];
        println!(
            "    a polite client's {} reads: median {} us, p99 {} us, longest {} us",
            took.len(),
            at(500).as_micros(),
            at(990).as_micros(),
            at(1000).as_micros()
        );
        lab.tally.done += took.len() as u64;
        lab.expect(at(1000) <= MOST_WAIT, || format!("a polite read took {} ms", at(1000).as_millis()));
        Ok(())
    }
}

/// One read every 5 ms, each timed from the moment at which it was due.
async fn read_on(rest: Address, path: &str, stop: &AtomicBool) -> anyhow::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(rest.get().context("no REST gateway")?).await?;
    stream.set_nodelay(true)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-protobuf\r\n\r\n");
    let (mut took, mut due, mut answer) = (Vec::new(), Instant::now(), vec![0; 1 << 16]);
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(request.as_bytes()).await?;
        let mut read = 0;
        loop {
            let count = stream.read(&mut answer[read..]).await?;
            ensure!(count > 0, "the gateway closed a polite client's connection");
            read += count;
            let head = String::from_utf8_lossy(&answer[..read]);
            let Some((head, _)) = head.split_once("\r\n\r\n") else { continue };
            ensure!(head.starts_with("HTTP/1.1 200"), "a polite client was answered {head:?}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.context("an answer without a length")?.parse()?;
            if read >= head.len() + 4 + length {
                break;
            }
        }
        took.push(due.elapsed());
        due += Duration::from_millis(5);
        tokio::time::sleep_until(due).await;
    }
    Ok(took)
}
