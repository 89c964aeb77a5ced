//! From a message to the method's answer.

use crate::fault::{Application, Outcome, write_application};
use crate::protocol::{Message, MessageKind, Protocol, ProtocolError, Reader, Writer};
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
        answer: &mut Answer,
    ) -> impl Future<Output = Result<bool, ProtocolError>> + Send;
}

/// Where an answer goes.
pub struct Answer {
    protocol: Protocol,
    /// Whether exceptions name the Java class, as Thrift 1's stack traces do.
    with_class: bool,
    message: Message,
    written: Option<Vec<u8>>,
}

impl Answer {
    /// Writes the outcome of a method.
    pub fn set<T: Wire>(&mut self, outcome: Outcome<T>) {
        let mut writer = Writer::new(self.protocol);
        writer.message(&self.message.name, MessageKind::Reply, self.message.sequence);
        match outcome {
            Ok(value) => value.write_field(&mut writer, 0, &mut 0),
            Err(fault) => {
                if let Err(why) = fault.write(&mut writer, self.with_class) {
                    let why = format!("Internal error processing {}: {why}", self.message.name);
                    self.written = Some(self.exception(Application::Internal, &why));
                    return;
                }
            }
        }
        writer.stop();
        self.written = Some(writer.into_bytes());
    }

    fn exception(&self, kind: Application, why: &str) -> Vec<u8> {
        let mut writer = Writer::new(self.protocol);
        writer.message(&self.message.name, MessageKind::Exception, self.message.sequence);
        write_application(&mut writer, kind, why);
        writer.into_bytes()
    }
}

/// What came of a message.
pub struct Handled {
    /// What is sent back; nothing for a one-way message.
    pub reply: Option<Vec<u8>>,
    /// What is sent back where there is no room for the reply.
    pub refusal: Vec<u8>,
}

/// Handles one whole message.
///
/// # Errors
/// It is no message of this protocol: whoever sent it cannot be answered.
pub async fn handle<S: Service>(
    service: &S,
    protocol: Protocol,
    with_class: bool,
    data: &Bytes,
) -> Result<Handled, ProtocolError> {
    let mut reader = Reader::new(protocol, data);
    let message = reader.message()?;
    let mut answer = Answer { protocol, with_class, message: message.clone(), written: None };
    let name = &message.name;
    let reply = match message.kind {
        MessageKind::Call | MessageKind::Oneway => match service.dispatch(name, &mut reader, &mut answer).await {
            Ok(true) => answer.written.take().unwrap_or_default(),
            Ok(false) => answer.exception(Application::UnknownMethod, &format!("Invalid method name: '{name}'")),
            Err(error) => answer.exception(Application::Protocol, &error.to_string()),
        },
        _ => answer.exception(Application::MessageKind, "only calls are answered"),
    };
    let refusal = answer.exception(
        Application::Internal,
        &format!("{name}: the gateway holds too many bytes of replies now; ask for less, or try again later"),
    );
    Ok(Handled { reply: (message.kind != MessageKind::Oneway).then_some(reply), refusal })
}
