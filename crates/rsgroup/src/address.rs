//! A server without the time at which it started: groups keep servers over their restarts.

use model::ServerName;
use std::fmt;
use std::sync::Arc;

/// Host and port. Ordered as HBase's `Address`, by host and then by port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Host name, lower case.
    pub host: Arc<str>,
    /// RPC port.
    pub port: u16,
}

impl Address {
    /// The server at this host and port.
    pub fn new(host: &str, port: u16) -> Address {
        Address { host: Arc::from(host.to_lowercase()), port }
    }
}

impl From<&ServerName> for Address {
    fn from(server: &ServerName) -> Address {
        Address { host: Arc::clone(&server.host), port: server.port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
