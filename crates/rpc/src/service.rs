//! HBase's services as traits: an RPC is a method that takes the decoded request and answers a message of its type.
//!
//! A server implements the traits of the services that it serves and hands each [`Call`] to `dispatch`. A method that it
//! does not implement is answered as unsupported. The traits are generated from the `.proto` files by `cargo xtask proto`.
//!
//! Cost: a dispatch is one match on a number; an answer is encoded where it is made, and what comes later is boxed once.

use crate::{Call, Exception, Outcome, Reply};
use cell::CellBuffer;
use proto::methods::Method;
use proto::{Message, pb};
use std::marker::PhantomData;

include!("gen/services.rs");

/// What a method of a service answers, `M` being the message that its `.proto` names.
pub type Answer<M> = Result<Response<M>, Exception>;

/// An answer of type `M`, now or later; encoded already, so that it costs no more than an [`Outcome`].
#[derive(Debug)]
pub struct Response<M> {
    outcome: Outcome,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Response<M> {
    fn new(outcome: Outcome) -> Self {
        Self { outcome, message: PhantomData }
    }

    /// An answer now, with cells beside the message.
    pub fn with_cells(message: &M, cells: CellBuffer) -> Self {
        Self::new(Outcome::Ready(Ok(Reply::with_cells(message, cells))))
    }

    /// An answer to come. It runs in a task of its own, to its end, even when the client is gone.
    pub fn future<E: Into<Exception>>(work: impl Future<Output = Result<M, E>> + Send + 'static) -> Self {
        Self::new(Outcome::later(async move {
            match work.await {
                Ok(message) => Ok(Reply::new(&message)),
                Err(error) => Err(error.into()),
            }
        }))
    }
}

impl<M: Message> From<M> for Response<M> {
    fn from(message: M) -> Self {
        Self::new(Outcome::reply(&message))
    }
}

/// Inside `impl SomeService for T`: `method(Request) -> Response = function;` for each RPC, where the function takes
/// `(&T, &Call, pb::Request)`. So one reads in one place what is served, and where; `cargo xtask coverage` reads it too.
#[macro_export]
macro_rules! answered_by {
    ($($method:ident($request:ident) -> $response:ident = $function:path;)*) => {
        $(fn $method(&self, call: &$crate::Call, request: ::proto::pb::$request)
            -> $crate::service::Answer<::proto::pb::$response> {
            $function(self, call, request)
        })*
    };
}

fn typed<M>(answer: Answer<M>) -> Outcome {
    answer.map_or_else(Outcome::from, |response| response.outcome)
}

fn encoded(answer: Result<Outcome, Exception>) -> Outcome {
    answer.unwrap_or_else(Outcome::from)
}
