//! The port: accepting, limits, and the end.

use crate::body::ReplyBody;
use crate::gateway::Gateway;
use crate::request::SILENCE;
use crate::settings;
use base::Config;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tokio_io_timeout::TimeoutStream;

/// Bytes of a request line with its headers, as Jetty has it.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Header lines.
const MAX_HEADERS: usize = 256;
/// From the first byte of a request to the last of its headers; also how long a connection may idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests at a time on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;
/// How long answers under way may take when the server stops.
const DRAIN: Duration = Duration::from_secs(1);
/// Rest after a failed accept (no more file descriptors, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port that is bound, and not served before [`Server::run`].
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    max_connections: usize,
    permits: Arc<Semaphore>,
}

impl Server {
    /// Takes the port. `0` takes any free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn bind(address: SocketAddr, config: &Config) -> io::Result<Server> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let max_connections = config.get(&settings::MAX_CONNECTIONS) as usize;
        Ok(Server { listener, address, max_connections, permits: Arc::new(Semaphore::new(max_connections)) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Counts the connections that are open, also once the server runs.
    pub fn connections(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let (permits, most) = (self.permits.clone(), self.max_connections);
        move || most - permits.available_permits()
    }

    /// Serves `gateway` until `shutdown` is done, then lets answers under way end, for a second at most.
    ///
    /// # Errors
    /// When the runtime cannot take the listener. Trouble with one connection ends that connection.
    pub async fn run(self, gateway: Arc<Gateway>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let mut expiring = tokio::time::interval(gateway.scanners.expire_every());
        expiring.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let answering = gateway.clone();
        let answer = move |request| {
            let gateway = answering.clone();
            async move { gateway.answer(request).await.into_response() }
        };
        let serving = self.serve(answer, shutdown);
        tokio::pin!(serving);
        loop {
            tokio::select! {
                served = &mut serving => return served,
                _ = expiring.tick() => gateway.scanners.expire(),
            }
        }
    }

    /// Answers every request with what `answer` makes of it, until `shutdown` is done: the HTTP server with its limits, without a gateway.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub async fn serve<A, R>(self, answer: A, shutdown: impl Future<Output = ()>) -> io::Result<()>
    where
        A: Fn(hyper::Request<Incoming>) -> R + Clone + Send + 'static,
        R: Future<Output = hyper::Response<ReplyBody>> + Send + 'static,
    {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let permits = self.permits;
        let ending = GracefulShutdown::new();
        tokio::pin!(shutdown);
        tracing::debug!("REST gateway: serving {}", self.address);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let Ok(permit) = permits.clone().try_acquire_owned() else { continue };
                        let connection = ending.watch(connection(stream, answer.clone()));
                        tokio::spawn(async move {
                            if let Err(error) = connection.await {
                                tracing::debug!("a client of the REST gateway: {error}");
                            }
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!("the REST gateway at {} cannot take a connection: {error}", self.address);
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        let _ = tokio::time::timeout(DRAIN, ending.shutdown()).await;
        Ok(())
    }
}

/// One connection, of HTTP/1.1 or HTTP/2 by what it begins with.
fn connection<A, R>(
    stream: TcpStream,
    answer: A,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send
where
    A: Fn(hyper::Request<Incoming>) -> R + Send + 'static,
    R: Future<Output = hyper::Response<ReplyBody>> + Send + 'static,
{
    // Small answers should not wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(HEAD_TIMEOUT);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(SILENCE));
    builder.serve_connection(TokioIo::new(Box::pin(stream)), service).into_owned()
}
