//! The connections to one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::Result;
use crate::channel::Channel;
use crate::options::Options;

/// A server by its address. Its connections are made when they are needed and made again when they have ended.
pub(crate) struct Server {
    /// `host:port`.
    pub(crate) address: Arc<str>,
    options: Arc<Options>,
    client: Channels,
    admin: Channels,
    master: Channels,
    hbck: Channels,
    lock: Channels,
}

/// The connections to one service.
struct Channels {
    service: &'static str,
    count: usize,
    open: RwLock<Vec<Option<Channel>>>,
    connecting: tokio::sync::Mutex<()>,
    turn: AtomicUsize,
}

impl Channels {
    fn new(service: &'static str, count: usize) -> Channels {
        let count = count.max(1);
        Channels {
            service,
            count,
            open: RwLock::new(vec![None; count]),
            connecting: tokio::sync::Mutex::new(()),
            turn: AtomicUsize::new(0),
        }
    }

    /// Whose turn it is.
    fn next_place(&self) -> usize {
        match self.count {
            1 => 0,
            count => self.turn.fetch_add(1, Ordering::Relaxed) % count,
        }
    }

    fn usable(&self, at: usize) -> Option<Channel> {
        self.open.read()[at].as_ref().filter(|channel| !channel.is_ended()).cloned()
    }

    async fn channel(&self, address: &Arc<str>, options: &Options) -> Result<Channel> {
        let at = self.next_place();
        if let Some(channel) = self.usable(at) {
            return Ok(channel);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(channel) = self.usable(at) {
            return Ok(channel);
        }
        let channel = Channel::connect(address.clone(), self.service, options).await?;
        self.open.write()[at] = Some(channel.clone());
        Ok(channel)
    }
}

impl Server {
    pub(crate) fn new(address: &str, options: Arc<Options>) -> Server {
        let count = options.connections_per_server;
        Server {
            address: Arc::from(address),
            client: Channels::new("ClientService", count),
            admin: Channels::new("AdminService", 1),
            master: Channels::new("MasterService", 1),
            hbck: Channels::new("HbckService", 1),
            lock: Channels::new("LockService", 1),
            options,
        }
    }

    /// A connection for gets, mutations and scans.
    pub(crate) async fn client(&self) -> Result<Channel> {
        self.client.channel(&self.address, &self.options).await
    }

    /// A connection for work on regions.
    pub(crate) async fn admin(&self) -> Result<Channel> {
        self.admin.channel(&self.address, &self.options).await
    }

    /// A connection to the master, when this is one.
    pub(crate) async fn master(&self) -> Result<Channel> {
        self.master.channel(&self.address, &self.options).await
    }

    /// A connection for repairs, when this is the master.
    pub(crate) async fn hbck(&self) -> Result<Channel> {
        self.hbck.channel(&self.address, &self.options).await
    }

    /// A connection for locks, when this is the master.
    pub(crate) async fn lock(&self) -> Result<Channel> {
        self.lock.channel(&self.address, &self.options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_turns_on_the_connections_that_a_service_has() {
        let options = Options { connections_per_server: 3, ..Options::rpc("localhost") };
        let server = Server::new("localhost:16020", Arc::new(options));
        let turns = |channels: &Channels| -> Vec<usize> { (0..6).map(|_| channels.next_place()).collect() };
        assert_eq!(turns(&server.client), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&server.admin), [0; 6]);
        assert_eq!(turns(&server.master), [0; 6]);
        assert!((0..6).all(|_| server.master.usable(server.master.next_place()).is_none()));
    }
}
