//! What the process gives its node: the blocking pool for work that blocks, threads that sync the logs, and a mirror of what the master
//! knows.

use assembly::{Runner, Syncer};
use master::{BoxFuture, HostError};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Runs the region server's work, which blocks, away from the workers.
pub struct BlockingPool;

impl Runner for BlockingPool {
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        Box::pin(async move {
            let place = trace::current();
            let work = move || {
                let _traced = trace::enter_at(place);
                work()
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) => Err(HostError::Failed(format!("the region server failed inside: {error}"))),
            }
        })
    }
}

/// Syncs each log on a thread of its own, which also sends the answers of the calls that waited for it.
#[derive(Default)]
pub struct LogThreads(Mutex<Vec<JoinHandle<()>>>);

impl Syncer for LogThreads {
    #[allow(clippy::disallowed_methods, reason = "the thread of a log begins here")]
    fn attend(&self, log: &Arc<wal::Log>, name: &'static str) -> std::io::Result<()> {
        let log = log.clone();
        // Why a log failed is told to everybody who writes to it.
        let attend = move || drop(log.run_syncer_answering(|answer| rpc::answer_together(answer)));
        let thread = std::thread::Builder::new().name(name.into()).spawn(attend)?;
        self.0.lock().push(thread);
        Ok(())
    }

    fn join(&self) {
        for thread in std::mem::take(&mut *self.0.lock()) {
            if thread.join().is_err() {
                tracing::error!("a WAL sync thread panicked");
            }
        }
    }
}

/// Mirrors what the master knows into the nodes that older clients read, and passes on requests to stop.
pub struct Mirror {
    znodes: Arc<coordination::HBaseZnodes>,
    stop: Box<dyn Fn(String, bool) + Send + Sync>,
}

impl Mirror {
    /// The mirror into `znodes`; `stop` is told why, and whether the whole cluster is meant.
    pub fn new(znodes: Arc<coordination::HBaseZnodes>, stop: impl Fn(String, bool) + Send + Sync + 'static) -> Mirror {
        Mirror { znodes, stop: Box::new(stop) }
    }
}

fn report(result: Result<(), coordination::TreeError>) {
    if let Err(error) = result {
        tracing::warn!("a coordination node could not be updated: {error:?}");
    }
}

impl master::Observer for Mirror {
    fn table_state(&self, table: &model::TableName, state: Option<master::cluster::TableState>) {
        use coordination::hbase_znodes::TableState as Node;
        let node = match state {
            None => return report(self.znodes.remove_table(table)),
            Some(master::cluster::TableState::Enabled) => Node::Enabled,
            Some(master::cluster::TableState::Disabled) => Node::Disabled,
            Some(master::cluster::TableState::Disabling) => Node::Disabling,
            Some(master::cluster::TableState::Enabling) => Node::Enabling,
        };
        report(self.znodes.set_table_state(table, node));
    }

    fn namespace(&self, name: &str, configuration: Option<&master::cluster::NamespaceConfiguration>) {
        report(match configuration {
            Some(configuration) => self.znodes.set_namespace(name, configuration),
            None => self.znodes.remove_namespace(name),
        });
    }

    fn meta_replica(&self, id: u32, at: Option<(&model::ServerName, master::cluster::RegionState)>) {
        report(match at {
            Some((server, state)) => self.znodes.set_meta_replica(id, server, state),
            None => self.znodes.remove_meta_replica(id),
        });
    }

    fn rpc_throttle(&self, on: bool) {
        report(self.znodes.set_rpc_throttle(on));
    }

    fn region_server_group(&self, name: &str, node: Option<&[u8]>) {
        report(match node {
            Some(node) => self.znodes.set_region_server_group(name, node),
            None => self.znodes.remove_region_server_group(name),
        });
    }

    fn peer(&self, id: &str, nodes: Option<&master::PeerNodes>) {
        report(match nodes {
            Some(nodes) => self.znodes.set_peer(id, &nodes.config, &nodes.state),
            None => self.znodes.remove_peer(id),
        });
    }

    fn stop_requested(&self, whole_cluster: bool) {
        let what = if whole_cluster { "the cluster" } else { "the master" };
        (self.stop)(format!("asked to stop {what} by a client"), whole_cluster);
    }
}

/// Calls the function with 0, 1, ... up to `count`, on as many threads as there are cores.
pub fn on_every_core(count: usize, work: &(dyn Fn(usize) + Sync)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let next = AtomicUsize::new(0);
    let take = || {
        let indexes = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count));
        indexes.for_each(work);
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(take)));
        take();
    });
}
