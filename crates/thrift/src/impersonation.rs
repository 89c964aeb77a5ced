//! Calls on behalf of others: the header `doAs` of a POST names a user, as whom the call is made where the gateway's own user may do so.
//!
//! Follows: `ThriftHttpServlet`, Hadoop's `DefaultImpersonationProvider`, `AccessControlList`, `MachineList`. Who sends the header is not known
//! (nobody is asked who he is): it is the gateway's user who impersonates, and the client's address that is looked at. Groups are those of this
//! machine's `/etc/group`.

use crate::settings;
use base::{Clock, Config};
use client::Connection;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Users whose connections are kept at a time: the one who was quiet for longest makes room.
const MAX_USERS: usize = 1000;
/// How long it holds that a user may be impersonated: as long as Hadoop keeps groups (`hadoop.security.groups.cache.secs`).
const ALLOWED_US: u64 = 300_000_000;

/// Who may be impersonated from where.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// `None`: nobody may be.
    allowed: Option<Allowed>,
    idle_us: u64,
}

#[derive(Debug, Clone)]
struct Allowed {
    /// The gateway's user.
    user: String,
    users: Names,
    groups: Names,
    hosts: Vec<Machine>,
}

/// Names, or all there are.
#[derive(Debug, Clone)]
enum Names {
    All,
    These(Vec<String>),
}

impl Names {
    fn parse(text: &str) -> Names {
        let names: Vec<String> = words(text).map(str::to_owned).collect();
        if names.iter().any(|name| name == "*") { Names::All } else { Names::These(names) }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::These(names) => names.iter().any(|one| one == name),
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Where a client may be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Machine {
    Any,
    /// Addresses that have so many first bits in common with this one.
    Network(IpAddr, u8),
}

impl Machine {
    /// `*`, an address, or `address/bits`.
    fn parse(text: &str) -> Option<Machine> {
        if text == "*" {
            return Some(Machine::Any);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = if address == "localhost" { [127, 0, 0, 1].into() } else { address.parse().ok()? };
        let most = if address.is_ipv4() { 32 } else { 128 };
        Some(Machine::Network(address, bits.unwrap_or(most))).filter(|_| bits.is_none_or(|bits| bits <= most))
    }

    fn has(&self, peer: IpAddr) -> bool {
        match (self, peer.to_canonical()) {
            (Machine::Any, _) => true,
            (Machine::Network(IpAddr::V4(own), bits), IpAddr::V4(peer)) => {
                (u32::from(*own) ^ u32::from(peer)).leading_zeros() >= u32::from(*bits)
            }
            (Machine::Network(IpAddr::V6(own), bits), IpAddr::V6(peer)) => {
                (u128::from(*own) ^ u128::from(peer)).leading_zeros() >= u32::from(*bits)
            }
            _ => false,
        }
    }
}

impl Rules {
    /// As `hbase.thrift.support.proxyuser` and the `hadoop.proxyuser.` keys of `user`, the gateway's, say.
    pub fn from_config(config: &Config, user: &str) -> Rules {
        let idle_us = config.get(&settings::CONNECTION_MAX_IDLE_MS).saturating_mul(1000);
        if !config.get(&settings::PROXY_USER) {
            return Rules { allowed: None, idle_us };
        }
        let text = |what: &str| config.text(&format!("hadoop.proxyuser.{user}.{what}")).unwrap_or_default();
        let machine = |word: &str| {
            let machine = Machine::parse(word);
            if machine.is_none() {
                tracing::warn!(
                    "hadoop.proxyuser.{user}.hosts: {word:?} is no address (names are not looked up): left out"
                );
            }
            machine
        };
        let hosts = words(text("hosts")).filter_map(machine).collect();
        let (users, groups) = (Names::parse(text("users")), Names::parse(text("groups")));
        Rules { allowed: Some(Allowed { user: user.to_owned(), users, groups, hosts }), idle_us }
    }

    /// Whether it takes the groups of `user` to say whether calls may be made as that user.
    fn needs_groups(&self, user: &str) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| {
            !allowed.users.has(user) && matches!(&allowed.groups, Names::These(names) if !names.is_empty())
        })
    }

    /// Whether calls of `peer` may be made as `user`, who is in `groups`.
    fn check(&self, user: &str, groups: &[String], peer: IpAddr) -> Result<(), String> {
        let Some(allowed) = &self.allowed else { return Err("Support for proxyuser is not configured".to_owned()) };
        let is_of_group = match &allowed.groups {
            Names::All => true,
            these => groups.iter().any(|group| these.has(group)),
        };
        if !allowed.users.has(user) && !is_of_group {
            return Err(format!("User: {} is not allowed to impersonate {user}", allowed.user));
        }
        self.check_host(peer)
    }

    /// Whether calls on behalf of others may come from `peer`.
    fn check_host(&self, peer: IpAddr) -> Result<(), String> {
        match &self.allowed {
            Some(allowed) if !allowed.hosts.iter().any(|machine| machine.has(peer)) => {
                Err(format!("Unauthorized connection for super-user: {} from IP {peer}", allowed.user))
            }
            _ => Ok(()),
        }
    }
}

/// The groups of `user` by the texts of `/etc/passwd` and `/etc/group`.
fn groups_of(user: &str, passwd: &str, group: &str) -> Vec<String> {
    let own = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(user)).then(|| fields.nth(2).map(str::to_owned)).flatten()
    });
    let of = |line: &str| {
        let mut fields = line.split(':');
        let (name, id, members) = (fields.next()?, fields.nth(1)?, fields.next().unwrap_or_default());
        let is_in = own.as_deref() == Some(id) || words(members).any(|member| member == user);
        is_in.then(|| name.to_owned())
    };
    group.lines().filter_map(of).collect()
}

