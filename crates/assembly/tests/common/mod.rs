//! A node for tests: real threads, a volume in memory.
#![allow(clippy::disallowed_methods, reason = "a test starts real threads")]

use basalt_assembly::{Node, Parts, Runner, Services, Syncer, local_servers};
use base::{Config, Ledger, Rng, SystemClock};
use bytes::Bytes;
use client::{Connection, Options};
use fs::{MemVolume, Volume};
use master::{BoxFuture, HostError, Unobserved};
use model::ServerName;
use parking_lot::Mutex;
use proto::Message;
use proto::methods::Method;
use rpc::{CellCodec, Exception, Local, LocalRequest};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const MEMORY_BUDGET_BYTES: u64 = 64 << 20;

pub struct Pool;

impl Runner for Pool {
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        Box::pin(async move { tokio::task::spawn_blocking(work).await.expect("no panic") })
    }
}

#[derive(Default)]
pub struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Syncer for Threads {
    fn attend(&self, log: &Arc<wal::Log>, _: &'static str) -> std::io::Result<()> {
        let log = log.clone();
        self.0.lock().push(std::thread::spawn(move || log.run_syncer().expect("syncs")));
        Ok(())
    }

    fn join(&self) {
        self.0.lock().drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

pub fn parts(volume: &Arc<MemVolume>, start_code: u64) -> Parts<Pool, Threads> {
    let config = Config::default();
    let volume: Arc<dyn Volume> = volume.clone();
    Parts {
        outside: volume.clone(),
        root: "/srv/basalt".to_owned(),
        volume,
        clock: Arc::new(SystemClock::new()),
        // Each start draws other names, as a process does.
        rng: Arc::new(Rng::seeded(start_code)),
        read_config: Arc::new(|| Err("there is no file".to_owned())),
        ledger: regionserver::ledger(&config, MEMORY_BUDGET_BYTES, u64::MAX),
        config,
        server_name: ServerName::new("localhost", 16020, start_code),
        master_name: ServerName::new("localhost", 16000, start_code),
        info_port: None,
        runner: Pool,
        syncer: Threads::default(),
        for_each: |count, work| (0..count).for_each(work),
        stepped: false,
        observer: Arc::new(Unobserved),
        on_region_server: Box::new(|_, _| ()),
        on_fatal: Arc::new(|why| panic!("{why}")),
        second_level: None,
        on_stop_request: Arc::new(|_| ()),
    }
}

/// A node, and a client that knows no way to it but the process.
pub struct Place {
    pub node: Node<Threads>,
    pub ledger: Arc<Ledger>,
    /// The region server's services.
    pub region_server: Local,
    pub connection: Connection,
}

impl Place {
    pub async fn start() -> Place {
        Place::start_with(|_| ()).await
    }

    /// As [`Place::start`], of parts that `change` has changed.
    pub async fn start_with(change: impl FnOnce(&mut Parts<Pool, Threads>)) -> Place {
        let services = Arc::new(Services::default());
        let mut parts = parts(&Arc::new(MemVolume::new()), 1);
        change(&mut parts);
        let (server_name, master_name) = (parts.server_name.clone(), parts.master_name.clone());
        let servers = local_servers(&services, (&server_name, &master_name), &parts.clock, &parts.ledger);
        let ledger = parts.ledger.clone();
        let region = services.clone();
        let on_region_server = Box::new(move |cluster_id, service| {
            region.set_cluster_id(cluster_id, server_name);
            region.set_region(service);
        });
        let node = Node::start(Parts { on_region_server, ..parts }).await.expect("starts");
        services.set_master(node.master().handler());
        Place {
            node,
            ledger,
            region_server: servers[0].1.clone(),
            connection: Connection::open(Options::in_process(servers)),
        }
    }

    /// Calls the region server.
    pub async fn call<M: Message + Default>(&self, method: Method, request: &impl Message) -> Result<M, Exception> {
        let service = method.info().service.name();
        let connection = self.region_server.connect(service, "somebody", CellCodec::KeyValue)?;
        let request = LocalRequest {
            method: method.info(),
            message: request.encode_to_vec().into(),
            cells: Bytes::new(),
            priority: 0,
            timeout: Duration::from_secs(60),
            attributes: Vec::new(),
        };
        let reply = connection.call(request).await?;
        Ok(M::decode(reply.message).expect("the method's own message"))
    }

    pub async fn stop(self) {
        let node = self.node;
        let stopped = tokio::task::spawn_blocking(move || node.stop(None).expect("stops"));
        assert_eq!(stopped.await.expect("no panic"), 0, "every region was flushed");
    }
}
