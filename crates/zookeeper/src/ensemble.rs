//! The session, the task that writes what is wanted, and the claim of a node that one process has.

use crate::calls::Calls;
use crate::security::Security;
use crate::wanted::{Wanted, Wish};
use base::metrics::Registry;
use bytes::Bytes;
use coordination::{Answer, Awaited, Claim, Coordinator, SessionOver, TreeError, ZnodeStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use zookeeper_client::{Client, CreateMode, CreateOptions, Error, EventType, SessionInfo, SessionState};

/// Between attempts while the ensemble does not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// Where the ensemble is.
#[derive(Clone, Debug)]
pub struct Options {
    /// `host:port,host:port`.
    pub connect: String,
    /// Asked for; the ensemble may grant less.
    pub session_timeout: Duration,
    /// What it is opened with.
    pub security: Security,
}

impl Options {
    /// Opens a session, or goes on with one. The inner error is the ensemble's.
    async fn open(&self, session: Option<SessionInfo>) -> Result<Result<Client, Error>, String> {
        let connector = Client::connector().with_session_timeout(self.session_timeout);
        let connector = match session {
            Some(session) => connector.with_session(session),
            None => connector,
        };
        let connector = self.security.apply(connector)?;
        #[cfg(feature = "tls")]
        if self.security.tls.is_some() {
            return Ok(connector.secure_connect(&self.connect).await);
        }
        Ok(connector.connect(&self.connect).await)
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum EnsembleError {
    /// Nobody answers.
    #[error(
        "no ZooKeeper server of {connect} gave a session within {seconds} s ({source}): is it running, and is hbase.zookeeper.quorum right?"
    )]
    Unreachable {
        /// Whom it was asked.
        connect: String,
        /// For how long.
        seconds: u64,
        /// What the client says.
        source: Error,
    },
    /// The name or the password is wrong.
    #[error(
        "the ZooKeeper ensemble {connect} refuses this process ({source}): look at basalt.zookeeper.sasl.username and the file that \
         basalt.zookeeper.sasl.password.file names"
    )]
    Refused {
        /// Whom it was asked.
        connect: String,
        /// What the client says.
        source: Error,
    },
    /// It cannot be used as it is set.
    #[error("invalid settings of the ZooKeeper client: {0}")]
    Unusable(String),
    /// The session is over.
    #[error("the ZooKeeper session is over: {0}")]
    Lost(String),
}

/// A session with an ensemble. What [`ZnodeStore`] is told is written by a task, in the order of paths, until it is so.
pub struct Ensemble {
    options: Options,
    wanted: Arc<Wanted>,
    calls: Arc<Calls>,
    /// The client of now: another after the session was resumed.
    client: watch::Receiver<Client>,
    lost: watch::Receiver<Option<String>>,
    task: JoinHandle<()>,
}

impl Ensemble {
    /// Opens a session.
    ///
    /// # Errors
    /// [`EnsembleError::Unreachable`], [`EnsembleError::Refused`], [`EnsembleError::Unusable`].
    pub async fn connect(options: Options) -> Result<Ensemble, EnsembleError> {
        let connect = options.connect.clone();
        let first = match options.open(None).await.map_err(EnsembleError::Unusable)? {
            Ok(first) => first,
            Err(source @ Error::AuthFailed) => return Err(EnsembleError::Refused { connect, source }),
            Err(source) => {
                let seconds = options.session_timeout.as_secs();
                return Err(EnsembleError::Unreachable { connect, seconds, source });
            }
        };
        let wanted = Arc::new(Wanted::new());
        let (clients, client) = watch::channel(first);
        let (ends, lost) = watch::channel(None);
        let calls = Arc::new(Calls::default());
        let keeper = Keeper { options: options.clone(), wanted: wanted.clone(), calls: calls.clone(), clients, ends };
        let task = tokio::spawn(keeper.run());
        Ok(Ensemble { options, wanted, calls, client, lost, task })
    }

    /// Puts what its calls took into `registry`.
    pub fn register_metrics(&self, registry: &Registry) {
        self.calls.register(registry);
    }

    /// The timeout that the ensemble granted.
    pub fn session_timeout(&self) -> Duration {
        self.client.borrow().session_timeout()
    }

    /// Who was asked for a session.
    pub fn connect_string(&self) -> &str {
        &self.options.connect
    }