#[allow(clippy::disallowed_methods, reason = "the system's files, not the volume's")]
fn groups_here(user: &str) -> Vec<String> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    groups_of(user, &read("/etc/passwd"), &read("/etc/group"))
}

/// The connections of users on whose behalf calls are made.
pub(crate) struct Impersonation {
    rules: Rules,
    own: Connection,
    users: Mutex<HashMap<String, Used>>,
    clock: Arc<dyn Clock>,
}

struct Used {
    connection: Connection,
    used_us: u64,
    /// When the rules were last asked.
    allowed_us: u64,
}

impl Impersonation {
    /// `own` is the gateway's connection: those of others go to the same cluster.
    pub(crate) fn new(rules: Rules, own: Connection, clock: Arc<dyn Clock>) -> Impersonation {
        Impersonation { rules, own, users: Mutex::default(), clock }
    }

    /// The connection over which calls of `peer` on behalf of `user` are made. Groups are looked up away from the threads that serve connections,
    /// and again after some minutes.
    ///
    /// # Errors
    /// They may not be, in HBase's words.
    pub(crate) async fn connection(&self, user: &str, peer: IpAddr) -> Result<Connection, String> {
        if let Some(connection) = self.known(user) {
            self.rules.check_host(peer)?;
            return Ok(connection);
        }
        let groups = match self.rules.needs_groups(user) {
            true => {
                let name = user.to_owned();
                let looked_up = tokio::task::spawn_blocking(move || groups_here(&name)).await;
                looked_up.map_err(|error| format!("the groups of {user} cannot be looked up: {error}"))?
            }
            false => Vec::new(),
        };
        self.rules.check(user, &groups, peer)?;
        Ok(self.keep(user))
    }

    /// The connection of a user about whom the rules were asked lately.
    fn known(&self, user: &str) -> Option<Connection> {
        let now_us = self.clock.monotonic_us();
        let mut users = self.users.lock();
        let used = users.get_mut(user).filter(|used| now_us.saturating_sub(used.allowed_us) <= ALLOWED_US)?;
        used.used_us = now_us;
        Some(used.connection.clone())
    }

