//! HBase's RPC: frames, cell blocks, exceptions, and both ends of a connection.
//!
//! A server implements [`Handler`] and gives it to [`Server::bind`]; a [`Call`] comes in with its message still
//! encoded and its cells checked, and a [`Reply`] or an [`Exception`] goes out. [`service`] has a trait for each of HBase's
//! services, whose methods take the decoded request; `convert` turns messages into values and back, and its errors become
//! exceptions here. [`client`] is the other end, as small as tests need it; load tools and programs use `basalt-client`.
//!
//! Always true:
//!  1. Bytes from outside never panic and are never believed: a length is checked before anything is allocated by it.
//!  2. A peer that is slow, silent or hostile harms its own connection only; what it can hold of the server's memory
//!     is bounded.
//!  3. A request either gets exactly one reply, or its connection ends.
//!  4. Both ends know a connection only as a [`transport::Transport`]: TCP, or a pipe in memory. Callers in the server's process need none:
//!     [`Local`] hands their requests to the services, counted like those of any other client.
//!  5. Class names of Java exceptions come from one table ([`Kind`]).
//!
//! Must not know: what a call means, regions, files. Follows `NettyRpcServer`, `ServerRpcConnection`, `ServerCall`,
//! `IPCUtil`.

pub mod call;
pub mod cell_block;
pub mod client;
mod dial;
pub mod exception;
pub mod frame;
mod observer;
pub mod server;
pub mod service;
pub mod settings;
pub mod socket;
pub mod transport;

pub use call::{
    BoxFuture, Call, CallResult, Cancellation, ClientLoad, ConnInfo, Handler, Making, Outcome, Reply, UserLoad,
};
pub use cell_block::{CellCodec, Compressor};
pub use dial::{Dialed, Dialer, Network};
pub use exception::{Exception, Kind};
pub use observer::{AnsweredCall, CallObserver, CallReads};
pub use server::{Counters, Direct, Limits, LimitsHandle, Responder, Server, answer_together, capped_ledger};
pub use server::{Local, LocalCall, LocalConnection, LocalRequest};