    /// Ends when the ensemble has ended the session, with a sentence: every ephemeral node is gone then, and others may be doing this process's
    /// work.
    pub fn lost(&self) -> impl Future<Output = String> + Send + 'static {
        let mut lost = self.lost.clone();
        async move {
            let why = lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            match why {
                Some(why) => why,
                // This process has let it go.
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until all that was wanted is so.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn written(&self) -> Result<(), EnsembleError> {
        let mut waiting = self.wanted.waiting();
        tokio::select! {
            done = waiting.wait_for(|count| *count == 0) => {
                done.map(drop).map_err(|_| EnsembleError::Lost("its task is gone".into()))
            }
            why = self.lost() => Err(EnsembleError::Lost(why)),
        }
    }

    /// Makes an ephemeral node, unless another session has it.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn claim(&self, path: &str, value: &[u8]) -> Result<Claim, EnsembleError> {
        self.retried(|client: Client| async move {
            let ephemeral = self.options.security.making(CreateMode::Ephemeral);
            match self.calls.write(client.create(path, value, &ephemeral)).await {
                Ok(_) => Ok(Claim::Ours),
                Err(Error::NodeExists) => {
                    let (found, stat) = self.calls.read(client.get_data(path)).await?;
                    // An answer that was lost leaves a node of our own.
                    let is_ours = stat.ephemeral_owner == client.session_id().0;
                    Ok(if is_ours { Claim::Ours } else { Claim::Taken(Bytes::from(found)) })
                }
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Removes a node, whoever has it; nothing happens when it is not there.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn remove(&self, path: &str) -> Result<(), EnsembleError> {
        self.retried(|client: Client| async move {
            match self.calls.write(client.delete(path, None)).await {
                Ok(()) | Err(Error::NoNode) => Ok(()),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Waits until the node is changed or gone.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn changed(&self, path: &str) -> Result<(), EnsembleError> {
        self.retried(|client: Client| async move {
            let (stat, watcher) = self.calls.read(client.check_and_watch_stat(path)).await?;
            if stat.is_some() {
                watcher.changed().await;
            }
            Ok(())
        })
        .await
    }

    /// Waits until the node's value is another than `seen`, and answers it. What changes while no server answers is seen afterwards.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn value_other_than(&self, path: &str, seen: Option<Bytes>) -> Result<Option<Bytes>, EnsembleError> {
        self.retried(|client: Client| {
            let seen = seen.clone();
            async move {
                loop {
                    let (value, watcher) = match self.calls.read(client.get_and_watch_data(path)).await {
                        Ok((value, _, watcher)) => (Some(Bytes::from(value)), watcher),
                        Err(Error::NoNode) => match self.calls.read(client.check_and_watch_stat(path)).await? {
                            (None, watcher) => (None, watcher),
                            // It was made in between.
                            (Some(_), _) => continue,
                        },
                        Err(error) => return Err(error),
                    };
                    if value != seen {
                        return Ok(value);
                    }
                    let event = watcher.changed().await;
                    if event.event_type == EventType::Session && event.session_state.is_terminated() {
                        return Err(Error::SessionExpired);
                    }
                }
            }
        })
        .await
    }

    /// Names of a node's children; none where there is no such node.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn children(&self, path: &str) -> Result<Vec<String>, EnsembleError> {
        self.retried(|client: Client| async move {
            match self.calls.read(client.list_children(path)).await {
                Err(Error::NoNode) => Ok(Vec::new()),
                outcome => outcome,
            }
        })
        .await
    }

    /// Waits until the names of a node's children are others than `seen`, and answers them, sorted; none where there is no such node.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn children_other_than(&self, path: &str, seen: Vec<String>) -> Result<Vec<String>, EnsembleError> {
        self.retried(|client: Client| {
            let seen = seen.clone();
            async move {
                loop {
                    let (mut names, watcher) = match self.calls.read(client.list_and_watch_children(path)).await {
                        Ok(found) => found,
                        Err(Error::NoNode) => match self.calls.read(client.check_and_watch_stat(path)).await? {
                            (None, watcher) => (Vec::new(), watcher),
                            // It was made in between.
                            (Some(_), _) => continue,
                        },
                        Err(error) => return Err(error),
                    };
                    names.sort();
                    if names != seen {
                        return Ok(names);
                    }
                    let event = watcher.changed().await;
                    if event.event_type == EventType::Session && event.session_state.is_terminated() {
                        return Err(Error::SessionExpired);
                    }
                }
            }
        })
        .await
    }

    /// A node's value; `None` when there is none.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn value(&self, path: &str) -> Result<Option<Bytes>, EnsembleError> {
        self.retried(|client: Client| async move {
            match self.calls.read(client.get_data(path)).await {
                Ok((value, _)) => Ok(Some(Bytes::from(value))),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// As [`Ensemble::value`], after the server of this session has caught up with the leader: a server that is cut off from it gives no answer.
    ///
    /// # Errors
    /// [`EnsembleError::Lost`].
    pub async fn latest_value(&self, path: &str) -> Result<Option<Bytes>, EnsembleError> {
        self.retried(|client: Client| async move {
            self.calls.sync(client.sync(path)).await?;
            match self.calls.read(client.get_data(path)).await {
                Ok((value, _)) => Ok(Some(Bytes::from(value))),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Calls until there is an answer of the ensemble's, over outages and resumed sessions.
    async fn retried<T, F: Future<Output = Result<T, Error>>>(
        &self,
        call: impl Fn(Client) -> F,
    ) -> Result<T, EnsembleError> {
        loop {
            let client = self.client.borrow().clone();
            let outcome = tokio::select! {
                outcome = call(client) => outcome,
                why = self.lost() => return Err(EnsembleError::Lost(why)),
            };
            match outcome {
                Ok(value) => return Ok(value),
                Err(error) if is_passing(&error) => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(EnsembleError::Lost(format!("the ensemble refused a request: {error}"))),
            }
        }
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        // With its last client the session ends, and its ephemeral nodes go.
        self.task.abort();
    }
}

impl ZnodeStore for Ensemble {
    fn publish(&self, path: &str, value: Bytes, ephemeral: bool) -> Result<(), TreeError> {
        self.wanted.want(path, Wish::Has { value, ephemeral });
        Ok(())
    }

    fn ensure(&self, path: &str) -> Result<(), TreeError> {
        self.wanted.want(path, Wish::Exists);
        Ok(())
    }

    fn delete(&self, path: &str) -> Result<(), TreeError> {
        self.wanted.want(path, Wish::Gone);
        Ok(())
    }
}

impl From<EnsembleError> for SessionOver {
    fn from(error: EnsembleError) -> SessionOver {
        match error {
            EnsembleError::Lost(why) => SessionOver(why),
            never_begun => SessionOver(never_begun.to_string()),
        }
    }
}

impl Coordinator for Ensemble {
    fn value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move { Ok(Ensemble::value(self, path).await?) })
    }

    fn latest_value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move { Ok(Ensemble::latest_value(self, path).await?) })
    }

    fn value_other_than<'a>(&'a self, path: &'a str, seen: Option<Bytes>) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move { Ok(Ensemble::value_other_than(self, path, seen).await?) })
    }

    fn children<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async move { Ok(Ensemble::children(self, path).await?) })
    }

    fn children_other_than<'a>(&'a self, path: &'a str, seen: Vec<String>) -> Answer<'a, Vec<String>> {
        Box::pin(async move { Ok(Ensemble::children_other_than(self, path, seen).await?) })
    }

    fn claim<'a>(&'a self, path: &'a str, value: &'a [u8]) -> Answer<'a, Claim> {
        Box::pin(async move { Ok(Ensemble::claim(self, path, value).await?) })
    }

    fn remove<'a>(&'a self, path: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { Ok(Ensemble::remove(self, path).await?) })
    }

    fn over(&self) -> Awaited<'static, SessionOver> {
        let lost = self.lost();
        Box::pin(async move { SessionOver(lost.await) })
    }
}

/// Whether it may go the next time. What the client gives for a connection that was reset, or broke off within an answer, has no name of its own;
/// whether the session is over is the ensemble's to say ([`Keeper::resume`]).
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::ConnectionLoss | Error::Timeout | Error::SessionExpired | Error::SessionMoved | Error::Throttled
    ) || matches!(error, Error::ClientClosed | Error::NoHosts | Error::Custom(_) | Error::UnmarshalError { .. })
}

