//! A node for tests: real threads, a volume in memory.
#![allow(clippy::disallowed_methods, reason = "a test starts real threads")]

use basalt_assembly::{Parts, Runner, Syncer};
use base::{Config, Rng, SystemClock};
use fs::{MemVolume, Volume};
use master::{BoxFuture, HostError, Unobserved};
use model::ServerName;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

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
        rng: Arc::new(Rng::seeded(1)),
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
        on_stop_request: Arc::new(|_| ()),
    }
}
