//! A connection's command that is under way, and what may end it early: a cancel request, its time limit, a client that has left.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use parking_lot::Mutex;
use pgwire::api::cancel::CancelHandler;
use pgwire::api::{ClientInfo, METADATA_APPLICATION_NAME, METADATA_DATABASE, METADATA_USER, PidSecretKeyGenerator};
use pgwire::messages::ProtocolVersion;
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::startup::SecretKey;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::copy_in::CopyIn;
use crate::error::{SqlError, SqlState};
use crate::progress::Progress;
use crate::sequence::Given;

/// Where `datafusion-postgres` keeps what `SET statement_timeout` said, in milliseconds.
const STATEMENT_TIMEOUT: &str = "statement_timeout_ms";
/// Number of the first connection.
const FIRST_PID: i32 = 100_000;
/// Bytes of the key that a cancel request of protocol 3.2 names.
const LONG_KEY_BYTES: usize = 32;

tokio::task_local! {
    static CURRENT: Arc<Session>;
}

/// Bytes of a command's text that are kept for those who look (`track_activity_query_size`).
const QUERY_BYTES: usize = 1024;

/// What a connection is doing. Times are microseconds since 1970.
#[derive(Clone, Default)]
pub struct Activity {
    /// Who it is.
    pub user: String,
    /// Where it is.
    pub database: String,
    /// What its program calls itself.
    pub application_name: String,
    /// Its other end.
    pub client: Option<SocketAddr>,
    /// When it was made.
    pub connected_us: i64,
    /// Whether a command is under way.
    pub is_active: bool,
    /// The start of that command, or of the last one.
    pub query: String,
    /// When it began.
    pub query_start_us: i64,
    /// When `is_active` changed.
    pub state_change_us: i64,
    /// Scans of the command that is under way.
    pub scans: Vec<Arc<Progress>>,
}

#[allow(clippy::disallowed_methods, reason = "what PostgreSQL's views show is the time of day")]
fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// One connection.
pub struct Session {
    /// Counts the client's commands: a cancel request is for the one that runs when it comes, and for none after it.
    command: AtomicU64,
    cancelled: watch::Sender<u64>,
    deadline: Mutex<Option<Instant>>,
    /// The connection's socket, to see that its client has left while a command keeps it unread.
    socket: Option<std::net::TcpStream>,
    activity: Mutex<Activity>,
    /// The `COPY ... FROM STDIN` that is under way.
    pub copy: Mutex<Option<CopyIn>>,
    /// Numbers of sequences that it was given.
    pub given: Mutex<Given>,
}

impl Session {
    /// Of a connection; its socket is a second handle of the same one.
    pub fn new(socket: Option<std::net::TcpStream>) -> Session {
        Session {
            command: AtomicU64::new(1),
            cancelled: watch::Sender::new(0),
            deadline: Mutex::new(None),
            socket,
            activity: Mutex::default(),
            copy: Mutex::new(None),
            given: Mutex::default(),
        }
    }

    /// That whose statement the current task works on; none in a task which an operator of a query has started.
    pub fn current() -> Option<Arc<Session>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// `work`, which knows whose it is.
    pub fn of_this<W: Future>(self: &Arc<Self>, work: W) -> impl Future<Output = W::Output> + use<W> {
        CURRENT.scope(Arc::clone(self), work)
    }

    /// Of a client that is connected.
    pub fn of<C: ClientInfo + ?Sized>(client: &C) -> Arc<Session> {
        client.session_extensions().get_or_insert_with(|| Arc::new(Session::new(None))).as_ref().clone()
    }

    /// What it is doing.
    pub fn activity(&self) -> Activity {
        self.activity.lock().clone()
    }

    /// The command that is under way reads so.
    pub fn reads(&self, scans: Vec<Arc<Progress>>) {
        self.activity.lock().scans.extend(scans);
    }

    /// The command that was under way is over, or waits for its client.
    pub fn end(&self) {
        let mut activity = self.activity.lock();
        (activity.is_active, activity.state_change_us) = (false, now_us());
        activity.scans.clear();
    }

    /// A command begins, with the time limit that its client has set.
    pub fn begin<C: ClientInfo + ?Sized>(&self, client: &C, text: &str) {
        {
            let mut activity = self.activity.lock();
            let now_us = now_us();
            (activity.is_active, activity.query_start_us, activity.state_change_us) = (true, now_us, now_us);
            activity.query.clear();
            activity.query.push_str(&text[..text.floor_char_boundary(QUERY_BYTES)]);
            activity.scans.clear();
            // `SET application_name` changes it.
            if let Some(name) =
                client.metadata().get(METADATA_APPLICATION_NAME).filter(|n| **n != activity.application_name)
            {
                activity.application_name.clone_from(name);
            }
        }
        self.command.fetch_add(1, Ordering::Relaxed);
        let limit = client.metadata().get(STATEMENT_TIMEOUT).and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        *self.deadline.lock() = limit.map(|limit| Instant::now() + limit);
    }

    /// The command that runs, or ran last.
    pub fn command(&self) -> u64 {
        self.command.load(Ordering::Relaxed)
    }

    /// Ends the command that runs.
    pub fn cancel(&self) {
        self.cancelled.send_replace(self.command());
    }

