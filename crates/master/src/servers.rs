//! The region servers by name, and where hbase:meta is.

use crate::HostError;
use crate::host::RegionHost;
use model::ServerName;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The region servers that are online. Follows: `ServerManager`.
pub(crate) struct Servers {
    online: RwLock<BTreeMap<ServerName, Arc<dyn RegionHost>>>,
    meta_location: RwLock<Option<ServerName>>,
}

impl Servers {
    pub fn new(hosts: Vec<Arc<dyn RegionHost>>) -> Servers {
        let online = hosts.into_iter().map(|host| (host.server_name(), host)).collect();
        Servers { online: RwLock::new(online), meta_location: RwLock::new(None) }
    }

    /// Names of the servers that are online.
    pub fn names(&self) -> Vec<ServerName> {
        self.online.read().keys().cloned().collect()
    }

    /// The servers that are online.
    pub fn all(&self) -> Vec<Arc<dyn RegionHost>> {
        self.online.read().values().cloned().collect()
    }

    /// # Errors
    /// No server of that name is online.
    pub fn get(&self, name: &ServerName) -> Result<Arc<dyn RegionHost>, HostError> {
        let host = self.online.read().get(name).cloned();
        host.ok_or_else(|| HostError::Failed(format!("region server {name} is not online")))
    }

    /// Where to open a region: where it was last if that server is online, else on the server that `load` says has the least.
    ///
    /// # Errors
    /// No server is online.
    pub fn choose(
        &self,
        last: Option<&ServerName>,
        load: impl Fn(&ServerName) -> usize,
    ) -> Result<Arc<dyn RegionHost>, HostError> {
        let online = self.online.read();
        let host = last.and_then(|name| online.get(name));
        let host = host.or_else(|| online.iter().min_by_key(|(name, _)| load(name)).map(|(_, host)| host));
        host.cloned().ok_or_else(|| HostError::Failed("no region server is online".into()))
    }

    /// hbase:meta is there from now on.
    pub fn set_meta_location(&self, name: ServerName) {
        *self.meta_location.write() = Some(name);
    }

    /// Where hbase:meta is, once it was opened.
    pub fn meta_location(&self) -> Option<ServerName> {
        self.meta_location.read().clone()
    }

    /// The server that has hbase:meta.
    ///
    /// # Errors
    /// It is not open anywhere.
    pub fn meta_host(&self) -> Result<Arc<dyn RegionHost>, HostError> {
        let name = self.meta_location();
        self.get(&name.ok_or_else(|| HostError::Failed("hbase:meta is not open on any region server".into()))?)
    }
}
