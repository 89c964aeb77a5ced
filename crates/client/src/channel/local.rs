//! Calls to a service in this process: nothing is framed, cells are passed on as they are.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::Message;
use rpc::{CallResult, LocalCall, LocalConnection, LocalRequest};

use super::{Reply, Request};
use crate::options::Options;
use crate::{Error, Result};

/// The services of one kind of a server in this process.
pub(crate) struct Local {
    /// `host:port`.
    pub(super) server: Arc<str>,
    pub(super) rpc_timeout: Duration,
    connection: LocalConnection,
}

impl Local {
    /// Finds `service` among the services of `server`.
    pub(super) fn connect(
        services: &rpc::Local,
        server: Arc<str>,
        service: &str,
        options: &Options,
    ) -> Result<Arc<Local>> {
        let refused = |exception: rpc::Exception| Error::remote(exception.to_response());
        let connection = services.connect(service, &options.user, options.codec).map_err(refused)?;
        Ok(Arc::new(Local { server, rpc_timeout: options.rpc_timeout, connection }))
    }

    /// Hands a call to its service.
    pub(super) fn start<M: Message>(&self, request: &Request<'_, M>, timeout: Duration) -> LocalCall {
        self.connection.call(LocalRequest {
            method: request.method.info(),
            message: Bytes::from(request.message.encode_to_vec()),
            cells: joined(request.cells),
            priority: request.priority,
            timeout,
            attributes: request.attributes.to_vec(),
        })
    }

    /// The same when nobody waits for the reply. The call is run to its end all the same.
    pub(super) fn forget<M: Message>(&self, request: &Request<'_, M>) {
        let call = self.start(request, self.rpc_timeout);
        // A scanner that is dropped outside of a runtime has none to run this on; its lease ends it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { drop(call.await) });
        }
    }

    /// What a service answered.
    pub(super) fn reply(&self, answer: CallResult) -> Result<Reply> {
        match answer {
            Ok(reply) => Ok(Reply { message: reply.message, cells: reply.cells, codec: self.connection.codec() }),
            Err(exception) => Err(Error::remote(exception.to_response())),
        }
    }
}

fn joined(pieces: &[Bytes]) -> Bytes {
    match pieces {
        [] => Bytes::new(),
        [one] => one.clone(),
        several => {
            let mut all = BytesMut::with_capacity(several.iter().map(Bytes::len).sum());
            several.iter().for_each(|piece| all.extend_from_slice(piece));
            all.freeze()
        }
    }
}
