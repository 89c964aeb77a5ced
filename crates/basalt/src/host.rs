//! What the process gives its master: the blocking pool for the region server's work, and a mirror of what it knows.

use assembly::Runner;
use master::{HostError, Later};
use std::sync::Arc;

/// Runs the region server's work, which blocks, away from the workers.
pub struct BlockingPool;

impl Runner for BlockingPool {
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> Later<'_, Result<T, HostError>> {
        Box::pin(async move {
            match tokio::task::spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) => Err(HostError::Failed(format!("the region server failed inside: {error}"))),
            }
        })
    }
}

/// Mirrors what the master knows into the nodes that older clients read, and passes on requests to stop.
pub struct Mirror {
    znodes: Arc<coordination::HBaseZnodes>,
    stop: Box<dyn Fn(String) + Send + Sync>,
}

impl Mirror {
    /// The mirror into `znodes`.
    pub fn new(znodes: Arc<coordination::HBaseZnodes>, stop: impl Fn(String) + Send + Sync + 'static) -> Mirror {
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

    fn stop_requested(&self, whole_cluster: bool) {
        (self.stop)(format!("asked to stop {} by a client", if whole_cluster { "the cluster" } else { "the master" }));
    }
}
