//! What each user's clients read and write, and how long it took (`hbase.regionserver.user.metrics.enabled`), for load reports and metrics.
//!
//! Always true: a client is looked up once for each of its connections; what it reads is counted where its calls run, as regions count it. At
//! most [`MOST_CLIENTS`] are remembered: those that left and asked for least make room, and while all are connected a further one is not
//! counted. Times are measured for as many users as the ledger has room for; users all of whose clients left make room for others. Follows:
//! `MetricsUserAggregateImpl`, `MetricsUserSourceImpl`, which forget rare users instead.

use crate::operations::Operation;
use base::{Holder, Ledger};
use hfile::BlockReads;
use parking_lot::Mutex;
use proto::pb;
use rpc::{Call, CallReads, ClientLoad, UserLoad};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clients that are remembered, over all users.
const MOST_CLIENTS: usize = 4096;

/// Name of a client's host, by the name of its user.
type Clients = BTreeMap<(Arc<str>, String), Arc<ClientLoad>>;

/// Where [`UserLoad::times`] has what, under the name of its metric. Nobody replays edits of other clusters or replicas yet.
pub(crate) const TIMES: [(&str, Option<Operation>); UserLoad::KINDS] = [
    ("get", Some(Operation::Get)),
    ("scanTime", Some(Operation::ScanTime)),
    ("put", Some(Operation::Put)),
    ("delete", Some(Operation::Delete)),
    ("increment", Some(Operation::Increment)),
    ("append", Some(Operation::Append)),
    ("replay", None),
];

/// Counts for the client's user so many operations that have ended and took so long each, if he is measured and that is measured of him.
#[inline]
pub(crate) fn timed(load: Option<&Arc<ClientLoad>>, operation: Operation, took_us: u64, times: u64) {
    let Some(user) = load.and_then(|load| load.user.as_ref()) else { return };
    if let Some(at) = TIMES.iter().position(|(_, measured)| *measured == Some(operation)) {
        user.times[at].record_many(took_us, times);
    }
}

/// The counts of all clients.
pub(crate) struct Users {
    /// `None`: nothing is counted.
    clients: Option<Mutex<Clients>>,
    ledger: Arc<Ledger>,
}

impl Users {
    pub fn new(is_counting: bool, ledger: &Arc<Ledger>) -> Users {
        Users { clients: is_counting.then(Mutex::default), ledger: Arc::clone(ledger) }
    }