/// Keeps the session, and the nodes as they are wanted.
struct Keeper {
    options: Options,
    wanted: Arc<Wanted>,
    calls: Arc<Calls>,
    clients: watch::Sender<Client>,
    ends: watch::Sender<Option<String>>,
}

impl Keeper {
    async fn run(self) {
        let mut waiting = self.wanted.waiting();
        loop {
            let client = self.clients.borrow().clone();
            let mut states = client.state_watcher();
            // What is seen to now needs no other waking.
            waiting.mark_unchanged();
            let is_done = self.write_all(&client).await;
            if states.state().is_terminated() {
                drop((client, states));
                match self.resume().await {
                    Ok(resumed) => {
                        self.clients.send_replace(resumed);
                        self.wanted.all_due();
                        continue;
                    }
                    Err(why) => {
                        self.ends.send_replace(Some(why));
                        return;
                    }
                }
            }
            tokio::select! {
                _ = states.changed() => {}
                changed = waiting.changed(), if is_done => if changed.is_err() { return },
                () = tokio::time::sleep(PAUSE), if !is_done => {}
            }
        }
    }

    /// Whether all is as it is wanted.
    async fn write_all(&self, client: &Client) -> bool {
        while let Some((path, wish)) = self.wanted.next() {
            match self.write(client, &path, &wish).await {
                Ok(()) => self.wanted.done(&path, &wish),
                Err(error) if is_passing(&error) => return false,
                Err(error) => {
                    tracing::error!("the node {path} cannot be written: {error}");
                    self.wanted.done(&path, &wish);
                }
            }
        }
        true
    }

