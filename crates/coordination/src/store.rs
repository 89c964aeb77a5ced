//! Where HBase's nodes are written: the embedded tree, or an ensemble.

use crate::state::TreeHandle;
use crate::tree::TreeError;
use bytes::Bytes;

/// A tree of nodes that this process writes to. No call waits for a network: an implementation that has one sees to it later that the nodes
/// are as they were last told to be.
pub trait ZnodeStore: Send + Sync + 'static {
    /// The node has this value from now on; missing parents are made, empty. An `ephemeral` one goes with this process.
    ///
    /// # Errors
    /// A path that is none, a full tree.
    fn publish(&self, path: &str, value: Bytes, ephemeral: bool) -> Result<(), TreeError>;

    /// The node is there, with any value; missing parents too.
    ///
    /// # Errors
    /// As [`ZnodeStore::publish`].
    fn ensure(&self, path: &str) -> Result<(), TreeError>;

    /// The node is not there.
    ///
    /// # Errors
    /// It has children.
    fn delete(&self, path: &str) -> Result<(), TreeError>;
}

impl ZnodeStore for TreeHandle {
    fn publish(&self, path: &str, value: Bytes, ephemeral: bool) -> Result<(), TreeError> {
        TreeHandle::publish(self, path, value, ephemeral)
    }

    fn ensure(&self, path: &str) -> Result<(), TreeError> {
        TreeHandle::ensure(self, path)
    }

    fn delete(&self, path: &str) -> Result<(), TreeError> {
        TreeHandle::delete(self, path)
    }
}
