//! How a master takes a cluster over whose region servers live on: which of them have hbase:meta and which regions is asked of them, those that
//! live no more are recovered, and only then is anything opened. Follows: `HMaster#finishActiveMasterInitialization`,
//! `AssignmentManager#joinCluster`.
//!
//! Always true: a region that hbase:meta shows on a server that lives is opened nowhere else before that server says that it does not have it,
//! or is dead with its logs split.

use crate::assignment::keep_meta_location;
use crate::cluster::RegionState;
use crate::host::{Inherited, RegionHost, ServerLogs};
use crate::master::Master;
use crate::procedure::Unfinished;
use crate::procedure::server::crash;
use crate::start::{meta_descriptor, read_meta};
use crate::{HostError, MasterError, Result};
use model::region_info::META_ENCODED_NAME;
use model::{RegionInfo, ServerName, TableDescriptor, TableName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Between two attempts while servers come and go.
const PAUSE: Duration = Duration::from_millis(200);

/// Servers that are known to live no more: nothing that they had is opened before their logs are split. One that the master before was recovering
/// is among them though its node may still be there: that master knew of its end from its next life, and its logs are taken from it. Follows:
/// `ServerManager#findDeadServersAndProcess`.
pub(crate) fn give_up_dead(master: &Master, inherited: &Inherited, unfinished: &[Unfinished]) {
    if !master.servers.are_remote() {
        return;
    }
    let crashing = unfinished.iter().filter(|unfinished| is_crash(unfinished));
    let crashing = crashing.filter_map(|unfinished| {
        let record = &unfinished.record;
        Some((crash::server_of(&record.procedure)?, crash::has_split_logs(record.step())))
    });
    let crashing: BTreeMap<ServerName, bool> = crashing.collect();
    for server in inherited.dead.iter().chain(crashing.keys()) {
        match crashing.get(server) {
            None if master.servers.get(server).is_ok() => {}
            // Its regions wait for no logs: the procedure, which goes on after that step, would not say so again.
            Some(true) => {
                master.servers.set_crashed(server);
                master.servers.set_recovered(server);
            }
            _ => master.servers.set_crashed(server),
        }
    }
}

fn is_crash(unfinished: &Unfinished) -> bool {
    unfinished.record.procedure.class_name() == crash::KIND.class_name
}

/// Whether a part of the start is done. Where the servers are other processes, an error that may pass has it done again after a pause.
///
/// # Errors
/// One that does not pass.
pub(crate) async fn is_done(master: &Master, outcome: Result<()>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.is_transient() && master.servers.are_remote() => {
            tracing::warn!(%error, "will try again");
            master.lifetime.pause(PAUSE).await?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Brings hbase:meta up and reads it. Answers the servers on which it showed regions.
pub(crate) async fn load_meta(
    master: &Arc<Master>,
    descriptors: Vec<TableDescriptor>,
    unfinished: &[Unfinished],
    inherited: &Inherited,
) -> Result<BTreeSet<String>> {
    let table = meta_descriptor(&descriptors);
    if !master.servers.are_remote() {
        let host = master.servers.choose(None, None, |_| 0)?;
        let open_seq_id = host.open_region(RegionInfo::meta(), table).await?;
        master.servers.set_meta_location(host.server_name());
        let servers = read_meta(master, (&*host, open_seq_id), descriptors, unfinished, inherited).await?;
        master.meta_loaded.set();
        return Ok(servers);
    }
    let mut place = MetaPlace { last: inherited.meta_location.clone(), avoid: None, dead: inherited.dead.clone() };
    loop {
        let attempt = async {
            let (host, open_seq_id) = place.open(master, &table).await?;
            let reading = async {
                let servers =
                    read_meta(master, (&*host, open_seq_id), descriptors.clone(), unfinished, inherited).await?;
                ask_who_has_what(master).await?;
                Ok(servers)
            };
            tokio::select! {
                biased;
                read = reading => read,
                gone = meta_is_gone(master) => Err(gone),
            }
        };
        match attempt.await {
            Ok(servers) => {
                master.meta_loaded.set();
                return Ok(servers);
            }
            Err(error) => {
                is_done(master, Err(error)).await?;
            }
        }
    }
}

/// Ends when the server that has hbase:meta is dead. What was to be written there waits until hbase:meta is open elsewhere, and before a master has
/// begun nobody else opens it.
async fn meta_is_gone(master: &Master) -> MasterError {
    loop {
        if let Err(gone) = master.servers.meta_host() {
            return gone.into();
        }
        if let Err(stopped) = master.lifetime.pause(PAUSE).await {
            return stopped;
        }
    }
}

/// Where hbase:meta is, while it is looked for.
struct MetaPlace {
    /// The server that has it, or was asked last to open it.
    last: Option<ServerName>,
    /// The server that could not open it.
    avoid: Option<ServerName>,
    /// Servers whose logs may hold edits of it.
    dead: Vec<ServerName>,
}

impl MetaPlace {
    async fn open(&mut self, master: &Arc<Master>, table: &Arc<TableDescriptor>) -> Result<(Arc<dyn RegionHost>, u64)> {
        let living = self.last.as_ref().and_then(|server| master.servers.get(server).ok());
        if living.is_none() {
            self.dead.extend(self.last.take());
        }
        while let Some(server) = self.dead.last() {
            master.log_splitter.split_logs(server, ServerLogs::Meta).await?;
            self.dead.pop();
        }
        // One that was asked before may have it, however little it answers now.
        let may_have_it = living.is_some();
        let host = match living {
            Some(host) => host,
            None => {
                let among = master.groups.servers_for(&TableName::meta(), &master.cluster.read(), &master.servers);
                master.servers.choose_among(among.as_ref(), None, self.avoid.as_ref(), |_| 0)?
            }
        };
        let server = host.server_name();
        self.last = Some(server.clone());
        let open_seq_id = if host.online_regions().await?.contains(META_ENCODED_NAME) {
            0
        } else {
            keep_meta_location(&*master.observer, &server).await?;
            match host.open_region(RegionInfo::meta(), Arc::clone(table)).await {
                Ok(open_seq_id) => open_seq_id,
                Err(error) => {
                    let is_not_there = match error {
                        HostError::Failed(_) | HostError::Refused(_) => true,
                        HostError::NotTaken(_) => !may_have_it,
                        HostError::Unreachable(_) | HostError::Stopping => false,
                    };
                    if is_not_there {
                        self.avoid = self.last.take();
                    }
                    return Err(crate::MasterError::new(crate::ErrorKind::Io, error));
                }
            }
        };
        master.servers.set_meta_location(server.clone());
        master.observer.meta_location(&server, true);
        Ok((host, open_seq_id))
    }
}

/// What became of a region that hbase:meta shows on a server.
enum Found {
    /// It is open there; whether hbase:meta says so.
    Open { is_known: bool },
    /// Its server lives and does not have it, or not yet.
    Missing,
    /// Its server is not there.
    Dead(ServerName),
}

/// Asks every server which regions it has open, and corrects the picture that hbase:meta gave.
async fn ask_who_has_what(master: &Arc<Master>) -> Result<()> {
    let mut has: BTreeMap<ServerName, BTreeSet<String>> = BTreeMap::new();
    for host in master.servers.all() {
        has.insert(host.server_name(), host.online_regions().await?);
    }
    let found: Vec<(RegionInfo, Found, u64)> = {
        let cluster = master.cluster.read();
        let shown = cluster.with_replicas().filter(|node| !node.info.table.is_meta() || node.info.is_replica());
        let shown = shown.filter_map(|node| Some((node, node.location.clone()?)));
        let look = |(node, server): (&crate::cluster::RegionNode, ServerName)| {
            let found = match has.get(&server) {
                Some(online) if online.contains(&**node.info.encoded_name()) => {
                    Found::Open { is_known: node.state == RegionState::Open }
                }
                Some(_) => Found::Missing,
                None => Found::Dead(server),
            };
            (node.info.clone(), found, node.open_seq_id.unwrap_or_default())
        };
        shown.map(look).collect()
    };
    for (info, found, open_seq_id) in found {
        match found {
            Found::Open { is_known: true } => {}
            Found::Open { is_known: false } => {
                let server = master.cluster.read().region(info.encoded_name()).and_then(|node| node.location.clone());
                if let Some(server) = server {
                    master.assignment.record_open(&info, &server, open_seq_id).await?;
                }
            }
            // It is asked once more: perhaps it is opening it for the master before.
            Found::Missing => master.assignment.note_state(&info, RegionState::Opening),
            Found::Dead(server) if master.servers.get(&server).is_err() => {
                if !master.servers.dead().contains(&server) {
                    master.servers.set_crashed(&server);
                }
            }
            Found::Dead(_) => {}
        }
    }
    Ok(())
}

/// Takes the procedures of crashed servers out of `unfinished`: they come before everything else.
pub(crate) fn take_crashes(master: &Master, unfinished: &mut Vec<Unfinished>) -> Vec<Unfinished> {
    if !master.servers.are_remote() {
        return Vec::new();
    }
    let (crashes, others) = std::mem::take(unfinished).into_iter().partition(is_crash);
    *unfinished = others;
    crashes
}

/// Recovers what dead servers had; ends when all of it is open elsewhere.
pub(crate) async fn recover(master: &Arc<Master>, crashes: Vec<Unfinished>) -> Result<()> {
    let resumed: BTreeSet<ServerName> =
        crashes.iter().filter_map(|crash| crash::server_of(&crash.record.procedure)).collect();
    let mut ids = Vec::new();
    for server in master.servers.dead() {
        let is_new = !resumed.contains(&server) && !crash::is_running(master, &server);
        if is_new && master.servers.has_logs_to_split(&server) {
            ids.push(crash::submit(master, &server).await?);
        }
    }
    master.procedures.resume(master, crashes.into_iter().map(|crash| (None, crash)).collect()).await;
    for id in ids {
        master.procedures.wait_for(id).await?;
    }
    Ok(())
}
