//! `host,port,startcode`: one life of one server.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A server between its start and its end. Another start code is another server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName {
    /// Host name, lower case.
    pub host: Arc<str>,
    /// RPC port.
    pub port: u16,
    /// Milliseconds since the epoch at which it started.
    pub start_code: u64,
}

impl ServerName {
    /// The server with these parts.
    pub fn new(host: &str, port: u16, start_code: u64) -> ServerName {
        ServerName { host: Arc::from(host.to_lowercase()), port, start_code }
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.host, self.port, self.start_code)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ServerName {
    type Err = crate::NameError;

    fn from_str(text: &str) -> Result<ServerName, crate::NameError> {
        let bad = || crate::NameError(format!("{text:?} is not a server name: it must read host,port,startcode"));
        let mut parts = text.split(',');
        let (Some(host), Some(port), Some(start), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        Ok(ServerName::new(host, port.parse().map_err(|_| bad())?, start.parse().map_err(|_| bad())?))
    }
}
