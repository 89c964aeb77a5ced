pub(crate) mod block_reader;
pub(crate) mod block_writer;
pub(crate) mod connection;
pub(crate) mod crypto;
#[cfg(any(test, feature = "fake"))]
// The tests of this crate use more of it than others'.
#[cfg_attr(not(test), allow(dead_code))]
pub mod fake_datanode;
pub(crate) mod hedged_read;
pub(crate) mod protocol;
pub(crate) mod proxy;
pub(crate) mod replace_datanode;
pub(crate) mod silent_datanodes;