    /// The connection of a user who may be impersonated now.
    fn keep(&self, user: &str) -> Connection {
        let now_us = self.clock.monotonic_us();
        let mut users = self.users.lock();
        if let Some(used) = users.get_mut(user) {
            (used.used_us, used.allowed_us) = (now_us, now_us);
            return used.connection.clone();
        }
        users.retain(|_, used| now_us.saturating_sub(used.used_us) <= self.rules.idle_us);
        if users.len() >= MAX_USERS
            && let Some(quiet) = users.iter().min_by_key(|(_, used)| used.used_us).map(|(name, _)| name.clone())
        {
            users.remove(&quiet);
        }
        let connection = self.own.as_user(user);
        users.insert(user.to_owned(), Used { connection: connection.clone(), used_us: now_us, allowed_us: now_us });
        connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;
    use client::Options;

    fn config(rows: &[(&str, &str)]) -> Config {
        let mut config = Config::default();
        rows.iter().for_each(|(key, value)| config.set(*key, *value));
        config
    }

    fn rules(rows: &[(&str, &str)]) -> Rules {
        let mut config = config(rows);
        config.set("hbase.thrift.support.proxyuser", "true");
        Rules::from_config(&config, "gateway")
    }

    fn asked(rules: &Rules, user: &str, peer: &str) -> Result<(), String> {
        rules.check(user, &["staff".to_owned()], peer.parse().expect("an address"))
    }

    #[test]
    fn users_groups_and_hosts_say_who_may_be_impersonated_from_where() {
        let off = Rules::from_config(&config(&[]), "gateway");
        assert_eq!(asked(&off, "ann", "127.0.0.1"), Err("Support for proxyuser is not configured".to_owned()));
        let nobody = "User: gateway is not allowed to impersonate ann".to_owned();
        assert_eq!(asked(&rules(&[]), "ann", "127.0.0.1"), Err(nobody.clone()));
        let (users, groups, hosts) =
            ("hadoop.proxyuser.gateway.users", "hadoop.proxyuser.gateway.groups", "hadoop.proxyuser.gateway.hosts");
        let elsewhere = "Unauthorized connection for super-user: gateway from IP 10.1.2.3".to_owned();
        let narrow = rules(&[(users, "bob, ann"), (hosts, "localhost,10.2.0.0/16")]);
        assert_eq!(asked(&narrow, "ann", "10.1.2.3"), Err(elsewhere));
        for peer in ["127.0.0.1", "10.2.9.9", "::ffff:10.2.0.1"] {
            assert_eq!(asked(&narrow, "ann", peer), Ok(()), "{peer}");
        }
        assert!(asked(&narrow, "eve", "127.0.0.1").is_err());
        assert_eq!(asked(&rules(&[(groups, "admins,staff"), (hosts, "*")]), "ann", "::1"), Ok(()));
        assert_eq!(asked(&rules(&[(groups, "admins"), (hosts, "*")]), "ann", "::1"), Err(nobody));
        assert_eq!(asked(&rules(&[(groups, "*"), (hosts, "::/0")]), "ann", "::1"), Ok(()));
        // The rules of another are not this gateway's.
        assert!(asked(&rules(&[("hadoop.proxyuser.other.users", "*")]), "ann", "::1").is_err());
    }

    #[test]
    fn what_is_no_network_is_left_out() {
        for text in ["10.0.0.0/33", "::/129", "10.0.0.0/x", "host.example", ""] {
            assert_eq!(Machine::parse(text), None, "{text}");
        }
        assert!(Machine::parse("0.0.0.0/0").is_some_and(|any| any.has([1, 2, 3, 4].into())));
    }

    #[test]
    fn groups_are_the_first_and_those_that_name_the_user() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:7:70::/:/bin/sh\n";
        let group = "root:x:0:\nstaff:x:50:bob,ann\npeople:x:70:\nothers:x:71:bob\nbroken";
        assert_eq!(groups_of("ann", passwd, group), ["staff", "people"]);
        assert!(groups_of("eve", passwd, group).is_empty());
    }

    #[tokio::test]
    async fn connections_of_quiet_users_are_given_up() {
        let clock = Arc::new(ManualClock::new(0));
        let rules = rules(&[("hadoop.proxyuser.gateway.users", "*"), ("hadoop.proxyuser.gateway.hosts", "*")]);
        let own = Connection::open(Options::rpc("localhost:1"));
        let all = Impersonation::new(rules, own, clock.clone());
        let peer = IpAddr::from([127, 0, 0, 1]);
        for n in 0..=MAX_USERS {
            let connection = all.connection(&format!("u{n}"), peer).await.expect("allowed");
            assert_eq!(connection.options().user, format!("u{n}"));
            clock.advance_ms(1);
        }
        assert_eq!(all.users.lock().len(), MAX_USERS);
        assert!(!all.users.lock().contains_key("u0"), "the one who was quiet for longest");
        clock.advance_ms(600_001);
        all.connection("late", peer).await.expect("allowed");
        assert_eq!(all.users.lock().len(), 1);
    }
}
