//! On which machines the files of regions lie, and in which racks machines stand: what the balancer leaves regions where they are for, and
//! brings them together with their files.
//!
//! Always true:
//!  1. One look at a time, away from the workers, [`PIECE`] regions a turn; a run of the balancer waits for it for [`WAIT_AT_MOST`] at most and
//!     goes by what is known then.
//!  2. What is known of a region stays until something newer is: a file system that does not answer makes nothing unknown. A region that cannot
//!     be looked at keeps no other from it: it comes last from then on.
//!  3. Nothing is looked at where no plan could differ by it: on a volume that names no machines, with all servers on one, or without weight.
//!
//! Servers report how much of a region is on their own machine, and no more: so the master looks for itself. Follows: `RegionLocationFinder`,
//! `RackManager`.

use crate::cluster::RegionState;
use crate::host::BoxFuture;
use crate::master::Master;
use balancer::{Algorithm, Function};
use fs::{BlockHosts, LOCALHOST, Volume};
use model::{RegionInfo, ServerName, TableDescriptor};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Machines of which nobody says where they stand. Follows: `NetworkTopology#DEFAULT_RACK`.
pub const DEFAULT_RACK: &str = "/default-rack";
/// Machines of which it should be said, and was not. Follows: `RackManager#UNKNOWN_RACK`.
const UNKNOWN_RACK: &str = "Unknown Rack";
/// Regions that are looked at before the master may stop, or others get the thread.
const PIECE: usize = 64;
/// A run of the balancer waits so long for what is not known yet. HBase's waits for all of it.
const WAIT_AT_MOST: Duration = Duration::from_secs(20);
/// What is older is looked at again: half of the time for which HBase believes it, after which that looks at all.
const STALE_US: u64 = 2 * 60 * 60 * 1_000_000;
/// So many failures one after the other are the file system's, and it is left alone until the next look.
const FAILURES_AT_MOST: usize = 3;
/// A report that differs by less tells nothing. Follows: `RegionLocationFinder#EPSILON`.
const EPSILON: f32 = 0.0001;

/// Says in which racks machines stand. Follows: `DNSToSwitchMapping`.
pub trait RackMapping: Send + Sync {
    /// The rack of each of `hosts`; `None` when it could not be found out now, which has been told in the log. Answers are kept: it is asked
    /// once for each machine.
    fn racks(&self, hosts: Vec<String>) -> BoxFuture<'_, Option<Vec<String>>>;
}

/// All machines in [`DEFAULT_RACK`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OneRack;

impl RackMapping for OneRack {
    fn racks(&self, hosts: Vec<String>) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(std::future::ready(Some(vec![DEFAULT_RACK.to_owned(); hosts.len()])))
    }
}

/// What is known of places.
pub(crate) struct Localities {
    blocks: Mutex<Blocks>,
    racks: Mutex<HashMap<String, Arc<str>>>,
    mapping: Arc<dyn RackMapping>,
    /// Held by a look.
    looking: tokio::sync::Mutex<()>,
    /// Held by who asks for racks.
    asking: tokio::sync::Mutex<()>,
}

/// Memory: some 30 bytes a region and machine.
#[derive(Default)]
struct Blocks {
    /// The names of machines, each once.
    names: HashSet<Arc<str>>,
    /// By encoded name.
    regions: HashMap<Arc<str>, Known>,
    /// Those that could not be looked at last time.
    failed: HashSet<Arc<str>>,
}

struct Known {
    hosts: Box<[(Arc<str>, u64)]>,
    total_bytes: u64,
    looked_us: u64,
    /// What its server said then.
    reported: Option<Reported>,
}

/// How much of a region its server says to have on its machine.
#[derive(Clone, Debug, PartialEq)]
struct Reported {
    server: ServerName,
    part: f32,
}

/// A region to look at.
struct Wanted {
    info: RegionInfo,
    table: Arc<TableDescriptor>,
    reported: Option<Reported>,
}

/// Servers by their machine, as numbers in a list.
pub(crate) struct Places {
    by_host: HashMap<Arc<str>, Vec<usize>>,
    /// The machine of this master.
    own_host: Arc<str>,
}

