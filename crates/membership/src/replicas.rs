//! What regions here write is told to their read replicas on other servers, Java's or ours, and read replicas here have their primaries flushed
//! when they open. Follows: `RegionReplicaReplicationEndpoint`, `RegionReplicaFlushHandler`.
//!
//! Always true:
//!  1. A replica is told of entries in the order of their ids, each batch once the one before was taken.
//!  2. A replica that cannot be reached, or does not take what it is told, is told nothing more until entries come that name all files: with these it
//!     is whole. The others do not wait for it beyond the tries of one batch.
//!  3. Nothing of this holds a writer up: what waits is bounded by the region's outbox.

use base::Config;
use bytes::Bytes;
use client::{Connection, RegionLocation};
use model::{RegionInfo, ServerName};
use proto::pb;
use regionserver::{RegionServer, ReplicaEntries, ReplicaSender, ReplicaSource, WaitingReplica};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Tries of one batch at one replica.
const TRIES: u32 = 4;
/// After the first that failed; doubled by each of the next.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Between two tries to have a primary flushed.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A log that has failed is asked for entries again after so long.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// hbase:meta is asked where replicas are that are not where they were, so long after the time before; doubled each time.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// It does not grow beyond it.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A replica that does not take what it is told is left alone for so long, if it does not go elsewhere; doubled each time.
const FIRST_PATIENCE: Duration = Duration::from_secs(30);
/// It does not grow beyond it.
const LONGEST_PATIENCE: Duration = Duration::from_secs(300);

/// What opens here.
enum Opened {
    Source(ReplicaSource),
    Waiting(WaitingReplica),
}

/// Hands what opens to who sends.
struct Door(mpsc::UnboundedSender<Opened>);

impl ReplicaSender for Door {
    fn region_opened(&self, source: ReplicaSource) {
        // Nobody is there any more when the server ends.
        drop(self.0.send(Opened::Source(source)));
    }

    fn replica_opened(&self, waiting: WaitingReplica) {
        drop(self.0.send(Opened::Waiting(waiting)));
    }
}

/// An answer from elsewhere, or why there is none.
pub type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// The way from regions to their read replicas on other servers, and back. Each call is made once.
pub trait ReplicaRoutes: Send + Sync + 'static {
    /// Where the read replicas of a region are, as hbase:meta has it now.
    fn replicas<'a>(&'a self, region: &'a RegionInfo) -> Asked<'a, Vec<(RegionInfo, ServerName)>>;
    /// Has a replica take entries of its primary's log, whose cells are as a cell block has them.
    fn replay<'a>(
        &'a self,
        at: &'a (RegionInfo, ServerName),
        entries: &'a [pb::WalEntry],
        cells: &'a Bytes,
    ) -> Asked<'a, ()>;
    /// Has a region flushed, or told in its log that there is nothing to flush; whether the log has the one or the other. `None`: its table is not
    /// there, or disabled.
    fn flush<'a>(&'a self, primary: &'a RegionInfo) -> Asked<'a, Option<bool>>;
    /// Does what waits for a disk.
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { drop(tokio::task::spawn_blocking(work).await) })
    }
}

/// Over a client's connection.
struct OverConnection(Connection);

impl ReplicaRoutes for OverConnection {
    fn replicas<'a>(&'a self, region: &'a RegionInfo) -> Asked<'a, Vec<(RegionInfo, ServerName)>> {
        Box::pin(async move {
            let table = self.0.table(&region.table);
            let found = table.replicas_of(&region.start_key, true).await.map_err(|error| error.to_string())?;
            Ok(found.into_iter().map(|at| (at.region, at.server)).collect())
        })
    }

