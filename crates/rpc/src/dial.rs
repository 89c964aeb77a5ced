//! How a connection to a server of a cluster is made, of which the host and the port are known.

use crate::client::{Client, ClientError, ClientOptions};
use crate::transport::Pipe;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

/// A connection that comes, or does not.
pub type Dialed<'a> = Pin<Box<dyn Future<Output = io::Result<Pipe>> + Send + 'a>>;

/// A network that is in memory: that of a simulated cluster.
pub trait Network: Send + Sync + 'static {
    /// Connects to the server at `host` and `port`.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> Dialed<'a>;
}

/// By which network servers are reached.
#[derive(Clone, Default)]
pub enum Dialer {
    /// TCP, with the machine's own resolution of names.
    #[default]
    Tcp,
    /// Another.
    Network(Arc<dyn Network>),
}

impl Dialer {
    /// Connects to `service` of the server at `host` and `port`.
    ///
    /// # Errors
    /// The name has no address, or nobody takes the connection. A service that the server refuses shows at the first call.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        service: &str,
        options: ClientOptions,
    ) -> Result<Client, ClientError> {
        match self {
            Dialer::Tcp => {
                let mut found = tokio::net::lookup_host((host, port)).await?;
                let none = || io::Error::other(format!("the name {host} has no address"));
                Client::connect(found.next().ok_or_else(none)?, service, options).await
            }
            Dialer::Network(network) => Client::over(network.dial(host, port).await?, service, options).await,
        }
    }
}