impl Places {
    pub fn new(servers: &[ServerName], master: &ServerName) -> Places {
        let mut by_host: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (number, server) in servers.iter().enumerate() {
            by_host.entry(Arc::clone(&server.host)).or_default().push(number);
        }
        Places { by_host, own_host: Arc::clone(&master.host) }
    }

    fn on(&self, host: &str) -> &[usize] {
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }
}

impl Blocks {
    fn note(&mut self, name: &Arc<str>, found: &BlockHosts, looked_us: u64, reported: Option<Reported>) {
        let names = &mut self.names;
        let mut shared = |host: &str| match names.get(host) {
            Some(known) => Arc::clone(known),
            None => {
                let name: Arc<str> = host.into();
                names.insert(Arc::clone(&name));
                name
            }
        };
        let hosts = found.hosts().map(|(host, bytes)| (shared(host), bytes.bytes)).collect();
        let known = Known { hosts, total_bytes: found.total_bytes(), looked_us, reported };
        self.failed.remove(name);
        self.regions.insert(Arc::clone(name), known);
    }

    /// Which part of a region's files lies on the machines of servers. Where the file system knows this machine as `localhost` alone, that is
    /// the master's. Follows: `HDFSBlocksDistribution#getBlockLocalityIndex`.
    fn parts(&self, region: &str, places: &Places) -> Vec<(usize, f32)> {
        let Some(known) = self.regions.get(region).filter(|known| known.total_bytes > 0) else { return Vec::new() };
        let has = |wanted: &str| known.hosts.iter().any(|(host, _)| **host == *wanted);
        let mut parts = Vec::new();
        for (host, bytes) in &known.hosts {
            let is_own = **host == *LOCALHOST && places.on(LOCALHOST).is_empty() && !has(&places.own_host);
            let servers = places.on(if is_own { &places.own_host } else { host });
            let part = *bytes as f32 / known.total_bytes as f32;
            parts.extend(servers.iter().map(|server| (*server, part)));
        }
        parts.sort_unstable_by_key(|(server, _)| *server);
        parts
    }
}

