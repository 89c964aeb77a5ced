//! The way to the active master, whichever it is now.

use crate::nodes::ClusterNodes;
use coordination::SessionOver;
use model::ServerName;
use parking_lot::Mutex;
use proto::methods::Method;
use proto::{Message, pb};
use rpc::Dialer;
use rpc::client::{Client, ClientError, ClientOptions};
use std::sync::Arc;
use std::time::Duration;

/// Why a call to the master brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The master answered with an exception.
    #[error("the master {master} answers {class}: {message}")]
    Refused {
        /// Which.
        master: ServerName,
        /// Its Java class.
        class: String,
        /// What it says, without the stack.
        message: String,
    },
    /// There was no answer. Whether the call was carried out is not known.
    #[error("the master {master} does not answer: {why}")]
    Unanswered {
        /// Which.
        master: ServerName,
        /// How.
        why: String,
    },
    /// There is nobody to ask any more.
    #[error(transparent)]
    Over(#[from] SessionOver),
}

/// Exceptions of a master that is not ready yet: to be asked again, after a pause. Follows: `HRegionServer#reportRegionStateTransition`.
const NOT_READY: [&str; 3] = ["ServerNotRunningYetException", "PleaseHoldException", "CallQueueTooBigException"];

impl LinkError {
    /// Whether the master's exception is of that class, named without its package.
    pub fn is(&self, simple_name: &str) -> bool {
        matches!(self, LinkError::Refused { class, .. } if class.rsplit('.').next() == Some(simple_name))
    }

    /// Whether the master says that it is to be asked again later.
    pub fn is_not_ready(&self) -> bool {
        NOT_READY.iter().any(|name| self.is(name))
    }
}

struct Connected {
    master: ServerName,
    client: Arc<Client>,
}

/// A connection to the active master's service for region servers; another one after each failure.
pub struct MasterLink {
    nodes: ClusterNodes,
    timeout: Duration,
    dialer: Dialer,
    connected: Mutex<Option<Arc<Connected>>>,
    /// That this end of the connection says it has.
    version: Mutex<Option<String>>,
}

impl MasterLink {
    /// A call that has no answer after `timeout` has failed.
    pub fn new(nodes: ClusterNodes, timeout: Duration) -> MasterLink {
        MasterLink::over(Dialer::Tcp, nodes, timeout)
    }

    /// The same over another network.
    pub fn over(dialer: Dialer, nodes: ClusterNodes, timeout: Duration) -> MasterLink {
        MasterLink { nodes, timeout, dialer, connected: Mutex::new(None), version: Mutex::new(None) }
    }

    /// The cluster's nodes.
    pub fn nodes(&self) -> &ClusterNodes {
        &self.nodes
    }

    /// Connections from now on say that this server has that version: the master believes it.
    pub(crate) fn set_version(&self, version: &str) {
        *self.version.lock() = Some(version.to_owned());
        *self.connected.lock() = None;
    }

    fn options(&self) -> ClientOptions {
        let options = ClientOptions::default();
        match &*self.version.lock() {
            Some(version) => ClientOptions { version: version.clone(), ..options },
            None => options,
        }
    }

    /// Calls the active master once; waits for one where there is none.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn call<M: Message + Default>(&self, method: Method, request: &impl Message) -> Result<M, LinkError> {
        let connected = self.connected().await?;
        let answer = tokio::time::timeout(self.timeout, connected.client.call(method.info(), request, None)).await;
        let master = connected.master.clone();
        let failed = match answer {
            Ok(Ok(reply)) => match reply.decode() {
                Ok(message) => return Ok(message),
                Err(error) => LinkError::Unanswered { master, why: error.to_string() },
            },
            Ok(Err(ClientError::Remote(exception))) => {
                let trace = exception.stack_trace().to_owned();
                let message = trace.lines().next().unwrap_or_default().to_owned();
                LinkError::Refused { master, class: exception.exception_class_name().to_owned(), message }
            }
            Ok(Err(error)) => LinkError::Unanswered { master, why: error.to_string() },
            Err(_) => {
                LinkError::Unanswered { master, why: format!("no answer within {} ms", self.timeout.as_millis()) }
            }
        };
        self.forget(&connected);
        Err(failed)
    }

    /// Tells the master of the error that ends the server; once, for it knows soon in any case.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn report_fatal(&self, server: &ServerName, why: &str) -> Result<(), LinkError> {
        let request = pb::ReportRsFatalErrorRequest {
            server: convert::to_proto::server_name(server),
            error_message: why.to_owned(),
        };
        let method = Method::RegionServerStatusReportRSFatalError;
        self.call::<pb::ReportRsFatalErrorResponse>(method, &request).await.map(drop)
    }

    async fn connected(&self) -> Result<Arc<Connected>, LinkError> {
        let known = self.connected.lock().clone();
        if let Some(connected) = known {
            return Ok(connected);
        }
        let master = self.nodes.active_master().await?;
        let unanswered = |why: String| LinkError::Unanswered { master: master.clone(), why };
        let connect = async {
            let (host, service) = (&*master.host, "RegionServerStatusService");
            let connected = self.dialer.connect(host, master.port, service, self.options()).await;
            connected.map_err(|error| error.to_string())
        };
        let client = match tokio::time::timeout(self.timeout, connect).await {
            Ok(client) => Arc::new(client.map_err(unanswered)?),
            Err(_) => return Err(unanswered(format!("no connection within {} ms", self.timeout.as_millis()))),
        };
        let connected = Arc::new(Connected { master, client });
        // Two who came at once have two; the last is kept.
        *self.connected.lock() = Some(connected.clone());
        Ok(connected)
    }

    fn forget(&self, failed: &Arc<Connected>) {
        let mut connected = self.connected.lock();
        if connected.as_ref().is_some_and(|now| Arc::ptr_eq(now, failed)) {
            *connected = None;
        }
    }
}
