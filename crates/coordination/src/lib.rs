//! Coordination for a standalone server: an embedded endpoint that speaks enough of ZooKeeper's protocol for any
//! HBase client to find its way, over a tree of nodes in memory.
//!
//! Always true:
//!  1. Replies keep the order of their requests, and a watch event that fired before a reply was made is written
//!     before it: a client never reads new data before it hears of the change.
//!  2. An ephemeral node lives exactly as long as its session; a session ends by its client's word or by silence.
//!  3. No length from the wire is trusted: a frame is at most [`MAX_FRAME_BYTES`], the tree at most
//!     [`tree::MAX_TREE_BYTES`], and a peer that is slow, silent or wrong loses its own connection only.
//!  4. The transaction id never goes backwards, not over a restart either: it starts from the wall clock, and above what [`kept`] has set aside.
//!  5. Persistent nodes that users made outlive a restart when somebody keeps them ([`kept`]); what tells of them leaves when they are durable.
//!
//! Not here: access control (every node is `world:anyone`; any other ACL is refused rather than ignored), `multi`,
//! persistent watches, SASL. Must not know: regions. Follows ZooKeeper's `NIOServerCnxn`, `FinalRequestProcessor` and
//! `DataTree`; the nodes follow HBase's `ZNodePaths`.

mod coordinator;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod hbase_znodes;
pub mod jute;
pub mod kept;
mod request;
mod server;
mod session;
pub mod settings;
mod state;
mod store;
pub mod tree;
mod words;

pub use coordinator::{Answer, Awaited, Claim, Coordinator, SessionOver};
pub use hbase_znodes::HBaseZnodes;
pub use kept::{Damaged, Kept, ToKeep};
pub use server::{Endpoint, EndpointOptions};
pub use state::TreeHandle;
pub use store::ZnodeStore;
pub use tree::{CreateMode, KeptNode, Stat, Tree, TreeError};

/// Longest frame in either direction (`jute.maxbuffer`).
pub const MAX_FRAME_BYTES: usize = 1 << 20;