impl Localities {
    pub(crate) fn new(mapping: Arc<dyn RackMapping>) -> Localities {
        Localities {
            blocks: Mutex::default(),
            racks: Mutex::default(),
            mapping,
            looking: tokio::sync::Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The rack of a machine, as far as is known.
    pub(crate) fn rack(&self, host: &str) -> Arc<str> {
        self.racks.lock().get(host).cloned().unwrap_or_else(|| UNKNOWN_RACK.into())
    }

    /// Which part of the files of a region, by its encoded name, lies on the machines of which servers, as far as is known.
    pub(crate) fn parts(&self, region: &str, places: &Places) -> Vec<(usize, f32)> {
        self.blocks.lock().parts(region, places)
    }

    /// Asks for the racks of machines that are new.
    pub(crate) async fn find_racks(&self, servers: &[ServerName]) {
        let _one_at_a_time = self.asking.lock().await;
        let new: BTreeSet<String> = {
            let racks = self.racks.lock();
            let hosts = servers.iter().map(|server| server.host.to_string());
            hosts.filter(|host| !racks.contains_key(host)).collect()
        };
        if new.is_empty() {
            return;
        }
        let hosts: Vec<String> = new.into_iter().collect();
        if let Some(found) = self.mapping.racks(hosts.clone()).await {
            self.racks.lock().extend(hosts.into_iter().zip(found.into_iter().map(Arc::from)));
        }
    }
}

/// Looks at what is new, has changed or was looked at long ago, and waits for it only so long.
pub(crate) async fn refresh_soon(master: &Arc<Master>) {
    if tokio::time::timeout(WAIT_AT_MOST, refresh(master)).await.is_err() {
        tracing::info!(
            "the balancer does not wait longer to learn where the files of all regions are: it goes by those that it knows"
        );
    }
}

/// Looks at what is new, has changed or was looked at long ago. Cost: what [`rootdir::store_file::block_hosts`] says, for each such region, one
/// after the other.
pub(crate) async fn refresh(master: &Arc<Master>) {
    let localities = &master.localities;
    let _one_at_a_time = localities.looking.lock().await;
    let servers = master.servers.names();
    localities.find_racks(&servers).await;
    if !is_of_use(master, &servers) {
        *localities.blocks.lock() = Blocks::default();
        return;
    }
    let (mut wanted, mut in_a_row) = (due(master), 0);
    while !wanted.is_empty() && in_a_row < FAILURES_AT_MOST && !master.is_stopping() {
        let piece = wanted.split_off(wanted.len().saturating_sub(PIECE));
        let looked_us = master.clock.monotonic_us();
        let look = master.files.run(move |volume| Ok(look(volume, piece, in_a_row)));
        let looks = match look.await {
            Ok(looks) => looks,
            Err(error) => {
                if !error.is_stopped() {
                    tracing::error!(%error, "getting the block locations of regions failed inside; the balancer uses the locality that it knew before");
                }
                return;
            }
        };
        in_a_row = looks.in_a_row;
        if let Some((name, error)) = looks.failed.last() {
            let regions = looks.failed.len();
            tracing::warn!(
                region = %name,
                regions,
                %error,
                "cannot get the block locations of regions from the NameNode: the balancer uses the locality that it knew before, and asks again \
                 before its next run"
            );
        }
        let mut blocks = localities.blocks.lock();
        for (wanted, hosts) in looks.found {
            blocks.note(wanted.info.encoded_name(), &hosts, looked_us, wanted.reported);
        }
        blocks.failed.extend(looks.failed.into_iter().map(|(name, _)| name));
    }
}

/// Whether a plan of the balancer could differ by it.
fn is_of_use(master: &Master, servers: &[ServerName]) -> bool {
    let settings = &master.settings().balance;
    let weighs = |function| settings.multipliers.of(function) > 0.0;
    let hosts: BTreeSet<&str> = servers.iter().map(|server| &*server.host).collect();
    settings.use_locality
        && settings.algorithm == Algorithm::Stochastic
        && (weighs(Function::ServerLocality) || weighs(Function::RackLocality))
        && master.files.names_hosts()
        && hosts.len() > 1
}

/// Regions to look at, those last that are to come first: of which nothing is known, then those whose server reports another locality than
/// before, then the others that were looked at long ago. Forgets regions that are no more.
fn due(master: &Master) -> Vec<Wanted> {
    let mut reported = HashMap::new();
    for host in master.servers.all() {
        let server = host.server_name();
        for load in host.region_loads() {
            let told = Reported { server: server.clone(), part: load.locality.part() };
            reported.insert(load.encoded_name, told);
        }
    }
    let now_us = master.clock.monotonic_us();
    let (cluster, mut blocks) = (master.cluster.read(), master.localities.blocks.lock());
    let is_there = |name: &Arc<str>| cluster.region(name).is_some_and(|node| node.is_live());
    blocks.regions.retain(|name, _| is_there(name));
    blocks.failed.retain(is_there);
    let mut wanted = Vec::new();
    for node in cluster.regions().filter(|node| node.is_live() && node.state == RegionState::Open) {
        let name = node.info.encoded_name();
        let told = reported.remove(name);
        let turn = match blocks.regions.get(name) {
            None => (3, 0),
            Some(known) if has_changed(known.reported.as_ref(), told.as_ref()) => (2, 0),
            Some(known) if now_us.saturating_sub(known.looked_us) >= STALE_US => (1, u64::MAX - known.looked_us),
            Some(_) => continue,
        };
        let turn = if blocks.failed.contains(name) { (0, 0) } else { turn };
        let Some(table) = cluster.descriptor(&node.info.table) else { continue };
        wanted.push((turn, Wanted { info: node.info.clone(), table, reported: told }));
    }
    wanted.sort_by_key(|(turn, _)| *turn);
    wanted.into_iter().map(|(_, wanted)| wanted).collect()
}

/// Whether a report says that the files have changed: of another server, or of another part. Follows:
/// `RegionLocationFinder#refreshLocalityChangedRegions`.
fn has_changed(before: Option<&Reported>, now: Option<&Reported>) -> bool {
    match (before, now) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(now)) => before.server != now.server || (before.part - now.part).abs() > EPSILON,
    }
}