    /// Waits until the command that runs now must end early; gives back why.
    pub fn interrupted(self: &Arc<Self>) -> impl Future<Output = SqlError> + Send + 'static {
        let session = Arc::clone(self);
        let command = self.command();
        let deadline = *self.deadline.lock();
        async move {
            let mut cancelled = session.cancelled.subscribe();
            let asked_to = async {
                let _ = cancelled.wait_for(|of| *of == command).await;
            };
            let out_of_time = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => pending().await,
                }
            };
            let why = tokio::select! {
                () = asked_to => "canceling statement due to user request",
                () = out_of_time => "canceling statement due to statement timeout",
                () = left(session.socket.as_ref()) => "canceling statement: its client has left",
            };
            SqlError::new(SqlState::QUERY_CANCELED, why)
        }
    }

    /// What `work` gives, unless it is interrupted.
    ///
    /// # Errors
    /// It was.
    pub async fn run<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> Result<T, SqlError> {
        tokio::select! {
            done = work => Ok(done),
            why = self.interrupted() => Err(why),
        }
    }
}

/// Waits until the other end has closed the connection, reading nothing.
async fn left(socket: Option<&std::net::TcpStream>) {
    let watched = socket.and_then(|socket| socket.try_clone().ok()).and_then(|socket| TcpStream::from_std(socket).ok());
    let Some(watched) = watched else { return pending().await };
    loop {
        match watched.ready(Interest::READABLE).await {
            Ok(ready) if ready.is_read_closed() => return,
            // The next command waits in there for its turn: only a new event is of interest.
            Ok(_) => {
                let seen = || Err::<(), io::Error>(io::ErrorKind::WouldBlock.into());
                let _ = watched.try_io(Interest::READABLE, seen);
            }
            Err(_) => return,
        }
    }
}

/// All connections, by what a cancel request names.
pub struct Sessions {
    next: AtomicI32,
    random: SystemRandom,
    by_pid: Mutex<HashMap<i32, (SecretKey, Weak<Session>)>>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// None yet.
    pub fn new() -> Arc<Sessions> {
        let by_pid = Mutex::new(HashMap::new());
        Arc::new(Sessions { next: AtomicI32::new(FIRST_PID), random: SystemRandom::new(), by_pid })
    }

    /// Those that are connected, by their numbers.
    pub fn all(&self) -> Vec<(i32, Arc<Session>)> {
        let by_pid = self.by_pid.lock();
        let mut all: Vec<_> =
            by_pid.iter().filter_map(|(pid, (_, session))| Some((*pid, session.upgrade()?))).collect();
        all.sort_by_key(|(pid, _)| *pid);
        all
    }

    /// Lets a client that has got its number be cancelled, as long as it is connected.
    pub fn add<C: ClientInfo + ?Sized>(self: &Arc<Self>, client: &C, session: &Arc<Session>) {
        let (pid, key) = client.pid_and_secret_key();
        {
            let said = |name: &str| client.metadata().get(name).cloned().unwrap_or_default();
            let mut activity = session.activity.lock();
            let user = said(METADATA_USER);
            let database = said(METADATA_DATABASE);
            activity.database = if database.is_empty() { user.clone() } else { database };
            activity.user = user;
            activity.application_name = said(METADATA_APPLICATION_NAME);
            activity.client = Some(client.socket_addr());
            activity.connected_us = now_us();
            activity.state_change_us = activity.connected_us;
        }
        self.by_pid.lock().insert(pid, (key, Arc::downgrade(session)));
        client.session_extensions().insert(Arc::clone(session));
        client.session_extensions().insert(Registered { sessions: Arc::clone(self), pid });
    }
}

impl PidSecretKeyGenerator for Sessions {
    fn generate(&self, client: &dyn ClientInfo) -> (i32, SecretKey) {
        let mut key = [0; LONG_KEY_BYTES];
        // Without random numbers a key of zeros would be everybody's: the connection gets one that no request matches.
        let is_random = self.random.fill(&mut key).is_ok();
        let key = match client.protocol_version() {
            _ if !is_random => SecretKey::Bytes(bytes::Bytes::new()),
            ProtocolVersion::PROTOCOL3_0 => SecretKey::I32(i32::from_be_bytes([key[0], key[1], key[2], key[3]])),
            _ => SecretKey::Bytes(bytes::Bytes::copy_from_slice(&key)),
        };
        (self.next.fetch_add(1, Ordering::Relaxed), key)
    }
}

#[async_trait]
impl CancelHandler for Sessions {
    async fn on_cancel_request(&self, request: CancelRequest) {
        let found = self.by_pid.lock().get(&request.pid).filter(|(key, _)| key.eq_value(&request.secret_key)).cloned();
        if let Some(session) = found.and_then(|(_, session)| session.upgrade()) {
            session.cancel();
        }
    }
}

/// Takes a connection off the list when it ends.
struct Registered {
    sessions: Arc<Sessions>,
    pid: i32,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.sessions.by_pid.lock().remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_is_for_the_command_that_runs() {
        let session = Arc::new(Session::new(None));
        let first = session.interrupted();
        session.cancel();
        assert_eq!(first.await.state, SqlState::QUERY_CANCELED);
        session.command.fetch_add(1, Ordering::Relaxed);
        assert_eq!(session.run(async { 7 }).await, Ok(7));
        let next = session.interrupted();
        assert!(futures::FutureExt::now_or_never(next).is_none());
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_noticed_though_nobody_reads() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
        let (server, _) = listener.accept().await.expect("a connection");
        let session = Arc::new(Session::new(Some(server.into_std().expect("a socket"))));
        tokio::io::AsyncWriteExt::write_all(&mut client, b"the next command").await.expect("room");
        let interrupted = tokio::spawn(session.interrupted());
        drop(client);
        assert!(interrupted.await.expect("no panic").message.contains("left"));
    }
}
