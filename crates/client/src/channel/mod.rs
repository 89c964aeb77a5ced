//! The way to one service of one server, shared by any number of callers: a socket, or the service itself where it is in this process.

mod encode;
mod local;
mod room;
mod socket;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cell::{CellBlock, CellRuns};
use proto::methods::Method;
use proto::{Message, pb};
use rpc::CellCodec;
use tokio::time::Sleep;

use crate::options::Options;
use crate::{Error, Result};

/// A wait shorter than this is ended by a timer of its own; longer ones by the connection's look at all its calls, which costs a call nothing.
const TIMED_ALONE: Duration = Duration::from_secs(5);

/// A call to make.
pub(crate) struct Request<'a, M> {
    method: Method,
    message: &'a M,
    /// Cell block, already in the connection's codec, in pieces.
    cells: &'a [Bytes],
    priority: u32,
    timeout: Option<Duration>,
    attributes: &'a [pb::NameBytesPair],
    /// Of which span the call is a part, for the server.
    traceparent: Option<String>,
}

impl<'a, M: Message> Request<'a, M> {
    pub(crate) fn new(method: Method, message: &'a M) -> Self {
        Request { method, message, cells: &[], priority: 0, timeout: None, attributes: &[], traceparent: None }
    }

    pub(crate) fn cells(mut self, cells: &'a [Bytes]) -> Self {
        self.cells = cells;
        self
    }

    pub(crate) fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// How long to wait for the reply; without it as long as the connection's options say.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// What the server is told about the request besides what is asked.
    pub(crate) fn attributes(mut self, attributes: &'a [pb::NameBytesPair]) -> Self {
        self.attributes = attributes;
        self
    }
}

/// A reply that is no exception.
#[derive(Debug)]
pub(crate) struct Reply {
    message: Bytes,
    cells: Bytes,
    codec: CellCodec,
}

impl Reply {
    /// The message as it came.
    pub(crate) fn message(&self) -> &Bytes {
        &self.message
    }

    /// Bytes of message and cells.
    pub(crate) fn byte_len(&self) -> usize {
        self.message.len() + self.cells.len()
    }

    /// The message as its type.
    pub(crate) fn decode<M: Message + Default>(&self) -> Result<M> {
        M::decode(self.message.clone()).map_err(Error::malformed)
    }

    /// The cells behind the message, checked.
    pub(crate) fn cells(&self) -> Result<CellBlock> {
        if self.cells.is_empty() {
            return Ok(CellBlock::default());
        }
        self.codec.decode(self.cells.clone()).map_err(Error::malformed)
    }

    /// The cells behind the message, checked, in consecutive runs of so many; `None` when there are fewer.
    pub(crate) fn cell_runs(&self, counts: &[u32]) -> Result<Option<CellRuns>> {
        self.codec.decode_runs(self.cells.clone(), counts).map_err(Error::malformed)
    }
}

/// The way to a service. Cloning shares it; dropping the last clone closes the connection.
#[derive(Clone)]
pub(crate) enum Channel {
    /// Over TCP.
    Socket(Arc<socket::Socket>),
    /// In this process.
    Local(Arc<local::Local>),
}

impl Channel {
    /// Connects to `service` at `server` (`host:port`).
    pub(crate) async fn connect(server: Arc<str>, service: &str, options: &Options) -> Result<Channel> {
        match options.in_process.get(&*server) {
            Some(services) => Ok(Channel::Local(local::Local::connect(services, server, service, options)?)),
            None => Ok(Channel::Socket(socket::Socket::connect(server, service, options).await?)),
        }
    }

    /// Whether it takes calls no more.
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Channel::Socket(socket) => socket.is_ended(),
            Channel::Local(_) => false,
        }
    }

    /// Sends a call; its reply is what the returned future brings. Dropped, the future frees the call's place, and its reply is thrown away.
    pub(crate) fn start<M: Message>(&self, mut request: Request<'_, M>) -> Result<Pending> {
        let method = request.method;
        let info = method.info();
        let span = trace::begin_call(info.service.name(), info.name, self.server());
        request.traceparent = span.as_ref().map(|span| span.place().traceparent());
        let timeout = request.timeout.unwrap_or(match self {
            Channel::Socket(socket) => socket.rpc_timeout(),
            Channel::Local(local) => local.rpc_timeout,
        });
        let wait = match self {
            Channel::Socket(socket) => Wait::Socket(socket.clone().start(request, timeout)?),
            Channel::Local(local) => {
                let _within = span.as_ref().map(trace::Span::enter);
                Wait::Local(local.start(&request, timeout), local.clone())
            }
        };
        Ok(Pending { wait, method, timeout, timer: None, span })
    }

    fn server(&self) -> &Arc<str> {
        match self {
            Channel::Socket(socket) => socket.server(),
            Channel::Local(local) => &local.server,
        }
    }

    /// Sends a call and waits for its reply.
    pub(crate) async fn call<M: Message>(&self, request: Request<'_, M>) -> Result<Reply> {
        self.start(request)?.await
    }

    /// Sends a call whose reply nobody waits for.
    pub(crate) fn forget<M: Message>(&self, request: &Request<'_, M>) {
        match self {
            Channel::Socket(socket) => socket.forget(request),
            Channel::Local(local) => local.forget(request),
        }
    }
}

enum Wait {
    Socket(socket::Pending),
    Local(rpc::LocalCall, Arc<local::Local>),
}

/// The wait for a reply. Dropped, it leaves the reply to be thrown away.
pub(crate) struct Pending {
    wait: Wait,
    method: Method,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Ends with the wait.
    span: Option<trace::Span>,
}

impl Pending {
    fn late(&self) -> Error {
        let server = match &self.wait {
            Wait::Socket(pending) => pending.server().clone(),
            Wait::Local(_, local) => local.server.clone(),
        };
        Error::Timeout { server, method: self.method.info().name, timeout_ms: self.timeout.as_millis() as u64 }
    }
}

impl Future for Pending {
    type Output = Result<Reply>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.poll_reply(context);
        if let Poll::Ready(reply) = &polled
            && let Some(mut span) = self.span.take()
            && let Err(error) = reply
        {
            span.fail(error.class().unwrap_or("java.io.IOException"), &error.to_string());
        }
        polled
    }
}

impl Pending {
    fn poll_reply(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply>> {
        let this = self;
        let is_timed_alone = match &mut this.wait {
            Wait::Socket(pending) => match Pin::new(pending).poll(context) {
                Poll::Ready(Err(Error::Timeout { .. })) => return Poll::Ready(Err(this.late())),
                Poll::Ready(reply) => return Poll::Ready(reply),
                Poll::Pending => this.timeout < TIMED_ALONE,
            },
            Wait::Local(call, local) => match Pin::new(call).poll(context) {
                Poll::Ready(answer) => return Poll::Ready(local.reply(answer)),
                Poll::Pending => true,
            },
        };
        if is_timed_alone {
            let timeout = this.timeout;
            let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(this.late()));
            }
        }
        Poll::Pending
    }
}
