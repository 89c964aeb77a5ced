//! The region servers by name, and where hbase:meta is.

use crate::HostError;
use crate::host::RegionHost;
use balancer::placement;
use model::ServerName;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// What remains to be done of a server that crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeadServer {
    /// Its logs hold edits of regions.
    LogsToSplit,
    /// Its logs are split.
    Recovered,
}

/// Where a region is to be opened.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'a> {
    /// On one of these only, where there are any.
    pub among: Option<&'a BTreeSet<ServerName>>,
    /// On this one, if it may be.
    pub wanted: Option<&'a ServerName>,
    /// On this one only if there is no other: it could not be opened there just now.
    pub avoid: Option<&'a ServerName>,
    /// These have other replicas of it: on none of them, on none of their machines and in none of their racks, if there is another. Follows:
    /// `BalancerClusterState#wouldLowerAvailability`.
    pub apart: &'a [ServerName],
}

/// The region servers that are online, and those that were. Follows: `ServerManager`, `DeadServer`.
pub(crate) struct Servers {
    online: RwLock<BTreeMap<ServerName, Arc<dyn RegionHost>>>,
    dead: RwLock<BTreeMap<ServerName, DeadServer>>,
    /// Servers that get no regions.
    draining: RwLock<BTreeSet<ServerName>>,
    meta_location: RwLock<Option<ServerName>>,
    /// The place of hbase:meta was set.
    pub meta_moved: Notify,
    /// How often a server was chosen for a region.
    placements: AtomicU64,
    /// Whether one of another process was ever there.
    are_remote: AtomicBool,
}

impl Servers {
    pub fn new(hosts: Vec<Arc<dyn RegionHost>>) -> Servers {
        let are_remote = AtomicBool::new(hosts.iter().any(|host| host.is_remote()));
        let online = hosts.into_iter().map(|host| (host.server_name(), host)).collect();
        Servers {
            are_remote,
            online: RwLock::new(online),
            dead: RwLock::default(),
            draining: RwLock::default(),
            meta_location: RwLock::new(None),
            meta_moved: Notify::new(),
            placements: AtomicU64::new(0),
        }
    }

    /// Another server takes regions from now on. Nothing happens where it is known to be dead.
    pub fn add(&self, host: Arc<dyn RegionHost>) -> bool {
        let dead = self.dead.read();
        let name = host.server_name();
        if host.is_remote() {
            self.are_remote.store(true, Ordering::Relaxed);
        }
        !dead.contains_key(&name) && self.online.write().insert(name, host).is_none()
    }

