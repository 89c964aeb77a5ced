//! Regions and servers: who is said to have what, and who has it.

use super::{Found, Kind, PATIENCE, Remedy, Tried, busy, list_of};
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::hbck;
use crate::host::RegionHost;
use crate::locks::Resource;
use crate::master::Master;
use crate::procedure::region_locks;
use crate::procedure::server::crash;
use crate::{ErrorKind, HostError, MasterError, Result};
use model::{RegionInfo, ServerName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn look(master: &Master, found: &mut Vec<Found>) {
    let deployed = hbck::deployed(master);
    unknown_servers(master, found);
    let held: BTreeSet<Resource> = master.procedures.locks.held().into_iter().map(|(resource, _)| resource).collect();
    let (online, waiting) = (master.servers.names(), not_recovered(master));
    let cluster = master.cluster.read();
    let nobody = (String::new(), Vec::new());
    for node in cluster.regions().filter(|node| !node.info.table.is_meta() && node.is_live()) {
        let info = &node.info;
        let is_held = held.contains(&Resource::Region(Arc::clone(info.encoded_name())));
        // Its server's recovery comes first.
        if is_held || node.location.as_ref().is_some_and(|server| waiting.contains(server)) {
            continue;
        }
        let (_, at) = deployed.get(info.encoded_name()).unwrap_or(&nobody);
        let state = cluster.state(&info.table);
        if let Some((kind, what)) = judge(node, state, at, &online) {
            let remedy = match kind {
                // One that was open before: closing a region by hand is an operator's right.
                Kind::NotDeployed if node.state == RegionState::Closed => Remedy::Nothing(format!(
                    "somebody may have closed it by hand; `basalt hbck assigns {}` opens it",
                    info.encoded_name()
                )),
                _ => Remedy::Settle(info.clone()),
            };
            found.push(Found { kind, subject: info.name_string(), what, remedy });
        }
    }
    for (encoded, (name, servers)) in &deployed {
        if cluster.region(encoded).is_none() {
            let what = format!("it is open at {} and not in hbase:meta", list_of(servers));
            let why = "what fills a hole of hbase:meta is taken in with its directory; else close it (`basalt hbck unassigns` does not know it: stop \
                       that server in order) and look at its directory";
            found.push(Found {
                kind: Kind::NotInMeta,
                subject: name.clone(),
                what,
                remedy: Remedy::Nothing(why.into()),
            });
        }
    }
}

/// What is wrong with where a region is that nobody works on.
fn judge(
    node: &RegionNode,
    table: Option<TableState>,
    at: &[ServerName],
    online: &[ServerName],
) -> Option<(Kind, String)> {
    let said = || node.location.as_ref().map_or_else(|| "no server".into(), ToString::to_string);
    match (table?, node.state) {
        (TableState::Enabled, RegionState::Open) => match at {
            [server] if Some(server) == node.location.as_ref() => None,
            [] => Some((Kind::NotDeployed, format!("it is open nowhere, and hbase:meta says {}", said()))),
            [server] => {
                Some((Kind::ServerDoesNotMatchMeta, format!("it is open at {server}, and hbase:meta says {}", said())))
            }
            servers => Some((
                Kind::MultiDeployed,
                format!("it is open at {}, and hbase:meta says {}", list_of(servers), said()),
            )),
        },
        // It is tried again by who looks after those.
        (TableState::Enabled, RegionState::FailedOpen) => None,
        (TableState::Enabled, RegionState::Closed) if at.is_empty() && node.open_seq_id.is_none() => {
            Some((Kind::StuckRegion, "it was made and never opened, and no procedure works on it".into()))
        }
        (TableState::Enabled, RegionState::Closed) => Some(match at {
            [] => (Kind::NotDeployed, "it is CLOSED, and its table is enabled".into()),
            servers => (
                Kind::ShouldNotBeDeployed,
                format!("hbase:meta has it as CLOSED, and it is open at {}", list_of(servers)),
            ),
        }),
        (TableState::Enabled, state) => {
            let place = node.location.as_ref().map_or_else(String::new, |server| {
                let lives = if online.contains(server) { "" } else { ", which is not online" };
                format!(" on {server}{lives}")
            });
            Some((Kind::StuckRegion, format!("it is {}{place}, and no procedure works on it", state.as_str_name())))
        }
        (TableState::Disabled, _) if !at.is_empty() => {
            Some((Kind::ShouldNotBeDeployed, format!("its table is disabled, and it is open at {}", list_of(at))))
        }
        _ => None,
    }
}

/// Servers that are dead and whose logs are not split yet, whether somebody splits them or not, and those that nobody knows.
fn not_recovered(master: &Master) -> BTreeSet<ServerName> {
    let (online, dead) = (master.servers.names(), master.servers.dead());
    let cluster = master.cluster.read();
    let located = cluster.with_replicas().filter_map(|node| node.location.clone());
    let unknown = located.filter(|server| !online.contains(server) && !dead.contains(server)).collect::<BTreeSet<_>>();
    drop(cluster);
    dead.into_iter().filter(|server| master.servers.has_logs_to_split(server)).chain(unknown).collect()
}

fn unknown_servers(master: &Master, found: &mut Vec<Found>) {
    let not_recovered = not_recovered(master);
    let dead = master.servers.dead();
    let mut counts: BTreeMap<&ServerName, usize> = not_recovered.iter().map(|server| (server, 0)).collect();
    let cluster = master.cluster.read();
    for server in cluster.with_replicas().filter_map(|node| node.location.as_ref()) {
        if let Some(count) = counts.get_mut(server) {
            *count += 1;
        }
    }
    for (server, count) in counts {
        if crash::is_running(master, server) {
            continue;
        }
        let why =
            if dead.contains(server) { "whose recovery was broken off" } else { "which the master does not know" };
        found.push(Found {
            kind: Kind::UnknownServer,
            subject: server.to_string(),
            what: format!("{count} regions are said to be on {server}, {why}"),
            remedy: Remedy::Recover(server.clone()),
        });
    }
}

/// As hbck2's recoverUnknown: the server's logs are split before anything that it had is opened.
pub(super) async fn recover(master: &Arc<Master>, server: &ServerName) -> Result<Tried> {
    if crash::is_running(master, server) || !not_recovered(master).contains(server) {
        return Ok(Tried::Passed);
    }
    let id = crash::submit(master, server).await?;
    Ok(Tried::Done(format!("procedure {id} splits its logs and opens its regions elsewhere")))
}

/// Whether a server has a region open: asked of it where it is another process.
async fn has_open(host: &Arc<dyn RegionHost>, region: &str) -> Result<bool> {
    if !host.is_remote() {
        return Ok(host.region_loads().iter().any(|load| &*load.encoded_name == region));
    }
    Ok(in_time(host, host.online_regions()).await?.contains(region))
}

/// What a server answers within [`PATIENCE`].
pub(super) async fn in_time<T>(
    host: &Arc<dyn RegionHost>,
    answer: impl Future<Output = std::result::Result<T, HostError>>,
) -> Result<T> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            Err(MasterError::new(
                ErrorKind::Io,
                format!("region server {} has not answered for {seconds} s", host.server_name()),
            ))
        }
    }
}