    fn replay<'a>(
        &'a self,
        (region, server): &'a (RegionInfo, ServerName),
        entries: &'a [pb::WalEntry],
        cells: &'a Bytes,
    ) -> Asked<'a, ()> {
        Box::pin(async move {
            let at = RegionLocation { region: region.clone(), server: server.clone() };
            self.0.admin().replay(&at, entries, cells).await.map_err(|error| error.to_string())
        })
    }

    fn flush<'a>(&'a self, primary: &'a RegionInfo) -> Asked<'a, Option<bool>> {
        Box::pin(async move {
            let asked = async {
                let server = self.0.table(&primary.table).region_of(&primary.start_key, true).await?.server;
                self.0.admin().flush_for_replicas(&RegionLocation { region: primary.clone(), server }).await
            };
            match asked.await {
                Ok(flushed) => Ok(Some(flushed)),
                Err(client::Error::TableNotFound(_) | client::Error::TableDisabled(_)) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

/// Tells read replicas elsewhere what one server's regions write.
pub struct ReplicaShipper {
    opened: mpsc::UnboundedReceiver<Opened>,
    teller: Arc<Teller>,
}

struct Teller {
    routes: Box<dyn ReplicaRoutes>,
    /// This server.
    name: ServerName,
}

impl ReplicaShipper {
    /// For `server`, over a connection to its cluster that `connect` opens; `None` where `config` does not want it
    /// (`hbase.region.replica.replication.enabled`, or `...catalog.enabled` for hbase:meta). To be made before the server has regions.
    pub fn new(
        server: &Arc<RegionServer>,
        connect: impl FnOnce() -> Connection,
        config: &Config,
    ) -> Option<ReplicaShipper> {
        ReplicaShipper::over(server, || OverConnection(connect()), config)
    }

    /// The same over other routes.
    pub fn over<R: ReplicaRoutes>(
        server: &Arc<RegionServer>,
        routes: impl FnOnce() -> R,
        config: &Config,
    ) -> Option<ReplicaShipper> {
        let wanted = [&regionserver::settings::REPLICA_REPLICATION, &regionserver::settings::META_REPLICA_REPLICATION];
        wanted.into_iter().any(|wanted| config.get(wanted)).then(|| {
            let (door, opened) = mpsc::unbounded_channel();
            server.set_replica_sender(Arc::new(Door(door)));
            let teller = Arc::new(Teller { routes: Box::new(routes()), name: server.name().clone() });
            ReplicaShipper { opened, teller }
        })
    }

    /// Sends for as long as it is polled.
    pub async fn keep(mut self) {
        let mut regions = JoinSet::new();
        while let Some(opened) = self.opened.recv().await {
            let teller = self.teller.clone();
            match opened {
                Opened::Source(source) => regions.spawn(async move { teller.tell_of(source).await }),
                Opened::Waiting(waiting) => regions.spawn(async move { teller.have_flushed(waiting).await }),
            };
            // Those that have ended leave nothing.
            while regions.try_join_next().is_some() {}
        }
    }
}

impl Teller {
    /// Tells replicas of one region's entries, until it is gone.
    async fn tell_of(self: Arc<Self>, source: ReplicaSource) {
        let news = Arc::new(Notify::new());
        let bell = news.clone();
        source.on_news(move || bell.notify_one());
        let mut replicas = Replicas::new(&source);
        loop {
            while let Some(entries) = source.take() {
                self.look(&mut replicas, &source).await;
                self.tell(&mut replicas, Arc::new(entries)).await;
                replicas.want_files(&source);
            }
            if source.is_gone() {
                return;
            }
            self.look(&mut replicas, &source).await;
            replicas.want_files(&source);
            if source.log_fails() {
                // It would say so again and again, until the server ends.
                tokio::time::sleep(LOG_PAUSE).await;
            } else if replicas.behind.is_empty() {
                news.notified().await;
            } else {
                // Its end is the sign to look again.
                drop(tokio::time::timeout(replicas.until_look(), news.notified()).await);
            }
        }
    }

    /// Asks hbase:meta where the replicas are, if some are not where they were known to be, and not too often.
    async fn look(&self, replicas: &mut Replicas, source: &ReplicaSource) {
        replicas.note_openings(source.openings());
        if replicas.behind.is_empty() || !replicas.until_look().is_zero() {
            return;
        }
        let pause = replicas.look_again.map_or(FIRST_LOOK, |(_, pause)| (pause * 2).min(LOOK_EVERY));
        match self.locate(&replicas.region).await {
            Ok(found) => replicas.at = found,
            Err(error) => {
                tracing::debug!(region = %replicas.region.name_string(), %error, "its read replicas are not found");
            }
        }
        replicas.look_again = Some((Instant::now() + pause, pause));
    }

    /// Tells all that are where they are known to be, and are not behind.
    async fn tell(self: &Arc<Self>, replicas: &mut Replicas, entries: Arc<ReplicaEntries>) {
        if entries.begin_whole {
            replicas.behind.retain(|id, _| !replicas.at.iter().any(|(region, _)| region.replica_id == *id));
        }
        let mut told = JoinSet::new();
        let whole = replicas.at.iter().filter(|(region, _)| !replicas.behind.contains_key(&region.replica_id));
        for location in whole.cloned() {
            let (teller, entries) = (self.clone(), entries.clone());
            told.spawn(async move { teller.tell_one(location, &entries).await });
        }
        for ((replica, server), told) in told.join_all().await {
            if let Err(error) = told {
                let (region, id) = (replicas.region.name_string(), replica.replica_id);
                tracing::info!(%region, replica = id, %server, %error, "edits were not sent to a read replica; it reads them from store files after the next flush");
                replicas.behind.insert(id, Behind { at: Some(server), since: Instant::now(), pause: FIRST_PATIENCE });
            }
        }
    }

    /// Those of the region's read replicas of which hbase:meta says where they are.
    async fn locate(&self, region: &RegionInfo) -> Result<Vec<(RegionInfo, ServerName)>, String> {
        let mut at = self.routes.replicas(region).await?;
        at.retain(|(found, _)| found.is_replica() && found.region_id == region.region_id);
        Ok(at)
    }

    /// Where it was told, or could not be.
    async fn tell_one(
        &self,
        at: (RegionInfo, ServerName),
        entries: &ReplicaEntries,
    ) -> ((RegionInfo, ServerName), Result<(), String>) {
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            match self.routes.replay(&at, &entries.entries, &entries.cells).await {
                Ok(()) => return (at, Ok(())),
                Err(error) => {
                    tracing::debug!(region = %at.0.name_string(), server = %at.1, %error, "entries are told again");
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let told = self.routes.replay(&at, &entries.entries, &entries.cells).await;
        (at, told)
    }

    /// Has the primary of a replica that has opened here flushed, so that what was written before comes in files; reads are answered when that was
    /// asked, or when the replica has heard of it. Where the primary is open nowhere it is asked until it is.
    async fn have_flushed(&self, waiting: WaitingReplica) {
        let mut pause = FIRST_PAUSE;
        while waiting.waits() {
            match self.routes.flush(&waiting.info.replica(0)).await {
                Ok(Some(true)) => {
                    // It finds what was flushed, and waits for a disk.
                    return self.routes.run(Box::new(move || waiting.enable_reads())).await;
                }
                Ok(Some(false)) => {
                    tracing::debug!(replica = %waiting.info.name_string(), server = %self.name, "its primary was not flushed, and is asked again")
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::info!(replica = %waiting.info.name_string(), %error, "the primary of a read replica cannot be flushed; trying again")
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// The replicas of one region.
struct Replicas {
    region: RegionInfo,
    /// Where hbase:meta had them last.
    at: Vec<(RegionInfo, ServerName)>,
    /// Those that have missed something, or are not known to have everything.
    behind: BTreeMap<u32, Behind>,
    /// When hbase:meta is asked next, and for how long it was not to be; `None`: at once.
    look_again: Option<(Instant, Duration)>,
    /// How many times a replica had opened when that was looked at last.
    openings: u64,
}

/// A replica that has missed something.
struct Behind {
    /// Where it was then, if anywhere.
    at: Option<ServerName>,
    /// Since when, or since it was seen to last.
    since: Instant,
    /// For how long nothing is done for it while it stays there.
    pause: Duration,
}

impl Replicas {
    fn new(source: &ReplicaSource) -> Replicas {
        let behind = |id| (id, Behind { at: None, since: Instant::now(), pause: FIRST_PATIENCE });
        Replicas {
            region: source.info.clone(),
            at: Vec::new(),
            behind: (1..source.replication).map(behind).collect(),
            look_again: None,
            openings: 0,
        }
    }

    /// For how long hbase:meta is not to be asked.
    fn until_look(&self) -> Duration {
        self.look_again.map_or(Duration::ZERO, |(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// One that opens is another than the one that failed, wherever it is.
    fn note_openings(&mut self, openings: u64) {
        if std::mem::replace(&mut self.openings, openings) != openings {
            self.look_again = None;
            self.behind.values_mut().for_each(|behind| behind.at = None);
        }
    }

    /// Has all told again which files there are, where one that is behind is somewhere else than where it failed, or has been there for long.
    fn want_files(&mut self, source: &ReplicaSource) {
        let (mut wanted, mut now) = (false, false);
        for (region, server) in &self.at {
            let Some(behind) = self.behind.get_mut(&region.replica_id) else { continue };
            let is_elsewhere = behind.at.as_ref() != Some(server);
            if is_elsewhere || behind.since.elapsed() >= behind.pause {
                (wanted, now) = (true, now | is_elsewhere);
                let pause = if is_elsewhere { FIRST_PATIENCE } else { (behind.pause * 2).min(LONGEST_PATIENCE) };
                *behind = Behind { at: Some(server.clone()), since: Instant::now(), pause };
            }
        }
        if wanted {
            source.want_all_files(now);
        }
    }
}
