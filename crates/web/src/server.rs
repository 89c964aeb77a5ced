//! The port: accepting, limits, and the end.

use crate::settings::{self, MetricsPages};
use crate::site::Site;
use crate::status::StatusSource;
use base::Clock;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at a time; one more is closed at once.
const MAX_CONNECTIONS: usize = 256;
/// Bytes of a request line with its headers.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Header lines.
const MAX_HEADERS: usize = 64;
/// Bytes of a form.
const MAX_FORM_BYTES: usize = 4096;
/// From the first byte of a request to the last of its headers.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection's whole life: it carries one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long answers under way may take when the server stops.
const DRAIN: Duration = Duration::from_secs(1);
/// Rest after a failed accept (no more file descriptors, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The status pages on a port that is bound, and not served before [`Server::run`].
pub struct Server {
    listener: std::net::TcpListener,
    also: Option<std::net::TcpListener>,
    address: SocketAddr,
    site: Arc<Site>,
    head_timeout: Duration,
    connection_timeout: Duration,
}

impl Server {
    /// Takes the port. `0` takes any free one.
    ///
    /// # Errors
    /// When the address cannot be bound; [`settings::INFO_PORT`] says which port it was.
    pub fn bind(address: SocketAddr, source: Arc<dyn StatusSource>, clock: Arc<dyn Clock>) -> io::Result<Server> {
        Server::bind_with(address, source, clock, MetricsPages::default())
    }

    /// As [`Server::bind`], with these forms of metrics alone.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn bind_with(
        address: SocketAddr,
        source: Arc<dyn StatusSource>,
        clock: Arc<dyn Clock>,
        metrics: MetricsPages,
    ) -> io::Result<Server> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Server {
            listener,
            address,
            also: None,
            site: Arc::new(Site::new(source, clock, metrics)),
            head_timeout: HEAD_TIMEOUT,
            connection_timeout: CONNECTION_TIMEOUT,
        })
    }

    /// Listens at a second address, too, and says where.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn listen_also(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        self.also = Some(listener);
        Ok(address)
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Other patience with slow peers: for the head of a request, and for a whole connection.
    #[must_use]
    pub fn with_timeouts(mut self, head: Duration, connection: Duration) -> Server {
        self.head_timeout = head;
        self.connection_timeout = connection;
        self
    }

    /// Serves until `shutdown` is done, then lets answers under way end, for a second at most.
    ///
    /// # Errors
    /// When the runtime cannot take the listener. Trouble with one connection ends that connection.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let also = self.also.map(tokio::net::TcpListener::from_std).transpose()?;
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let every = Duration::from_millis(crate::rates::SAMPLE_EVERY_MS);
        let mut sampling = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        sampling.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(shutdown);
        tracing::debug!("{} = {}: serving", settings::INFO_PORT.key, self.address);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                _ = sampling.tick() => self.site.sample(),
                // Finished ones are taken out as they end.
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = accept(&listener, also.as_ref()) => match accepted {
                    Ok((stream, _)) => {
                        let Ok(permit) = permits.clone().try_acquire_owned() else { continue };
                        let site = self.site.clone();
                        let (head, life) = (self.head_timeout, self.connection_timeout);
                        connections.spawn(async move {
                            serve(stream, site, head, life).await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!("the status pages at {} cannot take a connection: {error}", self.address);
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop((listener, also));
        let ended = async { while connections.join_next().await.is_some() {} };
        // What is still open after that goes with the set.
        let _ = tokio::time::timeout(DRAIN, ended).await;
        Ok(())
    }
}

/// The next connection at either address.
async fn accept(
    listener: &tokio::net::TcpListener,
    also: Option<&tokio::net::TcpListener>,
) -> io::Result<(TcpStream, SocketAddr)> {
    match also {
        None => listener.accept().await,
        Some(also) => tokio::select! {
            accepted = listener.accept() => accepted,
            accepted = also.accept() => accepted,
        },
    }
}

/// A form's text; nothing of one that is too long, or breaks off.
async fn read_form(body: hyper::body::Incoming) -> String {
    match http_body_util::Limited::new(body, MAX_FORM_BYTES).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => String::new(),
    }
}

async fn serve(stream: TcpStream, site: Arc<Site>, head_timeout: Duration, connection_timeout: Duration) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let site = site.clone();
        async move {
            let (head, body) = request.into_parts();
            // Only a form has one that is read.
            let form = if head.method == hyper::Method::POST { Some(read_form(body).await) } else { None };
            Ok::<_, Infallible>(site.answer(&head.method, &head.uri, form.as_deref()).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .keep_alive(false)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(connection_timeout, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a reader of the status pages: {error}"),
        Err(_) => tracing::debug!("a reader of the status pages was too slow"),
    }
}