    /// Whether hbase:meta must say where a region is on its way to: its server lives on when this process ends. That stays so when the last of
    /// them is dead: others come.
    pub fn are_remote(&self) -> bool {
        self.are_remote.load(Ordering::Relaxed)
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

    /// A server has crashed: nothing is asked of it any more, and no region that it had is opened before its logs are
    /// split.
    pub fn set_crashed(&self, name: &ServerName) {
        let host = {
            let mut dead = self.dead.write();
            dead.insert(name.clone(), DeadServer::LogsToSplit);
            self.online.write().remove(name)
        };
        if let Some(host) = host {
            host.died();
        }
    }

    /// The logs of a crashed server are split.
    pub fn set_recovered(&self, name: &ServerName) {
        self.dead.write().insert(name.clone(), DeadServer::Recovered);
    }

    /// Whether a crashed server's logs may hold edits that no region has.
    pub fn has_logs_to_split(&self, name: &ServerName) -> bool {
        self.dead.read().get(name) == Some(&DeadServer::LogsToSplit)
    }

    /// Servers that crashed.
    pub fn dead(&self) -> Vec<ServerName> {
        self.dead.read().keys().cloned().collect()
    }

    /// Forgets servers that crashed and of which nothing remains to be done; answers those that stay.
    pub fn clear_dead(&self, names: Vec<ServerName>) -> Vec<ServerName> {
        let mut dead = self.dead.write();
        let stays = |name: &ServerName| match dead.get(name) {
            Some(DeadServer::Recovered) => dead.remove(name).is_none(),
            _ => true,
        };
        let mut stays = stays;
        names.into_iter().filter(|name| stays(name)).collect()
    }

    /// Servers that regions may be opened on, in the order of their names.
    pub fn assignable(&self) -> Vec<ServerName> {
        let draining = self.draining.read();
        self.online.read().keys().filter(|name| !draining.contains(name)).cloned().collect()
    }

    /// Servers that get no regions.
    pub fn draining(&self) -> Vec<ServerName> {
        self.draining.read().iter().cloned().collect()
    }

    /// A server gets no regions from now on, or gets some again. Answers whether that is new.
    pub fn set_draining(&self, name: &ServerName, draining: bool) -> bool {
        let mut names = self.draining.write();
        if draining { names.insert(name.clone()) } else { names.remove(name) }
    }

    /// How often a server was chosen for a region.
    pub fn placements(&self) -> u64 {
        self.placements.load(Ordering::Relaxed)
    }

    /// Where to open a region: on `wanted`, or the one that has its address since that was started anew, if that server is online and not
    /// draining, else on the one that `load` says has the least. When all are draining, on any of them: better there than nowhere. On `avoid`, where it could not be opened just now,
    /// only if there is no other.
    ///
    /// # Errors
    /// No server is online.
    pub fn choose(
        &self,
        wanted: Option<&ServerName>,
        avoid: Option<&ServerName>,
        load: impl Fn(&ServerName) -> usize,
    ) -> Result<Arc<dyn RegionHost>, HostError> {
        self.choose_among(None, wanted, avoid, load)
    }

    /// The same among these servers only, where there are any.
    ///
    /// # Errors
    /// None of them is online.
    pub fn choose_among(
        &self,
        among: Option<&BTreeSet<ServerName>>,
        wanted: Option<&ServerName>,
        avoid: Option<&ServerName>,
        load: impl Fn(&ServerName) -> usize,
    ) -> Result<Arc<dyn RegionHost>, HostError> {
        self.choose_by(Wish { among, wanted, avoid, apart: &[] }, load, |_| Arc::from(""))
    }

    /// The same for a region that has read replicas, or is one; `rack` is in which a server's machine stands.
    ///
    /// # Errors
    /// None of them is online.
    pub fn choose_by(
        &self,
        Wish { among, wanted, avoid, apart }: Wish<'_>,
        load: impl Fn(&ServerName) -> usize,
        rack: impl Fn(&ServerName) -> Arc<str>,
    ) -> Result<Arc<dyn RegionHost>, HostError> {
        let racks: BTreeSet<Arc<str>> = apart.iter().map(&rack).collect();
        let shares_rack = |name: &ServerName| !racks.is_empty() && racks.contains(&rack(name));
        let shares_server = |name: &ServerName| apart.contains(name);
        let shares_machine = |name: &ServerName| apart.iter().any(|other| other.host == name.host);
        let may = |name: &ServerName| among.is_none_or(|among| among.contains(name));
        let draining = self.draining.read();
        let online = self.online.read();
        self.placements.fetch_add(1, Ordering::Relaxed);
        let wanted = wanted.and_then(|name| placement::retained(name, online.keys()));
        let wanted = wanted.filter(|name| Some(*name) != avoid && !draining.contains(name) && may(name));
        let host = wanted.and_then(|name| online.get(name));
        let least = || {
            let candidates = online.iter().filter(|(name, _)| may(name));
            let by_load = candidates.min_by_key(|(name, _)| {
                let is_bad = (Some(*name) == avoid, draining.contains(*name));
                (is_bad, shares_server(name), shares_machine(name), shares_rack(name), load(name))
            });
            by_load.map(|(_, host)| host)
        };
        let nobody =
            if among.is_some() { "no region server of its group is online" } else { "no region server is online" };
        host.or_else(least).cloned().ok_or_else(|| HostError::Failed(nobody.into()))
    }

    /// hbase:meta is there from now on.
    pub fn set_meta_location(&self, name: ServerName) {
        *self.meta_location.write() = Some(name);
        self.meta_moved.notify_one();
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
