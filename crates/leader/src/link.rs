//! Calls of one region server: a connection for each of its services, another one after a failure.

use cell::CellBlock;
use model::ServerName;
use parking_lot::Mutex;
use proto::Message;
use proto::methods::{Method, Service};
use rpc::Dialer;
use rpc::client::{Client, ClientError, ClientOptions};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The server answered with an exception.
    #[error("{class}: {message}")]
    Refused {
        /// Its Java class.
        class: String,
        /// What it says, without the stack.
        message: String,
    },
    /// There was no connection to send it over.
    #[error("no connection: {0}")]
    NotSent(String),
    /// Whether it was carried out is not known.
    #[error("no answer: {0}")]
    Unanswered(String),
}

/// The way to one server.
pub(crate) struct ServerLink {
    server: ServerName,
    timeout: Duration,
    dialer: Dialer,
    clients: Mutex<HashMap<Service, Arc<Client>>>,
}

impl ServerLink {
    /// A call that has no answer after `timeout` has failed.
    pub fn new(server: ServerName, timeout: Duration, dialer: Dialer) -> ServerLink {
        ServerLink { server, timeout, dialer, clients: Mutex::default() }
    }

    /// Calls the server once.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call<M: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<(M, CellBlock), CallError> {
        self.call_within(method, request, self.timeout).await
    }

    /// As [`ServerLink::call`], of something that takes longer.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call_within<M: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
        timeout: Duration,
    ) -> Result<(M, CellBlock), CallError> {
        let info = method.info();
        let client = self.client(info.service).await?;
        let mut span = trace::current().and_then(|_| {
            trace::begin_call(info.service.name(), info.name, &format!("{}:{}", self.server.host, self.server.port))
        });
        let place = span.as_ref().map(|span| span.place().clone());
        let call = trace::within(place, tokio::time::timeout(timeout, client.call(info, request, None)));
        let answer = call.await;
        if let (Some(span), Ok(Err(error))) = (&mut span, &answer) {
            span.fail(error.class().unwrap_or("java.io.IOException"), &error.to_string());
        }
        let failed = match answer {
            Ok(Ok(reply)) => match reply.decode() {
                Ok(message) => return Ok((message, reply.cells)),
                Err(error) => CallError::Unanswered(error.to_string()),
            },
            Ok(Err(ClientError::Remote(exception))) => {
                let message = exception.stack_trace().lines().next().unwrap_or_default().to_owned();
                return Err(CallError::Refused { class: exception.exception_class_name().to_owned(), message });
            }
            Ok(Err(error)) => CallError::Unanswered(error.to_string()),
            Err(_) => CallError::Unanswered(format!("none within {} ms", timeout.as_millis())),
        };
        let mut clients = self.clients.lock();
        if clients.get(&info.service).is_some_and(|now| Arc::ptr_eq(now, &client)) {
            clients.remove(&info.service);
        }
        Err(failed)
    }

    async fn client(&self, service: Service) -> Result<Arc<Client>, CallError> {
        let known = self.clients.lock().get(&service).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let (host, port) = (&*self.server.host, self.server.port);
        let connect = self.dialer.connect(host, port, service.name(), ClientOptions::default());
        let client = match tokio::time::timeout(self.timeout, connect).await {
            Ok(client) => Arc::new(client.map_err(|error| CallError::NotSent(error.to_string()))?),
            Err(_) => return Err(CallError::NotSent(format!("none within {} ms", self.timeout.as_millis()))),
        };
        // Two who came at once have two; the last is kept.
        self.clients.lock().insert(service, client.clone());
        Ok(client)
    }
}