/// What came of some looks.
struct Looks {
    found: Vec<(Wanted, BlockHosts)>,
    failed: Vec<(Arc<str>, fs::Error)>,
    /// Failures since the last region that could be looked at.
    in_a_row: usize,
}

/// Looks at regions until too many have failed one after the other, `in_a_row` of them before.
fn look(volume: &dyn Volume, wanted: Vec<Wanted>, in_a_row: usize) -> Looks {
    let mut looks = Looks { found: Vec::with_capacity(wanted.len()), failed: Vec::new(), in_a_row };
    for wanted in wanted.into_iter().rev() {
        match hosts_of(volume, &wanted) {
            Ok(hosts) => {
                looks.found.push((wanted, hosts));
                looks.in_a_row = 0;
            }
            Err(error) => {
                looks.failed.push((Arc::clone(wanted.info.encoded_name()), error));
                looks.in_a_row += 1;
                if looks.in_a_row >= FAILURES_AT_MOST {
                    break;
                }
            }
        }
    }
    looks
}

fn hosts_of(volume: &dyn Volume, wanted: &Wanted) -> fs::Result<BlockHosts> {
    let mut all = BlockHosts::default();
    for family in wanted.table.families.keys() {
        all.add(&rootdir::store_file::block_hosts(volume, &wanted.info, family)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::Replica;

    fn blocks(hosts: &[(&str, u64)], total_bytes: u64) -> Blocks {
        let mut found = BlockHosts::default();
        for (host, bytes) in hosts {
            found.add_block(*bytes, [Replica { host, is_ssd: false }]);
        }
        let left = total_bytes - found.total_bytes();
        found.add_block(left, [Replica { host: "elsewhere", is_ssd: false }]);
        let mut blocks = Blocks::default();
        blocks.note(&"r".into(), &found, 0, None);
        blocks
    }

    #[test]
    fn every_server_of_a_machine_has_its_part() {
        let name = |host: &str, port| ServerName::new(host, port, 1);
        let servers = [name("A", 1), name("b", 1), name("a", 2), name("c", 1)];
        let places = Places::new(&servers, &name("b", 9));
        let known = blocks(&[("a", 25), ("c", 50)], 100);
        assert_eq!(known.parts("r", &places), [(0, 0.25), (2, 0.25), (3, 0.5)]);
        assert_eq!(known.parts("another", &places), []);
        assert_eq!(blocks(&[], 0).parts("r", &places), [], "a region without files");
    }

    #[test]
    fn what_is_on_localhost_is_on_the_masters_machine_where_no_server_is_called_so() {
        let name = |host: &str| ServerName::new(host, 1, 1);
        let servers = [name("a"), name("b")];
        let known = blocks(&[("localhost", 50)], 100);
        assert_eq!(known.parts("r", &Places::new(&servers, &name("b"))), [(1, 0.5)]);
        let servers = [name("localhost"), name("b")];
        assert_eq!(known.parts("r", &Places::new(&servers, &name("b"))), [(0, 0.5)]);
        let known = blocks(&[("localhost", 50), ("b", 20)], 100);
        assert_eq!(known.parts("r", &Places::new(&[name("a"), name("b")], &name("b"))), [(1, 0.2)]);
    }

    #[test]
    fn a_report_tells_by_its_server_and_its_part() {
        let told = |host: &str, part| Reported { server: ServerName::new(host, 1, 1), part };
        let (a, same, less) = (told("a", 0.5), told("a", 0.500_05), told("a", 0.4));
        assert!(!has_changed(Some(&a), Some(&same)) && has_changed(Some(&a), Some(&less)));
        assert!(has_changed(Some(&a), Some(&told("b", 0.5))) && has_changed(None, Some(&a)));
        assert!(!has_changed(Some(&a), None), "a server that did not report yet");
    }
}
