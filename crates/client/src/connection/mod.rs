//! A cluster as a client sees it. Follows: `AsyncConnectionImpl`.

pub(crate) mod server;

use std::collections::HashMap;
use std::sync::Arc;

use base::Rng;
use model::{Nonce, TableName};
use parking_lot::{Mutex, RwLock};

use self::server::Server;
use crate::locator::{Located, TableCache};
use crate::metrics::Counters;
use crate::options::Options;
use crate::retry::{Retry, RetryPolicy};
use crate::table::Manner;
use crate::{Admin, Metrics, Result, Table, TableOptions};

/// What the handles of one connection share.
pub(crate) struct Cluster {
    pub(crate) options: Arc<Options>,
    servers: Mutex<HashMap<String, Arc<Server>>>,
    pub(crate) tables: RwLock<HashMap<TableName, Arc<TableCache>>>,
    pub(crate) meta: RwLock<Option<Arc<Located>>>,
    pub(crate) master: Mutex<Option<Arc<Server>>>,
    pub(crate) manner: Manner,
    pub(crate) meta_manner: Manner,
    pub(crate) nonce_group: u64,
    pub(crate) rng: Rng,
    pub(crate) counters: Counters,
}

impl Cluster {
    /// The server at `address`, with the connections that are open to it.
    pub(crate) fn server(&self, address: &str) -> Arc<Server> {
        let mut servers = self.servers.lock();
        if let Some(server) = servers.get(address) {
            return server.clone();
        }
        let server = Arc::new(Server::new(address, self.options.clone()));
        servers.insert(address.to_owned(), server.clone());
        server
    }

    /// The tries of an operation that is so patient.
    pub(crate) fn retry(&self, policy: RetryPolicy) -> Retry<'_> {
        Retry::new(policy, &self.rng, &self.counters)
    }

    /// A mark for a write that must not happen twice.
    pub(crate) fn nonce(&self) -> Nonce {
        // 0 means none.
        Nonce { group: self.nonce_group, number: self.rng.next_u64().max(1) }
    }

    pub(crate) fn table(self: &Arc<Self>, name: &TableName) -> Table {
        Table::new(self.clone(), self.cache(name))
    }

    pub(crate) fn cache(&self, table: &TableName) -> Arc<TableCache> {
        if let Some(cache) = self.tables.read().get(table) {
            return cache.clone();
        }
        self.tables.write().entry(table.clone()).or_insert_with(|| Arc::new(TableCache::new(table.clone()))).clone()
    }
}

/// A connection to a cluster: sockets, known locations, identity. Cloning shares it; the last clone closes it.
#[derive(Clone)]
pub struct Connection {
    pub(crate) cluster: Arc<Cluster>,
}

impl Connection {
    /// A connection that has not spoken to anybody yet: sockets are opened when they are needed, on the Tokio runtime
    /// of whoever needs them first.
    pub fn open(options: Options) -> Connection {
        let rng = Rng::from_system();
        let manner = |is_meta| Manner::new(TableOptions::new(&options, is_meta));
        let cluster = Cluster {
            manner: manner(false),
            meta_manner: manner(true),
            options: Arc::new(options),
            servers: Mutex::default(),
            tables: RwLock::default(),
            meta: RwLock::default(),
            master: Mutex::default(),
            nonce_group: rng.next_u64().max(1),
            rng,
            counters: Counters::default(),
        };
        Connection { cluster: Arc::new(cluster) }
    }

    /// Another connection to the same cluster, on behalf of `user`. Nothing is shared: sockets belong to whom they were opened for.
    pub fn as_user(&self, user: &str) -> Connection {
        Connection::open(Options { user: user.to_owned(), ..self.options().clone() })
    }

    /// A table. Nothing is checked or sent.
    pub fn table(&self, name: &TableName) -> Table {
        self.cluster.table(name)
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.cluster.options
    }

    /// What it has counted since it was opened.
    pub fn metrics(&self) -> Metrics {
        self.cluster.counters.read()
    }

    /// Administration.
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    /// The cluster's id.
    ///
    /// # Errors
    /// The registry does not answer.
    pub async fn cluster_id(&self) -> Result<String> {
        crate::registry::cluster_id(&self.cluster.options).await
    }

    /// Forgets where regions are: they are looked up again.
    pub fn forget_locations(&self) {
        self.cluster.forget_meta();
        self.cluster.tables.read().values().for_each(|table| table.forget_all());
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("options", &self.cluster.options).finish_non_exhaustive()
    }
}