/// The servers that have a region open, all of them asked.
async fn who_has(master: &Master, region: &str) -> Result<Vec<Arc<dyn RegionHost>>> {
    let mut have = Vec::new();
    for host in master.servers.all() {
        if has_open(&host, region).await? {
            have.push(host);
        }
    }
    Ok(have)
}

/// Closes a region on every server that has it, which flushes what each was told, and opens it once: so what all of them wrote is in its
/// directory before it is read again. hbase:meta has it as CLOSED in between, and whoever starts then opens it.
pub(super) async fn settle(master: &Arc<Master>, info: RegionInfo) -> Result<Tried> {
    let encoded = Arc::clone(info.encoded_name());
    let Some(_locks) = master.procedures.locks.try_lock(region_locks(std::slice::from_ref(&info))) else {
        return Ok(busy(info.name_string()));
    };
    let have = who_has(master, &encoded).await?;
    let names: Vec<ServerName> = have.iter().map(|host| host.server_name()).collect();
    let (location, serves) = {
        let (online, cluster) = (master.servers.names(), master.cluster.read());
        let node = cluster.region(&encoded).filter(|node| node.is_live());
        let Some(node) = node else { return Ok(Tried::Passed) };
        let table = cluster.state(&info.table);
        match judge(node, table, &names, &online) {
            None => return Ok(Tried::Passed),
            Some((Kind::NotDeployed, _)) if node.state == RegionState::Closed => return Ok(Tried::Passed),
            Some((kind, _)) => (node.location.clone(), kind != Kind::ShouldNotBeDeployed),
        }
    };
    if let Some(server) = location.as_ref().filter(|server| master.servers.has_logs_to_split(server)) {
        return Ok(Tried::NotNow(format!("the WAL of the crashed region server {server} is not split yet")));
    }
    // One that is still opening it has it a moment later.
    let opening = location.and_then(|server| master.servers.get(&server).ok());
    let opening = opening.filter(|host| !names.contains(&host.server_name()));
    for host in have.iter().chain(&opening) {
        in_time(host, host.close_region(&encoded)).await?;
    }
    master.assignment.record_closed(&info).await?;
    let closed = if names.is_empty() { String::new() } else { format!("closed at {}", list_of(&names)) };
    if !serves {
        return Ok(Tried::Done(closed));
    }
    if let Err(error) = master.assignment.assign(vec![info.clone()]).await {
        // Half way: who looks after those finds it again.
        master.assignment.note_state(&info, RegionState::FailedOpen);
        return Err(error);
    }
    let cluster = master.cluster.read();
    let node = cluster.region(&encoded);
    let opened = match node {
        Some(RegionNode { state: RegionState::Open, location: Some(server), .. }) => format!("opened at {server}"),
        _ => "it could not be opened yet: FAILED_OPEN, which is tried again by itself".into(),
    };
    Ok(Tried::Done(if closed.is_empty() { opened } else { format!("{closed}, {opened}") }))
}
