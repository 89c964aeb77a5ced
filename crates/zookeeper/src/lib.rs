//! A session with a real ZooKeeper ensemble, and HBase's nodes in it.
//!
//! Always true:
//!  1. Only the ensemble ends a session. A client that hears nothing for long resumes the session it had, as Java's does; what it was told to
//!     write meanwhile is written then.
//!  2. [`Ensemble`] is told what nodes are to be like, and sees to it: an answer that was lost is resolved by writing again, and after a
//!     resumed session everything is written again that it was told.
//!  3. A node that another session owns is never overwritten.
//!  4. With a name of its own a process makes nodes that others may read, and nothing more.
//!
//! Must not know: what the nodes mean.

mod calls;
mod ensemble;
mod security;
mod wanted;

pub use coordination::Claim;
pub use ensemble::{Ensemble, EnsembleError, Options};
pub use security::{Sasl, Security, Tls};
