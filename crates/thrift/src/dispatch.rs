//! From a message to the method's answer.

use crate::fault::{Application, Outcome, write_application};
use crate::metrics::Stopwatch;
use crate::protocol::{Message, MessageKind, Protocol, ProtocolError, Reader, Writer, Written};
use crate::wire::Wire;
use bytes::Bytes;
use std::future::Future;

/// A service of an IDL, made by the macro `service!`.
pub trait Service: Send + Sync + 'static {
    /// Reads the arguments of the method `name`, calls it and leaves its answer. False: there is no such method.
    ///
    /// # Errors
    /// The arguments cannot be read.
    fn dispatch(
        &self,
        name: &str,
        reader: &mut Reader<'_>,
        answer: &mut Answer<'_>,
    ) -> impl Future<Output = Result<bool, ProtocolError>> + Send;

    /// The same service over another connection to the cluster: on behalf of that one's user.
    #[must_use]
    fn over(&self, connection: client::Connection) -> Self;
}

/// Where an answer goes.
pub struct Answer<'a> {
    manner: Manner,
    message: &'a Message,
    written: Option<Written>,
}

/// How a gateway answers.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// The encoding.
    pub protocol: Protocol,
    /// Whether exceptions name the Java class, as Thrift 1's stack traces do.
    pub with_class: bool,
}

impl Manner {
    fn exception(self, message: &Message, kind: Application, why: &str) -> Written {
        let mut writer = Writer::new(self.protocol);
        writer.message(&message.name, MessageKind::Exception, message.sequence);
        write_application(&mut writer, kind, why);
        writer.finish()
    }
}

impl Answer<'_> {
    /// Writes the outcome of a method.
    pub fn set<T: Wire>(&mut self, outcome: Outcome<T>) {
        let mut writer = Writer::new(self.manner.protocol);
        writer.message(&self.message.name, MessageKind::Reply, self.message.sequence);
        match outcome {
            Ok(value) => value.write_field(&mut writer, 0, &mut 0),
            Err(fault) => {
                if let Err(why) = fault.write(&mut writer, self.manner.with_class) {
                    let why = format!("Internal error processing {}: {why}", self.message.name);
                    self.written = Some(self.manner.exception(self.message, Application::Internal, &why));
                    return;
                }
            }
        }
        writer.stop();
        self.written = Some(writer.finish());
    }
}

/// What came of a message.
pub struct Handled {
    /// What is sent back; nothing for a one-way message.
    pub reply: Option<Written>,
    manner: Manner,
    message: Message,
}

impl Handled {
    /// What is sent back where there is no room for the reply.
    pub fn refusal(&self) -> Written {
        let name = &self.message.name;
        let why = format!("{name}: the gateway holds too many bytes of replies now; ask for less, or try again later");
        self.manner.exception(&self.message, Application::Internal, &why)
    }
}

/// Handles one whole message.
///
/// # Errors
/// It is no message of this protocol: whoever sent it cannot be answered.
pub async fn handle<S: Service>(
    service: &S,
    manner: Manner,
    stopwatch: &Stopwatch,
    data: &Bytes,
) -> Result<Handled, ProtocolError> {
    let begun_us = stopwatch.now_us();
    let mut reader = Reader::new(manner.protocol, data);
    let message = reader.message()?;
    let mut answer = Answer { manner, message: &message, written: None };
    let exception = |kind, why: &str| manner.exception(&message, kind, why);
    let reply = match message.kind {
        MessageKind::Call | MessageKind::Oneway => {
            let span = stopwatch.span(&message.name);
            let dispatched = service.dispatch(&message.name, &mut reader, &mut answer);
            let dispatched = match &span {
                None => dispatched.await,
                Some(span) => trace::within(Some(span.place().clone()), Box::pin(dispatched)).await,
            };
            if let (Ok(false), Some(span)) = (&dispatched, span) {
                // A name that means nothing is none for a span.
                span.cancel();
            }
            match dispatched {
                Ok(true) => {
                    stopwatch.called(&message.name, begun_us);
                    answer.written.take().unwrap_or_else(Written::empty)
                }
                Ok(false) => exception(Application::UnknownMethod, &format!("Invalid method name: '{}'", message.name)),
                Err(error) => exception(Application::Protocol, &error.to_string()),
            }
        }
        _ => exception(Application::MessageKind, "only calls are answered"),
    };
    let reply = (message.kind != MessageKind::Oneway).then_some(reply);
    Ok(Handled { reply, manner, message })
}