    /// Takes the session up again. The client gives one up by itself when it hears nothing for 7/5 of its timeout; only the ensemble knows.
    async fn resume(&self) -> Result<Client, String> {
        let session = self.clients.borrow().session().clone();
        let state = self.clients.borrow().state();
        if state == SessionState::AuthFailed {
            return Err("the ensemble refused our credentials".to_owned());
        }
        loop {
            match self.options.open(Some(session.clone())).await? {
                Ok(client) => return Ok(client),
                Err(Error::SessionExpired) => {
                    let timeout_ms = self.clients.borrow().session_timeout().as_millis();
                    return Err(format!("the ensemble has not heard from this process for {timeout_ms} ms"));
                }
                Err(error) => tracing::warn!("no ZooKeeper server of {} answers: {error}", self.options.connect),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn write(&self, client: &Client, path: &str, wish: &Wish) -> Result<(), Error> {
        let set = |value| self.calls.write(client.set_data(path, value, None));
        match wish {
            Wish::Exists => self.make(client, path, &[], CreateMode::Persistent).await.map(drop),
            Wish::Gone => match self.calls.write(client.delete(path, None)).await {
                Ok(()) | Err(Error::NoNode) => Ok(()),
                Err(error) => Err(error),
            },
            Wish::Has { value, ephemeral: false } => match set(value).await {
                Err(Error::NoNode) => self.make(client, path, value, CreateMode::Persistent).await.map(drop),
                outcome => outcome.map(drop),
            },
            Wish::Has { value, ephemeral: true } => {
                if self.make(client, path, value, CreateMode::Ephemeral).await? {
                    return Ok(());
                }
                let (_, stat) = self.calls.read(client.get_data(path)).await?;
                if stat.ephemeral_owner != client.session_id().0 {
                    return Err(Error::NodeExists);
                }
                set(value).await.map(drop)
            }
        }
    }

    /// Makes a node, with those above it; false when it is there already.
    async fn make(&self, client: &Client, path: &str, value: &[u8], mode: CreateMode) -> Result<bool, Error> {
        let create = async |path: &str, value: &[u8], mode: CreateMode| {
            let options: CreateOptions<'static> = self.options.security.making(mode);
            self.calls.write(client.create(path, value, &options)).await
        };
        match create(path, value, mode).await {
            Ok(_) => return Ok(true),
            Err(Error::NodeExists) => return Ok(false),
            Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
        for (at, _) in path.match_indices('/').skip(1) {
            match create(&path[..at], &[], CreateMode::Persistent).await {
                Ok(_) | Err(Error::NodeExists) => {}
                Err(error) => return Err(error),
            }
        }
        match create(path, value, mode).await {
            Ok(_) => Ok(true),
            Err(Error::NodeExists) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
