//! A small client beside a fault: a get every 5 ms, a synced put every 20 ms, a status page every second, each timed
//! from the moment at which it was due, so that a stall counts for everything that it holds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::lab::Lab;
use crate::load::retried;
use crate::remote::{Address, Admin, Failure, Remote, Table};
use crate::site::Site;

const TABLE: &str = "bystander";
const PATIENCE: Duration = Duration::from_secs(120);

/// What a get, put or page may take in a scenario. The defects made them wait for many seconds. The server's target is
/// a twentieth of this, and `cargo xtask neighbours` holds it to that on a quiet machine; this bound holds on a busy
/// one.
const MOST_WAIT: Duration = Duration::from_secs(2);

/// How long one kind of operation took.
#[derive(Clone, Debug, Default)]
struct Kind {
    done: u64,
    longest: Duration,
    failure: Option<String>,
}

/// How long everything took.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    gets: Kind,
    puts: Kind,
    pages: Kind,
}

/// The client at work, on a thread of its own: what makes the noise does not hold it up.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<anyhow::Result<Waits>>,
}

impl Bystander {
    /// Makes its table, unless an earlier one has, and starts it.
    pub async fn start(site: &Site) -> anyhow::Result<Bystander> {
        let created = Admin::new(site.master.clone(), site.region.clone()).create(TABLE, &[], true).await;
        created.or_else(|error| if error.to_string().contains("TableExists") { Ok(()) } else { Err(error) })?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, region, page) = (stop.clone(), site.region.clone(), site.page.clone());
        let thread = std::thread::Builder::new().name("bystander".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(work(region, page, &stopping))
        })?;
        Ok(Bystander { stop, thread })
    }

    /// Ends it, and holds what it waited for against the bound.
    pub async fn finish(self, lab: &mut Lab) -> anyhow::Result<()> {
        self.finish_within(lab, MOST_WAIT).await
    }

    /// As [`Bystander::finish`] where puts may wait for longer than everything else, because memory is full.
    pub async fn finish_within(self, lab: &mut Lab, most_put: Duration) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await?;
        let waits = joined.map_err(|_| anyhow::anyhow!("the bystander panicked"))??;
        let ms = |kind: &Kind| kind.longest.as_millis();
        println!(
            "    a bystander's longest get {} ms of {}, put {} ms of {}, page {} ms of {}",
            ms(&waits.gets),
            waits.gets.done,
            ms(&waits.puts),
            waits.puts.done,
            ms(&waits.pages),
            waits.pages.done
        );
        let kinds =
            [("get", &waits.gets, MOST_WAIT), ("put", &waits.puts, most_put), ("page", &waits.pages, MOST_WAIT)];
        for (name, kind, most) in kinds {
            lab.tally.done += kind.done;
            lab.expect(kind.done > 0, || format!("the bystander did no {name}"));
            lab.expect(kind.longest <= most, || format!("a bystander's {name} took {} ms", ms(kind)));
            if let Some(failure) = &kind.failure {
                lab.expect(false, || format!("a bystander's {name} failed: {failure}"));
            }
        }
        Ok(())
    }
}

async fn work(region: Address, page: Address, stop: &AtomicBool) -> anyhow::Result<Waits> {
    let table = || Table::new(TABLE, Arc::new(Remote::new(region.clone(), "ClientService", PATIENCE)));
    let (reader, writer) = (table(), table());
    let failed = |failure: Failure| anyhow::anyhow!("{}", failure.text().to_owned());
    writer.put(b"row", &[("f", "q", b"value")]).await.map_err(failed)?;
    reader.get(b"row").await.map_err(failed)?;
    let ms = Duration::from_millis;
    let (gets, puts, pages) = tokio::join!(
        paced(stop, ms(5), async || match reader.get(b"row").await.map_err(failed)? {
            Some(_) => Ok(()),
            None => bail!("the row is missing"),
        }),
        paced(stop, ms(20), async || {
            // A server whose memory is full may refuse it for a while; what it waits for then counts.
            retried(|| writer.put(b"row", &[("f", "q", b"value")]), PATIENCE).await.map_err(failed)
        }),
        paced(stop, ms(1000), async || status_page(&page).await),
    );
    Ok(Waits { gets, puts, pages })
}

/// Calls `operation` every `period`, from when it was due.
async fn paced(stop: &AtomicBool, period: Duration, operation: impl AsyncFn() -> anyhow::Result<()>) -> Kind {
    let mut kind = Kind::default();
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match tokio::time::timeout(PATIENCE, operation()).await {
            Ok(Ok(())) => kind.done += 1,
            Ok(Err(error)) => kind.failure = Some(format!("{error:#}")),
            Err(_) => kind.failure = Some(format!("no answer in {} s", PATIENCE.as_secs())),
        }
        kind.longest = kind.longest.max(due.elapsed());
        due += period;
        tokio::time::sleep_until(due).await;
    }
    kind
}

/// Asks for the metrics.
pub async fn status_page(page: &Address) -> anyhow::Result<()> {
    metrics(page).await.map(drop)
}

/// The metrics' page.
pub async fn metrics(page: &Address) -> anyhow::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(page.get().context("no status page")?).await?;
    stream.write_all(b"GET /prometheus HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).unwrap_or_default();
    if status != b"200" {
        bail!("a status page answers {}", String::from_utf8_lossy(status));
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
