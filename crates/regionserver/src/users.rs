//! What each user's clients read and write (`hbase.regionserver.user.metrics.enabled`), for load reports and metrics.
//!
//! Always true: a client is looked up once for each of its connections; what it reads is counted where its calls run, as regions count it. At
//! most [`MOST_CLIENTS`] are remembered: those that left and asked for least make room, and while all are connected a further one is not
//! counted. Follows: `MetricsUserAggregateImpl`, `MetricsUserSourceImpl`, which forget rare users instead.

use hfile::BlockReads;
use parking_lot::Mutex;
use proto::pb;
use rpc::{Call, ClientLoad};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clients that are remembered, over all users.
const MOST_CLIENTS: usize = 4096;

/// Name of a client's host, by the name of its user.
type Clients = BTreeMap<(Arc<str>, String), Arc<ClientLoad>>;

/// The counts of all clients.
#[derive(Default)]
pub(crate) struct Users {
    /// `None`: nothing is counted.
    clients: Option<Mutex<Clients>>,
}

impl Users {
    pub fn new(is_counting: bool) -> Users {
        Users { clients: is_counting.then(Mutex::default) }
    }

    /// Where what the call's client does is counted, if it is.
    pub fn load_of<'a>(&self, call: &'a Call) -> Option<&'a Arc<ClientLoad>> {
        let clients = self.clients.as_ref()?;
        match call.conn.load.get() {
            Some(load) => Some(load),
            None => {
                let load = enter(&mut clients.lock(), &call.conn.user, host_of(call))?;
                Some(call.conn.load.get_or_init(|| load))
            }
        }
    }

    /// Each user with what his clients did.
    pub fn loads(&self) -> Vec<pb::UserLoad> {
        let mut users: Vec<pb::UserLoad> = Vec::new();
        let Some(clients) = &self.clients else { return users };
        for ((user, host), load) in &*clients.lock() {
            let metrics = pb::ClientMetrics {
                host_name: host.clone(),
                read_requests_count: Some(load.reads.sum()),
                write_requests_count: Some(load.writes.sum()),
                filtered_requests_count: Some(load.filtered_reads.sum()),
            };
            match users.last_mut().filter(|last| *last.user_name == **user) {
                Some(last) => last.client_metrics.push(metrics),
                None => users.push(pb::UserLoad { user_name: user.to_string(), client_metrics: vec![metrics] }),
            }
        }
        users
    }

    /// How many users there are; `None` when they are not counted.
    pub fn count(&self) -> Option<u64> {
        let clients = self.clients.as_ref()?.lock();
        let mut users: Vec<&Arc<str>> = clients.keys().map(|(user, _)| user).collect();
        users.dedup();
        Some(users.len() as u64)
    }
}

/// The name of a client's host: nobody is asked for names, so it is the address, but for this machine's own.
fn host_of(call: &Call) -> String {
    let ip = call.conn.peer.ip().to_canonical();
    if ip.is_loopback() { "localhost".to_owned() } else { ip.to_string() }
}

fn enter(clients: &mut Clients, user: &Arc<str>, host: String) -> Option<Arc<ClientLoad>> {
    let key = (user.clone(), host);
    if let Some(load) = clients.get(&key) {
        return Some(load.clone());
    }
    if clients.len() >= MOST_CLIENTS {
        let asked = |load: &ClientLoad| load.reads.sum() + load.writes.sum();
        let left = clients.iter().filter(|(_, load)| Arc::strong_count(load) == 1);
        let least = left.min_by_key(|(_, load)| asked(load)).map(|(key, _)| key.clone())?;
        clients.remove(&least);
    }
    Some(clients.entry(key).or_default().clone())
}

/// Counts for a client what this thread reads of regions while it lives.
pub(crate) struct CountedReads<'a> {
    load: Option<&'a ClientLoad>,
    before: BlockReads,
}

impl<'a> CountedReads<'a> {
    pub fn begin(load: Option<&'a Arc<ClientLoad>>) -> CountedReads<'a> {
        let before = if load.is_some() { BlockReads::of_thread() } else { BlockReads::default() };
        CountedReads { load: load.map(|load| &**load), before }
    }
}

impl Drop for CountedReads<'_> {
    fn drop(&mut self) {
        let Some(load) = self.load else { return };
        let read = BlockReads::of_thread().since(self.before);
        if read.rows > 0 {
            load.reads.add(read.rows);
        }
        if read.filtered_rows > 0 {
            load.filtered_reads.add(read.filtered_rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_left_make_room_for_new_ones_and_connected_ones_do_not() {
        let mut clients = Clients::new();
        let user: Arc<str> = "u".into();
        let connected: Vec<_> = (0..MOST_CLIENTS).map(|n| enter(&mut clients, &user, n.to_string())).collect();
        assert!(connected.iter().all(Option::is_some));
        assert!(enter(&mut clients, &user, "late".into()).is_none(), "all are connected");
        for (n, load) in connected.iter().flatten().enumerate() {
            load.writes.add(if n == 7 { 1 } else { 2 });
        }
        drop(connected);
        assert!(enter(&mut clients, &user, "late".into()).is_some());
        assert_eq!(clients.len(), MOST_CLIENTS);
        assert!(!clients.contains_key(&(user.clone(), "7".into())), "that one asked for least");
        assert!(Arc::ptr_eq(
            &enter(&mut clients, &user, "late".into()).expect("there"),
            &clients[&(user.clone(), "late".to_owned())]
        ));
    }
}
