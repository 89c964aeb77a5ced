//! A session with a cluster: its connection, where output goes, and how waiting is broken off.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use client::{Admin, Connection, Table};
use model::TableName;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::failure::{Flow, Result};
use crate::output::Output;

/// What a shell works with.
pub struct Session {
    /// Where output goes.
    pub output: Output,
    /// Whether errors are told and passed over: not so with `-n`.
    pub interactive: bool,
    /// Whether `trace 'start'` came last: as in HBase's shell, where nothing receives what is traced.
    pub is_tracing: bool,
    connection: Connection,
    runtime: Runtime,
    interrupt: Arc<Interrupt>,
}

/// Ctrl-C.
#[derive(Default)]
struct Interrupt {
    raised: AtomicBool,
    woken: Notify,
}

impl Session {
    /// A session over `connection`, whose calls run on `runtime`.
    pub fn new(connection: Connection, runtime: Runtime, output: Output, interactive: bool) -> Session {
        Session { output, interactive, is_tracing: false, connection, runtime, interrupt: Arc::default() }
    }

    /// From here on Ctrl-C breaks off what is under way rather than the process. Before the first prompt: the line editor puts back the
    /// signal's handler that it finds.
    ///
    /// # Errors
    /// The system does not tell of signals.
    pub fn catch_interrupts(&self) -> std::io::Result<()> {
        let interrupt = self.interrupt.clone();
        let mut signals = self.within(|| signal(SignalKind::interrupt()))?;
        self.runtime.spawn(async move {
            while signals.recv().await.is_some() {
                interrupt.raised.store(true, Ordering::Relaxed);
                interrupt.woken.notify_waiters();
            }
        });
        Ok(())
    }

    /// Whether Ctrl-C came.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.raised.load(Ordering::Relaxed)
    }

    /// Forgets a Ctrl-C: what it was for has ended.
    pub fn forget_interrupt(&self) {
        self.interrupt.raised.store(false, Ordering::Relaxed);
    }

    /// Waits for what a future brings, or for Ctrl-C.
    ///
    /// # Errors
    /// The future's, as an exception.
    pub fn wait<T>(&self, future: impl Future<Output = client::Result<T>>) -> Result<T> {
        self.runtime.block_on(async {
            let interrupted = self.interrupt.woken.notified();
            tokio::pin!(interrupted);
            interrupted.as_mut().enable();
            if self.is_interrupted() {
                return Err(Flow::Interrupted);
            }
            tokio::select! {
                result = future => result.map_err(Flow::from),
                () = interrupted => Err(Flow::Interrupted),
            }
        })
    }

    /// Runs `work` where client objects can start what they start by themselves.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = self.runtime.enter();
        work()
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Administration.
    pub fn admin(&self) -> Admin {
        self.connection.admin()
    }

    /// A table.
    pub fn table(&self, name: &TableName) -> Table {
        self.connection.table(name)
    }
}

/// Names of tables, asked for when they are needed.
pub(crate) type TableNames = Box<dyn Fn() -> Vec<String>>;
/// The same for the families of a table.
pub(crate) type FamilyNames = Box<dyn Fn(&str) -> Vec<String>>;

/// How long completion waits for names of tables.
const COMPLETION_WAIT: std::time::Duration = std::time::Duration::from_millis(500);

impl Session {
    /// Asks for the names of tables, for completion; none where they do not come at once.
    pub(crate) fn table_names(&self) -> TableNames {
        let (admin, handle) = (self.admin(), self.runtime.handle().clone());
        Box::new(move || {
            // A timer can only be made within the runtime.
            let names = handle
                .block_on(async { tokio::time::timeout(COMPLETION_WAIT, admin.list_table_names(None, false)).await });
            let names = names.map(|names| names.unwrap_or_default()).unwrap_or_default();
            names.iter().map(TableName::to_string).collect()
        })
    }

    /// The same for the families of a table, each as columns begin: `f:`.
    pub(crate) fn family_names(&self) -> FamilyNames {
        let (admin, handle) = (self.admin(), self.runtime.handle().clone());
        Box::new(move |table| {
            let Ok(name) = TableName::parse(table) else { return Vec::new() };
            let described =
                handle.block_on(async { tokio::time::timeout(COMPLETION_WAIT, admin.describe(&name)).await });
            let Ok(Ok(Some(described))) = described else { return Vec::new() };
            described.families.keys().map(|family| format!("{}:", String::from_utf8_lossy(family))).collect()
        })
    }
}
