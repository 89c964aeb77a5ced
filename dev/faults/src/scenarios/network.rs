//! A network that delays, cuts, closes halves, swallows and repeats.

use std::sync::Arc;
use std::time::Duration;

use crate::lab::Lab;
use crate::load::{Load, Shape};
use crate::proxy::{Mood, Proxy};
use crate::remote::{Address, Remote, Table};

const PATIENCE: Duration = Duration::from_secs(30);

/// F34: every mood of the proxy in turn, under load whose increments are sent twice at once: one order for each row,
/// each increment once.
pub async fn f34_network_faults(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let server = site.start()?;
    let proxy = Proxy::start(site.region.clone(), lab.rng.next_u64()).await?;
    let front = Address::default();
    front.set(proxy.address);
    let shape = Shape { twice: true, patience: Duration::from_millis(800), ..Shape::default() };
    let mut load = Load::prepare(&front, &site.master, shape, lab.rng.next_u64()).await?;
    load.go();
    let calm = Mood::default();
    let moods = [
        Mood { delay_ms: 30, ..calm },
        Mood { cut_one_in: 20, ..calm },
        Mood { half_close_one_in: 20, ..calm },
        Mood { delay_ms: 10, cut_one_in: 40, half_close_one_in: 40, ..calm },
        Mood { swallow_requests: true, ..calm },
        Mood { swallow_replies: true, ..calm },
        Mood { delay_ms: 1500, ..calm },
    ];
    for mood in moods {
        proxy.set(calm);
        load.progress(100, PATIENCE).await?;
        proxy.set(mood);
        lab.sleep(1200, 2000).await;
        proxy.cut_all();
        lab.rounds += 1;
    }
    proxy.set(calm);
    load.progress(200, PATIENCE).await?;
    lab.faults += proxy.faults.load(std::sync::atomic::Ordering::Relaxed);
    lab.verify(&mut load, &mut site, server).await?;
    let open = proxy.open.load(std::sync::atomic::Ordering::Relaxed);
    lab.expect(open < 200, || format!("{open} connections are still open through the proxy"));
    Ok(())
}

/// F34: requests that arrive twice, the second time at once or after others of the same connection: an increment counts once, a put is
/// there as it was sent, a scan has each row once. (A put without a timestamp that is repeated is a later put, so no registers.)
pub async fn f34_repeated_requests(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let server = site.start()?;
    let proxy = Proxy::start(site.region.clone(), lab.rng.next_u64()).await?;
    let front = Address::default();
    front.set(proxy.address);
    let shape = Shape { register_clients: 0, counter_clients: 6, scan_clients: 3, ..Shape::default() };
    let mut load = Load::prepare(&front, &site.master, shape, lab.rng.next_u64()).await?;
    load.go();
    for (repeat_one_in, cut_one_in) in [(1, 0), (3, 0), (2, 50), (20, 0)] {
        proxy.set(Mood { repeat_one_in, cut_one_in, ..Mood::default() });
        load.progress(2000, PATIENCE).await?;
        lab.rounds += 1;
    }
    proxy.set(Mood::default());
    load.progress(200, PATIENCE).await?;
    let repeated = proxy.faults.load(std::sync::atomic::Ordering::Relaxed);
    lab.expect(repeated > 100, || format!("only {repeated} requests were repeated"));
    lab.faults += repeated;
    lab.verify(&mut load, &mut site, server).await
}

/// F40: a scan whose connection is cut at some byte of every few calls still has each row once, in order.
pub async fn f40_scan_cut_at_every_call(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (server, mut load) = lab.start(&mut site, Shape { scan_clients: 0, ..Shape::default() }).await?;
    load.go();
    let proxy = Proxy::start(site.region.clone(), lab.rng.next_u64()).await?;
    let front = Address::default();
    front.set(proxy.address);
    let table = Table::new("faults", Arc::new(Remote::new(front, "ClientService", Duration::from_secs(2))));
    let expected: Vec<Vec<u8>> = (0..300).map(|at| format!("s{at:05}").into_bytes()).collect();
    for per_call in [1, 2, 7, 40, 299, 1000] {
        proxy.set(Mood::default());
        table.regions().await.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
        proxy.set(Mood { cut_one_in: 8, half_close_one_in: 30, ..Mood::default() });
        for _ in 0..5 {
            match table.scan(b"s", b"t", per_call, PATIENCE).await {
                Ok(rows) => {
                    let keys: Vec<Vec<u8>> = rows.into_iter().map(|row| row.key).collect();
                    lab.expect(keys == expected, || format!("{per_call} rows a call: {} rows, not 300", keys.len()));
                }
                Err(failure) => lab.violations.push(format!("{per_call} rows a call: {}", failure.text())),
            }
            lab.rounds += 1;
        }
    }
    lab.faults += proxy.faults.load(std::sync::atomic::Ordering::Relaxed);
    lab.verify(&mut load, &mut site, server).await
}