    /// Where what the call's client does is counted, if it is.
    pub fn load_of<'a>(&self, call: &'a Call) -> Option<&'a Arc<ClientLoad>> {
        let clients = self.clients.as_ref()?;
        match call.conn.load.get() {
            Some(load) => Some(load),
            None => {
                let load = enter(&mut clients.lock(), &self.ledger, &call.conn.user, host_of(call))?;
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

    /// Each user who is measured, by name.
    pub fn measured(&self) -> Vec<(Arc<str>, Arc<UserLoad>)> {
        let Some(clients) = &self.clients else { return Vec::new() };
        let clients = clients.lock();
        let mut users: Vec<(Arc<str>, Arc<UserLoad>)> =
            clients.iter().filter_map(|((user, _), load)| Some((user.clone(), load.user.clone()?))).collect();
        users.dedup_by(|one, other| one.0 == other.0);
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

fn enter(clients: &mut Clients, ledger: &Arc<Ledger>, user: &Arc<str>, host: String) -> Option<Arc<ClientLoad>> {
    let key = (user.clone(), host);
    if let Some(load) = clients.get(&key) {
        return Some(load.clone());
    }
    if clients.len() >= MOST_CLIENTS {
        let left = clients.iter().filter(|(_, load)| Arc::strong_count(load) == 1);
        let least = left.min_by_key(|(_, load)| asked(load)).map(|(key, _)| key.clone())?;
        clients.remove(&least);
    }
    let load = Arc::new(ClientLoad { user: measure(clients, ledger, user), ..ClientLoad::default() });
    Some(clients.entry(key).or_insert(load).clone())
}

/// What is measured of a user: that of his other clients, or new where there is room.
fn measure(clients: &mut Clients, ledger: &Arc<Ledger>, user: &Arc<str>) -> Option<Arc<UserLoad>> {
    if let Some(other) = of_user(clients, user).next() {
        return other.user.clone();
    }
    loop {
        if let Some(charge) = ledger.try_charge(Holder::Users, UserLoad::BYTES) {
            return Some(Arc::new(UserLoad::new(charge)));
        }
        // Of the users who left, the one who asked for least.
        let mut left: BTreeMap<&Arc<str>, Option<u64>> = BTreeMap::new();
        for ((user, _), load) in clients.iter() {
            let asked = (Arc::strong_count(load) == 1).then(|| asked(load));
            let sum = left.entry(user).or_insert(Some(0));
            *sum = sum.zip(asked).map(|(sum, asked)| sum + asked);
        }
        let is_measured = |user: &Arc<str>| of_user(clients, user).any(|load| load.user.is_some());
        let left = left.into_iter().filter_map(|(user, asked)| Some((user, asked?)));
        let least = left.filter(|(user, _)| is_measured(user)).min_by_key(|(_, asked)| *asked)?.0.clone();
        clients.retain(|(user, _), _| *user != least);
    }
}

fn of_user<'a>(clients: &'a Clients, user: &'a Arc<str>) -> impl Iterator<Item = &'a Arc<ClientLoad>> {
    let from = (user.clone(), String::new());
    clients.range(from..).take_while(move |((of, _), _)| of == user).map(|(_, load)| load)
}

fn asked(load: &ClientLoad) -> u64 {
    load.reads.sum() + load.writes.sum()
}

/// Counts for a client what this thread reads of regions while it lives.
pub(crate) struct CountedReads<'a> {
    load: Option<&'a ClientLoad>,
    before: BlockReads,
}

impl<'a> CountedReads<'a> {
    pub fn begin(load: Option<&'a Arc<ClientLoad>>) -> CountedReads<'a> {
        CountedReads { load: load.map(|load| &**load), before: BlockReads::of_thread() }
    }

    /// Counts them. What they were is for whoever is told of the call's answer.
    pub fn end(self) -> CallReads {
        let read = BlockReads::of_thread().since(self.before);
        CallReads { block_bytes_scanned: read.scanned_bytes, fs_read_us: read.file_us }
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
        if let Some(user) = load.user.as_ref().filter(|_| read.scanned_bytes > 0) {
            user.block_bytes.add(read.scanned_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_left_make_room_for_new_ones_and_connected_ones_do_not() {
        let (mut clients, ledger) = (Clients::new(), Ledger::new(0));
        let user: Arc<str> = "u".into();
        let enter = |clients: &mut Clients, user: &Arc<str>, host| super::enter(clients, &ledger, user, host);
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

    #[test]
    fn users_who_left_make_room_for_measuring_others_and_connected_ones_do_not() {
        let (mut clients, ledger) = (Clients::new(), Ledger::new(u64::MAX));
        ledger.set_share(Holder::Users, base::Share::fixed(UserLoad::BYTES * 2));
        let (one, two, three): (Arc<str>, Arc<str>, Arc<str>) = ("one".into(), "two".into(), "three".into());
        let mut enter =
            |user: &Arc<str>, host: &str| super::enter(&mut clients, &ledger, user, host.into()).expect("room");
        let [first, again, second] = [enter(&one, "a"), enter(&one, "b"), enter(&two, "a")];
        let measured = |load: &ClientLoad| load.user.clone().expect("measured");
        assert!(!Arc::ptr_eq(&measured(&first), &measured(&second)));
        assert!(Arc::ptr_eq(&measured(&first), &measured(&again)), "a user is measured over all clients");
        assert!(enter(&three, "a").user.is_none(), "there is no room, and it is counted all the same");
        drop((first, second));
        assert!(enter(&three, "b").user.is_none(), "what was not measured stays so while it is remembered");
        let four: Arc<str> = "four".into();
        assert!(enter(&four, "a").user.is_some(), "two has left, and one of the other's clients has not");
        assert!(again.user.is_some() && clients.contains_key(&(one, "a".into())));
        assert!(!clients.contains_key(&(two, "a".into())));
        assert_eq!(ledger.held_bytes(Holder::Users), UserLoad::BYTES * 2);
    }
}
